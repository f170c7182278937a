//! The timeline: layouts, rows, ranges, and jumps between calls and their work.

use crate::driven::{Driven, snapshot};
use crate::golden::Goldens;
use crate::kernels;
use roctop::gauge::{Count, Counter, Device};
use roctop::item::{Agent, AgentId, AgentKind, Item, NodeId, Process};
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
    let row = |word: &str| {
        text.lines()
            .find(|line| line.contains(word))
            .unwrap_or_else(|| panic!("no {word} on\n{text}"))
    };
    let load = row("GPU0 load 100%");
    assert!(
        load.contains("____") && load.contains("████"),
        "idle, then busy: {load}"
    );
    assert!(load.find('_') < load.find('█'));
    let power = row("GPU0 300 W");
    assert!(
        power.contains("▄▄▄▄▄▄") && !power.contains('█'),
        "half of its cap: {power}"
    );
    let counter = row("GPU0 MfmaUtil");
    assert!(counter.contains("▁") && counter.contains("█"), "{counter}");
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
