//! A stretch of time as a separate snapshot: the tables of the records that ended in it.

use std::sync::Arc;

use super::analysis::Cached;
use super::lane::{LaneKey, Slice};
use super::shared_gpu::SharedState;
use super::snapshot::{KernelRow, Snapshot, Values};
use super::table::KernelStat;
use super::{AgentState, Mode, Options, Store};
use roctop_ring::record::flag;
use roctop_trace::item::{
    AgentId, ApiCall, Copy, Dispatch, Item, KernelId, Marker, OperationId, ProcessId, QueueId, Span, StreamId, TextId,
    ThreadId,
};

/// The records of a stretch of time while they are collected.
#[derive(Debug)]
pub struct Narrowing {
    store: Store,
    window: Span,
}

/// The records of a stretch of time that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Those of all tables.
    All,
    /// Calls alone: for their table, unless a filter relates them to work.
    Calls,
}

impl Counted {
    /// Whether a lane has such records: those of GPUs and collectives are made of other lanes.
    const fn has(self, key: LaneKey) -> bool {
        match self {
            Self::All => !matches!(key, LaneKey::Agent(_) | LaneKey::Collectives(_)),
            Self::Calls => matches!(key, LaneKey::Api(..)),
        }
    }
}

impl Narrowing {
    /// For records that are read again, with the facts that name them.
    pub fn of_records(window: Span) -> Self {
        Self::with_options(
            window,
            Options {
                slices: usize::MAX / 2,
                keep: u64::MAX,
                ..Options::default()
            },
        )
    }

    /// The same for sums alone: records are counted, and not kept.
    pub fn of_sums(window: Span) -> Self {
        Self::with_options(
            window,
            Options {
                timeline: false,
                ..Options::default()
            },
        )
    }

    fn with_options(window: Span, options: Options) -> Self {
        let mut store = Store::new(Options {
            mode: Mode::Replay,
            ..options
        });
        store.explaining.is_part = true;
        Self { store, window }
    }

    /// With the kernel names that the user has set.
    #[must_use]
    pub fn with_aliases(mut self, aliases: roctop_trace::kernel_name::Aliases) -> Self {
        self.store.options.aliases = aliases;
        self
    }

    /// For slices that a snapshot has: their names and numbers are known.
    fn of_slices(snap: &Snapshot, window: Span) -> Self {
        let mut new = Self::of_records(window);
        let (store, names) = (&mut new.store, &snap.names);
        store.names = names.clone();
        let shared = &snap.values.shared;
        store.shared_gpus = shared.iter().map(|row| SharedState::of(row.id)).collect();
        for row in &snap.values.agents {
            let at = row.id.0 as usize;
            if store.agents.len() <= at {
                store.agents.resize_with(at + 1, AgentState::default);
            }
            let gpu = names.gpu_of(row.id);
            store.agents[at] = AgentState {
                is_used: row.dispatches > 0,
                shared: shared.iter().position(|shared| shared.id == gpu).map(|at| at as u32),
                lane: u32::MAX,
                ..AgentState::default()
            };
        }
        new
    }

    /// Takes items: facts, and the records that ended in the stretch.
    pub fn take(&mut self, items: &[Item]) {
        for item in items {
            let is_wanted = match item {
                Item::Now(_) | Item::Open(_) | Item::Output(_) => false,
                Item::Api(call) => self.window.has_end_of(call.span),
                Item::Dispatch(dispatch) => self.window.has_end_of(dispatch.span),
                Item::Copy(copy) => self.window.has_end_of(copy.span),
                Item::Mark(marker) | Item::Range(marker) => self.window.has_end_of(marker.span),
                _ => true,
            };
            if is_wanted {
                self.store.apply(item);
            }
        }
    }

    fn slices(&mut self, snap: &Snapshot, lanes: &[(LaneKey, Vec<Slice>)]) {
        // Whether the run-time's copy kernels are among the copies is known before the first of them.
        let copies = lanes.iter().filter(|(key, _)| matches!(key, LaneKey::Copies(_)));
        let mut copies = copies.flat_map(|(_, slices)| slices);
        self.store.copies_with_blits = copies.any(|copy| copy.flags & flag::INTERNAL != 0);
        for (key, slices) in lanes {
            if let LaneKey::Api(thread, depth) = *key {
                let calls: Vec<ApiCall> = slices.iter().map(|slice| call(thread, depth, slice)).collect();
                self.store.calls(&calls);
            }
        }
        // Work in the order in which it ended; a range closes after its work and after the ranges within it.
        let level = |key: LaneKey| match key {
            LaneKey::Markers(_, level) => level,
            _ => 0,
        };
        let order = |key: LaneKey| match key {
            LaneKey::Api(..) | LaneKey::Agent(_) | LaneKey::Collectives(_) => None,
            LaneKey::Markers(..) | LaneKey::Ranges(_) => Some(u32::from(u16::MAX - level(key)) + 1),
            _ => Some(0),
        };
        let ordered = lanes
            .iter()
            .filter_map(|(key, slices)| Some((*key, order(*key)?, slices)));
        let mut work: Vec<(u64, u32, LaneKey, &Slice)> = ordered
            .flat_map(|(key, order, slices)| slices.iter().map(move |slice| (slice.span.end, order, key, slice)))
            .collect();
        work.sort_by_key(|(end, order, ..)| (*end, *order));
        let mut dispatches: Vec<Dispatch> = Vec::new();
        for (_, _, key, slice) in work {
            match key {
                LaneKey::Stream(agent, stream) => dispatches.push(dispatch(snap, agent, Some(stream), slice)),
                LaneKey::Queue(agent, _) => dispatches.push(dispatch(snap, agent, None, slice)),
                _ => {
                    self.store.dispatches(&dispatches);
                    dispatches.clear();
                    if matches!(key, LaneKey::Copies(_)) {
                        self.store.copy(&copy(snap, slice));
                    } else {
                        self.marker(key, level(key), slice);
                    }
                }
            }
        }
        self.store.dispatches(&dispatches);
    }

    fn marker(&mut self, key: LaneKey, level: u16, slice: &Slice) {
        let text = TextId(slice.what);
        if self.store.tables.markers.row(text).is_none() {
            let known: Arc<str> = self.store.names.text(text).into();
            self.store.tables.markers.text(text, &known);
        }
        let (LaneKey::Markers(thread, _) | LaneKey::Ranges(thread)) = key else {
            return;
        };
        let marker = Marker {
            process: ProcessId(slice.process),
            thread,
            text,
            span: slice.span,
            correlation: slice.correlation,
            level,
            range_id: slice.value,
        };
        self.store.marker(&marker, slice.shape != 0);
    }

    /// The stretch as a snapshot; what no record of it changes, such as losses and gauges, is that of `whole`.
    pub fn finish(mut self, whole: &Snapshot) -> Snapshot {
        self.store.origin = Some(self.window.begin);
        self.store.now = self.window.end;
        let own = self.store.snapshot(super::Fresh::All);
        let mut values = (*own.values).clone();
        let all = &whole.values;
        values.counted_from = self.window.begin;
        values.window = self.window.duration();
        values.totals.lost = all.totals.lost;
        values.rate = all.rate;
        values.processes.clone_from(&all.processes);
        values.said.clone_from(&all.said);
        values.gauges = all.gauges.clone();
        values.memory = all.memory.clone();
        values.collectives = all.collectives.clone();
        values.event_calls = all.event_calls.clone();
        values.thread_times = all.thread_times.clone();
        values.bindings = all.bindings.clone();
        Snapshot {
            now: self.window.end,
            names: own.names.clone(),
            lanes: own.lanes.clone(),
            letters: own.letters.clone(),
            values: Arc::new(values),
            open: Vec::new(),
            ..whole.clone()
        }
    }
}

fn dispatch(snap: &Snapshot, agent: AgentId, stream: Option<StreamId>, slice: &Slice) -> Dispatch {
    let shape = snap
        .values
        .shapes
        .get(slice.shape as usize)
        .copied()
        .unwrap_or_default();
    Dispatch {
        process: ProcessId(slice.process),
        kernel: KernelId(slice.what),
        agent,
        queue: QueueId(slice.queue),
        stream,
        thread: (slice.thread != u32::MAX).then_some(ThreadId(slice.thread)),
        span: slice.span,
        submit: slice.submit,
        correlation: slice.correlation,
        dispatch_id: slice.value,
        grid: shape.grid,
        workgroup: shape.workgroup,
        group_size: shape.group_size,
        private_size: shape.private_size,
        flags: slice.flags,
        site: slice.site,
    }
}

fn copy(snap: &Snapshot, slice: &Slice) -> Copy {
    let route = snap.values.copies.get(slice.what as usize).map(|copies| copies.route);
    let route = route.unwrap_or_default();
    Copy {
        process: ProcessId(slice.process),
        source: route.source,
        destination: route.destination,
        stream: (slice.queue != u32::MAX).then_some(StreamId(slice.queue)),
        thread: (slice.thread != u32::MAX).then_some(ThreadId(slice.thread)),
        span: slice.span,
        submit: slice.submit,
        correlation: slice.correlation,
        bytes: slice.value,
        direction: route.direction,
        engine: route.engine,
        flags: slice.flags,
        site: slice.site,
    }
}

fn call(thread: ThreadId, depth: u8, slice: &Slice) -> ApiCall {
    ApiCall {
        process: ProcessId(slice.process),
        thread,
        operation: OperationId(slice.what),
        span: slice.span,
        correlation: slice.correlation,
        parent: u64::from(depth),
        status: Some(slice.value as u32 as i32),
        arguments: (slice.queue != u32::MAX).then_some(TextId(slice.queue)),
        site: slice.site,
    }
}

impl Snapshot {
    /// The records that ended in a stretch of time as a separate snapshot, if all of them are still kept and are not more
    /// than `most`.
    pub fn narrowed(&self, window: Span, counted: Counted, most: usize) -> Option<Self> {
        let mut left = most;
        let mut lanes = Vec::new();
        for lane in self
            .lanes
            .iter()
            .filter(|lane| lane.last > window.begin && lane.first <= window.end)
        {
            if !counted.has(lane.key) {
                continue;
            }
            let mut slices = lane.slices(window.begin, window.end, left)?;
            slices.retain(|slice| window.has_end_of(slice.span) && !slice.is_along());
            left -= slices.len();
            // They are counted in the order in which they ended, as they come.
            slices.sort_by_key(|slice| slice.span.end);
            lanes.push((lane.key, slices));
        }
        let mut narrowing = Narrowing::of_slices(self, window);
        narrowing.slices(self, &lanes);
        Some(narrowing.finish(self))
    }

    /// The later part of a stretch of time of which all records are kept, and not more than `most`.
    pub fn kept_part(&self, window: Span, counted: Counted, most: usize) -> Span {
        let mut part = window;
        let lanes = || self.lanes.iter().filter(|lane| counted.has(lane.key));
        let each = (most / lanes().count().max(1)).max(16);
        for lane in lanes() {
            for _ in 0..48 {
                if lane.last <= part.begin || lane.has_slices(part.begin, part.end, each) {
                    break;
                }
                part.begin += part.duration().div_ceil(4);
            }
        }
        part
    }

    /// The kernels of a stretch of time from the sums by second, as a separate snapshot, and the whole seconds that it has.
    pub fn summed(&self, window: Span) -> (Self, Span) {
        let samples = self.values.seconds.samples(window);
        let rows = self.values.kernels.iter().filter_map(|row| {
            let stat = super::stats::Stat::of_sample(samples.kernels.get(&row.id)?);
            let total = stat.total;
            let numbers = KernelStat {
                stat,
                ..KernelStat::default()
            };
            Some((KernelRow { numbers, ..row.clone() }, total))
        });
        let rows: Vec<(KernelRow, u64)> = rows.collect();
        let mut totals = self.values.totals;
        let rest = samples.rest.total() as u64;
        totals.kernel_time = rows.iter().fold(rest, |sum, row| sum.saturating_add(row.1));
        let values = Values {
            counted_from: samples.span.begin,
            window: samples.span.duration(),
            kernels: Arc::new(rows.into_iter().map(|row| row.0).collect()),
            totals,
            analysis: Arc::default(),
            ..(*self.values).clone()
        };
        let summed = Self {
            now: samples.span.end.min(self.now),
            values: Arc::new(values),
            ..self.clone()
        };
        (summed, samples.span)
    }

    /// The same lanes and tables with an analysis of a stretch of time.
    #[must_use]
    pub fn analysed(&self, window: Span) -> Self {
        let values = Values {
            window: window.duration(),
            analysis: Arc::new(Cached::of_all()),
            alert_log: Arc::default(),
            ..(*self.values).clone()
        };
        Self {
            now: window.end,
            values: Arc::new(values),
            ..self.clone()
        }
    }
}
