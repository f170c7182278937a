//! The ring of one thread: copied, then accepted where the writer cannot have written in between.

use super::words::read_full;
use super::{Bytes, Progress, Reader, Sink, Thread};
use crate::layout::{Region, entry};
use crate::record::{CONTINUATION, Head, MAX_SLOTS, SLOT_BYTES, SLOT_WORDS, Slot, ThreadStart};
use crate::sync::{Ordering, fence};
use std::io;
use std::ops::Range;

/// Slots per copy; small enough to stay in cache until they are delivered.
const BATCH_SLOTS: u64 = 1024;
/// Cost of finding the owner of a record, in slots.
const OWNER_COST: u64 = 256;
/// No ring reaches this head in a thousand years; it keeps index arithmetic from overflowing.
pub(super) const MAX_HEAD: u64 = 1 << 62;

/// The reader's position in one ring.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    pub(super) ring_offset: u64,
    pub(super) ring_slots: u64,
    pub(super) next: u64,
    /// Ordinal of the next record if nothing is lost: number of records seen and lost.
    pub(super) ordinal: u64,
    /// The writer's count of its records. After a kill it may be one too low: it is stored after the head.
    pub(super) records: u64,
    /// Life of the entry whose records are being read; 0 unknown.
    life: u32,
    pub(super) tid: u32,
    pub(super) seen: u64,
    pub(super) lost: u64,
    pub(super) damaged: bool,
}

impl Cursor {
    /// Fill level of the ring at this head, in 1/1000.
    pub(super) fn fill(&self, head: u64) -> u32 {
        let behind = head.saturating_sub(self.next).min(self.ring_slots);
        (behind * 1000).checked_div(self.ring_slots).unwrap_or(0) as u32
    }

    /// The whole records at the start of `slots` that directly continue the known thread, without a loss or another
    /// owner: number of slots and of records. `at` is the ring index of the first slot.
    fn following(&self, slots: &[Slot], at: u64) -> (usize, u64) {
        // Headers have 32 bits of the ordinal, which is unambiguous while the writer's count is within half of that
        // range.
        if self.ordinal == 0 || self.records.abs_diff(self.ordinal) >= 1 << 30 {
            return (0, 0);
        }
        let (mut place, mut records) = (0, 0);
        while let Some(slot) = slots.get(place) {
            let head = Head(slot[0]);
            let is_next = head.ordinal() == (self.ordinal + records) as u32 && head.kind() != ThreadStart::KIND;
            // Calls, the great majority, take one slot each.
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
    /// Ring index of the first copied slot.
    copied: u64,
    /// Ring index of the first slot here; earlier ones stayed in the sink's buffer.
    from: u64,
    slots: &'b [Slot],
    /// First ring index that no writer can have overwritten.
    whole: u64,
    /// The run ends at the head.
    last: bool,
}

/// Owner of an entry, and the ring index at which its life began.
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

    /// Reads a ring up to `head`; false if the budget ran out first.
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
            // The oldest slot that the writer cannot be writing: it may be filling MAX_SLOTS slots from head on.
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
            // Acquire: pairs with the writer's release fence before it overwrites. A reader that copied a word of the
            // record being written sees a head not before that record.
            fence(Ordering::Acquire);
            // The head after the copy decides which slots are whole.
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
                // The file was truncated: the missing part stays missing.
                cursor.damaged = true;
                break;
            }
        }
        Ok(true)
    }

    /// For slots copied into the sink's buffer: leaves those that directly continue the known thread, and moves all
    /// others to the start of `rest`. Returns how many stayed.
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

    /// Delivers the whole records of a copied run; returns the index to continue from.
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
        // Consecutive records wait, from this slot on, to be delivered together.
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
                // Inside a record whose head was overwritten, or of one that is incomplete.
                self.hand_over(index, &slots[(waiting - from) as usize..place], sink);
                at += 1;
                waiting = at;
                continue;
            };
            let Some(record) = slots.get(place..place + used) else {
                // The rest is in the next run. At the head itself the record would be corrupt: skip it.
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

    /// Delivers counted records.
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
        // The header has 32 bits of the ordinal; the count read with the head is close and has all bits.
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

    /// Life and thread that wrote the record at slot `at` after a loss; 0 for unknown.
    fn owner(&self, index: usize, at: u64) -> io::Result<(u32, u32)> {
        let cursor = &self.threads[index];
        Ok(match self.identity(index)? {
            Some(now) if at >= now.start => (now.life, now.tid),
            // Before the current life: in the known life, if that is the previous one.
            Some(now) if cursor.life != 0 && now.life == cursor.life.wrapping_add(1) => (cursor.life, cursor.tid),
            _ => (0, 0),
        })
    }

    /// Current owner of an entry; `None` if it keeps changing.
    fn identity(&self, index: usize) -> io::Result<Option<Identity>> {
        let state = || -> io::Result<u64> {
            let words = self.region_words(Region::Directory, index * entry::WORDS + entry::STATE, 1)?;
            Ok(words.first().copied().unwrap_or(0))
        };
        for _ in 0..3 {
            let before = state()?;
            let life = (before >> 32) as u32;
            if before & 0xffff_ffff == entry::CLAIMED {
                // This life has written nothing to the ring.
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
            // A change to done is the same life; only a claim changes the identity.
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

    /// Copies slots from index `from` on; returns how many there were.
    pub(super) fn read_slots(&self, index: usize, from: u64, into: &mut [Slot]) -> io::Result<usize> {
        // The file's bytes are used as native words.
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

/// Number of slots of the record whose head is at `place` of a run; `None` if no whole record starts there. `at` is the
/// ring index of `place`.
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
