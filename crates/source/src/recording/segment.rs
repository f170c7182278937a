//! Files of a recording during writing: one file of facts, which is never removed, and segments of records, the oldest
//! of which may be removed.

use super::block::{self, Kind, Owner};
use super::contents::{self, Contents};
use super::index::{self, Entry, Times};
use super::{FACTS, SEGMENT};
use crate::error::{Error, Result};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Size at which a segment ends, bytes.
const SEGMENT_BYTES: u64 = 256 << 20;
/// Number of blocks at which a segment ends, because its index must fit into one block.
const MAX_BLOCKS: usize = 1 << 19;
/// Number of blocks of records after which their contents are written.
const DESCRIBED_TOGETHER: usize = 64;
/// Minimum number of segments of a size-limited recording, so that little is removed at once.
const MIN_SEGMENTS: u64 = 8;

/// Records by process, ring and thread.
type Counts = BTreeMap<(u32, u32, u32), u64>;

/// Approximate number of bytes per write.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// A file being written. Bytes that the kernel does not accept stay in the buffer, so that a disk that was full for a
/// while leaves neither a hole nor half a block.
struct BufferedFile {
    file: File,
    held: Vec<u8>,
    path: PathBuf,
    bytes: u64,
}

impl BufferedFile {
    fn create(path: PathBuf) -> Result<Self> {
        let file = File::create_new(&path).map_err(Error::io("cannot make", &path))?;
        Ok(Self {
            file,
            held: Vec::with_capacity(WRITE_BUFFER_BYTES),
            path,
            bytes: 0,
        })
    }

    /// Whether the buffer must be flushed before these bytes fit.
    fn is_full_for(&self, bytes: &[u8]) -> bool {
        self.held.len() + bytes.len() > WRITE_BUFFER_BYTES
    }

    /// Appends the bytes, or none of them if there is no space.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_full_for(bytes) {
            self.flush()?;
        }
        self.put(bytes);
        Ok(())
    }

    /// Appends the bytes unconditionally.
    fn put(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn flush(&mut self) -> io::Result<()> {
        let (mut done, mut written) = (0, Ok(()));
        while let Some(rest) = self.held.get(done..).filter(|rest| !rest.is_empty() && written.is_ok()) {
            match self.file.write(rest) {
                Ok(0) => written = Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => written = Err(error),
            }
        }
        self.held.drain(..done);
        written
    }
}

impl Drop for BufferedFile {
    fn drop(&mut self) {
        // Callers that need the result have flushed already.
        let _ = self.flush();
    }
}

/// A complete segment.
struct CompleteSegment {
    path: PathBuf,
    bytes: u64,
    counts: Counts,
    ends: Vec<(Owner, Vec<u8>)>,
}

/// All files of a recording being written.
pub(super) struct Segments {
    directory: PathBuf,
    facts: BufferedFile,
    current: BufferedFile,
    number: u32,
    index: Vec<Entry>,
    /// Contents of blocks by their offset, which are not written yet.
    contents: Vec<(u64, Contents)>,
    counts: Counts,
    ends: Vec<(Owner, Vec<u8>)>,
    done: VecDeque<CompleteSegment>,
    segment_bytes: u64,
    max_bytes: Option<u64>,
    /// The current segment has its index, but the next one could not be created yet.
    is_ended: bool,
}

impl Segments {
    /// Creates the first files; `number` is the first segment's.
    pub(super) fn create(directory: &Path, number: u32) -> Result<Self> {
        let facts = if number == 1 {
            directory.join(format!("{FACTS}.{SEGMENT}"))
        } else {
            directory.join(format!("{FACTS}-{number:06}.{SEGMENT}"))
        };
        Ok(Self {
            directory: directory.to_owned(),
            facts: BufferedFile::create(facts)?,
            current: BufferedFile::create(path(directory, number))?,
            number,
            index: Vec::new(),
            contents: Vec::new(),
            counts: Counts::new(),
            ends: Vec::new(),
            done: VecDeque::new(),
            segment_bytes: SEGMENT_BYTES,
            max_bytes: None,
            is_ended: false,
        })
    }

    /// Limits the size of all segments to about `max_bytes`; the oldest are removed first.
    pub(super) fn limit(&mut self, max_bytes: u64) {
        self.max_bytes = Some(max_bytes);
        self.segment_bytes = (max_bytes / MIN_SEGMENTS).clamp(1 << 16, SEGMENT_BYTES);
    }

    /// Writes a block without records to the file of its kind. After an error nothing was written, and the call may be
    /// repeated.
    pub(super) fn write(&mut self, kind: Kind, owner: Owner, payload: &[u8]) -> io::Result<()> {
        let bytes = block::encode(kind, owner, payload);
        self.append(kind, owner, &bytes, (Times::default(), 0), None)?;
        if kind == Kind::ENDED {
            self.ends.push((owner, payload.to_vec()));
        }
        Ok(())
    }

    /// As [`Segments::write`], for an encoded block with the times and the number of its records, and their contents if these
    /// are known.
    pub(super) fn append(
        &mut self,
        kind: Kind,
        owner: Owner,
        bytes: &[u8],
        content: (Times, u32),
        contents: Option<Contents>,
    ) -> io::Result<()> {
        if kind.stays() {
            return self.facts.write(bytes);
        }
        if self.is_ended {
            self.rotate()?;
        }
        if self.current.is_full_for(bytes) {
            // Records refer to facts: after a kill, no record on disk may lack its process.
            self.facts.flush()?;
        }
        let offset = self.current.bytes;
        self.current.write(bytes)?;
        self.list(kind, owner, offset, content);
        let records = content.1;
        if records > 0 {
            let key = (owner.process, owner.thread, owner.tid);
            *self.counts.entry(key).or_default() += u64::from(records);
        }
        self.contents.extend(contents.map(|contents| (offset, contents)));
        if self.contents.len() >= DESCRIBED_TOGETHER {
            // Without room nothing describes these blocks: a reader reads them.
            let bytes = self.description();
            let offset = self.current.bytes;
            if self.current.write(&bytes).is_ok() {
                self.list(Kind::CONTENTS, Owner::default(), offset, (Times::default(), 0));
            }
        }
        if self.current.bytes >= self.segment_bytes || self.index.len() >= MAX_BLOCKS {
            // The block is written; an error of the rotation shows at the next write.
            let _ = self.rotate();
        }
        Ok(())
    }

    /// Adds a block to the index that begins at `offset` and ends here.
    fn list(&mut self, kind: Kind, owner: Owner, offset: u64, (times, records): (Times, u32)) {
        let stored = self.current.bytes - offset - block::HEADER as u64;
        self.index.push(Entry {
            offset,
            stored: stored as u32,
            kind,
            owner,
            records,
            times,
        });
    }

    /// A block with the contents of the latest blocks.
    fn description(&mut self) -> Vec<u8> {
        let payload = contents::encode(&std::mem::take(&mut self.contents));
        block::encode(Kind::CONTENTS, Owner::default(), &payload)
    }

    /// Flushes all buffers to the kernel, so that the data survives this process.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        // Records refer to facts, so facts come first.
        self.facts.flush()?;
        self.current.flush()
    }

    /// Ends the current segment with its index.
    pub(super) fn end(&mut self) -> io::Result<()> {
        if !self.is_ended {
            if !self.contents.is_empty() {
                let bytes = self.description();
                let offset = self.current.bytes;
                self.current.put(&bytes);
                self.list(Kind::CONTENTS, Owner::default(), offset, (Times::default(), 0));
            }
            let offset = self.current.bytes;
            let entries = index::encode(&std::mem::take(&mut self.index));
            self.current
                .put(&block::encode(Kind::INDEX, Owner::default(), &entries));
            self.current
                .put(&block::encode(Kind::FOOTER, Owner::default(), &offset.to_le_bytes()));
            self.is_ended = true;
        }
        self.flush()
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.end()?;
        let next = BufferedFile::create(path(&self.directory, self.number + 1)).map_err(io::Error::other)?;
        self.number += 1;
        self.is_ended = false;
        let mut done = std::mem::replace(&mut self.current, next);
        self.done.push_back(CompleteSegment {
            path: std::mem::take(&mut done.path),
            bytes: done.bytes,
            counts: std::mem::take(&mut self.counts),
            ends: std::mem::take(&mut self.ends),
        });
        let Some(max_bytes) = self.max_bytes else { return Ok(()) };
        while self.done.iter().map(|done| done.bytes).sum::<u64>() + self.segment_bytes > max_bytes
            && let Some(oldest) = self.done.pop_front()
        {
            self.drop_segment(oldest)?;
        }
        Ok(())
    }

    /// Removes a segment. Its records are counted first: after a crash in between, too many are counted, not too few.
    fn drop_segment(&mut self, oldest: CompleteSegment) -> io::Result<()> {
        for ((process, thread, tid), records) in oldest.counts {
            let owner = Owner { process, thread, tid };
            self.write(Kind::DROPPED, owner, &records.to_le_bytes())?;
        }
        self.flush()?;
        std::fs::remove_file(&oldest.path)?;
        // The exits in it are written again.
        for (owner, payload) in oldest.ends {
            self.write(Kind::ENDED, owner, &payload)?;
        }
        Ok(())
    }
}

/// Path of a segment.
pub(super) fn path(directory: &Path, number: u32) -> PathBuf {
    directory.join(name(number))
}

/// File name of a segment.
pub(super) fn name(number: u32) -> String {
    format!("segment-{number:06}.{SEGMENT}")
}
