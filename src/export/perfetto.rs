//! `results.pftrace`: a trace that Perfetto opens. One slice a record, on tracks of threads and of streams or queues;
//! calls are joined to the work that they caused.
//!
//! Times are CLOCK_BOOTTIME, the default clock of a trace. What overlaps on one track without lying inside is cut in
//! the middle of the overlap; the annotations hold the true times.

mod counted;
mod proto;

use super::arguments;
use super::choice::LIBRARIES;
use super::csv::lds_block;
use super::json::strings::{self, Tables};
use super::nesting::{Mark, Row};
use super::sort::{Entry, Sorted, Sorter};
use super::view::{View, direction_number, is_free};
use crate::item::{AgentId, ApiCall, Copy, Dispatch, Span};
use proto::{Event, Trace, Value};
use roctop_ring::record::scratch;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

/// Bytes of slices that are held while they are sorted.
const HELD: usize = 64 << 20;

/// A record with its category.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Slice {
    Hip(Row<ApiCall>),
    Hsa(Row<ApiCall>),
    /// By the library's place.
    Library(usize, Row<ApiCall>),
    Marker(Row<Mark>),
    /// With the values of its counters, by place.
    Dispatch(Row<Dispatch>, Vec<(u32, f64)>),
    Copy(Row<Copy>),
}

impl Slice {
    const fn span(&self) -> Span {
        match self {
            Self::Hip(row) | Self::Hsa(row) | Self::Library(_, row) => row.record.span,
            Self::Marker(row) => row.record.marker.span,
            Self::Dispatch(row, _) => row.record.span,
            Self::Copy(row) => row.record.span,
        }
    }

    const fn id(&self) -> u64 {
        match self {
            Self::Hip(row) | Self::Hsa(row) | Self::Library(_, row) => row.id,
            Self::Marker(row) => row.id,
            Self::Dispatch(row, _) => row.id,
            Self::Copy(row) => row.id,
        }
    }
}

/// A slice on its track.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Placed(Track, Slice);

impl Entry for Placed {
    type Key = (Track, u64, Reverse<u64>, u64);

    fn key(&self) -> Self::Key {
        let span = self.1.span();
        (self.0, span.begin, Reverse(span.end), self.1.id())
    }

    fn heap(&self) -> usize {
        match &self.1 {
            Slice::Dispatch(_, values) => values.capacity() * size_of::<(u32, f64)>(),
            _ => 0,
        }
    }
}

/// A range that may overlap others, by its beginning.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Started(Row<Mark>);

impl Entry for Started {
    type Key = u64;

    fn key(&self) -> u64 {
        self.0.record.span.begin
    }
}

/// What a counter counts.
#[derive(Clone, std::marker::Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Of {
    Copies,
    Allocations,
    Scratch,
}

impl Of {
    fn name(self, view: &View<'_>, agent: usize) -> String {
        let is_gpu = view.nodes.get(agent).is_some_and(crate::topology::Node::is_gpu);
        let kind = if is_gpu { "GPU" } else { "CPU" };
        let label = view.track_label(agent);
        match self {
            Self::Copies => format!("COPY BYTES to {label} ({kind})"),
            Self::Allocations => format!("ALLOCATE BYTES on {label} ({kind})"),
            Self::Scratch => format!("SCRATCH MEMORY on {label} ({kind})"),
        }
    }
}

/// A change of a number of bytes on an agent; of scratch memory, the number from now on.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Change {
    of: Of,
    agent: usize,
    time: u64,
    bytes: i64,
}

impl Entry for Change {
    type Key = (Of, usize, u64, i64);

    fn key(&self) -> Self::Key {
        (self.of, self.agent, self.time, self.bytes)
    }
}

/// Annotations that are numbers.
type Numbers = [(&'static str, u64)];

/// Where a slice lies.
#[derive(Clone, std::marker::Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    let (tracks, slices) = tracks(view)?;
    let threads = threads(&tracks, view.process.pid);
    let mut named = BTreeMap::new();
    for track in tracks {
        let name = name(view, track, &threads);
        let own = uuid(view.process.pid, &name);
        if track == Track::Thread(view.process.pid) {
            trace.thread(own, process, view.process.pid, &view.process.exe)?;
        } else {
            trace.track(own, process, &name)?;
        }
        named.insert(track, own);
    }
    emit(view, &named, &slices, &mut trace)?;
    sizes(view, process, &mut trace)?;
    counted::values(view, process, &mut trace)?;
    counted::gauges(view, process, &mut trace)
}

/// A number for a track: FNV-1a over its process and name.
fn uuid(pid: u32, name: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(pid).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = name.bytes().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    hash | 1
}

/// The tracks, and the slices by track and beginning.
fn tracks(view: &View<'_>) -> io::Result<(BTreeSet<Track>, Sorted<Placed>)> {
    let mut tracks = BTreeSet::new();
    let mut slices = Sorter::new(view.place, HELD);
    let mut put = |track: Track, slice: Slice| {
        tracks.insert(track);
        slices.put(Placed(track, slice))
    };
    let thread = |thread| Track::Thread(view.tid(Some(thread)));
    let rows = &view.rows;
    for row in rows.hip.iter() {
        let row = row?;
        put(thread(row.record.thread), Slice::Hip(row))?;
    }
    for row in rows.hsa.iter() {
        let row = row?;
        put(thread(row.record.thread), Slice::Hsa(row))?;
    }
    for (at, calls) in rows.libraries.iter().enumerate() {
        for row in calls.iter() {
            let row = row?;
            put(thread(row.record.thread), Slice::Library(at, row))?;
        }
    }
    let mut started = Sorter::new(view.place, HELD);
    for row in rows.markers.iter() {
        let row = row?;
        if row.record.range_id == 0 {
            put(thread(row.record.thread), Slice::Marker(row))?;
        } else {
            started.put(Started(row))?;
        }
    }
    let mut free: Vec<u64> = Vec::new();
    for row in started.finish()?.iter() {
        let row = row?.0;
        let span = row.record.span;
        let lane = free.iter().position(|end| *end <= span.begin).unwrap_or(free.len());
        free.resize(free.len().max(lane + 1), 0);
        free[lane] = span.end;
        put(Track::Ranges(lane), Slice::Marker(row))?;
    }
    let by_stream = !view.choice.by_queue && view.run.streams.iter().any(|stream| stream.process == view.process.id);
    let counted = view.counted.rows(&rows.dispatches, false);
    for row in counted.filter(|_| !view.choice.counters_only) {
        let (row, values) = row?.into_values();
        let d = &row.record;
        let track = if by_stream {
            Track::Stream(view.stream(d.stream))
        } else {
            Track::Queue(view.logical(view.node(Some(d.agent))), view.queue(d.queue))
        };
        put(track, Slice::Dispatch(row, values))?;
    }
    for row in rows.copies.iter() {
        let row = row?;
        let c = &row.record;
        let track = if by_stream {
            Track::Stream(view.stream(c.stream))
        } else {
            Track::Copies(view.logical(view.node(c.destination)), view.tid(c.thread))
        };
        put(track, Slice::Copy(row))?;
    }
    Ok((tracks, slices.finish()?))
}

/// Numbers of the threads: the main one has 0, the others count from 1 by their ids.
fn threads(tracks: &BTreeSet<Track>, main: u32) -> HashMap<u32, usize> {
    let mut tids: Vec<u32> = tracks
        .iter()
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

fn name(view: &View<'_>, track: Track, threads: &HashMap<u32, usize>) -> String {
    let number = |tid: u32| threads.get(&tid).copied().unwrap_or(0);
    match track {
        Track::Thread(tid) => format!("THREAD {} ({tid})", number(tid)),
        Track::Ranges(lane) => format!("RANGES {}", lane + 1),
        Track::Stream(stream) => format!("STREAM [\" {stream} \"] "),
        Track::Queue(agent, queue) => format!("COMPUTE {} QUEUE [{queue}] GPU", view.track_label(agent)),
        Track::Copies(agent, tid) => {
            let kind = if view.nodes.get(agent).is_some_and(crate::topology::Node::is_gpu) {
                "GPU"
            } else {
                "CPU"
            };
            format!("COPY to AGENT [{agent}] THREAD [{}] ({kind})", number(tid))
        }
    }
}

/// Writes the slices, those of each track properly nested.
fn emit(
    view: &View<'_>,
    named: &BTreeMap<Track, u64>,
    slices: &Sorted<Placed>,
    trace: &mut Trace<'_>,
) -> io::Result<()> {
    let tables = Tables::new(view);
    let mut slices = slices.iter().peekable();
    let mut open: Vec<u64> = Vec::new();
    let mut cut = None;
    while let Some(placed) = slices.next() {
        let Placed(track, slice) = placed?;
        let own = named.get(&track).copied().unwrap_or_default();
        let mut span = slice.span();
        span.end = span.end.max(span.begin);
        span.begin = cut.take().unwrap_or(span.begin);
        let next = slices
            .peek()
            .and_then(|next| next.as_ref().ok())
            .filter(|next| next.0 == track);
        if let Some(next) = next.map(|next| next.1.span())
            && next.begin < span.end
            && span.end < next.end
        {
            let middle = next.begin.max(span.begin).midpoint(span.end);
            span.end = middle;
            cut = Some(middle);
        }
        let is_last = next.is_none();
        while let Some(end) = open.pop_if(|end| *end <= span.begin) {
            trace.end(own, end)?;
        }
        let end = open.last().map_or(span.end, |outer| span.end.min(*outer));
        begin(view, &tables, own, span.begin, &slice, trace)?;
        if end <= span.begin {
            trace.end(own, span.begin)?;
        } else {
            open.push(end);
        }
        while is_last && let Some(end) = open.pop() {
            trace.end(own, end)?;
        }
    }
    Ok(())
}

fn begin(
    view: &View<'_>,
    tables: &Tables<'_>,
    track: u64,
    time: u64,
    slice: &Slice,
    trace: &mut Trace<'_>,
) -> io::Result<()> {
    let (span, id) = (slice.span(), slice.id());
    let agent = |agent: Option<AgentId>| view.agent(agent).replace(' ', "-");
    let mut annotations: Vec<(&str, Value<'_>)> = vec![
        ("begin_ns", Value::Number(span.begin)),
        ("end_ns", Value::Number(span.end)),
        ("delta_ns", Value::Number(span.duration())),
    ];
    let mut add = |pairs: &Numbers| {
        annotations.extend(pairs.iter().map(|(key, value)| (*key, Value::Number(*value))));
    };
    let (first, second);
    let name: Cow<'_, str>;
    let category = match slice {
        Slice::Hip(row) | Slice::Hsa(row) | Slice::Library(_, row) => {
            let (kind, operation) = tables.of_call(&row.record);
            api(
                &mut add,
                view.tid(Some(row.record.thread)),
                (kind, operation),
                row.id,
                row.ancestor,
            );
            name = view.function(&row.record).into();
            match slice {
                Slice::Hip(_) => {
                    let arguments = arguments::of(view, &row.record);
                    add(&[("stream_ID", view.stream_of_call(row, &arguments).into())]);
                    "hip_api"
                }
                Slice::Library(at, _) => LIBRARIES.get(*at).map_or("", |library| library.list),
                _ => "hsa_api",
            }
        }
        Slice::Marker(row) => {
            let numbers = tables.of_marker(&row.record);
            api(
                &mut add,
                view.tid(Some(row.record.thread)),
                numbers,
                row.id,
                row.ancestor,
            );
            name = view.message(&row.record);
            "marker_api"
        }
        Slice::Dispatch(row, values) => {
            let d = &row.record;
            let kernel = view.run.kernels.get(d.kernel.0 as usize);
            let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
            add(&[
                ("kind", strings::KERNEL_DISPATCH as u64),
                ("corr_id", id),
                ("queue", view.queue(d.queue).into()),
                ("tid", view.tid(d.thread).into()),
                ("kernel_id", u64::from(d.kernel.0) + 1),
                ("Scratch_Size", d.private_size.into()),
                ("LDS_Block_Size", lds_block(view, d)),
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
            let named = |(place, value): &(u32, f64)| Some((&*view.counted.counter(*place)?.name, Value::Real(*value)));
            annotations.extend(values.iter().filter_map(named));
            name = view.kernel_name(row);
            "kernel_dispatch"
        }
        Slice::Copy(row) => {
            let c = &row.record;
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

/// How many there are of a shape.
fn product(sizes: [u32; 3]) -> u64 {
    sizes.iter().map(|size| u64::from(*size)).product()
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

/// Bytes in flight to each agent, bytes held on each, and bytes of scratch memory on each, KiB.
fn sizes(view: &View<'_>, process: u64, trace: &mut Trace<'_>) -> io::Result<()> {
    let mut changes = Sorter::new(view.place, HELD);
    let mut put = |of: Of, agent: Option<AgentId>, time: u64, bytes: i64| {
        let agent = view.logical(view.node(agent));
        changes.put(Change { of, agent, time, bytes })
    };
    for row in view.rows.copies.iter() {
        let copy = row?.record;
        let (span, bytes) = (copy.span, copy.bytes as i64);
        put(Of::Copies, copy.destination, span.begin, bytes)?;
        put(Of::Copies, copy.destination, span.end, bytes.saturating_neg())?;
    }
    for row in view.rows.allocations.iter() {
        let a = row?.record;
        let bytes = a.bytes as i64;
        let change = if is_free(a.operation) {
            bytes.saturating_neg()
        } else {
            bytes
        };
        put(Of::Allocations, a.agent, a.span.end, change)?;
    }
    for row in view.rows.scratches.iter() {
        let s = row?.record;
        // What is freed is told without its size.
        match s.operation {
            scratch::ALLOC => put(Of::Scratch, s.agent, s.span.end, s.bytes as i64)?,
            scratch::FREE => put(Of::Scratch, s.agent, s.span.end, 0)?,
            _ => {}
        }
    }
    let changes = changes.finish()?;
    let mut changes = changes.iter().peekable();
    let mut track = None;
    let mut bytes = 0i64;
    while let Some(change) = changes.next() {
        let change = change?;
        let own = match track {
            Some((of, agent, own)) if (of, agent) == (change.of, change.agent) => own,
            _ => {
                let name = change.of.name(view, change.agent);
                let own = uuid(view.process.pid, &name);
                trace.sizes(own, process, &name)?;
                track = Some((change.of, change.agent, own));
                bytes = 0;
                own
            }
        };
        bytes = if change.of == Of::Scratch {
            change.bytes
        } else {
            bytes.saturating_add(change.bytes)
        };
        // Of several changes at one time the last counts.
        let next = changes.peek().and_then(|next| next.as_ref().ok());
        if next.is_none_or(|next| (next.of, next.agent, next.time) != (change.of, change.agent, change.time)) {
            trace.counter(own, change.time, bytes.max(0) as u64 / 1024)?;
        }
    }
    Ok(())
}
