//! The writer's side: one [`RingWriter`] per thread; any thread appends facts and strings.
//!
//! Commit protocol (proofs in tests/loom.rs): release fence, eight relaxed word stores per slot, then one release store
//! of `head`. The fence orders the stores of a record after the head that announced the previous record. A reader that
//! sees a torn slot therefore also sees a head that makes it reject that slot.
//!
//! Excluded on purpose: locks, allocation, system calls, any look at a reader.

#![expect(
    clippy::inline_always,
    reason = "the path of every traced call, measured in nanoseconds"
)]

use crate::layout::{entry, milestone_every};
use crate::record::{CONTINUATION, Domain, Head, MAX_SLOTS, PAYLOAD_WORDS, SLOT_WORDS, TOTALS, totals_index};
use crate::sync::{AtomicU64, Ordering, fence};
use core::cell::Cell;

/// Words of the mapping, or of the heap in tests.
pub type Words<'m> = &'m [AtomicU64];

/// The only writer of one ring. Not `Sync`: a ring belongs to one thread.
pub struct RingWriter<'m> {
    slots: &'m [[AtomicU64; SLOT_WORDS]],
    head: &'m AtomicU64,
    records: &'m AtomicU64,
    mask: u64,
    next: Cell<u64>,
    ordinal: Cell<u64>,
    milestone: Option<&'m AtomicU64>,
    /// The bits of an index above those that change between two milestones.
    milestone_mask: u64,
}

impl<'m> RingWriter<'m> {
    /// A writer for the ring `slots` (a power of two of slots, at least twice [`MAX_SLOTS`]) that continues at `head`
    /// and `records`. `None` if the size is wrong.
    pub fn new(slots: Words<'m>, head: &'m AtomicU64, records: &'m AtomicU64) -> Option<Self> {
        let (slots, rest) = slots.as_chunks();
        let count = slots.len();
        if !count.is_power_of_two() || count < 2 * MAX_SLOTS || !rest.is_empty() {
            return None;
        }
        // Relaxed: an acquire compare-exchange claimed the entry, so the previous owner's stores are visible.
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
            milestone_mask: 0,
        })
    }

    /// Publishes the head in `milestone` from now on, see [`milestone_every`].
    #[must_use]
    pub fn with_milestone(self, milestone: &'m AtomicU64) -> Self {
        // Stored once now, so that the first milestone causes no page fault.
        store(milestone, self.next.get());
        Self {
            milestone: Some(milestone),
            milestone_mask: !(milestone_every(self.mask + 1) - 1),
            ..self
        }
    }

    /// Index of the next slot.
    pub fn position(&self) -> u64 {
        self.next.get()
    }

    /// Writes one record: its head slot and its continuation slots, which a reader accepts together.
    #[inline]
    pub fn push(&self, head: Head, payload: &[[u64; PAYLOAD_WORDS]]) {
        if payload.is_empty() {
            return;
        }
        let first = self.next.get();
        let ordinal = self.ordinal.get();
        // Release fence: pairs with the acquire fence in `reader`; orders the previous head store before these stores.
        fence(Ordering::Release);
        let mut index = first;
        for words in payload.iter().take(MAX_SLOTS) {
            let header = if index == first {
                head.with_ordinal(ordinal)
            } else {
                Head::new(CONTINUATION, 0, (index - first) as u8, 0).with_ordinal(ordinal)
            };
            self.put(index, header, words);
            index += 1;
        }
        self.publish(first, index, ordinal);
    }

    #[inline(always)]
    fn put(&self, index: u64, header: Head, words: &[u64; PAYLOAD_WORDS]) {
        if let Some(slot) = self.slots.get((index & self.mask) as usize) {
            store(&slot[0], header.0);
            for (to, word) in slot[1..7].iter().zip(words) {
                store(to, *word);
            }
            store(&slot[7], index + 1);
        }
    }

    /// Publishes the slots from `first` to before `index`, the record with this ordinal.
    #[inline(always)]
    fn publish(&self, first: u64, index: u64, ordinal: u64) {
        // Release: pairs with the acquire load of head in `reader`; publishes the slots before the head.
        self.head.store(index, Ordering::Release);
        self.records.store(ordinal + 1, Ordering::Relaxed);
        self.next.set(index);
        self.ordinal.set(ordinal + 1);
        if (first ^ index) & self.milestone_mask != 0 {
            self.pass(index);
        }
    }

    /// The slot that becomes the next one after this number of others.
    #[inline(always)]
    pub fn upcoming(&self, ahead: u64) -> Option<&[AtomicU64; SLOT_WORDS]> {
        self.slots
            .get((self.next.get().wrapping_add(ahead) & self.mask) as usize)
    }

    /// As [`Self::push`], for a record of one slot.
    #[inline(always)]
    pub fn push_slot(&self, head: Head, words: [u64; PAYLOAD_WORDS]) {
        let (index, ordinal) = (self.next.get(), self.ordinal.get());
        // Release fence: as in `push`.
        fence(Ordering::Release);
        self.put(index, head.with_ordinal(ordinal), &words);
        self.publish(index, index + 1, ordinal);
    }

    /// Relaxed: a milestone publishes no slots; a reader that wants them reads the head.
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

/// A thread's directory entry: its open calls, open ranges, losses and totals. Only its owner writes it.
#[derive(Clone, Copy)]
pub struct EntryWriter<'m> {
    words: &'m [AtomicU64; entry::WORDS],
    totals: &'m [[AtomicU64; 2]; TOTALS],
}

impl<'m> EntryWriter<'m> {
    /// An entry of [`entry::WORDS`] words with its totals of 2 x [`TOTALS`] words; `None` if the lengths differ.
    pub fn new(words: Words<'m>, totals: Words<'m>) -> Option<Self> {
        let (totals, rest) = totals.as_chunks();
        let (words, totals) = (words.try_into().ok()?, totals.try_into().ok()?);
        rest.is_empty().then_some(Self { words, totals })
    }

    /// The word at an offset of [`entry`].
    #[inline]
    pub fn word(&self, at: usize) -> &'m AtomicU64 {
        &self.words[at % entry::WORDS]
    }

    /// Increments a word that only this thread writes.
    #[inline]
    pub fn bump(&self, at: usize) {
        let word = self.word(at);
        store(word, word.load(Ordering::Relaxed).wrapping_add(1));
    }

    /// Pushes an open call. Returns the correlation id of the enclosing call, 0 for none.
    #[inline]
    pub fn open_call(&self, start: u64, domain: Domain, op: u16, correlation: u64) -> u64 {
        let depth = self.word(entry::CALL_DEPTH).load(Ordering::Relaxed);
        let call = [start, u64::from(domain.0) << 16 | u64::from(op), correlation];
        // Most calls have no enclosing call.
        let parent = if depth == 0 {
            self.put_call(0, call);
            0
        } else {
            self.nest_call(depth, call)
        };
        // Release: a reader that sees the depth sees the call below it.
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

    /// Correlation id of the enclosing call; 0 beyond [`entry::CALLS`] levels.
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

    /// Domain and operation of the innermost open call; `None` if none is open or it is deeper than [`entry::CALLS`].
    pub fn innermost_call(&self) -> Option<(Domain, u16)> {
        let depth = self.word(entry::CALL_DEPTH).load(Ordering::Relaxed) as usize;
        let level = depth.checked_sub(1).filter(|level| *level < entry::CALLS)?;
        let what = self.word(entry::CALL_STACK + level * 3 + 1).load(Ordering::Relaxed);
        Some((Domain((what >> 16) as u8), what as u16))
    }

    /// Whether a call is open.
    #[inline]
    pub fn has_open_call(&self) -> bool {
        self.word(entry::CALL_DEPTH).load(Ordering::Relaxed) != 0
    }

    /// As [`Self::open_call`], if no call is open. `what` is its domain << 16 and its operation.
    #[inline]
    pub fn open_outermost_call(&self, start: u64, what: u64, correlation: u64) {
        self.put_call(0, [start, what, correlation]);
        // Release: as in `open_call`.
        self.word(entry::CALL_DEPTH).store(1, Ordering::Release);
    }

    /// As [`Self::close_call`] for the outermost call, with the index of its operation's totals.
    #[inline]
    pub fn close_outermost_call(&self, totals: usize, ticks: u64) {
        self.word(entry::CALL_DEPTH).store(0, Ordering::Relaxed);
        if let Some([calls, total]) = self.totals.get(totals) {
            store(calls, calls.load(Ordering::Relaxed).wrapping_add(1));
            store(total, total.load(Ordering::Relaxed).wrapping_add(ticks));
        }
    }

    /// Pops the innermost call and adds it to the exact totals of its operation.
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

    /// Pushes an open ROC-TX range. False if the stack is full; the caller then keeps the range elsewhere or counts it as lost.
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

    /// Pops the innermost open range.
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

/// Result of [`EntryWriter::close_range`].
pub enum ClosedRange {
    /// No range was open.
    Empty,
    /// The range is deeper than the stack.
    TooDeep {
        /// Its level, from 0.
        level: usize,
    },
    /// The innermost open range.
    Range {
        /// Time of the push, ticks.
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

/// Appends facts to their region, which only grows and is never overwritten. Any thread may append: a slot is reserved
/// by `fetch_add` and committed by its sequence word.
#[derive(Clone, Copy)]
pub struct FactWriter<'m> {
    slots: Words<'m>,
    reserved: &'m AtomicU64,
    full: &'m AtomicU64,
}

impl<'m> FactWriter<'m> {
    /// A writer for the fact slots; `reserved` counts reserved slots, `full` counts facts without space.
    pub const fn new(slots: Words<'m>, reserved: &'m AtomicU64, full: &'m AtomicU64) -> Self {
        Self { slots, reserved, full }
    }

    /// Appends a fact that readers can do without, such as the end of a stream. These facts take at most half of the
    /// region, so that a program that keeps creating streams loses no kernel names. False if there is no space
    /// (counted).
    pub fn append_minor(&self, head: Head, payload: &[[u64; PAYLOAD_WORDS]]) -> bool {
        let room = (self.slots.len() / SLOT_WORDS) as u64;
        if self.reserved.load(Ordering::Relaxed) >= room / 2 {
            self.full.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.append(head, payload)
    }

    /// Appends one fact. False if the region is full (counted).
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

/// Appends texts. Any thread may append: an id is reserved by `fetch_add` and committed by the index word.
#[derive(Clone, Copy)]
pub struct StringWriter<'m> {
    index: Words<'m>,
    bytes: Words<'m>,
    next_id: &'m AtomicU64,
    used: &'m AtomicU64,
    full: &'m AtomicU64,
}

/// Maximum length of a text in bytes; longer texts are cut.
pub const MAX_TEXT: usize = 16 * 1024;

impl<'m> StringWriter<'m> {
    /// A writer for the string region; `next_id` and `used` (words) start at 0, `full` counts texts without space.
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

    /// Stores a text and returns its id, from 1; 0 if there is no space (counted).
    pub fn add(&self, text: &[u8]) -> u32 {
        let text = &text[..text.len().min(MAX_TEXT)];
        let words = text.len().div_ceil(8).max(1);
        // Relaxed: these only reserve; the index word commits.
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
        // Release: pairs with the reader's acquire fence; a reader that sees the entry sees the bytes.
        entry.store(at << 20 | (text.len() as u64) | 1 << 63, Ordering::Release);
        id as u32
    }
}
