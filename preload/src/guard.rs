//! The panic wall and errno. Every exported function and every callback goes through here.

#![expect(unsafe_code, reason = "the C library's errno")]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; a panic inside switches the collector off for good and gives `otherwise`.
#[inline(always)]
pub fn wall<R>(otherwise: R, body: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(payload) => {
            // Dropping a payload may panic again.
            std::mem::forget(payload);
            fallen();
            otherwise
        }
    }
}

#[cold]
fn fallen() {
    crate::state::switch_off();
    let told = catch_unwind(|| crate::process::say_off("a panic inside the collector"));
    if let Err(payload) = told {
        std::mem::forget(payload);
    }
}

/// Keeps errno over a slow path.
pub struct Errno(i32);

impl Errno {
    /// Remembers errno as it is.
    pub fn keep() -> Self {
        // SAFETY: the C library gives a valid address for the calling thread.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
