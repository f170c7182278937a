//! Thresholds for automated checks: `p99(gemm) > 2ms`.

use crate::Snapshot;
use crate::analysis::change::effect;
use crate::analysis::collectives as words;
use crate::report::runs::{self, Kind, Side};
use crate::report::summary::copy_name;
use crate::stats::{HISTOGRAMS, Stat};
use roctop_trace::item::CollectiveOperation as Operation;
use roctop_trace::units::{self, Quantity};
use std::collections::BTreeMap;

/// Minimum number of values for a median.
const MIN_MEDIAN_VALUES: u64 = 20;

/// Measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    P50,
    P95,
    P99,
    Min,
    Max,
    Average,
    Total,
    Calls,
    Bytes,
    Errors,
    Lost,
    Skew,
    Wait,
    Absent,
    Spills,
    Occupancy,
    Step,
    Wall,
}

impl Measure {
    pub(crate) fn is_time(self) -> bool {
        !matches!(
            self,
            Self::Calls | Self::Bytes | Self::Errors | Self::Lost | Self::Absent | Self::Spills | Self::Occupancy
        )
    }

    /// Its value in these statistics of durations; `None` if they are too few or have no times.
    pub(crate) fn of(self, stat: &Stat) -> Option<u64> {
        match self {
            Self::P50 => stat.quantiles.p50,
            // With fewer than 20 (100) values, the maximum is the 95th (99th) percentile by nearest rank.
            Self::P95 => stat.quantiles.p95.or((1..20).contains(&stat.timed).then_some(stat.max)),
            Self::P99 => stat
                .quantiles
                .p99
                .or((1..100).contains(&stat.timed).then_some(stat.max)),
            Self::Min => (stat.timed > 0).then_some(stat.min),
            Self::Max => (stat.timed > 0).then_some(stat.max),
            Self::Average => stat.average(),
            Self::Total => Some(stat.total),
            Self::Calls => Some(stat.calls),
            Self::Bytes
            | Self::Errors
            | Self::Lost
            | Self::Skew
            | Self::Wait
            | Self::Absent
            | Self::Spills
            | Self::Occupancy
            | Self::Step
            | Self::Wall => None,
        }
    }

    /// Whether it is of the whole run: it takes no name.
    const fn is_of_run(self) -> bool {
        matches!(self, Self::Lost | Self::Step | Self::Wall)
    }

    /// Whether it is of collectives: ranks are compared.
    const fn is_of_collectives(self) -> bool {
        matches!(self, Self::Skew | Self::Wait | Self::Absent)
    }

    /// Whether triggers have it too.
    pub(crate) const fn is_of_trigger(self) -> bool {
        !matches!(
            self,
            Self::Skew | Self::Wait | Self::Absent | Self::Spills | Self::Occupancy | Self::Step | Self::Wall
        )
    }

    /// Its value in a row of one run.
    fn of_row(self, row: &runs::Row) -> Option<f64> {
        let nanos = match self {
            Self::P50 | Self::Step => row.p50,
            Self::P95 => row.p95.or(row.max.filter(|_| row.timed < 20)),
            Self::P99 => row.p99.or(row.max.filter(|_| row.timed < 100)),
            Self::Min => row.min,
            Self::Max => row.max,
            Self::Total | Self::Wall => Some(row.total),
            Self::Calls => Some(row.calls),
            Self::Bytes => row.bytes,
            Self::Errors => row.errors,
            Self::Spills => row.code.and_then(|code| code.spills()).map(u64::from),
            Self::Average => return row.average(),
            Self::Occupancy => return row.occupancy,
            Self::Lost | Self::Skew | Self::Wait | Self::Absent => None,
        };
        nanos.map(|nanos| nanos as f64)
    }

    /// The rows that have it.
    const fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Step => &[Kind::Step],
            Self::Wall => &[Kind::Wall],
            Self::Bytes => &[Kind::Copy],
            Self::Errors => &[Kind::Api],
            Self::Spills | Self::Occupancy => &[Kind::Kernel],
            _ => &[Kind::Kernel, Kind::Copy, Kind::Api],
        }
    }
}

/// Names of the measures.
pub(crate) const MEASURES: [(&str, Measure); 19] = [
    ("p50", Measure::P50),
    ("p95", Measure::P95),
    ("p99", Measure::P99),
    ("min", Measure::Min),
    ("max", Measure::Max),
    ("avg", Measure::Average),
    ("mean", Measure::Average),
    ("total", Measure::Total),
    ("calls", Measure::Calls),
    ("bytes", Measure::Bytes),
    ("errors", Measure::Errors),
    ("lost", Measure::Lost),
    ("skew", Measure::Skew),
    ("wait", Measure::Wait),
    ("missing", Measure::Absent),
    ("spills", Measure::Spills),
    ("occ", Measure::Occupancy),
    ("step", Measure::Step),
    ("wall", Measure::Wall),
];

/// Comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Order {
    /// Whether the comparison is true.
    pub(crate) fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
        }
    }
}

pub(crate) const ORDERS: [(&str, Order); 4] = [
    (">=", Order::AtLeast),
    ("<=", Order::AtMost),
    (">", Order::Above),
    ("<", Order::Below),
];

/// Hint for an invalid condition.
const SHAPE: &str = "expected as 'p99(gemm) > 2ms', 'errors(hipMalloc) > 0' or 'lost > 0'";

fn measures() -> String {
    MEASURES.map(|known| known.0).join(", ")
}

/// Error of a threshold: invalid, or not checkable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// Without a comparison operator.
    #[error("--fail-if '{0}' compares nothing; {SHAPE}")]
    NoComparison(String),
    /// With an unclosed bracket.
    #[error("--fail-if '{0}' does not close its bracket; {SHAPE}")]
    OpenBracket(String),
    /// With an unknown measure.
    #[error("--fail-if: there is no measure '{0}'; there are {known}", known = measures())]
    NoMeasure(String),
    /// The measure lacks a name, or does not take one.
    #[error("--fail-if '{0}': {SHAPE}")]
    Shape(String),
    /// The limit is not a number, or lacks a unit.
    #[error("--fail-if '{text}': '{limit}' is not {unit}")]
    Limit {
        /// The condition.
        text: String,
        /// Its limit.
        limit: String,
        /// Expected form of the limit.
        unit: &'static str,
    },
    /// Nothing was recorded for the comparison.
    #[error("--fail-if '{text}': {reason}")]
    Unknown {
        /// The condition.
        text: String,
        /// What is missing.
        reason: String,
    },
}

/// A condition that must not be true.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    text: String,
    measure: Measure,
    /// Part of the names of kernels, copies or API functions, case-insensitive; empty for `lost`.
    name: String,
    order: Order,
    /// Limit in ns, a plain number, or a change in per cent.
    limit: f64,
    /// Whether the limit is a change.
    is_change: bool,
}

impl Threshold {
    /// Parses `MEASURE(NAME) ORDER LIMIT`, or `lost ORDER LIMIT`. A limit as `+3%` is a change against a baseline.
    pub fn parse(text: &str) -> Result<Self, ThresholdError> {
        let wrong = |kind: fn(String) -> ThresholdError| Err(kind(text.to_owned()));
        let found = ORDERS.iter().find_map(|(sign, order)| {
            // Kernel names contain comparison signs too.
            let from = text.rfind(')').unwrap_or(0);
            let at = from + text[from..].find(sign)?;
            Some((text[..at].trim(), text[at + sign.len()..].trim(), *order))
        });
        let Some((left, right, order)) = found else {
            return wrong(ThresholdError::NoComparison);
        };
        let (word, name) = match left.split_once('(') {
            Some((word, rest)) => match rest.strip_suffix(')') {
                Some(name) => (word.trim(), name.trim()),
                None => return wrong(ThresholdError::OpenBracket),
            },
            None => (left, ""),
        };
        let known = MEASURES.iter().find(|known| known.0 == word.to_ascii_lowercase());
        let Some((_, measure)) = known else {
            return Err(ThresholdError::NoMeasure(word.to_owned()));
        };
        if measure.is_of_run() != name.is_empty() {
            return wrong(ThresholdError::Shape);
        }
        let is_time = measure.is_time();
        let number = match measure {
            Measure::Occupancy => right.strip_suffix('%').map_or(right, str::trim_end),
            _ => right,
        };
        let change = change(right).filter(|_| *measure != Measure::Lost && !measure.is_of_collectives());
        let Some(limit) = change.or_else(|| limit(number, is_time)) else {
            return Err(ThresholdError::Limit {
                text: text.to_owned(),
                limit: right.to_owned(),
                unit: if is_time {
                    "a time with its unit, as 2ms"
                } else {
                    "a number"
                },
            });
        };
        Ok(Self {
            text: text.to_owned(),
            measure: *measure,
            name: name.to_owned(),
            order,
            limit,
            is_change: change.is_some(),
        })
    }

    /// Whether it compares with a baseline.
    pub const fn is_change(&self) -> bool {
        self.is_change
    }

    /// Whether only a timeline has its values.
    pub const fn needs_timeline(&self) -> bool {
        matches!(self.measure, Measure::Step)
    }

    /// The condition as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether sums of runs have its measure.
    pub const fn is_of_sums(&self) -> bool {
        !self.measure.is_of_collectives()
    }

    /// A line for each kernel, copy route or function that exceeds the limit.
    ///
    /// Errors: no recorded name matches, or the value is unknown; the error has the reason.
    pub fn exceeded(&self, snapshot: &Snapshot) -> Result<Vec<String>, ThresholdError> {
        let lower = self.name.to_lowercase();
        let mut found = Vec::new();
        if self.is_change {
            return Err(self.unknown("a change needs a baseline: 'roctop ci' has one".into()));
        }
        if matches!(self.measure, Measure::Step | Measure::Wall) {
            let (name, value) = match self.measure {
                Measure::Wall => ("program", Some(runs::wall(snapshot))),
                _ => ("median of the steps", snapshot.steps(0).map(|steps| steps.median)),
            };
            let value = value.ok_or_else(|| self.unknown("no steps were found".into()))?;
            return Ok(self.line_if_exceeded(name, value as f64).into_iter().collect());
        }
        if self.measure == Measure::Lost {
            let lost = snapshot.values.totals.lost;
            // Of an unknown number, none may be within any limit.
            if lost.is_least && matches!(self.order, Order::Above | Order::AtLeast) {
                let lost = lost.text(|records| records.to_string());
                return Ok(vec![format!("lost is {lost}: {} cannot be ruled out", self.text)]);
            }
            return Ok(self
                .line_if_exceeded("records", lost.records as f64)
                .into_iter()
                .collect());
        }
        if self.measure.is_of_collectives() {
            return self.exceeded_by_collectives(snapshot, &lower);
        }
        if matches!(self.measure, Measure::Spills | Measure::Occupancy) {
            return self.exceeded_by_code(snapshot, &lower);
        }
        let mut any = false;
        for row in &*snapshot.values.kernels {
            let name = snapshot.names.kernel(row.id).map_or("", |known| &known.kernel.name);
            let has_it = !matches!(self.measure, Measure::Errors | Measure::Bytes);
            if has_it && row.numbers.stat.calls > 0 && name.to_lowercase().contains(&lower) {
                any = true;
                found.extend(self.line_if_exceeded(name, self.value(name, &row.numbers.stat)?));
            }
        }
        for row in snapshot.values.copies.iter().filter(|row| row.stat.calls > 0) {
            let name = copy_name(snapshot, row);
            if self.measure != Measure::Errors && name.to_lowercase().contains(&lower) {
                any = true;
                found.extend(match self.measure {
                    Measure::Bytes if !row.has_bytes => None,
                    Measure::Bytes => self.line_if_exceeded(&name, row.sizes.total as f64),
                    _ => self.line_if_exceeded(&name, self.value(&name, &row.stat)?),
                });
            }
        }
        for row in snapshot.values.api.iter().filter(|_| self.measure != Measure::Bytes) {
            let name = snapshot
                .names
                .operation(row.id)
                .map_or("", |known| &known.operation.name);
            if row.stat.calls > 0 && name.to_lowercase().contains(&lower) {
                any = true;
                let value = match self.measure {
                    Measure::Errors => row.errors as f64,
                    _ => self.value(name, &row.stat)?,
                };
                found.extend(self.line_if_exceeded(name, value));
            }
        }
        if !any {
            return Err(self.unknown(self.absence(snapshot, &lower)));
        }
        Ok(found)
    }

    /// Values of the rows of a side that it is about: of each row, one of each run.
    ///
    /// Errors: no row has this name, or a value is unknown.
    fn values<'a>(&self, side: &'a Side) -> Result<BTreeMap<(Kind, &'a str), Vec<f64>>, ThresholdError> {
        let lower = self.name.to_lowercase();
        let mut found: BTreeMap<(Kind, &str), Vec<f64>> = BTreeMap::new();
        for run in &side.runs {
            for kind in self.measure.kinds() {
                let rows = run.rows.get(kind).into_iter().flatten();
                for (name, row) in rows.filter(|(name, _)| name.to_lowercase().contains(&lower)) {
                    let value = self.measure.of_row(row).ok_or_else(|| {
                        let reason = match self.measure {
                            Measure::Spills => format!("the code object of {name} was not read"),
                            _ => format!("{name} has no such value in each run"),
                        };
                        self.unknown(reason)
                    })?;
                    found.entry((*kind, name)).or_default().push(value);
                }
            }
        }
        if found.is_empty() {
            let name = &self.name;
            return Err(self.unknown(match self.measure {
                Measure::Step => "no steps were found".into(),
                _ => format!("no row has '{name}' in its name"),
            }));
        }
        Ok(found)
    }

    /// A line for each row whose median over the runs exceeds the limit.
    ///
    /// Errors: no row matches, or a value is unknown.
    fn exceeded_by_runs(&self, after: &Side) -> Result<Vec<String>, ThresholdError> {
        if self.measure == Measure::Lost {
            // Runs with losses are not compared.
            return Ok(self.line_if_exceeded("records", 0.0).into_iter().collect());
        }
        let rows = self.values(after)?.into_iter();
        Ok(rows
            .filter_map(|((_, name), values)| self.line_if_exceeded(name, runs::middle(&values)))
            .collect())
    }

    /// A line if a change exceeds the limit.
    fn line_if_changed(&self, name: &str, [old, new]: [f64; 2]) -> Option<String> {
        let share = effect(old, new).unwrap_or(if new > old { f64::INFINITY } else { 0.0 });
        let text = |value: f64| match self.measure {
            Measure::Bytes => units::decimal_bytes(value),
            measure if measure.is_time() => units::duration(value as u64),
            _ => value.to_string(),
        };
        let line = || {
            let (old, new, percent) = (text(old), text(new), share * 100.0);
            format!("failed: {}: {name}: {old} → {new}, {percent:+.1} %", self.text)
        };
        self.order.holds(share * 100.0, self.limit).then(line)
    }

    /// A line for each operation of a communicator that exceeds the limit: its largest skew, the longest wait of a rank, or
    /// the ranks that did not come. A skew within the clocks' error exceeds nothing.
    fn exceeded_by_collectives(&self, snapshot: &Snapshot, lower: &str) -> Result<Vec<String>, ThresholdError> {
        let fits = |operation: Operation| operation.name().to_lowercase().contains(lower);
        let collectives = &snapshot.values.collectives;
        let mut found = Vec::new();
        let mut any = false;
        for row in collectives.operations.iter().filter(|row| fits(row.operation)) {
            any = true;
            let (operation, communicator) = (row.operation.name(), row.communicator);
            if self.measure == Measure::Skew {
                let name = format!("{operation} #{} of comm {communicator}", row.worst);
                let skew = if row.max_skew > row.error { row.max_skew } else { 0 };
                found.extend(self.line_if_exceeded(&name, skew as f64));
            } else if self.measure == Measure::Wait {
                let (wait, rank) = row.max_wait;
                let rank = collectives.rank_of(snapshot, communicator, rank);
                let name = format!("rank {rank} in {operation} of comm {communicator}");
                found.extend(self.line_if_exceeded(&name, wait as f64));
            }
        }
        // How long a rank waited is known when the others have come.
        let waiting = collectives.waiting.iter().filter(|_| self.measure != Measure::Wait);
        for waiting in waiting.filter(|waiting| fits(waiting.operation)) {
            any = true;
            if self.measure == Measure::Absent {
                let name = words::missing(snapshot, waiting);
                found.extend(self.line_if_exceeded(&name, waiting.missing.len() as f64));
            }
        }
        if !any {
            let name = &self.name;
            let mut reason = format!("no collective that was matched has '{name}' in its name");
            if self.measure == Measure::Wait {
                reason = format!(
                    "{reason}: who waits is known from the recordings of all ranks together; \
                     of one rank, 'max({name})' is the time of its calls, 'dur({name})' in a trigger"
                );
            }
            return Err(self.unknown(reason));
        }
        Ok(found)
    }

    /// A line for each kernel whose code exceeds the limit.
    fn exceeded_by_code(&self, snapshot: &Snapshot, lower: &str) -> Result<Vec<String>, ThresholdError> {
        let mut found = Vec::new();
        let mut any = false;
        for row in &*snapshot.values.kernels {
            let name = snapshot.names.kernel(row.id).map_or("", |known| &known.kernel.name);
            if row.numbers.stat.calls == 0 || !name.to_lowercase().contains(lower) {
                continue;
            }
            any = true;
            let value = if self.measure == Measure::Spills {
                row.code(snapshot).and_then(|code| code.spills()).map(f64::from)
            } else {
                row.occupancy(snapshot).map(|occupancy| occupancy.share() * 100.0)
            };
            let Some(value) = value else {
                let reason = match self.measure {
                    Measure::Spills => format!("the code object of {name} was not read"),
                    _ => format!("the code object or the GPU of {name} is not known"),
                };
                return Err(self.unknown(reason));
            };
            found.extend(self.line_if_exceeded(name, value));
        }
        if !any {
            return Err(self.unknown(self.absence(snapshot, lower)));
        }
        Ok(found)
    }

    /// Reason why nothing can be compared.
    fn absence(&self, snapshot: &Snapshot, lower: &str) -> String {
        let name = &self.name;
        if self.measure == Measure::Bytes {
            return format!("no copy that was recorded has '{name}' in its name");
        }
        let fits = |known: &str| known.to_lowercase().contains(lower);
        let mut kernels = snapshot
            .values
            .kernels
            .iter()
            .filter_map(|row| snapshot.names.kernel(row.id));
        let is_kernel = kernels.any(|known| fits(&known.kernel.name));
        if is_kernel && self.measure == Measure::Errors {
            return format!("no API function that was called has '{name}' in its name; kernels have no errors");
        }
        if let Some(known) = snapshot.names.kernels().find(|known| fits(&known.kernel.name)) {
            return format!(
                "no kernel that ran has '{name}' in its name; '{}' never ran",
                known.kernel.name
            );
        }
        format!("no kernel, copy or API function that was recorded has '{name}' in its name")
    }

    /// The measured value.
    ///
    /// Errors: the reason why it is unknown.
    fn value(&self, name: &str, stat: &Stat) -> Result<f64, ThresholdError> {
        if let Some(nanos) = self.measure.of(stat) {
            return Ok(nanos as f64);
        }
        let Stat { calls, timed, .. } = *stat;
        Err(self.unknown(if timed == 0 {
            format!("{name} was recorded {calls} times, but never with a time")
        } else if timed < MIN_MEDIAN_VALUES {
            format!("p50 needs {MIN_MEDIAN_VALUES} times, and {name} was recorded with {timed}")
        } else if stat.is_of_sums() {
            format!("a filter by place leaves no percentiles of {name}")
        } else {
            format!("percentiles are kept of the first {HISTOGRAMS} kernels that run; {name} came later")
        }))
    }

    fn unknown(&self, reason: String) -> ThresholdError {
        ThresholdError::Unknown {
            text: self.text.clone(),
            reason,
        }
    }

    /// A line if the limit is exceeded.
    fn line_if_exceeded(&self, name: &str, value: f64) -> Option<String> {
        let (unit, limit) = match self.measure {
            Measure::Bytes => ("", format!(", limit {}", units::decimal_bytes(self.limit))),
            measure if measure.is_time() => (" ns", format!(", limit {}", units::duration(self.limit as u64))),
            _ => ("", String::new()),
        };
        let line = || format!("failed: {}: {name}: {value}{unit}{limit}", self.text);
        self.order.holds(value, self.limit).then(line)
    }
}

/// The lines of the conditions that hold between two sides. A change counts if it exceeds its limit and also differs by more
/// than a program with itself, in any row that these conditions are about.
///
/// Errors: a condition is about nothing that was recorded, or a value is unknown.
pub fn exceeded_between(thresholds: &[Threshold], before: &Side, after: &Side) -> Result<Vec<String>, ThresholdError> {
    let mut lines = Vec::new();
    let (mut rows, mut names) = (Vec::new(), Vec::new());
    for threshold in thresholds {
        if !threshold.is_change {
            lines.extend(threshold.exceeded_by_runs(after)?);
            continue;
        }
        let mut old = threshold.values(before)?;
        for (key, new) in threshold.values(after)? {
            let old = old.remove(&key).unwrap_or_default();
            if old.len() == before.runs.len() && new.len() == after.runs.len() {
                rows.push([old, new]);
                names.push((threshold, key.1));
            }
        }
        if names.last().is_none_or(|(last, _)| !std::ptr::eq(*last, threshold)) {
            let reason = "no such row is in all runs of both sides".into();
            return Err(threshold.unknown(reason));
        }
    }
    let judged = names.into_iter().zip(runs::judge(&rows));
    lines.extend(judged.filter_map(|((threshold, name), (medians, is_beyond))| {
        threshold.line_if_changed(name, medians).filter(|_| is_beyond)
    }));
    Ok(lines)
}

/// Parses a change: `+3%`, `-5 %`.
fn change(text: &str) -> Option<f64> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1.0,
        b'-' => -1.0,
        _ => return None,
    };
    let number = limit(text[1..].strip_suffix('%')?.trim_end(), false)?;
    Some(sign * number)
}

/// Parses a time as ns, or a plain number.
pub(crate) fn limit(text: &str, is_time: bool) -> Option<f64> {
    let digits = text
        .find(|c: char| c != '.' && c != '_' && !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = (text[..digits].replace('_', ""), text[digits..].trim());
    let factor = if is_time {
        Quantity::TIME.factor(unit)
    } else {
        unit.is_empty().then_some(1.0)
    };
    Some(digits.parse::<f64>().ok()? * factor?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_understood() {
        let threshold = Threshold::parse("p99(Gemm<float>) >= 1.5ms").unwrap();
        assert_eq!(threshold.measure, Measure::P99);
        assert_eq!(
            (threshold.name.as_str(), threshold.order),
            ("Gemm<float>", Order::AtLeast)
        );
        assert!((threshold.limit - 1_500_000.0).abs() < 1e-6);
        let threshold = Threshold::parse("p99(Gemm<float>) > 2ms").unwrap();
        assert_eq!(
            (threshold.name.as_str(), threshold.order),
            ("Gemm<float>", Order::Above)
        );
        let threshold = Threshold::parse("p50(scale<(Mode)1>(int)) <= 1us").unwrap();
        assert_eq!(threshold.name, "scale<(Mode)1>(int)");
        assert_eq!(Threshold::parse("lost > 0").unwrap().measure, Measure::Lost);
        assert_eq!(Threshold::parse("calls(x)<1_000").unwrap().order, Order::Below);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("p99(gemm)", "compares nothing"),
            ("p98(gemm) > 2ms", "p98"),
            ("p99(gemm > 2ms", "bracket"),
            ("p99(gemm) > 2", "unit"),
            ("p99(gemm) > -2ms", "-2ms"),
            ("calls(gemm) > 2ms", "number"),
            ("p99() > 2ms", "expected as"),
            ("p99 > 2ms", "expected as"),
            ("lost(x) > 2", "expected as"),
            ("lost > +2%", "number"),
            ("step(x) > +3%", "expected as"),
            ("avg(gemm) > 3%", "unit"),
            ("skew(AllReduce) > +3%", "unit"),
            ("wait(MPI_Allreduce) > +3%", "unit"),
            ("", "compares nothing"),
        ] {
            let message = Threshold::parse(text).unwrap_err().to_string();
            assert!(message.contains(word), "{text}: {message}");
        }
    }

    #[test]
    fn changes_are_compared_with_a_baseline() {
        use crate::report::runs::{Row, Sums};
        use roctop_trace::item::Code;
        let side = |mean: f64, spills: u32| {
            let run = |at: u32| {
                let row = Row {
                    calls: 100,
                    timed: 100,
                    total: ((mean + f64::from(at)) * 100.0) as u64,
                    code: Some(Code {
                        vgpr_spills: Some(spills),
                        sgpr_spills: Some(0),
                        ..Code::default()
                    }),
                    ..Row::default()
                };
                let mut sums = Sums::default();
                sums.rows.entry(Kind::Kernel).or_default().insert("gemm".into(), row);
                sums
            };
            Side {
                runs: (0..7).map(run).collect(),
                ..Side::default()
            }
        };
        let found = |texts: &[&str], before: &Side, after: &Side| {
            let all = texts.iter().map(|text| Threshold::parse(text).unwrap());
            exceeded_between(&all.collect::<Vec<_>>(), before, after)
        };
        let (before, slow, spilled) = (side(1000.0, 0), side(1050.0, 0), side(1000.0, 87));
        assert_eq!(found(&["avg(gemm) > +3%"], &before, &before).unwrap(), [""; 0]);
        let line = "failed: avg(gemm) > +3%: gemm: 1.00 µs → 1.05 µs, +5.0 %";
        assert_eq!(found(&["avg(gemm) > +3%"], &before, &slow).unwrap(), [line]);
        assert_eq!(found(&["avg(gemm) > +6 %"], &before, &slow).unwrap(), [""; 0]);
        assert_eq!(found(&["avg(gemm) < -3%"], &slow, &before).unwrap().len(), 1);
        assert_eq!(found(&["spills(gemm) > 0"], &before, &spilled).unwrap().len(), 1);
        assert_eq!(
            found(&["spills(gemm) > +0%", "avg(gemm) > 1ms"], &before, &spilled)
                .unwrap()
                .len(),
            1
        );
        assert_eq!(
            found(&["spills(gemm) > 0", "lost > 0"], &before, &slow).unwrap(),
            [""; 0]
        );
        for (text, word) in [
            ("step > +3%", "no steps"),
            ("avg(conv) > +3%", "no row has 'conv'"),
            ("p50(gemm) > 1us", "no such value"),
        ] {
            let error = found(&[text], &before, &slow).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    fn reason(text: &str, stat: &Stat) -> String {
        let threshold = Threshold::parse(text).unwrap();
        threshold.value("gemm", stat).unwrap_err().to_string()
    }

    #[test]
    fn missing_values_have_the_true_reason() {
        let filled = |full: bool, count: u64| {
            let mut stat = Stat::new(full);
            (0..count).for_each(|i| stat.add(1000 + i));
            stat.refresh();
            stat
        };
        let mut untimed = Stat::new(true);
        (0..3).for_each(|_| untimed.add_untimed());
        for measure in ["p50", "p95", "p99", "min", "max", "avg"] {
            let message = reason(&format!("{measure}(gemm) > 1us"), &untimed);
            assert!(message.contains("3 times, but never with a time"), "{message}");
        }
        let message = reason("p50(gemm) > 1us", &filled(true, 19));
        assert!(
            message.contains("p50 needs 20 times, and gemm was recorded with 19"),
            "{message}"
        );
        for measure in ["p50", "p95", "p99"] {
            let message = reason(&format!("{measure}(gemm) > 1us"), &filled(false, 234));
            assert!(
                message.contains("the first 1024 kernels that run; gemm came later"),
                "{message}"
            );
            let message = reason(&format!("{measure}(gemm) > 1us"), &Stat::from(filled(true, 234).sum()));
            assert!(message.contains("filter by place"), "{message}");
            let value = Threshold::parse(&format!("{measure}(gemm) > 1us")).unwrap();
            assert!(value.value("gemm", &filled(true, 234)).is_ok());
        }
    }

    #[test]
    fn kernels_that_never_ran_are_distinguished() {
        use crate::{Fresh, Options, Store};
        use roctop_trace::item::{Item, Kernel};
        let mut store = Store::new(Options::default());
        store.apply(&Item::Kernel(Kernel {
            name: "gemm(float*)".into(),
            ..Kernel::default()
        }));
        let snapshot = store.snapshot(Fresh::All);
        let message = |text: &str| {
            let threshold = Threshold::parse(text).unwrap();
            threshold.exceeded(&snapshot).unwrap_err().to_string()
        };
        assert!(message("p50(gemm) > 1us").contains("'gemm(float*)' never ran"));
        assert!(message("p50(other) > 1us").contains("no kernel, copy or API function"));
    }

    #[test]
    fn spills_and_occupancy_are_compared_only_where_code_is_known() {
        use crate::{Fresh, Options, Store};
        use roctop_trace::item::{Agent, Code, Dispatch, Item, Kernel, KernelId};
        let mut store = Store::new(Options::default());
        let kernel = |id: u32, name: &str, code: Option<Code>| {
            Item::Kernel(Kernel {
                id: KernelId(id),
                name: name.into(),
                code,
                ..Kernel::default()
            })
        };
        let code = Code {
            vgpr: Some(512),
            sgpr: Some(32),
            vgpr_spills: Some(87),
            sgpr_spills: Some(0),
            wave_size: Some(64),
            ..Code::default()
        };
        let ran = |kernel: u32| {
            Item::Dispatch(Dispatch {
                kernel: KernelId(kernel),
                grid: [256, 1, 1],
                workgroup: [256, 1, 1],
                ..Dispatch::default()
            })
        };
        let agent = Item::Agent(Agent {
            name: "gfx90a".into(),
            ..Agent::default()
        });
        let old = kernel(1, "older", None);
        store.apply_all(&[agent, kernel(0, "gemm", Some(code)), old, ran(0), ran(1)]);
        let snapshot = store.snapshot(Fresh::All);
        let exceeded = |text: &str| Threshold::parse(text).unwrap().exceeded(&snapshot);
        assert_eq!(
            exceeded("spills(gemm) > 0").unwrap(),
            ["failed: spills(gemm) > 0: gemm: 87"]
        );
        assert_eq!(exceeded("occ(gemm) < 12 %").unwrap(), Vec::<String>::new());
        assert_eq!(exceeded("occ(gemm) < 13%").unwrap().len(), 1);
        let error = exceeded("spills(older) > 0").unwrap_err().to_string();
        assert!(error.contains("the code object of older was not read"), "{error}");
    }
}
