//! The hint bar, made from the keymap, or the prompt while a filter is typed.

pub(crate) mod prompt;

use ratatui::layout::Rect;

use super::canvas::{Canvas, top, words};
use super::table::Scene;
use crate::hit_map::Hit;
use crate::key::Key;
use crate::keymap::{Action, Binding, KEYMAP, is_valid};
use crate::question::Question;
use crate::theme::Role;
use crate::{Size, Tab};
use roctop_trace::units;

/// A word to the user stays so long.
const TOAST: u64 = 6_000_000_000;

/// Rows of a word to the user at most.
const MAX_ROWS: usize = 3;

/// The word to the user in lines, while it stands.
fn toast(scene: &Scene<'_>) -> Option<Vec<String>> {
    let (text, at) = scene.ui.toast.as_ref()?;
    let room = usize::from(scene.ui.size.0.saturating_sub(2)).max(1);
    (scene.snap.now.saturating_sub(*at) < TOAST).then(|| words(text, room))
}

/// Rows it takes.
pub(crate) fn height(scene: &Scene<'_>, size: Size) -> u16 {
    let ui = scene.ui;
    if ui.question.is_some() {
        return 2;
    }
    let said = toast(scene).filter(|_| ui.prompt.is_none() && !ui.program.typing);
    if let Some(lines) = said {
        return lines.len().clamp(1, MAX_ROWS) as u16;
    }
    match (&ui.prompt, size) {
        (None, _) if ui.prefs.bare && !ui.program.typing => 0,
        (Some(_), Size::Large) => 3,
        (Some(_), _) => 2,
        (None, _) => 1,
    }
}

/// Draws it.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    if area.height == 0 {
        return;
    }
    if let Some(prompt) = &scene.ui.prompt {
        return prompt::draw(canvas, area, scene, prompt);
    }
    if let Some(question) = &scene.ui.question {
        return asked(canvas, area, scene, question);
    }
    if scene.ui.program.typing {
        let text = "what you type goes to the program; ctrl-] ends that";
        canvas.say(area.x + 1, area.y, text, area.width.saturating_sub(2), Role::Paused);
        return;
    }
    if let Some(lines) = toast(scene) {
        for (y, line) in (area.y..area.bottom()).zip(lines) {
            canvas.say(area.x + 1, y, &line, area.width.saturating_sub(2), Role::Warn);
        }
        return;
    }
    hints(canvas, area, scene, size);
}

const QUESTION_KEYS: &str = "enter does it   any other key does not";

/// An act that waits for enter.
fn asked(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, question: &Question) {
    let room = area.width.saturating_sub(4);
    let text = units::elide(&question.text, room.into());
    canvas.say(area.x + 1, area.y, "▸", 1, Role::Key);
    canvas.say(area.x + 3, area.y, &text, room, Role::Prompt);
    let (row, below) = top(area, 1);
    canvas.say(below.x + 3, below.y, QUESTION_KEYS, room, Role::Muted);
    scene.ui.hits.add(row, Hit::Press(Key::Enter));
    scene.ui.hits.add(below, Hit::Press(Key::Esc));
}

/// Hints in the order of the keymap, as many as there is room for; help and quit always.
fn hints(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let gap = if size == Size::Large { 2 } else { 1 };
    let is_log = scene.ui.tab == Tab::Log;
    // What is typed, and what was looked for, is seen in the log, so that is where it is hinted at.
    let of_log = |action| matches!(action, Action::Type | Action::NextMatch | Action::PreviousMatch);
    let is_here = |binding: &Binding| is_log || !of_log(binding.action);
    let shown =
        |binding: &&Binding| !binding.hint.is_empty() && is_valid(binding.scope, scene.ui.tab) && is_here(binding);
    let mut hints: Vec<(String, &str, Vec<Action>)> = Vec::new();
    for binding in KEYMAP.iter().filter(shown) {
        let Some(key) = scene.ui.prefs.keys.of(binding).first().map(ToString::to_string) else {
            continue;
        };
        let word = match binding.action {
            Action::Filter if is_log => "search",
            _ => binding.hint,
        };
        match hints.last_mut() {
            // Keys with one hint stand together: `+ - zoom`.
            Some((keys, hint, actions)) if *hint == word => {
                *keys = format!("{keys} {key}");
                actions.push(binding.action);
            }
            _ => hints.push((key, word, vec![binding.action])),
        }
    }
    let width = |hint: &(String, &str, Vec<Action>)| units::width(&hint.0) + 1 + hint.1.len() + gap as usize;
    let always = |hint: &(String, &str, Vec<Action>)| matches!(hint.1, "help" | "quit");
    let kept: usize = hints.iter().filter(|hint| always(hint)).map(width).sum();
    let mut room = (area.width as usize).saturating_sub(kept + 1);
    let mut x = area.x + 1;
    for hint in &hints {
        if !always(hint) {
            if width(hint) > room {
                continue;
            }
            room -= width(hint);
        }
        let from = x;
        x = canvas.say(x, area.y, &hint.0, 20, Role::Key);
        x = canvas.say(x + 1, area.y, hint.1, 20, Role::Muted) + gap;
        // Each key of a hint is clicked on its own, the word is the last key's.
        let mut at = from;
        for (word, action) in hint.0.split(' ').zip(&hint.2) {
            let is_last = Some(action) == hint.2.last();
            let end = if is_last {
                x - gap
            } else {
                at + units::width(word) as u16
            };
            let place = Rect {
                x: at,
                y: area.y,
                width: end.saturating_sub(at),
                height: 1,
            };
            scene.ui.hits.add(place, Hit::Do(*action));
            at = end + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ui;
    use roctop_model::{Fresh, Mode, Options, Store};

    #[test]
    fn a_long_message_has_the_rows_that_it_needs() {
        let snap = Store::new(Options::default()).snapshot(Fresh::All);
        let mut ui = Ui::new(Mode::Live);
        (ui.size, ui.prefs.bare) = ((80, 24), true);
        let rows = |ui: &Ui| height(&Scene { ui, snap: &snap }, Size::Medium);
        assert_eq!(rows(&ui), 0);
        ui.toast = Some(("wrote kernels.csv".into(), snap.now));
        assert_eq!(rows(&ui), 1);
        ui.toast = Some(("word ".repeat(30), snap.now));
        assert_eq!(rows(&ui), 2);
        ui.toast = Some(("word ".repeat(300), snap.now));
        assert_eq!(rows(&ui), MAX_ROWS as u16);
    }
}
