//! Kernels: a table by name, stream, GPU, process or marker, and the selected one in detail.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::kernel_rows::{self, Row, What, delay};
use super::sites::{self, HasSite};
use super::{counters, kernel_detail};

use crate::Pane;
use crate::jump::{self, Target};
use crate::launches;
use crate::relation::Kind;
use crate::theme::Role;
use crate::widgets::canvas::Canvas;
use crate::widgets::chart;
use crate::widgets::column::{Column, ColumnId, FILES_ONLY, Heading, Shown, Worth};
use crate::widgets::panes::list_and_detail;
use crate::widgets::row_cache::Basis;
use crate::widgets::stat_column::HasStat;
use crate::widgets::table::{self, Scene, Table};
use crate::{Grouping, NameForm, Size, Tab};
use roctop_model::occupancy::Occupancy;
use roctop_model::sites::SiteWork;
use roctop_model::snapshot::KernelRow;
use roctop_model::stats::Stat;
use roctop_model::{Lane, LaneKey, Snapshot, kernel_counters};
use roctop_trace::item::{KernelId, Nanos};
use roctop_trace::units;

pub(crate) struct KernelTable;

impl HasStat for Row {
    fn stat<'a>(&'a self, _: &Scene<'a>) -> &'a Stat {
        &self.stat
    }
}

/// The kernel that a row stands for, when it is one.
pub(crate) fn source<'a>(row: &Row, scene: &Scene<'a>) -> Option<&'a KernelRow> {
    match row.what {
        What::Kernel(at) => scene.snap.values.kernels.get(at),
        _ => None,
    }
}

/// Whether the filter lets only some launches of a kernel pass.
pub(crate) fn is_partial(row: &Row, scene: &Scene<'_>) -> bool {
    source(row, scene).is_some_and(|kernel| row.is_estimate || row.stat.calls != kernel.numbers.stat.calls)
}

/// The kernel that a row stands for, if all its launches pass: some numbers are known of all together.
pub(crate) fn whole<'a>(row: &Row, scene: &Scene<'a>) -> Option<&'a KernelRow> {
    source(row, scene).filter(|_| !is_partial(row, scene))
}

fn share(row: &Row, scene: &Scene<'_>) -> f64 {
    row.stat.total as f64 / scene.snap.values.totals.kernel_time.max(1) as f64
}

fn trend(row: &Row, scene: &Scene<'_>, seconds: usize) -> Vec<u64> {
    whole(row, scene).map_or_else(Vec::new, |kernel| {
        kernel.numbers.trend.last(scene.snap.values.at, seconds)
    })
}

/// The kernel that is selected, or else the first: of groups, the one with the most time.
pub(crate) fn selected(scene: &Scene<'_>) -> Option<KernelId> {
    let snap = scene.snap;
    let known = scene.ui.tables[KernelTable::PANE as usize].selected;
    let known = known.and_then(|key| row_of(snap, KernelId(u32::try_from(key).ok()?)));
    let first = || {
        table::sorted::<KernelTable>(scene)
            .first()
            .and_then(|row| source(row, scene))
    };
    let greatest = || snap.values.kernels.iter().max_by_key(|row| row.numbers.stat.total);
    known.or_else(first).or_else(greatest).map(|row| row.id)
}

/// The row of a kernel: they are in the order of their ids.
pub(crate) fn row_of(snap: &Snapshot, id: KernelId) -> Option<&KernelRow> {
    let rows = &snap.values.kernels;
    rows.binary_search_by_key(&id.0, |row| row.id.0)
        .ok()
        .map(|at| &rows[at])
}

/// The name in the form that is wanted.
pub(crate) fn name(snap: &Snapshot, id: KernelId, form: NameForm) -> String {
    match (snap.names.kernel(id), form) {
        (Some(name), NameForm::Short) => name.short.to_string(),
        (Some(name), NameForm::Full) => name.kernel.name.to_string(),
        (Some(name), NameForm::Mangled) => name.kernel.mangled.to_string(),
        (None, _) => format!("kernel {}", id.0),
    }
}

/// What a row is called, without its letter.
fn called(row: &Row, scene: &Scene<'_>, form: NameForm) -> String {
    let (snap, names) = (scene.snap, &scene.snap.names);
    match row.what {
        What::Kernel(at) => name(snap, snap.values.kernels[at].id, form),
        What::Stream(Some(stream)) => {
            let place = snap.values.places.iter().find(|place| place.stream == Some(stream));
            let gpu = place.map_or_else(String::new, |place| names.agent_label(place.agent));
            format!("{gpu} {}", names.stream_label(stream))
        }
        What::Stream(None) => "(stream not known)".into(),
        What::Agent(agent) => names.agent_label(agent),
        What::Process(process) => names
            .process(process)
            .map_or_else(|| "?".into(), |process| format!("{} {}", process.pid, process.command)),
        What::Marker(Some(at)) => snap.values.markers[at].pattern.to_string(),
        What::Marker(None) => "(in no range)".into(),
    }
}

/// Letter and name.
pub(crate) fn title(row: &Row, scene: &Scene<'_>) -> String {
    let letter = source(row, scene).map(|kernel| kernel.letter.unwrap_or('~'));
    let name = called(row, scene, NameForm::Short);
    letter.map_or_else(|| name.clone(), |letter| format!("{letter} {name}"))
}

fn label(row: &Row, scene: &Scene<'_>, width: usize) -> String {
    let letter = source(row, scene).and_then(|kernel| kernel.letter).unwrap_or(' ');
    let letter = if row.internal { '~' } else { letter };
    let name = called(row, scene, scene.ui.prefs.names);
    let known = source(row, scene).and_then(|kernel| scene.snap.names.kernel(kernel.id));
    let keep = known
        .filter(|_| scene.ui.prefs.names == NameForm::Short)
        .map_or(0, |known| known.common);
    let room = width.saturating_sub(2);
    let is_parted = known.is_some() && scene.ui.prefs.names != NameForm::Mangled;
    let parts = is_parted.then(|| units::elide_parts(&name, room, visible(scene).into_iter()));
    let parts = parts.flatten();
    let text = parts.unwrap_or_else(|| units::elide_around(&name, room, keep as usize));
    format!("{letter} {text}")
}

/// Names of the kernels that are on screen, or nearly.
fn visible<'a>(scene: &Scene<'a>) -> Vec<&'a str> {
    let rows = table::sorted::<KernelTable>(scene);
    let from = scene.ui.tables[KernelTable::PANE as usize].first_row();
    let near = rows.iter().skip(from).take(usize::from(scene.ui.size.1));
    let known = near.filter_map(|row| scene.snap.names.kernel(source(row, scene)?.id));
    known.map(|name| &*name.short).collect()
}

/// The columns of what code objects say.
const CODE: [ColumnId; 4] = [
    ColumnId("Spills"),
    ColumnId("Occupancy_Share"),
    ColumnId("Limit"),
    ColumnId("Fill_Share"),
];

/// What the latest launch of a kernel can have.
fn occupancy(row: &Row, scene: &Scene<'_>) -> Option<Occupancy> {
    source(row, scene)?.occupancy(scene.snap)
}

/// The columns of counters.
const COUNTERS: [ColumnId; 8] = [
    ColumnId("Counter_1"),
    ColumnId("Counter_2"),
    ColumnId("Counter_3"),
    ColumnId("Counter_4"),
    ColumnId("Counter_5"),
    ColumnId("Counter_6"),
    ColumnId("Counter_7"),
    ColumnId("Counter_8"),
];

/// What was counted, by the number of its column.
fn amount(row: &Row, scene: &Scene<'_>, number: usize) -> Option<f64> {
    let name = *kernel_counters::columns(scene.snap).get(number)?;
    kernel_counters::value(scene.snap, whole(row, scene)?, name)
}

/// A column whose heading is a counter's name; absent when there is none.
macro_rules! counter {
    ($number:literal) => {
        Column {
            title: COUNTERS[$number].0,
            name: COUNTERS[$number].0,
            width: 10,
            rank: 1,
            worth: |row, scene| Worth::number(amount(row, scene, $number)),
            text: Shown::Own(|row, scene, _| counters::amount(amount(row, scene, $number))),
        }
    };
}

impl HasSite for Row {
    fn site(&self, scene: &Scene<'_>) -> Option<String> {
        let kernel = source(self, scene)?;
        let work = SiteWork::Kernel(kernel.id);
        if is_partial(self, scene) {
            return sites::main_of_passing(scene, Kind::Kernels, &[work], kernel.numbers.stat.calls);
        }
        sites::main_of(scene.snap, work)
    }
}

impl Table for KernelTable {
    type Row = Row;
    const PANE: Pane = Pane::Kernels;
    const TITLE: &'static str = "Kernels";
    const WHAT: &'static str = "kernel";
    const SORT: ColumnId = ColumnId("Total_ns");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "  KERNEL",
            name: "Kernel_Name",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(called(row, scene, NameForm::Full)),
            text: Shown::Own(label),
        },
        Column {
            title: "CALLS",
            name: "Calls",
            width: 8,
            rank: 1,
            worth: |row, _| Worth::whole(row.stat.calls),
            text: Shown::Own(|row, _, _| launches::count_text(&row.stat, row.is_estimate)),
        },
        Column::times("TOTAL", "Total_ns", 0, |row, _| Worth::whole(row.stat.total)),
        Column {
            title: "%",
            name: "Share",
            width: 5,
            rank: 1,
            worth: |row, scene| Worth::Number(share(row, scene)),
            text: Shown::Share,
        },
        Column::average(2),
        Column::minimum(7),
        Column::p50(5),
        Column::p95(6),
        Column::p99(3),
        Column::maximum(4),
        Column::deviation(8),
        Column::times("QDLY", "Queue_Delay_ns", 6, |row, scene| {
            Worth::maybe(whole(row, scene).and_then(delay))
        }),
        counter!(0),
        counter!(1),
        counter!(2),
        counter!(3),
        counter!(4),
        counter!(5),
        counter!(6),
        counter!(7),
        Column {
            title: "SPILL",
            name: CODE[0].0,
            width: 6,
            rank: 8,
            worth: |row, scene| {
                let spills = source(row, scene).and_then(|kernel| kernel.code(scene.snap)?.spills());
                Worth::maybe(spills.map(u64::from))
            },
            text: Shown::Plain,
        },
        Column {
            title: "OCC%",
            name: CODE[1].0,
            width: 5,
            rank: 8,
            worth: |row, scene| Worth::number(occupancy(row, scene).map(|found| found.share())),
            text: Shown::Share,
        },
        Column {
            title: "LIMIT   ",
            name: CODE[2].0,
            width: 8,
            rank: 9,
            worth: |row, scene| Worth::text(occupancy(row, scene).map(|found| found.limiter.word())),
            text: Shown::Left,
        },
        Column {
            title: "FILL%",
            name: CODE[3].0,
            width: 5,
            rank: 8,
            worth: |row, scene| Worth::number(occupancy(row, scene).and_then(|found| Some(found.fill()?.0))),
            text: Shown::Share,
        },
        Column {
            title: "TIME, 20 s",
            name: "Time_last_second_ns",
            width: 20,
            rank: 9,
            worth: |row, scene| Worth::maybe(trend(row, scene, 1).first().copied()),
            text: Shown::Own(|row, scene, width| chart::trailing(&trend(row, scene, 20), width)),
        },
        sites::column(3),
        Column {
            title: "≈",
            name: "Is_estimate",
            width: FILES_ONLY,
            rank: 10,
            worth: |row, _| Worth::whole(u64::from(row.is_estimate)),
            text: Shown::Plain,
        },
    ];

    fn heading(scene: &Scene<'_>, column: ColumnId) -> Heading {
        if column == ColumnId("Is_estimate") && !launches::may_estimate(scene, Kind::Kernels) {
            return Heading::Absent;
        }
        if sites::is_absent(scene, column) || CODE.contains(&column) && !scene.snap.names.has_code() {
            return Heading::Absent;
        }
        match COUNTERS.iter().position(|counter| *counter == column) {
            None => Heading::Usual,
            Some(number) => match kernel_counters::columns(scene.snap).get(number) {
                Some(name) => Heading::Text((*name).to_string()),
                None => Heading::Absent,
            },
        }
    }

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        match scene.ui.prefs.grouping {
            Grouping::Name => kernel_rows::by_name(scene),
            Grouping::Marker => kernel_rows::by_marker(scene),
            _ => kernel_rows::by_place(scene),
        }
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.kernels.len()
    }

    fn matches(scene: &Scene<'_>) -> String {
        let (rows, values) = (table::sorted::<Self>(scene), &scene.snap.values);
        let time: u64 = rows.iter().map(|row| row.stat.total).sum();
        let share = time as f64 / values.totals.kernel_time.max(1) as f64;
        let (rows, all) = (rows.len(), values.kernels.len());
        let sign = estimated(scene);
        format!("{sign}{rows} of {all} kernels · {} % of time", units::percent(share))
    }

    fn basis(scene: &Scene<'_>) -> Option<Basis> {
        // Percentiles of groups come from the lanes.
        let is_plain = scene.ui.prefs.grouping == Grouping::Name;
        is_plain.then(|| Basis::of_kernels(scene, scene.ui.tables[Self::PANE as usize].sort))
    }

    fn key(row: &Row) -> u64 {
        match row.what {
            // A kernel's row stands where its id stands: rows are made in the order of the ids.
            What::Kernel(_) => row.key,
            What::Stream(stream) => 1 << 32 | stream.map_or(u64::from(u32::MAX), |stream| u64::from(stream.0)),
            What::Agent(agent) => 2 << 32 | u64::from(agent.0),
            What::Process(process) => 3 << 32 | u64::from(process.0),
            What::Marker(_) => 4 << 32 | row.key,
        }
    }

    fn role(row: &Row, _: &Scene<'_>) -> Role {
        if row.internal { Role::Internal } else { Role::Text }
    }

    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        let last = match row.what {
            What::Kernel(at) => {
                let last = jump::last_of_kernel(scene.snap, scene.snap.values.kernels[at].id);
                last.map(|(key, slice)| Target::Slice(key, slice.span.begin))
            }
            What::Marker(Some(at)) => Some(Target::Row(
                Tab::Markers,
                Pane::Markers,
                u64::from(scene.snap.values.markers[at].id),
            )),
            What::Agent(agent) => Some(Target::Row(Tab::Devices, Pane::Devices, u64::from(agent.0))),
            What::Process(process) => Some(Target::Row(Tab::Processes, Pane::Processes, u64::from(process.0))),
            What::Stream(Some(stream)) => {
                let own = |lane: &&Arc<Lane>| matches!(lane.key, LaneKey::Stream(_, id) if id == stream);
                let lanes = scene.snap.lanes.iter().filter(own);
                let last = lanes.filter_map(|lane| Some((lane.key, lane.neighbour(Nanos::MAX, false)?.span.begin)));
                let last = last.max_by_key(|found| found.1);
                last.map(|(key, begin)| Target::Slice(key, begin))
            }
            _ => None,
        };
        last.unwrap_or(Target::Nowhere("no dispatch of it is kept in full any more"))
    }

    fn term(row: &Row, scene: &Scene<'_>) -> Option<String> {
        let names = &scene.snap.names;
        match row.what {
            What::Kernel(_) => Some(format!("\"{}\"", called(row, scene, NameForm::Short).replace('"', ""))),
            What::Stream(stream) => Some(format!("stream={}", names.stream(stream?)?.number)),
            What::Agent(agent) => Some(format!("dev={}", names.agent(agent)?.number)),
            What::Process(process) => Some(format!("pid={}", names.process(process)?.pid)),
            What::Marker(_) => None,
        }
    }
}

/// A sign in front of what rests on estimates.
fn estimated(scene: &Scene<'_>) -> &'static str {
    let rows = table::sorted::<KernelTable>(scene);
    if rows.iter().any(|row| row.is_estimate) {
        "≈ "
    } else {
        ""
    }
}

/// Draws the table of kernels in a box, with at most the columns of `rank`.
pub(crate) fn panel(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, rank: u8) -> Option<Row> {
    let all = KernelTable::all(scene);
    let rows = table::sorted::<KernelTable>(scene).len();
    let bound = if scene.snap.values.totals.lost.is_any() {
        "≥ after loss   "
    } else {
        ""
    };
    let count = match scene.ui.prefs.grouping {
        Grouping::Name if rows == all => format!("{bound}{}", units::counted(all as u64, "kernel", "kernels")),
        Grouping::Name => {
            let relation = launches::relation(scene, Kind::Kernels);
            let relation = relation.map_or_else(String::new, |words| format!(" {words}"));
            let all = units::counted(all as u64, "kernel", "kernels");
            format!("{bound}{}{rows} of {all}{relation}", estimated(scene))
        }
        Grouping::Marker => format!("{bound}by marker; a range within another counts for both"),
        other => format!(
            "{bound}by {}, {}   percentiles: of the last {} of each lane",
            other.heading(),
            units::counted(rows as u64, "row", "rows"),
            units::grouped(kernel_rows::LOOKED_AT as u64)
        ),
    };
    table::panel::<KernelTable>(canvas, area, scene, Some(count), rank)
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let least = match size {
        Size::Large => 12.max(area.height / 3).min(20),
        _ => 8,
    };
    let rows = table::sorted::<KernelTable>(scene).len();
    let (list, detail) = match rows {
        0 => (area, None),
        _ if size < Size::Medium => (area, None),
        rows => list_and_detail(area, rows, least),
    };
    let row = panel(canvas, list, scene, u8::MAX);
    if let Some((detail, row)) = detail.zip(row) {
        kernel_detail::draw(canvas, detail, scene, &row);
    }
}
