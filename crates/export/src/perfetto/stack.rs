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

/// Events on the track for a new slice. Times of ends are in a list of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Number of slices that end before it.
    pub(super) before: usize,
    /// Its begin.
    pub(super) begin: Nanos,
    /// Number of slices that end before the next one, possibly itself.
    pub(super) after: usize,
}

impl Stack {
    /// Adds the next slice by begin; `next` is the one after it, `None` for the last of the track. Adds the times of the
    /// step's ends to `ends`, in their order.
    pub(super) fn step(&mut self, slice: Span, next: Option<Span>, ends: &mut Vec<Nanos>) -> Step {
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
            step.before += 1;
            ends.push(over);
        }
        let end = self.open.last().map_or(end, |outer| end.min(*outer));
        if end <= begin {
            step.after += 1;
            ends.push(begin);
        } else {
            self.open.push(end);
        }
        if next.is_none() {
            step.after += self.open.len();
            ends.extend(self.open.drain(..).rev());
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
            let mut ends = Vec::new();
            let step = stack.step(*span, spans.get(at + 1).copied(), &mut ends);
            assert_eq!(step.before + step.after, ends.len());
            let mut ends = ends.into_iter().map(|end| -end.cast_signed());
            all.extend(ends.by_ref().take(step.before));
            all.push(step.begin.cast_signed());
            all.extend(ends);
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
