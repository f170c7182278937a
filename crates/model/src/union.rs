//! Time covered by at least one of many overlapping spans that arrive nearly in order.

use std::collections::VecDeque;

use roctop_trace::item::{Nanos, Span};

const MAX_RECENT_GAPS: usize = 4096;

/// A span with work, or one without until work begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// The span.
    pub span: Span,
    /// Submission of the work that begins with it, or that ends it; 0 if unknown.
    pub submit: Nanos,
}

impl From<Span> for Stretch {
    fn from(span: Span) -> Self {
        Self { span, submit: 0 }
    }
}

/// Union of spans: exact while the disorder stays within the last few thousand gaps.
#[derive(Clone, Debug, Default)]
pub struct Union {
    recent: VecDeque<Stretch>,
    /// Position of the last span: the next one of the same ring is near it.
    near: usize,
    folded_until: Nanos,
    /// Gaps that no later span can change, if they are kept until [`Union::take_gaps`].
    folded: Option<Vec<Stretch>>,
    /// Number of further gaps that later spans may change.
    more: usize,
    /// Begin of the earliest span.
    first: Option<Nanos>,
    /// Time of spans that came too late to count, ns.
    pub late: u64,
    /// Total covered time, ns.
    pub total: u64,
}

impl Union {
    /// An empty one that keeps its gaps.
    pub(super) fn with_gaps() -> Self {
        Self {
            folded: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// An empty one that is exact for `more` further gaps.
    pub(super) fn with_more(more: usize) -> Self {
        Self {
            more,
            ..Self::default()
        }
    }

    /// Adds a span and passes each newly covered piece to `fresh`.
    pub fn add(&mut self, added: impl Into<Stretch>, mut fresh: impl FnMut(Stretch)) {
        let Stretch { span, submit } = added.into();
        let begin = span.begin.max(self.folded_until);
        self.late += begin.min(span.end).saturating_sub(span.begin);
        if begin >= span.end {
            return;
        }
        if self.first.is_none_or(|first| begin < first) {
            self.first = Some(begin);
        }
        let mut fresh = |begin, end| {
            fresh(Stretch {
                span: Span { begin, end },
                submit,
            });
        };
        let mut merged = Stretch {
            span: Span { begin, end: span.end },
            submit,
        };
        // First kept span that ends at or after `begin`; kept spans are sorted and disjoint.
        let at = match self.recent.back() {
            Some(last) if last.span.end >= begin => self.place(begin),
            _ => self.recent.len(),
        };
        self.near = at;
        let mut cursor = begin;
        let mut swallowed = 0;
        while let Some(old) = self.recent.get(at + swallowed).filter(|old| old.span.begin <= span.end) {
            if cursor < old.span.begin {
                self.total += old.span.begin - cursor;
                fresh(cursor, old.span.begin);
            }
            cursor = cursor.max(old.span.end);
            if old.span.begin <= merged.span.begin {
                (merged.span.begin, merged.submit) = (old.span.begin, old.submit);
            }
            merged.span.end = merged.span.end.max(old.span.end);
            swallowed += 1;
        }
        if cursor < span.end {
            self.total += span.end - cursor;
            fresh(cursor, span.end);
        }
        if swallowed > 0 {
            self.recent[at] = merged;
            self.recent.drain(at + 1..at + swallowed);
        } else {
            self.recent.insert(at, merged);
        }
        if self.recent.len() > MAX_RECENT_GAPS + self.more
            && let Some(old) = self.recent.pop_front()
        {
            self.folded_until = old.span.end;
            self.near = self.near.saturating_sub(1);
            if let (Some(gaps), Some(next)) = (&mut self.folded, self.recent.front()) {
                gaps.push(between(&old, next));
            }
        }
    }

    /// Begin of the earliest span.
    pub(super) const fn first(&self) -> Option<Nanos> {
        self.first
    }

    /// End of the latest span.
    pub(super) fn last(&self) -> Option<Nanos> {
        self.recent.back().map(|last| last.span.end)
    }

    /// Until when no later span changes anything.
    pub(super) const fn folded_until(&self) -> Nanos {
        self.folded_until
    }

    /// Gaps that no later span can change and that were not taken yet, in order.
    pub(super) fn take_gaps(&mut self) -> Vec<Stretch> {
        self.folded.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Gaps that a later span may still change, in order.
    pub(super) fn recent_gaps(&self) -> impl Iterator<Item = Stretch> {
        let pairs = self.recent.iter().zip(self.recent.iter().skip(1));
        pairs.map(|(old, next)| between(old, next))
    }

    /// The parts of a span that are not covered, in order, as far back as spans are kept one by one.
    pub(super) fn outside(&self, span: Span, mut pass: impl FnMut(Span)) {
        let mut from = span.begin;
        if self.last().is_some_and(|last| last > span.begin) {
            let at = self.recent.partition_point(|known| known.span.end <= span.begin);
            for known in self.recent.range(at..) {
                if known.span.begin >= span.end {
                    break;
                }
                if from < known.span.begin {
                    pass(Span {
                        begin: from,
                        end: known.span.begin,
                    });
                }
                from = from.max(known.span.end);
            }
        }
        if from < span.end {
            pass(Span {
                begin: from,
                end: span.end,
            });
        }
    }

    /// First span that ends at `begin` or later.
    fn place(&self, begin: Nanos) -> usize {
        const MAX_SCAN: usize = 8;
        let ends_before = |at: usize| self.recent.get(at).is_some_and(|old| old.span.end < begin);
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
        self.recent.partition_point(|old| old.span.end < begin)
    }
}

/// Number of buffered spans at which they are merged.
const MAX_WAITING: usize = 4096;

/// The gap between two spans.
const fn between(old: &Stretch, next: &Stretch) -> Stretch {
    Stretch {
        span: Span {
            begin: old.span.end,
            end: next.span.begin,
        },
        submit: next.submit,
    }
}

/// Union of many spans that arrive in sorted runs over the same time. They are buffered and sorted together, which
/// costs less than inserting each.
#[derive(Debug)]
pub(super) struct Gathered {
    waiting: Vec<Stretch>,
    union: Union,
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            union: Union::with_gaps(),
        }
    }
}

impl Gathered {
    /// Buffers spans; true if there are enough to merge.
    pub(super) fn add(&mut self, spans: impl Iterator<Item = Stretch>) -> bool {
        self.waiting.extend(spans);
        self.waiting.len() >= MAX_WAITING
    }

    /// Whether the buffer is empty.
    pub(super) const fn is_settled(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Merges the buffered spans and passes each newly covered piece to `fresh`.
    pub(super) fn settle(&mut self, mut fresh: impl FnMut(Stretch)) {
        // This stable sort detects sorted runs and merges them.
        self.waiting.sort_by_key(|one| one.span.begin);
        let mut merged: Option<Stretch> = None;
        for one in self.waiting.drain(..) {
            match &mut merged {
                Some(merged) if one.span.begin <= merged.span.end => {
                    merged.span.end = merged.span.end.max(one.span.end);
                }
                _ => {
                    if let Some(whole) = merged.replace(one) {
                        self.union.add(whole, &mut fresh);
                    }
                }
            }
        }
        if let Some(whole) = merged {
            self.union.add(whole, fresh);
        }
    }

    /// Gaps that no later span can change and that were not taken yet, in order.
    pub(super) fn take_gaps(&mut self) -> Vec<Stretch> {
        self.union.take_gaps()
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
            gathered.add(spans.into_iter().map(Stretch::from));
            if run % 3 == 0 {
                gathered.settle(|piece| pieces += piece.span.duration());
            }
        }
        gathered.settle(|piece| pieces += piece.span.duration());
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
                    pieces[piece.span.begin as usize..piece.span.end as usize]
                        .iter_mut()
                        .for_each(|p| *p += 1);
                });
            }
            assert_eq!(union.total, truth.iter().filter(|&&t| t).count() as u64);
            assert!(pieces.iter().zip(truth).all(|(&p, t)| p == u8::from(t)));
        }
    }
}
