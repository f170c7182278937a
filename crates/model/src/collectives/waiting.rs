//! Collectives that some ranks wait for because others have not come.

use super::{Collective, Collectives, Key, Part, Problem, pack, problem};
use roctop_trace::item::{CollectiveOperation as Operation, Nanos, ProcessId};

/// Time after a release within which records of other ranks may still arrive, ns.
const GRACE: u64 = 200_000_000;

/// Why a rank is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Absence {
    /// Its process is recorded and has not called.
    Absent,
    /// Its process is recorded; its record of this call is lost, because later ones are there.
    Lost,
    /// No process with this rank is recorded.
    Unrecorded,
}

/// A collective that ranks wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Which one.
    pub key: Key,
    /// What most ranks called.
    pub operation: Operation,
    /// Ranks that have come.
    pub came: Vec<u32>,
    /// Ranks that have not, with their processes.
    pub missing: Vec<(u32, Option<ProcessId>, Absence)>,
    /// Since when a rank waits.
    pub since: Nanos,
}

impl Collectives {
    /// Collectives in order of their numbers for which at least one rank waits at `now`: the first one of each
    /// communicator that is not whole. A rank waits from its call on, and not before its previous kernel has ended.
    pub(super) fn waiting(&self, now: Nanos) -> Vec<Waiting> {
        let mut found: Vec<Waiting> = Vec::new();
        for collective in self.open.values() {
            let key = collective.key;
            let is_before = |other: &Waiting| other.key.communicator == key.communicator && other.key.pair.is_none();
            let is_next = key.pair.is_some() || !found.iter().any(is_before);
            let is_whole = collective.parts.len() >= collective.size as usize;
            if is_whole || !is_next {
                continue;
            }
            if let Some(waiting) = self.wait_for(collective, now) {
                found.push(waiting);
            }
        }
        found
    }

    /// Whether a rank released the communicator after its call, long enough ago that the others' records are here.
    fn has_left(&self, part: &Part, now: Nanos) -> bool {
        let local = self.locals.get(&pack(part.call.process.0, part.call.communicator));
        let row = local.and_then(|local| self.communicators.get(local.communicator as usize));
        let released = row.and_then(|row| row.released.get(&part.rank));
        released.is_some_and(|at| *at >= part.call.start && at.saturating_add(GRACE) < now)
    }

    /// Collectives whose ranks have all released the communicator though others had not come: the first one of each.
    pub(super) fn abandoned(&self, now: Nanos) -> Vec<Problem> {
        let mut found: Vec<Problem> = Vec::new();
        let mut last = None;
        for collective in self.open.values() {
            let is_whole = collective.parts.len() >= collective.size as usize;
            let have_left = collective.parts.iter().all(|part| self.has_left(part, now));
            let Some(part) = collective.parts.first().filter(|_| !is_whole && have_left) else {
                continue;
            };
            if last.replace(collective.key.communicator) != Some(collective.key.communicator) {
                found.push(Problem::Abandoned {
                    key: collective.key,
                    operation: problem::most(collective.parts.iter().map(|part| part.call.operation)),
                    rank: part.rank,
                });
            }
        }
        found
    }

    fn wait_for(&self, collective: &Collective, now: Nanos) -> Option<Waiting> {
        let key = collective.key;
        let row = self.communicators.get(key.communicator as usize)?;
        let since = collective
            .parts
            .iter()
            .filter(|part| !self.has_left(part, now))
            .filter_map(|part| {
                // A part of a group that has not ended waits for its own thread.
                let has_begun = part.call.group == 0 || part.group_end != 0;
                let previous = Key {
                    sequence: key.sequence.saturating_sub(1),
                    ..key
                };
                let is_busy = self.open.get(&previous).is_some_and(|before| {
                    let own = before.parts.iter().find(|other| other.rank == part.rank);
                    own.is_some_and(|own| own.awaits_kernel && own.kernel.is_none())
                });
                (has_begun && !is_busy).then(|| self.clocks.aligned(part.call.process, part.call.start))
            })
            .min()
            .filter(|since| *since <= now)?;
        let came: Vec<u32> = collective.parts.iter().map(|part| part.rank).collect();
        let expected: Vec<u32> = match key.pair {
            Some((from, to)) => vec![from, to],
            None => (0..collective.size).collect(),
        };
        let is_missing = |rank: &u32| match key.pair {
            // A rank may send to itself.
            Some((from, to)) if from == to => true,
            _ => !came.contains(rank),
        };
        let missing = expected.into_iter().filter(is_missing).map(|rank| {
            let process = row.ranks.get(&rank).copied();
            let reached = self.reached.get(&pack(key.communicator, rank)).copied().unwrap_or(0);
            let absence = match process {
                None => Absence::Unrecorded,
                Some(_) if key.pair.is_none() && reached > key.sequence => Absence::Lost,
                Some(_) => Absence::Absent,
            };
            (rank, process, absence)
        });
        Some(Waiting {
            key,
            operation: problem::most(collective.parts.iter().map(|part| part.call.operation)),
            missing: missing.collect(),
            came,
            since,
        })
    }
}
