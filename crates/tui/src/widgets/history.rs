//! Values of time as columns, the youngest to the right, with a scale to the left.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::chart;
use crate::theme::Role;

/// Columns that the scale takes.
pub(crate) const SCALE: u16 = 11;

/// Draws `values` in all of an area; `most` is what the topmost line stands for, as the scale's own text says it.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, values: &[u64], (most, top): (u64, &str), role: Role) {
    let rows = area.height;
    for line in 0..rows {
        let y = area.y + line;
        let mark = match line {
            0 => top,
            _ if line + 1 == rows => "0",
            _ => "",
        };
        canvas.right(area.x + SCALE - 2, y, mark, Role::Muted);
        canvas.say(area.x + SCALE - 1, y, "┤", 1, Role::Border);
        let text = chart::layer(values, most, u64::from(rows), u64::from(rows - 1 - line));
        canvas.say(area.x + SCALE, y, &text, area.width.saturating_sub(SCALE), role);
    }
}
