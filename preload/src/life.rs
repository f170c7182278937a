//! Loading and unloading of the library.
//!
//! The constructor only looks at the environment, so that a shell or `cat` under roctop costs nothing. The destructor
//! takes the last times and marks the file as closed; what still comes after it is recorded all the same. `_exit` runs no
//! destructor, so it is exported here.

#![expect(unsafe_code, reason = "entries of the loader's tables of functions")]

use crate::{backend, config, guard, process, real, state};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{c_int, c_void};

#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;

/// The next library's `_exit`, looked up when this one is loaded: at an `_exit` itself nothing may be looked up.
static NEXT_EXIT: AtomicU64 = AtomicU64::new(0);

extern "C" fn load() {
    guard::wall((), || {
        let _errno = guard::Errno::keep();
        if let Some(next) = real::next(c"_exit") {
            NEXT_EXIT.store(next as u64, Ordering::Release);
        }
        if config::config().is_none() {
            state::switch_off();
        } else {
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
    }
}

/// Other preloaded libraries may have an `_exit` too, so the call goes on to the next one.
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

extern "C" fn unload() {
    guard::wall((), || {
        let _errno = guard::Errno::keep();
        if let Some(process) = process::get() {
            backend::last_drain();
            process.close();
        }
    });
}
