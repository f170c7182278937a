//! Which ranks hold the job up, and why.
//!
//! In a job whose ranks wait for each other in collectives, all steps take as long as that of the slowest rank. So ranks
//! are compared by the time that is their *own*: the step without its collectives. Each rank measures that by its own
//! clock. Only who waits for whom needs the clocks of several nodes.

use super::grid::{Grid, SECOND};
use super::matching::WaitingSums;
use super::overview::JobValues;
use super::state::{NodeState, RankRow, STALE};
use crate::analysis::collectives::error as clock_error;
use crate::fx_hash::FastMap;
use roctop_trace::item::{CollectiveOperation, Nanos};
use roctop_trace::units;

/// Number of seconds that are averaged.
pub(super) const AVERAGED: u64 = 10;
/// Excess that counts, as a share of the usual step.
const MIN_EXCESS: f64 = 0.03;
/// Excess that counts, in median deviations of all ranks.
const MIN_DEVIATIONS: f64 = 4.0;
/// A clock below this part of the usual one is slow.
const SLOW_CLOCK: f64 = 0.95;
/// Maximum number of ranks with a reason.
const MAX_SLOW: usize = 256;

/// Why a rank is slow.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Others wait in a collective that it has not called.
    Absent {
        /// What they wait for.
        waiting: WaitingSums,
        /// Number of the communicator.
        communicator: u32,
        /// What it does instead; empty if unknown.
        doing: String,
    },
    /// Its node is not connected any more, since then.
    Dead(Nanos),
    /// Its reports have stopped, since then.
    Stale(Nanos),
    /// Its process ended with this exit code, or by minus this Unix signal.
    Ended(i32),
    /// Its kernels take longer.
    Compute,
    /// Its kernels take longer, and its GPU's clock is low or throttled.
    Clock {
        /// MHz; the second is the median of all.
        clocks: (f64, f64),
        /// W; the second is the median of all.
        powers: Option<(f64, f64)>,
        /// What the driver says; empty if it says nothing.
        throttle: String,
    },
    /// Its copies take longer.
    Copies,
    /// Its GPU has nothing to do for longer.
    Host {
        /// Share of time in which its thread waited for a CPU, and in which it slept.
        ready: f64,
        /// Share of time in which its thread slept.
        asleep: f64,
    },
    /// It waits for another rank, in this operation.
    Waits(Option<(u32, CollectiveOperation)>),
    /// Its part of the transfer in collectives takes longer.
    Transfer,
}

/// A rank that holds the job up.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow {
    /// Index of the rank.
    pub rank: u32,
    /// Indexes of the other ranks of a node that is gone: they are one row.
    pub others: Vec<u32>,
    /// The reason.
    pub reason: Reason,
    /// What it costs in each step, ns; in each second if no steps are known. For a rank that does not answer, the time
    /// since then.
    pub excess: u64,
    /// The part of the step, or of the second, that the reason explains.
    pub share: f64,
    /// Ranks that wait for it.
    pub waited: Option<Waited>,
    /// What it did before it came to collectives, if others wait for it; empty if unknown.
    pub before: String,
    /// Error of the clocks, where times of several nodes were compared, ns; `u64::MAX` if it is unknown.
    pub error: Option<u64>,
}

/// Ranks that wait for another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waited {
    /// In which operation.
    pub operation: CollectiveOperation,
    /// Their number.
    pub ranks: u32,
    /// Their mean wait in each step, ns, of a step of this length.
    pub wait: u64,
    /// Length of a step, ns; `None` if no steps are known: then the wait is in each second.
    pub step: Option<u64>,
}

impl Waited {
    /// `20 ms of 23 ms a step`.
    fn times(&self) -> String {
        let wait = units::duration(self.wait);
        match self.step {
            Some(step) => format!("{wait} of {} a step", units::duration(step)),
            None => format!("{wait} a second"),
        }
    }
}

impl Slow {
    /// Whether the rank does not take part any more.
    pub const fn is_down(&self) -> bool {
        matches!(
            self.reason,
            Reason::Absent { .. } | Reason::Dead(_) | Reason::Stale(_) | Reason::Ended(_)
        )
    }

    /// The reason as a sentence without its subject, and what it does to others.
    pub fn text(&self, values: &JobValues) -> String {
        let mut parts = vec![self.reason_text(values)];
        if let Some(waited) = &self.waited {
            let waiting = units::counted(waited.ranks.into(), "rank waits", "ranks wait");
            parts.push(format!(
                "{waiting} for it in {}, {}",
                waited.operation.name(),
                waited.times()
            ));
            if !self.before.is_empty() {
                parts.push(format!("meanwhile it was {}", self.before));
            }
        }
        parts.join("; ")
    }

    fn reason_text(&self, values: &JobValues) -> String {
        let percent = units::percent(self.share);
        let more = format!("{percent} % of the step");
        match &self.reason {
            Reason::Absent {
                waiting,
                communicator,
                doing,
            } => {
                let label = format!(
                    "{} #{} of comm {communicator}",
                    waiting.operation.name(),
                    waiting.sequence
                );
                let came = units::counted(u64::from(waiting.came), "rank waits", "ranks wait");
                let doing = if doing.is_empty() {
                    String::new()
                } else {
                    format!("; {doing}")
                };
                format!("has not come to {label}, {came}{doing}")
            }
            Reason::Dead(_) => {
                let all = || self.others.iter().chain([&self.rank]);
                let numbers = || all().filter_map(|rank| Some(values.ranks.get(*rank as usize)?.rank));
                let with = match (numbers().min(), numbers().max()) {
                    (Some(first), Some(last)) if first != last => {
                        format!(": {} ranks, {first} to {last}", self.others.len() + 1)
                    }
                    _ => String::new(),
                };
                format!("the node is not connected any more{with}")
            }
            Reason::Stale(_) => "no report any more, the node is connected".into(),
            Reason::Ended(code) => ended(*code),
            Reason::Compute => format!("own kernels take longer: {more}"),
            Reason::Clock {
                clocks,
                powers,
                throttle,
            } => {
                let power = powers.map_or_else(String::new, |(own, usual)| format!(", {own:.0} of {usual:.0} W"));
                let why = if throttle.is_empty() {
                    String::new()
                } else {
                    format!(", throttled: {throttle}")
                };
                format!("clock {:.0} of {:.0} MHz{power}{why}: {more}", clocks.0, clocks.1)
            }
            Reason::Copies => format!("copies take longer: {more}"),
            Reason::Host { ready, asleep } => {
                let thread = if *ready >= 0.1 {
                    format!(", its thread waits for a CPU {} %", units::percent(*ready))
                } else if *asleep >= 0.2 {
                    format!(", its thread sleeps {} %", units::percent(*asleep))
                } else {
                    String::new()
                };
                format!("GPU idle, the host is late{thread}: {more}")
            }
            Reason::Waits(Some((rank, operation))) => {
                let known = values.ranks.get(*rank as usize).map_or(0, |row| row.rank);
                format!("waits for rank {known} in {}: {more}", operation.name())
            }
            Reason::Waits(None) => format!("waits for others: {more}"),
            Reason::Transfer => format!("transfer in collectives takes longer: {more}"),
        }
    }

    /// The reason in one or two words.
    pub const fn word(&self) -> &'static str {
        match self.reason {
            Reason::Absent { .. } => "missing",
            Reason::Dead(_) => "node gone",
            Reason::Stale(_) => "silent",
            Reason::Ended(_) => "ended",
            Reason::Compute => "compute",
            Reason::Clock { .. } => "clock",
            Reason::Copies => "copies",
            Reason::Host { .. } => "host",
            Reason::Waits(_) => "waits",
            Reason::Transfer => "transfer",
        }
    }

    /// The clocks' error as text; none where no times of several nodes were compared.
    pub fn error_text(&self) -> Option<String> {
        self.error.map(clock_error)
    }
}

fn ended(code: i32) -> String {
    match code {
        i32::MIN => "its process has ended, it is not known how".into(),
        code if code < 0 => format!("its process was ended by signal {}", -code),
        code => format!("its process ended with exit code {code}"),
    }
}

/// Means of a rank over the latest seconds; shares of time, and the step in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    pub(super) step: Option<f64>,
    pub(super) busy: f64,
    pub(super) compute: f64,
    pub(super) copying: f64,
    pub(super) inside: f64,
    calls: f64,
    pub(super) mpi: f64,
    pub(super) wait: Option<f64>,
    ready: f64,
    asleep: f64,
    pub(super) power: Option<f64>,
    clock: Option<f64>,
    count: u32,
}

impl Mean {
    /// Share of time without kernel and copy, and outside of collectives.
    fn idle(&self) -> f64 {
        (1.0 - self.busy - self.copying - self.calls).max(0.0)
    }

    /// Of a rank in the seconds before `end`; `None` if it reported none of them.
    pub(super) fn of(grid: &Grid, rank: usize, end: u64) -> Option<Self> {
        let mut sum = Self::default();
        let (mut steps, mut waits, mut powers, mut clocks) = ((0.0, 0), (0.0, 0), (0.0, 0), (0.0, 0));
        let add = |sum: &mut (f64, u32), value: Option<f64>| {
            if let Some(value) = value {
                *sum = (sum.0 + value, sum.1 + 1);
            }
        };
        for cell in (end.saturating_sub(AVERAGED)..end).filter_map(|second| grid.cell(second, rank)) {
            sum.count += 1;
            sum.busy += cell.busy();
            sum.compute += cell.compute();
            sum.copying += cell.copying();
            sum.inside += cell.inside();
            sum.calls += cell.calls();
            sum.mpi += cell.mpi();
            sum.ready += cell.ready();
            sum.asleep += cell.asleep();
            add(&mut steps, cell.step());
            add(&mut waits, cell.wait());
            add(&mut powers, cell.power());
            add(&mut clocks, cell.clock());
        }
        if sum.count == 0 {
            return None;
        }
        let count = f64::from(sum.count);
        let mean = |sum: (f64, u32)| (sum.1 > 0).then(|| sum.0 / f64::from(sum.1));
        Some(Self {
            step: mean(steps),
            busy: sum.busy / count,
            compute: sum.compute / count,
            copying: sum.copying / count,
            inside: sum.inside / count,
            calls: sum.calls / count,
            mpi: sum.mpi / count,
            wait: mean(waits),
            ready: sum.ready / count,
            asleep: sum.asleep / count,
            power: mean(powers),
            clock: mean(clocks),
            count: sum.count,
        })
    }
}

/// Median of those that are known.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    let middle = all.len().checked_sub(1)? / 2;
    let (_, value, _) = all.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*value)
}

/// What is usual for the ranks.
struct Usual {
    /// Step, ns; a second if no steps are known.
    step: f64,
    own: f64,
    compute: f64,
    copying: f64,
    idle: f64,
    wait: f64,
    transfer: f64,
    clock: Option<f64>,
    power: Option<f64>,
    /// Excess from which on a rank is slow, ns.
    least: f64,
}

/// Parts of a rank's step, ns.
struct Parts {
    step: f64,
    own: f64,
    compute: f64,
    copying: f64,
    idle: f64,
    wait: f64,
    transfer: f64,
}

impl Parts {
    fn of(mean: &Mean, usual_step: f64) -> Self {
        let step = mean.step.unwrap_or(usual_step);
        let wait = mean.wait.unwrap_or(0.0);
        Self {
            step,
            own: step * (1.0 - mean.inside),
            compute: step * mean.compute,
            copying: step * mean.copying,
            idle: step * mean.idle(),
            wait: step * wait,
            transfer: if mean.wait.is_some() {
                step * (mean.inside - wait).max(0.0)
            } else {
                0.0
            },
        }
    }
}

impl Usual {
    fn of(means: &[Option<Mean>]) -> Self {
        let known = || means.iter().flatten();
        let step = median(known().filter_map(|mean| mean.step)).unwrap_or(SECOND as f64);
        let parts: Vec<Parts> = known().map(|mean| Parts::of(mean, step)).collect();
        let of = |value: fn(&Parts) -> f64| median(parts.iter().map(value)).unwrap_or(0.0);
        let own = of(|parts| parts.own);
        let deviation = median(parts.iter().map(|parts| (parts.own - own).abs())).unwrap_or(0.0);
        Self {
            step,
            own,
            compute: of(|parts| parts.compute),
            copying: of(|parts| parts.copying),
            idle: of(|parts| parts.idle),
            wait: of(|parts| parts.wait),
            transfer: of(|parts| parts.transfer),
            clock: median(known().filter_map(|mean| mean.clock)),
            power: median(known().filter_map(|mean| mean.power)),
            least: (MIN_EXCESS * step).max(MIN_DEVIATIONS * deviation),
        }
    }

    /// Why a rank is slow, what that costs, and whether times of several ranks show it.
    fn reason(
        &self,
        mean: &Mean,
        row: &RankRow,
        waits_for: Option<(u32, CollectiveOperation)>,
    ) -> Option<(Reason, f64, f64, bool)> {
        let parts = Parts::of(mean, self.step);
        let (own, step) = (parts.own - self.own, parts.step - self.step);
        let excess = own.max(step);
        if excess < self.least {
            return None;
        }
        let mut found = vec![
            (parts.compute - self.compute, Reason::Compute),
            (parts.copying - self.copying, Reason::Copies),
            (
                parts.idle - self.idle,
                Reason::Host {
                    ready: mean.ready,
                    asleep: mean.asleep,
                },
            ),
        ];
        if step >= own && mean.wait.is_some() {
            found.push((parts.wait - self.wait, Reason::Waits(waits_for)));
            found.push((parts.transfer - self.transfer, Reason::Transfer));
        }
        let (explained, reason) = found.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        if explained <= 0.0 {
            return None;
        }
        let reason = if reason == Reason::Compute {
            self.clock_of(mean, row)
        } else {
            reason
        };
        let compared = matches!(reason, Reason::Waits(_) | Reason::Transfer);
        let share = (explained / parts.step.max(1.0)).min(1.0);
        Some((reason, excess, share, compared))
    }

    /// Slow kernels with a slow clock are slow by the clock.
    fn clock_of(&self, mean: &Mean, row: &RankRow) -> Reason {
        let throttle = row.sums.gauges.as_ref().map(|readings| readings.throttle.clone());
        let throttle = throttle.unwrap_or_default();
        match mean.clock.zip(self.clock) {
            Some(clocks) if clocks.0 < SLOW_CLOCK * clocks.1 || !throttle.is_empty() => Reason::Clock {
                clocks,
                powers: mean.power.zip(self.power),
                throttle,
            },
            _ => Reason::Compute,
        }
    }
}

/// The ranks that hold the job up: those that do not take part any more, then the slowest.
pub(super) fn slow(values: &JobValues, means: &[Option<Mean>], now: Nanos) -> Vec<Slow> {
    let mut found = absent(values, now);
    // The first rank of each node that is gone: what its ranks have in common is reported once.
    let mut dead: FastMap<u32, u32> = FastMap::default();
    let mut is_down = vec![false; values.ranks.len()];
    for (at, row) in (0u32..).zip(values.ranks.iter()) {
        let Some(node) = values.nodes.get(row.node as usize) else {
            continue;
        };
        let reason = match (node.state, row.sums.exit) {
            (_, Some(code)) if code != 0 => Some((Reason::Ended(code), row.until)),
            (_, Some(_)) => continue,
            (NodeState::Gone(since), None) => Some((Reason::Dead(since), since)),
            (NodeState::Known, None) if now.saturating_sub(row.until) > STALE => {
                Some((Reason::Stale(row.until), row.until))
            }
            _ => None,
        };
        if let Some((reason, since)) = reason {
            is_down[at as usize] = true;
            found.retain(|known| known.rank != at);
            if matches!(reason, Reason::Dead(_)) {
                let first = *dead.entry(row.node).or_insert(at);
                if let Some(of_node) = found.iter_mut().find(|known| known.rank == first) {
                    of_node.others.push(at);
                    continue;
                }
            }
            found.push(Slow {
                rank: at,
                others: Vec::new(),
                reason,
                excess: now.saturating_sub(since),
                share: 1.0,
                waited: None,
                before: String::new(),
                error: None,
            });
        }
    }
    for known in &found {
        is_down[known.rank as usize] = true;
    }
    found.sort_by_key(|slow| {
        (
            !matches!(slow.reason, Reason::Absent { .. }),
            std::cmp::Reverse(slow.excess),
        )
    });
    let usual = Usual::of(means);
    let mut slower: Vec<Slow> = Vec::new();
    for (at, mean) in (0u32..).zip(means) {
        let (Some(mean), false) = (mean, is_down.get(at as usize).copied().unwrap_or(true)) else {
            continue;
        };
        let row = &values.ranks[at as usize];
        let late = late_of(values, row, at);
        if let Some((reason, excess, share, compared)) = usual.reason(mean, row, late) {
            slower.push(Slow {
                rank: at,
                others: Vec::new(),
                reason,
                excess: excess as u64,
                share,
                waited: waited(values, means, usual.step, at),
                before: row.sums.before.clone(),
                error: compared.then(|| error_of(values, row)),
            });
        }
    }
    slower.sort_by(|a, b| b.excess.cmp(&a.excess).then(a.rank.cmp(&b.rank)));
    found.extend(slower);
    found.truncate(MAX_SLOW);
    found
}

/// Ranks that others wait for.
fn absent(values: &JobValues, now: Nanos) -> Vec<Slow> {
    let mut found: Vec<Slow> = Vec::new();
    for communicator in &values.communicators {
        let Some(waiting) = &communicator.waiting else { continue };
        for rank in &waiting.missing {
            if found.iter().any(|known| known.rank == *rank) {
                continue;
            }
            let doing = values.ranks.get(*rank as usize).map(|row| row.sums.doing.clone());
            found.push(Slow {
                rank: *rank,
                others: Vec::new(),
                reason: Reason::Absent {
                    waiting: waiting.clone(),
                    communicator: communicator.number,
                    doing: doing.unwrap_or_default(),
                },
                excess: now.saturating_sub(waiting.since),
                share: 1.0,
                waited: None,
                before: String::new(),
                error: None,
            });
        }
    }
    found
}

/// Ranks that wait in calls of MPI for one that comes last most often in a communicator of theirs.
fn waited(values: &JobValues, means: &[Option<Mean>], usual_step: f64, own: u32) -> Option<Waited> {
    let row = values.ranks.get(own as usize)?;
    let lates = communicators_of(values, row).filter_map(|known| Some((known.identity, known.late?)));
    // Of RCCL, whose calls do not wait, the list of communicators says it.
    let (identity, late) = lates
        .filter(|(_, late)| late.rank == own && late.operation.is_mpi())
        .max_by_key(|(_, late)| late.skew)?;
    let others = (0u32..)
        .zip(values.ranks.iter())
        .zip(means)
        .filter(|((at, row), _)| *at != own && row.sums.communicators.iter().any(|part| part.identity == identity));
    let waits: Vec<(f64, Option<f64>)> = others
        .filter_map(|(_, mean)| Some((mean.as_ref()?.wait?, mean.as_ref()?.step)))
        .collect();
    let count = waits.len() as f64;
    let step = |step: Option<f64>| step.unwrap_or(usual_step);
    let wait = waits.iter().map(|(wait, own)| wait * step(*own)).sum::<f64>() / count.max(1.0);
    let steps: Option<Vec<f64>> = waits.iter().map(|(_, step)| *step).collect();
    (wait >= 1.0).then(|| Waited {
        operation: late.operation,
        ranks: waits.len() as u32,
        wait: wait as u64,
        step: steps.map(|steps| (steps.iter().sum::<f64>() / count) as u64),
    })
}

/// The rank that comes last most often in the communicators of a rank.
fn late_of(values: &JobValues, row: &RankRow, own: u32) -> Option<(u32, CollectiveOperation)> {
    let lates = communicators_of(values, row).filter_map(|communicator| communicator.late);
    lates
        .filter(|late| late.rank != own)
        .max_by_key(|late| late.skew)
        .map(|late| (late.rank, late.operation))
}

/// The largest error of the comparisons that a rank takes part in.
fn error_of(values: &JobValues, row: &RankRow) -> u64 {
    let errors = communicators_of(values, row).map(|communicator| communicator.error.unwrap_or(u64::MAX));
    errors.max().unwrap_or(u64::MAX)
}

fn communicators_of<'a>(values: &'a JobValues, row: &'a RankRow) -> impl Iterator<Item = &'a super::CommunicatorSums> {
    let parts = row.sums.communicators.iter();
    parts.filter_map(|part| {
        let known = values.communicators.iter();
        known.into_iter().find(|known| known.identity == part.identity)
    })
}
