//! HIP and ROC-TX beyond the calls themselves: codes of failed calls, markers however they are found.

use crate::rig::{Rig, rig};
use crate::{check, check_on, text};
use std::collections::BTreeMap;

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
