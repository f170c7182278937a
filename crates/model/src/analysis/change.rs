//! Compares two sets of durations: change of the mean, and whether it exceeds noise.

use crate::stats::Stat;

/// Number of standard errors that a significant difference of means exceeds …
pub const SIGNIFICANT_ERRORS: f64 = 4.0;
/// … and its minimum share of the mean: consecutive durations are not independent, so the standard errors are too
/// small.
pub const MIN_CHANGE: f64 = 0.02;
/// Minimum number of samples for a verdict.
pub const MIN_SAMPLES: u64 = 5;

/// Verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Slower, by more than noise.
    Worse,
    /// Faster, by more than noise.
    Better,
    /// Within noise.
    Same,
    /// Too few samples.
    Unclear,
    /// Only after.
    New,
    /// Only before.
    Gone,
}

impl Verdict {
    /// Name on the screen.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Worse => "slower",
            Self::Better => "faster",
            Self::Same => "noise",
            Self::Unclear => "too few",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

/// Change of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Difference as a share of the old mean; `None` if one side has no samples.
    pub share: Option<f64>,
    /// Difference that noise alone explains, as a share of the old mean.
    pub noise: Option<f64>,
    /// Verdict.
    pub verdict: Verdict,
}

/// What a change was measured between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The launches of one run a side: noise is that of launches.
    WithinRuns,
    /// Several runs a side: noise is that of runs.
    BetweenRuns,
}

impl Scope {
    /// The scope in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::WithinRuns => "within these runs",
            Self::BetweenRuns => "between runs",
        }
    }
}

impl Change {
    /// The change in a sentence, if there is one beyond noise: `slower by 4.1 % (±1.2 %) between runs`.
    pub fn sentence(&self, scope: Scope) -> Option<String> {
        if !matches!(self.verdict, Verdict::Worse | Verdict::Better) {
            return None;
        }
        let percent = |share: f64| format!("{:.1} %", share.abs() * 100.0);
        let noise = self.noise.map(|noise| format!(" (±{})", percent(noise)));
        let (word, scope) = (self.verdict.word(), scope.words());
        let by = self.share.map(|share| format!(" by {}", percent(share)));
        Some(format!(
            "{word}{}{} {scope}",
            by.unwrap_or_default(),
            noise.unwrap_or_default()
        ))
    }
}

/// Effect size: the change of a value as a share of the earlier one; `None` if that is not above zero.
pub fn effect(before: f64, after: f64) -> Option<f64> {
    (before > 0.0).then(|| (after - before) / before)
}

/// Summary of a set of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Number of durations.
    pub count: u64,
    /// Mean, ns.
    pub mean: f64,
    /// Standard deviation, ns, if known.
    pub deviation: Option<f64>,
}

impl Sample {
    /// Summary of the timed values.
    pub fn of(stat: &Stat) -> Self {
        Self {
            count: stat.timed,
            mean: stat.total as f64 / stat.timed.max(1) as f64,
            deviation: stat.deviation().map(|deviation| deviation as f64),
        }
    }

    /// Summary of durations, by their number, sum and sum of squares.
    pub fn of_sums(count: u64, total: u64, squares: f64) -> Self {
        let n = count as f64;
        let mean = total as f64 / n.max(1.0);
        Self {
            count,
            mean,
            deviation: (count >= 2).then(|| (squares / n - mean * mean).max(0.0).sqrt()),
        }
    }

    /// Summary of both sets together.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let (a, b) = (self.count as f64, other.count as f64);
        let n = a + b;
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other } else { self };
        }
        let apart = (self.mean - other.mean).powi(2) * a * b / n;
        let squares = |(one, two): (f64, f64)| a * one.powi(2) + b * two.powi(2) + apart;
        // A single value has no deviation.
        let deviation = |sample: Self| if sample.count == 1 { Some(0.0) } else { sample.deviation };
        Self {
            count: self.count + other.count,
            mean: (a * self.mean + b * other.mean) / n,
            deviation: deviation(self)
                .zip(deviation(other))
                .map(|both| (squares(both) / n).sqrt()),
        }
    }

    /// Sum of all durations, ns.
    pub fn total(self) -> f64 {
        self.count as f64 * self.mean
    }
}

/// Compares two sets of durations.
pub fn compare(before: Sample, after: Sample) -> Change {
    if before.count == 0 || after.count == 0 {
        return Change {
            share: None,
            noise: None,
            verdict: match (before.count, after.count) {
                (0, 0) => Verdict::Unclear,
                (0, _) => Verdict::New,
                _ => Verdict::Gone,
            },
        };
    }
    let old = before.mean.max(1.0);
    let share = effect(old, after.mean).unwrap_or_default();
    let error = |sample: Sample| {
        sample
            .deviation
            .map(|deviation| deviation.powi(2) / sample.count as f64)
    };
    let noise = error(before)
        .zip(error(after))
        .map(|(a, b)| SIGNIFICANT_ERRORS * (a + b).sqrt() / old);
    let verdict = match noise {
        _ if before.count < MIN_SAMPLES || after.count < MIN_SAMPLES => Verdict::Unclear,
        None => Verdict::Unclear,
        Some(noise) if share.abs() <= noise.max(MIN_CHANGE) => Verdict::Same,
        Some(_) if share > 0.0 => Verdict::Worse,
        Some(_) => Verdict::Better,
    };
    Change {
        share: Some(share),
        noise,
        verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: impl Iterator<Item = u64>) -> Sample {
        Sample::of(&stat(values))
    }

    fn stat(values: impl Iterator<Item = u64>) -> Stat {
        let mut stat = Stat::new(false);
        values.for_each(|value| stat.add(value));
        stat
    }

    #[test]
    fn noise_and_change_are_distinguished() {
        let wide = |shift: u64| sample((0..100).map(move |i| 1_000_000 + shift + (i * 7919) % 400_000));
        assert_eq!(compare(wide(0), wide(0)).verdict, Verdict::Same);
        assert_eq!(compare(wide(0), wide(20_000)).verdict, Verdict::Same, "within noise");
        assert_eq!(compare(wide(0), wide(300_000)).verdict, Verdict::Worse);
        assert_eq!(compare(wide(300_000), wide(0)).verdict, Verdict::Better);
        let few = sample([1_000_000, 1_000_001].into_iter());
        assert_eq!(compare(few, wide(900_000)).verdict, Verdict::Unclear);
        let none = Sample::default();
        assert_eq!(compare(none, few).share, None);
        let verdicts = [compare(none, few), compare(few, none), compare(none, none)].map(|change| change.verdict);
        assert_eq!(verdicts, [Verdict::New, Verdict::Gone, Verdict::Unclear]);
    }

    #[test]
    fn a_change_has_one_sentence_for_each_scope() {
        let change = |before, after| compare(sample(before), sample(after));
        let slower = change(vec![1000; 100].into_iter(), vec![1041; 100].into_iter());
        let sentence = |scope| slower.sentence(scope).unwrap();
        assert_eq!(
            sentence(Scope::WithinRuns),
            "slower by 4.1 % (±0.0 %) within these runs"
        );
        assert_eq!(sentence(Scope::BetweenRuns), "slower by 4.1 % (±0.0 %) between runs");
        let same = change(vec![1000; 100].into_iter(), vec![1001; 100].into_iter());
        assert_eq!(same.sentence(Scope::WithinRuns), None);
        assert_eq!((effect(0.0, 5.0), effect(4.0, 5.0)), (None, Some(0.25)));
    }

    #[test]
    fn parts_of_one_kernel_are_joined() {
        let sample = |count, mean, deviation| Sample { count, mean, deviation };
        // 1, 3 and 5, 7, 9: the deviation is that of all five.
        let all = sample(2, 2.0, Some(1.0)).joined(sample(3, 7.0, Some((8.0f64 / 3.0).sqrt())));
        assert_eq!(all.count, 5);
        assert!((all.mean - 5.0).abs() < 1e-9 && (all.deviation.unwrap() - 8.0f64.sqrt()).abs() < 1e-9);
        let some = sample(3, 7.0, Some(1.0));
        assert_eq!(Sample::default().joined(some), some);
        assert_eq!(
            sample(1, 7.0, None).joined(some).deviation.map(|it| it < 1.0),
            Some(true)
        );
    }

    #[test]
    fn what_came_since_is_compared_with_what_was_before() {
        let mut all = stat((0..100).map(|i| 1_000_000 + i));
        let before = all.clone();
        (0..100).for_each(|i| all.add(2_000_000 + i));
        let since = all.since(&before);
        assert_eq!((since.calls, since.average()), (100, Some(2_000_049)));
        let change = compare(Sample::of(&before), Sample::of(&since));
        assert_eq!(change.verdict, Verdict::Worse);
        assert!((change.share.unwrap() - 1.0).abs() < 0.01);
    }
}
