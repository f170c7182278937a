//! Calibrates the agents' clocks from conversions of the current time: for their rates, and before any work was recorded
//! for a reader of the slots after a kill.

use super::super::queue::Queue;
use super::super::{Hsa, driver};
use super::clock_interpolation::convert;
use super::rate;
use crate::clock;
use std::time::{Duration, Instant};

/// Calibrates the clocks of a new queue. Where the driver's declaration of its agent's rate is in doubt, it does so until
/// that is decided, but only a few times: work that is recorded before has wrong durations. Under the lock.
pub(super) fn reckon_first(hsa: &Hsa, queue: &'static Queue) {
    const TRIES: usize = 4;
    const PAUSE: Duration = Duration::from_micros(700);
    for _ in 0..TRIES {
        if !reckon_all(hsa, &[queue]) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Calibrates the clocks of agents and of queues without recorded work. Under the lock. Whether an agent's rate is in
/// doubt, see [`rate::see`].
fn reckon_all(hsa: &Hsa, all: &[&'static Queue]) -> bool {
    let mut is_in_doubt = false;
    for (at, queue) in all.iter().enumerate() {
        let is_first = !all.iter().take(at).any(|other| other.agent.index == queue.agent.index);
        let is_reckoned = queue.slots.is_reckoned();
        if let Some(points) = (is_first || is_reckoned).then(|| reckon(hsa, queue)).flatten() {
            if is_first {
                is_in_doubt |= rate::see(hsa, &queue.agent, points);
            }
            if is_reckoned {
                queue.slots.keep_reckoned(points);
            }
        }
    }
    is_in_doubt
}

/// Schedule of calibrations with exponential back-off: the longer the run-time compares the clocks, the better it knows
/// them. Each interval is twice the previous one, and a calibration is valid for as long again.
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

/// Two points of the agent's clock (ticks and HSA ns), now and a little later, for a process that ends before its first
/// record. `None` if the run-time does not convert, or returns an impossible value.
fn reckon(hsa: &Hsa, queue: &Queue) -> Option<[[u64; 2]; 2]> {
    // Far enough ahead to make the run-time recalibrate: its first calibration is only exact to microseconds.
    const STEP: u64 = 1 << 24;
    const TRIES: usize = 16;
    /// Acceptable error, ns.
    const MAX_ERROR: u64 = 1_000_000;
    /// After any tick: the run-time recalibrates before it converts this.
    const LATEST_TICK: u64 = i64::MAX as u64;
    let at = |tick| convert(hsa, queue, tick).map(|system| hsa.nanoseconds(system));
    let now = driver::about(clock::boottime());
    // Must be first: ROCr's conversion of a tick before its start is fixed by its two calibrations
    // (`GpuAgent::TranslateTime`, 5.2 to 6.2), which are identical in its first moments.
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
