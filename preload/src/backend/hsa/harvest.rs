//! Turns completed work into records: by one thread for all queues and copies, and a last time at every end.
//!
//! Nobody waits for that thread ([`worker`]). A thread of the program that waited for the GPU takes what is done itself, so
//! that a sudden end loses little. At the end of a queue, of the run-time, or of the process the thread that ends it
//! drains what is left, for a bounded time.

mod affinity;
mod check;
mod clock_interpolation;
mod reckoning;
mod worker;

pub(crate) use self::affinity::{at_load, without_signals};
pub(crate) use self::clock_interpolation::doubt;
pub(crate) use self::worker::{before_exit, start_thread, wake};

use self::clock_interpolation::Line;
use self::reckoning::reckon_all;
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

/// How long an end waits for work that makes no progress.
const STALL_TIMEOUT: Duration = Duration::from_millis(100);
/// How long an end waits at all.
const END_TIMEOUT: Duration = Duration::from_secs(2);
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

/// A queue ends: drains it. True when nothing of it is in flight.
pub(crate) fn end(queue: &'static Queue) -> bool {
    leave_to_the_thread(|| in_flight(queue) == 0);
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
    lose_until(hsa, queue, queue.head.load(Ordering::Acquire), |_| ());
}

/// The same before a sequence number; `missed` gets each signal of ours that did not come.
fn lose_until(hsa: &Hsa, queue: &'static Queue, head: u64, missed: impl Fn(u64)) {
    let tail = queue.tail.load(Ordering::Relaxed);
    for sequence in tail..head {
        let Some(side) = queue.slots.side(sequence) else { break };
        let span = side.watch.look().unwrap_or_default();
        if span == [0; 2] && side.watch.is_waiting() {
            missed(side.watch.handle());
        }
        side.watch.lose();
        record(hsa, queue, sequence, span, &Line::through(hsa, queue, &[span]));
    }
    queue.tail.store(head, Ordering::Release);
    ended(head - tail);
}

/// Records what a queue completed behind dispatches that were not seen to complete, and these without times: nobody takes
/// them any more, and without a witness behind them nothing proves that they are complete. Under the lock.
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

/// The run-time starts: queues of an earlier one, or of a parent, are none of this one's.
pub(crate) fn forget_all() {
    if let Ok(mut all) = QUEUES.try_lock() {
        all.clear();
    }
    ENDED.store(BEGUN.load(Ordering::Relaxed), Ordering::Relaxed);
    UNSEEN.store(0, Ordering::Relaxed);
    BARRED.store(0, Ordering::Relaxed);
}

/// The program learned that work is done: so do we, when nobody else is at it.
#[inline]
fn now() {
    if state::is_on(word::HSA) && is_busy() {
        take_now();
    }
}

/// Takes what is complete, when this thread can record it; else the harvesting thread does, soon.
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

/// 1 while nothing may begin.
static BARRED: Apart<AtomicU64> = Apart::new(AtomicU64::new(0));
/// 1 once work began of which nobody will know when it ends.
static UNSEEN: AtomicU64 = AtomicU64::new(0);

/// Runs `body` while no GPU is at work, and keeps work back meanwhile. None where one is, or may be.
pub(crate) fn while_idle<T>(body: impl FnOnce() -> T) -> Option<T> {
    // SeqCst, as in `hold`: either this sees the work or the work sees this.
    if BARRED.swap(1, Ordering::SeqCst) != 0 {
        return None;
    }
    let begun = BEGUN.load(Ordering::SeqCst);
    let is_idle = ENDED.load(Ordering::SeqCst) == begun && UNSEEN.load(Ordering::SeqCst) == 0;
    let done = is_idle.then(body);
    BARRED.store(0, Ordering::SeqCst);
    done
}

/// Work is about to begin: not now.
#[cold]
fn hold() {
    while BARRED.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
}

/// Work begins that nobody will see to end.
#[cold]
pub(crate) fn began_unseen() {
    UNSEEN.store(1, Ordering::SeqCst);
    hold();
}

/// Work begins.
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
    leave_to_the_thread(|| !is_busy());
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
        // What a thread takes that cannot record is lost; the viewer finds it in the flight file.
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

/// What this thread took would be lost when it cannot record: then it waits, bounded as a drain is, until the harvesting
/// thread has taken all.
fn leave_to_the_thread(is_done: impl Fn() -> bool) {
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
    let before = side.watch.keep_span(span);
    side.watch.free();
    if record.dispatch_id == 0 {
        // It told how far the hardware has come, no more.
        return;
    }
    let ticks = span;
    // Those of the dispatch that had the signal before are none.
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
    queue.completed(Some(sequence), &record);
    if !is_timed {
        queue.untimed();
    }
    if let Some(process) = process::get() {
        process.count(if is_timed { counter::TIMED } else { counter::UNTIMED }, 1);
    }
}
