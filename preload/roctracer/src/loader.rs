//! Finds the run-times that the program has loaded; never loads a library.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::Range;

/// A loaded library, held by an extra reference that is never released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    handle: *mut c_void,
}

impl Library {
    /// The library's own definition of `name`.
    pub(crate) fn symbol(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is never closed, `name` is terminated.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

/// The program's definition of `name`: that of the first library in its scope. A preloaded one, such as roctop's
/// collector, comes before the run-time.
pub(crate) fn first(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `name` is terminated.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

struct Search<'a> {
    part: &'a [u8],
    found: Vec<CString>,
}

/// The loaded libraries whose file name begins with `part`, with their paths, in the loader's order.
pub(crate) fn loaded(part: &str) -> Vec<(Library, CString)> {
    let mut search = Search {
        part: part.as_bytes(),
        found: Vec::new(),
    };
    // SAFETY: `visit` has the signature asked for and gets the address of `search`, which lives during the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    let open = |path: CString| {
        // SAFETY: `path` is terminated; NOLOAD only takes a reference to what is loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some((Library { handle }, path))
    };
    search.found.into_iter().filter_map(open).collect()
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the address of the `Search` that `loaded` passed.
    let search = unsafe { &mut *data.cast::<Search<'_>>() };
    // SAFETY: the loader passes a valid structure.
    let name: *const c_char = unsafe { (*info).dlpi_name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: not null, and the loader's names are terminated.
    let path = unsafe { CStr::from_ptr(name) };
    if file_name(path).starts_with(search.part) {
        search.found.push(path.to_owned());
    }
    0
}

/// File of the library that contains `inside`.
pub(crate) fn file_of(inside: *const c_void) -> Option<CString> {
    let mut facts = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `facts` has room for the answer.
    if unsafe { libc::dladdr(inside, facts.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: zero is a valid value of every field, and the call filled it.
    let name = unsafe { facts.assume_init() }.dli_fname;
    // SAFETY: the loader's names are terminated.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_owned())
}

/// Keeps the library that contains `inside` loaded permanently.
pub(crate) fn pin(inside: *const c_void) {
    if let Some(file) = file_of(inside) {
        // SAFETY: terminated; NOLOAD only affects loaded libraries.
        unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_LAZY) };
    }
}

struct Segments<'a> {
    part: &'a [u8],
    found: Vec<Range<usize>>,
}

/// The writable segments of the loaded library whose file name begins with `part`.
pub(crate) fn segments(part: &str) -> Vec<Range<usize>> {
    let mut segments = Segments {
        part: part.as_bytes(),
        found: Vec::new(),
    };
    // SAFETY: as in `loaded`.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut segments).cast()) };
    segments.found
}

unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid structure, and `data` is the address that `segments` passed.
    let (info, segments) = unsafe { (&*info, &mut *data.cast::<Segments<'_>>()) };
    if info.dlpi_name.is_null() || info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: not null, and the loader's names are terminated.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) };
    if file_name(path).starts_with(segments.part) {
        // SAFETY: the loader gives the number of headers.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let writable = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0);
        segments.found.extend(writable.map(|header| {
            let begin = (info.dlpi_addr + header.p_vaddr) as usize;
            begin..begin + header.p_memsz as usize
        }));
    }
    0
}

/// The last part of a path.
pub(crate) fn file_name(path: &CStr) -> &[u8] {
    path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
