//! DWARF of one file: which unit has an address, then functions, inlined functions and lines of that unit.
//!
//! Units are parsed when one of their addresses is named, and the least recently used are dropped. Between calls a file's
//! DWARF occupies its small sections, its index and its units in memory, each with a limit below. `.debug_info`,
//! `.debug_line` and `.debug_str`, which are most of a file, are read piece by piece.
//!
//! Not read: split units (`.dwo`), supplementary files (`dwz -m`), type units, zstd. Names then come from symbols.

mod lines;
mod unit;

use self::lines::NO_FILE;
use self::unit::{Described, Next, Unit, Work};
use crate::demangle::demangle;
use crate::elf::{Elf, u32_at, u64_at};
use crate::names::Named;
use gimli::{
    AttributeValue, DebugAddr, DebugAddrBase, DebugAddrIndex, DebugRngListsIndex, EndianSlice, LittleEndian,
    RangeListsOffset,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Sections that are held completely: range lists, indexed addresses and strings, compressed sections; bytes.
const MAX_SECTIONS: u64 = 80 << 20;
/// Units of a file.
const MAX_UNITS: usize = 1 << 18;
/// Address ranges of all units, 16 bytes each.
const MAX_RANGES: usize = 3 << 20;
/// Units in memory, bytes. The one in use may exceed it.
const MAX_UNIT_BYTES: usize = 48 << 20;
/// A unit with its lines, bytes. Larger ones are not parsed: their names come from symbols.
const MAX_UNIT: u64 = 64 << 20;
/// The start of a unit that has its first entry; also what is read of an entry in another unit.
const HEAD: u64 = 4 << 10;
/// Starts of units in memory, for entries that are referred to from other units.
const MAX_HEADS: usize = 256;
/// Entries that are read in searches for inlined functions, bytes, all searches in a file together. 10 000 searches in
/// functions of C++ read some 100 MB.
const MAX_SEARCHED: u64 = 8 << 30;
/// Abbreviations of a unit, bytes; in memory they take up to thirty times as much.
const MAX_ABBREVIATIONS: u64 = 512 << 10;
/// Length of a name or path, bytes.
const MAX_STRING: u64 = 64 << 10;
/// Steps in which a file's index is made: bytes of abbreviations, ranges.
const INDEX_WORK: u64 = 512 << 20;
/// Ranges that overlap an address and begin before the one that is found.
const MAX_OVERLAPPING: usize = 64;
/// References from one entry to another that has its name.
const MAX_REFERENCES: usize = 8;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A section: a piece of the file, or in memory if it is compressed.
#[derive(Debug)]
enum Bytes {
    File { offset: u64, len: u64 },
    Memory(Vec<u8>),
}

impl Bytes {
    fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// At most `len` bytes at `at`; fewer at the section's end.
    fn read(&self, elf: &Elf, at: u64, len: u64) -> Vec<u8> {
        let len = len.min(self.len().saturating_sub(at));
        match self {
            Self::File { offset, .. } => elf.read_some(offset.saturating_add(at), len),
            Self::Memory(bytes) => bytes
                .get(at as usize..)
                .map_or_else(Vec::new, |rest| rest[..len as usize].to_vec()),
        }
    }
}

/// Opens sections within one limit of memory.
struct Sections<'a> {
    elf: &'a Elf,
    left: u64,
}

impl Sections<'_> {
    /// A section that is read piece by piece.
    fn pieces(&mut self, name: &str) -> Option<Bytes> {
        let Some(section) = self.elf.section(name) else {
            return Some(Bytes::File { offset: 0, len: 0 });
        };
        if Elf::is_compressed(section) {
            let bytes = self.elf.contents(section, self.left)?;
            self.left -= bytes.len() as u64;
            return Some(Bytes::Memory(bytes));
        }
        Some(Bytes::File {
            offset: section.offset,
            len: section.len.min(self.elf.len),
        })
    }

    /// A section that is held.
    fn held(&mut self, name: &str) -> Option<Vec<u8>> {
        let Some(section) = self.elf.section(name) else {
            return Some(Vec::new());
        };
        let bytes = self.elf.contents(section, self.left)?;
        self.left -= bytes.len() as u64;
        Some(bytes)
    }
}

/// Addresses `begin..begin + len` belong to the unit with this number.
#[derive(Clone, Copy, Debug)]
struct Range {
    begin: u64,
    len: u32,
    unit: u32,
}

/// Functions at an address.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    pub(crate) named: Vec<Named>,
    /// Whether the name of the last, which is not inlined, is a symbol and thus complete.
    pub(crate) has_symbol: bool,
}

/// Position of a unit in `.debug_info`.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    len: u64,
}

/// DWARF of one file.
#[derive(Debug)]
pub(crate) struct Dwarf {
    info: Bytes,
    abbreviations: Bytes,
    line: Bytes,
    str: Bytes,
    line_str: Bytes,
    ranges: Vec<u8>,
    rnglists: Vec<u8>,
    addr: Vec<u8>,
    str_offsets: Vec<u8>,
    /// Sorted by position.
    units: Vec<Place>,
    /// Sorted by first address.
    index: Vec<Range>,
    parsed: HashMap<u32, (Arc<Unit>, u64)>,
    parsed_bytes: usize,
    heads: HashMap<u32, Arc<Unit>>,
    searched: Work,
    /// Counts uses of units.
    uses: u64,
}

/// Length of a unit, or of a line program, with the length itself; the second is the size of the length, 4 or 12.
fn unit_len(head: &[u8]) -> Option<(u64, usize)> {
    match u32_at(head, 0)? {
        0xffff_ffff => Some((u64_at(head, 4)?.checked_add(12)?, 12)),
        // Reserved.
        0xffff_fff0.. => None,
        len => Some((u64::from(len) + 4, 4)),
    }
}

/// Makes a unit end after these bytes.
fn shorten(head: &mut [u8], size_of_length: usize) {
    let len = (head.len() - size_of_length) as u64;
    if size_of_length == 4 {
        head[..4].copy_from_slice(&(len as u32).to_le_bytes());
    } else {
        head[4..12].copy_from_slice(&len.to_le_bytes());
    }
}

/// Length of the table of abbreviations at the start of `bytes`, with its end mark.
fn abbreviations_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut number = || -> Option<u64> {
        let mut value = 0u64;
        for shift in 0.. {
            let byte = *bytes.get(at)?;
            at += 1;
            if shift < 9 {
                value |= u64::from(byte & 0x7f) << (7 * shift);
            } else if byte & 0x7f != 0 {
                value |= 1 << 63;
            }
            if byte < 0x80 {
                break;
            }
        }
        Some(value)
    };
    while number()? != 0 {
        number()?;
        // Whether it has children: one byte, which is below 0x80 in any valid table.
        number()?;
        loop {
            let (name, form) = (number()?, number()?);
            if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                number()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
    }
    Some(at)
}

impl Dwarf {
    /// Opens the DWARF of a file and makes the index of its units; `None` if it has none, or more than the limits allow.
    pub(crate) fn open(elf: &Elf) -> Option<Self> {
        elf.section(".debug_info")?;
        let mut sections = Sections {
            elf,
            left: MAX_SECTIONS,
        };
        let mut dwarf = Self {
            info: sections.pieces(".debug_info")?,
            abbreviations: sections.pieces(".debug_abbrev")?,
            line: sections.pieces(".debug_line")?,
            str: sections.pieces(".debug_str")?,
            line_str: sections.pieces(".debug_line_str")?,
            ranges: sections.held(".debug_ranges")?,
            rnglists: sections.held(".debug_rnglists")?,
            addr: sections.held(".debug_addr")?,
            str_offsets: sections.held(".debug_str_offsets")?,
            units: Vec::new(),
            index: Vec::new(),
            parsed: HashMap::new(),
            parsed_bytes: 0,
            heads: HashMap::new(),
            searched: Work(MAX_SEARCHED),
            uses: 0,
        };
        dwarf.make_index(elf);
        Some(dwarf)
    }

    /// What is in memory, bytes.
    pub(crate) fn bytes(&self) -> usize {
        let compressed = [&self.info, &self.abbreviations, &self.line, &self.str, &self.line_str];
        let held = [&self.ranges, &self.rnglists, &self.addr, &self.str_offsets];
        let in_memory = compressed.into_iter().map(|bytes| match bytes {
            Bytes::Memory(bytes) => bytes.len(),
            Bytes::File { .. } => 0,
        });
        in_memory.chain(held.into_iter().map(Vec::len)).sum::<usize>()
            + self.units.len() * size_of::<Place>()
            + self.index.len() * size_of::<Range>()
            + self.parsed_bytes
            + self.heads.len() * 4 * HEAD as usize
    }

    fn make_index(&mut self, elf: &Elf) {
        let (mut at, mut work) = (0, Work(INDEX_WORK));
        // Consecutive units often share their abbreviations.
        let mut last = None;
        while at < self.info.len() && self.units.len() < MAX_UNITS {
            let mut head = self.info.read(elf, at, HEAD);
            let Some((len, size)) = unit_len(&head) else { break };
            if len > self.info.len() - at || len <= size as u64 {
                break;
            }
            let number = self.units.len() as u32;
            self.units.push(Place { offset: at, len });
            head.truncate(len as usize);
            if work.spend(64) {
                shorten(&mut head, size);
                let added = self.add_unit(elf, number, head, &mut last, &mut work);
                if added.is_none() && len > HEAD && len <= MAX_UNIT {
                    // A first entry with long strings in it.
                    let mut head = self.info.read(elf, at, (16 * HEAD).min(len));
                    shorten(&mut head, size);
                    self.add_unit(elf, number, head, &mut last, &mut work);
                }
            }
            at += len;
        }
        self.index.sort_unstable_by_key(|range| range.begin);
        self.index.shrink_to_fit();
    }

    /// Adds the ranges of a unit to the index.
    fn add_unit(
        &mut self,
        elf: &Elf,
        number: u32,
        head: Vec<u8>,
        last: &mut Option<(u64, Arc<gimli::Abbreviations>)>,
        work: &mut Work,
    ) -> Option<()> {
        let unit = Unit::open(self, elf, head, last, work)?;
        let mut found = Vec::new();
        let index_len = self.index.len();
        self.ranges_of(&unit, &unit.root_ranges, work, |begin, end| {
            if index_len + found.len() < MAX_RANGES {
                found.push((begin, end));
            }
        });
        found.sort_unstable();
        for (begin, end) in found {
            if let Some(last) = self.index.last_mut()
                && last.unit == number
                && last.begin + u64::from(last.len) == begin
                && let Ok(len) = u32::try_from(end - last.begin)
            {
                last.len = len;
                continue;
            }
            self.index.push(Range {
                begin,
                len: u32::try_from(end - begin).unwrap_or(u32::MAX),
                unit: number,
            });
        }
        Some(())
    }

    /// Numbers of the units that may have this address, the most likely one first.
    fn units_at(&self, address: u64) -> Vec<u32> {
        let after = self.index.partition_point(|range| range.begin <= address);
        let near = self.index[..after].iter().rev().take(MAX_OVERLAPPING);
        let mut found: Vec<u32> = near
            .filter(|range| address - range.begin < u64::from(range.len))
            .map(|range| range.unit)
            .collect();
        found.dedup();
        found.truncate(4);
        found
    }

    /// A key by which addresses are best sorted: those of a unit together.
    pub(crate) fn sort_key(&self, address: u64) -> u32 {
        self.units_at(address).first().copied().unwrap_or(u32::MAX)
    }

    /// The unit with this number, parsed.
    fn unit(&mut self, elf: &Elf, number: u32) -> Option<Arc<Unit>> {
        self.uses += 1;
        let uses = self.uses;
        if let Some((unit, last_use)) = self.parsed.get_mut(&number) {
            *last_use = uses;
            return Some(Arc::clone(unit));
        }
        let place = *self.units.get(number as usize)?;
        if place.len > MAX_UNIT {
            return None;
        }
        let bytes = self.info.read(elf, place.offset, place.len);
        let mut unit = Unit::open(self, elf, bytes, &mut None, &mut Work(INDEX_WORK))?;
        unit.parse(self, elf);
        self.parsed_bytes += unit.bytes_in_memory();
        let unit = Arc::new(unit);
        self.parsed.insert(number, (Arc::clone(&unit), uses));
        while self.parsed_bytes > MAX_UNIT_BYTES && self.parsed.len() > 1 {
            let others = self.parsed.iter().filter(|(other, _)| **other != number);
            let Some((oldest, _)) = others.min_by_key(|(_, (_, last_use))| *last_use) else {
                break;
            };
            if let Some((dropped, _)) = self.parsed.remove(&oldest.clone()) {
                self.parsed_bytes -= dropped.bytes_in_memory();
            }
        }
        Some(unit)
    }

    /// The entry at this position of the unit with this number, without parsing the unit.
    fn entry_in(&mut self, elf: &Elf, number: u32, entry: u64) -> Option<Described> {
        let place = *self.units.get(number as usize)?;
        let head = if let Some(head) = self.heads.get(&number) {
            Arc::clone(head)
        } else {
            let mut bytes = self.info.read(elf, place.offset, HEAD.min(place.len));
            let (_, size) = unit_len(&bytes)?;
            shorten(&mut bytes, size);
            let head = Arc::new(Unit::open(self, elf, bytes, &mut None, &mut Work(INDEX_WORK))?);
            if self.heads.len() >= MAX_HEADS {
                self.heads.clear();
            }
            self.heads.insert(number, Arc::clone(&head));
            head
        };
        [HEAD, 2 * MAX_STRING].into_iter().find_map(|len| {
            let len = len.min(place.len.checked_sub(entry)?);
            let bytes = self.info.read(elf, place.offset.checked_add(entry)?, len);
            head.describe_bytes(self, elf, &bytes)
        })
    }

    /// The functions at an address, the innermost inlined one first; empty if no unit has it.
    pub(crate) fn name(&mut self, elf: &Elf, address: u64) -> Functions {
        let mut line_only = Functions::default();
        for number in self.units_at(address) {
            let Some(unit) = self.unit(elf, number) else { continue };
            let found = self.name_in(elf, &unit, address);
            if found.named.iter().any(|named| !named.function.is_empty()) {
                return found;
            }
            if line_only.named.is_empty() {
                line_only = found;
            }
        }
        line_only
    }

    fn name_in(&mut self, elf: &Elf, unit: &Arc<Unit>, address: u64) -> Functions {
        // Taken, because the search borrows the rest.
        let mut searched = std::mem::replace(&mut self.searched, Work(0));
        let chain = unit.chain(self, address, &mut searched);
        self.searched = searched;
        let (mut file, mut line) = unit.lines.at(address);
        if chain.is_empty() && file == NO_FILE {
            return Functions::default();
        }
        let (mut frames, mut has_symbol) = (Vec::new(), false);
        for call in chain.iter().rev() {
            let (function, is_symbol) = self.function(elf, unit, call.entry);
            frames.push((function, file, line));
            (file, line) = (call.file, call.line);
            has_symbol = is_symbol;
        }
        if chain.is_empty() {
            frames.push((String::new(), file, line));
        }
        let files: Vec<u32> = frames.iter().map(|frame| frame.1).collect();
        let paths = unit.lines.paths(self, elf, unit, &files);
        let named = frames.into_iter().zip(paths);
        let named = named.map(|((function, _, line), file)| Named {
            function: demangle(&function),
            file,
            line,
            distance: 0,
        });
        Functions {
            named: named.collect(),
            has_symbol,
        }
    }

    /// The symbol of the function at this position of a unit, following its references, and true; else its name.
    fn function(&mut self, elf: &Elf, unit: &Arc<Unit>, entry: usize) -> (String, bool) {
        let mut described = unit.describe(self, elf, entry);
        // The number of another unit that has the entry.
        let mut other = None;
        let mut name = String::new();
        for _ in 0..MAX_REFERENCES {
            let Some(found) = described else { break };
            if let Some(symbol) = found.symbol {
                return (symbol, true);
            }
            if name.is_empty() {
                name = found.name.unwrap_or_default();
            }
            described = match (found.next, other) {
                (Some(Next::Here(entry)), None) => unit.describe(self, elf, entry),
                (Some(Next::Here(entry)), Some(number)) => self.entry_in(elf, number, entry as u64),
                (Some(Next::At(offset)), _) => {
                    let after = self.units.partition_point(|place| place.offset <= offset);
                    let number = after.saturating_sub(1);
                    other = Some(number as u32);
                    let begin = self.units.get(number).map_or(0, |place| place.offset);
                    self.entry_in(elf, number as u32, offset.saturating_sub(begin))
                }
                (None, _) => break,
            };
        }
        (name, false)
    }

    /// The text at a position of a section of strings.
    fn text(elf: &Elf, section: &Bytes, at: u64) -> Option<String> {
        let mut len = 256;
        loop {
            let bytes = section.read(elf, at, len);
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                return Some(String::from_utf8_lossy(&bytes[..end]).into_owned());
            }
            if len >= MAX_STRING || (bytes.len() as u64) < len {
                return None;
            }
            len *= 16;
        }
    }

    /// The text of an attribute.
    fn string(&self, elf: &Elf, unit: &Unit, value: AttributeValue<Slice<'_>>) -> Option<String> {
        match value {
            AttributeValue::String(text) => Some(String::from_utf8_lossy(&text).into_owned()),
            AttributeValue::DebugStrRef(offset) => Self::text(elf, &self.str, offset.0 as u64),
            AttributeValue::DebugLineStrRef(offset) => Self::text(elf, &self.line_str, offset.0 as u64),
            AttributeValue::DebugStrOffsetsIndex(index) => {
                let at = (unit.str_offsets_base as usize).checked_add(index.0.checked_mul(unit.word())?)?;
                let offset = match unit.word() {
                    4 => u64::from(u32_at(&self.str_offsets, at)?),
                    _ => u64_at(&self.str_offsets, at)?,
                };
                Self::text(elf, &self.str, offset)
            }
            _ => None,
        }
    }

    /// The address of an attribute.
    fn address(&self, unit: &Unit, value: &AttributeValue<Slice<'_>>) -> Option<u64> {
        match value {
            AttributeValue::Addr(address) => Some(*address),
            AttributeValue::DebugAddrIndex(DebugAddrIndex(index)) => {
                let at = (unit.addr_base as usize).checked_add(index.checked_mul(8)?)?;
                u64_at(&self.addr, at)
            }
            _ => None,
        }
    }

    /// Calls `each` with the address ranges of an entry. Ranges of functions that the linker dropped begin at 0, and are left
    /// out.
    fn ranges_of(&self, unit: &Unit, ranges: &unit::Ranges, work: &mut Work, mut each: impl FnMut(u64, u64)) {
        let mut add = |begin: u64, end: u64| {
            if begin != 0 && begin < end && end < u64::MAX - 16 {
                each(begin, end);
            }
        };
        let at = match *ranges {
            unit::Ranges::None => return,
            unit::Ranges::One(begin, end) => return add(begin, end),
            unit::Ranges::At(at) => Some(at),
            unit::Ranges::Index(DebugRngListsIndex(index)) => self.list_at(unit, index),
        };
        let lists = gimli::RangeLists::new(
            gimli::DebugRanges::new(&self.ranges, LittleEndian),
            gimli::DebugRngLists::new(&self.rnglists, LittleEndian),
        );
        let addresses = DebugAddr::from(EndianSlice::new(&self.addr, LittleEndian));
        let base = DebugAddrBase(unit.addr_base as usize);
        let Some(Ok(mut list)) = at.map(|at| {
            let offset = RangeListsOffset(at);
            lists.ranges(offset, unit.encoding, unit.low_pc, &addresses, base)
        }) else {
            return;
        };
        while work.spend(1)
            && let Ok(Some(range)) = list.next()
        {
            add(range.begin, range.end);
        }
    }

    /// Position of the list with this number in `.debug_rnglists`.
    fn list_at(&self, unit: &Unit, index: usize) -> Option<usize> {
        let base = unit.rnglists_base as usize;
        let at = base.checked_add(index.checked_mul(unit.word())?)?;
        let offset = match unit.word() {
            4 => u64::from(u32_at(&self.rnglists, at)?),
            _ => u64_at(&self.rnglists, at)?,
        };
        base.checked_add(usize::try_from(offset).ok()?)
    }
}
