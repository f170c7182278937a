//! Each kind of condition on a real HIP program over the emulated GPU.

use super::{Kept, entries, said};
use crate::kit::rig::{Rig, rig};
use roctop::recording::Recording;
use roctop::units;
use std::time::Duration;

/// A program, one of its conditions, what the reason says, and the machine.
struct Case {
    what: &'static str,
    condition: &'static str,
    reason: &'static str,
    options: &'static [&'static str],
    machine: &'static [(&'static str, &'static str)],
    /// Whether the event is in the recording.
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

fn longest(kept: &Kept) -> u64 {
    kept.run
        .dispatches
        .iter()
        .map(|dispatch| dispatch.span.duration())
        .max()
        .unwrap_or(0)
}

const CASES: [Case; 12] = [
    Case {
        what: "slow",
        condition: "step > 3*p50(step)",
        reason: "step \"request",
        options: &[],
        machine: &[],
        has_event: |kept| kept.run.markers.iter().any(|range| range.span.duration() > 150_000_000),
    },
    Case {
        what: "slow",
        condition: "range(request) > 150ms",
        reason: "range \"request",
        options: &[],
        machine: &[],
        has_event: |kept| kept.run.markers.iter().any(|range| range.span.duration() > 150_000_000),
    },
    Case {
        what: "nan",
        condition: "marker ~ \"NaN\"",
        reason: "marker \"loss is NaN\"",
        options: &[],
        machine: &[],
        has_event: |kept| {
            let is_it = |at: u64| at.abs_diff(kept.trigger.at) < 1_000_000;
            kept.run.markers.iter().any(|mark| is_it(mark.span.begin))
        },
    },
    Case {
        what: "error",
        condition: "error(hip*)",
        reason: "hipMalloc returned hipErrorOutOfMemory",
        options: &[],
        machine: &[],
        has_event: |kept| has_call(kept, "hipMalloc", |call| call.status == Some(2)),
    },
    Case {
        what: "idle",
        condition: "idle(gpu0) > 500ms",
        reason: "GPU0 ran neither kernel nor copy for",
        options: &[],
        machine: &[],
        has_event: |kept| kept.begins().windows(2).any(|pair| pair[1] - pair[0] > 800_000_000),
    },
    Case {
        what: "stuck",
        condition: "hang(stuck) > 1s",
        reason: "has been open for 1.",
        options: &[],
        machine: STUCK,
        has_event: |kept| {
            let in_flight = Recording::open(&kept.path).unwrap().left_open().unwrap().dispatches;
            in_flight > 0 && kept.trigger.reason.starts_with("stuck on GPU0")
        },
    },
    Case {
        what: "long",
        condition: "p99(work) > 2ms",
        reason: "work: 4.0",
        options: &[],
        machine: BY_SIZE,
        has_event: |kept| longest(kept) > 3_900_000,
    },
    Case {
        what: "long",
        condition: "dur(work) > 100*p50(work)",
        reason: "work on GPU0 took 4.0",
        options: &[],
        machine: BY_SIZE,
        has_event: |kept| longest(kept) > 3_900_000,
    },
    Case {
        what: "alloc",
        condition: "calls(hipMalloc) > 30 in last 1s",
        reason: "hipMalloc: ",
        options: &[],
        machine: &[],
        has_event: |kept| has_call(kept, "hipFree", |_| true),
    },
    Case {
        what: "burst",
        condition: "lost > 0",
        reason: "lost",
        options: &["--ring", "4K"],
        machine: &[],
        has_event: |kept| has_call(kept, "hipGetDevice", |_| true) && !kept.run.lost.is_empty(),
    },
    Case {
        what: "calm",
        condition: "shader_clock(gpu0) > 1600",
        reason: "shader clock of GPU0 is 1700MHz",
        options: &["--gauge-rate", "0.7"],
        machine: &[],
        has_event: |kept| !kept.run.gauges.is_empty(),
    },
    Case {
        what: "crash",
        condition: "exit(signal)",
        reason: "ended: signal 11 SIGSEGV",
        options: &[],
        machine: &[],
        has_event: |kept| !kept.run.exits.is_empty(),
    },
];

#[test]
fn each_condition_writes_its_event_and_the_time_before() {
    let Some(rig) = rig() else { return };
    for case in &CASES {
        let place = Rig::place(&format!("keep-{}", case.what));
        let runs = place.join("runs");
        // The last second before a hang is noticed has no work: it is stuck.
        let (keep, before) = if case.what == "stuck" {
            ("3s", "3000")
        } else {
            ("1s", "1500")
        };
        let mut options = vec!["record", "-o", runs.to_str().unwrap(), "--keep", keep, "--after", "1s"];
        options.extend(["--on", case.condition]);
        options.extend(case.options);
        let machine = rig.on(case.machine);
        let output = Rig::ended(&mut machine.command(&place, &options, &["serve", case.what, before]));
        let text = said(&output);
        assert!(
            output.status.success() || case.what == "crash",
            "{}: {text}",
            case.condition
        );
        let kept = Kept::only(&runs, &output);
        let (trigger, context) = (&kept.trigger, case.condition);
        assert_eq!(trigger.condition, case.condition);
        assert!(trigger.reason.contains(case.reason), "{context}: {}", trigger.reason);
        assert!((case.has_event)(&kept), "{context}: the event is not in the recording");
        // The first gauge is read at the program's begin.
        if case.what != "calm" {
            kept.check(Duration::from_nanos(units::time(keep).unwrap()));
            // A stuck kernel holds up all others.
            if case.what != "stuck" {
                kept.check_after();
            }
        }
        assert!(text.contains(&trigger.reason), "{context}: {text}");
    }
}

#[test]
fn a_calm_program_writes_nothing_whatever_is_asked() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("keep-nothing");
    let runs = place.join("runs");
    let mut options = vec!["record", "-o", runs.to_str().unwrap(), "--keep", "1s"];
    let conditions = CASES.iter().filter(|case| case.what != "calm");
    options.extend(conditions.flat_map(|case| ["--on", case.condition]));
    let output = Rig::ended(&mut rig.command(&place, &options, &["serve", "calm", "2000"]));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(entries(&runs), [] as [std::path::PathBuf; 0], "{}", said(&output));
}
