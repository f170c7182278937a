//! Statistics by kernel. Dispatches are buffered and sorted by kernel, so that the data of a kernel is loaded into the
//! cache once per batch.

use std::ops::Range;
use std::sync::Arc;

use roctop_ring::near;

use super::histogram_delta::Counts;
use super::launch_config::{Shape, Shapes};
use super::placement::{is_of_others, others_of};
use super::seconds::{Seconds, Sums};
use super::stats::{HISTOGRAMS, Stat, Sum, Summed, Trend};
use super::table::{MAX_IDS, is_untimed};
use roctop_trace::item::{Dispatch, Nanos};

/// Statistics of a kernel in one place (agent, queue, stream).
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Number of the place, or of further places of its process and agent.
    pub place: u32,
    /// The numbers.
    pub sum: Sum,
}

/// Statistics of a kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelStat {
    /// Durations.
    pub stat: Stat,
    /// By place, as of the last [`Kernels::refresh`].
    pub cells: Arc<Vec<Cell>>,
    /// Busy ns by second.
    pub trend: Trend,
    /// Sum of delays from submission to begin, ns.
    pub delay: u64,
    /// Number of known delays.
    pub delayed: u64,
    /// Latest launch configuration.
    pub shape: Shape,
    /// Number of changes of the launch configuration, plus one.
    pub shapes: u32,
}

impl KernelStat {
    /// Whether some launches ran in places without a cell: it ran in very many.
    pub fn has_other_places(&self) -> bool {
        self.cells.iter().any(Cell::is_of_others)
    }
}

impl Cell {
    /// Whether it is a cell that further places share.
    pub const fn is_of_others(&self) -> bool {
        is_of_others(self.place)
    }
}

/// Buffered values of a dispatch.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    kernel: u32,
    /// Index of the place.
    place: u32,
    /// Index of the launch configuration.
    shape: u32,
    /// Second in which it ended.
    second: u32,
    /// Duration, ns; [`UNKNOWN`] if untimed.
    nanos: u64,
    /// Delay from submission to begin, ns; [`UNKNOWN`] if unknown.
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
            // An invalid time is treated as unknown.
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

/// Per-dispatch updates of a kernel, in few cache lines. They are added to the kernel's statistics when a snapshot is
/// made.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Fresh {
    sum: Summed,
    /// Number of untimed dispatches.
    untimed: u32,
    /// Number and sum of known delays.
    delayed: u32,
    delay: u64,
    /// Busy ns in the current second, number and squares of its durations, and that second.
    nanos: u64,
    squares: f64,
    counted: u32,
    second: u32,
    is_touched: bool,
    /// Whether the kernel has a histogram.
    is_full: bool,
    /// Index of the latest launch configuration, and number of changes.
    shape: u32,
    shapes: u32,
    /// Values not yet in the histogram.
    counts: Counts,
    /// Statistics by place; never removed.
    cells: Vec<Cell>,
    /// Index of a place's cell, by the low bits of the place.
    near: [u8; CELL_CACHE],
}

impl Fresh {
    /// Statistics of a place.
    #[inline]
    fn cell(&mut self, place: u32) -> &mut Sum {
        let near = &mut self.near[place as usize % CELL_CACHE];
        let cells = &mut self.cells;
        if cells.get(usize::from(*near)).is_none_or(|cell| cell.place != place) {
            *near = find(cells, place);
        }
        &mut cells[usize::from(*near)].sum
    }

    /// Adds the sums to the kernel's statistics, except the histogram, and resets them.
    fn settle(&mut self, kernel: u32, row: &mut KernelStat, seconds: &mut Seconds) {
        row.stat.merge(&std::mem::take(&mut self.sum));
        row.stat.calls += u64::from(std::mem::take(&mut self.untimed));
        row.delayed += u64::from(std::mem::take(&mut self.delayed));
        row.delay = row.delay.saturating_add(std::mem::take(&mut self.delay));
        row.shapes = self.shapes;
        self.turn(kernel, row, seconds, self.second);
    }

    /// Begins a new second.
    fn turn(&mut self, kernel: u32, row: &mut KernelStat, seconds: &mut Seconds, second: u32) {
        let nanos = std::mem::take(&mut self.nanos);
        let sums = Sums {
            kernel,
            count: std::mem::take(&mut self.counted),
            total: nanos,
            squares: std::mem::take(&mut self.squares),
        };
        if sums.count > 0 {
            seconds.add(self.second, sums);
        }
        row.trend.add(u64::from(self.second) * SECOND, nanos);
        self.second = second;
    }
}

/// Finds or creates the cell of a place. Places beyond the limit share one cell for each process and agent.
pub(super) fn find(cells: &mut Vec<Cell>, place: u32) -> u8 {
    let known = |cells: &[Cell], place: u32| cells.iter().position(|cell| cell.place == place);
    let place = match known(cells, place) {
        Some(at) => return at as u8,
        None if cells.len() + 1 < MAX_CELLS => place,
        None if cells.len() < usize::from(u8::MAX) => others_of(place),
        // Nor are processes and agents without number.
        None => u32::MAX,
    };
    let at = known(cells, place).unwrap_or(cells.len());
    if at == cells.len() {
        let sum = Sum::default();
        cells.push(Cell { place, sum });
    }
    at as u8
}

const SECOND: Nanos = 1_000_000_000;
/// Maximum number of buffered dispatches: some of each of ten thousand kernels.
const MAX_WAITING: usize = 1 << 16;
/// Kernels per buffered dispatch beyond which prefetching pays, because most kernels have none in the buffer.
const SPARSE_KERNELS: usize = 4;
/// Prefetch distance in kernels, and maximum number of dispatches prefetched per kernel.
const PREFETCH_DISTANCE: usize = 8;
const MAX_PREFETCHED: usize = 8;
/// Maximum number of cells per kernel, of which the last is shared; more only for further processes and agents.
const MAX_CELLS: usize = 64;
/// Size of the lookup table from place to cell.
const CELL_CACHE: usize = 32;
/// Maximum count per kernel before it is added to the statistics.
const MAX_PENDING: u32 = 1 << 30;
/// Number of kernels up to which all are refreshed completely.
const FULL_REFRESH_KERNELS: usize = 256;
/// Percentiles may lag by one in this many durations.
const PERCENTILE_LAG: u64 = 64;

/// All kernels.
#[derive(Debug, Default)]
pub struct Kernels {
    rows: Vec<KernelStat>,
    /// Pending updates, by kernel.
    fresh: Vec<Fresh>,
    /// Buffered dispatches, in order of arrival.
    waiting: Vec<Waiting>,
    /// Reused buffers: dispatches sorted by kernel, and the begin of each kernel's.
    sorted: Vec<Waiting>,
    starts: Vec<u32>,
    /// Reused buffer: range of each kernel's dispatches.
    runs: Vec<Range<usize>>,
    /// Kernels that ran since the last refresh, each once.
    touched: Vec<u32>,
    /// Kernels with a histogram: the first [`HISTOGRAMS`] that ran. Many more may be registered.
    full: Vec<u32>,
    seconds: Seconds,
}

impl Kernels {
    /// Sums by second, as of the last refresh.
    pub(super) fn seconds(&self) -> &Seconds {
        &self.seconds
    }

    /// Statistics by kernel, as of the last refresh.
    pub fn rows(&self) -> &[KernelStat] {
        &self.rows
    }

    /// Counts dispatches by place. The index of each launch configuration is appended to `ids`.
    pub(super) fn add(&mut self, dispatches: &[Dispatch], places: &[u32], shapes: &mut Shapes, ids: &mut Vec<u32>) {
        ids.clear();
        ids.extend(dispatches.iter().map(|dispatch| shapes.id(Shape::of(dispatch))));
        let all = dispatches.iter().zip(places).zip(&*ids);
        let all = all.map(|((dispatch, &place), &shape)| Waiting::new(dispatch, place, shape));
        self.waiting.extend(all.filter(|one| (one.kernel as usize) < MAX_IDS));
        if self.waiting.len() >= MAX_WAITING {
            self.settle();
        }
    }

    /// Adds the buffered dispatches to their kernels.
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
            if let Some(far) = runs.get(at + PREFETCH_DISTANCE) {
                self.fetch(&waiting[far.start]);
            }
            if let Some(near) = runs.get(at + PREFETCH_DISTANCE / 2) {
                self.fetch_more(&waiting[near.clone()]);
            }
            self.add_run(&waiting[runs[at].clone()]);
        }
        runs.clear();
        (self.waiting, self.runs) = (waiting, runs);
        self.waiting.clear();
        self.seconds.cut();
    }

    /// Prefetches the pending updates of a kernel.
    #[inline]
    fn fetch(&self, one: &Waiting) {
        let fresh = &self.fresh[one.kernel as usize];
        near::fetch(&fresh.sum);
        near::fetch(&fresh.shape);
        near::fetch(&fresh.near[CELL_CACHE - 1]);
    }

    /// Prefetches what those point to.
    #[inline]
    fn fetch_more(&self, run: &[Waiting]) {
        let fresh = &self.fresh[run[0].kernel as usize];
        for one in run.iter().take(MAX_PREFETCHED) {
            if let Some(cell) = fresh
                .cells
                .get(usize::from(fresh.near[one.place as usize % CELL_CACHE]))
            {
                near::fetch(cell);
            }
            fresh.counts.fetch(one.nanos);
        }
    }

    /// Sorts the buffer by kernel, in order of arrival within a kernel.
    fn sort(&mut self) {
        if self.waiting.len() * SPARSE_KERNELS < self.rows.len() {
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
                .get(number + PREFETCH_DISTANCE)
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
                fresh.turn(kernel, row, &mut self.seconds, one.second);
            }
            fresh.nanos = fresh.nanos.saturating_add(duration);
            fresh.squares += (duration as f64) * (duration as f64);
            fresh.counted += 1;
            if one.delay != UNKNOWN {
                fresh.delay = fresh.delay.saturating_add(one.delay);
                fresh.delayed += 1;
            }
            if fresh.is_full && fresh.counts.add(duration) {
                row.stat.count_in(&mut fresh.counts);
            }
        }
        if fresh.sum.count().max(fresh.untimed) >= MAX_PENDING {
            fresh.settle(kernel, row, &mut self.seconds);
        }
    }

    /// Makes room for this many kernels.
    #[cold]
    fn grow(&mut self, kernels: usize) {
        self.rows.resize(kernels, KernelStat::default());
        self.fresh.resize(kernels, Fresh::default());
    }

    /// Updates statistics and percentiles. With many kernels, percentiles may lag by the latest durations, unless
    /// `is_exact`.
    pub(super) fn refresh(&mut self, shapes: &Shapes, is_exact: bool) {
        self.settle();
        let is_exact = is_exact || self.touched.len() < FULL_REFRESH_KERNELS;
        for kernel in self.touched.drain(..) {
            let (row, fresh) = (&mut self.rows[kernel as usize], &mut self.fresh[kernel as usize]);
            fresh.is_touched = false;
            fresh.settle(kernel, row, &mut self.seconds);
            row.shape = shapes.get(fresh.shape).copied().unwrap_or_default();
            row.cells = Arc::new(fresh.cells.clone());
        }
        self.seconds.cut();
        for &kernel in &self.full {
            let (row, fresh) = (&mut self.rows[kernel as usize], &mut self.fresh[kernel as usize]);
            if is_exact || u64::from(fresh.counts.waiting()) * PERCENTILE_LAG >= row.stat.timed {
                row.stat.count_in(&mut fresh.counts);
                row.stat.refresh();
            }
        }
    }

    /// Whether percentiles lag.
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
    fn per_dispatch_updates_fit_three_cache_lines() {
        assert_eq!((size_of::<Fresh>(), align_of::<Fresh>()), (192, 64));
    }

    #[test]
    fn statistics_do_not_depend_on_refreshes() {
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
            assert_eq!(a.cells.len(), MAX_CELLS);
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
        // 2400 kernels are registered and eight run; the last has no time at first.
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
    fn percentiles_lag_only_until_an_exact_refresh() {
        let (mut kernels, mut shapes, mut ids) = (Kernels::default(), Shapes::default(), Vec::new());
        let mut add = |kernels: &mut Kernels, shapes: &mut Shapes, times: u64, nanos: u64| {
            for kernel in 0..500 {
                for i in 0..times {
                    let one = dispatch(kernel, 1_000_000_000 + i * 1000, nanos);
                    kernels.add(&[one], &[0], shapes, &mut ids);
                }
            }
        };
        add(&mut kernels, &mut shapes, 640, 1000);
        kernels.refresh(&shapes, false);
        assert!(!kernels.is_behind());
        add(&mut kernels, &mut shapes, 9, 5_000_000);
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
