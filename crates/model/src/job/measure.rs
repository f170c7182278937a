//! The sums of a rank, from what its screen shows.

use super::report::RankReport;
use super::sums::{
    AlertSums, ArrivalSums, CommunicatorPart, HostSums, KernelSums, MAX_ALERTS, MAX_ARRIVALS, MAX_COMMUNICATORS,
    MAX_KERNELS, MAX_NAME, MAX_TEXT, PendingPart, RankSums, Readings, StepSums, cut, name_id,
};
use crate::Snapshot;
use crate::analysis::collectives::{doing_now, during};
use crate::analysis::placement::{self, Place};
use crate::analysis::steps::{self, Source};
use crate::analysis::usage;
use crate::collectives::{Arrival, is_mutual};
use crate::fx_hash::FastMap;
use crate::report::mpi::time_of;
use crate::snapshot::ProcessRow;
use roctop_ring::record::engine;
use roctop_trace::item::{AgentId, AgentKind, Exit, Nanos, ProcessId, Span, ThreadId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Records of the last moment are not all there: windows end this long before the snapshot, ns.
const LAG: u64 = 100_000_000;
/// Minimum length of a window, ns.
const MIN_WINDOW: u64 = 200_000_000;
/// Age from which on what a rank does is reported, ns.
const LONG: u64 = 1_000_000_000;
/// Time from one report of where a rank runs to the next, ns.
const PLACE_INTERVAL: u64 = 5_000_000_000;
/// Time after which the source of steps is looked for again, ns.
const SOURCE_AGE: u64 = 10_000_000_000;

/// What the records of a rank do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Number of ranks of the job; 0 unknown.
    pub size: u32,
    /// Rank on the node of the session's first rank; the others follow.
    pub local: u32,
}

/// What was measured of a process before: sums are differences to it.
#[derive(Clone, Debug, Default)]
struct Previous {
    end: Nanos,
    /// (count, total) by kernel.
    kernels: FastMap<u32, (u64, u64)>,
    copying: u64,
    collectives: (u64, u64, u64),
    blocked: u64,
    mpi: u64,
    /// Number of the last arrival.
    arrival: u64,
    /// End of the last step.
    step: Nanos,
    source: Option<(Source, Nanos)>,
    /// When it was reported where it runs.
    placed: Option<Nanos>,
    /// The process had ended.
    is_over: bool,
}

/// Makes the sums of the ranks of a session.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    placement: Placement,
    previous: FastMap<u32, Previous>,
}

impl Measure {
    /// For the ranks of a session, which are placed there.
    pub fn new(placement: Placement) -> Self {
        Self {
            placement,
            ..Self::default()
        }
    }

    /// The sums of each rank since the last call, from a snapshot whose values are new. A rank whose window would be too
    /// short is left out, and one whose process has ended reports that once. Of several processes with one rank, the one with the most records is it.
    ///
    /// Times by the clock (busy, steps, arrivals) are of the window, which ends 0.1 s before the snapshot. Sums of
    /// tables (kernels, copies, collectives) are of the records that came since the last call.
    pub fn reports(&mut self, snap: &Snapshot) -> Vec<RankReport> {
        let mut ranks: BTreeMap<u32, &ProcessRow> = BTreeMap::new();
        for row in &snap.values.processes {
            let Some(rank) = row.process.rank else { continue };
            let known = ranks.entry(rank).or_insert(row);
            if row.records > known.records {
                *known = row;
            }
        }
        let mut all = Vec::new();
        for (at, (rank, row)) in (0..).zip(ranks) {
            let process = row.process.id;
            let mut previous = self.previous.remove(&process.0).unwrap_or_default();
            let since = previous.end.max(row.process.since);
            // The last report is of all that is left, however short that is.
            let (end, least) = match row.exit {
                Some((_, at)) => (at.max(since + 1), 1),
                None => (snap.values.at.saturating_sub(LAG), MIN_WINDOW),
            };
            if end >= since.saturating_add(least) && !previous.is_over {
                let window = Span { begin: since, end };
                let mut report = self.report(snap, row, window, &mut previous);
                report.sums.rank = rank;
                report.sums.local = self.placement.local + at;
                if at == 0 {
                    report.sums.alerts = alerts(snap);
                }
                all.push(report);
                previous.end = end;
                previous.is_over = row.exit.is_some();
            }
            self.previous.insert(process.0, previous);
        }
        all
    }

    fn report(&self, snap: &Snapshot, row: &ProcessRow, window: Span, previous: &mut Previous) -> RankReport {
        let process = row.process.id;
        let mut names = Vec::new();
        let gpus = gpus(snap, process);
        let busiest = gpus.iter().max_by_key(|gpu| gpu.1).map(|gpu| gpu.0);
        let (kernels, kernel_time) = kernels(snap, process, previous, &mut names);
        let copies: u64 = copy_time(snap, &gpus);
        let mut inside = snap.values.collectives.inside.iter();
        let inside = inside
            .find(|inside| inside.process == process)
            .map(|inside| (inside.count, inside.total, inside.kernels))
            .unwrap_or_default();
        let earlier = std::mem::replace(&mut previous.collectives, inside);
        let before = before(snap, process, window, previous.arrival);
        let mpi = time_of(snap, process);
        let sums = RankSums {
            size: self.placement.size,
            pid: row.process.pid,
            gpu: busiest.and_then(|gpu| number(snap, gpu)),
            begin: window.begin,
            length: window.duration(),
            steps: step_sums(snap, process, window, previous),
            busy: busy(snap, row, &gpus, window),
            kernel_time,
            copying: copies.saturating_sub(std::mem::replace(&mut previous.copying, copies)),
            collectives: inside.0.saturating_sub(earlier.0) as u32,
            inside: inside.1.saturating_sub(earlier.1),
            inside_kernels: inside.2.saturating_sub(earlier.2),
            mpi: mpi.saturating_sub(std::mem::replace(&mut previous.mpi, mpi)),
            kernels,
            communicators: communicators(snap, process, window, previous),
            gauges: busiest.and_then(|gpu| readings(snap, gpu)),
            host: host(snap, process, window, previous),
            lost: row.lost.iter().filter(|loss| loss.1 > 0).take(16).copied().collect(),
            before,
            doing: doing(snap, row),
            exit: row.exit.map(|(exit, _)| match exit {
                Exit::Code(code) => code,
                Exit::Signal(signal) => -signal,
                Exit::Unknown => i32::MIN,
            }),
            ..RankSums::default()
        };
        let place = place(snap, row, previous);
        RankReport { sums, names, place }
    }
}

/// Where a process runs, if that is due.
fn place(snap: &Snapshot, row: &ProcessRow, previous: &mut Previous) -> Option<Box<Place>> {
    let is_due = |at: Nanos| snap.now.saturating_sub(at) >= PLACE_INTERVAL || row.exit.is_some();
    if snap.values.bindings.is_empty() || !previous.placed.is_none_or(is_due) {
        return None;
    }
    let mut places = placement::places(snap).into_iter();
    let place = places.find(|place| place.pid == row.process.pid)?;
    previous.placed = Some(snap.now);
    Some(Box::new(place.shortened()))
}

/// GPUs with work of a process, and their numbers of dispatches.
fn gpus(snap: &Snapshot, process: ProcessId) -> Vec<(AgentId, u64)> {
    let rows = snap.values.agents.iter().filter(|row| row.dispatches > 0);
    let own = rows.filter(|row| {
        let agent = snap.names.agent(row.id);
        agent.is_some_and(|agent| agent.process == process && agent.kind != AgentKind::Cpu)
    });
    own.map(|row| (row.id, row.dispatches)).collect()
}

fn number(snap: &Snapshot, gpu: AgentId) -> Option<u32> {
    let agent = snap.names.agent(gpu)?;
    Some(snap.names.gpu_number(snap.names.node_of(agent)).unwrap_or(agent.number))
}

/// Mean time with a kernel over the GPUs, complete or not.
fn busy(snap: &Snapshot, row: &ProcessRow, gpus: &[(AgentId, u64)], window: Span) -> u64 {
    let of = |gpu: AgentId| {
        let ended = usage::busy(snap, gpu, window.begin, window.end);
        let open = row.open.dispatches.iter();
        let since = open
            .filter(|dispatch| dispatch.agent == gpu && dispatch.submit > 0 && row.exit.is_none())
            .map(|dispatch| dispatch.submit)
            .min();
        let last = snap.lane(crate::LaneKey::Agent(gpu)).map_or(0, |lane| lane.last);
        let runs = since.map_or(0, |since| window.end.saturating_sub(since.max(last).max(window.begin)));
        ended.saturating_add(runs).min(window.duration())
    };
    let total: u64 = gpus.iter().map(|gpu| of(gpu.0)).sum();
    total / gpus.len().max(1) as u64
}

/// The kernels with the most time since the last call, and the time of all.
fn kernels(
    snap: &Snapshot,
    process: ProcessId,
    previous: &mut Previous,
    names: &mut Vec<(u64, String)>,
) -> (Vec<KernelSums>, u64) {
    let is_alone = snap.values.processes.len() == 1;
    let mut found: Vec<(u32, u64, u64)> = Vec::new();
    for row in snap.values.kernels.iter() {
        let (count, total) = if is_alone {
            (row.numbers.stat.calls, row.numbers.stat.total)
        } else {
            let own = row.numbers.cells.iter().filter(|cell| {
                let place = snap.values.placement(cell);
                place.is_some_and(|place| place.process == process)
            });
            own.fold((0, 0u64), |sum, cell| {
                (sum.0 + cell.sum.calls, sum.1.saturating_add(cell.sum.total))
            })
        };
        let before = previous.kernels.insert(row.id.0, (count, total)).unwrap_or_default();
        let (count, total) = (count.saturating_sub(before.0), total.saturating_sub(before.1));
        if count > 0 {
            found.push((row.id.0, count, total));
        }
    }
    let time = found.iter().fold(0u64, |sum, kernel| sum.saturating_add(kernel.2));
    found.sort_unstable_by_key(|kernel| (Reverse(kernel.2), kernel.0));
    found.truncate(MAX_KERNELS);
    let sums = found.into_iter().map(|(id, count, total)| {
        let known = snap.names.kernel(roctop_trace::item::KernelId(id));
        let name = known.map_or_else(String::new, |known| cut(&known.short, MAX_NAME));
        let id = name_id(&name);
        names.push((id, name));
        KernelSums {
            name: id,
            count: count as u32,
            total,
        }
    });
    (sums.collect(), time)
}

/// Time of all routes of these GPUs so far, made by the GPU.
fn copy_time(snap: &Snapshot, gpus: &[(AgentId, u64)]) -> u64 {
    let is_own = |end: Option<AgentId>| end.is_some_and(|end| gpus.iter().any(|gpu| gpu.0 == end));
    let routes = snap.values.copies.iter().filter(|copies| {
        let route = copies.route;
        route.engine != engine::CALL && (is_own(route.source) || is_own(route.destination))
    });
    routes.map(|copies| copies.union.total).sum()
}

fn step_sums(snap: &Snapshot, process: ProcessId, window: Span, previous: &mut Previous) -> Option<StepSums> {
    let is_old = |known: &(Source, Nanos)| snap.now.saturating_sub(known.1) > SOURCE_AGE;
    if previous.source.as_ref().is_none_or(is_old) {
        previous.source = steps::source_of(snap, process).map(|source| (source, snap.now));
    }
    let (source, _) = previous.source.as_ref()?;
    let since = if previous.step == 0 {
        window.begin
    } else {
        previous.step
    };
    let mut sums = StepSums::default();
    for span in steps::ended_since(snap, source, since) {
        if span.end > window.end {
            continue;
        }
        previous.step = previous.step.max(span.end);
        sums.count += 1;
        sums.total = sums.total.saturating_add(span.duration());
        sums.longest = sums.longest.max(span.duration());
    }
    Some(sums)
}

/// The communicators of a process with what arrived since the last call.
fn communicators(snap: &Snapshot, process: ProcessId, window: Span, previous: &mut Previous) -> Vec<CommunicatorPart> {
    let found = &snap.values.collectives;
    let mut last = previous.arrival;
    let mut parts: Vec<(usize, CommunicatorPart)> = Vec::new();
    for progress in found.progress.iter().filter(|progress| progress.process == process) {
        let Some(row) = found.communicators.get(progress.communicator as usize) else {
            continue;
        };
        let Some(identity) = row.identity else { continue };
        let is_own = |arrival: &&Arrival| {
            (arrival.process, arrival.key.communicator, arrival.rank) == (process, progress.communicator, progress.rank)
        };
        let new = found
            .arrivals
            .iter()
            .filter(|arrival| arrival.number > previous.arrival);
        let own: Vec<&Arrival> = new.filter(is_own).collect();
        last = own.iter().map(|arrival| arrival.number).fold(last, u64::max);
        let pending = found.pending.iter().find(|pending| {
            (pending.process, pending.key.communicator, pending.rank) == (process, progress.communicator, progress.rank)
        });
        let part = CommunicatorPart {
            identity,
            rank: progress.rank,
            size: row.size,
            reached: progress.reached,
            pending: pending.map(|pending| PendingPart {
                sequence: pending.key.sequence,
                operation: pending.operation,
                since: pending.since,
            }),
            arrivals: sampled(&own, window.begin),
        };
        parts.push((own.len(), part));
    }
    previous.arrival = last;
    parts.sort_by_key(|(count, part)| (Reverse(*count), Reverse(part.pending.is_some()), part.identity));
    parts.truncate(MAX_COMMUNICATORS);
    // Together they have as many as one alone.
    let mut left = MAX_ARRIVALS;
    let mut count = parts.len();
    let parts = parts.into_iter().map(|(_, mut part)| {
        thin(&mut part.arrivals, left / count.max(1));
        left -= part.arrivals.len();
        count -= 1;
        part
    });
    parts.collect()
}

/// Arrivals relative to the begin of a window, at collectives in which all wait for all.
fn sampled(own: &[&Arrival], begin: Nanos) -> Vec<ArrivalSums> {
    let own = own.iter().filter(|arrival| is_mutual(arrival.operation));
    let arrivals = own.map(|arrival| ArrivalSums {
        sequence: arrival.key.sequence,
        operation: arrival.operation,
        at: arrival.at.wrapping_sub(begin) as i64,
        took: arrival.took,
        by_kernel: arrival.by_kernel,
    });
    arrivals.collect()
}

/// What a thread of a process did before the collective, of those that came since `last`, that it came to after the longest
/// time.
fn before(snap: &Snapshot, process: ProcessId, window: Span, last: u64) -> String {
    let mut ends: FastMap<ThreadId, Nanos> = FastMap::default();
    let mut longest: Option<(Span, ThreadId)> = None;
    let arrivals = snap.values.collectives.arrivals.iter();
    for arrival in arrivals.filter(|arrival| arrival.process == process && !arrival.by_kernel) {
        let end = arrival.at.saturating_add(arrival.took);
        let begin = ends.insert(arrival.thread, end).unwrap_or(window.begin);
        let span = Span {
            begin,
            end: arrival.at.max(begin),
        };
        let is_longer = longest.is_none_or(|(known, _)| span.duration() > known.duration());
        if arrival.number > last && is_longer {
            longest = Some((span, arrival.thread));
        }
    }
    let longest = longest.filter(|(span, _)| span.duration() > 0);
    longest.map_or_else(String::new, |(span, thread)| {
        cut(&during(snap, process, thread, span, None).join(", "), MAX_TEXT)
    })
}

/// Keeps those whose number is a multiple of the smallest power of two that leaves at most `most`.
fn thin(arrivals: &mut Vec<ArrivalSums>, most: usize) {
    for power in 1..32 {
        if arrivals.len() <= most {
            return;
        }
        arrivals.retain(|arrival| arrival.sequence.trailing_zeros() >= power);
    }
    arrivals.truncate(most);
}

fn readings(snap: &Snapshot, gpu: AgentId) -> Option<Readings> {
    let device = &snap.device_of(snap.names.agent(gpu)?)?.now;
    let known = |reading: &Result<f64, _>| reading.as_ref().ok().map(|value| *value as f32);
    let count = |reading: &Result<f64, _>| reading.as_ref().ok().map(|value| *value as u64);
    let throttle = device.throttle.as_ref().map_or("", |reason| reason);
    Some(Readings {
        power: known(&device.power),
        clock: known(&device.shader_clock),
        temperature: known(&device.junction).or(known(&device.edge)),
        memory: device.memory_used.as_ref().ok().copied(),
        network: known(&device.network),
        network_errors: count(&device.network_errors),
        xgmi: known(&device.xgmi),
        xgmi_errors: count(&device.xgmi_errors),
        throttle: cut(if throttle == "none" { "" } else { throttle }, MAX_TEXT),
    })
}

/// The thread with the most calls.
fn host(snap: &Snapshot, process: ProcessId, window: Span, previous: &mut Previous) -> Option<HostSums> {
    let is_own = |thread: ThreadId| {
        snap.names
            .thread(thread)
            .is_some_and(|thread| thread.process == process)
    };
    let rows = snap.values.threads.iter().filter(|row| is_own(row.id));
    let row = rows.max_by_key(|row| row.numbers.calls)?;
    let blocked = row.numbers.blocked;
    let blocked = blocked.saturating_sub(std::mem::replace(&mut previous.blocked, blocked));
    let readings = snap.values.thread_times.of(row.id);
    let first = readings
        .partition_point(|reading| reading.at <= window.begin)
        .saturating_sub(1);
    let last = readings
        .partition_point(|reading| reading.at <= window.end)
        .checked_sub(1)?;
    let (first, last) = (readings.get(first)?, readings.get(last)?);
    (last.at > first.at).then(|| HostSums {
        length: last.at - first.at,
        running: last.running.saturating_sub(first.running),
        ready: last.ready.saturating_sub(first.ready),
        blocked,
    })
}

fn alerts(snap: &Snapshot) -> Vec<AlertSums> {
    let alerts = snap.analysis().alerts.iter().take(MAX_ALERTS);
    let sums = alerts.map(|alert| AlertSums {
        rule: alert.rule,
        text: cut(&alert.text, MAX_TEXT),
    });
    sums.collect()
}

/// What a process has been doing for long.
fn doing(snap: &Snapshot, row: &ProcessRow) -> String {
    let open = &row.open;
    let calls = open.calls.iter().map(|call| call.span.begin);
    let dispatches = open.dispatches.iter().map(|dispatch| dispatch.submit);
    let oldest = calls.chain(dispatches).filter(|begin| *begin > 0).min();
    match oldest {
        Some(begin) if row.exit.is_none() && snap.now.saturating_sub(begin) > LONG => {
            cut(&doing_now(snap, row.process.id), MAX_TEXT)
        }
        _ => String::new(),
    }
}
