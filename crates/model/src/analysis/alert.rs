//! Alerts: what is worth a look, how bad it is, and where to look.

use crate::LaneKey;
use roctop_trace::item::{KernelId, Nanos, OperationId, ProcessId, Span};

/// Why something is worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Records were lost.
    Lost,
    /// Calls returned errors.
    Failed,
    /// Something has been open for long.
    Hang,
    /// A GPU was idle for most of the time.
    Idle,
    /// A GPU had a long gap.
    Gap,
    /// A thread waited for the GPU.
    Sync,
    /// The GPU waited for launches.
    Launch,
    /// Most kernels are short.
    Short,
    /// A kernel had calls that took much longer than the others.
    Outlier,
    /// Large copies were slow.
    SlowCopy,
}

impl Rule {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Failed => "failed",
            Self::Hang => "hang",
            Self::Idle => "idle",
            Self::Gap => "gap",
            Self::Sync => "sync",
            Self::Launch => "launch-bound",
            Self::Short => "short kernels",
            Self::Outlier => "outlier",
            Self::SlowCopy => "slow copy",
        }
    }

    /// Whether something went wrong, not only slowly.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Lost | Self::Failed | Self::Hang)
    }
}

/// Where to look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Evidence {
    /// A slice.
    Slice(LaneKey, Nanos),
    /// A stretch of a lane.
    Stretch(LaneKey, Span),
    /// A kernel.
    Kernel(KernelId),
    /// An operation.
    Operation(OperationId),
    /// A route of copies: its place in the snapshot's.
    Route(u32),
    /// A process.
    Process(ProcessId),
    /// What is open now.
    Open,
}

/// Something worth a look.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// Why.
    pub rule: Rule,
    /// The id of what it is about, by rule: process, operation, agent, thread, kernel or route. With the rule it is the
    /// same from one look to the next.
    pub about: u32,
    /// What is the case, in a line.
    pub text: String,
    /// What it means, and beyond which threshold it is told.
    pub why: String,
    /// The part of the stretch that it concerns, or how bad it is within its rule: for the order.
    pub weight: f64,
    /// Where to look.
    pub evidence: Evidence,
}
