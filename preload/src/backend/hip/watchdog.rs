//! Launches that no queue has seen: the run-time makes its queues in a way that the collector does not know.
//!
//! Looked at when a wait for the GPU has ended well, at the first ones and at one in many later: what this thread launched by then
//! must have come by the queues of the process. Where it has not, HIP's own records become the source of dispatches for the
//! rest, and interception records none, so that none is there twice. What was missed is counted and reported.
//!
//! Only what is certain counts: launches of this thread against kernels of the whole process, without failed ones. From the
//! first capture on nothing is certain: a launch may go into a graph, and a graph may have no kernel.

use super::{cooperative, tracer};
use crate::backend::sdk;
use crate::level::{self, Level, Reason};
use crate::process::{self, Process};
use crate::state::{self, word};
use crate::thread::Thread;
use crate::{backend::hsa, control};
use hip_sys::function::{FUNCTIONS, Function};
use roctop_ring::layout::counter;
use roctop_ring::record::{Domain, status};
use roctop_ring::session::{source, wanted};
use roctop_ring::sync::{AtomicU64, Ordering};

/// Waits of the process that ended well.
static WAITS: AtomicU64 = AtomicU64::new(0);
/// So many waits are looked at, and later one in so many.
const FIRST: u64 = 64;
/// Launches that failed, and kernels that came while none were wanted.
static FAILED: AtomicU64 = AtomicU64::new(0);
static UNWANTED: AtomicU64 = AtomicU64::new(0);
/// Launches that were missing when it was last looked: they count when they are missing once more.
static MISSING: AtomicU64 = AtomicU64::new(0);
/// 1 once it was reported.
static REPORTED: AtomicU64 = AtomicU64::new(0);
/// 1 once HIP's own records are the source.
static SWITCHED: AtomicU64 = AtomicU64::new(0);

/// Are HIP's own records the source, because queues were not seen?
#[inline]
pub(crate) fn has_switched() -> bool {
    SWITCHED.load(Ordering::Relaxed) != 0
}

/// A call failed: it launched nothing.
#[cold]
pub(super) fn failed(function: &Function) {
    if function.effect.launches() {
        FAILED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Kernels came that were not wanted.
pub(crate) fn unwanted(count: u64) {
    UNWANTED.fetch_add(count, Ordering::Relaxed);
}

/// A wait of this thread ended well.
#[inline]
pub(super) fn wait_ended(thread: &Thread) {
    let waits = WAITS.load(Ordering::Relaxed);
    // No addition: a count that is a little less does no harm.
    WAITS.store(waits + 1, Ordering::Relaxed);
    if waits < FIRST || waits.is_multiple_of(FIRST) {
        look(thread);
    }
}

#[cold]
fn look(thread: &Thread) {
    let is_ours =
        state::is_on(word::HSA) && control::dispatch_source() == source::AUTO && level::current() <= Level::Program;
    let is_done = cooperative::has_captured() || REPORTED.load(Ordering::Relaxed) != 0;
    if !is_ours || is_done || sdk::is_counting() || !control::is_wanted(wanted::DISPATCH) {
        return;
    }
    let Some(process) = process::get() else { return };
    let launched = launched_by(thread).saturating_sub(FAILED.load(Ordering::Relaxed));
    let came = process.counted(counter::SUBMITTED) + UNWANTED.load(Ordering::Relaxed);
    let missing = launched.saturating_sub(came);
    let before = MISSING.swap(missing, Ordering::Relaxed);
    let has_queue = hsa::interception::has_queue();
    if missing > 0 && (!has_queue || before > 0) {
        switch(process, missing, has_queue);
    }
}

/// Launches of this thread.
fn launched_by(thread: &Thread) -> u64 {
    // Some have two symbols, and one number.
    let is_first = |function: &&Function| function.symbol.trim_end_matches('\0') == function.name;
    let launches = FUNCTIONS.iter().filter(|function| function.effect.launches());
    let calls = |function: &Function| thread.entry().calls(Domain::HIP, function.op);
    launches.filter(is_first).map(calls).sum()
}

/// HIP's own records are the source from now on, where it has them.
fn switch(process: &Process, missing: u64, has_queue: bool) {
    if REPORTED.swap(1, Ordering::AcqRel) != 0 {
        return;
    }
    let has_records = tracer::keep();
    SWITCHED.store(u64::from(has_records), Ordering::Release);
    level::step_down(Level::Program, Reason::Unseen, 0);
    let where_to = if has_queue {
        "fewer kernels came by HSA's queues than were launched"
    } else {
        "kernels were launched, and HSA made no queue that is seen"
    };
    let then = if has_records {
        "HIP's own records, without geometry and queue, are the source from now on"
    } else {
        "HIP has no records of its own, so those are not recorded either"
    };
    process.say(
        status::INCOMPLETE,
        missing,
        &format!("{where_to}: {missing} or more are not recorded; {then}"),
    );
}
