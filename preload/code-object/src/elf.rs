//! Headers and tables of a 64-bit little-endian ELF file for AMD GPUs.

const CODE_OBJECT_MACHINE: u16 = 224;
/// Maximum bytes of notes, and of a table of symbols, strings or relocations.
const MAX_TABLE: u64 = 16 << 20;
/// `PT_LOAD`, `PT_NOTE`.
const LOAD: u32 = 1;
const NOTE: u32 = 4;
/// `NT_AMDGPU_METADATA`, and its owner.
const METADATA: u32 = 32;
const OWNER: &[u8] = b"AMDGPU\0";
/// `SHT_SYMTAB`, `SHT_DYNSYM`, `SHT_RELA`.
const SYMBOLS: u32 = 2;
const DYNAMIC_SYMBOLS: u32 = 11;
const RELOCATIONS: u32 = 4;
/// `STT_FUNC`.
const FUNCTION: u8 = 2;
/// Relocations that write eight bytes: ABS64, REL64, RELATIVE64.
const WIDE: [u32; 3] = [3, 5, 13];

/// Bytes of a code object.
pub trait Source {
    /// Fills `into` from position `at`; false if not all bytes can be read.
    fn read(&self, at: u64, into: &mut [u8]) -> bool;
}

impl Source for [u8] {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let found = usize::try_from(at)
            .ok()
            .and_then(|at| self.get(at..)?.get(..into.len()));
        found.is_some_and(|bytes| {
            into.copy_from_slice(bytes);
            true
        })
    }
}

impl Source for Vec<u8> {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.as_slice().read(at, into)
    }
}

pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

/// A function: address and size of its code, and its name.
pub(crate) struct Function {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) name: String,
}

pub(crate) struct File<'a, S: ?Sized> {
    source: &'a S,
    segments: Vec<Segment>,
    sections: Vec<Section>,
}

impl<'a, S: Source + ?Sized> File<'a, S> {
    pub(crate) fn open(source: &'a S) -> Option<Self> {
        let mut head = [0; 64];
        let is_read = source.read(0, &mut head);
        // 64 bits, little-endian.
        if !is_read || !head.starts_with(b"\x7fELF\x02\x01") || short(&head, 18)? != CODE_OBJECT_MACHINE {
            return None;
        }
        let mut file = Self {
            source,
            segments: Vec::new(),
            sections: Vec::new(),
        };
        let table = |at: usize, size: usize, count: usize, least: u16| -> Option<Vec<Vec<u8>>> {
            let (size, count) = (short(&head, size)?, short(&head, count)?);
            if size < least {
                return None;
            }
            let bytes = file.bytes(word(&head, at)?, u64::from(size) * u64::from(count))?;
            Some(bytes.chunks_exact(size.into()).map(<[u8]>::to_vec).collect())
        };
        let segments = table(32, 54, 56, 56)?;
        // A file without sections still has notes.
        let sections = table(40, 58, 60, 64).unwrap_or_default();
        file.segments = segments
            .iter()
            .filter_map(|entry| {
                Some(Segment {
                    kind: half(entry, 0)?,
                    offset: word(entry, 8)?,
                    address: word(entry, 16)?,
                    size: word(entry, 32)?,
                })
            })
            .collect();
        file.sections = sections
            .iter()
            .filter_map(|entry| {
                Some(Section {
                    kind: half(entry, 4)?,
                    offset: word(entry, 24)?,
                    size: word(entry, 32)?,
                    link: half(entry, 40)?,
                })
            })
            .collect();
        Some(file)
    }

    fn bytes(&self, at: u64, size: u64) -> Option<Vec<u8>> {
        if size > MAX_TABLE {
            return None;
        }
        let mut bytes = vec![0; size as usize];
        self.source.read(at, &mut bytes).then_some(bytes)
    }

    /// The metadata note.
    pub(crate) fn notes(&self) -> Option<Vec<u8>> {
        let own = self.segments.iter().filter(|segment| segment.kind == NOTE);
        own.filter_map(|segment| self.bytes(segment.offset, segment.size))
            .find_map(|bytes| metadata(&bytes).map(<[u8]>::to_vec))
    }

    /// Fills `into` with what is at an address.
    pub(crate) fn read_at(&self, address: u64, into: &mut [u8]) -> bool {
        let size = into.len() as u64;
        let found = self
            .segments
            .iter()
            .filter(|segment| segment.kind == LOAD)
            .find_map(|segment| {
                let from = address.checked_sub(segment.address)?;
                let is_within = from.checked_add(size)? <= segment.size;
                is_within.then(|| segment.offset.checked_add(from))?
            });
        found.is_some_and(|at| self.source.read(at, into))
    }

    /// All functions, sorted by address.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let tables = [SYMBOLS, DYNAMIC_SYMBOLS].map(|kind| self.sections.iter().find(|section| section.kind == kind));
        let mut all = tables
            .into_iter()
            .flatten()
            .find_map(|table| self.of_table(table))
            .unwrap_or_default();
        all.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
        all
    }

    fn of_table(&self, table: &Section) -> Option<Vec<Function>> {
        let names = self.sections.get(table.link as usize)?;
        let names = self.bytes(names.offset, names.size)?;
        let symbols = self.bytes(table.offset, table.size)?;
        let found = symbols.chunks_exact(24).filter_map(|symbol| {
            let is_function = symbol.get(4)? & 0xf == FUNCTION && short(symbol, 6)? != 0;
            let name = names.get(half(symbol, 0)? as usize..).filter(|_| is_function)?;
            let name = name.split(|byte| *byte == 0).next()?;
            Some(Function {
                address: word(symbol, 8)?,
                size: word(symbol, 16)?,
                name: String::from_utf8_lossy(name).into_owned(),
            })
        });
        Some(found.collect())
    }

    /// Addresses of the 32-bit words that the loader writes, sorted.
    pub(crate) fn relocated(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for table in self.sections.iter().filter(|section| section.kind == RELOCATIONS) {
            let entries = self.bytes(table.offset, table.size).unwrap_or_default();
            for entry in entries.chunks_exact(24) {
                if let (Some(at), Some(kind)) = (word(entry, 0), half(entry, 8)) {
                    all.push(at);
                    all.extend(at.checked_add(4).filter(|_| WIDE.contains(&kind)));
                }
            }
        }
        all.sort_unstable();
        all
    }
}

/// The text of the metadata among notes.
fn metadata(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let (name, text, kind) = (half(notes, 0)? as usize, half(notes, 4)? as usize, half(notes, 8)?);
        let padded = |size: usize| size.checked_next_multiple_of(4);
        let from = padded(name)?.checked_add(12)?;
        let until = from.checked_add(text)?;
        let (owner, body) = (notes.get(12..12usize.checked_add(name)?)?, notes.get(from..until)?);
        if owner == OWNER && kind == METADATA {
            return Some(body);
        }
        notes = notes.get(padded(until)?..)?;
    }
}
