//! Changes of registrations, applied to the run-times: callbacks and pools are set, and the work that is complete is
//! delivered before a pool goes.

use crate::domain::Domain;
use crate::pool::{self, Opened};
use crate::registration::{self, Callback, REGISTERED};
use crate::status::Result;
use crate::{hip, hsa, roctx};
use std::ffi::c_void;
use std::ops::Range;

/// Registers a callback for operations of a domain, or removes it (`None`).
pub(crate) fn set_callback(domain: Domain, operations: Range<u32>, function: Option<Callback>, argument: *mut c_void) {
    registration::set_callback(domain, &operations, function, argument);
    engage(domain, operations);
}

/// Registers a pool for operations of a domain, or removes it (`None`).
pub(crate) fn set_pool(domain: Domain, operations: Range<u32>, pool: Option<Opened>) {
    let is_work = match domain {
        Domain::HipOps => !REGISTERED.hip_work.is_empty(),
        Domain::HsaOps => !REGISTERED.hsa_work.is_empty(),
        _ => false,
    };
    if pool.is_none() && is_work {
        // Records of completed work must be in the old pool first.
        hsa::settle();
    }
    registration::set_pool(domain, &operations, pool);
    engage(domain, operations);
}

/// Applies a change to the run-time. Not under the lock: a run-time may be waiting for a call of ours to end.
fn engage(domain: Domain, operations: Range<u32>) {
    match domain {
        Domain::HipApi => {
            hip::engage(operations);
            hsa::ask();
        }
        Domain::HipOps => {
            hip::engage_work(operations);
            hsa::ask();
        }
        Domain::HsaApi | Domain::HsaOps | Domain::HsaEvent => hsa::ask(),
        Domain::Roctx => roctx::engage(),
        Domain::Kfd | Domain::External => {}
    }
}

/// Delivers the pool's records, including those of all completed work.
pub(crate) fn flush(opened: Opened) -> Result<()> {
    settle(opened);
    opened.flush()
}

/// Returns once the records of completed work are in their pools; at once in a pool's callback, for which the run-time may wait.
pub(crate) fn settle_all() {
    let is_work = !(REGISTERED.hip_work.is_empty() && REGISTERED.hsa_work.is_empty());
    if is_work && !pool::is_inside_any() {
        hsa::settle();
    }
}

/// Returns once the records of completed work are in the pool.
fn settle(opened: Opened) {
    let ours = |words| words == opened.words();
    if !opened.is_inside() && (REGISTERED.hip_work.has(ours) || REGISTERED.hsa_work.has(ours)) {
        hsa::settle();
    }
}

/// Closes a pool, or the default one for null; success if there is no default.
pub(crate) fn close(handle: *mut c_void) -> Result<()> {
    let Some(opened) = registration::pool_to_close(handle)? else {
        return Ok(());
    };
    if opened.is_inside() {
        return opened.close();
    }
    settle(opened);
    registration::forget(opened);
    engage(Domain::HipApi, Domain::HipApi.operations());
    engage(Domain::HipOps, Domain::HipOps.operations());
    opened.close()
}

/// Fails if the loaded run-time cannot report a domain's calls.
pub(crate) fn possible(domain: Domain) -> Result<()> {
    if domain == Domain::HipApi {
        hip::can_report_calls()
    } else {
        Ok(())
    }
}
