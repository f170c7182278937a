//! Host twins of kernels: host functions with the effect of a program's kernels on memory.
//!
//! `EMULATED_GPU_KERNELS` names a library with a C function for each kernel with an effect. The function has the
//! kernel's mangled name and this type; it is called when the kernel ends, before its completion signal:
//!
//! ```c
//! void NAME(const void* arguments, const uint32_t grid[3], const uint16_t workgroup[3]);
//! ```
//!
//! The program's thread that opens the driver opens the library: an engine thread would wait for the loader's locks,
//! which the program may hold while it waits for the GPU.
//!
//! Not supported: host memory that the GPU knows at another address, as registered memory may be.
#![expect(unsafe_code, reason = "calls functions of a library by their names")]

use std::ffi::{CString, c_void};
use std::sync::OnceLock;

use crate::model::model;

type Twin = unsafe extern "C" fn(arguments: *const c_void, grid: *const u32, workgroup: *const u16);

/// The library, or null; opened on first use.
pub(crate) fn library() -> *mut c_void {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let open = || {
        let path = model().kernels.as_deref().and_then(|path| CString::new(path).ok());
        // SAFETY: a terminated path; the library stays open.
        path.map_or(0, |path| unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) }
            as usize)
    };
    *LIBRARY.get_or_init(open) as *mut c_void
}

/// Executes the twin of the kernel with this name, if there is one.
pub(crate) fn execute(name: &str, arguments: u64, grid: [u32; 3], workgroup: [u16; 3]) {
    let library = library();
    if library.is_null() || name.is_empty() {
        return;
    }
    let Ok(name) = CString::new(name) else { return };
    // SAFETY: the library is never closed, the name is terminated.
    let twin = unsafe { libc::dlsym(library, name.as_ptr()) };
    if twin.is_null() {
        return;
    }
    // SAFETY: functions of a kernel's name have this type by the library's contract.
    let twin = unsafe { std::mem::transmute::<*mut c_void, Twin>(twin) };
    // SAFETY: the argument block is the dispatch's own, kept by the program until its signal.
    unsafe { twin(arguments as *const c_void, grid.as_ptr(), workgroup.as_ptr()) };
}
