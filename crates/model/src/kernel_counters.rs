//! Hardware counters of a kernel: means, and metrics derived from them.

use super::Snapshot;
use super::gauges::{Gauges, Range};
use super::snapshot::KernelRow;
use crate::derived::{METRICS, Machine, Metric};
use roctop_trace::gauge::Scope;
use roctop_trace::item::{AgentKind, KernelId};

impl Gauges {
    /// Names of dispatch counters, each once, in order of appearance.
    pub fn dispatch_counters(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let rows = self.counters.iter().filter(|row| row.counter.scope == Scope::Dispatch);
        for row in rows {
            if !names.contains(&&*row.counter.name) {
                names.push(&row.counter.name);
            }
        }
        names
    }

    /// Values of a counter over a kernel's dispatches on all GPUs; `None` without values.
    pub fn of_kernel(&self, kernel: KernelId, counter: &str) -> Option<Range> {
        let rows = self.counters.iter().filter(|row| *row.counter.name == *counter);
        let found = rows.filter_map(|row| row.kernels.iter().find(|one| one.0 == kernel));
        found.map(|one| one.1).reduce(|mut all, one| {
            all.merge(&one);
            all
        })
    }
}

/// Hardware parameters of a kernel's first GPU.
fn machine(snap: &Snapshot, row: &KernelRow) -> Machine {
    let gpus = snap.names.agents().iter();
    let gpu = gpus
        .filter(|agent| agent.kind == AgentKind::Gpu)
        .find(|agent| !agent.name.is_empty());
    let mut machine = gpu.map_or_else(Machine::default, |gpu| {
        Machine::of(&gpu.name, gpu.compute_units, gpu.wave_size)
    });
    let device = gpu.and_then(|gpu| snap.device_of(gpu));
    machine.peak_bandwidth = device.and_then(|device| device.now.memory_peak.clone().ok());
    machine.seconds = row
        .numbers
        .stat
        .average()
        .map_or(f64::NAN, |average| average as f64 / 1e9);
    machine
}

/// A derived metric of a kernel, or the missing counters.
pub fn metric(snap: &Snapshot, row: &KernelRow, metric: &Metric) -> Result<f64, Vec<&'static str>> {
    let value = |name: &str| snap.values.gauges.of_kernel(row.id, name)?.average();
    metric.value(&value, &machine(snap, row))
}

/// A kernel's mean of a counter, or its derived metric; `None` if it was not counted.
pub fn value(snap: &Snapshot, row: &KernelRow, name: &str) -> Option<f64> {
    match Metric::named(name) {
        Some(found) => metric(snap, row, found).ok(),
        None => snap.values.gauges.of_kernel(row.id, name)?.average(),
    }
}

/// Columns for kernels: dispatch counters, then the metrics that can be derived from them.
pub fn columns(snap: &Snapshot) -> Vec<&str> {
    let mut names = snap.values.gauges.dispatch_counters();
    let counted = names.clone();
    let possible = METRICS.iter().filter(|metric| {
        let mut needed = metric.counters.iter();
        needed.all(|counter| counted.contains(counter))
    });
    names.extend(possible.map(|metric| metric.key));
    names
}
