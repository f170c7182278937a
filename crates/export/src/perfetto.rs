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
use super::sort::{Iter, Sorted};
use super::view::View;
use proto::{Event, Packets, Trace, Value};
use slice::{Placed, Slice, Track};
use stack::{Stack, Step};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::iter::Peekable;

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
    view.find_streams()?;
    let mut trace = Trace::new(out, number, limit);
    let process = uuid(view.process.pid, "process");
    trace.describe(|packets| packets.process(process, view.process.pid, &view.process.exe))?;
    incomplete(view, process, &mut trace)?;
    let (tracks, slices) = slice::tracks(view)?;
    let threads = slice::threads(&tracks, view.process.pid);
    let mut named = BTreeMap::new();
    for track in tracks {
        let name = slice::name(view, track, &threads);
        let own = uuid(view.process.pid, &name);
        if track == Track::Thread(view.process.pid) {
            trace.describe(|packets| packets.thread(own, process, view.process.pid, &view.process.exe))?;
        } else {
            trace.describe(|packets| packets.track(own, process, &name))?;
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
    let mut packets = Packets::default();
    for text in view.incomplete() {
        let event = Event {
            category: "roctop",
            name: "INCOMPLETE",
            flow: 0,
            annotations: &[("reason", Value::Text(text.into()))],
        };
        packets.instant(process, first, &event);
    }
    trace.events(&packets.take())
}

/// Track id: FNV-1a over process and name.
fn uuid(pid: u32, name: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(pid).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = name.bytes().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    hash | 1
}

/// Writes the slices; those of each track are properly nested. Parts of them are encoded on all threads.
fn emit(
    view: &View<'_>,
    named: &BTreeMap<Track, u64>,
    slices: &Sorted<Placed>,
    trace: &mut Trace<'_>,
) -> io::Result<()> {
    let tables = Tables::new(view);
    let mut parts = Parts {
        named,
        slices: slices.iter().peekable(),
        stack: Stack::default(),
        open: Vec::new(),
        size: trace.slices_per_part(),
    };
    let encoded = |part: io::Result<Part>| {
        let part = part?;
        let mut packets = Packets::default();
        for (own, slice, step) in &part.slices {
            step.before.iter().for_each(|end| packets.end(*own, *end));
            annotation::begin(view, &tables, (*own, step.begin), slice, &mut packets);
            step.after.iter().for_each(|end| packets.end(*own, *end));
        }
        Ok((packets.take(), part.open, part.begin))
    };
    let parts = std::iter::from_fn(|| parts.next().transpose());
    view.place
        .in_order(parts, encoded, |(bytes, open, begin): (Vec<u8>, Vec<_>, u64)| {
            if trace.is_full() {
                // Each file has its part of the slices that are open.
                let (mut ends, mut begins) = (Packets::default(), Packets::default());
                for (own, slice) in &open {
                    ends.end(*own, begin);
                    annotation::begin(view, &tables, (*own, begin), slice, &mut begins);
                }
                trace.events(&ends.take())?;
                trace.divide();
                trace.events(&begins.take())?;
            }
            trace.events(&bytes)
        })
}

/// Consecutive slices, which are encoded together.
struct Part {
    /// Track, content and events of each.
    slices: Vec<(u64, Slice, Step)>,
    /// Slices that are open before, outermost first, with their tracks.
    open: Vec<(u64, Slice)>,
    /// Time of the first event.
    begin: u64,
}

/// Divides slices into parts.
struct Parts<'a> {
    named: &'a BTreeMap<Track, u64>,
    slices: Peekable<Iter<'a, Placed>>,
    stack: Stack,
    open: Vec<(u64, Slice)>,
    size: usize,
}

impl Parts<'_> {
    /// The next part; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Part>> {
        let mut part = Part {
            slices: Vec::with_capacity(self.size),
            open: self.open.clone(),
            begin: 0,
        };
        while part.slices.len() < self.size
            && let Some(placed) = self.slices.next()
        {
            let Placed(track, slice) = placed?;
            let own = self.named.get(&track).copied().unwrap_or_default();
            let next = self.slices.peek().and_then(|next| next.as_ref().ok());
            let next = next.filter(|next| next.0 == track).map(|next| next.1.span());
            let step = self.stack.step(slice.span(), next);
            if part.slices.is_empty() {
                part.begin = step.before.first().copied().unwrap_or(step.begin);
            }
            self.open.truncate(self.open.len().saturating_sub(step.before.len()));
            self.open.push((own, slice.clone()));
            self.open.truncate(self.open.len().saturating_sub(step.after.len()));
            part.slices.push((own, slice, step));
        }
        Ok((!part.slices.is_empty()).then_some(part))
    }
}
