//! Keys, clicks and commands.

use crate::driven::{Driven, snapshot};
use roctop::model::{Mode, Snapshot};
use roctop::ui::key::Key;
use roctop::ui::track::Layout;
use roctop::ui::{Effect, Grouping, Tab};
use std::sync::Arc;

#[test]
fn clicks_do_what_keys_do() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.click("5 API", 1);
    assert_eq!(driven.ui.tab, Tab::Api);
    driven.click("3 Kernels", 1);
    driven.click("CALLS", 3);
    assert!(driven.text().contains("CALLS▼"));
    driven.click("CALLS▼", 3);
    assert!(driven.text().contains("CALLS▲"));
    driven.click("fwd_kernel", 3);
    assert!(
        driven.text().contains("▸ b fwd_kernel") || driven.text().contains("▸b fwd_kernel"),
        "{}",
        driven.text()
    );
    driven.click("fwd_kernel", 3);
    assert_eq!(driven.ui.tab, Tab::Timeline, "a click on the selected row opens it");
    driven.key(Key::Ctrl('o'));
    assert_eq!(driven.ui.tab, Tab::Kernels);
    driven.click("help", 30);
    assert!(driven.text().contains("VIEWS"));
    driven.click("VIEWS", 3);
    assert!(!driven.text().contains("VIEWS"));
    driven.click("▲ 6 alerts", 2);
    assert_eq!(driven.ui.tab, Tab::Alerts);
    driven.click("quit", 30);
    assert_eq!(driven.click("detach", 3), Effect::None, "it is chosen");
    assert_eq!(driven.click("detach", 3), Effect::Detach);
    driven.click("export", 30);
    assert!(matches!(driven.click("write roctop-", 30), Effect::Export { .. }));
}

#[test]
fn jumps_go_back_and_forth() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("3jj");
    driven.key(Key::Enter);
    driven.key(Key::Enter);
    let at_call = (driven.ui.tab, driven.ui.slice);
    driven.key(Key::Ctrl('o'));
    let at_kernel = (driven.ui.tab, driven.ui.slice);
    assert_ne!(at_call, at_kernel);
    driven.key(Key::Ctrl('o'));
    assert_eq!(driven.ui.tab, Tab::Kernels);
    driven.typed("))");
    assert_eq!((driven.ui.tab, driven.ui.slice), at_call);
}

#[test]
fn the_palette_completes_and_does_what_it_says() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed(":gro");
    assert!(driven.text().contains("group"), "{}", driven.text());
    driven.key(Key::Tab);
    driven.typed(" agent");
    driven.key(Key::Enter);
    assert_eq!(
        (driven.ui.tab, driven.ui.prefs.grouping),
        (Tab::Kernels, Grouping::Agent)
    );
    let text = driven.text();
    assert!(text.contains("by GPU") && text.contains("GPU1"), "{text}");
    driven.typed(":lanes thread");
    driven.key(Key::Enter);
    assert_eq!(driven.ui.prefs.layout, Layout::Thread);
    driven.typed(":goto 2.5s");
    driven.key(Key::Enter);
    assert!(driven.text().contains("+2.5"), "{}", driven.text());
    driven.typed(":goto 1h");
    driven.key(Key::Enter);
    assert!(driven.text().contains("it has run for"), "{}", driven.text());
    // The line stays, to be mended.
    driven.key(Key::Ctrl('u'));
    driven.typed("goto 1parsec");
    driven.key(Key::Enter);
    assert!(driven.text().contains("not a time or marker"), "{}", driven.text());
    driven.key(Key::Esc);
    driven.typed(":detach");
    assert_eq!(driven.key(Key::Enter), Effect::Detach);
}

#[test]
fn commands_and_keys_are_one_list() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (80, 24));
    let screen = driven.typed("3:stat").text();
    let row = screen.lines().find(|line| line.contains("▸ reset"));
    assert!(
        row.is_some_and(|row| row.contains(" r ") && row.contains("reset statistics")),
        "{screen}"
    );
    driven.key(Key::Ctrl('u'));
    driven.typed("dethac");
    driven.key(Key::Enter);
    assert!(
        driven.text().contains("no command dethac; did you mean detach?"),
        "{}",
        driven.text()
    );
    driven.key(Key::Ctrl('u'));
    // What cannot be taken back is written out first.
    driven.typed("det");
    assert_eq!(driven.key(Key::Enter), Effect::None);
    assert_eq!(driven.key(Key::Enter), Effect::Detach);
    driven.typed(":");
    driven.key(Key::Down);
    driven.key(Key::Enter);
    assert!(
        driven.text().contains("TOTAL▲"),
        "the second is reverse:\n{}",
        driven.text()
    );
}

#[test]
fn a_row_and_a_slice_of_the_timeline_name_a_filter() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    // The second row is a stream of the first GPU.
    driven.typed("2ggj");
    driven.typed("F");
    assert_eq!(driven.ui.filter.source, "stream=0", "{}", driven.text());
    driven.key(Key::Esc);
    driven.typed("]F");
    assert!(driven.ui.filter.source.starts_with('"'), "{}", driven.ui.filter.source);
}

#[test]
fn a_gap_keeps_its_gpu_when_rows_are_grouped_otherwise() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("2}");
    assert!(
        driven.text().contains("GPU0: idle") || driven.text().contains("GPU0 S0"),
        "{}",
        driven.text()
    );
    for _ in Layout::ALL {
        driven.typed("o");
        let screen = driven.text();
        let title = screen.lines().find(|line| line.contains(": idle "));
        assert!(title.is_none_or(|title| title.contains("GPU")), "{screen}");
    }
}

#[test]
fn units_are_those_that_were_chosen() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (200, 50));
    driven.typed("3:set units ns");
    driven.key(Key::Enter);
    let screen = driven.text();
    let row = screen
        .lines()
        .find(|line| line.contains("Cijk"))
        .expect("a row of the kernels");
    assert!(row.matches(" ns").count() >= 5, "{row}");
    assert!(
        !row.contains(" ms") && !row.contains(" µs") && !row.contains(" s "),
        "{row}"
    );
}

#[test]
fn names_at_80_columns_keep_their_tile() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (80, 24));
    let screen = driven.typed("3").text();
    assert!(screen.contains("MT256x128x64"), "{screen}");
}

#[test]
fn help_is_searched_and_has_every_sign() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 50));
    let screen = driven.typed("?/baseline").text();
    assert!(
        screen.contains("Help: /baseline") && screen.contains(":baseline"),
        "{screen}"
    );
    assert!(!screen.contains("zoom in"), "{screen}");
    driven.key(Key::Enter);
    // Keys scroll again; esc ends the search, then the help.
    driven.typed("j");
    driven.key(Key::Esc);
    assert!(driven.text().contains("VIEWS"), "{}", driven.text());
    let screen = driven.typed("/estimate").text();
    assert!(screen.contains("≈ ≤"), "{screen}");
    driven.key(Key::Esc);
    for _ in 0..60 {
        driven.typed("j");
    }
    assert!(driven.text().contains("SIGNS"), "{}", driven.text());
    driven.key(Key::Esc);
    assert!(!driven.text().contains("SIGNS"), "{}", driven.text());
}

#[test]
fn quitting_asks_only_while_the_program_runs() {
    let mut running = Driven::new(snapshot("training", Mode::Live, 5_000), (80, 24));
    assert_eq!(running.key(Key::Char('q')), Effect::None);
    assert_eq!(running.acts('d'), Effect::Detach);
    assert_eq!(running.key(Key::Ctrl('c')), Effect::Interrupt);
    assert_eq!(running.key(Key::Ctrl('c')), Effect::None, "the second one asks");
    assert_eq!(running.acts('k'), Effect::Signal(9));
    assert_eq!(running.key(Key::Ctrl('z')), Effect::Suspend);
    let mut ended = Driven::new(snapshot("killed", Mode::Live, 2_000), (80, 24));
    assert_eq!(ended.key(Key::Char('q')), Effect::Quit);
    assert_eq!(ended.key(Key::Ctrl('c')), Effect::Quit);
}

#[test]
fn a_paused_screen_stands_while_the_clock_goes_on() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 10_000), (120, 36));
    driven.typed(" ");
    let body = |driven: &Driven| driven.text().lines().skip(3).collect::<Vec<_>>().join("\n");
    let before = body(&driven);
    driven.snap = snapshot("training", Mode::Live, 15_000);
    assert_eq!(body(&driven), before);
    assert!(driven.text().contains("❚❚ PAUSED") && driven.text().contains("live is 5.00 s ahead"));
    driven.typed("f");
    assert_ne!(body(&driven), before);
}

#[test]
fn two_letters_make_a_key() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("3Ggg");
    assert!(driven.text().contains("│▸ a Cijk"), "{}", driven.text());
    driven.typed("gt");
    assert!(driven.text().contains(":goto"), "{}", driven.text());
}

#[test]
fn a_word_is_found_in_the_log_upwards_and_back() {
    let lines = (0..500).map(|at| match at {
        100 | 300 => format!("line {at} Error: out of memory").into(),
        _ => format!("line {at}").into(),
    });
    let snap = Snapshot {
        output: lines.collect(),
        ..Snapshot::default()
    };
    let mut driven = Driven::new(Arc::new(snap), (100, 30));
    driven.typed("0/error:");
    assert!(driven.text().contains("2 of 500 lines"), "{}", driven.text());
    driven.key(Key::Enter);
    assert!(
        driven.text().contains("▸line 300 Error"),
        "the newest first:\n{}",
        driven.text()
    );
    assert!(driven.text().contains("line 299"), "the others stay");
    assert!(driven.typed("n").text().contains("▸line 100 Error"));
    assert!(driven.typed("n").text().contains("no match further up"));
    assert!(driven.typed("N").text().contains("▸line 300 Error"));
    assert!(
        driven.ui.filter.is_empty(),
        "what is looked for here filters nothing elsewhere"
    );
    driven.key(Key::Esc);
    assert!(driven.typed("n").text().contains("no search yet"));
}
