//! A row of the timeline as cells: a column shows what took most of it, a slice that is wide enough its name.

use ratatui::layout::Rect;
use ratatui::style::Style;
use roctop_ring::record::direction;

use super::axis::Stretch;
use super::canvas::Canvas;
use super::chart::{LEVELS, level};
use super::open::{OpenWork, open_work};
use super::table::Scene;
use crate::format;
use crate::item::{KernelId, Nanos, OperationId, TextId};
use crate::model::analysis::usage;
use crate::model::{Bucket, Class, LaneKey, Slice, Snapshot};
use crate::ui::jump::of_selected;
use crate::ui::subject::SliceSubject;
use crate::ui::theme::Role;
use crate::ui::track::Track;

/// How a slice looks: letter, text, style filled, style of a line.
struct Look {
    letter: char,
    text: String,
    filled: Style,
    line: Style,
}

fn look(canvas: &Canvas<'_>, snap: &Snapshot, key: LaneKey, what: u32) -> Look {
    let names = &snap.names;
    let by_role = |letter, text: &str, role| Look {
        letter,
        text: text.to_string(),
        filled: canvas.theme.filled_role(role),
        line: canvas.style(role),
    };
    match key {
        LaneKey::Stream(..) | LaneKey::Queue(..) => {
            let id = KernelId(what);
            let place = snap.letters.iter().position(|&lettered| lettered == id);
            let hue = place.unwrap_or(what as usize);
            let text = names.kernel(id).map_or("?", |name| &name.short);
            if names.is_internal(id) {
                return by_role('~', text, Role::CopyFill);
            }
            let letter = snap.letter(id).unwrap_or('*');
            Look {
                letter,
                text: text.into(),
                filled: canvas.theme.filled(hue),
                line: canvas.theme.line(hue),
            }
        }
        LaneKey::Copies(way) => by_role(copy_letter(way), direction::name(way), copy_role(way)),
        LaneKey::Api(..) => {
            let name = names.operation(OperationId(what));
            let (letter, role) = match name.map(|name| name.class).unwrap_or_default() {
                Class::Sync => ('S', Role::ApiSync),
                Class::Launch => ('L', Role::ApiLaunch),
                Class::Memory => ('M', Role::ApiMemory),
                Class::Other => ('A', Role::ApiOther),
            };
            by_role(letter, name.map_or("?", |name| &name.operation.name), role)
        }
        LaneKey::Markers(..) | LaneKey::Ranges(_) => by_role('─', names.text(TextId(what)), Role::Marker),
        LaneKey::Agent(_) => by_role('█', "", Role::GaugeHigh),
    }
}

/// The role of a direction.
pub(crate) fn copy_role(way: u16) -> Role {
    match way {
        direction::H2D => Role::CopyH2d,
        direction::D2H => Role::CopyD2h,
        direction::D2D | direction::H2H => Role::CopyD2d,
        _ => Role::CopyFill,
    }
}

fn copy_letter(way: u16) -> char {
    match way {
        direction::H2D => '↓',
        direction::D2H => '↑',
        direction::FILL => '=',
        _ => '↔',
    }
}

/// Adds slices up by column, exactly.
fn gather<'a>(slices: impl Iterator<Item = &'a Slice>, stretch: Stretch, columns: u16) -> Vec<Bucket> {
    let mut out = vec![Bucket::default(); columns as usize];
    for slice in slices {
        let first = stretch.column(slice.span.begin, columns);
        let end = slice.span.end.saturating_sub(1).max(slice.span.begin);
        let last = stretch.column(end, columns.saturating_sub(1));
        for column in first..=last.max(first) {
            let Some(bucket) = out.get_mut(column as usize) else {
                break;
            };
            let left = stretch
                .from
                .saturating_add(stretch.width.saturating_mul(u64::from(column)));
            let right = left.saturating_add(stretch.width);
            let part = slice.span.end.min(right).saturating_sub(slice.span.begin.max(left));
            bucket.add(slice.what, part, column == first);
        }
    }
    out
}

/// What is the same for all rows of a frame.
pub(crate) struct Frame {
    pub(crate) stretch: Stretch,
    pub(crate) open: Vec<OpenWork>,
    /// What belongs to the selected slice.
    pub(crate) related: Vec<(LaneKey, Nanos)>,
}

impl Frame {
    pub(crate) fn new(scene: &Scene<'_>, stretch: Stretch) -> Self {
        let related = of_selected(scene.ui, scene.snap);
        Self {
            stretch,
            open: open_work(scene.snap),
            related: related
                .into_iter()
                .map(|(key, slice)| (key, slice.span.begin))
                .collect(),
        }
    }
}

/// A row of the timeline with its slices, laid out so that what overlaps stands in rows of its own.
pub(crate) struct Layers {
    pub(crate) track: Track,
    /// None: too many to be told apart, or not kept.
    slices: Option<Vec<(LaneKey, Slice)>>,
    /// Row of each slice.
    rows: Vec<u16>,
    pub(crate) height: u16,
}

impl Layers {
    /// Lays out what a track has on screen in at most so many rows; the last takes what is left.
    pub(crate) fn new(scene: &Scene<'_>, track: Track, stretch: Stretch, columns: u16, most: u16) -> Self {
        let to = stretch.to(columns);
        let most_slices = columns as usize * 64;
        if let Track::Lane(LaneKey::Agent(agent)) = track {
            let slices = Track::OnAgent(agent).slices(scene.snap, stretch.from, to, most_slices);
            return Self::union(track, slices);
        }
        let slices = track.slices(scene.snap, stretch.from, to, most_slices);
        let mut ends: Vec<Nanos> = Vec::new();
        let mut rows = Vec::new();
        for (_, slice) in slices.iter().flatten() {
            // An overlap that is narrower than a column is none that could be seen.
            let begin = slice.span.begin.saturating_add(stretch.width);
            let free = ends.iter().position(|&end| end <= begin);
            let row = free.unwrap_or_else(|| {
                if ends.len() < most as usize {
                    ends.push(0);
                }
                ends.len() - 1
            });
            ends[row] = ends[row].max(slice.span.end);
            rows.push(row as u16);
        }
        Self {
            track,
            slices,
            rows,
            height: (ends.len() as u16).max(1),
        }
    }

    /// When any of the slices ran, in one row.
    fn union(track: Track, slices: Option<Vec<(LaneKey, Slice)>>) -> Self {
        let joined = slices.map(|slices| {
            let mut joined: Vec<(LaneKey, Slice)> = Vec::new();
            for (_, slice) in slices {
                match joined.last_mut() {
                    Some((_, last)) if slice.span.begin <= last.span.end => {
                        last.span.end = last.span.end.max(slice.span.end);
                    }
                    _ => joined.push((track.like(), slice)),
                }
            }
            joined
        });
        Self {
            track,
            rows: vec![0; joined.as_ref().map_or(0, Vec::len)],
            slices: joined,
            height: 1,
        }
    }

    fn of_row(&self, row: u16) -> impl Iterator<Item = &(LaneKey, Slice)> {
        let all = self.slices.iter().flatten().zip(&self.rows);
        all.filter(move |(_, at)| **at == row).map(|(slice, _)| slice)
    }
}

/// Draws one of the rows of a track.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, layers: &Layers, row: u16, frame: &Frame) {
    if area.width == 0 {
        return;
    }
    let (snap, stretch, track) = (scene.snap, frame.stretch, layers.track);
    let like = track.like();
    let to = stretch.to(area.width);
    let buckets = match &layers.slices {
        Some(_) => gather(layers.of_row(row).map(|(_, slice)| slice), stretch, area.width),
        None => track.columns(snap, stretch.from, stretch.width, area.width as usize),
    };
    let now = stretch.column(snap.now, area.width);
    let is_gap = |x: u16| {
        let at = stretch.from.saturating_add(stretch.width.saturating_mul(u64::from(x)));
        scene.ui.track == Some(track) && scene.ui.gap.is_some_and(|gap| at >= gap.begin && at < gap.end)
    };
    for (x, bucket) in buckets.iter().enumerate() {
        let x = x as u16;
        let at = area.x + x;
        if bucket.busy == 0 && bucket.count == 0 {
            let (text, role) = match x {
                x if is_gap(x) => ("·", Role::Selected),
                x if x < now => ("·", Role::Idle),
                _ => (" ", Role::Idle),
            };
            canvas.say(at, area.y, text, 1, role);
            continue;
        }
        base(canvas, scene, like, bucket, stretch.width, (at, area.y));
    }
    if let LaneKey::Agent(_) = like {
        name_selected_gap(canvas, area, scene, track, stretch);
        return;
    }
    // A column in which one slice ends and the next begins shows the end of the first.
    let mut ended = u16::MAX;
    let stands_out = |key: LaneKey, slice: &Slice| {
        let place = (key, slice.span.begin);
        scene.ui.slice == Some(place) || frame.related.contains(&place)
    };
    for (key, slice) in layers.of_row(row).filter(|(key, slice)| !stands_out(*key, slice)) {
        ended = wide(canvas, area, scene, (*key, slice), frame, ended);
    }
    // The selected one and what belongs to it are above all others.
    for (key, slice) in layers.of_row(row).filter(|(key, slice)| stands_out(*key, slice)) {
        wide(canvas, area, scene, (*key, slice), frame, u16::MAX);
    }
    if row > 0 {
        return;
    }
    if !scene.ui.time.follows && usage::has_kernels(like) {
        gaps(canvas, area, layers, stretch);
    }
    name_selected_gap(canvas, area, scene, track, stretch);
    for open in frame
        .open
        .iter()
        .filter(|open| track.holds(open.key) && open.begin < to)
    {
        let begin = stretch.column(open.begin, area.width);
        let end = (now + u16::from(snap.is_running())).clamp(begin + 1, area.width.max(begin + 1));
        let text = format::fit(&format!("▒ {}… ", open.text), (end - begin) as usize).replace(' ', "▒");
        canvas.say(
            area.x + begin,
            area.y,
            &text,
            (end - begin).min(area.width - begin.min(area.width)),
            Role::Open,
        );
    }
}

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
fn gaps(canvas: &mut Canvas<'_>, area: Rect, layers: &Layers, stretch: Stretch) {
    let mut end: Option<Nanos> = None;
    for (_, slice) in layers.slices.iter().flatten() {
        let before = end.filter(|&end| end < slice.span.begin && end >= stretch.from);
        end = end.max(Some(slice.span.end));
        let Some(before) = before else { continue };
        let first = stretch.column(before, area.width) + 1;
        let last = stretch.column(slice.span.begin, area.width);
        let text = format!(" gap {} ", format::duration(slice.span.begin - before));
        let wide = format::width(&text) as u16;
        if let Some(rest) = last.checked_sub(first).and_then(|room| room.checked_sub(wide + 2)) {
            canvas.say(area.x + first + rest / 2 + 1, area.y, &text, wide, Role::Idle);
        }
    }
}

/// Writes the length of the selected gap into it.
fn name_selected_gap(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, track: Track, stretch: Stretch) {
    let Some(gap) = scene.ui.gap.filter(|_| scene.ui.track == Some(track)) else {
        return;
    };
    let first = stretch.column(gap.begin, area.width);
    let last = stretch.column(gap.end, area.width);
    let text = format!(" idle {} ", format::duration(gap.duration()));
    let room = last.saturating_sub(first);
    let wide = format::width(&text) as u16;
    if room > wide + 1 {
        canvas.say(area.x + first + (room - wide) / 2, area.y, &text, wide, Role::Selected);
    }
}

/// A column as a whole: level of what was busy, in the colour of what took most of it.
fn base(canvas: &mut Canvas<'_>, scene: &Scene<'_>, key: LaneKey, bucket: &Bucket, width: u64, at: (u16, u16)) {
    let (x, y) = at;
    if let LaneKey::Agent(_) = key {
        let mark = level(bucket.busy, width).to_string();
        canvas.say(x, y, &mark, 1, Role::GaugeHigh);
        return;
    }
    let look = look(canvas, scene.snap, key, bucket.what);
    let is_marker = matches!(key, LaneKey::Markers(..) | LaneKey::Ranges(_));
    let named = Slice {
        what: bucket.what,
        ..Slice::default()
    };
    let subject = SliceSubject {
        snap: scene.snap,
        key,
        slice: &named,
    };
    // By column only names can be asked for; what else the filter says is asked of slices.
    let is_out = !scene.ui.filter.is_empty() && scene.ui.filter.names_only() && !scene.ui.filter.accepts(&subject);
    if is_out {
        canvas.say(x, y, "░", 1, Role::Idle);
    } else if is_marker {
        let mark = if bucket.busy == 0 {
            "▾"
        } else if bucket.count > 1 {
            "╫"
        } else {
            "─"
        };
        canvas.put(x, y, mark, 1, look.line);
    } else if bucket.busy.saturating_mul(2) >= width {
        canvas.put(x, y, &look.letter.to_string(), 1, look.filled);
    } else {
        let mark = LEVELS[(bucket.busy.saturating_mul(8).div_ceil(width.max(1))).clamp(1, 4) as usize];
        canvas.put(x, y, &mark.to_string(), 1, look.line);
    }
}

/// A slice that is wide enough to be a thing of its own: its name within, its end marked.
/// Returns its last column; `ended` is that of the slice before.
fn wide(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    piece: (LaneKey, &Slice),
    frame: &Frame,
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
    let mut look = look(canvas, scene.snap, key, slice.what);
    if is_selected {
        look.filled = canvas.style(Role::Selected);
        look.line = look.filled;
    }
    let mut text = look.text.clone();
    if let LaneKey::Copies(_) = key {
        text = format!("{text} {}", format::bytes(slice.value));
    }
    let room = cells as usize;
    let ends = slice.span.end <= to;
    let cut = slice.span.begin < stretch.from;
    if matches!(key, LaneKey::Markers(..) | LaneKey::Ranges(_)) {
        let head = if cut { "─" } else { "├" };
        let tail = if ends { "┤" } else { "─" };
        let name = if room >= 9 || room >= format::width(&text) + 4 {
            format!(" {} ", format::elide(&text, room - 4))
        } else {
            String::new()
        };
        let rule = "─".repeat(room.saturating_sub(2 + format::width(&name)));
        canvas.put(x, y, &format!("{head}{name}{rule}{tail}"), cells, look.line);
    } else {
        let inner = if ends && room > 1 { room - 1 } else { room };
        let name = if room >= 7 {
            format!("{} {text}", look.letter)
        } else {
            String::new()
        };
        let name = if name.is_empty() {
            look.letter.to_string().repeat(inner)
        } else {
            format::fit(&name, inner)
        };
        canvas.put(x, y, &name, inner as u16, look.filled);
        if inner < room {
            canvas.put(x + inner as u16, y, "▌", 1, look.line);
        }
    }
    if is_selected {
        canvas.paint(
            Rect {
                x,
                y,
                width: cells.max(1),
                height: 1,
            },
            Role::Selected,
        );
        if room >= 3 {
            canvas.say(x, y, "[", 1, Role::Selected);
            canvas.say(x + cells - 1, y, "]", 1, Role::Selected);
        }
    } else if is_related {
        // What belongs to the selected one: told by signs as well as by its look.
        let place = Rect {
            x,
            y,
            width: cells.max(1),
            height: 1,
        };
        canvas.paint(place, Role::Match);
        canvas.say(x, y, "<", 1, Role::Accent);
        if cells >= 2 {
            canvas.say(x + cells - 1, y, ">", 1, Role::Accent);
        }
    }
    last
}
