//! Keys in lists: what is selected, and in which order rows stand.

use super::Pane;
use super::widgets::column::ColumnId;
use super::widgets::rows;
use super::widgets::table::Scene;
use super::{Tab, Ui};
use roctop_model::Snapshot;

/// Rows do not change places for so long after the selection was moved.
pub(super) const ORDER_HOLD: u64 = 2_000_000_000;

/// How far a page goes.
pub(super) fn page(ui: &Ui) -> isize {
    (ui.size.1 as isize / 2).max(1)
}

/// The focus goes to the next list but `by`.
pub(super) fn turn_pane(ui: &mut Ui, by: isize) {
    let count = ui.lists().len();
    if count > 0 {
        ui.focus = (ui.focus.min(count - 1) as isize + by).rem_euclid(count as isize) as usize;
    }
}

/// Moves the selection in the order of the screen.
pub(super) fn step(ui: &mut Ui, snap: &Snapshot, by: isize) {
    let to = |at: Option<usize>, count: usize| {
        let last = count.saturating_sub(1);
        match at {
            Some(at) => at.saturating_add_signed(by).min(last),
            None if by == isize::MAX => last,
            None => 0,
        }
    };
    match ui.tab {
        Tab::Log => {
            let most = snap.output.len();
            ui.log.scrolled = match by {
                isize::MIN => most,
                isize::MAX => 0,
                by => ui.log.scrolled.saturating_add_signed(-by).min(most),
            };
        }
        Tab::Timeline => {
            let tracks = rows::order(&Scene { ui, snap });
            let at = ui
                .track
                .and_then(|track| tracks.iter().position(|&known| known == track));
            ui.track = tracks.get(to(at, tracks.len())).copied();
            (ui.slice, ui.gap) = (None, None);
        }
        _ => {
            let Some(pane) = ui.pane() else { return };
            let keys = pane.list().keys(&Scene { ui, snap });
            let state = &mut ui.tables[pane as usize];
            let at = state
                .selected
                .and_then(|key| keys.iter().position(|&known| known == key));
            state.selected = keys.get(to(at, keys.len())).copied();
            state.held = Some((snap.now.saturating_add(ORDER_HOLD), keys.into()));
        }
    }
}

/// Sorts by the next column but `by` that the list has.
pub(super) fn sort(ui: &mut Ui, snap: &Snapshot, by: isize) {
    let Some(pane) = ui.pane() else { return };
    let (list, scene) = (pane.list(), Scene { ui, snap });
    let now = ui.tables[pane as usize].sort.column.unwrap_or(list.sort());
    let mut columns: Vec<ColumnId> = list.columns().into_iter().map(|column| column.0).collect();
    columns.retain(|id| *id == now || list.has_column(&scene, *id));
    let count = columns.len().max(1) as isize;
    let at = columns.iter().position(|id| *id == now).unwrap_or(0) as isize;
    if let Some(next) = columns.get((at + by).rem_euclid(count) as usize) {
        sort_by(ui, pane, *next);
    }
}

/// Sorts by a column, or reverses the order when it is the one already.
pub(super) fn sort_by(ui: &mut Ui, pane: Pane, column: ColumnId) {
    let state = &mut ui.tables[pane as usize];
    state.held = None;
    let sort = &mut state.sort;
    let now = sort.column.unwrap_or(pane.list().sort());
    if now == column {
        sort.ascending ^= true;
        return;
    }
    sort.then = Some((now, sort.ascending));
    (sort.column, sort.ascending) = (Some(column), false);
}

/// The order of the list turns round.
pub(super) fn reverse(ui: &mut Ui) {
    if let Some(table) = ui.table_mut() {
        table.sort.ascending ^= true;
        table.held = None;
    }
}
