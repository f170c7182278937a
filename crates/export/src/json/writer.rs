//! Writes lists and strings of JSON documents in pieces.

use crate::records::Row;
use crate::sort::{Entry, Iter, PART_ENTRIES, Sorted};
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

/// Writes a list of rows, one line each, made on all threads.
pub(super) fn rows_of<T: Clone>(
    out: &mut dyn Write,
    rows: &Sorted<Row<T>>,
    item: impl Fn(&mut dyn Write, &Row<T>) -> io::Result<()> + Sync,
) -> io::Result<()>
where
    Row<T>: Entry,
{
    write!(out, "[")?;
    let lines = |part: Iter<'_, Row<T>>| {
        let mut bytes = Vec::new();
        for row in part {
            bytes.extend_from_slice(b",\n");
            item(&mut bytes, &row?)?;
        }
        Ok(bytes)
    };
    let mut is_first = true;
    rows.each_part(PART_ENTRIES, lines, |bytes: Vec<u8>| {
        // Nothing is before the first line that a comma would separate from it.
        let from = usize::from(std::mem::take(&mut is_first)).min(bytes.len());
        out.write_all(&bytes[from..])
    })?;
    write!(out, "]")
}

/// A quoted string.
pub(crate) fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
