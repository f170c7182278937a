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
const COMMAND_KEYS: &str = "enter runs ▸   ↓ ↑ choose   tab completes   ↑ history   esc cancel";
const KEYS: &str = "enter apply   esc cancel   ↑ ↓ history   tab fields, values, @names   ctrl-s save under a name";

/// Draws the prompt: a row for the line, as many as there are for help with it.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, prompt: &Prompt) {
    let (row, below) = top(area, 1);
    line(canvas, row, scene, prompt);
    if below.height == 0 {
        return;
    }
    if prompt.asks == Asks::Command {
        return command(canvas, below, scene, prompt);
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
        Asks::Command => (":", String::new()),
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

/// What is wrong with a command, or what it still wants; the list above has what may be meant.
fn command(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, prompt: &Prompt) {
    let typed = prompt.text();
    let (text, role) = match (&prompt.error, palette::expected(&typed)) {
        (Some(error), _) => (error.message.clone(), Role::Bad),
        (None, Some(expected)) => (expected, Role::Muted),
        (None, None) if palette::candidates(scene.ui, scene.snap, &typed).is_empty() => {
            ("no such command".into(), Role::Bad)
        }
        (None, None) => (COMMAND_KEYS.into(), Role::Muted),
    };
    let room = area.width.saturating_sub(2);
    canvas.say(area.x + 1, area.y, &units::fit(&text, room as usize), room, role);
}

/// Draws commands and keys that may be meant by what was typed, above the line: name, key, what it does.
pub(crate) fn list(canvas: &mut Canvas<'_>, body: Rect, scene: &Scene<'_>, prompt: &Prompt) {
    let found = palette::candidates(scene.ui, scene.snap, &prompt.text());
    let rows = found
        .len()
        .min(MAX_CANDIDATES)
        .min(usize::from(body.height.saturating_sub(2)));
    if rows == 0 {
        return;
    }
    let height = rows as u16 + 2;
    let area = Rect {
        y: body.bottom() - height,
        height,
        ..body
    };
    canvas.clear(area);
    let title = format!("{} of {}", (prompt.chosen + 1).min(found.len()), found.len());
    let inner = canvas.frame(area, "Commands and keys", &title);
    let skipped = (prompt.chosen + 1).saturating_sub(rows);
    let name_columns = usize::from(inner.width / 3).clamp(16, 44);
    for (line, meant) in found.iter().enumerate().skip(skipped).take(rows) {
        let y = inner.y + (line - skipped) as u16;
        let is_chosen = line == prompt.chosen;
        let role = |usual| if is_chosen { Role::Selected } else { usual };
        if is_chosen {
            canvas.say(
                inner.x,
                y,
                &" ".repeat(inner.width as usize),
                inner.width,
                Role::Selected,
            );
            canvas.say(inner.x, y, "▸", 1, Role::Selected);
        }
        let name = format!("{} {}", meant.line, meant.wants);
        let name = units::elide(name.trim_end(), name_columns);
        canvas.say(inner.x + 2, y, &name, name_columns as u16, role(Role::Text));
        let x = inner.x + 3 + name_columns as u16;
        canvas.say(x, y, &meant.keys, KEY_COLUMNS, role(Role::Key));
        let x = x + KEY_COLUMNS + 1;
        let room = inner.right().saturating_sub(x);
        canvas.say(x, y, &units::elide(meant.does, room as usize), room, role(Role::Muted));
    }
}

/// Rows of the list of commands.
const MAX_CANDIDATES: usize = 12;
/// Columns of their keys.
const KEY_COLUMNS: u16 = 12;
