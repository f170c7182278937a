//! Going from one thing to what belongs to it.

use super::Pane;
use super::tab::{instances, kernels};
use super::time::Range;
use super::track::Track;
use super::widgets::table::Scene;
use super::{Tab, Ui};
use roctop_model::analysis::usage::has_kernels;
use roctop_model::table::pattern;
use roctop_model::{LaneKey, Slice, Snapshot};
use roctop_trace::item::{KernelId, Nanos, OperationId, Span, TextId, ThreadId};

/// Where Enter leads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    /// A slice on the timeline.
    Slice(LaneKey, Nanos),
    /// A stretch of time, in a lane when it is one's.
    Stretch(Option<LaneKey>, Span),
    /// A row of a list in another view.
    Row(Tab, Pane, u64),
    /// A view.
    View(Tab),
    /// The own events of a rank of the job, by the rank's number: another screen has them.
    Rank(u32),
    /// Nowhere, and why.
    Nowhere(&'static str),
}

/// Shows a view with what is selected now: a row on the timeline, a slice in its table.
pub(crate) fn carry(ui: &mut Ui, snap: &Snapshot, tab: Tab) {
    let selected = ui.pane().filter(|&pane| ui.tables[pane as usize].selected.is_some());
    if tab == Tab::Timeline
        && matches!(
            ui.tab,
            Tab::Kernels | Tab::Launches | Tab::Copies | Tab::Api | Tab::Markers
        )
    {
        let target = selected.map(|pane| pane.list().target(&Scene { ui, snap }));
        if let Some(target @ Target::Slice(..)) = target {
            go(ui, snap, &target);
            return;
        }
    }
    let slice = ui.slice.filter(|_| ui.tab == Tab::Timeline);
    let known = slice.and_then(|(key, begin)| Some((key, *snap.lane(key)?.at(begin)?)));
    if tab == Tab::Launches {
        return show_launches(ui, snap, known);
    }
    let known = known.map(|(key, slice)| (key, slice.what));
    ui.show(tab);
    let row = known.and_then(|(key, what)| match key {
        LaneKey::Stream(..) | LaneKey::Queue(..) => Some((Pane::Kernels, u64::from(what))),
        LaneKey::Copies(_) => Some((Pane::Routes, u64::from(what))),
        LaneKey::Api(..) => Some((Pane::Operations, u64::from(what))),
        LaneKey::Markers(..) | LaneKey::Ranges(_) => {
            let text = pattern(snap.names.text(TextId(what)));
            let row = snap.values.markers.iter().find(|row| *row.pattern == *text)?;
            Some((Pane::Markers, u64::from(row.id)))
        }
        LaneKey::Agent(_) | LaneKey::Collectives(_) => None,
    });
    if let Some((pane, key)) = row.filter(|(pane, _)| ui.pane() == Some(*pane)) {
        ui.tables[pane as usize].selected = Some(key);
    }
}

/// Shows the launches of the kernel of a slice, or of the selected one, which stays the selected one.
fn show_launches(ui: &mut Ui, snap: &Snapshot, slice: Option<(LaneKey, Slice)>) {
    let of_kernel = slice.filter(|(key, _)| has_kernels(*key)).map(|(_, slice)| slice);
    let kernel = of_kernel.map(|slice| KernelId(slice.what));
    let kernel = kernel.or_else(|| kernels::selected(&Scene { ui, snap }));
    ui.show(Tab::Launches);
    if let Some(kernel) = kernel {
        ui.tables[Pane::Kernels as usize].selected = Some(u64::from(kernel.0));
    }
    if let Some(slice) = of_kernel {
        ui.tables[Pane::Launches as usize].selected = Some(instances::identity(&slice));
    }
}

/// What belongs to the selected thing.
pub(crate) fn entered(ui: &Ui, snap: &Snapshot) -> Target {
    if ui.tab == Tab::Timeline {
        return on_timeline(ui, snap);
    }
    let scene = Scene { ui, snap };
    ui.pane().map_or(Target::Nowhere("nothing to open here"), |pane| {
        pane.list().target(&scene)
    })
}

fn on_timeline(ui: &Ui, snap: &Snapshot) -> Target {
    if let Some(range) = ui.range.filter(|range| range.moves) {
        return Target::Stretch(None, range.span());
    }
    if ui.slice.is_none() {
        return Target::Nowhere("nothing selected: [ ] select a slice");
    }
    let all = of_selected(ui, snap);
    onward(ui, &all).map_or(Target::Nowhere("nothing that belongs to it is kept"), |(key, slice)| {
        Target::Slice(key, slice.span.begin)
    })
}

/// What Enter leads to of all that belongs to the selected slice: the first that it did not just come from, so that it
/// goes from call to work to range; there is a key to go back.
pub(crate) fn onward(ui: &Ui, all: &[(LaneKey, Slice)]) -> Option<(LaneKey, Slice)> {
    let from = ui.history.slice_before(ui.slice);
    let mut others = all.iter().filter(|(key, slice)| Some((*key, slice.span.begin)) != from);
    others.next().or(all.first()).copied()
}

/// Goes there.
pub(crate) fn go(ui: &mut Ui, snap: &Snapshot, target: &Target) -> Option<&'static str> {
    if let Target::Nowhere(why) = target {
        return Some(why);
    }
    match target {
        Target::Slice(key, begin) => {
            let known = snap.lane(*key).and_then(|lane| lane.at(*begin)).map(|slice| slice.span);
            let comes_from_elsewhere = ui.tab != Tab::Timeline;
            ui.show(Tab::Timeline);
            select(ui, snap, *key, *begin, known.map_or(0, Span::duration));
            if let Some(span) = known.filter(|_| comes_from_elsewhere) {
                widen(ui, snap, span);
            }
        }
        Target::Stretch(key, span) => {
            ui.show(Tab::Timeline);
            let columns = ui.lane_columns();
            ui.time.frame(snap, columns, *span);
            (ui.slice, ui.gap, ui.range) = (None, None, None);
            if let Some(key) = key {
                ui.track = Some(Track::Lane(*key));
                select_stretch(ui, snap, *key, *span);
            }
        }
        Target::Row(tab, pane, key) => {
            ui.show(*tab);
            ui.focus_on(*pane);
            ui.tables[*pane as usize].selected = Some(*key);
        }
        Target::View(tab) => ui.show(*tab),
        Target::Nowhere(_) | Target::Rank(_) => {}
    }
    None
}

/// Selects a stretch of time in a lane: a GPU's is a gap, a thread's is measured, with the slice that begins it.
fn select_stretch(ui: &mut Ui, snap: &Snapshot, key: LaneKey, span: Span) {
    if let LaneKey::Agent(_) = key {
        ui.gap = Some(span);
        return;
    }
    let slice = snap.lane(key).and_then(|lane| lane.at(span.begin));
    ui.slice = slice.map(|slice| (key, slice.span.begin));
    ui.range = Some(Range {
        anchor: span.begin,
        head: span.end,
        moves: false,
    });
}

/// What is too narrow to be seen gets an eighth of the screen, with what is around it.
pub(crate) fn widen(ui: &mut Ui, snap: &Snapshot, span: Span) {
    let columns = ui.lane_columns();
    if span.duration() >= ui.time.width(snap, columns).saturating_mul(3) {
        return;
    }
    let margin = span.duration().max(10).saturating_mul(4);
    let around = Span {
        begin: span.begin.saturating_sub(margin),
        end: span.end.saturating_add(margin),
    };
    ui.time.frame(snap, columns, around);
}

/// Selects a slice and brings it on screen; one that is too short to be seen is zoomed in upon.
pub(crate) fn select(ui: &mut Ui, snap: &Snapshot, key: LaneKey, begin: Nanos, nanos: u64) {
    let columns = ui.lane_columns();
    let track = ui.track.filter(|track| track.holds(key));
    ui.track = Some(track.unwrap_or(Track::Lane(key)));
    ui.slice = Some((key, begin));
    ui.gap = None;
    ui.time.show(snap, columns, begin);
    if nanos > 0 && nanos / ui.time.width(snap, columns).max(1) > columns as u64 {
        ui.time.frame(
            snap,
            columns,
            Span {
                begin,
                end: begin.saturating_add(nanos),
            },
        );
    }
}

/// Lanes that may hold what belongs to a slice of a lane.
fn belongs(key: LaneKey, other: LaneKey) -> bool {
    match key {
        LaneKey::Api(..) => matches!(other, LaneKey::Stream(..) | LaneKey::Queue(..) | LaneKey::Copies(_)),
        LaneKey::Stream(..) | LaneKey::Queue(..) | LaneKey::Copies(_) | LaneKey::Collectives(_) => {
            matches!(other, LaneKey::Api(..))
        }
        LaneKey::Agent(_) | LaneKey::Markers(..) | LaneKey::Ranges(_) => false,
    }
}

/// What belongs to a slice, the nearest first: the work that a call caused, or the call that caused the work; then the
/// innermost range around the call. For a range, the first call within it.
pub(crate) fn related(snap: &Snapshot, key: LaneKey, begin: Nanos) -> Vec<(LaneKey, Slice)> {
    let Some(slice) = snap.lane(key).and_then(|lane| lane.at(begin)).copied() else {
        return Vec::new();
    };
    let mut out: Vec<(LaneKey, Slice)> = Vec::new();
    if slice.correlation != 0 {
        if let Some(call) = launching(snap, &slice).filter(|_| !matches!(key, LaneKey::Api(..))) {
            out.push(call);
        } else {
            let others = snap.lanes.iter().filter(|lane| belongs(key, lane.key));
            out.extend(others.filter_map(|lane| {
                let other = lane.correlated(slice.correlation)?;
                (other.process == slice.process).then_some((lane.key, *other))
            }));
        }
    }
    match key {
        LaneKey::Markers(thread, _) | LaneKey::Ranges(thread) => {
            let calls = snap.lane(LaneKey::Api(thread, 0));
            let first = calls.and_then(|lane| lane.neighbour(slice.span.begin.saturating_sub(1), true));
            let within = first.filter(|call| call.span.begin <= slice.span.end);
            out.extend(within.map(|call| (LaneKey::Api(thread, 0), call)));
        }
        LaneKey::Api(thread, _) => out.extend(around(snap, thread, slice.span.begin)),
        _ => {
            let call = out.iter().find_map(|(key, call)| match key {
                LaneKey::Api(thread, _) => Some((*thread, call.span.begin)),
                _ => None,
            });
            out.extend(call.and_then(|(thread, at)| around(snap, thread, at)));
        }
    }
    out
}

/// The call that launched a piece of work, found by its thread and the time of its launch.
fn launching(snap: &Snapshot, work: &Slice) -> Option<(LaneKey, Slice)> {
    if work.thread == u32::MAX || work.submit == 0 {
        return None;
    }
    let keys = [0, 1].map(|depth| LaneKey::Api(ThreadId(work.thread), depth));
    keys.into_iter().find_map(|key| {
        let calls = snap.lane(key)?.slices(work.submit, work.submit, 256)?;
        let own = calls.into_iter().find(|call| call.correlation == work.correlation)?;
        Some((key, own))
    })
}

/// What belongs to the selected slice; looked for once.
pub(crate) fn of_selected(ui: &Ui, snap: &Snapshot) -> Vec<(LaneKey, Slice)> {
    let Some((key, begin)) = ui.slice else {
        return Vec::new();
    };
    if let Some((known, found)) = &*ui.related.borrow()
        && *known == (key, begin)
    {
        return found.clone();
    }
    let found = related(snap, key, begin);
    // What is to come yet is looked for again.
    if !found.is_empty() {
        ui.related.replace(Some(((key, begin), found.clone())));
    }
    found
}

/// The innermost range of a thread at a time.
fn around(snap: &Snapshot, thread: ThreadId, at: Nanos) -> Option<(LaneKey, Slice)> {
    let lanes = snap.lanes.iter().filter(|lane| match lane.key {
        LaneKey::Markers(of, _) | LaneKey::Ranges(of) => of == thread,
        _ => false,
    });
    let found = lanes.filter_map(|lane| {
        let here = lane.slices(at, at, 64)?;
        let inner = here
            .into_iter()
            .filter(|slice| slice.span.begin <= at && slice.span.end > at);
        Some((lane.key, inner.max_by_key(|slice| slice.span.begin)?))
    });
    found.max_by_key(|(_, slice)| slice.span.begin)
}

/// The youngest slice of a kernel that is kept.
pub(crate) fn last_of_kernel(snap: &Snapshot, kernel: KernelId) -> Option<(LaneKey, Slice)> {
    youngest(
        snap,
        |key| matches!(key, LaneKey::Stream(..) | LaneKey::Queue(..)),
        kernel.0,
    )
}

/// The youngest call of an operation that is kept.
pub(crate) fn last_of_operation(snap: &Snapshot, operation: OperationId) -> Option<(LaneKey, Slice)> {
    youngest(snap, |key| matches!(key, LaneKey::Api(..)), operation.0)
}

fn youngest(snap: &Snapshot, among: impl Fn(LaneKey) -> bool, what: u32) -> Option<(LaneKey, Slice)> {
    let lanes = snap.lanes.iter().filter(|lane| among(lane.key));
    // Slices of several rings are in the lane in reading order.
    let last = lanes.filter_map(|lane| Some((lane.key, lane.search(Nanos::MAX, false, |slice| slice.what == what)?)));
    last.max_by_key(|found| found.1.span.begin)
}
