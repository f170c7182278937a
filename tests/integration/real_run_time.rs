//! Real HIP programs on ROCm 5.2.3 over the emulated GPU: what is recorded is what happened.

mod causes;
mod copies;
mod counters;
mod dispatch;
mod foreign;
mod gauges;
mod hip;
mod hostile;
mod hsa;
mod levels;
mod machines;
mod newest;
mod other_makes;
mod processes;
mod recovery;
mod signals;
pub(crate) mod sites;

use crate::kit::rig::{Recorded, Rig, patience, release, rig};
use roctop::item::Exit;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A recorded program says and ends as it does alone.
fn check_output(recorded: &Recorded, plain: &Output) {
    assert_eq!(
        text(&recorded.output.stdout),
        text(&plain.stdout),
        "{:?} {}",
        recorded.output.status,
        text(&recorded.output.stderr)
    );
    // Debian's run-times are built with assertions. They tell at exit how many signals they pooled, and how often they
    // waited for one that another processor waits for: both differ from run to run, with roctop and without.
    let counted = |bytes: &[u8]| -> String {
        let text = text(bytes).replace(|c: char| c.is_ascii_digit(), "");
        // An address has letters, too.
        let plain = |line: &str| match line.split_once("time stamps may be invalid") {
            Some((_, rest)) => format!("time stamps may be invalid{rest}"),
            None => line.to_owned(),
        };
        text.split_inclusive('\n')
            .filter(|line| !line.contains("Use of non-host signal in host signal wait API"))
            .map(plain)
            .collect()
    };
    assert_eq!(counted(&recorded.output.stderr), counted(&plain.stderr));
    assert_eq!(recorded.output.status, plain.status);
}

/// Records a program and checks everything that holds for every program.
fn check(name: &str, words: &[&str]) -> Option<Recorded> {
    Some(check_on(rig()?, name, words))
}

fn check_on(rig: &Rig, name: &str, words: &[&str]) -> Recorded {
    let plain = rig.plain(name, words);
    let recorded = rig.record(name, words);
    check_output(&recorded, &plain);
    recorded.check_lost();
    let calls = recorded.check_calls();
    recorded.check_nesting();
    let dispatches = recorded.check_dispatches();
    let copies = recorded.check_copies();
    recorded.check_correlation();
    let misses = |text: &&String| text.contains("or more are not recorded");
    assert_eq!(recorded.said.iter().find(misses), None, "nothing is missing");
    println!("{name}: {calls} calls, {dispatches} dispatches, {copies} copies, all as logged");
    assert!(calls > 0);
    recorded
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

#[test]
fn what_programs_seldom_ask_of_hip_is_recorded_as_it_happened() {
    for corner in [
        "reset",
        "arrays",
        "per_thread",
        "timing",
        "contexts",
        "compiled",
        "managed",
        "callbacks",
        "graphs",
    ] {
        if corner == "graphs" && release().is_some_and(|release| release.starts_with('6')) {
            println!("corner-graphs: n/a: HIP 6.4.3 crashes in it, untraced too");
            continue;
        }
        let Some(recorded) = check(&format!("corner-{corner}"), &["corners", corner]) else {
            return;
        };
        // With a callback HIP reports markers of streams that are gone, and crashes now and then.
        let way = recorded.said.iter().find(|text| text.starts_with("HIP calls:"));
        assert!(
            way.is_some_and(|way| !way.contains("and the tracer callback")),
            "{way:?}"
        );
    }
}

#[test]
fn the_memory_of_a_program_is_what_the_program_counts() {
    let Some(recorded) = check("memory", &["memory"]) else {
        return;
    };
    let allocations = recorded.check_memory();
    println!("memory: {allocations} allocations and frees, each and the total as the program counts");
}

#[test]
fn arguments_of_calls_are_recorded_when_they_are_wanted() {
    let Some(rig) = rig() else { return };
    let recorded = rig.record_with("args", &["--args"], &["matrix_transpose", "2"]);
    assert_eq!(recorded.output.status.code(), Some(0));
    recorded.check_lost();
    recorded.check_calls();
    recorded.check_dispatches();
    let texts = |name: &str| -> Vec<&str> {
        let run = &recorded.run;
        let calls = run
            .calls
            .iter()
            .filter(|call| &*run.operations[call.operation.0 as usize].name == name);
        calls
            .map(|call| call.arguments.map_or("", |id| &*run.texts[id.0 as usize]))
            .collect()
    };
    let (given, freed) = (texts("hipMalloc"), texts("hipFree"));
    assert_eq!((given.len(), freed.len()), (2, 2));
    for (one, other) in given.iter().zip(&freed) {
        // What was given is what is freed: both are told by their addresses.
        assert_eq!(*one, format!("{other}, size=4194304"));
    }
    let copies = texts("hipMemcpy");
    let kinds = |kind: &str| {
        copies
            .iter()
            .filter(|text| text.ends_with(&format!("size=4194304, kind={kind}")))
            .count()
    };
    assert_eq!(["HostToDevice", "DeviceToDevice", "DeviceToHost"].map(kinds), [2, 2, 2]);
    let launches = texts("hipLaunchKernel");
    let shapes = ["grid=64x64x1, block=16x16x1, ", "grid=32x32x1, block=32x8x1, "];
    assert_eq!(
        shapes.map(|shape| launches.iter().filter(|text| text.contains(shape)).count()),
        [2, 2]
    );
}

#[test]
fn a_tool_of_the_programs_own_keeps_getting_every_call_and_record() {
    for how in ["before", "after", "handle"] {
        check(&format!("two-{how}"), &["two_tools", how]);
    }
}

#[test]
fn tables_that_a_run_time_hands_over_are_the_source_of_its_calls() {
    let Some(rig) = rig() else { return };
    let registering = match rig.registering() {
        Ok(rig) => rig,
        Err(reason) => {
            println!("n/a: {reason}");
            return;
        }
    };
    for words in [
        &["matrix_transpose", "5"] as &[&str],
        &["many_streams", "4", "16", "10000"],
        &["api_tour"],
        &["two_tools", "handle"],
        &["features", "1"],
    ] {
        let recorded = check_on(&registering, &format!("tables-{}", words[0]), words);
        let said = |part: &str| recorded.said.iter().any(|text| text.contains(part));
        let (hip, functions, hsa) = if crate::kit::rig::is_newest() {
            ("7.15.0", "528", "1.21.0")
        } else {
            ("7.2.0", "49", "1.18.0")
        };
        let all = [
            format!("hip {hip}: dispatch table of {functions}"),
            format!("hip_compiler {hip}: dispatch table of 9 functions"),
            format!("hsa {hsa}: dispatch tables"),
        ];
        assert!(all.iter().all(|part| said(part)), "{:?}", recorded.said);
    }
}

/// Runs an app that is killed, or ends itself, in the middle of its work.
fn crash(name: &str, mode: &str) -> Option<Recorded> {
    let rig = rig()?;
    let place = Rig::place(name);
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let mut command = rig.command(&place, &options, &["crash_mid", mode]);
    if mode != "forever" {
        return Some(Recorded::load(&place, Rig::ended(&mut command)));
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let app = wait_for_rows(&place, 5000);
    let killed = Command::new("sh")
        .args(["-c", &format!("kill -9 {app}")])
        .status()
        .unwrap();
    assert!(killed.success());
    Some(Recorded::load(&place, child.wait_with_output().unwrap()))
}

/// The process id of the app, once its log has more than a thousand rows.
fn wait_for_log(place: &Path) -> u32 {
    wait_for_rows(place, 1000)
}

/// The process id of an app whose log has more rows than that.
fn wait_for_rows(place: &Path, rows: usize) -> u32 {
    let started = Instant::now();
    loop {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let pid = name.strip_prefix("truth.").and_then(|rest| rest.strip_suffix(".csv"));
            if let Some(pid) = pid.and_then(|pid| pid.parse().ok())
                && std::fs::read_to_string(&path).is_ok_and(|text| text.lines().count() > rows)
            {
                return pid;
            }
        }
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "the app never got to its work"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Completions that each of the two queues' processors may have logged and not told the host yet.
const UNTOLD: usize = 2 * 64;

#[test]
fn what_the_gpu_had_completed_before_a_kill_is_in_the_recording() {
    let Some(recorded) = crash("kill", "forever") else {
        return;
    };
    assert_eq!(
        recorded.output.status.signal(),
        Some(9),
        "roctop ends by the same signal"
    );
    let exits: Vec<Exit> = recorded.run.exits.values().copied().collect();
    assert!(exits.contains(&Exit::Signal(9)), "{exits:?}");
    recorded.check_lost();
    let (missing, all) = recorded.missing_at_the_end(Duration::from_millis(2));
    println!("killed: {all} dispatches logged, {missing} of the last 2 ms are not in the recording");
    assert!(all > 1000 && missing <= UNTOLD);
}

#[test]
fn what_a_program_saw_complete_before_it_killed_itself_is_in_the_recording() {
    let Some(recorded) = crash("killed-itself", "kill") else {
        return;
    };
    assert_eq!(recorded.output.status.signal(), Some(9));
    recorded.check_lost();
    let dispatches = recorded.check_dispatches();
    let copies = recorded.check_copies();
    assert!(
        dispatches > 1000 && copies > 100,
        "{dispatches} dispatches, {copies} copies"
    );
}

#[test]
fn copies_that_a_crash_leaves_under_way_are_told() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("copies-under-way");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let mut command = rig.command(&place, &options, &["crash_mid", "abort", "1"]);
    // A launch, a copy that takes long, and the end.
    command.env("EMULATED_GPU_COPY_LATENCY_NS", "2000000000");
    let recorded = Recorded::load(&place, Rig::ended(&mut command));
    assert_eq!(recorded.output.status.signal(), Some(6));
    assert_eq!(recorded.under_way.values().sum::<u64>(), 1);
    assert!(recorded.run.copies.is_empty());
    let told = Command::new(env!("CARGO_BIN_EXE_roctop"))
        .args(["summary", recording.to_str().unwrap()])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("  1 copy, begun and not seen complete\n"), "{told}");
}

#[test]
fn a_program_ends_as_it_would_without_roctop() {
    for (mode, signal, code) in [
        ("abort", Some(6), None),
        ("segv", Some(11), None),
        ("exit", None, Some(3)),
        ("_exit", None, Some(4)),
        ("return", None, Some(5)),
    ] {
        let Some(recorded) = crash(&format!("end-{mode}"), mode) else {
            return;
        };
        assert_eq!(
            (recorded.output.status.signal(), recorded.output.status.code()),
            (signal, code),
            "{mode}"
        );
        let (_, all) = recorded.missing_at_the_end(Duration::from_millis(2));
        assert!(all > 1000, "{mode}: {all}");
    }
}

#[test]
fn what_does_not_end_is_killed_with_what_it_started_and_told() {
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 1000 | sleep 1000; true"]);
    let stood = patience::output_within(&mut command, Duration::from_millis(300)).unwrap_err();
    assert_eq!(stood.matches(" sleep in ").count(), 2, "{stood}");
    assert!(patience::output_within(Command::new("sh").args(["-c", "echo"]), Duration::from_mins(1)).is_ok());
}
