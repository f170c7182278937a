//! The files of a recording while they are written: one of what must stay, and segments of records, the oldest of which
//! may go.

use super::block::{self, Kind, Owner};
use super::index::{self, Entry, Times};
use super::payload;
use super::{FACTS, SEGMENT};
use crate::error::{Error, Result};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A segment ends when it is this long, bytes.
const SEGMENT_BYTES: u64 = 256 << 20;
/// Or when it has so many blocks: an index has to fit into one.
const MAX_BLOCKS: usize = 1 << 19;
/// A recording with a limit has this many segments at least, so that little goes at once.
const SEGMENTS: u64 = 8;

/// Records of each thread.
type Counts = BTreeMap<(u32, u32, u32), u64>;

/// Bytes that are handed to the system at once, about.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// A file being written. What the system does not take stays here, so that a disk that was full for a while leaves no
/// hole and no half of a block.
struct Growing {
    file: File,
    held: Vec<u8>,
    path: PathBuf,
    bytes: u64,
}

impl Growing {
    fn create(path: PathBuf) -> Result<Self> {
        let file = File::create_new(&path).map_err(Error::io("cannot make", &path))?;
        Ok(Self {
            file,
            held: Vec::with_capacity(WRITE_BUFFER_BYTES),
            path,
            bytes: 0,
        })
    }

    /// Whether the system gets what is held before these bytes can be taken.
    fn is_full_for(&self, bytes: &[u8]) -> bool {
        self.held.len() + bytes.len() > WRITE_BUFFER_BYTES
    }

    /// Takes the bytes, or none of them when there is no room.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_full_for(bytes) {
            self.flush()?;
        }
        self.put(bytes);
        Ok(())
    }

    /// Takes the bytes, room or not.
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

impl Drop for Growing {
    fn drop(&mut self) {
        // Who wants to know has flushed.
        let _ = self.flush();
    }
}

/// A segment that is whole.
struct Done {
    path: PathBuf,
    bytes: u64,
    counts: Counts,
    ends: Vec<(Owner, Vec<u8>)>,
}

/// All files of a recording being written.
pub(super) struct Segments {
    directory: PathBuf,
    facts: Growing,
    current: Growing,
    number: u32,
    index: Vec<Entry>,
    counts: Counts,
    ends: Vec<(Owner, Vec<u8>)>,
    done: VecDeque<Done>,
    segment_bytes: u64,
    most: Option<u64>,
    /// The current segment has its index; the next could not be made yet.
    is_ended: bool,
}

impl Segments {
    /// Makes the first files; `number` is the first segment's.
    pub(super) fn create(directory: &Path, number: u32) -> Result<Self> {
        let facts = if number == 1 {
            directory.join(format!("{FACTS}.{SEGMENT}"))
        } else {
            directory.join(format!("{FACTS}-{number:06}.{SEGMENT}"))
        };
        Ok(Self {
            directory: directory.to_owned(),
            facts: Growing::create(facts)?,
            current: Growing::create(path(directory, number))?,
            number,
            index: Vec::new(),
            counts: Counts::new(),
            ends: Vec::new(),
            done: VecDeque::new(),
            segment_bytes: SEGMENT_BYTES,
            most: None,
            is_ended: false,
        })
    }

    /// Keeps so many bytes of segments, about; the oldest go first.
    pub(super) fn limit(&mut self, most: u64) {
        self.most = Some(most);
        self.segment_bytes = (most / SEGMENTS).clamp(1 << 16, SEGMENT_BYTES);
    }

    /// Writes a block where its kind belongs. After an error nothing of it was taken, and it may be tried again.
    pub(super) fn write(&mut self, kind: Kind, owner: Owner, payload: &[u8]) -> io::Result<()> {
        let bytes = block::encode(kind, owner, payload);
        if kind.stays() {
            return self.facts.write(&bytes);
        }
        if self.is_ended {
            self.rotate()?;
        }
        if self.current.is_full_for(&bytes) {
            // Records name facts: after a kill there must be no record on disk whose process is not.
            self.facts.flush()?;
        }
        let offset = self.current.bytes;
        self.current.write(&bytes)?;
        let (times, records) = if kind == Kind::RECORDS {
            Times::of(payload::slots(&payload::words(payload)))
        } else {
            (Times::default(), 0)
        };
        if kind == Kind::ENDED {
            self.ends.push((owner, payload.to_vec()));
        }
        self.index.push(Entry {
            offset,
            stored: (bytes.len() - block::HEADER) as u32,
            kind,
            owner,
            records,
            times,
        });
        if records > 0 {
            let key = (owner.process, owner.thread, owner.tid);
            *self.counts.entry(key).or_default() += u64::from(records);
        }
        if self.current.bytes >= self.segment_bytes || self.index.len() >= MAX_BLOCKS {
            // The block is in; what goes wrong now goes wrong for the next one.
            let _ = self.rotate();
        }
        Ok(())
    }

    /// Hands everything to the system: from now on it survives this process.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        // Records name facts.
        self.facts.flush()?;
        self.current.flush()
    }

    /// Ends the current segment with its index.
    pub(super) fn end(&mut self) -> io::Result<()> {
        if !self.is_ended {
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
        let next = Growing::create(path(&self.directory, self.number + 1)).map_err(io::Error::other)?;
        self.number += 1;
        self.is_ended = false;
        let mut done = std::mem::replace(&mut self.current, next);
        self.done.push_back(Done {
            path: std::mem::take(&mut done.path),
            bytes: done.bytes,
            counts: std::mem::take(&mut self.counts),
            ends: std::mem::take(&mut self.ends),
        });
        let Some(most) = self.most else { return Ok(()) };
        while self.done.iter().map(|done| done.bytes).sum::<u64>() + self.segment_bytes > most
            && let Some(oldest) = self.done.pop_front()
        {
            self.drop_segment(oldest)?;
        }
        Ok(())
    }

    /// Removes a segment; what was in it is counted first, so that a crash in between counts too much, not too little.
    fn drop_segment(&mut self, oldest: Done) -> io::Result<()> {
        for ((process, thread, tid), records) in oldest.counts {
            let owner = Owner { process, thread, tid };
            self.write(Kind::DROPPED, owner, &records.to_le_bytes())?;
        }
        self.flush()?;
        std::fs::remove_file(&oldest.path)?;
        // How a process ended is said again.
        for (owner, payload) in oldest.ends {
            self.write(Kind::ENDED, owner, &payload)?;
        }
        Ok(())
    }
}

/// A segment's file.
pub(super) fn path(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("segment-{number:06}.{SEGMENT}"))
}
