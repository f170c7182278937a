//! Every level of timing as the one where a program starts: it runs as without roctop, what a level promises is recorded as the
//! log has it, and the level is reported.

use super::check_output;
use crate::kit::rig::{Recorded, Rig, TOLERANCE, rig};
use roctop::item::LossReason;
use roctop_ring::record::flag;
use std::process::Command;

fn start(rig: &Rig, level: u8, words: &[&str]) -> Recorded {
    let name = format!("level-{level}-{}", words[0]);
    let plain = rig.plain(&name, words);
    let recorded = rig.record_with(&name, &["--level", &level.to_string()], words);
    check_output(&recorded, &plain);
    let said: Vec<&String> = recorded.said.iter().filter(|text| text.starts_with("level ")).collect();
    match level {
        0 => assert!(said.is_empty(), "{said:?}"),
        _ => assert!(
            said.len() == 1 && said[0].starts_with(&format!("level {level}, ")),
            "{said:?}"
        ),
    }
    recorded
}

/// Dispatches of the log that are recorded without a time; all are recorded, and those with a time have the log's.
fn untimed(recorded: &Recorded) -> usize {
    let mut untimed = 0;
    for (rows, dispatches) in recorded.queues() {
        assert_eq!(rows.len(), dispatches.len());
        for (row, dispatch) in rows.iter().zip(dispatches) {
            assert_eq!(recorded.kernel(dispatch), row.name);
            if dispatch.flags & flag::UNTIMED == 0 {
                assert!(dispatch.span.begin.abs_diff(row.begin) <= TOLERANCE);
            } else {
                untimed += 1;
            }
        }
    }
    untimed
}

/// The last level of the summary's first process.
fn summary(recorded: &Recorded) -> (u64, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    let answer = command
        .args(["summary", "--format", "json"])
        .arg(recorded.place.join("rec"))
        .output()
        .unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    let process = &summary["processes"][0];
    let reason = process["level_reason"].as_str().unwrap_or_default();
    (process["level"].as_u64().unwrap(), reason.to_owned())
}

#[test]
fn each_level_records_what_it_promises() {
    check_levels(0..=6, &["matrix_transpose", "3"]);
    check_levels(1..=1, &STREAMS);
}

#[test]
#[ignore = "all levels once more: .ci/matrix"]
fn each_level_records_many_streams() {
    check_levels(0..=6, &STREAMS);
}

const STREAMS: [&str; 4] = ["many_streams", "4", "8", "3000"];

fn check_levels(levels: std::ops::RangeInclusive<u8>, words: &[&str]) {
    let Some(rig) = rig() else { return };
    for level in levels {
        let recorded = start(rig, level, words);
        let run = &recorded.run;
        if level <= 2 {
            recorded.check_lost();
            recorded.check_dispatches();
            recorded.check_correlation();
        }
        if level == 3 {
            let untimed = untimed(&recorded) as u64;
            let lost: u64 = run.lost.values().sum();
            assert!(run.lost.keys().all(|(_, reason)| *reason == LossReason::Untimed));
            assert!(untimed > 0 && lost >= untimed, "{untimed} untimed, {lost} lost");
        }
        if level <= 4 {
            recorded.check_copies();
        } else {
            assert!(run.copies.is_empty());
        }
        if level > 3 {
            assert!(run.dispatches.is_empty(), "level {level}");
        }
        if level <= 5 {
            recorded.check_calls();
        } else {
            assert!(run.calls.is_empty());
        }
        let (number, reason) = summary(&recorded);
        assert_eq!(number, u64::from(level));
        assert_eq!(reason.contains("asked for by --level"), level > 0, "{reason}");
    }
}

#[test]
fn a_level_is_in_every_export() {
    let Some(rig) = rig() else { return };
    for (level, lines) in [(0, None), (2, Some(2))] {
        let recorded = start(rig, level, &["matrix_transpose", "2"]);
        for format in ["csv", "json", "pftrace", "rocpd", "parquet"] {
            let files = recorded.place.join(format);
            let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
            command.arg("export").arg(recorded.place.join("rec"));
            let made = command.args(["--format", format, "-d"]).arg(&files).output().unwrap();
            assert!(made.status.success(), "{made:?}");
            let mut found = Vec::new();
            for entry in std::fs::read_dir(&files).unwrap() {
                let path = entry.unwrap().path();
                if path.to_string_lossy().ends_with("timing_level.csv") {
                    found.push(std::fs::read_to_string(path).unwrap());
                }
            }
            assert_eq!(
                found.first().map(|text| text.lines().count()),
                lines,
                "{format}: {found:?}"
            );
        }
    }
}

#[test]
fn a_paused_program_goes_on_at_every_level() {
    let Some(rig) = rig() else { return };
    for level in 0..=4 {
        start(rig, level, &["pauses"]);
    }
}

#[test]
fn levels_that_cannot_be_meant_are_wrong_command_lines() {
    for (variables, options) in [
        (&[] as &[(&str, &str)], &["--level", "7"] as &[&str]),
        (&[("ROCTOP_LEVEL", "low")], &[]),
        (&[("ROCTOP_NO_FLIGHT_FILES", "1")], &["--level", "0"]),
        (&[], &["--level", "4", "--dispatch-source", "hsa"]),
        (&[], &["--level", "5", "--dispatch-source", "hip"]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        command.args(["run", "--no-ui"]).args(options).args(["--", "true"]);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{variables:?} {options:?}: {output:?}");
    }
}
