//! Programs that use HSA without HIP.

use crate::rig::{Recorded, rig};
use crate::{check_output, text};
use roctop_ring::record::flag;

/// Records `raw_hsa` and checks what holds with and without records of its calls.
fn raw(name: &str, options: &[&str]) -> Option<Recorded> {
    let rig = rig()?;
    let plain = rig.plain(name, &["raw_hsa"]);
    assert!(text(&plain.stdout).ends_with("wrong times 0\n"), "{plain:?}");
    let recorded = rig.record_with(name, options, &["raw_hsa"]);
    check_output(&recorded, &plain);
    recorded.check_lost();
    recorded.check_nesting();
    let dispatches = recorded.check_dispatches();
    let copies = recorded.check_copies();
    println!("{name}: {dispatches} dispatches, {copies} copies, all as logged");
    assert!(dispatches > 7000 && copies > 200);
    assert!(recorded.run.dispatches.iter().all(|d| d.flags & flag::UNTIMED == 0));
    Some(recorded)
}

#[test]
fn a_program_without_hip_is_recorded_as_it_happened() {
    let Some(recorded) = raw("raw", &[]) else { return };
    assert!(recorded.run.calls.is_empty(), "no call of HSA unless it is asked for");
    assert!(recorded.run.dispatches.iter().all(|d| d.correlation == 0));
}

#[test]
fn the_hsa_calls_of_a_program_are_each_recorded_and_own_its_work() {
    let Some(recorded) = raw("raw-calls", &["--hsa-trace"]) else {
        return;
    };
    let calls = recorded.check_calls();
    let lines = recorded.check_memory();
    println!("raw-calls: {calls} calls, {lines} allocations and frees, as the program counts");
    let name = |correlation: u64| {
        let call = recorded.run.calls.iter().find(|call| call.correlation == correlation);
        call.map_or("", |call| &*recorded.run.operations[call.operation.0 as usize].name)
    };
    for dispatch in recorded.run.dispatches.iter().step_by(37) {
        let name = name(dispatch.correlation);
        assert!(name.contains("_write_index_"), "{name}: {dispatch:?}");
    }
    for copy in &recorded.run.copies {
        let name = name(copy.correlation);
        assert!(name.starts_with("hsa_amd_memory_async_copy"), "{name}: {copy:?}");
    }
}

/// What another tool counted of queues and kernels.
fn told(recorded: &Recorded) -> [u64; 3] {
    let text = std::fs::read_to_string(recorded.place.join("tool")).unwrap();
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    };
    [number("queues"), number("kernels"), number("completed")]
}

#[test]
fn another_tool_that_intercepts_queues_sees_them_too_and_both_are_exact() {
    let Some(rig) = rig() else { return };
    let place = crate::rig::Rig::place("tool");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let mut command = rig.command(&place, &options, &["many_streams", "3", "6", "3000"]);
    command.env("HSA_TOOLS_LIB", rig.app("libother_tool.so"));
    let output = command.env("OTHER_TOOL", place.join("tool")).output().unwrap();
    let recorded = Recorded::load(&place, output);
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    recorded.check_lost();
    recorded.check_calls();
    let dispatches = recorded.check_dispatches();
    recorded.check_correlation();
    let [queues, kernels, completed] = told(&recorded);
    println!("tool: {dispatches} dispatches as logged; the other tool saw {kernels} in {queues} queues");
    assert_eq!((kernels, completed), (dispatches as u64, dispatches as u64));
}
