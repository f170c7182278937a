//! Compares two runs: which kernels became slower or faster, beyond noise.

use crate::Snapshot;
use crate::analysis::change::{MIN_CHANGE, MIN_SAMPLES, SIGNIFICANT_ERRORS, Sample, compare};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Verdict on a kernel, in a word.
fn verdict(before: Sample, after: Sample) -> &'static str {
    match (before.count, after.count) {
        (0, _) => "new",
        (_, 0) => "gone",
        _ => compare(before, after).verdict.word(),
    }
}

/// Statistics by name: kernels that differ only in registers or LDS are merged.
fn kernels(snapshot: &Snapshot) -> BTreeMap<&str, Sample> {
    let mut kernels = BTreeMap::new();
    for row in snapshot.values.kernels.iter().filter(|row| row.numbers.stat.timed > 0) {
        if let Some(known) = snapshot.names.kernel(row.id) {
            let all: &mut Sample = kernels.entry(&*known.kernel.name).or_default();
            *all = all.joined(Sample::of(&row.numbers.stat));
        }
    }
    kernels
}

/// Writes the table, sorted by change of total time.
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
    let gain = |row: &(&str, Sample, Sample)| row.2.total() - row.1.total();
    rows.sort_by(|a, b| gain(b).abs().total_cmp(&gain(a).abs()));
    let total = |rows: &BTreeMap<&str, Sample>| rows.values().map(|one| one.total()).sum::<f64>();
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
        let share = compare(*a, *b).share;
        let change = share.map_or_else(|| "-".to_owned(), |share| format!("{:+.1} %", share * 100.0));
        writeln!(
            out,
            "{:>8} {:>9} {:>9} {:>11.3} {:>11.3} {change:>8} {:>+13.3}  {name}",
            verdict(*a, *b),
            a.count,
            b.count,
            a.mean / 1e3,
            b.mean / 1e3,
            gain(row) / 1e6
        )?;
    }
    writeln!(
        out,
        "\nnoise: the means differ by less than {SIGNIFICANT_ERRORS} standard errors or {} %; too few: fewer than {MIN_SAMPLES} launches",
        MIN_CHANGE * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_of_one_side_is_new_or_gone() {
        let sample = |count, mean| Sample {
            count,
            mean,
            deviation: Some(5.0),
        };
        assert_eq!(verdict(Sample::default(), sample(5, 1.0)), "new");
        assert_eq!(verdict(sample(5, 1.0), Sample::default()), "gone");
        assert_eq!(verdict(sample(1000, 100.0), sample(1000, 110.0)), "slower");
        assert_eq!(verdict(sample(1000, 100.0), sample(1000, 101.0)), "noise");
        assert_eq!(verdict(sample(1, 100.0), sample(1, 900.0)), "too few");
    }
}
