//! Which columns of a list are shown: all that there is room for, or those that the user chose.

use super::Pane;
use super::key::Key;
use super::{Popup, Ui};
use roctop_model::Snapshot;

/// The letter that turns a column on and off.
pub(crate) fn letter(at: usize) -> Option<char> {
    u8::try_from(at)
        .ok()
        .filter(|at| *at < 26)
        .map(|at| (b'a' + at) as char)
}

/// What a column is called in the settings: its heading, or its name in files where that is not its own.
pub fn word(pane: Pane, at: usize) -> String {
    let headings = pane.list().headings();
    let (title, name) = headings[at];
    let title = title.trim();
    let is_own = headings.iter().filter(|known| known.0.trim() == title).count() == 1;
    if title.is_empty() || !is_own {
        name.into()
    } else {
        title.into()
    }
}

/// The column of a word, in any case: a heading, or a name in files.
pub fn named(pane: Pane, word: &str) -> Option<usize> {
    let word = word.trim();
    let count = pane.list().headings().len();
    let own = (0..count).find(|&at| self::word(pane, at).eq_ignore_ascii_case(word));
    let names = pane.list().headings();
    own.or_else(|| names.iter().position(|(_, name)| name.eq_ignore_ascii_case(word)))
}

/// All columns of a list, as they are called in the settings.
pub fn words(pane: Pane) -> Vec<String> {
    (0..pane.list().headings().len()).map(|at| word(pane, at)).collect()
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
    let count = pane.list().headings().len();
    let state = &mut ui.tables[pane as usize];
    match key {
        Key::Esc | Key::Enter => ui.popup = None,
        Key::Char('*') => state.columns = None,
        Key::Char(typed) => {
            let Some(at) = (0..count).find(|&at| letter(at) == Some(typed)) else {
                return;
            };
            let mut chosen = state.columns.clone().unwrap_or_else(|| state.shown.borrow().clone());
            match chosen.iter().position(|&known| known == at) {
                Some(_) if chosen.len() == 1 => return ui.say(snap, "one column stays"),
                Some(place) => drop(chosen.remove(place)),
                None => {
                    let place = chosen.iter().position(|&known| known > at).unwrap_or(chosen.len());
                    chosen.insert(place, at);
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

    #[test]
    fn every_column_of_every_list_has_a_word_of_its_own_and_a_letter() {
        for pane in Pane::ALL {
            for (at, word) in words(pane).iter().enumerate() {
                assert_eq!(named(pane, word), Some(at), "{pane:?} {word}");
                assert!(letter(at).is_some(), "{pane:?} {word}");
            }
        }
        assert_eq!(named(Pane::Kernels, "p99"), named(Pane::Kernels, "P99_ns"));
        assert_eq!(named(Pane::Kernels, "nonsense"), None);
    }
}
