//! Records and losses by thread, until they are written as blocks.

use super::block::Owner;
use super::payload;
use super::writer::MAX_BLOCK_BYTES;
use roctop_ring::reader::Thread;
use roctop_ring::record::Slot;
use std::collections::BTreeMap;

/// Records and losses that are in no block yet.
#[derive(Default)]
pub(super) struct ByThread {
    records: BTreeMap<Owner, Vec<u8>>,
    lost: BTreeMap<Owner, u64>,
}

impl ByThread {
    /// Adds a record; the thread's records, if they fill a block.
    pub(super) fn record(&mut self, process: u32, thread: Thread, slots: &[Slot]) -> Option<(Owner, Vec<u8>)> {
        let owner = Owner::of(process, thread);
        let bytes = self.records.entry(owner).or_default();
        payload::put_slots(bytes, slots);
        (bytes.len() >= MAX_BLOCK_BYTES).then(|| (owner, std::mem::take(bytes)))
    }

    /// Counts records of a thread that were lost.
    pub(super) fn lose(&mut self, owner: Owner, records: u64) {
        let lost = self.lost.entry(owner).or_default();
        *lost = lost.saturating_add(records);
    }

    /// Removes and returns the records, in the order of their threads.
    pub(super) fn take_records(&mut self) -> BTreeMap<Owner, Vec<u8>> {
        std::mem::take(&mut self.records)
    }

    /// Removes and returns the losses.
    pub(super) fn take_lost(&mut self) -> BTreeMap<Owner, u64> {
        std::mem::take(&mut self.lost)
    }

    /// Bytes of memory for records.
    pub(super) fn bytes(&self) -> usize {
        self.records.values().map(Vec::capacity).sum()
    }
}
