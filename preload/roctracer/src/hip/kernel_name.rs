//! Names of kernels: the run-time maps the address of a host function or a function handle to one, as for any tool.

use super::function::function;
use crate::loader;
use crate::text;
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

/// `hipKernelNameRefByPtr`.
type ByAddress = unsafe extern "C" fn(function: *const c_void, stream: *mut c_void) -> *const c_char;
/// `hipKernelNameRef`.
type ByHandle = unsafe extern "C" fn(function: *mut c_void) -> *const c_char;

struct Functions {
    by_address: Option<ByAddress>,
    by_handle: Option<ByHandle>,
}

fn functions() -> Option<&'static Functions> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    let load = || {
        let (library, _) = loader::loaded("libamdhip64.so").into_iter().next()?;
        Some(Functions {
            by_address: function!(library, c"hipKernelNameRefByPtr"),
            by_handle: function!(library, c"hipKernelNameRef"),
        })
    };
    FUNCTIONS.get_or_init(load).as_ref()
}

/// The name of a host function's kernel.
pub(super) fn of_function(address: *const c_void) -> Option<*const c_char> {
    // SAFETY: the run-time looks the address up.
    unsafe { of_address(address, std::ptr::null_mut()) }
}

/// The name from the address of a host function.
///
/// # Safety
/// The arguments are those of a launch; the run-time looks the address up.
pub(super) unsafe fn of_address(address: *const c_void, stream: *mut c_void) -> Option<*const c_char> {
    let by_address = functions()?.by_address?;
    // SAFETY: the program's own arguments of a launch; the run-time recognises an address that is no function.
    kept(unsafe { by_address(address, stream) })
}

/// The name from a handle.
///
/// # Safety
/// The handle is that of a launch, or null.
pub(super) unsafe fn of_handle(handle: *mut c_void) -> Option<*const c_char> {
    let by_handle = functions()?.by_handle.filter(|_| !handle.is_null())?;
    // SAFETY: the program's own argument of a launch.
    kept(unsafe { by_handle(handle) })
}

/// The name at a permanent address: the program may unload the module before the kernel's record is written.
fn kept(name: *const c_char) -> Option<*const c_char> {
    // SAFETY: null (tested) or the run-time's terminated text.
    (!name.is_null()).then(|| text::keep(unsafe { CStr::from_ptr(name) }).cast())
}
