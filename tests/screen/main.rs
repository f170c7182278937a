//! The screen without a program: views on scenarios, keys, random input, bytes on the wire. Needs no collector.
//!
//! Every view at three sizes is compared with the texts in `golden/screens/`. A failure prints the diff of every screen.
//! `ROCTOP_GOLDEN=write cargo test --test screen` writes the texts; read the difference before you commit it.

mod ask;
mod collectives;
mod colour;
mod compare;
mod counter;
mod derived;
mod driven;
mod filter;
mod golden;
mod job;
mod key;
mod keyboard;
mod list;
mod questions;
mod random;
mod ranks;
mod room;
mod sites;
mod start;
mod timeline;
mod told;
mod wire;

use driven::{Driven, snapshot};
use golden::Goldens;
use ratatui::style::Style;
use roctop::item::{Agent, AgentId, Dispatch, Item, LossReason, ProcessId, Span, StreamId};
use roctop::model::{Fresh, Mode, Options, Snapshot, Store};
use roctop::ui::key::Key;
use roctop::ui::theme::{Depth, Role, Theme};
use roctop::ui::{Tab, View};
use std::sync::Arc;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 50)];

#[test]
fn every_view_looks_as_it_did() {
    let mut goldens = Goldens::default();
    let training = snapshot("training", Mode::Live, 20_050);
    let killed = snapshot("killed", Mode::Live, 2_000);
    let counted = snapshot("counted", Mode::Live, 10_020);
    for size in SIZES {
        let at = format!("{}x{}", size.0, size.1);
        for View { key, word: view, .. } in Tab::of_program().map(Tab::row) {
            goldens.compare(
                &format!("training-{view}-{at}"),
                &Driven::new(training.clone(), size).typed(&key.to_string()).text(),
            );
            goldens.compare(
                &format!("killed-{view}-{at}"),
                &Driven::new(killed.clone(), size).typed(&key.to_string()).text(),
            );
        }
        let training = || Driven::new(training.clone(), size);
        goldens.compare(&format!("training-help-{at}"), &training().typed("?").text());
        goldens.compare(&format!("training-quit-{at}"), &training().typed("q").text());
        goldens.compare(
            &format!("training-prompt-{at}"),
            &training().typed("3/stream=0 dur>5ms").text(),
        );
        goldens.compare(
            &format!("training-prompt-error-{at}"),
            &training().typed("3/fwd dur>5parsec").text(),
        );
        let counted = || Driven::new(counted.clone(), size);
        goldens.compare(&format!("counted-counters-{at}"), &counted().typed("6").text());
        goldens.compare(
            &format!("counted-kernels-{at}"),
            &counted().typed("3/SQ_WAVES>50k\r").text(),
        );
        goldens.compare(&format!("training-zoomed-{at}"), &training().typed("2+++jj]]").text());
        goldens.compare(
            &format!("replay-timeline-{at}"),
            &Driven::new(snapshot("training", Mode::Replay, 20_050), size)
                .typed("2")
                .text(),
        );
        goldens.compare(
            &format!("nothing-overview-{at}"),
            &Driven::new(Arc::default(), size).text(),
        );
    }
    goldens.finish();
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
    let mut goldens = Goldens::default();
    let training = snapshot("training", Mode::Live, 20_050);
    for size in SIZES {
        let mut texts = Vec::new();
        for name in ["light", "mono"] {
            let depth = if name == "mono" { Depth::None } else { Depth::C256 };
            let mut all = String::new();
            let mut text = String::new();
            for View { key, word: view, .. } in Tab::of_program().map(Tab::row) {
                let mut driven = Driven::new(training.clone(), size);
                driven.theme = Theme::named(name, depth).expect("a theme of this name is there");
                driven.typed(&key.to_string());
                all += &["== ", view, "\n", &roles(&driven)].concat();
                text += &driven.text();
            }
            goldens.compare(&format!("roles-{name}-{}x{}", size.0, size.1), &all);
            texts.push(text);
        }
        assert_eq!(texts[0], texts[1], "nothing is told by colour alone");
    }
    goldens.finish();
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
    for (size, part) in [((60, 16), "Kernels"), ((39, 9), "needs 40x10, is 39x9")] {
        let text = Driven::new(snapshot("training", Mode::Live, 20_050), size).text();
        assert!(text.contains(part), "{size:?}:\n{text}");
    }
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
