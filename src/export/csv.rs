//! CSV files with the names, columns and formats of rocprofv3 (rocprofiler-sdk 1.0.0).
//!
//! Where upstream writes a quote inside a text as it is, this doubles it (RFC 4180): names without quotes are the same
//! to the byte.

use super::run::Run;
use super::{agent_info, write_atomic};
use crate::item::{AgentId, Exit, ProcessId};
use crate::topology::Node;
use anyhow::Result;
use roctop_ring::record::{Domain, direction, flag};
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where the files go and what they are called.
#[derive(Clone, Debug)]
pub struct Output {
    /// Directory.
    pub directory: PathBuf,
    /// Beginning of each file's name; none takes the process id.
    pub name: Option<String>,
}

impl Output {
    fn file(&self, run: &Run, process: ProcessId, many: bool, ending: &str) -> PathBuf {
        let pid = run.processes.get(process.0 as usize).map_or(0, |known| known.pid);
        let stem = match &self.name {
            Some(name) if many => format!("{name}_{pid}"),
            Some(name) => name.clone(),
            None => pid.to_string(),
        };
        self.directory.join(format!("{stem}_{ending}.csv"))
    }
}

/// A header line: every cell in quotes.
pub fn header(columns: &str) -> String {
    let cells: Vec<String> = columns.split(',').map(|cell| format!("\"{cell}\"")).collect();
    cells.join(",")
}

/// A text cell.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Writes all files of a run; returns their paths. A file is made only when there is a row for it.
pub fn export(run: &Run, nodes: &[Node], output: &Output) -> Result<Vec<PathBuf>> {
    super::prepare_directory(&output.directory)?;
    let with_records: Vec<ProcessId> = run
        .processes
        .iter()
        .map(|process| process.id)
        .filter(|id| has_records(run, *id))
        .collect();
    let many = with_records.len() > 1;
    let mut made = Vec::new();
    for process in &with_records {
        let sheet = Sheet {
            run,
            process: *process,
            nodes,
            dense: run.correlations(*process),
        };
        let tables: [(&str, Table<'_>); 4] = [
            ("kernel_trace", &|out| sheet.kernels(out)),
            ("memory_copy_trace", &|out| sheet.copies(out)),
            ("hip_api_trace", &|out| {
                sheet.calls(out, &[Domain::HIP, Domain::HIP_COMPILER])
            }),
            ("marker_api_trace", &|out| sheet.markers(out)),
        ];
        for (name, table) in tables {
            write_table(&output.file(run, *process, many, name), table, &mut made)?;
        }
        if sheet.has_calls(&HSA) {
            write_table(
                &output.file(run, *process, many, "hsa_api_trace"),
                &|out| sheet.calls(out, &HSA),
                &mut made,
            )?;
        }
        let path = output.file(run, *process, many, "agent_info");
        let product = |node: u32| sheet.product(node);
        write_atomic(&path, |out| agent_info::write(nodes, &product, out))?;
        made.push(path);
    }
    Ok(made)
}

type Table<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<u64>;

const HSA: [Domain; 4] = [
    Domain::HSA_CORE,
    Domain::HSA_AMD,
    Domain::HSA_IMAGE,
    Domain::HSA_FINALIZER,
];

fn has_records(run: &Run, process: ProcessId) -> bool {
    run.calls.iter().any(|call| call.process == process)
        || run.dispatches.iter().any(|dispatch| dispatch.process == process)
        || run.copies.iter().any(|copy| copy.process == process)
        || run.markers.iter().any(|marker| marker.process == process)
}

/// Writes a table unless it has no rows.
fn write_table(path: &Path, table: Table<'_>, made: &mut Vec<PathBuf>) -> Result<()> {
    let rows = table(&mut io::sink())?;
    if rows > 0 {
        write_atomic(path, |out| table(out).map(drop))?;
        made.push(path.to_owned());
    }
    Ok(())
}

/// The rows of one process.
struct Sheet<'a> {
    run: &'a Run,
    process: ProcessId,
    nodes: &'a [Node],
    dense: HashMap<u64, u64>,
}

impl Sheet<'_> {
    fn agent(&self, id: AgentId) -> String {
        let node = self.run.agents.get(id.0 as usize).map_or(0, |agent| agent.node);
        let logical = self
            .nodes
            .iter()
            .position(|known| known.id == node)
            .unwrap_or(node as usize);
        format!("\"Agent {logical}\"")
    }

    fn product(&self, node: u32) -> String {
        let mut agents = self.run.agents.iter().filter(|agent| agent.process == self.process);
        agents
            .find(|agent| agent.node == node)
            .map(|agent| agent.product.to_string())
            .unwrap_or_default()
    }

    fn correlation(&self, sparse: u64) -> u64 {
        self.dense.get(&sparse).copied().unwrap_or(0)
    }

    fn pid(&self) -> u32 {
        self.run
            .processes
            .get(self.process.0 as usize)
            .map_or(0, |process| process.pid)
    }

    fn kernels(&self, out: &mut dyn Write) -> io::Result<u64> {
        writeln!(
            out,
            "{}",
            header(
                "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,\
Start_Timestamp,End_Timestamp,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Workgroup_Size_X,\
Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z"
            )
        )?;
        let mut rows: Vec<_> = self
            .run
            .dispatches
            .iter()
            .filter(|d| d.process == self.process)
            .collect();
        rows.sort_by_key(|d| (d.span.end, d.dispatch_id));
        for d in &rows {
            if d.flags & flag::UNTIMED != 0 {
                continue;
            }
            let queue = self.run.queues.get(d.queue.0 as usize).map_or(0, |queue| queue.number);
            let stream = d
                .stream
                .and_then(|id| self.run.streams.get(id.0 as usize))
                .map_or(0, |stream| stream.number);
            let tid = d
                .thread
                .and_then(|id| self.run.threads.get(id.0 as usize))
                .map_or(self.pid(), |thread| thread.tid);
            let kernel = self.run.kernels.get(d.kernel.0 as usize).cloned().unwrap_or_default();
            let registers = kernel.registers.unwrap_or_default();
            write!(
                out,
                "\"KERNEL_DISPATCH\",{},{queue},{stream},{tid},{},",
                self.agent(d.agent),
                d.dispatch_id
            )?;
            write!(out, "{},{},", kernel.id.0 + 1, quoted(&kernel.name))?;
            write!(
                out,
                "{},{},{},",
                self.correlation(d.correlation),
                d.span.begin,
                d.span.end
            )?;
            write!(out, "{},{},", d.group_size.next_multiple_of(512), d.private_size)?;
            write!(out, "{},{},{},", registers.vgpr, registers.agpr, registers.sgpr)?;
            let ([wx, wy, wz], [gx, gy, gz]) = (d.workgroup, d.grid);
            writeln!(out, "{wx},{wy},{wz},{gx},{gy},{gz}")?;
        }
        Ok(rows.len() as u64)
    }

    fn copies(&self, out: &mut dyn Write) -> io::Result<u64> {
        writeln!(
            out,
            "{}",
            header(
                "Kind,Direction,Stream_Id,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,\
End_Timestamp"
            )
        )?;
        let mut rows: Vec<_> = self.run.copies.iter().filter(|c| c.process == self.process).collect();
        rows.retain(|c| c.flags & flag::UNTIMED == 0);
        rows.sort_by_key(|c| (c.span.end, c.span.begin));
        for c in &rows {
            let route = match c.direction {
                direction::H2H => "HOST_TO_HOST",
                direction::H2D => "HOST_TO_DEVICE",
                direction::D2H => "DEVICE_TO_HOST",
                direction::D2D | direction::FILL => "DEVICE_TO_DEVICE",
                _ => "NONE",
            };
            let stream = c
                .stream
                .and_then(|id| self.run.streams.get(id.0 as usize))
                .map_or(0, |stream| stream.number);
            let agent = |id: Option<AgentId>| id.map_or_else(|| "\"Agent 0\"".to_owned(), |id| self.agent(id));
            let (source, destination) = (agent(c.source), agent(c.destination));
            write!(
                out,
                "\"MEMORY_COPY\",\"MEMORY_COPY_{route}\",{stream},{source},{destination},"
            )?;
            writeln!(
                out,
                "{},{},{}",
                self.correlation(c.correlation),
                c.span.begin,
                c.span.end
            )?;
        }
        Ok(rows.len() as u64)
    }

    fn has_calls(&self, domains: &[Domain]) -> bool {
        self.run.calls.iter().any(|call| {
            let operation = self.run.operations.get(call.operation.0 as usize);
            call.process == self.process && operation.is_some_and(|o| domains.contains(&Domain(o.domain)))
        })
    }

    fn calls(&self, out: &mut dyn Write, domains: &[Domain]) -> io::Result<u64> {
        writeln!(
            out,
            "{}",
            header("Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp")
        )?;
        let operation = |call: &crate::item::ApiCall| self.run.operations.get(call.operation.0 as usize);
        let mut rows: Vec<_> = self
            .run
            .own_calls(self.process)
            .filter(|call| operation(call).is_some_and(|o| domains.contains(&Domain(o.domain))))
            .collect();
        rows.sort_by_key(|call| (call.span.end, call.span.begin));
        for call in &rows {
            let Some(known) = operation(call) else { continue };
            let domain = match Domain(known.domain) {
                Domain::HIP => "HIP_RUNTIME_API_EXT",
                Domain::HIP_COMPILER => "HIP_COMPILER_API_EXT",
                Domain::HSA_CORE => "HSA_CORE_API",
                Domain::HSA_AMD => "HSA_AMD_EXT_API",
                Domain::HSA_IMAGE => "HSA_IMAGE_EXT_API",
                _ => "HSA_FINALIZE_EXT_API",
            };
            let tid = self
                .run
                .threads
                .get(call.thread.0 as usize)
                .map_or(0, |thread| thread.tid);
            write!(out, "\"{domain}\",{},{},{tid},", quoted(&known.name), self.pid())?;
            writeln!(
                out,
                "{},{},{}",
                self.correlation(call.correlation),
                call.span.begin,
                call.span.end
            )?;
        }
        Ok(rows.len() as u64)
    }

    fn markers(&self, out: &mut dyn Write) -> io::Result<u64> {
        writeln!(
            out,
            "{}",
            header("Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp")
        )?;
        let mut rows: Vec<_> = self.run.markers.iter().filter(|m| m.process == self.process).collect();
        rows.sort_by_key(|m| (m.span.end, m.span.begin));
        for m in &rows {
            let text = self.run.texts.get(m.text.0 as usize).cloned().unwrap_or_default();
            let tid = self.run.threads.get(m.thread.0 as usize).map_or(0, |thread| thread.tid);
            write!(out, "\"MARKER_CORE_RANGE_API\",{},{},{tid},", quoted(&text), self.pid())?;
            writeln!(
                out,
                "{},{},{}",
                self.correlation(m.correlation),
                m.span.begin,
                m.span.end
            )?;
        }
        Ok(rows.len() as u64)
    }
}

/// How a process ended, in words.
pub fn exit_words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::Unknown => "ended".to_owned(),
    }
}
