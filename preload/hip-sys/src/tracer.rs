//! `hipRegisterTracerCallback` (HIP 5.3.1 to 7.2): one callback for API calls and for activity.
//!
//! For an API call the run-time passes an uninitialised structure: the call's arguments (`hip_api_data_t`, whose size
//! differs by release) and behind them four words that the callback fills in when it returns 0.

use std::ffi::c_void;

/// Domain of activity records.
pub const DOMAIN_OPS: u32 = 2;
/// Domain of API calls.
pub const DOMAIN_API: u32 = 3;

/// `hipRegisterTracerCallback`'s argument. Returns 0 to have the call traced.
pub type Callback = unsafe extern "C" fn(domain: u32, op: u32, data: *mut c_void) -> i32;
/// `hipRegisterTracerCallback`.
pub type Register = unsafe extern "C" fn(callback: Option<Callback>);
/// `hipApiName`.
pub type ApiName = unsafe extern "C" fn(id: u32) -> *const std::ffi::c_char;
/// `phase_enter` and `phase_exit`.
pub type Phase = unsafe extern "C" fn(op: u32, data: *mut c_void);

/// Byte offset of the correlation id.
pub const CORRELATION: usize = 0;

/// Byte offset of the four words, by the major version of the library; none when it is not known.
pub const fn tail(major: u32) -> Option<usize> {
    match major {
        5 => Some(840),
        6 | 7 => Some(1520),
        _ => None,
    }
}

/// The four words, from [`tail`] on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    /// For the tool.
    pub enter_timestamp: u64,
    /// For the tool.
    pub phase_data: u64,
    /// Called when the arguments are filled in.
    pub phase_enter: Option<Phase>,
    /// Called when the call returns.
    pub phase_exit: Option<Phase>,
}

const _: () = assert!(size_of::<Tail>() == 32 && std::mem::offset_of!(Tail, phase_exit) == 24);

/// Pointers below this are marks, not records (2026 releases).
pub const SMALLEST_POINTER: usize = 4096;
