//! Which columns of a list are shown: all that there is room for, or those that the user chose.

use super::Pane;
use super::key::Key;
use super::{ColumnId, Popup, Ui};
use roctop_model::Snapshot;
use roctop_model::ask;

/// The letter that turns a column on and off: `a` to `z`, then `A` to `Z`.
pub(crate) fn letter(at: usize) -> Option<char> {
    ('a'..='z').chain('A'..='Z').nth(at)
}

/// All columns of a list, each with its word in the settings: its heading, or its name in files where another column has
/// the same heading.
pub fn words(pane: Pane) -> Vec<(ColumnId, &'static str)> {
    let columns = pane.list().columns();
    let is_unique = |title: &str| columns.iter().filter(|column| column.1 == title).count() == 1;
    let word = |(id, title): (ColumnId, &'static str)| {
        if title.is_empty() || !is_unique(title) {
            id.name()
        } else {
            title
        }
    };
    columns.iter().map(|&column| (column.0, word(column))).collect()
}

/// The column of a word, in any case: a heading of the screen, a name in files, or a heading of an answer's table.
pub fn named(pane: Pane, word: &str) -> Option<ColumnId> {
    let (word, words) = (word.trim(), words(pane));
    let by_word = words.iter().find(|known| known.1.eq_ignore_ascii_case(word));
    let by_name = || words.iter().find(|known| known.0.name().eq_ignore_ascii_case(word));
    let by_heading = || {
        words
            .iter()
            .find(|known| ask::heading(known.0.name()).eq_ignore_ascii_case(word))
    };
    by_word.or_else(by_name).or_else(by_heading).map(|known| known.0)
}

/// Opens the list of columns.
pub(super) fn open(ui: &mut Ui, snap: &Snapshot) {
    if ui.pane().is_some() {
        ui.popup = Some(Popup::Columns);
    } else {
        ui.say(snap, "this view has no columns");
    }
}

/// A key while the list of columns is open.
pub(super) fn key(ui: &mut Ui, snap: &Snapshot, key: Key) {
    let Some(pane) = ui.pane() else {
        ui.popup = None;
        return;
    };
    let columns = pane.list().columns();
    let place = |id: ColumnId| columns.iter().position(|column| column.0 == id);
    let state = &mut ui.tables[pane as usize];
    match key {
        Key::Esc | Key::Enter => ui.popup = None,
        Key::Char('*') => state.columns = None,
        Key::Char(typed) => {
            let Some(at) = (0..columns.len()).find(|&at| letter(at) == Some(typed)) else {
                return;
            };
            let id = columns[at].0;
            let mut chosen = state.columns.clone().unwrap_or_else(|| state.shown.borrow().clone());
            match chosen.iter().position(|&known| known == id) {
                Some(_) if chosen.len() == 1 => return ui.say(snap, "one column stays"),
                Some(there) => drop(chosen.remove(there)),
                None => {
                    let later = chosen.iter().position(|&known| place(known) > Some(at));
                    chosen.insert(later.unwrap_or(chosen.len()), id);
                }
            }
            state.columns = Some(chosen);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_column_has_a_unique_word_and_a_letter() {
        for pane in Pane::ALL {
            for (at, (id, word)) in words(pane).into_iter().enumerate() {
                assert_eq!(named(pane, word), Some(id), "{pane:?} {word}");
                assert!(letter(at).is_some(), "{pane:?} {word}");
            }
            let headings: BTreeSet<String> = words(pane).iter().map(|known| ask::heading(known.0.name())).collect();
            assert_eq!(headings.len(), words(pane).len(), "{pane:?} {headings:?}");
            let list = pane.list();
            let sorts = |id: &ColumnId| *id == list.sort();
            assert_eq!(
                list.columns().iter().filter(|column| sorts(&column.0)).count(),
                1,
                "{pane:?}"
            );
        }
        assert_eq!(named(Pane::Kernels, "p99"), named(Pane::Kernels, "P99_ns"));
        assert_eq!(named(Pane::Sites, "gpu_time"), named(Pane::Sites, "GPU_ns"));
        assert_eq!(named(Pane::Kernels, "nonsense"), None);
    }
}
