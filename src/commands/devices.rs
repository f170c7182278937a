//! `roctop devices`: the driver's topology, and what it reports on each GPU now.

use crate::cli;
use crate::clocks::boottime;
use crate::gauge::{device, throttle};
use crate::sysfs::reader::Reader;
use crate::sysfs::{Metric, Sample, Unit};
use crate::topology::{self, Node};
use anyhow::{Result, bail};
use serde_json::{Map, Value};
use std::io::Write;
use std::time::Duration;

/// Between the two readings that rates take.
const APART: Duration = Duration::from_millis(100);

/// Lists the agents of this machine.
pub fn devices(options: &cli::Devices) -> Result<u8> {
    let nodes = topology::read(&options.root);
    if nodes.is_empty() {
        let place = options.root.join(topology::KFD_TOPOLOGY);
        bail!(
            "no agents: {} is not there or holds nothing; is the amdgpu driver loaded?",
            place.display()
        );
    }
    let mut reader = Reader::new(&options.root);
    let mut samples = reader.read(boottime(), &[]);
    if !samples.is_empty() {
        std::thread::sleep(APART);
        samples = reader.read(boottime(), &[]);
    }
    let mut out = std::io::stdout().lock();
    if options.json {
        let all = nodes
            .iter()
            .map(|node| json(node, &samples))
            .collect::<Result<Vec<_>>>()?;
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(0);
    }
    writeln!(
        out,
        "{:>4}  {:4} {:10} {:>5} {:>6} {:>10}  MODEL",
        "NODE", "KIND", "NAME", "CUS", "WAVE", "MEMORY GiB"
    )?;
    for node in &nodes {
        line(node, &mut out)?;
    }
    for sample in &samples {
        writeln!(out)?;
        gauges(sample, options.all, &mut out)?;
    }
    Ok(0)
}

/// The node's facts with its gauges, and why those that are missing are.
fn json(node: &Node, samples: &[Sample]) -> Result<Value> {
    let mut value = serde_json::to_value(node)?;
    if let (Some(object), Some(sample)) = (
        value.as_object_mut(),
        samples.iter().find(|sample| sample.node == node.id),
    ) {
        let (mut known, mut absent) = (Map::new(), Map::new());
        for (metric, reading) in &sample.readings {
            match reading {
                Ok(number) => known.insert(metric.key().into(), (*number).into()),
                Err(why) => absent.insert(metric.key().into(), why.reason().into()),
            };
        }
        object.insert("gauges".into(), known.into());
        object.insert("absent".into(), absent.into());
    }
    Ok(value)
}

fn line(node: &Node, out: &mut dyn Write) -> Result<()> {
    let gpu = node.is_gpu();
    let name = if gpu { node.name() } else { "–".into() };
    let simds = node.property("simd_per_cu").max(1);
    let units = if gpu {
        node.property("simd_count") / simds
    } else {
        node.property("cpu_cores_count")
    };
    let wave = if gpu {
        node.property("wave_front_size").to_string()
    } else {
        "–".into()
    };
    let memory = node.memory as f64 / f64::from(1 << 30);
    let model = if gpu { &node.model } else { &node.cpu_model };
    let kind = if gpu { "GPU" } else { "CPU" };
    writeln!(
        out,
        "{:>4}  {kind:4} {name:10} {units:>5} {wave:>6} {memory:>10.1}  {model}",
        node.id
    )?;
    Ok(())
}

/// One line a gauge; those that are missing with the reason, all of them when wanted.
fn gauges(sample: &Sample, all: bool, out: &mut dyn Write) -> Result<()> {
    let place = device::location(sample.location);
    writeln!(out, "GPU{}  {place}", sample.number)?;
    for (metric, reading) in &sample.readings {
        match reading {
            Ok(value) => writeln!(out, "  {:32} {:>14}", metric.title(), shown(*metric, *value))?,
            Err(why) if all => writeln!(out, "  {:32} {:>14}  {}", metric.title(), "–", why.reason())?,
            Err(_) => {}
        }
    }
    let missing = sample.readings.iter().filter(|one| one.1.is_err()).count();
    if missing > 0 && !all {
        writeln!(out, "  {missing} more are not there; --all says why")?;
    }
    Ok(())
}

fn shown(metric: Metric, value: f64) -> String {
    match metric.unit() {
        Unit::Bits if metric == Metric::THROTTLE => throttle::names(value as u64),
        Unit::Bits => format!("{:#x}", value as u64),
        Unit::Bytes => format!("{:.2} GiB", value / f64::from(1 << 30)),
        Unit::BytesPerSecond => format!("{:.2} GB/s", value / 1e9),
        Unit::Count => format!("{value:.0}"),
        unit => format!("{value:.1} {}", unit.sign()),
    }
}
