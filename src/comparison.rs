//! Two runs beside each other: which kernels became slower or faster, and whether that is more than noise.

use crate::model::Snapshot;
use crate::model::stat::Stat;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A difference of means counts when it is so many standard errors wide …
const ERRORS: f64 = 4.0;
/// … and this part of the mean at least: durations in a row are not independent, so that the errors are too small.
const LEAST: f64 = 0.02;

/// What is to be said of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More time a launch.
    Slower,
    /// Less time a launch.
    Faster,
    /// No difference that the runs' own noise would not make.
    Noise,
    /// In the second run only.
    New,
    /// In the first run only.
    Gone,
}

impl Verdict {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Noise => "noise",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

/// Durations: how many, mean ns, standard deviation ns.
pub type Sample = (u64, f64, f64);

/// Compares durations.
pub fn verdict(before: Sample, after: Sample) -> Verdict {
    match (before.0, after.0) {
        (0, _) => return Verdict::New,
        (_, 0) => return Verdict::Gone,
        // One launch says nothing of noise.
        (1, _) | (_, 1) => return Verdict::Noise,
        _ => {}
    }
    let variance = |(calls, _, deviation): Sample| deviation * deviation / calls as f64;
    let error = (variance(before) + variance(after)).sqrt();
    let change = after.1 - before.1;
    if change.abs() <= ERRORS * error || change.abs() < LEAST * before.1 {
        Verdict::Noise
    } else if change > 0.0 {
        Verdict::Slower
    } else {
        Verdict::Faster
    }
}

fn numbers(stat: &Stat) -> Sample {
    let mean = stat.total as f64 / stat.timed.max(1) as f64;
    (stat.timed, mean, stat.deviation().unwrap_or(0) as f64)
}

/// Both together.
fn joined(one: Sample, other: Sample) -> Sample {
    let (a, b) = (one.0 as f64, other.0 as f64);
    let n = a + b;
    if one.0 == 0 || other.0 == 0 {
        return if one.0 == 0 { other } else { one };
    }
    let apart = (one.1 - other.1).powi(2) * a * b / n;
    let squares = a * one.2 * one.2 + b * other.2 * other.2 + apart;
    (one.0 + other.0, (a * one.1 + b * other.1) / n, (squares / n).sqrt())
}

/// By name: kernels of one name that differ in registers or LDS are rows of their own elsewhere.
fn kernels(snapshot: &Snapshot) -> BTreeMap<&str, Sample> {
    let mut kernels = BTreeMap::new();
    for row in snapshot.values.kernels.iter().filter(|row| row.numbers.stat.timed > 0) {
        if let Some(known) = snapshot.names.kernel(row.id) {
            let all = kernels.entry(&*known.kernel.name).or_default();
            *all = joined(*all, numbers(&row.numbers.stat));
        }
    }
    kernels
}

/// Writes the table, the greatest change of time in all first.
pub fn write(before: &Snapshot, after: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let (old, new) = (kernels(before), kernels(after));
    let mut names: Vec<&str> = old.keys().chain(new.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let of = |all: &BTreeMap<&str, Sample>, name: &str| all.get(name).copied().unwrap_or_default();
    let mut rows: Vec<_> = names
        .into_iter()
        .map(|name| (name, of(&old, name), of(&new, name)))
        .collect();
    let gain = |row: &(&str, Sample, Sample)| row.2.0 as f64 * row.2.1 - row.1.0 as f64 * row.1.1;
    rows.sort_by(|a, b| gain(b).abs().total_cmp(&gain(a).abs()));
    let total = |rows: &BTreeMap<&str, Sample>| rows.values().map(|one| one.0 as f64 * one.1).sum::<f64>();
    let (was, is) = (total(&old) / 1e6, total(&new) / 1e6);
    writeln!(
        out,
        "GPU time of kernels: {was:.3} ms before, {is:.3} ms after ({:+.3} ms)",
        is - was
    )?;
    writeln!(
        out,
        "\n{:>8} {:>9} {:>9} {:>11} {:>11} {:>8} {:>13}  KERNEL",
        "VERDICT", "CALLS A", "CALLS B", "AVG A us", "AVG B us", "CHANGE", "TOTAL ms"
    )?;
    for row in &rows {
        let (name, a, b) = row;
        let change = if a.0 > 0 && b.0 > 0 {
            format!("{:+.1} %", (b.1 - a.1) * 100.0 / a.1.max(1.0))
        } else {
            "-".to_owned()
        };
        writeln!(
            out,
            "{:>8} {:>9} {:>9} {:>11.3} {:>11.3} {change:>8} {:>+13.3}  {name}",
            verdict(*a, *b).word(),
            a.0,
            b.0,
            a.1 / 1e3,
            b.1 / 1e3,
            gain(row) / 1e6
        )?;
    }
    writeln!(
        out,
        "\nnoise: the means differ by less than {ERRORS} standard errors or {} %",
        LEAST * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_kernel_are_joined() {
        // 1, 3 and 5, 7, 9: a deviation is that of all.
        let (calls, mean, deviation) = joined((2, 2.0, 1.0), (3, 7.0, (8.0f64 / 3.0).sqrt()));
        assert_eq!(calls, 5);
        assert!((mean - 5.0).abs() < 1e-9 && (deviation - 8.0f64.sqrt()).abs() < 1e-9);
        assert_eq!(joined((0, 0.0, 0.0), (3, 7.0, 1.0)), (3, 7.0, 1.0));
    }

    #[test]
    fn noise_is_told_from_change() {
        assert_eq!(verdict((1000, 100.0, 5.0), (1000, 110.0, 5.0)), Verdict::Slower);
        assert_eq!(verdict((1000, 100.0, 5.0), (1000, 90.0, 5.0)), Verdict::Faster);
        assert_eq!(verdict((1000, 100.0, 5.0), (1000, 101.0, 5.0)), Verdict::Noise);
        assert_eq!(verdict((4, 100.0, 50.0), (4, 150.0, 50.0)), Verdict::Noise);
        assert_eq!(verdict((1, 100.0, 0.0), (1, 900.0, 0.0)), Verdict::Noise);
        assert_eq!(verdict((0, 0.0, 0.0), (5, 1.0, 0.0)), Verdict::New);
        assert_eq!(verdict((5, 1.0, 0.0), (0, 0.0, 0.0)), Verdict::Gone);
    }
}
