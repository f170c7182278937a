//! What becomes of a message: keys go to what stands in front, a popup, a prompt or the view. Pure.

use std::sync::Arc;

use super::actions::act;
use super::ask;
use super::direction::Direction;
use super::key::Key;
use super::keymap::{self, Action};
use super::menu::{self, MenuKind};
use super::navigation::{self, Location};
use super::palette::Accepted;
use super::prompt::{self, Asks, Typed};
use super::{Effect, HelpSearch, Msg, Popup, Read, Tab, Ui, columns, escalation, mouse, palette, question, tab};
use roctop_model::{Snapshot, query};

/// The byte that ends typing to the program: ctrl-].
const LEAVE_KEY: u8 = 0x1d;
const MAX_HISTORY: usize = 100;

/// Changes the state.
pub fn update(ui: &mut Ui, latest: &Arc<Snapshot>, msg: Msg) -> Effect {
    // A job's screen begins with the job.
    if !ui.tab.is_there(latest) {
        ui.show(if latest.job.is_some() { Tab::Job } else { Tab::default() });
    }
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
            ui.say(latest, &format!("compared with {}", snapshot.title));
            ui.baseline = Some(snapshot);
            ui.compare.chosen = None;
            ui.show(Tab::Diff);
            Effect::None
        }
        Msg::Recording(place, text) => {
            ui.recording = place;
            ui.say(latest, &text);
            Effect::None
        }
        Msg::Counters(names) => {
            ui.counters = names;
            Effect::None
        }
        Msg::NameRecording(name) => {
            let text = format!("record into {name}");
            question::ask(ui, text, Effect::Record(Some(name)));
            Effect::None
        }
        Msg::Source(lines) => {
            ui.source.add(lines);
            Effect::None
        }
        Msg::Fate(text) => {
            ui.say(latest, &text);
            ui.program.fate = Some(text);
            close_quit(ui);
            Effect::None
        }
        Msg::Tick => {
            if ui.program.typing && !latest.is_running() {
                ui.program.typing = false;
            }
            if !latest.is_running() {
                close_quit(ui);
            }
            if let Some(id) = ui.at.take()
                && !ask::go(ui, latest, &id)
            {
                ui.at = Some(id);
            }
            let columns = ui.lane_columns();
            match &ui.frozen {
                None => ui.time.settle(latest, columns),
                Some(frozen) if frozen.recall != latest.recall => {
                    ui.frozen = Some(Arc::new(frozen.recalling(latest)));
                }
                Some(_) => {}
            }
            escalation::tick(ui, latest)
        }
        Msg::Typed(bytes) => typed(ui, latest, bytes),
        Msg::Read { at, together } => {
            let is_burst = together > 1;
            ui.read = Read { at, is_burst };
            Effect::None
        }
        Msg::Paste(text) => paste(ui, latest, &text),
        Msg::Key(key) => {
            // The user goes elsewhere.
            ui.at = None;
            from_place(ui, latest, |ui| on_key(ui, latest, key))
        }
        Msg::Mouse(mouse) => from_place(ui, latest, |ui| mouse::on_mouse(ui, latest, mouse)),
    }
}

/// Does what may lead elsewhere, and remembers where that was done.
fn from_place(ui: &mut Ui, latest: &Arc<Snapshot>, act: impl FnOnce(&mut Ui) -> Effect) -> Effect {
    let before = Location::of(ui, &ui.standing(latest));
    let effect = act(ui);
    navigation::moved(ui, &ui.standing(latest), before);
    effect
}

pub(super) fn on_key(ui: &mut Ui, latest: &Arc<Snapshot>, key: Key) -> Effect {
    // A message stays for the other keys of the same read.
    if !ui.read.is_burst {
        ui.toast = None;
    }
    if let Some(popup) = ui.popup.clone() {
        return in_popup(ui, latest, popup, key);
    }
    if ui.question.is_some() {
        return question::key(ui, latest, key);
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
    match keymap::action(&ui.prefs.keys, ui.tab, key) {
        // If the user binds another key to it, that key is an act.
        Some(Action::Interrupt) if key != Key::Ctrl('c') && latest.is_running() => {
            question::ask(ui, "send SIGINT to the program".into(), Effect::Interrupt);
            Effect::None
        }
        Some(action) => act(ui, latest, action),
        None => Effect::None,
    }
}

/// The program has ended: what is to become of it is no question any more.
fn close_quit(ui: &mut Ui) {
    if menu::is_open(ui, &MenuKind::Quit) || menu::is_open(ui, &MenuKind::Signals) {
        ui.popup = None;
    }
}

/// A paste is text in a prompt. Elsewhere it is refused, because its letters would act as keys.
fn paste(ui: &mut Ui, latest: &Arc<Snapshot>, text: &str) -> Effect {
    if ui.program.typing {
        return Effect::Type(text.into());
    }
    let line = prompt::one_line(text);
    match (&ui.popup, &mut ui.prompt) {
        (Some(Popup::Help(_)), _) if ui.help.is_typed => ui.help.text += &line,
        (None, Some(prompt)) if ui.question.is_none() => {
            let filter = match prompt.asks {
                Asks::Search => &mut ui.log.search,
                _ => &mut ui.filter,
            };
            prompt.paste(&line, &ui.prefs.presets, filter);
        }
        _ => {
            ui.question = None;
            ui.say(latest, prompt::NO_PASTE);
        }
    }
    Effect::None
}

/// What comes before ctrl-] is for the program.
fn typed(ui: &mut Ui, latest: &Snapshot, mut bytes: Vec<u8>) -> Effect {
    if let Some(at) = bytes.iter().position(|&byte| byte == LEAVE_KEY) {
        bytes.truncate(at);
        ui.program.typing = false;
        ui.say(latest, "keys are roctop's again");
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
        let excess = list.len().saturating_sub(MAX_HISTORY);
        list.drain(..excess);
    }
}

fn in_prompt(ui: &mut Ui, latest: &Arc<Snapshot>, key: Key) -> Effect {
    let Some(mut prompt) = ui.prompt.take() else {
        return Effect::None;
    };
    let is_command = prompt.asks == Asks::Command;
    if is_command && key == Key::Tab {
        let snap = ui.standing(latest);
        let found = palette::candidates(ui, &snap, &prompt.text());
        if let Some(meant) = found.into_iter().nth(prompt.chosen) {
            prompt.replace(&meant.completed());
        }
        ui.prompt = Some(prompt);
        return Effect::None;
    }
    let is_search = prompt.asks == Asks::Search;
    let filter = if is_search { &mut ui.log.search } else { &mut ui.filter };
    if key == Key::Tab && !is_command {
        prompt.complete(&ui.prefs.presets, filter);
        ui.prompt = Some(prompt);
        return Effect::None;
    }
    if key == Key::Ctrl('s') && prompt.asks == Asks::Filter {
        if prompt.error.is_none() && !filter.is_empty() {
            remember(&mut ui.prefs.history, filter.source.clone());
            prompt.ask("save ", filter.clone());
        }
        ui.prompt = Some(prompt);
        return Effect::None;
    }
    let history = if is_command {
        &ui.prefs.commands
    } else {
        &ui.prefs.history
    };
    let typed = prompt.key(key, history, &ui.prefs.presets, filter);
    match typed {
        Typed::On => {
            if is_command {
                let snap = ui.standing(latest);
                let count = palette::candidates(ui, &snap, &prompt.text()).len();
                prompt.chosen = prompt.chosen.min(count.saturating_sub(1));
            }
            ui.prompt = Some(prompt);
        }
        Typed::GivenUp => {}
        Typed::Accepted if is_command => {
            let line = prompt.text();
            match palette::accept(ui, latest, &line, prompt.chosen) {
                Accepted::Done(effect) => {
                    remember(&mut ui.prefs.commands, line.trim().to_string());
                    return effect;
                }
                Accepted::Wants(line) => {
                    prompt.replace(&line);
                    ui.prompt = Some(prompt);
                }
                // The line stays, to be mended.
                Accepted::Refused(message) => {
                    prompt.error = Some(query::Error { column: 0, message });
                    ui.prompt = Some(prompt);
                }
            }
        }
        Typed::Accepted if is_search => {
            let source = ui.log.search.source.clone();
            remember(&mut ui.prefs.history, source);
            ui.log.found = None;
            tab::log::find(ui, latest, Direction::Back);
        }
        Typed::Accepted => {
            let source = ui.filter.source.clone();
            remember(&mut ui.prefs.history, source);
        }
    }
    Effect::None
}

fn in_popup(ui: &mut Ui, latest: &Arc<Snapshot>, popup: Popup, key: Key) -> Effect {
    match popup {
        Popup::Menu(menu) => menu::key(ui, latest, menu, key),
        _ if key == Key::Ctrl('c') => act(ui, latest, Action::Interrupt),
        Popup::Help(line) => {
            ui.popup = in_help(ui, line, key);
            Effect::None
        }
        Popup::Columns => {
            let snap = ui.standing(latest);
            columns::key(ui, &snap, key);
            Effect::None
        }
    }
}

/// A key in the help, of which `line` is the first line shown.
fn in_help(ui: &mut Ui, line: u16, key: Key) -> Option<Popup> {
    let search = &mut ui.help;
    let line = match key {
        Key::Esc if search.is_typed || !search.text.is_empty() => {
            *search = HelpSearch::default();
            0
        }
        Key::Enter if search.is_typed => {
            search.is_typed = false;
            line
        }
        Key::Backspace if search.is_typed => {
            search.text.pop();
            0
        }
        Key::Char(c) if search.is_typed => {
            search.text.push(c);
            0
        }
        Key::Char('/') => {
            search.is_typed = true;
            line
        }
        Key::Char('j') | Key::Down => line.saturating_add(1).min(100),
        Key::Char('k') | Key::Up => line.saturating_sub(1),
        Key::PageDown | Key::Char(' ') => line.saturating_add(10).min(100),
        Key::PageUp => line.saturating_sub(10),
        Key::Esc | Key::Char('?' | 'q') | Key::Enter | Key::F(1) => {
            *search = HelpSearch::default();
            return None;
        }
        _ => line,
    };
    Some(Popup::Help(line))
}
