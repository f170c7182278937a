//! Waits until the run-time has reported work that it has seen complete.
//!
//! A program's wait for its GPU reads the GPU's signals itself. It returns some microseconds, on a busy machine
//! milliseconds, before the run-time's thread reaches the same signals and reports the work. That thread visits all
//! signals in turn: when it has reached two of ours, one set after the other, it has visited every signal that was set
//! before.

use super::original::{amd, core, is_loaded};
use crate::async_handler::{AsyncHandler, CONDITION_LT};
use crate::loader;
use crate::thread;
use crate::wall::wall;
use hsa_sys::abi::{Agent, SUCCESS, SignalHandle, Status};
use std::ffi::{CStr, c_void};
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Entries of the core table.
pub(super) const SIGNAL_CREATE: usize = 37;
pub(super) const SIGNAL_DESTROY: usize = 38;
pub(super) const SIGNAL_STORE_SCRELEASE: usize = 42;
/// Entry of the AMD table.
pub(super) const ASYNC_HANDLER: usize = 7;

pub(super) type SignalCreate = unsafe extern "C" fn(i64, u32, *const Agent, *mut SignalHandle) -> Status;
pub(super) type SignalDestroy = unsafe extern "C" fn(SignalHandle) -> Status;
pub(super) type SignalSet = unsafe extern "C" fn(SignalHandle, i64);

/// Longer than a thread waits for a core. A program that waits in the run-time's own thread waits this long once.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(1);

/// Kernel thread id of the run-time's thread; 0 until seen.
static RUN_TIME_THREAD: AtomicU32 = AtomicU32::new(0);

struct Functions {
    create: SignalCreate,
    destroy: SignalDestroy,
    store: SignalSet,
    handler: AsyncHandler,
}

/// From HSA's tables, or from its library if HSA started before this one was loaded.
fn functions() -> Option<Functions> {
    if is_loaded() {
        // SAFETY: the entries' types.
        return unsafe {
            Some(Functions {
                create: core(SIGNAL_CREATE)?,
                destroy: core(SIGNAL_DESTROY)?,
                store: core(SIGNAL_STORE_SCRELEASE)?,
                handler: amd(ASYNC_HANDLER)?,
            })
        };
    }
    let (library, _) = loader::loaded("libhsa-runtime64.so").into_iter().next()?;
    let symbol = |name: &CStr| library.symbol(name);
    // SAFETY: the symbols of these names have these types.
    unsafe {
        Some(Functions {
            create: std::mem::transmute::<*mut c_void, SignalCreate>(symbol(c"hsa_signal_create")?),
            destroy: std::mem::transmute::<*mut c_void, SignalDestroy>(symbol(c"hsa_signal_destroy")?),
            store: std::mem::transmute::<*mut c_void, SignalSet>(symbol(c"hsa_signal_store_screlease")?),
            handler: std::mem::transmute::<*mut c_void, AsyncHandler>(symbol(c"hsa_amd_signal_async_handler")?),
        })
    }
}

/// Shared state of a signal.
struct Turn {
    signal: SignalHandle,
    destroy: SignalDestroy,
    has_come: Mutex<bool>,
    changed: Condvar,
}

/// Returns once completed work has been reported. Returns at once in the run-time's own thread, which would wait for
/// itself.
pub(crate) fn settle() {
    if RUN_TIME_THREAD.load(Ordering::Relaxed) == thread::id() {
        return;
    }
    let Some(functions) = functions() else { return };
    // The thread may be in the middle of its signals when it reaches the first one.
    for _ in 0..2 {
        if !has_come(&functions) {
            return;
        }
    }
}

fn has_come(functions: &Functions) -> bool {
    let mut signal = 0;
    // SAFETY: the handle is writable. The call fails if HSA is not running.
    if unsafe { (functions.create)(1, 0, null(), &raw mut signal) } != SUCCESS {
        return false;
    }
    let turn = Arc::new(Turn {
        signal,
        destroy: functions.destroy,
        has_come: Mutex::new(false),
        changed: Condvar::new(),
    });
    let theirs = Arc::into_raw(Arc::clone(&turn));
    // SAFETY: the handler gets the address once, and drops the reference.
    if unsafe { (functions.handler)(signal, CONDITION_LT, 1, came, theirs.cast_mut().cast()) } != SUCCESS {
        // SAFETY: nobody else has them.
        unsafe {
            drop(Arc::from_raw(theirs));
            (functions.destroy)(signal);
        }
        return false;
    }
    // SAFETY: the signal exists until the handler has been called.
    unsafe { (functions.store)(signal, 0) };
    let has_come = turn.has_come.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = turn
        .changed
        .wait_timeout_while(has_come, MAX_SETTLE_TIME, |has_come| !*has_come);
    *waited.unwrap_or_else(PoisonError::into_inner).0
}

/// On the run-time's thread.
unsafe extern "C" fn came(_value: i64, data: *mut c_void) -> bool {
    wall(false, || {
        RUN_TIME_THREAD.store(thread::id(), Ordering::Relaxed);
        // SAFETY: the reference that `has_come` passed, and this is the only call with it.
        let turn = unsafe { Arc::from_raw(data.cast::<Turn>().cast_const()) };
        // SAFETY: nobody else has the signal.
        unsafe { (turn.destroy)(turn.signal) };
        *turn.has_come.lock().unwrap_or_else(PoisonError::into_inner) = true;
        turn.changed.notify_one();
        false
    })
}
