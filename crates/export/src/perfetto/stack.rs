//! Open slices of a track. Slices that overlap without nesting are cut, because a track is a stack.

use roctop_trace::item::{Nanos, Span};

/// Open slices, outermost first. Times are those of the slices.
#[derive(Default)]
pub(super) struct Stack {
    /// End of each.
    open: Vec<Nanos>,
    /// Nothing may begin earlier: the last slice began here, or the next one is cut here.
    from: Nanos,
}

/// Events on the track for a new slice.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Ends of slices before it.
    pub(super) before: Vec<Nanos>,
    /// Its begin.
    pub(super) begin: Nanos,
    /// Ends of slices before the next one, possibly its own.
    pub(super) after: Vec<Nanos>,
}

impl Stack {
    /// Adds the next slice by begin; `next` is the one after it, `None` for the last of the track.
    pub(super) fn step(&mut self, slice: Span, next: Option<Span>) -> Step {
        let begin = slice.begin.max(self.from);
        let mut end = slice.end.max(begin);
        self.from = begin;
        if let Some(next) = next
            && next.begin < end
            && end < next.end
        {
            end = next.begin.max(begin).midpoint(end);
            self.from = end;
        }
        let mut step = Step {
            begin,
            ..Step::default()
        };
        while let Some(over) = self.open.pop_if(|end| *end <= begin) {
            step.before.push(over);
        }
        let end = self.open.last().map_or(end, |outer| end.min(*outer));
        if end <= begin {
            step.after.push(begin);
        } else {
            self.open.push(end);
        }
        if next.is_none() {
            step.after.extend(self.open.drain(..).rev());
            self.from = 0;
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events of some slices: begins as positive numbers, ends as negative ones.
    fn written(slices: &[(Nanos, Nanos)]) -> Vec<i64> {
        let spans: Vec<Span> = slices.iter().map(|&(begin, end)| Span { begin, end }).collect();
        let mut stack = Stack::default();
        let mut all = Vec::new();
        for (at, span) in spans.iter().enumerate() {
            let step = stack.step(*span, spans.get(at + 1).copied());
            all.extend(step.before.iter().map(|end| -end.cast_signed()));
            all.push(step.begin.cast_signed());
            all.extend(step.after.iter().map(|end| -end.cast_signed()));
        }
        all
    }

    #[test]
    fn inner_slices_end_first() {
        assert_eq!(written(&[(10, 90), (20, 30), (40, 50)]), [10, 20, -30, 40, -50, -90]);
        assert_eq!(written(&[(10, 20), (10, 15), (30, 30)]), [10, 10, -15, -20, 30, -30]);
    }

    #[test]
    fn overlaps_are_cut_in_the_middle() {
        assert_eq!(written(&[(10, 50), (30, 90)]), [10, -40, 40, -90]);
    }

    #[test]
    fn no_slice_begins_before_one_that_was_written() {
        let all = written(&[(1, 100), (10, 110), (20, 105), (21, 40), (30, 200)]);
        let times: Vec<i64> = all.iter().map(|time| time.abs()).collect();
        assert!(times.is_sorted(), "{all:?}");
        let (begun, ended) = all.iter().partition::<Vec<i64>, _>(|time| **time > 0);
        assert_eq!(begun.len(), ended.len());
    }
}
