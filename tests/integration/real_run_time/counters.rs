//! Counters of real HIP programs: the stand-in for rocprofiler-sdk makes their queues as the SDK does, beside the collector.

use crate::kit::rig::{Rig, rig};
use roctop::item::Dispatch;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The stand-in, built as release 1.0; none, with the reason printed, where there is no C compiler.
fn stand_in(place: &Path) -> Option<&'static str> {
    let library = place.join("librocprofiler-sdk.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/tests/c/stand_in_sdk.c");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl");
    if !compiler.status().is_ok_and(|status| status.success()) {
        println!("skipped: needs a C compiler");
        return None;
    }
    Some(library.to_str().unwrap().to_owned().leak())
}

/// Waves that a dispatch of this shape has.
fn waves(grid: [u32; 3], workgroup: [u32; 3]) -> u64 {
    let groups = |axis: usize| u64::from(grid[axis].div_ceil(workgroup[axis]));
    let items: u64 = workgroup.map(u64::from).iter().product();
    items.div_ceil(64) * groups(0) * groups(1) * groups(2)
}

#[test]
fn every_kernel_of_many_streams_is_counted_once_with_its_launch() {
    let Some(rig) = rig() else { return };
    count_many_streams(rig, "counted");
}

#[test]
fn so_it_is_where_the_tables_come_through_the_register() {
    let Some(rig) = rig() else { return };
    match rig.registering() {
        Ok(rig) => count_many_streams(&rig, "counted-registering"),
        Err(reason) => println!("skipped: {reason}"),
    }
}

fn count_many_streams(rig: &Rig, name: &str) {
    let Some(library) = stand_in(&Rig::place(&format!("{name}-sdk"))) else {
        return;
    };
    let rig = rig.on(&[("ROCTOP_SDK", library), ("STAND_IN_QUEUES", "1")]);
    let more = ["--pmc", "SQ_WAVES,GRBM_COUNT"];
    let recorded = rig.record_with(name, &more, &["many_streams", "4", "4"]);
    let told = String::from_utf8_lossy(&recorded.output.stderr).into_owned();
    assert!(recorded.output.status.success(), "{told}");
    let run = &recorded.run;
    let said = String::from_utf8_lossy(&recorded.output.stdout).into_owned();
    let launches: usize = said.trim().rsplit(' ').next().unwrap().parse().unwrap();
    let counters = &run.counters;
    let number = |name: &str| counters.iter().find(|one| &*one.name == name).unwrap().id;
    let (wave_count, clocks) = (number("SQ_WAVES"), number("GRBM_COUNT"));
    assert_eq!(run.dispatches.len(), launches);
    assert_eq!(run.counter_values.len(), 2 * run.dispatches.len());
    let mut values: BTreeMap<_, f64> = BTreeMap::new();
    for one in &run.counter_values {
        let is_new = values.insert((one.dispatch, one.counter), one.value).is_none();
        assert!(is_new, "counted once");
    }
    for dispatch in &run.dispatches {
        let of = |counter| values[&(Some(dispatch.dispatch_id), counter)] as u64;
        let shape = waves(dispatch.grid, dispatch.workgroup.map(u32::from));
        assert_eq!(of(wave_count), shape);
        assert_eq!(of(clocks), dispatch.span.end - dispatch.span.begin);
        assert!(dispatch.correlation != 0, "its launch is known");
        assert!(dispatch.stream.is_some(), "its stream is known");
    }
    let kernels: Vec<&str> = run.kernels.iter().map(|kernel| &*kernel.name).collect();
    assert!(kernels.iter().all(|name| !name.contains("unnamed")), "{kernels:?}");
}

#[test]
fn counters_know_their_gpus_where_the_user_lets_some_of_them_be_seen() {
    let Some(rig) = rig() else { return };
    let Some(library) = stand_in(&Rig::place("visible-sdk")) else {
        return;
    };
    let machine = [
        ("EMULATED_GPU_COUNT", "3"),
        ("ROCR_VISIBLE_DEVICES", "2,1"),
        ("ROCTOP_SDK", library),
        ("STAND_IN_QUEUES", "1"),
        ("STAND_IN_GPUS", "3"),
    ];
    let recorded = rig
        .on(&machine)
        .record_with("visible", &["--pmc", "SQ_WAVES"], &["features"]);
    let told = String::from_utf8_lossy(&recorded.output.stderr).into_owned();
    assert!(recorded.output.status.success(), "{told}");
    let run = &recorded.run;
    let node = |dispatch: &Dispatch| run.agents[dispatch.agent.0 as usize].node;
    let of: BTreeMap<u64, &Dispatch> = run.dispatches.iter().map(|one| (one.dispatch_id, one)).collect();
    assert!(!run.counter_values.is_empty());
    for value in &run.counter_values {
        let counter = run.counters.iter().find(|one| one.id == value.counter).unwrap();
        let agent = run.agents.iter().find(|one| one.id == counter.agent).unwrap();
        let dispatch = of[&value.dispatch.unwrap()];
        assert_eq!(
            agent.node,
            node(dispatch),
            "{}: {:?}",
            counter.name,
            recorded.kernel(dispatch)
        );
        assert_eq!(
            value.value as u64,
            waves(dispatch.grid, dispatch.workgroup.map(u32::from))
        );
    }
    // Driver's GPU n is node n + 1, behind the processor's; kernels without a name are the run-time's uploads of code.
    let mut logged: BTreeMap<u32, usize> = BTreeMap::new();
    let mut seen = logged.clone();
    for row in recorded
        .truth
        .iter()
        .filter(|row| row.kind == "dispatch" && !row.name.is_empty())
    {
        *logged.entry(row.gpu + 1).or_default() += 1;
    }
    for dispatch in run
        .dispatches
        .iter()
        .filter(|one| !recorded.kernel(one).starts_with("(unnamed"))
    {
        *seen.entry(node(dispatch)).or_default() += 1;
    }
    assert_eq!(seen, logged);
    assert_eq!(
        seen.keys().copied().collect::<Vec<_>>(),
        [2, 3],
        "both that may be seen, not the first"
    );
}
