//! Libraries with CPython that stay loaded. Frames are read by plain loads, so only of an interpreter that cannot be
//! unloaded: the program, a library that it was started with, or one that a thread of the collector has pinned.
//!
//! Pinning takes the loader's lock, which a thread of the program may hold as long as it wants. So a thread that does
//! nothing else pins.

#![expect(unsafe_code, reason = "the loader's functions")]

use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, CString, c_int, c_void};

/// Load addresses of libraries with CPython that the program was started with; 0 for none. They are never unloaded.
static AT_START: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// Whether a file's name is one that the library of CPython has: `libpython3.12.so.1.0`; also `python3.11`. Extension modules
/// have `python` elsewhere in their names.
pub(super) fn is_python(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.strip_prefix(b"lib").unwrap_or(name).starts_with(b"python")
}

/// Takes note of a library that the program was started with, by its load address (the loader's `l_addr`).
pub fn note_at_start(bias: u64, path: &[u8]) {
    if is_python(path)
        && let Some(place) = AT_START.iter().find(|place| place.load(Ordering::Relaxed) == 0)
    {
        place.store(bias, Ordering::Relaxed);
    }
}

/// Whether the file at `base` with this load address is there until the process ends.
pub(super) fn stays(base: u64, bias: u64) -> bool {
    // SAFETY: cannot fail, touches no memory.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    let is_program = headers & !0xfff == base;
    is_program || (bias != 0 && AT_START.iter().any(|one| one.load(Ordering::Relaxed) == bias))
}

struct Search {
    bias: u64,
    found: Option<CString>,
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the address of the `Search` that `keep` passed; the loader passes a valid structure.
    let (search, info) = unsafe { (&mut *data.cast::<Search>(), &*info) };
    if info.dlpi_addr != search.bias || info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: not null; the loader's names are terminated, and it frees none during the visit.
    search.found = Some(unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned());
    1
}

/// Keeps the library with this load address loaded until the process ends; false if it is gone. Waits for the loader's lock.
pub(super) fn keep(bias: u64) -> bool {
    let mut search = Search { bias, found: None };
    // SAFETY: `visit` has the signature asked for and gets the address of `search`, which lives during the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    let Some(name) = search.found else { return false };
    let flags = libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_LAZY;
    // SAFETY: the name is terminated; NOLOAD only changes what is loaded already. The handle is not closed.
    let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
    if handle.is_null() {
        return false;
    }
    // Another file of that name may have been loaded meanwhile.
    let mut map: *const u64 = std::ptr::null();
    // SAFETY: the handle is open; the answer is the address of the loader's record, whose first word is the load address.
    unsafe {
        let is_found = libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) == 0;
        is_found && !map.is_null() && *map == bias
    }
}
