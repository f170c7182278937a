//! External sort: sorted runs in an unnamed file, merged during reading.
//!
//! Memory holds the entries of one run while writing, and one block per run while reading. A hundred million records
//! make some hundred runs.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a block before compression, bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// An entry that can be sorted.
pub(crate) trait Entry: Serialize + DeserializeOwned + Clone {
    /// Sort key. The order of equal keys is undefined.
    type Key: Ord;

    /// Its sort key.
    fn key(&self) -> Self::Key;

    /// Its heap size, bytes.
    fn heap(&self) -> usize {
        0
    }
}

/// Sorter: takes entries in any order.
pub(crate) struct Sorter<T> {
    held: Vec<T>,
    /// Current and maximum size of the held entries, bytes.
    bytes: usize,
    most: usize,
    place: PathBuf,
    spill: Option<Spill>,
    count: u64,
}

impl<T: Entry> Sorter<T> {
    /// A sorter that holds `bytes` bytes of entries; more are written to an unnamed file in the directory `place`.
    pub(crate) fn new(place: &Path, bytes: usize) -> Self {
        Self {
            held: Vec::new(),
            bytes: 0,
            most: bytes.max(size_of::<T>() * 16),
            place: place.to_owned(),
            spill: None,
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
        self.held.sort_unstable_by_key(T::key);
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::create(&self.place)?),
        };
        spill.write(&self.held).map_err(|error| no_room(&self.place, &error))?;
        self.held.clear();
        self.bytes = 0;
        Ok(())
    }

    /// All entries, sorted.
    pub(crate) fn finish(mut self) -> io::Result<Sorted<T>> {
        if self.spill.is_some() && !self.held.is_empty() {
            self.write_run()?;
            self.held = Vec::new();
        }
        self.held.sort_unstable_by_key(T::key);
        Ok(Sorted {
            held: self.held,
            spill: self.spill,
            count: self.count,
        })
    }
}

/// Sorted entries; can be iterated repeatedly.
pub(crate) struct Sorted<T> {
    held: Vec<T>,
    spill: Option<Spill>,
    count: u64,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self {
            held: Vec::new(),
            spill: None,
            count: 0,
        }
    }
}

impl<T> Sorted<T> {
    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of entries.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> u64 {
        self.count
    }
}

impl<T: Entry> Sorted<T> {
    /// Iterates over the entries; ends after an error.
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        let mut iter = Iter {
            held: self.held.iter(),
            runs: Vec::new(),
            heap: BinaryHeap::new(),
            failed: None,
        };
        let Some(spill) = &self.spill else { return iter };
        for (number, range) in spill.runs.iter().enumerate() {
            let mut run = Run {
                file: &spill.file,
                at: range.start,
                end: range.end,
                block: Vec::new(),
                used: 0,
                next: None,
            };
            match run.advance() {
                Ok(()) => iter
                    .heap
                    .extend(run.next.as_ref().map(|next: &T| Reverse((next.key(), number)))),
                Err(error) => iter.failed = Some(error),
            }
            iter.runs.push(run);
        }
        iter
    }
}

/// Iterator over sorted entries.
pub(crate) struct Iter<'a, T: Entry> {
    held: std::slice::Iter<'a, T>,
    runs: Vec<Run<'a, T>>,
    heap: BinaryHeap<Reverse<(T::Key, usize)>>,
    failed: Option<io::Error>,
}

impl<T: Entry> Iterator for Iter<'_, T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            self.heap.clear();
            return Some(Err(error));
        }
        if self.runs.is_empty() {
            return self.held.next().cloned().map(Ok);
        }
        let mut top = self.heap.peek_mut()?;
        let number = top.0.1;
        let run = &mut self.runs[number];
        let entry = run.next.take()?;
        match run.advance() {
            Ok(()) => match &run.next {
                Some(next) => *top = Reverse((next.key(), number)),
                None => drop(std::collections::binary_heap::PeekMut::pop(top)),
            },
            Err(error) => {
                drop(top);
                self.failed = Some(error);
            }
        }
        Some(Ok(entry))
    }
}

/// Creates an unnamed file in the directory `place`; nothing remains of it when this process ends.
pub(super) fn nameless(place: &Path) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = place.join(format!(".roctop-sort-{}-{number}.tmp", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// The error when such a file cannot be written.
pub(super) fn no_room(place: &Path, error: &io::Error) -> io::Error {
    let place = place.display();
    io::Error::new(error.kind(), format!("sorting needs room in {place}: {error}"))
}

/// An unnamed file of sorted runs.
struct Spill {
    file: File,
    end: u64,
    runs: Vec<Range<u64>>,
}

impl Spill {
    fn create(place: &Path) -> io::Result<Self> {
        Ok(Self {
            file: nameless(place)?,
            end: 0,
            runs: Vec::new(),
        })
    }

    fn write<T: Entry>(&mut self, entries: &[T]) -> io::Result<()> {
        let start = self.end;
        let mut block = Vec::with_capacity(BLOCK_BYTES + 4096);
        for entry in entries {
            block = postcard::to_extend(entry, block).map_err(io::Error::other)?;
            if block.len() >= BLOCK_BYTES {
                self.flush(&block)?;
                block.clear();
            }
        }
        if !block.is_empty() {
            self.flush(&block)?;
        }
        self.runs.push(start..self.end);
        Ok(())
    }

    fn flush(&mut self, block: &[u8]) -> io::Result<()> {
        let packed = lz4_flex::block::compress(block);
        let mut head = Vec::with_capacity(8 + packed.len());
        head.extend_from_slice(&(block.len() as u32).to_le_bytes());
        head.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        head.extend_from_slice(&packed);
        (&self.file).write_all(&head)?;
        self.end += head.len() as u64;
        Ok(())
    }
}

/// Reader of one run.
struct Run<'a, T> {
    file: &'a File,
    at: u64,
    end: u64,
    block: Vec<u8>,
    used: usize,
    next: Option<T>,
}

impl<T: Entry> Run<'_, T> {
    fn advance(&mut self) -> io::Result<()> {
        if self.used == self.block.len() {
            if self.at >= self.end {
                self.next = None;
                return Ok(());
            }
            let mut head = [0u8; 8];
            self.file.read_exact_at(&mut head, self.at)?;
            let size = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
            let mut packed = vec![0u8; size(4)];
            self.file.read_exact_at(&mut packed, self.at + 8)?;
            self.block = lz4_flex::block::decompress(&packed, size(0)).map_err(io::Error::other)?;
            self.used = 0;
            self.at += 8 + packed.len() as u64;
        }
        let (entry, rest) = postcard::take_from_bytes(&self.block[self.used..]).map_err(io::Error::other)?;
        self.used = self.block.len() - rest.len();
        self.next = Some(entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

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
        let place = std::env::temp_dir();
        for (count, bytes) in [(0, 1 << 20), (10, 1 << 20), (16, 1), (50_000, 64 << 10)] {
            let mut sorter = Sorter::new(&place, bytes);
            mixed(count).for_each(|pair| sorter.put(pair).unwrap());
            let sorted = sorter.finish().unwrap();
            let mut expected: Vec<Pair> = mixed(count).collect();
            expected.sort_by_key(Pair::key);
            assert_eq!((sorted.len(), sorted.is_empty()), (count, count == 0));
            for _ in 0..2 {
                let found: Vec<Pair> = sorted.iter().map(Result::unwrap).collect();
                assert!(found == expected, "{count} entries");
            }
        }
    }

    #[test]
    fn an_unwritable_directory_is_an_error() {
        let mut sorter = Sorter::new(Path::new("/proc/nowhere"), 16);
        let failed = mixed(100).try_for_each(|pair| sorter.put(pair));
        assert!(failed.is_err());
    }
}
