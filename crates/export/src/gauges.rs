//! What the driver told of the GPUs, and counters of whole GPUs, as rows of numbers.

use super::csv::Lines;
use super::sample_streams::{Gauge, Point, Reading, Walk};
use super::sort::{Entry, Sorted, Sorter};
use super::view::View;
use roctop_source::sysfs::Unit;
use roctop_trace::item::{CounterId, CounterInfo, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Bytes of each kind that are held while they are sorted.
const SORT_BUFFER_BYTES: usize = 16 << 20;
const COLUMNS: &str = "Timestamp,Agent_Id,Process_Id,Gauge,Value,Unit";
/// The unit of a counter of a whole GPU.
const PER_SECOND: &str = "/s";

/// A counter's growth a second, at the reading that ends the interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Rate {
    counter: CounterId,
    at: Nanos,
    value: f64,
}

impl Entry for Rate {
    type Key = (CounterId, Nanos);

    fn key(&self) -> Self::Key {
        (self.counter, self.at)
    }
}

/// A gauge by its time.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Moment(Point);

impl Entry for Moment {
    type Key = (Nanos, u32, u32, u16);

    fn key(&self) -> Self::Key {
        let point = &self.0;
        (point.at, point.node, point.pid, point.metric().0)
    }
}

/// Numbers over time that belong to a process's files: those about itself, and those of whole GPUs with the first
/// process's of their machine.
#[derive(Default)]
pub(super) struct Gauges<'a> {
    /// By GPU, process and gauge, each over time.
    points: Sorted<Point>,
    /// By counter, each over time.
    rates: Sorted<Rate>,
    counters: BTreeMap<CounterId, &'a CounterInfo>,
}

/// What a line of numbers is of.
pub(super) struct Series {
    node: u32,
    /// 0 for a whole GPU.
    pid: u32,
    name: String,
    unit: &'static str,
    /// What its track is called.
    pub(super) track: String,
}

impl<'a> Gauges<'a> {
    /// Those of wanted times; `whole` are those of whole GPUs, when those of its machine are this process's.
    pub(super) fn new(view: &View<'a>, walk: &mut Walk<'_>, whole: Option<&Sorted<Point>>) -> io::Result<Self> {
        let own = view.process.id;
        let (mut points, mut rates) = (
            Sorter::new(view.place, SORT_BUFFER_BYTES),
            Sorter::new(view.place, SORT_BUFFER_BYTES),
        );
        for point in whole.into_iter().flat_map(Sorted::iter) {
            let point = point?;
            if point.machine == view.process.machine && view.is_wanted_at(point.at) {
                points.put(point)?;
            }
        }
        for gauge in walk.gauges.of(own) {
            let Gauge(point) = gauge?;
            if view.is_wanted_at(point.at) {
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
            // Two readings at one moment are no interval.
            if rate.is_finite() && reading.at > at && view.is_wanted_at(reading.at) {
                rates.put(Rate {
                    counter,
                    at: reading.at,
                    value: rate,
                })?;
            }
        }
        let counters = view.run.counters.iter().filter(|info| info.process == own);
        Ok(Self {
            points: points.finish()?,
            rates: rates.finish()?,
            counters: counters.map(|info| (info.id, info)).collect(),
        })
    }

    /// Is there anything of this kind?
    pub(super) const fn is_empty(&self) -> bool {
        self.points.is_empty() && self.rates.is_empty()
    }

    /// Every number with its time, and what it is of where that is another than before.
    pub(super) fn each(
        &self,
        view: &View<'_>,
        act: &mut dyn FnMut(Option<Series>, Nanos, f64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut last = None;
        for point in self.points.iter() {
            let point = point?;
            let of = (point.node, point.pid, point.metric());
            let series = (last.replace(of) != Some(of)).then(|| series_of(view, &point));
            act(series, point.at, point.value)?;
        }
        let mut last = None;
        for rate in self.rates.iter() {
            let rate = rate?;
            let Some(info) = self.counters.get(&rate.counter) else {
                continue;
            };
            let is_new = last.replace(rate.counter) != Some(rate.counter);
            act(is_new.then(|| series_of_counter(view, info)), rate.at, rate.value)?;
        }
        Ok(())
    }
}

fn series_of(view: &View<'_>, point: &Point) -> Series {
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
        track: format!("GPU [{}]{of} {}{unit}", view.logical(node), metric.title()),
    }
}

fn series_of_counter(view: &View<'_>, info: &CounterInfo) -> Series {
    let node = view.node(Some(info.agent));
    Series {
        node,
        pid: 0,
        name: info.name.to_string(),
        unit: PER_SECOND,
        track: format!("GPU [{}] {} ({PER_SECOND})", view.logical(node), info.name),
    }
}

/// `gauges.csv`: a row for each number, counters of whole GPUs last; Process_Id is 0 for a whole GPU.
pub(super) fn csv(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut moments = Sorter::new(view.place, SORT_BUFFER_BYTES);
    for point in view.gauges.points.iter() {
        moments.put(Moment(point?))?;
    }
    let mut lines = Lines::new(out, COLUMNS)?;
    for moment in moments.finish()?.iter() {
        let Moment(point) = moment?;
        lines.number(point.at).text(&view.node_label(point.node));
        lines.number(point.pid).text(point.metric().key());
        let unit = point.metric().unit().sign();
        lines.raw(&point.value.to_string()).text(unit).end()?;
    }
    for rate in view.gauges.rates.iter() {
        let rate = rate?;
        let Some(info) = view.gauges.counters.get(&rate.counter) else {
            continue;
        };
        let node = view.node(Some(info.agent));
        lines.number(rate.at).text(&view.node_label(node)).number(0u32);
        lines.text(&info.name).raw(&rate.value.to_string());
        lines.text(PER_SECOND).end()?;
    }
    Ok(())
}

/// `"gauges":[…]`: for each GPU and metric the times and values.
pub(super) fn json(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "[")?;
    let mut is_first = true;
    view.gauges.each(view, &mut |series, at, value| {
        let Some(series) = series else {
            return write!(out, ",[{at},{value}]");
        };
        let before = if std::mem::take(&mut is_first) { "" } else { "]}," };
        let Series {
            node, pid, name, unit, ..
        } = series;
        let name = super::json::text(&name);
        write!(
            out,
            "{before}\n{{\"node_id\":{node},\"pid\":{pid},\"name\":{name},\"unit\":\"{unit}\",\"samples\":[[{at},{value}]"
        )
    })?;
    write!(out, "{}]", if is_first { "" } else { "]}" })
}
