//! The view of collectives: four ranks, of which one is always late and at last does not come.

use crate::SIZES;
use crate::driven::Driven;
use crate::golden::Goldens;
use roctop::item::{
    ApiCall, CollectiveOperation, Communication, Communicator, Datatype, Item, Marker, Open, Operation, OperationId,
    Process, ProcessId, Span, TextId, Thread, ThreadId,
};
use roctop::model::{Fresh, Mode, Options, Snapshot, Store};
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const RANKS: u32 = 4;
const LATE: u32 = 2;

/// A rank's process and its thread.
fn announce(store: &mut Store, rank: u32, since: u64) {
    let process = ProcessId(rank);
    store.apply(&Item::Process(Process {
        id: process,
        pid: 4242 + rank,
        rank: Some(rank),
        exe: "train".into(),
        command: "./train".into(),
        since,
        ..Process::default()
    }));
    store.apply(&Item::Thread(Thread {
        id: ThreadId(rank),
        process,
        tid: 4242 + rank,
        name: "main".into(),
    }));
}

/// The job after 40 steps: rank 2 is in a synchronization and has not called the last collective for 3 s.
fn job(mode: Mode) -> Arc<Snapshot> {
    let mut store = Store::new(Options {
        mode,
        ..Options::default()
    });
    let begin = SECOND;
    for (id, name) in [(0, "ncclAllReduce"), (1, "hipStreamSynchronize"), (2, "ncclSend")] {
        store.apply(&Item::Operation(Operation {
            id: OperationId(id),
            domain: if id == 1 { 1 } else { 8 },
            name: name.into(),
        }));
    }
    store.apply(&Item::Text(TextId(0), "load batch".into()));
    for rank in 0..RANKS {
        let process = ProcessId(rank);
        announce(&mut store, rank, begin);
        store.apply(&Item::Communicator(Communicator {
            process,
            number: 1,
            identity: Some(7),
            rank: Some(rank),
            size: Some(RANKS),
            ..Communicator::default()
        }));
    }
    let call = |rank: u32, sequence: u32, at: u64| Communication {
        process: ProcessId(rank),
        thread: ThreadId(rank),
        correlation: u64::from(sequence),
        communicator: 1,
        sequence,
        start: at,
        count: 1 << 22,
        datatype: Datatype(7),
        operation: CollectiveOperation::AllReduce,
        ..Communication::default()
    };
    let api = |rank: u32, operation: u32, correlation: u64, span: Span| ApiCall {
        process: ProcessId(rank),
        thread: ThreadId(rank),
        operation: OperationId(operation),
        correlation,
        span,
        status: Some(0),
        ..ApiCall::default()
    };
    let mut at = begin;
    for step in 1..=40u32 {
        let late = at + 6 * MS + u64::from(step % 5) * MS;
        let end = late + 3 * MS;
        for rank in 0..RANKS {
            let arrival = if rank == LATE {
                late
            } else {
                at + u64::from(rank) * 50_000
            };
            if rank == LATE {
                let span = Span {
                    begin: at,
                    end: late - 10_000,
                };
                store.apply(&Item::Api(api(rank, 1, 1000 + u64::from(step), span)));
                store.apply(&Item::Range(Marker {
                    process: ProcessId(rank),
                    thread: ThreadId(rank),
                    text: TextId(0),
                    span,
                    correlation: 2000 + u64::from(step),
                    ..Marker::default()
                }));
            }
            store.apply(&Item::Communication(call(rank, step, arrival)));
            store.apply(&Item::Api(api(rank, 0, u64::from(step), Span { begin: arrival, end })));
        }
        at = end + 10 * MS;
    }
    for rank in (0..RANKS).filter(|rank| *rank != LATE) {
        let mut last = call(rank, 41, at);
        // One rank passes another number of elements.
        last.count = if rank == 1 { 1 << 21 } else { last.count };
        store.apply(&Item::Communication(last));
    }
    store.apply(&Item::Open(Open {
        process: ProcessId(LATE),
        calls: vec![api(LATE, 1, 5000, Span { begin: at, end: 0 })],
        ..Open::default()
    }));
    store.apply(&Item::Now(at + 3 * SECOND));
    store.snapshot(Fresh::All)
}

#[test]
fn communicators_have_a_row_on_the_timeline() {
    let snap = job(Mode::Replay);
    let mut goldens = Goldens::default();
    for size in SIZES {
        let text = Driven::new(snap.clone(), size).typed("2w").text();
        assert!(text.contains("comm 0 ×4"), "{text}");
        goldens.compare(&format!("collectives-timeline-{}x{}", size.0, size.1), &text);
    }
    goldens.finish();
    // One by one: the slices, and what is known of them.
    let mut driven = Driven::new(snap, (200, 50));
    driven.typed("2w");
    // The first row is the communicator's.
    driven.typed("j");
    let found = (0..4).find_map(|_| {
        let text = driven.typed("[").text();
        text.contains("rank 2 last to AllReduce").then_some(text)
    });
    let text = found.unwrap_or_else(|| panic!("no slice of the arrivals is selected:\n{}", driven.text()));
    for words in [
        "±2.00 µs",
        "rank 2 came last: in hipStreamSynchronize",
        "transfer 3.00 ms",
    ] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
}

#[test]
fn the_view_names_who_is_late_and_who_is_missing() {
    let snap = job(Mode::Live);
    let mut goldens = Goldens::default();
    for size in SIZES {
        let text = Driven::new(snap.clone(), size).typed("K").text();
        goldens.compare(&format!("collectives-{}x{}", size.0, size.1), &text);
    }
    goldens.finish();
    let text = Driven::new(snap.clone(), (200, 50)).typed("K").text();
    for words in [
        "2 100 %",
        "rank 2 has not come to AllReduce #41 of comm 0",
        "in hipStreamSynchronize for 3.0",
        "rank 1 passed 2097152 elements to AllReduce #41 of comm 0, others 4194304",
        "in hipStreamSynchronize, range load batch",
    ] {
        assert!(text.contains(words), "{words} in:\n{text}");
    }
    let alerts = Driven::new(snap, (200, 50)).typed("A").text();
    for words in ["missing rank", "mismatch", "straggler"] {
        assert!(alerts.contains(words), "{words} in:\n{alerts}");
    }
}

#[test]
fn a_recording_says_who_never_came() {
    let text = Driven::new(job(Mode::Replay), (120, 36)).typed("K").text();
    assert!(text.contains("rank 2 never came to AllReduce #41 of comm 0"), "{text}");
}

#[test]
fn enter_on_a_collective_goes_to_the_late_call() {
    let snap = job(Mode::Live);
    let mut driven = Driven::new(snap, (120, 36));
    driven.typed("K");
    driven.key(roctop::ui::key::Key::Tab);
    driven.typed("jjj");
    driven.key(roctop::ui::key::Key::Enter);
    assert!(driven.text().contains("Timeline]"), "{}", driven.text());
}
