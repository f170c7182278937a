//! Hardware counters: descriptions and values.

use super::{AgentId, CounterId, Nanos, ProcessId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A hardware counter of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterInfo {
    /// Dense id of a counter name on a topology node.
    pub id: CounterId,
    /// Process that described it.
    pub process: ProcessId,
    /// Agent that has it.
    pub agent: AgentId,
    /// Name.
    pub name: Arc<str>,
    /// What it counts.
    pub description: Arc<str>,
    /// GPU block that counts; empty for a derived counter.
    pub block: Arc<str>,
    /// Formula of a derived counter; empty for a basic one.
    pub expression: Arc<str>,
    /// Dimensions, as `DIMENSION_INSTANCE[0:15]`.
    pub dimensions: Arc<str>,
    /// Bits of [`roctop_ring::record::counter_flag`].
    pub flags: u16,
    /// Pass in which it is collected, from 1; 0 if it is only listed.
    pub pass: u16,
    /// Counter id of rocprofiler-sdk.
    pub handle: u64,
}

/// Value of a hardware counter, summed over all instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterValue {
    /// Process.
    pub process: ProcessId,
    /// Counter.
    pub counter: CounterId,
    /// Agent.
    pub agent: AgentId,
    /// Dispatch number in the process; `None` for a device-wide value since counting began.
    pub dispatch: Option<u64>,
    /// Time of a device-wide reading; 0 for a dispatch.
    pub at: Nanos,
    /// Value, in the counter's unit.
    pub value: f64,
}

/// Values of consecutive instances of a counter, for one dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterInstances {
    /// Process.
    pub process: ProcessId,
    /// Counter.
    pub counter: CounterId,
    /// Dispatch number in the process.
    pub dispatch: u64,
    /// Number of the first instance, counted through all dimensions, the first dimension fastest.
    pub first: u16,
    /// Number of values, at most four.
    pub count: u8,
    /// The values; only the first `count` are valid.
    pub values: [f64; 4],
}

impl CounterInstances {
    /// Each instance number with its value.
    pub fn each(&self) -> impl Iterator<Item = (u16, f64)> {
        let values = (0..).zip(self.values).take(usize::from(self.count));
        values.map(|(place, value)| (self.first.saturating_add(place), value))
    }
}
