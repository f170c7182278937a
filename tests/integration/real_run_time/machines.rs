//! Drivers, GPUs and emulations of other makes: what the emulated GPU has by default is one machine of many.

use super::check_on;
use crate::kit::rig::{Rig, TOLERANCE, library, release, rig};
use roctop::item::Dispatch;
use roctop_ring::record::{engine, flag};

/// A name, and variables of the emulated GPU.
type Machine = (&'static str, &'static [(&'static str, &'static str)]);

/// Machines on which every dispatch and copy is recorded as it happened. Kernels of the apps are made for one target.
const MACHINES: [Machine; 12] = [
    ("late", &[("EMULATED_GPU_HABITS", "late")]),
    ("parsed", &[("EMULATED_GPU_HABITS", "parsed")]),
    ("headers", &[("EMULATED_GPU_HABITS", "headers,serial")]),
    (
        "eager",
        &[("EMULATED_GPU_HABITS", "eager"), ("EMULATED_GPU_KERNEL_NS", "0")],
    ),
    ("slow", &[("EMULATED_GPU_HABITS", "slow")]),
    ("counter-25", &[("EMULATED_GPU_COUNTER", "25000000")]),
    ("counter-0", &[("EMULATED_GPU_COUNTER", "100000000@0")]),
    (
        "counter-large",
        &[("EMULATED_GPU_COUNTER", "1000000000@9200000000000000000")],
    ),
    ("links", &[("EMULATED_GPU_COUNT", "3"), ("EMULATED_GPU_LINKS", "1")]),
    ("events", &[("EMULATED_GPU_EVENTS", "12")]),
    (
        "older",
        &[("EMULATED_GPU_KFD_MINOR", "11"), ("EMULATED_GPU_SENSORS", "0")],
    ),
    ("newer", &[("EMULATED_GPU_KFD_MINOR", "18")]),
];

/// The machine whose read index moves when kernels are complete: of all, this one holds the collector's waits up most. And the one
/// whose kernels begin when their packets are parsed: kernels of a queue that wait for each other overlap.
#[test]
fn a_machine_of_another_make_is_recorded_as_it_worked() {
    check_machines(&MACHINES[..2]);
}

#[test]
#[ignore = "all machines: .ci/matrix"]
fn machines_of_other_makes_are_recorded_as_they_worked() {
    check_machines(&MACHINES);
}

fn check_machines(machines: &[Machine]) {
    let Some(rig) = rig() else { return };
    for (name, machine) in machines {
        let machine = rig.on(machine);
        check_on(&machine, &format!("machine-{name}"), &["many_streams", "2", "4", "500"]);
        // Newer run-times have neither managed nor stream-ordered memory on an older driver.
        let other = if *name == "older" {
            &["memcpy_storm", "1", "1"] as &[_]
        } else {
            &["features"]
        };
        check_on(&machine, &format!("machine-{name}-copies"), other);
    }
}

#[test]
fn what_a_program_does_at_random_is_recorded_as_it_happened() {
    check_walks(1);
}

#[test]
#[ignore = "six walks: .ci/matrix"]
fn what_programs_do_at_random_is_recorded_as_it_happened() {
    check_walks(6);
}

/// As many walks as `ROCTOP_WALKS` says from the seed `ROCTOP_WALK` on, each on the next machine, with `ROCTOP_WALKERS` threads
/// beside the first: none by default, since HIP 5.7 crashes once in a hundred walks of several, untraced too. None where the
/// doorbell says how far packets go: of threads that share a queue the one behind may ring last, and HIP 6.4 then waits for
/// ever, untraced.
fn check_walks(usual: u64) {
    let Some(rig) = rig() else { return };
    let number = |name: &str, usual: u64| {
        std::env::var(name).map_or(usual, |text| {
            text.parse().unwrap_or_else(|_| panic!("{name}: no number"))
        })
    };
    let first = number("ROCTOP_WALK", 1);
    let walkers = number("ROCTOP_WALKERS", 0).to_string();
    // HIP 6.2 to 6.4 makes small copies between GPUs by kernels that have no signal (limits.md).
    let gpus = if release().is_some_and(|release| release.starts_with('6')) {
        "1"
    } else {
        "2"
    };
    let is_fit = |name: &str| name != "headers" && (name != "links" || gpus == "2");
    let machines: Vec<_> = MACHINES.iter().filter(|(name, _)| is_fit(name)).collect();
    for seed in first..first + number("ROCTOP_WALKS", usual) {
        let (name, machine) = machines[seed as usize % machines.len()];
        let several = std::iter::once(("EMULATED_GPU_COUNT", gpus)).chain(machine.iter().copied());
        let machine = rig.on(&several.collect::<Vec<_>>());
        let seed = seed.to_string();
        let words = ["random_walk", &seed, "200", &walkers];
        check_on(&machine, &format!("walk-{seed}-{name}"), &words);
    }
}

#[test]
fn copies_of_a_gpu_without_engines_for_them_are_the_run_times_kernels() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[("EMULATED_GPU_COPY_ENGINES", "0")]);
    let recorded = machine.record("no-engines", &["memcpy_storm", "1", "1"]);
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    recorded.check_lost();
    recorded.check_dispatches();
    // ROCr's own kernels have no names.
    let mut made: Vec<_> = recorded
        .truth
        .iter()
        .filter(|row| row.name.is_empty() && row.bytes > 0)
        .collect();
    let mut copies: Vec<_> = recorded.run.copies.iter().collect();
    made.sort_by_key(|row| row.begin);
    copies.sort_by_key(|copy| copy.span.begin);
    assert!(!recorded.truth.iter().any(|row| row.kind == "sdma_copy"));
    println!(
        "no-engines: {} copies, {} kernels of ROCr's that copy",
        copies.len(),
        made.len()
    );
    // It loads code objects by itself.
    let loads = made.len() - copies.len();
    assert!(loads <= 2, "{loads} kernels that copy without a copy");
    for copy in &copies {
        let same = made.iter().position(|row| {
            let near = |a: u64, b: u64| a.abs_diff(b) <= TOLERANCE;
            row.bytes == copy.bytes && near(row.begin, copy.span.begin) && near(row.end, copy.span.end)
        });
        made.remove(same.unwrap_or_else(|| panic!("no kernel made {copy:?}")));
    }
    // 5.2.3 does not tell how many engines there are.
    if !rig.is_oldest() {
        assert!(copies.iter().all(|copy| copy.engine == engine::BLIT));
    }
}

/// What a process leaves that ended before any of its work was recorded is dated by what the run-time knew of the GPU's clock
/// in that short time: 11 us off were seen on a busy machine.
const YOUNG: u64 = 50_000;

/// The processes of the app, one of which leaves by `_exit` with work under way. Where nobody but the emulation sees it leave,
/// that one ends as by a crash: what completed until then is recorded, the rest told as in flight.
fn check_processes(rig: &Rig, name: &str) {
    let recorded = rig.record(name, &["fork_exec"]);
    assert_eq!(recorded.output.status.code(), Some(0));
    recorded.check_lost();
    let dispatches = recorded.check_queues_after_a_crash(|rows, dispatches| {
        // Untimed are those of which it knew nothing yet.
        let timed = |dispatch: &Dispatch| dispatch.flags & flag::UNTIMED == 0;
        for (row, dispatch) in rows.iter().zip(dispatches).filter(|(_, dispatch)| timed(dispatch)) {
            recorded.check_dispatch_within(row, dispatch, YOUNG);
        }
    });
    recorded.check_copies_after_a_crash();
    recorded.check_correlation();
    let ticks = recorded.run.dispatches.iter();
    let ticks = ticks.filter(|d| recorded.kernel(d).contains("tick")).count();
    println!("{name}: {dispatches} dispatches logged, {ticks} recorded of 100 launched");
    assert!((70..=100).contains(&ticks), "{ticks}");
}

#[test]
fn work_of_a_process_that_an_emulation_ends_by_itself_has_its_times() {
    let Some(rig) = rig() else { return };
    check_processes(&rig.on(&[("EMULATED_GPU_HABITS", "exit")]), "exit");
}

#[test]
fn a_library_in_front_that_shadows_the_same_functions_changes_nothing() {
    let Some(rig) = rig() else { return };
    let nosy = rig.behind_a_nosy_one();
    for (name, how) in [("nosy", ""), ("trap", "trap")] {
        let machine = nosy.on(&[("NOSY", how)]);
        check_on(&machine, &format!("{name}-tour"), &["api_tour"]);
        check_on(
            &machine,
            &format!("{name}-streams"),
            &["many_streams", "2", "4", "2000"],
        );
        check_processes(&machine, &format!("{name}-processes"));
    }
}

#[test]
fn a_fallocate_of_the_program_that_fails_changes_nothing() {
    let Some(rig) = rig() else { return };
    let machine = rig.behind(&library("no_space"));
    check_on(&machine, "no-space-tour", &["api_tour"]);
    check_on(&machine, "no-space-streams", &["many_streams", "2", "4", "2000"]);
}

/// Every completion signal is in memory that the GPU does not cache: a GPU that never writes cached signals back changes
/// nothing.
#[test]
fn signals_are_in_uncached_memory() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[("EMULATED_GPU_CACHEABLE", "never")]);
    for (name, words) in [
        ("cache-streams", &["many_streams", "2", "4", "2000"] as &[_]),
        ("cache-copies", &["memcpy_storm", "1", "1"]),
        ("cache-graphs", &["graphs"]),
    ] {
        let recorded = machine.record(name, words);
        let cacheable = recorded.truth.iter().filter(|row| row.kind == "cacheable").count();
        assert_eq!(cacheable, 0, "{name}: signals in cacheable memory");
        assert!(recorded.output.status.success(), "{:?}", recorded.output);
        recorded.check_lost();
        assert!(recorded.check_dispatches() > 0);
        assert!(recorded.run.dispatches.iter().all(|d| d.flags & flag::UNTIMED == 0));
    }
}
