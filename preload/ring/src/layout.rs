//! Layout of a ring file: header, regions, and the word offsets inside each region.
//!
//! A file begins with a header page that never changes after the file is named. Regions follow, each a run of 64-bit
//! words at a page boundary. The first file of a process has all regions. Files chained to it when all its rings are
//! taken have only directory, totals, rings and milestones. All numbers are little endian.

mod header;

pub use header::{Header, LayoutError, seal};

use crate::record::{SLOT_BYTES, TOTALS};

/// First bytes of a ring file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ROCTOPR1");
/// Incremented when old readers cannot read new files.
pub const MAJOR: u16 = 1;
/// Incremented for additions that old readers may ignore.
pub const MINOR: u16 = 1;
/// Bytes of the header page.
pub const PAGE: usize = 4096;
/// Reads as this number only on a machine of the same byte order.
pub const ENDIAN_MARK: u64 = 0x0102_0304_0506_0708;
/// Maximum file size that a reader accepts, bytes.
pub const MAX_FILE: u64 = 16 << 30;
/// Maximum number of threads in one file's directory.
pub const MAX_ENTRIES: usize = 4096;

/// Kinds of regions in the header's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Region {
    /// Calibration samples, see [`clock`].
    Clock = 1,
    /// Process-wide counters, see [`counter`].
    Counters = 2,
    /// Thread directory, see [`entry`].
    Directory = 3,
    /// Exact totals by operation, [`TOTALS`] pairs of words (calls, ticks) per thread.
    Totals = 4,
    /// Work in flight by queue, see [`queue`].
    Queues = 5,
    /// Open start/stop ranges, see [`open_range`].
    OpenRanges = 6,
    /// Fact slots.
    Facts = 7,
    /// One word per string: offset in words << 20 | length | 1 << 63.
    StringIndex = 8,
    /// Texts, each at a word boundary.
    StringBytes = 9,
    /// Rings, at the offsets in the directory.
    Rings = 10,
    /// Head of each ring at its last milestone, one word per ring, see [`milestone_every`]. Since minor version 1.
    Milestones = 11,
}

/// Number of region kinds plus one.
pub const REGIONS: usize = 12;

/// Distance of two milestones in a ring of `slots` slots (a power of two). The writer copies its head to its milestone
/// word each time it crosses a multiple of this number. Heads are a page apart, milestones adjacent: a check of all
/// fill levels reads few cache lines.
pub const fn milestone_every(slots: u64) -> u64 {
    if slots < 64 { 1 } else { slots / 64 }
}

/// Words of one calibration sample. Sample 0 is the first one, the others rotate.
pub mod clock {
    /// Words of a sample.
    pub const WORDS: usize = 8;
    /// Number of samples.
    pub const SAMPLES: usize = 64;
    /// Sequence: odd while the sample is written, 0 if never written.
    pub const SEQUENCE: usize = 0;
    /// Raw ticks.
    pub const TICKS: usize = 1;
    /// CLOCK_BOOTTIME, ns.
    pub const BOOTTIME: usize = 2;
    /// CLOCK_MONOTONIC, ns.
    pub const MONOTONIC: usize = 3;
    /// CLOCK_MONOTONIC_RAW, ns.
    pub const MONOTONIC_RAW: usize = 4;
    /// CLOCK_REALTIME, ns.
    pub const REALTIME: usize = 5;
    /// HSA system time, ns; 0 if HSA had not started.
    pub const HSA: usize = 6;
    /// Width of the interval around BOOTTIME, ticks: the sample's error.
    pub const WIDTH: usize = 7;

    /// Kind of clock in the header: raw time stamp counter.
    pub const KIND_TSC: u32 = 1;
    /// `clock_gettime(CLOCK_BOOTTIME)` in ns.
    pub const KIND_VDSO: u32 = 2;
}

/// Process-wide counters, word offsets.
pub mod counter {
    /// Words of the region.
    pub const WORDS: usize = 128;
    /// State of the collector: 1 recording, 2 permanently off, 3 closed at exit.
    pub const STATE: usize = 0;
    /// String id of the reason for switching off.
    pub const OFF_REASON: usize = 1;
    /// Reserved fact slots.
    pub const FACTS_USED: usize = 2;
    /// Facts without space.
    pub const FACTS_FULL: usize = 3;
    /// Reserved strings.
    pub const STRINGS: usize = 4;
    /// Reserved words of text.
    pub const STRING_WORDS: usize = 5;
    /// Texts without space.
    pub const STRINGS_FULL: usize = 6;
    /// Threads that requested a ring.
    pub const THREADS: usize = 7;
    /// Records dropped because no ring was available.
    pub const NO_RING: usize = 8;
    /// Records dropped because a signal handler interrupted a record in progress.
    pub const REENTRANT: usize = 9;
    /// Dispatches submitted.
    pub const SUBMITTED: usize = 10;
    /// Dispatches that ran without a time.
    pub const UNTIMED: usize = 11;
    /// Copies begun.
    pub const COPIES: usize = 12;
    /// Copies that ran without a time.
    pub const COPIES_UNTIMED: usize = 13;
    /// Calibration samples taken.
    pub const CALIBRATIONS: usize = 14;
    /// Texts that were cut.
    pub const TEXT_CUT: usize = 15;
    /// Ranges nested deeper than the stack, or start/stop ranges beyond the table.
    pub const RANGES_LOST: usize = 16;
    /// Files chained to this one.
    pub const CHAINED: usize = 17;
    /// Queues beyond the in-flight table.
    pub const QUEUES_FULL: usize = 18;
    /// Dispatches harvested (timed).
    pub const TIMED: usize = 19;
    // 20 was never written; numbers are not reused.
    /// Copies recorded, timed or not; the rest of [`COPIES`] is in flight.
    pub const COPIES_RECORDED: usize = 21;
}

/// A thread's entry in the directory, word offsets.
pub mod entry {
    /// Words of an entry (4 KiB).
    pub const WORDS: usize = 512;
    /// State in the low half: 0 free, 1 live, 2 done, 3 claimed; generation (number of lives) in the high half.
    pub const STATE: usize = 0;
    /// Kernel thread id.
    pub const TID: usize = 1;
    /// When the thread claimed the entry, ticks.
    pub const SINCE: usize = 2;
    /// Name, first eight bytes; the next word has the rest.
    pub const NAME: usize = 3;
    /// Byte offset of the ring in the file. Constant.
    pub const RING_OFFSET: usize = 5;
    /// Slots of the ring. Constant.
    pub const RING_SLOTS: usize = 6;
    /// Slot index at which this life began.
    pub const GENERATION_START: usize = 7;
    /// Slots ever written to the ring. On its own cache line.
    pub const HEAD: usize = 16;
    /// Records ever written to the ring.
    pub const RECORDS: usize = 17;
    /// Records dropped because a signal handler interrupted.
    pub const REENTRANT: usize = 32;
    /// Calls nested deeper than the stack.
    pub const DEEP: usize = 33;
    /// Number of open calls.
    pub const CALL_DEPTH: usize = 48;
    /// Stack of open calls: start ticks, domain << 16 | op, correlation.
    pub const CALL_STACK: usize = 49;
    /// Capacity of the call stack.
    pub const CALLS: usize = 8;
    /// Number of open push/pop ranges.
    pub const RANGE_DEPTH: usize = 80;
    /// Stack of open ranges: start ticks, correlation, text id | length << 32, text.
    pub const RANGE_STACK: usize = 96;
    /// Capacity of the range stack.
    pub const RANGES: usize = 24;
    /// Words of an open range.
    pub const RANGE_WORDS: usize = 16;
    /// Bytes of an open range's text.
    pub const RANGE_TEXT: usize = 104;

    /// State: free.
    pub const FREE: u64 = 0;
    /// State: a thread owns it.
    pub const LIVE: u64 = 1;
    /// State: its thread has ended.
    pub const DONE: u64 = 2;
    /// State: claimed; the new owner's identity is being written.
    pub const CLAIMED: u64 = 3;

    const _: () = assert!(RANGE_STACK + RANGES * RANGE_WORDS <= WORDS);
    const _: () = assert!(RANGE_TEXT == (RANGE_WORDS - 3) * 8);
    const _: () = assert!(RANGE_TEXT == crate::record::Marker::INLINE_TEXT);
}

/// Work in flight on one queue, word offsets.
pub mod queue {
    /// Capacity of the region in queues.
    pub const QUEUES: usize = 64;
    /// Maximum number of dispatches in flight per queue.
    pub const SLOTS: usize = 512;
    /// Words before the slots.
    pub const HEADER: usize = 16;
    /// Words of a slot: submit ticks (0 free), kernel object, correlation, dispatch id.
    pub const SLOT_WORDS: usize = 4;
    /// Words of a queue.
    pub const WORDS: usize = HEADER + SLOTS * SLOT_WORDS;
    /// Dense queue id; 0 if the entry is free.
    pub const ID: usize = 0;
    /// Dispatches submitted.
    pub const SUBMITTED: usize = 1;
    /// Dispatches seen complete.
    pub const COMPLETED: usize = 2;
    /// Dispatches that ran without a time.
    pub const UNTIMED: usize = 3;
}

/// Open ROC-TX start/stop ranges of the process, word offsets.
pub mod open_range {
    /// Capacity of the region in ranges.
    pub const RANGES: usize = 256;
    /// Words of a range.
    pub const WORDS: usize = 32;
    /// Range id; 0 if the entry is free.
    pub const ID: usize = 0;
    /// Start ticks.
    pub const START: usize = 1;
    /// Kernel thread id of the thread that started it.
    pub const TID: usize = 2;
    /// Correlation id of the start.
    pub const CORRELATION: usize = 3;
    /// Text id | length << 32.
    pub const SIZES: usize = 4;
    /// Text.
    pub const TEXT: usize = 8;
}

/// Sizes that the writer chooses for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// 0 for the first file of a process, then ascending.
    pub ordinal: u32,
    /// Slots of each ring, powers of two; one directory entry per ring.
    pub rings: Vec<u64>,
    /// Number of fact slots; 0 in a chained file.
    pub facts: u64,
    /// Number of strings; 0 in a chained file.
    pub strings: u64,
    /// Bytes of text; 0 in a chained file.
    pub string_bytes: u64,
}

impl Spec {
    /// The regions of such a file, and its size in bytes.
    pub fn regions(&self) -> ([Extent; REGIONS], u64) {
        let first = self.ordinal == 0;
        let entries = self.rings.len() as u64;
        let words = |kind: usize| -> u64 {
            match kind {
                1 if first => (clock::WORDS * clock::SAMPLES) as u64,
                2 if first => counter::WORDS as u64,
                3 => entries * entry::WORDS as u64,
                4 => entries * 2 * TOTALS as u64,
                5 if first => (queue::QUEUES * queue::WORDS) as u64,
                6 if first => (open_range::RANGES * open_range::WORDS) as u64,
                7 => self.facts * (SLOT_BYTES / 8) as u64,
                8 => self.strings,
                9 => self.string_bytes / 8,
                10 => self.rings.iter().sum::<u64>() * (SLOT_BYTES / 8) as u64,
                11 => entries,
                _ => 0,
            }
        };
        let mut extents = [Extent::default(); REGIONS];
        let mut at = PAGE as u64;
        for (kind, extent) in extents.iter_mut().enumerate() {
            let length = words(kind) * 8;
            if length > 0 {
                *extent = Extent { offset: at, length };
                at += length.next_multiple_of(PAGE as u64);
            }
        }
        (extents, at)
    }
}

/// A range of bytes in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Start, in bytes from the beginning of the file.
    pub offset: u64,
    /// Length in bytes; 0 if the region is absent.
    pub length: u64,
}
