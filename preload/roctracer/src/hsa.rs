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
mod running;
mod settle;
mod tools;

use crate::clock;
use crate::hip;
use crate::registration::stay_loaded;
use crate::wall::wall;
use hsa_sys::abi::Status;
use hsa_sys::table::{AmdLayout, Root, Table};
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

pub(crate) use settle::{AsyncHandler, CONDITION_LT, Handler, settle};
pub(crate) use tools::ask;

/// Load order of tools; the shipped library's value.
#[unsafe(no_mangle)]
pub static HSA_AMD_TOOL_PRIORITY: u32 = 50;

/// The original functions of the tables, by entry of the newest numbering; 0 if the release does not have it.
static CORE: [AtomicUsize; 125] = [const { AtomicUsize::new(0) }; 125];
static AMD: [AtomicUsize; 76] = [const { AtomicUsize::new(0) }; 76];
/// Between `OnLoad` and `OnUnload`.
static IS_LOADED: AtomicBool = AtomicBool::new(false);

/// Whether HSA started with this library.
pub(crate) fn is_loaded() -> bool {
    IS_LOADED.load(Ordering::Acquire)
}

/// The original core function of an entry.
///
/// # Safety
/// `F` is the type of that entry's function.
unsafe fn core<F: Copy>(entry: usize) -> Option<F> {
    // SAFETY: by the contract.
    unsafe { function(CORE.get(entry)?) }
}

/// The original AMD function of an entry of the newest numbering.
///
/// # Safety
/// As above.
unsafe fn amd<F: Copy>(entry: usize) -> Option<F> {
    // SAFETY: by the contract.
    unsafe { function(AMD.get(entry)?) }
}

unsafe fn function<F: Copy>(place: &AtomicUsize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = place.load(Ordering::Acquire);
    // SAFETY: not null, of the size of an address (asserted above), and of this type by the callers' contract.
    (address != 0).then(|| unsafe { std::mem::transmute_copy(&address) })
}

/// `hsa_system_get_info` behind all hooks; `None` before HSA starts and after it ends.
pub(crate) fn system_get_info() -> Option<unsafe extern "C" fn(i32, *mut c_void) -> Status> {
    // SAFETY: the entry's type.
    is_loaded().then(|| unsafe { core(2) })?
}

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
        install(unsafe { &*root });
        hip::engage_late();
    });
    true
}

/// Finds the tables if HSA started without this library.
fn install_late() {
    if let Some(root) = running::tables() {
        // SAFETY: the run-time's table, found in its memory.
        install(unsafe { &*root });
    }
}

/// The run-time's entry point at its end; it restores its functions itself. It may be started again.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    wall((), || {
        IS_LOADED.store(false, Ordering::Release);
        ask();
    });
}

static INSTALLING: Mutex<()> = Mutex::new(());

fn install(root: &Root) -> Option<()> {
    let (core, amd) = (Table::new(root.core)?, Table::new(root.amd)?);
    // `HSA_TOOLS_LIB` may name this library twice. A second call would find the first call's functions in the tables
    // and take them for the run-time's: they would call themselves.
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if is_loaded() {
        return None;
    }
    // SAFETY: the run-time's table.
    let size = unsafe { amd.size() };
    let layout = AmdLayout::of_size(size);
    for (entry, place) in CORE.iter().enumerate() {
        // SAFETY: the run-time's table.
        let function = unsafe { core.function(entry) };
        place.store(function.map_or(0, |function| function as usize), Ordering::Release);
    }
    for (newest, place) in AMD.iter().enumerate() {
        // SAFETY: the run-time's table.
        let function = layout.entry(newest).and_then(|entry| unsafe { amd.function(entry) });
        place.store(function.map_or(0, |function| function as usize), Ordering::Release);
    }
    IS_LOADED.store(true, Ordering::Release);
    clock::now();
    event::patch(core, amd, layout);
    copy::patch(amd, layout);
    // Last, in front of the functions above.
    #[cfg(target_arch = "x86_64")]
    gate::patch(root, layout);
    Some(())
}

/// Replaces a table's entry.
fn hook(table: Table, entry: Option<usize>, function: *mut c_void) {
    let Some(entry) = entry else { return };
    // SAFETY: the run-time's table; callers pair each entry with a function of its type; this library stays loaded.
    unsafe {
        if table.function(entry).is_some() {
            table.patch(entry, function);
        }
    }
}
