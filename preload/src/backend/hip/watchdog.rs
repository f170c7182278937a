//! Detects launches that no known queue received, because the run-time creates queues in an unknown way.
//!
//! The check runs when a wait for the GPU has succeeded: at the first waits, later at one in many. By then this
//! thread's launches must have passed through the queues of the process. If not, HIP's own records become the source of
//! dispatches, and interception stops recording, so that no kernel is recorded twice. Missed launches are counted and
//! reported.
//!
//! Only certain facts count: this thread's successful launches against kernels of the whole process. After the first
//! capture nothing is certain: a launch may go into a graph, and a graph may have no kernel.

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

/// Successful waits of the process.
static WAITS: AtomicU64 = AtomicU64::new(0);
/// Number of first waits that are checked, and interval of later checks.
const FIRST_CHECKS: u64 = 64;
/// Failed launches, and kernels that arrived while none were wanted.
static FAILED: AtomicU64 = AtomicU64::new(0);
static UNWANTED: AtomicU64 = AtomicU64::new(0);
/// Missing launches at the last check: they count if they are still missing at the next.
static MISSING: AtomicU64 = AtomicU64::new(0);
/// 1 once a report was made.
static REPORTED: AtomicU64 = AtomicU64::new(0);
/// 1 once HIP's own records are the source.
static SWITCHED: AtomicU64 = AtomicU64::new(0);

/// Whether HIP's own records are the source because of unseen queues.
#[inline]
pub(crate) fn has_switched() -> bool {
    SWITCHED.load(Ordering::Relaxed) != 0
}

/// Counts a failed call, which launched nothing.
#[cold]
pub(super) fn failed(function: &Function) {
    if function.effect.launches() {
        FAILED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts kernels that were not wanted.
pub(crate) fn unwanted(count: u64) {
    UNWANTED.fetch_add(count, Ordering::Relaxed);
}

/// A wait of this thread succeeded.
#[inline]
pub(super) fn wait_ended(thread: &Thread) {
    let waits = WAITS.load(Ordering::Relaxed);
    // Not an atomic addition: a slightly low count is harmless.
    WAITS.store(waits + 1, Ordering::Relaxed);
    if waits < FIRST_CHECKS || waits.is_multiple_of(FIRST_CHECKS) {
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

/// Number of this thread's launches.
fn launched_by(thread: &Thread) -> u64 {
    // Some functions have two symbols and one number.
    let is_first = |function: &&Function| function.symbol.trim_end_matches('\0') == function.name;
    let launches = FUNCTIONS.iter().filter(|function| function.effect.launches());
    let calls = |function: &Function| thread.entry().calls(Domain::HIP, function.op);
    launches.filter(is_first).map(calls).sum()
}

/// Makes HIP's own records the source, if it has any.
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
        "HIP has no dispatch records that can be used, so those are not recorded either"
    };
    process.say(
        status::INCOMPLETE,
        missing,
        &format!("{where_to}: {missing} or more are not recorded; {then}"),
    );
}
