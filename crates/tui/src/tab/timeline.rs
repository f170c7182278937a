//! The timeline: a row for each lane, the selected slice and the measured range below.

use ratatui::layout::Rect;

use super::{selected, sites};
use crate::hit_map::Hit;
use crate::theme::Role;
use crate::time::{Motion, Segment};
use crate::track::Track;
use crate::widgets::axis::{self, Stretch};
use crate::widgets::canvas::{Canvas, left, top};
use crate::widgets::lanes::{self, Exactness, Frame, Layers, Line};
use crate::widgets::launch_ruler;
use crate::widgets::overlay;
use crate::widgets::plot;
use crate::widgets::rows;
use crate::widgets::table::Scene;
use crate::{Size, Tab};
use roctop_model::LaneKey;
use roctop_model::analysis::usage;
use roctop_model::recall::Window;
use roctop_trace::item::Span;
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
    let (ui, is_plot) = (scene.ui, |track: Track| plot::is_plot(track));
    let is_selected = ui.slice.is_some() || ui.gap.is_some() || ui.range.is_some() || ui.track.is_some_and(is_plot);
    let detail = match size {
        _ if !is_selected => 0,
        // Call paths have many lines.
        Size::Large if !scene.snap.sites.is_empty() => 18,
        Size::Medium if !scene.snap.sites.is_empty() => 10,
        Size::Large => 8,
        Size::Medium => 6,
        _ => 0,
    };
    let (upper, lower) = top(area, area.height.saturating_sub(detail));
    let columns = scene.ui.lane_columns();
    let stretch = stretch(scene, columns);
    let most = if size == Size::Large { 3 } else { 2 };
    let exactness = panel(canvas, within(upper), scene, (stretch, size, most), &rows::order(scene));
    let words = exactness
        .words(scene)
        .map_or_else(String::new, |words| format!("{words}   "));
    let right = format!(
        "{words}by {}   {}/col",
        scene.ui.prefs.layout.heading(),
        units::duration(stretch.width)
    );
    canvas.frame(upper, "Timeline", &right);
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
    let known = selected::lines(scene);
    lines(canvas, inner, &known);
    if let Some((process, path)) = selected::call_path(scene) {
        let (_, below) = top(inner, known.len() as u16);
        let (_, indented) = left(below, 3);
        sites::draw_frames(canvas, indented, scene, process, path);
    }
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

/// A part of the window: its columns among those of the lanes, and its stretch of time.
struct Part {
    column: u16,
    columns: u16,
    stretch: Stretch,
}

impl Part {
    fn new(segment: Segment, width: u64) -> Self {
        Self {
            column: segment.column as u16,
            columns: segment.columns as u16,
            stretch: Stretch {
                from: segment.from,
                width,
            },
        }
    }

    /// Its place in a row.
    fn of(&self, row: Rect) -> Rect {
        let (_, rest) = left(row, self.column);
        left(rest, self.columns).0
    }
}

/// A track with what it has in each part of the window.
struct Row {
    track: Track,
    layers: Vec<Layers>,
    height: u16,
    /// Lines on screen that each of its rows takes.
    lines: u16,
}

/// Whether rows take the lines that are left: over a slow line each of them would be sent several times a second.
pub(crate) fn grows(scene: &Scene<'_>) -> bool {
    !(scene.ui.time.follows && scene.ui.time.motion == Motion::Sweep)
}

/// Lines that a row of kernels takes at most, and a chart.
const MAX_LINES: u16 = 5;
const MAX_CHART: u16 = 8;

/// Gives rows that say more when they are higher the lines that are left: kernels first.
fn grow(shown: &mut [Row], height: u16) {
    let mut left = height.saturating_sub(shown.iter().map(|row| row.height).sum());
    let kernels = |row: &Row| row.lines < MAX_LINES && usage::has_kernels(row.track.like());
    let charts = |row: &Row| plot::is_plot(row.track) || matches!(row.track.like(), LaneKey::Agent(_));
    for lines in 2..=MAX_CHART {
        for grows in [&kernels as &dyn Fn(&Row) -> bool, &charts] {
            for row in shown.iter_mut().filter(|row| grows(row) && row.lines + 1 == lines) {
                let more = row.height / row.lines;
                if more <= left {
                    left -= more;
                    (row.lines, row.height) = (lines, row.height + more);
                }
            }
        }
    }
}

impl Row {
    fn new(scene: &Scene<'_>, track: Track, parts: &[Part], most: u16) -> Self {
        let lay = |part: &Part| Layers::new(scene, track, part.stretch, part.columns, most);
        let layers: Vec<Layers> = parts.iter().map(lay).collect();
        let height = layers.iter().map(|layers| layers.height).max().unwrap_or(1);
        Self {
            track,
            layers,
            height,
            lines: 1,
        }
    }
}

/// What a frame around an area leaves.
pub(crate) fn within(area: Rect) -> Rect {
    Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    }
}

/// Draws the axis and as many rows as there is room for, and says how exact they are; `look` is the stretch, the class of size, and how many rows
/// slices of one track that overlap may take.
pub(crate) fn panel(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    look: (Stretch, Size, u16),
    tracks: &[Track],
) -> Exactness {
    let (stretch, size, most) = look;
    if area.height == 0 {
        return Exactness::default();
    }
    if tracks.is_empty() {
        canvas.empty(area, &super::why_empty(scene, "kernel, copy, call or marker", 0));
        return Exactness::default();
    }
    let label = super::label_columns(size);
    let marked = launch_ruler::marked(scene).filter(|_| scene.ui.tab == Tab::Timeline);
    let (head, rest) = top(area, 1);
    let (second, body) = top(rest, u16::from(marked.is_some()).min(rest.height));
    let (_, axis_area) = left(head, label);
    let (marked_name, marked_area) = left(second, label);
    if let Some(marked) = &marked {
        launch_ruler::name(canvas, marked_name, scene, marked);
    }
    let columns = body.width.saturating_sub(label);
    let segments = scene.ui.time.segments(scene.snap, columns as usize);
    let parts: Vec<Part> = segments
        .into_iter()
        .map(|part| Part::new(part, stretch.width))
        .collect();
    for part in &parts {
        let place = part.of(axis_area);
        axis::axis(canvas, place, scene, part.stretch);
        if let Some(marked) = &marked {
            launch_ruler::draw(canvas, part.of(marked_area), scene, part.stretch, marked);
        }
        let hit = Hit::Time(None, part.stretch.from, stretch.width);
        scene.ui.hits.add(place, hit);
    }
    let lay = |track: &Track| Row::new(scene, *track, &parts, most);
    let (first, mut shown) = visible(scene, tracks, body.height, lay);
    if shown.len() == tracks.len() && grows(scene) {
        grow(&mut shown, body.height);
    }
    scene.ui.track_offset.set(first);
    let frames: Vec<Frame> = parts.iter().map(|part| Frame::new(scene, part.stretch)).collect();
    let mut y = body.y;
    let mut ends: Vec<overlay::End> = Vec::new();
    for shown in &shown {
        for line in 0..shown.height {
            let line = Line {
                row: line / shown.lines,
                at: line % shown.lines,
                of: shown.lines,
            };
            let place = Rect { y, height: 1, ..body };
            let (name, lane) = left(place, label);
            name_row(canvas, name, scene, shown, line, stretch.width);
            for ((part, frame), layers) in parts.iter().zip(&frames).zip(&shown.layers) {
                let lane = part.of(lane);
                lanes::draw(canvas, lane, scene, layers, line, frame);
                if line.at + 1 == line.of {
                    ends.extend(overlay::ends(scene, layers, line.row, frame, lane));
                }
                let hit = Hit::Time(Some(shown.track), part.stretch.from, stretch.width);
                scene.ui.hits.add(lane, hit);
            }
            scene.ui.hits.add(name, Hit::Lane(shown.track));
            y += 1;
        }
    }
    overlay::flow(canvas, &ends);
    let window = Window {
        span: Span {
            begin: stretch.from,
            end: stretch.to(columns),
        },
        width: stretch.width,
    };
    let exactness = Exactness::of(scene, shown.iter().flat_map(|shown| &shown.layers)).in_window(scene, window);
    let hidden = tracks.len() - first - shown.len();
    let note = match (hidden, first) {
        (0, 0) => return exactness,
        (0, above) => format!("↑{above} more"),
        (below, _) => format!("↓{below} more"),
    };
    canvas.say(area.x, area.y, &note, label - 1, Role::Warn);
    exactness
}

/// The first row and those that are shown: as far down as it takes for the selected row to be seen, and not further than the
/// last row needs.
fn visible(scene: &Scene<'_>, tracks: &[Track], height: u16, lay: impl Fn(&Track) -> Row) -> (usize, Vec<Row>) {
    let selected = scene.ui.track;
    let selected = selected.and_then(|track| tracks.iter().position(|&known| known == track));
    let mut first = scene.ui.track_offset.get().min(tracks.len() - 1);
    if let Some(at) = selected {
        first = first.min(at);
    }
    loop {
        let mut left = height;
        let mut shown: Vec<Row> = Vec::new();
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

fn name_row(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, shown: &Row, line: Line, width: u64) {
    let track = shown.track;
    let role = match track {
        _ if scene.ui.track == Some(track) => Role::Selected,
        Track::Lane(LaneKey::Agent(_)) => Role::Title,
        _ => Role::Muted,
    };
    let text = match line {
        // A counter's scale stands below its name, or before it.
        Line { at: 1, .. } => plot::scale(scene.snap, track).map_or_else(String::new, |scale| format!("  {scale}")),
        Line { at: 2.., .. } => String::new(),
        Line { of: 1, .. } if plot::is_plot(track) => {
            let scale = plot::scale(scene.snap, track).map_or_else(String::new, |scale| format!("{scale} "));
            format!("{scale}{}", rows::label(scene, track))
        }
        _ if matches!(track, Track::AtOnce(_)) => {
            let most = shown.layers.iter().map(|layers| layers.at_once(width)).max();
            format!("{} ≤{}", rows::label(scene, track), most.unwrap_or(0))
        }
        Line { row: 0, .. } => rows::label(scene, track),
        _ => "   at once".into(),
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
            let subject = roctop_model::subject::SliceSubject {
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
