//! Memory of dispatches in flight: the collector's signals, the data of each dispatch, and the calls of packets.
//!
//! Signals are plain memory visible to the host and all GPUs, in the packet processor's format: no object of the
//! run-time, no event, no interrupt. Their handles must never be passed to a function of the run-time.

#![expect(unsafe_code, reason = "zeroed memory")]

mod pages;
mod source;

use self::pages::{allocate, keep};
pub(crate) use self::pages::{fill, make_ready};
use self::source::Source;
use super::Hsa;
use super::agent::Agent;
use super::signal::Watch;
use crate::level::{self, Level, Reason};
use crate::prefetch;
use hsa_sys::abi::{Agent as AgentHandle, SignalHandle};
use roctop_ring::flight::{FlightFile, PAGE, SLOT_WORDS, SlotWriter, State, is_reckoned, keep_point, keep_reckoned};
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::Words;
use std::sync::{Mutex, PoisonError};

/// Call of a packet: correlation id, and word of an `Origin`.
struct Launch([AtomicU64; 2]);

/// A dispatch in flight: where its times are. Its data are in the slot's record.
#[repr(align(64))]
pub(crate) struct Side {
    pub(crate) watch: Watch,
    /// Index of its packet in the hardware queue.
    pub(crate) position: AtomicU64,
}

/// Memory of a queue's dispatches in flight: reused for later ones, never freed.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    agent: AgentHandle,
    source: &'static Source,
    file: Option<&'static FlightFile>,
    /// Points of the agent's clock, for a reader of the slots after a kill.
    points: Words<'static>,
    records: Words<'static>,
    sides: &'static [Side],
    launches: &'static [Launch],
}

/// A signal in pool memory that belongs to no slot.
#[derive(Clone, Copy)]
pub(crate) struct Spare(&'static Source);

impl Spare {
    /// Allocates it for an agent; `None` if the run-time has no such memory.
    pub(crate) fn allocate(hsa: &Hsa, agent: Agent) -> Option<Self> {
        let memory = allocate(hsa, agent.handle, 1)? as u64;
        let source: &'static Source = Box::leak(Box::new(Source::new(1, 0, memory)));
        source.choose(Level::Memory, false, || None).then_some(Self(source))
    }

    /// Prepares it and returns its handle.
    pub(crate) fn arm(self) -> Option<SignalHandle> {
        self.0.arm(|| None, 0)
    }
}

/// Minimum number of slots: what a small queue completes while the harvester sleeps, twice.
const FEWEST: usize = 1024;

/// A type whose initial value is all zeros: only atomics.
///
/// # Safety
/// Zeros are a value of the type.
unsafe trait Zero {}

// SAFETY: a number.
unsafe impl Zero for AtomicU64 {}
// SAFETY: atomics; a state of 0 is a free watch's.
unsafe impl Zero for Side {}
// SAFETY: atomics.
unsafe impl Zero for Launch {}

/// Permanent memory whose pages are allocated at first use: an allocator would write zeros to aligned memory.
fn zeroed<T: Zero>(count: usize) -> &'static [T] {
    const { assert!(align_of::<T>() <= PAGE) };
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: new memory, which touches nothing of the program's.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), count * size_of::<T>(), protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return &[];
    }
    // SAFETY: at a page boundary, of this many bytes, all zeros, which is a value of the type; never given back.
    unsafe { std::slice::from_raw_parts(address.cast(), count) }
}

/// Memory of destroyed queues, from this start of the run-time: not used by a later one or by a forked child.
static SPARE: Mutex<Vec<Slots>> = Mutex::new(Vec::new());

/// Memory of destroyed queues whose last dispatches never completed. The driver has taken these queues off the processor, but a late
/// write would look like the end of another queue's dispatch, so no queue gets this memory.
static LEFT: Mutex<Vec<Slots>> = Mutex::new(Vec::new());

/// End of the run-time: destroys signals that it made for queues that no longer exist.
pub(crate) fn discard_unused(hsa: &Hsa) {
    for slots in SPARE.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        slots.source.discard(hsa);
    }
    for slots in LEFT.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        slots.source.discard(hsa);
    }
}

/// Start of the run-time: drops memory of an earlier one.
pub(crate) fn forget_unused() {
    for unused in [&SPARE, &LEFT] {
        if let Ok(mut unused) = unused.try_lock() {
            unused.clear();
        }
    }
    pages::forget_all();
}

impl Slots {
    /// Slots for a queue of `size` packets.
    pub(crate) fn get(hsa: &Hsa, agent: Agent, size: usize) -> Self {
        let slots = 2 * size.next_power_of_two().max(FEWEST);
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = spare
            .iter()
            .position(|memory| memory.agent == agent.handle && memory.sides.len() == slots)
        {
            return spare.swap_remove(at);
        }
        drop(spare);
        let (source, file) = keep(hsa, agent.handle, slots);
        let (points, records) = if let Some(file) = file {
            (file.header(), file.records())
        } else {
            let records = zeroed(slots * SLOT_WORDS);
            pages::fill_later(records);
            (&[][..], records)
        };
        let sides: &'static [Side] = zeroed(slots);
        let launches: &'static [Launch] = zeroed(slots);
        pages::fill_later(sides);
        pages::fill_later(launches);
        Self {
            agent: agent.handle,
            source: Box::leak(Box::new(source)),
            file,
            points,
            records,
            sides,
            launches,
        }
    }

    /// Returns the memory when nothing of the queue is in flight, for use by another one.
    pub(crate) fn give_back(self) {
        SPARE.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Keeps the memory of a destroyed queue with incomplete dispatches from other queues.
    pub(crate) fn leave(self) {
        LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Number of slots.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.sides.len() as u64
    }

    /// Limit of sequence numbers that can have a slot, if those before `tail` are done: a flight file gets its pages
    /// gradually. Prepares those up to `last`. For the handler, under the queue's lock.
    #[cold]
    pub(crate) fn limit(&self, hsa: Option<&Hsa>, tail: u64, last: u64) -> u64 {
        let limit = tail + self.len();
        let Some(file) = self.file else { return limit };
        let is_ready = |ready: usize| ready as u64 >= self.len();
        if is_ready(file.ready()) {
            return limit;
        }
        if last > file.ready() as u64 && !file.make_ready(last.min(limit) as usize + pages::STEP_SLOTS) {
            self.leave_file(hsa, file);
        }
        if is_ready(file.ready()) {
            limit
        } else {
            limit.min(file.ready() as u64)
        }
    }

    /// The tmpfs is full: further data are kept in memory.
    fn leave_file(&self, hsa: Option<&Hsa>, file: &FlightFile) {
        level::step_down_because(Level::Memory, Reason::NoFile, 0, pages::NO_ROOM);
        let allocate = || allocate(hsa?, self.agent, self.sides.len());
        self.source.leave_file(allocate);
        // Without memory the queue continues with its current slots.
        let _ = file.detach_rest();
    }

    /// Number of calls that can be stored.
    pub(crate) fn launches(&self) -> u64 {
        self.launches.len() as u64
    }

    /// Side data of a sequence number.
    #[inline]
    pub(crate) fn side(&self, sequence: u64) -> Option<&'static Side> {
        self.sides.get(sequence as usize & (self.sides.len().wrapping_sub(1)))
    }

    /// Record of the dispatch with a sequence number.
    #[inline]
    pub(crate) fn record(&self, sequence: u64) -> Option<SlotWriter<'static>> {
        SlotWriter::new(self.records, sequence as usize & (self.sides.len().wrapping_sub(1)))
    }

    /// Stores a point of the agent's clock: agent ticks and HSA ns. Under the harvester's lock.
    pub(crate) fn keep_point(&self, ticks: u64, nanoseconds: u64) {
        keep_point(self.points, ticks, nanoseconds);
    }

    /// Whether no work of the queue was recorded yet, so that only estimated points of the agent's clock exist.
    pub(crate) fn is_reckoned(&self) -> bool {
        is_reckoned(self.points)
    }

    /// Stores two estimated points of the agent's clock. Under the harvester's lock.
    pub(crate) fn keep_reckoned(&self, points: [[u64; 2]; 2]) {
        keep_reckoned(self.points, points);
    }

    /// Prepares the collector's signal of a slot and returns its handle; `None` if the level of timing has none.
    #[inline]
    pub(crate) fn arm(&self, sequence: u64) -> Option<SignalHandle> {
        self.source
            .arm(super::hsa, sequence as usize & (self.sides.len().wrapping_sub(1)))
    }

    /// Selects this level's signals for the next slots. False if it has none here. Under the queue's lock.
    pub(crate) fn choose(&self, hsa: &Hsa, level: Level, has_files: bool) -> bool {
        let allocate = || allocate(hsa, self.agent, self.sides.len());
        self.source.choose(level, has_files, allocate)
    }

    /// Whether there is a flight file.
    pub(crate) fn has_file(&self) -> bool {
        self.source.has_file()
    }

    /// Whether the next signals are in the flight file.
    pub(crate) fn is_file(&self) -> bool {
        self.source.is_file()
    }

    /// Whether the flight file shows that the last slot's signal is complete, through a mapping other than the one that
    /// the processor writes to.
    pub(crate) fn is_last_complete_in_file(&self) -> bool {
        self.file.is_some_and(FlightFile::is_last_complete)
    }

    /// Location of the signals for a reader after a kill.
    #[inline]
    pub(crate) fn state(&self, is_own: bool) -> State {
        if is_own && self.source.is_file() {
            State::Own
        } else {
            State::Foreign
        }
    }

    /// Whether this is one of the signals that the next dispatches get.
    pub(crate) fn has(&self, handle: SignalHandle) -> bool {
        self.source.has(handle)
    }

    /// Stores which call reserved a packet.
    #[inline]
    pub(crate) fn note(&self, index: u64, correlation: u64, who: u64) {
        let at = index as usize & (self.launches.len().wrapping_sub(1));
        if let Some(Launch([first, second])) = self.launches.get(at) {
            second.store(who, Ordering::Relaxed);
            first.store(correlation, Ordering::Release);
        }
    }

    /// Takes the call of a packet: correlation id, word of an `Origin`. Under the queue's lock; the storing thread
    /// has written the packet since, and the next to store there waits for space.
    #[inline]
    pub(crate) fn noted(&self, index: u64) -> [u64; 2] {
        let at = index as usize & (self.launches.len().wrapping_sub(1));
        self.launches.get(at).map_or([0, 0], |Launch([first, second])| {
            let noted = [first.load(Ordering::Acquire), second.load(Ordering::Relaxed)];
            first.store(0, Ordering::Relaxed);
            second.store(0, Ordering::Relaxed);
            noted
        })
    }

    /// Prefetches the memory of a slot for writing.
    #[inline]
    pub(crate) fn prefetch(&self, sequence: u64) {
        let index = sequence as usize & (self.sides.len().wrapping_sub(1));
        self.source.prefetch(index);
        if let Some(side) = self.sides.get(index) {
            prefetch(side);
        }
        if let Some(words) = self
            .records
            .get(index * SLOT_WORDS..)
            .and_then(|words| words.first_chunk::<SLOT_WORDS>())
        {
            let [first, .., last] = words;
            prefetch(first);
            prefetch(last);
        }
    }
}
