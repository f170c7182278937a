//! What becomes of a message: the state changes, and perhaps something is to be done outside. Pure.

use std::sync::Arc;

use super::jump;
use super::key::Key;
use super::keymap::{self, Action};
use super::pane::Pane;
use super::part::rows;
use super::part::table::Scene;
use super::prompt::{Asks, Prompt, Typed};
use super::{Effect, Msg, Popup, Tab, Ui, escalation, palette, scrub, tab};
use crate::filter::Filter;
use crate::format::Unit;
use crate::model::Snapshot;

/// An interrupt this soon after another is not meant as the first one.
const TWICE: u64 = 10_000_000_000;
/// The byte that ends typing to the program: ctrl-].
const LEAVES: u8 = 0x1d;
/// Rows do not change places for so long after the selection was moved.
pub(super) const HOLD: u64 = 2_000_000_000;
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
        Msg::Baseline(snapshot) => {
            say(ui, latest, &format!("compared with {}", snapshot.title));
            ui.baseline = Some(snapshot);
            ui.show(Tab::Diff);
            Effect::None
        }
        Msg::Recording(place, text) => {
            ui.recording = place;
            say(ui, latest, &text);
            Effect::None
        }
        Msg::Counters(names) => {
            ui.counters = names;
            Effect::None
        }
        Msg::Fate(text) => {
            say(ui, latest, &text);
            ui.fate = Some(text);
            Effect::None
        }
        Msg::Tick => {
            if ui.typing && !latest.is_running() {
                ui.typing = false;
            }
            escalation::tick(ui, latest)
        }
        Msg::Typed(bytes) => typed(ui, latest, bytes),
        Msg::Key(key) => on_key(ui, latest, key),
        Msg::Mouse(mouse) => super::mouse::on_mouse(ui, latest, mouse),
    }
}

pub(super) fn on_key(ui: &mut Ui, latest: &Arc<Snapshot>, key: Key) -> Effect {
    ui.toast = None;
    if let Some(popup) = ui.popup {
        return in_popup(ui, latest, popup, key);
    }
    if ui.prompt.is_some() {
        return in_prompt(ui, latest, key);
    }
    // `gg` and `gt`, as in vim.
    if std::mem::take(&mut ui.leads) {
        match key {
            Key::Char('g') => return act(ui, latest, Action::First),
            Key::Char('t') => return act(ui, latest, Action::GoTo),
            _ => {}
        }
    }
    if key == Key::Char('g') {
        ui.leads = true;
        return Effect::None;
    }
    match keymap::action(&ui.keys, ui.tab, key) {
        Some(action) => act(ui, latest, action),
        None => Effect::None,
    }
}

/// From now on keys are the program's.
fn begin_typing(ui: &mut Ui, latest: &Snapshot) {
    if ui.attached {
        return say(ui, latest, "the program's terminal is with the roctop that started it");
    }
    if ui.is_piped {
        return say(
            ui,
            latest,
            "the program has a pipe in place of a terminal (--app-io pipe)",
        );
    }
    ui.typing = true;
    ui.show(Tab::Log);
    ui.scrolled = 0;
}

/// What comes before ctrl-] is for the program.
fn typed(ui: &mut Ui, latest: &Snapshot, mut bytes: Vec<u8>) -> Effect {
    if let Some(at) = bytes.iter().position(|&byte| byte == LEAVES) {
        bytes.truncate(at);
        ui.typing = false;
        say(ui, latest, "keys are roctop's again");
    }
    if bytes.is_empty() {
        Effect::None
    } else {
        Effect::Type(bytes)
    }
}

fn remember(list: &mut Vec<String>, line: String) {
    if !line.is_empty() && list.last() != Some(&line) {
        list.push(line);
        let excess = list.len().saturating_sub(MOST_HISTORY);
        list.drain(..excess);
    }
}

fn in_prompt(ui: &mut Ui, latest: &Arc<Snapshot>, key: Key) -> Effect {
    let Some(mut prompt) = ui.prompt.take() else {
        return Effect::None;
    };
    let is_command = prompt.asks == Asks::Command;
    if is_command && key == Key::Tab {
        let snap = ui.frozen.clone().unwrap_or_else(|| latest.clone());
        if let Some((line, word)) = palette::candidates(ui, &snap, &prompt.text()).into_iter().next() {
            prompt.replace(&if word.starts_with(char::is_uppercase) {
                line + " "
            } else {
                line
            });
        }
        ui.prompt = Some(prompt);
        return Effect::None;
    }
    let is_search = prompt.asks == Asks::Search;
    let filter = if is_search { &mut ui.search } else { &mut ui.filter };
    if key == Key::Tab && !is_command {
        prompt.complete(&ui.presets, filter);
        ui.prompt = Some(prompt);
        return Effect::None;
    }
    let history = if is_command { &ui.commands } else { &ui.history };
    let typed = prompt.key(key, history, filter);
    match typed {
        Typed::On => ui.prompt = Some(prompt),
        Typed::GivenUp => {}
        Typed::Accepted if is_command => {
            let line = prompt.text().trim().to_string();
            remember(&mut ui.commands, line.clone());
            match palette::run(ui, latest, &line) {
                Ok(effect) => return effect,
                Err(why) => say(ui, latest, &why),
            }
        }
        Typed::Accepted if is_search => {
            let source = ui.search.source.clone();
            remember(&mut ui.history, source);
            ui.found = None;
            tab::log::find(ui, latest, true);
        }
        Typed::Accepted => {
            let source = ui.filter.source.clone();
            remember(&mut ui.history, source);
        }
    }
    Effect::None
}

fn in_popup(ui: &mut Ui, latest: &Arc<Snapshot>, popup: Popup, key: Key) -> Effect {
    if key == Key::Ctrl('c') && popup == Popup::Interrupted {
        return escalation::hurry(ui, latest);
    }
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
    if popup == Popup::Columns {
        let snap = ui.frozen.clone().unwrap_or_else(|| latest.clone());
        super::columns::key(ui, &snap, key);
        return Effect::None;
    }
    let Key::Char(letter) = key else {
        if key == Key::Esc {
            escalation::wait(ui);
        }
        return Effect::None;
    };
    let effect = match (popup, letter) {
        (_, 'c') | (Popup::Interrupted, 'w') => Effect::None,
        (Popup::Interrupted, 't') => return escalation::send(ui, latest, 15),
        (Popup::Quit | Popup::Interrupted | Popup::Signals, 'd') => Effect::Detach,
        (Popup::Quit, 's') => Effect::StopApp,
        (Popup::Signals, 'i') => Effect::Interrupt,
        (Popup::Signals, 't') => Effect::Signal(15),
        (Popup::Signals | Popup::Interrupted, 'k') => Effect::Signal(9),
        (Popup::Signals, 'z') => Effect::Signal(19),
        (Popup::Signals, 'r') => Effect::Signal(18),
        _ => return Effect::None,
    };
    escalation::wait(ui);
    effect
}

pub(super) fn act(ui: &mut Ui, latest: &Arc<Snapshot>, action: Action) -> Effect {
    let snap = ui.frozen.clone().unwrap_or_else(|| latest.clone());
    let columns = ui.lane_columns();
    match action {
        Action::Show(tab) => jump::carry(ui, &snap, tab),
        Action::Up => step(ui, &snap, -1),
        Action::Down => step(ui, &snap, 1),
        Action::PageUp => step(ui, &snap, -page(ui)),
        Action::PageDown => step(ui, &snap, page(ui)),
        Action::First => step(ui, &snap, isize::MIN),
        Action::Last => step(ui, &snap, isize::MAX),
        Action::NextPane => turn_pane(ui, 1),
        Action::PreviousPane => turn_pane(ui, -1),
        Action::Left | Action::Right => scrub::pan(ui, &snap, action == Action::Right),
        Action::ZoomIn | Action::ZoomOut => {
            let anchor = ui.slice.map(|slice| slice.1).or(ui.gap.map(|gap| gap.begin));
            ui.time.zoom(&snap, columns, action == Action::ZoomIn, anchor);
        }
        Action::Fit => match ui.range {
            Some(range) if ui.tab == Tab::Timeline => ui.time.frame(&snap, columns, range.span()),
            _ => (ui.time.fits, ui.time.follows) = (true, false),
        },
        Action::Previous => scrub::neighbour(ui, &snap, false),
        Action::Next => scrub::neighbour(ui, &snap, true),
        Action::PreviousGap => scrub::gap(ui, &snap, false),
        Action::NextGap => scrub::gap(ui, &snap, true),
        Action::PreviousMatch | Action::NextMatch if ui.tab == Tab::Log => {
            tab::log::find(ui, &snap, action == Action::NextMatch);
        }
        Action::PreviousMatch | Action::NextMatch => scrub::matching(ui, &snap, action == Action::NextMatch),
        Action::Range => scrub::range(ui, &snap),
        Action::Mark => scrub::mark(ui, &snap),
        Action::Marks => scrub::to_mark(ui, &snap),
        Action::GoTo => ui.prompt = Some(Prompt::command("goto ", ui.filter.clone())),
        Action::Fold => scrub::fold(ui),
        Action::Enter => {
            if let Some(why) = jump::enter(ui, &snap) {
                say(ui, latest, why);
            }
        }
        Action::Back | Action::Forward => {
            if !jump::travel(ui, action == Action::Back) {
                say(ui, latest, "no jump to go back or forth to");
            }
        }
        Action::Close => close(ui),
        Action::Pause if ui.frozen.is_some() => ui.frozen = None,
        Action::Pause => {
            ui.time.stand(&snap, columns);
            ui.frozen = Some(snap);
        }
        Action::Follow => {
            ui.frozen = None;
            (ui.slice, ui.gap, ui.range) = (None, None, None);
            ui.scrolled = 0;
            (ui.time.follows, ui.time.fits) = (true, false);
        }
        Action::Filter if ui.tab == Tab::Log => ui.prompt = Some(Prompt::search(ui.search.clone())),
        Action::Filter => ui.prompt = Some(Prompt::new(ui.filter.clone())),
        Action::FilterTo => narrow(ui, &snap, true),
        Action::FilterOut => narrow(ui, &snap, false),
        Action::Pick => return pick(ui),
        Action::Rest => match tab::counters::switched(latest) {
            Ok(rest) => return Effect::Rest(rest),
            Err(why) => say(ui, latest, why),
        },
        Action::Command => ui.prompt = Some(Prompt::command("", ui.filter.clone())),
        Action::SortNext | Action::SortRight => sort(ui, &snap, 1),
        Action::SortLeft => sort(ui, &snap, -1),
        Action::Reverse => reverse(ui),
        Action::Columns => super::columns::open(ui, &snap),
        Action::Group => group(ui),
        Action::Unit => turn_unit(ui, latest),
        Action::NameForm => ui.names = ui.names.next(),
        Action::Logarithmic => ui.logarithmic ^= true,
        Action::Reset => return reset(ui, latest),
        Action::Baseline => baseline(ui, snap),
        Action::Export => {
            let (name, bytes) = super::export::export_csv(ui, &snap);
            return Effect::Export { name, bytes };
        }
        Action::ExportAll => {
            let (name, files) = super::export::all(ui, &snap);
            return Effect::ExportAll { name, files };
        }
        Action::Record => return Effect::Record,
        Action::Picture => return Effect::Picture(super::export::stem(ui, &snap)),
        Action::Copy => return copy(ui, &snap, tab::copied),
        Action::CopyName => return copy(ui, &snap, tab::copied_name),
        Action::Help => ui.popup = Some(Popup::Help(0)),
        Action::Hints => ui.bare ^= true,
        Action::Redraw => return Effect::Redraw,
        Action::Interrupt => return interrupt(ui, latest),
        Action::Signals if latest.is_running() => ui.popup = Some(Popup::Signals),
        Action::Type if latest.is_running() => begin_typing(ui, latest),
        Action::Signals | Action::Type => say(ui, latest, "the program does not run"),
        Action::Suspend => return Effect::Suspend,
        Action::Quit if latest.is_running() => ui.popup = Some(Popup::Quit),
        Action::Quit => return Effect::Quit,
    }
    Effect::None
}

fn copy(ui: &mut Ui, snap: &Snapshot, text: fn(&Scene<'_>) -> Option<String>) -> Effect {
    let Some(text) = text(&Scene { ui, snap }) else {
        return Effect::None;
    };
    say(ui, snap, "copied to the terminal's clipboard");
    Effect::Clipboard(text)
}

fn baseline(ui: &mut Ui, snap: Arc<Snapshot>) {
    let at = crate::format::clock(snap.elapsed());
    say(ui, &snap, &format!("baseline is {at}; D shows what changed since"));
    ui.baseline = Some(snap);
}

pub(super) fn say(ui: &mut Ui, latest: &Snapshot, text: &str) {
    ui.toast = Some((text.to_string(), latest.now));
}

/// The first interrupt goes to the program; a second one soon after, while it still runs, says what comes next.
fn interrupt(ui: &mut Ui, latest: &Snapshot) -> Effect {
    if !latest.is_running() {
        return Effect::Quit;
    }
    if ui.interrupted.is_some_and(|at| latest.now.saturating_sub(at) < TWICE) {
        ui.interrupted = None;
        escalation::begin(ui, latest);
        return Effect::None;
    }
    ui.interrupted = Some(latest.now);
    say(
        ui,
        latest,
        "SIGINT sent to the program; ctrl-c again for SIGTERM and SIGKILL",
    );
    Effect::Interrupt
}

/// Takes back one thing: the range, the selection, at last the filter.
fn close(ui: &mut Ui) {
    if ui.range.take().is_some() || ui.gap.take().is_some() || ui.slice.take().is_some() {
        return;
    }
    if ui.tab == Tab::Log && (ui.found.take().is_some() || !ui.search.is_empty()) {
        ui.search = Filter::default();
        return;
    }
    if let Some(table) = ui.table_mut()
        && table.selected.take().is_some()
    {
        return;
    }
    ui.filter = Filter::default();
}

fn page(ui: &Ui) -> isize {
    (ui.size.1 as isize / 2).max(1)
}

fn turn_pane(ui: &mut Ui, by: isize) {
    let count = Pane::of(ui.tab, super::Size::of(ui.size.0, ui.size.1)).len();
    if count > 0 {
        ui.focus = (ui.focus.min(count - 1) as isize + by).rem_euclid(count as isize) as usize;
    }
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
            let tracks = rows::order(&Scene { ui, snap });
            let at = ui
                .track
                .and_then(|track| tracks.iter().position(|&known| known == track));
            ui.track = tracks.get(to(at, tracks.len())).copied();
            (ui.slice, ui.gap) = (None, None);
        }
        _ => {
            let Some(pane) = ui.pane() else { return };
            let keys = tab::keys(&Scene { ui, snap }, pane);
            let state = &mut ui.tables[pane as usize];
            let at = state
                .selected
                .and_then(|key| keys.iter().position(|&known| known == key));
            state.selected = keys.get(to(at, keys.len())).copied();
            state.held = Some((snap.now.saturating_add(HOLD), keys.into()));
        }
    }
}

fn sort(ui: &mut Ui, snap: &Snapshot, by: isize) {
    let Some(pane) = ui.pane() else { return };
    let (count, own) = tab::sortable(pane);
    let at = ui.tables[pane as usize].sort.column.unwrap_or(own) as isize;
    let count = count.max(1) as isize;
    let next = (1..=count).map(|steps| (at + by * steps).rem_euclid(count) as usize);
    let scene = Scene { ui, snap };
    let found = next.into_iter().find(|at| tab::has_column(&scene, pane, *at));
    if let Some(at) = found {
        sort_by(ui, pane, at);
    }
}

/// Sorts by a column, or turns the order round when it is the one already.
pub(super) fn sort_by(ui: &mut Ui, pane: Pane, column: usize) {
    let (_, own) = tab::sortable(pane);
    let state = &mut ui.tables[pane as usize];
    state.held = None;
    let sort = &mut state.sort;
    let now = sort.column.unwrap_or(own);
    if now == column {
        sort.ascending ^= true;
        return;
    }
    sort.then = Some((now, sort.ascending));
    (sort.column, sort.ascending) = (Some(column), false);
}

fn group(ui: &mut Ui) {
    match ui.tab {
        Tab::Timeline => {
            ui.layout = ui.layout.next();
            ui.track = None;
        }
        Tab::Markers => ui.flat ^= true,
        Tab::Steps => ui.stepped = ui.stepped.wrapping_add(1),
        _ => {
            ui.grouping = ui.grouping.next();
            ui.tables[Pane::Kernels as usize].selected = None;
        }
    }
}

/// The order of the list turns round.
fn reverse(ui: &mut Ui) {
    if let Some(table) = ui.table_mut() {
        table.sort.ascending ^= true;
        table.held = None;
    }
}

/// Asks for counters; which there are is found out once.
fn pick(ui: &mut Ui) -> Effect {
    ui.prompt = Some(Prompt::command("pmc ", ui.filter.clone()));
    if ui.counters.is_empty() {
        Effect::ListCounters
    } else {
        Effect::None
    }
}

/// Numbers count from now on. A baseline counts from another beginning than what it would be compared with.
fn reset(ui: &mut Ui, latest: &Snapshot) -> Effect {
    (ui.baseline, ui.frozen) = (None, None);
    say(
        ui,
        latest,
        "numbers count from now on; :whole counts from the beginning again",
    );
    Effect::Reset(true)
}

/// The next unit for times in lists.
fn turn_unit(ui: &mut Ui, latest: &Snapshot) {
    ui.unit = Unit::next(ui.unit);
    let word = Unit::ALL.iter().find(|known| Some(known.0) == ui.unit);
    let text = word.map_or("each time in the unit that fits".into(), |word| {
        format!("times in {}", word.1)
    });
    say(ui, latest, &text);
}

/// Adds the selected row to the filter, or leaves it out.
fn narrow(ui: &mut Ui, snap: &Snapshot, only: bool) {
    let Some(term) = tab::term(&Scene { ui, snap }) else {
        return say(ui, snap, "no row is selected that a filter could name");
    };
    let term = if only { term } else { format!("!({term})") };
    let source = match ui.filter.source.trim() {
        "" => term,
        source if source.contains('|') => format!("({source}) {term}"),
        source => format!("{source} {term}"),
    };
    match Filter::parse(&source) {
        Ok(filter) => ui.filter = filter,
        Err(error) => say(ui, snap, &error.message),
    }
}
