//! Counters: a table of them and a chart of the selected one, or the kernels that it counted.

use ratatui::layout::Rect;

use super::counter_detail;
use super::roofline::{self, Roofline};

use crate::Pane;
use crate::Size;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::column::{Column, ColumnId, Shown, Worth};
use crate::widgets::table::{self, Scene, Table};
use roctop_model::gauges::CounterRow;
use roctop_model::query::{Field, Subject, Value};
use roctop_model::{Mode, Snapshot};
use roctop_trace::gauge::Scope;
use roctop_trace::units;

/// A counter: its place in the snapshot.
#[derive(Clone)]
pub(crate) struct Row(usize);

pub(crate) struct CounterTable;

fn source<'a>(row: &Row, scene: &Scene<'a>) -> &'a CounterRow {
    &scene.snap.values.gauges.counters[row.0]
}

/// A value in at most 8 columns, as `21`, `83.10` or `1.98 G`.
pub(crate) fn amount(value: Option<f64>) -> String {
    const LARGE: [(f64, char); 4] = [(1e15, 'P'), (1e12, 'T'), (1e9, 'G'), (1e6, 'M')];
    let Some(value) = value else {
        return units::MISSING.into();
    };
    let large = LARGE.iter().find(|large| value.abs() >= large.0);
    match (large, value.abs()) {
        (Some((factor, sign)), size) if size < 1e18 => {
            let scaled = value / factor;
            // Three digits, or all before the point.
            let decimals = match scaled.abs() {
                ..9.995 => 2,
                ..99.95 => 1,
                _ => 0,
            };
            format!("{scaled:.decimals$} {sign}")
        }
        (Some(_), _) => format!("{value:.1e}"),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        (_, 1e4..) => format!("{value:.0}"),
        (_, 100.0..) => format!("{value:.1}"),
        (_, 0.01..) => format!("{value:.2}"),
        _ => format!("{value:.1e}"),
    }
}

/// Name of the device that it counts on.
pub(super) fn device(row: &CounterRow, scene: &Scene<'_>) -> String {
    let Some(node) = row.counter.node else {
        return "all".into();
    };
    let names = &scene.snap.names;
    let mut agents = names.agents().iter();
    let agent = agents.find(|agent| names.node_of(agent) == node && !agent.name.is_empty());
    agent.map_or_else(|| format!("node {}", node.node), |agent| names.agent_label(agent.id))
}

const fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Device => "device",
        Scope::Dispatch => "dispatch",
    }
}

/// Whether they count now; none where they cannot be paused.
fn counting(snap: &Snapshot) -> Option<bool> {
    let running = snap.values.processes.iter().filter(|row| row.exit.is_none());
    running.filter_map(|row| row.counting).reduce(|one, other| one || other)
}

/// What a switch does now: true to let them rest. An error says why there is nothing to switch.
pub(crate) fn switched(snap: &Snapshot) -> Result<bool, &'static str> {
    if snap.mode == Mode::Replay {
        return Err("a recording has the counters that it has");
    }
    if !snap.is_running() {
        return Err("the program does not run");
    }
    if !snap.values.gauges.counters.iter().any(|row| row.counter.state.is_ok()) {
        return Err("nothing is counted; p picks counters and runs the program again");
    }
    counting(snap).ok_or("counters cannot be paused with rocprofiler-sdk before 1.0")
}

/// Whether all rest.
fn rests(snap: &Snapshot) -> bool {
    snap.is_running() && counting(snap) == Some(false)
}

/// What counting changes in the program. It does so while counters rest, too.
pub(crate) fn perturbs(snap: &Snapshot) -> Option<&str> {
    let mut counters = snap.values.gauges.counters.iter().map(|row| &row.counter);
    let found = counters.find(|counter| counter.state.is_ok() && !counter.perturbs.is_empty())?;
    Some(&found.perturbs)
}

pub(super) fn state(row: &CounterRow, snap: &Snapshot) -> String {
    match &row.counter.state {
        Ok(()) if rests(snap) => "off, a counts again".into(),
        Ok(()) if row.counter.perturbs.is_empty() => "on".into(),
        Ok(()) => format!("on ▲ {}", row.counter.perturbs),
        Err(why) => format!("off: {why}"),
    }
}

macro_rules! amounts {
    ($title:literal, $name:literal, $rank:literal, $value:expr) => {
        Column {
            title: $title,
            name: $name,
            width: 8,
            rank: $rank,
            worth: |row, scene| Worth::number(($value)(source(row, scene))),
            text: Shown::Own(|row, scene, _| amount(($value)(source(row, scene)))),
        }
    };
}

impl Table for CounterTable {
    type Row = Row;
    const PANE: Pane = Pane::Counters;
    const TITLE: &'static str = "Counters";
    const WHAT: &'static str = "counter";
    const SORT: ColumnId = ColumnId("Counter_Name");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "COUNTER",
            name: "Counter_Name",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(source(row, scene).counter.name.to_string()),
            text: Shown::Plain,
        },
        Column {
            title: "WHERE",
            name: "Device",
            width: 6,
            rank: 1,
            worth: |row, scene| Worth::Text(device(source(row, scene), scene)),
            text: Shown::Plain,
        },
        Column {
            title: "OVER",
            name: "Scope",
            width: 8,
            rank: 3,
            worth: |row, scene| Worth::Text(scope(source(row, scene).counter.scope).into()),
            text: Shown::Plain,
        },
        amounts!("NOW", "Value", 0, |row: &CounterRow| row.now.map(|now| now.1)),
        amounts!("AVG", "Average", 0, |row: &CounterRow| row.range.average()),
        amounts!("MIN", "Min", 4, |row: &CounterRow| (row.range.count > 0)
            .then_some(row.range.min)),
        amounts!("MAX", "Max", 2, |row: &CounterRow| (row.range.count > 0)
            .then_some(row.range.max)),
        Column {
            title: "UNIT",
            name: "Unit",
            width: 6,
            rank: 2,
            worth: |row, scene| Worth::Text(source(row, scene).counter.unit.to_string()),
            text: Shown::Plain,
        },
        Column {
            title: "VALUES",
            name: "Values",
            width: 8,
            rank: 6,
            worth: |row, scene| Worth::whole(source(row, scene).range.count),
            text: Shown::Count,
        },
        Column {
            title: "STATE ",
            name: "State",
            width: 22,
            rank: 1,
            worth: |row, scene| Worth::Text(state(source(row, scene), scene.snap)),
            text: Shown::Left,
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let all = scene.snap.values.gauges.counters.iter().enumerate();
        all.filter(|(_, row)| scene.ui.filter.accepts(&CounterSubject { row }))
            .map(|(at, _)| Row(at))
            .collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.gauges.counters.len()
    }

    fn hint(_: &Scene<'_>) -> Option<&'static str> {
        Some("No counters were asked for. p chooses some (runs the program again); roctop counters lists them.")
    }

    fn least(_: u16) -> u16 {
        16
    }

    fn key(row: &Row) -> u64 {
        row.0 as u64
    }

    fn role(row: &Row, scene: &Scene<'_>) -> Role {
        let row = source(row, scene);
        match row.counter.state {
            Ok(()) if rests(scene.snap) => Role::Muted,
            Ok(()) if row.counter.perturbs.is_empty() => Role::Text,
            Ok(()) => Role::Warn,
            Err(_) => Role::Muted,
        }
    }
}

struct CounterSubject<'a> {
    row: &'a CounterRow,
}

impl Subject for CounterSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&self.row.counter.name)
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Calls => Value::whole(self.row.range.count),
            Field::Avg => self.row.range.average().map_or(Value::None, Value::Number),
            _ => Value::None,
        }
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let all = scene.snap.values.gauges.counters.len();
    let selected = table::selected::<CounterTable>(scene);
    let chart_rows = if size < Size::Medium || selected.is_none() {
        0
    } else {
        area.height / 2
    };
    let (upper, lower) = top(area, chart_rows);
    if let Some(row) = selected.filter(|_| chart_rows > 0) {
        let row = source(&row, scene);
        match row.counter.scope {
            Scope::Device => counter_detail::last_minute(canvas, upper, scene, row),
            Scope::Dispatch => {
                let roofline = Roofline::of(scene.snap);
                let part = if roofline.points.is_empty() || upper.width < 80 {
                    upper
                } else {
                    let half = upper.width / 2;
                    let right = Rect {
                        x: upper.x + half,
                        width: upper.width - half,
                        ..upper
                    };
                    roofline::draw(canvas, right, &roofline);
                    Rect { width: half, ..upper }
                };
                counter_detail::kernels(canvas, part, scene, row);
            }
        }
    }
    let right = perturbs(scene.snap).map_or_else(
        || units::counted(all as u64, "counter", "counters"),
        |what| format!("▲ {what}"),
    );
    table::panel::<CounterTable>(canvas, lower, scene, Some(right), u8::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_model::{Fresh, Options, Store};
    use roctop_ring::record::status;
    use roctop_trace::gauge::Counter;
    use roctop_trace::item::{Exit, Item, ProcessId};
    use std::sync::Arc;

    #[test]
    fn values_have_three_digits_and_at_most_eight_columns() {
        let cases = [
            (0.0, "0"),
            (21.0, "21"),
            (83.1, "83.10"),
            (999_999.0, "999999"),
            (1e6, "1.00 M"),
            (9_996_000.0, "10.0 M"),
            (1_980_000_000.0, "1.98 G"),
            (-523e9, "-523 G"),
            (999.9e15, "1000 P"),
            (3e20, "3.0e20"),
            (0.004, "4.0e-3"),
            (123.456, "123.5"),
            (12_345.6, "12346"),
        ];
        for (value, text) in cases {
            assert_eq!(amount(Some(value)), text);
            assert!(text.len() <= 8);
        }
        assert_eq!(amount(None), units::MISSING);
    }

    #[test]
    fn counters_rest_where_their_collector_says_so() {
        let mut store = Store::new(Options::default());
        let status = |code| Item::Status {
            process: ProcessId(0),
            code,
            text: "".into(),
        };
        let now = |store: &mut Store| {
            let snap = store.snapshot(Fresh::All);
            (switched(&snap), rests(&snap))
        };
        let nothing = now(&mut store).0;
        assert!(nothing.is_err_and(|why| why.contains("p picks")));
        store.apply(&Item::Counter(Arc::new(Counter {
            state: Ok(()),
            perturbs: "SERIALIZED".into(),
            ..Counter::default()
        })));
        let (cannot, rests) = now(&mut store);
        assert!(!rests && cannot.is_err_and(|why| why.contains("before 1.0")));
        store.apply(&status(status::COUNTING));
        assert_eq!(now(&mut store), (Ok(true), false));
        store.apply(&status(status::RESTING));
        assert_eq!(now(&mut store), (Ok(false), true));
        store.apply(&status(status::COUNTING));
        assert_eq!(now(&mut store), (Ok(true), false));
        store.apply(&status(status::RESTING));
        store.apply(&Item::Ended {
            process: ProcessId(0),
            exit: Exit::Code(0),
            at: 1,
        });
        let (ended, rests) = now(&mut store);
        assert!(ended.is_err() && !rests, "{ended:?}");
    }
}
