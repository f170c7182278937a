//! Cooperative launches where their queue cannot be intercepted (HSA of release 6.2 and later).
//!
//! HIP gives a packet a signal when somebody wants its time, and the times are read there
//! (`backend::hsa::observed`). So HIP's question whether its own records are wanted is answered with yes inside these
//! calls alone. The record itself is not used: it begins with the run-time's own kernel in front of the program's, and
//! comes late.

use super::tracer;
use crate::backend::hsa;
use crate::collector::Call;
use crate::thread;
use std::sync::{Mutex, PoisonError};

/// Threads in such a launch. Only they take the lock.
static LAUNCHING: Mutex<u32> = Mutex::new(0);

/// Must HIP be made to give these launches signals?
pub(crate) fn is_needed() -> bool {
    hsa::hsa().is_some_and(|hsa| hsa.layout.shares_cooperative_queue())
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
