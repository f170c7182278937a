//! Encodes blocks of records: compression takes half of a recorder's time, and a busy recorder leaves it to other threads.

use super::block::{self, Kind, Owner};
use super::contents::Contents;
use super::index::Times;
use super::payload;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use std::collections::VecDeque;
use std::thread::available_parallelism;

/// Of this many cores, one encodes.
const CORES_PER_THREAD: usize = 4;
const MAX_THREADS: usize = 4;
/// Blocks that wait for each thread.
const WAITING_PER_THREAD: usize = 4;

/// A block of records, encoded.
pub(super) struct Packed {
    pub(super) owner: Owner,
    /// The block.
    pub(super) bytes: Vec<u8>,
    /// Times and number of the records.
    pub(super) content: (Times, u32),
    pub(super) contents: Contents,
}

impl Packed {
    /// Encodes slots of a thread.
    pub(super) fn of(owner: Owner, slots: &[u8]) -> Self {
        let words = payload::words(slots);
        let records = payload::slots(&words);
        Self {
            owner,
            bytes: block::encode(Kind::RECORDS, owner, slots),
            content: Times::of(records),
            contents: Contents::of(records),
        }
    }
}

/// A block to encode, and where it goes.
type Job = (Owner, Vec<u8>, Sender<Packed>);

/// Threads that encode blocks: they start with the first block, and end when this is dropped.
pub(super) struct Packers {
    /// Number of threads.
    threads: usize,
    jobs: Option<Sender<Job>>,
    /// Blocks in their order.
    waiting: VecDeque<Receiver<Packed>>,
}

impl Packers {
    /// As many threads as this machine can spare.
    pub(super) fn of_machine() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self::new((cores / CORES_PER_THREAD).min(MAX_THREADS))
    }

    pub(super) const fn new(threads: usize) -> Self {
        Self {
            threads,
            jobs: None,
            waiting: VecDeque::new(),
        }
    }

    /// Starts the threads that the system allows.
    fn start(&mut self) -> Sender<Job> {
        let (jobs, received) = unbounded::<Job>();
        let mut threads = 0;
        for _ in 0..self.threads {
            let received = received.clone();
            let run = move || {
                for (owner, slots, to) in received {
                    let _ = to.send(Packed::of(owner, &slots));
                }
            };
            let thread = std::thread::Builder::new().name("pack".into()).spawn(run);
            threads += usize::from(thread.is_ok());
        }
        self.threads = threads;
        jobs
    }

    /// Leaves a block to the threads; without threads, encodes it.
    pub(super) fn add(&mut self, owner: Owner, slots: Vec<u8>) {
        let jobs = self.jobs.take().unwrap_or_else(|| self.start());
        let (to, packed) = bounded(1);
        self.waiting.push_back(packed);
        // Without threads nobody receives.
        if let Err(refused) = jobs.send((owner, slots, to)) {
            let (owner, slots, to) = refused.into_inner();
            let _ = to.send(Packed::of(owner, &slots));
        }
        self.jobs = Some(jobs);
    }

    /// The next block if it is encoded. With more than the threads may have, waits for it.
    pub(super) fn next_ready(&mut self) -> Option<Packed> {
        if self.waiting.len() > self.threads * WAITING_PER_THREAD {
            return self.next();
        }
        let packed = self.waiting.front()?.try_recv().ok()?;
        self.waiting.pop_front();
        Some(packed)
    }

    /// The next block; waits until it is encoded.
    pub(super) fn next(&mut self) -> Option<Packed> {
        // A thread sends each block that it takes.
        self.waiting.pop_front()?.recv().ok()
    }
}
