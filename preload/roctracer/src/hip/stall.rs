//! Prevents a hang of streams with program callbacks in the releases before 5.3.1.
//!
//! A stream created while an activity callback is registered takes times of all its commands. When the program adds a
//! callback to such a stream, the marker's signal starts at 2: the GPU decrements it to 1; the run-time's handler calls
//! the program and decrements it to 0, for which the stream waits. For commands with times, however, the handler first
//! waits until the signal is 0, and so waits for itself. Here it therefore reads 0 once the GPU is done. Streams
//! without times do not read it.

use crate::async_handler::{AsyncHandler, CONDITION_LT, Handler};
use crate::loader;
use crate::redirect::redirect;
use hsa_sys::abi::{SUCCESS, SignalHandle, Status};
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::{Once, OnceLock};

type Load = unsafe extern "C" fn(SignalHandle) -> i64;

/// Initial signal value of a marker with a callback, and its value once the GPU is done.
const WITH_CALLBACK: i64 = 2;
const GPU_IS_DONE: i64 = 1;

const HIP: &str = "libamdhip64.so";
const LOAD: &CStr = c"hsa_signal_load_relaxed";
const ASYNC_HANDLER: &CStr = c"hsa_amd_signal_async_handler";

/// HSA's functions.
struct Functions {
    load: Load,
    handler: AsyncHandler,
}

static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();

thread_local! {
    /// The signal whose handler this thread is running.
    static HANDLED: Cell<SignalHandle> = const { Cell::new(0) };
}

/// The run-time's handler of a marker with a callback.
struct Waiting {
    signal: SignalHandle,
    handler: Handler,
    argument: *mut c_void,
}

/// Interposes between this run-time and HSA.
pub(super) fn prevent() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if FUNCTIONS.get_or_init(find).is_none() {
            return;
        }
        let functions = [
            (LOAD, load as Load as *const c_void),
            (ASYNC_HANDLER, async_handler as AsyncHandler as *const c_void),
        ];
        // SAFETY: both have the types of the functions that they replace; this library stays loaded once something is
        // registered.
        unsafe { redirect(HIP, &functions) };
    });
}

fn find() -> Option<Functions> {
    let (library, _) = loader::loaded(HIP).into_iter().next()?;
    let symbol = |name: &CStr| loader::first(name).or_else(|| library.symbol(name));
    // SAFETY: the symbols of these names have these types.
    unsafe {
        Some(Functions {
            load: std::mem::transmute::<*mut c_void, Load>(symbol(LOAD)?),
            handler: std::mem::transmute::<*mut c_void, AsyncHandler>(symbol(ASYNC_HANDLER)?),
        })
    }
}

unsafe extern "C" fn load(signal: SignalHandle) -> i64 {
    let Some(Some(functions)) = FUNCTIONS.get() else {
        return 0;
    };
    // SAFETY: the run-time's own argument.
    let value = unsafe { (functions.load)(signal) };
    if value == GPU_IS_DONE && HANDLED.get() == signal {
        return 0;
    }
    value
}

unsafe extern "C" fn async_handler(
    signal: SignalHandle,
    condition: u32,
    value: i64,
    handler: Handler,
    argument: *mut c_void,
) -> Status {
    let Some(Some(functions)) = FUNCTIONS.get() else {
        return 0x1000;
    };
    if condition != CONDITION_LT || value != WITH_CALLBACK {
        // SAFETY: the run-time's own arguments.
        return unsafe { (functions.handler)(signal, condition, value, handler, argument) };
    }
    let waiting = Box::into_raw(Box::new(Waiting {
        signal,
        handler,
        argument,
    }));
    // SAFETY: as above; `handled` gets the address.
    let status = unsafe { (functions.handler)(signal, condition, value, handled, waiting.cast()) };
    if status != SUCCESS {
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(waiting) });
    }
    status
}

/// On the run-time's thread.
unsafe extern "C" fn handled(value: i64, data: *mut c_void) -> bool {
    // SAFETY: the address that `async_handler` passed; it lives until the handler declines further calls.
    let Waiting {
        signal,
        handler,
        argument,
    } = unsafe { &*data.cast::<Waiting>() };
    let before = HANDLED.replace(*signal);
    // SAFETY: the run-time's handler with its own argument.
    let is_wanted_again = unsafe { handler(value, *argument) };
    HANDLED.set(before);
    if !is_wanted_again {
        // SAFETY: this was the last call with it.
        drop(unsafe { Box::from_raw(data.cast::<Waiting>()) });
    }
    is_wanted_again
}
