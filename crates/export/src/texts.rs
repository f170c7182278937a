//! Texts of markers and of call arguments. The first ones stay in memory; the others are in an unnamed file, ordered by
//! number, with a small cache that threads share.

use super::sort::{nameless, no_room};
use super::workspace::Workspace;
use roctop_trace::item::TextId;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Size of the first texts, which stay in memory, bytes.
const IN_MEMORY_BYTES: usize = 32 << 20;
/// Size of a block before compression, bytes.
const BLOCK_BYTES: usize = 32 << 10;
/// Size of the cached blocks, bytes.
const CACHE_BYTES: usize = 8 << 20;
/// Memory overhead of a text, bytes.
const TEXT_OVERHEAD: usize = 32;

/// Texts by number.
pub(crate) struct Texts {
    first: Vec<Arc<str>>,
    /// Current and maximum size of the first texts, bytes.
    bytes: usize,
    most: usize,
    /// Number of texts in memory or in a block.
    settled: usize,
    /// Texts not yet in a block.
    last: Vec<Arc<str>>,
    last_bytes: usize,
    blocks: Vec<Block>,
    place: Workspace,
    file: Option<File>,
    end: u64,
    read: Mutex<Read>,
}

/// Consecutive texts, from number `first` on.
#[derive(Clone, Copy)]
struct Block {
    first: usize,
    at: u64,
    packed: usize,
    bytes: usize,
}

/// Cached blocks, oldest first.
#[derive(Default)]
struct Read {
    blocks: HashMap<usize, Vec<Arc<str>>>,
    order: VecDeque<usize>,
    bytes: usize,
    failed: Option<io::Error>,
}

impl Texts {
    /// Empty. Texts beyond the limit go to a file in the directory of `place`.
    pub(super) fn new(place: &Workspace) -> Self {
        Self::keeping(place, IN_MEMORY_BYTES)
    }

    fn keeping(place: &Workspace, most: usize) -> Self {
        Self {
            first: Vec::new(),
            bytes: 0,
            most,
            settled: 0,
            last: Vec::new(),
            last_bytes: 0,
            blocks: Vec::new(),
            place: place.clone(),
            file: None,
            end: 0,
            read: Mutex::default(),
        }
    }

    /// Adds the next text; ignores one whose number is not the next.
    ///
    /// Errors: the file cannot be written.
    pub(super) fn put(&mut self, id: TextId, text: Arc<str>) -> io::Result<()> {
        if id.0 as usize != self.settled + self.last.len() {
            return Ok(());
        }
        if self.file.is_none() && self.last.is_empty() && self.bytes < self.most {
            self.bytes += text.len() + TEXT_OVERHEAD;
            self.first.push(text);
            self.settled += 1;
            return Ok(());
        }
        self.last_bytes += text.len() + TEXT_OVERHEAD;
        self.last.push(text);
        if self.last_bytes >= BLOCK_BYTES {
            self.write_block()
                .map_err(|error| no_room(self.place.directory(), &error))?;
        }
        Ok(())
    }

    fn write_block(&mut self) -> io::Result<()> {
        let mut file = match &self.file {
            Some(file) => file,
            None => self.file.insert(nameless(&self.place)?),
        };
        let bytes = postcard::to_stdvec(&self.last.iter().map(|text| &**text).collect::<Vec<&str>>());
        let bytes = bytes.map_err(io::Error::other)?;
        let packed = lz4_flex::block::compress(&bytes);
        file.write_all(&packed)?;
        self.blocks.push(Block {
            first: self.settled,
            at: self.end,
            packed: packed.len(),
            bytes: bytes.len(),
        });
        self.end += packed.len() as u64;
        self.settled += self.last.len();
        self.last.clear();
        self.last_bytes = 0;
        Ok(())
    }

    /// A text; `None` for an unknown number. Read errors are returned by [`Texts::check`].
    pub(super) fn get(&self, id: TextId) -> Option<Arc<str>> {
        let id = id.0 as usize;
        if let Some(text) = self.first.get(id) {
            return Some(text.clone());
        }
        if let Some(place) = id.checked_sub(self.settled) {
            return self.last.get(place).cloned();
        }
        let number = self.blocks.partition_point(|block| block.first <= id).checked_sub(1)?;
        let block = self.blocks.get(number)?;
        let mut read = self.read();
        if !read.blocks.contains_key(&number) {
            match self.read_block(*block) {
                Ok(texts) => self.keep(&mut read, number, texts),
                Err(error) => {
                    read.failed.get_or_insert(error);
                    return None;
                }
            }
        }
        read.blocks.get(&number)?.get(id - block.first).cloned()
    }

    fn read(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_block(&self, block: Block) -> io::Result<Vec<Arc<str>>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let mut packed = vec![0u8; block.packed];
        file.read_exact_at(&mut packed, block.at)?;
        let bytes = lz4_flex::block::decompress(&packed, block.bytes).map_err(io::Error::other)?;
        let texts: Vec<&str> = postcard::from_bytes(&bytes).map_err(io::Error::other)?;
        Ok(texts.into_iter().map(Arc::from).collect())
    }

    fn keep(&self, read: &mut Read, number: usize, texts: Vec<Arc<str>>) {
        let bytes = |number: usize| self.blocks.get(number).map_or(0, |block| block.bytes);
        while read.bytes + bytes(number) > CACHE_BYTES
            && let Some(oldest) = read.order.pop_front()
        {
            read.blocks.remove(&oldest);
            read.bytes -= bytes(oldest);
        }
        read.bytes += bytes(number);
        read.order.push_back(number);
        read.blocks.insert(number, texts);
    }

    /// Whether all reads succeeded.
    ///
    /// Errors: one failed.
    pub(super) fn check(&self) -> io::Result<()> {
        self.read().failed.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::workspace;
    use std::num::NonZeroUsize;
    use std::path::Path;

    fn text(number: u32) -> String {
        format!("iteration {number}, {}", "x".repeat((number % 50) as usize))
    }

    #[test]
    fn spilled_texts_are_read_back() {
        let mut texts = Texts::keeping(&workspace(1), 4096);
        let count = 300_000;
        for number in 0..count {
            texts.put(TextId(number), text(number).into()).unwrap();
        }
        assert!(texts.first.len() < 200 && texts.blocks.len() > 100);
        let mixed = (0..count).step_by(7).chain((0..count).rev().step_by(101));
        for number in mixed {
            assert_eq!(&*texts.get(TextId(number)).unwrap(), text(number));
        }
        assert!(texts.read().bytes <= CACHE_BYTES);
        assert!(texts.get(TextId(count)).is_none());
        texts.check().unwrap();
    }

    #[test]
    fn a_number_out_of_order_is_ignored() {
        let mut texts = Texts::new(&workspace(1));
        texts.put(TextId(7), "seven".into()).unwrap();
        texts.put(TextId(0), "none".into()).unwrap();
        assert!(texts.get(TextId(7)).is_none());
        assert_eq!(&*texts.get(TextId(0)).unwrap(), "none");
    }

    #[test]
    fn an_unwritable_directory_is_an_error() {
        let mut texts = Texts::keeping(&Workspace::new(Path::new("/proc/nowhere"), NonZeroUsize::MIN, 0), 0);
        let failed = (0..10_000).try_for_each(|number| texts.put(TextId(number), text(number).into()));
        assert!(failed.unwrap_err().to_string().contains("needs room in /proc/nowhere"));
    }
}
