//! The process's mappings: which addresses are code, and where the memory around an address begins and ends.
//!
//! Two tables are filled in turns from `/proc/self/maps`. A search uses the newest one. If it is replaced twice during a
//! search, the result is discarded.

use super::memory::MapsFile;
use super::python::Candidates;
use crate::clock;
use roctop_ring::sites::{MappingWords, SitesWriter};
use roctop_ring::sync::{AtomicU64, Ordering};

/// Maximum number of executable mappings that are known.
const EXECUTABLES: usize = 8192;
/// Maximum number of all mappings that are known.
const MAPPINGS: usize = 32 * 1024;
/// Reading the list takes at most one of this many parts of the time.
const REST: u64 = 20;
/// Bytes of the list that are read at once: more than the longest line.
pub(super) const TEXT_BYTES: usize = 8192;

/// A line of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Line<'a> {
    mapping: MappingWords<'a>,
    is_executable: bool,
}

/// Parses a line such as `7f12a000-7f12b000 r-xp 00001000 08:01 131 /usr/lib/libm.so.6`.
fn parse(line: &[u8]) -> Option<Line<'_>> {
    let (range, rest) = word(line)?;
    let at = range.iter().position(|byte| *byte == b'-')?;
    let (start, end) = range.split_at_checked(at)?;
    let (rights, rest) = word(rest)?;
    let (offset, rest) = word(rest)?;
    let (device, rest) = word(rest)?;
    let (inode, rest) = word(rest)?;
    let at = device.iter().position(|byte| *byte == b':')?;
    let (major, minor) = device.split_at_checked(at)?;
    Some(Line {
        mapping: MappingWords {
            start: hexadecimal(start)?,
            end: hexadecimal(end.get(1..)?)?,
            offset: hexadecimal(offset)?,
            device: hexadecimal(major)? << 32 | hexadecimal(minor.get(1..)?)?,
            inode: decimal(inode)?,
            path: rest.trim_ascii(),
        },
        is_executable: rights.get(2) == Some(&b'x'),
    })
}

/// The first word of a text, and the rest.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
    text.split_at_checked(end).filter(|(word, _)| !word.is_empty())
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    number(digits, 16)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    number(digits, 10)
}

fn number(digits: &[u8], base: u32) -> Option<u64> {
    let step = |value: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(base)?;
        value.checked_mul(u64::from(base))?.checked_add(u64::from(digit))
    };
    digits.iter().try_fold(0, step).filter(|_| !digits.is_empty())
}

/// Start, end and identity of an executable mapping.
type Executable = [AtomicU64; 3];
/// Start and end of a mapping.
type Range = [AtomicU64; 2];

pub(super) struct Table {
    executables: [Executable; EXECUTABLES],
    mappings: [Range; MAPPINGS],
    executable_count: AtomicU64,
    mapping_count: AtomicU64,
}

fn value(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

impl Table {
    fn executables(&self) -> &[Executable] {
        let count = value(&self.executable_count) as usize;
        self.executables.get(..count).unwrap_or_default()
    }

    #[inline]
    fn code_at(&self, address: u64) -> Option<&Executable> {
        let all = self.executables();
        let after = all.partition_point(|[start, ..]| value(start) <= address);
        let last = after.checked_sub(1).and_then(|at| all.get(at));
        last.filter(|[_, end, _]| address < value(end))
    }

    /// Whether there is code at this address.
    #[inline]
    pub(super) fn is_executable(&self, address: u64) -> bool {
        self.code_at(address).is_some()
    }

    /// Identity of the content at this address; 0 if there is no code.
    pub(super) fn identity(&self, address: u64) -> u64 {
        self.code_at(address).map_or(0, |[.., identity]| value(identity))
    }

    /// Lowest and highest address of code.
    pub(super) fn bounds(&self) -> [u64; 2] {
        match self.executables() {
            [[start, ..], .., [_, end, _]] | [[start, end, _]] => [value(start), value(end)],
            _ => [0; 2],
        }
    }

    /// Start and end of the mapping that contains this address.
    pub(super) fn extent(&self, address: u64) -> Option<[u64; 2]> {
        let count = value(&self.mapping_count) as usize;
        let all = self.mappings.get(..count)?;
        let after = all.partition_point(|[start, _]| value(start) <= address);
        let found = all.get(after.checked_sub(1)?)?.each_ref().map(value);
        (address < found[1]).then_some(found)
    }

    fn has(&self, wanted: [u64; 3]) -> bool {
        let all = self.executables();
        let at = all.partition_point(|[start, ..]| value(start) < wanted[0]);
        all.get(at).is_some_and(|one| one.each_ref().map(value) == wanted)
    }

    fn clear(&self) {
        self.executable_count.store(0, Ordering::Relaxed);
        self.mapping_count.store(0, Ordering::Relaxed);
    }

    fn add(&self, line: &Line<'_>, identity: u64) {
        let of = line.mapping;
        let put = |count: &AtomicU64, words: Option<&[AtomicU64]>, values: &[u64]| {
            if let Some(words) = words {
                words
                    .iter()
                    .zip(values)
                    .for_each(|(word, value)| word.store(*value, Ordering::Relaxed));
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        let at = value(&self.mapping_count) as usize;
        let place = self.mappings.get(at).map(<[AtomicU64; 2]>::as_slice);
        put(&self.mapping_count, place, &[of.start, of.end]);
        if line.is_executable {
            let at = value(&self.executable_count) as usize;
            let place = self.executables.get(at).map(<[AtomicU64; 3]>::as_slice);
            put(&self.executable_count, place, &[of.start, of.end, identity]);
        }
    }
}

/// Identity of a mapping's content.
fn identity(of: &MappingWords<'_>) -> u64 {
    [of.device, of.inode, of.offset].into_iter().fold(1, super::mix)
}

pub(super) struct Mappings {
    /// Number of times that the list was read. Its parity selects the newest table.
    generation: AtomicU64,
    /// 1 while a thread reads the list.
    reading: AtomicU64,
    /// When the list was read, and how long that took, ticks.
    read: AtomicU64,
    cost: AtomicU64,
    /// [`super::unloaded`] when the list was last read.
    unloaded: AtomicU64,
    /// 1 if a reading was refused because the last one was too recent.
    due: AtomicU64,
    /// Bytes of the stack file when all mappings were last written to it.
    written: AtomicU64,
    /// Start and end of the first thread's stack.
    main_stack: [AtomicU64; 2],
    interpreters: Candidates,
    tables: [Table; 2],
}

impl Mappings {
    /// The newest table, and its number.
    pub(super) fn newest(&self) -> (&Table, u64) {
        let generation = self.generation.load(Ordering::Acquire);
        let [even, odd] = &self.tables;
        (if generation.is_multiple_of(2) { even } else { odd }, generation)
    }

    /// Whether the table with this number was not replaced since.
    pub(super) fn is_whole(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) <= generation + 1
    }

    /// Files that may be or contain an interpreter of Python.
    pub(super) fn interpreters(&self) -> &Candidates {
        &self.interpreters
    }

    /// Whether a reading was refused, and none was made since.
    pub(super) fn is_due(&self) -> bool {
        value(&self.due) != 0
    }

    /// End of the first thread's stack if `sp` is on it.
    pub(super) fn main_stack_end(&self, sp: u64) -> Option<u64> {
        /// The system places nothing else so close to that stack.
        const MIN_GAP: u64 = 120 << 20;
        let end = value(&self.main_stack[1]);
        (end.saturating_sub(MIN_GAP)..end).contains(&sp).then_some(end)
    }

    /// Whether the list was read so long ago that a library may have taken another's place, about a second.
    pub(super) fn is_old(&self) -> bool {
        const MAX_AGE: u64 = 1 << 31;
        clock::now().wrapping_sub(value(&self.read)) > MAX_AGE
    }

    /// Whether a library was unloaded since the list was read: another one may have taken its place.
    pub(super) fn has_unloaded(&self) -> bool {
        super::unloaded() != value(&self.unloaded)
    }

    /// Whether so much was written since that the mappings are about to be overwritten in the stack file.
    pub(super) fn is_overwritten(&self, writer: SitesWriter<'_>) -> bool {
        let (written, capacity) = writer.written();
        written.wrapping_sub(value(&self.written)) > capacity / 2
    }

    /// Whether a word of a stack points into a mapping that is not known.
    pub(super) fn is_outdated(&self, stack: &[u8]) -> bool {
        /// Where the system places libraries and memory that it chooses a place for. Below, most words are numbers.
        const ADDRESSES: std::ops::Range<u64> = 0x5000_0000_0000..0x7fff_ffff_f000;
        let (table, _) = self.newest();
        let mut words = stack.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut last = [0; 2];
        words.any(|word| {
            if !ADDRESSES.contains(&word) || (last[0]..last[1]).contains(&word) {
                return false;
            }
            match table.extent(word) {
                Some(found) => last = found,
                None => return true,
            }
            false
        })
    }

    /// Reads the list unless another thread does it. Unless it is `urgent`, or mappings are about to be overwritten in the
    /// stack file, it is not read again a moment after the last time. Writes new executable mappings to the stack file.
    /// `text` is a buffer.
    pub(super) fn refresh(&self, text: &mut [u8; TEXT_BYTES], writer: SitesWriter<'_>, is_urgent: bool) -> bool {
        let now = clock::now();
        let is_early = now.wrapping_sub(value(&self.read)) < REST.saturating_mul(value(&self.cost));
        // A reading during which the thread lost its core forbids further ones for long. Half of a stack file takes longer
        // to write than the reading that it causes.
        let is_urgent = is_urgent || self.is_overwritten(writer);
        if is_early && !is_urgent || self.reading.swap(1, Ordering::Acquire) != 0 {
            self.due.store(1, Ordering::Relaxed);
            return false;
        }
        self.due.store(0, Ordering::Relaxed);
        let unloaded = super::unloaded();
        let (old, generation) = self.newest();
        let [even, odd] = &self.tables;
        let new = if generation.is_multiple_of(2) { odd } else { even };
        let is_all = generation == 0 || self.is_overwritten(writer);
        let written = value(&self.written);
        if is_all {
            self.written.store(writer.written().0, Ordering::Relaxed);
        }
        new.clear();
        let mut is_first = true;
        let is_read = each_line(text, |line| {
            let Some(line) = parse(line) else { return };
            if line.mapping.offset == 0 && line.mapping.path.starts_with(b"/") {
                let of = &line.mapping;
                self.interpreters.consider(of.start, of.path, is_first);
                is_first = false;
            }
            if line.mapping.path == b"[stack]" {
                let [start, end] = &self.main_stack;
                start.store(line.mapping.start, Ordering::Relaxed);
                end.store(line.mapping.end, Ordering::Relaxed);
            }
            let identity = identity(&line.mapping);
            let words = [line.mapping.start, line.mapping.end, identity];
            if line.is_executable && (is_all || !old.has(words)) {
                writer.mapping(&line.mapping);
            }
            new.add(&line, identity);
        });
        let end = clock::now();
        self.cost.store(end.wrapping_sub(now), Ordering::Relaxed);
        self.read.store(end, Ordering::Relaxed);
        if is_read {
            self.unloaded.store(unloaded, Ordering::Relaxed);
            // Release: pairs with the acquire in `newest`.
            self.generation.store(generation + 1, Ordering::Release);
        } else {
            self.written.store(written, Ordering::Relaxed);
        }
        self.reading.store(0, Ordering::Release);
        is_read
    }
}

/// Calls `take` with each line of the list; false if there is none.
fn each_line(text: &mut [u8; TEXT_BYTES], mut take: impl FnMut(&[u8])) -> bool {
    let Some(file) = MapsFile::open() else { return false };
    let (mut kept, mut count) = (0, 0);
    loop {
        let got = text.get_mut(kept..).map_or(0, |rest| file.read(rest));
        if got == 0 {
            return count > 0;
        }
        let whole = kept + got;
        let mut from = 0;
        while let Some(rest) = text.get(from..whole)
            && let Some(end) = rest.iter().position(|byte| *byte == b'\n')
        {
            take(rest.get(..end).unwrap_or_default());
            count += 1;
            from += end + 1;
        }
        text.copy_within(from..whole, 0);
        kept = whole - from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::sites::Call;

    #[test]
    fn lines_of_the_list_are_parsed() {
        let line = b"7f12a000-7f12b000 r-xp 00001000 08:01 131       /usr/lib/a b.so (deleted)";
        let expected = Line {
            mapping: MappingWords {
                start: 0x7f12_a000,
                end: 0x7f12_b000,
                offset: 0x1000,
                device: 8 << 32 | 1,
                inode: 131,
                path: b"/usr/lib/a b.so (deleted)",
            },
            is_executable: true,
        };
        assert_eq!(parse(line), Some(expected));
        let anonymous = parse(b"7f12a000-7f12b000 rw-p 00000000 00:00 0 ").unwrap_or_default();
        assert!(!anonymous.is_executable && anonymous.mapping.path.is_empty());
        assert_eq!(anonymous.mapping.end, 0x7f12_b000);
        for line in [b"" as &[u8], b"7f12a000 r-xp", b"x-y r-xp 0 0:0 0", b"1-2 r-xp 0 00 0"] {
            assert_eq!(parse(line), None);
        }
    }

    fn zeros(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    fn mappings() -> Option<&'static Mappings> {
        // SAFETY: the struct consists of atomic words.
        #[expect(unsafe_code, reason = "memory for a struct that is too large for the stack")]
        unsafe {
            super::super::memory::zeroed::<Mappings>()
        }
    }

    #[test]
    fn code_stack_and_heap_of_this_process_are_told_apart() {
        let (head, ring) = (zeros(512), zeros(64 * 1024));
        let (Some(mappings), Some(writer)) = (mappings(), SitesWriter::new(&head, &ring)) else {
            return;
        };
        let mut text = [0; TEXT_BYTES];
        assert!(mappings.refresh(&mut text, writer, false));
        let written = writer.written().0;
        assert!(written > 0);
        let (table, generation) = mappings.newest();
        let here = &raw const text as u64;
        let code = parse as *const () as u64;
        assert!(table.is_executable(code) && !table.is_executable(here) && !table.is_executable(0));
        assert!(
            table
                .extent(here)
                .is_some_and(|[start, end]| (start..end).contains(&here))
        );
        assert_eq!(table.extent(8), None);
        assert!(
            !mappings.is_due() && !mappings.refresh(&mut text, writer, false),
            "it was read a moment ago"
        );
        assert!(mappings.is_due() && mappings.is_whole(generation));
        mappings.cost.store(0, Ordering::Relaxed);
        assert!(mappings.refresh(&mut text, writer, false));
        assert_eq!(writer.written().0, written, "nothing has changed");
        assert!(!mappings.is_due() && mappings.newest().0.is_executable(code));
    }

    #[test]
    fn mappings_are_written_again_before_they_are_overwritten() {
        /// A reading that took so long that no other may follow.
        const VERY_LONG: u64 = u64::MAX / REST;
        let (head, ring) = (zeros(512), zeros(64 * 1024));
        let (Some(mappings), Some(writer)) = (mappings(), SitesWriter::new(&head, &ring)) else {
            return;
        };
        let mut text = [0; TEXT_BYTES];
        assert!(mappings.refresh(&mut text, writer, false));
        let all = writer.written().0;
        mappings.cost.store(VERY_LONG, Ordering::Relaxed);
        while !mappings.is_overwritten(writer) {
            writer.stack(&Call::default(), &[0; 4096]);
        }
        let before = writer.written().0;
        assert!(mappings.refresh(&mut text, writer, false));
        assert!(writer.written().0 - before >= all);
        mappings.cost.store(VERY_LONG, Ordering::Relaxed);
        assert!(!mappings.refresh(&mut text, writer, false), "once is enough");
    }
}
