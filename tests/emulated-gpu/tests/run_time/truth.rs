//! Reads the truth log, and checks what holds for every log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// One row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) kind: String,
    pub(crate) queue: u64,
    pub(crate) grid_x: u64,
    pub(crate) wg_x: u64,
    pub(crate) index: u64,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) begin_ticks: u64,
    pub(crate) end_ticks: u64,
    pub(crate) bytes: u64,
    pub(crate) name: String,
    pub(crate) gpu: u64,
    pub(crate) group_bytes: u64,
    pub(crate) pid: u64,
}

impl Row {
    /// Duration by the GPU's clock.
    pub(crate) fn duration_ns(&self) -> u64 {
        (self.end_ticks - self.begin_ticks) * 10
    }

    /// Whether the program launched it, not the run-time.
    pub(crate) fn is_program_kernel(&self) -> bool {
        self.kind == "dispatch" && !self.name.is_empty() && !self.name.starts_with("__amd_rocclr_")
    }
}

/// Rows of a log, checked.
pub(crate) fn read(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "the last line of {} is torn", path.display());
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let rows: Vec<Row> = lines.map(|cells| row(&names, &cells)).collect();
    check(&rows);
    rows
}

fn row(names: &[&str], cells: &[&str]) -> Row {
    assert_eq!(names.len(), cells.len(), "{cells:?}");
    let cell = |name: &str| cells[names.iter().position(|other| *other == name).unwrap()];
    let number = |name: &str| cell(name).parse().unwrap();
    Row {
        kind: cell("kind").to_owned(),
        queue: number("queue"),
        grid_x: number("grid_x"),
        wg_x: number("wg_x"),
        index: number("index"),
        begin_ns: number("begin_ns"),
        end_ns: number("end_ns"),
        begin_ticks: number("begin_ticks"),
        end_ticks: number("end_ticks"),
        bytes: number("bytes"),
        name: cell("name").to_owned(),
        gpu: number("gpu"),
        group_bytes: number("group_bytes"),
        pid: number("pid"),
    }
}

/// Begin before end on both clocks, consistent clocks, every packet once.
fn check(rows: &[Row]) {
    let mut seen = BTreeSet::new();
    for row in rows {
        assert!(
            row.begin_ns <= row.end_ns && row.begin_ticks <= row.end_ticks,
            "{row:?}"
        );
        let by_host = row.end_ns - row.begin_ns;
        assert!(by_host.abs_diff(row.duration_ns()) < 1000, "{row:?}");
        let key = (row.pid, &row.kind[..4], row.queue, row.index);
        assert!(seen.insert(key), "twice: {row:?}");
    }
}

/// Number of the program's launches by kernel name.
pub(crate) fn kernels(rows: &[Row]) -> BTreeMap<String, usize> {
    rows.iter()
        .filter(|row| row.is_program_kernel())
        .fold(BTreeMap::new(), |mut counts, row| {
            *counts.entry(row.name.clone()).or_default() += 1;
            counts
        })
}
