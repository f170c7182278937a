//! Turns completed work into records: one thread for all queues and copies, and a final pass at every end.
//!
//! Nobody waits for that thread ([`worker`]). A thread of the program that waited for the GPU takes completed work
//! itself, so that a sudden end loses little. At the end of a queue, the run-time or the process, the ending thread
//! drains the rest, for a bounded time.

mod affinity;
mod check;
mod clock_interpolation;
mod rate;
mod reckoning;
mod worker;

pub(crate) use self::affinity::{at_load, reset_affinity, without_signals};
pub(crate) use self::clock_interpolation::doubt;
pub(crate) use self::worker::{STACK, before_exit, start_thread, wake};

use self::clock_interpolation::Line;
use self::reckoning::reckon_first;
use super::queue::{Apart, Queue};
use super::{Hsa, copy, driver, hsa, observed, symbol};
use crate::process;
use crate::state::{self, word};
use crate::{clock, collector, thread};
use roctop_ring::layout::counter;
use roctop_ring::record::flag;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time that an end waits for work without progress.
const STALL_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum time that an end waits.
const END_TIMEOUT: Duration = Duration::from_secs(2);
const BATCH: usize = 64;

/// Queues to harvest. The lock is held during a pass, so that an end waits for it.
static QUEUES: Mutex<Vec<&'static Queue>> = Mutex::new(Vec::new());

fn queues() -> MutexGuard<'static, Vec<&'static Queue>> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a queue.
pub(crate) fn begin(queue: &'static Queue) {
    let mut all = queues();
    all.push(queue);
    if let Some(hsa) = hsa() {
        reckon_first(hsa, queue);
    }
    drop(all);
    start_thread();
}

/// Removes and drains a queue. True if nothing of it is in flight.
pub(crate) fn end(queue: &'static Queue) -> bool {
    leave_to_harvester(|| in_flight(queue) == 0);
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

/// Records a queue's work in flight untimed, because it will not be seen to complete. Under the lock.
fn lose(hsa: &Hsa, queue: &'static Queue) {
    lose_until(hsa, queue, queue.head.load(Ordering::Acquire), |_| ());
}

/// As `lose`, before a sequence number; `missed` receives each signal of ours that did not complete.
fn lose_until(hsa: &Hsa, queue: &'static Queue, head: u64, missed: impl Fn(u64)) {
    let tail = queue.tail.load(Ordering::Relaxed);
    for sequence in tail..head {
        let Some(side) = queue.slots.side(sequence) else { break };
        let span = side.watch.look().unwrap_or_default();
        if span == [0; 2] && side.watch.is_waiting() {
            missed(side.watch.handle());
        }
        side.watch.lose();
        let mut recorded = Recorded::default();
        recorded.add(record(hsa, queue, sequence, span, &Line::through(hsa, queue, &[span])));
        recorded.count(queue);
    }
    queue.tail.store(head, Ordering::Release);
    ended(head - tail);
}

/// Records completed dispatches after incomplete ones, and the incomplete ones untimed: nobody will take them later,
/// and without a following witness nothing proves that they are complete. Under the lock.
fn lose_overtaken(hsa: &Hsa, queue: &'static Queue) {
    let (tail, head) = (queue.tail.load(Ordering::Relaxed), queue.head.load(Ordering::Acquire));
    let is_done = |sequence: &u64| {
        queue
            .slots
            .side(*sequence)
            .is_some_and(|side| side.watch.look().is_some())
    };
    if let Some(last) = (tail..head).rev().find(is_done) {
        lose_until(hsa, queue, last + 1, |_| ());
    }
}

/// The run-time starts: drops queues of an earlier one, or of the parent process.
pub(crate) fn forget_all() {
    if let Ok(mut all) = QUEUES.try_lock() {
        all.clear();
    }
    ENDED.store(BEGUN.load(Ordering::Relaxed), Ordering::Relaxed);
    UNSEEN.store(0, Ordering::Relaxed);
    BARRED.store(0, Ordering::Relaxed);
    rate::forget_all();
}

/// The program saw work complete: harvest too, unless another thread does.
#[inline]
fn now() {
    if state::is_on(word::HSA) && is_busy() {
        take_now();
    }
}

/// Takes completed work, if this thread can record it; otherwise the harvesting thread does, soon.
#[inline(never)]
pub(crate) fn take_now() {
    if !thread::can_record() {
        wake();
        return;
    }
    observed::look_again();
    if let (Some(hsa), Ok(all)) = (hsa(), QUEUES.try_lock()) {
        pass(hsa, &all);
    }
}

/// Numbers of dispatches and copies begun, by the program's threads, and recorded, mostly by the harvester.
static BEGUN: Apart<AtomicU64> = Apart::new(AtomicU64::new(0));
static ENDED: Apart<AtomicU64> = Apart::new(AtomicU64::new(0));
/// 1 while the thread sleeps for long.
static IDLE: Apart<AtomicU64> = Apart::new(AtomicU64::new(0));

/// Number of the program's threads in a call that waits for the GPU.
static WAITING: AtomicU64 = AtomicU64::new(0);

/// A thread begins to wait: it needs no CPU, so the harvest may be more frequent.
#[inline]
pub(crate) fn wait_begins() {
    WAITING.fetch_add(1, Ordering::Relaxed);
}

/// A thread's wait has ended: takes what it waited for.
#[inline]
pub(crate) fn wait_ends() {
    WAITING.fetch_sub(1, Ordering::Relaxed);
    now();
}

/// 1 while no work may begin.
static BARRED: Apart<AtomicU64> = Apart::new(AtomicU64::new(0));
/// 1 once work began whose end nobody will see.
static UNSEEN: AtomicU64 = AtomicU64::new(0);

/// Runs `body` while no GPU works, and delays new work meanwhile. `None` if a GPU works, or may.
pub(crate) fn while_idle<T>(body: impl FnOnce() -> T) -> Option<T> {
    // SeqCst, as in `hold`: either this sees the work, or the work sees this.
    if BARRED.swap(1, Ordering::SeqCst) != 0 {
        return None;
    }
    let begun = BEGUN.load(Ordering::SeqCst);
    let is_idle = ENDED.load(Ordering::SeqCst) == begun && UNSEEN.load(Ordering::SeqCst) == 0;
    let done = is_idle.then(body);
    BARRED.store(0, Ordering::SeqCst);
    done
}

/// Delays new work while that is required.
#[cold]
fn hold() {
    while BARRED.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
}

/// Work begins whose end nobody will see.
#[cold]
pub(crate) fn began_unseen() {
    UNSEEN.store(1, Ordering::SeqCst);
    hold();
}

/// Counts work that begins.
#[inline]
pub(crate) fn began(count: u64) {
    BEGUN.fetch_add(count, Ordering::SeqCst);
    if BARRED.load(Ordering::SeqCst) != 0 {
        hold();
    }
    if IDLE.load(Ordering::Relaxed) != 0 && IDLE.swap(0, Ordering::Relaxed) != 0 {
        wake();
    }
}

/// Counts work that was recorded, or never will be.
#[inline]
pub(crate) fn ended(count: u64) {
    ENDED.fetch_add(count, Ordering::Relaxed);
}

fn is_busy() -> bool {
    ENDED.load(Ordering::Relaxed) != BEGUN.load(Ordering::Relaxed)
}

/// Kind of end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Shutdown of the run-time: it is not called any more.
    Shutdown,
    /// Exit of the process.
    Exit,
}

/// 1 once the end of the process waited without success: it waits only once.
static GAVE_UP: AtomicU64 = AtomicU64::new(0);

/// Drains everything.
pub(crate) fn last(which: End) {
    let Some(hsa) = hsa().filter(|_| state::is_on(word::HSA)) else {
        return;
    };
    observed::look_again();
    leave_to_harvester(|| !is_busy());
    // Bounded, because a signal handler may have ended the process in the middle of a pass.
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
        // Work taken by a thread that cannot record is lost; if left, the viewer finds it in the flight file.
        if which == End::Exit && thread::can_record() {
            all.iter().for_each(|queue| lose_overtaken(hsa, queue));
        }
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
        clock::set_hsa_time(None);
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
        if progress.elapsed() > STALL_TIMEOUT || start.elapsed() > END_TIMEOUT {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// If this thread cannot record, work that it took would be lost: it waits instead, bounded like a drain, until the
/// harvesting thread has taken all.
fn leave_to_harvester(is_done: impl Fn() -> bool) {
    if thread::can_record() {
        return;
    }
    let mut seen = ENDED.load(Ordering::Relaxed);
    drain(
        || {
            wake();
            let before = std::mem::replace(&mut seen, ENDED.load(Ordering::Relaxed));
            seen.wrapping_sub(before) as usize
        },
        is_done,
    );
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

/// Takes a queue's completed work in order; stops at the first incomplete dispatch.
fn queue_pass(hsa: &Hsa, queue: &'static Queue) -> usize {
    let mut done = 0;
    loop {
        let tail = queue.tail.load(Ordering::Relaxed);
        // Acquire: pairs with the handler's release; the slots are visible.
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
            if let Some(last) = check::overdue(queue, tail, head) {
                lose_until(hsa, queue, last, |signal| check::never_came(queue, signal));
                done += (last - tail) as usize;
                continue;
            }
            if done == 0 && tail != head {
                check::wait(queue, tail);
            }
            return done;
        };
        let line = Line::through(hsa, queue, spans);
        line.keep(hsa, queue);
        let mut recorded = Recorded::default();
        for (span, sequence) in spans.iter().zip(tail..) {
            recorded.add(record(hsa, queue, sequence, *span, &line));
        }
        recorded.count(queue);
        // Release: pairs with the handler's acquire; the slots may be reused.
        queue.tail.store(tail + count as u64, Ordering::Release);
        ended(count as u64);
        done += count;
    }
}

/// Dispatches recorded since they were last counted. The words that count them are on cache lines that launching threads
/// write.
#[derive(Default)]
struct Recorded {
    timed: u64,
    untimed: u64,
}

impl Recorded {
    /// `is_timed` as [`record`] returns it.
    fn add(&mut self, is_timed: Option<bool>) {
        self.timed += u64::from(is_timed == Some(true));
        self.untimed += u64::from(is_timed == Some(false));
    }

    fn count(&self, queue: &Queue) {
        queue.count_completed(self.timed + self.untimed, self.untimed);
        if let Some(process) = process::get() {
            for (at, by) in [(counter::TIMED, self.timed), (counter::UNTIMED, self.untimed)] {
                if by > 0 {
                    process.count(at, by);
                }
            }
        }
    }
}

/// Whether the dispatch has a time; `None` if there is no record of it.
fn record(hsa: &Hsa, queue: &Queue, sequence: u64, span: [u64; 2], line: &Line) -> Option<bool> {
    // The head was read with acquire; the handler does not touch the slot before the tail moves.
    let (side, kept) = (queue.slots.side(sequence)?, queue.slots.record(sequence)?);
    let mut record = kept.kept();
    let before = side.watch.keep_span(span);
    side.watch.free();
    if record.dispatch_id == 0 {
        // It only showed the progress of the hardware.
        return None;
    }
    let ticks = span;
    // Times of the signal's previous dispatch are not times of this one.
    let is_stale = before == Some(span) && span[1] != 0;
    let span = if is_stale { [0; 2] } else { span };
    let (span, mut flags) = line.times(hsa, queue, span);
    [record.begin, record.end] = span;
    let is_timed = flags & flag::UNTIMED == 0;
    if (check::is_due(queue) || is_stale || ticks == [0; 2]) && before.is_some() {
        let ticks = (!is_stale).then_some(ticks);
        check::look(queue, side.watch.handle(), ticks, record.submit, is_timed);
    }
    if is_timed {
        driver::saw(record.begin, record.end, record.submit);
    }
    if symbol::is_internal(record.kernel_object) {
        flags |= flag::INTERNAL;
    }
    kept.take();
    collector::dispatch(&record, flags);
    kept.free();
    queue.completed(sequence, &record);
    Some(is_timed)
}
