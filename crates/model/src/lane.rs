//! A lane of the timeline: slices of the last while in full, and its whole past in pyramids.

mod recalled;

use std::collections::VecDeque;
use std::sync::Arc;

pub(crate) use self::recalled::Recalled;
use super::FastMap;
use super::pyramid::{Amount, Bucket, Pyramid, Reach, lay};
use roctop_trace::item::{AgentId, Dispatch, Nanos, QueueId, Span, StreamId, ThreadId};
use roctop_trace::site::SiteNumber;

const CHUNK: usize = 256;
/// Full chunks that snapshots share as one.
const GROUP: usize = 64;
/// Maximum number of slices that columns narrower than the pyramid's are made of.
const MAX_IN_COLUMNS: usize = 1 << 17;
/// Maximum number of origins that a lane distinguishes.
const MAX_PARTS: usize = 16;

/// Origin of a lane's kernels, by which they can be grouped at any zoom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Hardware queue, `u32::MAX` if unknown.
    pub queue: u32,
    /// Launching thread, `u32::MAX` if unknown.
    pub thread: u32,
}

impl Origin {
    /// Origin in lanes that are not grouped.
    pub(super) const NONE: Self = Self {
        queue: u32::MAX,
        thread: u32::MAX,
    };
}

/// Source of a column, most exact first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolution {
    /// Slices.
    #[default]
    Exact,
    /// Sums over intervals of this many ns, at most as wide as the column.
    Sums(u64),
    /// Sums over intervals of this many ns, wider than the column: the column shows the interval's average.
    Average(u64),
    /// Sums that include work of other tracks.
    Mixed,
}

/// A column of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its sums.
    pub sums: Bucket,
    /// Its source.
    pub resolution: Resolution,
}

impl Column {
    /// Whether it has no work.
    pub const fn is_empty(&self) -> bool {
        self.sums.busy == 0 && self.sums.count == 0
    }

    /// Adds the same column of another lane.
    pub fn add(&mut self, other: &Self) {
        if !other.is_empty() {
            self.sums.merge(&other.sums);
            self.resolution = self.resolution.max(other.resolution);
        }
    }
}

/// Sums of one origin; `None` for all further origins.
#[derive(Clone, Debug)]
struct Part {
    origin: Option<Origin>,
    pyramid: Pyramid,
}

/// Content of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaneKey {
    /// Time with any kernel on an agent (a union: no slices).
    Agent(AgentId),
    /// Kernels of a stream on an agent.
    Stream(AgentId, StreamId),
    /// Kernels of a queue whose stream is unknown.
    Queue(AgentId, QueueId),
    /// Copies of one direction.
    Copies(u16),
    /// Collectives of a communicator, by its index.
    Collectives(u32),
    /// API calls of a thread; calls made by other calls are in depth 1.
    Api(ThreadId, u8),
    /// Push/pop ranges and marks of a thread, by nesting level.
    Markers(ThreadId, u16),
    /// Start/stop ranges begun by a thread.
    Ranges(ThreadId),
}

impl LaneKey {
    /// Stands for all threads whose lanes were merged after a long idle time.
    pub const OTHERS: ThreadId = ThreadId(u32::MAX);

    /// Whether it belongs to a thread.
    pub const fn is_of_thread(self) -> bool {
        matches!(self, Self::Api(..) | Self::Markers(..) | Self::Ranges(_))
    }

    /// The lane of all merged threads of its kind.
    #[must_use]
    pub const fn of_others(self) -> Self {
        match self {
            Self::Api(..) => Self::Api(Self::OTHERS, 0),
            _ => Self::Markers(Self::OTHERS, 0),
        }
    }

    /// Origin of a slice of this lane, for grouping.
    const fn origin(self, slice: &Slice) -> Origin {
        match self {
            Self::Stream(..) | Self::Queue(..) => Origin {
                queue: slice.queue,
                thread: slice.thread,
            },
            _ => Origin::NONE,
        }
    }

    /// The lane of a dispatch.
    pub const fn of(dispatch: &Dispatch) -> Self {
        match dispatch.stream {
            Some(stream) => Self::Stream(dispatch.agent, stream),
            None => Self::Queue(dispatch.agent, dispatch.queue),
        }
    }
}

/// A piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Begin and end.
    pub span: Span,
    /// Kernel, operation, text or copy route, by kind of lane.
    pub what: u32,
    /// Index of a dispatch's launch configuration.
    pub shape: u32,
    /// Submission, 0 if unknown.
    pub submit: Nanos,
    /// Correlation id, which joins calls and work.
    pub correlation: u64,
    /// Bytes of a copy, id of a dispatch, return code of a call.
    pub value: u64,
    /// Queue of a dispatch, stream of a copy, argument text of a call; `u32::MAX` if none.
    pub queue: u32,
    /// Process.
    pub process: u32,
    /// Thread that launched or requested it, `u32::MAX` if unknown.
    pub thread: u32,
    /// Where in the program the call is: the number in the process, 0 unknown.
    pub site: SiteNumber,
    /// Flag bits of the record of GPU work, see [`roctop_ring::record::flag`]; [`Slice::ALONG`].
    pub flags: u8,
}

impl Slice {
    /// Flag of a call or range outside of the recorded stretch of time, taken along with what it caused. It is not counted.
    pub const ALONG: u8 = 128;

    /// Whether it is outside of the recorded stretch of time, taken along with what it caused.
    pub const fn is_along(&self) -> bool {
        self.flags & Self::ALONG != 0
    }
}

#[derive(Clone, Debug)]
struct Chunk {
    slices: Vec<Slice>,
    begin: Nanos,
    end: Nanos,
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            slices: Vec::new(),
            begin: Nanos::MAX,
            end: 0,
        }
    }
}

/// Reused memory of forgotten chunks: new memory costs more than writing to it.
#[derive(Debug, Default)]
pub(super) struct Rooms(Vec<Vec<Slice>>);

const MAX_FREE_CHUNKS: usize = 64;

impl Rooms {
    fn take(&mut self) -> Vec<Slice> {
        self.0.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK))
    }

    /// Keeps a chunk's memory, unless a snapshot still holds the chunk.
    fn keep(&mut self, chunk: Arc<Chunk>) {
        if self.0.len() < MAX_FREE_CHUNKS
            && let Ok(mut chunk) = Arc::try_unwrap(chunk)
        {
            chunk.slices.clear();
            self.0.push(chunk.slices);
        }
    }
}

/// Old chunks, which snapshots share by one reference count.
#[derive(Clone, Debug)]
struct Group {
    chunks: Arc<Vec<Arc<Chunk>>>,
    begin: Nanos,
    end: Nanos,
}

impl Group {
    fn new(chunks: Vec<Arc<Chunk>>) -> Self {
        Self {
            begin: chunks.iter().map(|chunk| chunk.begin).min().unwrap_or(Nanos::MAX),
            end: chunks.iter().map(|chunk| chunk.end).max().unwrap_or(0),
            chunks: Arc::new(chunks),
        }
    }
}

/// A lane.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its content.
    pub key: LaneKey,
    /// The oldest chunks.
    groups: VecDeque<Group>,
    /// Full chunks, oldest first.
    chunks: VecDeque<Arc<Chunk>>,
    /// The latest slices.
    open: Chunk,
    /// How many of them the pyramids have: one addition of many slices of a lane costs less than many of few.
    summed: usize,
    /// Its past, by origin.
    parts: Vec<Part>,
    /// The part that was added to last.
    near: usize,
    /// How far its pyramids reach.
    reach: Reach,
    forgotten_until: Nanos,
    /// Ranges ever added, by the row of their pattern: how many, and the text of the last.
    ranges: FastMap<u32, (u64, u32)>,
    /// A part of its past that was read back from a recording.
    recalled: Option<Arc<Recalled>>,
    /// Slices ever added.
    pub total: u64,
    /// Begin of the earliest slice; 0 without slices.
    pub first: Nanos,
    /// End of the latest slice.
    pub last: Nanos,
}

impl Lane {
    /// An empty lane.
    pub fn new(key: LaneKey) -> Self {
        Self::reaching(key, Reach::default())
    }

    /// An empty lane whose pyramids reach so far.
    pub(super) fn reaching(key: LaneKey, reach: Reach) -> Self {
        Self {
            key,
            groups: VecDeque::new(),
            chunks: VecDeque::new(),
            open: Chunk::default(),
            summed: 0,
            parts: Vec::new(),
            near: 0,
            reach,
            forgotten_until: 0,
            ranges: FastMap::default(),
            recalled: None,
            total: 0,
            first: Nanos::MAX,
            last: 0,
        }
    }

    /// Adds a slice to details and pyramid.
    pub fn add(&mut self, slice: Slice) {
        self.add_in(std::iter::once(slice), &mut Rooms::default());
        self.sum();
    }

    /// Index of the part of an origin.
    #[inline]
    fn part(&mut self, origin: Origin) -> usize {
        match self.parts.get(self.near) {
            Some(part) if part.origin == Some(origin) => self.near,
            _ => self.other_part(origin),
        }
    }

    #[inline(never)]
    fn other_part(&mut self, origin: Origin) -> usize {
        let wanted = Some(origin).filter(|_| self.parts.len() < MAX_PARTS);
        let known = |part: &Part| part.origin == Some(origin) || part.origin.is_none();
        self.near = self.parts.iter().position(known).unwrap_or_else(|| {
            self.parts.push(Part {
                origin: wanted,
                pyramid: Pyramid::reaching(self.reach),
            });
            self.parts.len() - 1
        });
        self.near
    }

    /// Adds slices, in reused memory. The pyramids lack the latest until [`Lane::sum`].
    #[inline]
    pub(super) fn add_in(&mut self, mut slices: impl Iterator<Item = Slice>, rooms: &mut Rooms) {
        loop {
            if self.open.slices.len() >= CHUNK {
                self.turn(rooms);
            }
            let before = self.open.slices.len();
            self.open.slices.extend(slices.by_ref().take(CHUNK - before));
            let added = &self.open.slices[before..];
            if added.is_empty() {
                return;
            }
            for slice in added {
                self.open.begin = self.open.begin.min(slice.span.begin);
                self.open.end = self.open.end.max(slice.span.end);
            }
            self.first = self.first.min(self.open.begin);
            self.last = self.last.max(self.open.end);
            self.total += added.len() as u64;
        }
    }

    /// Adds the slices to the pyramids that are not in them yet.
    pub(super) fn sum(&mut self) {
        let (slices, key) = (std::mem::take(&mut self.open.slices), self.key);
        let fresh = &slices[self.summed..];
        let amount = Amount::of(fresh.iter().map(|slice| slice.span));
        for run in fresh.chunk_by(|one, next| key.origin(one) == key.origin(next)) {
            let part = self.part(key.origin(&run[0]));
            let pyramid = &mut self.parts[part].pyramid;
            pyramid.expect(amount);
            for slice in run {
                pyramid.add(slice.span, slice.what, true);
            }
        }
        self.summed = slices.len();
        self.open.slices = slices;
    }

    #[cold]
    fn turn(&mut self, rooms: &mut Rooms) {
        self.sum();
        self.summed = 0;
        let next = Chunk {
            slices: rooms.take(),
            ..Chunk::default()
        };
        self.chunks.push_back(Arc::new(std::mem::replace(&mut self.open, next)));
        if self.chunks.len() >= 2 * GROUP {
            self.groups.push_back(Group::new(self.chunks.drain(..GROUP).collect()));
        }
    }

    /// Adds time to the pyramid only.
    pub fn add_time(&mut self, span: Span, what: u32, begins: bool) {
        self.last = self.last.max(span.end);
        let part = self.part(Origin::NONE);
        self.parts[part].pyramid.add(span, what, begins);
    }

    /// Adds the past of another lane, without its slices.
    pub(super) fn absorb(&mut self, other: &mut Self) {
        other.sum();
        for part in &other.parts {
            let own = self.part(part.origin.unwrap_or(Origin::NONE));
            self.parts[own].pyramid.absorb(&part.pyramid);
        }
        self.total += other.total;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }

    /// Counts a range whose text belongs to a row of patterns.
    pub(super) fn count_range(&mut self, row: u32, text: u32) {
        let (count, last) = self.ranges.entry(row).or_default();
        (*count, *last) = (*count + 1, text);
    }

    /// Number of ranges ever added of the pattern whose last text passes a test.
    pub(crate) fn ranges_of(&self, is_wanted: impl Fn(u32) -> bool) -> Option<u64> {
        let mut known = self.ranges.values();
        known.find(|(_, last)| is_wanted(*last)).map(|(count, _)| *count)
    }

    /// Number of slices kept.
    pub fn kept(&self) -> usize {
        (self.groups.len() * GROUP + self.chunks.len()) * CHUNK + self.open.slices.len()
    }

    /// Non-empty chunks, oldest first.
    fn all(&self) -> impl DoubleEndedIterator<Item = &Chunk> {
        self.about(0, Nanos::MAX)
    }

    /// As `all`, without old chunks outside a time span.
    fn about(&self, from: Nanos, to: Nanos) -> impl DoubleEndedIterator<Item = &Chunk> {
        let groups = self
            .groups
            .iter()
            .filter(move |group| group.end >= from && group.begin <= to);
        let old = groups.flat_map(|group| group.chunks.iter());
        let open = Some(&self.open).filter(|chunk| !chunk.slices.is_empty());
        old.chain(&self.chunks).map(|chunk| &**chunk).chain(open)
    }

    /// Chunks that overlap a time span.
    fn touching(&self, from: Nanos, to: Nanos) -> impl DoubleEndedIterator<Item = &Chunk> {
        self.about(from, to)
            .filter(move |chunk| chunk.end >= from && chunk.begin <= to)
    }

    /// Forgets the oldest chunk if it ended before `before`, or unconditionally for `None`; returns its number of
    /// slices.
    pub fn forget(&mut self, before: Option<Nanos>) -> usize {
        self.forget_in(before, &mut Rooms::default())
    }

    /// As [`Lane::forget`], and keeps its memory.
    pub(super) fn forget_in(&mut self, before: Option<Nanos>, rooms: &mut Rooms) -> usize {
        if let Some(group) = self.groups.front() {
            if before.is_some_and(|before| group.end >= before) {
                return 0;
            }
            self.forgotten_until = self.forgotten_until.max(group.end);
            if let Some(chunks) = self.groups.pop_front().and_then(|group| Arc::into_inner(group.chunks)) {
                for chunk in chunks {
                    rooms.keep(chunk);
                }
            }
            return GROUP * CHUNK;
        }
        let oldest = self.chunks.front().map_or(&self.open, |chunk| &**chunk);
        if oldest.slices.is_empty() || before.is_some_and(|before| oldest.end >= before) {
            return 0;
        }
        self.forgotten_until = self.forgotten_until.max(oldest.end);
        let gone = oldest.slices.len();
        if let Some(chunk) = self.chunks.pop_front() {
            rooms.keep(chunk);
        } else {
            self.sum();
            (self.open, self.summed) = (Chunk::default(), 0);
        }
        gone
    }

    /// Since when all slices are kept, without those that were read back.
    pub(crate) fn kept_from(&self) -> Nanos {
        if self.kept() == 0 && self.last > 0 {
            Nanos::MAX
        } else {
            self.forgotten_until
        }
    }

    /// Whether all slices that touch `from`..`to` are still kept and are not more than `most`: whether [`Lane::slices`] has
    /// them.
    pub fn has_slices(&self, from: Nanos, to: Nanos, most: usize) -> bool {
        self.has_own_slices(from, to, most) || self.count_recalled(from, to, most).is_some_and(|count| count <= most)
    }

    fn has_own_slices(&self, from: Nanos, to: Nanos, most: usize) -> bool {
        if from < self.kept_from() {
            return false;
        }
        let touching = || self.touching(from, to);
        if touching().map(|chunk| chunk.slices.len()).sum::<usize>() > most + 2 * CHUNK {
            return false;
        }
        let inside = |slice: &&Slice| slice.span.end >= from && slice.span.begin <= to;
        let counts = touching().map(|chunk| {
            if chunk.begin >= from && chunk.end <= to {
                chunk.slices.len()
            } else {
                chunk.slices.iter().filter(inside).count()
            }
        });
        counts.sum::<usize>() <= most
    }

    /// The slices that touch `from`..`to`, in order of begin, when all of them are still kept and are not more than
    /// `most`.
    pub fn slices(&self, from: Nanos, to: Nanos, most: usize) -> Option<Vec<Slice>> {
        let mut out: Vec<Slice> = if self.has_own_slices(from, to, most) {
            self.inside(from, to).copied().collect()
        } else if self.has_slices(from, to, most) {
            self.recalled_between(from, to)
        } else {
            return None;
        };
        out.sort_by_key(|slice| slice.span.begin);
        Some(out)
    }

    /// The kept slices that touch `from`..`to`.
    pub(crate) fn inside(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = &Slice> {
        let slices = self.touching(from, to).flat_map(|chunk| &chunk.slices);
        slices.filter(move |slice| slice.span.end >= from && slice.span.begin <= to)
    }

    /// The last `most` slices in order of completion, youngest first.
    pub fn recent(&self, most: usize) -> impl Iterator<Item = &Slice> {
        self.all().rev().flat_map(|chunk| chunk.slices.iter().rev()).take(most)
    }

    /// The slice that ended last. Slices of several rings arrive in reading order.
    pub fn latest(&self) -> Option<&Slice> {
        let chunk = self.all().max_by_key(|chunk| chunk.end)?;
        chunk.slices.iter().max_by_key(|slice| slice.span.end)
    }

    /// The first slice that begins after `at`, or the last that begins before it.
    pub fn neighbour(&self, at: Nanos, forward: bool) -> Option<Slice> {
        self.search(at, forward, |_| true)
    }

    /// The nearest slice that begins after (or before) `at` and passes a test. Chunks that cannot be nearer are
    /// skipped.
    pub fn search(&self, at: Nanos, forward: bool, mut test: impl FnMut(&Slice) -> bool) -> Option<Slice> {
        let own = self.search_own(at, forward, &mut test);
        let recalled = self.recalled.as_ref();
        let past = recalled.and_then(|recalled| recalled.lane.search_own(at, forward, &mut test));
        let both = own.into_iter().chain(past);
        if forward {
            both.min_by_key(|slice| slice.span.begin)
        } else {
            both.max_by_key(|slice| slice.span.begin)
        }
    }

    fn search_own(&self, at: Nanos, forward: bool, mut test: impl FnMut(&Slice) -> bool) -> Option<Slice> {
        let mut best: Option<Slice> = None;
        if forward {
            let is_near = |best: &Option<Slice>, begin: Nanos| best.is_none_or(|best| begin < best.span.begin);
            let groups = self.groups.iter().filter(|group| group.end > at);
            let mut look = |chunk: &Chunk| {
                if chunk.end > at && is_near(&best, chunk.begin) {
                    let ahead = chunk.slices.iter().filter(|slice| slice.span.begin > at);
                    for slice in ahead {
                        if is_near(&best, slice.span.begin) && test(slice) {
                            best = Some(*slice);
                        }
                    }
                }
            };
            for group in groups {
                group.chunks.iter().for_each(|chunk| look(chunk));
            }
            self.chunks.iter().for_each(|chunk| look(chunk));
            look(&self.open);
        } else {
            let is_near = |best: &Option<Slice>, end: Nanos| best.is_none_or(|best| end >= best.span.begin);
            let mut look = |chunk: &Chunk| {
                if chunk.begin < at && is_near(&best, chunk.end) {
                    for slice in chunk.slices.iter().rev().filter(|slice| slice.span.begin < at) {
                        if best.is_none_or(|best| slice.span.begin > best.span.begin) && test(slice) {
                            best = Some(*slice);
                        }
                    }
                }
            };
            look(&self.open);
            self.chunks.iter().rev().for_each(|chunk| look(chunk));
            for group in self.groups.iter().rev().filter(|group| group.begin < at) {
                group.chunks.iter().rev().for_each(|chunk| look(chunk));
            }
        }
        best
    }

    /// The slice with this begin.
    pub fn at(&self, begin: Nanos) -> Option<&Slice> {
        let near = self.touching(begin, begin).rev();
        let found = near
            .flat_map(|chunk| &chunk.slices)
            .find(|slice| slice.span.begin == begin);
        found.or_else(|| self.recalled.as_ref()?.lane.at(begin))
    }

    /// The slice with a correlation id, searched from the latest.
    pub fn correlated(&self, correlation: u64) -> Option<&Slice> {
        let all = self.all().rev().flat_map(|chunk| chunk.slices.iter().rev());
        let found = all.take(100_000).find(|slice| slice.correlation == correlation);
        found.or_else(|| self.recalled.as_ref()?.lane.correlated(correlation))
    }

    /// Sums by column over the origins that `takes` accepts: exact where slices are kept and the columns are narrower
    /// than the pyramid's buckets.
    pub fn columns(&self, from: Nanos, width: u64, columns: usize, takes: impl Fn(Origin) -> bool) -> Vec<Column> {
        let width = width.max(1);
        let mut out = self.own_columns(from, width, columns, &takes);
        self.fill_recalled(from, width, &takes, &mut out);
        out
    }

    fn own_columns(&self, from: Nanos, width: u64, columns: usize, takes: &impl Fn(Origin) -> bool) -> Vec<Column> {
        let mut out = vec![Column::default(); columns];
        let first = self.first_exact(from, width, columns);
        let split = match self.stored_for(from, width) {
            stored if stored <= width => columns,
            _ => first,
        };
        let mut sums = vec![Bucket::default(); split];
        for part in &self.parts {
            if part.origin.is_some_and(|source| !takes(source)) {
                continue;
            }
            sums.fill(Bucket::default());
            let stored = part.pyramid.columns(from, width, &mut sums);
            let resolution = match part.origin {
                None if !takes(Origin::NONE) => Resolution::Mixed,
                _ if stored > width => Resolution::Average(stored),
                _ => Resolution::Sums(stored),
            };
            for (column, sums) in out.iter_mut().zip(&sums) {
                column.add(&Column {
                    sums: *sums,
                    resolution,
                });
            }
        }
        if split < columns {
            let start = from.saturating_add(width.saturating_mul(split as u64));
            let to = from.saturating_add(width.saturating_mul(columns as u64));
            let mut exact = vec![Bucket::default(); columns - split];
            let slices = self.touching(start, to).flat_map(|chunk| &chunk.slices);
            let inside = slices.filter(|slice| slice.span.end >= start && slice.span.begin < to);
            for slice in inside.filter(|slice| takes(self.key.origin(slice))) {
                lay(slice.span, slice.what, start, width, &mut exact);
            }
            for (column, sums) in out[split..].iter_mut().zip(&exact) {
                column.sums = *sums;
            }
        }
        out
    }

    /// First column from which on slices are kept and not too many.
    fn first_exact(&self, from: Nanos, width: u64, columns: usize) -> usize {
        if self.kept() == 0 && self.last > 0 {
            return columns;
        }
        let before = (self.forgotten_until + 1).saturating_sub(from).div_ceil(width);
        let first = if self.forgotten_until == 0 {
            0
        } else {
            before.min(columns as u64)
        };
        let start = from.saturating_add(width.saturating_mul(first));
        let to = from.saturating_add(width.saturating_mul(columns as u64));
        let slices: usize = self.touching(start, to).map(|chunk| chunk.slices.len()).sum();
        if slices > MAX_IN_COLUMNS {
            columns
        } else {
            first as usize
        }
    }

    /// Width of the intervals from which columns of this width are made.
    fn stored_for(&self, from: Nanos, width: u64) -> u64 {
        let stored = self.parts.iter().map(|part| part.pyramid.stored(from, width));
        stored.max().unwrap_or(1)
    }

    /// Finest available resolution at a time, ns: 0 where slices are kept, else the width of the sums.
    pub fn stored(&self, at: Nanos) -> u64 {
        if at > self.forgotten_until && (self.kept() > 0 || self.last == 0) {
            return 0;
        }
        let own = self.stored_for(at, 1);
        let recalled = self.recalled_in(at, at).map(|recalled| recalled.lane.stored(at));
        recalled.map_or(own, |recalled| recalled.min(own))
    }

    /// Time until which slices were forgotten, if any were.
    pub fn forgotten(&self) -> Option<Nanos> {
        (self.forgotten_until > 0).then_some(self.forgotten_until)
    }

    /// Origins of its work; `None` for those not distinguished.
    pub fn origins(&self) -> impl Iterator<Item = Option<Origin>> {
        self.parts.iter().map(|part| part.origin)
    }

    /// Busy ns between `from` and `to`, at most their difference.
    pub fn busy(&self, from: Nanos, to: Nanos) -> u64 {
        let parts = self.parts.iter().map(|part| part.pyramid.busy(from, to));
        parts.sum::<u64>().min(to.saturating_sub(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(begin: Nanos, end: Nanos) -> Slice {
        Slice {
            span: Span { begin, end },
            ..Slice::default()
        }
    }

    #[test]
    fn details_are_whole_or_none() {
        let mut lane = Lane::new(LaneKey::Copies(2));
        for i in 0..2000 {
            lane.add(slice(i * 100, i * 100 + 50));
        }
        assert_eq!(lane.slices(1000, 2000, 100).map(|s| s.len()), Some(11));
        assert_eq!(lane.slices(0, 200_000, 100), None);
        assert!(lane.has_slices(1000, 2000, 11) && !lane.has_slices(1000, 2000, 10));
        assert_eq!(lane.kept(), 2000);
        assert_eq!(lane.forget(Some(30_000)), CHUNK);
        assert_eq!(lane.forget(Some(30_000)), 0);
        assert_eq!(lane.slices(1000, 2000, 100), None, "forgotten is not empty");
        assert_eq!(lane.neighbour(100_000, true).map(|s| s.span.begin), Some(100_100));
        assert_eq!(lane.neighbour(100_000, false).map(|s| s.span.begin), Some(99_900));
        assert_eq!(lane.total, 2000);
    }

    #[test]
    fn groups_of_chunks_are_kept_and_forgotten_like_chunks() {
        let mut lane = Lane::new(LaneKey::Copies(2));
        let count = (5 * GROUP * CHUNK) as u64;
        for i in 0..count {
            lane.add(slice(i * 100, i * 100 + 50));
        }
        assert_eq!(
            (lane.kept() as u64, lane.recent(usize::MAX).count() as u64),
            (count, count)
        );
        assert_eq!(lane.slices(1000, 2000, 100).map(|s| s.len()), Some(11));
        assert_eq!(lane.at(777_700).map(|slice| slice.span.begin), Some(777_700));
        let gone = lane.forget(None);
        assert_eq!((gone, lane.kept() as u64), (GROUP * CHUNK, count - gone as u64));
        assert_eq!(lane.slices(1000, 2000, 100), None);
        let forgotten = lane.forgotten().expect("it forgot");
        assert!(lane.stored(forgotten) > 0 && lane.stored(forgotten + 1) == 0);
        while lane.forget(None) > 0 {}
        assert_eq!(lane.kept(), 0);
    }

    /// Work of several queues and threads in one lane, at random.
    fn random(seed: &mut u64, sources: u32) -> (Lane, Vec<Slice>) {
        let mut next = |most: u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (*seed >> 33) % most
        };
        let (mut lane, mut rooms) = (Lane::new(LaneKey::Stream(AgentId(0), StreamId(0))), Rooms::default());
        let (scale, mut at, mut all) = (10u64.pow(3 + next(5) as u32), 1_000, Vec::new());
        for _ in 0..3000 {
            at += next(scale);
            let one = Slice {
                span: Span {
                    begin: at,
                    end: at + next(2 * scale),
                },
                what: 1 + next(5) as u32,
                queue: next(u64::from(sources)) as u32,
                thread: 10 + next(u64::from(sources)) as u32,
                ..Slice::default()
            };
            lane.add_in(std::iter::once(one), &mut rooms);
            if next(700) == 0 {
                lane.sum();
            }
            all.push(one);
            at = if next(2) == 0 { at } else { one.span.end };
        }
        lane.sum();
        for _ in 0..next(9) {
            lane.forget(None);
        }
        (lane, all)
    }

    #[test]
    fn columns_agree_with_slices_or_are_marked_averages() {
        let mut seed = 42;
        let (mut exact, mut sums, mut averages, mut mixed) = (0, 0, 0, 0);
        for round in 0..150u32 {
            let (lane, all) = random(&mut seed, [1, 2, 3, 7][round as usize % 4]);
            let end = all.iter().map(|slice| slice.span.end).max().unwrap_or(0);
            let width = ((end / 50) >> (round % 12)).max(1);
            let from = end / 7 * u64::from(round % 7);
            for takes in [
                (|_| true) as fn(Origin) -> bool,
                |source| source.queue == 1,
                |source| source.thread == 10,
            ] {
                let shown = lane.columns(from, width, 60, takes);
                for (column, at) in shown.iter().zip(0..) {
                    let (left, right) = (from + width * at, from + width * (at + 1));
                    let part = |left: u64, right: u64| {
                        let own = all.iter().filter(|slice| takes(lane.key.origin(slice)));
                        let parts =
                            own.map(|slice| slice.span.end.min(right).saturating_sub(slice.span.begin.max(left)));
                        parts.sum::<u64>()
                    };
                    let (busy, truth) = (column.sums.busy, part(left, right));
                    match column.resolution {
                        _ if column.is_empty() => {
                            let is_short = truth <= 2 * width / 1000 + 2;
                            assert!(
                                is_short,
                                "round {round}: empty, and {truth} ns of {width} in {column:?}"
                            );
                        }
                        Resolution::Exact => {
                            exact += 1;
                            assert_eq!(busy, truth, "round {round}, column {at}");
                        }
                        Resolution::Sums(stored) => {
                            sums += 1;
                            assert!(stored <= width);
                            // Exact except for the intervals that its edges cut.
                            let (most, least) = (
                                part(left.saturating_sub(stored), right + stored),
                                part((left + stored).min(right), right.saturating_sub(stored).max(left)),
                            );
                            let slack = most / 1000 + 100;
                            assert!(busy <= most + slack && busy + slack >= least, "{least} {busy} {most}");
                        }
                        Resolution::Average(stored) => {
                            averages += 1;
                            assert!(stored > width);
                        }
                        Resolution::Mixed => mixed += 1,
                    }
                }
            }
        }
        assert!(
            exact > 1000 && sums > 1000 && averages > 100 && mixed > 100,
            "{exact} {sums} {averages} {mixed}"
        );
    }

    #[test]
    fn the_latest_slice_is_found_behind_many_earlier_ones() {
        let mut lane = Lane::new(LaneKey::Copies(2));
        assert_eq!(lane.latest(), None);
        lane.add(slice(900_000, 900_050));
        for i in 0..2000 {
            lane.add(slice(i * 100, i * 100 + 50));
        }
        assert_eq!(lane.latest(), Some(&slice(900_000, 900_050)));
    }
}
