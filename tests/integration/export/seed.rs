//! The example tables of the seed's manual, with `--layout seed`: header, shape of the cells, order of the rows. Counters
//! (tables 9 and 10) are looked at where they are collected.

use crate::kit::demo::{self, export, roctop};
use crate::kit::directory::place;
use crate::kit::table::Table;

/// The shape of a cell.
#[derive(Clone, Copy, Debug)]
enum Cell {
    /// One of these words.
    Words(&'static [&'static str]),
    /// A text that is not empty.
    Text,
    /// A whole number.
    Number,
    /// A whole number above 0.
    Positive,
    /// Six decimals, or eight of scientific notation.
    Float,
    /// Two or four decimals, or three of scientific notation.
    Percent,
}
use Cell::{Float, Number, Percent, Positive, Text, Words};

const CALLS: [&str; 7] = [
    "Domain",
    "Function",
    "Process_Id",
    "Thread_Id",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
];

fn fits(cell: &str, shape: Cell) -> bool {
    let decimals = |cell: &str| cell.split_once('.').map_or(0, |(_, rest)| rest.len());
    let is_scientific = |digits: usize| {
        cell.split_once('e').is_some_and(|(number, exponent)| {
            decimals(number) == digits && exponent.len() == 3 && exponent.starts_with(['+', '-'])
        })
    };
    match shape {
        Words(words) => words.contains(&cell),
        Text => !cell.is_empty(),
        Number => cell.parse::<u64>().is_ok(),
        Positive => cell.parse::<u64>().is_ok_and(|number| number > 0),
        Float => cell.parse::<f64>().is_ok() && (decimals(cell) == 6 || is_scientific(8)),
        Percent => cell.parse::<f64>().is_ok() && ([2, 4].contains(&decimals(cell)) || is_scientific(3)),
    }
}

fn check(table: &Table, header: &[&str], shapes: &[Cell]) {
    assert_eq!(table.header, header);
    assert!(!table.rows.is_empty());
    for row in &table.rows {
        for ((cell, shape), name) in row.iter().zip(shapes).zip(header) {
            assert!(fits(cell, *shape), "{name}: '{cell}' is not {shape:?}");
        }
    }
}

/// Rows come in order of their ends.
fn in_order(table: &Table) {
    let (begin, end) = (table.numbers("Start_Timestamp"), table.numbers("End_Timestamp"));
    assert!(end.is_sorted());
    assert!(begin.iter().zip(&end).all(|(begin, end)| begin <= end));
}

#[test]
fn tables_2_3_and_5_calls_and_markers() {
    let files = export("seed-calls", &["--layout", "seed"]);
    for (file, domains) in [
        ("hip_api_trace.csv", &["HIP_RUNTIME_API", "HIP_COMPILER_API"][..]),
        ("marker_api_trace.csv", &["MARKER_CORE_API"][..]),
    ] {
        let table = Table::read(&files[file]);
        let shapes = [Words(domains), Text, Positive, Number, Positive, Positive, Positive];
        check(&table, &CALLS, &shapes);
        in_order(&table);
    }
    let markers = Table::read(&files["marker_api_trace.csv"]);
    // The message stands where the function does.
    assert!(markers.column("Function").iter().all(|text| !text.starts_with("roctx")));
}

#[test]
fn table_6_kernels() {
    let files = export("seed-kernels", &["--layout", "seed"]);
    let table = Table::read(&files["kernel_trace.csv"]);
    let header = "Kind Agent_Id Queue_Id Kernel_Id Kernel_Name Correlation_Id Start_Timestamp End_Timestamp \
Private_Segment_Size Group_Segment_Size Workgroup_Size_X Workgroup_Size_Y Workgroup_Size_Z Grid_Size_X Grid_Size_Y \
Grid_Size_Z";
    let mut shapes = vec![
        Words(&["KERNEL_DISPATCH"]),
        Number,
        Positive,
        Positive,
        Text,
        Number,
        Positive,
        Positive,
    ];
    shapes.extend([Number; 2]);
    shapes.extend([Positive; 6]);
    check(&table, &header.split(' ').collect::<Vec<_>>(), &shapes);
    in_order(&table);
}

#[test]
fn table_7_copies() {
    let files = export("seed-copies", &["--layout", "seed"]);
    let table = Table::read(&files["memory_copy_trace.csv"]);
    let header = "Kind Direction Source_Agent_Id Destination_Agent_Id Correlation_Id Start_Timestamp End_Timestamp";
    let directions = Words(&["HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE"]);
    let shapes = [
        Words(&["MEMORY_COPY"]),
        directions,
        Number,
        Number,
        Number,
        Positive,
        Positive,
    ];
    check(&table, &header.split(' ').collect::<Vec<_>>(), &shapes);
    in_order(&table);
}

#[test]
fn table_8_statistics() {
    let files = export("seed-stats", &["--layout", "seed", "--stats"]);
    for name in ["hip_stats.csv", "kernel_stats.csv", "memory_copy_stats.csv"] {
        let table = Table::read(&files[name]);
        let header = "Name Calls TotalDurationNs AverageNs Percentage MinNs MaxNs StdDev";
        let shapes = [Text, Positive, Number, Float, Percent, Number, Number, Float];
        check(&table, &header.split(' ').collect::<Vec<_>>(), &shapes);
        assert!(
            table.numbers("TotalDurationNs").iter().rev().is_sorted(),
            "{name}: the greatest first"
        );
    }
    assert!(!files.contains_key("domain_stats.csv") && !files.contains_key("marker_stats.csv"));
}

#[test]
fn the_table_of_agents_is_written_with_everything() {
    let files = export("seed-agents", &["--layout", "seed"]);
    let agents = Table::read(&files["agent_info.csv"]);
    assert_eq!((agents.header.len(), agents.header[0].as_str()), (53, "Node_Id"));
    assert_eq!(
        agents.numbers("Logical_Node_Id"),
        (0..agents.rows.len() as u64).collect::<Vec<_>>()
    );
    let place = place("seed-nothing");
    let words = [
        "export",
        demo::recording().to_str().unwrap(),
        "-d",
        place.to_str().unwrap(),
        "--filter",
        "dur>9000s",
    ];
    let output = roctop(&words);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such records"));
}
