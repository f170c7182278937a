//! A Parquet file with typed columns, written by row group.

use crate::error::Result;
use crate::records::Row;
use crate::sort::{Entry, Sorted};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

/// Rows per row group, which are held in memory.
const ROWS_PER_GROUP: usize = 1 << 17;

/// Cell type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cells {
    Numbers,
    Texts,
    /// Floating-point numbers.
    Reals,
}

/// A column: name and cell type.
pub(super) type Column = (&'static str, Cells);

pub(super) const fn number(name: &'static str) -> Column {
    (name, Cells::Numbers)
}
pub(super) const fn text(name: &'static str) -> Column {
    (name, Cells::Texts)
}
pub(super) const fn real(name: &'static str) -> Column {
    (name, Cells::Reals)
}

/// Rows of a row group, by column.
pub(super) struct Batch {
    columns: &'static [Column],
    numbers: Vec<Vec<i64>>,
    reals: Vec<Vec<f64>>,
    texts: Vec<Vec<ByteArray>>,
    at: usize,
    rows: usize,
    known: HashMap<String, ByteArray>,
}

impl Batch {
    pub(super) fn new(columns: &'static [Column]) -> Self {
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

    pub(super) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.numbers[self.at].push(number.into() as i64);
        self.at += 1;
        self
    }

    pub(super) fn real(&mut self, number: f64) -> &mut Self {
        self.reals[self.at].push(number);
        self.at += 1;
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        // Texts are normally few; if there are many, they are not cached.
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

    /// Ends a row; writes the row group when it is full.
    pub(super) fn end(&mut self, file: &mut Writer) -> Result<()> {
        debug_assert_eq!(self.at, self.columns.len(), "a cell for each column");
        self.at = 0;
        self.rows += 1;
        if self.rows == ROWS_PER_GROUP {
            self.flush(file)
        } else {
            Ok(())
        }
    }

    /// Writes the rows as a row group.
    pub(super) fn flush(&mut self, file: &mut Writer) -> Result<()> {
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
pub(super) type Writer = SerializedFileWriter<BufWriter<File>>;

/// Creates a file at `path`.
pub(super) fn begin(columns: &[Column], path: &Path) -> Result<Writer> {
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
pub(super) fn each<T: Clone>(
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
