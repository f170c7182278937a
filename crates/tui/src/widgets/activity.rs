//! How busy something was over time: the sums of its lanes as a chart.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::history::{self, Amount, Axis, Scale};
use super::table::Scene;
use crate::theme::Role;
use roctop_model::{Column, Lane, LaneKey, Resolution, Snapshot};
use roctop_trace::item::{Nanos, Span};
use roctop_trace::units;

/// The longest stretch that a chart of activity shows, ns.
const MAX_STRETCH: u64 = 60_000_000_000;

/// Charts of a running program move by this, ns: moved with every frame, they would be sent whole ten times a second.
const STEP: u64 = 1_000_000_000;
/// Steps of a chart of a short time.
const MIN_STEPS: u64 = 16;

/// The right edge of a chart: now, at the end of a step while the program runs.
pub(crate) fn edge(snap: &Snapshot, step: u64) -> Nanos {
    let now = if snap.is_running() {
        snap.elapsed().next_multiple_of(step.max(1))
    } else {
        snap.elapsed()
    };
    snap.origin.saturating_add(now)
}

/// The last minute, or the run when that is shorter.
pub(crate) fn stretch(snap: &Snapshot) -> Span {
    let end = edge(snap, STEP);
    Span {
        begin: end.saturating_sub(MAX_STRETCH).max(snap.origin),
        end,
    }
}

/// The stretch of the charts in words: `last 20 s`.
pub(crate) fn words(snap: &Snapshot) -> String {
    let seconds = snap.elapsed().min(MAX_STRETCH).div_ceil(STEP);
    format!("last {seconds} s")
}

/// A share on a scale.
pub(crate) fn share(value: f64) -> String {
    format!("{} %", units::percent(value))
}

/// A number of things at once on a scale.
pub(crate) fn number(value: f64) -> String {
    format!("{value:.1}")
}

/// Draws the share of time in which lanes had work: of all of them, added up.
pub(crate) fn draw<'a>(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    lanes: impl Iterator<Item = &'a Lane>,
    text: &dyn Fn(f64) -> String,
    role: Role,
) {
    let (span, marks) = (stretch(scene.snap), scene.ui.prefs.marks);
    let columns = history::columns(area, marks).max(1);
    let width = span.duration().div_ceil(columns as u64).max(1);
    let mut sums = vec![Column::default(); columns];
    for lane in lanes {
        let here = lane.columns(span.begin, width, columns, |_| true);
        sums.iter_mut().zip(&here).for_each(|(sum, column)| sum.add(column));
    }
    let value = |(column, begin): (&Column, u64)| {
        // Of the last column only a part has passed; too short a part says nothing.
        let passed = scene
            .snap
            .now
            .saturating_sub(span.begin.saturating_add(begin))
            .min(width);
        (passed > 0 && passed >= width / 2).then(|| Amount {
            value: column.sums.busy as f64 / passed as f64,
            is_average: column.resolution > Resolution::Sums(u64::MAX),
        })
    };
    let values: Vec<Option<Amount>> = sums.iter().zip((0..).step_by(width as usize)).map(value).collect();
    let most = values.iter().flatten().map(|value| value.value).fold(1.0, f64::max);
    let axis = history::last(span.duration() as f64 / 1e9);
    history::draw(canvas, area, marks, &values, &Scale { most, text }, &axis, role);
}

/// Draws the durations of pieces of work, each by when it ended.
pub(crate) fn durations(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, pieces: &[(u64, u64)], role: Role) {
    let first = pieces.iter().map(|piece| piece.0).min().unwrap_or(scene.snap.now);
    let most = pieces.iter().map(|piece| piece.1).max().unwrap_or(0);
    let step = STEP.min((scene.snap.now.saturating_sub(first) / MIN_STEPS).max(1));
    let edge = edge(scene.snap, step);
    let seconds = |at: u64| (at as f64 - edge as f64) / 1e9;
    let axis = Axis {
        from: seconds(first - first.saturating_sub(scene.snap.origin) % step),
        ..history::last(0.0)
    };
    let points: Vec<(f64, f64)> = pieces.iter().map(|piece| (seconds(piece.0), piece.1 as f64)).collect();
    let scale = Scale {
        most: most as f64,
        text: &history::nanos,
    };
    history::points(canvas, area, scene.ui.prefs.marks, &points, &scale, &axis, role);
}

/// The lane of when any kernel ran on a GPU.
pub(crate) fn of_gpu(snap: &Snapshot, agent: roctop_trace::item::AgentId) -> impl Iterator<Item = &Lane> {
    let lanes = snap.lanes.iter().filter(move |lane| lane.key == LaneKey::Agent(agent));
    lanes.map(|lane| &**lane)
}
