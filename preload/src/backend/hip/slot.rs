//! Shares the run-time's single tracer callback with other tools in the program.
//!
//! The run-time keeps one callback and has no getter (HIP 5.3.1 to 7.2), so a later registration would silence an
//! earlier one. `hipRegisterTracerCallback` is therefore exported here. A callback of another tool, registered before
//! or after ours, gets every call and record as if it were alone. Where the collector also records a call, the tool's
//! correlation id stays in the structure, and its exit function is called after ours.
//!
//! This module owns the callback; [`super::tracer`] requests it through [`listen`].

#![expect(unsafe_code, reason = "the run-time's callback and its structure by offsets")]

use super::{activity, tracer};
use crate::guard::{Errno, wall};
use crate::{real, thread};
use hip_sys::tracer::{Callback, DOMAIN_API, DOMAIN_OPS, Phase, Register, Tail};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_void};

const NAME: &CStr = c"hipRegisterTracerCallback";

/// The run-time's `hipRegisterTracerCallback`; 0 until found.
static REAL: AtomicU64 = AtomicU64::new(0);
/// The other tool's callback; 0 if none.
static OTHER: AtomicU64 = AtomicU64::new(0);
/// 1 while the collector wants the callback.
static LISTENING: AtomicU64 = AtomicU64::new(0);
/// 1 once it wanted the callback: records that it requested may still arrive.
static LISTENED: AtomicU64 = AtomicU64::new(0);

/// Stores the loaded run-time's function.
pub(crate) fn found(register: *mut c_void) {
    let _ = REAL.compare_exchange(0, register as u64, Ordering::AcqRel, Ordering::Relaxed);
}

/// Whether the run-time's function is known.
pub(crate) fn is_found() -> bool {
    REAL.load(Ordering::Acquire) != 0
}

/// The wrapper for the run-time's function with this name.
pub(crate) fn wrapped(name: &CStr) -> Option<*mut c_void> {
    (name == NAME).then_some(hipRegisterTracerCallback as unsafe extern "C" fn(Option<Callback>) as *mut c_void)
}

/// Switches the collector's interest in calls and records on or off.
pub(crate) fn listen(on: bool) {
    if on {
        LISTENED.store(1, Ordering::Relaxed);
    }
    LISTENING.store(u64::from(on), Ordering::Release);
    update();
}

/// Registers the callback of another tool.
///
/// # Safety
/// As for the run-time's function: the callback is null or a function of this type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipRegisterTracerCallback(callback: Option<Callback>) {
    wall((), || {
        let _errno = Errno::keep();
        if !is_found()
            && let Some(next) = thread::aside(|| real::next(NAME).or_else(|| super::library()?.0.symbol(NAME)))
        {
            found(next);
        }
        OTHER.store(
            callback.map_or(0, |callback| callback as usize as u64),
            Ordering::Release,
        );
        update();
    });
}

fn other() -> Option<Callback> {
    let address = OTHER.load(Ordering::Acquire) as usize as *const c_void;
    // SAFETY: null is none; else the registering tool passed a function of this type.
    unsafe { std::mem::transmute::<*const c_void, Option<Callback>>(address) }
}

/// Callback to register now: none, the other tool's directly, or ours for both.
fn wanted() -> Option<Callback> {
    let is_ours = LISTENING.load(Ordering::Acquire) != 0;
    match other() {
        None => is_ours.then_some(shared as Callback),
        Some(_) if is_ours || LISTENED.load(Ordering::Relaxed) != 0 => Some(shared),
        alone => alone,
    }
}

fn update() {
    let address = REAL.load(Ordering::Acquire) as usize as *mut c_void;
    if address.is_null() {
        return;
    }
    // SAFETY: the symbol of this name has this type in every release.
    let register = unsafe { std::mem::transmute::<*mut c_void, Register>(address) };
    let number = |callback: Option<Callback>| callback.map_or(0, |callback| callback as usize);
    loop {
        let callback = wanted();
        // SAFETY: a store of a pointer inside the run-time; ours is never unloaded, the other tool's is its own care.
        unsafe { register(callback) };
        // Another thread may have changed the result meanwhile.
        if number(callback) == number(wanted()) {
            return;
        }
    }
}

unsafe extern "C" fn shared(domain: u32, op: u32, data: *mut c_void) -> i32 {
    let other = other();
    let notify = |data: *mut c_void| {
        other.map_or(1, |other| {
            // SAFETY: the run-time's own arguments, or a question that it asks too.
            unsafe { other(domain, op, data) }
        })
    };
    match domain {
        DOMAIN_API if !data.is_null() => {
            let is_theirs = notify(data) == 0;
            let is_ours = wall(false, || enter(op, data, is_theirs));
            i32::from(!is_theirs && !is_ours)
        }
        DOMAIN_OPS if data.is_null() => {
            let theirs = notify(data);
            let is_ours = wall(false, || tracer::asks(op));
            i32::from(theirs != 0 && !is_ours)
        }
        // A record, or a marker of newer releases. The other tool does not get what only the collector requested.
        DOMAIN_OPS => {
            wall((), || activity::record(op, data));
            if LISTENED.load(Ordering::Relaxed) == 0 || notify(std::ptr::null_mut()) == 0 {
                notify(data);
            }
            0
        }
        _ => notify(data),
    }
}

/// A call begins. True if the collector wants its exit.
fn enter(op: u32, data: *mut c_void, is_theirs: bool) -> bool {
    let Some(offset) = tracer::tail() else { return false };
    let id = data.cast::<u64>();
    // SAFETY: `offset` is the size of the arguments in this release, behind which the structure has these words.
    let tail = unsafe { data.byte_add(offset).cast::<Tail>() };
    let (exit, correlation) = match tracer::enter(op, data) {
        tracer::Entered::No => return false,
        // The gate records it, and HIP participates because of the tool.
        tracer::Entered::Cooperative(_) if is_theirs => return true,
        tracer::Entered::Cooperative(correlation) => (None, correlation),
        tracer::Entered::Call(correlation) => (Some(left as Phase), correlation),
    };
    if is_theirs {
        // SAFETY: the tool has filled the words in, since it answered 0.
        let theirs = unsafe { (*tail).phase_exit };
        tracer::keep_exit(theirs.map_or(0, |exit| exit as usize));
        // SAFETY: as above.
        unsafe { (*tail).phase_exit = exit };
        return true;
    }
    let words = Tail {
        enter_timestamp: 0,
        phase_data: 0,
        phase_enter: None,
        phase_exit: exit,
    };
    // SAFETY: the structure begins with the correlation id in every release.
    unsafe { id.write(correlation) };
    // SAFETY: as above; the words are not initialised yet.
    unsafe { tail.write(words) };
    true
}

unsafe extern "C" fn left(op: u32, data: *mut c_void) {
    let theirs = wall(0, || tracer::exit(data));
    // SAFETY: 0 is none; else the tool put this function there for this very call.
    let exit = unsafe { std::mem::transmute::<usize, Option<Phase>>(theirs) };
    if let Some(exit) = exit {
        // SAFETY: the run-time's own arguments.
        unsafe { exit(op, data) };
    }
}
