//! The memory of dispatches in flight: signals of our own, what is known of each, and which call made which packet.
//!
//! Signals are plain memory that the host and all GPUs see, formatted as the packet processor expects them: no object of
//! the run-time, no event, no interrupt. Their handles must never be passed to a function of the run-time.

#![expect(unsafe_code, reason = "zeroed memory, prefetching")]

mod pages;
mod source;

use self::pages::{allocate, keep};
pub(crate) use self::pages::{fill, make_ready};
use self::source::Source;
use super::Hsa;
use super::agent::Agent;
use super::signal::Watch;
use crate::level::{self, Level, Reason};
use hsa_sys::abi::{Agent as AgentHandle, SignalHandle};
use roctop_ring::flight::{FlightFile, PAGE, SLOT_WORDS, SlotWriter, State, is_reckoned, keep_point, keep_reckoned};
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::Words;
use std::sync::{Mutex, PoisonError};

/// What a packet's maker noted: correlation id, and thread | stream << 32.
struct Launch([AtomicU64; 2]);

/// A dispatch in flight: how its times are found. What is known of it lies in the slot's record.
#[repr(align(64))]
pub(crate) struct Side {
    pub(crate) watch: Watch,
    /// Index of its packet in the hardware's queue.
    pub(crate) position: AtomicU64,
}

/// The memory of a queue's dispatches in flight: used again by a later one, never given back.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    agent: AgentHandle,
    source: &'static Source,
    file: Option<&'static FlightFile>,
    /// Points of the agent's clock, for whoever finds the slots after a kill.
    points: Words<'static>,
    records: Words<'static>,
    sides: &'static [Side],
    launches: &'static [Launch],
}

/// Half the slots of a small queue: what it completes while the harvester naps.
const FEWEST: usize = 1024;

/// What is all zeros when it is new: atomics alone.
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

/// Memory for ever, whose pages come when they are first used: an allocator would write zeros to what has to be aligned.
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
    // SAFETY: at a page boundary, of so many bytes, all zeros, which is a value of the type; never given back.
    unsafe { std::slice::from_raw_parts(address.cast(), count) }
}

/// Memory of queues that are gone, of this start of the run-time: a later one, or a forked child's, has none of it.
static SPARE: Mutex<Vec<Slots>> = Mutex::new(Vec::new());

/// The run-time ends: signals that it made for slots in no use go.
pub(crate) fn discard_spare(hsa: &Hsa) {
    for slots in SPARE.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        slots.source.discard(hsa);
    }
}

/// The run-time starts: what was kept of another one is not used any more.
pub(crate) fn forget_spare() {
    if let Ok(mut spare) = SPARE.try_lock() {
        spare.clear();
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

    /// Nothing of a queue is in flight any more: its memory may serve another one.
    pub(crate) fn give_back(self) {
        SPARE.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Dispatches that can be in flight.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.sides.len() as u64
    }

    /// Sequence numbers before this one can have a slot where those before `tail` are done with: a flight file gets its pages
    /// by and by. Makes those up to `last` ready. For the handler, under the queue's lock.
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

    /// The tmpfs is full: what follows is kept in memory.
    fn leave_file(&self, hsa: Option<&Hsa>, file: &FlightFile) {
        level::step_down_because(Level::Memory, Reason::NoFile, 0, pages::NO_ROOM);
        let allocate = || allocate(hsa?, self.agent, self.sides.len());
        self.source.leave_file(allocate);
        // Without memory the queue goes on with the slots that it has.
        let _ = file.detach_rest();
    }

    /// Notes that can be kept.
    pub(crate) fn launches(&self) -> u64 {
        self.launches.len() as u64
    }

    /// The side slot of a sequence number.
    #[inline]
    pub(crate) fn side(&self, sequence: u64) -> Option<&'static Side> {
        self.sides.get(sequence as usize & (self.sides.len().wrapping_sub(1)))
    }

    /// What is known of the dispatch with a sequence number.
    #[inline]
    pub(crate) fn record(&self, sequence: u64) -> Option<SlotWriter<'static>> {
        SlotWriter::new(self.records, sequence as usize & (self.sides.len().wrapping_sub(1)))
    }

    /// Keeps a point of the agent's clock: agent ticks and HSA ns. Under the harvester's lock.
    pub(crate) fn keep_point(&self, ticks: u64, nanoseconds: u64) {
        keep_point(self.points, ticks, nanoseconds);
    }

    /// Was no work of the queue recorded yet, so that nothing but reckoned points tell of the agent's clock?
    pub(crate) fn is_reckoned(&self) -> bool {
        is_reckoned(self.points)
    }

    /// Keeps two points of the agent's clock that were reckoned. Under the harvester's lock.
    pub(crate) fn keep_reckoned(&self, points: [[u64; 2]; 2]) {
        keep_reckoned(self.points, points);
    }

    /// Makes the own signal of a slot ready and gives its handle; none where the level of timing has none.
    #[inline]
    pub(crate) fn arm(&self, sequence: u64) -> Option<SignalHandle> {
        self.source
            .arm(super::hsa, sequence as usize & (self.sides.len().wrapping_sub(1)))
    }

    /// The next own signals are those of this level. False where it has none here. Under the queue's lock.
    pub(crate) fn choose(&self, hsa: &Hsa, level: Level, has_files: bool) -> bool {
        let allocate = || allocate(hsa, self.agent, self.sides.len());
        self.source.choose(level, has_files, allocate)
    }

    /// Is there a flight file?
    pub(crate) fn has_file(&self) -> bool {
        self.source.has_file()
    }

    /// Do the next own signals lie in the flight file?
    pub(crate) fn is_file(&self) -> bool {
        self.source.is_file()
    }

    /// Does the flight file show that the last slot's signal is complete, through another mapping than the one that the
    /// processor writes to?
    pub(crate) fn is_last_complete_in_file(&self) -> bool {
        self.file.is_some_and(FlightFile::is_last_complete)
    }

    /// Where the own signals are that a reader finds after a kill.
    #[inline]
    pub(crate) fn state(&self, is_own: bool) -> State {
        if is_own && self.source.is_file() {
            State::Own
        } else {
            State::Foreign
        }
    }

    /// Is this a signal of those that the next dispatches get?
    pub(crate) fn has(&self, handle: SignalHandle) -> bool {
        self.source.has(handle)
    }

    /// Notes which call reserved a packet.
    #[inline]
    pub(crate) fn note(&self, index: u64, correlation: u64, who: u64) {
        let at = index as usize & (self.launches.len().wrapping_sub(1));
        if let Some(Launch([first, second])) = self.launches.get(at) {
            second.store(who, Ordering::Relaxed);
            first.store(correlation, Ordering::Release);
        }
    }

    /// Takes the note of a packet: correlation id, thread | stream << 32. Under the queue's lock; whoever noted has written
    /// the packet since, and the next to note there waits for room.
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

    /// Asks for the memory of a slot, to be written.
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

/// Asks for memory that is about to be written, wherever it is now. It need not exist.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and faults at no address; a processor without this one takes it as no operation.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
