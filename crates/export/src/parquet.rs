//! Parquet files in folders by kind of record and host (Hive partitioning), so that pandas, DuckDB, Polars or Spark read thousands of
//! processes as one table. The processes of a host share a file per kind; `rank` is a column, null without MPI.
//!
//! Columns are in base units; names are those of the CSV files. Rows are sorted by end within each process.

mod file;
mod shared;

pub(super) use shared::SharedFiles;

use self::file::{Batch, Column, Encode, Sheet, groups, known_number, number, real, text};
use super::mpi::details;
use super::operation;
use super::options::{Kind, LIBRARIES};
use super::records::{Mark, Row};
use super::sort::{Entry, Sorted};
use super::steps::Step;
use super::view::View;
use crate::error::Result;
use roctop_trace::item::{Allocation, ApiCall, Copy, Datatype, Dispatch, Scratch};
use std::path::{Path, PathBuf};

/// Columns, and further ones behind them: `N` together.
const fn followed<const N: usize>(first: &[Column], next: &[Column]) -> [Column; N] {
    let mut all = [first[0]; N];
    let mut at = 1;
    while at < N {
        all[at] = if at < first.len() {
            first[at]
        } else {
            next[at - first.len()]
        };
        at += 1;
    }
    all
}

const CALLS: &[Column] = &[
    text("domain"),
    text("function"),
    number("pid"),
    number("tid"),
    number("correlation_id"),
    number("ancestor_id"),
    number("start_ns"),
    number("end_ns"),
    text("site"),
    number("taken_along"),
];
/// What calls of MPI also have: the rank is a column of every file.
const OF_MPI: [Column; 5] = [
    text("communicator"),
    known_number("peer"),
    known_number("tag"),
    known_number("bytes"),
    known_number("wait_ns"),
];
const MPI_CALLS: &[Column] = &followed::<15>(CALLS, &OF_MPI);
const COLLECTIVES: &[Column] = &[
    text("operation"),
    number("communicator"),
    number("sequence"),
    number("communicator_rank"),
    number("ranks"),
    number("peer_plus_one"),
    number("elements"),
    text("datatype"),
    number("bytes"),
    number("pid"),
    number("tid"),
    number("call_ns"),
    number("start_ns"),
    number("end_ns"),
    number("wait_ns"),
    number("skew_ns"),
    number("clock_error_ns"),
    number("transfer_ns"),
    number("last_rank_plus_one"),
    real("algorithm_bandwidth"),
    real("bus_bandwidth"),
];
const STEPS: &[Column] = &[
    text("name"),
    number("step"),
    number("pid"),
    number("tid"),
    number("start_ns"),
    number("end_ns"),
    number("gpu_busy_ns"),
    number("kernels"),
    number("collectives"),
    number("collective_wait_ns"),
];
const INCOMPLETE: &[Column] = &[number("pid"), text("incomplete")];
const DISPATCHES: &[Column] = &[
    text("kernel"),
    number("pid"),
    number("tid"),
    text("agent"),
    number("queue"),
    number("stream"),
    number("dispatch_id"),
    number("kernel_id"),
    number("correlation_id"),
    number("ancestor_id"),
    number("start_ns"),
    number("end_ns"),
    number("lds_bytes"),
    number("scratch_bytes"),
    number("vgprs"),
    number("accum_vgprs"),
    number("sgprs"),
    number("workgroup_x"),
    number("workgroup_y"),
    number("workgroup_z"),
    number("grid_x"),
    number("grid_y"),
    number("grid_z"),
    text("site"),
    // Null where the code object or the architecture is not known.
    known_number("vgpr_spills"),
    known_number("sgpr_spills"),
    // Of a compute unit, or of a work-group processor where a work-group has both.
    known_number("waves_allowed"),
    known_number("wave_slots"),
    text("limiter"),
    known_number("work_groups"),
    known_number("work_groups_at_once"),
    known_number("rounds"),
];
const COPIES: &[Column] = &[
    text("direction"),
    number("pid"),
    number("tid"),
    number("stream"),
    text("source"),
    text("destination"),
    number("correlation_id"),
    number("ancestor_id"),
    number("start_ns"),
    number("end_ns"),
    number("bytes"),
    text("site"),
];
const ALLOCATIONS: &[Column] = &[
    text("operation"),
    number("pid"),
    number("tid"),
    text("agent"),
    number("correlation_id"),
    number("ancestor_id"),
    number("start_ns"),
    number("end_ns"),
    number("bytes"),
    number("address"),
    text("site"),
];
const SCRATCHES: &[Column] = &[
    text("operation"),
    number("pid"),
    number("tid"),
    text("agent"),
    number("queue"),
    number("flags"),
    number("correlation_id"),
    number("ancestor_id"),
    number("start_ns"),
    number("end_ns"),
    number("bytes"),
];

const COUNTED: &[Column] = &[
    text("counter"),
    real("value"),
    text("kernel"),
    number("pid"),
    number("tid"),
    text("agent"),
    number("dispatch_id"),
    number("kernel_id"),
    number("correlation_id"),
    number("start_ns"),
    number("end_ns"),
];

/// Puts rows into a file.
type Fill<'a> = dyn Fn(&mut Sheet<'_>) -> Result<()> + 'a;

/// The rows of a table.
enum Rows<'a> {
    /// In row groups, which threads encode.
    Groups(Box<dyn Fn() -> Vec<Encode<'a>> + 'a>),
    /// Put into a file one by one.
    OneByOne(Box<Fill<'a>>),
}

/// A table of one process.
struct Table<'a> {
    /// Name of the kind of its records.
    kind: &'static str,
    columns: &'static [Column],
    rows: Rows<'a>,
}

/// The table of steps; `None` without one.
fn step_table<'a>(view: &'a View<'a>, steps: &'a [Step]) -> Option<Table<'a>> {
    (!steps.is_empty()).then(|| Table {
        kind: "step",
        columns: STEPS,
        rows: Rows::OneByOne(Box::new(|to| numbered(view, steps, to))),
    })
}

/// Non-empty tables of a process, without the steps.
fn tables<'a>(view: &'a View<'a>) -> Vec<Table<'a>> {
    let rows = &view.rows;
    // The groups of dispatches and copies take longest: at the end, threads would wait for the last ones.
    let mut all = vec![
        of_rows("kernel_dispatch", DISPATCHES, &rows.dispatches, |row, to| {
            dispatch(view, row, to);
        }),
        of_rows("memory_copy", COPIES, &rows.copies, |row, to| copy(view, row, to)),
        of_rows("hip_api", CALLS, &rows.hip, |row, to| call(view, row, to)),
        of_rows("hsa_api", CALLS, &rows.hsa, |row, to| call(view, row, to)),
    ];
    for (library, own) in LIBRARIES.iter().zip(&rows.libraries) {
        all.push(if library.kind == Kind::Mpi {
            of_rows(library.list, MPI_CALLS, own, |row, to| mpi_call(view, row, to))
        } else {
            of_rows(library.list, CALLS, own, |row, to| call(view, row, to))
        });
    }
    all.extend([
        of_rows("marker_api", CALLS, &rows.markers, |row, to| marker(view, row, to)),
        of_rows("memory_allocation", ALLOCATIONS, &rows.allocations, |row, to| {
            allocation(view, row, to);
        }),
        of_rows("scratch_memory", SCRATCHES, &rows.scratches, |row, to| {
            scratch(view, row, to);
        }),
    ]);
    if !view.counted.is_empty() {
        all.push(Some(Table {
            kind: "counter_collection",
            columns: COUNTED,
            rows: Rows::OneByOne(Box::new(|to| counted(view, to))),
        }));
    }
    if !view.parts.is_empty() {
        all.push(Some(Table {
            kind: "collective",
            columns: COLLECTIVES,
            rows: Rows::OneByOne(Box::new(|to| collectives(view, to))),
        }));
    }
    if view.incomplete().next().is_some() {
        all.push(Some(Table {
            kind: "incomplete",
            columns: INCOMPLETE,
            rows: Rows::OneByOne(Box::new(|to| incomplete(view, to))),
        }));
    }
    all.into_iter().flatten().collect()
}

/// A table of a kind; `None` without rows.
fn of_rows<'a, T: Clone>(
    kind: &'static str,
    columns: &'static [Column],
    rows: &'a Sorted<Row<T>>,
    cells: impl Fn(&Row<T>, &mut Batch) + std::marker::Copy + Send + 'a,
) -> Option<Table<'a>>
where
    Row<T>: Entry,
{
    let groups = move || groups(rows, cells);
    (!rows.is_empty()).then(|| Table {
        kind,
        columns,
        rows: Rows::Groups(Box::new(groups)),
    })
}

/// The folder of all tables beside a process's other files.
pub(super) fn base(stem: &Path) -> PathBuf {
    stem.with_file_name("parquet")
}

/// Folders of a kind of record and of the process's host.
fn folder(view: &View<'_>, kind: &str) -> PathBuf {
    let host: String = view
        .process
        .host
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "-._".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    let host = if host.is_empty() { "unknown" } else { &host };
    Path::new(&format!("kind={kind}")).join(format!("host={host}"))
}

/// Writes a row per dispatch and counter.
fn counted(view: &View<'_>, to: &mut Sheet<'_>) -> Result<()> {
    for found in view.counted.rows(&view.rows.dispatches) {
        let found = found?;
        let (row, d) = (&found.row, &found.row.record);
        let kernel = view.kernel_name(row);
        for (info, value) in view.counted.values(&found) {
            to.row(|to| {
                to.text(&info.name).real(value).text(&kernel);
                to.number(view.process.pid).number(view.tid(d.thread));
                to.text(&view.agent(Some(d.agent)));
                to.number(d.dispatch_id).number(d.kernel.0 + 1).number(row.id);
                to.number(d.span.begin).number(d.span.end);
            })?;
        }
    }
    Ok(())
}

/// Writes a row per collective of this rank. A number that may be missing has 0, and else is one more.
fn collectives(view: &View<'_>, to: &mut Sheet<'_>) -> Result<()> {
    for row in view.parts.iter() {
        let row = row?;
        to.row(|to| {
            to.text(row.operation.name());
            to.number(row.communicator).number(row.sequence);
            to.number(row.rank).number(row.ranks);
            to.number(row.peer).number(row.count);
            to.text(Datatype(row.datatype).name().unwrap_or("?")).number(row.bytes);
            to.number(view.process.pid).number(view.tid(Some(row.thread)));
            to.number(row.call).number(row.arrival).number(row.end);
            to.number(row.wait).number(row.skew);
            to.number(row.error.min(i64::MAX as u64)).number(row.transfer);
            to.number(row.last).real(row.algorithm_bandwidth);
            to.real(row.bus_bandwidth);
        })?;
    }
    Ok(())
}

/// Writes a row per step, numbered from 1.
fn numbered(view: &View<'_>, steps: &[Step], to: &mut Sheet<'_>) -> Result<()> {
    (1u64..).zip(steps).try_for_each(|(number, step)| {
        to.row(|to| {
            to.text(&step.text).number(number);
            to.number(view.process.pid).number(view.tid(Some(step.thread)));
            to.number(step.span.begin).number(step.span.end);
            to.number(step.busy).number(step.kernels);
            to.number(step.collectives).number(step.wait);
        })
    })
}

/// Writes a row per report of unrecorded work.
fn incomplete(view: &View<'_>, to: &mut Sheet<'_>) -> Result<()> {
    view.incomplete().try_for_each(|reason| {
        to.row(|to| {
            to.number(view.process.pid).text(reason);
        })
    })
}

fn call(view: &View<'_>, row: &Row<ApiCall>, to: &mut Batch) {
    let call = &row.record;
    to.text(view.domain(call)).text(view.function(call));
    to.number(view.process.pid).number(view.tid(Some(call.thread)));
    to.number(row.id).number(row.ancestor);
    to.number(call.span.begin).number(call.span.end);
    to.text(view.site(call.process, call.site));
    to.number(view.is_along(call.span));
}

fn mpi_call(view: &View<'_>, row: &Row<ApiCall>, to: &mut Batch) {
    call(view, row, to);
    let found = details(view, &row.record);
    to.text(&found.communicator);
    to.known_number(found.peer)
        .known_number(found.tag)
        .known_number(found.bytes)
        .known_number(found.wait);
}

fn marker(view: &View<'_>, row: &Row<Mark>, to: &mut Batch) {
    let m = &row.record;
    to.text(view.marker_domain(m)).text(&view.message(m));
    to.number(view.process.pid).number(view.tid(Some(m.thread)));
    to.number(row.id).number(row.ancestor);
    to.number(m.span.begin).number(m.span.end);
    to.text("").number(view.is_along(m.span));
}

fn dispatch(view: &View<'_>, row: &Row<Dispatch>, to: &mut Batch) {
    let d = &row.record;
    let kernel = view.run.kernels.get(d.kernel.0 as usize);
    let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
    to.text(&view.kernel_name(row))
        .number(view.process.pid)
        .number(view.tid(d.thread));
    to.text(&view.agent(Some(d.agent)))
        .number(view.queue(d.queue))
        .number(view.stream(d.stream));
    to.number(d.dispatch_id).number(d.kernel.0 + 1);
    to.number(row.id).number(row.ancestor);
    to.number(d.span.begin).number(d.span.end);
    to.number(d.group_size).number(d.private_size);
    to.number(registers.vgpr).number(registers.agpr).number(registers.sgpr);
    d.workgroup.iter().for_each(|size| {
        to.number(*size);
    });
    d.grid.iter().for_each(|size| {
        to.number(*size);
    });
    to.text(view.site(d.process, d.site));
    let code = kernel.and_then(|kernel| kernel.code).unwrap_or_default();
    to.known_number(code.vgpr_spills.map(i64::from))
        .known_number(code.sgpr_spills.map(i64::from));
    let occupancy = view.occupancy(d);
    let waves = occupancy.map(|found| found.waves_of_unit());
    to.known_number(waves.map(|waves| waves.0.into()))
        .known_number(waves.map(|waves| waves.1.into()))
        .text(occupancy.map_or("", |found| found.limiter.word()));
    let rounds = occupancy.and_then(|found| Some((found, found.rounds()?)));
    to.known_number(rounds.map(|(found, _)| found.grid.cast_signed()))
        .known_number(rounds.map(|(found, _)| found.at_once().cast_signed()))
        .known_number(rounds.map(|(_, rounds)| rounds.cast_signed()));
}

fn copy(view: &View<'_>, row: &Row<Copy>, to: &mut Batch) {
    let c = &row.record;
    to.text(view.direction(c))
        .number(view.process.pid)
        .number(view.tid(c.thread));
    to.number(view.stream(c.stream));
    to.text(&view.agent(c.source)).text(&view.agent(c.destination));
    to.number(row.id).number(row.ancestor);
    to.number(c.span.begin).number(c.span.end).number(c.bytes);
    to.text(view.site(c.process, c.site));
}

fn allocation(view: &View<'_>, row: &Row<Allocation>, to: &mut Batch) {
    let a = &row.record;
    to.text(operation::name(&operation::ALLOCATIONS, a.operation));
    to.number(view.process.pid).number(view.tid(Some(a.thread)));
    to.text(&view.agent(a.agent));
    to.number(row.id).number(row.ancestor);
    to.number(a.span.begin).number(a.span.end);
    to.number(a.bytes).number(a.address);
    to.text(view.site(a.process, row.site));
}

fn scratch(view: &View<'_>, row: &Row<Scratch>, to: &mut Batch) {
    let s = &row.record;
    to.text(operation::name(&operation::SCRATCHES, s.operation));
    to.number(view.process.pid).number(view.tid(Some(s.thread)));
    to.text(&view.agent(s.agent));
    to.number(s.queue.map_or(0, |queue| view.queue(queue))).number(s.flags);
    to.number(row.id).number(row.ancestor);
    to.number(s.span.begin).number(s.span.end).number(s.bytes);
}
