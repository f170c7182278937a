//! Markers: ranges and marks by text.

use ratatui::layout::Rect;

use super::{wall, why_empty};
use crate::format;
use crate::model::table::MarkerStat;
use crate::ui::Size;
use crate::ui::part::canvas::Canvas;
use crate::ui::part::table::{self, Column, Look, Scene, Table, Worth};
use crate::ui::subject::MarkerSubject;

/// A pattern of texts: its place in the snapshot.
pub(crate) struct Row(usize);

pub(crate) struct MarkerTable;

fn source<'a>(row: &Row, scene: &Scene<'a>) -> &'a MarkerStat {
    &scene.snap.values.markers[row.0]
}

fn text(row: &Row, scene: &Scene<'_>) -> String {
    let numbers = source(row, scene);
    if numbers.differs {
        numbers.pattern.to_string()
    } else {
        scene.snap.names.text(numbers.text).to_string()
    }
}

macro_rules! times {
    ($title:literal, $name:literal, $rank:literal, $value:expr) => {
        Column {
            title: $title,
            name: $name,
            width: 8,
            rank: $rank,
            worth: |row, scene| Worth::maybe(($value)(source(row, scene))),
            text: |row, scene, _| format::maybe(($value)(source(row, scene))),
        }
    };
}

impl Table for MarkerTable {
    type Row = Row;
    const SORT: usize = 2;
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "MARKER",
            name: "Marker",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(text(row, scene)),
            text: |row, scene, _| text(row, scene),
        },
        Column {
            title: "COUNT",
            name: "Count",
            width: 8,
            rank: 0,
            worth: |row, scene| Worth::whole(source(row, scene).stat.calls),
            text: |row, scene, _| format::count(source(row, scene).stat.calls),
        },
        times!("TOTAL", "Total_ns", 0, |row: &MarkerStat| (row.stat.timed > 0)
            .then_some(row.stat.total)),
        Column {
            title: "%WALL",
            name: "Share_of_wall",
            width: 6,
            rank: 2,
            worth: |row, scene| Worth::Number(source(row, scene).stat.total as f64 / wall(scene.snap) as f64),
            text: |row, scene, _| format::percent(source(row, scene).stat.total as f64 / wall(scene.snap) as f64),
        },
        times!("AVG", "Average_ns", 1, |row: &MarkerStat| row.stat.average()),
        times!("MIN", "Min_ns", 3, |row: &MarkerStat| (row.stat.timed > 0)
            .then_some(row.stat.min)),
        times!("P50", "P50_ns", 4, |row: &MarkerStat| row.stat.quantiles.p50),
        times!("P99", "P99_ns", 4, |row: &MarkerStat| row.stat.quantiles.p99),
        times!("MAX", "Max_ns", 2, |row: &MarkerStat| (row.stat.timed > 0)
            .then_some(row.stat.max)),
        Column {
            title: "THREAD",
            name: "Thread",
            width: 14,
            rank: 5,
            worth: |row, scene| Worth::Text(scene.snap.names.thread_label(source(row, scene).thread)),
            text: |row, scene, _| scene.snap.names.thread_label(source(row, scene).thread),
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let all = scene.snap.values.markers.iter().enumerate();
        let names = &scene.snap.names;
        all.filter(|(_, row)| scene.ui.filter.accepts(&MarkerSubject(names, row)))
            .map(|(at, _)| Row(at))
            .collect()
    }

    fn key(row: &Row) -> u64 {
        row.0 as u64
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, _: Size) {
    let state = scene.ui.table();
    let rows = table::sorted::<MarkerTable>(scene, state);
    let all = scene.snap.values.markers.len();
    let inner = canvas.frame(area, "ROC-TX ranges and marks", "# stands for digits that differ");
    if rows.is_empty() {
        let mut lines = why_empty(scene, "ROC-TX marker", all);
        if all == 0 {
            lines.push("programs set them with roctxRangePush, roctxRangePop, roctxMark".into());
        }
        return canvas.empty(inner, &lines);
    }
    let look = Look {
        sort: state.sort,
        selected: state.selected,
        offset: Some(&state.offset),
        rank: u8::MAX,
    };
    table::draw::<MarkerTable>(canvas, inner, scene, &rows, &look);
}
