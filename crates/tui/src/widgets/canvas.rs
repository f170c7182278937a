//! Text and boxes on a buffer; nothing is ever drawn outside of it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthChar;

use crate::theme::{Role, Theme};
use roctop_trace::units;

/// Where things are drawn.
pub(crate) struct Canvas<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) theme: &'a Theme,
}

impl Canvas<'_> {
    pub(crate) fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// Writes a text, at most `most` columns of it; the column after it.
    pub(crate) fn put(&mut self, x: u16, y: u16, text: &str, most: u16, style: Style) -> u16 {
        let area = self.buffer.area;
        if y < area.y || y >= area.bottom() || x < area.x {
            return x;
        }
        let end = x.saturating_add(most).min(area.right());
        let mut at = x;
        for c in text.chars() {
            let width = c.width().unwrap_or(0) as u16;
            if width == 0 {
                continue;
            }
            if at + width > end {
                break;
            }
            if let Some(cell) = self.buffer.cell_mut((at, y)) {
                cell.reset();
                cell.set_char(c).set_style(style);
            }
            for rest in 1..width {
                if let Some(cell) = self.buffer.cell_mut((at + rest, y)) {
                    cell.reset();
                    cell.set_style(style);
                }
            }
            at += width;
        }
        at
    }

    /// Writes a text by role.
    pub(crate) fn say(&mut self, x: u16, y: u16, text: &str, most: u16, role: Role) -> u16 {
        let style = self.style(role);
        self.put(x, y, text, most, style)
    }

    /// Writes a text so that it ends before column `right`.
    pub(crate) fn right(&mut self, right: u16, y: u16, text: &str, role: Role) {
        let width = units::width(text) as u16;
        if let Some(x) = right.checked_sub(width) {
            self.say(x, y, text, width, role);
        }
    }

    /// Patches the style of a stretch.
    pub(crate) fn paint(&mut self, area: Rect, role: Role) {
        let area = area.intersection(self.buffer.area);
        let style = self.style(role);
        self.buffer.set_style(area, style);
    }

    /// Clears a stretch.
    pub(crate) fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.y..area.bottom() {
            for x in area.x..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
    }

    /// Draws a box with a title to the left and one to the right; what is within it.
    pub(crate) fn frame(&mut self, area: Rect, title: &str, right: &str) -> Rect {
        if area.width < 4 || area.height < 2 {
            return area;
        }
        let (last_x, last_y) = (area.right() - 1, area.bottom() - 1);
        let rule = "─".repeat(area.width as usize);
        let border = self.style(Role::Border);
        self.put(area.x, area.y, &rule, area.width, border);
        self.put(area.x, last_y, &rule, area.width, border);
        for y in area.y + 1..last_y {
            self.put(area.x, y, "│", 1, border);
            self.put(last_x, y, "│", 1, border);
        }
        for (x, y, corner) in [
            (area.x, area.y, "┌"),
            (last_x, area.y, "┐"),
            (area.x, last_y, "└"),
            (last_x, last_y, "┘"),
        ] {
            self.put(x, y, corner, 1, border);
        }
        let room = area.width.saturating_sub(6);
        if !title.is_empty() {
            let title = units::elide(title, room as usize);
            let end = self.say(area.x + 2, area.y, &format!(" {title} "), room + 2, Role::Title);
            let width = units::width(right) as u16;
            if !right.is_empty() && end + width + 4 < area.right() {
                self.right(area.right() - 2, area.y, &format!(" {right} "), Role::Muted);
            }
        }
        Rect {
            x: area.x + 1,
            y: area.y + 1,
            width: area.width - 2,
            height: area.height - 2,
        }
    }

    /// Writes a heading; the area below it.
    pub(crate) fn headed(&mut self, area: Rect, text: &str) -> Rect {
        let (head, below) = top(area, 1);
        if head.height > 0 {
            let room = head.width.saturating_sub(1);
            self.say(
                head.x + 1,
                head.y,
                &units::elide(text, usize::from(room)),
                room,
                Role::Head,
            );
        }
        below
    }

    /// A sentence in an empty pane: why there is nothing.
    pub(crate) fn empty(&mut self, area: Rect, lines: &[String]) {
        let room = area.width.saturating_sub(1);
        let lines = lines.iter().flat_map(|line| words(line, room as usize));
        for (i, line) in lines.take(area.height as usize).enumerate() {
            let line = units::elide(&line, room as usize);
            self.say(area.x + 1, area.y + i as u16, &line, room, Role::Muted);
        }
    }
}

/// A sentence in lines of at most `width` columns, broken between words; a longer word stays whole.
pub(crate) fn words(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last] += word;
        } else if units::width(&lines[last]) + 1 + units::width(word) <= columns {
            lines[last].push(' ');
            lines[last] += word;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Splits `rows` off the top of an area.
pub(crate) fn top(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let upper = Rect { height: rows, ..area };
    (
        upper,
        Rect {
            y: area.y + rows,
            height: area.height - rows,
            ..area
        },
    )
}

/// Splits `columns` off the left of an area.
pub(crate) fn left(area: Rect, columns: u16) -> (Rect, Rect) {
    let columns = columns.min(area.width);
    let first = Rect { width: columns, ..area };
    (
        first,
        Rect {
            x: area.x + columns,
            width: area.width - columns,
            ..area
        },
    )
}
