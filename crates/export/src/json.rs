//! `results.json`: the complete schema `rocprofiler-sdk-tool` of rocprofiler-sdk 1.0.0.
//!
//! It is written record by record. Numbers of kinds and operations are indexes into the tables under `strings`.

pub(super) mod agent;
mod counted;
mod dimensions;
mod gauges;
mod in_flight;
pub(super) mod object;
pub(super) mod record;
mod sampled;
pub(super) mod strings;
pub(super) mod writer;

use self::writer::{list, text};
use super::config;
use super::head::{Head, System};
use super::stats::{Domain, Total};
use super::view::View;
use std::io::{self, Write};

/// Writes the document of one process.
pub(super) fn write(view: &View<'_>, head: &Head<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"rocprofiler-sdk-tool\":[\n{{\"metadata\":")?;
    metadata(view, head, out)?;
    write!(out, ",\n\"agents\":")?;
    list(out, view.nodes.iter().enumerate(), |out, (logical, node)| {
        agent::write(view, logical, node, out)
    })?;
    write!(out, ",\n\"counters\":")?;
    counted::counters(view, out)?;
    write!(out, ",\n\"strings\":")?;
    let tables = strings::Tables::new(view);
    strings::write(view, &tables, out)?;
    write!(out, ",\n\"code_objects\":")?;
    object::code_objects(view, out)?;
    write!(out, ",\n\"kernel_symbols\":")?;
    object::kernel_symbols(view, out)?;
    write!(out, ",\n\"host_functions\":")?;
    object::host_functions(out)?;
    write!(out, ",\n\"summary\":")?;
    summary(head.domains, out)?;
    write!(out, ",\n\"callback_records\":{{\"counter_collection\":")?;
    counted::collection(view, out)?;
    write!(out, "}},\n\"buffer_records\":")?;
    record::write(view, &tables, out)?;
    if !view.rows.in_flight.is_empty() {
        // An addition to upstream's schema, as the next key.
        write!(out, ",\n\"kernels_in_flight\":")?;
        in_flight::write(view, out)?;
    }
    if view.incomplete().next().is_some() {
        // An addition to upstream's schema.
        write!(out, ",\n\"incomplete\":")?;
        list(out, view.incomplete(), |out, text| {
            write!(out, "{}", serde_json::Value::from(text))
        })?;
    }
    if !view.gauges.is_empty() {
        // An addition to upstream's schema; its readers ignore unknown keys.
        write!(out, ",\n\"gauges\":")?;
        gauges::write(view, out)?;
    }
    writeln!(out, "}}\n]}}")
}

fn metadata(view: &View<'_>, head: &Head<'_>, out: &mut dyn Write) -> io::Result<()> {
    let system = System::of(view.process);
    write!(out, "{{\"node\":{{\"id\":0,\"hash\":0")?;
    for (key, value) in [
        ("machine_id", &system.machine),
        ("system_name", &system.name),
        ("hostname", &view.process.host.to_string()),
        ("release", &system.release),
        ("version", &system.version),
        ("hardware_name", &system.hardware),
        ("domain_name", &system.domain),
    ] {
        write!(out, ",\"{key}\":{}", text(value))?;
    }
    let (first, last) = view.times();
    let command = head.command_of(view);
    write!(
        out,
        "}},\"pid\":{},\"init_time\":{first},\"fini_time\":{last}",
        view.process.pid
    )?;
    write!(out, ",\"command\":{}", serde_json::Value::from(command))?;
    write!(out, ",\"config\":")?;
    config::object(&config::entries(view, head), out)?;
    write!(out, "}}")
}

fn summary(domains: &[Domain], out: &mut dyn Write) -> io::Result<()> {
    list(out, domains, |out, domain| {
        write!(out, "{{\"domain\":\"{}\",\"stats\":{{", domain.name)?;
        total(&domain.total(), out)?;
        write!(out, ",\"operations\":")?;
        list(out, &domain.rows, |out, (name, found)| {
            write!(out, "{{\"key\":{},\"value\":{{", text(name))?;
            total(found, out)?;
            write!(out, "}}}}")
        })?;
        write!(out, "}}}}")
    })
}

fn total(total: &Total, out: &mut dyn Write) -> io::Result<()> {
    let Total {
        count,
        sum,
        squares,
        min,
        max,
    } = total;
    let squares = *squares as f64;
    let (mean, deviation, variance) = (total.mean(), total.deviation(), total.variance());
    write!(
        out,
        "\"count\":{count},\"sum\":{sum},\"sqr\":{squares:?},\"min\":{min},\"max\":{max},\"mean\":{mean:?},\
\"stddev\":{deviation:?},\"variance\":{variance:?}"
    )
}
