//! Sums over time at several levels: each level has buckets eight times as wide as the one below; all are exact.
//!
//! A wide view reads a coarse level: nothing is dropped, only summed. Old parts of fine levels are forgotten; the
//! coarser levels still have them.
//!
//! Work arrives nearly in order, so each level has one open bucket. An addition goes there; when the next bucket opens,
//! its sum moves to its place and to the open bucket of the level above.
//!
//! Sparse work, of which nearly every piece would open a bucket of the finest level, goes to the next level instead: its
//! slices are kept for longer than the finest level reaches.

use std::collections::VecDeque;
use std::sync::Arc;

use roctop_trace::item::{Nanos, Span};

/// log2 of the width of the finest bucket in ns: half a millisecond. Narrower columns use the slices.
const FINEST_BITS: u32 = 19;
const FACTOR: u32 = 3;
const LEVELS: usize = 7;
const BLOCK: usize = 64;
const BLOCKS: usize = 28;
/// Pieces of work per bucket of the finest level from which on work is not sparse: to open a bucket costs many times as much as
/// to add a piece.
const DENSE: u64 = 16;
/// A span of fewer buckets goes through the open ones.
const SHORT_BUCKETS: u64 = 8;

/// How much work is added at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pieces: u64,
    /// The first and the last bucket of the finest level.
    first: u64,
    last: u64,
}

impl Amount {
    pub(crate) fn of(spans: impl Iterator<Item = Span>) -> Self {
        let (mut pieces, mut begin, mut end) = (0, Nanos::MAX, 0);
        for span in spans {
            pieces += 1;
            begin = begin.min(span.begin);
            end = end.max(span.end);
        }
        Self {
            pieces,
            first: begin >> FINEST_BITS,
            last: end >> FINEST_BITS,
        }
    }

    const fn is_dense(self) -> bool {
        self.pieces >= DENSE * (self.last.saturating_sub(self.first) + 1)
    }
}

/// How far back a pyramid reaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Work that crosses its ends counts within them only.
    pub(crate) span: Span,
    /// Blocks that each level keeps beside the newest.
    pub(crate) blocks: usize,
    /// Sparse work is in the finest level, too.
    pub(crate) is_fine: bool,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            span: Span {
                begin: 0,
                end: Nanos::MAX,
            },
            blocks: BLOCKS,
            is_fine: false,
        }
    }
}

impl Reach {
    /// No stretch is narrower, ns.
    pub(crate) const FINEST_WIDTH: u64 = 1 << FINEST_BITS;

    /// One that knows all of `span` in stretches that are not wider than `width`.
    pub(crate) const fn of(span: Span, width: u64) -> Self {
        // A level's stretches are wider than an eighth of the columns that it is chosen for.
        let finest = if width >> FACTOR > 1 << FINEST_BITS {
            width >> FACTOR
        } else {
            1 << FINEST_BITS
        };
        let buckets = (span.end.saturating_sub(span.begin) / finest) as usize;
        Self {
            span,
            blocks: buckets / BLOCK + 3,
            is_fine: true,
        }
    }
}

/// Sums of one time interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Busy time, ns; exceeds the width if work overlaps.
    pub busy: u64,
    /// Number of pieces of work that began in it.
    pub count: u32,
    /// Kinds of work with most of the time, greatest first; the first is valid if the bucket is not empty.
    what: [u32; KINDS],
    /// Their shares of `busy`, in units of 1/[`WHOLE`].
    shares: [u16; KINDS],
}

/// Number of kinds that a bucket names.
const KINDS: usize = 3;
const WHOLE: u64 = u16::MAX as u64;

impl Bucket {
    /// Adds work of this duration in ns.
    pub fn add(&mut self, what: u32, nanos: u64, begins: bool) {
        self.merge(&Self {
            busy: nanos,
            count: u32::from(begins),
            what: [what; KINDS],
            shares: [u16::MAX, 0, 0],
        });
    }

    /// Kind of work with most of the time.
    pub const fn what(&self) -> u32 {
        self.what[0]
    }

    /// Kinds of work with their ns, greatest first.
    pub fn kinds(&self) -> impl Iterator<Item = (u32, u64)> {
        let nanos = |share: u16| scale(self.busy, u64::from(share), WHOLE);
        let kinds = self.what.into_iter().zip(self.shares.map(nanos)).enumerate();
        kinds
            .filter(|(at, (_, nanos))| *at == 0 || *nanos > 0)
            .map(|(_, kind)| kind)
    }

    /// Adds another bucket.
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
        self.name(&kinds[..known]);
    }

    /// Stores the greatest of these kinds.
    fn name(&mut self, kinds: &[(u32, u64)]) {
        let greatest = greatest(kinds);
        let per_nano = WHOLE as f64 / self.busy.max(1) as f64;
        self.what = greatest.map(|kind| kind.0);
        self.shares = greatest.map(|kind| (kind.1 as f64 * per_nano).min(WHOLE as f64) as u16);
    }

    /// The share `part / whole` of the bucket, without begins.
    fn part(&self, part: u64, whole: u64) -> Self {
        Self {
            busy: scale(self.busy, part, whole),
            count: 0,
            ..*self
        }
    }

    const fn is_empty(&self) -> bool {
        self.busy == 0 && self.count == 0
    }
}

/// `value * part / whole`, at most `u64::MAX`. A division of 128 bits takes several times as long and is seldom needed.
fn scale(value: u64, part: u64, whole: u64) -> u64 {
    let whole = whole.max(1);
    value.checked_mul(part).map_or_else(
        || u64::try_from(u128::from(value) * u128::from(part) / u128::from(whole)).unwrap_or(u64::MAX),
        |product| product / whole,
    )
}

/// The kinds with the most ns, greatest first; of equal ones, the first. At most [`SLOTS`] kinds. Selects instead of
/// branches, which the CPU could not predict.
fn greatest(kinds: &[(u32, u64)]) -> [(u32, u64); KINDS] {
    const PLACE: u64 = SLOTS as u64 - 1;
    let mut keys = [PLACE; KINDS];
    for (at, (_, nanos)) in (0..).zip(kinds) {
        let mut key = nanos.saturating_mul(SLOTS as u64) & !PLACE | (PLACE - at);
        for kept in &mut keys {
            (*kept, key) = ((*kept).max(key), (*kept).min(key));
        }
    }
    keys.map(|key| {
        let kind = kinds.get((PLACE - (key & PLACE)) as usize).copied().unwrap_or_default();
        if key > PLACE { kind } else { (kind.0, 0) }
    })
}

/// Number of kinds that an open bucket distinguishes; a power of two.
const SLOTS: usize = 8;

/// Open bucket of a level. A kind maps to a slot by its number, so no search is needed.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    busy: u64,
    count: u32,
    slots: [(u32, u64); SLOTS],
}

impl Open {
    #[inline]
    fn add(&mut self, what: u32, nanos: u64, begins: bool) {
        self.busy = self.busy.saturating_add(nanos);
        self.count = self.count.saturating_add(u32::from(begins));
        put(&mut self.slots[what as usize % SLOTS], what, nanos);
    }

    /// Adds another open bucket.
    fn absorb(&mut self, other: &Self) {
        self.busy = self.busy.saturating_add(other.busy);
        self.count = self.count.saturating_add(other.count);
        for (slot, &(what, nanos)) in self.slots.iter_mut().zip(&other.slots) {
            put(slot, what, nanos);
        }
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
        bucket.name(&self.slots);
        if self.busy == 0 {
            // Work without a duration has a kind too: the slot that was used last.
            let named = self.slots.iter().find(|slot| slot.0 != 0);
            bucket.what[0] = named.map_or(0, |slot| slot.0);
        }
        bucket
    }
}

/// Adds ns of a kind to its slot. The greater kind keeps the slot. Selects instead of branches, which the CPU could not
/// predict.
#[inline]
fn put((held, sum): &mut (u32, u64), what: u32, nanos: u64) {
    let is_held = *held == what;
    let is_kept = is_held || *sum > nanos || *sum == nanos && *held != 0;
    *sum = if is_held {
        sum.saturating_add(nanos)
    } else {
        nanos.max(*sum)
    };
    *held = if is_kept { *held } else { what };
}

type Block = [Bucket; BLOCK];

#[derive(Clone, Debug)]
struct Level {
    /// (block number, buckets), ascending; shared with snapshots until the next block.
    blocks: Arc<VecDeque<(u64, Arc<Block>)>>,
    /// The block after those. A snapshot shares it until the next change.
    newest: Option<(u64, Arc<Block>)>,
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
        if number < self.since {
            return None;
        }
        match &self.newest {
            Some(newest) if newest.0 == number => {}
            Some(newest) if newest.0 > number => return self.older(number).map(|block| &mut block[place]),
            _ => self.turn(number),
        }
        let newest = self.newest.as_mut();
        newest.map(|newest| &mut Arc::make_mut(&mut newest.1)[place])
    }

    /// Begins a new block.
    fn turn(&mut self, number: u64) {
        let empty = || Arc::new([Bucket::default(); BLOCK]);
        let Some(newest) = self.newest.take() else {
            self.newest = Some((number, empty()));
            return;
        };
        Arc::make_mut(&mut self.blocks).push_back(newest);
        let mut next = self.forget();
        match next.as_mut().and_then(Arc::get_mut) {
            Some(block) => block.fill(Bucket::default()),
            None => next = Some(empty()),
        }
        self.newest = next.map(|block| (number, block));
    }

    /// Forgets the oldest block if there are too many, and returns it.
    fn forget(&mut self) -> Option<Arc<Block>> {
        if self.blocks.len() < self.most {
            return None;
        }
        let (forgotten, block) = Arc::make_mut(&mut self.blocks).pop_front()?;
        self.since = forgotten + 1;
        Some(block)
    }

    /// Forgets all blocks that begin before this bucket.
    fn forget_before(&mut self, index: u64) {
        let number = index.div_ceil(BLOCK as u64);
        if number <= self.since {
            return;
        }
        self.since = number;
        if self.newest.take_if(|newest| newest.0 < number).is_some() {
            self.blocks = Arc::default();
        } else if self.blocks.front().is_some_and(|block| block.0 < number) {
            Arc::make_mut(&mut self.blocks).retain(|block| block.0 >= number);
        }
    }

    /// A block before the newest; `None` if it was forgotten.
    fn older(&mut self, number: u64) -> Option<&mut Block> {
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
    /// Open bucket of each level and its number.
    open: [(u64, Open); LEVELS],
    /// The level that work is added to: 1 for sparse work, else 0.
    finest: usize,
    reach: Reach,
}

const fn shift(level: usize) -> u32 {
    FINEST_BITS + FACTOR * level as u32
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

    /// Chooses the level for the pieces of work that are added until the next call: sparse ones skip the finest level.
    pub(crate) fn expect(&mut self, amount: Amount) {
        if self.reach.is_fine {
            return;
        }
        if amount.is_dense() {
            self.finest = 0;
            return;
        }
        if self.finest == 0 {
            self.turn(0, 0);
            self.finest = 1;
        }
        self.levels[0].forget_before(amount.last + 1);
    }

    /// Adds a span of work; `begins` is false for a piece of work that was counted before.
    #[inline]
    pub(crate) fn add(&mut self, span: Span, what: u32, begins: bool) {
        let end = span.end.max(span.begin);
        // Most work is short.
        let shift = shift(self.finest);
        let index = span.begin >> shift;
        if end.saturating_sub(1).max(span.begin) >> shift == index {
            return self.open(self.finest, index).add(what, end - span.begin, begins);
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
        for number in self.finest..LEVELS {
            let shift = shift(number);
            let (first, last) = (span.begin >> shift, end.saturating_sub(1).max(span.begin) >> shift);
            let is_short = last - first < SHORT_BUCKETS;
            // Only the newest part of a very long span fits a fine level.
            let from = first.max((last + 1).saturating_sub((self.reach.blocks * BLOCK) as u64));
            for index in from..=last {
                let low = (index << shift).max(span.begin);
                let high = ((index + 1) << shift).min(end);
                let (nanos, begins) = (high.saturating_sub(low), begins && index == first);
                if is_short {
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

    /// Adds everything from another pyramid.
    pub(crate) fn absorb(&mut self, other: &Self) {
        for number in 0..LEVELS {
            // The sum has only what both still have.
            self.levels[number].forget_before(other.levels[number].since * BLOCK as u64);
            for (block, buckets) in other.levels[number].all() {
                let first = block * BLOCK as u64;
                for (index, bucket) in (first..).zip(buckets.iter()).filter(|(_, bucket)| !bucket.is_empty()) {
                    if let Some(place) = self.levels[number].bucket(index) {
                        place.merge(bucket);
                    }
                }
            }
            // Open buckets below have not reached this level yet.
            for (index, bucket) in other.opened(number) {
                if let Some(place) = self.levels[number].bucket(index) {
                    place.merge(&bucket);
                }
            }
        }
    }

    /// Returns the open bucket of a level, after moving it to `index`.
    #[inline]
    fn open(&mut self, level: usize, index: u64) -> &mut Open {
        // Most work continues where the previous work ended.
        if self.open[level].0 != index {
            self.turn(level, index);
        }
        &mut self.open[level].1
    }

    /// Opens another bucket of a level.
    #[inline(never)]
    fn turn(&mut self, level: usize, index: u64) {
        let (old, open) = std::mem::replace(&mut self.open[level], (index, Open::default()));
        if !open.is_empty() {
            if let Some(place) = self.levels[level].bucket(old) {
                place.merge(&open.bucket());
            }
            if level + 1 < LEVELS {
                self.open(level + 1, old >> FACTOR).absorb(&open);
            }
        }
    }

    /// Open buckets that count for a level: its own and those of all levels below.
    fn opened(&self, level: usize) -> Vec<(u64, Bucket)> {
        let mut out: Vec<(u64, Bucket)> = Vec::with_capacity(LEVELS);
        for below in (0..=level).rev() {
            let (index, open) = &self.open[below];
            let index = index >> (FACTOR * (level - below) as u32);
            if open.is_empty() || index / (BLOCK as u64) < self.levels[level].since {
                continue;
            }
            match out.iter_mut().find(|known| known.0 == index) {
                Some(known) => known.1.merge(&open.bucket()),
                None => out.push((index, open.bucket())),
            }
        }
        out
    }

    /// The coarsest level whose buckets are at most `width` wide and that still has `from`; if there is none, the
    /// finest level that has it.
    fn level(&self, from: Nanos, width: u64) -> usize {
        let remembers = |level: usize| self.levels[level].since * BLOCK as u64 <= from >> shift(level);
        let fitting = (0..LEVELS)
            .rev()
            .find(|&level| 1 << shift(level) <= width && remembers(level));
        fitting
            .or_else(|| (0..LEVELS).find(|&level| remembers(level)))
            .unwrap_or(LEVELS - 1)
    }

    /// Sums columns of `width` ns from `from` on; a bucket that crosses an edge is split by time. Returns the width of
    /// the buckets used.
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

    /// Width of the buckets from which columns of `width` are made.
    pub(crate) fn stored(&self, from: Nanos, width: u64) -> u64 {
        1 << shift(self.level(from, width))
    }

    /// Busy ns between `from` and `to`, of all kinds. Buckets that cross an edge count in proportion.
    pub(crate) fn busy(&self, from: Nanos, to: Nanos) -> u64 {
        let width = to.saturating_sub(from);
        if width == 0 {
            return 0;
        }
        let number = self.level(from, width.div_ceil(256));
        let (shift, level) = (shift(number), &self.levels[number]);
        let (first, last) = (from >> shift, (to - 1) >> shift);
        let inside = |index: u64, busy: u64| {
            let low = index << shift;
            let part = (low + (1 << shift)).min(to).saturating_sub(low.max(from));
            scale(busy, part, 1 << shift)
        };
        let mut sum: u64 = 0;
        for (block, buckets) in level.all() {
            let begin = block * BLOCK as u64;
            let at = |index: u64| (index.saturating_sub(begin) as usize).min(BLOCK);
            let covered = (begin.max(first)..).zip(&buckets[at(first)..at(last + 1)]);
            for (index, bucket) in covered {
                sum = sum.saturating_add(inside(index, bucket.busy));
            }
        }
        for (below, (index, open)) in self.open.iter().enumerate().take(number + 1) {
            let index = index >> (FACTOR * (number - below) as u32);
            if index / BLOCK as u64 >= level.since && (first..=last).contains(&index) {
                sum = sum.saturating_add(inside(index, open.busy));
            }
        }
        sum.min(width)
    }
}

/// Adds a piece of work exactly to columns of `width` ns from `from` on.
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

/// Adds a bucket (`low`..`high`) to the columns that it covers.
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
    fn busy_time_is_that_of_a_column() {
        let mut pyramid = Pyramid::default();
        for piece in 0..30_000u64 {
            let begin = 5_000_000_000 + piece * 400_000;
            let span = Span {
                begin,
                end: begin + 100_000 + piece % 7 * 20_000,
            };
            pyramid.add(span, piece as u32 % 5, true);
        }
        let mut seen = 0;
        for from in (4_900_000_000..17_000_000_000).step_by(333_333_333) {
            for width in [1u64, 70_000, 5_123_456, 1_000_000_000, 13_000_000_000] {
                let mut column = [Bucket::default()];
                pyramid.sum(pyramid.level(from, width.div_ceil(256)), from, width, &mut column);
                let (wanted, busy) = (column[0].busy.min(width), pyramid.busy(from, from + width));
                // Parts of open buckets are rounded.
                assert!(wanted.abs_diff(busy) <= LEVELS as u64, "{busy} of {wanted} from {from}");
                seen += busy;
            }
        }
        assert!(seen > 100_000_000_000, "{seen}");
        assert_eq!((pyramid.busy(7, 7), pyramid.busy(0, 1000)), (0, 0));
    }

    #[test]
    fn kinds_keep_their_shares_through_all_levels() {
        let mut pyramid = Pyramid::default();
        // In each millisecond, 0.5 are a, 0.3 b, 0.1 c.
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
            // The last bucket exceeds the last column.
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
    fn coarse_levels_keep_what_fine_levels_forget() {
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
        // A fine view of the first second uses the finest level that still has it.
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
        let bucket = columns(&pyramid, 0, 1 << FINEST_BITS, 1)[0];
        assert_eq!(bucket.what(), 6);
        let kinds: Vec<u32> = bucket
            .kinds()
            .map(|(what, nanos)| what * 10_000 + (nanos + 5) as u32 / 10_000)
            .collect();
        assert_eq!(kinds, [60_005, 50_001]);
    }
}
