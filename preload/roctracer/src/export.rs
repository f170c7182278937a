//! The interface: C functions under the names of the shipped library.
//!
//! include/roctracer.h documents the result of misuse of each, and tests/c tests it.

#![expect(
    clippy::missing_safety_doc,
    reason = "each pointer is what include/roctracer.h says of it; null is refused"
)]

mod activity;
mod callback;
mod general;

pub use activity::*;
pub use callback::*;
pub use general::*;
