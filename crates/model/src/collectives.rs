//! Collectives of RCCL and MPI, matched across the processes of a session: who came when, who waited, who came last.
//!
//! All ranks call the collectives of a communicator in the same order, and the collector numbers them. So a collective is
//! a communicator and a number; a message is a communicator, two peers and a number.
//!
//! A rank *arrives* when its kernel begins, or, if not all ranks have a kernel or it is MPI's, when it calls. *Skew* is the time between
//! the first and the last arrival, *wait* the time of a rank until the last arrival, *transfer* the time from then to the
//! last end.

mod arrivals;
mod bandwidth;
mod clocks;
mod collective;
mod communicator;
mod matching;
mod messages;
mod operation;
mod problem;
mod slices;
mod times;
mod waiting;

pub use self::arrivals::{Arrival, Inside, Pending, Progress};
pub use self::clocks::MachineClock;
pub use self::collective::{Collective, Key, Part};
pub use self::communicator::CommunicatorRow;
pub use self::operation::OperationRow;
pub use self::problem::Problem;
pub use self::slices::{CollectiveSlice, Stage};
pub use self::times::{Times, Wait};
pub use self::waiting::{Absence, Waiting};

pub(crate) use self::slices::slices;
pub(crate) use self::times::is_mutual;

use self::arrivals::Arrivals;
use self::clocks::Clocks;
use self::collective::PartKey;
use self::communicator::Local;
use self::messages::Messages;
use crate::Snapshot;
use crate::fx_hash::FastMap;
use roctop_trace::item::{CollectiveOperation as Operation, Nanos, ProcessId, Span};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Error of the clocks of one machine: of the conversion of ticks, and of GPU times.
pub const MACHINE_ERROR: u64 = 2_000;
/// Maximum number of communicators.
const MAX_COMMUNICATORS: usize = 4096;
/// Maximum number of ranks of a communicator.
const MAX_RANKS: u32 = 1 << 16;
/// Maximum number of collectives that are not complete.
const MAX_OPEN: usize = 1 << 16;
/// Number of complete collectives that are kept.
const MAX_KEPT: usize = 4096;
/// A collective whose kernel is missing is complete when kernels of the communicator are this much further: it is lost.
const MAX_BEHIND: u32 = 64;
/// The same for calls: the GPU is never this far behind.
const MAX_AHEAD: u32 = 4096;
/// Time after the call's end within which a running process shows a first kernel of a collective, at least in flight, ns.
const FIRST_KERNEL: u64 = 1_000_000_000;
/// Maximum number of kernels whose call is not known yet.
const MAX_KERNELS: usize = 1 << 16;
/// Number of calls inside of others from which on those of complete collectives are removed.
const MAX_INNER: usize = 4096;
/// Maximum number of calls inside of calls that have not returned; beyond it, all are dropped.
const MAX_NESTED: usize = 1 << 16;
/// Maximum number of problems that are kept.
const MAX_PROBLEMS: usize = 256;
/// `ncclInProgress`: the call continues in the background.
const IN_PROGRESS: i32 = 7;

/// Values for a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectiveValues {
    /// All communicators, by index.
    pub communicators: Vec<CommunicatorRow>,
    /// Statistics by communicator and operation.
    pub operations: Vec<OperationRow>,
    /// Complete collectives, the newest last.
    pub recent: Vec<(Arc<Collective>, Times)>,
    /// Collectives that ranks wait for.
    pub waiting: Vec<Waiting>,
    /// Problems, each once.
    pub problems: Vec<Problem>,
    /// Clocks of the machines relative to the first, if there are several.
    pub clocks: Vec<MachineClock>,
    /// Calls that could not be matched.
    pub unmatched: u64,
    /// The latest parts that have ended, also of collectives whose other ranks are not recorded here; the newest last.
    pub arrivals: Vec<Arrival>,
    /// Time of each process in collectives.
    pub inside: Vec<Inside>,
    /// The first collective of each rank and communicator that has not ended.
    pub pending: Vec<Pending>,
    /// How far each recorded rank has come.
    pub progress: Vec<Progress>,
}

impl CollectiveValues {
    /// Number of a communicator's rank among all ranks of the job; that in the communicator, if its process names none.
    pub fn rank_of(&self, snap: &Snapshot, communicator: u32, rank: u32) -> u32 {
        let row = self.communicators.get(communicator as usize);
        let process = row.and_then(|row| row.ranks.get(&rank));
        let known = process.and_then(|process| snap.values.processes.get(process.0 as usize));
        known.and_then(|known| known.process.rank).unwrap_or(rank)
    }
}

/// The collectives of a session.
#[derive(Clone, Debug, Default)]
pub struct Collectives {
    communicators: Vec<CommunicatorRow>,
    by_identity: FastMap<u64, u32>,
    locals: FastMap<u64, Local>,
    open: BTreeMap<Key, Collective>,
    /// Parts of open collectives by process and call.
    calls: FastMap<(u32, u64), PartKey>,
    /// Calls inside of these by process: the outer call.
    inner: FastMap<(u32, u64), u64>,
    /// Calls inside of calls that have not returned, by process and outer call.
    nested: FastMap<(u32, u64), Vec<u64>>,
    /// Number of these calls.
    nested_calls: usize,
    /// Number of calls inside at which they are looked through.
    inner_limit: usize,
    /// Parts of a thread's group that has not ended, by process, thread and group.
    groups: FastMap<(u32, u32, u32), Vec<PartKey>>,
    /// Ends of groups: parts by process and call.
    ends: FastMap<(u32, u64), Vec<PartKey>>,
    /// Kernels whose call is not known yet.
    kernels: FastMap<(u32, u64), Span>,
    /// The same in order.
    kernel_order: VecDeque<(u32, u64)>,
    /// Highest sequence number of each rank of a communicator.
    reached: FastMap<u64, u32>,
    /// The same of collectives whose kernel has come.
    reached_by_kernels: FastMap<u64, u32>,
    /// Processes that have shown kernels of their collectives.
    has_kernels: BTreeSet<u32>,
    /// Processes whose kernels are not recorded from some time on.
    unrecorded: BTreeSet<u32>,
    /// Processes whose collectives have no kernels.
    without_kernels: BTreeSet<u32>,
    operations: BTreeMap<(u32, Operation), OperationRow>,
    recent: VecDeque<(Arc<Collective>, Times)>,
    problems: Vec<Problem>,
    clocks: Clocks,
    unmatched: u64,
    messages: Messages,
    arrivals: Arrivals,
    /// Complete collectives since the last [`Collectives::take_done`], if they are wanted.
    done: Option<Vec<(Arc<Collective>, Times)>>,
}

const fn pack(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

impl Collectives {
    /// Also keeps every complete collective until [`Collectives::take_done`].
    #[must_use]
    pub fn keeping_all() -> Self {
        Self {
            done: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Complete collectives since the last call.
    pub fn take_done(&mut self) -> Vec<(Arc<Collective>, Times)> {
        self.done.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether there are such.
    pub(crate) fn has_done(&self) -> bool {
        self.done.as_ref().is_some_and(|done| !done.is_empty())
    }

    /// Whether any communicator is known: otherwise calls and dispatches need not be passed.
    #[inline]
    pub fn is_active(&self) -> bool {
        !self.communicators.is_empty()
    }

    /// Whether a communicator is one of MPI: no kernel is a part of its collectives.
    fn is_mpi(&self, communicator: u32) -> bool {
        let row = self.communicators.get(communicator as usize);
        row.is_some_and(|row| row.is_mpi)
    }

    /// The communicators, by index.
    pub fn communicators(&self) -> &[CommunicatorRow] {
        &self.communicators
    }

    /// Declares the machine of a process; processes of machine 0 need not be declared.
    pub fn machine(&mut self, process: ProcessId, machine: u32) {
        self.clocks.machine(process, machine);
    }

    /// The latest complete collectives with their communicators, if some are of MPI: causes are found by them.
    pub(crate) fn latest_of_mpi(&self) -> CollectiveValues {
        if !self.communicators.iter().any(|row| row.is_mpi) {
            return CollectiveValues::default();
        }
        CollectiveValues {
            communicators: self.communicators.clone(),
            recent: self.recent.iter().cloned().collect(),
            ..CollectiveValues::default()
        }
    }

    /// The values at `now`.
    pub fn values(&mut self, now: Nanos) -> CollectiveValues {
        let waiting = self.waiting(now);
        for collective in waiting
            .iter()
            .filter_map(|waiting| self.open.get(&waiting.key))
            .cloned()
            .collect::<Vec<_>>()
        {
            self.check(&collective);
        }
        CollectiveValues {
            communicators: self.communicators.clone(),
            operations: self.operations.values().cloned().collect(),
            recent: self.recent.iter().cloned().collect(),
            waiting,
            problems: self.problems.iter().cloned().chain(self.abandoned(now)).collect(),
            clocks: self.clocks.machines(),
            unmatched: self.unmatched,
            arrivals: self.arrivals.latest(),
            inside: self.arrivals.inside(),
            pending: self.pending(),
            progress: self.progress(),
        }
    }
}

#[cfg(test)]
mod tests;
