//! `[columns]`: which columns a list has, and in which order.

use super::Error;
use crate::ui::{ColumnId, Pane, columns};
use std::collections::BTreeMap;
use toml::Spanned;

/// Each list with its columns.
pub(super) fn read(
    set: &BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    at: &dyn Fn(usize, String) -> Error,
) -> Result<Vec<(Pane, Vec<ColumnId>)>, Error> {
    let mut all = Vec::new();
    for (list, words) in set {
        let pane = Pane::ALL.into_iter().find(|pane| pane.word() == list.get_ref());
        let pane = pane.ok_or_else(|| {
            let known: Vec<&str> = Pane::ALL.into_iter().map(Pane::word).collect();
            let message = format!(
                "[columns] {}: no such list; expected one of {}",
                list.get_ref(),
                known.join(", ")
            );
            at(list.span().start, message)
        })?;
        let mut chosen: Vec<ColumnId> = Vec::new();
        for word in words {
            let column = columns::named(pane, word.get_ref());
            let column = column.ok_or_else(|| {
                let message = format!(
                    "[columns] {}: no column {}; it has {}",
                    pane.word(),
                    word.get_ref(),
                    columns::words(pane)
                        .iter()
                        .map(|known| known.1)
                        .collect::<Vec<_>>()
                        .join(", ")
                );
                at(word.span().start, message)
            })?;
            if !chosen.contains(&column) {
                chosen.push(column);
            }
        }
        if chosen.is_empty() {
            let message = format!("[columns] {}: a list has at least one column", pane.word());
            return Err(at(list.span().start, message));
        }
        chosen.extend(counters(pane, &chosen));
        all.push((pane, chosen));
    }
    Ok(all)
}

/// Counters are asked for by the run: their columns stay unless the list says which of them it wants.
fn counters(pane: Pane, chosen: &[ColumnId]) -> Vec<ColumnId> {
    let is_counter = |id: &ColumnId| id.name().starts_with("Counter_");
    if pane != Pane::Kernels || chosen.iter().any(is_counter) {
        return Vec::new();
    }
    let all = columns::words(pane).into_iter().map(|known| known.0);
    all.filter(is_counter).collect()
}
