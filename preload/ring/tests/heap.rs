//! Writers and a reader as threads of one process, on heap words: a test that Miri can run.
//!
//! `cargo +nightly miri test -p roctop-ring --test heap`. Miri simulates weak memory, so it also finds missing
//! orderings that x86-64 provides for free.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use roctop_ring::directory;
use roctop_ring::layout::{Header, MAJOR, PAGE, Region, Spec, clock, counter, entry};
use roctop_ring::reader::{Bytes, Ended, Reader, Sink, Thread};
use roctop_ring::record::{Domain, Head, PAYLOAD_WORDS, SLOT_WORDS, Slot, TOTALS, ThreadStart};
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::{EntryWriter, RingWriter, StringWriter};
use std::io;
use std::sync::atomic::AtomicUsize;

const WRITERS: usize = 2;
const SLOTS: u64 = 16;
const KIND: u8 = 200;
const RECORDS: u64 = if cfg!(miri) { 60 } else { 300_000 };

/// A file's words, read as by `pread`: in no defined order.
struct Heap(Vec<AtomicU64>);

impl Heap {
    fn new() -> (Self, Header) {
        let spec = Spec {
            ordinal: 0,
            rings: vec![SLOTS; WRITERS],
            facts: 0,
            strings: 64,
            string_bytes: 1024,
        };
        let (regions, size) = spec.regions();
        let header = Header {
            major: MAJOR,
            size,
            regions,
            ..Header::default()
        };
        let words: Vec<AtomicU64> = (0..size / 8).map(|_| AtomicU64::new(0)).collect();
        for (word, bytes) in words.iter().zip(header.encode()[..PAGE].as_chunks::<8>().0) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        (Self(words), header)
    }

    fn at(&self, offset: u64, words: usize) -> &[AtomicU64] {
        &self.0[offset as usize / 8..][..words]
    }

    fn entry(&self, header: &Header, index: usize) -> &[AtomicU64] {
        let offset = header.region(Region::Directory).offset + (index * entry::WORDS * 8) as u64;
        self.at(offset, entry::WORDS)
    }

    /// One life of a thread: its start and `RECORDS` records.
    fn write(&self, header: &Header, index: usize) {
        let words = self.entry(header, index);
        let generation = directory::claim(words, 100 + index as u32, 1, [0; 2]).unwrap();
        let slots = self.at(
            words[entry::RING_OFFSET].load(Ordering::Relaxed),
            SLOTS as usize * SLOT_WORDS,
        );
        let ring = RingWriter::new(slots, &words[entry::HEAD], &words[entry::RECORDS]).unwrap();
        let totals = header.region(Region::Totals).offset + (index * 2 * TOTALS * 8) as u64;
        let calls = EntryWriter::new(words, self.at(totals, 2 * TOTALS)).unwrap();
        let start = ThreadStart {
            tid: 100 + index as u32,
            generation,
            ..ThreadStart::default()
        };
        ring.push(ThreadStart::head(0, Domain::NONE), &start.payload());
        for ordinal in 1..=RECORDS {
            let used = used(ordinal);
            let (head, payload) = (Head::new(KIND, 0, used as u8, 0), payload(index as u64, ordinal));
            if used == 1 {
                calls.open_outermost_call(ordinal, u64::from(Domain::HIP.0) << 16 | 3, ordinal);
                ring.push_slot(head, payload[0]);
                calls.close_outermost_call(3, 1);
            } else {
                calls.open_call(ordinal, Domain::HIP, 3, ordinal);
                ring.push(head, &payload[..used]);
                calls.close_call(Domain::HIP, 3, 1);
            }
            if ordinal % 8 == 0 {
                std::thread::yield_now();
            }
            if ordinal % 16 == 0 && ordinal < 160 {
                self.strings(header).add(&[index as u8; 11]);
            }
        }
        directory::release(words);
    }

    fn strings(&self, header: &Header) -> StringWriter<'_> {
        let words = |kind: Region| {
            let extent = header.region(kind);
            self.at(extent.offset, extent.length as usize / 8)
        };
        let counters = words(Region::Counters);
        StringWriter::new(
            words(Region::StringIndex),
            words(Region::StringBytes),
            &counters[counter::STRINGS],
            &counters[counter::STRING_WORDS],
            &counters[counter::STRINGS_FULL],
        )
    }
}

impl Bytes for &Heap {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = (offset as usize).min(self.0.len() * 8);
        let count = into.len().min(self.0.len() * 8 - from);
        let mut at = 0;
        while at < count {
            let (word, skip) = ((from + at) / 8, (from + at) % 8);
            let bytes = self.0[word].load(Ordering::Relaxed).to_le_bytes();
            let some = (8 - skip).min(count - at);
            into[at..at + some].copy_from_slice(&bytes[skip..skip + some]);
            at += some;
        }
        Ok(count)
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64 * 8)
    }
}

fn used(ordinal: u64) -> usize {
    [1, 2, 3, 1][ordinal as usize % 4]
}

fn payload(ring: u64, ordinal: u64) -> [[u64; PAYLOAD_WORDS]; 3] {
    let word = |place: u64| (ring << 56 ^ ordinal << 8 ^ place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    std::array::from_fn(|i| std::array::from_fn(|j| word((i * PAYLOAD_WORDS + j) as u64)))
}

#[derive(Default)]
struct Check {
    next: [u64; WRITERS],
    seen: u64,
    strings: u64,
}

impl Sink for Check {
    fn string(&mut self, _: u32, text: &[u8]) {
        assert!(
            text.len() == 11 && text.iter().all(|byte| *byte == text[0]),
            "torn text"
        );
        self.strings += 1;
    }
    fn fact(&mut self, _: &[Slot]) {}
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {}
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        let ordinal = self.next[thread.index as usize];
        if ordinal > 0 {
            assert_eq!(slots.len(), used(ordinal));
            for (slot, words) in slots.iter().zip(payload(u64::from(thread.index), ordinal)) {
                assert_eq!(slot[1..=PAYLOAD_WORDS], words, "torn record {ordinal}");
            }
        }
        self.next[thread.index as usize] += 1;
        self.seen += 1;
    }
    fn lost(&mut self, thread: Thread, records: u64) {
        self.next[thread.index as usize] += records;
    }
}

#[test]
fn threads_read_no_torn_record() {
    let (heap, header) = Heap::new();
    for index in 0..WRITERS {
        let words = heap.entry(&header, index);
        let offset = header.region(Region::Rings).offset + index as u64 * SLOTS * 64;
        words[entry::RING_OFFSET].store(offset, Ordering::Relaxed);
        words[entry::RING_SLOTS].store(SLOTS, Ordering::Relaxed);
    }
    let done = AtomicUsize::new(0);
    let mut check = Check::default();
    let mut reader = Reader::open(&heap).unwrap();
    std::thread::scope(|scope| {
        for index in 0..WRITERS {
            let (heap, header, done) = (&heap, &header, &done);
            scope.spawn(move || {
                heap.write(header, index);
                done.fetch_add(1, Ordering::Release);
            });
        }
        while done.load(Ordering::Acquire) < WRITERS {
            reader.poll(Ended::No, &mut check).unwrap();
            std::thread::yield_now();
        }
    });
    while reader.poll(Ended::Yes, &mut check).unwrap().more {}
    for (thread, account) in reader.accounts() {
        assert_eq!(
            (account.seen + account.lost, account.written),
            (RECORDS + 1, RECORDS + 1)
        );
        assert_eq!(check.next[thread.index as usize], RECORDS + 1);
    }
    assert!(check.seen > 0 && check.strings > 0);
    println!("{} accepted of {}", check.seen, WRITERS as u64 * (RECORDS + 1));
}
