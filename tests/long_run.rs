//! Hours of records, several viewers, viewers that come back: memory stays flat and every account is exact.
//!
//! The rings are real and are read as a session's are; the writer is this test, so that time can run faster.
//! It measures the memory of its process, so no other test runs in that process.
//! `ROCTOP_LONG_RECORDS=36000000 cargo test --release --test long_run` is the long version: ten hours at a thousand records a
//! second.

#![expect(clippy::unwrap_used, reason = "a test fails where something is missing")]

use roctop::decode::Decoder;
use roctop::item::{Exit, Item, ProcessId};
use roctop::model::{Fresh, Options, Store};
use roctop::raw::{Raw, RawSink};
use roctop::session::Live;
use roctop_ring::layout::{Header, Spec, clock};
use roctop_ring::map::{Claim, RingFile};
use roctop_ring::record::{ApiCall, Dispatch, Domain, Head, Marker, Slot, ThreadStart};
use roctop_ring::session::ring_name;
use std::collections::BTreeMap;
use std::path::PathBuf;

const HOURS: u64 = 10;
const START: u64 = 1_000_000_000_000;
const SECOND: u64 = 1_000_000_000;
const RING_SLOTS: u64 = 8192;
/// Records written between two looks of a viewer that keeps up.
const BATCH: u64 = 2048;

struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> Self {
        let dir = PathBuf::from(format!("/dev/shm/roctop-long-{}-{name}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process's file. Its ticks are nanoseconds.
fn process(place: &TestDir, pid: u32, start_ticks: u64) -> RingFile {
    let spec = Spec {
        ordinal: 0,
        rings: vec![RING_SLOTS],
        facts: 1024,
        strings: 1024,
        string_bytes: 65536,
    };
    let header = Header {
        pid,
        start_ticks,
        rank: -1,
        clock_kind: clock::KIND_VDSO,
        created: START + start_ticks,
        ..Header::default()
    };
    RingFile::create(&place.0, &ring_name(pid, start_ticks, 0), &spec, header).unwrap()
}

fn calibrate(file: &RingFile, now: u64, realtime: u64) {
    let mut sample = [0; clock::WORDS];
    sample[clock::TICKS] = now;
    sample[clock::BOOTTIME] = now;
    sample[clock::MONOTONIC] = now;
    sample[clock::MONOTONIC_RAW] = now;
    sample[clock::REALTIME] = realtime;
    sample[clock::HSA] = now;
    sample[clock::WIDTH] = 20;
    file.calibrate(sample);
}

fn claim(file: &RingFile) -> Claim<'_> {
    let claim = file.claim(0, 7, START, [0; 2]).unwrap();
    let start = ThreadStart {
        time: START,
        tid: 7,
        generation: claim.generation,
        ..ThreadStart::default()
    };
    claim.ring.push(ThreadStart::head(0, Domain::NONE), &start.payload());
    claim
}

/// Record `number` of a program that launches thousands of kernels and gives every step a name of its own.
fn write(claim: &Claim<'_>, number: u64, now: u64) {
    match number % 4 {
        0 | 1 => {
            let call = ApiCall {
                start: now,
                end: now + 2000,
                correlation: number + 1,
                op: (number % 300) as u16,
                has_status: 1,
                ..ApiCall::default()
            };
            claim.ring.push(ApiCall::head(0, Domain::HIP), &call.payload());
        }
        2 => {
            let dispatch = Dispatch {
                begin: now,
                end: now + 5000 + number % 977,
                correlation: number,
                dispatch_id: number / 4 + 1,
                kernel_object: 0x1000 + 64 * (number / 4 % 3000),
                grid_x: 256,
                ..Dispatch::default()
            };
            claim.ring.push(Dispatch::head(0, Domain::NONE), &dispatch.payload());
        }
        _ => {
            let text = format!("step {number}");
            let payload = Marker::payload([now, now + 100], number, 0, 0, 0, text.as_bytes());
            let slots = Marker::slots(text.len());
            let head = Head::new(Marker::RANGE, 0, slots as u8, Domain::MARKER.0);
            claim.ring.push(head, &payload[..slots]);
        }
    }
}

/// What is resident, bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn ten_hours_leave_memory_flat() {
    let records: u64 = std::env::var("ROCTOP_LONG_RECORDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2_600_000);
    let step = HOURS * 3600 * SECOND / records;
    let place = TestDir::new("hours");
    let file = process(&place, 77, 100);
    calibrate(&file, START, START);
    let claim = claim(&file);
    let mut live = Live::new(&place.0);
    let (mut decoder, mut store) = (Decoder::default(), Store::new(Options::default()));
    let (mut read, mut lost, mut items) = (0, 0, 0);
    let mut sizes = Vec::new();
    for number in 0..records {
        let now = START + number * step;
        write(&claim, number, now);
        if number % BATCH == BATCH - 1 || number == records - 1 {
            calibrate(&file, now, now);
            let progress = live.poll(now + step, &mut decoder).unwrap();
            (read, lost) = (read + progress.records, lost + progress.lost);
            let new = decoder.take_items();
            items += new.iter().filter(|item| matches!(item, Item::Dispatch(_))).count();
            store.apply_all(&new);
            drop(new);
            drop(store.snapshot(Fresh::All));
            sizes.push(resident());
        }
    }
    assert_eq!((read, lost), (records + 1, 0));
    assert_eq!(items as u64, (records + 1) / 4);
    // The first half fills what is bounded, a million slices among it; from then on nothing grows.
    let (half, end) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
    println!(
        "{records} records of {HOURS} hours: {} MiB at the half, {} MiB at the end, {} MiB at most",
        half >> 20,
        end >> 20,
        sizes.iter().max().unwrap() >> 20
    );
    assert!(end < half + (4 << 20), "{half} bytes, later {end}");
    assert!(end < 256 << 20, "{end} bytes");
}

/// Counts what a viewer is told.
#[derive(Default)]
struct Counts {
    headers: Vec<(ProcessId, u32, u64)>,
    records: BTreeMap<ProcessId, u64>,
    lost: BTreeMap<ProcessId, u64>,
    /// Correlation ids of calls, in order.
    calls: Vec<u64>,
    ended: Vec<(ProcessId, Exit)>,
}

impl RawSink for Counts {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        match raw {
            Raw::Header(header) => self.headers.push((process, header.pid, header.start_ticks)),
            Raw::Record(_, slots) => {
                *self.records.entry(process).or_default() += 1;
                let slots: &[Slot] = slots;
                if Head(slots[0][0]).kind() == ApiCall::KIND {
                    self.calls.push(ApiCall::decode(slots).correlation);
                }
            }
            Raw::Lost(_, _, records) => *self.lost.entry(process).or_default() += records,
            Raw::Ended(exit, _) => self.ended.push((process, *exit)),
            _ => {}
        }
    }
}

impl Counts {
    fn of(&self, process: u32) -> (u64, u64) {
        let at = |map: &BTreeMap<ProcessId, u64>| map.get(&ProcessId(process)).copied().unwrap_or(0);
        (at(&self.records), at(&self.lost))
    }
}

#[test]
fn several_viewers_read_at_once_and_one_that_was_stopped_or_started_again_knows_what_it_missed() {
    const RECORDS: u64 = 400_000;
    let place = TestDir::new("viewers");
    let file = process(&place, 77, 100);
    calibrate(&file, START, START);
    let claim = claim(&file);
    let viewer = || (Live::new(&place.0), Counts::default());
    let (mut prompt, mut slow, mut stopped, mut killed) = (viewer(), viewer(), viewer(), viewer());
    let mut late = None;
    let look = |viewer: &mut (Live, Counts), now: u64| viewer.0.poll(now, &mut viewer.1).unwrap();
    look(&mut stopped, START);
    for number in 0..RECORDS {
        let now = START + number * 1000;
        write(&claim, number, now);
        if number % BATCH == 0 {
            look(&mut prompt, now);
        }
        if number % (40 * BATCH) == 0 {
            look(&mut slow, now);
            // Started again each time: it begins with what the rings still hold.
            killed = viewer();
            look(&mut killed, now);
        }
        if number == RECORDS / 2 {
            late = Some((Live::late(&place.0), Counts::default()));
        }
        if let Some(late) = &mut late
            && number % BATCH == 0
        {
            look(late, now);
        }
    }
    let mut late = late.unwrap();
    for viewer in [&mut prompt, &mut slow, &mut stopped, &mut killed, &mut late] {
        look(viewer, START + RECORDS * 1000);
        viewer
            .0
            .exited(77, Exit::Code(0), START + RECORDS * 1000, &mut viewer.1)
            .unwrap();
    }
    let written = RECORDS + 1;
    assert_eq!(prompt.1.of(0), (written, 0));
    for (name, (_, counts)) in [("slow", &slow), ("stopped", &stopped), ("started again", &killed)] {
        let (seen, lost) = counts.of(0);
        assert_eq!(seen + lost, written, "{name}");
        assert!(seen > 0 && lost > 0, "{name}");
    }
    // Who comes late is told nothing of what was overwritten before, and misses nothing after.
    let (seen, lost) = late.1.of(0);
    assert!(lost == 0 && seen > RECORDS / 2, "{seen} seen, {lost} lost");
    let all = &prompt.1.calls;
    assert_eq!(late.1.calls, all[all.len() - late.1.calls.len()..]);
}

#[test]
fn a_process_id_that_is_used_again_is_another_process() {
    let place = TestDir::new("reuse");
    let (mut live, mut counts) = (Live::new(&place.0), Counts::default());
    for (life, records) in [(100, 10), (200, 20), (300, 30)] {
        let file = process(&place, 77, life);
        calibrate(&file, START, START);
        let claim = claim(&file);
        for number in 0..records {
            write(&claim, number, START + number);
        }
        live.poll(START + 1000, &mut counts).unwrap();
        drop(file);
        live.exited(77, Exit::Code(life as i32), START + 2000, &mut counts)
            .unwrap();
    }
    let headers: Vec<_> = counts
        .headers
        .iter()
        .map(|(process, pid, start)| (process.0, *pid, *start))
        .collect();
    assert_eq!(headers, [(0, 77, 100), (1, 77, 200), (2, 77, 300)]);
    assert_eq!([counts.of(0), counts.of(1), counts.of(2)], [(11, 0), (21, 0), (31, 0)]);
    let ended: Vec<_> = counts.ended.iter().map(|(process, exit)| (process.0, *exit)).collect();
    assert_eq!(
        ended,
        [(0, Exit::Code(100)), (1, Exit::Code(200)), (2, Exit::Code(300))]
    );
}

#[test]
fn a_step_of_the_wall_clock_moves_nothing() {
    let spans = |steps: [i64; 6]| {
        let place = TestDir::new(&format!("steps{}", steps[1]));
        let file = process(&place, 77, 100);
        let claim = claim(&file);
        let (mut live, mut decoder) = (Live::new(&place.0), Decoder::default());
        let mut spans = Vec::new();
        for (second, step) in steps.into_iter().enumerate() {
            let now = START + second as u64 * SECOND;
            calibrate(&file, now, (1_700_000_000 * SECOND + now).saturating_add_signed(step));
            for number in 0..8 {
                write(&claim, number, now + number);
            }
            live.poll(now, &mut decoder).unwrap();
            spans.extend(decoder.take_items().iter().filter_map(|item| match item {
                Item::Dispatch(dispatch) => Some((dispatch.span.begin, dispatch.span.end)),
                Item::Api(call) => Some((call.span.begin, call.span.end)),
                _ => None,
            }));
        }
        spans
    };
    let hour = 3600 * SECOND as i64;
    let steady = spans([0; 6]);
    assert!(steady.len() >= 30);
    assert_eq!(spans([0, hour, hour, -hour, -hour, -20 * 365 * 24 * hour]), steady);
}
