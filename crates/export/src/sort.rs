//! External sort: sorted runs in an unnamed file, merged during reading.
//!
//! Memory holds the entries of a few runs while writing, and one block per run while reading. A hundred million records
//! make some hundred runs. The first key of each block stays in memory, so that any part of the order can be read, and
//! several at a time.

use super::workspace::{Pending, Workspace};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a block before compression, bytes.
const BLOCK_BYTES: usize = 16 << 10;
/// Number of entries of a part, about.
pub(super) const PART_ENTRIES: usize = 1 << 14;
/// Maximum number of runs that a sorter waits for later.
const MAX_PENDING: usize = 16;

/// An entry that can be sorted.
pub(crate) trait Entry: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// Sort key. The order of equal keys is undefined, but the same each time.
    type Key: Ord + Clone + Send + Sync + 'static;

    /// Its sort key.
    fn key(&self) -> Self::Key;

    /// Its heap size, bytes.
    fn heap(&self) -> usize {
        0
    }
}

/// Sorter: takes entries in any order.
pub(crate) struct Sorter<T: Entry> {
    held: Vec<T>,
    /// Current and maximum size of the held entries, bytes.
    bytes: usize,
    most: usize,
    place: Workspace,
    spill: Option<Arc<Spill>>,
    /// Runs in the order of their entries; the last ones may still be written.
    runs: Vec<Run<T::Key>>,
    pending: VecDeque<Pending<io::Result<Run<T::Key>>>>,
    count: u64,
}

impl<T: Entry> Sorter<T> {
    /// A sorter that holds `bytes` bytes of entries; more are written to an unnamed file in the directory of `place`.
    pub(crate) fn new(place: &Workspace, bytes: usize) -> Self {
        Self {
            held: Vec::new(),
            bytes: 0,
            most: bytes.max(size_of::<T>() * 16),
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
        self.bytes += size_of::<T>() + entry.heap();
        self.held.push(entry);
        if self.bytes >= self.most {
            self.write_run()?;
        }
        Ok(())
    }

    fn write_run(&mut self) -> io::Result<()> {
        let spill = match &self.spill {
            Some(spill) => spill.clone(),
            None => self.spill.insert(Arc::new(Spill::create(&self.place)?)).clone(),
        };
        let next = Vec::with_capacity(self.held.len());
        let mut entries = std::mem::replace(&mut self.held, next);
        self.bytes = 0;
        self.pending.push_back(self.place.start_run(move || {
            entries.sort_unstable_by_key(T::key);
            spill.write(&entries)
        }));
        self.settle(MAX_PENDING)
    }

    /// Waits until at most `most` runs are being written.
    fn settle(&mut self, most: usize) -> io::Result<()> {
        while self.pending.len() > most
            && let Some(run) = self.pending.pop_front()
        {
            let run = run.wait()?.map_err(|error| no_room(self.place.directory(), &error))?;
            self.runs.push(run);
        }
        Ok(())
    }

    /// All entries, sorted.
    pub(crate) fn finish(mut self) -> io::Result<Sorted<T>> {
        if self.spill.is_some() && !self.held.is_empty() {
            self.write_run()?;
            self.held = Vec::new();
        }
        self.settle(0)?;
        self.held.sort_unstable_by_key(T::key);
        let runs = self.runs;
        Ok(Sorted {
            held: self.held,
            spilled: self.spill.map(|spill| Arc::new(Spilled { spill, runs })),
            count: self.count,
            place: Some(self.place),
        })
    }
}

/// Sorted entries; can be iterated repeatedly, and by several threads.
pub(crate) struct Sorted<T: Entry> {
    held: Vec<T>,
    spilled: Option<Arc<Spilled<T::Key>>>,
    count: u64,
    place: Option<Workspace>,
}

impl<T: Entry> Default for Sorted<T> {
    fn default() -> Self {
        Self {
            held: Vec::new(),
            spilled: None,
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
        let Some(spilled) = &self.spilled else {
            return Iter::Held(self.held.iter());
        };
        match &self.place {
            Some(place) if place.ahead() > 0 => Iter::Ahead(Ahead {
                spilled: spilled.clone(),
                place: place.clone(),
                ranges: spilled.ranges(PART_ENTRIES).into_iter(),
                pending: VecDeque::new(),
                current: Vec::new().into_iter(),
            }),
            _ => Iter::Merge(Merge::new(spilled, KeyRange::all())),
        }
    }

    /// Maps parts of about `entries` entries on all threads, and takes the results in the entries' order.
    pub(crate) fn each_part<R: Send, E: Send>(
        &self,
        entries: usize,
        map: impl Fn(Iter<'_, T>) -> Result<R, E> + Sync,
        mut take: impl FnMut(R) -> Result<(), E>,
    ) -> Result<(), E> {
        let parts: Vec<Part<'_, T>> = match &self.spilled {
            Some(spilled) => spilled
                .ranges(entries)
                .into_iter()
                .map(|range| Part::Spilled(spilled, range))
                .collect(),
            None => self.held.chunks(entries).map(Part::Held).collect(),
        };
        let map = |part| {
            map(match part {
                Part::Held(held) => Iter::Held(held.iter()),
                Part::Spilled(spilled, range) => Iter::Merge(Merge::new(spilled, range)),
            })
        };
        match &self.place {
            Some(place) => place.in_order(parts, map, take),
            None => parts.into_iter().try_for_each(|part| take(map(part)?)),
        }
    }
}

/// Consecutive entries.
enum Part<'a, T: Entry> {
    Held(&'a [T]),
    Spilled(&'a Spilled<T::Key>, KeyRange<T::Key>),
}

/// Keys from the first one to before the second one; `None` is unbounded.
#[derive(Clone)]
struct KeyRange<K>(Option<K>, Option<K>);

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
    Ahead(Ahead<T>),
}

impl<T: Entry> Iterator for Iter<'_, T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Held(held) => held.next().cloned().map(Ok),
            Self::Merge(merge) => merge.next(),
            Self::Ahead(ahead) => ahead.next(),
        }
    }
}

/// Entries whose next parts are read by other threads.
pub(crate) struct Ahead<T: Entry> {
    spilled: Arc<Spilled<T::Key>>,
    place: Workspace,
    ranges: std::vec::IntoIter<KeyRange<T::Key>>,
    pending: VecDeque<Pending<io::Result<Vec<T>>>>,
    current: std::vec::IntoIter<T>,
}

impl<T: Entry> Iterator for Ahead<T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.current.next() {
                return Some(Ok(entry));
            }
            while self.pending.len() < self.place.ahead()
                && let Some(range) = self.ranges.next()
            {
                let spilled = self.spilled.clone();
                let read = move || Merge::new(&spilled, range).collect();
                self.pending.push_back(self.place.start(read));
            }
            match self.pending.pop_front()?.wait().flatten() {
                Ok(entries) => self.current = entries.into_iter(),
                Err(error) => {
                    self.ranges = Vec::new().into_iter();
                    self.pending.clear();
                    return Some(Err(error));
                }
            }
        }
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
    fn new(spilled: &'a Spilled<T::Key>, range: KeyRange<T::Key>) -> Self {
        let KeyRange(from, to) = range;
        let mut merge = Self {
            cursors: Vec::with_capacity(spilled.runs.len()),
            heap: BinaryHeap::with_capacity(spilled.runs.len()),
            to,
            failed: None,
        };
        for (number, run) in spilled.runs.iter().enumerate() {
            // The block before may end with entries of the range.
            let first = from
                .as_ref()
                .map_or(0, |from| run.partition_point(|block| block.first < *from));
            let mut cursor = Cursor {
                file: &spilled.spill.file,
                blocks: run.get(first.saturating_sub(1)..).unwrap_or_default().iter(),
                block: Vec::new(),
                used: 0,
                next: None,
            };
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
        let entry = cursor.next.take()?;
        match cursor.advance() {
            Ok(()) => match cursor.next.as_ref().map(T::key) {
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

/// Blocks of a sorted run, in order.
type Run<K> = Vec<Block<K>>;

/// A block in the file.
struct Block<K> {
    /// Key of its first entry.
    first: K,
    at: u64,
    packed: usize,
    bytes: usize,
    entries: usize,
}

/// Runs in an unnamed file.
struct Spilled<K> {
    spill: Arc<Spill>,
    runs: Vec<Run<K>>,
}

impl<K: Ord + Clone> Spilled<K> {
    /// Divides the order into ranges of about `entries` entries. Equal keys are in one range.
    fn ranges(&self, entries: usize) -> Vec<KeyRange<K>> {
        let mut blocks: Vec<&Block<K>> = self.runs.iter().flatten().collect();
        blocks.sort_by(|a, b| a.first.cmp(&b.first));
        let (mut ranges, mut from, mut count) = (Vec::new(), None, 0);
        for block in blocks {
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

/// An unnamed file that several threads write.
struct Spill {
    file: File,
    end: AtomicU64,
}

impl Spill {
    fn create(place: &Workspace) -> io::Result<Self> {
        Ok(Self {
            file: nameless(place)?,
            end: AtomicU64::new(0),
        })
    }

    fn write<T: Entry>(&self, entries: &[T]) -> io::Result<Run<T::Key>> {
        let mut run = Vec::new();
        let mut block = Vec::with_capacity(BLOCK_BYTES + 4096);
        let mut first = 0;
        for (at, entry) in entries.iter().enumerate() {
            block = postcard::to_extend(entry, block).map_err(io::Error::other)?;
            if block.len() >= BLOCK_BYTES || at + 1 == entries.len() {
                run.push(self.write_block(&block, &entries[first..=at])?);
                block.clear();
                first = at + 1;
            }
        }
        Ok(run)
    }

    fn write_block<T: Entry>(&self, block: &[u8], entries: &[T]) -> io::Result<Block<T::Key>> {
        let packed = lz4_flex::block::compress(block);
        let at = self.end.fetch_add(packed.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(&packed, at)?;
        Ok(Block {
            first: entries[0].key(),
            at,
            packed: packed.len(),
            bytes: block.len(),
            entries: entries.len(),
        })
    }
}

/// Reader of one run.
struct Cursor<'a, T: Entry> {
    file: &'a File,
    blocks: std::slice::Iter<'a, Block<T::Key>>,
    block: Vec<u8>,
    used: usize,
    next: Option<T>,
}

impl<T: Entry> Cursor<'_, T> {
    fn advance(&mut self) -> io::Result<()> {
        if self.used == self.block.len() {
            let Some(block) = self.blocks.next() else {
                self.next = None;
                return Ok(());
            };
            let mut packed = vec![0u8; block.packed];
            self.file.read_exact_at(&mut packed, block.at)?;
            self.block = lz4_flex::block::decompress(&packed, block.bytes).map_err(io::Error::other)?;
            self.used = 0;
        }
        let (entry, rest) = postcard::take_from_bytes(&self.block[self.used..]).map_err(io::Error::other)?;
        self.used = self.block.len() - rest.len();
        self.next = Some(entry);
        Ok(())
    }

    /// Advances to the first entry that is not before `from`, and returns its key.
    fn advance_to(&mut self, from: Option<&T::Key>) -> io::Result<Option<T::Key>> {
        loop {
            self.advance()?;
            let key = self.next.as_ref().map(T::key);
            if key.as_ref().zip(from).is_none_or(|(key, from)| key >= from) {
                return Ok(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::workspace;
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
        let mut sorter = Sorter::new(&Workspace::new(Path::new("/proc/nowhere"), NonZeroUsize::MIN), 16);
        let failed = mixed(100).try_for_each(|pair| sorter.put(pair));
        assert!(failed.is_err());
    }
}
