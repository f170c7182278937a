//! The writer's side: one [`RingWriter`] per thread, facts and strings appended by anyone.
//!
//! Commit protocol (`ring` proofs in tests/loom.rs): release fence, eight relaxed word stores a slot, then one release
//! store of `head`. The fence keeps the stores of the next record behind the head that announced the previous one, so
//! a reader that sees a torn slot also sees a head that makes it refuse that slot.
//!
//! Absent on purpose: locks, allocation, system calls, any look at a reader.

use crate::layout::{entry, milestone_every};
use crate::record::{CONTINUATION, Domain, Head, MAX_SLOTS, PAYLOAD_WORDS, SLOT_WORDS, TOTALS, totals_index};
use crate::sync::{AtomicU64, Ordering, fence};
use core::cell::Cell;

/// Words of the mapping, or of the heap in tests.
pub type Words<'m> = &'m [AtomicU64];

/// The one writer of one ring. Not `Sync`: a ring belongs to one thread.
pub struct RingWriter<'m> {
    slots: &'m [[AtomicU64; SLOT_WORDS]],
    head: &'m AtomicU64,
    records: &'m AtomicU64,
    mask: u64,
    next: Cell<u64>,
    ordinal: Cell<u64>,
    milestone: Option<&'m AtomicU64>,
    /// The bits of an index above those that change between two milestones.
    stretch: u64,
}

impl<'m> RingWriter<'m> {
    /// A writer for the ring `slots` (a power of two of slots, at least twice [`MAX_SLOTS`]), going on where `head` and
    /// `records` stand. None when the size is wrong.
    pub fn new(slots: Words<'m>, head: &'m AtomicU64, records: &'m AtomicU64) -> Option<Self> {
        let (slots, rest) = slots.as_chunks();
        let count = slots.len();
        if !count.is_power_of_two() || count < 2 * MAX_SLOTS || !rest.is_empty() {
            return None;
        }
        // Relaxed: the entry was claimed by an acquire compare-exchange, so the previous owner's stores are seen.
        let next = Cell::new(head.load(Ordering::Relaxed));
        let ordinal = Cell::new(records.load(Ordering::Relaxed));
        Some(Self {
            slots,
            head,
            records,
            mask: count as u64 - 1,
            next,
            ordinal,
            milestone: None,
            stretch: 0,
        })
    }

    /// Tells `milestone` how far the ring has come, see [`milestone_every`].
    #[must_use]
    pub fn with_milestone(self, milestone: &'m AtomicU64) -> Self {
        // Told now: the first milestone shall find the page there.
        store(milestone, self.next.get());
        Self {
            milestone: Some(milestone),
            stretch: !(milestone_every(self.mask + 1) - 1),
            ..self
        }
    }

    /// Index that the next slot will have.
    pub fn position(&self) -> u64 {
        self.next.get()
    }

    /// Writes one record: its head slot and the continuation slots, accepted together by a reader.
    #[inline]
    pub fn push(&self, head: Head, payload: &[[u64; PAYLOAD_WORDS]]) {
        if payload.is_empty() {
            return;
        }
        let first = self.next.get();
        let ordinal = self.ordinal.get();
        // Release fence: pairs with the acquire fence in `reader`; the previous head store is seen before these stores.
        fence(Ordering::Release);
        let mut index = first;
        for words in payload.iter().take(MAX_SLOTS) {
            let header = if index == first {
                head.with_ordinal(ordinal)
            } else {
                Head::new(CONTINUATION, 0, (index - first) as u8, 0).with_ordinal(ordinal)
            };
            if let Some(slot) = self.slots.get((index & self.mask) as usize) {
                store(&slot[0], header.0);
                for (to, word) in slot[1..7].iter().zip(words) {
                    store(to, *word);
                }
                store(&slot[7], index + 1);
            }
            index += 1;
        }
        // Release: pairs with the acquire load of head in `reader`; publishes the slots before the head.
        self.head.store(index, Ordering::Release);
        self.records.store(ordinal + 1, Ordering::Relaxed);
        self.next.set(index);
        self.ordinal.set(ordinal + 1);
        if (first ^ index) & self.stretch != 0 {
            self.pass(index);
        }
    }

    /// Relaxed: it says nothing of the slots, whoever wants these looks at the head.
    #[cold]
    fn pass(&self, index: u64) {
        if let Some(milestone) = self.milestone {
            store(milestone, index);
        }
    }
}

#[inline]
fn store(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Relaxed);
}

/// A thread's entry in the directory: its open calls, open ranges, losses and totals. Written by its owner alone.
#[derive(Clone, Copy)]
pub struct EntryWriter<'m> {
    words: &'m [AtomicU64; entry::WORDS],
    totals: &'m [[AtomicU64; 2]; TOTALS],
}

impl<'m> EntryWriter<'m> {
    /// An entry of [`entry::WORDS`] words and its totals of 2 x [`TOTALS`] words; none when the lengths differ.
    pub fn new(words: Words<'m>, totals: Words<'m>) -> Option<Self> {
        let (totals, rest) = totals.as_chunks();
        let (words, totals) = (words.try_into().ok()?, totals.try_into().ok()?);
        rest.is_empty().then_some(Self { words, totals })
    }

    /// A word of the entry by its offset in [`entry`].
    #[inline]
    pub fn word(&self, at: usize) -> &'m AtomicU64 {
        &self.words[at % entry::WORDS]
    }

    /// Adds one to a word that only this thread writes.
    #[inline]
    pub fn bump(&self, at: usize) {
        let word = self.word(at);
        store(word, word.load(Ordering::Relaxed).wrapping_add(1));
    }

    /// Notes that a call was entered. Returns the correlation id of the call around it, 0 for none.
    #[inline]
    pub fn open_call(&self, start: u64, domain: Domain, op: u16, correlation: u64) -> u64 {
        let depth = self.word(entry::CALL_DEPTH).load(Ordering::Relaxed);
        let call = [start, u64::from(domain.0) << 16 | u64::from(op), correlation];
        // Most calls are in no other.
        let parent = if depth == 0 {
            self.put_call(0, call);
            0
        } else {
            self.nest_call(depth, call)
        };
        // Release: a reader that sees the depth sees the call under it.
        self.word(entry::CALL_DEPTH)
            .store(depth.wrapping_add(1), Ordering::Release);
        parent
    }

    #[inline]
    fn put_call(&self, level: usize, call: [u64; 3]) {
        for (word, value) in call.into_iter().enumerate() {
            store(self.word(entry::CALL_STACK + level * 3 + word), value);
        }
    }

    /// The correlation id of the call around; no more than [`entry::CALLS`] are kept.
    #[inline(never)]
    fn nest_call(&self, depth: u64, call: [u64; 3]) -> u64 {
        let level = depth as usize;
        if level < entry::CALLS {
            self.put_call(level, call);
        }
        if level <= entry::CALLS {
            self.word(entry::CALL_STACK + level * 3 - 1).load(Ordering::Relaxed)
        } else {
            0
        }
    }

    /// Domain and operation of the innermost open call; none when none is open, or when it is deeper than [`entry::CALLS`].
    pub fn innermost_call(&self) -> Option<(Domain, u16)> {
        let depth = self.word(entry::CALL_DEPTH).load(Ordering::Relaxed) as usize;
        let level = depth.checked_sub(1).filter(|level| *level < entry::CALLS)?;
        let what = self.word(entry::CALL_STACK + level * 3 + 1).load(Ordering::Relaxed);
        Some((Domain((what >> 16) as u8), what as u16))
    }

    /// Notes that the innermost call returned; adds it to the exact totals of its operation.
    #[inline]
    pub fn close_call(&self, domain: Domain, op: u16, ticks: u64) {
        let depth = self.word(entry::CALL_DEPTH);
        depth.store(depth.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        if let Some(index) = totals_index(domain, op)
            && let Some([calls, total]) = self.totals.get(index)
        {
            store(calls, calls.load(Ordering::Relaxed).wrapping_add(1));
            store(total, total.load(Ordering::Relaxed).wrapping_add(ticks));
        }
    }

    /// How many calls of an operation have returned, of all threads that had this entry.
    pub fn calls(&self, domain: Domain, op: u16) -> u64 {
        let totals = totals_index(domain, op).and_then(|index| self.totals.get(index));
        totals.map_or(0, |[calls, _]| calls.load(Ordering::Relaxed))
    }

    /// Notes an open ROC-TX range. False when the stack is full: the range is counted as lost by the caller.
    pub fn open_range(&self, start: u64, correlation: u64, text_id: u32, text: &[u8]) -> bool {
        let depth = self.word(entry::RANGE_DEPTH).load(Ordering::Relaxed) as usize;
        let fits = depth < entry::RANGES;
        if fits {
            let at = entry::RANGE_STACK + depth * entry::RANGE_WORDS;
            store(self.word(at), start);
            store(self.word(at + 1), correlation);
            let length = text.len().min(entry::RANGE_TEXT);
            store(self.word(at + 2), u64::from(text_id) | (length as u64) << 32);
            for (i, chunk) in text[..length].chunks(8).enumerate() {
                let mut raw = [0u8; 8];
                raw[..chunk.len()].copy_from_slice(chunk);
                store(self.word(at + 3 + i), u64::from_le_bytes(raw));
            }
        }
        self.word(entry::RANGE_DEPTH).store(depth as u64 + 1, Ordering::Release);
        fits
    }

    /// Takes the innermost open range off the stack.
    pub fn close_range(&self) -> ClosedRange {
        let depth = self.word(entry::RANGE_DEPTH).load(Ordering::Relaxed) as usize;
        if depth == 0 {
            return ClosedRange::Empty;
        }
        let level = depth - 1;
        self.word(entry::RANGE_DEPTH).store(level as u64, Ordering::Relaxed);
        if level >= entry::RANGES {
            return ClosedRange::TooDeep { level };
        }
        let at = entry::RANGE_STACK + level * entry::RANGE_WORDS;
        let read = |i: usize| self.word(at + i).load(Ordering::Relaxed);
        let sizes = read(2);
        let mut text = [0u8; entry::RANGE_TEXT];
        for (i, chunk) in text.chunks_exact_mut(8).enumerate() {
            chunk.copy_from_slice(&read(3 + i).to_le_bytes());
        }
        ClosedRange::Range {
            start: read(0),
            correlation: read(1),
            text_id: sizes as u32,
            level,
            text,
            length: ((sizes >> 32) as usize).min(entry::RANGE_TEXT),
        }
    }
}

/// What [`EntryWriter::close_range`] found.
pub enum ClosedRange {
    /// No range was open.
    Empty,
    /// The range lay deeper than the stack keeps.
    TooDeep {
        /// Its level, from 0.
        level: usize,
    },
    /// The innermost open range.
    Range {
        /// When it was pushed, ticks.
        start: u64,
        /// Correlation id of the push.
        correlation: u64,
        /// String id of a long text, else 0.
        text_id: u32,
        /// Its level, from 0.
        level: usize,
        /// Its text.
        text: [u8; entry::RANGE_TEXT],
        /// Bytes of the text.
        length: usize,
    },
}

/// Appends to a region that only grows and is never overwritten: facts. Any thread; a slot is reserved by `fetch_add`
/// and committed by its sequence word.
#[derive(Clone, Copy)]
pub struct FactWriter<'m> {
    slots: Words<'m>,
    reserved: &'m AtomicU64,
    full: &'m AtomicU64,
}

impl<'m> FactWriter<'m> {
    /// A writer for the fact slots; `reserved` counts slots given out, `full` facts that found no room.
    pub const fn new(slots: Words<'m>, reserved: &'m AtomicU64, full: &'m AtomicU64) -> Self {
        Self { slots, reserved, full }
    }

    /// Appends one fact without which the others are still understood, such as the end of a stream: these take at most half
    /// of the region, so that a program that makes streams without end loses no names of kernels. False when there is no
    /// room for it (counted).
    pub fn append_minor(&self, head: Head, payload: &[[u64; PAYLOAD_WORDS]]) -> bool {
        let room = (self.slots.len() / SLOT_WORDS) as u64;
        if self.reserved.load(Ordering::Relaxed) >= room / 2 {
            self.full.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.append(head, payload)
    }

    /// Appends one fact. False when the region is full (counted).
    pub fn append(&self, head: Head, payload: &[[u64; PAYLOAD_WORDS]]) -> bool {
        let room = (self.slots.len() / SLOT_WORDS) as u64;
        let count = payload.len() as u64;
        // Release: a reader that sees the number sees the texts that this fact names.
        let first = self.reserved.fetch_add(count, Ordering::Release);
        if first.saturating_add(count) > room {
            self.full.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        // The head slot is committed last: a reader that takes it finds its continuations committed.
        for (i, words) in payload.iter().enumerate().rev() {
            let index = first + i as u64;
            let at = index as usize * SLOT_WORDS;
            let header = if i == 0 {
                head
            } else {
                Head::new(CONTINUATION, 0, i as u8, 0)
            };
            if let Some(slot) = self.slots.get(at..at + SLOT_WORDS) {
                store(&slot[0], header.0);
                for (to, word) in slot[1..7].iter().zip(words) {
                    store(to, *word);
                }
                // Release: pairs with the reader's acquire fence after it read the sequence.
                slot[7].store(index + 1, Ordering::Release);
            }
        }
        true
    }
}

/// Appends texts: any thread, reserved by `fetch_add`, committed by the index word.
#[derive(Clone, Copy)]
pub struct StringWriter<'m> {
    index: Words<'m>,
    bytes: Words<'m>,
    next_id: &'m AtomicU64,
    used: &'m AtomicU64,
    full: &'m AtomicU64,
}

/// The longest text kept, bytes; a longer one is cut.
pub const MAX_TEXT: usize = 16 * 1024;

impl<'m> StringWriter<'m> {
    /// A writer for the string region; `next_id` and `used` (words) start at 0, `full` counts texts without room.
    pub const fn new(
        index: Words<'m>,
        bytes: Words<'m>,
        next_id: &'m AtomicU64,
        used: &'m AtomicU64,
        full: &'m AtomicU64,
    ) -> Self {
        Self {
            index,
            bytes,
            next_id,
            used,
            full,
        }
    }

    /// Keeps a text and returns its id, from 1; 0 when there is no room (counted).
    pub fn add(&self, text: &[u8]) -> u32 {
        let text = &text[..text.len().min(MAX_TEXT)];
        let words = text.len().div_ceil(8).max(1);
        // Relaxed: numbers are only handed out; the index word commits.
        let at = self.used.fetch_add(words as u64, Ordering::Relaxed);
        let Some(room) = usize::try_from(at)
            .ok()
            .and_then(|at| self.bytes.get(at..at.checked_add(words)?))
        else {
            self.full.fetch_add(1, Ordering::Relaxed);
            return 0;
        };
        for (to, chunk) in room.iter().zip(text.chunks(8)) {
            let mut raw = [0u8; 8];
            raw[..chunk.len()].copy_from_slice(chunk);
            store(to, u64::from_le_bytes(raw));
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(entry) = usize::try_from(id).ok().and_then(|id| self.index.get(id)) else {
            self.full.fetch_add(1, Ordering::Relaxed);
            return 0;
        };
        // Release: pairs with the reader's acquire fence; the bytes are seen by whoever sees the entry.
        entry.store(at << 20 | (text.len() as u64) | 1 << 63, Ordering::Release);
        id as u32
    }
}
