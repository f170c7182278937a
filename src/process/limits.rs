//! Resource limits with which roctop was started. The program has the same.

use crate::units;
use anyhow::{Result, bail};
use rustix::process::{Resource, Signal, getrlimit};

/// What roctop needs to run: name of the limit, option of `ulimit`, bytes.
const STACK: (Resource, &str, &str, u64) = (Resource::Stack, "stack", "-s", 1 << 20);
/// The same to record a program: beyond it, roctop would end while the program runs.
const MEMORY: [(Resource, &str, &str, u64); 2] = [
    (Resource::As, "address space", "-v", 512 << 20),
    (Resource::Data, "data segment", "-d", 128 << 20),
];

/// Makes a write beyond `ulimit -f` an error, `EFBIG`, instead of this process's end. A program that it starts has the default again.
pub fn fail_writes_beyond_limit() {
    let signal = Signal::XFSZ.as_raw();
    if !roctop_signals::is_ignored(signal) {
        roctop_signals::ignore_default_action(signal);
    }
}

/// Whether the stack suffices for roctop.
///
/// Errors: it does not.
pub fn check_stack() -> Result<()> {
    check(STACK)
}

/// Whether memory suffices to record a program.
///
/// Errors: it does not.
pub fn check_memory() -> Result<()> {
    MEMORY.into_iter().try_for_each(check)
}

fn check((resource, name, option, needed): (Resource, &str, &str, u64)) -> Result<()> {
    match getrlimit(resource).current {
        Some(limit) if limit < needed => bail!(
            "the {name} is limited to {} here ('ulimit {option}'): roctop needs {}",
            units::bytes(limit),
            units::bytes(needed)
        ),
        _ => Ok(()),
    }
}
