//! Analysis of a snapshot over a time span whose slices are all kept: busy and idle time with reasons, and alerts.
//! Pure.

pub mod alert;
pub mod alert_log;
pub mod busy;
pub mod change;
pub mod collectives;
pub mod host;
pub mod overhead;
pub mod overlap;
pub(crate) mod period;
pub mod placement;
pub mod rules;
pub mod steps;
pub mod usage;
pub mod verdict;

use std::sync::{Arc, OnceLock};

pub use self::alert::{Alert, Evidence, Rule};
pub use self::alert_log::LoggedAlert;
pub use self::busy::Busy;
pub use self::overlap::Overlap;
pub use self::period::Period;
pub use self::steps::{Source, Steps};
pub use self::usage::{Gap, Usage};
pub use self::verdict::{Cause, Verdict};

use super::snapshot::{Mode, Snapshot};
use roctop_trace::item::Span;

/// Maximum number of slices of all GPUs, or of calls of all threads, per analysis.
pub const MAX_SLICES: usize = 60_000;

/// Thresholds of the alerts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Idle share of a GPU.
    pub idle: f64,
    /// Minimum idle time that counts as a gap, ns.
    pub gap: u64,
    /// Length of a gap that gets its own alert, ns.
    pub long_gap: u64,
    /// Share of time in which a thread waits for the GPU.
    pub sync: f64,
    /// Duration below which a kernel is short, ns.
    pub short: u64,
    /// Share of short kernels among all dispatches.
    pub shorts: f64,
    /// Ratio of a kernel's maximum to its median.
    pub outlier: f64,
    /// Share of time in which a GPU waits for the next launch.
    pub launch: f64,
    /// Mean bandwidth of copies of 1 MiB and more, below which they are slow, bytes/s.
    pub slow_copy: f64,
    /// Age of open work that may hang, ns.
    pub hang: u64,
    /// Time that ranks wait for one that has not called a collective, ns.
    pub absent: u64,
    /// Share of collectives to which one rank comes last.
    pub straggler: f64,
    /// Share of the time of collectives that is skew.
    pub waiting: f64,
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
            absent: 700_000_000,
            straggler: 0.5,
            waiting: 0.2,
        }
    }
}

/// Result of an analysis.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// Analysed span: the window, or its later part if it has too many slices.
    pub stretch: Span,
    /// Use of each GPU that had work, since its first kernel: in a recording over the whole run, else in the window.
    pub usage: Vec<Usage>,
    /// The same over the whole run.
    pub whole: Vec<Usage>,
    /// Copy time hidden under kernels, by route, in the order of the snapshot's copies.
    pub overlaps: Vec<Overlap>,
    /// Alerts, most severe first.
    pub alerts: Vec<Alert>,
    /// These and the ones of earlier analyses.
    pub log: Arc<Vec<LoggedAlert>>,
}

/// Number of step sources whose steps are cached.
const KINDS: usize = 8;

/// Lazily computed analysis, because it costs more than the values.
#[derive(Debug, Default)]
pub struct Cached {
    /// Use of each GPU over the whole run, if slices do not show it.
    idle: Vec<Usage>,
    /// Maximum number of slices, if it is not [`MAX_SLICES`].
    most: Option<usize>,
    analysis: OnceLock<Analysis>,
    sources: OnceLock<Vec<Source>>,
    steps: [OnceLock<Steps>; KINDS],
    busy: [OnceLock<Vec<Busy>>; KINDS],
}

impl Analysis {
    /// Analyses the window of a snapshot.
    pub fn of(snap: &Snapshot) -> Self {
        let window = Span {
            begin: snap.now.saturating_sub(snap.values.window),
            end: snap.now,
        };
        let stretch = usage::kept(snap, window, snap.values.analysis.most.unwrap_or(MAX_SLICES));
        let end = usage::usage(snap, stretch, snap.thresholds.gap);
        let overlaps = overlap::overlaps(snap, stretch, &end);
        let whole = usage::whole(&snap.values.analysis.idle, &end);
        let usage = match snap.mode {
            Mode::Live => end,
            Mode::Replay => whole.clone(),
        };
        let alerts = rules::alerts(snap, stretch, &usage);
        Self {
            stretch,
            overlaps,
            usage,
            whole,
            log: alert_log::after(&snap.values.alert_log, &alerts, snap.now),
            alerts,
        }
    }
}

impl Cached {
    /// Nothing is computed yet.
    pub(crate) fn new(idle: Vec<Usage>) -> Self {
        Self {
            idle,
            ..Self::default()
        }
    }

    /// For a stretch of time that somebody asks for: all of its slices that are kept.
    pub(crate) fn of_all() -> Self {
        Self {
            most: Some(usize::MAX / 2),
            ..Self::default()
        }
    }

    /// The log of alerts, if the analysis was computed.
    pub(crate) fn log(&self) -> Option<&Arc<Vec<LoggedAlert>>> {
        self.analysis.get().map(|analysis| &analysis.log)
    }
}

impl Snapshot {
    /// The analysis, computed once per set of values.
    pub fn analysis(&self) -> &Analysis {
        self.values.analysis.analysis.get_or_init(|| Analysis::of(self))
    }

    /// Possible sources of steps, most likely first.
    pub fn step_sources(&self) -> &[Source] {
        let sources = self.values.analysis.sources.get_or_init(|| steps::sources(self));
        &sources[..sources.len().min(KINDS)]
    }

    /// Steps of source `number`, modulo the number of sources.
    pub fn steps(&self, number: usize) -> Option<&Steps> {
        let sources = self.step_sources();
        let at = number.checked_rem(sources.len())?;
        let made = || steps::steps(self, &sources[at]);
        Some(self.values.analysis.steps[at].get_or_init(made))
    }

    /// How busy the GPUs were in each of these steps.
    pub fn busy_in_steps(&self, number: usize) -> &[Busy] {
        let (kinds, steps) = (self.step_sources().len(), self.steps(number));
        let Some((at, steps)) = number.checked_rem(kinds).zip(steps) else {
            return &[];
        };
        let spans = || steps.steps.iter().map(|step| step.span).collect::<Vec<_>>();
        self.values.analysis.busy[at].get_or_init(|| busy::of_spans(self, &spans()))
    }
}
