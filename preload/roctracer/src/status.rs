//! Return values of the functions, and their texts.

use std::cell::RefCell;
use std::ffi::c_char;
use std::fmt::{Arguments, Write};

/// `roctracer_status_t`.
pub(crate) type Status = i32;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const ERROR: Status = -1;
pub(crate) const INVALID_DOMAIN: Status = -2;
pub(crate) const INVALID_ARGUMENT: Status = -3;
pub(crate) const DEFAULT_POOL_UNDEFINED: Status = -4;
pub(crate) const DEFAULT_POOL_ALREADY_DEFINED: Status = -5;
pub(crate) const MEMORY_ALLOCATION: Status = -6;
pub(crate) const MISMATCHED_EXTERNAL_ID: Status = -7;
pub(crate) const NOT_IMPLEMENTED: Status = -8;

/// A function's internal result; failures are recorded by [`fail`].
pub(crate) type Result<T> = std::result::Result<T, Status>;

/// The status for C.
pub(crate) fn of(result: Result<()>) -> Status {
    result.err().unwrap_or(SUCCESS)
}

const TEXT_BYTES: usize = 192;

/// A text without allocation, so that a failed allocation can be reported too.
struct Text {
    bytes: [u8; TEXT_BYTES],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        for byte in part.bytes() {
            // The last byte stays zero.
            if self.length + 1 < TEXT_BYTES
                && let Some(place) = self.bytes.get_mut(self.length)
            {
                *place = byte;
                self.length += 1;
            }
        }
        Ok(())
    }
}

thread_local! {
    static LAST: RefCell<Text> = const { RefCell::new(Text { bytes: [0; TEXT_BYTES], length: 0 }) };
}

/// Records this thread's failure and returns the status.
#[cold]
pub(crate) fn fail(status: Status, what: Arguments<'_>) -> Status {
    LAST.with_borrow_mut(|text| {
        text.bytes = [0; TEXT_BYTES];
        text.length = 0;
        // Never fails: excess text is cut.
        let _ = text.write_fmt(what);
    });
    status
}

/// This thread's last text, allocated by the C library and freed by the caller; null if memory is exhausted.
pub(crate) fn last() -> *mut c_char {
    LAST.with_borrow(|text| {
        // SAFETY: terminated by the zero after its length.
        unsafe { libc::strdup(text.bytes.as_ptr().cast()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        assert_eq!(fail(ERROR, format_args!("{}", "x".repeat(1000))), ERROR);
        let text = last();
        // SAFETY: a terminated string of the C library's.
        let length = unsafe { CStr::from_ptr(text) }.to_bytes().len();
        assert_eq!(length, TEXT_BYTES - 1);
        // SAFETY: from `strdup`.
        unsafe { libc::free(text.cast()) };
    }
}
