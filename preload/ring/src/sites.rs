//! Stack files: where the calls of sites come from, for a viewer that unwinds on this machine.
//!
//! One file per process that has sites, `<stem of its ring file>.sites` beside it: a header page, then a ring of
//! entries. An entry is an executable mapping of the process, a copy of the stack at a call, the Python frames of a
//! call, or the description of Python code. Python frames come before the stack of the same call, and code before the
//! frames that are in it. Entries begin at multiples of [`UNIT`] bytes and may wrap around the ring's end. A writer reserves its place with one `fetch_add` and
//! never waits; entries that no reader took in time are overwritten. A reader uses private copies and checks position
//! and checksum of each entry, so that a late writer or a hostile file gives missing or wrong stacks at worst.
//!
//! Stacks hold the program's data: they stay on tmpfs, with mode 0600, and go with the session's directory.
//!
//! Excluded on purpose: unwinding, names, any knowledge of ELF files.

#[cfg(not(loom))]
mod file;
mod python;
#[cfg(feature = "reader")]
mod reader;
#[cfg(not(loom))]
pub use file::SitesFile;
pub use python::{CODE_BYTES, CodeWords, MAX_PYTHON_FRAMES, PythonFrame, Text, entered};
#[cfg(feature = "reader")]
pub use reader::{Code, CodeText, Entry, Lost, Mapping, PythonStack, Reader, Stack};

use crate::sync::{AtomicU64, Ordering, fence};
use crate::writer::Words;

/// First bytes of a stack file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ROCTOPS1");
/// File name extension of stack files.
pub const SITES: &str = "sites";
/// Bytes of the header page.
pub const PAGE: usize = 4096;
/// Maximum bytes of a file.
pub const MAX_FILE: usize = 4 << 20;
/// Minimum bytes of a file: it holds some stacks of full size.
pub const MIN_FILE: usize = 64 << 10;
/// Maximum bytes of the copy of a stack.
pub const MAX_STACK: usize = 16 << 10;
/// Entries begin at multiples of this number of bytes.
pub const UNIT: usize = 16;
/// Maximum bytes of a mapping's path.
pub const MAX_PATH: usize = 4096;

const WORDS_OF_UNIT: usize = UNIT / 8;
/// Words of an entry before its content: its position, and its kind, length and checksum.
const HEAD: usize = 2;
/// Words of any entry before its bytes; the last one is the number of bytes.
const CONTENT: usize = 6;
#[cfg(feature = "reader")]
const MAX_UNITS: u64 = ((HEAD + CONTENT) * 8 + MAX_STACK).div_ceil(UNIT) as u64;

/// Word offsets in the header page.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// Bytes of the ring of entries, a multiple of [`super::UNIT`].
    pub const CAPACITY: usize = 1;
    /// Process id.
    pub const PID: usize = 2;
    /// Start time of the process, clock ticks since boot.
    pub const START: usize = 3;
    /// Units ever reserved (bits 0 to 39), and entries ever begun, modulo 2^24.
    pub const TAIL: usize = 8;
    /// First of the [`super::Counter`]s.
    pub const COUNTERS: usize = 16;
    /// Number of words in use.
    pub const WORDS: usize = COUNTERS + super::COUNTERS;
}

/// Number of counters.
pub const COUNTERS: usize = 6;

/// What a process counts of its sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Sites that have a number.
    Sites = 0,
    /// Calls without a site because their stack could not be read, or its code is in no known mapping.
    Unreadable = 1,
    /// Calls without a site because there was no memory for what the thread knows.
    NoRoom = 2,
    /// Calls without a site because all numbers are given.
    TableFull = 3,
    /// Calls without a site because a signal handler made them while its thread learned another site.
    Reentrant = 4,
    /// Sites by fewer return addresses, because their call has had too many different ones.
    Coarse = 5,
}

/// Values of the counters, by [`Counter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters(pub [u64; COUNTERS]);

impl Counters {
    /// Value of a counter.
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }
}

/// Kinds of entries.
mod kind {
    pub(super) const MAPPING: u8 = 1;
    pub(super) const STACK: u8 = 2;
    pub(super) const CODE: u8 = 3;
    pub(super) const PYTHON: u8 = 4;
}

/// Bits of a stack's first word, above its site.
mod bit {
    pub(super) const CHECK: u64 = 1 << 16;
    pub(super) const CUT: u64 = 1 << 17;
}

/// Bits of the tail that count units.
const POSITION: u64 = (1 << 40) - 1;
/// One entry, in the tail.
const ENTRY: u64 = 1 << 40;

/// A sum in which the order counts.
#[derive(Clone, Copy)]
struct Checksum([u64; 2]);

impl Checksum {
    #[inline]
    const fn new(sequence: u64) -> Self {
        Self([sequence, 0])
    }

    #[inline]
    const fn add(self, word: u64) -> Self {
        let sum = self.0[0].wrapping_add(word);
        Self([sum, self.0[1].wrapping_add(sum)])
    }

    #[inline]
    const fn value(self) -> u32 {
        let mixed = (self.0[0] ^ self.0[1].rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as u32
    }
}

/// The second word of an entry's head.
const fn second(kind: u8, units: u64, sum: u32) -> u64 {
    kind as u64 | units << 8 | (sum as u64) << 32
}

/// A call's place and registers, as an entry describes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Number of the site, from 1.
    pub site: u16,
    /// The site was known: this stack is for comparison.
    pub is_check: bool,
    /// The thread's stack has more than was copied.
    pub cut: bool,
    /// Kernel thread id.
    pub tid: u32,
    /// When, ticks.
    pub time: u64,
    /// Return address of the call.
    pub ip: u64,
    /// Stack pointer right after the call's return.
    pub sp: u64,
    /// Register rbp at the call.
    pub bp: u64,
}

/// An executable mapping, as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappingWords<'a> {
    /// First address.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
    /// Offset of `start` in its file.
    pub offset: u64,
    /// The file's device: major << 32 | minor.
    pub device: u64,
    /// The file's inode.
    pub inode: u64,
    /// The file's path as the system reports it; `[vdso]`, or empty without a file.
    pub path: &'a [u8],
}

/// The writer's view of a stack file. Any number of threads may write.
#[derive(Clone, Copy, Debug)]
pub struct SitesWriter<'m> {
    head: &'m [AtomicU64; header::WORDS],
    ring: Words<'m>,
}

impl<'m> SitesWriter<'m> {
    /// The words of the header page and of the ring. `None` if one of them is too short.
    #[inline]
    pub fn new(head: Words<'m>, ring: Words<'m>) -> Option<Self> {
        let ring = ring.get(..ring.len() / WORDS_OF_UNIT * WORDS_OF_UNIT)?;
        (ring.len() * 8 >= MIN_FILE - PAGE).then_some(Self {
            head: head.first_chunk()?,
            ring,
        })
    }

    /// Fills the header of a new file.
    pub fn begin(&self, pid: u32, start_ticks: u64) {
        for (at, value) in [
            (header::CAPACITY, self.ring.len() as u64 * 8),
            (header::PID, u64::from(pid)),
            (header::START, start_ticks),
            (header::MAGIC, MAGIC),
        ] {
            self.head[at].store(value, Ordering::Relaxed);
        }
    }

    /// Adds one to a counter.
    pub fn count(&self, counter: Counter) {
        self.head[header::COUNTERS + counter as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Stores a counter.
    pub fn set(&self, counter: Counter, value: u64) {
        self.head[header::COUNTERS + counter as usize].store(value, Ordering::Relaxed);
    }

    /// Bytes ever reserved in the ring, and the ring's bytes.
    pub fn written(&self) -> (u64, u64) {
        let tail = self.head[header::TAIL].load(Ordering::Relaxed) & POSITION;
        (tail * UNIT as u64, self.ring.len() as u64 * 8)
    }

    /// Appends an executable mapping; a path longer than [`MAX_PATH`] is cut.
    pub fn mapping(&self, mapping: &MappingWords<'_>) {
        let path = mapping.path.get(..MAX_PATH).unwrap_or(mapping.path);
        let words = [
            mapping.start,
            mapping.end,
            mapping.offset,
            mapping.device,
            mapping.inode,
            path.len() as u64,
        ];
        self.append(kind::MAPPING, words, path);
    }

    /// Appends a stack, of which the first [`MAX_STACK`] bytes are kept.
    pub fn stack(&self, call: &Call, bytes: &[u8]) {
        let kept = bytes.get(..MAX_STACK).unwrap_or(bytes);
        let check = if call.is_check { bit::CHECK } else { 0 };
        let cut = if call.cut || kept.len() < bytes.len() {
            bit::CUT
        } else {
            0
        };
        let words = [
            u64::from(call.site) | check | cut | u64::from(call.tid) << 32,
            call.time,
            call.ip,
            call.sp,
            call.bp,
            kept.len() as u64,
        ];
        self.append(kind::STACK, words, kept);
    }

    fn append(&self, kind: u8, words: [u64; CONTENT], bytes: &[u8]) {
        let units = (HEAD + CONTENT + bytes.len().div_ceil(8)).div_ceil(WORDS_OF_UNIT) as u64;
        let before = self.head[header::TAIL].fetch_add(units + ENTRY, Ordering::Relaxed);
        // Release: a reader that finds a word of this entry also finds that its place was reserved.
        fence(Ordering::Release);
        let first = ((before & POSITION) as usize * WORDS_OF_UNIT) % self.ring.len();
        let (end, start) = self.ring.split_at(first);
        let mut places = start.iter().chain(end);
        let (Some(one), Some(two)) = (places.next(), places.next()) else {
            return;
        };
        let mut sum = Checksum::new(before);
        let mut put = |word: u64| {
            sum = sum.add(word);
            if let Some(place) = places.next() {
                place.store(word, Ordering::Relaxed);
            }
        };
        words.into_iter().for_each(&mut put);
        let (whole, rest) = bytes.as_chunks::<8>();
        for word in whole {
            put(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0u8; 8];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            put(u64::from_le_bytes(last));
        }
        two.store(second(kind, units, sum.value()), Ordering::Relaxed);
        // Release: a reader that finds the position finds the whole entry.
        one.store(before.wrapping_add(1), Ordering::Release);
    }
}
