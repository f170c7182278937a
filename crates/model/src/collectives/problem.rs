//! What is wrong with the program's collectives, or with what is known of them.

use super::{Collective, Collectives, Key, MAX_PROBLEMS};
use roctop_trace::item::{CollectiveOperation as Operation, Datatype, ProcessId};
use std::collections::BTreeMap;

/// Something wrong with the program's collectives, or with what is known of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Problem {
    /// A rank called another operation than most.
    Operation {
        /// Which collective.
        key: Key,
        /// The rank.
        rank: u32,
        /// What it called.
        called: Operation,
        /// What most called.
        others: Operation,
    },
    /// A rank passed another number of elements.
    Count {
        /// Which collective.
        key: Key,
        /// The operation.
        operation: Operation,
        /// The rank.
        rank: u32,
        /// Its elements.
        count: u64,
        /// Those of most.
        others: u64,
    },
    /// A rank passed another type.
    Type {
        /// Which collective.
        key: Key,
        /// The operation.
        operation: Operation,
        /// The rank.
        rank: u32,
        /// Its type.
        datatype: Datatype,
        /// That of most.
        others: Datatype,
    },
    /// A rank passed another root or reduction.
    Arguments {
        /// Which collective.
        key: Key,
        /// The operation.
        operation: Operation,
        /// The rank.
        rank: u32,
    },
    /// Two processes have the same rank: a recording is there twice.
    Twice {
        /// Index of the communicator.
        communicator: u32,
        /// The rank.
        rank: u32,
        /// The process that is ignored.
        process: ProcessId,
    },
    /// Processes do not agree on the number of ranks.
    Size {
        /// Index of the communicator.
        communicator: u32,
        /// The process that is ignored.
        process: ProcessId,
    },
    /// A call of a communicator whose creation is unknown: it was not recorded, or the handle is garbage.
    Unknown {
        /// Index of the communicator.
        communicator: u32,
        /// The process.
        process: ProcessId,
    },
    /// A rank released its communicator while it waited for others.
    Abandoned {
        /// Which collective.
        key: Key,
        /// The operation.
        operation: Operation,
        /// The rank.
        rank: u32,
    },
}

impl Problem {
    /// Which collective it is about, if it is one.
    pub const fn key(&self) -> Option<Key> {
        match self {
            Self::Operation { key, .. }
            | Self::Count { key, .. }
            | Self::Type { key, .. }
            | Self::Arguments { key, .. }
            | Self::Abandoned { key, .. } => Some(*key),
            Self::Twice { .. } | Self::Size { .. } | Self::Unknown { .. } => None,
        }
    }
}

impl Collectives {
    pub(super) fn problem(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Compares what the ranks passed.
    pub(super) fn check(&mut self, collective: &Collective) {
        let key = collective.key;
        let parts = &collective.parts;
        let is_message = key.pair.is_some();
        let usual_operation = most(parts.iter().map(|part| part.call.operation));
        let usual_count = most(parts.iter().map(|part| part.call.count));
        let usual_type = most(parts.iter().map(|part| part.call.datatype));
        let usual_rest = most(parts.iter().map(|part| (part.call.peer, part.call.reduction)));
        let mut found = Vec::new();
        for part in parts {
            let (rank, call) = (part.rank, &part.call);
            let operation = usual_operation;
            if !is_message && call.operation != usual_operation {
                found.push(Problem::Operation {
                    key,
                    rank,
                    called: call.operation,
                    others: usual_operation,
                });
            } else if call.operation.is_mpi() {
                // Types may differ though their signatures are the same.
            } else if call.count != usual_count {
                found.push(Problem::Count {
                    key,
                    operation,
                    rank,
                    count: call.count,
                    others: usual_count,
                });
            } else if call.datatype != usual_type {
                found.push(Problem::Type {
                    key,
                    operation,
                    rank,
                    datatype: call.datatype,
                    others: usual_type,
                });
            } else if !is_message && (call.peer, call.reduction) != usual_rest {
                found.push(Problem::Arguments { key, operation, rank });
            }
        }
        for problem in found {
            self.problem(problem);
        }
    }
}

/// The most frequent value; of several, the smallest.
pub(super) fn most<T: Copy + Ord + Default>(values: impl Iterator<Item = T>) -> T {
    let mut counts: BTreeMap<T, u32> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let largest = counts
        .into_iter()
        .max_by_key(|(value, count)| (*count, std::cmp::Reverse(*value)));
    largest.map(|(value, _)| value).unwrap_or_default()
}
