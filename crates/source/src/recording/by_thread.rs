//! Records and losses by thread, until they are written as blocks.

use super::block::Owner;
use super::payload;
use super::writer::MAX_BLOCK_BYTES;
use roctop_ring::record::Slot;
use roctop_trace::item::LossReason;
use roctop_trace::raw::split;
use std::collections::BTreeMap;

/// Process and index of a ring.
type Ring = (u32, u32);

/// Records and losses that are in no block yet.
#[derive(Default)]
pub(super) struct ByThread {
    /// By ring, not by thread: one thread after another writes to a ring, and a thread id says nothing about its age.
    records: BTreeMap<Ring, (Owner, Vec<u8>)>,
    lost: BTreeMap<(Owner, LossReason), u64>,
}

impl ByThread {
    /// Adds records of a thread until they fill a block. Returns the block, if they do, and the records that are left; or
    /// first the block of the thread that had the ring before.
    pub(super) fn records<'a>(&mut self, owner: Owner, slots: &'a [Slot]) -> (Option<(Owner, Vec<u8>)>, &'a [Slot]) {
        if slots.is_empty() {
            return (None, slots);
        }
        let ring = (owner.process, owner.thread);
        let known = self.records.entry(ring).or_insert_with(|| (owner, Vec::new()));
        if known.0 != owner {
            return (Some(std::mem::replace(known, (owner, Vec::new()))), slots);
        }
        let bytes = &mut known.1;
        let room = MAX_BLOCK_BYTES.saturating_sub(bytes.len()).div_ceil(size_of::<Slot>());
        let (these, later) = split(slots, room);
        payload::put_slots(bytes, these);
        if bytes.len() < MAX_BLOCK_BYTES {
            return (None, later);
        }
        (self.records.remove(&ring), later)
    }

    /// Counts records of a thread that were lost.
    pub(super) fn lose(&mut self, owner: Owner, reason: LossReason, records: u64) {
        let lost = self.lost.entry((owner, reason)).or_default();
        *lost = lost.saturating_add(records);
    }

    /// Removes and returns the records, in the order of their rings.
    pub(super) fn take_records(&mut self) -> impl Iterator<Item = (Owner, Vec<u8>)> + use<> {
        let records = std::mem::take(&mut self.records).into_values();
        records.filter(|(_, bytes)| !bytes.is_empty())
    }

    /// Removes and returns the losses.
    pub(super) fn take_lost(&mut self) -> BTreeMap<(Owner, LossReason), u64> {
        std::mem::take(&mut self.lost)
    }

    /// Bytes of memory for records.
    pub(super) fn bytes(&self) -> usize {
        self.records.values().map(|(_, bytes)| bytes.capacity()).sum()
    }
}
