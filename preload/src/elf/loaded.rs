//! The loader's list of all libraries, and entries of their import tables.

use super::{Object, headers};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_int, c_void};

const PAGE: u64 = 4096;

/// Result of writing an entry.
pub(crate) enum Put {
    Done,
    /// The loader is not done with it, or another thread has bound it meanwhile.
    Later,
    /// The system does not allow it.
    Refused,
}

/// Writes an entry in the place of what it held.
pub(crate) fn put(info: &libc::dl_phdr_info, place: u64, [held, new]: [u64; 2], is_of_start: bool) -> Put {
    // SAFETY: the library has this entry, which is aligned; others only read and write it whole.
    let entry = unsafe { &*(place as *const AtomicU64) };
    let exchange = || match entry.compare_exchange(held, new, Ordering::AcqRel, Ordering::Relaxed) {
        Ok(_) => Put::Done,
        Err(_) => Put::Later,
    };
    match (protected_page(info, place), is_writable(place)) {
        // Others keep tables writable that the loader has made read-only: these stay as they are.
        (None, Some(true) | None) => exchange(),
        (Some(_), Some(true)) if is_of_start => exchange(),
        // Before the loader is done with it.
        (Some(_), Some(true)) => Put::Later,
        (None, Some(false)) => Put::Refused,
        (Some(page), _) => {
            let allow = |rights: c_int| {
                // SAFETY: a page of the library's table, which the loader made read-only and nothing else uses.
                unsafe { libc::mprotect(page as *mut c_void, PAGE as usize, rights) == 0 }
            };
            if !allow(libc::PROT_READ | libc::PROT_WRITE) {
                return Put::Refused;
            }
            let done = exchange();
            allow(libc::PROT_READ);
            done
        }
    }
}

/// Page of an entry that the loader makes read-only after relocation.
fn protected_page(info: &libc::dl_phdr_info, place: u64) -> Option<u64> {
    // SAFETY: `info` comes from the loader, during the visitor's call.
    let relro = unsafe { headers(info) }
        .iter()
        .find(|header| header.p_type == libc::PT_GNU_RELRO)?;
    let begin = info.dlpi_addr.wrapping_add(relro.p_vaddr);
    let end = begin.wrapping_add(relro.p_memsz) / PAGE * PAGE;
    (begin / PAGE * PAGE..end)
        .contains(&place)
        .then_some(place / PAGE * PAGE)
}

/// Whether a word can be written: the kernel is made to add 0 to it, in a call that does nothing else. `None` if the kernel
/// knows no such call.
fn is_writable(place: u64) -> Option<bool> {
    /// Bits of the operation: add, and compare for equality.
    const ADD_NOTHING: u64 = 1 << 28;
    let own = AtomicU64::new(0);
    let none: u64 = 0;
    let operation = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: wakes nobody: no thread waits at either place; a place that may not be written is an error of the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            (&raw const own),
            operation,
            none,
            none,
            place,
            ADD_NOTHING,
        )
    };
    match result {
        0.. => Some(true),
        _ => (std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)).then_some(false),
    }
}

/// First definition of a name in any library.
pub(crate) fn first_definition(name: &CStr) -> Option<u64> {
    let mut found = None;
    each(|object, _| {
        found = object.find(name).map(|address| address as u64);
        found.is_none()
    });
    found
}

/// Whether a library contains an address in a segment with these rights.
pub(crate) fn contains(info: &libc::dl_phdr_info, address: u64, rights: u32) -> bool {
    // SAFETY: `info` comes from the loader, during the visitor's call.
    let segments = unsafe { headers(info) }.iter();
    let mut segments = segments.filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & rights == rights);
    segments.any(|header| {
        let begin = info.dlpi_addr.wrapping_add(header.p_vaddr);
        (begin..begin.wrapping_add(header.p_memsz)).contains(&address)
    })
}

/// Whether an address is code of a library.
pub(crate) fn is_code(address: u64) -> bool {
    let mut is_it = false;
    each(|_, info| {
        is_it = contains(info, address, libc::PF_X);
        !is_it
    });
    is_it
}

/// Passes the libraries in the loader's order until `visit` returns false. The loader adds and removes none meanwhile.
pub(crate) fn each(mut visit: impl FnMut(Object, &libc::dl_phdr_info) -> bool) {
    let mut visit: &mut dyn FnMut(Object, &libc::dl_phdr_info) -> bool = &mut visit;
    // SAFETY: `pass` has the signature asked for and gets the address of `visit`, which lives during the call.
    unsafe { libc::dl_iterate_phdr(Some(pass), (&raw mut visit).cast()) };
}

unsafe extern "C" fn pass(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the address that `each` passed.
    let visit = unsafe { &mut *data.cast::<&mut dyn FnMut(Object, &libc::dl_phdr_info) -> bool>() };
    // SAFETY: the loader passes a valid structure.
    let info = unsafe { &*info };
    // SAFETY: it comes from the loader, and `visit` uses the result only now.
    match unsafe { Object::of(info) } {
        Some(object) => c_int::from(!visit(object, info)),
        None => 0,
    }
}

/// Numbers of libraries that the loader has added and removed.
pub(crate) fn loader_counts() -> [u64; 2] {
    let mut counts = [0; 2];
    each(|_, info| {
        counts = [info.dlpi_adds, info.dlpi_subs];
        false
    });
    counts
}
