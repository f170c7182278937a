//! Every view at three sizes on two scenarios, compared with the texts in `golden/screens/`.
//!
//! `ROCTOP_GOLDEN=write cargo test --test screen` writes them anew; read the difference before committing it.

#[path = "screen/driven.rs"]
mod driven;

use std::sync::Arc;

use ratatui::style::{Modifier, Style};
use roctop::gauge::{Count, Counter, Device};
use roctop::item::{
    Agent, AgentId, AgentKind, Dispatch, Exit, Health, Item, Kernel, KernelId, LossReason, Open, Process, ProcessId,
    Span, StreamId,
};
use roctop::model::{Fresh, LaneKey, Mode, Options, Snapshot, Store};
use roctop::ui::key::Key;
use roctop::ui::theme::{Depth, Role, Theme};
use roctop::ui::track::Layout;
use roctop::ui::{Effect, Grouping, Msg, Tab, update};

use roctop_ring::record::flag;

use self::driven::{Driven, snapshot, tests};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 50)];

const VIEWS: [(char, &str); 16] = [
    ('1', "overview"),
    ('2', "timeline"),
    ('3', "kernels"),
    ('4', "copies"),
    ('5', "api"),
    ('6', "counters"),
    ('7', "devices"),
    ('8', "markers"),
    ('9', "processes"),
    ('0', "log"),
    ('A', "alerts"),
    ('W', "running"),
    ('I', "steps"),
    ('D', "diff"),
    ('M', "memory"),
    ('C', "samples"),
];

fn compare(name: &str, text: &str) {
    let path = tests().join("golden/screens").join(format!("{name}.txt"));
    if std::env::var_os("ROCTOP_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().expect("the test data is there")).expect("the test data is there");
        std::fs::write(&path, text).expect("the test data is there");
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == text, "{name} differs from {}:\n{text}", path.display());
}

#[test]
fn every_view_looks_as_it_did() {
    let training = snapshot("training", Mode::Live, 20_050);
    let killed = snapshot("killed", Mode::Live, 2_000);
    let counted = snapshot("counted", Mode::Live, 10_020);
    for size in SIZES {
        let at = format!("{}x{}", size.0, size.1);
        for (key, view) in VIEWS {
            compare(
                &format!("training-{view}-{at}"),
                &Driven::new(training.clone(), size).typed(&key.to_string()).text(),
            );
            compare(
                &format!("killed-{view}-{at}"),
                &Driven::new(killed.clone(), size).typed(&key.to_string()).text(),
            );
        }
        let training = || Driven::new(training.clone(), size);
        compare(&format!("training-help-{at}"), &training().typed("?").text());
        compare(&format!("training-quit-{at}"), &training().typed("q").text());
        compare(
            &format!("training-prompt-{at}"),
            &training().typed("3/stream=0 dur>5ms").text(),
        );
        compare(
            &format!("training-prompt-error-{at}"),
            &training().typed("3/fwd dur>5parsec").text(),
        );
        let counted = || Driven::new(counted.clone(), size);
        compare(&format!("counted-counters-{at}"), &counted().typed("6").text());
        compare(
            &format!("counted-kernels-{at}"),
            &counted().typed("3/SQ_WAVES>50k\r").text(),
        );
        compare(&format!("training-zoomed-{at}"), &training().typed("2+++jj]]").text());
        compare(
            &format!("replay-timeline-{at}"),
            &Driven::new(snapshot("training", Mode::Replay, 20_050), size)
                .typed("2")
                .text(),
        );
        compare(
            &format!("nothing-overview-{at}"),
            &Driven::new(Arc::default(), size).text(),
        );
    }
}

/// The role of a style in a theme; several roles may look the same.
fn role(theme: &Theme, style: Style) -> String {
    let same = |known: Style| (known.fg, known.bg, known.add_modifier) == (style.fg, style.bg, style.add_modifier);
    let plain = Style::default();
    if same(plain) {
        return "text".into();
    }
    if let Some(known) = Role::ALL.iter().find(|known| same(theme.style(known.0))) {
        return known.1.into();
    }
    let filled = Role::ALL.iter().find(|known| same(theme.filled_role(known.0)));
    let hue = (0..26).find(|&number| same(theme.filled(number)) || same(theme.line(number)));
    match (hue, filled) {
        (Some(number), _) => format!("hue {number}"),
        (None, Some(known)) => format!("filled {}", known.1),
        (None, None) => format!("{:?} on {:?} {:?}", style.fg, style.bg, style.add_modifier),
    }
}

/// Each row as runs of roles: `title*6 text*3`.
fn roles(driven: &Driven) -> String {
    let buffer = driven.buffer();
    let mut out = String::new();
    for row in buffer.content().chunks(buffer.area.width as usize) {
        let mut runs: Vec<(String, usize)> = Vec::new();
        for cell in row {
            let style = cell.style();
            let reset = |color: Option<_>| color.filter(|&color| color != ratatui::style::Color::Reset);
            let style = Style {
                fg: reset(style.fg),
                bg: reset(style.bg),
                add_modifier: style.add_modifier,
                ..Style::default()
            };
            // What is blank has no colour of letters.
            let is_blank = cell.symbol() == " " && style.bg.is_none() && style.add_modifier.is_empty();
            let role = if is_blank {
                "text".into()
            } else {
                role(&driven.theme, style)
            };
            match runs.last_mut() {
                Some(last) if last.0 == role => last.1 += 1,
                _ => runs.push((role, 1)),
            }
        }
        let words: Vec<String> = runs.iter().map(|(role, count)| format!("{role}*{count}")).collect();
        out += &(words.join(" ") + "\n");
    }
    out
}

#[test]
fn every_view_has_its_roles_in_two_themes_and_says_the_same_in_both() {
    let training = snapshot("training", Mode::Live, 20_050);
    for size in SIZES {
        let mut texts = Vec::new();
        for name in ["light", "mono"] {
            let depth = if name == "mono" { Depth::None } else { Depth::C256 };
            let mut all = String::new();
            let mut text = String::new();
            for (key, view) in VIEWS {
                let mut driven = Driven::new(training.clone(), size);
                driven.theme = Theme::named(name, depth).expect("a theme of this name is there");
                driven.typed(&key.to_string());
                all += &["== ", view, "\n", &roles(&driven)].concat();
                text += &driven.text();
            }
            compare(&format!("roles-{name}-{}x{}", size.0, size.1), &all);
            texts.push(text);
        }
        assert_eq!(texts[0], texts[1], "nothing is told by colour alone");
    }
}

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
    driven.click("▲ 4 alerts", 2);
    assert_eq!(driven.ui.tab, Tab::Alerts);
    driven.click("quit", 30);
    assert_eq!(driven.click("detach", 3), Effect::Detach);
}

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
    assert_eq!((driven.ui.tab, driven.ui.grouping), (Tab::Kernels, Grouping::Agent));
    let text = driven.text();
    assert!(text.contains("by agent") && text.contains("GPU1"), "{text}");
    driven.typed(":lanes thread");
    driven.key(Key::Enter);
    assert_eq!(driven.ui.layout, Layout::Thread);
    driven.typed(":goto 2.5s");
    driven.key(Key::Enter);
    assert!(driven.text().contains("+2.5"), "{}", driven.text());
    driven.typed(":goto 1h");
    driven.key(Key::Enter);
    assert!(
        driven.text().contains("neither a time nor a marker"),
        "{}",
        driven.text()
    );
    driven.typed(":detach");
    assert_eq!(driven.key(Key::Enter), Effect::Detach);
}

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
fn each_layout_shows_all_kernels() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("2");
    for layout in Layout::ALL {
        driven.ui.layout = layout.0;
        compare(&format!("training-lanes-{}-120x36", layout.1), &driven.text());
    }
    for grouping in Grouping::ALL {
        driven.typed("3");
        driven.ui.grouping = grouping.0;
        compare(&format!("training-kernels-{}-120x36", grouping.1), &driven.text());
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
fn what_matters_is_on_screen() {
    for size in SIZES {
        let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), size);
        let text = driven.text();
        for part in ["● LIVE", "lost 0", "GPU0", "GPU1", "Cijk_", "TOTAL▼", "filter: none"] {
            assert!(text.contains(part), "{part} at {size:?}:\n{text}");
        }
        driven.typed("3/!(Cijk|fwd)");
        driven.key(Key::Enter);
        let text = driven.text();
        assert!(
            text.contains("filter: !(Cijk|fwd)") && !text.contains("fwd_kernel"),
            "{text}"
        );

        let text = Driven::new(snapshot("killed", Mode::Live, 2_000), size).text();
        for part in [
            "■ KILLED by signal 9",
            "lost 57",
            "SIGKILL",
            "hipDeviceSynchronize",
            "▒",
        ] {
            assert!(text.contains(part), "{part} at {size:?}:\n{text}");
        }
    }
    for (size, part) in [((60, 16), "Kernels"), ((39, 9), "too small")] {
        let text = Driven::new(snapshot("training", Mode::Live, 20_050), size).text();
        assert!(text.contains(part), "{size:?}:\n{text}");
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
fn quitting_asks_only_while_the_program_runs() {
    let mut running = Driven::new(snapshot("training", Mode::Live, 5_000), (80, 24));
    assert_eq!(running.key(Key::Char('q')), Effect::None);
    assert_eq!(running.key(Key::Char('d')), Effect::Detach);
    assert_eq!(running.key(Key::Ctrl('c')), Effect::Interrupt);
    assert_eq!(running.key(Key::Ctrl('c')), Effect::None, "the second one asks");
    assert_eq!(running.key(Key::Char('k')), Effect::Signal(9));
    assert_eq!(running.key(Key::Ctrl('z')), Effect::Suspend);
    let mut ended = Driven::new(snapshot("killed", Mode::Live, 2_000), (80, 24));
    assert_eq!(ended.key(Key::Char('q')), Effect::Quit);
    assert_eq!(ended.key(Key::Ctrl('c')), Effect::Quit);
}

#[test]
fn an_export_holds_the_rows_on_screen_in_base_units() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (80, 24));
    driven.typed("3/fwd_kernel");
    driven.key(Key::Enter);
    let Effect::Export { name, bytes } = driven.key(Key::Char('e')) else {
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

/// A snapshot of kernels on one stream: begin and length, µs.
fn kernels(spans: &[(u64, u64)], lost: u64) -> Arc<Snapshot> {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Agent(Agent {
        id: AgentId(1),
        name: "gfx942".into(),
        ..Agent::default()
    }));
    for &(begin, length) in spans {
        let begin = 1_000_000_000 + begin * 1000;
        store.apply(&Item::Dispatch(Dispatch {
            agent: AgentId(1),
            stream: Some(StreamId(0)),
            span: Span {
                begin,
                end: begin + length * 1000,
            },
            ..Dispatch::default()
        }));
    }
    store.apply(&Item::Lost {
        process: ProcessId(0),
        reason: LossReason::Overwritten,
        records: lost,
    });
    store.apply(&Item::Now(1_100_000_000));
    store.snapshot(Fresh::All)
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
fn the_wheel_zooms_about_the_mouse() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("2 ");
    let column = 60;
    let under = |driven: &Driven| driven.ui.time.from + driven.ui.time.width * (column - 19);
    let (before, width) = (under(&driven), driven.ui.time.width);
    driven.wheel((column as u16, 8));
    assert_eq!((under(&driven), driven.ui.time.width), (before, width / 2));
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
    for (key, _) in VIEWS {
        driven.typed(&key.to_string());
        for _ in 0..3 {
            let Effect::Export { name, bytes } = driven.key(Key::Char('e')) else {
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
    assert!(driven.typed("n").text().contains("nothing is looked for"));
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
fn what_was_in_flight_is_shown_also_when_it_has_ended_since() {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Process(Process {
        pid: 7,
        since: 1_000_000_000,
        ..Process::default()
    }));
    store.apply(&Item::Now(2_000_000_000));
    let flying = |dispatch_id, submit| Dispatch {
        dispatch_id,
        submit,
        ..Dispatch::default()
    };
    store.apply(&Item::Open(Open {
        dispatches: vec![flying(1, 1_998_000_000), flying(2, 1_999_000_000)],
        ..Open::default()
    }));
    store.apply(&Item::Dispatch(Dispatch {
        span: Span {
            begin: 1_999_000_000,
            end: 2_001_000_000,
        },
        ..flying(1, 1_998_000_000)
    }));
    store.apply(&Item::Now(2_400_000_000));
    let mut driven = Driven::new(store.snapshot(Fresh::All), (120, 36));
    let text = driven.typed("W").text();
    let line = |word: &str| text.lines().find(|line| line.contains(word)).unwrap_or_default();
    // The ages are those of the look: a kernel that is gone does not grow old.
    assert!(
        line("oldest").contains("2.00 ms") && line("oldest").contains("ended since; 1 behind"),
        "{text}"
    );
    assert!(
        line("│  kernel").contains("1.00 ms") && !line("│  kernel").contains("ended"),
        "{text}"
    );
    assert!(
        line("last done").contains("took 2.00 ms") && text.contains("2 open when last looked at"),
        "{text}"
    );
}

#[test]
fn sampled_kernels_are_ranked_and_lead_to_their_instructions_and_rows() {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Process(Process {
        pid: 7,
        since: 1_000_000_000,
        ..Process::default()
    }));
    for (id, name) in [(1, "hot_loop(float*)"), (2, "copy_back(int*)")] {
        store.apply(&Item::Kernel(Kernel {
            id: KernelId(id),
            name: name.into(),
            mangled: name.into(),
            ..Kernel::default()
        }));
        store.apply(&Item::Dispatch(Dispatch {
            kernel: KernelId(id),
            dispatch_id: u64::from(id),
            span: Span {
                begin: 1_500_000_000,
                end: 1_600_000_000,
            },
            ..Dispatch::default()
        }));
    }
    // Of a wave that waits for memory at one place of hot_loop, and of others.
    for (dispatch, offset, reason, times) in [(1, 0x1a40, 3, 60), (1, 0x1a48, 5, 20), (2, 0x200, 3, 20)] {
        for _ in 0..times {
            store.apply(&Item::PcSample(roctop::sampling::Sample {
                dispatch,
                code_object: 1,
                offset,
                reason,
                instruction: 7,
                exec_mask: 0xffff_ffff,
                method: roctop_ring::record::sampling::STOCHASTIC,
                ..roctop::sampling::Sample::default()
            }));
        }
    }
    for dispatch_id in [1, 2] {
        store.apply(&Item::Dispatch(Dispatch {
            kernel: KernelId(dispatch_id),
            dispatch_id: u64::from(dispatch_id),
            ..Dispatch::default()
        }));
    }
    store.apply(&Item::Now(2_000_000_000));
    for size in SIZES {
        let mut driven = Driven::new(store.snapshot(Fresh::All), size);
        let text = driven.typed("C").text();
        let line = |word: &str| text.lines().find(|line| line.contains(word)).unwrap_or_default();
        let hottest = line("obj 1 +0x1a40").to_owned();
        assert!(
            text.contains("100 samples") && line("hot_loop").contains("80.0 %"),
            "{text}"
        );
        assert!(line("75.0 % at obj 1 +0x1a40").contains("hot_loop"), "{text}");
        assert!(!hottest.is_empty(), "{text}");
        let places: Vec<&str> = text.lines().filter(|line| line.contains("WAITCNT")).collect();
        assert_eq!(places.len(), 2, "{text}");
        driven.typed("/copy_back");
        driven.key(Key::Enter);
        assert!(!driven.text().contains("hot_loop"), "{}", driven.text());
        driven.key(Key::Enter);
        assert_eq!(driven.ui.tab, Tab::Kernels);
    }
}

#[test]
fn counters_are_picked_by_name_and_the_program_is_run_again() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("6");
    assert_eq!(driven.key(Key::Char('p')), Effect::ListCounters);
    let names = ["GRBM_COUNT".to_string(), "SQ_WAVES".into()].into();
    update(&mut driven.ui, &driven.snap, Msg::Counters(names));
    driven.typed("waves");
    driven.key(Key::Tab);
    assert!(driven.text().contains(":pmc SQ_WAVES"), "{}", driven.text());
    assert_eq!(driven.key(Key::Enter), Effect::Count("SQ_WAVES".into()));
    // They are known now.
    assert_eq!(driven.key(Key::Char('p')), Effect::None);
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
        since: 1_000_000_000,
        ..Process::default()
    }));
    store.apply(&Item::Counter(Arc::new(Counter {
        id: 3,
        name: "MfmaUtil".into(),
        unit: "%".into(),
        node: Some(2),
        state: Ok(()),
        ..Counter::default()
    })));
    for second in 1..60u64 {
        let at = second * 1_000_000_000;
        store.apply(&Item::Device(Arc::new(Device {
            node: 2,
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

/// A frame in a theme at a depth of colour.
fn painted(driven: &mut Driven, theme: &str, depth: Depth) -> ratatui::buffer::Buffer {
    driven.theme = Theme::named(theme, depth).expect("a theme of this name is there");
    driven.buffer()
}

#[test]
fn nothing_is_told_by_colour_alone() {
    // Without any colour the characters are the same, and where colour made two cells of the same character different
    // beside each other, something other than colour does.
    for (scenario, until) in [("training", 20_050), ("killed", 2_000)] {
        let snap = snapshot(scenario, Mode::Live, until);
        for size in SIZES {
            for (key, view) in VIEWS {
                let mut driven = Driven::new(snap.clone(), size);
                driven.typed(&key.to_string());
                let coloured = painted(&mut driven, "dark", Depth::True);
                let plain = painted(&mut driven, "mono", Depth::None);
                for (one, other) in coloured.content().iter().zip(plain.content()) {
                    assert_eq!(one.symbol(), other.symbol(), "{scenario} {view} {size:?}");
                    let style = other.style();
                    let is_plain = |color: Option<ratatui::style::Color>| {
                        color.is_none_or(|color| color == ratatui::style::Color::Reset)
                    };
                    assert!(
                        is_plain(style.fg) && is_plain(style.bg),
                        "{scenario} {view}: a colour in mono"
                    );
                }
            }
        }
    }
}

/// A row of a table by a word in it, without what is around it.
fn line_with<'a>(text: &'a str, word: &str) -> &'a str {
    text.lines()
        .find(|line| line.contains(word))
        .unwrap_or_else(|| panic!("no {word} on\n{text}"))
}

#[test]
fn what_a_colour_warns_of_has_a_sign_in_its_row() {
    // A colour that nothing else has.
    let text = std::fs::read_to_string(tests().join("../themes/dark.toml")).expect("it is there");
    let own = "signal = { rgb = \"#010203\", c256 = 16, c16 = \"red\" }";
    let lines = text.lines().map(|line| match line {
        line if line.starts_with("\"alert.warn\"") || line.starts_with("\"alert.bad\"") => {
            let (role, _) = line.split_once('=').expect("it is a role");
            format!("{role}= {{ fg = \"signal\" }}\n")
        }
        line if line.starts_with("[palette]") => format!("{line}\n{own}\n"),
        line => format!("{line}\n"),
    });
    let theme = Theme::parse(&lines.collect::<String>(), Depth::True).expect("it is a theme");
    let warning = [theme.style(Role::Warn).fg, theme.style(Role::Bad).fg];
    for (scenario, until) in [("training", 20_050), ("killed", 2_000)] {
        let snap = snapshot(scenario, Mode::Live, until);
        for size in SIZES {
            for (key, view) in VIEWS {
                let mut driven = Driven::new(snap.clone(), size);
                driven.theme = theme.clone();
                driven.typed(&key.to_string());
                let buffer = driven.buffer();
                for row in buffer.content().chunks(buffer.area.width as usize) {
                    let runs: String = row
                        .iter()
                        .filter(|cell| cell.symbol() != " " && warning.contains(&cell.style().fg))
                        // A bar has its length, and its number beside it.
                        .filter(|cell| {
                            !cell
                                .symbol()
                                .starts_with(|c: char| ('▀'..='▟').contains(&c) && c != '▒')
                        })
                        .map(ratatui::buffer::Cell::symbol)
                        .collect();
                    let text: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
                    // A sign, or a word that says by itself what is wrong.
                    let says = [
                        "▲", "■", "●", "lost", "KILLED", "signal", "hip", "more", "slower", "oldest", "call", "▒",
                    ];
                    assert!(
                        runs.is_empty() || says.iter().any(|sign| text.contains(sign)),
                        "{scenario} {view} {size:?}: {runs} in\n{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn selected_rows_and_active_views_are_told_without_colour() {
    for size in SIZES {
        let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), size);
        driven.typed("3jj");
        let text = driven.text();
        assert!(text.contains("[3 Kernels]"), "{text}");
        assert!(line_with(&text, "│▸").contains("b fwd_kernel"), "{text}");
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
    assert!(matches!(driven.key(Key::Char('r')), Effect::Reset(true)));
    driven.typed(":whole");
    assert!(matches!(driven.key(Key::Enter), Effect::Reset(false)));
}
