//! One file of a recording, read block by block. Damage is counted, and reading continues at the next intact block.

use super::block::{self, HEADER, Head, Kind, MAGIC};
use super::index::{self, Entry};
use super::payload;
use super::reader::Replay;
use crate::error::Error;
use crate::in_order::in_order;
use roctop_trace::decode::Plain;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Size of the footer block that ends a segment, bytes.
const FOOTER_BYTES: u64 = HEADER as u64 + 8;

/// An open file of blocks.
pub(super) struct File {
    file: std::fs::File,
    /// File size, bytes.
    size: u64,
}

/// What is passed on of a block.
pub(super) enum Content {
    Payload(Vec<u8>),
    /// Records that the thread that read them has decoded.
    Plain(Plain),
}

/// Work on a block by the thread that reads it.
pub(super) type Prepare<'a> = dyn Fn(Head, Vec<u8>) -> Content + Sync + 'a;

/// What is at an offset of a file.
enum Found {
    Whole(Head, Content),
    /// A block that was skipped without reading it.
    Unwanted,
    /// Unreadable bytes up to the next intact header.
    Damaged,
}

/// Whether a block is wanted, by its entry in the index.
pub(super) type Want<'a> = dyn Fn(&Entry) -> bool + Sync + 'a;

/// How blocks are read.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    /// Number of threads for blocks of the index.
    pub(super) threads: usize,
    pub(super) want: &'a Want<'a>,
    pub(super) prepare: &'a Prepare<'a>,
}

/// Position in a file, and what is done with its blocks.
struct Walk<'a> {
    file: &'a File,
    known: &'a BTreeMap<u64, Entry>,
    reading: Reading<'a>,
    read: &'a mut dyn FnMut(u64),
    replay: &'a mut Replay,
    visitor: &'a mut dyn FnMut(u64, Head, Content),
    /// Offsets of intact blocks.
    seen: BTreeSet<u64>,
    at: u64,
    /// Whether the bytes before are damaged.
    is_damage: bool,
}

impl Walk<'_> {
    /// Takes everything before an offset.
    fn reach(&mut self, offset: u64) -> io::Result<()> {
        while self.at < offset {
            let (found, next) = self.file.at(self.at, self.known.get(&self.at), self.reading)?;
            self.take(found, next);
        }
        Ok(())
    }

    /// Takes what is at this offset, up to the next one.
    fn take(&mut self, found: Found, next: u64) {
        let was_damage = std::mem::replace(&mut self.is_damage, matches!(found, Found::Damaged));
        match found {
            Found::Damaged => {
                self.replay.damaged += u64::from(!was_damage);
                self.replay.damaged_bytes += next - self.at;
            }
            Found::Unwanted => drop(self.seen.insert(self.at)),
            Found::Whole(head, content) => {
                self.seen.insert(self.at);
                let payload = match &content {
                    Content::Payload(payload) => payload.as_slice(),
                    Content::Plain(_) => &[],
                };
                self.replay.take(head.kind, payload);
                (self.visitor)(self.at, head, content);
            }
        }
        (self.read)(next - self.at);
        self.at = next;
    }
}

impl File {
    /// Opens a file of blocks.
    ///
    /// Errors: it cannot be opened, or is not a regular file.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let facts = path.metadata().map_err(Error::io("cannot open", path))?;
        // Opening a pipe would block.
        if !facts.is_file() {
            return Err(Error::NotAFile(path.to_owned()));
        }
        Ok(Self {
            file: std::fs::File::open(path).map_err(Error::io("cannot open", path))?,
            size: facts.len(),
        })
    }

    /// Index of a complete segment; `None` if it is missing or damaged.
    pub(super) fn index(&self) -> io::Result<Option<Vec<Entry>>> {
        let Some(at) = self.size.checked_sub(FOOTER_BYTES) else {
            return Ok(None);
        };
        let Some((_, footer)) = self.block(at)?.filter(|(head, _)| head.kind == Kind::FOOTER) else {
            return Ok(None);
        };
        let offset = payload::words(&footer).first().copied().unwrap_or(u64::MAX);
        let found = self.block(offset)?.filter(|(head, _)| head.kind == Kind::INDEX);
        Ok(found.map(|(_, payload)| index::decode(&payload::words(&payload))))
    }

    /// Passes offset, header and content of each wanted block to `visitor`, in the order of the file. Blocks of the index
    /// are read, decompressed and prepared on several threads. Counts go to `replay`; `read` receives the number of bytes
    /// that are done, in steps.
    pub(super) fn visit(
        &self,
        reading: Reading<'_>,
        read: &mut dyn FnMut(u64),
        replay: &mut Replay,
        visitor: &mut dyn FnMut(u64, Head, Content),
    ) -> io::Result<()> {
        let index = self.index()?;
        let damaged_before = replay.damaged;
        let known: BTreeMap<u64, Entry> = index.iter().flatten().map(|entry| (entry.offset, *entry)).collect();
        let wanted = known.values().filter(|entry| (reading.want)(entry)).copied();
        let mut walk = Walk {
            file: self,
            known: &known,
            reading,
            read,
            replay,
            visitor,
            seen: BTreeSet::new(),
            at: 0,
            is_damage: false,
        };
        let find = |entry: Entry| io::Result::Ok((entry.offset, self.at(entry.offset, Some(&entry), reading)?));
        in_order(reading.threads, wanted, find, |(offset, (found, next))| {
            walk.reach(offset)?;
            // A damaged block before it may have hidden it.
            if walk.at == offset {
                walk.take(found, next);
            }
            Ok(())
        })?;
        walk.reach(self.size)?;
        let missing = known.values().filter(|entry| !walk.seen.contains(&entry.offset));
        walk.replay.missing += missing.map(|entry| u64::from(entry.records)).sum::<u64>();
        walk.replay.is_uncounted |= index.is_none() && walk.replay.damaged > damaged_before;
        Ok(())
    }

    /// What is at offset `at`, which the index describes as `known`, and the offset after it.
    fn at(&self, at: u64, known: Option<&Entry>, reading: Reading<'_>) -> io::Result<(Found, u64)> {
        // For an unwanted block, the index entry is enough.
        if let Some(entry) = known
            && !(reading.want)(entry)
        {
            let next = at.saturating_add(HEADER as u64 + u64::from(entry.stored));
            return Ok((Found::Unwanted, next.min(self.size)));
        }
        if let Some(head) = self.head(at)? {
            let next = at + HEADER as u64 + u64::from(head.stored_length);
            if !(reading.want)(&known.copied().unwrap_or_else(|| Entry::unknown(at, head))) {
                return Ok((Found::Unwanted, next));
            }
            if let Some(payload) = self.payload(at, head)? {
                return Ok((Found::Whole(head, (reading.prepare)(head, payload)), next));
            }
        }
        Ok((Found::Damaged, self.next_magic(at + 1)?))
    }

    /// Offset of a partially written last block, if nothing follows it.
    pub(super) fn torn_at(&self) -> io::Result<Option<u64>> {
        let mut at = 0;
        while at < self.size {
            let Some(head) = self.head(at)? else {
                return Ok((self.next_magic(at + 1)? == self.size).then_some(at));
            };
            at += HEADER as u64 + u64::from(head.stored_length);
        }
        Ok(None)
    }

    /// Block at an offset; `None` if it is not intact.
    pub(super) fn block(&self, at: u64) -> io::Result<Option<(Head, Vec<u8>)>> {
        let Some(head) = self.head(at)? else {
            return Ok(None);
        };
        Ok(self.payload(at, head)?.map(|payload| (head, payload)))
    }

    /// The first whole block from a place on, and where it is; none while there is no further one.
    pub(super) fn next_block(&self, from: u64) -> io::Result<Option<(u64, Head, Vec<u8>)>> {
        let mut at = from;
        while at < self.size {
            if let Some((head, payload)) = self.block(at)? {
                return Ok(Some((at, head, payload)));
            }
            at = self.next_magic(at + 1)?;
        }
        Ok(None)
    }

    /// Header at an offset; `None` if it is invalid, or if its block exceeds the file.
    fn head(&self, at: u64) -> io::Result<Option<Head>> {
        if at >= self.size {
            return Ok(None);
        }
        let mut head = [0u8; HEADER];
        let got = self.read_full(at, &mut head)?;
        let fits = |head: &Head| at + (HEADER as u64) + u64::from(head.stored_length) <= self.size;
        Ok(Head::decode(&head[..got]).filter(fits))
    }

    /// Payload of the block at an offset; `None` if it is damaged.
    fn payload(&self, at: u64, head: Head) -> io::Result<Option<Vec<u8>>> {
        let mut stored = vec![0u8; head.stored_length as usize];
        self.read_full(at + HEADER as u64, &mut stored)?;
        Ok(block::payload(head, &stored))
    }

    /// Offset of the next block magic at or after `from`; the file size if there is none.
    fn next_magic(&self, from: u64) -> io::Result<u64> {
        let mut at = from;
        let mut window = vec![0u8; 64 << 10];
        while at < self.size {
            let got = self.read_full(at, &mut window)?;
            if let Some(found) = window[..got].windows(4).position(|bytes| bytes == MAGIC.to_le_bytes()) {
                return Ok(at + found as u64);
            }
            at += (got as u64).saturating_sub(3).max(1);
        }
        Ok(self.size)
    }

    fn read_full(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut got = 0;
        while got < into.len() {
            match self.file.read_at(&mut into[got..], offset + got as u64)? {
                0 => break,
                count => got += count,
            }
        }
        Ok(got)
    }
}
