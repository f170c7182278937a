//! Intercepted queues: their creation and end, their signals, what they have in flight.

#![expect(
    unsafe_code,
    reason = "hooks with the run-time's signatures, memory of the run-time's pools"
)]

use super::agent::{self, Agent};
use super::signal::Watch;
use super::{Hsa, harvest, hook, hsa, packet};
use crate::guard::{Errno, wall};
use crate::process::{self, Process};
use crate::state::{self, word};
use crate::{clock, thread};
use core::cell::UnsafeCell;
use hsa_sys::abi::{
    Agent as AgentHandle, Packet, QUEUE_COOPERATIVE, Queue as HsaQueue, SIGNAL_USER, SUCCESS, Signal, Status, info,
};
use hsa_sys::table::{QueueCallback, QueueCreate, Table, core_entry};
use roctop_ring::layout::{counter, queue as place};
use roctop_ring::record::{Dispatch, Domain, Queue as Fact, status};
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::Words;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant};

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

/// The memory of a queue: used again by a later one, never given back.
#[derive(Clone, Copy)]
struct Memory {
    agent: AgentHandle,
    signals: *mut Signal,
    sides: &'static [Side],
    launches: &'static [Launch],
}

// SAFETY: the signals are plain memory of the run-time's pool, reached through atomics alone once a queue has them.
unsafe impl Send for Memory {}

/// A queue whose dispatches are timed.
pub(crate) struct Queue {
    pub(crate) id: u32,
    pub(crate) agent: Agent,
    memory: Memory,
    /// Slots ever taken.
    pub(crate) head: AtomicU64,
    /// Slots ever harvested.
    pub(crate) tail: AtomicU64,
    /// Packets handed to the hardware, and how many may be before its queue could be full.
    pub(crate) written: AtomicU64,
    room: AtomicU64,
    /// Slots whose packets were handed over; the newest ones wait for room.
    handed: AtomicU64,
    /// Packets that the hardware's queue holds.
    size: u64,
    /// What the handler hands to the hardware; only under the queue's own lock.
    pub(crate) out: UnsafeCell<Vec<Packet>>,
    words: Option<Words<'static>>,
}

// SAFETY: `out` is used by the handler alone, which the run-time calls under the queue's lock.
unsafe impl Sync for Queue {}
// SAFETY: everything a queue points to lives for ever.
unsafe impl Send for Queue {}

impl Queue {
    /// Dispatches that can be in flight.
    #[inline]
    pub(crate) fn slots(&self) -> u64 {
        self.memory.sides.len() as u64
    }

    /// Notes that can be kept.
    pub(crate) fn launches(&self) -> u64 {
        self.memory.launches.len() as u64
    }

    /// The side slot of a sequence number.
    #[inline]
    pub(crate) fn side(&self, sequence: u64) -> Option<&'static Side> {
        self.memory.sides.get(sequence as usize & (self.memory.sides.len() - 1))
    }

    /// Makes the own signal of a slot ready and gives its handle.
    #[inline]
    pub(crate) fn arm(&self, sequence: u64) -> u64 {
        let index = sequence as usize & (self.memory.sides.len() - 1);
        // SAFETY: there are as many signals as sides; the slot is free, so the processor has done with it.
        let signal = unsafe { &*self.memory.signals.add(index) };
        signal.start.store(0, Ordering::Relaxed);
        signal.end.store(0, Ordering::Relaxed);
        signal.value.store(1, Ordering::Release);
        std::ptr::from_ref(signal) as u64
    }

    /// Notes which call reserved a packet.
    #[inline]
    pub(crate) fn note(&self, index: u64, correlation: u64, who: u64) {
        let at = index as usize & (self.memory.launches.len() - 1);
        if let Some(Launch([first, second])) = self.memory.launches.get(at) {
            second.store(who, Ordering::Relaxed);
            first.store(correlation, Ordering::Release);
        }
    }

    /// Takes the note of a packet: correlation id, thread | stream << 32.
    #[inline]
    pub(crate) fn noted(&self, index: u64) -> [u64; 2] {
        let at = index as usize & (self.memory.launches.len() - 1);
        self.memory.launches.get(at).map_or([0, 0], |Launch([first, second])| {
            [first.swap(0, Ordering::AcqRel), second.swap(0, Ordering::Relaxed)]
        })
    }

    /// A dispatch goes to the hardware: shown as in flight.
    #[inline]
    pub(crate) fn submitted(&self, sequence: Option<u64>, record: &Dispatch) {
        let Some(words) = self.words else { return };
        bump(words, place::SUBMITTED);
        let Some(sequence) = sequence else { return };
        if let Some([submit, kernel, correlation, id]) = slot(words, sequence) {
            kernel.store(record.kernel_object, Ordering::Relaxed);
            correlation.store(record.correlation, Ordering::Relaxed);
            id.store(record.dispatch_id, Ordering::Relaxed);
            submit.store(record.submit.max(1), Ordering::Release);
        }
    }

    /// A dispatch completed, with or without a time.
    #[inline]
    pub(crate) fn completed(&self, sequence: Option<u64>, record: &Dispatch, is_timed: bool) {
        let Some(words) = self.words else { return };
        if let Some([submit, ..]) = sequence.and_then(|sequence| slot(words, sequence)) {
            // Only when the slot is still this dispatch's.
            let _ = submit.compare_exchange(record.submit.max(1), 0, Ordering::AcqRel, Ordering::Relaxed);
        }
        // Both the handler (without a slot) and the harvester come here, so these are true additions.
        add(words, place::COMPLETED);
        if !is_timed {
            add(words, place::UNTIMED);
        }
    }

    /// Counts `count` packets that go to the hardware now, after waiting until its queue has room for them.
    ///
    /// The run-time's proxy takes packets without end, where a plain queue makes the program wait while it is full; up to
    /// ROCr 5.7 it aborts when two packets find the hardware's queue full (`overflow_`, intercept_queue.cpp). So the
    /// program waits here, as it would without roctop. Only the handler calls this, under the queue's lock.
    #[inline]
    pub(crate) fn hand_over(&self, count: u64) {
        let written = self.written.load(Ordering::Relaxed);
        if written + count > self.room.load(Ordering::Relaxed) {
            self.wait_for_room(written + count);
        }
        self.written.store(written + count, Ordering::Relaxed);
        self.handed.store(self.head.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    #[cold]
    fn wait_for_room(&self, needed: u64) {
        let _errno = Errno::keep();
        let mut seen = self.tail.load(Ordering::Acquire);
        let mut since = Instant::now();
        loop {
            let tail = self.tail.load(Ordering::Acquire);
            if let Some(last) = tail.checked_sub(1).and_then(|sequence| self.side(sequence)) {
                // All packets up to that of a completed dispatch have left the hardware's queue.
                let room = last.position.load(Ordering::Acquire) + 1 + capacity(self.size);
                self.room.store(room, Ordering::Relaxed);
                if needed <= room {
                    return;
                }
            }
            if tail >= self.handed.load(Ordering::Relaxed) {
                // Nothing timed is in flight: what fills the queue is not known, the proxy has to see to it.
                return;
            }
            if tail != seen {
                (seen, since) = (tail, Instant::now());
            }
            let oldest_is_done = self.side(tail).is_some_and(|side| side.watch.look().is_some());
            if oldest_is_done && since.elapsed() > HARVESTER_IS_GONE {
                return;
            }
            std::thread::sleep(ROOM_NAP);
        }
    }

    fn tell(&self, process: &Process, handle: *const HsaQueue, event: u32) {
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
        process.fact(Fact::head(0, Domain::NONE), &fact.payload());
    }
}

fn slot(words: Words<'static>, sequence: u64) -> Option<&'static [AtomicU64; place::SLOT_WORDS]> {
    let at = place::HEADER + sequence as usize % place::SLOTS * place::SLOT_WORDS;
    words.get(at..)?.first_chunk()
}

/// Adds to a word that only the handler writes, under the queue's lock.
#[inline]
fn bump(words: Words<'static>, at: usize) {
    if let Some(word) = words.get(at) {
        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

#[inline]
fn add(words: Words<'static>, at: usize) {
    if let Some(word) = words.get(at) {
        word.fetch_add(1, Ordering::Release);
    }
}

/// A part of the hardware's queue is kept free: the processor may count a packet as read later than it completes it (an
/// abort of 5.2.3 was seen with 64 places of 1024).
const MARGIN: u64 = 4;
/// The nap while the program waits for room.
const ROOM_NAP: Duration = Duration::from_micros(50);
/// A completed dispatch that nobody takes for so long: there is no harvesting thread.
const HARVESTER_IS_GONE: Duration = Duration::from_secs(1);

/// Packets that a hardware queue of `size` may hold before the program waits.
fn capacity(size: u64) -> u64 {
    size - size / MARGIN
}

const PLACES: usize = 1024;
/// Queues by handle.
static QUEUES: [[AtomicU64; 2]; PLACES] = [const { [const { AtomicU64::new(0) }; 2] }; PLACES];
const GONE: u64 = 1;
/// Numbers given to queues.
static NUMBER: AtomicU64 = AtomicU64::new(0);
static SPARE: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

fn start(handle: u64) -> usize {
    ((handle >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

/// The queue with this handle, when it is intercepted.
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

fn enter(handle: u64, queue: &'static Queue) {
    for step in 0..PLACES {
        let Some([key, value]) = QUEUES.get(start(handle).wrapping_add(step) % PLACES) else {
            return;
        };
        let seen = key.load(Ordering::Acquire);
        if seen == 0 || seen == GONE {
            value.store(std::ptr::from_ref(queue) as u64, Ordering::Release);
            if key
                .compare_exchange(seen, handle, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }
}

fn leave(handle: u64) {
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

pub(crate) fn patch(table: Table) {
    hook(table, core_entry::QUEUE_CREATE, create as QueueCreate as *mut c_void);
    hook(
        table,
        core_entry::QUEUE_DESTROY,
        destroy as unsafe extern "C" fn(*mut HsaQueue) -> Status as *mut c_void,
    );
}

unsafe extern "C" fn create(
    agent: AgentHandle,
    size: u32,
    queue_type: u32,
    callback: QueueCallback,
    data: *mut c_void,
    private: u32,
    group: u32,
    out: *mut *mut HsaQueue,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let made = wall(None, || {
        let _errno = Errno::keep();
        thread::current()?;
        thread::aside(|| {
            let gpu = wanted(hsa, agent, queue_type)?;
            // SAFETY: the caller's own arguments; the signature is that of the plain function.
            let status =
                unsafe { (hsa.amd.intercept_create)(agent, size, queue_type, callback, data, private, group, out) };
            if status != SUCCESS {
                return None;
            }
            // SAFETY: the call succeeded, so the queue was written.
            intercept(hsa, gpu, unsafe { *out });
            Some(status)
        })
    });
    // SAFETY: the caller's own arguments.
    made.unwrap_or_else(|| unsafe {
        (hsa.core.queue_create)(agent, size, queue_type, callback, data, private, group, out)
    })
}

/// Is this a queue to intercept?
fn wanted(hsa: &'static Hsa, handle: AgentHandle, queue_type: u32) -> Option<Agent> {
    if !state::is_on(word::HSA) {
        return None;
    }
    let process = process::get()?;
    hsa.agents.discover(hsa, process);
    let agent = hsa.agents.by_handle(handle).filter(|agent| agent.kind == agent::GPU)?;
    if queue_type == QUEUE_COOPERATIVE && hsa.layout.shares_cooperative_queue() {
        process.say(
            status::UNAVAILABLE,
            u64::from(agent.index),
            "cooperative launches: this run-time's shared queue cannot be intercepted, their kernels have no times",
        );
        return None;
    }
    Some(*agent)
}

fn intercept(hsa: &'static Hsa, agent: Agent, handle: *mut HsaQueue) -> Option<()> {
    let process = process::get()?;
    // SAFETY: the run-time just made it.
    let size = unsafe { (*handle).size } as usize;
    let id = NUMBER.fetch_add(1, Ordering::Relaxed) as u32 + 1;
    let Some(memory) = memory(hsa, agent, size) else {
        process.say(
            status::UNAVAILABLE,
            u64::from(id),
            "a queue is not timed: no memory for its signals",
        );
        return None;
    };
    let queue: &'static Queue = Box::leak(Box::new(Queue {
        id,
        agent,
        memory,
        head: AtomicU64::new(0),
        tail: AtomicU64::new(0),
        written: AtomicU64::new(0),
        handed: AtomicU64::new(0),
        room: AtomicU64::new(capacity(size as u64)),
        size: size as u64,
        out: UnsafeCell::new(Vec::with_capacity(64)),
        words: claim_words(process, id),
    }));
    if queue.words.is_none() {
        process.count(counter::QUEUES_FULL, 1);
    }
    enter(handle as u64, queue);
    // SAFETY: the queue is intercepted; the bit only makes the processor write times.
    unsafe { (hsa.amd.set_profiler_enabled)(handle, 1) };
    let context = std::ptr::from_ref(queue).cast_mut().cast();
    // SAFETY: the queue was made by `intercept_create`; the context lives for ever.
    if unsafe { (hsa.amd.intercept_register)(handle, packet::handler, context) } != SUCCESS {
        leave(handle as u64);
        process.say(
            status::UNAVAILABLE,
            u64::from(id),
            "a queue is not timed: the run-time refused the handler",
        );
        return None;
    }
    queue.tell(process, handle, 1);
    harvest::begin(queue);
    Some(())
}

/// A place in the file's table of queues.
fn claim_words(process: &'static Process, id: u32) -> Option<Words<'static>> {
    let file = process.main()?;
    (0..place::QUEUES).find_map(|index| {
        let words = file.queue(index)?;
        let free = words
            .first()?
            .compare_exchange(0, u64::from(id), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if free {
            for word in words.get(1..)? {
                word.store(0, Ordering::Relaxed);
            }
        }
        free.then_some(words)
    })
}

/// Signals and sides for a queue of `size` packets.
fn memory(hsa: &Hsa, agent: Agent, size: usize) -> Option<Memory> {
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
    Some(Memory {
        agent: agent.handle,
        signals,
        sides: sides.leak(),
        launches: launches.leak(),
    })
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

unsafe extern "C" fn destroy(handle: *mut HsaQueue) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let queue = if state::is_on(word::HSA) {
        find(handle as u64)
    } else {
        None
    };
    let mut is_empty = false;
    if let Some(queue) = queue {
        is_empty = wall(false, || {
            let _errno = Errno::keep();
            let drained = harvest::end(queue);
            leave(handle as u64);
            if let Some(process) = process::get() {
                queue.tell(process, handle, 2);
            }
            drained
        });
    }
    // SAFETY: the caller's own argument.
    let status = unsafe { (hsa.core.queue_destroy)(handle) };
    if let Some(queue) = queue {
        wall((), || {
            if let Some(words) = queue.words {
                for word in words {
                    word.store(0, Ordering::Relaxed);
                }
            }
            // The processor may still write to signals of dispatches that did not complete.
            if is_empty && let Ok(mut spare) = SPARE.lock() {
                spare.push(queue.memory);
            }
        });
    }
    status
}
