//! Texts and bytes made by a liar, for every reader that the fuzzer's target `parser` has (`fuzz/parsers.rs`): no panic, no
//! memory or time by their word. Kept inputs of the fuzzer are replayed; `ROCTOP_HOSTILE=100000` does more random changes.

#[path = "../../fuzz/parsers.rs"]
mod parsers;

use parsers::{PARSERS, Parser};
use roctop::clocks::of_thread;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most.max(1) as u64) as usize
    }

    fn place(&mut self, bytes: &[u8]) -> usize {
        self.below(bytes.len() + 1)
    }
}

/// What parsers stumble over.
const PIECES: [&[u8]; 36] = [
    b"",
    b"\0",
    b"\xff",
    b"\n",
    b" ",
    b"\"",
    b"'",
    b"\\",
    b"(",
    b")",
    b"[",
    b"]",
    b"{",
    b"}",
    b"<",
    b">",
    b"..",
    b":",
    b"- ",
    b"&a ",
    b"*a",
    b"/",
    b"~",
    b"!",
    b",",
    b"-1",
    b"1e400",
    b"nan",
    b"18446744073709551616",
    b"99999999999999999999ms",
    "İ".as_bytes(),
    "µ".as_bytes(),
    "日本".as_bytes(),
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x00\x00\x00\x80",
    b"S_I",
];

fn changed(parser: &Parser, dice: &mut Dice) -> Vec<u8> {
    let honest = (parser.honest)();
    let mut bytes = honest[dice.below(honest.len())].clone();
    for _ in 0..=dice.below(5) {
        let (one, other) = (dice.place(&bytes), dice.place(&bytes));
        let (from, to) = (one.min(other), one.max(other));
        let piece = PIECES[dice.below(PIECES.len())];
        match dice.below(8) {
            0 => drop(bytes.drain(from..to)),
            1 => bytes.truncate(to),
            2 => {
                let copy = bytes[from..to].to_vec();
                bytes.splice(from..from, copy);
            }
            3 => {
                let other = &honest[dice.below(honest.len())];
                bytes.splice(from.., other[dice.place(other)..].iter().copied());
            }
            4 if !bytes.is_empty() => {
                let at = dice.below(bytes.len());
                bytes[at] = dice.below(256) as u8;
            }
            // Many of the same.
            5 if dice.below(8) == 0 => drop(bytes.splice(from..from, piece.repeat(1 + dice.below(3000)))),
            6 => drop(bytes.splice(from..to, piece.iter().copied())),
            _ => drop(bytes.splice(from..from, piece.iter().copied())),
        }
        bytes.truncate(1 << 16);
    }
    bytes
}

/// Reads it; what goes wrong, in words.
fn fault(parser: &Parser, bytes: &[u8]) -> Option<String> {
    let begin = Instant::now();
    let fault = std::panic::catch_unwind(|| (parser.read)(bytes)).err()?;
    let text = fault.downcast_ref::<String>().cloned();
    let text = text.or_else(|| fault.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let shown = String::from_utf8_lossy(bytes);
    Some(format!(
        "{}: {shown:?}: {} after {:?}",
        parser.name,
        text.unwrap_or_default(),
        begin.elapsed()
    ))
}

#[test]
fn the_kept_inputs_of_the_fuzzer_are_survived() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/parser");
    let mut read = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("the kept inputs") {
        let bytes = std::fs::read(entry.expect("a file").path()).expect("a file");
        let Some((which, rest)) = bytes.split_first() else {
            continue;
        };
        let parser = &PARSERS[usize::from(*which) % PARSERS.len()];
        (parser.read)(rest);
        read.insert(parser.name);
    }
    for name in [
        "answer_id",
        "ask_request",
        "condition",
        "job_report",
        "name",
        "question",
        "tool_call",
    ] {
        assert!(read.contains(name), "no kept input for {name}");
    }
}

#[test]
fn every_change_of_an_honest_input_is_survived() {
    let rounds = std::env::var("ROCTOP_HOSTILE").ok().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(2000);
    let mut faults = Vec::new();
    for (parser, seed) in PARSERS.iter().zip(0x9e37_79b9_7f4a_7c15_u64..) {
        let mut dice = Dice(seed);
        let begin = Instant::now();
        for honest in (parser.honest)() {
            faults.extend(fault(parser, &honest));
        }
        for _ in 0..rounds {
            let bytes = changed(parser, &mut dice);
            let begun = of_thread();
            let found = fault(parser, &bytes);
            if found.is_some() {
                faults.extend(found);
                break;
            }
            // Whole seconds of work for 64 KiB are no reading any more, however slow the machine.
            assert!(
                of_thread().saturating_sub(begun) < Duration::from_secs(20),
                "{}: {:?}",
                parser.name,
                String::from_utf8_lossy(&bytes)
            );
        }
        println!("{}: {rounds} in {:?}", parser.name, begin.elapsed());
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
