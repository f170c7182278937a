//! The loop: keys in, messages to [`update`](super::update()), effects out, frames drawn. The only part of the screen that acts.

mod driver;
mod since_mark;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use self::driver::Driver;
use super::keymap::Keys;
use super::screen::{Options, Screen};
use super::source_text::{SourceLine, SourcePlace};
use super::theme::{Depth, Theme};
use super::time::Motion;
use super::{ColumnId, DEFAULT_GRACE, Effect, Marks, Pane, Prefs, Tab, Ui};
use roctop_model::ask::Id;
use roctop_model::query::Filter;
use roctop_model::{Fresh, Mode, Snapshot, Store};

/// What a screen shows: snapshots, the newest when it is asked.
pub trait Shown {
    /// What is known now.
    fn snapshot(&self, fresh: Fresh) -> Arc<Snapshot>;

    /// Whether more is known than the last snapshot has.
    fn is_new(&self) -> bool;
}

impl Shown for Mutex<Store> {
    fn snapshot(&self, fresh: Fresh) -> Arc<Snapshot> {
        self.lock().unwrap_or_else(PoisonError::into_inner).snapshot(fresh)
    }

    fn is_new(&self) -> bool {
        self.lock().unwrap_or_else(PoisonError::into_inner).is_new()
    }
}

/// Another screen, shown in place of this one until it ends; what is said then, if anything.
pub struct Visit(pub Box<dyn FnOnce() -> Option<String> + Send>);

impl std::fmt::Debug for Visit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Visit")
    }
}

/// What is to become of the loop after an effect.
#[derive(Debug)]
pub enum LoopControl {
    /// It goes on.
    Continue,
    /// It goes on with a message to the user.
    Say(String),
    /// It goes on in another theme.
    Theme(Box<Theme>),
    /// It goes on with these numbers to compare with.
    Baseline(Arc<Snapshot>),
    /// It goes on; a recording can be made there.
    NameRecording(String),
    /// It goes on; a recording is written there, or no longer, with a message to the user.
    Recording(Option<String>, String),
    /// It goes on; who ended the program is known.
    ExitCause(String),
    /// It goes on after another screen has ended.
    Visit(Visit),
    /// It goes on with these lines of source files.
    Source(Vec<(SourcePlace, SourceLine)>),
    /// It goes on; these counters there are.
    Counters(Arc<[String]>),
    /// It ends, and the program is run again with these variables.
    Rerun(Vec<(OsString, OsString)>),
    /// It ends.
    Stop,
}

/// What is left of a screen when it has ended.
#[derive(Debug)]
pub struct PreviousRun {
    /// How the user had it.
    pub ui: Ui,
    /// What was known last.
    pub last: Arc<Snapshot>,
}

/// What the user has set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Filter to start with.
    pub filter: Filter,
    /// Keys in force.
    pub keys: Keys,
    /// Filters by name.
    pub presets: Vec<(String, String)>,
    /// Lists with columns of the user's choice.
    pub columns: Vec<(Pane, Vec<ColumnId>)>,
    /// The share of a core, in per cent, above which frames are drawn less often.
    pub throttle: f64,
    /// View to begin with.
    pub view: Tab,
    /// One list of each view, however large the terminal is.
    pub is_compact: bool,
    /// How the timeline moves; none: as the line allows.
    pub motion: Option<Motion>,
    /// What charts are drawn with.
    pub marks: Marks,
    /// Frames a second at most; none: as many as are usual.
    pub rate: Option<u32>,
    /// Bytes a second to the terminal at most; none: as many as come.
    pub most_bytes: Option<u64>,
    /// How long a program that was asked to stop may take, ns.
    pub grace: u64,
    /// What of the program is not here.
    pub detached: Detached,
    /// What to go to, as soon as it is known: a row of an answer of `roctop ask`.
    pub at: Option<Id>,
}

/// What of the program is not here: nothing is, for one that roctop started as it usually does.
#[derive(Clone, Debug, Default)]
pub struct Detached {
    /// Another roctop started it and has its terminal.
    pub attached: bool,
    /// It was started without a collector.
    pub is_uncollected: bool,
    /// It writes into a pipe: there is no terminal to type to.
    pub is_piped: bool,
    /// Where its output goes when not here.
    pub output: Option<String>,
    /// It is a rank of a job, from whose screen this one was opened: `rank 5 of job 4711`. Esc goes back.
    pub back: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            keys: Keys::default(),
            presets: Vec::new(),
            columns: Vec::new(),
            throttle: 50.0,
            view: Tab::default(),
            is_compact: false,
            motion: None,
            marks: Marks::default(),
            rate: None,
            most_bytes: None,
            grace: DEFAULT_GRACE,
            detached: Detached::default(),
            at: None,
        }
    }
}

impl Settings {
    /// The state to begin with.
    fn begin(self, mode: Mode) -> Ui {
        let mut ui = Ui {
            prefs: Prefs {
                keys: self.keys,
                presets: self.presets,
                is_compact: self.is_compact,
                marks: self.marks,
                rate: self.rate,
                grace: self.grace,
                detached: self.detached,
                ..Prefs::default()
            },
            tab: self.view,
            filter: self.filter,
            at: self.at,
            ..Ui::new(mode)
        };
        ui.time.motion = self.motion.unwrap_or_else(|| Motion::of_line(self.most_bytes));
        for (pane, columns) in self.columns {
            ui.tables[pane as usize].columns = Some(columns);
        }
        ui
    }
}

/// The theme of a name that fits the environment's terminal.
pub fn theme(name: &str) -> Option<Theme> {
    let depth = Depth::detect(|variable| std::env::var(variable).ok());
    let name = if depth == Depth::None { "mono" } else { name };
    Theme::named(name, depth)
}

/// Whether the environment's terminal shows ASCII only.
pub fn is_ascii() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    let is_other = set.is_some_and(|locale| !locale.to_lowercase().replace('-', "").contains("utf8"));
    // Consoles of the kernel's and old terminals have few of the glyphs, whatever the locale says.
    let term = std::env::var("TERM").unwrap_or_default();
    is_other || term == "linux" || term.starts_with("vt")
}

/// Runs the screen on a terminal until an effect stops it or the terminal is gone.
///
/// The store is locked for a snapshot and for nothing else. `effects` acts outside; [`Effect::Idle`] comes in each
/// turn, so that signals and the program's end can be acted upon: ten times a second, and while nothing changes once a
/// second and when the screen is woken ([`crate::waker::wake`]).
pub fn run(tty: File, store: &Arc<Mutex<Store>>, effects: &mut dyn FnMut(Effect) -> LoopControl) -> io::Result<()> {
    let theme = theme("dark").ok_or_else(|| io::Error::other("no theme"))?;
    let options = Options {
        ascii: is_ascii(),
        ..Options::default()
    };
    run_with(
        Screen::open(tty, theme, options)?,
        Settings::default(),
        None,
        &**store,
        effects,
    )?;
    Ok(())
}

/// Runs the loop on a screen. With what is left of a run before, the screen goes on as the user had it, and that run is what
/// this one is compared with.
pub fn run_with(
    screen: Screen,
    settings: Settings,
    before: Option<PreviousRun>,
    source: &dyn Shown,
    effects: &mut dyn FnMut(Effect) -> LoopControl,
) -> io::Result<PreviousRun> {
    Driver::new(screen, settings, before, source, effects).run()
}
