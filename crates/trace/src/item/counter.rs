//! Hardware counters: what they are, and their values of dispatches.

use super::{AgentId, CounterId, Nanos, ProcessId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A hardware counter of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterInfo {
    /// Dense id: one for a name on a node of the driver's topology.
    pub id: CounterId,
    /// Whose counter.
    pub process: ProcessId,
    /// Of which agent.
    pub agent: AgentId,
    /// Name.
    pub name: Arc<str>,
    /// What it counts.
    pub description: Arc<str>,
    /// The block of the GPU that counts; empty when it is computed.
    pub block: Arc<str>,
    /// How it is computed; empty when it is counted.
    pub expression: Arc<str>,
    /// Dimensions, as `DIMENSION_INSTANCE[0:15]`.
    pub dimensions: Arc<str>,
    /// Bits of [`roctop_ring::record::counter_flag`].
    pub flags: u16,
    /// The pass in which it is collected, from 1; 0 when it is only listed.
    pub pass: u16,
    /// The library's own id.
    pub handle: u64,
}

/// A value of a hardware counter, all instances added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterValue {
    /// Whose.
    pub process: ProcessId,
    /// Which counter.
    pub counter: CounterId,
    /// Of which agent.
    pub agent: AgentId,
    /// Of which dispatch of the process; none for the whole agent since the counting began.
    pub dispatch: Option<u64>,
    /// When the whole agent was read; 0 for a dispatch.
    pub at: Nanos,
    /// The value.
    pub value: f64,
}

/// Values of a counter's instances that follow each other, over one dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterInstances {
    /// Whose.
    pub process: ProcessId,
    /// Which counter.
    pub counter: CounterId,
    /// Of which dispatch of the process.
    pub dispatch: u64,
    /// The first of these instances, numbered through all dimensions, the first dimension fastest.
    pub first: u16,
    /// How many there are, up to four.
    pub count: u8,
    /// Their values.
    pub values: [f64; 4],
}

impl CounterInstances {
    /// Each instance with its value.
    pub fn each(&self) -> impl Iterator<Item = (u16, f64)> {
        let values = (0..).zip(self.values).take(usize::from(self.count));
        values.map(|(place, value)| (self.first.saturating_add(place), value))
    }
}
