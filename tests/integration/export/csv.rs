//! CSV files: columns, cells and rules of rocprofv3, in its present layout and in the seed's.

use crate::kit::columns::{ALLOCATIONS, CALLS, COPIES, IN_FLIGHT, KERNELS, SEED_COPIES, SEED_KERNELS, STATS};
use crate::kit::demo::{export, recording, roctop};
use crate::kit::directory::place;
use crate::kit::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Takes out the file of kernels that the demo had in flight at its end. How many there are depends on that moment.
fn take_in_flight(files: &mut BTreeMap<String, PathBuf>) {
    if let Some(file) = files.remove("kernel_in_flight.csv") {
        let table = Table::read(&file);
        assert_eq!(table.header.join(","), IN_FLIGHT);
        assert!(!table.rows.is_empty());
    }
}

#[test]
fn tables_have_the_columns_of_rocprofv3() {
    let mut files = export("columns", &["--stats"]);
    take_in_flight(&mut files);
    let expected = [
        ("kernel_trace.csv", KERNELS),
        ("hip_api_trace.csv", CALLS),
        ("memory_copy_trace.csv", COPIES),
        ("marker_api_trace.csv", CALLS),
        ("memory_allocation_trace.csv", ALLOCATIONS),
        ("memory_allocation_stats.csv", STATS),
        ("hip_api_stats.csv", STATS),
        ("kernel_stats.csv", STATS),
        ("memory_copy_stats.csv", STATS),
        ("marker_api_stats.csv", STATS),
        ("domain_stats.csv", STATS),
    ];
    for (name, columns) in expected {
        assert_eq!(Table::read(&files[name]).header.join(","), columns, "{name}");
    }
    let agents = Table::read(&files["agent_info.csv"]);
    assert_eq!(agents.header.len(), 53);
    assert_eq!(files.len(), expected.len() + 1);
    let kernels = Table::read(&files["kernel_trace.csv"]);
    assert!(kernels.column("Agent_Id").iter().all(|cell| cell.starts_with("Agent ")));
    assert!(kernels.column("Kind").iter().all(|cell| *cell == "KERNEL_DISPATCH"));
    assert!(kernels.numbers("LDS_Block_Size").iter().all(|size| size % 512 == 0));
    let copies = Table::read(&files["memory_copy_trace.csv"]);
    assert!(
        copies
            .column("Direction")
            .iter()
            .all(|cell| cell.starts_with("MEMORY_COPY_"))
    );
}

#[test]
fn rows_are_in_order_of_completion_and_work_belongs_to_a_call() {
    let files = export("order", &[]);
    let mut calls = BTreeSet::new();
    for (name, path) in files.iter().filter(|(name, _)| name.contains("trace")) {
        let table = Table::read(path);
        let (begin, end) = (table.numbers("Start_Timestamp"), table.numbers("End_Timestamp"));
        assert!(end.is_sorted(), "{name}");
        assert!(begin.iter().zip(&end).all(|(begin, end)| begin <= end), "{name}");
        let ids = table.numbers("Correlation_Id");
        assert!(ids.iter().all(|id| *id > 0), "{name}");
        if name.contains("api") {
            let distinct: BTreeSet<u64> = ids.iter().copied().collect();
            assert_eq!(distinct.len(), ids.len(), "{name}: an id of its own for each call");
            calls.extend(distinct);
        }
    }
    let dense: BTreeSet<u64> = (1..=calls.len() as u64).collect();
    assert_eq!(calls, dense, "ids are dense from 1");
    for name in ["kernel_trace.csv", "memory_copy_trace.csv"] {
        let table = Table::read(&files[name]);
        assert!(
            table.numbers("Correlation_Id").iter().all(|id| calls.contains(id)),
            "{name}"
        );
    }
}

#[test]
fn statistics_are_those_of_the_rows() {
    let files = export("stats", &["--stats"]);
    let pairs = [
        ("hip_api", "Function"),
        ("kernel", "Kernel_Name"),
        ("memory_copy", "Direction"),
        ("marker_api", "Function"),
        ("memory_allocation", "Operation"),
    ];
    let mut domains: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (kind, column) in pairs {
        let trace = Table::read(&files[&format!("{kind}_trace.csv")]);
        let mut expected: BTreeMap<String, (u64, u64, u64, u64)> = BTreeMap::new();
        let spans = trace
            .numbers("Start_Timestamp")
            .into_iter()
            .zip(trace.numbers("End_Timestamp"));
        for (name, (begin, end)) in trace.column(column).iter().zip(spans) {
            let duration = end - begin;
            let row = expected.entry((*name).to_owned()).or_insert((0, 0, u64::MAX, 0));
            *row = (row.0 + 1, row.1 + duration, row.2.min(duration), row.3.max(duration));
        }
        let stats = Table::read(&files[&format!("{kind}_stats.csv")]);
        assert_eq!(stats.rows.len(), expected.len());
        let totals = stats.numbers("TotalDurationNs");
        assert!(totals.iter().rev().is_sorted(), "the greatest first");
        let whole: u64 = totals.iter().sum();
        for row in &stats.rows {
            let (calls, total, min, max) = expected[&row[0]];
            let number = |at: usize| row[at].parse::<u64>().unwrap();
            assert_eq!((number(1), number(2), number(5), number(6)), (calls, total, min, max));
            let mean = total as f64 / calls as f64;
            assert!((row[3].parse::<f64>().unwrap() - mean).abs() < 1e-3);
            let share = total as f64 * 100.0 / whole as f64;
            assert!((row[4].parse::<f64>().unwrap() - share).abs() < 0.006);
        }
        let name = match kind {
            "kernel" => "KERNEL_DISPATCH",
            "memory_copy" => "MEMORY_COPY",
            "hip_api" => "HIP_API",
            "memory_allocation" => "MEMORY_ALLOCATION",
            _ => "MARKER_API",
        };
        domains.insert(name, (stats.numbers("Calls").iter().sum(), whole));
    }
    let stats = Table::read(&files["domain_stats.csv"]);
    for (name, row) in stats.column("Name").iter().zip(0..) {
        let found = (stats.numbers("Calls")[row], stats.numbers("TotalDurationNs")[row]);
        assert_eq!(found, domains[name]);
    }
    assert_eq!(stats.rows.len(), domains.len());
}

#[test]
fn the_seeds_layout_has_its_own_columns_and_names() {
    let mut files = export("seed", &["--stats", "--layout", "seed"]);
    take_in_flight(&mut files);
    for (name, columns) in [
        ("kernel_trace.csv", SEED_KERNELS),
        ("hip_api_trace.csv", CALLS),
        ("memory_copy_trace.csv", SEED_COPIES),
        ("marker_api_trace.csv", CALLS),
        ("hip_stats.csv", STATS),
        ("kernel_stats.csv", STATS),
        ("memory_copy_stats.csv", STATS),
    ] {
        assert_eq!(Table::read(&files[name]).header.join(","), columns, "{name}");
    }
    assert_eq!(files.len(), 8, "{files:?}");
    let calls = Table::read(&files["hip_api_trace.csv"]);
    assert!(calls.column("Domain").iter().all(|cell| *cell == "HIP_RUNTIME_API"));
    let markers = Table::read(&files["marker_api_trace.csv"]);
    assert!(markers.column("Domain").iter().all(|cell| *cell == "MARKER_CORE_API"));
    let copies = Table::read(&files["memory_copy_trace.csv"]);
    assert!(copies.column("Direction").contains(&"HOST_TO_DEVICE"));
    assert!(
        copies
            .column("Source_Agent_Id")
            .iter()
            .all(|cell| cell.parse::<u32>().is_ok())
    );
}

#[test]
fn kernels_are_called_as_asked() {
    let names = |place: &str, options: &[&str]| {
        let files = export(place, options);
        let table = Table::read(&files["kernel_trace.csv"]);
        let names = table.column("Kernel_Name").into_iter().map(str::to_owned);
        names.collect::<BTreeSet<String>>()
    };
    let plain = names("plain", &[]);
    assert!(plain.iter().any(|name| name.contains('<') && name.contains('(')));
    let mangled = names("mangled", &["-M"]);
    assert!(
        mangled.iter().all(|name| name.strip_suffix(".kd").is_some()),
        "{mangled:?}"
    );
    let truncated = names("truncated", &["-T"]);
    assert!(!truncated.iter().any(|name| name.contains(['<', '('])), "{truncated:?}");
    let renamed = names("renamed", &["--kernel-rename"]);
    assert!(
        renamed.contains("forward") && renamed.contains("backward"),
        "{renamed:?}"
    );
    let both = roctop(&["export", recording().to_str().unwrap(), "-M", "-T"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn filters_and_ranges_choose_rows() {
    let all = Table::read(&export("all", &[])["kernel_trace.csv"]);
    let slow = Table::read(&export("slow", &["--filter", "dur>200us"])["kernel_trace.csv"]);
    let is_slow = |(begin, end): &(u64, u64)| end - begin > 200_000;
    let spans = |table: &Table| {
        let begin = table.numbers("Start_Timestamp").into_iter();
        begin.zip(table.numbers("End_Timestamp")).collect::<Vec<(u64, u64)>>()
    };
    assert_eq!(slow.rows.len(), spans(&all).iter().filter(|span| is_slow(span)).count());
    assert!(slow.rows.len() < all.rows.len() && !slow.rows.is_empty());
    let early = Table::read(&export("early", &["--range", "..300ms"])["kernel_trace.csv"]);
    assert!(early.rows.len() < all.rows.len() && !early.rows.is_empty());
    let first = spans(&all).iter().map(|span| span.0).min().unwrap();
    assert!(spans(&early).iter().all(|span| span.0 <= first + 300_000_000));
    for (option, value, word) in [("--filter", "((", "column"), ("--range", "2s..1s", "2s..1s")] {
        let place = place("wrong");
        let words = [
            "export",
            recording().to_str().unwrap(),
            "-d",
            place.to_str().unwrap(),
            option,
            value,
        ];
        let output = roctop(&words);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(word), "{told}");
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
    }
}

#[test]
fn kernels_have_the_names_that_the_user_gave_them_and_filters_know_these() {
    let place = place("aliases");
    let settings = place.join("config.toml");
    std::fs::write(
        &settings,
        "[[alias]]\nkernel = \"^_Z.*softmax\"\nname = \"the softmax\"\n",
    )
    .unwrap();
    let names = |options: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"));
        command
            .arg("export")
            .arg(recording())
            .arg("-d")
            .arg(&place)
            .args(options);
        let output = command.env("ROCTOP_CONFIG", &settings).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let files = String::from_utf8(output.stdout).unwrap();
        let kernels = files.lines().find(|path| path.ends_with("kernel_trace.csv")).unwrap();
        let table = Table::read(std::path::Path::new(kernels));
        let names: BTreeSet<String> = table.column("Kernel_Name").iter().map(ToString::to_string).collect();
        names
    };
    let named = names(&[]);
    assert!(named.contains("the softmax") && named.len() > 1, "{named:?}");
    assert!(!named.iter().any(|name| name.contains("softmax_x")), "{named:?}");
    assert_eq!(
        names(&["--filter", "\"the softmax\""]),
        ["the softmax".to_owned()].into()
    );
    let mangled = names(&["-M"]);
    assert!(!mangled.contains("the softmax"), "{mangled:?}");
}
