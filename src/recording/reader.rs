//! Reads a recording back as the raw things that were written down.

use super::block::{self, HEADER, Head, Kind, MAGIC};
use super::{FORMAT, MANIFEST, SEGMENT, TOPOLOGY};
use crate::clock::Sample;
use crate::decode::Decoder;
use crate::gauges;
use crate::item::{Exit, Item, LossReason, ProcessId};
use crate::raw::{Raw, RawSink, records};
use crate::topology::Node;
use anyhow::{Context, Result, bail};
use roctop_ring::layout::{Header, clock};
use roctop_ring::reader::{InFlight, OpenCall, OpenRange, OpenWork, QueueWork, Thread};
use roctop_ring::record::{Domain, SLOT_WORDS};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An opened recording.
pub struct Recording {
    path: PathBuf,
    segments: Vec<PathBuf>,
    command: Vec<String>,
}

impl Recording {
    /// Opens the recording at `path`.
    ///
    /// Errors: there is none, or it was written by a release with another layout.
    pub fn open(path: &Path) -> Result<Self> {
        let manifest = path.join(MANIFEST);
        let text = std::fs::read_to_string(&manifest)
            .with_context(|| format!("{} is not a recording of roctop (no {MANIFEST} in it)", path.display()))?;
        let facts: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("{} is damaged", manifest.display()))?;
        let format = facts.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if format != u64::from(FORMAT) {
            bail!(
                "{} has layout {format}; this release of roctop reads layout {FORMAT}",
                path.display()
            );
        }
        let words = facts.get("command").and_then(serde_json::Value::as_array);
        let command = words
            .into_iter()
            .flatten()
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect();
        let mut segments: Vec<PathBuf> = std::fs::read_dir(path)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|file| file.extension().is_some_and(|ending| ending == SEGMENT))
            .collect();
        segments.sort();
        Ok(Self {
            path: path.to_owned(),
            segments,
            command,
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

    /// The driver's topology when the recording began; empty when it is not known.
    pub fn nodes(&self) -> Vec<Node> {
        let text = std::fs::read_to_string(self.path.join(TOPOLOGY)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Delivers everything to `sink`; returns what was damaged.
    pub fn deliver(&self, sink: &mut dyn RawSink) -> Result<Replay> {
        let mut replay = Replay::default();
        for segment in &self.segments {
            let file = File::open(segment).with_context(|| format!("cannot open {}", segment.display()))?;
            let size = file.metadata()?.len();
            deliver_segment(&file, size, sink, &mut replay)
                .with_context(|| format!("cannot read {}", segment.display()))?;
        }
        Ok(replay)
    }

    /// Decodes everything, each batch of items to `take`. The recording is read twice: the first time for the clocks.
    pub fn items(&self, take: &mut dyn FnMut(Vec<Item>)) -> Result<Replay> {
        let mut samples = Samples::default();
        self.deliver(&mut samples)?;
        let mut decoder = Decoder::default();
        for (process, samples) in &samples.0 {
            decoder.preload_clock(*process, samples);
        }
        let mut batches = Batches {
            decoder,
            take,
            pending: 0,
        };
        let replay = self.deliver(&mut batches)?;
        if replay.damaged > 0 {
            let lost = Item::Lost {
                process: ProcessId(0),
                reason: LossReason::Damaged,
                records: replay.damaged,
            };
            (batches.take)(vec![lost]);
        }
        let rest = batches.decoder.take_items();
        (batches.take)(rest);
        Ok(replay)
    }
}

/// What reading a recording found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Blocks read.
    pub blocks: u64,
    /// Stretches that were damaged or cut off.
    pub damaged: u64,
    /// The recording was finished properly.
    pub finished: bool,
}

#[derive(Default)]
struct Samples(BTreeMap<ProcessId, Vec<Sample>>);

impl RawSink for Samples {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        if let Raw::Calibration(words) = raw {
            self.0.entry(process).or_default().push(Sample::from_words(words));
        }
    }
}

struct Batches<'a> {
    decoder: Decoder,
    take: &'a mut dyn FnMut(Vec<Item>),
    pending: u32,
}

impl RawSink for Batches<'_> {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.decoder.take(process, raw);
        self.pending += 1;
        if self.pending >= 4096 {
            self.pending = 0;
            (self.take)(self.decoder.take_items());
        }
    }
}

fn deliver_segment(file: &File, size: u64, sink: &mut dyn RawSink, replay: &mut Replay) -> Result<()> {
    let mut at = 0;
    let mut whole_before = true;
    while at < size {
        let mut head = [0u8; HEADER];
        let got = read_full(file, at, &mut head)?;
        let found =
            Head::decode(&head[..got]).filter(|head| at + (HEADER as u64) + u64::from(head.stored_length) <= size);
        let payload = match found {
            Some(head) => {
                let mut stored = vec![0u8; head.stored_length as usize];
                read_full(file, at + HEADER as u64, &mut stored)?;
                block::payload(head, &stored).map(|payload| (head, payload))
            }
            None => None,
        };
        if let Some((head, payload)) = payload {
            whole_before = true;
            replay.blocks += 1;
            replay.finished |= head.kind == Kind::FINISHED;
            deliver_block(head, &payload, sink);
            at += HEADER as u64 + u64::from(head.stored_length);
            continue;
        }
        if std::mem::replace(&mut whole_before, false) {
            replay.damaged += 1;
        }
        at = next_magic(file, at + 1, size)?;
    }
    Ok(())
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
    let words: Vec<u64> = payload
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect();
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
            records(slots).for_each(|fact| sink.take(process, &Raw::Fact(fact)));
        }
        Kind::CALIBRATION => {
            let mut sample = [0; clock::WORDS];
            sample.iter_mut().zip(&words).for_each(|(to, word)| *to = *word);
            sink.take(process, &Raw::Calibration(&sample));
        }
        Kind::RECORDS => {
            let slots = words.as_chunks::<SLOT_WORDS>().0;
            records(slots).for_each(|record| sink.take(process, &Raw::Record(thread, record)));
        }
        Kind::LOST => sink.take(process, &Raw::Lost(thread, word(0))),
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
