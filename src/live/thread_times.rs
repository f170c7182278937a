//! Reads how long the program's threads had run, five times a second: whether a thread that launches nothing runs.

use super::ingest::BatchSender;
use crate::clocks::boottime;
use crate::item::ProcessId;
use crate::raw::{Batch, Raw, RawSink};
use anyhow::Result;
use roctop_trace::thread_reading::ThreadReading;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of threads that are read.
const MAX_THREADS: usize = 64;

/// Threads of the session: process, pid, and thread ids.
pub(super) type Threads = Arc<Mutex<Vec<(ProcessId, u32, Vec<u32>)>>>;

/// Starts to read. It ends when its sender is dropped.
pub(super) fn start(threads: Threads, sending: BatchSender) -> Result<(Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = channel();
    let thread = std::thread::Builder::new().name("threads".into()).spawn(move || {
        while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let known = threads.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut batch = Batch::default();
            let mut left = MAX_THREADS;
            for (process, pid, tids) in known {
                let tids = tids.into_iter().take(left);
                let readings: Vec<ThreadReading> = tids.filter_map(|tid| read(pid, tid)).collect();
                left -= readings.len();
                if !readings.is_empty() {
                    batch.take(process, &Raw::ThreadTimes(&readings));
                }
            }
            if batch.size() > 0 && !sending.send(batch) {
                return;
            }
        }
    })?;
    Ok((stop, thread))
}

fn read(pid: u32, tid: u32) -> Option<ThreadReading> {
    let file = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/{name}"));
    let state = file("stat").ok();
    let times = file("schedstat").ok()?;
    let at = boottime();
    let (running, ready) = times_of(&times)?;
    Some(ThreadReading {
        tid,
        is_running: state.and_then(|state| is_running(&state)),
        at,
        running,
        ready,
    })
}

/// Times on a CPU and in a run queue from `schedstat`; `None` if the Linux kernel does not count them.
fn times_of(schedstat: &str) -> Option<(u64, u64)> {
    let mut words = schedstat.split_ascii_whitespace();
    let running = words.next()?.parse().ok()?;
    let ready = words.next()?.parse().ok()?;
    (running > 0).then_some((running, ready))
}

/// Whether `stat` says that the thread runs or is ready. The name before the state may contain any character.
fn is_running(stat: &str) -> Option<bool> {
    let (_, after) = stat.rsplit_once(')')?;
    Some(after.trim_start().starts_with('R'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_linux_kernel_are_read() {
        assert_eq!(times_of("2571906 48104 13\n"), Some((2_571_906, 48_104)));
        assert_eq!(times_of("0 0 0\n"), None, "not counted");
        assert_eq!(times_of(""), None);
        assert_eq!(is_running("12 (a) R b) S 1 12 12 0"), Some(false));
        assert_eq!(is_running("12 (roctop) R 1 12 12 0"), Some(true));
        assert_eq!(is_running("12"), None);
    }

    #[test]
    fn a_thread_that_works_is_seen_to_run() {
        let own = std::fs::read_link("/proc/thread-self").expect("it is Linux");
        let tid = own.file_name().and_then(|name| name.to_str()?.parse().ok());
        let (pid, tid) = (std::process::id(), tid.expect("a thread has a number"));
        let Some(before) = read(pid, tid) else { return };
        let began = std::time::Instant::now();
        let mut sum = 0u64;
        while began.elapsed() < Duration::from_millis(30) {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        let after = read(pid, tid).expect("it was read before");
        assert!(after.running > before.running && after.at > before.at, "{sum}");
    }
}
