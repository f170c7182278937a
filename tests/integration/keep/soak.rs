//! The flight recorder without a rest: thousands of triggers a second, one recording after the other. `ROCTOP_KEEP_SECONDS` is
//! how long; `.ci/long` takes an hour.

use super::{Kept, demo, entries, events, said};
use crate::kit::directory::place;
use std::time::Duration;

/// Memory that may come in the second half, KiB: the allocator's own, and the decoder's texts up to their limit.
const MAX_GROWTH: u64 = 24 << 10;

fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().split(' ').next()?.parse().ok()
}

#[test]
#[ignore = "time: .ci/matrix"]
fn timed_memory_does_not_grow_with_recordings() {
    let seconds: u64 = std::env::var("ROCTOP_KEEP_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(12);
    let runs = place("keep-soak").join("runs");
    let options = [
        "--keep",
        "2s",
        "--after",
        "1s",
        "--keep-interval",
        "0s",
        "--keep-recordings",
        "4",
        "--log",
        "json",
    ];
    let options = [&options[..], &["--on", "dur(hip*) > 1ns", "--on", "step > 2*p50(step)"]].concat();
    let mut program = demo(&runs, &seconds.to_string(), &options);
    let log = place("keep-soak-log").join("log");
    let mut program = program.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let (mut readings, mut most) = (Vec::new(), 0);
    while program.try_wait().unwrap().is_none() {
        readings.extend(resident(program.id()));
        most = most.max(entries(&runs).len());
        std::thread::sleep(Duration::from_millis(100));
    }
    let output = program.wait_with_output().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(output.status.success(), "{text}{}", said(&output));
    let recordings = events(&text)["recording"].len() as u64;
    assert!(recordings >= seconds / 3, "{recordings} recordings in {seconds} s");
    // Four, the one that is being written, and one that is about to be removed.
    assert!(most <= 6, "{most} recordings at once");
    for path in entries(&runs) {
        let kept = Kept::load(&path);
        assert!(kept.replay.finished && kept.replay.damaged == 0, "{:?}", kept.replay);
    }
    let peak = |part: &[u64]| part.iter().copied().max().unwrap_or(0);
    let (middle, end) = (readings.len() / 2, readings.len());
    let (before, after) = (peak(&readings[middle / 2..middle]), peak(&readings[middle..end]));
    assert!(after <= before + MAX_GROWTH, "{before} KiB, then {after} KiB");
    assert!(after < 256 << 10, "{after} KiB");
    println!(
        "keep: {recordings} recordings in {seconds} s, {} MiB, then {} MiB",
        before >> 10,
        after >> 10
    );
}
