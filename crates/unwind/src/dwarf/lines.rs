//! Lines of a unit.

use super::unit::Unit;
use super::{Dwarf, Slice, shorten, unit_len};
use crate::elf::{Elf, u32_at, u64_at};
use gimli::{AttributeValue, DebugLine, DebugLineOffset, LineProgramHeader, LittleEndian};

/// Rows of a unit, 16 bytes each.
const MAX_ROWS: usize = 2 << 20;
/// A line program, bytes.
const MAX_PROGRAM: u64 = 32 << 20;
/// The header of a line program with the names of its files, bytes.
const MAX_LINE_HEADER: usize = 8 << 20;

/// The file of the row that ends a sequence.
pub(super) const NO_FILE: u32 = u32::MAX;

/// From `address` on, until the next row, code is of this line; line 0 is code that the compiler added to the file's.
#[derive(Clone, Copy, Debug)]
struct Row {
    address: u64,
    file: u32,
    line: u32,
}

/// The line table of a unit.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rows: Vec<Row>,
    /// The header of the line program, which has the names of files.
    head: Vec<u8>,
}

type Header<'a> = LineProgramHeader<Slice<'a>>;

impl Lines {
    /// Reads the lines of a unit; damaged ones are left out.
    pub(super) fn read(dwarf: &Dwarf, elf: &Elf, unit: &Unit) -> Self {
        Self::of_program(dwarf, elf, unit).unwrap_or_default()
    }

    fn of_program(dwarf: &Dwarf, elf: &Elf, unit: &Unit) -> Option<Self> {
        let at = unit.line_program?;
        let (len, size) = unit_len(&dwarf.line.read(elf, at, 16))?;
        if len > MAX_PROGRAM {
            return None;
        }
        let mut program = dwarf.line.read(elf, at, len);
        let rows = rows(&program)?;
        // Version, sizes of addresses and segments since version 5, then the length of the rest of the header.
        let version = program.get(size..size + 2)?;
        let field = size + if version >= &[5, 0] { 4 } else { 2 };
        let (rest, begin) = match size {
            4 => (u64::from(u32_at(&program, field)?), field + 4),
            _ => (u64_at(&program, field)?, field + 8),
        };
        let end = begin.checked_add(usize::try_from(rest).ok()?)?;
        if end > program.len().min(MAX_LINE_HEADER) {
            return None;
        }
        program.truncate(end);
        program.shrink_to_fit();
        shorten(&mut program, size);
        Some(Self { rows, head: program })
    }

    pub(super) fn bytes_in_memory(&self) -> usize {
        self.rows.len() * size_of::<Row>() + self.head.len()
    }

    /// Number of the file, and the line; [`NO_FILE`] if no row has the address.
    pub(super) fn at(&self, address: u64) -> (u32, u32) {
        let after = self.rows.partition_point(|row| row.address <= address);
        let row = after.checked_sub(1).and_then(|last| self.rows.get(last));
        row.map_or((NO_FILE, 0), |row| (row.file, row.line))
    }

    /// Paths of the files with these numbers; empty if unknown.
    pub(super) fn paths(&self, dwarf: &Dwarf, elf: &Elf, unit: &Unit, files: &[u32]) -> Vec<String> {
        let section = DebugLine::new(&self.head, LittleEndian);
        let program = section.program(DebugLineOffset(0), 8, None, None);
        let Ok(program) = program else {
            return vec![String::new(); files.len()];
        };
        let header = program.header();
        let path = |file: &u32| path(dwarf, elf, unit, header, u64::from(*file)).unwrap_or_default();
        files.iter().map(path).collect()
    }
}

fn path(dwarf: &Dwarf, elf: &Elf, unit: &Unit, header: &Header<'_>, number: u64) -> Option<String> {
    // Before version 5 there is no file 0.
    let file = header.file(number)?;
    let name = dwarf.string(elf, unit, file.path_name())?;
    if name.starts_with('/') {
        return Some(name);
    }
    // Before version 5, folder 0 is the unit's.
    let is_of_unit = header.version() < 5 && file.directory_index() == 0;
    let folder: Option<AttributeValue<Slice<'_>>> = if is_of_unit { None } else { file.directory(header) };
    let folder = folder
        .and_then(|value| dwarf.string(elf, unit, value))
        .unwrap_or_default();
    let mut path = String::new();
    if !folder.starts_with('/') {
        path.push_str(&unit.folder);
    }
    for part in [folder, name] {
        if !path.is_empty() && !path.ends_with('/') && !part.is_empty() {
            path.push('/');
        }
        path.push_str(&part);
    }
    Some(path)
}

/// All rows of a program, sorted. Sequences of dropped functions begin at 0, and are left out.
fn rows(program: &[u8]) -> Option<Vec<Row>> {
    let section = DebugLine::new(program, LittleEndian);
    let mut all = section.program(DebugLineOffset(0), 8, None, None).ok()?.rows();
    let mut rows: Vec<Row> = Vec::new();
    // First row of each sequence.
    let mut sequences = vec![0usize];
    let mut is_sorted = true;
    while let Ok(Some((_, row))) = all.next_row() {
        let begin = sequences[sequences.len() - 1];
        // The last row of an address counts. A row like the one before adds nothing.
        let file = u32::try_from(row.file_index()).unwrap_or(NO_FILE);
        let one = Row {
            address: row.address(),
            file: if row.end_sequence() { NO_FILE } else { file },
            line: row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
        };
        match rows[begin..].last_mut() {
            Some(last) if last.address == one.address => *last = one,
            Some(last) if last.address > one.address => is_sorted = false,
            Some(last) if last.file == one.file && last.line == one.line => {}
            _ => rows.push(one),
        }
        if row.end_sequence() {
            if rows.get(begin).is_some_and(|first| first.address == 0) || !is_sorted {
                rows.truncate(begin);
            }
            is_sorted = true;
            if rows.len() > begin {
                sequences.push(rows.len());
            }
        }
        if rows.len() >= MAX_ROWS {
            break;
        }
    }
    // Rows after the last end of a sequence have no end.
    rows.truncate(sequences.pop().unwrap_or(0));
    let ends = sequences.iter().skip(1).copied().chain([rows.len()]);
    let mut places: Vec<_> = sequences.iter().copied().zip(ends).collect();
    if places.is_sorted_by_key(|(begin, _)| rows.get(*begin).map(|row| row.address)) {
        return Some(rows);
    }
    places.sort_by_key(|(begin, _)| rows[*begin].address);
    let sorted = places
        .into_iter()
        .flat_map(|(begin, end)| rows[begin..end].iter().copied());
    Some(sorted.collect())
}
