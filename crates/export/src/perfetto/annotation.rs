//! Name, category, flow and annotations of a slice.

use super::proto::{Event, Packets, Value};
use super::slice::Slice;
use super::uuid;
use crate::arguments;
use crate::collectives::PartRow;
use crate::json::strings::{self, Tables};
use crate::options::LIBRARIES;
use crate::records::Row;
use crate::view::View;
use roctop_model::subject::direction_number;
use roctop_trace::item::{AgentId, ApiCall, Copy, Dispatch, ProcessId, Span, ThreadId};
use roctop_trace::site::SiteNumber;
use std::borrow::Cow;

/// What the slices of a process refer to.
pub(super) struct Names<'a> {
    tables: Tables<'a>,
    /// Labels of agents, by id, without spaces.
    agents: Vec<String>,
    /// Label of an unknown agent.
    unknown: String,
}

impl<'a> Names<'a> {
    pub(super) fn new(view: &'a View<'a>) -> Self {
        let label = |agent| view.agent(agent).replace(' ', "-");
        let ids = (0..view.run.agents.len() as u32).map(AgentId);
        Self {
            tables: Tables::new(view),
            agents: ids.map(|agent| label(Some(agent))).collect(),
            unknown: label(None),
        }
    }

    fn agent(&self, agent: Option<AgentId>) -> Value<'_> {
        let known = agent.and_then(|agent| self.agents.get(agent.0 as usize));
        Value::Text(known.unwrap_or(&self.unknown).as_str().into())
    }
}

type Annotations<'a> = Vec<(&'a str, Value<'a>)>;

/// Number of annotations of most slices at most.
const MANY_ANNOTATIONS: usize = 24;

/// Begins a slice on a track, with all fields of its record.
pub(super) fn begin(
    view: &View<'_>,
    names: &Names<'_>,
    (track, time): (u64, u64),
    slice: &Slice,
    packets: &mut Packets,
) {
    let (span, id) = (slice.span(), slice.id());
    let mut all = Vec::with_capacity(MANY_ANNOTATIONS);
    add(
        &mut all,
        &[
            ("begin_ns", span.begin),
            ("end_ns", span.end),
            ("delta_ns", span.duration()),
        ],
    );
    let (category, name) = match slice {
        Slice::Hip(row) => {
            let name = call(view, names, row, &mut all);
            let stream = view.stream_of_call(row, &arguments::of(view, &row.record));
            all.push(("stream_ID", Value::Number(stream.into())));
            ("hip_api", name)
        }
        Slice::Hsa(row) => ("hsa_api", call(view, names, row, &mut all)),
        Slice::Library(at, row) => {
            let category = LIBRARIES.get(*at).map_or("", |library| library.list);
            (category, call(view, names, row, &mut all))
        }
        Slice::Marker(row) => {
            api(
                view,
                row.record.thread,
                names.tables.of_marker(&row.record),
                row,
                &mut all,
            );
            all.extend(along(view, row.record.span));
            ("marker_api", view.message(&row.record))
        }
        Slice::Dispatch(row, values) => ("kernel_dispatch", dispatch(view, names, row, values, &mut all)),
        Slice::Copy(row) => ("memory_copy", copy(view, names, row, &mut all)),
        Slice::Part(row, is_wait) => ("collective", part(row, *is_wait, &mut all)),
    };
    // A message of MPI leads from the sender's call to the receiver's; in other processes' files it has the same number.
    let message = match slice {
        Slice::Library(_, row) => view.matched.flow(&row.record),
        _ => None,
    };
    let flow = match (message, id) {
        (Some(message), _) => message,
        (None, 0) => 0,
        (None, id) => uuid(view.process.pid, "flow").wrapping_add(id << 1),
    };
    let event = Event {
        category,
        name: &name,
        flow,
        annotations: &all,
    };
    packets.begin(track, time, &event);
}

fn add<'a>(all: &mut Annotations<'a>, pairs: &[(&'a str, u64)]) {
    all.extend(pairs.iter().map(|(key, value)| (*key, Value::Number(*value))));
}

/// Adds what calls and markers have; kind and operation are indexes into the strings.
fn api<T>(
    view: &View<'_>,
    thread: ThreadId,
    (kind, operation): (usize, usize),
    row: &Row<T>,
    all: &mut Annotations<'_>,
) {
    add(
        all,
        &[
            ("tid", view.tid(Some(thread)).into()),
            ("kind", kind as u64),
            ("operation", operation as u64),
            ("corr_id", row.id),
            ("ancestor_id", row.ancestor),
        ],
    );
}

fn call<'a>(view: &'a View<'_>, names: &Names<'_>, row: &Row<ApiCall>, all: &mut Annotations<'a>) -> Cow<'a, str> {
    api(view, row.record.thread, names.tables.of_call(&row.record), row, all);
    all.extend(site(view, row.record.process, row.record.site));
    all.extend(along(view, row.record.span));
    view.function(&row.record).into()
}

/// Marks a call or range that began before the stretch of time that is recorded.
fn along<'a>(view: &View<'_>, span: Span) -> Option<(&'a str, Value<'a>)> {
    view.is_along(span).then_some(("taken_along", Value::Number(1)))
}

/// Where in the program a call is; none if that is not known.
fn site<'a>(view: &'a View<'_>, process: ProcessId, number: SiteNumber) -> Option<(&'a str, Value<'a>)> {
    let text = view.site(process, number);
    (!text.is_empty()).then(|| ("site", Value::Text(text.into())))
}

/// Adds the fields of a dispatch, and its counter values, by index; returns its name.
fn dispatch<'a>(
    view: &'a View<'_>,
    names: &'a Names<'_>,
    row: &'a Row<Dispatch>,
    values: &[(u32, f64)],
    all: &mut Annotations<'a>,
) -> Cow<'a, str> {
    let d = &row.record;
    let kernel = view.run.kernels.get(d.kernel.0 as usize);
    let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
    add(
        all,
        &[
            ("kind", strings::KERNEL_DISPATCH as u64),
            ("corr_id", row.id),
            ("queue", view.queue(d.queue).into()),
            ("tid", view.tid(d.thread).into()),
            ("kernel_id", u64::from(d.kernel.0) + 1),
            ("Scratch_Size", d.private_size.into()),
            ("LDS_Block_Size", d.group_size.into()),
            ("VGPR_Count", registers.vgpr.into()),
            ("Accum_VGPR_Count", registers.agpr.into()),
            ("SGPR_Count", registers.sgpr.into()),
            ("workgroup_size", product(d.workgroup.map(u32::from))),
            ("grid_size", product(d.grid)),
            ("stream_ID", view.stream(d.stream).into()),
        ],
    );
    all.push(("agent", names.agent(Some(d.agent))));
    all.push(("agent_type", Value::Text("GPU".into())));
    all.extend(site(view, d.process, d.site));
    let named = |(place, value): &(u32, f64)| Some((&*view.counted.counter(*place)?.name, Value::Real(*value)));
    all.extend(values.iter().filter_map(named));
    view.kernel_name(row)
}

/// Adds the fields of a copy; returns its name.
fn copy<'a>(view: &'a View<'_>, names: &'a Names<'_>, row: &Row<Copy>, all: &mut Annotations<'a>) -> Cow<'a, str> {
    let c = &row.record;
    add(
        all,
        &[
            ("kind", strings::MEMORY_COPY as u64),
            ("operation", direction_number(c.direction) as u64),
            ("copy_bytes", c.bytes),
            ("corr_id", row.id),
            ("tid", view.tid(c.thread).into()),
            ("stream_ID", view.stream(c.stream).into()),
        ],
    );
    all.push(("src_agent", names.agent(c.source)));
    all.push(("dst_agent", names.agent(c.destination)));
    all.extend(site(view, c.process, c.site));
    view.direction(c).into()
}

/// Adds the fields of a rank's part in a collective; returns its name.
fn part<'a>(row: &PartRow, is_wait: bool, all: &mut Annotations<'a>) -> Cow<'a, str> {
    let name = row.operation.name();
    add(
        all,
        &[
            ("sequence", row.sequence.into()),
            ("ranks", row.ranks.into()),
            ("elements", row.count),
            ("bytes", row.bytes),
            ("wait_ns", row.wait),
            ("skew_ns", row.skew),
            ("transfer_ns", row.transfer),
        ],
    );
    if row.error != u64::MAX {
        all.push(("clock_error_ns", Value::Number(row.error)));
    }
    if let Some(last) = row.last.checked_sub(1) {
        all.push(("last_rank", Value::Number(last.into())));
    }
    all.push(("bus_bandwidth", Value::Real(row.bus_bandwidth)));
    if is_wait {
        format!("wait for {name}").into()
    } else {
        name.into()
    }
}

/// Product of the sizes.
fn product(sizes: [u32; 3]) -> u64 {
    sizes.iter().map(|size| u64::from(*size)).product()
}
