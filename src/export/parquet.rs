//! Parquet files, one a kind of record, in folders by kind, host and rank (as Hive names them), so that DuckDB, Polars or
//! Spark read thousands of processes as one table.
//!
//! Columns are in base units; the words are those of the CSV files. Rows are in order of their ends.

use super::choice::LIBRARIES;
use super::operation;
use super::rows::{Mark, Row};
use super::sort::{Entry, Sorted};
use super::view::View;
use crate::item::{Allocation, ApiCall, Copy, Dispatch, Scratch};
use anyhow::Result;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a row group: what is held at once.
const ROWS: usize = 1 << 17;

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cells {
    Numbers,
    Texts,
    /// With a point.
    Reals,
}

/// A column: its name and cells.
type Column = (&'static str, Cells);

const fn number(name: &'static str) -> Column {
    (name, Cells::Numbers)
}
const fn text(name: &'static str) -> Column {
    (name, Cells::Texts)
}
const fn real(name: &'static str) -> Column {
    (name, Cells::Reals)
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
];
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

/// A table of one process: where its file goes, and what fills it.
pub(super) struct Table<'a> {
    /// Place below the folder of all.
    pub(super) path: PathBuf,
    /// Writes the file at a path.
    pub(super) fill: Fill<'a>,
}

/// The tables of a process that hold anything. `name` is that of their files.
pub(super) fn tables<'a>(view: &'a View<'a>, name: &str) -> Vec<Table<'a>> {
    let rows = &view.rows;
    let mut tables = Vec::new();
    let mut add = |kind: &str, is_empty: bool, fill: Fill<'a>| {
        if !is_empty {
            let path = folder(view, kind).join(format!("{name}.parquet"));
            tables.push(Table { path, fill });
        }
    };
    add(
        "hip_api",
        rows.hip.is_empty(),
        Box::new(|path| calls(view, &rows.hip, path)),
    );
    add(
        "hsa_api",
        rows.hsa.is_empty(),
        Box::new(|path| calls(view, &rows.hsa, path)),
    );
    for (library, calls_of) in LIBRARIES.iter().zip(&rows.libraries) {
        add(
            library.list,
            calls_of.is_empty(),
            Box::new(|path| calls(view, calls_of, path)),
        );
    }
    add(
        "marker_api",
        rows.markers.is_empty(),
        Box::new(|path| each(CALLS, &rows.markers, path, &mut |row, to| marker(view, row, to))),
    );
    add(
        "kernel_dispatch",
        rows.dispatches.is_empty(),
        Box::new(|path| {
            each(DISPATCHES, &rows.dispatches, path, &mut |row, to| {
                dispatch(view, row, to);
            })
        }),
    );
    add(
        "memory_copy",
        rows.copies.is_empty(),
        Box::new(|path| each(COPIES, &rows.copies, path, &mut |row, to| copy(view, row, to))),
    );
    add(
        "memory_allocation",
        rows.allocations.is_empty(),
        Box::new(|path| {
            each(ALLOCATIONS, &rows.allocations, path, &mut |row, to| {
                allocation(view, row, to);
            })
        }),
    );
    add(
        "scratch_memory",
        rows.scratches.is_empty(),
        Box::new(|path| each(SCRATCHES, &rows.scratches, path, &mut |row, to| scratch(view, row, to))),
    );
    add(
        "counter_collection",
        view.counted.is_empty(),
        Box::new(|path| counted(view, path)),
    );
    tables
}

fn folder(view: &View<'_>, kind: &str) -> PathBuf {
    // As Hive calls what is not known.
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

/// Rows of a row group, by column.
struct Batch {
    columns: &'static [Column],
    numbers: Vec<Vec<i64>>,
    reals: Vec<Vec<f64>>,
    texts: Vec<Vec<ByteArray>>,
    at: usize,
    rows: usize,
    known: HashMap<String, ByteArray>,
}

impl Batch {
    fn new(columns: &'static [Column]) -> Self {
        Self {
            columns,
            numbers: vec![Vec::new(); columns.len()],
            reals: vec![Vec::new(); columns.len()],
            texts: vec![Vec::new(); columns.len()],
            at: 0,
            rows: 0,
            known: HashMap::new(),
        }
    }

    fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.numbers[self.at].push(number.into() as i64);
        self.at += 1;
        self
    }

    fn real(&mut self, number: f64) -> &mut Self {
        self.reals[self.at].push(number);
        self.at += 1;
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        // Texts are few; where they are not, they are not kept.
        if self.known.len() > 1 << 16 {
            self.known.clear();
        }
        if !self.known.contains_key(text) {
            self.known.insert(text.to_owned(), ByteArray::from(text));
        }
        let known = self.known[text].clone();
        self.texts[self.at].push(known);
        self.at += 1;
        self
    }

    /// Ends a row; enough of them are written.
    fn end(&mut self, file: &mut Writer) -> Result<()> {
        debug_assert_eq!(self.at, self.columns.len(), "a cell for each column");
        self.at = 0;
        self.rows += 1;
        if self.rows == ROWS { self.flush(file) } else { Ok(()) }
    }

    /// Writes the rows as a row group.
    fn flush(&mut self, file: &mut Writer) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = file.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            match self.columns[at].1 {
                Cells::Texts => {
                    let texts = column.typed::<ByteArrayType>();
                    texts.write_batch(&self.texts[at], None, None)?;
                    self.texts[at].clear();
                }
                Cells::Numbers => {
                    column.typed::<Int64Type>().write_batch(&self.numbers[at], None, None)?;
                    self.numbers[at].clear();
                }
                Cells::Reals => {
                    column.typed::<DoubleType>().write_batch(&self.reals[at], None, None)?;
                    self.reals[at].clear();
                }
            }
            column.close()?;
            at += 1;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

/// A file being written.
type Writer = SerializedFileWriter<BufWriter<File>>;

/// Begins a file at `path`.
fn begin(columns: &[Column], path: &Path) -> Result<Writer> {
    let fields = columns.iter().map(|(name, cells)| {
        let physical = match cells {
            Cells::Texts => Physical::BYTE_ARRAY,
            Cells::Numbers => Physical::INT64,
            Cells::Reals => Physical::DOUBLE,
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        let field = field.with_logical_type((*cells == Cells::Texts).then_some(LogicalType::String));
        field.build().map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("roctop").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::LZ4_RAW)
        .build();
    let out = BufWriter::with_capacity(1 << 18, File::create(path)?);
    Ok(SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?)
}

/// Writes rows as a file at `path`.
fn each<T: Clone>(
    columns: &'static [Column],
    rows: &Sorted<Row<T>>,
    path: &Path,
    cells: &mut dyn FnMut(&Row<T>, &mut Batch),
) -> Result<()>
where
    Row<T>: Entry,
{
    let mut file = begin(columns, path)?;
    let mut batch = Batch::new(columns);
    for row in rows.iter() {
        cells(&row?, &mut batch);
        batch.end(&mut file)?;
    }
    batch.flush(&mut file)?;
    file.close()?;
    Ok(())
}

/// A row for each dispatch and counter.
fn counted(view: &View<'_>, path: &Path) -> Result<()> {
    let mut file = begin(COUNTED, path)?;
    let mut to = Batch::new(COUNTED);
    for found in view.counted.rows(&view.rows.dispatches, false) {
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
