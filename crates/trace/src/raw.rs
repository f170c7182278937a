//! Source output: the collector's unchanged records, by process.
//!
//! Live sessions and recordings deliver this type. A [`crate::decode::Decoder`] turns it into items, a recorder writes
//! it to files.

use crate::binding::Binding;
use crate::decode::Plain;
use crate::gauge::metric::Sample;
use crate::item::{Exit, Health, LossReason, Nanos, ProcessId};
use crate::site::SiteFact;
use crate::thread_reading::ThreadReading;
use roctop_ring::layout::{Header, clock};
pub use roctop_ring::reader::each;
use roctop_ring::reader::{OpenWork, Thread};
use roctop_ring::record::{CONTINUATION, Head, Slot};

/// One delivery of a source about a process.
#[derive(Debug)]
pub enum Raw<'a> {
    /// A process appeared; first delivery of each process.
    Header(&'a Header),
    /// A string id and its bytes.
    Text(u32, &'a [u8]),
    /// Slots of a fact.
    Fact(&'a [Slot]),
    /// A calibration sample.
    Calibration(&'a [u64; clock::WORDS]),
    /// Slots of a record.
    Record(Thread, &'a [Slot]),
    /// Number of records of a thread that are missing for this reason.
    Lost(Thread, LossReason, u64),
    /// Current process-wide counters, see `roctop_ring::layout::counter`.
    Counters(&'a [u64]),
    /// Work that is open now.
    Open(&'a OpenWork),
    /// The process ended.
    Ended(Exit, Nanos),
    /// Bytes that the program wrote to its terminal.
    Output(&'a [u8]),
    /// Driver readings of the GPUs.
    Gauges(&'a [Sample]),
    /// How long threads of the process had run.
    ThreadTimes(&'a [ThreadReading]),
    /// Where the process may run.
    Binding(&'a Binding),
    /// What was found out about call sites of the process.
    Sites(&'a [SiteFact]),
    /// Current time, CLOCK_BOOTTIME.
    Now(Nanos),
}

/// Receiver of a source's deliveries.
pub trait RawSink {
    /// Receives one delivery. `process` is dense in order of appearance; 0 also for deliveries without a process.
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>);
    /// Receives consecutive records of one thread. The default passes each to [`RawSink::take`].
    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        for record in each(slots) {
            self.take(process, &Raw::Record(thread, record));
        }
    }
    /// Receives consecutive records of one thread that a fork of the sink's decoder has decoded. Only a sink that gave such
    /// forks to the source receives them.
    fn plain(&mut self, _process: ProcessId, _thread: Thread, _plain: Plain) {}
    /// Buffer of the sink for the next `slots` slots, see [`roctop_ring::reader::Sink::room`].
    fn room(&mut self, _slots: usize) -> Option<&mut [Slot]> {
        None
    }
    /// Commits the first `slots` slots of the buffer as if passed to [`RawSink::records`].
    fn keep(&mut self, _process: ProcessId, _thread: Thread, _slots: usize) {}
}

/// A sink that passes everything to two others.
pub struct Tee<'a>(pub &'a mut dyn RawSink, pub &'a mut dyn RawSink);

impl RawSink for Tee<'_> {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.0.take(process, raw);
        self.1.take(process, raw);
    }
    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        self.0.records(process, thread, slots);
        self.1.records(process, thread, slots);
    }
}

/// Maximum number of slots that an empty batch keeps allocated: 4 MiB.
const KEPT_SLOTS: usize = 1 << 16;

/// Output of one poll, buffered for another thread.
#[derive(Default)]
pub struct Batch {
    parts: Vec<(ProcessId, Part)>,
    /// Buffer for slots of records, of which `used` are in use.
    room: Vec<Slot>,
    used: usize,
    /// Health of processes, for the screen only; not a record.
    pub health: Vec<Health>,
    /// Report on programs without a collector, if it changed; empty text withdraws it.
    pub missed: Option<String>,
}

enum Part {
    Header(Box<Header>),
    Text(u32, Vec<u8>),
    Fact(Vec<Slot>),
    Calibration([u64; clock::WORDS]),
    /// Records of one thread; their slots are the next ones in the buffer.
    Records(Thread, usize),
    Lost(Thread, LossReason, u64),
    Counters(Vec<u64>),
    Open(Box<OpenWork>),
    Ended(Exit, Nanos),
    Output(Vec<u8>),
    Gauges(Vec<Sample>),
    ThreadTimes(Vec<ThreadReading>),
    Binding(Box<Binding>),
    Sites(Vec<SiteFact>),
    Now(Nanos),
}

impl Part {
    /// Approximate heap bytes, without small parts.
    fn size(&self) -> usize {
        match self {
            Self::Text(_, bytes) | Self::Output(bytes) => bytes.len(),
            Self::Fact(slots) => size_of_val(slots.as_slice()),
            Self::Gauges(samples) => size_of_val(samples.as_slice()),
            Self::ThreadTimes(readings) => size_of_val(readings.as_slice()),
            Self::Sites(facts) => size_of_val(facts.as_slice()),
            _ => 0,
        }
    }
}

impl Batch {
    /// A batch with a buffer for `slots` slots.
    pub fn with_room(slots: usize) -> Self {
        Self {
            room: vec![Slot::default(); slots],
            ..Self::default()
        }
    }

    /// Approximate bytes used.
    pub fn size(&self) -> usize {
        let parts: usize = self
            .parts
            .iter()
            .map(|(_, part)| size_of::<(ProcessId, Part)>() + part.size())
            .sum();
        self.used * size_of::<Slot>() + parts
    }

    /// Number of slots of records.
    pub const fn slots(&self) -> usize {
        self.used
    }

    /// Whether the batch has a slot buffer, so that reusing it saves an allocation.
    pub const fn has_room(&self) -> bool {
        !self.room.is_empty()
    }

    /// Empties the batch and keeps its buffer up to [`KEPT_SLOTS`], so that the next poll touches no new memory.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.health.clear();
        self.missed = None;
        self.used = 0;
        self.room.truncate(KEPT_SLOTS);
        self.room.shrink_to(KEPT_SLOTS);
    }

    /// Delivers the parts in their original order.
    pub fn deliver(&self, sink: &mut dyn RawSink) {
        let mut rest = &self.room[..self.used];
        for (process, part) in &self.parts {
            match part {
                Part::Header(header) => sink.take(*process, &Raw::Header(header)),
                Part::Text(id, text) => sink.take(*process, &Raw::Text(*id, text)),
                Part::Fact(slots) => sink.take(*process, &Raw::Fact(slots)),
                Part::Calibration(words) => sink.take(*process, &Raw::Calibration(words)),
                Part::Records(thread, count) => {
                    let (these, others) = rest.split_at((*count).min(rest.len()));
                    rest = others;
                    sink.records(*process, *thread, these);
                }
                Part::Lost(thread, reason, count) => sink.take(*process, &Raw::Lost(*thread, *reason, *count)),
                Part::Counters(words) => sink.take(*process, &Raw::Counters(words)),
                Part::Open(work) => sink.take(*process, &Raw::Open(work)),
                Part::Ended(exit, at) => sink.take(*process, &Raw::Ended(*exit, *at)),
                Part::Output(bytes) => sink.take(*process, &Raw::Output(bytes)),
                Part::Gauges(samples) => sink.take(*process, &Raw::Gauges(samples)),
                Part::ThreadTimes(readings) => sink.take(*process, &Raw::ThreadTimes(readings)),
                Part::Binding(binding) => sink.take(*process, &Raw::Binding(binding)),
                Part::Sites(facts) => sink.take(*process, &Raw::Sites(facts)),
                Part::Now(at) => sink.take(*process, &Raw::Now(*at)),
            }
        }
    }
}

impl RawSink for Batch {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        let part = match raw {
            Raw::Record(thread, slots) => return self.records(process, *thread, slots),
            Raw::Header(header) => Part::Header(Box::new((*header).clone())),
            Raw::Text(id, text) => Part::Text(*id, text.to_vec()),
            Raw::Fact(slots) => Part::Fact(slots.to_vec()),
            Raw::Calibration(words) => Part::Calibration(**words),
            Raw::Lost(thread, reason, count) => Part::Lost(*thread, *reason, *count),
            Raw::Counters(words) => Part::Counters(words.to_vec()),
            Raw::Open(work) => Part::Open(Box::new((*work).clone())),
            Raw::Ended(exit, at) => Part::Ended(*exit, *at),
            Raw::Output(bytes) => Part::Output(bytes.to_vec()),
            Raw::Gauges(samples) => Part::Gauges(samples.to_vec()),
            Raw::ThreadTimes(readings) => Part::ThreadTimes(readings.to_vec()),
            Raw::Binding(binding) => Part::Binding(Box::new((*binding).clone())),
            Raw::Sites(facts) => Part::Sites(facts.to_vec()),
            Raw::Now(at) => Part::Now(*at),
        };
        self.parts.push((process, part));
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        if let Some(room) = self.room(slots.len()) {
            room.copy_from_slice(slots);
            self.keep(process, thread, slots.len());
        }
    }

    fn room(&mut self, slots: usize) -> Option<&mut [Slot]> {
        let end = self.used + slots;
        if self.room.len() < end {
            self.room.resize(end.max(2 * self.room.len()), Slot::default());
        }
        Some(&mut self.room[self.used..end])
    }

    fn keep(&mut self, process: ProcessId, thread: Thread, slots: usize) {
        self.used += slots;
        if let Some((last, Part::Records(owner, count))) = self.parts.last_mut()
            && *last == process
            && *owner == thread
        {
            *count += slots;
        } else {
            self.parts.push((process, Part::Records(thread, slots)));
        }
    }
}

/// Splits a run of records at a record boundary near `count` slots.
pub fn split(slots: &[Slot], count: usize) -> (&[Slot], &[Slot]) {
    let mut at = count.min(slots.len());
    while slots.get(at).is_some_and(|slot| Head(slot[0]).kind() == CONTINUATION) {
        at += 1;
    }
    slots.split_at(at)
}
