//! The demo: a training loop that is made up, recorded by the real collector.
//!
//! A private variable ([`ENV_DEMO`](roctop_ring::session::ENV_DEMO)) starts it in roctop's own worker process. Host
//! calls are entered and left by real threads at real times; kernels and copies have modelled durations on modelled
//! queues, and a third thread records each when its time has come, as the completion thread does for a real GPU.
//!
//! Stands in for a GPU and a program alone. Absent on purpose: anything of it in a program that a user runs.

mod counters;

use self::counters::Counters;
use crate::collector::{allocation, api_enter, api_exit, copy, dispatch, pop, push};
use crate::{clock, collector, process};
use roctop_ring::layout::queue;
use roctop_ring::record::{
    Agent, Allocation, Copy, Dispatch, Domain, KernelSymbol, OperationName, Queue, Stream, direction, engine, memory,
    status,
};
use roctop_ring::session::wanted;
use roctop_ring::sync::Ordering;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

const GPUS: usize = 2;
/// Queues of a GPU: compute, copies, collective.
const STREAMS: usize = 3;

/// Operations by number, named by facts as a run-time's are.
const OPERATIONS: [&str; 11] = [
    "hipLaunchKernel",
    "hipMemcpyAsync",
    "hipStreamSynchronize",
    "hipEventRecord",
    "hipStreamWaitEvent",
    "hipSetDevice",
    "hipMemcpy",
    "hipGetLastError",
    "hipEventQuery",
    "hipMalloc",
    "hipFree",
];
const LAUNCH: u16 = 0;
const MEMCPY_ASYNC: u16 = 1;
const SYNCHRONIZE: u16 = 2;
const EVENT_RECORD: u16 = 3;
const WAIT_EVENT: u16 = 4;
const SET_DEVICE: u16 = 5;
const MEMCPY: u16 = 6;
const MALLOC: u16 = 9;
const FREE: u16 = 10;

/// A kernel of the model: mangled name, mean duration in ns, grid, work-group, LDS bytes.
struct Kernel(&'static str, u64, [u32; 3], [u16; 3], u32);

const KERNELS: [Kernel; 9] = [
    Kernel(
        "_Z13embedding_fwdIDF16_EvPT_PKS0_PKii",
        84_000,
        [65536, 1, 1],
        [256, 1, 1],
        0,
    ),
    Kernel(
        "_Z14layer_norm_fwdIDF16_Li4096EEvPT_PKS0_S3_S3_f",
        55_000,
        [262_144, 1, 1],
        [256, 1, 1],
        4096,
    ),
    Kernel(
        "Cijk_Alik_Bljk_HHS_BH_MT256x128x64_MI32x32x8x1_SE_1LDSB0",
        541_000,
        [131_072, 4, 1],
        [256, 1, 1],
        65536,
    ),
    Kernel(
        "_Z13fmha_fwd_bf16ILi128ELb1EEvPvPKvS2_S2_if",
        562_000,
        [49152, 16, 1],
        [256, 1, 1],
        32768,
    ),
    Kernel(
        "_Z18elementwise_kernelILi4E8gelu_fwdEvPfPKfi",
        55_200,
        [1_048_576, 1, 1],
        [256, 1, 1],
        0,
    ),
    Kernel(
        "_Z13softmax_xentrIfEvPT_PKS0_PKii",
        121_000,
        [32768, 1, 1],
        [1024, 1, 1],
        8192,
    ),
    Kernel(
        "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI16x16x16x1_SE_1LDSB1",
        702_000,
        [131_072, 8, 1],
        [256, 1, 1],
        49152,
    ),
    Kernel(
        "_Z10adamw_stepIfEvPT_S1_S1_PKS0_fffffi",
        243_000,
        [2_097_152, 1, 1],
        [512, 1, 1],
        0,
    ),
    Kernel(
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
        1_410_000,
        [16384, 1, 1],
        [512, 1, 1],
        24576,
    ),
];
const EMBEDDING: usize = 0;
const NORM: usize = 1;
const GEMM: usize = 2;
const ATTENTION: usize = 3;
const GELU: usize = 4;
const LOSS: usize = 5;
const GEMM_BACKWARD: usize = 6;
const ADAM: usize = 7;
const ALL_REDUCE: usize = 8;
const LAYERS: usize = 6;

/// Starts the demo's threads. They go on until the process ends.
pub(crate) fn start() {
    let Some(process) = process::ensure() else { return };
    facts(process);
    let (sender, receiver) = channel();
    let trainer = sender.clone();
    // A demo that cannot start a thread shows an empty screen, which says so.
    let _ = std::thread::Builder::new()
        .name("completion".into())
        .spawn(move || complete(process, &receiver));
    let _ = std::thread::Builder::new()
        .name("loader".into())
        .spawn(move || load(sender));
    let _ = std::thread::Builder::new()
        .name("trainer".into())
        .spawn(move || train(trainer));
}

fn facts(process: &'static process::Process) {
    let name = |text: &str| process.intern(text.as_bytes());
    let cpu = Agent {
        name: name("AMD EPYC 9654"),
        ..Agent::default()
    };
    process.fact(Agent::head(0, Domain::NONE), &cpu.payload());
    for gpu in 0..GPUS as u32 {
        let agent = Agent {
            handle: u64::from(gpu) + 1,
            memory: 192 << 30,
            index: gpu + 1,
            node: gpu + 1,
            kind: 1,
            name: name("gfx942"),
            product: name("AMD Instinct MI300X"),
            compute_units: 304,
            wave_size: 64,
            ..Agent::default()
        };
        process.fact(Agent::head(0, Domain::NONE), &agent.payload());
        for stream in 0..STREAMS as u32 {
            let id = gpu * STREAMS as u32 + stream;
            let fact = Queue {
                time: clock::now(),
                id: id + 1,
                agent: gpu + 1,
                size: 16384,
                state: 1,
                intercepted: 1,
                ..Queue::default()
            };
            process.fact(Queue::head(0, Domain::NONE), &fact.payload());
            let label = ["compute", "copy", "comm"].get(stream as usize).copied().unwrap_or("");
            let named = Stream {
                time: clock::now(),
                id,
                device: gpu as i32,
                name: name(label),
                state: 3,
                ..Stream::default()
            };
            process.fact(Stream::head(0, Domain::NONE), &named.payload());
        }
    }
    for (at, kernel) in KERNELS.iter().enumerate() {
        let symbol = KernelSymbol {
            kernel_object: object(at),
            code_object: 1,
            name: name(kernel.0),
            agent: 1,
            group_size: kernel.4,
            rsrc1: 15 | 6 << 6,
            rsrc3: 31,
            has_descriptor: 1,
            ..KernelSymbol::default()
        };
        process.fact(KernelSymbol::head(0, Domain::NONE), &symbol.payload());
    }
    for (op, text) in OPERATIONS.iter().enumerate() {
        let fact = OperationName {
            domain: u32::from(Domain::HIP.0),
            op: op as u32,
            name: name(text),
            reserved: 0,
        };
        process.fact(OperationName::head(0, Domain::NONE), &fact.payload());
    }
    process.say(status::BACKEND, 0, "demo: a made-up training loop on two made-up GPUs");
}

fn object(kernel: usize) -> u64 {
    0x7f00_0000_0000 + kernel as u64 * 64
}

fn kernel_of(object: u64) -> usize {
    ((object - 0x7f00_0000_0000) / 64) as usize
}

/// CLOCK_BOOTTIME, ns: the clock of the modelled GPU.
fn now() -> u64 {
    clock::boottime()
}

/// Numbers that look like noise and are the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// `mean` give or take a few per cent, and now and then much more.
    fn around(&mut self, mean: u64) -> u64 {
        let spread = mean / 16 + 1;
        let value = mean - spread / 2 + self.next() % spread;
        if self.next().is_multiple_of(400) {
            value * 3
        } else {
            value
        }
    }
}

/// Work that the modelled GPU will have done at some time.
enum Work {
    Kernel(Dispatch),
    Copy(Copy),
}

impl Work {
    fn end(&self) -> u64 {
        match self {
            Self::Kernel(record) => record.end,
            Self::Copy(record) => record.end,
        }
    }
}

/// Orders work by its end.
struct Ending(u64, u64, Work);

impl PartialEq for Ending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Ending {}
impl PartialOrd for Ending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Records what is done, when it is done.
fn complete(process: &'static process::Process, work: &Receiver<Work>) {
    let mut open: BinaryHeap<Reverse<Ending>> = BinaryHeap::new();
    let mut number = 0;
    let mut calibrated = now();
    let mut counters = Counters::begin(process, calibrated);
    loop {
        let wait = open
            .peek()
            .map_or(50_000_000, |next| next.0.0.saturating_sub(now()))
            .clamp(100_000, 50_000_000);
        match work.recv_timeout(Duration::from_nanos(wait)) {
            Ok(work) => {
                number += 1;
                submitted(process, &work);
                open.push(Reverse(Ending(work.end(), number, work)));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while open.peek().is_some_and(|next| next.0.0 <= now()) {
            if let Some(Reverse(Ending(_, _, done))) = open.pop() {
                finish(process, &done);
                if let (Some(counters), Work::Kernel(record)) = (&mut counters, &done) {
                    counters.count(record, kernel_of(record.kernel_object));
                }
            }
        }
        if let Some(counters) = &mut counters {
            counters.read_when_due(now());
        }
        if now() - calibrated > 2_000_000_000 {
            calibrated = now();
            process.calibrate();
        }
    }
}

fn submitted(process: &process::Process, work: &Work) {
    let Work::Kernel(record) = work else { return };
    let Some(words) = process.main().and_then(|file| file.queue(record.queue as usize - 1)) else {
        return;
    };
    let [id, submitted, ..] = words else { return };
    id.store(u64::from(record.queue), Ordering::Relaxed);
    let at = queue::HEADER + (record.dispatch_id as usize % queue::SLOTS) * queue::SLOT_WORDS;
    if let Some([time, kernel, correlation, number]) = words.get(at..at + queue::SLOT_WORDS) {
        kernel.store(record.kernel_object, Ordering::Relaxed);
        correlation.store(record.correlation, Ordering::Relaxed);
        number.store(record.dispatch_id, Ordering::Relaxed);
        time.store(record.submit, Ordering::Release);
    }
    submitted.fetch_add(1, Ordering::Relaxed);
}

fn finish(process: &process::Process, work: &Work) {
    match work {
        Work::Kernel(record) => {
            dispatch(record, 0);
            let Some(words) = process.main().and_then(|file| file.queue(record.queue as usize - 1)) else {
                return;
            };
            let at = queue::HEADER + (record.dispatch_id as usize % queue::SLOTS) * queue::SLOT_WORDS;
            if let Some(time) = words.get(at) {
                time.store(0, Ordering::Release);
            }
            if let Some(completed) = words.get(queue::COMPLETED) {
                completed.fetch_add(1, Ordering::Relaxed);
            }
        }
        Work::Copy(record) => copy(record, 0),
    }
}

/// A host thread of the model.
struct Host {
    work: Sender<Work>,
    noise: Noise,
    /// When each queue is free again, CLOCK_BOOTTIME ns.
    free: [u64; GPUS * STREAMS],
}

impl Host {
    fn call<T>(&mut self, op: u16, nanos: u64, body: impl FnOnce(&mut Self, u64) -> T) -> T {
        let call = api_enter(Domain::HIP, op, wanted::HIP_API);
        let answer = body(self, call.map_or(0, |call| call.correlation));
        let until = now() + self.noise.around(nanos);
        if nanos < 100_000 {
            while now() < until {
                std::hint::spin_loop();
            }
        } else {
            std::thread::sleep(Duration::from_nanos(until.saturating_sub(now())));
        }
        if let Some(call) = call {
            api_exit(&call, Some(0), 0);
        }
        answer
    }

    fn launch(&mut self, gpu: usize, stream: usize, kernel: usize) {
        self.call(LAUNCH, 3_500, |host, correlation| {
            let Some(Kernel(_, mean, grid, workgroup, group)) = KERNELS.get(kernel) else {
                return;
            };
            let at = gpu * STREAMS + stream;
            let mean = if gpu == 1 { mean * 21 / 20 } else { *mean };
            let (begin, end) = host.occupy(at, mean);
            let ([grid_x, grid_y, grid_z], [workgroup_x, workgroup_y, workgroup_z]) = (*grid, *workgroup);
            let number = process::get().map_or(0, |process| process.submit(1) + 1);
            let record = Dispatch {
                begin,
                end,
                submit: clock::now(),
                correlation,
                kernel_object: object(kernel),
                dispatch_id: number,
                grid_x,
                grid_y,
                grid_z,
                workgroup_x,
                workgroup_y,
                workgroup_z,
                source: 1,
                group_size: *group,
                agent: gpu as u32 + 1,
                queue: at as u32 + 1,
                stream: at as u32 + 1,
                tid: Host::tid(),
                ..Dispatch::default()
            };
            let _ = host.work.send(Work::Kernel(record));
        });
    }

    fn tid() -> u32 {
        crate::thread::current().map_or(0, crate::thread::Thread::tid)
    }

    /// Takes the queue for a while: begin and end.
    fn occupy(&mut self, at: usize, mean: u64) -> (u64, u64) {
        let duration = self.noise.around(mean);
        let ready = now() + 4_000;
        let Some(free) = self.free.get_mut(at) else {
            return (ready, ready + duration);
        };
        let begin = ready.max(*free + 600);
        *free = begin + duration;
        (begin, *free)
    }

    fn memcpy(&mut self, gpu: usize, bytes: u64, way: u16) {
        self.call(MEMCPY_ASYNC, 6_000, |host, correlation| {
            let at = gpu * STREAMS + 1;
            // 25 GB/s to the device, 22 GB/s back, 48 GB/s between GPUs, and 9 us for each.
            let rate = if way == direction::D2D {
                48
            } else if way == direction::H2D {
                25
            } else {
                22
            };
            let (begin, end) = host.occupy(at, 9_000 + bytes / rate);
            let agent = gpu as u32 + 1;
            let (src_agent, dst_agent) = match way {
                direction::H2D => (0, agent),
                direction::D2D => (agent, 3 - agent),
                _ => (agent, 0),
            };
            let record = Copy {
                begin,
                end,
                submit: clock::now(),
                correlation,
                bytes,
                dst: 0x7f10_0000_0000,
                src: 0x7f20_0000_0000,
                src_agent,
                dst_agent,
                stream: at as u32 + 1,
                tid: Host::tid(),
                direction: way,
                engine: engine::SDMA,
                source: 1,
                ..Copy::default()
            };
            let _ = host.work.send(Work::Copy(record));
        });
    }

    fn synchronize(&mut self, gpu: usize, stream: usize) {
        self.call(SYNCHRONIZE, 800, |host, _| {
            let until = host.free.get(gpu * STREAMS + stream).copied().unwrap_or(0);
            std::thread::sleep(Duration::from_nanos(until.saturating_sub(now())));
        });
    }
}

/// Bytes that each GPU holds.
static HELD: [AtomicU64; GPUS] = [const { AtomicU64::new(0) }; GPUS];
/// Where the next allocation is.
static NEXT_ADDRESS: AtomicU64 = AtomicU64::new(0x7f30_0000_0000);

impl Host {
    /// Allocates device memory; where it is.
    fn malloc(&mut self, gpu: usize, bytes: u64) -> u64 {
        let address = NEXT_ADDRESS.fetch_add(bytes.next_multiple_of(1 << 21), Ordering::Relaxed);
        self.call(MALLOC, 90_000, |_, correlation| {
            let total = HELD
                .get(gpu)
                .map_or(0, |held| held.fetch_add(bytes, Ordering::Relaxed) + bytes);
            remember(gpu, memory::ALLOCATE, correlation, [address, bytes, total]);
        });
        address
    }

    fn free(&mut self, gpu: usize, address: u64, bytes: u64) {
        self.call(FREE, 60_000, |_, correlation| {
            let total = HELD
                .get(gpu)
                .map_or(0, |held| held.fetch_sub(bytes, Ordering::Relaxed) - bytes);
            remember(gpu, memory::FREE, correlation, [address, bytes, total]);
        });
    }
}

fn remember(gpu: usize, operation: u16, correlation: u64, [address, bytes, total]: [u64; 3]) {
    let (start, until) = (clock::now(), now() + 12_000);
    while now() < until {
        std::hint::spin_loop();
    }
    allocation(&Allocation {
        start,
        end: clock::now(),
        correlation,
        address,
        bytes,
        total,
        agent: gpu as u32 + 1,
        operation,
        reserved: 0,
    });
}

/// The training loop: forward, backward, all-reduce, optimizer; every tenth step reads the loss back.
fn train(work: Sender<Work>) {
    let mut host = Host {
        work,
        noise: Noise(0x9e37_79b9_7f4a_7c15),
        free: [0; GPUS * STREAMS],
    };
    for gpu in 0..GPUS {
        // Weights, the optimizer's state, room for the kernels.
        for bytes in [14 << 30, 28 << 30, 256 << 20] {
            host.malloc(gpu, bytes);
        }
    }
    for step in 0u64.. {
        push(format!("step {step}").as_bytes());
        push(b"forward");
        for gpu in 0..GPUS {
            host.call(SET_DEVICE, 300, |_, _| ());
            host.call(WAIT_EVENT, 900, |_, _| ());
            host.launch(gpu, 0, EMBEDDING);
            for _ in 0..LAYERS {
                for kernel in [NORM, GEMM, ATTENTION, NORM, GEMM, GELU] {
                    host.launch(gpu, 0, kernel);
                }
            }
            host.launch(gpu, 0, LOSS);
        }
        pop();
        push(b"backward");
        for gpu in 0..GPUS {
            host.call(SET_DEVICE, 300, |_, _| ());
            for layer in 0..LAYERS {
                for kernel in [GELU, GEMM_BACKWARD, ATTENTION, GEMM_BACKWARD] {
                    host.launch(gpu, 0, kernel);
                }
                host.call(EVENT_RECORD, 1_100, |_, _| ());
                if layer % 2 == 1 {
                    host.launch(gpu, 2, ALL_REDUCE);
                }
            }
        }
        pop();
        push(b"optimizer");
        for gpu in 0..GPUS {
            host.launch(gpu, 0, ADAM);
            host.memcpy(gpu, 4 << 20, direction::D2D);
        }
        for gpu in 0..GPUS {
            host.synchronize(gpu, 0);
        }
        pop();
        if step % 10 == 9 {
            push(b"log");
            host.memcpy(0, 4096, direction::D2H);
            host.synchronize(0, 1);
            // The host thinks, and both GPUs wait for it.
            std::thread::sleep(Duration::from_millis(6));
            collector::mark(format!("loss {:.4}", 8.0 / (step as f64 + 1.0).sqrt()).as_bytes());
            pop();
        }
        pop();
    }
}

/// Bytes of a batch.
const BATCH: u64 = 48 << 20;

/// The loader: a batch for each GPU, a few times a second.
fn load(work: Sender<Work>) {
    let mut host = Host {
        work,
        noise: Noise(0x2545_f491_4f6c_dd1d),
        free: [0; GPUS * STREAMS],
    };
    let mut held = [0u64; GPUS];
    for batch in 0u64.. {
        push(b"load batch");
        for (gpu, held) in held.iter_mut().enumerate() {
            // Once in a while one batch is forgotten: a leak to be found.
            if *held != 0 && batch % 64 != 63 {
                host.free(gpu, *held, BATCH);
            }
            *held = host.malloc(gpu, BATCH);
            host.memcpy(gpu, BATCH, direction::H2D);
        }
        if batch % 8 == 7 {
            host.call(MEMCPY, 400_000, |_, _| ());
        }
        pop();
        std::thread::sleep(Duration::from_millis(31));
    }
}
