//! `roctop check`: traces made by exports are complete, and what is deleted from them is missed.

use crate::kit::demo::{export, recording, roctop};
use crate::kit::directory::place;
use crate::kit::protobuf::{all, fields, number, text, varint};
use crate::kit::rig::{Rig, rig};
use crate::kit::table::Table;
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

/// What becomes of a kernel, by its begin and the begin from which on are the last twentieth: left out, or so much later, ns.
type Edit = fn(i64, i64) -> Option<i64>;

/// The begin from which on are the last twentieth.
fn late(mut begins: Vec<i64>) -> i64 {
    begins.sort_unstable();
    begins[begins.len() * 19 / 20]
}

/// Edits the kernels of a list of JSON, whose times the pointers name.
fn edit_json(kernels: &mut Vec<serde_json::Value>, times: &[&str], nanos: f64, edit: Edit) {
    let time = |kernel: &serde_json::Value, key: &str| (kernel[key].as_f64().unwrap() * nanos).round() as i64;
    let cut = late(kernels.iter().map(|kernel| time(kernel, times[0])).collect());
    kernels.retain_mut(|kernel| {
        let Some(later) = edit(time(kernel, times[0]), cut) else {
            return false;
        };
        for key in times {
            kernel[*key] = match nanos {
                1.0 => (kernel[*key].as_i64().unwrap() + later).into(),
                _ => (kernel[*key].as_f64().unwrap() + later as f64 / nanos).into(),
            };
        }
        true
    });
}

/// The packets of a Perfetto trace, and whether each begins a kernel.
fn packets(mut trace: &[u8]) -> Vec<(Vec<u8>, bool)> {
    let (mut found, mut names) = (Vec::new(), std::collections::BTreeMap::new());
    while !trace.is_empty() {
        assert_eq!(varint(&mut trace), 1 << 3 | 2);
        let length = varint(&mut trace) as usize;
        let (packet, rest) = trace.split_at(length);
        trace = rest;
        let parts = fields(packet);
        let sequence = number(&parts, 10);
        for entry in all(&parts, 12).iter().flat_map(|interned| all(&fields(interned), 1)) {
            let entry = fields(&entry);
            names.insert((sequence, number(&entry, 1)), text(&entry, 2).unwrap());
        }
        let begins_kernel = |event: &Vec<u8>| {
            let event = fields(event);
            let category = names.get(&(sequence, number(&event, 3))).cloned();
            let category = category.or_else(|| text(&event, 22)).unwrap_or_default();
            number(&event, 9) == Some(1) && category.contains("kernel_dispatch")
        };
        let is_kernel = all(&parts, 11).iter().any(begins_kernel);
        found.push((packet.to_vec(), is_kernel));
    }
    found
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn edit_perfetto(trace: &[u8], edit: Edit) -> Vec<u8> {
    let packets = packets(trace);
    let begin = |packet: &[u8]| number(&fields(packet), 8).unwrap() as i64;
    let kernels = packets.iter().filter(|packet| packet.1);
    let cut = late(kernels.map(|packet| begin(&packet.0)).collect());
    let mut out = Vec::new();
    for (mut packet, is_kernel) in packets {
        if is_kernel {
            let has_names = !all(&fields(&packet), 12).is_empty();
            // Later packets need the names in it.
            let Some(later) = edit(begin(&packet), cut).or(has_names.then_some(0)) else {
                continue;
            };
            // Of a field that is there twice, the last counts.
            let begin = begin(&packet);
            packet.push(8 << 3);
            push_varint(&mut packet, (begin + later) as u64);
        }
        out.push(1 << 3 | 2);
        push_varint(&mut out, packet.len() as u64);
        out.extend(packet);
    }
    out
}

fn edit_csv(path: &Path, edit: Edit) {
    let mut table = Table::read(path);
    let times =
        ["Start_Timestamp", "End_Timestamp"].map(|name| table.header.iter().position(|known| known == name).unwrap());
    let time = |row: &[String], at: usize| row[at].parse::<i64>().unwrap();
    let cut = late(table.rows.iter().map(|row| time(row, times[0])).collect());
    table.rows.retain_mut(|row| {
        let Some(later) = edit(time(row, times[0]), cut) else {
            return false;
        };
        for at in times {
            row[at] = (time(row, at) + later).to_string();
        }
        true
    });
    let line = |cells: &Vec<String>| {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| format!("\"{}\"", cell.replace('"', "\"\"")))
            .collect();
        cells.join(",") + "\n"
    };
    let lines: String = std::iter::once(&table.header).chain(&table.rows).map(line).collect();
    std::fs::write(path, lines).unwrap();
}

fn edit_rocpd(path: &Path, edit: Edit) {
    let database = Connection::open(path).unwrap();
    let named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_kernel_dispatch%'";
    let table: String = database.query_row(named, [], |row| row.get(0)).unwrap();
    let mut listed = database.prepare(&format!("SELECT id, start FROM \"{table}\"")).unwrap();
    let rows = listed.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let rows: Vec<(i64, i64)> = rows.map(Result::unwrap).collect();
    let cut = late(rows.iter().map(|row| row.1).collect());
    database.execute_batch("BEGIN").unwrap();
    for (id, begin) in rows {
        let change = match edit(begin, cut) {
            None => format!("DELETE FROM \"{table}\" WHERE id = {id}"),
            Some(later) => {
                format!("UPDATE \"{table}\" SET start = start + {later}, \"end\" = \"end\" + {later} WHERE id = {id}")
            }
        };
        database.execute(&change, []).unwrap();
    }
    database.execute_batch("COMMIT").unwrap();
}

/// Edits the kernels of a file of any format.
fn edit_kernels(path: &Path, edit: Edit) {
    let name = path.to_str().unwrap();
    let document = || serde_json::from_slice::<serde_json::Value>(&std::fs::read(path).unwrap()).unwrap();
    let write = |document: serde_json::Value| std::fs::write(path, document.to_string()).unwrap();
    if name.ends_with("pt.trace.json") {
        let mut document = document();
        let events = document["traceEvents"].as_array_mut().unwrap();
        let is_kernel = |event: &mut serde_json::Value| event["cat"] == "kernel";
        let mut kernels: Vec<serde_json::Value> = events.extract_if(.., is_kernel).collect();
        edit_json(&mut kernels, &["ts"], 1e3, edit);
        events.extend(kernels);
        write(document);
    } else if name.ends_with("results.json") {
        let mut document = document();
        let mut tools = Vec::new();
        for tool in document["rocprofiler-sdk-tool"].as_array_mut().unwrap() {
            let kernels = tool["buffer_records"]["kernel_dispatch"].as_array_mut().unwrap();
            edit_json(kernels, &["start_timestamp", "end_timestamp"], 1.0, edit);
            // Records come after the names that they need, as rocprofv3 writes them.
            let mut members: Vec<(&String, &serde_json::Value)> = tool.as_object().unwrap().iter().collect();
            members.sort_by_key(|(name, _)| *name == "buffer_records");
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("\"{name}\":{value}"))
                .collect();
            tools.push(format!("{{{}}}", members.join(",")));
        }
        let text = format!("{{\"rocprofiler-sdk-tool\":[{}]}}", tools.join(","));
        std::fs::write(path, text).unwrap();
    } else if name.ends_with(".pftrace") {
        std::fs::write(path, edit_perfetto(&std::fs::read(path).unwrap(), edit)).unwrap();
    } else if name.ends_with("kernel_trace.csv") {
        edit_csv(path, edit);
    } else {
        edit_rocpd(path, edit);
    }
}

#[test]
fn deleted_kernels_are_missed_in_each_format() {
    let traces = traces("check-deleted");
    for trace in &traces {
        let before = checked(trace, true).1["kernels"].as_u64().unwrap();
        edit_kernels(trace, |begin, _| (begin % 10 != 3).then_some(0));
        let (code, report) = checked(trace, true);
        assert_eq!(code, Some(3), "{report:#}");
        let deleted = before - report["kernels"].as_u64().unwrap();
        let missing = count(&report, "missing_kernels");
        // The run-time's own kernels are not compared.
        assert!(
            missing > 50 && missing <= deleted,
            "{}: {deleted} {report:#}",
            trace.display()
        );
        let (code, report) = checked(trace, false);
        assert_eq!(code, Some(3), "{report:#}");
        assert!(
            count(&report, "launches_without_kernel") > 50,
            "{}: {report:#}",
            trace.display()
        );
    }
    let cut = place("check-cut").join("cut.json");
    let text = std::fs::read(&traces[0]).unwrap();
    std::fs::write(&cut, &text[..text.len() / 2]).unwrap();
    let (code, report) = checked(&cut, false);
    assert_eq!((code, count(&report, "truncated")), (Some(3), 1));
}

#[test]
fn shifted_kernels_are_found_in_each_format() {
    for trace in traces("check-shifted") {
        edit_kernels(&trace, |begin, cut| Some(if begin >= cut { 5_000_000 } else { 0 }));
        let (code, report) = checked(&trace, true);
        assert_eq!(code, Some(3), "{}: {report:#}", trace.display());
        let kernels = report["kernels"].as_u64().unwrap();
        let shifted = count(&report, "shifted");
        assert!(
            shifted > 50 && shifted <= kernels / 20 + 1,
            "{}: {report:#}",
            trace.display()
        );
        assert_eq!(
            (count(&report, "order"), count(&report, "missing_kernels")),
            (0, 0),
            "{report:#}"
        );
    }
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
