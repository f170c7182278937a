//! Two sets of durations compared: how much the mean has changed, and whether that is more than noise.

use crate::model::stat::Stat;

/// A change below this share of the mean is none that anyone would act upon.
const LEAST: f64 = 0.01;
/// The difference of two means of the same thing is beyond so many standard errors once in a few hundred times.
const ERRORS: f64 = 3.0;
/// With fewer samples no verdict is given.
const FEWEST: u64 = 5;

/// What is to be thought of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Slower by more than noise.
    Worse,
    /// Faster by more than noise.
    Better,
    /// Within noise.
    Same,
    /// Not enough samples.
    Unclear,
}

impl Verdict {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Worse => "slower",
            Self::Better => "faster",
            Self::Same => "noise",
            Self::Unclear => "too few",
        }
    }
}

/// A change of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The difference as a share of the mean before; none without samples on both sides.
    pub share: Option<f64>,
    /// How large a difference noise alone would explain, as a share of the mean before.
    pub noise: Option<f64>,
    /// What is to be thought of it.
    pub verdict: Verdict,
}

/// Compares two sets of durations.
pub fn compare(before: &Stat, after: &Stat) -> Change {
    let mean = |stat: &Stat| (stat.timed > 0).then(|| stat.total as f64 / stat.timed as f64);
    let (Some(old), Some(new)) = (mean(before), mean(after)) else {
        return Change {
            share: None,
            noise: None,
            verdict: Verdict::Unclear,
        };
    };
    let old = old.max(1.0);
    let share = (new - old) / old;
    let error = |stat: &Stat| {
        stat.deviation()
            .map(|deviation| (deviation as f64).powi(2) / stat.timed as f64)
    };
    let noise = error(before)
        .zip(error(after))
        .map(|(a, b)| ERRORS * (a + b).sqrt() / old);
    let verdict = match noise {
        _ if before.timed < FEWEST || after.timed < FEWEST => Verdict::Unclear,
        None => Verdict::Unclear,
        Some(noise) if share.abs() <= noise.max(LEAST) => Verdict::Same,
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

    fn stat(values: impl Iterator<Item = u64>) -> Stat {
        let mut stat = Stat::new(false);
        values.for_each(|value| stat.add(value));
        stat
    }

    #[test]
    fn noise_is_told_from_a_change() {
        let wide = |shift: u64| stat((0..100).map(move |i| 1_000_000 + shift + (i * 7919) % 400_000));
        assert_eq!(compare(&wide(0), &wide(0)).verdict, Verdict::Same);
        assert_eq!(compare(&wide(0), &wide(20_000)).verdict, Verdict::Same, "within noise");
        assert_eq!(compare(&wide(0), &wide(300_000)).verdict, Verdict::Worse);
        assert_eq!(compare(&wide(300_000), &wide(0)).verdict, Verdict::Better);
        let few = stat([1_000_000, 1_000_001].into_iter());
        assert_eq!(compare(&few, &wide(900_000)).verdict, Verdict::Unclear);
        assert_eq!(compare(&stat(std::iter::empty()), &few).share, None);
    }

    #[test]
    fn what_came_since_is_compared_with_what_was_before() {
        let mut all = stat((0..100).map(|i| 1_000_000 + i));
        let before = all.clone();
        (0..100).for_each(|i| all.add(2_000_000 + i));
        let since = all.since(&before);
        assert_eq!((since.calls, since.average()), (100, Some(2_000_049)));
        let change = compare(&before, &since);
        assert_eq!(change.verdict, Verdict::Worse);
        assert!((change.share.unwrap() - 1.0).abs() < 0.01);
    }
}
