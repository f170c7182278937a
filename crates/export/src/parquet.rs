//! Parquet files, one per kind of record, in folders by kind, host and rank (Hive partitioning), so that DuckDB, Polars
//! or Spark read thousands of processes as one table. From 64 ranks on, the ranks of a host share a file per kind.
//!
//! Columns are in base units; names are those of the CSV files. Rows are sorted by end, in a shared file within each rank.

mod file;
mod layout;
mod shared;

pub(super) use layout::Layouts;
pub(super) use shared::{SharedFiles, are_shared};

use self::file::{Batch, Column, Encode, Group, Ranks, Schema, Sheet, Writer, groups, number, real, text};
use super::files::{Begun, Files};
use super::operation;
use super::options::LIBRARIES;
use super::records::{Mark, Row};
use super::sort::{Entry, Sorted};
use super::steps::{self, Step};
use super::view::View;
use crate::error::{Error, Result};
use roctop_trace::item::{Allocation, ApiCall, Copy, Datatype, Dispatch, Process, Scratch};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

const CALLS: &[Column] = &[
    text("domain"),
    text("function"),
    number("pid"),
    number("tid"),
    number("correlation_id"),
    number("ancestor_id"),
    number("start_ns"),
    number("end_ns"),
];
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

/// Writes the tables of a process as separate files below `base`. `name` is the name of these files.
pub(super) fn write(view: &View<'_>, base: &Path, name: &str, files: &mut Files<'_>) -> Result<()> {
    let tables = tables(view);
    let mut write = |tables: &[Table<'_>]| write_tables(view, tables, base, name, files);
    // Steps are found while the other tables are written.
    let (steps, written) = view.place.both(|| steps::steps(view), || write(&tables));
    written?;
    let steps = steps?;
    step_table(view, &steps).map_or(Ok(()), |table| write(&[table]))
}

/// Writes tables one after another. Their row groups are encoded as one sequence: threads go on with the next table while the last
/// groups of one are encoded.
fn write_tables(view: &View<'_>, tables: &[Table<'_>], base: &Path, name: &str, files: &mut Files<'_>) -> Result<()> {
    let paths = tables.iter().map(|table| {
        let folder = base.join(folder(view, table.kind)).join(rank_folder(view.process));
        folder.join(format!("{name}.parquet"))
    });
    let paths: Vec<PathBuf> = paths.collect();
    let schemas = tables.iter().map(|table| Schema::new(table.columns, Ranks::InPath));
    let schemas = schemas.collect::<Result<Vec<_>>>()?;
    let groups = tables.iter().enumerate().flat_map(|(table, own)| match &own.rows {
        Rows::Groups(groups) => groups().into_iter().map(|group| (table, Some(group))).collect(),
        Rows::OneByOne(_) => vec![(table, None)],
    });
    let encoded = |(table, group): (usize, Option<Encode<'_>>)| -> Result<_> {
        let group = group.map(|encode| encode(&schemas[table])).transpose();
        Ok((table, group.map_err(Error::at("cannot write", &paths[table]))?))
    };
    let mut last: Option<(usize, Unfinished)> = None;
    let append = |(table, group): (usize, Option<Group>)| {
        let mut open = match last.take() {
            Some((known, open)) if known == table => open,
            before => {
                if let Some((_, before)) = before {
                    before.finish(files)?;
                }
                Unfinished::begin(&schemas[table], paths[table].clone(), files)?
            }
        };
        let written = match (group, &tables[table].rows) {
            (Some(group), _) => file::append(&mut open.writer, group),
            (None, Rows::OneByOne(fill)) => one_by_one(fill, &mut open.writer, &schemas[table]),
            (None, Rows::Groups(_)) => Ok(()),
        };
        written.map_err(open.begun.failed())?;
        last = Some((table, open));
        Ok(())
    };
    view.place.in_order(groups, encoded, append)?;
    last.map_or(Ok(()), |(_, file)| file.finish(files))
}

/// A file being written.
struct Unfinished {
    begun: Begun,
    writer: Writer,
}

impl Unfinished {
    fn begin(schema: &Schema, path: PathBuf, files: &Files<'_>) -> Result<Self> {
        let begun = files.begin(path)?;
        let out = File::create(begun.beside()).map_err(Error::from);
        let writer = out.and_then(|out| schema.begin(Box::new(BufWriter::with_capacity(1 << 18, out))));
        let writer = writer.map_err(begun.failed())?;
        Ok(Self { begun, writer })
    }

    fn finish(self, files: &mut Files<'_>) -> Result<()> {
        let closed = self.writer.close().map_err(Error::from);
        closed.map_err(self.begun.failed())?;
        files.complete(&self.begun)
    }
}

fn one_by_one(fill: &Fill<'_>, file: &mut Writer, schema: &Schema) -> Result<()> {
    let mut sheet = Sheet::new(file, schema);
    fill(&mut sheet)?;
    sheet.finish()
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
        all.push(of_rows(library.list, CALLS, own, |row, to| call(view, row, to)));
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

/// Folder of a process's rank.
pub(super) fn rank_folder(process: &Process) -> String {
    // Hive's name of an unknown partition.
    let unknown = || "__HIVE_DEFAULT_PARTITION__".to_owned();
    let rank = process.rank.map_or_else(unknown, |rank| rank.to_string());
    format!("rank={rank}")
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
}

fn marker(view: &View<'_>, row: &Row<Mark>, to: &mut Batch) {
    let m = &row.record;
    to.text(view.marker_domain(m)).text(&view.message(m));
    to.number(view.process.pid).number(view.tid(Some(m.thread)));
    to.number(row.id).number(row.ancestor);
    to.number(m.span.begin).number(m.span.end);
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
