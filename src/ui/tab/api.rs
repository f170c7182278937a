//! API calls: by operation, by thread, the last ones.

use ratatui::layout::Rect;

use super::{wall, why_empty};
use crate::format;
use crate::item::OperationId;
use crate::model::snapshot::ApiRow;
use crate::model::{LaneKey, Slice};
use crate::ui::Size;
use crate::ui::part::canvas::{Canvas, left, top};
use crate::ui::part::chart;
use crate::ui::part::table::{self, Column, Look, Scene, Table, Worth};
use crate::ui::subject::{ApiSubject, SliceSubject, domain};
use crate::ui::theme::Role;

/// An operation: its place in the snapshot.
pub(crate) struct Row(usize);

pub(crate) struct ApiTable;

fn source<'a>(row: &Row, scene: &Scene<'a>) -> &'a ApiRow {
    &scene.snap.values.api[row.0]
}

/// Name of an operation.
pub(crate) fn name<'a>(scene: &Scene<'a>, id: OperationId) -> &'a str {
    scene.snap.names.operation(id).map_or("?", |name| &name.operation.name)
}

fn blocks(row: &Row, scene: &Scene<'_>) -> bool {
    scene
        .snap
        .names
        .operation(source(row, scene).id)
        .is_some_and(|name| name.blocks)
}

fn share(row: &Row, scene: &Scene<'_>) -> f64 {
    source(row, scene).stat.total as f64 / wall(scene.snap) as f64
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

impl Table for ApiTable {
    type Row = Row;
    const SORT: usize = 3;
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "API",
            name: "Function",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(name(scene, source(row, scene).id).into()),
            text: |row, scene, _| name(scene, source(row, scene).id).into(),
        },
        Column {
            title: "DOMAIN",
            name: "Domain",
            width: 8,
            rank: 7,
            worth: |row, scene| {
                domain(&scene.snap.names, source(row, scene).id).map_or(Worth::None, |d| Worth::Text(d.into()))
            },
            text: |row, scene, _| domain(&scene.snap.names, source(row, scene).id).unwrap_or("?").into(),
        },
        Column {
            title: "CALLS",
            name: "Calls",
            width: 8,
            rank: 1,
            worth: |row, scene| Worth::whole(source(row, scene).stat.calls),
            text: |row, scene, _| format::count(source(row, scene).stat.calls),
        },
        times!("TOTAL", "Total_ns", 0, |row: &ApiRow| Some(row.stat.total)),
        Column {
            title: "%WALL",
            name: "Share_of_wall",
            width: 6,
            rank: 2,
            worth: |row, scene| Worth::Number(share(row, scene)),
            text: |row, scene, _| format::percent(share(row, scene)),
        },
        times!("AVG", "Average_ns", 2, |row: &ApiRow| row.stat.average()),
        times!("P50", "P50_ns", 6, |row: &ApiRow| row.stat.quantiles.p50),
        times!("P99", "P99_ns", 3, |row: &ApiRow| row.stat.quantiles.p99),
        times!("MAX", "Max_ns", 5, |row: &ApiRow| (row.stat.timed > 0)
            .then_some(row.stat.max)),
        Column {
            title: "ERR",
            name: "Errors",
            width: 6,
            rank: 4,
            worth: |row, scene| Worth::whole(source(row, scene).errors),
            text: |row, scene, _| match source(row, scene).errors {
                0 => "0".into(),
                errors => format!("{} ▲", format::count(errors)),
            },
        },
        Column {
            title: "WAITS",
            name: "Waits_for_GPU",
            width: 5,
            rank: 5,
            worth: |row, scene| Worth::whole(u64::from(blocks(row, scene))),
            text: |row, scene, _| {
                if blocks(row, scene) {
                    "sync".into()
                } else {
                    String::new()
                }
            },
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let (names, whole) = (&scene.snap.names, wall(scene.snap));
        let all = scene.snap.values.api.iter().enumerate();
        all.filter(|(_, row)| scene.ui.filter.accepts(&ApiSubject(names, row, whole)))
            .map(|(at, _)| Row(at))
            .collect()
    }

    fn least(width: u16) -> u16 {
        if width < 60 { width / 2 } else { (width * 2 / 5).min(40) }
    }

    fn key(row: &Row) -> u64 {
        row.0 as u64
    }

    fn role(row: &Row, scene: &Scene<'_>) -> Role {
        if source(row, scene).errors > 0 {
            Role::Warn
        } else {
            Role::Text
        }
    }
}

/// Draws the table in a box.
pub(crate) fn panel(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, alone: bool) {
    let state = if alone {
        scene.ui.table().clone()
    } else {
        crate::ui::TableState::default()
    };
    let rows = table::sorted::<ApiTable>(scene, &state);
    let all = scene.snap.values.api.len();
    let inner = canvas.frame(area, "API", &format!("{} operations", rows.len()));
    if rows.is_empty() {
        return canvas.empty(inner, &why_empty(scene, "API call", all));
    }
    let offset = alone.then_some(&scene.ui.table().offset);
    let look = Look {
        sort: state.sort,
        selected: state.selected,
        offset,
        rank: if alone { u8::MAX } else { 2 },
    };
    table::draw::<ApiTable>(canvas, inner, scene, &rows, &look);
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    if size < Size::Medium {
        return panel(canvas, area, scene, true);
    }
    let (upper, lower) = top(area, area.height * 2 / 5);
    panel(canvas, upper, scene, true);
    let (middle, recent_area) = top(lower, (lower.height / 3).clamp(5, 10));
    let (one, two) = left(middle, middle.width / 2);
    latency(canvas, one, scene);
    threads(canvas, two, scene);
    recent(canvas, recent_area, scene);
}

/// Of a launch: the call, the wait in the queue, the kernel, each on the average.
fn latency(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) {
    let inner = canvas.frame(area, "Launch latency", "averages");
    let values = &scene.snap.values;
    let launches = values.api.iter().filter(|row| name(scene, row.id).contains("Launch"));
    let (calls, time) = launches.fold((0, 0), |sum, row| (sum.0 + row.stat.calls, sum.1 + row.stat.total));
    let kernels = values.kernels.iter().map(|row| &row.numbers);
    let (delayed, delay) = kernels
        .clone()
        .fold((0, 0u64), |sum, k| (sum.0 + k.delayed, sum.1.saturating_add(k.delay)));
    let (timed, total) = kernels.fold((0, 0u64), |sum, k| {
        (sum.0 + k.stat.timed, sum.1.saturating_add(k.stat.total))
    });
    let parts = [
        ("call   ", u64::checked_div(time, calls), Role::ApiLaunch),
        ("queue  ", delay.checked_div(delayed), Role::GaugeLow),
        ("kernel ", total.checked_div(timed), Role::GaugeMid),
    ];
    let most = parts.iter().filter_map(|part| part.1).max().unwrap_or(0).max(1);
    let room = inner.width.saturating_sub(20) as usize;
    for (i, (word, value, role)) in parts.iter().enumerate().take(inner.height as usize) {
        let y = inner.y + i as u16;
        canvas.say(inner.x + 1, y, word, 8, Role::Text);
        canvas.right(inner.x + 17, y, &format::maybe(*value), Role::Text);
        let bar = chart::bar(value.unwrap_or(0) as f64 / most as f64, room);
        canvas.say(inner.x + 18, y, &bar, room as u16, *role);
    }
}

fn threads(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) {
    let inner = canvas.frame(area, "Threads", "% of wall");
    if inner.height == 0 {
        return;
    }
    let label = if inner.width < 50 { 12 } else { 22 };
    let head = format!("{:<label$}{:>7}{:>8}{:>9}", "THREAD", "IN API", "WAITING", "CALLS");
    canvas.say(inner.x + 1, inner.y, &head, inner.width.saturating_sub(1), Role::Head);
    let mut rows: Vec<_> = scene.snap.values.threads.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.numbers.total));
    let of_wall = |nanos: u64| format::percent(nanos as f64 / wall(scene.snap) as f64);
    for (i, row) in rows.iter().take(inner.height as usize - 1).enumerate() {
        let text = format!(
            "{}{:>7}{:>8}{:>9}",
            format::fit(&scene.snap.names.thread_label(row.id), label),
            of_wall(row.numbers.total),
            of_wall(row.numbers.blocked),
            format::count(row.numbers.calls),
        );
        canvas.say(
            inner.x + 1,
            inner.y + 1 + i as u16,
            &text,
            inner.width.saturating_sub(1),
            Role::Text,
        );
    }
}

fn recent(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) {
    let inner = canvas.frame(area, "Recent", "open calls first");
    let snap = scene.snap;
    let mut lines: Vec<(String, Role)> = Vec::new();
    for open in &snap.open {
        for call in &open.calls {
            let age = snap.now.saturating_sub(call.span.begin);
            let begin = call.span.begin.saturating_sub(snap.origin);
            let thread = snap.names.thread_label(call.thread);
            let name = name(scene, call.operation);
            lines.push((
                line(inner.width, begin, [&thread, name, &format::duration(age), "open"]),
                Role::Open,
            ));
        }
    }
    let lanes = snap.lanes.iter().filter(|lane| matches!(lane.key, LaneKey::Api(..)));
    let mut last: Vec<(LaneKey, Slice)> = lanes
        .flat_map(|lane| lane.recent(300).map(|slice| (lane.key, *slice)).collect::<Vec<_>>())
        .filter(|(key, slice)| scene.ui.filter.accepts(&SliceSubject { snap, key: *key, slice }))
        .collect();
    last.sort_by_key(|(_, slice)| std::cmp::Reverse(slice.span.end));
    let room = (inner.height as usize).saturating_sub(lines.len());
    lines.extend(
        last.iter()
            .take(room)
            .map(|(key, slice)| recent_line(scene, inner.width, *key, slice)),
    );
    for (i, (text, role)) in lines.iter().take(inner.height as usize).enumerate() {
        canvas.say(
            inner.x + 1,
            inner.y + i as u16,
            text,
            inner.width.saturating_sub(1),
            *role,
        );
    }
}

/// Begin, thread, name, duration and result of a call in so many columns.
fn line(width: u16, begin: u64, [thread, name, duration, result]: [&str; 4]) -> String {
    let thread_room = if width < 100 { 14 } else { 18 };
    let room = (width as usize).saturating_sub(thread_room + 36).clamp(10, 48);
    let (thread, name) = (
        format::fit(thread, thread_room),
        format::fit(&format::elide(name, room), room),
    );
    format!(
        "{:<14} {thread} {name} {duration:>8}  {result}",
        format::timestamp_short(begin)
    )
}

fn recent_line(scene: &Scene<'_>, width: u16, key: LaneKey, slice: &Slice) -> (String, Role) {
    let (snap, names) = (scene.snap, &scene.snap.names);
    let thread = crate::ui::subject::thread_of(key)
        .map(|thread| names.thread_label(thread))
        .unwrap_or_default();
    let failed = slice.shape != 0;
    let result = if failed {
        format!("error {} ▲", slice.value as u32 as i32)
    } else {
        "ok".into()
    };
    let name = name(scene, OperationId(slice.what));
    let begin = slice.span.begin.saturating_sub(snap.origin);
    let text = line(
        width,
        begin,
        [&thread, name, &format::duration(slice.span.duration()), &result],
    );
    (text, if failed { Role::Bad } else { Role::Text })
}
