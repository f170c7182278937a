//! The model: a [`Store`] that consumes [`Item`]s and produces [`Snapshot`]s.
//!
//! Aggregates cover the whole run in bounded memory; details are kept for a while; a pyramid has the whole past of
//! every lane. The model has no clock, file or colour: time comes with the items.
#![forbid(unsafe_code)]

pub mod analysis;
mod apply;
pub mod ask;
pub mod bindings;
mod calls;
pub mod collectives;
mod counted_apart;
mod delta;
pub mod derived;
pub mod event_calls;
mod fx_hash;
pub mod gauges;
mod histogram_delta;
mod idle;
pub mod job;
pub mod kernel_counters;
mod kernels;
pub mod lane;
mod lane_eviction;
mod lanes;
mod launch_config;
mod markers;
pub mod memory;
pub mod names;
mod narrowed;
pub mod occupancy;
pub mod output;
mod placement;
mod pyramid;
pub mod query;
pub mod range_attribution;
pub mod recall;
pub mod report;
mod rows;
pub mod sampled;
pub mod seconds;
pub mod series;
mod shared_gpu;
pub mod sites;
pub mod snapshot;
pub mod stats;
pub mod subject;
pub mod table;
pub mod tally;
pub mod thread_times;
mod transfers;
pub mod trigger;
mod union;

use std::collections::VecDeque;
use std::sync::Arc;

pub use self::counted_apart::CountedApart;
pub use self::lane::{Column, Lane, LaneKey, Origin, Resolution, Slice};
pub use self::markers::Markers;
pub use self::names::{Class, Names};
pub use self::narrowed::{Counted, Narrowing};
pub use self::pyramid::Bucket;
use self::sampled::Sampled;
pub use self::snapshot::{Mode, Snapshot, Totals, Values};

pub use self::fx_hash::FastMap;

use self::analysis::usage::has_kernels;
use self::analysis::{LoggedAlert, Thresholds};
use self::bindings::Bindings;
use self::collectives::Collectives;
use self::event_calls::EventCalls;
use self::gauges::Gauges;
use self::lane::Rooms;
use self::lane_eviction::ThreadLanes;
use self::lanes::Drawn;
use self::memory::Memory;
use self::output::Output;
use self::pyramid::Reach;
use self::recall::Recall;
use self::shared_gpu::SharedState;
use self::sites::Sites;
use self::snapshot::{Fault, Loading, ProcessRow, StatusReport, ending};
use self::table::Tables;
use self::tally::Counting;
use self::thread_times::ThreadTimes;
use self::transfers::Transfers;
use self::union::Gathered;
use roctop_ring::level::Level;
use roctop_ring::record::status;
use roctop_trace::decode::Decoded;
use roctop_trace::item::{
    Copy, Exit, Health, Item, KernelId, LossReason, Lost, Marker, Nanos, Open, Process, ProcessId, Span, session_origin,
};
use roctop_trace::kernel_name::Aliases;
use roctop_trace::pc_sampling::Sample;
use roctop_trace::site::{Frame, Line};

/// Limits and origin of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Live session or recording.
    pub mode: Mode,
    /// Title: the command line. If empty, that of the first process.
    pub title: String,
    /// Start of the program, CLOCK_BOOTTIME ns, until the first record; `None` if unknown.
    pub began: Option<Nanos>,
    /// From when times count, if another viewer has seen records that are not here; `None`: from the first record.
    pub origin: Option<Nanos>,
    /// Whether the timeline is kept: lanes with slices, and when each GPU was busy. Tables and reports do without.
    pub timeline: bool,
    /// Maximum number of slices kept.
    pub slices: usize,
    /// Private memory that the process may use, bytes: fewer slices are kept if other data take more than expected; see
    /// [`Store::uses`]. `None`: no limit.
    pub memory: Option<u64>,
    /// Minimum age of slices that are forgotten while there is room, ns.
    pub keep: u64,
    /// User-defined kernel names: the first alias that matches the demangled or the mangled name.
    pub aliases: Aliases,
    /// Length of the window for shares, ns.
    pub window: u64,
    /// Thresholds of the alerts.
    pub thresholds: Thresholds,
}

impl Options {
    /// Number of slices that fit into `memory` bytes, without the part for tables, pyramids, and snapshots that still
    /// hold forgotten slices.
    pub const fn slices_in(memory: u64) -> usize {
        const OTHER_MEMORY: u64 = 160 << 20;
        Self::slices_beside(OTHER_MEMORY, memory)
    }

    /// Number of slices that fit into `memory` bytes beside `other` bytes, an eighth of it at least.
    const fn slices_beside(other: u64, memory: u64) -> usize {
        let left = memory.saturating_sub(other);
        let part = if left > memory / 8 { left } else { memory / 8 };
        (part / size_of::<Slice>() as u64) as usize
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Live,
            title: String::new(),
            began: None,
            origin: None,
            timeline: true,
            slices: 1_000_000,
            memory: None,
            keep: 120_000_000_000,
            aliases: Aliases::default(),
            window: 10_000_000_000,
            thresholds: Thresholds::default(),
        }
    }
}

/// Part of a snapshot that is recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// The clock and the timeline; values are those of the previous snapshot.
    Head,
    /// Everything.
    All,
}

/// Maximum valid time (36 years after boot).
const LATEST: Nanos = 1 << 60;
/// Number of a lane's dispatches to which the first PC samples can refer.
const MAX_SAMPLED_DISPATCHES: usize = 4096;
const MAX_STATUS_REPORTS: usize = 500;

/// Kind and index of open work that ended.
enum Closed {
    Call(usize),
    Range(usize),
    Dispatch(usize),
}

/// Id range of open work by kind: most work that ends was never listed as open, and this check is fast.
#[derive(Clone, Copy, Debug, Default)]
struct OpenBounds {
    calls: Option<(u64, u64)>,
    ranges: Option<(u64, u64)>,
    dispatches: Option<(u64, u64)>,
}

impl OpenBounds {
    fn of(open: &Open) -> Self {
        fn bounds(ids: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
            ids.fold(None, |known, id| {
                let (low, high) = known.unwrap_or((id, id));
                Some((low.min(id), high.max(id)))
            })
        }
        Self {
            calls: bounds(open.calls.iter().map(|call| call.correlation)),
            ranges: bounds(open.ranges.iter().map(|range| range.correlation)),
            dispatches: bounds(open.dispatches.iter().map(|dispatch| dispatch.dispatch_id)),
        }
    }
}

fn is_within(bounds: Option<(u64, u64)>, id: u64) -> bool {
    bounds.is_some_and(|(low, high)| low <= id && id <= high)
}

#[derive(Debug, Default)]
struct AgentState {
    busy: Gathered,
    dispatches: u64,
    /// Lane of its busy time.
    lane: u32,
    idle: idle::Account,
    /// Sum of the durations of its kernels, ns.
    kernel_time: u64,
    /// Whether it has had work, and the index of its shared GPU if other processes use it too.
    is_used: bool,
    shared: Option<u32>,
}

/// Clamps invalid and reversed spans.
fn credible(span: Span) -> Span {
    match span {
        Span { begin, end } if begin > LATEST || end > LATEST => Span::default(),
        Span { begin, end } => Span {
            begin,
            end: end.max(begin),
        },
    }
}

/// A marker with a credible span.
fn credible_marker(marker: &Marker) -> Marker {
    Marker {
        span: credible(marker.span),
        ..*marker
    }
}

/// All state.
#[derive(Debug, Default)]
pub struct Store {
    options: Options,
    names: Arc<Names>,
    tables: Tables,
    lanes: Vec<Drawn>,
    lane_ids: FastMap<LaneKey, u32>,
    of_threads: ThreadLanes,
    /// Lane of the last dispatch of each queue.
    queue_lanes: Vec<u32>,
    /// Lane of the last call of each thread.
    thread_lanes: Vec<u32>,
    agents: Vec<AgentState>,
    shared_gpus: Vec<SharedState>,
    room: apply::Room,
    processes: Vec<ProcessRow>,
    /// Id range of the open work of each process.
    open_bounds: Vec<OpenBounds>,
    said: VecDeque<StatusReport>,
    gauges: Gauges,
    memory: Memory,
    collectives: Collectives,
    sampled: Sampled,
    output: Output,
    letters: Arc<Vec<KernelId>>,
    totals: Totals,
    slices: usize,
    explaining: idle::Explaining,
    /// Most slices that were kept at [`Store::uses`].
    most_slices: usize,
    rooms: Rooms,
    missed: Option<Arc<str>>,
    origin: Option<Nanos>,
    now: Nanos,
    samples: VecDeque<(Nanos, u64)>,
    copies_with_blits: bool,
    transfers: Transfers,
    alert_log: Arc<Vec<LoggedAlert>>,
    event_calls: EventCalls,
    thread_times: ThreadTimes,
    bindings: Bindings,
    sites: Arc<Sites>,
    /// Of a store that holds a part of the past only: how far its lanes reach.
    reach: Option<Reach>,
    recall: Recall,
    loading: Loading,
    faults: Arc<[Fault]>,
    counting: Option<Arc<Counting>>,
    /// From when on records are counted; 0 for the begin.
    counted_from: Nanos,
    /// See [`Store::parts`].
    counts_apart: bool,
    /// Whether anything that tables show came since the values were made.
    is_new: bool,
    values: Option<Arc<Values>>,
}

impl Store {
    /// An empty store.
    pub fn new(options: Options) -> Self {
        let mut store = Self {
            origin: options.origin,
            options,
            collectives: Collectives::keeping_all(),
            ..Self::default()
        };
        // In a recording, a range may be closed after any amount of its work.
        if store.options.mode == Mode::Replay {
            store.want_work();
        }
        store
    }

    /// Applies items in order.
    pub fn apply_all<'a>(&mut self, items: impl IntoIterator<Item = &'a Item>) {
        for item in items {
            self.apply(item);
        }
        self.collective_slices();
    }

    /// From when times count, once there is a record.
    pub const fn origin(&self) -> Option<Nanos> {
        self.origin
    }

    /// Applies decoder output.
    pub fn take(&mut self, decoded: &Decoded<'_>) {
        self.is_new |= !(decoded.calls.is_empty() && decoded.dispatches.is_empty());
        self.apply_all(decoded.items);
        self.calls(decoded.calls);
        self.dispatches(decoded.dispatches);
        self.collective_slices();
    }

    /// Applies one item.
    pub fn apply(&mut self, item: &Item) {
        // These items change no table.
        self.is_new |= !matches!(
            item,
            Item::Now(_) | Item::Open(_) | Item::Device(_) | Item::Counter(_) | Item::Count(_) | Item::Output(_)
        );
        match item {
            Item::Process(process) => self.process(process),
            Item::Ended { process, exit, at } => {
                self.row(*process, |row| row.exit = Some((*exit, (*at).min(LATEST))));
            }
            Item::Agent(agent) => Arc::make_mut(&mut self.names).put_agent(agent.clone()),
            Item::Kernel(kernel) => {
                let alias = self.options.aliases.of(&kernel.name, &kernel.mangled);
                Arc::make_mut(&mut self.names).put_kernel(kernel.clone(), alias);
            }
            Item::Queue(queue) => Arc::make_mut(&mut self.names).put_queue(*queue),
            Item::Stream(stream) => Arc::make_mut(&mut self.names).put_stream(stream.clone()),
            Item::Thread(thread) => Arc::make_mut(&mut self.names).put_thread(thread.clone()),
            Item::Operation(operation) => Arc::make_mut(&mut self.names).put_operation(operation.clone()),
            Item::Text(id, text) => {
                if !self.counts_apart {
                    self.tables.markers.text(*id, text);
                    self.tables.calls.text(*id, text);
                }
                Arc::make_mut(&mut self.names).put_text(*id, text.clone());
            }
            Item::Api(call) => self.calls(std::slice::from_ref(call)),
            Item::Dispatch(dispatch) => self.dispatches(std::slice::from_ref(dispatch)),
            Item::Copy(copy) => self.copy(&Copy {
                span: credible(copy.span),
                ..*copy
            }),
            Item::Transfer(transfer) => self.transfer(transfer),
            Item::EventCall(call) => self.event_calls.add(call),
            Item::ThreadTime(time) => self.thread_times.add(time),
            Item::Binding(process, binding) => self.bindings.add(*process, binding),
            Item::Site(process, fact) => Arc::make_mut(&mut self.sites).add(*process, fact),
            Item::Communicator(communicator) => self.collectives.communicator(communicator),
            Item::Communication(call) => self.collectives.communication(call),
            Item::Message(call) => self.collectives.message(call),
            Item::Allocation(allocation) => self.allocation(allocation),
            // For exports only; the screen gets gauges and counters as devices and counts.
            Item::Scratch(_)
            | Item::Gauges(_)
            | Item::CounterInfo(_)
            | Item::CounterValue(_)
            | Item::CounterInstances(_)
            | Item::Sampling(_) => {}
            Item::PcSample(sample) => self.pc_sample(sample),
            Item::Mark(marker) => self.marker(&credible_marker(marker), true),
            Item::Range(marker) => self.marker(&credible_marker(marker), false),
            Item::CallAlong(call) => self.call_along(call),
            Item::RangeAlong(marker) => self.draw_marker(&credible_marker(marker), false, Slice::ALONG),
            Item::Open(open) => self.open(open),
            Item::Lost {
                process,
                reason,
                records,
            } => self.lost(*process, *reason, *records),
            Item::Level { process, step, text } => {
                if step.to >= Level::Plain {
                    self.collectives.unrecorded(*process);
                }
                self.row(*process, |row| row.level = Some((step.to, text.clone())));
            }
            Item::Status { process, code, text } => {
                match *code {
                    status::COUNTING => self.row(*process, |row| row.counting = Some(true)),
                    status::RESTING => self.row(*process, |row| row.counting = Some(false)),
                    status::INCOMPLETE => self.row(*process, |row| row.misses(text)),
                    _ => {}
                }
                self.said.push_back(StatusReport {
                    process: *process,
                    code: *code,
                    text: text.clone(),
                });
                if self.said.len() > MAX_STATUS_REPORTS {
                    self.said.pop_front();
                }
            }
            Item::ClockCost { process, picoseconds } => self.row(*process, |row| row.reading = Some(*picoseconds)),
            Item::Switched { process, on, .. } => self.switched(*process, *on),
            Item::Device(device) => {
                if self.names.gpu_number(device.node) != Some(device.number) {
                    Arc::make_mut(&mut self.names).put_gpu(device.node, device.number);
                }
                self.gauges.device(device);
            }
            Item::Counter(counter) => self.gauges.counter(counter),
            Item::Count(count) => self.gauges.count(count),
            Item::Output(bytes) => self.output.write(bytes),
            Item::Now(now) => self.tick((*now).min(LATEST)),
        }
    }

    /// Adds a PC sample. The first one collects the kernels of recent and incomplete dispatches, which were not kept
    /// before.
    fn pc_sample(&mut self, sample: &Sample) {
        if self.sampled.is_empty() {
            let kernels = self.lanes.iter().filter(|drawn| has_kernels(drawn.lane.key));
            for slice in kernels.flat_map(|drawn| drawn.lane.recent(MAX_SAMPLED_DISPATCHES)) {
                let process = ProcessId(slice.process);
                self.sampled.dispatched(process, slice.value, KernelId(slice.what));
            }
        }
        self.sampled.add(sample);
    }

    /// Sets the report on programs that use ROCm without a collector.
    pub fn missed(&mut self, report: Option<String>) {
        self.missed = report.map(Into::into);
        self.is_new = true;
    }

    /// Sets the health of processes.
    pub fn health(&mut self, all: &[Health]) {
        let now = self.now;
        for health in all {
            self.row(health.process, |row| {
                if let Some((_, before)) = row.health
                    && now > before
                {
                    let records = row.records.saturating_sub(row.counted);
                    row.rate = records as f64 * 1e9 / (now - before) as f64;
                    row.rates.add(now, row.rate);
                }
                row.counted = row.records;
                if let Some(resident) = health.resident {
                    row.resident.add(now, resident as f64);
                }
                row.health = Some((*health, now));
            });
        }
    }

    fn process(&mut self, process: &Process) {
        Arc::make_mut(&mut self.names).put_process(process.clone());
        self.row(process.id, |row| row.process = process.clone());
        self.collectives.machine(process.id, process.machine);
        // A process without a ring does not affect the origin.
        if process.since > 0 && process.since < LATEST && !process.exe.is_empty() {
            self.began(process.since);
        }
    }

    /// Recording was switched on or off.
    fn switched(&mut self, process: ProcessId, on: bool) {
        if !on {
            self.collectives.misses_calls(process);
        }
        self.row(process, |row| row.recording = on);
    }

    /// Updates a process's row, which is created if needed.
    fn row(&mut self, process: ProcessId, change: impl FnOnce(&mut ProcessRow)) {
        let at = process.0 as usize;
        if at > 1 << 16 {
            return;
        }
        while self.processes.len() <= at {
            let process = Process {
                id: ProcessId(self.processes.len() as u32),
                ..Process::default()
            };
            self.processes.push(ProcessRow {
                process,
                recording: true,
                ..ProcessRow::default()
            });
        }
        change(&mut self.processes[at]);
    }

    fn open(&mut self, open: &Open) {
        self.collectives.in_flight(open.process, &open.dispatches);
        let mut open = open.clone();
        let clamp = |at: &mut Nanos| *at = (*at).min(LATEST);
        open.calls.iter_mut().for_each(|call| clamp(&mut call.span.begin));
        open.ranges.iter_mut().for_each(|range| clamp(&mut range.span.begin));
        open.dispatches
            .iter_mut()
            .for_each(|dispatch| clamp(&mut dispatch.submit));
        if !self.sampled.is_empty() {
            for one in &open.dispatches {
                self.sampled.dispatched(one.process, one.dispatch_id, one.kernel);
            }
        }
        if !open.ranges.is_empty() {
            self.want_work();
        }
        // They arrive by queue; closing looks them up by number.
        open.dispatches.sort_by_key(|dispatch| dispatch.dispatch_id);
        let (now, at) = (self.now, open.process.0 as usize);
        let bounds = OpenBounds::of(&open);
        self.row(open.process, |row| {
            row.open = Arc::new(open);
            row.looked = (row.open.clone(), now);
        });
        if at < self.processes.len() {
            if self.open_bounds.len() <= at {
                self.open_bounds.resize_with(at + 1, OpenBounds::default);
            }
            self.open_bounds[at] = bounds;
        }
    }

    fn lost(&mut self, process: ProcessId, reason: LossReason, records: u64) {
        if records > 0 && reason.is_of_calls() {
            self.collectives.misses_calls(process);
        }
        self.row(process, |row| match row.lost.iter_mut().find(|loss| loss.0 == reason) {
            Some(loss) => loss.1 = records,
            None => row.lost.push((reason, records)),
        });
        let losses = self.processes.iter().map(ProcessRow::lost_total);
        self.totals.lost = losses.fold(Lost::default(), Lost::and);
    }

    fn began(&mut self, at: Nanos) {
        self.origin = session_origin(self.origin, at);
    }

    fn seen(&mut self, process: ProcessId, span: Span) {
        self.seen_all(process, std::iter::once(span));
    }

    /// Extends the clock and origin by these spans.
    fn seen_all(&mut self, process: ProcessId, spans: impl Iterator<Item = Span>) {
        let mut count = 0;
        for span in spans {
            count += 1;
            // A viewer that came late counts from the first record that it sees.
            if self.options.origin.is_some() && span.end > 0 && (self.counted_from == 0 || span.end < self.counted_from)
            {
                self.counted_from = span.end;
            }
            // Threads are read one after another: the earliest record may arrive late.
            if span.begin > 0 && self.origin.is_none_or(|origin| span.begin < origin) {
                self.began(span.begin);
            }
            // In a live session the clock comes with the polls; in a recording it is the last record.
            self.now = self.now.max(span.end);
        }
        self.row(process, |row| row.records += count);
    }

    /// Removes work from the open work if it has ended since the last reading.
    fn close(&mut self, process: ProcessId, close: impl FnOnce(&Open) -> Option<Closed>) {
        let Some(row) = self.processes.get_mut(process.0 as usize) else {
            return;
        };
        match close(&row.open) {
            Some(Closed::Call(at)) => drop(Arc::make_mut(&mut row.open).calls.remove(at)),
            Some(Closed::Range(at)) => drop(Arc::make_mut(&mut row.open).ranges.remove(at)),
            Some(Closed::Dispatch(at)) => drop(Arc::make_mut(&mut row.open).dispatches.remove(at)),
            None => {}
        }
    }

    /// Advances the clock. It stops when all processes have ended, so that the last moments stay on the screen.
    fn tick(&mut self, now: Nanos) {
        if self.ended().is_some() {
            return;
        }
        self.now = self.now.max(now);
        if self.samples.back().is_none_or(|last| now >= last.0 + 250_000_000) {
            self.samples.push_back((now, self.totals.records()));
        }
        while self.samples.len() > 9 {
            self.samples.pop_front();
        }
    }

    fn rate(&self) -> f64 {
        if self.ended().is_some() {
            return 0.0;
        }
        match (self.samples.front(), self.samples.back()) {
            (Some(old), Some(new)) if new.0 > old.0 => (new.1 - old.1) as f64 * 1e9 / (new.0 - old.0) as f64,
            _ => 0.0,
        }
    }

    /// Sets how far the recording has been read.
    pub const fn set_loading(&mut self, loading: Loading) {
        self.loading = loading;
        self.is_new = true;
    }

    /// Sets what is wrong with the recording.
    pub fn set_faults(&mut self, faults: impl IntoIterator<Item = Fault>) {
        self.faults = faults.into_iter().collect();
        self.is_new = true;
        // Alerts show them, and in a recording no time passes that would be a reason for another analysis.
        self.values = None;
    }

    /// Sets what was counted for a filter.
    pub fn set_counting(&mut self, counting: Option<Counting>) {
        self.counting = counting.map(Arc::new);
        self.is_new = true;
    }

    /// What is known of call sites.
    pub const fn sites(&self) -> &Arc<Sites> {
        &self.sites
    }

    /// Names frames of call sites.
    pub fn name_frames(&mut self, found: &[(Frame, Vec<Line>)]) {
        let sites = Arc::make_mut(&mut self.sites);
        for (frame, lines) in found {
            sites.name(*frame, lines);
        }
        self.is_new = true;
    }

    /// The process uses this much private memory, bytes. What is not slices leaves less room for them: within the limit of
    /// [`Options::memory`], fewer are kept from now on.
    pub fn uses(&mut self, bytes: u64) {
        let Some(memory) = self.options.memory else { return };
        // The allocator keeps what forgotten slices leave.
        self.most_slices = self.most_slices.max(self.slices);
        let other = bytes.saturating_sub((self.most_slices * size_of::<Slice>()) as u64);
        let room = Options::slices_beside(other, memory);
        if room < self.options.slices {
            self.options.slices = room;
            self.make_room();
        }
    }

    /// Whether anything that tables show has changed since the last complete snapshot.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// A snapshot of the current state.
    pub fn snapshot(&mut self, fresh: Fresh) -> Arc<Snapshot> {
        self.collective_slices();
        if self.sites.is_unsettled() {
            Arc::make_mut(&mut self.sites).settle();
        }
        (0..self.agents.len()).for_each(|agent| self.settle(agent));
        let values = match (&self.values, fresh) {
            (Some(values), Fresh::Head) => values.clone(),
            _ => Arc::new(self.make_values()),
        };
        self.values = Some(values.clone());
        let root = self.processes.first();
        let title = match root {
            Some(row) if self.options.title.is_empty() => row.process.command.clone(),
            _ => self.options.title.as_str().into(),
        };
        Arc::new(Snapshot {
            mode: self.options.mode,
            title,
            now: self.now,
            origin: self.origin.or(self.options.began).unwrap_or(self.now),
            names: self.names.clone(),
            sites: self.sites.clone(),
            values,
            lanes: Arc::new(self.lanes.iter_mut().map(Drawn::show).collect()),
            output: self.output.lines(),
            open: self.open_now(),
            ended: self.ended(),
            missed: self.missed.clone(),
            letters: self.letters.clone(),
            recall: self.recall.clone(),
            loading: self.loading,
            faults: self.faults.clone(),
            counting: self.counting.clone(),
            thresholds: self.options.thresholds,
            job: None,
        })
    }

    /// A complete snapshot for somebody else than the screen: for the screen, what is new stays new.
    pub fn glance(&mut self) -> Arc<Snapshot> {
        let was_new = self.is_new;
        let snapshot = self.snapshot(Fresh::All);
        self.is_new |= was_new;
        snapshot
    }

    /// Drops the names of a process that has ended, before any of its records was counted.
    pub fn forget(&mut self, process: ProcessId) {
        Arc::make_mut(&mut self.names).forget(process);
    }

    /// Records are counted from `at` on: earlier ones did not come here.
    pub const fn count_from(&mut self, at: Nanos) {
        self.counted_from = at;
    }

    /// From when on records are counted; 0 from the begin. What came before a late viewer's first record is the program's
    /// start, if it is short.
    fn counted_from(&self) -> Nanos {
        const START: Nanos = 1_000_000_000;
        let began = self.options.origin.unwrap_or(0);
        if self.counted_from > began.saturating_add(START) {
            self.counted_from
        } else {
            0
        }
    }

    fn open_now(&self) -> Vec<Arc<Open>> {
        let rows = self.processes.iter().map(|row| &row.open);
        rows.filter(|open| !(open.calls.is_empty() && open.ranges.is_empty() && open.dispatches.is_empty()))
            .cloned()
            .collect()
    }

    /// Exit of the program, when all processes have ended.
    fn ended(&self) -> Option<Exit> {
        let all = self.processes.iter().all(|row| row.exit.is_some());
        ending(&self.processes).filter(|_| all).map(|exit| exit.0)
    }
}

#[cfg(test)]
mod tests;
