//! Which stretch of time is on screen.

use crate::choice::choices;
use roctop_model::analysis::usage::has_kernels;
use roctop_model::{LaneKey, Snapshot};
use roctop_trace::item::{Nanos, Span};

/// The finest zoom, ns per column.
const FINEST: u64 = 10;
/// What a window holds at least until it is zoomed, ns: about the same on a small terminal as on a large one.
const DEFAULT_WINDOW: u64 = 2_000_000_000;
/// A live window does not turn over more often: nobody could read it, and a slow line could not carry it.
const TURN: u64 = 400_000_000;
/// The same over a slow line.
const SLOW_TURN: u64 = 1_000_000_000;
/// How often a sweep goes on.
const SWEEP: u64 = 200_000_000;
/// Steps that a window holds until it is zoomed.
const STEPS: u64 = 3;
/// What a window holds then, ns.
const HOLDS: std::ops::RangeInclusive<u64> = 1_000_000..=60_000_000_000;
/// The first part of a run, in ns, decides on the window; if there are no steps by then, kernels do.
const LOOKS: u64 = 5_000_000_000;
/// Columns that a sweep leaves blank ahead of the newest.
pub const WIPER: usize = 2;

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

/// How a live window moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Motion {
    /// The newest is at the right edge, and all moves to the left.
    #[default]
    Scroll,
    /// The newest goes from left to right and overwrites what was there: nothing else moves.
    Sweep,
    /// The window stands until it is full, and then turns over by three quarters.
    Page,
}

choices!(Motion: Scroll "scroll" Sweep "sweep" Page "page");

impl Motion {
    /// That of a line with a limit in bytes per second; none: no limit.
    pub const fn of_line(most: Option<u64>) -> Self {
        if most.is_some() { Self::Sweep } else { Self::Scroll }
    }
}

/// A part of the window: from which column, how many, and when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first column.
    pub column: usize,
    /// Its columns.
    pub columns: usize,
    /// Its begin.
    pub from: Nanos,
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
    /// Of a run that has ended and that nobody has looked about in: only the part in which GPUs worked.
    pub is_work: bool,
    /// How it moves while the program runs.
    pub motion: Motion,
    /// What it holds until it is zoomed, once the data have said so, ns.
    pub usual: Option<u64>,
    /// Where it begins when it does not follow.
    pub from: Nanos,
}

impl Default for Time {
    fn default() -> Self {
        Self {
            width: 0,
            follows: true,
            fits: false,
            is_work: false,
            motion: Motion::default(),
            usual: None,
            from: 0,
        }
    }
}

/// From the first kernel to the end of the last; the whole run where there is none.
fn work(snap: &Snapshot) -> Span {
    let is_work = |key: LaneKey| has_kernels(key) || matches!(key, LaneKey::Copies(_));
    let lanes = || snap.lanes.iter().filter(|lane| is_work(lane.key) && lane.total > 0);
    let span = Span {
        begin: lanes().map(|lane| lane.first).min().unwrap_or(snap.origin),
        end: lanes().map(|lane| lane.last).max().unwrap_or(snap.now),
    };
    if span.begin < span.end {
        span
    } else {
        Span {
            begin: snap.origin,
            end: snap.now,
        }
    }
}

/// Median of the kernels' average durations, by calls.
fn median_kernel(snap: &Snapshot) -> Option<u64> {
    let rows = snap.values.kernels.iter().map(|row| &row.numbers.stat);
    let mut rows: Vec<(u64, u64)> = rows.filter_map(|stat| Some((stat.average()?, stat.calls))).collect();
    rows.sort_unstable();
    let all: u64 = rows.iter().map(|row| row.1).sum();
    let mut before = 0;
    let median = rows.iter().find(|row| {
        before += row.1;
        2 * before >= all
    });
    median.map(|row| row.0)
}

impl Time {
    /// Nanoseconds per column.
    pub fn width(&self, snap: &Snapshot, columns: usize) -> u64 {
        let columns = columns.max(1) as u64;
        if self.fits {
            fitting(snap.elapsed().div_ceil(columns))
        } else if self.is_work {
            fitting(work(snap).duration().div_ceil(columns))
        } else if self.width == 0 {
            nice(self.usual.unwrap_or(DEFAULT_WINDOW) / columns)
        } else {
            self.width.max(FINEST)
        }
    }

    /// Looks at the data, for the window to hold what they suggest: three steps; where there are none after a while, so much
    /// that the median kernel has a column. Of a run that has ended it holds the work.
    pub fn settle(&mut self, snap: &Snapshot, columns: usize) {
        if !self.follows || self.width > 0 {
            return;
        }
        if !snap.is_running() && snap.values.totals.dispatches > 0 {
            (self.is_work, self.follows) = (true, false);
            return;
        }
        if self.usual.is_some() || snap.values.totals.dispatches == 0 {
            return;
        }
        let begun = work(snap).begin;
        let enough = |steps: &&roctop_model::analysis::Steps| steps.steps.len() as u64 >= STEPS;
        let steps = snap.steps(0).filter(enough).map(|steps| STEPS * steps.median);
        let kernels = || {
            let kernel = median_kernel(snap).filter(|_| snap.now.saturating_sub(begun) > LOOKS)?;
            Some(kernel.saturating_mul(columns as u64).min(DEFAULT_WINDOW))
        };
        let usual = steps.or_else(kernels);
        self.usual = usual.map(|usual| usual.clamp(*HOLDS.start(), *HOLDS.end()));
    }

    /// How often a short window moves.
    const fn turn(&self) -> u64 {
        match self.motion {
            Motion::Sweep => SLOW_TURN,
            Motion::Scroll | Motion::Page => TURN,
        }
    }

    /// When the window begins. A short live window shows the last page before a moment that comes a few times a second.
    pub fn from(&self, snap: &Snapshot, columns: usize) -> Nanos {
        let width = self.width(snap, columns);
        let elapsed = snap.elapsed();
        if self.fits {
            return snap.origin;
        }
        if self.is_work {
            return work(snap).begin;
        }
        if !self.follows {
            return self.from;
        }
        let page = width.saturating_mul(columns.max(1) as u64);
        let part = (page / 4 * 3).max(1);
        let head = if part < self.turn() {
            let each = if snap.is_running() { self.turn() } else { 1 };
            elapsed / each * each
        } else if self.motion == Motion::Page {
            (elapsed / part).saturating_mul(part).saturating_add(part)
        } else {
            (elapsed / width.max(1) + 1).saturating_mul(width)
        };
        snap.origin.saturating_add(head.saturating_sub(page))
    }

    /// The parts of the window from left to right: one, or of a sweep this pass and what is left of the one before.
    pub fn segments(&self, snap: &Snapshot, columns: usize) -> Vec<Segment> {
        let whole = Segment {
            column: 0,
            columns,
            from: self.from(snap, columns),
        };
        let width = self.width(snap, columns).max(1);
        let page = width.saturating_mul(columns.max(1) as u64);
        let is_short = page / 4 * 3 < self.turn() || columns <= 2 * WIPER;
        let sweeps = self.motion == Motion::Sweep && self.follows && !self.fits && !self.is_work;
        if !sweeps || is_short || !snap.is_running() || snap.elapsed() < page + SWEEP {
            return vec![whole];
        }
        // Whole columns only, a few times a second: each time costs a move of the cursor in every row.
        let complete = snap.elapsed() / SWEEP * SWEEP / width;
        let here = (complete.saturating_sub(1) % columns as u64) as usize + 1;
        let pass = snap.origin + complete.saturating_sub(here as u64) * width;
        let (old, first) = (
            here + WIPER,
            Segment {
                column: 0,
                columns: here,
                from: pass,
            },
        );
        let before = (old < columns).then(|| Segment {
            column: old,
            columns: columns - old,
            from: pass.saturating_sub(page) + old as u64 * width,
        });
        std::iter::once(first).chain(before).collect()
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
        (self.follows, self.fits, self.is_work) = (false, false, false);
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
        if self.follows && anchor.is_none() && !self.fits && !self.is_work {
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
        (self.follows, self.fits, self.is_work) = (false, false, false);
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
            ..Time::default()
        };
        let anchor = 2_030_500_000;
        time.zoom(&snap, 100, Zoom::In, Some(anchor));
        assert_eq!((anchor - time.from) / time.width, 30);
        for eighths in [-8, 8, 100, -100] {
            time.pan(&snap, 100, eighths);
            assert!(time.to(&snap, 100) > snap.origin && time.from <= snap.now);
        }
    }

    #[test]
    fn a_long_run_leaves_no_empty_column_and_never_jumps() {
        for motion in [Motion::Scroll, Motion::Sweep] {
            let time = Time {
                motion,
                ..Time::default()
            };
            let width = time.width(&snap(0), 100);
            let (mut shown, mut steps) = (Vec::new(), 0);
            for tenth in 30..300u64 {
                let now = snap(tenth * 100_000_000 + tenth * 7_919);
                let segments = time.segments(&now, 100);
                let columns: usize = segments.iter().map(|segment| segment.columns).sum();
                assert!((100 - WIPER..=100).contains(&columns), "{motion:?}: {segments:?}");
                // Which time each column shows.
                let times: Vec<(usize, u64)> = segments
                    .iter()
                    .flat_map(|part| (0..part.columns).map(|at| (part.column + at, part.from + at as u64 * width)))
                    .collect();
                assert!(
                    times.iter().all(|known| known.1 <= now.now),
                    "no column is of the future"
                );
                let is_now = |known: &(usize, u64)| known.1 + width + SWEEP > now.now;
                assert!(times.iter().any(is_now), "now is on screen");
                let new = times.iter().filter(|known| !shown.contains(&known.1)).count();
                if tenth > 30 {
                    assert!(new <= 11, "{motion:?}: {new} columns at once");
                    steps += new;
                }
                shown = times.into_iter().map(|known| known.1).collect();
            }
            assert!(steps > 1000, "{motion:?}: {steps}");
        }
    }

    #[test]
    fn a_sweep_moves_nothing_that_it_does_not_overwrite() {
        let time = Time {
            motion: Motion::Sweep,
            ..Time::default()
        };
        let width = time.width(&snap(0), 100);
        let place = |now: u64| -> Vec<(usize, u64)> {
            let segments = time.segments(&snap(now), 100);
            let columns = segments
                .iter()
                .flat_map(|part| (0..part.columns).map(|at| (part.column + at, part.from + at as u64 * width)));
            columns.collect()
        };
        for tenth in 30..100u64 {
            let (before, after) = (place(tenth * 100_000_000), place((tenth + 1) * 100_000_000));
            let stays = after.iter().filter(|known| before.contains(known)).count();
            assert!(stays >= 85, "{stays} of 100 columns stay");
        }
    }
}
