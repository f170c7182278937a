//! The views, one file each, and what all of them can be asked.

pub(crate) mod api;
pub(crate) mod copies;
pub(crate) mod counters;
pub(crate) mod devices;
pub(crate) mod kernels;
pub(crate) mod log;
pub(crate) mod markers;
mod overview;
pub(crate) mod processes;
mod timeline;

use ratatui::layout::Rect;

use self::api::ApiTable;
use self::copies::CopyTable;
use self::counters::CounterTable;
use self::devices::DeviceTable;
use self::kernels::KernelTable;
use self::markers::MarkerTable;
use self::processes::ProcessTable;
use super::part::canvas::Canvas;
use super::part::table::{self, Scene, Table};
use super::{Size, Tab};
use crate::format;
use crate::model::{Mode, Snapshot};

/// Calls `$body` with `$T` standing for the view's table; `$none` when it has none.
macro_rules! with_table {
    ($tab:expr, $T:ident => $body:expr, $none:expr) => {
        match $tab {
            Tab::Overview | Tab::Kernels => {
                type $T = KernelTable;
                $body
            }
            Tab::Copies => {
                type $T = CopyTable;
                $body
            }
            Tab::Api => {
                type $T = ApiTable;
                $body
            }
            Tab::Counters => {
                type $T = CounterTable;
                $body
            }
            Tab::Devices => {
                type $T = DeviceTable;
                $body
            }
            Tab::Markers => {
                type $T = MarkerTable;
                $body
            }
            Tab::Processes => {
                type $T = ProcessTable;
                $body
            }
            Tab::Timeline | Tab::Log => $none,
        }
    };
}

/// Columns that the names of lanes take.
pub(crate) const fn label_columns(size: Size) -> u16 {
    match size {
        Size::Large => 18,
        _ => 14,
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    match scene.ui.tab {
        Tab::Overview => overview::draw(canvas, area, scene, size),
        Tab::Timeline => timeline::draw(canvas, area, scene, size),
        Tab::Kernels => kernels::draw(canvas, area, scene, size),
        Tab::Copies => copies::draw(canvas, area, scene, size),
        Tab::Api => api::draw(canvas, area, scene, size),
        Tab::Counters => counters::draw(canvas, area, scene, size),
        Tab::Devices => devices::draw(canvas, area, scene, size),
        Tab::Markers => markers::draw(canvas, area, scene, size),
        Tab::Processes => processes::draw(canvas, area, scene, size),
        Tab::Log => log::draw(canvas, area, scene),
    }
}

/// Identities of the rows in the order of the screen.
pub(crate) fn keys(scene: &Scene<'_>) -> Vec<u64> {
    with_table!(scene.ui.tab, T => table::keys::<T>(scene, scene.ui.table()), Vec::new())
}

/// How many columns can be sorted by, and which does so at first.
pub(crate) fn sortable(tab: Tab) -> Option<(usize, usize)> {
    with_table!(tab, T => Some((T::COLUMNS.len(), T::SORT)), None)
}

/// The rows as comma-separated values.
pub(crate) fn csv(scene: &Scene<'_>) -> String {
    match scene.ui.tab {
        Tab::Timeline => timeline::csv(scene),
        Tab::Log => log::text(scene),
        _ => with_table!(scene.ui.tab, T => table::csv::<T>(scene, scene.ui.table()), String::new()),
    }
}

/// What the filter lets pass, in words: `8 of 318 kernels · 68.0 % of time`.
pub(crate) fn matches(scene: &Scene<'_>) -> String {
    let values = &scene.snap.values;
    let rows = keys(scene).len();
    match scene.ui.tab {
        Tab::Overview | Tab::Kernels => {
            let time: u64 = KernelTable::rows(scene).iter().map(|row| row.stat.total).sum();
            let share = time as f64 / values.totals.kernel_time.max(1) as f64;
            format!(
                "{rows} of {} kernels · {} % of time",
                values.kernels.len(),
                format::percent(share)
            )
        }
        Tab::Copies => format!("{rows} of {} routes", values.copies.len()),
        Tab::Api => format!("{rows} of {} operations", values.api.len()),
        Tab::Counters => format!("{rows} of {} counters", values.gauges.counters.len()),
        Tab::Devices => format!("{rows} devices"),
        Tab::Markers => format!("{rows} of {} markers", values.markers.len()),
        Tab::Processes => format!("{rows} of {} processes", values.processes.len()),
        Tab::Log => format!("{} of {} lines", log::lines(scene).len(), scene.snap.output.len()),
        Tab::Timeline => "what does not match is ░".into(),
    }
}

/// Why a pane has nothing to show: what is missing and what to do.
pub(crate) fn why_empty(scene: &Scene<'_>, what: &str, known: usize) -> Vec<String> {
    let snap = scene.snap;
    if known > 0 && !scene.ui.filter.is_empty() {
        return vec![
            format!("the filter lets none of {known} pass: {}", scene.ui.filter.source),
            "esc clears it, / changes it".into(),
        ];
    }
    let mut lines = Vec::new();
    if snap.values.processes.iter().all(|row| row.process.pid == 0) {
        lines.push(match snap.mode {
            Mode::Live if snap.ended.is_some() => "no collector came up: the program did not use HIP or HSA".into(),
            Mode::Live => "no collector has come up yet: the program has not used HIP or HSA".into(),
            Mode::Replay => "the recording has no process".into(),
        });
    } else {
        let after = format::duration(snap.elapsed());
        lines.push(match (snap.mode, snap.ended) {
            (Mode::Replay, _) => format!("the recording has no {what}"),
            (_, Some(_)) => format!("the program made no {what}"),
            (_, None) => format!("no {what} yet, after {after}"),
        });
    }
    lines.extend(
        snap.values
            .said
            .iter()
            .rev()
            .take(3)
            .map(|said| format!("collector: {}", said.text)),
    );
    lines
}

/// Time that percentages of the wall are of.
pub(crate) fn wall(snap: &Snapshot) -> u64 {
    snap.elapsed().max(1)
}
