//! The tests' programs on an emulation of another make, which may execute kernels: it has no log that we know, so truth is
//! what a program itself knows, and what holds on every GPU.

use super::{check_output, text};
use crate::kit::rig::{Recorded, Rig, TOLERANCE, patience, rig};
use roctop_ring::record::flag;
use std::collections::BTreeMap;
use std::time::Duration;

/// The programs, with little work: an emulation may take seconds for a kernel.
const PROGRAMS: &[&[&str]] = &[
    &["matrix_transpose"],
    &["graphs", "1"],
    &["corners", "reset"],
    &["corners", "arrays"],
    &["corners", "per_thread"],
    &["corners", "timing"],
    &["corners", "contexts"],
    &["corners", "managed"],
    &["corners", "callbacks"],
    &["streams", "1"],
    &["features"],
    &["memory", "1"],
    &["habits", "contexts"],
    &["habits", "few_files", "200"],
    &["habits", "forks_in_threads"],
    &["many_streams", "2", "4", "100"],
    &["memcpy_storm", "2", "1", "4"],
    &["large_graph", "100"],
];

/// A program that is not over by then without roctop is not compared.
const UNTRACED_LIMIT: Duration = Duration::from_mins(2);

/// Why a program cannot be compared: what it does without roctop.
fn untraced(rig: &Rig, name: &str, words: &[&str]) -> Result<std::process::Output, String> {
    let place = Rig::place(&format!("plain-{name}"));
    let mut command = rig.command(&place, &[], words);
    let output = patience::output_within(&mut command, UNTRACED_LIMIT).map_err(|_| "is not over in two minutes")?;
    if output.status.success() {
        return Ok(output);
    }
    let said = text(&output.stderr);
    Err(format!(
        "{}: {}",
        output.status,
        said.lines().next().unwrap_or_default()
    ))
}

/// How often each kernel of the program ran.
fn kernels(recorded: &Recorded) -> BTreeMap<&str, usize> {
    let mut kernels = BTreeMap::new();
    for dispatch in &recorded.run.dispatches {
        *kernels.entry(recorded.kernel(dispatch)).or_default() += 1;
    }
    kernels
}

/// Checks times, and the order in each stream, which no emulation may change.
fn check_times(recorded: &Recorded) {
    let mut streams: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for dispatch in &recorded.run.dispatches {
        let has_times = dispatch.flags & flag::UNTIMED == 0;
        assert!(!has_times || dispatch.span.begin <= dispatch.span.end, "{dispatch:?}");
        if let (true, Some(stream)) = (has_times, dispatch.stream) {
            streams.entry((dispatch.process, stream)).or_default().push(dispatch);
        }
    }
    // The kernels of one graph may run side by side.
    let has_graphs = recorded
        .run
        .operations
        .iter()
        .any(|operation| operation.name.starts_with("hipGraph"));
    for dispatches in streams.values_mut().filter(|_| !has_graphs) {
        dispatches.sort_by_key(|dispatch| dispatch.dispatch_id);
        for pair in dispatches.windows(2) {
            assert!(pair[0].span.end <= pair[1].span.end + TOLERANCE, "{pair:?}");
        }
    }
}

/// Checks that each launch has its kernel, once.
fn check_launches(recorded: &Recorded) {
    let run = &recorded.run;
    let mut launched: BTreeMap<_, usize> = BTreeMap::new();
    for dispatch in &run.dispatches {
        *launched.entry((dispatch.process, dispatch.correlation)).or_default() += 1;
    }
    // A launch into a captured stream runs nothing.
    if run
        .operations
        .iter()
        .any(|operation| operation.name.starts_with("hipStreamBeginCapture"))
    {
        return;
    }
    for call in run.calls.iter().filter(|call| call.status == Some(0)) {
        let name = &*run.operations[call.operation.0 as usize].name;
        let is_launch = ["hipLaunchKernel", "hipExtLaunchKernel", "hipLaunchCooperativeKernel"].contains(&name);
        let count = launched.get(&(call.process, call.correlation)).copied().unwrap_or(0);
        assert!(!is_launch || count == 1, "{name} has {count} kernels: {call:?}");
    }
}

#[test]
fn programs_on_an_emulation_of_another_make_are_recorded_as_they_ran() {
    let Some(rig) = rig() else { return };
    let mut names: Vec<&str> = PROGRAMS.iter().map(|words| words[0]).collect();
    names.dedup();
    let Some(rig) = rig.on_another_make(&names) else {
        println!("skipped: ROCTOP_TEST_INTERPOSER names no other emulation");
        return;
    };
    let mut compared = 0;
    for words in PROGRAMS {
        let name = format!("make-{}", words.join("-"));
        let plain = match untraced(&rig, &name, words) {
            Ok(plain) => plain,
            Err(why) => {
                println!("{name}: n/a, untraced it {why}");
                continue;
            }
        };
        let recorded = rig.record(&name, words);
        check_output(&recorded, &plain);
        recorded.check_lost();
        let calls = recorded.check_calls();
        recorded.check_nesting();
        recorded.check_correlation();
        check_times(&recorded);
        check_launches(&recorded);
        let again = rig.record(&format!("{name}-again"), words);
        assert_eq!(kernels(&recorded), kernels(&again), "{name} in two runs");
        let (dispatches, copies) = (recorded.run.dispatches.len(), recorded.run.copies.len());
        println!("{name}: {calls} calls, {dispatches} dispatches, {copies} copies");
        compared += 1;
    }
    assert!(compared > 0, "no program runs there");
}
