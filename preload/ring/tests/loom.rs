//! Proofs of the ring's protocols: the real writer against the real reader, in every order that the memory model
//! allows, with rings of four slots and records of at most two.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p roctop-ring --test loom --release`
//!
//! Each model must hold as shipped, and must fail with one ordering, fence or rule removed: a model that cannot fail
//! proves nothing. There are two kinds of mutants: [`Mutant`] weakens the atomics under both sides, and [`Fault`]
//! changes the result of the reader's `pread`, which equals another rule in the reader.
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod in_place;

use in_place::InPlace;
use loom::sync::Arc;
use loom::thread;
use roctop_ring::directory;
use roctop_ring::layout::{Header, MAJOR, Region, Spec, clock, counter, entry};
use roctop_ring::reader::{Bytes, Ended, Reader, Sink, Thread as Owner};
use roctop_ring::record::{Domain, Head, MAX_SLOTS, PAYLOAD_WORDS, SLOT_WORDS, Slot, ThreadStart};
use roctop_ring::sync::mutant::{Mutant, set};
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::{FactWriter, RingWriter, StringWriter};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering as Plain};

const SLOTS: usize = 2 * MAX_SLOTS;
const FACTS: usize = 3;

/// Changes the words that the reader sees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The head read after the data is the one read before it: no second read.
    StaleHead,
    /// The head read after the data is older by this much: a rule that accepts this many slots too many.
    OlderHead(u64),
    /// A word read twice in a poll keeps its first value: facts, samples and owners are read once.
    StaleWord,
}

/// The words of a ring file that matter to a model. Every other word reads as zero and costs loom nothing.
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

impl Words {
    fn new() -> Self {
        let spec = Spec {
            ordinal: 0,
            rings: vec![SLOTS as u64],
            facts: FACTS as u64,
            strings: 4,
            string_bytes: 64,
        };
        let (regions, size) = spec.regions();
        let header = Header {
            major: MAJOR,
            size,
            regions,
            ..Header::default()
        };
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
            entry: fresh(entry::WORDS),
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
        FactWriter::new(
            &self.fact_slots,
            &self.counts[counter::FACTS_USED],
            &self.counts[counter::FACTS_FULL],
        )
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

/// The regions that a model's reader reads; the others read as zero.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each region")]
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
    fault: Fault,
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
        // The first and the last of six payload words represent all; in facts the first.
        let plain = |at: usize| match at % SLOT_WORDS {
            2 => !self.look.owner,
            3..PAYLOAD_WORDS => true,
            PAYLOAD_WORDS => self.look.facts,
            _ => false,
        };
        if let Some(at) = within(w.directory, &w.entry) {
            return match at {
                entry::RING_OFFSET => w.ring,
                entry::RING_SLOTS => SLOTS as u64,
                entry::HEAD if self.look.ring => self.head(load(&w.entry[at])),
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
                // The first and the last word of a sample represent all.
                let stands = base != w.clock || matches!(at, 0 | 1 | 7);
                return if on && stands { load(&words[at]) } else { 0 };
            }
        }
        0
    }

    /// Counts the reads of head: odd ones are before the data, even ones after it.
    fn head(&self, truth: u64) -> u64 {
        let (looks, before) = self.heads.get();
        let seen = match self.fault {
            Fault::StaleHead if looks % 2 == 1 => before,
            Fault::OlderHead(by) if looks % 2 == 1 => truth.saturating_sub(by),
            _ => truth,
        };
        self.heads.set((looks + 1, seen));
        seen
    }
}

impl Bytes for Memory {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        for (i, to) in into.chunks_mut(8).enumerate() {
            let at = offset + i as u64 * 8;
            let word = match self.words.page.get(at as usize..at as usize + 8) {
                Some(page) => page.try_into().unwrap(),
                None if self.fault == Fault::StaleWord => {
                    let mut first = self.first.borrow_mut();
                    first.entry(at).or_insert_with(|| self.load(at)).to_le_bytes()
                }
                None => self.load(at).to_le_bytes(),
            };
            to.copy_from_slice(&word[..to.len()]);
        }
        Ok(into.len())
    }
    fn size(&self) -> std::io::Result<u64> {
        Ok(1 << 30)
    }
}

fn reader(words: &Arc<Words>, look: Look, fault: Fault) -> Reader<Memory> {
    let first = RefCell::default();
    Reader::open(Memory {
        words: words.clone(),
        look,
        fault,
        heads: Cell::default(),
        first,
    })
    .unwrap()
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

/// Whether the last payload word is checked.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Checked,
    Unchecked,
}

/// Checks that all words come from one record.
fn whole(slots: &[Slot], n: u64, last: Last) {
    for slot in slots {
        assert_eq!(slot[1], mark(n), "torn");
        assert!(last == Last::Unchecked || slot[PAYLOAD_WORDS] == mark(n), "torn");
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
        whole(slots, n, Last::Unchecked);
        self.facts.push(n);
    }
    fn calibration(&mut self, sample: &[u64; clock::WORDS]) {
        let number = sample[clock::SEQUENCE] / 2 - 1;
        assert_eq!((sample[1], sample[7]), (mark(number), mark(number)), "torn sample");
        self.samples += 1;
    }
    fn record(&mut self, owner: Owner, slots: &[Slot]) {
        let head = Head(slots[0][0]);
        assert_eq!(slots.len(), usize::from(head.slots()));
        if head.kind() == KIND {
            whole(slots, u64::from(head.ordinal()), Last::Checked);
        }
        self.records.push((owner.tid, u64::from(head.ordinal())));
    }
    fn lost(&mut self, _: Owner, records: u64) {
        self.lost += records;
    }
}

/// Runs a model in all orders; returns their number.
///
/// In every model the writer runs on loom's first thread and the reader is spawned. In the reverse arrangement, loom
/// 0.7 finds no order in which the reader sees the last store of the writer's record, and mutants survive.
fn orders(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) -> usize {
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    builder.preemption_bound = preemptions;
    let counter = count.clone();
    builder.check(move || {
        counter.fetch_add(1, Plain::Relaxed);
        model();
    });
    count.load(Plain::Relaxed)
}

fn holds(name: &str, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    set(Mutant::None);
    let begin = std::time::Instant::now();
    let count = orders(preemptions, model);
    println!(
        "{name}: holds in {count} orders, {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    assert!(count > 3, "{name}: {count} orders prove nothing");
}

fn breaks(name: &str, mutant: Mutant, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    set(mutant);
    let begin = std::time::Instant::now();
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| orders(preemptions, model)));
    set(Mutant::None);
    println!(
        "{name} without {mutant:?}: {} in {:.1} s",
        if broken.is_err() { "caught" } else { "NOT CAUGHT" },
        begin.elapsed().as_secs_f64()
    );
    assert!(broken.is_err(), "{name}: the mutant was not caught");
}

fn push(words: &Words, from: u64, sizes: &[usize]) {
    let ring = words.ring();
    for (n, size) in (from..).zip(sizes) {
        ring.push(Head::new(KIND, 0, *size as u8, 0), &[payload(n); MAX_SLOTS][..*size]);
    }
}

/// A reader that polls once, on a separate thread.
fn polling(words: &Arc<Words>, look: Look, fault: Fault) -> thread::JoinHandle<(Reader<Memory>, Seen)> {
    let mut reader = reader(words, look, fault);
    thread::spawn(move || {
        let mut seen = Seen::default();
        reader.poll(Ended::No, &mut seen).unwrap();
        (reader, seen)
    })
}

/// State of the reader after the writers have finished and it polled to the end.
fn at_the_end(polling: thread::JoinHandle<(Reader<Memory>, Seen)>) -> (Reader<Memory>, Seen) {
    let (mut reader, mut seen) = polling.join().unwrap();
    reader.bytes().first.borrow_mut().clear();
    reader.poll(Ended::Yes, &mut seen).unwrap();
    (reader, seen)
}

/// Writes records of `before` slots, then those of `during` beside a reader that polls once; then it polls to the end.
fn lap(before: &'static [usize], during: &'static [usize], fault: Fault) -> impl Fn() + Send + Sync + 'static {
    move || {
        let words = Arc::new(Words::new());
        push(&words, 0, before);
        let polling = polling(
            &words,
            Look {
                ring: true,
                ..Look::default()
            },
            fault,
        );
        push(&words, before.len() as u64, during);
        let (reader, seen) = at_the_end(polling);
        let written = (before.len() + during.len()) as u64;
        assert_eq!(seen.records.len() as u64 + seen.lost, written, "accounting");
        assert!(seen.records.is_sorted_by(|a, b| a.1 < b.1), "order");
        assert_eq!(
            seen.records.last().map(|r| r.1),
            Some(written - 1),
            "the last record is always there"
        );
        assert_eq!(reader.accounts()[0].1.written, written);
    }
}

#[test]
fn ring_of_one_slot_records() {
    let model = |fault| lap(&[1, 1, 1], &[1, 1, 1], fault);
    holds("one slot", Some(3), model(Fault::None));
    breaks("one slot", Mutant::ReleaseFence, Some(3), model(Fault::None));
    breaks("one slot", Mutant::AcquireFence, Some(3), model(Fault::None));
    breaks("one slot", Mutant::ReleaseStore, Some(3), model(Fault::None));
    breaks(
        "one slot, no second head,",
        Mutant::None,
        Some(3),
        model(Fault::StaleHead),
    );
    // For one-slot records the rule may accept MAX_SLOTS - 1 slots more, but not one above that.
    breaks(
        "one slot, rule 2 too wide,",
        Mutant::None,
        Some(3),
        model(Fault::OlderHead(2)),
    );
}

#[test]
fn ring_of_two_slot_records() {
    let model = |fault| lap(&[2, 2], &[2, 2], fault);
    holds("two slots", Some(2), model(Fault::None));
    breaks("two slots", Mutant::ReleaseFence, Some(2), model(Fault::None));
    breaks("two slots", Mutant::AcquireFence, Some(2), model(Fault::None));
    breaks("two slots", Mutant::ReleaseStore, Some(2), model(Fault::None));
    breaks(
        "two slots, no second head,",
        Mutant::None,
        Some(2),
        model(Fault::StaleHead),
    );
    breaks(
        "two slots, rule 2 too wide,",
        Mutant::None,
        Some(2),
        model(Fault::OlderHead(2)),
    );
}

#[test]
fn ring_of_mixed_records() {
    // The reader copies slots 1 and 2 of four while the head is 3; the record at 4 overwrites slots 0 and 1.
    let model = |fault| lap(&[1, 1, 1], &[1, 2], fault);
    holds("mixed", Some(3), model(Fault::None));
    breaks("mixed", Mutant::ReleaseFence, Some(3), model(Fault::None));
    breaks("mixed", Mutant::AcquireFence, Some(3), model(Fault::None));
    breaks(
        "mixed, rule 1 too wide,",
        Mutant::None,
        Some(3),
        model(Fault::OlderHead(1)),
    );
}

/// The same for a reader that already knows the thread and copies records into its sink's buffer.
fn lap_in_place(
    known: &'static [usize],
    before: &'static [usize],
    during: &'static [usize],
    fault: Fault,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let words = Arc::new(Words::new());
        let look = Look {
            ring: true,
            ..Look::default()
        };
        let mut reader = reader(&words, look, fault);
        push(&words, 0, known);
        let mut seen = Seen::default();
        reader.poll(Ended::No, &mut seen).unwrap();
        push(&words, known.len() as u64, before);
        let polling = thread::spawn(move || {
            let mut in_place = InPlace::new(&mut seen);
            reader.poll(Ended::No, &mut in_place).unwrap();
            KEPT.fetch_add(in_place.kept as usize, Plain::Relaxed);
            (reader, seen)
        });
        push(&words, (known.len() + before.len()) as u64, during);
        let (_, seen) = at_the_end(polling);
        let written = (known.len() + before.len() + during.len()) as u64;
        assert_eq!(seen.records.len() as u64 + seen.lost, written, "accounting");
        assert!(seen.records.is_sorted_by(|a, b| a.1 < b.1), "order");
    }
}

/// Slots that stayed where they were copied, over all models.
static KEPT: AtomicUsize = AtomicUsize::new(0);

#[test]
fn ring_read_into_the_sinks_buffer() {
    let ones = |fault| lap_in_place(&[1], &[1, 1], &[1, 1, 1], fault);
    let twos = |fault| lap_in_place(&[1], &[2], &[1, 2], fault);
    holds("in place", Some(3), ones(Fault::None));
    assert!(KEPT.load(Plain::Relaxed) > 0, "that was looked at");
    holds("in place, two slots", Some(2), twos(Fault::None));
    breaks("in place", Mutant::ReleaseFence, Some(3), ones(Fault::None));
    breaks("in place", Mutant::AcquireFence, Some(3), ones(Fault::None));
    breaks("in place", Mutant::ReleaseStore, Some(3), ones(Fault::None));
    for (name, model) in [
        ("in place, no second head,", ones(Fault::StaleHead)),
        ("in place, rule 2 too wide,", ones(Fault::OlderHead(2))),
    ] {
        breaks(name, Mutant::None, Some(3), model);
    }
    breaks(
        "in place, two slots, no second head,",
        Mutant::None,
        Some(2),
        twos(Fault::StaleHead),
    );
}

#[test]
fn entry_has_one_owner() {
    let model = || {
        let words = Arc::new(Words::new());
        let shared = words.clone();
        let other = thread::spawn(move || directory::claim(&shared.entry, 101, 1, [0; 2]));
        let mine = directory::claim(&words.entry, 102, 2, [0; 2]);
        let other = other.join().unwrap();
        let tid = words.entry[entry::TID].load(Ordering::Relaxed);
        match (mine, other) {
            (Some(1), None) => assert_eq!(tid, 102),
            (None, Some(1)) => assert_eq!(tid, 101),
            both => panic!("two owners or none: {both:?}"),
        }
    };
    holds("claim", None, model);
    breaks("claim", Mutant::CompareExchange, None, model);
}

#[test]
fn entry_continues_at_the_last_owners_head() {
    let model = || {
        let words = Arc::new(Words::new());
        assert_eq!(directory::claim(&words.entry, 101, 1, [0; 2]), Some(1));
        let shared = words.clone();
        let next = thread::spawn(move || {
            if let Some(generation) = directory::claim(&shared.entry, 102, 2, [0; 2]) {
                assert_eq!((generation, shared.ring().position()), (2, 1));
                assert_eq!(shared.entry[entry::GENERATION_START].load(Ordering::Relaxed), 1);
            }
        });
        push(&words, 0, &[1]);
        directory::release(&words.entry);
        next.join().unwrap();
    };
    holds("release", None, model);
    breaks("release", Mutant::ReleaseStore, None, model);
    breaks("release", Mutant::ClaimOrder, None, model);
}

/// An entry passes from thread 101 to thread 102 under a reader that missed the first start.
fn reuse(fault: Fault) -> impl Fn() + Send + Sync + 'static {
    move || {
        let start = |words: &Words, tid: u32, generation: u32| {
            let start = ThreadStart {
                tid,
                generation,
                ..ThreadStart::default()
            };
            words.ring().push(ThreadStart::head(0, Domain::NONE), &start.payload());
        };
        let words = Arc::new(Words::new());
        directory::claim(&words.entry, 101, 0, [0; 2]);
        start(&words, 101, 1);
        push(&words, 1, &[1, 1]);
        let look = Look {
            ring: true,
            owner: true,
            ..Look::default()
        };
        let polling = polling(&words, look, fault);
        directory::release(&words.entry);
        directory::claim(&words.entry, 102, 0, [0; 2]);
        start(&words, 102, 2);
        let (_, seen) = at_the_end(polling);
        for (tid, ordinal) in seen.records {
            let right = if ordinal < 3 { 101 } else { 102 };
            assert!(
                tid == right || tid == 0 && ordinal < 3,
                "record {ordinal} is not of thread {tid}"
            );
        }
    }
}

#[test]
fn records_belong_to_the_thread_that_wrote_them() {
    holds("reuse", Some(2), reuse(Fault::None));
    breaks("reuse", Mutant::ReleaseFence, Some(2), reuse(Fault::None));
    breaks("reuse", Mutant::AcquireFence, Some(2), reuse(Fault::None));
    breaks("reuse, one look,", Mutant::None, Some(2), reuse(Fault::StaleWord));
}

fn append(words: &Words, n: u64, slots: usize) {
    assert!(
        words
            .facts()
            .append(Head::new(KIND, 0, slots as u8, n as u8), &[payload(n); 2][..slots])
    );
}

/// A fact of two slots beside a reader.
fn fact(fault: Fault) -> impl Fn() + Send + Sync + 'static {
    move || {
        let words = Arc::new(Words::new());
        let polling = polling(
            &words,
            Look {
                facts: true,
                ..Look::default()
            },
            fault,
        );
        append(&words, 1, 2);
        let (_, seen) = at_the_end(polling);
        assert_eq!(seen.facts, [1]);
    }
}

/// Two writers of facts, then a reader.
fn two_facts() {
    let words = Arc::new(Words::new());
    let shared = words.clone();
    let other = thread::spawn(move || append(&shared, 2, 1));
    append(&words, 1, 2);
    other.join().unwrap();
    let mut seen = Seen::default();
    reader(
        &words,
        Look {
            facts: true,
            ..Look::default()
        },
        Fault::None,
    )
    .poll(Ended::Yes, &mut seen)
    .unwrap();
    seen.facts.sort_unstable();
    assert_eq!(seen.facts, [1, 2]);
}

#[test]
fn facts_are_whole_and_delivered_once() {
    holds("fact", Some(2), fact(Fault::None));
    breaks("fact", Mutant::ReleaseStore, Some(2), fact(Fault::None));
    breaks("fact", Mutant::AcquireFence, Some(2), fact(Fault::None));
    breaks("fact, one look,", Mutant::None, Some(2), fact(Fault::StaleWord));
    holds("two facts", None, two_facts);
    breaks("two facts", Mutant::FetchAdd, None, two_facts);
}

fn two_strings() -> impl Fn() + Send + Sync + 'static {
    || {
        let words = Arc::new(Words::new());
        let shared = words.clone();
        let other = thread::spawn(move || shared.strings().add(b"longer than a word"));
        let polling = polling(
            &words,
            Look {
                strings: true,
                ..Look::default()
            },
            Fault::None,
        );
        let mine = words.strings().add(b"word");
        let other = other.join().unwrap();
        let (_, mut seen) = at_the_end(polling);
        let mut right = [(mine, b"word".to_vec()), (other, b"longer than a word".to_vec())];
        right.sort();
        seen.strings.sort();
        assert_eq!(seen.strings, right);
    }
}

#[test]
fn strings_are_whole_and_delivered_once() {
    holds("strings", Some(2), two_strings());
    breaks("strings", Mutant::ReleaseStore, Some(2), two_strings());
    breaks("strings", Mutant::AcquireFence, Some(2), two_strings());
    breaks("strings", Mutant::FetchAdd, Some(2), two_strings());
}

fn samples(fault: Fault) -> impl Fn() + Send + Sync + 'static {
    move || {
        let words = Arc::new(Words::new());
        let write = |number: u64| directory::write_sample(&words.samples, number, &[mark(number); clock::WORDS]);
        write(0);
        let polling = polling(
            &words,
            Look {
                clock: true,
                ..Look::default()
            },
            fault,
        );
        write(1);
        let (_, seen) = at_the_end(polling);
        assert!((1..=2).contains(&seen.samples));
    }
}

#[test]
fn calibration_samples_are_whole() {
    holds("samples", Some(2), samples(Fault::None));
    breaks("samples", Mutant::ReleaseFence, Some(2), samples(Fault::None));
    breaks("samples", Mutant::AcquireFence, Some(2), samples(Fault::None));
    breaks("samples", Mutant::ReleaseStore, Some(2), samples(Fault::None));
    breaks("samples, one look,", Mutant::None, Some(2), samples(Fault::StaleWord));
}
