//! `hipRegisterTracerCallback` (HIP 5.3.1 to 7.2): one callback for API calls and for activity.
//!
//! For an API call the run-time passes an uninitialised structure: the call's arguments (`hip_api_data_t`, whose size
//! differs by release), followed by four words that the callback fills in when it returns 0.

use std::ffi::c_void;

/// Domain of activity records.
pub const DOMAIN_OPS: u32 = 2;
/// Domain of API calls.
pub const DOMAIN_API: u32 = 3;

/// `hipRegisterTracerCallback`'s argument. Returns 0 to trace the call.
pub type Callback = unsafe extern "C" fn(domain: u32, op: u32, data: *mut c_void) -> i32;
/// `hipRegisterTracerCallback`.
pub type Register = unsafe extern "C" fn(callback: Option<Callback>);
/// `hipApiName`.
pub type ApiName = unsafe extern "C" fn(id: u32) -> *const std::ffi::c_char;
/// `phase_enter` and `phase_exit`.
pub type Phase = unsafe extern "C" fn(op: u32, data: *mut c_void);

/// Byte offset of the correlation id.
pub const CORRELATION: usize = 0;

/// Byte offset of the four words, by the major version of the library; `None` if unknown.
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
    /// Called after the arguments are filled in.
    pub phase_enter: Option<Phase>,
    /// Called at the call's return.
    pub phase_exit: Option<Phase>,
}

const _: () = assert!(size_of::<Tail>() == 32 && std::mem::offset_of!(Tail, phase_exit) == 24);

/// Activity operation: a dispatch.
pub const OP_DISPATCH: u32 = 0;
/// Kind of a kernel's activity record.
pub const ACTIVITY_KERNEL: u32 = 0x11f0;
/// Kind of the record of a kernel in a graph.
pub const ACTIVITY_BATCH: u32 = 0x11f1;

/// An activity record (`activity_record_t`) of a dispatch, since 5.3.1.
#[repr(C)]
#[derive(Debug)]
pub struct Activity {
    /// Domain.
    pub domain: u32,
    /// Kind of command.
    pub kind: u32,
    /// Operation.
    pub op: u32,
    /// Reserved.
    pub reserved: u32,
    /// Correlation id of the API call.
    pub correlation: u64,
    /// Begin, ns of the HSA system domain.
    pub begin: u64,
    /// End, ns.
    pub end: u64,
    /// The device: HIP's own index on release 5.3, the driver's node from 5.4 on.
    pub device: i32,
    /// Reserved.
    pub reserved1: u32,
    /// Queue.
    pub queue: u64,
    /// The kernel's name, valid during the callback.
    pub kernel_name: *const std::ffi::c_char,
}

const _: () = assert!(size_of::<Activity>() == 64 && std::mem::offset_of!(Activity, kernel_name) == 56);
const _: () = assert!(std::mem::offset_of!(Activity, begin) == 24 && std::mem::offset_of!(Activity, device) == 40);

/// Smaller pointers are marks, not records (2026 releases).
pub const SMALLEST_POINTER: usize = 4096;
