//! Ids, dense over a session, and time.

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $Name:ident)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
            pub struct $Name(pub u32);
        )*
    };
}

ids! {
    /// A traced process, dense from 0 in order of appearance.
    ProcessId
    /// A thread of any process, dense over the session.
    ThreadId
    /// An agent of any process, dense over the session.
    AgentId
    /// A queue of any process, dense over the session.
    QueueId
    /// A stream of any process, dense over the session.
    StreamId
    /// A kernel: (mangled name, LDS size, registers), the same in every process that loads it, dense over the session.
    KernelId
    /// An API operation: (domain, name), dense over the session.
    OperationId
    /// A marker's text, dense over the session.
    TextId
    /// A hardware counter of an agent, dense over the session.
    CounterId
}

/// A node of a machine's driver topology. It identifies an agent across processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId {
    /// The machine: 0 in a live session. Recordings that are read together have one number per boot.
    pub machine: u32,
    /// The driver's node number.
    pub node: u32,
}

/// Nanoseconds of CLOCK_BOOTTIME.
pub type Nanos = u64;

/// A time span; `end` is not before `begin` unless the record is flagged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Begin, inclusive.
    pub begin: Nanos,
    /// End, exclusive.
    pub end: Nanos,
}

impl Span {
    /// Length in ns; 0 for a reversed span.
    pub const fn duration(self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Whether a record of this span belongs to this stretch of time: it ended in it. What ended at its begin belongs to the one
    /// before.
    pub const fn has_end_of(self, record: Self) -> bool {
        record.end > self.begin && record.end <= self.end
    }
}
