//! Records in `results.json`.

use super::agent::handle;
use super::sampled;
use super::strings::{
    COMPLETE, HIP_GRAPH, KERNEL_DISPATCH, LAUNCH, MEMORY_ALLOCATION, MEMORY_COPY, SCRATCH_MEMORY, Tables,
};
use super::writer::{list, rows_of, text};
use crate::arguments::{self, Argument};
use crate::graphs::{Graphs, Launch};
use crate::operation::is_free;
use crate::options::Kind;
use crate::records::{Mark, Row};
use crate::view::View;
use roctop_model::subject::direction_number;
use roctop_trace::item::{Allocation, ApiCall, Copy, Dispatch, Scratch};
use std::io::{self, Write};

/// Writes all lists, also empty ones.
pub(super) fn write(view: &View<'_>, tables: &Tables<'_>, out: &mut dyn Write) -> io::Result<()> {
    let rows = &view.rows;
    let [rccl, decode, jpeg, mpi] = &rows.libraries;
    let graphs = &Graphs::new(view)?;
    write!(out, "{{\"kernel_dispatch\":")?;
    let dispatches = || {
        if view.choice.counters_only {
            return write!(out, "[]");
        }
        rows_of(out, &rows.dispatches, |out, row| dispatch(view, graphs, row, out))
    };
    // Calls come next: they need the streams of their work.
    let (streams, dispatches) = view.place.both(|| view.find_streams(), dispatches);
    dispatches?;
    streams?;
    write!(out, ",\n\"hip_api\":")?;
    rows_of(out, &rows.hip, |out, row| hip_call(view, tables, row, out))?;
    write!(out, ",\n\"hsa_api\":")?;
    rows_of(out, &rows.hsa, |out, row| hsa_call(view, tables, row, out))?;
    write!(out, ",\n\"marker_api\":")?;
    rows_of(out, &rows.markers, |out, row| marker(view, tables, row, out))?;
    write!(out, ",\n\"rccl_api\":")?;
    rows_of(out, rccl, |out, row| library_call(view, tables, row, out))?;
    write!(out, ",\n\"memory_copy\":")?;
    rows_of(out, &rows.copies, |out, row| copy(view, graphs, row, out))?;
    write!(out, ",\n\"memory_allocation\":")?;
    rows_of(out, &rows.allocations, |out, row| allocation(view, row, out))?;
    write!(out, ",\n\"scratch_memory\":")?;
    rows_of(out, &rows.scratches, |out, row| scratch(view, row, out))?;
    write!(out, ",\n\"rocdecode_api\":")?;
    rows_of(out, decode, |out, row| library_call(view, tables, row, out))?;
    write!(out, ",\n\"rocjpeg_api\":")?;
    rows_of(out, jpeg, |out, row| library_call(view, tables, row, out))?;
    // Upstream has no such list.
    if !mpi.is_empty() {
        write!(out, ",\n\"mpi_api\":")?;
        rows_of(out, mpi, |out, row| library_call(view, tables, row, out))?;
    }
    sampled::records(view, out)?;
    // Upstream had the second name first.
    for name in ["hip_graph", "graph_launch"] {
        write!(out, ",\n\"{name}\":")?;
        list(out, graphs.launches(view), |out, launch| {
            let (row, launch) = launch?;
            graph_launch(view, &row, &launch, out)
        })?;
    }
    graphs.check()?;
    write!(out, "}}")
}

fn hip_call(view: &View<'_>, tables: &Tables<'_>, row: &Row<ApiCall>, out: &mut dyn Write) -> io::Result<()> {
    call(view, tables, row, 176, out)?;
    // A return value is a 64-bit number, 0 if unknown.
    let result = row.record.status.unwrap_or(0).cast_unsigned();
    let arguments = arguments::of(view, &row.record);
    let (stream, arguments) = (view.stream_of_call(row, &arguments), objects(&arguments));
    write!(
        out,
        ",\"args\":[{arguments}],\"retval\":{{\"uint64_t_retval\":{result}}},\"stream_id\":{{\"handle\":{stream}}}}}"
    )
}

fn hsa_call(view: &View<'_>, tables: &Tables<'_>, row: &Row<ApiCall>, out: &mut dyn Write) -> io::Result<()> {
    call(view, tables, row, 64, out)?;
    write!(out, "}}")
}

fn marker(view: &View<'_>, tables: &Tables<'_>, row: &Row<Mark>, out: &mut dyn Write) -> io::Result<()> {
    let (marker, (kind, operation)) = (&row.record, tables.of_marker(&row.record));
    let (begin, end) = (marker.span.begin, marker.span.end);
    let (id, ancestor, tid) = (row.id, row.ancestor, view.tid(Some(marker.thread)));
    write!(
        out,
        "{{\"size\":64,\"kind\":{kind},\"operation\":{operation},\"correlation_id\":{{\"internal\":{id},\
\"external\":0,\"ancestor\":{ancestor}}},\"start_timestamp\":{begin},\"end_timestamp\":{end},\"thread_id\":{tid}}}"
    )
}

fn copy(view: &View<'_>, graphs: &Graphs, row: &Row<Copy>, out: &mut dyn Write) -> io::Result<()> {
    let copy = &row.record;
    let (begin, end, bytes) = (copy.span.begin, copy.span.end, copy.bytes);
    let (tid, id, stream) = (view.tid(copy.thread), row.id, view.stream(copy.stream));
    let (to, from) = (handle(view.node(copy.destination)), handle(view.node(copy.source)));
    let (operation, external) = (direction_number(copy.direction), external(view, row));
    write!(
        out,
        "{{\"size\":96,\"kind\":{MEMORY_COPY},\"operation\":{operation},\"thread_id\":{tid},\
\"correlation_id\":{{\"internal\":{id},\"external\":{external}}},\"start_timestamp\":{begin},\"end_timestamp\":{end},\
\"dst_agent_id\":{{\"handle\":{to}}},\"src_agent_id\":{{\"handle\":{from}}},\"bytes\":{bytes},\
\"stream_id\":{{\"handle\":{stream}}},\"graph_exec_id\":{},\"graph_node_id\":0}}",
        graphs.of_work(row)
    )
}

/// Call arguments as objects of type, name and value.
fn objects(arguments: &[Argument]) -> String {
    let objects: Vec<String> = arguments
        .iter()
        .map(|argument| {
            let Argument {
                kind,
                name,
                value,
                given,
            } = argument;
            let (name, value) = (text(name), text(value));
            // An addition to upstream's schema.
            let given = given
                .as_ref()
                .map_or(String::new(), |given| format!(",\"given\":{}", text(given)));
            format!("{{\"type\":\"{kind}\",\"name\":{name},\"value\":{value}{given}}}")
        })
        .collect();
    objects.join(",")
}

/// Id of the range around the launch, if kernels are named by ranges.
pub(crate) fn external<T>(view: &View<'_>, row: &Row<T>) -> u64 {
    let region = row.region.filter(|_| view.choice.rename);
    region.map_or(0, |region| region.id)
}

fn call(view: &View<'_>, tables: &Tables<'_>, row: &Row<ApiCall>, size: u32, out: &mut dyn Write) -> io::Result<()> {
    let (call, (kind, operation)) = (&row.record, tables.of_call(&row.record));
    let (begin, end) = (call.span.begin, call.span.end);
    let (id, ancestor, tid) = (row.id, row.ancestor, view.tid(Some(call.thread)));
    write!(
        out,
        "{{\"size\":{size},\"kind\":{kind},\"operation\":{operation},\"correlation_id\":{{\"internal\":{id},\
\"external\":0,\"ancestor\":{ancestor}}},\"start_timestamp\":{begin},\"end_timestamp\":{end},\"thread_id\":{tid}"
    )
}

/// Writes a call of a library above HIP. Only RCCL's return values are known.
fn library_call(view: &View<'_>, tables: &Tables<'_>, row: &Row<ApiCall>, out: &mut dyn Write) -> io::Result<()> {
    call(view, tables, row, 64, out)?;
    let status = row.record.status;
    let kind = if view.kind(&row.record) == Kind::Mpi {
        "int"
    } else {
        "ncclResult_t"
    };
    let result = status.map_or(String::new(), |status| format!("\"{kind}_retval\":\"{status}\""));
    let arguments = objects(&arguments::of(view, &row.record));
    write!(out, ",\"args\":[{arguments}],\"retval\":{{{result}}}}}")
}

fn dispatch(view: &View<'_>, graphs: &Graphs, row: &Row<Dispatch>, out: &mut dyn Write) -> io::Result<()> {
    let d = &row.record;
    let (tid, id, external) = (view.tid(d.thread), row.id, external(view, row));
    let (begin, end) = (d.span.begin, d.span.end);
    write!(
        out,
        "{{\"size\":184,\"kind\":{KERNEL_DISPATCH},\"operation\":{COMPLETE},\"thread_id\":{tid},\
\"correlation_id\":{{\"internal\":{id},\"external\":{external}}},\"start_timestamp\":{begin},\"end_timestamp\":{end}"
    )?;
    dispatch_info(view, d, out)?;
    // Nodes of graphs are not known.
    write!(
        out,
        ",\"stream_id\":{{\"handle\":{}}},\"graph_exec_id\":{},\"graph_node_id\":0",
        view.stream(d.stream),
        graphs.of_work(row)
    )?;
    occupancy(view, d, out)?;
    write!(out, "}}")
}

/// Writes what the kernel's code allows. Upstream has no such field.
fn occupancy(view: &View<'_>, d: &Dispatch, out: &mut dyn Write) -> io::Result<()> {
    let found = view.choice.has_code.then(|| view.occupancy(d)).flatten();
    let Some(found) = found else { return Ok(()) };
    let (allowed, slots) = found.waves_of_unit();
    write!(
        out,
        ",\"occupancy\":{{\"waves_allowed\":{allowed},\"wave_slots\":{slots},\"limiter\":\"{}\"",
        found.limiter.word()
    )?;
    if let Some(rounds) = found.rounds() {
        let (groups, at_once) = (found.grid, found.at_once());
        write!(
            out,
            ",\"work_groups\":{groups},\"work_groups_at_once\":{at_once},\"rounds\":{rounds}"
        )?;
    }
    write!(out, "}}")
}

fn graph_launch(view: &View<'_>, row: &Row<ApiCall>, launch: &Launch, out: &mut dyn Write) -> io::Result<()> {
    let (id, ancestor, tid) = (row.id, row.ancestor, view.tid(Some(row.record.thread)));
    let agent = launch.agent.map_or(0, |agent| handle(view.node(Some(agent))));
    let (begin, end) = (row.record.span.begin, row.record.span.end);
    write!(
        out,
        "{{\"size\":88,\"kind\":{HIP_GRAPH},\"operation\":{LAUNCH},\"thread_id\":{tid},\
\"correlation_id\":{{\"internal\":{id},\"external\":0,\"ancestor\":{ancestor}}},\"start_timestamp\":{begin},\
\"end_timestamp\":{end},\"agent_id\":{{\"handle\":{agent}}},\"queue_id\":{{\"handle\":0}},\
\"graph_exec_id\":{{\"handle\":{}}},\"kernel_dispatch_count\":{}}}",
        launch.graph, launch.kernels
    )
}

/// Writes the dispatch part of a record.
pub(super) fn dispatch_info(view: &View<'_>, d: &Dispatch, out: &mut dyn Write) -> io::Result<()> {
    let (agent, queue) = (handle(view.node(Some(d.agent))), view.queue(d.queue));
    let ([wx, wy, wz], [gx, gy, gz]) = (d.workgroup, d.grid);
    write!(
        out,
        ",\"dispatch_info\":{{\"size\":72,\"agent_id\":{{\"handle\":{agent}}},\"queue_id\":{{\"handle\":{queue}}},\
\"kernel_id\":{},\"dispatch_id\":{},\"private_segment_size\":{},\"group_segment_size\":{}",
        d.kernel.0 + 1,
        d.dispatch_id,
        d.private_size,
        d.group_size
    )?;
    write!(
        out,
        ",\"workgroup_size\":{{\"x\":{wx},\"y\":{wy},\"z\":{wz}}},\"grid_size\":{{\"x\":{gx},\"y\":{gy},\"z\":{gz}}}}}"
    )
}

fn allocation(view: &View<'_>, row: &Row<Allocation>, out: &mut dyn Write) -> io::Result<()> {
    let (a, free) = (&row.record, is_free(row.record.operation));
    let (operation, tid, id, ancestor) = (a.operation, view.tid(Some(a.thread)), row.id, row.ancestor);
    let agent = if free { 0 } else { handle(view.node(a.agent)) };
    let bytes = if free { 0 } else { a.bytes };
    write!(
        out,
        "{{\"size\":88,\"kind\":{MEMORY_ALLOCATION},\"operation\":{operation},\"thread_id\":{tid},\
\"correlation_id\":{{\"internal\":{id},\"external\":0,\"ancestor\":{ancestor}}},\"start_timestamp\":{},\
\"end_timestamp\":{},\"agent_id\":{{\"handle\":{agent}}},\"address\":\"0x{:016x}\",\"allocation_size\":{bytes},\
\"stream_id\":{{\"handle\":0}}}}",
        a.span.begin, a.span.end, a.address
    )
}

fn scratch(view: &View<'_>, row: &Row<Scratch>, out: &mut dyn Write) -> io::Result<()> {
    let s = &row.record;
    let (operation, tid, id) = (s.operation, view.tid(Some(s.thread)), row.id);
    let (agent, queue) = (handle(view.node(s.agent)), s.queue.map_or(0, |queue| view.queue(queue)));
    write!(
        out,
        "{{\"size\":88,\"kind\":{SCRATCH_MEMORY},\"operation\":{operation},\"agent_id\":{{\"handle\":{agent}}},\
\"queue_id\":{{\"handle\":{queue}}},\"thread_id\":{tid},\"start_timestamp\":{},\"end_timestamp\":{},\
\"correlation_id\":{{\"internal\":{id},\"external\":0,\"ancestor\":{}}},\"flags\":{},\"allocation_size\":{}}}",
        s.span.begin, s.span.end, row.ancestor, s.flags, s.bytes
    )
}
