//! Hardware, drivers and run-times that fail: programs go on as without roctop, recorded times are the GPU's, missing times are
//! counted, and the level reports what was given up.

use super::check_output;
use crate::kit::rig::{Recorded, Rig, TOLERANCE, Truth, is_newest, library, patience, rig};
use roctop::item::{Dispatch, LossReason};
use roctop_ring::record::flag;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// No program here takes as long, on a busy machine either.
const LIMIT: Duration = Duration::from_secs(90);

/// A program's run on a machine with faults, untraced and recorded.
struct Met {
    recorded: Recorded,
    untraced: Duration,
    traced: Duration,
}

/// How dispatches of a run were recorded.
#[derive(Debug, Default, PartialEq, Eq)]
struct Kinds {
    timed: usize,
    untimed: usize,
}

fn run(command: &mut Command) -> (Output, Duration) {
    let began = Instant::now();
    let output = patience::output_within(command, LIMIT)
        .unwrap_or_else(|stood| panic!("not over after {LIMIT:?}: {command:?}\n{stood}"));
    (output, began.elapsed())
}

/// A program that comes to its end both ways, with the same exit and output.
fn meet(rig: &Rig, name: &str, words: &[&str]) -> Met {
    meet_with(rig, name, &[], words)
}

/// The same with more variables of its environment.
fn meet_with(rig: &Rig, name: &str, variables: &[(&str, &str)], words: &[&str]) -> Met {
    let place = Rig::place(&format!("{name}-untraced"));
    let command = |place, options: &[&str]| {
        let mut command = rig.command(place, options, words);
        command.envs(variables.iter().copied());
        command
    };
    let (plain, untraced) = run(&mut command(&place, &[]));
    let place = Rig::place(name);
    let recording = place.join("rec");
    let (output, traced) = run(&mut command(&place, &["record", "-o", recording.to_str().unwrap()]));
    let recorded = Recorded::load(&place, output);
    check_output(&recorded, &plain);
    Met {
        recorded,
        untraced,
        traced,
    }
}

impl Met {
    /// The levels that the process stepped down to, in order.
    fn levels(&self) -> Vec<u8> {
        let said = self.recorded.said.iter().filter_map(|text| text.strip_prefix("level "));
        said.map(|rest| rest.split(',').next().unwrap().parse().unwrap())
            .collect()
    }

    /// Every dispatch of the log is recorded once, in its queue's order; those with times have the log's.
    fn check(&self) -> Kinds {
        self.check_by(|row, dispatch| {
            let near = |a: u64, b: u64| a.abs_diff(b) <= TOLERANCE;
            near(dispatch.span.begin, row.begin) && near(dispatch.span.end, row.end)
        })
    }

    fn check_by(&self, is_true: impl Fn(&Truth, &Dispatch) -> bool) -> Kinds {
        let mut kinds = Kinds::default();
        for (rows, dispatches) in self.recorded.queues() {
            assert_eq!(dispatches.len(), rows.len(), "number of dispatches");
            for (row, dispatch) in rows.iter().zip(dispatches) {
                assert_eq!(self.recorded.kernel(dispatch), row.name);
                if dispatch.flags & flag::UNTIMED != 0 {
                    kinds.untimed += 1;
                } else {
                    assert!(is_true(row, dispatch), "{row:?}\n{dispatch:?}");
                    kinds.timed += 1;
                }
            }
        }
        // The run-time's own nameless dispatches are in no queue of these.
        let lost = &self.recorded.run.lost;
        assert!(
            lost.keys().all(|(_, reason)| *reason == LossReason::Untimed),
            "{lost:?}"
        );
        assert!(lost.values().sum::<u64>() >= kinds.untimed as u64, "{lost:?}");
        let Met { untraced, traced, .. } = self;
        println!(
            "{:?}: {kinds:?}, untraced {untraced:?}, recorded {traced:?}",
            self.levels()
        );
        kinds
    }

    /// Rows of a kind in the log; of evictions those of this name.
    fn rows(&self, kind: &str, name: &str) -> usize {
        let is_meant = |row: &&Truth| row.kind == kind && row.name.contains(name);
        self.recorded.truth.iter().filter(is_meant).count()
    }
}

/// A machine on which no signal that ROCr did not make is ever seen to complete.
const FOREIGN_LOST: (&str, &str) = ("EMULATED_GPU_LOST_SIGNALS", "foreign");

/// One queue's kernels, a second long.
const SECOND: (&str, &str) = ("EMULATED_GPU_KERNEL_NS", "25000");
const SECOND_WORDS: [&str; 4] = ["many_streams", "1", "1", "40000"];

#[test]
fn a_program_whose_own_signals_never_come_is_timed_by_the_run_times() {
    let Some(rig) = rig() else { return };
    let met = meet(&rig.on(&[FOREIGN_LOST, SECOND]), "never", &SECOND_WORDS);
    let kinds = met.check();
    assert_eq!(met.levels().last(), Some(&2));
    assert_eq!(
        kinds,
        Kinds {
            timed: 40_000,
            untimed: 0
        }
    );
    // The probes of the process alone met it.
    assert!((1..=8).contains(&met.rows("lost", "")), "{} lost", met.rows("lost", ""));
}

#[test]
fn signals_that_stop_coming_end_the_use_of_such_signals() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[("EMULATED_GPU_LOST_SIGNALS", "foreign,after=3000"), SECOND]);
    let met = meet(&machine, "stopped", &SECOND_WORDS);
    let kinds = met.check();
    assert_eq!(met.levels().last(), Some(&2));
    // More than those whose signals came.
    assert!(kinds.untimed > 0 && kinds.timed > 3000, "{kinds:?}");
}

/// Other work on the machine delays one round, not all.
#[test]
#[ignore = "time: .ci/matrix"]
fn timed_a_hostile_gpu_does_not_slow_a_program_down() {
    type Machine = [(&'static str, &'static str)];
    let Some(rig) = rig() else { return };
    let busy = ("EMULATED_GPU_BUSY_MS", "2000");
    let streams: &[&str] = &["many_streams", "4", "16", "4000"];
    let cases: [(&Machine, &[&str], f64, u64); 6] = [
        (&[FOREIGN_LOST, SECOND], &SECOND_WORDS, 1.5, 0),
        (
            &[("EMULATED_GPU_LOST_SIGNALS", "foreign,after=3000"), SECOND],
            &SECOND_WORDS,
            2.0,
            2,
        ),
        (&[busy], &["matrix_transpose", "3"], 1.0, 2),
        (&[busy], streams, 1.0, 2),
        (&[FOREIGN_LOST, busy], streams, 1.0, 2),
        (&[("EMULATED_GPU_LOST_SIGNALS", "file"), busy], streams, 1.0, 2),
    ];
    for (at, (machine, words, times, seconds)) in cases.into_iter().enumerate() {
        let is_fast = (0..3).any(|round| {
            let met = meet(&rig.on(machine), &format!("slow-{at}-{round}"), words);
            let limit = met.untraced.mul_f64(times) + Duration::from_secs(seconds);
            println!("{machine:?}: untraced {:?}, recorded {:?}", met.untraced, met.traced);
            met.traced < limit
        });
        assert!(
            is_fast,
            "{machine:?}: never less than {times} times the untraced time + {seconds} s"
        );
    }
}

#[test]
fn a_rare_signal_that_never_comes_costs_its_dispatch_alone() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[("EMULATED_GPU_LOST_SIGNALS", "foreign,after=3000,every=1000")]);
    let met = meet(&machine, "rare", &["many_streams", "2", "4", "20000"]);
    let kinds = met.check();
    assert!(kinds.untimed > 0 && kinds.timed > 2900, "{kinds:?}");
}

#[test]
fn where_signals_in_files_never_come_they_lie_in_memory() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[("EMULATED_GPU_LOST_SIGNALS", "file")]);
    let late = machine.on(&[
        ("EMULATED_GPU_LOST_SIGNALS", "file"),
        ("EMULATED_GPU_BUSY_MS", "500"),
        SECOND,
    ]);
    for (name, machine, words) in [
        ("file-streams", &machine, &["many_streams", "2", "4", "4000"] as &[_]),
        ("file-copies", &machine, &["memcpy_storm", "1", "1"]),
        // The GPU answers the first probe when the program's queue exists.
        ("file-late", &late, &SECOND_WORDS),
    ] {
        // On a busy machine a short program may end before its probe does.
        let mut tries = (0..5).map(|_| {
            let met = meet(machine, name, words);
            assert_eq!(met.check().untimed, 0);
            met.recorded.check_copies();
            // The probes of the process alone met it.
            assert!((1..=8).contains(&met.rows("lost", "")), "{} lost", met.rows("lost", ""));
            met.levels()
        });
        let level = tries.find(|levels| !levels.is_empty());
        assert_eq!(level, Some(vec![1]), "{name}");
    }
}

#[test]
fn signals_that_come_late_change_nothing() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[("EMULATED_GPU_LATE_SIGNALS", "foreign")]);
    for (name, words) in [
        ("late-streams", &["many_streams", "2", "4", "4000"] as &[_]),
        ("late-features", &["features"]),
        ("late-copies", &["memcpy_storm", "1", "1"]),
    ] {
        let met = meet(&machine, name, words);
        let found = (met.check().untimed, met.levels());
        // Where the emulation itself was late, its signals came later than a signal may.
        if met.rows("overdue", "") == 0 {
            assert_eq!(found, (0, vec![]), "{name}");
            assert!(met.rows("late", "") > 200, "{name}");
        }
    }
}

#[test]
fn a_gpu_that_leaves_no_times_is_recorded_without_them() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[
        ("EMULATED_GPU_WRONG_TIMES", "zero=1"),
        ("EMULATED_GPU_WRONG_BARRIER_TIMES", "zero=1"),
    ]);
    let met = meet(&machine, "zero", &["many_streams", "2", "4", "2000"]);
    assert_eq!(
        met.check(),
        Kinds {
            timed: 0,
            untimed: 2000
        }
    );
    // The last step needs dispatches that are submitted after the one before it.
    assert!(
        met.levels().last().is_some_and(|level| *level >= 2),
        "{:?}",
        met.levels()
    );
}

#[test]
fn times_that_a_signal_had_before_are_no_times() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[
        ("EMULATED_GPU_WRONG_TIMES", "stale=1"),
        ("EMULATED_GPU_WRONG_BARRIER_TIMES", "stale=1"),
    ]);
    // So small a queue's signals are used again soon.
    let small = [("ROC_AQL_QUEUE_SIZE", "1024")];
    let met = meet_with(&machine, "stale", &small, &["many_streams", "1", "1", "8000"]);
    let kinds = met.check();
    assert!(kinds.untimed > 0 && kinds.timed + kinds.untimed == 8000, "{kinds:?}");
    assert!(
        met.levels().last().is_some_and(|level| *level >= 2),
        "{:?}",
        met.levels()
    );
}

#[test]
fn a_gpu_whose_clock_is_off_by_a_constant_is_timed_all_the_same() {
    let Some(rig) = rig() else { return };
    for (name, shift, by) in [("shift-late", "200000", 200_000), ("shift-early", "-200000", -200_000)] {
        let machine = rig.on(&[("EMULATED_GPU_TIMES_SHIFT_NS", shift)]);
        let met = meet(&machine, name, &["many_streams", "2", "4", "2000"]);
        let kinds = met.check_by(|row, dispatch| {
            let lasted = |begin: u64, end: u64| end - begin;
            let is_shifted = dispatch.span.begin.abs_diff(row.begin.saturating_add_signed(by)) <= TOLERANCE;
            // Positions may be put right; durations are the GPU's.
            let is_right = dispatch.span.begin.abs_diff(row.begin) <= 200_000 + TOLERANCE;
            (is_shifted || is_right)
                && lasted(dispatch.span.begin, dispatch.span.end).abs_diff(lasted(row.begin, row.end)) <= TOLERANCE
        });
        assert_eq!((kinds.untimed, met.levels()), (0, vec![]));
    }
}

/// ROCr reckons the rate of the GPU's clock from its first look at both clocks to the last: 2 ms are 2 % of the first 100 ms.
#[test]
fn durations_are_the_gpus_when_the_drivers_clock_jumps() {
    const JUMP: u64 = 2_000_000;
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[
        ("EMULATED_GPU_CLOCK_JUMP", "2000000@100"),
        ("EMULATED_GPU_KERNEL_NS", "25000"),
    ]);
    let met = meet(&machine, "jumps", &["many_streams", "1", "1", "80000"]);
    let kinds = met.check_by(|row, dispatch| {
        let lasted = (dispatch.span.end - dispatch.span.begin).abs_diff(row.end - row.begin);
        lasted <= (row.end - row.begin) / 20 && dispatch.span.begin.abs_diff(row.begin) <= 2 * JUMP
    });
    assert_eq!((kinds.untimed, met.levels()), (0, vec![]));
}

/// The driver's pairs of clocks are right, so the run-time's conversions are: durations and positions follow them.
#[test]
fn times_are_right_where_the_driver_declares_another_frequency_than_the_counters() {
    let Some(rig) = rig() else { return };
    for (name, counter, declared, said) in [
        ("declared-slow", "1000000000", "100000000", "declares 100.00 MHz"),
        ("declared-fast", "25000000", "1000000000", "declares 1000.00 MHz"),
    ] {
        // 5.2.3 does not report what the driver declares.
        let machine = if rig.is_oldest() {
            rig.behind(&library("answers"))
                .on(&[("EMULATED_GPU_COUNTER", counter), ("HSA_ANSWERS_COUNTER", declared)])
        } else {
            rig.on(&[
                ("EMULATED_GPU_COUNTER", counter),
                ("EMULATED_GPU_DECLARED_COUNTER", declared),
            ])
        };
        let met = meet(&machine, name, &["many_streams", "2", "4", "2000"]);
        assert_eq!((met.check().untimed, met.levels()), (0, vec![]));
        let notes = met.recorded.said.iter().filter(|text| text.contains(said));
        assert_eq!(notes.count(), 1, "{:?}", met.recorded.said);
        let summary = met.recorded.summary();
        let notes = summary["processes"][0]["notes"].as_array().unwrap();
        assert!(
            notes.iter().any(|note| note.as_str().unwrap().contains(said)),
            "{notes:?}"
        );
        assert!(
            !notes
                .iter()
                .any(|note| note.as_str().unwrap().contains("before their launch")),
            "{notes:?}"
        );
    }
}

#[test]
fn a_program_that_starts_on_a_busy_gpu_is_recorded_as_on_an_idle_one() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[("EMULATED_GPU_BUSY_MS", "2000")]);
    for (name, words) in [
        ("busy-transpose", &["matrix_transpose", "3"] as &[_]),
        ("busy-streams", &["many_streams", "4", "16", "4000"]),
    ] {
        let met = meet(&machine, name, words);
        assert_eq!((met.check().untimed, met.levels()), (0, vec![]), "{name}");
    }
}

#[test]
fn a_program_that_starts_on_a_busy_gpu_gets_no_signal_that_was_not_probed() {
    let Some(rig) = rig() else { return };
    for lost in ["foreign", "file"] {
        let machine = rig.on(&[("EMULATED_GPU_LOST_SIGNALS", lost), ("EMULATED_GPU_BUSY_MS", "2000")]);
        let met = meet(&machine, &format!("busy-{lost}"), &["many_streams", "4", "16", "4000"]);
        assert_eq!(met.check().untimed, 0, "{lost}");
        // The probes of the process alone met it.
        assert!((1..=8).contains(&met.rows("lost", "")), "{} lost", met.rows("lost", ""));
        // The program may end before its probes do.
        let levels: &[u8] = if lost == "file" { &[1] } else { &[1, 2] };
        assert!(levels.starts_with(&met.levels()), "{lost}: {:?}", met.levels());
    }
}

#[test]
fn a_new_queue_begins_at_slot_0() {
    let Some(rig) = rig() else { return };
    for (name, machine) in [
        ("slot-idle", rig.clone()),
        ("slot-busy", rig.on(&[("EMULATED_GPU_BUSY_MS", "2000")])),
        ("slot-lost", rig.on(&[FOREIGN_LOST])),
    ] {
        let met = meet(&machine, name, &["slot_zero", "4"]);
        let said = String::from_utf8_lossy(&met.recorded.output.stdout).into_owned();
        assert!(
            said.matches("write index 0, read index 0, 0 of 100 packets incomplete")
                .count()
                == 4,
            "{said}"
        );
    }
}

#[test]
fn a_thread_that_writes_its_packet_late_does_not_overfill_the_queue() {
    let Some(rig) = rig() else { return };
    let Some(program) = std::env::var("ROCTOP_GPU_CHECK").ok().filter(|_| rig.is_oldest()) else {
        println!("n/a: needs ROCTOP_GPU_CHECK and a ROCr that aborts when a queue is full");
        return;
    };
    let machine = rig.on(&[("EMULATED_GPU_BY_NAME", "roctop_spin*=20000")]);
    let place = Rig::place("late-writer");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let words = [program.as_str(), "D5", "threads=4", "pause=60"];
    let (output, _) = run(&mut machine.command(&place, &options, &words));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("\"packets\":20000,\"kernels\":2500,"), "{said}");
    let recorded = Recorded::load(&place, output);
    assert_eq!(recorded.run.dispatches.len(), 2500);
}

#[test]
fn no_page_is_replaced_while_a_queue_is_busy() {
    let Some(rig) = rig() else { return };
    for fault in ["stop", "hang", "reset"] {
        let machine = rig.on(&[
            ("EMULATED_GPU_EVICTION", fault),
            ("EMULATED_GPU_BY_NAME", "longer=20000000"),
        ]);
        let met = meet(&machine, &format!("evict-{fault}"), &["new_queues", "8"]);
        println!("{fault}: {} evictions", met.rows("eviction", ""));
        assert_eq!((met.check().untimed, met.rows("eviction", "busy")), (0, 0), "{fault}");
    }
}

#[test]
fn an_eviction_of_idle_queues_changes_nothing() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[("EMULATED_GPU_EVICTION", "stop")]);
    for (name, words) in [
        ("stopped-streams", &["many_streams", "4", "16", "4000"] as &[_]),
        ("stopped-features", &["features"]),
    ] {
        let met = meet(&machine, name, words);
        assert_eq!((met.check().untimed, met.levels()), (0, vec![]), "{name}");
        assert!(met.rows("eviction", "") > 0, "{name}: level 0 puts files over pools");
    }
}

#[test]
fn pools_that_are_mapped_shared_hold_flight_files_too() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[("EMULATED_GPU_POOLS", "shared")]);
    let met = meet(&machine, "shared", &["many_streams", "2", "4", "2000"]);
    assert_eq!((met.check().untimed, met.levels()), (0, vec![]));
    assert!(
        met.rows("eviction", "") > 0,
        "no file was put over a pool: {:?}",
        met.recorded.said
    );
    let grounded = |text: &&String| text.contains("a mapping of the driver's own");
    assert!(!met.recorded.said.iter().any(|text| grounded(&text)));
}

#[test]
fn a_run_time_that_refuses_proxies_makes_plain_queues() {
    if is_newest() {
        println!("n/a: HSA loads no stand-in beside a tool that registered");
        return;
    }
    let Some(rig) = rig() else { return };
    let machine = rig.refusing_proxies();
    for (name, words) in [
        ("refused-streams", &["many_streams", "2", "4", "2000"] as &[_]),
        ("refused-transpose", &["matrix_transpose", "3"]),
    ] {
        let met = meet(&machine, name, words);
        let kinds = met.check();
        assert!(kinds.untimed > 0, "{name}: {kinds:?}");
        assert!(met.recorded.check_calls() > 0, "{name}");
        met.recorded.check_copies();
        assert_eq!(met.levels(), [3], "{name}");
    }
}
