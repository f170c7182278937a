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

use super::sort::{Chunks, Sorted};
use super::view::View;
use proto::{Event, Packets, Trace, Value};
use roctop_trace::item::Span;
use slice::{Placed, Track};
use stack::{Stack, Step};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

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
    trace.describe(|packets| packets.process(process, view.process.pid, &view.process.exe))?;
    incomplete(view, process, &mut trace)?;
    let beside = || {
        view.find_streams()?;
        sizes::changes(view)
    };
    let (changes, placed) = view.place.both(beside, || slice::tracks(view));
    let (changes, (tracks, slices)) = (changes?, placed?);
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
    sizes::write(view, process, &changes, &mut trace)?;
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
    let names = annotation::Names::new(view);
    let own = |track: Track| named.get(&track).copied().unwrap_or_default();
    let encoded = |part: io::Result<Part>| {
        let part = part?;
        let mut packets = Packets::default();
        let mut ends = part.ends.iter();
        for (Placed(track, slice), step) in part.slices().iter().zip(&part.steps) {
            let own = own(*track);
            let before = ends.by_ref().take(step.before);
            before.for_each(|end| packets.end(own, *end));
            annotation::begin(view, &names, (own, step.begin), slice, &mut packets);
            let after = ends.by_ref().take(step.after);
            after.for_each(|end| packets.end(own, *end));
        }
        Ok((packets.take(), part.open, part.begin))
    };
    let mut parts = Parts::new(slices, trace.slices_per_part());
    let parts = std::iter::from_fn(move || parts.next().transpose());
    let write = |(bytes, open, begin): (Vec<u8>, Vec<Placed>, u64)| {
        if trace.is_full() {
            // Each file has its part of the slices that are open.
            let (mut ends, mut begins) = (Packets::default(), Packets::default());
            for Placed(track, slice) in &open {
                ends.end(own(*track), begin);
                annotation::begin(view, &names, (own(*track), begin), slice, &mut begins);
            }
            trace.events(&ends.take())?;
            trace.divide();
            trace.events(&begins.take())?;
        }
        trace.events(&bytes)
    };
    view.place
        .made_apart(parts, |parts| view.place.in_order(parts, encoded, write))
}

/// Slices that are read together.
#[derive(Default)]
struct Chunk {
    slices: Vec<Placed>,
    /// Track and time of each, which are found while other threads read.
    outline: Vec<(Track, Span)>,
}

impl Chunk {
    fn new(slices: Vec<Placed>) -> Self {
        let outline = slices.iter().map(|Placed(track, slice)| (*track, slice.span()));
        Self {
            outline: outline.collect(),
            slices,
        }
    }
}

/// Consecutive slices, which are encoded together.
struct Part {
    /// The slices are a range of these.
    chunk: Arc<Chunk>,
    range: Range<usize>,
    /// Events of each.
    steps: Vec<Step>,
    /// Times at which slices end.
    ends: Vec<u64>,
    /// Slices that are open before, outermost first.
    open: Vec<Placed>,
    /// Time of the first event.
    begin: u64,
}

impl Part {
    fn slices(&self) -> &[Placed] {
        self.chunk.slices.get(self.range.clone()).unwrap_or_default()
    }
}

/// Divides slices into parts.
struct Parts<'a> {
    chunks: Chunks<'a, Placed, Chunk>,
    /// The chunk of the next slice, and that slice.
    chunk: Arc<Chunk>,
    at: usize,
    stack: Stack,
    /// Slices of earlier parts that are open, outermost first.
    open: Vec<Placed>,
    /// Number of slices of a part at most.
    size: usize,
}

/// An open slice.
#[derive(Clone, Copy)]
enum Open {
    /// Of an earlier part, by number.
    Earlier(usize),
    /// Of this part, by number in its chunk.
    Own(usize),
}

impl<'a> Parts<'a> {
    fn new(slices: &'a Sorted<Placed>, size: usize) -> Self {
        Self {
            chunks: slices.chunks_as(Chunk::new),
            chunk: Arc::default(),
            at: 0,
            stack: Stack::default(),
            open: Vec::new(),
            size,
        }
    }

    /// Reads slices if none is left.
    fn fill(&mut self) -> io::Result<()> {
        while self.at == self.chunk.slices.len()
            && let Some(chunk) = self.chunks.next()
        {
            (self.chunk, self.at) = (Arc::new(chunk?), 0);
        }
        Ok(())
    }

    /// The next part; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Part>> {
        self.fill()?;
        let chunk = self.chunk.clone();
        let range = self.at..chunk.slices.len().min(self.at + self.size);
        if range.is_empty() {
            return Ok(None);
        }
        self.at = range.end;
        self.fill()?;
        let following = self.chunk.outline.get(self.at);
        let outline = chunk.outline.get(range.clone()).unwrap_or_default();
        let earlier = std::mem::take(&mut self.open);
        let (mut steps, mut ends) = (Vec::with_capacity(range.len()), Vec::with_capacity(range.len()));
        let mut open: Vec<Open> = (0..earlier.len()).map(Open::Earlier).collect();
        let mut begin = 0;
        for (at, (track, span)) in outline.iter().enumerate() {
            let next = outline.get(at + 1).or(following);
            let next = next.filter(|next| next.0 == *track).map(|next| next.1);
            let step = self.stack.step(*span, next, &mut ends);
            if at == 0 {
                let first = ends.first().filter(|_| step.before > 0);
                begin = first.copied().unwrap_or(step.begin);
            }
            open.truncate(open.len().saturating_sub(step.before));
            open.push(Open::Own(range.start + at));
            open.truncate(open.len().saturating_sub(step.after));
            steps.push(step);
        }
        let slice = |open: Open| match open {
            Open::Earlier(number) => earlier.get(number).cloned(),
            Open::Own(number) => chunk.slices.get(number).cloned(),
        };
        self.open = open.into_iter().filter_map(slice).collect();
        Ok(Some(Part {
            chunk,
            range,
            steps,
            ends,
            open: earlier,
            begin,
        }))
    }
}
