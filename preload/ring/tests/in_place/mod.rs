//! A sink with its own buffer, like the viewer's.

use roctop_ring::layout::clock;
use roctop_ring::reader::{Sink, Thread};
use roctop_ring::record::{SLOT_WORDS, Slot};

/// Fills the buffer where nothing was copied: no valid record.
const EMPTY_SLOT: Slot = [u64::MAX; SLOT_WORDS];

/// Passes the kept part of the buffer to another sink. Slots that the reader leaves without keeping them are cleared.
pub(crate) struct InPlace<'s, S> {
    sink: &'s mut S,
    room: Vec<Slot>,
    /// Number of slots kept.
    pub(crate) kept: u64,
}

impl<'s, S: Sink> InPlace<'s, S> {
    pub(crate) fn new(sink: &'s mut S) -> Self {
        Self {
            sink,
            room: Vec::new(),
            kept: 0,
        }
    }
}

impl<S: Sink> Sink for InPlace<'_, S> {
    fn string(&mut self, id: u32, text: &[u8]) {
        self.sink.string(id, text);
    }
    fn fact(&mut self, slots: &[Slot]) {
        self.sink.fact(slots);
    }
    fn calibration(&mut self, sample: &[u64; clock::WORDS]) {
        self.sink.calibration(sample);
    }
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        self.sink.record(thread, slots);
    }
    fn records(&mut self, thread: Thread, slots: &[Slot]) {
        self.sink.records(thread, slots);
    }
    fn lost(&mut self, thread: Thread, records: u64) {
        self.sink.lost(thread, records);
    }
    fn room(&mut self, slots: usize) -> Option<&mut [Slot]> {
        if self.room.len() < slots {
            self.room.resize(slots, EMPTY_SLOT);
        }
        Some(&mut self.room[..slots])
    }
    fn keep(&mut self, thread: Thread, slots: usize) {
        self.kept += slots as u64;
        self.sink.records(thread, &self.room[..slots]);
        self.room.fill(EMPTY_SLOT);
    }
}
