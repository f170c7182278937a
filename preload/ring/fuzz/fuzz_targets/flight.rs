//! Hostile flight files: `cargo +nightly fuzz run flight` in `preload/ring`.
#![no_main]
#![expect(clippy::unwrap_used, reason = "the intact file is made by the real writers")]

#[expect(dead_code, reason = "each target uses its own part")]
#[path = "../input.rs"]
mod input;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let file = input::flying(bytes);
    if let Ok(left) = roctop_ring::flight::read(&file) {
        assert!(left.len() <= file.len() / 64);
        for left in left {
            let _ = left.slots();
        }
    }
});
