//! Rules: each looks for one kind of problem.

use roctop_ring::record::{Domain, direction};

use super::alert::{Alert, Evidence, Rule};
use super::host;
use super::usage::{Usage, has_kernels};
use crate::names::Class;
use crate::table::CLASSES;
use crate::{LaneKey, Slice, Snapshot};
use roctop_trace::item::{KernelId, Nanos, OperationId, ProcessId, Span, ThreadId};
use roctop_trace::units;

/// Number of slices per lane that are inspected for this many lanes.
fn each(lanes: usize) -> usize {
    (super::MAX_SLICES / lanes.max(1)).max(500)
}

/// Maximum number of alerts per rule.
const MAX_ALERTS_PER_RULE: usize = 5;

/// Alerts for a span, most severe first.
pub fn alerts(snap: &Snapshot, stretch: Span, usage: &[Usage]) -> Vec<Alert> {
    let mut out = Vec::new();
    faults(snap, &mut out);
    lost(snap, &mut out);
    failed(snap, &mut out);
    hang(snap, &mut out);
    super::collectives::alerts(snap, &mut out);
    for row in usage {
        idle(snap, row, &mut out);
        launch(snap, row, &mut out);
    }
    sync(snap, stretch, &mut out);
    outliers(snap, &mut out);
    slow_copies(snap, &mut out);
    growth(snap, &mut out);
    placed(snap, &mut out);
    // Errors first, then by what they cost.
    let rank = |alert: &Alert| (alert.rule.is_bad(), alert.cost.unwrap_or(0.0), alert.weight);
    out.sort_by(|a, b| {
        let ((bad_a, cost_a, a), (bad_b, cost_b, b)) = (rank(a), rank(b));
        bad_b.cmp(&bad_a).then(cost_b.total_cmp(&cost_a)).then(b.total_cmp(&a))
    });
    out
}

fn faults(snap: &Snapshot, out: &mut Vec<Alert>) {
    for (at, fault) in snap.faults.iter().enumerate() {
        out.push(Alert {
            rule: Rule::Recording,
            about: at as u32,
            text: fault.text.to_string(),
            why: "what could be read is shown".into(),
            weight: f64::MAX,
            cost: None,
            evidence: Evidence::Process(ProcessId(0)),
        });
    }
}

fn lost(snap: &Snapshot, out: &mut Vec<Alert>) {
    for row in snap.values.processes.iter().filter(|row| row.lost_total().is_any()) {
        let lost = row.lost_total();
        let reasons: Vec<&str> = row.losses().map(|(reason, _)| reason.phrase()).collect();
        let count = match (lost.records, lost.is_least) {
            (0, true) => "an unknown number of records".into(),
            (records, true) => format!("≥ {}", units::counted(records, "record", "records")),
            (records, false) => units::counted(records, "record", "records"),
        };
        let of = if row.losses().all(|(reason, _)| reason.is_of_recording()) {
            "the recording".into()
        } else {
            format!("pid {}", row.process.pid)
        };
        out.push(Alert {
            rule: Rule::Lost,
            about: row.process.id.0,
            text: format!("{count} of {of} lost"),
            why: format!("{}; counts and totals are lower bounds", reasons.join("; ")),
            weight: lost.records as f64,
            cost: None,
            evidence: Evidence::Process(row.process.id),
        });
    }
}

/// Ranks that share a GPU, are far from theirs, or are crowded: known once kernels ran.
fn placed(snap: &Snapshot, out: &mut Vec<Alert>) {
    let of = &snap.values.bindings;
    let is_simple = |id| {
        of.of(id)
            .and_then(|bound| bound.node.as_ref())
            .is_none_or(|node| node.numa.len() < 2)
    };
    let processes = &snap.values.processes;
    if of.is_empty() || processes.len() < 2 && processes.iter().all(|row| is_simple(row.process.id)) {
        return;
    }
    let places = super::placement::places(snap);
    for verdict in super::placement::verdicts(&places)
        .into_iter()
        .take(MAX_ALERTS_PER_RULE)
    {
        let pid = verdict.of.first().and_then(|at| places.get(*at)).map(|place| place.pid);
        let process = processes.iter().find(|row| Some(row.process.pid) == pid);
        let process = process.map_or(ProcessId(0), |row| row.process.id);
        out.push(Alert {
            rule: Rule::Placement,
            about: process.0 << 2 | verdict.kind as u32,
            text: verdict.text,
            why: verdict.remedy.map_or_else(
                || "ask 'placement' has each process".into(),
                |line| format!("try: {line}"),
            ),
            weight: verdict.of.len() as f64,
            cost: None,
            evidence: Evidence::Process(process),
        });
    }
}

fn failed(snap: &Snapshot, out: &mut Vec<Alert>) {
    let mut rows: Vec<_> = snap.values.api.iter().filter(|row| row.errors > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.errors));
    let most = each(
        snap.lanes
            .iter()
            .filter(|lane| matches!(lane.key, LaneKey::Api(..)))
            .count(),
    );
    for row in rows.into_iter().take(MAX_ALERTS_PER_RULE) {
        let name = snap.names.operation(row.id).map_or("?", |name| &name.operation.name);
        let lanes = snap.lanes.iter().filter(|lane| matches!(lane.key, LaneKey::Api(..)));
        let last = lanes.filter_map(|lane| {
            let found = lane
                .recent(most)
                .find(|call| call.what == row.id.0 && call.shape != 0)?;
            Some((lane.key, found.span.begin))
        });
        let last = last.max_by_key(|found| found.1);
        out.push(Alert {
            rule: Rule::Failed,
            about: row.id.0,
            text: format!(
                "{name} failed {}×, last with {}",
                units::count(row.errors),
                snap.names.error_label(row.id, row.last_error)
            ),
            why: "the call returned an error code".into(),
            weight: row.errors as f64,
            cost: None,
            evidence: last.map_or(Evidence::Operation(row.id), |(key, begin)| Evidence::Slice(key, begin)),
        });
    }
}

fn hang(snap: &Snapshot, out: &mut Vec<Alert>) {
    if !snap.is_running() {
        return;
    }
    let mut oldest: Option<(Nanos, String)> = None;
    let mut offer = |begin: Nanos, text: &dyn Fn() -> String| {
        let age = snap.now.saturating_sub(begin);
        if begin > 0 && age > snap.thresholds.hang && oldest.as_ref().is_none_or(|old| old.0 > begin) {
            oldest = Some((begin, text()));
        }
    };
    for open in &snap.open {
        for dispatch in &open.dispatches {
            offer(dispatch.submit, &|| {
                let name = snap.names.kernel(dispatch.kernel).map_or("?", |name| &name.short);
                format!("{name} on {}", snap.names.agent_label(dispatch.agent))
            });
        }
        for call in &open.calls {
            offer(call.span.begin, &|| {
                let name = snap
                    .names
                    .operation(call.operation)
                    .map_or("?", |name| &name.operation.name);
                format!("{name} of {}", snap.names.thread_label(call.thread))
            });
        }
    }
    if let Some((begin, text)) = oldest {
        let age = snap.now.saturating_sub(begin);
        out.push(Alert {
            rule: Rule::Hang,
            about: 0,
            text: format!("open for {}: {text}", units::duration(age)),
            why: format!(
                "reported when open for longer than {}",
                units::duration(snap.thresholds.hang)
            ),
            weight: age as f64,
            cost: None,
            evidence: Evidence::Open,
        });
    }
}

fn idle(snap: &Snapshot, row: &Usage, out: &mut Vec<Alert>) {
    // Records were not counted from the first on: less than a window says nothing about the program.
    let counted = snap.now.saturating_sub(snap.values.counted_from);
    if snap.values.counted_from > 0 && snap.is_running() && counted <= snap.values.window {
        return;
    }
    let (name, limits) = (snap.names.agent_label(row.agent), &snap.thresholds);
    let lane = LaneKey::Agent(row.agent);
    let share = row.share(row.idle);
    let Some(longest) = row.gaps.first() else { return };
    let host = longest.host(snap);
    let doing = host::doing(snap, &host, longest.span);
    let at = units::timestamp_short(longest.span.begin.saturating_sub(snap.origin));
    if share > limits.idle {
        out.push(Alert {
            rule: Rule::Idle,
            about: row.agent.0,
            text: format!(
                "{name} idle {}{} % of the last {}, {}",
                if row.is_estimated { "≈" } else { "" },
                units::percent(share),
                units::duration(row.stretch.duration()),
                units::counted(row.gap_count, "gap", "gaps")
            ),
            why: format!(
                "neither kernel nor copy for more than {} % of {}; no kernel because: {}",
                units::percent(limits.idle),
                units::duration(row.stretch.duration()),
                row.verdict.words(snap).join(", ")
            ),
            weight: share,
            cost: Some(share * 1000.0),
            evidence: Evidence::Stretch(lane, longest.span),
        });
    }
    if longest.span.duration() > limits.long_gap {
        out.push(Alert {
            rule: Rule::Gap,
            about: row.agent.0,
            text: format!(
                "{name} gap of {} at {at}, host {doing}",
                units::duration(longest.span.duration())
            ),
            why: format!(
                "{}; the longest, reported beyond {}",
                row.verdict_of(longest.span)
                    .map_or_else(String::new, |verdict| verdict.words(snap).join(", ")),
                units::duration(limits.long_gap)
            ),
            weight: row.share(longest.span.duration()),
            cost: Some(row.share(longest.span.duration()) * 1000.0),
            evidence: Evidence::Stretch(lane, longest.span),
        });
    }
}

fn launch(snap: &Snapshot, row: &Usage, out: &mut Vec<Alert>) {
    let (name, limits) = (snap.names.agent_label(row.agent), &snap.thresholds);
    let share = row.starving_share();
    let stretch = Evidence::Stretch(LaneKey::Agent(row.agent), row.stretch);
    let evidence = || greatest_kernel(snap, row.agent).map_or(stretch, Evidence::Kernel);
    if share > limits.launch {
        out.push(Alert {
            rule: Rule::Launch,
            about: row.agent.0,
            text: format!(
                "{name} waits for launches {} %, {} of {} kernels",
                units::percent(share),
                units::count(row.starved),
                units::count(row.kernels)
            ),
            why: format!(
                "submitted only when the stream had run dry; reported beyond {} % of the time",
                units::percent(limits.launch)
            ),
            weight: share,
            cost: Some(share * 1000.0),
            evidence: evidence(),
        });
    }
    let shorts = row.short as f64 / row.kernels.max(1) as f64;
    if row.kernels >= 100 && shorts > limits.shorts {
        out.push(Alert {
            rule: Rule::Short,
            about: row.agent.0,
            text: format!(
                "{name}: {} % of {} kernels shorter than {}",
                units::percent(shorts),
                units::count(row.kernels),
                units::duration(limits.short)
            ),
            why: format!(
                "each costs a launch; reported beyond {} % of the kernels",
                units::percent(limits.shorts)
            ),
            weight: shorts / 2.0,
            cost: None,
            evidence: evidence(),
        });
    }
}

/// The kernel with most launches on a GPU.
fn greatest_kernel(snap: &Snapshot, agent: roctop_trace::item::AgentId) -> Option<KernelId> {
    let calls = |row: &crate::snapshot::KernelRow| {
        let here = row.numbers.cells.iter().filter(|cell| {
            let place = snap.values.placement(cell);
            place.is_some_and(|place| place.agent == agent)
        });
        here.map(|cell| cell.sum.calls).sum::<u64>()
    };
    let rows = snap.values.kernels.iter().filter(|row| !snap.names.is_internal(row.id));
    rows.max_by_key(|row| calls(row)).map(|row| row.id)
}

fn sync(snap: &Snapshot, stretch: Span, out: &mut Vec<Alert>) {
    let most = each(
        snap.lanes
            .iter()
            .filter(|lane| matches!(lane.key, LaneKey::Api(..)))
            .count(),
    );
    for lane in snap.lanes.iter() {
        let LaneKey::Api(thread, 0) = lane.key else { continue };
        let blocks = |what: u32| snap.names.blocks(OperationId(what));
        // Time in each function that waits, and its longest call.
        let mut waits: Vec<(u64, Slice)> = Vec::new();
        // From the latest slice backwards, to the begin of the span or the maximum number of slices.
        let (mut looked, mut since) = (0, stretch.begin);
        for call in lane.recent(most).take_while(|call| call.span.end >= stretch.begin) {
            looked += 1;
            if looked == most {
                since = since.max(call.span.begin);
            }
            if !blocks(call.what) {
                continue;
            }
            let nanos = super::usage::clip(call.span, stretch).map_or(0, Span::duration);
            match waits.iter_mut().find(|known| known.1.what == call.what) {
                Some(known) => {
                    known.0 = known.0.saturating_add(nanos);
                    if known.1.span.duration() < call.span.duration() {
                        known.1 = *call;
                    }
                }
                None => waits.push((nanos, *call)),
            }
        }
        let waited = waits.iter().fold(0u64, |sum, known| sum.saturating_add(known.0));
        let looked_at = stretch.end.saturating_sub(since);
        let share = waited as f64 / looked_at.max(1) as f64;
        let most_waited = waits.into_iter().max_by_key(|known| known.0);
        let Some((_, longest)) = most_waited.filter(|_| share > snap.thresholds.sync) else {
            continue;
        };
        let name = snap
            .names
            .operation(OperationId(longest.what))
            .map_or("?", |name| &name.operation.name);
        let waiter = ThreadId(longest.thread.min(thread.0));
        let waiter = match snap.names.thread(waiter) {
            Some(thread) if !thread.name.is_empty() => format!("{} ({})", thread.name, thread.tid),
            _ => snap.names.thread_label(waiter),
        };
        out.push(Alert {
            rule: Rule::Sync,
            about: thread.0,
            text: format!(
                "thread {waiter}: {} % of time waiting, mostly in {name}",
                units::percent(share)
            ),
            why: format!(
                "of the last {} in calls that wait for the GPU; reported beyond {} %",
                units::duration(looked_at),
                units::percent(snap.thresholds.sync)
            ),
            weight: share / 2.0,
            cost: Some(share * 1000.0),
            evidence: Evidence::Slice(lane.key, longest.span.begin),
        });
    }
}

fn outliers(snap: &Snapshot, out: &mut Vec<Alert>) {
    let mut found = Vec::new();
    for row in &*snap.values.kernels {
        let stat = &row.numbers.stat;
        let Some(median) = stat.quantiles.p50.filter(|&median| median > 0) else {
            continue;
        };
        let times = stat.max as f64 / median as f64;
        // Durations of short kernels vary by nature.
        if times > snap.thresholds.outlier && stat.max > 100_000 && !snap.names.is_internal(row.id) {
            found.push((times, row.id, stat.max));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most = each(snap.lanes.iter().filter(|lane| has_kernels(lane.key)).count());
    for (times, id, max) in found.into_iter().take(MAX_ALERTS_PER_RULE) {
        let lanes = snap.lanes.iter().filter(|lane| has_kernels(lane.key));
        let longest = lanes.filter_map(|lane| {
            let own = lane.recent(most).filter(|slice| slice.what == id.0);
            Some((lane.key, *own.max_by_key(|slice| slice.span.duration())?))
        });
        let longest = longest.max_by_key(|(_, slice)| slice.span.duration());
        let is_kept = |slice: &Slice| slice.span.duration() == max;
        let name = snap.names.kernel(id).map_or("?", |name| &name.short);
        out.push(Alert {
            rule: Rule::Outlier,
            about: id.0,
            text: format!(
                "{}: longest {} is {times:.0}× its median",
                units::elide(name, 40),
                units::duration(max)
            ),
            why: format!("reported beyond {:.0}× the median", snap.thresholds.outlier),
            weight: 0.1 + times.log10() / 100.0,
            cost: None,
            evidence: longest
                .filter(|(_, slice)| is_kept(slice))
                .map_or(Evidence::Kernel(id), |(key, slice)| {
                    Evidence::Slice(key, slice.span.begin)
                }),
        });
    }
}

fn slow_copies(snap: &Snapshot, out: &mut Vec<Alert>) {
    for (at, row) in snap.values.copies.iter().enumerate() {
        // Size classes from 1 MiB on.
        let large = row
            .classes
            .iter()
            .enumerate()
            .filter(|(class, _)| *class > 0 && CLASSES[class - 1] >= 1 << 20);
        let (count, bytes, nanos) = large.fold((0u64, 0u64, 0u64), |sum, (_, class)| {
            (
                sum.0 + class.0,
                sum.1.saturating_add(class.1),
                sum.2.saturating_add(class.2),
            )
        });
        if count < 5 || nanos == 0 {
            continue;
        }
        let speed = bytes as f64 * 1e9 / nanos as f64;
        if speed < snap.thresholds.slow_copy {
            let route = row.route;
            let at_threshold = bytes as f64 * 1e9 / snap.thresholds.slow_copy;
            let excess = (nanos as f64 - at_threshold).max(0.0) / snap.elapsed().max(1) as f64;
            out.push(Alert {
                rule: Rule::SlowCopy,
                about: at as u32,
                text: format!(
                    "{} {}: large copies at {}",
                    direction::name(route.direction),
                    snap.names.route_label(route.source, route.destination),
                    units::bandwidth(speed)
                ),
                why: format!(
                    "copies of 1 MiB and more; reported below {}: pageable memory, or a busy link",
                    units::bandwidth(snap.thresholds.slow_copy)
                ),
                weight: 0.2,
                cost: Some(excess * 1000.0),
                evidence: Evidence::Route(at as u32),
            });
        }
    }
}

/// Seconds in which memory must grow, and the parts into which they are divided.
const GROWTH_SECONDS: usize = 60;
const MIN_GROWTH_SECONDS: usize = 30;
const GROWTH_PARTS: usize = 5;
/// Growth that is reported: bytes, and share of the memory held.
const MIN_GROWTH: f64 = (1u64 << 20) as f64;
const MIN_GROWTH_SHARE: f64 = 0.01;

/// Memory of which the least in each part of the last minute is more than in the part before.
fn growth(snap: &Snapshot, out: &mut Vec<Alert>) {
    let memory = &snap.values.memory;
    for (at, (pool, held)) in memory.pools.iter().zip(&memory.trends).enumerate() {
        // Nothing is recorded while nothing is allocated or freed.
        let mut last = None;
        let held = held.last(snap.now, GROWTH_SECONDS).into_iter();
        let held: Vec<f64> = held
            .filter_map(|value| {
                last = value.or(last);
                last
            })
            .collect();
        if held.len() < MIN_GROWTH_SECONDS {
            continue;
        }
        let parts = held.chunks(held.len().div_ceil(GROWTH_PARTS));
        let least: Vec<f64> = parts
            .map(|part| part.iter().copied().fold(f64::MAX, f64::min))
            .collect();
        let grows = least.len() == GROWTH_PARTS && least.windows(2).all(|pair| pair[0] < pair[1]);
        let growth = least.last().copied().unwrap_or(0.0) - least[0];
        if !grows || growth < MIN_GROWTH.max(MIN_GROWTH_SHARE * pool.held as f64) {
            continue;
        }
        let place = pool
            .agent
            .map_or_else(String::new, |agent| snap.names.agent_label(agent));
        let grown = held.last().copied().unwrap_or(0.0) - held[0];
        let seconds = held.len() as f64;
        out.push(Alert {
            rule: Rule::Growth,
            about: at as u32,
            text: format!(
                "{place} memory grows by {}/s: {} more in {seconds:.0} s, {} held",
                units::bytes((grown / seconds) as u64),
                units::bytes(grown as u64),
                units::bytes(pool.held)
            ),
            why: format!("the least held in each fifth of the last {seconds:.0} s exceeds that of the fifth before"),
            weight: growth / pool.held.max(1) as f64,
            cost: None,
            evidence: Evidence::Process(pool.process),
        });
    }
}

/// Whether an operation launches kernels.
pub fn launches(snap: &Snapshot, id: OperationId) -> bool {
    snap.names
        .operation(id)
        .is_some_and(|name| name.class == Class::Launch && name.operation.domain == Domain::HIP.0)
}

#[cfg(test)]
mod tests;
