//! ROCTracer's switches: a program that has a profiler look at a part of itself alone does so with them, and means roctop
//! too. They are passed on to the program's own library.

#![expect(unsafe_code, reason = "exported functions")]

use super::roctx;
use crate::guard::{Errno, wall};
use crate::{real, thread};
use std::ffi::CStr;

/// How the library's file name begins.
const LIBRARY: &str = "libroctracer64.so";

/// The program's tracing goes on, or begins.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_start() {
    wall((), roctx::resume);
    pass_on(c"roctracer_start");
}

/// The program's tracing stops.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_stop() {
    pass_on(c"roctracer_stop");
    wall((), roctx::pause);
}

/// Calls the program's library, which may be in a scope of its own and may have come since the last time.
fn pass_on(name: &'static CStr) {
    let errno = Errno::keep();
    let found = wall(None, || {
        thread::aside(|| real::next(name).or_else(|| real::loaded(LIBRARY)?.0.symbol(name)))
    });
    drop(errno);
    if let Some(found) = found {
        // SAFETY: the library's function of this name takes and returns nothing (roctracer.h).
        let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, extern "C" fn()>(found) };
        function();
    }
}
