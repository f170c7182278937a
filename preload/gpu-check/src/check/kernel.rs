//! D6: compares times of the packet processor with the kernel's own clock. D13: concurrent kernels of two queues.

use super::{median, started};
use crate::Options;
use crate::hsa::Lane;
use crate::outcome::{Outcome, Status};
use crate::spin::{NO_WITNESS, Spin};
use std::time::Duration;

/// Durations of D6's kernels, µs.
const LENGTHS: [u64; 5] = [10, 100, 1_000, 10_000, 100_000];
const TIMES: usize = 5;
/// Maximum excess of the packet processor's span over the kernel's, ns.
const EXCESS: f64 = 10_000.0;
/// Maximum relative difference of durations, for kernels that are long enough.
const RATIO: f64 = 0.01;
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum disagreement of clocks, ns; D7 measures it.
const CLOCK_TOLERANCE: u64 = 2_000_000;

pub(super) fn times(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let lane = Lane::create(hsa, gpu, 1024)?;
    let spin = match Spin::load(hsa, gpu, LENGTHS.len() * TIMES) {
        Ok(spin) => spin,
        Err(error) => return Ok(Outcome::new(Status::Skipped, error)),
    };
    let (mut excess, mut ratios, mut outside) = (Vec::new(), Vec::new(), 0);
    let (mut launch, mut wrong, mut before) = (0, 0, [0; 2]);
    let mut has_witness = true;
    for length in LENGTHS {
        for _ in 0..if length > 10_000 { 2 } else { TIMES } {
            let signal = hsa.signal(1)?;
            let submitted = hsa.now();
            spin.launch(&lane, launch, Duration::from_micros(length), signal, LIMIT)?;
            hsa.wait(signal, LIMIT)?;
            let span = hsa.span(gpu, signal)?;
            wrong += usize::from(!is_possible(span, [submitted, hsa.now()]) || span == before);
            before = span;
            launch += 1;
            let Some(own) = spin.witness(launch - 1) else {
                has_witness = false;
                continue;
            };
            let [begin, end] = [hsa.at(gpu, own[0])?, hsa.at(gpu, own[1])?];
            let processor = span[1].saturating_sub(span[0]) as f64;
            let kernel = end.saturating_sub(begin) as f64;
            excess.push(processor - kernel);
            if length >= 1_000 {
                ratios.push(processor / kernel.max(1.0));
            }
            outside += usize::from(begin + 1_000 < span[0] || end > span[1] + 1_000);
        }
    }
    if wrong > 0 {
        let text = format!("{wrong} of {launch} kernels have times that cannot be theirs");
        return Ok(Outcome::new(Status::Bad, text).number("wrong", wrong as f64));
    }
    if !has_witness {
        return Ok(Outcome::new(Status::Note, NO_WITNESS).number("kernels", launch as f64));
    }
    let most = excess.iter().copied().fold(0.0, f64::max);
    let least = excess.iter().copied().fold(0.0, f64::min);
    let (excess, ratio) = (median(&mut excess), median(&mut ratios));
    let (status, text) = if (ratio - 1.0).abs() > RATIO {
        (
            Status::Bad,
            format!("durations of the packet processor are {ratio:.3} times the kernel's own"),
        )
    } else if most > 10.0 * EXCESS || least < -1_000.0 || excess > EXCESS {
        let text = format!(
            "spans of the packet processor exceed the kernel's by {:.1} us, at most {:.1}",
            excess / 1e3,
            most / 1e3
        );
        (Status::Bad, text)
    } else if outside > 0 {
        (
            Status::Note,
            format!("{outside} of {launch} kernels are outside of their spans by the kernel's own clock"),
        )
    } else {
        (
            Status::Ok,
            format!(
                "{launch} kernels inside their spans, which are {:.1} us longer",
                excess / 1e3
            ),
        )
    };
    Ok(Outcome::new(status, text)
        .number("kernels", launch as f64)
        .number("excess_us", excess / 1e3)
        .number("most_excess_us", most / 1e3)
        .number("ratio", ratio)
        .number("outside", outside as f64))
}

/// Whether a kernel that was submitted and seen complete at these times can have run then.
fn is_possible(span: [u64; 2], bracket: [u64; 2]) -> bool {
    !span.contains(&0)
        && span[0] <= span[1]
        && span[0] + CLOCK_TOLERANCE >= bracket[0]
        && span[1] <= bracket[1] + CLOCK_TOLERANCE
}

/// Duration of D13's kernels.
const BOTH: Duration = Duration::from_millis(20);

pub(super) fn overlap(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let lanes = [Lane::create(hsa, gpu, 1024)?, Lane::create(hsa, gpu, 1024)?];
    let spin = match Spin::load(hsa, gpu, 2) {
        Ok(spin) => spin,
        Err(error) => return Ok(Outcome::new(Status::Skipped, error)),
    };
    let signals = [hsa.signal(1)?, hsa.signal(1)?];
    for (launch, (lane, signal)) in lanes.iter().zip(signals).enumerate() {
        spin.launch(lane, launch, BOTH, signal, LIMIT)?;
    }
    for signal in signals {
        hsa.wait(signal, LIMIT)?;
    }
    let (Some(first), Some(second)) = (spin.witness(0), spin.witness(1)) else {
        return Ok(Outcome::new(Status::Note, NO_WITNESS));
    };
    let ticks = first[1].min(second[1]).saturating_sub(first[0].max(second[0]));
    let own = spin.nanoseconds(ticks) / 1e3;
    let text = format!(
        "kernels of two queues run at a time for {:.1} of {} ms",
        own / 1e3,
        BOTH.as_millis()
    );
    let spans = [hsa.span(gpu, signals[0])?, hsa.span(gpu, signals[1])?];
    let seen = spans[0][1]
        .min(spans[1][1])
        .saturating_sub(spans[0][0].max(spans[1][0])) as f64
        / 1e3;
    Ok(Outcome::new(if own > 0.0 { Status::Ok } else { Status::Note }, text)
        .number("kernel_overlap_us", own)
        .number("processor_overlap_us", seen))
}
