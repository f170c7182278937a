//! Devices and counters: latest reading, extremes, and a minute of history by second.

use std::collections::VecDeque;
use std::sync::Arc;

use super::series::Series;
use roctop_trace::gauge::{Count, Counter, Device};
use roctop_trace::item::{KernelId, Nanos};

/// Length of a history, s.
pub const SECONDS: usize = 60;
/// Maximum number of a device or counter; higher ones come from corrupt records.
const MAX_ID: usize = 4096;
/// Maximum number of counters with a series over the whole run.
const MAX_SERIES: usize = 256;
/// Maximum number of kernels with values of a counter.
const MAX_KERNELS: usize = 1024;

/// Last value of each of the last [`SECONDS`] seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// (second, value), oldest first.
    values: VecDeque<(u64, f64)>,
}

impl History {
    /// Adds a value.
    pub fn add(&mut self, at: Nanos, value: f64) {
        let second = at / 1_000_000_000;
        match self.values.back_mut() {
            Some(last) if last.0 == second => last.1 = value,
            Some(last) if last.0 > second => {}
            _ => self.values.push_back((second, value)),
        }
        while self.values.len() > SECONDS {
            self.values.pop_front();
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// A value for each of the last `count` seconds before `now`, oldest first; none where nothing was read.
    pub fn last(&self, now: Nanos, count: usize) -> Vec<Option<f64>> {
        let end = now / 1_000_000_000;
        let at = |second: u64| self.values.iter().find(|known| known.0 == second).map(|known| known.1);
        (0..count as u64)
            .rev()
            .map(|back| end.checked_sub(back).and_then(at))
            .collect()
    }
}

/// Readings of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceRow {
    /// Latest readings.
    pub now: Arc<Device>,
    /// Busy share, as the driver reports it.
    pub busy: History,
    /// Memory in use, bytes.
    pub memory: History,
    /// Power, W.
    pub power: History,
    /// Readings over the whole run, by [`GaugeKind`].
    pub series: [Series; GaugeKind::ALL.len()],
}

/// Gauges that are kept over the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GaugeKind {
    /// Busy share, as the driver reports it.
    Busy,
    /// Memory in use, bytes.
    Memory,
    /// Power, W.
    Power,
    /// Shader clock, MHz.
    Clock,
}

impl GaugeKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Busy, Self::Memory, Self::Power, Self::Clock];
}

/// Number, sum and extremes of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    /// Number of values.
    pub count: u64,
    /// Sum.
    pub total: f64,
    /// Minimum; 0 without values.
    pub min: f64,
    /// Maximum; 0 without values.
    pub max: f64,
}

impl Range {
    fn add(&mut self, value: f64) {
        (self.min, self.max) = if self.count == 0 {
            (value, value)
        } else {
            (self.min.min(value), self.max.max(value))
        };
        self.count += 1;
        self.total += value;
    }

    /// Adds another range.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        (self.min, self.max) = if self.count == 0 {
            (other.min, other.max)
        } else {
            (self.min.min(other.min), self.max.max(other.max))
        };
        self.count += other.count;
        self.total += other.total;
    }

    /// Mean.
    pub fn average(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total / self.count as f64)
    }
}

/// A counter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterRow {
    /// Its description.
    pub counter: Arc<Counter>,
    /// Latest time and value.
    pub now: Option<(Nanos, f64)>,
    /// All values.
    pub range: Range,
    /// Last minute, by second.
    pub history: History,
    /// Over the whole run.
    pub series: Series,
    /// By kernel, for a counter of dispatches.
    pub kernels: Vec<(KernelId, Range)>,
}

/// All devices and counters.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Devices, sorted by number.
    pub devices: Vec<DeviceRow>,
    /// Counters, sorted by id.
    pub counters: Vec<CounterRow>,
}

impl Gauges {
    /// Adds readings of a device.
    pub fn device(&mut self, device: &Arc<Device>) {
        let at = self.devices.iter().position(|row| row.now.node == device.node);
        let at = at.or_else(|| {
            (self.devices.len() < MAX_ID).then(|| {
                let at = self.devices.partition_point(|row| row.now.number <= device.number);
                self.devices.insert(at, DeviceRow::default());
                at
            })
        });
        let Some(row) = at.map(|at| &mut self.devices[at]) else {
            return;
        };
        if let Ok(busy) = device.busy {
            row.busy.add(device.at, busy);
            row.series[GaugeKind::Busy as usize].add(device.at, busy);
        }
        if let Ok(used) = device.memory_used {
            row.memory.add(device.at, used as f64);
            row.series[GaugeKind::Memory as usize].add(device.at, used as f64);
        }
        if let Ok(power) = device.power {
            row.power.add(device.at, power);
            row.series[GaugeKind::Power as usize].add(device.at, power);
        }
        if let Ok(clock) = device.shader_clock {
            row.series[GaugeKind::Clock as usize].add(device.at, clock);
        }
        row.now = device.clone();
    }

    /// Adds a counter, or changes its state.
    pub fn counter(&mut self, counter: &Arc<Counter>) {
        match self.counters.binary_search_by_key(&counter.id, |row| row.counter.id) {
            Ok(at) => self.counters[at].counter = counter.clone(),
            Err(at) if self.counters.len() < MAX_ID => self.counters.insert(
                at,
                CounterRow {
                    counter: counter.clone(),
                    ..CounterRow::default()
                },
            ),
            Err(_) => {}
        }
    }

    /// Adds a value; ignores unknown counters.
    pub fn count(&mut self, count: &Count) {
        let Ok(at) = self.counters.binary_search_by_key(&count.counter, |row| row.counter.id) else {
            return;
        };
        if !count.value.is_finite() {
            return;
        }
        let row = &mut self.counters[at];
        row.now = Some((count.at, count.value));
        row.range.add(count.value);
        row.history.add(count.at, count.value);
        if at < MAX_SERIES {
            row.series.add(count.at, count.value);
        }
        if let Some(kernel) = count.kernel {
            let known = row.kernels.iter().position(|known| known.0 == kernel);
            let at = known.or_else(|| {
                (row.kernels.len() < MAX_KERNELS).then(|| {
                    row.kernels.push((kernel, Range::default()));
                    row.kernels.len() - 1
                })
            });
            if let Some(at) = at {
                row.kernels[at].1.add(count.value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_trace::item::NodeId;

    #[test]
    fn what_was_not_read_leaves_no_trace() {
        let mut gauges = Gauges::default();
        let device = |at, busy| {
            Arc::new(Device {
                node: NodeId { machine: 0, node: 1 },
                at,
                busy,
                ..Device::default()
            })
        };
        gauges.device(&device(1_000_000_000, Ok(0.5)));
        gauges.device(&device(2_000_000_000, Err("no such file".into())));
        gauges.device(&device(3_500_000_000, Ok(0.25)));
        assert_eq!(gauges.devices.len(), 1);
        let row = &gauges.devices[0];
        assert_eq!(row.busy.last(3_900_000_000, 4), [None, Some(0.5), None, Some(0.25)]);
        assert_eq!(row.power.last(3_900_000_000, 1), [None]);
    }

    #[test]
    fn a_counter_keeps_extremes_and_kernels_apart() {
        let mut gauges = Gauges::default();
        let count = |value, kernel| Count {
            counter: 7,
            at: 1_000_000_000,
            value,
            kernel: Some(KernelId(kernel)),
        };
        gauges.count(&count(5.0, 1));
        assert!(gauges.counters.is_empty(), "a value of no known counter");
        gauges.counter(&Arc::new(Counter {
            id: 7,
            ..Counter::default()
        }));
        for (value, kernel) in [(5.0, 1), (f64::NAN, 1), (1.0, 2), (9.0, 1)] {
            gauges.count(&count(value, kernel));
        }
        let row = &gauges.counters[0];
        assert_eq!((row.range.count, row.range.min, row.range.max), (3, 1.0, 9.0));
        assert_eq!(row.range.average(), Some(5.0));
        let first = row
            .kernels
            .iter()
            .find(|known| known.0 == KernelId(1))
            .map(|known| known.1.average());
        assert_eq!(first, Some(Some(7.0)));
    }
}
