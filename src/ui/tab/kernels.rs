//! Kernels: a table, and the selected one in detail.

use ratatui::layout::Rect;

use super::why_empty;
use crate::format;
use crate::item::KernelId;
use crate::model::Snapshot;
use crate::model::snapshot::KernelRow;
use crate::model::stat::Stat;
use crate::ui::part::canvas::{Canvas, left, top};
use crate::ui::part::chart;
use crate::ui::part::table::{self, Column, Look, Scene, Table, Worth};
use crate::ui::subject::KernelSubject;
use crate::ui::theme::Role;
use crate::ui::{NameForm, Size};

/// A kernel that passes the filter: its place in the snapshot, and the numbers of the places that pass.
pub(crate) struct Row {
    pub(crate) at: usize,
    pub(crate) stat: Stat,
    pub(crate) key: KernelId,
    internal: bool,
}

pub(crate) struct KernelTable;

fn source<'a>(row: &Row, scene: &Scene<'a>) -> &'a KernelRow {
    &scene.snap.values.kernels[row.at]
}

fn delay(row: &KernelRow) -> Option<u64> {
    row.numbers.delay.checked_div(row.numbers.delayed)
}

fn share(row: &Row, scene: &Scene<'_>) -> f64 {
    row.stat.total as f64 / scene.snap.values.totals.kernel_time.max(1) as f64
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

fn label(row: &Row, scene: &Scene<'_>, width: usize) -> String {
    let letter = source(row, scene).letter.unwrap_or(' ');
    let letter = if row.internal { '~' } else { letter };
    format!(
        "{letter} {}",
        format::elide(&name(scene.snap, row.key, scene.ui.names), width.saturating_sub(2))
    )
}

const fn time(title: &'static str, name: &'static str, rank: u8, worth: fn(&Row, &Scene<'_>) -> Worth) -> Column<Row> {
    Column {
        title,
        name,
        width: 8,
        rank,
        worth,
        text: |_, _, _| String::new(),
    }
}

/// A column of times whose text is made from its worth.
macro_rules! times {
    ($title:literal, $name:literal, $rank:literal, $worth:expr) => {
        Column {
            text: |row, scene, _| match ($worth)(row, scene) {
                Worth::Number(value) => format::duration(value as u64),
                _ => format::MISSING.into(),
            },
            ..time($title, $name, $rank, $worth)
        }
    };
}

impl Table for KernelTable {
    type Row = Row;
    const SORT: usize = 2;
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "  KERNEL",
            name: "Kernel_Name",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(name(scene.snap, row.key, NameForm::Full)),
            text: label,
        },
        Column {
            title: "CALLS",
            name: "Calls",
            width: 8,
            rank: 1,
            worth: |row, _| Worth::whole(row.stat.calls),
            text: |row, _, _| format::count(row.stat.calls),
        },
        times!("TOTAL", "Total_ns", 0, |row: &Row, _: &Scene<'_>| Worth::whole(
            row.stat.total
        )),
        Column {
            title: "%",
            name: "Share",
            width: 5,
            rank: 1,
            worth: |row, scene| Worth::Number(share(row, scene)),
            text: |row, scene, _| format::percent(share(row, scene)),
        },
        times!("AVG", "Average_ns", 2, |row: &Row, _: &Scene<'_>| Worth::maybe(
            row.stat.average()
        )),
        times!("MIN", "Min_ns", 7, |row: &Row, _: &Scene<'_>| Worth::maybe(
            (row.stat.timed > 0).then_some(row.stat.min)
        )),
        times!("P50", "P50_ns", 5, |row: &Row, _: &Scene<'_>| Worth::maybe(
            row.stat.quantiles.p50
        )),
        times!("P95", "P95_ns", 6, |row: &Row, _: &Scene<'_>| Worth::maybe(
            row.stat.quantiles.p95
        )),
        times!("P99", "P99_ns", 3, |row: &Row, _: &Scene<'_>| Worth::maybe(
            row.stat.quantiles.p99
        )),
        times!("MAX", "Max_ns", 4, |row: &Row, _: &Scene<'_>| Worth::maybe(
            (row.stat.timed > 0).then_some(row.stat.max)
        )),
        times!("STDDEV", "StdDev_ns", 8, |row: &Row, _: &Scene<'_>| Worth::maybe(
            row.stat.deviation()
        )),
        times!(
            "QDLY",
            "Queue_Delay_ns",
            6,
            |row: &Row, scene: &Scene<'_>| Worth::maybe(delay(source(row, scene)))
        ),
        Column {
            title: "TIME, 20 s",
            name: "Time_last_second_ns",
            width: 20,
            rank: 9,
            worth: |row, scene| {
                Worth::whole(
                    source(row, scene)
                        .numbers
                        .trend
                        .last(scene.snap.values.at, 1)
                        .first()
                        .copied()
                        .unwrap_or(0),
                )
            },
            text: |row, scene, width| {
                chart::trailing(&source(row, scene).numbers.trend.last(scene.snap.values.at, 20), width)
            },
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let (snap, filter) = (scene.snap, &scene.ui.filter);
        let whole = snap.values.totals.kernel_time;
        let rows = snap.values.kernels.iter().enumerate().filter_map(|(at, row)| {
            let internal = snap.names.is_internal(row.id);
            let stat = if filter.is_empty() {
                row.numbers.stat.clone()
            } else {
                Snapshot::within(row, |cell| {
                    filter.accepts(&KernelSubject {
                        names: &snap.names,
                        id: row.id,
                        place: snap.values.places.get(cell.place as usize).copied(),
                        here: &cell.sum,
                        row: &row.numbers.stat,
                        shape: &row.numbers.shape,
                        delay: delay(row),
                        whole,
                    })
                })?
            };
            Some(Row {
                at,
                stat,
                key: row.id,
                internal,
            })
        });
        rows.collect()
    }

    fn key(row: &Row) -> u64 {
        u64::from(row.key.0)
    }

    fn role(row: &Row, _: &Scene<'_>) -> Role {
        if row.internal { Role::Internal } else { Role::Text }
    }
}

/// Draws the table of kernels in a box, with at most the columns of `rank`.
pub(crate) fn panel(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, rank: u8) -> Option<Row> {
    let state = scene.ui.table();
    let rows = table::sorted::<KernelTable>(scene, state);
    let all = scene.snap.values.kernels.len();
    let count = if rows.len() == all {
        format!("{all} kernels")
    } else {
        format!("{} of {all} kernels", rows.len())
    };
    let inner = canvas.frame(area, "Kernels", &count);
    if rows.is_empty() {
        canvas.empty(inner, &why_empty(scene, "kernel", all));
        return None;
    }
    let look = Look {
        sort: state.sort,
        selected: state.selected,
        offset: Some(&state.offset),
        rank,
    };
    table::draw::<KernelTable>(canvas, inner, scene, &rows, &look);
    let at = state
        .selected
        .and_then(|key| rows.iter().position(|row| KernelTable::key(row) == key))
        .unwrap_or(0);
    rows.into_iter().nth(at)
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let detail_rows = match size {
        Size::Large => 12.max(area.height / 3).min(20),
        Size::Medium => 8,
        _ => 0,
    };
    let (upper, lower) = top(area, area.height.saturating_sub(detail_rows));
    let Some(row) = panel(canvas, upper, scene, u8::MAX) else {
        if detail_rows > 0 {
            canvas.frame(lower, "Detail", "");
        }
        return;
    };
    if detail_rows > 0 {
        detail(canvas, lower, scene, &row, size);
    }
}

fn facts(scene: &Scene<'_>, row: &Row) -> [String; 2] {
    let numbers = &source(row, scene).numbers;
    let (grid, wg) = (numbers.shape.grid, numbers.shape.workgroup);
    let shapes = if numbers.shapes > 1 { " (not always)" } else { "" };
    let registers = scene.snap.names.kernel(row.key).and_then(|name| name.kernel.registers);
    let registers = registers.map_or_else(
        || "VGPR –  SGPR –".to_string(),
        |r| format!("VGPR {}  AGPR {}  SGPR {}", r.vgpr, r.agpr, r.sgpr),
    );
    let first = format!(
        "grid {}×{}×{}  wg {}×{}×{}{shapes}  LDS {}  {registers}  scratch {}",
        grid[0],
        grid[1],
        grid[2],
        wg[0],
        wg[1],
        wg[2],
        format::bytes(u64::from(numbers.shape.group_size)),
        format::bytes(u64::from(numbers.shape.private_size)),
    );
    let second = format!(
        "calls {}  avg {} ± {}  queue delay {}{}",
        format::grouped(row.stat.calls),
        format::maybe(row.stat.average()),
        format::maybe(row.stat.deviation()),
        format::maybe(delay(source(row, scene))),
        if row.internal {
            "   one of the run-time's own kernels"
        } else {
            ""
        },
    );
    [first, second]
}

fn detail(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row, size: Size) {
    let title = format!(
        "{} {}",
        source(row, scene).letter.unwrap_or('~'),
        name(scene.snap, row.key, NameForm::Short)
    );
    let inner = canvas.frame(area, &title, "t name form   enter last dispatch   H histogram");
    let room = inner.width.saturating_sub(2) as usize;
    let mut y = inner.y;
    if size == Size::Large {
        let full = name(
            scene.snap,
            row.key,
            if scene.ui.names == NameForm::Short {
                NameForm::Full
            } else {
                scene.ui.names
            },
        );
        for part in wrap(&full, room).iter().take(2) {
            canvas.say(inner.x + 1, y, part, inner.width - 2, Role::Muted);
            y += 1;
        }
    }
    for text in facts(scene, row) {
        canvas.say(inner.x + 1, y, &format::fit(&text, room), inner.width - 2, Role::Text);
        y += 1;
    }
    if size == Size::Large {
        y += 1;
    }
    let rest = Rect {
        y,
        height: inner.bottom().saturating_sub(y),
        ..inner
    };
    let (one, two) = left(
        rest,
        if size == Size::Large {
            rest.width / 2
        } else {
            rest.width * 3 / 5
        },
    );
    histogram(canvas, one, scene, row);
    places(canvas, two, scene, row);
}

/// A long text in lines of so many columns.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(columns.max(1)).map(|part| part.iter().collect()).collect()
}

fn histogram(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    if area.height < 2 {
        return;
    }
    let stat = &row.stat;
    let kind = if scene.ui.logarithmic { "log" } else { "linear" };
    canvas.say(
        area.x + 1,
        area.y,
        &format!("duration ({kind})"),
        area.width,
        Role::Head,
    );
    let bins = stat.bins(area.height as usize - 1, scene.ui.logarithmic);
    if bins.is_empty() {
        let why = if stat.is_full() {
            "no times"
        } else {
            "no histogram for this choice of places"
        };
        canvas.say(area.x + 1, area.y + 1, why, area.width, Role::Muted);
        return;
    }
    let most = bins.iter().map(|bin| bin.1).max().unwrap_or(1).max(1);
    let room = area.width.saturating_sub(30) as usize;
    let quantiles = [
        ("p50", stat.quantiles.p50),
        ("p95", stat.quantiles.p95),
        ("p99", stat.quantiles.p99),
    ];
    for (i, &(edge, count)) in bins.iter().enumerate() {
        let y = area.y + 1 + i as u16;
        let next = bins.get(i + 1).map_or(u64::MAX, |bin| bin.0);
        canvas.right(area.x + 9, y, &format::duration(edge), Role::Muted);
        let bar = chart::bar(count as f64 / most as f64, room);
        let x = canvas.say(area.x + 10, y, &bar, room as u16, Role::GaugeMid);
        let here: Vec<&str> = quantiles
            .iter()
            .filter(|q| q.1.is_some_and(|at| at >= edge && at < next))
            .map(|q| q.0)
            .collect();
        if count > 0 {
            let share = format::percent(count as f64 / stat.timed.max(1) as f64);
            let text = format!(" {share} % {}", here.join(" "));
            canvas.say(x, y, &text, area.right().saturating_sub(x), Role::Muted);
        }
    }
}

fn places(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    if area.height < 2 {
        return;
    }
    let names = &scene.snap.names;
    canvas.say(area.x + 1, area.y, "where, by total", area.width, Role::Head);
    let mut cells: Vec<_> = source(row, scene).numbers.cells.iter().collect();
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.sum.total));
    for (i, cell) in cells.iter().take(area.height as usize - 1).enumerate() {
        let Some(place) = scene.snap.values.places.get(cell.place as usize) else {
            let text = format!("elsewhere {}×", format::count(cell.sum.calls));
            canvas.say(
                area.x + 1,
                area.y + 1 + i as u16,
                &text,
                area.width.saturating_sub(2),
                Role::Muted,
            );
            continue;
        };
        let stream = place
            .stream
            .map_or_else(|| format::MISSING.into(), |stream| names.stream_label(stream));
        if area.width < 60 {
            let text = format!(
                "{:<5} {} {:>7}× {:>8}",
                names.agent_label(place.agent),
                format::fit(&stream, 6),
                format::count(cell.sum.calls),
                format::maybe(cell.sum.average()),
            );
            canvas.say(
                area.x + 1,
                area.y + 1 + i as u16,
                &text,
                area.width.saturating_sub(2),
                Role::Text,
            );
            continue;
        }
        let text = format!(
            "{:<6} {:<5} {:<4} {:>8} calls {:>8} avg {:>8} total",
            names.agent_label(place.agent),
            stream,
            names.queue_label(place.queue),
            format::count(cell.sum.calls),
            format::maybe(cell.sum.average()),
            format::duration(cell.sum.total),
        );
        canvas.say(
            area.x + 1,
            area.y + 1 + i as u16,
            &text,
            area.width.saturating_sub(2),
            Role::Text,
        );
    }
}
