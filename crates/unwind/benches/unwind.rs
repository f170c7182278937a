//! What call paths and names cost: stacks unwound per second, 10 000 addresses named, memory.
//!
//! `cargo bench -p roctop-unwind --bench unwind -- [FILE]` prints a table. FILE is an ELF file with debug information; 10 000
//! addresses that are spread over its code are named in random order. Without it, or without g++, that part is left out.
//! Limits are those of the project for a file of 500 MB: 10 s, 512 MiB.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

// The programs of the tests; they find these names at the root of their crate.
#[path = "../src/tests/program.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod program;

use roctop_unwind::{CallPath, Files, Mapping, Names, NoName, Process, Stack};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Addresses that are named.
const ADDRESSES: usize = 10_000;
const MAX_TIME: Duration = Duration::from_secs(10);
/// Peak of resident memory, MiB.
const MAX_MEMORY: u64 = 512;

/// Peak of this process's resident memory, MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
}

fn unwinding() {
    let folder = program::Folder::new();
    let path = program::compile(&folder, "program", "-O2");
    let output = program::output(&path, &[]);
    let (mut process, mut files) = (Process::new(None), Files::new());
    output.mappings.iter().for_each(|mapping| process.map(mapping.clone()));
    let all = |process: &mut Process, files: &mut Files| -> usize {
        let stacks = output.stacks.iter();
        stacks
            .map(|noted| process.call_path(&noted.stack(), files).frames.len())
            .sum()
    };
    let begin = Instant::now();
    let frames = all(&mut process, &mut files);
    let first = begin.elapsed();
    let begin = Instant::now();
    let mut rounds = 0u32;
    while begin.elapsed() < Duration::from_secs(1) {
        assert_eq!(all(&mut process, &mut files), frames);
        rounds += 1;
    }
    let stacks = output.stacks.len() as u32;
    let each = begin.elapsed() / (rounds * stacks);
    println!(
        "{stacks} stacks with {frames} frames, with reading the files: {:.2} ms",
        first.as_secs_f64() * 1e3
    );
    println!(
        "a stack of {:.1} frames, again: {:.2} µs, {:.0} a second",
        frames as f64 / f64::from(stacks),
        each.as_secs_f64() * 1e6,
        1.0 / each.as_secs_f64()
    );
}

/// The addresses of a file's code.
fn code(file: &std::fs::File) -> Vec<std::ops::Range<u64>> {
    let read = |at, len| {
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    };
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let head = read(0, 64);
    let table = read(word(&head, 32), 56 * usize::from(head[56]));
    let loads = table.chunks_exact(56).filter(|row| row[0] == 1 && row[4] & 1 != 0);
    loads.map(|row| word(row, 16)..word(row, 16) + word(row, 32)).collect()
}

fn naming(path: &Path) {
    let file = std::fs::File::open(path).unwrap();
    let code = code(&file);
    let total: u64 = code.iter().map(|range| range.end - range.start).sum();
    let address = |n: usize| {
        // A prime number of steps through the code, so that the order is not that of the addresses.
        let mut into = (n as u64 * 7_919 % ADDRESSES as u64) * (total / ADDRESSES as u64);
        for range in &code {
            if into < range.end - range.start {
                return range.start + into;
            }
            into -= range.end - range.start;
        }
        0
    };
    let addresses: Vec<u64> = (0..ADDRESSES).map(address).collect();
    // The build-id of the file as it is now.
    let build_id = match Names::default().name(path, b"none", 0) {
        Err(NoName::OtherBuild { found }) => found,
        other => panic!("{}: {other:?}", path.display()),
    };
    println!("{}, {} MB:", path.display(), file.metadata().unwrap().len() / 1_000_000);
    let before = peak();
    let mut names = Names::default();
    let begin = Instant::now();
    let _ = names.name(path, &build_id, addresses[0]);
    println!(
        "  the first name, with the index: {:.2} s, {} MiB",
        begin.elapsed().as_secs_f64(),
        peak()
    );
    let begin = Instant::now();
    let named = names.all(path, &build_id, &addresses);
    let took = begin.elapsed();
    let found = named.iter().flatten().count();
    let with_line = named.iter().flatten().filter(|one| one[0].line != 0).count();
    let frames: usize = named.iter().flatten().map(Vec::len).sum();
    println!(
        "  {ADDRESSES} addresses: {:.2} s (limit {} s), {found} have names, {with_line} lines, {frames} functions with inlined ones",
        took.as_secs_f64(),
        MAX_TIME.as_secs()
    );
    let memory = peak();
    println!("  peak memory: {memory} MiB (limit {MAX_MEMORY} MiB), {before} MiB before");
    assert!(took <= MAX_TIME && memory <= MAX_MEMORY, "a limit is exceeded");
}

fn main() {
    let file = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if program::has("g++") {
        unwinding();
    }
    if let Some(file) = file {
        naming(Path::new(&file));
    }
}
