//! A collective or a message, and the ranks' parts in it.

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
    /// Its group has ended with this call; 0 if it is in no group.
    pub(super) group_end: u64,
    /// The process has shown kernels of its collectives.
    pub(super) has_kernels: bool,
    /// It is among the arrivals.
    pub(super) is_counted: bool,
}

impl Part {
    /// Whether all that is expected of it is known.
    pub(super) fn is_complete(&self) -> bool {
        self.returned.is_some() && (self.kernel.is_some() || !self.has_kernels)
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
