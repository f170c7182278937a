//! Proofs of the ring's protocols: the real writer against the real reader, in every order that the memory model
//! allows, with rings of four slots and records of at most two.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p roctop-ring --test loom --release`
//!
//! Each model runs first as shipped and must hold; then with one ordering, fence or rule taken away, and must fail:
//! a model that cannot fail proves nothing. Two kinds of mutants: [`Mutant`] weakens the atomics under both sides, and
//! [`Lie`] changes what the reader's `pread` gives, which is the same as another rule in the reader.
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use loom::sync::Arc;
use roctop_ring::directory;
use roctop_ring::layout::{Header, MAJOR, Region, Spec, clock, counter, entry};
use roctop_ring::reader::{Bytes, Ended, Reader, Sink, Thread};
use roctop_ring::record::{Head, MAX_SLOTS, PAYLOAD_WORDS, SLOT_WORDS, Slot};
use roctop_ring::sync::mutant::{Mutant, set};
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::{FactWriter, RingWriter, StringWriter};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering as Plain};

const SLOTS: usize = 2 * MAX_SLOTS;
const FACTS: usize = 4;

/// What the reader is told instead of the truth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    /// The head after the data reads as the head before it: no second look.
    FirstHeadAgain,
    /// The head after the data reads so much older: a rule that accepts so many slots too many.
    OlderHead(u64),
    /// Any word read twice in a poll reads as the first time: facts, samples and owners are looked at once.
    FirstLookAgain,
}

/// The words of a ring file that matter to a model; every other word reads as zero, and costs loom nothing.
struct Words {
    page: Vec<u8>,
    directory: u64,
    ring: u64,
    facts: u64,
    counters: u64,
    index: u64,
    text: u64,
    clock: u64,
    entry: Vec<AtomicU64>,
    slots: Vec<AtomicU64>,
    fact_slots: Vec<AtomicU64>,
    counts: Vec<AtomicU64>,
    indices: Vec<AtomicU64>,
    texts: Vec<AtomicU64>,
    samples: Vec<AtomicU64>,
}

/// Words of an entry that are kept; loom's atomics are dear.
const ENTRY: [usize; 6] =
    [entry::STATE, entry::TID, entry::GENERATION_START, entry::HEAD, entry::RECORDS, entry::RING_SLOTS];

impl Words {
    fn new() -> Self {
        let spec = Spec { ordinal: 0, rings: vec![SLOTS as u64], facts: FACTS as u64, strings: 4, string_bytes: 64 };
        let (regions, size) = spec.regions();
        let header = Header { major: MAJOR, size, regions, ..Header::default() };
        let fresh = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        Self {
            page: header.encode(),
            directory: header.region(Region::Directory).offset,
            ring: header.region(Region::Rings).offset,
            facts: header.region(Region::Facts).offset,
            counters: header.region(Region::Counters).offset,
            index: header.region(Region::StringIndex).offset,
            text: header.region(Region::StringBytes).offset,
            clock: header.region(Region::Clock).offset,
            entry: fresh(entry::HEAD + 2),
            slots: fresh(SLOTS * SLOT_WORDS),
            fact_slots: fresh(FACTS * SLOT_WORDS),
            counts: fresh(8),
            indices: fresh(4),
            texts: fresh(8),
            samples: fresh(clock::WORDS),
        }
    }

    fn ring(&self) -> RingWriter<'_> {
        RingWriter::new(&self.slots, &self.entry[entry::HEAD], &self.entry[entry::RECORDS]).unwrap()
    }

    fn facts(&self) -> FactWriter<'_> {
        FactWriter::new(&self.fact_slots, &self.counts[counter::FACTS_USED], &self.counts[counter::FACTS_FULL])
    }

    fn strings(&self) -> StringWriter<'_> {
        let counts = &self.counts;
        StringWriter::new(
            &self.indices,
            &self.texts,
            &counts[counter::STRINGS],
            &counts[counter::STRING_WORDS],
            &counts[counter::STRINGS_FULL],
        )
    }
}

/// Which regions a model's reader looks at; the others read as zero.
#[derive(Clone, Copy, Default)]
struct Look {
    ring: bool,
    owner: bool,
    facts: bool,
    strings: bool,
    clock: bool,
}

struct Memory {
    words: Arc<Words>,
    look: Look,
    lie: Lie,
    heads: Cell<(u64, u64)>,
    first: RefCell<HashMap<u64, u64>>,
}

impl Memory {
    fn load(&self, offset: u64) -> u64 {
        let w = &*self.words;
        let within = |from: u64, words: &[AtomicU64]| {
            let at = offset.checked_sub(from)? as usize / 8;
            (at < words.len()).then_some(at)
        };
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        // Of six payload words the first and the last stand for all.
        let plain = |at: usize| matches!(at % SLOT_WORDS, 2..PAYLOAD_WORDS);
        if let Some(at) = within(w.directory, &w.entry) {
            return match at {
                entry::RING_OFFSET => w.ring,
                entry::RING_SLOTS => SLOTS as u64,
                entry::HEAD if self.look.ring => self.head(load(&w.entry[at])),
                entry::HEAD => 0,
                entry::STATE | entry::TID | entry::GENERATION_START if self.look.owner => load(&w.entry[at]),
                entry::STATE => 1 << 32 | entry::LIVE,
                entry::RECORDS if self.look.ring => load(&w.entry[at]),
                _ => 0,
            };
        }
        for (base, words, on) in [
            (w.ring, &w.slots, self.look.ring),
            (w.facts, &w.fact_slots, self.look.facts),
        ] {
            if let Some(at) = within(base, words) {
                return if on && !plain(at) { load(&words[at]) } else { 0 };
            }
        }
        if let Some(at) = within(w.counters, &w.counts) {
            let on = at == counter::FACTS_USED && self.look.facts || at == counter::STRINGS && self.look.strings;
            return if on { load(&w.counts[at]) } else { 0 };
        }
        for (base, words, on) in [
            (w.index, &w.indices, self.look.strings),
            (w.text, &w.texts, self.look.strings),
            (w.clock, &w.samples, self.look.clock),
        ] {
            if let Some(at) = within(base, words) {
                return if on { load(&words[at]) } else { 0 };
            }
        }
        0
    }

    /// Counts the looks at head: odd ones are before the data, even ones after it.
    fn head(&self, truth: u64) -> u64 {
        let (looks, before) = self.heads.get();
        let told = match self.lie {
            Lie::FirstHeadAgain if looks % 2 == 1 => before,
            Lie::OlderHead(by) if looks % 2 == 1 => truth.saturating_sub(by),
            _ => truth,
        };
        self.heads.set((looks + 1, told));
        told
    }
}

impl Bytes for Memory {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        for (i, to) in into.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let at = offset + i as u64 * 8;
            *to = match self.words.page.get(at as usize..at as usize + 8) {
                Some(page) => page.try_into().unwrap(),
                None if self.lie == Lie::FirstLookAgain => {
                    let mut first = self.first.borrow_mut();
                    first.entry(at).or_insert_with(|| self.load(at)).to_le_bytes()
                }
                None => self.load(at).to_le_bytes(),
            };
        }
        Ok(into.len())
    }
    fn size(&self) -> std::io::Result<u64> {
        Ok(1 << 30)
    }
}

fn reader(words: &Arc<Words>, look: Look, lie: Lie) -> Reader<Memory> {
    let first = RefCell::default();
    Reader::open(Memory { words: words.clone(), look, lie, heads: Cell::default(), first }).unwrap()
}

const KIND: u8 = 200;
fn mark(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}
fn payload(n: u64) -> [u64; PAYLOAD_WORDS] {
    [mark(n); PAYLOAD_WORDS]
}

#[derive(Default)]
struct Seen {
    records: Vec<(u32, u64)>,
    facts: Vec<u64>,
    strings: Vec<(u32, Vec<u8>)>,
    samples: u64,
    lost: u64,
}

/// The words that a model looks at are one record's, all of them.
fn whole(slots: &[Slot], n: u64) {
    for slot in slots {
        assert_eq!((slot[1], slot[PAYLOAD_WORDS]), (mark(n), mark(n)), "torn");
    }
}

impl Sink for Seen {
    fn string(&mut self, id: u32, text: &[u8]) {
        self.strings.push((id, text.to_vec()));
    }
    fn fact(&mut self, slots: &[Slot]) {
        let head = Head(slots[0][0]);
        assert_eq!(head.kind(), KIND, "a fact with another head");
        assert_eq!(slots.len(), usize::from(head.slots()));
        let n = u64::from(head.domain().0);
        whole(slots, n);
        self.facts.push(n);
    }
    fn calibration(&mut self, sample: &[u64; clock::WORDS]) {
        let number = sample[clock::SEQUENCE] / 2 - 1;
        assert!(sample[1..].iter().all(|word| *word == mark(number)), "torn sample");
        self.samples += 1;
    }
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        let head = Head(slots[0][0]);
        assert_eq!(slots.len(), usize::from(head.slots()));
        whole(slots, u64::from(head.ordinal()));
        self.records.push((thread.tid, u64::from(head.ordinal())));
    }
    fn lost(&mut self, _: Thread, records: u64) {
        self.lost += records;
    }
}

/// Runs a model in all orders; returns how many there were.
fn orders(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0))));
    let _ = &COUNT;
    let mine = MINE.with(|count| *count);
    mine.store(0, Plain::Relaxed);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    builder.preemption_bound = preemptions;
    builder.check(move || {
        mine.fetch_add(1, Plain::Relaxed);
        model();
    });
    mine.load(Plain::Relaxed)
}

fn holds(name: &str, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    set(Mutant::None);
    let begin = std::time::Instant::now();
    let count = orders(preemptions, model);
    println!("{name}: holds in {count} orders, {:.1} s", begin.elapsed().as_secs_f64());
    assert!(count > 10, "{name}: {count} orders prove nothing");
}

fn breaks(name: &str, mutant: Mutant, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    set(mutant);
    let begin = std::time::Instant::now();
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| orders(preemptions, model)));
    set(Mutant::None);
    println!("{name} without {mutant:?}: {} in {:.1} s", if broken.is_err() { "caught" } else { "NOT CAUGHT" }, begin.elapsed().as_secs_f64());
    assert!(broken.is_err(), "{name}: the mutant was not caught");
}

/// Writes records of `before` slots, then those of `during` beside a reader that polls once; then it polls to the end.
fn lap(before: &'static [usize], during: &'static [usize], lie: Lie) -> impl Fn() + Send + Sync + 'static {
    move || {
        let words = Arc::new(Words::new());
        let write = |words: &Words, from: u64, sizes: &[usize]| {
            let ring = words.ring();
            for (n, size) in (from..).zip(sizes) {
                ring.push(Head::new(KIND, 0, *size as u8, 0), &[payload(n); MAX_SLOTS][..*size]);
            }
        };
        write(&words, 0, before);
        let shared = words.clone();
        let writer = loom::thread::spawn(move || write(&shared, before.len() as u64, during));
        let mut reader = reader(&words, Look { ring: true, ..Look::default() }, lie);
        let mut seen = Seen::default();
        reader.poll(Ended::No, &mut seen).unwrap();
        writer.join().unwrap();
        reader.poll(Ended::Yes, &mut seen).unwrap();
        let written = (before.len() + during.len()) as u64;
        assert_eq!(seen.records.len() as u64 + seen.lost, written, "accounting");
        assert!(seen.records.is_sorted_by(|a, b| a.1 < b.1), "order");
        assert_eq!(seen.records.last().map(|r| r.1), Some(written - 1), "the last record is always there");
        assert_eq!(reader.accounts()[0].1.written, written);
    }
}

#[test]
fn ring_of_one_slot_records() {
    let model = |lie| lap(&[1, 1, 1], &[1, 1, 1], lie);
    holds("one slot", Some(3), model(Lie::None));
    breaks("one slot", Mutant::ReleaseFence, Some(3), model(Lie::None));
    breaks("one slot", Mutant::AcquireFence, Some(3), model(Lie::None));
    breaks("one slot", Mutant::ReleaseStore, Some(3), model(Lie::None));
    breaks("one slot, no second head,", Mutant::None, Some(3), model(Lie::FirstHeadAgain));
    breaks("one slot, rule 2 too wide,", Mutant::None, Some(3), model(Lie::OlderHead(2)));
}

#[test]
fn ring_of_two_slot_records() {
    let model = |lie| lap(&[2, 2], &[2, 2], lie);
    holds("two slots", Some(3), model(Lie::None));
    breaks("two slots", Mutant::ReleaseFence, Some(3), model(Lie::None));
    breaks("two slots", Mutant::AcquireFence, Some(3), model(Lie::None));
    breaks("two slots, no second head,", Mutant::None, Some(3), model(Lie::FirstHeadAgain));
    breaks("two slots, rule 1 too wide,", Mutant::None, Some(3), model(Lie::OlderHead(1)));
}

#[test]
fn ring_of_mixed_records() {
    let model = |lie| lap(&[1, 2], &[2, 1, 2], lie);
    holds("mixed", Some(2), model(Lie::None));
    breaks("mixed", Mutant::ReleaseFence, Some(2), model(Lie::None));
    breaks("mixed, rule 1 too wide,", Mutant::None, Some(2), model(Lie::OlderHead(1)));
}

#[test]
fn debug_it() {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    static M: Mutex<BTreeMap<(u64, u64, u64), usize>> = Mutex::new(BTreeMap::new());
    set(Mutant::ReleaseStore);
    let c = orders(None, || {
        let words = Arc::new(Words::new());
        let write = |words: &Words, from: u64, sizes: &[usize]| {
            let ring = words.ring();
            for (n, size) in (from..).zip(sizes) {
                ring.push(Head::new(KIND, 0, *size as u8, 0), &[payload(n); MAX_SLOTS][..*size]);
            }
        };
        let shared = words.clone();
        let writer = loom::thread::spawn(move || write(&shared, 0, &[1]));
        let h = words.entry[entry::HEAD].load(Ordering::Relaxed);
        roctop_ring::sync::fence(Ordering::Acquire);
        let s = words.slots[0].load(Ordering::Relaxed);
        let q = words.slots[7].load(Ordering::Relaxed);
        *M.lock().unwrap().entry((h, s, q)).or_default() += 1;
        writer.join().unwrap();
    });
    println!("{c} {:?}", M.lock().unwrap());
}
