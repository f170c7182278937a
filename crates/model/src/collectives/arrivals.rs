//! Parts of collectives, one by one: of a rank whose peers are recorded elsewhere, no collective is ever complete here.

use super::collective::PartKey;
use super::{Collectives, Key, Part, pack};
use crate::fx_hash::FastMap;
use roctop_trace::item::{CollectiveOperation as Operation, Nanos, ProcessId, ThreadId};
use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};

/// Number of parts that are kept, the latest.
const MAX_ARRIVALS: usize = 1024;
/// Maximum number of pending collectives, one for each rank of a communicator.
const MAX_PENDING: usize = 1024;

/// A rank's part in a collective, once it has ended. Messages between two ranks are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the arrival in this session, from 1.
    pub number: u64,
    /// The process.
    pub process: ProcessId,
    /// The thread that called.
    pub thread: ThreadId,
    /// Which collective.
    pub key: Key,
    /// Rank in the communicator.
    pub rank: u32,
    /// What it called.
    pub operation: Operation,
    /// Begin of its kernel, or enter of its call if it has none, CLOCK_BOOTTIME ns of its machine.
    pub at: Nanos,
    /// Time until its kernel ended or its call returned, ns. Further kernels of the same call are not in it.
    pub took: u64,
    /// Whether this is the time of a kernel.
    pub by_kernel: bool,
}

/// Time of a process in collectives so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// The process.
    pub process: ProcessId,
    /// Number of collectives that ended.
    pub count: u64,
    /// Sum of their times, ns; those that ran at once count each.
    pub total: u64,
    /// The part of `total` that is time of kernels, ns.
    pub kernels: u64,
}

/// A collective that a rank has called and that has not ended for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// The process.
    pub process: ProcessId,
    /// Which collective.
    pub key: Key,
    /// Rank in the communicator.
    pub rank: u32,
    /// What it called.
    pub operation: Operation,
    /// When it called, CLOCK_BOOTTIME ns of its machine.
    pub since: Nanos,
}

/// How far a rank has come in a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The process.
    pub process: ProcessId,
    /// Index of the communicator.
    pub communicator: u32,
    /// Rank in it.
    pub rank: u32,
    /// Number of the last collective that it has called; 0 none.
    pub reached: u32,
}

/// The latest parts and their sums.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    count: u64,
    latest: VecDeque<Arrival>,
    inside: FastMap<u32, Inside>,
    /// Number of the last collective that has ended, by communicator and rank.
    ended: FastMap<u64, u32>,
}

impl Arrivals {
    fn add(&mut self, part: &Part, key: Key) {
        let Some(returned) = part.returned else { return };
        let (at, end) = part
            .kernel
            .map_or((part.call.start, returned), |kernel| (kernel.begin, kernel.end));
        self.count += 1;
        let ended = self.ended.entry(pack(key.communicator, part.rank)).or_default();
        *ended = (*ended).max(key.sequence);
        let arrival = Arrival {
            number: self.count,
            process: part.call.process,
            thread: part.call.thread,
            key,
            rank: part.rank,
            operation: part.call.operation,
            at,
            took: end.saturating_sub(at),
            by_kernel: part.kernel.is_some(),
        };
        let inside = self.inside.entry(part.call.process.0).or_default();
        inside.process = part.call.process;
        inside.count += 1;
        inside.total = inside.total.saturating_add(arrival.took);
        if arrival.by_kernel {
            inside.kernels = inside.kernels.saturating_add(arrival.took);
        }
        self.latest.push_back(arrival);
        if self.latest.len() > MAX_ARRIVALS {
            self.latest.pop_front();
        }
    }

    pub(super) fn latest(&self) -> Vec<Arrival> {
        self.latest.iter().copied().collect()
    }

    /// In order of the processes.
    pub(super) fn inside(&self) -> Vec<Inside> {
        let mut all: Vec<Inside> = self.inside.values().copied().collect();
        all.sort_unstable_by_key(|inside| inside.process.0);
        all
    }
}

impl Collectives {
    /// Counts a part once, when all that is expected of it is known.
    pub(super) fn part_ended(&mut self, place: PartKey) {
        let Some(part) = self.part(place).filter(|part| part.is_complete() && !part.is_counted) else {
            return;
        };
        part.is_counted = true;
        let part = *part;
        if place.key.pair.is_none() {
            self.arrivals.add(&part, place.key);
        }
    }

    /// The first collective of each rank and communicator that has not ended for it.
    pub(super) fn pending(&self) -> Vec<Pending> {
        let mut found: BTreeMap<(u32, u32), Pending> = BTreeMap::new();
        for collective in self.open.values().filter(|collective| collective.key.pair.is_none()) {
            for part in collective.parts.iter().filter(|part| !part.is_counted) {
                // A later one has ended: the record of this one's end is lost.
                let ended = self.arrivals.ended.get(&pack(collective.key.communicator, part.rank));
                if ended.is_some_and(|ended| *ended > collective.key.sequence) {
                    continue;
                }
                if found.len() >= MAX_PENDING {
                    return found.into_values().collect();
                }
                if let Entry::Vacant(place) = found.entry((collective.key.communicator, part.rank)) {
                    place.insert(Pending {
                        process: part.call.process,
                        key: collective.key,
                        rank: part.rank,
                        operation: part.call.operation,
                        since: part.call.start,
                    });
                }
            }
        }
        found.into_values().collect()
    }

    /// How far each recorded rank has come, by communicator and rank.
    pub(super) fn progress(&self) -> Vec<Progress> {
        let rows = (0u32..).zip(&self.communicators).filter(|(_, row)| row.is_known);
        let ranks = rows.flat_map(|(communicator, row)| row.ranks.iter().map(move |rank| (communicator, rank)));
        let all = ranks.map(|(communicator, (rank, process))| Progress {
            process: *process,
            communicator,
            rank: *rank,
            reached: self.reached.get(&pack(communicator, *rank)).copied().unwrap_or(0),
        });
        all.collect()
    }
}
