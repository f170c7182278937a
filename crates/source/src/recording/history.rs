//! A stretch of time of a recording, read again and again, also while the recording is being written.
//!
//! What is known of the blocks stays in memory, so that only blocks that touch the stretch are read. A segment that is
//! being written has no index yet: its blocks are looked through once.

use super::block::{self, Head, Kind};
use super::file::File;
use super::index::{Entry, Times};
use super::merged::ShiftedSink;
use super::payload;
use super::reader::Recording;
use crate::error::{Error, Result};
use roctop_trace::clock::Clock;
use roctop_trace::item::{Nanos, ProcessId, Span};
use roctop_trace::raw::RawSink;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a recording is written, for readers in the same process.
#[derive(Debug, Default)]
pub struct Written {
    /// Everything up to this time can be read, CLOCK_BOOTTIME ns.
    until: AtomicU64,
    /// Records that found no room.
    missing: AtomicU64,
}

impl Written {
    /// Everything that was delivered up to here can be read.
    pub fn until(&self) -> Nanos {
        self.until.load(Ordering::Acquire)
    }

    pub(super) fn reaches(&self, at: Nanos) {
        self.until.fetch_max(at, Ordering::Release);
    }

    pub(super) fn misses(&self, records: u64) {
        self.missing.fetch_add(records, Ordering::Relaxed);
    }
}

/// What reading a stretch came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All records of the stretch were delivered.
    Whole,
    /// Nobody wants it any more.
    Cancelled,
    /// Records are missing, and why.
    Incomplete(Gap),
}

/// Why records of a stretch are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Number of damaged blocks.
    Damaged(u64),
    /// The recording has dropped its oldest records.
    Dropped,
    /// Number of records that found no space on the disk.
    NoRoom(u64),
}

impl std::fmt::Display for Gap {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged(1) => write!(out, "the recording is damaged here"),
            Self::Damaged(blocks) => write!(out, "the recording is damaged here ({blocks} blocks)"),
            Self::Dropped => write!(out, "the recording has dropped this time to keep its size"),
            Self::NoRoom(records) => write!(out, "the disk was full: the recording lacks {records} records"),
        }
    }
}

/// Recordings whose past is read.
pub struct History {
    parts: Vec<Part>,
    files: HashMap<PathBuf, Known>,
    written: Option<Arc<Written>>,
}

/// A recording among several: its path, and how many processes are before it.
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) first: u32,
}

/// What is known of a segment.
#[derive(Default)]
struct Known {
    entries: Vec<Entry>,
    /// Up to here it was looked through.
    until: u64,
    /// It has its index: nothing will come.
    is_complete: bool,
    /// Stretches that are no blocks.
    damaged: u64,
    /// When everything that earlier segments have had been delivered.
    since: Option<Nanos>,
}

impl History {
    /// Of a recording that is being written.
    pub fn of_written(path: PathBuf, written: Arc<Written>) -> Self {
        Self {
            written: Some(written),
            ..Self::of(vec![Part { path, first: 0 }])
        }
    }

    pub(super) fn of(parts: Vec<Part>) -> Self {
        Self {
            parts,
            files: HashMap::new(),
            written: None,
        }
    }

    /// Delivers the records that may touch `span`; `clocks` are those with which a decoder dates them.
    pub fn read(
        &mut self,
        span: Span,
        clocks: &BTreeMap<ProcessId, Clock>,
        is_cancelled: &dyn Fn() -> bool,
        sink: &mut dyn RawSink,
    ) -> Result<Outcome> {
        let missing = self
            .written
            .as_ref()
            .map_or(0, |written| written.missing.load(Ordering::Relaxed));
        if missing > 0 {
            return Ok(Outcome::Incomplete(Gap::NoRoom(missing)));
        }
        let mut damaged = 0;
        for part in &self.parts {
            let recording = Recording::open(&part.path)?;
            let mut is_first = true;
            let mut expected = None;
            for (number, path) in recording.segments() {
                // A segment between them is missing.
                damaged += u64::from(
                    expected
                        .replace(number.saturating_add(1))
                        .is_some_and(|expected| number > expected),
                );
                let known = self.files.entry(path.to_owned()).or_default();
                let refused = Error::io("cannot read", path);
                let file = match File::open(path) {
                    Ok(file) => file,
                    // It was dropped just now.
                    Err(_) if !path.exists() => continue,
                    Err(error) => return Err(error),
                };
                if !known.look_through(&file, is_cancelled).map_err(refused)? {
                    return Ok(Outcome::Cancelled);
                }
                if std::mem::take(&mut is_first) && number > 1 && known.since.is_none_or(|since| span.begin < since) {
                    return Ok(Outcome::Incomplete(Gap::Dropped));
                }
                damaged += known.damaged;
                let mut moved = ShiftedSink::renumbered(part.first, sink);
                for entry in &known.entries {
                    let process = ProcessId((entry.owner.process & 0xffff).saturating_add(part.first));
                    if entry.kind != Kind::RECORDS || !touches(entry, clocks.get(&process), span) {
                        continue;
                    }
                    if is_cancelled() {
                        return Ok(Outcome::Cancelled);
                    }
                    match file.block(entry.offset).map_err(Error::io("cannot read", path))? {
                        Some((head, payload)) => payload::deliver(head, &payload, &mut moved),
                        None => damaged += 1,
                    }
                }
            }
        }
        Ok(match damaged {
            0 => Outcome::Whole,
            damaged => Outcome::Incomplete(Gap::Damaged(damaged)),
        })
    }
}

/// Whether records of a block may touch a stretch of time.
pub(super) fn touches(entry: &Entry, clock: Option<&Clock>, span: Span) -> bool {
    let Some(clock) = clock else { return true };
    // Of a block without an index entry nothing is known: the greatest number is no time.
    let within = |(least, greatest): (u64, u64), convert: &dyn Fn(u64) -> Nanos| {
        least <= greatest
            && (greatest == u64::MAX || convert(greatest.max(1)) >= span.begin)
            && (least == 0 || convert(least) <= span.end)
    };
    let Times { ticks, hsa } = entry.times;
    let nothing = ticks.0 > ticks.1 && hsa.0 > hsa.1;
    nothing || within(ticks, &|time| clock.ticks(time)) || within(hsa, &|time| clock.hsa(time))
}

impl Known {
    /// Learns which blocks there are; false if it was cancelled.
    fn look_through(&mut self, file: &File, is_cancelled: &dyn Fn() -> bool) -> io::Result<bool> {
        if self.is_complete {
            return Ok(true);
        }
        if let Some(entries) = file.index()? {
            *self = Self {
                entries,
                is_complete: true,
                ..Self::default()
            };
        } else {
            while let Some((place, head, payload)) = file.next_block(self.until)? {
                if is_cancelled() {
                    return Ok(false);
                }
                self.damaged += u64::from(place > self.until);
                self.until = place + (block::HEADER as u64) + u64::from(head.stored_length);
                self.entries.push(entry(place, head, &payload));
            }
        }
        let now = self.entries.iter().find(|entry| entry.kind == Kind::NOW);
        if let (None, Some(now)) = (self.since, now) {
            let block = file.block(now.offset)?;
            self.since = block.and_then(|(_, payload)| payload::words(&payload).first().copied());
        }
        Ok(true)
    }
}

/// What an index would have of a block.
fn entry(place: u64, head: Head, payload: &[u8]) -> Entry {
    let mut entry = Entry::unknown(place, head);
    if head.kind == Kind::RECORDS {
        (entry.times, entry.records) = Times::of(payload::slots(&payload::words(payload)));
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_trace::clock::Sample;

    #[test]
    fn a_block_without_an_index_may_touch_any_time() {
        let mut clock = Clock::default();
        for (ticks, boottime) in [(1 << 40, 1 << 41), (1 << 41, 1 << 41 | 1 << 40)] {
            clock.add(Sample {
                ticks,
                boottime,
                ..Sample::default()
            });
        }
        let unknown = Entry::unknown(0, Head::default());
        for begin in [0, 1 << 30, 1 << 41, 1 << 50] {
            let span = Span {
                begin,
                end: begin + 1000,
            };
            assert!(touches(&unknown, Some(&clock), span), "{begin}");
        }
    }
}
