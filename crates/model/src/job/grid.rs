//! Ranks × time: a cell for each rank and second, for the last ten minutes. A copy is shared.

use super::sums::RankSums;
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of seconds that are kept.
pub const SECONDS: usize = 600;
/// One second, ns.
pub(super) const SECOND: u64 = 1_000_000_000;
const MICRO: u64 = 1000;

/// What the cells show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// Mean step time, ns.
    #[default]
    Step,
    /// Share of time with a kernel.
    Busy,
    /// Share of time waiting in collectives.
    Wait,
    /// Power, W.
    Power,
    /// Share of time in MPI.
    Mpi,
}

impl Quantity {
    /// All of them with their words.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Step, "step time"),
        (Self::Busy, "busy"),
        (Self::Wait, "wait"),
        (Self::Power, "power"),
        (Self::Mpi, "MPI"),
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

/// A rank in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Sums of the matched collectives, µs.
    wait: u32,
    took: u32,
    /// Mean step time, µs; 0 none.
    step: u32,
    /// Shares of time, per mille.
    busy: u16,
    compute: u16,
    copying: u16,
    inside: u16,
    calls: u16,
    mpi: u16,
    ready: u16,
    asleep: u16,
    /// W, and MHz; 0 unknown.
    power: u16,
    clock: u16,
    is_known: bool,
    has_lost: bool,
}

fn part(nanos: u64, whole: u64) -> u16 {
    let whole = u128::from(whole.max(1));
    (u128::from(nanos) * 1000 / whole).min(1000) as u16
}

fn share(per_mille: u16) -> f64 {
    f64::from(per_mille) / 1000.0
}

impl Cell {
    /// The cell of a window, which lost records since the one before or not.
    pub(super) fn of(sums: &RankSums, has_lost: bool) -> Self {
        let whole = sums.length;
        let own = sums.kernel_time.saturating_sub(sums.inside_kernels).min(sums.busy);
        let mean = sums
            .steps
            .filter(|steps| steps.count > 0)
            .map_or(0, |steps| steps.total / u64::from(steps.count));
        let host = sums.host.unwrap_or_default();
        let gauge = |of: fn(&super::Readings) -> Option<f32>| {
            let value = sums.gauges.as_ref().and_then(of);
            value.map_or(0, |value| value.clamp(0.0, f32::from(u16::MAX)) as u16)
        };
        Self {
            step: (mean / MICRO).min(u64::from(u32::MAX)) as u32,
            busy: part(sums.busy, whole),
            compute: part(own, whole),
            copying: part(sums.copying, whole),
            inside: part(sums.inside, whole),
            calls: part(sums.inside.saturating_sub(sums.inside_kernels), whole),
            mpi: part(sums.mpi, whole),
            ready: part(host.ready, host.length),
            asleep: part(if host.length == 0 { 0 } else { host.asleep() }, host.length),
            power: gauge(|readings| readings.power),
            clock: gauge(|readings| readings.clock),
            is_known: true,
            has_lost,
            ..Self::default()
        }
    }

    /// Adds a matched collective, ns.
    pub(super) const fn add_wait(&mut self, wait: u64, took: u64) {
        self.wait = self.wait.saturating_add((wait / MICRO) as u32);
        self.took = self.took.saturating_add((took / MICRO) as u32);
    }

    /// The matched collectives of another cell of the same rank and second.
    pub(super) const fn keep_waits(&mut self, other: &Self) {
        self.wait = other.wait;
        self.took = other.took;
    }

    /// Whether the rank reported this second.
    pub const fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether records of this second were lost.
    pub const fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// Mean step time, ns.
    pub fn step(&self) -> Option<f64> {
        (self.step > 0).then(|| f64::from(self.step) * MICRO as f64)
    }

    /// Share of time with a kernel.
    pub fn busy(&self) -> f64 {
        share(self.busy)
    }

    /// Share of time with kernels other than those of collectives.
    pub fn compute(&self) -> f64 {
        share(self.compute)
    }

    /// Share of time with copies.
    pub fn copying(&self) -> f64 {
        share(self.copying)
    }

    /// Share of time in collectives, waits included.
    pub fn inside(&self) -> f64 {
        share(self.inside)
    }

    /// The part of it in calls, as those of MPI, not in kernels.
    pub fn calls(&self) -> f64 {
        share(self.calls)
    }

    /// Share of time in MPI, the sum of its threads.
    pub fn mpi(&self) -> f64 {
        share(self.mpi)
    }

    /// Share of time waiting for others in collectives: the share of the matched ones, of all. `None` if none was matched
    /// beyond the clocks' error.
    pub fn wait(&self) -> Option<f64> {
        match (self.took, self.inside) {
            (0, 0) if self.is_known => Some(0.0),
            (0, _) => None,
            (took, _) => Some(self.inside() * f64::from(self.wait.min(took)) / f64::from(took)),
        }
    }

    /// Share of time in which its thread waited for a CPU.
    pub fn ready(&self) -> f64 {
        share(self.ready)
    }

    /// Share of time in which its thread slept.
    pub fn asleep(&self) -> f64 {
        share(self.asleep)
    }

    /// Power, W.
    pub fn power(&self) -> Option<f64> {
        (self.power > 0).then(|| f64::from(self.power))
    }

    /// Shader clock, MHz.
    pub fn clock(&self) -> Option<f64> {
        (self.clock > 0).then(|| f64::from(self.clock))
    }

    /// One of its values.
    pub fn value(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            _ if !self.is_known => None,
            Quantity::Step => self.step(),
            Quantity::Busy => Some(self.busy()),
            Quantity::Wait => self.wait(),
            Quantity::Power => self.power(),
            Quantity::Mpi => Some(self.mpi()),
        }
    }
}

/// All ranks in a second.
#[derive(Clone, Debug, Default)]
struct Second {
    number: u64,
    cells: Vec<Cell>,
}

/// Ranks × time.
#[derive(Clone, Debug, Default)]
pub struct Grid(VecDeque<Arc<Second>>);

impl Grid {
    /// The cell of a rank, by its index, in a second, which is created; `None` if the second is older than all that are
    /// kept.
    pub(super) fn cell_mut(&mut self, second: u64, rank: usize) -> Option<&mut Cell> {
        let at = self.0.partition_point(|known| known.number < second);
        if self.0.get(at).is_none_or(|known| known.number != second) {
            if at == 0 && self.0.len() >= SECONDS {
                return None;
            }
            let ranks = self.0.back().map_or(0, |last| last.cells.len());
            let new = Second {
                number: second,
                cells: Vec::with_capacity(ranks.max(rank + 1)),
            };
            self.0.insert(at, Arc::new(new));
            if self.0.len() > SECONDS {
                self.0.pop_front();
                return self.cell_mut(second, rank);
            }
        }
        let found = Arc::make_mut(self.0.get_mut(at)?);
        if found.cells.len() <= rank {
            found.cells.resize(rank + 1, Cell::default());
        }
        found.cells.get_mut(rank)
    }

    /// The cell of a rank in a second, if that is known at all.
    pub(super) fn known_mut(&mut self, second: u64, rank: usize) -> Option<&mut Cell> {
        self.cell(second, rank)?;
        self.cell_mut(second, rank)
    }

    /// The cell of a rank in a second, if the rank reported it.
    pub fn cell(&self, second: u64, rank: usize) -> Option<&Cell> {
        let at = self.0.binary_search_by_key(&second, |known| known.number).ok()?;
        self.0.get(at)?.cells.get(rank).filter(|cell| cell.is_known)
    }

    /// The last second of which anything is known.
    pub fn last(&self) -> Option<u64> {
        self.0.back().map(|last| last.number)
    }

    /// The first second of which anything is known.
    pub fn first(&self) -> Option<u64> {
        self.0.front().map(|first| first.number)
    }

    /// Bytes that it takes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let cells: usize = self.0.iter().map(|second| second.cells.capacity()).sum();
        cells * size_of::<Cell>() + self.0.len() * size_of::<Second>()
    }
}
