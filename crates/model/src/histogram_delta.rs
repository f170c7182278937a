//! Durations on their way into a histogram: the histogram's own steps, in little room.

use roctop_ring::near;

use super::stats::LONGEST;

/// How often values came since a histogram was last told: the histogram's own steps, in little room.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    counts: Vec<u16>,
    /// How many there are.
    waiting: u32,
}

/// Steps of one power of two, as the histogram has them with two digits.
const STEP_BITS: u32 = 7;
const STEPS: usize = 1 << STEP_BITS;

/// The step that a value lies in: below 256 each has its own.
#[inline]
fn step_of(value: u64) -> usize {
    let wider = (value | 0xff).ilog2() - STEP_BITS;
    (wider as usize * STEPS) + (value >> wider) as usize
}

/// The least value of a step.
fn least_of(step: usize) -> u64 {
    let wider = (step / STEPS).saturating_sub(1);
    ((step - wider * STEPS) as u64) << wider
}

impl Counts {
    /// Counts one; true when they must be drained now.
    #[inline]
    pub(super) fn add(&mut self, value: u64) -> bool {
        let step = step_of(value.clamp(1, LONGEST));
        self.waiting = self.waiting.saturating_add(1);
        if let Some(count) = self.counts.get_mut(step) {
            *count += 1;
            return *count == u16::MAX;
        }
        self.counts.resize((step + 1).next_multiple_of(STEPS), 0);
        self.counts[step] = 1;
        false
    }

    /// How many a histogram was not told yet.
    pub(super) const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Fetches where a value will be counted.
    #[inline]
    pub(super) fn fetch(&self, value: u64) {
        if let Some(count) = self.counts.get(step_of(value.clamp(1, LONGEST))) {
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
