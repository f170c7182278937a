//! Numbers by kernel. What every dispatch changes lies together in one line of the processor's cache and is added to the
//! kernel's own numbers when somebody looks.

use std::sync::Arc;

use super::cells::{Cells, NONE};
use super::counts::Counts;
use super::shape::{Shape, Shapes};
use super::stat::{HISTOGRAMS, Stat, Sum, Summed, Trend};
use super::table::{MOST_IDS, is_untimed};
use crate::item::{Dispatch, Nanos};

/// A kernel's numbers in one place.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Index of the place; beyond the last, places that share a cell.
    pub place: u32,
    /// The numbers.
    pub sum: Sum,
}

/// A kernel's numbers.
#[derive(Clone, Debug, Default)]
pub struct KernelStat {
    /// Durations.
    pub stat: Stat,
    /// The same by place, as of the last [`Kernels::refresh`].
    pub cells: Arc<Vec<Cell>>,
    /// Nanoseconds by second.
    pub trend: Trend,
    /// Sum of the times from submit to begin.
    pub delay: u64,
    /// How many of them are known.
    pub delayed: u64,
    /// Geometry of the latest.
    pub shape: Shape,
    /// Whether all had that geometry.
    pub shapes: u32,
}

/// What was counted of a kernel since it was last brought up to date.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Fresh {
    count: u32,
    total: u64,
    min: u64,
    max: u64,
    squares: f64,
    /// Index of the latest geometry.
    shape: u32,
    /// Sum of the times from submit to begin.
    delay: u64,
    /// Time in the second that is being counted.
    nanos: u64,
    /// That second.
    second: u32,
}

impl Default for Fresh {
    fn default() -> Self {
        Self {
            count: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
            squares: 0.0,
            shape: u32::MAX,
            delay: 0,
            nanos: 0,
            second: 0,
        }
    }
}

impl Fresh {
    #[inline]
    fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.squares += (nanos as f64) * (nanos as f64);
        self.nanos = self.nanos.saturating_add(nanos);
    }

    /// Takes the sums; the next begin anew.
    fn take(&mut self) -> Summed {
        let Self {
            count,
            total,
            min,
            max,
            squares,
            ..
        } = *self;
        *self = Self {
            shape: self.shape,
            delay: self.delay,
            nanos: self.nanos,
            second: self.second,
            ..Self::default()
        };
        Summed {
            count,
            total,
            min,
            max,
            squares,
        }
    }
}

const SECOND: Nanos = 1_000_000_000;
/// Of one kernel no more is counted before it is brought up to date.
const MOST_FRESH: u32 = 1 << 30;
/// Fewer kernels than these are always brought up to date whole.
const FEW: usize = 256;
/// Percentiles may lag behind by one in so many durations.
const LAG: u64 = 64;

/// All kernels.
#[derive(Debug, Default)]
pub struct Kernels {
    rows: Vec<KernelStat>,
    /// By kernel, too.
    fresh: Vec<Fresh>,
    counts: Vec<Counts>,
    cells: Cells,
    /// Kernels that differ from their rows, each once.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// Room for the cells of dispatches that are counted together.
    found: Vec<u32>,
}

impl Kernels {
    /// By kernel, as of the last refresh.
    pub fn rows(&self) -> &[KernelStat] {
        &self.rows
    }

    /// Counts dispatches, each in its place; the index of each one's geometry goes to `ids`.
    ///
    /// With many kernels most of their numbers lie far from the processor. So they are asked for in passes, each over all
    /// dispatches: what one pass asks for comes while it asks for the next.
    pub(super) fn add(&mut self, dispatches: &[Dispatch], places: &[u32], shapes: &mut Shapes, ids: &mut Vec<u32>) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let asked = || {
            let kernels = dispatches.iter().map(|dispatch| dispatch.kernel.0);
            kernels.zip(places.iter().copied())
        };
        let (mut kernels, mut sum) = (0, 0);
        for (kernel, place) in asked() {
            let at = kernel as usize;
            kernels = kernels.max(if at < MOST_IDS { at + 1 } else { 0 });
            sum ^= self.fresh.get(at).map_or(0, |fresh| fresh.second) ^ self.cells.ask(kernel, place);
        }
        if kernels > self.fresh.len() {
            self.grow(kernels);
        }
        std::hint::black_box(sum);
        found.extend(asked().map(|(kernel, place)| self.cells.guess(kernel, place)));
        let sum = found.iter().zip(dispatches).fold(0, |sum, (&cell, dispatch)| {
            let counts = self.counts.get(dispatch.kernel.0 as usize);
            let counted = counts.map_or(0, |counts| counts.ask(dispatch.span.duration()));
            sum ^ self.cells.ask_for(cell) ^ counted
        });
        std::hint::black_box(sum);
        for (cell, (kernel, place)) in found.iter_mut().zip(asked()) {
            if !self.cells.holds(*cell, kernel, place) {
                *cell = NONE;
            }
        }
        ids.clear();
        for ((&cell, dispatch), &place) in found.iter().zip(dispatches).zip(places) {
            ids.push(self.add_one(dispatch, place, cell, shapes));
        }
        self.found = found;
    }

    /// Counts a dispatch; `cell` is where its kernel's numbers in that place are, if that was found.
    #[inline]
    fn add_one(&mut self, dispatch: &Dispatch, place: u32, cell: u32, shapes: &mut Shapes) -> u32 {
        let kernel = dispatch.kernel.0 as usize;
        let shape = Shape::of(dispatch);
        if kernel >= self.fresh.len() {
            return shapes.id(shape);
        }
        if self.fresh[kernel].count == 0 {
            self.touch(kernel);
        }
        if shapes.get(self.fresh[kernel].shape) != Some(&shape) {
            let id = shapes.id(shape);
            let (row, fresh) = (&mut self.rows[kernel], &mut self.fresh[kernel]);
            if row.shapes == 0 || id != fresh.shape {
                row.shapes = row.shapes.saturating_add(1);
                fresh.shape = id;
            }
        }
        let cell = if cell == NONE {
            self.cells.find(dispatch.kernel.0, place)
        } else {
            cell
        };
        let end = dispatch.span.end;
        if is_untimed(dispatch.flags, end) {
            self.cells.sum(cell).add(None);
            self.rows[kernel].stat.add_untimed();
            return self.fresh[kernel].shape;
        }
        let nanos = dispatch.span.duration();
        self.cells.sum(cell).add(Some(nanos));
        let fresh = &mut self.fresh[kernel];
        let shape = fresh.shape;
        if end / SECOND != u64::from(fresh.second) {
            self.rows[kernel]
                .trend
                .add(u64::from(fresh.second) * SECOND, std::mem::take(&mut fresh.nanos));
            // A time beyond is no time.
            fresh.second = (end / SECOND) as u32;
        }
        fresh.add(nanos);
        if dispatch.submit > 0 {
            fresh.delay = fresh
                .delay
                .saturating_add(dispatch.span.begin.saturating_sub(dispatch.submit));
        } else {
            // Counted as known when it is brought up to date.
            let row = &mut self.rows[kernel];
            row.delayed = row.delayed.wrapping_sub(1);
        }
        let is_full = fresh.count >= MOST_FRESH;
        let is_full = self.counts.get_mut(kernel).is_some_and(|counts| counts.add(nanos)) || is_full;
        if is_full {
            self.settle(kernel);
            if let Some(counts) = self.counts.get_mut(kernel) {
                self.rows[kernel].stat.count_in(counts);
            }
        }
        shape
    }

    /// Makes room for so many kernels.
    #[cold]
    fn grow(&mut self, kernels: usize) {
        for number in self.rows.len()..kernels {
            self.rows.push(KernelStat {
                stat: Stat::new(number < HISTOGRAMS),
                ..KernelStat::default()
            });
            if number < HISTOGRAMS {
                self.counts.push(Counts::default());
            }
        }
        self.fresh.resize(kernels, Fresh::default());
        self.cells.grow(kernels);
        self.is_touched.resize(kernels, false);
    }

    fn touch(&mut self, kernel: usize) {
        if !std::mem::replace(&mut self.is_touched[kernel], true) {
            self.touched.push(kernel as u32);
        }
    }

    /// Brings everything up to date: numbers, cells, and percentiles, which may lag behind by some of the latest
    /// durations while there are many kernels, unless it must be exact.
    pub(super) fn refresh(&mut self, shapes: &Shapes, is_exact: bool) {
        let touched = std::mem::take(&mut self.touched);
        let is_exact = is_exact || touched.len() < FEW;
        for kernel in touched {
            let kernel = kernel as usize;
            self.is_touched[kernel] = false;
            self.settle(kernel);
            let row = &mut self.rows[kernel];
            row.shape = shapes.get(self.fresh[kernel].shape).copied().unwrap_or_default();
            row.cells = Arc::new(self.cells.of(kernel));
        }
        for (row, counts) in self.rows.iter_mut().zip(&mut self.counts) {
            if is_exact || u64::from(counts.waiting()) * LAG >= row.stat.timed {
                row.stat.count_in(counts);
                row.stat.refresh();
            }
        }
    }

    /// Whether percentiles lag behind.
    pub(super) fn is_behind(&self) -> bool {
        self.counts.iter().any(|counts| counts.waiting() > 0)
    }

    /// Adds what is fresh of a kernel to its numbers, but for its histogram.
    fn settle(&mut self, kernel: usize) {
        let (row, fresh) = (&mut self.rows[kernel], &mut self.fresh[kernel]);
        let summed = fresh.take();
        row.stat.merge(&summed);
        row.delayed = row.delayed.wrapping_add(u64::from(summed.count));
        row.delay = row.delay.saturating_add(std::mem::take(&mut fresh.delay));
        row.trend
            .add(u64::from(fresh.second) * SECOND, std::mem::take(&mut fresh.nanos));
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::MOST_CELLS;
    use super::*;
    use crate::item::{KernelId, Span};

    fn dispatch(kernel: u32, begin: Nanos, nanos: u64) -> Dispatch {
        Dispatch {
            kernel: KernelId(kernel),
            span: Span {
                begin,
                end: begin + nanos,
            },
            submit: begin - 100,
            grid: [64, 1, 1],
            ..Dispatch::default()
        }
    }

    #[test]
    fn what_is_counted_lies_in_one_line_of_the_cache() {
        assert_eq!((size_of::<Fresh>(), align_of::<Fresh>()), (64, 64));
    }

    #[test]
    fn numbers_are_those_of_every_dispatch_however_often_somebody_looks() {
        let run = |every: u64| {
            let (mut kernels, mut shapes, mut ids) = (Kernels::default(), Shapes::default(), Vec::new());
            for i in 0..10_000u64 {
                let mut one = dispatch((i % 7) as u32, 1_000_000_000 + i * 300_000, 1000 + i % 911);
                if i % 13 == 0 {
                    one.submit = 0;
                }
                if i % 17 == 0 {
                    one.span = Span::default();
                }
                kernels.add(&[one], &[(i % 90) as u32], &mut shapes, &mut ids);
                if i % every == 0 {
                    kernels.refresh(&shapes, false);
                }
            }
            kernels.refresh(&shapes, true);
            assert!(!kernels.is_behind());
            kernels
        };
        let (often, once) = (run(10), run(u64::MAX));
        for (a, b) in often.rows().iter().zip(once.rows()) {
            assert_eq!((a.stat.sum(), a.stat.quantiles), (b.stat.sum(), b.stat.quantiles));
            assert_eq!((a.delay, a.delayed, a.shapes), (b.delay, b.delayed, b.shapes));
            assert_eq!(a.trend.last(4_500_000_000, 4), b.trend.last(4_500_000_000, 4));
            let sums = |row: &KernelStat| row.cells.iter().map(|cell| (cell.place, cell.sum)).collect::<Vec<_>>();
            assert_eq!(sums(a), sums(b));
            assert_eq!(a.cells.len(), MOST_CELLS);
            assert_eq!(a.cells.iter().map(|cell| cell.sum.calls).sum::<u64>(), a.stat.calls);
        }
        let calls: u64 = once.rows().iter().map(|row| row.stat.calls).sum();
        let delayed: u64 = once.rows().iter().map(|row| row.delayed).sum();
        assert_eq!(calls, 10_000);
        let known = (0..10_000).filter(|i| i % 13 != 0 && i % 17 != 0).count() as u64;
        assert_eq!(delayed, known);
    }

    #[test]
    fn percentiles_of_many_kernels_lag_behind_a_little_until_they_must_be_exact() {
        let (mut kernels, mut shapes, mut ids) = (Kernels::default(), Shapes::default(), Vec::new());
        let mut tell = |kernels: &mut Kernels, shapes: &mut Shapes, times: u64, nanos: u64| {
            for kernel in 0..500 {
                for i in 0..times {
                    let one = dispatch(kernel, 1_000_000_000 + i * 1000, nanos);
                    kernels.add(&[one], &[0], shapes, &mut ids);
                }
            }
        };
        tell(&mut kernels, &mut shapes, 640, 1000);
        kernels.refresh(&shapes, false);
        assert!(!kernels.is_behind());
        tell(&mut kernels, &mut shapes, 9, 5_000_000);
        kernels.refresh(&shapes, false);
        assert!(kernels.is_behind());
        let stat = &kernels.rows()[499].stat;
        assert_eq!((stat.calls, stat.max), (649, 5_000_000), "sums never lag");
        assert_eq!(stat.quantiles.p99.map(|p99| p99 < 2000), Some(true));
        kernels.refresh(&shapes, true);
        assert!(!kernels.is_behind());
        assert_eq!(
            kernels.rows()[499].stat.quantiles.p99.map(|p99| p99 > 4_000_000),
            Some(true)
        );
    }
}
