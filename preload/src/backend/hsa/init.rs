//! The program's `hsa_init`: the one HSA call that the tables cannot show, because they arrive during it.
//!
//! Once the tables have arrived, further calls pass their stubs and are not counted here.

#![expect(unsafe_code, reason = "exported in front of the run-time's function of this name")]

use crate::collector::{self, Call};
use crate::guard::{Errno, wall};
use crate::state::{self, word};
use crate::{backend::hip, config, process, real, thread};
use hsa_sys::abi::Status;
use hsa_sys::function;
use roctop_ring::record::Domain;
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_void};

/// `HSA_STATUS_ERROR`: there is no run-time.
const ERROR: Status = 0x1000;
/// Number of `hsa_init` in the core table.
const OPERATION: u16 = 0;

/// Variable that names tools to the run-time.
const TOOLS: &CStr = c"HSA_TOOLS_LIB";

/// The function's name.
pub(crate) const NAME: &CStr = c"hsa_init";
/// Start of the run-time's file name.
pub(crate) const LIBRARY: &str = "libhsa-runtime64.so";

type Init = unsafe extern "C" fn() -> Status;

/// The run-time's function; 0 until found.
static REAL: AtomicU64 = AtomicU64::new(0);

fn find() -> Option<Init> {
    let mut address = REAL.load(Ordering::Acquire);
    if address == 0 {
        let _errno = Errno::keep();
        // The run-time may be in a separate scope, if it was opened locally.
        let found = wall(None, || {
            thread::aside(|| real::next(NAME).or_else(|| real::loaded(LIBRARY)?.0.symbol(NAME)))
        });
        address = found? as u64;
        REAL.store(address, Ordering::Release);
    }
    // SAFETY: the address of the run-time's function of this name.
    Some(unsafe { std::mem::transmute::<*mut c_void, Init>(address as usize as *mut c_void) })
}

/// A program looked up the run-time's function: returns ours.
pub(crate) fn found(address: *mut c_void) -> *mut c_void {
    let _ = REAL.compare_exchange(0, address as u64, Ordering::AcqRel, Ordering::Relaxed);
    hsa_init as extern "C" fn() -> Status as *mut c_void
}

/// `hsa_init` of the collector, before the run-time's.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_init() -> Status {
    let Some(original) = find() else { return ERROR };
    let before = thread::existing().map_or(0, |thread| thread.current.get());
    let is_first = word(word::HSA).load(Ordering::Acquire) == state::COLD;
    let call = if is_first { wall(None, || enter(before)) } else { None };
    let named = if is_first {
        wall(None, Named::if_no_tool_is_named)
    } else {
        None
    };
    // SAFETY: the run-time's function.
    let status = unsafe { original() };
    drop(named);
    if let Some(call) = call {
        wall((), || exit(&call, status, before));
    }
    status
}

/// Names this library in the variable for the duration of the call. Up to 5.2 the run-time finds tools only by it, and
/// a program that drops its environment dropped the launcher's variable too.
struct Named;

impl Named {
    /// `None` if a tool is named: by the launcher, which named this library, or by the program, on purpose.
    fn if_no_tool_is_named() -> Option<Self> {
        let _errno = Errno::keep();
        config::config()?;
        // SAFETY: asks whether there is such a variable.
        if !unsafe { libc::getenv(TOOLS.as_ptr()) }.is_null() {
            return None;
        }
        let own = real::library_of(hsa_init as extern "C" fn() -> Status as *const c_void)?;
        // SAFETY: both are terminated and are copied.
        (unsafe { libc::setenv(TOOLS.as_ptr(), own.as_ptr(), 0) } == 0).then_some(Self)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _errno = Errno::keep();
        // SAFETY: takes the variable away again.
        unsafe { libc::unsetenv(TOOLS.as_ptr()) };
    }
}

fn enter(before: u64) -> Option<Call> {
    let _errno = Errno::keep();
    let thread = thread::current()?;
    let process = process::get()?;
    if !crate::control::is_asked(wanted::HSA_API) {
        return None;
    }
    let name = function::CORE.first().map_or("hsa_init", |function| function.name);
    hip::name(process, Domain::HSA_CORE, OPERATION, name.as_bytes());
    let call = collector::api_enter(Domain::HSA_CORE, OPERATION, wanted::HSA_API)?;
    if thread.hip_frame.get() != 0 {
        thread.current.set(before);
    }
    Some(call)
}

fn exit(call: &Call, status: Status, before: u64) {
    // A forked child that returns from its parent's call has no ring for that call.
    if thread::existing().is_none_or(|thread| !std::ptr::eq(thread, call.thread)) {
        return;
    }
    collector::api_exit(call, Some(status), 0);
    call.thread.current.set(before);
}
