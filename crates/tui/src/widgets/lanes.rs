//! A row of the timeline as cells: a column shows what took most of it, a slice that is wide enough its name. Letters and
//! slices are exact; where many pieces of work share a column their shares are shown, and averages have a texture.

use ratatui::layout::Rect;

use super::axis::Stretch;
use super::canvas::Canvas;
use super::chart::{LEVELS, level};
use super::look::{Look, look};
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
use roctop_model::{Column, LaneKey, Resolution, Slice};
use roctop_trace::item::Nanos;
use roctop_trace::units;

/// Adds slices up by column, exactly.
fn gather<'a>(slices: impl Iterator<Item = &'a Slice>, stretch: Stretch, columns: u16) -> Vec<Column> {
    let mut out = vec![Column::default(); columns as usize];
    for slice in slices {
        let first = stretch.column(slice.span.begin, columns);
        let end = slice.span.end.saturating_sub(1).max(slice.span.begin);
        let last = stretch.column(end, columns.saturating_sub(1));
        for column in first..=last.max(first) {
            let Some(cell) = out.get_mut(column as usize) else {
                break;
            };
            let left = stretch
                .from
                .saturating_add(stretch.width.saturating_mul(u64::from(column)));
            let right = left.saturating_add(stretch.width);
            let part = slice.span.end.min(right).saturating_sub(slice.span.begin.max(left));
            cell.sums.add(slice.what, part, column == first);
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
    pub(crate) slices: Option<Vec<(LaneKey, Slice)>>,
    /// Sums by column, where there are no slices.
    cells: Vec<Column>,
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
            return Self::union(track, slices).summed(scene, stretch, columns);
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
            cells: Vec::new(),
        }
        .summed(scene, stretch, columns)
    }

    /// With its sums by column, where it has no slices.
    fn summed(self, scene: &Scene<'_>, stretch: Stretch, columns: u16) -> Self {
        let sums = || {
            self.track
                .columns(scene.snap, stretch.from, stretch.width, columns as usize)
        };
        let cells = if self.slices.is_none() { sums() } else { Vec::new() };
        Self { cells, ..self }
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
            cells: Vec::new(),
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
    let cells = match &layers.slices {
        Some(_) => &gather(layers.of_row(row).map(|(_, slice)| slice), stretch, area.width),
        None => &layers.cells,
    };
    let now = stretch.column(snap.now, area.width);
    let is_gap = |x: u16| {
        let at = stretch.from.saturating_add(stretch.width.saturating_mul(u64::from(x)));
        scene.ui.track == Some(track) && scene.ui.gap.is_some_and(|gap| at >= gap.begin && at < gap.end)
    };
    for (x, cell) in (0..).zip(cells) {
        let at = area.x + x;
        if !cell.is_empty() {
            base(canvas, scene, track.like(), cell, stretch.width, (at, area.y));
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

/// Slices that are wide enough to be things of their own; the selected one and what belongs to it are above all others.
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

/// Pieces of work in a column that are told apart by a letter: fewer than this.
const MANY: u32 = 3;

/// A column as a whole: its letter where it holds few pieces of work, the shares of the greatest where it holds many, a
/// texture where it is an average.
fn base(canvas: &mut Canvas<'_>, scene: &Scene<'_>, key: LaneKey, column: &Column, width: u64, at: (u16, u16)) {
    let ((x, y), sums) = (at, &column.sums);
    let is_average = column.resolution > Resolution::Sums(u64::MAX);
    let share = sums.busy as f64 / width.max(1) as f64;
    if let LaneKey::Agent(_) = key {
        let mark = if is_average {
            texture(share)
        } else {
            level(sums.busy, width)
        };
        canvas.say(x, y, mark.encode_utf8(&mut [0; 4]), 1, Role::GaugeHigh);
        return;
    }
    let look = look(canvas, scene.snap, key, sums.what());
    let is_marker = matches!(key, LaneKey::Markers(..) | LaneKey::Ranges(_));
    let named = Slice {
        what: sums.what(),
        ..Slice::default()
    };
    let subject = SliceSubject {
        snap: scene.snap,
        key,
        slice: &named,
    };
    // By column only names can be asked for; what else the filter says is asked of slices.
    let is_out = !scene.ui.filter.is_empty() && scene.ui.filter.names_only() && !scene.ui.filter.accepts(&subject);
    let is_exact = column.resolution == Resolution::Exact;
    let mut put = |mark: char, style| canvas.put(x, y, mark.encode_utf8(&mut [0; 4]), 1, style);
    if is_out {
        canvas.say(x, y, "░", 1, Role::Idle);
    } else if is_average {
        put(texture(share), look.line);
    } else if is_marker {
        let mark = match sums {
            sums if sums.busy == 0 => '▾',
            sums if sums.count > 1 => '╫',
            _ => '─',
        };
        put(mark, look.line);
    } else if sums.busy.saturating_mul(2) < width {
        let level = (sums.busy.saturating_mul(8).div_ceil(width.max(1))).clamp(1, 4) as usize;
        put(LEVELS[level], look.line);
    } else if is_exact && sums.count < MANY {
        put(look.letter, look.filled);
    } else {
        shares(canvas, scene, key, column, (share, &look), at);
    }
}

/// An average, by its share: neither a letter nor a level, as nothing is known of this very column.
fn texture(share: f64) -> char {
    if share < 0.5 { '▖' } else { '▚' }
}

/// Many pieces of work: the greatest below, the second above where it has a quarter, each half of a cell.
fn shares(
    canvas: &mut Canvas<'_>,
    scene: &Scene<'_>,
    key: LaneKey,
    column: &Column,
    (busy, first): (f64, &Look),
    at: (u16, u16),
) {
    let mut kinds = column.sums.kinds().skip(1);
    let second = kinds
        .next()
        .filter(|(_, nanos)| nanos.saturating_mul(4) >= column.sums.busy);
    let second = second.map(|(what, _)| look(canvas, scene.snap, key, what).line);
    let mut put = |mark, style| canvas.put(at.0, at.1, mark, 1, style);
    match second {
        _ if busy < 0.75 => put("▄", first.line),
        // The upper half in the colour of the second; the lower one is the ground.
        Some(second) => put("▀", first.line.fg.map_or(second, |ground| second.bg(ground))),
        None => put("█", first.line),
    };
}

/// How exact what is drawn of some tracks is: the widest stretch that a cell is the average of, and from when on slices are
/// kept of all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exactness {
    pub(crate) average: Option<u64>,
    pub(crate) is_mixed: bool,
    pub(crate) since: Nanos,
}

impl Exactness {
    /// Of what is drawn of these tracks.
    pub(crate) fn of<'a>(scene: &Scene<'_>, shown: impl Iterator<Item = &'a Layers>) -> Self {
        let mut out = Self::default();
        shown.for_each(|layers| out.add(scene, layers));
        out
    }

    fn add(&mut self, scene: &Scene<'_>, layers: &Layers) {
        for cell in &layers.cells {
            match cell.resolution {
                Resolution::Average(stored) => self.average = self.average.max(Some(stored)),
                Resolution::Mixed => self.is_mixed = true,
                Resolution::Exact | Resolution::Sums(_) => {}
            }
        }
        let lanes = layers.track.sources(scene.snap);
        let forgotten = lanes.filter_map(roctop_model::Lane::forgotten);
        self.since = self.since.max(forgotten.max().unwrap_or(0));
    }

    /// In words; nothing where all is exact, or sums that are not wider than a column.
    pub(crate) fn words(self, scene: &Scene<'_>) -> Option<String> {
        let since = since(self.since.saturating_sub(scene.snap.origin));
        match self.average {
            Some(stored) => Some(format!("averages of {}; exact since {since}", units::duration(stored))),
            None if self.is_mixed => Some("too many sources to tell apart this far out".into()),
            None => None,
        }
    }
}

/// `+952 s`; to the millisecond while that says something.
pub(crate) fn since(nanos: u64) -> String {
    match nanos.div_ceil(1_000_000) {
        millis @ ..100_000 => format!("+{}.{:03} s", millis / 1000, millis % 1000),
        millis => format!("+{} s", millis.div_ceil(1000)),
    }
}
