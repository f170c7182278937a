//! The collector: loaded into a stranger's program, writes what it does to the ring.
//!
//! This package has the entry points: functions that the program calls instead of the real ones, callbacks and tables
//! ([`backend`]), and what happens when the library is loaded and unloaded. An entry point runs behind the panic wall
//! ([`guard`]) and writes through the core (`preload/core`).
//!
//! Rules: nothing happens without `ROCTOP_SESSION`; the real function is called exactly once on every path; errno is
//! kept; no allocation, lock, system call or text on the hot path; a panic switches the collector off for good and the
//! program goes on.
//!
//! Absent on purpose: signal handlers, threads before interception runs, any text on the program's own output.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::exit,
    clippy::print_stdout,
    clippy::print_stderr
)]
#![expect(
    clippy::inline_always,
    reason = "the path of every traced call, measured in nanoseconds"
)]

pub mod backend;
mod elf;
mod life;
pub mod real;

pub use roctop_collector::{
    clock, collector, config, control, guard, identity, level, notices, process, state, stream, thread, tls,
};
