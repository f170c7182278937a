//! Collectives in words: which one, who is missing, what a late rank did instead.

use super::alert::{Alert, Evidence, Rule};
use super::host;
use crate::collectives::{Absence, Collective, Key, OperationRow, Problem, Times, Waiting};
use crate::{LaneKey, Snapshot};
use roctop_trace::item::{
    CollectiveOperation as Operation, Datatype, KernelId, Nanos, ProcessId, Span, TextId, ThreadId,
};
use roctop_trace::units;

/// Nesting levels of ranges that are looked at.
const MAX_LEVELS: u16 = 16;
/// Maximum number of ranges that are looked at per level.
const MAX_RANGES: usize = 2000;
/// Maximum number of alerts per rule.
const MAX_ALERTS: usize = 5;
/// Collectives of an operation from which on a rank that is often last is worth an alert.
const MIN_COLLECTIVES: u64 = 10;

/// `AllReduce #640 of comm 2`; of a message `Send #3 from 0 to 1 of comm 2`.
pub fn label(key: Key, operation: Operation) -> String {
    let Key {
        communicator,
        sequence,
        pair,
    } = key;
    let name = operation.name();
    match pair {
        Some((from, to)) => format!("Send #{sequence} from {from} to {to} of comm {communicator}"),
        None => format!("{name} #{sequence} of comm {communicator}"),
    }
}

/// What a process does now, as far as it is open: `in hipStreamSynchronize for 3.2 s, range step 12`.
pub fn doing_now(snap: &Snapshot, process: ProcessId) -> String {
    let Some(row) = snap.values.processes.get(process.0 as usize) else {
        return "not recorded".into();
    };
    if row.exit.is_some() {
        return "its process has ended".into();
    }
    let mut words = Vec::new();
    let open = &row.open;
    if let Some(call) = open
        .calls
        .iter()
        .filter(|call| call.parent == 0)
        .min_by_key(|call| call.span.begin)
    {
        let known = snap.names.operation(call.operation);
        let name = known.map_or("?", |known| &known.operation.name);
        let age = units::duration(snap.now.saturating_sub(call.span.begin));
        words.push(format!("in {name} for {age}"));
    } else {
        words.push("not in a call".into());
    }
    if let Some(dispatch) = open.dispatches.iter().min_by_key(|dispatch| dispatch.submit) {
        words.push(format!("kernel {}", kernel(snap, dispatch.kernel)));
    }
    if let Some(range) = open.ranges.iter().max_by_key(|range| (range.span.begin, range.level)) {
        words.push(format!("range {}", text(snap, range.text)));
    }
    words.join(", ")
}

fn kernel(snap: &Snapshot, id: KernelId) -> String {
    let known = snap.names.kernel(id);
    known.map_or_else(|| "?".into(), |known| known.short.to_string())
}

fn text(snap: &Snapshot, id: TextId) -> String {
    snap.names.text(id).to_owned()
}

/// What the last rank of a collective did while the others waited: the call, kernel and range that took most of the time.
pub fn instead(snap: &Snapshot, collective: &Collective, times: &Times) -> String {
    let Some(part) = collective.latest(times) else {
        return String::new();
    };
    // The part's own clock: its call is the end of what it did.
    let end = part
        .kernel
        .filter(|_| times.by_kernel)
        .map_or(part.call.start, |kernel| kernel.begin);
    let span = Span {
        begin: end.saturating_sub(times.skew()),
        end,
    };
    let own = part.kernel.map(|kernel| kernel.begin);
    during(snap, part.call.process, part.call.thread, span, own).join(", ")
}

/// What a thread of a process did in a span: the call, kernel and range that took most of the time. The kernel that begins
/// at `own` is left out.
pub(crate) fn during(
    snap: &Snapshot,
    process: ProcessId,
    thread: ThreadId,
    span: Span,
    own: Option<Nanos>,
) -> Vec<String> {
    let host = host::of_thread(snap, thread, span);
    let mut words = vec![host::doing(snap, &host, span)];
    let mut longest = None;
    for lane in snap
        .lanes
        .iter()
        .filter(|lane| matches!(lane.key, LaneKey::Queue(..) | LaneKey::Stream(..)))
    {
        for slice in lane.slices(span.begin, span.end, MAX_RANGES).unwrap_or_default() {
            let is_own = own == Some(slice.span.begin);
            let within = slice
                .span
                .end
                .min(span.end)
                .saturating_sub(slice.span.begin.max(span.begin));
            if slice.process == process.0
                && !is_own
                && within > longest.map_or(span.duration() / 2, |known: (u64, u32)| known.0)
            {
                longest = Some((within, slice.what));
            }
        }
    }
    if let Some((_, what)) = longest {
        words.push(format!("kernel {}", kernel(snap, KernelId(what))));
    }
    let range = (0..MAX_LEVELS).rev().find_map(|level| {
        let lane = snap.lane(LaneKey::Markers(thread, level))?;
        let slices = lane.slices(span.begin, span.end, MAX_RANGES)?;
        let longest = slices
            .into_iter()
            .filter(|slice| slice.shape == 0)
            .max_by_key(|slice| {
                slice
                    .span
                    .end
                    .min(span.end)
                    .saturating_sub(slice.span.begin.max(span.begin))
            })?;
        let within = longest
            .span
            .end
            .min(span.end)
            .saturating_sub(longest.span.begin.max(span.begin));
        (within > span.duration() / 2).then_some(TextId(longest.what))
    });
    if let Some(range) = range {
        words.push(format!("range {}", text(snap, range)));
    }
    words
}

/// Ranks as text: `3`, `1, 2`, `1, 2 and 61 more`.
fn ranks(list: &[u32]) -> String {
    const SHOWN: usize = 4;
    let some: Vec<_> = list.iter().take(SHOWN).map(ToString::to_string).collect();
    match list.len() {
        0..=SHOWN => some.join(", "),
        all => format!("{} and {} more", some.join(", "), all - SHOWN),
    }
}

/// Who is missing: `rank 3 has not come to AllReduce #640 of comm 2`.
pub fn missing(snap: &Snapshot, waiting: &Waiting) -> String {
    let of = |kind: Absence| {
        let found = waiting.missing.iter().filter(|missing| missing.2 == kind);
        found.map(|missing| missing.0).collect::<Vec<_>>()
    };
    let label = label(waiting.key, waiting.operation);
    let verb = if snap.is_running() {
        "has not come to"
    } else {
        "never came to"
    };
    let plural = |list: &[u32]| if list.len() == 1 { "rank" } else { "ranks" };
    let absent = of(Absence::Absent);
    if !absent.is_empty() {
        let verb = if absent.len() > 1 {
            verb.replace("has ", "have ")
        } else {
            verb.into()
        };
        return format!("{} {} {verb} {label}", plural(&absent), ranks(&absent));
    }
    let lost = of(Absence::Lost);
    if !lost.is_empty() {
        return format!("{label}: records of {} {} are lost", plural(&lost), ranks(&lost));
    }
    let others = of(Absence::Unrecorded);
    format!("{label}: {} {} not recorded", plural(&others), ranks(&others))
}

/// Who is missing, in fewer words: `AllReduce #640 of comm 2: no rank 3`; none if that is not shorter.
pub fn missing_short(waiting: &Waiting) -> Option<String> {
    let absent = waiting.missing.iter().filter(|missing| missing.2 == Absence::Absent);
    let absent: Vec<u32> = absent.map(|missing| missing.0).collect();
    let label = label(waiting.key, waiting.operation);
    (!absent.is_empty()).then(|| {
        let plural = if absent.len() == 1 { "rank" } else { "ranks" };
        format!("{label}: no {plural} {}", ranks(&absent))
    })
}

/// A problem in fewer words; none if there are none.
pub fn problem_short(problem: &Problem) -> Option<String> {
    match problem {
        Problem::Count {
            key,
            operation,
            rank,
            count,
            others,
        } => Some(format!(
            "{}: rank {rank} has {count}, others {others}",
            label(*key, *operation)
        )),
        _ => None,
    }
}

/// A problem as a sentence.
pub fn problem(snap: &Snapshot, problem: &Problem) -> String {
    let pid = |process: ProcessId| {
        let row = snap.values.processes.get(process.0 as usize);
        row.map_or_else(|| "?".into(), |row| row.process.pid.to_string())
    };
    let kind = |datatype: Datatype| {
        let name = datatype.name().map(ToOwned::to_owned);
        name.unwrap_or_else(|| format!("type {}", datatype.0))
    };
    match problem {
        Problem::Operation {
            key,
            rank,
            called,
            others,
        } => format!("rank {rank} called {} as {}", called.name(), label(*key, *others)),
        Problem::Count {
            key,
            operation,
            rank,
            count,
            others,
        } => format!(
            "rank {rank} passed {count} elements to {}, others {others}",
            label(*key, *operation)
        ),
        Problem::Type {
            key,
            operation,
            rank,
            datatype,
            others,
        } => format!(
            "rank {rank} passed {} to {}, others {}",
            kind(*datatype),
            label(*key, *operation),
            kind(*others)
        ),
        Problem::Arguments { key, operation, rank } => {
            format!(
                "rank {rank} passed another root or reduction to {}",
                label(*key, *operation)
            )
        }
        Problem::Twice {
            communicator,
            rank,
            process,
        } => format!(
            "rank {rank} of comm {communicator} is there twice: pid {} is not counted",
            pid(*process)
        ),
        Problem::Size { communicator, process } => format!(
            "pid {} has another size or rank for comm {communicator}: it is not counted",
            pid(*process)
        ),
        Problem::Unknown { communicator, process } => format!(
            "pid {} uses comm {communicator}, whose creation was not recorded: nothing is matched",
            pid(*process)
        ),
        Problem::Abandoned { key, operation, rank } => {
            format!("rank {rank} gave up {}, which is not complete", label(*key, *operation))
        }
    }
}

/// The clocks' error as text; none where it is unknown.
pub fn error(nanos: u64) -> String {
    match nanos {
        u64::MAX => "unknown".into(),
        nanos => units::duration(nanos),
    }
}

/// How often a rank came last: `rank 3, 62 %`.
pub fn last(row: &OperationRow) -> Option<String> {
    let (rank, count) = row.latest()?;
    Some(format!(
        "{rank} {} %",
        units::percent(count as f64 / row.count.max(1) as f64)
    ))
}

/// What a rank did instead of coming, the last time that it came last: `; meanwhile it was in hipMemcpy, range halo`.
fn late_words(snap: &Snapshot, row: &OperationRow, rank: u32) -> String {
    let recent = snap.values.collectives.recent.iter().rev();
    let mut own = recent.filter(|(collective, times)| {
        let operation = collective.parts.first().map(|part| part.call.operation);
        let is_of_row = (collective.key.communicator, operation) == (row.communicator, Some(row.operation));
        is_of_row && collective.latest(times).is_some_and(|part| part.rank == rank)
    });
    let doing = own.next().map(|(collective, times)| instead(snap, collective, times));
    doing.map_or_else(String::new, |doing| format!("; meanwhile it was {doing}"))
}

/// Alerts about collectives.
pub(super) fn alerts(snap: &Snapshot, out: &mut Vec<Alert>) {
    let found = &snap.values.collectives;
    let is_late = |waiting: &&Waiting| snap.now.saturating_sub(waiting.since) > snap.thresholds.absent;
    let absent = |waiting: &&Waiting| waiting.missing.iter().any(|missing| missing.2 == Absence::Absent);
    for waiting in found.waiting.iter().filter(is_late).filter(absent).take(MAX_ALERTS) {
        let age = snap.now.saturating_sub(waiting.since);
        let first = waiting.missing.iter().find(|missing| missing.2 == Absence::Absent);
        let doing = first
            .and_then(|missing| missing.1)
            .map(|process| doing_now(snap, process));
        out.push(Alert {
            rule: Rule::Absent,
            about: waiting.key.communicator,
            text: missing(snap, waiting),
            why: format!(
                "{} since {}; {}",
                units::counted(waiting.came.len() as u64, "rank waits", "ranks wait"),
                units::duration(age),
                doing.unwrap_or_default()
            ),
            weight: age as f64,
            cost: None,
            evidence: Evidence::Collective(waiting.key),
        });
    }
    for (about, one) in (0..).zip(&found.problems).take(MAX_ALERTS) {
        out.push(Alert {
            rule: Rule::Mismatch,
            about,
            text: problem(snap, one),
            why: "the ranks must call the same collectives in the same order with the same arguments".into(),
            weight: 1.0,
            cost: None,
            evidence: one.key().map_or(Evidence::Collectives, Evidence::Collective),
        });
    }
    for row in found.operations.iter().filter(|row| row.count >= MIN_COLLECTIVES) {
        let Some((rank, count)) = row.latest() else { continue };
        let share = count as f64 / row.count as f64;
        let lost = row.skew as f64 / (row.skew + row.transfer).max(1) as f64;
        if share < snap.thresholds.straggler || lost < snap.thresholds.waiting {
            continue;
        }
        out.push(Alert {
            rule: Rule::Straggler,
            about: row.communicator << 8 | row.operation as u32,
            text: format!(
                "rank {rank} comes last to {} % of {} of comm {}",
                units::percent(share),
                row.operation.name(),
                row.communicator
            ),
            why: format!(
                "skew {} on average, {} % of the time of these collectives{}; reported beyond {} % last and {} % of the time",
                units::duration(row.mean_skew()),
                units::percent(lost),
                late_words(snap, row, rank),
                units::percent(snap.thresholds.straggler),
                units::percent(snap.thresholds.waiting)
            ),
            weight: lost,
            cost: None,
            evidence: Evidence::Collectives,
        });
    }
}
