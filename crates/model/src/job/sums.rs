//! What a rank hands over about once a second.

use crate::analysis::Rule;
use roctop_trace::item::{CollectiveOperation, LossReason, Nanos, Span};
use serde::{Deserialize, Serialize};

/// Maximum number of kernels with separate sums.
pub(super) const MAX_KERNELS: usize = 6;
/// Maximum number of arrivals of all communicators.
pub const MAX_ARRIVALS: usize = 24;
/// Maximum number of communicators: those with the most arrivals.
pub(super) const MAX_COMMUNICATORS: usize = 4;
/// Maximum number of open alerts.
pub(super) const MAX_ALERTS: usize = 2;
/// Maximum length of an alert, or of what a rank does now, bytes.
pub(super) const MAX_TEXT: usize = 96;
/// Maximum length of a kernel's name, bytes.
pub(super) const MAX_NAME: usize = 120;

/// Sums of a rank for a window of about one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankSums {
    /// Rank in the job.
    pub rank: u32,
    /// Number of ranks; 0 unknown.
    pub size: u32,
    /// Rank among those of its node.
    pub local: u32,
    /// Process id in its own PID namespace.
    pub pid: u32,
    /// Number of the GPU that had the most work, among those of its machine; `None` before the first work.
    pub gpu: Option<u32>,
    /// Begin of the window, CLOCK_BOOTTIME ns of the rank's machine.
    pub begin: Nanos,
    /// Length of the window, ns.
    pub length: u64,
    /// Steps that ended in the window; `None` if no steps were found.
    pub steps: Option<StepSums>,
    /// Time with at least one kernel, ns; the mean over its GPUs if it has several.
    pub busy: u64,
    /// Sum of the durations of kernels, ns.
    pub kernel_time: u64,
    /// Time with copies, ns: the sum over the routes.
    pub copying: u64,
    /// Number of collectives that ended.
    pub collectives: u32,
    /// Sum of their times, ns, waits included: wait and transfer are separate where all ranks are known.
    pub inside: u64,
    /// The part of `inside` that is also in `kernel_time`, ns.
    pub inside_kernels: u64,
    /// Time in calls of MPI, the sum of its threads, ns.
    pub mpi: u64,
    /// The kernels with the most time, longest first.
    pub kernels: Vec<KernelSums>,
    /// The communicators with the most arrivals.
    pub communicators: Vec<CommunicatorPart>,
    /// Readings of its GPU.
    pub gauges: Option<Readings>,
    /// What its thread with the most calls did; `None` if it was not read.
    pub host: Option<HostSums>,
    /// Open alerts, most severe first.
    pub alerts: Vec<AlertSums>,
    /// Records lost so far, by reason.
    pub lost: Vec<(LossReason, u64)>,
    /// What it does now, if that has lasted longer than a second: `in hipStreamSynchronize for 3.2 s`.
    pub doing: String,
    /// What its thread did before the collective that it came to after the longest time; empty if it called none.
    pub before: String,
    /// How its process ended: exit code, or minus the Unix signal.
    pub exit: Option<i32>,
}

impl RankSums {
    /// The window.
    pub const fn window(&self) -> Span {
        Span {
            begin: self.begin,
            end: self.begin.saturating_add(self.length),
        }
    }

    /// Number of records lost for any reason.
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().fold(0, |sum, loss| sum.saturating_add(loss.1))
    }
}

/// Steps that ended in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSums {
    /// Their number.
    pub count: u32,
    /// Sum of their times, ns.
    pub total: u64,
    /// The longest, ns.
    pub longest: u64,
}

/// A kernel in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSums {
    /// Its name, see [`name_id`].
    pub name: u64,
    /// Number of its launches that ended.
    pub count: u32,
    /// Sum of their durations, ns.
    pub total: u64,
}

/// A rank's part in a communicator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommunicatorPart {
    /// Identity, the same in all ranks.
    pub identity: u64,
    /// Rank in it.
    pub rank: u32,
    /// Number of its ranks.
    pub size: u32,
    /// Number of the last collective that the rank has called.
    pub reached: u32,
    /// What it has called and is not through with.
    pub pending: Option<PendingPart>,
    /// Arrivals of the window, in order: all of them, or those whose number is a multiple of a power of two. All ranks
    /// choose alike, so that those present meet.
    pub arrivals: Vec<ArrivalSums>,
}

/// A collective that a rank has called and that has not ended for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingPart {
    /// Number of the collective.
    pub sequence: u32,
    /// What it called.
    pub operation: CollectiveOperation,
    /// When, CLOCK_BOOTTIME ns of the rank's machine.
    pub since: Nanos,
}

/// An arrival at a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalSums {
    /// Number of the collective.
    pub sequence: u32,
    /// What it called.
    pub operation: CollectiveOperation,
    /// Arrival relative to the begin of the window, ns.
    pub at: i64,
    /// Time until the rank was through, ns.
    pub took: u64,
    /// Whether these are times of its kernel, not of its call.
    pub by_kernel: bool,
}

/// Readings of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Readings {
    /// Power, W.
    pub power: Option<f32>,
    /// Shader clock, MHz.
    pub clock: Option<f32>,
    /// Temperature of the hottest spot, else of the edge, °C.
    pub temperature: Option<f32>,
    /// Memory in use, bytes.
    pub memory: Option<u64>,
    /// Traffic of the network ports that are counted at it, bytes/s.
    pub network: Option<f32>,
    /// Errors of these since roctop began to read them.
    pub network_errors: Option<u64>,
    /// Traffic of its xGMI links, bytes/s.
    pub xgmi: Option<f32>,
    /// Errors of these since roctop began to read them.
    pub xgmi_errors: Option<u64>,
    /// Why the driver throttles it (`power`, `thermal`); empty if it does not, or if that is unknown.
    pub throttle: String,
}

impl Readings {
    /// Traffic, bytes/s, and errors of the network ports.
    pub const fn of_network(&self) -> (Option<f32>, Option<u64>) {
        (self.network, self.network_errors)
    }

    /// The same of the xGMI links.
    pub const fn of_xgmi(&self) -> (Option<f32>, Option<u64>) {
        (self.xgmi, self.xgmi_errors)
    }
}

/// The thread with the most calls, between the first and the last reading in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSums {
    /// Time between the two readings, ns.
    pub length: u64,
    /// On a CPU, ns.
    pub running: u64,
    /// Ready, and waiting for a CPU, ns.
    pub ready: u64,
    /// In calls that wait for the GPU, ns, over the whole window.
    pub blocked: u64,
}

impl HostSums {
    /// Time asleep, ns.
    pub const fn asleep(&self) -> u64 {
        self.length.saturating_sub(self.running).saturating_sub(self.ready)
    }
}

/// An open alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertSums {
    /// The rule.
    pub rule: Rule,
    /// The finding in one line.
    pub text: String,
}

/// Id of a name: the same on all nodes (FNV-1a).
pub fn name_id(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A text of at most `most` bytes.
pub(super) fn cut(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
