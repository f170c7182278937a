//! Reads stack files while they are written, or afterwards. The file may contain anything.

use super::{
    CONTENT, COUNTERS, Call, Checksum, Counters, ENTRY, HEAD, MAGIC, MAX_FILE, MAX_PATH, MAX_STACK, MAX_UNITS, PAGE,
    POSITION, PythonFrame, UNIT, bit, header, kind, python, second,
};
use crate::bytes::Bytes;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Number of fruitless calls after which an entry that was begun and not completed is given up: its writer was
/// interrupted for long, or killed.
const MAX_FRUITLESS_CALLS: u32 = 64;
/// Bytes read at once while searching.
const CHUNK: usize = 64 << 10;

/// An executable mapping of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
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
    pub path: Vec<u8>,
}

/// A copy of a stack at a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Whose, and where.
    pub call: Call,
    /// Its bytes from `call.sp` upward.
    pub bytes: Vec<u8>,
}

/// Python code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// Its number.
    pub id: u64,
    /// Minor version of the CPython that runs it: 9 for 3.9.
    pub minor: u8,
    /// Line of its definition.
    pub first_line: u32,
    /// Name of its file.
    pub file: CodeText,
    /// Qualified name, of earlier versions the name.
    pub name: CodeText,
    /// The beginning of its table of lines.
    pub lines: Vec<u8>,
}

/// A text of Python code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeText {
    /// Bytes of a character: 1, 2 or 4.
    pub width: u8,
    /// Its characters.
    pub bytes: Vec<u8>,
}

/// The Python frames of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonStack {
    /// Number of the site.
    pub site: u16,
    /// Kernel thread id.
    pub tid: u32,
    /// When, ticks: that of the copied stack.
    pub time: u64,
    /// There are more frames than these.
    pub cut: bool,
    /// First address of the function that evaluates frames, and the one after it; 0 if it is not needed.
    pub evaluator: [u64; 2],
    /// Frames, innermost first.
    pub frames: Vec<PythonFrame>,
}

/// An entry of a stack file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A mapping, or a change of one. It replaces earlier ones that it overlaps.
    Mapping(Mapping),
    /// A stack.
    Stack(Stack),
    /// Python code, before the first frame in it.
    Code(Code),
    /// The Python frames of a stack, before it.
    Python(PythonStack),
}

/// What a reader did not get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Bytes skipped.
    pub bytes: u64,
    /// Entries skipped, known when a later one is read.
    pub entries: u64,
}

/// Reads the entries of a stack file in order. As an iterator it ends when no further entry is complete; later calls
/// may give more.
#[derive(Debug)]
pub struct Reader<B: Bytes = File> {
    bytes: B,
    capacity: u64,
    /// Unit of the next entry, in all that were ever reserved.
    position: u64,
    /// Ordinal of the next entry, modulo 2^24.
    ordinal: u64,
    /// Whether `position` may be in the middle of an entry.
    is_searching: bool,
    fruitless: u32,
    lost: Lost,
}

/// What is at a position.
enum Found {
    /// A whole entry, its units and its ordinal.
    Entry(Entry, u64, u64),
    /// Nothing complete.
    Nothing,
    /// A complete entry whose content is damaged or unknown.
    Damaged,
    /// It was overwritten meanwhile.
    Overwritten,
}

impl Reader<File> {
    /// Opens a stack file.
    ///
    /// Errors: it is missing, is not a regular file, or is no stack file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(invalid());
        }
        Self::of(file)
    }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a stack file")
}

impl<B: Bytes> Reader<B> {
    /// Reads a stack file from `bytes`.
    ///
    /// Errors: it cannot be read, or is no stack file.
    pub fn of(bytes: B) -> io::Result<Self> {
        let mut reader = Self {
            bytes,
            capacity: 0,
            position: 0,
            ordinal: 0,
            is_searching: false,
            fruitless: 0,
            lost: Lost::default(),
        };
        let capacity = reader.word(header::CAPACITY).unwrap_or(0);
        let is_whole = (UNIT as u64..=(MAX_FILE - PAGE) as u64).contains(&capacity)
            && capacity.is_multiple_of(UNIT as u64)
            && reader.bytes.size()? >= PAGE as u64 + capacity;
        if reader.word(header::MAGIC) != Some(MAGIC) || !is_whole {
            return Err(invalid());
        }
        reader.capacity = capacity / UNIT as u64;
        Ok(reader)
    }

    /// Process id and start time in clock ticks since boot, as the file says.
    pub fn process(&self) -> (u32, u64) {
        let word = |at| self.word(at).unwrap_or(0);
        (word(header::PID) as u32, word(header::START))
    }

    /// What the process counted.
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        for (at, value) in counters.0.iter_mut().enumerate().take(COUNTERS) {
            *value = self.word(header::COUNTERS + at).unwrap_or(0);
        }
        counters
    }

    /// What was overwritten before it was read, or was never completed.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// The process has ended: entries that are not complete never will be.
    pub fn give_up_unfinished(&mut self) {
        self.fruitless = MAX_FRUITLESS_CALLS;
    }

    fn word(&self, at: usize) -> Option<u64> {
        let mut raw = [0u8; 8];
        let got = self.bytes.read_at(at as u64 * 8, &mut raw).ok()?;
        (got == 8).then_some(u64::from_le_bytes(raw))
    }

    /// Copies from the ring, from unit `position` on; false if the file has become shorter.
    fn copy(&self, position: u64, into: &mut [u8]) -> bool {
        let mut from = position % self.capacity * UNIT as u64;
        let mut rest = into;
        while !rest.is_empty() {
            let until = (self.capacity * UNIT as u64 - from).min(rest.len() as u64) as usize;
            let (now, later) = rest.split_at_mut(until);
            match self.bytes.read_at(PAGE as u64 + from, now) {
                Ok(got) if got == now.len() => {}
                _ => return false,
            }
            (rest, from) = (later, 0);
        }
        true
    }

    /// Units ever reserved, and the ordinal of the next entry.
    fn tail(&self) -> Option<(u64, u64)> {
        let tail = self.word(header::TAIL)?;
        Some((tail & POSITION, tail / ENTRY))
    }

    /// Whether what was copied from `position` was not overwritten during the copy.
    fn is_unchanged(&self, position: u64) -> bool {
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        self.tail().is_some_and(|(tail, _)| tail <= position + self.capacity)
    }

    fn look(&self, tail: u64) -> Found {
        let mut raw = [0u8; HEAD * 8];
        if !self.copy(self.position, &mut raw) {
            return Found::Nothing;
        }
        let [first, head] = words_of(&raw);
        let units = head >> 8 & 0xff_ffff;
        let sequence = first.wrapping_sub(1);
        let is_it = sequence & POSITION == self.position;
        if !is_it || units < HEAD as u64 || units > MAX_UNITS || self.position + units > tail {
            return if self.is_unchanged(self.position) {
                Found::Nothing
            } else {
                Found::Overwritten
            };
        }
        let mut content = vec![0u8; units as usize * UNIT];
        if !self.copy(self.position, &mut content) {
            return Found::Nothing;
        }
        if !self.is_unchanged(self.position) {
            return Found::Overwritten;
        }
        match decode(sequence, head, &content[HEAD * 8..]) {
            Some(entry) => Found::Entry(entry, units, sequence / ENTRY),
            None => Found::Damaged,
        }
    }

    /// Skips to the next unit that looks like an entry's first, at most up to `tail`.
    fn search(&mut self, tail: u64) {
        let mut chunk = vec![0u8; CHUNK];
        while self.position < tail {
            let units = (tail - self.position).min((CHUNK / UNIT) as u64);
            let part = &mut chunk[..units as usize * UNIT];
            if !self.copy(self.position, part) {
                return;
            }
            let is_first = |(at, raw): (u64, &[u8; UNIT])| {
                let [first, _] = words_of(raw);
                first.wrapping_sub(1) & POSITION == self.position + at
            };
            let found = (0..units).zip(part.as_chunks::<UNIT>().0).position(is_first);
            let skipped = found.map_or(units, |at| at as u64);
            self.position += skipped;
            self.lost.bytes += skipped * UNIT as u64;
            if found.is_some() {
                return;
            }
        }
    }

    fn skip_one(&mut self) {
        self.position += 1;
        self.lost.bytes += UNIT as u64;
        self.is_searching = true;
    }
}

impl<B: Bytes> Iterator for Reader<B> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        // Bounded, because a hostile file may change with every read.
        for _ in 0..2 * self.capacity + 16 {
            let (tail, ordinal) = self.tail()?;
            if tail <= self.position {
                if self.is_searching && tail == self.position {
                    // All of the rest was lost.
                    self.lost.entries += ordinal.wrapping_sub(self.ordinal) & (u64::MAX / ENTRY);
                    (self.ordinal, self.is_searching) = (ordinal, false);
                }
                return None;
            }
            let oldest = tail.saturating_sub(self.capacity);
            if self.position < oldest {
                self.lost.bytes += (oldest - self.position) * UNIT as u64;
                (self.position, self.is_searching) = (oldest, true);
            }
            if self.is_searching {
                self.search(tail);
                if self.position == tail {
                    continue;
                }
            }
            match self.look(tail) {
                Found::Entry(entry, units, ordinal) => {
                    self.position += units;
                    self.lost.entries += ordinal.wrapping_sub(self.ordinal) & (u64::MAX / ENTRY);
                    self.ordinal = ordinal.wrapping_add(1) & (u64::MAX / ENTRY);
                    (self.is_searching, self.fruitless) = (false, 0);
                    return Some(entry);
                }
                Found::Overwritten => {}
                Found::Damaged => self.skip_one(),
                Found::Nothing if self.is_searching || self.fruitless >= MAX_FRUITLESS_CALLS => self.skip_one(),
                Found::Nothing => {
                    self.fruitless += 1;
                    return None;
                }
            }
        }
        None
    }
}

pub(super) fn words_of<const N: usize, const B: usize>(raw: &[u8; B]) -> [u64; N] {
    let mut words = [0; N];
    for (to, from) in words.iter_mut().zip(raw.as_chunks::<8>().0) {
        *to = u64::from_le_bytes(*from);
    }
    words
}

/// The entry with this head and content; `None` if it is damaged or of an unknown kind.
fn decode(sequence: u64, head: u64, content: &[u8]) -> Option<Entry> {
    let (raw, rest) = content.split_first_chunk::<{ CONTENT * 8 }>()?;
    let words: [u64; CONTENT] = words_of(raw);
    let length = usize::try_from(words[CONTENT - 1]).ok()?;
    let bytes = rest.get(..length)?;
    let padded = rest.get(..length.next_multiple_of(8))?;
    let sum = words.iter().fold(Checksum::new(sequence), |sum, word| sum.add(*word));
    let all = padded.as_chunks::<8>().0.iter();
    let sum = all.fold(sum, |sum, word| sum.add(u64::from_le_bytes(*word)));
    let units = head >> 8 & 0xff_ffff;
    let kind = head as u8;
    if head != second(kind, units, sum.value()) {
        return None;
    }
    let [first, a, b, c, d, _] = words;
    match kind {
        kind::MAPPING if length <= MAX_PATH => Some(Entry::Mapping(Mapping {
            start: first,
            end: a,
            offset: b,
            device: c,
            inode: d,
            path: bytes.to_vec(),
        })),
        kind::STACK if length <= MAX_STACK => Some(Entry::Stack(Stack {
            call: Call {
                site: first as u16,
                is_check: first & bit::CHECK != 0,
                cut: first & bit::CUT != 0,
                tid: (first >> 32) as u32,
                time: a,
                ip: b,
                sp: c,
                bp: d,
            },
            bytes: bytes.to_vec(),
        })),
        kind::CODE => python::code(&words, bytes).map(Entry::Code),
        kind::PYTHON => python::frames(&words, bytes).map(Entry::Python),
        _ => None,
    }
}
