//! Gauges and counters as data: a device's readings, a counter's values.
//!
//! The reader of the driver's files and the decoder fill these types and send them to the store as
//! [`crate::item::Item::Device`], [`crate::item::Item::Counter`] and [`crate::item::Item::Count`]. Screen and exports
//! use nothing else.

pub mod device;
pub mod metric;
pub mod throttle;

use std::sync::Arc;

use crate::id::{KernelId, Nanos, NodeId};

/// A value, or the reason why there is none: shown as `–` with the reason.
pub type Reading<T> = Result<T, Arc<str>>;

/// Reason of a reading that was not attempted.
pub const NOT_READ: &str = "not read";

/// A reading that was not attempted.
pub fn not_read<T>() -> Reading<T> {
    Err(NOT_READ.into())
}

/// A process that has memory on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Process name, empty if unknown.
    pub name: Arc<str>,
    /// Bytes of device memory that it has allocated.
    pub memory: Reading<u64>,
}

/// Readings of one GPU at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Topology node.
    pub node: NodeId,
    /// Number among the machine's GPUs, from 0.
    pub number: u32,
    /// Instruction set (`gfx942`), empty if unknown.
    pub name: Arc<str>,
    /// Product name, empty if unknown.
    pub product: Arc<str>,
    /// PCI address (`0000:03:00.0`), empty if unknown.
    pub location: Arc<str>,
    /// Time of the readings.
    pub at: Nanos,
    /// Share of time in which the GPU was busy, 0 to 1, as averaged by the driver.
    pub busy: Reading<f64>,
    /// Share of time in which the memory controller was busy, 0 to 1.
    pub memory_busy: Reading<f64>,
    /// Peak memory bandwidth, bytes/s.
    pub memory_peak: Reading<f64>,
    /// Memory in use, bytes.
    pub memory_used: Reading<u64>,
    /// Memory size, bytes.
    pub memory_total: Reading<u64>,
    /// Power, W.
    pub power: Reading<f64>,
    /// Power limit, W.
    pub power_cap: Reading<f64>,
    /// Edge temperature, °C.
    pub edge: Reading<f64>,
    /// Junction (hottest spot) temperature, °C.
    pub junction: Reading<f64>,
    /// Memory temperature, °C.
    pub memory_temperature: Reading<f64>,
    /// Shader clock, MHz.
    pub shader_clock: Reading<f64>,
    /// Memory clock, MHz.
    pub memory_clock: Reading<f64>,
    /// Fabric clock, MHz.
    pub fabric_clock: Reading<f64>,
    /// Throttle reasons (`none`, `power`, `thermal`).
    pub throttle: Reading<Arc<str>>,
    /// Link to the host (`PCIe 5.0 x16`).
    pub link: Reading<Arc<str>>,
    /// Peak bandwidth of the link to the host in one direction, bytes/s.
    pub link_peak: Reading<f64>,
    /// Traffic over links to other GPUs, bytes/s.
    pub xgmi: Reading<f64>,
    /// Errors of the xGMI links since roctop began to read them.
    pub xgmi_errors: Reading<f64>,
    /// Traffic of the network ports that are counted at it, bytes/s.
    pub network: Reading<f64>,
    /// Errors of these since roctop began to read them.
    pub network_errors: Reading<f64>,
    /// Share of time in which each partition was busy, 0 to 1; empty if the GPU is not partitioned.
    pub partitions: Vec<Reading<f64>>,
    /// Processes that have memory on it.
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
            xgmi_errors: not_read(),
            network: not_read(),
            network_errors: not_read(),
            partitions: Vec::new(),
            holders: Vec::new(),
        }
    }
}

/// What a counter's value covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// A device, over time.
    #[default]
    Device,
    /// One dispatch.
    Dispatch,
}

/// A counter; sent again when its state changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Dense id of a counter on a device.
    pub id: u32,
    /// Name (`MfmaUtil`).
    pub name: Arc<str>,
    /// Unit, empty for a number of events.
    pub unit: Arc<str>,
    /// Node of its device; `None` for a counter over all devices.
    pub node: Option<NodeId>,
    /// What a value covers.
    pub scope: Scope,
    /// How it is read (`device`, `kernel`), empty if unknown.
    pub source: Arc<str>,
    /// `Ok` if it counts, else why not.
    pub state: Reading<()>,
    /// How counting changes the program (`SERIALIZED`), empty if it does not.
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

/// One value of a counter, as shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// Counter id.
    pub counter: u32,
    /// End of the interval or of the dispatch.
    pub at: Nanos,
    /// Value, in the counter's unit.
    pub value: f64,
    /// Kernel, for a counter that counts dispatches.
    pub kernel: Option<KernelId>,
}
