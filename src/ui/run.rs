//! The loop: keys in, messages to [`update`], effects out, frames drawn. The only part of the screen that acts.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::guard::Guard;
use super::key::Input;
use super::keymap::Keys;
use super::pace::Pace;
use super::pane::Pane;
use super::picture;
use super::screen::{Options, Screen};
use super::theme::{Depth, Theme};
use super::{Effect, GRACE, Msg, Own, Tab, Ui, update, view};
use crate::filter::Filter;
use crate::model::{Fresh, Mode, Snapshot, Store, Values};

/// How often the timeline's head moves.
const HEAD: Duration = Duration::from_millis(100);
/// How often our own share is measured.
const MEASURE: Duration = Duration::from_secs(1);
/// How often the clock moves when nothing else does.
const CALM: Duration = Duration::from_secs(1);
/// How often values change.
const VALUES: Duration = Duration::from_millis(500);

/// What is to become of the loop after an effect.
#[derive(Debug)]
pub enum Flow {
    /// It goes on.
    Go,
    /// It goes on, and the user is told something.
    Say(String),
    /// It goes on in another theme.
    Theme(Box<Theme>),
    /// It goes on with these numbers to compare with.
    Baseline(Arc<Snapshot>),
    /// It goes on; a recording is made there now, or no more, and the user is told something.
    Recording(Option<String>, String),
    /// It goes on; who ended the program is known.
    Fate(String),
    /// It goes on; these counters there are.
    Counters(Arc<[String]>),
    /// It ends, and the program is run again with these variables.
    Again(Vec<(OsString, OsString)>),
    /// It ends.
    Stop,
}

/// What is left of a screen when it has ended.
#[derive(Debug)]
pub struct Left {
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
    /// Lists with columns of the user's choice, by their places.
    pub columns: Vec<(Pane, Vec<usize>)>,
    /// The share of a core, in per cent, above which frames are drawn less often.
    pub throttle: f64,
    /// View to begin with.
    pub view: Tab,
    /// Frames a second at most; none: as many as are usual.
    pub rate: Option<u32>,
    /// Bytes a second to the terminal at most; none: as many as come.
    pub most_bytes: Option<u64>,
    /// How long a program that was asked to stop may take, ns.
    pub grace: u64,
    /// Another roctop started the program and has its terminal.
    pub attached: bool,
    /// The program was started without a collector.
    pub is_uncollected: bool,
    /// The program writes into a pipe: there is no terminal to type to.
    pub is_piped: bool,
    /// Where the program's output goes when not here.
    pub output: Option<String>,
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
            rate: None,
            most_bytes: None,
            grace: GRACE,
            attached: false,
            is_uncollected: false,
            is_piped: false,
            output: None,
        }
    }
}

impl Settings {
    /// The state to begin with.
    fn begin(self, mode: Mode) -> Ui {
        let mut ui = Ui::new(mode);
        (ui.filter, ui.keys, ui.presets) = (self.filter, self.keys, self.presets);
        (ui.tab, ui.rate) = (self.view, self.rate);
        (ui.grace, ui.attached) = (self.grace, self.attached);
        (ui.is_uncollected, ui.is_piped, ui.output) = (self.is_uncollected, self.is_piped, self.output);
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
/// The store is locked for a snapshot and for nothing else. `effects` is told what to do; [`Effect::Idle`] comes in each
/// turn, at least ten times a second, so that signals and the program's end can be acted upon.
pub fn run(tty: File, store: &Arc<Mutex<Store>>, effects: &mut dyn FnMut(Effect) -> Flow) -> io::Result<()> {
    let theme = theme("dark").ok_or_else(|| io::Error::other("no theme"))?;
    let options = Options {
        ascii: is_ascii(),
        ..Options::default()
    };
    run_with(
        Screen::open(tty, theme, options)?,
        Settings::default(),
        None,
        store,
        effects,
    )?;
    Ok(())
}

/// Runs the loop on a screen. With what is left of a run before, the screen goes on as the user had it, and that run is what
/// this one is compared with.
pub fn run_with(
    mut screen: Screen,
    settings: Settings,
    before: Option<Left>,
    store: &Arc<Mutex<Store>>,
    effects: &mut dyn FnMut(Effect) -> Flow,
) -> io::Result<Left> {
    let mut guard = Guard::new(settings.throttle);
    let mut pace = Pace::new(settings.most_bytes);
    let mut latest = snapshot(store, Fresh::All);
    let mut from = Counting::default();
    let mut ui = match before {
        Some(before) => before.ui.again(before.last),
        None => settings.begin(latest.mode),
    };
    let began = Instant::now();
    let mut measured = Duration::ZERO;
    let (mut headed, mut valued) = (Instant::now(), Instant::now());
    let mut is_dirty = true;
    let mut is_answer = false;
    loop {
        let size = screen.size();
        if ui.size != size {
            (is_dirty, is_answer) = (true, true);
            update(&mut ui, &latest, Msg::Resize(size.0, size.1));
        }
        if began.elapsed() >= measured + MEASURE {
            measured = began.elapsed();
            let wire = pace.rate(measured);
            let own = guard.measure(processor(), measured).or(ui.own);
            ui.own = own.map(|own| Own { wire, ..own });
        }
        let slowed = ui.own.map_or(1, |own| own.slowed).max(pace.slowed());
        let head = ui
            .rate
            .map_or(HEAD, |rate| HEAD.max(Duration::from_secs(1) / rate.max(1)));
        let is_due = headed.elapsed() >= head * slowed;
        // Seconds that are counted down are not skipped, and a signal is sent when it is due.
        let counts_down = ui.escalation.is_some();
        let is_left = is_due && headed.elapsed() < CALM && !counts_down && is_calm(&latest, store);
        if is_due && !is_left {
            let fresh = if valued.elapsed() >= VALUES * slowed {
                Fresh::All
            } else {
                Fresh::Head
            };
            if fresh == Fresh::All {
                valued = Instant::now();
            }
            headed = Instant::now();
            latest = from.counted(snapshot(store, fresh));
            is_dirty = true;
            ui.lag = pace
                .lag(began.elapsed(), behind(&latest))
                .map(|lag| lag.as_nanos() as u64);
            let effect = update(&mut ui, &latest, Msg::Tick);
            if effect != Effect::None && !perform(effect, &mut screen, &mut ui, &latest, effects)? {
                return Ok(Left { ui, last: latest });
            }
        }
        screen.set_raw(ui.typing)?;
        if is_dirty && pace.may_send(began.elapsed(), screen.has_room(), is_answer) {
            let (from, written) = (began.elapsed(), screen.written);
            screen.draw(ui.size, |theme, buffer| view(&ui, &latest, theme, buffer))?;
            pace.sent(from, began.elapsed(), (screen.written - written) as usize);
            (is_dirty, is_answer) = (false, false);
        }
        if !perform(Effect::Idle, &mut screen, &mut ui, &latest, effects)? {
            return Ok(Left { ui, last: latest });
        }
        is_dirty |= ui.toast.as_ref().is_some_and(|toast| toast.1 == latest.now);
        // Signals and the program's end are looked for as often as ever.
        let rest = (head * slowed).saturating_sub(headed.elapsed());
        let wait = if is_left { HEAD } else { rest.min(HEAD) };
        let wait = wait.as_millis().max(1) as u64;
        let mut input = screen.input(wait);
        // All that was typed since is taken before the next frame.
        for _ in 0..256 {
            let message = match input {
                Ok(Some(Input::Key(key))) => Msg::Key(key),
                Ok(Some(Input::Mouse(mouse))) => Msg::Mouse(mouse),
                Ok(Some(Input::Bytes(bytes))) => Msg::Typed(bytes),
                Ok(Some(Input::Background { light })) => {
                    if light && !perform(Effect::Theme("light".into()), &mut screen, &mut ui, &latest, effects)? {
                        return Ok(Left { ui, last: latest });
                    }
                    (is_dirty, input) = (true, screen.input(0));
                    continue;
                }
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Left { ui, last: latest }),
                Err(error) => return Err(error),
            };
            (is_dirty, is_answer) = (true, true);
            let effect = update(&mut ui, &latest, message);
            if let Effect::Reset(now) = effect {
                from.reset(now.then(|| snapshot(store, Fresh::All)));
                latest = from.counted(snapshot(store, Fresh::All));
            }
            if !perform(effect, &mut screen, &mut ui, &latest, effects)? {
                return Ok(Left { ui, last: latest });
            }
            screen.set_raw(ui.typing)?;
            input = screen.input(0);
        }
    }
}

/// How old the newest of a live program's numbers is: the reader may be behind.
fn behind(latest: &Snapshot) -> Duration {
    if !latest.is_running() || latest.now == 0 {
        return Duration::ZERO;
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now = Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32);
    now.saturating_sub(Duration::from_nanos(latest.now))
}

/// Whether frames would differ in their clock alone.
fn is_calm(latest: &Snapshot, store: &Mutex<Store>) -> bool {
    latest.is_calm() && !store.lock().unwrap_or_else(PoisonError::into_inner).is_new()
}

/// From when on numbers count.
#[derive(Default)]
struct Counting {
    earlier: Option<Arc<Values>>,
    /// The values that were last looked at, and what of them came since.
    last: Option<(Arc<Values>, Arc<Values>)>,
}

impl Counting {
    fn reset(&mut self, snapshot: Option<Arc<Snapshot>>) {
        self.earlier = snapshot.map(|snapshot| snapshot.values.clone());
        self.last = None;
    }

    /// The snapshot as the user wants it counted. Values change less often than snapshots are made.
    fn counted(&mut self, snapshot: Arc<Snapshot>) -> Arc<Snapshot> {
        let Some(earlier) = &self.earlier else { return snapshot };
        let known = self.last.as_ref().filter(|last| Arc::ptr_eq(&last.0, &snapshot.values));
        let values = match known {
            Some(last) => last.1.clone(),
            None => Arc::new(snapshot.since(earlier)),
        };
        self.last = Some((snapshot.values.clone(), values.clone()));
        Arc::new(Snapshot {
            values,
            ..(*snapshot).clone()
        })
    }
}

/// Processor time of all our threads so far.
fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn snapshot(store: &Mutex<Store>, fresh: Fresh) -> Arc<Snapshot> {
    store.lock().unwrap_or_else(PoisonError::into_inner).snapshot(fresh)
}

/// Does what is the screen's own and hands on the rest; false ends the loop.
fn perform(
    effect: Effect,
    screen: &mut Screen,
    ui: &mut Ui,
    latest: &Arc<Snapshot>,
    effects: &mut dyn FnMut(Effect) -> Flow,
) -> io::Result<bool> {
    let flow = match effect {
        Effect::None => Flow::Go,
        Effect::Redraw => {
            screen.redraw();
            Flow::Go
        }
        Effect::Ascii(ascii) => {
            screen.set_ascii(ascii);
            Flow::Go
        }
        Effect::Picture(name) => {
            let shown = screen.shown();
            let is_light = screen.theme().is_light;
            let sheet = if is_light { picture::LIGHT } else { picture::DARK };
            let files = [
                ("svg", picture::svg(shown, sheet).into_bytes()),
                ("ans", picture::ansi(shown)),
                ("txt", picture::text(shown).into_bytes()),
            ];
            let mut flow = Flow::Go;
            for (ending, bytes) in files {
                let name = format!("{name}.{ending}");
                match effects(Effect::Export { name, bytes }) {
                    Flow::Say(said) if said.starts_with("wrote ") => {}
                    other => flow = other,
                }
            }
            if matches!(flow, Flow::Go) {
                flow = Flow::Say(format!("wrote {name}.svg, .ans and .txt"));
            }
            flow
        }
        Effect::Clipboard(text) => {
            screen.copy(&text)?;
            Flow::Go
        }
        Effect::Suspend => {
            screen.leave();
            let flow = effects(Effect::Suspend);
            screen.enter()?;
            flow
        }
        other => effects(other),
    };
    match flow {
        Flow::Go => Ok(true),
        Flow::Stop | Flow::Again(_) => Ok(false),
        Flow::Counters(names) => {
            update(ui, latest, Msg::Counters(names));
            Ok(true)
        }
        Flow::Say(text) => {
            update(ui, latest, Msg::Say(text));
            Ok(true)
        }
        Flow::Fate(text) => {
            update(ui, latest, Msg::Fate(text));
            Ok(true)
        }
        Flow::Theme(theme) => {
            screen.set_theme(*theme);
            Ok(true)
        }
        Flow::Baseline(snapshot) => {
            update(ui, latest, Msg::Baseline(snapshot));
            Ok(true)
        }
        Flow::Recording(place, text) => {
            update(ui, latest, Msg::Recording(place, text));
            Ok(true)
        }
    }
}
