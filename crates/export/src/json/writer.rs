//! Writes lists and strings of JSON documents in pieces.

use crate::records::Row;
use crate::sort::{Entry, Sorted};
use std::io::{self, Write};

/// Writes a list, one line per item.
pub(super) fn list<T>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, "[")?;
    for (number, found) in items.into_iter().enumerate() {
        out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        item(out, found)?;
    }
    write!(out, "]")
}

/// Writes a list of rows, one line each.
pub(super) fn rows_of<T: Clone>(
    out: &mut dyn Write,
    rows: &Sorted<Row<T>>,
    item: impl Fn(&mut dyn Write, &Row<T>) -> io::Result<()>,
) -> io::Result<()>
where
    Row<T>: Entry,
{
    list(out, rows.iter(), |out, row| item(out, &row?))
}

/// A quoted string.
pub(crate) fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
