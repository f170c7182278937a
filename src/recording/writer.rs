//! Writes a recording: collects records by thread and flushes them as blocks, all the time.

use super::block::{Kind, Owner};
use super::segment::Segments;
use super::{FORMAT, MANIFEST, TOPOLOGIES, TOPOLOGY};
use crate::gauges;
use crate::item::{Exit, ProcessId};
use crate::raw::{Raw, RawSink};
use crate::topology::Node;
use anyhow::{Context, Result, bail};
use roctop_ring::reader::OpenWork;
use roctop_ring::record::Slot;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A thread's records are written out when there are this many bytes of them.
const BLOCK: usize = 256 << 10;
/// Or when this much time has passed.
const AGE: Duration = Duration::from_millis(250);

/// Where records were made.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The machine whose clock the records go by.
    pub host: String,
    /// Id of its boot, empty when it is not known.
    pub boot: String,
    /// The driver's topology of each machine, by its name.
    pub topologies: Vec<(String, Vec<Node>)>,
}

/// Writes down what a source delivers.
pub struct Recorder {
    files: Segments,
    path: PathBuf,
    records: BTreeMap<(u32, u32, u32), Vec<u8>>,
    texts: BTreeMap<u32, Vec<u8>>,
    facts: BTreeMap<u32, Vec<u8>>,
    /// Losses since the last flush, by process, ring and thread.
    lost: BTreeMap<(u32, u32, u32), u64>,
    flushed: Instant,
    failed: Option<io::Error>,
}

impl Recorder {
    /// Makes the recording's directory and its first segment.
    ///
    /// Errors: the directory exists and is not empty, or cannot be made.
    pub fn create(path: &Path, command: &[String], nodes: &[Node]) -> Result<Self> {
        let here = Origin {
            host: hostname(),
            boot: boot(),
            topologies: vec![(hostname(), nodes.to_vec())],
        };
        Self::copy(path, command, &here)
    }

    /// The same for records that were made elsewhere.
    pub fn copy(path: &Path, command: &[String], origin: &Origin) -> Result<Self> {
        if let Ok(mut entries) = std::fs::read_dir(path)
            && entries.next().is_some()
        {
            bail!(
                "{} exists and is not empty; name another directory with -o",
                path.display()
            );
        }
        if path.is_file() {
            bail!("{} is a file; name another directory with -o", path.display());
        }
        std::fs::create_dir_all(path).with_context(|| format!("cannot make the recording {}", path.display()))?;
        let manifest = serde_json::json!({
            "roctop": env!("CARGO_PKG_VERSION"),
            "format": FORMAT,
            "command": command,
            "host": origin.host,
            "boot": origin.boot,
        });
        let text = serde_json::to_string_pretty(&manifest)?;
        std::fs::write(path.join(MANIFEST), text + "\n")
            .with_context(|| format!("cannot write to {}", path.display()))?;
        let of_host = |wanted: bool| {
            let all = origin.topologies.iter();
            all.filter(move |(host, _)| (*host == origin.host) == wanted)
        };
        let nodes = of_host(true).next().map_or(&[][..], |(_, nodes)| nodes);
        std::fs::write(path.join(TOPOLOGY), serde_json::to_string_pretty(nodes)? + "\n")?;
        let others: BTreeMap<&String, &Vec<Node>> = of_host(false).map(|(host, nodes)| (host, nodes)).collect();
        if !others.is_empty() {
            std::fs::write(path.join(TOPOLOGIES), serde_json::to_string_pretty(&others)? + "\n")?;
        }
        Self::begin(path, 1)
    }

    /// Goes on with a recording whose writer died: new files, the first of which has this number.
    pub(super) fn begin(path: &Path, number: u32) -> Result<Self> {
        Ok(Self {
            files: Segments::create(path, number)?,
            path: path.to_owned(),
            records: BTreeMap::new(),
            texts: BTreeMap::new(),
            facts: BTreeMap::new(),
            lost: BTreeMap::new(),
            flushed: Instant::now(),
            failed: None,
        })
    }

    /// Keeps so many bytes of records, about: the oldest go first, and are counted.
    #[must_use]
    pub fn with_limit(mut self, most: Option<u64>) -> Self {
        if let Some(most) = most {
            self.files.limit(most);
        }
        self
    }

    /// Writes the rest and marks the recording as finished.
    pub fn finish(mut self) -> Result<()> {
        self.flush_all();
        self.write(Kind::FINISHED, Owner::default(), &[]);
        if self.failed.is_none() {
            self.failed = self.files.end().err();
        }
        match self.failed.take() {
            Some(error) => Err(error).with_context(|| format!("the recording {} is incomplete", self.path.display())),
            None => Ok(()),
        }
    }

    /// The first error of writing, if any: the recording is incomplete since then.
    pub fn error(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    fn write(&mut self, kind: Kind, owner: Owner, payload: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = self.files.write(kind, owner, payload) {
            self.failed = Some(error);
        }
    }

    /// Texts and facts go first: records name them.
    fn flush_facts(&mut self, process: u32) {
        let owner = Owner {
            process,
            ..Owner::default()
        };
        if let Some(texts) = self.texts.remove(&process) {
            self.write(Kind::TEXTS, owner, &texts);
        }
        if let Some(facts) = self.facts.remove(&process) {
            self.write(Kind::FACTS, owner, &facts);
        }
    }

    fn flush_all(&mut self) {
        let mut processes: Vec<u32> = self.texts.keys().chain(self.facts.keys()).copied().collect();
        processes.dedup();
        for process in processes {
            self.flush_facts(process);
        }
        for ((process, thread, tid), slots) in std::mem::take(&mut self.records) {
            self.write(Kind::RECORDS, Owner { process, thread, tid }, &slots);
        }
        for ((process, thread, tid), records) in std::mem::take(&mut self.lost) {
            self.write(Kind::LOST, Owner { process, thread, tid }, &u64::to_le_bytes(records));
        }
        if self.failed.is_none()
            && let Err(error) = self.files.flush()
        {
            self.failed = Some(error);
        }
        self.flushed = Instant::now();
    }

    fn record(&mut self, process: u32, thread: roctop_ring::reader::Thread, slots: &[Slot]) {
        let key = (process, thread.index, thread.tid);
        let bytes = self.records.entry(key).or_default();
        put_slots(bytes, slots);
        if bytes.len() >= BLOCK {
            let bytes = std::mem::take(bytes);
            self.flush_facts(process);
            self.write(
                Kind::RECORDS,
                Owner {
                    process,
                    thread: thread.index,
                    tid: thread.tid,
                },
                &bytes,
            );
        }
    }
}

impl RawSink for Recorder {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        let process = process.0;
        let owner = Owner {
            process,
            ..Owner::default()
        };
        match raw {
            Raw::Header(header) => self.write(Kind::PROCESS, owner, &header.encode()),
            Raw::Text(id, text) => {
                let bytes = self.texts.entry(process).or_default();
                bytes.extend_from_slice(&id.to_le_bytes());
                bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
                bytes.extend_from_slice(text);
                if bytes.len() >= BLOCK {
                    self.flush_facts(process);
                }
            }
            Raw::Fact(slots) => {
                let bytes = self.facts.entry(process).or_default();
                put_slots(bytes, slots);
                if bytes.len() >= BLOCK {
                    self.flush_facts(process);
                }
            }
            Raw::Calibration(words) => self.write(Kind::CALIBRATION, owner, &put_words(&words[..])),
            Raw::Record(thread, slots) => self.record(process, *thread, slots),
            Raw::Lost(thread, records) => {
                let lost = self.lost.entry((process, thread.index, thread.tid)).or_default();
                *lost = lost.saturating_add(*records);
            }
            Raw::Counters(words) => {
                self.flush_facts(process);
                self.write(Kind::COUNTERS, owner, &put_words(words));
            }
            Raw::Open(work) => {
                self.flush_facts(process);
                self.write(Kind::OPEN, owner, &put_open(work));
            }
            Raw::Ended(exit, at) => {
                self.flush_all();
                let (kind, number) = match exit {
                    Exit::Code(code) => (1u64, i64::from(*code)),
                    Exit::Signal(signal) => (2, i64::from(*signal)),
                    Exit::Unknown => (0, 0),
                };
                self.write(Kind::ENDED, owner, &put_words(&[kind, number as u64, *at]));
                self.flush_all();
            }
            Raw::Output(bytes) => self.write(Kind::OUTPUT, owner, bytes),
            Raw::Gauges(samples) => self.write(Kind::GAUGES, owner, &gauges::store::encode(samples)),
            Raw::Now(at) => {
                if self.flushed.elapsed() >= AGE {
                    self.flush_all();
                    self.write(Kind::NOW, owner, &at.to_le_bytes());
                }
            }
        }
    }
}

fn put_slots(bytes: &mut Vec<u8>, slots: &[Slot]) {
    for word in slots.as_flattened() {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
}

fn put_words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn put_open(work: &OpenWork) -> Vec<u8> {
    let mut words = vec![
        work.calls.len() as u64,
        work.ranges.len() as u64,
        work.queues.len() as u64,
    ];
    for call in &work.calls {
        let operation = u64::from(call.domain.0) << 32 | u64::from(call.level) << 16 | u64::from(call.op);
        let thread = u64::from(call.thread.index) << 32 | u64::from(call.thread.tid);
        words.extend([thread, call.start, operation, call.correlation]);
    }
    for queue in &work.queues {
        let in_flight = queue.in_flight.len() as u64;
        words.extend([
            u64::from(queue.id),
            queue.submitted,
            queue.completed,
            queue.untimed,
            in_flight,
        ]);
        for work in &queue.in_flight {
            words.extend([work.submit, work.kernel_object, work.correlation, work.dispatch_id]);
        }
    }
    for range in &work.ranges {
        let thread = u64::from(range.thread.index) << 32 | u64::from(range.thread.tid);
        let sizes = u64::from(range.text_id) << 32 | u64::from(range.level) << 16 | range.text.len() as u64;
        words.extend([thread, range.start, range.correlation, range.range_id, sizes]);
        for chunk in range.text.chunks(8) {
            let mut raw = [0u8; 8];
            raw[..chunk.len()].copy_from_slice(chunk);
            words.push(u64::from_le_bytes(raw));
        }
    }
    put_words(&words)
}

/// This machine's name.
pub(crate) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// This boot of this machine; recordings of one boot share their clocks.
fn boot() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}
