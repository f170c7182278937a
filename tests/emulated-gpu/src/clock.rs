//! The GPU's clock and how it relates to the host's.
//!
//! A tick is ten nanoseconds of `CLOCK_MONOTONIC_RAW`, so it drifts from the host's clocks as a real counter does. The
//! truth log's host times are `CLOCK_BOOTTIME`, the clock that the driver calls the system clock, unless `EMULATED_GPU_CLOCK`
//! gives it another one, as a container with a time namespace of its own has it. The offset between
//! both is sampled with brackets and shared, else consecutive kernels would seem to overlap. Absent: clock power states.
#![expect(unsafe_code, reason = "clock_gettime is a foreign function")]

use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::model;

/// Nanoseconds in a tick of the GPU.
pub(crate) const NS_PER_TICK: u64 = 10;

/// How long a sample of the offset serves.
const SAMPLE_NS: u64 = 1_000_000;

/// By how much two good samples differ.
const NOISE_NS: u64 = 40;

static OFFSET: AtomicU64 = AtomicU64::new(0);
static SAMPLED: AtomicU64 = AtomicU64::new(0);

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours and the clocks exist on every Linux that has a KFD.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Now, in nanoseconds of `CLOCK_MONOTONIC_RAW`: the time that engines reckon in.
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// What the driver takes for the system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// A clock of the host.
    Clock(libc::clockid_t),
    /// `CLOCK_BOOTTIME`, so many nanoseconds ahead.
    Ahead(i64),
}

impl System {
    /// By its name, or by nanoseconds with a sign; what is neither is `CLOCK_BOOTTIME`.
    pub(crate) fn named(text: &str) -> Self {
        match text {
            "monotonic" => Self::Clock(libc::CLOCK_MONOTONIC),
            "monotonic_raw" => Self::Clock(libc::CLOCK_MONOTONIC_RAW),
            "realtime" => Self::Clock(libc::CLOCK_REALTIME),
            _ => Self::Ahead(text.parse().unwrap_or(0)),
        }
    }

    fn read(self) -> u64 {
        match self {
            Self::Clock(clock) => read(clock),
            Self::Ahead(shift) => read(libc::CLOCK_BOOTTIME).wrapping_add_signed(shift),
        }
    }
}

/// Raw and system time of one moment, as the driver has them.
pub(crate) fn pair() -> (u64, u64) {
    beside(model().clock)
}

/// Raw time and another clock's of one moment: the middle of the tightest of five brackets.
fn beside(other: System) -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..5 {
        let before = now();
        let there = other.read();
        let after = now();
        if after - before < best.0 {
            best = (after - before, before + (after - before) / 2, there);
        }
    }
    (best.1, best.2)
}

/// The GPU counter at a raw time.
pub(crate) fn ticks(raw: u64) -> u64 {
    raw / NS_PER_TICK
}

/// `CLOCK_BOOTTIME` nanoseconds of a recent raw time.
pub(crate) fn host(raw: u64) -> u64 {
    raw.wrapping_add(OFFSET.load(Ordering::Relaxed))
}

/// Takes a new sample of the offset when the last one is old; called before a batch of log lines.
pub(crate) fn refresh(now: u64) {
    let sampled = SAMPLED.load(Ordering::Relaxed);
    let is_known = OFFSET.load(Ordering::Relaxed) != 0;
    if is_known && sampled != 0 && now.saturating_sub(sampled) < SAMPLE_NS {
        return;
    }
    // Relaxed: both words are hints of one another's age; a mix of two samples differs by nanoseconds. The first sample is
    // taken by whoever needs it, since there is no offset to go on with while another takes it.
    let taken = SAMPLED.compare_exchange(sampled, now, Ordering::Relaxed, Ordering::Relaxed);
    if taken.is_ok() || OFFSET.load(Ordering::Relaxed) == 0 {
        let (raw, boot) = beside(System::Ahead(0));
        let sample = boot.wrapping_sub(raw);
        // Within the noise of a sample the old offset stays, so that neighbours in the log do not overlap.
        if sample
            .wrapping_sub(OFFSET.load(Ordering::Relaxed))
            .wrapping_add(NOISE_NS)
            > 2 * NOISE_NS
        {
            OFFSET.store(sample, Ordering::Relaxed);
        }
    }
}
