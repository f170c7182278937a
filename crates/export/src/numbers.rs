//! A map from large to small numbers in an unnamed file, with bounded memory.

use super::sort::{nameless, no_room};
use super::workspace::Workspace;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// Numbers per page.
const PAGE_NUMBERS: usize = 4096;
/// Caches of pages, by the page's last bits: threads that read different pages rarely wait for each other.
const CACHES: usize = 32;
/// Number of pages in each.
const CACHED_PAGES: usize = 16;

/// Numbers by index; 0 where none was stored.
#[derive(Default)]
pub(super) struct Numbers {
    file: Option<File>,
    /// One more than the last index.
    end: u64,
    read: [Mutex<Read>; CACHES],
}

#[derive(Default)]
struct Read {
    pages: HashMap<u64, Vec<u32>>,
    order: VecDeque<u64>,
    failed: Option<io::Error>,
}

impl Numbers {
    /// Stores numbers with ascending indexes; the last of several at one index counts.
    ///
    /// Errors: the directory of `place` is full.
    pub(super) fn new(place: &Workspace, numbers: impl Iterator<Item = io::Result<(u64, u32)>>) -> io::Result<Self> {
        let mut numbers = numbers.peekable();
        if numbers.peek().is_none() {
            return Ok(Self::default());
        }
        let error_in_place = |error: io::Error| no_room(place.directory(), &error);
        let mut file = BufWriter::new(nameless(place).map_err(error_in_place)?);
        let mut next = 0;
        while let Some(one) = numbers.next() {
            let (at, number) = one?;
            let follows = numbers.peek().and_then(|next| next.as_ref().ok());
            if at < next || follows.is_some_and(|follows| follows.0 == at) {
                continue;
            }
            // A hole in a file takes no space.
            if at > next {
                file.seek(SeekFrom::Start(at.saturating_mul(4)))
                    .map_err(error_in_place)?;
            }
            file.write_all(&number.to_le_bytes()).map_err(error_in_place)?;
            next = at + 1;
        }
        let file = file.into_inner().map_err(|error| error_in_place(error.into_error()))?;
        Ok(Self {
            file: Some(file),
            end: next,
            read: Default::default(),
        })
    }

    /// Number at an index. Read errors are returned by [`Numbers::check`].
    pub(super) fn get(&self, at: u64) -> u32 {
        let Some(file) = self.file.as_ref().filter(|_| at < self.end) else {
            return 0;
        };
        let (page, within) = (at / PAGE_NUMBERS as u64, (at % PAGE_NUMBERS as u64) as usize);
        let cache = &self.read[page as usize % CACHES];
        let mut read = cache.lock().unwrap_or_else(PoisonError::into_inner);
        if !read.pages.contains_key(&page) {
            match read_page(file, page) {
                Ok(numbers) => {
                    if read.order.len() >= CACHED_PAGES
                        && let Some(oldest) = read.order.pop_front()
                    {
                        read.pages.remove(&oldest);
                    }
                    read.order.push_back(page);
                    read.pages.insert(page, numbers);
                }
                Err(error) => {
                    read.failed.get_or_insert(error);
                    return 0;
                }
            }
        }
        let numbers = read.pages.get(&page);
        numbers.and_then(|numbers| numbers.get(within)).copied().unwrap_or(0)
    }

    /// Whether all reads succeeded.
    ///
    /// Errors: one failed.
    pub(super) fn check(&self) -> io::Result<()> {
        self.read.iter().try_for_each(|cache| {
            let mut read = cache.lock().unwrap_or_else(PoisonError::into_inner);
            read.failed.take().map_or(Ok(()), Err)
        })
    }
}

/// Reads the numbers of a page; fewer at the end of the file.
fn read_page(file: &File, page: u64) -> io::Result<Vec<u32>> {
    let mut bytes = vec![0u8; PAGE_NUMBERS * 4];
    let mut got = 0;
    while let Some(rest) = bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, page * PAGE_NUMBERS as u64 * 4 + got as u64)? {
            0 => break,
            count => got += count,
        }
    }
    let words = bytes[..got].as_chunks::<4>().0.iter();
    Ok(words.map(|word| u32::from_le_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::workspace;

    #[test]
    fn numbers_are_read_from_any_page() {
        let put = |at: u64| (at, (at as u32).wrapping_mul(3) | 1);
        let places = (5..20_000u64).step_by(3).chain([9_000_000]);
        let numbers = Numbers::new(&workspace(1), places.clone().map(put).map(Ok)).unwrap();
        for at in places {
            assert_eq!(numbers.get(at), put(at).1);
        }
        assert_eq!([0, 6, 8_999_999, 9_000_001, u64::MAX].map(|at| numbers.get(at)), [0; 5]);
        numbers.check().unwrap();
        let last = Numbers::new(&workspace(1), [(4, 1), (4, 2)].into_iter().map(Ok)).unwrap();
        assert_eq!((last.get(4), last.get(3)), (2, 0));
        assert_eq!(Numbers::default().get(3), 0);
    }
}
