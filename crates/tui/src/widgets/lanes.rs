//! A row of the timeline as cells: a column shows what took most of it, a slice that is wide enough its name.

use ratatui::layout::Rect;

use super::axis::Stretch;
use super::canvas::Canvas;
use super::chart::{LEVELS, level};
use super::look::look;
use super::open::{OpenWork, open_work};
use super::overlay;
use super::plot;
use super::slice::wide;
use super::table::Scene;
use crate::filterable::SliceSubject;
use crate::jump::of_selected;
use crate::theme::Role;
use crate::track::Track;
use roctop_model::analysis::usage;
use roctop_model::{Bucket, LaneKey, Slice};
use roctop_trace::item::Nanos;
use roctop_trace::units;

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

/// A row of the timeline with its slices, laid out so that overlapping slices stand in separate rows.
pub(crate) struct Layers {
    pub(crate) track: Track,
    /// None: too many to distinguish, or not kept.
    pub(crate) slices: Option<Vec<(LaneKey, Slice)>>,
    /// Row of each slice.
    rows: Vec<u16>,
    pub(crate) height: u16,
}

impl Layers {
    /// Lays out what a track has on screen in at most `rows` rows; the last takes what is left.
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

    /// The slices of one of its rows.
    pub(crate) fn of_row(&self, row: u16) -> impl Iterator<Item = &(LaneKey, Slice)> {
        let all = self.slices.iter().flatten().zip(&self.rows);
        all.filter(move |(_, at)| **at == row).map(|(slice, _)| slice)
    }
}

/// Draws one of the rows of a track.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, layers: &Layers, row: u16, frame: &Frame) {
    if area.width == 0 {
        return;
    }
    let (stretch, track) = (frame.stretch, layers.track);
    if plot::is_plot(track) {
        return plot::draw(canvas, area, scene, track, stretch);
    }
    let like = track.like();
    columns(canvas, area, scene, layers, row, stretch);
    if let LaneKey::Agent(_) = like {
        overlay::name_selected_gap(canvas, area, scene, track, stretch);
        return;
    }
    slices(canvas, area, scene, layers, row, frame);
    if row > 0 {
        return;
    }
    if !scene.ui.time.follows && usage::has_kernels(like) {
        overlay::gaps(canvas, area, layers, stretch);
    }
    overlay::name_selected_gap(canvas, area, scene, track, stretch);
    still_open(canvas, area, scene, track, frame);
}

/// How busy each column was; dots where nothing was, up to now.
fn columns(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, layers: &Layers, row: u16, stretch: Stretch) {
    let (snap, track) = (scene.snap, layers.track);
    let buckets = match &layers.slices {
        Some(_) => gather(layers.of_row(row).map(|(_, slice)| slice), stretch, area.width),
        None => track.columns(snap, stretch.from, stretch.width, area.width as usize),
    };
    let now = stretch.column(snap.now, area.width);
    let is_gap = |x: u16| {
        let at = stretch.from.saturating_add(stretch.width.saturating_mul(u64::from(x)));
        scene.ui.track == Some(track) && scene.ui.gap.is_some_and(|gap| at >= gap.begin && at < gap.end)
    };
    for (x, bucket) in (0..).zip(&buckets) {
        let at = area.x + x;
        if bucket.busy > 0 || bucket.count > 0 {
            base(canvas, scene, track.like(), bucket, stretch.width, (at, area.y));
            continue;
        }
        let (text, role) = match x {
            x if is_gap(x) => ("·", Role::Selected),
            x if x < now => ("·", Role::Idle),
            _ => (" ", Role::Idle),
        };
        canvas.say(at, area.y, text, 1, role);
    }
}

/// Slices that are wide enough to be drawn by themselves; the selected one and what belongs to it are above all others.
fn slices(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, layers: &Layers, row: u16, frame: &Frame) {
    // A column in which one slice ends and the next begins shows the end of the first.
    let mut ended = u16::MAX;
    let stands_out = |key: LaneKey, slice: &Slice| {
        let place = (key, slice.span.begin);
        scene.ui.slice == Some(place) || frame.related.contains(&place)
    };
    for (key, slice) in layers.of_row(row).filter(|(key, slice)| !stands_out(*key, slice)) {
        ended = wide(canvas, area, scene, (*key, slice), frame, ended);
    }
    for (key, slice) in layers.of_row(row).filter(|(key, slice)| stands_out(*key, slice)) {
        wide(canvas, area, scene, (*key, slice), frame, u16::MAX);
    }
}

/// What has not ended yet, up to now.
fn still_open(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, track: Track, frame: &Frame) {
    let (snap, stretch) = (scene.snap, frame.stretch);
    let (now, to) = (stretch.column(snap.now, area.width), stretch.to(area.width));
    let open = frame.open.iter();
    for open in open.filter(|open| track.holds(open.key) && open.begin < to) {
        let begin = stretch.column(open.begin, area.width);
        let end = (now + u16::from(snap.is_running())).clamp(begin + 1, area.width.max(begin + 1));
        let text = units::fit(&format!("▒ {}… ", open.text), (end - begin) as usize).replace(' ', "▒");
        let room = (end - begin).min(area.width - begin.min(area.width));
        canvas.say(area.x + begin, area.y, &text, room, Role::Open);
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
