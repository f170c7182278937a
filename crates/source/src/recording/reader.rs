//! Reads a recording as the raw deliveries that were written.

use super::block::{Head, Kind};
use super::file::{Content, File, Prepare, Reading, Want};
use super::index::{Entry, Times};
use super::payload;
use super::segment;
use super::stretch::Stretch;
use super::{
    DAMAGED, DAMAGED_UNCOUNTED, FACTS, FORMAT, MANIFEST, Merged, OLDEST, SEGMENT, STRETCH, TOPOLOGIES, TOPOLOGY,
    Trigger,
};
use crate::error::{Error, Result};
use roctop_ring::reader::OpenWork;
use roctop_trace::clock::{Clock, Sample};
use roctop_trace::decode::Decoder;
use roctop_trace::item::{Item, LossReason, Lost, ProcessId, Span};
use roctop_trace::raw::{Raw, RawSink};
use roctop_trace::topology::Node;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An opened recording.
pub struct Recording {
    path: PathBuf,
    format: u64,
    /// Files of facts, then segments, each in the order of writing.
    files: Vec<PathBuf>,
    command: Vec<String>,
    host: String,
    boot: String,
    clock_offset: i64,
    machines: Vec<(ProcessId, String)>,
    trigger: Option<Trigger>,
    stretch: Option<Span>,
    /// Records that damage had cost the recordings of which this one is a copy.
    damaged_before: Lost,
    /// On which its blocks are read.
    threads: usize,
}

impl Recording {
    /// Reads its records on that many threads.
    #[must_use]
    pub const fn on_threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads.get();
        self
    }

    /// Number of threads that read its records.
    pub(super) const fn threads(&self) -> usize {
        self.threads
    }

    /// Whether names are in files of facts: before layout 2 they were among the records.
    pub(super) const fn has_facts_apart(&self) -> bool {
        self.format >= 2
    }

    /// Opens the recording at `path`. It reads the manifest and lists the files.
    ///
    /// Errors: there is no recording, or it has a later layout.
    pub fn open(path: &Path) -> Result<Self> {
        let manifest = path.join(MANIFEST);
        let text = std::fs::read_to_string(&manifest).map_err(|error| match (error.kind(), path.metadata()) {
            (_, Err(error)) if error.kind() == ErrorKind::NotFound => Error::NoRecording(path.to_owned()),
            (_, Ok(found)) if !found.is_dir() => Error::RecordingIsAFile(path.to_owned()),
            (ErrorKind::NotFound, _) => Error::NotARecording(path.to_owned()),
            _ => Error::io("cannot read", &manifest)(error),
        })?;
        let facts: serde_json::Value = serde_json::from_str(&text).map_err(Error::damaged(&manifest))?;
        let format = facts.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if !(u64::from(OLDEST)..=u64::from(FORMAT)).contains(&format) {
            return Err(Error::Layout {
                path: path.to_owned(),
                found: format,
            });
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
        let mut files: Vec<PathBuf> = std::fs::read_dir(path)
            .map_err(Error::io("cannot read", path))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|file| file.extension().is_some_and(|ending| ending == SEGMENT))
            .collect();
        files.sort_by_key(|file| (!Self::is_facts(file), Self::number(file)));
        let machines = facts
            .get("machines")
            .and_then(|machines| serde_json::from_value(machines.clone()).ok());
        Ok(Self {
            path: path.to_owned(),
            format,
            files,
            command,
            host: word("host"),
            boot: word("boot"),
            clock_offset: facts
                .get("clock_offset")
                .and_then(serde_json::Value::as_i64)
                .unwrap_or(0),
            machines: machines.unwrap_or_else(|| vec![(ProcessId(0), word("boot"))]),
            trigger: facts
                .get("trigger")
                .and_then(|trigger| serde_json::from_value(trigger.clone()).ok()),
            stretch: facts
                .get(STRETCH)
                .and_then(|stretch| serde_json::from_value(stretch.clone()).ok()),
            damaged_before: Lost {
                records: facts.get(DAMAGED).and_then(serde_json::Value::as_u64).unwrap_or(0),
                is_least: facts
                    .get(DAMAGED_UNCOUNTED)
                    .and_then(serde_json::Value::as_bool)
                    .unwrap_or(false),
            },
            threads: 1,
        })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The recorded command line.
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// Why it was written, if `roctop record --keep` wrote it.
    pub const fn trigger(&self) -> Option<&Trigger> {
        self.trigger.as_ref()
    }

    /// The stretch of time that it is of, if that is not the whole run. Calls and ranges that did not end in it are there because
    /// of what they caused.
    pub const fn stretch(&self) -> Option<Span> {
        self.stretch
    }

    /// Host name of the machine that recorded it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Boot id of that machine, empty if unknown.
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// CLOCK_BOOTTIME of its records minus that of the machine, ns: the offset of the recorder's time namespace.
    pub const fn clock_offset(&self) -> i64 {
        self.clock_offset
    }

    /// Boots on which its processes ran, each with its first process; empty unless the recording was merged from
    /// several.
    pub(super) fn machines(&self) -> &[(ProcessId, String)] {
        &self.machines
    }

    /// Driver topology at the start of the recording; empty if unknown.
    pub fn nodes(&self) -> Vec<Node> {
        self.topology(TOPOLOGY).unwrap_or_default().unwrap_or_default()
    }

    /// Reads a topology file, if it exists.
    fn topology<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let path = self.path.join(name);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("cannot read", &path)(error)),
        };
        let read = serde_json::from_str(&text).map_err(Error::damaged(&path))?;
        Ok(Some(read))
    }

    /// Faults of its topology files. Without a usable file, agents are described by their records.
    pub fn topology_faults(&self) -> Vec<String> {
        let own = self.topology::<Vec<Node>>(TOPOLOGY).err();
        let others = self.topology::<BTreeMap<String, Vec<Node>>>(TOPOLOGIES).err();
        let faults = own.into_iter().chain(others);
        faults
            .map(|error| format!("{}; agents are described by their records", error.with_causes()))
            .collect()
    }

    /// Driver topology of each machine in the recording, by host name.
    pub fn topologies(&self) -> Vec<(String, Vec<Node>)> {
        let mut all = vec![(self.host.clone(), self.nodes())];
        let others: Option<BTreeMap<String, Vec<Node>>> = self.topology(TOPOLOGIES).unwrap_or_default();
        all.extend(others.unwrap_or_default());
        all
    }

    /// Truncates the partially written blocks that a killed writer left. Their records are still in the rings, or their
    /// numbers show that they are lost.
    pub(super) fn cut_torn_ends(&self) -> Result<()> {
        for path in &self.files {
            if let Some(whole) = File::open(path)?.torn_at().map_err(Error::io("cannot read", path))? {
                let file = std::fs::File::options().write(true).open(path);
                file.and_then(|file| file.set_len(whole))
                    .map_err(Error::io("cannot write", path))?;
            }
        }
        Ok(())
    }

    /// Files of records with their numbers, in the order in which they were written.
    pub(super) fn segments(&self) -> impl Iterator<Item = (u32, &Path)> {
        let segments = self.files.iter().filter(|file| !Self::is_facts(file));
        segments.map(|file| (Self::number(file), file.as_path()))
    }

    /// Size of all its files, bytes.
    pub fn bytes(&self) -> u64 {
        let sizes = self.files.iter().filter_map(|file| Some(file.metadata().ok()?.len()));
        sizes.sum()
    }

    /// Number of the next segment.
    pub(super) fn next_number(&self) -> u32 {
        let last = self.files.iter().map(|file| Self::number(file)).max();
        last.map_or(1, |last| last.saturating_add(1)).max(2)
    }

    /// Number in a file's name; 0 for the first file of facts, which has none. File names do not sort by number:
    /// `facts-000002` sorts before `facts.roctop`, but refers to facts in it.
    fn number(file: &Path) -> u32 {
        let number = file
            .file_stem()
            .and_then(|stem| stem.to_str()?.rsplit('-').next()?.parse().ok());
        number.unwrap_or(0)
    }

    fn is_facts(file: &Path) -> bool {
        file.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(FACTS))
    }

    /// Delivers everything to `sink`; returns what was damaged.
    pub fn deliver(&self, sink: &mut dyn RawSink) -> Result<Replay> {
        self.deliver_blocks(&|_| true, &mut |_| (), sink)
    }

    /// Delivers the facts that name and date records, but no records.
    pub fn deliver_facts(&self, sink: &mut dyn RawSink) -> Result<Replay> {
        self.deliver_blocks(&|entry| entry.kind.stays(), &mut |_| (), sink)
    }

    /// Delivers everything except records that did not end in `span`, CLOCK_BOOTTIME ns; the calls and ranges of the others are
    /// taken along. `read` receives the number of bytes that are done, in steps.
    pub fn deliver_span(
        &self,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        sink: &mut dyn RawSink,
    ) -> Result<Replay> {
        self.deliver_prepared(span, read, &as_it_is, sink)
    }

    /// As [`Recording::deliver_span`]; `prepare` works on each block on the thread that reads it.
    pub(super) fn deliver_prepared(
        &self,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        prepare: &Prepare<'_>,
        sink: &mut dyn RawSink,
    ) -> Result<Replay> {
        let Some(span) = span else {
            return self.deliver_blocks_prepared(&|_| true, read, prepare, sink);
        };
        let stretch = Stretch::find(self, span, self.clocks()?)?;
        let prepare = |head: Head, payload| match head.kind {
            Kind::RECORDS => prepare(head, stretch.reduce(head, payload)),
            _ => prepare(head, payload),
        };
        self.deliver_blocks_prepared(&|entry| stretch.wants(entry), read, &prepare, sink)
    }

    /// Delivers the blocks of records that are wanted, and nothing else.
    pub(super) fn deliver_records(&self, want: &Want<'_>, sink: &mut dyn RawSink) -> Result<Replay> {
        let want = |entry: &Entry| entry.kind == Kind::RECORDS && want(entry);
        self.deliver_blocks(&want, &mut |_| (), sink)
    }

    /// Records that its processes lost, by reason, from their last counters.
    pub fn losses(&self) -> Result<BTreeMap<LossReason, u64>> {
        let mut decoder = Decoder::default();
        // Counters are in segments. Skip the other blocks there.
        let kinds = [Kind::PROCESS, Kind::LOST, Kind::DROPPED, Kind::COUNTERS, Kind::NOW];
        self.deliver_blocks(&|entry| kinds.contains(&entry.kind), &mut |_| (), &mut decoder)?;
        let mut last = BTreeMap::new();
        for item in decoder.take_items() {
            if let Item::Lost {
                process,
                reason,
                records,
            } = item
            {
                last.insert((process, reason), records);
            }
        }
        let mut losses: BTreeMap<LossReason, u64> = BTreeMap::new();
        for ((_, reason), records) in last {
            let sum = losses.entry(reason).or_default();
            *sum = sum.saturating_add(records);
        }
        Ok(losses)
    }

    /// Work that was open when its processes were last read.
    pub fn left_open(&self) -> Result<LeftOpen> {
        let mut last = LastOpen::default();
        let kinds = [Kind::OPEN, Kind::ENDED, Kind::NOW];
        let want = |entry: &Entry| entry.kind.stays() || kinds.contains(&entry.kind);
        self.deliver_blocks(&want, &mut |_| (), &mut last)?;
        Ok(last.read())
    }

    /// Clocks of its processes, with all samples.
    pub fn clocks(&self) -> Result<BTreeMap<ProcessId, Clock>> {
        let mut clocks = Clocks::default();
        self.deliver_facts(&mut clocks)?;
        Ok(clocks.0)
    }

    /// Begin of the first record and end of the last one, CLOCK_BOOTTIME ns, according to the indexes; `None` without
    /// an index or records.
    pub fn span(&self) -> Result<Option<Span>> {
        let clocks = self.clocks()?;
        let mut whole: Option<Span> = None;
        for file in self.files.iter().filter(|file| !Self::is_facts(file)) {
            for entry in File::open(file)?
                .index()
                .map_err(Error::io("cannot read", file))?
                .unwrap_or_default()
            {
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

    fn deliver_blocks(&self, want: &Want<'_>, read: &mut dyn FnMut(u64), sink: &mut dyn RawSink) -> Result<Replay> {
        self.deliver_blocks_prepared(want, read, &as_it_is, sink)
    }

    fn deliver_blocks_prepared(
        &self,
        want: &Want<'_>,
        read: &mut dyn FnMut(u64),
        prepare: &Prepare<'_>,
        sink: &mut dyn RawSink,
    ) -> Result<Replay> {
        let mut replay = Replay {
            damaged_before: self.damaged_before,
            nameless: self.format > 1 && !self.files.iter().any(|file| Self::is_facts(file)),
            ..Replay::default()
        };
        // Since layout 2, facts have their own files, so segments need not be read for them.
        let probe = |kind| {
            want(&Entry::unknown(
                0,
                Head {
                    kind,
                    ..Head::default()
                },
            ))
        };
        let segments = !self.has_facts_apart() || probe(Kind::RECORDS) || probe(Kind::NOW);
        self.deliver_by_process(want, read, sink, &mut replay)?;
        for file in self.files.iter().filter(|file| segments && !Self::is_facts(file)) {
            let opened = File::open(file)?;
            let reading = Reading {
                threads: self.threads,
                want,
                prepare,
            };
            opened
                .visit(reading, read, &mut replay, &mut |_, head, content| match content {
                    Content::Payload(payload) => payload::deliver(head, &payload, sink),
                    Content::Plain(plain) => {
                        let (process, thread) = payload::owner(head);
                        sink.plain(process, thread, plain);
                    }
                })
                .map_err(Error::io("cannot read", file))?;
        }
        if segments {
            replay.absent = self.absent(replay.dropped > 0);
        }
        Ok(replay)
    }

    /// Segments that are missing. The oldest may be removed because of the size limit.
    fn absent(&self, are_removed: bool) -> Option<Absent> {
        let mut expected = 1;
        let (mut first, mut segments) = (None, 0);
        for (number, _) in self.segments() {
            if number > expected && !(expected == 1 && are_removed) {
                first.get_or_insert(expected);
                segments += number - expected;
            }
            expected = number.saturating_add(1);
        }
        first.map(|first| Absent { first, segments })
    }

    /// Delivers the files of facts process by process. Ids that a decoder assigns then do not depend on the order in
    /// which facts of several processes were read: kernels are numbered by process, then in load order.
    fn deliver_by_process(
        &self,
        want: &Want<'_>,
        read: &mut dyn FnMut(u64),
        sink: &mut dyn RawSink,
        replay: &mut Replay,
    ) -> Result<()> {
        let mut files = Vec::new();
        let mut later = Vec::new();
        for path in self.files.iter().filter(|file| Self::is_facts(file)) {
            let file = File::open(path)?;
            let reading = Reading {
                threads: 1,
                want,
                prepare: &as_it_is,
            };
            file.visit(reading, read, replay, &mut |at, head, content| match content {
                // The first process has no predecessors.
                Content::Payload(payload) if head.process == 0 => payload::deliver(head, &payload, sink),
                _ => later.push((head.process, files.len(), at)),
            })
            .map_err(Error::io("cannot read", path))?;
            files.push((file, path));
        }
        later.sort_unstable();
        for (_, file, at) in later {
            let (file, path) = &files[file];
            if let Some((head, payload)) = file.block(at).map_err(Error::io("cannot read", path))? {
                payload::deliver(head, &payload, sink);
            }
        }
        Ok(())
    }

    /// Decodes everything and passes each batch of items to `take`, with all clock samples known in advance.
    pub fn items(&self, take: &mut dyn FnMut(Vec<Item>)) -> Result<Replay> {
        Merged::new(vec![self])?.items(None, &mut |_| (), take)
    }
}

/// Leaves a block to the thread that takes it.
pub(super) const fn as_it_is(_: Head, payload: Vec<u8>) -> Content {
    Content::Payload(payload)
}

/// Result of reading a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Number of blocks read.
    pub blocks: u64,
    /// Number of damaged or truncated ranges.
    pub damaged: u64,
    /// Size of these ranges, bytes.
    pub damaged_bytes: u64,
    /// Records in these ranges, according to the indexes.
    pub missing: u64,
    /// Whether a range is in a file without an index: nothing says how many records it had.
    pub is_uncounted: bool,
    /// Records that damage had cost the recordings of which it is a copy.
    pub damaged_before: Lost,
    /// Records in segments that were removed because of the size limit.
    pub dropped: u64,
    /// Whether the recording was finished.
    pub finished: bool,
    /// Whether the files of facts are missing.
    pub nameless: bool,
    /// Segments that are missing between others, or before them without having been removed for the size limit.
    pub absent: Option<Absent>,
    /// Whether records may have been delivered twice.
    pub repeats: Option<Repeats>,
}

/// Segments that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Number of the first.
    pub first: u32,
    /// How many.
    pub segments: u32,
}

/// Why records may have been delivered twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Several recordings have the same process.
    Shared,
    /// Whether these records of the same process are different ones is unknown.
    Uncertain(u64),
}

impl Replay {
    /// Counts an intact block.
    pub(super) fn take(&mut self, kind: Kind, payload: &[u8]) {
        self.blocks += 1;
        self.finished |= kind == Kind::FINISHED;
        if kind == Kind::DROPPED {
            let records = payload::words(payload).first().copied().unwrap_or(0);
            self.dropped = self.dropped.saturating_add(records);
        }
    }

    /// Records that damage has cost, here and before this was copied. A recording without its end, or without its facts,
    /// which also count losses, may have had more.
    pub fn lost_by_damage(&self) -> Lost {
        let here = Lost {
            records: self.missing,
            is_least: self.is_uncounted || !self.finished || self.nameless || self.absent.is_some(),
        };
        here.and(self.damaged_before)
    }

    /// What is wrong with the recording as a whole, in a word and in a sentence.
    pub fn faults(&self) -> Vec<(&'static str, &'static str)> {
        let no_end = (
            "NO END",
            "the recording has no end: it was not finished, or was cut off ('roctop recover' adds what the session's rings \
still hold)",
        );
        let no_facts = (
            "NO NAMES",
            "the file of facts is missing: kernels, calls and agents have no names, and times are raw",
        );
        let twice = (
            "TWICE",
            "several of the recordings are of one process: a record that is in two of them counts twice ('roctop merge' makes \
a recording with each record once)",
        );
        let a_gap = (
            "GAP",
            "segments of the recording are missing: their records are lost, and nothing says how many they were",
        );
        let is_shared = self.repeats == Some(Repeats::Shared);
        [
            (!self.finished, no_end),
            (self.nameless, no_facts),
            (self.absent.is_some(), a_gap),
            (is_shared, twice),
        ]
        .into_iter()
        .filter_map(|(is_so, fault)| is_so.then_some(fault))
        .collect()
    }

    /// Warnings about a recording, or about several that were read as one.
    pub fn warnings(&self, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if self.damaged > 0 {
            let missing = Lost {
                records: self.missing,
                is_least: self.is_uncounted,
            };
            lines.push(format!(
                "{name}: {} damaged {} ({} bytes with {}) skipped",
                self.damaged,
                if self.damaged == 1 { "range" } else { "ranges" },
                self.damaged_bytes,
                records(missing)
            ));
        }
        if let Some(absent) = self.absent {
            lines.push(format!("{name}: {absent}"));
        }
        lines.extend(self.faults().into_iter().map(|(_, text)| format!("{name}: {text}")));
        if self.damaged_before.is_any() {
            lines.push(format!(
                "{name}: it is a copy of damaged recordings, which lost {}",
                records(self.damaged_before)
            ));
        }
        if let Some(Repeats::Uncertain(records)) = self.repeats {
            lines.push(format!(
                "{name}: a thread wrote more than 4294967296 records, so {records} records may be in the copy twice"
            ));
        }
        if self.dropped > 0 {
            lines.push(format!(
                "{name}: the oldest {} records were removed when the recording reached its size limit",
                self.dropped
            ));
        }
        lines
    }

    /// Adds the result of another recording.
    pub(super) fn join(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.damaged += other.damaged;
        self.damaged_bytes += other.damaged_bytes;
        self.missing = self.missing.saturating_add(other.missing);
        self.is_uncounted |= other.is_uncounted;
        self.damaged_before = match self.repeats {
            // Copies of one recording have the same damage, or each its part.
            Some(_) if self.damaged_before.is_any() && other.damaged_before.is_any() => Lost {
                records: self.damaged_before.records.max(other.damaged_before.records),
                is_least: true,
            },
            _ => self.damaged_before.and(other.damaged_before),
        };
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.finished &= other.finished;
        self.nameless |= other.nameless;
        self.absent = self.absent.or(other.absent);
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = segment::name(self.first);
        match self.segments {
            1 => write!(out, "the file {file} is missing"),
            several => write!(out, "{several} segments are missing, {file} is the first"),
        }
    }
}

/// Missing records in words.
fn records(lost: Lost) -> String {
    match (lost.records, lost.is_least) {
        (0, true) => "an unknown number of records".into(),
        (_, true) => format!("{} or more records", lost.records),
        (1, false) => "1 record".into(),
        (_, false) => format!("{} records", lost.records),
    }
}

/// What was open at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOpen {
    /// Number of dispatches that were in flight.
    pub dispatches: usize,
    /// Texts of the ranges of processes that have ended.
    pub ranges: Vec<Arc<str>>,
}

/// Last open work by process, and what names it.
#[derive(Default)]
struct LastOpen {
    decoder: Decoder,
    open: BTreeMap<ProcessId, OpenWork>,
    ended: BTreeSet<ProcessId>,
}

impl RawSink for LastOpen {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        match raw {
            Raw::Open(work) => drop(self.open.insert(process, (*work).clone())),
            Raw::Ended(..) => drop(self.ended.insert(process)),
            other => self.decoder.take(process, other),
        }
    }
}

impl LastOpen {
    fn read(mut self) -> LeftOpen {
        let queues = self.open.values().flat_map(|work| &work.queues);
        let dispatches = queues.map(|queue| queue.in_flight.len()).sum();
        for (process, work) in self.open.iter().filter(|(process, _)| self.ended.contains(process)) {
            self.decoder.take(*process, &Raw::Open(work));
        }
        let (mut texts, mut ranges) = (HashMap::new(), Vec::new());
        for item in self.decoder.take_items() {
            match item {
                Item::Text(id, text) => drop(texts.insert(id, text)),
                Item::Open(open) => {
                    let names = open.ranges.iter().filter_map(|range| texts.get(&range.text).cloned());
                    ranges.extend(names);
                }
                _ => {}
            }
        }
        LeftOpen { dispatches, ranges }
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

/// Clocks by process, with all samples.
#[derive(Default)]
pub(super) struct Clocks(pub(super) BTreeMap<ProcessId, Clock>);

impl RawSink for Clocks {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        if let Raw::Calibration(words) = raw {
            self.0.entry(process).or_default().add(Sample::from_words(words));
        }
    }
}
