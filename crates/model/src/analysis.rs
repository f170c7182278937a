//! What an engineer would compute from the records: who was busy, who idle and why, what stands out. Pure: from a
//! snapshot, over a stretch of time whose slices are all kept.

pub mod alert;
pub mod change;
pub mod host;
pub mod overhead;
pub mod overlap;
mod period;
pub mod rules;
pub mod steps;
pub mod usage;

use std::sync::OnceLock;

pub use self::alert::{Alert, Evidence, Rule};
pub use self::overlap::Overlap;
pub use self::period::Period;
pub use self::steps::{Source, Steps};
pub use self::usage::{Gap, Usage};

use super::Snapshot;
use roctop_trace::item::Span;

/// Slices of all GPUs, or calls of all threads, that are looked through at a time.
pub const MOST_SLICES: usize = 60_000;

/// When something is worth a look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// A GPU that is idle for more than this share of the time.
    pub idle: f64,
    /// Idle for longer than this is a gap that counts, ns.
    pub gap: u64,
    /// A gap that is told one by one, ns.
    pub long_gap: u64,
    /// A thread that waits for the GPU for more than this share of the time.
    pub sync: f64,
    /// A kernel that is shorter is short, ns.
    pub short: u64,
    /// More than this share of all dispatches is short.
    pub shorts: f64,
    /// The longest call of a kernel is so many times its median.
    pub outlier: f64,
    /// A GPU that waits for the next launch for more than this share of the time.
    pub launch: f64,
    /// A route whose copies of 1 MiB and more are slower on the average, bytes/s.
    pub slow_copy: f64,
    /// What is open for longer may hang, ns.
    pub hang: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            idle: 0.5,
            gap: 1_000_000,
            long_gap: 20_000_000,
            sync: 0.25,
            short: 10_000,
            shorts: 0.5,
            outlier: 8.0,
            launch: 0.2,
            slow_copy: 5e9,
            hang: 2_000_000_000,
        }
    }
}

/// All of it, for the stretch that could be looked at.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// The stretch: the window, or its younger part when there is too much in it.
    pub stretch: Span,
    /// By GPU that had work.
    pub usage: Vec<Usage>,
    /// What of the copies was hidden under kernels, by route in the order of the snapshot's copies.
    pub overlaps: Vec<Overlap>,
    /// What is worth a look, the worst first.
    pub alerts: Vec<Alert>,
}

/// Kinds of steps that are kept once they were looked at.
const KINDS: usize = 8;

/// What costs more than the values themselves: made when it is first asked for.
#[derive(Debug, Default)]
pub struct Cached {
    analysis: OnceLock<Analysis>,
    sources: OnceLock<Vec<Source>>,
    steps: [OnceLock<Steps>; KINDS],
}

impl Analysis {
    /// Looks at the window of a snapshot.
    pub fn of(snap: &Snapshot) -> Self {
        let window = Span {
            begin: snap.now.saturating_sub(snap.values.window),
            end: snap.now,
        };
        let stretch = usage::kept(snap, window, MOST_SLICES);
        let usage = usage::usage(snap, stretch, snap.thresholds.gap);
        let alerts = rules::alerts(snap, stretch, &usage);
        Self {
            stretch,
            overlaps: overlap::overlaps(snap, stretch, &usage),
            usage,
            alerts,
        }
    }
}

impl Snapshot {
    /// What is worth knowing of the last while; made once for the values that are on screen.
    pub fn analysis(&self) -> &Analysis {
        self.values.analysis.analysis.get_or_init(|| Analysis::of(self))
    }

    /// All that can be taken as a step, the likeliest first.
    pub fn step_sources(&self) -> &[Source] {
        let sources = self.values.analysis.sources.get_or_init(|| steps::sources(self));
        &sources[..sources.len().min(KINDS)]
    }

    /// The steps of one of the sources, counted round.
    pub fn steps(&self, number: usize) -> Option<&Steps> {
        let sources = self.step_sources();
        let at = number.checked_rem(sources.len())?;
        let made = || steps::steps(self, &sources[at]);
        Some(self.values.analysis.steps[at].get_or_init(made))
    }
}
