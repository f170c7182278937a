//! `timing_level.csv`: how kernels were timed, if not at the best level. Every format has this file, but only if a
//! process began at another level or stepped down.

use super::csv::writer::Lines;
use super::view::View;
use roctop_ring::level::Step;
use std::io::{self, Write};
use std::sync::Arc;

const COLUMNS: &str = "Process_Id,Level,Level_Before,Reason";

/// Steps of the process.
pub(super) fn steps<'v>(view: &'v View<'_>) -> impl Iterator<Item = &'v (Step, Arc<str>)> {
    view.run.levels.get(&view.process.id).into_iter().flatten()
}

/// Writes a line per step, in order.
pub(super) fn csv(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = Lines::new(out, COLUMNS)?;
    for (step, text) in steps(view) {
        lines.number(view.process.pid).number(step.to.number());
        lines.number(step.from.number()).text(text).end()?;
    }
    Ok(())
}
