//! What the demo's program does: it trains, and loads batches meanwhile. Neither loop ends.

use super::gpu::Work;
use super::host::Host;
use super::workload::{
    ADAM, ALL_REDUCE, ATTENTION, EMBEDDING, EVENT_RECORD, GELU, GEMM, GEMM_BACKWARD, GPUS, LAYERS, LOSS, MEMCPY, NORM,
    SET_DEVICE, WAIT_EVENT,
};
use roctop_collector::collector::{self, pop, push};
use roctop_ring::record::direction;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Steps that the training loop has completed.
pub(super) static STEPS: AtomicU64 = AtomicU64::new(0);

/// The training loop: forward, backward, all-reduce, optimizer; every tenth step reads the loss back.
pub(super) fn train(work: Sender<Work>) {
    let mut host = Host::new(work, 0x9e37_79b9_7f4a_7c15);
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
            // The optimizer was captured once: it is a graph.
            host.launch_graph(gpu, 0, &[NORM, ADAM]);
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
        STEPS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes of a batch.
const BATCH: u64 = 48 << 20;

/// The loader: a batch for each GPU, a few times a second.
pub(super) fn load(work: Sender<Work>) {
    let mut host = Host::new(work, 0x2545_f491_4f6c_dd1d);
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
