//! The agents' clocks before any work was recorded: reckoned from conversions of now, for whoever finds a queue's slots after a
//! kill.

use super::super::queue::Queue;
use super::super::{Hsa, driver};
use super::clock_interpolation::convert;
use crate::clock;
use std::time::{Duration, Instant};

/// Reckons the agents' clocks for queues of which no work was recorded yet. Under the lock.
pub(super) fn reckon_all(hsa: &Hsa, all: &[&'static Queue]) {
    for queue in all.iter().filter(|queue| queue.slots.is_reckoned()) {
        if let Some(points) = reckon(hsa, queue) {
            queue.slots.keep_reckoned(points);
        }
    }
}

/// When clocks are reckoned anew: the longer the run-time compares them the better it knows them, so each time when twice as
/// long has passed, and what is reckoned holds as long again.
pub(super) struct Reckoning {
    began: Instant,
    last: Instant,
}

impl Reckoning {
    const SHORTEST: Duration = Duration::from_millis(2);

    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { began: now, last: now }
    }

    pub(super) fn step(&mut self, hsa: &Hsa, all: &[&'static Queue]) {
        let known = self.last.duration_since(self.began).max(Self::SHORTEST);
        if self.last.elapsed() >= known {
            reckon_all(hsa, all);
            self.last = Instant::now();
        }
    }
}

/// Two points of the agent's clock, ticks and HSA ns, now and a little later: whoever ends the process before the first
/// work was recorded leaves its times to them. None where the run-time does not convert, or says nothing that can be.
fn reckon(hsa: &Hsa, queue: &Queue) -> Option<[[u64; 2]; 2]> {
    // Far enough ahead that the run-time compares the clocks anew: what it knows of them at first is of microseconds.
    const STEP: u64 = 1 << 24;
    const TRIES: usize = 16;
    /// Near enough, ns.
    const MAX_ERROR: u64 = 1_000_000;
    /// Later than any tick: the run-time compares the clocks anew before it converts that.
    const LATEST_TICK: u64 = i64::MAX as u64;
    let at = |tick| convert(hsa, queue, tick).map(|system| hsa.nanoseconds(system));
    let now = driver::about(clock::boottime());
    // First of all: what ROCr makes of a tick before its start it takes for good from the two comparisons that it has
    // (`GpuAgent::TranslateTime`, 5.2 to 6.2), and in its first moments both are one, with no time between them.
    at(LATEST_TICK)?;
    let mut tick = 0u64;
    for _ in 0..TRIES {
        let there = at(tick.wrapping_add(STEP))?;
        let here = at(tick)?;
        let rise = there.wrapping_sub(here);
        if rise == 0 || rise > STEP << 16 {
            return None;
        }
        let distance = now.wrapping_sub(here).cast_signed();
        if distance.unsigned_abs() <= MAX_ERROR {
            return Some([[tick, here], [tick.wrapping_add(STEP), there]]);
        }
        let steps = i128::from(distance) * i128::from(STEP) / i128::from(rise);
        tick = tick.wrapping_add(steps as u64);
    }
    None
}
