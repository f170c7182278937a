//! Detects the end of HSA if the run-time does not call `OnUnload`: with tables from rocprofiler-register.
//!
//! HSA counts its starts and ends. The program's are counted here, and its last end takes the last times, as `OnUnload`
//! does.

#![expect(unsafe_code, reason = "stands in front of entries of the run-time's table")]

use super::{OnUnload, hook};
use hsa_sys::abi::{SUCCESS, Status};
use hsa_sys::table::{Root, Table, core_entry};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::c_void;

type Plain = unsafe extern "C" fn() -> Status;

static INIT: AtomicU64 = AtomicU64::new(0);
static SHUT_DOWN: AtomicU64 = AtomicU64::new(0);
/// Number of starts without an end.
static STARTS: AtomicU64 = AtomicU64::new(0);

/// Counts from now on: the tables arrive in the first start.
pub(crate) fn watch(root: &Root) {
    let Some(core) = Table::new(root.core) else { return };
    STARTS.store(1, Ordering::Relaxed);
    for (place, entry, ours) in [
        (&INIT, core_entry::INIT, init as Plain),
        (&SHUT_DOWN, core_entry::SHUT_DOWN, shut_down as Plain),
    ] {
        // SAFETY: the table is the run-time's.
        if let Some(previous) = unsafe { core.function(entry) }
            && !std::ptr::eq(previous, ours as *mut c_void)
        {
            place.store(previous as u64, Ordering::Release);
            hook(core, entry, ours as *mut c_void);
        }
    }
}

fn previous(place: &AtomicU64) -> Option<Plain> {
    let address = place.load(Ordering::Acquire) as usize as *const c_void;
    // SAFETY: null is none; else the entry of this type that was there before.
    unsafe { std::mem::transmute::<*const c_void, Option<Plain>>(address) }
}

unsafe extern "C" fn init() -> Status {
    let Some(previous) = previous(&INIT) else {
        return SUCCESS;
    };
    // SAFETY: a plain call of what was there.
    let status = unsafe { previous() };
    if status == SUCCESS {
        STARTS.fetch_add(1, Ordering::Relaxed);
    }
    status
}

unsafe extern "C" fn shut_down() -> Status {
    let Some(previous) = previous(&SHUT_DOWN) else {
        return SUCCESS;
    };
    let one_less = |starts: u64| starts.checked_sub(1);
    if STARTS.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less) == Ok(1) {
        OnUnload();
    }
    // SAFETY: a plain call of what was there.
    unsafe { previous() }
}
