//! Looks through the calls and dispatches of recordings on all cores, in no order. Blocks in which nothing is wanted are not
//! read.

use super::block::{self, Kind};
use super::contents::{self, Contents};
use super::file::File;
use super::history::Part;
use super::index::Entry;
use super::payload;
use super::reader::Recording;
use crate::error::{Error, Result};
use roctop_ring::reader::Thread;
use roctop_ring::record::Slot;
use roctop_trace::item::ProcessId;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Recordings that are looked through again and again.
pub struct Scan {
    parts: Vec<Part>,
    threads: usize,
    /// What is known of each segment.
    files: HashMap<PathBuf, BTreeMap<u64, Known>>,
}

/// What is known of a block of records.
struct Known {
    entry: Entry,
    /// `None` in recordings of earlier releases, until the block is read.
    contents: Option<Contents>,
}

/// A block to be read.
#[derive(Clone, Copy)]
struct Job<'a> {
    path: &'a Path,
    entry: Entry,
    process: ProcessId,
    is_unknown: bool,
}

/// Takes records of a thread of a process.
type Take<'a, S> = dyn Fn(&mut S, ProcessId, Thread, &[Slot]) + Sync + 'a;

/// How records are looked through.
pub struct Looking<'a, S> {
    /// Whether a block with these contents may have something wanted.
    pub may: &'a (dyn Fn(ProcessId, &Contents) -> bool + Sync),
    /// Makes the state of a thread.
    pub begin: &'a (dyn Fn() -> S + Sync),
    /// Takes records of a block.
    pub take: &'a Take<'a, S>,
    /// Whether nobody wants the outcome any more.
    pub is_cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Receives how many blocks of how many are done.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// The result of looking.
#[derive(Debug)]
pub struct Seen<S> {
    /// The states of the threads.
    pub states: Vec<S>,
    /// Blocks that were read.
    pub read: usize,
    /// Blocks of records in all.
    pub blocks: usize,
}

impl Scan {
    pub(super) fn of(parts: Vec<Part>, threads: usize) -> Self {
        Self {
            parts,
            threads,
            files: HashMap::new(),
        }
    }

    /// Looks through all blocks that may have something wanted; `None` if it was cancelled.
    ///
    /// Errors: a file cannot be read.
    pub fn look<S: Send>(&mut self, looking: &Looking<'_, S>) -> Result<Option<Seen<S>>> {
        let mut segments = Vec::new();
        for part in &self.parts {
            for (_, path) in Recording::open(&part.path)?.segments() {
                if (looking.is_cancelled)() {
                    return Ok(None);
                }
                if !self.files.contains_key(path) {
                    let known = blocks(&File::open(path)?).map_err(Error::io("cannot read", path))?;
                    self.files.insert(path.to_owned(), known);
                }
                segments.push((path.to_owned(), part.first));
            }
        }
        let (mut jobs, mut count) = (Vec::new(), 0);
        for (path, first) in &segments {
            for known in self.files.get(path).into_iter().flat_map(BTreeMap::values) {
                count += 1;
                let process = ProcessId((known.entry.owner.process & 0xffff).saturating_add(*first));
                let contents = known.contents.as_ref();
                if contents.is_none_or(|contents| (looking.may)(process, contents)) {
                    jobs.push(Job {
                        path,
                        entry: known.entry,
                        process,
                        is_unknown: contents.is_none(),
                    });
                }
            }
        }
        let found = read(self.threads, &jobs, looking)?;
        let read = jobs.len();
        if (looking.is_cancelled)() {
            return Ok(None);
        }
        for (path, offset, contents) in found.contents {
            let known = self.files.get_mut(&path).and_then(|blocks| blocks.get_mut(&offset));
            if let Some(known) = known {
                known.contents = Some(contents);
            }
        }
        Ok(Some(Seen {
            states: found.states,
            read,
            blocks: count,
        }))
    }
}

/// What the threads have found.
struct Found<S> {
    states: Vec<S>,
    /// Contents of blocks whose contents were not known.
    contents: Vec<(PathBuf, u64, Contents)>,
}

fn read<S: Send>(threads: usize, jobs: &[Job<'_>], looking: &Looking<'_, S>) -> Result<Found<S>> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Found {
        states: Vec::new(),
        contents: Vec::new(),
    });
    let failed = Mutex::new(None);
    let work = || {
        let (mut state, mut contents) = ((looking.begin)(), Vec::new());
        let mut open: Option<(&Path, File)> = None;
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
            && !(looking.is_cancelled)()
        {
            match take(job, &mut open, &mut state, looking) {
                Ok(new) => contents.extend(new.map(|new| (job.path.to_owned(), job.entry.offset, new))),
                Err(error) => {
                    next.store(jobs.len(), Ordering::Relaxed);
                    failed
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(error);
                }
            }
            (looking.progress)(next.load(Ordering::Relaxed).min(jobs.len()), jobs.len());
        }
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.states.push(state);
        found.contents.append(&mut contents);
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(jobs.len()) {
            // Without a thread of the system, the others do its work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Reads a block, and returns its contents if they were not known. Nothing is in a damaged one.
fn take<'a, S>(
    job: &Job<'a>,
    open: &mut Option<(&'a Path, File)>,
    state: &mut S,
    looking: &Looking<'_, S>,
) -> Result<Option<Contents>> {
    let file = match open.take() {
        Some((path, file)) if path == job.path => file,
        _ => File::open(job.path)?,
    };
    let block = file
        .block(job.entry.offset)
        .map_err(Error::io("cannot read", job.path))?;
    *open = Some((job.path, file));
    // What the index says of another kind of block is no reason to decode it as records.
    let Some((head, payload)) = block.filter(|(head, _)| head.kind == Kind::RECORDS) else {
        return Ok(None);
    };
    let words = payload::words(&payload);
    let slots = payload::slots(&words);
    let contents = job.is_unknown.then(|| Contents::of(slots));
    if contents
        .as_ref()
        .is_none_or(|contents| (looking.may)(job.process, contents))
    {
        let thread = Thread {
            index: head.thread,
            tid: head.tid,
        };
        (looking.take)(state, job.process, thread, slots);
    }
    Ok(contents)
}

/// What is known of the blocks of records of a segment.
fn blocks(file: &File) -> io::Result<BTreeMap<u64, Known>> {
    let mut blocks = BTreeMap::new();
    let Some(entries) = file.index()? else {
        // Its writer was killed.
        let mut from = 0;
        while let Some((offset, head, payload)) = file.next_block(from)? {
            from = offset + block::HEADER as u64 + u64::from(head.stored_length);
            if head.kind == Kind::RECORDS {
                let contents = Some(contents::of_payload(&payload));
                let entry = Entry::unknown(offset, head);
                blocks.insert(offset, Known { entry, contents });
            }
        }
        return Ok(blocks);
    };
    for entry in entries.iter().filter(|entry| entry.kind == Kind::RECORDS) {
        let known = Known {
            entry: *entry,
            contents: None,
        };
        blocks.insert(entry.offset, known);
    }
    for entry in entries.iter().filter(|entry| entry.kind == Kind::CONTENTS) {
        let block = file
            .block(entry.offset)?
            .filter(|(head, _)| head.kind == Kind::CONTENTS);
        for (offset, contents) in block.iter().flat_map(|(_, payload)| contents::decode(payload)) {
            if let Some(known) = blocks.get_mut(&offset) {
                known.contents = Some(contents);
            }
        }
    }
    Ok(blocks)
}
