//! What rocprofiler-sdk 1.0.0 was seen to write for a program on the same rig, as rules: columns, shapes of cells, ids and
//! what they lead to, sums. The files of a real HIP program keep to them.

use crate::kit::columns::{ALLOCATIONS, CALLS, COPIES, KERNELS, STATS};
use crate::kit::rig::{Rig, rig};
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files with their columns; each cell's shape is a letter: `q` a text, `a` an agent, `n` a whole number, `h` an address,
/// `f` a number of statistics, `p` a percentage.
const FILES: &[(&str, &str, &str)] = &[
    ("hip_api_trace", CALLS, "qqnnnnn"),
    ("hsa_api_trace", CALLS, "qqnnnnn"),
    ("marker_api_trace", CALLS, "qqnnnnn"),
    ("kernel_trace", KERNELS, "qannnnnqnnnnnnnnnnnnnn"),
    ("memory_copy_trace", COPIES, "qqnaannn"),
    ("memory_allocation_trace", ALLOCATIONS, "qqanhnnn"),
    ("hip_api_stats", STATS, "qnnfpnnf"),
    ("hsa_api_stats", STATS, "qnnfpnnf"),
    ("marker_api_stats", STATS, "qnnfpnnf"),
    ("kernel_stats", STATS, "qnnfpnnf"),
    ("memory_copy_stats", STATS, "qnnfpnnf"),
    ("memory_allocation_stats", STATS, "qnnfpnnf"),
    ("domain_stats", STATS, "qnnfpnnf"),
];

fn shape(letter: char) -> Regex {
    let pattern = match letter {
        'q' => r#""([^"]|"")*""#,
        'a' => r#""(Agent \d+)?""#,
        'n' => r"\d+",
        'h' => r#""0x[0-9a-f]{16}""#,
        'f' => r"\d+\.\d{6}|\d\.\d{8}e[+-]\d\d",
        'p' => r"\d+\.\d\d|0\.\d{4}|\d\.\d{3}e[+-]\d\d",
        other => panic!("no shape {other}"),
    };
    Regex::new(&format!("^({pattern})$")).unwrap()
}

/// The cells of a line as they are written, quotes included.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        quoted ^= c == '"';
        if c == ',' && !quoted {
            cells.push(String::new());
        } else {
            cells.last_mut().unwrap().push(c);
        }
    }
    cells
}

/// A file's rows, after a look at every cell.
fn rows(out: &Path, (name, columns, shapes): (&str, &str, &str)) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(out.join(format!("t_{name}.csv"))).unwrap();
    let mut lines = text.lines();
    let header: Vec<String> = columns.split(',').map(|column| format!("\"{column}\"")).collect();
    assert_eq!(lines.next().unwrap(), header.join(","), "{name}");
    let shapes: Vec<Regex> = shapes.chars().map(shape).collect();
    let row = |line: &str| {
        let cells = cells(line);
        assert_eq!(cells.len(), shapes.len(), "{name}: {line}");
        let is_right = cells.iter().zip(&shapes).all(|(cell, shape)| shape.is_match(cell));
        assert!(is_right, "{name}: {line}");
        let cells = cells.into_iter().map(|cell| cell.trim_matches('"').to_owned());
        columns.split(',').map(str::to_owned).zip(cells).collect()
    };
    lines.map(row).collect()
}

fn whole(row: &BTreeMap<String, String>, column: &str) -> u64 {
    row[column].parse().unwrap()
}

/// A call or marker: what it is called, its enclosing one, its times and thread.
struct Node<'a> {
    name: &'a str,
    ancestor: u64,
    span: (u64, u64),
    thread: u64,
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap()
}

fn nodes(tool: &Value) -> BTreeMap<u64, Node<'_>> {
    let mut nodes = BTreeMap::new();
    for list in ["hip_api", "hsa_api", "marker_api"] {
        for record in tool["buffer_records"][list].as_array().unwrap() {
            let kind = &tool["strings"]["buffer_records"][number(record, "/kind") as usize];
            let node = Node {
                name: kind["operations"][number(record, "/operation") as usize]
                    .as_str()
                    .unwrap(),
                ancestor: number(record, "/correlation_id/ancestor"),
                span: (number(record, "/start_timestamp"), number(record, "/end_timestamp")),
                thread: number(record, "/thread_id"),
            };
            let id = number(record, "/correlation_id/internal");
            assert!(nodes.insert(id, node).is_none(), "{id} is there twice");
        }
    }
    nodes
}

#[test]
fn the_files_of_a_tour_of_the_api_keep_to_rocprofv3s_rules() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("shape");
    let options = [
        "rocprofv3",
        "--sys-trace",
        "--stats",
        "-f",
        "csv",
        "json",
        "-d",
        "out",
        "-o",
        "t",
    ];
    let output = rig.command(&place, &options, &["api_tour"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let out = place.join("out");
    let tables: BTreeMap<&str, _> = FILES.iter().map(|file| (file.0, rows(&out, *file))).collect();
    let text = std::fs::read_to_string(out.join("t_results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let tool = &document["rocprofiler-sdk-tool"][0];
    ids_lead_to_calls(tool);
    rows_are_those_of_json(&tables, tool);
    sums_are_those_of_the_rows(&tables);
}

fn ids_lead_to_calls(tool: &Value) {
    let nodes = nodes(tool);
    // Dense from 1, by beginning; work that no call submitted has a number of its own. What encloses a call comes before it,
    // on its thread.
    let mut ids: BTreeSet<u64> = nodes.keys().copied().collect();
    for list in ["kernel_dispatch", "memory_copy", "memory_allocation", "scratch_memory"] {
        let records = tool["buffer_records"][list].as_array().unwrap().iter();
        ids.extend(records.map(|record| number(record, "/correlation_id/internal")));
    }
    let holes: Vec<u64> = (1..=ids.len() as u64).filter(|id| !ids.contains(id)).collect();
    assert!(holes.is_empty(), "{holes:?} of {}", ids.len());
    assert!(nodes.values().is_sorted_by_key(|node| node.span.0));
    for (id, node) in &nodes {
        if let Some(outer) = nodes.get(&node.ancestor) {
            let is_around = outer.span.0 <= node.span.0 && node.span.1 <= outer.span.1;
            assert!(
                is_around && node.ancestor < *id && outer.thread == node.thread,
                "{}",
                node.name
            );
        }
    }
    let made_by = |list: &str| {
        let records = tool["buffer_records"][list].as_array().unwrap().iter();
        let ids = records.map(|record| number(record, "/correlation_id/internal"));
        let names: BTreeSet<&str> = ids.filter_map(|id| Some(nodes.get(&id)?.name)).collect();
        assert!(!names.is_empty(), "{list}");
        names
    };
    // Work belongs to the innermost call that submitted it, which is one of HSA where HSA is traced.
    for (list, begins) in [
        ("kernel_dispatch", &["hsa_signal_store_", "hsa_queue_"][..]),
        ("memory_copy", &["hsa_amd_memory_async_copy"]),
        (
            "memory_allocation",
            &["hsa_amd_memory_pool_", "hsa_memory_", "hsa_amd_vmem_"],
        ),
    ] {
        let names = made_by(list);
        let is_one = |name: &&str| begins.iter().any(|begin| name.starts_with(begin));
        assert!(names.iter().all(is_one), "{list}: {names:?}");
    }
}

fn rows_are_those_of_json(tables: &BTreeMap<&str, Vec<BTreeMap<String, String>>>, tool: &Value) {
    let records = &tool["buffer_records"];
    let pid = number(tool, "/metadata/pid");
    for (list, table) in [
        ("hip_api", "hip_api_trace"),
        ("hsa_api", "hsa_api_trace"),
        ("marker_api", "marker_api_trace"),
        ("kernel_dispatch", "kernel_trace"),
        ("memory_copy", "memory_copy_trace"),
        ("memory_allocation", "memory_allocation_trace"),
    ] {
        let listed = records[list].as_array().unwrap().iter().map(|record| {
            let [id, begin, end] =
                ["/correlation_id/internal", "/start_timestamp", "/end_timestamp"].map(|key| number(record, key));
            assert!(number(record, "/size") > 0 && number(record, "/thread_id") >= pid);
            (id, begin, end)
        });
        let written = tables[table].iter().map(|row| {
            let [id, begin, end] =
                ["Correlation_Id", "Start_Timestamp", "End_Timestamp"].map(|column| whole(row, column));
            assert!(begin < end || begin == end && list == "marker_api", "{table}: {row:?}");
            (id, begin, end)
        });
        assert!(listed.eq(written), "{list}");
    }
    let dispatches: BTreeSet<u64> = tables["kernel_trace"]
        .iter()
        .map(|row| whole(row, "Dispatch_Id"))
        .collect();
    assert!(dispatches.iter().copied().eq(1..=tables["kernel_trace"].len() as u64));
    let kernels = records["kernel_dispatch"].as_array().unwrap();
    for (row, record) in tables["kernel_trace"].iter().zip(kernels) {
        let info = &record["dispatch_info"];
        for (column, path) in [
            ("Dispatch_Id", "/dispatch_id"),
            ("Kernel_Id", "/kernel_id"),
            ("Queue_Id", "/queue_id/handle"),
            ("Scratch_Size", "/private_segment_size"),
            ("Workgroup_Size_X", "/workgroup_size/x"),
            ("Grid_Size_Z", "/grid_size/z"),
        ] {
            assert_eq!(whole(row, column), number(info, path), "{column}");
        }
        let symbol = &tool["kernel_symbols"][number(info, "/kernel_id") as usize];
        assert_eq!(
            row["Kernel_Name"],
            symbol["formatted_kernel_name"].as_str().unwrap().replace('"', "\"\"")
        );
        assert_eq!(number(symbol, "/kernel_id"), number(info, "/kernel_id"));
        assert!(symbol["kernel_name"].as_str().unwrap().strip_suffix(".kd").is_some());
        assert_eq!(whole(row, "LDS_Block_Size") % 512, 0);
        assert!(whole(row, "Queue_Id") > 0 && whole(row, "Kernel_Id") > 0);
    }
    for row in &tables["memory_allocation_trace"] {
        let is_free = row["Operation"].ends_with("FREE");
        assert_eq!(
            (row["Agent_Id"].is_empty(), whole(row, "Allocation_Size") == 0),
            (is_free, is_free),
            "{row:?}"
        );
    }
}

fn sums_are_those_of_the_rows(tables: &BTreeMap<&str, Vec<BTreeMap<String, String>>>) {
    for (domain, trace, stats, column) in [
        ("HIP_API", "hip_api_trace", "hip_api_stats", "Function"),
        ("HSA_API", "hsa_api_trace", "hsa_api_stats", "Function"),
        ("MARKER_API", "marker_api_trace", "marker_api_stats", "Function"),
        ("KERNEL_DISPATCH", "kernel_trace", "kernel_stats", "Kernel_Name"),
        ("MEMORY_COPY", "memory_copy_trace", "memory_copy_stats", "Direction"),
        (
            "MEMORY_ALLOCATION",
            "memory_allocation_trace",
            "memory_allocation_stats",
            "Operation",
        ),
    ] {
        let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for row in &tables[trace] {
            let sum = sums.entry(&row[column]).or_default();
            *sum = (
                sum.0 + 1,
                sum.1 + whole(row, "End_Timestamp") - whole(row, "Start_Timestamp"),
            );
        }
        let told = |row: &BTreeMap<String, String>| (whole(row, "Calls"), whole(row, "TotalDurationNs"));
        let written: BTreeMap<&str, (u64, u64)> = tables[stats].iter().map(|row| (&*row["Name"], told(row))).collect();
        assert_eq!(written, sums, "{stats}");
        let totals = || tables[stats].iter().map(|row| whole(row, "TotalDurationNs"));
        assert!(totals().is_sorted_by(|one, next| one >= next), "{stats}");
        let all = tables["domain_stats"].iter().find(|row| row["Name"] == domain).unwrap();
        assert_eq!(told(all), (tables[trace].len() as u64, totals().sum()), "{domain}");
        let shares = tables[stats]
            .iter()
            .map(|row| row["Percentage"].parse::<f64>().unwrap());
        assert!((shares.sum::<f64>() - 100.0).abs() < 0.5, "{stats}");
    }
}
