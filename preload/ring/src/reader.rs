//! The reader's side: `pread` into private copies, so that nothing a writer does can be more than a wrong number.
//!
//! One [`Reader`] a file. [`Reader::poll`] hands everything new to a [`Sink`]: strings and facts before the records that
//! name them. A record is accepted only when the head read *after* the data says that its slots cannot have been
//! overwritten meanwhile. What was skipped is counted to the record by the ordinals in the headers: seen + lost =
//! written, by ring, always.
//!
//! What one poll reads is bounded whatever the file says ([`POLL_SLOTS`], [`POLL_STRINGS`]); a poll that stopped at the
//! bound says so in [`Progress::more`].
//!
//! The words of one `pread` come in no order. Whatever must be read after something else is read by another `pread`,
//! with an acquire fence between.
//!
//! Absent on purpose: mapping, `unsafe`, trust.

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

/// Which thread wrote a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Entry of the directory.
    pub index: u32,
    /// Kernel thread id; 0 when its start was lost and the entry has another owner by now. Losses in which the entry
    /// went from one thread to the next have 0 too.
    pub tid: u32,
}

/// Receives what a poll found, in an order in which every id is known before it is used.
pub trait Sink {
    /// A text got an id. Mostly in order of the ids; one that was being written comes in a later poll.
    fn string(&mut self, id: u32, text: &[u8]);
    /// A fact.
    fn fact(&mut self, slots: &[Slot]);
    /// A calibration sample, words as in [`clock`].
    fn calibration(&mut self, sample: &[u64; clock::WORDS]);
    /// A record of a thread.
    fn record(&mut self, thread: Thread, slots: &[Slot]);
    /// Records of a thread that lie one after the other, each of them whole.
    fn records(&mut self, thread: Thread, slots: &[Slot]) {
        for slots in each(slots) {
            self.record(thread, slots);
        }
    }
    /// Records of a thread that were overwritten before they could be read.
    fn lost(&mut self, thread: Thread, records: u64);
    /// Room of the sink's own for at least so many slots, so that records need not be copied twice; none when it has none.
    /// The same until some of it is kept.
    fn room(&mut self, _slots: usize) -> Option<&mut [Slot]> {
        None
    }
    /// The first so many slots of the room are records of a thread that lie one after the other, each of them whole: what
    /// [`Sink::records`] says where there is no room.
    fn keep(&mut self, _thread: Thread, _slots: usize) {}
}

/// Cuts a run of slots into its records, as their heads say. A last record that is not whole is left out.
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
    /// Records that were written. Above `seen + lost` by what was not looked at yet; equal when the writer has ended
    /// and was polled to the end.
    pub written: u64,
}

/// What one poll did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Records handed over.
    pub records: u64,
    /// Records found lost.
    pub lost: u64,
    /// The fullest ring, in 1/1000 of its size, at the time of the poll.
    pub fill: u32,
    /// The poll stopped at its bound: poll again for the rest.
    pub more: bool,
}

/// Is the writer still there?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The writer may still be writing.
    No,
    /// The writer is gone: what is not committed never will be.
    Yes,
}

/// Exact count and time of an operation, from the writer's own totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationTotal {
    /// Domain of the operation.
    pub domain: Domain,
    /// Operation.
    pub op: u16,
    /// Calls that returned.
    pub calls: u64,
    /// Time in them, ticks.
    pub ticks: u64,
}

/// A reader of one ring file.
pub struct Reader<B> {
    bytes: B,
    header: Header,
    threads: Vec<Cursor>,
    /// Slots that the rings of `threads` take together; more than the region has is a lie.
    ring_slots: u64,
    /// Thread to begin the next poll with.
    turn: usize,
    facts: u64,
    /// Fact slots before `facts` that were not committed when they were passed.
    fact_holes: Vec<u64>,
    strings: u64,
    /// Strings before `strings` that were not committed when they were passed.
    string_holes: Vec<u64>,
    /// Bytes of text that the region can still hold: texts do not overlap.
    text_left: u64,
    calibrations: [u64; clock::SAMPLES],
    /// Room for what is copied from a ring.
    buffer: Vec<Slot>,
}

/// The most slots (of rings, or of facts) that one poll reads: 32 MiB, so that who keeps them can say when it is enough.
pub const POLL_SLOTS: u64 = 1 << 19;

impl<B: Bytes> Reader<B> {
    /// Checks the header and the directory of a ring file.
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

    /// Who wrote the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where the bytes come from.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }

    /// Hands everything new to `sink`. When [`Progress::more`] is set it stopped at its bound and wants another call.
    pub fn poll(&mut self, ended: Ended, sink: &mut dyn Sink) -> io::Result<Progress> {
        let mut progress = Progress::default();
        // Heads first: what they announce was named by strings and facts before.
        let heads = self.heads()?;
        // Acquire: pairs with the release store of head; what was stored before it is seen from here on.
        fence(Ordering::Acquire);
        // How many facts there are before the strings: a fact is reserved after its texts were stored, so none that is
        // handed out here has a text that this poll did not see.
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

    /// How full the fullest ring may be, in 1/1000 of its size: at most a milestone more than it is, since that is what is
    /// looked at; files without milestones are looked at ring by ring. Nothing is read from the rings.
    pub fn fill(&mut self) -> io::Result<u32> {
        if self.header.region(Region::Milestones).length == 0 {
            return self.exact_fill();
        }
        let milestones = self.region_words(Region::Milestones, 0, self.threads.len())?;
        let mut fullest = 0;
        for (cursor, passed) in self.threads.iter().zip(milestones) {
            if cursor.ring_slots == 0 && passed != 0 && !cursor.damaged {
                // Somebody came and is well on the way.
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
            // What was announced by head counts as written, even when the writer died before it counted it.
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

    /// Sum over all threads of a word of their directory entries, such as [`entry::REENTRANT`].
    pub fn entry_sum(&self, at: usize) -> io::Result<u64> {
        let mut sum = 0u64;
        for index in 0..self.threads.len() {
            let word = self.region_words(Region::Directory, index * entry::WORDS + at, 1)?;
            sum = sum.wrapping_add(word.first().copied().unwrap_or(0));
        }
        Ok(sum)
    }

    /// Numbers of the dispatches whose records are the newest of their rings: what a writer that was killed wrote last.
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

    /// Exact totals of all operations over all threads, kept by the writer: right even when records were lost.
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
