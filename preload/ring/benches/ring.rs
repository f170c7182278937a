//! Cost of a record beside its floor in the same run: `cargo bench -p roctop-ring`.
//!
//! The rounds of all cases are interleaved, and the minimum and median round are printed: on a shared machine compare
//! ratios, not nanoseconds. Nothing is asserted.
#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use roctop_ring::layout::{Header, MAJOR, Region, Spec, clock, entry};
use roctop_ring::reader::{Bytes, Ended, Reader, Sink, Thread};
use roctop_ring::record::{ApiCall, Dispatch, Domain, Head, Marker, SLOT_WORDS, Slot, TOTALS, decode};
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::{EntryWriter, RingWriter};
use std::hint::black_box;
use std::time::Instant;

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the floor is this instruction")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn ticks() -> u64 {
    std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |since| since.as_nanos() as u64)
}

const CALLS: u64 = 100_000;
const ROUNDS: usize = 60;

fn words(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// A ring with its entry and totals.
struct Ring {
    slots: Vec<AtomicU64>,
    entry: Vec<AtomicU64>,
    totals: Vec<AtomicU64>,
}

impl Ring {
    fn new(slots: usize) -> Self {
        Self {
            slots: words(slots * SLOT_WORDS),
            entry: words(entry::WORDS),
            totals: words(2 * TOTALS),
        }
    }
    fn writers(&self) -> (RingWriter<'_>, EntryWriter<'_>) {
        let ring = RingWriter::new(&self.slots, &self.entry[entry::HEAD], &self.entry[entry::RECORDS]).unwrap();
        (ring, EntryWriter::new(&self.entry, &self.totals).unwrap())
    }
}

/// The steps of a traced call: time, open, (the call), time, record, close.
#[inline(never)]
fn traced(ring: &RingWriter<'_>, entry: &EntryWriter<'_>, op: u16, correlation: u64) {
    let start = ticks();
    let parent = entry.open_call(start, Domain::HIP, op, correlation);
    black_box(());
    let end = ticks();
    let call = ApiCall {
        start,
        end,
        correlation,
        parent,
        op,
        has_status: 1,
        status: 0,
        arg: correlation,
    };
    ring.push(ApiCall::head(0, Domain::HIP), &call.payload());
    entry.close_call(Domain::HIP, op, end.wrapping_sub(start));
}

#[inline(never)]
fn dispatch(ring: &RingWriter<'_>, n: u64) {
    let dispatch = Dispatch {
        begin: ticks(),
        end: n,
        correlation: n,
        dispatch_id: n,
        grid_x: 64,
        ..Dispatch::default()
    };
    ring.push(Dispatch::head(0, Domain::NONE), &dispatch.payload());
}

#[inline(never)]
fn range(ring: &RingWriter<'_>, n: u64) {
    let payload = Marker::payload([ticks(), n], n, 0, 0, 1, b"forward pass");
    let used = Marker::slots(12);
    ring.push(
        Head::new(Marker::RANGE, 0, used as u8, Domain::MARKER.0),
        &payload[..used],
    );
}

struct Nothing(u64);
impl Sink for Nothing {
    fn string(&mut self, _: u32, _: &[u8]) {}
    fn fact(&mut self, _: &[Slot]) {}
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {}
    fn record(&mut self, _: Thread, slots: &[Slot]) {
        self.0 = self.0.wrapping_add(slots[0][1]);
    }
    fn lost(&mut self, _: Thread, _: u64) {}
}

struct Decoding(u64);
impl Sink for Decoding {
    fn string(&mut self, _: u32, _: &[u8]) {}
    fn fact(&mut self, _: &[Slot]) {}
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {}
    fn record(&mut self, _: Thread, slots: &[Slot]) {
        black_box(decode(slots));
        self.0 += 1;
    }
    fn lost(&mut self, _: Thread, _: u64) {}
}

/// A file of one full ring.
fn file(ring: &Ring, slots: usize) -> Vec<u8> {
    let spec = Spec {
        ordinal: 0,
        rings: vec![slots as u64],
        facts: 0,
        strings: 0,
        string_bytes: 0,
    };
    let (regions, size) = spec.regions();
    let header = Header {
        major: MAJOR,
        size,
        regions,
        ..Header::default()
    };
    let mut file = vec![0; size as usize];
    file[..4096].copy_from_slice(&header.encode());
    let at = header.region(Region::Rings).offset;
    for (index, value) in [
        (entry::STATE, 1 << 32 | entry::LIVE),
        (entry::RING_OFFSET, at),
        (entry::RING_SLOTS, slots as u64),
    ] {
        ring.entry[index].store(value, Ordering::Relaxed);
    }
    for (from, words) in [
        (header.region(Region::Directory).offset, &ring.entry),
        (at, &ring.slots),
    ] {
        for (to, word) in file[from as usize..].as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *to = word.load(Ordering::Relaxed).to_le_bytes();
        }
    }
    file
}

fn timed(body: impl FnOnce() -> u64) -> f64 {
    let begin = Instant::now();
    let count = body();
    begin.elapsed().as_nanos() as f64 / count as f64
}

fn repeat(mut body: impl FnMut(u64)) -> u64 {
    for n in 0..CALLS {
        body(n);
    }
    CALLS
}

fn read<S: Sink>(file: &std::fs::File, mut sink: S) -> u64 {
    let mut reader = Reader::open(file.try_clone().unwrap()).unwrap();
    reader.poll(Ended::Yes, &mut sink).unwrap().records
}

/// The reader's floor: copies the same bytes without parsing them.
fn copy(file: &std::fs::File) -> u64 {
    let mut buffer = vec![0; 64 * 1024];
    let (mut at, mut slots) = (0, 0);
    while let Ok(got @ 1..) = Bytes::read_at(file, at, &mut buffer) {
        black_box(&buffer);
        at += got as u64;
        slots += got as u64 / 64;
    }
    slots
}

type Case<'c> = (&'c str, Box<dyn Fn() -> f64 + 'c>);

/// Minimum and median round of each case, interleaved.
fn measure(cases: &[Case<'_>]) -> Vec<(f64, f64)> {
    let mut times = vec![Vec::with_capacity(ROUNDS); cases.len()];
    for _ in 0..ROUNDS {
        for ((_, case), times) in cases.iter().zip(&mut times) {
            times.push(case());
        }
    }
    times
        .into_iter()
        .map(|mut times| {
            times.sort_by(f64::total_cmp);
            (times[0], times[ROUNDS / 2])
        })
        .collect()
}

/// An unnamed file with one full ring.
fn full_file() -> std::fs::File {
    let full = Ring::new(1 << 16);
    let (writer, _) = full.writers();
    for n in 0..1 << 16 {
        let call = ApiCall {
            start: n,
            end: n + 1,
            ..ApiCall::default()
        };
        writer.push(ApiCall::head(0, Domain::HIP), &call.payload());
    }
    let path = std::path::Path::new("/dev/shm").join(format!("roctop-bench-{}", std::process::id()));
    std::fs::write(&path, file(&full, 1 << 16)).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

fn main() {
    let sizes = [1 << 10, 1 << 14, 1 << 20];
    let rings = sizes.map(Ring::new);
    let writers: Vec<_> = rings.iter().map(Ring::writers).collect();
    let file = full_file();
    let (small, entry) = &writers[0];
    let call = ApiCall {
        start: 1,
        end: 2,
        ..ApiCall::default()
    };
    let mut cases: Vec<Case<'_>> = vec![
        (
            "two clock reads (floor)",
            Box::new(|| {
                timed(|| {
                    repeat(|_| {
                        black_box(ticks());
                        black_box(ticks());
                    })
                })
            }),
        ),
        (
            "one clock read",
            Box::new(|| {
                timed(|| {
                    repeat(|_| {
                        black_box(ticks());
                    })
                })
            }),
        ),
        (
            "record of a call, no clock",
            Box::new(|| {
                timed(|| repeat(|n| small.push(ApiCall::head(0, Domain::HIP), &ApiCall { arg: n, ..call }.payload())))
            }),
        ),
        (
            "open and close, no clock",
            Box::new(|| {
                timed(|| {
                    repeat(|n| {
                        entry.open_call(n, Domain::HIP, 7, n);
                        black_box(());
                        entry.close_call(Domain::HIP, 7, 1);
                    })
                })
            }),
        ),
        (
            "clock + dispatch, 2 slots",
            Box::new(|| timed(|| repeat(|n| dispatch(small, n)))),
        ),
        (
            "clock + range with text, 2 slots",
            Box::new(|| timed(|| repeat(|n| range(small, n)))),
        ),
    ];
    for ((ring, entry), name) in writers.iter().zip([
        "traced call, ring 64 KiB",
        "traced call, ring 1 MiB",
        "traced call, ring 64 MiB",
    ]) {
        cases.push((
            name,
            Box::new(move || timed(|| repeat(|n| traced(ring, entry, black_box(7), n)))),
        ));
    }
    cases.push(("pread alone, a slot", Box::new(|| timed(|| copy(&file)))));
    cases.push(("read a record", Box::new(|| timed(|| read(&file, Nothing(0))))));
    cases.push((
        "read and decode a record",
        Box::new(|| timed(|| read(&file, Decoding(0)))),
    ));

    let times = measure(&cases);
    let floor = times[0];
    println!(
        "{:<36} {:>9} {:>9} {:>16} {:>12}",
        "ns each", "least", "median", "of the floor", "M/s (median)"
    );
    for ((name, _), (least, median)) in cases.iter().zip(&times) {
        let ratios = format!("{:.2} / {:.2}", least / floor.0, median / floor.1);
        println!(
            "{name:<36} {least:>9.2} {median:>9.2} {ratios:>16} {:>12.1}",
            1000.0 / median
        );
    }
}
