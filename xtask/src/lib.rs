//! Tasks of those who work on roctop, as functions that tests can call.
#![forbid(unsafe_code)]

mod elf;
mod header;
pub mod hip_diff;
