//! The timeline: layouts, rows, ranges, and jumps between calls and their work.

use crate::driven::{Driven, snapshot};
use crate::golden::Goldens;
use crate::kernels;
use roctop::gauge::{Count, Counter, Device};
use roctop::item::{
    Agent, AgentId, AgentKind, Dispatch, Item, KernelId, NodeId, Process, Queue, QueueId, Span, StreamId,
};
use roctop::model::{Fresh, Mode, Options, Snapshot, Store};
use roctop::ui::Grouping;
use roctop::ui::key::Key;
use roctop::ui::track::Layout;
use std::sync::Arc;

#[test]
fn a_dragged_range_is_measured() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("2");
    driven.drag((30, 8), (50, 8));
    let text = driven.text();
    for part in ["Range 420 ms", "GPU0 busy", "GPU1 busy", "idle", "copy H2D", "a Cijk_"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    driven.key(Key::Char('w'));
    assert!(driven.text().contains("10.0 ms/col"), "{}", driven.text());
    driven.key(Key::Esc);
    assert!(!driven.text().contains("Range"));
}

#[test]
fn each_layout_shows_all_kernels() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    let mut goldens = Goldens::default();
    driven.typed("2");
    for layout in Layout::ALL {
        driven.ui.prefs.layout = layout.0;
        goldens.compare(&format!("training-lanes-{}-120x36", layout.1), &driven.text());
    }
    for grouping in Grouping::ALL {
        driven.typed("3");
        driven.ui.prefs.grouping = grouping.0;
        goldens.compare(&format!("training-kernels-{}-120x36", grouping.1), &driven.text());
    }
    goldens.finish();
}

#[test]
fn a_call_leads_to_its_kernel_and_back() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("3j");
    driven.key(Key::Enter);
    let kernel = driven.ui.slice;
    assert!(
        kernel.is_some() && driven.text().contains("enter → hipLaunchKernel"),
        "{}",
        driven.text()
    );
    driven.key(Key::Enter);
    let call = driven.ui.slice;
    assert_ne!(call, kernel);
    assert!(driven.text().contains("enter → range"), "{}", driven.text());
    driven.key(Key::Enter);
    assert!(
        driven.text().contains("range "),
        "on to the range around it: {}",
        driven.text()
    );
    assert!(driven.ui.slice != kernel && driven.ui.slice != call);
    driven.key(Key::Ctrl('o'));
    assert_eq!(driven.ui.slice, call);
    driven.key(Key::Char('('));
    assert_eq!(driven.ui.slice, kernel);
}

#[test]
fn the_selection_is_zoomed_to_and_with_its_call() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    let mut goldens = Goldens::default();
    driven.typed("Z2Z");
    assert!(driven.text().contains("nothing selected"), "{}", driven.text());
    driven.typed("3j");
    driven.key(Key::Enter);
    driven.typed("---Z");
    let alone = driven.ui.time;
    let kernel = driven.ui.slice.expect("a kernel is selected");
    let slice = *driven.snap.lane(kernel.0).unwrap().at(kernel.1).unwrap();
    let shown = alone.width * 102;
    let nanos = slice.span.duration();
    assert!(shown >= nanos && shown < nanos * 4, "{shown} ns for {nanos} ns");
    goldens.compare("training-zoom-to-120x36", &driven.text());
    driven.typed("Z");
    let text = driven.text();
    goldens.compare("training-zoom-to-call-120x36", &text);
    assert!(
        driven.ui.time.from <= slice.submit && driven.ui.time.width >= alone.width,
        "{text}"
    );
    assert!(text.contains('╭') && text.contains("┄>"), "an edge joins both:\n{text}");
    driven.typed("Z");
    assert_eq!(driven.ui.time, alone);
    goldens.finish();
}

#[test]
fn back_and_forward_go_through_every_change_of_place() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    let place = |driven: &Driven| (driven.ui.tab, driven.ui.time, driven.ui.slice, driven.ui.gap);
    let mut places = vec![place(&driven)];
    for keys in [
        "2",
        "+++",
        "hhh",
        "]]",
        "}",
        "Z",
        "lll",
        "3",
        "jj",
        "\r",
        "2",
        ":goto 3\r",
        "w",
    ] {
        for c in keys.chars() {
            let key = if c == '\r' { Key::Enter } else { Key::Char(c) };
            driven.key(key);
        }
        if keys != "jj" && places.last() != Some(&place(&driven)) {
            places.push(place(&driven));
        }
    }
    assert!(places.len() >= 11, "{places:?}");
    let last = places.len() - 1;
    for before in places[..last].iter().rev() {
        driven.key(Key::Char('('));
        assert_eq!(place(&driven), *before);
    }
    driven.key(Key::Char('('));
    assert!(driven.text().contains("no place to go back to"), "{}", driven.text());
    for after in &places[1..] {
        driven.key(Key::Char(')'));
        assert_eq!(place(&driven), *after);
    }
    // What is done from here on is what comes next.
    driven.typed("((h)");
    assert!(driven.text().contains("no place to go forward to"), "{}", driven.text());
}

#[test]
fn moves_that_lie_apart_are_places_of_their_own() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 10_000), (120, 36));
    driven.typed("2 hh");
    let first = driven.ui.time;
    driven.ui.frozen = Some(snapshot("training", Mode::Live, 13_000));
    driven.typed("hh(");
    assert_eq!(driven.ui.time, first);
}

#[test]
fn what_overlaps_in_a_stream_stands_in_rows_of_its_own() {
    let apart = kernels(&[(0, 20_000), (30_000, 20_000)], 0);
    let at_once = kernels(&[(0, 40_000), (20_000, 40_000), (70_000, 5_000)], 0);
    for (snap, rows) in [(apart, 0), (at_once, 1)] {
        let mut driven = Driven::new(snap, (120, 36));
        driven.typed("2w");
        assert_eq!(driven.text().matches("at once").count(), rows, "{}", driven.text());
    }
}

#[test]
fn the_wheel_zooms_about_the_mouse() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("2 ");
    let column = 60;
    let under = |driven: &Driven| driven.ui.time.from + driven.ui.time.width * (column - 19);
    let (before, width) = (under(&driven), driven.ui.time.width);
    driven.wheel((column as u16, 8));
    assert_eq!((under(&driven), driven.ui.time.width), (before, width / 2));
}

/// One GPU with gauges and a counter, read once a second for a minute.
fn measured() -> Arc<Snapshot> {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Agent(Agent {
        id: AgentId(1),
        kind: AgentKind::Gpu,
        node: 2,
        name: "gfx942".into(),
        ..Agent::default()
    }));
    store.apply(&Item::Process(Process {
        pid: 7,
        exe: "train".into(),
        since: 1_000_000_000,
        ..Process::default()
    }));
    store.apply(&Item::Counter(Arc::new(Counter {
        id: 3,
        name: "MfmaUtil".into(),
        unit: "%".into(),
        node: Some(NodeId { machine: 0, node: 2 }),
        state: Ok(()),
        ..Counter::default()
    })));
    for second in 1..60u64 {
        let at = second * 1_000_000_000;
        store.apply(&Item::Device(Arc::new(Device {
            node: NodeId { machine: 0, node: 2 },
            at,
            busy: Ok(if second < 30 { 0.0 } else { 1.0 }),
            power: Ok(300.0),
            power_cap: Ok(600.0),
            ..Device::default()
        })));
        store.apply(&Item::Count(Count {
            counter: 3,
            at,
            value: second as f64,
            kernel: None,
        }));
    }
    store.apply(&Item::Now(60_000_000_000));
    store.snapshot(Fresh::All)
}

#[test]
fn gauges_and_counters_have_rows_on_the_timeline() {
    let mut driven = Driven::new(measured(), (120, 36));
    let text = driven.typed("2w").text();
    // The lines of a row: the first has its label, those below have none.
    let row = |word: &str| -> Vec<&str> {
        let mut lines = text.lines().skip_while(|line| !line.contains(word));
        let first = lines.next().unwrap_or_else(|| panic!("no {word} on\n{text}"));
        let more = lines.take_while(|line| line.starts_with("│  "));
        std::iter::once(first).chain(more).collect()
    };
    let load = row("GPU0 load 100%");
    let foot = load[load.len() - 1];
    assert!(
        foot.contains("____") && load.iter().all(|line| line.contains("████")),
        "idle, then busy: {load:?}"
    );
    assert!(foot.find('_') < foot.find('█'));
    let power = row("GPU0 300 W");
    let halves = |line: &&str| 2 * usize::from(line.contains("██████")) + usize::from(line.contains("▄▄▄▄▄▄"));
    let filled: usize = power.iter().map(halves).sum();
    assert_eq!(filled, power.len(), "half of its cap: {power:?}");
    let counter = row("MfmaUtil");
    assert!(counter[1].contains("│  ≤") && counter[0].contains('█'), "{counter:?}");
    assert!(counter.iter().any(|line| line.contains('▁')), "{counter:?}");
    assert!(
        !text.contains("VRAM") && !text.contains("MHz"),
        "what was not read has no row"
    );
    assert!(
        !driven.typed("1").text().contains("MfmaUtil"),
        "the overview has rows of work"
    );
    let text = driven.typed("2jj").text();
    assert!(
        text.contains("GPU0: power") && text.contains("the row is full at 600 W"),
        "{text}"
    );
}

/// A GPU whose streams run kernels of `nanos` ns one after the other, each stream a little later than the one before.
fn streams(count: u32, nanos: u64, kernels: u64, slices: usize) -> Arc<Snapshot> {
    let mut store = Store::new(Options {
        slices,
        ..Options::default()
    });
    store.apply(&Item::Process(Process {
        pid: 7,
        since: 1_000_000_000,
        exe: "app".into(),
        ..Process::default()
    }));
    store.apply(&Item::Agent(Agent {
        id: AgentId(1),
        kind: AgentKind::Gpu,
        node: 1,
        name: "gfx942".into(),
        ..Agent::default()
    }));
    for stream in 0..count {
        store.apply(&Item::Queue(Queue {
            id: QueueId(stream),
            number: stream,
            ..Queue::default()
        }));
    }
    for kernel in 0..kernels {
        for stream in 0..count {
            let begin = 1_000_000_000 + kernel * nanos * 5 / 4 + u64::from(stream) * nanos / 4;
            store.apply(&Item::Dispatch(Dispatch {
                agent: AgentId(1),
                stream: Some(StreamId(stream)),
                queue: QueueId(stream % 4),
                kernel: KernelId(1 + stream % 4),
                dispatch_id: kernel * u64::from(count) + u64::from(stream) + 1,
                span: Span {
                    begin,
                    end: begin + nanos,
                },
                ..Dispatch::default()
            }));
        }
    }
    store.snapshot(Fresh::All)
}

#[test]
fn many_short_streams_are_one_row_until_they_are_unfolded() {
    let mut driven = Driven::new(streams(32, 5_500, 4_000, 1_000_000), (120, 36));
    let text = driven.typed("2").text();
    assert!(text.contains("  32 streams ≤"), "{text}");
    assert!(!text.contains("↓"), "nothing is below the edge:\n{text}");
    let row = text.lines().find(|line| line.contains("32 streams")).expect("the row");
    driven.click("32 streams", 0);
    let unfolded = driven.typed("z").text();
    assert!(
        !unfolded.contains("32 streams") && unfolded.contains("S?"),
        "{row}\n{unfolded}"
    );
    assert!(driven.typed("z").text().contains("32 streams"));
    // A kernel that is wider than a column is a slice in its stream's row.
    let wide = Driven::new(streams(32, 50_000_000, 50, 1_000_000), (120, 36))
        .typed("2")
        .text();
    assert!(!wide.contains("32 streams"), "{wide}");
}

#[test]
fn the_past_beyond_exact_data_looks_and_says_so() {
    let mut driven = Driven::new(streams(2, 700_000, 200_000, 20_000), (120, 36));
    driven.typed("2");
    let now = driven.text();
    assert!(!now.contains("averages"), "{now}");
    // Back by half of the run, then as near as it goes.
    driven.typed(":goto 80");
    driven.key(Key::Enter);
    for _ in 0..20 {
        driven.key(Key::Char('+'));
    }
    let text = driven.text();
    let title = text
        .lines()
        .find(|line| line.contains("Timeline") && line.contains("/col"));
    let title = title.expect("its title");
    assert!(
        title.contains("averages of") && title.contains("exact since +"),
        "{title}"
    );
    assert!(text.contains("no finer here: exact data begin at"), "{text}");
    for label in ["  S?  ", "  S? "] {
        let row = text.lines().find(|line| line.contains(label)).expect("a stream's row");
        let cells: String = row.chars().skip(19).filter(|c| !" │".contains(*c)).collect();
        assert!(!cells.is_empty() && cells.chars().all(|c| "▚▖".contains(c)), "{row}");
    }
}

#[test]
fn a_queue_shows_its_own_kernels_at_every_zoom() {
    // Queue 0 has kernels 1, queue 1 kernels 2, and so on; one slice in four is kept.
    let mut driven = Driven::new(streams(4, 700_000, 20_000, 20_000), (120, 36));
    driven.typed("2w").typed("o");
    let buffer = driven.buffer();
    let text = driven.text();
    let rows: Vec<usize> = ["  Q0 ", "  Q1 ", "  Q2 ", "  Q3 "]
        .iter()
        .map(|label| {
            text.lines()
                .position(|line| line.contains(label))
                .unwrap_or_else(|| panic!("no {label}:\n{text}"))
        })
        .collect();
    // Each queue in the colour of its kernel, and no two in the same.
    let colors: Vec<_> = rows.iter().map(|&y| buffer[(60, y as u16)].fg).collect();
    for (at, color) in colors.iter().enumerate() {
        assert!(!colors[..at].contains(color), "{colors:?}\n{text}");
    }
}

#[test]
fn a_step_is_measured_on_the_timeline_and_is_not_idle() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("Isj");
    driven.key(Key::Enter);
    let screen = driven.text();
    assert!(!screen.contains(": idle "), "{screen}");
    // The range and what it is called, and what ran in it.
    let (slice, range) = (driven.ui.slice, driven.ui.range);
    let (Some((lane, begin)), Some(range)) = (slice, range) else {
        panic!("{screen}");
    };
    let slice = *driven.snap.lane(lane).unwrap().at(begin).unwrap();
    assert_eq!(range.span(), slice.span);
    assert!(screen.contains("step") && screen.contains("GPU0 busy"), "{screen}");
    // From a thread's row, the next gap is a GPU's.
    driven.typed("}");
    let screen = driven.text();
    assert!(
        screen.contains("GPU0: idle ") && !screen.contains("no further gap"),
        "{screen}"
    );
    assert!(driven.ui.slice.is_none());
}
