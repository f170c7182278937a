//! Roctop dies as the program did, so that its parent sees the same.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Ends this process by the signal that ended the program, so that roctop's parent sees the same; returns the exit code to use
/// when that did not end it.
pub fn die_by(signal: i32) -> u8 {
    // The program left its core dump where the system wants it; roctop must not write a second one.
    let _ = setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    );
    roctop_signals::die_by(signal);
    128u8.wrapping_add(signal as u8)
}
