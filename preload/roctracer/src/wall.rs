//! The panic wall around every entry point.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; returns `otherwise` if it panics. Nothing unwinds into a run-time or a program.
#[inline]
pub(crate) fn wall<R>(otherwise: R, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // Dropping a payload may panic again.
        std::mem::forget(payload);
        otherwise
    })
}
