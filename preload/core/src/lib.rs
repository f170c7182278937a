//! The collector's core: what every back-end writes through. It knows no back-end and exports no symbol.
//!
//! A back-end tests one word of the switch page ([`state`]), takes the thread's ring ([`thread`]) and writes
//! ([`collector`]). The first record makes the ring file ([`process`]). A fork wipes the switch page: a child begins again,
//! lazily.
//!
//! Rules: nothing happens without `ROCTOP_SESSION`; errno is kept; no allocation, lock, system call or text on the hot
//! path; a panic behind the wall ([`guard`]) switches the collector off for good and the program goes on.

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

pub mod clock;
pub mod collector;
pub mod config;
pub mod control;
pub mod guard;
pub mod identity;
pub mod level;
pub mod notices;
pub mod process;
pub mod state;
pub mod stream;
pub mod strings;
pub mod thread;
pub mod tls;
