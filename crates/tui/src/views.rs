//! The views, and how much room a terminal has for them.

/// A view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    /// All at a glance.
    #[default]
    Overview,
    /// Lanes of time.
    Timeline,
    /// Kernels.
    Kernels,
    /// Copies.
    Copies,
    /// API calls.
    Api,
    /// Counters.
    Counters,
    /// Devices.
    Devices,
    /// Markers.
    Markers,
    /// Processes.
    Processes,
    /// What the program printed.
    Log,
    /// What is worth a look.
    Alerts,
    /// What is open now.
    Running,
    /// Iterations.
    Steps,
    /// Difference to a baseline.
    Diff,
    /// Memory that is held.
    Memory,
    /// Samples of program counters.
    Samples,
}

impl Tab {
    /// Those of the digits, in order.
    pub const DIGITS: [Self; 10] = [
        Self::Overview,
        Self::Timeline,
        Self::Kernels,
        Self::Copies,
        Self::Api,
        Self::Counters,
        Self::Devices,
        Self::Markers,
        Self::Processes,
        Self::Log,
    ];

    /// All views.
    pub const ALL: [Self; 16] = [
        Self::Overview,
        Self::Timeline,
        Self::Kernels,
        Self::Copies,
        Self::Api,
        Self::Counters,
        Self::Devices,
        Self::Markers,
        Self::Processes,
        Self::Log,
        Self::Alerts,
        Self::Running,
        Self::Steps,
        Self::Diff,
        Self::Memory,
        Self::Samples,
    ];

    /// Its key and name.
    pub const fn title(self) -> (char, &'static str) {
        match self {
            Self::Overview => ('1', "Overview"),
            Self::Timeline => ('2', "Timeline"),
            Self::Kernels => ('3', "Kernels"),
            Self::Copies => ('4', "Copies"),
            Self::Api => ('5', "API"),
            Self::Counters => ('6', "Counters"),
            Self::Devices => ('7', "Devices"),
            Self::Markers => ('8', "Markers"),
            Self::Processes => ('9', "Processes"),
            Self::Log => ('0', "Log"),
            Self::Alerts => ('A', "Alerts"),
            Self::Running => ('W', "Running"),
            Self::Steps => ('I', "Steps"),
            Self::Diff => ('D', "Diff"),
            Self::Memory => ('M', "Memory"),
            Self::Samples => ('C', "Samples"),
        }
    }
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Less than 40×10: a line.
    Tiny,
    /// Less than 80×24.
    Small,
    /// From 80×24.
    Medium,
    /// From 120×36.
    Large,
}

impl Size {
    /// The class of a terminal.
    pub const fn of(width: u16, height: u16) -> Self {
        if width < 40 || height < 10 {
            Self::Tiny
        } else if width < 80 || height < 24 {
            Self::Small
        } else if width < 120 || height < 36 {
            Self::Medium
        } else {
            Self::Large
        }
    }
}
