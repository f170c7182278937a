//! The clock of all records: HSA's system clock, in nanoseconds.

use crate::loader;
use hsa_sys::abi::{SUCCESS, Status, info};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

pub(crate) type SystemGetInfo = unsafe extern "C" fn(i32, *mut c_void) -> Status;

/// `hsa_system_get_info` behind all hooks, while HSA runs; 0 otherwise.
static BEHIND_HOOKS: AtomicUsize = AtomicUsize::new(0);
/// The run-time's exported `hsa_system_get_info`, used before its tables arrive.
static EXPORTED: AtomicUsize = AtomicUsize::new(0);
/// Failed look-ups of that function: each is expensive, so it is repeated only at the first, second, fourth, … request.
static MISSES: AtomicU32 = AtomicU32::new(0);
/// Ticks per second; 0 until queried.
static FREQUENCY: AtomicU64 = AtomicU64::new(0);

/// Kind of HSA's clock.
static KIND: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
/// The kernel's boot clock, which is read without HSA: releases before 5.5 ask the driver for every time.
const BOOT: u32 = 1;
/// Another clock.
const OTHER: u32 = 2;

/// Sets the function that reads HSA's clock behind all hooks: `None` when HSA ends.
pub(crate) fn set_get_info(function: Option<SystemGetInfo>) {
    let address = function.map_or(0, |function| function as usize);
    BEHIND_HOOKS.store(address, Ordering::Release);
}

/// Now, ns. Before HSA starts this is the boot clock, on which HSA's is based.
#[inline]
pub(crate) fn now() -> u64 {
    match KIND.load(Ordering::Relaxed) {
        BOOT => boot(),
        OTHER => get_info().and_then(of_hsa).unwrap_or_else(boot),
        _ => decide(),
    }
}

/// Reads HSA's clock between two readings of the boot clock: if it is in between every time, it is the same clock.
#[cold]
fn decide() -> u64 {
    let Some(get_info) = get_info() else { return boot() };
    let is_between = || {
        let before = boot();
        let time = of_hsa(get_info)?;
        Some((before..=boot()).contains(&time))
    };
    // HSA may be loaded but not started.
    let Some(first) = is_between() else { return boot() };
    let is_boot = first && (0..3).all(|_| is_between() == Some(true));
    KIND.store(if is_boot { BOOT } else { OTHER }, Ordering::Relaxed);
    now()
}

fn get_info() -> Option<SystemGetInfo> {
    let known = match (BEHIND_HOOKS.load(Ordering::Acquire), EXPORTED.load(Ordering::Relaxed)) {
        (0, 0) => find()?,
        (0, exported) => exported,
        (behind, _) => behind,
    };
    // SAFETY: the address of the function of this name, which has this type.
    Some(unsafe { std::mem::transmute::<*const c_void, SystemGetInfo>(known as *const c_void) })
}

#[cold]
fn find() -> Option<usize> {
    if !MISSES.fetch_add(1, Ordering::Relaxed).wrapping_add(1).is_power_of_two() {
        return None;
    }
    let found = loader::loaded("libhsa-runtime64.so")
        .into_iter()
        .find_map(|(library, _)| library.symbol(c"hsa_system_get_info"))? as usize;
    EXPORTED.store(found, Ordering::Relaxed);
    Some(found)
}

fn of_hsa(get_info: SystemGetInfo) -> Option<u64> {
    let ask = |attribute: i32| {
        let mut value = 0u64;
        // SAFETY: both attributes are 64-bit numbers.
        (unsafe { get_info(attribute, (&raw mut value).cast()) } == SUCCESS).then_some(value)
    };
    let ticks = ask(info::TIMESTAMP)?;
    let frequency = match FREQUENCY.load(Ordering::Relaxed) {
        0 => {
            let frequency = ask(info::TIMESTAMP_FREQUENCY)?;
            FREQUENCY.store(frequency, Ordering::Relaxed);
            frequency
        }
        frequency => frequency,
    };
    Some(nanoseconds(ticks, frequency))
}

/// Converts ticks to ns.
pub(crate) fn nanoseconds(ticks: u64, frequency: u64) -> u64 {
    if frequency == 1_000_000_000 || frequency == 0 {
        ticks
    } else {
        (u128::from(ticks) * 1_000_000_000 / u128::from(frequency)) as u64
    }
}

/// Converts the run-time's ticks to ns.
pub(crate) fn of_ticks(ticks: u64) -> u64 {
    nanoseconds(ticks, FREQUENCY.load(Ordering::Relaxed))
}

fn boot() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; the clock exists on every Linux that ROCm supports.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_ticks_become_nanoseconds() {
        assert_eq!(nanoseconds(100, 100_000_000), 1000);
        assert_eq!(nanoseconds(7, 1_000_000_000), 7);
        assert_eq!(nanoseconds(u64::MAX / 20, 100_000_000), u64::MAX / 20 * 10);
    }

    #[test]
    fn clock_works_without_a_run_time() {
        let first = now();
        assert!(first > 0 && now() >= first);
    }
}
