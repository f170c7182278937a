//! Programs that use HSA without HIP, on the real run-time and the emulated GPU: every dispatch and copy of the truth log
//! is recorded once, with its times, and the program reads from its own signals what it would read alone.
//!
//! Needs libhsa-runtime64 with its headers and the emulated GPU's library (`cargo build -p emulated-gpu`).

use crate::place::{TestDir, library, out};
use roctop_ring::layout::counter;
use roctop_ring::record::{Body, flag};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A microsecond: what a time may differ from the log.
const TOLERANCE: u64 = 1000;

pub(crate) fn emulated_gpu() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("EMULATED_GPU_SO") {
        return Some(PathBuf::from(named)).filter(|path| path.exists());
    }
    let own = std::env::current_exe().ok()?;
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|dir| dir.join("libemulated_gpu.so"))
        .find(|path| path.exists())
}

/// Runs the program's `mode` and compares what was recorded with the truth log.
fn agrees_with_the_log(mode: &str) {
    let untimed = untimed_beside_the_log(mode);
    assert_eq!(untimed, 0, "records without times");
}

/// As above; records may have no times, and are counted.
fn untimed_beside_the_log(mode: &str) -> usize {
    let Some(place) = TestDir::new() else { return 0 };
    let (Some(gpu), true) = (emulated_gpu(), Path::new("/usr/include/hsa/hsa_ext_amd.h").exists()) else {
        eprintln!("skipped: needs HSA's headers and the emulated GPU");
        return 0;
    };
    let program = place.compile("raw_hsa", "raw_hsa", &["-w", "-lhsa-runtime64"]);
    let log = place.dir.join("truth.csv");
    let preload = format!("{} {}", gpu.display(), library().display());
    let mut command = place.traced(&program);
    let command = command
        .env("LD_PRELOAD", preload)
        .env("HSA_TOOLS_LIB", library())
        .env("EMULATED_GPU_LOG", &log);
    let result = command.arg(mode).output().unwrap();
    assert_eq!(
        out(&result),
        "wrong times 0\n",
        "{}",
        String::from_utf8_lossy(&result.stderr)
    );
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.lost, 0);

    let text = std::fs::read_to_string(log).unwrap();
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<HashMap<&str, &str>> = lines
        .map(|line| columns.iter().copied().zip(line.split(',')).collect())
        .collect();
    let number = |row: &HashMap<&str, &str>, column: &str| row[column].parse::<u64>().unwrap();
    let logged = |kind: &str, size: &str| {
        let rows = rows
            .iter()
            .filter(|row| row["kind"].starts_with(kind) && row["queue"] != "0");
        let mut spans: Vec<_> = rows
            .map(|row| (number(row, size), number(row, "begin_ns"), number(row, "end_ns")))
            .collect();
        spans.sort_unstable();
        spans
    };
    let mut dispatches = Vec::new();
    let mut copies = Vec::new();
    for (_, _, body) in &ring.records {
        match body {
            Body::Dispatch(d) => dispatches.push((u64::from(d.grid_x), d.begin, d.end)),
            Body::Copy(c) => copies.push((c.bytes, c.begin, c.end)),
            _ => {}
        }
    }
    let mut untimed = 0;
    for (found, wanted, what) in [
        (dispatches, logged("dispatch", "grid_x"), "dispatches"),
        (copies, logged("sdma", "bytes"), "copies"),
    ] {
        assert_eq!(found.len(), wanted.len(), "{what}");
        let is_same = |found: &(u64, u64, u64), wanted: &(u64, u64, u64)| {
            found.0 == wanted.0 && found.1.abs_diff(wanted.1) < TOLERANCE && found.2.abs_diff(wanted.2) < TOLERANCE
        };
        let (mut timed, other): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| found.1 != 0);
        timed.sort_unstable();
        let mut left = wanted.iter();
        for found in &timed {
            let is_there = left.any(|wanted| is_same(found, wanted));
            assert!(is_there, "{what}: {found:?} {wanted:?}");
        }
        untimed += other.len();
    }
    let flagged = ring.flags.iter().filter(|flags| **flags & flag::UNTIMED != 0);
    assert_eq!(flagged.count(), untimed);
    untimed
}

#[test]
fn signals_of_the_program_are_read_in_place() {
    agrees_with_the_log("in-place");
}

#[test]
fn a_signal_that_counts_many_dispatches_still_counts() {
    agrees_with_the_log("counting");
}

#[test]
fn more_dispatches_than_the_queue_holds_all_have_times() {
    agrees_with_the_log("none");
}

#[test]
fn copies_keep_their_times_for_the_program_too() {
    agrees_with_the_log("copies");
}

#[test]
fn the_run_time_may_be_started_again() {
    agrees_with_the_log("again");
}

#[test]
fn the_run_time_may_be_started_again_while_copies_are_under_way() {
    let Some(place) = TestDir::new() else { return };
    let (Some(gpu), true) = (emulated_gpu(), Path::new("/usr/include/hsa/hsa_ext_amd.h").exists()) else {
        eprintln!("skipped: needs HSA's headers and the emulated GPU");
        return;
    };
    let program = place.compile("raw_hsa", "raw_hsa", &["-w", "-lhsa-runtime64"]);
    // Eight copies that nobody waits for in the first start, and in the third; each takes so long.
    for (latency, name) in [("2000", "short"), ("3000000", "long")] {
        let preload = format!("{} {}", gpu.display(), library().display());
        let log = place.dir.join(name);
        let mut command = place.traced(&program);
        command.env("LD_PRELOAD", preload).env("HSA_TOOLS_LIB", library());
        command
            .env("EMULATED_GPU_LOG", &log)
            .env("EMULATED_GPU_COPY_LATENCY_NS", latency);
        let result = command.arg("open").output().unwrap();
        assert_eq!(out(&result), "wrong times 0\n", "{result:?}");
        let [ring] = &place.rings()[..] else { panic!("one ring") };
        assert_eq!(ring.lost, 0);
        let text = std::fs::read_to_string(&log).unwrap();
        let logged = |kind: &str| text.lines().filter(|line| line.starts_with(kind)).count();
        let under_way = ring.counter(counter::COPIES) - ring.counter(counter::COPIES_RECORDED);
        let (mut dispatches, mut copies) = (0, Vec::new());
        for (_, _, body) in &ring.records {
            match body {
                Body::Dispatch(one) => dispatches += usize::from(one.begin < one.end),
                Body::Copy(one) => copies.push(one),
                _ => {}
            }
        }
        assert_eq!(dispatches, logged("dispatch"), "{name}");
        assert_eq!(copies.len() as u64 + under_way, logged("sdma") as u64, "{name}");
        assert!(copies.iter().all(|one| one.begin < one.end), "{name}: {copies:?}");
        std::fs::remove_dir_all(place.session()).unwrap();
        std::fs::create_dir(place.session()).unwrap();
    }
}

#[test]
fn a_full_queue_that_waits_for_the_ringing_thread_goes_on() {
    agrees_with_the_log("full");
}

#[test]
fn a_full_queue_with_a_counting_signal_goes_on_with_fewer_times() {
    let untimed = untimed_beside_the_log("full-counting");
    assert!(untimed < 63, "{untimed}");
}

#[test]
fn copies_of_nothing_are_none_and_take_no_room() {
    agrees_with_the_log("empty-copies");
}

#[test]
fn a_copy_that_waits_takes_no_times_from_thousands_of_others() {
    agrees_with_the_log("slow-copy");
}

#[test]
fn the_program_reads_the_newest_times_of_a_signal_of_copies() {
    agrees_with_the_log("copy-times");
}

#[test]
fn a_program_that_wants_no_times_does_not_take_ours() {
    agrees_with_the_log("unprofiled");
}
