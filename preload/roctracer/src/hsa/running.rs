//! The function tables of a run-time that started without this library.
//!
//! A tool that the run-time does not find at its start gets no tables. An example is one loaded with another tool, in
//! whose `OnLoad` it is too late to be named. From 6.1 on nothing is searched: there the tables may belong to another
//! tool. The run-time's tables are in its own data: a root table, referenced by one pointer of the run-time, with the
//! core and the AMD table beside it. Each begins with its version and its size. If exactly one address matches, it is
//! used; otherwise nothing is done.

use crate::loader::{self, segments};
use hsa_sys::abi::{SUCCESS, Status};
use hsa_sys::table::Root;
use std::ffi::c_void;
use std::ops::Range;

const LIBRARY: &str = "libhsa-runtime64.so";
const WORD: usize = size_of::<u64>();
/// Bytes of a version, and of the smallest and largest table of any release.
const VERSION_BYTES: usize = 16;
const TABLE_BYTES: Range<usize> = 256..8192;
/// Upper bound of a release's major version and step; the word after them is 0.
const MAX_VERSION: u32 = 256;

/// Whether HSA has started and not ended.
fn is_running() -> bool {
    let Some((library, _)) = loader::loaded(LIBRARY).into_iter().next() else {
        return false;
    };
    let Some(get_info) = library.symbol(c"hsa_system_get_info") else {
        return false;
    };
    // SAFETY: the symbol of this name has this type.
    let get_info =
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(i32, *mut c_void) -> Status>(get_info) };
    let mut version = 0u64;
    // SAFETY: attribute 0, the major version, fits the buffer. It fails while HSA is not running.
    unsafe { get_info(0, (&raw mut version).cast()) == SUCCESS }
}

/// The running run-time's tables.
pub(super) fn tables() -> Option<*mut Root> {
    if !is_running() {
        return None;
    }
    let mut found = None;
    for data in segments(LIBRARY) {
        for at in (data.start.next_multiple_of(WORD)..data.end.saturating_sub(WORD)).step_by(WORD) {
            let pointer = word(at);
            if is_root(pointer, &data) {
                if found.is_some_and(|found| found != pointer) {
                    return None;
                }
                found = Some(pointer);
            }
        }
    }
    found.map(|root| root as *mut Root)
}

/// A word of the run-time's data.
fn word(at: usize) -> usize {
    // SAFETY: the callers stay inside the segment, which stays mapped: the library is held open.
    unsafe { std::ptr::read_volatile(at as *const usize) }
}

/// Whether this is the address of a table in the segment, of one of these sizes.
fn is_table(at: usize, data: &Range<usize>, sizes: &Range<usize>) -> bool {
    let has_room =
        at.is_multiple_of(WORD) && at >= data.start && at.checked_add(VERSION_BYTES).is_some_and(|end| end <= data.end);
    if !has_room {
        return false;
    }
    let (major, size) = (word(at) as u32, word(at) >> 32);
    (1..MAX_VERSION).contains(&major)
        && word(at + WORD) < MAX_VERSION as usize
        && sizes.contains(&size)
        && at + size <= data.end
}

fn is_root(at: usize, data: &Range<usize>) -> bool {
    let own = size_of::<Root>();
    // 5.7 has one table more. Later releases have even more; another tool may have their tables.
    is_table(at, data, &(own..own + WORD + 1))
        && is_table(word(at + std::mem::offset_of!(Root, core)), data, &TABLE_BYTES)
        && is_table(word(at + std::mem::offset_of!(Root, amd)), data, &TABLE_BYTES)
}
