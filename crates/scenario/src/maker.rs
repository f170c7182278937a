//! From what is written to items in order of time.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{BEGIN, Scenario};
use roctop_ring::record::Domain;
use roctop_trace::gauge::{Count, Counter, Device, Scope};
use roctop_trace::item::{
    Agent, AgentId, AgentKind, ApiCall, Dispatch, Exit, Item, Kernel, KernelId, LossReason, Marker, Nanos, NodeId,
    Open, Operation, OperationId, Process, ProcessId, Queue, QueueId, Registers, Span, Stream, StreamId, TextId,
    Thread, ThreadId, ThreadTime,
};
use roctop_trace::site::{Frame, Line, Module, PathEnd, SiteFact, SiteNumber};

/// Time between two readings of how long a thread had run, ns: no multiple of a step, so that readings fall anywhere in it.
const READING_INTERVAL: u64 = 203_700_000;

/// Makes the items.
pub(super) struct Maker<'a> {
    pub(super) text: &'a Scenario,
    facts: Vec<Item>,
    pub(super) timed: Vec<(Nanos, Item)>,
    operations: Vec<Arc<str>>,
    /// Names of all counters.
    counters: Vec<&'a str>,
    texts: Vec<Arc<str>>,
    /// Time at which each work's stream is free.
    pub(super) free: Vec<Nanos>,
    /// Time from which each work's calls are made.
    pub(super) from: Vec<Nanos>,
    /// Time at which each shared hardware queue is free.
    pub(super) queues: BTreeMap<u32, Nanos>,
    /// Time at which each thread is free to call.
    calling: Vec<Nanos>,
    /// When threads were off the CPU.
    asleep: Vec<(usize, Span)>,
    correlation: u64,
    pub(super) dispatches: u64,
    seed: u64,
}

impl<'a> Maker<'a> {
    pub(super) fn new(text: &'a Scenario) -> Self {
        let mut maker = Self {
            text,
            facts: Vec::new(),
            timed: Vec::new(),
            operations: Vec::new(),
            counters: text.counters(),
            texts: Vec::new(),
            free: vec![BEGIN; text.work.len()],
            from: vec![BEGIN; text.work.len()],
            queues: BTreeMap::new(),
            asleep: Vec::new(),
            calling: vec![BEGIN; text.threads.len()],
            correlation: 0,
            dispatches: 0,
            seed: text.seed.wrapping_mul(2).wrapping_add(1),
        };
        maker.tell_facts();
        maker
    }

    fn tell_facts(&mut self) {
        self.tell_processes();
        self.tell_agents();
        self.tell_clocks();
        self.tell_kernels();
        self.tell_sites();
        self.tell_counters();
        self.tell_threads();
        self.tell_queues();
    }

    fn tell_processes(&mut self) {
        let text = self.text;
        for (id, process) in text.processes.iter().enumerate() {
            self.facts.push(Item::Process(Process {
                id: ProcessId(id as u32),
                pid: process.pid,
                parent: if id == 0 { 1 } else { text.processes[0].pid },
                rank: process.rank,
                host: "node01".into(),
                machine: 0,
                exe: process.command.split(' ').next().unwrap_or("").into(),
                command: process.command.as_str().into(),
                since: BEGIN,
                ..Process::default()
            }));
            self.facts.extend(text.said.iter().map(|said| Item::Status {
                process: ProcessId(id as u32),
                code: roctop_ring::record::status::BACKEND,
                text: said.as_str().into(),
            }));
        }
    }

    /// The CPU, and the GPUs with what their driver says where that is written.
    fn tell_agents(&mut self) {
        let text = self.text;
        let host = Agent {
            name: "AMD EPYC".into(),
            kind: AgentKind::Cpu,
            ..Agent::default()
        };
        self.facts.push(Item::Agent(host));
        for (number, gpu) in text.gpus.iter().enumerate() {
            self.facts.push(Item::Agent(Agent {
                id: AgentId(number as u32 + 1),
                process: ProcessId(0),
                kind: AgentKind::Gpu,
                number: number as u32,
                node: number as u32 + 1,
                name: gpu.name.as_str().into(),
                product: gpu.product.as_str().into(),
                compute_units: gpu.units,
                wave_size: 64,
                memory: gpu.memory << 30,
            }));
            if let (Some(clock), Some(bandwidth)) = (gpu.clock, gpu.bandwidth) {
                self.facts.push(Item::Device(Arc::new(Device {
                    node: node(number),
                    number: number as u32,
                    name: gpu.name.as_str().into(),
                    product: gpu.product.as_str().into(),
                    at: BEGIN,
                    shader_clock: Ok(clock),
                    memory_peak: Ok(bandwidth * 1e9),
                    ..Device::default()
                })));
            }
        }
    }

    fn tell_clocks(&mut self) {
        let text = self.text;
        for process in 0..text.processes.len() {
            self.facts.push(Item::ClockCost {
                process: ProcessId(process as u32),
                picoseconds: 8_000,
            });
        }
    }

    fn tell_threads(&mut self) {
        let text = self.text;
        for (id, thread) in text.threads.iter().enumerate() {
            let (id, process, name) = (
                ThreadId(id as u32),
                ProcessId(thread.process),
                thread.name.as_str().into(),
            );
            self.facts.push(Item::Thread(Thread {
                id,
                process,
                tid: thread.tid,
                name,
            }));
        }
    }

    /// A queue and a stream for each work.
    fn tell_queues(&mut self) {
        let text = self.text;
        for (id, work) in text.work.iter().enumerate() {
            let process = self.process_of(&work.thread);
            let agent = AgentId(work.gpu + 1);
            let queue = work.queue.unwrap_or(id as u32);
            self.facts.push(Item::Queue(Queue {
                id: QueueId(queue),
                process,
                number: queue + 1,
                agent,
                ..Queue::default()
            }));
            let (id, name) = (StreamId(id as u32), "".into());
            self.facts.push(Item::Stream(Stream {
                id,
                process,
                number: work.stream,
                name,
            }));
        }
    }

    /// Call paths: sites are numbered over all kernels.
    fn tell_sites(&mut self) {
        let all: Vec<&Vec<String>> = self.text.kernels.iter().flat_map(|kernel| &kernel.paths).collect();
        if all.is_empty() {
            return;
        }
        let mut put = |fact| self.facts.push(Item::Site(ProcessId(0), fact));
        put(SiteFact::Module(Module {
            path: "/opt/train/bin/train".into(),
            build_id: vec![0x5e, 0x11],
            ..Module::default()
        }));
        let mut offsets: BTreeMap<&str, u64> = BTreeMap::new();
        for (path, number) in all.into_iter().zip(1..) {
            let mut frames = Vec::new();
            for text in path {
                let next = 0x1000 + 0x40 * offsets.len() as u64;
                let offset = *offsets.entry(text).or_insert(next);
                let frame = Frame { module: 0, offset };
                frames.push(frame);
                if offset == next {
                    put(SiteFact::Names {
                        frame,
                        lines: vec![line(text)],
                    });
                }
            }
            put(SiteFact::Path {
                site: SiteNumber(number),
                frames,
                end: PathEnd::Complete,
                is_guessed: false,
            });
        }
    }

    /// Site of a kernel's launch.
    pub(super) fn site(&self, kernel: usize) -> SiteNumber {
        let before = self.text.kernels.iter().take(kernel).map(|kernel| kernel.paths.len());
        let before: usize = before.sum();
        let own = self.text.kernels.get(kernel).map_or(0, |kernel| kernel.paths.len());
        match self.dispatches.checked_rem(own as u64) {
            Some(turn) => SiteNumber(1 + before as u16 + turn as u16),
            None => SiteNumber::UNKNOWN,
        }
    }

    fn tell_kernels(&mut self) {
        for (id, kernel) in self.text.kernels.iter().enumerate() {
            self.facts.push(Item::Kernel(Kernel {
                id: KernelId(id as u32),
                mangled: if kernel.mangled.is_empty() {
                    &kernel.name
                } else {
                    &kernel.mangled
                }
                .as_str()
                .into(),
                name: kernel.name.as_str().into(),
                symbol: id as u32 + 1,
                group_size: kernel.lds,
                registers: (kernel.vgpr > 0).then_some(Registers {
                    vgpr: kernel.vgpr,
                    agpr: 0,
                    sgpr: 104,
                }),
                code: None,
                internal: kernel.internal,
            }));
        }
    }

    /// One counter for each name and GPU.
    fn tell_counters(&mut self) {
        for (at, name) in self.counters.iter().enumerate() {
            for gpu in 0..self.text.gpus.len() {
                self.facts.push(Item::Counter(Arc::new(Counter {
                    id: self.counter(at, gpu as u32),
                    name: (*name).into(),
                    node: Some(node(gpu)),
                    scope: Scope::Dispatch,
                    source: "rocprofiler-sdk".into(),
                    state: Ok(()),
                    perturbs: "SERIALIZED".into(),
                    ..Counter::default()
                })));
            }
        }
    }

    fn counter(&self, at: usize, gpu: u32) -> u32 {
        (at * self.text.gpus.len()) as u32 + gpu
    }

    /// What the counters counted over a dispatch.
    pub(super) fn count(&mut self, kernel: usize, dispatch: &Dispatch) {
        let text = self.text;
        for (name, mean) in &text.kernels[kernel].counters {
            let at = self.counters.iter().position(|known| known == name).unwrap_or(0);
            // Waves are exact, the rest varies.
            let value = if name == "SQ_WAVES" {
                *mean
            } else {
                self.vary(*mean as u64) as f64
            };
            let count = Count {
                counter: self.counter(at, dispatch.agent.0 - 1),
                at: dispatch.span.end,
                value,
                kernel: Some(dispatch.kernel),
            };
            self.timed.push((dispatch.span.end, Item::Count(count)));
        }
    }

    pub(super) fn thread(&self, name: &str) -> usize {
        self.text
            .threads
            .iter()
            .position(|thread| thread.name == name)
            .unwrap_or(0)
    }

    pub(super) fn process_of(&self, thread: &str) -> ProcessId {
        ProcessId(
            self.text
                .threads
                .get(self.thread(thread))
                .map_or(0, |thread| thread.process),
        )
    }

    fn operation(&mut self, name: &str) -> OperationId {
        if let Some(at) = self.operations.iter().position(|known| &**known == name) {
            return OperationId(at as u32);
        }
        let id = OperationId(self.operations.len() as u32);
        self.operations.push(name.into());
        let domain = match name.get(..3) {
            Some("hsa") => Domain::HSA_CORE,
            Some("MPI") => Domain::MPI,
            _ => Domain::HIP,
        };
        self.facts.push(Item::Operation(Operation {
            id,
            domain: domain.0,
            name: name.into(),
        }));
        id
    }

    fn text_id(&mut self, text: String) -> TextId {
        if let Some(at) = self.texts.iter().position(|known| **known == *text) {
            return TextId(at as u32);
        }
        let id = TextId(self.texts.len() as u32);
        self.texts.push(text.as_str().into());
        self.facts.push(Item::Text(id, text.into()));
        id
    }

    /// A duration with jitter: mostly near, seldom far above.
    pub(super) fn vary(&mut self, nanos: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let part = (self.seed >> 11) as f64 / (1u64 << 53) as f64;
        let spread = f64::from(self.text.jitter) / 100.0;
        let far = if self.seed % 211 == 3 && spread > 0.0 { 1.8 } else { 0.0 };
        (nanos as f64 * (1.0 + spread * (part * 2.0 - 0.6) + far)) as u64
    }

    /// A call on a thread from `at` on (later when the thread is busy); its span and correlation id.
    pub(super) fn call(&mut self, thread: usize, name: &str, at: Nanos, nanos: u64, status: i32) -> (Span, u64) {
        let begin = at.max(self.calling[thread]);
        let span = Span {
            begin,
            end: begin + nanos,
        };
        self.calling[thread] = span.end + 300;
        self.correlation += 1;
        let operation = self.operation(name);
        self.timed.push((
            span.end,
            Item::Api(ApiCall {
                process: ProcessId(self.text.threads.get(thread).map_or(0, |thread| thread.process)),
                thread: ThreadId(thread as u32),
                operation,
                span,
                correlation: self.correlation,
                parent: 0,
                status: Some(status),
                arguments: None,
                site: SiteNumber::UNKNOWN,
            }),
        ));
        (span, self.correlation)
    }

    /// When a thread is free to call.
    pub(super) fn calling(&self, thread: usize) -> Nanos {
        self.calling.get(thread).copied().unwrap_or(BEGIN)
    }

    pub(super) fn sleep(&mut self, thread: usize, begin: Nanos, nanos: u64) {
        let end = begin + nanos;
        self.asleep.push((thread, Span { begin, end }));
    }

    /// How long the threads that slept had run, five times a second.
    fn tell_thread_times(&mut self) {
        let until = BEGIN + self.text.length();
        let mut threads: Vec<usize> = self.asleep.iter().map(|(thread, _)| *thread).collect();
        threads.sort_unstable();
        threads.dedup();
        for thread in threads {
            let mut asleep = 0;
            let own = self.asleep.iter().filter(|(sleeper, _)| *sleeper == thread);
            let own: Vec<Span> = own.map(|(_, span)| *span).collect();
            for at in (BEGIN..until).step_by(READING_INTERVAL as usize) {
                let within = |span: &Span| {
                    let begin = span.begin.max(at.saturating_sub(READING_INTERVAL));
                    span.end.min(at).saturating_sub(begin)
                };
                asleep += own.iter().map(within).sum::<u64>();
                let is_running = own.iter().all(|span| at < span.begin || span.end <= at);
                let time = ThreadTime {
                    process: ProcessId(self.text.threads.get(thread).map_or(0, |thread| thread.process)),
                    thread: ThreadId(thread as u32),
                    at,
                    running: at - BEGIN - asleep,
                    ready: 0,
                    is_running: Some(is_running),
                };
                self.timed.push((at, Item::ThreadTime(time)));
            }
        }
    }

    pub(super) fn step(&mut self, step: u32) {
        let text = self.text;
        let begin = BEGIN + u64::from(step) * text.step.0;
        for (lane, work) in text.work.iter().enumerate() {
            self.free[lane] = self.free[lane].max(begin + work.at.0);
            self.from[lane] = begin + work.at.0;
            for doing in &work.steps {
                self.work(lane, work, *doing);
            }
        }
        for call in text.calls.iter().filter(|call| step.is_multiple_of(call.every.max(1))) {
            let (thread, nanos) = (self.thread(&call.thread), self.vary(call.dur.0));
            self.call(thread, &call.name, begin + call.at.0, nanos, call.status);
        }
        self.ranges(step, begin);
        self.end_of_step(step, begin + text.step.0);
    }

    fn ranges(&mut self, step: u32, begin: Nanos) {
        let text = self.text;
        for range in &text.ranges {
            let id = self.text_id(range.text.replace("{step}", &step.to_string()));
            let span = Span {
                begin: begin + range.at.0,
                end: begin + range.at.0 + range.dur.0,
            };
            self.correlation += 1;
            let marker = Marker {
                process: self.process_of(&range.thread),
                thread: ThreadId(self.thread(&range.thread) as u32),
                text: id,
                span,
                correlation: self.correlation,
                level: range.level,
                range_id: 0,
            };
            self.timed.push((
                span.end,
                if range.dur.0 == 0 {
                    Item::Mark(marker)
                } else {
                    Item::Range(marker)
                },
            ));
        }
    }

    /// What is printed and lost in a step.
    fn end_of_step(&mut self, step: u32, end: Nanos) {
        let text = self.text;
        for line in &text.print {
            let loss = 2.4 + 1.0 / f64::from(step + 1);
            let line = line
                .replace("{step}", &step.to_string())
                .replace("{loss}", &format!("{loss:.4}"));
            self.timed.push((end, Item::Output(format!("{line}\n").into_bytes())));
        }
        if text.lost > 0 {
            let (reason, records) = (LossReason::Overwritten, text.lost * u64::from(step + 1));
            self.timed.push((
                end,
                Item::Lost {
                    process: ProcessId(0),
                    reason,
                    records,
                },
            ));
        }
    }

    /// Sorts, cuts at the end, and says how it ended and what was open.
    pub(super) fn finish(mut self) -> Vec<(Nanos, Item)> {
        self.tell_thread_times();
        self.timed.sort_by_key(|timed| timed.0);
        let mut out: Vec<(Nanos, Item)> = self.facts.into_iter().map(|fact| (BEGIN, fact)).collect();
        let Some(end) = &self.text.end else {
            out.extend(self.timed);
            return out;
        };
        let length = u64::from(self.text.steps.saturating_sub(1)) * self.text.step.0 + end.at.0;
        let until = BEGIN + if end.at.0 == 0 { self.text.length() } else { length };
        let mut open = Open::default();
        for (at, item) in self.timed {
            if at <= until {
                out.push((at, item));
                continue;
            }
            let cut = |span: Span| Span {
                begin: span.begin,
                end: 0,
            };
            match item {
                Item::Api(call) if call.span.begin <= until => {
                    open.calls.push(ApiCall {
                        span: cut(call.span),
                        status: None,
                        ..call
                    });
                }
                Item::Range(range) if range.span.begin <= until => {
                    open.ranges.push(Marker {
                        span: cut(range.span),
                        ..range
                    });
                }
                Item::Dispatch(dispatch) if dispatch.submit <= until => {
                    open.dispatches.push(Dispatch {
                        span: Span::default(),
                        ..dispatch
                    });
                }
                _ => {}
            }
        }
        out.push((until, Item::Now(until)));
        out.push((until, Item::Open(open)));
        let exit = match (end.code, end.signal) {
            (Some(code), _) => Exit::Code(code),
            (_, Some(signal)) => Exit::Signal(signal),
            _ => Exit::Unknown,
        };
        let processes = self.text.processes.len() as u32;
        out.extend((0..processes).map(|id| {
            (
                until,
                Item::Ended {
                    process: ProcessId(id),
                    exit,
                    at: until,
                },
            )
        }));
        out
    }
}

/// Where a GPU of the scenario is: the host is node 0.
const fn node(gpu: usize) -> NodeId {
    NodeId {
        machine: 0,
        node: gpu as u32 + 1,
    }
}

/// A function of a call path: `forward() model.cpp:120`, or a name alone.
fn line(text: &str) -> Line {
    let place = text.rsplit_once(' ').and_then(|(function, place)| {
        let (file, line) = place.rsplit_once(':')?;
        Some((function, file, line.parse().ok()?))
    });
    let (function, file, line) = place.unwrap_or((text, "", 0));
    Line {
        function: function.into(),
        file: file.into(),
        line,
        distance: 0,
    }
}
