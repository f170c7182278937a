//! A Parquet file with typed columns. Row groups are encoded on all threads and appended in order.

use crate::error::Result;
use crate::records::Row;
use crate::sort::{Entry, Part, Sorted};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, SchemaDescriptor, Type};
use roctop_model::FastMap;
use std::io::Write;
use std::sync::Arc;

/// Rows per row group, about. Each thread holds those of one group in memory.
const ROWS_PER_GROUP: usize = 1 << 16;

/// Cell type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cells {
    Numbers,
    /// Numbers, null where unknown.
    KnownNumbers,
    Texts,
    /// Floating-point numbers.
    Reals,
}

/// Column of the rank, the last of each file.
const RANK: &str = "rank";
/// Column by which rows are sorted, within a process.
const ORDER: &str = "end_ns";
/// Columns of numbers that are mostly distinct.
const DISTINCT: [&str; 4] = ["start_ns", "end_ns", "correlation_id", "dispatch_id"];

/// A column: name and cell type.
pub(super) type Column = (&'static str, Cells);

pub(super) const fn number(name: &'static str) -> Column {
    (name, Cells::Numbers)
}
/// A column of numbers, null where unknown.
pub(super) const fn known_number(name: &'static str) -> Column {
    (name, Cells::KnownNumbers)
}
pub(super) const fn text(name: &'static str) -> Column {
    (name, Cells::Texts)
}
pub(super) const fn real(name: &'static str) -> Column {
    (name, Cells::Reals)
}

/// Rows of a row group, by column.
pub(super) struct Batch {
    numbers: Vec<Vec<i64>>,
    /// Of columns that may have nulls: 1 for each number, 0 for each null.
    are_known: Vec<Vec<i16>>,
    reals: Vec<Vec<f64>>,
    texts: Vec<Vec<ByteArray>>,
    at: usize,
    rows: usize,
    known: FastMap<String, ByteArray>,
}

impl Batch {
    fn new(columns: &[Column]) -> Self {
        Self {
            numbers: vec![Vec::new(); columns.len()],
            are_known: vec![Vec::new(); columns.len()],
            reals: vec![Vec::new(); columns.len()],
            texts: vec![Vec::new(); columns.len()],
            at: 0,
            rows: 0,
            known: FastMap::default(),
        }
    }

    pub(super) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.numbers[self.at].push(number.into() as i64);
        self.at += 1;
        self
    }

    /// A cell of a column of [`known_number`].
    pub(super) fn known_number(&mut self, number: Option<i64>) -> &mut Self {
        self.numbers[self.at].extend(number);
        self.are_known[self.at].push(i16::from(number.is_some()));
        self.at += 1;
        self
    }

    pub(super) fn real(&mut self, number: f64) -> &mut Self {
        self.reals[self.at].push(number);
        self.at += 1;
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        let before = self.texts[self.at].last();
        let known = match before.filter(|before| before.data() == text.as_bytes()) {
            Some(same) => same.clone(),
            None => self.known(text),
        };
        self.texts[self.at].push(known);
        self.at += 1;
        self
    }

    fn known(&mut self, text: &str) -> ByteArray {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        // Texts are normally few; if there are many, they are not cached.
        if self.known.len() > 1 << 16 {
            self.known.clear();
        }
        let new = ByteArray::from(text);
        self.known.insert(text.to_owned(), new.clone());
        new
    }

    /// Ends a row.
    fn end(&mut self) {
        debug_assert_eq!(self.at, self.numbers.len(), "a cell for each column");
        self.at = 0;
        self.rows += 1;
    }

    /// Encodes the rows as a row group.
    fn encode(self, schema: &Schema) -> Result<Group> {
        let columns = schema.descriptors.iter().enumerate().map(|(at, column)| {
            let mut pages = TrackedWrite::new(Vec::new());
            let to = Box::new(SerializedPageWriter::new(&mut pages));
            let mut writer = get_column_writer(column.clone(), schema.properties.clone(), to);
            match &mut writer {
                ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(&self.texts[at], None, None)?,
                ColumnWriter::DoubleColumnWriter(writer) => writer.write_batch(&self.reals[at], None, None)?,
                ColumnWriter::Int64ColumnWriter(writer) => {
                    let are_known = (schema.columns[at].1 == Cells::KnownNumbers).then_some(&self.are_known[at][..]);
                    writer.write_batch(&self.numbers[at], are_known, None)?
                }
                // The rank.
                ColumnWriter::Int32ColumnWriter(writer) => {
                    let values = schema.rank.map_or_else(Vec::new, |rank| vec![rank as i32; self.rows]);
                    let are_known = vec![i16::from(schema.rank.is_some()); self.rows];
                    writer.write_batch(&values, Some(&are_known), None)?
                }
                _ => return Err(ParquetError::General(format!("column {at} has another type")).into()),
            };
            let closed = writer.close()?;
            Ok((Bytes::from(pages.into_inner()?), closed))
        });
        columns.collect()
    }
}

/// An encoded row group: the pages of each column.
pub(super) type Group = Vec<(Bytes, ColumnCloseResult)>;

/// A file being written.
pub(super) type Writer = SerializedFileWriter<Box<dyn Write + Send>>;

/// What a file and the row groups of a process are encoded with.
pub(super) struct Schema {
    columns: &'static [Column],
    /// The process's rank, in each of its rows.
    rank: Option<u32>,
    root: Arc<Type>,
    descriptors: Vec<ColumnDescPtr>,
    properties: WriterPropertiesPtr,
}

impl Schema {
    pub(super) fn new(columns: &'static [Column], rank: Option<u32>) -> Result<Self> {
        let fields = columns.iter().map(|(name, cells)| {
            let physical = match cells {
                Cells::Texts => Physical::BYTE_ARRAY,
                Cells::Numbers | Cells::KnownNumbers => Physical::INT64,
                Cells::Reals => Physical::DOUBLE,
            };
            let repetition = if *cells == Cells::KnownNumbers {
                Repetition::OPTIONAL
            } else {
                Repetition::REQUIRED
            };
            let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
            let field = field.with_logical_type((*cells == Cells::Texts).then_some(LogicalType::String));
            field.build().map(Arc::new)
        });
        let mut fields = fields.collect::<Result<Vec<_>, _>>()?;
        let sorting = |index: usize| SortingColumn {
            column_idx: index as i32,
            descending: false,
            nulls_first: false,
        };
        let mut order = vec![sorting(fields.len())];
        let field = Type::primitive_type_builder(RANK, Physical::INT32).with_repetition(Repetition::OPTIONAL);
        fields.push(Arc::new(field.build()?));
        order.extend(columns.iter().position(|(name, _)| *name == ORDER).map(sorting));
        let root = Arc::new(Type::group_type_builder("roctop").with_fields(fields).build()?);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::LZ4_RAW)
            .set_sorting_columns(Some(order));
        // Few values occur twice, so a dictionary does not pay; most differences are small.
        for column in columns
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| DISTINCT.contains(name))
        {
            let column = ColumnPath::from(column);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        // A row group has nearly all texts, so its first and last one let a reader skip little, and to find them costs two comparisons
        // per cell.
        let texts = columns.iter().filter(|(_, cells)| *cells == Cells::Texts);
        for (name, _) in texts {
            properties = properties.set_column_statistics_enabled(ColumnPath::from(*name), EnabledStatistics::None);
        }
        Ok(Self {
            columns,
            rank,
            descriptors: SchemaDescriptor::new(root.clone()).columns().to_vec(),
            root,
            properties: Arc::new(properties.build()),
        })
    }

    /// Begins a file, to which other processes may add rows of the same kind.
    pub(super) fn begin(&self, out: Box<dyn Write + Send>) -> Result<Writer> {
        Ok(SerializedFileWriter::new(
            out,
            self.root.clone(),
            self.properties.clone(),
        )?)
    }
}

/// Encodes a row group, on any thread.
pub(super) type Encode<'a> = Box<dyn FnOnce(&Schema) -> Result<Group> + Send + 'a>;

/// The row groups of rows.
pub(super) fn groups<'a, T: Clone>(
    rows: &'a Sorted<Row<T>>,
    cells: impl Fn(&Row<T>, &mut Batch) + Copy + Send + 'a,
) -> Vec<Encode<'a>>
where
    Row<T>: Entry,
{
    let group = |part: Part<'a, Row<T>>| -> Encode<'a> {
        Box::new(move |schema| {
            let mut batch = Batch::new(schema.columns);
            for row in part.iter() {
                cells(&row?, &mut batch);
                batch.end();
            }
            batch.encode(schema)
        })
    };
    rows.parts(ROWS_PER_GROUP).into_iter().map(group).collect()
}

/// The rows of a process in a file, one by one. Its row groups have no other rows.
pub(super) struct Sheet<'w> {
    file: &'w mut Writer,
    schema: &'w Schema,
    /// Rows of the next group.
    batch: Batch,
}

impl<'w> Sheet<'w> {
    pub(super) fn new(file: &'w mut Writer, schema: &'w Schema) -> Self {
        Self {
            file,
            schema,
            batch: Batch::new(schema.columns),
        }
    }

    /// Adds a row; writes the row group when it is full.
    pub(super) fn row(&mut self, cells: impl FnOnce(&mut Batch)) -> Result<()> {
        cells(&mut self.batch);
        self.batch.end();
        if self.batch.rows == ROWS_PER_GROUP {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the last row group.
    pub(super) fn finish(mut self) -> Result<()> {
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        if self.batch.rows == 0 {
            return Ok(());
        }
        let batch = std::mem::replace(&mut self.batch, Batch::new(self.schema.columns));
        append(self.file, batch.encode(self.schema)?)
    }
}

/// Appends an encoded row group.
pub(super) fn append(file: &mut Writer, columns: Group) -> Result<()> {
    let mut group = file.next_row_group()?;
    for (pages, closed) in columns {
        group.append_column(&pages, closed)?;
    }
    group.close()?;
    Ok(())
}
