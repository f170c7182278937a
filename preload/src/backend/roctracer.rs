//! ROCTracer's start and stop: a program that limits profiling to a part of itself uses them, and this applies to
//! roctop too. They are passed on to the program's own library.

#![expect(unsafe_code, reason = "exported functions")]

use super::roctx;
use crate::guard::{Errno, wall};
use crate::{real, thread};
use std::ffi::CStr;

/// Start of the library's file name.
const LIBRARY: &str = "libroctracer64.so";

/// Resumes recording.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_start() {
    wall((), roctx::resume);
    pass_on(c"roctracer_start");
}

/// Pauses recording.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_stop() {
    pass_on(c"roctracer_stop");
    wall((), roctx::pause);
}

/// Calls the program's library, which may be in a separate scope and may have been loaded since the last time.
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
