//! Compact buffer of durations for a histogram, with the histogram's own buckets.

use roctop_ring::near;

use super::stats::MAX_DURATION;

/// Number of values by bucket since the last transfer to the histogram.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    counts: Vec<u16>,
    /// Number of buffered values.
    waiting: u32,
}

/// log2 of the buckets per power of two, as in a histogram with two significant digits.
const STEP_BITS: u32 = 7;
const STEPS: usize = 1 << STEP_BITS;

/// Bucket of a value: below 256 each value has its own.
#[inline]
fn step_of(value: u64) -> usize {
    let wider = (value | 0xff).ilog2() - STEP_BITS;
    (wider as usize * STEPS) + (value >> wider) as usize
}

/// Minimum value of a bucket.
fn least_of(step: usize) -> u64 {
    let wider = (step / STEPS).saturating_sub(1);
    ((step - wider * STEPS) as u64) << wider
}

impl Counts {
    /// Counts a value; true if the buffer must be transferred now.
    #[inline]
    pub(super) fn add(&mut self, value: u64) -> bool {
        let step = step_of(value.clamp(1, MAX_DURATION));
        self.waiting = self.waiting.saturating_add(1);
        if let Some(count) = self.counts.get_mut(step) {
            *count += 1;
            return *count == u16::MAX;
        }
        self.counts.resize((step + 1).next_multiple_of(STEPS), 0);
        self.counts[step] = 1;
        false
    }

    /// Number of values not yet transferred.
    pub(super) const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Prefetches the counter of a value.
    #[inline]
    pub(super) fn fetch(&self, value: u64) {
        if let Some(count) = self.counts.get(step_of(value.clamp(1, MAX_DURATION))) {
            near::fetch(count);
        }
    }

    pub(super) fn drain(&mut self, mut into: impl FnMut(u64, u32)) {
        self.waiting = 0;
        for (step, count) in self.counts.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            into(least_of(step), u32::from(std::mem::take(count)));
        }
    }
}
