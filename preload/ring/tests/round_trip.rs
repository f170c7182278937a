//! A ring file written and read by the real code, on the machine's tmpfs.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod in_place;

use in_place::InPlace;
use roctop_ring::layout::{Extent, Header, PAGE, Region, Spec, clock, counter, entry, milestone_every};
use roctop_ring::map::RingFile;
use roctop_ring::reader::{Ended, Reader, Sink, Thread};
use roctop_ring::record::{ApiCall, Body, Dispatch, Domain, Head, KernelSymbol, Marker, Slot, Stream, decode};
use roctop_ring::sync::Ordering;
use std::path::PathBuf;

#[derive(Default)]
struct Seen {
    strings: Vec<(u32, Vec<u8>)>,
    facts: Vec<Body>,
    records: Vec<(u32, Body)>,
    lost: u64,
    calibrations: usize,
}

impl Sink for Seen {
    fn string(&mut self, id: u32, text: &[u8]) {
        self.strings.push((id, text.to_vec()));
    }
    fn fact(&mut self, slots: &[Slot]) {
        self.facts.push(decode(slots));
    }
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {
        self.calibrations += 1;
    }
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        self.records.push((thread.index, decode(slots)));
    }
    fn lost(&mut self, _: Thread, records: u64) {
        self.lost += records;
    }
}

struct Directory(PathBuf);
impl Directory {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/roctop-test-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}
impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn file(dir: &Directory, slots: u64) -> RingFile {
    let spec = Spec {
        ordinal: 0,
        rings: vec![slots, 64],
        facts: 64,
        strings: 64,
        string_bytes: 4096,
    };
    RingFile::create(
        &dir.0,
        "1-1.ring",
        &spec,
        Header {
            pid: 1,
            ..Header::default()
        },
    )
    .unwrap()
}

fn call(n: u64) -> ApiCall {
    ApiCall {
        start: n,
        end: n + 1,
        correlation: n,
        op: 7,
        ..ApiCall::default()
    }
}

#[test]
fn records_are_read_once_and_in_order() {
    let dir = Directory::new("order");
    let ring = file(&dir, 1024);
    let claim = ring.claim(0, 42, 1, [0; 2]).unwrap();
    let name = ring.strings().unwrap().add(b"kernel");
    let symbol = KernelSymbol {
        kernel_object: 9,
        name,
        ..KernelSymbol::default()
    };
    assert!(
        ring.facts()
            .unwrap()
            .append(KernelSymbol::head(0, Domain::NONE), &symbol.payload())
    );
    ring.calibrate([0, 1, 2, 3, 4, 5, 6, 7]);
    let mut reader = Reader::open(std::fs::File::open(ring.path()).unwrap()).unwrap();
    let mut seen = Seen::default();
    let dispatch = Dispatch {
        kernel_object: 9,
        grid_x: 5,
        ..Dispatch::default()
    };
    for n in 0..100 {
        claim.ring.push(ApiCall::head(0, Domain::HIP), &call(n).payload());
        claim.ring.push(Dispatch::head(0, Domain::NONE), &dispatch.payload());
        let text = Marker::payload([n, n], 0, 0, 0, 0, b"a text of more than eight bytes");
        let used = Marker::slots(31);
        claim
            .ring
            .push(Head::new(Marker::MARK, 0, used as u8, 7), &text[..used]);
        if n % 7 == 0 {
            reader.poll(Ended::No, &mut seen).unwrap();
        }
    }
    let mut in_place = InPlace::new(&mut seen);
    reader.poll(Ended::Yes, &mut in_place).unwrap();
    // A call, a dispatch and a marker of two slots each time.
    assert_eq!(in_place.kept, 5, "what was new then stayed where it was copied to");
    assert_eq!(seen.strings, [(1, b"kernel".to_vec())]);
    assert_eq!(seen.facts, [Body::KernelSymbol(symbol)]);
    assert_eq!((seen.records.len(), seen.lost, seen.calibrations), (300, 0, 1));
    for (n, three) in seen.records.chunks(3).enumerate() {
        assert_eq!(three[0].1, Body::ApiCall(call(n as u64)));
        assert_eq!(three[1].1, Body::Dispatch(dispatch));
        assert!(matches!(&three[2].1, Body::Mark(m) if m.text == b"a text of more than eight bytes"));
    }
}

#[test]
fn lapped_reader_counts_exact_losses() {
    let dir = Directory::new("lapped");
    let ring = file(&dir, 64);
    let claim = ring.claim(0, 42, 1, [0; 2]).unwrap();
    let mut reader = Reader::open(std::fs::File::open(ring.path()).unwrap()).unwrap();
    let mut seen = Seen::default();
    let mut written = 0;
    for burst in [3u64, 500, 10, 64, 57, 56, 1000, 1] {
        for n in 0..burst {
            if n % 3 == 0 {
                claim
                    .ring
                    .push(Dispatch::head(0, Domain::NONE), &Dispatch::default().payload());
            } else {
                claim.ring.push(ApiCall::head(0, Domain::HIP), &call(n).payload());
            }
        }
        written += burst;
        reader.poll(Ended::No, &mut seen).unwrap();
        assert_eq!(seen.records.len() as u64 + seen.lost, written);
    }
    assert!(seen.lost > 1000);
    let (_, account) = reader.accounts()[0];
    assert_eq!((account.seen + account.lost, account.written), (written, written));
}

#[test]
fn records_across_copy_batches_are_whole() {
    let dir = Directory::new("ends");
    let ring = file(&dir, 1 << 14);
    let claim = ring.claim(0, 42, 1, [0; 2]).unwrap();
    let mut readers = [(); 2].map(|()| Reader::open(std::fs::File::open(ring.path()).unwrap()).unwrap());
    let mut seen: [Seen; 2] = Default::default();
    let mut written = 0;
    for burst in [1u64, 2000, 3000, 1023, 1024, 1025, 5, 2047, 2500] {
        for n in 0..burst {
            let used = 1 + (written + n * n) as usize % 3;
            let head = Head::new(250, 0, used as u8, 9);
            claim.ring.push(head, &[[written; 6]; 3][..used]);
            written += 1;
        }
        let [plain, in_place] = &mut seen;
        readers[0].poll(Ended::No, plain).unwrap();
        let mut in_place = InPlace::new(in_place);
        readers[1].poll(Ended::No, &mut in_place).unwrap();
        // The reader does not know the thread at first.
        assert!(burst == 1 || in_place.kept >= burst);
        for (reader, seen) in readers.iter().zip(&seen) {
            assert_eq!((seen.records.len() as u64, seen.lost), (written, 0));
            let (_, account) = reader.accounts()[0];
            assert_eq!((account.seen, account.lost, account.written), (written, 0, written));
        }
    }
}

#[test]
fn open_calls_and_ranges_are_visible() {
    let dir = Directory::new("open");
    let ring = file(&dir, 64);
    let claim = ring.claim(1, 43, 1, [0; 2]).unwrap();
    assert_eq!(claim.entry.innermost_call(), None);
    assert_eq!(claim.entry.open_call(10, Domain::HIP, 3, 100), 0);
    assert_eq!(claim.entry.innermost_call(), Some((Domain::HIP, 3)));
    assert_eq!(claim.entry.open_call(11, Domain::HSA_CORE, 4, 101), 100);
    assert_eq!(claim.entry.innermost_call(), Some((Domain::HSA_CORE, 4)));
    assert!(claim.entry.open_range(12, 102, 0, b"step 1"));
    let reader = Reader::open(std::fs::File::open(ring.path()).unwrap()).unwrap();
    let work = reader.open_work().unwrap();
    assert_eq!(
        work.calls.iter().map(|c| (c.op, c.correlation)).collect::<Vec<_>>(),
        [(3, 100), (4, 101)]
    );
    assert_eq!(work.ranges[0].text, b"step 1");
    claim.entry.close_call(Domain::HSA_CORE, 4, 5);
    assert_eq!(reader.open_work().unwrap().calls.len(), 1);
    assert_eq!(reader.totals().unwrap()[0].ticks, 5);
}

#[test]
fn calls_beyond_the_stack_disturb_no_others() {
    let dir = Directory::new("deep");
    let ring = file(&dir, 64);
    let claim = ring.claim(1, 43, 1, [0; 2]).unwrap();
    let kept = entry::CALLS as u64;
    for depth in 0..kept + 3 {
        let parent = if depth <= kept { depth } else { 0 };
        assert_eq!(
            claim.entry.open_call(depth, Domain::HIP, depth as u16, depth + 1),
            parent
        );
    }
    let reader = Reader::open(std::fs::File::open(ring.path()).unwrap()).unwrap();
    for depth in (0..kept + 3).rev() {
        let open: Vec<u64> = reader
            .open_work()
            .unwrap()
            .calls
            .iter()
            .map(|call| call.correlation)
            .collect();
        assert_eq!(open, (1..=kept.min(depth + 1)).collect::<Vec<_>>());
        claim.entry.close_call(Domain::HIP, depth as u16, 1);
    }
    assert!(reader.open_work().unwrap().calls.is_empty());
}

#[test]
fn late_commit_arrives_late_and_blocks_nothing() {
    let dir = Directory::new("late");
    let ring = file(&dir, 64);
    let mut reader = Reader::open(std::fs::File::open(ring.path()).unwrap()).unwrap();
    let mut seen = Seen::default();
    // Two other threads have each reserved a number and stop before they commit.
    let (strings, facts) = (
        ring.counter(counter::STRINGS).unwrap(),
        ring.counter(counter::FACTS_USED).unwrap(),
    );
    strings.fetch_add(1, Ordering::Relaxed);
    facts.fetch_add(2, Ordering::Relaxed);
    assert_eq!(ring.strings().unwrap().add(b"second"), 2);
    let symbol = KernelSymbol {
        kernel_object: 2,
        ..KernelSymbol::default()
    };
    assert!(
        ring.facts()
            .unwrap()
            .append(KernelSymbol::head(0, Domain::NONE), &symbol.payload())
    );
    reader.poll(Ended::No, &mut seen).unwrap();
    assert_eq!((seen.strings.len(), seen.facts.len()), (1, 1));
    // Now they commit.
    ring.words(Region::StringIndex)[1].store(1 << 63 | 6, Ordering::Release);
    let slots = ring.words(Region::Facts);
    for (place, head) in [(1, Head::new(1, 0, 1, 0)), (0, KernelSymbol::head(0, Domain::NONE))] {
        slots[place * 8].store(head.0, Ordering::Relaxed);
        reader.poll(Ended::No, &mut seen).unwrap();
        assert_eq!(seen.facts.len(), 1);
        slots[place * 8 + 7].store(place as u64 + 1, Ordering::Release);
    }
    for _ in 0..2 {
        reader.poll(Ended::No, &mut seen).unwrap();
    }
    assert_eq!(seen.strings, [(2, b"second".to_vec()), (1, b"second".to_vec())]);
    assert_eq!(
        seen.facts,
        [Body::KernelSymbol(symbol), Body::KernelSymbol(KernelSymbol::default())]
    );
}

#[test]
fn endless_streams_leave_half_of_the_facts_to_kernels() {
    let directory = Directory::new("minor");
    let ring = file(&directory, 64);
    let facts = ring.facts().unwrap();
    let stream = Stream::default();
    let streams = (0..100).filter(|_| facts.append_minor(Stream::head(0, Domain::NONE), &stream.payload()));
    assert_eq!(streams.count(), 32);
    let symbol = KernelSymbol::default();
    let kernels = (0..100).filter(|_| facts.append(KernelSymbol::head(0, Domain::NONE), &symbol.payload()));
    assert_eq!(kernels.count(), 16);
    let full = ring.counter(counter::FACTS_FULL).unwrap().load(Ordering::Relaxed);
    assert_eq!(full, 68 + 84, "what found no room is counted");
}

#[test]
fn fill_finds_the_fullest_ring() {
    const SLOTS: u64 = 1024;
    let every = milestone_every(SLOTS);
    let dir = Directory::new("fill");
    for used in [&[0usize][..], &[0, 40, 69], &[65, 66, 69], &(0..70).collect::<Vec<_>>()] {
        let spec = Spec {
            ordinal: 0,
            rings: vec![SLOTS; 70],
            facts: 64,
            strings: 64,
            string_bytes: 4096,
        };
        let name = format!("1-{}.ring", used.len() + used[0]);
        let file = RingFile::create(&dir.0, &name, &spec, Header::default()).unwrap();
        let mut reader = Reader::open(std::fs::File::open(file.path()).unwrap()).unwrap();
        assert_eq!(reader.fill().unwrap(), 0, "nobody has a ring");
        let claims: Vec<_> = used
            .iter()
            .map(|&index| file.claim(index, 42, 1, [0; 2]).unwrap())
            .collect();
        for (turn, claim) in claims.iter().enumerate() {
            let there = every * (turn as u64 % 9 + 1) + turn as u64 % every;
            // The first read finds the threads, later ones read only milestones.
            (0..there).for_each(|_| claim.ring.push(ApiCall::head(0, Domain::HIP), &call(1).payload()));
            let (seen, exact) = (u64::from(reader.fill().unwrap()), there * 1000 / SLOTS);
            let most = exact + every * 1000 / SLOTS + 1;
            assert!(
                (exact..=most).contains(&seen),
                "ring {} of {used:?}: {seen}, {exact}",
                used[turn]
            );
            reader.poll(Ended::No, &mut Seen::default()).unwrap();
            let left = reader.fill().unwrap();
            assert!(u64::from(left) <= every * 1000 / SLOTS, "all was read: {left}");
        }
    }
}

#[test]
fn file_without_milestones_is_checked_by_ring() {
    let dir = Directory::new("older");
    let spec = Spec {
        ordinal: 0,
        rings: vec![64; 3],
        facts: 64,
        strings: 64,
        string_bytes: 4096,
    };
    let file = RingFile::create(&dir.0, "1-1.ring", &spec, Header::default()).unwrap();
    let claim = file.claim(2, 42, 1, [0; 2]).unwrap();
    (0..16).for_each(|_| claim.ring.push(ApiCall::head(0, Domain::HIP), &call(1).payload()));
    let mut older = file.header().clone();
    older.minor = 0;
    older.regions[Region::Milestones as usize] = Extent::default();
    let mut bytes = std::fs::read(file.path()).unwrap();
    bytes[..PAGE].copy_from_slice(&older.encode());
    let mut reader = Reader::open(bytes).unwrap();
    assert_eq!(reader.fill().unwrap(), 250);
    reader.poll(Ended::No, &mut Seen::default()).unwrap();
    assert_eq!(reader.fill().unwrap(), 0);
}
