//! What becomes of a message: the state changes, and perhaps something is to be done outside. Pure.

use std::sync::Arc;

use super::key::{Key, Mouse, MouseKind};
use super::keymap::{self, Action};
use super::part::lanes;
use super::part::table::Scene;
use super::prompt::{Prompt, Typed};
use super::tab;
use super::{Effect, Msg, NameForm, Popup, Tab, Ui};
use crate::item::Nanos;
use crate::model::{LaneKey, Slice, Snapshot};

/// Two interrupts within this time bring the menu.
const TWICE: u64 = 2_000_000_000;
/// Rows do not change places for so long after the selection was moved.
const HOLD: u64 = 2_000_000_000;
const MOST_HISTORY: usize = 100;

/// Changes the state.
pub fn update(ui: &mut Ui, latest: &Arc<Snapshot>, msg: Msg) -> Effect {
    match msg {
        Msg::Resize(width, height) => {
            ui.size = (width, height);
            Effect::None
        }
        Msg::Say(text) => {
            ui.toast = Some((text, latest.now));
            Effect::None
        }
        Msg::Key(key) => on_key(ui, latest, key),
        Msg::Mouse(mouse) => on_mouse(ui, latest, mouse),
    }
}

fn on_key(ui: &mut Ui, latest: &Arc<Snapshot>, key: Key) -> Effect {
    ui.toast = None;
    if let Some(popup) = ui.popup {
        return in_popup(ui, latest, popup, key);
    }
    if let Some(prompt) = &mut ui.prompt {
        match prompt.key(key, &ui.history, &mut ui.filter) {
            Typed::On => {}
            Typed::GivenUp => ui.prompt = None,
            Typed::Accepted => {
                let source = ui.filter.source.clone();
                if !source.is_empty() && ui.history.last() != Some(&source) {
                    ui.history.push(source);
                    let excess = ui.history.len().saturating_sub(MOST_HISTORY);
                    ui.history.drain(..excess);
                }
                ui.prompt = None;
            }
        }
        return Effect::None;
    }
    match keymap::action(ui.tab, key) {
        Some(action) => act(ui, latest, action),
        None => Effect::None,
    }
}

fn in_popup(ui: &mut Ui, latest: &Arc<Snapshot>, popup: Popup, key: Key) -> Effect {
    if key == Key::Ctrl('c') {
        return act(ui, latest, Action::Interrupt);
    }
    if let Popup::Help(line) = popup {
        ui.popup = match key {
            Key::Char('j') | Key::Down => Some(Popup::Help(line.saturating_add(1).min(100))),
            Key::Char('k') | Key::Up => Some(Popup::Help(line.saturating_sub(1))),
            Key::PageDown | Key::Char(' ') => Some(Popup::Help(line.saturating_add(10).min(100))),
            Key::PageUp => Some(Popup::Help(line.saturating_sub(10))),
            Key::Esc | Key::Char('?' | 'q') | Key::Enter | Key::F(1) => None,
            _ => Some(popup),
        };
        return Effect::None;
    }
    let Key::Char(letter) = key else {
        if key == Key::Esc {
            ui.popup = None;
        }
        return Effect::None;
    };
    let effect = match (popup, letter) {
        (_, 'c') | (Popup::Interrupted, 'w') => Effect::None,
        (Popup::Quit | Popup::Interrupted | Popup::Signals, 'd') => Effect::Detach,
        (Popup::Quit, 's') => Effect::StopApp,
        (Popup::Signals, 'i') => Effect::Interrupt,
        (Popup::Signals | Popup::Interrupted, 't') => Effect::Signal(15),
        (Popup::Signals | Popup::Interrupted, 'k') => Effect::Signal(9),
        (Popup::Signals, 'z') => Effect::Signal(19),
        (Popup::Signals, 'r') => Effect::Signal(18),
        _ => return Effect::None,
    };
    ui.popup = None;
    effect
}

fn act(ui: &mut Ui, latest: &Arc<Snapshot>, action: Action) -> Effect {
    let snap = ui.frozen.clone().unwrap_or_else(|| latest.clone());
    let columns = ui.lane_columns();
    let anchor = ui.slice.map(|slice| slice.1);
    match action {
        Action::Show(tab) => ui.tab = tab,
        Action::Up => step(ui, &snap, -1),
        Action::Down => step(ui, &snap, 1),
        Action::PageUp => step(ui, &snap, -page(ui)),
        Action::PageDown => step(ui, &snap, page(ui)),
        Action::First => step(ui, &snap, isize::MIN),
        Action::Last => step(ui, &snap, isize::MAX),
        Action::Left => ui.time.pan(&snap, columns, -2),
        Action::Right => ui.time.pan(&snap, columns, 2),
        Action::ZoomIn => ui.time.zoom(&snap, columns, true, anchor),
        Action::ZoomOut => ui.time.zoom(&snap, columns, false, anchor),
        Action::Fit => {
            ui.time.fits = true;
            ui.time.follows = false;
        }
        Action::Previous => neighbour(ui, &snap, false),
        Action::Next => neighbour(ui, &snap, true),
        Action::Enter => enter(ui, &snap),
        Action::Close => close(ui),
        Action::Pause if ui.frozen.is_some() => ui.frozen = None,
        Action::Pause => {
            ui.time.stand(&snap, columns);
            ui.frozen = Some(snap);
        }
        Action::Follow => {
            ui.frozen = None;
            ui.slice = None;
            ui.scrolled = 0;
            (ui.time.follows, ui.time.fits) = (true, false);
        }
        Action::Filter => ui.prompt = Some(Prompt::new(ui.filter.clone())),
        Action::SortNext | Action::SortRight => sort(ui, 1),
        Action::SortLeft => sort(ui, -1),
        Action::Reverse => {
            ui.table_mut().sort.ascending ^= true;
            ui.table_mut().held = None;
        }
        Action::NameForm => {
            ui.names = match ui.names {
                NameForm::Short => NameForm::Full,
                NameForm::Full => NameForm::Mangled,
                NameForm::Mangled => NameForm::Short,
            }
        }
        Action::Logarithmic => ui.logarithmic ^= true,
        Action::Export => {
            let (name, bytes) = super::export::export_csv(ui, &snap);
            return Effect::Export { name, bytes };
        }
        Action::Help => ui.popup = Some(Popup::Help(0)),
        Action::Redraw => return Effect::Redraw,
        Action::Interrupt => return interrupt(ui, latest),
        Action::Signals if latest.is_running() => ui.popup = Some(Popup::Signals),
        Action::Signals => say(ui, latest, "the program does not run"),
        Action::Suspend => return Effect::Suspend,
        Action::Quit if latest.is_running() => ui.popup = Some(Popup::Quit),
        Action::Quit => return Effect::Quit,
    }
    Effect::None
}

fn say(ui: &mut Ui, latest: &Snapshot, text: &str) {
    ui.toast = Some((text.to_string(), latest.now));
}

/// The first interrupt goes to the program; a second one soon after asks what is wanted.
fn interrupt(ui: &mut Ui, latest: &Snapshot) -> Effect {
    if !latest.is_running() {
        return Effect::Quit;
    }
    if ui.interrupted.is_some_and(|at| latest.now.saturating_sub(at) < TWICE) {
        ui.interrupted = None;
        ui.popup = Some(Popup::Interrupted);
        return Effect::None;
    }
    ui.interrupted = Some(latest.now);
    say(ui, latest, "SIGINT sent to the program; ctrl-c again for more");
    Effect::Interrupt
}

fn close(ui: &mut Ui) {
    if ui.slice.take().is_some() {
        return;
    }
    if ui.table().selected.is_some() {
        ui.table_mut().selected = None;
    } else if !ui.filter.is_empty() {
        ui.filter = crate::filter::Filter::default();
    }
}

fn page(ui: &Ui) -> isize {
    (ui.size.1 as isize / 2).max(1)
}

/// Moves the selection in the order of the screen.
fn step(ui: &mut Ui, snap: &Snapshot, by: isize) {
    let to = |at: Option<usize>, count: usize| {
        let last = count.saturating_sub(1);
        match at {
            Some(at) => at.saturating_add_signed(by).min(last),
            None if by == isize::MAX => last,
            None => 0,
        }
    };
    match ui.tab {
        Tab::Log => {
            let most = snap.output.len();
            ui.scrolled = match by {
                isize::MIN => most,
                isize::MAX => 0,
                by => ui.scrolled.saturating_add_signed(-by).min(most),
            };
        }
        Tab::Timeline => {
            let lanes = lanes::order(snap);
            let at = ui.lane.and_then(|lane| lanes.iter().position(|&key| key == lane));
            ui.lane = lanes.get(to(at, lanes.len())).copied();
            ui.slice = None;
        }
        _ => {
            let keys = tab::keys(&Scene { ui, snap });
            let selected = ui.table().selected;
            let at = selected.and_then(|key| keys.iter().position(|&known| known == key));
            let state = ui.table_mut();
            state.selected = keys.get(to(at, keys.len())).copied();
            state.held = Some((snap.now.saturating_add(HOLD), keys.into()));
        }
    }
}

fn sort(ui: &mut Ui, by: isize) {
    let Some((count, own)) = tab::sortable(ui.tab) else {
        return;
    };
    ui.table_mut().held = None;
    let sort = &mut ui.table_mut().sort;
    let at = sort.column.unwrap_or(own) as isize;
    sort.column = Some((at + by).rem_euclid(count.max(1) as isize) as usize);
    sort.ascending = false;
}

/// Selects the slice before or after, in the selected lane or else the first that has slices.
fn neighbour(ui: &mut Ui, snap: &Snapshot, forward: bool) {
    let columns = ui.lane_columns();
    let has_slices = |key: &LaneKey| snap.lane(*key).is_some_and(|lane| lane.kept() > 0);
    let Some(key) = ui
        .lane
        .filter(has_slices)
        .or_else(|| lanes::order(snap).into_iter().find(has_slices))
    else {
        return;
    };
    let middle = (ui.time.from(snap, columns) / 2 + ui.time.to(snap, columns) / 2).min(snap.now);
    let from = ui.slice.filter(|slice| slice.0 == key).map_or(middle, |slice| slice.1);
    let Some(slice) = snap.lane(key).and_then(|lane| lane.neighbour(from, forward)) else {
        return;
    };
    select(ui, snap, key, &slice);
}

fn select(ui: &mut Ui, snap: &Snapshot, key: LaneKey, slice: &Slice) {
    let columns = ui.lane_columns();
    ui.lane = Some(key);
    ui.slice = Some((key, slice.span.begin));
    ui.time.show(snap, columns, slice.span.begin);
}

/// Goes from a call to what it caused and back, or from a kernel to its last slice on the timeline.
fn enter(ui: &mut Ui, snap: &Snapshot) {
    if ui.tab == Tab::Timeline {
        let Some((key, begin)) = ui.slice else {
            return neighbour(ui, snap, true);
        };
        if let Some((key, slice)) = related(snap, key, begin) {
            select(ui, snap, key, &slice);
        }
    } else if matches!(ui.tab, Tab::Kernels | Tab::Overview)
        && let Some(kernel) = ui
            .table()
            .selected
            .or_else(|| tab::keys(&Scene { ui, snap }).first().copied())
    {
        let lanes = snap
            .lanes
            .iter()
            .filter(|lane| matches!(lane.key, LaneKey::Stream(..) | LaneKey::Queue(..)));
        let last = lanes.filter_map(|lane| {
            let slice = lane.recent(200_000).find(|slice| u64::from(slice.what) == kernel)?;
            Some((lane.key, *slice))
        });
        if let Some((key, slice)) = last.max_by_key(|found| found.1.span.begin) {
            ui.tab = Tab::Timeline;
            let columns = ui.lane_columns();
            ui.time.stand(snap, columns);
            select(ui, snap, key, &slice);
        } else {
            say(ui, snap, "no dispatch of this kernel is kept in full any more");
        }
    }
}

/// The work that a call caused, or the call that caused the work.
pub(super) fn related(snap: &Snapshot, key: LaneKey, begin: Nanos) -> Option<(LaneKey, Slice)> {
    let slice = *snap.lane(key)?.at(begin)?;
    if slice.correlation == 0 {
        return None;
    }
    let is_call = matches!(key, LaneKey::Api(..));
    let others = snap.lanes.iter().filter(|lane| match lane.key {
        LaneKey::Api(..) => !is_call,
        LaneKey::Stream(..) | LaneKey::Queue(..) | LaneKey::Copies(_) => is_call,
        _ => false,
    });
    let mut found = others.filter_map(|lane| {
        let other = lane.correlated(slice.correlation)?;
        (other.process == slice.process).then_some((lane.key, *other))
    });
    found.next()
}

fn on_mouse(ui: &mut Ui, latest: &Arc<Snapshot>, mouse: Mouse) -> Effect {
    let in_time = matches!(ui.tab, Tab::Timeline);
    match mouse.kind {
        MouseKind::WheelUp if in_time => act(ui, latest, Action::ZoomIn),
        MouseKind::WheelDown if in_time => act(ui, latest, Action::ZoomOut),
        MouseKind::WheelUp => act(ui, latest, Action::Up),
        MouseKind::WheelDown => act(ui, latest, Action::Down),
        MouseKind::Press if mouse.y == 1 => match super::part::header::tab_at(ui, mouse.x) {
            Some(tab) => act(ui, latest, Action::Show(tab)),
            None => Effect::None,
        },
        MouseKind::Press => Effect::None,
    }
}
