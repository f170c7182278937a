//! Alerts: rule, severity, and evidence.

use crate::LaneKey;
use crate::collectives::Key;
use roctop_trace::item::{KernelId, Nanos, OperationId, ProcessId, Span};
use serde::{Deserialize, Serialize};

/// Rule that raised an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rule {
    /// Records were lost.
    Lost,
    /// Calls returned errors.
    Failed,
    /// Work has been open for a long time.
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
    /// A kernel had launches that took much longer than the others.
    Outlier,
    /// Large copies were slow.
    SlowCopy,
    /// Memory only grows.
    Growth,
    /// Ranks wait for one that has not called a collective.
    Absent,
    /// Ranks called different collectives.
    Mismatch,
    /// One rank mostly comes last.
    Straggler,
    /// The recording is not whole.
    Recording,
    /// A process is placed badly on its node.
    Placement,
}

impl Rule {
    /// Name on the screen.
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
            Self::Growth => "memory grows",
            Self::Absent => "missing rank",
            Self::Mismatch => "mismatch",
            Self::Straggler => "straggler",
            Self::Recording => "recording",
            Self::Placement => "placement",
        }
    }

    /// Whether it reports an error rather than slowness.
    pub const fn is_bad(self) -> bool {
        matches!(
            self,
            Self::Lost | Self::Failed | Self::Hang | Self::Absent | Self::Mismatch | Self::Recording
        )
    }
}

/// Where the evidence is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Evidence {
    /// A slice: lane and begin.
    Slice(LaneKey, Nanos),
    /// A span of a lane.
    Stretch(LaneKey, Span),
    /// A kernel.
    Kernel(KernelId),
    /// An operation.
    Operation(OperationId),
    /// A copy route, by index in the snapshot's copies.
    Route(u32),
    /// A process.
    Process(ProcessId),
    /// The open work.
    Open,
    /// A collective or a message.
    Collective(Key),
    /// The collectives.
    Collectives,
}

/// A finding of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// The rule.
    pub rule: Rule,
    /// Id of the subject, by rule: process, operation, agent, thread, kernel or route. Together with the rule it
    /// identifies the alert across analyses.
    pub about: u32,
    /// The finding in one line.
    pub text: String,
    /// Explanation, with the threshold.
    pub why: String,
    /// Share of the span that it affects, or severity within its rule; for sorting.
    pub weight: f64,
    /// Time that it costs, ms per second; `None` if it costs none or an unknown time.
    pub cost: Option<f64>,
    /// Where the evidence is.
    pub evidence: Evidence,
}

impl Alert {
    /// The same in every analysis that finds it.
    pub fn identity(&self) -> u64 {
        (self.rule as u64) << 32 | u64::from(self.about)
    }
}
