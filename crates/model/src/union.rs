//! Time covered by at least one of many overlapping spans that arrive nearly in order.

use std::collections::VecDeque;

use roctop_trace::item::{Nanos, Span};

const MAX_RECENT_GAPS: usize = 4096;

/// Union of spans: exact while the disorder stays within the last few thousand gaps.
#[derive(Clone, Debug, Default)]
pub struct Union {
    recent: VecDeque<Span>,
    /// Position of the last span: the next one of the same ring is near it.
    near: usize,
    folded_until: Nanos,
    /// Total covered time, ns.
    pub total: u64,
}

impl Union {
    /// Adds a span and passes each newly covered piece to `fresh`.
    pub fn add(&mut self, span: Span, mut fresh: impl FnMut(Span)) {
        let begin = span.begin.max(self.folded_until);
        if begin >= span.end {
            return;
        }
        let mut merged = Span { begin, end: span.end };
        // First kept span that ends at or after `begin`; kept spans are sorted and disjoint.
        let at = match self.recent.back() {
            Some(last) if last.end >= merged.begin => self.place(merged.begin),
            _ => self.recent.len(),
        };
        self.near = at;
        let mut cursor = begin;
        let mut swallowed = 0;
        while let Some(old) = self.recent.get(at + swallowed).filter(|old| old.begin <= span.end) {
            if cursor < old.begin {
                self.total += old.begin - cursor;
                fresh(Span {
                    begin: cursor,
                    end: old.begin,
                });
            }
            cursor = cursor.max(old.end);
            merged = Span {
                begin: merged.begin.min(old.begin),
                end: merged.end.max(old.end),
            };
            swallowed += 1;
        }
        if cursor < span.end {
            self.total += span.end - cursor;
            fresh(Span {
                begin: cursor,
                end: span.end,
            });
        }
        if swallowed > 0 {
            self.recent[at] = merged;
            self.recent.drain(at + 1..at + swallowed);
        } else {
            self.recent.insert(at, merged);
        }
        if self.recent.len() > MAX_RECENT_GAPS
            && let Some(old) = self.recent.pop_front()
        {
            self.folded_until = old.end;
            self.near = self.near.saturating_sub(1);
        }
    }

    /// First span that ends at `begin` or later.
    fn place(&self, begin: Nanos) -> usize {
        const MAX_SCAN: usize = 8;
        let ends_before = |at: usize| self.recent.get(at).is_some_and(|old| old.end < begin);
        let mut at = self.near.min(self.recent.len());
        for _ in 0..MAX_SCAN {
            if ends_before(at) {
                at += 1;
            } else if at > 0 && !ends_before(at - 1) {
                at -= 1;
            } else {
                return at;
            }
        }
        self.recent.partition_point(|old| old.end < begin)
    }
}

/// Number of buffered spans at which they are merged.
const MAX_WAITING: usize = 4096;

/// Union of many spans that arrive in sorted runs over the same time. They are buffered and sorted together, which
/// costs less than inserting each.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    waiting: Vec<Span>,
    union: Union,
}

impl Gathered {
    /// Buffers spans; true if there are enough to merge.
    pub(super) fn add(&mut self, spans: impl Iterator<Item = Span>) -> bool {
        self.waiting.extend(spans);
        self.waiting.len() >= MAX_WAITING
    }

    /// Whether the buffer is empty.
    pub(super) const fn is_settled(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Merges the buffered spans and passes each newly covered piece to `fresh`.
    pub(super) fn settle(&mut self, mut fresh: impl FnMut(Span)) {
        // This stable sort detects sorted runs and merges them.
        self.waiting.sort_by_key(|span| span.begin);
        let mut merged: Option<Span> = None;
        for span in self.waiting.drain(..) {
            match &mut merged {
                Some(merged) if span.begin <= merged.end => merged.end = merged.end.max(span.end),
                _ => {
                    if let Some(whole) = merged.replace(span) {
                        self.union.add(whole, &mut fresh);
                    }
                }
            }
        }
        if let Some(whole) = merged {
            self.union.add(whole, fresh);
        }
    }

    /// Union of all merged spans.
    pub(super) const fn union(&self) -> &Union {
        &self.union
    }

    /// Time covered by all merged spans, ns.
    pub(super) const fn total(&self) -> u64 {
        self.union.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_spans_cover_the_same_as_single_ones() {
        let mut seed = 11u64;
        let (mut one_by_one, mut gathered) = (Union::default(), Gathered::default());
        let mut pieces = 0;
        for run in 0..200u64 {
            let mut at = run / 8 * 1000;
            let mut spans = Vec::new();
            for _ in 0..30 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let begin = at + (seed >> 33) % 40;
                at = begin + (seed >> 50) % 30;
                spans.push(Span { begin, end: at });
            }
            for span in &spans {
                one_by_one.add(*span, |_| {});
            }
            gathered.add(spans.into_iter());
            if run % 3 == 0 {
                gathered.settle(|piece| pieces += piece.duration());
            }
        }
        gathered.settle(|piece| pieces += piece.duration());
        assert!(gathered.is_settled());
        assert_eq!((gathered.total(), pieces), (one_by_one.total, one_by_one.total));
    }

    #[test]
    fn the_union_is_exact_in_any_order() {
        let mut seed = 7u64;
        for _ in 0..200 {
            let mut union = Union::default();
            let mut truth = [false; 300];
            let mut pieces = [0u8; 300];
            for _ in 0..40 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let begin = (seed >> 33) % 280;
                let end = begin + (seed >> 50) % 20;
                truth[begin as usize..end as usize].fill(true);
                union.add(Span { begin, end }, |piece| {
                    pieces[piece.begin as usize..piece.end as usize]
                        .iter_mut()
                        .for_each(|p| *p += 1);
                });
            }
            assert_eq!(union.total, truth.iter().filter(|&&t| t).count() as u64);
            assert!(pieces.iter().zip(truth).all(|(&p, t)| p == u8::from(t)));
        }
    }
}
