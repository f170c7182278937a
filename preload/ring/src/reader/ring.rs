//! The ring of one thread: copied, then accepted as far as no writer can have been there meanwhile.

use super::words::read_full;
use super::{Bytes, Progress, Reader, Sink, Thread};
use crate::layout::{Region, entry};
use crate::record::{CONTINUATION, Head, MAX_SLOTS, SLOT_BYTES, SLOT_WORDS, Slot, ThreadStart};
use crate::sync::{Ordering, fence};
use std::io;
use std::ops::Range;

/// What is copied at once: little enough to stay near the processor until it is handed over.
const BATCH_SLOTS: u64 = 1024;
/// What finding the owner of a record takes, in slots.
const OWNER_COST: u64 = 256;
/// No ring gets that far in a thousand years; keeps the arithmetic of indices away from its ends.
pub(super) const MAX_HEAD: u64 = 1 << 62;

/// Where the reader stands in one ring.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    pub(super) ring_offset: u64,
    pub(super) ring_slots: u64,
    pub(super) next: u64,
    /// Ordinal that the next record will have when nothing is lost: records seen and lost so far.
    pub(super) ordinal: u64,
    /// Records that the writer says it wrote. After a kill one less than there are, at times: it is stored after head.
    pub(super) records: u64,
    /// Life of the entry whose records are being read, 0 unknown.
    life: u32,
    pub(super) tid: u32,
    pub(super) seen: u64,
    pub(super) lost: u64,
    pub(super) damaged: bool,
}

impl Cursor {
    /// How full its ring is when the head is there, in 1/1000.
    pub(super) fn fill(&self, head: u64) -> u32 {
        let behind = head.saturating_sub(self.next).min(self.ring_slots);
        (behind * 1000).checked_div(self.ring_slots).unwrap_or(0) as u32
    }

    /// The whole records at the beginning of some slots that are just the next of the thread that is known, with nothing
    /// lost before them and no other owner: how many slots, how many records. `at` is the first slot's index in the ring.
    fn following(&self, slots: &[Slot], at: u64) -> (usize, u64) {
        // Headers have 32 bits of the ordinal. They say all of it while the writer's count is nearer than half of that.
        if self.ordinal == 0 || self.records.abs_diff(self.ordinal) >= 1 << 30 {
            return (0, 0);
        }
        let (mut place, mut records) = (0, 0);
        while let Some(slot) = slots.get(place) {
            let head = Head(slot[0]);
            let is_next = head.ordinal() == (self.ordinal + records) as u32 && head.kind() != ThreadStart::KIND;
            // Calls are one slot each, and nearly all there is.
            let is_whole = head.slots() == 1 && slot[SLOT_WORDS - 1] == at + place as u64 + 1;
            if is_next && is_whole && head.kind() != CONTINUATION && head.kind() != 0 {
                place += 1;
                records += 1;
                continue;
            }
            match record_at(slots, place, at + place as u64) {
                Some(used) if is_next && place + used <= slots.len() => place += used,
                _ => break,
            }
            records += 1;
        }
        (place, records)
    }
}

/// Slots copied from a ring.
struct Run<'b> {
    /// Index of the first that was copied.
    copied: u64,
    /// Index of the first one here: those before it stayed in the sink's room.
    from: u64,
    slots: &'b [Slot],
    /// From this index on no writer can have been at them.
    whole: u64,
    /// They go up to the head.
    last: bool,
}

/// Who owns an entry, and from which slot of its ring on.
struct Identity {
    life: u32,
    tid: u32,
    start: u64,
}

impl<B: Bytes> Reader<B> {
    pub(super) fn poll_thread(
        &mut self,
        index: usize,
        head: u64,
        sink: &mut dyn Sink,
        progress: &mut Progress,
        budget: &mut u64,
    ) -> io::Result<()> {
        let slots = self.threads[index].ring_slots;
        let behind = head.saturating_sub(self.threads[index].next);
        progress.fill = progress.fill.max((behind.min(slots) * 1000 / slots) as u32);
        let before = (self.threads[index].seen, self.threads[index].lost);
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.drain(index, head, sink, &mut buffer, budget);
        self.buffer = buffer;
        let cursor = &self.threads[index];
        progress.records += cursor.seen - before.0;
        progress.lost = progress.lost.saturating_add(cursor.lost - before.1);
        progress.more |= !result?;
        Ok(())
    }

    /// Reads a ring up to `head`; false when the budget was used up before.
    fn drain(
        &mut self,
        index: usize,
        head: u64,
        sink: &mut dyn Sink,
        buffer: &mut Vec<Slot>,
        budget: &mut u64,
    ) -> io::Result<bool> {
        let slots = self.threads[index].ring_slots;
        while self.threads[index].next < head {
            if *budget == 0 {
                return Ok(false);
            }
            // The oldest that the writer cannot be at: it may be filling MAX_SLOTS slots from head on.
            let oldest = (head + MAX_SLOTS as u64).saturating_sub(slots);
            let from = self.threads[index].next.max(oldest);
            let count = (head - from).min(BATCH_SLOTS).min(slots);
            *budget = budget.saturating_sub(count);
            let wanted = count as usize;
            let got = if let Some(room) = sink.room(wanted).and_then(|room| room.get_mut(..wanted)) {
                self.read_slots(index, from, room)?
            } else {
                if buffer.len() < wanted {
                    buffer.resize(wanted, Slot::default());
                }
                self.read_slots(index, from, &mut buffer[..wanted])?
            };
            // Acquire: pairs with the writer's release fence before it overwrites. Whoever copied a word of the record
            // being written sees a head that is not before that record.
            fence(Ordering::Acquire);
            // The head as it stands after the data was copied decides what of it is whole.
            let after: [u64; 1] = self.some_words(Region::Directory, index * entry::WORDS + entry::HEAD)?;
            let after = after[0].max(head);
            let whole = after.saturating_add(MAX_SLOTS as u64).saturating_sub(slots);
            let kept = self.keep(index, from..from + got as u64, whole, sink, buffer);
            let run = Run {
                copied: from,
                from: from + kept as u64,
                slots: &buffer[..got - kept],
                whole,
                last: from + count == head,
            };
            let done = self.accept(index, &run, sink, budget)?;
            let cursor = &mut self.threads[index];
            cursor.next = done;
            if got < count as usize {
                // The file was cut: what is missing stays missing.
                cursor.damaged = true;
                break;
            }
        }
        Ok(true)
    }

    /// Where slots were copied into the sink's own room: leaves those there that are just the next of the thread that is known,
    /// and brings all others to the beginning of `rest`; how many were left there.
    fn keep(
        &mut self,
        index: usize,
        copied: Range<u64>,
        whole: u64,
        sink: &mut dyn Sink,
        rest: &mut Vec<Slot>,
    ) -> usize {
        let got = (copied.end - copied.start) as usize;
        let Some(slots) = sink.room(got).and_then(|room| room.get(..got)) else {
            return 0;
        };
        let cursor = &mut self.threads[index];
        let (kept, records) = if whole <= copied.start {
            cursor.following(slots, copied.start)
        } else {
            (0, 0)
        };
        rest.clear();
        rest.extend_from_slice(&slots[kept..]);
        if kept > 0 {
            cursor.ordinal += records;
            cursor.seen += records;
            let thread = Thread {
                index: index as u32,
                tid: cursor.tid,
            };
            sink.keep(thread, kept);
        }
        kept
    }

    /// Takes the whole records out of a copied run of slots; returns the index to go on from.
    fn accept(&mut self, index: usize, run: &Run<'_>, sink: &mut dyn Sink, budget: &mut u64) -> io::Result<u64> {
        let Run {
            copied,
            from,
            slots,
            whole,
            last,
        } = *run;
        let end = from + slots.len() as u64;
        let mut at = from.max(whole.min(end));
        // Records that follow the one before without a gap wait, from this slot on, to be handed over together.
        let mut waiting = at;
        while at < end {
            let place = (at - from) as usize;
            let (used, records) = self.threads[index].following(&slots[place..], at);
            if records > 0 {
                let cursor = &mut self.threads[index];
                cursor.ordinal += records;
                cursor.seen += records;
                at += used as u64;
                continue;
            }
            let Some(used) = record_at(slots, place, at) else {
                // In the middle of a record whose head was overwritten, or of one that is not whole.
                self.hand_over(index, &slots[(waiting - from) as usize..place], sink);
                at += 1;
                waiting = at;
                continue;
            };
            let Some(record) = slots.get(place..place + used) else {
                // The rest is in the next run; at the head itself the writer would lie, so pass over it.
                self.hand_over(index, &slots[(waiting - from) as usize..place], sink);
                return Ok(if last || at == copied { end } else { at });
            };
            let next = at + used as u64;
            self.hand_over(index, &slots[(waiting - from) as usize..place], sink);
            self.deliver(index, at, record, sink, budget)?;
            waiting = next;
            at = next;
        }
        self.hand_over(index, &slots[(waiting - from) as usize..], sink);
        Ok(end)
    }

    /// Hands over records that were counted.
    fn hand_over(&self, index: usize, slots: &[Slot], sink: &mut dyn Sink) {
        if !slots.is_empty() {
            let thread = Thread {
                index: index as u32,
                tid: self.threads[index].tid,
            };
            sink.records(thread, slots);
        }
    }

    fn deliver(
        &mut self,
        index: usize,
        at: u64,
        slots: &[Slot],
        sink: &mut dyn Sink,
        budget: &mut u64,
    ) -> io::Result<()> {
        let head = Head(slots[0][0]);
        let cursor = &self.threads[index];
        // The header has 32 bits of the ordinal; the count that was read with the head is near it and has all.
        let off = head.ordinal().wrapping_sub(cursor.records as u32) as i32;
        let ordinal = cursor
            .records
            .wrapping_add_signed(i64::from(off))
            .min(MAX_HEAD)
            .max(cursor.ordinal);
        let gap = ordinal - cursor.ordinal;
        if gap > 0 || cursor.ordinal == 0 {
            *budget = budget.saturating_sub(OWNER_COST);
            let (life, tid) = self.owner(index, at)?;
            let cursor = &mut self.threads[index];
            if gap > 0 {
                let same = life != 0 && (life == cursor.life || cursor.ordinal == 0 && life == 1);
                let thread = Thread {
                    index: index as u32,
                    tid: if same { tid } else { 0 },
                };
                cursor.lost = cursor.lost.saturating_add(gap);
                sink.lost(thread, gap);
            }
            (cursor.life, cursor.tid) = (life, tid);
        }
        let cursor = &mut self.threads[index];
        if head.kind() == ThreadStart::KIND {
            let start = ThreadStart::decode(slots);
            (cursor.life, cursor.tid) = (start.generation, start.tid);
        }
        cursor.ordinal = ordinal + 1;
        cursor.seen += 1;
        sink.record(
            Thread {
                index: index as u32,
                tid: cursor.tid,
            },
            slots,
        );
        Ok(())
    }

    /// The life and the thread that wrote the record at slot `at`, when records before it are missing; 0 for unknown.
    fn owner(&self, index: usize, at: u64) -> io::Result<(u32, u32)> {
        let cursor = &self.threads[index];
        Ok(match self.identity(index)? {
            Some(now) if at >= now.start => (now.life, now.tid),
            // Before the present life began: in the life that we knew, when that is the one just before.
            Some(now) if cursor.life != 0 && now.life == cursor.life.wrapping_add(1) => (cursor.life, cursor.tid),
            _ => (0, 0),
        })
    }

    /// Who owns an entry now; none when that changes all the time.
    fn identity(&self, index: usize) -> io::Result<Option<Identity>> {
        let state = || -> io::Result<u64> {
            let words = self.region_words(Region::Directory, index * entry::WORDS + entry::STATE, 1)?;
            Ok(words.first().copied().unwrap_or(0))
        };
        for _ in 0..3 {
            let before = state()?;
            let life = (before >> 32) as u32;
            if before & 0xffff_ffff == entry::CLAIMED {
                // Nothing of this life is in the ring yet.
                return Ok(Some(Identity {
                    life,
                    tid: 0,
                    start: u64::MAX,
                }));
            }
            // Acquire: pairs with the release store of the live state.
            fence(Ordering::Acquire);
            let words = self.region_words(Region::Directory, index * entry::WORDS, entry::GENERATION_START + 1)?;
            // Acquire: pairs with the release fence in `directory::claim`.
            fence(Ordering::Acquire);
            // Done in between is the same life; only a claim changes the identity.
            let after = state()?;
            if after >> 32 == before >> 32
                && after & 0xffff_ffff != entry::CLAIMED
                && words.len() > entry::GENERATION_START
            {
                return Ok(Some(Identity {
                    life,
                    tid: words[entry::TID] as u32,
                    start: words[entry::GENERATION_START],
                }));
            }
        }
        Ok(None)
    }

    /// Copies slots from this one on; how many were there.
    pub(super) fn read_slots(&self, index: usize, from: u64, into: &mut [Slot]) -> io::Result<usize> {
        // Bytes of a file are words of ours.
        const { assert!(cfg!(target_endian = "little")) };
        let cursor = &self.threads[index];
        let start = from & (cursor.ring_slots - 1);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
        let first = bytes.len().min((cursor.ring_slots - start) as usize * SLOT_BYTES);
        let (one, two) = bytes.split_at_mut(first);
        let mut got = read_full(&self.bytes, cursor.ring_offset + start * SLOT_BYTES as u64, one)?;
        if got == one.len() && !two.is_empty() {
            got += read_full(&self.bytes, cursor.ring_offset, two)?;
        }
        Ok(got / SLOT_BYTES)
    }
}

/// Slots of the record whose head is at this place of a run; none when no whole record begins there, as far as the run
/// goes. `at` is the place's index in the ring.
fn record_at(slots: &[Slot], place: usize, at: u64) -> Option<usize> {
    let first = &slots[place];
    let head = Head(first[0]);
    let used = head.slots() as usize;
    let is_head = head.kind() != CONTINUATION && head.kind() != 0 && (1..=MAX_SLOTS).contains(&used);
    let there = &slots[place..slots.len().min(place + used.max(1))];
    let whole = (1..)
        .zip(&there[1..])
        .all(|(i, slot)| slot[SLOT_WORDS - 1] == at + i + 1 && Head(slot[0]).kind() == CONTINUATION);
    (first[SLOT_WORDS - 1] == at + 1 && is_head && whole).then_some(used)
}
