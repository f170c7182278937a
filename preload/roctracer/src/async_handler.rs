//! The types of `hsa_amd_signal_async_handler`.

use hsa_sys::abi::{SignalHandle, Status};
use std::ffi::c_void;

/// `HSA_SIGNAL_CONDITION_LT`.
pub(crate) const CONDITION_LT: u32 = 2;

/// `hsa_amd_signal_handler`.
pub(crate) type Handler = unsafe extern "C" fn(i64, *mut c_void) -> bool;
/// `hsa_amd_signal_async_handler`.
pub(crate) type AsyncHandler = unsafe extern "C" fn(SignalHandle, u32, i64, Handler, *mut c_void) -> Status;
