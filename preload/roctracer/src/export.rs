//! The interface: C functions by the names of the shipped library.
//!
//! What each returns on misuse is said in include/roctracer.h and tested by tests/c.

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
