//! The harvesting thread: naps half a millisecond while there is work and up to ten when there is none.
//!
//! Between two passes it does what else wants no thread of the program's: calibration samples, page tables of rings, what the
//! viewer says of counters.

use super::super::{copy, hsa, probe, proxy, slots};
use super::affinity::{leave_the_programs_place, without_signals};
use super::reckoning::Reckoning;
use super::{IDLE, WAITING, is_busy, pass, queues};
use crate::backend::sdk;
use crate::guard::wall;
use crate::process::{self, Process};
use crate::state::{self, word};
use crate::{collector, control, thread};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Bytes of the thread's stack. Only what is touched costs memory; out of it the C library takes the threads' own variables of
/// all libraries, and the driver's library and whatever stands in front of it run on it.
const STACK: usize = 1 << 20;

/// Starts the thread, once a process. False where there can be none.
pub(crate) fn start_thread() -> bool {
    if word(word::THREAD).swap(1, Ordering::AcqRel) != 0 {
        return true;
    }
    let built = std::thread::Builder::new().name("roctop".into()).stack_size(STACK);
    let spawned = without_signals(|| built.spawn(|| wall((), run)));
    let Ok(handle) = spawned else {
        word(word::THREAD).store(0, Ordering::Release);
        return false;
    };
    let _ = WORKER.set(handle.thread().clone());
    true
}

static WORKER: OnceLock<Thread> = OnceLock::new();

/// Ends the thread's nap: a waiter of the program depends on it.
pub(crate) fn wake() {
    if let Some(worker) = WORKER.get() {
        worker.unpark();
    }
}

/// Rounds of the harvesting thread.
static ROUNDS: AtomicU64 = AtomicU64::new(0);
/// The longest wait for that thread at an `_exit`.
const LAST_ROUND: Duration = Duration::from_secs(1);

/// The process ends without destructors: the last times are taken, unless the thread may hold a lock of the run-time. By
/// the harvesting thread: this one may be in a signal handler that interrupted the run-time's own conversion of times.
pub(crate) fn before_exit() {
    let is_inside = thread::existing().is_none_or(|thread| thread.hip_frame.get() != 0);
    if hsa().is_none() || !state::is_on(word::HSA) || is_inside || word(word::THREAD).load(Ordering::Acquire) == 0 {
        return;
    }
    // The round that is under way may have begun too early.
    let wanted = ROUNDS.load(Ordering::Acquire) + 2;
    let start = Instant::now();
    while ROUNDS.load(Ordering::Acquire) < wanted && start.elapsed() < LAST_ROUND {
        wake();
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn run() {
    let _ = process::claim_completion();
    leave_the_programs_place();
    #[expect(unsafe_code, reason = "a thread's own timer slack")]
    // SAFETY: touches no memory; only this thread's naps become more exact.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1000);
    }
    let mut nap = Nap::new();
    let mut calibration = Calibration::new();
    let mut reckoning = Reckoning::new();
    let mut rings = Rings::default();
    let mut was_recording = control::is_recording();
    let mut is_filling = false;
    loop {
        if !is_filling {
            nap.take();
        }
        let Some(process) = process::get() else { return };
        if word(word::COLLECTOR).load(Ordering::Acquire) == state::OFF {
            if pass_on() {
                continue;
            }
            return;
        }
        let done = harvest(&mut reckoning);
        ROUNDS.fetch_add(1, Ordering::Release);
        nap.follow(done);
        calibration.step(process);
        rings.step(process);
        is_filling = slots::make_ready();
        slots::fill();
        sdk::follow_the_viewer();
        let is_recording = control::is_recording();
        if is_recording != was_recording && word(word::PAUSED).load(Ordering::Relaxed) == 0 {
            collector::switched(is_recording, 1);
        }
        was_recording = is_recording;
    }
}

/// Takes what all queues and copies completed; how much.
fn harvest(reckoning: &mut Reckoning) -> usize {
    let Some(hsa) = hsa().filter(|_| state::is_on(word::HSA)) else {
        pass_on();
        return 0;
    };
    wall(0, || {
        let all = queues();
        // Under the lock the answer stands: an end that came before has switched HSA off.
        if !state::is_on(word::HSA) {
            return 0;
        }
        reckoning.step(hsa, &all);
        probe::look();
        pass(hsa, &all)
    })
}

/// The collector is off, and the program may still wait for what this thread passes on: it does. False when nobody waits.
fn pass_on() -> bool {
    let Some(hsa) = hsa().filter(|_| proxy::is_pending()) else {
        return false;
    };
    wall((), || {
        let _all = queues();
        copy::harvest(hsa);
    });
    true
}

/// How long the thread naps.
struct Nap(Duration);

impl Nap {
    const MIN_NAP: Duration = Duration::from_micros(500);
    const MAX_NAP: Duration = Duration::from_millis(10);
    /// While a thread of the program waits for the GPU, which needs no processor meanwhile.
    const EAGER_NAP: Duration = Duration::from_micros(100);
    /// While the program waits for a signal that this thread passes on.
    const POLL_NAP: Duration = Duration::from_micros(10);
    /// Completions of one pass that halve the next nap.
    const MANY_COMPLETIONS: u32 = 16;

    const fn new() -> Self {
        Self(Self::MIN_NAP)
    }

    fn take(&self) {
        std::thread::park_timeout(if proxy::is_pending() { Self::POLL_NAP } else { self.0 });
    }

    /// The next one after a pass that took so much.
    fn follow(&mut self, done: usize) {
        self.0 = if is_busy() && WAITING.load(Ordering::Relaxed) != 0 {
            Self::EAGER_NAP
        } else if done > 0 || is_busy() {
            // The faster work completes, the less of it may wait here when the process is killed.
            (Self::MIN_NAP * Self::MANY_COMPLETIONS / (Self::MANY_COMPLETIONS + done as u32)).max(Self::EAGER_NAP)
        } else {
            (self.0.max(Self::MIN_NAP) * 2).min(Self::MAX_NAP)
        };
        IDLE.store(u64::from(self.0 > Self::MIN_NAP), Ordering::Relaxed);
    }
}

/// Fills in the page tables of rings behind the threads that got them: at its first record in a page a thread would wait for
/// the system, for as long as several launches take.
#[derive(Default)]
struct Rings {
    file: usize,
    entry: usize,
    from: u64,
}

impl Rings {
    /// Bytes of a step.
    const STEP: u64 = 1 << 20;

    fn step(&mut self, process: &Process) {
        let Some(chunk) = process.chunks().nth(self.file) else {
            return;
        };
        if chunk.file.populate(self.entry, self.from, Self::STEP) {
            self.from += Self::STEP;
        } else if self.from > 0 {
            (self.entry, self.from) = (self.entry + 1, 0);
        } else if self.entry >= chunk.file.entries() {
            (self.file, self.entry) = (self.file + 1, 0);
        }
    }
}

/// When the next calibration is due: every second at first, then every ten.
struct Calibration {
    taken: u32,
    last: Instant,
}

impl Calibration {
    const FREQUENT: u32 = 10;

    fn new() -> Self {
        Self {
            taken: 0,
            last: Instant::now(),
        }
    }

    fn step(&mut self, process: &Process) {
        let every = if self.taken < Self::FREQUENT { 1 } else { 10 };
        if self.last.elapsed() >= Duration::from_secs(every) {
            thread::aside(|| process.calibrate());
            self.taken += 1;
            self.last = Instant::now();
        }
    }
}
