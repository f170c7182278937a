//! What stands in front of a view: help made from the keymap, and menus.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::table::Scene;
use crate::Popup;
use crate::columns;
use crate::hit_map::Hit;
use crate::key::Key;
use crate::keymap::{Action, Binding, Group, KEYMAP, Keys, Scope, is_valid};
use crate::palette::COMMANDS;
use crate::theme::Role;
use roctop_model::Snapshot;
use roctop_trace::units;

/// Draws it.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, latest: &Snapshot, popup: Popup) {
    match popup {
        Popup::Help(line) => help(canvas, area, scene, line),
        Popup::Quit => menu(canvas, area, scene, "The program still runs", QUIT),
        Popup::Columns => columns(canvas, area, scene),
        Popup::Signals => menu(canvas, area, scene, "Signal to the program", SIGNALS),
        Popup::Interrupted => {
            let next = scene.ui.program.escalation.map(|next| next.text(latest.now));
            menu(canvas, area, scene, &next.unwrap_or_default(), INTERRUPTED);
        }
    }
}

const QUIT: &[(&str, &str)] = &[
    ("d", "detach: leave it running, quit roctop"),
    ("s", "stop it: SIGTERM, then quit"),
    ("c", "cancel"),
];
const SIGNALS: &[(&str, &str)] = &[
    ("i", "SIGINT   interrupt (as ctrl-c)"),
    ("t", "SIGTERM  ask to stop"),
    ("k", "SIGKILL  kill now; what was recorded stays"),
    ("z", "SIGSTOP  stop for a while"),
    ("r", "SIGCONT  run on"),
    ("d", "detach: leave it running, quit roctop"),
    ("c", "cancel"),
];
const INTERRUPTED: &[(&str, &str)] = &[
    ("w", "wait: send nothing by itself"),
    ("t", "SIGTERM  ask to stop, now"),
    ("k", "SIGKILL  kill now; what was recorded stays"),
    ("d", "detach: leave it running, quit roctop"),
    ("c", "cancel, as w; ctrl-c: the next one now"),
];

fn menu(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, title: &str, rows: &[(&str, &str)]) {
    let widest = rows
        .iter()
        .map(|row| row.1.len())
        .max()
        .unwrap_or(0)
        .max(title.len() + 4) as u16
        + 8;
    let (width, height) = (widest.min(area.width), (rows.len() as u16 + 4).min(area.height));
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 3,
        width,
        height,
    };
    canvas.clear(place);
    let inner = canvas.frame(place, title, "");
    for (i, (key, text)) in rows.iter().enumerate() {
        let y = inner.y + 1 + i as u16;
        if y < inner.bottom() {
            canvas.say(inner.x + 2, y, key, 2, Role::Key);
            canvas.say(inner.x + 5, y, text, inner.width.saturating_sub(6), Role::Text);
            let place = Rect { y, height: 1, ..inner };
            scene
                .ui
                .hits
                .add(place, Hit::Press(Key::Char(key.chars().next().unwrap_or('c'))));
        }
    }
}

/// The columns of the list that has the focus: which are on, and which of those have no room.
fn columns(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) {
    let Some(pane) = scene.ui.pane() else { return };
    let state = scene.ui.table();
    let chosen = state.and_then(|state| state.columns.clone());
    let shown = state.map(|state| state.shown.borrow().clone()).unwrap_or_default();
    let mut here: Vec<_> = columns::words(pane).into_iter().enumerate().collect();
    here.retain(|(_, (id, _))| pane.list().has_column(scene, *id));
    let (width, height) = (44.min(area.width), (here.len() as u16 + 4).min(area.height));
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 3,
        width,
        height,
    };
    canvas.clear(place);
    let inner = canvas.frame(place, &format!("Columns of {}", pane.word()), "* usual   esc close");
    for (line, (at, (id, word))) in here.into_iter().enumerate() {
        let y = inner.y + 1 + line as u16;
        let Some(letter) = columns::letter(at).filter(|_| y < inner.bottom()) else {
            break;
        };
        let is_shown = shown.contains(&id);
        let is_on = chosen.as_ref().map_or(is_shown, |chosen| chosen.contains(&id));
        let mark = match (is_on, is_shown) {
            (true, true) => "[x]",
            (true, false) => "[x] no room:",
            (false, _) => "[ ]",
        };
        canvas.say(inner.x + 2, y, &letter.to_string(), 1, Role::Key);
        let text = format!("{mark} {word}");
        canvas.say(inner.x + 5, y, &text, inner.width.saturating_sub(6), Role::Text);
        let row = Rect { y, height: 1, ..inner };
        scene.ui.hits.add(row, Hit::Press(Key::Char(letter)));
    }
}

/// A row of help: keys and what they do.
fn line(keys: &Keys, binding: &Binding) -> (String, String) {
    let keys: Vec<String> = keys.of(binding).iter().map(ToString::to_string).collect();
    (keys.join(" "), binding.help.to_string())
}

const FILTERS: [(&str, &str); 9] = [
    ("gemm", "name contains it; any case unless a capital is typed"),
    ("\"f<4>(int)\"", "name contains exactly this"),
    ("/mt\\d+/i  ~re  !~re", "regular expression; not"),
    ("?gmm", "letters in this order"),
    ("dur>1ms  bytes>=64KiB  bw<2GB/s", "numbers with units"),
    ("dev=0  stream=1,3  queue=2..4", "lists and ranges"),
    ("dir=h2d  domain=hip*  thread=main", "texts, * for any part"),
    ("calls>100  p99>2ms  total>1%", "of the rows of a table"),
    (
        "a b = a & b   a | b   !a   ( )",
        "and, or, not; a field that a thing lacks says nothing",
    ),
];

/// Every sign of the screen, and what it means.
pub(crate) const LEGEND: [(&str, &str); 25] = [
    ("a–z", "kernel, by its letter"),
    ("S L", "call that waits, launch"),
    ("M A", "memory call, other call"),
    ("↓ ↑", "copy to, from a GPU"),
    ("↔ =", "other copy, fill"),
    ("W C", "ranks wait, transfer"),
    ("─ ▾", "range, mark"),
    ("~", "the run-time's own work"),
    ("▒", "open: not ended yet"),
    ("░", "left out by the filter"),
    ("╫", "several in one column"),
    ("▀", "two kernels, by share"),
    ("█ ▁", "one kernel's busy time"),
    ("▚ ▖", "average: no slices kept"),
    ("▌ ·", "end of a slice, idle"),
    ("[ ] < >", "selected, belongs to it"),
    ("^", "copy made by a call"),
    ("▲ !", "alert; clipped value"),
    ("▼ ▲", "descending, ascending"),
    ("▸", "selected; has the focus"),
    ("– ≥", "not known, at least"),
    ("≈ ≤", "estimate, end of scale"),
    ("✕", "takes a term away"),
    ("● ❚❚", "live, paused"),
    ("■ ↺", "ended, replay"),
];

/// Keys, what they do, how it looks.
type Line = (String, String, Role);

/// Whether a key does anything on this screen: a program's has no job, and a job's has one view.
fn is_there(scene: &Scene<'_>, binding: &Binding) -> bool {
    match (binding.action, binding.scope) {
        (Action::Show(tab), _) => tab.is_there(scene.snap),
        (_, Scope::Job) => scene.snap.job.is_some(),
        _ => true,
    }
}

/// Title and rows of a group.
fn list(scene: &Scene<'_>, group: Group) -> Vec<Line> {
    let keys = &scene.ui.prefs.keys;
    let title = Group::ALL
        .iter()
        .find(|known| known.0 == group)
        .map_or("", |known| known.1);
    let mut list = vec![(String::new(), title.to_string(), Role::Accent)];
    let of_group = KEYMAP
        .iter()
        .filter(|binding| binding.group == group && is_there(scene, binding));
    list.extend(
        of_group
            .map(|binding| line(keys, binding))
            .map(|(keys, help)| (keys, help, Role::Text)),
    );
    list.push((String::new(), String::new(), Role::Text));
    list
}

/// All of the help that has what is looked for, each in a line.
fn found(scene: &Scene<'_>) -> Vec<Vec<Line>> {
    let wanted = scene.ui.help.text.to_lowercase();
    let keys = &scene.ui.prefs.keys;
    let bindings = KEYMAP.iter().filter(|binding| is_there(scene, binding)).map(|binding| {
        let (keys, help) = line(keys, binding);
        let of = if is_valid(binding.scope, scene.ui.tab) {
            ""
        } else {
            "   (other views)"
        };
        (keys, format!("{help}   :{}{of}", binding.name))
    });
    let command = |&(name, wants, does): &(&str, &str, &str)| (format!(":{name} {wants}"), does.to_string());
    let row = |(sign, text): &(&str, &str)| ((*sign).to_string(), (*text).to_string());
    let all = bindings
        .chain(COMMANDS.iter().map(command))
        .chain(FILTERS.iter().map(row))
        .chain(LEGEND.iter().map(row));
    let has = |(keys, text): &(String, String)| format!("{keys} {text}").to_lowercase().contains(&wanted);
    let rows = all.filter(has).map(|(keys, text)| vec![(keys, text, Role::Text)]);
    rows.collect()
}

/// Everything: keys by group in columns, the language of filters, signs.
fn everything(scene: &Scene<'_>, width: u16) -> Vec<Vec<Line>> {
    // Groups stand one below the other, in two or three columns.
    let columns: &[&[Group]] = if width >= 110 {
        &[&[Group::View, Group::App], &[Group::Time, Group::Move], &[Group::Table]]
    } else {
        &[&[Group::View, Group::Move, Group::App], &[Group::Time, Group::Table]]
    };
    let blank = || (String::new(), String::new(), Role::Text);
    let lists = columns.iter().map(|groups| {
        let lines = groups.iter().flat_map(|&group| list(scene, group));
        lines.collect::<Vec<Line>>()
    });
    let lists: Vec<Vec<Line>> = lists.collect();
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let row = |at: usize| {
        lists
            .iter()
            .map(|list| list.get(at).cloned().unwrap_or_else(blank))
            .collect()
    };
    let mut rows: Vec<Vec<Line>> = (0..longest).map(row).collect();
    let one = |keys: &str, text: &str, role| vec![(keys.to_string(), text.to_string(), role)];
    rows.push(one("", "FILTER (typed after /)", Role::Accent));
    rows.extend(FILTERS.iter().map(|(keys, text)| one(keys, text, Role::Text)));
    rows.push(one("", "", Role::Text));
    rows.push(one("", "SIGNS", Role::Accent));
    let sign = |(sign, text): &(&str, &str)| ((*sign).to_string(), (*text).to_string(), Role::Text);
    let signs = LEGEND.chunks(columns.len());
    rows.extend(signs.map(|signs| {
        let mut signs: Vec<Line> = signs.iter().map(sign).collect();
        signs.resize_with(columns.len(), blank);
        signs
    }));
    let names = format!(
        "names {:?}   times since the session began, CLOCK_BOOTTIME",
        scene.ui.prefs.names
    );
    rows.push(one("", &names, Role::Muted));
    rows
}

fn help(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, first: u16) {
    canvas.clear(area);
    scene.ui.hits.add(area, Hit::Press(Key::Esc));
    let search = &scene.ui.help;
    let title = match (search.is_typed, search.text.as_str()) {
        (false, "") => "Help".into(),
        (is_typed, text) => format!("Help: /{text}{}", if is_typed { "▌" } else { "" }),
    };
    let inner = canvas.frame(area, &title, "/ search   j k scroll   esc close");
    let rows = if search.text.is_empty() {
        everything(scene, inner.width)
    } else {
        found(scene)
    };
    if rows.is_empty() {
        let text = format!("nothing in the help has {:?}", search.text);
        canvas.say(inner.x + 1, inner.y, &text, inner.width.saturating_sub(2), Role::Muted);
    }
    let columns = if inner.width >= 110 { 3 } else { 2 };
    let width = inner.width / columns;
    let first = (first as usize).min(rows.len().saturating_sub(inner.height as usize));
    for (i, row) in rows.iter().skip(first).take(inner.height as usize).enumerate() {
        let y = inner.y + i as u16;
        let single = row.len() == 1;
        for (at, (keys, text, role)) in row.iter().enumerate() {
            let x = inner.x + 1 + at as u16 * width;
            let room = if single {
                inner.width - 2
            } else {
                width.saturating_sub(2)
            };
            let indent = if keys.is_empty() {
                0
            } else if single {
                36
            } else {
                13
            };
            canvas.say(
                x,
                y,
                &units::elide(keys, indent.max(1) as usize - usize::from(indent > 0)),
                indent,
                Role::Key,
            );
            canvas.say(x + indent, y, text, room.saturating_sub(indent), *role);
        }
    }
}
