//! `results.json`: the schema `rocprofiler-sdk-tool` of rocprofiler-sdk 1.0.0, whole.
//!
//! Written record by record; numbers of kinds and operations agree with the tables under `strings`, through which
//! readers look names up.

pub(super) mod agent;
mod counted;
pub(super) mod object;
pub(super) mod record;
mod sampled;
pub(super) mod strings;

use super::config;
use super::gauges;
use super::in_flight;
use super::records::Row;
use super::sort::{Entry, Sorted};
use super::stats::{Domain, Total};
use super::view::View;
use roctop_trace::item::Process;
use std::io::{self, Write};
use std::path::Path;

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
        // Beyond upstream's schema, as the next one is.
        write!(out, ",\n\"kernels_in_flight\":")?;
        in_flight::json(view, out)?;
    }
    if !view.gauges.is_empty() {
        // Beyond upstream's schema; its readers pass over keys that they do not know.
        write!(out, ",\n\"gauges\":")?;
        gauges::json(view, out)?;
    }
    writeln!(out, "}}\n]}}")
}

/// What the document says of the run besides its records.
pub(super) struct Head<'a> {
    /// Where the files go, and what their names begin with.
    pub(super) stem: &'a Path,
    /// The command line that was recorded.
    pub(super) command: &'a [String],
    /// Formats that are written.
    pub(super) formats: &'a [super::Format],
    /// Statistics.
    pub(super) domains: &'a [Domain],
}

impl Head<'_> {
    /// The command line of a process.
    pub(super) fn command_of(&self, view: &View<'_>) -> Vec<String> {
        view.process.words(self.command)
    }
}

/// A list, one line an item.
fn list<T>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, "[")?;
    for (number, found) in items.into_iter().enumerate() {
        out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        item(out, found)?;
    }
    write!(out, "]")
}

/// A list of rows, one line each.
fn rows_of<T: Clone>(
    out: &mut dyn Write,
    rows: &Sorted<Row<T>>,
    item: impl Fn(&mut dyn Write, &Row<T>) -> io::Result<()>,
) -> io::Result<()>
where
    Row<T>: Entry,
{
    list(out, rows.iter(), |out, row| item(out, &row?))
}

/// A text with its quotes.
pub(super) fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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

/// The machine, as far as it is known: a recording that was made elsewhere says its host's name alone.
#[derive(Default)]
pub(super) struct System {
    pub(super) machine: String,
    pub(super) name: String,
    pub(super) release: String,
    pub(super) version: String,
    pub(super) hardware: String,
    pub(super) domain: String,
}

impl System {
    pub(super) fn of(process: &Process) -> Self {
        let here = rustix::system::uname();
        let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        if word(here.nodename()) != *process.host {
            return Self {
                name: "Linux".to_owned(),
                ..Self::default()
            };
        }
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        Self {
            machine: machine.trim().to_owned(),
            name: word(here.sysname()),
            release: word(here.release()),
            version: word(here.version()),
            hardware: word(here.machine()),
            domain: std::fs::read_to_string("/proc/sys/kernel/domainname")
                .unwrap_or_default()
                .trim()
                .to_owned(),
        }
    }
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
