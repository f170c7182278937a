//! CSV files with the names, columns and formats of rocprofv3: those of rocprofiler-sdk 1.0.0, or of the seed's manual.
//!
//! Where upstream writes a quote inside a text as it is, this doubles it (RFC 4180): names without quotes are the same
//! to the byte.

use super::nesting::Row;
use super::view::View;
use super::{Files, agent_info, stats};
use crate::item::ApiCall;
use anyhow::Result;
use std::io::{self, Write};

const CALLS: &str = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp";
const KERNELS: &str = "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,\
Start_Timestamp,End_Timestamp,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Workgroup_Size_X,\
Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z";
const SEED_KERNELS: &str = "Kind,Agent_Id,Queue_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,\
End_Timestamp,Private_Segment_Size,Group_Segment_Size,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,\
Grid_Size_Y,Grid_Size_Z";
const COPIES: &str = "Kind,Direction,Stream_Id,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,\
End_Timestamp";
const SEED_COPIES: &str = "Kind,Direction,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,\
End_Timestamp";

/// A header line: every cell in quotes.
pub fn header(columns: &str) -> String {
    let cells: Vec<String> = columns.split(',').map(|cell| format!("\"{cell}\"")).collect();
    cells.join(",")
}

/// A text cell.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Writes all tables of a process. A file is made only when there is a row for it.
pub(super) fn export(view: &View<'_>, files: &mut Files<'_>) -> Result<()> {
    let rows = &view.rows;
    if !rows.dispatches.is_empty() {
        files.write("kernel_trace.csv", &|out| kernels(view, out))?;
    }
    if !rows.hsa.is_empty() {
        files.write("hsa_api_trace.csv", &|out| calls(view, &rows.hsa, out))?;
    }
    if !rows.hip.is_empty() {
        files.write("hip_api_trace.csv", &|out| calls(view, &rows.hip, out))?;
    }
    if !rows.copies.is_empty() {
        files.write("memory_copy_trace.csv", &|out| copies(view, out))?;
    }
    if !rows.markers.is_empty() {
        files.write("marker_api_trace.csv", &|out| markers(view, out))?;
    }
    let product = |node: u32| view.product(node);
    files.write("agent_info.csv", &|out| agent_info::write(view.nodes, &product, out))?;
    if view.choice.stats {
        stats::export(view, files)?;
    }
    Ok(())
}

/// An agent's cell: a number in the seed's layout, a word in the new one.
fn agent(view: &View<'_>, id: Option<crate::item::AgentId>) -> String {
    if view.is_seed() {
        view.node(id).to_string()
    } else {
        format!("\"{}\"", view.agent(id))
    }
}

fn kernels(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let seed = view.is_seed();
    writeln!(out, "{}", header(if seed { SEED_KERNELS } else { KERNELS }))?;
    for row in &view.rows.dispatches {
        let d = row.record;
        let agent = agent(view, Some(d.agent));
        let queue = if seed {
            view.queue_handle(d)
        } else {
            view.queue(d).into()
        };
        write!(out, "\"KERNEL_DISPATCH\",{agent},{queue},")?;
        if !seed {
            let (stream, tid) = (view.stream(d.stream), view.tid(d.thread));
            write!(out, "{stream},{tid},{},", d.dispatch_id)?;
        }
        write!(out, "{},{},", d.kernel.0 + 1, quoted(&view.kernel_name(row)))?;
        write!(out, "{},{},{},", row.id, d.span.begin, d.span.end)?;
        if seed {
            write!(out, "{},{},", d.private_size, d.group_size)?;
        } else {
            let kernel = view.run.kernels.get(d.kernel.0 as usize);
            let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
            write!(out, "{},{},", d.group_size.next_multiple_of(512), d.private_size)?;
            write!(out, "{},{},{},", registers.vgpr, registers.agpr, registers.sgpr)?;
        }
        let ([wx, wy, wz], [gx, gy, gz]) = (d.workgroup, d.grid);
        writeln!(out, "{wx},{wy},{wz},{gx},{gy},{gz}")?;
    }
    Ok(())
}

fn copies(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let seed = view.is_seed();
    writeln!(out, "{}", header(if seed { SEED_COPIES } else { COPIES }))?;
    for row in &view.rows.copies {
        let c = row.record;
        write!(out, "\"MEMORY_COPY\",\"{}\",", view.direction(c))?;
        if !seed {
            write!(out, "{},", view.stream(c.stream))?;
        }
        let (source, destination) = (agent(view, c.source), agent(view, c.destination));
        writeln!(out, "{source},{destination},{},{},{}", row.id, c.span.begin, c.span.end)?;
    }
    Ok(())
}

fn calls(view: &View<'_>, rows: &[Row<'_, ApiCall>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", header(CALLS))?;
    for row in rows {
        let call = row.record;
        let (domain, function) = (view.domain(call), quoted(view.function(call)));
        let (pid, tid) = (view.process.pid, view.tid(Some(call.thread)));
        write!(out, "\"{domain}\",{function},{pid},{tid},")?;
        writeln!(out, "{},{},{}", row.id, call.span.begin, call.span.end)?;
    }
    Ok(())
}

fn markers(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", header(CALLS))?;
    let domain = if view.is_seed() {
        "MARKER_CORE_API"
    } else {
        "MARKER_CORE_RANGE_API"
    };
    for row in &view.rows.markers {
        let m = row.record;
        let (pid, tid) = (view.process.pid, view.tid(Some(m.thread)));
        write!(out, "\"{domain}\",{},{pid},{tid},", quoted(view.message(m)))?;
        writeln!(out, "{},{},{}", row.id, m.span.begin, m.span.end)?;
    }
    Ok(())
}
