//! Acts outside of the screen, such as writing a file, wait for enter: a line shows what enter does. Pure.

use std::sync::Arc;

use super::actions::{act, begin_typing};
use super::key::Key;
use super::keymap::Action;
use super::{Effect, Ui};
use roctop_model::Snapshot;

/// A requested act that waits for enter.
#[derive(Clone, Debug)]
pub struct Question {
    /// What enter does.
    pub text: String,
    act: Act,
}

#[derive(Clone, Debug)]
enum Act {
    /// An effect outside of the screen.
    Effect(Effect),
    /// Keys go to the program.
    Type,
}

/// Shows a question; enter has the effect.
pub(super) fn ask(ui: &mut Ui, text: String, effect: Effect) {
    let act = Act::Effect(effect);
    ui.question = Some(Question { text, act });
}

/// Asks whether keys are to go to the program.
pub(super) fn ask_to_type(ui: &mut Ui) {
    let text = "type to the program, until ctrl-]".into();
    ui.question = Some(Question { text, act: Act::Type });
}

/// A key while a question is open: enter acts, any other key cancels.
pub(super) fn key(ui: &mut Ui, latest: &Arc<Snapshot>, key: Key) -> Effect {
    let question = ui.question.take();
    match (key, question.map(|question| question.act)) {
        (Key::Ctrl('c'), _) => return act(ui, latest, Action::Interrupt),
        (Key::Esc, _) => {}
        (Key::Enter, Some(Act::Effect(effect))) if !ui.read.is_burst => return effect,
        (Key::Enter, Some(Act::Type)) if !ui.read.is_burst => begin_typing(ui, latest),
        _ => ui.say(latest, "not done: that takes enter"),
    }
    Effect::None
}
