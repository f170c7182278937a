//! D12: a full queue: 40 000 launches behind a long kernel, without waits. The viewer compares the time with and
//! without the collector.

#![expect(unsafe_code, reason = "calls of HIP")]

use super::started;
use crate::Options;
use crate::hip::{Hip, Spin};
use crate::outcome::{Outcome, Status};
use std::time::Instant;

const LAUNCHES: usize = 40_000;
/// Duration of the first kernel, µs.
const FRONT: f64 = 20_000.0;

pub(super) fn check(options: &Options) -> Result<Outcome, String> {
    let hip = match Hip::load() {
        Ok(hip) => hip,
        Err(error) => return Ok(Outcome::new(Status::Skipped, error)),
    };
    // SAFETY: a plain call; a GPU that HIP does not have is an error that is kept.
    hip.keep("hipSetDevice", unsafe { (hip.call.set_device)(options.gpu as i32) });
    let (hsa, gpu) = started!(options);
    let spin = match Spin::load(&hip, &hsa.gfx(gpu), gpu.frequency) {
        Ok(spin) => spin,
        Err(error) => return Ok(Outcome::new(Status::Skipped, error)),
    };
    let stream = hip.stream();
    spin.launch(stream, 1.0);
    hip.wait(stream);
    let start = Instant::now();
    spin.launch(stream, FRONT);
    for _ in 0..LAUNCHES {
        spin.launch(stream, 0.0);
    }
    let launched = start.elapsed().as_secs_f64() * 1e3;
    hip.wait(stream);
    let wall = start.elapsed().as_secs_f64() * 1e3;
    let (status, text) = match hip.codes().2 {
        Some((name, code)) => (Status::Bad, format!("{name} returns {code}")),
        None => (Status::Ok, format!("{LAUNCHES} launches in {wall:.0} ms")),
    };
    Ok(Outcome::new(status, text)
        .number("launches", (LAUNCHES + 2) as f64)
        .number("launched_ms", launched)
        .number("wall_ms", wall))
}
