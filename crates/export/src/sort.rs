//! External sort: sorted runs, merged during reading. Runs stay in memory while the workspace has room; others are written to an
//! unnamed file.
//!
//! While it sorts, memory holds the entries of a few runs more, and while it reads, one block of each run in the file. A hundred million
//! records make some hundred runs. The first key of each block stays in memory, so that any part of the order can be read,
//! and several at a time. Blocks are the same wherever the runs are, and so are the parts of the order.

use super::workspace::{Pending, Room, Workspace};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of the entries of a block in memory, bytes. In the file they take about a quarter before compression.
const BLOCK_BYTES: usize = 64 << 10;
/// Number of entries of a part, about.
pub(super) const PART_ENTRIES: usize = 1 << 14;
/// Maximum number of runs that a sorter waits for later.
const MAX_PENDING: usize = 16;
/// Maximum size of the first runs, bytes and entries: small ones keep all threads busy.
const FIRST_RUN_BYTES: usize = 8 << 20;
const FIRST_RUN_ENTRIES: usize = 1 << 17;
/// Number of runs after which the next ones are twice as large: a read opens every run.
const RUNS_OF_ONE_SIZE: usize = 64;

/// An entry that can be sorted.
pub(crate) trait Entry: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// Sort key.
    type Key: Ord + Clone + Send + Sync + 'static;

    /// Its sort key.
    fn key(&self) -> Self::Key;

    /// Its heap size, bytes.
    fn heap(&self) -> usize {
        0
    }

    /// Its size, bytes.
    fn size(&self) -> usize {
        size_of::<Self>() + self.heap()
    }
}

/// Entries that are added when their run is sorted.
type Chunk<T> = Box<dyn FnOnce(&mut Vec<T>) + Send>;

/// Sorter: takes entries in any order. Entries with equal keys stay in the order in which they came.
pub(crate) struct Sorter<T: Entry> {
    /// The next run: chunks, then single entries.
    chunks: Vec<Chunk<T>>,
    held: Vec<T>,
    /// Number of entries of the next run, their size, and the size at which it is written, bytes.
    next: usize,
    bytes: usize,
    enough: usize,
    /// Maximum of that.
    most: usize,
    place: Workspace,
    spill: Option<Arc<Spill>>,
    /// Runs in the order of their entries; the last ones may still be written.
    runs: Vec<Run<T>>,
    pending: VecDeque<Pending<io::Result<Run<T>>>>,
    count: u64,
}

impl<T: Entry> Sorter<T> {
    /// A sorter that holds at most `bytes` bytes of entries. More become runs, in the memory of `place` or in an unnamed file in
    /// its directory.
    pub(crate) fn new(place: &Workspace, bytes: usize) -> Self {
        let most = bytes.max(size_of::<T>() * 16);
        Self {
            chunks: Vec::new(),
            held: Vec::new(),
            next: 0,
            bytes: 0,
            enough: most.min(FIRST_RUN_BYTES).min(size_of::<T>() * FIRST_RUN_ENTRIES),
            most,
            place: place.clone(),
            spill: None,
            runs: Vec::new(),
            pending: VecDeque::new(),
            count: 0,
        }
    }

    /// Adds an entry.
    pub(crate) fn put(&mut self, entry: T) -> io::Result<()> {
        self.count += 1;
        self.next += 1;
        self.bytes += entry.size();
        self.held.push(entry);
        self.write_run_if_full()
    }

    /// Adds `entries` entries without heap memory, which `add` appends to a list, on another thread if there are several.
    pub(crate) fn append(&mut self, entries: usize, add: impl FnOnce(&mut Vec<T>) + Send + 'static) -> io::Result<()> {
        self.hold_chunk();
        self.count += entries as u64;
        self.next += entries;
        self.bytes += size_of::<T>() * entries;
        self.chunks.push(Box::new(add));
        self.write_run_if_full()
    }

    /// Turns single entries into a chunk.
    fn hold_chunk(&mut self) {
        if !self.held.is_empty() {
            let mut held = std::mem::take(&mut self.held);
            self.chunks.push(Box::new(move |all| all.append(&mut held)));
        }
    }

    fn write_run_if_full(&mut self) -> io::Result<()> {
        if self.bytes >= self.enough {
            self.write_run()?;
        }
        Ok(())
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.hold_chunk();
        let chunks = std::mem::take(&mut self.chunks);
        let count = std::mem::take(&mut self.next);
        let bytes = std::mem::take(&mut self.bytes) + count * size_of::<u32>();
        let to = match (self.place.reserve(bytes), &self.spill) {
            (Some(room), _) => To::Memory(room),
            (None, Some(spill)) => To::File(spill.clone()),
            (None, None) => To::File(self.spill.insert(Arc::new(Spill::create(&self.place)?)).clone()),
        };
        let run = move || {
            let entries = joined(chunks, count);
            let (order, blocks, last) = sorted(&entries)?;
            let data = match to {
                To::Memory(room) => Data::Memory(entries, order, room),
                To::File(spill) => Data::File(spill.write(&entries, &order, &blocks)?, spill),
            };
            Ok(Run { blocks, last, data })
        };
        self.pending.push_back(self.place.start_run(run));
        if (self.runs.len() + self.pending.len()).is_multiple_of(RUNS_OF_ONE_SIZE) {
            self.enough = (2 * self.enough).min(self.most);
        }
        self.settle(MAX_PENDING)
    }

    /// Waits until at most `most` runs are being written.
    fn settle(&mut self, most: usize) -> io::Result<()> {
        while self.pending.len() > most
            && let Some(run) = self.pending.pop_front()
        {
            self.runs.push(run.wait()??);
        }
        Ok(())
    }

    /// Begins to sort the last entries, on another thread if there are several.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if self.has_runs() && self.bytes > 0 {
            self.write_run()?;
        }
        Ok(())
    }

    fn has_runs(&self) -> bool {
        !self.runs.is_empty() || !self.pending.is_empty()
    }

    /// All entries, sorted.
    pub(crate) fn finish(mut self) -> io::Result<Sorted<T>> {
        self.end()?;
        let has_runs = self.has_runs();
        self.settle(0)?;
        self.hold_chunk();
        let runs = self.runs;
        let mut held = joined(self.chunks, self.next);
        held.sort_by_key(T::key);
        Ok(Sorted {
            held,
            runs: has_runs.then(|| Arc::new(Runs(runs))),
            count: self.count,
            place: Some(self.place),
        })
    }
}

/// Where a run goes.
enum To {
    Memory(Room),
    File(Arc<Spill>),
}

/// Order, blocks and last key of a run's entries.
type Order<K> = (Vec<u32>, Vec<Block<K>>, K);

/// Sorts the entries of a run, which stay where they are.
fn sorted<T: Entry>(entries: &[T]) -> io::Result<Order<T::Key>> {
    let mut order: Vec<(T::Key, u32)> = entries.iter().map(T::key).zip(0..).collect();
    // Chunks are nearly sorted, which a stable sort makes use of.
    order.sort_by(|a, b| a.0.cmp(&b.0));
    let mut blocks: Vec<Block<T::Key>> = Vec::new();
    let mut bytes = BLOCK_BYTES;
    for (at, (key, number)) in order.iter().enumerate() {
        if bytes >= BLOCK_BYTES {
            blocks.push(Block {
                first: key.clone(),
                begin: at,
                entries: 0,
            });
            bytes = 0;
        }
        bytes += entries[*number as usize].size();
        if let Some(block) = blocks.last_mut() {
            block.entries += 1;
        }
    }
    let last = order.last().ok_or(io::ErrorKind::InvalidInput)?.0.clone();
    Ok((order.into_iter().map(|(_, number)| number).collect(), blocks, last))
}

/// The entries of a run.
fn joined<T: Entry>(chunks: Vec<Chunk<T>>, count: usize) -> Vec<T> {
    let mut entries = Vec::with_capacity(count);
    for chunk in chunks {
        chunk(&mut entries);
    }
    entries
}

/// Sorted entries; can be iterated repeatedly, and by several threads.
pub(crate) struct Sorted<T: Entry> {
    held: Vec<T>,
    runs: Option<Arc<Runs<T>>>,
    count: u64,
    place: Option<Workspace>,
}

impl<T: Entry> Default for Sorted<T> {
    fn default() -> Self {
        Self {
            held: Vec::new(),
            runs: None,
            count: 0,
            place: None,
        }
    }
}

impl<T: Entry> Sorted<T> {
    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of entries.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> u64 {
        self.count
    }

    /// Iterates over the entries; ends after an error. Other threads read ahead.
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        match (&self.runs, self.ahead(Arc::new(|entries| entries))) {
            (_, Some(ahead)) => Iter::Ahead(ahead, Vec::new().into_iter()),
            (Some(runs), None) => Iter::Merge(Merge::new(runs, KeyRange::all())),
            (None, None) => Iter::Held(self.held.iter()),
        }
    }

    /// Iterates over the entries in lists of about [`PART_ENTRIES`], the same on any number of threads; ends after an error.
    /// Other threads read ahead.
    pub(crate) fn chunks(&self) -> Chunks<'_, T> {
        self.chunks_as(|entries| entries)
    }

    /// As [`Sorted::chunks`], but with what `make` makes of each list, on the thread that reads it.
    pub(crate) fn chunks_as<R: Send + 'static>(
        &self,
        make: impl Fn(Vec<T>) -> R + Send + Sync + 'static,
    ) -> Chunks<'_, T, R> {
        let make: Arc<Make<T, R>> = Arc::new(make);
        let lists = match (&self.runs, self.ahead(make.clone())) {
            (_, Some(ahead)) => Lists::Ahead(ahead),
            (Some(runs), None) => Lists::Here(runs, runs.ranges(PART_ENTRIES).into_iter()),
            (None, None) => Lists::Held(self.held.chunks(PART_ENTRIES)),
        };
        Chunks { lists, make }
    }

    fn ahead<R>(&self, make: Arc<Make<T, R>>) -> Option<Ahead<T, R>> {
        let runs = self.runs.as_ref()?;
        let place = self.place.as_ref().filter(|place| place.ahead() > 0)?;
        Some(Ahead {
            runs: runs.clone(),
            place: place.clone(),
            ranges: runs.ranges(PART_ENTRIES).into_iter(),
            pending: VecDeque::new(),
            make,
        })
    }

    /// Maps parts of about `entries` entries on all threads, and takes the results in the entries' order.
    pub(crate) fn each_part<R: Send, E: Send>(
        &self,
        entries: usize,
        map: impl Fn(Iter<'_, T>) -> Result<R, E> + Sync,
        mut take: impl FnMut(R) -> Result<(), E>,
    ) -> Result<(), E> {
        let parts = self.parts(entries);
        let map = |part: Part<'_, T>| map(part.iter());
        match &self.place {
            Some(place) => place.in_order(parts, map, take),
            None => parts.into_iter().try_for_each(|part| take(map(part)?)),
        }
    }

    /// Parts of about `entries` entries, in order.
    pub(crate) fn parts(&self, entries: usize) -> Vec<Part<'_, T>> {
        match &self.runs {
            Some(runs) => {
                let ranges = runs.ranges(entries).into_iter();
                ranges.map(|range| Part::Merged(runs, range)).collect()
            }
            None => self.held.chunks(entries).map(Part::Held).collect(),
        }
    }
}

/// Consecutive entries.
pub(crate) enum Part<'a, T: Entry> {
    Held(&'a [T]),
    Merged(&'a Runs<T>, KeyRange<T::Key>),
}

impl<'a, T: Entry> Part<'a, T> {
    /// Iterates over the entries; ends after an error.
    pub(crate) fn iter(self) -> Iter<'a, T> {
        match self {
            Part::Held(held) => Iter::Held(held.iter()),
            Part::Merged(runs, range) => Iter::Merge(Merge::new(runs, range)),
        }
    }
}

/// Keys from the first one to before the second one; `None` is unbounded.
#[derive(Clone)]
pub(crate) struct KeyRange<K>(Option<K>, Option<K>);

impl<K> KeyRange<K> {
    const fn all() -> Self {
        Self(None, None)
    }
}

/// Iterator over sorted entries.
pub(crate) enum Iter<'a, T: Entry> {
    /// All are in memory.
    Held(std::slice::Iter<'a, T>),
    Merge(Merge<'a, T>),
    /// With what is left of the last list.
    Ahead(Ahead<T, Vec<T>>, std::vec::IntoIter<T>),
}

impl<T: Entry> Iterator for Iter<'_, T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Held(held) => held.next().cloned().map(Ok),
            Self::Merge(merge) => merge.next(),
            Self::Ahead(ahead, list) => loop {
                if let Some(entry) = list.next() {
                    return Some(Ok(entry));
                }
                match ahead.next()? {
                    Ok(entries) => *list = entries.into_iter(),
                    Err(error) => return Some(Err(error)),
                }
            },
        }
    }
}

/// Makes something of a list of entries.
type Make<T, R> = dyn Fn(Vec<T>) -> R + Send + Sync;

/// Lists of entries, the next of which are read by other threads.
pub(crate) struct Ahead<T: Entry, R> {
    runs: Arc<Runs<T>>,
    place: Workspace,
    ranges: std::vec::IntoIter<KeyRange<T::Key>>,
    pending: VecDeque<Pending<io::Result<R>>>,
    make: Arc<Make<T, R>>,
}

impl<T: Entry, R: Send + 'static> Iterator for Ahead<T, R> {
    type Item = io::Result<R>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.pending.len() < self.place.ahead()
            && let Some(range) = self.ranges.next()
        {
            let (runs, make) = (self.runs.clone(), self.make.clone());
            let read = move || {
                Merge::new(&runs, range)
                    .collect::<io::Result<Vec<T>>>()
                    .map(|list| make(list))
            };
            self.pending.push_back(self.place.start(read));
        }
        let made = self.pending.pop_front()?.wait().flatten();
        if made.is_err() {
            self.ranges = Vec::new().into_iter();
            self.pending.clear();
        }
        Some(made)
    }
}

/// Iterator over sorted entries, many at a time.
pub(crate) struct Chunks<'a, T: Entry, R = Vec<T>> {
    lists: Lists<'a, T, R>,
    make: Arc<Make<T, R>>,
}

/// Where lists of entries come from.
enum Lists<'a, T: Entry, R> {
    /// All are in memory.
    Held(std::slice::Chunks<'a, T>),
    Here(&'a Runs<T>, std::vec::IntoIter<KeyRange<T::Key>>),
    Ahead(Ahead<T, R>),
}

impl<T: Entry, R: Send + 'static> Iterator for Chunks<'_, T, R> {
    type Item = io::Result<R>;

    fn next(&mut self) -> Option<Self::Item> {
        let list = match &mut self.lists {
            Lists::Held(lists) => Ok(lists.next()?.to_vec()),
            Lists::Here(runs, ranges) => Merge::new(runs, ranges.next()?).collect(),
            Lists::Ahead(ahead) => return ahead.next(),
        };
        Some(list.map(|list| (self.make)(list)))
    }
}

/// Merges the runs of a range of keys; ends after an error.
pub(crate) struct Merge<'a, T: Entry> {
    cursors: Vec<Cursor<'a, T>>,
    heap: BinaryHeap<Reverse<(T::Key, usize)>>,
    to: Option<T::Key>,
    failed: Option<io::Error>,
}

impl<'a, T: Entry> Merge<'a, T> {
    fn new(runs: &'a Runs<T>, range: KeyRange<T::Key>) -> Self {
        let KeyRange(from, to) = range;
        let mut merge = Self {
            cursors: Vec::new(),
            heap: BinaryHeap::new(),
            to,
            failed: None,
        };
        let is_in_range = |run: &&Run<T>| {
            let begins_before_end = run.blocks.first().is_some_and(|block| merge.is_within(&block.first));
            begins_before_end && from.as_ref().is_none_or(|from| run.last >= *from)
        };
        let runs: Vec<&Run<T>> = runs.0.iter().filter(is_in_range).collect();
        for (number, run) in runs.into_iter().enumerate() {
            let mut cursor = Cursor::new(run, from.as_ref());
            match cursor.advance_to(from.as_ref()) {
                Ok(Some(key)) if merge.is_within(&key) => merge.heap.push(Reverse((key, number))),
                Ok(_) => {}
                Err(error) => merge.failed = Some(error),
            }
            merge.cursors.push(cursor);
        }
        merge
    }

    fn is_within(&self, key: &T::Key) -> bool {
        self.to.as_ref().is_none_or(|to| key < to)
    }
}

impl<T: Entry> Iterator for Merge<'_, T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            self.heap.clear();
            return Some(Err(error));
        }
        let mut top = self.heap.peek_mut()?;
        let number = top.0.1;
        let cursor = self.cursors.get_mut(number)?;
        let entry = cursor.take()?;
        match cursor.advance() {
            Ok(()) => match cursor.key() {
                Some(key) if self.to.as_ref().is_none_or(|to| key < *to) => *top = Reverse((key, number)),
                _ => drop(std::collections::binary_heap::PeekMut::pop(top)),
            },
            Err(error) => {
                drop(top);
                self.failed = Some(error);
            }
        }
        Some(Ok(entry))
    }
}

/// Creates an unnamed file in the directory of `place`; nothing remains of it when this process ends.
pub(super) fn nameless(place: &Workspace) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!(".roctop-sort-{}-{number}.tmp", std::process::id());
    let path = place.directory().join(name);
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// The error when such a file cannot be written.
pub(super) fn no_room(directory: &Path, error: &io::Error) -> io::Error {
    let directory = directory.display();
    io::Error::new(error.kind(), format!("sorting needs room in {directory}: {error}"))
}

/// A sorted run.
struct Run<T: Entry> {
    /// Its blocks, in order.
    blocks: Vec<Block<T::Key>>,
    /// Key of its last entry.
    last: T::Key,
    data: Data<T>,
}

/// The entries of a run.
enum Data<T> {
    /// Entries in the order of their arrival, their sorted order, and the room that they take.
    Memory(
        Vec<T>,
        Vec<u32>,
        #[expect(dead_code, reason = "held while the entries are")] Room,
    ),
    /// The blocks, and the file that they are in.
    File(Vec<Packed>, Arc<Spill>),
}

/// Consecutive entries of a run.
struct Block<K> {
    /// Key of its first entry.
    first: K,
    /// Place of its first entry in the run's order.
    begin: usize,
    entries: usize,
}

/// A block in the file.
struct Packed {
    at: u64,
    stored: usize,
    bytes: usize,
}

/// Sorted runs.
pub(crate) struct Runs<T: Entry>(Vec<Run<T>>);

impl<T: Entry> Runs<T> {
    /// Divides the order into ranges of about `entries` entries. Equal keys are in one range.
    fn ranges(&self, entries: usize) -> Vec<KeyRange<T::Key>> {
        let blocks: Vec<&Block<T::Key>> = self.0.iter().flat_map(|run| &run.blocks).collect();
        let order = order_by(blocks.len(), &|a, b| blocks[a].first.cmp(&blocks[b].first));
        let (mut ranges, mut from, mut count) = (Vec::new(), None, 0);
        for block in order.into_iter().map(|at| blocks[at]) {
            if count >= entries && from.as_ref().is_none_or(|from| *from < block.first) {
                let to = Some(block.first.clone());
                ranges.push(KeyRange(from, to.clone()));
                (from, count) = (to, 0);
            }
            count += block.entries;
        }
        ranges.push(KeyRange(from, None));
        ranges
    }
}

/// The numbers below `count` in ascending order of what they stand for. Compiled once for all types of entries.
fn order_by(count: usize, compare: &dyn Fn(usize, usize) -> std::cmp::Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// An unnamed file that several threads write.
struct Spill {
    file: File,
    /// The directory that it takes room in.
    directory: PathBuf,
    end: AtomicU64,
}

impl Spill {
    fn create(place: &Workspace) -> io::Result<Self> {
        Ok(Self {
            file: nameless(place)?,
            directory: place.directory().to_owned(),
            end: AtomicU64::new(0),
        })
    }

    /// Writes the blocks of a run, with one write: threads that write to a file wait for each other.
    fn write<T: Entry>(&self, entries: &[T], order: &[u32], blocks: &[Block<T::Key>]) -> io::Result<Vec<Packed>> {
        let (mut written, mut all) = (Vec::with_capacity(blocks.len()), Vec::new());
        let mut encoded = Vec::with_capacity(BLOCK_BYTES / 2);
        for block in blocks {
            encoded.clear();
            for number in &order[block.begin..block.begin + block.entries] {
                encoded = postcard::to_extend(&entries[*number as usize], encoded).map_err(io::Error::other)?;
            }
            let compressed = lz4_flex::block::compress(&encoded);
            written.push(Packed {
                at: all.len() as u64,
                stored: compressed.len(),
                bytes: encoded.len(),
            });
            all.extend_from_slice(&compressed);
        }
        let begin = self.end.fetch_add(all.len() as u64, Ordering::Relaxed);
        self.file
            .write_all_at(&all, begin)
            .map_err(|error| no_room(&self.directory, &error))?;
        for block in &mut written {
            block.at += begin;
        }
        Ok(written)
    }
}

/// Reader of one run.
enum Cursor<'a, T: Entry> {
    /// Entries, and the order of those that are left.
    Memory(&'a [T], &'a [u32]),
    File {
        file: &'a File,
        blocks: std::slice::Iter<'a, Packed>,
        block: Vec<u8>,
        used: usize,
        next: Option<T>,
    },
}

impl<'a, T: Entry> Cursor<'a, T> {
    /// A reader that begins not after the first entry that is not before `from`.
    fn new(run: &'a Run<T>, from: Option<&T::Key>) -> Self {
        // The block before may end with entries of the range.
        let later = from.map_or(0, |from| run.blocks.partition_point(|block| block.first < *from));
        let first = later.saturating_sub(1);
        match &run.data {
            Data::Memory(entries, order, _) => {
                let begin = run.blocks.get(first).map_or(0, |block| block.begin);
                Self::Memory(entries, order.get(begin..).unwrap_or_default())
            }
            Data::File(blocks, spill) => Self::File {
                file: &spill.file,
                blocks: blocks.get(first..).unwrap_or_default().iter(),
                block: Vec::new(),
                used: 0,
                next: None,
            },
        }
    }

    /// Key of the current entry; `None` at the end.
    fn key(&self) -> Option<T::Key> {
        match self {
            Self::Memory(entries, order) => Some(entries.get(*order.first()? as usize)?.key()),
            Self::File { next, .. } => next.as_ref().map(T::key),
        }
    }

    /// The current entry; `None` at the end. [`Cursor::advance`] must follow.
    fn take(&mut self) -> Option<T> {
        match self {
            Self::Memory(entries, order) => entries.get(*order.first()? as usize).cloned(),
            Self::File { next, .. } => next.take(),
        }
    }

    fn advance(&mut self) -> io::Result<()> {
        match self {
            Self::Memory(_, order) => {
                *order = order.get(1..).unwrap_or_default();
                Ok(())
            }
            Self::File {
                file,
                blocks,
                block,
                used,
                next,
            } => {
                if *used == block.len() {
                    let Some(following) = blocks.next() else {
                        *next = None;
                        return Ok(());
                    };
                    let mut packed = vec![0u8; following.stored];
                    file.read_exact_at(&mut packed, following.at)?;
                    *block = lz4_flex::block::decompress(&packed, following.bytes).map_err(io::Error::other)?;
                    *used = 0;
                }
                let (entry, rest) = postcard::take_from_bytes(&block[*used..]).map_err(io::Error::other)?;
                *used = block.len() - rest.len();
                *next = Some(entry);
                Ok(())
            }
        }
    }

    /// Advances to the first entry that is not before `from`, and returns its key.
    fn advance_to(&mut self, from: Option<&T::Key>) -> io::Result<Option<T::Key>> {
        if let Self::Memory(entries, order) = self {
            if let Some(from) = from {
                let before = order.partition_point(|number| entries[*number as usize].key() < *from);
                *order = &order[before..];
            }
            return Ok(self.key());
        }
        loop {
            self.advance()?;
            let key = self.key();
            if key.as_ref().zip(from).is_none_or(|(key, from)| key >= from) {
                return Ok(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::{workspace, workspace_with};
    use serde::Deserialize;
    use std::num::NonZeroUsize;

    #[test]
    fn equal_keys_are_in_one_part() {
        let mut sorter = Sorter::new(&workspace(2), 4 << 10);
        (0..5000).for_each(|number| sorter.put(Pair(number / 700, "x".repeat(20))).unwrap());
        let sorted = sorter.finish().unwrap();
        let keys = |part: Iter<'_, Pair>| part.map(|pair| Ok(pair?.0)).collect::<io::Result<Vec<u64>>>();
        let mut all: Vec<Vec<u64>> = Vec::new();
        let take = |keys| {
            all.push(keys);
            io::Result::Ok(())
        };
        sorted.each_part(100, keys, take).unwrap();
        assert!(all.len() > 3, "{all:?}");
        for pair in all.windows(2) {
            assert!(pair[0].last() < pair[1].first(), "{pair:?}");
        }
    }

    #[test]
    fn parts_are_the_same_wherever_runs_are() {
        let parts = |memory| {
            let mut sorter = Sorter::new(&workspace_with(2, memory), 64 << 10);
            mixed(50_000).for_each(|pair| sorter.put(pair).unwrap());
            let sorted = sorter.finish().unwrap();
            let runs = sorted.runs.as_ref().unwrap();
            let in_memory = runs.0.iter().filter(|run| matches!(run.data, Data::Memory(..))).count();
            let mut all = Vec::new();
            let part = |part: Iter<'_, Pair>| part.collect::<io::Result<Vec<Pair>>>();
            let take = |pairs: Vec<Pair>| {
                all.push(pairs);
                io::Result::Ok(())
            };
            sorted.each_part(1000, part, take).unwrap();
            (in_memory, runs.0.len() - in_memory, all)
        };
        let (spilled, some, kept) = (parts(0), parts(500 << 10), parts(1 << 30));
        assert!(spilled.0 == 0 && spilled.1 > 10, "{} {}", spilled.0, spilled.1);
        assert!(some.0 > 2 && some.1 > 2, "{} {}", some.0, some.1);
        assert!(kept.0 > 10 && kept.1 == 0, "{} {}", kept.0, kept.1);
        assert!(spilled.2.len() > 10 && spilled.2 == some.2 && some.2 == kept.2);
    }

    #[test]
    fn memory_is_given_back() {
        let place = workspace_with(2, 1 << 20);
        for _ in 0..5 {
            let mut sorter = Sorter::new(&place, 64 << 10);
            mixed(9000).for_each(|pair| sorter.put(pair).unwrap());
            let runs = sorter.finish().unwrap().runs.unwrap();
            assert!(runs.0.iter().all(|run| matches!(run.data, Data::Memory(..))));
        }
        assert!(place.reserve(1 << 20).is_some(), "all of it");
    }

    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Pair(u64, String);

    impl Entry for Pair {
        type Key = u64;
        fn key(&self) -> u64 {
            self.0
        }
    }

    fn mixed(count: u64) -> impl Iterator<Item = Pair> {
        (0..count)
            .map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .map(|key| Pair(key, key.to_string()))
    }

    #[test]
    fn spilled_entries_are_sorted_on_every_pass() {
        let cases = [(0, 1 << 20), (10, 1 << 20), (16, 1), (50_000, 64 << 10)];
        for ((count, bytes), threads) in cases.into_iter().flat_map(|case| [1, 7].map(|threads| (case, threads))) {
            let mut sorter = Sorter::new(&workspace(threads), bytes);
            mixed(count).for_each(|pair| sorter.put(pair).unwrap());
            let sorted = sorter.finish().unwrap();
            let mut expected: Vec<Pair> = mixed(count).collect();
            expected.sort_by_key(Pair::key);
            assert_eq!((sorted.len(), sorted.is_empty()), (count, count == 0));
            for _ in 0..2 {
                let found: Vec<Pair> = sorted.iter().map(Result::unwrap).collect();
                assert!(found == expected, "{count} entries");
            }
            let (mut found, mut parts) = (Vec::new(), 0);
            let part = |part: Iter<'_, Pair>| part.collect::<io::Result<Vec<Pair>>>();
            let take = |pairs: Vec<Pair>| {
                parts += 1;
                found.extend(pairs);
                io::Result::Ok(())
            };
            sorted.each_part(5000, part, take).unwrap();
            assert!(found == expected, "{count} entries");
            assert!(parts >= count / 10_000, "{parts} parts of {count} entries");
        }
    }

    #[test]
    fn an_unwritable_directory_is_an_error() {
        let mut sorter = Sorter::new(&Workspace::new(Path::new("/proc/nowhere"), NonZeroUsize::MIN, 0), 16);
        let failed = mixed(100).try_for_each(|pair| sorter.put(pair));
        assert!(failed.is_err());
    }
}
