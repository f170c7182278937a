//! API calls: by operation, by thread, the last ones.

use ratatui::layout::Rect;

use super::calls::{CallTable, ThreadTable};
use super::sites::{self, HasSite};
use super::wall;
use crate::Pane;
use crate::Size;
use crate::jump::{self, Target};
use crate::launches::{self, Passing};
use crate::relation::Kind;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, left, top};
use crate::widgets::chart;
use crate::widgets::column::{Column, ColumnId, FILES_ONLY, Heading, Shown, Worth};
use crate::widgets::stat_column::HasStat;
use crate::widgets::table::{self, Scene, Table};
use roctop_model::analysis::rules::launches;
use roctop_model::query::{Field, Filter, Launches};
use roctop_model::sites::SiteWork;
use roctop_model::snapshot::ApiRow;
use roctop_model::stats::Stat;
use roctop_model::subject::{ApiSubject, domain};
use roctop_trace::item::OperationId;
use roctop_trace::units;

/// An operation, and its place in the snapshot, which changes when others are called for the first time.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) at: usize,
    id: OperationId,
    /// Of the calls that pass the filter.
    pub(crate) stat: Stat,
    is_estimate: bool,
}

pub(crate) struct ApiTable;

impl HasStat for Row {
    fn stat<'a>(&'a self, _: &Scene<'a>) -> &'a Stat {
        &self.stat
    }
}

impl HasSite for Row {
    fn site(&self, scene: &Scene<'_>) -> Option<String> {
        let (work, calls) = (SiteWork::Call(self.id), source(self, scene).stat.calls);
        if self.stat.calls == calls && !self.is_estimate {
            return sites::main_of(scene.snap, work);
        }
        sites::main_of_passing(scene, Kind::Calls, &[work], calls)
    }
}

fn source<'a>(row: &Row, scene: &Scene<'a>) -> &'a ApiRow {
    &scene.snap.values.api[row.at]
}

/// Name of an operation.
pub(crate) fn name<'a>(scene: &Scene<'a>, id: OperationId) -> &'a str {
    scene.snap.names.operation(id).map_or("?", |name| &name.operation.name)
}

/// What to do when GPU work came from HSA alone: HSA calls are recorded on demand only.
pub(super) fn without_hip(scene: &Scene<'_>) -> Option<&'static str> {
    let totals = &scene.snap.values.totals;
    let is_busy = totals.dispatches > 0 || totals.internal > 0 || totals.copies > 0;
    (is_busy && !scene.snap.names.uses_hip())
        .then_some("the program uses HSA without HIP, as OpenCL does: --hsa-trace records HSA calls")
}

fn blocks(row: &Row, scene: &Scene<'_>) -> bool {
    scene.snap.names.blocks(source(row, scene).id)
}

/// Calls that failed; not known of a part of the calls.
fn errors(row: &Row, scene: &Scene<'_>) -> Option<u64> {
    let source = source(row, scene);
    (row.stat.calls == source.stat.calls || source.errors == 0).then_some(source.errors)
}

fn share(row: &Row, scene: &Scene<'_>) -> f64 {
    row.stat.total as f64 / wall(scene.snap) as f64
}

/// Of an operation, the calls that pass what the filter asks of each.
fn passing(scene: &Scene<'_>, source: &ApiRow, rest: &Filter) -> Option<Passing> {
    let counted = launches::of(scene, Kind::Calls).passing(source.id.0, &source.stat, |_| true);
    let is_exact = counted.as_ref().is_some_and(|counted| !counted.is_estimate);
    if !is_exact && rest.asks_only(|field| field == Field::Dur) {
        return launches::by_duration(&source.stat, rest).or(counted);
    }
    if !is_exact && rest.asks_only(|field| field == Field::Err) {
        return launches::by_failure(source, rest, counted);
    }
    counted
}

impl Table for ApiTable {
    type Row = Row;
    const PANE: Pane = Pane::Operations;
    const TITLE: &'static str = "API";
    const WHAT: &'static str = "API call";
    const SORT: ColumnId = ColumnId("Total_ns");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "API",
            name: "Function",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(name(scene, source(row, scene).id).into()),
            text: Shown::Plain,
        },
        Column {
            title: "DOMAIN",
            name: "Domain",
            width: 8,
            rank: 7,
            worth: |row, scene| Worth::text(domain(&scene.snap.names, source(row, scene).id)),
            text: Shown::Own(|row, scene, _| domain(&scene.snap.names, source(row, scene).id).unwrap_or("?").into()),
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
            title: "%WALL",
            name: "Share_of_wall",
            width: 6,
            rank: 2,
            worth: |row, scene| Worth::Number(share(row, scene)),
            text: Shown::Share,
        },
        Column::average(2),
        Column::p50(6),
        Column::p99(3),
        Column::maximum(5),
        Column {
            title: "ERR",
            name: "Errors",
            width: 6,
            rank: 4,
            worth: |row, scene| Worth::maybe(errors(row, scene)),
            text: Shown::Own(|row, scene, _| match errors(row, scene) {
                None => units::MISSING.into(),
                Some(0) => "0".into(),
                Some(errors) => format!("{} ▲", units::count(errors)),
            }),
        },
        Column {
            title: "WAITS",
            name: "Waits_for_GPU",
            width: 5,
            rank: 5,
            worth: |row, scene| Worth::whole(u64::from(blocks(row, scene))),
            text: Shown::Own(|row, scene, _| {
                if blocks(row, scene) {
                    "sync".into()
                } else {
                    String::new()
                }
            }),
        },
        sites::column(8),
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
        let is_exact = column == ColumnId("Is_estimate") && !launches::may_estimate(scene, Kind::Calls);
        if is_exact || sites::is_absent(scene, column) {
            Heading::Absent
        } else {
            Heading::Usual
        }
    }

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let all = scene.snap.values.api.iter().enumerate();
        let row = |at, source: &ApiRow, passing: Passing| Row {
            at,
            id: source.id,
            stat: passing.stat,
            is_estimate: passing.is_estimate,
        };
        let own = all.clone().filter_map(|(at, source)| {
            let passing = match scene.ui.filter.launches(&ApiSubject(scene.snap, source)) {
                Launches::None => return None,
                Launches::All => Passing::exact(source.stat.clone()),
                Launches::Some(rest) => passing(scene, source, &rest)?,
            };
            Some(row(at, source, passing))
        });
        let own: Vec<Row> = own.collect();
        let related = if own.is_empty() {
            launches::related(scene, Kind::Calls)
        } else {
            None
        };
        let Some(related) = related else { return own };
        let of = |source: &ApiRow| related.passing(source.id.0, &source.stat, |_| true);
        all.filter_map(|(at, source)| Some(row(at, source, of(source)?)))
            .collect()
    }

    fn hint(scene: &Scene<'_>) -> Option<&'static str> {
        without_hip(scene)
    }

    fn least(width: u16) -> u16 {
        if width < 60 { width / 2 } else { (width * 2 / 5).min(40) }
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.api.len()
    }

    fn key(row: &Row) -> u64 {
        u64::from(row.id.0)
    }

    /// To the last call of it.
    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        let last = jump::last_of_operation(scene.snap, source(row, scene).id);
        last.map_or(
            Target::Nowhere("no call of it is kept in full any more"),
            |(key, slice)| Target::Slice(key, slice.span.begin),
        )
    }

    fn term(row: &Row, scene: &Scene<'_>) -> Option<String> {
        Some(format!("\"{}\"", name(scene, source(row, scene).id)))
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
pub(crate) fn panel(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, rank: u8) {
    table::panel::<ApiTable>(canvas, area, scene, None, rank);
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    if size < Size::Medium {
        return panel(canvas, area, scene, u8::MAX);
    }
    let rows = table::sorted::<ApiTable>(scene).len() as u16;
    let (upper, lower) = top(area, rows.saturating_add(3).max(5).min(area.height * 2 / 5));
    panel(canvas, upper, scene, u8::MAX);
    let threads = scene.snap.values.threads.len() as u16;
    let (middle, recent_area) = top(lower, threads.saturating_add(3).clamp(6, 10).min(lower.height / 2));
    let (one, two) = left(middle, middle.width / 2);
    latency(canvas, one, scene);
    table::panel::<ThreadTable>(canvas, two, scene, Some("% of wall".into()), u8::MAX);
    table::panel::<CallTable>(canvas, recent_area, scene, Some("open calls first".into()), u8::MAX);
}

/// Of a launch: the call, the wait in the queue, the kernel, each on the average.
fn latency(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) {
    let values = &scene.snap.values;
    let launches = values.api.iter().filter(|row| launches(scene.snap, row.id));
    let (graphs, calls): (Vec<_>, Vec<_>) = launches.partition(|row| name(scene, row.id).contains("GraphLaunch"));
    let average = |rows: &[&ApiRow]| {
        let (calls, time) = rows.iter().fold((0, 0u64), |sum, row| {
            (sum.0 + row.stat.calls, sum.1.saturating_add(row.stat.total))
        });
        u64::checked_div(time, calls)
    };
    let right = if average(&graphs).is_some() {
        "averages; queue: kernels of graphs as well"
    } else {
        "averages"
    };
    let inner = canvas.frame(area, "Launch latency", right);
    let kernels = values.kernels.iter().map(|row| &row.numbers);
    let (delayed, delay) = kernels
        .clone()
        .fold((0, 0u64), |sum, k| (sum.0 + k.delayed, sum.1.saturating_add(k.delay)));
    let (timed, total) = kernels.fold((0, 0u64), |sum, k| {
        (sum.0 + k.stat.timed, sum.1.saturating_add(k.stat.total))
    });
    let parts = [
        ("call   ", average(&calls), Role::ApiLaunch),
        ("graph  ", average(&graphs), Role::ApiLaunch),
        ("queue  ", delay.checked_div(delayed), Role::GaugeLow),
        ("kernel ", total.checked_div(timed), Role::GaugeMid),
    ];
    let most = parts.iter().filter_map(|part| part.1).max().unwrap_or(0).max(1);
    let room = inner.width.saturating_sub(20) as usize;
    let shown = parts
        .iter()
        .filter(|(word, value, _)| value.is_some() || *word != "graph  ");
    for (i, (word, value, role)) in shown.enumerate().take(inner.height as usize) {
        let y = inner.y + i as u16;
        canvas.say(inner.x + 1, y, word, 8, Role::Text);
        canvas.right(inner.x + 17, y, &units::duration_or_missing(*value), Role::Text);
        let bar = chart::bar(value.unwrap_or(0) as f64 / most as f64, room);
        canvas.say(inner.x + 18, y, &bar, room as u16, *role);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ui;
    use roctop_model::{Fresh, Mode, Options, Store};
    use roctop_trace::item::{ApiCall, Item, Span};

    #[test]
    fn a_new_function_keeps_the_selection() {
        let mut store = Store::new(Options::default());
        let ui = Ui::new(Mode::Live);
        let call = |operation| {
            Item::Api(ApiCall {
                operation: OperationId(operation),
                span: Span {
                    begin: 1_000,
                    end: 2_000,
                },
                ..ApiCall::default()
            })
        };
        let mut keys = |operation| {
            store.apply(&call(operation));
            table::keys::<ApiTable>(&Scene {
                ui: &ui,
                snap: &store.snapshot(Fresh::All),
            })
        };
        assert_eq!(keys(5), [5]);
        assert_eq!(keys(2), [2, 5]);
    }
}
