//! The demo's worker: a process of roctop's own that prints what a training program would. The collector in it makes up
//! the records.

use roctop_ring::session::ENV_DEMO;
use std::io::Write;

/// First argument that makes roctop the demo's worker.
pub const WORKER: &str = "__demo";

/// True when this process was started as the demo's worker.
pub fn is_worker() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == WORKER)
}

/// The demo's worker: the collector in it makes the records; here are the lines that such a program prints.
pub fn work() -> u8 {
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
