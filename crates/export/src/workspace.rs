//! Where an export sorts, and the threads on which it works.
//!
//! Jobs never wait for each other, so a bounded number of them is in flight: memory does not grow with the recording. Results
//! are taken in the order of the jobs, so the files have the same bytes on any number of threads.

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use roctop_source::{memory, promise};
use std::io;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Maximum number of runs that are sorted at a time: each holds a sorter's memory.
const MAX_RUNS: usize = 12;
/// Share of the available memory that sorted records may take, as a divisor, and the most, bytes.
const MEMORY_SHARE: u64 = 8;
const MAX_MEMORY: u64 = 4 << 30;
/// Maximum number of threads that keep sorted runs in memory: more threads wait for each other in the kernel for new memory,
/// and sixteen are faster with files.
const MAX_THREADS_IN_MEMORY: NonZeroUsize = NonZeroUsize::new(4).unwrap();
/// Maximum number of parts that are read before they are needed.
const MAX_AHEAD: usize = 8;

/// A directory for temporary files, and threads. Clones share them.
#[derive(Clone)]
pub struct Workspace(Arc<Shared>);

struct Shared {
    directory: PathBuf,
    threads: usize,
    /// To the threads; `None` if all work is done by the caller.
    jobs: Option<Sender<Job>>,
    /// Bytes that sorted runs may still take in memory.
    room: AtomicUsize,
    /// Holds an element for each run that is sorted.
    runs: (Sender<()>, Receiver<()>),
}

type Job = Box<dyn FnOnce() + Send>;

/// Result of a job that may still run.
pub(crate) struct Pending<R>(roctop_source::Pending<R>);

impl<R> Pending<R> {
    /// Waits for the result.
    ///
    /// Errors: the job has panicked.
    pub(crate) fn wait(self) -> io::Result<R> {
        let panicked = || io::Error::other("a thread of the export has panicked");
        self.0.wait().ok_or_else(panicked)
    }
}

/// Memory of a workspace; given back when it is dropped.
pub(crate) struct Room {
    of: Workspace,
    bytes: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.0.room.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

impl Workspace {
    /// Sorts in memory of `memory` bytes and in `directory`, and works on `threads` threads.
    pub fn new(directory: &Path, threads: NonZeroUsize, memory: usize) -> Self {
        let threads = threads.get();
        Self(Arc::new(Shared {
            directory: directory.to_owned(),
            threads,
            jobs: (threads > 1).then(|| start(threads)).flatten(),
            room: AtomicUsize::new(memory),
            runs: bounded(threads.min(MAX_RUNS)),
        }))
    }

    /// The number of cores that this process may use, by its affinity and its cgroup's quota.
    pub fn cores() -> NonZeroUsize {
        thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
    }

    /// The memory for sorted records that suits this machine and number of threads, bytes: a part of what is available to this
    /// process, or none.
    pub fn memory(threads: NonZeroUsize) -> usize {
        if threads > MAX_THREADS_IN_MEMORY {
            return 0;
        }
        let available = memory::available(Path::new("/")).unwrap_or(0);
        (available / MEMORY_SHARE).min(MAX_MEMORY) as usize
    }

    /// Takes room in memory; `None` if there is less.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<Room> {
        let room = &self.0.room;
        let taken = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes));
        taken.ok().map(|_| Room {
            of: self.clone(),
            bytes,
        })
    }

    /// The directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Number of parts to read before they are needed; 0 on one thread.
    pub(crate) fn ahead(&self) -> usize {
        self.0.jobs.as_ref().map_or(0, |_| self.0.threads.min(MAX_AHEAD))
    }

    /// Does a job on another thread, or at once if there is only one.
    pub(crate) fn start<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> Pending<R> {
        let (promise, result) = promise();
        let job = move || promise.keep(job());
        match &self.0.jobs {
            // The threads live as long as the channel.
            Some(jobs) => drop(jobs.send(Box::new(job))),
            None => job(),
        }
        Pending(result)
    }

    /// As [`Workspace::start`], but waits while too many such jobs are in flight.
    pub(crate) fn start_run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> Pending<R> {
        let (begun, ended) = self.0.runs.clone();
        let _ = begun.send(());
        self.start(move || {
            let result = job();
            let _ = ended.recv();
            result
        })
    }

    /// Maps items on all threads, and passes the results to `take` in the order of the items.
    pub(crate) fn in_order<I: Send, R: Send, E: Send>(
        &self,
        items: impl IntoIterator<Item = I>,
        map: impl Fn(I) -> Result<R, E> + Sync,
        take: impl FnMut(R) -> Result<(), E>,
    ) -> Result<(), E> {
        roctop_source::in_order(self.0.threads, items, map, take)
    }

    /// Does both; the first on another thread, if there are several.
    pub(crate) fn both<A: Send, B>(&self, first: impl Fn() -> A + Sync, second: impl FnOnce() -> B) -> (A, B) {
        thread::scope(|scope| {
            let begin = || thread::Builder::new().spawn_scoped(scope, &first).ok();
            let begun = (self.0.threads > 1).then(begin).flatten();
            let second = second();
            let first = match begun {
                Some(begun) => begun.join().unwrap_or_else(|panicked| resume_unwind(panicked)),
                None => first(),
            };
            (first, second)
        })
    }

    /// Passes items to `act` that another thread makes meanwhile, if there are several.
    pub(crate) fn made_apart<I: Send, R>(
        &self,
        items: impl Iterator<Item = I> + Send,
        act: impl FnOnce(&mut dyn Iterator<Item = I>) -> R,
    ) -> R {
        let items = &Mutex::new(items);
        thread::scope(|scope| {
            let (made, next) = bounded(MAX_AHEAD);
            let make = move || {
                let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
                // After an error nobody takes the rest.
                while let Some(item) = items.next()
                    && made.send(item).is_ok()
                {}
            };
            if self.0.threads > 1 && thread::Builder::new().spawn_scoped(scope, make).is_ok() {
                return act(&mut next.into_iter());
            }
            act(&mut *items.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }
}

/// Starts threads that do jobs until the channel closes; `None` if the system has no thread left.
fn start(threads: usize) -> Option<Sender<Job>> {
    let (jobs, todo) = unbounded::<Job>();
    let started = (0..threads).filter(|_| {
        let todo = todo.clone();
        let act = move || todo.into_iter().for_each(|job| job());
        thread::Builder::new().name("roctop-export".into()).spawn(act).is_ok()
    });
    (started.count() > 0).then_some(jobs)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// In the directory for temporary files.
    pub(crate) fn workspace(threads: usize) -> Workspace {
        workspace_with(threads, 0)
    }

    /// The same, with memory for sorted runs.
    pub(crate) fn workspace_with(threads: usize, memory: usize) -> Workspace {
        let threads = NonZeroUsize::new(threads).expect("some threads");
        Workspace::new(&std::env::temp_dir(), threads, memory)
    }
}
