//! Events that kernels wait for.

use std::rc::Rc;

use crate::{FastMap, LaneKey, Slice, Snapshot};
use roctop_trace::item::{EventCall, Nanos, Span, StreamId};

/// How far before a span a record of an event is looked for, ns.
const BEFORE: u64 = 2_000_000_000;

/// Work that a kernel waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// Handle of the event.
    pub(super) event: u64,
    /// Lane of the work before the event.
    pub(super) on: LaneKey,
    /// End of that work.
    pub(super) until: Nanos,
}

/// A stream's work: its kernels on one GPU, or its copies in one direction.
type Lanes = Vec<(LaneKey, Vec<Slice>)>;

/// Calls that record events or wait for them, before the end of a span.
pub(crate) struct Events {
    /// Waits by process and stream, in order of time.
    waits: FastMap<(u32, u32), Vec<EventCall>>,
    /// Records by process and event, in order of time.
    records: FastMap<(u32, u64), Vec<EventCall>>,
}

/// Finds what kernels waited for.
pub(super) struct Dependencies<'a> {
    snap: &'a Snapshot,
    stretch: Span,
    events: Rc<Events>,
    /// Work of the streams that were looked up, by submission.
    streams: FastMap<u32, Lanes>,
    /// The last result: consecutive spans often end with the same kernel.
    last: Option<((LaneKey, Nanos), Option<Wait>)>,
}

impl Events {
    pub(crate) fn new(snap: &Snapshot, stretch: Span) -> Self {
        let mut waits: FastMap<_, Vec<EventCall>> = FastMap::default();
        let mut records: FastMap<_, Vec<EventCall>> = FastMap::default();
        let from = stretch.begin.saturating_sub(BEFORE);
        let calls = snap.values.event_calls.iter();
        for call in calls.filter(|call| from <= call.at && call.at <= stretch.end) {
            match (call.waits, call.stream) {
                (true, Some(stream)) => waits.entry((call.process.0, stream.0)).or_default().push(*call),
                (false, Some(_)) => records.entry((call.process.0, call.event)).or_default().push(*call),
                _ => {}
            }
        }
        // Threads are read one after another.
        for calls in waits.values_mut().chain(records.values_mut()) {
            calls.sort_by_key(|call| call.at);
        }
        Self { waits, records }
    }
}

impl<'a> Dependencies<'a> {
    pub(super) fn new(snap: &'a Snapshot, stretch: Span, events: Rc<Events>) -> Self {
        Self {
            snap,
            stretch,
            events,
            streams: FastMap::default(),
            last: None,
        }
    }

    /// The event that released a kernel last. `after` is the submission of the kernel before it in its lane.
    pub(super) fn of(&mut self, lane: LaneKey, kernel: &Slice, after: Nanos) -> Option<Wait> {
        let LaneKey::Stream(_, stream) = lane else { return None };
        let events = self.events.clone();
        if events.waits.is_empty() {
            return None;
        }
        let key = (lane, kernel.span.begin);
        if let Some((known, wait)) = self.last
            && known == key
        {
            return wait;
        }
        let waits = events
            .waits
            .get(&(kernel.process, stream.0))
            .map_or(&[][..], |waits| waits);
        let from = waits.partition_point(|wait| wait.at <= after);
        let waits = waits[from..].iter().take_while(|wait| wait.at <= kernel.submit);
        let recorded = waits.filter_map(|wait| {
            let records = events.records.get(&(kernel.process, wait.event))?;
            let at = records.partition_point(|record| record.at <= wait.at).checked_sub(1)?;
            let record = records[at];
            Some((record, record.stream?))
        });
        let found = recorded.filter(|(_, on)| *on != stream).filter_map(|(record, on)| {
            let (lane, until) = self.last_before(on, record.at)?;
            Some(Wait {
                event: record.event,
                on: lane,
                until,
            })
        });
        let wait = found.max_by_key(|wait| wait.until);
        self.last = Some((key, wait));
        wait
    }

    /// Lane and end of a stream's last work that was submitted before `at`.
    fn last_before(&mut self, stream: StreamId, at: Nanos) -> Option<(LaneKey, Nanos)> {
        let (snap, span) = (self.snap, self.stretch);
        let lanes = self
            .streams
            .entry(stream.0)
            .or_insert_with(|| work_of(snap, stream, span));
        let ends = lanes.iter().filter_map(|(lane, slices)| {
            let last = slices.partition_point(|slice| slice.submit <= at).checked_sub(1)?;
            Some((*lane, slices[last].span.end))
        });
        ends.max_by_key(|(_, end)| *end)
    }
}

/// A stream's kernels on all GPUs, and its copies.
fn work_of(snap: &Snapshot, stream: StreamId, span: Span) -> Lanes {
    let lanes = snap.lanes.iter().filter_map(|lane| {
        let is_own = |slice: &Slice| match lane.key {
            LaneKey::Stream(_, of) => of == stream,
            LaneKey::Copies(_) => slice.queue == stream.0,
            _ => false,
        };
        if !matches!(lane.key, LaneKey::Copies(_)) && !matches!(lane.key, LaneKey::Stream(_, of) if of == stream) {
            return None;
        }
        let mut slices = lane.slices(span.begin, span.end, super::super::MAX_SLICES)?;
        slices.retain(|slice| is_own(slice) && slice.submit > 0);
        slices.sort_by_key(|slice| slice.submit);
        Some((lane.key, slices))
    });
    lanes.collect()
}
