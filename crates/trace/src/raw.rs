//! What sources deliver and recordings keep: the collector's records as they are, by process.
//!
//! A live session and a recording speak this one language; a [`crate::decode::Decoder`] turns it into items, a
//! recorder writes it down.

use crate::gauge::metric::Sample;
use crate::item::{Exit, Health, Nanos, ProcessId};
use roctop_ring::layout::{Header, clock};
pub use roctop_ring::reader::each;
use roctop_ring::reader::{OpenWork, Thread};
use roctop_ring::record::{CONTINUATION, Head, Slot};

/// One thing that a source delivers about a process.
#[derive(Debug)]
pub enum Raw<'a> {
    /// The process appeared; first of all about it.
    Header(&'a Header),
    /// A text got an id.
    Text(u32, &'a [u8]),
    /// A fact's slots.
    Fact(&'a [Slot]),
    /// A calibration sample.
    Calibration(&'a [u64; clock::WORDS]),
    /// A record's slots.
    Record(Thread, &'a [Slot]),
    /// Records of a thread that were overwritten.
    Lost(Thread, u64),
    /// The process-wide counters as they stand, see `roctop_ring::layout::counter`.
    Counters(&'a [u64]),
    /// What is open now.
    Open(&'a OpenWork),
    /// The process ended.
    Ended(Exit, Nanos),
    /// Bytes that the program wrote to its terminal.
    Output(&'a [u8]),
    /// What the driver told of the GPUs.
    Gauges(&'a [Sample]),
    /// It is this late, CLOCK_BOOTTIME.
    Now(Nanos),
}

/// Receives what a source delivers.
pub trait RawSink {
    /// Takes one thing. `process` is dense in order of appearance; 0 also for what belongs to none.
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>);
    /// Takes records of one thread that lie one after the other: as if each came alone.
    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        for record in each(slots) {
            self.take(process, &Raw::Record(thread, record));
        }
    }
    /// Room of the sink's own for so many slots, see [`roctop_ring::reader::Sink::room`].
    fn room(&mut self, _slots: usize) -> Option<&mut [Slot]> {
        None
    }
    /// Takes the first so many slots of the room as [`RawSink::records`] takes slots.
    fn keep(&mut self, _process: ProcessId, _thread: Thread, _slots: usize) {}
}

/// Two sinks that both get everything.
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

/// Slots that an empty batch has room for at most: 4 MiB.
const KEPT_SLOTS: usize = 1 << 16;

/// What one poll delivered, kept to be delivered again by another thread.
#[derive(Default)]
pub struct Batch {
    parts: Vec<(ProcessId, Part)>,
    /// Room for slots of records, so many of which are used.
    room: Vec<Slot>,
    used: usize,
    /// How processes do: for the screen alone, and no record.
    pub health: Vec<Health>,
    /// The report on programs without a collector, when it is new; empty when it is withdrawn.
    pub missed: Option<String>,
}

enum Part {
    Header(Box<Header>),
    Text(u32, Vec<u8>),
    Fact(Vec<Slot>),
    Calibration([u64; clock::WORDS]),
    /// Records of one thread, one after the other; their slots are the next so many of the batch.
    Records(Thread, usize),
    Lost(Thread, u64),
    Counters(Vec<u64>),
    Open(Box<OpenWork>),
    Ended(Exit, Nanos),
    Output(Vec<u8>),
    Gauges(Vec<Sample>),
    Now(Nanos),
}

impl Part {
    /// Bytes beside its place in the list, about; of those only that can be many.
    fn size(&self) -> usize {
        match self {
            Self::Text(_, bytes) | Self::Output(bytes) => bytes.len(),
            Self::Fact(slots) => size_of_val(slots.as_slice()),
            Self::Gauges(samples) => size_of_val(samples.as_slice()),
            _ => 0,
        }
    }
}

impl Batch {
    /// With room for so many slots.
    pub fn with_room(slots: usize) -> Self {
        Self {
            room: vec![Slot::default(); slots],
            ..Self::default()
        }
    }

    /// Bytes that it takes, about.
    pub fn size(&self) -> usize {
        let parts: usize = self
            .parts
            .iter()
            .map(|(_, part)| size_of::<(ProcessId, Part)>() + part.size())
            .sum();
        self.used * size_of::<Slot>() + parts
    }

    /// Slots of records in it.
    pub const fn slots(&self) -> usize {
        self.used
    }

    /// Whether it has room of its own for records: there is something to be saved by filling it again.
    pub const fn has_room(&self) -> bool {
        !self.room.is_empty()
    }

    /// Forgets what is in it and keeps its room, so that the next poll touches no new memory; of a great burst's not all.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.health.clear();
        self.missed = None;
        self.used = 0;
        self.room.truncate(KEPT_SLOTS);
        self.room.shrink_to(KEPT_SLOTS);
    }

    /// Delivers it, in the order in which it came.
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
                Part::Lost(thread, count) => sink.take(*process, &Raw::Lost(*thread, *count)),
                Part::Counters(words) => sink.take(*process, &Raw::Counters(words)),
                Part::Open(work) => sink.take(*process, &Raw::Open(work)),
                Part::Ended(exit, at) => sink.take(*process, &Raw::Ended(*exit, *at)),
                Part::Output(bytes) => sink.take(*process, &Raw::Output(bytes)),
                Part::Gauges(samples) => sink.take(*process, &Raw::Gauges(samples)),
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
            Raw::Lost(thread, count) => Part::Lost(*thread, *count),
            Raw::Counters(words) => Part::Counters(words.to_vec()),
            Raw::Open(work) => Part::Open(Box::new((*work).clone())),
            Raw::Ended(exit, at) => Part::Ended(*exit, *at),
            Raw::Output(bytes) => Part::Output(bytes.to_vec()),
            Raw::Gauges(samples) => Part::Gauges(samples.to_vec()),
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

/// Cuts a run of records in two: the first part has about `count` slots, and no record is in both.
pub fn split(slots: &[Slot], count: usize) -> (&[Slot], &[Slot]) {
    let mut at = count.min(slots.len());
    while slots.get(at).is_some_and(|slot| Head(slot[0]).kind() == CONTINUATION) {
        at += 1;
    }
    slots.split_at(at)
}
