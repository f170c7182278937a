//! The memory of dispatches in flight: signals of our own, what is known of each, and which call made which packet.
//!
//! Signals are plain memory that the host and all GPUs see, formatted as the packet processor expects them: no object of
//! the run-time, no event, no interrupt. Their handles must never be passed to a function of the run-time.

#![expect(unsafe_code, reason = "memory of the run-time's pools")]

use super::Hsa;
use super::agent::{self, Agent};
use super::signal::Watch;
use crate::level::{self, Level};
use crate::process;
use hsa_sys::abi::{Agent as AgentHandle, SIGNAL_USER, SUCCESS, Signal, info};
use roctop_ring::flight::{FlightFile, PAGE, SLOT_WORDS, SlotWriter, is_reckoned, keep_point, keep_reckoned};
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::Words;
use std::io::ErrorKind;
use std::sync::atomic::AtomicI64;
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
    signals: *mut Signal,
    /// Points of the agent's clock, for whoever finds the slots after a kill.
    points: Words<'static>,
    records: Words<'static>,
    sides: &'static [Side],
    launches: &'static [Launch],
}

// SAFETY: the signals are plain memory of the run-time's pool, reached through atomics alone once a queue has them.
unsafe impl Send for Slots {}

/// Half the slots of a small queue: what it completes while the harvester naps.
const FEWEST: usize = 1024;

/// Memory of queues that are gone, of this start of the run-time: a later one, or a forked child's, has none of it.
static SPARE: Mutex<Vec<Slots>> = Mutex::new(Vec::new());

/// The run-time starts: what was kept of another one is not used any more.
pub(crate) fn forget_spare() {
    if let Ok(mut spare) = SPARE.try_lock() {
        spare.clear();
    }
}

impl Slots {
    /// Slots for a queue of `size` packets.
    pub(crate) fn get(hsa: &Hsa, agent: Agent, size: usize) -> Option<Self> {
        let slots = 2 * size.next_power_of_two().max(FEWEST);
        let mut spare = SPARE.lock().ok()?;
        if let Some(at) = spare
            .iter()
            .position(|memory| memory.agent == agent.handle && memory.sides.len() == slots)
        {
            return Some(spare.swap_remove(at));
        }
        drop(spare);
        let signals = allocate(hsa, slots)?;
        let (points, records) = keep(signals, slots);
        format(signals, slots);
        let sides: Vec<Side> = (0..slots)
            .map(|_| Side {
                watch: Watch::new(),
                position: AtomicU64::new(0),
            })
            .collect();
        let launches: Vec<Launch> = (0..slots).map(|_| Launch([const { AtomicU64::new(0) }; 2])).collect();
        Some(Self {
            agent: agent.handle,
            signals,
            points,
            records,
            sides: sides.leak(),
            launches: launches.leak(),
        })
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

    /// Notes that can be kept.
    pub(crate) fn launches(&self) -> u64 {
        self.launches.len() as u64
    }

    /// The side slot of a sequence number.
    #[inline]
    pub(crate) fn side(&self, sequence: u64) -> Option<&'static Side> {
        self.sides.get(sequence as usize & (self.sides.len() - 1))
    }

    /// What is known of the dispatch with a sequence number.
    #[inline]
    pub(crate) fn record(&self, sequence: u64) -> Option<SlotWriter<'static>> {
        SlotWriter::new(self.records, sequence as usize & (self.sides.len() - 1))
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

    /// Makes the own signal of a slot ready and gives its handle.
    #[inline]
    pub(crate) fn arm(&self, sequence: u64) -> u64 {
        let index = sequence as usize & (self.sides.len() - 1);
        // SAFETY: there are as many signals as sides; the slot is free, so the processor has done with it.
        let signal = unsafe { &*self.signals.add(index) };
        signal.start.store(0, Ordering::Relaxed);
        signal.end.store(0, Ordering::Relaxed);
        signal.value.store(1, Ordering::Release);
        std::ptr::from_ref(signal) as u64
    }

    /// Notes which call reserved a packet.
    #[inline]
    pub(crate) fn note(&self, index: u64, correlation: u64, who: u64) {
        let at = index as usize & (self.launches.len() - 1);
        if let Some(Launch([first, second])) = self.launches.get(at) {
            second.store(who, Ordering::Relaxed);
            first.store(correlation, Ordering::Release);
        }
    }

    /// Takes the note of a packet: correlation id, thread | stream << 32. Under the queue's lock; whoever noted has written
    /// the packet since, and the next to note there waits for room.
    #[inline]
    pub(crate) fn noted(&self, index: u64) -> [u64; 2] {
        let at = index as usize & (self.launches.len() - 1);
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
        let index = sequence as usize & (self.sides.len() - 1);
        prefetch(self.signals.wrapping_add(index));
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

/// Memory that the host and all GPUs see at once, with room for `count` signals.
///
/// It comes from the pool of the run-time's own signals: fine-grained, for kernel arguments, uncached (`system_allocator_`,
/// runtime.cpp of ROCr 5.2 to 7.2). The GPU may cache memory of the plain fine-grained pool from gfx942 on, so the host could
/// see completions there late or never. A run-time without the former has no pool for our signals.
fn allocate(hsa: &Hsa, count: usize) -> Option<*mut Signal> {
    let host = hsa.agents.all().iter().find(|agent| agent.kind == agent::CPU)?;
    let wanted = info::POOL_FINE | info::POOL_KERNARG;
    let pools = agent::pools(hsa, host.handle);
    let pool = pools.into_iter().find(|pool| pool.flags & wanted == wanted)?;
    let mut address = std::ptr::null_mut();
    // SAFETY: the pool is the run-time's; `address` has room for the answer.
    if unsafe { (hsa.amd.pool_allocate)(pool.handle, count * size_of::<Signal>(), 0, &raw mut address) } != SUCCESS {
        return None;
    }
    let gpus: Vec<AgentHandle> = hsa
        .agents
        .all()
        .iter()
        .filter(|agent| agent.kind == agent::GPU)
        .map(|agent| agent.handle)
        .collect();
    // SAFETY: the memory was just allocated; the list has as many handles as it says.
    if unsafe { (hsa.amd.allow_access)(gpus.len() as u32, gpus.as_ptr(), std::ptr::null(), address) } != SUCCESS {
        return None;
    }
    Some(address.cast())
}

/// Makes signals of fresh memory.
fn format(signals: *mut Signal, count: usize) {
    for index in 0..count {
        let signal = Signal {
            kind: SIGNAL_USER,
            value: AtomicI64::new(0),
            mailbox: 0,
            event: 0,
            reserved0: 0,
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            reserved1: [0; 2],
        };
        // SAFETY: inside the allocation, which is aligned to a page.
        unsafe { signals.add(index).write(signal) };
    }
}

/// Where records and points of the clock are kept: in a file that outlives the process, with the signals themselves put
/// over fresh pool memory, or in plain memory where that cannot be, which is told.
///
/// The pool's memory is anonymous memory that the driver knows by its address (`hsaKmtAllocMemory` of host memory, thunk of
/// ROCm 5.2 to 7.2). Pages of tmpfs at the same address are to the driver what an application's registered shared memory
/// is; where the pool lies in a mapping of the driver's own, nothing is done.
fn keep(signals: *mut Signal, count: usize) -> (Words<'static>, Words<'static>) {
    let reason = match in_file(signals, count) {
        Ok(kept) => return kept,
        Err(reason) => reason,
    };
    if let Some(process) = process::get() {
        process.say_grounded(reason);
    }
    let words = (0..count * SLOT_WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    (&[], words.leak())
}

/// Puts a file's signals over the pool's; else why not.
fn in_file(signals: *mut Signal, count: usize) -> Result<(Words<'static>, Words<'static>), &'static str> {
    let address = signals as usize;
    if level::current() != Level::Files {
        return Err("the level of timing has no flight files");
    }
    let no_files = "the program may open no file any more";
    let is_anonymous = is_anonymous(address, count * size_of::<Signal>()).map_err(|_| no_files)?;
    if !is_anonymous || !address.is_multiple_of(PAGE) {
        return Err("the run-time's memory is a mapping of the driver's own");
    }
    let process = process::get().ok_or("the process has no ring")?;
    let mut file = process.flight(count).map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "no room for what a queue has in flight in the session's tmpfs (of a container: --shm-size)"
        }
        _ => no_files,
    })?;
    // SAFETY: the memory was just allocated for these signals; nothing was written to it and nobody else knows it.
    unsafe { file.put_signals_at(signals.cast()) }.map_err(|_| "a file cannot be put over the run-time's memory")?;
    let file: &'static FlightFile = Box::leak(Box::new(file));
    Ok((file.header(), file.records()))
}

/// Does the range lie in private memory without a file behind it?
fn is_anonymous(address: usize, length: usize) -> std::io::Result<bool> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let mut at = address;
    for line in maps.lines() {
        // start-end permissions offset device inode [path]
        let mut words = line.split_ascii_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let Some((Ok(start), Ok(end))) =
            range.map(|(from, to)| (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16)))
        else {
            return Ok(false);
        };
        if end <= at {
            continue;
        }
        let is_plain = words.next() == Some("rw-p") && words.nth(2) == Some("0");
        if start > at || !is_plain {
            return Ok(false);
        }
        at = end;
        if at >= address + length {
            return Ok(true);
        }
    }
    Ok(false)
}
