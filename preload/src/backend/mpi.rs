//! Calls of MPI: recorded with communicator, peer, tag, bytes, root and operator.
//!
//! [`imports`] puts stubs in front of what libraries import; the stubs lead to [`calls`]. What arguments mean is in
//! [`functions`], all of them words, so no header of MPI is needed. [`family`] knows how an implementation's handles
//! look and asks it. Recorded are the calls that the program makes: not those of MPI in itself, and none inside of
//! another one.

mod calls;
mod communicators;
mod family;
mod functions;
mod imports;

use crate::config::config;
use crate::guard::{Errno, wall};
use crate::{real, thread};
use std::ffi::{CStr, c_void};

/// Starts, when this library is loaded.
pub(super) fn at_load() {
    if config().is_some_and(|config| config.has_mpi) {
        communicators::at_load();
        imports::at_load(real::is_preloaded());
    }
}

/// Sees the libraries that the loader has added.
pub(super) fn follow() {
    if imports::is_enabled() && !thread::is_aside() {
        wall((), || {
            let _errno = Errno::keep();
            imports::follow();
        });
    }
}

/// The stub for a function of MPI that the program has looked up.
pub(super) fn stand_in(name: &CStr, found: *mut c_void) -> Option<*mut c_void> {
    imports::stand_in(name, found)
}
