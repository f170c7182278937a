//! `results.pftrace`: a Perfetto trace. It has one slice per record, on tracks of threads and of streams or queues;
//! flows connect calls with the work that they caused.
//!
//! Times are CLOCK_BOOTTIME, a trace's default clock. Slices that overlap on a track without nesting are cut in the
//! middle of the overlap; their annotations have the true times.

mod annotation;
mod counted;
mod proto;
mod sizes;
mod slice;
mod stack;

use super::json::strings::Tables;
use super::sort::Sorted;
use super::view::View;
use proto::{Event, Trace, Value};
use slice::{Placed, Slice, Track};
use stack::Stack;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Bytes of a file from which on the rest goes to another one: readers of traces take less than 2 GiB.
pub(super) const MAX_BYTES: u64 = 1_900_000_000;

/// Memory for slices while they are sorted, bytes.
const SORT_BUFFER_BYTES: usize = 64 << 20;

/// Name of a file of a trace.
pub(super) fn file_name(number: usize) -> String {
    match number {
        0 => "results.pftrace".into(),
        more => format!("results_{}.pftrace", more + 1),
    }
}

/// Writes one file of the trace of a process; returns how many files there are of at most about `limit` bytes.
pub(super) fn write(view: &View<'_>, number: usize, limit: u64, out: &mut dyn Write) -> io::Result<usize> {
    let mut trace = Trace::new(out, number, limit);
    let process = uuid(view.process.pid, "process");
    trace.process(process, view.process.pid, &view.process.exe)?;
    incomplete(view, process, &mut trace)?;
    let (tracks, slices) = slice::tracks(view)?;
    let threads = slice::threads(&tracks, view.process.pid);
    let mut named = BTreeMap::new();
    for track in tracks {
        let name = slice::name(view, track, &threads);
        let own = uuid(view.process.pid, &name);
        if track == Track::Thread(view.process.pid) {
            trace.thread(own, process, view.process.pid, &view.process.exe)?;
        } else {
            trace.track(own, process, &name)?;
        }
        named.insert(track, own);
    }
    emit(view, &named, &slices, &mut trace)?;
    sizes::write(view, process, &mut trace)?;
    counted::values(view, process, &mut trace)?;
    counted::gauges(view, process, &mut trace)?;
    Ok(trace.files())
}

/// Writes reports of unrecorded work as instants on a separate track.
fn incomplete(view: &View<'_>, process: u64, trace: &mut Trace<'_>) -> io::Result<()> {
    let (first, _) = view.times();
    for text in view.incomplete() {
        let event = Event {
            category: "roctop",
            name: "INCOMPLETE",
            flow: 0,
            annotations: &[("reason", Value::Text(text.into()))],
        };
        trace.instant(process, first, &event)?;
    }
    Ok(())
}

/// Track id: FNV-1a over process and name.
fn uuid(pid: u32, name: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(pid).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = name.bytes().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    hash | 1
}

/// Writes the slices; those of each track are properly nested.
fn emit(
    view: &View<'_>,
    named: &BTreeMap<Track, u64>,
    slices: &Sorted<Placed>,
    trace: &mut Trace<'_>,
) -> io::Result<()> {
    let tables = Tables::new(view);
    let mut slices = slices.iter().peekable();
    let mut stack = Stack::default();
    let mut open: Vec<Slice> = Vec::new();
    while let Some(placed) = slices.next() {
        let Placed(track, slice) = placed?;
        let own = named.get(&track).copied().unwrap_or_default();
        let next = slices.peek().and_then(|next| next.as_ref().ok());
        let next = next.filter(|next| next.0 == track).map(|next| next.1.span());
        let step = stack.step(slice.span(), next);
        for end in step.before {
            trace.end(own, end)?;
            open.pop();
        }
        if trace.is_full() {
            // Each file has its part of the slices that are open.
            for _ in &open {
                trace.end(own, step.begin)?;
            }
            trace.divide();
            for over in &open {
                annotation::begin(view, &tables, (own, step.begin), over, trace)?;
            }
        }
        annotation::begin(view, &tables, (own, step.begin), &slice, trace)?;
        open.push(slice);
        for end in step.after {
            trace.end(own, end)?;
            open.pop();
        }
    }
    Ok(())
}
