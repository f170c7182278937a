//! Reads a recording back as the raw things that were written down.

use super::block::{Head, Kind};
use super::file::File;
use super::history::touches;
use super::index::{Entry, Times};
use super::payload;
use super::{FACTS, FORMAT, MANIFEST, Merged, OLDEST, SEGMENT, TOPOLOGIES, TOPOLOGY};
use crate::error::{Error, Result};
use roctop_trace::clock::{Clock, Sample};
use roctop_trace::decode::Decoder;
use roctop_trace::item::{Item, LossReason, ProcessId, Span};
use roctop_trace::raw::{Raw, RawSink};
use roctop_trace::topology::Node;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// An opened recording.
pub struct Recording {
    path: PathBuf,
    format: u64,
    /// Files of facts, then segments, each in the order in which they were written.
    files: Vec<PathBuf>,
    command: Vec<String>,
    host: String,
    boot: String,
    machines: Vec<(ProcessId, String)>,
}

impl Recording {
    /// Opens the recording at `path`; nothing but its names is read now.
    ///
    /// Errors: there is none, or it was written by a later release with another layout.
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
            machines: machines.unwrap_or_else(|| vec![(ProcessId(0), word("boot"))]),
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

    /// The boots on which its processes ran, each with the first of its processes: one, where it was not put together from
    /// several.
    pub(super) fn machines(&self) -> &[(ProcessId, String)] {
        &self.machines
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
            Err(error) => return Err(Error::io("cannot read", &path)(error)),
        };
        let read = serde_json::from_str(&text).map_err(Error::damaged(&path))?;
        Ok(Some(read))
    }

    /// What is wrong with its files of topology; where one cannot be used, agents are what the records tell of them.
    pub fn topology_faults(&self) -> Vec<String> {
        let own = self.topology::<Vec<Node>>(TOPOLOGY).err();
        let others = self.topology::<BTreeMap<String, Vec<Node>>>(TOPOLOGIES).err();
        let faults = own.into_iter().chain(others);
        faults
            .map(|error| format!("{}; agents are described by their records", error.with_causes()))
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

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        let sizes = self.files.iter().filter_map(|file| Some(file.metadata().ok()?.len()));
        sizes.sum()
    }

    /// The number of the segment that would come next.
    pub(super) fn next_number(&self) -> u32 {
        let last = self.files.iter().map(|file| Self::number(file)).max();
        last.map_or(1, |last| last.saturating_add(1)).max(2)
    }

    /// The number in a file's name; 0 where it has none, as the first file of facts. Names do not sort: `facts-000002` comes
    /// before `facts.roctop`, and its facts refer to those of the other.
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
            let clock = clocks.get(&ProcessId(entry.owner.process & 0xffff));
            entry.kind != Kind::RECORDS || touches(entry, clock, span)
        };
        self.deliver_blocks(&touches, read, sink)
    }

    /// How many records its processes lost, by reason, as their last counters say.
    pub fn losses(&self) -> Result<BTreeMap<LossReason, u64>> {
        let mut decoder = Decoder::default();
        // Counters are in segments, which are read for who wants what is in them alone.
        let tells = [Kind::PROCESS, Kind::LOST, Kind::DROPPED, Kind::COUNTERS, Kind::NOW];
        self.deliver_blocks(&|entry| tells.contains(&entry.kind), &mut |_| (), &mut decoder)?;
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

    /// How many dispatches its processes had in flight when they were last looked at.
    pub fn in_flight(&self) -> Result<usize> {
        let mut last = InFlight::default();
        let tells = [Kind::OPEN, Kind::NOW];
        self.deliver_blocks(&|entry| tells.contains(&entry.kind), &mut |_| (), &mut last)?;
        Ok(last.0.values().sum())
    }

    /// The clocks of its processes, with all of their samples.
    pub fn clocks(&self) -> Result<BTreeMap<ProcessId, Clock>> {
        let mut clocks = Clocks::default();
        self.deliver_facts(&mut clocks)?;
        Ok(clocks.0)
    }

    /// When the first record began and the last one ended, CLOCK_BOOTTIME ns, as the indexes say; none when there is no
    /// index or no record.
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
        self.deliver_by_process(want, read, sink, &mut replay)?;
        for file in self.files.iter().filter(|file| segments && !Self::is_facts(file)) {
            let opened = File::open(file)?;
            opened
                .deliver(want, read, sink, &mut replay)
                .map_err(Error::io("cannot read", file))?;
        }
        Ok(replay)
    }

    /// Delivers the files of facts, one process after the other. The order in which a reader came to the facts of several
    /// processes has no influence on the numbers that a decoder gives out: those of kernels follow the order of processes,
    /// and within a process the order in which it loaded them.
    fn deliver_by_process(
        &self,
        want: &dyn Fn(&Entry) -> bool,
        read: &mut dyn FnMut(u64),
        sink: &mut dyn RawSink,
        replay: &mut Replay,
    ) -> Result<()> {
        let mut files = Vec::new();
        let mut later = Vec::new();
        for path in self.files.iter().filter(|file| Self::is_facts(file)) {
            let file = File::open(path)?;
            file.visit(want, read, replay, &mut |at, head, payload| {
                // No process comes before the first one.
                if head.process == 0 {
                    payload::deliver(head, payload, sink);
                } else {
                    later.push((head.process, files.len(), at));
                }
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
    /// A whole block was read.
    pub(super) fn take(&mut self, kind: Kind, payload: &[u8]) {
        self.blocks += 1;
        self.finished |= kind == Kind::FINISHED;
        if kind == Kind::DROPPED {
            let records = payload::words(payload).first().copied().unwrap_or(0);
            self.dropped = self.dropped.saturating_add(records);
        }
    }

    /// What is to be said of a recording, or of several, of which this was found.
    pub fn warnings(&self, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if self.damaged > 0 {
            let missing = if self.missing > 0 {
                format!(" with {} records", self.missing)
            } else {
                String::new()
            };
            lines.push(format!(
                "{name}: {} damaged {} ({} bytes{missing}) passed over",
                self.damaged,
                if self.damaged == 1 { "stretch" } else { "stretches" },
                self.damaged_bytes
            ));
        } else if !self.finished {
            lines.push(format!(
                "{name}: the recording was not finished; what was written is shown ('roctop recover' completes it while the \
session's rings are there)"
            ));
        }
        if self.nameless {
            lines.push(format!(
                "{name}: the file of facts is missing: kernels, calls and agents have no names, and times are raw"
            ));
        }
        if self.dropped > 0 {
            lines.push(format!(
                "{name}: the oldest {} records went when the recording reached its limit",
                self.dropped
            ));
        }
        lines
    }

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

/// Dispatches in flight by process.
#[derive(Default)]
struct InFlight(BTreeMap<ProcessId, usize>);

impl RawSink for InFlight {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        if let Raw::Open(work) = raw {
            let dispatches = work.queues.iter().map(|queue| queue.in_flight.len()).sum();
            self.0.insert(process, dispatches);
        }
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

/// Clocks by process, with all of their samples.
#[derive(Default)]
pub(super) struct Clocks(pub(super) BTreeMap<ProcessId, Clock>);

impl RawSink for Clocks {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        if let Raw::Calibration(words) = raw {
            self.0.entry(process).or_default().add(Sample::from_words(words));
        }
    }
}
