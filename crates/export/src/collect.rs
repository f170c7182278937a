//! Separates a recording's items: named entities stay in memory, records are sorted by process and begin.

use super::collectives::{self, PartRow};
use super::run::Run;
use super::sample_streams::{Measured, StreamCollector};
use super::sort::{Entry, Sorted, Sorter};
use super::texts::Texts;
use super::workspace::Workspace;
use roctop_model::collectives::Collectives;
use roctop_model::{Fresh, Mode, Options, Snapshot, Store};
use roctop_ring::record::{engine, memory};
use roctop_source::progress::Progress;
use roctop_source::recording::{Merged, Replay};
use roctop_trace::decode::Output;
use roctop_trace::item::{Allocation, ApiCall, Copy, Dispatch, Item, Marker, Nanos, ProcessId, Scratch, Span};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory for records while they are collected, bytes.
const SORT_BUFFER_BYTES: usize = 32 << 20;
/// Memory for parts of collectives while they are collected, bytes.
const PART_BUFFER_BYTES: usize = 16 << 20;

/// A record.
#[derive(Clone, std::marker::Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    Call(ApiCall),
    Marker(Marker),
    Dispatch(Dispatch),
    Copy(Copy),
    Allocation(Allocation),
    Scratch(Scratch),
}

impl Event {
    pub(crate) const fn process(&self) -> ProcessId {
        match self {
            Self::Call(call) => call.process,
            Self::Marker(marker) => marker.process,
            Self::Dispatch(dispatch) => dispatch.process,
            Self::Copy(copy) => copy.process,
            Self::Allocation(allocation) => allocation.process,
            Self::Scratch(scratch) => scratch.process,
        }
    }

    /// Begin; for work, the submission if it is known.
    pub(crate) const fn start(&self) -> Nanos {
        match self {
            Self::Call(call) => call.span.begin,
            Self::Marker(marker) => marker.span.begin,
            Self::Allocation(allocation) => allocation.span.begin,
            Self::Scratch(scratch) => scratch.span.begin,
            Self::Dispatch(Dispatch { submit: 0, span, .. }) | Self::Copy(Copy { submit: 0, span, .. }) => span.begin,
            Self::Dispatch(Dispatch { submit, .. }) | Self::Copy(Copy { submit, .. }) => *submit,
        }
    }
}

impl Entry for Event {
    /// Enclosing records come before enclosed ones, and calls before the work that they cause.
    type Key = (ProcessId, Nanos, u8, Reverse<Nanos>, u64);

    fn key(&self) -> Self::Key {
        let (class, end, order) = match self {
            Self::Call(call) => (0, call.span.end, call.correlation),
            Self::Marker(marker) => (0, marker.span.end, marker.correlation),
            Self::Dispatch(dispatch) => (1, Nanos::MAX, dispatch.dispatch_id),
            Self::Copy(copy) => (1, Nanos::MAX, copy.correlation),
            Self::Allocation(allocation) => (1, Nanos::MAX, allocation.address),
            Self::Scratch(scratch) => (1, Nanos::MAX, scratch.correlation),
        };
        (self.process(), self.start(), class, Reverse(end), order)
    }
}

/// Contents of one or more recordings.
pub struct Collected {
    /// Named entities; without records, texts and measurements.
    pub run: Run,
    /// Records, sorted by process and begin.
    pub(crate) events: Sorted<Event>,
    /// Texts of markers and of arguments.
    pub(crate) texts: Texts,
    /// Counters, samples and gauges.
    pub(crate) measured: Measured,
    /// Parts of complete collectives, sorted by process and call.
    pub(crate) parts: Sorted<PartRow>,
    /// Begin of the first record.
    pub first: Nanos,
    /// Origin of time ranges.
    pub beginning: Nanos,
    /// Rows that the records belong to, if the filter compares numbers of whole rows.
    pub rows: Option<Arc<Snapshot>>,
}

/// Collects items.
pub struct Collector {
    run: Run,
    events: Sorter<Event>,
    texts: Texts,
    measuring: StreamCollector,
    collectives: Collectives,
    parts: Sorter<PartRow>,
    /// Begin of the first record; threads that sort find it.
    first: Arc<AtomicU64>,
    /// In-flight dispatches at the last reading of each process.
    in_flight: BTreeMap<ProcessId, Vec<Dispatch>>,
    failed: Option<io::Error>,
}

impl Collector {
    /// A collector that sorts at `place` when memory does not suffice.
    pub fn new(place: &Workspace) -> Self {
        Self {
            run: Run::default(),
            events: Sorter::new(place, SORT_BUFFER_BYTES),
            texts: Texts::new(place),
            measuring: StreamCollector::new(place),
            collectives: Collectives::keeping_all(),
            parts: Sorter::new(place, PART_BUFFER_BYTES),
            first: Arc::new(AtomicU64::new(Nanos::MAX)),
            in_flight: BTreeMap::new(),
            failed: None,
        }
    }

    /// Takes what was decoded, and leaves none of it.
    pub fn take(&mut self, output: &mut Output) {
        if self.failed.is_none() {
            self.failed = self.put_all(output).err();
        }
    }

    fn put_all(&mut self, output: &mut Output) -> io::Result<()> {
        for item in output.items.drain(..) {
            self.put(item)?;
        }
        if self.collectives.is_active() {
            output.calls.iter().for_each(|call| self.collectives.returned(call));
            let dispatches = output.dispatches.iter();
            dispatches.for_each(|dispatch| self.collectives.dispatch(dispatch));
        }
        self.put_later(std::mem::take(&mut output.calls), Event::Call, |call| call.span.begin)?;
        let dispatches = std::mem::take(&mut output.dispatches);
        self.put_later(dispatches, Event::Dispatch, |dispatch| dispatch.span.begin)?;
        self.complete()
    }

    /// Adds records, on another thread if there are several.
    fn put_later<T: Send + 'static>(
        &mut self,
        records: Vec<T>,
        event: impl Fn(T) -> Event + Send + 'static,
        begin: impl Fn(&T) -> Nanos + Send + 'static,
    ) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let first = self.first.clone();
        self.events.append(records.len(), move |events| {
            let begins = records.iter().map(begin).filter(|begin| *begin > 0);
            first.fetch_min(begins.min().unwrap_or(Nanos::MAX), Ordering::Relaxed);
            events.extend(records.into_iter().map(event));
        })
    }

    /// Stores the collectives that are complete.
    fn complete(&mut self) -> io::Result<()> {
        for (collective, times) in self.collectives.take_done() {
            for row in collectives::rows(&collective, &times) {
                self.parts.put(row)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, item: Item) -> io::Result<()> {
        collectives::put(&mut self.collectives, &item);
        let (event, begin) = match item {
            Item::Api(call) | Item::CallAlong(call) => (Event::Call(call), call.span.begin),
            Item::Mark(marker) | Item::Range(marker) | Item::RangeAlong(marker) => {
                (Event::Marker(marker), marker.span.begin)
            }
            Item::Dispatch(dispatch) => (Event::Dispatch(dispatch), dispatch.span.begin),
            // rocprofv3 has no copies made by calls: their times are the calls'.
            Item::Copy(copy) if copy.engine == engine::CALL => return Ok(()),
            Item::Copy(copy) => (Event::Copy(copy), copy.span.begin),
            // It has no mapping of virtual memory either.
            Item::Allocation(allocation) if allocation.operation > memory::VMEM_FREE => return Ok(()),
            Item::Allocation(allocation) => (Event::Allocation(allocation), allocation.span.begin),
            Item::Scratch(scratch) => (Event::Scratch(scratch), scratch.span.begin),
            Item::Text(id, text) => return self.texts.put(id, text),
            Item::CounterValue(value) => return self.measuring.value(value),
            Item::CounterInstances(values) => return self.measuring.instances(values),
            Item::PcSample(sample) => return self.measuring.sample(sample),
            Item::Gauges(sample) => return self.measuring.gauges(&sample),
            Item::Open(open) => {
                self.in_flight.insert(open.process, open.dispatches);
                return Ok(());
            }
            other => {
                self.run.add(other);
                return Ok(());
            }
        };
        if begin > 0 {
            self.first.fetch_min(begin, Ordering::Relaxed);
        }
        self.events.put(event)
    }

    /// Finishes the collection.
    ///
    /// Errors: temporary files could not be written.
    pub fn finish(mut self) -> io::Result<Collected> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.collectives.finish();
        self.complete()?;
        self.run.communicators = self.collectives.communicators().to_vec();
        // For a process that continues, the outcome of in-flight work is unknown.
        let exits = &self.run.exits;
        let ended = self
            .in_flight
            .into_iter()
            .filter(|(process, _)| exits.contains_key(process));
        for mut dispatch in ended.flat_map(|(_, dispatches)| dispatches) {
            dispatch.span = Span {
                begin: dispatch.submit,
                end: dispatch.submit,
            };
            self.events.put(Event::Dispatch(dispatch))?;
        }
        let events = self.events.finish()?;
        let first = self.first.load(Ordering::Relaxed);
        Ok(Collected {
            measured: self.measuring.finish(&self.run.processes)?,
            parts: self.parts.finish()?,
            run: self.run,
            events,
            texts: self.texts,
            first: if first == Nanos::MAX { 0 } else { first },
            beginning: 0,
            rows: None,
        })
    }
}

/// A range of time after the beginning.
fn span_of(range: Option<(Nanos, Nanos)>, beginning: Option<Nanos>) -> Option<Span> {
    range.zip(beginning).map(|((from, to), begin)| Span {
        begin: begin.saturating_add(from),
        end: begin.saturating_add(to),
    })
}

/// The rows that what [`collect`] collects belongs to, for filters on numbers of whole rows.
///
/// Errors: a recording cannot be read.
pub fn rows(
    whole: &Merged<'_>,
    range: Option<(Nanos, Nanos)>,
    progress: &Progress,
) -> crate::error::Result<Arc<Snapshot>> {
    let mut store = Store::new(Options {
        mode: Mode::Replay,
        timeline: false,
        ..Options::default()
    });
    progress.begin("counting", whole.bytes());
    let span = span_of(range, whole.beginning()?);
    whole.by_kind(span, &mut |bytes| progress.add(bytes), &mut |output| {
        store.take(&output.decoded());
    })?;
    Ok(store.snapshot(Fresh::All))
}

/// Collects everything in the recordings; with `range`, only what may overlap that time after their begin.
///
/// Errors: a recording cannot be read, or `place` is full.
pub fn collect(
    whole: &Merged<'_>,
    range: Option<(Nanos, Nanos)>,
    place: &Workspace,
    progress: &Progress,
) -> crate::error::Result<(Collected, Replay)> {
    let begin = whole.span()?.map(|span| span.begin);
    let beginning = whole.beginning()?;
    let span = span_of(range, beginning);
    let mut collector = Collector::new(place);
    progress.begin("reading", whole.bytes());
    let mut read = |bytes| progress.add(bytes);
    let replay = whole.by_kind_with_unlimited_texts(span, &mut read, &mut |output| collector.take(output))?;
    let mut collected = collector.finish()?;
    collected.beginning = beginning.unwrap_or(collected.first);
    // If not everything was read, the first record that was read is not the first of the recording.
    if let (Some(_), Some(begin)) = (span, begin) {
        collected.first = begin;
    }
    Ok((collected, replay))
}
