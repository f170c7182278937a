//! Statistics of one quantity: count, total, extremes and percentiles.

use std::sync::Arc;

use hdrhistogram::Histogram;

use super::analysis::change::Sample;
use super::histogram_delta::Counts;

/// Maximum number of histograms per kind; others have count, total and extremes.
pub const HISTOGRAMS: usize = 1024;

/// Maximum duration in a histogram, ns (one hour).
pub(super) const MAX_DURATION: u64 = 3_600_000_000_000;

/// Percentiles; each requires enough samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Median.
    pub p50: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
}

impl Quantiles {
    /// Percentiles of durations; those with too few samples are left out.
    pub fn of(nanos: &mut [u64]) -> Self {
        let count = nanos.len();
        let mut at = |per_cent: usize, least: usize| {
            let place = (count * per_cent).div_ceil(100).max(1) - 1;
            (count >= least).then(|| *nanos.select_nth_unstable(place).1)
        };
        Self {
            p50: at(50, 20),
            p95: at(95, 20),
            p99: at(99, 100),
        }
    }
}

/// Minimal statistics of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Number of events.
    pub calls: u64,
    /// Number of timed events.
    pub timed: u64,
    /// Sum of the durations.
    pub total: u64,
    /// Minimum; 0 without values.
    pub min: u64,
    /// Maximum; 0 without values.
    pub max: u64,
}

impl Sum {
    /// Difference to an earlier state of the same sum, without extremes.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            timed: self.timed.saturating_sub(earlier.timed),
            total: self.total.saturating_sub(earlier.total),
            min: 0,
            max: 0,
        }
    }

    /// Adds an event, with its duration if known.
    pub fn add(&mut self, value: Option<u64>) {
        self.calls += 1;
        if let Some(value) = value {
            self.min = if self.timed == 0 { value } else { self.min.min(value) };
            self.timed += 1;
            self.total = self.total.saturating_add(value);
            self.max = self.max.max(value);
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        if other.timed > 0 {
            self.min = if self.timed == 0 {
                other.min
            } else {
                self.min.min(other.min)
            };
        }
        self.calls += other.calls;
        self.timed += other.timed;
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
    }

    /// Mean of the timed events.
    pub fn average(&self) -> Option<u64> {
        self.total.checked_div(self.timed)
    }
}

impl From<Sum> for Stat {
    /// Statistics without percentiles and deviation.
    fn from(sum: Sum) -> Self {
        let Sum {
            calls,
            timed,
            total,
            min,
            max,
        } = sum;
        Self {
            calls,
            timed,
            total,
            min,
            max,
            squares: f64::NAN,
            ..Self::default()
        }
    }
}

/// Statistics of durations (or sizes).
#[derive(Clone, Debug, Default)]
pub struct Stat {
    /// Number of events.
    pub calls: u64,
    /// Number of timed events.
    pub timed: u64,
    /// Sum of the values.
    pub total: u64,
    /// Minimum; 0 without values.
    pub min: u64,
    /// Maximum; 0 without values.
    pub max: u64,
    /// Sum of squares, for the standard deviation.
    squares: f64,
    /// Percentiles as of the last [`Stat::refresh`].
    pub quantiles: Quantiles,
    histogram: Option<Arc<Histogram<u32>>>,
    stale: bool,
}

impl Stat {
    /// Empty statistics; with a histogram if `full`.
    pub fn new(full: bool) -> Self {
        let mut stat = Self::default();
        if full {
            stat.keep_histogram();
        }
        stat
    }

    /// Enables the histogram; must precede the first value.
    pub(super) fn keep_histogram(&mut self) {
        self.histogram = Histogram::new(2).ok().map(Arc::new);
    }

    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.add_apart(value);
        if let Some(histogram) = &mut self.histogram {
            // The value is in range and the histogram resizes itself, so this cannot fail.
            let _ = Arc::make_mut(histogram).record(value.clamp(1, MAX_DURATION));
            self.stale = true;
        }
    }

    /// Adds a value except to the histogram; [`Stat::count_in`] follows.
    #[inline]
    pub(super) fn add_apart(&mut self, value: u64) {
        self.min = if self.timed == 0 { value } else { self.min.min(value) };
        self.calls += 1;
        self.timed += 1;
        self.total = self.total.saturating_add(value);
        self.max = self.max.max(value);
        self.squares += (value as f64) * (value as f64);
    }

    /// Adds summed values except to the histogram; [`Stat::count_in`] follows.
    pub(super) fn merge(&mut self, other: &Summed) {
        if other.count == 0 {
            return;
        }
        self.min = if self.timed == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.calls += u64::from(other.count);
        self.timed += u64::from(other.count);
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
        self.squares += other.squares;
    }

    /// Transfers buffered values into the histogram.
    pub(super) fn count_in(&mut self, counts: &mut Counts) {
        if let Some(histogram) = &mut self.histogram
            && counts.waiting() > 0
        {
            let histogram = Arc::make_mut(histogram);
            counts.drain(|value, count| {
                let _ = histogram.record_n(value, count);
            });
            self.stale = true;
        }
    }

    /// Adds an event without a value.
    pub fn add_untimed(&mut self) {
        self.calls += 1;
    }

    /// Mean of the timed events.
    pub fn average(&self) -> Option<u64> {
        self.total.checked_div(self.timed)
    }

    /// Standard deviation of the timed events.
    pub fn deviation(&self) -> Option<u64> {
        if self.timed < 2 || self.squares.is_nan() {
            return None;
        }
        let n = self.timed as f64;
        let mean = self.total as f64 / n;
        Some((self.squares / n - mean * mean).max(0.0).sqrt() as u64)
    }

    /// Count, sum and extremes.
    pub fn sum(&self) -> Sum {
        Sum {
            calls: self.calls,
            timed: self.timed,
            total: self.total,
            min: self.min,
            max: self.max,
        }
    }

    /// Difference to an earlier state, without extremes and percentiles.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            timed: self.timed.saturating_sub(earlier.timed),
            total: self.total.saturating_sub(earlier.total),
            squares: (self.squares - earlier.squares).max(0.0),
            ..Self::default()
        }
    }

    /// Difference to an earlier state, with extremes and percentiles if there are histograms.
    #[must_use]
    pub fn rest(&self, earlier: &Self) -> Self {
        let mut rest = self.since(earlier);
        if earlier.timed == 0 && !earlier.is_of_sums() {
            // The histogram may be newer than the earlier state; it has all values.
            let calls = rest.calls;
            return Self { calls, ..self.clone() };
        }
        if let (Some(all), Some(old)) = (&self.histogram, &earlier.histogram) {
            let mut left = (**all).clone();
            if left.subtract(&**old).is_ok() && !left.is_empty() {
                (rest.min, rest.max) = (left.min(), left.max());
                rest.histogram = Some(Arc::new(left));
                rest.stale = true;
                rest.refresh();
            }
        }
        rest
    }

    /// Of these values.
    pub fn of(values: &[u64]) -> Self {
        let mut stat = Self::new(true);
        for &value in values {
            stat.add(value);
        }
        stat.refresh();
        stat
    }

    /// Of a summary: without extremes and percentiles.
    pub(super) fn of_sample(sample: &Sample) -> Self {
        let count = sample.count as f64;
        let squares = sample
            .deviation
            .map(|deviation| count * (deviation.powi(2) + sample.mean.powi(2)));
        Self {
            calls: sample.count,
            timed: sample.count,
            total: sample.total().round() as u64,
            squares: squares.unwrap_or(f64::NAN),
            ..Self::default()
        }
    }

    /// Estimated for `whole` of which it has a sample of `part`: what was counted in the sample, in proportion.
    #[must_use]
    pub fn scaled(&self, part: u64, whole: u64) -> Self {
        let factor = whole as f64 / part.max(1) as f64;
        let scale = |count: u64| (count as f64 * factor).round() as u64;
        Self {
            calls: scale(self.calls),
            timed: scale(self.timed),
            total: scale(self.total),
            squares: self.squares * factor,
            ..self.clone()
        }
    }

    /// Of the values that a test takes, by the histogram, and whether that is exact; none if it takes none. A step of the
    /// histogram counts as a whole, with the value in its middle.
    pub fn within(&self, takes: impl Fn(u64) -> bool) -> Option<(Self, bool)> {
        let histogram = self.histogram.as_ref()?;
        let (mut kept, mut is_all) = (Self::new(true), true);
        for step in histogram.iter_recorded() {
            let value = step.value_iterated_to();
            let low = histogram.lowest_equivalent(value).clamp(self.min, self.max);
            let high = histogram.highest_equivalent(value).clamp(self.min, self.max);
            let middle = low.midpoint(high);
            if !takes(middle) {
                is_all = false;
                continue;
            }
            is_all &= takes(low) && takes(high);
            let count = step.count_since_last_iteration();
            kept.calls += count;
            kept.timed += count;
            kept.total = kept.total.saturating_add(middle.saturating_mul(count));
            kept.squares += (middle as f64) * (middle as f64) * count as f64;
            kept.min = if kept.max == 0 { low } else { kept.min.min(low) };
            kept.max = kept.max.max(high);
            if let Some(histogram) = &mut kept.histogram {
                // In range and self-sizing, so that it cannot fail.
                let _ = Arc::make_mut(histogram).record_n(value.clamp(1, MAX_DURATION), count as u32);
            }
        }
        if is_all && self.timed == self.calls {
            return Some((self.clone(), true));
        }
        kept.stale = true;
        kept.refresh();
        (kept.timed > 0).then_some((kept, false))
    }

    /// Brings the percentiles up to date.
    pub fn refresh(&mut self) {
        if !self.stale {
            return;
        }
        self.stale = false;
        let Some(histogram) = &self.histogram else { return };
        let at = |q, least| (self.timed >= least).then(|| histogram.value_at_quantile(q).clamp(self.min, self.max));
        self.quantiles = Quantiles {
            p50: at(0.5, 20),
            p95: at(0.95, 20),
            p99: at(0.99, 100),
        };
    }

    /// Counts in `bins` bins from the minimum on, with equal ratios if `logarithmic`, else equal widths: (lower edge,
    /// count). The last bin has everything above the 99th percentile, so that outliers do not dominate.
    pub fn bins(&self, bins: usize, logarithmic: bool) -> Vec<(u64, u64)> {
        let Some(histogram) = &self.histogram else {
            return Vec::new();
        };
        if self.timed == 0 || bins == 0 {
            return Vec::new();
        }
        let (low, high) = (self.min.max(1) as f64, (self.max.max(1) as f64) * 1.000_001);
        let inner = bins.saturating_sub(1).max(1);
        let high = self
            .quantiles
            .p99
            .map_or(high, |p99| (p99 as f64 * 1.02).clamp(low, high));
        let edge = |i: usize| {
            let part = i as f64 / inner as f64;
            if logarithmic {
                low * (high / low).powf(part)
            } else {
                low + (high - low) * part
            }
        };
        let mut out: Vec<(u64, u64)> = (0..bins).map(|i| (edge(i) as u64, 0)).collect();
        for step in histogram.iter_recorded() {
            let value = (step.value_iterated_to() as f64).max(low);
            let at = out.partition_point(|&(edge, _)| edge as f64 <= value).saturating_sub(1);
            out[at].1 += step.count_since_last_iteration();
        }
        out
    }

    /// Whether it has a histogram.
    pub fn is_full(&self) -> bool {
        self.histogram.is_some()
    }

    /// Whether it was made from sums, which have no percentiles.
    pub fn is_of_sums(&self) -> bool {
        self.squares.is_nan()
    }
}

/// A sum of a few values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summed {
    count: u32,
    total: u64,
    min: u64,
    max: u64,
    squares: f64,
}

impl Default for Summed {
    fn default() -> Self {
        Self {
            count: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
            squares: 0.0,
        }
    }
}

impl Summed {
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.squares += (value as f64) * (value as f64);
    }
}

/// A value for each of the last seconds.
#[derive(Clone, Debug)]
pub struct Trend {
    second: u64,
    values: [u64; Self::SECONDS],
}

impl Default for Trend {
    fn default() -> Self {
        Self {
            second: 0,
            values: [0; Self::SECONDS],
        }
    }
}

impl Trend {
    /// Number of seconds.
    pub const SECONDS: usize = 60;

    /// Adds to the second of `at` (ns).
    pub fn add(&mut self, at: u64, value: u64) {
        let second = at / 1_000_000_000;
        self.turn(second);
        if self.second - second < Self::SECONDS as u64 {
            let slot = &mut self.values[(second % Self::SECONDS as u64) as usize];
            *slot = slot.saturating_add(value);
        }
    }

    fn turn(&mut self, second: u64) {
        if second <= self.second {
            return;
        }
        let steps = (second - self.second).min(Self::SECONDS as u64);
        for step in 0..steps {
            self.values[((second - step) % Self::SECONDS as u64) as usize] = 0;
        }
        self.second = second;
    }

    /// The last `count` complete seconds before `now` (ns), oldest first.
    pub fn last(&self, now: u64, count: usize) -> Vec<u64> {
        let present = now / 1_000_000_000;
        let count = count.min(Self::SECONDS - 1) as u64;
        (0..count)
            .rev()
            .map(|back| {
                let Some(second) = present.checked_sub(back + 1) else {
                    return 0;
                };
                let known = second <= self.second && self.second - second < Self::SECONDS as u64;
                if known {
                    self.values[(second % Self::SECONDS as u64) as usize]
                } else {
                    0
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_has_the_percentiles_of_what_came_since() {
        let mut stat = Stat::new(true);
        (0..1000).for_each(|_| stat.add(1_000_000));
        let earlier = stat.clone();
        assert_eq!(stat.rest(&earlier).calls, 0);
        (0..100).for_each(|_| stat.add(5_000));
        let rest = stat.rest(&earlier);
        assert_eq!((rest.calls, rest.total), (100, 500_000));
        let p99 = rest.quantiles.p99.unwrap_or(0);
        assert!(p99.abs_diff(5_000) <= 50 && rest.max.abs_diff(5_000) <= 50, "{rest:?}");
    }

    #[test]
    fn the_rest_of_what_had_no_values_is_all() {
        let earlier = Stat::default();
        let mut stat = Stat::new(true);
        (0..100).for_each(|_| stat.add(5_000));
        stat.refresh();
        let rest = stat.rest(&earlier);
        assert_eq!((rest.calls, rest.max), (100, 5_000));
        assert!(rest.quantiles.p50.is_some());
    }

    #[test]
    fn values_within_bounds_are_counted_by_the_histogram() {
        let mut stat = Stat::new(true);
        (0..900).for_each(|_| stat.add(1_000_000));
        (0..100).for_each(|_| stat.add(5_000_000));
        stat.refresh();
        let (slow, is_exact) = stat.within(|nanos| nanos > 2_000_000).unwrap();
        assert_eq!((slow.calls, is_exact), (100, false));
        assert!(
            slow.total.abs_diff(500_000_000) <= 5_000_000 && slow.min > 4_900_000,
            "{slow:?}"
        );
        assert!(slow.quantiles.p50.is_some_and(|p50| p50.abs_diff(5_000_000) <= 50_000));
        let (all, is_exact) = stat.within(|nanos| nanos > 2).unwrap();
        assert_eq!((all.total, is_exact), (stat.total, true));
        assert!(stat.within(|nanos| nanos > 6_000_000).is_none());
        let half = Stat::of(&[1_000, 3_000]).scaled(2, 10);
        assert_eq!(
            (half.calls, half.total, half.average(), half.max),
            (10, 20_000, Some(2_000), 3_000)
        );
    }

    #[test]
    fn percentiles_of_plain_numbers_are_of_those_numbers() {
        let of = |count: u64| Quantiles::of(&mut (1..=count).rev().collect::<Vec<u64>>());
        assert_eq!(of(0), Quantiles::default());
        assert_eq!(of(19), Quantiles::default());
        assert_eq!((of(20).p50, of(20).p95, of(20).p99), (Some(10), Some(19), None));
        assert_eq!(
            (of(1000).p50, of(1000).p95, of(1000).p99),
            (Some(500), Some(950), Some(990))
        );
    }

    #[test]
    fn percentiles_need_enough_samples_and_are_within_one_per_cent() {
        let mut stat = Stat::new(true);
        for i in 1..=19 {
            stat.add(i * 1000);
        }
        stat.refresh();
        assert_eq!(stat.quantiles, Quantiles::default());
        for i in 20..=1000 {
            stat.add(i * 1000);
        }
        stat.refresh();
        let p99 = stat.quantiles.p99.unwrap();
        assert!((980_000..=1_000_000).contains(&p99), "{p99}");
        assert_eq!((stat.min, stat.max, stat.calls), (1000, 1_000_000, 1000));
        assert_eq!(stat.average(), Some(500_500));
        assert_eq!(stat.bins(8, true).iter().map(|b| b.1).sum::<u64>(), 1000);
    }

    #[test]
    fn values_counted_apart_give_the_same_histogram() {
        let (mut one_by_one, mut apart) = (Stat::new(true), Stat::new(true));
        let mut counts = Counts::default();
        let mut value = 1u64;
        for i in 0..100_000u64 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i);
            let value = value >> (20 + i % 44);
            one_by_one.add(value);
            apart.add_apart(value);
            if counts.add(value) {
                apart.count_in(&mut counts);
            }
        }
        for _ in 0..70_000 {
            one_by_one.add(5);
            apart.add_apart(5);
            if counts.add(5) {
                apart.count_in(&mut counts);
            }
        }
        apart.count_in(&mut counts);
        one_by_one.refresh();
        apart.refresh();
        assert_eq!(one_by_one.quantiles, apart.quantiles);
        assert_eq!(one_by_one.sum(), apart.sum());
        assert_eq!(one_by_one.bins(40, true), apart.bins(40, true));
        assert_eq!(one_by_one.histogram, apart.histogram);
    }

    #[test]
    fn a_trend_forgets_what_is_older_than_a_minute() {
        let mut trend = Trend::default();
        trend.add(1_500_000_000, 7);
        assert_eq!(trend.last(2_000_000_000, 3), [0, 0, 7]);
        trend.add(90_000_000_000, 9);
        assert_eq!(trend.last(91_000_000_000, 2), [0, 9]);
        trend.add(1_000_000_000, 5);
        assert_eq!(trend.last(91_000_000_000, 59).iter().sum::<u64>(), 9);
    }
}
