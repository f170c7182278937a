//! The original functions of HSA's tables, behind everything that this library puts there.

use crate::clock;
use hsa_sys::table::Table;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The original functions of the tables, by entry of the newest numbering; 0 if the release does not have it.
pub(super) static CORE: [AtomicUsize; 125] = [const { AtomicUsize::new(0) }; 125];
pub(super) static AMD: [AtomicUsize; 76] = [const { AtomicUsize::new(0) }; 76];
/// `hsa_system_get_info` in the core table.
const SYSTEM_GET_INFO: usize = 2;
/// Between `OnLoad` and `OnUnload`.
static IS_LOADED: AtomicBool = AtomicBool::new(false);

/// Whether HSA started with this library.
pub(super) fn is_loaded() -> bool {
    IS_LOADED.load(Ordering::Acquire)
}

/// The original core function of an entry.
///
/// # Safety
/// `F` is the type of that entry's function.
pub(super) unsafe fn core<F: Copy>(entry: usize) -> Option<F> {
    // SAFETY: by the contract.
    unsafe { function(CORE.get(entry)?) }
}

/// The original AMD function of an entry of the newest numbering.
///
/// # Safety
/// As above.
pub(super) unsafe fn amd<F: Copy>(entry: usize) -> Option<F> {
    // SAFETY: by the contract.
    unsafe { function(AMD.get(entry)?) }
}

unsafe fn function<F: Copy>(place: &AtomicUsize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = place.load(Ordering::Acquire);
    // SAFETY: not null, of the size of an address (asserted above), and of this type by the callers' contract.
    (address != 0).then(|| unsafe { std::mem::transmute_copy(&address) })
}

/// The original functions are known.
pub(super) fn load() {
    IS_LOADED.store(true, Ordering::Release);
    // SAFETY: the type of the entry's function.
    clock::set_get_info(unsafe { core(SYSTEM_GET_INFO) });
}

/// HSA ends.
pub(super) fn unload() {
    IS_LOADED.store(false, Ordering::Release);
    clock::set_get_info(None);
}

/// Replaces a table's entry.
pub(super) fn hook(table: Table, entry: Option<usize>, function: *mut c_void) {
    let Some(entry) = entry else { return };
    // SAFETY: the run-time's table; callers pair each entry with a function of its type; this library stays loaded.
    unsafe {
        if table.function(entry).is_some() {
            table.patch(entry, function);
        }
    }
}
