//! What an ELF file says of how it is loaded: its class, its loader, the libraries it needs.
//!
//! Reads hostile bytes: everything is bounded by the file, nothing is trusted, and what does not fit is absent.

use std::os::unix::fs::FileExt;

/// A 64-bit little-endian program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elf {
    /// The loader that it asks for; none for a library or a static program.
    pub interpreter: Option<String>,
    /// Names of the libraries that it needs.
    pub needed: Vec<String>,
    /// Directories that it wants searched for them.
    pub paths: Vec<String>,
    /// Has it a dynamic section?
    pub is_dynamic: bool,
}

/// What a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program or library for x86-64.
    Native(Elf),
    /// The same for another machine or word size.
    Foreign(&'static str),
    /// A script and what runs it.
    Script(String),
    /// Something else.
    Other,
}

const PROGRAM_DYNAMIC: u32 = 2;
const PROGRAM_INTERPRETER: u32 = 3;
const PROGRAM_NOTE: u32 = 4;
const PROGRAM_LOAD: u32 = 1;
const NEEDED: u64 = 1;
const STRINGS: u64 = 5;
const RPATH: u64 = 15;
const RUNPATH: u64 = 29;
const X86_64: u64 = 62;
const MAX_ENTRIES: usize = 4096;

/// Where bytes come from: a file, of which only what is asked for is read.
pub trait Bytes {
    /// Up to `length` bytes from `offset` on.
    fn upto(&self, offset: usize, length: usize) -> Vec<u8>;
}

impl Bytes for [u8] {
    fn upto(&self, offset: usize, length: usize) -> Vec<u8> {
        let end = offset.saturating_add(length).min(self.len());
        self.get(offset..end).map(<[u8]>::to_vec).unwrap_or_default()
    }
}

impl Bytes for std::fs::File {
    fn upto(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let read = self.read_at(&mut bytes, offset as u64).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }
}

/// Looks at the bytes of a file.
pub fn kind(bytes: &(impl Bytes + ?Sized)) -> Kind {
    match bytes.upto(0, 6).as_slice() {
        [b'#', b'!', ..] => {
            let first = bytes.upto(2, MAX_ENTRIES);
            let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
            Kind::Script(String::from_utf8_lossy(line).trim().to_owned())
        }
        [0x7f, b'E', b'L', b'F', 2, 1] if number(bytes, 18, 2) == Some(X86_64) => {
            Kind::Native(read(bytes).unwrap_or_default())
        }
        [0x7f, b'E', b'L', b'F', 1, _] => Kind::Foreign("32-bit"),
        [0x7f, b'E', b'L', b'F', ..] => Kind::Foreign("for another machine"),
        _ => Kind::Other,
    }
}

fn number(bytes: &(impl Bytes + ?Sized), at: usize, size: usize) -> Option<u64> {
    let raw = bytes.upto(at, size);
    (raw.len() == size).then(|| raw.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn place(bytes: &(impl Bytes + ?Sized), at: usize) -> Option<usize> {
    usize::try_from(number(bytes, at, 8)?).ok()
}

fn text(bytes: &(impl Bytes + ?Sized), at: usize) -> Option<String> {
    let rest = bytes.upto(at, MAX_ENTRIES);
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

/// The GNU build id of a file.
pub fn build_id(path: &std::path::Path) -> Option<String> {
    const GNU_BUILD_ID: u64 = 3;
    let file = std::fs::File::open(path).ok()?;
    if !matches!(kind(&file), Kind::Native(_)) {
        return None;
    }
    for (kind, at, _, length) in headers(&file)? {
        let notes = if kind == PROGRAM_NOTE {
            file.upto(at, length.min(MAX_ENTRIES))
        } else {
            continue;
        };
        let notes = notes.as_slice();
        let mut at = 0;
        while let (Some(name), Some(size)) = (number(notes, at, 4), number(notes, at + 4, 4)) {
            let (name, size) = (name as usize, size as usize);
            let content = (at + 12).saturating_add(name).next_multiple_of(4);
            let end = content.saturating_add(size);
            if number(notes, at + 8, 4)? == GNU_BUILD_ID && notes.upto(at + 12, name) == b"GNU\0" {
                let id = notes.get(content..end)?;
                return Some(
                    id.iter()
                        .fold(String::new(), |text, byte| text + &format!("{byte:02x}")),
                );
            }
            at = end.next_multiple_of(4);
        }
    }
    None
}

/// A program header: kind, place in the file, address, bytes in the file.
type Header = (u32, usize, u64, usize);

fn headers(bytes: &(impl Bytes + ?Sized)) -> Option<Vec<Header>> {
    let (table, size, count) = (place(bytes, 32)?, number(bytes, 54, 2)?, number(bytes, 56, 2)?);
    let header = |index: u64| -> Option<Header> {
        let at = table.checked_add(usize::try_from(index.checked_mul(size)?).ok()?)?;
        Some((
            number(bytes, at, 4)? as u32,
            place(bytes, at.checked_add(8)?)?,
            number(bytes, at.checked_add(16)?, 8)?,
            place(bytes, at.checked_add(32)?)?,
        ))
    };
    Some((0..count).map_while(header).collect())
}

fn read(bytes: &(impl Bytes + ?Sized)) -> Option<Elf> {
    let headers = headers(bytes)?;
    let find = |kind: u32| headers.iter().find(|header| header.0 == kind);
    let mut elf = Elf {
        interpreter: find(PROGRAM_INTERPRETER).and_then(|header| text(bytes, header.1)),
        is_dynamic: find(PROGRAM_DYNAMIC).is_some(),
        ..Elf::default()
    };
    let Some(&(_, dynamic, _, length)) = find(PROGRAM_DYNAMIC) else {
        return Some(elf);
    };
    let entries: Vec<(u64, u64)> = (0..(length / 16).min(MAX_ENTRIES))
        .map_while(|index| {
            let at = dynamic.checked_add(index * 16)?;
            Some((number(bytes, at, 8)?, number(bytes, at.checked_add(8)?, 8)?))
        })
        .take_while(|entry| entry.0 != 0)
        .collect();
    // Strings are named by address: the segment around it says where that is in the file.
    let strings = entries.iter().find(|entry| entry.0 == STRINGS).and_then(|entry| {
        let around = headers.iter().find(|&&(kind, _, address, length)| {
            kind == PROGRAM_LOAD && (address..address.saturating_add(length as u64)).contains(&entry.1)
        })?;
        around.1.checked_add(usize::try_from(entry.1 - around.2).ok()?)
    });
    let Some(strings) = strings else { return Some(elf) };
    for (tag, value) in entries {
        let name = || text(bytes, strings.checked_add(usize::try_from(value).ok()?)?);
        match tag {
            NEEDED => elf.needed.extend(name()),
            RPATH | RUNPATH => elf
                .paths
                .extend(name().iter().flat_map(|paths| paths.split(':').map(str::to_owned))),
            _ => {}
        }
    }
    Some(elf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_its_loader_and_libraries() {
        let Kind::Native(elf) = kind(&std::fs::File::open("/proc/self/exe").unwrap()) else {
            panic!("the test is no program")
        };
        assert!(elf.interpreter.is_some_and(|name| name.contains("ld-linux")));
        assert!(
            elf.needed.iter().any(|name| name.starts_with("libc.so")),
            "{:?}",
            elf.needed
        );
    }

    #[test]
    fn other_files_are_told_apart() {
        assert_eq!(
            kind(b"#!/usr/bin/python3\nimport x".as_slice()),
            Kind::Script("/usr/bin/python3".into())
        );
        assert_eq!(kind(b"\x7fELF\x01\x01rest".as_slice()), Kind::Foreign("32-bit"));
        assert_eq!(kind(b"plain text".as_slice()), Kind::Other);
        assert_eq!(kind(b"".as_slice()), Kind::Other);
    }

    #[test]
    fn reading_damaged_programs_is_total() {
        let whole = std::fs::read("/proc/self/exe").unwrap();
        for cut in [0, 5, 20, 33, 56, 63, 64, 100, 500, 1000] {
            let _ = kind(&whole[..cut]);
        }
        for at in 16..600 {
            let mut bytes = whole[..4096].to_vec();
            bytes[at] = 0xff;
            let _ = kind(bytes.as_slice());
        }
    }
}
