//! Gauges and counters as data: what a device says of itself, and what a counter counted.
//!
//! Whoever reads them (the driver's files, the collector) fills these and tells the store [`crate::item::Item::Device`],
//! [`crate::item::Item::Counter`] and [`crate::item::Item::Count`]; screen and exports know nothing else of them.

pub mod device;
pub mod metric;
pub mod throttle;

use std::sync::Arc;

use crate::id::{KernelId, Nanos, NodeId};

/// A value, or why there is none: shown as `–` with the reason.
pub type Reading<T> = Result<T, Arc<str>>;

/// The reason of a reading that no one has made.
pub const NOT_READ: &str = "not read";

/// A reading that no one has made.
pub fn not_read<T>() -> Reading<T> {
    Err(NOT_READ.into())
}

/// Memory of a device that a process holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Its name, empty when unknown.
    pub name: Arc<str>,
    /// Bytes of the device's memory.
    pub memory: Reading<u64>,
}

/// What a GPU says of itself at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Where it is.
    pub node: NodeId,
    /// Number among the machine's GPUs, from 0.
    pub number: u32,
    /// Instruction set (`gfx942`), empty when unknown.
    pub name: Arc<str>,
    /// Product name, empty when unknown.
    pub product: Arc<str>,
    /// Where it is plugged (`0000:03:00.0`), empty when unknown.
    pub location: Arc<str>,
    /// When it was asked.
    pub at: Nanos,
    /// Share of time in which it worked, by the driver's own average, 0 to 1.
    pub busy: Reading<f64>,
    /// Share of time in which its memory controller worked, 0 to 1.
    pub memory_busy: Reading<f64>,
    /// The most that its memory carries, bytes/s.
    pub memory_peak: Reading<f64>,
    /// Bytes of its memory in use.
    pub memory_used: Reading<u64>,
    /// Bytes of its memory.
    pub memory_total: Reading<u64>,
    /// Power, W.
    pub power: Reading<f64>,
    /// The most power it may take, W.
    pub power_cap: Reading<f64>,
    /// Temperature at the edge, °C.
    pub edge: Reading<f64>,
    /// Temperature of the hottest junction, °C.
    pub junction: Reading<f64>,
    /// Temperature of its memory, °C.
    pub memory_temperature: Reading<f64>,
    /// Shader clock, MHz.
    pub shader_clock: Reading<f64>,
    /// Memory clock, MHz.
    pub memory_clock: Reading<f64>,
    /// Fabric clock, MHz.
    pub fabric_clock: Reading<f64>,
    /// Why it runs slower than it could (`none`, `power`, `thermal`).
    pub throttle: Reading<Arc<str>>,
    /// Its link to the host (`PCIe 5.0 x16`).
    pub link: Reading<Arc<str>>,
    /// The most that its link to the host carries in one direction, bytes/s.
    pub link_peak: Reading<f64>,
    /// Bytes/s over links to other GPUs.
    pub xgmi: Reading<f64>,
    /// Share of time in which each of its partitions worked; none when it is not partitioned.
    pub partitions: Vec<Reading<f64>>,
    /// Who holds its memory.
    pub holders: Vec<Holder>,
}

impl Default for Device {
    fn default() -> Self {
        Self {
            node: NodeId::default(),
            number: 0,
            name: "".into(),
            product: "".into(),
            location: "".into(),
            at: 0,
            busy: not_read(),
            memory_busy: not_read(),
            memory_peak: not_read(),
            memory_used: not_read(),
            memory_total: not_read(),
            power: not_read(),
            power_cap: not_read(),
            edge: not_read(),
            junction: not_read(),
            memory_temperature: not_read(),
            shader_clock: not_read(),
            memory_clock: not_read(),
            fabric_clock: not_read(),
            throttle: not_read(),
            link: not_read(),
            link_peak: not_read(),
            xgmi: not_read(),
            partitions: Vec::new(),
            holders: Vec::new(),
        }
    }
}

/// What a counter counts over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// A device over time.
    #[default]
    Device,
    /// One dispatch.
    Dispatch,
}

/// A counter: a fact, told again when it changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Dense id: one for a counter on a device.
    pub id: u32,
    /// Its name (`MfmaUtil`).
    pub name: Arc<str>,
    /// Unit, empty when it is a number of events.
    pub unit: Arc<str>,
    /// Where its device is; none when over all.
    pub node: Option<NodeId>,
    /// What it counts over.
    pub scope: Scope,
    /// How it is read (`device`, `kernel`), empty when unknown.
    pub source: Arc<str>,
    /// On, or why not.
    pub state: Reading<()>,
    /// What counting changes in the program (`SERIALIZED`), empty when nothing.
    pub perturbs: Arc<str>,
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            id: 0,
            name: "".into(),
            unit: "".into(),
            node: None,
            scope: Scope::Device,
            source: "".into(),
            state: not_read(),
            perturbs: "".into(),
        }
    }
}

/// One value of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// Which counter.
    pub counter: u32,
    /// When: the end of the interval or of the dispatch.
    pub at: Nanos,
    /// The value.
    pub value: f64,
    /// Of which kernel, for one that counts dispatches.
    pub kernel: Option<KernelId>,
}
