//! The driver's system clock, to which the run-times convert GPU ticks.
//!
//! It is the kernel's CLOCK_BOOTTIME. A process in a time namespace reads a different one, and HSA 6 and later return
//! the process's. GPU times are therefore first compared with the process's clock; until some were seen, or if one is
//! impossible, nothing is known of HSA's clock. Then the driver is asked, and only if its clock differs, it is sampled
//! from then on: the viewer converts by the samples. In a program with correct times, no file is opened.
//! Source: `AMDKFD_IOC_GET_CLOCK_COUNTERS` (linux/kfd_ioctl.h).

#![expect(unsafe_code, reason = "an ioctl")]

use crate::clock;
use crate::guard::Errno;
use crate::process::{self, Process};
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

/// Maximum difference of equal clocks, ns; the viewer has the same value.
const SAME_CLOCK_LIMIT: u64 = 20_000;

/// Offset of the system domain's clock to CLOCK_BOOTTIME at the last reading, ns, as an i64's bits.
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// Which clock GPU times are in.
static KNOWN: AtomicU64 = AtomicU64::new(UNKNOWN);
/// No GPU time was seen yet.
const UNKNOWN: u64 = 0;
/// HSA's clock.
const HSA: u64 = 1;
/// The driver's clock, which this process cannot read otherwise.
const DRIVER: u64 = 2;
/// Neither HSA's clock nor one that the driver reports.
const FOREIGN: u64 = 3;

/// Whether the clock of GPU times is unknown: they are kept unchanged.
pub(crate) fn is_foreign() -> bool {
    KNOWN.load(Ordering::Relaxed) == FOREIGN
}

/// Approximate time of the system domain at a CLOCK_BOOTTIME, ns: exact enough to detect an impossible time.
pub(crate) fn about(boottime: u64) -> u64 {
    boottime.wrapping_add(AHEAD.load(Ordering::Relaxed))
}

/// Offset of the driver's clock to this process's CLOCK_BOOTTIME, and its error, ns. `None` without such a driver.
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

/// Time of the system domain at CLOCK_BOOTTIME `boottime`, ns: the driver's if that is a different clock, else HSA's. 0
/// if it does not answer, or if the clock is not yet known.
pub(crate) fn time_at(boottime: u64, hsa: impl FnMut() -> u64) -> u64 {
    let found = match KNOWN.load(Ordering::Relaxed) {
        HSA => clock::ahead(hsa),
        DRIVER => ahead(),
        _ => None,
    };
    let Some((ahead, _)) = found else { return 0 };
    AHEAD.store(ahead.cast_unsigned(), Ordering::Relaxed);
    boottime.wrapping_add_signed(ahead)
}

/// HSA starts with this clock. If it is not CLOCK_BOOTTIME, it is the driver's already (5.x).
pub(crate) fn began(hsa: impl FnMut() -> u64) {
    let (ahead, width) = clock::ahead(hsa).unwrap_or((0, 0));
    AHEAD.store(ahead.cast_unsigned(), Ordering::Relaxed);
    let differs = ahead.unsigned_abs() > SAME_CLOCK_LIMIT.max(width);
    KNOWN.store(if differs { HSA } else { UNKNOWN }, Ordering::Relaxed);
    FIRST.store(FIRST_TIMES, Ordering::Relaxed);
    if differs {
        say(ahead, width);
    }
}

/// Number of GPU times that are compared with the process's clock.
const FIRST_TIMES: u64 = 16;
static FIRST: AtomicU64 = AtomicU64::new(FIRST_TIMES);

/// Checks times of completed work, ns, which was submitted at tick `submit`. Asks the driver if they are impossible.
#[inline]
pub(crate) fn saw(begin: u64, end: u64, submit: u64) {
    if FIRST.load(Ordering::Relaxed) > 0 {
        compare(begin, end, submit);
    }
}

#[cold]
fn compare(begin: u64, end: u64, submit: u64) {
    let left = FIRST.load(Ordering::Relaxed);
    FIRST.store(left.saturating_sub(1), Ordering::Relaxed);
    if KNOWN.load(Ordering::Relaxed) != UNKNOWN {
        return;
    }
    let Some(process) = process::get() else { return };
    let (now, ticks) = (clock::boottime(), clock::now());
    // Only two points of both clocks are known here; interpolation between them is exact enough.
    let (first, began) = process.started_at();
    let run = u128::from(ticks.wrapping_sub(first)).max(1);
    let since = u128::from(submit.saturating_sub(first)) * u128::from(now.saturating_sub(began)) / run;
    let submitted = began.saturating_add(since as u64);
    let (earliest, latest) = (
        about(submitted).saturating_sub(OTHER_CLOCK_LIMIT),
        about(now).saturating_add(OTHER_CLOCK_LIMIT),
    );
    if begin >= earliest && end <= latest {
        if left == 1 {
            KNOWN.store(HSA, Ordering::Relaxed);
        }
        return;
    }
    ask();
}

/// Determines the clock of GPU times by asking the driver, once; returns whether that was now.
#[cold]
pub(crate) fn ask() -> bool {
    FIRST.store(0, Ordering::Relaxed);
    // No other thread doubts a time until the answer is known.
    let first = KNOWN.compare_exchange(UNKNOWN, FOREIGN, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err() {
        return false;
    }
    match ahead() {
        None => {}
        Some((ahead, width)) if ahead.unsigned_abs() > SAME_CLOCK_LIMIT.max(width) => {
            AHEAD.store(ahead.cast_unsigned(), Ordering::Relaxed);
            KNOWN.store(DRIVER, Ordering::Relaxed);
            say(ahead, width);
            if let Some(file) = process::get().and_then(Process::main) {
                clock::calibrate(file);
            }
        }
        Some(_) => KNOWN.store(HSA, Ordering::Relaxed),
    }
    true
}

/// Minimum difference to the process's clock that shows a different clock, ns.
const OTHER_CLOCK_LIMIT: u64 = 200_000;

fn say(ahead: i64, width: u64) {
    let like = |which| clock::boottime_to(which).abs_diff(ahead) <= SAME_CLOCK_LIMIT.max(width);
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
    if let Some(process) = process::get() {
        process.say(status::NOTE, ahead.unsigned_abs(), &text);
    }
}
