//! A recording of the built-in workload, made once for all tests of a file, and its exports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// roctop without a terminal.
pub(crate) fn roctop(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    command.args(words).stdin(Stdio::null()).output().unwrap()
}

/// A new empty directory.
pub(crate) fn place(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("export-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Where the recording is.
pub(crate) fn recording() -> &'static Path {
    static RECORDING: OnceLock<PathBuf> = OnceLock::new();
    RECORDING.get_or_init(|| {
        let path = place("recording").join("rec");
        let own = env!("CARGO_BIN_EXE_roctop");
        let mut command = Command::new(own);
        command.args(["record", "-o", path.to_str().unwrap(), "--", own, "__demo"]);
        let output = command
            .env("ROCTOP_DEMO_WORKER", "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        path
    })
}

/// Exports the recording with more options; the files by their names without the process id or stem.
pub(crate) fn export(name: &str, options: &[&str]) -> BTreeMap<String, PathBuf> {
    let place = place(name);
    let mut words = vec![
        "export",
        recording().to_str().unwrap(),
        "-d",
        place.to_str().unwrap(),
        "-o",
        "t",
    ];
    words.extend(options);
    let output = roctop(&words);
    assert!(output.status.success(), "{output:?}");
    let files = String::from_utf8(output.stdout).unwrap();
    let files = files.lines().map(PathBuf::from);
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            (name.strip_prefix("t_").unwrap().to_owned(), path)
        })
        .collect()
}

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
