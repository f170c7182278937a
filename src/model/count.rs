//! What each piece of work adds: to the tables, to its lane, to the ranges in which it was launched.

use roctop_ring::record::{Domain, direction, engine, flag};

use super::lane::{LaneKey, Slice};
use super::table::is_untimed;
use super::under::Work;
use super::{AgentState, Closed, LATEST, OpenBounds, Store, credible, is_within, keep_at, known_at};
use crate::item::{Allocation, ApiCall, Copy, Dispatch, Marker, Nanos, ProcessId, ThreadId};

/// HIP's "not ready" is an answer, not an error.
const HIP_NOT_READY: i32 = 600;

/// Dispatches that are counted together.
const PORTION: usize = 256;

/// Room for them, kept from one portion to the next.
#[derive(Debug, Default)]
pub(super) struct Room {
    dispatches: Vec<Dispatch>,
    shapes: Vec<u32>,
}

impl Store {
    /// What open work there was of a process, by kind.
    fn bounds(&self, process: ProcessId) -> OpenBounds {
        self.open_bounds.get(process.0 as usize).copied().unwrap_or_default()
    }

    pub(super) fn calls(&mut self, calls: &[ApiCall]) {
        for call in calls {
            self.call(&ApiCall {
                span: credible(call.span),
                ..*call
            });
        }
    }

    fn call(&mut self, call: &ApiCall) {
        self.totals.calls += 1;
        if is_within(self.bounds(call.process).calls, call.correlation) {
            self.close(call.process, |open| {
                let mut calls = open.calls.iter();
                calls
                    .position(|one| one.correlation == call.correlation)
                    .map(Closed::Call)
            });
        }
        self.seen(call.process, call.span.begin, call.span.end);
        let operation = self.names.operation(call.operation);
        let (domain, blocks) = operation.map_or((0, false), |o| (o.operation.domain, o.blocks));
        let code = call.status.unwrap_or(0);
        let error = code != 0 && !(domain == Domain::HIP.0 && code == HIP_NOT_READY);
        self.tables.call(call, error, blocks);
        if call.span.end == 0 {
            return;
        }
        let slice = Slice {
            span: call.span,
            what: call.operation.0,
            shape: u32::from(error),
            submit: 0,
            correlation: call.correlation,
            value: u64::from(code as u32),
            queue: call.arguments.map_or(u32::MAX, |text| text.0),
            process: call.process.0,
            thread: call.thread.0,
        };
        let last = known_at(&self.thread_lanes, call.thread.0);
        let at = self.lane_near(LaneKey::Api(call.thread, u8::from(call.parent != 0)), last);
        if at != last {
            keep_at(&mut self.thread_lanes, call.thread.0, at);
        }
        self.slice_in(at, slice);
    }

    pub(super) fn dispatches(&mut self, dispatches: &[Dispatch]) {
        let mut room = std::mem::take(&mut self.room);
        for portion in dispatches.chunks(PORTION) {
            room.dispatches.clear();
            room.dispatches.extend(portion.iter().map(|dispatch| Dispatch {
                span: credible(dispatch.span),
                submit: if dispatch.submit > LATEST { 0 } else { dispatch.submit },
                ..*dispatch
            }));
            self.tables.dispatches(&room.dispatches, &mut room.shapes);
            for (dispatch, &shape) in room.dispatches.iter().zip(&room.shapes) {
                self.dispatch(dispatch, shape);
            }
        }
        self.room = room;
    }

    fn dispatch(&mut self, dispatch: &Dispatch, shape: u32) {
        self.totals.dispatches += 1;
        if is_within(self.bounds(dispatch.process).dispatches, dispatch.dispatch_id) {
            self.close(dispatch.process, |open| {
                let known = &open.dispatches;
                let found = known.binary_search_by_key(&dispatch.dispatch_id, |one| one.dispatch_id);
                found.ok().map(Closed::Dispatch)
            });
        }
        self.seen(dispatch.process, dispatch.span.begin, dispatch.span.end);
        if self.names.is_internal(dispatch.kernel) {
            self.totals.internal += 1;
            self.blit(dispatch);
        }
        let at = dispatch.agent.0 as usize;
        if at < 1 << 12 {
            if self.agents.len() <= at {
                self.agents.resize_with(at + 1, AgentState::default);
            }
            self.agents[at].dispatches += 1;
        }
        if is_untimed(dispatch.flags, dispatch.span.end) {
            return;
        }
        self.totals.kernel_time = self.totals.kernel_time.saturating_add(dispatch.span.duration());
        let work = Work {
            kernels: 1,
            nanos: dispatch.span.duration(),
            ..Work::default()
        };
        self.launched(dispatch.thread, dispatch.submit, work);
        let slice = Slice {
            span: dispatch.span,
            what: dispatch.kernel.0,
            shape,
            submit: dispatch.submit,
            correlation: dispatch.correlation,
            value: dispatch.dispatch_id,
            queue: dispatch.queue.0,
            process: dispatch.process.0,
            thread: dispatch.thread.map_or(u32::MAX, |thread| thread.0),
        };
        let key = LaneKey::of(dispatch);
        let last = known_at(&self.queue_lanes, dispatch.queue.0);
        let lane = self.lane_near(key, last);
        if lane != last {
            keep_at(&mut self.queue_lanes, dispatch.queue.0, lane);
        }
        self.slice_in(lane, slice);
        let mut pieces = std::mem::take(&mut self.pieces);
        if let Some(agent) = self.agents.get_mut(at) {
            agent.union.add(dispatch.span, |piece| pieces.push(piece));
        }
        if !pieces.is_empty() {
            let last = self.agents.get(at).map_or(u32::MAX, |agent| agent.lane);
            let number = self.lane_near(LaneKey::Agent(dispatch.agent), last);
            if let Some(agent) = self.agents.get_mut(at) {
                agent.lane = number;
            }
            let lane = self.lane(number);
            for piece in pieces.drain(..) {
                lane.add_time(piece, dispatch.kernel.0, true);
            }
        }
        self.pieces = pieces;
    }

    /// Counts work for the ranges in which it was launched.
    fn launched(&mut self, thread: Option<ThreadId>, submit: Nanos, work: Work) {
        if let Some(thread) = thread.filter(|_| submit > 0) {
            let markers = &mut self.tables.markers;
            self.under.work(thread, submit, work, |row| {
                if let Some(row) = markers.get_mut(row as usize) {
                    row.work.merge(work);
                }
            });
        }
    }

    /// Counts for a range that was closed what had completed of it, and notes what was within.
    fn closed(&mut self, marker: &Marker) {
        let Some(row) = self.tables.marker_row(marker.text) else {
            return;
        };
        let work = self.under.range(marker.thread, marker.span, row);
        if let Some(row) = self.tables.markers.get_mut(row as usize) {
            row.work.merge(work);
        }
        if marker.range_id == 0 {
            for child in self.under.nest(marker.thread, marker.level, row) {
                if let Some(child) = self.tables.markers.get_mut(child as usize) {
                    child.parent = Some(row);
                }
            }
        }
    }

    /// The run-time's own kernels that move bytes are copies as well, unless the collector says them as such.
    fn blit(&mut self, dispatch: &Dispatch) {
        let Some(name) = self.names.kernel(dispatch.kernel) else {
            return;
        };
        let direction = if name.kernel.mangled.contains("fill") {
            direction::FILL
        } else if name.kernel.mangled.contains("copy") {
            direction::UNKNOWN
        } else {
            return;
        };
        if !self.copies_with_blits {
            self.tables.blit(direction, dispatch);
        }
    }

    pub(super) fn copy(&mut self, copy: &Copy) {
        self.totals.copies += 1;
        self.seen(copy.process, copy.span.begin, copy.span.end);
        self.copies_with_blits |= copy.engine == engine::BLIT && copy.flags & flag::INTERNAL != 0;
        let route = self.tables.copy(copy);
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
        };
        self.slice(LaneKey::Copies(copy.direction), slice);
        let work = Work {
            copies: 1,
            nanos: copy.span.duration(),
            ..Work::default()
        };
        self.launched(copy.thread, copy.submit, work);
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
        self.seen(marker.process, marker.span.begin, marker.span.end);
        self.tables.marker(marker, is_mark);
        if !is_mark {
            self.closed(marker);
        }
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
        };
        let key = match marker.range_id {
            0 => LaneKey::Markers(marker.thread, marker.level),
            _ => LaneKey::Ranges(marker.thread),
        };
        self.slice(key, slice);
    }

    pub(super) fn allocation(&mut self, allocation: &Allocation) {
        self.memory.add(&Allocation {
            span: credible(allocation.span),
            ..*allocation
        });
    }
}
