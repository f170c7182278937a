//! Communicators: a row for each one over all processes.

use super::{Collective, Collectives, MAX_COMMUNICATORS, MAX_RANKS, Problem, pack};
use roctop_trace::item::{Communicator, CommunicatorState, Nanos, ProcessId};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A communicator over all processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommunicatorRow {
    /// Number on screen, from 0 in order of appearance.
    pub number: u32,
    /// Its identity, the same in all processes; `None` if unknown.
    pub identity: Option<u64>,
    /// Whether its identity is known. If not, it is one process's alone, and nothing can be matched.
    pub is_known: bool,
    /// Whether it is one of MPI.
    pub is_mpi: bool,
    /// Number of ranks; 0 unknown.
    pub size: u32,
    /// Process of each rank that is recorded.
    pub ranks: BTreeMap<u32, ProcessId>,
    /// How it was created.
    pub state: CommunicatorState,
    /// When ranks released it.
    pub released: BTreeMap<u32, Nanos>,
}

/// What a process's communicator number stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    pub(super) communicator: u32,
    pub(super) rank: u32,
    /// Its calls take no part.
    pub(super) is_ignored: bool,
}

impl Collectives {
    /// A communicator was created, released or first seen.
    pub fn communicator(&mut self, found: &Communicator) {
        let own = pack(found.process.0, found.number);
        if found.state == CommunicatorState::Released {
            self.released(own, found.at);
            return;
        }
        // The same fact again.
        if self.locals.contains_key(&own) {
            return;
        }
        let known = found
            .identity
            .and_then(|identity| self.by_identity.get(&identity).copied());
        let index = match known {
            Some(index) => index,
            None if self.communicators.len() >= MAX_COMMUNICATORS => return,
            None => {
                let index = self.communicators.len() as u32;
                self.communicators.push(CommunicatorRow {
                    number: index,
                    identity: found.identity,
                    is_known: found.identity.is_some() && found.rank.is_some() && found.size.is_some(),
                    is_mpi: found.is_mpi,
                    size: found.size.unwrap_or(0),
                    state: found.state,
                    ..CommunicatorRow::default()
                });
                if let Some(identity) = found.identity {
                    self.by_identity.insert(identity, index);
                }
                index
            }
        };
        let row = &mut self.communicators[index as usize];
        let mut local = Local {
            communicator: index,
            rank: found.rank.unwrap_or(0),
            is_ignored: false,
        };
        let problem = if !row.is_known || found.rank.is_none() {
            local.is_ignored = true;
            Some(Problem::Unknown {
                communicator: index,
                process: found.process,
            })
        } else if found.size != Some(row.size) || local.rank >= row.size.min(MAX_RANKS) {
            local.is_ignored = true;
            Some(Problem::Size {
                communicator: index,
                process: found.process,
            })
        } else if let Entry::Vacant(place) = row.ranks.entry(local.rank) {
            place.insert(found.process);
            None
        } else {
            local.is_ignored = true;
            Some(Problem::Twice {
                communicator: index,
                rank: local.rank,
                process: found.process,
            })
        };
        self.locals.insert(own, local);
        if found.is_ambiguous && matches!(problem, Some(Problem::Twice { .. } | Problem::Size { .. })) {
            self.give_up(index);
        }
        if let Some(problem) = problem {
            self.problem(problem);
        }
    }

    /// Ranks of several jobs have a communicator of the same identity: nobody knows whose they are, so nothing of it is
    /// matched.
    fn give_up(&mut self, communicator: u32) {
        for local in self
            .locals
            .values_mut()
            .filter(|local| local.communicator == communicator)
        {
            local.is_ignored = true;
        }
        if let Some(row) = self.communicators.get_mut(communicator as usize) {
            row.is_known = false;
        }
        let open = self.open.keys().filter(|key| key.communicator == communicator);
        for key in open.copied().collect::<Vec<_>>() {
            if let Some(collective) = self.open.remove(&key) {
                self.unmatched += collective.parts.len() as u64;
                self.forget(&collective);
            }
        }
        self.unmatched += self.messages.forget(communicator);
        let is_other = |collective: &Collective| collective.key.communicator != communicator;
        self.operations.retain(|key, _| key.0 != communicator);
        self.recent.retain(|(collective, _)| is_other(collective));
        if let Some(done) = &mut self.done {
            done.retain(|(collective, _)| is_other(collective));
        }
    }

    fn released(&mut self, own: u64, at: Nanos) {
        let Some(local) = self.locals.get(&own).copied().filter(|local| !local.is_ignored) else {
            return;
        };
        if let Some(row) = self.communicators.get_mut(local.communicator as usize) {
            row.released.insert(local.rank, at);
        }
    }
}
