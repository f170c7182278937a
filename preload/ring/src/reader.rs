//! The reader's side: `pread` into private copies, so that a faulty writer causes wrong numbers at worst.
//!
//! One [`Reader`] per file. [`Reader::poll`] hands everything new to a [`Sink`]: strings and facts before the records
//! that refer to them. A record is accepted only if the head read *after* the data proves that its slots were not
//! overwritten in between. Skipped records are counted exactly, by the ordinals in the headers: seen + lost = written,
//! by ring, always.
//!
//! One poll reads a bounded amount, whatever the file contains ([`POLL_SLOTS`], [`POLL_STRINGS`]); [`Progress::more`]
//! is set if it stopped at the bound.
//!
//! The words of one `pread` are read in no defined order. A word that must be read after another needs a second
//! `pread`, with an acquire fence between.
//!
//! Excluded on purpose: mapping, `unsafe`, trust.

mod facts;
mod open;
mod ring;
mod words;

pub use crate::bytes::Bytes;

pub use self::facts::{MAX_STRINGS, POLL_STRINGS};
pub use self::open::{InFlight, OpenCall, OpenRange, OpenWork, QueueWork};

use self::ring::{Cursor, MAX_HEAD};
use self::words::read_full;
use crate::layout::{Header, LayoutError, PAGE, Region, clock, counter, entry, milestone_every};
use crate::record::{self, Body, Dispatch, Domain, Head, MAX_SLOTS, SLOT_BYTES, Slot, TOTALS, totals_operation};
use crate::sync::{Ordering, fence};
use std::io;

/// The thread that wrote a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Index of its directory entry.
    pub index: u32,
    /// Kernel thread id; 0 if its start was lost and the entry has another owner now, or for losses that span two
    /// owners.
    pub tid: u32,
}

/// Receives the result of a poll, in an order in which every id is known before it is used.
pub trait Sink {
    /// A new string id. Mostly in ascending order; an id that was being written arrives in a later poll.
    fn string(&mut self, id: u32, text: &[u8]);
    /// A fact.
    fn fact(&mut self, slots: &[Slot]);
    /// A calibration sample, words as in [`clock`].
    fn calibration(&mut self, sample: &[u64; clock::WORDS]);
    /// A record of a thread.
    fn record(&mut self, thread: Thread, slots: &[Slot]);
    /// Consecutive whole records of a thread.
    fn records(&mut self, thread: Thread, slots: &[Slot]) {
        for slots in each(slots) {
            self.record(thread, slots);
        }
    }
    /// Number of a thread's records that were overwritten before they were read.
    fn lost(&mut self, thread: Thread, records: u64);
    /// The sink's own buffer for at least `_slots` slots, which saves a copy; `None` if it has none. The same buffer
    /// until some of it is kept.
    fn room(&mut self, _slots: usize) -> Option<&mut [Slot]> {
        None
    }
    /// The first `_slots` slots of the buffer are consecutive whole records of a thread: [`Sink::records`] for a sink
    /// with a buffer.
    fn keep(&mut self, _thread: Thread, _slots: usize) {}
}

/// Splits a run of slots into its records by their heads, without a last record that is incomplete.
pub fn each(slots: &[Slot]) -> impl Iterator<Item = &[Slot]> {
    let mut rest = slots;
    std::iter::from_fn(move || {
        let used = (Head(rest.first()?[0]).slots() as usize).clamp(1, MAX_SLOTS);
        let (record, others) = rest.split_at_checked(used)?;
        rest = others;
        Some(record)
    })
}

/// Exact accounting of one thread's ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Records accepted.
    pub seen: u64,
    /// Records that were overwritten before they were read.
    pub lost: u64,
    /// Records written. Exceeds `seen + lost` by those not yet read; equal after a full poll of a writer that has
    /// ended.
    pub written: u64,
}

/// Result of one poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Records delivered.
    pub records: u64,
    /// Records found lost.
    pub lost: u64,
    /// Fill level of the fullest ring at the time of the poll, in 1/1000 of its size.
    pub fill: u32,
    /// The poll stopped at its bound: call again for the rest.
    pub more: bool,
}

/// Whether the writer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The writer may still be writing.
    No,
    /// The writer has ended: uncommitted slots stay uncommitted.
    Yes,
}

/// Exact count and time of an operation, from the writer's own totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationTotal {
    /// Domain of the operation.
    pub domain: Domain,
    /// Operation.
    pub op: u16,
    /// Completed calls.
    pub calls: u64,
    /// Their total time, ticks.
    pub ticks: u64,
}

/// A reader of one ring file.
pub struct Reader<B> {
    bytes: B,
    header: Header,
    threads: Vec<Cursor>,
    /// Total slots of the rings in `threads`; a file that claims more than its region holds is corrupt.
    ring_slots: u64,
    /// First thread of the next poll.
    turn: usize,
    facts: u64,
    /// Fact slots below `facts` that were uncommitted when the reader passed them.
    fact_holes: Vec<u64>,
    strings: u64,
    /// Strings below `strings` that were uncommitted when the reader passed them.
    string_holes: Vec<u64>,
    /// Bytes of text that the region can still hold, because texts do not overlap.
    text_left: u64,
    calibrations: [u64; clock::SAMPLES],
    /// Buffer for slots copied from a ring.
    buffer: Vec<Slot>,
}

/// Maximum number of slots (of rings or facts) per poll: 32 MiB, so that a consumer can limit what it keeps.
pub const POLL_SLOTS: u64 = 1 << 19;

impl<B: Bytes> Reader<B> {
    /// Checks header and directory of a ring file.
    pub fn open(bytes: B) -> Result<Self, OpenError> {
        let size = bytes.size().map_err(OpenError::Io)?;
        let mut page = vec![0u8; PAGE];
        let got = read_full(&bytes, 0, &mut page).map_err(OpenError::Io)?;
        let header = Header::decode(&page[..got], size).map_err(OpenError::Layout)?;
        let entries =
            (header.region(Region::Directory).length as usize / (entry::WORDS * 8)).min(crate::layout::MAX_ENTRIES);
        let text_left = header.region(Region::StringBytes).length;
        Ok(Self {
            bytes,
            header,
            threads: vec![Cursor::default(); entries],
            ring_slots: 0,
            turn: 0,
            facts: 0,
            fact_holes: Vec::new(),
            strings: 0,
            string_holes: Vec::new(),
            text_left,
            calibrations: [0; clock::SAMPLES],
            buffer: Vec::new(),
        })
    }

    /// The file's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }

    /// Hands everything new to `sink`. If [`Progress::more`] is set, it stopped at its bound and must be called again.
    pub fn poll(&mut self, ended: Ended, sink: &mut dyn Sink) -> io::Result<Progress> {
        let mut progress = Progress::default();
        // Heads first: the strings and facts of every announced record were written before its head.
        let heads = self.heads()?;
        // Acquire: pairs with the release store of head; earlier stores are visible from here on.
        fence(Ordering::Acquire);
        // The number of facts is read before the strings: a fact is reserved after its texts are stored, so this poll
        // sees the texts of all facts that it delivers.
        let facts = self.region_words(Region::Counters, counter::FACTS_USED, 1)?;
        let facts = facts.first().copied().unwrap_or(0);
        // Acquire: pairs with the release of the reservation.
        fence(Ordering::Acquire);
        if !self.poll_strings(ended, sink)? || !self.poll_facts(ended, facts, sink)? {
            // Names first: the records wait in their rings.
            progress.more = true;
            return Ok(progress);
        }
        self.poll_clock(sink)?;
        let mut budget = POLL_SLOTS;
        for i in 0..heads.len() {
            let index = (self.turn + i) % heads.len();
            let Some(head) = heads[index] else { continue };
            self.poll_thread(index, head, sink, &mut progress, &mut budget)?;
            if progress.more {
                self.turn = index;
                break;
            }
        }
        Ok(progress)
    }

    /// Upper bound of the fullest ring's fill level, in 1/1000 of its size: exact to one milestone. A file without
    /// milestones is checked ring by ring. Reads no ring.
    pub fn fill(&mut self) -> io::Result<u32> {
        if self.header.region(Region::Milestones).length == 0 {
            return self.exact_fill();
        }
        let milestones = self.region_words(Region::Milestones, 0, self.threads.len())?;
        let mut fullest = 0;
        for (cursor, passed) in self.threads.iter().zip(milestones) {
            if cursor.ring_slots == 0 && passed != 0 && !cursor.damaged {
                // A new thread has already passed several milestones.
                return self.exact_fill();
            }
            let next = milestone_every(cursor.ring_slots);
            fullest = fullest.max(cursor.fill(passed.saturating_add(next - 1)));
        }
        Ok(fullest)
    }

    fn exact_fill(&mut self) -> io::Result<u32> {
        let heads = self.heads()?;
        let fills = self
            .threads
            .iter()
            .zip(heads)
            .map(|(cursor, head)| head.map_or(0, |head| cursor.fill(head)));
        Ok(fills.max().unwrap_or(0))
    }

    /// Accounting of every ring that was ever used.
    pub fn accounts(&self) -> Vec<(Thread, Account)> {
        let used = self
            .threads
            .iter()
            .enumerate()
            .filter(|(_, c)| c.records > 0 || c.ordinal > 0);
        used.map(|(index, c)| {
            let thread = Thread {
                index: index as u32,
                tid: c.tid,
            };
            // Announced records count as written, even if the writer died before it counted them.
            (
                thread,
                Account {
                    seen: c.seen,
                    lost: c.lost,
                    written: c.records.max(c.ordinal),
                },
            )
        })
        .collect()
    }

    /// Process-wide counters, by their offsets in [`counter`].
    pub fn counters(&self) -> io::Result<[u64; counter::WORDS]> {
        let mut words = [0; counter::WORDS];
        for (to, word) in words
            .iter_mut()
            .zip(self.region_words(Region::Counters, 0, counter::WORDS)?)
        {
            *to = word;
        }
        Ok(words)
    }

    /// Sum of one word of the directory entries over all threads, such as [`entry::REENTRANT`].
    pub fn entry_sum(&self, at: usize) -> io::Result<u64> {
        let mut sum = 0u64;
        for index in 0..self.threads.len() {
            let word = self.region_words(Region::Directory, index * entry::WORDS + at, 1)?;
            sum = sum.wrapping_add(word.first().copied().unwrap_or(0));
        }
        Ok(sum)
    }

    /// Dispatch numbers of the newest record of each ring: the last writes of a killed writer.
    pub fn newest_dispatches(&self) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        let mut buffer = Vec::new();
        for (index, cursor) in self.threads.iter().enumerate() {
            const SLOTS: u64 = Dispatch::SLOTS as u64;
            let Some(from) = cursor.next.checked_sub(SLOTS).filter(|_| cursor.ring_slots >= SLOTS) else {
                continue;
            };
            buffer.resize(Dispatch::SLOTS, Slot::default());
            let got = self.read_slots(index, from, &mut buffer)?;
            if let Some(slots) = buffer.get(..got)
                && let Body::Dispatch(dispatch) = record::decode(slots)
            {
                found.push(dispatch.dispatch_id);
            }
        }
        Ok(found)
    }

    /// The writer's own totals by operation, over all threads: exact even if records were lost.
    pub fn totals(&self) -> io::Result<Vec<OperationTotal>> {
        let mut sums = vec![(0u64, 0u64); TOTALS];
        for index in 0..self.threads.len() {
            let words = self.region_words(Region::Totals, index * 2 * TOTALS, 2 * TOTALS)?;
            for (sum, pair) in sums.iter_mut().zip(words.chunks_exact(2)) {
                sum.0 = sum.0.wrapping_add(pair[0]);
                sum.1 = sum.1.wrapping_add(pair[1]);
            }
        }
        let named = sums.into_iter().enumerate().filter(|(_, sum)| sum.0 > 0);
        Ok(named
            .filter_map(|(index, (calls, ticks))| {
                let (domain, op) = totals_operation(index)?;
                Some(OperationTotal {
                    domain,
                    op,
                    calls,
                    ticks,
                })
            })
            .collect())
    }

    fn heads(&mut self) -> io::Result<Vec<Option<u64>>> {
        let mut heads = Vec::with_capacity(self.threads.len());
        let rings = self.header.region(Region::Rings);
        for index in 0..self.threads.len() {
            let words: [u64; entry::RECORDS + 1] = self.some_words(Region::Directory, index * entry::WORDS)?;
            let cursor = &mut self.threads[index];
            if words[entry::STATE] == entry::FREE || cursor.damaged {
                heads.push(None);
                continue;
            }
            if words[entry::HEAD] > MAX_HEAD {
                cursor.damaged = true;
                heads.push(None);
                continue;
            }
            if cursor.ring_slots == 0 {
                let (offset, slots) = (words[entry::RING_OFFSET], words[entry::RING_SLOTS]);
                let end = slots
                    .checked_mul(SLOT_BYTES as u64)
                    .and_then(|length| offset.checked_add(length));
                let fits = offset >= rings.offset && end.is_some_and(|end| end <= rings.offset + rings.length);
                let room = (rings.length / SLOT_BYTES as u64).saturating_sub(self.ring_slots);
                if !fits || !slots.is_power_of_two() || slots < 2 * MAX_SLOTS as u64 || slots > room {
                    cursor.damaged = true;
                    heads.push(None);
                    continue;
                }
                (cursor.ring_offset, cursor.ring_slots) = (offset, slots);
                self.ring_slots += slots;
            }
            cursor.records = words[entry::RECORDS];
            heads.push(Some(words[entry::HEAD]));
        }
        Ok(heads)
    }

    fn poll_clock(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        let words = self.region_words(Region::Clock, 0, clock::WORDS * clock::SAMPLES)?;
        // Acquire: pairs with the release store of the even sequence.
        fence(Ordering::Acquire);
        for (place, sample) in words.as_chunks::<{ clock::WORDS }>().0.iter().enumerate() {
            let sequence = sample[clock::SEQUENCE];
            if sequence == 0 || sequence % 2 == 1 || sequence == self.calibrations[place] {
                continue;
            }
            let sample = self.region_words(Region::Clock, place * clock::WORDS, clock::WORDS)?;
            // Acquire: pairs with the release fence after the odd sequence.
            fence(Ordering::Acquire);
            let again = self.region_words(Region::Clock, place * clock::WORDS, 1)?;
            if let Some(sample) = sample.first_chunk::<{ clock::WORDS }>()
                && sample[clock::SEQUENCE] == sequence
                && again.first() == Some(&sequence)
            {
                self.calibrations[place] = sequence;
                sink.calibration(sample);
            }
        }
        Ok(())
    }
}

/// Why a ring file could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The file could not be read.
    Io(io::Error),
    /// The file is not a ring that this build reads.
    Layout(LayoutError),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Layout(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for OpenError {}
