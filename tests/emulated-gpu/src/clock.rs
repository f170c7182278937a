//! The GPU's clock and its relation to the host's.
//!
//! A tick is 10 ns of `CLOCK_MONOTONIC_RAW`, unless `EMULATED_GPU_COUNTER` sets another frequency, so it drifts against
//! the host's clocks as a real counter does. Host times in the truth log are `CLOCK_BOOTTIME`, which the driver calls
//! the system clock, unless `EMULATED_GPU_CLOCK` sets another one, as in a container with a time namespace. The offset
//! between the two is sampled with brackets and shared; otherwise consecutive kernels would seem to overlap. Not
//! modelled: clock power states.
#![expect(unsafe_code, reason = "clock_gettime is a foreign function")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::model;

/// Maximum age of an offset sample.
const SAMPLE_NS: u64 = 1_000_000;

/// Maximum difference of two good samples.
const NOISE_NS: u64 = 40;

static OFFSET: AtomicU64 = AtomicU64::new(0);
static SAMPLED: AtomicU64 = AtomicU64::new(0);

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours and the clocks exist on every Linux that has a KFD.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Current time in ns of `CLOCK_MONOTONIC_RAW`, which engines use.
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// Clock that the driver uses as the system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// A clock of the host.
    Clock(libc::clockid_t),
    /// `CLOCK_BOOTTIME` plus this many ns.
    Ahead(i64),
}

impl System {
    /// Parses a name, or ns with a sign; anything else is `CLOCK_BOOTTIME`.
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

/// Raw and system time of one moment, as the driver reports them.
pub(crate) fn pair() -> (u64, u64) {
    static BEGAN: OnceLock<u64> = OnceLock::new();
    let (raw, system) = beside(model().clock);
    let since = raw.saturating_sub(*BEGAN.get_or_init(|| raw));
    let off = model().faults.jump.map_or(0, |jump| jump.at(since));
    (raw, system.wrapping_add_signed(off))
}

/// Raw time and another clock's at one moment: the middle of the tightest of five brackets.
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

/// Jumps of the driver's clock: back and forth each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    /// Size of a jump, ns.
    by: i64,
    /// Period, ns.
    period: u64,
}

impl Jump {
    /// Parses `NS@MS`.
    pub(crate) fn named(text: &str) -> Option<Self> {
        let (by, period) = text.split_once('@')?;
        let period: u64 = period.trim().parse().ok()?;
        Some(Self {
            by: by.trim().parse().ok()?,
            period: period.max(1) * 1_000_000,
        })
    }

    /// Offset of the clock at a time after the start, ns.
    fn at(self, since: u64) -> i64 {
        if since / self.period % 2 == 1 { self.by } else { 0 }
    }
}

const NS_PER_SECOND: u128 = 1_000_000_000;

/// A GPU's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    hertz: u64,
    /// Value when the process first asks; `None`: it counts since the machine was started.
    start: Option<u64>,
}

impl Counter {
    /// Parses `HERTZ` or `HERTZ@START`; anything else is 100 MHz since the machine was started.
    pub(crate) fn named(text: &str) -> Self {
        let (hertz, start) = text.split_once('@').map_or((text, None), |(a, b)| (a, b.parse().ok()));
        Self {
            hertz: hertz.parse().ok().filter(|hertz| *hertz > 0).unwrap_or(100_000_000),
            start,
        }
    }

    /// The frequency as the driver reports it.
    pub(crate) fn kilohertz(self) -> u32 {
        (self.hertz / 1000) as u32
    }

    /// Ticks in a duration in ns.
    pub(crate) fn ticks_in(self, ns: u64) -> u64 {
        (u128::from(ns) * u128::from(self.hertz) / NS_PER_SECOND) as u64
    }

    /// The value at a raw time. It starts at the first time that is asked for, not a moment later: run-times convert
    /// by the difference of their first pair of times and a later one.
    fn at(self, raw: u64) -> u64 {
        static BEGAN: OnceLock<u64> = OnceLock::new();
        match self.start {
            None => self.ticks_in(raw),
            Some(start) => start.wrapping_add(self.ticks_in(raw.saturating_sub(*BEGAN.get_or_init(|| raw)))),
        }
    }
}

/// GPU counter at a raw time.
pub(crate) fn ticks(raw: u64) -> u64 {
    model().counter.at(raw)
}

/// `CLOCK_BOOTTIME` nanoseconds of a recent raw time.
pub(crate) fn host(raw: u64) -> u64 {
    raw.wrapping_add(OFFSET.load(Ordering::Relaxed))
}

/// Takes a new sample of the offset if the last one is old; called before a batch of log lines.
pub(crate) fn refresh(now: u64) {
    let sampled = SAMPLED.load(Ordering::Relaxed);
    let is_known = OFFSET.load(Ordering::Relaxed) != 0;
    if is_known && sampled != 0 && now.saturating_sub(sampled) < SAMPLE_NS {
        return;
    }
    // Relaxed: both words are hints of each other's age; a mix of two samples differs by nanoseconds. Without a first
    // sample, each thread takes its own, because there is no offset to use meanwhile.
    let taken = SAMPLED.compare_exchange(sampled, now, Ordering::Relaxed, Ordering::Relaxed);
    if taken.is_ok() || OFFSET.load(Ordering::Relaxed) == 0 {
        let (raw, boot) = beside(System::Ahead(0));
        let sample = boot.wrapping_sub(raw);
        // Within the noise of a sample the old offset stays, so that adjacent lines of the log do not overlap.
        if sample
            .wrapping_sub(OFFSET.load(Ordering::Relaxed))
            .wrapping_add(NOISE_NS)
            > 2 * NOISE_NS
        {
            OFFSET.store(sample, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_jumps_back_and_forth_each_period() {
        let jump = Jump::named("2000000@10").unwrap();
        assert_eq!(
            [0, 9_999_999, 10_000_000, 20_000_000].map(|since| jump.at(since)),
            [0, 0, 2_000_000, 0]
        );
        assert_eq!(Jump::named("2000000"), None);
    }

    #[test]
    fn a_counter_has_a_frequency_and_may_begin_anywhere() {
        let usual = Counter::named("");
        assert_eq!((usual.at(1_000), usual.ticks_in(u64::MAX)), (100, u64::MAX / 10));
        assert_eq!(Counter::named("25000000").at(1_000), 25);
        let large = Counter::named("1000000000@9000000000000000000");
        let raw = now();
        assert_eq!(
            [large.at(raw), large.at(raw + 1_000)],
            [9_000_000_000_000_000_000, 9_000_000_000_000_001_000]
        );
    }
}
