//! The check of a GPU before signals of the collector are used there: a barrier packet with one of them, and behind it one
//! with the run-time's, on a queue of our own.
//!
//! The signals are good when they complete; where they lie in a flight file, a second mapping of it has to show that, too.
//! They are not when the run-time's completes and ours does not for [`GRACE_TIME`]: the process steps down, and the next level's
//! are tried. A GPU that does not get to the packets is busy with somebody else's work: then nothing is known, no flight
//! file is used, and the packets are looked at again until they are done.
//!
//! The program's queues are not touched: their indices are 0 when it gets them. Each has a check more, in front of its first
//! packets, see [`super::packet`].

#![expect(unsafe_code, reason = "a queue of our own, and packets in it")]

use super::agent::Agent;
use super::slots::Slots;
use super::{Hsa, witness};
use crate::level::{self, Level, Reason};
use hsa_sys::abi::{Packet, Queue as HsaQueue, SUCCESS, SignalHandle, packet};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::atomic::AtomicU16;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Packets of the queue.
const SIZE: u32 = 64;
/// How long a GPU may take for two packets that do nothing, unless it is busy.
const IDLE_PACKET_TIME: Duration = Duration::from_micros(1500);
/// How long a signal may stay as it was when the run-time's behind it is complete.
const GRACE_TIME: Duration = Duration::from_millis(20);
/// The nap between two looks.
const NAP: Duration = Duration::from_micros(10);

/// Agents that are told apart.
const AGENTS: usize = 64;
/// What is known to work on an agent: nothing, [`SIGNALS`], [`FILES`].
static CHECKED: [AtomicU64; AGENTS] = [const { AtomicU64::new(0) }; AGENTS];
const SIGNALS: u64 = 1;
const FILES: u64 = 2;
/// Checks that are not over, and queues of those that are.
static BENCHES: Mutex<Vec<Bench>> = Mutex::new(Vec::new());
/// Checks that are not over.
static OPEN: AtomicU64 = AtomicU64::new(0);

fn benches() -> MutexGuard<'static, Vec<Bench>> {
    BENCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn checked(agent: Agent) -> Option<&'static AtomicU64> {
    CHECKED.get(agent.index as usize % AGENTS)
}

/// Are signals in flight files good on this agent?
pub(crate) fn has_files(agent: Agent) -> bool {
    level::current() <= Level::Memory
        && level::has_good_files()
        && checked(agent).is_some_and(|checked| checked.load(Ordering::Acquire) >= FILES)
}

/// The run-time starts: nothing of an earlier one is this one's.
pub(crate) fn forget_all() {
    for checked in &CHECKED {
        checked.store(0, Ordering::Relaxed);
    }
    if let Ok(mut benches) = BENCHES.try_lock() {
        benches.clear();
        OPEN.store(0, Ordering::Relaxed);
    }
}

/// The program ends HSA: no queue of ours stays.
pub(crate) fn discard(hsa: &Hsa) {
    for mut bench in benches().drain(..) {
        if bench.is_open {
            bench.close();
        } else {
            witness::give_back(bench.witness);
        }
        // SAFETY: the queue is ours, and nobody else knows it.
        unsafe { (hsa.core.queue_destroy)(bench.queue as usize as *mut HsaQueue) };
    }
}

/// An agent's first queue is about to be made: no flight file where one may do harm.
pub(crate) fn before_slots(agent: Agent) {
    if level::current() == Level::Files && agent.needs_a_test && level::asked() != Some(Level::Files) {
        level::step_down(Level::Memory, Reason::Untested, agent.index);
    }
}

/// A queue with these slots is about to be made: checks its agent, once. A check that is not over is looked at.
pub(crate) fn before_queue(hsa: &Hsa, agent: Agent, slots: &Slots) {
    let wanted = if slots.has_file() { FILES } else { SIGNALS };
    let is_checked = checked(agent).is_none_or(|checked| checked.load(Ordering::Acquire) >= wanted);
    if is_checked || level::current() > Level::RunTime {
        return;
    }
    let mut benches = benches();
    let known = benches.iter().position(|bench| bench.agent.handle == agent.handle);
    let at = known.unwrap_or(benches.len());
    if known.is_none() {
        let Some(bench) = Bench::new(hsa, agent, *slots) else {
            return;
        };
        benches.push(bench);
    }
    let Some(bench) = benches.get_mut(at) else { return };
    if bench.is_open {
        bench.look();
        return;
    }
    bench.slots = *slots;
    let mut patience = IDLE_PACKET_TIME;
    while level::current() <= Level::RunTime && bench.submit(hsa, level::current()) {
        if bench.wait(patience) != Found::Bad {
            break;
        }
        // A GPU that answered once is not busy with others' work: it is waited for as long as a signal.
        patience = GRACE_TIME;
        // The process is one level further down, whose signals are tried next.
    }
}

/// Looks at the checks that are not over.
pub(crate) fn look() {
    if OPEN.load(Ordering::Relaxed) != 0
        && let Ok(mut benches) = BENCHES.try_lock()
    {
        for bench in benches.iter_mut().filter(|bench| bench.is_open) {
            bench.look();
        }
    }
}

/// A queue of our own with the check's two packets.
struct Bench {
    agent: Agent,
    slots: Slots,
    queue: u64,
    own: SignalHandle,
    witness: SignalHandle,
    /// The level whose signal is tried, and whether it lies in a flight file.
    level: Level,
    is_file: bool,
    /// When the witness was first seen complete.
    since: Option<Instant>,
    is_open: bool,
}

/// What a look found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Good,
    Bad,
    /// Not yet.
    Nothing,
}

impl Bench {
    fn new(hsa: &Hsa, agent: Agent, slots: Slots) -> Option<Self> {
        const MULTIPLE: u32 = 0;
        let mut queue = std::ptr::null_mut();
        // SAFETY: `queue` has room for the answer; a queue may be without callback, and say nothing of its segments.
        let made = unsafe {
            (hsa.core.queue_create)(
                agent.handle,
                SIZE,
                MULTIPLE,
                None,
                std::ptr::null_mut(),
                u32::MAX,
                u32::MAX,
                &raw mut queue,
            )
        };
        if made != SUCCESS {
            return None;
        }
        Some(Self {
            agent,
            slots,
            queue: queue as u64,
            own: 0,
            witness: witness::get(hsa)?,
            level: Level::Off,
            is_file: false,
            since: None,
            is_open: false,
        })
    }

    /// Hands over a packet with a signal of this level, and one with the run-time's behind it. False when there is no such
    /// signal.
    fn submit(&mut self, hsa: &Hsa, level: Level) -> bool {
        if !self.slots.choose(hsa, level, level == Level::Files) {
            return false;
        }
        // The one that the queue itself uses last.
        let Some(own) = self.slots.arm(self.slots.len().wrapping_sub(1)) else {
            return false;
        };
        witness::arm(self.witness);
        (self.own, self.level, self.since) = (own, level, None);
        self.is_file = self.slots.is_file();
        let queue = self.queue as usize as *mut HsaQueue;
        // SAFETY: the queue is ours and exists.
        let (base, doorbell) = unsafe { ((*queue).base.cast::<Packet>(), (*queue).doorbell) };
        let add = hsa.index.first_add();
        // SAFETY: as above.
        let first = unsafe { add(queue, 2) };
        for (index, completion) in (first..).zip([own, self.witness]) {
            // SAFETY: a queue has a power of two of packets; these places are this thread's.
            let place = unsafe { base.add((index & u64::from(SIZE - 1)) as usize) };
            let body = Packet {
                header: packet::INVALID,
                completion,
                ..Packet::default()
            };
            // SAFETY: as above.
            unsafe { place.write_volatile(body) };
            // SAFETY: the header is the packet's first two bytes, which processor and host write whole.
            let header = unsafe { AtomicU16::from_ptr(place.cast()) };
            header.store(packet::BARRIER_AND | packet::BARRIER, Ordering::Release);
        }
        hsa.signal.ring(doorbell, first + 1);
        self.is_open = true;
        OPEN.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Waits for the run-time's signal, and then for ours.
    fn wait(&mut self, patience: Duration) -> Found {
        let began = Instant::now();
        loop {
            let found = self.look();
            let is_busy = self.since.is_none() && began.elapsed() > patience;
            if found != Found::Nothing || is_busy {
                return found;
            }
            std::thread::sleep(NAP);
        }
    }

    fn close(&mut self) {
        self.is_open = false;
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }

    fn look(&mut self) -> Found {
        let found = self.found();
        match found {
            Found::Good => {
                self.close();
                if let (Some(side), Some(signal)) =
                    (self.slots.side(self.slots.len().wrapping_sub(1)), witness::at(self.own))
                {
                    let [begin, end] = [&signal.start, &signal.end].map(|time| time.load(Ordering::Relaxed));
                    side.watch.know([begin, end]);
                }
                if let Some(checked) = checked(self.agent) {
                    checked.fetch_max(if self.is_file { FILES } else { SIGNALS }, Ordering::Release);
                }
                level::changed();
            }
            Found::Bad => {
                self.close();
                let next = Level::of(u64::from(self.level.number()) + 1).unwrap_or(Level::Off);
                level::step_down(next, Reason::ProbeFailed, self.agent.index);
            }
            Found::Nothing => {}
        }
        found
    }

    fn found(&mut self) -> Found {
        let is_seen = !self.is_file || self.slots.is_last_complete_in_file();
        if witness::is_complete(self.own) && is_seen {
            return Found::Good;
        }
        if !witness::is_complete(self.witness) {
            return Found::Nothing;
        }
        match self.since {
            None => {
                self.since = Some(Instant::now());
                Found::Nothing
            }
            Some(since) if since.elapsed() > GRACE_TIME => Found::Bad,
            Some(_) => Found::Nothing,
        }
    }
}
