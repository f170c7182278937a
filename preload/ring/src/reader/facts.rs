//! Strings and facts, which are read before the records that refer to them.

use super::words::read_full;
use super::{Bytes, Ended, POLL_SLOTS, Reader, Sink};
use crate::layout::{Region, counter};
use crate::record::{CONTINUATION, Head, MAX_SLOTS, SLOT_BYTES, SLOT_WORDS, Slot};
use crate::sync::{Ordering, fence};
use crate::writer::MAX_TEXT;
use std::io;

/// Maximum number of strings per poll.
pub const POLL_STRINGS: u64 = 1 << 17;
/// A poll stops after this many bytes of text.
const POLL_TEXT: u64 = 64 << 20;
/// Maximum number of strings accepted from one file.
pub const MAX_STRINGS: u64 = 1 << 22;
const BATCH_FACTS: u64 = 1024;
/// Maximum number of uncommitted facts or strings to remember; an intact file has at most one per thread.
const MAX_HOLES: usize = 1024;

/// State of a fact slot.
enum FactSlot {
    /// Uncommitted.
    Open,
    /// Inside a fact, not its head.
    Inside,
    /// A complete fact of this many slots.
    Whole(usize),
    /// A fact that continues beyond the copied slots.
    Cut,
}

impl<B: Bytes> Reader<B> {
    /// False if strings are left over for the next poll.
    pub(super) fn poll_strings(&mut self, ended: Ended, sink: &mut dyn Sink) -> io::Result<bool> {
        let room_before = self.text_left;
        let places = (self.header.region(Region::StringIndex).length / 8)
            .saturating_sub(1)
            .min(MAX_STRINGS);
        for id in std::mem::take(&mut self.string_holes) {
            let word = self
                .region_words(Region::StringIndex, id as usize, 1)?
                .first()
                .copied()
                .unwrap_or(0);
            fence(Ordering::Acquire);
            self.take_string(id, word, ended, sink)?;
        }
        let given = self.region_words(Region::Counters, counter::STRINGS, 1)?;
        let given = given.first().copied().unwrap_or(0).min(places);
        let stop = given.min(self.strings.saturating_add(POLL_STRINGS));
        while self.strings < stop {
            let count = (stop - self.strings).min(4096) as usize;
            let words = self.region_words(Region::StringIndex, self.strings as usize + 1, count)?;
            // Acquire: pairs with the release store of the index word; the bytes are seen from here on.
            fence(Ordering::Acquire);
            if words.is_empty() {
                break;
            }
            for word in words {
                if word == 0 && ended == Ended::No && self.string_holes.len() >= MAX_HOLES {
                    return Ok(true);
                }
                if room_before - self.text_left > POLL_TEXT {
                    return Ok(false);
                }
                self.strings += 1;
                self.take_string(self.strings, word, ended, sink)?;
            }
        }
        Ok(stop == given || self.strings < stop)
    }

    fn take_string(&mut self, id: u64, word: u64, ended: Ended, sink: &mut dyn Sink) -> io::Result<()> {
        let bytes = self.header.region(Region::StringBytes);
        if word == 0 {
            if ended == Ended::No {
                self.string_holes.push(id);
            }
            return Ok(());
        }
        let offset = ((word & !(1 << 63)) >> 20) * 8;
        let length = word & 0xf_ffff;
        let taken = length.next_multiple_of(8);
        if length > MAX_TEXT as u64 || offset + length > bytes.length || taken > self.text_left {
            return Ok(());
        }
        self.text_left -= taken;
        let mut text = vec![0u8; length as usize];
        let got = read_full(&self.bytes, bytes.offset + offset, &mut text)?;
        sink.string(id as u32, &text[..got]);
        Ok(())
    }

    /// False if facts are left over for the next poll.
    pub(super) fn poll_facts(&mut self, ended: Ended, given: u64, sink: &mut dyn Sink) -> io::Result<bool> {
        let room = self.header.region(Region::Facts).length / SLOT_BYTES as u64;
        for number in std::mem::take(&mut self.fact_holes) {
            let (looked, slots) = self.fact_slots(number, (MAX_SLOTS as u64).min(room - number))?;
            match fact_at(&looked, &slots, 0, number) {
                FactSlot::Whole(used) => sink.fact(&slots[..used]),
                FactSlot::Open if ended == Ended::No => self.fact_holes.push(number),
                _ => {}
            }
        }
        let given = given.min(room);
        let stop = given.min(self.facts.saturating_add(POLL_SLOTS));
        while self.facts < stop {
            let asked = (given - self.facts).min(BATCH_FACTS);
            let (looked, slots) = self.fact_slots(self.facts, asked)?;
            if slots.is_empty() {
                return Ok(true);
            }
            let mut at = 0;
            while at < slots.len() {
                let number = self.facts + at as u64;
                match fact_at(&looked, &slots, at, number) {
                    FactSlot::Whole(used) => {
                        sink.fact(&slots[at..at + used]);
                        at += used;
                    }
                    // The rest is in the next batch.
                    FactSlot::Cut if at > 0 && self.facts + (slots.len() as u64) < given => break,
                    FactSlot::Open if ended == Ended::No => {
                        if self.fact_holes.len() >= MAX_HOLES {
                            self.facts = number;
                            return Ok(true);
                        }
                        self.fact_holes.push(number);
                        at += 1;
                    }
                    _ => at += 1,
                }
            }
            self.facts += at as u64;
        }
        Ok(stop == given)
    }

    /// Reads fact slots twice: the first copy shows which are committed, the second is the data.
    fn fact_slots(&self, from: u64, count: u64) -> io::Result<(Vec<u64>, Vec<Slot>)> {
        let (from, count) = (from as usize * SLOT_WORDS, count as usize * SLOT_WORDS);
        let looked = self.region_words(Region::Facts, from, count)?;
        // Acquire: pairs with the release store of the sequence word.
        fence(Ordering::Acquire);
        let words = self.region_words(Region::Facts, from, count)?;
        let sequences = looked
            .chunks_exact(SLOT_WORDS)
            .map(|slot| slot[SLOT_WORDS - 1])
            .collect();
        Ok((sequences, words.as_chunks::<SLOT_WORDS>().0.to_vec()))
    }
}

fn fact_at(looked: &[u64], slots: &[Slot], at: usize, number: u64) -> FactSlot {
    if looked.get(at) != Some(&(number + 1)) {
        return FactSlot::Open;
    }
    let Some(first) = slots.get(at) else {
        return FactSlot::Cut;
    };
    let used = Head(first[0]).slots() as usize;
    if matches!(Head(first[0]).kind(), 0 | CONTINUATION) || !(1..=MAX_SLOTS).contains(&used) {
        return FactSlot::Inside;
    }
    let Some(run) = slots.get(at..at + used) else {
        return FactSlot::Cut;
    };
    let mut rest = run.iter().enumerate().skip(1);
    let whole =
        rest.all(|(i, slot)| slot[SLOT_WORDS - 1] == number + i as u64 + 1 && Head(slot[0]).kind() == CONTINUATION);
    if whole { FactSlot::Whole(used) } else { FactSlot::Inside }
}
