//! Clocks of several machines, refined by the ends of collectives.
//!
//! No rank ends a synchronizing collective before the last one has arrived. If rank `a` ends at `end_a` by its machine's
//! clock, and rank `b` arrives at `begin_b` by another's, the other clock is ahead by at least `begin_b - end_a`, and by at
//! most `end_b - begin_a`. Each collective narrows the interval; its middle is the offset, half its width the error.

use super::{Collective, MACHINE_ERROR, Part};
use crate::fx_hash::FastMap;
use roctop_trace::item::{CollectiveOperation as Operation, Nanos, ProcessId};
use std::collections::BTreeMap;

/// The clock of a machine relative to the first machine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineClock {
    /// The machine.
    pub machine: u32,
    /// How far its clock is ahead, ns.
    pub offset: i64,
    /// Error of this, ns; `None` if no collective has bounded it.
    pub error: Option<u64>,
}

/// Bounds of a clock's offset from the first machine's, ns.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: i64,
    most: i64,
}

/// The clocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    machines: FastMap<u32, u32>,
    bounds: BTreeMap<u32, Bounds>,
}

/// Whether no rank ends such a collective before all have begun.
fn is_synchronizing(collective: &Collective, operation: Operation) -> bool {
    match operation {
        Operation::AllReduce
        | Operation::AllGather
        | Operation::ReduceScatter
        | Operation::AllToAll
        | Operation::MpiBarrier => true,
        // Of no elements, nobody needs to wait.
        Operation::MpiAllreduce => collective.parts.iter().all(|part| part.call.count > 0),
        _ => false,
    }
}

impl Clocks {
    pub(super) fn machine(&mut self, process: ProcessId, machine: u32) {
        if machine != 0 {
            self.machines.insert(process.0, machine);
            self.bounds.entry(machine).or_insert(Bounds {
                least: i64::MIN / 4,
                most: i64::MAX / 4,
            });
        }
    }

    fn of(&self, process: ProcessId) -> u32 {
        self.machines.get(&process.0).copied().unwrap_or(0)
    }

    /// Narrows the bounds by a complete collective.
    pub(super) fn learn(&mut self, collective: &Collective, operation: Operation) {
        if self.machines.is_empty() || collective.key.pair.is_some() || !is_synchronizing(collective, operation) {
            return;
        }
        let by_kernel = collective.parts.iter().all(|part| part.kernel.is_some());
        // The last arrival and the first end on each machine, by its own clock.
        let mut ends: BTreeMap<u32, (Nanos, Nanos)> = BTreeMap::new();
        for part in &collective.parts {
            let Some((begin, end)) = times(part, by_kernel) else {
                return;
            };
            let known = ends.entry(self.of(part.call.process)).or_insert((begin, end));
            *known = (known.0.max(begin), known.1.min(end));
        }
        let Some((begin, end)) = ends.get(&0).copied() else {
            return;
        };
        for (machine, (their_begin, their_end)) in ends {
            if let Some(bounds) = self.bounds.get_mut(&machine) {
                bounds.least = bounds.least.max(difference(their_begin, end));
                bounds.most = bounds.most.min(difference(their_end, begin));
            }
        }
    }

    /// Offset and error of a machine's clock. Clocks that drift may contradict themselves: then the error is the
    /// contradiction.
    fn clock(&self, machine: u32) -> MachineClock {
        let Some(bounds) = self.bounds.get(&machine) else {
            return MachineClock {
                machine,
                error: Some(0),
                ..MachineClock::default()
            };
        };
        let width = bounds.most.saturating_sub(bounds.least).unsigned_abs();
        if width > 1 << 60 {
            return MachineClock {
                machine,
                ..MachineClock::default()
            };
        }
        MachineClock {
            machine,
            offset: bounds.least.midpoint(bounds.most),
            error: Some(width.div_ceil(2)),
        }
    }

    /// A time of a process on the first machine's clock.
    pub(super) fn aligned(&self, process: ProcessId, at: Nanos) -> Nanos {
        if self.machines.is_empty() {
            return at;
        }
        at.saturating_add_signed(self.clock(self.of(process)).offset.saturating_neg())
    }

    /// Error of the difference of two of these processes' times, ns; `u64::MAX` if it is unknown.
    pub(super) fn error(&self, processes: impl Iterator<Item = ProcessId>) -> u64 {
        if self.machines.is_empty() {
            return MACHINE_ERROR;
        }
        let mut machines: Vec<u32> = processes.map(|process| self.of(process)).collect();
        machines.sort_unstable();
        machines.dedup();
        if machines.len() < 2 {
            return MACHINE_ERROR;
        }
        let mut errors: Vec<u64> = machines
            .iter()
            .map(|machine| self.clock(*machine).error.unwrap_or(u64::MAX))
            .collect();
        errors.sort_unstable_by(|a, b| b.cmp(a));
        let two = errors
            .iter()
            .take(2)
            .fold(0u64, |sum, error| sum.saturating_add(*error));
        two.saturating_add(MACHINE_ERROR)
    }

    /// The clocks of all machines but the first.
    pub(super) fn machines(&self) -> Vec<MachineClock> {
        self.bounds.keys().map(|machine| self.clock(*machine)).collect()
    }
}

fn times(part: &Part, by_kernel: bool) -> Option<(Nanos, Nanos)> {
    match part.kernel.filter(|_| by_kernel) {
        Some(kernel) => Some((kernel.begin, kernel.end)),
        None => Some((part.call.start, part.returned?)),
    }
}

fn difference(a: Nanos, b: Nanos) -> i64 {
    (i128::from(a) - i128::from(b)).clamp((i64::MIN / 4).into(), (i64::MAX / 4).into()) as i64
}
