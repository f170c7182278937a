//! Time covered by at least one of many overlapping spans that come nearly in order.

use std::collections::VecDeque;

use roctop_trace::item::{Nanos, Span};

const RECENT: usize = 4096;

/// The union of spans: exact while disorder stays within the last few thousand gaps.
#[derive(Clone, Debug, Default)]
pub struct Union {
    recent: VecDeque<Span>,
    /// Where the last span went: the next one of the same ring goes near it.
    near: usize,
    folded_until: Nanos,
    /// Nanoseconds covered so far.
    pub total: u64,
}

impl Union {
    /// Adds a span and hands each newly covered piece to `fresh`.
    pub fn add(&mut self, span: Span, mut fresh: impl FnMut(Span)) {
        let begin = span.begin.max(self.folded_until);
        if begin >= span.end {
            return;
        }
        let mut merged = Span { begin, end: span.end };
        // The first kept span that ends at or after our begin; they are in order and apart.
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
        if self.recent.len() > RECENT
            && let Some(old) = self.recent.pop_front()
        {
            self.folded_until = old.end;
            self.near = self.near.saturating_sub(1);
        }
    }

    /// The first span that ends at `begin` or later.
    fn place(&self, begin: Nanos) -> usize {
        const STEPS: usize = 8;
        let ends_before = |at: usize| self.recent.get(at).is_some_and(|old| old.end < begin);
        let mut at = self.near.min(self.recent.len());
        for _ in 0..STEPS {
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

/// Spans that wait before they are put in order.
const MOST_WAITING: usize = 4096;

/// The union of many spans that come in runs, each in order and over the same time as those before: they wait until they are
/// put in order together, which costs less than finding a place for each.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    waiting: Vec<Span>,
    union: Union,
}

impl Gathered {
    /// Adds spans; true when they are enough to be settled.
    pub(super) fn add(&mut self, spans: impl Iterator<Item = Span>) -> bool {
        self.waiting.extend(spans);
        self.waiting.len() >= MOST_WAITING
    }

    /// Whether none waits.
    pub(super) const fn is_settled(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds those that wait to the union, and hands each newly covered piece to `fresh`.
    pub(super) fn settle(&mut self, mut fresh: impl FnMut(Span)) {
        // Finds the runs that are in order and merges them.
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

    /// All that is settled.
    pub(super) const fn union(&self) -> &Union {
        &self.union
    }

    /// Nanoseconds covered by all that is settled.
    pub(super) const fn total(&self) -> u64 {
        self.union.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gathered_covers_what_is_added_one_by_one() {
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
