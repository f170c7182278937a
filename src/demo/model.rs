//! A synthetic training loop on synthetic GPUs, recorded by the collector's core.
//!
//! Host calls are entered and left by real threads at real times. Kernels and copies have modelled durations on modelled
//! queues; a third thread records each when its time has come, as the harvesting thread does for a real GPU.

use super::workload::{GPUS, KERNELS, OPERATIONS, STREAMS, object};
use super::{gpu, program};
use roctop_collector::clock;
use roctop_collector::process::{self, Process};
use roctop_ring::record::{Agent, Domain, KernelSymbol, OperationName, Queue, Stream, status};
use std::sync::mpsc::channel;

/// A training loop whose threads run until the process ends.
pub(super) struct Running {
    process: &'static Process,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.process.close();
    }
}

/// Starts the training loop; `None` if the process is not traced.
pub(super) fn start() -> Option<Running> {
    let process = process::ensure()?;
    facts(process);
    let (sender, receiver) = channel();
    let trainer = sender.clone();
    // A demo that cannot start a thread shows an empty screen, which says so.
    let _ = std::thread::Builder::new()
        .name("completion".into())
        .spawn(move || gpu::complete(process, &receiver));
    let _ = std::thread::Builder::new()
        .name("loader".into())
        .spawn(move || program::load(sender));
    let _ = std::thread::Builder::new()
        .name("trainer".into())
        .spawn(move || program::train(trainer));
    Some(Running { process })
}

fn facts(process: &'static Process) {
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
            name: name(kernel.name),
            agent: 1,
            group_size: kernel.group_size,
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
    process.say(
        status::BACKEND,
        0,
        "demo: a synthetic training loop on two synthetic GPUs",
    );
}
