//! kill -9 while dispatches are submitted, completed and recorded: each one that the GPU had completed is found exactly
//! once, in the ring or in the flight file, with what is known of it.
//!
//! The child is this very test, run again with an environment variable; one of its threads stands for the packet processor.
//! `ROCTOP_KILLS=20000 cargo test -p roctop-ring --release --test flight_torture` is the long version.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unsafe_code, reason = "signals are put over memory of the test's, as over a pool's")]

use memmap2::{MmapMut, MmapOptions, MmapRaw};
use roctop_ring::flight::{self, Reserved, SIGNAL_WORDS, SlotWriter, State, keep_point};
use roctop_ring::layout::{Header, Spec, clock};
use roctop_ring::map::RingFile;
use roctop_ring::reader::{Ended, Reader, Sink, Thread};
use roctop_ring::record::{Body, Dispatch, Domain, Slot, decode};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CHILD: &str = "ROCTOP_FLIGHT_TORTURE_CHILD";
const SLOTS: usize = 64;
const PATIENCE: Duration = Duration::from_millis(20);
const RING_SLOTS: u64 = 1 << 12;
/// Agent ticks of 10 ns.
const ORIGIN: u64 = 5_000_000;
const BASE: u64 = 2_000_000;
const VALUE: usize = 1;
const START: usize = 4;
const END: usize = 5;

/// What is known of dispatch `sequence` when it is submitted.
fn known(sequence: u64) -> Dispatch {
    let mixed = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Dispatch {
        dispatch_id: sequence + 1,
        correlation: mixed,
        kernel_object: mixed.rotate_left(17),
        grid_x: mixed as u32 | 1,
        ..Dispatch::default()
    }
}

/// Its times as the packet processor writes them.
fn ticks(sequence: u64) -> [u64; 2] {
    [ORIGIN + 3 * sequence, ORIGIN + 3 * sequence + 2]
}

fn timed(sequence: u64) -> Dispatch {
    let [begin, end] = ticks(sequence).map(|tick| BASE + 10 * (tick - ORIGIN));
    Dispatch {
        begin,
        end,
        ..known(sequence)
    }
}

/// Words of memory that a mapping of this process begins with.
fn words<'m>(address: *mut u8, count: usize) -> &'m [AtomicU64] {
    // SAFETY: the callers pass a page-aligned mapping of at least so many words that lives as long as the process; all
    // access is atomic.
    unsafe { std::slice::from_raw_parts(address.cast_const().cast(), count) }
}

fn wait(until: impl Fn() -> bool) {
    while !until() {
        std::thread::yield_now();
    }
}

fn pause(is_wanted: bool) {
    if is_wanted {
        std::thread::yield_now();
    }
}

/// Submits, completes and records until it is killed.
fn child(dir: &Path) {
    let spec = Spec {
        ordinal: 0,
        rings: vec![RING_SLOTS],
        facts: 64,
        strings: 64,
        string_bytes: 4096,
    };
    let header = Header {
        pid: 1,
        ..Header::default()
    };
    let ring = RingFile::create(dir, "1-1.ring", &spec, header.clone()).unwrap();
    let mut pool = MmapMut::map_anon(SLOTS * SIGNAL_WORDS * 8).unwrap();
    // SAFETY: the mapping is this function's own and nothing points into it yet.
    let reserved = unsafe { Reserved::put(dir, "1-1.0.flight", SLOTS, pool.as_mut_ptr()) }.unwrap();
    let file = reserved.take(&header).unwrap();
    let signals = words(pool.as_mut_ptr(), SLOTS * SIGNAL_WORDS);
    let truth = File::options().read(true).write(true).open(dir.join("truth")).unwrap();
    let truth: MmapRaw = MmapOptions::new().len(4096).map_raw(&truth).unwrap();
    let truth = &words(truth.as_mut_ptr(), 1)[0];
    keep_point(file.header(), ORIGIN - 100_000, BASE - 1_000_000);
    keep_point(file.header(), ORIGIN, BASE);
    let (head, tail) = (AtomicU64::new(0), AtomicU64::new(0));
    println!("ready");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for sequence in 0u64.. {
                wait(|| sequence - tail.load(Ordering::Acquire) < SLOTS as u64);
                let at = sequence as usize % SLOTS;
                let kept = SlotWriter::new(file.records(), at).unwrap();
                kept.keep(&known(sequence));
                for (word, value) in [(START, 0), (END, 0), (VALUE, 1)] {
                    signals[at * SIGNAL_WORDS + word].store(value, Ordering::Release);
                }
                kept.publish(sequence, State::Own);
                head.store(sequence + 1, Ordering::Release);
            }
        });
        scope.spawn(|| {
            for sequence in 0u64.. {
                wait(|| head.load(Ordering::Acquire) > sequence);
                let signal = &signals[sequence as usize % SLOTS * SIGNAL_WORDS..][..SIGNAL_WORDS];
                let [start, end] = ticks(sequence);
                signal[START].store(start, Ordering::Relaxed);
                signal[END].store(end, Ordering::Relaxed);
                signal[VALUE].store(0, Ordering::Release);
                truth.store(sequence + 1, Ordering::Release);
            }
        });
        let claim = ring.claim(0, 7, 1, [0; 2]).unwrap();
        for sequence in 0u64.. {
            let at = sequence as usize % SLOTS;
            wait(|| {
                head.load(Ordering::Acquire) > sequence
                    && signals[at * SIGNAL_WORDS + VALUE].load(Ordering::Acquire) == 0
            });
            let kept = SlotWriter::new(file.records(), at).unwrap();
            let (known, times) = (kept.kept(), timed(sequence));
            let record = Dispatch {
                begin: times.begin,
                end: times.end,
                ..known
            };
            // Another thread may run between any two of these steps, so that a kill finds it there.
            pause(sequence % 4 == 3);
            kept.take();
            pause(sequence % 4 == 1);
            claim.ring.push(Dispatch::head(0, Domain::NONE), &record.payload());
            pause(sequence % 4 == 2);
            kept.free();
            tail.store(sequence + 1, Ordering::Release);
        }
    });
}

#[test]
fn child_of_the_torture() {
    if let Some(dir) = std::env::var_os(CHILD) {
        child(Path::new(&dir));
    }
}

/// Expects dispatches in the order of their submission, each once.
#[derive(Default)]
struct Found {
    next: u64,
    lost: u64,
}

impl Found {
    fn take(&mut self, record: &Dispatch) {
        assert_eq!(record.dispatch_id, self.next + 1, "order");
        assert_eq!(*record, timed(self.next));
        self.next += 1;
    }
}

impl Sink for Found {
    fn string(&mut self, _: u32, _: &[u8]) {}
    fn fact(&mut self, _: &[Slot]) {}
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {}
    fn record(&mut self, _: Thread, slots: &[Slot]) {
        match decode(slots) {
            Body::Dispatch(record) => self.take(&record),
            _ => panic!("not a dispatch"),
        }
    }
    fn lost(&mut self, _: Thread, records: u64) {
        (self.next, self.lost) = (self.next + records, self.lost + records);
    }
}

struct Directory(PathBuf);
impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Writer(std::process::Child);
impl Writer {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_of_the_torture", "--nocapture"])
            .env(CHILD, dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let (mut text, mut byte) = (Vec::new(), [0]);
        while !text.ends_with(b"ready\n") && out.read(&mut byte).unwrap() == 1 {
            text.push(byte[0]);
        }
        Self(child)
    }
}
impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_the_gpu_completed_before_a_kill_is_found_exactly_once() {
    let kills: u64 = std::env::var("ROCTOP_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100);
    let dir = Directory(PathBuf::from(format!("/dev/shm/roctop-flight-{}", std::process::id())));
    let (mut in_rings, mut in_files, mut twice, mut running, mut lost) = (0, 0, 0, 0, 0);
    let mut random = std::process::id() | 1;
    let mut killed = 0;
    // Which thread has a processor at the kill is the system's choice: it goes on until kills found work in both places.
    while killed < kills || (in_files == 0 || in_rings == 0) && killed < 50 * kills {
        killed += 1;
        std::fs::create_dir(&dir.0).unwrap();
        std::fs::write(dir.0.join("truth"), [0; 4096]).unwrap();
        let writer = Writer::start(&dir.0);
        let mut reader = Reader::open(File::open(dir.0.join("1-1.ring")).unwrap()).unwrap();
        let mut found = Found::default();
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        // On a busy machine the writer has done nothing by then, so it may take its time for some records.
        let (began, enough) = (Instant::now(), u64::from(random >> 16) % 64);
        let until = Duration::from_micros(u64::from(random % 2000));
        while began.elapsed() < until || found.next < enough && began.elapsed() < PATIENCE {
            reader.poll(Ended::No, &mut found).unwrap();
        }
        drop(writer);
        while reader.poll(Ended::Yes, &mut found).unwrap().more {}
        let recorded = found.next;
        let newest = reader.newest_dispatches().unwrap();
        for left in flight::read(&File::open(dir.0.join("1-1.0.flight")).unwrap()).unwrap() {
            if !left.is_complete {
                running += 1;
            } else if newest.contains(&left.record.dispatch_id) {
                // Recorded, and killed before its slot was freed.
                twice += 1;
            } else {
                found.take(&left.record);
            }
        }
        let truth = std::fs::read(dir.0.join("truth")).unwrap();
        let truth = u64::from_le_bytes(*truth.first_chunk().unwrap());
        // The kill may come between a completion and the note of it.
        assert!(
            (truth..=truth + 1).contains(&found.next),
            "{} found, {truth} completed",
            found.next
        );
        in_rings += recorded - found.lost;
        in_files += found.next - recorded;
        lost += found.lost;
        std::fs::remove_dir_all(&dir.0).unwrap();
    }
    assert!(in_rings > 0 && in_files > 0);
    println!(
        "{killed} kills: {in_rings} dispatches in rings, {in_files} in flight files alone, {twice} in both, {running} not \
         complete, {lost} overwritten; each exactly once"
    );
}
