//! Summary of a run, as text or JSON.

use super::mpi;
use crate::analysis::collectives as words;
use crate::snapshot::{ApiRow, KernelRow, ProcessRow};
use crate::stats::Stat;
use crate::table::{Certainty, CopyStat};
use crate::{Snapshot, Totals};
use roctop_ring::record::{direction, engine, status};
use roctop_trace::item::{AgentId, Exit, KernelId, QueueId};
use roctop_trace::units;
use roctop_trace::units::elide;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::io::{self, Write};

const MAX_ROWS: usize = 20;
/// Maximum columns of a marker's text.
const MAX_TEXT: usize = 80;

/// Writes aligned tables, largest first. `whole` has the totals before a filter.
pub fn write_table(snapshot: &Snapshot, whole: &Totals, out: &mut dyn Write) -> io::Result<()> {
    let values = &snapshot.values;
    let totals = values.totals;
    let state = match snapshot.ended {
        Some(Exit::Code(code)) => format!("exit {code}"),
        Some(Exit::Signal(signal)) => format!("killed by signal {signal}"),
        Some(Exit::Unknown) => "ended".into(),
        None => "no record of its end".into(),
    };
    writeln!(
        out,
        "roctop: {} ({state}), {} s",
        snapshot.title,
        format_seconds(elapsed(snapshot))
    )?;
    writeln!(
        out,
        "{} dispatches ({} of them the run-time's own), {} copies, {} API calls, {} markers, lost {}",
        totals.dispatches,
        totals.internal,
        totals.copies,
        totals.calls,
        totals.markers,
        totals.lost.text(|records| records.to_string())
    )?;
    if totals.suspect > 0 {
        let text = "kernels and copies have begin and end swapped, or invalid times (these count as untimed)";
        writeln!(out, "  {} {text}", totals.suspect)?;
    }
    if let Some(text) = snapshot.launches_without_path() {
        writeln!(out, "  {text}")?;
    }
    for row in &values.processes {
        for (reason, lost) in row.losses() {
            let of = if reason.is_of_recording() {
                "recording".into()
            } else {
                format!("process {}", row.process.pid)
            };
            let lost = lost.text(|records| records.to_string());
            writeln!(out, "  {of}: lost {lost} ({})", reason.phrase())?;
        }
        for text in &row.incomplete {
            writeln!(out, "  process {}: incomplete: {text}", row.process.pid)?;
        }
    }
    for row in &values.processes {
        if let Some((_, text)) = &row.level {
            writeln!(out, "  process {}: {text}", row.process.pid)?;
        }
    }
    for (text, pids) in notes(snapshot) {
        let more = match pids.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        writeln!(out, "  process {}{more}: {text}", pids[0])?;
    }
    if totals.records() == 0 && whole.records() > 0 {
        return writeln!(
            out,
            "nothing passes the filter, of {} dispatches, {} copies, {} API calls and {} markers",
            whole.dispatches, whole.copies, whole.calls, whole.markers
        );
    }
    // Of a process without a ring, only its end is known.
    if totals.records() == 0 && values.processes.iter().any(|row| !row.process.exe.is_empty()) {
        return writeln!(
            out,
            "no records: nothing happened in this time, or the program made use of neither a ROCm run-time nor ROC-TX"
        );
    }
    if totals.records() == 0 {
        return writeln!(out, "{}", nothing(snapshot));
    }
    kernels(snapshot, whole.kernel_time, out)?;
    copies(snapshot, out)?;
    api(snapshot, out)?;
    mpi::write(snapshot, MAX_ROWS, out)?;
    collectives(snapshot, out)?;
    open(snapshot, out)
}

/// The notes, with the processes that they are about.
fn notes(snapshot: &Snapshot) -> Vec<(&str, Vec<u32>)> {
    let mut notes: Vec<(&str, Vec<u32>)> = Vec::new();
    for said in snapshot.values.said.iter().filter(|said| said.code == status::NOTE) {
        let pid = snapshot.names.process(said.process).map_or(0, |process| process.pid);
        match notes.iter_mut().find(|(text, _)| *text == &*said.text) {
            Some((_, pids)) if pids.contains(&pid) => {}
            Some((_, pids)) => pids.push(pid),
            None => notes.push((&said.text, vec![pid])),
        }
    }
    notes
}

/// Writes the collectives, those with most skew first, and what is wrong with them.
fn collectives(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let found = &snapshot.values.collectives;
    let mut rows: Vec<_> = found.operations.iter().collect();
    rows.sort_by_key(|row| Reverse(row.skew));
    if !rows.is_empty() {
        writeln!(
            out,
            "\n{:>9} {:>12} {:>12} {:>12} {:>12} {:>11}  COLLECTIVE",
            "COUNT", "SKEW us", "MAX us", "CLOCK ±us", "BUSBW GB/s", "LAST RANK"
        )?;
    }
    for row in rows.into_iter().take(MAX_ROWS) {
        let speed = row.bus_bandwidth().map(|rate| format!("{:.3}", rate / 1e9));
        let error = if row.error == u64::MAX {
            "unknown".into()
        } else {
            micros(Some(row.error))
        };
        writeln!(
            out,
            "{:>9} {:>12} {:>12} {error:>12} {:>12} {:>11}  {} of comm {}",
            row.count,
            micros(Some(row.mean_skew())),
            micros(Some(row.max_skew)),
            speed.unwrap_or_else(|| "-".into()),
            words::last(row).unwrap_or_else(|| "-".into()),
            row.operation.name(),
            row.communicator
        )?;
    }
    for waiting in found.waiting.iter().take(MAX_ROWS) {
        writeln!(out, "  {}", words::missing(snapshot, waiting))?;
    }
    for problem in found.problems.iter().take(MAX_ROWS) {
        writeln!(out, "  {}", words::problem(snapshot, problem))?;
    }
    if found.unmatched > 0 {
        writeln!(out, "  {} calls of collectives are not matched", found.unmatched)?;
    }
    Ok(())
}

/// Duration of the run; without records, from the program's start to its end.
fn elapsed(snapshot: &Snapshot) -> u64 {
    let rows = snapshot.values.processes.iter();
    let lives = rows.filter_map(|row| {
        let since = Some(row.process.since).filter(|since| *since > 0)?;
        Some(row.exit?.1.saturating_sub(since))
    });
    let life = lives.max().filter(|_| snapshot.values.totals.records() == 0);
    life.unwrap_or_else(|| snapshot.elapsed())
}

/// Reason why a program without a ring was not recorded.
fn nothing(snapshot: &Snapshot) -> String {
    let why = snapshot.missed.as_deref().unwrap_or(
        "the program used neither a ROCm run-time nor ROC-TX, or the collector was not loaded into it (a cleared environment), or \
         it found no room for its ring: a full tmpfs, 'ulimit -f', or another /dev/shm than roctop's ('roctop doctor' shows more)",
    );
    format!("nothing was recorded: {why}")
}

fn format_seconds(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e9)
}

pub(super) fn micros(nanos: Option<u64>) -> String {
    nanos.map_or_else(|| "-".into(), |nanos| format!("{:.3}", nanos as f64 / 1e3))
}

/// Writes the kernels; `all` is the time of all kernels, whether they pass the filter or not.
fn kernels(snapshot: &Snapshot, all: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut rows: Vec<_> = snapshot
        .values
        .kernels
        .iter()
        .filter(|row| row.numbers.stat.calls > 0)
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|row| Reverse(row.numbers.stat.total));
    writeln!(
        out,
        "\n{:>9} {:>12} {:>6} {:>11} {:>11} {:>11}  KERNEL",
        "CALLS", "TOTAL ms", "% TIME", "AVG us", "MIN us", "MAX us"
    )?;
    for row in rows.iter().take(MAX_ROWS) {
        let stat = &row.numbers.stat;
        let name = snapshot.names.kernel(row.id).map_or("?", |known| &known.kernel.name);
        writeln!(
            out,
            "{:>9} {:>12.3} {:>6.1} {:>11} {:>11} {:>11}  {name}",
            stat.calls,
            stat.total as f64 / 1e6,
            100.0 * stat.total as f64 / all.max(1) as f64,
            micros(stat.average()),
            micros(Some(stat.min)),
            micros(Some(stat.max)),
        )?;
    }
    if rows.len() > MAX_ROWS {
        writeln!(out, "          … {} more", rows.len() - MAX_ROWS)?;
    }
    Ok(())
}

/// Suffix of a copy route: copies made by calls have the calls' times.
fn maker(row: &CopyStat) -> &'static str {
    match row.route.engine {
        engine::CALL => ", by the call",
        engine::BLIT => ", by kernels",
        _ => "",
    }
}

/// `H2D host→GPU0, by kernels`.
pub(crate) fn copy_name(snapshot: &Snapshot, row: &CopyStat) -> String {
    let route = snapshot.names.route_label(row.route.source, row.route.destination);
    format!("{} {route}{}", direction::name(row.route.direction), maker(row))
}

/// Agent of the process that made these copies.
fn copy_agent(snapshot: &Snapshot, row: &CopyStat) -> Option<AgentId> {
    let mut ends = [row.route.destination, row.route.source].into_iter().flatten();
    ends.find(|&end| snapshot.names.gpu_of(end) != end)
}

/// Position of that process among those of the GPU.
fn process_order(snapshot: &Snapshot, row: &CopyStat) -> Option<usize> {
    let agent = copy_agent(snapshot, row)?;
    let members = snapshot.names.members(snapshot.names.gpu_of(agent));
    members.iter().position(|&member| member == agent)
}

/// `r3 4242`: the process that made these copies.
fn copy_process(snapshot: &Snapshot, row: &CopyStat) -> String {
    copy_agent(snapshot, row).map_or_else(String::new, |agent| snapshot.names.agent_process(agent))
}

/// Rows whose numbers are not exact, because nothing says which of their copies pass the filter.
pub fn warnings(snapshot: &Snapshot) -> Vec<String> {
    let rows = snapshot.values.copies.iter();
    let estimated = rows.filter_map(|row| {
        let name = copy_name(snapshot, row);
        match row.certainty {
            Certainty::Exact => None,
            Certainty::Estimate => Some(format!("{name}: the numbers are estimates, from a histogram")),
            Certainty::AtMost => Some(format!(
                "{name}: all copies are counted: which of them pass is not known"
            )),
        }
    });
    estimated.collect()
}

/// Copy routes, sorted by total; independent of reading order.
fn sorted_copies(snapshot: &Snapshot) -> Vec<&CopyStat> {
    let mut rows: Vec<_> = snapshot.values.copies.iter().collect();
    rows.sort_by_key(|row| (Reverse(row.stat.total), row.route));
    rows
}

/// API functions, sorted by total.
fn sorted_api(snapshot: &Snapshot) -> Vec<&ApiRow> {
    let name = |row: &ApiRow| {
        snapshot
            .names
            .operation(row.id)
            .map(|known| known.operation.name.clone())
    };
    let mut rows: Vec<_> = snapshot.values.api.iter().collect();
    rows.sort_by_cached_key(|row| (Reverse(row.stat.total), name(row)));
    rows
}

fn copies(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<_> = sorted_copies(snapshot)
        .into_iter()
        .filter(|row| row.stat.calls > 0)
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:>9} {:>12} {:>14} {:>11} {:>9}  COPY",
        "COUNT", "TOTAL ms", "BYTES", "AVG us", "GB/s"
    )?;
    let sums = &snapshot.values.copy_sums;
    let parts: Vec<u32> = sums.iter().flat_map(|sum| sum.parts.iter().copied()).collect();
    let all = &snapshot.values.copies;
    let alone = rows.into_iter().filter(|row| {
        let mut of_sums = parts.iter().filter_map(|&at| all.get(at as usize));
        of_sums.all(|part| !std::ptr::eq(part, *row))
    });
    let alone = alone.map(|row| (row, copy_name(snapshot, row)));
    // A shared GPU has a row, followed by one per process.
    let shared = sums.iter().flat_map(|sum| {
        let mut parts: Vec<_> = sum.parts.iter().filter_map(|&at| all.get(at as usize)).collect();
        parts.sort_by_cached_key(|row| process_order(snapshot, row));
        let parts = parts
            .into_iter()
            .map(|row| (row, format!("  {}", copy_process(snapshot, row))));
        std::iter::once((&sum.sum, copy_name(snapshot, &sum.sum))).chain(parts)
    });
    for (row, name) in alone.chain(shared) {
        let bytes = row.sizes.total;
        let rate = match row.stat.total {
            _ if !row.has_bytes => "-".into(),
            0 => "0.00".into(),
            nanos => format!("{:.2}", bytes as f64 / nanos as f64),
        };
        writeln!(
            out,
            "{:>9} {:>12.3} {:>14} {:>11} {:>9}  {}",
            format!("{}{}", row.certainty.sign(), row.stat.calls),
            row.stat.total as f64 / 1e6,
            if row.has_bytes { bytes.to_string() } else { "-".into() },
            micros(row.stat.average()),
            rate,
            name,
        )?;
    }
    Ok(())
}

fn api(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<_> = sorted_api(snapshot)
        .into_iter()
        .filter(|row| row.stat.calls > 0)
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:>9} {:>12} {:>11} {:>11} {:>7}  API",
        "CALLS", "TOTAL ms", "AVG us", "MAX us", "ERRORS"
    )?;
    for row in rows.iter().take(MAX_ROWS) {
        let name = snapshot
            .names
            .operation(row.id)
            .map_or("?", |known| &known.operation.name);
        writeln!(
            out,
            "{:>9} {:>12.3} {:>11} {:>11} {:>7}  {name}",
            row.stat.calls,
            row.stat.total as f64 / 1e6,
            micros(row.stat.average()),
            micros(Some(row.stat.max)),
            row.errors
        )?;
    }
    Ok(())
}

/// Writes the work that was open when the program ended.
fn open(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    for row in &snapshot.values.processes {
        let open = &row.open;
        if open.calls.is_empty() && open.ranges.is_empty() && open.dispatches.is_empty() && open.copies == 0 {
            continue;
        }
        writeln!(out, "\nopen in process {}:", row.process.pid)?;
        for call in open.calls.iter().take(MAX_ROWS) {
            let name = snapshot
                .names
                .operation(call.operation)
                .map_or("?", |known| &known.operation.name);
            writeln!(out, "  {name} on {}", snapshot.names.thread_label(call.thread))?;
        }
        for range in open.ranges.iter().take(MAX_ROWS) {
            let text = elide(snapshot.names.text(range.text), MAX_TEXT);
            let since = units::timestamp(range.span.begin.saturating_sub(snapshot.origin));
            writeln!(
                out,
                "  range {text:?} on {}, since {since}",
                snapshot.names.thread_label(range.thread)
            )?;
        }
        // A queue contains the same few kernels repeatedly: one line for each, sorted by oldest dispatch.
        let mut kinds: Vec<((KernelId, QueueId), usize)> = Vec::new();
        for dispatch in &open.dispatches {
            let key = (dispatch.kernel, dispatch.queue);
            match kinds.iter_mut().find(|(known, _)| *known == key) {
                Some((_, count)) => *count += 1,
                None => kinds.push((key, 1)),
            }
        }
        for ((kernel, queue), count) in kinds.iter().take(MAX_ROWS) {
            let name = snapshot.names.kernel(*kernel).map_or("?", |known| &known.kernel.name);
            let times = if *count > 1 {
                format!(", {count} times")
            } else {
                String::new()
            };
            writeln!(out, "  {name} on {}{times}", snapshot.names.queue_label(*queue))?;
        }
        if kinds.len() > MAX_ROWS {
            writeln!(out, "  and {} more kernels", kinds.len() - MAX_ROWS)?;
        }
        if open.copies > 0 {
            let plural = if open.copies == 1 { "copy" } else { "copies" };
            writeln!(out, "  {} {plural}, begun and not seen complete", open.copies)?;
        }
    }
    Ok(())
}

/// A row of the flat tables: kind, name, then calls, total, minimum, mean, maximum, p50, p99 (ns), bytes, errors.
type Flat = (&'static str, String, [Option<u64>; 9]);

fn flat(snapshot: &Snapshot) -> Vec<Flat> {
    let numbers = |stat: &Stat, bytes: Option<u64>, errors: Option<u64>| {
        let timed = stat.timed > 0;
        [
            Some(stat.calls),
            Some(stat.total),
            timed.then_some(stat.min),
            stat.average(),
            timed.then_some(stat.max),
            stat.quantiles.p50,
            stat.quantiles.p99,
            bytes,
            errors,
        ]
    };
    let values = &snapshot.values;
    let mut rows = Vec::new();
    for row in values.kernels.iter().filter(|row| row.numbers.stat.calls > 0) {
        let name = snapshot.names.kernel(row.id).map_or("?", |known| &known.kernel.name);
        rows.push(("kernel", name.to_owned(), numbers(&row.numbers.stat, None, None)));
    }
    for row in sorted_copies(snapshot).into_iter().filter(|row| row.stat.calls > 0) {
        let name = copy_name(snapshot, row);
        let bytes = row.has_bytes.then_some(row.sizes.total);
        rows.push(("copy", name, numbers(&row.stat, bytes, None)));
    }
    for row in sorted_api(snapshot).into_iter().filter(|row| row.stat.calls > 0) {
        let name = snapshot
            .names
            .operation(row.id)
            .map_or("?", |known| &known.operation.name);
        rows.push(("api", name.to_owned(), numbers(&row.stat, None, Some(row.errors))));
    }
    // Sorted by total within each kind.
    rows.sort_by_key(|row| {
        let kind = ["kernel", "copy", "api"].iter().position(|kind| *kind == row.0);
        (kind, Reverse(row.2[1]))
    });
    rows
}

/// Columns of the flat tables; stable.
const COLUMNS: [&str; 11] = [
    "kind",
    "name",
    "calls",
    "total_ns",
    "min_ns",
    "average_ns",
    "max_ns",
    "p50_ns",
    "p99_ns",
    "bytes",
    "errors",
];

/// Writes one CSV table: a row per kernel, copy route and API function. Unknown values are empty.
pub fn write_csv(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    for (kind, name, numbers) in flat(snapshot) {
        let cells = numbers.map(|number| number.map_or(String::new(), |number| number.to_string()));
        writeln!(out, "{kind},\"{}\",{}", name.replace('"', "\"\""), cells.join(","))?;
    }
    Ok(())
}

/// Writes the same rows as a Markdown table.
pub fn write_markdown(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "| {} |", COLUMNS.join(" | "))?;
    writeln!(out, "| --- | --- |{}", " ---: |".repeat(COLUMNS.len() - 2))?;
    for (kind, name, numbers) in flat(snapshot) {
        let cells = numbers.map(|number| number.map_or(String::new(), |number| number.to_string()));
        let name = name.replace('|', "\\|");
        writeln!(out, "| {kind} | `{name}` | {} |", cells.join(" | "))?;
    }
    Ok(())
}

/// The summary as one JSON document: times in ns, sizes in bytes; the schema is stable.
pub fn json(snapshot: &Snapshot) -> Value {
    let (values, totals) = (&snapshot.values, snapshot.values.totals);
    let kernels: Vec<Value> = values.kernels.iter().map(|row| kernel(snapshot, row)).collect();
    let copies: Vec<Value> = sorted_copies(snapshot)
        .into_iter()
        .map(|row| copy(snapshot, row))
        .collect();
    let api: Vec<Value> = sorted_api(snapshot)
        .into_iter()
        .map(|row| operation(snapshot, row))
        .collect();
    let [mpi, functions] = mpi::json(snapshot);
    let processes: Vec<Value> = values.processes.iter().map(|row| process(snapshot, row)).collect();
    let lost: Vec<Value> = values.processes.iter().flat_map(losses).collect();
    json!({
        "schema": 1,
        "command": snapshot.title.to_string(),
        "totals": {
            "dispatches": totals.dispatches, "internal_dispatches": totals.internal, "copies": totals.copies,
            "api_calls": totals.calls, "markers": totals.markers,
            "lost": totals.lost.records, "lost_is_at_least": totals.lost.is_least,
            "suspect_times": totals.suspect,
        },
        "lost_by_reason": lost, "processes": processes, "kernels": kernels, "copies": copies, "api": api, "mpi": mpi,
        "mpi_functions": functions,
    })
}

fn kernel(snapshot: &Snapshot, row: &KernelRow) -> Value {
    let stat = &row.numbers.stat;
    json!({
        "name": snapshot.names.kernel(row.id).map(|known| known.kernel.name.to_string()),
        "calls": stat.calls, "total_ns": stat.total, "min_ns": stat.min, "max_ns": stat.max,
        "average_ns": stat.average(), "p50_ns": stat.quantiles.p50, "p99_ns": stat.quantiles.p99,
    })
}

fn copy(snapshot: &Snapshot, row: &CopyStat) -> Value {
    json!({
        "route": snapshot.names.route_label(row.route.source, row.route.destination),
        "direction": direction::name(row.route.direction), "engine": engine::name(row.route.engine),
        "count": row.stat.calls, "is_estimate": row.certainty != Certainty::Exact,
        "total_ns": row.stat.total, "bytes": row.has_bytes.then_some(row.sizes.total),
    })
}

fn operation(snapshot: &Snapshot, row: &ApiRow) -> Value {
    json!({
        "name": snapshot.names.operation(row.id).map(|known| known.operation.name.to_string()),
        "calls": row.stat.calls, "total_ns": row.stat.total, "max_ns": row.stat.max, "errors": row.errors,
        "bytes": (row.sized > 0).then_some(row.bytes),
    })
}

/// What was lost, by reason; what is about the recording as a whole has no process.
fn losses(row: &ProcessRow) -> Vec<Value> {
    let losses = row.losses().map(|(reason, lost)| {
        json!({
            "pid": (!reason.is_of_recording()).then_some(row.process.pid),
            "reason": reason.phrase(), "records": lost.records, "at_least": lost.is_least,
        })
    });
    losses.collect()
}

fn process(snapshot: &Snapshot, row: &ProcessRow) -> Value {
    let ranges = row.open.ranges.iter().map(|range| snapshot.names.text(range.text));
    let exit = match row.exit {
        Some((Exit::Code(code), _)) => json!({ "code": code }),
        Some((Exit::Signal(signal), _)) => json!({ "signal": signal }),
        _ => Value::Null,
    };
    json!({
        "pid": row.process.pid, "command": row.process.command.to_string(), "exit": exit,
        "records": row.records, "lost": row.lost_of_it(),
        "level": row.level.as_ref().map_or(0, |(level, _)| level.number()),
        "level_reason": row.level.as_ref().map(|(_, text)| text.to_string()),
        "incomplete": row.incomplete.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "notes": notes(snapshot).iter().filter(|(_, pids)| pids.contains(&row.process.pid)).map(|(text, _)| *text).collect::<Vec<_>>(),
        "open_calls": row.open.calls.len(), "open_dispatches": row.open.dispatches.len(),
        "open_ranges": ranges.collect::<Vec<_>>(),
    })
}
