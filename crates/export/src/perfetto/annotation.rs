//! Name, category, flow and annotations of a slice.

use super::proto::{Event, Packets, Value};
use super::slice::Slice;
use super::uuid;
use crate::arguments;
use crate::collectives::PartRow;
use crate::json::strings::{self, Tables};
use crate::operation::direction_number;
use crate::options::LIBRARIES;
use crate::records::Row;
use crate::view::View;
use roctop_trace::item::{AgentId, ApiCall, Copy, Dispatch, ProcessId, ThreadId};
use roctop_trace::site::SiteNumber;
use std::borrow::Cow;

/// Content of a slice.
struct SliceContent<'a> {
    category: &'static str,
    name: Cow<'a, str>,
    annotations: Vec<(&'a str, Value<'a>)>,
}

/// Begins a slice on a track, with all fields of its record.
pub(super) fn begin(
    view: &View<'_>,
    tables: &Tables<'_>,
    (track, time): (u64, u64),
    slice: &Slice,
    packets: &mut Packets,
) {
    let (span, id) = (slice.span(), slice.id());
    let mut said = match slice {
        Slice::Hip(row) => {
            let mut said = call(view, tables, row, "hip_api");
            let stream = view.stream_of_call(row, &arguments::of(view, &row.record));
            said.annotations.push(("stream_ID", Value::Number(stream.into())));
            said
        }
        Slice::Hsa(row) => call(view, tables, row, "hsa_api"),
        Slice::Library(at, row) => {
            let category = LIBRARIES.get(*at).map_or("", |library| library.list);
            call(view, tables, row, category)
        }
        Slice::Marker(row) => SliceContent {
            category: "marker_api",
            name: view.message(&row.record),
            annotations: api(view, row.record.thread, tables.of_marker(&row.record), row),
        },
        Slice::Dispatch(row, values) => dispatch(view, row, values),
        Slice::Copy(row) => copy(view, row),
        Slice::Part(row, is_wait) => part(row, *is_wait),
    };
    let mut annotations = numbers(&[
        ("begin_ns", span.begin),
        ("end_ns", span.end),
        ("delta_ns", span.duration()),
    ]);
    annotations.append(&mut said.annotations);
    let flow = if id == 0 {
        0
    } else {
        uuid(view.process.pid, "flow").wrapping_add(id << 1)
    };
    let event = Event {
        category: said.category,
        name: &said.name,
        flow,
        annotations: &annotations,
    };
    packets.begin(track, time, &event);
}

fn numbers<'a>(pairs: &[(&'a str, u64)]) -> Vec<(&'a str, Value<'a>)> {
    pairs.iter().map(|(key, value)| (*key, Value::Number(*value))).collect()
}

/// Content of a call; kind and operation are indexes into the strings.
fn api<'a, T>(
    view: &View<'_>,
    thread: ThreadId,
    (kind, operation): (usize, usize),
    row: &Row<T>,
) -> Vec<(&'a str, Value<'a>)> {
    numbers(&[
        ("tid", view.tid(Some(thread)).into()),
        ("kind", kind as u64),
        ("operation", operation as u64),
        ("corr_id", row.id),
        ("ancestor_id", row.ancestor),
    ])
}

fn call<'a>(view: &'a View<'_>, tables: &Tables<'_>, row: &Row<ApiCall>, category: &'static str) -> SliceContent<'a> {
    let mut annotations = api(view, row.record.thread, tables.of_call(&row.record), row);
    annotations.extend(site(view, row.record.process, row.record.site));
    SliceContent {
        category,
        name: view.function(&row.record).into(),
        annotations,
    }
}

fn agent<'a>(view: &View<'_>, agent: Option<AgentId>) -> Value<'a> {
    Value::Text(view.agent(agent).replace(' ', "-").into())
}

/// Where in the program a call is; none if that is not known.
fn site<'a>(view: &'a View<'_>, process: ProcessId, number: SiteNumber) -> Option<(&'a str, Value<'a>)> {
    let text = view.site(process, number);
    (!text.is_empty()).then(|| ("site", Value::Text(text.into())))
}

/// Content of a dispatch. `values` are its counter values, by index.
fn dispatch<'a>(view: &'a View<'_>, row: &'a Row<Dispatch>, values: &[(u32, f64)]) -> SliceContent<'a> {
    let d = &row.record;
    let kernel = view.run.kernels.get(d.kernel.0 as usize);
    let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
    let mut annotations = numbers(&[
        ("kind", strings::KERNEL_DISPATCH as u64),
        ("corr_id", row.id),
        ("queue", view.queue(d.queue).into()),
        ("tid", view.tid(d.thread).into()),
        ("kernel_id", u64::from(d.kernel.0) + 1),
        ("Scratch_Size", d.private_size.into()),
        ("LDS_Block_Size", view.lds_block(d)),
        ("VGPR_Count", registers.vgpr.into()),
        ("Accum_VGPR_Count", registers.agpr.into()),
        ("SGPR_Count", registers.sgpr.into()),
        ("workgroup_size", product(d.workgroup.map(u32::from))),
        ("grid_size", product(d.grid)),
        ("stream_ID", view.stream(d.stream).into()),
    ]);
    annotations.push(("agent", agent(view, Some(d.agent))));
    annotations.push(("agent_type", Value::Text("GPU".into())));
    annotations.extend(site(view, d.process, d.site));
    let named = |(place, value): &(u32, f64)| Some((&*view.counted.counter(*place)?.name, Value::Real(*value)));
    annotations.extend(values.iter().filter_map(named));
    SliceContent {
        category: "kernel_dispatch",
        name: view.kernel_name(row),
        annotations,
    }
}

fn copy<'a>(view: &'a View<'_>, row: &Row<Copy>) -> SliceContent<'a> {
    let c = &row.record;
    let mut annotations = numbers(&[
        ("kind", strings::MEMORY_COPY as u64),
        ("operation", direction_number(c) as u64),
        ("copy_bytes", c.bytes),
        ("corr_id", row.id),
        ("tid", view.tid(c.thread).into()),
        ("stream_ID", view.stream(c.stream).into()),
    ]);
    annotations.push(("src_agent", agent(view, c.source)));
    annotations.push(("dst_agent", agent(view, c.destination)));
    annotations.extend(site(view, c.process, c.site));
    SliceContent {
        category: "memory_copy",
        name: view.direction(c).into(),
        annotations,
    }
}

/// Content of a rank's part in a collective.
fn part<'a>(row: &PartRow, is_wait: bool) -> SliceContent<'a> {
    let name = row.operation.name();
    let mut annotations = numbers(&[
        ("sequence", row.sequence.into()),
        ("ranks", row.ranks.into()),
        ("elements", row.count),
        ("bytes", row.bytes),
        ("wait_ns", row.wait),
        ("skew_ns", row.skew),
        ("transfer_ns", row.transfer),
    ]);
    if row.error != u64::MAX {
        annotations.push(("clock_error_ns", Value::Number(row.error)));
    }
    if let Some(last) = row.last.checked_sub(1) {
        annotations.push(("last_rank", Value::Number(last.into())));
    }
    annotations.push(("bus_bandwidth", Value::Real(row.bus_bandwidth)));
    SliceContent {
        category: "collective",
        name: if is_wait {
            format!("wait for {name}").into()
        } else {
            name.into()
        },
        annotations,
    }
}

/// Product of the sizes.
fn product(sizes: [u32; 3]) -> u64 {
    sizes.iter().map(|size| u64::from(*size)).product()
}
