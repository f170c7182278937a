//! A screen that is driven by keys and clicks, on a snapshot of a scenario.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use roctop::model::{Fresh, Mode, Options, Snapshot};
use roctop::ui::key::{Key, Mouse, MouseKind};
use roctop::ui::source_text::{SourceLine, SourcePlace};
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Effect, Msg, Ui, update, view};
use roctop_scenario::Scenario;

pub(crate) fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

pub(crate) fn snapshot(scenario: &str, mode: Mode, milliseconds: u64) -> Arc<Snapshot> {
    let path = tests().join("scenarios").join(format!("{scenario}.toml"));
    let text = std::fs::read_to_string(path).expect("the scenario is there");
    let scenario = Scenario::parse(&text).expect("the scenario is one");
    let options = Options {
        mode,
        title: scenario.title.clone(),
        ..Options::default()
    };
    let mut store = scenario.store(options, milliseconds * 1_000_000);
    // A live screen took others before: copies by kernels have waited for their calls by now.
    for _ in 0..2 {
        store.snapshot(Fresh::All);
    }
    store.snapshot(Fresh::All)
}

pub(crate) struct Driven {
    pub(crate) ui: Ui,
    pub(crate) snap: Arc<Snapshot>,
    pub(crate) theme: Theme,
    /// The state's clock, ns: it advances by a second after each key and click.
    clock: u64,
}

impl Driven {
    pub(crate) fn new(snap: Arc<Snapshot>, size: (u16, u16)) -> Self {
        let mut ui = Ui::new(snap.mode);
        update(&mut ui, &snap, Msg::Resize(size.0, size.1));
        Self {
            ui,
            snap,
            theme: Theme::named("dark", Depth::C256).expect("a theme of this name is there"),
            clock: 0,
        }
    }

    pub(crate) fn key(&mut self, key: Key) -> Effect {
        self.reads(Msg::Key(key))
    }

    /// A message for a key that was read alone.
    fn reads(&mut self, message: Msg) -> Effect {
        self.clock += 1_000_000_000;
        let (at, together) = (self.clock, 1);
        self.message(Msg::Read { at, together });
        self.message(message)
    }

    /// A key, and enter after it.
    pub(crate) fn acts(&mut self, key: char) -> Effect {
        assert_eq!(self.key(Key::Char(key)), Effect::None);
        self.key(Key::Enter)
    }

    pub(crate) fn message(&mut self, message: Msg) -> Effect {
        update(&mut self.ui, &self.snap, message)
    }

    /// Gives the screen the lines of source files that it wants.
    pub(crate) fn with_source(&mut self, source: impl Fn(&SourcePlace) -> Option<SourceLine>) {
        let _ = self.buffer();
        let wanted = self.ui.source.take_wanted().into_iter();
        let lines = wanted.filter_map(|place| source(&place).map(|line| (place, line)));
        self.message(Msg::Source(lines.collect()));
    }

    pub(crate) fn typed(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.key(Key::Char(c));
        }
        self
    }

    fn mouse(&mut self, kind: MouseKind, (x, y): (u16, u16)) -> Effect {
        self.reads(Msg::Mouse(Mouse { kind, x, y }))
    }

    /// Presses and lets go where a text stands on the screen, in the first line below `row` that has it.
    pub(crate) fn click(&mut self, text: &str, row: usize) -> Effect {
        let screen = self.text();
        let mut lines = screen.lines().enumerate().skip(row);
        let found = lines.find_map(|(y, line)| Some((y, line[..line.find(text)?].chars().count())));
        let (y, x) = found.unwrap_or_else(|| panic!("no {text} on\n{screen}"));
        let effect = self.mouse(MouseKind::Press, (x as u16 + 1, y as u16));
        self.mouse(MouseKind::Release, (x as u16 + 1, y as u16));
        effect
    }

    /// Turns the wheel up.
    pub(crate) fn wheel(&mut self, at: (u16, u16)) {
        let _ = self.buffer();
        self.mouse(MouseKind::WheelUp, at);
    }

    /// Presses at one place and lets go at another.
    pub(crate) fn drag(&mut self, from: (u16, u16), to: (u16, u16)) {
        let _ = self.buffer();
        self.mouse(MouseKind::Press, from);
        self.mouse(MouseKind::Release, to);
    }

    pub(crate) fn buffer(&self) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.ui.size.0, self.ui.size.1));
        view(&self.ui, &self.snap, &self.theme, &mut buffer);
        buffer
    }

    pub(crate) fn text(&self) -> String {
        let buffer = self.buffer();
        let width = buffer.area.width as usize;
        let rows = buffer.content().chunks(width).map(|row| {
            let line: String = row.iter().map(Cell::symbol).collect();
            line.trim_end().to_string() + "\n"
        });
        rows.collect()
    }
}
