//! Runs each check on the emulated GPU: without faults, and with the fault that it must find.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Path of the emulated GPU's library; `None`, with the reason printed, if it or HSA is missing.
fn emulated_gpu() -> Option<PathBuf> {
    let beside = std::env::current_exe().unwrap();
    let target = beside.ancestors().nth(3).unwrap().to_owned();
    let built = [
        std::env::var_os("EMULATED_GPU_SO").map(PathBuf::from),
        Some(target.join("release/libemulated_gpu.so")),
    ];
    let found = built.into_iter().flatten().find(|path| path.exists());
    let has_hsa = || !line(None, &["D0"], &[]).contains("cannot be loaded");
    let reason = match &found {
        None => "the emulated GPU is not built (cargo build -p emulated-gpu --release)",
        Some(_) if !has_hsa() => "there is no HSA run-time",
        Some(_) => return found,
    };
    assert!(std::env::var_os("ROCTOP_REQUIRE_ROCM").is_none(), "{reason}");
    println!("skipped: {reason}");
    None
}

/// Runs of a check that a busy machine leaves undecided.
const TRIES: usize = 3;

/// Output of a check.
fn line(emulated: Option<&PathBuf>, words: &[&str], machine: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-check"));
    command
        .args(words)
        .envs(machine.iter().copied())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    match emulated {
        Some(library) => command.env("LD_PRELOAD", library),
        None => command.env_remove("LD_PRELOAD"),
    };
    let out = command.output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines()
        .find(|line| line.starts_with('{'))
        .unwrap_or_default()
        .to_owned()
}

/// Asserts status (empty: any but `bad`) and text of a check, unless the machine is too busy for it.
#[track_caller]
fn expect(words: &[&str], machine: &[(&str, &str)], status: &str, part: &str) {
    let Some(library) = emulated_gpu() else { return };
    let is_right = |line: &str| match status {
        "" => !line.contains("\"status\":\"bad\""),
        _ => line.contains(&format!("\"status\":\"{status}\"")),
    };
    for _ in 0..TRIES {
        let line = line(Some(&library), words, machine);
        if line.contains("\"machine_was_busy\":1") {
            continue;
        }
        assert!(
            is_right(&line) && line.contains(part),
            "{words:?} with {machine:?}: {line}"
        );
        return;
    }
    println!("undecided: the machine was busy: {words:?} with {machine:?}");
}

const SHORT: &str = "milliseconds=300";

#[test]
fn a_sound_gpu_passes() {
    expect(&["D0"], &[], "ok", "\"gfx\":\"gfx906\"");
    // `note` if they took long.
    expect(&["D1"], &[], "", "64 barriers");
    expect(&["D2", SHORT], &[], "ok", "kernarg memory");
    expect(&["D2", "pool=fine", SHORT], &[], "ok", "plain fine-grained memory");
    expect(&["D3", SHORT], &[], "ok", "\"memory\":\"private\"");
    // `note` if threads waited for room.
    expect(&["D5", "threads=4"], &[], "", "\"packets\":20000,\"kernels\":2500,");
    expect(&["D7", "milliseconds=1000"], &[], "ok", "50 times inside");
    expect(&["D8"], &[], "ok", "15 copies");
    expect(&["D8"], &[("HSA_ENABLE_SDMA", "0")], "ok", "13 copies");
    expect(&["D15"], &[], "ok", "three times");
}

#[test]
fn a_gpu_that_runs_no_kernels_is_no_witness() {
    for check in ["D4", "D6", "D13", "D15-fault"] {
        expect(&[check], &[], "note", "no witness");
    }
}

#[test]
fn cacheable_memory_is_found_in_the_plain_pool_alone() {
    for fault in ["late", "never"] {
        let machine = [("EMULATED_GPU_CACHEABLE", fault)];
        expect(
            &["D2", "pool=fine", SHORT],
            &machine,
            "bad",
            "plain fine-grained memory",
        );
        expect(&["D2", SHORT], &machine, "ok", "kernarg memory");
        expect(&["D3", SHORT], &machine, "ok", "tmpfs pages");
    }
}

#[test]
fn signals_that_never_come_are_found() {
    let foreign = [("EMULATED_GPU_LOST_SIGNALS", "foreign,after=100")];
    expect(&["D1"], &foreign, "", "64 barriers");
    expect(
        // The check ends at the first missing signal.
        &["D2", "milliseconds=60000"],
        &foreign,
        "bad",
        "after 100 completions one does not come, though a later packet's does",
    );
    let file = [("EMULATED_GPU_LOST_SIGNALS", "file")];
    expect(&["D2", SHORT], &file, "ok", "kernarg memory");
    expect(&["D3", SHORT], &file, "bad", "after 0 completions one does not come");
    expect(&["D1"], &[("EMULATED_GPU_LOST_SIGNALS", "all")], "bad", "0 of 64");
}

#[test]
fn late_signals_are_found() {
    let machine = [("EMULATED_GPU_LATE_SIGNALS", "file")];
    expect(&["D2", SHORT], &machine, "ok", "kernarg memory");
    expect(&["D3", SHORT], &machine, "bad", "more than 5 ms late");
}

#[test]
fn wrong_times_of_barriers_are_found() {
    for (fault, words) in [
        ("zero=7", "without times"),
        ("stale=7", "with the times of an earlier packet"),
        ("unwritten=7", "without times"),
    ] {
        expect(
            &["D2", SHORT],
            &[("EMULATED_GPU_WRONG_BARRIER_TIMES", fault)],
            "bad",
            words,
        );
    }
}

#[test]
fn wrong_times_of_kernels_are_found() {
    for fault in ["zero=3", "ahead=3", "later=3"] {
        expect(
            &["D6"],
            &[("EMULATED_GPU_WRONG_TIMES", fault)],
            "bad",
            "have times that cannot be theirs",
        );
    }
}

#[test]
fn skew_and_jumps_of_clocks_are_found() {
    expect(
        &["D7", "milliseconds=500"],
        &[("EMULATED_GPU_TIMES_SHIFT_NS", "300000")],
        "bad",
        "after they were seen complete",
    );
    expect(
        &["D7", "milliseconds=500"],
        &[("EMULATED_GPU_TIMES_SHIFT_NS", "-300000")],
        "bad",
        "before their doorbell",
    );
}

#[test]
fn a_frequency_that_is_not_the_counters_is_found() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("answers.so");
    let built = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(root.join("../../tests/integration/kit/answers.c"))
        .arg("-ldl")
        .status();
    assert!(built.is_ok_and(|status| status.success()), "answers.c does not compile");
    let machine = |declared| {
        [
            ("EMULATED_GPU_COUNTER", "1000000000"),
            ("HSA_TOOLS_LIB", library.to_str().unwrap()),
            ("HSA_ANSWERS_COUNTER", declared),
        ]
    };
    let words = ["D7", "milliseconds=500"];
    expect(
        &words,
        &machine("100000000"),
        "note",
        "declares 100.00 MHz for the GPU's counter, the run-time converts at 1000.0",
    );
    expect(&words, &machine("1000000000"), "ok", "50 times inside");
}

#[test]
fn busy_gpu_is_undecided() {
    expect(&["D1"], &[("EMULATED_GPU_BUSY_MS", "1500")], "note", "busy");
    expect(
        &["D2", SHORT],
        &[("EMULATED_GPU_BUSY_MS", "60000")],
        "note",
        "undecided",
    );
}

#[test]
fn pages_replaced_under_a_busy_queue_are_found() {
    let busy = ("EMULATED_GPU_BY_NAME", "roctop_spin*=50000000");
    // However late the check comes to replace pages.
    let long = ("EMULATED_GPU_BY_NAME", "roctop_spin*=60000000000");
    expect(
        &["D3", SHORT],
        &[busy, ("EMULATED_GPU_EVICTION", "hang")],
        "ok",
        "tmpfs pages",
    );
    expect(
        &["D4", SHORT],
        &[long, ("EMULATED_GPU_EVICTION", "hang")],
        "bad",
        "while pages were replaced",
    );
    expect(
        &["D4", SHORT],
        &[busy, ("EMULATED_GPU_EVICTION", "stop")],
        "note",
        "no witness",
    );
}

#[test]
fn shared_pools_are_replaced_like_private_ones() {
    expect(
        &["D3", SHORT],
        &[("EMULATED_GPU_POOLS", "shared")],
        "ok",
        "\"memory\":\"shared\"",
    );
}
