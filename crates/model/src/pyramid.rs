//! Time in levels: each level has buckets eight times as wide as the one below, and all of them are always exact sums.
//!
//! A wide view reads a coarse level: nothing is dropped, it is only added up. Old parts of fine levels are forgotten;
//! the coarser levels still have them.
//!
//! Work comes nearly in order, so each level has one open bucket: what falls into it costs an addition, and only when
//! the next one is opened does its sum go to its place and into the open bucket of the level above.

use std::collections::VecDeque;
use std::sync::Arc;

use roctop_trace::item::{Nanos, Span};

/// Half a millisecond: what is narrower is told by the slices themselves.
const FINEST: u32 = 19;
const FACTOR: u32 = 3;
const LEVELS: usize = 7;
const BLOCK: usize = 64;
const BLOCKS: usize = 28;
/// A span of fewer buckets goes through the open ones.
const SHORT: u64 = 8;

/// How far back a pyramid reaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Work that crosses its ends counts within them only.
    pub(crate) span: Span,
    /// Blocks that each level keeps beside the newest.
    pub(crate) blocks: usize,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            span: Span {
                begin: 0,
                end: Nanos::MAX,
            },
            blocks: BLOCKS,
        }
    }
}

impl Reach {
    /// No stretch is narrower, ns.
    pub(crate) const FINEST: u64 = 1 << FINEST;

    /// One that knows all of `span` in stretches that are not wider than `width`.
    pub(crate) const fn of(span: Span, width: u64) -> Self {
        // A level's stretches are wider than an eighth of the columns that it is chosen for.
        let finest = if width >> FACTOR > 1 << FINEST {
            width >> FACTOR
        } else {
            1 << FINEST
        };
        let buckets = (span.end.saturating_sub(span.begin) / finest) as usize;
        Self {
            span,
            blocks: buckets / BLOCK + 3,
        }
    }
}

/// What lies in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Nanoseconds in which there was work (may exceed the width when work overlaps).
    pub busy: u64,
    /// Pieces of work that began here.
    pub count: u32,
    /// What took most of the time, and what took less; the first is right wherever anything is here.
    what: [u32; KINDS],
    /// Their shares of `busy`, of [`WHOLE`].
    shares: [u16; KINDS],
}

/// Kinds of work that a bucket names.
const KINDS: usize = 3;
const WHOLE: u64 = u16::MAX as u64;

impl Bucket {
    /// Adds work of so many nanoseconds.
    pub fn add(&mut self, what: u32, nanos: u64, begins: bool) {
        self.merge(&Self {
            busy: nanos,
            count: u32::from(begins),
            what: [what; KINDS],
            shares: [u16::MAX, 0, 0],
        });
    }

    /// What took most of the time.
    pub const fn what(&self) -> u32 {
        self.what[0]
    }

    /// Kinds of work and their nanoseconds, the greatest first.
    pub fn kinds(&self) -> impl Iterator<Item = (u32, u64)> {
        let nanos = |share: u16| (u128::from(self.busy) * u128::from(share) / u128::from(WHOLE)) as u64;
        let kinds = self.what.into_iter().zip(self.shares.map(nanos)).enumerate();
        kinds
            .filter(|(at, (_, nanos))| *at == 0 || *nanos > 0)
            .map(|(_, kind)| kind)
    }

    /// Adds another.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.is_empty() {
            *self = *other;
            return;
        }
        let mut kinds = [(0, 0); 2 * KINDS];
        let mut known = 0;
        for (what, nanos) in self.kinds().chain(other.kinds()) {
            if let Some(kind) = kinds[..known].iter_mut().find(|kind: &&mut (u32, u64)| kind.0 == what) {
                kind.1 = kind.1.saturating_add(nanos);
            } else {
                kinds[known] = (what, nanos);
                known += 1;
            }
        }
        self.busy = self.busy.saturating_add(other.busy);
        self.count = self.count.saturating_add(other.count);
        self.name(&mut kinds[..known]);
    }

    /// Names the greatest of these kinds.
    fn name(&mut self, kinds: &mut [(u32, u64)]) {
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.1));
        self.shares = [0; KINDS];
        for (at, (what, nanos)) in kinds.iter().take(KINDS).enumerate() {
            self.what[at] = *what;
            let share = u128::from(*nanos) * u128::from(WHOLE) / u128::from(self.busy.max(1));
            self.shares[at] = share.min(u128::from(WHOLE)) as u16;
        }
    }

    /// The part of it that falls into `part` of `whole` ns, without what began in it.
    fn part(&self, part: u64, whole: u64) -> Self {
        Self {
            busy: (u128::from(self.busy) * u128::from(part) / u128::from(whole.max(1))) as u64,
            count: 0,
            ..*self
        }
    }

    const fn is_empty(&self) -> bool {
        self.busy == 0 && self.count == 0
    }
}

/// Kinds that the open bucket of the finest level tells apart.
const SLOTS: usize = 8;

/// The open bucket of the finest level, to which each piece of work is added: kinds have slots by their numbers, so that
/// adding needs no search.
#[derive(Clone, Copy, Debug, Default)]
struct Finest {
    busy: u64,
    count: u32,
    slots: [(u32, u64); SLOTS],
}

impl Finest {
    #[inline]
    fn add(&mut self, what: u32, nanos: u64, begins: bool) {
        self.busy = self.busy.saturating_add(nanos);
        self.count = self.count.saturating_add(u32::from(begins));
        let (held, sum) = &mut self.slots[what as usize % SLOTS];
        // Choices of values, which need no branch: nobody foresees which kind comes. The greater keeps the slot.
        let is_held = *held == what;
        let is_kept = is_held || *sum > nanos;
        *sum = if is_held {
            sum.saturating_add(nanos)
        } else {
            nanos.max(*sum)
        };
        *held = if is_kept { *held } else { what };
    }

    const fn is_empty(&self) -> bool {
        self.busy == 0 && self.count == 0
    }

    fn bucket(&self) -> Bucket {
        let mut bucket = Bucket {
            busy: self.busy,
            count: self.count,
            ..Bucket::default()
        };
        let mut kinds = self.slots;
        bucket.name(&mut kinds);
        if self.busy == 0 {
            // Work without a duration has a kind, too: the slot that one took last.
            let named = self.slots.iter().find(|slot| slot.0 != 0);
            bucket.what[0] = named.map_or(0, |slot| slot.0);
        }
        bucket
    }
}

type Block = [Bucket; BLOCK];

#[derive(Clone, Debug)]
struct Level {
    /// (number of the block, its buckets), ascending by number; shared with snapshots until another one comes.
    blocks: Arc<VecDeque<(u64, Arc<Block>)>>,
    /// The one above all of those: nobody shares it, so that it is changed in place.
    newest: Option<(u64, Box<Block>)>,
    /// Blocks below this number were forgotten.
    since: u64,
    /// Blocks that are kept beside the newest.
    most: usize,
}

impl Default for Level {
    fn default() -> Self {
        Self {
            blocks: Arc::default(),
            newest: None,
            since: 0,
            most: BLOCKS,
        }
    }
}

impl Level {
    fn bucket(&mut self, index: u64) -> Option<&mut Bucket> {
        let (number, place) = (index / BLOCK as u64, (index % BLOCK as u64) as usize);
        match &self.newest {
            Some(newest) if newest.0 == number => {}
            Some(newest) if newest.0 > number => return self.older(number).map(|block| &mut block[place]),
            _ => self.turn(number),
        }
        self.newest.as_mut().map(|newest| &mut newest.1[place])
    }

    /// Begins a new newest block, in the room of the one before.
    fn turn(&mut self, number: u64) {
        if let Some((newest, block)) = &mut self.newest {
            let old = std::mem::replace(newest, number);
            Arc::make_mut(&mut self.blocks).push_back((old, Arc::new(**block)));
            block.fill(Bucket::default());
            self.forget();
        } else {
            self.newest = Some((number, Box::new([Bucket::default(); BLOCK])));
        }
    }

    /// Keeps as many blocks as there is room for beside the newest; the oldest go.
    fn forget(&mut self) {
        if self.blocks.len() >= self.most
            && let Some((forgotten, _)) = Arc::make_mut(&mut self.blocks).pop_front()
        {
            self.since = forgotten + 1;
        }
    }

    /// A block below the newest, unless it was forgotten.
    fn older(&mut self, number: u64) -> Option<&mut Block> {
        if number < self.since {
            return None;
        }
        let mut at = self.blocks.len();
        while at > 0 && self.blocks[at - 1].0 > number {
            at -= 1;
        }
        if at == 0 || self.blocks[at - 1].0 != number {
            Arc::make_mut(&mut self.blocks).insert(at, (number, Arc::new([Bucket::default(); BLOCK])));
            let before = self.blocks.len();
            self.forget();
            at = at + 1 - (before - self.blocks.len());
            if at == 0 {
                return None;
            }
        }
        Some(Arc::make_mut(&mut Arc::make_mut(&mut self.blocks)[at - 1].1))
    }

    /// All blocks, oldest first.
    fn all(&self) -> impl Iterator<Item = (u64, &Block)> {
        let newest = self.newest.iter().map(|(number, block)| (*number, &**block));
        self.blocks
            .iter()
            .map(|(number, block)| (*number, &**block))
            .chain(newest)
    }
}

/// All levels of one lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pyramid {
    levels: [Level; LEVELS],
    /// By level but the finest: the number of the open bucket, and what is in it and not in a level's blocks yet.
    open: [(u64, Bucket); LEVELS],
    /// The same of the finest.
    finest: (u64, Finest),
    reach: Reach,
}

const fn shift(level: usize) -> u32 {
    FINEST + FACTOR * level as u32
}

impl Pyramid {
    /// An empty one that reaches so far.
    pub(crate) fn reaching(reach: Reach) -> Self {
        let mut pyramid = Self {
            reach,
            ..Self::default()
        };
        for level in &mut pyramid.levels {
            level.most = reach.blocks;
        }
        pyramid
    }

    /// Adds a span of work; `begins` is false for a piece of work that was counted before.
    #[inline]
    pub(crate) fn add(&mut self, span: Span, what: u32, begins: bool) {
        let end = span.end.max(span.begin);
        // Most work is short.
        let index = span.begin >> FINEST;
        if end.saturating_sub(1).max(span.begin) >> FINEST == index {
            if self.finest.0 != index {
                self.turn_finest(index);
            }
            return self.finest.1.add(what, end - span.begin, begins);
        }
        self.add_slowly(Span { end, ..span }, what, begins);
    }

    #[inline(never)]
    fn add_slowly(&mut self, span: Span, what: u32, begins: bool) {
        let Span { begin, end } = self.reach.span;
        let begins = begins && span.begin >= begin;
        let span = Span {
            begin: span.begin.max(begin),
            end: span.end.min(end),
        };
        let end = span.end;
        for number in 0..LEVELS {
            let shift = shift(number);
            let (first, last) = (span.begin >> shift, end.saturating_sub(1).max(span.begin) >> shift);
            let is_short = last - first < SHORT;
            // Only the newest part of a very long span fits a fine level.
            let from = first.max((last + 1).saturating_sub((self.reach.blocks * BLOCK) as u64));
            for index in from..=last {
                let low = (index << shift).max(span.begin);
                let high = ((index + 1) << shift).min(end);
                let (nanos, begins) = (high.saturating_sub(low), begins && index == first);
                if is_short && number == 0 {
                    if self.finest.0 != index {
                        self.turn_finest(index);
                    }
                    self.finest.1.add(what, nanos, begins);
                } else if is_short {
                    self.open(number, index).add(what, nanos, begins);
                } else if let Some(bucket) = self.levels[number].bucket(index) {
                    bucket.add(what, nanos, begins);
                }
            }
            if is_short {
                return;
            }
        }
    }

    /// Adds all that another one has.
    pub(crate) fn absorb(&mut self, other: &Self) {
        for number in 0..LEVELS {
            for (block, buckets) in other.levels[number].all() {
                let first = block * BLOCK as u64;
                for (index, bucket) in (first..).zip(buckets.iter()).filter(|(_, bucket)| !bucket.is_empty()) {
                    if let Some(place) = self.levels[number].bucket(index) {
                        place.merge(bucket);
                    }
                }
            }
            // What is open below has not come to this level yet.
            for (index, bucket) in other.opened(number) {
                if let Some(place) = self.levels[number].bucket(index) {
                    place.merge(&bucket);
                }
            }
        }
    }

    /// Opens another bucket of the finest level.
    #[inline(never)]
    fn turn_finest(&mut self, index: u64) {
        let (old, bucket) = std::mem::replace(&mut self.finest, (index, Finest::default()));
        if !bucket.is_empty() {
            let bucket = bucket.bucket();
            if let Some(place) = self.levels[0].bucket(old) {
                place.merge(&bucket);
            }
            self.open(1, old >> FACTOR).merge(&bucket);
        }
    }

    /// The open bucket of a level, which is this one from now on.
    #[inline]
    fn open(&mut self, level: usize, index: u64) -> &mut Bucket {
        // Most work goes on where the work before it ended.
        if self.open[level].0 != index {
            self.turn(level, index);
        }
        &mut self.open[level].1
    }

    /// Opens another bucket of a level.
    #[inline(never)]
    fn turn(&mut self, level: usize, index: u64) {
        let (old, bucket) = std::mem::replace(&mut self.open[level], (index, Bucket::default()));
        if !bucket.is_empty() {
            if let Some(place) = self.levels[level].bucket(old) {
                place.merge(&bucket);
            }
            if level + 1 < LEVELS {
                self.open(level + 1, old >> FACTOR).merge(&bucket);
            }
        }
    }

    /// What is open and belongs to a level: its own and all that is open below.
    fn opened(&self, level: usize) -> Vec<(u64, Bucket)> {
        let mut out: Vec<(u64, Bucket)> = Vec::with_capacity(LEVELS);
        let finest = (self.finest.0, self.finest.1.bucket());
        for below in (0..=level).rev() {
            let (index, bucket) = if below == 0 { &finest } else { &self.open[below] };
            let index = index >> (FACTOR * (level - below) as u32);
            if bucket.is_empty() || index / (BLOCK as u64) < self.levels[level].since {
                continue;
            }
            match out.iter_mut().find(|known| known.0 == index) {
                Some(known) => known.1.merge(bucket),
                None => out.push((index, *bucket)),
            }
        }
        out
    }

    /// The coarsest level whose buckets are not wider than `width` and that still remembers `from`; when none is fine
    /// enough or remembers, the finest that remembers.
    fn level(&self, from: Nanos, width: u64) -> usize {
        let remembers = |level: usize| self.levels[level].since * BLOCK as u64 <= from >> shift(level);
        let fitting = (0..LEVELS)
            .rev()
            .find(|&level| 1 << shift(level) <= width && remembers(level));
        fitting
            .or_else(|| (0..LEVELS).find(|&level| remembers(level)))
            .unwrap_or(LEVELS - 1)
    }

    /// Adds up stretches of `width` ns from `from` on; a bucket that crosses an edge is split by time. How wide the buckets
    /// are that they are made of.
    pub(crate) fn columns(&self, from: Nanos, width: u64, out: &mut [Bucket]) -> u64 {
        let width = width.max(1);
        let level = self.level(from, width);
        self.sum(level, from, width, out);
        1 << shift(level)
    }

    fn sum(&self, number: usize, from: Nanos, width: u64, out: &mut [Bucket]) {
        let (shift, level) = (shift(number), &self.levels[number]);
        let to = from.saturating_add(width.saturating_mul(out.len() as u64));
        let mut opened = self.opened(number);
        let mut put = |index: u64, bucket: &Bucket| {
            let low = index << shift;
            if low < to && low + (1 << shift) > from {
                spread(bucket, low, low + (1 << shift), from, width, out);
            }
        };
        for (block, buckets) in level.all() {
            let first = block * BLOCK as u64;
            let start = first << shift;
            if start >= to || start + ((BLOCK as u64) << shift) <= from {
                continue;
            }
            for (index, bucket) in (first..).zip(buckets.iter()).filter(|(_, bucket)| !bucket.is_empty()) {
                match opened.iter_mut().find(|open| open.0 == index) {
                    Some(open) => {
                        let mut whole = *bucket;
                        whole.merge(&std::mem::take(&mut open.1));
                        put(index, &whole);
                    }
                    None => put(index, bucket),
                }
            }
        }
        for (index, bucket) in opened.iter().filter(|open| !open.1.is_empty()) {
            put(*index, bucket);
        }
    }

    /// How wide the buckets are that columns of a width are made of.
    pub(crate) fn stored(&self, from: Nanos, width: u64) -> u64 {
        1 << shift(self.level(from, width))
    }

    /// Nanoseconds of work between `from` and `to`.
    pub(crate) fn busy(&self, from: Nanos, to: Nanos) -> u64 {
        let width = to.saturating_sub(from);
        if width == 0 {
            return 0;
        }
        let mut all = [Bucket::default()];
        self.sum(self.level(from, width.div_ceil(256)), from, width, &mut all);
        all[0].busy.min(width)
    }
}

/// Adds one piece of work to columns of `width` ns from `from` on, exactly.
pub(super) fn lay(span: Span, what: u32, from: Nanos, width: u64, out: &mut [Bucket]) {
    let high = span.end.max(span.begin);
    let first = span.begin.saturating_sub(from) / width;
    let mut begins = span.begin >= from;
    for column in first..out.len() as u64 {
        let left = from.saturating_add(width.saturating_mul(column));
        let right = left.saturating_add(width);
        if left >= high.max(span.begin.saturating_add(1)) {
            break;
        }
        let nanos = right.min(high).saturating_sub(left.max(span.begin));
        out[column as usize].add(what, nanos, std::mem::take(&mut begins));
    }
}

/// Adds one bucket (`low`..`high`) to the columns it covers.
fn spread(bucket: &Bucket, low: u64, high: u64, from: u64, width: u64, out: &mut [Bucket]) {
    let last = out.len() as u64;
    if let ([cell], true) = (&mut *out, low >= from && high <= from.saturating_add(width)) {
        return cell.merge(bucket);
    }
    let first = low.saturating_sub(from) / width;
    let mut counted = low < from;
    for column in first..last {
        let left = from.saturating_add(width.saturating_mul(column));
        let right = left.saturating_add(width);
        if left >= high {
            break;
        }
        let part = right.min(high).saturating_sub(left.max(low));
        let cell = &mut out[column as usize];
        cell.merge(&bucket.part(part, high - low));
        if !counted {
            cell.count = cell.count.saturating_add(bucket.count);
            counted = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(pyramid: &Pyramid, from: Nanos, width: u64, columns: usize) -> Vec<Bucket> {
        let mut out = vec![Bucket::default(); columns];
        pyramid.columns(from, width, &mut out);
        out
    }

    #[test]
    fn kinds_keep_their_shares_through_all_levels() {
        let mut pyramid = Pyramid::default();
        // Of each millisecond 0.5 are a, 0.3 b, 0.1 c.
        for milli in 0..8000u64 {
            let begin = milli * 1_000_000;
            for (what, from, to) in [(11, 0, 500_000), (22, 500_000, 800_000), (33, 800_000, 900_000)] {
                let span = Span {
                    begin: begin + from,
                    end: begin + to,
                };
                pyramid.add(span, what, true);
            }
        }
        for width in [20_000_000, 500_000_000, 2_000_000_000] {
            let out = columns(&pyramid, 0, width, (8_000_000_000 / width) as usize);
            // The last bucket goes beyond the last column.
            for bucket in &out[..out.len() - 1] {
                let kinds: Vec<(u32, u64)> = bucket.kinds().collect();
                let share = |at: usize| kinds[at].1 as f64 / width as f64;
                assert_eq!((kinds[0].0, kinds[1].0, kinds[2].0), (11, 22, 33));
                assert!(
                    (share(0) - 0.5).abs() < 0.03 && (share(1) - 0.3).abs() < 0.03,
                    "{width}: {kinds:?}"
                );
            }
        }
    }

    #[test]
    fn every_level_adds_up_to_the_same_time() {
        let mut pyramid = Pyramid::default();
        let mut total = 0;
        for i in 0..500u64 {
            let begin = 10_000_000 + i * 100_000;
            pyramid.add(
                Span {
                    begin,
                    end: begin + 37_000,
                },
                (i % 3) as u32,
                true,
            );
            total += 37_000;
        }
        for width in [100_000u64, 1_000_000, 60_000_000, 10_000_000_000] {
            let columns = columns(&pyramid, 0, width, (61_000_000 / width + 1) as usize);
            let busy: u64 = columns.iter().map(|c| c.busy).sum();
            assert!(total - busy <= 2000, "width {width}: {busy} of {total}");
            assert_eq!(columns.iter().map(|c| c.count).sum::<u32>(), 500, "width {width}");
        }
    }

    #[test]
    fn what_fine_levels_forget_the_coarse_ones_keep() {
        let mut pyramid = Pyramid::default();
        for second in 0..3600u64 {
            let begin = second * 1_000_000_000;
            pyramid.add(
                Span {
                    begin,
                    end: begin + 250_000_000,
                },
                1,
                true,
            );
        }
        let hour = columns(&pyramid, 0, 60_000_000_000, 61);
        assert!(
            hour[..59]
                .iter()
                .all(|minute| minute.busy.abs_diff(15_000_000_000) < 600_000_000),
            "{hour:?}"
        );
        assert_eq!(hour.iter().map(|c| c.count).sum::<u32>(), 3600);
        assert!(hour.iter().map(|c| c.busy).sum::<u64>().abs_diff(900_000_000_000) < 1000);
        // A fine view of the first second gets the finest level that still knows it.
        assert!(
            columns(&pyramid, 0, 10_000_000, 100)
                .iter()
                .any(|column| column.busy > 0)
        );
    }

    #[test]
    fn the_longest_is_what_a_bucket_names() {
        let mut pyramid = Pyramid::default();
        pyramid.add(Span { begin: 0, end: 10_000 }, 5, true);
        pyramid.add(
            Span {
                begin: 10_000,
                end: 60_000,
            },
            6,
            true,
        );
        let bucket = columns(&pyramid, 0, 1 << FINEST, 1)[0];
        assert_eq!(bucket.what(), 6);
        let kinds: Vec<u32> = bucket
            .kinds()
            .map(|(what, nanos)| what * 10_000 + (nanos + 5) as u32 / 10_000)
            .collect();
        assert_eq!(kinds, [60_005, 50_001]);
    }
}
