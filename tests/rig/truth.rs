//! The emulated GPU's own log of what it did.

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
    pub(crate) name: String,
    pub(crate) group: u32,
    pub(crate) private: u32,
    pub(crate) gpu: u32,
}

/// The rows of all processes' logs in a directory.
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
    // The last line may have been cut by a kill.
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
            Truth {
                kind: cell("kind").to_owned(),
                pid: number("pid") as u32,
                queue: number("queue"),
                index: number("index"),
                kernel_object: u64::from_str_radix(cell("kernel_object").trim_start_matches("0x"), 16).unwrap_or(0),
                grid: ["grid_x", "grid_y", "grid_z"].map(|name| number(name) as u32),
                workgroup: ["wg_x", "wg_y", "wg_z"].map(|name| number(name) as u16),
                begin: number("begin_ns"),
                end: number("end_ns"),
                bytes: number("bytes"),
                name: cell("name").to_owned(),
                group: number("group_bytes") as u32,
                private: number("private_bytes") as u32,
                gpu: number("gpu") as u32,
            }
        })
        .collect()
}
