//! An intercepted queue: its work in flight, and the table of queues by handle.

#![expect(unsafe_code, reason = "queues reached through their handles")]

use super::agent::Agent;
use super::backpressure::Room;
use super::packet::Handed;
use super::slots::Slots;
use super::wide::Wide;
use super::witness::Witnesses;
use super::{Hsa, hsa, probe};
use crate::clock;
use crate::level::{self, Level, Reason};
use crate::prefetch;
use crate::process::Process;
use core::cell::UnsafeCell;
use hsa_sys::abi::{Packet, Queue as HsaQueue};
use roctop_ring::layout::queue as place;
use roctop_ring::record::{Dispatch, Domain, Queue as Fact};
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::Words;
use std::sync::{Mutex, PoisonError};

/// A value on separate cache lines, so that the program's threads and the harvester do not slow each other down.
#[repr(align(128))]
pub(crate) struct Apart<T>(T);

impl<T> Apart<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> core::ops::Deref for Apart<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// A queue whose dispatches are timed.
pub(crate) struct Queue {
    pub(crate) id: u32,
    pub(crate) agent: Agent,
    pub(crate) slots: Slots,
    /// Slots ever used. Written by the handler.
    pub(crate) head: Apart<AtomicU64>,
    /// Slots ever harvested. Written by the harvester.
    pub(crate) tail: Apart<AtomicU64>,
    /// Sequence numbers before this one have a slot, as last seen by the handler.
    known_limit: AtomicU64,
    /// Dispatches passed on. Written by the handler.
    submitted: AtomicU64,
    pub(crate) room: Room,
    pub(crate) wide: Wide,
    pub(crate) witnesses: Witnesses,
    /// Level of timing of the own signals, and the change count at which it was read. Written by the handler.
    level: [AtomicU64; 2],
    /// 1 once the check of its signals preceded its first packets. Written by the handler.
    tried: AtomicU64,
    /// The dispatch that is not seen complete, plus one, and since when, ns. Under the harvester's lock.
    pub(crate) still: Apart<[AtomicU64; 2]>,
    /// Packets that the handler passes to the hardware; only under the queue's own lock.
    pub(crate) out: UnsafeCell<Vec<Packet>>,
    pub(crate) words: Option<Words<'static>>,
    /// 1 if another tool's handler comes before ours.
    pub(crate) is_shared: AtomicU64,
    /// Contiguous copy of packets that wrap around the ring; only under the queue's own lock.
    pub(crate) whole: UnsafeCell<Vec<Packet>>,
    /// Dispatches that the SDK's handler gets next, the last one first.
    pub(crate) handed: UnsafeCell<Vec<Handed>>,
    /// Address of the program's packets.
    pub(crate) base: u64,
    handle: u64,
}

// SAFETY: `out`, `whole` and `handed` are used by the handler alone, which the run-time calls under the queue's lock.
unsafe impl Sync for Queue {}
// SAFETY: everything a queue points to is never freed.
unsafe impl Send for Queue {}

impl Queue {
    /// A queue of `size` packets at `base`; `words` is its entry in the file.
    pub(crate) fn new(
        id: u32,
        agent: Agent,
        slots: Slots,
        size: u64,
        words: Option<Words<'static>>,
        base: u64,
        handle: *const HsaQueue,
    ) -> Self {
        Self {
            id,
            agent,
            slots,
            head: Apart::new(AtomicU64::new(0)),
            tail: Apart::new(AtomicU64::new(0)),
            known_limit: AtomicU64::new(0),
            submitted: AtomicU64::new(0),
            room: Room::new(size),
            wide: Wide::new(),
            witnesses: Witnesses::new(),
            level: [const { AtomicU64::new(0) }; 2],
            tried: AtomicU64::new(0),
            still: Apart::new([const { AtomicU64::new(0) }; 2]),
            out: UnsafeCell::new(Vec::with_capacity(64)),
            words,
            is_shared: AtomicU64::new(0),
            whole: UnsafeCell::new(Vec::new()),
            handed: UnsafeCell::new(Vec::new()),
            base,
            handle: handle as u64,
        }
    }

    /// Level of timing of the next dispatches. For the handler, or before the program knows the queue.
    #[inline]
    pub(crate) fn level(&self) -> Level {
        let [level, looked_up] = &self.level;
        if looked_up.load(Ordering::Relaxed) != level::changes() {
            self.follow_level();
        }
        Level::of(level.load(Ordering::Relaxed)).unwrap_or(Level::Off)
    }

    /// Whether the check of its signals preceded its first packets. For the handler.
    #[inline]
    pub(crate) fn is_tried(&self) -> bool {
        self.tried.load(Ordering::Relaxed) != 0
    }

    /// The check was submitted. For the handler.
    pub(crate) fn try_once(&self) {
        self.tried.store(1, Ordering::Relaxed);
    }

    /// The level as last seen by the handler. For other threads.
    pub(crate) fn known_level(&self) -> Level {
        Level::of(self.level[0].load(Ordering::Relaxed)).unwrap_or(Level::Off)
    }

    #[cold]
    fn follow_level(&self) {
        let [known, looked_up] = &self.level;
        loop {
            let change = level::changes();
            let level = match level::current() {
                // The run-time's signals work on a GPU whose probe is not over.
                Level::Files | Level::Memory if !probe::has_signals(self.agent) => Level::RunTime,
                level => level,
            };
            let has_files = probe::has_files(self.agent);
            let has_signals = hsa().is_some_and(|hsa| self.slots.choose(hsa, level, has_files));
            if u64::from(level.number()) < known.swap(u64::from(level.number()), Ordering::Relaxed) {
                // A probe has passed: the first packets with these signals are checked, too.
                self.tried.store(0, Ordering::Relaxed);
            }
            looked_up.store(change, Ordering::Relaxed);
            if has_signals {
                return;
            }
            // The run-time's own signals are in such memory too, but possibly not in an accessible pool.
            level::step_down(Level::RunTime, Reason::NoMemory, self.id);
        }
    }

    /// Number of packets reserved by the program. For the handler: the queue exists.
    pub(crate) fn reserved(&self, hsa: &Hsa) -> u64 {
        // SAFETY: the run-time calls the handler for this queue.
        unsafe { (hsa.core.load_write_index)(self.handle as usize as *const HsaQueue) }
    }

    /// Size of the queue in packets: a power of two.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.room.size
    }

    /// Whether there is a free slot for sequence numbers before `last`. For the handler.
    #[inline]
    pub(crate) fn has_slots(&self, last: u64) -> bool {
        last <= self.known_limit.load(Ordering::Relaxed) || self.look_for_slots(last)
    }

    fn look_for_slots(&self, last: u64) -> bool {
        // Acquire: pairs with the harvester's release of the tail; it is done with the earlier slots.
        let tail = self.tail.load(Ordering::Acquire);
        let limit = self.slots.limit(hsa(), tail, last);
        self.known_limit.store(limit, Ordering::Relaxed);
        last <= limit
    }

    /// Prefetches the next dispatch's memory: the harvester and the packet processor wrote it last. For the handler.
    #[inline]
    pub(crate) fn prepare(&self, sequence: u64) {
        self.slots.prefetch(sequence);
        if let Some(slot) = self.words.and_then(|words| slot(words, sequence)) {
            prefetch(slot.as_ptr());
        }
    }

    /// Index of the program's packet that became this one, searched from `index` by the kernel's arguments. `None` if
    /// it is not among the next ones.
    #[cold]
    pub(crate) fn index_of(&self, packet: &Packet, index: u64) -> Option<u64> {
        (index..index.saturating_add(self.size())).find(|index| {
            let place = (self.base as usize as *const Packet).wrapping_add((index & (self.size() - 1)) as usize);
            // SAFETY: the program's queue has `size` packets, a power of two, and exists while its handler runs.
            let own = unsafe { place.read_volatile() };
            (own.kernel_object, own.kernarg) == (packet.kernel_object, packet.kernarg)
        })
    }

    /// Publishes a dispatch as in flight.
    #[inline]
    pub(crate) fn submitted(&self, sequence: Option<u64>, record: &Dispatch) {
        let Some(words) = self.words else { return };
        let submitted = self.submitted.load(Ordering::Relaxed) + 1;
        self.submitted.store(submitted, Ordering::Relaxed);
        // Never loaded, because the harvester writes next to it.
        if let Some(word) = words.get(place::SUBMITTED) {
            word.store(submitted, Ordering::Release);
        }
        let Some(sequence) = sequence else { return };
        if let Some([submit, kernel, correlation, id]) = slot(words, sequence) {
            kernel.store(record.kernel_object, Ordering::Relaxed);
            correlation.store(record.correlation, Ordering::Relaxed);
            id.store(record.dispatch_id, Ordering::Relaxed);
            submit.store(record.submit.max(1), Ordering::Release);
        }
    }

    /// A dispatch is not in flight any more. [`Self::count_completed`] counts it.
    #[inline]
    pub(crate) fn completed(&self, sequence: u64, record: &Dispatch) {
        if let Some([submit, ..]) = self.words.and_then(|words| slot(words, sequence)) {
            // Only if the slot still belongs to this dispatch.
            let _ = submit.compare_exchange(record.submit.max(1), 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Counts completed dispatches, and those of them without a time.
    pub(crate) fn count_completed(&self, count: u64, untimed: u64) {
        let Some(words) = self.words else { return };
        // Both the handler (without a slot) and the harvester come here, so these are atomic additions.
        for (at, by) in [(place::COMPLETED, count), (place::UNTIMED, untimed)] {
            if let Some(word) = words.get(at).filter(|_| by > 0) {
                word.fetch_add(by, Ordering::Release);
            }
        }
    }

    pub(crate) fn emit(&self, process: &Process, handle: *const HsaQueue, event: u32) {
        // SAFETY: the queue exists: it was just created, or its destruction has not begun.
        let queue = unsafe { &*handle };
        let fact = Fact {
            handle: handle as u64,
            time: clock::now(),
            id: self.id,
            agent: self.agent.index,
            size: queue.size,
            queue_type: queue.queue_type,
            state: event,
            intercepted: 1,
        };
        process.minor_fact(Fact::head(0, Domain::NONE), &fact.payload());
    }
}

fn slot(words: Words<'static>, sequence: u64) -> Option<&'static [AtomicU64; place::SLOT_WORDS]> {
    let at = place::HEADER + sequence as usize % place::SLOTS * place::SLOT_WORDS;
    words.get(at..)?.first_chunk()
}

const PLACES: usize = 1024;
/// Queues by handle.
static QUEUES: [[AtomicU64; 2]; PLACES] = [const { [const { AtomicU64::new(0) }; 2] }; PLACES];
const GONE: u64 = 1;

fn start(handle: u64) -> usize {
    ((handle >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

/// The intercepted queue with this handle.
#[inline]
pub(crate) fn find(handle: u64) -> Option<&'static Queue> {
    for step in 0..PLACES {
        let [key, value] = QUEUES.get(start(handle).wrapping_add(step) % PLACES)?;
        match key.load(Ordering::Acquire) {
            0 => return None,
            seen if seen == handle => {
                let address = value.load(Ordering::Acquire) as usize as *const Queue;
                // SAFETY: queues are leaked boxes.
                return unsafe { address.as_ref() };
            }
            _ => {}
        }
    }
    None
}

/// Lock for entering a queue; lookups do not take it.
static ENTERING: Mutex<()> = Mutex::new(());

/// The run-time starts without queues; those not destroyed ended with the earlier one.
pub(crate) fn forget_all() {
    for [key, value] in &QUEUES {
        key.store(0, Ordering::Release);
        value.store(0, Ordering::Release);
    }
}

pub(crate) fn enter(handle: u64, queue: &'static Queue) {
    let _one = ENTERING.lock().unwrap_or_else(PoisonError::into_inner);
    for step in 0..PLACES {
        let Some([key, value]) = QUEUES.get(start(handle).wrapping_add(step) % PLACES) else {
            return;
        };
        let seen = key.load(Ordering::Acquire);
        if matches!(seen, 0 | GONE) || seen == handle {
            value.store(std::ptr::from_ref(queue) as u64, Ordering::Release);
            key.store(handle, Ordering::Release);
            return;
        }
    }
}

pub(crate) fn leave(handle: u64) {
    for step in 0..PLACES {
        let Some([key, value]) = QUEUES.get(start(handle).wrapping_add(step) % PLACES) else {
            return;
        };
        match key.load(Ordering::Acquire) {
            0 => return,
            seen if seen == handle => {
                value.store(0, Ordering::Release);
                key.store(GONE, Ordering::Release);
                return;
            }
            _ => {}
        }
    }
}
