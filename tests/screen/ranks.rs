//! Several processes on one GPU: one row with their sum, and below it a row for each by rank and pid.

use crate::driven::Driven;
use roctop::item::{Agent, AgentId, AgentKind, Copy, Dispatch, Item, Process, ProcessId, Span, StreamId};
use roctop::model::report::summary;
use roctop::model::{Fresh, Mode, Options, Snapshot, Store};
use std::sync::Arc;

/// Four ranks that appear as 0, 3, 1, 2 and work one after the other for half a second each.
fn ranks() -> Arc<Snapshot> {
    let mut store = Store::new(Options {
        mode: Mode::Replay,
        ..Options::default()
    });
    let second = 1_000_000_000;
    for (process, rank) in (0u32..4).zip([0, 3, 1, 2]) {
        store.apply(&Item::Process(Process {
            id: ProcessId(process),
            pid: 100 + process,
            rank: Some(rank),
            exe: "app".into(),
            ..Process::default()
        }));
        let [host, gpu] = [AgentId(2 * process), AgentId(2 * process + 1)];
        for (id, kind, node) in [(host, AgentKind::Cpu, 0), (gpu, AgentKind::Gpu, 1)] {
            store.apply(&Item::Agent(Agent {
                id,
                process: ProcessId(process),
                kind,
                node,
                name: "gfx942".into(),
                ..Agent::default()
            }));
        }
        let begin = second + u64::from(process) * second / 2;
        let span = Span {
            begin,
            end: begin + second / 2,
        };
        store.apply(&Item::Dispatch(Dispatch {
            process: ProcessId(process),
            agent: gpu,
            stream: Some(StreamId(process)),
            span,
            ..Dispatch::default()
        }));
        store.apply(&Item::Copy(Copy {
            process: ProcessId(process),
            source: Some(host),
            destination: Some(gpu),
            direction: roctop_ring::record::direction::H2D,
            engine: roctop_ring::record::engine::SDMA,
            bytes: 1 << 20,
            span,
            ..Copy::default()
        }));
    }
    store.apply(&Item::Now(3 * second));
    store.snapshot(Fresh::All)
}

/// Places of the lines that contain these words, which must be there once and in this order.
fn in_order(text: &str, words: &[&str]) {
    let lines: Vec<&str> = text.lines().collect();
    let places: Vec<usize> = words
        .iter()
        .map(|word| {
            let known: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].contains(word)).collect();
            assert_eq!(known.len(), 1, "{word} in:\n{text}");
            known[0]
        })
        .collect();
    assert!(places.is_sorted(), "{words:?} in:\n{text}");
}

#[test]
fn ranks_on_one_gpu_are_one_gpu_with_a_row_for_each_below() {
    let snap = ranks();
    let mut driven = Driven::new(snap.clone(), (120, 36));
    let ranks = ["r0 100", "r1 102", "r2 103", "r3 101"];
    let view = |driven: &mut Driven, key: &str| -> String {
        // The pane of the list alone.
        let text = driven.typed(key).text();
        let lines: Vec<&str> = text.lines().skip(3).take(9).collect();
        lines.join("\n")
    };
    let devices = view(&mut driven, "7");
    in_order(&devices, &["GPU0", ranks[0], ranks[1], ranks[2], ranks[3]]);
    assert!(devices.contains("4 processes") && devices.contains("99.9"), "{devices}");
    let copies = view(&mut driven, "4");
    in_order(&copies, &["H2D   host→GPU0", ranks[0], ranks[1], ranks[2], ranks[3]]);
    assert!(copies.contains("4.00 MiB"), "the sum of their bytes:\n{copies}");
    let overview = view(&mut driven, "1");
    in_order(&overview, &["GPU0", ranks[0], ranks[1], ranks[2], ranks[3]]);
    let timeline = driven.typed("2").text();
    let labels: String = timeline
        .lines()
        .map(|line| line.chars().take(19).collect::<String>() + "\n")
        .collect();
    in_order(&labels, &["GPU0", ranks[0], ranks[1], ranks[2], ranks[3]]);
    let mut out = Vec::new();
    summary::write_table(&snap, &snap.values.totals, &mut out).expect("a summary");
    let summary = String::from_utf8(out).expect("text");
    in_order(&summary, &["H2D host→GPU0", ranks[0], ranks[1], ranks[2], ranks[3]]);
    assert!(summary.contains("4194304"), "{summary}");
}
