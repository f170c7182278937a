//! What a recording of a launched program is good for.

use super::{place, roctop, run, text, word};
use crate::kit::columns::{CALLS, COPIES, KERNELS};
use crate::kit::work::{Work, wait_for_bytes};
use std::path::Path;
use std::process::Stdio;

/// Records some steps of the demo.
fn record(recording: &Path) {
    let work = Work::begin(recording.parent().unwrap());
    let mut command = roctop();
    let demo = env!("CARGO_BIN_EXE_roctop");
    command.args(["record", "-o", word(recording), "--", demo, "__demo"]);
    command.env("ROCTOP_DEMO_WORKER", work.until());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for_bytes(recording, 100_000);
    work.done();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_recording_is_exported_and_summed_up() {
    let place = place("files");
    let recording = place.join("rec");
    record(&recording);
    let files = place.join("out");
    let exported = run(&[
        "export",
        word(&recording),
        "--format",
        "CSV",
        "-d",
        word(&files),
        "-o",
        "demo",
    ]);
    assert_eq!(exported.status.code(), Some(0), "{}", text(&exported.stderr));
    for (name, columns) in [
        ("kernel_trace", KERNELS),
        ("memory_copy_trace", COPIES),
        ("hip_api_trace", CALLS),
        ("marker_api_trace", CALLS),
    ] {
        let table = std::fs::read_to_string(files.join(format!("demo_{name}.csv"))).unwrap();
        let header: Vec<String> = columns.split(',').map(|column| format!("\"{column}\"")).collect();
        assert_eq!(table.lines().next(), Some(header.join(",").as_str()), "{name}");
        assert!(table.lines().count() > 10, "{name}");
    }
    assert!(files.join("demo_agent_info.csv").exists());
    let summary = run(&["summary", word(&recording), "--format", "json"]);
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout).unwrap();
    assert!(summary["totals"]["dispatches"].as_u64() > Some(100));
    assert_eq!(summary["totals"]["lost"], 0);
    assert_eq!(summary["processes"][0]["exit"]["code"], 0);
}

#[test]
fn times_on_screen_and_ranges_of_the_command_line_count_from_the_same_moment() {
    use roctop::item::Item;
    let place = place("range");
    let recording = place.join("rec");
    record(&recording);
    let opened = [roctop::recording::Recording::open(&recording).unwrap()];
    let whole = roctop::recording::Merged::new(opened.iter().collect()).unwrap();
    let mut store = roctop::model::Store::new(roctop::model::Options {
        mode: roctop::model::Mode::Replay,
        ..roctop::model::Options::default()
    });
    let mut dispatches = Vec::new();
    let mut take = |items: Vec<Item>| {
        store.apply_all(&items);
        dispatches.extend(items.iter().filter_map(|item| match item {
            Item::Dispatch(dispatch) => Some(dispatch.span),
            _ => None,
        }));
    };
    whole.items(None, &mut |_| (), &mut take).unwrap();
    let origin = store.snapshot(roctop::model::Fresh::All).origin;
    assert_eq!(whole.beginning().unwrap(), Some(origin));
    // What the screen measures in the middle, and what the files have of it.
    let mut begins: Vec<u64> = dispatches.iter().map(|span| span.begin).collect();
    begins.sort_unstable();
    let (from, to) = (begins[begins.len() / 3], begins[begins.len() / 2]);
    let measured = dispatches
        .iter()
        .filter(|span| span.end > from && span.end <= to)
        .count();
    assert!(measured > 10 && measured < dispatches.len() / 2, "{measured}");
    let files = place.join("out");
    let range = format!("{}ns..{}ns", from - origin, to - origin);
    let words = [
        "export",
        word(&recording),
        "--format",
        "csv",
        "--range",
        &range,
        "-o",
        "part",
    ];
    let exported = roctop().args(words).args(["-d", word(&files)]).output().unwrap();
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    let table = std::fs::read_to_string(files.join("part_kernel_trace.csv")).unwrap();
    assert_eq!(table.lines().count() - 1, measured);
}

#[test]
fn damaged_and_cut_recordings_open_as_far_as_they_are_whole() {
    let place = place("damaged");
    let recording = place.join("rec");
    record(&recording);
    let segment = recording.join("segment-000001.roctop");
    let whole = std::fs::read(&segment).unwrap();
    for step in 0..24 {
        let mut bytes = whole.clone();
        if step % 2 == 0 {
            bytes.truncate(whole.len() * step / 24);
        } else {
            let at = whole.len() * step / 24;
            bytes[at] ^= 0x40;
        }
        std::fs::write(&segment, &bytes).unwrap();
        let summary = run(&["summary", word(&recording)]);
        assert_eq!(summary.status.code(), Some(0), "{}", text(&summary.stderr));
        assert!(!summary.stderr.is_empty(), "step {step}: the damage is told");
    }
}

#[test]
fn a_summary_is_of_what_passes_the_filter() {
    let output = run(&["demo", "--no-ui", "--seconds", "1", "--filter", "gemm | fmha"]);
    let told = text(&output.stderr);
    assert!(told.contains("fmha_fwd") && !told.contains("layer_norm"), "{told}");
    assert!(!told.contains("hipLaunchKernel"), "{told}");
    let output = run(&[
        "demo",
        "--no-ui",
        "--seconds",
        "1",
        "--filter",
        "dur > 60min & nothing-has-this-name",
    ]);
    let told = text(&output.stderr);
    assert!(
        told.contains("nothing passes the filter, of ") && !told.contains("nothing was recorded"),
        "{told}"
    );
}
