//! What is said of doubtful numbers, of processes, and of what was under way.

use crate::driven::{Driven, snapshot};
use crate::kernels;
use roctop::item::{
    AgentId, ApiCall, Dispatch, Exit, Health, Item, Open, Operation, OperationId, Process, ProcessId, QueueId, Span,
    StreamId,
};
use roctop::model::{Fresh, LaneKey, Mode, Options, Snapshot, Store};
use roctop::ui::key::Key;
use roctop::ui::{Effect, Since};
use roctop_ring::record::{Domain, flag};
use std::sync::Arc;

#[test]
fn a_kernel_whose_times_came_exchanged_says_so() {
    let mut store = Store::new(Options::default());
    let second = 1_000_000_000;
    for (at, flags) in [(second, flag::SUSPECT_TIME), (2 * second, 0)] {
        let span = Span {
            begin: at,
            end: at + 5000,
        };
        store.apply(&Item::Dispatch(Dispatch {
            stream: Some(StreamId(0)),
            span,
            flags,
            ..Dispatch::default()
        }));
    }
    let snap = store.snapshot(Fresh::All);
    assert_eq!(snap.values.totals.suspect, 1);
    let mut driven = Driven::new(snap, (120, 36));
    driven.typed("2");
    for (at, is_told) in [(second, true), (2 * second, false)] {
        driven.ui.slice = Some((LaneKey::Stream(AgentId(0), StreamId(0)), at));
        let text = driven.text();
        assert!(text.contains("dispatch 0"), "{text}");
        assert_eq!(text.contains("came exchanged"), is_told, "{text}");
    }
}

#[test]
fn processes_stand_below_those_that_started_them() {
    let mut store = Store::new(Options::default());
    for (id, pid, parent, command, rank) in [
        (0, 10, 1, "mpirun", None),
        (1, 13, 10, "./second", Some(1)),
        (2, 11, 10, "./first", Some(0)),
        (3, 12, 11, "./child", None),
    ] {
        store.apply(&Item::Process(Process {
            id: ProcessId(id),
            pid,
            parent,
            rank,
            command: command.into(),
            since: 1_000_000_000,
            ..Process::default()
        }));
    }
    store.apply(&Item::Ended {
        process: ProcessId(3),
        exit: Exit::Signal(11),
        at: 2_000_000_000,
    });
    let mut driven = Driven::new(store.snapshot(Fresh::All), (120, 36));
    driven.typed("9");
    let text = driven.text();
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("no {word} on\n{text}"));
    assert!(at("mpirun") < at("└ ./first") && at("└ ./first") < at("  └ ./child"));
    assert!(
        text.contains("└ ./second") && text.contains("signal 11 SIGSEGV"),
        "{text}"
    );
    let child = text.lines().find(|line| line.contains("./child")).expect("it is there");
    assert!(
        child.contains("12") && child.contains('–'),
        "its pid, and no rank: {child}"
    );
}

#[test]
fn after_a_loss_a_measured_share_is_a_lower_bound() {
    for (lost, bound) in [(0, false), (5, true)] {
        let mut driven = Driven::new(kernels(&[(0, 20_000), (30_000, 20_000)], lost), (120, 36));
        driven.typed("2w");
        driven.drag((30, 6), (60, 6));
        assert_eq!(driven.text().contains("busy ≥"), bound, "{}", driven.text());
    }
}

#[test]
fn what_was_in_flight_is_shown_also_when_it_has_ended_since() {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Process(Process {
        pid: 7,
        since: 1_000_000_000,
        ..Process::default()
    }));
    store.apply(&Item::Now(2_000_000_000));
    let flying = |dispatch_id, submit, queue| Dispatch {
        dispatch_id,
        submit,
        queue: QueueId(queue),
        ..Dispatch::default()
    };
    store.apply(&Item::Open(Open {
        dispatches: vec![
            flying(1, 1_997_000_000, 1),
            flying(2, 1_998_000_000, 2),
            flying(3, 1_999_000_000, 2),
            flying(4, 1_999_500_000, 2),
        ],
        ..Open::default()
    }));
    for ended in [flying(1, 1_997_000_000, 1), flying(2, 1_998_000_000, 2)] {
        store.apply(&Item::Dispatch(Dispatch {
            span: Span {
                begin: 1_999_000_000,
                end: 2_001_000_000,
            },
            ..ended
        }));
    }
    store.apply(&Item::Now(2_400_000_000));
    let mut driven = Driven::new(store.snapshot(Fresh::All), (120, 36));
    let text = driven.typed("W").text();
    let line = |word: &str, also: &str| {
        let mut lines = text.lines();
        lines
            .find(|line| line.contains(word) && line.contains(also))
            .unwrap_or_default()
    };
    // The ages are those of the look: a kernel that is gone does not grow old.
    assert!(line("oldest", "3.00 ms").contains("ended since"), "{text}");
    // A queue is one row: what runs in it, and how many wait behind that.
    let runs = line("oldest", "1.00 ms");
    assert!(runs.contains("1 behind") && !runs.contains("ended"), "{text}");
    assert_eq!(text.matches("oldest").count(), 2, "{text}");
    assert!(!text.contains("│  kernel"), "{text}");
    assert!(
        line("last done", "took 2.00 ms").contains("took") && text.contains("4 open in the last snapshot"),
        "{text}"
    );
}

#[test]
fn processes_say_how_full_their_rings_are_and_what_memory_they_have() {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Process(Process {
        pid: 7,
        since: 1_000_000_000,
        ..Process::default()
    }));
    let health = |fill| Health {
        fill,
        resident: Some(9 << 30),
        ..Health::default()
    };
    store.apply(&Item::Now(2_000_000_000));
    store.health(&[health(0)]);
    let dispatch = Item::Dispatch(Dispatch::default());
    (0..500).for_each(|_| store.apply(&dispatch));
    store.apply(&Item::Now(2_500_000_000));
    store.health(&[health(315)]);
    let text = Driven::new(store.snapshot(Fresh::All), (120, 36)).typed("9").text();
    for word in ["31.5", "9.00 GiB", "1.0k/s"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
}

#[test]
fn numbers_that_count_from_a_moment_on_are_of_what_came_since() {
    let early = snapshot("training", Mode::Live, 10_000);
    let late = snapshot("training", Mode::Live, 20_050);
    let values = late.since(&early.values);
    let calls = |values: &roctop::model::Values| values.kernels.iter().map(|row| row.numbers.stat.calls).sum::<u64>();
    assert_eq!(calls(&values), calls(&late.values) - calls(&early.values));
    let since = Arc::new(Snapshot {
        values: Arc::new(values),
        ..(*late).clone()
    });
    let mut driven = Driven::new(since, (120, 36));
    let text = driven.typed("3").text();
    assert!(text.contains("counted from +"), "{text}");
    assert!(matches!(driven.key(Key::Char('r')), Effect::Reset(Since::Now)));
    driven.typed(":whole");
    assert!(matches!(driven.key(Key::Enter), Effect::Reset(Since::Beginning)));
}

#[test]
fn gpu_work_without_hip_points_to_hsa_trace() {
    const HINT: &str = "the program uses HSA without HIP, as OpenCL does: --hsa-trace records HSA calls";
    let dispatch = Item::Dispatch(Dispatch {
        stream: Some(StreamId(0)),
        span: Span {
            begin: 1_000_000_000,
            end: 1_000_005_000,
        },
        ..Dispatch::default()
    });
    let text = |items: &[Item]| {
        let mut store = Store::new(Options::default());
        store.apply(&Item::Process(Process {
            pid: 10,
            ..Process::default()
        }));
        for item in items {
            store.apply(item);
        }
        let mut driven = Driven::new(store.snapshot(Fresh::All), (200, 50));
        driven.typed("5");
        driven.text()
    };
    let operation = |domain: Domain, name: &str| {
        Item::Operation(Operation {
            domain: domain.0,
            name: name.into(),
            ..Operation::default()
        })
    };
    assert!(!text(&[]).contains(HINT), "nothing ran on a GPU");
    assert!(text(std::slice::from_ref(&dispatch)).contains(HINT));
    let with = |domain, name| text(&[operation(domain, name), dispatch.clone()]);
    assert!(with(Domain::HSA_CORE, "hsa_init").contains(HINT));
    assert!(!with(Domain::HIP, "hipLaunchKernel").contains(HINT), "HIP is used");
}

/// A program's calls by function, with return code and duration in ns.
fn called(calls: &[(&str, i32, u64)]) -> Arc<Snapshot> {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Process(Process {
        pid: 10,
        ..Process::default()
    }));
    let mut names: Vec<&str> = Vec::new();
    for (number, (name, status, took)) in (1..).zip(calls) {
        let id = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name);
            store.apply(&Item::Operation(Operation {
                id: OperationId(names.len() as u32 - 1),
                domain: Domain::HIP.0,
                name: (*name).into(),
            }));
            names.len() - 1
        });
        let begin = number * 1_000_000_000;
        store.apply(&Item::Api(ApiCall {
            operation: OperationId(id as u32),
            status: Some(*status),
            correlation: number,
            span: Span {
                begin,
                end: begin + took,
            },
            ..ApiCall::default()
        }));
    }
    store.snapshot(Fresh::All)
}

#[test]
fn a_call_that_reports_an_earlier_error_has_not_failed() {
    let snap = called(&[
        ("hipModuleGetFunction", 500, 1000),
        ("hipGetLastError", 500, 100),
        ("hipPeekAtLastError", 500, 100),
        ("hipExtGetLastError", 500, 100),
    ]);
    let mut driven = Driven::new(snap, (120, 36));
    driven.typed("A");
    let text = driven.text();
    assert!(text.contains("hipModuleGetFunction failed 1×"), "{text}");
    assert!(!text.contains("LastError"), "{text}");
}

#[test]
fn graph_launches_have_their_own_latency() {
    let snap = called(&[("hipLaunchKernel", 0, 2000), ("hipGraphLaunch", 0, 500_000)]);
    let mut driven = Driven::new(snap, (200, 50));
    driven.typed("5");
    let text = driven.text();
    let row = |word: &str| {
        let line = text.lines().find(|line| line.contains(word));
        line.unwrap_or_else(|| panic!("no {word} in\n{text}")).to_owned()
    };
    assert!(row("│ call ").contains("2.00 µs"), "{text}");
    assert!(row("│ graph ").contains("500 µs"), "{text}");
}
