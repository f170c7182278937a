//! Cooperative launches whose queue cannot be intercepted (HSA 6.2 and later): by their own functions, by a launch
//! attribute, and by a graph that contains such a kernel.
//!
//! HIP attaches a signal to a packet if somebody wants its time, and the collector reads the times there
//! (`backend::hsa::observed`). HIP asks whether its own records are wanted; inside these calls alone, the answer is
//! yes. The record itself is not used: it begins with the run-time's own kernel before the program's, and arrives late.

use super::tracer;
use crate::backend::hsa;
use crate::collector::Call;
use crate::thread;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Number of threads in such a launch. Only these take the lock.
static LAUNCHING: Mutex<u32> = Mutex::new(0);

/// Number of streams being captured into a graph. A capture that HIP ended by itself stays counted.
static CAPTURES: AtomicU64 = AtomicU64::new(0);
/// 1 once a stream was captured.
static CAPTURED: AtomicU64 = AtomicU64::new(0);
/// 1 once a graph may contain a cooperative kernel. HIP is not asked for signals at launches of other graphs, whose
/// packets it prepares in advance.
static IN_GRAPH: AtomicU64 = AtomicU64::new(0);

/// Whether HIP must attach signals to these kernels.
fn is_needed() -> bool {
    hsa::hsa().is_some_and(|hsa| hsa.layout.shares_cooperative_queue())
}

/// As `is_needed`, for a cooperative launch, which may be captured.
pub(crate) fn is_needed_for_launch() -> bool {
    if CAPTURES.load(Ordering::Relaxed) != 0 {
        in_graph();
    }
    is_needed()
}

/// As `is_needed`, for the launch of a graph.
pub(crate) fn is_needed_for_graph() -> bool {
    IN_GRAPH.load(Ordering::Relaxed) != 0 && is_needed()
}

/// A graph contains a cooperative kernel.
pub(crate) fn in_graph() {
    IN_GRAPH.store(1, Ordering::Relaxed);
}

/// Whether a stream is being captured.
#[inline]
pub(crate) fn is_capturing() -> bool {
    CAPTURES.load(Ordering::Relaxed) != 0
}

/// Whether launches may have been captured into a graph.
pub(crate) fn has_captured() -> bool {
    CAPTURED.load(Ordering::Relaxed) != 0
}

/// Capture of a stream begins.
pub(crate) fn capture_begins() {
    CAPTURED.store(1, Ordering::Relaxed);
    CAPTURES.fetch_add(1, Ordering::Relaxed);
}

/// Capture of a stream ends.
pub(crate) fn capture_ends() {
    let one_less = |captures: u64| captures.checked_sub(1);
    let _ = CAPTURES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
}

/// A cooperative launch begins.
#[cold]
pub(crate) fn begin(call: &Call) {
    call.thread.cooperative.set(call.correlation);
    let mut launching = LAUNCHING.lock().unwrap_or_else(PoisonError::into_inner);
    *launching += 1;
    if *launching == 1 {
        tracer::arm();
    }
}

/// A cooperative launch returned.
#[cold]
pub(crate) fn end() {
    let mut launching = LAUNCHING.lock().unwrap_or_else(PoisonError::into_inner);
    *launching = launching.saturating_sub(1);
    if *launching == 0 {
        tracer::disarm();
    }
}

/// Whether this thread is in a cooperative launch.
#[inline]
pub(crate) fn is_launching() -> bool {
    thread::existing().is_some_and(|thread| thread.cooperative.get() != 0)
}
