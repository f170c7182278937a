//! The driver's system clock: what the run-times convert the GPU's ticks to.
//!
//! It is CLOCK_BOOTTIME as the kernel has it. A process in a time namespace reads another one, and so does whoever asks
//! HSA 6 and later for the time: these read the process's own. So the driver is asked itself, once when HSA starts; only
//! where it differs its clock is sampled from then on, and the viewer converts by the samples.
//! Source: `AMDKFD_IOC_GET_CLOCK_COUNTERS` (linux/kfd_ioctl.h).

#![expect(unsafe_code, reason = "an ioctl")]

use crate::clock;
use crate::guard::Errno;
use crate::process::Process;
use roctop_ring::record::status;
use roctop_ring::sync::{AtomicU64, Ordering};

/// `struct kfd_ioctl_get_clock_counters_args`.
#[repr(C)]
#[derive(Default)]
struct Counters {
    gpu: u64,
    raw: u64,
    system: u64,
    frequency: u64,
    gpu_id: u32,
    pad: u32,
}

/// `_IOWR('K', 0x05, struct kfd_ioctl_get_clock_counters_args)`.
const GET_CLOCK_COUNTERS: libc::c_ulong = 0xc000_4b05 | (size_of::<Counters>() as libc::c_ulong) << 16;

/// Clocks that differ by less count as one, ns: as the viewer has it.
const SAME: u64 = 20_000;

/// By how much the system domain's clock was ahead of CLOCK_BOOTTIME when it was looked at last, ns, as an i64's bits.
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// The system domain's time, ns: near enough to tell a time that cannot be.
pub(crate) fn about_now() -> u64 {
    clock::boottime().wrapping_add(AHEAD.load(Ordering::Relaxed))
}

/// 1 when the driver's clock is none that this process reads as CLOCK_BOOTTIME.
static DIFFERS: AtomicU64 = AtomicU64::new(0);

/// By how much the driver's clock is ahead of this process's CLOCK_BOOTTIME, and how exactly that is known, ns. None where
/// there is no such driver.
fn ahead() -> Option<(i64, u64)> {
    let _errno = Errno::keep();
    // SAFETY: the path is terminated.
    let file = unsafe { libc::open(c"/dev/kfd".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let found = clock::ahead(|| {
        let mut counters = Counters::default();
        // SAFETY: the request's structure, as long as it says.
        let answer = unsafe { libc::ioctl(file, GET_CLOCK_COUNTERS, &raw mut counters) };
        if answer == 0 && counters.frequency == 1_000_000_000 {
            counters.system
        } else {
            0
        }
    });
    // SAFETY: opened above.
    unsafe { libc::close(file) };
    found
}

/// What the system domain's clock shows when CLOCK_BOOTTIME shows `boottime`, ns, 0 when it does not answer: the driver's
/// where that is another one, else what HSA says.
pub(crate) fn time_at(boottime: u64, hsa: impl FnMut() -> u64) -> u64 {
    let found = if DIFFERS.load(Ordering::Relaxed) == 0 {
        clock::ahead(hsa)
    } else {
        ahead()
    };
    let Some((ahead, _)) = found else { return 0 };
    AHEAD.store(ahead.cast_unsigned(), Ordering::Relaxed);
    boottime.wrapping_add_signed(ahead)
}

/// HSA starts: looks at the driver's clock, and says so when it is another one.
pub(crate) fn look(process: &Process) {
    DIFFERS.store(0, Ordering::Relaxed);
    let Some((ahead, width)) = ahead() else { return };
    if ahead.unsigned_abs() <= SAME.max(width) {
        return;
    }
    DIFFERS.store(1, Ordering::Relaxed);
    let like = |which| clock::boottime_to(which).abs_diff(ahead) <= SAME.max(width);
    let known = [
        (libc::CLOCK_MONOTONIC, "CLOCK_MONOTONIC"),
        (libc::CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"),
        (libc::CLOCK_REALTIME, "CLOCK_REALTIME"),
    ];
    let what = known.iter().find(|(which, _)| like(*which)).map_or_else(
        || "a time namespace, or an emulation".to_owned(),
        |(_, name)| format!("it is {name}"),
    );
    let way = if ahead < 0 { "behind" } else { "ahead of" };
    let text = format!(
        "the driver's clock is {:.6} s {way} CLOCK_BOOTTIME ({what}): times of the GPU are converted by samples of both",
        ahead.unsigned_abs() as f64 / 1e9
    );
    process.say(status::NOTE, ahead.unsigned_abs(), &text);
}
