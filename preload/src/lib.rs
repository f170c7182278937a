//! The collector: loaded into a stranger's program, writes what it does to the ring.
//!
//! How a call becomes a record: an entry point of a back-end ([`backend`]) runs behind the panic wall ([`guard`]), tests
//! one word of the switch page ([`state`]), takes the thread's ring ([`thread`]) and writes ([`collector`]). The first
//! entry of all makes the ring file ([`process`]). A fork wipes the switch page: a child begins anew, lazily.
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
pub mod clock;
pub mod collector;
pub mod config;
pub mod control;
mod elf;
pub mod guard;
pub mod identity;
pub mod level;
mod life;
pub mod process;
pub mod real;
pub mod state;
pub mod strings;
pub mod thread;
mod tls;
