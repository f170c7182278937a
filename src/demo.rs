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

use program::STEPS;
use roctop_bundle::embedded::NAME;
use roctop_ring::session::ENV_DEMO;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time between two lines that the worker prints.
const EPOCH: Duration = Duration::from_secs(1);
/// Time between two looks for the file that ends the worker.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Steps after which a worker may end: on a busy machine no step may be complete within its seconds.
const MIN_STEPS: u64 = 2;
/// When a worker ends whose file does not appear: its test is gone.
const FILE_LIMIT: Duration = Duration::from_mins(5);

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
    let running = model::start();
    let end = End::of(&std::env::var(ENV_DEMO).unwrap_or_default());
    let has_worked = || running.is_none() || STEPS.load(Ordering::Relaxed) >= MIN_STEPS;
    let started = Instant::now();
    let _ = writeln!(
        std::io::stdout(),
        "demo: a synthetic training loop; nothing here runs on a GPU"
    );
    let mut epoch = 0u32;
    while end.rest(started.elapsed(), has_worked()).is_some() {
        let began = Instant::now();
        while let Some(left) = EPOCH.checked_sub(began.elapsed())
            && let Some(rest) = end.rest(started.elapsed(), has_worked())
        {
            std::thread::sleep(rest.min(left));
        }
        epoch += 1;
        let loss = 8.0 / f64::from(epoch + 1).sqrt();
        if writeln!(std::io::stdout(), "epoch {epoch:4}  loss {loss:.4}").is_err() {
            break;
        }
    }
    0
}

/// When the worker ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Never,
    After(Duration),
    /// When this file exists.
    Until(PathBuf),
}

impl End {
    /// From the variable's text: seconds, of which 0 is no end, or `until:PATH`.
    fn of(text: &str) -> Self {
        if let Some(path) = text.strip_prefix("until:") {
            return Self::Until(path.into());
        }
        let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0);
        let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        limit.map_or(Self::Never, Self::After)
    }

    /// How long the worker may sleep before it looks again; `None` if it ends.
    fn rest(&self, time: Duration, has_worked: bool) -> Option<Duration> {
        let left = match self {
            Self::Never => EPOCH,
            Self::After(limit) => limit.saturating_sub(time),
            Self::Until(path) if time < FILE_LIMIT && !path.exists() => LOOK_INTERVAL,
            Self::Until(_) => Duration::ZERO,
        };
        match (left, has_worked) {
            (Duration::ZERO, true) => None,
            (Duration::ZERO, false) => Some(LOOK_INTERVAL),
            _ => Some(left),
        }
    }
}

/// False if the environment says that the collector is preloaded and it is not in this process. The worker needs none, but a
/// trial has to find out whether programs get it.
fn has_what_was_preloaded() -> bool {
    let is_preloaded = std::env::var("LD_PRELOAD").is_ok_and(|list| list.contains(NAME));
    !is_preloaded || std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_ends_after_seconds_or_with_a_file() {
        const SECOND: Duration = Duration::from_secs(1);
        assert_eq!(
            (End::of(""), End::of("0"), End::of("x")),
            (End::Never, End::Never, End::Never)
        );
        let end = End::of("1.5");
        assert_eq!(end.rest(SECOND, false), Some(SECOND / 2));
        assert_eq!(end.rest(SECOND * 3 / 2, false), Some(LOOK_INTERVAL));
        assert_eq!(end.rest(SECOND * 3 / 2, true), None);
        let path = std::env::temp_dir().join(format!("roctop-demo-{}", std::process::id()));
        let end = End::of(&format!("until:{}", path.display()));
        assert_eq!(end.rest(SECOND, true), Some(LOOK_INTERVAL));
        assert_eq!(end.rest(FILE_LIMIT, true), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(end.rest(SECOND, true), None);
        std::fs::remove_file(path).unwrap();
    }
}
