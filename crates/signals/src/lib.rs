//! Unix signals beyond the standard library: how this process was started, which signals arrive and from which process, and
//! what a program that it starts inherits.
//!
//! The only unsafe code of the viewer is here: what the process was started with has to be read before Rust's start-up changes
//! it, and no safe interface has the senders and the number of real-time signals.

mod caught;
mod started;

pub use caught::{Caught, Signals, ignore_default_action};
pub use started::{is_ignored, restore, spawn, was_closed};

/// The largest number of a signal.
pub const MAX: i32 = 64;

/// Stops this process by a signal, as its default action does. Returns when it goes on.
#[expect(unsafe_code, reason = "the default action of a signal")]
pub fn stop_by(signal: i32) {
    let before = started::action(signal);
    started::default_action(signal);
    // SAFETY: with the default action the signal stops the process; in an orphaned process group nothing happens.
    unsafe { libc::raise(signal) };
    if let Some(before) = before {
        // SAFETY: the action was in force earlier.
        unsafe { libc::sigaction(signal, &raw const before, std::ptr::null_mut()) };
    }
}

/// Ends this process by a signal, whatever its action was. Returns only if the signal ends no process: its default
/// action is another, or this is the first process of a container.
#[expect(unsafe_code, reason = "the default action of a signal")]
pub fn die_by(signal: i32) {
    started::default_action(signal);
    let mut set = started::empty_set();
    // SAFETY: both are calls with a valid set; a number that is no signal is an error, which leaves the set empty.
    unsafe {
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
    // SAFETY: with the default action the signal ends the process, or nothing happens.
    unsafe { libc::raise(signal) };
}
