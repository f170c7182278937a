//! What all data is named and dated by: ids, dense over a session, and its time.

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
    /// A kernel: (mangled name, LDS size, registers), whichever process loaded it, dense over the session.
    KernelId
    /// An API operation: (domain, name), dense over the session.
    OperationId
    /// A marker's text, dense over the session.
    TextId
    /// A hardware counter of an agent, dense over the session.
    CounterId
}

/// A node of a machine's driver topology: what is the same agent for every process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId {
    /// The machine: 0 while a program runs. Recordings that are read together have one number for each boot.
    pub machine: u32,
    /// The driver's own number.
    pub node: u32,
}

/// Nanoseconds of CLOCK_BOOTTIME.
pub type Nanos = u64;

/// A span of time; `end` is not before `begin` unless the record was flagged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// When it began.
    pub begin: Nanos,
    /// When it ended.
    pub end: Nanos,
}

impl Span {
    /// Length in nanoseconds; 0 for a swapped span.
    pub const fn duration(self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}
