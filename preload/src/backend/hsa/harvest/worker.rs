//! The harvesting thread: sleeps half a millisecond while there is work, and up to ten when there is none.
//!
//! Between two passes it does everything that must not run on the program's threads: calibration samples, page tables
//! of rings, pausing of counters.

use super::super::{copy, hsa, probe, proxy, slots};
use super::affinity::{reset_affinity, without_signals};
use super::reckoning::Reckoning;
use super::{IDLE, WAITING, is_busy, pass, queues};
use crate::backend::sdk;
use crate::guard::wall;
use crate::process::{self, Process};
use crate::state::{self, word};
use crate::{collector, control, sites, thread};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Stack size, bytes. Only touched pages cost memory. The C library takes thread-local variables of all libraries from
/// it, and the driver's library runs on it.
pub(crate) const STACK: usize = 1 << 20;

/// Starts the thread, once per process. False if that fails.
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

/// Ends the thread's sleep, because a waiter of the program depends on it.
pub(crate) fn wake() {
    if let Some(worker) = WORKER.get() {
        worker.unpark();
    }
}

/// Number of completed rounds of the harvesting thread.
static ROUNDS: AtomicU64 = AtomicU64::new(0);
/// Maximum wait for that thread at `_exit`.
const LAST_ROUND: Duration = Duration::from_secs(1);

/// Takes the last times when the process ends without destructors, unless the thread may hold a lock of the run-time.
/// The harvesting thread does it: this thread may be in a signal handler that interrupted the run-time's own conversion
/// of times.
pub(crate) fn before_exit() {
    let is_inside = thread::existing().is_none_or(|thread| thread.hip_frame.get() != 0);
    if hsa().is_none() || !state::is_on(word::HSA) || is_inside || word(word::THREAD).load(Ordering::Acquire) == 0 {
        return;
    }
    // The current round may have begun too early.
    let wanted = ROUNDS.load(Ordering::Acquire) + 2;
    let start = Instant::now();
    while ROUNDS.load(Ordering::Acquire) < wanted && start.elapsed() < LAST_ROUND {
        wake();
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn run() {
    let _ = process::claim_completion();
    reset_affinity();
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
        if sites::take_pin(process) {
            start_pin();
        }
        let is_recording = control::is_recording();
        if is_recording != was_recording && word(word::PAUSED).load(Ordering::Relaxed) == 0 {
            collector::switched(is_recording, 1);
        }
        was_recording = is_recording;
    }
}

/// Pins a library with CPython on a thread that ends then: a thread of the program may hold the loader's lock while it
/// waits for this one.
fn start_pin() {
    let pin = || {
        reset_affinity();
        if let Some(process) = process::get() {
            sites::pin(process);
        }
    };
    let built = std::thread::Builder::new().name("roctop-pin".into()).stack_size(STACK);
    // Without a thread there are no Python frames.
    let _ = without_signals(|| built.spawn(move || wall((), pin)));
}

/// Takes completed work of all queues and copies; returns its amount.
fn harvest(reckoning: &mut Reckoning) -> usize {
    let Some(hsa) = hsa().filter(|_| state::is_on(word::HSA)) else {
        pass_on();
        return 0;
    };
    wall(0, || {
        let all = queues();
        // The answer holds under the lock: an earlier end has switched HSA off.
        if !state::is_on(word::HSA) {
            return 0;
        }
        reckoning.step(hsa, &all);
        probe::look(hsa);
        pass(hsa, &all)
    })
}

/// Forwards signals after the collector was switched off, because the program may wait for them. False if nobody waits.
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

/// Sleep time of the thread.
struct Nap(Duration);

impl Nap {
    const MIN_NAP: Duration = Duration::from_micros(500);
    const MAX_NAP: Duration = Duration::from_millis(10);
    /// Used while a thread of the program waits for the GPU, because it needs no CPU meanwhile.
    const EAGER_NAP: Duration = Duration::from_micros(100);
    /// Used while the program waits for a signal that this thread forwards.
    const POLL_NAP: Duration = Duration::from_micros(10);
    /// Number of completions per pass that halves the next sleep.
    const MANY_COMPLETIONS: u32 = 16;

    const fn new() -> Self {
        Self(Self::MIN_NAP)
    }

    fn take(&self) {
        std::thread::park_timeout(if proxy::is_pending() { Self::POLL_NAP } else { self.0 });
    }

    /// Sets the next sleep after a pass with `done` completions.
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

/// Populates page tables of rings in advance: otherwise a thread's first record in each page would take as long as
/// several launches.
#[derive(Default)]
struct Rings {
    file: usize,
    entry: usize,
    from: u64,
}

impl Rings {
    /// Bytes per step.
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

/// Time of the next calibration: every second at first, then every ten.
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
