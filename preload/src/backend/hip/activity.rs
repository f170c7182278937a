//! HIP's own records as the source of dispatches. They are used if the user requests it (`--dispatch-source hip`), if
//! HSA's tables did not arrive although HIP works, or if launches bypassed HSA's known queues ([`super::watchdog`]).
//!
//! Such a record has no geometry and no queue, and up to 5.7 each one costs an interrupt. The run-time's own kernels
//! have none. Not supported: 5.2 and 5.3.0, whose different interface adds 0.5 µs to every launch.

#![expect(unsafe_code, reason = "reads the run-time's record by offsets")]

use super::watchdog;
use crate::backend::hsa;
use crate::level::{self, Level};
use crate::origin::Origin;
use crate::state::{self, word};
use crate::{clock, collector, control, process, thread};
use hip_sys::function::FUNCTIONS;
use hip_sys::tracer::{ACTIVITY_BATCH, ACTIVITY_KERNEL, Activity, OP_DISPATCH, SMALLEST_POINTER};
use roctop_ring::layout::counter;
use roctop_ring::record::{Dispatch, Domain};
use roctop_ring::session::{source, wanted};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_void};
use std::time::{Duration, Instant};

/// Source of a dispatch record: HIP's activity record.
const ACTIVITY: u16 = 2;
/// Number of launches that are kept until their records arrive.
const LAUNCHES: usize = 64 * 1024;
/// Offset between the first entries of two threads: a golden ratio of the table, so that any number of threads are far
/// apart.
const THREAD_OFFSET: usize = 40_503;
/// Time that the end of the process waits after the last record, and in total.
const QUIET_TIME: Duration = Duration::from_millis(20);
const MAX_SETTLE_TIME: Duration = Duration::from_secs(1);

/// Data of a launch: correlation id, word of an [`Origin`], submit time.
static NOTES: [[AtomicU64; 3]; LAUNCHES] = [const { [const { AtomicU64::new(0) }; 3] }; LAUNCHES];
/// Number of records received.
static RECORDS: AtomicU64 = AtomicU64::new(0);
/// Number of launches for which records were requested.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// Whether HIP's records are the source. Called inside a HIP call, when HSA has started if it ever will.
#[inline]
pub(crate) fn is_source() -> bool {
    match control::dispatch_source() {
        source::HIP => true,
        source::HSA => false,
        _ => {
            watchdog::has_switched()
                || (word(word::HSA).load(Ordering::Relaxed) == state::COLD && level::current() < Level::Plain)
        }
    }
}

/// HIP asks whether records of an operation are wanted. The answer is no inside copies and fills, whose kernels are the
/// run-time's own: HIP 6.4.3 crashes on a yes in a small copy to unpinned memory.
pub(crate) fn asks(op: u32) -> bool {
    if op != OP_DISPATCH || !is_source() || !control::is_wanted(wanted::DISPATCH) || is_moving() {
        return false;
    }
    ASKED.fetch_add(1, Ordering::Relaxed);
    note();
    true
}

/// HIP's functions that copy or fill, one bit per operation.
static MOVES: [AtomicU64; 32] = [const { AtomicU64::new(0) }; 32];

/// Finds the functions that copy or fill.
pub(crate) fn learn() {
    const MOVING: [&str; 3] = ["hipMemcpy", "hipMemset", "hipDrvMemcpy"];
    let moving = FUNCTIONS
        .iter()
        .filter(|function| function.domain == hip_sys::function::Domain::Hip)
        .filter(|function| MOVING.iter().any(|name| function.name.starts_with(name)));
    for function in moving {
        if let Some(word) = MOVES.get(usize::from(function.op / 64)) {
            word.fetch_or(1 << (function.op % 64), Ordering::Relaxed);
        }
    }
}

/// Whether this thread is inside a call that copies or fills.
fn is_moving() -> bool {
    let innermost = thread::existing().and_then(|thread| thread.entry().innermost_call());
    innermost.is_some_and(|(domain, op)| {
        let word = MOVES.get(usize::from(op / 64));
        domain == Domain::HIP && word.is_some_and(|word| word.load(Ordering::Relaxed) & 1 << (op % 64) != 0)
    })
}

/// Stores the launching call of this thread. Up to 6.4 HIP asks again when it delivers; then nothing is stored, or the
/// waiting call.
pub(crate) fn note() {
    let Some(thread) = thread::existing() else { return };
    let correlation = thread.current.get();
    if correlation == 0 {
        return;
    }
    if let Some([id, who, submit]) = NOTES.get(place(correlation)) {
        id.store(0, Ordering::Relaxed);
        who.store(thread.origin().word(), Ordering::Relaxed);
        submit.store(clock::now(), Ordering::Relaxed);
        id.store(correlation, Ordering::Release);
    }
}

pub(crate) fn noted(correlation: u64) -> [u64; 2] {
    match NOTES.get(place(correlation)) {
        Some([id, who, submit]) if correlation != 0 && id.load(Ordering::Acquire) == correlation => {
            [who.load(Ordering::Relaxed), submit.load(Ordering::Relaxed)]
        }
        _ => [0, 0],
    }
}

fn place(correlation: u64) -> usize {
    // A thread's ids are consecutive; the upper bits identify the thread.
    (correlation as usize).wrapping_add(((correlation >> 40) as usize).wrapping_mul(THREAD_OFFSET)) % LAUNCHES
}

/// Handles a record.
pub(crate) fn record(op: u32, data: *const c_void) {
    // Smaller values are markers of newer releases.
    if op != OP_DISPATCH || (data as usize) < SMALLEST_POINTER || !is_source() {
        return;
    }
    // SAFETY: the run-time passes a record that is valid during the call.
    let record = unsafe { &*data.cast::<Activity>() };
    if ![ACTIVITY_KERNEL, ACTIVITY_BATCH].contains(&record.kind) || record.kernel_name.is_null() {
        return;
    }
    let Some(process) = process::get() else { return };
    let [who, submit] = noted(record.correlation);
    // Its field `name` has no room for a site.
    let origin = Origin::of(who);
    process.count(counter::TIMED, 1);
    RECORDS.fetch_add(1, Ordering::Relaxed);
    let dispatch = Dispatch {
        begin: record.begin,
        end: record.end,
        submit,
        correlation: record.correlation,
        dispatch_id: process.submit(1) + 1,
        source: ACTIVITY,
        agent: hsa::hsa().map_or(0, |hsa| hsa.agents.by_node(record.device as u32)),
        stream: origin.stream(),
        tid: origin.tid(),
        // SAFETY: not null, and a terminated text that is valid during the call.
        name: process.intern(unsafe { CStr::from_ptr(record.kernel_name) }.to_bytes()),
        ..Dispatch::default()
    };
    let times = [dispatch.begin, dispatch.end];
    let flags = match hsa::hsa() {
        Some(hsa) if !times.contains(&0) && !hsa.is_time(times) => hsa::harvest::doubt(),
        _ => 0,
    };
    collector::dispatch(&dispatch, flags);
}

/// Waits for late records at the end of the process.
pub(crate) fn settle() {
    let start = Instant::now();
    let (mut seen, mut since) = (RECORDS.load(Ordering::Relaxed), start);
    while ASKED.load(Ordering::Relaxed) != 0 && since.elapsed() < QUIET_TIME && start.elapsed() < MAX_SETTLE_TIME {
        std::thread::sleep(Duration::from_micros(500));
        let now = RECORDS.load(Ordering::Relaxed);
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
}
