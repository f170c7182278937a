//! Corrupt and hostile files: the reader may report anything, but it must not panic, allocate by their sizes, or read
//! without end.
//!
//! Bounds are counted, not timed: bytes read, calls of the sink, the largest allocation.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod in_place;
#[path = "../fuzz/input.rs"]
mod input;

use in_place::InPlace;
use input::intact;
use proptest::prelude::*;
use roctop_ring::layout::{Extent, Header, MAJOR, PAGE, REGIONS, Region, clock, entry};
use roctop_ring::reader::{Bytes, Ended, POLL_SLOTS, Reader, Sink, Thread};
use roctop_ring::record::{Head, Slot, decode};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Size of the largest allocation so far.
struct Watch;
static LARGEST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static WATCH: Watch = Watch;

#[expect(unsafe_code, reason = "an allocator that looks at sizes")]
// SAFETY: every call is forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller guarantees the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees the same.
        unsafe { System.dealloc(at, layout) }
    }
}

const MAX_ALLOCATION: usize = 64 << 20;

#[derive(Default)]
struct Count {
    calls: u64,
}
impl Sink for Count {
    fn string(&mut self, _: u32, _: &[u8]) {
        self.calls += 1;
    }
    fn fact(&mut self, slots: &[Slot]) {
        let _ = decode(slots);
        self.calls += 1;
    }
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {
        self.calls += 1;
    }
    fn record(&mut self, _: Thread, slots: &[Slot]) {
        let _ = decode(slots);
        self.calls += 1;
    }
    fn lost(&mut self, _: Thread, _: u64) {
        self.calls += 1;
    }
}

/// Bytes that count what is read.
struct Counted<B> {
    bytes: B,
    read: Cell<u64>,
    reads: Cell<u64>,
}
impl<B> Counted<B> {
    fn new(bytes: B) -> Self {
        Self {
            bytes,
            read: Cell::new(0),
            reads: Cell::new(0),
        }
    }
}
impl<B: Bytes> Bytes for Counted<B> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        self.read.set(self.read.get() + into.len() as u64);
        self.reads.set(self.reads.get() + 1);
        self.bytes.read_at(offset, into)
    }
    fn size(&self) -> std::io::Result<u64> {
        self.bytes.size()
    }
}

/// Does everything that a viewer does with a file.
fn look(bytes: impl Bytes, most: u64) -> u64 {
    let Ok(mut reader) = Reader::open(Counted::new(bytes)) else {
        return 0;
    };
    let mut count = Count::default();
    let _ = reader.poll(Ended::No, &mut count);
    for ended in [Ended::No, Ended::Yes] {
        let _ = reader.poll(ended, &mut InPlace::new(&mut count));
    }
    let _ = reader.fill();
    let _ = reader.accounts();
    let _ = reader.counters();
    let _ = reader.open_work();
    let _ = reader.totals();
    assert!(
        reader.bytes().read.get() <= most,
        "{} bytes read",
        reader.bytes().read.get()
    );
    assert!(
        LARGEST.load(Ordering::Relaxed) <= MAX_ALLOCATION,
        "{} bytes at once",
        LARGEST.load(Ordering::Relaxed)
    );
    count.calls
}

/// Maximum bytes to read from a file of that size: all of it a few times, plus heads and owners.
fn bound(size: usize) -> u64 {
    16 * size as u64 + (4 << 20)
}

#[test]
fn intact_file_is_read_completely() {
    let file = intact();
    let mut reader = Reader::open(file).unwrap();
    let mut count = Count::default();
    let mut in_place = InPlace::new(&mut count);
    let progress = reader.poll(Ended::Yes, &mut in_place).unwrap();
    assert!(progress.records > 60 && !progress.more);
    assert!(
        reader
            .accounts()
            .iter()
            .all(|(_, a)| a.seen + a.lost == a.written && a.written > 0)
    );
    assert_eq!(reader.open_work().unwrap().calls.len(), 4);
}

#[test]
fn any_flipped_byte_is_survived() {
    let intact = intact();
    let header = Header::decode(&intact, intact.len() as u64).unwrap();
    let mut places: Vec<usize> = (0..PAGE).collect();
    // Every non-zero byte of the intact file, in every region, and the words of the directory.
    places.extend((PAGE..intact.len()).filter(|at| intact[*at] != 0));
    let directory = header.region(Region::Directory).offset as usize;
    places.extend(directory..directory + 36 * 8);
    let mut file = intact;
    for at in places {
        for flip in [0x01, 0x80, 0xff] {
            file[at] ^= flip;
            look(Borrowed(&file), bound(file.len()));
            file[at] ^= flip;
        }
    }
}

/// A file that is read without copying it.
struct Borrowed<'f>(&'f [u8]);
impl Bytes for Borrowed<'_> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// A file that is truncated after its size was read.
struct Cut<'f>(&'f [u8], u64);
impl Bytes for Cut<'_> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        Borrowed(self.0).read_at(offset, into)
    }
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.1)
    }
}

#[test]
fn truncated_file_is_survived() {
    let file = intact();
    let lengths = (0..file.len())
        .step_by(61)
        .chain((0..=file.len()).rev().step_by(PAGE))
        .chain(0..130);
    for length in lengths {
        look(Borrowed(&file[..length]), bound(file.len()));
        look(Cut(&file[..length], file.len() as u64), bound(file.len()));
    }
}

/// Sixteen GiB computed by a rule, without memory.
struct Rule<F>(Vec<u8>, F);
impl<F: Fn(u64) -> u64> Bytes for Rule<F> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        for (i, to) in into.chunks_mut(8).enumerate() {
            let at = offset + i as u64 * 8;
            let word = self
                .0
                .get(at as usize..at as usize + 8)
                .map_or_else(|| (self.1)(at), |page| u64::from_le_bytes(page.try_into().unwrap()));
            to.copy_from_slice(&word.to_le_bytes()[..to.len()]);
        }
        Ok(into.len())
    }
    fn size(&self) -> std::io::Result<u64> {
        Ok(roctop_ring::layout::MAX_FILE)
    }
}

fn page(regions: [Extent; REGIONS], size: u64) -> Vec<u8> {
    Header {
        major: MAJOR,
        size,
        regions,
        ..Header::default()
    }
    .encode()
}

#[test]
fn runaway_heads_are_read_in_bounded_polls() {
    const ENTRIES: u64 = 4096;
    let size = roctop_ring::layout::MAX_FILE;
    let mut regions = [Extent::default(); REGIONS];
    let directory = Extent {
        offset: PAGE as u64,
        length: ENTRIES * entry::WORDS as u64 * 8,
    };
    let rings = directory.offset + directory.length;
    regions[Region::Directory as usize] = directory;
    regions[Region::Rings as usize] = Extent {
        offset: rings,
        length: size - rings,
    };
    let poll = Cell::new(0u64);
    // All entries claim the whole region; each read advances the heads by 2^40 slots.
    let bytes = Rule(page(regions, size), |at| {
        if !(directory.offset..rings).contains(&at) {
            return 0;
        }
        match (at - directory.offset) as usize / 8 % entry::WORDS {
            entry::STATE => 1 << 32 | entry::LIVE,
            entry::RING_OFFSET => rings,
            entry::RING_SLOTS => 1 << 27,
            entry::HEAD => {
                poll.set(poll.get() + 1);
                poll.get() << 40
            }
            _ => 0,
        }
    });
    let mut reader = Reader::open(Counted::new(bytes)).unwrap();
    for _ in 0..2 {
        let before = reader.bytes().read.get();
        let progress = reader.poll(Ended::No, &mut Count::default()).unwrap();
        let read = reader.bytes().read.get() - before;
        assert!(read < (POLL_SLOTS + 8192) * 64 + (32 << 20), "{read} bytes in one poll");
        assert!(progress.more);
    }
    assert!(LARGEST.load(Ordering::Relaxed) <= MAX_ALLOCATION);
}

/// A file in which one word alternates.
struct Moving<'f>(&'f [u8], u64, &'f Cell<u64>);
impl Bytes for Moving<'_> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let count = Borrowed(self.0).read_at(offset, into)?;
        if offset <= self.1 && self.1 + 8 <= offset + count as u64 {
            self.2.set(self.2.get() + 1);
            let place = (self.1 - offset) as usize;
            let head = [5u64, 60, 3, u64::MAX, 0, 1 << 61, 61, 2][self.2.get() as usize % 8];
            into[place..place + 8].copy_from_slice(&head.to_le_bytes());
        }
        Ok(count)
    }
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

#[test]
fn absurd_and_backward_heads_are_survived() {
    let intact = intact();
    let header = Header::decode(&intact, intact.len() as u64).unwrap();
    let directory = header.region(Region::Directory).offset as usize;
    for ring in 0..2 {
        for head in [
            0,
            1,
            1 << 20,
            1 << 40,
            (1 << 62) - 1,
            1 << 62,
            1 << 63,
            u64::MAX - 7,
            u64::MAX - 1,
            u64::MAX,
        ] {
            for records in [0, 5, 1 << 31, u64::MAX] {
                let mut file = intact.clone();
                let mut set = |word: usize, value: u64| {
                    let at = directory + (ring * entry::WORDS + word) * 8;
                    file[at..at + 8].copy_from_slice(&value.to_le_bytes());
                };
                set(entry::HEAD, head);
                set(entry::RECORDS, records);
                look(Borrowed(&file), bound(file.len()));
            }
        }
    }
    // A head that alternates under one reader.
    let back = Cell::new(0u64);
    let at = directory as u64 + entry::HEAD as u64 * 8;
    let mut reader = Reader::open(Moving(&intact, at, &back)).unwrap();
    for _ in 0..50 {
        reader.poll(Ended::No, &mut Count::default()).unwrap();
    }
}

#[test]
fn endless_texts_and_facts_are_read_in_bounded_polls() {
    let size = roctop_ring::layout::MAX_FILE;
    let gib = 1u64 << 30;
    let mut regions = [Extent::default(); REGIONS];
    let mut at = PAGE as u64;
    for (kind, length) in [
        (Region::Counters, 1024),
        (Region::Facts, 4 * gib),
        (Region::StringIndex, gib),
        (Region::StringBytes, gib),
    ] {
        regions[kind as usize] = Extent { offset: at, length };
        at += length;
    }
    let counters = regions[Region::Counters as usize];
    let index = regions[Region::StringIndex as usize];
    let bytes = Rule(page(regions, size), |at| {
        if (counters.offset..counters.offset + counters.length).contains(&at) {
            u64::MAX
        } else if (index.offset..index.offset + index.length).contains(&at) {
            // All texts are the same 16 KiB.
            (1 << 63) | (16 * 1024)
        } else {
            0
        }
    });
    let mut reader = Reader::open(Counted::new(bytes)).unwrap();
    for _ in 0..2 {
        let before = reader.bytes().read.get();
        assert!(reader.poll(Ended::No, &mut Count::default()).unwrap().more);
        assert!(reader.bytes().read.get() - before < 128 << 20);
    }
    assert!(LARGEST.load(Ordering::Relaxed) <= MAX_ALLOCATION);
}

#[test]
fn overlapping_texts_are_bounded() {
    struct Texts(u64);
    impl Sink for Texts {
        fn string(&mut self, _: u32, text: &[u8]) {
            self.0 += text.len() as u64;
        }
        fn fact(&mut self, _: &[Slot]) {}
        fn calibration(&mut self, _: &[u64; clock::WORDS]) {}
        fn record(&mut self, _: Thread, _: &[Slot]) {}
        fn lost(&mut self, _: Thread, _: u64) {}
    }
    let (strings, room) = (20_000u64, 1u64 << 20);
    let mut regions = [Extent::default(); REGIONS];
    let index = 2 * PAGE as u64;
    regions[Region::Counters as usize] = Extent {
        offset: PAGE as u64,
        length: PAGE as u64,
    };
    regions[Region::StringIndex as usize] = Extent {
        offset: index,
        length: strings * 8,
    };
    regions[Region::StringBytes as usize] = Extent {
        offset: index + strings * 8,
        length: room,
    };
    let bytes = Rule(page(regions, roctop_ring::layout::MAX_FILE), |at| {
        if at < index { strings } else { (1 << 63) | (16 * 1024) }
    });
    let mut reader = Reader::open(bytes).unwrap();
    let mut texts = Texts(0);
    while reader.poll(Ended::No, &mut texts).unwrap().more {}
    assert_eq!(texts.0, room);
}

#[test]
fn losses_at_every_record_are_bounded() {
    // Every slot of a large ring is a record that skips one ordinal.
    let (slots, mut regions) = (1u64 << 22, [Extent::default(); REGIONS]);
    let rings = 2 * PAGE as u64;
    regions[Region::Directory as usize] = Extent {
        offset: PAGE as u64,
        length: PAGE as u64,
    };
    regions[Region::Rings as usize] = Extent {
        offset: rings,
        length: slots * 64,
    };
    let bytes = Rule(page(regions, roctop_ring::layout::MAX_FILE), |at| {
        if at < rings {
            return match (at as usize - PAGE) / 8 {
                entry::RING_OFFSET => rings,
                entry::RING_SLOTS => slots,
                entry::STATE => 1 << 32 | entry::LIVE,
                entry::HEAD => slots - 8,
                _ => 0,
            };
        }
        let slot = (at - rings) / 64;
        match (at - rings) / 8 % 8 {
            0 => Head::new(200, 0, 1, 0).with_ordinal(2 * slot + 1).0,
            7 => slot + 1,
            _ => 0,
        }
    });
    let mut reader = Reader::open(Counted::new(bytes)).unwrap();
    let progress = reader.poll(Ended::No, &mut Count::default()).unwrap();
    assert!(
        progress.more && reader.bytes().reads.get() < 500_000,
        "{} reads",
        reader.bytes().reads.get()
    );
}

fn extent() -> impl Strategy<Value = Extent> {
    let number = prop_oneof![
        0..64u64 * 1024,
        any::<u64>(),
        Just(0),
        (0..16u64).prop_map(|n| n * PAGE as u64)
    ];
    (number.clone(), number).prop_map(|(offset, length)| Extent { offset, length })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_region_table_is_survived(extents in proptest::collection::vec(extent(), REGIONS), sorted: bool) {
        let mut regions = [Extent::default(); REGIONS];
        let mut end = PAGE as u64;
        for (to, from) in regions.iter_mut().zip(extents) {
            *to = from;
            if sorted {
                *to = Extent { offset: end, length: (from.length % (16 * PAGE as u64)) & !7 };
                end += to.length;
            }
        }
        let mut file = vec![0xa5; 256 * 1024];
        file[..PAGE].copy_from_slice(&page(regions, 256 * 1024));
        look(Borrowed(&file), bound(file.len()));
        file[PAGE..].fill(0);
        look(Borrowed(&file), bound(file.len()));
    }

    #[test]
    fn random_words_are_survived(seed: u64, small: bool, keep: bool) {
        let mut file = intact();
        let header = Header::decode(&file, file.len() as u64).unwrap();
        let directory = header.region(Region::Directory).offset;
        let mut random = seed | 1;
        for at in (PAGE..file.len()).step_by(8) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // The words with the ring offsets may stay, so that the rings are read.
            let word = (at as u64).wrapping_sub(directory) / 8 % entry::WORDS as u64;
            if keep && [entry::RING_OFFSET, entry::RING_SLOTS, entry::STATE, entry::HEAD].contains(&(word as usize)) {
                continue;
            }
            let value = if small { random % 512 } else { random };
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        look(Borrowed(&file), bound(file.len()));
    }
}

/// Inputs that the fuzzer found worth keeping; see `fuzz/`.
#[test]
fn fuzzer_corpus_is_survived() {
    for kind in ["ring", "flight", "sites"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fuzz/corpus")
            .join(kind);
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let kept = std::fs::read(entry.unwrap().path()).unwrap();
            if kind == "ring" {
                let file = input::ring(&kept);
                let most = bound(file.len());
                look(file, most);
            } else if kind == "sites" {
                if let Ok(mut reader) = roctop_ring::sites::Reader::of(input::stacks(&kept)) {
                    reader.give_up_unfinished();
                    assert!(reader.by_ref().count() <= 4096);
                }
            } else {
                let file = input::flying(&kept);
                let most = file.len();
                assert!(roctop_ring::flight::read(&file).is_ok_and(|left| left.len() <= most) || most < 1 << 20);
            }
            count += 1;
        }
        assert!(count > 0, "no inputs for {kind}");
    }
}
