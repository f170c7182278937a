//! Cooperative launches where their queue cannot be intercepted (HSA of release 6.2 and later): by their own functions, by an
//! attribute of the launch, and from a graph that has such a kernel.
//!
//! HIP gives a packet a signal when somebody wants its time, and the times are read there
//! (`backend::hsa::observed`). So HIP's question whether its own records are wanted is answered with yes inside these
//! calls alone. The record itself is not used: it begins with the run-time's own kernel in front of the program's, and
//! comes late.

use super::tracer;
use crate::backend::hsa;
use crate::collector::Call;
use crate::thread;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Threads in such a launch. Only they take the lock.
static LAUNCHING: Mutex<u32> = Mutex::new(0);

/// Streams whose work goes into a graph. A capture that HIP ended by itself stays counted.
static CAPTURES: AtomicU64 = AtomicU64::new(0);
/// 1 once there was such a stream.
static CAPTURED: AtomicU64 = AtomicU64::new(0);
/// 1 when a graph may have a cooperative kernel. HIP is not asked for signals at other graphs' launches, which it makes in
/// advance.
static IN_GRAPH: AtomicU64 = AtomicU64::new(0);

/// Must HIP be made to give these kernels signals?
fn is_needed() -> bool {
    hsa::hsa().is_some_and(|hsa| hsa.layout.shares_cooperative_queue())
}

/// The same for a cooperative launch, which may be captured.
pub(crate) fn is_needed_for_launch() -> bool {
    if CAPTURES.load(Ordering::Relaxed) != 0 {
        in_graph();
    }
    is_needed()
}

/// The same for the launch of a graph.
pub(crate) fn is_needed_for_graph() -> bool {
    IN_GRAPH.load(Ordering::Relaxed) != 0 && is_needed()
}

/// A graph has a cooperative kernel.
pub(crate) fn in_graph() {
    IN_GRAPH.store(1, Ordering::Relaxed);
}

/// May launches have gone into a graph?
pub(crate) fn has_captured() -> bool {
    CAPTURED.load(Ordering::Relaxed) != 0
}

/// A stream's work goes into a graph from now on.
pub(crate) fn capture_begins() {
    CAPTURED.store(1, Ordering::Relaxed);
    CAPTURES.fetch_add(1, Ordering::Relaxed);
}

/// It does not any more.
pub(crate) fn capture_ends() {
    let one_less = |captures: u64| captures.checked_sub(1);
    let _ = CAPTURES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
}

/// A launch begins.
#[cold]
pub(crate) fn begin(call: &Call) {
    call.thread.cooperative.set(call.correlation);
    let mut launching = LAUNCHING.lock().unwrap_or_else(PoisonError::into_inner);
    *launching += 1;
    if *launching == 1 {
        tracer::arm();
    }
}

/// It returned.
#[cold]
pub(crate) fn end() {
    let mut launching = LAUNCHING.lock().unwrap_or_else(PoisonError::into_inner);
    *launching = launching.saturating_sub(1);
    if *launching == 0 {
        tracer::disarm();
    }
}

/// Is this thread in a cooperative launch?
#[inline]
pub(crate) fn is_launching() -> bool {
    thread::existing().is_some_and(|thread| thread.cooperative.get() != 0)
}
