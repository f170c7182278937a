//! `roctop check`: traces made by exports are complete, and what is deleted from them is missed.

use crate::kit::demo::{export, recording, roctop};
use crate::kit::directory::place;
use crate::kit::rig::{Rig, rig};
use rusqlite::Connection;
use std::path::Path;
use std::process::{Command, Stdio};

/// Ends of the names of files that can be checked.
const ENDINGS: [&str; 5] = ["pt.trace.json", "results.json", "kernel_trace.csv", ".db", ".pftrace"];

/// Exit code, and the report.
fn checked(trace: &Path, against: bool) -> (Option<i32>, serde_json::Value) {
    let mut words = vec!["check", trace.to_str().unwrap(), "--format", "json"];
    if against {
        words.extend(["--against", recording().to_str().unwrap()]);
    }
    let output = roctop(&words);
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_default())
}

/// Number of kernels of a finding.
fn count(report: &serde_json::Value, what: &str) -> u64 {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["what"] == what);
    found.map_or(0, |finding| finding["count"].as_u64().unwrap())
}

/// The exports of the demo that can be checked.
fn traces(name: &str) -> Vec<std::path::PathBuf> {
    let made = export(name, &["--format", "kineto,json,csv,rocpd,pftrace"]);
    let of_kind = |kind: &str| {
        made.values()
            .find(|path| path.to_str().unwrap().ends_with(kind))
            .unwrap()
    };
    ENDINGS.map(|kind| of_kind(kind).clone()).to_vec()
}

#[test]
fn exports_of_a_recording_have_its_kernels() {
    for trace in traces("check-whole") {
        // The demo ends with work in flight: these launches have no kernel.
        let (_, report) = checked(&trace, true);
        assert!(report["kernels"].as_u64().unwrap() > 1000, "{report:#}");
        assert!(report["launches"].as_u64().unwrap() > 1000, "{report:#}");
        assert!(report["clock_offset_ns"].is_i64(), "{}: {report:#}", trace.display());
        for what in ["missing_kernels", "added_kernels", "order", "shifted", "truncated"] {
            assert_eq!(count(&report, what), 0, "{}: {report:#}", trace.display());
        }
    }
}

/// Leaves the kernels out of whose lines `is_out` says so.
fn without(text: &str, is_kernel: &str, every: usize) -> (String, u64) {
    let (mut seen, mut out) = (0, 0);
    let kept = text.lines().filter(|line| {
        let is_out = line.contains(is_kernel) && {
            seen += 1;
            seen % every == 0
        };
        out += u64::from(is_out);
        !is_out
    });
    (kept.collect::<Vec<_>>().join("\n") + "\n", out)
}

#[test]
fn deleted_kernels_are_missed_in_each_format() {
    let [kineto, _, csv, rocpd, _] = &traces("check-deleted")[..] else {
        panic!()
    };
    for (trace, mark) in [(kineto, "\"cat\": \"kernel\""), (csv, "\"KERNEL_DISPATCH\",")] {
        let (text, _) = without(&std::fs::read_to_string(trace).unwrap(), mark, 10);
        std::fs::write(trace, text).unwrap();
    }
    let database = Connection::open(rocpd).unwrap();
    let table: String = database
        .query_row(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_kernel_dispatch%'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    database
        .execute(&format!("DELETE FROM \"{table}\" WHERE id % 10 = 0"), [])
        .unwrap();
    drop(database);
    for trace in [kineto, csv, rocpd] {
        let (code, report) = checked(trace, true);
        assert_eq!(code, Some(3), "{report:#}");
        assert!(count(&report, "missing_kernels") > 50, "{report:#}");
        let (code, report) = checked(trace, false);
        assert_eq!(code, Some(3), "{report:#}");
        assert!(count(&report, "launches_without_kernel") > 50, "{report:#}");
    }
    let cut = place("check-cut").join("cut.json");
    let text = std::fs::read(kineto).unwrap();
    std::fs::write(&cut, &text[..text.len() / 2]).unwrap();
    let (code, report) = checked(&cut, false);
    assert_eq!((code, count(&report, "truncated")), (Some(3), 1));
}

#[test]
fn what_is_no_trace_ends_with_2() {
    let file = place("check-none").join("file");
    for bytes in [&b""[..], b"nonsense", b"{}", b"\x1f\x8bx", b"SQLite format 3\0"] {
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(checked(&file, false).0, Some(2), "{bytes:?}");
    }
    assert_eq!(checked(Path::new("nowhere"), false).0, Some(2));
    std::fs::write(&file, "[{\"ph\":\"X\"}]").unwrap();
    let output = roctop(&["check", file.to_str().unwrap(), "--against", "nowhere"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn traces_of_a_real_run_time_are_complete() {
    let Some(rig) = rig() else { return };
    for app in ["matrix_transpose", "graphs"] {
        let place = Rig::place(&format!("check-{app}"));
        let run = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
            command
                .args(words)
                .env("ROCTOP_CONFIG", "/dev/null")
                .current_dir(&place);
            command.env("LD_PRELOAD", rig.emulated_gpu()).stdin(Stdio::null());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{words:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        run(&["record", "-o", "rec", "--", rig.app(app).to_str().unwrap()]);
        let made = run(&["export", "rec", "--format", "kineto,json,csv,rocpd,pftrace", "-o", "t"]);
        let is_trace = |path: &&str| ENDINGS.iter().any(|ending| path.ends_with(ending));
        let traces: Vec<&str> = made.lines().filter(is_trace).collect();
        assert_eq!(traces.len(), ENDINGS.len(), "{made}");
        for trace in traces {
            for more in [&[][..], &["--against", "rec"]] {
                let report = run(&[&["check", trace], more].concat());
                assert!(report.starts_with("complete: "), "{trace}: {report}");
            }
        }
        if app == "graphs" {
            let trace = place.join("t_kineto.pt.trace.json");
            let text = std::fs::read_to_string(&trace).unwrap();
            std::fs::write(&trace, without(&text, "\"cat\": \"kernel\"", 1).0).unwrap();
            let (code, report) = checked(&trace, false);
            assert_eq!(code, Some(3));
            assert!(count(&report, "graphs_without_kernel") > 0, "{report:#}");
        }
    }
}
