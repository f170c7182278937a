//! Reads how long the program's threads had run, some times a second: whether a thread that launches nothing runs. And where its
//! processes may run, every few seconds.

use super::bindings::Bindings;
use super::ingest::BatchSender;
use crate::clocks::boottime;
use crate::item::ProcessId;
use crate::raw::{Batch, Raw, RawSink};
use anyhow::Result;
use roctop_trace::thread_reading::ThreadReading;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Minimum time between two readings of many threads. Few threads are read at each drain of the rings, some 20 times a
/// second: whether a call that waits for the GPU spins or sleeps is known from the readings within such calls alone, and
/// five a second are too few for a run of some seconds.
const INTERVAL: Duration = Duration::from_millis(190);
/// Maximum number of threads that are read at each drain: their readings take less than a thousandth of a core.
const MAX_FREQUENT: usize = 8;
/// Maximum number of threads that are read.
pub(super) const MAX_THREADS: usize = 64;

/// Threads of the session: process, pid, and thread ids.
pub(super) type Threads = Arc<Mutex<Vec<(ProcessId, u32, Vec<u32>)>>>;

/// Starts to read, at each drain of the rings. It ends when the sender of `drains` is dropped.
pub(super) fn start(
    threads: Threads,
    drains: Receiver<()>,
    sending: BatchSender,
    root: PathBuf,
) -> Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("threads".into()).spawn(move || {
        let mut readers = Readers::default();
        let mut bindings = Bindings::new(root);
        let mut read_at: Option<Instant> = None;
        for () in drains {
            if readers.are_many() && read_at.is_some_and(|at| at.elapsed() < INTERVAL) {
                continue;
            }
            read_at = Some(Instant::now());
            let known = threads.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut batch = Batch::default();
            readers.keep(&known);
            for (process, pid, tids) in known {
                if let Some(binding) = bindings.read(process, pid, &tids) {
                    batch.take(process, &Raw::Binding(&binding));
                }
                let readings: Vec<ThreadReading> = tids.into_iter().filter_map(|tid| readers.read(pid, tid)).collect();
                if !readings.is_empty() {
                    batch.take(process, &Raw::ThreadTimes(&readings));
                }
            }
            if batch.size() > 0 && !sending.send(batch) {
                return;
            }
        }
    })?;
    Ok(thread)
}

/// Files of threads. They stay open: to find them by name takes longer than to read them.
#[derive(Default)]
struct Readers {
    /// By process and thread; `None` for threads that have ended, or are not visible here.
    known: BTreeMap<(u32, u32), Option<Files>>,
    /// Number of threads with files.
    open: usize,
}

/// The files of a thread.
struct Files {
    schedstat: File,
    stat: File,
}

impl Readers {
    /// Closes the files of threads that are not among these.
    fn keep(&mut self, threads: &[(ProcessId, u32, Vec<u32>)]) {
        let mut wanted = BTreeSet::new();
        for (_, pid, tids) in threads {
            wanted.extend(tids.iter().map(|tid| (*pid, *tid)));
        }
        self.known.retain(|thread, _| wanted.contains(thread));
        self.open = self.known.values().flatten().count();
    }

    const fn are_many(&self) -> bool {
        self.open > MAX_FREQUENT
    }

    fn read(&mut self, pid: u32, tid: u32) -> Option<ThreadReading> {
        if !self.known.contains_key(&(pid, tid)) {
            if self.open >= MAX_THREADS {
                return None;
            }
            let files = Files::open(pid, tid);
            self.open += usize::from(files.is_some());
            self.known.insert((pid, tid), files);
        }
        let files = self.known.get_mut(&(pid, tid))?;
        let reading = files.as_ref().and_then(|files| files.read(tid));
        if reading.is_none() && files.take().is_some() {
            self.open -= 1;
        }
        reading
    }
}

impl Files {
    fn open(pid: u32, tid: u32) -> Option<Self> {
        let file = |name: &str| File::open(format!("/proc/{pid}/task/{tid}/{name}")).ok();
        Some(Self {
            schedstat: file("schedstat")?,
            stat: file("stat")?,
        })
    }

    fn read(&self, tid: u32) -> Option<ThreadReading> {
        let mut room = [0; 1 << 10];
        let (running, ready) = times_of(text(&self.schedstat, &mut room)?)?;
        let at = boottime();
        // Not from the times: on a CPU without ticks, those of a running thread stay for a second.
        let is_running = text(&self.stat, &mut room).and_then(is_running);
        Some(ThreadReading {
            tid,
            is_running,
            at,
            running,
            ready,
        })
    }
}

/// The begin of a file of the Linux kernel.
fn text<'a>(file: &File, room: &'a mut [u8]) -> Option<&'a str> {
    let length = file.read_at(room, 0).ok()?;
    std::str::from_utf8(room.get(..length)?).ok()
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
        let mut readers = Readers::default();
        let Some(before) = readers.read(pid, tid) else { return };
        let began = Instant::now();
        let mut sum = 0u64;
        while began.elapsed() < Duration::from_millis(30) {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        let after = readers.read(pid, tid).expect("it was read before");
        assert!(after.running > before.running && after.at > before.at, "{sum}");
    }

    #[test]
    fn threads_that_have_ended_are_not_looked_for_again() {
        let pid = std::process::id();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let own = std::fs::read_link("/proc/thread-self").expect("it is Linux");
            let tid: u32 = own
                .file_name()
                .and_then(|name| name.to_str()?.parse().ok())
                .expect("a number");
            sender.send(tid).expect("the test listens");
            std::thread::park();
        });
        let tid = receiver.recv().expect("the thread runs");
        let mut readers = Readers::default();
        if readers.read(pid, tid).is_none() {
            return;
        }
        assert_eq!(readers.open, 1);
        thread.thread().unpark();
        thread.join().expect("it ended");
        while readers.read(pid, tid).is_some() {
            std::thread::yield_now();
        }
        assert_eq!((readers.open, readers.known.len()), (0, 1));
        readers.keep(&[]);
        assert_eq!(readers.known.len(), 0);
    }
}
