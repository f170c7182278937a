//! The timeline's own keys: from slice to slice, from gap to gap, a range, marks, folding.

use super::direction::Direction;
use super::jump;
use super::time::{Range, Zoom};
use super::track::Track;
use super::widgets::lanes::since;
use super::widgets::rows;
use super::widgets::table::Scene;
use super::{Tab, Ui};
use roctop_model::collectives::CollectiveSlice;
use roctop_model::recall::Recall;
use roctop_model::{LaneKey, Slice, Snapshot};
use roctop_ring::record::direction;
use roctop_trace::item::{KernelId, Nanos, OperationId, Span, TextId};

const MAX_MARKS: usize = 50;

/// The row of the timeline that keys act upon: the selected one, else the first that has slices.
fn current(ui: &Ui, snap: &Snapshot) -> Option<Track> {
    let chosen = ui.track.map(|track| match track {
        Track::Lane(LaneKey::Agent(agent)) => Track::OnAgent(agent),
        other => other,
    });
    chosen.filter(|track| track.has_slices(snap)).or_else(|| {
        let tracks = rows::order(&Scene { ui, snap });
        tracks.into_iter().find(|track| track.has_slices(snap))
    })
}

/// The row whose gaps are looked for: a thread that is outside of calls works, so from its rows it is the first GPU's.
fn with_gaps(ui: &Ui, snap: &Snapshot) -> Option<Track> {
    let chosen = current(ui, snap)?;
    if !matches!(chosen, Track::Lane(_)) || chosen.thread().is_none() {
        return Some(chosen);
    }
    let tracks = rows::order(&Scene { ui, snap });
    let agent = tracks.into_iter().find_map(Track::agent)?;
    Some(Track::Lane(LaneKey::Agent(agent)))
}

/// Where the time cursor is: the selected slice, else the middle of the screen.
fn cursor(ui: &Ui, snap: &Snapshot) -> Nanos {
    let columns = ui.lane_columns();
    let middle = (ui.time.from(snap, columns) / 2 + ui.time.to(snap, columns) / 2).min(snap.now);
    let head = ui.range.filter(|range| range.moves).map(|range| range.head);
    let selected = ui.slice.map(|slice| slice.1).or(ui.gap.map(|gap| gap.begin));
    selected.or(head).unwrap_or(middle)
}

/// Selects a slice; while a range is measured, its end goes along.
fn select(ui: &mut Ui, snap: &Snapshot, found: (LaneKey, Slice)) {
    let (key, slice) = found;
    if let Some(range) = ui.range.as_mut().filter(|range| range.moves) {
        range.head = slice.span.end;
        ui.slice = Some((key, slice.span.begin));
        let columns = ui.lane_columns();
        ui.time.show(snap, columns, slice.span.end);
        return;
    }
    jump::select(ui, snap, key, slice.span.begin, slice.span.duration());
}

/// Selects the slice before or after, in the selected row or else the first that has slices.
pub(super) fn neighbour(ui: &mut Ui, snap: &Snapshot, way: Direction) {
    let Some(track) = current(ui, snap) else { return };
    let own = ui.slice.filter(|slice| track.holds(slice.0)).map(|slice| slice.1);
    let from = own.unwrap_or_else(|| cursor(ui, snap));
    let found = track.neighbour(snap, from, way);
    // With nothing selected, the last one before the cursor is as good as none after it.
    let found = found.or_else(|| own.is_none().then(|| track.neighbour(snap, from, way.turned()))?);
    match found {
        Some(found) => {
            ui.track = Some(track);
            select(ui, snap, found);
        }
        None => ui.say(snap, "no further slice in this row"),
    }
}

/// Selects the next slice that passes the filter; without a filter, the next of the same thing.
pub(super) fn matching(ui: &mut Ui, snap: &Snapshot, way: Direction) {
    let Some(track) = current(ui, snap) else { return };
    let same = ui
        .slice
        .and_then(|(key, begin)| snap.lane(key)?.at(begin).map(|slice| slice.what));
    let filter = ui.filter.clone();
    let found = track.search(snap, cursor(ui, snap), way, |key, slice| {
        if filter.is_empty() {
            same.is_none_or(|what| what == slice.what)
        } else {
            filter.accepts(&roctop_model::subject::SliceSubject { snap, key, slice })
        }
    });
    match found {
        Some(found) => {
            ui.track = Some(track);
            select(ui, snap, found);
        }
        None => ui.say(snap, "no further match in this row"),
    }
}

/// Selects the next stretch without work that is wide enough to be seen.
pub(super) fn gap(ui: &mut Ui, snap: &Snapshot, way: Direction) {
    let Some(track) = with_gaps(ui, snap) else { return };
    let columns = ui.lane_columns();
    let least = ui.time.width(snap, columns).saturating_mul(2).min(snap.thresholds.gap);
    let from = match ui.gap {
        Some(gap) if way == Direction::On => gap.end,
        Some(gap) => gap.begin,
        None => cursor(ui, snap),
    };
    let Some(found) = track.gap(snap, from, least, way) else {
        let least = roctop_trace::units::duration(least);
        return ui.say(snap, &format!("no further gap of {least} or more in this row"));
    };
    if ui.track.is_none_or(|chosen| chosen.agent() != track.agent()) {
        ui.track = Some(track);
    }
    (ui.gap, ui.slice) = (Some(found), None);
    if let Some(range) = ui.range.as_mut().filter(|range| range.moves) {
        range.head = found.end;
    }
    ui.time.show(snap, columns, found.begin);
    jump::widen(ui, snap, found);
}

/// Begins a range at the cursor, or ends it.
pub(super) fn range(ui: &mut Ui, snap: &Snapshot) {
    let columns = ui.lane_columns();
    ui.range = match ui.range {
        Some(range) if range.moves => Some(Range { moves: false, ..range }),
        _ => {
            let anchor = cursor(ui, snap);
            let slice = ui.slice.and_then(|(key, begin)| snap.lane(key)?.at(begin).copied());
            let end = slice.map(|slice| slice.span.end).or(ui.gap.map(|gap| gap.end));
            let step = ui.time.width(snap, columns).saturating_mul(10);
            ui.time.stand(snap, columns);
            Some(Range {
                anchor,
                head: end.unwrap_or(anchor.saturating_add(step)),
                moves: true,
            })
        }
    };
}

/// Pans; while a range is measured, moves its end instead.
pub(super) fn pan(ui: &mut Ui, snap: &Snapshot, way: Direction) {
    let columns = ui.lane_columns();
    let width = ui.time.width(snap, columns);
    let Some(range) = ui.range.as_mut().filter(|range| range.moves) else {
        let eighths = match way {
            Direction::On => 2,
            Direction::Back => -2,
        };
        return ui.time.pan(snap, columns, eighths);
    };
    range.head = match way {
        Direction::On => range.head.saturating_add(width).min(snap.now.max(range.head)),
        Direction::Back => range.head.saturating_sub(width),
    };
    let head = range.head;
    ui.time.show(snap, columns, head);
}

/// Zooms around what is selected.
pub(super) fn zoom(ui: &mut Ui, snap: &Snapshot, zoom: Zoom) {
    let anchor = ui.slice.map(|slice| slice.1).or(ui.gap.map(|gap| gap.begin));
    let columns = ui.lane_columns();
    let before = ui.time;
    ui.time.zoom(snap, columns, zoom, anchor);
    let from = ui.time.from(snap, columns);
    let width = ui.time.width(snap, columns);
    let to = ui.time.to(snap, columns);
    let span = Span { begin: from, end: to };
    let reason = match &snap.recall {
        Recall::None => Some("R keeps all"),
        recall => recall.refuses(span),
    };
    if let Some(reason) = reason.filter(|_| zoom == Zoom::In && width < stored(snap, from, to)) {
        ui.time = before;
        let exact = snap.lanes.iter().filter_map(|lane| lane.forgotten()).max().unwrap_or(0);
        let since = since(exact.saturating_sub(snap.origin));
        ui.say(snap, &format!("no finer here: exact data begin at {since}; {reason}"));
    }
}

/// The finest that is known of a stretch of time: 0 where anything in it is exact, else how wide its sums are, ns.
fn stored(snap: &Snapshot, from: Nanos, to: Nanos) -> u64 {
    let lanes = snap.lanes.iter().filter(|lane| {
        let all = lane.columns(from, to.saturating_sub(from), 1, |_| true);
        all.iter().any(|column| !column.is_empty())
    });
    // The end of the stretch is its most exact part.
    lanes.map(|lane| lane.stored(to.min(snap.now))).min().unwrap_or(0)
}

/// Fits the range that is measured, else the whole run, into the screen.
pub(super) fn fit(ui: &mut Ui, snap: &Snapshot) {
    match ui.range {
        Some(range) if ui.tab == Tab::Timeline => {
            let columns = ui.lane_columns();
            ui.time.frame(snap, columns, range.span());
        }
        _ => (ui.time.fits, ui.time.follows, ui.time.is_work) = (true, false, false),
    }
}

/// Zooms to what is selected. From there it zooms out as far as the call and its work are on screen together, and back again.
pub(super) fn zoom_to(ui: &mut Ui, snap: &Snapshot) {
    let slice = ui.slice.and_then(|(key, begin)| snap.lane(key)?.at(begin).copied());
    let selected = slice.map(|slice| slice.span).or(ui.gap).or(ui.range.map(Range::span));
    let Some(selected) = selected else {
        return ui.say(snap, "nothing selected: [ ] slice, { } gap, v range");
    };
    let columns = ui.lane_columns();
    let framed = |span: Span| {
        let mut time = ui.time;
        time.frame(snap, columns, span);
        time
    };
    let alone = framed(selected);
    if ui.time != alone {
        ui.time = alone;
        return;
    }
    if slice.is_none() {
        return ui.say(snap, "zoomed to it already");
    }
    let related = jump::of_selected(ui, snap).into_iter();
    let others: Vec<Span> = related
        .filter(|(key, _)| !matches!(key, LaneKey::Markers(..) | LaneKey::Ranges(_)))
        .map(|(_, slice)| slice.span)
        .collect();
    if others.is_empty() {
        return ui.say(snap, "neither a call nor work that belongs to it is kept");
    }
    let both = others.into_iter().fold(selected, |both, span| Span {
        begin: both.begin.min(span.begin),
        end: both.end.max(span.end),
    });
    ui.time = framed(both);
}

/// Goes with the newest from now on.
pub(super) fn follow(ui: &mut Ui) {
    ui.frozen = None;
    (ui.slice, ui.gap, ui.range) = (None, None, None);
    ui.log.scrolled = 0;
    (ui.time.follows, ui.time.fits, ui.time.is_work) = (true, false, false);
}

pub(super) fn mark(ui: &mut Ui, snap: &Snapshot) {
    let at = cursor(ui, snap);
    match ui.marks.binary_search(&at) {
        Ok(known) => {
            ui.marks.remove(known);
            ui.say(snap, "mark taken away");
        }
        Err(place) if ui.marks.len() < MAX_MARKS => {
            ui.marks.insert(place, at);
            let text = roctop_trace::units::timestamp_short(at.saturating_sub(snap.origin));
            ui.say(snap, &format!("mark {} at {text}; ' goes from mark to mark", place + 1));
        }
        Err(_) => ui.say(snap, "no more marks"),
    }
}

/// To the mark after the cursor, then round to the first.
pub(super) fn to_mark(ui: &mut Ui, snap: &Snapshot) {
    let Some(&first) = ui.marks.first() else {
        return ui.say(snap, "no marks; m puts one");
    };
    let columns = ui.lane_columns();
    let now = ui
        .time
        .from(snap, columns)
        .saturating_add(ui.time.width(snap, columns).saturating_mul(columns as u64) / 2);
    let next = ui.marks.iter().copied().find(|&mark| mark > now).unwrap_or(first);
    ui.show(Tab::Timeline);
    ui.time.stand(snap, columns);
    ui.time.from = next.saturating_sub(ui.time.width.saturating_mul(columns as u64) / 2);
    (ui.slice, ui.gap) = (None, None);
}

/// Folds the rows of a GPU into one, or unfolds them; without a selection, all.
pub(super) fn fold(ui: &mut Ui) {
    let Some(agent) = ui.track.and_then(Track::agent) else {
        ui.folded.clear();
        return;
    };
    match ui.folded.iter().position(|&folded| folded == agent) {
        Some(at) => drop(ui.folded.remove(at)),
        None => ui.folded.push(agent),
    }
    ui.track = Some(Track::Lane(LaneKey::Agent(agent)));
    ui.slice = None;
}

/// The selected slice or row as a term of a filter: the name of a kernel, call, range or direction; a stream, queue, GPU or
/// thread.
pub(super) fn term(scene: &Scene<'_>) -> Option<String> {
    let (ui, snap) = (scene.ui, scene.snap);
    let names = &snap.names;
    if let Some((key, begin)) = ui.slice {
        let what = snap.lane(key)?.at(begin)?.what;
        let name = match key {
            LaneKey::Stream(..) | LaneKey::Queue(..) => names.kernel(KernelId(what))?.short.to_string(),
            LaneKey::Api(..) => names.operation(OperationId(what))?.operation.name.to_string(),
            LaneKey::Markers(..) | LaneKey::Ranges(_) => names.text(TextId(what)).to_string(),
            LaneKey::Copies(way) => return Some(format!("dir={}", direction::name(way).to_lowercase())),
            LaneKey::Collectives(_) => CollectiveSlice::kind(what).0.name().into(),
            LaneKey::Agent(_) => return None,
        };
        return Some(format!("\"{}\"", name.replace('"', "")));
    }
    let gpu = |agent| Some(format!("dev={}", names.agent(agent)?.number));
    match ui.track? {
        Track::Lane(LaneKey::Stream(_, stream)) => Some(format!("stream={}", names.stream(stream)?.number)),
        Track::Lane(LaneKey::Queue(_, queue)) | Track::InQueue(_, queue) => {
            Some(format!("queue={}", names.queue(queue)?.number))
        }
        Track::Lane(LaneKey::Copies(way)) => Some(format!("dir={}", direction::name(way).to_lowercase())),
        Track::Lane(LaneKey::Agent(agent)) | Track::OnAgent(agent) | Track::AtOnce(agent) => gpu(agent),
        Track::Gauge(node, _) => Some(format!("dev={}", names.gpu_number(node)?)),
        track => Some(format!("tid={}", names.thread(track.thread()?)?.tid)),
    }
}
