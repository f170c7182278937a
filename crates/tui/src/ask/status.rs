//! Answers that no list of the screen has as they are: what failed, and the session as a whole.

use super::Asking;
use crate::Pane;
use crate::tab::processes;
use roctop_model::Snapshot;
use roctop_model::ask::{Cell, Id, Order, Row, Unit};
use roctop_model::report::mpi::{self, MpiShare};
use roctop_model::snapshot;
use roctop_trace::item::OperationId;
use roctop_trace::units;

/// Alerts that are notes of the status.
const MAX_ALERTS: usize = 10;

/// Functions that returned errors, with the last one.
pub(super) fn errors(asking: &mut Asking<'_>) {
    let at = asking.place(Pane::Operations, "Errors");
    let failed = |cells: &[Cell]| matches!(cells.get(at), Some(Cell::Number(errors)) if *errors > 0.0);
    let limit = asking.question.limit;
    let list = Pane::Operations.list();
    let (columns, mut rows, _) = list.answer(&asking.scene(), &[], usize::MAX);
    rows.retain(|row| failed(&row.cells));
    if asking.question.by.is_none() {
        let errors = |cells: &[Cell]| match cells.get(at) {
            Some(Cell::Number(errors)) => *errors as u64,
            _ => 0,
        };
        rows.sort_by_key(|row| std::cmp::Reverse(errors(&row.cells)));
    }
    asking.answer.count = rows.len();
    asking.answer.columns = columns;
    asking.order(Pane::Operations);
    if asking.question.by.is_none() {
        asking.answer.order = Some(Order {
            column: "Errors".into(),
            is_ascending: false,
        });
    }
    asking.column("Last_Error", Unit::Text, 1);
    asking.column("Last_Error_Code", Unit::Number, 5);
    let snap = asking.snap.clone();
    asking.answer.rows = rows
        .into_iter()
        .take(limit)
        .map(|row| {
            let id = OperationId(row.key as u32);
            let last = snap
                .values
                .api
                .iter()
                .find(|known| known.id == id)
                .map(|known| known.last_error);
            let mut cells = row.cells;
            cells.push(last.map_or(Cell::None, |code| Cell::Text(snap.names.error_label(id, code))));
            cells.push(last.map_or(Cell::None, |code| Cell::Number(f64::from(code))));
            Row {
                id: Some(Id::of_row(Pane::Operations.word(), &row.name.0, row.name.1)),
                cells,
            }
        })
        .collect();
}

/// Functions of MPI with what they do, their bytes and how their time is distributed; the share of each process's time.
pub(super) fn mpi(asking: &mut Asking<'_>) {
    let limit = asking.question.limit;
    let snap = asking.snap.clone();
    let functions = mpi::functions(&snap);
    let (columns, mut rows, _) = Pane::Operations.list().answer(&asking.scene(), &[], usize::MAX);
    rows.retain(|row| snap.names.is_mpi(OperationId(row.key as u32)));
    asking.answer.count = rows.len();
    asking.answer.columns = columns;
    asking.order(Pane::Operations);
    asking.column("Bytes", Unit::Bytes, 1);
    asking.column("Calls_with_Bytes", Unit::Count, 6);
    asking.column(mpi::AVERAGE_BYTES, Unit::Bytes, 4);
    asking.column("Kind", Unit::Text, 3);
    asking.column(mpi::MAX_OVER_MEAN, Unit::Number, 3);
    asking.answer.rows = rows
        .into_iter()
        .take(limit)
        .map(|row| {
            let id = OperationId(row.key as u32);
            let of = functions.iter().find(|known| known.row.id == id);
            let number = |value: Option<f64>| value.map_or(Cell::None, Cell::Number);
            let sized = of.filter(|of| of.row.sized > 0);
            let mut cells = row.cells;
            cells.push(number(sized.map(|of| of.row.bytes as f64)));
            cells.push(Cell::Number(of.map_or(0, |of| of.row.sized) as f64));
            cells.push(number(of.and_then(mpi::Function::mean_bytes).map(|bytes| bytes as f64)));
            cells.push(of.map_or(Cell::None, |of| Cell::Text(of.kind.word().into())));
            cells.push(number(of.and_then(|of| of.imbalance).map(|of| of.0)));
            Row {
                id: Some(Id::of_row(Pane::Operations.word(), &row.name.0, row.name.1)),
                cells,
            }
        })
        .collect();
    if functions.is_empty() {
        return;
    }
    asking.note(format!("of the time in MPI: {}", mpi::kinds_text(&functions)));
    let shares = mpi::shares(&snap);
    if let Some(text) = mpi::imbalance_text(&shares) {
        asking.note(format!("time in MPI, {text}"));
    }
    for MpiShare { label, share, .. } in shares.into_iter().take(MAX_ALERTS) {
        asking.note(format!("{label}: {:.1} % of the time in MPI", 100.0 * share));
    }
}

fn state(snap: &Snapshot) -> String {
    match (snap.ended, snap.values.processes.first()) {
        (Some(exit), _) => units::exit(exit),
        (None, Some(first)) => processes::state(first, snap.mode),
        (None, None) => "no process yet".into(),
    }
}

/// The session in one row; alerts and levels of timing as notes.
pub(super) fn status(asking: &mut Asking<'_>) {
    let snap = asking.snap.clone();
    let (values, totals) = (&snap.values, &snap.values.totals);
    let gpus = snap.gpus();
    let working: Vec<f64> = gpus
        .iter()
        .filter(|gpu| gpu.row.dispatches > 0)
        .map(|gpu| gpu.row.share)
        .collect();
    let busy = working.iter().sum::<f64>() / working.len().max(1) as f64;
    let level = snapshot::level(&values.processes).map_or(0, roctop_ring::level::Level::number);
    let alerts = &snap.analysis().alerts;
    let count = |value: u64| Cell::Number(value as f64);
    let cells = [
        ("State", Unit::Text, Cell::Text(state(&snap))),
        ("Elapsed_ns", Unit::Nanos, count(snap.elapsed())),
        ("Processes", Unit::Count, count(values.processes.len() as u64)),
        ("GPUs", Unit::Count, count(gpus.len() as u64)),
        (
            "Busy_Share",
            Unit::Share,
            if working.is_empty() {
                Cell::None
            } else {
                Cell::Number(busy)
            },
        ),
        (
            "Idle_ns",
            Unit::Nanos,
            match snap.analysis().whole.as_slice() {
                [] => Cell::None,
                rows => count(rows.iter().map(|row| row.idle).sum()),
            },
        ),
        ("Dispatches", Unit::Count, count(totals.dispatches)),
        ("Kernel_ns", Unit::Nanos, count(totals.kernel_time)),
        ("Copies", Unit::Count, count(totals.copies)),
        ("Calls", Unit::Count, count(totals.calls)),
        ("Markers", Unit::Count, count(totals.markers)),
        (
            "Lost",
            Unit::Count,
            match (totals.lost.records, totals.lost.is_least) {
                (0, true) => Cell::None,
                (records, _) => count(records),
            },
        ),
        ("Records_per_Second", Unit::PerSecond, Cell::Number(values.rate)),
        ("Alerts", Unit::Count, count(alerts.len() as u64)),
        ("Timing_Level", Unit::Number, count(level.into())),
    ];
    for (name, unit, _) in &cells {
        asking.column(name, *unit, 0);
    }
    asking.answer.rows = vec![Row {
        id: None,
        cells: cells.into_iter().map(|cell| cell.2).collect(),
    }];
    asking.answer.count = 1;
    for alert in alerts.iter().take(MAX_ALERTS) {
        asking.note(format!("{}: {}", alert.rule.word(), alert.text));
    }
    for row in &values.processes {
        let level = row.level.iter().map(|(_, text)| text);
        for text in level.chain(&row.incomplete) {
            asking.note(format!("process {}: {text}", row.process.pid));
        }
    }
    if let Some(missed) = &snap.missed {
        asking.note(missed.to_string());
    }
}
