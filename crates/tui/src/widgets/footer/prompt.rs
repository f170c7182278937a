//! The line that is typed, and what may be meant by it.

use ratatui::layout::Rect;

use crate::prompt::{Asks, Prompt};
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::table::Scene;
use crate::{palette, tab};
use roctop_model::query::complete;
use roctop_trace::units;

const SEARCH: &str = "word  \"text\"  /re/  ~re !~re  ?fuzzy  & | ! ( )   what to look for; n further up, N down";
const FILTER: &str = "word  \"text\"  /re/  ~re !~re  dur>1ms  dev=0  stream=1,3  total>1%  bytes>=1MiB  & | ! ( )";
const KEYS: &str = "enter apply   esc cancel   ↑ ↓ history   tab fields, values, @presets";

/// Draws the prompt: a row for the line, as many as there are for help with it.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, prompt: &Prompt) {
    let (row, below) = top(area, 1);
    line(canvas, row, scene, prompt);
    if below.height == 0 {
        return;
    }
    if prompt.asks == Asks::Command {
        return candidates(canvas, below, scene, &prompt.text());
    }
    let room = below.width.saturating_sub(2);
    let (text, role) = help(scene, prompt);
    canvas.say(below.x + 1, below.y, &units::fit(&text, room as usize), room, role);
    if below.height > 1 {
        canvas.say(below.x + 1, below.y + 1, KEYS, room, Role::Muted);
    }
}

/// The line itself, with how much passes it.
fn line(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, prompt: &Prompt) {
    let (sign, matches) = match prompt.asks {
        Asks::Command => (":", "tab completes".into()),
        _ => ("/", tab::matches(scene)),
    };
    let room = (area.width as usize).saturating_sub(units::width(&matches) + 6).max(10);
    // The cursor is always seen: the line is moved to the left as far as it must.
    let skipped = (prompt.cursor + 1).saturating_sub(room);
    canvas.say(area.x, area.y, sign, 1, Role::Key);
    let text: Vec<char> = prompt.text().chars().collect();
    for (i, &c) in text.iter().chain([&' ']).enumerate().skip(skipped).take(room) {
        let x = area.x + 1 + (i - skipped) as u16;
        let is_error = prompt.error.as_ref().is_some_and(|error| error.column == i);
        let role = if is_error { Role::PromptError } else { Role::Prompt };
        // What is missing at the end has a place, too.
        let shown = if is_error && c == ' ' { '_' } else { c };
        canvas.say(x, area.y, shown.encode_utf8(&mut [0; 4]), 1, role);
        if i == prompt.cursor {
            let cell = Rect { x, width: 1, ..area };
            canvas.paint(cell, Role::Selected);
        }
    }
    canvas.right(area.right().saturating_sub(1), area.y, &matches, Role::Muted);
}

/// What is wrong with the line, else how it can go on, else what there is.
fn help(scene: &Scene<'_>, prompt: &Prompt) -> (String, Role) {
    if let Some(error) = &prompt.error {
        let place = error.column + 1;
        let text = format!("column {place}: {}   (the last valid filter stays)", error.message);
        return (text, Role::Bad);
    }
    let begun = complete::candidates(&prompt.text(), prompt.cursor, &scene.ui.prefs.presets);
    if !begun.words.is_empty() {
        return (format!("tab: {}", begun.words.join("  ")), Role::Key);
    }
    let text = if prompt.asks == Asks::Search { SEARCH } else { FILTER };
    (text.into(), Role::Muted)
}

/// What may be meant by what was typed of a command: the words, and what the first does.
fn candidates(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, typed: &str) {
    let found = palette::candidates(scene.ui, scene.snap, typed);
    let room = area.width.saturating_sub(2);
    let words: Vec<&str> = found.iter().map(|meant| meant.line.as_str()).collect();
    let (words, role) = match (&words[..], palette::expected(typed)) {
        ([], Some(expected)) => (expected, Role::Muted),
        ([], None) => ("no such command".into(), Role::Bad),
        _ => (words.join("  "), Role::Key),
    };
    canvas.say(area.x + 1, area.y, &units::fit(&words, room as usize), room, role);
    if let Some(meant) = found.first().filter(|_| area.height > 1) {
        let text = format!("{} {}", meant.line, meant.help());
        canvas.say(area.x + 1, area.y + 1, &text, room, Role::Muted);
    }
}
