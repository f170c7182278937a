//! A host thread of the demo: calls that take real time, and the work that they give the GPU.

use super::gpu::Work;
use super::noise::Noise;
use super::workload::{FREE, GPUS, GRAPH_LAUNCH, KERNELS, LAUNCH, MALLOC, MEMCPY_ASYNC, STREAMS, SYNCHRONIZE, object};
use roctop_collector::clock::{self, boottime as now};
use roctop_collector::collector::{allocation, api_enter, api_exit};
use roctop_collector::process;
use roctop_ring::record::{Allocation, Copy, Dispatch, Domain, direction, engine, memory};
use roctop_ring::session::wanted;
use roctop_ring::sync::Ordering;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// A host thread of the model.
pub(super) struct Host {
    work: Sender<Work>,
    noise: Noise,
    /// When each queue is free again, CLOCK_BOOTTIME ns.
    free: [u64; GPUS * STREAMS],
}

impl Host {
    /// Sends its work to the GPU; `seed` begins its noise.
    pub(super) fn new(work: Sender<Work>, seed: u64) -> Self {
        Self {
            work,
            noise: Noise(seed),
            free: [0; GPUS * STREAMS],
        }
    }

    /// A call of HIP that takes about `nanos` ns in addition to `body`.
    pub(super) fn call<T>(&mut self, op: u16, nanos: u64, body: impl FnOnce(&mut Self, u64) -> T) -> T {
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

    pub(super) fn launch(&mut self, gpu: usize, stream: usize, kernel: usize) {
        self.call(LAUNCH, 3_500, |host, correlation| {
            host.submit(gpu, stream, kernel, correlation);
        });
    }

    /// Launches a graph: one call for several kernels.
    pub(super) fn launch_graph(&mut self, gpu: usize, stream: usize, kernels: &[usize]) {
        self.call(GRAPH_LAUNCH, 9_000, |host, correlation| {
            for &kernel in kernels {
                host.submit(gpu, stream, kernel, correlation);
            }
        });
    }

    /// Gives a queue a kernel.
    fn submit(&mut self, gpu: usize, stream: usize, kernel: usize, correlation: u64) {
        let Some(model) = KERNELS.get(kernel) else { return };
        let at = gpu * STREAMS + stream;
        let mean = if gpu == 1 { model.mean * 21 / 20 } else { model.mean };
        let (begin, end) = self.occupy(at, mean);
        let ([grid_x, grid_y, grid_z], [workgroup_x, workgroup_y, workgroup_z]) = (model.grid, model.workgroup);
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
            group_size: model.group_size,
            agent: gpu as u32 + 1,
            queue: at as u32 + 1,
            stream: at as u32 + 1,
            tid: Host::tid(),
            ..Dispatch::default()
        };
        let _ = self.work.send(Work::Kernel(record));
    }

    fn tid() -> u32 {
        roctop_collector::thread::current().map_or(0, roctop_collector::thread::Thread::tid)
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

    pub(super) fn memcpy(&mut self, gpu: usize, bytes: u64, way: u16) {
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

    pub(super) fn synchronize(&mut self, gpu: usize, stream: usize) {
        self.call(SYNCHRONIZE, 800, |host, _| {
            let until = host.free.get(gpu * STREAMS + stream).copied().unwrap_or(0);
            std::thread::sleep(Duration::from_nanos(until.saturating_sub(now())));
        });
    }
}

/// Bytes that each GPU holds.
static ALLOCATED: [AtomicU64; GPUS] = [const { AtomicU64::new(0) }; GPUS];

/// Where the next allocation is.
static NEXT_ADDRESS: AtomicU64 = AtomicU64::new(0x7f30_0000_0000);

impl Host {
    /// Allocates device memory; where it is.
    pub(super) fn malloc(&mut self, gpu: usize, bytes: u64) -> u64 {
        let address = NEXT_ADDRESS.fetch_add(bytes.next_multiple_of(1 << 21), Ordering::Relaxed);
        self.call(MALLOC, 90_000, |_, correlation| {
            let total = ALLOCATED
                .get(gpu)
                .map_or(0, |held| held.fetch_add(bytes, Ordering::Relaxed) + bytes);
            remember(gpu, memory::ALLOCATE, correlation, [address, bytes, total]);
        });
        address
    }

    pub(super) fn free(&mut self, gpu: usize, address: u64, bytes: u64) {
        self.call(FREE, 60_000, |_, correlation| {
            let total = ALLOCATED
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
