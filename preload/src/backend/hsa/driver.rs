//! The driver's system clock: what the run-times convert the GPU's ticks to.
//!
//! It is CLOCK_BOOTTIME as the kernel has it. A process in a time namespace reads another one, and so does whoever asks
//! HSA 6 and later for the time: these read the process's own. So times of the GPU are compared with the process's clock
//! first; until some were seen, or when one cannot be, nothing is known of HSA's clock. Then the driver is asked itself, and
//! only where it differs its clock is sampled from then on: the viewer converts by the samples.
//! Nothing is opened in a program whose times are right.
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

/// Clocks that differ by less count as one, ns: as the viewer has it.
const SAME_CLOCK_LIMIT: u64 = 20_000;

/// By how much the system domain's clock was ahead of CLOCK_BOOTTIME when it was looked at last, ns, as an i64's bits.
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// What is known of the clock that GPU times are in.
static KNOWN: AtomicU64 = AtomicU64::new(UNKNOWN);
/// No time of the GPU was seen yet.
const UNKNOWN: u64 = 0;
/// It is what HSA says.
const HSA: u64 = 1;
/// It is the driver's, and this process reads it nowhere.
const DRIVER: u64 = 2;
/// It is neither HSA's nor one that the driver tells.
const FOREIGN: u64 = 3;

/// Nothing can be said of times of the GPU: they are kept as they come.
pub(crate) fn is_foreign() -> bool {
    KNOWN.load(Ordering::Relaxed) == FOREIGN
}

/// The system domain's time at a time of CLOCK_BOOTTIME, ns: near enough to tell a time that cannot be.
pub(crate) fn about(boottime: u64) -> u64 {
    boottime.wrapping_add(AHEAD.load(Ordering::Relaxed))
}

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

/// What the system domain's clock shows when CLOCK_BOOTTIME shows `boottime`, ns: the driver's where that is another one,
/// else what HSA says. 0 when it does not answer, or when it is not known yet which it is.
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

/// HSA starts, and has this clock. One that is not CLOCK_BOOTTIME is asked of the driver already (5.x).
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

/// Times of the GPU that are compared with the process's clock.
const FIRST_TIMES: u64 = 16;
static FIRST: AtomicU64 = AtomicU64::new(FIRST_TIMES);

/// Work of these times, ns, was submitted at that tick and is complete. Asks the driver when it cannot be so.
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
    // Only two moments of both clocks are known here; what is between is near enough.
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

/// Asks the driver whose clock the times of the GPU are in, once: whether that was now.
#[cold]
pub(crate) fn ask() -> bool {
    FIRST.store(0, Ordering::Relaxed);
    // Until the answer is there no other thread doubts a time.
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

/// What is farther from the process's clock is of another clock, ns.
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
