//! A lane of the timeline: slices of the last while in full, and its whole past in a pyramid.

use std::collections::VecDeque;
use std::sync::Arc;

use super::pyramid::{Bucket, FINEST, Pyramid, lay};
use roctop_trace::item::{AgentId, Dispatch, Nanos, QueueId, Span, StreamId, ThreadId};

const CHUNK: usize = 256;
/// Slices that columns narrower than the pyramid's are made of, at most.
const MOST_IN_COLUMNS: usize = 1 << 14;

/// What a lane shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaneKey {
    /// When any kernel ran on an agent (a union: no slices).
    Agent(AgentId),
    /// Kernels of a stream on an agent.
    Stream(AgentId, StreamId),
    /// Kernels of a queue whose stream is not known.
    Queue(AgentId, QueueId),
    /// Copies of one direction.
    Copies(u16),
    /// API calls of a thread; calls made by other calls are in lane 1.
    Api(ThreadId, u8),
    /// Push/pop ranges and marks of a thread, by level.
    Markers(ThreadId, u16),
    /// Start/stop ranges that a thread began.
    Ranges(ThreadId),
}

impl LaneKey {
    /// In place of a thread: those that have been quiet for long, of programs that start ever more.
    pub const OTHERS: ThreadId = ThreadId(u32::MAX);

    /// Whether it shows what a thread did.
    pub const fn is_of_thread(self) -> bool {
        matches!(self, Self::Api(..) | Self::Markers(..) | Self::Ranges(_))
    }

    /// The lane of all others of its kind.
    #[must_use]
    pub const fn of_others(self) -> Self {
        match self {
            Self::Api(..) => Self::Api(Self::OTHERS, 0),
            _ => Self::Markers(Self::OTHERS, 0),
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

/// One piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Begin and end.
    pub span: Span,
    /// Kernel, operation, text or copy route, by kind of lane.
    pub what: u32,
    /// Geometry of a dispatch: index into the store's shapes.
    pub shape: u32,
    /// When it was submitted, 0 unknown.
    pub submit: Nanos,
    /// Joins calls and work.
    pub correlation: u64,
    /// Bytes of a copy, dispatch id of a dispatch, return code of a call.
    pub value: u64,
    /// Queue of a dispatch, stream of a copy, text of a call's arguments; `u32::MAX` none.
    pub queue: u32,
    /// Process.
    pub process: u32,
    /// Thread that launched it or asked for it, `u32::MAX` unknown.
    pub thread: u32,
    /// Flag bits of the record of GPU work, see [`roctop_ring::record::flag`].
    pub flags: u8,
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

/// Room of chunks that were forgotten: new memory costs more than what is written to it.
#[derive(Debug, Default)]
pub(super) struct Rooms(Vec<Vec<Slice>>);

const MOST_ROOMS: usize = 64;

impl Rooms {
    fn take(&mut self) -> Vec<Slice> {
        self.0.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK))
    }

    /// Keeps a chunk's room, unless a snapshot has the chunk still.
    fn keep(&mut self, chunk: Arc<Chunk>) {
        if self.0.len() < MOST_ROOMS
            && let Ok(mut chunk) = Arc::try_unwrap(chunk)
        {
            chunk.slices.clear();
            self.0.push(chunk.slices);
        }
    }
}

/// A lane.
#[derive(Clone, Debug)]
pub struct Lane {
    /// What it shows.
    pub key: LaneKey,
    /// Full ones, oldest first.
    chunks: VecDeque<Arc<Chunk>>,
    /// The youngest slices.
    open: Chunk,
    pyramid: Pyramid,
    forgotten_until: Nanos,
    /// Slices ever added.
    pub total: u64,
    /// End of the latest slice.
    pub last: Nanos,
}

impl Lane {
    /// An empty lane.
    pub fn new(key: LaneKey) -> Self {
        Self {
            key,
            chunks: VecDeque::new(),
            open: Chunk::default(),
            pyramid: Pyramid::default(),
            forgotten_until: 0,
            total: 0,
            last: 0,
        }
    }

    /// Adds a slice to details and pyramid.
    pub fn add(&mut self, slice: Slice) {
        self.add_in(std::iter::once(slice), &mut Rooms::default());
    }

    /// The same with many, in room that forgotten slices left.
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
                self.pyramid.add(slice.span, slice.what, true);
            }
            self.last = self.last.max(self.open.end);
            self.total += added.len() as u64;
        }
    }

    #[cold]
    fn turn(&mut self, rooms: &mut Rooms) {
        let next = Chunk {
            slices: rooms.take(),
            ..Chunk::default()
        };
        self.chunks.push_back(Arc::new(std::mem::replace(&mut self.open, next)));
    }

    /// Adds time to the pyramid alone.
    pub fn add_time(&mut self, span: Span, what: u32, begins: bool) {
        self.last = self.last.max(span.end);
        self.pyramid.add(span, what, begins);
    }

    /// Takes over what another lane knows of the past; its slices are forgotten.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.pyramid.absorb(&other.pyramid);
        self.total += other.total;
        self.last = self.last.max(other.last);
    }

    /// Slices kept.
    pub fn kept(&self) -> usize {
        self.chunks.len() * CHUNK + self.open.slices.len()
    }

    /// Chunks that hold something, oldest first.
    fn all(&self) -> impl DoubleEndedIterator<Item = &Chunk> {
        let open = Some(&self.open).filter(|chunk| !chunk.slices.is_empty());
        self.chunks.iter().map(|chunk| &**chunk).chain(open)
    }

    /// Forgets the oldest chunk when it ended before `before` (or at any rate, when none): how many slices went.
    pub fn forget(&mut self, before: Option<Nanos>) -> usize {
        self.forget_in(before, &mut Rooms::default())
    }

    /// The same; their room is kept.
    pub(super) fn forget_in(&mut self, before: Option<Nanos>, rooms: &mut Rooms) -> usize {
        let oldest = self.chunks.front().map_or(&self.open, |chunk| &**chunk);
        if oldest.slices.is_empty() || before.is_some_and(|before| oldest.end >= before) {
            return 0;
        }
        self.forgotten_until = self.forgotten_until.max(oldest.end);
        let gone = oldest.slices.len();
        match self.chunks.pop_front() {
            Some(chunk) => rooms.keep(chunk),
            None => self.open = Chunk::default(),
        }
        gone
    }

    /// Whether all slices that touch `from`..`to` are still kept and are not more than `most`: whether [`Lane::slices`] has
    /// them.
    pub fn has_slices(&self, from: Nanos, to: Nanos, most: usize) -> bool {
        if from < self.forgotten_until || (self.kept() == 0 && self.last > 0) {
            return false;
        }
        let touching = || self.all().filter(|chunk| chunk.end >= from && chunk.begin <= to);
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
        if !self.has_slices(from, to, most) {
            return None;
        }
        let touching = self.all().filter(|chunk| chunk.end >= from && chunk.begin <= to);
        let inside = |slice: &&Slice| slice.span.end >= from && slice.span.begin <= to;
        let mut out: Vec<Slice> = touching
            .flat_map(|chunk| &chunk.slices)
            .filter(inside)
            .copied()
            .collect();
        out.sort_by_key(|slice| slice.span.begin);
        Some(out)
    }

    /// The last `most` slices in order of completion, youngest first.
    pub fn recent(&self, most: usize) -> impl Iterator<Item = &Slice> {
        self.all().rev().flat_map(|chunk| chunk.slices.iter().rev()).take(most)
    }

    /// The kept slice that ended last. Slices of several rings come in the order in which a reader came to the rings.
    pub fn latest(&self) -> Option<&Slice> {
        let chunk = self.all().max_by_key(|chunk| chunk.end)?;
        chunk.slices.iter().max_by_key(|slice| slice.span.end)
    }

    /// The first slice that begins after `at`, or the last that begins before it.
    pub fn neighbour(&self, at: Nanos, forward: bool) -> Option<Slice> {
        let all = self.all().flat_map(|chunk| &chunk.slices).copied();
        if forward {
            all.filter(|slice| slice.span.begin > at)
                .min_by_key(|slice| slice.span.begin)
        } else {
            all.filter(|slice| slice.span.begin < at)
                .max_by_key(|slice| slice.span.begin)
        }
    }

    /// The slice that began at `begin`.
    pub fn at(&self, begin: Nanos) -> Option<&Slice> {
        let near = self
            .all()
            .rev()
            .filter(|chunk| chunk.begin <= begin && chunk.end >= begin);
        near.flat_map(|chunk| &chunk.slices)
            .find(|slice| slice.span.begin == begin)
    }

    /// The slice that carries a correlation id, looked for from the young end.
    pub fn correlated(&self, correlation: u64) -> Option<&Slice> {
        let all = self.all().rev().flat_map(|chunk| chunk.slices.iter().rev());
        all.take(100_000).find(|slice| slice.correlation == correlation)
    }

    /// Sums by column. Narrow columns are exact where all slices are kept.
    pub fn columns(&self, from: Nanos, width: u64, columns: usize) -> Vec<Bucket> {
        let to = from.saturating_add(width.saturating_mul(columns as u64));
        let is_narrow = (1..1 << FINEST).contains(&width) && self.kept() > 0;
        match is_narrow.then(|| self.slices(from, to, MOST_IN_COLUMNS)).flatten() {
            Some(slices) => {
                let mut out = vec![Bucket::default(); columns];
                for slice in slices {
                    lay(slice.span, slice.what, from, width, &mut out);
                }
                out
            }
            None => self.pyramid.columns(from, width, columns),
        }
    }

    /// Nanoseconds of work between `from` and `to`, not more than there is time.
    pub fn busy(&self, from: Nanos, to: Nanos) -> u64 {
        self.pyramid.busy(from, to)
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
