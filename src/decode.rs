//! Turns the records of all processes of a session into items: dense ids, names, one clock.
//!
//! Decoding is total: what names something unknown gets a name that says so, and what cannot be converted yet (no two
//! calibration samples) waits, bounded.

mod counters;
mod memory;
mod names;
mod queue;
mod recent;

use crate::arguments;
use crate::clock::{Clock, Sample};
use crate::item::{
    Agent, AgentId, AgentKind, ApiCall, Copy, CounterId, Dispatch, Exit, Item, KernelId, LossReason, Marker, Nanos,
    Open, OperationId, Process, ProcessId, Queue, QueueId, Registers, Span, Stream, StreamId, TextId, Thread, ThreadId,
};
use crate::raw::{Raw, RawSink};
use crate::registers::{self, Descriptor};
use names::Names;
use recent::Recent;
use roctop_ring::arguments::Arguments;
use roctop_ring::layout::counter;
use roctop_ring::reader::{OpenWork, Thread as RingThread};
use roctop_ring::record::{self, Body, Domain, Head, Slot, flag};
use std::collections::HashMap;
use std::sync::Arc;

/// The most records that wait for a process's second calibration sample.
const MAX_WAITING: usize = 1 << 20;

/// Decodes a session. Feed it as a [`RawSink`], then take the items.
#[derive(Default)]
pub struct Decoder {
    names: Names,
    processes: Vec<State>,
    recent: Answers,
    joining: counters::Joining,
    items: Vec<Item>,
}

/// No process has this number: a session has far fewer.
const NO_PROCESS: u32 = u32::MAX;

/// What records ask again and again, by process and number.
struct Answers {
    kernels: Recent<(u32, u64), KernelId>,
    queues: Recent<(u32, u32), QueueId>,
    streams: Recent<(u32, u32), StreamId>,
    threads: Recent<(u32, u32), ThreadId>,
    operations: Recent<(u32, u8, u16), OperationId>,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            kernels: Recent::new(15, (NO_PROCESS, 0), KernelId(0)),
            queues: Recent::new(8, (NO_PROCESS, 0), QueueId(0)),
            streams: Recent::new(8, (NO_PROCESS, 0), StreamId(0)),
            threads: Recent::new(8, (NO_PROCESS, 0), ThreadId(0)),
            operations: Recent::new(9, (NO_PROCESS, 0, 0), OperationId(0)),
        }
    }
}

/// A kernel symbol as its process loaded it.
#[derive(Clone, Debug)]
struct Symbol {
    since: u64,
    kernel: KernelId,
}

/// What is known of one process.
#[derive(Default)]
struct State {
    known: bool,
    clock: Clock,
    strings: HashMap<u32, Arc<str>>,
    agents: Vec<Option<(AgentId, AgentKind, Arc<str>)>>,
    symbols: HashMap<u64, Vec<Symbol>>,
    symbol_count: u32,
    queues: HashMap<u32, Queue>,
    /// Facts of queues whose times cannot be converted yet.
    queue_facts: Vec<record::Queue>,
    streams: HashMap<u32, StreamId>,
    threads: HashMap<u32, ThreadId>,
    operations: HashMap<(u8, u16), OperationId>,
    operation_names: HashMap<(u8, u16), Arc<str>>,
    counters: HashMap<u32, CounterId>,
    /// Topology node by the process's own agent index.
    nodes: HashMap<u32, u32>,
    waiting: Vec<(RingThread, Vec<Slot>)>,
    overwritten: u64,
    losses: HashMap<LossReason, u64>,
}

impl Decoder {
    /// The items decoded so far.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Forgets the items decoded so far; their room is used again.
    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// Takes the items decoded so far.
    pub fn take_items(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.items)
    }

    /// The clock of a process.
    pub fn clock(&self, process: ProcessId) -> Option<&Clock> {
        self.processes.get(process.0 as usize).map(|state| &state.clock)
    }

    /// Prepares a process's clock with samples that will come later in the stream (a recording read twice), so that
    /// every time is converted with all of them.
    pub fn preload_clock(&mut self, process: ProcessId, samples: &[Sample]) {
        let state = self.state(process);
        for sample in samples {
            state.clock.add(*sample);
        }
    }

    fn state(&mut self, process: ProcessId) -> &mut State {
        let index = process.0 as usize;
        if self.processes.len() <= index {
            self.processes.resize_with(index + 1, State::default);
        }
        &mut self.processes[index]
    }

    fn header(&mut self, process: ProcessId, header: &roctop_ring::layout::Header) {
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
            exe: header.exe.as_str().into(),
            command: header.command.as_str().into(),
            since: 0,
        };
        self.items.push(Item::Process(item));
    }

    fn fact(&mut self, process: ProcessId, slots: &[Slot]) {
        self.state(process);
        match record::decode(slots) {
            Body::Agent(fact) => self.agent(process, &fact),
            Body::KernelSymbol(fact) => self.symbol(process, &fact),
            Body::Queue(fact) => self.queue(process, &fact),
            Body::Stream(fact) => self.stream(process, &fact),
            Body::OperationName(fact) => {
                let state = self.state(process);
                if let Some(name) = state.strings.get(&fact.name).cloned() {
                    state.operation_names.insert((fact.domain as u8, fact.op as u16), name);
                }
            }
            Body::Counter(fact) => self.counter(process, &fact),
            Body::Status(fact) => {
                let text = self.state(process).strings.get(&fact.text).cloned().unwrap_or_default();
                self.items.push(Item::Status {
                    process,
                    code: fact.code,
                    text,
                });
            }
            _ => {}
        }
    }

    fn agent(&mut self, process: ProcessId, fact: &record::Agent) {
        let state = &mut self.processes[process.0 as usize];
        let text = |id: u32| state.strings.get(&id).cloned().unwrap_or_default();
        let kind = match fact.kind {
            0 => AgentKind::Cpu,
            1 => AgentKind::Gpu,
            _ => AgentKind::Other,
        };
        let (name, product) = (text(fact.name), text(fact.product));
        let index = fact.index as usize;
        if index >= 1024 || state.agents.get(index).is_some_and(Option::is_some) {
            return;
        }
        let number = state.agents.iter().flatten().filter(|known| known.1 == kind).count() as u32;
        let id = AgentId(self.names.next_agent());
        if state.agents.len() <= index {
            state.agents.resize(index + 1, None);
        }
        state.agents[index] = Some((id, kind, name.clone()));
        state.nodes.insert(fact.index, fact.node);
        self.items.push(Item::Agent(Agent {
            id,
            process,
            kind,
            number,
            node: fact.node,
            name,
            product,
            compute_units: fact.compute_units,
            wave_size: fact.wave_size,
            memory: fact.memory,
        }));
    }

    fn agent_id(&mut self, process: ProcessId, index: u32) -> AgentId {
        if let Some(Some(known)) = self.processes[process.0 as usize].agents.get(index as usize) {
            return known.0;
        }
        let unknown = record::Agent {
            index,
            kind: 2,
            ..record::Agent::default()
        };
        self.agent(process, &unknown);
        self.processes[process.0 as usize]
            .agents
            .get(index as usize)
            .cloned()
            .flatten()
            .map_or(AgentId(0), |a| a.0)
    }

    fn symbol(&mut self, process: ProcessId, fact: &record::KernelSymbol) {
        let state = &mut self.processes[process.0 as usize];
        let mangled = state
            .strings
            .get(&fact.name)
            .cloned()
            .unwrap_or_else(|| format!("(unnamed kernel {:#x})", fact.kernel_object).into());
        let target = state
            .agents
            .get(fact.agent as usize)
            .cloned()
            .flatten()
            .map(|agent| agent.2)
            .unwrap_or_default();
        let descriptor = Descriptor {
            rsrc1: fact.rsrc1,
            rsrc3: fact.rsrc3,
            properties: fact.properties,
        };
        let registers = match fact.has_descriptor {
            1 => Some(registers::decode(descriptor, &target)),
            // The profiler's library has counted them.
            2 => Some(Registers {
                vgpr: fact.rsrc1,
                agpr: fact.rsrc3,
                sgpr: fact.rsrc2,
            }),
            _ => None,
        };
        state.symbol_count += 1;
        let number = state.symbol_count;
        let kernel = self.kernel(&mangled, number, fact.group_size, registers);
        let state = &mut self.processes[process.0 as usize];
        self.recent.kernels.forget(fact.kernel_object);
        state.symbols.entry(fact.kernel_object).or_default().push(Symbol {
            since: fact.time,
            kernel,
        });
    }

    fn kernel(&mut self, mangled: &Arc<str>, symbol: u32, group: u32, registers: Option<Registers>) -> KernelId {
        let (kernel, new) = self.names.kernel(mangled, symbol, group, registers);
        if let Some(new) = new {
            self.items.push(Item::Kernel(new));
        }
        kernel
    }

    fn kernel_of(&mut self, process: ProcessId, object: u64, name: u32, submit: u64) -> KernelId {
        let key = (process.0, object);
        if let Some(known) = self.recent.kernels.get(object, key) {
            return known;
        }
        let state = &self.processes[process.0 as usize];
        if let Some(symbols) = state.symbols.get(&object) {
            if let [only] = symbols.as_slice() {
                return self.recent.kernels.keep(object, key, only.kernel);
            }
            // An address may be used again after an unload: the last symbol loaded before the submission counts.
            let fits = symbols
                .iter()
                .rev()
                .find(|symbol| submit == 0 || symbol.since <= submit);
            if let Some(symbol) = fits.or(symbols.last()) {
                return symbol.kernel;
            }
        }
        let named = state.strings.get(&name).cloned();
        let text = named.unwrap_or_else(|| format!("(unnamed kernel {object:#x})").into());
        self.kernel(&text, 0, 0, None)
    }

    fn queue_id(&mut self, process: ProcessId, number: u32, agent: AgentId) -> QueueId {
        let key = (process.0, number);
        if let Some(known) = self.recent.queues.get(u64::from(number), key) {
            return known;
        }
        if let Some(known) = self.processes[process.0 as usize].queues.get(&number) {
            return self.recent.queues.keep(u64::from(number), key, known.id);
        }
        let id = QueueId(self.names.next_queue());
        let queue = Queue {
            id,
            process,
            number,
            agent,
            ..Queue::default()
        };
        self.processes[process.0 as usize].queues.insert(number, queue);
        self.names.set_agent_of_queue(id, agent);
        self.items.push(Item::Queue(queue));
        id
    }

    fn stream(&mut self, process: ProcessId, fact: &record::Stream) {
        let name = self.processes[process.0 as usize]
            .strings
            .get(&fact.name)
            .cloned()
            .unwrap_or_default();
        let id = self.stream_id(process, fact.id);
        if !name.is_empty() {
            self.items.push(Item::Stream(Stream {
                id,
                process,
                number: fact.id,
                name,
            }));
        }
    }

    fn stream_id(&mut self, process: ProcessId, number: u32) -> StreamId {
        let key = (process.0, number);
        if let Some(known) = self.recent.streams.get(u64::from(number), key) {
            return known;
        }
        if let Some(known) = self.processes[process.0 as usize].streams.get(&number) {
            return self.recent.streams.keep(u64::from(number), key, *known);
        }
        let id = StreamId(self.names.next_stream());
        self.processes[process.0 as usize].streams.insert(number, id);
        self.items.push(Item::Stream(Stream {
            id,
            process,
            number,
            name: Arc::default(),
        }));
        id
    }

    fn thread_id(&mut self, process: ProcessId, tid: u32, name: &str) -> ThreadId {
        let key = (process.0, tid);
        if let Some(known) = self.recent.threads.get(u64::from(tid), key) {
            return known;
        }
        if let Some(known) = self.processes[process.0 as usize].threads.get(&tid) {
            return self.recent.threads.keep(u64::from(tid), key, *known);
        }
        let id = ThreadId(self.names.next_thread());
        self.processes[process.0 as usize].threads.insert(tid, id);
        self.items.push(Item::Thread(Thread {
            id,
            process,
            tid,
            name: name.into(),
        }));
        id
    }

    fn operation(&mut self, process: ProcessId, domain: Domain, op: u16) -> OperationId {
        let key = (process.0, domain.0, op);
        if let Some(known) = self.recent.operations.get(u64::from(op), key) {
            return known;
        }
        let state = &self.processes[process.0 as usize];
        if let Some(known) = state.operations.get(&(domain.0, op)) {
            return self.recent.operations.keep(u64::from(op), key, *known);
        }
        let named = state.operation_names.get(&(domain.0, op)).cloned();
        let text = named
            .clone()
            .unwrap_or_else(|| format!("{}#{op}", domain.name().unwrap_or("api")).into());
        let (id, new) = self.names.operation(domain.0, &text);
        if let Some(new) = new {
            self.items.push(Item::Operation(new));
        }
        // A name may still come: only then is the answer kept for good.
        if named.is_some() {
            self.processes[process.0 as usize].operations.insert((domain.0, op), id);
        }
        id
    }

    fn record(&mut self, process: ProcessId, thread: RingThread, slots: &[Slot]) {
        let state = self.state(process);
        if !state.clock.is_ready() {
            if state.waiting.len() < MAX_WAITING {
                state.waiting.push((thread, slots.to_vec()));
            } else {
                state.overwritten = state.overwritten.saturating_add(1);
            }
            return;
        }
        if !state.queue_facts.is_empty() {
            self.queue_times(process);
        }
        let state = self.state(process);
        if !state.waiting.is_empty() {
            for (thread, slots) in std::mem::take(&mut state.waiting) {
                self.convert(process, thread, &slots);
            }
        }
        self.convert(process, thread, slots);
    }

    fn convert(&mut self, process: ProcessId, thread: RingThread, slots: &[Slot]) {
        let head = Head(slots.first().map_or(0, |slot| slot[0]));
        match record::decode(slots) {
            Body::ThreadStart(start) => {
                let mut name = start.name_low.to_le_bytes().to_vec();
                name.extend(start.name_high.to_le_bytes());
                let text = String::from_utf8_lossy(&name);
                self.thread_id(process, start.tid, text.trim_end_matches('\0'));
            }
            Body::ApiCall(call) => {
                let item = self.api_call(process, thread.tid, head.domain(), &call);
                self.items.push(Item::Api(item));
            }
            Body::ExplainedCall(call, arguments) => {
                let mut item = self.api_call(process, thread.tid, head.domain(), &call);
                item.arguments = self.arguments(process, head.domain(), call.op, &arguments);
                self.items.push(Item::Api(item));
            }
            Body::Dispatch(dispatch) => {
                let item = self.dispatch(process, head.flags(), &dispatch);
                self.items.push(Item::Dispatch(item));
                self.counted(&item);
            }
            Body::Copy(copy) => {
                let item = self.copy(process, head.flags(), &copy);
                self.items.push(Item::Copy(item));
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
                self.items.push(Item::Range(item));
            }
            Body::CounterValue(value) => self.counter_value(process, &value),
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

    fn api_call(&mut self, process: ProcessId, tid: u32, domain: Domain, call: &record::ApiCall) -> ApiCall {
        let clock = &self.processes[process.0 as usize].clock;
        let span = Span {
            begin: clock.ticks(call.start),
            end: clock.ticks(call.end),
        };
        ApiCall {
            process,
            thread: self.thread_id(process, tid, ""),
            operation: self.operation(process, domain, call.op),
            span,
            correlation: call.correlation,
            parent: call.parent,
            status: (call.has_status == 1).then_some(call.status),
            arguments: None,
        }
    }

    fn arguments(&mut self, process: ProcessId, domain: Domain, op: u16, found: &Arguments) -> Option<TextId> {
        let name = self.processes[process.0 as usize]
            .operation_names
            .get(&(domain.0, op))?;
        let text = arguments::text(name, found)?;
        let (id, new) = self.names.arguments(&text)?;
        if let Some(text) = new {
            self.items.push(Item::Text(id, text));
        }
        Some(id)
    }

    fn dispatch(&mut self, process: ProcessId, flags: u8, found: &record::Dispatch) -> Dispatch {
        let clock = &self.processes[process.0 as usize].clock;
        let span = Span {
            begin: clock.hsa(found.begin),
            end: clock.hsa(found.end),
        };
        let submit = clock.ticks(found.submit);
        let suspect = if span.end < span.begin { flag::SUSPECT_TIME } else { 0 };
        let agent = self.agent_id(process, found.agent);
        let queue = self.queue_id(process, found.queue, agent);
        Dispatch {
            process,
            kernel: self.kernel_of(process, found.kernel_object, found.name, found.submit),
            agent,
            queue,
            stream: found
                .stream
                .checked_sub(1)
                .map(|number| self.stream_id(process, number)),
            thread: (found.tid != 0).then(|| self.thread_id(process, found.tid, "")),
            span,
            submit,
            correlation: found.correlation,
            dispatch_id: found.dispatch_id,
            grid: [found.grid_x, found.grid_y, found.grid_z],
            workgroup: [found.workgroup_x, found.workgroup_y, found.workgroup_z],
            group_size: found.group_size,
            private_size: found.private_size,
            flags: flags | suspect,
        }
    }

    fn copy(&mut self, process: ProcessId, flags: u8, found: &record::Copy) -> Copy {
        let clock = &self.processes[process.0 as usize].clock;
        let span = Span {
            begin: clock.hsa(found.begin),
            end: clock.hsa(found.end),
        };
        let submit = clock.ticks(found.submit);
        let suspect = if span.end < span.begin { flag::SUSPECT_TIME } else { 0 };
        let source = self.known_agent(process, found.src_agent);
        let destination = self.known_agent(process, found.dst_agent);
        Copy {
            process,
            source,
            destination,
            stream: found
                .stream
                .checked_sub(1)
                .map(|number| self.stream_id(process, number)),
            thread: (found.tid != 0).then(|| self.thread_id(process, found.tid, "")),
            span,
            submit,
            correlation: found.correlation,
            bytes: found.bytes,
            direction: found.direction,
            engine: found.engine,
            flags: flags | suspect,
        }
    }

    fn known_agent(&mut self, process: ProcessId, index: u32) -> Option<AgentId> {
        (index != u32::MAX).then(|| self.agent_id(process, index))
    }

    fn marker(&mut self, process: ProcessId, tid: u32, found: &record::Marker) -> Marker {
        let clock = &self.processes[process.0 as usize].clock;
        let span = Span {
            begin: clock.ticks(found.start),
            end: clock.ticks(found.end),
        };
        let text = self.marker_text(process, found.text_id, &found.text);
        Marker {
            process,
            thread: self.thread_id(process, tid, ""),
            text,
            span,
            correlation: found.correlation,
            level: found.level,
            range_id: found.range_id,
        }
    }

    fn marker_text(&mut self, process: ProcessId, id: u32, inline: &[u8]) -> TextId {
        let known = self.processes[process.0 as usize]
            .strings
            .get(&id)
            .filter(|_| id != 0)
            .cloned();
        let text = known.unwrap_or_else(|| String::from_utf8_lossy(inline).into());
        let (id, new) = self.names.text(&text);
        if let Some(text) = new {
            self.items.push(Item::Text(id, text));
        }
        id
    }

    fn open(&mut self, process: ProcessId, work: &OpenWork) {
        if !self.state(process).clock.is_ready() {
            return;
        }
        let mut open = Open {
            process,
            ..Open::default()
        };
        for call in &work.calls {
            let found = record::ApiCall {
                start: call.start,
                correlation: call.correlation,
                op: call.op,
                ..record::ApiCall::default()
            };
            open.calls
                .push(self.api_call(process, call.thread.tid, call.domain, &found));
        }
        for range in &work.ranges {
            let found = record::Marker {
                start: range.start,
                correlation: range.correlation,
                range_id: range.range_id,
                text_id: range.text_id,
                level: range.level,
                text: range.text.clone(),
                ..record::Marker::default()
            };
            open.ranges.push(self.marker(process, range.thread.tid, &found));
        }
        for queue in &work.queues {
            let Some(id) = self.processes[process.0 as usize]
                .queues
                .get(&queue.id)
                .map(|known| known.id)
            else {
                continue;
            };
            open.queues.push((id, queue.submitted, queue.completed));
            for flight in &queue.in_flight {
                let found = record::Dispatch {
                    submit: flight.submit,
                    kernel_object: flight.kernel_object,
                    correlation: flight.correlation,
                    dispatch_id: flight.dispatch_id,
                    queue: queue.id,
                    ..record::Dispatch::default()
                };
                let mut dispatch = self.dispatch(process, flag::OPEN, &found);
                dispatch.agent = self.names.agent_of_queue(id).unwrap_or(dispatch.agent);
                open.dispatches.push(dispatch);
            }
        }
        self.items.push(Item::Open(open));
    }

    fn counters(&mut self, process: ProcessId, words: &[u64]) {
        let at = |index: usize| words.get(index).copied().unwrap_or(0);
        let overwritten = self.state(process).overwritten;
        let totals = [
            (LossReason::Overwritten, overwritten),
            (LossReason::NoRing, at(counter::NO_RING)),
            (LossReason::Reentrant, at(counter::REENTRANT)),
            (LossReason::RangeTable, at(counter::RANGES_LOST)),
            (
                LossReason::FactsFull,
                at(counter::FACTS_FULL) + at(counter::STRINGS_FULL),
            ),
            (LossReason::Untimed, at(counter::UNTIMED) + at(counter::COPIES_UNTIMED)),
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
            self.convert(process, thread, &slots);
        }
        self.queue_times(process);
        self.items.push(Item::Ended { process, exit, at });
    }
}

impl RawSink for Decoder {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
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
            Raw::Lost(_, records) => {
                let state = self.state(process);
                state.overwritten = state.overwritten.saturating_add(*records);
            }
            Raw::Counters(words) => self.counters(process, words),
            Raw::Open(work) => self.open(process, work),
            Raw::Ended(exit, at) => self.ended(process, *exit, *at),
            Raw::Output(bytes) => self.items.push(Item::Output(bytes.to_vec())),
            Raw::Gauges(samples) => self.gauges(samples),
            Raw::Now(at) => self.items.push(Item::Now(*at)),
        }
    }
}
