//! The collector's core, through which every back-end writes. It knows no back-end and exports no symbol.
//!
//! A back-end tests one word of the switch page ([`state`]), takes the thread's ring ([`thread`]) and writes
//! ([`collector`]). The first record creates the ring file ([`process`]). A fork wipes the switch page, so a child
//! starts again at its first call.
//!
//! Rules: nothing happens without `ROCTOP_SESSION`. errno is preserved. The hot path has no allocation, lock, system
//! call or text. A panic behind the wall ([`guard`]) permanently switches the collector off, and the program continues.

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
pub mod origin;
mod prefetch;
pub mod process;
mod ranges;
pub mod sites;
pub mod state;
pub mod stream;
pub mod strings;
pub mod thread;
pub mod tls;

pub use prefetch::prefetch;
