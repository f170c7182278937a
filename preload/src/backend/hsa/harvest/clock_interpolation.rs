//! Converts agent ticks of a batch of work to host times, and flags invalid ones.

use super::super::queue::Queue;
use super::super::{Hsa, driver};
use super::rate;
use crate::{clock, process};
use hsa_sys::abi::SUCCESS;
use roctop_ring::record::{flag, status};
use roctop_ring::sync::{AtomicU64, Ordering};

/// Conversion of agent ticks to ticks of the system domain: exact for the last tick of a batch, linear to the first.
/// Durations are the agent's ticks; only the position of the batch is converted. If the run-time recalibrates between
/// two conversions, the line and all durations would be distorted; see `unbent`.
pub(super) struct Line {
    from: [u64; 2],
    to: [u64; 2],
    /// False if the run-time did not convert.
    is_known: bool,
    /// Whether the first or the last tick is invalid: there is no line, and each tick is converted individually.
    is_broken: bool,
}

impl Line {
    pub(super) fn through(hsa: &Hsa, queue: &Queue, spans: &[[u64; 2]]) -> Self {
        let ticks = || spans.iter().flatten().copied().filter(|tick| *tick != 0);
        let from = [ticks().min().unwrap_or(0), ticks().max().unwrap_or(0)];
        let mut is_known = true;
        let mut convert = |tick: u64| {
            let out = convert(hsa, queue, tick);
            is_known &= out.is_some();
            out.unwrap_or(tick)
        };
        // The last tick first, because the run-time may recalibrate for it.
        let last = convert(from[1]);
        let first = if from[1] == from[0] { last } else { convert(from[0]) };
        let first = unbent(from, [first, last], rate::of(&queue.agent), hsa.frequency);
        let ends = [hsa.nanoseconds(first), hsa.nanoseconds(last)];
        let is_broken = from[1] != 0 && !hsa.is_time(ends);
        if from[1] != 0 && !is_broken {
            check_end(ends[1], driver::about(clock::boottime()));
        }
        Self {
            from,
            to: [first, last],
            is_known,
            is_broken,
        }
    }

    /// Begin and end in ns, with flags: zeros if unknown; impossible times are kept.
    #[inline]
    pub(super) fn times(&self, hsa: &Hsa, queue: &Queue, span: [u64; 2]) -> ([u64; 2], u8) {
        if span.contains(&0) || !self.is_known {
            return ([0, 0], flag::UNTIMED);
        }
        if !self.is_broken {
            return (span.map(|tick| hsa.nanoseconds(self.at(tick))), 0);
        }
        let span = span.map(|tick| hsa.nanoseconds(convert(hsa, queue, tick).unwrap_or(0)));
        let flags = if hsa.is_time(span) { 0 } else { doubt() };
        (span, flags)
    }

    /// Stores both end points for a reader of the queue's slots after a kill.
    pub(super) fn keep(&self, hsa: &Hsa, queue: &Queue) {
        for (ticks, system) in self.from.into_iter().zip(self.to) {
            if ticks != 0 && self.is_known && !self.is_broken {
                queue.slots.keep_point(ticks, hsa.nanoseconds(system));
            }
        }
    }

    fn at(&self, tick: u64) -> u64 {
        let ([from, until], [first, last]) = (self.from, self.to);
        if until <= from {
            return first.wrapping_add(tick.wrapping_sub(from));
        }
        let (offset, range) = (u128::from(tick.saturating_sub(from)), u128::from(until - from));
        let span = u128::from(last.saturating_sub(first));
        first.wrapping_add(((offset * span + range / 2) / range) as u64)
    }
}

/// Deviation from the clocks' rates that shows a distorted line: more than 1/BEND_PART of its length ...
const BEND_PART: u64 = 2_000;
/// ... and this many ns.
const MIN_BEND: u64 = 2_000;

/// System ticks of a batch's first tick: as converted, unless the batch would then have a different duration than in
/// agent ticks.
fn unbent(from: [u64; 2], [first, last]: [u64; 2], agent: Option<u64>, system: u64) -> u64 {
    let Some(agent) = agent.filter(|_| system > 0) else {
        return first;
    };
    let length = u128::from(from[1].saturating_sub(from[0])) * u128::from(system) / u128::from(agent);
    let Ok(length) = u64::try_from(length) else {
        return first;
    };
    let least = u128::from(MIN_BEND) * u128::from(system) / 1_000_000_000;
    let allowed = (length / BEND_PART).max(least as u64);
    if last.wrapping_sub(first).abs_diff(length) <= allowed {
        first
    } else {
        last.saturating_sub(length)
    }
}

/// Reports impossible times of work, once. Returns the flags: the work counts as untimed, and the record keeps its
/// times.
#[cold]
pub(crate) fn doubt() -> u8 {
    static REPORTED: AtomicU64 = AtomicU64::new(0);
    if let Some(process) = process::get().filter(|_| REPORTED.swap(1, Ordering::Relaxed) == 0) {
        process.say(
            status::NOTE,
            0,
            "work of the GPU has times before HSA began or in the future: it counts as without times, its records keep them",
        );
    }
    flag::UNTIMED | flag::SUSPECT_TIME
}

/// Number of consecutive batches that end after the current time before it is reported.
const IN_A_ROW: u64 = 32;
/// Minimum lead of the last end, ns; the clocks are calibrated better than this.
const MIN_LEAD: u64 = 50_000;

/// A batch was read at `now`: the GPU cannot have ended later. Reported once, if it does repeatedly.
fn check_end(last: u64, now: u64) {
    static AHEAD_IN_A_ROW: AtomicU64 = AtomicU64::new(0);
    if last <= now.saturating_add(MIN_LEAD) {
        // Reported once only.
        if AHEAD_IN_A_ROW.load(Ordering::Relaxed) < IN_A_ROW {
            AHEAD_IN_A_ROW.store(0, Ordering::Relaxed);
        }
        return;
    }
    if AHEAD_IN_A_ROW.fetch_add(1, Ordering::Relaxed) + 1 == IN_A_ROW
        && let Some(process) = process::get()
    {
        let by = last - now;
        let text = format!(
            "kernels end {} us after they were seen complete: GPU and host clock disagree, and times of the GPU are late",
            by / 1000
        );
        process.say(status::NOTE, by, &text);
    }
}

/// An agent tick as converted by the run-time, in ticks of the system domain; `None` if it fails.
pub(super) fn convert(hsa: &Hsa, queue: &Queue, tick: u64) -> Option<u64> {
    let mut out = tick;
    let convert = hsa.amd.convert_tick;
    #[expect(unsafe_code, reason = "a call of the run-time")]
    // SAFETY: the agent is the queue's; `out` has room for the answer.
    let status = unsafe { convert(queue.agent.handle, tick, &raw mut out) };
    (status == SUCCESS).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::unbent;

    const NS: u64 = 1_000_000_000;

    #[test]
    fn a_jump_between_conversions_does_not_bend_durations() {
        let of = |first, last| unbent([100, 1_100], [first, last], Some(100_000_000), NS);
        // 1000 ticks of 10 ns.
        assert_eq!(of(50_000, 60_000), 50_000);
        assert_eq!(of(50_000, 2_060_000), 2_050_000);
        assert_eq!(of(2_050_000, 60_000), 50_000);
        // A deviation by drift and rounding comes from the conversion.
        assert_eq!(of(50_000, 61_500), 50_000);
    }

    #[test]
    fn a_long_line_may_drift() {
        let of = |first, last| unbent([0, 100_000_000], [first, last], Some(100_000_000), NS);
        assert_eq!(of(5, NS + 100_000), 5);
        assert_eq!(of(5, NS + 2_700_000), 2_700_000);
    }

    #[test]
    fn an_unknown_rate_is_the_conversions() {
        assert_eq!(unbent([0, 10], [5, 9_000_000], None, NS), 5);
        assert_eq!(unbent([0, 10], [5, 9_000_000], Some(100_000_000), 0), 5);
    }
}
