//! Menus of what acts on the program. A letter or an arrow chooses, enter does it; the first choice does nothing. Pure.

use std::sync::Arc;

use super::actions::act;
use super::key::Key;
use super::keymap::Action;
use super::{Effect, Popup, Ui, escalation};
use roctop_model::Snapshot;
use roctop_trace::item::Nanos;

/// For this long after a menu opens, ns, keys may have been typed before it was seen: only esc and ctrl-c do something.
const IGNORED: Nanos = 300_000_000;

/// An open menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// What it is about.
    pub kind: MenuKind,
    /// The choice that enter does; 0 does nothing.
    pub(crate) chosen: usize,
    opened: Nanos,
}

/// What a menu is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MenuKind {
    /// What to do with the program before roctop quits.
    Quit,
    /// A signal for the program.
    Signals,
    /// The program was interrupted twice: what comes next, and when.
    Interrupted,
    /// The program runs and is to run again.
    Rerun(Effect),
}

/// What a choice does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    Interrupt,
    Signal(i32),
    Detach,
    Stop,
    Rerun,
}

/// A choice: its letter, its words, what it does.
pub(crate) type Choice = (char, &'static str, Does);

const DETACH: Choice = ('d', "detach: leave it running, quit roctop", Does::Detach);
const TERM: Choice = ('t', "SIGTERM  ask to stop", Does::Signal(15));
const KILL: Choice = ('k', "SIGKILL  kill now; what was recorded stays", Does::Signal(9));

const QUIT: &[Choice] = &[DETACH, ('s', "stop it: SIGTERM, then quit", Does::Stop)];
const SIGNALS: &[Choice] = &[
    ('i', "SIGINT   interrupt (as ctrl-c)", Does::Interrupt),
    TERM,
    KILL,
    ('z', "SIGSTOP  stop for a while", Does::Signal(19)),
    ('r', "SIGCONT  run on", Does::Signal(18)),
    DETACH,
];
const INTERRUPTED: &[Choice] = &[TERM, KILL, DETACH];
const RERUN: &[Choice] = &[('r', "stop it: SIGTERM, then run it again", Does::Rerun)];

impl MenuKind {
    /// Name of its first choice, which does nothing.
    pub(crate) const fn nothing(&self) -> &'static str {
        match self {
            Self::Interrupted => "nothing: wait; ctrl-c sends the next one now",
            _ => "nothing",
        }
    }

    /// Its other choices.
    pub(crate) const fn choices(&self) -> &'static [Choice] {
        match self {
            Self::Quit => QUIT,
            Self::Signals => SIGNALS,
            Self::Interrupted => INTERRUPTED,
            Self::Rerun(_) => RERUN,
        }
    }
}

/// Opens a menu with nothing chosen.
pub(crate) fn open(ui: &mut Ui, kind: MenuKind) {
    ui.popup = Some(Popup::Menu(Menu {
        kind,
        chosen: 0,
        opened: ui.read.at,
    }));
}

/// Whether this menu is open.
pub(crate) fn is_open(ui: &Ui, kind: &MenuKind) -> bool {
    matches!(&ui.popup, Some(Popup::Menu(menu)) if menu.kind == *kind)
}

/// A key while a menu is open. Another key than the menu's closes it: it was meant for something else.
pub(super) fn key(ui: &mut Ui, latest: &Arc<Snapshot>, mut menu: Menu, key: Key) -> Effect {
    if key == Key::Ctrl('c') && menu.kind != MenuKind::Interrupted {
        return act(ui, latest, Action::Interrupt);
    }
    if key != Key::Esc && ui.read.at.saturating_sub(menu.opened) < IGNORED {
        return Effect::None;
    }
    if key == Key::Ctrl('c') {
        let is_alone = !ui.read.is_burst;
        return if is_alone {
            escalation::hurry(ui, latest)
        } else {
            Effect::None
        };
    }
    let choices = menu.kind.choices();
    let last = choices.len();
    let by_letter = |letter| choices.iter().position(|choice| choice.0 == letter);
    let chosen = match key {
        _ if ui.read.is_burst => None,
        Key::Enter => match choices.get(menu.chosen.wrapping_sub(1)) {
            Some(choice) => return choose(ui, latest, menu.kind, choice.2),
            None => None,
        },
        Key::Up => Some(menu.chosen.saturating_sub(1)),
        Key::Down => Some((menu.chosen + 1).min(last)),
        Key::Char(letter) => by_letter(letter).map(|at| at + 1),
        _ => None,
    };
    match chosen {
        Some(chosen) => {
            menu.chosen = chosen;
            ui.popup = Some(Popup::Menu(menu));
        }
        None => escalation::wait(ui),
    }
    Effect::None
}

/// Does what was chosen.
fn choose(ui: &mut Ui, latest: &Snapshot, kind: MenuKind, does: Does) -> Effect {
    let effect = match (does, kind) {
        // A countdown to SIGKILL runs.
        (Does::Signal(15), MenuKind::Interrupted) => return escalation::send(ui, latest, 15),
        (Does::Rerun, MenuKind::Rerun(effect)) => effect,
        (Does::Interrupt, _) => Effect::Interrupt,
        (Does::Signal(number), _) => Effect::Signal(number),
        (Does::Detach, _) => Effect::Detach,
        (Does::Stop, _) => Effect::StopApp,
        (Does::Rerun, _) => Effect::None,
    };
    escalation::wait(ui);
    effect
}
