//! The files of a real HIP program on ROCm over the emulated GPU: all formats hold what the GPU's own log holds.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "export/table.rs"]
mod table;

#[path = "rig/rig.rs"]
#[expect(dead_code, reason = "what is recorded is tested elsewhere")]
mod rig;

use rig::{Rig, rig};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use table::Table;

/// Dispatches of the emulated GPU's log, by grid. Nameless ones are the run-time's own uploads of code.
fn logged(place: &Path) -> BTreeMap<[u64; 3], usize> {
    let mut grids = BTreeMap::new();
    for entry in std::fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("truth.") {
            let text = std::fs::read_to_string(path).unwrap();
            for line in text.lines().filter(|line| line.starts_with("dispatch,")) {
                let cells: Vec<&str> = line.split(',').collect();
                if cells[19].is_empty() {
                    continue;
                }
                let grid = [4, 5, 6].map(|at| cells[at].parse().unwrap());
                *grids.entry(grid).or_insert(0) += 1;
            }
        }
    }
    grids
}

#[test]
fn a_tour_of_the_api_has_the_files_of_rocprofv3() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("rocprofv3");
    let options = [
        "rocprofv3",
        "--sys-trace",
        "--stats",
        "-f",
        "csv",
        "json",
        "pftrace",
        "-d",
        "out",
        "-o",
        "t",
    ];
    let output = rig.command(&place, &options, &["api_tour"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let read = |name: &str| Table::read(&place.join("out").join(format!("t_{name}.csv")));
    let kernels = read("kernel_trace");
    let [x, y, z] = ["Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z"].map(|axis| kernels.numbers(axis));
    let mut found = BTreeMap::new();
    for ((x, y), z) in x.into_iter().zip(y).zip(z) {
        *found.entry([x, y, z]).or_insert(0) += 1;
    }
    assert_eq!(found, logged(&place));
    for cell in kernels.column("Agent_Id") {
        assert_eq!(cell, "Agent 1");
    }
    for (name, least) in [("VGPR_Count", 1), ("SGPR_Count", 16), ("Kernel_Id", 1), ("Queue_Id", 1)] {
        assert!(kernels.numbers(name).iter().all(|number| *number >= least), "{name}");
    }
    let agents = read("agent_info");
    assert_eq!(agents.column("Name").last(), Some(&"gfx906"));
    let text = std::fs::read_to_string(place.join("out/t_results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let process = &document["rocprofiler-sdk-tool"][0];
    for (list, table) in [
        ("kernel_dispatch", "kernel_trace"),
        ("hip_api", "hip_api_trace"),
        ("hsa_api", "hsa_api_trace"),
        ("marker_api", "marker_api_trace"),
        ("memory_copy", "memory_copy_trace"),
    ] {
        let records = process["buffer_records"][list].as_array().unwrap();
        assert!(!records.is_empty(), "{list}");
        assert_eq!(records.len(), read(table).rows.len(), "{list}");
    }
    let gpu = &process["agents"][1];
    assert!(!gpu["mem_banks"].as_array().unwrap().is_empty() && !gpu["caches"].as_array().unwrap().is_empty());
    let objects = process["code_objects"].as_array().unwrap();
    assert!(
        objects
            .iter()
            .skip(1)
            .any(|object| object["uri"].as_str().unwrap().contains("api_tour"))
    );
    assert!(place.join("out/t_results.pftrace").exists());
    let left = std::fs::read_dir(place.join("out")).unwrap();
    let hidden = left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "the recording is gone");
}
