//! ELF files: headers, sections and build-id, read piece by piece.

use flate2::{Decompress, FlushDecompress, Status};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Program and section headers that are read, at most; linkers write below a hundred.
const MAX_HEADERS: u64 = 1 << 14;
/// Notes of a file that are searched for its build-id, bytes.
const MAX_NOTES: u64 = 64 << 10;
/// Length of a build-id; linkers write 8 to 20 bytes.
const MAX_BUILD_ID: usize = 64;
/// Section names, bytes.
const MAX_NAMES: u64 = 1 << 20;

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const SHT_NOTE: u32 = 7;
const SHT_NOBITS: u32 = 8;
const SHF_COMPRESSED: u64 = 1 << 11;
const SHF_EXECUTABLE: u64 = 1 << 2;
const PF_X: u32 = 1;
const EM_X86_64: u16 = 62;

/// Why a file could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// There is no such file, or it may not be read.
    Missing,
    /// Not a regular file, or not a 64-bit little-endian ELF file.
    NotElf,
}

/// A segment that is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Position and length in the file, bytes.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Virtual address of the first byte.
    pub(crate) address: u64,
    pub(crate) is_code: bool,
}

/// A section of a file.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    /// Length in the file, bytes.
    pub(crate) len: u64,
    pub(crate) link: u32,
    pub(crate) is_code: bool,
    is_compressed: bool,
}

/// An open ELF file.
#[derive(Debug)]
pub(crate) struct Elf {
    file: File,
    pub(crate) len: u64,
    pub(crate) inode: u64,
    pub(crate) is_x86_64: bool,
    pub(crate) loads: Vec<Load>,
    pub(crate) sections: Vec<Section>,
    /// Virtual address, position and length of `PT_GNU_EH_FRAME`.
    pub(crate) frame_header: Option<(u64, u64, u64)>,
    /// Empty if the file has none.
    pub(crate) build_id: Vec<u8>,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The text before the first zero.
pub(crate) fn text_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    bytes.get(at..)?.split(|byte| *byte == 0).next()
}

impl Elf {
    /// Opens a file and reads its headers. Pipes and devices are not opened for reading.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        // A pipe would block the open call.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let open = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = open.map_err(|_| OpenError::Missing)?;
        let metadata = file.metadata().map_err(|_| OpenError::Missing)?;
        if !metadata.is_file() {
            return Err(OpenError::NotElf);
        }
        let mut elf = Self {
            file,
            len: metadata.len(),
            inode: metadata.ino(),
            is_x86_64: false,
            loads: Vec::new(),
            sections: Vec::new(),
            frame_header: None,
            build_id: Vec::new(),
        };
        elf.headers().ok_or(OpenError::NotElf)?;
        Ok(elf)
    }

    /// Exactly `len` bytes at `offset`; `None` if the file is shorter or `len` exceeds `limit`.
    pub(crate) fn read(&self, offset: u64, len: u64, limit: u64) -> Option<Vec<u8>> {
        if len > limit || offset.checked_add(len)? > self.len {
            return None;
        }
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }

    /// At most `len` bytes at `offset`; fewer at the end of the file.
    pub(crate) fn read_some(&self, offset: u64, len: u64) -> Vec<u8> {
        let len = len.min(self.len.saturating_sub(offset));
        self.read(offset, len, len).unwrap_or_default()
    }

    fn headers(&mut self) -> Option<()> {
        let head = self.read(0, 64, 64)?;
        // 64 bits, little-endian.
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        self.is_x86_64 = u16_at(&head, 18)? == EM_X86_64;
        let segments = (u64_at(&head, 32)?, u16_at(&head, 54)?, u16_at(&head, 56)?);
        let sections = (u64_at(&head, 40)?, u16_at(&head, 58)?, u16_at(&head, 60)?);
        let mut notes = Vec::new();
        if let (offset, 56, count) = segments
            && let Some(table) = self.read(offset, u64::from(count) * 56, MAX_HEADERS * 56)
        {
            for row in table.chunks_exact(56) {
                let (kind, flags, offset) = (u32_at(row, 0)?, u32_at(row, 4)?, u64_at(row, 8)?);
                let (address, len) = (u64_at(row, 16)?, u64_at(row, 32)?);
                match kind {
                    PT_LOAD => self.loads.push(Load {
                        offset,
                        len,
                        address,
                        is_code: flags & PF_X != 0,
                    }),
                    PT_NOTE => notes.push((offset, len)),
                    PT_GNU_EH_FRAME => self.frame_header = Some((address, offset, len)),
                    _ => {}
                }
            }
        }
        if let (offset @ 1.., 64, count) = sections {
            self.section_headers(offset, u64::from(count), u16_at(&head, 62)?);
        }
        let of_sections = self.sections.iter().filter(|section| section.kind == SHT_NOTE);
        notes.extend(of_sections.map(|section| (section.offset, section.len)));
        self.build_id = notes
            .into_iter()
            .take(64)
            .find_map(|(offset, len)| build_id(&self.read(offset, len, MAX_NOTES)?))
            .unwrap_or_default();
        Some(())
    }

    /// Reads the table of sections. A file without one, or with a bad one, is used without sections.
    fn section_headers(&mut self, offset: u64, count: u64, names: u16) -> Option<()> {
        let first = self.read(offset, 64, 64)?;
        // More than 65 279 sections: the count is in the first.
        let count = if count == 0 { u64_at(&first, 32)? } else { count };
        let table = self.read(offset, count.checked_mul(64)?, MAX_HEADERS * 64)?;
        let rows: Vec<&[u8]> = table.chunks_exact(64).collect();
        let row = rows.get(usize::from(names))?;
        let names = self.read(u64_at(row, 24)?, u64_at(row, 32)?, MAX_NAMES)?;
        for row in rows {
            let flags = u64_at(row, 8)?;
            let name = text_at(&names, u32_at(row, 0)? as usize).unwrap_or_default();
            self.sections.push(Section {
                // Names that this crate looks for are short.
                name: String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned(),
                kind: u32_at(row, 4)?,
                address: u64_at(row, 16)?,
                offset: u64_at(row, 24)?,
                len: u64_at(row, 32)?,
                link: u32_at(row, 40)?,
                is_code: flags & SHF_EXECUTABLE != 0,
                is_compressed: flags & SHF_COMPRESSED != 0,
            });
        }
        Some(())
    }

    /// The section with this name and with bytes in the file.
    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        let mut with_bytes = self.sections.iter().filter(|section| section.kind != SHT_NOBITS);
        with_bytes.find(|section| section.name == name)
    }

    /// The bytes of a section, decompressed; `None` if they exceed `limit` or are damaged.
    pub(crate) fn contents(&self, section: &Section, limit: u64) -> Option<Vec<u8>> {
        let bytes = self.read(section.offset, section.len, limit)?;
        if !section.is_compressed {
            return Some(bytes);
        }
        // Elf64_Chdr: type (1 is zlib), reserved, size, alignment.
        let (1, len) = (u32_at(&bytes, 0)?, u64_at(&bytes, 8)?) else {
            return None;
        };
        if len > limit {
            return None;
        }
        let mut plain = Vec::with_capacity(len as usize);
        let mut inflate = Decompress::new(true);
        let done = inflate.decompress_vec(bytes.get(24..)?, &mut plain, FlushDecompress::Finish);
        (matches!(done, Ok(Status::StreamEnd)) && plain.len() as u64 == len).then_some(plain)
    }

    pub(crate) const fn is_compressed(section: &Section) -> bool {
        section.is_compressed
    }

    /// CRC-32 of the whole file, as `.gnu_debuglink` has it.
    pub(crate) fn crc(&self) -> Option<u32> {
        let mut hasher = crc32fast::Hasher::new();
        let mut at = 0;
        while at < self.len {
            let bytes = self.read_some(at, 1 << 20);
            if bytes.is_empty() {
                return None;
            }
            hasher.update(&bytes);
            at += bytes.len() as u64;
        }
        Some(hasher.finalize())
    }

    /// The virtual address of a position in the file, if code is loaded from there.
    pub(crate) fn code_address(loads: &[Load], offset: u64) -> Option<u64> {
        let load = loads
            .iter()
            .find(|load| load.is_code && offset.checked_sub(load.offset).is_some_and(|into| into < load.len))?;
        load.address.checked_add(offset - load.offset)
    }
}

/// The build-id among notes.
fn build_id(notes: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0usize;
    loop {
        let name = u32_at(notes, at)? as usize;
        let len = u32_at(notes, at + 4)? as usize;
        let kind = u32_at(notes, at + 8)?;
        let text = at + 12;
        let value = text.checked_add(name.checked_next_multiple_of(4)?)?;
        let end = value.checked_add(len)?;
        if kind == 3 && notes.get(text..text.checked_add(name)?)? == b"GNU\0" {
            let id = notes.get(value..end)?;
            return (id.len() <= MAX_BUILD_ID).then(|| id.to_vec());
        }
        at = end.checked_next_multiple_of(4)?;
    }
}
