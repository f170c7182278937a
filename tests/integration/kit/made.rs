//! A synthetic recording of any size: a loop of launches, copies and ranges as a training program has them, written by the
//! recorder itself. One tick is one nanosecond of CLOCK_BOOTTIME.

use roctop::item::{Exit, LossReason, ProcessId};
use roctop::raw::{Raw, RawSink};
use roctop::recording::Recorder;
use roctop::sysfs::{Metric, Sample};
use roctop_ring::layout::{Header, clock};
use roctop_ring::reader::Thread;
use roctop_ring::record::{
    Agent, Allocation, ApiCall, Copy, Counter, CounterValue, Dispatch, Domain, Head, KernelSymbol, Marker,
    OperationName, PcSample, Queue, Slot, Status, Stream, direction, engine, memory, status,
};
use std::path::Path;

/// When the first record begins, ns.
pub(crate) const BEGIN: u64 = 1_000_000_000_000;
/// CLOCK_REALTIME minus CLOCK_BOOTTIME, ns.
const WALL: u64 = 1_700_000_000_000_000_000;
const KERNELS: [&str; 4] = [
    "_Z4gemmILi128EfEvPT0_PKS0_S3_i",
    "_Z7softmaxPfPKfi",
    "_Z10layer_normPfPKfS1_i",
    "__amd_rocclr_fillBufferAligned",
];
const CALLS: [&str; 2] = ["hipLaunchKernel", "hipMemcpyAsync"];

/// What is made.
pub(crate) struct Made {
    /// Records in all, about: a call and its work each time.
    pub(crate) records: u64,
    /// Threads that share them.
    pub(crate) threads: u32,
    /// Process id.
    pub(crate) pid: u32,
    /// When its image was created, ns of CLOCK_REALTIME; 0 as in recordings of early releases, which do not say it.
    pub(crate) created: u64,
    /// Rank, -1 for none.
    pub(crate) rank: i32,
    /// Host name.
    pub(crate) host: &'static str,
    /// What is added to CLOCK_BOOTTIME here, ns: another machine's clock.
    pub(crate) boot_offset: u64,
    /// How much later everything happens, ns.
    pub(crate) later: u64,
    /// Records of the first thread that were overwritten.
    pub(crate) lost: u64,
    /// Factor of all durations.
    pub(crate) slowness: u64,
    /// Bytes that are kept.
    pub(crate) most: Option<u64>,
    /// A mark at each step, with a distinct text.
    pub(crate) marks: bool,
    /// Text of the command line and of these marks, in place of the usual ones.
    pub(crate) text: Option<&'static str>,
    /// Counters with a value of each dispatch; then each has a sample of its program counter and the GPU a gauge, too.
    pub(crate) counters: u32,
    /// Every such step has a kernel that takes a hundred times as long; 0 for none.
    pub(crate) long_every: u64,
    /// The same of copies.
    pub(crate) long_copy_every: u64,
    /// Seed of ranges at random that nest and cross, in place of the usual ones, and of allocations; 0 for none.
    pub(crate) ranges: u64,
    /// Before every such step the host pauses, each time for another time of up to 20 ms; 0 for never.
    pub(crate) pause_every: u64,
    /// What the collector says is not recorded.
    pub(crate) incomplete: Option<&'static str>,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            records: 10_000,
            threads: 2,
            pid: 4242,
            created: 0,
            rank: -1,
            host: "node7",
            boot_offset: 0,
            later: 0,
            lost: 0,
            slowness: 1,
            most: None,
            marks: false,
            text: None,
            counters: 0,
            long_every: 0,
            long_copy_every: 0,
            ranges: 0,
            pause_every: 0,
            incomplete: None,
        }
    }
}

/// Counts of what was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) dispatches: u64,
    pub(crate) copies: u64,
    pub(crate) markers: u64,
    /// Values of counters; as many records of each dispatch, and one sample and gauge.
    pub(crate) values: u64,
}

impl Counts {
    pub(crate) const fn records(self) -> u64 {
        self.calls + self.dispatches + self.copies + self.markers + self.values
    }
}

struct Writer {
    recorder: Recorder,
    ordinals: Vec<u32>,
}

impl Writer {
    fn slots(head: Head, payload: &[[u64; 6]], ordinal: u32) -> Vec<Slot> {
        let slots = payload.len() as u8;
        let first = Head::new(head.kind(), head.flags(), slots, head.domain().0).with_ordinal(ordinal.into());
        let heads = (0..slots).map(|at| {
            if at == 0 {
                first
            } else {
                Head::new(roctop_ring::record::CONTINUATION, 0, at, 0).with_ordinal(ordinal.into())
            }
        });
        heads
            .zip(payload)
            .map(|(head, p)| [head.0, p[0], p[1], p[2], p[3], p[4], p[5], 0])
            .collect()
    }

    fn take(&mut self, raw: &Raw<'_>) {
        self.recorder.take(ProcessId(0), raw);
    }

    fn fact(&mut self, head: Head, payload: &[[u64; 6]]) {
        self.take(&Raw::Fact(&Self::slots(head, payload, 0)));
    }

    fn record(&mut self, thread: u32, tid: u32, head: Head, payload: &[[u64; 6]]) {
        let ordinal = self.ordinals[thread as usize];
        self.ordinals[thread as usize] = ordinal.wrapping_add(1);
        let slots = Self::slots(head, payload, ordinal);
        self.take(&Raw::Record(Thread { index: thread, tid }, &slots));
    }

    /// A range, or a mark when it has no length.
    fn marker(&mut self, thread: u32, tid: u32, times: [u64; 2], own: u64, text: &str) {
        self.range(thread, tid, times, own, [0, 0], text);
    }

    /// The same of a start/stop range with an id, or of a level.
    fn range(&mut self, thread: u32, tid: u32, times: [u64; 2], own: u64, [id, level]: [u64; 2], text: &str) {
        let payload = Marker::payload(times, own, id, 0, level as u16, text.as_bytes());
        let slots = Marker::slots(text.len());
        let kind = if times[0] == times[1] {
            Marker::MARK
        } else {
            Marker::RANGE
        };
        let head = Head::new(kind, 0, slots as u8, Domain::MARKER.0);
        self.record(thread, tid, head, &payload[..slots]);
    }

    fn calibrate(&mut self, now: u64, boot_offset: u64) {
        let mut words = [0; clock::WORDS];
        words[clock::SEQUENCE] = 2;
        words[clock::TICKS] = now;
        words[clock::BOOTTIME] = now + boot_offset;
        words[clock::REALTIME] = now + WALL;
        words[clock::HSA] = now + boot_offset;
        words[clock::WIDTH] = 40;
        self.take(&Raw::Calibration(&words));
    }
}

/// Makes a recording at `path`.
pub(crate) fn make(path: &Path, made: &Made) -> Counts {
    let command: Vec<String> = match made.text {
        Some(text) => vec![text.to_owned()],
        None => ["./train", "--steps", "9"].map(str::to_owned).to_vec(),
    };
    let recorder = Recorder::create(path, &command, &[]).unwrap().with_limit(made.most);
    let mut writer = Writer {
        recorder,
        ordinals: vec![0; made.threads as usize + 1],
    };
    facts(&mut writer, made);
    let gpu = made.threads;
    let mut counts = Counts::default();
    let mut now = BEGIN + made.later;
    let mut step = 0u64;
    let mut queue_free = 0;
    let mut ranges = Ranges::new(made);
    while counts.records() < made.records {
        if made.pause_every > 0 && step % made.pause_every == made.pause_every - 1 {
            now += step.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 20_000_000;
        }
        let thread = (step % u64::from(made.threads)) as u32;
        let tid = made.pid + thread;
        let correlation = (u64::from(thread) + 1) << 40 | (step + 1);
        let is_copy = step % 10 == 9;
        let call = ApiCall {
            start: now,
            end: now + 900,
            correlation,
            op: u16::from(is_copy),
            has_status: 1,
            ..ApiCall::default()
        };
        if made.ranges > 0 {
            ranges.allocate(&mut writer, thread, tid, [now + 100, correlation]);
        }
        writer.record(thread, tid, ApiCall::head(0, Domain::HIP), &call.payload());
        counts.calls += 1;
        let begin = match made.ranges {
            0 => (now + 1500).max(queue_free) + made.boot_offset,
            // Kernels overlap.
            _ => now + 1500 + ranges.next(3000) + made.boot_offset,
        };
        let is_long_copy = is_copy && made.long_copy_every > 0 && (step + 1).is_multiple_of(made.long_copy_every);
        let is_long = is_long_copy || made.long_every > 0 && step.is_multiple_of(made.long_every);
        let factor = if is_long { 100 } else { 1 };
        let end = begin + (2000 + step % 7 * 100) * made.slowness * factor;
        queue_free = end - made.boot_offset;
        if is_copy {
            let copy = copied([begin, end, now + 600], correlation, tid);
            writer.record(gpu, made.pid + gpu, Copy::head(0, Domain::NONE), &copy.payload());
            counts.copies += 1;
        } else {
            counts.dispatches += 1;
            let dispatch = Dispatch {
                kernel_object: 0x1000 + step % KERNELS.len() as u64 * 64,
                dispatch_id: counts.dispatches,
                ..dispatched([begin, end, now + 600], correlation, tid)
            };
            writer.record(
                gpu,
                made.pid + gpu,
                Dispatch::head(0, Domain::NONE),
                &dispatch.payload(),
            );
        }
        if made.counters > 0 && !is_copy {
            measured(&mut writer, made, counts.dispatches, end);
            counts.values += u64::from(made.counters);
        }
        if made.marks {
            let text = made.text.map_or_else(|| format!("iteration {step}"), str::to_owned);
            // A longer one would be a string of its process.
            let text = &text[..text.floor_char_boundary(Marker::INLINE_TEXT)];
            writer.marker(thread, tid, [now, now], 8u64 << 40 | (step + 1), text);
            counts.markers += 1;
        }
        if made.ranges > 0 {
            counts.markers += ranges.turn(&mut writer, thread, tid, [now + 1000, step + 1]);
        } else if step % 100 == 99 {
            let text = format!("step {}", step / 100 % 50);
            let own = 7u64 << 40 | (step + 1);
            writer.marker(thread, tid, [now - 50_000 * made.slowness, now + 1000], own, &text);
            counts.markers += 1;
        }
        now += 2_500 * made.slowness;
        step += 1;
        if step.is_multiple_of(100_000) {
            writer.calibrate(now, made.boot_offset);
        }
        if step.is_multiple_of(500) {
            writer.take(&Raw::Now(now + made.boot_offset));
        }
    }
    writer.calibrate(now, made.boot_offset);
    end(writer, made, now);
    counts
}

/// Ranges at random. The first thread has steps, whose numbers begin again every 40. Each thread has nested ranges and start/stop
/// ranges across them, with few texts, so that ranges of one text are in one another.
struct Ranges {
    state: u64,
    /// By thread: open ranges of the stack, and started ones.
    open: Vec<[Vec<(u64, String)>; 2]>,
    steps: u64,
    /// Addresses and sizes of allocations that are held.
    held: Vec<(u64, u64)>,
    allocations: u64,
}

impl Ranges {
    fn new(made: &Made) -> Self {
        Self {
            state: made.ranges,
            open: vec![Default::default(); made.threads as usize],
            steps: 0,
            held: Vec::new(),
            allocations: 0,
        }
    }

    fn next(&mut self, most: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) % most
    }

    /// Text of a range of the stack that begins.
    fn text(&mut self, thread: u32, depth: usize) -> String {
        match (depth, thread) {
            (0, 0) => {
                self.steps += 1;
                format!("step {}", (self.steps - 1) % 40)
            }
            (0, _) => "load".to_owned(),
            _ => format!("layer {}", self.next(5)),
        }
    }

    /// Begins or ends ranges after a call, at `now`; returns the number of those that ended.
    fn turn(&mut self, writer: &mut Writer, thread: u32, tid: u32, [now, number]: [u64; 2]) -> u64 {
        let (mut at, mut ended) = (now, 0);
        for edge in 0..2 {
            at += 1 + self.next(200);
            let own = 7 << 40 | number << 1 | edge;
            let choice = self.next(10);
            let [depth, started] = [0, 1].map(|kind| self.open[thread as usize][kind].len());
            match choice {
                // Most of the time the first thread is in a step.
                0..3 if depth < 4 && (depth > 0 || thread == 0 || choice == 0) => {
                    let text = self.text(thread, depth);
                    self.open[thread as usize][0].push((at, text));
                }
                3..7 => {
                    if let Some((begin, text)) = self.open[thread as usize][0].pop() {
                        let level = depth as u64 - 1;
                        writer.range(thread, tid, [begin, at], own, [0, level], &text);
                        ended += 1;
                    }
                }
                7 if started < 2 => self.open[thread as usize][1].push((at, format!("request {number}"))),
                8.. if started > 0 => {
                    let which = self.next(started as u64) as usize;
                    let (begin, text) = self.open[thread as usize][1].swap_remove(which);
                    writer.range(thread, tid, [begin, at], own, [number, 0], &text);
                    ended += 1;
                }
                _ => {}
            }
        }
        ended
    }

    /// Allocates or frees memory at a time within a call.
    fn allocate(&mut self, writer: &mut Writer, thread: u32, tid: u32, [at, correlation]: [u64; 2]) {
        let (operation, address, bytes) = match self.next(12) {
            0 | 1 => {
                self.allocations += 1;
                let (address, bytes) = (self.allocations << 20, 4096 * (1 + self.next(900)));
                self.held.push((address, bytes));
                (memory::ALLOCATE, address, bytes)
            }
            2 if !self.held.is_empty() => {
                let which = self.next(self.held.len() as u64) as usize;
                let (address, bytes) = self.held.swap_remove(which);
                (memory::FREE, address, bytes)
            }
            _ => return,
        };
        let record = Allocation {
            start: at,
            end: at + 50,
            correlation,
            address,
            bytes,
            total: self.held.iter().map(|held| held.1).sum(),
            agent: 1,
            operation,
            ..Allocation::default()
        };
        writer.record(thread, tid, Allocation::head(0, Domain::NONE), &record.payload());
    }
}

fn end(mut writer: Writer, made: &Made, now: u64) {
    let thread = Thread {
        index: 0,
        tid: made.pid,
    };
    if made.lost > 0 {
        writer.take(&Raw::Lost(thread, LossReason::Overwritten, made.lost));
    }
    writer.take(&Raw::Ended(Exit::Code(0), now + made.boot_offset));
    writer.recorder.finish().unwrap();
}

/// A dispatch that began, ended and was submitted at these times.
fn dispatched([begin, end, submit]: [u64; 3], correlation: u64, tid: u32) -> Dispatch {
    Dispatch {
        begin,
        end,
        submit,
        correlation,
        grid_x: 65536,
        grid_y: 1,
        grid_z: 1,
        workgroup_x: 256,
        workgroup_y: 1,
        workgroup_z: 1,
        group_size: 600,
        agent: 1,
        queue: 1,
        stream: 1,
        tid,
        ..Dispatch::default()
    }
}

/// A copy that began, ended and was submitted at these times.
fn copied([begin, end, submit]: [u64; 3], correlation: u64, tid: u32) -> Copy {
    Copy {
        begin,
        end,
        submit,
        correlation,
        bytes: 1 << 16,
        dst_agent: 1,
        stream: 1,
        tid,
        direction: direction::H2D,
        engine: engine::SDMA,
        ..Copy::default()
    }
}

/// What is measured of a dispatch that ended at `end`, CLOCK_BOOTTIME ns.
fn measured(writer: &mut Writer, made: &Made, dispatch_id: u64, end: u64) {
    let gpu = made.threads;
    for counter in 0..made.counters {
        let value = CounterValue {
            dispatch_id,
            value: ((dispatch_id * 10 + u64::from(counter)) as f64).to_bits(),
            counter,
            agent: 1,
            pass: 1,
            ..CounterValue::default()
        };
        let head = CounterValue::head(0, Domain::NONE);
        writer.record(gpu, made.pid + gpu, head, &value.payload());
    }
    let sample = PcSample {
        time: end - 1,
        exec_mask: 3,
        dispatch_id,
        code_object: 1,
        offset: dispatch_id % 512 * 4,
        method: roctop_ring::record::sampling::HOST_TRAP,
        ..PcSample::default()
    };
    let head = PcSample::head(0, Domain::NONE);
    writer.record(gpu, made.pid + gpu, head, &sample.payload());
    let gauge = Sample {
        at: end,
        node: 1,
        readings: vec![(Metric::POWER, Ok(dispatch_id as f64))],
        ..Sample::default()
    };
    writer.take(&Raw::Gauges(&[gauge]));
}

fn facts(writer: &mut Writer, made: &Made) {
    let header = Header {
        major: roctop_ring::layout::MAJOR,
        pid: made.pid,
        ppid: 1,
        start_ticks: u64::from(made.pid),
        created: made.created,
        rank: made.rank,
        host: made.host.into(),
        exe: "train".into(),
        command: "./train --steps 9".into(),
        ..Header::default()
    };
    writer.take(&Raw::Header(&header));
    writer.calibrate(BEGIN - 1000, made.boot_offset);
    writer.calibrate(BEGIN, made.boot_offset);
    let texts = ["AMD EPYC", "gfx906"].iter().chain(&KERNELS).chain(&CALLS);
    for (id, text) in (1..).zip(texts) {
        writer.take(&Raw::Text(id, text.as_bytes()));
    }
    for index in 0..2 {
        let agent = Agent {
            handle: 100 + u64::from(index),
            index,
            node: index,
            kind: index,
            name: index + 1,
            compute_units: 60,
            wave_size: 64,
            ..Agent::default()
        };
        writer.fact(Agent::head(0, Domain::NONE), &agent.payload());
    }
    for number in 0..KERNELS.len() as u32 {
        let symbol = KernelSymbol {
            kernel_object: 0x1000 + u64::from(number) * 64,
            code_object: 1,
            name: 3 + number,
            agent: 1,
            group_size: 600,
            has_descriptor: 1,
            ..KernelSymbol::default()
        };
        writer.fact(KernelSymbol::head(0, Domain::NONE), &symbol.payload());
    }
    for op in 0..CALLS.len() as u32 {
        let name = OperationName {
            domain: u32::from(Domain::HIP.0),
            op,
            name: 3 + KERNELS.len() as u32 + op,
            reserved: 0,
        };
        writer.fact(OperationName::head(0, Domain::NONE), &name.payload());
    }
    if let Some(text) = made.incomplete {
        writer.take(&Raw::Text(99, text.as_bytes()));
        let status = Status {
            code: status::INCOMPLETE,
            text: 99,
            ..Status::default()
        };
        writer.fact(Status::head(0, Domain::NONE), &status.payload());
    }
    for id in 0..made.counters {
        let name = 100 + id;
        writer.take(&Raw::Text(name, format!("COUNTER_{id:02}").as_bytes()));
        let counter = Counter {
            handle: 9 + u64::from(id),
            id,
            agent: 1,
            name,
            pass: 1,
            ..Counter::default()
        };
        writer.fact(Counter::head(0, Domain::NONE), &counter.payload());
    }
    let queue = Queue {
        handle: 0x7f00_0000,
        id: 1,
        agent: 1,
        state: 1,
        intercepted: 1,
        ..Queue::default()
    };
    writer.fact(Queue::head(0, Domain::NONE), &queue.payload());
    let stream = Stream {
        handle: 0,
        id: 0,
        state: 1,
        ..Stream::default()
    };
    writer.fact(Stream::head(0, Domain::NONE), &stream.payload());
}
