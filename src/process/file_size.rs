//! The limit of the size of files (`ulimit -f`).

use rustix::process::Signal;

/// Makes a write beyond the limit an error, `EFBIG`, instead of this process's end. A program that it starts has the default again.
pub fn fail_writes_beyond_limit() {
    let signal = Signal::XFSZ.as_raw();
    if !roctop_signals::is_ignored(signal) {
        roctop_signals::ignore_default_action(signal);
    }
}
