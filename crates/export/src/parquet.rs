//! Parquet files, one per kind of record, in folders by kind, host and rank (Hive partitioning), so that DuckDB, Polars
//! or Spark read thousands of processes as one table.
//!
//! Columns are in base units; names are those of the CSV files. Rows are sorted by end.

mod file;

use self::file::{Batch, Column, begin, each, number, real, text};
use super::operation;
use super::options::LIBRARIES;
use super::records::{Mark, Row};
use super::sort::{Entry, Sorted};
use super::view::View;
use crate::error::Result;
use roctop_trace::item::{Allocation, ApiCall, Copy, Dispatch, Scratch};
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

/// Writes a file at a path.
type Fill<'a> = Box<dyn Fn(&Path) -> Result<()> + 'a>;

/// A table of one process: path and writer.
pub(super) struct Table<'a> {
    /// Path below the common folder.
    pub(super) path: PathBuf,
    /// Writes the file.
    pub(super) fill: Fill<'a>,
}

/// Non-empty tables of a process. `name` is the name of their files.
pub(super) fn tables<'a>(view: &'a View<'a>, name: &str) -> Vec<Table<'a>> {
    let rows = &view.rows;
    let mut all = vec![
        of_rows("hip_api", &rows.hip, |path| calls(view, &rows.hip, path)),
        of_rows("hsa_api", &rows.hsa, |path| calls(view, &rows.hsa, path)),
    ];
    for (library, own) in LIBRARIES.iter().zip(&rows.libraries) {
        all.push(of_rows(library.list, own, |path| calls(view, own, path)));
    }
    all.extend([
        of_rows("marker_api", &rows.markers, |path| {
            each(CALLS, &rows.markers, path, &mut |row, to| marker(view, row, to))
        }),
        of_rows("kernel_dispatch", &rows.dispatches, |path| {
            each(DISPATCHES, &rows.dispatches, path, &mut |row, to| {
                dispatch(view, row, to);
            })
        }),
        of_rows("memory_copy", &rows.copies, |path| {
            each(COPIES, &rows.copies, path, &mut |row, to| copy(view, row, to))
        }),
        of_rows("memory_allocation", &rows.allocations, |path| {
            each(ALLOCATIONS, &rows.allocations, path, &mut |row, to| {
                allocation(view, row, to);
            })
        }),
        of_rows("scratch_memory", &rows.scratches, |path| {
            each(SCRATCHES, &rows.scratches, path, &mut |row, to| scratch(view, row, to))
        }),
    ]);
    if !view.counted.is_empty() {
        let fill: Fill<'a> = Box::new(|path| counted(view, path));
        all.push(Some(("counter_collection", fill)));
    }
    if view.incomplete().next().is_some() {
        let fill: Fill<'a> = Box::new(|path| incomplete(view, path));
        all.push(Some(("incomplete", fill)));
    }
    let table = |(kind, fill): (&str, Fill<'a>)| Table {
        path: folder(view, kind).join(format!("{name}.parquet")),
        fill,
    };
    all.into_iter().flatten().map(table).collect()
}

/// A table of a kind; `None` without rows.
fn of_rows<'a, T>(
    kind: &'static str,
    rows: &Sorted<Row<T>>,
    fill: impl Fn(&Path) -> Result<()> + 'a,
) -> Option<(&'static str, Fill<'a>)>
where
    Row<T>: Entry,
{
    (!rows.is_empty()).then(|| (kind, Box::new(fill) as Fill<'a>))
}

/// Folders of a kind of record.
fn folder(view: &View<'_>, kind: &str) -> PathBuf {
    // Hive's name of an unknown partition.
    let rank = view
        .process
        .rank
        .map_or_else(|| "__HIVE_DEFAULT_PARTITION__".to_owned(), |rank| rank.to_string());
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
    Path::new(&format!("kind={kind}"))
        .join(format!("host={host}"))
        .join(format!("rank={rank}"))
}

/// Writes a row per dispatch and counter.
fn counted(view: &View<'_>, path: &Path) -> Result<()> {
    let mut file = begin(COUNTED, path)?;
    let mut to = Batch::new(COUNTED);
    for found in view.counted.rows(&view.rows.dispatches) {
        let found = found?;
        let (row, d) = (&found.row, &found.row.record);
        let kernel = view.kernel_name(row);
        for (info, value) in view.counted.values(&found) {
            to.text(&info.name).real(value).text(&kernel);
            to.number(view.process.pid).number(view.tid(d.thread));
            to.text(&view.agent(Some(d.agent)));
            to.number(d.dispatch_id).number(d.kernel.0 + 1).number(row.id);
            to.number(d.span.begin).number(d.span.end);
            to.end(&mut file)?;
        }
    }
    to.flush(&mut file)?;
    file.close()?;
    Ok(())
}

/// Writes a row per report of unrecorded work.
fn incomplete(view: &View<'_>, path: &Path) -> Result<()> {
    let mut file = begin(INCOMPLETE, path)?;
    let mut to = Batch::new(INCOMPLETE);
    for reason in view.incomplete() {
        to.number(view.process.pid).text(reason);
        to.end(&mut file)?;
    }
    to.flush(&mut file)?;
    file.close()?;
    Ok(())
}

fn calls(view: &View<'_>, rows: &Sorted<Row<ApiCall>>, path: &Path) -> Result<()> {
    each(CALLS, rows, path, &mut |row, to| {
        let call = &row.record;
        to.text(view.domain(call)).text(view.function(call));
        to.number(view.process.pid).number(view.tid(Some(call.thread)));
        to.number(row.id).number(row.ancestor);
        to.number(call.span.begin).number(call.span.end);
    })
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
