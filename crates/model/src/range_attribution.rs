//! Attributes GPU work to the ROC-TX ranges in which it was launched.
//!
//! A range is known when it is closed; its work may complete before or after that. Each thread therefore keeps its
//! latest work and its latest ranges, and the later event finds the earlier one.

use std::collections::VecDeque;

use super::stats::{Quantiles, Sum};
use roctop_trace::item::{Nanos, Span, ThreadId};

/// Per thread: number of pieces of work kept individually (older ones are kept in blocks), and of ranges.
const MAX_WORK: usize = 2048;
const BLOCK: usize = 64;
const MAX_BLOCKS: usize = 8192;
const MAX_RANGES: usize = 512;
const MAX_THREADS: usize = 1 << 16;
/// Number of kernel durations kept per pattern.
const MAX_RECENT: usize = 512;
/// Pieces of work by which completion order may deviate from launch order.
const DISORDER: usize = 64;

/// Work attributed to a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Number of kernels.
    pub kernels: u64,
    /// Number of copies and fills.
    pub copies: u64,
    /// Sum of the durations of both, ns.
    pub nanos: u64,
    /// Sum of the durations of copies and fills, ns.
    pub copying: u64,
}

impl Work {
    /// A kernel.
    pub const fn kernel(span: Span) -> Self {
        Self {
            kernels: 1,
            copies: 0,
            nanos: span.duration(),
            copying: 0,
        }
    }

    /// A copy or fill.
    pub const fn copy(span: Span) -> Self {
        Self {
            kernels: 0,
            copies: 1,
            nanos: span.duration(),
            copying: span.duration(),
        }
    }

    /// Adds other work.
    pub fn merge(&mut self, other: Self) {
        self.kernels += other.kernels;
        self.copies += other.copies;
        self.nanos = self.nanos.saturating_add(other.nanos);
        self.copying = self.copying.saturating_add(other.copying);
    }
}

/// Kernels launched in ranges of one pattern: their sum, and the latest durations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    sum: Sum,
    nanos: Vec<u64>,
    next: usize,
    is_fresh: bool,
}

impl Recent {
    pub(crate) fn add(&mut self, nanos: u64) {
        self.is_fresh = true;
        self.sum.add(Some(nanos));
        if self.nanos.len() < MAX_RECENT {
            return self.nanos.push(nanos);
        }
        self.nanos[self.next] = nanos;
        self.next = (self.next + 1) % MAX_RECENT;
    }

    /// The sum and percentiles of the latest, if there are new ones since the last call.
    pub(crate) fn fresh(&mut self) -> Option<(Sum, Quantiles)> {
        if !std::mem::take(&mut self.is_fresh) {
            return None;
        }
        Some((self.sum, Quantiles::of(&mut self.nanos.clone())))
    }
}

/// A piece of work.
#[derive(Clone, Copy, Debug)]
struct Piece {
    launched: Nanos,
    /// Twice its duration in ns, plus one for a copy.
    nanos: u64,
}

impl Piece {
    fn new(launched: Nanos, work: Work) -> Self {
        Self {
            launched,
            nanos: work.nanos << 1 | u64::from(work.copies > 0),
        }
    }

    fn work(self) -> Work {
        let copies = self.nanos & 1;
        let nanos = self.nanos >> 1;
        Work {
            kernels: 1 - copies,
            copies,
            nanos,
            copying: nanos * copies,
        }
    }
}

#[derive(Debug, Default)]
struct Thread {
    work: VecDeque<Piece>,
    /// Older work in blocks: launch span and sum.
    blocks: VecDeque<(Span, Work)>,
    /// Closed ranges with the row they count for, sorted by end.
    ranges: VecDeque<(Span, u32)>,
    /// Rows and levels of closed ranges whose enclosing range is still open.
    inner: Vec<(u16, u32)>,
}

/// All threads.
#[derive(Debug, Default)]
pub(crate) struct Under {
    threads: Vec<Thread>,
    /// Whether there are ranges; without any, no work is kept.
    is_wanted: bool,
}

impl Thread {
    /// Merges the oldest work into a block.
    fn fold(&mut self) {
        let mut span = Span {
            begin: Nanos::MAX,
            end: 0,
        };
        let mut sum = Work::default();
        for piece in self.work.drain(..BLOCK) {
            span.begin = span.begin.min(piece.launched);
            span.end = span.end.max(piece.launched);
            sum.merge(piece.work());
        }
        if self.blocks.len() == MAX_BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back((span, sum));
    }

    /// The closed ranges of a row that overlap a stretch, without those within others.
    fn counted(&self, stretch: Span, row: u32) -> Vec<Span> {
        let mut found: Vec<Span> = Vec::new();
        let young = self
            .ranges
            .iter()
            .rev()
            .take_while(|(known, _)| known.end >= stretch.begin);
        for &(known, _) in young.filter(|(known, of)| *of == row && known.begin <= stretch.end) {
            if found.last().is_none_or(|last| known.begin < last.begin) {
                found.push(known);
            }
        }
        found
    }
}

/// Whether any of the spans has a moment of the stretch.
fn touches(spans: &[Span], begin: Nanos, end: Nanos) -> bool {
    spans.iter().any(|span| span.begin <= end && begin <= span.end)
}

impl Under {
    /// Whether work must be passed in.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Enables attribution; `known` has all previous work in order of completion.
    pub(crate) fn want(&mut self, known: impl Iterator<Item = (ThreadId, Nanos, Work)>) {
        self.is_wanted = true;
        known.for_each(|(thread, launched, work)| self.work(thread, launched, work, |_| {}));
    }

    fn thread(&mut self, id: ThreadId) -> Option<&mut Thread> {
        let at = id.0 as usize;
        if at >= MAX_THREADS {
            return None;
        }
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, Thread::default);
        }
        self.threads.get_mut(at)
    }

    /// Adds completed work of a thread; `credit` receives each row whose range contains its launch.
    pub(crate) fn work(&mut self, thread: ThreadId, launched: Nanos, work: Work, mut credit: impl FnMut(u32)) {
        let Some(thread) = self.thread(thread) else { return };
        let younger = thread.ranges.iter().rev().take_while(|(span, _)| span.end >= launched);
        let mut credited = Vec::new();
        for &(_, row) in younger.filter(|(span, _)| span.begin <= launched) {
            // Ranges of a row may be nested or overlap.
            if !credited.contains(&row) {
                credited.push(row);
                credit(row);
            }
        }
        if thread.work.len() == MAX_WORK {
            thread.fold();
        }
        thread.work.push_back(Piece::new(launched, work));
    }

    /// Adds a closed range and returns its completed work, without what other ranges of the row had before: they may be
    /// nested or overlap. `kernel` receives kernel durations that are known individually.
    pub(crate) fn range(&mut self, thread: ThreadId, span: Span, row: u32, mut kernel: impl FnMut(u64)) -> Work {
        let mut sum = Work::default();
        let Some(thread) = self.thread(thread) else { return sum };
        let counted = thread.counted(span, row);
        let mut older = 0;
        for piece in thread.work.iter().rev() {
            let launched = piece.launched;
            if launched < span.begin {
                older += 1;
                if older > DISORDER {
                    break;
                }
            } else if launched <= span.end && !touches(&counted, launched, launched) {
                let work = piece.work();
                if work.kernels > 0 {
                    kernel(work.nanos);
                }
                sum.merge(work);
            }
        }
        // Blocks that the range only touches do not count: the result is a lower bound.
        let inside = |(block, _): &&(Span, Work)| {
            block.begin >= span.begin && block.end <= span.end && !touches(&counted, block.begin, block.end)
        };
        let young = thread.blocks.iter().rev().take_while(|block| block.0.end >= span.begin);
        young.filter(inside).for_each(|block| sum.merge(block.1));
        if thread.ranges.len() == MAX_RANGES {
            thread.ranges.pop_front();
        }
        // Ranges arrive nearly sorted by end; a late one is inserted at its place.
        let at = thread.ranges.partition_point(|known| known.0.end <= span.end);
        thread.ranges.insert(at, (span, row));
        sum
    }

    /// Adds a closed range of a level; returns the rows of the ranges directly inside.
    pub(crate) fn nest(&mut self, thread: ThreadId, level: u16, row: u32) -> Vec<u32> {
        let Some(thread) = self.thread(thread) else {
            return Vec::new();
        };
        let mut within = Vec::new();
        thread.inner.retain(|&(inner, child)| {
            if inner == level.saturating_add(1) && child != row {
                within.push(child);
            }
            inner <= level
        });
        if !thread.inner.contains(&(level, row)) && thread.inner.len() < MAX_RANGES {
            thread.inner.push((level, row));
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadId = ThreadId(3);
    const KERNEL: Work = Work {
        kernels: 1,
        copies: 0,
        nanos: 10,
        copying: 0,
    };

    #[test]
    fn work_is_found_whether_it_completes_before_or_after_its_range() {
        let mut under = Under::default();
        let (mut late, mut durations) = (Vec::new(), Vec::new());
        under.work(THREAD, 100, KERNEL, |row| late.push(row));
        under.work(THREAD, 150, KERNEL, |row| late.push(row));
        let inner = under.range(THREAD, Span { begin: 140, end: 160 }, 1, |nanos| durations.push(nanos));
        assert_eq!(durations, [10]);
        assert_eq!((inner.kernels, inner.nanos), (1, 10));
        let outer = under.range(THREAD, Span { begin: 90, end: 200 }, 2, |_| {});
        assert_eq!(outer.kernels, 2);
        assert!(late.is_empty());
        under.work(THREAD, 155, KERNEL, |row| late.push(row));
        under.work(THREAD, 210, KERNEL, |row| late.push(row));
        assert_eq!(late, [2, 1]);
        assert_eq!(
            under.range(ThreadId(4), Span { begin: 0, end: 999 }, 5, |_| {}),
            Work::default()
        );
    }

    #[test]
    fn a_long_range_counts_more_work_than_is_kept_one_by_one() {
        let mut under = Under::default();
        for at in 0..20_000 {
            under.work(THREAD, 1000 + at, KERNEL, |_| {});
        }
        let all = under.range(
            THREAD,
            Span {
                begin: 1000,
                end: 50_000,
            },
            1,
            |_| {},
        );
        assert_eq!((all.kernels, all.nanos), (20_000, 200_000));
        let part = under.range(
            THREAD,
            Span {
                begin: 2000,
                end: 50_000,
            },
            2,
            |_| {},
        );
        assert!((19_000 - BLOCK as u64..=19_000).contains(&part.kernels), "{part:?}");
    }

    #[test]
    fn ranges_of_a_pattern_count_the_same_work_once() {
        let span = |begin, end| Span { begin, end };
        let mut under = Under::default();
        let mut late = Vec::new();
        for launched in [100, 150, 155, 180] {
            under.work(THREAD, launched, KERNEL, |row| late.push(row));
        }
        let kernels = |under: &mut Under, span, row| under.range(THREAD, span, row, |_| {}).kernels;
        assert_eq!(kernels(&mut under, span(148, 152), 1), 1);
        assert_eq!(kernels(&mut under, span(154, 156), 1), 1);
        assert_eq!(kernels(&mut under, span(145, 160), 1), 0);
        assert_eq!(kernels(&mut under, span(140, 190), 2), 3);
        assert_eq!(kernels(&mut under, span(90, 200), 1), 2);
        // One that overlaps the last: what is in both counts once.
        assert_eq!(kernels(&mut under, span(170, 220), 1), 0);
        assert!(late.is_empty());
        under.work(THREAD, 149, KERNEL, |row| late.push(row));
        late.sort_unstable();
        assert_eq!(late, [1, 2]);
    }

    #[test]
    fn nested_ranges_count_work_in_blocks_at_most_once() {
        let mut under = Under::default();
        for at in 0..20_000 {
            under.work(THREAD, 1000 + at, KERNEL, |_| {});
        }
        let span = |begin, end| Span { begin, end };
        let inner = under.range(THREAD, span(6000, 11_000), 1, |_| {}).kernels;
        let outer = under.range(THREAD, span(1000, 50_000), 1, |_| {}).kernels;
        let all = inner + outer;
        assert!((20_000 - 2 * BLOCK as u64..=20_000).contains(&all), "{inner} + {outer}");
    }

    #[test]
    fn kernels_of_a_pattern_are_summed_up_when_some_came() {
        let mut recent = Recent::default();
        assert!(recent.fresh().is_none());
        (1..=2 * MAX_RECENT as u64).for_each(|nanos| recent.add(nanos));
        let (sum, quantiles) = recent.fresh().unwrap_or_default();
        assert_eq!((sum.timed, sum.min, sum.max), (1024, 1, 1024));
        assert_eq!((quantiles.p50, quantiles.p99), (Some(768), Some(1019)));
        assert!(recent.fresh().is_none());
    }

    #[test]
    fn ranges_know_what_was_within_them() {
        let mut under = Under::default();
        assert!(under.nest(THREAD, 1, 10).is_empty());
        assert!(under.nest(THREAD, 1, 11).is_empty());
        assert_eq!(under.nest(THREAD, 0, 12), [10, 11]);
        assert!(under.nest(THREAD, 1, 10).is_empty());
        assert_eq!(under.nest(THREAD, 0, 12), [10]);
    }
}
