//! Probes a GPU before the collector's signals are used on it: a barrier packet with one of them, followed by one with
//! a signal of the run-time, on a queue of the collector's.
//!
//! The signals work if they complete; if they are in a flight file, a second mapping of it must show that, too. The
//! probe fails if the run-time's signal completes and ours does not within [`GRACE_TIME`]: the process steps down, and
//! the next level's signals are tried. A GPU that does not process the packets in time is late, because it or the
//! machine is busy: then nothing is known, dispatches get signals of the run-time, and the packets are checked again
//! until they are done. If the probe then fails for a flight file, it is repeated with a signal in memory.
//!
//! The program's queues are not affected: their indexes are 0 when it gets them. Each has another check before its
//! first packets, see [`super::packet`].

#![expect(unsafe_code, reason = "a queue of the collector, and packets in it")]

use super::agent::Agent;
use super::slots::{Slots, Spare};
use super::{Hsa, witness};
use crate::level::{self, Level, Reason};
use hsa_sys::abi::{Packet, Queue as HsaQueue, SUCCESS, SignalHandle, packet};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::atomic::AtomicU16;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Size of the queue, packets.
const SIZE: u32 = 64;
/// Time that an idle GPU may need for two packets without work.
const IDLE_PACKET_TIME: Duration = Duration::from_micros(1500);
/// Maximum delay of a signal after the run-time's signal behind it is complete.
const GRACE_TIME: Duration = Duration::from_millis(20);
/// Sleep time between two checks.
const NAP: Duration = Duration::from_micros(10);

/// Reason of a step down when the GPU had answered a probe after the program's first queue was made.
const FAILED_LATE: &str =
    "a test packet's signal did not complete and a later one of the run-time's did (late: the GPU was busy)";

/// Number of agents that are distinguished.
const AGENTS: usize = 64;
/// What works on an agent: nothing, [`SIGNALS`], [`FILES`].
static CHECKED: [AtomicU64; AGENTS] = [const { AtomicU64::new(0) }; AGENTS];
const SIGNALS: u64 = 1;
const FILES: u64 = 2;
/// Probes in progress, and queues of finished ones.
static BENCHES: Mutex<Vec<Bench>> = Mutex::new(Vec::new());
/// Number of probes in progress.
static OPEN: AtomicU64 = AtomicU64::new(0);

fn benches() -> MutexGuard<'static, Vec<Bench>> {
    BENCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn checked(agent: Agent) -> Option<&'static AtomicU64> {
    CHECKED.get(agent.index as usize % AGENTS)
}

/// Whether signals in flight files work on this agent.
pub(crate) fn has_files(agent: Agent) -> bool {
    level::current() <= Level::Memory
        && level::has_good_files()
        && checked(agent).is_some_and(|checked| checked.load(Ordering::Acquire) >= FILES)
}

/// Whether the collector's signals may be used on this agent: a probe has passed there.
pub(crate) fn has_signals(agent: Agent) -> bool {
    checked(agent).is_some_and(|checked| checked.load(Ordering::Acquire) >= SIGNALS)
}

/// The run-time starts: drops everything of an earlier one.
pub(crate) fn forget_all() {
    for checked in &CHECKED {
        checked.store(0, Ordering::Relaxed);
    }
    if let Ok(mut benches) = BENCHES.try_lock() {
        benches.clear();
        OPEN.store(0, Ordering::Relaxed);
    }
}

/// The program shuts HSA down: destroys the probes' queues.
pub(crate) fn discard(hsa: &Hsa) {
    for mut bench in benches().drain(..) {
        let was_open = bench.is_open;
        if was_open {
            bench.close();
        }
        // SAFETY: the queue is ours, and nobody else knows it.
        unsafe { (hsa.core.queue_destroy)(bench.queue as usize as *mut HsaQueue) };
        // The last packet's signal: what has not completed, a processor may still write.
        if !was_open || witness::is_complete(bench.witness) {
            witness::give_back(bench.witness);
        }
    }
}

/// Called before an agent's first queue is created: no flight file where it could do harm.
pub(crate) fn before_slots(agent: Agent) {
    if level::current() == Level::Files && agent.needs_a_test && level::asked() != Some(Level::Files) {
        level::step_down(Level::Memory, Reason::Untested, agent.index);
    }
}

/// Called before a queue with these slots is created: probes its agent, once, and checks a probe in progress.
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
        bench.look_late(hsa);
        return;
    }
    bench.slots = *slots;
    let mut patience = IDLE_PACKET_TIME;
    while level::current() <= Level::RunTime && bench.submit(hsa, level::current()) {
        match bench.wait(patience) {
            Found::Good => break,
            Found::Nothing => {
                bench.spare = Spare::allocate(hsa, agent);
                break;
            }
            Found::Bad => {}
        }
        // A GPU that answered once is not busy with other work, so the wait is as long as for a signal.
        patience = GRACE_TIME;
        // The process has stepped down; the next level's signals are tried.
    }
}

/// Checks the probes in progress.
pub(crate) fn look(hsa: &Hsa) {
    if OPEN.load(Ordering::Relaxed) != 0
        && let Ok(mut benches) = BENCHES.try_lock()
    {
        for bench in benches.iter_mut().filter(|bench| bench.is_open) {
            bench.look_late(hsa);
        }
    }
}

/// A queue of the collector's with the two packets of a probe.
struct Bench {
    agent: Agent,
    slots: Slots,
    queue: u64,
    own: SignalHandle,
    witness: SignalHandle,
    /// Level whose signal is tried, and whether it is in a flight file.
    level: Level,
    is_file: bool,
    /// The signal of a repeated probe: the program's queue uses the slots by then.
    spare: Option<Spare>,
    /// When the witness was first seen complete.
    since: Option<Instant>,
    is_open: bool,
}

/// Result of a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Good,
    Bad,
    /// Not complete yet.
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
            spare: None,
            since: None,
            is_open: false,
        })
    }

    /// Submits a packet with a signal of this level, followed by one with the run-time's. False if there is no such
    /// signal.
    fn submit(&mut self, hsa: &Hsa, level: Level) -> bool {
        if !self.slots.choose(hsa, level, level == Level::Files) {
            return false;
        }
        // The slot that the queue itself would use last.
        let Some(own) = self.slots.arm(self.slots.len().wrapping_sub(1)) else {
            return false;
        };
        self.is_file = self.slots.is_file();
        self.send(hsa, own, level);
        true
    }

    /// Submits both packets.
    fn send(&mut self, hsa: &Hsa, own: SignalHandle, level: Level) {
        witness::arm(self.witness);
        (self.own, self.level, self.since) = (own, level, None);
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
    }

    /// Waits for the run-time's signal, then for ours.
    fn wait(&mut self, patience: Duration) -> Found {
        let began = Instant::now();
        loop {
            let found = self.look("");
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

    /// Checks a probe that the program's first queue did not wait for. If a flight file fails, memory is probed before it is
    /// used.
    fn look_late(&mut self, hsa: &Hsa) {
        if self.look(FAILED_LATE) != Found::Bad || self.level != Level::Files || level::current() != Level::Memory {
            return;
        }
        match self.spare.take().and_then(Spare::arm) {
            Some(own) => {
                self.is_file = false;
                self.send(hsa, own, Level::Memory);
            }
            None => drop(level::step_down(Level::RunTime, Reason::NoMemory, self.agent.index)),
        }
    }

    /// After a failure the process steps down by one level; `why` has other words for the reason.
    fn look(&mut self, why: &str) -> Found {
        let found = self.found();
        match found {
            Found::Good => {
                self.close();
                let last = self.slots.len().wrapping_sub(1);
                if let (Some(side), Some(signal)) = (self.slots.side(last), witness::at(self.own)) {
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
                let below = Level::of(u64::from(self.level.number()) + 1).unwrap_or(Level::Off);
                level::step_down_because(below, Reason::ProbeFailed, self.agent.index, why);
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
