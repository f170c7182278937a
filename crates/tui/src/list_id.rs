//! The lists on screen: each has a selection and an order of its own, wherever it is shown.

use super::{Size, Tab};

/// A list that can be moved about in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pane {
    /// Kernels, or what they are grouped by.
    #[default]
    Kernels,
    /// Copies by route.
    Routes,
    /// The last copies.
    Transfers,
    /// API calls by operation.
    Operations,
    /// Threads by time in calls.
    Threads,
    /// The last calls.
    Calls,
    /// Counters.
    Counters,
    /// Devices.
    Devices,
    /// When a device was idle.
    Gaps,
    /// Markers.
    Markers,
    /// Processes.
    Processes,
    /// What is worth a look.
    Alerts,
    /// What is open now.
    Running,
    /// Steps.
    Steps,
    /// Differences to the baseline.
    Changes,
    /// Allocations that are not freed.
    Memory,
    /// Instructions at which waves were sampled.
    Samples,
}

impl Pane {
    /// How many there are.
    pub const COUNT: usize = 17;

    /// All of them.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Kernels,
        Self::Routes,
        Self::Transfers,
        Self::Operations,
        Self::Threads,
        Self::Calls,
        Self::Counters,
        Self::Devices,
        Self::Gaps,
        Self::Markers,
        Self::Processes,
        Self::Alerts,
        Self::Running,
        Self::Steps,
        Self::Changes,
        Self::Memory,
        Self::Samples,
    ];

    /// Its word in the names of files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Routes => "copies",
            Self::Transfers => "recent-copies",
            Self::Operations => "api",
            Self::Threads => "threads",
            Self::Calls => "recent-calls",
            Self::Counters => "counters",
            Self::Devices => "devices",
            Self::Gaps => "gaps",
            Self::Markers => "markers",
            Self::Processes => "processes",
            Self::Alerts => "alerts",
            Self::Running => "running",
            Self::Steps => "steps",
            Self::Changes => "changes",
            Self::Memory => "memory",
            Self::Samples => "pc-samples",
        }
    }

    /// The lists of a view that are shown at a size, the first has the focus at first.
    pub const fn of(tab: Tab, size: Size) -> &'static [Self] {
        let small = !matches!(size, Size::Medium | Size::Large);
        let large = matches!(size, Size::Large);
        match tab {
            Tab::Overview if large => &[Self::Kernels, Self::Routes, Self::Operations, Self::Alerts],
            Tab::Overview | Tab::Kernels => &[Self::Kernels],
            Tab::Copies if small => &[Self::Routes],
            Tab::Copies => &[Self::Routes, Self::Transfers],
            Tab::Api if small => &[Self::Operations],
            Tab::Api => &[Self::Operations, Self::Threads, Self::Calls],
            Tab::Counters => &[Self::Counters],
            Tab::Devices if small => &[Self::Devices],
            Tab::Devices => &[Self::Devices, Self::Gaps],
            Tab::Markers => &[Self::Markers],
            Tab::Processes => &[Self::Processes],
            Tab::Alerts => &[Self::Alerts],
            Tab::Running => &[Self::Running],
            Tab::Steps => &[Self::Steps],
            Tab::Diff => &[Self::Changes],
            Tab::Memory => &[Self::Memory],
            Tab::Samples => &[Self::Samples],
            Tab::Timeline | Tab::Log => &[],
        }
    }
}
