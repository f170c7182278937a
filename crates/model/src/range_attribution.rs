//! Work of the GPU by the ROC-TX ranges in which it was launched.
//!
//! A range is known when it is closed; work may complete before or after that. So each thread keeps its last work and
//! its last ranges, and whichever comes second finds the other.

use std::collections::VecDeque;

use super::stats::{Quantiles, Sum};
use roctop_trace::item::{Nanos, Span, ThreadId};

/// Pieces of work kept one by one of a thread, older ones by the block, and ranges.
const MOST_WORK: usize = 2048;
const BLOCK: usize = 64;
const MOST_BLOCKS: usize = 8192;
const MOST_RANGES: usize = 512;
const MOST_THREADS: usize = 1 << 16;
/// Durations of kernels kept for a pattern.
const MOST_RECENT: usize = 512;
/// Work completes nearly in the order in which it was launched: after so much older work nothing younger comes.
const DISORDER: usize = 64;

/// What ran under a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Kernels.
    pub kernels: u64,
    /// Copies and fills.
    pub copies: u64,
    /// Durations of both, ns.
    pub nanos: u64,
    /// Durations of copies and fills alone, ns.
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

/// Kernels that were launched in ranges of one pattern: their sum, and the durations of the last.
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
        if self.nanos.len() < MOST_RECENT {
            return self.nanos.push(nanos);
        }
        self.nanos[self.next] = nanos;
        self.next = (self.next + 1) % MOST_RECENT;
    }

    /// The sum, and percentiles of the last, when some came since this was last asked.
    pub(crate) fn fresh(&mut self) -> Option<(Sum, Quantiles)> {
        if !std::mem::take(&mut self.is_fresh) {
            return None;
        }
        Some((self.sum, Quantiles::of(&mut self.nanos.clone())))
    }
}

/// One piece of work.
#[derive(Clone, Copy, Debug)]
struct Piece {
    launched: Nanos,
    /// Twice its length, ns, and one when it is a copy.
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
    /// Older work, so much at a time: launched from when to when, and its sum.
    blocks: VecDeque<(Span, Work)>,
    /// Closed ranges with the row that they count for, in order of end.
    ranges: VecDeque<(Span, u32)>,
    /// Rows of closed ranges whose enclosing range is open still, with their levels.
    inner: Vec<(u16, u32)>,
}

/// All threads.
#[derive(Debug, Default)]
pub(crate) struct Under {
    threads: Vec<Thread>,
    /// Whether there are ranges at all: without any no work is kept.
    is_wanted: bool,
}

impl Thread {
    /// Puts the oldest work together into a block.
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
        if self.blocks.len() == MOST_BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back((span, sum));
    }
}

impl Under {
    /// Whether it wants to be told of work.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// There are ranges from now on: it is told of all work that is known, in order of completion, and of what comes.
    pub(crate) fn want(&mut self, known: impl Iterator<Item = (ThreadId, Nanos, Work)>) {
        self.is_wanted = true;
        known.for_each(|(thread, launched, work)| self.work(thread, launched, work, |_| {}));
    }

    fn thread(&mut self, id: ThreadId) -> Option<&mut Thread> {
        let at = id.0 as usize;
        if at >= MOST_THREADS {
            return None;
        }
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, Thread::default);
        }
        self.threads.get_mut(at)
    }

    /// One piece of work that a thread launched has completed; `credit` is told each row whose range it was launched in.
    pub(crate) fn work(&mut self, thread: ThreadId, launched: Nanos, work: Work, mut credit: impl FnMut(u32)) {
        let Some(thread) = self.thread(thread) else { return };
        let younger = thread.ranges.iter().rev().take_while(|(span, _)| span.end >= launched);
        younger
            .filter(|(span, _)| span.begin <= launched)
            .for_each(|&(_, row)| credit(row));
        if thread.work.len() == MOST_WORK {
            thread.fold();
        }
        thread.work.push_back(Piece::new(launched, work));
    }

    /// A range was closed: the work launched in it that has completed. `kernel` is told the durations of kernels, as far as
    /// these are known one by one.
    pub(crate) fn range(&mut self, thread: ThreadId, span: Span, row: u32, mut kernel: impl FnMut(u64)) -> Work {
        let mut sum = Work::default();
        let Some(thread) = self.thread(thread) else { return sum };
        let mut older = 0;
        for piece in thread.work.iter().rev() {
            let launched = piece.launched;
            if launched < span.begin {
                older += 1;
                if older > DISORDER {
                    break;
                }
            } else if launched <= span.end {
                let work = piece.work();
                if work.kernels > 0 {
                    kernel(work.nanos);
                }
                sum.merge(work);
            }
        }
        // Of a block that the range only touches nothing is counted: what is told is a lower bound.
        let inside = |block: &&(Span, Work)| block.0.begin >= span.begin && block.0.end <= span.end;
        let young = thread.blocks.iter().rev().take_while(|block| block.0.end >= span.begin);
        young.filter(inside).for_each(|block| sum.merge(block.1));
        if thread.ranges.len() == MOST_RANGES {
            thread.ranges.pop_front();
        }
        // Nearly in order of end: one that was told late is put in its place.
        let at = thread.ranges.partition_point(|known| known.0.end <= span.end);
        thread.ranges.insert(at, (span, row));
        sum
    }

    /// A range of a level was closed: the rows of those directly within.
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
        if !thread.inner.contains(&(level, row)) && thread.inner.len() < MOST_RANGES {
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
        let (mut late, mut told) = (Vec::new(), Vec::new());
        under.work(THREAD, 100, KERNEL, |row| late.push(row));
        under.work(THREAD, 150, KERNEL, |row| late.push(row));
        let inner = under.range(THREAD, Span { begin: 140, end: 160 }, 1, |nanos| told.push(nanos));
        assert_eq!(told, [10]);
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
            1,
            |_| {},
        );
        assert!((19_000 - BLOCK as u64..=19_000).contains(&part.kernels), "{part:?}");
    }

    #[test]
    fn kernels_of_a_pattern_are_summed_up_when_some_came() {
        let mut recent = Recent::default();
        assert!(recent.fresh().is_none());
        (1..=2 * MOST_RECENT as u64).for_each(|nanos| recent.add(nanos));
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
