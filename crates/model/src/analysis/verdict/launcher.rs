//! What a launching thread did: calls, waits, and time off the CPU.

use super::is_elsewhere;
use crate::analysis::usage::clip;
use crate::{FastMap, LaneKey, Slice, Snapshot};
use roctop_ring::record::engine;
use roctop_trace::item::{AgentId, Nanos, OperationId, Span, ThreadId, ThreadTime};
use std::cell::RefCell;
use std::rc::Rc;

/// Maximum time before the first and after the last reading for which the nearest share holds, ns.
const MAX_BEYOND: u64 = 300_000_000;

/// Time on either side of gaps of which readings are used, ns: enough to see whether the run-time spins or sleeps in waiting calls.
const BESIDE: u64 = 5_000_000_000;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// In a call that copies and returns when the copy is complete; with the direction if it is known.
    Copying(Option<u16>),
    /// In a call that waits for the GPU.
    Waiting,
    /// In such a call while work of another GPU runs.
    WaitingFor(LaneKey),
    /// In a call of MPI; with the rank that it waits for, if that is known.
    InMpi(OperationId, Option<u32>),
    /// Outside of calls and off the CPU.
    Asleep,
    /// Anything else.
    Else,
}

/// Share of a thread's time outside of calls that it was off the CPU, between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OffCpu {
    span: Span,
    share: f64,
}

/// A thread's calls and its time off the CPU.
struct Launcher {
    /// Outer calls in order of begin; they do not overlap.
    calls: Vec<Slice>,
    /// Time since which all of them are there.
    since: Nanos,
    off_cpu: Rc<[OffCpu]>,
}

/// All launching threads.
pub(super) struct Launchers<'a> {
    snap: &'a Snapshot,
    stretch: Span,
    /// Readings of more than the stretch.
    readings: Option<Rc<Readings>>,
    threads: FastMap<u32, Launcher>,
    /// Kernels of all lanes, by lane, once they are looked up.
    kernels: Option<Vec<(LaneKey, Vec<Slice>)>>,
    /// Directions of copies that calls made themselves, by process and correlation id.
    by_calls: Option<FastMap<(u32, u64), u16>>,
    /// Waits in calls of MPI for another rank, by process and correlation id: until when, and the rank.
    waits: Option<FastMap<(u32, u64), (Nanos, u32)>>,
}

impl<'a> Launchers<'a> {
    pub(super) fn new(snap: &'a Snapshot, stretch: Span) -> Self {
        Self {
            snap,
            stretch,
            readings: None,
            threads: FastMap::default(),
            kernels: None,
            by_calls: None,
            waits: None,
        }
    }

    /// With the readings beside the stretch: one shorter than the time between two has no own readings.
    pub(super) fn with_readings(&mut self, readings: Rc<Readings>) {
        self.readings = Some(readings);
    }

    /// Passes what a thread does in a piece: (what, ns, whether it is an estimate).
    pub(super) fn during(
        &mut self,
        thread: ThreadId,
        agents: &[AgentId],
        piece: Span,
        mut pass: impl FnMut(Doing, u64, bool),
    ) {
        let (snap, stretch, readings) = (self.snap, self.stretch, self.readings.as_deref());
        let launcher = self
            .threads
            .entry(thread.0)
            .or_insert_with(|| Launcher::new(snap, thread, stretch, readings));
        // Of a stretch with very many calls only the latest are there.
        let alone = (readings.is_some() && piece.begin < launcher.since && stretch != piece)
            .then(|| Launcher::new(snap, thread, piece, readings));
        let launcher = alone.as_ref().unwrap_or(launcher);
        let at = launcher.calls.partition_point(|call| call.span.end <= piece.begin);
        let calls = launcher.calls[at..]
            .iter()
            .take_while(|call| call.span.begin < piece.end);
        let calls: Vec<Slice> = calls.copied().collect();
        let mut from = piece.begin;
        for call in &calls {
            let Some(part) = clip(call.span, piece) else { continue };
            launcher.outside(from, part.begin, &mut pass);
            from = part.end;
        }
        launcher.outside(from, piece.end, &mut pass);
        for call in &calls {
            if let Some(part) = clip(call.span, piece) {
                self.inside(call, agents, part, &mut pass);
            }
        }
    }

    /// What a thread does in a part of a call.
    fn inside(&mut self, call: &Slice, agents: &[AgentId], part: Span, pass: &mut impl FnMut(Doing, u64, bool)) {
        let id = OperationId(call.what);
        if self.snap.names.is_mpi(id) {
            let wait = self.wait(call);
            let until = wait.map_or(part.begin, |(until, _)| until.clamp(part.begin, part.end));
            if let Some((_, rank)) = wait {
                pass(Doing::InMpi(id, Some(rank)), until - part.begin, false);
            }
            return pass(Doing::InMpi(id, None), part.end - until, false);
        }
        if !self.snap.names.blocks(id) {
            return pass(Doing::Else, part.duration(), false);
        }
        let name = self.snap.names.operation(id).map_or("", |name| &name.operation.name);
        if name.contains("Memcpy") || name.contains("Memset") {
            let way = self.direction(call);
            return pass(Doing::Copying(way), part.duration(), false);
        }
        let other = self.running_elsewhere(call.process, agents, part);
        let nanos = other.map_or(0, |(_, nanos)| nanos);
        if let Some((lane, nanos)) = other {
            pass(Doing::WaitingFor(lane), nanos, false);
        }
        pass(Doing::Waiting, part.duration() - nanos, false);
    }

    /// Until when a call of MPI waited for another rank, and for which one.
    fn wait(&mut self, call: &Slice) -> Option<(Nanos, u32)> {
        let (snap, stretch) = (self.snap, self.stretch);
        let waits = self.waits.get_or_insert_with(|| {
            let found = &snap.values.collectives;
            let parts = found.recent.iter().flat_map(|(collective, _)| {
                let parts = collective.parts.iter().filter(|part| part.call.operation.is_mpi());
                parts.map(|part| (collective.key.communicator, part))
            });
            let near = parts.filter(|(_, part)| {
                let end = part.returned.unwrap_or(part.call.start);
                part.call.start < stretch.end && end > stretch.begin
            });
            let waits = near.filter_map(|(communicator, part)| {
                let rank = found.rank_of(snap, communicator, part.wait.rank?);
                let until = part.call.start.saturating_add(part.wait.nanos);
                Some(((part.call.process.0, part.call.correlation), (until, rank)))
            });
            waits.collect()
        });
        waits.get(&(call.process, call.correlation)).copied()
    }

    /// Direction of the copy that a call made.
    fn direction(&mut self, call: &Slice) -> Option<u16> {
        let (snap, span) = (self.snap, self.stretch);
        let by_calls = self.by_calls.get_or_insert_with(|| {
            let lanes = snap.lanes.iter().filter_map(|lane| match lane.key {
                LaneKey::Copies(way) => Some((way, lane)),
                _ => None,
            });
            let copies = lanes.flat_map(|(way, lane)| {
                let slices = lane.slices(span.begin, span.end, super::super::MAX_SLICES);
                slices.unwrap_or_default().into_iter().map(move |slice| (way, slice))
            });
            let is_by_call = |copy: &Slice| {
                let row = snap.values.copies.get(copy.what as usize);
                row.is_some_and(|row| row.route.engine == engine::CALL)
            };
            let copies = copies.filter(|(_, copy)| is_by_call(copy));
            copies
                .map(|(way, copy)| ((copy.process, copy.correlation), way))
                .collect()
        });
        by_calls.get(&(call.process, call.correlation)).copied()
    }

    /// The lane of another GPU that ran kernels of the process for most of a part, and for how long.
    fn running_elsewhere(&mut self, process: u32, agents: &[AgentId], part: Span) -> Option<(LaneKey, u64)> {
        let (snap, span) = (self.snap, self.stretch);
        let lanes = self.kernels.get_or_insert_with(|| {
            let lanes = snap.lanes.iter().filter(|lane| is_elsewhere(lane.key, agents));
            let lanes = lanes.filter_map(|lane| {
                let slices = lane.slices(span.begin, span.end, super::super::MAX_SLICES)?;
                Some((lane.key, slices))
            });
            lanes.collect()
        });
        let running = lanes.iter().filter_map(|(lane, slices)| {
            let at = slices.partition_point(|slice| slice.span.end <= part.begin);
            let near = slices[at..].iter().take_while(|slice| slice.span.begin < part.end);
            let own = near.filter(|slice| slice.process == process);
            let nanos = own
                .filter_map(|slice| clip(slice.span, part))
                .map(Span::duration)
                .sum::<u64>();
            (nanos > 0).then_some((*lane, nanos.min(part.duration())))
        });
        running.max_by_key(|(_, nanos)| *nanos)
    }
}

impl Launcher {
    fn new(snap: &Snapshot, thread: ThreadId, stretch: Span, readings: Option<&Readings>) -> Self {
        let (calls, since) = calls_of(snap, thread, stretch);
        let off_cpu = match readings {
            Some(readings) => readings.of(snap, thread),
            None => off_cpu_of(
                snap,
                thread,
                &calls,
                Span {
                    begin: since,
                    ..stretch
                },
            )
            .into(),
        };
        Self { calls, since, off_cpu }
    }

    /// Time outside of calls: how much of it the thread was off the CPU.
    fn outside(&self, begin: u64, end: u64, pass: &mut impl FnMut(Doing, u64, bool)) {
        let outside = Span { begin, end };
        let mut rest = outside.duration();
        let at = self.off_cpu.partition_point(|known| known.span.end <= begin);
        let near = self.off_cpu[at..].iter().take_while(|known| known.span.begin < end);
        for known in near {
            let nanos = clip(known.span, outside).map_or(0, Span::duration);
            let asleep = (nanos as f64 * known.share) as u64;
            let is_estimated = known.share < 1.0 || clip(known.span, outside) != Some(known.span);
            pass(Doing::Asleep, asleep, is_estimated);
            if asleep > 0 {
                pass(Doing::Else, nanos - asleep, is_estimated);
                rest -= nanos;
            }
        }
        pass(Doing::Else, rest, false);
    }
}

/// Outer calls of a thread in order of begin, and since when all of them are there: the latest part of the stretch of which all calls
/// are kept.
fn calls_of(snap: &Snapshot, thread: ThreadId, stretch: Span) -> (Vec<Slice>, Nanos) {
    let Some(lane) = snap.lane(LaneKey::Api(thread, 0)) else {
        return (Vec::new(), stretch.begin);
    };
    let mut since = stretch.begin;
    let mut calls = None;
    for _ in 0..24 {
        calls = lane.slices(since, stretch.end, super::super::MAX_SLICES);
        if calls.is_some() {
            break;
        }
        since += stretch.end.saturating_sub(since).div_ceil(2);
    }
    let mut calls = calls.unwrap_or_default();
    let open = snap.open.iter().flat_map(|open| &open.calls);
    let open = open.filter(|call| call.thread == thread && call.parent == 0);
    calls.extend(open.map(|call| Slice {
        span: Span {
            begin: call.span.begin,
            end: snap.now.max(call.span.begin),
        },
        what: call.operation.0,
        correlation: call.correlation,
        process: call.process.0,
        thread: thread.0,
        ..Slice::default()
    }));
    calls.sort_by_key(|call| call.span.begin);
    (calls, since)
}

/// As [`off_cpu`], by the readings of a thread; none of a thread without calls.
fn off_cpu_of(snap: &Snapshot, thread: ThreadId, calls: &[Slice], known: Span) -> Vec<OffCpu> {
    if snap.lane(LaneKey::Api(thread, 0)).is_none() {
        return Vec::new();
    }
    let times = snap.values.thread_times.of(thread);
    off_cpu(times, calls, known, |call| {
        let id = OperationId(call.what);
        snap.names.blocks(id) || snap.names.is_mpi(id)
    })
}

/// What the readings around several gaps say of each thread, found once for all of them.
pub(crate) struct Readings {
    stretch: Span,
    threads: RefCell<FastMap<u32, Rc<[OffCpu]>>>,
}

impl Readings {
    /// For the gaps in a stretch of time.
    pub(crate) fn around(stretch: Span) -> Self {
        Self {
            stretch: Span {
                begin: stretch.begin.saturating_sub(BESIDE),
                end: stretch.end.saturating_add(BESIDE),
            },
            threads: RefCell::default(),
        }
    }

    fn of(&self, snap: &Snapshot, thread: ThreadId) -> Rc<[OffCpu]> {
        let mut threads = self.threads.borrow_mut();
        let known = threads.entry(thread.0).or_insert_with(|| {
            let (calls, since) = calls_of(snap, thread, self.stretch);
            off_cpu_of(
                snap,
                thread,
                &calls,
                Span {
                    begin: since,
                    ..self.stretch
                },
            )
            .into()
        });
        known.clone()
    }
}

/// Between each two readings, the share of the time outside of calls that the thread was off the CPU. The Linux kernel
/// counts the time off the CPU in all; the part of it in waiting calls is subtracted. Some run-times spin there, others
/// sleep: the states at the readings show which.
fn off_cpu(times: &[ThreadTime], calls: &[Slice], known: Span, blocks: impl Fn(&Slice) -> bool) -> Vec<OffCpu> {
    let mut at_reading = (0u32, 0u32);
    for time in times
        .iter()
        .filter(|time| known.begin <= time.at && time.at <= known.end)
    {
        let at = calls.partition_point(|call| call.span.end <= time.at);
        let is_waiting = calls
            .get(at)
            .is_some_and(|call| call.span.begin <= time.at && blocks(call));
        if let Some(is_running) = time.is_running.filter(|_| is_waiting) {
            at_reading = (at_reading.0 + 1, at_reading.1 + u32::from(is_running));
        }
    }
    let spinning = f64::from(at_reading.1) / f64::from(at_reading.0.max(1));
    let pairs = times
        .windows(2)
        .filter(|pair| pair[0].at >= known.begin && pair[1].at <= known.end);
    let shares = pairs.map(|pair| {
        let span = Span {
            begin: pair[0].at,
            end: pair[1].at,
        };
        let on_cpu = pair[1].running.saturating_sub(pair[0].running);
        let ready = pair[1].ready.saturating_sub(pair[0].ready);
        let off = span.duration().saturating_sub(on_cpu).saturating_sub(ready);
        let at = calls.partition_point(|call| call.span.end <= span.begin);
        let near = calls[at..].iter().take_while(|call| call.span.begin < span.end);
        let (mut waiting, mut inside) = (0, 0);
        for call in near {
            let nanos = clip(call.span, span).map_or(0, Span::duration);
            inside += nanos;
            waiting += if blocks(call) { nanos } else { 0 };
        }
        let outside = span.duration().saturating_sub(inside);
        let off = (off as f64 - waiting as f64 * (1.0 - spinning)).clamp(0.0, outside as f64);
        OffCpu {
            span,
            share: off / outside.max(1) as f64,
        }
    });
    let mut shares: Vec<OffCpu> = shares.collect();
    // Before the first reading and after the last one the nearest share holds for a while.
    if let Some(first) = shares.first_mut() {
        first.span.begin = first.span.begin.saturating_sub(MAX_BEYOND);
    }
    if let Some(last) = shares.last_mut() {
        last.span.end += MAX_BEYOND;
    }
    shares
}
