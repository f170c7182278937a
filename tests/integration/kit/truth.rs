//! The emulated GPU's own log.

use std::path::Path;

/// A row of the emulated GPU's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) kind: String,
    pub(crate) pid: u32,
    pub(crate) queue: u64,
    pub(crate) index: u64,
    pub(crate) kernel_object: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) workgroup: [u16; 3],
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) bytes: u64,
    pub(crate) source: u64,
    pub(crate) target: u64,
    pub(crate) signal: u64,
    pub(crate) name: String,
    pub(crate) group: u32,
    pub(crate) private: u32,
    pub(crate) gpu: u32,
    /// The packet waits for all before it.
    pub(crate) has_barrier: bool,
}

/// The rows of all logs in a directory.
pub(crate) fn read_truth(place: &Path) -> Vec<Truth> {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("truth.") {
            rows.extend(read_log(&std::fs::read_to_string(path).unwrap()));
        }
    }
    rows
}

fn read_log(text: &str) -> Vec<Truth> {
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    // A kill may have cut the last line.
    let whole = lines
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|cells| cells.len() == columns.len());
    whole
        .map(|cells| {
            let cell = |name: &str| {
                columns
                    .iter()
                    .position(|column| *column == name)
                    .map_or("", |at| cells[at])
            };
            let number = |name: &str| cell(name).parse::<u64>().unwrap_or(0);
            let address = |name: &str| u64::from_str_radix(cell(name).trim_start_matches("0x"), 16).unwrap_or(0);
            Truth {
                kind: cell("kind").to_owned(),
                pid: number("pid") as u32,
                queue: number("queue"),
                index: number("index"),
                kernel_object: address("kernel_object"),
                grid: ["grid_x", "grid_y", "grid_z"].map(|name| number(name) as u32),
                workgroup: ["wg_x", "wg_y", "wg_z"].map(|name| number(name) as u16),
                begin: number("begin_ns"),
                end: number("end_ns"),
                bytes: number("bytes"),
                source: address("src"),
                target: address("dst"),
                signal: address("signal"),
                name: cell("name").to_owned(),
                group: number("group_bytes") as u32,
                private: number("private_bytes") as u32,
                gpu: number("gpu") as u32,
                has_barrier: number("barrier") == 1,
            }
        })
        .collect()
}

/// Maximum number of rows between the parts of one copy.
const MAX_PART_DISTANCE: usize = 64;

/// The copies that DMA engines made. ROCr 5.7 splits one between linked GPUs over several engines
/// (`GpuAgent::DmaCopy`): all parts have one signal, whose times are those of the part that waits for the others, the
/// last in the log.
pub(crate) fn engine_copies(rows: &[Truth]) -> Vec<Truth> {
    let mut copies: Vec<Truth> = Vec::new();
    for row in rows.iter().filter(|row| row.kind == "sdma_copy") {
        let mut whole = row.clone();
        let recent = copies.len().saturating_sub(MAX_PART_DISTANCE);
        let is_part = |part: &Truth, whole: &Truth| {
            let follows = |a: &Truth, b: &Truth| a.source + a.bytes == b.source && a.target + a.bytes == b.target;
            (part.pid, part.signal) == (row.pid, row.signal)
                && part.queue != row.queue
                && (follows(part, whole) || follows(whole, part))
        };
        while let Some(at) = copies[recent..].iter().rposition(|part| is_part(part, &whole)) {
            let part = copies.remove(recent + at);
            whole.bytes += part.bytes;
            whole.source = whole.source.min(part.source);
            whole.target = whole.target.min(part.target);
        }
        copies.push(whole);
    }
    copies
}
