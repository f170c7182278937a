//! What stands in front of a view: help made from the keymap, and menus.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::table::Scene;
use crate::Popup;
use crate::columns;
use crate::hit_map::Hit;
use crate::key::Key;
use crate::keymap::{Action, Binding, Group, KEYMAP, Keys, Scope, is_valid};
use crate::menu::{Menu, MenuKind};
use crate::palette::COMMANDS;
use crate::theme::Role;
use roctop_model::Snapshot;
use roctop_trace::units;

/// Draws it.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, latest: &Snapshot, popup: &Popup) {
    match popup {
        Popup::Help(line) => help(canvas, area, scene, *line),
        Popup::Columns => columns(canvas, area, scene),
        Popup::Menu(menu) => draw_menu(canvas, area, scene, latest, menu),
    }
}

/// A place for a box in the middle.
fn middle(area: Rect, width: u16, rows: usize) -> Rect {
    let (width, height) = (width.min(area.width), (rows as u16 + 4).min(area.height));
    Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 3,
        width,
        height,
    }
}

const MENU_KEYS: &str = "letter or ↓ ↑ chooses   enter does it   esc";

fn draw_menu(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, latest: &Snapshot, menu: &Menu) {
    let title = match menu.kind {
        MenuKind::Quit | MenuKind::Rerun(_) => "The program still runs".into(),
        MenuKind::Signals => "Signal to the program".into(),
        MenuKind::Interrupted => {
            let next = scene.ui.program.escalation.map(|next| next.text(latest.now));
            next.unwrap_or_default()
        }
    };
    let choices = menu.kind.choices().iter().map(|choice| (Some(choice.0), choice.1));
    let rows: Vec<(Option<char>, &str)> = [(None, menu.kind.nothing())].into_iter().chain(choices).collect();
    let widths = rows.iter().map(|row| units::width(row.1) + 7);
    let widest = widths.max().unwrap_or(0).max(units::width(MENU_KEYS) + 4);
    let place = middle(area, widest as u16 + 2, rows.len() + 1);
    canvas.clear(place);
    let inner = canvas.frame(place, &title, "");
    let room = inner.width.saturating_sub(6);
    for (at, (y, (letter, text))) in (inner.y + 1..inner.bottom()).zip(&rows).enumerate() {
        let is_chosen = at == menu.chosen;
        let row = Rect { y, height: 1, ..inner };
        let role = |usual| if is_chosen { Role::Selected } else { usual };
        if is_chosen {
            canvas.say(inner.x, y, &" ".repeat(inner.width.into()), inner.width, Role::Selected);
            canvas.say(inner.x + 1, y, "▸", 1, Role::Selected);
        }
        let key = letter.map(String::from).unwrap_or_default();
        canvas.say(inner.x + 3, y, &key, 1, role(Role::Key));
        canvas.say(inner.x + 6, y, text, room, role(Role::Text));
        // A click chooses; a second click on the choice does it.
        let other = letter.map_or(Key::Esc, Key::Char);
        let key = if is_chosen { Key::Enter } else { other };
        scene.ui.hits.add(row, Hit::Press(key));
    }
    if let Some(y) = inner
        .bottom()
        .checked_sub(1)
        .filter(|&y| y > inner.y + rows.len() as u16)
    {
        canvas.say(inner.x + 2, y, MENU_KEYS, inner.width.saturating_sub(3), Role::Muted);
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
    let place = middle(area, 44, here.len());
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
    rows.push(one("", &acts(scene), Role::Muted));
    rows.push(one("", "", Role::Text));
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

/// Which keys wait for enter.
fn acts(scene: &Scene<'_>) -> String {
    let acts = KEYMAP.iter().filter(|binding| binding.action.is_act());
    let keys = acts.filter_map(|binding| scene.ui.prefs.keys.of(binding).first());
    let keys: Vec<String> = keys.map(ToString::to_string).collect();
    format!("{} do nothing without enter; ctrl-c interrupts at once", keys.join(" "))
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
