//! Decodes the records of all processes of a session into items: dense ids, names, one clock.
//!
//! Decoding is total. An unknown object gets a name that says so. A record that cannot be converted yet, because the
//! process has fewer than two calibration samples, waits in a bounded list.

mod communication;
mod counters;
mod events;
mod facts;
mod ids;
mod memory;
mod names;
mod plain;
mod queue;
mod recent;
mod run;
mod work;

use crate::clock::{Clock, Sample};
use crate::item::{
    Agent, AgentId, ApiCall, CounterId, Dispatch, Exit, Item, KernelId, LossReason, Nanos, OperationId, Process,
    ProcessId, Queue, QueueId, Span, StreamId, ThreadId,
};
use crate::raw::{Raw, RawSink, each};
use events::has_stream;
use facts::Symbol;
use ids::Placement;
use names::Names;
pub use names::OVERFLOW_TEXT;
pub use plain::Plain;
use recent::{Objects, Recent};
use roctop_ring::layout::counter;
use roctop_ring::reader::Thread as RingThread;
use roctop_ring::record::{self, Body, Domain, Head, Slot};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

/// Kernel tick, the unit of a process's start time, ns.
const TICK: u64 = 10_000_000;
/// Maximum number of records that wait for a process's second calibration sample.
const MAX_WAITING: usize = 1 << 20;

/// Decoder of a session: feed it as a [`RawSink`], then take the items.
#[derive(Default)]
pub struct Decoder {
    names: Names,
    processes: Vec<Entry>,
    /// First process of each machine; empty while there is only one machine.
    machines: Vec<(ProcessId, u32)>,
    /// What is recorded of the processes from each of these on; empty while it is the whole run of all.
    stretches: Vec<(ProcessId, Option<Span>)>,
    recent: LookupCache,
    counter_join: counters::CounterJoin,
    items: Vec<Item>,
    /// Calls and dispatches are collected in separate lists instead of as items.
    is_by_kind: bool,
    calls: Vec<ApiCall>,
    dispatches: Vec<Dispatch>,
    /// In a fork for [`Decoder::plain`], records of other kinds than calls and dispatches: they are kept and not decoded.
    apart: Option<Vec<Slot>>,
}

/// Decoder output. Calls and dispatches refer only to entities in `items` or in earlier output.
#[derive(Clone, Copy, Debug)]
pub struct Decoded<'a> {
    /// All items except calls and dispatches.
    pub items: &'a [Item],
    /// Calls, ordered by end within each thread.
    pub calls: &'a [ApiCall],
    /// Dispatches.
    pub dispatches: &'a [Dispatch],
}

/// Decoder output that is kept, for another thread.
#[derive(Debug, Default)]
pub struct Output {
    /// See [`Decoded::items`].
    pub items: Vec<Item>,
    /// See [`Decoded::calls`].
    pub calls: Vec<ApiCall>,
    /// See [`Decoded::dispatches`].
    pub dispatches: Vec<Dispatch>,
}

impl Output {
    /// The output as the decoder has it.
    pub fn decoded(&self) -> Decoded<'_> {
        Decoded {
            items: &self.items,
            calls: &self.calls,
            dispatches: &self.dispatches,
        }
    }

    /// Drops the output and keeps its memory.
    pub fn clear(&mut self) {
        self.items.clear();
        self.calls.clear();
        self.dispatches.clear();
    }
}

/// Not a valid process number: a session has far fewer processes.
const NO_PROCESS: u32 = u32::MAX;

/// Cached lookups that every record needs, by process and number.
struct LookupCache {
    kernels: Objects,
    places: Recent<(u32, u32, u32, u32, u32), Placement>,
    queues: Recent<(u32, u32), QueueId>,
    streams: Recent<(u32, u32), StreamId>,
    threads: Recent<(u32, u32), ThreadId>,
    operations: Recent<(u32, u8, u16), OperationId>,
}

impl Default for LookupCache {
    fn default() -> Self {
        Self {
            kernels: Objects::default(),
            places: Recent::new(8, (NO_PROCESS, 0, 0, 0, 0), Placement::default()),
            queues: Recent::new(8, (NO_PROCESS, 0), QueueId(0)),
            streams: Recent::new(8, (NO_PROCESS, 0), StreamId(0)),
            threads: Recent::new(8, (NO_PROCESS, 0), ThreadId(0)),
            operations: Recent::new(9, (NO_PROCESS, 0, 0), OperationId(0)),
        }
    }
}

/// A process of the session. A recorder that runs for weeks sees many that end: a forgotten one takes 16 bytes.
#[derive(Clone, Default)]
struct Entry {
    /// It ended long ago: see [`Decoder::forget`].
    is_forgotten: bool,
    /// None before its first record, and when it is forgotten.
    state: Option<Box<State>>,
}

/// State of a process without records.
static EMPTY: LazyLock<State> = LazyLock::new(State::default);

impl Deref for Entry {
    type Target = State;
    fn deref(&self) -> &State {
        self.state.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for Entry {
    fn deref_mut(&mut self) -> &mut State {
        self.state.get_or_insert_default()
    }
}

/// Decoding state of one process.
#[derive(Clone, Default)]
struct State {
    known: bool,
    clock: Clock,
    strings: HashMap<u32, Arc<str>>,
    agents: Vec<Option<Agent>>,
    symbols: HashMap<u64, Vec<Symbol>>,
    symbol_count: u32,
    /// Kernels by code object and string id of the name.
    code_kernels: HashMap<(u64, u32), KernelId>,
    queues: HashMap<u32, Queue>,
    /// Communicator facts whose times cannot be converted yet.
    communicator_facts: Vec<record::Communicator>,
    /// Queue facts whose times cannot be converted yet.
    queue_facts: Vec<record::Queue>,
    streams: HashMap<u32, StreamId>,
    threads: HashMap<u32, ThreadId>,
    /// Thread ids that the program named; the kernel's name does not replace these.
    named_threads: HashSet<u32>,
    operations: HashMap<(u8, u16), OperationId>,
    operation_names: HashMap<(u8, u16), Arc<str>>,
    counters: HashMap<u32, CounterId>,
    /// Topology node by agent index of the process.
    nodes: HashMap<u32, u32>,
    waiting: Vec<(RingThread, Vec<Slot>)>,
    /// Records that did not come, by reason.
    missing: BTreeMap<LossReason, u64>,
    losses: HashMap<LossReason, u64>,
    /// APUs, whose clock is offset from the host's.
    skewed: Vec<AgentId>,
    /// Whether a note about moved APU work was emitted.
    is_moved: bool,
    /// Copies in flight at the last reading of the counters.
    copies: u64,
}

impl Decoder {
    /// A decoder that keeps calls and dispatches apart from the other items, for [`Decoder::decoded`].
    pub fn by_kind() -> Self {
        Self {
            is_by_kind: true,
            ..Self::default()
        }
    }

    /// The decoder with an id for every text of a marker or of arguments, without a limit.
    #[must_use]
    pub const fn with_unlimited_texts(mut self) -> Self {
        self.names.is_unlimited = true;
        self
    }

    /// Whether it keeps calls and dispatches apart from the other items.
    pub const fn is_by_kind(&self) -> bool {
        self.is_by_kind
    }

    /// Another decoder by kind, which gives all that is known the same numbers: for records that are read again.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut processes = self.processes.clone();
        for process in &mut processes {
            process.waiting.clear();
        }
        Self {
            names: self.names.clone(),
            processes,
            machines: self.machines.clone(),
            stretches: self.stretches.clone(),
            ..Self::by_kind()
        }
    }

    /// The clocks of all processes that have one.
    pub fn clocks(&self) -> impl Iterator<Item = (ProcessId, &Clock)> {
        let numbered = (0..).zip(&self.processes);
        numbered
            .map(|(process, state)| (ProcessId(process), &state.clock))
            .filter(|(_, clock)| clock.is_ready())
    }

    /// Output since the last [`Decoder::clear`].
    pub fn decoded(&self) -> Decoded<'_> {
        Decoded {
            items: &self.items,
            calls: &self.calls,
            dispatches: &self.dispatches,
        }
    }

    /// Number of items, calls and dispatches since the last [`Decoder::clear`].
    pub fn pending(&self) -> usize {
        self.items.len() + self.calls.len() + self.dispatches.len()
    }

    /// Drops the output and keeps its memory.
    pub fn clear(&mut self) {
        self.items.clear();
        self.calls.clear();
        self.dispatches.clear();
    }

    /// Moves the output to `empty`, and continues in the memory that was there.
    pub fn move_output(&mut self, empty: &mut Output) {
        empty.clear();
        std::mem::swap(&mut self.items, &mut empty.items);
        std::mem::swap(&mut self.calls, &mut empty.calls);
        std::mem::swap(&mut self.dispatches, &mut empty.dispatches);
    }

    /// Removes and returns the items.
    pub fn take_items(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.items)
    }

    /// Clock of a process; `None` if the process is unknown.
    pub fn clock(&self, process: ProcessId) -> Option<&Clock> {
        self.processes.get(process.0 as usize).map(|state| &state.clock)
    }

    /// Adds clock samples that come later in the stream, so that every time is converted with all of them. A recording
    /// is read twice for this.
    pub fn preload_clock(&mut self, process: ProcessId, samples: &[Sample]) {
        let state = self.state(process);
        for sample in samples {
            state.clock.add(*sample);
        }
    }

    /// Declares that processes from `first` on ran on `machine`. Calls come in order of process id.
    pub fn preload_machine(&mut self, first: ProcessId, machine: u32) {
        self.machines.push((first, machine));
    }

    /// Drops the strings and names of a process that has ended, and of its threads, streams and queues. If more of it
    /// comes, that is dropped, too. What other processes share with it stays.
    pub fn forget(&mut self, process: ProcessId) {
        let Some(entry) = self.processes.get_mut(process.0 as usize) else {
            return;
        };
        entry.is_forgotten = true;
        let state = entry.state.take();
        for queue in state.iter().flat_map(|state| state.queues.values()) {
            self.names.forget_queue(queue.id);
        }
    }

    fn is_forgotten(&self, process: ProcessId) -> bool {
        self.processes
            .get(process.0 as usize)
            .is_some_and(|entry| entry.is_forgotten)
    }

    /// Declares that of processes from `first` on this stretch of time is recorded. Calls come in order of process id.
    pub fn preload_stretch(&mut self, first: ProcessId, stretch: Option<Span>) {
        if stretch.is_some() || !self.stretches.is_empty() {
            self.stretches.push((first, stretch));
        }
    }

    /// The stretch of time that is recorded of a process, if it is not the whole run.
    fn stretch(&self, process: ProcessId) -> Option<Span> {
        self.stretches.iter().rfind(|known| known.0 <= process)?.1
    }

    /// Whether a call or range is outside of the recorded stretch of time: what it caused has brought it.
    fn is_along(&self, process: ProcessId, span: Span) -> bool {
        !self.stretches.is_empty() && self.stretch(process).is_some_and(|stretch| !stretch.has_end_of(span))
    }

    fn machine(&self, process: ProcessId) -> u32 {
        let known = self.machines.iter().rfind(|known| known.0 <= process);
        known.map_or(0, |known| known.1)
    }

    fn state(&mut self, process: ProcessId) -> &mut State {
        let index = process.0 as usize;
        if self.processes.len() <= index {
            self.processes.resize_with(index + 1, Entry::default);
        }
        &mut self.processes[index]
    }

    fn header(&mut self, process: ProcessId, header: &roctop_ring::layout::Header) {
        let (machine, stretch) = (self.machine(process), self.stretch(process));
        let state = self.state(process);
        if std::mem::replace(&mut state.known, true) {
            return;
        }
        let item = Process {
            id: process,
            pid: header.pid,
            parent: header.ppid,
            rank: u32::try_from(header.rank).ok(),
            host: header.host.as_str().into(),
            machine,
            exe: header.exe.as_str().into(),
            command: header.command.as_str().into(),
            since: if header.exe.is_empty() {
                header.start_ticks.saturating_mul(TICK)
            } else {
                0
            },
            created: header.created,
            pid_namespace: header.pid_namespace,
            stretch,
        };
        self.items.push(Item::Process(item));
    }

    fn emit_call(&mut self, call: ApiCall) {
        if self.is_along(call.process, call.span) {
            self.items.push(Item::CallAlong(call));
        } else if self.is_by_kind {
            self.calls.push(call);
        } else {
            self.items.push(Item::Api(call));
        }
    }

    fn emit_dispatch(&mut self, dispatch: Dispatch) {
        if self.is_by_kind {
            self.dispatches.push(dispatch);
        } else {
            self.items.push(Item::Dispatch(dispatch));
        }
        self.join_dispatch(&dispatch);
    }

    /// Whether no record of the process waits, so that new records can be converted at once.
    fn is_ready(&mut self, process: ProcessId) -> bool {
        let state = self.state(process);
        state.clock.is_ready()
            && state.queue_facts.is_empty()
            && state.communicator_facts.is_empty()
            && state.waiting.is_empty()
    }

    fn record(&mut self, process: ProcessId, thread: RingThread, slots: &[Slot]) {
        let state = self.state(process);
        if !state.clock.is_ready() {
            if state.waiting.len() < MAX_WAITING {
                state.waiting.push((thread, slots.to_vec()));
            } else {
                self.miss(process, LossReason::Overwritten, 1);
            }
            return;
        }
        if !state.queue_facts.is_empty() {
            self.queue_times(process);
        }
        self.communicator_times(process);
        let state = self.state(process);
        if !state.waiting.is_empty() {
            for (thread, slots) in std::mem::take(&mut state.waiting) {
                self.run(process, thread, &slots);
            }
        }
        self.run(process, thread, slots);
    }

    fn record_run(&mut self, process: ProcessId, thread: RingThread, slots: &[Slot]) {
        if self.is_ready(process) {
            return self.run(process, thread, slots);
        }
        for record in each(slots) {
            self.record(process, thread, record);
        }
    }

    fn convert_other(&mut self, process: ProcessId, thread: RingThread, head: Head, slots: &[Slot]) {
        if let Some(apart) = &mut self.apart {
            apart.extend_from_slice(slots);
            return;
        }
        match record::decode(slots) {
            Body::ThreadStart(start) => {
                let mut name = start.name_low.to_le_bytes().to_vec();
                name.extend(start.name_high.to_le_bytes());
                let text = String::from_utf8_lossy(&name);
                self.thread_start(process, start.tid, text.trim_end_matches('\0'));
            }
            Body::ExplainedCall(call, arguments) => {
                let mut item = self.api_call(process, thread.tid, head.domain(), &call);
                if has_stream(&call) {
                    self.event_call(process, head.domain(), &call, item.span.begin);
                }
                item.arguments = self.arguments(process, head.domain(), call.op, &arguments);
                if head.domain() == Domain::MPI {
                    self.message(&item, call.op, &arguments);
                }
                self.emit_call(item);
            }
            Body::Copy(copy) => {
                let item = self.copy(process, head.flags(), &copy);
                self.items.push(Item::Copy(item));
            }
            Body::CallCopy(copy) => {
                let item = self.call_copy(process, thread.tid, &copy);
                self.items.push(Item::Copy(item));
            }
            Body::Transfer(transfer) => {
                let item = self.transfer(process, &transfer);
                self.items.push(Item::Transfer(item));
            }
            Body::Allocation(allocation) => {
                let item = self.allocation(process, thread.tid, &allocation);
                self.items.push(Item::Allocation(item));
            }
            Body::Scratch(scratch) => {
                let item = self.scratch(process, thread.tid, &scratch);
                self.items.push(Item::Scratch(item));
            }
            Body::Mark(marker) => {
                let item = self.marker(process, thread.tid, &marker);
                self.items.push(Item::Mark(item));
            }
            Body::Range(marker) => {
                let item = self.marker(process, thread.tid, &marker);
                let is_along = self.is_along(process, item.span);
                self.items.push(if is_along {
                    Item::RangeAlong(item)
                } else {
                    Item::Range(item)
                });
            }
            Body::Communication(found) => {
                let item = self.communication(process, thread.tid, &found);
                self.items.extend(item.map(Item::Communication));
            }
            Body::CounterValue(value) => self.counter_value(process, &value),
            Body::CounterInstances(values) => self.counter_instances(process, &values),
            Body::PcSample(sample) => self.pc_sample(process, &sample),
            Body::Switch(switch) => {
                let at = self.processes[process.0 as usize].clock.ticks(switch.time);
                self.items.push(Item::Switched {
                    process,
                    on: switch.on != 0,
                    at,
                });
            }
            _ => {}
        }
    }

    /// Counts records that did not come.
    fn miss(&mut self, process: ProcessId, reason: LossReason, records: u64) {
        let known = self.state(process).missing.entry(reason).or_default();
        *known = known.saturating_add(records);
        let records = *known;
        self.items.push(Item::Lost {
            process,
            reason,
            records,
        });
    }

    fn counters(&mut self, process: ProcessId, words: &[u64]) {
        let at = |index: usize| words.get(index).copied().unwrap_or(0);
        self.state(process).copies = at(counter::COPIES).saturating_sub(at(counter::COPIES_RECORDED));
        let totals = [
            (LossReason::NoRing, at(counter::NO_RING)),
            (LossReason::Reentrant, at(counter::REENTRANT)),
            (LossReason::RangeTable, at(counter::RANGES_LOST)),
            (
                LossReason::FactsFull,
                at(counter::FACTS_FULL).saturating_add(at(counter::STRINGS_FULL)),
            ),
            (
                LossReason::Untimed,
                at(counter::UNTIMED).saturating_add(at(counter::COPIES_UNTIMED)),
            ),
        ];
        for (reason, records) in totals {
            let known = self.state(process).losses.entry(reason).or_default();
            if *known != records {
                *known = records;
                self.items.push(Item::Lost {
                    process,
                    reason,
                    records,
                });
            }
        }
    }

    fn ended(&mut self, process: ProcessId, exit: Exit, at: Nanos) {
        let waiting = std::mem::take(&mut self.state(process).waiting);
        for (thread, slots) in waiting {
            self.run(process, thread, &slots);
        }
        self.queue_times(process);
        self.communicator_times(process);
        self.items.push(Item::Ended { process, exit, at });
    }
}

impl RawSink for Decoder {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        let is_of_all = matches!(raw, Raw::Output(_) | Raw::Gauges(_) | Raw::Now(_));
        if !is_of_all && self.is_forgotten(process) {
            return;
        }
        match raw {
            Raw::Header(header) => self.header(process, header),
            Raw::Text(id, text) => {
                self.state(process)
                    .strings
                    .insert(*id, String::from_utf8_lossy(text).into());
            }
            Raw::Fact(slots) => self.fact(process, slots),
            Raw::Calibration(words) => self.state(process).clock.add(Sample::from_words(words)),
            Raw::Record(thread, slots) => self.record(process, *thread, slots),
            Raw::Lost(_, reason, records) => self.miss(process, *reason, *records),
            Raw::Counters(words) => self.counters(process, words),
            Raw::Open(work) => self.open(process, work),
            Raw::Ended(exit, at) => self.ended(process, *exit, *at),
            Raw::Output(bytes) => self.items.push(Item::Output(bytes.to_vec())),
            Raw::Gauges(samples) => self.gauges(process, samples),
            Raw::ThreadTimes(readings) => self.thread_times(process, readings),
            Raw::Binding(binding) => self.items.push(Item::Binding(process, Box::new((*binding).clone()))),
            Raw::Sites(facts) => {
                let items = facts.iter().map(|fact| Item::Site(process, fact.clone()));
                self.items.extend(items);
            }
            Raw::Now(at) => self.items.push(Item::Now(*at)),
        }
    }
    fn records(&mut self, process: ProcessId, thread: RingThread, slots: &[Slot]) {
        if !self.is_forgotten(process) {
            self.record_run(process, thread, slots);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::layout::Header;

    /// A process with names, a thread, and an end.
    fn lived(decoder: &mut Decoder, process: ProcessId) {
        let header = Header {
            pid: process.0 + 100,
            exe: "app".into(),
            ..Header::default()
        };
        decoder.take(process, &Raw::Header(&header));
        for id in 1..=50 {
            decoder.take(
                process,
                &Raw::Text(id, format!("text {id} of {}", process.0).as_bytes()),
            );
        }
        decoder.thread_start(process, process.0 + 100, "main");
        decoder.take(process, &Raw::Ended(Exit::Code(0), 7));
    }

    fn held(decoder: &Decoder) -> usize {
        let of_one = |state: &Entry| state.strings.len() + state.threads.len();
        decoder.processes.iter().map(of_one).sum()
    }

    #[test]
    fn an_ended_process_leaves_no_strings() {
        let mut decoder = Decoder::default();
        for process in (0..1000).map(ProcessId) {
            lived(&mut decoder, process);
            if let Some(before) = process.0.checked_sub(10) {
                decoder.forget(ProcessId(before));
            }
        }
        assert_eq!(held(&decoder), 10 * 51);
        let states = decoder.processes.iter().filter(|entry| entry.state.is_some());
        assert_eq!((states.count(), size_of::<Entry>()), (10, 16));
        // What comes late, or from a process that never was, changes nothing.
        decoder.clear();
        decoder.take(ProcessId(3), &Raw::Text(1, b"late"));
        decoder.take(ProcessId(3), &Raw::Ended(Exit::Code(0), 9));
        decoder.records(ProcessId(3), RingThread { index: 0, tid: 1 }, &[[0; 8]]);
        decoder.forget(ProcessId(5000));
        assert_eq!((held(&decoder), decoder.pending()), (10 * 51, 0));
        decoder.take(ProcessId(3), &Raw::Now(11));
        assert_eq!(decoder.pending(), 1);
    }
}
