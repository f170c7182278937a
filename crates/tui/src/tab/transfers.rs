//! The last copies, one by one.

use roctop_ring::record::direction;

use super::sites::{self, HasSite};
use crate::Pane;
use crate::jump::{self, Target};
use crate::launches;
use crate::relation::Kind;
use crate::widgets::column::{Column, ColumnId, Heading, Shown, Worth};
use crate::widgets::table::{Scene, Table};
use roctop_model::table::Route;
use roctop_model::{LaneKey, Slice};
use roctop_trace::item::{OperationId, StreamId};
use roctop_trace::units;

/// Copies looked at, and shown, of each direction.
const SEARCHED_COPIES: usize = 5000;
const MAX_COPIES: usize = 200;

/// A copy.
#[derive(Clone)]
pub(crate) struct Row(pub(crate) LaneKey, pub(crate) Slice);

pub(crate) struct TransferTable;

fn route(row: &Row, scene: &Scene<'_>) -> Route {
    let copies = scene.snap.values.copies.get(row.1.what as usize);
    copies.map(|copies| copies.route).unwrap_or_default()
}

/// Bytes a second.
fn rate(row: &Row) -> Option<f64> {
    let nanos = row.1.span.duration();
    (nanos > 0).then(|| row.1.value as f64 * 1e9 / nanos as f64)
}

fn stream(row: &Row, scene: &Scene<'_>) -> String {
    let known = (row.1.queue != u32::MAX).then_some(StreamId(row.1.queue));
    known.map_or_else(|| units::MISSING.into(), |stream| scene.snap.names.stream_label(stream))
}

fn call(row: &Row, scene: &Scene<'_>) -> String {
    let related = jump::related(scene.snap, row.0, row.1.span.begin);
    let call = related.into_iter().find(|(key, _)| matches!(key, LaneKey::Api(..)));
    let name = call.and_then(|(_, call)| scene.snap.names.operation(OperationId(call.what)));
    name.map_or_else(String::new, |name| name.operation.name.to_string())
}

impl HasSite for Row {
    fn site(&self, scene: &Scene<'_>) -> Option<String> {
        sites::of_slice(scene.snap, &self.1)
    }
}

impl Table for TransferTable {
    type Row = Row;
    const PANE: Pane = Pane::Transfers;
    const TITLE: &'static str = "Recent";
    const WHAT: &'static str = "copy";
    const SORT: ColumnId = ColumnId("Begin_ns");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "WHEN",
            name: "Begin_ns",
            width: 13,
            rank: 0,
            worth: |row, _| Worth::whole(row.1.span.begin),
            text: Shown::Moment,
        },
        Column {
            title: "DIR ",
            name: "Direction",
            width: 4,
            rank: 0,
            worth: |row, scene| Worth::Text(direction::name(route(row, scene).direction).into()),
            text: Shown::Left,
        },
        Column {
            title: "ROUTE",
            name: "Route",
            width: 0,
            rank: 1,
            worth: |row, scene| {
                let route = route(row, scene);
                Worth::Text(scene.snap.names.route_label(route.source, route.destination))
            },
            text: Shown::Plain,
        },
        Column {
            title: "BYTES",
            name: "Bytes",
            width: 9,
            rank: 0,
            worth: |row, _| Worth::whole(row.1.value),
            text: Shown::Bytes,
        },
        Column {
            title: "TIME",
            name: "Duration_ns",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::whole(row.1.span.duration()),
            text: Shown::Duration,
        },
        Column {
            title: "SPEED",
            name: "Speed_Bps",
            width: 9,
            rank: 0,
            worth: |row, _| Worth::number(rate(row)),
            text: Shown::Speed,
        },
        Column {
            title: "STREAM",
            name: "Stream",
            width: 8,
            rank: 2,
            worth: |row, scene| Worth::Text(stream(row, scene)),
            text: Shown::Plain,
        },
        Column {
            title: "CALL ",
            name: "Function",
            width: 20,
            rank: 3,
            worth: |row, scene| Worth::Text(call(row, scene)),
            text: Shown::Left,
        },
        sites::column(4),
    ];

    fn heading(scene: &Scene<'_>, column: ColumnId) -> Heading {
        sites::heading(scene, column)
    }

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let snap = scene.snap;
        let related = launches::known(scene, Kind::Copies);
        // The list is as old as the numbers above it: moved down with every frame, it would be sent whole ten times a second.
        let until = if snap.is_running() { snap.values.at } else { u64::MAX };
        let mut rows = Vec::new();
        for lane in snap.lanes.iter().filter(|lane| matches!(lane.key, LaneKey::Copies(_))) {
            let listed = |slice: &&Slice| {
                slice.span.end <= until && launches::is_listed(scene, related.as_deref(), (lane.key, slice))
            };
            let passing = lane.recent(SEARCHED_COPIES).filter(listed);
            rows.extend(passing.take(MAX_COPIES).map(|slice| Row(lane.key, *slice)));
        }
        rows
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.totals.copies as usize
    }

    fn least(_: u16) -> u16 {
        11
    }

    fn key(row: &Row) -> u64 {
        row.1.span.begin ^ u64::from(row.1.what) << 58
    }

    fn target(row: &Row, _: &Scene<'_>) -> Target {
        Target::Slice(row.0, row.1.span.begin)
    }
}
