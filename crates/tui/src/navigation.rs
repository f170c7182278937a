//! Where the user was, to go back and forth between: every change of view, window or selection is one, whatever key,
//! click or command made it.

use super::Pane;
use super::direction::Direction;
use super::time::Time;
use super::track::Track;
use super::{Tab, Ui};
use roctop_model::{LaneKey, Snapshot};
use roctop_trace::item::{Nanos, Span};

const MAX_PLACES: usize = 100;
/// Moves of one kind that follow each other within this time are one change of place, ns.
const BURST: u64 = 2_000_000_000;

/// Where the user was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Location {
    tab: Tab,
    focus: usize,
    pub(crate) slice: Option<(LaneKey, Nanos)>,
    gap: Option<Span>,
    track: Option<Track>,
    time: Time,
    /// Begin and width of the window then.
    window: (Nanos, u64),
    selected: Option<(Pane, Option<u64>)>,
}

impl Location {
    /// Where the user is.
    pub(crate) fn of(ui: &Ui, snap: &Snapshot) -> Self {
        let columns = ui.lane_columns();
        Self {
            tab: ui.tab,
            focus: ui.focus,
            slice: ui.slice,
            gap: ui.gap,
            track: ui.track,
            time: ui.time,
            window: (ui.time.from(snap, columns), ui.time.width(snap, columns)),
            selected: ui.pane().map(|pane| (pane, ui.tables[pane as usize].selected)),
        }
    }

    /// How the user came from here to another place; none if that is no other place.
    fn way_to(&self, other: &Self) -> Option<Move> {
        if self.tab != other.tab {
            return Some(Move::Jump);
        }
        let selects = other.slice.is_some() && other.slice != self.slice;
        if selects {
            let lane = |place: &Self| place.slice.map(|slice| slice.0);
            let is_step = self.slice.is_none() || lane(self) == lane(other);
            return Some(if is_step { Move::Slice } else { Move::Jump });
        }
        if other.gap.is_some() && other.gap != self.gap {
            return Some(Move::Gap);
        }
        match (self.window, other.window) {
            ((_, width), (_, now)) if width != now => Some(Move::Zoom),
            (before, now) if before != now => Some(Move::Pan),
            _ => None,
        }
    }
}

/// How the place changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Pan,
    Zoom,
    /// From slice to slice of a lane.
    Slice,
    /// From gap to gap.
    Gap,
    Jump,
}

/// NavigationHistory to go back and forth between.
#[derive(Clone, Debug, Default)]
pub(crate) struct NavigationHistory {
    past: Vec<Location>,
    future: Vec<Location>,
    /// The last move, and when it was made.
    last: Option<(Move, Nanos)>,
    /// The place is one of those already.
    is_known: bool,
}

impl NavigationHistory {
    /// The slice from which the user came to the one that is selected.
    pub(crate) fn slice_before(&self, selected: Option<(LaneKey, Nanos)>) -> Option<(LaneKey, Nanos)> {
        let mut slices = self.past.iter().rev().filter_map(|place| place.slice);
        slices.find(|slice| Some(*slice) != selected)
    }
}

/// Remembers the place before something was done, if that led elsewhere.
pub(crate) fn moved(ui: &mut Ui, snap: &Snapshot, before: Location) {
    let way = before.way_to(&Location::of(ui, snap));
    let history = &mut ui.history;
    let is_known = std::mem::take(&mut history.is_known);
    let Some(way) = way.filter(|_| !is_known) else {
        return;
    };
    let is_burst = |&(last, at): &(Move, Nanos)| {
        last == way && way != Move::Jump && snap.now.saturating_sub(at) < BURST && history.future.is_empty()
    };
    if !history.last.as_ref().is_some_and(is_burst) {
        history.past.push(before);
        let excess = history.past.len().saturating_sub(MAX_PLACES);
        history.past.drain(..excess);
    }
    history.future.clear();
    history.last = Some((way, snap.now));
}

/// Goes back, or forward again; false when there is nowhere to go.
pub(crate) fn travel(ui: &mut Ui, snap: &Snapshot, way: Direction) -> bool {
    let now = Location::of(ui, snap);
    let history = &mut ui.history;
    (history.last, history.is_known) = (None, true);
    let (from, to) = match way {
        Direction::Back => (&mut history.past, &mut history.future),
        Direction::On => (&mut history.future, &mut history.past),
    };
    // A burst of moves may have ended where it began.
    while from
        .last()
        .is_some_and(|place| place.way_to(&now).is_none() && now.way_to(place).is_none())
    {
        from.pop();
    }
    let Some(place) = from.pop() else { return false };
    to.push(now);
    (ui.tab, ui.focus, ui.slice, ui.gap) = (place.tab, place.focus, place.slice, place.gap);
    (ui.track, ui.time) = (place.track, place.time);
    if let Some((pane, selected)) = place.selected {
        ui.tables[pane as usize].selected = selected;
    }
    true
}
