//! A unit: its functions by address, and what is inlined into one.

use super::lines::Lines;
use super::{Dwarf, MAX_ABBREVIATIONS, MAX_OVERLAPPING, Slice, abbreviations_len, shorten, unit_len};
use crate::elf::Elf;
use gimli::{
    Abbreviations, Attribute, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugInfo, DebugInfoOffset,
    DebugRngListsIndex, EndianSlice, EntriesRaw, LittleEndian, UnitHeader, UnitOffset,
};
use std::sync::Arc;

/// Inlined functions around one address.
const MAX_INLINED: usize = 64;
/// Ranges of functions that are kept of a unit, 16 bytes each.
const MAX_FUNCTIONS: usize = 2 << 20;
/// Ranges of the functions of a unit, and those that a search for inlined functions reads.
const UNIT_WORK: u64 = 8 << 20;

/// A number of steps that hostile input cannot exceed.
#[derive(Debug)]
pub(super) struct Work(pub(super) u64);

impl Work {
    /// Whether this many steps are left; they are spent.
    pub(super) fn spend(&mut self, steps: u64) -> bool {
        let enough = self.0 >= steps;
        self.0 = self.0.saturating_sub(steps);
        enough
    }
}

/// The addresses of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Ranges {
    #[default]
    None,
    One(u64, u64),
    /// Position of a list.
    At(usize),
    /// Number of a list.
    Index(DebugRngListsIndex<usize>),
}

/// Code of a function: `begin..begin + len`, and the position of its entry.
#[derive(Clone, Copy, Debug)]
struct Function {
    begin: u64,
    len: u32,
    entry: u32,
}

/// A function at an address, and where it was called from if it is inlined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Position of its entry.
    pub(super) entry: usize,
    /// Number of the caller's file; 0 with line 0 if it is not inlined.
    pub(super) file: u32,
    pub(super) line: u32,
    depth: isize,
}

/// Names of a function's entry, and the entry that it refers to for the rest.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) symbol: Option<String>,
    pub(super) name: Option<String>,
    pub(super) next: Option<Next>,
}

/// Position of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// In the unit.
    Here(usize),
    /// In `.debug_info`.
    At(u64),
}

/// A unit of `.debug_info`.
#[derive(Debug)]
pub(super) struct Unit {
    bytes: Vec<u8>,
    abbreviations: Arc<Abbreviations>,
    /// Length of the abbreviations in the file.
    abbreviations_len: usize,
    pub(super) encoding: gimli::Encoding,
    pub(super) low_pc: u64,
    pub(super) addr_base: u64,
    pub(super) rnglists_base: u64,
    pub(super) str_offsets_base: u64,
    pub(super) root_ranges: Ranges,
    /// Position of the line program in `.debug_line`.
    pub(super) line_program: Option<u64>,
    /// Where relative paths begin.
    pub(super) folder: String,
    functions: Vec<Function>,
    pub(super) lines: Lines,
}

/// Attributes by which an entry has addresses.
#[derive(Default)]
struct Pcs<'a> {
    low: Option<AttributeValue<Slice<'a>>>,
    high: Option<AttributeValue<Slice<'a>>>,
    ranges: Option<AttributeValue<Slice<'a>>>,
}

impl<'a> Pcs<'a> {
    fn take(&mut self, attribute: &Attribute<Slice<'a>>) {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = Some(attribute.value()),
            gimli::DW_AT_high_pc => self.high = Some(attribute.value()),
            gimli::DW_AT_ranges => self.ranges = Some(attribute.value()),
            _ => {}
        }
    }

    fn ranges(&self, dwarf: &Dwarf, unit: &Unit) -> Ranges {
        match self.ranges {
            Some(AttributeValue::RangeListsRef(at)) => return Ranges::At(at.0),
            Some(AttributeValue::DebugRngListsIndex(index)) => return Ranges::Index(index),
            _ => {}
        }
        let low = self.low.as_ref().and_then(|low| dwarf.address(unit, low));
        let (Some(low), Some(high)) = (low, self.high.as_ref()) else {
            return Ranges::None;
        };
        let end = match high.udata_value() {
            Some(len) => low.checked_add(len),
            None => dwarf.address(unit, high),
        };
        end.map_or(Ranges::None, |end| Ranges::One(low, end))
    }
}

type Header<'a> = UnitHeader<Slice<'a>>;

fn header(bytes: &[u8]) -> Option<Header<'_>> {
    let info = DebugInfo::new(bytes, LittleEndian);
    let header = info.header_from_offset(DebugInfoOffset(0)).ok()?;
    (header.address_size() == 8).then_some(header)
}

impl Unit {
    /// Reads the header and the first entry of the unit in `bytes`. `last` has the abbreviations of the unit before.
    pub(super) fn open(
        dwarf: &Dwarf,
        elf: &Elf,
        bytes: Vec<u8>,
        last: &mut Option<(u64, Arc<Abbreviations>)>,
        work: &mut Work,
    ) -> Option<Self> {
        let head = header(&bytes)?;
        if matches!(
            head.type_(),
            gimli::UnitType::Type { .. } | gimli::UnitType::SplitType { .. }
        ) {
            return None;
        }
        let at = head.debug_abbrev_offset().0 as u64;
        let (abbreviations, abbreviations_len) = match last {
            Some((known, abbreviations)) if *known == at => (Arc::clone(abbreviations), 0),
            _ => {
                let mut table = dwarf.abbreviations.read(elf, at, 16 << 10);
                let mut len = abbreviations_len(&table);
                let mut is_enough = work.spend(table.len() as u64 / 4);
                if len.is_none() && is_enough {
                    table = dwarf.abbreviations.read(elf, at, MAX_ABBREVIATIONS);
                    is_enough = work.spend(table.len() as u64);
                    len = abbreviations_len(&table);
                }
                let len = len.filter(|len| is_enough && work.spend(*len as u64))?;
                let section = DebugAbbrev::new(&table[..len], LittleEndian);
                let parsed = Arc::new(section.abbreviations(DebugAbbrevOffset(0)).ok()?);
                *last = Some((at, Arc::clone(&parsed)));
                (parsed, len)
            }
        };
        let mut unit = Self {
            encoding: head.encoding(),
            bytes: Vec::new(),
            abbreviations,
            abbreviations_len,
            low_pc: 0,
            addr_base: if head.version() < 5 { 0 } else { 8 },
            rnglists_base: 0,
            str_offsets_base: 8,
            root_ranges: Ranges::None,
            line_program: None,
            folder: String::new(),
            functions: Vec::new(),
            lines: Lines::default(),
        };
        unit.root(dwarf, elf, &head)?;
        unit.bytes = bytes;
        Some(unit)
    }

    /// Reads the first entry.
    fn root(&mut self, dwarf: &Dwarf, elf: &Elf, head: &Header<'_>) -> Option<()> {
        let abbreviations = Arc::clone(&self.abbreviations);
        let mut entries = head.entries_raw(&abbreviations, None).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        let (mut pcs, mut folder) = (Pcs::default(), None);
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec).ok()?;
            pcs.take(&attribute);
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_addr_base | gimli::DW_AT_GNU_addr_base, AttributeValue::DebugAddrBase(base)) => {
                    self.addr_base = base.0 as u64;
                }
                (gimli::DW_AT_rnglists_base, AttributeValue::DebugRngListsBase(base)) => {
                    self.rnglists_base = base.0 as u64;
                }
                (gimli::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                    self.str_offsets_base = base.0 as u64;
                }
                (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(at)) => self.line_program = Some(at.0 as u64),
                (gimli::DW_AT_comp_dir, value) => folder = Some(value),
                _ => {}
            }
        }
        self.low_pc = pcs.low.as_ref().and_then(|low| dwarf.address(self, low)).unwrap_or(0);
        self.root_ranges = pcs.ranges(dwarf, self);
        self.folder = folder
            .and_then(|value| dwarf.string(elf, self, value))
            .unwrap_or_default();
        Some(())
    }

    /// Size of an offset, bytes.
    pub(super) const fn word(&self) -> usize {
        match self.encoding.format {
            gimli::Format::Dwarf32 => 4,
            gimli::Format::Dwarf64 => 8,
        }
    }

    /// What the unit occupies, bytes.
    pub(super) fn bytes_in_memory(&self) -> usize {
        self.bytes.len()
            + self.abbreviations_len * 30
            + self.functions.len() * size_of::<Function>()
            + self.lines.bytes_in_memory()
    }

    /// Reads functions and lines.
    pub(super) fn parse(&mut self, dwarf: &Dwarf, elf: &Elf) {
        let mut functions = Vec::new();
        let mut work = Work(UNIT_WORK);
        // An error ends the list: the functions before it are known.
        let _ = self.each_function(dwarf, &mut work, &mut functions);
        functions.sort_unstable_by_key(|function| function.begin);
        functions.shrink_to_fit();
        self.functions = functions;
        self.lines = Lines::read(dwarf, elf, self);
    }

    fn each_function(&self, dwarf: &Dwarf, work: &mut Work, functions: &mut Vec<Function>) -> Option<()> {
        let head = header(&self.bytes)?;
        let mut entries = head.entries_raw(&self.abbreviations, None).ok()?;
        while !entries.is_empty() && functions.len() < MAX_FUNCTIONS {
            let entry = entries.next_offset().0;
            let Some(abbreviation) = entries.read_abbreviation().ok()? else {
                continue;
            };
            if abbreviation.tag() != gimli::DW_TAG_subprogram {
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                continue;
            }
            let mut pcs = Pcs::default();
            for spec in abbreviation.attributes() {
                pcs.take(&entries.read_attribute(*spec).ok()?);
            }
            dwarf.ranges_of(self, &pcs.ranges(dwarf, self), work, |begin, end| {
                if functions.len() < MAX_FUNCTIONS {
                    functions.push(Function {
                        begin,
                        len: u32::try_from(end - begin).unwrap_or(u32::MAX),
                        entry: entry as u32,
                    });
                }
            });
        }
        Some(())
    }

    /// The functions at an address, from the one that has a frame to the innermost inlined one.
    pub(super) fn chain(&self, dwarf: &Dwarf, address: u64, searched: &mut Work) -> Vec<Call> {
        let after = self.functions.partition_point(|function| function.begin <= address);
        let mut near = self.functions[..after].iter().rev().take(MAX_OVERLAPPING);
        let Some(function) = near.find(|function| address - function.begin < u64::from(function.len)) else {
            return Vec::new();
        };
        let mut chain = vec![Call {
            entry: function.entry as usize,
            file: 0,
            line: 0,
            depth: 0,
        }];
        // An error ends the search: the outer functions are known.
        let _ = self.inlined(dwarf, address, &mut chain, searched);
        chain
    }

    fn inlined(&self, dwarf: &Dwarf, address: u64, chain: &mut Vec<Call>, searched: &mut Work) -> Option<()> {
        let head = header(&self.bytes)?;
        let mut work = Work(UNIT_WORK);
        let mut entries = head
            .entries_raw(&self.abbreviations, Some(UnitOffset(chain[0].entry)))
            .ok()?;
        let function = entries.read_abbreviation().ok()??;
        entries.skip_attributes(function.attributes()).ok()?;
        if !function.has_children() {
            return Some(());
        }
        let mut before = entries.next_offset().0;
        while !entries.is_empty() && entries.next_depth() > 0 {
            let read = entries.next_offset().0 - before;
            before += read;
            if !searched.spend(read as u64) {
                return None;
            }
            let (entry, depth) = (entries.next_offset().0, entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation().ok()? else {
                continue;
            };
            // What follows is outside the last inlined function.
            if chain.len() > 1 && chain[chain.len() - 1].depth >= depth {
                break;
            }
            if abbreviation.tag() != gimli::DW_TAG_inlined_subroutine {
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                if abbreviation.tag() == gimli::DW_TAG_subprogram && abbreviation.has_children() {
                    skip_children(&mut entries, depth)?;
                }
                continue;
            }
            let (mut pcs, mut file, mut line) = (Pcs::default(), 0, 0);
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec).ok()?;
                pcs.take(&attribute);
                match (attribute.name(), attribute.value()) {
                    (gimli::DW_AT_call_file, AttributeValue::FileIndex(index)) => file = index,
                    (gimli::DW_AT_call_file, value) => file = value.udata_value().unwrap_or(0),
                    (gimli::DW_AT_call_line, value) => line = value.udata_value().unwrap_or(0),
                    _ => {}
                }
            }
            let mut is_here = false;
            dwarf.ranges_of(self, &pcs.ranges(dwarf, self), &mut work, |begin, end| {
                is_here |= (begin..end).contains(&address);
            });
            if is_here && chain.len() < MAX_INLINED {
                chain.push(Call {
                    entry,
                    file: u32::try_from(file).unwrap_or(0),
                    line: u32::try_from(line).unwrap_or(0),
                    depth,
                });
            } else if abbreviation.has_children() {
                skip_children(&mut entries, depth)?;
            }
        }
        Some(())
    }

    /// The names of the entry at this position.
    pub(super) fn describe(&self, dwarf: &Dwarf, elf: &Elf, entry: usize) -> Option<Described> {
        self.described(dwarf, elf, &header(&self.bytes)?, entry)
    }

    /// The names of the entry with these bytes, which is further behind than the unit's bytes reach.
    pub(super) fn describe_bytes(&self, dwarf: &Dwarf, elf: &Elf, entry: &[u8]) -> Option<Described> {
        let len = header(&self.bytes)?.size_of_header();
        let mut bytes = [self.bytes.get(..len)?, entry].concat();
        let (_, size) = unit_len(&bytes)?;
        shorten(&mut bytes, size);
        self.described(dwarf, elf, &header(&bytes)?, len)
    }

    fn described(&self, dwarf: &Dwarf, elf: &Elf, head: &Header<'_>, entry: usize) -> Option<Described> {
        let mut entries = head.entries_raw(&self.abbreviations, Some(UnitOffset(entry))).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        let mut found = Described::default();
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec).ok()?;
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name, value) => {
                    found.symbol = dwarf.string(elf, self, value);
                }
                (gimli::DW_AT_name, value) => found.name = dwarf.string(elf, self, value),
                (gimli::DW_AT_abstract_origin | gimli::DW_AT_specification, AttributeValue::UnitRef(at)) => {
                    found.next = Some(Next::Here(at.0));
                }
                (gimli::DW_AT_abstract_origin | gimli::DW_AT_specification, AttributeValue::DebugInfoRef(at)) => {
                    found.next = Some(Next::At(at.0 as u64));
                }
                _ => {}
            }
        }
        Some(found)
    }
}

/// Goes on after the children of the entry at this depth.
fn skip_children(entries: &mut EntriesRaw<'_, EndianSlice<'_, LittleEndian>>, depth: isize) -> Option<()> {
    while !entries.is_empty() && entries.next_depth() > depth {
        if let Some(abbreviation) = entries.read_abbreviation().ok()? {
            entries.skip_attributes(abbreviation.attributes()).ok()?;
        }
    }
    Some(())
}
