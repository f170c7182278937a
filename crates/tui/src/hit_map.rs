//! What can be clicked: noted while a frame is drawn, asked when the mouse is pressed.

use std::cell::RefCell;

use ratatui::layout::Rect;

use super::key::Key;
use super::keymap::Action;
use super::track::Track;
use super::{ColumnId, Pane};
use roctop_trace::item::Nanos;

/// What a click means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Hit {
    /// An action.
    Do(Action),
    /// A key of a menu.
    Press(Key),
    /// A row of a list.
    Row(Pane, u64),
    /// The heading of a column.
    Head(Pane, ColumnId),
    /// A list as a whole.
    Pane(Pane),
    /// The cross of a term of the filter.
    Term(usize),
    /// The name of a lane.
    Lane(Track),
    /// Durations in a kernel's histogram, from the shortest to the longest, ns.
    Durations(u64, u64),
    /// Time: of a lane, or of the axis; when its first column begins, and ns per column.
    Time(Option<Track>, Nanos, u64),
}

/// What was drawn where; what was drawn later is above.
#[derive(Clone, Debug, Default)]
pub(crate) struct HitMap(RefCell<Vec<(Rect, Hit)>>);

impl HitMap {
    /// A new frame.
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// Something was drawn.
    pub(crate) fn add(&self, area: Rect, hit: Hit) {
        self.0.borrow_mut().push((area, hit));
    }

    /// The topmost thing at a place, and where it begins.
    pub(crate) fn at(&self, x: u16, y: u16) -> Option<(Rect, Hit)> {
        let hits = self.0.borrow();
        let inside = |area: &Rect| x >= area.x && x < area.right() && y >= area.y && y < area.bottom();
        hits.iter().rev().find(|hit| inside(&hit.0)).copied()
    }
}
