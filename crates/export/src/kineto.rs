//! `kineto.pt.trace.json`: the Chrome trace that PyTorch's profiler (Kineto) writes on ROCm, for Holistic Trace Analysis,
//! TensorBoard and other readers of it. One file per process, which is one rank.
//!
//! Categories keep Kineto's names, which are CUDA's also on ROCm: `cuda_runtime` for HIP calls, `cuda_driver` for HSA
//! calls. A stream's number is at least 1, as in Kineto: readers take lower ones for the host.

mod annotation;
mod device;
mod event;
mod work;

use crate::json::writer::text;
use crate::numbers::Numbers;
use crate::options::Kind;
use crate::records::{Mark, Row};
use crate::sort::{Entry, Sorted, Sorter};
use crate::view::View;
use event::{Events, Track};
use roctop_trace::item::{ApiCall, Process, ThreadId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

/// Memory for ids while they are sorted, bytes.
const SORT_BUFFER_BYTES: usize = 16 << 20;
/// Position of a GPU among the processes on screen: below all of them.
const GPU_SORT_INDEX: u64 = 5_000_000;

/// HIP's calls that Kineto does not record on ROCm; nor does it record those of HIP's compiler API. Holistic Trace Analysis expects
/// that a call takes long enough to be distinguished from its neighbours.
const LEFT_OUT: [&str; 11] = [
    "hipCtxSetCurrent",
    "hipDeviceGetAttribute",
    "hipGetDevice",
    "hipGetDeviceCount",
    "hipGetDeviceProperties",
    "hipGetDevicePropertiesR0600",
    "hipGetLastError",
    "hipModuleGetFunction",
    "hipPeekAtLastError",
    "hipRuntimeGetVersion",
    "hipSetDevice",
];

/// Writes the trace of one process.
pub(super) fn write(view: &View<'_>, stem: &Path, out: &mut dyn Write) -> io::Result<()> {
    let origin = view.origin();
    writeln!(out, "{{\n\"schemaVersion\": 1,\n\"deviceProperties\": [")?;
    device::properties(view, out)?;
    writeln!(out, "],")?;
    distribution(view, out)?;
    let warnings: Vec<String> = view.incomplete().map(text).collect();
    if !warnings.is_empty() {
        writeln!(out, "\"WARNING\": [{}],", warnings.join(", "))?;
    }
    writeln!(
        out,
        "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": {},\n\"traceEvents\": [",
        view.facts.wall_time(origin)
    )?;
    let mut events = Events::new(out, origin);
    names(view, &mut events)?;
    let caused = caused(view)?;
    for row in view.rows.markers.iter() {
        marker(view, &row?, &mut events)?;
    }
    let rows = &view.rows;
    let lists = [(&rows.hip, "cuda_runtime"), (&rows.hsa, "cuda_driver")].into_iter();
    // A framework records its collectives as operators.
    for (list, category) in lists.chain(rows.libraries.iter().map(|list| (list, "cpu_op"))) {
        for row in list.iter() {
            call(view, &row?, category, &caused, &mut events)?;
        }
    }
    work::kernels(view, &mut events)?;
    work::copies(view, &mut events)?;
    annotation::write(view, &mut events)?;
    let (_, last) = view.times();
    events.end(last)?;
    caused.check()?;
    let name = stem.file_name().unwrap_or_default().to_string_lossy();
    writeln!(out, "\n],\n\"traceName\": {}\n}}", text(&name))
}

/// Writes the rank, if the process has one. Readers search for the text `"rank": `, with a space.
fn distribution(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Some(rank) = view.process.rank else { return Ok(()) };
    let last = view.run.processes.iter().filter_map(|process| process.rank).max();
    let size = u64::from(last.unwrap_or(rank)) + 1;
    write!(
        out,
        "\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {rank}, \"world_size\": {size}"
    )?;
    let groups = groups(view);
    if !groups.is_empty() {
        write!(out, ", \"pg_count\": {}, \"pg_config\": [", groups.len())?;
        out.write_all(groups.join(", ").as_bytes())?;
        write!(out, "]")?;
    }
    writeln!(out, "}},")
}

/// Process groups of this process: its communicators. Their ranks are those of the job if all are recorded.
fn groups(view: &View<'_>) -> Vec<String> {
    let run = view.run;
    let own = run
        .communicators
        .iter()
        .filter(|row| row.is_known && row.ranks.values().any(|process| *process == view.process.id));
    let groups = own.map(|row| {
        let in_job = row.ranks.values().map(|process| {
            let process = run.processes.get(process.0 as usize)?;
            process.rank
        });
        let ranks: Option<Vec<u32>> = in_job.collect();
        let ranks = ranks.filter(|ranks| ranks.len() == row.size as usize);
        let ranks = ranks.map(|ranks| format!(", \"ranks\": {ranks:?}"));
        format!(
            "{{\"pg_name\": \"{number}\", \"pg_desc\": \"comm {number}\", \"backend_config\": \"cuda:nccl\", \"pg_size\": {}{}}}",
            row.size,
            ranks.unwrap_or_default(),
            number = row.number,
        )
    });
    groups.collect()
}

/// Writes the names of the process, its threads, its GPUs and their streams.
fn names(view: &View<'_>, events: &mut Events<'_>) -> io::Result<()> {
    let process = view.process;
    process_name(process, events)?;
    for tid in threads(view)? {
        let known = view
            .run
            .threads
            .iter()
            .find(|thread| thread.process == process.id && thread.tid == tid);
        let name = known.map(|thread| &*thread.name).filter(|name| !name.is_empty());
        let name = name.map_or_else(|| format!("thread {tid}"), |name| format!("thread {tid} ({name})"));
        events.thread(Track::host(process.pid, tid), &name, tid.into())?;
    }
    let mut known = None;
    for (device, stream) in work::streams(view)? {
        if known != Some(device) {
            events.process(device, &process.exe, &format!("GPU {device}"), GPU_SORT_INDEX + device)?;
            known = Some(device);
        }
        events.thread(
            Track {
                pid: device,
                tid: stream,
            },
            &format!("stream {stream}"),
            stream,
        )?;
    }
    Ok(())
}

fn process_name(process: &Process, events: &mut Events<'_>) -> io::Result<()> {
    events.process(process.pid.into(), &process.exe, "CPU", process.pid.into())
}

/// Threads with calls or markers.
fn threads(view: &View<'_>) -> io::Result<BTreeSet<u32>> {
    let rows = &view.rows;
    let mut ids: BTreeSet<ThreadId> = BTreeSet::new();
    for list in [&rows.hip, &rows.hsa].into_iter().chain(&rows.libraries) {
        for row in list.iter() {
            ids.insert(row?.record.thread);
        }
    }
    for row in rows.markers.iter() {
        ids.insert(row?.record.thread);
    }
    Ok(ids.into_iter().map(|id| view.tid(Some(id))).collect())
}

/// Id of a call that caused work.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Id(u64);

impl Entry for Id {
    type Key = u64;

    fn key(&self) -> u64 {
        self.0
    }
}

/// 1 for each call that caused work: an arrow begins there.
fn caused(view: &View<'_>) -> io::Result<Numbers> {
    let mut ids = Sorter::new(view.place, SORT_BUFFER_BYTES);
    for row in view.rows.dispatches.iter() {
        ids.put(Id(row?.id))?;
    }
    for row in view.rows.copies.iter() {
        ids.put(Id(row?.id))?;
    }
    let ids: Sorted<Id> = ids.finish()?;
    Numbers::new(view.place, ids.iter().map(|id| Ok((id?.0, 1))))
}

/// Writes a call. Arguments keep the names that Kineto gives them; one called `stream` would make the call GPU work.
fn call(
    view: &View<'_>,
    row: &Row<ApiCall>,
    category: &str,
    caused: &Numbers,
    events: &mut Events<'_>,
) -> io::Result<()> {
    let call = &row.record;
    let is_cause = caused.get(row.id) != 0;
    if !is_cause && (view.kind(call) == Kind::HipCompiler || LEFT_OUT.contains(&view.function(call))) {
        return Ok(());
    }
    let track = Track::host(view.process.pid, view.tid(Some(call.thread)));
    let mut event = events.complete(category, view.function(call), track, call.span)?;
    event.external(row.range.id)?;
    event.number("correlation", row.id)?;
    for argument in crate::arguments::of(view, call) {
        match &*argument.name {
            "sizeBytes" | "size" => event.raw("bytes", argument.value.parse::<u64>().ok())?,
            "dst" => event.text("dst", &argument.value)?,
            "src" => event.text("src", &argument.value)?,
            "ptr" => event.text("ptr", &argument.value)?,
            _ => {}
        }
    }
    event.end()?;
    if is_cause {
        events.arrow('s', row.id, track, call.span.begin)?;
    }
    Ok(())
}

/// Writes a mark, range or other ROC-TX call. Start/stop ranges may overlap, so that they are asynchronous events.
fn marker(view: &View<'_>, row: &Row<Mark>, events: &mut Events<'_>) -> io::Result<()> {
    let mark = &row.record;
    let track = Track::host(view.process.pid, view.tid(Some(mark.thread)));
    let name = view.message(mark);
    if mark.call.is_some() || mark.span.begin == mark.span.end {
        events.instant(&name, track, mark.span.begin)
    } else if mark.range_id != 0 {
        events.asynchronous(&name, row.id, track, mark.span)
    } else {
        let mut event = events.complete("user_annotation", &name, track, mark.span)?;
        event.external(row.id)?;
        event.end()
    }
}
