//! A table: columns are data, rows are sorted and filtered by the same code for every view.

use std::cell::Cell as Shared;
use std::cmp::Ordering;
use std::collections::HashMap;

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::format;
use crate::model::Snapshot;
use crate::ui::theme::Role;
use crate::ui::{Sort, TableState, Ui};

/// What a table is drawn from.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) snap: &'a Snapshot,
}

/// What a row is worth in a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Worth {
    None,
    Number(f64),
    Text(String),
}

impl Worth {
    pub(crate) fn whole(value: u64) -> Self {
        Self::Number(value as f64)
    }
    pub(crate) fn maybe(value: Option<u64>) -> Self {
        value.map_or(Self::None, Self::whole)
    }

    /// Ascending; what is not known is the least.
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::None, Self::None) => Ordering::Equal,
            (Self::None, _) | (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (_, Self::None) | (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }

    fn raw(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Number(value) if value.fract() == 0.0 && value.abs() < 9e15 => format!("{}", *value as i64),
            Self::Number(value) => format!("{value:.6}"),
            Self::Text(text) => text.clone(),
        }
    }
}

/// A column.
pub(crate) struct Column<R: 'static> {
    /// Heading.
    pub(crate) title: &'static str,
    /// Heading in files: base units.
    pub(crate) name: &'static str,
    /// Columns on screen; 0 takes what is left.
    pub(crate) width: u16,
    /// The lower, the longer it stays when room is short.
    pub(crate) rank: u8,
    /// For sorting and files.
    pub(crate) worth: fn(&R, &Scene<'_>) -> Worth,
    /// On screen.
    pub(crate) text: fn(&R, &Scene<'_>, usize) -> String,
}

/// A kind of table.
pub(crate) trait Table {
    type Row: 'static;
    const COLUMNS: &'static [Column<Self::Row>];
    /// Which column sorts at first, downwards.
    const SORT: usize;
    /// Columns that the flexible column gets before others are added.
    fn least(width: u16) -> u16 {
        (width * 2 / 5).clamp(14, 60)
    }
    /// All rows that pass the filter, unsorted.
    fn rows(scene: &Scene<'_>) -> Vec<Self::Row>;
    /// Identity of a row.
    fn key(row: &Self::Row) -> u64;
    /// How a row looks when it is not selected.
    fn role(_row: &Self::Row, _scene: &Scene<'_>) -> Role {
        Role::Text
    }
}

/// The rows that pass the filter, sorted as the user wants; equal ones by identity, so that they keep their places. While
/// the user moves about, the order is held.
pub(crate) fn sorted<T: Table>(scene: &Scene<'_>, state: &TableState) -> Vec<T::Row> {
    let rows = T::rows(scene);
    let sort = state.sort;
    let column = &T::COLUMNS[sort.column.unwrap_or(T::SORT).min(T::COLUMNS.len() - 1)];
    let held: HashMap<u64, usize> = match &state.held {
        Some((until, keys)) if scene.snap.now < *until => keys.iter().enumerate().map(|(at, &key)| (key, at)).collect(),
        _ => HashMap::new(),
    };
    let place = |row: &T::Row| held.get(&T::key(row)).copied().unwrap_or(usize::MAX);
    let worth = |row: T::Row| (place(&row), (column.worth)(&row, scene), row);
    let mut keyed: Vec<(usize, Worth, T::Row)> = rows.into_iter().map(worth).collect();
    keyed.sort_by(|a, b| {
        let order = a.1.compare(&b.1);
        let order = if sort.ascending { order } else { order.reverse() };
        a.0.cmp(&b.0).then(order).then_with(|| T::key(&a.2).cmp(&T::key(&b.2)))
    });
    keyed.into_iter().map(|row| row.2).collect()
}

/// Identities in order.
pub(crate) fn keys<T: Table>(scene: &Scene<'_>, state: &TableState) -> Vec<u64> {
    sorted::<T>(scene, state).iter().map(T::key).collect()
}

/// All rows as comma-separated values in base units.
pub(crate) fn csv<T: Table>(scene: &Scene<'_>, state: &TableState) -> String {
    let quote = |text: String| {
        if text.contains([',', '"', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        }
    };
    let heads: Vec<String> = T::COLUMNS.iter().map(|column| quote(column.name.to_string())).collect();
    let mut out = heads.join(",") + "\n";
    for row in sorted::<T>(scene, state) {
        let cells: Vec<String> = T::COLUMNS
            .iter()
            .map(|column| quote((column.worth)(&row, scene).raw()))
            .collect();
        out += &cells.join(",");
        out.push('\n');
    }
    out
}

/// The columns that fit: (index, width), in their order.
fn layout<R>(columns: &[Column<R>], width: u16, least: u16, rank: u8) -> Vec<(usize, u16)> {
    let flexible = |column: &Column<R>| column.width == 0;
    let mut order: Vec<usize> = (0..columns.len()).filter(|&at| columns[at].rank <= rank).collect();
    order.sort_by_key(|&at| columns[at].rank);
    let mut left = width.saturating_sub(3);
    let mut shown = Vec::new();
    for at in order {
        let takes = if flexible(&columns[at]) {
            least
        } else {
            columns[at].width + 1
        };
        if takes <= left {
            left -= takes;
            shown.push(at);
        } else if flexible(&columns[at]) {
            shown.push(at);
            left = 0;
        }
    }
    shown.sort_unstable();
    let grow = left;
    shown
        .into_iter()
        .map(|at| {
            (
                at,
                if flexible(&columns[at]) {
                    (least + grow).min(width.saturating_sub(3))
                } else {
                    columns[at].width
                },
            )
        })
        .collect()
}

/// How a table is to be drawn.
pub(crate) struct Look<'a> {
    pub(crate) sort: Sort,
    pub(crate) selected: Option<u64>,
    pub(crate) offset: Option<&'a Shared<usize>>,
    /// Columns up to this rank only.
    pub(crate) rank: u8,
}

/// Draws heading and rows.
pub(crate) fn draw<T: Table>(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, rows: &[T::Row], look: &Look<'_>) {
    if area.height == 0 || area.width < 8 {
        return;
    }
    let columns = T::COLUMNS;
    let shown = layout(columns, area.width, T::least(area.width), look.rank);
    let sorted_by = look.sort.column.unwrap_or(T::SORT);
    let mut x = area.x + 2;
    for &(at, width) in &shown {
        let column = &columns[at];
        let (mark, role) = match (at == sorted_by, look.sort.ascending) {
            (false, _) => ("", Role::Head),
            (true, false) => ("▼", Role::Sorted),
            (true, true) => ("▲", Role::Sorted),
        };
        let title = format!("{}{mark}", column.title);
        if column.width == 0 {
            canvas.say(x, area.y, &title, width, role);
        } else {
            canvas.right(x + width, area.y, &format::elide(&title, width as usize), role);
        }
        x += width + u16::from(column.width > 0);
        x += u16::from(column.width == 0);
    }
    let height = area.height as usize - 1;
    let at = look
        .selected
        .and_then(|key| rows.iter().position(|row| T::key(row) == key));
    let offset = scroll(look.offset, at, rows.len(), height);
    for (line, row) in rows.iter().skip(offset).take(height).enumerate() {
        let y = area.y + 1 + line as u16;
        let is_selected = look.selected == Some(T::key(row));
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
        for &(at, width) in &shown {
            let text = (columns[at].text)(row, scene, width as usize);
            if columns[at].width == 0 {
                canvas.say(x, y, &format::elide(&text, width as usize), width, role);
            } else {
                canvas.right(x + width, y, &format::elide(&text, width as usize), role);
            }
            x += width + 1;
        }
    }
}

/// The first row shown: moves only as far as it must for the selection to be seen.
fn scroll(offset: Option<&Shared<usize>>, selected: Option<usize>, rows: usize, height: usize) -> usize {
    let most = rows.saturating_sub(height);
    let mut at = offset.map_or(0, Shared::get).min(most);
    if let Some(selected) = selected {
        if selected < at {
            at = selected;
        } else if height > 0 && selected >= at + height {
            at = selected + 1 - height;
        }
    } else {
        at = 0;
    }
    if let Some(offset) = offset {
        offset.set(at);
    }
    at
}
