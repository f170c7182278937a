//! `results.pftrace`: a trace that Perfetto opens. One slice a record, on tracks of threads and of streams or queues;
//! calls are joined to the work that they caused.
//!
//! Times are CLOCK_BOOTTIME, the default clock of a trace. What overlaps on one track without lying inside is cut in
//! the middle of the overlap; the annotations hold the true times.

mod proto;

use super::json::strings::{self, Tables};
use super::nesting::Row;
use super::view::{View, direction_number};
use crate::item::{AgentId, ApiCall, Copy, Dispatch, Marker, Span};
use proto::{Event, Trace, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// A record with its category.
#[derive(Clone, Copy)]
enum Slice<'a> {
    Call(&'static str, &'a Row<'a, ApiCall>),
    Marker(&'a Row<'a, Marker>),
    Dispatch(&'a Row<'a, Dispatch>),
    Copy(&'a Row<'a, Copy>),
}

impl Slice<'_> {
    fn span(&self) -> Span {
        match self {
            Self::Call(_, row) => row.record.span,
            Self::Marker(row) => row.record.span,
            Self::Dispatch(row) => row.record.span,
            Self::Copy(row) => row.record.span,
        }
    }

    fn id(&self) -> u64 {
        match self {
            Self::Call(_, row) => row.id,
            Self::Marker(row) => row.id,
            Self::Dispatch(row) => row.id,
            Self::Copy(row) => row.id,
        }
    }
}

/// Annotations that are numbers.
type Numbers = [(&'static str, u64)];

/// Where a slice lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Track {
    Thread(u32),
    /// Ranges that are started and stopped may overlap: each takes the first track that is free.
    Ranges(usize),
    Stream(u32),
    Queue(usize, u32),
    Copies(usize, u32),
}

/// Writes the trace of one process.
pub(super) fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut trace = Trace::new(out);
    let process = uuid(view.process.pid, "process");
    trace.process(process, view.process.pid, &view.process.exe)?;
    let mut tracks = tracks(view);
    let threads = threads(&tracks, view.process.pid);
    let mut named = Vec::new();
    for track in tracks.keys() {
        let name = name(view, track, &threads);
        let own = uuid(view.process.pid, &name);
        if *track == Track::Thread(view.process.pid) {
            trace.thread(own, process, view.process.pid, &view.process.exe)?;
        } else {
            trace.track(own, process, &name)?;
        }
        named.push(own);
    }
    let tables = Tables::new(view);
    for (slices, own) in tracks.values_mut().zip(named) {
        emit(view, &tables, own, slices, &mut trace)?;
    }
    copied_bytes(view, process, &mut trace)
}

/// A number for a track: FNV-1a over its process and name.
fn uuid(pid: u32, name: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(pid).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = name.bytes().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    hash | 1
}

fn tracks<'a>(view: &'a View<'a>) -> BTreeMap<Track, Vec<Slice<'a>>> {
    let mut tracks: BTreeMap<Track, Vec<Slice<'a>>> = BTreeMap::new();
    let mut put = |track: Track, slice: Slice<'a>| tracks.entry(track).or_default().push(slice);
    let rows = &view.rows;
    for (category, calls) in [("hip_api", &rows.hip), ("hsa_api", &rows.hsa)] {
        for row in calls {
            put(
                Track::Thread(view.tid(Some(row.record.thread))),
                Slice::Call(category, row),
            );
        }
    }
    let mut free: Vec<u64> = Vec::new();
    let mut started: Vec<&Row<'_, Marker>> = Vec::new();
    for row in &rows.markers {
        if row.record.range_id == 0 {
            put(Track::Thread(view.tid(Some(row.record.thread))), Slice::Marker(row));
        } else {
            started.push(row);
        }
    }
    started.sort_by_key(|row| row.record.span.begin);
    for row in started {
        let span = row.record.span;
        let lane = free.iter().position(|end| *end <= span.begin).unwrap_or(free.len());
        free.resize(free.len().max(lane + 1), 0);
        free[lane] = span.end;
        put(Track::Ranges(lane), Slice::Marker(row));
    }
    let by_stream = !view.choice.by_queue && view.run.streams.iter().any(|stream| stream.process == view.process.id);
    for row in &rows.dispatches {
        let d = row.record;
        let track = if by_stream {
            Track::Stream(view.stream(d.stream))
        } else {
            Track::Queue(view.logical(view.node(Some(d.agent))), view.queue(d))
        };
        put(track, Slice::Dispatch(row));
    }
    for row in &rows.copies {
        let c = row.record;
        let track = if by_stream {
            Track::Stream(view.stream(c.stream))
        } else {
            Track::Copies(view.logical(view.node(c.destination)), view.tid(c.thread))
        };
        put(track, Slice::Copy(row));
    }
    tracks
}

/// Numbers of the threads: the main one has 0, the others count from 1 by their ids.
fn threads(tracks: &BTreeMap<Track, Vec<Slice<'_>>>, main: u32) -> HashMap<u32, usize> {
    let mut tids: Vec<u32> = tracks
        .keys()
        .filter_map(|track| match track {
            Track::Thread(tid) | Track::Copies(_, tid) if *tid != main => Some(*tid),
            _ => None,
        })
        .collect();
    tids.sort_unstable();
    tids.dedup();
    let others = tids.into_iter().zip(1..);
    others.chain([(main, 0)]).collect()
}

fn name(view: &View<'_>, track: &Track, threads: &HashMap<u32, usize>) -> String {
    let number = |tid: &u32| threads.get(tid).copied().unwrap_or(0);
    match track {
        Track::Thread(tid) => format!("THREAD {} ({tid})", number(tid)),
        Track::Ranges(lane) => format!("RANGES {}", lane + 1),
        Track::Stream(stream) => format!("STREAM [\" {stream} \"] "),
        Track::Queue(agent, queue) => format!("COMPUTE Agent [{agent}] QUEUE [{queue}] GPU"),
        Track::Copies(agent, tid) => {
            let kind = if view.nodes.get(*agent).is_some_and(crate::topology::Node::is_gpu) {
                "GPU"
            } else {
                "CPU"
            };
            format!("COPY to AGENT [{agent}] THREAD [{}] ({kind})", number(tid))
        }
    }
}

/// Writes the slices of a track, properly nested.
fn emit(
    view: &View<'_>,
    tables: &Tables<'_>,
    track: u64,
    slices: &mut [Slice<'_>],
    trace: &mut Trace<'_>,
) -> io::Result<()> {
    slices.sort_by_key(|slice| (slice.span().begin, Reverse(slice.span().end), slice.id()));
    let mut spans: Vec<Span> = slices.iter().map(Slice::span).collect();
    for span in &mut spans {
        span.end = span.end.max(span.begin);
    }
    for at in 1..spans.len() {
        let (before, span) = (spans[at - 1], spans[at]);
        if span.begin < before.end && before.end < span.end {
            let middle = span.begin.midpoint(before.end);
            spans[at - 1].end = middle;
            spans[at].begin = middle;
        }
    }
    let mut open: Vec<u64> = Vec::new();
    for (slice, span) in slices.iter().zip(spans) {
        while let Some(end) = open.pop_if(|end| *end <= span.begin) {
            trace.end(track, end)?;
        }
        let end = open.last().map_or(span.end, |outer| span.end.min(*outer));
        begin(view, tables, track, span.begin, slice, trace)?;
        if end <= span.begin {
            trace.end(track, span.begin)?;
        } else {
            open.push(end);
        }
    }
    while let Some(end) = open.pop() {
        trace.end(track, end)?;
    }
    Ok(())
}

fn begin(
    view: &View<'_>,
    tables: &Tables<'_>,
    track: u64,
    time: u64,
    slice: &Slice<'_>,
    trace: &mut Trace<'_>,
) -> io::Result<()> {
    let (span, id) = (slice.span(), slice.id());
    let agent = |agent: Option<AgentId>| format!("Agent-{}", view.logical(view.node(agent)));
    let number = |value: u64| Value::Number(value);
    let mut annotations = vec![
        ("begin_ns", number(span.begin)),
        ("end_ns", number(span.end)),
        ("delta_ns", number(span.duration())),
    ];
    let mut add = |pairs: &Numbers| {
        annotations.extend(pairs.iter().map(|(key, value)| (*key, Value::Number(*value))));
    };
    let (first, second);
    let name;
    let category = match slice {
        Slice::Call(category, row) => {
            let (kind, operation) = tables.of_call(row.record);
            api(
                &mut add,
                view.tid(Some(row.record.thread)),
                (kind, operation),
                row.id,
                row.ancestor,
            );
            if *category == "hip_api" {
                add(&[("stream_ID", 0)]);
            }
            name = view.function(row.record).into();
            category
        }
        Slice::Marker(row) => {
            let numbers = tables.of_marker(row.record);
            api(
                &mut add,
                view.tid(Some(row.record.thread)),
                numbers,
                row.id,
                row.ancestor,
            );
            name = view.message(row.record).into();
            "marker_api"
        }
        Slice::Dispatch(row) => {
            let d = row.record;
            let kernel = view.run.kernels.get(d.kernel.0 as usize);
            let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
            let product = |sizes: [u32; 3]| sizes.iter().map(|size| u64::from(*size)).product::<u64>();
            add(&[
                ("kind", strings::KERNEL_DISPATCH as u64),
                ("corr_id", id),
                ("queue", view.queue(d).into()),
                ("tid", view.tid(d.thread).into()),
                ("kernel_id", u64::from(d.kernel.0) + 1),
                ("Scratch_Size", d.private_size.into()),
                ("LDS_Block_Size", d.group_size.next_multiple_of(512).into()),
                ("VGPR_Count", registers.vgpr.into()),
                ("Accum_VGPR_Count", registers.agpr.into()),
                ("SGPR_Count", registers.sgpr.into()),
                ("workgroup_size", product(d.workgroup.map(u32::from))),
                ("grid_size", product(d.grid)),
                ("stream_ID", view.stream(d.stream).into()),
            ]);
            first = agent(Some(d.agent));
            annotations.push(("agent", Value::Text(&first)));
            annotations.push(("agent_type", Value::Text("GPU")));
            name = view.kernel_name(row);
            "kernel_dispatch"
        }
        Slice::Copy(row) => {
            let c = row.record;
            add(&[
                ("kind", strings::MEMORY_COPY as u64),
                ("operation", direction_number(c) as u64),
                ("copy_bytes", c.bytes),
                ("corr_id", id),
                ("tid", view.tid(c.thread).into()),
                ("stream_ID", view.stream(c.stream).into()),
            ]);
            (first, second) = (agent(c.source), agent(c.destination));
            annotations.push(("src_agent", Value::Text(&first)));
            annotations.push(("dst_agent", Value::Text(&second)));
            name = view.direction(c).into();
            "memory_copy"
        }
    };
    let event = Event {
        category,
        name: &name,
        flow: if id == 0 {
            0
        } else {
            uuid(view.process.pid, "flow").wrapping_add(id << 1)
        },
        annotations: &annotations,
    };
    trace.begin(track, time, &event)
}

fn api(add: &mut dyn FnMut(&Numbers), tid: u32, (kind, operation): (usize, usize), id: u64, ancestor: u64) {
    add(&[
        ("tid", tid.into()),
        ("kind", kind as u64),
        ("operation", operation as u64),
        ("corr_id", id),
        ("ancestor_id", ancestor),
    ]);
}

/// Bytes in flight to each agent, KiB.
fn copied_bytes(view: &View<'_>, process: u64, trace: &mut Trace<'_>) -> io::Result<()> {
    let mut changes: BTreeMap<usize, Vec<(u64, i64)>> = BTreeMap::new();
    for row in &view.rows.copies {
        let (span, bytes) = (row.record.span, row.record.bytes as i64);
        let agent = view.logical(view.node(row.record.destination));
        changes
            .entry(agent)
            .or_default()
            .extend([(span.begin, bytes), (span.end, -bytes)]);
    }
    for (agent, mut changes) in changes {
        let kind = if view.nodes.get(agent).is_some_and(crate::topology::Node::is_gpu) {
            "GPU"
        } else {
            "CPU"
        };
        let name = format!("COPY BYTES to Agent [{agent}] ({kind})");
        let track = uuid(view.process.pid, &name);
        trace.sizes(track, process, &name)?;
        changes.sort_unstable();
        let mut bytes = 0i64;
        for (at, change) in changes.iter().enumerate() {
            bytes = bytes.saturating_add(change.1);
            // Of several changes at one time the last counts.
            if changes.get(at + 1).is_none_or(|next| next.0 != change.0) {
                trace.counter(track, change.0, bytes.max(0) as u64 / 1024)?;
            }
        }
    }
    Ok(())
}
