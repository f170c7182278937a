//! D2: hand-made signals in a pool of the run-time.

#![expect(unsafe_code, reason = "memory of the run-time's pools")]

use super::beat::beat;
use super::started;
use crate::Options;
use crate::hsa::{Kind, Lane, Signals};
use crate::outcome::{Outcome, Status};

/// Number of signals, used in turn.
pub(super) const SIGNALS: usize = 64;
/// Number of uses of all signals together.
pub(super) const ROUNDS: usize = 10_000;

pub(super) fn check(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let what = match options.pool {
        Kind::Kernarg => "kernarg memory",
        Kind::Fine => "plain fine-grained memory",
    };
    let lane = Lane::create(hsa, gpu, 1024)?;
    let memory = match hsa.host_memory(options.pool, SIGNALS * 64) {
        Ok(memory) => memory,
        Err(error) if options.pool == Kind::Fine => return Ok(Outcome::new(Status::Skipped, error)),
        Err(error) => return Err(error),
    };
    // SAFETY: memory of this size was just allocated for the signals.
    let signals = unsafe { Signals::make(memory, SIGNALS) };
    Ok(beat(hsa, &lane, signals, None, ROUNDS, options.time)?.outcome(what))
}
