//! A reading of how long a thread had run, as the Linux kernel counts it.

use crate::item::Nanos;

/// One reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadReading {
    /// Thread id.
    pub tid: u32,
    /// Whether the thread ran or was ready; `None` if unknown.
    pub is_running: Option<bool>,
    /// Time of the reading.
    pub at: Nanos,
    /// Time on a CPU so far, ns.
    pub running: u64,
    /// Time in a run queue so far, ns.
    pub ready: u64,
}
