//! Applies work to the tables, to its lane, and to the ranges in which it was launched.

use roctop_ring::record::{Domain, engine, flag};

use super::lane::{Lane, LaneKey, Slice};
use super::lanes::{keep_at, known_at};
use super::names::{Internal, Names};
use super::range_attribution::Work;
use super::table::{Route, is_untimed};
use super::union::Stretch;
use super::{Closed, LATEST, OpenBounds, Store, credible, is_within};
use roctop_trace::early::Early;
use roctop_trace::item::{AgentId, Allocation, ApiCall, Copy, Dispatch, Marker, ProcessId, Span, ThreadId};
use roctop_trace::site::SiteNumber;

/// `hipErrorNotReady` is an answer, not a failure.
const HIP_NOT_READY: i32 = 600;

/// Number of dispatches that are counted together.
const PORTION: usize = 256;

/// Reused buffers for a batch of dispatches.
#[derive(Debug, Default)]
pub(super) struct Room {
    dispatches: Vec<Dispatch>,
    shapes: Vec<u32>,
}

/// Functions that return the error of an earlier call, where it was counted already.
const REPORTING: [&str; 3] = ["hipGetLastError", "hipPeekAtLastError", "hipExtGetLastError"];

/// Whether a call is one of RCCL's or MPI's.
fn communicates(call: &ApiCall, names: &Names) -> bool {
    let known = names.operation(call.operation);
    known.is_some_and(|known| [Domain::RCCL.0, Domain::MPI.0].contains(&known.operation.domain))
}

/// Whether a call failed.
pub(super) fn is_error(call: &ApiCall, names: &Names) -> bool {
    let code = call.status.unwrap_or(0);
    if code == 0 {
        return false;
    }
    let Some(known) = names.operation(call.operation) else {
        return true;
    };
    let operation = &known.operation;
    operation.domain != Domain::HIP.0 || !(code == HIP_NOT_READY || REPORTING.contains(&&*operation.name))
}

pub(super) fn is_timed(dispatch: &Dispatch) -> bool {
    !is_untimed(dispatch.flags, dispatch.span.end)
}

/// Passes dispatches on in portions, with credible times; `room` is a reused buffer.
pub(super) fn credible_portions(dispatches: &[Dispatch], room: &mut Vec<Dispatch>, mut take: impl FnMut(&[Dispatch])) {
    let is_credible = |one: &Dispatch| one.span.begin <= one.span.end && one.span.end.max(one.submit) <= LATEST;
    for portion in dispatches.chunks(PORTION) {
        if portion.iter().all(is_credible) {
            take(portion);
            continue;
        }
        room.clear();
        room.extend(portion.iter().map(|dispatch| Dispatch {
            span: credible(dispatch.span),
            submit: if dispatch.submit > LATEST { 0 } else { dispatch.submit },
            ..*dispatch
        }));
        take(room);
    }
}

impl Store {
    /// Id bounds of a process's open work, by kind.
    fn bounds(&self, process: ProcessId) -> OpenBounds {
        self.open_bounds.get(process.0 as usize).copied().unwrap_or_default()
    }

    pub(super) fn calls(&mut self, calls: &[ApiCall]) {
        if self.memory.awaits_calls() {
            self.memory.called(calls);
        }
        for run in calls.chunk_by(|one, next| (one.process, one.thread) == (next.process, next.thread)) {
            self.calls_of_thread(run);
        }
    }

    /// Counts calls of one thread. What they share is looked up once.
    fn calls_of_thread(&mut self, calls: &[ApiCall]) {
        let Some(first) = calls.first() else { return };
        let (process, thread) = (first.process, first.thread);
        self.totals.calls += calls.len() as u64;
        let bounds = self.bounds(process).calls;
        if bounds.is_some() {
            for call in calls.iter().filter(|call| is_within(bounds, call.correlation)) {
                self.close(process, |open| {
                    let mut calls = open.calls.iter();
                    calls
                        .position(|one| one.correlation == call.correlation)
                        .map(Closed::Call)
                });
            }
        }
        self.seen_all(process, calls.iter().map(|call| credible(call.span)));
        if self.reach.is_none() {
            if self.counts_apart {
                self.tables.sites.calls(calls);
            } else {
                self.tables.calls(thread, calls, &self.names);
            }
            if self.collectives.is_active() {
                let is_near = |call: &&ApiCall| call.parent != 0 || communicates(call, &self.names);
                for call in calls.iter().filter(is_near) {
                    self.collectives.returned(&ApiCall {
                        span: credible(call.span),
                        ..*call
                    });
                }
            }
        }
        if self.options.timeline {
            self.draw_calls(process, thread, calls, 0);
        }
    }

    /// A call that is drawn but not counted.
    pub(super) fn call_along(&mut self, call: &ApiCall) {
        if self.options.timeline {
            self.draw_calls(call.process, call.thread, std::slice::from_ref(call), Slice::ALONG);
        }
    }

    fn draw_calls(&mut self, process: ProcessId, thread: ThreadId, calls: &[ApiCall], flags: u8) {
        let last = known_at(&self.thread_lanes, thread.0);
        for nested in [false, true] {
            let here = |call: &&ApiCall| (call.parent != 0) == nested && credible(call.span).end > 0;
            if !calls.iter().any(|call| here(&call)) {
                continue;
            }
            let at = self.lane_near(LaneKey::Api(thread, u8::from(nested)), last);
            if at != last {
                keep_at(&mut self.thread_lanes, thread.0, at);
            }
            let names = &self.names;
            let slices = calls.iter().filter(here).map(|call| Slice {
                span: credible(call.span),
                what: call.operation.0,
                shape: u32::from(is_error(call, names)),
                submit: 0,
                correlation: call.correlation,
                value: u64::from(call.status.unwrap_or(0) as u32),
                queue: call.arguments.map_or(u32::MAX, |text| text.0),
                process: process.0,
                thread: thread.0,
                site: call.site,
                flags,
            });
            let added = self.lanes[at as usize].add(slices, &mut self.rooms);
            self.added(added);
        }
    }

    pub(super) fn dispatches(&mut self, dispatches: &[Dispatch]) {
        let mut room = std::mem::take(&mut self.room);
        credible_portions(dispatches, &mut room.dispatches, |portion| {
            self.portion(portion, &mut room.shapes);
        });
        self.room = room;
    }

    fn portion(&mut self, dispatches: &[Dispatch], shapes: &mut Vec<u32>) {
        if self.reach.is_some() {
            self.tables.shapes_of(dispatches, shapes);
        } else {
            if self.counts_apart {
                self.tables.sites.dispatches(dispatches);
            } else {
                self.tables.dispatches(dispatches, shapes);
            }
            if self.collectives.is_active() {
                for dispatch in dispatches {
                    self.collectives.dispatch(dispatch);
                }
            }
        }
        let place = |one: &Dispatch| (one.process, one.agent, one.queue, one.stream, one.thread);
        let mut shapes = &shapes[..];
        for run in dispatches.chunk_by(|one, next| place(one) == place(next)) {
            let (these, rest) = shapes.split_at(run.len().min(shapes.len()));
            self.dispatches_in_place(run, these);
            shapes = rest;
        }
    }

    /// Counts dispatches of one thread and queue. What they share is looked up once.
    fn dispatches_in_place(&mut self, dispatches: &[Dispatch], shapes: &[u32]) {
        let Some(first) = dispatches.first() else { return };
        self.totals.dispatches += dispatches.len() as u64;
        let bounds = self.bounds(first.process).dispatches;
        if bounds.is_some() {
            for dispatch in dispatches.iter().filter(|one| is_within(bounds, one.dispatch_id)) {
                self.close(first.process, |open| {
                    let known = &open.dispatches;
                    let found = known.binary_search_by_key(&dispatch.dispatch_id, |one| one.dispatch_id);
                    found.ok().map(Closed::Dispatch)
                });
            }
        }
        self.seen_all(first.process, dispatches.iter().map(|dispatch| dispatch.span));
        let suspect = dispatches.iter().filter(|one| one.flags & flag::SUSPECT_TIME != 0);
        self.totals.suspect += suspect.count() as u64;
        let mut early = Early::default();
        for one in dispatches {
            early.add(one);
        }
        if early != Early::default() {
            self.row(first.process, |row| row.early = row.early.and(early));
        }
        if !self.sampled.is_empty() {
            for one in dispatches {
                self.sampled.dispatched(one.process, one.dispatch_id, one.kernel);
            }
        }
        for dispatch in dispatches {
            let internal = self.names.internal(dispatch.kernel);
            if internal != Internal::No {
                self.totals.internal += 1;
                self.blit(dispatch, internal);
            }
        }
        if let Some(agent) = self.agent_state(first.agent) {
            agent.dispatches += dispatches.len() as u64;
        }
        if !dispatches.iter().any(is_timed) {
            return;
        }
        let timed = dispatches.iter().filter(|one| is_timed(one));
        let nanos = timed.fold(0u64, |sum, one| sum.saturating_add(one.span.duration()));
        self.totals.kernel_time = self.totals.kernel_time.saturating_add(nanos);
        if let Some(agent) = self.agents.get_mut(first.agent.0 as usize) {
            agent.kernel_time = agent.kernel_time.saturating_add(nanos);
        }
        self.tables.markers.dispatches(dispatches);
        if self.options.timeline {
            self.draw_dispatches(first, dispatches, shapes);
        }
    }

    fn draw_dispatches(&mut self, first: &Dispatch, dispatches: &[Dispatch], shapes: &[u32]) {
        let key = LaneKey::of(first);
        let last = known_at(&self.queue_lanes, first.queue.0);
        let lane = self.lane_near(key, last);
        if lane != last {
            keep_at(&mut self.queue_lanes, first.queue.0, lane);
        }
        let slices = dispatches.iter().zip(shapes).filter(|(one, _)| is_timed(one));
        let slices = slices.map(|(dispatch, &shape)| Slice {
            span: dispatch.span,
            what: dispatch.kernel.0,
            shape,
            submit: dispatch.submit,
            correlation: dispatch.correlation,
            value: dispatch.dispatch_id,
            queue: dispatch.queue.0,
            process: dispatch.process.0,
            thread: dispatch.thread.map_or(u32::MAX, |thread| thread.0),
            site: dispatch.site,
            flags: dispatch.flags,
        });
        let added = self.lanes[lane as usize].add(slices, &mut self.rooms);
        let at = first.agent.0 as usize;
        let timed = dispatches
            .iter()
            .filter(|one| is_timed(one) && one.span.duration() > 0)
            .map(|one| Stretch {
                span: one.span,
                submit: one.submit,
            });
        if let Some(agent) = self.agents.get_mut(at)
            && agent.busy.add(timed)
        {
            self.settle(at);
            self.settle_gaps(at);
        }
        self.added(added);
    }

    /// Updates the busy time of an agent.
    pub(super) fn settle(&mut self, agent: usize) {
        let Some(last) = self.agents.get(agent).filter(|agent| !agent.busy.is_settled()) else {
            return;
        };
        let number = self.lane_near(LaneKey::Agent(AgentId(agent as u32)), last.lane);
        let (state, drawn) = (&mut self.agents[agent], &mut self.lanes[number as usize]);
        state.lane = number;
        drawn.is_changed = true;
        let shared = state.shared;
        match shared.and_then(|shared| self.shared_gpus.get_mut(shared as usize)) {
            Some(shared) => state.busy.settle(|piece| {
                drawn.lane.add_time(piece.span, 0, true);
                shared.pieces.push(piece);
            }),
            None => state.busy.settle(|piece| drawn.lane.add_time(piece.span, 0, true)),
        }
        if let Some(shared) = shared {
            self.settle_shared(shared);
        }
    }

    /// Enables range attribution, also for work that has completed already.
    pub(super) fn want_work(&mut self) {
        if self.counts_apart || self.tables.markers.attributes_work() {
            return;
        }
        let work = |key: LaneKey, span: Span| match key {
            LaneKey::Stream(..) | LaneKey::Queue(..) => Some(Work::kernel(span)),
            LaneKey::Copies(_) => Some(Work::copy(span)),
            _ => None,
        };
        let lanes = || self.lanes.iter().map(|drawn| &drawn.lane);
        let dropped = lanes().filter(|lane| work(lane.key, Span::default()).is_some());
        let unknown_until = dropped.filter_map(Lane::forgotten).max().unwrap_or(0);
        let lanes = lanes();
        let all = lanes.flat_map(|lane| lane.recent(usize::MAX).map(|slice| (lane.key, slice)));
        let launched = all.filter(|(_, slice)| slice.submit > 0 && slice.thread != u32::MAX);
        let mut known: Vec<_> = launched
            .filter_map(|(key, slice)| Some((slice.span.end, slice.thread, slice.submit, work(key, slice.span)?)))
            .collect();
        known.sort_by_key(|(end, ..)| *end);
        let known = known.into_iter();
        let known = known.map(|(_, thread, launched, work)| (ThreadId(thread), launched, work));
        self.tables.markers.want_work(known, unknown_until);
    }

    /// Counts the run-time's own copy kernels as copies too, unless the collector reports them as such.
    fn blit(&mut self, dispatch: &Dispatch, kernel: Internal) {
        if kernel != Internal::Other && !self.copies_with_blits && self.reach.is_none() {
            self.moved(dispatch, kernel == Internal::Fill);
        }
    }

    pub(super) fn copy(&mut self, copy: &Copy) {
        self.totals.copies += 1;
        self.seen(copy.process, copy.span);
        self.totals.suspect += u64::from(copy.flags & flag::SUSPECT_TIME != 0);
        self.copies_with_blits |= copy.engine == engine::BLIT && copy.flags & flag::INTERNAL != 0;
        self.by_engine(copy.process, copy.correlation, copy.bytes);
        let route = self.copy_row(Route::of(copy));
        if self.reach.is_none() {
            self.tables.copy(route, copy);
            self.tables.sites.copy(route, copy);
        }
        if is_untimed(copy.flags, copy.span.end) {
            return;
        }
        let slice = Slice {
            span: copy.span,
            what: route,
            shape: u32::MAX,
            submit: copy.submit,
            correlation: copy.correlation,
            value: copy.bytes,
            queue: copy.stream.map_or(u32::MAX, |stream| stream.0),
            process: copy.process.0,
            thread: copy.thread.map_or(u32::MAX, |thread| thread.0),
            site: copy.site,
            flags: copy.flags,
        };
        self.copied(copy);
        self.slice(LaneKey::Copies(copy.direction), slice);
        self.tables.markers.copy(copy);
    }

    pub(super) fn marker(&mut self, marker: &Marker, is_mark: bool) {
        self.totals.markers += 1;
        if is_within(self.bounds(marker.process).ranges, marker.correlation) {
            self.close(marker.process, |open| {
                let mut ranges = open.ranges.iter();
                ranges
                    .position(|one| one.correlation == marker.correlation)
                    .map(Closed::Range)
            });
        }
        self.seen(marker.process, marker.span);
        if self.reach.is_none() && !self.counts_apart {
            if is_mark {
                self.tables.markers.mark(marker);
            } else {
                self.want_work();
                self.tables.markers.range(marker);
            }
        }
        self.draw_marker(marker, is_mark, 0);
    }

    pub(super) fn draw_marker(&mut self, marker: &Marker, is_mark: bool, flags: u8) {
        let slice = Slice {
            span: marker.span,
            what: marker.text.0,
            shape: u32::from(is_mark),
            submit: 0,
            correlation: marker.correlation,
            value: marker.range_id,
            queue: u32::MAX,
            process: marker.process.0,
            thread: marker.thread.0,
            site: SiteNumber::UNKNOWN,
            flags,
        };
        let key = match marker.range_id {
            0 => LaneKey::Markers(marker.thread, marker.level),
            _ => LaneKey::Ranges(marker.thread),
        };
        self.slice(key, slice);
        if let Some(row) = self.tables.markers.row(marker.text).filter(|_| !is_mark) {
            self.count_range(key, row, marker.text);
        }
    }

    pub(super) fn allocation(&mut self, allocation: &Allocation) {
        self.memory.add(&Allocation {
            span: credible(allocation.span),
            ..*allocation
        });
    }
}
