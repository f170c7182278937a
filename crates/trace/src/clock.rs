//! Converts raw times of one process to CLOCK_BOOTTIME nanoseconds, by its calibration samples.
//!
//! Conversion is linear between two samples; outside them it continues with the slope of all samples. The error is
//! therefore that of the samples (the width of their brackets) while samples are taken, and grows with the error of the
//! slope afterwards. `roctop_ring::layout::clock` defines the words of a sample.

use crate::item::Nanos;
use roctop_ring::layout::clock;

/// One calibration sample: raw ticks, and the clocks read next to them in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Raw ticks of the time stamp counter.
    pub ticks: u64,
    /// CLOCK_BOOTTIME, ns.
    pub boottime: u64,
    /// CLOCK_REALTIME, ns.
    pub realtime: u64,
    /// HSA system time, ns; 0 before HSA started.
    pub hsa: u64,
    /// Ticks between the two tick readings around the clock readings.
    pub width: u64,
}

impl Sample {
    /// Decodes a sample from its words in the ring.
    pub fn from_words(words: &[u64; clock::WORDS]) -> Self {
        Self {
            ticks: words[clock::TICKS],
            boottime: words[clock::BOOTTIME],
            realtime: words[clock::REALTIME],
            hsa: words[clock::HSA],
            width: words[clock::WIDTH],
        }
    }
}

/// Clock conversion of one process.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    samples: Vec<Sample>,
    /// Slope from each sample to the next, ns per tick.
    slopes: Vec<f64>,
    /// Slope from the first sample to the last, ns per tick.
    slope: f64,
    hsa_offset: i64,
    /// If HSA uses another clock: (HSA ns, offset to CLOCK_BOOTTIME in ns), in order of time.
    hsa_offsets: Vec<(u64, i64)>,
}

/// Linear conversion that is valid for the ticks from `from` to `until`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// First tick, inclusive.
    from: u64,
    /// Last tick, exclusive.
    until: u64,
    /// Ticks of the sample at its start.
    ticks: u64,
    boottime: Nanos,
    /// ns per tick, times 2^[`FRACTION`].
    slope: i64,
}

/// Fractional bits of a slope. A tick may last up to two microseconds, and a day of ticks converts to within a ns.
const FRACTION: u32 = 52;

fn fixed(slope: f64) -> i64 {
    (slope * (1u64 << FRACTION) as f64) as i64
}

impl Line {
    /// Whether the line is valid for these ticks.
    #[inline]
    pub const fn holds(&self, ticks: u64) -> bool {
        ticks >= self.from && ticks < self.until
    }

    /// Converts raw ticks to CLOCK_BOOTTIME ns; 0 stays 0 (unknown).
    #[inline]
    pub fn nanos(&self, ticks: u64) -> Nanos {
        if ticks == 0 {
            return 0;
        }
        let distance = ticks.wrapping_sub(self.ticks).cast_signed();
        // Round to nearest.
        let nanos = (i128::from(distance) * i128::from(self.slope) + (1 << (FRACTION - 1))) >> FRACTION;
        self.boottime.saturating_add_signed(nanos as i64)
    }
}

/// If a sample has HSA's clock within this many ns of BOOTTIME, the two are the same clock.
const SAME_CLOCK_TOLERANCE: u64 = 20_000;
/// Two disciplined clocks drift apart by less than one part in this.
const MAX_DRIFT_DIVISOR: u64 = 1000;

/// What the least duration is with the least slope, and the greatest with the greatest, rounding included.
fn widened((least, greatest): (u64, u64), slopes: impl Iterator<Item = f64>) -> (f64, f64) {
    const ROUNDING: f64 = 1e-9;
    let (low, high) = slopes.fold((f64::MAX, f64::MIN), |(low, high), slope| {
        (low.min(slope), high.max(slope))
    });
    (
        (least as f64 * low).mul_add(1.0 - ROUNDING, -2.0),
        (greatest as f64 * high).mul_add(1.0 + ROUNDING, 2.0),
    )
}

impl Clock {
    /// Adds a sample; samples may come in any order of ticks.
    pub fn add(&mut self, sample: Sample) {
        let place = self.samples.partition_point(|known| known.ticks < sample.ticks);
        if self.samples.get(place).is_some_and(|known| known.ticks == sample.ticks) {
            return;
        }
        self.samples.insert(place, sample);
        if let (Some(first), Some(last)) = (self.samples.first(), self.samples.last())
            && last.ticks > first.ticks
        {
            self.slope = last.boottime.saturating_sub(first.boottime) as f64 / (last.ticks - first.ticks) as f64;
        }
        let pairs = self.samples.windows(2);
        self.slopes = pairs
            .map(|pair| {
                let run = (pair[1].ticks - pair[0].ticks) as f64;
                pair[1].boottime.saturating_sub(pair[0].boottime) as f64 / run
            })
            .collect();
        self.compare_hsa();
    }

    /// Computes the offsets from HSA's clock to CLOCK_BOOTTIME from all samples.
    fn compare_hsa(&mut self) {
        let samples = self.samples.iter().filter(|s| s.hsa > 0);
        let mut offsets: Vec<(i64, u64)> = samples
            .map(|s| (s.boottime.wrapping_sub(s.hsa).cast_signed(), s.hsa))
            .collect();
        // Preemption during a sample shifts that sample, so the closest one counts; a different clock is far off in
        // all.
        let is_same = offsets
            .iter()
            .any(|(offset, _)| offset.unsigned_abs() < SAME_CLOCK_TOLERANCE);
        (self.hsa_offset, self.hsa_offsets) = (0, Vec::new());
        if is_same || offsets.is_empty() {
            return;
        }
        // With a different clock, the smallest offset may be the disturbed one, so take the median.
        let middle = offsets.len() / 2;
        let (offset, at) = *offsets.select_nth_unstable(middle).1;
        self.hsa_offset = offset;
        // The clocks may drift apart; an offset beyond the maximum drift was disturbed.
        let near = offsets.iter().filter(|(other, hsa)| {
            let allowed = SAME_CLOCK_TOLERANCE.saturating_add(hsa.abs_diff(at) / MAX_DRIFT_DIVISOR);
            other.abs_diff(offset) <= allowed
        });
        self.hsa_offsets = near.map(|(offset, hsa)| (*hsa, *offset)).collect();
        self.hsa_offsets.sort_unstable();
    }

    /// Samples so far, in order of time.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Whether ticks can be converted: two samples are known.
    pub fn is_ready(&self) -> bool {
        self.slope > 0.0
    }

    /// Converts raw ticks to CLOCK_BOOTTIME ns; 0 stays 0 (unknown). Ticks of the vDSO clock are already ns (slope 1).
    pub fn ticks(&self, ticks: u64) -> Nanos {
        self.line(ticks).nanos(ticks)
    }

    /// The conversion for these ticks and those near them.
    pub fn line(&self, ticks: u64) -> Line {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else {
            return Line::default();
        };
        // New records come after the last sample.
        let after = if ticks >= last.ticks {
            self.samples.len()
        } else {
            self.samples.partition_point(|sample| sample.ticks <= ticks)
        };
        let before = after.checked_sub(1);
        let origin = before.map_or(first, |before| &self.samples[before]);
        let between = before.and_then(|before| self.slopes.get(before));
        Line {
            from: before.map_or(0, |_| origin.ticks),
            until: self.samples.get(after).map_or(u64::MAX, |next| next.ticks),
            ticks: origin.ticks,
            boottime: origin.boottime,
            slope: fixed(between.copied().unwrap_or(self.slope)),
        }
    }

    /// Converts HSA system ns to CLOCK_BOOTTIME ns; 0 stays 0 (untimed).
    pub fn hsa(&self, ns: u64) -> Nanos {
        self.hsa_line(ns).nanos(ns)
    }

    /// The conversion for these HSA ns. With a different clock, offsets are interpolated between two samples and
    /// constant outside them.
    pub fn hsa_line(&self, ns: u64) -> Line {
        let known = &self.hsa_offsets;
        let after = known.partition_point(|(hsa, _)| *hsa <= ns);
        let before = after.checked_sub(1).map(|before| known[before]);
        let next = known.get(after).copied();
        let (at, offset) = before.or(next).unwrap_or((0, self.hsa_offset));
        let drift = match (before, next) {
            (Some((from, offset)), Some((until, next))) => {
                next.saturating_sub(offset) as f64 / (until - from).max(1) as f64
            }
            _ => 0.0,
        };
        Line {
            from: before.map_or(0, |_| at),
            until: next.map_or(u64::MAX, |(until, _)| until),
            ticks: at,
            boottime: at.saturating_add_signed(offset),
            slope: fixed(1.0 + drift),
        }
    }

    /// The shortest and the longest time, ns, that a number of ticks between these two can be.
    pub fn tick_durations(&self, ticks: (u64, u64)) -> (f64, f64) {
        widened(ticks, self.slopes.iter().copied().chain([self.slope]))
    }

    /// As `tick_durations`, for ns of HSA's clock.
    pub fn hsa_durations(&self, ns: (u64, u64)) -> (f64, f64) {
        let drifts = self.hsa_offsets.windows(2).map(|pair| {
            let [(from, offset), (until, next)] = [pair[0], pair[1]];
            1.0 + next.saturating_sub(offset) as f64 / (until - from).max(1) as f64
        });
        widened(ns, drifts.chain([1.0]))
    }

    /// CLOCK_REALTIME minus CLOCK_BOOTTIME at the last sample, ns.
    pub fn realtime_offset(&self) -> i64 {
        self.samples
            .last()
            .map_or(0, |s| s.realtime.wrapping_sub(s.boottime) as i64)
    }

    /// Widest bracket of all samples in ns: the error of a converted time.
    pub fn error(&self) -> u64 {
        let widest = self.samples.iter().map(|sample| sample.width).max().unwrap_or(0);
        (widest as f64 * self.slope) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ticks: u64, boottime: u64) -> Sample {
        Sample {
            ticks,
            boottime,
            ..Sample::default()
        }
    }

    #[test]
    fn times_between_samples_are_linear_and_outside_go_on() {
        let mut clock = Clock::default();
        for (ticks, boottime) in [(1000, 500), (3000, 1500), (5000, 2600)] {
            clock.add(sample(ticks, boottime));
        }
        assert_eq!(clock.ticks(2000), 1000);
        assert_eq!(clock.ticks(4000), 2050);
        assert_eq!(clock.ticks(9000), 2600 + 2100);
        assert_eq!(clock.ticks(0), 0);
        assert!(clock.ticks(800) < 500);
    }

    #[test]
    fn hsa_time_is_boottime_unless_the_samples_say_otherwise() {
        let mut clock = Clock::default();
        clock.add(Sample {
            ticks: 1,
            boottime: 1000,
            hsa: 990,
            ..Sample::default()
        });
        assert_eq!(clock.hsa(5000), 5000);
        clock.add(Sample {
            ticks: 2,
            boottime: 200_000,
            hsa: 150_000,
            ..Sample::default()
        });
        assert_eq!(clock.hsa(5000), 5000, "a disturbed sample is outvoted by a good one");
        let mut other = Clock::default();
        other.add(Sample {
            ticks: 1,
            boottime: 10_000_000,
            hsa: 1_000_000,
            ..Sample::default()
        });
        assert_eq!(other.hsa(2_000_000), 11_000_000);
        for (ticks, late) in [(2, 0), (3, 500_000)] {
            other.add(Sample {
                ticks,
                boottime: 10_000_000,
                hsa: 1_000_000 + late,
                ..Sample::default()
            });
        }
        assert_eq!(
            other.hsa(2_000_000),
            11_000_000,
            "of three the one that was disturbed does not count"
        );
    }

    #[test]
    fn another_clock_of_hsa_may_drift() {
        let mut clock = Clock::default();
        for (ticks, hsa, offset) in [
            (1, 1_000_000_000, 50_000_000),
            (2, 2_000_000_000, 50_010_000),
            (3, 3_000_000_000, 90_000_000),
            (4, 4_000_000_000, 50_030_000),
        ] {
            clock.add(Sample {
                ticks,
                boottime: hsa + offset,
                hsa,
                ..Sample::default()
            });
        }
        assert_eq!(clock.hsa(500_000_000), 550_000_000);
        assert_eq!(clock.hsa(1_500_000_000), 1_550_005_000);
        assert_eq!(
            clock.hsa(3_000_000_000),
            3_050_020_000,
            "the disturbed sample does not count"
        );
        assert_eq!(clock.hsa(9_000_000_000), 9_050_030_000);
        assert_eq!(clock.hsa(0), 0);
    }
}
