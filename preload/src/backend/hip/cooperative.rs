//! Cooperative launches where their queue cannot be intercepted (HSA of release 6.2 and later).
//!
//! HIP's own activity records are asked for, inside these calls alone, and joined by the correlation id with what the
//! call said of its geometry. HIP delivers them late, so the end of the process waits for them, for a bounded time.
//!
//! Absent on purpose: the run-time's own kernel on that queue (`__amd_rocclr_gwsInit`), for which there is no record.

#![expect(unsafe_code, reason = "reads the run-time's record by offsets")]

use super::tracer;
use crate::backend::hsa;
use crate::collector::{self, Call};
use crate::process;
use hip_sys::tracer::{ACTIVITY_KERNEL, Activity};
use roctop_ring::layout::counter;
use roctop_ring::record::Dispatch;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Source of a dispatch record: HIP's activity record.
const ACTIVITY: u16 = 2;
const MOST_WAITING: usize = 1024;
const PATIENCE: Duration = Duration::from_secs(1);

/// What launches said, until their records come. Only cooperative launches take the lock.
static WAITING: Mutex<Vec<Dispatch>> = Mutex::new(Vec::new());
/// Their number.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Must these launches be learned from HIP's records?
pub(crate) fn is_needed() -> bool {
    hsa::hsa().is_some_and(|hsa| hsa.layout.shares_cooperative_queue())
}

/// A cooperative launch begins; grid in work-groups.
pub(crate) fn begin(call: &Call, grid: [u32; 3], workgroup: [u32; 3]) {
    let size = |axis: usize| {
        let of = |sizes: [u32; 3]| sizes.get(axis).copied().unwrap_or(0);
        of(grid).wrapping_mul(of(workgroup))
    };
    let [workgroup_x, workgroup_y, workgroup_z] = workgroup.map(|length| length as u16);
    let launch = Dispatch {
        submit: call.start,
        correlation: call.correlation,
        grid_x: size(0),
        grid_y: size(1),
        grid_z: size(2),
        workgroup_x,
        workgroup_y,
        workgroup_z,
        source: ACTIVITY,
        stream: call.thread.stream.get(),
        tid: call.thread.tid(),
        ..Dispatch::default()
    };
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if waiting.len() >= MOST_WAITING {
        waiting.remove(0);
    }
    waiting.push(launch);
    COUNT.store(waiting.len() as u64, Ordering::Relaxed);
    if let Some(process) = process::get() {
        process.count(counter::SUBMITTED, 1);
    }
}

/// The launch failed: there will be no record.
#[cold]
#[inline(never)]
pub(crate) fn cancel(correlation: u64) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.retain(|launch| launch.correlation != correlation);
    COUNT.store(waiting.len() as u64, Ordering::Relaxed);
    if waiting.is_empty() {
        tracer::disarm();
    }
    if let Some(process) = process::get() {
        process.count(counter::SUBMITTED, u64::MAX);
    }
}

/// Is a launch under way or its record outstanding? Then HIP's questions are answered with yes: up to 6.4 it asks again
/// when it delivers, on any thread. Records of other work carry no correlation id and are passed over.
#[inline]
pub(crate) fn is_waiting() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// A record came.
pub(crate) fn record(data: *const c_void) {
    // SAFETY: the run-time passes a record that is valid during the call.
    let record = unsafe { &*data.cast::<Activity>() };
    if record.kind != ACTIVITY_KERNEL {
        return;
    }
    let Some(process) = process::get() else { return };
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let at = waiting
        .iter()
        .position(|launch| launch.correlation == record.correlation);
    let Some(mut dispatch) = at.map(|at| waiting.swap_remove(at)) else {
        return;
    };
    COUNT.store(waiting.len() as u64, Ordering::Relaxed);
    drop(waiting);
    dispatch.begin = record.begin;
    dispatch.end = record.end;
    dispatch.source = ACTIVITY;
    dispatch.dispatch_id = process.dispatches.fetch_add(1, Ordering::Relaxed) + 1;
    dispatch.agent = hsa::hsa().map_or(0, |hsa| hsa.agents.by_node(record.device as u32));
    if !record.kernel_name.is_null() {
        // SAFETY: not null, and a terminated text that is valid during the call.
        dispatch.name = process.intern(unsafe { CStr::from_ptr(record.kernel_name) }.to_bytes());
    }
    process.count(counter::TIMED, 1);
    if !is_waiting() {
        tracer::disarm();
    }
    collector::dispatch(&dispatch, 0);
}

/// Waits for the records that were promised, at the end of the process.
pub(crate) fn settle() {
    let start = Instant::now();
    while is_waiting() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_micros(200));
    }
}
