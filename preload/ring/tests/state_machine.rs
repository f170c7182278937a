//! Random sequences of operations of threads and readers, against a model that remembers everything.
//!
//! Two readers read one file: one polls when the operations say so, the other comes late. Both must account for every
//! record of every ring, in order, word for word, and attribute each to the thread that wrote it.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod in_place;

use in_place::InPlace;
use proptest::prelude::*;
use roctop_ring::layout::{Header, Spec, clock};
use roctop_ring::map::{Claim, RingFile};
use roctop_ring::reader::{Ended, Reader, Sink, Thread};
use roctop_ring::record::{ApiCall, Copy, Dispatch, Domain, Head, Marker, PAYLOAD_WORDS, Slot, ThreadStart};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

const RINGS: [u64; 3] = [16, 64, 256];
const FACTS: usize = 64;
const STRINGS: usize = 24;
const TEXT_WORDS: usize = 64;

#[derive(Clone, Debug)]
enum Op {
    /// `count` records of random kinds by the thread at a directory index.
    Write {
        at: usize,
        count: usize,
        seed: u64,
    },
    /// More than the ring holds.
    Lap {
        at: usize,
        seed: u64,
    },
    Start {
        at: usize,
    },
    End {
        at: usize,
    },
    Call {
        at: usize,
        op: u16,
        ticks: u32,
    },
    Fact {
        seed: u64,
    },
    Text {
        length: usize,
    },
    Calibrate,
    Poll,
}

/// HIP's operations below this number have a total; later ones have none.
const HIP_TOTALS: u16 = 544;

fn op() -> impl Strategy<Value = Op> {
    let at = 0..RINGS.len();
    prop_oneof![
        6 => (at.clone(), 0..40usize, any::<u64>()).prop_map(|(at, count, seed)| Op::Write { at, count, seed }),
        1 => (at.clone(), any::<u64>()).prop_map(|(at, seed)| Op::Lap { at, seed }),
        3 => at.clone().prop_map(|at| Op::Start { at }),
        2 => at.clone().prop_map(|at| Op::End { at }),
        2 => (at, 0..600u16, any::<u32>()).prop_map(|(at, op, ticks)| Op::Call { at, op, ticks }),
        2 => any::<u64>().prop_map(|seed| Op::Fact { seed }),
        2 => prop_oneof![0..60usize, Just(10_000)].prop_map(|length| Op::Text { length }),
        1 => Just(Op::Calibrate),
        4 => Just(Op::Poll),
    ]
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 27
}

/// An expected record: thread, kind, payload.
#[derive(Clone, Debug, PartialEq)]
struct Written {
    tid: u32,
    head: u32,
    payload: Vec<[u64; PAYLOAD_WORDS]>,
}

#[derive(Default)]
struct Model {
    rings: [Vec<Written>; RINGS.len()],
    facts: Vec<Written>,
    facts_used: usize,
    strings: Vec<Vec<u8>>,
    text_words: usize,
    samples: u64,
    totals: BTreeMap<u16, (u64, u64)>,
}

/// What a reader received, checked against the model at the end.
#[derive(Default)]
struct Seen {
    /// Ordinal, thread and content of each record, by ring.
    rings: [Vec<(u64, Written)>; RINGS.len()],
    next: [u64; RINGS.len()],
    /// Losses by thread: tid, first ordinal, count.
    losses: [Vec<(u32, u64, u64)>; RINGS.len()],
    facts: Vec<Written>,
    strings: BTreeMap<u32, Vec<u8>>,
    samples: Vec<u64>,
    polls: usize,
}

fn written(tid: u32, slots: &[Slot]) -> Written {
    let payload = slots.iter().map(|slot| *slot[1..].first_chunk().unwrap()).collect();
    Written {
        tid,
        head: slots[0][0] as u32,
        payload,
    }
}

impl Sink for Seen {
    fn string(&mut self, id: u32, text: &[u8]) {
        assert!(self.strings.insert(id, text.to_vec()).is_none(), "a string came twice");
    }
    fn fact(&mut self, slots: &[Slot]) {
        self.facts.push(written(0, slots));
    }
    fn calibration(&mut self, sample: &[u64; clock::WORDS]) {
        assert!(sample[1..].iter().all(|word| *word == sample[1]));
        self.samples.push(sample[1]);
    }
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        let at = thread.index as usize;
        assert_eq!(Head(slots[0][0]).ordinal(), self.next[at] as u32, "order");
        self.rings[at].push((self.next[at], written(thread.tid, slots)));
        self.next[at] += 1;
    }
    fn lost(&mut self, thread: Thread, records: u64) {
        let at = thread.index as usize;
        self.losses[at].push((thread.tid, self.next[at], records));
        self.next[at] += records;
    }
}

fn record(seed: &mut u64) -> (Head, Vec<[u64; PAYLOAD_WORDS]>) {
    let word = random(seed);
    let flags = random(seed) as u8;
    match word % 5 {
        0 => {
            let call = ApiCall {
                start: word,
                end: random(seed),
                op: word as u16,
                status: -1,
                ..ApiCall::default()
            };
            (ApiCall::head(flags, Domain::HIP), call.payload().to_vec())
        }
        1 => {
            let dispatch = Dispatch {
                begin: word,
                name: random(seed) as u32,
                ..Dispatch::default()
            };
            (Dispatch::head(flags, Domain::NONE), dispatch.payload().to_vec())
        }
        2 => (
            Copy::head(flags, Domain::NONE),
            Copy {
                bytes: word,
                ..Copy::default()
            }
            .payload()
            .to_vec(),
        ),
        3 => {
            let text: Vec<u8> = (0..word % 140).map(|n| (n ^ word) as u8).collect();
            let used = Marker::slots(text.len().min(Marker::INLINE_TEXT));
            let payload = Marker::payload([word, random(seed)], 1, 2, 3, 4, &text);
            (Head::new(Marker::RANGE, flags, used as u8, 7), payload[..used].to_vec())
        }
        // An unknown future kind, of any size.
        _ => {
            let used = 1 + random(seed) % 8;
            let payload = (0..used).map(|_| std::array::from_fn(|_| random(seed))).collect();
            (Head::new(250, flags, used as u8, 9), payload)
        }
    }
}

struct Machine<'m> {
    ring: &'m RingFile,
    owners: [Option<(u32, Claim<'m>)>; RINGS.len()],
    model: Model,
    next_tid: u32,
}

impl Machine<'_> {
    fn push(&mut self, at: usize, head: Head, payload: &[[u64; PAYLOAD_WORDS]]) {
        if let Some((tid, claim)) = &self.owners[at] {
            claim.ring.push(head, payload);
            let payload = payload.to_vec();
            self.model.rings[at].push(Written {
                tid: *tid,
                head: head.0 as u32,
                payload,
            });
        }
    }

    fn start(&mut self, at: usize) {
        if self.owners[at].is_some() {
            assert!(self.ring.claim(at, 1, 1, [0; 2]).is_none(), "a live entry was claimed");
            return;
        }
        self.next_tid += 1;
        let claim = self.ring.claim(at, self.next_tid, 1, [0; 2]).unwrap();
        let start = ThreadStart {
            tid: self.next_tid,
            generation: claim.generation,
            ..ThreadStart::default()
        };
        self.owners[at] = Some((self.next_tid, claim));
        self.push(at, ThreadStart::head(0, Domain::NONE), &start.payload());
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Write { at, count, mut seed } => {
                for _ in 0..count {
                    let (head, payload) = record(&mut seed);
                    self.push(at, head, &payload);
                }
            }
            Op::Lap { at, seed } => {
                let count = RINGS[at] as usize + (seed % 300) as usize;
                self.step(&Op::Write { at, count, seed });
            }
            Op::Start { at } => self.start(at),
            Op::End { at } => {
                if self.owners[at].take().is_some() {
                    self.ring.release(at);
                }
            }
            Op::Call { at, op, ticks } => {
                if let Some((_, claim)) = &self.owners[at] {
                    claim.entry.open_call(1, Domain::HIP, op, 1);
                    claim.entry.close_call(Domain::HIP, op, u64::from(ticks));
                    if op < HIP_TOTALS {
                        let total = self.model.totals.entry(op).or_default();
                        *total = (total.0 + 1, total.1 + u64::from(ticks));
                    }
                }
            }
            Op::Fact { mut seed } => {
                let (head, payload) = record(&mut seed);
                let fits = self.model.facts_used + payload.len() <= FACTS;
                assert_eq!(self.ring.facts().unwrap().append(head, &payload), fits);
                // A fact without space uses up its numbers too.
                self.model.facts_used += payload.len();
                if fits {
                    self.model.facts.push(Written {
                        tid: 0,
                        head: head.0 as u32,
                        payload,
                    });
                }
            }
            Op::Text { length } => {
                let text: Vec<u8> = (0..length).map(|n| (n * 7 + self.model.strings.len()) as u8).collect();
                let words = length.div_ceil(8).max(1);
                let fits = self.model.text_words + words <= TEXT_WORDS && self.model.strings.len() + 1 < STRINGS;
                self.model.text_words += words;
                let id = self.ring.strings().unwrap().add(&text);
                if fits {
                    self.model.strings.push(text);
                    assert_eq!(id as usize, self.model.strings.len());
                } else {
                    assert_eq!(id, 0);
                }
            }
            Op::Calibrate => {
                self.ring.calibrate([self.model.samples; clock::WORDS]);
                self.model.samples += 1;
            }
            Op::Poll => {}
        }
    }
}

fn check(model: &Model, reader: &Reader<File>, seen: &Seen, late: bool) {
    for (at, all) in model.rings.iter().enumerate() {
        assert_eq!(seen.next[at], all.len() as u64, "seen and lost of ring {at}");
        for (ordinal, got) in &seen.rings[at] {
            let right = &all[*ordinal as usize];
            assert_eq!((got.head, &got.payload), (right.head, &right.payload));
            // A reader that missed two changes of owner may report an unknown thread, but never a wrong one.
            let unknown = got.tid == 0 && seen.losses[at].iter().any(|loss| loss.1 <= *ordinal);
            assert!(
                got.tid == right.tid || unknown,
                "record {ordinal} of {} was given to {}",
                right.tid,
                got.tid
            );
        }
        if let (Some((_, got)), Some(right)) = (seen.rings[at].last(), all.last())
            && late
        {
            assert_eq!(got.tid, right.tid, "the present owner is always known");
        }
        for (tid, first, count) in &seen.losses[at] {
            let lost = &all[*first as usize..(first + count) as usize];
            assert!(
                *tid == 0 || lost.iter().all(|record| record.tid == *tid),
                "loss given to {tid}"
            );
        }
    }
    for (thread, account) in reader.accounts() {
        let all = model.rings[thread.index as usize].len() as u64;
        assert_eq!((account.written, account.seen + account.lost), (all, all));
    }
    assert_eq!(seen.facts, model.facts);
    assert!(
        seen.strings.iter().map(|(id, text)| (*id as usize, text)).eq(model
            .strings
            .iter()
            .enumerate()
            .map(|(n, text)| (n + 1, text)))
    );
    // The first sample is kept, and the newest of the others.
    assert_eq!(seen.samples.is_empty(), model.samples == 0);
    assert!(model.samples == 0 || seen.samples.contains(&0) && seen.samples.contains(&(model.samples - 1)));
    let totals: BTreeMap<u16, (u64, u64)> = reader
        .totals()
        .unwrap()
        .iter()
        .map(|total| (total.op, (total.calls, total.ticks)))
        .collect();
    assert_eq!(totals, model.totals);
}

struct Directory(PathBuf);
impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(ops: &[Op]) {
    let dir = Directory(PathBuf::from(format!("/dev/shm/roctop-machine-{}", std::process::id())));
    let _ = std::fs::create_dir(&dir.0);
    let spec = Spec {
        ordinal: 0,
        rings: RINGS.to_vec(),
        facts: FACTS as u64,
        strings: STRINGS as u64,
        string_bytes: TEXT_WORDS as u64 * 8,
    };
    let ring = RingFile::create(&dir.0, "1-1.ring", &spec, Header::default()).unwrap();
    let mut machine = Machine {
        ring: &ring,
        owners: [const { None }; RINGS.len()],
        model: Model::default(),
        next_tid: 100,
    };
    let mut reader = Reader::open(File::open(ring.path()).unwrap()).unwrap();
    let mut seen = Seen::default();
    for op in ops {
        machine.step(op);
        if matches!(op, Op::Poll) {
            seen.polls += 1;
            let progress = if seen.polls % 2 == 0 {
                reader.poll(Ended::No, &mut InPlace::new(&mut seen))
            } else {
                reader.poll(Ended::No, &mut seen)
            };
            assert!(!progress.unwrap().more);
            // A poll leaves nothing behind when the writers are idle.
            for (at, all) in machine.model.rings.iter().enumerate() {
                assert_eq!(seen.next[at], all.len() as u64);
            }
        }
    }
    reader.poll(Ended::Yes, &mut seen).unwrap();
    check(&machine.model, &reader, &seen, false);
    let mut late = Reader::open(File::open(ring.path()).unwrap()).unwrap();
    let mut seen = Seen::default();
    late.poll(Ended::Yes, &mut InPlace::new(&mut seen)).unwrap();
    check(&machine.model, &late, &seen, true);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_record_is_accounted_for(ops in proptest::collection::vec(op(), 1..80)) {
        run(&ops);
    }
}
