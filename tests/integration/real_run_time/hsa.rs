//! Programs that use HSA without HIP.

use super::{check_output, text};
use crate::kit::rig::{Recorded, Rig, is_newest, library, rig};
use roctop::item::{AgentId, AgentKind, Copy, LossReason};
use roctop_ring::record::{direction, engine, flag};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

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

/// Debian's 7.2.4 answers HSA 1.1, like releases before 6: the text of its build says more.
#[test]
fn times_of_a_gpu_are_doubted_by_the_build_of_the_run_time() {
    let Some(rig) = rig() else { return };
    for (build, is_doubted) in [
        ("\"1.18.0-local-build-unknown\"", false),
        ("\"1.13.0-local-build-unknown\"", true),
        ("1.15.60402-120~22.04", false),
        ("1.14.60304-76~22.04", true),
        ("-", false),
    ] {
        let machine = rig
            .behind(&library("answers"))
            .on(&[("HSA_ANSWERS_NAME", "gfx942"), ("HSA_ANSWERS_BUILD", build)]);
        let recorded = machine.record("doubted", &["raw_hsa"]);
        assert!(recorded.output.status.success(), "{:?}", recorded.output);
        let doubts = recorded
            .said
            .iter()
            .filter(|text| text.contains("gfx942 before ROCm 6.4.2"));
        assert_eq!(doubts.count(), usize::from(is_doubted), "{build}: {:?}", recorded.said);
        assert!(recorded.run.agents.iter().any(|agent| &*agent.name == "gfx942"));
    }
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

#[test]
fn copies_that_a_call_makes_are_recorded_with_their_bytes_and_told_apart() {
    let Some(rig) = rig() else { return };
    let plain = rig.plain("blocking", &["raw_hsa", "blocking"]);
    let recorded = rig.record_with("blocking", &["--hsa-trace"], &["raw_hsa", "blocking"]);
    check_output(&recorded, &plain);
    recorded.check_lost();
    recorded.check_calls();
    let text = std::fs::read_to_string(recorded.place.join("memory")).unwrap();
    let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let told: Vec<_> = lines
        .filter(|words| words[0].ends_with("_copy") || words[0].ends_with("_fill"))
        .map(|words| (words[0].to_owned(), words[1].parse().unwrap(), words[3].to_owned()))
        .collect();
    let run = &recorded.run;
    let mut copies: Vec<_> = run.copies.iter().filter(|copy| copy.engine == engine::CALL).collect();
    copies.sort_by_key(|copy| copy.span.begin);
    let call = |copy: &Copy| {
        let found = run.calls.iter().find(|call| call.correlation == copy.correlation);
        found.unwrap_or_else(|| panic!("no call of {copy:?}"))
    };
    let name = |copy: &Copy| run.operations[call(copy).operation.0 as usize].name.to_string();
    let found: Vec<_> = copies
        .iter()
        .map(|copy| (name(copy), copy.bytes, direction::name(copy.direction).to_owned()))
        .collect();
    println!("blocking: {} copies and fills, as the program tells", told.len());
    assert_eq!(found, told);
    assert_eq!(told.len(), 30);
    for copy in copies {
        let (outer, inner) = (call(copy).span, copy.span);
        assert!(outer.begin <= inner.begin && inner.begin < inner.end && inner.end <= outer.end);
        let kind = |agent: Option<AgentId>| agent.map(|agent| run.agents[agent.0 as usize].kind);
        let ends = match copy.direction {
            direction::H2D => (Some(AgentKind::Cpu), Some(AgentKind::Gpu)),
            direction::D2H => (Some(AgentKind::Gpu), Some(AgentKind::Cpu)),
            direction::D2D => (Some(AgentKind::Gpu), Some(AgentKind::Gpu)),
            direction::H2H => (Some(AgentKind::Cpu), Some(AgentKind::Cpu)),
            _ => (None, Some(AgentKind::Gpu)),
        };
        assert_eq!((kind(copy.source), kind(copy.destination)), ends, "{copy:?}");
    }
    // A copy of rocprofv3's is one with a time of its own.
    let files = recorded.place.join("files");
    let mut export = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"));
    export
        .arg("export")
        .arg(recorded.place.join("rec"))
        .args(["--format", "csv", "-d"])
        .arg(&files);
    assert!(export.output().unwrap().status.success());
    let names: Vec<String> = std::fs::read_dir(&files)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        names.iter().any(|name| name.ends_with("hsa_api_trace.csv")),
        "{names:?}"
    );
    assert!(!names.iter().any(|name| name.contains("memory_copy")), "{names:?}");
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
    let place = Rig::place("tool");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let mut command = rig.command(&place, &options, &["many_streams", "3", "6", "3000"]);
    command.env("HSA_TOOLS_LIB", rig.app("libother_tool.so"));
    let output = Rig::ended(command.env("OTHER_TOOL", place.join("tool")));
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

/// A driver's clock, as the emulated GPU takes it, and what the collector says of it.
const CLOCKS: [(&str, &str); 4] = [
    ("3600000000000", "s ahead of CLOCK_BOOTTIME (a time namespace"),
    ("-700000", "s behind CLOCK_BOOTTIME (a time namespace"),
    ("realtime", "s ahead of CLOCK_BOOTTIME (it is CLOCK_REALTIME)"),
    ("0", ""),
];

#[test]
fn times_of_the_gpu_are_right_where_the_drivers_clock_is_another_one_and_that_is_told() {
    let Some(rig) = rig() else { return };
    for (clock, said) in CLOCKS {
        let machine = rig.on(&[("EMULATED_GPU_CLOCK", clock)]);
        let recorded = machine.record("clock", &["memcpy_storm", "1", "1"]);
        assert!(recorded.output.status.success(), "{:?}", recorded.output);
        recorded.check_lost();
        let (dispatches, copies) = (recorded.check_dispatches(), recorded.check_copies());
        recorded.check_correlation();
        let told: Vec<_> = recorded
            .said
            .iter()
            .filter(|text| text.contains("the driver's clock"))
            .collect();
        println!("clock {clock}: {dispatches} dispatches, {copies} copies, as logged; {told:?}");
        assert_eq!(told.len(), usize::from(!said.is_empty()), "{told:?}");
        assert!(told.iter().all(|text| text.contains(said)), "{told:?}");
        if let (Ok(ahead), [text]) = (clock.parse::<i64>(), &told[..]) {
            let number = text.split(' ').find_map(|word| word.parse::<f64>().ok()).unwrap();
            // The offset is what two clocks differ by, read one after the other.
            let error = number - ahead.unsigned_abs() as f64 / 1e9;
            assert!(error.abs() < 20e-6, "{error} s in {text}");
        }
        assert!(copies > 0);
        let recorded = machine.record("clock-copies", &["raw_hsa", "copies"]);
        assert_eq!(recorded.check_copies(), 100, "copies alone tell it as well");
        assert!(recorded.truth.iter().all(|row| row.name.is_empty()), "no kernel");
    }
}

#[test]
fn an_exit_in_a_signal_handler_that_interrupted_hsa_waits_for_nobody_long_and_loses_no_kernel() {
    let Some(rig) = rig() else { return };
    // Most of the moments lie within HSA, some of them where it holds the lock that converting times needs.
    for microseconds in (0..10).map(|step| 2000 + step * 1709) {
        let place = Rig::place("leave");
        let recording = place.join("rec");
        let options = ["record", "-o", recording.to_str().unwrap()];
        let words = ["raw_hsa", "leave", &microseconds.to_string()];
        let began = Instant::now();
        let mut child = rig
            .command(&place, &options, &words)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if began.elapsed() > Duration::from_mins(1) => {
                    child.kill().unwrap();
                    panic!("it waits for itself");
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let took = began.elapsed();
        assert_eq!(status.code(), Some(7));
        let output = Output {
            status,
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        let kernels = Recorded::load(&place, output).check_dispatches_of_one_queue_after_a_crash();
        println!("leave {microseconds}: {took:?}, {kernels} kernels");
        assert!(kernels >= 300);
    }
}

/// The stand-in, compiled once.
fn stand_in() -> &'static Path {
    static STAND_IN: OnceLock<PathBuf> = OnceLock::new();
    STAND_IN.get_or_init(|| library("newer_hsa"))
}

/// A run-time that has what ROCr 1.21 has, by a stand-in that hands its longer table over, or because it is that one.
fn newer(words: &[&str]) -> Option<(Recorded, String)> {
    let rig = if is_newest() {
        rig()?.on(&[("EMULATED_GPU_LARGE_BAR", "1")])
    } else {
        rig()?.behind(stand_in())
    };
    let name = format!("newer-{}", words[1]);
    let plain = rig.plain(&name, words);
    assert!(text(&plain.stdout).ends_with("wrong times 0\n"), "{plain:?}");
    let place = Rig::place(&name);
    let recording = place.join("rec");
    let options = ["record", "--hsa-trace", "-o", recording.to_str().unwrap()];
    let mut command = rig.command(&place, &options, words);
    let recorded = Recorded::load(&place, Rig::ended(command.env("NEWER_HSA_NOTES", place.join("told"))));
    check_output(&recorded, &plain);
    recorded.check_calls();
    let told = std::fs::read_to_string(place.join("told")).unwrap_or_default();
    Some((recorded, told))
}

#[test]
fn kernel_of_an_extended_dispatch_packet_is_recorded() {
    let Some(rig) = rig() else { return };
    let plain = rig.plain("extended", &["raw_hsa", "extended"]);
    let recorded = rig.record("extended", &["raw_hsa", "extended"]);
    check_output(&recorded, &plain);
    recorded.check_lost();
    let dispatches = recorded.check_dispatches();
    println!("extended: {dispatches} dispatches as logged");
    assert_eq!(dispatches, 60 * 5 + 60);
    let extended = recorded.run.dispatches.iter().filter(|d| d.workgroup[1] == 2);
    assert_eq!(extended.count(), 60 * 4 + 60);
    assert!(recorded.run.dispatches.iter().all(|d| d.flags & flag::UNTIMED == 0));
}

#[test]
fn kernel_of_a_counted_queue_is_recorded() {
    let Some((recorded, _)) = newer(&["raw_hsa", "counted"]) else {
        return;
    };
    recorded.check_lost();
    // Queues that share the hardware's are one queue in the log of the run-time's own.
    let dispatches = if is_newest() {
        recorded.check_dispatches_by_begin()
    } else {
        recorded.check_dispatches()
    };
    println!("counted: {dispatches} dispatches as logged");
    assert_eq!(dispatches, 2 * (3 * 20 + 2 * 10));
}

#[test]
fn copies_of_a_batch_are_recorded() {
    // The size of an operation in the header that this run-time was built with.
    let bytes = if is_newest() { "128" } else { "160" };
    let Some((recorded, _)) = newer(&["raw_hsa", "batch", bytes]) else {
        return;
    };
    let is_timed = |copy: &&Copy| copy.flags & flag::UNTIMED == 0;
    let copies = &recorded.run.copies;
    let bytes = |wanted: u64, direction| {
        let same = copies.iter().filter(|c| c.bytes == wanted && c.direction == direction);
        same.filter(is_timed).count()
    };
    assert_eq!([bytes(24 * 512, direction::H2D), bytes(3000, direction::D2H)], [10, 10]);
    // Two operations of one batch share a signal: both are there, without times.
    let untimed: Vec<u64> = copies.iter().filter(|copy| !is_timed(copy)).map(|c| c.bytes).collect();
    assert_eq!(untimed, [3000, 5000]);
    let lost: Vec<_> = recorded.run.lost.iter().filter(|(_, records)| **records > 0).collect();
    assert!(matches!(lost[..], [((_, LossReason::Untimed), 2)]), "{lost:?}");
    if is_newest() {
        let left: Vec<u64> = recorded.check_batches().iter().map(|row| row.bytes).collect();
        assert_eq!(left, untimed);
        return;
    }
    let logged = crate::kit::rig::engine_copies(&recorded.truth);
    for row in &logged {
        let near = |a: u64, b: u64| a.abs_diff(b) <= crate::kit::rig::TOLERANCE;
        let is_it = |c: &Copy| c.bytes == row.bytes && near(c.span.begin, row.begin) && near(c.span.end, row.end);
        let is_last = logged.iter().rev().take(2).any(|last| last.begin == row.begin);
        assert!(is_last || copies.iter().any(is_it), "{row:?}");
    }
    assert_eq!(logged.len(), 22);
}

#[test]
fn kernel_of_a_queue_by_descriptor_is_recorded() {
    let Some((recorded, told)) = newer(&["raw_hsa", "described"]) else {
        return;
    };
    recorded.check_lost();
    let dispatches = recorded.check_dispatches();
    println!("described: {dispatches} dispatches as logged");
    assert_eq!(dispatches, 60);
    // The run-time itself made the queue that cannot be intercepted, and that is said.
    if !is_newest() {
        assert_eq!(told, "created 4096 bytes flags 1\n");
    }
    let said = |text: &&String| text.contains("its descriptor asks for more");
    assert_eq!(recorded.said.iter().filter(said).count(), 1, "{:?}", recorded.said);
}

/// Runs a program where the run-time hides every Nth queue, and compares what there is with the log.
fn hidden(every: &str, words: &[&str]) {
    let Some(rig) = rig() else { return };
    if is_newest() {
        println!("n/a: the stand-in that hides queues hands over an older table");
        return;
    }
    let rig = rig.behind(stand_in());
    let place = Rig::place(&format!("hidden-{every}"));
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let mut command = rig.command(&place, &options, words);
    let recorded = Recorded::load(&place, Rig::ended(command.env("NEWER_HSA_HIDES", every)));
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    let is_programs = |name: &str| !name.is_empty() && !name.contains("amd_rocclr");
    let logged = recorded.truth.iter().filter(|row| row.kind == "dispatch");
    let launched = logged.filter(|row| is_programs(&row.name)).count();
    let run = &recorded.run;
    let programs = run.dispatches.iter().filter(|d| is_programs(recorded.kernel(d)));
    let mut kernels: Vec<_> = programs.map(|d| (d.correlation, d.span.begin)).collect();
    let said: Vec<_> = recorded
        .said
        .iter()
        .filter(|text| text.contains("or more are not recorded"))
        .collect();
    println!("hidden {every}: {} of {launched} kernels; {said:?}", kernels.len());
    let [said] = said[..] else {
        panic!("{:?}", recorded.said)
    };
    let missing: usize = said.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert!(missing > 0);
    if rig.is_oldest() {
        // 5.2.3 has no records of its own.
        assert!(kernels.len() + missing <= launched);
    } else {
        assert_eq!(kernels.len() + missing, launched);
    }
    let all = kernels.len();
    kernels.sort_unstable();
    kernels.dedup();
    assert_eq!(kernels.len(), all, "a kernel is there twice");
    let mut roctop = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"));
    let summary = text(&roctop.arg("summary").arg(&recording).output().unwrap().stdout);
    assert!(summary.contains(&format!("incomplete: {said}")), "{summary}");
}

#[test]
fn kernels_come_from_hips_records_where_no_queue_is_seen() {
    hidden("1", &["matrix_transpose", "10"]);
}

#[test]
fn kernels_come_from_hips_records_where_one_queue_is_not_seen() {
    hidden("2", &["many_streams", "1", "2", "600"]);
}
