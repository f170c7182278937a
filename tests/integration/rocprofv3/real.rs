//! The files of a real HIP program on ROCm over the emulated GPU: all formats hold what the GPU's own log holds.

use crate::kit::records::{of_csv, of_json, of_parquet, of_pftrace, of_rocpd};
use crate::kit::rig::{Rig, TOLERANCE, read_truth, rig};
use crate::kit::schema;
use crate::kit::table::Table;
use crate::kit::trace::Trace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

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
    assert_eq!(schema::faults(schema::NEW, &document), Vec::<String>::new());
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
    // Arguments are recorded where a file tells them.
    let calls = process["buffer_records"]["hip_api"].as_array().unwrap();
    let of = |kind: &str| -> Vec<&Value> {
        let arguments = calls.iter().flat_map(|call| call["args"].as_array().unwrap());
        arguments.filter(|argument| argument["type"] == kind).collect()
    };
    assert!(of("13hipMemcpyKind").iter().any(|one| one["value"] == "HostToDevice"));
    assert!(of("18rocprofiler_dim3_t").iter().any(|one| one["name"] == "numBlocks"));
    let waits = calls.iter().filter(|call| call["args"][0]["type"] == "P12ihipStream_t");
    assert!(
        waits.clone().any(|call| call["stream_id"]["handle"] != 0),
        "streams by their handles"
    );
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

/// As upstream: work has a queue and a stream, copies their addresses, launches of graphs their kernels.
#[test]
fn a_database_of_a_real_program_has_what_upstreams_readers_join() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("joined");
    let options = [
        "rocprofv3",
        "--runtime-trace",
        "-f",
        "json",
        "rocpd",
        "-d",
        "out",
        "-o",
        "t",
    ];
    let output = rig.command(&place, &options, &["features"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let database = rusqlite::Connection::open(place.join("out/t_results.db")).unwrap();
    let count = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    let allocations = count("SELECT COUNT(*) FROM memory_allocations");
    assert!(allocations > 0);
    for name in ["queue_name LIKE 'Default Queue'", "stream_name LIKE 'Default Stream'"] {
        let sql = format!("SELECT COUNT(*) FROM memory_allocations WHERE level <> 'SCRATCH' AND {name}");
        assert_eq!(
            count(&sql),
            allocations - count("SELECT COUNT(*) FROM scratch_memory"),
            "{name}"
        );
    }
    assert_eq!(
        count("SELECT COUNT(*) FROM kernels WHERE queue IS NULL OR stream IS NULL"),
        0
    );
    let others = "SELECT COUNT(*) FROM rocpd_info_queue WHERE name <> CASE id WHEN 0 THEN 'Default Queue' ELSE 'Queue ' || (id - 1) END";
    assert_eq!(count(others), 0);
    assert!(count("SELECT COUNT(*) FROM memory_allocations WHERE type = 'FREE' AND agent_name IS NOT NULL") > 0);
    let document: Value = serde_json::from_slice(&std::fs::read(place.join("out/t_results.json")).unwrap()).unwrap();
    assert_eq!(schema::faults(schema::NEW, &document), Vec::<String>::new());
    let records = &document["rocprofiler-sdk-tool"][0]["buffer_records"];
    let of = |list: &str| records[list].as_array().unwrap();
    // Each whole copy has the addresses of its call.
    let mut copies = 0;
    for call in of("hip_api") {
        let argument = |name: &str| {
            let mut all = call["args"].as_array().unwrap().iter();
            all.find(|one| one["name"] == name)
                .and_then(|one| one["value"].as_str())
        };
        let (Some(to), Some(from), Some(bytes)) = (argument("dst"), argument("src"), argument("sizeBytes")) else {
            continue;
        };
        let id = &call["correlation_id"]["internal"];
        let sql = format!(
            "SELECT COUNT(*), COUNT(CASE WHEN printf('0x%x', dst_address) = '{to}' AND printf('0x%x', src_address) = '{from}' THEN 1 END) \
             FROM memory_copies WHERE (stack_id = {id} OR parent_stack_id = {id}) AND size = {bytes}"
        );
        let (all, same): (i64, i64) = database
            .query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        assert_eq!(all, same, "{call}");
        copies += all;
    }
    assert!(copies > 0);
    // As hip-graph-attribution/validate_json.py.
    let graph = |record: &Value| record["graph_exec_id"].as_u64().unwrap();
    let of_graphs: Vec<u64> = of("kernel_dispatch")
        .iter()
        .map(graph)
        .filter(|graph| *graph > 0)
        .collect();
    let launches = of("hip_graph");
    let launched: Vec<u64> = launches
        .iter()
        .map(|one| one["graph_exec_id"]["handle"].as_u64().unwrap())
        .collect();
    assert!(!of_graphs.is_empty());
    assert_eq!(
        of_graphs.iter().collect::<BTreeSet<_>>(),
        launched.iter().collect::<BTreeSet<_>>()
    );
    let is_launch = |call: &&Value| {
        let names = document["rocprofiler-sdk-tool"][0]["strings"]["buffer_records"]
            .as_array()
            .unwrap();
        let at = |value: &Value| value.as_u64().unwrap() as usize;
        names[at(&call["kind"])]["operations"][at(&call["operation"])] == "hipGraphLaunch"
    };
    assert_eq!(of("hip_api").iter().filter(is_launch).count(), launches.len());
    let kernels = launches
        .iter()
        .map(|one| one["kernel_dispatch_count"].as_u64().unwrap());
    assert_eq!(kernels.sum::<u64>(), of_graphs.len() as u64);
    assert_eq!(count("SELECT COUNT(*) FROM rocpd_graph_launch"), launches.len() as i64);
    assert_eq!(
        count("SELECT SUM(kernel_dispatch_count) FROM rocpd_graph_launch"),
        count("SELECT COUNT(*) FROM rocpd_kernel_dispatch WHERE graph_exec_id > 0")
    );
    assert_eq!(
        count("SELECT COUNT(*) FROM rocpd_graph_launch WHERE agent_id IS NULL OR \"end\" < start"),
        0
    );
}

#[test]
fn all_formats_of_a_real_program_hold_what_the_gpu_logged() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("formats");
    let recorded = rig
        .command(&place, &["record", "--hsa-trace", "-o", "rec"], &["api_tour"])
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{recorded:?}");
    let formats = "csv,json,pftrace,rocpd,parquet";
    let exported = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"))
        .args(["export", "rec", "-d", "out", "-o", "t", "--format", formats])
        .current_dir(&place)
        .output()
        .unwrap();
    assert!(exported.status.success(), "{exported:?}");
    let out = place.join("out");
    let csv = of_csv(&out);
    assert!(csv.len() == 5 && csv.values().all(|rows| !rows.is_empty()));
    assert!(of_json(&out) == csv, "JSON");
    assert!(of_pftrace(&out) == csv, "pftrace");
    assert!(of_rocpd(&out) == csv, "rocpd");
    assert!(of_parquet(&out) == csv, "Parquet");
    // LDS of a dispatch, with what is dynamic.
    let document: Value = serde_json::from_slice(&std::fs::read(out.join("t_results.json")).unwrap()).unwrap();
    let dispatches = document["rocprofiler-sdk-tool"][0]["buffer_records"]["kernel_dispatch"]
        .as_array()
        .unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let mut lds: Vec<(u64, u64)> = dispatches
        .iter()
        .map(|one| {
            (
                number(&one["start_timestamp"]),
                number(&one["dispatch_info"]["group_segment_size"]),
            )
        })
        .collect();
    assert!(lds.iter().any(|(_, bytes)| bytes % 512 > 0), "it is not rounded");
    let trace = Trace::read(&std::fs::read(out.join("t_results.pftrace")).unwrap());
    let kernels = trace.slices.iter().filter(|slice| slice.category == "kernel_dispatch");
    let mut found: Vec<(u64, u64)> = kernels
        .map(|slice| (slice.arguments["begin_ns"], slice.arguments["LDS_Block_Size"]))
        .collect();
    lds.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, lds);
    let truth = read_truth(&place);
    let named = |kind: &str| {
        let rows = truth
            .iter()
            .filter(|row| row.kind == kind && !(kind == "dispatch" && row.name.is_empty()));
        let mut times: Vec<(u64, u64)> = rows.map(|row| (row.begin, row.end)).collect();
        times.sort_unstable();
        times
    };
    let logged = named("dispatch");
    let mut exported: Vec<(u64, u64)> = csv["kernel_dispatch"].iter().map(|row| (row.2, row.3)).collect();
    exported.sort_unstable();
    assert_eq!(exported.len(), logged.len());
    for (own, theirs) in exported.iter().zip(&logged) {
        assert!(
            own.0.abs_diff(theirs.0) <= TOLERANCE && own.1.abs_diff(theirs.1) <= TOLERANCE,
            "{own:?} is logged as {theirs:?}"
        );
    }
    let text = std::fs::read_to_string(out.join("t_results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let copies = document["rocprofiler-sdk-tool"][0]["buffer_records"]["memory_copy"].clone();
    let mut copies: Vec<(u64, u64, u64)> = copies
        .as_array()
        .unwrap()
        .iter()
        .map(|copy| {
            ["start_timestamp", "end_timestamp", "bytes"]
                .map(|key| copy[key].as_u64().unwrap())
                .into()
        })
        .collect();
    let near = |a: u64, b: u64| a.abs_diff(b) <= TOLERANCE;
    // A DMA engine's copies are the log's, once each.
    let dma = truth.iter().filter(|row| row.kind == "sdma_copy");
    for row in dma.clone() {
        let same = |copy: &(u64, u64, u64)| near(copy.0, row.begin) && near(copy.1, row.end) && copy.2 == row.bytes;
        let found = copies.iter().position(same);
        copies.swap_remove(found.unwrap_or_else(|| panic!("{row:?} has no row")));
    }
    assert!(dma.count() > 0);
    // The others are made by kernels of the run-time's, which are in the files too.
    for copy in copies {
        let by_kernel = csv["kernel_dispatch"].iter().any(|row| {
            row.0.starts_with("__amd_rocclr_") && copy.0 <= row.2 + TOLERANCE && row.3 <= copy.1 + TOLERANCE
        });
        assert!(by_kernel, "{copy:?} is in no log");
    }
}

/// rocprofv3 writes its files from a handler of the signal, and none after SIGKILL.
#[test]
fn a_program_that_is_ended_by_a_signal_has_its_files() {
    let Some(rig) = rig() else { return };
    for (how, signal) in [("abort", 6), ("kill", 9)] {
        let place = Rig::place(&format!("ended-{how}"));
        let options = [
            "rocprofv3",
            "--hip-runtime-trace",
            "--kernel-trace",
            "-f",
            "csv",
            "json",
            "-d",
            "out",
            "-o",
            "t",
        ];
        let output = rig
            .command(&place, &options, &["crash_mid", how, "200"])
            .output()
            .unwrap();
        let ended = output.status.signal().or_else(|| Some(output.status.code()? - 128));
        assert_eq!(ended, Some(signal), "{output:?}");
        let rows = |name: &str| Table::read(&place.join(format!("out/t_{name}.csv"))).rows.len();
        let text = std::fs::read_to_string(place.join("out/t_results.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let records = &document["rocprofiler-sdk-tool"][0]["buffer_records"];
        for (list, table) in [("kernel_dispatch", "kernel_trace"), ("hip_api", "hip_api_trace")] {
            assert_eq!(records[list].as_array().unwrap().len(), rows(table), "{how}: {list}");
        }
        // All that the GPU did: what it was at in the end has no times.
        let logged: usize = logged(&place).values().sum();
        let kernels = rows("kernel_trace");
        assert!(
            kernels > 0 && kernels <= logged && logged - kernels <= 2,
            "{how}: {kernels} of {logged}"
        );
    }
}

/// Table 4 of the seed's manual.
#[test]
fn the_seeds_table_of_hsa_calls() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("seed-hsa");
    let options = ["rocprofv3", "--hsa-trace", "--layout", "seed", "-d", "out", "-o", "t"];
    let output = rig.command(&place, &options, &["matrix_transpose"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let table = Table::read(&place.join("out/t_hsa_api_trace.csv"));
    assert_eq!(
        table.header.join(","),
        "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp"
    );
    let domains = [
        "HSA_CORE_API",
        "HSA_AMD_EXT_API",
        "HSA_IMAGE_EXT_API",
        "HSA_FINALIZE_EXT_API",
    ];
    assert!(table.column("Domain").iter().all(|cell| domains.contains(cell)));
    assert!(table.column("Function").iter().all(|name| name.starts_with("hsa_")));
    assert!(table.column("Function").contains(&"hsa_queue_create"));
    // Numbered from 1 by beginning, in order of their ends.
    let mut ids = table.numbers("Correlation_Id");
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(1..=ids.len() as u64));
    let (begins, ends) = (table.numbers("Start_Timestamp"), table.numbers("End_Timestamp"));
    assert!(ends.is_sorted() && begins.iter().zip(&ends).all(|(begin, end)| begin < end));
    let pid = table.numbers("Process_Id")[0];
    assert!(table.numbers("Thread_Id").iter().all(|thread| *thread >= pid));
}
