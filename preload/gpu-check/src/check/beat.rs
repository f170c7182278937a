//! Submits consecutive barriers with hand-made signals: does each complete, in time, with its own times?

use crate::cpu_wait::{self, CpuWait};
use crate::hsa::{Hsa, Lane, Signals, until};
use crate::outcome::{Outcome, Status};
use hsa_sys::abi::Signal;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Delay beyond which a completion is late.
const LATE_LIMIT: Duration = Duration::from_millis(5);
/// Delay beyond which a completion never comes.
const LIMIT: Duration = Duration::from_millis(600);

/// Observations of the barriers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beat {
    /// Number of completed barriers.
    pub(crate) done: usize,
    /// Delay of the first completion after its doorbell, ns.
    pub(crate) first: u64,
    /// Delays of completions, ns.
    taken: Vec<f64>,
    /// Number of barriers whose times came after their value.
    times_after: usize,
    /// Number of barriers without times.
    untimed: usize,
    /// Number of barriers with the times of the slot's previous one.
    repeated: usize,
    /// Number of barriers with an end before their begin.
    exchanged: usize,
    /// Number of barriers that a second mapping of the memory shows differently.
    differ: usize,
    /// A completion is missing; whether a later one on a signal of the run-time's came.
    missing: Option<bool>,
    /// Time that this process waited for a CPU.
    cpu_wait: Duration,
}

/// Submits barriers to a queue, one at a time, until `count` are done or the time is over. `second` maps the same
/// signals.
pub(crate) fn beat(
    hsa: &Hsa,
    lane: &Lane,
    signals: Signals,
    second: Option<Signals>,
    count: usize,
    time: Duration,
) -> Result<Beat, String> {
    let (start, cpu_wait) = (Instant::now(), CpuWait::begin());
    let mut found = Beat::default();
    let mut before = vec![[0u64; 2]; signals.count];
    for round in 0..count {
        if start.elapsed() > time && found.done > 0 {
            break;
        }
        let index = round % signals.count;
        let signal = signals.get(index);
        signal.start.store(0, Ordering::Relaxed);
        signal.end.store(0, Ordering::Relaxed);
        signal.value.store(1, Ordering::Release);
        let rung = Instant::now();
        lane.barrier(signals.handle(index), LIMIT)?;
        if !until(LIMIT, || signal.value.load(Ordering::Acquire) == 0) {
            let later = hsa.signal(1)?;
            lane.barrier(later, LIMIT)?;
            let is_later = hsa.wait(later, LIMIT).is_ok();
            // The packet in front is complete: a signal that has changed by now was late.
            if !is_later || signal.value.load(Ordering::Acquire) != 0 {
                found.missing = Some(is_later);
                return Ok(found);
            }
        }
        let taken = rung.elapsed();
        if found.done == 0 {
            found.first = taken.as_nanos() as u64;
        }
        found.done += 1;
        found.taken.push(taken.as_nanos() as f64);
        let mut times = times_of(signal);
        if times.contains(&0) {
            found.times_after += 1;
            until(LATE_LIMIT, || !times_of(signal).contains(&0));
            times = times_of(signal);
        }
        found.untimed += usize::from(times.contains(&0));
        found.repeated += usize::from(!times.contains(&0) && times == before[index]);
        found.exchanged += usize::from(times[0] > times[1]);
        before[index] = times;
        if let Some(second) = second {
            let other = second.get(index);
            let is_same = other.value.load(Ordering::Acquire) == 0 && times_of(other) == times;
            found.differ += usize::from(!is_same);
        }
    }
    found.cpu_wait = cpu_wait.so_far();
    Ok(found)
}

fn times_of(signal: &Signal) -> [u64; 2] {
    [signal.start.load(Ordering::Acquire), signal.end.load(Ordering::Acquire)]
}

impl Beat {
    /// The verdict, with the numbers.
    pub(crate) fn outcome(mut self, what: &str) -> Outcome {
        let is_late = |taken: &&f64| **taken > LATE_LIMIT.as_nanos() as f64;
        let late = self.taken.iter().filter(is_late).count();
        let delay = Duration::from_nanos(self.taken.iter().filter(is_late).sum::<f64>() as u64);
        let slowest = self.taken.iter().copied().fold(0.0, f64::max);
        let median = super::median(&mut self.taken);
        let done = self.done;
        let outcome = if let Some(is_later) = self.missing {
            if is_later {
                let text = format!("{what}: after {done} completions one does not come, though a later packet's does");
                Outcome::new(Status::Bad, text)
            } else {
                let text = format!(
                    "{what}: undecided: after {done} completions the queue stands still, by a busy GPU or a hang"
                );
                Outcome::new(Status::Note, text)
            }
        } else if let Some((count, fault)) = [
            (self.untimed, "without times"),
            (self.repeated, "with the times of an earlier packet"),
            (self.exchanged, "with an end before their begin"),
            (self.differ, "differ in a second mapping of their pages"),
        ]
        .into_iter()
        .find(|(count, _)| *count > 0)
        {
            Outcome::new(Status::Bad, format!("{what}: {count} of {done} completions {fault}"))
        } else if 2 * late > done {
            let text = format!(
                "{what}: {late} of {done} completions are seen more than 5 ms late ({:.1} ms)",
                median / 1e6
            );
            if cpu_wait::explains(self.cpu_wait, delay) {
                Outcome::busy(&text, self.cpu_wait)
            } else {
                Outcome::new(Status::Bad, text)
            }
        } else {
            let text = format!(
                "{what}: {done} completions, {:.0} us each, the first after {:.1} ms",
                median / 1e3,
                self.first as f64 / 1e6
            );
            Outcome::new(Status::Ok, text)
        };
        outcome
            .number("completions", done as f64)
            .number("first_us", self.first as f64 / 1e3)
            .number("median_us", median / 1e3)
            .number("slowest_us", slowest / 1e3)
            .number("late", late as f64)
            .number("times_after_value", self.times_after as f64)
            .number("untimed", self.untimed as f64)
            .number("repeated", self.repeated as f64)
            .number("exchanged", self.exchanged as f64)
            .number("differ", self.differ as f64)
            .number("missing", f64::from(u8::from(self.missing == Some(true))))
            .number("stood_still", f64::from(u8::from(self.missing == Some(false))))
    }
}
