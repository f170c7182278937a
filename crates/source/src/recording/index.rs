//! Index at the end of a segment: offset, content and time range of each block.

use super::block::{Head, Kind, Owner};
use super::payload;
use roctop_ring::arguments::Arguments;
use roctop_ring::record::{self, Allocation, ApiCall, CallCopy, Copy, Dispatch, Marker, Scratch, Slot, flag};
use roctop_trace::raw::each;

/// Words per entry.
const WORDS: usize = 8;

/// Time range of records as in their slots: host ticks and HSA ns. It is empty if the minimum exceeds the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) ticks: (u64, u64),
    pub(super) hsa: (u64, u64),
}

impl Default for Times {
    fn default() -> Self {
        Self {
            ticks: (u64::MAX, 0),
            hsa: (u64::MAX, 0),
        }
    }
}

impl Times {
    /// Time range and number of the records in `slots`.
    pub(super) fn of(slots: &[Slot]) -> (Self, u32) {
        let (mut times, mut count) = (Self::default(), 0);
        for record in each(slots) {
            times.add(record);
            count += 1;
        }
        (times, count)
    }

    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        let both = |a: (u64, u64), b: (u64, u64)| (a.0.min(b.0), a.1.max(b.1));
        Self {
            ticks: both(self.ticks, other.ticks),
            hsa: both(self.hsa, other.hsa),
        }
    }

    fn add(&mut self, slots: &[Slot]) {
        let Some(first) = slots.first() else { return };
        // First payload words of each kind, see `roctop_ring::record`.
        let (begin, end) = (first[1], first[2]);
        let into = match first[0] as u8 {
            Dispatch::KIND | Copy::KIND => &mut self.hsa,
            ApiCall::KIND
            | Arguments::KIND
            | Marker::MARK
            | Marker::RANGE
            | Allocation::KIND
            | Scratch::KIND
            | CallCopy::KIND => &mut self.ticks,
            _ => return,
        };
        // 0 is an unknown time. An invalid time would stretch the recording over years.
        let is_none = record::Head(first[0]).flags() & flag::UNTIMED != 0;
        if end != 0 && !is_none {
            // Begin and end may be swapped.
            *into = (into.0.min(begin.min(end)), into.1.max(begin.max(end)));
        }
    }
}

/// Index entry of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Offset in the file, bytes.
    pub(super) offset: u64,
    /// Payload size as stored, bytes.
    pub(super) stored: u32,
    pub(super) kind: Kind,
    pub(super) owner: Owner,
    /// Number of records in it.
    pub(super) records: u32,
    pub(super) times: Times,
}

impl Entry {
    /// Entry of a block without an index: its time range is unlimited.
    pub(super) const fn unknown(offset: u64, head: Head) -> Self {
        Self {
            offset,
            stored: head.stored_length,
            kind: head.kind,
            owner: Owner {
                process: head.process,
                thread: head.thread,
                tid: head.tid,
            },
            records: 0,
            times: Times {
                ticks: (0, u64::MAX),
                hsa: (0, u64::MAX),
            },
        }
    }
}

/// Encodes the payload of an index block.
pub(super) fn encode(entries: &[Entry]) -> Vec<u8> {
    let words: Vec<u64> = entries.iter().flat_map(words).collect();
    payload::bytes(&words)
}

fn words(entry: &Entry) -> [u64; WORDS] {
    let Owner { process, thread, tid } = entry.owner;
    [
        entry.offset,
        u64::from(entry.stored) | u64::from(entry.kind.0) << 32,
        u64::from(process) | u64::from(thread) << 32,
        u64::from(tid) | u64::from(entry.records) << 32,
        entry.times.ticks.0,
        entry.times.ticks.1,
        entry.times.hsa.0,
        entry.times.hsa.1,
    ]
}

/// Decodes the payload of an index block.
pub(super) fn decode(words: &[u64]) -> Vec<Entry> {
    let entries = words.as_chunks::<WORDS>().0.iter();
    entries
        .map(|words| Entry {
            offset: words[0],
            stored: words[1] as u32,
            kind: Kind((words[1] >> 32) as u8),
            owner: Owner {
                process: words[2] as u32,
                thread: (words[2] >> 32) as u32,
                tid: words[3] as u32,
            },
            records: (words[3] >> 32) as u32,
            times: Times {
                ticks: (words[4], words[5]),
                hsa: (words[6], words[7]),
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::record::Domain;

    fn slots_of(head: record::Head, payload: &[[u64; 6]]) -> Vec<Slot> {
        let mut slots = Vec::new();
        for (number, words) in payload.iter().enumerate() {
            let first = if number == 0 { head.0 } else { 1 };
            slots.push([first, words[0], words[1], words[2], words[3], words[4], words[5], 0]);
        }
        slots
    }

    #[test]
    fn the_first_words_of_records_are_their_times() {
        let call = ApiCall {
            start: 5,
            end: 9,
            ..ApiCall::default()
        };
        let dispatch = Dispatch {
            begin: 100,
            end: 120,
            submit: 3,
            ..Dispatch::default()
        };
        let mut both = slots_of(ApiCall::head(0, Domain::HIP), &call.payload());
        both.extend(slots_of(Dispatch::head(0, Domain::NONE), &dispatch.payload()));
        let (times, count) = Times::of(&both);
        assert_eq!((times.ticks, times.hsa, count), ((5, 9), (100, 120), 2));
        let copy = Copy {
            begin: 7,
            end: 8,
            ..Copy::default()
        };
        assert_eq!(
            Times::of(&slots_of(Copy::head(0, Domain::NONE), &copy.payload())).0.hsa,
            (7, 8)
        );
        let allocation = Allocation {
            start: 1,
            end: 2,
            ..Allocation::default()
        };
        let found = Times::of(&slots_of(Allocation::head(0, Domain::NONE), &allocation.payload())).0;
        assert_eq!(found.ticks, (1, 2));
        let scratch = Scratch {
            start: 1,
            end: 2,
            ..Scratch::default()
        };
        let found = Times::of(&slots_of(Scratch::head(0, Domain::NONE), &scratch.payload())).0;
        assert_eq!(found.ticks, (1, 2));
    }

    #[test]
    fn an_index_round_trips() {
        let entry = Entry {
            offset: 1 << 40,
            stored: 77,
            kind: Kind::RECORDS,
            owner: Owner {
                process: 1,
                thread: 2,
                tid: 3,
            },
            records: 9,
            times: Times {
                ticks: (1, 2),
                hsa: (3, 4),
            },
        };
        assert_eq!(decode(&payload::words(&encode(&[entry, entry]))), [entry, entry]);
    }
}
