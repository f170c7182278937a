//! Driver readings of the GPUs, and device-wide counters, as rows of numbers.

use super::sample_streams::{Gauge, Point, Reading, Walk};
use super::scope::Scope;
use super::sort::{Entry, Sorted, Sorter};
use roctop_source::sysfs::Unit;
use roctop_trace::item::{CounterId, CounterInfo, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// Memory for each kind while it is sorted, bytes.
const SORT_BUFFER_BYTES: usize = 16 << 20;
/// Unit of a device-wide counter.
pub(super) const PER_SECOND: &str = "/s";

/// Growth per second of a counter, at the reading that ends the interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Rate {
    pub(super) counter: CounterId,
    pub(super) at: Nanos,
    pub(super) value: f64,
}

impl Entry for Rate {
    type Key = (CounterId, Nanos);

    fn key(&self) -> Self::Key {
        (self.counter, self.at)
    }
}

/// Readings in a process's files: those of the process, and, for the first process of a machine, those of whole GPUs.
#[derive(Default)]
pub(super) struct Gauges<'a> {
    /// Sorted by GPU, process, gauge and time.
    pub(super) points: Sorted<Point>,
    /// Sorted by counter and time.
    pub(super) rates: Sorted<Rate>,
    pub(super) counters: BTreeMap<CounterId, &'a CounterInfo>,
}

/// Subject of a sequence of numbers.
pub(super) struct Series {
    pub(super) node: u32,
    /// Pid; 0 for a whole GPU.
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) unit: &'static str,
    /// Name of its track.
    pub(super) track: String,
}

impl<'a> Gauges<'a> {
    /// Readings at selected times. `whole` has those of whole GPUs, if this process's files contain them.
    pub(super) fn new(scope: &Scope<'a>, walk: &mut Walk<'_>, whole: Option<&Sorted<Point>>) -> io::Result<Self> {
        let own = scope.process.id;
        let (mut points, mut rates) = (
            Sorter::new(scope.place, SORT_BUFFER_BYTES),
            Sorter::new(scope.place, SORT_BUFFER_BYTES),
        );
        for point in whole.into_iter().flat_map(Sorted::iter) {
            let point = point?;
            if point.machine == scope.process.machine && scope.is_wanted_at(point.at) {
                points.put(point)?;
            }
        }
        for gauge in walk.gauges.of(own) {
            let Gauge(point) = gauge?;
            if scope.is_wanted_at(point.at) {
                points.put(point)?;
            }
        }
        let mut before: Option<(CounterId, Nanos, f64)> = None;
        for reading in walk.readings.of(own) {
            let Reading(reading) = reading?;
            let counter = reading.counter;
            let now = (counter, reading.at, reading.value);
            let Some((_, at, value)) = before.replace(now).filter(|before| before.0 == counter) else {
                continue;
            };
            let rate = (reading.value - value).max(0.0) * 1e9 / reading.at.saturating_sub(at) as f64;
            // Two readings at one time make no interval.
            if rate.is_finite() && reading.at > at && scope.is_wanted_at(reading.at) {
                rates.put(Rate {
                    counter,
                    at: reading.at,
                    value: rate,
                })?;
            }
        }
        let counters = scope.run.counters.iter().filter(|info| info.process == own);
        Ok(Self {
            points: points.finish()?,
            rates: rates.finish()?,
            counters: counters.map(|info| (info.id, info)).collect(),
        })
    }

    /// Whether there are no readings.
    pub(super) const fn is_empty(&self) -> bool {
        self.points.is_empty() && self.rates.is_empty()
    }

    /// Each number with its time, and its series whenever that changes.
    pub(super) fn each(
        &self,
        scope: &Scope<'_>,
        act: &mut dyn FnMut(Option<Series>, Nanos, f64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut last = None;
        for point in self.points.iter() {
            let point = point?;
            let of = (point.node, point.pid, point.metric());
            let series = (last.replace(of) != Some(of)).then(|| series_of(scope, &point));
            act(series, point.at, point.value)?;
        }
        let mut last = None;
        for rate in self.rates.iter() {
            let rate = rate?;
            let Some(info) = self.counters.get(&rate.counter) else {
                continue;
            };
            let is_new = last.replace(rate.counter) != Some(rate.counter);
            act(is_new.then(|| series_of_counter(scope, info)), rate.at, rate.value)?;
        }
        Ok(())
    }
}

fn series_of(scope: &Scope<'_>, point: &Point) -> Series {
    let (node, pid, metric) = (point.node, point.pid, point.metric());
    let unit = match metric.unit() {
        Unit::Bits | Unit::Count => String::new(),
        unit => format!(" ({})", unit.sign()),
    };
    let of = if pid == 0 { String::new() } else { format!(" PID {pid}") };
    Series {
        node,
        pid,
        name: metric.key().to_owned(),
        unit: metric.unit().sign(),
        track: format!("GPU [{}]{of} {}{unit}", scope.logical(node), metric.title()),
    }
}

fn series_of_counter(scope: &Scope<'_>, info: &CounterInfo) -> Series {
    let node = scope.node(Some(info.agent));
    Series {
        node,
        pid: 0,
        name: info.name.to_string(),
        unit: PER_SECOND,
        track: format!("GPU [{}] {} ({PER_SECOND})", scope.logical(node), info.name),
    }
}
