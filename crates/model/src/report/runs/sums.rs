//! What a run adds up to: a few numbers a kernel, copy, range, collective, function and cause of idle time.

use crate::analysis::steps::Source;
use crate::analysis::{Cause, placement};
use crate::gauges::GaugeKind;
use crate::report::comparison::codes;
use crate::report::mpi;
use crate::report::runs::statistics::median;
use crate::report::summary::copy_name;
use crate::stats::Stat;
use crate::table::CopyStat;
use crate::{Snapshot, snapshot};
use roctop_trace::item::{AgentId, Code, Exit, Span};
use roctop_trace::units;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Share of the median by which a step at the beginning is longer if it belongs to the warm-up.
const WARM_UP: f64 = 1.2;

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The program, from its start to its end.
    Wall,
    /// A step.
    Step,
    /// A kernel.
    Kernel,
    /// A copy route.
    Copy,
    /// A ROC-TX range.
    Range,
    /// A collective, or a rank's wait for it.
    Collective,
    /// A cause of idle time of the GPUs.
    Idle,
    /// A rank: time in which its GPU ran kernels.
    Rank,
    /// A function of MPI, or a rank's time in all of them.
    Mpi,
    /// An API function; thresholds alone look at it.
    Api,
}

impl Kind {
    /// Its word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Step => "step",
            Self::Kernel => "kernel",
            Self::Copy => "copy",
            Self::Range => "range",
            Self::Collective => "collective",
            Self::Idle => "idle",
            Self::Rank => "rank",
            Self::Mpi => "mpi",
            Self::Api => "api",
        }
    }

    /// Whether a row is compared as the sum over the run; else as the mean.
    const fn is_sum(self) -> bool {
        matches!(self, Self::Wall | Self::Idle | Self::Rank)
    }
}

/// Sums of a row in one run; times in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Number of durations, also of those without times.
    pub calls: u64,
    /// Number of those with times.
    pub timed: u64,
    /// Sum.
    pub total: u64,
    /// Minimum, maximum and percentiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// Maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Median; of steps it is what is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<u64>,
    /// 95th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<u64>,
    /// 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<u64>,
    /// Bytes of copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Errors of a function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// Occupancy of a kernel, per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<f64>,
    /// What the code object says of a kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
}

impl Row {
    fn of(stat: &Stat) -> Self {
        let is_timed = stat.timed > 0;
        Self {
            calls: stat.calls,
            timed: stat.timed,
            total: stat.total,
            min: is_timed.then_some(stat.min),
            max: is_timed.then_some(stat.max),
            p50: stat.quantiles.p50,
            p95: stat.quantiles.p95,
            p99: stat.quantiles.p99,
            ..Self::default()
        }
    }

    fn of_total(calls: u64, total: u64) -> Self {
        Self {
            calls,
            timed: calls,
            total,
            ..Self::default()
        }
    }

    /// Both together. Percentiles of two kernels of one name are not known.
    fn join(&mut self, other: &Self) {
        let either = |a: Option<u64>, b: Option<u64>, both: fn(u64, u64) -> u64| match (a, b) {
            (Some(a), Some(b)) => Some(both(a, b)),
            (a, b) => a.or(b),
        };
        *self = Self {
            calls: self.calls + other.calls,
            timed: self.timed + other.timed,
            total: self.total.saturating_add(other.total),
            min: either(self.min, other.min, u64::min),
            max: either(self.max, other.max, u64::max),
            bytes: either(self.bytes, other.bytes, u64::saturating_add),
            errors: either(self.errors, other.errors, u64::saturating_add),
            ..Self::default()
        };
    }

    /// Mean duration, ns.
    pub(crate) fn average(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.total as f64 / self.timed as f64)
    }

    /// The value that is compared: of steps the median, of sums the sum, else the mean.
    pub(super) fn value(&self, kind: Kind) -> Option<f64> {
        match kind {
            Kind::Step => self.p50.map(|nanos| nanos as f64),
            kind if kind.is_sum() => Some(self.total as f64),
            _ => self.average(),
        }
    }
}

/// Rows of a run, by kind and name.
type Rows = BTreeMap<Kind, BTreeMap<String, Row>>;

/// What a run adds up to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sums {
    /// The rows.
    pub rows: Rows,
    /// Models of the GPUs that had work.
    pub gpus: Vec<String>,
    /// Median shader clock, MHz, if the driver reported it.
    pub clock: Option<f64>,
    /// Median power, W.
    pub power: Option<f64>,
    /// Where each of its processes ran, if that was read.
    pub placement: Vec<String>,
    /// Number of steps that were cut off as warm-up.
    pub warm_up: u64,
}

/// The warm-up of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// Number of steps.
    pub steps: usize,
    /// Everything that ended after it counts.
    pub steady: Span,
}

/// The warm-up: the steps at the beginning that are each more than a fifth longer than the median of the later half, at most
/// half of all. `None` without steps, or if the first is no longer than that.
pub fn warm_up(snapshot: &Snapshot) -> Option<WarmUp> {
    let steps = &snapshot.steps(0)?.steps;
    let nanos: Vec<f64> = steps.iter().map(|step| step.span.duration() as f64).collect();
    let half = nanos.len() / 2;
    let usual = median(&nanos[half..]);
    let count = nanos[..half]
        .iter()
        .take_while(|nanos| **nanos > WARM_UP * usual)
        .count();
    (count > 0).then(|| WarmUp {
        steps: count,
        steady: Span {
            begin: steps[count].span.begin,
            end: snapshot.now,
        },
    })
}

/// Why a run has no numbers to compare; `None` if it has.
pub fn trouble(snapshot: &Snapshot) -> Option<String> {
    match snapshot.ended {
        Some(Exit::Code(code)) if code != 0 => return Some(format!("the program failed with exit code {code}")),
        Some(Exit::Signal(signal)) => return Some(format!("signal {signal} ended the program")),
        _ => {}
    }
    let totals = &snapshot.values.totals;
    if totals.records() == 0 {
        return Some("nothing was recorded".into());
    }
    if let Some(fault) = snapshot.faults.first() {
        return Some(fault.text.to_string());
    }
    if totals.lost.is_any() {
        let lost = totals.lost.text(|records| records.to_string());
        return Some(format!("records were lost: {lost}"));
    }
    gpus(snapshot).is_empty().then(|| "no GPU had work".into())
}

/// Models of the GPUs that had work, sorted.
fn gpus(snapshot: &Snapshot) -> Vec<String> {
    let used = snapshot.gpus().into_iter().filter(|gpu| {
        let mut rows = gpu.parts.iter().copied().chain([gpu.row]);
        rows.any(|row| row.dispatches > 0)
    });
    let copied: Vec<AgentId> = snapshot.values.copies.iter().filter_map(copy_agent).collect();
    let agents = used.map(|gpu| gpu.row.id).collect::<Vec<_>>();
    let agents = if agents.is_empty() { copied } else { agents };
    let models = agents.iter().filter_map(|id| snapshot.names.agent(*id)).map(|agent| {
        let name = match &*agent.product {
            "" => agent.name.to_string(),
            product => format!("{product} ({})", agent.name),
        };
        format!("{name}, {} CUs", agent.compute_units)
    });
    let mut models: Vec<String> = models.collect();
    models.sort();
    models
}

/// The GPU of a copy, for a run without kernels.
fn copy_agent(copy: &CopyStat) -> Option<AgentId> {
    copy.route.destination.or(copy.route.source)
}

/// From the start of the program to its end, ns.
pub(crate) fn wall(snapshot: &Snapshot) -> u64 {
    let since = snapshot.values.processes.iter().map(|row| row.process.since);
    let since = since.filter(|since| *since > 0).min();
    let ended = snapshot::ending(&snapshot.values.processes).map(|exit| exit.1);
    let life = since.zip(ended).map(|(since, ended)| ended.saturating_sub(since));
    life.filter(|nanos| *nanos > 0).unwrap_or_else(|| snapshot.elapsed())
}

impl Sums {
    /// The sums of a run. `steady` has the records after the warm-up: kernels, copies, ranges and functions are of it, everything
    /// else is of the whole run.
    pub fn of(whole: &Snapshot, steady: &Snapshot, warm_up: usize) -> Self {
        let mut rows = Rows::new();
        let mut add = |kind: Kind, name: String, row: Row| {
            let known = rows.entry(kind).or_default().entry(name);
            known.and_modify(|known| known.join(&row)).or_insert(row);
        };
        add(Kind::Wall, "program".into(), Row::of_total(1, wall(whole)));
        if let Some((name, row)) = steps(whole, warm_up) {
            add(Kind::Step, name, row);
        }
        let (values, names, codes) = (&steady.values, &steady.names, codes(steady));
        for row in values.kernels.iter().filter(|row| row.numbers.stat.calls > 0) {
            let Some(known) = names.kernel(row.id) else { continue };
            let own = Row {
                code: codes.get(&row.id).copied(),
                occupancy: row.occupancy(steady).map(|occupancy| occupancy.share() * 100.0),
                ..Row::of(&row.numbers.stat)
            };
            add(Kind::Kernel, known.kernel.name.to_string(), own);
        }
        for row in values.copies.iter().filter(|row| row.stat.calls > 0) {
            let own = Row {
                bytes: row.has_bytes.then_some(row.sizes.total),
                ..Row::of(&row.stat)
            };
            add(Kind::Copy, copy_name(steady, row), own);
        }
        for row in values.markers.iter().filter(|row| row.stat.timed > 0) {
            add(Kind::Range, row.pattern.to_string(), Row::of(&row.stat));
        }
        for row in values.api.iter().filter(|row| row.stat.calls > 0) {
            let Some(known) = names.operation(row.id) else { continue };
            let own = Row {
                errors: Some(row.errors),
                ..Row::of(&row.stat)
            };
            let name = known.operation.name.to_string();
            if names.is_mpi(row.id) {
                add(Kind::Mpi, name.clone(), own.clone());
            }
            add(Kind::Api, name, own);
        }
        for share in mpi::shares(steady) {
            // Process ids differ between runs.
            if share.label.starts_with("rank ") {
                add(
                    Kind::Mpi,
                    format!("{}, all", share.label),
                    Row::of_total(1, share.nanos),
                );
            }
        }
        for (rank, busy) in ranks(whole) {
            add(Kind::Rank, format!("rank {rank}"), Row::of_total(1, busy));
        }
        for row in &whole.values.collectives.operations {
            let name = format!("{} of comm {}", row.operation.name(), row.communicator);
            add(
                Kind::Collective,
                format!("{name}, wait"),
                Row::of_total(row.count, row.wait),
            );
            add(Kind::Collective, name, Row::of_total(row.count, row.transfer));
        }
        for part in whole.analysis().whole.iter().flat_map(|usage| &usage.verdict.parts) {
            // Which rank is late may differ between runs.
            let cause = match part.cause {
                Cause::Rank(function, _) => Cause::Mpi(function),
                cause => cause,
            };
            add(Kind::Idle, cause.words(whole), Row::of_total(1, part.nanos));
        }
        Self {
            rows,
            gpus: gpus(whole),
            clock: gauge(whole, GaugeKind::Clock),
            power: gauge(whole, GaugeKind::Power),
            placement: placement::lines(&placement::places(whole)),
            warm_up: warm_up as u64,
        }
    }

    /// A row.
    pub(super) fn row(&self, kind: Kind, name: &str) -> Option<&Row> {
        self.rows.get(&kind)?.get(name)
    }
}

/// The steps after the warm-up, and their name.
fn steps(snapshot: &Snapshot, warm_up: usize) -> Option<(String, Row)> {
    let steps = snapshot.steps(0)?;
    let name = match &steps.source {
        Source::Ranges(_, pattern) => pattern.to_string(),
        Source::Period(_, period) => units::counted(period.length as u64, "repeated kernel", "repeated kernels"),
    };
    let nanos: Vec<u64> = steps
        .steps
        .iter()
        .skip(warm_up)
        .map(|step| step.span.duration())
        .collect();
    let exact: Vec<f64> = nanos.iter().map(|nanos| *nanos as f64).collect();
    let row = Row {
        p50: Some(median(&exact) as u64),
        ..Row::of(&Stat::of(&nanos))
    };
    (!nanos.is_empty()).then_some((name, row))
}

/// Time in which the GPU of each rank ran kernels, if there are several ranks.
fn ranks(snapshot: &Snapshot) -> BTreeMap<u32, u64> {
    let mut ranks = BTreeMap::new();
    for row in snapshot.values.agents.iter().filter(|row| row.dispatches > 0) {
        let agent = snapshot.names.agent(row.id);
        let process = agent.and_then(|agent| snapshot.names.process(agent.process));
        if let Some(rank) = process.and_then(|process| process.rank) {
            *ranks.entry(rank).or_default() += row.busy;
        }
    }
    if ranks.len() < 2 {
        ranks.clear();
    }
    ranks
}

/// Median reading of the GPUs that have a series of it.
fn gauge(snapshot: &Snapshot, kind: GaugeKind) -> Option<f64> {
    let series = snapshot
        .values
        .gauges
        .devices
        .iter()
        .map(|row| &row.series[kind as usize]);
    let medians: Vec<f64> = series
        .filter(|series| !series.is_empty())
        .map(|series| series.quantile(0.5))
        .collect();
    (!medians.is_empty()).then(|| median(&medians))
}
