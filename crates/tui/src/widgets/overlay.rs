//! What is drawn over the rows of the timeline: lengths of gaps, lines from calls to their work.

use ratatui::layout::Rect;

use super::axis::Stretch;
use super::canvas::Canvas;
use super::lanes::{Frame, Layers};
use super::table::Scene;
use crate::theme::Role;
use crate::track::Track;
use roctop_model::LaneKey;
use roctop_trace::item::Nanos;
use roctop_trace::units;

/// Where the selected slice, or what belongs to it, begins on screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    x: u16,
    y: u16,
    begin: Nanos,
    is_call: bool,
}

/// Ends of the selected slice, and of what belongs to it, in a row that is drawn at `area`.
pub(crate) fn ends<'a>(
    scene: &Scene<'a>,
    layers: &'a Layers,
    row: u16,
    frame: &'a Frame,
    area: Rect,
) -> impl Iterator<Item = End> {
    let (stretch, selected) = (frame.stretch, scene.ui.slice);
    let own = layers.of_row(row).filter(move |(key, slice)| {
        let place = (*key, slice.span.begin);
        // A range is around the others: it needs no line to them.
        let is_range = matches!(key, LaneKey::Markers(..) | LaneKey::Ranges(_));
        !is_range && (selected == Some(place) || frame.related.contains(&place))
    });
    let on_screen = own.filter(move |(_, slice)| {
        let begin = slice.span.begin;
        begin >= stretch.from && begin < stretch.to(area.width)
    });
    on_screen.map(move |(key, slice)| End {
        x: area.x + stretch.column(slice.span.begin, area.width),
        y: area.y,
        begin: slice.span.begin,
        is_call: matches!(key, LaneKey::Api(..)),
    })
}

/// Joins a call and its work by a line, where nothing else stands: up or down from the call, then to where the work begins.
pub(crate) fn flow(canvas: &mut Canvas<'_>, ends: &[End]) {
    let Some(call) = ends.iter().find(|end| end.is_call) else {
        return;
    };
    for work in ends.iter().filter(|end| !end.is_call && end.y != call.y) {
        for y in call.y.min(work.y) + 1..call.y.max(work.y) {
            draw_free(canvas, call.x, y, "│");
        }
        if work.x <= call.x {
            continue;
        }
        draw_free(canvas, call.x, work.y, if work.y < call.y { "╭" } else { "╰" });
        for x in call.x + 1..work.x {
            draw_free(canvas, x, work.y, if x + 1 == work.x { ">" } else { "┄" });
        }
        let after = format!(" +{} ", units::duration(work.begin.saturating_sub(call.begin)));
        let wide = units::width(&after) as u16;
        let (first, room) = (call.x + 1, work.x - call.x - 1);
        let x = first + room.saturating_sub(wide) / 2;
        let is_edge = |x| symbol(canvas, x, work.y) == Some("┄");
        if room > wide + 1 && (x..x + wide).all(is_edge) {
            canvas.say(x, work.y, &after, wide, Role::Accent);
        }
    }
}

fn symbol<'a>(canvas: &'a Canvas<'_>, x: u16, y: u16) -> Option<&'a str> {
    canvas.buffer.cell((x, y)).map(ratatui::buffer::Cell::symbol)
}

/// Draws a part of a line, if nothing stands there.
fn draw_free(canvas: &mut Canvas<'_>, x: u16, y: u16, part: &str) {
    if matches!(symbol(canvas, x, y), Some(" " | "·")) {
        canvas.say(x, y, part, 1, Role::Accent);
    }
}

/// Writes the lengths of gaps that have room for them.
pub(crate) fn gaps(canvas: &mut Canvas<'_>, area: Rect, layers: &Layers, stretch: Stretch) {
    let mut end: Option<Nanos> = None;
    for (_, slice) in layers.slices.iter().flatten() {
        let before = end.filter(|&end| end < slice.span.begin && end >= stretch.from);
        end = end.max(Some(slice.span.end));
        let Some(before) = before else { continue };
        let first = stretch.column(before, area.width) + 1;
        let last = stretch.column(slice.span.begin, area.width);
        let text = format!(" gap {} ", units::duration(slice.span.begin - before));
        let wide = units::width(&text) as u16;
        if let Some(rest) = last.checked_sub(first).and_then(|room| room.checked_sub(wide + 2)) {
            // It is read, unlike the dots about it.
            canvas.say(area.x + first + rest / 2 + 1, area.y, &text, wide, Role::Muted);
        }
    }
}

/// Writes the length of the selected gap into it.
pub(crate) fn name_selected_gap(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    track: Track,
    stretch: Stretch,
) {
    let Some(gap) = scene.ui.gap.filter(|_| scene.ui.track == Some(track)) else {
        return;
    };
    let first = stretch.column(gap.begin, area.width);
    let last = stretch.column(gap.end, area.width);
    let text = format!(" idle {} ", units::duration(gap.duration()));
    let room = last.saturating_sub(first);
    let wide = units::width(&text) as u16;
    if room > wide + 1 {
        canvas.say(area.x + first + (room - wide) / 2, area.y, &text, wide, Role::Selected);
    }
}
