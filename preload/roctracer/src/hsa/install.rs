//! Puts this library's functions into HSA's tables.

#[cfg(target_arch = "x86_64")]
use super::gate;
use super::original::{self, AMD, CORE, is_loaded};
use super::{copy, event, running};
use crate::clock;
use hsa_sys::table::{AmdLayout, Root, Table};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// Finds the tables if HSA started without this library.
pub(super) fn install_late() {
    if let Some(root) = running::tables() {
        // SAFETY: the run-time's table, found in its memory.
        install(unsafe { &*root });
    }
}

static INSTALLING: Mutex<()> = Mutex::new(());

pub(super) fn install(root: &Root) -> Option<()> {
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
    original::load();
    clock::now();
    event::patch(core, amd, layout);
    copy::patch(amd, layout);
    // Last, in front of the functions above.
    #[cfg(target_arch = "x86_64")]
    gate::patch(root, layout);
    Some(())
}
