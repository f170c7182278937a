//! kill -9 at any instant, and a reader that is constantly lapped: no torn record is ever accepted, and seen + lost =
//! written.
//!
//! The child is this test again, with an environment variable. `ROCTOP_KILLS=20000 cargo test -p roctop-ring --release
//! --test torture` is the long version; `ROCTOP_LAP_RECORDS=1000000000` extends the lapping test to that number of
//! written records.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod in_place;

use in_place::InPlace;
use roctop_ring::layout::{Header, Spec, clock, counter};
use roctop_ring::map::RingFile;
use roctop_ring::reader::{Ended, Reader, Sink, Thread};
use roctop_ring::record::{Domain, Head, PAYLOAD_WORDS, Slot, ThreadStart};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CHILD: &str = "ROCTOP_TORTURE_CHILD";
const KIND: u8 = 200;
const THREADS: usize = 2;

/// Every payload word of a record follows from its ring, ordinal and index.
fn word(ring: u64, ordinal: u64, place: u64) -> u64 {
    (ring << 56 ^ ordinal << 8 ^ place)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
        ^ ordinal
}

fn used(ordinal: u64) -> usize {
    [1, 2, 1, 1, 3, 1, 2, 8][ordinal as usize % 8]
}

fn payload(ring: u64, ordinal: u64) -> [[u64; PAYLOAD_WORDS]; 8] {
    std::array::from_fn(|i| std::array::from_fn(|j| word(ring, ordinal, (i * PAYLOAD_WORDS + j) as u64)))
}

fn tid(ring: u64) -> u32 {
    1000 + ring as u32
}

/// Writes until killed.
fn child(dir: &Path, slots: u64) {
    let spec = Spec {
        ordinal: 0,
        rings: vec![slots; THREADS],
        facts: 256,
        strings: 64,
        string_bytes: 4096,
    };
    let ring = RingFile::create(
        dir,
        "1-1.ring",
        &spec,
        Header {
            pid: 1,
            ..Header::default()
        },
    )
    .unwrap();
    println!("ready");
    std::thread::scope(|scope| {
        for index in 0..THREADS as u64 {
            let ring = &ring;
            scope.spawn(move || {
                let claim = ring.claim(index as usize, tid(index), 1, [0; 2]).unwrap();
                let start = ThreadStart {
                    tid: tid(index),
                    generation: claim.generation,
                    ..ThreadStart::default()
                };
                claim.ring.push(ThreadStart::head(0, Domain::NONE), &start.payload());
                for ordinal in 1u64.. {
                    let count = used(ordinal);
                    claim.entry.open_call(ordinal, Domain::HIP, 3, ordinal);
                    claim
                        .ring
                        .push(Head::new(KIND, 0, count as u8, 0), &payload(index, ordinal)[..count]);
                    claim.entry.close_call(Domain::HIP, 3, 1);
                    if ordinal % 1024 == index && ordinal < 200_000 {
                        let facts = ring.facts().unwrap();
                        facts.append(Head::new(KIND, index as u8, 2, 0), &payload(index, ordinal)[..2]);
                        ring.strings()
                            .unwrap()
                            .add(&word(index, ordinal, 0).to_le_bytes().repeat(3));
                    }
                }
            });
        }
    });
}

/// Checks every word it receives.
#[derive(Default)]
struct Check {
    next: [u64; THREADS],
    seen: u64,
    lost: u64,
    facts: u64,
    strings: u64,
}

impl Sink for Check {
    fn string(&mut self, _: u32, text: &[u8]) {
        assert!(
            text.len() == 24 && text[..8] == text[8..16] && text[..8] == text[16..],
            "torn text"
        );
        self.strings += 1;
    }
    fn fact(&mut self, slots: &[Slot]) {
        let ring = u64::from(Head(slots[0][0]).flags());
        // The first word of the fact gives its ordinal.
        let ordinal = (0..200u64)
            .map(|n| n * 1024 + ring)
            .find(|n| word(ring, *n, 0) == slots[0][1])
            .unwrap();
        assert_eq!((slots.len(), Head(slots[0][0]).kind()), (2, KIND));
        for (slot, words) in slots.iter().zip(payload(ring, ordinal)) {
            assert_eq!(slot[1..=PAYLOAD_WORDS], words, "torn fact");
        }
        self.facts += 1;
    }
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {}
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        let ring = u64::from(thread.index);
        let ordinal = self.next[thread.index as usize];
        assert_eq!(Head(slots[0][0]).ordinal(), ordinal as u32, "order");
        assert_eq!(thread.tid, tid(ring));
        if ordinal == 0 {
            assert_eq!(ThreadStart::decode(slots).tid, tid(ring));
        } else {
            assert_eq!(slots.len(), used(ordinal));
            for (slot, words) in slots.iter().zip(payload(ring, ordinal)) {
                assert_eq!(slot[1..=PAYLOAD_WORDS], words, "torn record {ordinal} of ring {ring}");
            }
        }
        self.next[thread.index as usize] += 1;
        self.seen += 1;
    }
    fn lost(&mut self, thread: Thread, records: u64) {
        self.next[thread.index as usize] += records;
        self.lost += records;
    }
}

struct Directory(PathBuf);
impl Directory {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/roctop-torture-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}
impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

struct Writer(std::process::Child);
impl Writer {
    fn start(dir: &Path, slots: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_of_the_torture", "--nocapture"])
            .env(CHILD, format!("{slots} {}", dir.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut text = Vec::new();
        let mut byte = [0];
        while !text.ends_with(b"ready\n") && out.read(&mut byte).unwrap() == 1 {
            text.push(byte[0]);
        }
        Self(child)
    }
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
impl Drop for Writer {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn child_of_the_torture() {
    if let Ok(order) = std::env::var(CHILD)
        && let Some((slots, dir)) = order.split_once(' ')
    {
        child(Path::new(dir), slots.parse().unwrap());
    }
}

fn finish(reader: &mut Reader<File>, check: &mut Check) {
    while reader.poll(Ended::Yes, check).unwrap().more {}
    let accounts = reader.accounts();
    for (thread, account) in &accounts {
        assert_eq!(account.seen + account.lost, account.written, "ring {}", thread.index);
        assert_eq!(account.written, check.next[thread.index as usize]);
    }
    assert_eq!(
        check.seen + check.lost,
        accounts.iter().map(|(_, account)| account.written).sum::<u64>()
    );
}

#[test]
fn a_kill_at_any_instant_tears_nothing() {
    let kills = number("ROCTOP_KILLS", 200);
    let dir = Directory::new("kill");
    let path = dir.0.join("1-1.ring");
    let (mut seen, mut lost, mut open, mut late, mut random) = (0, 0, 0, 0, std::process::id() | 1);
    for round in 0..kills {
        let mut writer = Writer::start(&dir.0, [16, 64, 1024][round as usize % 3]);
        let mut reader = Reader::open(File::open(&path).unwrap()).unwrap();
        let mut check = Check::default();
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let until = Instant::now() + Duration::from_micros(u64::from(random % 3000));
        while Instant::now() < until {
            // Every other round reads only after the kill.
            if round % 2 == 0 {
                reader.poll(Ended::No, &mut InPlace::new(&mut check)).unwrap();
            }
        }
        writer.kill();
        finish(&mut reader, &mut check);
        open += reader.open_work().unwrap().calls.len();
        let calls: u64 = reader.totals().unwrap().iter().map(|total| total.calls).sum();
        let records: u64 = reader
            .accounts()
            .iter()
            .map(|(_, account)| account.written.saturating_sub(1))
            .sum();
        // A call is counted after its record: at most one per thread is missing.
        assert!(
            calls <= records && records <= calls + THREADS as u64,
            "{calls} calls, {records} records"
        );
        late += records - calls;
        let counters = reader.counters().unwrap();
        assert!(check.facts * 2 <= counters[counter::FACTS_USED] && check.strings <= counters[counter::STRINGS]);
        (seen, lost) = (seen + check.seen, lost + check.lost);
        std::fs::remove_file(&path).unwrap();
    }
    println!("{kills} kills: {seen} records accepted, 0 torn; {lost} lost; {open} calls open, {late} not yet counted");
}

/// Sends a signal to the writer.
fn signal(writer: &Writer, name: &str) {
    let line = format!("kill {name} {}", writer.0.id());
    let sent = Command::new("sh").args(["-c", &line]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn stopped_writer_continues_inside_a_record() {
    let stops = number("ROCTOP_STOPS", 25);
    let dir = Directory::new("stop");
    let mut writer = Writer::start(&dir.0, 64);
    let open = || Reader::open(File::open(dir.0.join("1-1.ring")).unwrap()).unwrap();
    // One reader polls while the writer is stopped, one while it runs, one only at the end.
    let mut readers = [open(), open(), open()];
    let mut checks: [Check; 3] = std::array::from_fn(|_| Check::default());
    for _ in 0..stops {
        signal(&writer, "-STOP");
        for _ in 0..3 {
            readers[0].poll(Ended::No, &mut checks[0]).unwrap();
        }
        signal(&writer, "-CONT");
        readers[1].poll(Ended::No, &mut InPlace::new(&mut checks[1])).unwrap();
    }
    writer.kill();
    for (reader, check) in readers.iter_mut().zip(&mut checks) {
        finish(reader, check);
    }
    let written: Vec<u64> = checks.iter().map(|check| check.seen + check.lost).collect();
    assert!(written.iter().all(|count| *count == written[0]), "{written:?}");
    assert!(checks.iter().all(|check| check.seen > 0 && check.lost > 0));
    println!(
        "{stops} stops: {} records accepted of {}, 0 torn",
        checks[0].seen, written[0]
    );
}

#[test]
fn lapping_reader_accepts_only_whole_records() {
    let records = number("ROCTOP_LAP_RECORDS", 0);
    let (mut accepted, mut lost) = (0, 0);
    for slots in [16, 64, 1024, 65536] {
        let dir = Directory::new(&format!("lap{slots}"));
        let mut writer = Writer::start(&dir.0, slots);
        let mut reader = Reader::open(File::open(dir.0.join("1-1.ring")).unwrap()).unwrap();
        let (mut check, mut kept) = (Check::default(), 0);
        let until = Instant::now() + Duration::from_millis(666);
        while Instant::now() < until || check.seen + check.lost < records.div_ceil(4) {
            // With both ways of copying.
            reader.poll(Ended::No, &mut check).unwrap();
            let mut in_place = InPlace::new(&mut check);
            reader.poll(Ended::No, &mut in_place).unwrap();
            kept += in_place.kept;
        }
        writer.kill();
        finish(&mut reader, &mut check);
        assert!(check.seen > 0 && check.lost > 0);
        println!(
            "{slots} slots: {} accepted, 0 torn; {} lost; {kept} slots stayed where they were copied to",
            check.seen, check.lost
        );
        (accepted, lost) = (accepted + check.seen, lost + check.lost);
    }
    println!(
        "{} records written: {accepted} accepted, 0 torn; {lost} lost",
        accepted + lost
    );
}
