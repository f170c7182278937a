//! Source of the collector's signals of a queue: one for each level of timing that has signals.
//!
//! A queue changes its source when the process steps down. Dispatches in flight keep their signals; the next ones use
//! the new source.

#![expect(unsafe_code, reason = "signals in memory, functions of the run-time")]

use super::super::{Hsa, witness};
use crate::level::{self, Level, Reason};
use crate::prefetch;
use hsa_sys::abi::{SIGNAL_GPU_ONLY, SIGNAL_USER, Signal, SignalHandle};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// No signals: addresses are greater.
const NONE: u64 = 0;
/// Signals that the run-time makes individually.
const MADE: u64 = 1;

/// Source of a queue's signals. Written by the handler under the queue's lock.
pub(super) struct Source {
    count: usize,
    /// Address of the first signal in use, or [`NONE`] or [`MADE`].
    base: AtomicU64,
    /// Address of the first signal in the flight file; 0 without one.
    file: AtomicU64,
    /// Address of the first signal in pool memory; 0 until allocated.
    memory: AtomicU64,
    made: OnceLock<Box<[AtomicU64]>>,
}

impl Source {
    /// `count` signals: in a flight file, or in pool memory, or the run-time's if both are 0.
    pub(super) const fn new(count: usize, file: u64, memory: u64) -> Self {
        Self {
            count,
            base: AtomicU64::new(NONE),
            file: AtomicU64::new(file),
            memory: AtomicU64::new(memory),
            made: OnceLock::new(),
        }
    }

    /// Selects this level's signals, in the flight file if there is one and `has_files` allows it. `allocate` returns
    /// pool memory. False if the level has no signals here.
    pub(super) fn choose(&self, level: Level, has_files: bool, allocate: impl FnOnce() -> Option<*mut Signal>) -> bool {
        let base = match level {
            Level::Files | Level::Memory if has_files && self.has_file() => self.file.load(Ordering::Relaxed),
            Level::Files | Level::Memory => self.memory(allocate),
            Level::RunTime => {
                self.made
                    .get_or_init(|| (0..self.count).map(|_| AtomicU64::new(0)).collect());
                MADE
            }
            _ => NONE,
        };
        self.base.store(base, Ordering::Relaxed);
        base != NONE || level > Level::RunTime
    }

    fn memory(&self, allocate: impl FnOnce() -> Option<*mut Signal>) -> u64 {
        let known = self.memory.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let Some(signals) = allocate() else { return NONE };
        self.memory.store(signals as u64, Ordering::Relaxed);
        signals as u64
    }

    /// Whether there is a flight file.
    pub(super) fn has_file(&self) -> bool {
        self.file.load(Ordering::Relaxed) != 0
    }

    /// Stops using the flight file for the next signals. Under the queue's lock.
    pub(super) fn leave_file(&self, allocate: impl FnOnce() -> Option<*mut Signal>) {
        let was_used = self.is_file();
        self.file.store(0, Ordering::Relaxed);
        if was_used {
            self.base.store(self.memory(allocate), Ordering::Relaxed);
        }
    }

    /// Whether the signals in use are those of the flight file.
    #[inline]
    pub(super) fn is_file(&self) -> bool {
        self.has_file() && self.base.load(Ordering::Relaxed) == self.file.load(Ordering::Relaxed)
    }

    /// Whether this is one of the signals in use.
    pub(super) fn has(&self, handle: SignalHandle) -> bool {
        match self.base.load(Ordering::Relaxed) {
            NONE => false,
            MADE => {
                let made = self.made.get().map_or(&[][..], |made| made);
                made.iter().any(|one| one.load(Ordering::Relaxed) == handle)
            }
            base => (base..base + (self.count * size_of::<Signal>()) as u64).contains(&handle),
        }
    }

    /// Prepares the signal of a slot; `None` if the level has none.
    #[inline]
    pub(super) fn arm(&self, hsa: impl FnOnce() -> Option<&'static Hsa>, index: usize) -> Option<SignalHandle> {
        let base = self.base.load(Ordering::Relaxed);
        if index >= self.count {
            return None;
        }
        // The slot is free: the processor is done with its signal.
        if base <= MADE {
            let handle = self.made(base, hsa, index)?;
            witness::arm(handle);
            return Some(handle);
        }
        let handle = base + (index * size_of::<Signal>()) as u64;
        let signal = handle as usize as *mut Signal;
        // SAFETY: there are as many signals as slots; nobody else uses this one now. What has no atomic type is set once and for
        // all: it is the same each time.
        unsafe {
            (&raw mut (*signal).kind).write_volatile(SIGNAL_USER);
            (&raw mut (*signal).mailbox).write_volatile(0);
            (&raw mut (*signal).event).write_volatile(0);
        }
        witness::arm(handle);
        Some(handle)
    }

    #[cold]
    fn made(&self, base: u64, hsa: impl FnOnce() -> Option<&'static Hsa>, index: usize) -> Option<SignalHandle> {
        let place = self.made.get().filter(|_| base == MADE)?.get(index)?;
        let known = place.load(Ordering::Relaxed);
        if known != 0 {
            return Some(known);
        }
        let Some(handle) = hsa().and_then(|hsa| witness::signal(hsa, SIGNAL_GPU_ONLY)) else {
            level::step_down(Level::Program, Reason::NoSignals, 0);
            return None;
        };
        place.store(handle, Ordering::Relaxed);
        Some(handle)
    }

    /// Prefetches the memory of a signal for writing.
    #[inline]
    pub(super) fn prefetch(&self, index: usize) {
        let base = self.base.load(Ordering::Relaxed) as usize as *const Signal;
        prefetch(base.wrapping_add(index));
    }

    /// End of the run-time: destroys its signals, none of which is in flight.
    pub(super) fn discard(&self, hsa: &Hsa) {
        for place in self.made.get().into_iter().flatten() {
            let handle = place.swap(0, Ordering::Relaxed);
            if handle != 0 {
                // SAFETY: the signal is ours and nobody uses it any more.
                unsafe { (hsa.core.signal_destroy)(handle) };
            }
        }
    }
}
