//! A table: columns are data, rows are sorted and filtered by the same code for every view.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::column::{Column, ColumnId, Heading, Shown, Worth, layout};
use super::row_cache::Basis;
use crate::Pane;
use crate::hit_map::Hit;
use crate::jump::Target;
use crate::theme::Role;
use crate::{TableState, Ui, tab};
use roctop_model::Snapshot;
use roctop_model::ask::{Cell, Column as AnswerColumn, Unit};
use roctop_trace::units;

/// What a table is drawn from.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) snap: &'a Snapshot,
}

/// A kind of table.
pub(crate) trait Table {
    type Row: Clone + Send + Sync + 'static;
    const COLUMNS: &'static [Column<Self::Row>];
    /// Where its selection and order are kept.
    const PANE: Pane;
    /// Heading of the box.
    const TITLE: &'static str;
    /// The column that sorts by severity or kind, which has no direction; none in most lists.
    const RANKED: Option<ColumnId> = None;
    /// What a row is, for a sentence that says why there is none.
    const WHAT: &'static str;
    /// Which column sorts at first, downwards.
    const SORT: ColumnId;
    /// Columns that say which row it is, in addition to the widest.
    const NAMES: &'static [&'static str] = &["Begin_ns"];
    /// Columns that the flexible column gets before others are added.
    fn least(width: u16) -> u16 {
        (width * 2 / 5).clamp(14, 60)
    }
    /// All rows that pass the filter, unsorted.
    fn rows(scene: &Scene<'_>) -> Vec<Self::Row>;
    /// How many rows there are without the filter.
    fn all(scene: &Scene<'_>) -> usize;
    /// Where Enter leads.
    fn target(_row: &Self::Row, _scene: &Scene<'_>) -> Target {
        Target::Nowhere("nothing to open here")
    }
    /// The row as a term of a filter.
    fn term(_row: &Self::Row, _scene: &Scene<'_>) -> Option<String> {
        None
    }
    /// What else is to be said when there is no row.
    fn hint(_scene: &Scene<'_>) -> Option<&'static str> {
        None
    }
    /// The heading of a column.
    fn heading(_scene: &Scene<'_>, _column: ColumnId) -> Heading {
        Heading::Usual
    }
    /// A last word on the order of the sorted rows.
    fn arrange(rows: Vec<Self::Row>, _scene: &Scene<'_>) -> Vec<Self::Row> {
        rows
    }
    /// How many rows pass the filter, in words: `8 of 318 kernels`.
    fn matches(scene: &Scene<'_>) -> String {
        let (rows, all) = (Self::rows(scene).len(), Self::all(scene));
        let many = match Self::WHAT.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if Self::WHAT.ends_with("ss") => format!("{}es", Self::WHAT),
            None => format!("{}s", Self::WHAT),
        };
        format!("{rows} of {}", units::counted(all as u64, Self::WHAT, &many))
    }
    /// What the sorted rows are made of, where they are worth keeping; none: they are made for each frame.
    fn basis(_scene: &Scene<'_>) -> Option<Basis> {
        None
    }
    /// Identity of a row.
    fn key(row: &Self::Row) -> u64;
    /// What ids of a row are made from, if not from what it is called.
    fn identity(_row: &Self::Row, _scene: &Scene<'_>) -> Option<String> {
        None
    }
    /// Whether a row's text in the flexible column may cover the cells without a value that follow it.
    fn runs_on(_row: &Self::Row) -> bool {
        false
    }
    /// Colours parts of the text in the flexible column of a row that is not selected.
    fn paint(_canvas: &mut Canvas<'_>, _place: Rect, _row: &Self::Row, _scene: &Scene<'_>) {}
    /// How a row looks when it is not selected.
    fn role(_row: &Self::Row, _scene: &Scene<'_>) -> Role {
        Role::Text
    }
}

/// The rows that pass the filter, sorted as the user wants; equal ones by identity, so that they keep their places. While
/// the user moves about, the order is held.
pub(crate) fn sorted<T: Table>(scene: &Scene<'_>) -> Arc<Vec<T::Row>> {
    let state = state::<T>(scene);
    let held = state.held.as_ref().filter(|(until, _)| scene.snap.now < *until);
    let basis = T::basis(scene).filter(|_| held.is_none());
    if let Some(rows) = basis.as_ref().and_then(|basis| state.kept.of(basis)) {
        return rows;
    }
    let held: HashMap<u64, usize> = held.map_or_else(HashMap::new, |(_, keys)| {
        keys.iter().enumerate().map(|(at, &key)| (key, at)).collect()
    });
    let rows = Arc::new(T::arrange(in_order::<T>(T::rows(scene), scene, &held), scene));
    if let Some(basis) = basis {
        state.kept.keep(basis, rows.clone());
    }
    rows
}

/// Rows in their order; those in `held` go first, by their places there.
fn in_order<T: Table>(rows: Vec<T::Row>, scene: &Scene<'_>, held: &HashMap<u64, usize>) -> Vec<T::Row> {
    let sort = state::<T>(scene).sort;
    let column = |id: ColumnId| T::COLUMNS.iter().find(|column| column.id() == id);
    let first = column(sort.column.unwrap_or(T::SORT));
    let (then, descends) = sort
        .then
        .map_or((None, true), |(id, ascending)| (column(id), !ascending));
    let worth = |row: &T::Row| {
        let of = |column: Option<&Column<T::Row>>| column.map_or(Worth::None, |column| (column.worth)(row, scene));
        let place = held.get(&T::key(row)).copied().unwrap_or(usize::MAX);
        (place, of(first), of(then), T::key(row))
    };
    let turned = |order: Ordering, ascending: bool| if ascending { order } else { order.reverse() };
    // What they are worth is sorted, and not the rows: those are large.
    let worths: Vec<(usize, Worth, Worth, u64)> = rows.iter().map(worth).collect();
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&worths[a as usize], &worths[b as usize]);
        let order = turned(a.1.compare(&b.1), sort.ascending);
        let second = turned(a.2.compare(&b.2), !descends);
        a.0.cmp(&b.0).then(order).then(second).then(a.3.cmp(&b.3))
    });
    let mut rows: Vec<Option<T::Row>> = rows.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| rows[at as usize].take()).collect()
}

fn state<'a, T: Table>(scene: &Scene<'a>) -> &'a TableState {
    &scene.ui.tables[T::PANE as usize]
}

/// The selected row; the first, when none is.
pub(crate) fn selected<T: Table>(scene: &Scene<'_>) -> Option<T::Row> {
    let rows = sorted::<T>(scene);
    let key = state::<T>(scene).selected;
    let at = key.and_then(|key| rows.iter().position(|row| T::key(row) == key));
    rows.get(at.unwrap_or(0)).cloned()
}

/// Identities in order.
pub(crate) fn keys<T: Table>(scene: &Scene<'_>) -> Vec<u64> {
    sorted::<T>(scene).iter().map(T::key).collect()
}

/// All rows as comma-separated values in base units.
pub(crate) fn csv<T: Table>(scene: &Scene<'_>) -> String {
    let quote = |text: String| {
        if text.contains([',', '"', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        }
    };
    let columns: Vec<(String, &Column<T::Row>)> = T::COLUMNS
        .iter()
        .filter_map(|column| match T::heading(scene, column.id()) {
            Heading::Usual => Some((column.name.to_string(), column)),
            Heading::Text(name) => Some((name, column)),
            Heading::Absent => None,
        })
        .collect();
    let heads: Vec<String> = columns.iter().map(|column| quote(column.0.clone())).collect();
    let mut out = heads.join(",") + "\n";
    for row in sorted::<T>(scene).iter() {
        let cells: Vec<String> = columns
            .iter()
            .map(|(_, column)| quote((column.worth)(row, scene).raw()))
            .collect();
        out += &cells.join(",");
        out.push('\n');
    }
    out
}

/// A row as an answer has it.
#[derive(Clone, Debug)]
pub(crate) struct AnswerRow {
    pub(crate) key: u64,
    /// What it is called, and its number among those that are called so.
    pub(crate) name: (String, usize),
    pub(crate) cells: Vec<Cell>,
}

/// What a row is called: the text of its widest column, and when it began.
fn name<T: Table>(row: &T::Row, scene: &Scene<'_>) -> String {
    let is_name = |column: &&Column<T::Row>| column.width == 0 || T::NAMES.contains(&column.name);
    let parts = T::COLUMNS.iter().filter(is_name);
    let parts: Vec<String> = parts.map(|column| (column.worth)(row, scene).raw()).collect();
    parts.join("\n")
}

/// The columns that there are now, as answers have them; `shown` are columns that say what is on screen, because their worth
/// is an order.
pub(crate) fn answer_columns<T: Table>(
    scene: &Scene<'_>,
    shown: &[&str],
) -> Vec<(&'static Column<T::Row>, AnswerColumn)> {
    let columns = T::COLUMNS.iter().filter_map(|column| {
        let name = match T::heading(scene, column.id()) {
            Heading::Usual => column.name.to_string(),
            Heading::Text(name) => name,
            Heading::Absent => return None,
        };
        let unit = if shown.contains(&column.name) {
            Unit::Text
        } else {
            column.unit()
        };
        let of = AnswerColumn {
            name,
            unit,
            rank: column.rank,
            is_wide: column.width == 0,
        };
        Some((column, of))
    });
    columns.collect()
}

/// Rows as an answer has them.
pub(crate) fn answer_rows<T: Table>(
    scene: &Scene<'_>,
    rows: &[T::Row],
    shown: &[&str],
    limit: usize,
) -> Vec<AnswerRow> {
    let columns = answer_columns::<T>(scene, shown);
    // Rows of one name have the order of their identities.
    let name = |row| T::identity(row, scene).unwrap_or_else(|| name::<T>(row, scene));
    let mut names: Vec<(u64, String)> = rows.iter().map(|row| (T::key(row), name(row))).collect();
    names.sort_unstable();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let numbered = names.into_iter().map(|(key, name)| {
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        (key, (name, *count - 1))
    });
    let mut numbered: HashMap<u64, (String, usize)> = numbered.collect();
    let answered = rows.iter().take(limit).map(|row| {
        let cells = columns.iter().map(|(column, _)| {
            if shown.contains(&column.name) {
                Cell::Text(column.shown(row, scene, SHOWN_WIDTH).trim().to_string())
            } else {
                (column.worth)(row, scene).into()
            }
        });
        AnswerRow {
            key: T::key(row),
            name: numbered.remove(&T::key(row)).unwrap_or_default(),
            cells: cells.collect(),
        }
    });
    answered.collect()
}

/// Columns that texts of an answer take that are otherwise on screen alone.
const SHOWN_WIDTH: usize = 40;

/// Draws the table in a box; the selected row, or the first.
pub(crate) fn panel<T: Table>(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    right: Option<String>,
    rank: u8,
) -> Option<T::Row> {
    let rows = sorted::<T>(scene);
    let all = T::all(scene);
    let right = right.unwrap_or_else(|| {
        if rows.len() == all {
            all.to_string()
        } else {
            format!("{} of {all}", rows.len())
        }
    });
    let has_focus = scene.ui.pane() == Some(T::PANE);
    let is_one_of_many = scene.ui.lists().len() > 1;
    let title = if has_focus && is_one_of_many {
        format!("▸ {}", T::TITLE)
    } else {
        T::TITLE.into()
    };
    let inner = canvas.frame(area, &title, &right);
    scene.ui.hits.add(area, Hit::Pane(T::PANE));
    if rows.is_empty() {
        let mut lines = tab::why_empty(scene, T::WHAT, all);
        // What to do comes before what collectors say.
        if let Some(hint) = T::hint(scene).filter(|_| all == 0) {
            lines.insert(1.min(lines.len()), hint.into());
        }
        canvas.empty(inner, &lines);
        return None;
    }
    draw::<T>(canvas, inner, scene, &rows, rank);
    let key = state::<T>(scene).selected;
    let at = key.and_then(|key| rows.iter().position(|row| T::key(row) == key));
    rows.get(at.unwrap_or(0)).cloned()
}

/// Draws heading and rows, with the columns up to a rank.
fn draw<T: Table>(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, rows: &[T::Row], rank: u8) {
    if area.height == 0 || area.width < 8 {
        return;
    }
    let (ui, state) = (scene.ui, state::<T>(scene));
    let has_focus = ui.pane() == Some(T::PANE);
    let here = |id: ColumnId| !matches!(T::heading(scene, id), Heading::Absent);
    // Times in one unit have as many digits as they need.
    let wide = |column: &Column<T::Row>| match (ui.prefs.unit, &column.text) {
        (Some(_), Shown::Duration) => {
            let texts = rows.iter().map(|row| units::width(&column.shown(row, scene, 0)) as u16);
            texts.max().unwrap_or(0).max(column.width)
        }
        _ => column.width,
    };
    let shown = layout(
        T::COLUMNS,
        &here,
        &wide,
        state.columns.as_deref(),
        area.width,
        T::least(area.width),
        rank,
    );
    *state.shown.borrow_mut() = shown.iter().map(|(column, _)| column.id()).collect();
    headings::<T>(canvas, area, scene, rows, &shown);
    let height = area.height as usize - 1;
    let at = state
        .selected
        .and_then(|key| rows.iter().position(|row| T::key(row) == key));
    let offset = scroll(state, at, rows.len(), height);
    let below = rows.len().saturating_sub(offset + height);
    if below > 0 {
        // On the border: a separate row would be one less.
        let text = format!(" ↓{} more ", units::grouped(below as u64));
        canvas.right(area.right().saturating_sub(1), area.bottom(), &text, Role::Muted);
    }
    for (line, row) in rows.iter().skip(offset).take(height).enumerate() {
        let y = area.y + 1 + line as u16;
        let is_selected = has_focus && state.selected == Some(T::key(row));
        let place = Rect { y, height: 1, ..area };
        ui.hits.add(place, Hit::Row(T::PANE, T::key(row)));
        let role = if is_selected {
            Role::Selected
        } else {
            T::role(row, scene)
        };
        let mut x = area.x + 2;
        if is_selected {
            canvas.say(area.x, y, &" ".repeat(area.width as usize), area.width, role);
            canvas.say(area.x, y, "▸", 1, role);
        }
        let mut covered = x;
        for (at, &(column, width)) in shown.iter().enumerate() {
            if column.width == 0 {
                let more = if T::runs_on(row) {
                    empty(row, scene, &shown[at + 1..])
                } else {
                    0
                };
                let room = width + more;
                let text = column.shown(row, scene, room as usize);
                canvas.say(x, y, &units::elide(&text, room as usize), room, role);
                if !is_selected {
                    let place = Rect {
                        x,
                        y,
                        width: room,
                        height: 1,
                    };
                    T::paint(canvas, place, row, scene);
                }
                covered = x + room;
            } else if x >= covered {
                let text = column.shown(row, scene, width as usize);
                canvas.right(x + width, y, &units::elide(&text, width as usize), role);
            }
            x += width + 1;
        }
    }
}

/// Columns of the first cells that have no value.
fn empty<R>(row: &R, scene: &Scene<'_>, cells: &[(&Column<R>, u16)]) -> u16 {
    let cells = cells
        .iter()
        .take_while(|(column, _)| (column.worth)(row, scene) == Worth::None);
    cells.map(|(_, width)| width + 1).sum()
}

/// The direction of the values down the list. Texts are in the order of the alphabet where numbers descend.
fn arrow(ascending: bool, mut worths: impl Iterator<Item = Worth>) -> &'static str {
    let known = worths.find(|worth| *worth != Worth::None);
    if ascending == matches!(known, Some(Worth::Text(_))) {
        "▼"
    } else {
        "▲"
    }
}

/// Draws the headings of the columns that are shown, each where a click sorts by it.
fn headings<T: Table>(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    rows: &[T::Row],
    shown: &[(&Column<T::Row>, u16)],
) {
    let state = state::<T>(scene);
    let names: Vec<String> = T::COLUMNS
        .iter()
        .filter_map(|column| match T::heading(scene, column.id()) {
            Heading::Text(text) => Some(text),
            _ => None,
        })
        .collect();
    let sorted_by = state.sort.column.unwrap_or(T::SORT);
    let mut x = area.x + 2;
    for &(column, width) in shown {
        let worths = rows.iter().map(|row| (column.worth)(row, scene));
        let (mark, role) = match column.id() {
            id if id != sorted_by => ("", Role::Head),
            id if T::RANKED == Some(id) => ("", Role::Sorted),
            _ => (arrow(state.sort.ascending, worths), Role::Sorted),
        };
        let title = match T::heading(scene, column.id()) {
            Heading::Text(text) => {
                let room = (width as usize).saturating_sub(mark.chars().count());
                let others = names.iter().map(String::as_str);
                let text = units::elide_parts(&text, room, others).unwrap_or_else(|| units::elide(&text, room));
                format!("{text}{mark}")
            }
            _ => format!("{}{mark}", column.title),
        };
        if column.width == 0 || column.title.ends_with(' ') {
            // A heading that ends with a space stands to the left, as the texts below it do.
            let title = format!("{}{mark}", column.title.trim_end());
            canvas.say(x, area.y, &title, width, role);
        } else {
            canvas.right(x + width, area.y, &units::elide(&title, width as usize), role);
        }
        let head = Rect {
            x,
            y: area.y,
            width,
            height: 1,
        };
        scene.ui.hits.add(head, Hit::Head(T::PANE, column.id()));
        x += width + 1;
    }
}

/// The first row shown: moves only as far as it must for the selection to be seen.
fn scroll(state: &TableState, selected: Option<usize>, rows: usize, height: usize) -> usize {
    let most = rows.saturating_sub(height);
    let mut at = state.offset.get().min(most);
    if let Some(selected) = selected {
        if selected < at {
            at = selected;
        } else if height > 0 && selected >= at + height {
            at = selected + 1 - height;
        }
    } else {
        at = 0;
    }
    state.offset.set(at);
    at
}
