//! A slice that is wide enough to be drawn by itself: its name, its ends, and the signs of what is selected.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::canvas::Canvas;
use super::lanes::{Frame, Line};
use super::look::{Look, look};
use super::table::Scene;
use crate::theme::Role;
use roctop_model::collectives::CollectiveSlice;
use roctop_model::subject::SliceSubject;
use roctop_model::{LaneKey, Slice};
use roctop_trace::units;

/// A slice that is wide enough to be drawn by itself: its name within, its end marked.
/// Returns its last column; `ended` is that of the slice before.
pub(super) fn wide(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    piece: (LaneKey, &Slice),
    (frame, line): (&Frame, Line),
    ended: u16,
) -> u16 {
    let ((key, slice), stretch) = (piece, frame.stretch);
    let to = stretch.to(area.width);
    let mut first = stretch.column(slice.span.begin, area.width);
    let last = stretch.column(
        slice.span.end.saturating_sub(1).max(slice.span.begin),
        area.width.saturating_sub(1),
    );
    if first == ended && last > first {
        first += 1;
    }
    let is_selected = scene.ui.slice == Some((key, slice.span.begin));
    let is_related = frame.related.contains(&(key, slice.span.begin));
    let cells = (last + 1).saturating_sub(first);
    let (x, y) = (area.x + first, area.y);
    let subject = SliceSubject {
        snap: scene.snap,
        key,
        slice,
    };
    let is_out = !scene.ui.filter.accepts(&subject);
    // A short slice upon the edge of two columns is none that is wide.
    let is_short = cells < 2 || slice.span.duration() < stretch.width;
    if (is_short && !is_selected && !is_related && !is_out) || first >= area.width {
        return ended;
    }
    if is_out {
        canvas.say(x, y, &"░".repeat(cells as usize), cells, Role::Idle);
        return last;
    }
    let place = Rect {
        x,
        y,
        width: cells,
        height: 1,
    };
    let mut look = look(canvas, scene.snap, key, slice.what);
    if is_selected {
        look.filled = canvas.style(Role::Selected);
        look.line = look.filled;
    }
    let mut text = look.text.clone();
    if let LaneKey::Copies(_) = key {
        text = format!("{text} {}", units::bytes(slice.value));
    }
    if let LaneKey::Collectives(_) = key {
        text = CollectiveSlice::of(slice).words();
    }
    let edges = Edges {
        begins: slice.span.begin >= stretch.from,
        ends: slice.span.end <= to,
    };
    if matches!(key, LaneKey::Markers(..) | LaneKey::Ranges(_)) {
        bracket(canvas, place, &text, edges, look.line);
    } else if line.at == 0 {
        block(canvas, place, &format!("{} {text}", look.letter), edges, &look);
    } else {
        let more = if line.at == 1 {
            units::duration(slice.span.duration())
        } else {
            String::new()
        };
        let text = if units::width(&more) + 3 <= cells as usize {
            format!("  {more}")
        } else {
            String::new()
        };
        ground(canvas, place, &text, edges, &look);
    }
    let place = Rect {
        width: cells.max(1),
        ..place
    };
    if is_selected {
        enclose(canvas, place, Role::Selected, Role::Selected, ["[", "]"], 3);
    } else if is_related {
        // What belongs to the selected one: shown by signs as well as by its look.
        enclose(canvas, place, Role::Match, Role::Accent, ["<", ">"], 1);
    }
    last
}

/// Whether a slice begins and ends within the stretch on screen.
#[derive(Clone, Copy)]
struct Edges {
    begins: bool,
    ends: bool,
}

/// A range: its name on a line between its ends.
fn bracket(canvas: &mut Canvas<'_>, place: Rect, text: &str, edges: Edges, style: Style) {
    let room = place.width as usize;
    let head = if edges.begins { "├" } else { "─" };
    let tail = if edges.ends { "┤" } else { "─" };
    let name = if room >= 9 || room >= units::width(text) + 4 {
        format!(" {} ", units::elide(text, room - 4))
    } else {
        String::new()
    };
    let rule = "─".repeat(room.saturating_sub(2 + units::width(&name)));
    canvas.put(
        place.x,
        place.y,
        &format!("{head}{name}{rule}{tail}"),
        place.width,
        style,
    );
}

/// Work or a call: its letter and name on a ground, its end marked; the letter alone where the name has no room.
fn block(canvas: &mut Canvas<'_>, place: Rect, text: &str, edges: Edges, look: &Look) {
    if place.width >= 7 {
        ground(canvas, place, text, edges, look);
    } else {
        let letters = look.letter.to_string().repeat(within(place, edges));
        ground(canvas, place, &letters, edges, look);
    }
}

/// Columns of a slice without the mark of its end.
fn within(place: Rect, edges: Edges) -> usize {
    let is_marked = edges.ends && place.width > 1;
    usize::from(place.width - u16::from(is_marked))
}

/// A text on a ground, its end marked.
fn ground(canvas: &mut Canvas<'_>, place: Rect, text: &str, edges: Edges, look: &Look) {
    let inner = within(place, edges);
    canvas.put(place.x, place.y, &units::fit(text, inner), inner as u16, look.filled);
    if inner < place.width as usize {
        canvas.put(place.x + inner as u16, place.y, "▌", 1, look.line);
    }
}

/// A slice among others: its ground, and signs at its ends where they have `least` columns.
fn enclose(canvas: &mut Canvas<'_>, place: Rect, ground: Role, role: Role, signs: [&str; 2], least: u16) {
    canvas.paint(place, ground);
    let [open, close] = signs;
    if place.width >= least {
        canvas.say(place.x, place.y, open, 1, role);
    }
    if place.width >= least.max(2) {
        canvas.say(place.right() - 1, place.y, close, 1, role);
    }
}
