//! Roctop dies as the program did, so that its parent sees the same.

use rustix::process::Signal;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// First argument that makes roctop end itself by a signal, with no handler left from its earlier life.
const DIE: &str = "__die";

/// The signal to die by, when this process was started for that.
pub fn signal() -> Option<i32> {
    let mut words = std::env::args_os().skip(1);
    let is_die = words.next()?.into_vec() == DIE.as_bytes();
    is_die.then(|| words.next()?.to_str()?.parse().ok()).flatten()
}

/// Ends this process by the signal that ended the program, so that roctop's parent sees the same.
///
/// roctop first executes itself again, so that the installed signal handlers are gone.
pub fn die_by(signal: i32) -> u8 {
    // Every program in this language ignores SIGPIPE from its beginning, and real-time signals have no names.
    if signal == Signal::PIPE.as_raw() || Signal::from_named_raw(signal).is_none() {
        let command = format!("kill -{signal} $$");
        let _ = Command::new("/bin/sh").args(["-c", &command]).exec();
    }
    if let Ok(own) = std::env::current_exe() {
        let _ = Command::new(own).arg(DIE).arg(signal.to_string()).exec();
    }
    raise(signal)
}

/// Raises the signal in this process; returns the exit code to use when that did not end it.
pub fn raise(signal: i32) -> u8 {
    use rustix::process::{Resource, Rlimit, getpid, kill_process, setrlimit};
    // The program left its core dump where the system wants it; roctop must not write a second one.
    let _ = setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    );
    if let Some(signal) = Signal::from_named_raw(signal) {
        // Twice: the language's own handler for some signals takes itself away at the first.
        for _ in 0..2 {
            let _ = kill_process(getpid(), signal);
        }
    }
    128u8.wrapping_add(signal as u8)
}
