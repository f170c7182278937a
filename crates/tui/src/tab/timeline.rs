//! The timeline: a row for each lane, the selected slice and the measured range below.

use ratatui::layout::Rect;

use super::selected;
use crate::Size;
use crate::hit_map::Hit;
use crate::theme::Role;
use crate::track::Track;
use crate::widgets::axis::{self, Stretch};
use crate::widgets::canvas::{Canvas, left, top};
use crate::widgets::lanes::{self, Frame, Layers};
use crate::widgets::overlay;
use crate::widgets::rows;
use crate::widgets::table::Scene;
use roctop_model::LaneKey;
use roctop_trace::units;

/// The stretch of time on screen for lanes of this width.
pub(crate) fn stretch(scene: &Scene<'_>, columns: usize) -> Stretch {
    Stretch {
        from: scene.ui.time.from(scene.snap, columns),
        width: scene.ui.time.width(scene.snap, columns),
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let detail = match size {
        Size::Large => 8,
        Size::Medium => 6,
        _ => 0,
    };
    let (upper, lower) = top(area, area.height.saturating_sub(detail));
    let columns = scene.ui.lane_columns();
    let stretch = stretch(scene, columns);
    let right = format!(
        "by {}   {}/col",
        scene.ui.prefs.layout.word(),
        units::duration(stretch.width)
    );
    let inner = canvas.frame(upper, "Timeline", &right);
    let most = if size == Size::Large { 3 } else { 2 };
    panel(canvas, inner, scene, (stretch, size, most), &rows::order(scene));
    if detail == 0 {
        return;
    }
    let range_columns = if scene.ui.range.is_some() {
        lower.width * 2 / 5
    } else {
        0
    };
    let (first, second) = left(lower, lower.width - range_columns);
    let inner = canvas.frame(
        first,
        "Selected",
        "[ ] slice   { } gap   enter call → work → range   ctrl-o back",
    );
    lines(canvas, inner, &selected::lines(scene));
    if let Some(range) = scene.ui.range {
        let title = format!("Range {}", units::duration(range.span().duration()));
        let hint = if range.moves { "h l move, v ends" } else { "w fits, esc" };
        let inner = canvas.frame(second, &title, hint);
        lines(canvas, inner, &selected::measured(scene, range.span()));
    }
}

fn lines(canvas: &mut Canvas<'_>, area: Rect, lines: &[(String, Role)]) {
    for (i, (text, role)) in lines.iter().take(area.height as usize).enumerate() {
        let room = area.width.saturating_sub(1);
        let text = units::items(text, room as usize);
        canvas.say(area.x + 1, area.y + i as u16, &text, room, *role);
    }
}

/// Draws the axis and as many rows as there is room for; `look` is the stretch, the class of size, and how many rows
/// slices of one track that overlap may take.
pub(crate) fn panel(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    look: (Stretch, Size, u16),
    tracks: &[Track],
) {
    let (stretch, size, most) = look;
    if area.height == 0 {
        return;
    }
    if tracks.is_empty() {
        return canvas.empty(area, &super::why_empty(scene, "kernel, copy, call or marker", 0));
    }
    let label = super::label_columns(size);
    let (head, body) = top(area, 1);
    let (_, axis_area) = left(head, label);
    axis::axis(canvas, axis_area, scene, stretch);
    scene
        .ui
        .hits
        .add(axis_area, Hit::Time(None, stretch.from, stretch.width));
    let columns = body.width.saturating_sub(label);
    let lay = |track: &Track| Layers::new(scene, *track, stretch, columns, most);
    let (first, shown) = visible(scene, tracks, body.height, lay);
    scene.ui.track_offset.set(first);
    let frame = Frame::new(scene, stretch);
    let mut y = body.y;
    let mut ends: Vec<(u16, u16)> = Vec::new();
    for layers in &shown {
        for row in 0..layers.height {
            let place = Rect { y, height: 1, ..body };
            let (name, lane) = left(place, label);
            name_row(canvas, name, scene, layers.track, row);
            lanes::draw(canvas, lane, scene, layers, row, &frame);
            ends.extend(overlay::ends(scene, layers, row, &frame, lane).map(|x| (x, y)));
            scene.ui.hits.add(name, Hit::Lane(layers.track));
            scene
                .ui
                .hits
                .add(lane, Hit::Time(Some(layers.track), stretch.from, stretch.width));
            y += 1;
        }
    }
    overlay::flow(canvas, &ends);
    let hidden = tracks.len() - first - shown.len();
    let note = match (hidden, first) {
        (0, 0) => return,
        (0, above) => format!("↑{above} more"),
        (below, _) => format!("↓{below} more"),
    };
    canvas.say(area.x, area.y, &note, label - 1, Role::Warn);
}

/// The first row and those that are shown: as far down as it takes for the selected row to be seen, and not further than the
/// last row needs.
fn visible(scene: &Scene<'_>, tracks: &[Track], height: u16, lay: impl Fn(&Track) -> Layers) -> (usize, Vec<Layers>) {
    let selected = scene.ui.track;
    let selected = selected.and_then(|track| tracks.iter().position(|&known| known == track));
    let mut first = scene.ui.track_offset.get().min(tracks.len() - 1);
    if let Some(at) = selected {
        first = first.min(at);
    }
    loop {
        let mut left = height;
        let mut shown: Vec<Layers> = Vec::new();
        for track in &tracks[first..] {
            let layers = lay(track);
            if layers.height > left {
                break;
            }
            left -= layers.height;
            shown.push(layers);
        }
        let is_seen = selected.is_none_or(|at| at < first + shown.len());
        if is_seen && (first + shown.len() < tracks.len() || left == 0 || first == 0) || shown.is_empty() {
            return (first, shown);
        }
        if !is_seen {
            first += 1;
            continue;
        }
        let above = lay(&tracks[first - 1]);
        if above.height > left {
            return (first, shown);
        }
        first -= 1;
    }
}

fn name_row(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, track: Track, row: u16) {
    let role = match track {
        _ if scene.ui.track == Some(track) => Role::Selected,
        Track::Lane(LaneKey::Agent(_)) => Role::Title,
        _ => Role::Muted,
    };
    let text = if row == 0 {
        rows::label(scene, track)
    } else {
        "   at once".into()
    };
    let room = area.width.saturating_sub(1);
    canvas.say(area.x, area.y, &units::fit(&text, room as usize), room, role);
}

/// The slices on screen that pass the filter, one a line.
pub(crate) fn csv(scene: &Scene<'_>) -> String {
    let columns = scene.ui.lane_columns();
    let stretch = stretch(scene, columns);
    let to = scene.ui.time.to(scene.snap, columns);
    let mut out = String::from("Lane,Name,Begin_ns,End_ns,Correlation_Id,Value\n");
    for track in rows::order(scene) {
        let Some(slices) = track.slices(scene.snap, stretch.from, to, 1_000_000) else {
            continue;
        };
        let lane = rows::label(scene, track);
        for (key, slice) in &slices {
            let key = *key;
            let subject = crate::filterable::SliceSubject {
                snap: scene.snap,
                key,
                slice,
            };
            if scene.ui.filter.accepts(&subject) {
                let name = selected::what(scene, key, slice).replace('"', "\"\"");
                let (lane, span) = (lane.trim(), slice.span);
                let numbers = [span.begin, span.end, slice.correlation, slice.value].map(|n| n.to_string());
                out += &[format!("\"{lane}\",\"{name}\","), numbers.join(","), "\n".into()].concat();
            }
        }
    }
    out
}
