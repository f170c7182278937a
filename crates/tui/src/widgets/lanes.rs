//! A row of the timeline as cells: a column shows what took most of it, a slice that is wide enough its name. Letters and
//! slices are exact; where many pieces of work share a column their shares are shown, and averages have a texture.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::axis::Stretch;
use super::canvas::Canvas;
use super::chart::LEVELS;
use super::look::look;
use super::open::{OpenWork, open_work};
use super::overlay;
use super::plot;
use super::slice::wide;
use super::table::Scene;
use crate::jump::of_selected;
use crate::theme::Role;
use crate::track::Track;
use roctop_model::analysis::usage;
use roctop_model::recall::{Recall, Window};
use roctop_model::subject::SliceSubject;
use roctop_model::{Column, LaneKey, Resolution, Slice};
use roctop_trace::item::{Nanos, Span};
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

/// A row of the timeline with its slices, laid out so that overlapping slices stand in separate rows.
pub(crate) struct Layers {
    pub(crate) track: Track,
    /// None: too many to distinguish, or not kept.
    pub(crate) slices: Option<Vec<(LaneKey, Slice)>>,
    /// Sums by column, where there are no slices.
    cells: Vec<Column>,
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
            return Self::union(track, slices).summed(scene, stretch, columns);
        }
        if let Track::AtOnce(_) = track {
            return Self::union(track, None).summed(scene, stretch, columns);
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

    /// How many pieces of work ran at once in the fullest column, rounded up.
    pub(crate) fn at_once(&self, width: u64) -> u64 {
        let most = self.cells.iter().map(|cell| cell.sums.busy).max().unwrap_or(0);
        most.div_ceil(width.max(1)).max(1)
    }

    /// The slices of one of its rows.
    pub(crate) fn of_row(&self, row: u16) -> impl Iterator<Item = &(LaneKey, Slice)> {
        let all = self.slices.iter().flatten().zip(&self.rows);
        all.filter(move |(_, at)| **at == row).map(|(slice, _)| slice)
    }
}

/// A line on screen: one of those that a row of a track takes, counted from above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) row: u16,
    pub(crate) at: u16,
    pub(crate) of: u16,
}

impl Line {
    /// Lines of the same row below it.
    const fn below(self) -> u16 {
        self.of - 1 - self.at
    }

    /// The level of a bar of this share in it.
    pub(crate) fn level(self, share: f64) -> usize {
        let eighths = (share.clamp(0.0, 1.0) * 8.0 * f64::from(self.of)).ceil() as usize;
        eighths.saturating_sub(8 * self.below() as usize).min(8)
    }
}

/// Draws one of the lines of a track.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, layers: &Layers, line: Line, frame: &Frame) {
    if area.width == 0 {
        return;
    }
    let (stretch, track) = (frame.stretch, layers.track);
    if plot::is_plot(track) {
        return plot::draw(canvas, area, scene, track, stretch, line);
    }
    let like = track.like();
    columns(canvas, area, scene, layers, line, stretch);
    let is_base = line.row == 0 && line.below() == 0;
    if let LaneKey::Agent(_) = like {
        if is_base {
            overlay::name_selected_gap(canvas, area, scene, track, stretch);
        }
        return;
    }
    slices(canvas, area, scene, layers, line, frame);
    if line.row == 0 && line.at == 0 {
        still_open(canvas, area, scene, track, frame);
    }
    if !is_base {
        return;
    }
    if !scene.ui.time.follows && usage::has_kernels(like) {
        overlay::gaps(canvas, area, layers, stretch);
    }
    overlay::name_selected_gap(canvas, area, scene, track, stretch);
}

/// How busy each column was; dots where nothing was, up to now.
fn columns(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, layers: &Layers, line: Line, stretch: Stretch) {
    let (snap, track) = (scene.snap, layers.track);
    let cells = match &layers.slices {
        Some(_) => &gather(layers.of_row(line.row).map(|(_, slice)| slice), stretch, area.width),
        None => &layers.cells,
    };
    // Kernels that run at once add up: the most of them fill the row.
    let width = match track {
        Track::AtOnce(_) => stretch.width.saturating_mul(layers.at_once(stretch.width)),
        _ => stretch.width,
    };
    let now = stretch.column(snap.now, area.width);
    let is_gap = |x: u16| {
        let at = stretch.from.saturating_add(stretch.width.saturating_mul(u64::from(x)));
        scene.ui.track == Some(track) && scene.ui.gap.is_some_and(|gap| at >= gap.begin && at < gap.end)
    };
    for (x, cell) in (0..).zip(cells) {
        let at = area.x + x;
        if !cell.is_empty() {
            base(canvas, scene, track.like(), cell, width, (at, area.y), line);
            continue;
        }
        let (text, role) = match x {
            x if is_gap(x) => ("·", Role::Selected),
            x if x < now && line.below() == 0 => ("·", Role::Idle),
            _ => (" ", Role::Idle),
        };
        canvas.say(at, area.y, text, 1, role);
    }
}

/// Slices that are wide enough to be drawn by themselves; the selected one and what belongs to it are above all others.
fn slices(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, layers: &Layers, line: Line, frame: &Frame) {
    // A column in which one slice ends and the next begins shows the end of the first.
    let mut ended = u16::MAX;
    let stands_out = |key: LaneKey, slice: &Slice| {
        let place = (key, slice.span.begin);
        scene.ui.slice == Some(place) || frame.related.contains(&place)
    };
    for (key, slice) in layers.of_row(line.row).filter(|(key, slice)| !stands_out(*key, slice)) {
        ended = wide(canvas, area, scene, (*key, slice), (frame, line), ended);
    }
    for (key, slice) in layers.of_row(line.row).filter(|(key, slice)| stands_out(*key, slice)) {
        wide(canvas, area, scene, (*key, slice), (frame, line), u16::MAX);
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

/// Pieces of work in a column have letters if there are fewer than this.
const MANY: u32 = 3;

/// A column as a whole: its letter where it holds few pieces of work, the shares of the greatest where it holds many, a
/// texture where it is an average.
fn base(
    canvas: &mut Canvas<'_>,
    scene: &Scene<'_>,
    key: LaneKey,
    column: &Column,
    width: u64,
    at: (u16, u16),
    line: Line,
) {
    let ((x, y), sums) = (at, &column.sums);
    let is_average = column.resolution > Resolution::Sums(u64::MAX);
    let share = sums.busy as f64 / width.max(1) as f64;
    // A texture fills whole lines, at least one.
    let is_filled = f64::from(line.below()) < (share * f64::from(line.of)).max(1.0);
    if let LaneKey::Agent(_) = key {
        let mark = match line.level(share) {
            _ if is_average && is_filled => texture(share),
            _ if is_average => ' ',
            level => LEVELS[level],
        };
        // A GPU is no kernel, so it has no colour of theirs.
        canvas.say(x, y, mark.encode_utf8(&mut [0; 4]), 1, Role::Muted);
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
    let is_base = line.below() == 0;
    let mut put = |mark: char, style| canvas.put(x, y, mark.encode_utf8(&mut [0; 4]), 1, style);
    if is_out || is_average {
        match (is_out, is_base || (is_average && is_filled)) {
            (_, false) => put(' ', look.line),
            (true, true) => canvas.say(x, y, "░", 1, Role::Idle),
            (false, true) => put(texture(share), look.line),
        };
    } else if is_marker {
        let mark = match sums {
            sums if sums.busy == 0 => '▾',
            sums if sums.count > 1 => '╫',
            _ => '─',
        };
        put(mark, look.line);
    } else if sums.busy.saturating_mul(2) >= width && is_exact && sums.count < MANY {
        put(if line.at == 0 { look.letter } else { ' ' }, look.filled);
    } else if line.of == 1 && sums.busy.saturating_mul(2) < width {
        put(LEVELS[line.level(share).clamp(1, 4)], look.line);
    } else {
        shares(canvas, scene, key, column, (share, look.line), at, line);
    }
}

/// An average, by its share: neither a letter nor a level, as nothing is known of this very column.
fn texture(share: f64) -> char {
    if share < 0.5 { '▖' } else { '▚' }
}

/// Many pieces of work: the greatest below, the others above where they have their part, in halves of a cell.
fn shares(
    canvas: &mut Canvas<'_>,
    scene: &Scene<'_>,
    key: LaneKey,
    column: &Column,
    (busy, first): (f64, Style),
    at: (u16, u16),
    line: Line,
) {
    let all = 2 * line.of;
    let filled = ((busy * f64::from(all)).round() as u16).clamp(1, all);
    let whole = column.sums.busy.max(1) as f64;
    // The kind of a half, counted from below: in the middle of its part of what is busy.
    let kind = |half: u16| {
        let (mut before, place) = (0.0, (f64::from(half) + 0.5) / f64::from(filled) * whole);
        let mut kinds = column.sums.kinds();
        let found = kinds.find(|(_, nanos)| {
            before += *nanos as f64;
            before > place
        });
        (half < filled).then(|| found.map_or(column.sums.what(), |(what, _)| what))
    };
    let line_of = |canvas: &Canvas<'_>, what| look(canvas, scene.snap, key, what).line;
    let (mark, style) = match (kind(2 * line.below()), kind(2 * line.below() + 1)) {
        (None, _) => (" ", first),
        (Some(lower), None) => ("▄", line_of(canvas, lower)),
        (Some(lower), Some(upper)) if lower == upper => ("█", line_of(canvas, lower)),
        // The upper half is the sign, the lower one its ground.
        (Some(lower), Some(upper)) => {
            let (lower, upper) = (line_of(canvas, lower), line_of(canvas, upper));
            ("▀", lower.fg.map_or(upper, |ground| upper.bg(ground)))
        }
    };
    canvas.put(at.0, at.1, mark, 1, style);
}

/// How exact what is drawn of some tracks is: the widest stretch that a cell is the average of, and from when on slices are
/// kept of all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exactness {
    pub(crate) average: Option<u64>,
    pub(crate) is_mixed: bool,
    pub(crate) since: Nanos,
    /// How the past in the window is read back; none where all of it is kept, or nothing can be read back.
    past: Option<PastState>,
}

/// How the past in the window is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PastState {
    /// It will be there in a moment.
    Reading,
    /// It is there.
    Exact,
    /// It cannot be had.
    Refused(Span),
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

    /// The same for this window. Asks for its past where it is not exact, unless the window moves on by itself.
    pub(crate) fn in_window(self, scene: &Scene<'_>, window: Window) -> Self {
        let (ui, snap) = (scene.ui, scene.snap);
        let moves = (ui.time.follows || ui.time.fits) && snap.is_running() && ui.frozen.is_none();
        if !snap.recall.is_possible() || moves {
            return self;
        }
        let begin = window.span.begin;
        let past = match &snap.recall {
            Recall::Done(span) if self.average.is_none() => {
                (begin >= span.begin && begin < span.end && begin <= self.since).then_some(PastState::Exact)
            }
            _ if self.average.is_none() => None,
            recall if recall.refuses(window.span).is_some() => Some(PastState::Refused(window.span)),
            Recall::Done(_) => None,
            _ => Some(PastState::Reading),
        };
        if self.average.is_some() {
            ui.past.set(Some(window));
        }
        Self { past, ..self }
    }

    /// In words; nothing where all is exact, or sums that are not wider than a column.
    pub(crate) fn words(self, scene: &Scene<'_>) -> Option<String> {
        let since = since(self.since.saturating_sub(scene.snap.origin));
        match (self.average.map(units::duration), self.past) {
            (Some(stored), Some(PastState::Reading)) => Some(format!("averages of {stored}; reading…")),
            (Some(stored), Some(PastState::Refused(span))) => {
                let reason = scene.snap.recall.refuses(span).unwrap_or_default();
                Some(format!("averages of {stored}; {reason}"))
            }
            (Some(stored), _) => Some(format!("averages of {stored}; exact since {since}")),
            (None, Some(PastState::Exact)) => Some("exact from recording".into()),
            (None, _) if self.is_mixed => Some("too many sources to distinguish at this zoom".into()),
            (None, _) => None,
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
