//! What the driver told of the GPUs, and counters of whole GPUs, as rows of numbers.

use super::csv::Lines;
use super::view::View;
use crate::gauges::{Metric, Sample, Unit};
use crate::item::{CounterId, CounterInfo};
use std::collections::BTreeMap;
use std::io::{self, Write};

const COLUMNS: &str = "Timestamp,Agent_Id,Process_Id,Gauge,Value,Unit";

/// Samples that belong to a process's files: those about itself, and those of whole GPUs with the first process's.
pub(super) fn samples<'a>(view: &'a View<'a>) -> impl Iterator<Item = &'a Sample> {
    let (pid, is_first) = (view.process.pid, view.process.id.0 == 0);
    let belongs = move |sample: &&Sample| sample.pid.map_or(is_first, |own| own == pid) && view.is_wanted_at(sample.at);
    view.run.gauges.iter().filter(belongs)
}

/// Is there anything of this kind?
pub(super) fn is_any(view: &View<'_>) -> bool {
    let own = view.process.id;
    let mut values = view.run.counter_values.iter();
    samples(view).next().is_some()
        || values.any(|value| value.process == own && value.dispatch.is_none() && view.is_wanted_at(value.at))
}

/// `gauges.csv`: a row for each number; Process_Id is 0 for a whole GPU.
pub(super) fn csv(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = Lines::new(out, COLUMNS)?;
    for sample in samples(view) {
        for (metric, reading) in &sample.readings {
            let Ok(value) = reading else { continue };
            lines.number(sample.at).text(&view.node_label(sample.node));
            lines.number(sample.pid.unwrap_or(0)).text(metric.key());
            lines.raw(&value.to_string()).text(metric.unit().sign()).end()?;
        }
    }
    for (info, points) in counted(view) {
        for (at, rate) in points {
            lines.number(at).text(&view.node_label(view.node(Some(info.agent))));
            lines
                .number(0u32)
                .text(&info.name)
                .raw(&rate.to_string())
                .text(PER_SECOND)
                .end()?;
        }
    }
    Ok(())
}

/// The unit of a counter of a whole GPU.
const PER_SECOND: &str = "/s";

/// A counter's growth a second, by the time of the reading that ends each interval.
pub(super) type Growth = Vec<(u64, f64)>;

/// Counters of whole GPUs.
pub(super) fn counted<'a>(view: &View<'a>) -> Vec<(&'a CounterInfo, Growth)> {
    let own = view.process.id;
    let mut readings: BTreeMap<CounterId, Growth> = BTreeMap::new();
    let values = view.run.counter_values.iter();
    for value in values.filter(|value| value.process == own && value.dispatch.is_none()) {
        readings.entry(value.counter).or_default().push((value.at, value.value));
    }
    let growth = |(counter, mut points): (CounterId, Growth)| {
        let infos = &view.run.counters;
        let info = infos.iter().find(|info| info.process == own && info.id == counter)?;
        points.sort_by_key(|point| point.0);
        let pairs = points.windows(2).filter_map(|pair| match pair {
            [(from, before), (to, after)] if to > from && view.is_wanted_at(*to) => {
                Some((*to, (after - before).max(0.0) * 1e9 / (to - from) as f64))
            }
            _ => None,
        });
        Some((info, pairs.collect()))
    };
    readings.into_iter().filter_map(growth).collect()
}

/// The name of such a counter's track.
pub(super) fn counter_track(view: &View<'_>, info: &CounterInfo) -> String {
    format!(
        "GPU [{}] {} ({PER_SECOND})",
        view.logical(view.node(Some(info.agent))),
        info.name
    )
}

/// `"gauges":[…]`: for each GPU and metric the times and values.
pub(super) fn json(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "[")?;
    let told = series(view)
        .into_iter()
        .map(|((node, pid, metric), points)| (node, pid, metric.key().to_owned(), metric.unit().sign(), points));
    let counted = counted(view).into_iter();
    let counted = counted.map(|(info, points)| {
        let node = view.node(Some(info.agent));
        (node, 0, info.name.to_string(), PER_SECOND, points)
    });
    for (number, (node, pid, name, unit, points)) in told.chain(counted).enumerate() {
        let comma = if number == 0 { "" } else { "," };
        write!(
            out,
            "{comma}\n{{\"node_id\":{node},\"pid\":{pid},\"name\":{},\"unit\":\"{unit}\",\"samples\":[",
            super::json::text(&name)
        )?;
        for (place, (at, value)) in points.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(out, "{comma}[{at},{value}]")?;
        }
        write!(out, "]}}")?;
    }
    write!(out, "]")
}

/// Numbers over time, by node, process (0 for a whole GPU) and metric.
pub(super) type Series = BTreeMap<(u32, u32, Metric), Vec<(u64, f64)>>;

/// All numbers by what they are of.
pub(super) fn series(view: &View<'_>) -> Series {
    let mut series = Series::new();
    for sample in samples(view) {
        for (metric, reading) in &sample.readings {
            if let Ok(value) = reading {
                let key = (sample.node, sample.pid.unwrap_or(0), *metric);
                series.entry(key).or_default().push((sample.at, *value));
            }
        }
    }
    series
}

/// The name of a metric's track.
pub(super) fn track_name(view: &View<'_>, node: u32, pid: u32, metric: Metric) -> String {
    let unit = match metric.unit() {
        Unit::Bits | Unit::Count => String::new(),
        unit => format!(" ({})", unit.sign()),
    };
    let of = if pid == 0 { String::new() } else { format!(" PID {pid}") };
    format!("GPU [{}]{of} {}{unit}", view.logical(node), metric.title())
}
