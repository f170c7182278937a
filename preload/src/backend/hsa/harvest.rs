//! Turns completed work into records: one thread for all queues and copies, and a last time at every end.
//!
//! It naps half a millisecond while there is work and up to ten when there is none; nobody waits for it. A thread of the
//! program that waited for the GPU takes what is done itself, so that a sudden end loses little. At the end of a
//! queue, of the run-time, or of the process the thread that ends it drains what is left, for a bounded time.

use super::queue::{Apart, Queue};
use super::{Hsa, copy, driver, hsa, observed, proxy, symbol};
use crate::backend::sdk;
use crate::process::{self, Process};
use crate::state::{self, word};
use crate::{clock, collector, control, thread};
use hsa_sys::abi::SUCCESS;
use roctop_ring::layout::counter;
use roctop_ring::record::{flag, status};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

const SHORTEST_NAP: Duration = Duration::from_micros(500);
/// Completions of one pass that halve the next nap.
const MANY: u32 = 16;
/// The nap while the program waits for a signal that this thread passes on.
const POLL: Duration = Duration::from_micros(10);
const LONGEST_NAP: Duration = Duration::from_millis(10);
/// How long an end waits for work that makes no progress.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long an end waits at all.
const LONGEST_END: Duration = Duration::from_secs(2);
const BATCH: usize = 64;

/// Queues to harvest. The lock is held over a pass, so that an end waits for it.
static QUEUES: Mutex<Vec<&'static Queue>> = Mutex::new(Vec::new());

fn queues() -> MutexGuard<'static, Vec<&'static Queue>> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A queue begins.
pub(crate) fn begin(queue: &'static Queue) {
    let mut all = queues();
    all.push(queue);
    if let Some(hsa) = hsa() {
        reckon_all(hsa, &[queue]);
    }
    drop(all);
    start_thread();
}

/// Reckons the agents' clocks for queues of which no work was recorded yet. Under the lock.
fn reckon_all(hsa: &Hsa, all: &[&'static Queue]) {
    for queue in all.iter().filter(|queue| queue.slots.is_reckoned()) {
        if let Some(points) = reckon(hsa, queue) {
            queue.slots.keep_reckoned(points);
        }
    }
}

/// When clocks are reckoned anew: the longer the run-time compares them the better it knows them, so each time when twice as
/// long has passed, and what is reckoned holds as long again.
struct Reckoning {
    began: Instant,
    last: Instant,
}

impl Reckoning {
    const SHORTEST: Duration = Duration::from_millis(2);

    fn new() -> Self {
        let now = Instant::now();
        Self { began: now, last: now }
    }

    fn step(&mut self, hsa: &Hsa, all: &[&'static Queue]) {
        let known = self.last.duration_since(self.began).max(Self::SHORTEST);
        if self.last.elapsed() >= known {
            reckon_all(hsa, all);
            self.last = Instant::now();
        }
    }
}

/// Two points of the agent's clock, ticks and HSA ns, now and a little later: whoever ends the process before the first
/// work was recorded leaves its times to them. None where the run-time does not convert, or says nothing that can be.
fn reckon(hsa: &Hsa, queue: &Queue) -> Option<[[u64; 2]; 2]> {
    // Far enough ahead that the run-time compares the clocks anew: what it knows of them at first is of microseconds.
    const STEP: u64 = 1 << 24;
    const TRIES: usize = 16;
    /// Near enough, ns.
    const NEAR: u64 = 1_000_000;
    let at = |tick| convert(hsa, queue, tick).map(|system| hsa.nanoseconds(system));
    let now = driver::about(clock::boottime());
    let mut tick = 0u64;
    for _ in 0..TRIES {
        let there = at(tick.wrapping_add(STEP))?;
        let here = at(tick)?;
        let rise = there.wrapping_sub(here);
        if rise == 0 || rise > STEP << 16 {
            return None;
        }
        let distance = now.wrapping_sub(here).cast_signed();
        if distance.unsigned_abs() <= NEAR {
            return Some([[tick, here], [tick.wrapping_add(STEP), there]]);
        }
        let steps = i128::from(distance) * i128::from(STEP) / i128::from(rise);
        tick = tick.wrapping_add(steps as u64);
    }
    None
}

/// A queue ends: drains it. True when nothing of it is in flight.
pub(crate) fn end(queue: &'static Queue) -> bool {
    let mut all = queues();
    let drained = hsa().is_some_and(|hsa| {
        let is_done = drain(|| queue_pass(hsa, queue), || in_flight(queue) == 0);
        if !is_done {
            lose(hsa, queue);
        }
        is_done
    });
    all.retain(|other| !std::ptr::eq(*other, queue));
    drained
}

/// What a queue has in flight will not be seen to complete: recorded without times. Under the lock.
fn lose(hsa: &Hsa, queue: &'static Queue) {
    let (tail, head) = (queue.tail.load(Ordering::Relaxed), queue.head.load(Ordering::Acquire));
    for sequence in tail..head {
        let Some(side) = queue.slots.side(sequence) else { break };
        let span = side.watch.look().unwrap_or_default();
        side.watch.lose();
        record(hsa, queue, sequence, span, &Line::through(hsa, queue, &[span]));
    }
    queue.tail.store(head, Ordering::Release);
    ended(head - tail);
}

/// The run-time starts: queues of an earlier one, or of a parent, are none of this one's.
pub(crate) fn forget_all() {
    if let Ok(mut all) = QUEUES.try_lock() {
        all.clear();
    }
    ENDED.store(BEGUN.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// The program learned that work is done: so do we, when nobody else is at it.
#[inline]
fn now() {
    if state::is_on(word::HSA) && is_busy() {
        take_now();
    }
}

#[inline(never)]
pub(crate) fn take_now() {
    observed::look_again();
    if let (Some(hsa), Ok(all)) = (hsa(), QUEUES.try_lock()) {
        pass(hsa, &all);
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

/// Dispatches and copies that were begun, by the program's threads, and those that were recorded, by the harvester mostly.
static BEGUN: Apart<AtomicU64> = Apart::new(AtomicU64::new(0));
static ENDED: Apart<AtomicU64> = Apart::new(AtomicU64::new(0));
/// 1 while the thread takes a long nap.
static IDLE: Apart<AtomicU64> = Apart::new(AtomicU64::new(0));

/// Threads of the program in a call that waits for the GPU.
static WAITING: AtomicU64 = AtomicU64::new(0);

/// A thread begins to wait: it needs no processor, so the harvest may be more eager.
#[inline]
pub(crate) fn wait_begins() {
    WAITING.fetch_add(1, Ordering::Relaxed);
}

/// It waits no more; what it waited for is taken.
#[inline]
pub(crate) fn wait_ends() {
    WAITING.fetch_sub(1, Ordering::Relaxed);
    now();
}

/// Work begins.
#[inline]
pub(crate) fn began(count: u64) {
    BEGUN.fetch_add(count, Ordering::Relaxed);
    if IDLE.load(Ordering::Relaxed) != 0 && IDLE.swap(0, Ordering::Relaxed) != 0 {
        wake();
    }
}

/// Work was recorded, or will never be.
#[inline]
pub(crate) fn ended(count: u64) {
    ENDED.fetch_add(count, Ordering::Relaxed);
}

fn is_busy() -> bool {
    ENDED.load(Ordering::Relaxed) != BEGUN.load(Ordering::Relaxed)
}

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The run-time shuts down: it is not called any more.
    Shutdown,
    /// The process ends.
    Exit,
}

/// 1 when the end of the process waited in vain: it waits once.
static GAVE_UP: AtomicU64 = AtomicU64::new(0);

/// Drains everything.
pub(crate) fn last(which: End) {
    let Some(hsa) = hsa().filter(|_| state::is_on(word::HSA)) else {
        return;
    };
    observed::look_again();
    // Bounded: a signal handler may have ended the process in the middle of a pass.
    let Some(mut all) = (0..2000).find_map(|_| {
        let lock = QUEUES.try_lock().ok();
        if lock.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        lock
    }) else {
        return;
    };
    let is_empty = GAVE_UP.load(Ordering::Relaxed) == 0
        && drain(
            || pass(hsa, &all),
            || all.iter().all(|queue| in_flight(queue) == 0) && copy::in_flight() == 0,
        );
    if !is_empty {
        pass(hsa, &all);
        GAVE_UP.store(u64::from(which == End::Exit), Ordering::Relaxed);
    }
    if which == End::Shutdown {
        for queue in all.drain(..) {
            if in_flight(queue) != 0 {
                lose(hsa, queue);
            }
        }
        copy::lose_all();
        observed::forget_all();
        word(word::HSA).store(state::COLD, Ordering::Release);
        clock::HSA_TIME_AT.store(0, Ordering::Release);
    }
}

fn drain(mut step: impl FnMut() -> usize, is_done: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    let mut progress = start;
    loop {
        if step() > 0 {
            progress = Instant::now();
        }
        if is_done() {
            return true;
        }
        if progress.elapsed() > PATIENCE || start.elapsed() > LONGEST_END {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn in_flight(queue: &Queue) -> u64 {
    queue
        .head
        .load(Ordering::Acquire)
        .wrapping_sub(queue.tail.load(Ordering::Acquire))
}

fn pass(hsa: &Hsa, all: &[&'static Queue]) -> usize {
    all.iter().map(|queue| queue_pass(hsa, queue)).sum::<usize>() + copy::harvest(hsa)
}

/// Takes what a queue completed, in order; stops at the first dispatch that runs.
fn queue_pass(hsa: &Hsa, queue: &'static Queue) -> usize {
    let mut done = 0;
    loop {
        let tail = queue.tail.load(Ordering::Relaxed);
        // Acquire: pairs with the handler's release; the slots are seen.
        let head = queue.head.load(Ordering::Acquire);
        let mut spans = [[0u64; 2]; BATCH];
        let mut count = 0;
        for (span, sequence) in spans.iter_mut().zip(tail..head) {
            let Some(found) = queue.slots.side(sequence).and_then(|side| side.watch.look()) else {
                break;
            };
            *span = found;
            count += 1;
        }
        let Some(spans) = spans.get(..count).filter(|spans| !spans.is_empty()) else {
            return done;
        };
        let line = Line::through(hsa, queue, spans);
        line.keep(hsa, queue);
        for (span, sequence) in spans.iter().zip(tail..) {
            record(hsa, queue, sequence, *span, &line);
        }
        // Release: pairs with the handler's acquire; the slots may be used again.
        queue.tail.store(tail + count as u64, Ordering::Release);
        ended(count as u64);
        done += count;
    }
}

fn record(hsa: &Hsa, queue: &Queue, sequence: u64, span: [u64; 2], line: &Line) {
    // The head was read with acquire; the handler does not touch the slot before the tail moves.
    let (Some(side), Some(kept)) = (queue.slots.side(sequence), queue.slots.record(sequence)) else {
        return;
    };
    let mut record = kept.kept();
    side.watch.free();
    if record.dispatch_id == 0 {
        // It told how far the hardware has come, no more.
        return;
    }
    let (span, mut flags) = line.times(hsa, queue, span);
    [record.begin, record.end] = span;
    let is_timed = flags & flag::UNTIMED == 0;
    if is_timed {
        driver::saw(record.begin, record.end, record.submit);
    }
    if symbol::is_internal(record.kernel_object) {
        flags |= flag::INTERNAL;
    }
    kept.take();
    collector::dispatch(&record, flags);
    kept.free();
    queue.completed(Some(sequence), &record, is_timed);
    if let Some(process) = process::get() {
        process.count(if is_timed { counter::TIMED } else { counter::UNTIMED }, 1);
    }
}

/// Agent ticks to ticks of the system domain: exact for the first and the last tick of a batch, a line between.
struct Line {
    from: [u64; 2],
    to: [u64; 2],
    /// False when the run-time did not convert.
    is_known: bool,
    /// The first or the last is no time: there is no line between, and each tick is converted by itself.
    is_broken: bool,
}

/// Work left times which cannot be: told once. Its flags: it counts as without times, and the record keeps them.
#[cold]
pub(crate) fn doubt() -> u8 {
    static TOLD: AtomicU64 = AtomicU64::new(0);
    if let Some(process) = process::get().filter(|_| TOLD.swap(1, Ordering::Relaxed) == 0) {
        process.say(
            status::NOTE,
            0,
            "work of the GPU has times before HSA began or in the future: it counts as without times, its records keep them",
        );
    }
    flag::UNTIMED | flag::SUSPECT_TIME
}

/// Batches in a row whose last end is ahead of the clock before it is told.
const IN_A_ROW: u64 = 32;
/// By how much the last end is ahead then, ns: samples of both clocks are known better.
const AHEAD: u64 = 50_000;

/// A batch was read at `now`: the GPU cannot have ended later. Told once when it does, again and again.
fn judge(last: u64, now: u64) {
    static AHEAD_IN_A_ROW: AtomicU64 = AtomicU64::new(0);
    if last <= now.saturating_add(AHEAD) {
        // Told stays told.
        if AHEAD_IN_A_ROW.load(Ordering::Relaxed) < IN_A_ROW {
            AHEAD_IN_A_ROW.store(0, Ordering::Relaxed);
        }
        return;
    }
    if AHEAD_IN_A_ROW.fetch_add(1, Ordering::Relaxed) + 1 == IN_A_ROW
        && let Some(process) = process::get()
    {
        let by = last - now;
        let text = format!(
            "kernels end {} us after they were seen complete: GPU and host clock disagree, and times of the GPU are late",
            by / 1000
        );
        process.say(status::NOTE, by, &text);
    }
}

/// An agent's tick as the run-time converts it, in ticks of the system domain; none when it does not.
fn convert(hsa: &Hsa, queue: &Queue, tick: u64) -> Option<u64> {
    let mut out = tick;
    let convert = hsa.amd.convert_tick;
    #[expect(unsafe_code, reason = "a call of the run-time")]
    // SAFETY: the agent is the queue's; `out` has room for the answer.
    let status = unsafe { convert(queue.agent.handle, tick, &raw mut out) };
    (status == SUCCESS).then_some(out)
}

impl Line {
    fn through(hsa: &Hsa, queue: &Queue, spans: &[[u64; 2]]) -> Self {
        let ticks = || spans.iter().flatten().copied().filter(|tick| *tick != 0);
        let from = [ticks().min().unwrap_or(0), ticks().max().unwrap_or(0)];
        let mut is_known = true;
        let mut convert = |tick: u64| {
            let out = convert(hsa, queue, tick);
            is_known &= out.is_some();
            out.unwrap_or(tick)
        };
        let first = convert(from[0]);
        let last = if from[1] == from[0] { first } else { convert(from[1]) };
        let ends = [hsa.nanoseconds(first), hsa.nanoseconds(last)];
        let is_broken = from[1] != 0 && !hsa.is_time(ends);
        if from[1] != 0 && !is_broken {
            judge(ends[1], driver::about(clock::boottime()));
        }
        Self {
            from,
            to: [first, last],
            is_known,
            is_broken,
        }
    }

    /// Begin and end in ns, and what is to be said of them: zeros when they are not known; what cannot be is kept.
    #[inline]
    fn times(&self, hsa: &Hsa, queue: &Queue, span: [u64; 2]) -> ([u64; 2], u8) {
        if span.contains(&0) || !self.is_known {
            return ([0, 0], flag::UNTIMED);
        }
        if !self.is_broken {
            return (span.map(|tick| hsa.nanoseconds(self.at(tick))), 0);
        }
        let span = span.map(|tick| hsa.nanoseconds(convert(hsa, queue, tick).unwrap_or(0)));
        let flags = if hsa.is_time(span) { 0 } else { doubt() };
        (span, flags)
    }

    /// Leaves both ends for whoever finds the queue's slots after a kill.
    fn keep(&self, hsa: &Hsa, queue: &Queue) {
        for (ticks, system) in self.from.into_iter().zip(self.to) {
            if ticks != 0 && self.is_known && !self.is_broken {
                queue.slots.keep_point(ticks, hsa.nanoseconds(system));
            }
        }
    }

    fn at(&self, tick: u64) -> u64 {
        let ([from, until], [first, last]) = (self.from, self.to);
        if until <= from {
            return first.wrapping_add(tick.wrapping_sub(from));
        }
        let (offset, range) = (u128::from(tick.saturating_sub(from)), u128::from(until - from));
        let span = u128::from(last.saturating_sub(first));
        first.wrapping_add(((offset * span + range / 2) / range) as u64)
    }
}

/// Bytes of the thread's stack. Only what is touched costs memory; out of it the C library takes the threads' own variables of
/// all libraries, and the driver's library and whatever stands in front of it run on it.
const STACK: usize = 1 << 20;

/// Starts the thread, once a process. False where there can be none.
pub(crate) fn start_thread() -> bool {
    if word(word::THREAD).swap(1, Ordering::AcqRel) != 0 {
        return true;
    }
    let _mask = Blocked::all();
    let built = std::thread::Builder::new().name("roctop".into()).stack_size(STACK);
    let Ok(handle) = built.spawn(|| crate::guard::wall((), run)) else {
        word(word::THREAD).store(0, Ordering::Release);
        return false;
    };
    let _ = WORKER.set(handle.thread().clone());
    true
}

/// Runs `body` with all signals blocked, so that a thread that it starts gets none of the program's.
pub(crate) fn without_signals(body: impl FnOnce()) {
    let _mask = Blocked::all();
    body();
}

static WORKER: OnceLock<Thread> = OnceLock::new();

/// Ends the thread's nap: a waiter of the program depends on it.
pub(crate) fn wake() {
    if let Some(worker) = WORKER.get() {
        worker.unpark();
    }
}

/// All signals blocked on this thread, so that a new one inherits the mask; but for those of faults, which somebody in the
/// process may answer (they kill a thread that blocks them).
struct Blocked(libc::sigset_t);

#[expect(unsafe_code, reason = "signal masks")]
impl Blocked {
    fn all() -> Self {
        let mut every = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the set has room.
        unsafe { libc::sigfillset(every.as_mut_ptr()) };
        for fault in [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGILL,
            libc::SIGFPE,
            libc::SIGTRAP,
            libc::SIGSYS,
        ] {
            // SAFETY: the set was filled.
            unsafe { libc::sigdelset(every.as_mut_ptr(), fault) };
        }
        // SAFETY: both sets are valid.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, every.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: zeroed and then filled by the call.
        Self(unsafe { before.assume_init() })
    }
}

#[expect(unsafe_code, reason = "signal masks")]
impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the mask is the one that the thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
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
    let mut nap = SHORTEST_NAP;
    let mut calibration = Calibration::new();
    let mut reckoning = Reckoning::new();
    let mut rings = Rings::default();
    let mut was_recording = control::is_recording();
    loop {
        std::thread::park_timeout(if proxy::is_pending() { POLL } else { nap });
        let Some(process) = process::get() else { return };
        let is_off = word(word::COLLECTOR).load(Ordering::Acquire) == state::OFF;
        if is_off {
            // The program still waits for what this thread passes on.
            match hsa().filter(|_| proxy::is_pending()) {
                Some(hsa) => crate::guard::wall((), || {
                    let _all = queues();
                    copy::harvest(hsa);
                }),
                None => return,
            }
            continue;
        }
        let done = match hsa().filter(|_| state::is_on(word::HSA)) {
            Some(hsa) => crate::guard::wall(0, || {
                let all = queues();
                // Under the lock the answer stands: an end that came before has switched HSA off.
                if !state::is_on(word::HSA) {
                    return 0;
                }
                reckoning.step(hsa, &all);
                pass(hsa, &all)
            }),
            None => 0,
        };
        ROUNDS.fetch_add(1, Ordering::Release);
        nap = if is_busy() && WAITING.load(Ordering::Relaxed) != 0 {
            SHORTEST_NAP / 5
        } else if done > 0 || is_busy() {
            // The faster work completes, the less of it may wait here when the process is killed.
            (SHORTEST_NAP * MANY / (MANY + done as u32)).max(SHORTEST_NAP / 5)
        } else {
            (nap.max(SHORTEST_NAP) * 2).min(LONGEST_NAP)
        };
        IDLE.store(u64::from(nap > SHORTEST_NAP), Ordering::Relaxed);
        calibration.step(process);
        rings.step(process);
        sdk::follow_the_viewer();
        let is_recording = control::is_recording();
        if is_recording != was_recording && word(word::PAUSED).load(Ordering::Relaxed) == 0 {
            collector::switched(is_recording, 1);
        }
        was_recording = is_recording;
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

/// Takes back what a thread of the program's handed down: a processor of its own, or a real-time policy, in which this one
/// would stand in its way.
#[expect(unsafe_code, reason = "a thread's own scheduling")]
fn leave_the_programs_place() {
    let ordinary = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are valid for this policy.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary) };
    if let Some(all) = PROCESSORS.get() {
        // SAFETY: the set is valid.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), all) };
    }
}

/// The processors that the process was given.
static PROCESSORS: OnceLock<libc::cpu_set_t> = OnceLock::new();

/// The process was loaded: no thread is bound yet.
#[expect(unsafe_code, reason = "a thread's own scheduling")]
pub(crate) fn at_load() {
    let mut all = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the set has room for the answer.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), all.as_mut_ptr()) } == 0 {
        // SAFETY: zeroed, and filled by the call.
        let _ = PROCESSORS.set(unsafe { all.assume_init() });
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
