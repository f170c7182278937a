//! The screen of `roctop` alone: the GPUs of this machine, the sessions that run, and what can be started from here.
//!
//! State, keys and clicks are here and pure; `draw` draws them. The loop that reads sensors and sessions is elsewhere.

mod draw;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use ratatui::layout::Rect;

use super::Marks;
use super::key::{Key, Mouse, MouseKind};
use super::prompt::{self, Prompt, Typed};
use roctop_model::gauges::Gauges;
use roctop_model::query::{self, Filter};
use roctop_trace::gauge::Device;
use roctop_trace::item::Nanos;

pub use self::draw::view;

/// A session that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRow {
    /// Its name.
    pub name: String,
    /// Command line of its first program.
    pub command: String,
    /// Process ids of its programs.
    pub pids: Vec<u32>,
    /// When it began, CLOCK_BOOTTIME; none: not known.
    pub began: Option<Nanos>,
    /// Where it is recorded.
    pub recording: Option<String>,
}

/// What the user chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAction {
    /// Nothing yet.
    None,
    /// Redraw everything.
    Redraw,
    /// Stop this process until the shell continues it.
    Suspend,
    /// Leave.
    Quit,
    /// Watch the session of this name.
    Attach(String),
    /// Run a program: its command line.
    Run(String),
    /// Look at the recordings in this line.
    Open(String),
    /// Show the demo.
    Demo,
}

/// What a line that is typed becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A program to run.
    Program,
    /// Recordings to open.
    Recordings,
}

impl Wanted {
    /// What stands before the line.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Program => "run: ",
            Self::Recordings => "open: ",
        }
    }

    /// What the line is to have.
    pub(crate) const fn help(self) -> &'static str {
        match self {
            Self::Program => "program and arguments, as in a shell: ./train --epochs 3",
            Self::Recordings => "directories of recordings: run.0 run.1",
        }
    }
}

/// A line that is typed.
#[derive(Clone, Debug)]
struct Line {
    wanted: Wanted,
    prompt: Prompt,
}

/// What a click means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Click {
    Key(Key),
    Session(usize),
}

/// Keys of this screen, the hint of each, and what it does.
pub(crate) const KEYS: [(&[Key], &str, &str); 9] = [
    (&[Key::Enter], "attach", "watch the selected session"),
    (&[Key::Char('n')], "new program", "run a program and watch it"),
    (
        &[Key::Char('d')],
        "demo",
        "watch a built-in training loop; no GPU is needed",
    ),
    (&[Key::Char('o')], "open", "look at recordings"),
    (
        &[Key::Char('j'), Key::Char('k'), Key::Down, Key::Up],
        "",
        "next and previous session",
    ),
    (
        &[Key::Char('h'), Key::Char('l'), Key::Left, Key::Right],
        "",
        "previous and next GPU",
    ),
    (&[Key::Ctrl('z')], "", "suspend roctop"),
    (&[Key::Char('?')], "help", "show the keys"),
    (&[Key::Char('q'), Key::Ctrl('c')], "quit", "leave roctop"),
];

/// State of the screen.
#[derive(Debug, Default)]
pub struct Start {
    /// Columns and rows.
    pub size: (u16, u16),
    /// What charts are drawn with.
    pub marks: Marks,
    gauges: Gauges,
    /// The driver's files were read.
    is_read: bool,
    sessions: Vec<SessionRow>,
    /// Name of the selected session.
    selected: Option<String>,
    /// The first GPU that is shown.
    first_gpu: usize,
    /// The first one when the last one is shown, as it was drawn last.
    last_first_gpu: Cell<usize>,
    now: Nanos,
    line: Option<Line>,
    history: Vec<String>,
    is_help: bool,
    /// Several keys came at once.
    is_burst: bool,
    said: Option<String>,
    clicks: RefCell<Vec<(Rect, Click)>>,
}

impl Start {
    /// With charts drawn by `marks`.
    pub fn new(marks: Marks) -> Self {
        Self {
            marks,
            ..Self::default()
        }
    }

    /// What the driver says of the GPUs now.
    pub fn devices(&mut self, devices: Vec<Device>) {
        self.is_read = true;
        for device in devices {
            self.gauges.device(&Arc::new(device));
        }
    }

    /// The sessions that run now.
    pub fn sessions(&mut self, now: Nanos, sessions: Vec<SessionRow>) {
        let before = self.selected_at();
        (self.now, self.sessions) = (now, sessions);
        if self.selected_at().is_none() {
            // The one that took its place, or the last.
            let at = before.unwrap_or(0).min(self.sessions.len().saturating_sub(1));
            self.selected = self.sessions.get(at).map(|row| row.name.clone());
        }
    }

    /// Says a word to the user, until the next key.
    pub fn say(&mut self, text: &str) {
        self.said = Some(text.to_owned());
    }

    /// What was chosen cannot be done; a line that was typed comes back with the reason.
    pub fn refuse(&mut self, action: &StartAction, why: &str) {
        let (wanted, text) = match action {
            StartAction::Run(text) => (Wanted::Program, text),
            StartAction::Open(text) => (Wanted::Recordings, text),
            _ => return self.say(why),
        };
        let mut prompt = Prompt::command(text, Filter::default());
        prompt.error = Some(query::Error {
            column: 0,
            message: why.to_owned(),
        });
        self.line = Some(Line { wanted, prompt });
    }

    /// The terminal was read; n keys and clicks came at once.
    pub const fn read(&mut self, together: usize) {
        self.is_burst = together > 1;
    }

    /// A key was typed.
    pub fn key(&mut self, key: Key) -> StartAction {
        let chosen = self.on_key(key);
        match chosen {
            StartAction::None | StartAction::Redraw | StartAction::Suspend | StartAction::Quit => chosen,
            _ if self.is_burst => {
                self.refuse(
                    &chosen,
                    "keys came all at once, as in a paste: press the last one again",
                );
                StartAction::None
            }
            _ => chosen,
        }
    }

    /// A text was pasted, and the terminal marked it.
    pub fn paste(&mut self, text: &str) {
        match &mut self.line {
            Some(line) => line.prompt.paste(&prompt::one_line(text), &[], &mut Filter::default()),
            None => self.say("a paste is text for a line: press n or o first"),
        }
    }

    fn on_key(&mut self, key: Key) -> StartAction {
        if !self.is_burst {
            self.said = None;
        }
        if let Some(line) = self.line.take() {
            return self.type_into(line, key);
        }
        if std::mem::take(&mut self.is_help) && key != Key::Ctrl('c') {
            return StartAction::None;
        }
        match key {
            Key::Enter => match self.selected.clone() {
                Some(name) => return StartAction::Attach(name),
                None => self.say("no session is running: n runs a program"),
            },
            Key::Char('n') => self.ask(Wanted::Program),
            Key::Char('o') => self.ask(Wanted::Recordings),
            Key::Char('d') => return StartAction::Demo,
            Key::Char('j') | Key::Down => self.select(1),
            Key::Char('k') | Key::Up => self.select(-1),
            Key::Char('l') | Key::Right => self.first_gpu = (self.first_gpu + 1).min(self.last_first_gpu.get()),
            Key::Char('h') | Key::Left => self.first_gpu = self.first_gpu.saturating_sub(1),
            Key::Char('?') | Key::F(1) => self.is_help = true,
            Key::Ctrl('l') => return StartAction::Redraw,
            Key::Ctrl('z') => return StartAction::Suspend,
            Key::Char('q') | Key::Ctrl('c' | 'd') => return StartAction::Quit,
            _ => {}
        }
        StartAction::None
    }

    /// The mouse did something: a click does what a key does, one on the selected session watches it.
    pub fn mouse(&mut self, mouse: Mouse) -> StartAction {
        let (x, y) = (mouse.x, mouse.y);
        let hit = {
            let clicks = self.clicks.borrow();
            let inside = |area: &Rect| x >= area.x && x < area.right() && y >= area.y && y < area.bottom();
            clicks.iter().rev().find(|click| inside(&click.0)).map(|click| click.1)
        };
        match (mouse.kind, hit) {
            (MouseKind::WheelUp, _) => self.key(Key::Up),
            (MouseKind::WheelDown, _) => self.key(Key::Down),
            (MouseKind::Press, Some(Click::Key(key))) => self.key(key),
            (MouseKind::Press, Some(Click::Session(at))) => {
                let name = self.sessions.get(at).map(|row| row.name.clone());
                if name.is_some() && name == self.selected {
                    return self.key(Key::Enter);
                }
                self.selected = name;
                StartAction::None
            }
            _ => StartAction::None,
        }
    }

    fn ask(&mut self, wanted: Wanted) {
        let prompt = Prompt::command("", Filter::default());
        self.line = Some(Line { wanted, prompt });
    }

    fn type_into(&mut self, mut line: Line, key: Key) -> StartAction {
        match line.prompt.key(key, &self.history, &[], &mut Filter::default()) {
            Typed::On => {
                // There is no list below the line to go down into.
                line.prompt.chosen = 0;
                self.line = Some(line);
            }
            Typed::GivenUp => {}
            Typed::Accepted => {
                let text = line.prompt.text().trim().to_owned();
                if text.is_empty() {
                    return StartAction::None;
                }
                self.history.retain(|known| *known != text);
                self.history.push(text.clone());
                return match line.wanted {
                    Wanted::Program => StartAction::Run(text),
                    Wanted::Recordings => StartAction::Open(text),
                };
            }
        }
        StartAction::None
    }

    /// Which session is selected.
    fn selected_at(&self) -> Option<usize> {
        let name = self.selected.as_ref()?;
        self.sessions.iter().position(|row| row.name == *name)
    }

    fn select(&mut self, by: isize) {
        let Some(last) = self.sessions.len().checked_sub(1) else {
            return;
        };
        let at = self.selected_at().unwrap_or(0).saturating_add_signed(by).min(last);
        self.selected = self.sessions.get(at).map(|row| row.name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionRow {
        SessionRow {
            name: name.into(),
            ..SessionRow::default()
        }
    }

    fn typed(start: &mut Start, text: &str) {
        for c in text.chars() {
            assert_eq!(start.key(Key::Char(c)), StartAction::None);
        }
    }

    #[test]
    fn the_selected_session_stays_while_others_come_and_go() {
        let mut start = Start::new(Marks::Blocks);
        assert_eq!(start.key(Key::Enter), StartAction::None);
        assert!(start.said.is_some());
        start.sessions(1, vec![session("10"), session("20")]);
        start.key(Key::Char('j'));
        start.sessions(2, vec![session("05"), session("10"), session("20")]);
        assert_eq!(start.key(Key::Enter), StartAction::Attach("20".into()));
        start.sessions(3, vec![session("05"), session("10")]);
        assert_eq!(start.key(Key::Enter), StartAction::Attach("10".into()));
        start.sessions(4, Vec::new());
        assert_eq!(start.key(Key::Enter), StartAction::None);
    }

    #[test]
    fn a_line_that_is_refused_comes_back_with_the_reason() {
        let mut start = Start::new(Marks::Blocks);
        typed(&mut start, "n./trian -n 4");
        let action = start.key(Key::Enter);
        assert_eq!(action, StartAction::Run("./trian -n 4".into()));
        start.refuse(&action, "no such file");
        start.key(Key::Backspace);
        typed(&mut start, "5");
        assert_eq!(start.key(Key::Enter), StartAction::Run("./trian -n 5".into()));
        // Lines typed before are found above.
        typed(&mut start, "o");
        start.key(Key::Up);
        assert_eq!(start.key(Key::Enter), StartAction::Open("./trian -n 5".into()));
        typed(&mut start, "n");
        start.key(Key::Esc);
        assert_eq!(start.key(Key::Char('q')), StartAction::Quit);
    }

    #[test]
    fn keys_that_come_at_once_and_pastes_start_nothing() {
        let mut start = Start::new(Marks::Blocks);
        start.sessions(1, vec![session("10")]);
        start.read(2);
        for key in [Key::Char('d'), Key::Enter] {
            assert_eq!(start.key(key), StartAction::None);
            assert!(start.said.is_some());
        }
        typed(&mut start, "nrm -r x");
        assert_eq!(start.key(Key::Enter), StartAction::None);
        start.read(1);
        assert_eq!(start.key(Key::Enter), StartAction::Run("rm -r x".into()));
        start.paste("d\n");
        assert!(start.said.is_some());
        typed(&mut start, "n./a ");
        start.paste("-n\t4\r\n");
        assert_eq!(start.key(Key::Enter), StartAction::Run("./a -n 4".into()));
    }

    #[test]
    fn the_demo_is_one_key_and_help_is_left_by_any() {
        let mut start = Start::new(Marks::Blocks);
        start.key(Key::Char('?'));
        assert_eq!(start.key(Key::Char('q')), StartAction::None);
        assert_eq!(start.key(Key::Char('d')), StartAction::Demo);
    }
}
