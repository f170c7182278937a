//! What a screen or an answer shows of a job. Copying it costs a few reference counts.

use super::cause::{self, AVERAGED, Mean, Slow};
use super::grid::{Grid, Quantity, SECOND};
use super::matching::{CommunicatorSums, Standing, waiting};
use super::placed::Finding;
use super::report::LeftOut;
use super::state::{Job, NodeRow, NodeState, RankRow, STALE};
use super::sums::Readings;
use crate::analysis::Rule;
use crate::analysis::placement::Kind;
use crate::fx_hash::FastMap;
use crate::{Snapshot, Values};
use roctop_trace::item::{LossReason, Lost, Nanos};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Time in a collective after which those who have not called it are missing, ns: reports come once a second.
const ABSENT: u64 = 3 * SECOND;
/// Maximum number of kernels with sums.
const MAX_KERNELS: usize = 32;
/// The latest second is left out: its reports are on their way.
const LAG: u64 = 1;

/// State of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankState {
    /// It reports.
    #[default]
    Live,
    /// Its reports have stopped.
    Stale,
    /// Its node is not connected any more.
    Gone,
    /// Its process has ended.
    Ended,
}

/// Numbers of the whole job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Number of ranks that the program says it has; 0 unknown.
    pub size: u32,
    /// Ranks by state: live, stale, gone, ended.
    pub ranks: [u32; 4],
    /// Nodes: connected, silent, gone.
    pub nodes: [u32; 3],
    /// Median and maximum of the ranks' step times, ns, and the index of the rank with the maximum.
    pub step: Option<(f64, f64, u32)>,
    /// Mean share of time with a kernel.
    pub busy: Option<f64>,
    /// Mean share of time waiting in collectives, of the ranks of which it is known, if these are most.
    pub wait: Option<f64>,
    /// Mean share of time in collectives without the waits, of these ranks.
    pub transfer: Option<f64>,
    /// Ranks by what is wrong with where they run.
    pub misplaced: [u32; Kind::ALL.len()],
    /// Traffic of the network ports of the ranks' GPUs, bytes/s.
    pub network: Option<f64>,
    /// Errors of these.
    pub network_errors: u64,
    /// Traffic of their xGMI links, bytes/s.
    pub xgmi: Option<f64>,
    /// Errors of these links since roctop began to read them.
    pub xgmi_errors: u64,
    /// Sum of the powers, W.
    pub power: Option<f64>,
    /// Records lost, by reason.
    pub lost: Vec<(LossReason, u64)>,
    /// What the latest reports left out.
    pub left_out: LeftOut,
    /// Reports that were refused.
    pub refused: u64,
    /// Arrivals that met nobody in time.
    pub unmatched: u64,
}

/// Alerts of one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct JobAlert {
    /// The rule.
    pub rule: Rule,
    /// Number of sessions that have it.
    pub count: u32,
    /// Index of the first rank of the session that has it with the most severity.
    pub rank: u32,
    /// Its finding there.
    pub text: String,
}

/// By what ranks are put in rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// A row for each node: means of its ranks.
    #[default]
    Node,
    /// A row for each rank.
    Rank,
    /// A row for each rank, those first that are furthest from the median.
    Outlier,
}

impl RowKind {
    /// All of them with their words.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::Node, "by node"),
        (Self::Rank, "by rank"),
        (Self::Outlier, "outliers first"),
    ];

    /// Its word.
    pub const fn word(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The one after it, the first one after the last.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()].0
    }
}

/// Ranks up to which each has a row if nothing else was chosen.
const FEW_RANKS: usize = 64;

impl JobValues {
    /// The rows that show most: each rank of a few, each node of many.
    pub fn usual_rows(&self) -> RowKind {
        if self.ranks.len() <= FEW_RANKS {
            RowKind::Rank
        } else {
            RowKind::Node
        }
    }
}

/// A row of ranks: a part of [`JobValues::order`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Place of its first rank.
    pub first: u32,
    /// Number of its ranks.
    pub count: u32,
}

/// The values of a job.
#[derive(Clone, Debug, Default)]
pub struct JobValues {
    /// Name of the job.
    pub name: Arc<str>,
    /// Time of the values, the root's CLOCK_BOOTTIME.
    pub at: Nanos,
    /// Nodes, by index.
    pub nodes: Arc<Vec<NodeRow>>,
    /// Ranks, by index.
    pub ranks: Arc<Vec<RankRow>>,
    /// Means over the latest seconds, by index of the rank.
    pub(super) means: Arc<Vec<Option<Mean>>>,
    /// Median and maximum of each quantity.
    scales: [Option<(f64, f64)>; Quantity::ALL.len()],
    /// Indexes of the ranks by node and rank.
    pub order: Arc<Vec<u32>>,
    /// Ranks × time.
    pub grid: Grid,
    /// Ranks that hold the job up.
    pub slow: Vec<Slow>,
    /// Communicators, in order of appearance.
    pub communicators: Vec<CommunicatorSums>,
    /// Open alerts of all ranks, by rule.
    pub alerts: Vec<JobAlert>,
    /// The kernels with the most time in the latest reports: name, launches, ns.
    pub kernels: Vec<(Arc<str>, u64, u64)>,
    /// Numbers of the whole job.
    pub totals: Totals,
}

impl Job {
    /// The values at `now`, the root's CLOCK_BOOTTIME.
    pub fn values(&self, now: Nanos) -> JobValues {
        let end = (now / SECOND).saturating_sub(LAG).max(1);
        let means: Vec<Option<Mean>> = (0..self.ranks.len())
            .map(|rank| Mean::of(&self.grid, rank, end))
            .collect();
        let mut order: Vec<u32> = (0..self.ranks.len() as u32).collect();
        order.sort_by_key(|at| {
            let row = &self.ranks[*at as usize];
            (self.nodes.get(row.node as usize).map(|node| node.number), row.rank)
        });
        let mut values = JobValues {
            name: self.name.clone(),
            at: now,
            nodes: Arc::new(self.nodes.clone()),
            ranks: Arc::new(self.ranks.clone()),
            means: Arc::new(means),
            order: Arc::new(order),
            grid: self.grid.clone(),
            communicators: self.communicators(now),
            alerts: self.alerts(),
            kernels: self.kernels(),
            ..JobValues::default()
        };
        let means = values.means.clone();
        values.scales = Quantity::ALL.map(|quantity| values.scale(quantity.0));
        values.slow = cause::slow(&values, &means, now);
        values.totals = totals(&values, self.refused, self.matching.unmatched);
        values
    }

    fn communicators(&self, now: Nanos) -> Vec<CommunicatorSums> {
        let mut all = self.matching.communicators();
        let mut standings: FastMap<u64, Vec<Standing>> = FastMap::default();
        for (at, row) in (0..).zip(&self.ranks) {
            let Some(node) = self.nodes.get(row.node as usize) else {
                continue;
            };
            for part in &row.sums.communicators {
                // A rank that does not report any more is still where it was.
                standings.entry(part.identity).or_default().push(Standing {
                    rank: at,
                    reached: part.reached,
                    pending: part.pending.map(|pending| (pending, node.aligned(pending.since))),
                });
            }
        }
        for communicator in &mut all {
            let Some(ranks) = standings.get(&communicator.identity) else {
                continue;
            };
            communicator.known = ranks.len() as u32;
            communicator.waiting = waiting(communicator.size, ranks, now, ABSENT);
        }
        all
    }

    fn alerts(&self) -> Vec<JobAlert> {
        let mut all: Vec<JobAlert> = Vec::new();
        for (at, row) in (0u32..).zip(&self.ranks) {
            for alert in &row.sums.alerts {
                match all.iter_mut().find(|known| known.rule == alert.rule) {
                    Some(known) => known.count += 1,
                    None => all.push(JobAlert {
                        rule: alert.rule,
                        count: 1,
                        rank: at,
                        text: alert.text.clone(),
                    }),
                }
            }
        }
        all.sort_by_key(|alert| (!alert.rule.is_bad(), Reverse(alert.count), alert.rank));
        all
    }

    fn kernels(&self) -> Vec<(Arc<str>, u64, u64)> {
        let mut sums: FastMap<u64, (u64, u64)> = FastMap::default();
        for kernel in self.ranks.iter().flat_map(|row| &row.sums.kernels) {
            let sum = sums.entry(kernel.name).or_default();
            *sum = (sum.0 + u64::from(kernel.count), sum.1.saturating_add(kernel.total));
        }
        let name = |id: &u64| {
            self.names
                .get(id)
                .cloned()
                .unwrap_or_else(|| "(name on its way)".into())
        };
        let mut all: Vec<_> = sums.iter().map(|(id, sum)| (name(id), sum.0, sum.1)).collect();
        all.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        all.truncate(MAX_KERNELS);
        all
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |sum, value| (sum.0 + value, sum.1 + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn totals(values: &JobValues, refused: u64, unmatched: u64) -> Totals {
    let mut totals = Totals {
        refused,
        unmatched,
        ..Totals::default()
    };
    for (at, row) in (0u32..).zip(values.ranks.iter()) {
        totals.size = totals.size.max(row.sums.size);
        totals.ranks[values.state(at) as usize] += 1;
        for (kind, count) in Kind::ALL.iter().zip(&mut totals.misplaced) {
            *count += u32::from(values.findings(at).any(|(finding, _)| finding.kind == *kind));
        }
        for (reason, count) in &row.sums.lost {
            match totals.lost.iter_mut().find(|known| known.0 == *reason) {
                Some(known) => known.1 = known.1.saturating_add(*count),
                None => totals.lost.push((*reason, *count)),
            }
        }
    }
    for node in values.nodes.iter() {
        let state = match node.state {
            NodeState::Known if node.is_stale(values.at) => Some(1),
            NodeState::Known => Some(0),
            NodeState::Gone(_) => Some(2),
            NodeState::Left => None,
        };
        if let Some(state) = state {
            totals.nodes[state] += 1;
        }
        totals.left_out.ranks += node.left_out.ranks;
        totals.left_out.arrivals += node.left_out.arrivals;
        totals.left_out.others += node.left_out.others;
    }
    let known = || values.means.iter().flatten();
    let steps = (0u32..).zip(values.means.iter());
    let steps = steps.filter_map(|(at, mean)| Some((mean.as_ref()?.step?, at)));
    let slowest = steps.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let median = cause::median(known().filter_map(|mean| mean.step));
    totals.step = median
        .zip(slowest)
        .map(|(median, slowest)| (median, slowest.0, slowest.1));
    totals.busy = mean(known().map(|mean| mean.busy));
    // Of a few, the mean is none of the job.
    let is_most = known().filter(|mean| mean.wait.is_some()).count() * 2 >= known().count();
    totals.wait = mean(known().filter_map(|mean| mean.wait)).filter(|_| is_most);
    let transfer = mean(known().filter_map(|mean| Some((mean.inside - mean.wait?).max(0.0))));
    totals.transfer = transfer.filter(|_| is_most);
    let powers = known().filter_map(|mean| mean.power);
    let ranks = 0..values.ranks.len() as u32;
    (totals.network, totals.network_errors) = values.traffic(ranks.clone(), Readings::of_network);
    (totals.xgmi, totals.xgmi_errors) = values.traffic(ranks, Readings::of_xgmi);
    totals.power = powers.fold(None, |sum, power| Some(sum.unwrap_or(0.0) + power));
    totals
}

impl JobValues {
    /// A snapshot that shows the job and no program. Its times count from the first second that is known.
    pub fn snapshot(self) -> Snapshot {
        let lost = Lost::of(self.totals.lost.iter().copied());
        let values = Values {
            at: self.at,
            totals: crate::Totals {
                lost,
                ..crate::Totals::default()
            },
            ..Values::default()
        };
        Snapshot {
            title: self.name.clone(),
            now: self.at,
            origin: self.grid.first().map_or(self.at, |first| first * SECOND).min(self.at),
            values: Arc::new(values),
            job: Some(Arc::new(self)),
            ..Snapshot::default()
        }
    }

    /// State of a rank, by its index.
    pub fn state(&self, rank: u32) -> RankState {
        let Some(row) = self.ranks.get(rank as usize) else {
            return RankState::Gone;
        };
        let node = self.nodes.get(row.node as usize);
        match node.map(|node| node.state) {
            _ if row.sums.exit.is_some() => RankState::Ended,
            Some(NodeState::Left) => RankState::Ended,
            Some(NodeState::Known) if self.at.saturating_sub(row.until) > STALE => RankState::Stale,
            Some(NodeState::Known) => RankState::Live,
            _ => RankState::Gone,
        }
    }

    /// The node of a rank, by the rank's index.
    pub fn node_of(&self, rank: u32) -> Option<&NodeRow> {
        let row = self.ranks.get(rank as usize)?;
        self.nodes.get(row.node as usize)
    }

    /// Traffic, bytes/s, and errors of links of the GPUs of ranks, by their indexes; ranks that share a GPU count once.
    pub fn traffic(
        &self,
        ranks: impl IntoIterator<Item = u32>,
        of: fn(&Readings) -> (Option<f32>, Option<u64>),
    ) -> (Option<f64>, u64) {
        let mut gpus: BTreeMap<(u32, Option<u32>), (Option<f32>, u64)> = BTreeMap::new();
        for rank in ranks.into_iter().filter(|rank| self.state(*rank) == RankState::Live) {
            let Some(row) = self.ranks.get(rank as usize) else {
                continue;
            };
            if let Some(readings) = &row.sums.gauges {
                let (traffic, errors) = of(readings);
                gpus.insert((row.node, row.sums.gpu), (traffic, errors.unwrap_or(0)));
            }
        }
        let known = gpus.values().filter_map(|of| of.0.map(f64::from));
        let traffic = known.fold(None, |sum: Option<f64>, one| Some(sum.unwrap_or(0.0) + one));
        let errors = gpus.values().fold(0u64, |sum, of| sum.saturating_add(of.1));
        (traffic, errors)
    }

    /// Whether it is known where a rank runs, by the rank's index.
    pub fn is_placed(&self, rank: u32) -> bool {
        let row = self.ranks.get(rank as usize);
        let node = self.node_of(rank);
        row.zip(node)
            .is_some_and(|(row, node)| node.placement.known.contains(row.rank))
    }

    /// What is wrong with where a rank runs, by the rank's index; each with the line that mends it, if that can be said.
    pub fn findings(&self, rank: u32) -> impl Iterator<Item = (&Finding, Option<&str>)> {
        let row = self.ranks.get(rank as usize);
        let placement = self.node_of(rank).map(|node| &node.placement);
        row.zip(placement).into_iter().flat_map(|(row, placement)| {
            let own = placement
                .findings
                .iter()
                .filter(|finding| finding.ranks.contains(row.rank));
            own.map(|finding| {
                let line = finding.line.and_then(|line| placement.lines.get(usize::from(line)));
                (finding, line.map(String::as_str))
            })
        })
    }

    /// Mean of a value of a rank over the latest ten seconds.
    pub fn mean(&self, rank: u32, quantity: Quantity) -> Option<f64> {
        let mean = self.means.get(rank as usize)?.as_ref()?;
        match quantity {
            Quantity::Step => mean.step,
            Quantity::Busy => Some(mean.busy),
            Quantity::Wait => mean.wait,
            Quantity::Power => mean.power,
            Quantity::Mpi => Some(mean.mpi),
        }
    }

    /// Median of a value over all ranks, now or when it was known last.
    pub fn median(&self, quantity: Quantity) -> Option<f64> {
        self.scales[quantity as usize].map(|scale| scale.0)
    }

    /// The highest value of all ranks.
    pub fn highest(&self, quantity: Quantity) -> Option<f64> {
        self.scales[quantity as usize].map(|scale| scale.1)
    }

    /// Median and maximum of a value; where no rank has one now, those of the latest second in which one had.
    fn scale(&self, quantity: Quantity) -> Option<(f64, f64)> {
        let ranks = 0..self.ranks.len();
        let now = ranks
            .clone()
            .filter_map(|rank| self.mean(rank as u32, quantity))
            .collect();
        let of = |known: Vec<f64>| {
            let most = known.iter().copied().max_by(f64::total_cmp);
            cause::median(known.into_iter()).zip(most)
        };
        let then = |second: u64| {
            let cells = ranks
                .clone()
                .filter_map(|rank| self.grid.cell(second, rank)?.value(quantity));
            of(cells.collect())
        };
        let first = self.grid.first().unwrap_or(0);
        of(now).or_else(|| (first..self.end()).rev().find_map(then))
    }

    /// Ranks in rows.
    pub fn rows(&self, kind: RowKind) -> Vec<Row> {
        let single = (0..self.order.len() as u32).map(|first| Row { first, count: 1 });
        if kind != RowKind::Node {
            return single.collect();
        }
        let mut rows: Vec<Row> = Vec::new();
        let mut last = None;
        for (first, rank) in (0u32..).zip(self.order.iter()) {
            let node = self.ranks.get(*rank as usize).map(|row| row.node);
            match rows.last_mut() {
                Some(row) if node == last => row.count += 1,
                _ => rows.push(Row { first, count: 1 }),
            }
            last = node;
        }
        rows
    }

    /// Indexes of the ranks of a row.
    pub fn members(&self, row: Row) -> &[u32] {
        let first = row.first as usize;
        self.order.get(first..first + row.count as usize).unwrap_or_default()
    }

    /// The second after the latest one of which all reports should be there.
    pub fn end(&self) -> u64 {
        (self.at / SECOND).saturating_sub(LAG).max(1)
    }

    /// Number of seconds that means are of.
    pub const fn averaged() -> u64 {
        AVERAGED
    }
}
