//! The reader's side: `pread` into private copies, so that nothing a writer does can be more than a wrong number.
//!
//! One [`Reader`] a file. [`Reader::poll`] hands everything new to a [`Sink`]: strings and facts before the records that
//! name them. A record is accepted only when the head read *after* the data says that its slots cannot have been
//! overwritten meanwhile. What was skipped is counted to the record by the ordinals in the headers: seen + lost =
//! written, by ring, always.
//!
//! What one poll reads is bounded whatever the file says ([`POLL_SLOTS`], [`POLL_STRINGS`]); a poll that stopped at the
//! bound says so in [`Progress::more`].
//!
//! The words of one `pread` come in no order. Whatever must be read after something else is read by another `pread`,
//! with an acquire fence between.
//!
//! Absent on purpose: mapping, `unsafe`, trust.

use crate::layout::{Header, LayoutError, PAGE, Region, clock, counter, entry, open_range, queue};
use crate::record::{
    self, Body, CONTINUATION, Dispatch, Domain, Head, MAX_SLOTS, SLOT_BYTES, SLOT_WORDS, Slot, TOTALS, ThreadStart,
    totals_operation,
};
use crate::sync::{Ordering, fence};
use crate::writer::MAX_TEXT;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that can be read by position: a file, or a buffer in tests.
pub trait Bytes {
    /// Reads at `offset`; short at the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Bytes there are now.
    fn size(&self) -> io::Result<u64>;
}

impl Bytes for File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl Bytes for Vec<u8> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|at| self.get(at..))
            .unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// Which thread wrote a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Entry of the directory.
    pub index: u32,
    /// Kernel thread id; 0 when its start was lost and the entry has another owner by now. Losses in which the entry
    /// went from one thread to the next have 0 too.
    pub tid: u32,
}

/// Receives what a poll found, in an order in which every id is known before it is used.
pub trait Sink {
    /// A text got an id. Mostly in order of the ids; one that was being written comes in a later poll.
    fn string(&mut self, id: u32, text: &[u8]);
    /// A fact.
    fn fact(&mut self, slots: &[Slot]);
    /// A calibration sample, words as in [`clock`].
    fn calibration(&mut self, sample: &[u64; clock::WORDS]);
    /// A record of a thread.
    fn record(&mut self, thread: Thread, slots: &[Slot]);
    /// Records of a thread that lie one after the other, each of them whole.
    fn records(&mut self, thread: Thread, slots: &[Slot]) {
        for slots in each(slots) {
            self.record(thread, slots);
        }
    }
    /// Records of a thread that were overwritten before they could be read.
    fn lost(&mut self, thread: Thread, records: u64);
}

/// Cuts a run of slots into its records, as their heads say. A last record that is not whole is left out.
pub fn each(slots: &[Slot]) -> impl Iterator<Item = &[Slot]> {
    let mut rest = slots;
    std::iter::from_fn(move || {
        let used = (Head(rest.first()?[0]).slots() as usize).clamp(1, MAX_SLOTS);
        let (record, others) = rest.split_at_checked(used)?;
        rest = others;
        Some(record)
    })
}

/// Where the reader stands in one ring.
#[derive(Clone, Debug, Default)]
struct Cursor {
    ring_offset: u64,
    ring_slots: u64,
    next: u64,
    /// Ordinal that the next record will have when nothing is lost: records seen and lost so far.
    ordinal: u64,
    /// Records that the writer says it wrote. After a kill one less than there are, at times: it is stored after head.
    records: u64,
    /// Life of the entry whose records are being read, 0 unknown.
    life: u32,
    tid: u32,
    seen: u64,
    lost: u64,
    damaged: bool,
}

impl Cursor {
    /// How full its ring is when the head is there, in 1/1000.
    fn fill(&self, head: u64) -> u32 {
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
        while place < slots.len() {
            let head = Head(slots[place][0]);
            let is_next = head.ordinal() == (self.ordinal + records) as u32 && head.kind() != ThreadStart::KIND;
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
    /// Index of the first one.
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

/// Exact accounting of one thread's ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Records accepted.
    pub seen: u64,
    /// Records that were overwritten before they were read.
    pub lost: u64,
    /// Records that were written. Above `seen + lost` by what was not looked at yet; equal when the writer has ended
    /// and was polled to the end.
    pub written: u64,
}

/// What one poll did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Records handed over.
    pub records: u64,
    /// Records found lost.
    pub lost: u64,
    /// The fullest ring, in 1/1000 of its size, at the time of the poll.
    pub fill: u32,
    /// The poll stopped at its bound: poll again for the rest.
    pub more: bool,
}

/// Is the writer still there?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The writer may still be writing.
    No,
    /// The writer is gone: what is not committed never will be.
    Yes,
}

/// An API call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// Thread in the call.
    pub thread: Thread,
    /// Enter, ticks.
    pub start: u64,
    /// Domain of the operation.
    pub domain: Domain,
    /// Operation.
    pub op: u16,
    /// Correlation id.
    pub correlation: u64,
    /// Nesting level, from 0.
    pub level: u16,
}

/// A ROC-TX range that was not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRange {
    /// Thread that opened it.
    pub thread: Thread,
    /// When, ticks.
    pub start: u64,
    /// Correlation id.
    pub correlation: u64,
    /// Id of a start/stop range, 0 for push/pop.
    pub range_id: u64,
    /// String id of a long text, else 0.
    pub text_id: u32,
    /// Nesting level, from 0.
    pub level: u16,
    /// The text, when short.
    pub text: Vec<u8>,
}

/// A dispatch that was submitted and not seen complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Submit, ticks.
    pub submit: u64,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Correlation id of the launch.
    pub correlation: u64,
    /// Number of the dispatch in its process.
    pub dispatch_id: u64,
}

/// What a queue has to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueWork {
    /// Dense queue id.
    pub id: u32,
    /// Dispatches submitted.
    pub submitted: u64,
    /// Dispatches seen complete.
    pub completed: u64,
    /// Dispatches that ran without a time.
    pub untimed: u64,
    /// Those in flight that are kept, oldest first.
    pub in_flight: Vec<InFlight>,
}

/// What runs now, or was running when the process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenWork {
    /// Open API calls.
    pub calls: Vec<OpenCall>,
    /// Open ranges.
    pub ranges: Vec<OpenRange>,
    /// Queues in use.
    pub queues: Vec<QueueWork>,
}

/// Exact count and time of an operation, from the writer's own totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationTotal {
    /// Domain of the operation.
    pub domain: Domain,
    /// Operation.
    pub op: u16,
    /// Calls that returned.
    pub calls: u64,
    /// Time in them, ticks.
    pub ticks: u64,
}

/// A reader of one ring file.
pub struct Reader<B> {
    bytes: B,
    header: Header,
    threads: Vec<Cursor>,
    /// Slots that the rings of `threads` take together; more than the region has is a lie.
    ring_slots: u64,
    /// Thread to begin the next poll with.
    turn: usize,
    /// How often a ring had been taken when all of the directory was looked at last.
    claims: u64,
    facts: u64,
    /// Fact slots before `facts` that were not committed when they were passed.
    fact_holes: Vec<u64>,
    strings: u64,
    /// Strings before `strings` that were not committed when they were passed.
    string_holes: Vec<u64>,
    /// Bytes of text that the region can still hold: texts do not overlap.
    text_left: u64,
    calibrations: [u64; clock::SAMPLES],
    buffer: Buffer,
}

/// Room for what is copied from a ring: as it was read, and as words.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

/// The most slots (of rings, or of facts) that one poll reads: 512 MiB.
pub const POLL_SLOTS: u64 = 1 << 23;
/// The most strings that one poll reads.
pub const POLL_STRINGS: u64 = 1 << 17;
/// Bytes of text after which a poll stops.
const POLL_TEXT: u64 = 64 << 20;
/// The most strings that a reader takes from one file.
pub const MAX_STRINGS: u64 = 1 << 22;

/// What is copied at once: little enough to stay near the processor until it is handed over.
const BATCH_SLOTS: u64 = 1024;
/// What finding the owner of a record takes, in slots.
const OWNER_COST: u64 = 256;
const BATCH_FACTS: u64 = 1024;
/// Uncommitted facts or strings that are remembered; an honest file has at most one a thread.
const MAX_HOLES: usize = 1024;
/// No ring gets that far in a thousand years; keeps the arithmetic of indices away from its ends.
const MAX_HEAD: u64 = 1 << 62;

/// What stands at a fact slot.
enum FactSlot {
    /// Not committed.
    Open,
    /// Not the beginning of a fact.
    Inside,
    /// A whole fact of so many slots.
    Whole(usize),
    /// A fact that goes on beyond the slots at hand.
    Cut,
}

impl<B: Bytes> Reader<B> {
    /// Checks the header and the directory of a ring file.
    pub fn open(bytes: B) -> Result<Self, OpenError> {
        let size = bytes.size().map_err(OpenError::Io)?;
        let mut page = vec![0u8; PAGE];
        let got = read_full(&bytes, 0, &mut page).map_err(OpenError::Io)?;
        let header = Header::decode(&page[..got], size).map_err(OpenError::Layout)?;
        let entries =
            (header.region(Region::Directory).length as usize / (entry::WORDS * 8)).min(crate::layout::MAX_ENTRIES);
        let text_left = header.region(Region::StringBytes).length;
        Ok(Self {
            bytes,
            header,
            threads: vec![Cursor::default(); entries],
            ring_slots: 0,
            turn: 0,
            claims: 0,
            facts: 0,
            fact_holes: Vec::new(),
            strings: 0,
            string_holes: Vec::new(),
            text_left,
            calibrations: [0; clock::SAMPLES],
            buffer: Buffer::default(),
        })
    }

    /// Who wrote the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where the bytes come from.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }

    /// Hands everything new to `sink`. When [`Progress::more`] is set it stopped at its bound and wants another call.
    pub fn poll(&mut self, ended: Ended, sink: &mut dyn Sink) -> io::Result<Progress> {
        let mut progress = Progress::default();
        // Heads first: what they announce was named by strings and facts before.
        let heads = self.heads()?;
        // Acquire: pairs with the release store of head; what was stored before it is seen from here on.
        fence(Ordering::Acquire);
        // How many facts there are before the strings: a fact is reserved after its texts were stored, so none that is
        // handed out here has a text that this poll did not see.
        let facts = self.region_words(Region::Counters, counter::FACTS_USED, 1)?;
        let facts = facts.first().copied().unwrap_or(0);
        // Acquire: pairs with the release of the reservation.
        fence(Ordering::Acquire);
        if !self.poll_strings(ended, sink)? || !self.poll_facts(ended, facts, sink)? {
            // Names first: the records wait in their rings.
            progress.more = true;
            return Ok(progress);
        }
        self.poll_clock(sink)?;
        let mut budget = POLL_SLOTS;
        for i in 0..heads.len() {
            let index = (self.turn + i) % heads.len();
            let Some(head) = heads[index] else { continue };
            self.poll_thread(index, head, sink, &mut progress, &mut budget)?;
            if progress.more {
                self.turn = index;
                break;
            }
        }
        Ok(progress)
    }

    /// How full the fullest ring is, in 1/1000 of its size; nothing is read from it.
    pub fn fill(&mut self) -> io::Result<u32> {
        let mut fullest = 0;
        let [claims] = self.some_words(Region::Counters, counter::THREADS)?;
        // Chained files do not count who comes.
        if claims == 0 || std::mem::replace(&mut self.claims, claims) != claims {
            let heads = self.heads()?;
            for (cursor, head) in self.threads.iter().zip(heads) {
                fullest = head.map_or(fullest, |head| fullest.max(cursor.fill(head)));
            }
            return Ok(fullest);
        }
        // Nobody came: the rings that are known are all there are.
        for (index, cursor) in self.threads.iter().enumerate() {
            if cursor.ring_slots > 0 && !cursor.damaged {
                let [head] = self.some_words(Region::Directory, index * entry::WORDS + entry::HEAD)?;
                fullest = fullest.max(cursor.fill(head));
            }
        }
        Ok(fullest)
    }

    /// Accounting of every ring that was ever used.
    pub fn accounts(&self) -> Vec<(Thread, Account)> {
        let used = self
            .threads
            .iter()
            .enumerate()
            .filter(|(_, c)| c.records > 0 || c.ordinal > 0);
        used.map(|(index, c)| {
            let thread = Thread {
                index: index as u32,
                tid: c.tid,
            };
            // What was announced by head counts as written, even when the writer died before it counted it.
            (
                thread,
                Account {
                    seen: c.seen,
                    lost: c.lost,
                    written: c.records.max(c.ordinal),
                },
            )
        })
        .collect()
    }

    /// Process-wide counters, by their offsets in [`counter`].
    pub fn counters(&self) -> io::Result<[u64; counter::WORDS]> {
        let mut words = [0; counter::WORDS];
        for (to, word) in words
            .iter_mut()
            .zip(self.region_words(Region::Counters, 0, counter::WORDS)?)
        {
            *to = word;
        }
        Ok(words)
    }

    /// Sum over all threads of a word of their directory entries, such as [`entry::REENTRANT`].
    pub fn entry_sum(&self, at: usize) -> io::Result<u64> {
        let mut sum = 0u64;
        for index in 0..self.threads.len() {
            let word = self.region_words(Region::Directory, index * entry::WORDS + at, 1)?;
            sum = sum.wrapping_add(word.first().copied().unwrap_or(0));
        }
        Ok(sum)
    }

    /// What runs now.
    pub fn open_work(&self) -> io::Result<OpenWork> {
        let mut work = OpenWork::default();
        for index in 0..self.threads.len() {
            let at = index * entry::WORDS;
            let look: [u64; entry::RANGE_DEPTH + 1] = self.some_words(Region::Directory, at)?;
            let is_live = |words: &[u64]| words[entry::STATE] & 0xffff_ffff == entry::LIVE;
            if !is_live(&look) || look[entry::CALL_DEPTH] == 0 && look[entry::RANGE_DEPTH] == 0 {
                continue;
            }
            let words = self.stable_words(Region::Directory, at, entry::WORDS)?;
            if words.len() == entry::WORDS && is_live(&words) {
                let thread = Thread {
                    index: index as u32,
                    tid: words[entry::TID] as u32,
                };
                open_calls(thread, &words, &mut work.calls);
                open_ranges(thread, &words, &mut work.ranges);
            }
        }
        let look = self.region_words(Region::OpenRanges, 0, open_range::RANGES * open_range::WORDS)?;
        for (index, look) in look.chunks_exact(open_range::WORDS).enumerate() {
            if look[open_range::ID] == 0 {
                continue;
            }
            let words = self.stable_words(Region::OpenRanges, index * open_range::WORDS, open_range::WORDS)?;
            if words.len() == open_range::WORDS && words[open_range::ID] != 0 {
                work.ranges.push(started_range(&words));
            }
        }
        for index in 0..queue::QUEUES {
            let at = index * queue::WORDS;
            // Few are in use, and what one has in flight is much to read.
            let [id] = self.some_words(Region::Queues, at + queue::ID)?;
            if id == 0 {
                continue;
            }
            let words = self.region_words(Region::Queues, at, queue::WORDS)?;
            if words.len() == queue::WORDS && words[queue::ID] != 0 {
                work.queues.push(queue_work(&words));
            }
        }
        Ok(work)
    }

    /// Numbers of the dispatches whose records are the newest of their rings: what a writer that was killed wrote last.
    pub fn newest_dispatches(&self) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        let mut buffer = Buffer::default();
        for (index, cursor) in self.threads.iter().enumerate() {
            const SLOTS: u64 = Dispatch::SLOTS as u64;
            let Some(from) = cursor.next.checked_sub(SLOTS).filter(|_| cursor.ring_slots >= SLOTS) else {
                continue;
            };
            self.read_slots(index, from, SLOTS, &mut buffer)?;
            if let Body::Dispatch(dispatch) = record::decode(&buffer.slots) {
                found.push(dispatch.dispatch_id);
            }
        }
        Ok(found)
    }

    /// Exact totals of all operations over all threads, kept by the writer: right even when records were lost.
    pub fn totals(&self) -> io::Result<Vec<OperationTotal>> {
        let mut sums = vec![(0u64, 0u64); TOTALS];
        for index in 0..self.threads.len() {
            let words = self.region_words(Region::Totals, index * 2 * TOTALS, 2 * TOTALS)?;
            for (sum, pair) in sums.iter_mut().zip(words.chunks_exact(2)) {
                sum.0 = sum.0.wrapping_add(pair[0]);
                sum.1 = sum.1.wrapping_add(pair[1]);
            }
        }
        let named = sums.into_iter().enumerate().filter(|(_, sum)| sum.0 > 0);
        Ok(named
            .filter_map(|(index, (calls, ticks))| {
                let (domain, op) = totals_operation(index)?;
                Some(OperationTotal {
                    domain,
                    op,
                    calls,
                    ticks,
                })
            })
            .collect())
    }

    fn heads(&mut self) -> io::Result<Vec<Option<u64>>> {
        let mut heads = Vec::with_capacity(self.threads.len());
        let rings = self.header.region(Region::Rings);
        for index in 0..self.threads.len() {
            let words: [u64; entry::RECORDS + 1] = self.some_words(Region::Directory, index * entry::WORDS)?;
            let cursor = &mut self.threads[index];
            if words[entry::STATE] == entry::FREE || cursor.damaged {
                heads.push(None);
                continue;
            }
            if words[entry::HEAD] > MAX_HEAD {
                cursor.damaged = true;
                heads.push(None);
                continue;
            }
            if cursor.ring_slots == 0 {
                let (offset, slots) = (words[entry::RING_OFFSET], words[entry::RING_SLOTS]);
                let end = slots
                    .checked_mul(SLOT_BYTES as u64)
                    .and_then(|length| offset.checked_add(length));
                let fits = offset >= rings.offset && end.is_some_and(|end| end <= rings.offset + rings.length);
                let room = (rings.length / SLOT_BYTES as u64).saturating_sub(self.ring_slots);
                if !fits || !slots.is_power_of_two() || slots < 2 * MAX_SLOTS as u64 || slots > room {
                    cursor.damaged = true;
                    heads.push(None);
                    continue;
                }
                (cursor.ring_offset, cursor.ring_slots) = (offset, slots);
                self.ring_slots += slots;
            }
            cursor.records = words[entry::RECORDS];
            heads.push(Some(words[entry::HEAD]));
        }
        Ok(heads)
    }

    fn poll_thread(
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
        buffer: &mut Buffer,
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
            let got = self.read_slots(index, from, count, buffer)?;
            // Acquire: pairs with the writer's release fence before it overwrites. Whoever copied a word of the record
            // being written sees a head that is not before that record.
            fence(Ordering::Acquire);
            // The head as it stands after the data was copied decides what of it is whole.
            let after: [u64; 1] = self.some_words(Region::Directory, index * entry::WORDS + entry::HEAD)?;
            let after = after[0].max(head);
            let whole = after.saturating_add(MAX_SLOTS as u64).saturating_sub(slots);
            let run = Run {
                from,
                slots: &buffer.slots,
                whole,
                last: from + count == head,
            };
            let done = self.accept(index, &run, sink, budget)?;
            let cursor = &mut self.threads[index];
            cursor.next = done;
            if got < count as usize * SLOT_BYTES {
                // The file was cut: what is missing stays missing.
                cursor.damaged = true;
                break;
            }
        }
        Ok(true)
    }

    /// Takes the whole records out of a copied run of slots; returns the index to go on from.
    fn accept(&mut self, index: usize, run: &Run<'_>, sink: &mut dyn Sink, budget: &mut u64) -> io::Result<u64> {
        let Run {
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
                return Ok(if last || at == from { end } else { at });
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

    /// Copies slots into the buffer; the bytes that were there.
    fn read_slots(&self, index: usize, from: u64, count: u64, into: &mut Buffer) -> io::Result<usize> {
        let cursor = &self.threads[index];
        let wanted = count as usize * SLOT_BYTES;
        if into.bytes.len() < wanted {
            into.bytes.resize(wanted, 0);
        }
        let start = from & (cursor.ring_slots - 1);
        let first = count.min(cursor.ring_slots - start) as usize * SLOT_BYTES;
        let (one, two) = into.bytes[..wanted].split_at_mut(first);
        let mut got = read_full(&self.bytes, cursor.ring_offset + start * SLOT_BYTES as u64, one)?;
        if got == one.len() && !two.is_empty() {
            got += read_full(&self.bytes, cursor.ring_offset, two)?;
        }
        let whole = into.bytes[..got].as_chunks::<SLOT_BYTES>().0;
        into.slots.clear();
        into.slots.extend(whole.iter().map(slot_of));
        Ok(got)
    }

    /// False when there are more than one poll takes.
    fn poll_strings(&mut self, ended: Ended, sink: &mut dyn Sink) -> io::Result<bool> {
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

    /// False when there are more than one poll takes.
    fn poll_facts(&mut self, ended: Ended, given: u64, sink: &mut dyn Sink) -> io::Result<bool> {
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
                    // The rest is in the next run.
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

    /// Fact slots twice: the first look says what is committed, the second one is the data.
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

    fn poll_clock(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        let words = self.region_words(Region::Clock, 0, clock::WORDS * clock::SAMPLES)?;
        // Acquire: pairs with the release store of the even sequence.
        fence(Ordering::Acquire);
        for (place, sample) in words.as_chunks::<{ clock::WORDS }>().0.iter().enumerate() {
            let sequence = sample[clock::SEQUENCE];
            if sequence == 0 || sequence % 2 == 1 || sequence == self.calibrations[place] {
                continue;
            }
            let sample = self.region_words(Region::Clock, place * clock::WORDS, clock::WORDS)?;
            // Acquire: pairs with the release fence after the odd sequence.
            fence(Ordering::Acquire);
            let again = self.region_words(Region::Clock, place * clock::WORDS, 1)?;
            if let Some(sample) = sample.first_chunk::<{ clock::WORDS }>()
                && sample[clock::SEQUENCE] == sequence
                && again.first() == Some(&sequence)
            {
                self.calibrations[place] = sequence;
                sink.calibration(sample);
            }
        }
        Ok(())
    }

    /// Words of a region that stood still while they were read; after a few tries as they are.
    fn stable_words(&self, kind: Region, from: usize, count: usize) -> io::Result<Vec<u64>> {
        let mut words = self.region_words(kind, from, count)?;
        for _ in 0..4 {
            fence(Ordering::Acquire);
            let again = self.region_words(kind, from, count)?;
            if again == words {
                break;
            }
            words = again;
        }
        Ok(words)
    }

    /// So many words of a region; 0 where it has none.
    fn some_words<const N: usize>(&self, kind: Region, from: usize) -> io::Result<[u64; N]> {
        let extent = self.header.region(kind);
        let start = (from as u64).saturating_mul(8).min(extent.length);
        let length = (N as u64 * 8).min(extent.length - start) as usize;
        let mut raw = [[0u8; 8]; N];
        read_full(
            &self.bytes,
            extent.offset + start,
            &mut raw.as_flattened_mut()[..length],
        )?;
        Ok(raw.map(u64::from_le_bytes))
    }

    /// Words of a region; fewer than asked when the region or the file ends before.
    fn region_words(&self, kind: Region, from: usize, count: usize) -> io::Result<Vec<u64>> {
        let extent = self.header.region(kind);
        let start = (from as u64).saturating_mul(8).min(extent.length);
        let length = (count as u64 * 8).min(extent.length - start);
        let mut raw = vec![0u8; length as usize];
        let got = read_full(&self.bytes, extent.offset + start, &mut raw)?;
        Ok(raw[..got]
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect())
    }
}

/// Why a ring file could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The file could not be read.
    Io(io::Error),
    /// The file is not a ring that this build reads.
    Layout(LayoutError),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Layout(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for OpenError {}

fn read_full(bytes: &impl Bytes, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match bytes.read_at(offset + got as u64, &mut into[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
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

fn slot_of(bytes: &[u8; SLOT_BYTES]) -> Slot {
    let mut slot = [0u64; SLOT_WORDS];
    for (word, raw) in slot.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*raw);
    }
    slot
}

fn open_calls(thread: Thread, words: &[u64], into: &mut Vec<OpenCall>) {
    let depth = (words[entry::CALL_DEPTH] as usize).min(entry::CALLS);
    for level in 0..depth {
        let at = entry::CALL_STACK + level * 3;
        into.push(OpenCall {
            thread,
            start: words[at],
            domain: Domain((words[at + 1] >> 16) as u8),
            op: words[at + 1] as u16,
            correlation: words[at + 2],
            level: level as u16,
        });
    }
}

fn text_of(words: &[u64], length: usize) -> Vec<u8> {
    let mut text: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    text.truncate(length);
    text
}

fn open_ranges(thread: Thread, words: &[u64], into: &mut Vec<OpenRange>) {
    let depth = (words[entry::RANGE_DEPTH] as usize).min(entry::RANGES);
    for level in 0..depth {
        let at = entry::RANGE_STACK + level * entry::RANGE_WORDS;
        into.push(OpenRange {
            thread,
            start: words[at],
            correlation: words[at + 1],
            range_id: 0,
            text_id: words[at + 2] as u32,
            level: level as u16,
            text: text_of(&words[at + 3..at + entry::RANGE_WORDS], (words[at + 2] >> 32) as usize),
        });
    }
}

fn started_range(words: &[u64]) -> OpenRange {
    OpenRange {
        thread: Thread {
            index: u32::MAX,
            tid: words[open_range::TID] as u32,
        },
        start: words[open_range::START],
        correlation: words[open_range::CORRELATION],
        range_id: words[open_range::ID],
        text_id: words[open_range::SIZES] as u32,
        level: 0,
        text: text_of(&words[open_range::TEXT..], (words[open_range::SIZES] >> 32) as usize),
    }
}

fn queue_work(words: &[u64]) -> QueueWork {
    let mut in_flight: Vec<InFlight> = words[queue::HEADER..]
        .chunks_exact(queue::SLOT_WORDS)
        .filter(|slot| slot[0] != 0)
        .map(|slot| InFlight {
            submit: slot[0],
            kernel_object: slot[1],
            correlation: slot[2],
            dispatch_id: slot[3],
        })
        .collect();
    in_flight.sort_by_key(|work| work.dispatch_id);
    QueueWork {
        id: words[queue::ID] as u32,
        submitted: words[queue::SUBMITTED],
        completed: words[queue::COMPLETED],
        untimed: words[queue::UNTIMED],
        in_flight,
    }
}
