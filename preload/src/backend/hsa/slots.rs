//! The memory of dispatches in flight: signals of our own, what is known of each, and which call made which packet.
//!
//! Signals are plain memory that the host and all GPUs see, formatted as the packet processor expects them: no object of
//! the run-time, no event, no interrupt. Their handles must never be passed to a function of the run-time.

#![expect(unsafe_code, reason = "memory of the run-time's pools")]

use super::Hsa;
use super::agent::{self, Agent};
use super::signal::Watch;
use core::cell::UnsafeCell;
use hsa_sys::abi::{Agent as AgentHandle, SIGNAL_USER, SUCCESS, Signal, info};
use roctop_ring::record::Dispatch;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::atomic::AtomicI64;
use std::sync::{Mutex, PoisonError};

/// What a packet's maker noted: correlation id, and thread | stream << 32.
struct Launch([AtomicU64; 2]);

/// A dispatch in flight.
pub(crate) struct Side {
    pub(crate) watch: Watch,
    pub(crate) record: UnsafeCell<Dispatch>,
    /// Index of its packet in the hardware's queue.
    pub(crate) position: AtomicU64,
}

// SAFETY: the handler writes a record before it publishes the slot, under the queue's lock; the harvester reads it
// after, under its own lock, and gives the slot back by the tail.
unsafe impl Sync for Side {}

/// The memory of a queue's dispatches in flight: used again by a later one, never given back.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    agent: AgentHandle,
    signals: *mut Signal,
    sides: &'static [Side],
    launches: &'static [Launch],
}

// SAFETY: the signals are plain memory of the run-time's pool, reached through atomics alone once a queue has them.
unsafe impl Send for Slots {}

/// Memory of queues that are gone.
static SPARE: Mutex<Vec<Slots>> = Mutex::new(Vec::new());

impl Slots {
    /// Slots for a queue of `size` packets.
    pub(crate) fn get(hsa: &Hsa, agent: Agent, size: usize) -> Option<Self> {
        let slots = 2 * size.next_power_of_two().max(64);
        let mut spare = SPARE.lock().ok()?;
        if let Some(at) = spare
            .iter()
            .position(|memory| memory.agent == agent.handle && memory.sides.len() == slots)
        {
            return Some(spare.swap_remove(at));
        }
        drop(spare);
        let signals = allocate(hsa, slots)?;
        let sides: Vec<Side> = (0..slots)
            .map(|_| Side {
                watch: Watch::new(),
                record: UnsafeCell::default(),
                position: AtomicU64::new(0),
            })
            .collect();
        let launches: Vec<Launch> = (0..slots).map(|_| Launch([const { AtomicU64::new(0) }; 2])).collect();
        Some(Self {
            agent: agent.handle,
            signals,
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

    /// Takes the note of a packet: correlation id, thread | stream << 32.
    #[inline]
    pub(crate) fn noted(&self, index: u64) -> [u64; 2] {
        let at = index as usize & (self.launches.len() - 1);
        self.launches.get(at).map_or([0, 0], |Launch([first, second])| {
            [first.swap(0, Ordering::AcqRel), second.swap(0, Ordering::Relaxed)]
        })
    }
}

/// Memory that the host and all GPUs see at once, formatted as signals.
fn allocate(hsa: &Hsa, count: usize) -> Option<*mut Signal> {
    let host = hsa.agents.all().iter().find(|agent| agent.kind == agent::CPU)?;
    let pool = agent::pools(hsa, host.handle)
        .into_iter()
        .find(|pool| pool.flags & info::POOL_FINE != 0)?;
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
    let signals = address.cast::<Signal>();
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
    Some(signals)
}
