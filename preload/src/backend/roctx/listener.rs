//! Another tool that listens to ROC-TX calls when no ROC-TX library is loaded.

use super::real::{LISTEN, typed};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{c_char, c_int, c_void};

/// `roctxRegisterTracerCallback`'s argument: domain, operation, `{message, id}`.
pub type Listener = unsafe extern "C" fn(u32, u32, *mut c_void) -> c_int;

/// Listener to call when no ROC-TX library is loaded; 0 if none.
static LISTENER: AtomicU64 = AtomicU64::new(0);

/// Domain and operations in a listener's numbering.
const DOMAIN: u32 = 6;

pub(super) const OP_MARK: u32 = 0;

pub(super) const OP_PUSH: u32 = 1;

pub(super) const OP_POP: u32 = 2;

pub(super) const OP_START: u32 = 3;

pub(super) const OP_STOP: u32 = 4;

/// `roctx_api_data_t`.
#[repr(C)]
struct CallData {
    message: *const c_char,
    id: u64,
}

#[inline]
pub(super) fn notify(op: u32, message: *const c_char, id: u64) {
    let listener = LISTENER.load(Ordering::Acquire) as *const c_void;
    if !listener.is_null() {
        // SAFETY: only `roctxRegisterTracerCallback` stores here, and what it stores is a `Listener`.
        let listener = unsafe { std::mem::transmute::<*const c_void, Listener>(listener) };
        let mut data = CallData { message, id };
        // SAFETY: the data lives during the call, as the listener expects.
        unsafe { listener(DOMAIN, op, (&raw mut data).cast()) };
    }
}

/// Registers a listener (libroctracer64 does, for its ROCTX domain); null removes it.
///
/// # Safety
/// The function stays loaded until it is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRegisterTracerCallback(listener: Option<Listener>) {
    match typed!(LISTEN as unsafe extern "C" fn(Option<Listener>)) {
        // SAFETY: the caller's own argument.
        Some(real) => unsafe { real(listener) },
        None => LISTENER.store(
            listener.map_or(0, |listener| listener as usize as u64),
            Ordering::Release,
        ),
    }
}
