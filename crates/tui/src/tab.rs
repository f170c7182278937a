//! The views, one file each, and what all of them can be asked.

pub(crate) mod alerts;
pub(crate) mod api;
pub(crate) mod calls;
pub(crate) mod copies;
mod counter_detail;
pub(crate) mod counters;
mod device_detail;
pub(crate) mod devices;
pub(crate) mod diff;
pub(crate) mod gaps;
mod kernel_detail;
mod kernel_rows;
pub(crate) mod kernels;
pub(crate) mod log;
pub(crate) mod markers;
pub(crate) mod memory;
mod overview;
pub(crate) mod processes;
mod roofline;
pub(crate) mod running;
pub(crate) mod samples;
mod selected;
pub(crate) mod steps;
mod timeline;
pub(crate) mod transfers;

use std::collections::HashSet;
use std::sync::Arc;

use ratatui::layout::Rect;

use self::alerts::AlertTable;
use self::api::ApiTable;
use self::calls::{CallTable, ThreadTable};
use self::copies::CopyTable;
use self::counters::CounterTable;
use self::devices::DeviceTable;
use self::diff::ChangeTable;
use self::gaps::GapTable;
use self::kernels::KernelTable;
use self::markers::MarkerTable;
use self::memory::MemoryTable;
use self::processes::ProcessTable;
use self::running::RunningTable;
use self::samples::SampleTable;
use self::steps::StepTable;
use self::transfers::TransferTable;
use super::filterable::{ApiSubject, CopySubject, MarkerSubject};
use super::jump::Target;
use super::list_id::Pane;
use super::widgets::canvas::Canvas;
use super::widgets::column;
use super::widgets::table::{self, Scene, Table};
use super::{Size, Tab};
use roctop_model::table::CopyStat;
use roctop_model::{Mode, Snapshot, Values};
use roctop_trace::item::{KernelId, OperationId};
use roctop_trace::units;

/// Calls `$body` with `$T` standing for a list's table.
macro_rules! with_table {
    ($pane:expr, $T:ident => $body:expr) => {
        with_table!(@ $pane, $T, $body,
            Kernels KernelTable, Routes CopyTable, Transfers TransferTable, Operations ApiTable, Threads ThreadTable,
            Calls CallTable, Counters CounterTable, Devices DeviceTable, Gaps GapTable, Markers MarkerTable,
            Processes ProcessTable, Alerts AlertTable, Running RunningTable, Steps StepTable, Changes ChangeTable,
            Memory MemoryTable, Samples SampleTable)
    };
    (@ $pane:expr, $T:ident, $body:expr, $($Pane:ident $Table:ident),*) => {
        match $pane {
            $(Pane::$Pane => {
                type $T = $Table;
                $body
            })*
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
        Tab::Alerts => alerts::draw(canvas, area, scene, size),
        Tab::Running => running::draw(canvas, area, scene, size),
        Tab::Steps => steps::draw(canvas, area, scene, size),
        Tab::Diff => diff::draw(canvas, area, scene, size),
        Tab::Memory => memory::draw(canvas, area, scene, size),
        Tab::Samples => samples::draw(canvas, area, scene, size),
    }
}

/// Identities of a list's rows in the order of the screen.
pub(crate) fn keys(scene: &Scene<'_>, pane: Pane) -> Vec<u64> {
    with_table!(pane, T => table::keys::<T>(scene))
}

/// How many columns a list can be sorted by, and which does so at first.
pub(crate) fn sortable(pane: Pane) -> (usize, usize) {
    with_table!(pane, T => (T::COLUMNS.len(), T::SORT))
}

/// Whether a list has this column now.
pub(crate) fn has_column(scene: &Scene<'_>, pane: Pane, at: usize) -> bool {
    with_table!(pane, T => !matches!(T::heading(scene, at), column::Heading::Absent))
}

/// Headings of a list's columns.
pub(crate) fn titles(pane: Pane) -> Vec<String> {
    with_table!(pane, T => T::COLUMNS.iter().map(|column| column.title.trim().to_string()).collect())
}

/// Headings of a list's columns, on screen and in files.
pub(crate) fn headings(pane: Pane) -> Vec<(&'static str, &'static str)> {
    with_table!(pane, T => T::COLUMNS.iter().map(|column| (column.title, column.name)).collect())
}

/// Where Enter leads from a list's selected row, or its first.
pub(crate) fn target(scene: &Scene<'_>, pane: Pane) -> Target {
    with_table!(pane, T => table::selected::<T>(scene)
        .map_or(Target::Nowhere("nothing to open here"), |row| T::target(&row, scene)))
}

/// The selected row of the list that has the focus as a term of a filter.
pub(crate) fn term(scene: &Scene<'_>) -> Option<String> {
    let pane = scene.ui.pane()?;
    with_table!(pane, T => table::selected::<T>(scene).and_then(|row| T::term(&row, scene)))
}

/// The selected row as text: its cells in base units, apart by tabs; on the timeline what is known of the slice.
pub(crate) fn copied(scene: &Scene<'_>) -> Option<String> {
    let Some(pane) = scene.ui.pane() else {
        return match scene.ui.tab {
            Tab::Timeline => Some(selected::text(scene)),
            _ => log::line(scene),
        };
    };
    with_table!(pane, T => table::selected::<T>(scene).map(|row| {
        let cells: Vec<String> = T::COLUMNS.iter().map(|column| (column.worth)(&row, scene).raw()).collect();
        cells.join("\t")
    }))
}

/// The name in the selected row: what its widest column says.
pub(crate) fn copied_name(scene: &Scene<'_>) -> Option<String> {
    let Some(pane) = scene.ui.pane() else {
        return copied(scene);
    };
    with_table!(pane, T => table::selected::<T>(scene).and_then(|row| {
        let name = T::COLUMNS.iter().find(|column| column.width == 0)?;
        Some((name.worth)(&row, scene).raw())
    }))
}

/// Any list as comma-separated values; none when it has no row.
pub(crate) fn csv_of(scene: &Scene<'_>, pane: Pane) -> Option<String> {
    with_table!(pane, T => (!table::keys::<T>(scene).is_empty()).then(|| table::csv::<T>(scene)))
}

/// The rows of the list that has the focus as comma-separated values.
pub(crate) fn csv(scene: &Scene<'_>) -> String {
    match scene.ui.pane() {
        Some(pane) => with_table!(pane, T => table::csv::<T>(scene)),
        None if scene.ui.tab == Tab::Timeline => timeline::csv(scene),
        None => log::text(scene),
    }
}

/// What the filter lets pass, in words: `8 of 318 kernels · 68.0 % of time`.
pub(crate) fn matches(scene: &Scene<'_>) -> String {
    let values = &scene.snap.values;
    match (scene.ui.tab, scene.ui.pane()) {
        (_, Some(Pane::Kernels)) => {
            let rows = table::sorted::<KernelTable>(scene);
            let time: u64 = rows.iter().map(|row| row.stat.total).sum();
            let share = time as f64 / values.totals.kernel_time.max(1) as f64;
            format!(
                "{} of {} kernels · {} % of time",
                rows.len(),
                values.kernels.len(),
                units::percent(share)
            )
        }
        (_, Some(pane)) => with_table!(pane, T => {
            let (rows, all) = (T::rows(scene).len(), T::all(scene));
            format!("{rows} of {} {}s", units::grouped(all as u64), T::WHAT)
        }),
        (Tab::Log, None) => log::matches(scene),
        (_, None) => "what does not match is ░".into(),
    }
}

/// The values of what passes the filter.
pub(crate) fn passing(scene: &Scene<'_>) -> Values {
    let mut values = (*scene.snap.values).clone();
    let kernels = kernel_rows::by_name(scene).into_iter().filter_map(|row| {
        let kernel_rows::What::Kernel(at) = row.what else {
            return None;
        };
        let mut kernel = values.kernels[at].clone();
        kernel.numbers.stat = row.stat;
        Some((kernel, row.internal))
    });
    let kernels: Vec<_> = kernels.collect();
    let calls = |internal: bool| {
        let rows = kernels.iter().filter(|row| row.1 || !internal);
        rows.map(|row| row.0.numbers.stat.calls).sum()
    };
    let totals = &mut values.totals;
    (totals.dispatches, totals.internal) = (calls(false), calls(true));
    totals.kernel_time = kernels.iter().map(|row| row.0.numbers.stat.total).sum();
    values.kernels = Arc::new(kernels.into_iter().map(|row| row.0).collect());
    let (names, filter, wall) = (&scene.snap.names, &scene.ui.filter, wall(scene.snap));
    let passes = |row: &CopyStat| filter.accepts(&CopySubject(names, row));
    let kept: Vec<bool> = values.copies.iter().map(passes).collect();
    let place = |at: u32| kept[..at as usize].iter().filter(|kept| **kept).count() as u32;
    let sums = Arc::make_mut(&mut values.copy_sums);
    sums.retain(|sum| sum.parts.iter().all(|&at| kept[at as usize]));
    for sum in sums {
        sum.parts.iter_mut().for_each(|at| *at = place(*at));
    }
    Arc::make_mut(&mut values.copies).retain(passes);
    totals.copies = values.copies.iter().map(|row| row.stat.calls).sum();
    Arc::make_mut(&mut values.api).retain(|row| filter.accepts(&ApiSubject(names, row, wall)));
    totals.calls = values.api.iter().map(|row| row.stat.calls).sum();
    Arc::make_mut(&mut values.markers).retain(|row| filter.accepts(&MarkerSubject(names, row)));
    totals.markers = values.markers.iter().map(|row| row.stat.calls).sum();
    let kernels: HashSet<KernelId> = values.kernels.iter().map(|row| row.id).collect();
    let operations: HashSet<OperationId> = values.api.iter().map(|row| row.id).collect();
    for row in &mut values.processes {
        let open = Arc::make_mut(&mut row.open);
        open.calls.retain(|call| operations.contains(&call.operation));
        open.dispatches.retain(|dispatch| kernels.contains(&dispatch.kernel));
        open.copies = 0;
    }
    values
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
            _ if scene.ui.away.is_uncollected => "started with --no-collect: nothing is recorded".into(),
            _ if snap.missed.is_some() => "nothing is recorded".into(),
            Mode::Live if snap.ended.is_some() => "no collector came up: the program did not use HIP or HSA".into(),
            Mode::Live => "no collector has come up yet: the program has not used HIP or HSA".into(),
            Mode::Replay => "the recording has no process".into(),
        });
    } else {
        let after = units::duration(snap.elapsed());
        lines.push(match (snap.mode, snap.ended) {
            (Mode::Replay, _) => format!("the recording has no {what}"),
            (_, Some(_)) => format!("there was no {what}"),
            (_, None) => format!("no {what} yet, after {after}"),
        });
    }
    lines.extend(snap.missed.iter().map(ToString::to_string));
    if snap.values.totals.records() == 0 && !snap.output.is_empty() && snap.mode == Mode::Live {
        lines.push("what the program prints is in the log (0)".into());
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
    snap.now
        .saturating_sub(snap.origin.max(snap.values.counted_from))
        .max(1)
}
