//! Several runs a side: what became slower between them, beyond what a program shows against itself.

pub mod baseline;
mod environment;
mod statistics;
mod sums;
mod write;

pub use self::environment::Environment;
pub use self::statistics::Mode;
pub(crate) use self::sums::wall;
pub use self::sums::{Kind, Row, Sums, WarmUp, trouble, warm_up};
pub use self::write::{Format, write, write_runs};

use self::statistics::{interval, least_probability, median, modes, probabilities};
use crate::analysis::change::{Change, MIN_CHANGE, MIN_SAMPLES, Scope, Verdict, effect};
use crate::report::comparison::{SAME_CODE, code_difference};
use std::collections::{BTreeMap, BTreeSet};

/// Probability that a comparison of a program with itself names any row.
pub const MAX_FALSE_ALARMS: f64 = 0.01;
/// Probability at which a row is named: half of that, because runs are not quite independent; with few runs the smallest that
/// there is (of 5 with 5: 0.8 %).
const LEVEL: f64 = 0.005;
/// Minimum change of a cause of idle time, as a share of the run: small causes vary by any factor.
const MIN_IDLE_CHANGE: f64 = 0.01;

/// The runs of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// What each adds up to.
    pub runs: Vec<Sums>,
    /// Where they were made.
    pub environment: Environment,
}

impl Side {
    /// The values of a row, if each run has it.
    fn values(&self, kind: Kind, name: &str) -> Option<Vec<f64>> {
        self.runs.iter().map(|run| run.row(kind, name)?.value(kind)).collect()
    }

    /// The rows of all runs.
    fn names(&self) -> BTreeSet<(Kind, &str)> {
        let rows = self.runs.iter().flat_map(|run| &run.rows);
        rows.flat_map(|(kind, rows)| rows.keys().map(|name| (*kind, name.as_str())))
            .collect()
    }

    /// Median clock of the runs, MHz.
    fn clock(&self) -> Option<f64> {
        let clocks: Vec<f64> = self.runs.iter().filter_map(|run| run.clock).collect();
        (!clocks.is_empty()).then(|| median(&clocks))
    }

    /// Median power of the runs, W.
    fn power(&self) -> Option<f64> {
        let powers: Vec<f64> = self.runs.iter().filter_map(|run| run.power).collect();
        (!powers.is_empty()).then(|| median(&powers))
    }

    /// Where the processes ran, as far as runs know it, and in how many runs.
    fn placements(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for run in self.runs.iter().filter(|run| !run.placement.is_empty()) {
            *counts.entry(run.placement.join("; ")).or_default() += 1;
        }
        counts
    }

    /// The same in words.
    fn placement(&self) -> Option<String> {
        let all = self.runs.len();
        let words = self.placements().into_iter().map(|(words, count)| {
            if count == all {
                words
            } else {
                format!("{words} in {count} of {all} runs")
            }
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Models of the GPUs, if all runs had the same.
    fn gpus(&self) -> Option<&[String]> {
        let first = &self.runs.first()?.gpus;
        self.runs.iter().all(|run| run.gpus == *first).then_some(first)
    }
}

/// Why no verdict is possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoVerdict {
    /// Too few runs.
    #[error("{before} and {after} runs: a verdict needs {MIN_SAMPLES} a side")]
    TooFew {
        /// Runs before.
        before: usize,
        /// Runs after.
        after: usize,
    },
    /// Another GPU.
    #[error("the GPUs differ: {before} before, {after} after")]
    OtherGpu {
        /// GPUs before.
        before: String,
        /// GPUs after.
        after: String,
    },
}

/// A row of one side.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Median of the runs, ns.
    pub median: f64,
    /// Its 95 % interval, ns.
    pub interval: Option<[f64; 2]>,
    /// Two modes, if the runs have two.
    pub modes: Option<[Mode; 2]>,
}

impl Summary {
    fn of(values: &[f64]) -> Self {
        Self {
            median: median(values),
            interval: interval([values], |[median]| Some(median)),
            modes: modes(values),
        }
    }
}

/// A row of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// What it is of.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Before; `None` if not all runs have it.
    pub before: Option<Summary>,
    /// After; `None` if not all runs have it.
    pub after: Option<Summary>,
    /// Change of the medians. Its noise is half of the interval's width.
    pub change: Change,
    /// 95 % interval of the change.
    pub interval: Option<[f64; 2]>,
    /// Probability that a program with itself has such a change in any row.
    pub probability: Option<f64>,
    /// What the code says of a change.
    pub code: Option<String>,
}

impl Compared {
    /// The change in a sentence, with what the code and the clock say.
    pub fn sentence(&self) -> Option<String> {
        let sentence = self.change.sentence(Scope::BetweenRuns)?;
        Some(match &self.code {
            Some(code) => format!("{sentence}; {code}"),
            None => sentence,
        })
    }
}

/// Both sides, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The rows: slower, faster, only on one side, then all others by kind.
    pub rows: Vec<Compared>,
    /// Number of runs of each side.
    pub runs: [usize; 2],
}

impl Comparison {
    /// The rows that became slower.
    pub fn slower(&self) -> impl Iterator<Item = &Compared> {
        self.rows.iter().filter(|row| row.change.verdict == Verdict::Worse)
    }
}

/// Whether two sides can be compared.
pub fn check(before: &Side, after: &Side) -> Result<(), NoVerdict> {
    let runs = [before.runs.len(), after.runs.len()];
    if runs.iter().any(|runs| (*runs as u64) < MIN_SAMPLES) {
        let [before, after] = runs;
        return Err(NoVerdict::TooFew { before, after });
    }
    if before.gpus().is_none() || before.gpus() != after.gpus() {
        let words = |side: &Side| side.gpus().map_or_else(|| "several".into(), |gpus| gpus.join(" and "));
        return Err(NoVerdict::OtherGpu {
            before: words(before),
            after: words(after),
        });
    }
    Ok(())
}

/// Compares two sides. A row is slower or faster if its medians differ by more than 2 % (a cause of idle time: by more than 1 %
/// of the run), and if a program with itself shows such a difference in any of the rows in at most 1 % of comparisons.
pub fn compare(before: &Side, after: &Side) -> Result<Comparison, NoVerdict> {
    check(before, after)?;
    let names = before.names().into_iter().chain(after.names()).collect::<BTreeSet<_>>();
    let mut rows = Vec::new();
    let mut judged: Vec<(usize, RowValues)> = Vec::new();
    for (kind, name) in names.into_iter().filter(|row| row.0 != Kind::Api) {
        let sides = [before, after].map(|side| side.values(kind, name));
        let has = |side: &Side| side.runs.iter().any(|run| run.row(kind, name).is_some());
        let verdict = match (has(before), has(after)) {
            (true, false) => Verdict::Gone,
            (false, true) => Verdict::New,
            _ => Verdict::Unclear,
        };
        rows.push(Compared {
            kind,
            name: name.to_owned(),
            before: sides[0].as_deref().map(Summary::of),
            after: sides[1].as_deref().map(Summary::of),
            change: Change {
                share: None,
                noise: None,
                verdict,
            },
            interval: None,
            probability: None,
            code: None,
        });
        if let [Some(old), Some(new)] = sides {
            judged.push((rows.len() - 1, (kind, [old, new])));
        }
    }
    let wall = before.values(Kind::Wall, "program").map(|values| median(&values));
    let (places, judged): (Vec<usize>, Vec<RowValues>) = judged.into_iter().unzip();
    for ((at, (_, [old, new])), (verdict, probability)) in places.iter().zip(&judged).zip(verdicts(&judged, wall)) {
        let row = &mut rows[*at];
        row.change.share = effect(median(old), median(new));
        row.interval = interval([old, new], |[old, new]| effect(old, new));
        row.change.noise = row.interval.map(|[low, high]| (high - low) / 2.0);
        row.probability = Some(probability);
        row.change.verdict = verdict;
        row.code = code(row, before, after);
    }
    let place = |verdict: Verdict| match verdict {
        Verdict::Worse => 0,
        Verdict::Better => 1,
        Verdict::New | Verdict::Gone => 2,
        Verdict::Same | Verdict::Unclear => 3,
    };
    rows.sort_by_key(|row| (place(row.change.verdict), row.kind));
    Ok(Comparison {
        rows,
        runs: [before, after].map(|side| side.runs.len()),
    })
}

/// The probability up to which rows of `n` runs with `m` are named.
fn level(n: usize, m: usize) -> f64 {
    // Sums of the same divisions may differ in their last digits.
    (least_probability(n, m) * 1.001).clamp(LEVEL, MAX_FALSE_ALARMS)
}

/// What a row is of, and a value of each run of both sides.
type RowValues = (Kind, [Vec<f64>; 2]);

/// The verdict on each row, and the probability that a program with itself shows such a change in any of them; `wall` is the
/// time of a run.
fn verdicts(rows: &[RowValues], wall: Option<f64>) -> Vec<(Verdict, f64)> {
    let found = rows.iter().zip(probabilities(rows.iter().map(|row| &row.1)));
    let level = rows
        .first()
        .map_or(LEVEL, |(_, [old, new])| level(old.len(), new.len()));
    let verdict = |((kind, sides), probability): (&RowValues, f64)| {
        let [old, new] = [0, 1].map(|side| median(&sides[side]));
        let least = match (kind, wall) {
            (Kind::Idle, Some(wall)) => (MIN_IDLE_CHANGE * wall).max(MIN_CHANGE * old),
            _ => MIN_CHANGE * old,
        };
        let verdict = if probability > level || (new - old).abs() <= least {
            Verdict::Same
        } else if new > old {
            Verdict::Worse
        } else {
            Verdict::Better
        };
        (verdict, probability)
    };
    found.map(verdict).collect()
}

/// What code and clock say of a kernel that changed.
fn code(row: &Compared, before: &Side, after: &Side) -> Option<String> {
    if row.kind != Kind::Kernel || !matches!(row.change.verdict, Verdict::Worse | Verdict::Better) {
        return None;
    }
    // Every run of a side has the same program.
    let of = |side: &Side| side.runs.first()?.row(row.kind, &row.name)?.code;
    let text = code_difference(&of(before)?, &of(after)?)?;
    let clocks = before.clock().zip(after.clock());
    let clocks = clocks.filter(|(old, new)| effect(*old, *new).is_some_and(|share| share.abs() > MIN_CHANGE));
    Some(match clocks {
        Some((old, new)) if text == SAME_CODE => {
            let word = if new < old { "slower" } else { "faster" };
            format!("{text}, {word} clock: {old:.0} → {new:.0} MHz")
        }
        _ => text,
    })
}

/// The medians of both sides, and whether they differ by more than those of a program with itself, in any of the rows.
pub(crate) fn judge(rows: &[[Vec<f64>; 2]]) -> Vec<([f64; 2], bool)> {
    let found = rows.iter().zip(probabilities(rows.iter()));
    let row = |([old, new], probability): (&[Vec<f64>; 2], f64)| {
        let is_beyond = probability <= level(old.len(), new.len());
        ([median(old), median(new)], is_beyond)
    };
    found.map(row).collect()
}

/// Median of the values of a side.
pub(crate) fn middle(values: &[f64]) -> f64 {
    median(values)
}

#[cfg(test)]
mod tests;
