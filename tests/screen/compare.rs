//! What changed: windows are chosen by keys and commands, and the verdicts are those of `roctop diff`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::driven::{Driven, snapshot};
use crate::golden::Goldens;
use roctop::model::report::comparison;
use roctop::model::{Mode, Snapshot};
use roctop::ui::key::Key;
use roctop::ui::{Effect, Msg, Tab, update};

/// Verdicts by name on the screen.
fn verdicts(driven: &mut Driven) -> BTreeMap<String, String> {
    let Effect::Export { bytes, .. } = driven.acts('e') else {
        panic!("no export")
    };
    let text = String::from_utf8(bytes).expect("it is text");
    let rows = text.lines().skip(1).map(|line| {
        let (rest, verdict) = line.rsplit_once(',').expect("it has a verdict");
        let name = rest.strip_prefix('"').map_or_else(
            || rest.split(',').next().expect("it has a name"),
            |quoted| &quoted[..quoted.rfind('"').expect("the quote ends")],
        );
        (name.to_string(), verdict.to_string())
    });
    rows.collect()
}

/// Verdicts by name of `roctop diff`.
fn of_diff(before: &Snapshot, after: &Snapshot) -> BTreeMap<String, String> {
    let mut out = Vec::new();
    comparison::write(before, after, &mut out).expect("memory takes it");
    let text = String::from_utf8(out).expect("it is text");
    let (head, rows) = text.split_once("KERNEL\n").expect("it has a heading");
    let at = head.lines().last().map_or(0, str::len);
    let rows = rows.lines().take_while(|line| !line.is_empty());
    rows.map(|line| (line[at..].trim().to_string(), line[..8].trim().to_string()))
        .collect()
}

#[test]
fn screen_and_diff_share_their_verdicts() {
    let before = snapshot("training", Mode::Live, 9_050);
    let after = snapshot("training", Mode::Live, 20_050);
    let other = Arc::new(Snapshot {
        title: "another run".into(),
        ..(*before).clone()
    });
    let mut driven = Driven::new(after.clone(), (200, 50));
    update(&mut driven.ui, &after, Msg::Baseline(other));
    assert_eq!(driven.ui.tab, Tab::Diff);
    let (shown, printed) = (verdicts(&mut driven), of_diff(&before, &after));
    assert!(shown.len() >= 7, "{shown:?}");
    assert_eq!(shown, printed);
}

#[test]
fn windows_are_chosen_by_keys() {
    let mut goldens = Goldens::default();
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("D");
    let text = driven.text();
    assert!(
        text.contains("last 10.0 s with 10.0 s ago") && text.contains("▸ B after"),
        "{text}"
    );
    driven.typed("-");
    assert!(driven.text().contains("last 5.00 s with"), "{}", driven.text());
    driven.typed("vhh");
    let text = driven.text();
    assert!(text.contains("two windows") && text.contains("▸ A before"), "{text}");
    goldens.compare("training-diff-windows-120x36", &text);
    // Before and after a mark, then steps.
    driven.typed("2 hhmDoo");
    let text = driven.text();
    assert!(text.contains("10.0 s before and after mark 1"), "{text}");
    goldens.compare("training-diff-mark-120x36", &text);
    driven.typed("o");
    let text = driven.text();
    assert!(
        text.contains("; beyond 4 standard errors and 2 %") && text.contains("step "),
        "{text}"
    );
    let steps = text.clone();
    driven.typed("h");
    assert_ne!(driven.text(), steps, "the other step is compared");
    // A baseline is compared at once, and o leads away from it.
    driven.typed("b");
    assert!(driven.text().contains("against since then"), "{}", driven.text());
    driven.typed("o");
    assert!(driven.text().contains("last 10.0 s"), "{}", driven.text());
    goldens.finish();
}

#[test]
fn windows_are_chosen_by_commands() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    let mut run = |line: &str| {
        driven.typed(&format!(":{line}"));
        driven.key(Key::Enter);
        let text = driven.text();
        driven.key(Key::Esc);
        text
    };
    for (line, seen) in [
        ("compare 2s..4s 10s..15s", "two windows"),
        ("compare ago 8s 2s", "last 2.00 s with 8.00 s ago"),
        ("compare step 1 3", "step 1 with step 3"),
        ("compare step 0 #4", "step 0 with step 3"),
        ("compare 2s 4s", "compare 10s..20s"),
        ("compare mark 1", "there are 0 marks"),
        ("compare step 1 90000", "known; I lists them"),
        ("compare baseline", "no baseline; b takes one"),
        ("compare 4s..2s 1s..2s", "compare 10s..20s"),
    ] {
        let text = run(line);
        assert!(text.contains(seen), "{line}: {seen}\n{text}");
    }
    assert!(run("compare 2s..4s 10s..15s").contains("+2.000000 – +4.000000"));
}

#[test]
fn a_window_without_slices_has_whole_seconds() {
    let snap = snapshot("training", Mode::Live, 20_050);
    let forgotten = Arc::new(Snapshot {
        lanes: Arc::new(
            snap.lanes
                .iter()
                .map(|lane| {
                    let mut lane = (**lane).clone();
                    while lane.forget(None) > 0 {}
                    Arc::new(lane)
                })
                .collect(),
        ),
        ..(*snap).clone()
    });
    let mut driven = Driven::new(forgotten, (120, 36));
    driven.typed(":compare 2s..6s 10s..15s");
    driven.key(Key::Enter);
    let text = driven.text();
    assert!(
        text.contains("whole seconds") && text.contains("sums by second have no histogram"),
        "{text}"
    );
    assert!(!verdicts(&mut driven).is_empty());
}
