//! The last seconds of a session, held in memory as blocks of a recording, and written when there is a reason.
//!
//! Blocks of records are dropped when they are older than asked, or when memory is full, the oldest first. Calls that launched work
//! of the held time stay for it ([`Beginning`]). What names and dates
//! records stays as long as their process: a recording that is written from here can be read alone. A writer runs on a separate
//! thread; it shares the blocks, and blocks that it has not written yet count as held memory.

use super::beginning::{Beginning, MAX_WAIT, Record, submission};
use super::block::{self, Head, Kind, Owner};
use super::by_thread::ByThread;
use super::index::Times;
use super::payload;
use super::segment::Segments;
use super::trigger::{Trigger, partial};
use super::writer::{MAX_BLOCK_BYTES, Origin, Recorder};
use crate::error::{Error, Result};
use crate::sysfs;
use roctop_ring::reader::Thread;
use roctop_ring::record::Slot;
use roctop_trace::item::{LossReason, Nanos, ProcessId, Span};
use roctop_trace::raw::{Raw, RawSink, each};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Age at which records become a block.
const MAX_BLOCK_AGE: Nanos = 250_000_000;

/// An encoded block.
struct Block {
    kind: Kind,
    owner: Owner,
    bytes: Box<[u8]>,
    content: (Times, u32),
    /// First submission of its work, ticks.
    submitted: u64,
    /// When its first record was read, about.
    from: Nanos,
    /// When it was made.
    at: Nanos,
    /// Sum of the sizes of all blocks that exist.
    alive: Arc<AtomicU64>,
}

impl Block {
    /// Bytes of memory.
    fn size(&self) -> u64 {
        (self.bytes.len() + size_of::<Self>() + 2 * size_of::<usize>()) as u64
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.alive.fetch_sub(self.size(), Ordering::Relaxed);
    }
}

/// What names and dates the records of a process.
#[derive(Default)]
struct Facts {
    header: Vec<u8>,
    texts: Vec<Vec<u8>>,
    records: Vec<Vec<u8>>,
    /// Facts about call sites.
    sites: Vec<Vec<u8>>,
    /// The reading with what the node has.
    binding: Vec<u8>,
    /// The first calibration sample, and those of the held time with the one before it.
    first_sample: Option<Vec<u8>>,
    samples: VecDeque<(Nanos, Vec<u8>)>,
    /// Not yet passed to the writer.
    new_texts: Vec<u8>,
    new_records: Vec<u8>,
    ended: Option<Nanos>,
}

impl Facts {
    fn size(&self) -> u64 {
        let chunks = self.texts.iter().chain(&self.records).chain(&self.sites);
        let chunks = chunks.map(Vec::len).sum::<usize>();
        let samples: usize = self.samples.iter().map(|(_, sample)| sample.len() + 32).sum();
        (self.header.len() + self.binding.len() + chunks + samples + self.new_texts.len() + self.new_records.len())
            as u64
    }
}

/// Appends a payload to the last chunk, or begins a new one.
fn keep_chunk(chunks: &mut Vec<Vec<u8>>, bytes: &[u8]) {
    match chunks.last_mut() {
        Some(last) if last.len() + bytes.len() <= MAX_BLOCK_BYTES => last.extend_from_slice(bytes),
        _ => chunks.push(bytes.to_vec()),
    }
}

/// What is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldState {
    /// Time from the oldest held record to now, ns.
    pub span: Nanos,
    /// Memory in use, bytes.
    pub bytes: u64,
    /// Whether records younger than asked were dropped, because memory was full.
    pub is_short: bool,
}

/// Where a recording is written.
pub struct Destination {
    /// Its directory, which does not exist yet.
    pub path: PathBuf,
    /// The recorded command line.
    pub command: Vec<String>,
    /// The machine.
    pub origin: Origin,
    /// Why it is written.
    pub trigger: Trigger,
}

/// A recording that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its directory.
    pub path: PathBuf,
    /// Records in it.
    pub records: u64,
    /// Records that are missing because the disk was slower than the program.
    pub missing: u64,
}

/// How the writing of a recording ended.
pub type HoldResult = Result<Written>;

enum Message {
    Block(Arc<Block>),
    /// Why it was written, and how many records are missing.
    End(Box<Trigger>, u64),
}

struct Output {
    sender: Sender<Message>,
    missing: ByThread,
    writer: JoinHandle<HoldResult>,
}

/// The last seconds of a session.
pub struct Hold {
    keep: Nanos,
    max_bytes: u64,
    processes: BTreeMap<u32, Facts>,
    /// Since the last flush.
    waiting: ByThread,
    /// Processes of which nothing is held any more.
    dropped: Vec<ProcessId>,
    blocks: VecDeque<Arc<Block>>,
    /// First submission of work that is held or open, ticks.
    submitted: u64,
    /// The same of open work, by process.
    open: BTreeMap<u32, u64>,
    alive: Arc<AtomicU64>,
    now: Nanos,
    /// Everything since this time is held: the time of the first poll, until a block is dropped.
    whole_since: Nanos,
    /// Time of the first poll.
    since: Nanos,
    flushed: Nanos,
    /// When a block younger than asked was dropped last.
    cut: Option<Nanos>,
    output: Option<Output>,
}

impl Hold {
    /// Holds `keep` ns in at most `max_bytes` of memory, about.
    pub fn new(keep: Nanos, max_bytes: u64) -> Self {
        Self {
            keep,
            max_bytes,
            processes: BTreeMap::new(),
            waiting: ByThread::default(),
            dropped: Vec::new(),
            blocks: VecDeque::new(),
            submitted: u64::MAX,
            open: BTreeMap::new(),
            alive: Arc::default(),
            now: 0,
            whole_since: 0,
            since: 0,
            flushed: 0,
            cut: None,
            output: None,
        }
    }

    /// What is held now.
    pub fn state(&self) -> HoldState {
        let oldest = self.blocks.front().map_or(self.now, |block| block.from);
        let span = self.now.saturating_sub(oldest).min(self.keep);
        HoldState {
            span,
            bytes: self.bytes(),
            is_short: self.cut.is_some_and(|at| at.saturating_add(self.keep) > self.now),
        }
    }

    /// Removes and returns processes of which nothing is held any more: they ended before the held time.
    pub fn take_dropped(&mut self) -> Vec<ProcessId> {
        std::mem::take(&mut self.dropped)
    }

    /// Time of the last poll, CLOCK_BOOTTIME.
    pub const fn now(&self) -> Nanos {
        self.now
    }

    fn bytes(&self) -> u64 {
        let facts: u64 = self.processes.values().map(Facts::size).sum();
        self.alive.load(Ordering::Relaxed) + facts + self.waiting.bytes() as u64
    }

    /// Starts to write what is held, and all that comes until [`Hold::end`].
    ///
    /// Errors: a recording is being written already, or no thread can be started.
    pub fn begin(&mut self, to: Destination) -> io::Result<()> {
        if self.output.is_some() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        self.flush();
        let (sender, blocks) = channel();
        let stretch = self.stretch();
        for block in self.facts().into_iter().chain(self.blocks.iter().cloned()) {
            // The receiver is here.
            let _ = sender.send(Message::Block(block));
        }
        let writer = std::thread::Builder::new()
            .name("keep".into())
            .spawn(move || write(&to, stretch, &blocks))?;
        self.output = Some(Output {
            sender,
            missing: ByThread::default(),
            writer,
        });
        Ok(())
    }

    /// The stretch of time of a recording that begins now; `None` if everything since the first poll is held.
    fn stretch(&self) -> Option<Span> {
        let begin = self.whole_since.max(self.now.saturating_sub(self.keep));
        (begin > self.since).then_some(Span { begin, end: Nanos::MAX })
    }

    /// Removes the oldest block.
    fn drop_oldest(&mut self) -> Option<Arc<Block>> {
        let dropped = self.blocks.pop_front();
        self.whole_since = self.blocks.front().map_or(self.now, |block| block.from);
        dropped
    }

    /// Ends the recording; its thread writes the rest. `trigger` replaces the one with which it began.
    pub fn end(&mut self, trigger: Trigger) -> Option<JoinHandle<HoldResult>> {
        self.flush();
        let mut output = self.output.take()?;
        let mut missing = 0;
        for ((owner, reason), records) in output.missing.take_lost() {
            missing += records;
            let block = self.block(Kind::LOST, owner, &payload::lost(reason, records), self.now);
            let _ = output.sender.send(Message::Block(block));
        }
        // A writer that failed has ended, and its result says why.
        let _ = output.sender.send(Message::End(Box::new(trigger), missing));
        Some(output.writer)
    }

    /// Whether the writer has ended before its end was asked for: it has failed.
    pub fn has_failed(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output.writer.is_finished())
    }

    /// All facts, as blocks.
    fn facts(&self) -> Vec<Arc<Block>> {
        let mut blocks = Vec::new();
        for (&process, known) in &self.processes {
            let owner = Owner {
                process,
                ..Owner::default()
            };
            let mut put = |kind, payload: &[u8]| {
                if !payload.is_empty() {
                    blocks.push(self.block(kind, owner, payload, self.now));
                }
            };
            put(Kind::PROCESS, &known.header);
            known.texts.iter().for_each(|texts| put(Kind::TEXTS, texts));
            known.records.iter().for_each(|facts| put(Kind::FACTS, facts));
            known.sites.iter().for_each(|facts| put(Kind::SITES, facts));
            put(Kind::BINDING, &known.binding);
            known
                .first_sample
                .iter()
                .for_each(|sample| put(Kind::CALIBRATION, sample));
            known
                .samples
                .iter()
                .for_each(|(_, sample)| put(Kind::CALIBRATION, sample));
        }
        blocks
    }

    fn block(&self, kind: Kind, owner: Owner, payload: &[u8], from: Nanos) -> Arc<Block> {
        let (mut content, mut submitted) = ((Times::default(), 0), u64::MAX);
        if kind == Kind::RECORDS {
            let words = payload::words(payload);
            let slots = payload::slots(&words);
            content = Times::of(slots);
            submitted = each(slots).filter_map(submission).min().unwrap_or(u64::MAX);
        }
        let block = Block {
            kind,
            owner,
            bytes: block::encode(kind, owner, payload).into(),
            content,
            submitted,
            from,
            at: self.now,
            alive: self.alive.clone(),
        };
        self.alive.fetch_add(block.size(), Ordering::Relaxed);
        Arc::new(block)
    }

    /// Holds a block, and passes it to the writer.
    fn push(&mut self, kind: Kind, owner: Owner, payload: &[u8], from: Nanos) {
        let block = self.block(kind, owner, payload, from);
        self.make_room();
        let is_full = self.bytes() > self.max_bytes;
        if is_full && self.output.is_some() {
            // The writer is behind and has all the memory: what cannot be held cannot be written.
            self.cut = Some(self.now);
            if let Some(output) = &mut self.output {
                output
                    .missing
                    .lose(owner, LossReason::NotWritten, u64::from(block.content.1));
            }
            return;
        }
        self.send(&block);
        self.submitted = self.submitted.min(block.submitted);
        self.blocks.push_back(block);
    }

    /// Whether a block that is too old has calls that may have launched held work.
    fn may_have_launched(&self, block: &Block) -> bool {
        let is_recent = block.at >= self.now.saturating_sub(self.keep.saturating_add(MAX_WAIT));
        let ticks = block.content.0.ticks;
        is_recent && ticks.0 <= ticks.1 && ticks.1 >= self.submitted
    }

    /// Passes a block to the writer, if there is one.
    fn send(&self, block: &Arc<Block>) {
        if let Some(output) = &self.output {
            // A writer that failed has ended; it is noticed by its result.
            let _ = output.sender.send(Message::Block(block.clone()));
        }
    }

    /// Drops what is too old, and the oldest while there is too much.
    fn make_room(&mut self) {
        let from = self.now.saturating_sub(self.keep);
        let is_old = |block: &Arc<Block>| block.at < from;
        while self
            .blocks
            .front()
            .is_some_and(|block| is_old(block) && !self.may_have_launched(block))
        {
            self.drop_oldest();
        }
        while self.bytes() > self.max_bytes {
            let dropped = self.drop_oldest();
            if !dropped.as_ref().is_some_and(is_old) {
                self.cut = Some(self.now);
            }
            if dropped.is_none() {
                break;
            }
        }
        for known in self.processes.values_mut() {
            // The one before the held time stays, so that times can be interpolated.
            while known.samples.get(1).is_some_and(|(at, _)| *at < from) {
                known.samples.pop_front();
            }
        }
        let dropped = &mut self.dropped;
        self.processes.retain(|process, known| {
            let is_held = known.ended.is_none_or(|at| at >= from);
            if !is_held {
                dropped.push(ProcessId(*process));
            }
            is_held
        });
    }

    fn flush_facts(&mut self, process: u32) {
        let Some(known) = self.processes.get_mut(&process) else {
            return;
        };
        let new_texts = std::mem::take(&mut known.new_texts);
        let new_facts = std::mem::take(&mut known.new_records);
        let owner = Owner {
            process,
            ..Owner::default()
        };
        for (kind, payload) in [(Kind::TEXTS, new_texts), (Kind::FACTS, new_facts)] {
            if payload.is_empty() {
                continue;
            }
            if let Some(known) = self.processes.get_mut(&process) {
                let chunks = if kind == Kind::TEXTS {
                    &mut known.texts
                } else {
                    &mut known.records
                };
                keep_chunk(chunks, &payload);
            }
            if self.output.is_some() {
                self.send(&self.block(kind, owner, &payload, self.now));
            }
        }
    }

    fn flush(&mut self) {
        let processes: Vec<u32> = self.processes.keys().copied().collect();
        for process in processes {
            self.flush_facts(process);
        }
        let held = self.now.saturating_sub(self.keep);
        let held = self.blocks.iter().rev().take_while(|block| block.at >= held);
        let held = held.map(|block| block.submitted);
        self.submitted = held.chain(self.open.values().copied()).min().unwrap_or(u64::MAX);
        let from = self.flushed;
        for (owner, slots) in self.waiting.take_records() {
            self.push(Kind::RECORDS, owner, &slots, from);
        }
        for ((owner, reason), records) in self.waiting.take_lost() {
            self.push(Kind::LOST, owner, &payload::lost(reason, records), from);
        }
        self.flushed = self.now;
    }
}

impl RawSink for Hold {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        let process = process.0;
        let owner = Owner {
            process,
            ..Owner::default()
        };
        let now = self.now;
        match raw {
            Raw::Header(header) => {
                let header = header.encode();
                self.send(&self.block(Kind::PROCESS, owner, &header, now));
                self.processes.entry(process).or_default().header = header;
            }
            Raw::Text(id, text) => {
                let known = self.processes.entry(process).or_default();
                payload::put_text(&mut known.new_texts, *id, text);
                if known.new_texts.len() >= MAX_BLOCK_BYTES {
                    self.flush_facts(process);
                }
            }
            Raw::Fact(slots) => {
                let known = self.processes.entry(process).or_default();
                payload::put_slots(&mut known.new_records, slots);
                if known.new_records.len() >= MAX_BLOCK_BYTES {
                    self.flush_facts(process);
                }
            }
            Raw::Calibration(words) => {
                let sample = payload::bytes(&words[..]);
                self.send(&self.block(Kind::CALIBRATION, owner, &sample, now));
                let known = self.processes.entry(process).or_default();
                if known.first_sample.is_none() {
                    known.first_sample = Some(sample);
                } else {
                    known.samples.push_back((now, sample));
                }
            }
            Raw::Record(thread, slots) => self.records(ProcessId(process), *thread, slots),
            Raw::Lost(thread, reason, records) => self.waiting.lose(Owner::of(process, *thread), *reason, *records),
            Raw::Counters(words) => {
                self.flush_facts(process);
                self.push(Kind::COUNTERS, owner, &payload::bytes(words), now);
            }
            Raw::Open(work) => {
                let in_flight = work.queues.iter().flat_map(|queue| &queue.in_flight);
                let first = in_flight.map(|one| one.submit).filter(|at| *at > 0).min();
                self.open.insert(process, first.unwrap_or(u64::MAX));
                self.flush_facts(process);
                self.push(Kind::OPEN, owner, &payload::open(work), now);
            }
            Raw::Ended(exit, at) => {
                self.flush();
                self.push(Kind::ENDED, owner, &payload::ended(*exit, *at), now);
                self.open.remove(&process);
                self.processes.entry(process).or_default().ended = Some(self.now.max(*at));
            }
            Raw::Output(bytes) => self.push(Kind::OUTPUT, owner, bytes, now),
            Raw::Gauges(samples) => self.push(Kind::GAUGES, owner, &sysfs::store::encode(samples), now),
            Raw::ThreadTimes(readings) => self.push(Kind::THREAD_TIMES, owner, &payload::thread_times(readings), now),
            // What the node has is read once.
            Raw::Binding(binding) if binding.node.is_some() => {
                let binding = payload::binding(binding);
                self.send(&self.block(Kind::BINDING, owner, &binding, now));
                self.processes.entry(process).or_default().binding = binding;
            }
            Raw::Binding(binding) => self.push(Kind::BINDING, owner, &payload::binding(binding), now),
            Raw::Sites(facts) => {
                let facts = payload::sites(facts);
                self.send(&self.block(Kind::SITES, owner, &facts, now));
                // They may come after everything else of their process was dropped.
                if let Some(known) = self.processes.get_mut(&process) {
                    keep_chunk(&mut known.sites, &facts);
                }
            }
            Raw::Now(at) => {
                if self.now == 0 {
                    // Nothing is older than the first poll.
                    (self.whole_since, self.since, self.flushed) = (*at, *at, *at);
                }
                self.now = self.now.max(*at);
                if self.now.saturating_sub(self.flushed) >= MAX_BLOCK_AGE {
                    self.flush();
                    self.push(Kind::NOW, owner, &at.to_le_bytes(), self.now);
                }
            }
        }
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        let (owner, mut rest) = (Owner::of(process.0, thread), slots);
        while let (Some((owner, bytes)), later) = self.waiting.records(owner, rest) {
            self.flush_facts(process.0);
            self.push(Kind::RECORDS, owner, &bytes, self.flushed);
            rest = later;
        }
    }
}

/// Blocks of a stretch of time: while records of the time before may come, they are taken apart.
struct Stretched {
    begin: Nanos,
    /// None once everything belongs to the stretch.
    beginning: Option<Beginning>,
    /// What belongs to it of the last block, and what that brings.
    passed: Vec<(ProcessId, Record)>,
    /// Number of slots of the last block.
    slots: usize,
}

impl Stretched {
    fn new(stretch: Span) -> Self {
        Self {
            begin: stretch.begin,
            beginning: Some(Beginning::new(stretch.begin)),
            passed: Vec::new(),
            slots: 0,
        }
    }

    /// Whether a block belongs to the stretch as it is; records that are to be written instead, or also, are in `passed`.
    fn take(&mut self, block: &Block) -> bool {
        let is_latest = matches!(block.kind, Kind::COUNTERS | Kind::OPEN | Kind::ENDED);
        // What was read in the same poll is not before it.
        let is_before = block.at < self.begin && !is_latest && block.kind != Kind::RECORDS;
        if is_before || self.beginning.is_none() {
            return !is_before;
        }
        self.slots = 0;
        if let Some((head, payload)) = opened(&block.bytes) {
            payload::deliver(head, &payload, self);
        }
        if block.kind != Kind::RECORDS {
            return true;
        }
        let is_whole = matches!(&self.passed[..], [(_, (_, only))] if only.len() == self.slots);
        if is_whole {
            self.passed.clear();
        }
        is_whole
    }
}

/// Head and payload of an encoded block.
fn opened(bytes: &[u8]) -> Option<(Head, Vec<u8>)> {
    let head = Head::decode(bytes)?;
    Some((head, block::payload(head, bytes.get(block::HEADER..)?)?))
}

impl RawSink for Stretched {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        if let Some(beginning) = &mut self.beginning
            && beginning.take(process, raw, &mut self.passed)
        {
            self.beginning = None;
        }
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        self.slots = slots.len();
        if let Some(beginning) = &mut self.beginning {
            beginning.records(process, thread, slots, &mut self.passed);
        }
    }
}

/// Writes a recording below a temporary name, and renames it at its end. After an error nothing is left of it, so that a full
/// disk has room again.
fn write(to: &Destination, stretch: Option<Span>, blocks: &Receiver<Message>) -> Result<Written> {
    let temporary = partial(&to.path, std::process::id());
    let written = write_below(&temporary, to, stretch, blocks).and_then(|written| {
        std::fs::rename(&temporary, &to.path).map_err(Error::io("cannot name the recording", &to.path))?;
        Ok(written)
    });
    if written.is_err() {
        let _ = std::fs::remove_dir_all(&temporary);
    }
    written
}

fn write_below(path: &Path, to: &Destination, stretch: Option<Span>, blocks: &Receiver<Message>) -> Result<Written> {
    let failed = |source| Error::io("cannot write the recording", &to.path)(source);
    std::fs::create_dir_all(path).map_err(failed)?;
    Recorder::write_manifest_of(path, &to.command, &to.origin, Some(&to.trigger), stretch)?;
    let mut segments = Segments::create(path, 1)?;
    // Processes that ended long ago leave no gaps in the numbers.
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    let mut written = Written {
        path: to.path.clone(),
        records: 0,
        missing: 0,
    };
    let mut trigger = None;
    let mut stretched = stretch.map(Stretched::new);
    for message in blocks {
        let block = match message {
            Message::Block(block) => block,
            Message::End(last, missing) => {
                written.missing = missing;
                trigger = Some(last);
                break;
            }
        };
        let next = numbers.len() as u32;
        let is_of_none = matches!(block.kind, Kind::NOW | Kind::GAUGES | Kind::OUTPUT);
        let process = if is_of_none {
            0
        } else {
            *numbers.entry(block.owner.process).or_insert(next)
        };
        let is_whole = stretched.as_mut().is_none_or(|stretched| stretched.take(&block));
        for (of, (thread, slots)) in stretched.iter_mut().flat_map(|stretched| stretched.passed.drain(..)) {
            let of = numbers.get(&of.0).copied().unwrap_or(of.0);
            let mut bytes = Vec::new();
            payload::put_slots(&mut bytes, &slots);
            let (owner, content) = (Owner::of(of, thread), Times::of(&slots));
            let bytes = block::encode(Kind::RECORDS, owner, &bytes);
            segments
                .append(Kind::RECORDS, owner, &bytes, content, None)
                .map_err(failed)?;
            written.records += u64::from(content.1);
        }
        if !is_whole {
            continue;
        }
        let owner = Owner { process, ..block.owner };
        let appended = if process == block.owner.process {
            segments.append(block.kind, owner, &block.bytes, block.content, None)
        } else {
            let mut bytes = block.bytes.to_vec();
            block::renumber(&mut bytes, process);
            segments.append(block.kind, owner, &bytes, block.content, None)
        };
        appended.map_err(failed)?;
        written.records += u64::from(block.content.1);
    }
    segments
        .write(Kind::FINISHED, Owner::default(), &[])
        .and_then(|()| segments.end())
        .map_err(failed)?;
    if let Some(trigger) = trigger {
        Recorder::write_manifest_of(path, &to.command, &to.origin, Some(&trigger), stretch)?;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::layout::{Header, clock};
    use roctop_ring::record::{ApiCall, Dispatch, Domain, Head};
    use roctop_trace::item::Exit;

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn nothing_stays_of_processes_that_ended_before_the_held_time() {
        let mut hold = Hold::new(10 * SECOND, 64 << 20);
        let mut dropped = Vec::new();
        let mut sizes = Vec::new();
        // A process each second, for an hour.
        for number in 0..3600u32 {
            let (process, now) = (ProcessId(number), Nanos::from(number + 1) * SECOND);
            hold.take(process, &Raw::Header(&Header::default()));
            for id in 1..=50 {
                hold.take(process, &Raw::Text(id, &[b'x'; 100]));
            }
            hold.take(process, &Raw::Ended(Exit::Code(0), now));
            hold.take(process, &Raw::Now(now));
            dropped.extend(hold.take_dropped());
            sizes.push(hold.state().bytes);
        }
        assert!(hold.processes.len() <= 12, "{}", hold.processes.len());
        assert_eq!(dropped.len() + hold.processes.len(), 3600);
        assert_eq!(dropped[..3], [0, 1, 2].map(ProcessId));
        assert!(sizes[3599] <= sizes[20] + 4096, "{} {}", sizes[20], sizes[3599]);
    }

    /// Begins to write a recording to an empty place.
    fn begin(hold: &mut Hold, path: &Path) {
        let _ = std::fs::remove_dir_all(path);
        hold.begin(Destination {
            path: path.to_owned(),
            command: Vec::new(),
            origin: Origin::default(),
            trigger: Trigger::default(),
        })
        .unwrap();
    }

    /// Ordinals of the records of a recording.
    #[derive(Default)]
    struct Ordinals(Vec<u32>);

    impl RawSink for Ordinals {
        fn take(&mut self, _: ProcessId, raw: &Raw<'_>) {
            if let Raw::Record(_, slots) = raw {
                self.0.push(Head(slots[0][0]).ordinal());
            }
        }
    }

    /// A call each 10 ms of this clock, polled every 50 ms; its number is its time.
    fn calls_until(hold: &mut Hold, end: Nanos) {
        const TICK: Nanos = 10_000_000;
        for number in hold.now() / TICK + 1..=end / TICK {
            let at = number * TICK;
            let call = ApiCall {
                start: at - 5,
                end: at,
                ..ApiCall::default()
            };
            let [[a, b, c, d, e, f]] = call.payload();
            let head = ApiCall::head(0, Domain::HIP);
            let head = Head::new(head.kind(), 0, 1, head.domain().0).with_ordinal(number);
            let slot = [head.0, a, b, c, d, e, f, 0];
            hold.records(ProcessId(0), Thread { index: 1, tid: 7 }, &[slot]);
            if number % 5 == 0 {
                hold.take(ProcessId(0), &Raw::Now(at));
            }
        }
    }

    #[test]
    fn a_recording_has_the_held_time_and_what_follows() {
        let path = std::env::temp_dir().join(format!("roctop-hold-{}", std::process::id()));
        let mut hold = Hold::new(2 * SECOND, 64 << 20);
        hold.take(ProcessId(0), &Raw::Header(&Header::default()));
        calls_until(&mut hold, SECOND);
        assert_eq!(hold.state().span, SECOND - SECOND / 20, "since the first poll");
        calls_until(&mut hold, 10 * SECOND);
        let state = hold.state();
        assert_eq!((state.span, state.is_short), (2 * SECOND, false));
        begin(&mut hold, &path);
        calls_until(&mut hold, 11 * SECOND);
        let written = hold.end(Trigger::default()).unwrap().join().unwrap().unwrap();
        let mut found = Ordinals::default();
        let replay = super::super::Recording::open(&path).unwrap().deliver(&mut found);
        assert!(replay.unwrap().finished);
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!((written.records, written.missing), (found.0.len() as u64, 0));
        // All of the last two seconds, of an older time at most a block and the poll before it, and all that came later.
        let (first, last) = (found.0[0], *found.0.last().unwrap());
        assert!((770..=800).contains(&first), "{first}");
        assert!(found.0.iter().copied().eq(first..=1100), "{first} to {last}");
    }

    /// Texts and facts of a recording.
    #[derive(Default)]
    struct Names(Vec<u32>, usize);

    impl RawSink for Names {
        fn take(&mut self, _: ProcessId, raw: &Raw<'_>) {
            match raw {
                Raw::Text(id, _) => self.0.push(*id),
                Raw::Fact(_) => self.1 += 1,
                _ => {}
            }
        }
    }

    #[test]
    fn names_that_are_read_while_a_recording_begins_are_in_it() {
        // Everything is held, or what is older than a second is not.
        for (number, keep, polls) in [(0, 60 * SECOND, 2), (1, SECOND, 2), (2, SECOND, 9)] {
            let path = std::env::temp_dir().join(format!("roctop-names-{}-{number}", std::process::id()));
            let process = ProcessId(0);
            let mut hold = Hold::new(keep, 64 << 20);
            for poll in 1..=polls {
                hold.take(process, &Raw::Now(poll * SECOND));
            }
            // A poll of many records comes in parts: the recording begins between two.
            let name = |hold: &mut Hold, id| {
                hold.take(process, &Raw::Text(id, b"gemm"));
                hold.take(process, &Raw::Fact(&[[1; 8]]));
                hold.take(process, &Raw::Open(&roctop_ring::reader::OpenWork::default()));
            };
            hold.take(process, &Raw::Header(&Header::default()));
            name(&mut hold, 1);
            begin(&mut hold, &path);
            name(&mut hold, 2);
            hold.take(process, &Raw::Now((polls + 1) * SECOND));
            hold.end(Trigger::default()).unwrap().join().unwrap().unwrap();
            let mut names = Names::default();
            super::super::Recording::open(&path)
                .unwrap()
                .deliver(&mut names)
                .unwrap();
            std::fs::remove_dir_all(&path).unwrap();
            assert_eq!((names.0, names.1), (vec![1, 2], 2), "{keep} {polls}");
        }
    }

    /// Begins of calls and ends of kernels of a recording, by the call's number.
    #[derive(Default)]
    struct Launches {
        calls: BTreeMap<u64, Nanos>,
        kernels: BTreeMap<u64, Nanos>,
    }

    impl RawSink for Launches {
        fn take(&mut self, _: ProcessId, raw: &Raw<'_>) {
            let Raw::Record(_, slots) = raw else { return };
            let first = slots[0];
            if first[0] as u8 == Dispatch::KIND {
                self.kernels.insert(first[4], first[2]);
            } else {
                self.calls.insert(first[3], first[1]);
            }
        }
    }

    #[test]
    fn held_kernels_have_their_launches() {
        const TICK: Nanos = 10_000_000;
        /// From a launch to the end of its kernel.
        const QUEUED: u64 = 70;
        let path = std::env::temp_dir().join(format!("roctop-launches-{}", std::process::id()));
        let mut hold = Hold::new(2 * SECOND, 64 << 20);
        hold.take(ProcessId(0), &Raw::Header(&Header::default()));
        for at in [1000, 100 * SECOND] {
            // A tick is a nanosecond.
            let mut words = [0; clock::WORDS];
            for word in [clock::TICKS, clock::BOOTTIME, clock::HSA] {
                words[word] = at;
            }
            hold.take(ProcessId(0), &Raw::Calibration(&words));
        }
        let run = |hold: &mut Hold, numbers: std::ops::RangeInclusive<u64>| {
            for number in numbers {
                let at = number * TICK;
                let call = ApiCall {
                    start: at - 9,
                    end: at - 5,
                    correlation: number,
                    ..ApiCall::default()
                };
                let [[a, b, c, d, e, f]] = call.payload();
                let slot = [ApiCall::head(0, Domain::HIP).0, a, b, c, d, e, f, 0];
                hold.records(ProcessId(0), Thread { index: 1, tid: 7 }, &[slot]);
                if let Some(launched) = number.checked_sub(QUEUED).filter(|launched| *launched > 0) {
                    let kernel = Dispatch {
                        begin: at - 100,
                        end: at - 1,
                        submit: launched * TICK - 7,
                        correlation: launched,
                        ..Dispatch::default()
                    };
                    let head = Dispatch::head(0, Domain::NONE).0;
                    let [[a, b, c, d, e, f], [g, h, i, j, k, l]] = kernel.payload();
                    let slots = [[head, a, b, c, d, e, f, 0], [1, g, h, i, j, k, l, 0]];
                    hold.records(ProcessId(0), Thread { index: 0, tid: 8 }, &slots);
                }
                if number % 5 == 0 {
                    hold.take(ProcessId(0), &Raw::Now(at));
                }
            }
        };
        run(&mut hold, 1..=1000);
        begin(&mut hold, &path);
        run(&mut hold, 1001..=1300);
        let written = hold.end(Trigger::default()).unwrap().join().unwrap().unwrap();
        let recording = super::super::Recording::open(&path).unwrap();
        let mut found = Launches::default();
        recording.deliver(&mut found).unwrap();
        let stretch = recording.stretch().unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(stretch.begin, 8 * SECOND);
        assert_eq!(written.records, (found.calls.len() + found.kernels.len()) as u64);
        // Kernels that ended in the stretch, the calls that did, and those that launched these kernels.
        let ended = 801..=1300;
        assert!(
            found.kernels.keys().copied().eq(801 - QUEUED..=1300 - QUEUED),
            "{:?}",
            found.kernels
        );
        assert!(
            found.calls.keys().copied().eq(801 - QUEUED..=*ended.end()),
            "{:?}",
            found.calls
        );
    }
}
