//! Dispatch tables that libraries hand over through rocprofiler-register (ROCm 6.2 and later).
//!
//! They arrive at [`super::sdk`], which takes the place where the register looks for rocprofiler-sdk. Tables are
//! wrapped in place: those of HIP, its compiler, RCCL and the decoders ([`super::hip::entry`]), of HSA
//! ([`super::hsa`]), and of ROC-TX ([`super::roctx::table`]). Others are reported and left alone.
//!
//! A library calls this while it builds its tables, so none of its functions may be called here.

#![expect(unsafe_code, reason = "the register's interface and the libraries' tables")]

use super::hip::entry::{self, Which};
use crate::config;
use crate::notices;
use crate::real;
use crate::state::{self, word};
use hsa_sys::table::Root;
use roctop_ring::sync::Ordering;
use std::ffi::{CStr, c_char, c_void};

const TAKEN: i32 = 0;
const NOT_TAKEN: i32 = 1;
/// Newest version of HSA's root table with a known layout (HSA 7.2).
const HSA_MAJOR: u32 = 3;

/// Wraps a library's tables, if they are known; returns the register's status. `is_taken` says whether another tool has
/// taken them.
///
/// # Safety
/// `name` is null or terminated, `tables` null or `count` tables of that library.
pub(crate) unsafe fn hand_over(
    name: *const c_char,
    version: u64,
    tables: *mut *mut c_void,
    count: u64,
    is_taken: bool,
) -> i32 {
    if name.is_null() || tables.is_null() {
        return NOT_TAKEN;
    }
    // SAFETY: not null; else as the caller says.
    let (name, tables) = unsafe { (CStr::from_ptr(name), std::slice::from_raw_parts(tables, count as usize)) };
    take(name.to_bytes(), version, tables, is_taken)
}

/// Whether HSA would load another tool, such as libroctracer64.
pub(crate) fn has_other_tool() -> bool {
    real::next(c"HSA_AMD_TOOL_PRIORITY").is_some() || real::loaded("libroctracer64.so").is_some()
}

fn take(name: &[u8], version: u64, tables: &[*mut c_void], is_taken: bool) -> i32 {
    if config::config().is_none() || word(word::COLLECTOR).load(Ordering::Acquire) == state::OFF {
        return NOT_TAKEN;
    }
    let Some(table) = tables.first().copied().filter(|table| !table.is_null()) else {
        return NOT_TAKEN;
    };
    if name == b"hsa" {
        // If nobody takes its tables, HSA loads its tools, including this library; otherwise it loads none of them.
        if !is_taken && has_other_tool() {
            return NOT_TAKEN;
        }
        // SAFETY: the table of this name is HSA's root.
        let root = unsafe { &*table.cast::<Root>() };
        // A root table of an unknown version is left alone.
        if !(1..=HSA_MAJOR).contains(&root.version.major) || !super::hsa::adopt(root) {
            return NOT_TAKEN;
        }
        notices::post(0, &format!("hsa {}: dispatch tables", text(version)));
        return TAKEN;
    }
    if name == b"roctx" {
        // SAFETY: tables of this name are ROC-TX's, in the order of its first release.
        let wrapped = unsafe { super::roctx::table::wrap(tables) };
        if wrapped == 0 {
            return NOT_TAKEN;
        }
        let text = format!("roctx {}: dispatch tables of {wrapped} functions", text(version));
        notices::post(wrapped as u64, &text);
        return TAKEN;
    }
    let which = match name {
        b"hip" => Which::Hip,
        b"hip_compiler" => Which::Compiler,
        b"rccl" => Which::Rccl,
        b"rocdecode" => Which::Rocdecode,
        b"rocjpeg" => Which::Rocjpeg,
        _ => {
            notices::post(
                0,
                &format!(
                    "{} {}: a dispatch table that roctop does not know, whose calls are not recorded",
                    String::from_utf8_lossy(name),
                    text(version)
                ),
            );
            return NOT_TAKEN;
        }
    };
    // SAFETY: the table of this name is of this kind.
    let wrapped = unsafe { entry::wrap(which, table) };
    let (name, version) = (String::from_utf8_lossy(name), text(version));
    notices::post(
        wrapped as u64,
        &format!("{name} {version}: dispatch table of {wrapped} functions"),
    );
    TAKEN
}

fn text(version: u64) -> String {
    format!("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)
}
