//! Lists: what is selected stays, rows and columns are chosen, and files hold what is on screen.

use crate::driven::{Driven, snapshot};
use crate::golden::Goldens;
use ratatui::style::Modifier;
use roctop::model::Mode;
use roctop::ui::key::Key;
use roctop::ui::{Effect, Tab, View};

#[test]
fn a_filter_to_the_row_and_without_it_are_opposites() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("3jF");
    assert!(driven.text().contains("1 of 7 kernels"), "{}", driven.text());
    driven.key(Key::Esc);
    driven.key(Key::Esc);
    driven.typed("jX");
    assert!(driven.text().contains("6 of 7 kernels"), "{}", driven.text());
}

#[test]
fn compact_views_have_one_list_however_large_the_terminal_is() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (200, 50));
    for View { key, .. } in Tab::of_program().map(Tab::row) {
        driven.typed(&key.to_string());
        let full = driven.text();
        driven.typed(":set layout compact").key(Key::Enter);
        let compact = driven.text();
        let boxes = |text: &str| text.matches('┌').count();
        assert!(*key != '1' || boxes(&full) > 3, "{full}");
        assert!(boxes(&compact) <= 1 && boxes(&compact) <= boxes(&full), "{compact}");
        let lists = driven.ui.lists();
        assert!(lists.len() <= 1, "{lists:?}");
        driven.typed(":set layout full").key(Key::Enter);
        let again = driven.ui.lists();
        assert!(
            again.len() >= lists.len() && boxes(&driven.text()) == boxes(&full),
            "{}",
            driven.text()
        );
    }
}

#[test]
fn a_selected_row_stays_while_time_goes_on() {
    for (view, row) in [("3", "gelu"), ("4", "D2H"), ("5", "hipMemcpyAsync")] {
        let mut driven = Driven::new(snapshot("training", Mode::Live, 3_000), (120, 36));
        let _ = driven.typed(view).buffer();
        driven.click(if row == "gelu" { "elementwise_kernel" } else { row }, 3);
        let marked = |driven: &Driven| {
            let text = driven.text();
            let line = text
                .lines()
                .find(|line| line.starts_with("│▸"))
                .map(ToString::to_string);
            line.unwrap_or_else(|| panic!("nothing is marked on\n{text}"))
        };
        let word = if row == "gelu" { "elementwise" } else { row };
        for later in [4_000, 9_000, 20_050] {
            driven.snap = snapshot("training", Mode::Live, later);
            for key in ["s", ">", "S", "<"] {
                driven.typed(key);
                assert!(
                    marked(&driven).contains(word),
                    "{view} {key} {later}: {}",
                    marked(&driven)
                );
            }
        }
    }
}

#[test]
fn a_selected_row_keeps_its_identity_when_rows_move() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("3jj");
    let name_of_selected = |driven: &Driven| {
        let line = driven
            .text()
            .lines()
            .find(|line| line.contains('▸'))
            .unwrap()
            .to_string();
        line.split_whitespace()
            .nth(2)
            .expect("the test data is there")
            .to_string()
    };
    let before = name_of_selected(&driven);
    driven.typed(">>S");
    assert_eq!(name_of_selected(&driven), before);
    let buffer = driven.buffer();
    let reversed = buffer
        .content()
        .iter()
        .filter(|cell| cell.modifier.contains(Modifier::REVERSED))
        .count();
    assert!(reversed >= 110, "the whole row is marked: {reversed}");
}

#[test]
fn the_selection_goes_along_from_view_to_view() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("3jj2");
    let text = driven.text();
    assert!(driven.ui.slice.is_some() && text.contains("fmha::fwd_kernel"), "{text}");
    driven.key(Key::Enter);
    driven.typed("5");
    assert!(driven.text().contains("│▸ hipLaunchKernel"), "{}", driven.text());
    let mut fresh = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    fresh.typed("32");
    assert!(fresh.ui.slice.is_none(), "nothing was selected");
}

#[test]
fn each_list_is_written_under_its_name() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    let mut names = Vec::new();
    for View { key, .. } in Tab::of_program().map(Tab::row) {
        driven.typed(&key.to_string());
        for _ in 0..3 {
            let Effect::Export { name, bytes } = driven.acts('e') else {
                panic!("no export")
            };
            let text = String::from_utf8(bytes).expect("it is text");
            let has_head = text.lines().next().is_some_and(|head| head.contains(','));
            assert!(driven.ui.tab == Tab::Log || has_head, "{name}: {text}");
            names.push(name);
            driven.key(Key::Tab);
        }
    }
    names.sort();
    names.dedup();
    assert!(names.len() >= 17, "{names:?}");
}

#[test]
fn an_export_holds_the_rows_on_screen_in_base_units() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (80, 24));
    driven.typed("3/fwd_kernel");
    driven.key(Key::Enter);
    let Effect::Export { name, bytes } = driven.acts('e') else {
        panic!("no export")
    };
    assert_eq!(name, "roctop-4242-kernels-20s.csv");
    let text = String::from_utf8(bytes).expect("the test data is there");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("Kernel_Name,Calls,Total_ns,Share,Average_ns"),
        "{text}"
    );
    assert!(
        lines[1].starts_with(
            "\"void fmha::fwd_kernel<fmha::Traits<128, 64, __hip_bfloat16>, true, false>(fmha::Params)\",6"
        )
    );
}

#[test]
fn columns_are_chosen_by_their_letters_and_stay_chosen() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (80, 24));
    driven.typed("3");
    let heads = |driven: &Driven| {
        let text = driven.text();
        text.lines()
            .find(|line| line.contains("KERNEL  "))
            .expect("it has a heading")
            .to_string()
    };
    assert!(heads(&driven).contains("P99") && !heads(&driven).contains("STDDEV"));
    driven.typed("c");
    let text = driven.text();
    assert!(
        text.contains("Columns of kernels") && text.contains("k  [ ] STDDEV"),
        "{text}"
    );
    driven.typed("k");
    driven.text();
    let text = driven.text();
    assert!(text.contains("k  [x] no room: STDDEV"), "{text}");
    driven.typed("i");
    driven.key(Key::Esc);
    assert!(
        heads(&driven).contains("STDDEV") && !heads(&driven).contains("P99"),
        "{}",
        driven.text()
    );
    driven.typed("c*");
    driven.key(Key::Esc);
    assert!(heads(&driven).contains("P99") && !heads(&driven).contains("STDDEV"));
    driven.typed("c");
    driven.text();
    driven.click("CALLS", 5);
    driven.key(Key::Esc);
    assert!(!heads(&driven).contains("CALLS"), "{}", driven.text());
}

#[test]
fn launches_of_a_kernel_are_listed_by_a_stretch_of_their_durations() {
    let mut goldens = Goldens::default();
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("3jv");
    assert_eq!(driven.ui.tab, Tab::Launches);
    let slowest = driven.ui.stretch.expect("the slowest are selected");
    goldens.compare("training-launches-slowest-120x36", &driven.text());
    let listed = |driven: &mut Driven| {
        let Effect::Export { bytes, .. } = driven.acts('e') else {
            panic!("no export")
        };
        let text = String::from_utf8(bytes).expect("it is text");
        let rows = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(ToString::to_string).collect());
        rows.collect::<Vec<Vec<String>>>()
    };
    let nanos = |row: &Vec<String>| row[1].parse::<u64>().expect("a duration");
    let few = listed(&mut driven);
    assert!(
        !few.is_empty() && few.iter().all(|row| slowest.has_nanos(nanos(row))),
        "{few:?}"
    );
    // The shorter end moves, then the longer one.
    driven.typed("hhhh");
    let more = listed(&mut driven);
    assert!(more.len() > few.len(), "{} of {}", few.len(), more.len());
    driven.typed("vhh");
    assert!(
        driven
            .ui
            .stretch
            .is_some_and(|stretch| stretch.moves_end && stretch.to < slowest.to)
    );
    // They are marked on the ruler, and enter leads to the selected one.
    driven.typed("2");
    goldens.compare("training-launches-marked-120x36", &driven.text());
    driven.typed("(j");
    driven.key(Key::Enter);
    assert_eq!(driven.ui.tab, Tab::Timeline);
    let begin = driven.ui.slice.expect("a launch is selected").1;
    assert!(
        driven
            .text()
            .lines()
            .any(|line| line.contains(" launch") && line.contains('▾')),
        "{}",
        driven.text()
    );
    // From a slice back to its launch in the list.
    driven.typed("L");
    let text = driven.text();
    let selected = text
        .lines()
        .find(|line| line.contains("│▸"))
        .expect("a row is selected");
    let micros = (begin - driven.snap.origin) / 1000;
    let seconds = format!("+{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    assert!(selected.contains(&seconds), "{seconds}: {selected}");
    driven.key(Key::Esc);
    driven.key(Key::Esc);
    assert!(driven.ui.stretch.is_none());
    let all = listed(&mut driven);
    assert!(all.len() > more.len());
    goldens.finish();
}

#[test]
fn a_stretch_is_dragged_on_the_histogram_of_the_kernels() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("3");
    let text = driven.text();
    let rows: Vec<usize> = text
        .lines()
        .enumerate()
        .filter(|row| row.1.contains(" % p"))
        .map(|row| row.0)
        .collect();
    let (first, last) = (rows[0] as u16, rows[0] as u16 + 1);
    driven.drag((12, first), (14, last));
    assert_eq!(driven.ui.tab, Tab::Launches, "{text}");
    let stretch = driven.ui.stretch.expect("a stretch is selected");
    assert!(stretch.from < stretch.to);
}
