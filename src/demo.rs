//! The demo's worker: a roctop process that prints what a training program would, and records a synthetic one.
//!
//! It links the collector's core, so that ring, session and screen are the real ones; the preloaded collector sees nothing
//! in it to record.

mod counters;
pub mod gauges;
mod gpu;
mod host;
mod model;
mod noise;
mod program;
mod samples;
mod workload;

use roctop_bundle::embedded::NAME;
use roctop_ring::session::ENV_DEMO;
use std::io::Write;

/// First argument that makes roctop the demo's worker.
pub const WORKER: &str = "__demo";

/// True when this process was started as the demo's worker.
pub fn is_worker() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == WORKER)
}

/// Runs as the demo's worker, with the lines that a training program prints.
pub fn work() -> u8 {
    if !has_what_was_preloaded() {
        let _ = writeln!(std::io::stderr(), "the loader did not load the collector");
        return 1;
    }
    let _running = model::start();
    let seconds = std::env::var(ENV_DEMO)
        .ok()
        .and_then(|text| text.parse::<f64>().ok())
        .unwrap_or(0.0);
    let started = std::time::Instant::now();
    let mut epoch = 0u32;
    let _ = writeln!(
        std::io::stdout(),
        "demo: a synthetic training loop; nothing here runs on a GPU"
    );
    loop {
        let left = if seconds > 0.0 {
            seconds - started.elapsed().as_secs_f64()
        } else {
            1.0
        };
        if left <= 0.0 {
            return 0;
        }
        std::thread::sleep(std::time::Duration::from_secs_f64(left.min(1.0)));
        epoch += 1;
        let loss = 8.0 / f64::from(epoch + 1).sqrt();
        if writeln!(std::io::stdout(), "epoch {epoch:4}  loss {loss:.4}").is_err() {
            return 0;
        }
    }
}

/// False if the environment says that the collector is preloaded and it is not in this process. The worker needs none, but a
/// trial has to find out whether programs get it.
fn has_what_was_preloaded() -> bool {
    let is_preloaded = std::env::var("LD_PRELOAD").is_ok_and(|list| list.contains(NAME));
    !is_preloaded || std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains(NAME))
}
