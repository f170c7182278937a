//! Values of time as columns, the youngest to the right, with a scale to the left.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::chart;
use crate::theme::Role;

/// Columns that the scale takes.
pub(crate) const SCALE: u16 = 11;
/// Rows from which on one is the axis.
const MIN_ROWS: u16 = 4;

/// Draws `values` in all of an area, each as wide as there is room for; `most` is what the topmost line stands for, as the
/// scale's own text says it. The last line says what the first and the last value are, where there is room for it.
pub(crate) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    values: &[u64],
    (most, top): (u64, &str),
    (first, last): (&str, &str),
    role: Role,
) {
    let room = area.width.saturating_sub(SCALE) as usize;
    // More values than columns: the youngest; fewer: each as wide as it can be.
    let values = &values[values.len().saturating_sub(room)..];
    let wide: Vec<u64> = match values.len() {
        0 => Vec::new(),
        count => (0..room).map(|x| values[x * count / room]).collect(),
    };
    let has_axis = area.height >= MIN_ROWS;
    let rows = area.height - u16::from(has_axis);
    for line in 0..rows {
        let y = area.y + line;
        let mark = match line {
            0 => top,
            _ if line + 1 == rows => "0",
            _ => "",
        };
        canvas.right(area.x + SCALE - 2, y, mark, Role::Muted);
        canvas.say(area.x + SCALE - 1, y, "┤", 1, Role::Border);
        let text = chart::layer(&wide, most, u64::from(rows), u64::from(rows - 1 - line));
        canvas.say(area.x + SCALE, y, &text, room as u16, role);
    }
    if has_axis {
        let (x, y) = (area.x + SCALE, area.y + rows);
        let end = x + wide.len() as u16;
        canvas.say(x, y, first, room as u16, Role::Muted);
        if usize::from(end - x) > first.chars().count() + last.chars().count() {
            canvas.right(end, y, last, Role::Muted);
        }
    }
}
