//! The live screen and the replay: wires the program's terminal, the pump and the screen together.

use crate::cli::Look;
use crate::item::Exit;
use crate::launch::Program;
use crate::recording::Recording;
use crate::run::Job;
use anyhow::{Result, bail};

/// Runs a program under the live screen; returns how it ended.
pub fn live(_: &Program, _: &Job, _: &Look) -> Result<Exit> {
    bail!("no screen yet")
}

/// Shows recordings.
pub fn replay(_: &[Recording], _: &Look) -> Result<()> {
    bail!("no screen yet")
}
