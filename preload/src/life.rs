//! Loading and unloading of the library.
//!
//! The constructor only reads the environment and the loader's list of libraries, so that a shell or `cat` under roctop costs nothing. At `exit`, the last
//! times are taken before any library's destructor: destructors of libraries preloaded before this one run first, and
//! one of them may provide the run-time's times. The destructor takes the rest and marks the file as closed; later
//! calls are still recorded. `_exit` runs neither, so it is exported here.

#![expect(unsafe_code, reason = "entries of the loader's tables of functions")]

use crate::{backend, config, guard, process, real, sites, state};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{c_int, c_void};

#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;

/// The next library's `_exit`, looked up at load, because nothing may be looked up during `_exit`.
static NEXT_EXIT: AtomicU64 = AtomicU64::new(0);

extern "C" fn load() {
    guard::wall((), || {
        let _errno = guard::Errno::keep();
        if let Some(next) = real::next(c"_exit") {
            NEXT_EXIT.store(next as u64, Ordering::Release);
        }
        #[cfg(target_arch = "x86_64")]
        if real::is_preloaded() {
            backend::weak::at_load();
        }
        if config::config().is_none() {
            state::switch_off();
        } else {
            if real::is_preloaded() {
                real::each_loaded(|bias, path| sites::note_at_start(bias, path.to_bytes()));
            }
            backend::at_load();
        }
    });
}

/// Ends the process at once: no destructor runs, so the last times are taken here. Not in a child that shares or copied
/// the memory of a traced process.
#[expect(unreachable_pub, reason = "exported by its symbol alone")]
#[unsafe(no_mangle)]
pub extern "C" fn _exit(code: c_int) -> ! {
    guard::wall((), before_exit);
    leave(code)
}

/// As `_exit`.
#[expect(unreachable_pub, reason = "exported by its symbol alone")]
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(code: c_int) -> ! {
    guard::wall((), before_exit);
    leave(code)
}

fn before_exit() {
    let _errno = guard::Errno::keep();
    if process::get().is_some_and(process::Process::is_this) {
        backend::hsa::harvest::before_exit();
        backend::hsa::code::finish_all();
    }
}

/// Other preloaded libraries may export `_exit` too, so the call continues to the next one.
fn leave(code: c_int) -> ! {
    let next = NEXT_EXIT.load(Ordering::Acquire) as usize as *const c_void;
    if !next.is_null() {
        // SAFETY: the address of a function of this signature, found by its name.
        let next = unsafe { std::mem::transmute::<*const c_void, unsafe extern "C" fn(c_int)>(next) };
        // SAFETY: ends the process, as the caller wants.
        unsafe { next(code) };
    }
    loop {
        // SAFETY: ends the process; what the C library's function does, and nothing else.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}

/// Takes the last times at `exit`; registered once per process.
pub(crate) fn at_exit() {
    static IS_ASKED: AtomicU64 = AtomicU64::new(0);
    if IS_ASKED.swap(1, Ordering::AcqRel) == 0 {
        // SAFETY: a function of this library, which stays loaded once a run-time is there.
        unsafe { libc::atexit(exit) };
    }
}

extern "C" fn exit() {
    guard::wall((), || {
        let _errno = guard::Errno::keep();
        if process::get().is_some() {
            backend::last_drain();
        }
    });
}

extern "C" fn unload() {
    guard::wall((), || {
        let _errno = guard::Errno::keep();
        if let Some(process) = process::get() {
            backend::last_drain();
            process.close();
        }
    });
}
