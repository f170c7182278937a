//! D14: a process that is killed with kernels in flight. D15: children, repeated HSA starts, a kernel with a bad
//! address.

#![expect(unsafe_code, reason = "a kill, a fork, calls of HSA")]

use super::started;
use crate::Options;
use crate::hsa::{Hsa, Lane, done, until};
use crate::outcome::{Outcome, Status};
use crate::spin::{NO_WITNESS, Spin};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Number of D14's kernels.
const KERNELS: usize = 1_000;
/// Duration of each.
const LENGTH: Duration = Duration::from_micros(50);
const LIMIT: Duration = Duration::from_secs(2);

/// Prints how many kernels were seen complete, and kills the process.
pub(super) fn killed(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let lane = Lane::create(hsa, gpu, 4096)?;
    let spin = match Spin::load(hsa, gpu, KERNELS) {
        Ok(spin) => spin,
        Err(error) => return Ok(Outcome::new(Status::Skipped, error)),
    };
    let all = hsa.signal(KERNELS as i64)?;
    for launch in 0..KERNELS {
        spin.launch(&lane, launch, LENGTH, all, LIMIT)?;
    }
    until(LIMIT, || hsa.value(all) <= KERNELS as i64 / 2);
    let left = hsa.value(all).max(0) as usize;
    let witnessed = (0..KERNELS).filter(|launch| spin.witness(*launch).is_some()).count();
    let outcome = Outcome::new(
        if left > 0 { Status::Ok } else { Status::Note },
        format!("killed with {left} of {KERNELS} kernels in flight"),
    )
    .number("launched", KERNELS as f64)
    .number("completed", (KERNELS - left) as f64)
    .number("witnessed", witnessed as f64);
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{}", outcome.line("D14")).and_then(|()| out.flush());
    // SAFETY: the process ends here.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    Err("the process was not killed".to_owned())
}

/// Some barriers with signals of the run-time.
fn barriers(hsa: &'static Hsa, options: &Options) -> Result<(), String> {
    let gpu = hsa.gpus.get(options.gpu).copied().ok_or("HSA has no such GPU")?;
    let lane = Lane::create(hsa, gpu, 1024)?;
    for _ in 0..16 {
        let signal = hsa.signal(1)?;
        lane.barrier(signal, LIMIT)?;
        hsa.wait(signal, LIMIT)?;
    }
    lane.destroy()
}

pub(super) fn again(options: &Options) -> Result<Outcome, String> {
    let (hsa, _) = started!(options);
    barriers(hsa, options)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("D15-child").stdin(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the hook does nothing; with one the child is made by fork.
    unsafe { command.pre_exec(|| Ok(())) };
    let child = command
        .output()
        .map_err(|error| format!("a child cannot be started: {error}"))?;
    if !child.status.success() {
        return Err(format!(
            "a child that is started while HSA runs ends with {}",
            child.status
        ));
    }
    barriers(hsa, options).map_err(|error| format!("after a fork: {error}"))?;
    for round in 0..2 {
        // SAFETY: HSA was started by this process; nothing of it is used any more.
        done("hsa_shut_down", unsafe { (hsa.call.shut_down)() })?;
        let next = Hsa::start()?;
        barriers(next, options).map_err(|error| format!("HSA's start {}: {error}", round + 2))?;
    }
    Ok(Outcome::new(Status::Ok, "a child, and HSA started three times"))
}

/// The child of D15: it starts HSA itself.
pub(super) fn child(options: &Options) -> Result<Outcome, String> {
    let (hsa, _) = started!(options);
    barriers(hsa, options)?;
    Ok(Outcome::new(Status::Ok, "a child that starts HSA"))
}

/// Runs a kernel that stores to an unmapped address: HSA must end the process.
pub(super) fn fault(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let lane = Lane::create(hsa, gpu, 1024)?;
    let mut spin = match Spin::load(hsa, gpu, 1) {
        Ok(spin) => spin,
        Err(error) => return Ok(Outcome::new(Status::Skipped, error)),
    };
    spin.mark_at(0x10_0000_0000);
    let signal = hsa.signal(1)?;
    spin.launch(&lane, 0, Duration::ZERO, signal, LIMIT)?;
    let is_over = hsa.wait(signal, LIMIT).is_ok();
    if is_over && spin.witness(0).is_none() {
        return Ok(Outcome::new(Status::Note, NO_WITNESS));
    }
    Err("a kernel that stores to a bad address is not reported".to_owned())
}
