//! The collector: loaded into a traced program, it writes records of the program's activity to the ring.
//!
//! This package contains the entry points: functions that replace the real ones, callbacks and tables ([`backend`]),
//! and the library's loading and unloading. An entry point runs inside the panic guard ([`guard`]) and records through
//! the core (`preload/core`).
//!
//! Rules: nothing happens without `ROCTOP_SESSION`. Every path calls the real function exactly once and preserves
//! errno. The hot path has no allocation, lock, system call or output. A panic permanently switches the collector off, and
//! the program continues.
//!
//! Deliberately absent: signal handlers, threads before interception starts, and any output.

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
    clock, collector, config, control, guard, identity, level, notices, origin, prefetch, process, sites, state,
    stream, thread, tls,
};
