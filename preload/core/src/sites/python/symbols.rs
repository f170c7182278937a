//! Symbols that a loaded file exports, by its own tables in memory.
//!
//! The loader is not asked, because its lock may be held. All reads fail instead of faulting, because the file may be
//! unloaded meanwhile.

use super::super::memory;

/// Bytes at an address.
pub(super) fn read<const N: usize>(address: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (memory::copy(address, &mut bytes) == N).then_some(bytes)
}

/// A word at an address.
pub(super) fn word(address: u64) -> Option<u64> {
    read(address).map(u64::from_le_bytes)
}

fn half(address: u64) -> Option<u32> {
    read(address).map(u32::from_le_bytes)
}

/// Program headers and symbols of a chain that are looked at, at most.
const MAX_HEADERS: u64 = 64;
const MAX_ENTRIES: u64 = 4096;

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const GNU_HASH: u64 = 0x6fff_fef5;

/// The tables of a file.
pub(super) struct Exports {
    bias: u64,
    hash: u64,
    symbols: u64,
    strings: u64,
}

/// An exported function or variable.
#[derive(Clone, Copy)]
pub(super) struct Symbol {
    pub(super) address: u64,
    pub(super) size: u64,
}

impl Exports {
    /// The tables of the file whose first bytes are mapped at `base`.
    pub(super) fn of(base: u64) -> Option<Self> {
        let header = read::<64>(base)?;
        let [0x7f, b'E', b'L', b'F', 2, 1, ..] = header else {
            return None;
        };
        let at = |from: usize| header.get(from..)?.first_chunk().copied();
        let (headers, count) = (at(32).map(u64::from_le_bytes)?, header.get(56..)?.first_chunk()?);
        let (mut bias, mut dynamic) = (None, None);
        for number in 0..u64::from(u16::from_le_bytes(*count)).min(MAX_HEADERS) {
            let header = base.checked_add(headers)?.checked_add(number * 56)?;
            let address = word(header.checked_add(16)?)?;
            match half(header)? {
                LOAD if bias.is_none() => bias = Some(base.wrapping_sub(address & !0xfff)),
                DYNAMIC => dynamic = Some(address),
                _ => {}
            }
        }
        let (bias, dynamic) = (bias?, dynamic?);
        let mut found = [0; 3];
        for number in 0..MAX_ENTRIES {
            let entry = bias.wrapping_add(dynamic).wrapping_add(16 * number);
            let [tag, value] = [word(entry)?, word(entry.wrapping_add(8))?];
            let place = match tag {
                0 => break,
                STRINGS => 0,
                SYMBOLS => 1,
                GNU_HASH => 2,
                _ => continue,
            };
            // The loader makes addresses of these values where it may write to them.
            let value = if value < base { value.wrapping_add(bias) } else { value };
            if let Some(place) = found.get_mut(place) {
                *place = value;
            }
        }
        let [strings, symbols, hash] = found;
        (strings != 0 && symbols != 0 && hash != 0).then_some(Self {
            bias,
            hash,
            symbols,
            strings,
        })
    }

    /// The difference between addresses in memory and in the file.
    pub(super) fn bias(&self) -> u64 {
        self.bias
    }

    pub(super) fn find(&self, name: &str) -> Option<Symbol> {
        let add = |hash: u32, byte: u8| hash.wrapping_mul(33).wrapping_add(u32::from(byte));
        let wanted = name.bytes().fold(5381, add);
        let [buckets, first, bloom] = [half(self.hash)?, half(self.hash + 4)?, half(self.hash + 8)?].map(u64::from);
        let bucket = self.hash.checked_add(16)?.checked_add(8 * bloom)?;
        let chain = bucket.checked_add(4 * buckets)?;
        let start = half(bucket.checked_add(4 * u64::from(wanted).checked_rem(buckets)?)?)?;
        let start = u64::from(start);
        for index in start..start + MAX_ENTRIES {
            let hash = half(chain.checked_add(4 * index.checked_sub(first)?)?)?;
            if hash | 1 == wanted | 1
                && let Some(symbol) = self.symbol(index, name)
            {
                return Some(symbol);
            }
            if hash & 1 != 0 {
                break;
            }
        }
        None
    }

    /// The defined symbol with this index, if it has this name.
    fn symbol(&self, index: u64, name: &str) -> Option<Symbol> {
        let raw = read::<24>(self.symbols.checked_add(24 * index)?)?;
        let [head, value, size] = {
            let mut words = [0; 3];
            for (to, from) in words.iter_mut().zip(raw.as_chunks().0) {
                *to = u64::from_le_bytes(*from);
            }
            words
        };
        let (text, section) = (head & 0xffff_ffff, head >> 48);
        let mut found = [0u8; 48];
        let found = found.get_mut(..=name.len())?;
        let got = memory::copy(self.strings.checked_add(text)?, found);
        let is_it = got == found.len() && found.split_last() == Some((&0, name.as_bytes()));
        (is_it && section != 0).then_some(Symbol {
            address: self.bias.wrapping_add(value),
            size,
        })
    }
}
