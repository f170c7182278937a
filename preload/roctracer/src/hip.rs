//! HIP: calls and GPU work, from the run-time's own callbacks.
//!
//! [`tracer`] is the single callback of 5.3.1 and later, [`legacy`] the callbacks by operation before it. The library
//! tests which of them the loaded run-time has, never its version number. [`launch`] names kernels where the run-time
//! does not, [`stall`] prevents its streams from hanging. [`name`] asks the run-time for names.

mod function;
mod graph;
mod kernel_name;
mod launch;
mod legacy;
pub(crate) mod name;
mod run_time;
mod stall;
mod tracer;

use self::run_time::{Interface, hip};
use crate::registration::{self, REGISTERED};
use crate::status::{NOT_IMPLEMENTED, Result, fail};
use hip_sys::tracer::Register;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_ENGAGED: AtomicBool = AtomicBool::new(false);

/// Registrations for these calls have changed.
pub(crate) fn engage(operations: Range<u32>) {
    let Some(hip) = hip() else { return };
    match &hip.interface {
        Interface::Tracer(register, tail) => engage_tracer(*register, *tail),
        Interface::Legacy(functions) => functions.engage(operations),
        Interface::None => {}
    }
}

/// Registrations for this work have changed.
pub(crate) fn engage_work(operations: Range<u32>) {
    let Some(hip) = hip() else { return };
    match &hip.interface {
        Interface::Tracer(register, tail) => engage_tracer(*register, *tail),
        Interface::Legacy(functions) => functions.engage_work(operations),
        Interface::None => {}
    }
}

/// Whether a run-time is loaded.
pub(crate) fn is_loaded() -> bool {
    hip().is_some()
}

/// Fails if the run-time has no known interface to report its calls.
pub(crate) fn can_report_calls() -> Result<()> {
    match hip().map(|hip| &hip.interface) {
        Some(Interface::None | Interface::Tracer(_, None)) => Err(fail(
            NOT_IMPLEMENTED,
            format_args!("calls of this HIP release cannot be traced: the layout of its reports is not known"),
        )),
        _ => Ok(()),
    }
}

fn engage_tracer(register: Register, tail: Option<usize>) {
    // Read and applied under one lock: the last change is applied last.
    registration::locked(|| {
        let is_wanted = REGISTERED.has_hip();
        if IS_ENGAGED.swap(is_wanted, Ordering::AcqRel) != is_wanted {
            tracer::set(register, tail, is_wanted);
        }
    });
}

/// Called when HSA starts: HIP may have been loaded after the registrations.
pub(crate) fn engage_late() {
    if !IS_ENGAGED.load(Ordering::Acquire) && REGISTERED.has_hip() {
        engage(1..name::end());
        engage_work(0..crate::domain::HIP_OPS as u32);
    }
}
