//! Correlation ids as rocprofv3 gives them: dense from 1 by start time over the wanted API calls and markers of a
//! process, with the enclosing one as ancestor; work belongs to the innermost wanted one that enqueued it.
//!
//! One sweep over the records by their beginning, with a stack of what is open on each thread. What work belongs to is
//! looked up among the calls of late; the few that are not found there get a second sweep.

use super::choice::{Kind, Kinds, LIBRARIES, library};
use super::collect::{Collected, Event};
use super::run::Run;
use super::sort::{Entry, Sorted, Sorter};
use crate::item::{
    Allocation, ApiCall, Copy, Dispatch, Marker, Nanos, OperationId, ProcessId, Scratch, Span, TextId, ThreadId,
};
use crate::model::FastMap;
use roctop_ring::record::{Domain, flag};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Deref;
use std::path::Path;

/// Bytes of rows of one kind that are held while they are sorted.
const HELD: usize = 32 << 20;
/// Calls and ranges on a thread that others may lie in.
const DEPTH: usize = 1 << 16;
/// Calls of late that work is looked for among.
const RECENT: usize = 1 << 18;
/// Records of work whose call is looked for in one further sweep.
const LATE: usize = 1 << 19;

/// A record with its place among the others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row<T> {
    /// The record.
    pub record: T,
    /// Its correlation id, dense; of the call that caused it, for work.
    pub id: u64,
    /// Id of the enclosing call or range, 0 for none.
    pub ancestor: u64,
    /// Innermost push/pop range around it.
    pub region: Option<Region>,
}

/// A push/pop range around something.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Region {
    /// Its text.
    pub text: TextId,
    /// Its correlation id.
    pub id: u64,
}

/// A row of ROC-TX: a mark, a range, or a call that is neither.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// Mark or range; of a call, its process, thread and times.
    pub marker: Marker,
    /// What was called, when it is neither mark nor range.
    pub call: Option<OperationId>,
}

impl Deref for Mark {
    type Target = Marker;

    fn deref(&self) -> &Marker {
        &self.marker
    }
}

macro_rules! by_end {
    ($($Record:ident by $order:ident)*) => {
        $(impl Entry for Row<$Record> {
            type Key = (Nanos, u64);
            fn key(&self) -> Self::Key {
                (self.record.span.end, $order(&self.record))
            }
        })*
    };
}

const fn outer_last(span: Span) -> u64 {
    u64::MAX - span.begin
}
const fn call_order(call: &ApiCall) -> u64 {
    outer_last(call.span)
}
fn marker_order(mark: &Mark) -> u64 {
    outer_last(mark.marker.span)
}
const fn dispatch_order(dispatch: &Dispatch) -> u64 {
    dispatch.dispatch_id
}
const fn copy_order(copy: &Copy) -> u64 {
    copy.span.begin
}
const fn allocation_order(allocation: &Allocation) -> u64 {
    allocation.span.begin
}
const fn scratch_order(scratch: &Scratch) -> u64 {
    scratch.span.begin
}

by_end! {
    ApiCall by call_order
    Mark by marker_order
    Dispatch by dispatch_order
    Copy by copy_order
    Allocation by allocation_order
    Scratch by scratch_order
}

/// All rows of a process, by end.
#[derive(Default)]
pub struct Rows {
    /// Calls of HIP.
    pub(crate) hip: Sorted<Row<ApiCall>>,
    /// Calls of HSA.
    pub(crate) hsa: Sorted<Row<ApiCall>>,
    /// Calls of the libraries above HIP, in the order of [`LIBRARIES`].
    pub(crate) libraries: [Sorted<Row<ApiCall>>; LIBRARIES.len()],
    /// Marks, ranges and calls of ROC-TX.
    pub(crate) markers: Sorted<Row<Mark>>,
    /// Dispatches.
    pub(crate) dispatches: Sorted<Row<Dispatch>>,
    /// Copies.
    pub(crate) copies: Sorted<Row<Copy>>,
    /// Allocations and frees.
    pub(crate) allocations: Sorted<Row<Allocation>>,
    /// Scratch memory of queues.
    pub(crate) scratches: Sorted<Row<Scratch>>,
    /// Texts that kernels are called by, with the number of the first marker that had them, by number.
    pub(crate) regions: Vec<Region>,
    /// What was called.
    pub(crate) operations: BTreeSet<OperationId>,
    /// When the first of them began and the last one ended; none when there are none.
    pub(crate) times: Option<(Nanos, Nanos)>,
}

/// Which rows are wanted besides their kinds.
pub(crate) struct Tests<'a> {
    pub(crate) call: &'a dyn Fn(&Row<ApiCall>) -> bool,
    pub(crate) marker: &'a dyn Fn(&Row<Mark>) -> bool,
    pub(crate) dispatch: &'a dyn Fn(&Row<Dispatch>) -> bool,
    pub(crate) copy: &'a dyn Fn(&Row<Copy>) -> bool,
    pub(crate) allocation: &'a dyn Fn(&Row<Allocation>) -> bool,
    pub(crate) scratch: &'a dyn Fn(&Row<Scratch>) -> bool,
}

/// What is wanted of a process, and how it is numbered.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) process: ProcessId,
    pub(crate) kinds: Kinds,
    /// Whether work that no wanted call caused gets an id of its own (as rocprofiler-sdk 1.0.0 does) or 0.
    pub(crate) orphans: bool,
    /// Whether kernels are called by marks and push/pop ranges: then these have numbers, wanted or not.
    pub(crate) rename: bool,
}

/// Numbers the wanted records of the process that is next among `events`, a pass over all of `collected`.
pub(crate) fn rows(
    collected: &Collected,
    events: &mut dyn Iterator<Item = io::Result<Event>>,
    wanted: Wanted,
    tests: &Tests<'_>,
    place: &Path,
) -> io::Result<Rows> {
    let mut sink = Sink::new(&collected.run, tests, place);
    let mut sweep = Sweep::new(&collected.run, wanted);
    let mut late = Sorter::new(place, HELD);
    for event in events {
        let event = event?;
        match sweep.take(&event) {
            Some(place) => sink.put(event, place)?,
            None if sweep.is_late => late.put(event)?,
            None => {}
        }
    }
    let mut regions: Vec<Region> = sweep
        .texts
        .iter()
        .map(|(text, id)| Region { text: *text, id: *id })
        .collect();
    regions.sort_unstable_by_key(|region| region.id);
    let late = late.finish()?;
    let mut next = sweep.next;
    let mut work = late.iter();
    loop {
        let these: Vec<Event> = work.by_ref().take(LATE).collect::<io::Result<_>>()?;
        if these.is_empty() {
            break;
        }
        let causes = causes(collected, wanted, &these)?;
        for event in these {
            let cause = correlation(&event)
                .and_then(|id| causes.get(&id).copied())
                .unwrap_or_default();
            let mut place = Place::of_work(cause);
            if place.id == 0 && wanted.orphans {
                place.id = next;
                next += 1;
            }
            sink.put(event, place)?;
        }
    }
    Ok(Rows {
        regions,
        ..sink.finish()?
    })
}

/// What caused work whose call was long ago: a sweep for these alone.
fn causes(collected: &Collected, wanted: Wanted, work: &[Event]) -> io::Result<FastMap<u64, Cause>> {
    let mut causes: FastMap<u64, Option<Cause>> = work.iter().filter_map(correlation).map(|id| (id, None)).collect();
    let mut sweep = Sweep::new(&collected.run, wanted);
    for event in collected.events.iter() {
        let event = event?;
        if event.process() != wanted.process {
            continue;
        }
        sweep.take(&event);
        let id = match &event {
            Event::Call(call) => call.correlation,
            Event::Marker(marker) => marker.correlation,
            _ => continue,
        };
        if let Some(found) = causes.get_mut(&id) {
            *found = sweep.recent.get(&id).copied();
        }
    }
    Ok(causes
        .into_iter()
        .filter_map(|(id, cause)| Some((id, cause?)))
        .collect())
}

fn correlation(work: &Event) -> Option<u64> {
    let id = match work {
        Event::Dispatch(dispatch) => dispatch.correlation,
        Event::Copy(copy) => copy.correlation,
        Event::Allocation(allocation) => allocation.correlation,
        Event::Scratch(scratch) => scratch.correlation,
        Event::Call(_) | Event::Marker(_) => 0,
    };
    (id != 0).then_some(id)
}

/// A record's numbers.
#[derive(Clone, Copy, Default)]
struct Place {
    id: u64,
    ancestor: u64,
    region: Option<Region>,
}

impl Place {
    fn of_work(cause: Cause) -> Self {
        Self {
            id: cause.owner,
            ancestor: cause.above,
            region: cause.region,
        }
    }
}

/// What work needs to know of the call that caused it.
#[derive(Clone, Copy, Default)]
struct Cause {
    /// Id of the nearest wanted node, itself included; 0 for none.
    owner: u64,
    /// Id of the nearest wanted node around that.
    above: u64,
    /// Push/pop range around it, wanted or not.
    region: Option<Region>,
}

/// What may lie among others.
#[derive(Clone, std::marker::Copy)]
enum Node {
    /// Holds what follows on its thread.
    Call { is_hip: bool },
    /// A push/pop range: holds what follows, and names it.
    Region(TextId),
    /// Names what follows.
    Mark(TextId),
    /// A range that is started and stopped: holds nothing.
    Range,
}

/// A call or range that may hold others.
struct Open {
    correlation: u64,
    begin: Nanos,
    end: Nanos,
    cause: Cause,
    /// A call of HIP, or inside one.
    is_hip: bool,
    /// Of a push/pop range: itself.
    region: Option<Region>,
}

struct Sweep<'a> {
    run: &'a Run,
    wanted: Wanted,
    /// The next id.
    next: u64,
    open: FastMap<ThreadId, Vec<Open>>,
    /// The mark that names what follows it on a thread outside of all ranges.
    marked: FastMap<ThreadId, Region>,
    /// Numbers of the first markers that had these texts, where kernels are called by them.
    texts: FastMap<TextId, u64>,
    recent: FastMap<u64, Cause>,
    order: VecDeque<u64>,
    /// The work that was just taken names a call that is not among those of late.
    is_late: bool,
}

impl<'a> Sweep<'a> {
    fn new(run: &'a Run, wanted: Wanted) -> Self {
        Self {
            run,
            wanted,
            next: 1,
            open: FastMap::default(),
            marked: FastMap::default(),
            texts: FastMap::default(),
            recent: FastMap::default(),
            order: VecDeque::new(),
            is_late: false,
        }
    }

    /// Takes the next record; its numbers if it is wanted.
    fn take(&mut self, event: &Event) -> Option<Place> {
        self.is_late = false;
        let at = event.start();
        match event {
            Event::Call(call) => {
                let known = self.run.operations.get(call.operation.0 as usize);
                let kind = known.and_then(|operation| Kind::of(Domain(operation.domain)));
                let is_hip = matches!(kind, Some(Kind::HipRuntime | Kind::HipCompiler));
                let wanted = kind.is_some_and(|kind| self.wanted.kinds.has(kind));
                // Calls that HIP makes of itself are left out, as rocprofv3 leaves them out; those of RCCL are not.
                let wanted = wanted && !(is_hip && call.parent != 0 && self.is_in_hip(call));
                self.node(call.thread, call.span, call.correlation, wanted, Node::Call { is_hip })
            }
            Event::Marker(marker) => {
                let is_wanted = self.wanted.kinds.has(Kind::Marker);
                let wanted = is_wanted || self.wanted.rename && marker.range_id == 0;
                let node = match (marker.range_id, marker.span.end > marker.span.begin) {
                    (0, true) => Node::Region(marker.text),
                    (0, false) => Node::Mark(marker.text),
                    _ => Node::Range,
                };
                self.node(marker.thread, marker.span, marker.correlation, wanted, node)
                    .filter(|_| is_wanted)
            }
            // What has no time has no row; it is counted as lost.
            Event::Dispatch(d) if d.flags & flag::UNTIMED == 0 && self.wanted.kinds.has(Kind::Kernel) => {
                self.work(d.thread, at, d.correlation)
            }
            Event::Copy(c) if c.flags & flag::UNTIMED == 0 && self.wanted.kinds.has(Kind::MemoryCopy) => {
                self.work(c.thread, at, c.correlation)
            }
            Event::Allocation(a) if self.wanted.kinds.has(Kind::MemoryAllocation) => {
                self.work(Some(a.thread), at, a.correlation)
            }
            // What belongs to no queue any more is the run-time's tear-down, after rocprofv3 has finished.
            Event::Scratch(s) if s.queue.is_some() && self.wanted.kinds.has(Kind::ScratchMemory) => {
                self.work(Some(s.thread), at, s.correlation)
            }
            Event::Dispatch(_) | Event::Copy(_) | Event::Allocation(_) | Event::Scratch(_) => None,
        }
    }

    /// What work belongs to that was submitted in a call which goes on still: the innermost call in it at that time, as the
    /// one of HSA that rings the doorbell. The collector names the one of HIP.
    fn inside(&self, thread: ThreadId, at: Nanos, correlation: u64) -> Option<Cause> {
        let stack = self.open.get(&thread)?;
        let own = stack.iter().rposition(|open| open.correlation == correlation)?;
        let inner = stack.get(own..)?.iter().rev();
        let mut around = inner.filter(|open| open.begin <= at && at <= open.end);
        around.next().map(|open| open.cause)
    }

    /// Whether a call lies in one of HIP.
    fn is_in_hip(&self, call: &ApiCall) -> bool {
        let open = self.open.get(&call.thread);
        let around = open.and_then(|stack| stack.iter().rev().find(|open| open.end >= call.span.end));
        around.is_some_and(|open| open.is_hip)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn node(&mut self, thread: ThreadId, span: Span, correlation: u64, is_wanted: bool, node: Node) -> Option<Place> {
        let id = if is_wanted { self.number() } else { 0 };
        let stack = self.open.entry(thread).or_default();
        while stack.pop_if(|top| top.end < span.end).is_some() {}
        let around = stack.last();
        let (above, region) = around.map_or_else(
            || (0, self.marked.get(&thread).copied()),
            |top| (top.cause.owner, top.region),
        );
        let above_that = around.map_or(0, |top| top.cause.above);
        let is_hip = matches!(node, Node::Call { is_hip: true }) || around.is_some_and(|top| top.is_hip);
        let cause = Cause {
            owner: if is_wanted { id } else { above },
            above: if is_wanted { above } else { above_that },
            region,
        };
        let is_renamed = self.wanted.rename;
        let mut named = |text| {
            is_renamed.then(|| Region {
                text,
                id: *self.texts.entry(text).or_insert(id),
            })
        };
        let hold = |stack: &mut Vec<Open>, region| {
            // No program calls so deeply.
            if stack.len() >= DEPTH {
                return;
            }
            stack.push(Open {
                correlation,
                begin: span.begin,
                end: span.end,
                cause,
                is_hip,
                region,
            });
        };
        match node {
            Node::Call { .. } => hold(stack, region),
            Node::Region(text) => hold(stack, named(text)),
            Node::Mark(text) => {
                if let Some(named) = named(text) {
                    // It names what follows it, until the range around it ends.
                    match stack.last_mut() {
                        Some(top) => top.region = Some(named),
                        None => drop(self.marked.insert(thread, named)),
                    }
                }
            }
            Node::Range => {}
        }
        if correlation != 0 {
            if self.order.len() >= RECENT
                && let Some(oldest) = self.order.pop_front()
            {
                self.recent.remove(&oldest);
            }
            self.order.push_back(correlation);
            self.recent.insert(correlation, cause);
        }
        is_wanted.then_some(Place {
            id,
            ancestor: above,
            region,
        })
    }

    fn work(&mut self, thread: Option<ThreadId>, at: Nanos, correlation: u64) -> Option<Place> {
        let inside = thread.filter(|_| correlation != 0);
        let inside = inside.and_then(|thread| self.inside(thread, at, correlation));
        let cause = if correlation == 0 {
            Cause::default()
        } else if let Some(inside) = inside {
            inside
        } else if let Some(known) = self.recent.get(&correlation) {
            *known
        } else {
            self.is_late = true;
            return None;
        };
        let mut place = Place::of_work(cause);
        if place.id == 0 && self.wanted.orphans {
            place.id = self.number();
        }
        Some(place)
    }
}

/// Puts rows where they belong.
struct Sink<'a> {
    run: &'a Run,
    tests: &'a Tests<'a>,
    hip: Sorter<Row<ApiCall>>,
    hsa: Sorter<Row<ApiCall>>,
    libraries: [Sorter<Row<ApiCall>>; LIBRARIES.len()],
    markers: Sorter<Row<Mark>>,
    dispatches: Sorter<Row<Dispatch>>,
    copies: Sorter<Row<Copy>>,
    allocations: Sorter<Row<Allocation>>,
    scratches: Sorter<Row<Scratch>>,
    operations: BTreeSet<OperationId>,
    times: Option<(Nanos, Nanos)>,
}

impl<'a> Sink<'a> {
    fn new(run: &'a Run, tests: &'a Tests<'a>, place: &Path) -> Self {
        Self {
            run,
            tests,
            hip: Sorter::new(place, HELD),
            hsa: Sorter::new(place, HELD),
            libraries: LIBRARIES.map(|_| Sorter::new(place, HELD)),
            markers: Sorter::new(place, HELD),
            dispatches: Sorter::new(place, HELD),
            copies: Sorter::new(place, HELD),
            allocations: Sorter::new(place, HELD),
            scratches: Sorter::new(place, HELD),
            operations: BTreeSet::new(),
            times: None,
        }
    }

    fn put(&mut self, event: Event, place: Place) -> io::Result<()> {
        match event {
            Event::Call(call) if self.kind(&call) == Some(Kind::Marker) => {
                let row = row(mark(&call), place);
                if (self.tests.marker)(&row) {
                    self.seen(call.span);
                    self.markers.put(row)?;
                }
            }
            Event::Call(mut call) => {
                // A call takes time: what is too short for the clock is one tick of it long.
                call.span.end = call.span.end.max(call.span.begin.saturating_add(1));
                let row = row(call, place);
                if (self.tests.call)(&row) {
                    self.seen(call.span);
                    self.operations.insert(call.operation);
                    let kind = self.kind(&call);
                    match kind.and_then(library).and_then(|(at, _)| self.libraries.get_mut(at)) {
                        Some(library) => library.put(row)?,
                        None if matches!(kind, Some(Kind::HipRuntime | Kind::HipCompiler)) => self.hip.put(row)?,
                        None => self.hsa.put(row)?,
                    }
                }
            }
            Event::Marker(marker) => {
                let row = row(Mark { marker, call: None }, place);
                if (self.tests.marker)(&row) {
                    self.seen(marker.span);
                    self.markers.put(row)?;
                }
            }
            Event::Dispatch(dispatch) => {
                let row = row(dispatch, place);
                if (self.tests.dispatch)(&row) {
                    self.seen(dispatch.span);
                    self.dispatches.put(row)?;
                }
            }
            Event::Copy(copy) => {
                let row = row(copy, place);
                if (self.tests.copy)(&row) {
                    self.seen(copy.span);
                    self.copies.put(row)?;
                }
            }
            Event::Allocation(allocation) => {
                let row = row(allocation, place);
                if (self.tests.allocation)(&row) {
                    self.seen(allocation.span);
                    self.allocations.put(row)?;
                }
            }
            Event::Scratch(scratch) => {
                let row = row(scratch, place);
                if (self.tests.scratch)(&row) {
                    self.seen(scratch.span);
                    self.scratches.put(row)?;
                }
            }
        }
        Ok(())
    }

    fn kind(&self, call: &ApiCall) -> Option<Kind> {
        let known = self.run.operations.get(call.operation.0 as usize);
        known.and_then(|operation| Kind::of(Domain(operation.domain)))
    }

    fn seen(&mut self, span: Span) {
        let (first, last) = self.times.unwrap_or((span.begin, span.end));
        self.times = Some((first.min(span.begin), last.max(span.end)));
    }

    fn finish(self) -> io::Result<Rows> {
        let [rccl, decode, jpeg] = self.libraries;
        Ok(Rows {
            hip: self.hip.finish()?,
            hsa: self.hsa.finish()?,
            libraries: [rccl.finish()?, decode.finish()?, jpeg.finish()?],
            markers: self.markers.finish()?,
            dispatches: self.dispatches.finish()?,
            copies: self.copies.finish()?,
            allocations: self.allocations.finish()?,
            scratches: self.scratches.finish()?,
            regions: Vec::new(),
            operations: self.operations,
            times: self.times,
        })
    }
}

/// A call of ROC-TX among marks and ranges.
fn mark(call: &ApiCall) -> Mark {
    Mark {
        marker: Marker {
            process: call.process,
            thread: call.thread,
            span: call.span,
            correlation: call.correlation,
            ..Marker::default()
        },
        call: Some(call.operation),
    }
}

const fn row<T>(record: T, place: Place) -> Row<T>
where
    T: std::marker::Copy,
{
    Row {
        record,
        id: place.id,
        ancestor: place.ancestor,
        region: place.region,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadId = ThreadId(3);

    fn span(begin: Nanos, end: Nanos) -> Span {
        Span { begin, end }
    }

    fn marker(text: u32, begin: Nanos, end: Nanos) -> Event {
        Event::Marker(Marker {
            thread: THREAD,
            text: TextId(text),
            span: span(begin, end),
            ..Marker::default()
        })
    }

    /// A launch at a time, and the text that its kernel is called by.
    fn launched(sweep: &mut Sweep<'_>, at: Nanos) -> Option<(u32, u64)> {
        sweep.take(&Event::Call(ApiCall {
            thread: THREAD,
            span: span(at, at + 1),
            correlation: at,
            ..ApiCall::default()
        }));
        let place = sweep.take(&Event::Dispatch(Dispatch {
            correlation: at,
            ..Dispatch::default()
        }));
        place.unwrap().region.map(|region| (region.text.0, region.id))
    }

    #[test]
    fn work_belongs_to_the_innermost_call_that_submitted_it() {
        let run = Run::default();
        let wanted = Wanted {
            process: ProcessId(0),
            kinds: Kinds::ALL,
            orphans: true,
            rename: false,
        };
        let mut sweep = Sweep::new(&run, wanted);
        let mut call = |correlation, begin, end| {
            let place = sweep.node(
                THREAD,
                span(begin, end),
                correlation,
                true,
                Node::Call { is_hip: false },
            );
            place.unwrap().id
        };
        let (launch, doorbell) = (call(5, 10, 90), call(6, 21, 29));
        let mut owner = |thread, submit| {
            let dispatch = Dispatch {
                thread,
                submit,
                correlation: 5,
                ..Dispatch::default()
            };
            let place = sweep.take(&Event::Dispatch(dispatch));
            place.map(|place| (place.id, place.ancestor))
        };
        assert_eq!(owner(Some(THREAD), 25), Some((doorbell, launch)));
        assert_eq!(owner(Some(THREAD), 40), Some((launch, 0)), "rung by no recorded call");
        assert_eq!(owner(Some(THREAD), 95), Some((launch, 0)), "rung later");
        assert_eq!(
            owner(Some(ThreadId(9)), 25),
            Some((launch, 0)),
            "rung by another thread"
        );
        assert_eq!(owner(None, 25), Some((launch, 0)));
    }

    #[test]
    fn kernels_are_called_by_the_mark_or_range_before_them() {
        let run = Run::default();
        let mut kinds = Kinds::NONE;
        kinds.set(Kind::Kernel, true);
        let wanted = Wanted {
            process: ProcessId(0),
            kinds,
            orphans: true,
            rename: true,
        };
        let mut sweep = Sweep::new(&run, wanted);
        assert_eq!(launched(&mut sweep, 1), None);
        assert!(sweep.take(&marker(7, 10, 10)).is_none(), "markers are not wanted");
        let mark = sweep.texts[&TextId(7)];
        assert!(mark > 0);
        assert_eq!(launched(&mut sweep, 11), Some((7, mark)));
        sweep.take(&marker(8, 20, 40));
        let range = sweep.texts[&TextId(8)];
        assert_eq!(launched(&mut sweep, 21), Some((8, range)));
        sweep.take(&marker(9, 25, 25));
        assert_eq!(launched(&mut sweep, 26).unwrap().0, 9);
        // The range took the mark inside with it; the same text has the same number again.
        assert_eq!(launched(&mut sweep, 50), Some((7, mark)));
        sweep.take(&marker(8, 60, 70));
        assert_eq!(launched(&mut sweep, 61), Some((8, range)));
    }
}
