//! The panic wall and errno. Every exported function and every callback runs behind it.

#![expect(unsafe_code, reason = "the C library's errno")]

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; a panic inside permanently switches the collector off and returns `otherwise`.
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
    let reported = catch_unwind(|| crate::level::step_down(crate::level::Level::Off, crate::level::Reason::Panic, 0));
    if let Err(payload) = reported {
        std::mem::forget(payload);
    }
}

/// Preserves errno across a slow path, and disables cancellation. A thread cancelled in a sleep or an open here would
/// unwind a frame that must not be unwound.
pub struct Errno {
    code: i32,
    cancel: c_int,
}

/// `PTHREAD_CANCEL_DISABLE` of the C library.
const DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

impl Errno {
    /// Stores the current errno.
    pub fn keep() -> Self {
        // SAFETY: the C library gives a valid address for the calling thread.
        let code = unsafe { *libc::__errno_location() };
        let mut cancel = 0;
        // SAFETY: `cancel` has room for the answer.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut cancel) };
        Self { code, cancel }
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: no place for an answer is needed.
        unsafe { pthread_setcancelstate(self.cancel, std::ptr::null_mut()) };
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.code };
    }
}
