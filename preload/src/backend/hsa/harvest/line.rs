//! The agent's ticks of a batch of work as times of the host, and what is wrong with some.

use super::super::queue::Queue;
use super::super::{Hsa, driver};
use crate::{clock, process};
use hsa_sys::abi::SUCCESS;
use roctop_ring::record::{flag, status};
use roctop_ring::sync::{AtomicU64, Ordering};

/// Agent ticks to ticks of the system domain: exact for the first and the last tick of a batch, a line between.
pub(super) struct Line {
    from: [u64; 2],
    to: [u64; 2],
    /// False when the run-time did not convert.
    is_known: bool,
    /// The first or the last is no time: there is no line between, and each tick is converted by itself.
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
        // The last one first: it may make the run-time look at its clocks again, and both are to come from one look.
        let last = convert(from[1]);
        let first = if from[1] == from[0] { last } else { convert(from[0]) };
        let ends = [hsa.nanoseconds(first), hsa.nanoseconds(last)];
        let is_broken = from[1] != 0 && !hsa.is_time(ends);
        if from[1] != 0 && !is_broken {
            judge(ends[1], driver::about(clock::boottime()));
        }
        Self {
            from,
            to: [first, last],
            is_known,
            is_broken,
        }
    }

    /// Begin and end in ns, and what is to be said of them: zeros when they are not known; what cannot be is kept.
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

    /// Leaves both ends for whoever finds the queue's slots after a kill.
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

/// Work left times which cannot be: told once. Its flags: it counts as without times, and the record keeps them.
#[cold]
pub(crate) fn doubt() -> u8 {
    static TOLD: AtomicU64 = AtomicU64::new(0);
    if let Some(process) = process::get().filter(|_| TOLD.swap(1, Ordering::Relaxed) == 0) {
        process.say(
            status::NOTE,
            0,
            "work of the GPU has times before HSA began or in the future: it counts as without times, its records keep them",
        );
    }
    flag::UNTIMED | flag::SUSPECT_TIME
}

/// Batches in a row whose last end is ahead of the clock before it is told.
const IN_A_ROW: u64 = 32;
/// By how much the last end is ahead then, ns: samples of both clocks are known better.
const AHEAD: u64 = 50_000;

/// A batch was read at `now`: the GPU cannot have ended later. Told once when it does, again and again.
fn judge(last: u64, now: u64) {
    static AHEAD_IN_A_ROW: AtomicU64 = AtomicU64::new(0);
    if last <= now.saturating_add(AHEAD) {
        // Told stays told.
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

/// An agent's tick as the run-time converts it, in ticks of the system domain; none when it does not.
pub(super) fn convert(hsa: &Hsa, queue: &Queue, tick: u64) -> Option<u64> {
    let mut out = tick;
    let convert = hsa.amd.convert_tick;
    #[expect(unsafe_code, reason = "a call of the run-time")]
    // SAFETY: the agent is the queue's; `out` has room for the answer.
    let status = unsafe { convert(queue.agent.handle, tick, &raw mut out) };
    (status == SUCCESS).then_some(out)
}
