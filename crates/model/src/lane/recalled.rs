//! A stretch of a lane's past that was read back from a recording.
//!
//! Work that ended by a certain time comes from the recording, and work that ended later from the lane itself: no slice
//! counts twice, and none is missing as long as the lane has kept all slices that ended later.

use std::sync::Arc;

use super::{Bucket, Column, Lane, Origin, Slice, lay};
use roctop_trace::item::{Nanos, Span};

/// What was read back.
#[derive(Debug)]
pub(crate) struct Recalled {
    /// All work that touches this stretch and ended by `until` is there.
    pub(crate) span: Span,
    /// The recording was complete up to here when it was read.
    pub(crate) until: Nanos,
    /// The work.
    pub(crate) lane: Lane,
}

impl Lane {
    /// From now on shows what was read back where the lane has no slices itself.
    pub(crate) fn set_recalled(&mut self, recalled: Option<Arc<Recalled>>) {
        self.recalled = recalled;
    }

    /// The same lane with the recalled past of another.
    pub(crate) fn recalling(&self, other: &Self) -> Self {
        Self {
            recalled: other.recalled.clone(),
            ..self.clone()
        }
    }

    /// The recalled past, if it has all work that touches `from`..`to`.
    pub(super) fn recalled_in(&self, from: Nanos, to: Nanos) -> Option<&Recalled> {
        self.recalled.as_deref().filter(|recalled| {
            let is_continued = recalled.span.end == recalled.until && self.forgotten_until <= recalled.until;
            from >= recalled.span.begin && (to <= recalled.span.end || is_continued) && from <= recalled.until
        })
    }

    /// Slices of the lane that the recalled past does not have.
    fn younger(&self, recalled: &Recalled, from: Nanos, to: Nanos) -> impl Iterator<Item = &Slice> {
        let until = recalled.until;
        let slices = self.touching(from, to).filter(move |chunk| chunk.end > until);
        slices
            .flat_map(|chunk| &chunk.slices)
            .filter(move |slice| slice.span.end > until && slice.span.end >= from && slice.span.begin <= to)
    }

    /// How many slices touch `from`..`to`; `None` if the recalled past does not have them all.
    pub(super) fn count_recalled(&self, from: Nanos, to: Nanos, most: usize) -> Option<usize> {
        let recalled = self.recalled_in(from, to)?;
        if !recalled.lane.has_slices(from, to, most) {
            return None;
        }
        Some(recalled.lane.inside(from, to).count() + self.younger(recalled, from, to).take(most + 1).count())
    }

    /// The slices that touch `from`..`to`, in no order.
    pub(super) fn recalled_between(&self, from: Nanos, to: Nanos) -> Vec<Slice> {
        self.recalled_in(from, to).map_or_else(Vec::new, |recalled| {
            let own = recalled.lane.inside(from, to);
            own.chain(self.younger(recalled, from, to)).copied().collect()
        })
    }

    /// Replaces columns that are not exact by those of the recalled past.
    pub(super) fn fill_recalled(&self, from: Nanos, width: u64, takes: &impl Fn(Origin) -> bool, out: &mut [Column]) {
        let Some(recalled) = self.recalled.as_deref() else {
            return;
        };
        // A lane without slices has sums only.
        let has_none = self.kept() == 0 && self.last > 0;
        let exact_after = if has_none { Nanos::MAX } else { self.forgotten_until };
        let left = |column: usize| from.saturating_add(width.saturating_mul(column as u64));
        let is_covered = |column: &usize| {
            left(*column) <= exact_after && self.recalled_in(left(*column), left(column + 1)).is_some()
        };
        let Some(first) = (0..out.len()).find(is_covered) else {
            return;
        };
        let count = (first..out.len()).take_while(is_covered).count();
        let start = left(first);
        let past = recalled.lane.own_columns(start, width, count, takes);
        let mut young = vec![Bucket::default(); count];
        let to = left(first + count);
        for slice in self
            .younger(recalled, start, to)
            .filter(|slice| takes(self.key.origin(slice)))
        {
            lay(slice.span, slice.what, start, width, &mut young);
        }
        for ((column, past), young) in out[first..].iter_mut().zip(past).zip(young) {
            *column = past;
            if young.busy > 0 || young.count > 0 {
                column.sums.merge(&young);
            }
        }
    }
}
