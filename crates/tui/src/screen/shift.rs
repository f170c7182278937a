//! Rows that move to the left as a whole, as those of a scrolling timeline: the terminal moves them itself.
//!
//! Deleting characters (DCH) moves the rest of a row to the left; what comes in at its end is written as any other change.

use std::io::Write;

use ratatui::buffer::{Buffer, Cell};

use super::encode::is_same;
use roctop_trace::units::width;

/// Columns that a row moves at most.
const MAX_SHIFT: usize = 24;
/// Cells that must be right by moving a row: what the move itself costs, and as much again.
const MIN_SAVED: usize = 12;

/// Moves the rows of what is shown that can be moved, and adds the bytes for it; the pen has no colours then. None: no row
/// can.
pub(super) fn shift(shown: &Buffer, next: &Buffer, out: &mut Vec<u8>) -> Option<Buffer> {
    if shown.area != next.area || next.area.is_empty() {
        return None;
    }
    let columns = next.area.width as usize;
    let rows = shown.content.chunks(columns).zip(next.content.chunks(columns));
    let mut moved: Option<Buffer> = None;
    for (y, (old, new)) in rows.enumerate() {
        let Some((from, by)) = best(old, new) else { continue };
        if moved.is_none() {
            // What comes in at the end has the colours of the pen in some terminals.
            out.extend_from_slice(b"\x1b[m");
        }
        let _ = write!(out, "\x1b[{};{}H\x1b[{by}P", y + 1, from + 1);
        let target = moved.get_or_insert_with(|| shown.clone());
        let row = &mut target.content[y * columns..(y + 1) * columns];
        row[from..].rotate_left(by);
        row[columns - by..].fill(Cell::default());
    }
    moved
}

/// From which column and by how many a row moves best.
fn best(old: &[Cell], new: &[Cell]) -> Option<(usize, usize)> {
    let differ = |old: &Cell, new: &Cell| !is_same(old, new);
    let from = old.iter().zip(new).position(|(old, new)| differ(old, new))?;
    let before = old.iter().zip(new).filter(|(old, new)| differ(old, new)).count();
    if before <= MIN_SAVED {
        return None;
    }
    // Halves of wide glyphs do not move alone.
    if old[from..]
        .iter()
        .chain(&new[from..])
        .any(|cell| width(cell.symbol()) != 1)
    {
        return None;
    }
    let blank = Cell::default();
    let left = |by: usize| {
        let kept = old[from + by..].iter().chain(std::iter::repeat_n(&blank, by));
        kept.zip(&new[from..]).filter(|(old, new)| differ(old, new)).count()
    };
    let most = MAX_SHIFT.min(old.len() - from - 1);
    let (after, by) = (1..=most).map(|by| (left(by), by)).min()?;
    (after + MIN_SAVED <= before).then_some((from, by))
}
