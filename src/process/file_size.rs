//! The limit of the size of files (`ulimit -f`).

use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Makes a write beyond the limit an error, `EFBIG`, instead of this process's end. A program that it starts has the default again.
pub fn fail_writes_beyond_limit() {
    let signal = Signal::XFSZ.as_raw();
    // Where the signal is ignored, it is for the program, too: a handler would become the default there.
    if !is_ignored(
        signal,
        &std::fs::read_to_string("/proc/self/status").unwrap_or_default(),
    ) {
        // Without a handler, the limit ends roctop.
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
}

/// Whether a process with this status (proc_pid_status(5)) ignores a signal.
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_found_in_the_status() {
        let status = "Name:\tsh\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000001001000\nSigCgt:\t0000000000000000\n";
        assert_eq!(
            [13, 25, 24, 26].map(|signal| is_ignored(signal, status)),
            [true, true, false, false]
        );
        assert!(!is_ignored(25, ""));
    }
}
