//! Raw ticks and calibration samples. The reader converts ticks to time.
//!
//! The processor's counter if it is invariant and the kernel itself uses it for time; otherwise CLOCK_BOOTTIME.

#![expect(unsafe_code, reason = "rdtsc, cpuid and clock_gettime")]

use crate::state::word;
use roctop_ring::layout::clock;
use roctop_ring::map::RingFile;
use roctop_ring::sync::{AtomicU64, Ordering};

/// Kind of the ticks, fixed at the start; 0 undecided. Not wiped on fork: it is a property of the machine.
static KIND: AtomicU64 = AtomicU64::new(0);

/// Address of the function passed to [`set_hsa_time`], 0 for none.
static HSA_TIME_AT: AtomicU64 = AtomicU64::new(0);

/// Sets the function that returns the HSA system domain's time, ns, at a time of CLOCK_BOOTTIME; `None` when HSA ends.
pub fn set_hsa_time(function: Option<fn(u64) -> u64>) {
    let address = function.map_or(0, |function| function as usize);
    HSA_TIME_AT.store(address as u64, Ordering::Release);
}

const ROUNDS: usize = 5;

/// Ticks now.
#[inline(always)]
pub fn now() -> u64 {
    counter().unwrap_or_else(|| time(libc::CLOCK_BOOTTIME))
}

/// Ticks now, if the processor's counter has them.
#[inline(always)]
pub fn counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    if KIND.load(Ordering::Relaxed) == u64::from(clock::KIND_TSC) {
        // SAFETY: every x86-64 has the instruction; it touches no memory.
        return Some(unsafe { core::arch::x86_64::_rdtsc() });
    }
    None
}

/// Cost of a reading, ps: the minimum of several rounds, because the thread may be descheduled in one.
pub(crate) fn cost() -> u64 {
    const READINGS: u64 = 64;
    let round = |_| {
        let start = boottime();
        for _ in 0..READINGS {
            std::hint::black_box(now());
        }
        (boottime() - start) * 1000 / READINGS
    };
    (0..4).map(round).min().unwrap_or(0)
}

/// The kind of the ticks for the file's header.
pub fn kind() -> u32 {
    let known = KIND.load(Ordering::Relaxed);
    if known != 0 {
        return known as u32;
    }
    let kind = if is_tsc_good() {
        clock::KIND_TSC
    } else {
        clock::KIND_VDSO
    };
    KIND.store(u64::from(kind), Ordering::Relaxed);
    kind
}

#[cfg(target_arch = "x86_64")]
fn is_tsc_good() -> bool {
    use core::arch::x86_64::__cpuid;
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0;
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    invariant && source.is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(not(target_arch = "x86_64"))]
fn is_tsc_good() -> bool {
    false
}

/// CLOCK_BOOTTIME now, ns.
pub fn boottime() -> u64 {
    time(libc::CLOCK_BOOTTIME)
}

fn time(which: i32) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for the answer.
    unsafe { libc::clock_gettime(which, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How far another clock is ahead of CLOCK_BOOTTIME, and the width of the bracket, both ns: the narrowest bracket of
/// five. The bracket is two readings of the boot clock around one of the other. `None` if the clock returns 0.
pub fn ahead(mut read: impl FnMut() -> u64) -> Option<(i64, u64)> {
    let mut best: Option<(i64, u64)> = None;
    for _ in 0..ROUNDS {
        let (early, other, late) = (boottime(), read(), boottime());
        if other == 0 {
            return None;
        }
        let width = late.saturating_sub(early);
        if best.is_none_or(|best| width < best.1) {
            best = Some((other.wrapping_sub(middle(early, late)).cast_signed(), width));
        }
    }
    best
}

/// How far a system clock is ahead of CLOCK_BOOTTIME, ns.
pub fn boottime_to(which: i32) -> i64 {
    ahead(|| time(which)).map_or(0, |(ahead, _)| ahead)
}

/// The HSA time when CLOCK_BOOTTIME was `boottime`; 0 if HSA is not running.
fn hsa_time_at(boottime: u64) -> u64 {
    let address = HSA_TIME_AT.load(Ordering::Acquire) as usize;
    if address == 0 {
        return 0;
    }
    // SAFETY: only `set_hsa_time` stores here, the address of a function of this type.
    let function = unsafe { std::mem::transmute::<usize, fn(u64) -> u64>(address) };
    function(boottime)
}

/// Writes a calibration sample to the file, the best of five. Does nothing if another thread is taking one.
pub fn calibrate(file: &RingFile) {
    if word(word::CALIBRATING).swap(1, Ordering::Acquire) != 0 {
        return;
    }
    let (mut best, mut narrowest) = ([0; clock::WORDS], u64::MAX);
    for _ in 0..ROUNDS {
        let began = now();
        let monotonic = time(libc::CLOCK_MONOTONIC);
        let raw = time(libc::CLOCK_MONOTONIC_RAW);
        let real = time(libc::CLOCK_REALTIME);
        let before = now();
        let boot = time(libc::CLOCK_BOOTTIME);
        let after = now();
        // A second reading of each clock on the other side, so that all times are those of the bracket's middle.
        let real = middle(real, time(libc::CLOCK_REALTIME));
        let raw = middle(raw, time(libc::CLOCK_MONOTONIC_RAW));
        let monotonic = middle(monotonic, time(libc::CLOCK_MONOTONIC));
        // The width of the whole round: descheduling between any two readings also spoils the clocks outside the
        // bracket.
        let whole = now().saturating_sub(began);
        if whole < narrowest {
            narrowest = whole;
            let width = after.saturating_sub(before);
            best = [0, middle(before, after), boot, monotonic, raw, real, 0, width];
        }
    }
    best[clock::HSA] = hsa_time_at(best[clock::BOOTTIME]);
    file.calibrate(best);
    word(word::CALIBRATING).store(0, Ordering::Release);
}

fn middle(a: u64, b: u64) -> u64 {
    a.wrapping_add(b.wrapping_sub(a) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_forward() {
        kind();
        let before = now();
        assert!(now() >= before);
    }
}
