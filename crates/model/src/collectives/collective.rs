//! A collective or a message, and the ranks' parts in it.

use super::{Times, Wait};
use roctop_trace::item::{Communication, Nanos, Span};

/// Identifies a collective or a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Index of the communicator.
    pub communicator: u32,
    /// Number in the communicator, from 1; of a message, among those of its sender to its receiver.
    pub sequence: u32,
    /// Sender and receiver of a message.
    pub pair: Option<(u32, u32)>,
}

/// A rank's part in a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Rank in the communicator.
    pub rank: u32,
    /// Its call.
    pub call: Communication,
    /// When the call returned; `None` if it has not.
    pub returned: Option<Nanos>,
    /// Begin of its first and end of its last kernel.
    pub kernel: Option<Span>,
    /// Its wait for others, once the collective is complete.
    pub wait: Wait,
    /// Its group has ended with this call; 0 if it is in no group.
    pub(super) group_end: u64,
    /// Whether a kernel is still expected.
    pub(super) awaits_kernel: bool,
    /// It is among the arrivals.
    pub(super) is_counted: bool,
}

impl Part {
    /// Whether all that is expected of it is known. Calls run ahead of the GPU, and records of kernels and of calls come from
    /// different rings: that no kernel has come says nothing.
    pub(super) fn is_complete(&self) -> bool {
        self.returned.is_some() && (self.kernel.is_some() || !self.awaits_kernel)
    }
}

/// A collective or a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collective {
    /// Which one.
    pub key: Key,
    /// Number of ranks that take part.
    pub size: u32,
    /// The parts that came, by rank; of a message, the sender's and the receiver's.
    pub parts: Vec<Part>,
    /// What the ranks passed was compared.
    pub(super) is_checked: bool,
}

impl Collective {
    /// The part that came last; of MPI, the one that another one waited for longest. `None` if that is within the clocks'
    /// error.
    pub fn latest(&self, times: &Times) -> Option<&Part> {
        let longest = self.parts.iter().max_by_key(|part| part.wait.nanos)?;
        let rank = longest.wait.rank.filter(|_| times.is_significant())?;
        match self.key.pair {
            Some(_) => self.parts.get(times.latest),
            None => self.parts.iter().find(|part| part.rank == rank),
        }
    }

    /// Whether it is a message of MPI.
    pub fn is_message_of_mpi(&self) -> bool {
        self.parts.iter().any(|part| part.call.operation.is_message())
    }

    /// Whether all ranks' calls have returned.
    pub(super) fn has_returned(&self) -> bool {
        self.parts.len() == self.size as usize && self.parts.iter().all(|part| part.returned.is_some())
    }
}

/// A part of a collective: by rank, and of a message by its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartKey {
    pub(super) key: Key,
    pub(super) rank: u32,
    pub(super) is_receiver: bool,
}

/// From the first begin to the last end.
pub(super) fn joined(one: Span, other: Span) -> Span {
    Span {
        begin: one.begin.min(other.begin),
        end: one.end.max(other.end),
    }
}
