//! Flight files: dispatches in flight, stored outside the process, so that work completed just before a kill is found.
//!
//! One file for the slots of one queue, `<pid>-<start ticks>.<number>.flight` beside the ring files: a header page, a
//! record of [`SLOT_WORDS`] words per slot, then the 64-byte completion signals, into which the packet processor writes
//! begin and end. Nobody reads the file while its process is alive. Afterwards [`read`] returns submitted dispatches
//! that were never recorded.
//!
//! Excluded on purpose: the address of the memory in the process (the collector's business), any trust in the file.

#[cfg(not(loom))]
mod file;
#[cfg(not(loom))]
pub use file::{FlightFile, Reserved};

use crate::bytes::Bytes;
use crate::record::{CONTINUATION, Dispatch, Domain, Head, PAYLOAD_WORDS, Slot, flag};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::writer::Words;
use std::io;

/// First bytes of a flight file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ROCTOPF1");
/// File name extension of flight files.
pub const FLIGHT: &str = "flight";
/// Words of a slot: its [`State`], three reserved, the payload of its [`Dispatch`].
pub const SLOT_WORDS: usize = 16;
/// Words of a completion signal (`amd_signal_t`, amd_hsa_signal.h of HSA 5.2 to 7.2).
pub const SIGNAL_WORDS: usize = 8;
/// Bytes of the header page.
pub const PAGE: usize = 4096;
/// Maximum number of slots that a reader accepts.
pub const MAX_SLOTS: u64 = 1 << 20;
const PAYLOAD: usize = SLOT_WORDS - 2 * PAYLOAD_WORDS;

/// Word offsets in the header page.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// Slots of the file.
    pub const SLOTS: usize = 1;
    /// Process id.
    pub const PID: usize = 2;
    /// Start time of the process, clock ticks since boot.
    pub const START: usize = 3;
    /// Index of the newest point plus one; 0: no point yet; `ESTIMATED` (3) and `ESTIMATED_AND_ONE` (4): estimated points.
    pub const NEWEST: usize = 8;
    /// The first point of the agent's clock: ticks, HSA ns.
    pub const FIRST: usize = 10;
    /// Two more points, written alternately.
    pub const POINTS: usize = 12;
    /// Number of words in use.
    pub const WORDS: usize = 16;
}

/// Word offsets in a signal.
mod signal {
    pub(super) const VALUE: usize = 1;
    pub(super) const START: usize = 4;
    pub(super) const END: usize = 5;
}

/// Content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum State {
    /// A dispatch whose times will be in the slot's own signal.
    Own = 1,
    /// A dispatch whose times will be in a signal of the program.
    Foreign = 2,
    /// A dispatch that is being recorded.
    Taking = 3,
}

impl State {
    fn of(word: u64) -> Option<Self> {
        match word & 3 {
            1 => Some(Self::Own),
            2 => Some(Self::Foreign),
            3 => Some(Self::Taking),
            _ => None,
        }
    }
}

/// The writer's view of a slot's words.
#[derive(Clone, Copy)]
pub struct SlotWriter<'m>(&'m [AtomicU64; SLOT_WORDS]);

impl<'m> SlotWriter<'m> {
    /// Slot `index` of `words`.
    #[inline]
    pub fn new(words: Words<'m>, index: usize) -> Option<Self> {
        words.get(index * SLOT_WORDS..)?.first_chunk().map(Self)
    }

    /// Stores a dispatch; readers ignore it until [`publish`](Self::publish).
    #[inline]
    pub fn keep(&self, record: &Dispatch) {
        for (to, word) in self.0[PAYLOAD..].iter().zip(record.payload().as_flattened()) {
            to.store(*word, Ordering::Relaxed);
        }
    }

    /// Publishes the dispatch, before the packet processor sees it.
    #[inline]
    pub fn publish(&self, sequence: u64, state: State) {
        // Release: a reader that sees the state sees the record.
        self.0[0].store((sequence + 1) << 2 | state as u64, Ordering::Release);
    }

    /// The stored dispatch.
    #[inline]
    pub fn kept(&self) -> Dispatch {
        let mut slots = [[0u64; 8]; 2];
        for (slot, words) in slots.iter_mut().zip(self.0[PAYLOAD..].chunks_exact(PAYLOAD_WORDS)) {
            for (to, word) in slot[1..].iter_mut().zip(words) {
                *to = word.load(Ordering::Relaxed);
            }
        }
        Dispatch::decode(&slots)
    }

    /// Marks the dispatch as being recorded; a reader searches the ring first.
    #[inline]
    pub fn take(&self) {
        let word = self.0[0].load(Ordering::Relaxed);
        self.0[0].store(word | State::Taking as u64, Ordering::Release);
    }

    /// Frees the slot after the record is written.
    #[inline]
    pub fn free(&self) {
        // Release: orders the record's head before this store.
        self.0[0].store(0, Ordering::Release);
    }
}

/// The points are estimates made before any work had times: the first point, and the first of the alternating two.
const ESTIMATED: u64 = 3;
/// As [`ESTIMATED`], while the second of the alternating two is a real point: one alone makes no line.
const ESTIMATED_AND_ONE: u64 = 4;

/// Stores two estimated points of the agent's clock, the earlier one first, for work that is never seen complete. Later
/// estimates replace them until the first [`keep_point`]; its second one replaces them for good.
pub fn keep_reckoned(words: Words<'_>, points: [[u64; 2]; 2]) {
    let Some(words) = words.first_chunk::<{ header::WORDS }>() else {
        return;
    };
    if !is_reckoned(words) {
        return;
    }
    words[header::NEWEST].store(0, Ordering::Relaxed);
    // Release: a reader that finds half of a point below also finds that there is none.
    fence(Ordering::Release);
    for (at, [ticks, nanoseconds]) in [header::FIRST, header::POINTS].into_iter().zip(points) {
        words[at].store(ticks, Ordering::Relaxed);
        words[at + 1].store(nanoseconds, Ordering::Relaxed);
    }
    // Release: a reader that finds the points announced finds them whole.
    words[header::NEWEST].store(ESTIMATED, Ordering::Release);
}

/// Whether all points of the agent's clock are estimates.
pub fn is_reckoned(words: Words<'_>) -> bool {
    let newest = words.get(header::NEWEST).map(|word| word.load(Ordering::Relaxed));
    matches!(newest, Some(0 | ESTIMATED))
}

/// Stores a point of the agent's clock: agent ticks and HSA ns. One writer at a time.
pub fn keep_point(words: Words<'_>, ticks: u64, nanoseconds: u64) {
    let Some(words) = words.first_chunk::<{ header::WORDS }>() else {
        return;
    };
    let mut newest = words[header::NEWEST].load(Ordering::Relaxed);
    let second = header::POINTS + 2;
    // The first point waits there for another one, and the estimates still serve.
    if newest == ESTIMATED || (newest == ESTIMATED_AND_ONE && words[second].load(Ordering::Relaxed) == ticks) {
        words[second].store(ticks, Ordering::Relaxed);
        words[second + 1].store(nanoseconds, Ordering::Relaxed);
        words[header::NEWEST].store(ESTIMATED_AND_ONE, Ordering::Release);
        return;
    }
    let mut first = [ticks, nanoseconds];
    if newest == ESTIMATED_AND_ONE {
        first = [second, second + 1].map(|at| words[at].load(Ordering::Relaxed));
        newest = 0;
        words[header::NEWEST].store(newest, Ordering::Relaxed);
        // Release: a reader that finds half of a point below also finds that there is none.
        fence(Ordering::Release);
    }
    if newest == 0 {
        words[header::FIRST].store(first[0], Ordering::Relaxed);
        words[header::FIRST + 1].store(first[1], Ordering::Relaxed);
    }
    let place = (newest & 1) as usize;
    let at = header::POINTS + 2 * place;
    words[at].store(ticks, Ordering::Relaxed);
    words[at + 1].store(nanoseconds, Ordering::Relaxed);
    // Release: a reader that finds this point announced finds it whole.
    words[header::NEWEST].store(place as u64 + 1, Ordering::Release);
}

/// The agent's clock as a line through two points.
#[derive(Clone, Copy, Debug)]
struct Line {
    first: [u64; 2],
    last: [u64; 2],
}

/// Times further than this from the points are invalid, ns: ten days.
const MAX_TIME_DISTANCE: u64 = 10 * 86_400 * 1_000_000_000;

impl Line {
    /// Whether an HSA time is plausible for work left in flight.
    fn is_plausible(self, time: u64) -> bool {
        let (from, to) = (
            self.first[1].saturating_sub(MAX_TIME_DISTANCE),
            self.last[1].saturating_add(MAX_TIME_DISTANCE),
        );
        (from..=to).contains(&time)
    }

    /// HSA ns of an agent tick; 0 if the points are too close together or the result is no valid time.
    fn at(self, tick: u64) -> u64 {
        let run = i128::from(self.last[0]) - i128::from(self.first[0]);
        let rise = i128::from(self.last[1]) - i128::from(self.first[1]);
        if run <= 0 || rise <= 0 || tick == 0 {
            return 0;
        }
        let offset = i128::from(tick) - i128::from(self.last[0]);
        let since = offset.checked_mul(rise).map(|product| product / run);
        let time = since.and_then(|since| since.checked_add(i128::from(self.last[1])));
        time.and_then(|time| u64::try_from(time).ok()).unwrap_or(0)
    }
}

/// A dispatch that was submitted and perhaps never recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Ordinal in its queue, from 0.
    pub sequence: u64,
    /// State of its slot.
    pub state: State,
    /// The GPU completed it.
    pub is_complete: bool,
    /// Its times are implausible for the agent's clock, and therefore invalid.
    pub is_doubtful: bool,
    /// Its record; begin and end in HSA ns, 0 if unknown.
    pub record: Dispatch,
}

impl Left {
    /// The record's slots, as in a ring.
    pub fn slots(&self) -> [Slot; 2] {
        let flags = match self.record {
            Dispatch { end: 0, .. } => flag::UNTIMED,
            _ if self.is_doubtful => flag::UNTIMED | flag::SUSPECT_TIME,
            Dispatch { begin, end, .. } if begin > end => flag::SUSPECT_TIME,
            _ => 0,
        } | self.record.site_flag();
        let [first, second] = self.record.payload();
        let slot = |head: Head, words: [u64; PAYLOAD_WORDS]| {
            let [a, b, c, d, e, f] = words;
            [head.0, a, b, c, d, e, f, 0]
        };
        [
            slot(Dispatch::head(flags, Domain::NONE), first),
            slot(Head::new(CONTINUATION, 0, 1, 0), second),
        ]
    }
}

/// Dispatches that an ended process left in flight, oldest first.
///
/// Errors: the file cannot be read, or is no flight file.
pub fn read(bytes: &impl Bytes) -> io::Result<Vec<Left>> {
    let head = words(bytes, 0, header::WORDS)?;
    let slots = head.get(header::SLOTS).copied().unwrap_or(0);
    if head.first() != Some(&MAGIC) || slots > MAX_SLOTS || head.len() < header::WORDS {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a flight file"));
    }
    let newest = match head[header::NEWEST] {
        2 => header::POINTS + 2,
        _ => header::POINTS,
    };
    let point = |at: usize| [head[at], head[at + 1]];
    let line = Line {
        first: point(header::FIRST),
        // Two equal points define no line.
        last: point(if head[header::NEWEST] == 0 {
            header::FIRST
        } else {
            newest
        }),
    };
    let records = words(bytes, PAGE as u64, slots as usize * SLOT_WORDS)?;
    let signals_at = PAGE as u64 + slots * (SLOT_WORDS * 8) as u64;
    let signals = words(bytes, signals_at, slots as usize * SIGNAL_WORDS)?;
    let pairs = records.chunks_exact(SLOT_WORDS).zip(signals.chunks_exact(SIGNAL_WORDS));
    let mut left: Vec<Left> = pairs.filter_map(|(slot, signal)| one(slot, signal, line)).collect();
    left.sort_by_key(|left| left.sequence);
    Ok(left)
}

fn one(slot: &[u64], signal: &[u64], line: Line) -> Option<Left> {
    let state = State::of(slot[0])?;
    let sequence = (slot[0] >> 2).checked_sub(1)?;
    let mut halves = [[0u64; 8]; 2];
    for (half, words) in halves.iter_mut().zip(slot[PAYLOAD..].chunks_exact(PAYLOAD_WORDS)) {
        half[1..7].copy_from_slice(words);
    }
    let mut record = Dispatch::decode(&halves);
    let is_own = state != State::Foreign && signal[signal::END] != 0;
    let is_complete = state == State::Taking || (is_own && signal[signal::VALUE].cast_signed() < 1);
    if is_complete && is_own {
        (record.begin, record.end) = (line.at(signal[signal::START]), line.at(signal[signal::END]));
    }
    let is_doubtful = [record.begin, record.end]
        .iter()
        .any(|time| *time != 0 && !line.is_plausible(*time));
    Some(Left {
        sequence,
        state,
        is_complete,
        is_doubtful,
        record,
    })
}

fn words(bytes: &impl Bytes, offset: u64, count: usize) -> io::Result<Vec<u64>> {
    let room = bytes.size()?.saturating_sub(offset) / 8;
    let mut raw = vec![0u8; 8 * count.min(usize::try_from(room).unwrap_or(usize::MAX))];
    let mut got = 0;
    while got < raw.len() {
        match bytes.read_at(offset + got as u64, &mut raw[got..])? {
            0 => break,
            more => got += more,
        }
    }
    Ok(raw[..got]
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect())
}
