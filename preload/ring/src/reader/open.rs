//! Open calls, ranges and dispatches, now or at the end of the process. Read from the directory and the queues, not
//! from rings.

use super::{Bytes, Reader, Thread};
use crate::layout::{Region, entry, open_range, queue};
use crate::record::Domain;
use std::io;

/// An API call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// Thread in the call.
    pub thread: Thread,
    /// Enter, ticks.
    pub start: u64,
    /// Domain of the operation.
    pub domain: Domain,
    /// Operation.
    pub op: u16,
    /// Correlation id.
    pub correlation: u64,
    /// Nesting level, from 0.
    pub level: u16,
}

/// A ROC-TX range that was not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRange {
    /// Thread that opened it.
    pub thread: Thread,
    /// Begin, ticks.
    pub start: u64,
    /// Correlation id.
    pub correlation: u64,
    /// Id of a start/stop range, 0 for push/pop.
    pub range_id: u64,
    /// String id of a long text, else 0.
    pub text_id: u32,
    /// Nesting level, from 0.
    pub level: u16,
    /// The text, if it is inline.
    pub text: Vec<u8>,
}

/// A dispatch that was submitted and not yet seen complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Submit, ticks.
    pub submit: u64,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Correlation id of the launch.
    pub correlation: u64,
    /// Ordinal of the dispatch in its process.
    pub dispatch_id: u64,
}

/// The work of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueWork {
    /// Dense queue id.
    pub id: u32,
    /// Dispatches submitted.
    pub submitted: u64,
    /// Dispatches seen complete.
    pub completed: u64,
    /// Dispatches that ran without a time.
    pub untimed: u64,
    /// Recorded dispatches in flight, oldest first.
    pub in_flight: Vec<InFlight>,
}

/// Open work, now or at the end of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenWork {
    /// Open API calls.
    pub calls: Vec<OpenCall>,
    /// Open ranges.
    pub ranges: Vec<OpenRange>,
    /// Queues in use.
    pub queues: Vec<QueueWork>,
}

impl<B: Bytes> Reader<B> {
    /// Reads the open work.
    pub fn open_work(&self) -> io::Result<OpenWork> {
        let mut work = OpenWork::default();
        for index in 0..self.threads.len() {
            let at = index * entry::WORDS;
            let look: [u64; entry::RANGE_DEPTH + 1] = self.some_words(Region::Directory, at)?;
            let is_live = |words: &[u64]| words[entry::STATE] & 0xffff_ffff == entry::LIVE;
            if !is_live(&look) || look[entry::CALL_DEPTH] == 0 && look[entry::RANGE_DEPTH] == 0 {
                continue;
            }
            let words = self.stable_words(Region::Directory, at, entry::WORDS)?;
            if words.len() == entry::WORDS && is_live(&words) {
                let thread = Thread {
                    index: index as u32,
                    tid: words[entry::TID] as u32,
                };
                open_calls(thread, &words, &mut work.calls);
                open_ranges(thread, &words, &mut work.ranges);
            }
        }
        let look = self.region_words(Region::OpenRanges, 0, open_range::RANGES * open_range::WORDS)?;
        for (index, look) in look.chunks_exact(open_range::WORDS).enumerate() {
            if look[open_range::ID] == 0 {
                continue;
            }
            let words = self.stable_words(Region::OpenRanges, index * open_range::WORDS, open_range::WORDS)?;
            if words.len() == open_range::WORDS && words[open_range::ID] != 0 {
                work.ranges.push(started_range(&words));
            }
        }
        for index in 0..queue::QUEUES {
            let at = index * queue::WORDS;
            // Few entries are in use, and the dispatches in flight of one are large.
            let [id] = self.some_words(Region::Queues, at + queue::ID)?;
            if id == 0 {
                continue;
            }
            let words = self.region_words(Region::Queues, at, queue::WORDS)?;
            if words.len() == queue::WORDS && words[queue::ID] != 0 {
                work.queues.push(queue_work(&words));
            }
        }
        Ok(work)
    }
}

fn open_calls(thread: Thread, words: &[u64], into: &mut Vec<OpenCall>) {
    let depth = (words[entry::CALL_DEPTH] as usize).min(entry::CALLS);
    for level in 0..depth {
        let at = entry::CALL_STACK + level * 3;
        into.push(OpenCall {
            thread,
            start: words[at],
            domain: Domain((words[at + 1] >> 16) as u8),
            op: words[at + 1] as u16,
            correlation: words[at + 2],
            level: level as u16,
        });
    }
}

fn text_of(words: &[u64], length: usize) -> Vec<u8> {
    let mut text: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    text.truncate(length);
    text
}

fn open_ranges(thread: Thread, words: &[u64], into: &mut Vec<OpenRange>) {
    let depth = (words[entry::RANGE_DEPTH] as usize).min(entry::RANGES);
    for level in 0..depth {
        let at = entry::RANGE_STACK + level * entry::RANGE_WORDS;
        into.push(OpenRange {
            thread,
            start: words[at],
            correlation: words[at + 1],
            range_id: 0,
            text_id: words[at + 2] as u32,
            level: level as u16,
            text: text_of(&words[at + 3..at + entry::RANGE_WORDS], (words[at + 2] >> 32) as usize),
        });
    }
}

fn started_range(words: &[u64]) -> OpenRange {
    OpenRange {
        thread: Thread {
            index: u32::MAX,
            tid: words[open_range::TID] as u32,
        },
        start: words[open_range::START],
        correlation: words[open_range::CORRELATION],
        range_id: words[open_range::ID],
        text_id: words[open_range::SIZES] as u32,
        level: 0,
        text: text_of(&words[open_range::TEXT..], (words[open_range::SIZES] >> 32) as usize),
    }
}

fn queue_work(words: &[u64]) -> QueueWork {
    let mut in_flight: Vec<InFlight> = words[queue::HEADER..]
        .chunks_exact(queue::SLOT_WORDS)
        .filter(|slot| slot[0] != 0)
        .map(|slot| InFlight {
            submit: slot[0],
            kernel_object: slot[1],
            correlation: slot[2],
            dispatch_id: slot[3],
        })
        .collect();
    in_flight.sort_by_key(|work| work.dispatch_id);
    QueueWork {
        id: words[queue::ID] as u32,
        submitted: words[queue::SUBMITTED],
        completed: words[queue::COMPLETED],
        untimed: words[queue::UNTIMED],
        in_flight,
    }
}
