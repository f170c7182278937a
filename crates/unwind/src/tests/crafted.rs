//! Files that are valid in form and made to cost time or memory.

use super::program::Folder;
use crate::{Named, Names, NoName};
use flate2::{Compress, Compression, FlushCompress};
use roctop_trace::clocks::of_thread;
use std::time::Duration;

/// Far above what each takes, and far below what it would take without a limit.
const MAX_TIME: Duration = Duration::from_secs(20);

/// An ELF file with these sections: name, flags, bytes.
fn elf(sections: &[(&str, u64, &[u8])]) -> Vec<u8> {
    let mut file = vec![0; 64];
    file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file[18..20].copy_from_slice(&62u16.to_le_bytes());
    let (mut names, mut table) = (vec![0], vec![0u8; 64]);
    let names_at = sections.iter().fold(1, |sum, section| sum + section.0.len() + 1);
    for (name, flags, bytes) in sections.iter().copied().chain([(".shstrtab", 0, &[][..])]) {
        let at = names.len() as u32;
        names.extend(name.bytes().chain([0]));
        let is_names = at as usize == names_at;
        let bytes = if is_names { &names } else { bytes };
        let mut row = [at.to_le_bytes(), 1u32.to_le_bytes()].concat();
        let words = [flags, 0, file.len() as u64, bytes.len() as u64, 0, 1, 0];
        row.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        table.extend(&row[..64]);
        file.extend(bytes);
    }
    let at = file.len() as u64;
    file[40..48].copy_from_slice(&at.to_le_bytes());
    file[58..60].copy_from_slice(&64u16.to_le_bytes());
    file[60..62].copy_from_slice(&(sections.len() as u16 + 2).to_le_bytes());
    file[62..64].copy_from_slice(&(sections.len() as u16 + 1).to_le_bytes());
    file.extend(table);
    file
}

/// A unit of version 4 with its abbreviations at this position.
fn unit(abbreviations: u32, entries: &[u8]) -> Vec<u8> {
    let mut unit = (entries.len() as u32 + 7).to_le_bytes().to_vec();
    unit.extend(4u16.to_le_bytes());
    unit.extend(abbreviations.to_le_bytes());
    unit.push(8);
    unit.extend(entries);
    unit
}

/// An abbreviation: tag, whether it has children, attributes with their forms.
fn abbreviation(code: u8, tag: u8, has_children: u8, attributes: &[(u8, u8)]) -> Vec<u8> {
    let attributes = attributes.iter().flat_map(|(name, form)| [*name, *form]);
    [code, tag, has_children]
        .into_iter()
        .chain(attributes)
        .chain([0, 0])
        .collect()
}

/// Attributes `low_pc` as address and `high_pc` as length of eight bytes.
const PCS: [(u8, u8); 2] = [(0x11, 1), (0x12, 7)];

fn abbreviations() -> Vec<u8> {
    [
        abbreviation(1, 0x11, 1, &PCS),
        // A function with its name in place.
        abbreviation(2, 0x2e, 1, &[(0x03, 8), PCS[0], PCS[1]]),
        // An inlined function that refers to another entry.
        abbreviation(3, 0x1d, 1, &[(0x31, 0x13), PCS[0], PCS[1]]),
        // A function with a list of ranges.
        abbreviation(4, 0x2e, 0, &[(0x55, 0x17)]),
        vec![0],
    ]
    .concat()
}

/// `low_pc` and `high_pc`.
fn pcs(begin: u64, len: u64) -> Vec<u8> {
    [begin.to_le_bytes(), len.to_le_bytes()].concat()
}

/// Names an address of a file with these sections.
fn name(sections: &[(&str, u64, &[u8])], address: u64) -> Result<Vec<Named>, NoName> {
    let folder = Folder::new();
    let path = folder.file("crafted");
    std::fs::write(&path, elf(sections)).unwrap();
    let begin = of_thread();
    let named = Names::default().name(&path, b"", address);
    let took = of_thread().saturating_sub(begin);
    assert!(took < MAX_TIME, "{took:?}");
    named
}

#[test]
fn deeply_nested_functions_end_at_the_limit() {
    let mut entries = [&[1][..], &pcs(0x1000, 0x100), b"\x02outer\0", &pcs(0x1000, 0x100)].concat();
    // They refer to the function that has them.
    let origin = 11 + 17u32;
    for _ in 0..300_000 {
        entries.push(3);
        entries.extend(origin.to_le_bytes());
        entries.extend(pcs(0x1000, 0x100));
    }
    let info = unit(0, &entries);
    let sections = [(".debug_abbrev", 0, &abbreviations()[..]), (".debug_info", 0, &info)];
    let named = name(&sections, 0x1050).unwrap();
    assert_eq!(named.len(), 64);
    assert!(named.iter().all(|one| one.function == "outer"));
    assert_eq!(name(&sections, 0x2000), Err(NoName::NoSymbol));
}

#[test]
fn entries_that_refer_to_themselves_have_no_name() {
    // The inlined function refers to itself; so does one to another unit, which refers back.
    let before = [&[1][..], &pcs(0x1000, 0x100), b"\x02outer\0", &pcs(0x1000, 0x100)].concat();
    let at = 11 + before.len() as u32;
    let entries = [&before, &[3][..], &at.to_le_bytes(), &pcs(0x1000, 0x10)].concat();
    let info = unit(0, &entries);
    let sections = [(".debug_abbrev", 0, &abbreviations()[..]), (".debug_info", 0, &info)];
    let named = name(&sections, 0x1001).unwrap();
    let functions: Vec<&str> = named.iter().map(|one| one.function.as_str()).collect();
    assert_eq!(functions, ["", "outer"]);
}

#[test]
fn entries_of_other_units_are_found() {
    // DW_FORM_ref_addr, to a function far behind the start of the other unit.
    let table = [
        abbreviation(1, 0x11, 1, &PCS),
        abbreviation(2, 0x2e, 0, &[(0x31, 0x10), PCS[0], PCS[1]]),
        abbreviation(3, 0x2e, 0, &[(0x03, 8)]),
        abbreviation(4, 0x2e, 0, &[(0x47, 0x13)]),
        vec![0],
    ]
    .concat();
    let mut other = [&[1][..], &pcs(0x9000, 0x100)].concat();
    let padding = b"\x03padding\0".repeat(2000);
    other.extend(&padding);
    let named_at = 11 + other.len() as u32;
    other.extend(b"\x03far\0");
    let referring_at = 11 + other.len() as u32;
    other.push(4);
    other.extend(named_at.to_le_bytes());
    let other = unit(0, &other);
    let entries = [
        &[1][..],
        &pcs(0x1000, 0x100),
        &[2],
        &referring_at.to_le_bytes(),
        &pcs(0x1000, 0x100),
    ]
    .concat();
    let info = [other, unit(0, &entries)].concat();
    let sections = [(".debug_abbrev", 0, &table[..]), (".debug_info", 0, &info)];
    let named = name(&sections, 0x1001).unwrap();
    assert_eq!((named.len(), named[0].function.as_str()), (1, "far"));
}

#[test]
fn shared_lists_of_ranges_are_limited() {
    let mut entries = [&[1][..], &pcs(0x1000, 0x100_0000)].concat();
    for _ in 0..200_000 {
        entries.extend([4, 0, 0, 0, 0]);
    }
    let mut ranges = Vec::new();
    for n in 0..50_000u64 {
        ranges.extend((16 * n).to_le_bytes());
        ranges.extend((16 * n + 8).to_le_bytes());
    }
    let info = unit(0, &entries);
    let table = abbreviations();
    let sections = [
        (".debug_abbrev", 0, &table[..]),
        (".debug_info", 0, &info),
        (".debug_ranges", 0, &ranges),
    ];
    assert_eq!(name(&sections, 0x1004), Err(NoName::NoSymbol));
}

#[test]
fn many_units_with_long_abbreviations_are_limited() {
    let mut table = Vec::new();
    let mut starts = [0; 2];
    for start in &mut starts {
        *start = table.len() as u32;
        for code in 0..80_000u32 {
            // Codes of three bytes from 1 on.
            let code = code + 1;
            table.extend([
                code as u8 | 0x80,
                (code >> 7) as u8 | 0x80,
                (code >> 14) as u8,
                0x34,
                0,
                0,
                0,
            ]);
        }
        table.push(0);
    }
    let one = |n: u32| unit(starts[n as usize % 2], &[0x81, 0x80, 0]);
    let info: Vec<u8> = (0..200_000).flat_map(one).collect();
    let sections = [(".debug_abbrev", 0, &table[..]), (".debug_info", 0, &info)];
    assert_eq!(name(&sections, 0x1000), Err(NoName::NoSymbol));
}

#[test]
fn compressed_sections_have_a_limit() {
    let entries = [&[1][..], &pcs(0x1000, 0x100), b"\x02outer\0", &pcs(0x1000, 0x100)].concat();
    let info = unit(0, &entries);
    let compressed = |claimed: u64, zeros: usize| {
        let plain = [&info[..], &vec![0; zeros]].concat();
        let mut bytes = vec![0; 24];
        bytes[0] = 1;
        bytes[8..16].copy_from_slice(&claimed.to_le_bytes());
        let mut packed = Vec::with_capacity(1 << 20);
        let mut deflate = Compress::new(Compression::best(), true);
        deflate
            .compress_vec(&plain, &mut packed, FlushCompress::Finish)
            .unwrap();
        bytes.extend(packed);
        bytes
    };
    let len = info.len() as u64;
    let table = abbreviations();
    let named = |bytes: &[u8]| name(&[(".debug_abbrev", 0, &table), (".debug_info", 1 << 11, bytes)], 0x1001).is_ok();
    assert!(named(&compressed(len, 0)));
    assert!(named(&compressed(len + (64 << 20), 64 << 20)));
    // Longer or shorter than it claims, and too long.
    assert!(!named(&compressed(len, 64 << 20)));
    assert!(!named(&compressed(len + 1, 0)));
    assert!(!named(&compressed(len + (100 << 20), 100 << 20)));
    assert!(!named(&compressed(u64::MAX, 0)));
}
