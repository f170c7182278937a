//! CSV files read back.

use std::path::Path;

/// A table: header cells, and rows of cells without their quotes.
pub(crate) struct Table {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// Reads a CSV file; each header cell and text is in quotes, doubled quotes are one.
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n') && !text.contains('\r'), "{}", path.display());
        let mut lines = text.lines();
        let header = lines.next().unwrap();
        let header: Vec<String> = header
            .split(',')
            .map(|cell| cell.strip_prefix('"').unwrap().strip_suffix('"').unwrap().to_owned())
            .collect();
        let rows: Vec<Vec<String>> = lines.map(cells).collect();
        for row in &rows {
            assert_eq!(row.len(), header.len(), "{}: {row:?}", path.display());
        }
        Self { header, rows }
    }

    /// The cells of a column.
    pub(crate) fn column(&self, name: &str) -> Vec<&str> {
        let at = self.header.iter().position(|cell| cell == name).unwrap();
        self.rows.iter().map(|row| row[at].as_str()).collect()
    }

    /// The numbers of a column.
    pub(crate) fn numbers(&self, name: &str) -> Vec<u64> {
        self.column(name).iter().map(|cell| cell.parse().unwrap()).collect()
    }
}

fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        let cell = cells.last_mut().unwrap();
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    cells
}
