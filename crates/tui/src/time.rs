//! Which stretch of time is on screen.

use roctop_model::Snapshot;
use roctop_trace::item::{Nanos, Span};

/// The finest zoom, ns per column.
const FINEST: u64 = 10;
/// What a window holds at least until it is zoomed, ns: about the same on a small terminal as on a large one.
const DEFAULT_WINDOW: u64 = 2_000_000_000;
/// A live window does not turn over more often: nobody could read it, and a slow line could not carry it.
const TURN: u64 = 400_000_000;

/// A range that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Where it was begun.
    pub anchor: Nanos,
    /// Where its other end is.
    pub head: Nanos,
    /// Whether keys still move the other end.
    pub moves: bool,
}

impl Range {
    /// From its earlier end to its later one.
    pub fn span(self) -> Span {
        Span {
            begin: self.anchor.min(self.head),
            end: self.anchor.max(self.head),
        }
    }
}

/// Which way to zoom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zoom {
    /// Less time in a column.
    In,
    /// More.
    Out,
}

/// The window on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Nanoseconds per column; 0 until it is zoomed.
    pub width: u64,
    /// Whether the window goes along with the clock.
    pub follows: bool,
    /// Whether the window is always the whole run.
    pub fits: bool,
    /// Where it begins when it does not follow.
    pub from: Nanos,
}

impl Default for Time {
    fn default() -> Self {
        Self {
            width: 0,
            follows: true,
            fits: false,
            from: 0,
        }
    }
}

impl Time {
    /// Nanoseconds per column.
    pub fn width(&self, snap: &Snapshot, columns: usize) -> u64 {
        if self.fits {
            fitting(snap.elapsed().div_ceil(columns.max(1) as u64))
        } else if self.width == 0 {
            nice(DEFAULT_WINDOW / columns.max(1) as u64)
        } else {
            self.width.max(FINEST)
        }
    }

    /// When the window begins. A live window turns over by three quarters of a page, so that most frames change few cells; a
    /// short one shows the last page before a moment that comes a few times a second.
    pub fn from(&self, snap: &Snapshot, columns: usize) -> Nanos {
        let width = self.width(snap, columns);
        if self.fits {
            return snap.origin;
        }
        if !self.follows {
            return self.from;
        }
        let page = width.saturating_mul(columns.max(1) as u64);
        let part = (page / 4 * 3).max(1);
        let head = if part >= TURN {
            (snap.elapsed() / part).saturating_mul(part).saturating_add(part)
        } else if snap.is_running() {
            snap.elapsed() / TURN * TURN
        } else {
            snap.elapsed()
        };
        snap.origin.saturating_add(head.saturating_sub(page))
    }

    /// When the window ends.
    pub fn to(&self, snap: &Snapshot, columns: usize) -> Nanos {
        self.from(snap, columns)
            .saturating_add(self.width(snap, columns).saturating_mul(columns as u64))
    }

    /// Stops following and stands where it is.
    pub fn stand(&mut self, snap: &Snapshot, columns: usize) {
        self.from = self.from(snap, columns);
        self.width = self.width(snap, columns);
        self.follows = false;
        self.fits = false;
    }

    /// Zooms by one step of 1, 2, 5 with `anchor` staying in its column.
    pub fn zoom(&mut self, snap: &Snapshot, columns: usize, zoom: Zoom, anchor: Option<Nanos>) {
        let (from, old) = (self.from(snap, columns), self.width(snap, columns));
        let new = match zoom {
            Zoom::In => finer(old),
            Zoom::Out => coarser(old),
        };
        let longest = coarser(nice(snap.elapsed().max(1_000_000_000).div_ceil(columns.max(1) as u64)));
        let new = new.clamp(FINEST, longest.max(FINEST));
        if self.follows && anchor.is_none() && !self.fits {
            self.width = new;
            return;
        }
        let middle = from.saturating_add(old.saturating_mul(columns as u64 / 2));
        let anchor = anchor
            .filter(|at| *at >= from && *at < self.to(snap, columns))
            .unwrap_or(middle);
        let column = (anchor - from) / old;
        self.from = anchor
            .saturating_sub(column.saturating_mul(new))
            .max(snap.origin.saturating_sub(new));
        self.width = new;
        self.follows = false;
        self.fits = false;
    }

    /// Moves by a part of a page (negative: earlier).
    pub fn pan(&mut self, snap: &Snapshot, columns: usize, eighths: i64) {
        self.stand(snap, columns);
        let step = (self.width.saturating_mul(columns as u64) / 8).max(1);
        let far = step.saturating_mul(eighths.unsigned_abs());
        let last = snap.now.saturating_sub(self.width.saturating_mul(columns as u64) / 2);
        let first = snap.origin.saturating_sub(step);
        let moved = if eighths < 0 {
            self.from.saturating_sub(far)
        } else {
            self.from.saturating_add(far)
        };
        self.from = moved.clamp(first.min(last), last.max(first));
    }

    /// Shows a stretch with a margin on both sides.
    pub fn frame(&mut self, snap: &Snapshot, columns: usize, span: Span) {
        self.stand(snap, columns);
        let columns = columns.max(1) as u64;
        let nanos = span.duration().max(1);
        self.width = nice(nanos.div_ceil((columns * 4 / 5).max(1)));
        let margin = self.width.saturating_mul(columns).saturating_sub(nanos) / 2;
        self.from = span.begin.saturating_sub(margin);
    }

    /// Moves so that `at` is on screen.
    pub fn show(&mut self, snap: &Snapshot, columns: usize, at: Nanos) {
        let (from, to) = (self.from(snap, columns), self.to(snap, columns));
        self.stand(snap, columns);
        if at < from || at >= to {
            self.from = at.saturating_sub(self.width.saturating_mul(columns as u64) / 2);
        }
    }
}

/// A width that is not below, in steps of at most an eighth, so that a growing run seldom changes it.
fn fitting(width: u64) -> u64 {
    let step = 1u64 << width.max(1).ilog2().saturating_sub(3);
    width.div_ceil(step).saturating_mul(step).max(FINEST)
}

/// The least of 1, 2, 5 × 10ⁿ that is not below.
pub fn nice(value: u64) -> u64 {
    let mut step = FINEST;
    while step < value && step < u64::MAX / 10 {
        step = coarser(step);
    }
    step
}

fn coarser(value: u64) -> u64 {
    let power = 10u64.pow(value.max(1).ilog10());
    match value / power {
        1 => power.saturating_mul(2),
        2..=4 => power.saturating_mul(5),
        _ => power.saturating_mul(10),
    }
}

fn finer(value: u64) -> u64 {
    let power = 10u64.pow(value.max(1).ilog10());
    match value / power {
        0 | 1 if value == power => (power / 2).max(1),
        1 => power,
        2..=4 => {
            if value == 2 * power {
                power
            } else {
                2 * power
            }
        }
        _ => {
            if value == 5 * power {
                2 * power
            } else {
                5 * power
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snap(elapsed: u64) -> Snapshot {
        Snapshot {
            origin: 1_000_000_000,
            now: 1_000_000_000 + elapsed,
            ..Snapshot::default()
        }
    }

    #[test]
    fn zoom_steps_are_one_two_five_and_turn_back() {
        let mut at = 10;
        for expected in [20, 50, 100, 200, 500, 1000] {
            at = coarser(at);
            assert_eq!(at, expected);
        }
        for expected in [500, 200, 100, 50, 20, 10] {
            at = finer(at);
            assert_eq!(at, expected);
        }
        assert_eq!((nice(999), nice(1000), nice(1001), nice(0)), (1000, 1000, 2000, 10));
    }

    #[test]
    fn a_zoom_keeps_its_anchor_and_a_live_window_holds_now() {
        let snap = snap(10_000_000_000);
        let mut time = Time::default();
        for _ in 0..30 {
            assert!(time.from(&snap, 100) <= snap.now && time.to(&snap, 100).saturating_add(TURN) >= snap.now);
            time.zoom(&snap, 100, Zoom::Out, None);
        }
        let mut time = Time {
            follows: false,
            from: 2_000_000_000,
            width: 1_000_000,
            fits: false,
        };
        let anchor = 2_030_500_000;
        time.zoom(&snap, 100, Zoom::In, Some(anchor));
        assert_eq!((anchor - time.from) / time.width, 30);
        for eighths in [-8, 8, 100, -100] {
            time.pan(&snap, 100, eighths);
            assert!(time.to(&snap, 100) > snap.origin && time.from <= snap.now);
        }
    }
}
