//! `kineto.pt.trace.json`: the records of the CSV files under Kineto's names, and numbers of Holistic Trace Analysis that
//! equal those of the CSV files.

use super::ranges::{Ranges, Timed, rows};
use crate::kit::demo::{export, recording, roctop};
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use crate::kit::python::{python, run_python};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// ns of a time in µs.
fn nanos(micros: &Value) -> u64 {
    (micros.as_f64().unwrap() * 1000.0).round() as u64
}

/// Events of a category.
fn of<'a>(trace: &'a Value, category: &str) -> Vec<&'a Value> {
    let events = trace["traceEvents"].as_array().unwrap().iter();
    events.filter(|event| event["cat"] == category).collect()
}

/// Name, correlation id, begin after `origin` and end of each event, sorted.
fn timed(events: &[&Value]) -> Vec<(String, u64, u64, u64)> {
    let mut found: Vec<_> = events
        .iter()
        .map(|event| {
            let (begin, id) = (nanos(&event["ts"]), &event["args"]["correlation"]);
            let name = event["name"].as_str().unwrap().to_owned();
            (name, id.as_u64().unwrap_or(0), begin, begin + nanos(&event["dur"]))
        })
        .collect();
    found.sort();
    found
}

fn of_rows(rows: &[Timed], origin: u64, name: impl Fn(&str) -> String) -> Vec<(String, u64, u64, u64)> {
    let mut found: Vec<_> = rows
        .iter()
        .map(|row| (name(&row.name), row.id, row.begin - origin, row.end - origin))
        .collect();
    found.sort();
    found
}

fn copied(direction: &str) -> String {
    match direction {
        "MEMORY_COPY_HOST_TO_DEVICE" => "Memcpy HtoD (Host -> Device)",
        "MEMORY_COPY_DEVICE_TO_HOST" => "Memcpy DtoH (Device -> Host)",
        "MEMORY_COPY_DEVICE_TO_DEVICE" => "Memcpy DtoD (Device -> Device)",
        other => panic!("{other}"),
    }
    .to_owned()
}

#[test]
fn every_record_is_an_event_of_its_category() {
    let files = export("kineto", &["--format", "kineto,csv"]);
    let trace = read(&files["kineto.pt.trace.json"]);
    let out = files["kernel_trace.csv"].parent().unwrap();
    let of_file = |file: &str, name: &str| rows(&out.join(format!("t_{file}")), name);
    let kernels = of_file("kernel_trace.csv", "Kernel_Name");
    let copies = of_file("memory_copy_trace.csv", "Direction");
    let calls = of_file("hip_api_trace.csv", "Function");
    let markers = of_file("marker_api_trace.csv", "Function");
    let all = [&kernels, &copies, &calls, &markers].into_iter().flatten();
    let origin = all.map(|row| row.begin).min().unwrap();
    let same = str::to_owned;
    assert_eq!(timed(&of(&trace, "kernel")), of_rows(&kernels, origin, same));
    let left_out = ["hipGetDevice", "hipSetDevice", "hipGetLastError", "hipGetDeviceCount"];
    let is_kept = |call: &&Timed| !call.name.starts_with("__hip") && !left_out.contains(&&*call.name);
    let kept: Vec<Timed> = calls.iter().filter(is_kept).cloned().collect();
    assert!(kept.len() < calls.len(), "Kineto leaves some out");
    assert_eq!(timed(&of(&trace, "cuda_runtime")), of_rows(&kept, origin, same));
    let moved = [of(&trace, "gpu_memcpy"), of(&trace, "gpu_memset")].concat();
    let is_fill = |event: &&Value| event["name"] == "Memset (Device)";
    let mut named = timed(&moved);
    named
        .iter_mut()
        .filter(|copy| copy.0 == "Memset (Device)")
        .for_each(|fill| fill.0 = copied("MEMORY_COPY_DEVICE_TO_DEVICE"));
    named.sort();
    assert_eq!(named, of_rows(&copies, origin, copied));
    assert!(of(&trace, "gpu_memset").iter().all(is_fill));
    let ranges: Vec<Timed> = markers.iter().filter(|row| row.end > row.begin).cloned().collect();
    let named =
        |rows: Vec<(String, u64, u64, u64)>| -> Vec<_> { rows.into_iter().map(|row| (row.0, row.2, row.3)).collect() };
    let mut annotations = timed(
        &of(&trace, "user_annotation")
            .into_iter()
            .filter(|event| event["ph"] == "X")
            .collect::<Vec<_>>(),
    );
    let begins = of(&trace, "user_annotation")
        .into_iter()
        .filter(|event| event["ph"] == "b");
    for begin in begins {
        let mut own = of(&trace, "user_annotation").into_iter();
        let end = own
            .find(|event| event["ph"] == "e" && event["id"] == begin["id"])
            .unwrap();
        let name = begin["name"].as_str().unwrap().to_owned();
        annotations.push((name, 0, nanos(&begin["ts"]), nanos(&end["ts"])));
    }
    let (mut found, mut expected) = (named(annotations), named(of_rows(&ranges, origin, same)));
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(of(&trace, "cpu_instant_event").len(), markers.len() - ranges.len());
}

#[test]
fn work_is_joined_to_its_call_and_its_range() {
    let files = export("kineto-joins", &["--format", "kineto,csv"]);
    let trace = read(&files["kineto.pt.trace.json"]);
    let ranges = Ranges::read(files["kernel_trace.csv"].parent().unwrap(), "t");
    let calls = of(&trace, "cuda_runtime");
    let ids: BTreeSet<u64> = calls
        .iter()
        .map(|call| call["args"]["correlation"].as_u64().unwrap())
        .collect();
    let arrows = of(&trace, "ac2g");
    let ends = |phase: &str| -> BTreeSet<u64> {
        let own = arrows.iter().filter(|arrow| arrow["ph"] == phase);
        own.map(|arrow| arrow["id"].as_u64().unwrap()).collect()
    };
    let mut inside = 0;
    let mut on_gpu: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let work = [of(&trace, "kernel"), of(&trace, "gpu_memcpy"), of(&trace, "gpu_memset")].concat();
    for event in [&calls[..], &work].concat() {
        let arguments = &event["args"];
        let id = arguments["correlation"].as_u64().unwrap();
        let innermost = ranges.around_work(id).last().map(|range| range.id);
        assert_eq!(arguments["External id"].as_u64(), innermost, "{event}");
        let is_work = arguments["stream"].is_u64();
        if let (true, Some(range)) = (is_work, innermost) {
            let (begin, end) = (nanos(&event["ts"]), nanos(&event["ts"]) + nanos(&event["dur"]));
            let known = on_gpu.entry(range).or_insert((begin, end));
            *known = (known.0.min(begin), known.1.max(end));
            inside += 1;
        }
    }
    assert!(inside > 0, "the workload launches inside ranges");
    let caused: BTreeSet<u64> = work
        .iter()
        .map(|event| event["args"]["correlation"].as_u64().unwrap())
        .collect();
    assert_eq!(ends("f"), caused);
    assert_eq!(ends("s"), caused.intersection(&ids).copied().collect());
    assert!(!ends("s").is_empty());
    let mut annotated: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for event in of(&trace, "gpu_user_annotation") {
        let range = event["args"]["External id"].as_u64().unwrap();
        let (begin, end) = (nanos(&event["ts"]) + 1, nanos(&event["ts"]) + nanos(&event["dur"]) - 1);
        let known = annotated.entry(range).or_insert((begin, end));
        *known = (known.0.min(begin), known.1.max(end));
    }
    assert_eq!(annotated, on_gpu);
    for event in work {
        assert!(event["args"]["stream"].as_u64().unwrap() > 0 && event["tid"] == event["args"]["stream"]);
        assert_eq!(event["pid"], event["args"]["device"]);
    }
}

/// Prints what Holistic Trace Analysis finds in the traces of a directory.
const ANALYSIS: &str = r"
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
_, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, include_memory_kernels=True)
times = analysis.get_temporal_breakdown(visualize=False)
ranks = sorted(int(rank) for rank in times['rank'])
idle = {}
for rank in ranks:
    found, _ = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False, consecutive_kernel_delay=1)
    idle[rank] = found[['stream', 'idle_category', 'idle_time']].values.tolist()
print(json.dumps({
    'kernels': kernels[['rank', 'name', 'sum (us)', 'max (us)', 'min (us)']].values.tolist(),
    'times': times[['rank', 'idle_time(us)', 'compute_time(us)', 'non_compute_time(us)', 'kernel_time(us)']].values.tolist(),
    'idle': idle,
}))
";

/// Total length of spans, each instant counted once.
fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut total, mut until) = (0, 0);
    for (begin, end) in spans {
        total += end.max(until) - begin.max(until);
        until = until.max(end);
    }
    total
}

/// µs of the analysis equal ns up to the rounding of its sums.
fn is_near(micros: &Value, nanos: i64) -> bool {
    (micros.as_f64().unwrap() * 1000.0 - nanos as f64).abs() <= 20.0
}

/// Idle time of a stream between consecutive work: while the host had not begun the next call, shorter than 1 µs, other.
fn idle(work: &[Timed], calls: &BTreeMap<u64, Timed>) -> BTreeMap<&'static str, i64> {
    let mut sorted = work.to_vec();
    sorted.sort_by_key(|row| row.begin);
    // The first work of a stream has no gap before it.
    let mut idle = BTreeMap::from([("other", 0)]);
    for pair in sorted.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let gap = after.begin as i64 - before.end as i64;
        let category = match calls.get(&after.id) {
            Some(call) if call.begin > before.end => "host_wait",
            _ if gap < 1000 => "kernel_wait",
            _ => "other",
        };
        *idle.entry(category).or_insert(0) += gap;
    }
    idle
}

#[test]
fn holistic_trace_analysis_finds_the_numbers_of_the_csv_files() {
    let Some(python) = python("hta.trace_analysis") else {
        return;
    };
    let place = place("hta");
    for rank in 0..2u32 {
        let made = Made {
            records: 6_000,
            rank: rank as i32,
            pid: 4000 + rank * 100,
            slowness: 1 + u64::from(rank),
            ..Made::default()
        };
        make(&place.join(format!("run/rank-{rank}")), &made);
    }
    let (run, out) = (place.join("run"), place.join("out"));
    let words = [
        "export",
        run.to_str().unwrap(),
        "--format",
        "kineto,csv",
        "-d",
        out.to_str().unwrap(),
    ];
    let output = roctop(&words);
    assert!(output.status.success(), "{output:?}");
    let exact = |path: &Path| {
        // By default the analysis rounds every time to µs.
        let script = format!("import os\nos.environ['HTA_DISABLE_NS_ROUNDING'] = '1'\n{ANALYSIS}");
        let told = run_python(&python, &script, &[path.to_str().unwrap()]);
        serde_json::from_str::<Value>(told.lines().last().unwrap()).unwrap()
    };
    let found = exact(&out);
    assert_eq!(found["times"].as_array().unwrap().len(), 2);
    for rank in 0..2u64 {
        let stem = (4000 + rank * 100).to_string();
        let kernels = rows(&out.join(format!("{stem}_kernel_trace.csv")), "Kernel_Name");
        let mut copies = rows(&out.join(format!("{stem}_memory_copy_trace.csv")), "Direction");
        for copy in &mut copies {
            copy.name = copied(&copy.name);
        }
        let work = [&kernels[..], &copies].concat();
        let mut sums: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
        for row in &work {
            let length = row.end - row.begin;
            let sum = sums.entry(&row.name).or_insert((0, 0, u64::MAX));
            *sum = (sum.0 + length, sum.1.max(length), sum.2.min(length));
        }
        let own = found["kernels"].as_array().unwrap().iter().filter(|row| row[0] == rank);
        let own: Vec<&Value> = own.collect();
        assert_eq!(own.len(), sums.len(), "{own:?}");
        for row in own {
            let (sum, longest, shortest) = sums[row[1].as_str().unwrap()];
            for (found, expected) in [(&row[2], sum), (&row[3], longest), (&row[4], shortest)] {
                assert!(
                    is_near(found, expected as i64),
                    "{row} is not {sum}, {longest}, {shortest}"
                );
            }
        }
        let spans = |rows: &[Timed]| rows.iter().map(|row| (row.begin, row.end)).collect::<Vec<_>>();
        let whole = work.iter().map(|row| row.end).max().unwrap() - work.iter().map(|row| row.begin).min().unwrap();
        let (busy, computed) = (covered(spans(&work)), covered(spans(&kernels)));
        let times = found["times"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row[0] == rank)
            .unwrap();
        let expected = [whole - busy, computed, busy - computed, whole];
        for (at, expected) in expected.into_iter().enumerate() {
            assert!(is_near(&times[at + 1], expected as i64), "{times} is not {expected:?}");
        }
        let calls = Ranges::read(&out, &stem).calls;
        let expected = idle(&work, &calls);
        let own = found["idle"][rank.to_string()].as_array().unwrap();
        assert_eq!(own.len(), expected.len(), "{own:?} {expected:?}");
        for row in own {
            assert_eq!(row[0], 1, "the stream");
            assert!(
                is_near(&row[2], expected[row[1].as_str().unwrap()]),
                "{row} {expected:?}"
            );
        }
    }
}

#[test]
fn a_filter_keeps_the_range_of_what_passes() {
    let all = read(&export("kineto-all", &["--format", "kineto"])["kineto.pt.trace.json"]);
    let own = read(&export("kineto-filter", &["--format", "kineto", "--filter", "layer_norm"])["kineto.pt.trace.json"]);
    assert!(recording().exists());
    let kernels = of(&own, "kernel");
    assert!(
        !kernels.is_empty()
            && kernels
                .iter()
                .all(|event| event["name"].as_str().unwrap().contains("layer_norm"))
    );
    let of_all = of(&all, "kernel");
    for kernel in kernels {
        let id = &kernel["args"]["correlation"];
        let same = of_all.iter().find(|event| event["args"]["correlation"] == *id).unwrap();
        assert_eq!(same["args"], kernel["args"]);
    }
    assert!(of(&own, "user_annotation").is_empty() && !of(&own, "gpu_user_annotation").is_empty());
}
