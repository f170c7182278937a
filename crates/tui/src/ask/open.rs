//! Where the screen goes for an id of an answer.

use super::GROUPS;
use crate::jump::{self, Target};
use crate::relation::Kind as Slices;
use crate::widgets::table::Scene;
use crate::{Grouping, Pane, Tab, Ui};
use roctop_model::Snapshot;
use roctop_model::ask::{Id, Kind};
use roctop_trace::item::Nanos;

/// How far the begin of work may be from an id's: a recording knows more about the clocks than the session did.
const CLOSE: u64 = 100_000;

/// Goes to what has an id; false if there is none, or not yet.
pub(crate) fn go(ui: &mut Ui, snap: &Snapshot, id: &Id) -> bool {
    let target = match id {
        Id::Row(list, _) => row(ui, snap, list, id),
        Id::Work(kind, at) => work(snap, *kind, *at),
        Id::Stretch(span) => (snap.now >= span.end).then_some(Target::Stretch(None, *span)),
    };
    target.is_some_and(|target| jump::go(ui, snap, &target).is_none())
}

fn row(ui: &mut Ui, snap: &Snapshot, list: &str, id: &Id) -> Option<Target> {
    let pane = Pane::ALL.into_iter().find(|pane| pane.word() == list)?;
    let tab = Tab::ALL
        .into_iter()
        .find(|tab| tab.row().lists.contains(&pane) && *tab != Tab::Overview)?;
    let groups = GROUPS.iter().map(|group| group.1).filter(|_| pane == Pane::Kernels);
    for grouping in std::iter::once(Grouping::Name).chain(groups) {
        let mut plain = Ui::new(snap.mode);
        plain.prefs.grouping = grouping;
        let scene = Scene { ui: &plain, snap };
        let (_, rows, _) = pane.list().answer(&scene, &[], usize::MAX);
        let found = rows.iter().find(|row| Id::of_row(list, &row.name.0, row.name.1) == *id);
        if let Some(found) = found {
            if pane == Pane::Kernels {
                ui.prefs.grouping = grouping;
            }
            return Some(Target::Row(tab, pane, found.key));
        }
    }
    None
}

fn work(snap: &Snapshot, kind: Kind, at: Nanos) -> Option<Target> {
    let kind = match kind {
        Kind::Launch => Slices::Kernels,
        Kind::Call => Slices::Calls,
        Kind::Copy => Slices::Copies,
        Kind::Range => Slices::Ranges,
    };
    let lanes = snap.lanes.iter().filter(|lane| Slices::of(lane.key) == Some(kind));
    let near = lanes.flat_map(|lane| {
        let after = lane.neighbour(at.saturating_sub(1), true);
        let before = lane.neighbour(at, false);
        after
            .into_iter()
            .chain(before)
            .map(|slice| (lane.key, slice.span.begin))
    });
    let nearest = near.min_by_key(|(_, begin)| begin.abs_diff(at))?;
    (nearest.1.abs_diff(at) <= CLOSE).then_some(Target::Slice(nearest.0, nearest.1))
}
