//! CSV files with the names, columns and formats of rocprofv3: of rocprofiler-sdk 1.0.0, or of ROCm 6.2 (layout
//! `seed`).
//!
//! Upstream writes quotes inside a text unchanged; here they are doubled (RFC 4180). Names without quotes are
//! byte-identical.

mod collectives;
mod counters;
mod gauges;
mod in_flight;
mod mpi;
pub(super) mod writer;

use self::writer::{Lines, table};
use super::files::Files;
use super::operation;
use super::options::{Kind, LIBRARIES};
use super::records::Row;
use super::sort::Sorted;
use super::stats::Domain;
use super::view::View;
use super::{agent_info, stats};
use crate::error::Result;
use roctop_ring::record::sampling;
use roctop_trace::item::{AgentId, ApiCall};
use std::collections::HashMap;
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

const ALLOCATIONS: &str = "Kind,Operation,Agent_Id,Allocation_Size,Address,Correlation_Id,Start_Timestamp,\
End_Timestamp";
const SCRATCHES: &str = "Kind,Operation,Agent_Id,Queue_Id,Thread_Id,Alloc_Flags,Start_Timestamp,End_Timestamp,\
Allocation_Size";
const SEED_SCRATCHES: &str = "Kind,Operation,Agent_Id,Queue_Id,Thread_Id,Alloc_flags,Start_Timestamp,End_Timestamp";

/// Writes what is not recorded of the process, in the collector's words.
fn incomplete(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = Lines::new(out, "Process_Id,Incomplete")?;
    for text in view.incomplete() {
        lines.number(view.process.pid).text(text).end()?;
    }
    Ok(())
}

/// Writes all tables of a process. A file is created only if it has rows.
pub(super) fn export(view: &View<'_>, domains: &[Domain], files: &mut Files<'_>) -> Result<()> {
    let rows = &view.rows;
    if !rows.dispatches.is_empty() && !view.choice.counters_only {
        files.write("kernel_trace.csv", &|out| kernels(view, out))?;
    }
    if !rows.in_flight.is_empty() && !view.choice.counters_only {
        files.write("kernel_in_flight.csv", &|out| in_flight::write(view, out))?;
    }
    if view.incomplete().next().is_some() {
        files.write("incomplete.csv", &|out| incomplete(view, out))?;
    }
    if !rows.hsa.is_empty() {
        files.write("hsa_api_trace.csv", &|out| calls(view, &rows.hsa, out))?;
    }
    if !rows.hip.is_empty() {
        files.write("hip_api_trace.csv", &|out| calls(view, &rows.hip, out))?;
    }
    for (library, rows) in LIBRARIES.iter().zip(&rows.libraries) {
        if !rows.is_empty() {
            let write = if library.kind == Kind::Mpi { mpi::write } else { calls };
            files.write(&format!("{}_trace.csv", library.list), &|out| write(view, rows, out))?;
        }
    }
    if !rows.copies.is_empty() {
        files.write("memory_copy_trace.csv", &|out| copies(view, out))?;
    }
    if !rows.markers.is_empty() {
        files.write("marker_api_trace.csv", &|out| markers(view, out))?;
    }
    // ROCm 6.2 had no such file.
    if !rows.allocations.is_empty() && !view.is_seed() {
        files.write("memory_allocation_trace.csv", &|out| allocations(view, out))?;
    }
    if !rows.scratches.is_empty() {
        files.write("scratch_memory_trace.csv", &|out| scratches(view, out))?;
    }
    if !view.counted.is_empty() {
        files.write("counter_collection.csv", &|out| counters::csv(view, out))?;
        if view.choice.wide_counters {
            files.write("counter_collection_wide.csv", &|out| counters::wide(view, out))?;
        }
    }
    for (name, method) in [("host_trap", sampling::HOST_TRAP), ("stochastic", sampling::STOCHASTIC)] {
        if view.samples.has(method) {
            files.write(&format!("pc_sampling_{name}.csv"), &|out| pc_samples(view, method, out))?;
        }
    }
    if !view.parts.is_empty() {
        files.write("collectives.csv", &|out| collectives::write(view, out))?;
    }
    if !view.gauges.is_empty() {
        files.write("gauges.csv", &|out| gauges::write(view, out))?;
    }
    let product = |node: u32| view.product(node);
    files.write("agent_info.csv", &|out| agent_info::write(view.nodes, &product, out))?;
    if view.choice.stats {
        stats::export(view, domains, files)?;
    }
    Ok(())
}

/// Agent cells: numbers in layout `seed`, labels in the current one.
struct Agents<'a> {
    view: &'a View<'a>,
    cells: HashMap<Option<AgentId>, String>,
}

impl<'a> Agents<'a> {
    fn new(view: &'a View<'a>) -> Self {
        Self {
            view,
            cells: HashMap::new(),
        }
    }

    fn cell(&mut self, id: Option<AgentId>) -> &str {
        self.cells.entry(id).or_insert_with(|| {
            if self.view.is_seed() {
                self.view.node(id).to_string()
            } else {
                format!("\"{}\"", self.view.agent(id))
            }
        })
    }
}

fn kernels(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let seed = view.is_seed();
    let columns = if seed { SEED_KERNELS } else { KERNELS };
    let agents = || Agents::new(view);
    table(out, columns, &view.rows.dispatches, agents, |row, agents, lines| {
        let d = &row.record;
        lines.raw("\"KERNEL_DISPATCH\"").raw(agents.cell(Some(d.agent)));
        if seed {
            lines.number(view.queue_handle(d.queue));
        } else {
            lines.number(view.queue(d.queue)).number(view.stream(d.stream));
            lines.number(view.tid(d.thread)).number(d.dispatch_id);
        }
        lines.number(d.kernel.0 + 1).text(&view.kernel_name(row));
        lines.number(row.id).number(d.span.begin).number(d.span.end);
        if seed {
            lines.number(d.private_size).number(d.group_size);
        } else {
            let kernel = view.run.kernels.get(d.kernel.0 as usize);
            let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
            lines.number(view.lds_block(d)).number(d.private_size);
            lines
                .number(registers.vgpr)
                .number(registers.agpr)
                .number(registers.sgpr);
        }
        for size in d.workgroup {
            lines.number(size);
        }
        for size in d.grid {
            lines.number(size);
        }
    })
}

fn copies(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let seed = view.is_seed();
    let columns = if seed { SEED_COPIES } else { COPIES };
    let agents = || Agents::new(view);
    table(out, columns, &view.rows.copies, agents, |row, agents, lines| {
        let c = &row.record;
        lines.raw("\"MEMORY_COPY\"").text(view.direction(c));
        if !seed {
            lines.number(view.stream(c.stream));
        }
        lines.raw(agents.cell(c.source)).raw(agents.cell(c.destination));
        lines.number(row.id).number(c.span.begin).number(c.span.end);
    })
}

fn calls(view: &View<'_>, rows: &Sorted<Row<ApiCall>>, out: &mut dyn Write) -> io::Result<()> {
    table(
        out,
        CALLS,
        rows,
        || (),
        |row, (), lines| {
            let call = &row.record;
            lines.text(view.domain(call)).text(view.function(call));
            lines.number(view.process.pid).number(view.tid(Some(call.thread)));
            lines.number(row.id).number(call.span.begin).number(call.span.end);
        },
    )
}

fn markers(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    table(
        out,
        CALLS,
        &view.rows.markers,
        || (),
        |row, (), lines| {
            let m = &row.record;
            lines.text(view.marker_domain(m)).text(&view.message(m));
            lines.number(view.process.pid).number(view.tid(Some(m.thread)));
            lines.number(row.id).number(m.span.begin).number(m.span.end);
        },
    )
}

fn allocations(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let agents = || Agents::new(view);
    table(
        out,
        ALLOCATIONS,
        &view.rows.allocations,
        agents,
        |row, agents, lines| {
            let a = &row.record;
            let free = operation::is_free(a.operation);
            lines.raw("\"MEMORY_ALLOCATION\"");
            lines.text(operation::name(&operation::ALLOCATIONS, a.operation));
            lines.raw(if free { "\"\"" } else { agents.cell(a.agent) });
            lines
                .number(if free { 0 } else { a.bytes })
                .text(&format!("0x{:016x}", a.address));
            lines.number(row.id).number(a.span.begin).number(a.span.end);
        },
    )
}

fn scratches(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let seed = view.is_seed();
    let columns = if seed { SEED_SCRATCHES } else { SCRATCHES };
    let agents = || Agents::new(view);
    table(out, columns, &view.rows.scratches, agents, |row, agents, lines| {
        let s = &row.record;
        lines.raw("\"SCRATCH_MEMORY\"");
        lines
            .text(operation::name(&operation::SCRATCHES, s.operation))
            .raw(agents.cell(s.agent));
        lines.number(s.queue.map_or(0, |queue| {
            if seed {
                view.queue_handle(queue)
            } else {
                view.queue(queue).into()
            }
        }));
        lines.number(view.tid(Some(s.thread))).number(s.flags);
        lines.number(s.span.begin).number(s.span.end);
        if !seed {
            lines.number(s.bytes);
        }
    })
}

const SAMPLED: &str = "Sample_Timestamp,Exec_Mask,Dispatch_Id,Instruction,Instruction_Comment,Correlation_Id";
const STOCHASTIC: &str = "Wave_Issued_Instruction,Instruction_Type,Stall_Reason,Wave_Count";

/// Writes `pc_sampling_host_trap.csv` or `pc_sampling_stochastic.csv`. An instruction is a code object offset.
fn pc_samples(view: &View<'_>, method: u16, out: &mut dyn Write) -> io::Result<()> {
    let is_stochastic = method == sampling::STOCHASTIC;
    let columns = if is_stochastic {
        format!("{SAMPLED},{STOCHASTIC}")
    } else {
        SAMPLED.to_owned()
    };
    let mut lines = Lines::new(out, &columns)?;
    for found in view.samples.of(method) {
        let found = found?;
        let sample = &found.sample;
        lines.number(sample.at).number(sample.exec_mask).number(sample.dispatch);
        lines.text("").text(&sample.place());
        lines.number(found.id);
        if is_stochastic {
            lines.number(u64::from(sample.is_issued)).text(&sample.instruction());
            lines.text(&sample.reason()).number(sample.wave_count);
        }
        lines.end()?;
    }
    Ok(())
}
