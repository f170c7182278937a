//! Reads a recording back as the raw things that were written down.

use super::block::{self, HEADER, Head, Kind, MAGIC};
use super::index::{self, Entry, Times};
use super::{FACTS, FORMAT, MANIFEST, Merged, OLDEST, SEGMENT, TOPOLOGIES, TOPOLOGY};
use crate::clock::{Clock, Sample};
use crate::gauges;
use crate::item::{Exit, Item, Nanos, ProcessId, Span};
use crate::raw::{Raw, RawSink, each};
use crate::topology::Node;
use anyhow::{Context, Result, anyhow, bail};
use roctop_ring::layout::{Header, clock};
use roctop_ring::reader::{InFlight, OpenCall, OpenRange, OpenWork, QueueWork, Thread};
use roctop_ring::record::{Domain, SLOT_WORDS};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An opened recording.
pub struct Recording {
    path: PathBuf,
    format: u64,
    /// Files of facts, then segments, in order.
    files: Vec<PathBuf>,
    command: Vec<String>,
    host: String,
    boot: String,
}

impl Recording {
    /// Opens the recording at `path`; nothing but its names is read now.
    ///
    /// Errors: there is none, or it was written by a later release with another layout.
    pub fn open(path: &Path) -> Result<Self> {
        let manifest = path.join(MANIFEST);
        let text = std::fs::read_to_string(&manifest).map_err(|error| {
            let shown = path.display();
            match (error.kind(), path.metadata()) {
                (_, Err(error)) if error.kind() == ErrorKind::NotFound => {
                    anyhow!("there is no recording {shown}; 'roctop record -o {shown} -- APP' makes one")
                }
                (_, Ok(found)) if !found.is_dir() => {
                    anyhow!("{shown} is a file; a recording of roctop is a directory with {MANIFEST} in it")
                }
                (ErrorKind::NotFound, _) => anyhow!("{shown} is not a recording of roctop: no {MANIFEST} in it"),
                _ => anyhow!("cannot read {}: {error}", manifest.display()),
            }
        })?;
        let facts: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("{} is damaged", manifest.display()))?;
        let format = facts.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if !(u64::from(OLDEST)..=u64::from(FORMAT)).contains(&format) {
            bail!(
                "{} has layout {format}; this release of roctop reads layouts {OLDEST} to {FORMAT}",
                path.display()
            );
        }
        let words = facts.get("command").and_then(serde_json::Value::as_array);
        let command = words
            .into_iter()
            .flatten()
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect();
        let word = |key: &str| {
            facts
                .get(key)
                .and_then(serde_json::Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let mut files: Vec<PathBuf> = std::fs::read_dir(path)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|file| file.extension().is_some_and(|ending| ending == SEGMENT))
            .collect();
        // Files of facts come before segments by their names.
        files.sort();
        Ok(Self {
            path: path.to_owned(),
            format,
            files,
            command,
            host: word("host"),
            boot: word("boot"),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The command line that was recorded.
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// Name of the machine on which it was made.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Id of that machine's boot, empty when it is not known.
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// The driver's topology when the recording began; empty when it is not known.
    pub fn nodes(&self) -> Vec<Node> {
        self.topology(TOPOLOGY).unwrap_or_default().unwrap_or_default()
    }

    /// A file of topology, if it is there.
    fn topology<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let path = self.path.join(name);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let read = serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))?;
        Ok(Some(read))
    }

    /// What is wrong with its files of topology; where one cannot be used, agents are what the records tell of them.
    pub fn topology_faults(&self) -> Vec<String> {
        let own = self.topology::<Vec<Node>>(TOPOLOGY).err();
        let others = self.topology::<BTreeMap<String, Vec<Node>>>(TOPOLOGIES).err();
        let faults = own.into_iter().chain(others);
        faults
            .map(|error| format!("{error:#}; agents are described by what the records tell of them"))
            .collect()
    }

    /// The driver's topology of each machine on which something in it was made, by the machine's name.
    pub fn topologies(&self) -> Vec<(String, Vec<Node>)> {
        let mut all = vec![(self.host.clone(), self.nodes())];
        let others: Option<BTreeMap<String, Vec<Node>>> = self.topology(TOPOLOGIES).unwrap_or_default();
        all.extend(others.unwrap_or_default());
        all
    }

    /// Cuts off what a writer that was killed had begun to write at the end of a file. What that was, its rings hold still,
    /// or numbers in them tell that it is gone.
    pub(super) fn cut_torn_ends(&self) -> Result<()> {
        for path in &self.files {
            let cannot = || format!("cannot write {}", path.display());
            let file = File::options().read(true).write(true).open(path).with_context(cannot)?;
            let size = file.metadata().with_context(cannot)?.len();
            if let Some(whole) = torn_at(&file, size)? {
                file.set_len(whole).with_context(cannot)?;
            }
        }
        Ok(())
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        let sizes = self.files.iter().filter_map(|file| Some(file.metadata().ok()?.len()));
        sizes.sum()
    }

    /// The number of the segment that would come next.
    pub(super) fn next_number(&self) -> u32 {
        let name = self
            .files
            .last()
            .and_then(|file| file.file_stem()?.to_str()?.rsplit('-').next()?.parse().ok());
        name.map_or(1, |last: u32| last.saturating_add(1)).max(2)
    }

    fn is_facts(file: &Path) -> bool {
        file.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(FACTS))
    }

    /// Delivers everything to `sink`; returns what was damaged.
    pub fn deliver(&self, sink: &mut dyn RawSink) -> Result<Replay> {
        self.deliver_blocks(&|_| true, &mut |_| (), sink)
    }

    /// Delivers what names and dates records, but no records.
    pub fn deliver_facts(&self, sink: &mut dyn RawSink) -> Result<Replay> {
        self.deliver_blocks(&|entry| entry.kind.stays(), &mut |_| (), sink)
    }

    /// Delivers everything but those records of which it is known that they do not touch the time from `span.begin` to
    /// `span.end`, CLOCK_BOOTTIME ns. `read` is told of bytes as they are done with.
    pub fn deliver_span(
        &self,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        sink: &mut dyn RawSink,
    ) -> Result<Replay> {
        let Some(span) = span else {
            return self.deliver_blocks(&|_| true, read, sink);
        };
        let clocks = self.clocks()?;
        let touches = |entry: &Entry| {
            if entry.kind != Kind::RECORDS {
                return true;
            }
            let Some(clock) = clocks.get(&ProcessId(entry.owner.process & 0xffff)) else {
                return true;
            };
            let within = |(least, greatest): (u64, u64), convert: &dyn Fn(u64) -> Nanos| {
                least <= greatest && convert(greatest.max(1)) >= span.begin && convert(least) <= span.end
            };
            let Times { ticks, hsa } = entry.times;
            let nothing = ticks.0 > ticks.1 && hsa.0 > hsa.1;
            nothing || within(ticks, &|time| clock.ticks(time)) || within(hsa, &|time| clock.hsa(time))
        };
        self.deliver_blocks(&touches, read, sink)
    }

    /// The clocks of its processes, with all of their samples.
    pub fn clocks(&self) -> Result<BTreeMap<ProcessId, Clock>> {
        let mut samples = Samples::default();
        self.deliver_facts(&mut samples)?;
        let clocks = samples.0.into_iter().map(|(process, samples)| {
            let mut clock = Clock::default();
            for sample in samples {
                clock.add(sample);
            }
            (process, clock)
        });
        Ok(clocks.collect())
    }

    /// When the first record began and the last one ended, CLOCK_BOOTTIME ns, as the indexes say; none when there is no
    /// index or no record.
    pub fn span(&self) -> Result<Option<Span>> {
        let clocks = self.clocks()?;
        let mut whole: Option<Span> = None;
        for file in self.files.iter().filter(|file| !Self::is_facts(file)) {
            let opened = open_file(file)?;
            for entry in read_index(&opened.0, opened.1)?.unwrap_or_default() {
                let Some(clock) = clocks.get(&ProcessId(entry.owner.process & 0xffff)) else {
                    continue;
                };
                let Times { ticks, hsa } = entry.times;
                for span in [
                    (ticks.0 <= ticks.1).then(|| (clock.ticks(ticks.0), clock.ticks(ticks.1))),
                    (hsa.0 <= hsa.1).then(|| (clock.hsa(hsa.0), clock.hsa(hsa.1))),
                ]
                .into_iter()
                .flatten()
                {
                    let known = whole.get_or_insert(Span {
                        begin: span.0,
                        end: span.1,
                    });
                    known.begin = known.begin.min(span.0);
                    known.end = known.end.max(span.1);
                }
            }
        }
        Ok(whole)
    }

    fn deliver_blocks(
        &self,
        want: &dyn Fn(&Entry) -> bool,
        read: &mut dyn FnMut(u64),
        sink: &mut dyn RawSink,
    ) -> Result<Replay> {
        let mut replay = Replay {
            nameless: self.format > 1 && !self.files.iter().any(|file| Self::is_facts(file)),
            ..Replay::default()
        };
        // What stays is in files of its own since layout 2: then segments need not be looked at for it.
        let probe = |kind| {
            want(&Entry::unknown(
                0,
                Head {
                    kind,
                    ..Head::default()
                },
            ))
        };
        let segments = self.format < 2 || probe(Kind::RECORDS) || probe(Kind::NOW);
        for file in self.files.iter().filter(|file| segments || Self::is_facts(file)) {
            let (opened, size) = open_file(file)?;
            deliver_file(&opened, size, want, read, sink, &mut replay)
                .with_context(|| format!("cannot read {}", file.display()))?;
        }
        Ok(replay)
    }

    /// Decodes everything, each batch of items to `take`, with the clocks known from the beginning.
    pub fn items(&self, take: &mut dyn FnMut(Vec<Item>)) -> Result<Replay> {
        Merged::new(vec![self])?.items(None, &mut |_| (), take)
    }
}

/// What reading a recording found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Blocks read.
    pub blocks: u64,
    /// Stretches that were damaged or cut off.
    pub damaged: u64,
    /// Bytes of these.
    pub damaged_bytes: u64,
    /// Records in them, as far as the indexes tell.
    pub missing: u64,
    /// Records that had to go because the recording had a limit.
    pub dropped: u64,
    /// The recording was finished properly.
    pub finished: bool,
    /// The files that name and date records are not there.
    pub nameless: bool,
}

impl Replay {
    /// Adds what reading another recording found.
    pub(super) fn join(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.damaged += other.damaged;
        self.damaged_bytes += other.damaged_bytes;
        self.missing = self.missing.saturating_add(other.missing);
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.finished &= other.finished;
        self.nameless |= other.nameless;
    }
}

/// Calibration samples by process.
#[derive(Default)]
pub(super) struct Samples(pub(super) BTreeMap<ProcessId, Vec<Sample>>);

impl RawSink for Samples {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        if let Raw::Calibration(words) = raw {
            self.0.entry(process).or_default().push(Sample::from_words(words));
        }
    }
}

fn open_file(path: &Path) -> Result<(File, u64)> {
    let cannot = || format!("cannot open {}", path.display());
    let facts = path.metadata().with_context(cannot)?;
    // Whoever opens a pipe waits.
    if !facts.is_file() {
        bail!("{} is not a file: it is no part of a recording", path.display());
    }
    let file = File::open(path).with_context(cannot)?;
    Ok((file, facts.len()))
}

/// Bytes of the block that ends a segment.
const FOOTER_BYTES: u64 = HEADER as u64 + 8;

/// The index of a whole segment; none when there is none or it is damaged.
fn read_index(file: &File, size: u64) -> Result<Option<Vec<Entry>>> {
    let Some(at) = size.checked_sub(FOOTER_BYTES) else {
        return Ok(None);
    };
    let Some((_, footer)) = read_block(file, at, size)?.filter(|(head, _)| head.kind == Kind::FOOTER) else {
        return Ok(None);
    };
    let offset = index::words(&footer).first().copied().unwrap_or(u64::MAX);
    let found = read_block(file, offset, size)?.filter(|(head, _)| head.kind == Kind::INDEX);
    Ok(found.map(|(_, payload)| index::decode(&index::words(&payload))))
}

/// The block at a place; none when it is not whole.
fn read_block(file: &File, at: u64, size: u64) -> Result<Option<(Head, Vec<u8>)>> {
    let Some(head) = read_head(file, at, size)? else {
        return Ok(None);
    };
    let mut stored = vec![0u8; head.stored_length as usize];
    read_full(file, at + HEADER as u64, &mut stored)?;
    Ok(block::payload(head, &stored).map(|payload| (head, payload)))
}

fn read_head(file: &File, at: u64, size: u64) -> Result<Option<Head>> {
    if at >= size {
        return Ok(None);
    }
    let mut head = [0u8; HEADER];
    let got = read_full(file, at, &mut head)?;
    let fits = |head: &Head| at + (HEADER as u64) + u64::from(head.stored_length) <= size;
    Ok(Head::decode(&head[..got]).filter(fits))
}

/// Delivers the wanted blocks of a file.
fn deliver_file(
    file: &File,
    size: u64,
    want: &dyn Fn(&Entry) -> bool,
    read: &mut dyn FnMut(u64),
    sink: &mut dyn RawSink,
    replay: &mut Replay,
) -> Result<()> {
    let index = read_index(file, size)?;
    let known: BTreeMap<u64, Entry> = index.iter().flatten().map(|entry| (entry.offset, *entry)).collect();
    let mut seen = BTreeSet::new();
    let mut at = 0;
    let mut whole_before = true;
    while at < size {
        let before = at;
        // What the index says of a block that is not wanted is enough.
        if let Some(entry) = known.get(&at)
            && !want(entry)
        {
            seen.insert(at);
            at = at.saturating_add(HEADER as u64 + u64::from(entry.stored)).min(size);
            read(at - before);
            whole_before = true;
            continue;
        }
        if let Some(head) = read_head(file, at, size)? {
            let entry = known.get(&at).copied().unwrap_or_else(|| Entry::unknown(at, head));
            if !want(&entry) {
                seen.insert(at);
                at += HEADER as u64 + u64::from(head.stored_length);
                read(at - before);
                whole_before = true;
                continue;
            }
            let mut stored = vec![0u8; head.stored_length as usize];
            read_full(file, at + HEADER as u64, &mut stored)?;
            if let Some(payload) = block::payload(head, &stored) {
                whole_before = true;
                seen.insert(at);
                replay.blocks += 1;
                replay.finished |= head.kind == Kind::FINISHED;
                if head.kind == Kind::DROPPED {
                    let records = index::words(&payload).first().copied().unwrap_or(0);
                    replay.dropped = replay.dropped.saturating_add(records);
                }
                deliver_block(head, &payload, sink);
                at += HEADER as u64 + u64::from(head.stored_length);
                read(at - before);
                continue;
            }
        }
        if std::mem::replace(&mut whole_before, false) {
            replay.damaged += 1;
        }
        at = next_magic(file, at + 1, size)?;
        replay.damaged_bytes += at - before;
        read(at - before);
    }
    let missing = known.values().filter(|entry| !seen.contains(&entry.offset));
    replay.missing += missing.map(|entry| u64::from(entry.records)).sum::<u64>();
    Ok(())
}

/// Where the last block begins of which only a part was written, when nothing follows it.
fn torn_at(file: &File, size: u64) -> Result<Option<u64>> {
    let mut at = 0;
    while at < size {
        let Some(head) = read_head(file, at, size)? else {
            return Ok((next_magic(file, at + 1, size)? == size).then_some(at));
        };
        at += HEADER as u64 + u64::from(head.stored_length);
    }
    Ok(None)
}

fn next_magic(file: &File, from: u64, size: u64) -> Result<u64> {
    let mut at = from;
    let mut window = vec![0u8; 64 << 10];
    while at < size {
        let got = read_full(file, at, &mut window)?;
        if let Some(found) = window[..got].windows(4).position(|bytes| bytes == MAGIC.to_le_bytes()) {
            return Ok(at + found as u64);
        }
        at += (got as u64).saturating_sub(3).max(1);
    }
    Ok(size)
}

fn read_full(file: &File, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match file.read_at(&mut into[got..], offset + got as u64)? {
            0 => break,
            count => got += count,
        }
    }
    Ok(got)
}

fn deliver_block(head: Head, payload: &[u8], sink: &mut dyn RawSink) {
    let process = ProcessId(head.process & 0xffff);
    let thread = Thread {
        index: head.thread,
        tid: head.tid,
    };
    let words = index::words(payload);
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    match head.kind {
        Kind::PROCESS => {
            if let Ok(header) = Header::decode(payload, u64::MAX) {
                sink.take(process, &Raw::Header(&header));
            }
        }
        Kind::TEXTS => texts(payload, &mut |id, text| sink.take(process, &Raw::Text(id, text))),
        Kind::FACTS => {
            let slots = words.as_chunks::<SLOT_WORDS>().0;
            each(slots).for_each(|fact| sink.take(process, &Raw::Fact(fact)));
        }
        Kind::CALIBRATION => {
            let mut sample = [0; clock::WORDS];
            sample.iter_mut().zip(&words).for_each(|(to, word)| *to = *word);
            sink.take(process, &Raw::Calibration(&sample));
        }
        Kind::RECORDS => {
            let slots = words.as_chunks::<SLOT_WORDS>().0;
            sink.records(process, thread, slots);
        }
        Kind::LOST | Kind::DROPPED => sink.take(process, &Raw::Lost(thread, word(0))),
        Kind::COUNTERS => sink.take(process, &Raw::Counters(&words)),
        Kind::OPEN => sink.take(process, &Raw::Open(&open(&words))),
        Kind::ENDED => {
            let exit = match word(0) {
                1 => Exit::Code(word(1) as i32),
                2 => Exit::Signal(word(1) as i32),
                _ => Exit::Unknown,
            };
            sink.take(process, &Raw::Ended(exit, word(2)));
        }
        Kind::OUTPUT => sink.take(process, &Raw::Output(payload)),
        Kind::GAUGES => sink.take(process, &Raw::Gauges(&gauges::store::decode(payload))),
        Kind::NOW => sink.take(process, &Raw::Now(word(0))),
        _ => {}
    }
}

fn texts(payload: &[u8], take: &mut dyn FnMut(u32, &[u8])) {
    let mut rest = payload;
    while let Some((sizes, after)) = rest.split_first_chunk::<8>() {
        let number = |at: usize| u32::from_le_bytes([sizes[at], sizes[at + 1], sizes[at + 2], sizes[at + 3]]);
        let Some(text) = after.get(..number(4) as usize) else {
            return;
        };
        take(number(0), text);
        rest = &after[text.len()..];
    }
}

fn open(words: &[u64]) -> OpenWork {
    let mut work = OpenWork::default();
    let mut rest = words.iter().copied();
    let mut next = || rest.next();
    // A damaged count ends with the words, never later.
    (|| -> Option<()> {
        let (calls, ranges, queues) = (next()?, next()?, next()?);
        for _ in 0..calls {
            let (thread, start, operation, correlation) = (next()?, next()?, next()?, next()?);
            let domain = Domain((operation >> 32) as u8);
            let level = (operation >> 16) as u16;
            work.calls.push(OpenCall {
                thread: thread_of(thread),
                start,
                domain,
                op: operation as u16,
                correlation,
                level,
            });
        }
        for _ in 0..queues {
            let mut queue = QueueWork {
                id: next()? as u32,
                submitted: next()?,
                completed: next()?,
                untimed: next()?,
                in_flight: Vec::new(),
            };
            for _ in 0..next()? {
                let (submit, kernel_object, correlation, dispatch_id) = (next()?, next()?, next()?, next()?);
                queue.in_flight.push(InFlight {
                    submit,
                    kernel_object,
                    correlation,
                    dispatch_id,
                });
            }
            work.queues.push(queue);
        }
        for _ in 0..ranges {
            let (thread, start, correlation, range_id, sizes) = (next()?, next()?, next()?, next()?, next()?);
            let length = (sizes & 0xffff) as usize;
            let mut text = Vec::new();
            for _ in 0..length.div_ceil(8) {
                text.extend(next()?.to_le_bytes());
            }
            text.truncate(length);
            let (text_id, level) = ((sizes >> 32) as u32, (sizes >> 16) as u16);
            work.ranges.push(OpenRange {
                thread: thread_of(thread),
                start,
                correlation,
                range_id,
                text_id,
                level,
                text,
            });
        }
        Some(())
    })();
    work
}

fn thread_of(word: u64) -> Thread {
    Thread {
        index: (word >> 32) as u32,
        tid: word as u32,
    }
}
