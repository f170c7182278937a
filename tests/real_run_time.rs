//! Real HIP programs on ROCm 5.2.3 over the emulated GPU: what is recorded is what happened.

#[path = "rig/rig.rs"]
mod rig;

use rig::{Recorded, rig};

/// Records a program and checks everything that holds for every program.
fn check(name: &str, words: &[&str]) -> Option<Recorded> {
    let rig = rig()?;
    let plain = rig.plain(name, words);
    let recorded = rig.record(name, words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&recorded.output.stdout), text(&plain.stdout));
    assert_eq!(text(&recorded.output.stderr), text(&plain.stderr));
    assert_eq!(recorded.output.status, plain.status);
    recorded.check_lost();
    let calls = recorded.check_calls();
    recorded.check_nesting();
    let dispatches = recorded.check_dispatches();
    let copies = recorded.check_copies();
    recorded.check_correlation();
    println!("{name}: {calls} calls, {dispatches} dispatches, {copies} copies, all as logged");
    assert!(calls > 0);
    Some(recorded)
}

#[test]
fn a_matrix_transpose_is_recorded_as_it_happened() {
    check("transpose", &["matrix_transpose", "5"]);
}

#[test]
fn ten_thousand_launches_over_threads_and_streams_are_recorded_as_they_happened() {
    check("streams", &["many_streams", "4", "16", "10000"]);
}

#[test]
fn a_copy_storm_is_recorded_as_it_happened() {
    check("storm", &["memcpy_storm", "4", "2"]);
}

#[test]
fn a_tour_of_the_api_is_recorded_as_it_happened() {
    check("tour", &["api_tour"]);
}
