//! D7: compares times of packets with the host's clock, and the run-time's conversions over two seconds with each other
//! and with the declared frequency.

#![expect(unsafe_code, reason = "signals of the run-time's")]

use super::started;
use crate::Options;
use crate::hsa::{Lane, deviates};
use crate::outcome::{Outcome, Status};
use hsa_sys::abi::Signal;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Number of packets whose times are compared.
const SAMPLES: usize = 50;
/// Maximum deviation of times from the host's bracket, ns.
const ALLOWED: i64 = 20_000;
/// Maximum change of a tick's conversion over time, ns.
const JUMP: f64 = 50_000.0;
const LIMIT: Duration = Duration::from_millis(600);

pub(super) fn check(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let lane = Lane::create(hsa, gpu, 1024)?;
    let (mut early, mut late) = (i64::MIN, i64::MIN);
    let mut samples: Vec<[u64; 2]> = Vec::new();
    for _ in 0..SAMPLES {
        // A signal of the run-time: other kinds are tested elsewhere.
        let handle = hsa.signal(1)?;
        let before = hsa.now();
        lane.barrier(handle, LIMIT)?;
        if hsa.wait(handle, LIMIT).is_err() {
            return Ok(Outcome::new(Status::Bad, "a barrier does not complete"));
        }
        let after = hsa.now();
        // SAFETY: a signal's handle is its address, and the signal stays.
        let signal = unsafe { &*(handle as *const Signal) };
        let ticks = [&signal.start, &signal.end].map(|tick| tick.load(Ordering::Acquire));
        if ticks.contains(&0) {
            return Ok(Outcome::new(Status::Bad, "a barrier has no times"));
        }
        let [begin, end] = [hsa.at(gpu, ticks[0])?, hsa.at(gpu, ticks[1])?];
        early = early.max(before.cast_signed().wrapping_sub(begin.cast_signed()));
        late = late.max(end.cast_signed().wrapping_sub(after.cast_signed()));
        samples.push([ticks[0], begin]);
        std::thread::sleep(options.time / SAMPLES as u32);
    }
    let mut jump = 0f64;
    for [tick, then] in &samples {
        let now = hsa.at(gpu, *tick)?;
        let moved = now.cast_signed().wrapping_sub(then.cast_signed()) as f64;
        if moved.abs() > jump.abs() {
            jump = moved;
        }
    }
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    let ticks = last[0].saturating_sub(first[0]) as f64;
    let nanoseconds = last[1].saturating_sub(first[1]) as f64;
    let (drift, hertz) = if ticks > 0.0 {
        let drift = (nanoseconds / (ticks * 1e9 / gpu.frequency) - 1.0) * 1e6;
        (drift, ticks * 1e9 / nanoseconds)
    } else {
        (0.0, gpu.frequency)
    };
    let (status, text) = if early > ALLOWED || late > ALLOWED {
        let text = format!(
            "packets begin up to {} us before their doorbell and end up to {} us after they were seen complete",
            early.max(0) / 1000,
            late.max(0) / 1000
        );
        (Status::Bad, text)
    } else if let Some(declared) = gpu.declared.filter(|declared| deviates(*declared, hertz)) {
        let [declared, hertz] = [declared, hertz].map(|hertz| hertz / 1e6);
        let text = format!(
            "the driver declares {declared:.2} MHz for the GPU's counter, the run-time converts at {hertz:.2} MHz: times \
             follow the run-time"
        );
        (Status::Note, text)
    } else if jump.abs() > JUMP {
        (
            Status::Note,
            format!("a tick is converted otherwise later, by {:.0} us", jump / 1e3),
        )
    } else {
        (
            Status::Ok,
            format!(
                "{SAMPLES} times inside the host's brackets; drift {drift:.1} ppm, conversions move {:.2} us",
                jump / 1e3
            ),
        )
    };
    Ok(Outcome::new(status, text)
        .number("early_us", early as f64 / 1e3)
        .number("late_us", late as f64 / 1e3)
        .number("drift_ppm", drift)
        .number("counter_hz", hertz)
        .number("conversion_moves_us", jump / 1e3))
}
