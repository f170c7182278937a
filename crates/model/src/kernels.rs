//! Numbers by kernel. Dispatches wait until many of them can be put in order by kernel: what is known of a kernel is then
//! fetched to the processor once for all of its own.

use std::ops::Range;
use std::sync::Arc;

use roctop_ring::near;

use super::histogram_delta::Counts;
use super::launch_config::{Shape, Shapes};
use super::stats::{HISTOGRAMS, Stat, Sum, Summed, Trend};
use super::table::{MOST_IDS, is_untimed};
use roctop_trace::item::{Dispatch, Nanos};

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

/// What a kernel's numbers want to know of a dispatch.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    kernel: u32,
    /// Index of its place.
    place: u32,
    /// Index of its geometry.
    shape: u32,
    /// In which it ended.
    second: u32,
    /// Its duration; [`UNKNOWN`] when it has no time.
    nanos: u64,
    /// From submit to begin; [`UNKNOWN`] when that is not known.
    delay: u64,
}

const UNKNOWN: u64 = u64::MAX;

impl Waiting {
    #[inline]
    fn new(dispatch: &Dispatch, place: u32, shape: u32) -> Self {
        let span = dispatch.span;
        let is_timed = !is_untimed(dispatch.flags, span.end);
        let is_submitted = is_timed && dispatch.submit > 0;
        Self {
            kernel: dispatch.kernel.0,
            place,
            shape,
            // A time beyond is no time.
            second: (span.end / SECOND) as u32,
            nanos: if is_timed { span.duration() } else { UNKNOWN },
            delay: if is_submitted {
                span.begin.saturating_sub(dispatch.submit)
            } else {
                UNKNOWN
            },
        }
    }

    fn duration(&self) -> Option<u64> {
        (self.nanos != UNKNOWN).then_some(self.nanos)
    }
}

/// What every dispatch of a kernel changes, in few lines of the processor's cache. It is added to the kernel's numbers when
/// somebody looks.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Fresh {
    sum: Summed,
    /// Dispatches without a time.
    untimed: u32,
    /// How many of the times from submit to begin are known, and their sum.
    delayed: u32,
    delay: u64,
    /// Time in the second that is being counted, and that second.
    nanos: u64,
    second: u32,
    is_touched: bool,
    /// Whether the kernel has a histogram.
    is_full: bool,
    /// Index of the latest geometry, and how often that was another than before.
    shape: u32,
    shapes: u32,
    /// What the histogram was not told yet.
    counts: Counts,
    /// The numbers by place; these are never taken away.
    cells: Vec<Cell>,
    /// Where the cell of a place may be, by the last bits of the place's index.
    near: [u8; NEAR],
}

impl Fresh {
    /// The numbers of a place.
    #[inline]
    fn cell(&mut self, place: u32) -> &mut Sum {
        let near = &mut self.near[place as usize % NEAR];
        let cells = &mut self.cells;
        if cells.get(usize::from(*near)).is_none_or(|cell| cell.place != place) {
            *near = find(cells, place);
        }
        &mut cells[usize::from(*near)].sum
    }

    /// Adds the sums to the kernel's numbers, but for the histogram; the next begin anew.
    fn settle(&mut self, row: &mut KernelStat) {
        row.stat.merge(&std::mem::take(&mut self.sum));
        row.stat.calls += u64::from(std::mem::take(&mut self.untimed));
        row.delayed += u64::from(std::mem::take(&mut self.delayed));
        row.delay = row.delay.saturating_add(std::mem::take(&mut self.delay));
        row.shapes = self.shapes;
        self.turn(row, self.second);
    }

    /// Time goes on in another second.
    fn turn(&mut self, row: &mut KernelStat, second: u32) {
        let nanos = std::mem::take(&mut self.nanos);
        row.trend.add(u64::from(self.second) * SECOND, nanos);
        self.second = second;
    }
}

/// Finds or makes the cell of a place; the last is for all places beyond the bound.
fn find(cells: &mut Vec<Cell>, place: u32) -> u8 {
    let at = cells.iter().position(|cell| cell.place == place).unwrap_or(cells.len());
    if at == cells.len() && at < MOST_CELLS {
        let place = if at + 1 == MOST_CELLS { OTHERS } else { place };
        let sum = Sum::default();
        cells.push(Cell { place, sum });
    }
    at.min(MOST_CELLS - 1) as u8
}

const SECOND: Nanos = 1_000_000_000;
/// So many dispatches wait at most: some of each of ten thousand kernels.
const MOST_WAITING: usize = 1 << 16;
/// Where more kernels than these are known for each that waits, most of them are not among those.
const RARE: usize = 4;
/// What is known of kernels is fetched so many kernels before it is wanted, for so many dispatches of one.
const FAR: usize = 8;
const MOST_FETCHED: usize = 8;
/// Places that a kernel has cells of its own for.
const MOST_CELLS: usize = 64;
/// Of so many places in a row each is found at once.
const NEAR: usize = 32;
/// No place: that of the cell that many share.
const OTHERS: u32 = u32::MAX;
/// Of one kernel no more is counted before it is added to its numbers.
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
    /// In the order in which they came.
    waiting: Vec<Waiting>,
    /// Room for the same in order of their kernels, and for where each kernel's begin.
    sorted: Vec<Waiting>,
    starts: Vec<u32>,
    /// Room for where those of one kernel are, each.
    runs: Vec<Range<usize>>,
    /// Kernels that ran since the last refresh, each once.
    touched: Vec<u32>,
    /// Kernels with a histogram: the first [`HISTOGRAMS`] that ran. Many more may be registered.
    full: Vec<u32>,
}

impl Kernels {
    /// By kernel, as of the last refresh.
    pub fn rows(&self) -> &[KernelStat] {
        &self.rows
    }

    /// Counts dispatches, each in its place; the index of each one's geometry goes to `ids`.
    pub(super) fn add(&mut self, dispatches: &[Dispatch], places: &[u32], shapes: &mut Shapes, ids: &mut Vec<u32>) {
        ids.clear();
        ids.extend(dispatches.iter().map(|dispatch| shapes.id(Shape::of(dispatch))));
        let all = dispatches.iter().zip(places).zip(&*ids);
        let all = all.map(|((dispatch, &place), &shape)| Waiting::new(dispatch, place, shape));
        self.waiting.extend(all.filter(|one| (one.kernel as usize) < MOST_IDS));
        if self.waiting.len() >= MOST_WAITING {
            self.settle();
        }
    }

    /// Adds those that wait to the numbers of their kernels.
    fn settle(&mut self) {
        let Some(last) = self.waiting.iter().map(|one| one.kernel as usize).max() else {
            return;
        };
        if last >= self.rows.len() {
            self.grow(last + 1);
        }
        self.sort();
        let (waiting, mut runs) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.runs));
        let each = waiting.chunk_by(|one, next| one.kernel == next.kernel);
        runs.extend(each.scan(0, |end, run| {
            *end += run.len();
            Some(*end - run.len()..*end)
        }));
        for at in 0..runs.len() {
            if let Some(far) = runs.get(at + FAR) {
                self.fetch(&waiting[far.start]);
            }
            if let Some(near) = runs.get(at + FAR / 2) {
                self.fetch_more(&waiting[near.clone()]);
            }
            self.add_run(&waiting[runs[at].clone()]);
        }
        runs.clear();
        (self.waiting, self.runs) = (waiting, runs);
        self.waiting.clear();
    }

    /// Fetches what lies far from the processor and will be wanted soon.
    #[inline]
    fn fetch(&self, one: &Waiting) {
        let fresh = &self.fresh[one.kernel as usize];
        near::fetch(&fresh.sum);
        near::fetch(&fresh.shape);
        near::fetch(&fresh.near[NEAR - 1]);
    }

    /// The same for what is found by way of that.
    #[inline]
    fn fetch_more(&self, run: &[Waiting]) {
        let fresh = &self.fresh[run[0].kernel as usize];
        for one in run.iter().take(MOST_FETCHED) {
            if let Some(cell) = fresh.cells.get(usize::from(fresh.near[one.place as usize % NEAR])) {
                near::fetch(cell);
            }
            fresh.counts.fetch(one.nanos);
        }
    }

    /// Puts those that wait in order of their kernels, those of one kernel in the order in which they came.
    fn sort(&mut self) {
        if self.waiting.len() * RARE < self.rows.len() {
            return self.waiting.sort_by_key(|one| one.kernel);
        }
        self.starts.clear();
        self.starts.resize(self.rows.len(), 0);
        for one in &self.waiting {
            self.starts[one.kernel as usize] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += std::mem::replace(start, sum);
        }
        self.sorted.resize(self.waiting.len(), Waiting::default());
        for (number, one) in self.waiting.iter().enumerate() {
            let later = self
                .waiting
                .get(number + FAR)
                .map(|one| self.starts[one.kernel as usize]);
            if let Some(place) = later.and_then(|place| self.sorted.get(place as usize)) {
                near::fetch(place);
            }
            let place = &mut self.starts[one.kernel as usize];
            self.sorted[*place as usize] = *one;
            *place += 1;
        }
        std::mem::swap(&mut self.waiting, &mut self.sorted);
    }

    /// Counts dispatches of one kernel.
    fn add_run(&mut self, run: &[Waiting]) {
        let kernel = run[0].kernel;
        let (row, fresh) = (&mut self.rows[kernel as usize], &mut self.fresh[kernel as usize]);
        if !std::mem::replace(&mut fresh.is_touched, true) {
            self.touched.push(kernel);
        }
        if !fresh.is_full && self.full.len() < HISTOGRAMS && run.iter().any(|one| one.duration().is_some()) {
            fresh.is_full = true;
            row.stat.keep_histogram();
            self.full.push(kernel);
        }
        for one in run {
            if one.shape != fresh.shape || fresh.shapes == 0 {
                fresh.shapes = fresh.shapes.saturating_add(1);
                fresh.shape = one.shape;
            }
            fresh.cell(one.place).add(one.duration());
            let Some(duration) = one.duration() else {
                fresh.untimed += 1;
                continue;
            };
            fresh.sum.add(duration);
            if one.second != fresh.second {
                fresh.turn(row, one.second);
            }
            fresh.nanos = fresh.nanos.saturating_add(duration);
            if one.delay != UNKNOWN {
                fresh.delay = fresh.delay.saturating_add(one.delay);
                fresh.delayed += 1;
            }
            if fresh.is_full && fresh.counts.add(duration) {
                row.stat.count_in(&mut fresh.counts);
            }
        }
        if fresh.sum.count().max(fresh.untimed) >= MOST_FRESH {
            fresh.settle(row);
        }
    }

    /// Makes room for so many kernels.
    #[cold]
    fn grow(&mut self, kernels: usize) {
        self.rows.resize(kernels, KernelStat::default());
        self.fresh.resize(kernels, Fresh::default());
    }

    /// Brings everything up to date: numbers and percentiles, which may lag behind by some of the latest durations while
    /// there are many kernels, unless it must be exact.
    pub(super) fn refresh(&mut self, shapes: &Shapes, is_exact: bool) {
        self.settle();
        let is_exact = is_exact || self.touched.len() < FEW;
        for kernel in self.touched.drain(..) {
            let (row, fresh) = (&mut self.rows[kernel as usize], &mut self.fresh[kernel as usize]);
            fresh.is_touched = false;
            fresh.settle(row);
            row.shape = shapes.get(fresh.shape).copied().unwrap_or_default();
            row.cells = Arc::new(fresh.cells.clone());
        }
        for &kernel in &self.full {
            let (row, fresh) = (&mut self.rows[kernel as usize], &mut self.fresh[kernel as usize]);
            if is_exact || u64::from(fresh.counts.waiting()) * LAG >= row.stat.timed {
                row.stat.count_in(&mut fresh.counts);
                row.stat.refresh();
            }
        }
    }

    /// Whether percentiles lag behind.
    pub(super) fn is_behind(&self) -> bool {
        let mut counts = self.full.iter().map(|kernel| &self.fresh[*kernel as usize].counts);
        counts.any(|counts| counts.waiting() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_trace::item::{KernelId, Span};

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
    fn what_every_dispatch_changes_lies_in_three_lines_of_the_cache() {
        assert_eq!((size_of::<Fresh>(), align_of::<Fresh>()), (192, 64));
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
    fn kernels_that_run_late_have_percentiles() {
        let (mut kernels, mut shapes, mut ids) = (Kernels::default(), Shapes::default(), Vec::new());
        // 2400 kernels are registered, and eight run; the last has no time at first.
        for kernel in [1, 265, 592, 1023, 1024, 1479, 2055, 2399] {
            for i in 0..300 {
                let mut one = dispatch(kernel, 1_000_000_000 + i * 1000, 1000 + i);
                if kernel == 2399 && i < 100 {
                    one.span = Span::default();
                }
                kernels.add(&[one], &[0], &mut shapes, &mut ids);
                if i == 50 {
                    kernels.refresh(&shapes, false);
                }
            }
        }
        kernels.refresh(&shapes, true);
        let numbers = |kernel: usize| {
            let stat = &kernels.rows()[kernel].stat;
            let binned: u64 = stat.bins(8, true).iter().map(|bin| bin.1).sum();
            (
                stat.calls,
                binned,
                stat.quantiles.p50.is_some(),
                stat.quantiles.p99.is_some(),
            )
        };
        for kernel in [1, 265, 592, 1023, 1024, 1479, 2055] {
            assert_eq!(numbers(kernel), (300, 300, true, true), "kernel {kernel}");
        }
        assert_eq!(numbers(2399), (300, 200, true, true));
        assert!(
            !kernels.rows()[2].stat.is_full(),
            "a kernel that never ran keeps no histogram"
        );
    }

    #[test]
    fn no_more_than_1024_kernels_have_histograms() {
        let (mut kernels, mut shapes, mut ids) = (Kernels::default(), Shapes::default(), Vec::new());
        for i in 0..30 {
            for kernel in (0..3000).rev() {
                let one = dispatch(kernel, 1_000_000_000 + i * 1000, 1000);
                kernels.add(&[one], &[0], &mut shapes, &mut ids);
            }
            kernels.refresh(&shapes, true);
        }
        let full = kernels.rows().iter().filter(|row| row.stat.is_full());
        assert_eq!(full.count(), HISTOGRAMS);
        for row in kernels.rows() {
            assert_eq!(
                (row.stat.calls, row.stat.quantiles.p50.is_some()),
                (30, row.stat.is_full())
            );
        }
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
