//! Weak references that this library alone fulfils: without it they would be empty, and a program that asks whether a function
//! of HIP or RCCL is there would find none. Those of ROC-TX stay: markers are recorded without the library.

#![expect(unsafe_code, reason = "the loader's import tables")]

use crate::elf::loaded::{contains, each, put};
use crate::elf::{Import, headers};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::CStr;
use std::ops::Range;

/// Beginnings of the names: functions of HIP, those of its compiler, those of RCCL.
const STARTS: [&[u8]; 4] = [b"hip", b"__hip", b"nccl", b"mscc"];

/// Empties them, in this library's constructor: all libraries that the program starts with are relocated.
pub(crate) fn at_load() {
    let inside = at_load as fn() as usize as u64;
    let mut own = 0..0;
    each(|_, info| {
        if contains(info, inside, libc::PF_X) {
            own = code_of(info, inside);
        }
        own.is_empty()
    });
    each(|object, info| {
        if !contains(info, inside, libc::PF_X) {
            object.imports(&STARTS, |import| {
                if import.is_weak {
                    empty(info, import, &own);
                }
            });
        }
        true
    });
}

/// The segment of a library with an address.
fn code_of(info: &libc::dl_phdr_info, inside: u64) -> Range<u64> {
    // SAFETY: `info` comes from the loader, during the visitor's call.
    let segments = unsafe { headers(info) }.iter();
    let mut ranges = segments.filter(|header| header.p_type == libc::PT_LOAD).map(|header| {
        let begin = info.dlpi_addr.wrapping_add(header.p_vaddr);
        begin..begin.wrapping_add(header.p_memsz)
    });
    ranges.find(|range| range.contains(&inside)).unwrap_or(0..0)
}

fn empty(info: &libc::dl_phdr_info, import: &Import<'_>, own: &Range<u64>) {
    if !import.place.is_multiple_of(align_of::<u64>() as u64) {
        return;
    }
    // SAFETY: the library has this entry, which is aligned.
    let held = unsafe { &*(import.place as *const AtomicU64) }.load(Ordering::Relaxed);
    if own.contains(&held) && !is_elsewhere(import.name, own) {
        // Where it cannot be written, its calls return an error.
        put(info, import.place, [held, 0], true);
    }
}

/// Whether another library defines a name.
fn is_elsewhere(name: &CStr, own: &Range<u64>) -> bool {
    let mut is_it = false;
    each(|object, _| {
        is_it = object.find(name).is_some_and(|found| !own.contains(&(found as u64)));
        !is_it
    });
    is_it
}
