//! Symbols of a file, sorted by address.

use crate::elf::{Elf, text_at, u32_at, u64_at};

/// Symbols in memory, 24 bytes each.
const MAX_SYMBOLS: usize = 2 << 20;
/// Length of a symbol's name, bytes.
const MAX_NAME: u64 = 64 << 10;

const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_LOCAL: u8 = 0;
/// In a rank: the symbol has a length.
const HAS_LEN: u8 = 2;
/// Labels between a function's first address and one in it.
const MAX_NESTED: usize = 16;
/// Bytes of a symbol in the file.
const ROW: u64 = 24;

#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    len: u32,
    /// Position of its name.
    name: u32,
    /// Of several at an address, the one with the highest is used.
    rank: u8,
}

/// The functions of `.symtab`, else of `.dynsym`.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    sorted: Vec<Symbol>,
    /// Position and length of the names in the file.
    names: (u64, u64),
}

impl Symbols {
    /// Reads the symbols; a file without any has none.
    pub(crate) fn read(elf: &Elf) -> Self {
        [".symtab", ".dynsym"]
            .into_iter()
            .filter_map(|name| Self::of(elf, name))
            .find(|symbols| !symbols.sorted.is_empty())
            .unwrap_or_default()
    }

    fn of(elf: &Elf, name: &str) -> Option<Self> {
        let table = elf.section(name)?;
        let names = elf.sections.get(table.link as usize)?;
        let mut sorted = Vec::new();
        let (mut at, end) = (table.offset, table.offset.checked_add(table.len)?.min(elf.len));
        while at < end && sorted.len() < MAX_SYMBOLS {
            let bytes = elf.read_some(at, (ROW << 15).min(end - at));
            if bytes.is_empty() {
                break;
            }
            at += bytes.len() as u64;
            sorted.extend(bytes.chunks_exact(ROW as usize).filter_map(|row| symbol(elf, row)));
        }
        sorted.truncate(MAX_SYMBOLS);
        sorted.sort_unstable_by_key(|symbol| (symbol.address, symbol.rank));
        sorted.shrink_to_fit();
        Some(Self {
            sorted,
            names: (names.offset, names.len),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.sorted.len() * size_of::<Symbol>()
    }

    /// The name of the function at an address, and the distance from its first one. One without a length extends to the next,
    /// or to the end of its section.
    pub(crate) fn name(&self, elf: &Elf, address: u64) -> Option<(String, u64)> {
        let after = self.sorted.partition_point(|symbol| symbol.address <= address);
        let near = self.sorted[..after].iter().rev().take(MAX_NESTED);
        let mut around = near.filter(|symbol| address - symbol.address < u64::from(symbol.len));
        // Labels may be in the middle of a function.
        let last = around.clone().next()?;
        let symbol = around.find(|symbol| symbol.rank & HAS_LEN != 0).unwrap_or(last);
        let into = u64::from(symbol.name);
        let left = self.names.1.checked_sub(into)?;
        let at = self.names.0.checked_add(into)?;
        for len in [256, 4 << 10, MAX_NAME] {
            let bytes = elf.read_some(at, left.min(len));
            if bytes.contains(&0) {
                let name = String::from_utf8_lossy(text_at(&bytes, 0)?).into_owned();
                return (!name.is_empty()).then_some((name, address - symbol.address));
            }
        }
        None
    }
}

/// Elf64_Sym: name, info, other, section, value, size.
fn symbol(elf: &Elf, row: &[u8]) -> Option<Symbol> {
    let info = *row.get(4)?;
    let section = u32_at(row, 4)? >> 16;
    let (address, len) = (u64_at(row, 8)?, u64_at(row, 16)?);
    let of = elf.sections.get(section as usize);
    let is_code = || of.is_some_and(|section| section.is_code);
    let kind = info & 0xf;
    let fits = match kind {
        STT_FUNC | STT_GNU_IFUNC => section != 0,
        // Labels of assembly code.
        STT_NOTYPE => section != 0 && is_code(),
        _ => false,
    };
    let is_function = u8::from(kind != STT_NOTYPE) * 4;
    let has_len = if len == 0 { 0 } else { HAS_LEN };
    let rank = is_function | has_len | u8::from(info >> 4 != STB_LOCAL);
    let end = of.map_or(address, |section| section.address.saturating_add(section.len));
    let len = if len == 0 { end.saturating_sub(address) } else { len };
    (fits && address != 0).then(|| Symbol {
        address,
        len: u32::try_from(len).unwrap_or(u32::MAX),
        name: u32_at(row, 0).unwrap_or(0),
        rank,
    })
}
