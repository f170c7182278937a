//! Hostile ring files, read as the viewer reads them: `cargo +nightly fuzz run ring` in `preload/ring`.
#![no_main]
#![expect(clippy::unwrap_used, reason = "the intact file is made by the real writers")]

#[expect(dead_code, reason = "each target uses its own part")]
#[path = "../input.rs"]
mod input;

#[path = "../../tests/in_place/mod.rs"]
mod in_place;

use libfuzzer_sys::fuzz_target;
use roctop_ring::layout::clock;
use roctop_ring::reader::{Ended, Reader, Sink, Thread};
use roctop_ring::record::{Slot, decode};

struct Count(u64);
impl Sink for Count {
    fn string(&mut self, _: u32, _: &[u8]) {
        self.0 += 1;
    }
    fn fact(&mut self, slots: &[Slot]) {
        let _ = decode(slots);
        self.0 += 1;
    }
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {
        self.0 += 1;
    }
    fn record(&mut self, _: Thread, slots: &[Slot]) {
        let _ = decode(slots);
        self.0 += 1;
    }
    fn lost(&mut self, _: Thread, _: u64) {
        self.0 += 1;
    }
}

fuzz_target!(|bytes: &[u8]| {
    let file = input::ring(bytes);
    let most = 64 * file.len() as u64 + 4096;
    let Ok(mut reader) = Reader::open(file) else { return };
    let mut count = Count(0);
    let _ = reader.poll(Ended::No, &mut count);
    for ended in [Ended::No, Ended::Yes] {
        let _ = reader.poll(ended, &mut in_place::InPlace::new(&mut count));
    }
    assert!(count.0 <= most, "{} things in {most} bytes", count.0);
    let _ = reader.accounts();
    let _ = reader.counters();
    let _ = reader.open_work();
    let _ = reader.totals();
    let _ = reader.newest_dispatches();
    let _ = reader.entry_sum(roctop_ring::layout::entry::REENTRANT);
});
