//! Functions that matter while recording is off: those that switch it on, and those that return functions for later
//! use.

#![expect(unsafe_code, reason = "functions with the run-time's signatures")]

use super::gate;
use crate::backend::roctx;
use crate::guard::{Errno, wall};
use hip_sys::function::{Effect, Function};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_char, c_void};

/// The replacement for `real`, which it calls.
pub(super) fn instead(function: &Function, real: u64) -> Option<*const c_void> {
    match function.effect {
        Effect::Lookup => {
            let number = NAMES.iter().position(|name| *name == function.name)?;
            LOOKUPS.get(number)?.store(real, Ordering::Release);
            let stands: [Lookup; NAMES.len()] = [lookup::<0>, lookup::<1>, lookup::<2>, lookup::<3>];
            stands.get(number).map(|stand| *stand as *const c_void)
        }
        Effect::Start => {
            START.store(real, Ordering::Release);
            Some(start as *const c_void)
        }
        _ => None,
    }
}

/// The run-time's function that starts profilers.
static START: AtomicU64 = AtomicU64::new(0);

/// Replaces `hipProfilerStart` while nothing is recorded: recording resumes once it has returned.
unsafe extern "C" fn start() -> i32 {
    type Start = unsafe extern "C" fn() -> i32;
    // SAFETY: the address was stored before the gate jumped here, and is that of a function with this signature.
    let real: Start = unsafe { std::mem::transmute(START.load(Ordering::Acquire) as usize as *const c_void) };
    // SAFETY: a plain call of it.
    let status = unsafe { real() };
    wall((), roctx::resume);
    status
}

/// The run-time's functions that look others up.
const NAMES: [&str; 4] = [
    "hipGetProcAddress",
    "hipGetProcAddress_spt",
    "hipGetDriverEntryPoint",
    "hipGetDriverEntryPoint_spt",
];
static LOOKUPS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

type Lookup = unsafe extern "C" fn(*const c_char, *mut *mut c_void, i32, u64, *mut i32) -> i32;

/// Replaces one of them while nothing is recorded, because the result may be called later. All arguments are in
/// registers; the shorter functions ignore the last.
unsafe extern "C" fn lookup<const N: usize>(
    name: *const c_char,
    place: *mut *mut c_void,
    version: i32,
    flags: u64,
    found: *mut i32,
) -> i32 {
    let real = LOOKUPS.get(N).map_or(0, |real| real.load(Ordering::Acquire));
    // SAFETY: the address was stored before the gate jumped here, and is that of a function with this signature.
    let real: Lookup = unsafe { std::mem::transmute(real as usize as *const c_void) };
    // SAFETY: the caller's own arguments.
    let status = unsafe { real(name, place, version, flags, found) };
    if status == 0 {
        wall((), || give_wrapped(name, place));
    }
    status
}

/// Replaces the result of a lookup by the wrapped function.
pub(super) fn give_wrapped(name: *const c_char, place: *mut *mut c_void) {
    let _errno = Errno::keep();
    if name.is_null() || place.is_null() {
        return;
    }
    // SAFETY: the call succeeded, so its first argument is a terminated name.
    let name = unsafe { CStr::from_ptr(name) };
    // SAFETY: the call succeeded, so its second argument points to the address that was found.
    if let Some(stub) = gate::stand_in(name, unsafe { *place }) {
        // SAFETY: as above.
        unsafe { *place = stub };
    }
}
