//! `roctop counters --of REC…`: what was counted of each kernel, over all passes.

use crate::cli::CountersFormat;
use crate::model::derived::METRICS;
use crate::model::snapshot::KernelRow;
use crate::model::{Snapshot, kernel_counters};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// A counter of a kernel: how often, mean, least, most.
struct Cell<'a> {
    name: &'a str,
    count: u64,
    mean: f64,
    ends: [f64; 2],
}

fn name(snap: &Snapshot, row: &KernelRow) -> String {
    let known = snap.names.kernel(row.id);
    known.map_or_else(|| format!("kernel {}", row.id.0), |known| known.kernel.name.to_string())
}

fn cells<'a>(snap: &'a Snapshot, row: &KernelRow) -> Vec<Cell<'a>> {
    let gauges = &snap.values.gauges;
    let names = gauges.dispatch_counters().into_iter();
    let found = names.filter_map(|name| {
        let range = gauges.of_kernel(row.id, name)?;
        Some(Cell {
            name,
            count: range.count,
            mean: range.average()?,
            ends: [range.min, range.max],
        })
    });
    found.collect()
}

/// Kernels of which anything was counted, the longest first.
fn rows(snap: &Snapshot) -> Vec<(&KernelRow, Vec<Cell<'_>>)> {
    let mut rows: Vec<_> = snap.values.kernels.iter().map(|row| (row, cells(snap, row))).collect();
    rows.retain(|row| !row.1.is_empty());
    rows.sort_by(|a, b| {
        b.0.numbers
            .stat
            .total
            .cmp(&a.0.numbers.stat.total)
            .then(a.0.id.cmp(&b.0.id))
    });
    rows
}

/// Writes it; false when nothing was counted.
pub(super) fn write(snap: &Snapshot, format: CountersFormat, out: &mut dyn Write) -> io::Result<bool> {
    let rows = rows(snap);
    match format {
        CountersFormat::Json => {
            let all: Vec<Value> = rows.iter().map(|(row, cells)| kernel(snap, row, cells)).collect();
            writeln!(out, "{:#}", Value::from(all))?;
        }
        CountersFormat::Csv => {
            writeln!(
                out,
                "\"Kernel_Name\",\"Counter_Name\",\"Values\",\"Average\",\"Min\",\"Max\""
            )?;
            for (row, cells) in &rows {
                let kernel = name(snap, row).replace('"', "\"\"");
                for cell in cells {
                    let [least, most] = cell.ends;
                    writeln!(
                        out,
                        "\"{kernel}\",\"{}\",{},{},{least},{most}",
                        cell.name, cell.count, cell.mean
                    )?;
                }
            }
        }
        CountersFormat::Info | CountersFormat::Table => {
            for (row, cells) in &rows {
                table(snap, row, cells, out)?;
            }
        }
    }
    Ok(!rows.is_empty())
}

fn table(snap: &Snapshot, row: &KernelRow, cells: &[Cell<'_>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", name(snap, row))?;
    for cell in cells {
        let [least, most] = cell.ends;
        writeln!(
            out,
            "  {:32} {:>16} {:>8}×   {least} … {most}",
            cell.name, cell.mean, cell.count
        )?;
    }
    for metric in METRICS {
        if let Ok(value) = kernel_counters::metric(snap, row, metric) {
            writeln!(out, "  {:32} {value:>16.6} {}", metric.key, metric.unit)?;
        }
    }
    Ok(())
}

fn kernel(snap: &Snapshot, row: &KernelRow, cells: &[Cell<'_>]) -> Value {
    let counters: Map<String, Value> = cells
        .iter()
        .map(|cell| {
            let [least, most] = cell.ends;
            let value = json!({"values": cell.count, "average": cell.mean, "min": least, "max": most});
            (cell.name.to_owned(), value)
        })
        .collect();
    let metrics: Map<String, Value> = METRICS
        .iter()
        .filter_map(|metric| {
            Some((
                metric.key.to_owned(),
                kernel_counters::metric(snap, row, metric).ok()?.into(),
            ))
        })
        .collect();
    json!({"kernel": name(snap, row), "counters": counters, "metrics": metrics})
}
