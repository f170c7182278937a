//! Attributes GPU work to the ROC-TX ranges in which it was launched.
//!
//! A range is known when it is closed; its work may complete before or after that. Each thread therefore keeps its
//! latest work and its latest ranges, and the later event finds the earlier one.

use std::collections::VecDeque;

use super::stats::{Quantiles, Sum};
use roctop_trace::item::{Nanos, Span, ThreadId};

/// Number of pieces of work, and of closed ranges, that are kept individually; more for a thread that has few.
const MAX_PIECES: usize = 1 << 19;
const MIN_PIECES: usize = 2048;
const MAX_RANGES: usize = 1 << 18;
const MIN_RANGES: usize = 512;
/// Number of start/stop ranges kept per thread.
const MAX_CROSSING: usize = 4096;
/// Number of nesting levels with their own lists; deeper ranges are kept like start/stop ranges.
const MAX_LEVELS: usize = 64;
/// Number of blocks of older work per thread; more of them are merged.
const MAX_BLOCKS: usize = 8192;
/// Part of a thread's work or ranges that is merged or forgotten at once.
const FOLDED_PART: usize = 8;
const MAX_THREADS: usize = 1 << 16;
/// Number of kernel durations kept per pattern.
const MAX_RECENT: usize = 512;
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

/// Older work, of which only the sum is known.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// From the first launch to the last.
    launched: Span,
    /// Closed ranges of one level around all of it, all in the same range or in none: ranges of the stack that are closed later
    /// contain all of them or none.
    within: Option<(Span, usize)>,
    work: Work,
}

/// Closed ranges of a thread with the row that each counts for, sorted by end.
#[derive(Debug, Default)]
struct Closed {
    /// By nesting level: those of one level follow one another.
    levels: Vec<VecDeque<(Span, u32)>>,
    /// Start/stop ranges, which may cross others.
    crossing: VecDeque<(Span, u32)>,
    /// Rows of forgotten ranges, each with the last end of one.
    forgotten: Vec<(u32, Nanos)>,
    /// Number of ranges in `levels`.
    nested: usize,
}

impl Closed {
    /// Adds a range. Ranges arrive nearly sorted by end; a late one is inserted at its place.
    fn add(&mut self, span: Span, row: u32, level: Option<usize>) {
        let list = match level {
            Some(level) => {
                if self.levels.len() <= level {
                    self.levels.resize_with(level + 1, VecDeque::new);
                }
                self.nested += 1;
                &mut self.levels[level]
            }
            None => &mut self.crossing,
        };
        let at = list.partition_point(|known| known.0.end <= span.end);
        list.insert(at, (span, row));
    }

    /// Forgets the oldest ranges of a level, or of start/stop ranges.
    fn forget(&mut self, level: Option<usize>, count: usize) {
        let list = match level {
            Some(level) => {
                self.nested -= count;
                &mut self.levels[level]
            }
            None => &mut self.crossing,
        };
        for (old, row) in list.drain(..count) {
            match self.forgotten.iter_mut().find(|known| known.0 == row) {
                Some(known) => known.1 = known.1.max(old.end),
                None => self.forgotten.push((row, old.end)),
            }
        }
    }

    /// The ranges that touch a stretch.
    fn touching(&self, stretch: Span) -> impl Iterator<Item = (Span, u32)> {
        let ended = move |list: &VecDeque<(Span, u32)>| list.partition_point(|known| known.0.end < stretch.begin);
        let begun = move |known: &&(Span, u32)| known.0.begin <= stretch.end;
        let nested = self
            .levels
            .iter()
            .flat_map(move |list| list.range(ended(list)..).take_while(begun));
        let crossing = self.crossing.range(ended(&self.crossing)..).filter(begun);
        nested.chain(crossing).copied()
    }

    /// The first nested range of a level that ends at a time or later.
    fn ended(&self, level: usize, at: Nanos) -> Option<Span> {
        let list = self.levels.get(level)?;
        let found = list.get(list.partition_point(|known| known.0.end < at))?;
        Some(found.0)
    }

    /// The outermost nested range around a launch, and its level.
    fn outermost(&self, launched: Nanos) -> Option<(Span, usize)> {
        let around = |level| {
            let span = self.ended(level, launched)?;
            (span.begin <= launched).then_some((span, level))
        };
        (0..self.levels.len()).find_map(around)
    }

    /// Ranges of a level together with a later launch, if it is in or before a further range of the level, and that one is in
    /// the same outer range.
    fn joined(&self, known: Span, level: usize, launched: Nanos) -> Option<Span> {
        let next = self.ended(level, launched)?;
        let is_between = |outer: usize| {
            let other = self.ended(outer, known.end);
            other.is_some_and(|other| {
                let has_both = other.begin <= known.begin && next.end <= other.end;
                other.begin <= next.end && !has_both
            })
        };
        let end = if next.begin <= launched { next.end } else { launched };
        (!(0..level).any(is_between)).then_some(Span {
            begin: known.begin,
            end: end.max(known.end),
        })
    }

    /// Last end of a forgotten range of a row.
    fn forgotten_until(&self, row: u32) -> Option<Nanos> {
        let known = self.forgotten.iter().find(|known| known.0 == row);
        known.map(|known| known.1)
    }
}

#[derive(Debug, Default)]
struct Thread {
    /// The first of them sorted by launch.
    work: Vec<Piece>,
    sorted: usize,
    /// Older work, sorted by launch.
    blocks: VecDeque<Block>,
    closed: Closed,
    /// Rows and levels of closed ranges whose enclosing range is still open.
    inner: Vec<(u16, u32)>,
}

/// All threads.
#[derive(Debug, Default)]
pub(crate) struct Under {
    threads: Vec<Thread>,
    /// Number of pieces and of ranges that all threads keep.
    pieces: usize,
    ranges: usize,
    /// Work that completed until then may be missing.
    unknown_until: Nanos,
    /// Whether there are ranges; without any, no work is kept.
    is_wanted: bool,
}

/// What was credited to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credit {
    /// The work.
    Whole,
    /// Nothing, although a range of the row that was forgotten may have the work.
    Unknown,
}

impl Thread {
    /// Sorts work by launch. It arrives nearly sorted.
    fn settle(&mut self) {
        let (sorted, fresh) = self.work.split_at(self.sorted);
        let Some(least) = fresh.iter().map(|piece| piece.launched).min() else {
            return;
        };
        let from = sorted.partition_point(|piece| piece.launched <= least);
        self.work[from..].sort_by_key(|piece| piece.launched);
        self.sorted = self.work.len();
    }

    /// Merges the oldest work into blocks.
    fn fold(&mut self, count: usize) {
        for piece in self.work.drain(..count) {
            let launched = piece.launched;
            let at = self.blocks.partition_point(|block| block.launched.begin <= launched);
            if let Some(last) = at.checked_sub(1).and_then(|last| self.blocks.get_mut(last)) {
                let known = last.within;
                let joined =
                    known.and_then(|(known, level)| Some((self.closed.joined(known, level, launched)?, level)));
                if joined.is_some() || launched <= last.launched.end {
                    last.within = joined.or(known);
                    last.launched.end = last.launched.end.max(launched);
                    last.work.merge(piece.work());
                    continue;
                }
            }
            let block = Block {
                launched: Span {
                    begin: launched,
                    end: launched,
                },
                within: self.closed.outermost(launched),
                work: piece.work(),
            };
            self.blocks.insert(at, block);
            if self.blocks.len() > MAX_BLOCKS {
                merge(&mut self.blocks);
            }
        }
        self.sorted = self.work.len();
    }

    /// Forgets the oldest ranges of a level, or of start/stop ranges; their work is merged before.
    fn forget(&mut self, level: Option<usize>, count: usize) {
        if let Some((last, _)) = level.and_then(|level| self.closed.levels[level].get(count.checked_sub(1)?)) {
            let end = last.end;
            self.fold(self.work.partition_point(|piece| piece.launched <= end));
        }
        self.closed.forget(level, count);
    }

    /// Launch times that ranges of a row have counted in a stretch, sorted and disjoint; and whether these are all.
    fn counted(&self, stretch: Span, row: u32) -> (Vec<Span>, bool) {
        let own = self.closed.touching(stretch).filter(|known| known.1 == row);
        let mut found: Vec<Span> = own.map(|known| known.0).collect();
        let unknown = self.closed.forgotten_until(row);
        let unknown = unknown.filter(|until| *until >= stretch.begin);
        found.extend(unknown.map(|end| Span {
            begin: stretch.begin,
            end,
        }));
        found.sort_unstable_by_key(|span| span.begin);
        found.dedup_by(|next, last| {
            let touches = next.begin <= last.end;
            last.end = last.end.max(if touches { next.end } else { 0 });
            touches
        });
        (found, unknown.is_none())
    }
}

/// Merges each two of the older half of the blocks.
fn merge(blocks: &mut VecDeque<Block>) {
    let old: Vec<Block> = blocks.drain(..MAX_BLOCKS / 2).collect();
    for pair in old.chunks(2).rev() {
        let mut both = pair[0];
        if let Some(next) = pair.get(1) {
            both.launched.end = both.launched.end.max(next.launched.end);
            both.within = None;
            both.work.merge(next.work);
        }
        blocks.push_front(both);
    }
}

impl Under {
    /// Whether work must be passed in.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Enables attribution; `known` has the previous work in order of completion, all that ended after `unknown_until`.
    pub(crate) fn want(&mut self, known: impl Iterator<Item = (ThreadId, Nanos, Work)>, unknown_until: Nanos) {
        self.is_wanted = true;
        self.unknown_until = unknown_until;
        known.for_each(|(thread, launched, work)| self.work(thread, launched, work, |_, _| {}));
    }

    fn thread(threads: &mut Vec<Thread>, id: ThreadId) -> Option<&mut Thread> {
        let at = id.0 as usize;
        if at >= MAX_THREADS {
            return None;
        }
        if threads.len() <= at {
            threads.resize_with(at + 1, Thread::default);
        }
        threads.get_mut(at)
    }

    /// Adds completed work of a thread; `credit` receives each row whose range contains its launch.
    pub(crate) fn work(&mut self, thread: ThreadId, launched: Nanos, work: Work, mut credit: impl FnMut(u32, Credit)) {
        let Some(thread) = Self::thread(&mut self.threads, thread) else {
            return;
        };
        let mut credited = Vec::new();
        let around = Span {
            begin: launched,
            end: launched,
        };
        for (_, row) in thread.closed.touching(around) {
            // Ranges of a row may be nested or overlap.
            if !credited.contains(&row) {
                credited.push(row);
                credit(row, Credit::Whole);
            }
        }
        let forgotten = thread.closed.forgotten.iter().filter(|known| known.1 >= launched);
        for &(row, _) in forgotten.filter(|known| !credited.contains(&known.0)) {
            credit(row, Credit::Unknown);
        }
        if self.pieces >= MAX_PIECES && thread.work.len() >= MIN_PIECES {
            let before = thread.work.len();
            thread.settle();
            thread.fold(before / FOLDED_PART);
            self.pieces -= before - thread.work.len();
        }
        thread.work.push(Piece::new(launched, work));
        self.pieces += 1;
    }

    /// Adds a closed range, of a level if it is one of a stack. Returns its completed work, without what other ranges of the
    /// row had before: they may be nested or overlap; and whether that is a lower bound. `kernel` receives kernel durations
    /// that are known individually.
    pub(crate) fn range(
        &mut self,
        thread: ThreadId,
        span: Span,
        row: u32,
        level: Option<u16>,
        mut kernel: impl FnMut(u64),
    ) -> (Work, bool) {
        let mut sum = Work::default();
        let Some(thread) = Self::thread(&mut self.threads, thread) else {
            return (sum, true);
        };
        thread.settle();
        let (counted, is_all) = thread.counted(span, row);
        let mut is_least = !is_all || span.begin < self.unknown_until;
        let mut spans = counted.iter().peekable();
        let first = thread.work.partition_point(|piece| piece.launched < span.begin);
        for piece in thread.work[first..]
            .iter()
            .take_while(|piece| piece.launched <= span.end)
        {
            while spans.next_if(|span| span.end < piece.launched).is_some() {}
            if spans.peek().is_none_or(|span| span.begin > piece.launched) {
                let work = piece.work();
                if work.kernels > 0 {
                    kernel(work.nanos);
                }
                sum.merge(work);
            }
        }
        let first = thread.blocks.partition_point(|block| block.launched.begin < span.begin);
        for block in thread.blocks.range(first.saturating_sub(1)..) {
            let Span { begin, end } = block.launched;
            if begin > span.end {
                break;
            }
            if end < span.begin {
                continue;
            }
            let before = counted.partition_point(|span| span.end < begin);
            match counted.get(before).filter(|counted| counted.begin <= end) {
                None if begin >= span.begin && end <= span.end => sum.merge(block.work),
                Some(counted) if counted.begin <= begin && end <= counted.end => {}
                // A part of the block counts: nobody knows how much.
                _ => is_least = true,
            }
        }
        let level = level.map(usize::from).filter(|level| *level < MAX_LEVELS);
        let before = (thread.closed.nested, thread.work.len());
        let (count, is_full) = match level.and_then(|level| thread.closed.levels.get(level)) {
            Some(list) => (list.len(), self.ranges >= MAX_RANGES && list.len() >= MIN_RANGES),
            None if level.is_some() => (0, false),
            None => (
                thread.closed.crossing.len(),
                thread.closed.crossing.len() >= MAX_CROSSING,
            ),
        };
        if is_full {
            thread.forget(level, count / FOLDED_PART);
        }
        thread.closed.add(span, row, level);
        self.ranges = self.ranges + thread.closed.nested - before.0;
        self.pieces -= before.1 - thread.work.len();
        (sum, is_least)
    }

    /// Adds a closed range of a level; returns the rows of the ranges directly inside.
    pub(crate) fn nest(&mut self, thread: ThreadId, level: u16, row: u32) -> Vec<u32> {
        let Some(thread) = Self::thread(&mut self.threads, thread) else {
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
        under.work(THREAD, 100, KERNEL, |row, _| late.push(row));
        under.work(THREAD, 150, KERNEL, |row, _| late.push(row));
        let inner = under
            .range(THREAD, Span { begin: 140, end: 160 }, 1, Some(1), |nanos| {
                durations.push(nanos);
            })
            .0;
        assert_eq!(durations, [10]);
        assert_eq!((inner.kernels, inner.nanos), (1, 10));
        let outer = under.range(THREAD, Span { begin: 90, end: 200 }, 2, Some(0), |_| {}).0;
        assert_eq!(outer.kernels, 2);
        assert!(late.is_empty());
        under.work(THREAD, 155, KERNEL, |row, _| late.push(row));
        under.work(THREAD, 210, KERNEL, |row, _| late.push(row));
        assert_eq!(late, [2, 1]);
        assert_eq!(
            under.range(ThreadId(4), Span { begin: 0, end: 999 }, 5, None, |_| {}),
            (Work::default(), false)
        );
    }

    #[test]
    fn ranges_of_a_pattern_count_the_same_work_once() {
        let span = |begin, end| Span { begin, end };
        let mut under = Under::default();
        let mut late = Vec::new();
        for launched in [100, 150, 155, 180] {
            under.work(THREAD, launched, KERNEL, |row, _| late.push(row));
        }
        let kernels = |under: &mut Under, span, row| under.range(THREAD, span, row, None, |_| {}).0.kernels;
        assert_eq!(kernels(&mut under, span(148, 152), 1), 1);
        assert_eq!(kernels(&mut under, span(154, 156), 1), 1);
        assert_eq!(kernels(&mut under, span(145, 160), 1), 0);
        assert_eq!(kernels(&mut under, span(140, 190), 2), 3);
        assert_eq!(kernels(&mut under, span(90, 200), 1), 2);
        // One that overlaps the last: what is in both counts once.
        assert_eq!(kernels(&mut under, span(170, 220), 1), 0);
        assert!(late.is_empty());
        under.work(THREAD, 149, KERNEL, |row, _| late.push(row));
        late.sort_unstable();
        assert_eq!(late, [1, 2]);
    }

    /// A range: its time, row, and level on the stack.
    type Drawn = (Span, u32, Option<u16>);

    /// Random ranges and work of a thread as records bring them: a stack of ranges, start/stop ranges across it, work that
    /// completes up to `lag` records after its launch.
    fn random(seed: u64, count: usize, lag: u64, has_crossing: bool) -> (Vec<Drawn>, Vec<Nanos>, Under) {
        let mut state = seed;
        let mut next = move |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % most
        };
        let (mut under, mut ranges, mut launches) = (Under::default(), Vec::new(), Vec::new());
        let mut stack: Vec<(Nanos, u32)> = Vec::new();
        let mut started: Vec<Nanos> = Vec::new();
        let mut waiting: Vec<(u64, Nanos)> = Vec::new();
        let mut now = 1_000;
        let mut sums = [Work::default(); 8];
        let mut is_least = [false; 8];
        for number in 0..count as u64 {
            now += 1 + next(5);
            let mut close = |under: &mut Under, span, row: u32, level| {
                let (work, least) = under.range(THREAD, span, row, level, |_| {});
                sums[row as usize].merge(work);
                is_least[row as usize] |= least;
                ranges.push((span, row, level));
            };
            match next(10) {
                0 if stack.len() < 5 => stack.push((now, next(4) as u32)),
                1 => {
                    if let Some((begin, row)) = stack.pop() {
                        close(&mut under, Span { begin, end: now }, row, Some(stack.len() as u16));
                    }
                }
                2 if has_crossing && started.len() < 3 => started.push(now),
                3 if !started.is_empty() => {
                    let begin = started.swap_remove(next(started.len() as u64) as usize);
                    close(&mut under, Span { begin, end: now }, 4, None);
                }
                _ => {
                    launches.push(now);
                    waiting.push((number + next(lag), now));
                }
            }
            waiting.retain(|&(due, launched)| {
                if due <= number || number + 1 == count as u64 {
                    under.work(THREAD, launched, KERNEL, |row, credit| match credit {
                        Credit::Whole => sums[row as usize].merge(KERNEL),
                        Credit::Unknown => is_least[row as usize] = true,
                    });
                    return false;
                }
                true
            });
        }
        for row in 0..5 {
            let own: Vec<Span> = ranges
                .iter()
                .filter(|range| range.1 == row)
                .map(|range| range.0)
                .collect();
            let is_in = |at: &&Nanos| own.iter().any(|span| span.begin <= **at && **at <= span.end);
            let truth = launches.iter().filter(is_in).count() as u64;
            let (found, least) = (sums[row as usize].kernels, is_least[row as usize]);
            assert!(found <= truth, "row {row}: {found} of {truth}");
            assert!(found == truth || least, "row {row}: {found} of {truth}, not marked");
        }
        assert_eq!(is_least[..5].iter().filter(|least| **least).count(), 0, "room for all");
        (ranges, launches, under)
    }

    #[test]
    fn nested_and_crossing_ranges_have_exactly_their_work() {
        for seed in 1..40 {
            random(seed, 1500, 1 + seed * 9 % 300, seed % 2 == 0);
        }
    }

    #[test]
    fn ranges_count_older_work_exactly_or_as_a_lower_bound() {
        let mut under = Under::default();
        let steps = (MAX_PIECES / 5) as u64;
        let span = |begin, end| Span { begin, end };
        // Before the outer range, fifty pieces; in each step ten pieces in two ranges, after each step one.
        (0..50).for_each(|at| under.work(THREAD, at + 1, KERNEL, |_, _| {}));
        let (mut sum, mut parts) = (0, 0);
        for step in 0..steps {
            let begin = 1000 + step * 100;
            (0..10).for_each(|at| under.work(THREAD, begin + at, KERNEL, |_, _| {}));
            for half in 0..2 {
                let half = span(begin + half * 5, begin + half * 5 + 4);
                let (work, is_least) = under.range(THREAD, half, 4, Some(2), |_| {});
                assert!(!is_least);
                parts += work.kernels;
            }
            let (work, is_least) = under.range(THREAD, span(begin, begin + 50), 1, Some(1), |_| {});
            assert!(!is_least);
            sum += work.kernels;
            under.work(THREAD, begin + 60, KERNEL, |_, _| {});
        }
        assert_eq!((sum, parts), (10 * steps, 10 * steps));
        let blocks = under.threads[3].blocks.len();
        assert!((2..MAX_BLOCKS / 8).contains(&blocks), "{blocks}");
        let all = under.range(THREAD, span(900, 2000 + steps * 100), 2, Some(0), |_| {});
        assert_eq!((all.0.kernels, all.1), (11 * steps, false));
        // One that crosses old steps does not know how much of a step it has.
        let (part, is_least) = under.range(THREAD, span(1005, 1250), 3, None, |_| {});
        assert!(is_least && part.kernels <= 28, "{part:?}");
    }

    #[test]
    fn outer_ranges_of_old_siblings_do_not_share_blocks() {
        let mut under = Under::default();
        let span = |begin, end| Span { begin, end };
        let mut epochs = Vec::new();
        let mut steps = 0;
        for epoch in 0..40 {
            let first = steps;
            let begin = 990 + steps * 100;
            let last = steps + (MAX_PIECES / 200) as u64 + epoch;
            for step in first..last {
                (0..10).for_each(|at| under.work(THREAD, 1000 + step * 100 + at, KERNEL, |_, _| {}));
                under.range(THREAD, span(1000 + step * 100, 1050 + step * 100), 1, Some(2), |_| {});
            }
            steps = last;
            let whole = span(begin, 980 + steps * 100);
            let found = under.range(THREAD, whole, 2, Some(1), |_| {});
            assert_eq!((found.0.kernels, found.1), (10 * (steps - first), false));
            epochs.push(whole);
        }
        let found = under.range(THREAD, span(900, 2000 + steps * 100), 3, Some(0), |_| {});
        assert_eq!((found.0.kernels, found.1), (10 * steps, false));
    }

    #[test]
    fn work_that_came_after_its_range_was_forgotten_marks_the_row() {
        let mut under = Under::default();
        let span = |begin, end| Span { begin, end };
        for number in 0..=MAX_CROSSING as u64 {
            under.range(THREAD, span(100 + number * 10, 105 + number * 10), 1, None, |_| {});
        }
        let mut credits = Vec::new();
        under.work(THREAD, 103, KERNEL, |row, credit| credits.push((row, credit)));
        under.work(THREAD, 103 + MAX_CROSSING as u64 * 5, KERNEL, |row, credit| {
            credits.push((row, credit));
        });
        under.work(THREAD, 106 + MAX_CROSSING as u64 * 5, KERNEL, |row, credit| {
            credits.push((row, credit));
        });
        assert_eq!(credits, [(1, Credit::Unknown), (1, Credit::Whole)]);
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
