//! HIP and ROC-TX beyond the calls themselves: codes of failed calls, markers however they are found.

use super::{check, check_on, check_output, text};
use crate::kit::rig::{Recorded, Rig, rig};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;

fn counted<'a>(names: impl Iterator<Item = (&'a str, i32)>) -> BTreeMap<(String, i32), u64> {
    let mut counts = BTreeMap::new();
    for (name, code) in names {
        *counts.entry((name.to_owned(), code)).or_default() += 1;
    }
    counts
}

#[test]
fn failed_calls_are_recorded_with_their_codes() {
    let Some(recorded) = check("failures", &["failures"]) else {
        return;
    };
    let said = text(&recorded.output.stdout);
    let told = said.lines().filter_map(|line| line.split_once(' '));
    let told = counted(
        told.map(|(name, code)| (name, code.parse().unwrap()))
            .filter(|(_, code)| *code != 0),
    );
    let run = &recorded.run;
    let failed = run
        .calls
        .iter()
        .filter(|call| call.parent == 0 && call.status.is_some_and(|code| code != 0));
    let names = failed.map(|call| {
        (
            &*run.operations[call.operation.0 as usize].name,
            call.status.unwrap_or(0),
        )
    });
    assert_eq!(counted(names), told);
    assert!(told.values().sum::<u64>() > 100);
}

/// Marks, pushed ranges and started ranges as the program counts them.
fn check_markers(rig: &Rig, how: &str) {
    let recorded = check_on(rig, &format!("markers-{how}"), &["api_tour", &format!("--roctx={how}")]);
    let counts = std::fs::read_to_string(recorded.place.join("markers")).unwrap();
    let count = |name: &str| -> usize {
        let line = counts
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |number| number.parse().unwrap())
    };
    let markers = &recorded.run.markers;
    let marks = markers
        .iter()
        .filter(|m| m.range_id == 0 && m.span.begin == m.span.end)
        .count();
    let started = markers.iter().filter(|m| m.range_id != 0).count();
    let pushed = markers.len() - marks - started;
    let told = ["roctxMarkA", "roctxRangePop", "roctxRangeStop"].map(count);
    assert_eq!([marks, pushed, started], told, "{how}: {counts}");
    assert!(told.iter().all(|count| *count > 0), "{how}: {counts}");
    println!("{how}: {marks} marks, {pushed} pushed and {started} started ranges, as the program counts");
}

#[test]
fn marks_and_ranges_are_recorded_however_a_program_finds_the_functions() {
    let Some(rig) = rig() else { return };
    for how in ["weak", "dlsym", "dlopen"] {
        check_markers(rig, how);
    }
}

#[test]
fn what_a_program_does_while_it_paused_the_recording_is_not_in_it_and_nothing_else_is_missing() {
    let Some(rig) = rig() else { return };
    let words = ["pauses"];
    let plain = rig.plain("pauses", &words);
    let recorded = rig.record("pauses", &words);
    check_output(&recorded, &plain);
    recorded.check_lost();
    let calls = recorded.check_calls();
    recorded.check_correlation();
    let kernels = |part: &str| {
        let run = &recorded.run;
        run.dispatches
            .iter()
            .filter(|d| recorded.kernel(d).contains(part))
            .count()
    };
    println!("pauses: {calls} calls, {} dispatches", kernels("seen"));
    assert_eq!([kernels("seen"), kernels("hidden")], [600, 0]);
    let logged = recorded.truth.iter().filter(|row| row.name.contains("hidden")).count();
    assert_eq!(logged, 40050, "the program was not held up, and nothing of it is gone");
}

#[test]
fn a_burst_of_calls_after_a_quiet_time_is_there_to_the_last() {
    // Rings are shorter where the tmpfs is small.
    let room = rustix::fs::statvfs("/dev/shm").map_or(0, |facts| facts.f_frsize * facts.f_blocks);
    let calls = if room >= 1 << 30 { "200000" } else { "20000" };
    let Some(recorded) = check("bursts", &["bursts", calls]) else {
        return;
    };
    recorded.check_lost();
    println!("bursts: {} calls", recorded.check_calls());
}

#[test]
fn kernels_of_code_objects_that_take_turns_at_one_address_have_their_own_names() {
    let Some(recorded) = check("reload", &["reload"]) else {
        return;
    };
    let mut names: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for row in recorded.truth.iter().filter(|row| row.kind == "dispatch") {
        names.entry(row.kernel_object).or_default().push(&row.name);
    }
    let turns = |names: &Vec<&str>| {
        names.iter().any(|name| name.starts_with("module_")) && names.iter().any(|name| name.starts_with("second_"))
    };
    assert!(names.values().any(turns), "no address was used again");
}

#[test]
fn a_program_that_sets_its_preload_anew_is_recorded_through_hsa() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("preload-anew");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let usual = rig.command(&place, &options, &["matrix_transpose", "1"]);
    // env in front of the program, which takes roctop's preload away and keeps the emulated GPU's.
    let mut words: Vec<OsString> = usual.get_args().map(OsString::from).collect();
    let program = words.iter().position(|word| word == "--").unwrap() + 1;
    let mut anew = OsString::from("LD_PRELOAD=");
    anew.push(rig.emulated_gpu());
    words.splice(program..program, ["env".into(), anew]);
    let mut command = Command::new(usual.get_program());
    command.args(words).current_dir(&place);
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let recorded = Recorded::load(&place, Rig::ended(&mut command));
    assert!(recorded.output.status.success());
    recorded.check_dispatches();
    recorded.check_copies();
    if rig.is_oldest() {
        assert!(
            recorded.said.iter().any(|text| text.contains("replaced LD_PRELOAD")),
            "{:?}",
            recorded.said
        );
    } else {
        let names = recorded
            .run
            .calls
            .iter()
            .map(|call| &*recorded.run.operations[call.operation.0 as usize].name);
        assert!(names.into_iter().any(|name| name == "hipLaunchKernel"));
        assert!(
            recorded.run.dispatches.iter().any(|dispatch| dispatch.correlation != 0),
            "its launch is known"
        );
    }
}
