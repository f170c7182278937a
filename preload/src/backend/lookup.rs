//! `dlsym` and `dlvsym`: a lookup in the run-time's own handle returns the wrapped function.
//!
//! All other lookups continue by a jump, with the caller's return address in place, because `RTLD_NEXT` and
//! `RTLD_DEFAULT` depend on it. Only lookups by a real handle of a wrapped name are examined, and only if the result is
//! in a library to which the name belongs. That result then becomes the real function of the wrapped one.
//!
//! Every lookup is also an opportunity to see libraries that the loader has added ([`mpi`]).

#![expect(unsafe_code, reason = "stands in front of the loader's functions")]
#![expect(unreachable_pub, reason = "exported by their symbols alone")]

use crate::backend::hip::{self, slot};
use crate::backend::hsa::init;
use crate::backend::{mpi, roctx};
use crate::guard::{Errno, wall};
use crate::state::{self, word};
use crate::{real, thread};
use roctop_ring::sync::Ordering;
use std::ffi::{CStr, c_char, c_void};

/// Continuation of the assembly: a result, or a jump target.
#[repr(C)]
struct Found {
    answer: *mut c_void,
    real: *mut c_void,
}

macro_rules! gate {
    ($name:ident, $look:ident) => {
        #[doc = concat!("`", stringify!($name), "`.")]
        #[cfg(target_arch = "x86_64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_def_cfa_offset 16",
                "push rsi",
                ".cfi_def_cfa_offset 24",
                "push rdx",
                ".cfi_def_cfa_offset 32",
                "call {look}",
                "mov r11, rdx",
                "pop rdx",
                ".cfi_def_cfa_offset 24",
                "pop rsi",
                ".cfi_def_cfa_offset 16",
                "pop rdi",
                ".cfi_def_cfa_offset 8",
                "test rax, rax",
                "jnz 2f",
                "jmp r11",
                "2:",
                "ret",
                ".cfi_endproc",
                look = sym $look,
            )
        }
    };
}

gate!(dlsym, by_name);
gate!(dlvsym, by_version);

/// Replaces a loader function that was not found: no such symbol.
extern "C" fn nothing() -> *mut c_void {
    std::ptr::null_mut()
}

fn or_nothing(address: Option<*mut c_void>) -> *mut c_void {
    address.unwrap_or(nothing as extern "C" fn() -> *mut c_void as *mut c_void)
}

unsafe extern "C" fn by_name(handle: *mut c_void, name: *const c_char) -> Found {
    let real = real::loaders_dlsym();
    let answer = answer(handle, name, |name| {
        // SAFETY: the caller's own handle, and a terminated name.
        real.map(|real| unsafe { real(handle, name.as_ptr()) })
    });
    Found {
        answer,
        real: or_nothing(
            real.map(|real| real as *mut c_void)
                .filter(|_| !is_absent(handle, name)),
        ),
    }
}

/// Whether the program would find our wrapped function in its own scope although there is no real one.
fn is_absent(handle: *mut c_void, name: *const c_char) -> bool {
    if handle == libc::RTLD_NEXT || name.is_null() || word(word::COLLECTOR).load(Ordering::Relaxed) == state::OFF {
        return false;
    }
    // SAFETY: not null; the caller passes a terminated name.
    let name = unsafe { CStr::from_ptr(name) };
    if !NAME_PREFIXES.iter().any(|start| name.to_bytes().starts_with(start)) || thread::is_aside() {
        return false;
    }
    wall(false, || {
        let _errno = Errno::keep();
        // `dlopen(NULL)` is the program's scope too.
        let is_scope = handle == libc::RTLD_DEFAULT || real::is_program(handle);
        is_scope && hip::gate::wrapped(name).is_some_and(|(index, _)| !hip::gate::is_there(index))
    })
}

/// Prefixes of the wrapped functions' names.
const NAME_PREFIXES: [&[u8]; 5] = [b"hip", b"__hip", b"_Z", b"nccl", b"msccl"];

unsafe extern "C" fn by_version(handle: *mut c_void, name: *const c_char, version: *const c_char) -> Found {
    let real = real::loaders_dlvsym();
    let answer = answer(handle, name, |name| {
        // SAFETY: the caller's own handle and version, and a terminated name.
        real.map(|real| unsafe { real(handle, name.as_ptr(), version) })
    });
    Found {
        answer,
        real: or_nothing(real.map(|real| real as *mut c_void)),
    }
}

/// The wrapped function; null if the lookup does not concern us.
fn answer(handle: *mut c_void, name: *const c_char, ask: impl FnOnce(&CStr) -> Option<*mut c_void>) -> *mut c_void {
    mpi::follow();
    let is_special = handle.is_null() || handle == libc::RTLD_NEXT;
    if is_special || name.is_null() || word(word::COLLECTOR).load(Ordering::Relaxed) == state::OFF {
        return std::ptr::null_mut();
    }
    // SAFETY: not null; the caller passes a terminated name.
    let name = unsafe { CStr::from_ptr(name) };
    let bytes = name.to_bytes();
    let others: [&[u8]; 4] = [b"hsa_init", b"roctx", b"MPI_", b"PMPI_"];
    let mut starts = NAME_PREFIXES.iter().chain(&others);
    if !starts.any(|start| bytes.starts_with(start)) || thread::is_aside() {
        return std::ptr::null_mut();
    }
    wall(std::ptr::null_mut(), || {
        let _errno = Errno::keep();
        wrapped(name, ask).unwrap_or(std::ptr::null_mut())
    })
}

fn wrapped(name: &CStr, ask: impl FnOnce(&CStr) -> Option<*mut c_void>) -> Option<*mut c_void> {
    if name == init::NAME {
        let found = ask(name).filter(|found| !found.is_null() && real::lies_in(*found, init::LIBRARY))?;
        return Some(init::found(found));
    }
    if name.to_bytes().starts_with(b"roctx") {
        return roctx::stand_in(name, ask(name).filter(|found| !found.is_null())?);
    }
    if name.to_bytes().starts_with(b"MPI_") || name.to_bytes().starts_with(b"PMPI_") {
        return mpi::stand_in(name, ask(name)?);
    }
    let ours = hip::gate::wrapped(name).map(|(index, stub)| (Some(index), stub));
    let (index, stub) = ours.or_else(|| slot::wrapped(name).map(|stub| (None, stub)))?;
    let found = ask(name).filter(|found| !found.is_null())?;
    if let Some(index) = index {
        return hip::gate::is_behind(index, found).then_some(stub);
    }
    real::lies_in(found, hip::LIBRARY).then(|| {
        slot::found(found);
        stub
    })
}
