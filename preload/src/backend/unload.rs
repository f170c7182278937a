//! `dlclose`: what is known of call paths does not count once a library is gone, since another may take its place.

#![expect(unsafe_code, reason = "stands in front of the loader's function")]
#![expect(unreachable_pub, reason = "exported by its symbol alone")]

use crate::guard::{Errno, wall};
use crate::real;
use crate::sites;
use crate::state::{self, word};
use roctop_ring::sync::Ordering;
use std::ffi::{c_int, c_void};

/// `dlclose`.
///
/// # Safety
/// As for the real one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    let Some(real) = real::loaders_dlclose() else {
        return -1;
    };
    // SAFETY: the caller's own handle.
    let result = unsafe { real(handle) };
    if result == 0 && word(word::COLLECTOR).load(Ordering::Relaxed) != state::OFF {
        wall((), || {
            let _errno = Errno::keep();
            sites::note_unloaded(real::unloaded());
        });
    }
    result
}
