//! D0: properties of HSA and its GPUs. D1: a queue without any part of roctop.

#![expect(unsafe_code, reason = "an ioctl")]

use super::started;
use crate::Options;
use crate::hip;
use crate::hsa::Lane;
use crate::library::Library;
use crate::outcome::{Outcome, Status};
use std::time::{Duration, Instant};

/// Number of D1's barriers.
const BARRIERS: usize = 64;
/// Time in which they should complete.
const LIMIT: Duration = Duration::from_millis(100);
/// Time for which a busy GPU may delay them.
const BUSY_LIMIT: Duration = Duration::from_secs(3);

pub(super) fn inventory(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let (major, minor, build) = hsa.version();
    let names: Vec<String> = hsa.gpus.iter().map(|gpu| hsa.gfx(*gpu)).collect();
    let mut outcome = Outcome::new(Status::Ok, format!("{} with HSA {major}.{minor}", names.join(", ")))
        .number("gpus", names.len() as f64)
        .number("counter_hz", gpu.declared.unwrap_or(gpu.frequency))
        .fact("kfd", driver().unwrap_or_default())
        .fact("gfx", hsa.gfx(gpu))
        .fact("gpus", names.join(","))
        .fact("targets", hsa.targets(gpu).join(","))
        .fact("hsa", format!("{major}.{minor}"))
        .fact("hsa_build", build)
        .fact("hsa_build_id", hsa.library.build_id(c"hsa_init"));
    match Library::open(&hip::NAMES) {
        Ok(library) => {
            outcome = outcome
                .fact("hip_library", library.name)
                .fact("hip_build_id", library.build_id(c"hipInit"))
                .fact("hip", hip::version(library).unwrap_or_default());
        }
        Err(error) => outcome = outcome.fact("hip", error),
    }
    Ok(outcome)
}

/// Version of the driver's interface (`AMDKFD_IOC_GET_VERSION`).
fn driver() -> Option<String> {
    const GET_VERSION: libc::c_ulong = 0x8008_4b01;
    // SAFETY: the path is terminated.
    let file = unsafe { libc::open(c"/dev/kfd".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut version = [0u32; 2];
    // SAFETY: the request writes two numbers of 32 bits; the descriptor was opened above.
    let status = unsafe {
        let status = libc::ioctl(file, GET_VERSION, &raw mut version);
        libc::close(file);
        status
    };
    (status == 0).then(|| format!("{}.{}", version[0], version[1]))
}

pub(super) fn plain(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let lane = Lane::create(hsa, gpu, 1024)?;
    let signals = (0..BARRIERS).map(|_| hsa.signal(1)).collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    for signal in &signals {
        lane.barrier(*signal, Duration::from_secs(1))?;
    }
    let mut done = 0;
    for signal in &signals {
        if hsa.wait(*signal, BUSY_LIMIT).is_err() {
            break;
        }
        done += 1;
    }
    let taken = start.elapsed();
    let span = hsa.span(gpu, signals[0])?;
    let milliseconds = taken.as_secs_f64() * 1e3;
    let (status, text) = if done < BARRIERS {
        (
            Status::Bad,
            format!("{done} of {BARRIERS} barriers on the run-time's own signals complete"),
        )
    } else if taken > LIMIT {
        (
            Status::Note,
            format!("{BARRIERS} barriers take {milliseconds:.0} ms: the GPU or the host is busy"),
        )
    } else if span.contains(&0) {
        (Status::Bad, "the run-time gives no times of a packet".to_owned())
    } else {
        (
            Status::Ok,
            format!("{BARRIERS} barriers on the run-time's own signals in {milliseconds:.1} ms"),
        )
    };
    Ok(Outcome::new(status, text)
        .number("barriers", done as f64)
        .number("milliseconds", milliseconds))
}
