//! Each kind of condition on a real HIP program over the emulated GPU. Whatever else a busy machine makes true, what became true
//! is in the recording; `crates/model/src/trigger/watch.rs` tests when conditions become true.

use super::{Kept, entries, said};
use crate::kit::rig::{Rig, rig};
use roctop::recording::Recording;

/// A program, one of its conditions, what the reason says, and the machine.
struct Case {
    what: &'static str,
    condition: &'static str,
    reason: &'static str,
    options: &'static [&'static str],
    machine: &'static [(&'static str, &'static str)],
    /// Whether what became true is in the recording.
    has_event: fn(&Kept) -> bool,
}

const STUCK: &[(&str, &str)] = &[("EMULATED_GPU_BY_NAME", "stuck=5000000000")];
const BY_SIZE: &[(&str, &str)] = &[("EMULATED_GPU_PER_WORKGROUP_NS", "1000")];

fn has_call(kept: &Kept, name: &str, is_wanted: impl Fn(&roctop::item::ApiCall) -> bool) -> bool {
    let operations = &kept.run.operations;
    let calls = kept.run.calls.iter();
    calls
        .filter(|call| *operations[call.operation.0 as usize].name == *name)
        .any(is_wanted)
}

/// Durations of all launches.
fn durations(kept: &Kept) -> impl Iterator<Item = u64> {
    kept.run.dispatches.iter().map(|dispatch| dispatch.span.duration())
}

/// Durations of the requests that the reason names, and of all others.
fn requests(kept: &Kept) -> (Vec<u64>, Vec<u64>) {
    let requests = kept.run.markers.iter().filter_map(|range| {
        let text = kept.run.texts.get(range.text.0 as usize)?;
        let is_named = kept.trigger.reason.contains(&format!("\"{text}\""));
        text.starts_with("request").then_some((is_named, range.span.duration()))
    });
    let (named, others): (Vec<_>, Vec<_>) = requests.partition(|request| request.0);
    let durations = |all: Vec<(bool, u64)>| all.into_iter().map(|request| request.1).collect();
    (durations(named), durations(others))
}

/// A test for each case.
macro_rules! cases {
    ($($test:ident: $case:expr;)*) => {
        $(#[test]
        fn $test() {
            check(&$case);
        })*
    };
}

cases! {
    slow_step: Case {
        what: "slow",
        condition: "step > 3*p50(step)",
        reason: "step \"request",
        options: &[],
        machine: &[],
        has_event: |kept| {
            let (named, others) = requests(kept);
            named[0] > 3 * others.into_iter().min().unwrap()
        },
    };
    long_range: Case {
        what: "slow",
        condition: "range(request) > 150ms",
        reason: "range \"request",
        options: &[],
        machine: &[],
        has_event: |kept| requests(kept).0[0] > 150_000_000,
    };
    mark: Case {
        what: "nan",
        condition: "marker ~ \"NaN\"",
        reason: "marker \"loss is NaN\"",
        options: &[],
        machine: &[],
        has_event: |kept| {
            let is_it = |at: u64| at.abs_diff(kept.trigger.at) < 1_000_000;
            kept.run.markers.iter().any(|mark| is_it(mark.span.begin))
        },
    };
    failed_call: Case {
        what: "error",
        condition: "error(hip*)",
        reason: "hipMalloc returned hipErrorOutOfMemory",
        options: &[],
        machine: &[],
        has_event: |kept| has_call(kept, "hipMalloc", |call| call.status == Some(2)),
    };
    idle_gpu: Case {
        what: "idle",
        condition: "idle(gpu0) > 500ms",
        reason: "GPU0 ran neither kernel nor copy for",
        options: &[],
        machine: &[],
        has_event: |kept| {
            let begins = kept.begins();
            let idle = kept.trigger.at - 499_000_000..kept.trigger.at - 1_000_000;
            begins[0] < idle.start && !begins.iter().any(|begin| idle.contains(begin))
        },
    };
    stuck_kernel: Case {
        what: "stuck",
        condition: "hang(stuck) > 1s",
        reason: "has been open for ",
        options: &[],
        machine: STUCK,
        has_event: |kept| {
            let in_flight = Recording::open(&kept.path).unwrap().left_open().unwrap().dispatches;
            let is_there = in_flight > 0 || durations(kept).any(|nanos| nanos > 1_000_000_000);
            is_there && kept.trigger.reason.starts_with("stuck on GPU0")
        },
    };
    slow_percentile: Case {
        what: "long",
        condition: "p99(work) > 2ms in last 1min",
        reason: "work: ",
        options: &[],
        machine: BY_SIZE,
        has_event: |kept| durations(kept).any(|nanos| nanos > 2_000_000),
    };
    slow_launch: Case {
        what: "long",
        condition: "dur(work) > 100*p50(work)",
        reason: "work on GPU0 took ",
        options: &[],
        machine: BY_SIZE,
        has_event: |kept| durations(kept).max() > durations(kept).min().map(|least| 100 * least),
    };
    many_calls: Case {
        what: "alloc",
        condition: "calls(hipMalloc) > 30 in last 1min",
        reason: "hipMalloc: ",
        options: &[],
        machine: &[],
        has_event: |kept| has_call(kept, "hipFree", |_| true),
    };
    lost_records: Case {
        what: "burst",
        condition: "lost > 0",
        reason: "lost",
        options: &["--ring", "4K"],
        machine: &[],
        has_event: |kept| has_call(kept, "hipGetDevice", |_| true) && !kept.run.lost.is_empty(),
    };
    gauge: Case {
        what: "calm",
        condition: "shader_clock(gpu0) > 1600",
        reason: "shader clock of GPU0 is 1700MHz",
        options: &["--gauge-rate", "0.7"],
        machine: &[],
        has_event: |kept| !kept.run.gauges.is_empty(),
    };
    crash: Case {
        what: "crash",
        condition: "exit(signal)",
        reason: "ended: signal 11 SIGSEGV",
        options: &[],
        machine: &[],
        has_event: |kept| !kept.run.exits.is_empty(),
    };
}

fn check(case: &Case) {
    let Some(rig) = rig() else { return };
    let place = Rig::place(&format!("keep-{}", case.what));
    let runs = place.join("runs");
    // A hang's recording ends before the program does.
    let after = if case.what == "stuck" { "1s" } else { "1min" };
    let mut options = vec![
        "record",
        "-o",
        runs.to_str().unwrap(),
        "--keep",
        "1min",
        "--after",
        after,
    ];
    options.extend(["--on", case.condition]);
    options.extend(case.options);
    let machine = rig.on(case.machine);
    let output = Rig::ended(&mut machine.command(&place, &options, &["serve", case.what]));
    let text = said(&output);
    assert!(output.status.success() || case.what == "crash", "{text}");
    let kept = Kept::only(&runs, &text);
    let trigger = &kept.trigger;
    assert_eq!(trigger.condition, case.condition);
    assert!(trigger.reason.contains(case.reason), "{}", trigger.reason);
    assert!(
        (case.has_event)(&kept),
        "the event is not in the recording: {trigger:?}"
    );
    // The first gauge is read at the program's begin.
    if case.what != "calm" {
        kept.check();
        // A stuck kernel holds up all others.
        if case.what != "stuck" {
            kept.check_after();
        }
    }
    assert!(text.contains(&trigger.reason), "{text}");
}

/// Conditions that a calm program does not meet, however busy the machine is.
const NEVER: [&str; 11] = [
    "step > 100000*p50(step)",
    "range(request) > 10min",
    "marker ~ \"NaN\"",
    "error(hip*)",
    "idle(gpu0) > 10min",
    "hang > 10min",
    "p99(work) > 10min",
    "dur(work) > 100000*p50(work)",
    "calls(hipMalloc) > 30 in last 1min",
    "lost > 0",
    "exit(signal)",
];

#[test]
fn a_calm_program_writes_nothing_whatever_is_asked() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("keep-nothing");
    let runs = place.join("runs");
    let mut options = vec!["record", "-o", runs.to_str().unwrap(), "--keep", "1s"];
    options.extend(NEVER.iter().flat_map(|condition| ["--on", condition]));
    let output = Rig::ended(&mut rig.command(&place, &options, &["serve", "calm"]));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(entries(&runs), [] as [std::path::PathBuf; 0], "{}", said(&output));
}
