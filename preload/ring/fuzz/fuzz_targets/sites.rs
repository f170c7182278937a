//! Hostile stack files: `cargo +nightly fuzz run sites` in `preload/ring`.
#![no_main]
#![expect(clippy::unwrap_used, reason = "the intact file is made by the real writers")]

#[expect(dead_code, reason = "each target uses its own part")]
#[path = "../input.rs"]
mod input;

use libfuzzer_sys::fuzz_target;
use roctop_ring::sites::{CODE_BYTES, Entry, MAX_PATH, MAX_PYTHON_FRAMES, MAX_STACK, Reader};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = Reader::of(input::stacks(bytes)) else {
        return;
    };
    for _ in 0..2 {
        for entry in reader.by_ref() {
            match entry {
                Entry::Mapping(mapping) => assert!(mapping.path.len() <= MAX_PATH),
                Entry::Stack(stack) => assert!(stack.bytes.len() <= MAX_STACK),
                Entry::Code(code) => assert!(code.lines.len() <= CODE_BYTES),
                Entry::Python(stack) => assert!(stack.frames.len() <= MAX_PYTHON_FRAMES),
            }
        }
        reader.give_up_unfinished();
    }
    let _ = (reader.counters(), reader.lost(), reader.process());
});
