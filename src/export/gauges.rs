//! What the driver told of the GPUs, as rows of numbers.

use super::csv::Lines;
use super::view::View;
use crate::gauges::{Metric, Sample, Unit};
use std::collections::BTreeMap;
use std::io::{self, Write};

const COLUMNS: &str = "Timestamp,Agent_Id,Process_Id,Gauge,Value,Unit";

/// Samples that belong to a process's files: those about itself, and those of whole GPUs with the first process's.
pub(super) fn samples<'a>(view: &'a View<'_>) -> impl Iterator<Item = &'a Sample> {
    let (pid, is_first) = (view.process.pid, view.process.id.0 == 0);
    let belongs = move |sample: &&Sample| sample.pid.map_or(is_first, |own| own == pid);
    view.run.gauges.iter().filter(belongs)
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
    Ok(())
}

/// `"gauges":[…]`: for each GPU and metric the times and values.
pub(super) fn json(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "[")?;
    for (number, ((node, pid, metric), points)) in series(view).into_iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        write!(
            out,
            "{comma}\n{{\"node_id\":{node},\"pid\":{pid},\"name\":\"{}\",\"unit\":\"{}\",\"samples\":[",
            metric.key(),
            metric.unit().sign()
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
