//! Where things lie in a ring file: header, regions, and the word offsets inside each region.
//!
//! A file begins with a header page that never changes after the file got its name. Regions follow, each a run of
//! 64-bit words at a page boundary. The first file of a process has all regions; files chained behind it when its rings
//! are all taken have a directory, totals and rings only. All numbers are little endian.

use crate::record::{SLOT_BYTES, TOTALS};

/// First bytes of a ring file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ROCTOPR1");
/// Raised when an old reader cannot read new files.
pub const MAJOR: u16 = 1;
/// Raised when something was added that old readers may pass over.
pub const MINOR: u16 = 0;
/// Bytes of the header page.
pub const PAGE: usize = 4096;
/// Reads as this number only on a machine of the same byte order.
pub const ENDIAN_MARK: u64 = 0x0102_0304_0506_0708;
/// The largest file a reader accepts, bytes.
pub const MAX_FILE: u64 = 16 << 30;
/// The most threads that one file's directory may hold.
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
    /// Exact totals by operation, [`TOTALS`] pairs of words (calls, ticks) a thread.
    Totals = 4,
    /// Work in flight by queue, see [`queue`].
    Queues = 5,
    /// Open start/stop ranges, see [`open_range`].
    OpenRanges = 6,
    /// Fact slots.
    Facts = 7,
    /// One word a string: offset in words << 20 | length | 1 << 63.
    StringIndex = 8,
    /// Texts, each at a word boundary.
    StringBytes = 9,
    /// Rings, where the directory says.
    Rings = 10,
}

/// Number of region kinds plus one.
pub const REGIONS: usize = 11;

/// Words of one calibration sample and their meaning. Sample 0 is the first one, the others rotate.
pub mod clock {
    /// Words of a sample.
    pub const WORDS: usize = 8;
    /// Samples kept.
    pub const SAMPLES: usize = 64;
    /// Sequence: odd while it is written, 0 never written.
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
    /// HSA system time, ns; 0 when HSA was not up.
    pub const HSA: usize = 6;
    /// Width of the bracket around BOOTTIME, ticks: the sample's error.
    pub const WIDTH: usize = 7;

    /// Clock kinds in the header.
    pub const KIND_TSC: u32 = 1;
    /// `clock_gettime(CLOCK_BOOTTIME)` in ns.
    pub const KIND_VDSO: u32 = 2;
}

/// Process-wide counters, word offsets.
pub mod counter {
    /// Words of the region.
    pub const WORDS: usize = 128;
    /// State of the collector: 1 recording, 2 off for good, 3 closed at exit.
    pub const STATE: usize = 0;
    /// String id of the reason for being off.
    pub const OFF_REASON: usize = 1;
    /// Fact slots given out.
    pub const FACTS_USED: usize = 2;
    /// Facts that found no room.
    pub const FACTS_FULL: usize = 3;
    /// Strings given out.
    pub const STRINGS: usize = 4;
    /// Words of text given out.
    pub const STRING_WORDS: usize = 5;
    /// Texts that found no room.
    pub const STRINGS_FULL: usize = 6;
    /// Threads that asked for a ring.
    pub const THREADS: usize = 7;
    /// Records dropped because no ring was to be had.
    pub const NO_RING: usize = 8;
    /// Records dropped because a signal handler interrupted a record being written.
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
    /// Ranges nested deeper than the stack keeps, or start/stop ranges beyond the table.
    pub const RANGES_LOST: usize = 16;
    /// Files chained behind this one.
    pub const CHAINED: usize = 17;
    /// Queues beyond the in-flight table.
    pub const QUEUES_FULL: usize = 18;
    /// Dispatches harvested (timed).
    pub const TIMED: usize = 19;
    // 20 was never written; numbers are not used again.
    /// Copies recorded, timed or not; the rest of [`COPIES`] was under way.
    pub const COPIES_RECORDED: usize = 21;
}

/// A thread's entry in the directory, word offsets.
pub mod entry {
    /// Words of an entry (4 KiB).
    pub const WORDS: usize = 512;
    /// State in the low half: 0 free, 1 live, 2 done, 3 claimed; generation (lives of the entry) in the high half.
    pub const STATE: usize = 0;
    /// Kernel thread id.
    pub const TID: usize = 1;
    /// When the thread took the entry, ticks.
    pub const SINCE: usize = 2;
    /// Name, first eight bytes; the next word has the rest.
    pub const NAME: usize = 3;
    /// Byte offset of the ring in the file. Constant.
    pub const RING_OFFSET: usize = 5;
    /// Slots of the ring. Constant.
    pub const RING_SLOTS: usize = 6;
    /// Slot index at which this life began.
    pub const GENERATION_START: usize = 7;
    /// Slots ever written to the ring. Alone on its line.
    pub const HEAD: usize = 16;
    /// Records ever written to the ring.
    pub const RECORDS: usize = 17;
    /// Records dropped because a signal handler came in between.
    pub const REENTRANT: usize = 32;
    /// Calls nested deeper than the stack keeps.
    pub const DEEP: usize = 33;
    /// Open calls.
    pub const CALL_DEPTH: usize = 48;
    /// Open calls: start ticks, domain << 16 | op, correlation.
    pub const CALL_STACK: usize = 49;
    /// Calls that the stack keeps.
    pub const CALLS: usize = 8;
    /// Open push/pop ranges.
    pub const RANGE_DEPTH: usize = 80;
    /// Open ranges: start ticks, correlation, text id | length << 32, text.
    pub const RANGE_STACK: usize = 96;
    /// Ranges that the stack keeps.
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
    /// State: a thread is about to own it; who that is, is being written.
    pub const CLAIMED: u64 = 3;

    const _: () = assert!(RANGE_STACK + RANGES * RANGE_WORDS <= WORDS);
    const _: () = assert!(RANGE_TEXT == (RANGE_WORDS - 3) * 8);
    const _: () = assert!(RANGE_TEXT == crate::record::Marker::INLINE_TEXT);
}

/// Work in flight on one queue, word offsets.
pub mod queue {
    /// Queues that the region holds.
    pub const QUEUES: usize = 64;
    /// Dispatches in flight that are kept by queue.
    pub const SLOTS: usize = 512;
    /// Words before the slots.
    pub const HEADER: usize = 16;
    /// Words of a slot: submit ticks (0 free), kernel object, correlation, dispatch id.
    pub const SLOT_WORDS: usize = 4;
    /// Words of a queue.
    pub const WORDS: usize = HEADER + SLOTS * SLOT_WORDS;
    /// Dense queue id, 0 when the place is free.
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
    /// Ranges that the region holds.
    pub const RANGES: usize = 256;
    /// Words of a range.
    pub const WORDS: usize = 32;
    /// Range id; 0 when the place is free.
    pub const ID: usize = 0;
    /// Start ticks.
    pub const START: usize = 1;
    /// Kernel thread id that started it.
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
    /// 0 for the first file of a process, then counting.
    pub ordinal: u32,
    /// Slots of each ring, powers of two; the directory has as many entries.
    pub rings: Vec<u64>,
    /// Fact slots; 0 in a chained file.
    pub facts: u64,
    /// Strings; 0 in a chained file.
    pub strings: u64,
    /// Bytes of text; 0 in a chained file.
    pub string_bytes: u64,
}

impl Spec {
    /// The regions of such a file and its size in bytes.
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

/// A run of bytes in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// Bytes; 0 when the region is absent.
    pub length: u64,
}

/// The constant part of a ring file: who wrote it, and where its regions are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Layout version, major.
    pub major: u16,
    /// Layout version, minor.
    pub minor: u16,
    /// Bytes of the file.
    pub size: u64,
    /// Process id in the writer's namespace.
    pub pid: u32,
    /// Parent's process id.
    pub ppid: u32,
    /// User id.
    pub uid: u32,
    /// Position in the chain of the process's files.
    pub ordinal: u32,
    /// Start time of the process, clock ticks since boot (`/proc/PID/stat` field 22).
    pub start_ticks: u64,
    /// Inode of the pid name space.
    pub pid_namespace: u64,
    /// Boot id, first eight bytes.
    pub boot_id: u64,
    /// Rank under MPI or Slurm, -1 for none.
    pub rank: i32,
    /// Ranks, -1 for none.
    pub ranks: i32,
    /// One of [`clock::KIND_TSC`] and [`clock::KIND_VDSO`].
    pub clock_kind: u32,
    /// When the file was made, CLOCK_REALTIME ns.
    pub created: u64,
    /// Regions by kind.
    pub regions: [Extent; REGIONS],
    /// Host name.
    pub host: String,
    /// Name of the executable's file.
    pub exe: String,
    /// Command line, arguments separated by zero bytes in the file and by spaces here.
    pub command: String,
}

/// Why a file is not a ring that this build can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// Shorter than a header page.
    Short,
    /// Not a ring file.
    NotARing,
    /// A layout of another major version.
    Version(u16),
    /// Written on a machine of another byte order.
    ByteOrder,
    /// The header's checksum is wrong.
    Checksum,
    /// A region lies outside the file or over another one.
    Region(u32),
}

impl std::fmt::Display for LayoutError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Short => write!(
                f,
                "the file is shorter than a ring's header; it was cut or never finished"
            ),
            Self::NotARing => write!(f, "this is not a ring file of roctop"),
            Self::Version(v) => write!(
                f,
                "ring layout {v} was written by another release of roctop; this one reads {MAJOR}"
            ),
            Self::ByteOrder => write!(f, "the ring was written on a machine of another byte order"),
            Self::Checksum => write!(f, "the ring's header is damaged"),
            Self::Region(kind) => write!(f, "the ring's header is damaged: region {kind} does not fit the file"),
        }
    }
}

impl std::error::Error for LayoutError {}

const HOST: usize = 512;
const EXE: usize = 640;
const COMMAND: usize = 1024;
const CHECKSUM: usize = 504;

impl Header {
    /// The header page.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0u8; PAGE];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC.to_le_bytes());
        put(8, &self.major.to_le_bytes());
        put(10, &self.minor.to_le_bytes());
        put(12, &(PAGE as u32).to_le_bytes());
        put(16, &self.size.to_le_bytes());
        put(24, &ENDIAN_MARK.to_le_bytes());
        put(32, &self.pid.to_le_bytes());
        put(36, &self.ppid.to_le_bytes());
        put(40, &self.uid.to_le_bytes());
        put(44, &self.ordinal.to_le_bytes());
        put(48, &self.start_ticks.to_le_bytes());
        put(56, &self.pid_namespace.to_le_bytes());
        put(64, &self.boot_id.to_le_bytes());
        put(72, &self.rank.to_le_bytes());
        put(76, &self.ranks.to_le_bytes());
        put(80, &self.clock_kind.to_le_bytes());
        put(88, &self.created.to_le_bytes());
        for (kind, extent) in self.regions.iter().enumerate() {
            put(128 + kind * 16, &extent.offset.to_le_bytes());
            put(136 + kind * 16, &extent.length.to_le_bytes());
        }
        put(HOST, cut(&self.host, EXE - HOST - 1));
        put(EXE, cut(&self.exe, COMMAND - EXE - 1));
        put(COMMAND, cut(&self.command, PAGE - COMMAND - 1));
        seal(&mut page);
        page
    }

    /// Reads and checks a header page against the size of its file.
    pub fn decode(page: &[u8], file_size: u64) -> Result<Self, LayoutError> {
        let page = page.get(..PAGE).ok_or(LayoutError::Short)?;
        let u64_at = |at: usize| {
            let mut raw = [0u8; 8];
            raw.copy_from_slice(&page[at..at + 8]);
            u64::from_le_bytes(raw)
        };
        let u32_at = |at: usize| u64_at(at) as u32;
        if u64_at(0) != MAGIC {
            return Err(LayoutError::NotARing);
        }
        if u64_at(24) != ENDIAN_MARK {
            return Err(LayoutError::ByteOrder);
        }
        let major = u64_at(8) as u16;
        if major != MAJOR {
            return Err(LayoutError::Version(major));
        }
        if u64_at(CHECKSUM) != checksum(page) {
            return Err(LayoutError::Checksum);
        }
        let size = u64_at(16);
        if size > file_size || size > MAX_FILE {
            return Err(LayoutError::Short);
        }
        let mut regions = [Extent::default(); REGIONS];
        let mut end = PAGE as u64;
        for (kind, extent) in regions.iter_mut().enumerate() {
            *extent = Extent {
                offset: u64_at(128 + kind * 16),
                length: u64_at(136 + kind * 16),
            };
            if extent.length == 0 {
                continue;
            }
            let stop = extent.offset.checked_add(extent.length);
            if extent.offset < end || extent.offset % 8 != 0 || stop.is_none_or(|stop| stop > size) {
                return Err(LayoutError::Region(kind as u32));
            }
            end = extent.offset + extent.length;
        }
        let text = |from: usize, to: usize| {
            let bytes = &page[from..to];
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        Ok(Self {
            major,
            minor: (u64_at(8) >> 16) as u16,
            size,
            pid: u32_at(32),
            ppid: u32_at(36),
            uid: u32_at(40),
            ordinal: u32_at(44),
            start_ticks: u64_at(48),
            pid_namespace: u64_at(56),
            boot_id: u64_at(64),
            rank: u32_at(72) as i32,
            ranks: u32_at(76) as i32,
            clock_kind: u32_at(80),
            created: u64_at(88),
            regions,
            host: text(HOST, EXE),
            exe: text(EXE, COMMAND),
            command: text(COMMAND, PAGE),
        })
    }

    /// A region's place in the file.
    pub fn region(&self, kind: Region) -> Extent {
        self.regions[kind as usize]
    }
}

fn cut(text: &str, room: usize) -> &[u8] {
    &text.as_bytes()[..text.len().min(room)]
}

/// Puts the checksum into a header page that was written by hand; shorter ones stay as they are.
pub fn seal(page: &mut [u8]) {
    if let Some(page) = page.get_mut(..PAGE) {
        let sum = checksum(page);
        page[CHECKSUM..CHECKSUM + 8].copy_from_slice(&sum.to_le_bytes());
    }
}

/// FNV-1a over the header page without the checksum itself.
fn checksum(page: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325u64;
    for (i, byte) in page.iter().enumerate() {
        if !(CHECKSUM..CHECKSUM + 8).contains(&i) {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec {
            ordinal: 0,
            rings: vec![1024, 256],
            facts: 64,
            strings: 32,
            string_bytes: 4096,
        }
    }

    #[test]
    fn a_header_survives_encoding() {
        let (regions, size) = spec().regions();
        let header = Header {
            major: MAJOR,
            size,
            pid: 7,
            regions,
            exe: "app".into(),
            rank: -1,
            ..Header::default()
        };
        assert_eq!(Header::decode(&header.encode(), size), Ok(header));
    }

    #[test]
    fn no_flipped_bit_of_a_header_goes_unnoticed() {
        let (regions, size) = spec().regions();
        let page = Header {
            major: MAJOR,
            size,
            regions,
            ..Header::default()
        }
        .encode();
        for bit in 0..PAGE * 8 {
            let mut page = page.clone();
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&page, size).is_err(), "bit {bit}");
        }
    }
}
