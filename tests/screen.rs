//! Every view at three sizes on two scenarios, compared with the texts in `golden/screens/`.
//!
//! `ROCTOP_GOLDEN=write cargo test --test screen` writes them anew; read the difference before committing it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use roctop::model::{Fresh, Mode, Options, Snapshot};
use roctop::scenario::Scenario;
use roctop::ui::key::Key;
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Effect, Msg, Ui, update, view};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 50)];

const VIEWS: [(char, &str); 14] = [
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
];

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn snapshot(scenario: &str, mode: Mode, milliseconds: u64) -> Arc<Snapshot> {
    let text = std::fs::read_to_string(tests().join("scenarios").join(format!("{scenario}.toml")))
        .expect("the test data is there");
    let scenario = Scenario::parse(&text).expect("the test data is there");
    let options = Options {
        mode,
        title: scenario.title.clone(),
        ..Options::default()
    };
    scenario.store(options, milliseconds * 1_000_000).snapshot(Fresh::All)
}

/// A screen that is driven by keys.
struct Driven {
    ui: Ui,
    snap: Arc<Snapshot>,
    theme: Theme,
}

impl Driven {
    fn new(snap: Arc<Snapshot>, size: (u16, u16)) -> Self {
        let mut ui = Ui::new(snap.mode);
        update(&mut ui, &snap, Msg::Resize(size.0, size.1));
        Self {
            ui,
            snap,
            theme: Theme::named("dark", Depth::C256).expect("the test data is there"),
        }
    }

    fn key(&mut self, key: Key) -> Effect {
        update(&mut self.ui, &self.snap, Msg::Key(key))
    }

    fn typed(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.key(Key::Char(c));
        }
        self
    }

    fn buffer(&self) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.ui.size.0, self.ui.size.1));
        view(&self.ui, &self.snap, &self.theme, &mut buffer);
        buffer
    }

    fn text(&self) -> String {
        let buffer = self.buffer();
        let width = buffer.area.width as usize;
        let rows = buffer.content().chunks(width).map(|row| {
            let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
            line.trim_end().to_string() + "\n"
        });
        rows.collect()
    }
}

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
    assert_ne!(driven.ui.slice, kernel);
    driven.key(Key::Enter);
    assert_eq!(driven.ui.slice, kernel);
}
