//! What a program says of itself against what was recorded of it.

use super::inventory::Machine;
use super::step::{Check, MACHINE_WAS_BUSY, Status};
use crate::item::{Item, KernelId, Span};
use crate::recording::Recording;
use anyhow::Result;
use roctop_ring::level::Level;
use roctop_ring::record::{flag, status};
use roctop_trace::early::Early;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Name of the kernel that the checks launch.
const SPIN: &str = "roctop_spin";
/// Durations of one kernel by two ways may differ by so much in the middle, us.
const DIFFERENCE: f64 = 5.0;
/// A full queue may cost so much of the time without roctop.
const SLOWER: f64 = 1.5;
/// Overlap by records and by the kernels' own clocks, us.
const OVERLAP: f64 = 20.0;

/// What was recorded of a check's program.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorded {
    /// The spin kernel's dispatches in order of their launch.
    spins: Vec<Span>,
    untimed: usize,
    dispatches: usize,
    queues: usize,
    agents: BTreeSet<u32>,
    /// What the collector found worth a note.
    pub(super) notes: BTreeSet<String>,
    /// The furthest level that the collector stepped down to by itself.
    pub(super) level: Option<Level>,
}

impl Recorded {
    /// Reads a recording.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let recording = Recording::open(path)?;
        let mut found = Self::default();
        let mut kernels: BTreeMap<KernelId, bool> = BTreeMap::new();
        let mut spins: Vec<(u64, Span)> = Vec::new();
        let mut early = Early::default();
        recording.items(&mut |items| {
            for item in items {
                match item {
                    Item::Kernel(kernel) => drop(kernels.insert(kernel.id, &*kernel.mangled == SPIN)),
                    Item::Queue(queue) if queue.destroyed == 0 => {
                        found.queues += usize::from(queue.intercepted);
                    }
                    Item::Dispatch(dispatch) => {
                        found.dispatches += 1;
                        early.add(&dispatch);
                        found.agents.insert(dispatch.agent.0);
                        let is_untimed = dispatch.flags & flag::UNTIMED != 0;
                        found.untimed += usize::from(is_untimed);
                        if kernels.get(&dispatch.kernel) == Some(&true) {
                            spins.push((dispatch.dispatch_id, dispatch.span));
                        }
                    }
                    Item::Status { code, text, .. } if code == status::NOTE => {
                        found.notes.insert(text.to_string());
                    }
                    Item::Level { step, .. } => found.level = found.level.max(Some(step.to)),
                    _ => {}
                }
            }
        })?;
        found.notes.extend(early.note());
        spins.sort_by_key(|(number, _)| *number);
        found.spins = spins.into_iter().map(|(_, span)| span).collect();
        Ok(found)
    }
}

/// The check as it is, unless the records say that it is bad.
fn unless(check: &Check, fault: Option<String>) -> Check {
    let mut check = check.clone();
    if let Some(fault) = fault.filter(|_| check.status != Status::Bad) {
        check.status = Status::Bad;
        check.text = fault;
        // What was recorded decides it.
        check.numbers.remove(MACHINE_WAS_BUSY);
    }
    check
}

/// Judges a check that was run at a level, by what was recorded of it.
pub(super) type Judge = fn(&Check, &Recorded, Level) -> Check;

/// Are there as many kernels as were launched, all with times where the level has times for all?
fn count(recorded: &Recorded, launched: f64, level: Level) -> Option<String> {
    let level = level.max(recorded.level.unwrap_or_default());
    if level >= Level::Plain {
        return None;
    }
    let launched = launched as usize;
    let seen = recorded.spins.len();
    if seen != launched {
        return Some(format!("{seen} of {launched} kernels were recorded"));
    }
    (recorded.untimed > 0 && level < Level::Program)
        .then(|| format!("{} of {} kernels have no times", recorded.untimed, recorded.dispatches))
}

/// D5.
pub(super) fn proxy(check: &Check, recorded: &Recorded, level: Level) -> Check {
    let disorder = recorded
        .spins
        .windows(2)
        .filter(|pair| pair[1].begin < pair[0].begin)
        .count();
    let fault = count(recorded, check.get("kernels"), level).or_else(|| {
        let is_one = check.get("threads") <= 1.0;
        (disorder > 0 && is_one).then(|| format!("{disorder} kernels of one queue begin before the one in front"))
    });
    unless(check, fault).number("recorded", recorded.spins.len() as f64)
}

/// D9: the program came to the same results as alone.
pub(super) fn same(check: &Check, alone: &Check) -> Check {
    let fault = [
        ("calls", "makes another number of calls"),
        ("codes", "gets other return codes"),
        ("bytes", "gets other bytes"),
    ]
    .into_iter()
    .find(|(name, _)| check.get(name).to_bits() != alone.get(name).to_bits())
    .map(|(_, what)| format!("with roctop the program {what}"));
    let mut check = unless(check, fault.filter(|_| alone.status != Status::Bad));
    let ratio = check.get("wall_ms") / alone.get("wall_ms").max(0.001);
    if check.status == Status::Ok {
        check.text = format!("same results and return codes, {ratio:.2} times the time");
    }
    check.number("wall_ratio", ratio)
}

/// D9: and its kernels were recorded.
pub(super) fn hip(check: &Check, recorded: &Recorded, alone: &Check, level: Level) -> Check {
    let check = same(check, alone);
    let launched = check.get("launches") + check.get("cooperative");
    let fault = count(recorded, launched, level);
    let mut check = unless(&check, fault).number("recorded", recorded.spins.len() as f64);
    if check.status == Status::Ok {
        check.text = format!("{}; {} of {launched} kernels", check.text, recorded.spins.len());
    }
    check
}

/// D11.
pub(super) fn queues(recorded: &Recorded, machine: &Machine) -> Check {
    let (queues, dispatches) = (recorded.queues, recorded.dispatches);
    let check = if queues == 0 {
        Check::found(Status::Bad, "HIP launched kernels, and none of its queues was entered")
    } else {
        let text = format!("{queues} queues entered by HSA's interception, {dispatches} kernels on them");
        Check::found(Status::Ok, text)
    };
    check
        .number("queues", queues as f64)
        .number("dispatches", dispatches as f64)
        .number("gpus_used", recorded.agents.len() as f64)
        .number("gpus", machine.gpus.len() as f64)
}

/// The differences between two lists of durations, us, from the smallest.
fn differences(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut found: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
    found.sort_by(f64::total_cmp);
    found
}

fn durations_of(spans: &[Span]) -> Vec<f64> {
    spans.iter().map(|span| span.duration() as f64 / 1e3).collect()
}

/// The verdict on two lists of durations, from the sorted differences and the one that counts.
fn compared(found: &[f64], counts: f64, what: &str) -> Check {
    let middle = middle(found);
    let most = found.iter().fold(0.0f64, |most, one| most.max(one.abs()));
    let status = if counts.abs() < DIFFERENCE {
        Status::Ok
    } else {
        Status::Bad
    };
    let text = format!(
        "{what}: {} durations differ by {middle:.2} us in the middle, {most:.2} at most",
        found.len()
    );
    Check::found(status, text)
        .number("kernels", found.len() as f64)
        .number("median_us", middle)
        .number("most_us", most)
}

fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// D10: against the times between HIP's events. The kernels between events are the last ones.
///
/// Between two events is also the time from the first event to the kernel, which the host submits meanwhile. So the difference
/// that counts is the smallest one, as long as events are farther apart than the kernel is long.
pub(super) fn durations(check: &Check, recorded: &Recorded) -> Check {
    let elapsed: Vec<f64> = check
        .numbers
        .iter()
        .filter(|(name, _)| name.starts_with("elapsed_us_"))
        .map(|(_, time)| *time)
        .collect();
    let own = durations_of(&recorded.spins);
    if elapsed.is_empty() || own.len() < elapsed.len() {
        return Check::found(Status::Skipped, "no kernels between events were recorded");
    }
    let found = differences(&elapsed, &own[own.len() - elapsed.len()..]);
    let least = found.first().copied().unwrap_or(0.0);
    let counts = if least > 0.0 { least } else { middle(&found).min(0.0) };
    compared(&found, counts, "hipEventElapsedTime").undecided_if(counts > 0.0 && check.was_on_busy_machine())
}

/// D10: against HIP's own records of another run of the same program.
pub(super) fn own_records(check: &Check, own: &Recorded, recorded: &Recorded) -> Check {
    if own.spins.is_empty() {
        return Check::found(Status::Skipped, "HIP gives no records itself here (5.3.1 and later do)");
    }
    if own.spins.len() != recorded.spins.len() {
        let text = format!(
            "{} kernels by HIP's own records, {} by HSA's queues",
            own.spins.len(),
            recorded.spins.len()
        );
        return Check::found(Status::Bad, text);
    }
    let timed = check
        .numbers
        .keys()
        .filter(|name| name.starts_with("elapsed_us_"))
        .count();
    let last = |spans: &[Span]| durations_of(spans.split_at(spans.len().saturating_sub(timed)).1);
    let found = differences(&last(&own.spins), &last(&recorded.spins));
    compared(&found, middle(&found), "HIP's own records")
}

/// D12.
pub(super) fn full(check: &Check, recorded: &Recorded, alone: &Check, level: Level) -> Check {
    let ratio = check.get("wall_ms") / alone.get("wall_ms").max(0.001);
    let seen = recorded.spins.len();
    let launched = check.get("launches") as usize;
    let is_slow = ratio > SLOWER;
    let was_busy = is_slow && (check.was_on_busy_machine() || alone.was_on_busy_machine());
    let fault = if is_slow {
        Some(format!(
            "{launched} launches take {ratio:.2} times the time without roctop"
        ))
    } else {
        // A ring that the viewer reads late may have been overwritten: that is counted, and no fault of the queue's.
        (seen == 0 && level < Level::Plain).then(|| format!("none of {launched} kernels was recorded"))
    };
    let mut check = unless(check, fault)
        .undecided_if(was_busy)
        .number("wall_ratio", ratio)
        .number("recorded", seen as f64);
    if check.status == Status::Ok {
        check.text = format!("{launched} launches without a wait in {ratio:.2} times the time, {seen} recorded");
    }
    check
}

/// D13.
pub(super) fn overlap(check: &Check, recorded: &Recorded, level: Level) -> Check {
    let mut check = unless(check, count(recorded, 2.0, level));
    if let [first, second] = recorded.spins[..] {
        let seen = first.end.min(second.end).saturating_sub(first.begin.max(second.begin)) as f64 / 1e3;
        check = check.number("recorded_overlap_us", seen);
        let own = check.get("kernel_overlap_us");
        if check.status == Status::Ok && (seen - own).abs() > OVERLAP {
            check.status = Status::Bad;
            check.text =
                format!("kernels overlap for {own:.0} us by their own clocks and for {seen:.0} us by the records");
        }
    }
    check
}

/// D14.
pub(super) fn killed(check: &Check, recorded: &Recorded, level: Level) -> Check {
    if check.status == Status::Skipped {
        return check.clone();
    }
    let completed = check.get("completed").max(check.get("witnessed"));
    let timed = recorded.spins.iter().filter(|span| span.end > 0).count();
    // Only a file keeps what was complete in the last moment.
    let is_kept = level.max(recorded.level.unwrap_or_default()) == Level::Files;
    let fault = (is_kept && (timed as f64) < completed)
        .then(|| format!("{completed} kernels were complete when the process was killed, {timed} are in the records"));
    let mut check = unless(check, fault).number("recorded", timed as f64);
    if check.status != Status::Bad {
        check.text = format!("{}; {timed} in the records, {completed} seen complete", check.text);
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(spans: &[[u64; 2]]) -> Recorded {
        let spins = spans
            .iter()
            .map(|[begin, end]| Span {
                begin: *begin,
                end: *end,
            })
            .collect();
        Recorded {
            spins,
            queues: 1,
            dispatches: spans.len(),
            ..Recorded::default()
        }
    }

    fn check_of(numbers: &[(&str, f64)]) -> Check {
        let check = Check::found(Status::Ok, "fine");
        numbers
            .iter()
            .fold(check, |check, (name, value)| check.number(name, *value))
    }

    #[test]
    fn a_missing_or_untimed_kernel_is_bad() {
        let check = check_of(&[("kernels", 2.0), ("threads", 1.0)]);
        assert_eq!(
            proxy(&check, &recorded(&[[1, 2], [3, 4]]), Level::Files).status,
            Status::Ok
        );
        assert_eq!(
            proxy(&check, &recorded(&[[1, 2]]), Level::Files).text,
            "1 of 2 kernels were recorded"
        );
        assert_eq!(
            proxy(&check, &recorded(&[[3, 4], [1, 2]]), Level::Files).text,
            "1 kernels of one queue begin before the one in front"
        );
        let untimed = Recorded {
            untimed: 1,
            ..recorded(&[[1, 2], [3, 4]])
        };
        assert_eq!(
            proxy(&check, &untimed, Level::RunTime).text,
            "1 of 2 kernels have no times"
        );
        assert_eq!(proxy(&check, &untimed, Level::Program).status, Status::Ok);
    }

    #[test]
    fn another_result_with_roctop_is_bad() {
        let alone = check_of(&[("calls", 9.0), ("codes", 1.0), ("bytes", 7.0), ("wall_ms", 10.0)]);
        assert_eq!(same(&alone, &alone).status, Status::Ok);
        let other = alone.clone().number("bytes", 8.0);
        assert_eq!(same(&other, &alone).text, "with roctop the program gets other bytes");
    }

    #[test]
    fn durations_are_those_of_the_last_kernels() {
        let check = check_of(&[("elapsed_us_00", 10.0), ("elapsed_us_01", 11.0)]);
        let own = recorded(&[[0, 90_000], [0, 10_000], [0, 11_000]]);
        let found = durations(&check, &own);
        assert_eq!(
            (found.status, found.get("kernels"), found.get("most_us")),
            (Status::Ok, 2.0, 0.0)
        );
        let own = recorded(&[[0, 90_000], [0, 20_000], [0, 21_000]]);
        assert_eq!(durations(&check, &own).status, Status::Bad);
    }

    #[test]
    fn a_late_launch_between_events_is_no_wrong_duration() {
        let elapsed = |first: f64| check_of(&[("elapsed_us_00", first), ("elapsed_us_01", 900.0), ("took_ms", 10.0)]);
        let own = recorded(&[[0, 10_000], [0, 11_000]]);
        assert_eq!(durations(&elapsed(10.5), &own).status, Status::Ok);
        assert_eq!(durations(&elapsed(700.0), &own).status, Status::Bad);
        let busy = durations(&elapsed(700.0).number("cpu_wait_ms", 3.0), &own);
        assert_eq!((busy.status, busy.is_undecided()), (Status::Note, true));
        // Events cannot be closer together than the kernel between them is long, on any machine.
        let long = recorded(&[[0, 2_000_000], [0, 2_000_000]]);
        let short = durations(&elapsed(700.0).number("cpu_wait_ms", 3.0), &long);
        assert_eq!(short.status, Status::Bad);
    }

    #[test]
    fn a_kill_loses_no_complete_kernel() {
        let check = check_of(&[("completed", 2.0), ("witnessed", 0.0)]);
        assert_eq!(
            killed(&check, &recorded(&[[1, 2], [3, 4], [5, 0]]), Level::Files).status,
            Status::Ok
        );
        assert_eq!(
            killed(&check, &recorded(&[[1, 2], [3, 0]]), Level::Files).status,
            Status::Bad
        );
    }

    #[test]
    fn without_files_a_kill_may_lose_what_was_complete() {
        let check = check_of(&[("completed", 2.0)]);
        assert_eq!(killed(&check, &recorded(&[[1, 2]]), Level::Memory).status, Status::Ok);
    }

    #[test]
    fn a_slow_full_queue_is_bad() {
        let alone = check_of(&[("wall_ms", 100.0)]);
        let own = recorded(&[[1, 2]]);
        assert_eq!(
            full(
                &check_of(&[("wall_ms", 140.0), ("launches", 1.0)]),
                &own,
                &alone,
                Level::Files
            )
            .status,
            Status::Ok
        );
        assert_eq!(
            full(
                &check_of(&[("wall_ms", 160.0), ("launches", 1.0)]),
                &own,
                &alone,
                Level::Files
            )
            .status,
            Status::Bad
        );
    }
}
