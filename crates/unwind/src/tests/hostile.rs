//! Damaged files and random stacks: nothing panics, and each takes a bounded time.

use super::program::{Folder, Output, compile, has, output, paths, run};
use crate::{End, Files, Mapping, Names, Process, Stack};
use roctop_trace::clocks::of_thread;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Pseudo-random numbers (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// A program, what it printed, and the addresses of its frames.
struct Sample {
    folder: Folder,
    bytes: Vec<u8>,
    build_id: Vec<u8>,
    output: Output,
    offsets: Vec<u64>,
}

fn sample(options: &str) -> Sample {
    let folder = Folder::new();
    let program = compile(&folder, "program", options);
    let mut output = output(&program, &["no exceptions"]);
    let found = paths(&output);
    let own = |id| found.files.module(id).unwrap().path == program;
    let frames = found.paths.iter().flat_map(|path| &path.frames);
    let mut offsets: Vec<u64> = frames
        .filter(|frame| frame.module.is_some_and(own))
        .map(|frame| frame.offset)
        .collect();
    offsets.sort_unstable();
    offsets.dedup();
    output.mappings.retain(|mapping| mapping.path == program);
    Sample {
        bytes: std::fs::read(&program).unwrap(),
        build_id: crate::elf::Elf::open(&program).unwrap().build_id,
        folder,
        output,
        offsets,
    }
}

/// What is read takes a bounded time of this thread, whatever else the machine does.
fn check_time(begin: Duration) {
    let took = of_thread().saturating_sub(begin);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

impl Sample {
    /// Unwinds and names by a damaged file; returns the number of frames and names.
    fn read(&self, bytes: &[u8]) -> (usize, usize) {
        let path = self.folder.file("damaged");
        std::fs::write(&path, bytes).unwrap();
        let begin = of_thread();
        let frames = self.unwind(&path);
        let mut names = Names::default();
        let named = names.all(&path, &self.build_id, &self.offsets);
        check_time(begin);
        (frames, named.iter().filter(|one| one.is_ok()).count())
    }

    fn unwind(&self, path: &Path) -> usize {
        let (mut process, mut files) = (Process::new(None), Files::new());
        for mapping in &self.output.mappings {
            process.map(Mapping {
                path: path.to_owned(),
                inode: 0,
                ..mapping.clone()
            });
        }
        let stacks = self.output.stacks.iter();
        stacks
            .map(|noted| process.call_path(&noted.stack(), &mut files).frames.len())
            .sum()
    }
}

/// Programs whose tables and debug information have different forms.
const OPTIONS: [&str; 3] = [
    "-O2 -s",
    "-O2 -gdwarf-4 -Wl,--no-eh-frame-hdr",
    "-O1 -gdwarf-5 -fno-omit-frame-pointer",
];

#[test]
fn truncated_files_yield_fewer_names() {
    if has("g++") {
        let sample = sample("-O2");
        let whole = sample.read(&sample.bytes);
        assert_eq!(whole.1, sample.offsets.len());
        let len = sample.bytes.len();
        for end in (0..100).map(|part| len * part / 100).chain(0..130) {
            let (frames, named) = sample.read(&sample.bytes[..end]);
            assert!(frames <= whole.0 && named <= whole.1, "{end}");
        }
        // The headers of the sections are at the end of the file.
        assert_eq!(sample.read(&sample.bytes[..len - 1]).1, 0);
    }
}

#[test]
fn flipped_bits_in_files_do_no_harm() {
    if has("g++") {
        std::thread::scope(|scope| {
            for (seed, options) in (1..).zip(OPTIONS) {
                scope.spawn(move || flip(seed, options));
            }
        });
    }
}

fn flip(seed: u64, options: &str) {
    let sample = sample(options);
    let mut random = Random(seed << 32 | 0x9e37_79b9);
    let elf = crate::elf::Elf::open(&sample.folder.file("program")).unwrap();
    // Damage where it matters: headers, tables of frames, debug information, symbols.
    let read = |name: &str| {
        [".eh_frame", ".debug", ".sym", ".str", ".dyn", ".note"]
            .iter()
            .any(|one| name.starts_with(one))
    };
    let mut places = vec![(0, 64 + 14 * 56), (sample.bytes.len() - 40 * 64, 40 * 64)];
    let sections = elf.sections.iter().filter(|section| read(&section.name));
    places.extend(sections.map(|section| (section.offset as usize, section.len as usize)));
    places.retain(|(begin, len)| *len > 0 && begin + len <= sample.bytes.len());
    let mut fewer = 0;
    let whole = sample.read(&sample.bytes);
    for _ in 0..250 {
        let mut bytes = sample.bytes.clone();
        for _ in 0..=random.below(3) {
            let (begin, len) = places[random.below(places.len())];
            let at = begin + random.below(len);
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.next() as u8,
                2 => bytes[at] = 0xff,
                _ => {
                    let end = (at + 8).min(bytes.len());
                    let value = [0, 1, u64::MAX, u64::MAX - 7, 1 << 63, 0x7fff_ffff][random.below(6)];
                    bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
                }
            }
        }
        fewer += u32::from(sample.read(&bytes) != whole);
    }
    assert!(fewer > 10, "{fewer}");
}

#[test]
fn random_stacks_do_no_harm() {
    if has("g++") {
        let sample = sample("-O2");
        let (mut process, mut files) = (Process::new(None), Files::new());
        sample
            .output
            .mappings
            .iter()
            .for_each(|mapping| process.map(mapping.clone()));
        let code = &sample.output.mappings[0];
        let mut random = Random(7);
        let mut longest = 0;
        for _ in 0..20_000 {
            let sp = [0, 8, random.next(), 0x7ffd_0000_0000, u64::MAX - 4096, u64::MAX - 7][random.below(6)];
            let word = |random: &mut Random| match random.below(6) {
                0 => random.next(),
                1 => sp.wrapping_add(random.below(8192) as u64 & !7),
                2 => random.below(4096) as u64,
                // Returns to places where calls are.
                _ => {
                    let offset = sample.offsets[random.below(sample.offsets.len())];
                    code.start + (offset + 1).wrapping_sub(code.offset)
                }
            };
            let ip = word(&mut random);
            let bp = word(&mut random);
            let len = random.below(512);
            let mut bytes: Vec<u8> = (0..len).flat_map(|_| word(&mut random).to_le_bytes()).collect();
            bytes.truncate(random.below(bytes.len() + 1));
            let stack = Stack {
                ip,
                sp,
                bp,
                bytes: &bytes,
            };
            let path = process.call_path(&stack, &mut files);
            assert!((1..=256).contains(&path.frames.len()));
            longest = longest.max(path.frames.len());
        }
        assert!(longest > 5, "{longest}");
    }
}

#[test]
fn deep_recursion_ends_at_the_limit() {
    // Frames of a function without a file, each with the next one's frame pointer.
    let mut process = Process::new(None);
    process.map(Mapping {
        start: 0x1000,
        end: 0x2000,
        offset: 0,
        device: 0,
        inode: 0,
        path: PathBuf::new(),
    });
    let sp = 0x7000_0000u64;
    let frame = |n: u64| [(sp + 16 * (n + 1)).to_le_bytes(), 0x1234u64.to_le_bytes()].concat();
    let mut bytes: Vec<u8> = (0..1000).flat_map(frame).collect();
    let mut path = |bytes: &[u8]| {
        let stack = Stack {
            ip: 0x1111,
            sp,
            bp: sp,
            bytes,
        };
        process.call_path(&stack, &mut Files::new())
    };
    let deep = path(&bytes);
    assert_eq!((deep.frames.len(), deep.end), (256, End::TooDeep));
    assert_eq!(
        (path(&bytes[..160]).frames.len(), path(&bytes[..160]).end),
        (11, End::Cut)
    );
    // The first frame of a thread has no frame pointer.
    bytes.truncate(160);
    bytes[144..152].fill(0);
    assert_eq!((path(&bytes).frames.len(), path(&bytes).end), (11, End::Complete));
    // A frame pointer that goes back.
    bytes[144..152].copy_from_slice(&sp.to_le_bytes());
    assert_eq!((path(&bytes).frames.len(), path(&bytes).end), (11, End::NoInformation));
}

#[test]
fn endless_expressions_end() {
    if has("gcc") {
        let folder = Folder::new();
        // The canonical frame address is: nop; jump back to it.
        let source =
            ".text\n.globl main\nmain:\n.cfi_startproc\n.cfi_escape 0x0f,4,0x96,0x2f,0xfc,0xff\nret\n.cfi_endproc\n";
        std::fs::write(folder.file("endless.s"), source).unwrap();
        run(&folder, "gcc", "-no-pie endless.s -o endless");
        let path = folder.file("endless");
        let elf = crate::elf::Elf::open(&path).unwrap();
        let text = elf.section(".text").unwrap();
        let mut process = Process::new(None);
        process.map(Mapping {
            start: text.address,
            end: text.address + text.len,
            offset: text.offset,
            device: 0,
            inode: 0,
            path,
        });
        let begin = of_thread();
        let mut ends = Vec::new();
        for ip in text.address + 1..text.address + text.len {
            let stack = Stack {
                ip,
                sp: 0x1000,
                bp: 0,
                bytes: &[0; 64],
            };
            ends.push(process.call_path(&stack, &mut Files::new()).end);
        }
        assert!(ends.contains(&End::NoInformation));
        check_time(begin);
    }
}

#[test]
fn pipes_and_folders_are_not_read() {
    let folder = Folder::new();
    let pipe = folder.file("pipe");
    if std::process::Command::new("mkfifo").arg(&pipe).status().is_ok() {
        let name = Names::default().name(&pipe, b"", 1);
        assert_eq!(name, Err(crate::NoName::NotElf));
    }
    assert_eq!(Names::default().name(&folder.0, b"", 1), Err(crate::NoName::NotElf));
    assert_eq!(
        Names::default().name(Path::new("/dev/zero"), b"", 1),
        Err(crate::NoName::NotElf)
    );
}
