//! Work of calls: dispatches with counters, copies, allocations and frees.

use super::addresses::Addresses;
use super::{Writer, signed};
use crate::counted::CountedRow;
use crate::error::Result;
use crate::json::record::external;
use crate::operation;
use roctop_model::subject::{DIRECTIONS, direction_number};
use roctop_ring::record::{memory, scratch};
use rusqlite::params;

impl Writer<'_> {
    pub(super) fn dispatches(&mut self) -> Result<()> {
        let view = self.view;
        for found in view.counted.rows_with_parts(&view.rows.dispatches) {
            let found = found?;
            let row = &found.row;
            let d = &row.record;
            let event = self.event("KERNEL_DISPATCH", [row.id, row.id, external(view, row)], "{}")?;
            let region = self.string(&view.region_name(row.region))?;
            let thread = self.thread(view.tid(d.thread))?;
            let graph = self.graphs.of_work(row);
            self.insert(
                "kernel_dispatch",
                "nid pid tid agent_id kernel_id dispatch_id queue_id stream_id graph_exec_id start end private_segment_size \
group_segment_size workgroup_size_x workgroup_size_y workgroup_size_z grid_size_x grid_size_y grid_size_z \
region_name_id event_id",
            )?
            .execute(params![
                1,
                view.process.pid,
                thread,
                view.node(Some(d.agent)),
                d.kernel.0 + 1,
                signed(d.dispatch_id),
                view.queue(d.queue),
                view.stream(d.stream),
                graph,
                signed(d.span.begin),
                signed(d.span.end),
                d.private_size,
                d.group_size,
                d.workgroup[0],
                d.workgroup[1],
                d.workgroup[2],
                d.grid[0],
                d.grid[1],
                d.grid[2],
                region,
                event
            ])?;
            self.values(&found, event)?;
        }
        Ok(())
    }

    /// Writes counter values of a dispatch: of each instance if known, else the sum.
    fn values(&mut self, row: &CountedRow, event: i64) -> Result<()> {
        let view = self.view;
        if row.is_counted() {
            for (info, value) in view.counted.instances(row) {
                let counter = self.counters.get(&info.id).copied();
                self.insert("pmc_event", "event_id pmc_id value")?
                    .execute(params![event, counter, value])?;
            }
        }
        Ok(())
    }

    pub(super) fn copies(&mut self) -> Result<()> {
        let view = self.view;
        let addresses = Addresses::new(view)?;
        for row in view.rows.copies.iter() {
            let row = row?;
            let c = &row.record;
            let event = self.event("MEMORY_COPY", [row.id, row.id, external(view, &row)], "{}")?;
            let name = self.string(DIRECTIONS[direction_number(c.direction)])?;
            let region = self.string("")?;
            let thread = self.thread(view.tid(c.thread))?;
            let graph = self.graphs.of_work(&row);
            let [to, from] = addresses.of(&row).map_or([None; 2], |both| both.map(Some));
            self.insert(
                "memory_copy",
                "nid pid tid start end name_id dst_agent_id dst_address src_agent_id src_address size stream_id graph_exec_id \
region_name_id event_id",
            )?
            .execute(params![
                1,
                view.process.pid,
                thread,
                signed(c.span.begin),
                signed(c.span.end),
                name,
                view.node(c.destination),
                to.map(signed),
                view.node(c.source),
                from.map(signed),
                signed(c.bytes),
                view.stream(c.stream),
                graph,
                region,
                event
            ])?;
        }
        Ok(addresses.check()?)
    }

    pub(super) fn graph_launches(&mut self) -> Result<()> {
        let view = self.view;
        let graphs = std::mem::take(&mut self.graphs);
        for launch in graphs.launches(view) {
            let (row, launch) = launch?;
            let event = self.event("HIP_GRAPH", [row.id, row.id, 0], "{}")?;
            let thread = self.thread(view.tid(Some(row.record.thread)))?;
            let columns = "nid pid tid agent_id queue_id start end graph_exec_id kernel_dispatch_count event_id";
            self.insert("graph_launch", columns)?.execute(params![
                1,
                view.process.pid,
                thread,
                launch.agent.map(|agent| view.node(Some(agent))),
                0,
                signed(row.record.span.begin),
                signed(row.record.span.end),
                launch.graph,
                launch.kernels,
                event
            ])?;
        }
        Ok(graphs.check()?)
    }

    pub(super) fn memory(&mut self) -> Result<()> {
        let view = self.view;
        let columns = "nid pid tid agent_id type level start end address size queue_id stream_id event_id extdata";
        for row in view.rows.allocations.iter() {
            let row = row?;
            let a = &row.record;
            let event = self.event("MEMORY_ALLOCATION", [row.id, row.ancestor, 0], "{}")?;
            let free = operation::is_free(a.operation);
            let level = match a.operation {
                memory::VMEM_ALLOCATE | memory::VMEM_FREE => "VIRTUAL",
                _ => "REAL",
            };
            let thread = self.thread(view.tid(Some(a.thread)))?;
            self.insert("memory_allocate", columns)?.execute(params![
                1,
                view.process.pid,
                thread,
                (!free || a.agent.is_some()).then(|| view.node(a.agent)),
                if free { "FREE" } else { "ALLOC" },
                level,
                signed(a.span.begin),
                signed(a.span.end),
                signed(a.address),
                if free { 0 } else { signed(a.bytes) },
                0,
                0,
                event,
                "{}"
            ])?;
        }
        for row in view.rows.scratches.iter() {
            let row = row?;
            let s = &row.record;
            let event = self.event("SCRATCH_MEMORY", [row.id, row.ancestor, 0], "{}")?;
            let kind = match s.operation {
                scratch::ALLOC => "ALLOC",
                scratch::ASYNC_RECLAIM => "RECLAIM",
                _ => "FREE",
            };
            let thread = self.thread(view.tid(Some(s.thread)))?;
            self.insert("memory_allocate", columns)?.execute(params![
                1,
                view.process.pid,
                thread,
                view.node(s.agent),
                kind,
                "SCRATCH",
                signed(s.span.begin),
                signed(s.span.end),
                0,
                signed(s.bytes),
                s.queue.map_or(0, |queue| view.queue(queue)),
                0,
                event,
                format!("{{\"flags\":{}}}", s.flags)
            ])?;
        }
        Ok(())
    }
}
