//! Writes CSV rows cell by cell.

use crate::sort::{Entry, Iter, PART_ENTRIES, Sorted};
use std::io::{self, Write};

/// A header line: every cell is quoted.
pub(crate) fn header(columns: &str) -> String {
    let cells: Vec<String> = columns.split(',').map(|cell| format!("\"{cell}\"")).collect();
    cells.join(",")
}

/// A quoted text cell.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Writes a table with a row per entry, made on all threads. `state` makes what the rows of one thread share.
pub(super) fn table<T: Entry, S>(
    out: &mut dyn Write,
    columns: &str,
    entries: &Sorted<T>,
    state: impl Fn() -> S + Sync,
    row: impl Fn(&T, &mut S, &mut Lines<'_>) + Sync,
) -> io::Result<()> {
    Lines::new(out, columns)?;
    let rows = |part: Iter<'_, T>| {
        let (mut bytes, mut state) = (Vec::new(), state());
        let mut lines = Lines::more(&mut bytes);
        for entry in part {
            row(&entry?, &mut state, &mut lines);
            lines.end()?;
        }
        Ok(bytes)
    };
    entries.each_part(PART_ENTRIES, rows, |bytes: Vec<u8>| out.write_all(&bytes))
}

/// Writer of rows.
pub(crate) struct Lines<'w> {
    out: &'w mut dyn Write,
    line: Vec<u8>,
    digits: itoa::Buffer,
}

impl<'w> Lines<'w> {
    /// Writes the header.
    pub(crate) fn new(out: &'w mut dyn Write, columns: &str) -> io::Result<Self> {
        Self::below(out, &header(columns))
    }

    /// Writes a preformatted header.
    pub(crate) fn below(out: &'w mut dyn Write, header: &str) -> io::Result<Self> {
        writeln!(out, "{header}")?;
        Ok(Self::more(out))
    }

    /// Writes rows without a header.
    fn more(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            line: Vec::with_capacity(256),
            digits: itoa::Buffer::new(),
        }
    }

    /// Appends a cell unchanged.
    pub(crate) fn raw(&mut self, cell: &str) -> &mut Self {
        self.line.extend_from_slice(cell.as_bytes());
        self.line.push(b',');
        self
    }

    /// Appends a quoted text; quotes in it are doubled.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.line.push(b'"');
        for (number, part) in text.split('"').enumerate() {
            if number > 0 {
                self.line.extend_from_slice(b"\"\"");
            }
            self.line.extend_from_slice(part.as_bytes());
        }
        self.line.extend_from_slice(b"\",");
        self
    }

    /// Appends a number.
    pub(crate) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.line
            .extend_from_slice(self.digits.format(number.into()).as_bytes());
        self.line.push(b',');
        self
    }

    /// Ends the row.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if let Some(last) = self.line.last_mut() {
            *last = b'\n';
        }
        let written = self.out.write_all(&self.line);
        self.line.clear();
        written
    }
}
