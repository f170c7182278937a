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

/// Columns in which the selected slice, and what belongs to it, begin in a row.
pub(crate) fn ends<'a>(
    scene: &Scene<'a>,
    layers: &'a Layers,
    row: u16,
    frame: &'a Frame,
    area: Rect,
) -> impl Iterator<Item = u16> {
    let (stretch, selected) = (frame.stretch, scene.ui.slice);
    let own = layers.of_row(row).filter(move |(key, slice)| {
        let place = (*key, slice.span.begin);
        // A range is around the others: it needs no line to them.
        let is_range = matches!(key, LaneKey::Markers(..) | LaneKey::Ranges(_));
        !is_range && (selected == Some(place) || frame.related.contains(&place))
    });
    let begins = own
        .map(|(_, slice)| slice.span.begin)
        .filter(move |&at| at >= stretch.from && at < stretch.to(area.width));
    begins.map(move |at| area.x + stretch.column(at, area.width))
}

/// Joins a call and its work by a line, where nothing else stands.
pub(crate) fn flow(canvas: &mut Canvas<'_>, ends: &[(u16, u16)]) {
    let (Some(&(x, from)), Some(&(_, to))) = (ends.last(), ends.first()) else {
        return;
    };
    for y in to + 1..from {
        let is_free = canvas
            .buffer
            .cell((x, y))
            .is_some_and(|cell| matches!(cell.symbol(), " " | "·"));
        if is_free {
            canvas.say(x, y, "│", 1, Role::Accent);
        }
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
