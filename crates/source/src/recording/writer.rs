//! Writes a recording: collects records by thread and flushes them as blocks.

use super::beginning::Beginning;
use super::block::{Kind, Owner};
use super::by_thread::ByThread;
use super::history::Written;
use super::packing::{Packed, Packers};
use super::payload;
use super::segment::Segments;
use super::{DAMAGED, DAMAGED_UNCOUNTED, FORMAT, MANIFEST, STRETCH, TOPOLOGIES, TOPOLOGY, Trigger};
use crate::error::{Error, Result};
use crate::sysfs;
use roctop_ring::reader::Thread;
use roctop_ring::record::Slot;
use roctop_trace::item::{LossReason, Lost, Nanos, ProcessId, Span};
use roctop_trace::raw::{Raw, RawSink};
use roctop_trace::topology::Node;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a thread's records at which they are written.
pub(super) const MAX_BLOCK_BYTES: usize = 256 << 10;
/// Age at which they are written in any case.
const MAX_BLOCK_AGE: Duration = Duration::from_millis(250);
/// Bytes of records in that time from which other threads encode the blocks: a million records per second and more.
const BUSY_BYTES: usize = 24 << 20;
/// Bytes reserved for the end of a recording whose disk is full: buffered blocks, loss counts, the index.
const RESERVE_BYTES: usize = 1 << 20;
/// File name of a manifest that replaces the other.
const NEXT_MANIFEST: &str = "manifest.next";
/// File name of the reserved space.
const RESERVE_FILE: &str = "reserve";

/// Where the records come from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Machine whose clock the records use.
    pub host: String,
    /// Its boot id, empty if unknown.
    pub boot: String,
    /// CLOCK_BOOTTIME of the recorder's time namespace minus that of the machine, ns.
    pub clock_offset: i64,
    /// Driver topology of each machine, by host name.
    pub topologies: Vec<(String, Vec<Node>)>,
    /// Boots on which processes ran, each with its first process; empty if it is the one above.
    pub machines: Vec<(ProcessId, String)>,
}

impl Origin {
    /// This machine with these nodes.
    pub fn here(nodes: &[Node]) -> Self {
        Self {
            host: hostname(),
            boot: boot(),
            clock_offset: clock_offset(),
            topologies: vec![(hostname(), nodes.to_vec())],
            machines: Vec::new(),
        }
    }
}

/// Recorder: writes the deliveries of a source to a recording.
pub struct Recorder {
    files: Segments,
    path: PathBuf,
    /// Since the last flush.
    waiting: ByThread,
    /// Bytes of records since then, and whether they were many before.
    fresh_bytes: usize,
    is_busy: bool,
    /// They encode blocks in busy times.
    packers: Packers,
    texts: BTreeMap<u32, Vec<u8>>,
    facts: BTreeMap<u32, Vec<u8>>,
    flushed: Instant,
    /// First write error.
    failed: Option<io::Error>,
    /// Set while nothing can be written: time of the last attempt.
    full: Option<Instant>,
    /// Blocks that must be written first when there is space again.
    pending: Vec<(Kind, Owner, Vec<u8>)>,
    /// Number of records that could not be written.
    missing: u64,
    /// Callback for the messages "disk full" and "space again".
    word: Option<fn(&str)>,
    written: Arc<Written>,
    /// While records of the time before may come.
    beginning: Option<Beginning>,
}

/// Action of the error when the disk is full from the start.
const NO_ROOM: &str = "there is no room for a recording in";

impl Recorder {
    /// Creates the recording's directory and its first segment.
    ///
    /// Errors: the directory exists and is not empty, or cannot be created.
    pub fn create(path: &Path, command: &[String], nodes: &[Node]) -> Result<Self> {
        Self::copy(path, command, &Origin::here(nodes))
    }

    /// As [`Recorder::create`], for records of another machine or recording.
    pub fn copy(path: &Path, command: &[String], origin: &Origin) -> Result<Self> {
        if let Ok(mut entries) = std::fs::read_dir(path)
            && entries.next().is_some()
        {
            return Err(Error::NotEmpty(path.to_owned()));
        }
        if path.is_file() {
            return Err(Error::IsAFile(path.to_owned()));
        }
        std::fs::create_dir_all(path).map_err(Error::io("cannot create the recording", path))?;
        // Nothing was recorded, so nothing is left behind.
        Self::write_manifest(path, command, origin)
            .and_then(|()| Self::begin(path, 1))
            .inspect_err(|_| drop(std::fs::remove_dir_all(path)))
    }

    /// Writes the manifest and the topologies.
    pub(super) fn write_manifest(path: &Path, command: &[String], origin: &Origin) -> Result<()> {
        Self::write_manifest_of(path, command, origin, None, None)
    }

    /// The same with the reason why the recording was written, and the stretch of time that it is of, if that is not the whole run.
    pub(super) fn write_manifest_of(
        path: &Path,
        command: &[String],
        origin: &Origin,
        trigger: Option<&Trigger>,
        stretch: Option<Span>,
    ) -> Result<()> {
        let write =
            |name: &str, text: String| std::fs::write(path.join(name), text + "\n").map_err(Error::io(NO_ROOM, path));
        let mut manifest = serde_json::json!({
            "roctop": env!("CARGO_PKG_VERSION"),
            "format": FORMAT,
            "command": command,
            "host": origin.host,
            "boot": origin.boot,
        });
        if origin.clock_offset != 0 {
            manifest["clock_offset"] = origin.clock_offset.into();
        }
        if !origin.machines.is_empty() {
            manifest["machines"] = serde_json::to_value(&origin.machines)?;
        }
        if let Some(trigger) = trigger {
            manifest["trigger"] = serde_json::to_value(trigger)?;
        }
        if let Some(stretch) = stretch {
            manifest[STRETCH] = serde_json::to_value(stretch)?;
        }
        let text = serde_json::to_string_pretty(&manifest)?;
        write(MANIFEST, text)?;
        let of_host = |wanted: bool| {
            let all = origin.topologies.iter();
            all.filter(move |(host, _)| (*host == origin.host) == wanted)
        };
        let nodes = of_host(true).next().map_or(&[][..], |(_, nodes)| nodes);
        write(TOPOLOGY, serde_json::to_string_pretty(nodes)?)?;
        let others: BTreeMap<&String, &Vec<Node>> = of_host(false).map(|(host, nodes)| (host, nodes)).collect();
        if !others.is_empty() {
            write(TOPOLOGIES, serde_json::to_string_pretty(&others)?)?;
        }
        Ok(())
    }

    /// Notes in the manifest how many records damage has cost the recordings of which this is a copy.
    pub(super) fn note_damage(&self, lost: Lost) -> Result<()> {
        if !lost.is_any() {
            return Ok(());
        }
        self.amend_manifest(|manifest| {
            manifest[DAMAGED] = lost.records.into();
            if lost.is_least {
                manifest[DAMAGED_UNCOUNTED] = true.into();
            }
        })
    }

    fn amend_manifest(&self, change: impl FnOnce(&mut serde_json::Value)) -> Result<()> {
        let path = self.path.join(MANIFEST);
        let text = std::fs::read_to_string(&path).map_err(Error::io("cannot read", &path))?;
        let mut manifest: serde_json::Value = serde_json::from_str(&text).map_err(Error::damaged(&path))?;
        change(&mut manifest);
        let text = serde_json::to_string_pretty(&manifest)? + "\n";
        // The manifest is there, whole, at each moment.
        let next = self.path.join(NEXT_MANIFEST);
        std::fs::write(&next, text).map_err(Error::io(NO_ROOM, &self.path))?;
        std::fs::rename(&next, &path).map_err(Error::io("cannot replace", &path))
    }

    /// Continues a recording whose writer died: new files, starting with this number.
    pub(super) fn begin(path: &Path, number: u32) -> Result<Self> {
        std::fs::write(path.join(RESERVE_FILE), vec![0; RESERVE_BYTES]).map_err(Error::io(NO_ROOM, path))?;
        Ok(Self {
            files: Segments::create(path, number)?,
            path: path.to_owned(),
            waiting: ByThread::default(),
            fresh_bytes: 0,
            is_busy: false,
            packers: Packers::of_machine(),
            texts: BTreeMap::new(),
            facts: BTreeMap::new(),
            flushed: Instant::now(),
            failed: None,
            full: None,
            pending: Vec::new(),
            missing: 0,
            word: None,
            written: Arc::default(),
            beginning: None,
        })
    }

    /// Leaves out what ended by this time (CLOCK_BOOTTIME), except the calls and ranges of what ended later: for a program
    /// that runs already.
    ///
    /// Errors: the manifest cannot be written.
    pub fn beginning_at(mut self, begin: Nanos) -> Result<Self> {
        self.beginning = Some(Beginning::new(begin));
        self.note_stretch(Some(Span { begin, end: Nanos::MAX }))?;
        Ok(self)
    }

    /// Notes in the manifest of which stretch of time the records are, unless it is the whole run.
    pub(super) fn note_stretch(&self, stretch: Option<Span>) -> Result<()> {
        let Some(stretch) = stretch else { return Ok(()) };
        let stretch = serde_json::to_value(stretch)?;
        self.amend_manifest(|manifest| manifest[STRETCH] = stretch)
    }

    /// Limits the size of the records to about `max_bytes`. The oldest are removed first, and counted.
    #[must_use]
    pub fn with_limit(mut self, max_bytes: Option<u64>) -> Self {
        if let Some(max_bytes) = max_bytes {
            self.files.limit(max_bytes);
        }
        self
    }

    /// How far the recording is written, for readers of the file.
    pub fn written(&self) -> Arc<Written> {
        self.written.clone()
    }

    /// Sets a callback that reports at once that the disk is full, and that there is space again.
    #[must_use]
    pub fn reporting(mut self, word: fn(&str)) -> Self {
        self.word = Some(word);
        self
    }

    /// Writes all buffers and marks the recording as finished.
    ///
    /// Errors: some records could not be written; the others are in the recording, and the missing ones are counted as
    /// lost.
    pub fn finish(mut self) -> Result<()> {
        // The reserve was for this. If it cannot be removed, the recording is still complete.
        let _ = std::fs::remove_file(self.path.join(RESERVE_FILE));
        self.word = None;
        self.full = self.full.and_then(|at| at.checked_sub(MAX_BLOCK_AGE));
        self.flush_all();
        if self.write(Kind::FINISHED, Owner::default(), &[])
            && let Err(error) = self.files.end()
        {
            self.fail(error);
        }
        match self.failed.take() {
            Some(source) if self.missing > 0 || self.full.is_some() => Err(Error::Incomplete {
                path: self.path,
                missing: self.missing,
                source,
            }),
            _ => Ok(()),
        }
    }

    /// Writes a block; false if there is no space.
    fn write(&mut self, kind: Kind, owner: Owner, payload: &[u8]) -> bool {
        self.write_encoded();
        if !self.has_room() {
            return false;
        }
        let written = self.files.write(kind, owner, payload);
        written.map_err(|error| self.fail(error)).is_ok()
    }

    /// Writes a block now, or as soon as there is space.
    fn must_write(&mut self, kind: Kind, owner: Owner, payload: &[u8]) {
        if !self.write(kind, owner, payload) {
            let is_state = matches!(kind, Kind::COUNTERS | Kind::OPEN);
            // Only the last block of a state kind matters.
            self.pending.retain(|one| !is_state || (one.0, one.1) != (kind, owner));
            self.pending.push((kind, owner, payload.to_vec()));
        }
    }

    /// Whether blocks can be written, as far as is known. After an error, retries from time to time.
    fn has_room(&mut self) -> bool {
        let Some(tried) = self.full else { return true };
        if tried.elapsed() < MAX_BLOCK_AGE {
            return false;
        }
        let pending = std::mem::take(&mut self.pending);
        let mut written = self.files.flush();
        for (kind, owner, payload) in pending {
            written = written.and_then(|()| self.files.write(kind, owner, &payload));
            if written.is_err() {
                self.pending.push((kind, owner, payload));
            }
        }
        match written {
            Ok(()) => {
                self.full = None;
                self.say("there is room again: recording continues");
                true
            }
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    fn fail(&mut self, error: io::Error) {
        if self.full.replace(Instant::now()).is_none() {
            let path = self.path.display();
            self.say(&format!(
                "{path} cannot be written to: {error}; records are counted, not kept, until there is room"
            ));
        }
        self.failed.get_or_insert(error);
    }

    fn say(&self, line: &str) {
        if let Some(word) = self.word {
            word(line);
        }
    }

    /// Writes strings and facts, to which records refer.
    fn flush_facts(&mut self, process: u32) {
        let owner = Owner {
            process,
            ..Owner::default()
        };
        if let Some(texts) = self.texts.remove(&process)
            && !self.write(Kind::TEXTS, owner, &texts)
        {
            self.texts.insert(process, texts);
        }
        if let Some(facts) = self.facts.remove(&process)
            && !self.write(Kind::FACTS, owner, &facts)
        {
            self.facts.insert(process, facts);
        }
    }

    fn keep_records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        let (owner, mut rest) = (Owner::of(process.0, thread), slots);
        while let (Some((owner, bytes)), later) = self.waiting.records(owner, rest) {
            self.flush_facts(process.0);
            self.write_records(owner, bytes);
            rest = later;
        }
    }

    fn keep_all(&mut self, records: Vec<(ProcessId, (Thread, Vec<Slot>))>) {
        for (process, (thread, slots)) in records {
            self.keep_records(process, thread, &slots);
        }
    }

    /// Writes records of a thread, or counts them as lost; now, or when they are encoded.
    fn write_records(&mut self, owner: Owner, slots: Vec<u8>) {
        self.fresh_bytes += slots.len();
        if !self.is_busy {
            return self.put(Packed::of(owner, &slots));
        }
        self.packers.add(owner, slots);
        while let Some(packed) = self.packers.next_ready() {
            self.put(packed);
        }
    }

    /// Writes all blocks of records that other threads encode.
    fn write_encoded(&mut self) {
        while let Some(packed) = self.packers.next() {
            self.put(packed);
        }
    }

    /// Writes a block of records, or counts them as lost.
    fn put(&mut self, packed: Packed) {
        let Packed {
            owner,
            bytes,
            content,
            contents,
        } = packed;
        if self.has_room() {
            match self.files.append(Kind::RECORDS, owner, &bytes, content, Some(contents)) {
                Ok(()) => return,
                Err(error) => self.fail(error),
            }
        }
        let records = u64::from(content.1);
        self.missing += records;
        self.written.misses(records);
        self.waiting.lose(owner, LossReason::NotWritten, records);
    }

    fn flush_all(&mut self) {
        let mut processes: Vec<u32> = self.texts.keys().chain(self.facts.keys()).copied().collect();
        processes.dedup();
        for process in processes {
            self.flush_facts(process);
        }
        for (owner, slots) in self.waiting.take_records() {
            self.write_records(owner, slots);
        }
        self.write_encoded();
        for ((owner, reason), records) in self.waiting.take_lost() {
            if !self.write(Kind::LOST, owner, &payload::lost(reason, records)) {
                self.waiting.lose(owner, reason, records);
            }
        }
        if self.full.is_none()
            && let Err(error) = self.files.flush()
        {
            self.fail(error);
        }
        self.flushed = Instant::now();
        self.is_busy = std::mem::take(&mut self.fresh_bytes) >= BUSY_BYTES;
    }
}

impl RawSink for Recorder {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        if let Some(beginning) = &mut self.beginning {
            let mut along = Vec::new();
            if beginning.take(process, raw, &mut along) {
                self.beginning = None;
            }
            self.keep_all(along);
        }
        let process = process.0;
        let owner = Owner {
            process,
            ..Owner::default()
        };
        match raw {
            Raw::Header(header) => self.must_write(Kind::PROCESS, owner, &header.encode()),
            Raw::Text(id, text) => {
                let bytes = self.texts.entry(process).or_default();
                payload::put_text(bytes, *id, text);
                if bytes.len() >= MAX_BLOCK_BYTES {
                    self.flush_facts(process);
                }
            }
            Raw::Fact(slots) => {
                let bytes = self.facts.entry(process).or_default();
                payload::put_slots(bytes, slots);
                if bytes.len() >= MAX_BLOCK_BYTES {
                    self.flush_facts(process);
                }
            }
            Raw::Calibration(words) => self.must_write(Kind::CALIBRATION, owner, &payload::bytes(&words[..])),
            Raw::Record(thread, slots) => self.records(ProcessId(process), *thread, slots),
            Raw::Lost(thread, reason, records) => self.waiting.lose(Owner::of(process, *thread), *reason, *records),
            Raw::Counters(words) => {
                self.flush_facts(process);
                self.must_write(Kind::COUNTERS, owner, &payload::bytes(words));
            }
            Raw::Open(work) => {
                self.flush_facts(process);
                self.must_write(Kind::OPEN, owner, &payload::open(work));
            }
            Raw::Ended(exit, at) => {
                self.flush_all();
                self.must_write(Kind::ENDED, owner, &payload::ended(*exit, *at));
                self.flush_all();
            }
            // Output and poll times are useless without records.
            Raw::Output(bytes) => drop(self.write(Kind::OUTPUT, owner, bytes)),
            Raw::Gauges(samples) => drop(self.write(Kind::GAUGES, owner, &sysfs::store::encode(samples))),
            Raw::ThreadTimes(readings) => drop(self.write(Kind::THREAD_TIMES, owner, &payload::thread_times(readings))),
            Raw::Binding(binding) => self.must_write(Kind::BINDING, owner, &payload::binding(binding)),
            Raw::Sites(facts) => self.must_write(Kind::SITES, owner, &payload::sites(facts)),
            Raw::Now(at) => {
                if self.flushed.elapsed() >= MAX_BLOCK_AGE {
                    self.flush_all();
                    self.write(Kind::NOW, owner, &at.to_le_bytes());
                    if self.full.is_none() {
                        self.written.reaches(*at);
                    }
                }
            }
        }
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        match &mut self.beginning {
            None => self.keep_records(process, thread, slots),
            Some(beginning) => {
                let mut kept = Vec::new();
                beginning.records(process, thread, slots, &mut kept);
                self.keep_all(kept);
            }
        }
    }
}

/// Host name of this machine.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Id of this machine's boot. Recordings of one boot share their clocks, except for the offsets of time namespaces.
fn boot() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Offset of CLOCK_BOOTTIME in this time namespace, ns (time_namespaces(7)).
fn clock_offset() -> i64 {
    let text = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    offset_in(&text).unwrap_or(0)
}

/// The offset of CLOCK_BOOTTIME in lines of clock, seconds and nanoseconds.
fn offset_in(text: &str) -> Option<i64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let mut words = lines.find_map(|mut words| (words.next() == Some("boottime")).then_some(words))?;
    let mut number = || words.next()?.parse::<i64>().ok();
    number()?.checked_mul(1_000_000_000)?.checked_add(number()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::layout::Header;
    use roctop_ring::record::{ApiCall, Domain, Head};

    /// Calls of a thread, from `first` on.
    fn calls(first: u64, count: u64) -> Vec<Slot> {
        let call = |number: u64| {
            let call = ApiCall {
                start: number * 100,
                end: number * 100 + number % 97,
                correlation: number,
                op: (number % 30) as u16,
                ..ApiCall::default()
            };
            let [[a, b, c, d, e, f]] = call.payload();
            let head = ApiCall::head(0, Domain::HIP);
            [Head::new(head.kind(), 0, 1, head.domain().0).0, a, b, c, d, e, f, 0]
        };
        (first..first + count).map(call).collect()
    }

    /// The files of a recording of three threads, with blocks that are full and blocks that are not.
    fn files_of(path: &Path, busy_threads: Option<usize>) -> Vec<(String, Vec<u8>)> {
        let mut recorder = Recorder::copy(path, &["app".into()], &Origin::default()).unwrap();
        recorder.is_busy = busy_threads.is_some();
        recorder.packers = Packers::new(busy_threads.unwrap_or(0));
        recorder.take(ProcessId(0), &Raw::Header(&Header::default()));
        for round in 0..20 {
            for index in 0..3 {
                let thread = Thread { index, tid: 7 + index };
                recorder.records(ProcessId(0), thread, &calls(round * 3000, 1000 * u64::from(index + 1)));
            }
            recorder.take(ProcessId(0), &Raw::Text(round as u32 + 1, b"a kernel"));
            recorder.take(
                ProcessId(0),
                &Raw::Lost(Thread { index: 1, tid: 8 }, LossReason::Overwritten, round),
            );
            if round % 7 == 0 {
                recorder.take(ProcessId(0), &Raw::Counters(&[round; 8]));
            }
        }
        recorder.finish().unwrap();
        let mut files: Vec<_> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                (
                    path.file_name().unwrap().to_string_lossy().into_owned(),
                    std::fs::read(&path).unwrap(),
                )
            })
            .collect();
        files.sort();
        std::fs::remove_dir_all(path).unwrap();
        files
    }

    #[test]
    fn other_threads_encode_blocks_in_the_same_order() {
        let path = std::env::temp_dir().join(format!("roctop-packing-{}", std::process::id()));
        let expected = files_of(&path, None);
        let segments = expected.iter().filter(|(name, _)| name.starts_with("segment"));
        assert!(segments.map(|(_, bytes)| bytes.len()).sum::<usize>() > MAX_BLOCK_BYTES);
        for threads in [0, 1, 3] {
            assert!(files_of(&path, Some(threads)) == expected);
        }
    }

    /// Thread ids and record numbers of a recording, as they are read.
    #[derive(Default)]
    struct Numbers(Vec<(u32, u32)>);

    impl RawSink for Numbers {
        fn take(&mut self, _: ProcessId, raw: &Raw<'_>) {
            if let Raw::Record(thread, slots) = raw {
                self.0.push((thread.tid, Head(slots[0][0]).ordinal()));
            }
        }
    }

    #[test]
    fn threads_of_a_ring_are_written_by_age_and_not_by_id() {
        let path = std::env::temp_dir().join(format!("roctop-ring-age-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let mut recorder = Recorder::copy(&path, &["app".into()], &Origin::default()).unwrap();
        recorder.take(ProcessId(0), &Raw::Header(&Header::default()));
        let mut expected = Vec::new();
        // The thread ids of the machine start again behind the first; the last fills a block at once.
        for (tid, count) in [(4_194_303, 40), (301, 50), (300, 30_000)] {
            let first = expected.len() as u64;
            let mut slots = calls(first, count);
            for (number, slot) in (first..).zip(&mut slots) {
                slot[0] = Head(slot[0]).with_ordinal(number).0;
                expected.push((tid, number as u32));
            }
            recorder.records(ProcessId(0), Thread { index: 1, tid }, &slots);
        }
        recorder.finish().unwrap();
        let mut found = Numbers::default();
        super::super::Recording::open(&path)
            .unwrap()
            .deliver(&mut found)
            .unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        assert!(found.0 == expected, "{} of {}", found.0.len(), expected.len());
    }

    #[test]
    fn offset_of_the_clock_is_read_from_its_line() {
        let text = "monotonic           5         0\nboottime       100000  -5\n";
        assert_eq!(offset_in(text), Some(99_999_999_999_995));
        assert_eq!(offset_in(""), None);
        assert_eq!(offset_in("boottime 9223372036854775807 0"), None);
    }
}
