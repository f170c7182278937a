//! Resource limits with which roctop was started. The program has the same.

use crate::clocks;
use crate::units;
use anyhow::{Result, bail};
use rustix::process::{Resource, Signal, getrlimit};
use std::sync::LazyLock;
use std::time::Duration;

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

/// Processor time that roctop may use, all threads, before the Linux kernel ends it; none: `ulimit -t` sets no limit.
static PROCESSOR_TIME: LazyLock<Option<Duration>> =
    LazyLock::new(|| getrlimit(Resource::Cpu).maximum.map(Duration::from_secs));

/// What roctop keeps of this processor time to pass signals on, and to end in order when the program does.
fn kept_of(limit: Duration) -> Duration {
    const MAX_KEPT: Duration = Duration::from_secs(5);
    (limit / 2).min(MAX_KEPT)
}

/// Whether only that is left: from now on roctop leaves out all that can be left out.
pub fn is_processor_time_short() -> bool {
    PROCESSOR_TIME.is_some_and(|limit| clocks::of_process() >= limit.saturating_sub(kept_of(limit)))
}

/// The line that says so.
pub fn short_processor_time() -> String {
    format!(
        "processor time is limited to {} here ('ulimit -t'): roctop reads no more records until the program ends; rings keep the newest, \
        the others are counted as lost",
        units::duration(PROCESSOR_TIME.unwrap_or_default().as_nanos() as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_processor_time_is_kept() {
        for (limit, kept) in [(1, 500), (2, 1000), (10, 5000), (3600, 5000)] {
            assert_eq!(kept_of(Duration::from_secs(limit)), Duration::from_millis(kept));
        }
    }
}
