//! HSA: calls, copies and events, from the run-time's function tables.
//!
//! The run-time hands its tables to `OnLoad`, because this library exports `HSA_AMD_TOOL_PRIORITY` (5.3 and later) or
//! because `HSA_TOOLS_LIB` names it. `event` and `copy` replace some entries; in front of every known entry goes a stub
//! (`gate`) that calls the function registered for the operation. `api` has the operations' numbers and names,
//! `argument` the layout of their arguments.
//!
//! Not seen: `hsa_init`, during which the tables arrive. Nothing is seen if HSA started before this library was loaded,
//! from 6.1 on (before, [`running`] finds the tables).

pub(crate) mod api;
mod argument;
mod copy;
mod event;
#[cfg(target_arch = "x86_64")]
mod gate;
mod install;
mod original;
mod running;
mod settle;
mod tools;

use crate::hip;
use crate::registration::stay_loaded;
use crate::wall::wall;
use hsa_sys::table::Root;
use std::ffi::c_char;

pub(crate) use settle::settle;
pub(crate) use tools::ask;

/// Load order of tools; the shipped library's value.
#[unsafe(no_mangle)]
pub static HSA_AMD_TOOL_PRIORITY: u32 = 50;

/// The run-time's entry point for tools.
///
/// # Safety
/// Called by the run-time with its tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OnLoad(root: *mut Root, _version: u64, _failed: u64, _names: *const *const c_char) -> bool {
    wall((), || {
        tools::asked();
        if root.is_null() {
            return;
        }
        stay_loaded();
        // SAFETY: not null, and the run-time's.
        install::install(unsafe { &*root });
        hip::engage_late();
    });
    true
}

/// The run-time's entry point at its end; it restores its functions itself. It may be started again.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    wall((), || {
        original::unload();
        ask();
    });
}
