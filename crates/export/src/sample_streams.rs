//! Counter values, PC samples and gauges. There may be more of them than of records, so they are sorted on disk too, by
//! process.

use super::sort::{Entry, Iter, Sorted, Sorter};
use super::workspace::Workspace;
use roctop_source::sysfs::{self, Metric};
use roctop_trace::item::{CounterId, CounterInstances, CounterValue, Nanos, Process, ProcessId};
use roctop_trace::pc_sampling;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::iter::Peekable;

/// Memory for each kind while it is collected, bytes.
const SORT_BUFFER_BYTES: usize = 16 << 20;

/// An entry that belongs to a process.
pub(super) trait Owned: Entry {
    /// Its process; entries are sorted by it first.
    fn process(&self) -> ProcessId;
}

macro_rules! owned {
    ($($(#[$doc:meta])* $Name:ident($Inner:ty) by $order:expr => $Order:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Serialize, Deserialize)]
            pub(super) struct $Name(pub(super) $Inner);

            impl Entry for $Name {
                type Key = (ProcessId, $Order);
                fn key(&self) -> Self::Key {
                    let order: fn(&$Inner) -> $Order = $order;
                    (self.0.process, order(&self.0))
                }
            }

            impl Owned for $Name {
                fn process(&self) -> ProcessId {
                    self.0.process
                }
            }
        )*
    };
}

owned! {
    /// A counter value of a dispatch.
    Value(CounterValue) by |one| (one.dispatch.unwrap_or(0), one.counter) => (u64, CounterId);
    /// Instance values of a dispatch.
    Instances(CounterInstances) by |one| (one.dispatch, one.counter, one.first) => (u64, CounterId, u16);
    /// A device-wide counter value.
    Reading(CounterValue) by |one| (one.counter, one.at) => (CounterId, Nanos);
    /// A PC sample.
    Sampled(pc_sampling::Sample) by |one| (one.dispatch, one.at) => (u64, Nanos);
    /// A gauge reading of a process.
    Gauge(Point) by Point::place => (u32, u32, u16, Nanos);
}

/// A gauge reading.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    /// Its process; the first for a whole GPU.
    process: ProcessId,
    /// The machine.
    pub(super) machine: u32,
    /// Topology node of the GPU.
    pub(super) node: u32,
    /// Process that it is about; 0 for the whole GPU.
    pub(super) pid: u32,
    metric: u16,
    /// Time.
    pub(super) at: Nanos,
    /// Value.
    pub(super) value: f64,
}

impl Point {
    /// Its metric.
    pub(super) const fn metric(&self) -> Metric {
        Metric(self.metric)
    }

    const fn place(&self) -> (u32, u32, u16, Nanos) {
        (self.node, self.pid, self.metric, self.at)
    }
}

impl Entry for Point {
    type Key = (u32, u32, u16, Nanos);

    fn key(&self) -> Self::Key {
        self.place()
    }
}

/// All sorted streams.
#[derive(Default)]
pub(crate) struct Measured {
    values: Sorted<Value>,
    instances: Sorted<Instances>,
    readings: Sorted<Reading>,
    samples: Sorted<Sampled>,
    /// Gauges of processes.
    gauges: Sorted<Gauge>,
    /// Gauges of whole GPUs.
    pub(super) whole: Sorted<Point>,
}

/// Collects the streams.
pub(super) struct StreamCollector {
    values: Sorter<Value>,
    instances: Sorter<Instances>,
    readings: Sorter<Reading>,
    samples: Sorter<Sampled>,
    gauges: Sorter<Point>,
    place: Workspace,
}

impl StreamCollector {
    pub(super) fn new(place: &Workspace) -> Self {
        Self {
            values: Sorter::new(place, SORT_BUFFER_BYTES),
            instances: Sorter::new(place, SORT_BUFFER_BYTES),
            readings: Sorter::new(place, SORT_BUFFER_BYTES),
            samples: Sorter::new(place, SORT_BUFFER_BYTES),
            gauges: Sorter::new(place, SORT_BUFFER_BYTES),
            place: place.clone(),
        }
    }

    pub(super) fn value(&mut self, value: CounterValue) -> io::Result<()> {
        match value.dispatch {
            Some(_) => self.values.put(Value(value)),
            None => self.readings.put(Reading(value)),
        }
    }

    pub(super) fn instances(&mut self, values: CounterInstances) -> io::Result<()> {
        self.instances.put(Instances(values))
    }

    pub(super) fn sample(&mut self, sample: pc_sampling::Sample) -> io::Result<()> {
        self.samples.put(Sampled(sample))
    }

    /// Adds the numbers among a sample's readings.
    pub(super) fn gauges(&mut self, sample: &sysfs::Sample) -> io::Result<()> {
        for (metric, reading) in &sample.readings {
            // A recording may contain impossible values.
            if let Ok(value) = reading
                && value.is_finite()
            {
                self.gauges.put(Point {
                    process: ProcessId(0),
                    machine: sample.machine,
                    node: sample.node,
                    pid: sample.pid.unwrap_or(0),
                    metric: metric.0,
                    at: sample.at,
                    value: *value,
                })?;
            }
        }
        Ok(())
    }

    /// The sorted streams; gauges are assigned to processes by pid.
    pub(super) fn finish(self, processes: &[Process]) -> io::Result<Measured> {
        let mut owners: HashMap<(u32, u32), Vec<ProcessId>> = HashMap::new();
        for process in processes.iter().filter(|process| process.pid != 0) {
            owners
                .entry((process.machine, process.pid))
                .or_default()
                .push(process.id);
        }
        let (mut own, mut whole) = (
            Sorter::new(&self.place, SORT_BUFFER_BYTES),
            Sorter::new(&self.place, SORT_BUFFER_BYTES),
        );
        for point in self.gauges.finish()?.iter() {
            let point = point?;
            if point.pid == 0 {
                whole.put(point)?;
                continue;
            }
            for process in owners.get(&(point.machine, point.pid)).into_iter().flatten() {
                let process = *process;
                own.put(Gauge(Point { process, ..point }))?;
            }
        }
        Ok(Measured {
            values: self.values.finish()?,
            instances: self.instances.finish()?,
            readings: self.readings.finish()?,
            samples: self.samples.finish()?,
            gauges: own.finish()?,
            whole: whole.finish()?,
        })
    }
}

/// Iterates over the streams, process by process.
pub(super) struct Walk<'a> {
    pub(super) values: Own<'a, Value>,
    pub(super) instances: Own<'a, Instances>,
    pub(super) readings: Own<'a, Reading>,
    pub(super) samples: Own<'a, Sampled>,
    pub(super) gauges: Own<'a, Gauge>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(measured: &'a Measured) -> Self {
        Self {
            values: Own::new(&measured.values),
            instances: Own::new(&measured.instances),
            readings: Own::new(&measured.readings),
            samples: Own::new(&measured.samples),
            gauges: Own::new(&measured.gauges),
        }
    }
}

/// Entries of one kind, process by process.
pub(super) struct Own<'a, T: Entry>(Peekable<Iter<'a, T>>);

impl<'a, T: Owned> Own<'a, T> {
    fn new(sorted: &'a Sorted<T>) -> Self {
        Self(sorted.iter().peekable())
    }

    /// Whether a process has an entry; entries of earlier processes are skipped.
    pub(super) fn has(&mut self, process: ProcessId) -> bool {
        let is_before = |entry: &io::Result<T>| entry.as_ref().is_ok_and(|entry| entry.process() < process);
        while self.0.next_if(is_before).is_some() {}
        self.0.peek().is_some_and(|entry| is_of(entry, process))
    }

    /// Entries of a process.
    pub(super) fn of(&mut self, process: ProcessId) -> impl Iterator<Item = io::Result<T>> {
        self.has(process);
        std::iter::from_fn(move || self.0.next_if(|entry| is_of(entry, process)))
    }
}

/// Whether an entry belongs to a process, or is an error to be returned.
fn is_of<T: Owned>(entry: &io::Result<T>, process: ProcessId) -> bool {
    entry.as_ref().map_or(true, |entry| entry.process() == process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::workspace;

    fn value(process: u32, dispatch: Option<u64>, at: Nanos) -> CounterValue {
        CounterValue {
            process: ProcessId(process),
            dispatch,
            at,
            ..CounterValue::default()
        }
    }

    #[test]
    fn streams_are_read_by_process() {
        let mut measuring = StreamCollector::new(&workspace(2));
        for (process, dispatch) in [(2, 9), (0, 5), (2, 3), (7, 1)] {
            measuring.value(value(process, Some(dispatch), 0)).unwrap();
        }
        measuring.value(value(2, None, 40)).unwrap();
        measuring.value(value(2, None, 30)).unwrap();
        let gauge = |pid, value| sysfs::Sample {
            pid,
            at: 1,
            readings: vec![(Metric::BUSY, Ok(value)), (Metric::FAN, Err(sysfs::Absent::NoFile))],
            ..sysfs::Sample::default()
        };
        for (pid, value) in [(None, 1.0), (Some(70), 2.0), (Some(71), 3.0), (None, f64::NAN)] {
            measuring.gauges(&gauge(pid, value)).unwrap();
        }
        let process = |id, pid| Process {
            id: ProcessId(id),
            pid,
            ..Process::default()
        };
        let measured = measuring.finish(&[process(0, 60), process(2, 70)]).unwrap();
        let mut walk = Walk::new(&measured);
        let mut of = |process| {
            let process = ProcessId(process);
            assert!(walk.values.has(process) && walk.values.has(process));
            let values = walk.values.of(process).map(|one| one.unwrap().0.dispatch.unwrap());
            let readings = walk.readings.of(process).map(|one| one.unwrap().0.at);
            let gauges = walk.gauges.of(process).map(|one| one.unwrap().0.value);
            (
                values.collect::<Vec<_>>(),
                readings.collect::<Vec<_>>(),
                gauges.collect::<Vec<_>>(),
            )
        };
        assert_eq!(of(2), (vec![3, 9], vec![30, 40], vec![2.0]));
        assert_eq!(of(7), (vec![1], vec![], vec![]));
        let whole: Vec<f64> = measured.whole.iter().map(|one| one.unwrap().value).collect();
        assert_eq!(whole, [1.0]);
    }
}
