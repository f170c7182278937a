//! Small numbers by large ones, in a nameless file: what is kept of them in memory does not grow.

use super::sort::{nameless, no_room};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Numbers that are read at once.
const PAGE: usize = 4096;
/// Pages that are kept once they were read.
const CACHED_PAGES: usize = 512;

/// Numbers by place; 0 where none was put.
#[derive(Default)]
pub(super) struct Numbers {
    file: Option<File>,
    /// The place after the last one.
    end: u64,
    read: RefCell<Read>,
}

#[derive(Default)]
struct Read {
    pages: HashMap<u64, Vec<u32>>,
    order: VecDeque<u64>,
    failed: Option<io::Error>,
}

impl Numbers {
    /// Numbers with their places, which only rise; of several at one place the last counts.
    ///
    /// Errors: there is no room in the directory `place`.
    pub(super) fn new(place: &Path, numbers: impl Iterator<Item = io::Result<(u64, u32)>>) -> io::Result<Self> {
        let mut numbers = numbers.peekable();
        if numbers.peek().is_none() {
            return Ok(Self::default());
        }
        let told = |error: io::Error| no_room(place, &error);
        let mut file = BufWriter::new(nameless(place).map_err(told)?);
        let mut next = 0;
        while let Some(one) = numbers.next() {
            let (at, number) = one?;
            let follows = numbers.peek().and_then(|next| next.as_ref().ok());
            if at < next || follows.is_some_and(|follows| follows.0 == at) {
                continue;
            }
            // A hole in a file takes no room.
            if at > next {
                file.seek(SeekFrom::Start(at.saturating_mul(4))).map_err(told)?;
            }
            file.write_all(&number.to_le_bytes()).map_err(told)?;
            next = at + 1;
        }
        let file = file.into_inner().map_err(|error| told(error.into_error()))?;
        Ok(Self {
            file: Some(file),
            end: next,
            read: RefCell::default(),
        })
    }

    /// The number at a place. What cannot be read is told by [`Numbers::check`].
    pub(super) fn get(&self, at: u64) -> u32 {
        let Some(file) = self.file.as_ref().filter(|_| at < self.end) else {
            return 0;
        };
        let (page, within) = (at / PAGE as u64, (at % PAGE as u64) as usize);
        let mut read = self.read.borrow_mut();
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

    /// Whether all that was asked for could be read.
    ///
    /// Errors: it could not.
    pub(super) fn check(&self) -> io::Result<()> {
        self.read.borrow_mut().failed.take().map_or(Ok(()), Err)
    }
}

/// A page's numbers; fewer at the end of the file.
fn read_page(file: &File, page: u64) -> io::Result<Vec<u32>> {
    let mut bytes = vec![0u8; PAGE * 4];
    let mut got = 0;
    while let Some(rest) = bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, page * PAGE as u64 * 4 + got as u64)? {
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

    #[test]
    fn numbers_come_back_from_wherever_they_are() {
        let put = |at: u64| (at, (at as u32).wrapping_mul(3) | 1);
        let places = (5..20_000u64).step_by(3).chain([9_000_000]);
        let numbers = Numbers::new(&std::env::temp_dir(), places.clone().map(put).map(Ok)).unwrap();
        for at in places {
            assert_eq!(numbers.get(at), put(at).1);
        }
        assert_eq!([0, 6, 8_999_999, 9_000_001, u64::MAX].map(|at| numbers.get(at)), [0; 5]);
        numbers.check().unwrap();
        let last = Numbers::new(&std::env::temp_dir(), [(4, 1), (4, 2)].into_iter().map(Ok)).unwrap();
        assert_eq!((last.get(4), last.get(3)), (2, 0));
        assert_eq!(Numbers::default().get(3), 0);
    }
}
