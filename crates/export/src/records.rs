//! Rows of a process sorted by end, as the formats write them, separately for each kind.

use super::collect::Event;
use super::options::{Kind, LIBRARIES, library};
use super::range_stacks::{Enclosing, RangeStacks};
use super::run::Run;
use super::sort::{Entry, Sorted, Sorter};
use super::workspace::Workspace;
use roctop_ring::record::{Domain, flag};
use roctop_trace::item::{Allocation, ApiCall, Copy, Dispatch, Marker, Nanos, OperationId, Scratch, Span, TextId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::ops::Deref;

/// Memory for rows of one kind while they are sorted, bytes.
pub(super) const SORT_BUFFER_BYTES: usize = 32 << 20;

/// A record with its numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row<T> {
    /// The record.
    pub record: T,
    /// Dense correlation id; for work, that of the call that caused it.
    pub id: u64,
    /// Id of the enclosing call or range, 0 if none.
    pub ancestor: u64,
    /// Innermost enclosing push/pop range or mark that names kernels.
    pub region: Option<Region>,
    /// Innermost enclosing push/pop range.
    pub(crate) range: Enclosing,
}

/// A push/pop range that encloses a record.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Region {
    /// Its text.
    pub text: TextId,
    /// Its correlation id.
    pub id: u64,
}

/// A ROC-TX row: a mark, a range, or another ROC-TX call.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// Mark or range; for another call, its process, thread and times.
    pub marker: Marker,
    /// The function, if it is neither mark nor range.
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

/// All rows of a process, sorted by end.
#[derive(Default)]
pub struct Rows {
    /// HIP calls.
    pub(crate) hip: Sorted<Row<ApiCall>>,
    /// HSA calls.
    pub(crate) hsa: Sorted<Row<ApiCall>>,
    /// Calls of the libraries above HIP, in the order of [`LIBRARIES`].
    pub(crate) libraries: [Sorted<Row<ApiCall>>; LIBRARIES.len()],
    /// Marks, ranges and calls of ROC-TX.
    pub(crate) markers: Sorted<Row<Mark>>,
    /// Dispatches.
    pub(crate) dispatches: Sorted<Row<Dispatch>>,
    /// Dispatches in flight at the end.
    pub(crate) in_flight: Sorted<Row<Dispatch>>,
    /// Copies.
    pub(crate) copies: Sorted<Row<Copy>>,
    /// Allocations and frees.
    pub(crate) allocations: Sorted<Row<Allocation>>,
    /// Scratch memory of queues.
    pub(crate) scratches: Sorted<Row<Scratch>>,
    /// Texts that name kernels, with the number of their first marker, sorted by number.
    pub(crate) regions: Vec<Region>,
    /// Stacks of push/pop ranges.
    pub(crate) stacks: RangeStacks,
    /// Operations that were called.
    pub(crate) operations: BTreeSet<OperationId>,
    /// Begin of the first row and end of the last one; `None` without rows.
    pub(crate) times: Option<(Nanos, Nanos)>,
}

/// Whether a row is selected.
type Test<'a, T> = dyn Fn(&Row<T>) -> bool + Sync + 'a;

/// Selection of rows beyond their kinds.
pub(crate) struct RowFilter<'a> {
    pub(crate) call: &'a Test<'a, ApiCall>,
    pub(crate) marker: &'a Test<'a, Mark>,
    pub(crate) dispatch: &'a Test<'a, Dispatch>,
    pub(crate) copy: &'a Test<'a, Copy>,
    pub(crate) allocation: &'a Test<'a, Allocation>,
    pub(crate) scratch: &'a Test<'a, Scratch>,
}

/// Numbers of a record.
#[derive(Clone, Copy, Default)]
pub(super) struct RecordIds {
    pub(super) id: u64,
    pub(super) ancestor: u64,
    pub(super) region: Option<Region>,
    pub(super) range: Enclosing,
}

/// Rows of one kind.
struct Bin<'a, T>
where
    Row<T>: Entry,
{
    is_wanted: &'a Test<'a, T>,
    rows: Sorter<Row<T>>,
}

impl<'a, T> Bin<'a, T>
where
    Row<T>: Entry,
{
    fn new(is_wanted: &'a Test<'a, T>, place: &Workspace) -> Self {
        Self {
            is_wanted,
            rows: Sorter::new(place, SORT_BUFFER_BYTES),
        }
    }

    /// Adds a row if it is selected; returns whether it was.
    fn put(&mut self, row: Row<T>) -> io::Result<bool> {
        let is_wanted = (self.is_wanted)(&row);
        if is_wanted {
            self.rows.put(row)?;
        }
        Ok(is_wanted)
    }
}

/// Distributes rows to their kinds.
pub(super) struct Sink<'a> {
    run: &'a Run,
    is_wanted: &'a Test<'a, ApiCall>,
    hip: Sorter<Row<ApiCall>>,
    hsa: Sorter<Row<ApiCall>>,
    libraries: [Sorter<Row<ApiCall>>; LIBRARIES.len()],
    markers: Bin<'a, Mark>,
    dispatches: Bin<'a, Dispatch>,
    in_flight: Bin<'a, Dispatch>,
    copies: Bin<'a, Copy>,
    allocations: Bin<'a, Allocation>,
    scratches: Bin<'a, Scratch>,
    operations: BTreeSet<OperationId>,
    times: Option<(Nanos, Nanos)>,
}

impl<'a> Sink<'a> {
    /// `place` is the directory for temporary files.
    pub(super) fn new(run: &'a Run, tests: &RowFilter<'a>, place: &Workspace) -> Self {
        Self {
            run,
            is_wanted: tests.call,
            hip: Sorter::new(place, SORT_BUFFER_BYTES),
            hsa: Sorter::new(place, SORT_BUFFER_BYTES),
            libraries: LIBRARIES.map(|_| Sorter::new(place, SORT_BUFFER_BYTES)),
            markers: Bin::new(tests.marker, place),
            dispatches: Bin::new(tests.dispatch, place),
            in_flight: Bin::new(tests.dispatch, place),
            copies: Bin::new(tests.copy, place),
            allocations: Bin::new(tests.allocation, place),
            scratches: Bin::new(tests.scratch, place),
            operations: BTreeSet::new(),
            times: None,
        }
    }

    /// Adds a record if it is selected.
    pub(super) fn put(&mut self, event: Event, place: RecordIds) -> io::Result<()> {
        let (span, is_wanted) = match event {
            Event::Call(call) if self.kind(&call) == Some(Kind::Marker) => {
                (call.span, self.markers.put(row(mark(&call), place))?)
            }
            Event::Call(mut call) => {
                // A call takes time: one shorter than the clock's resolution lasts one tick.
                call.span.end = call.span.end.max(call.span.begin.saturating_add(1));
                (call.span, self.put_call(row(call, place))?)
            }
            Event::Marker(marker) => (marker.span, self.markers.put(row(Mark { marker, call: None }, place))?),
            Event::Dispatch(dispatch) if dispatch.flags & flag::OPEN != 0 => {
                (dispatch.span, self.in_flight.put(row(dispatch, place))?)
            }
            Event::Dispatch(dispatch) => (dispatch.span, self.dispatches.put(row(dispatch, place))?),
            Event::Copy(copy) => (copy.span, self.copies.put(row(copy, place))?),
            Event::Allocation(allocation) => (allocation.span, self.allocations.put(row(allocation, place))?),
            Event::Scratch(scratch) => (scratch.span, self.scratches.put(row(scratch, place))?),
        };
        if is_wanted {
            let (first, last) = self.times.unwrap_or((span.begin, span.end));
            self.times = Some((first.min(span.begin), last.max(span.end)));
        }
        Ok(())
    }

    /// Adds a call if it is selected; returns whether it was.
    fn put_call(&mut self, row: Row<ApiCall>) -> io::Result<bool> {
        if !(self.is_wanted)(&row) {
            return Ok(false);
        }
        self.operations.insert(row.record.operation);
        let kind = self.kind(&row.record);
        match kind.and_then(library).and_then(|(at, _)| self.libraries.get_mut(at)) {
            Some(library) => library.put(row)?,
            None if matches!(kind, Some(Kind::HipRuntime | Kind::HipCompiler)) => self.hip.put(row)?,
            None => self.hsa.put(row)?,
        }
        Ok(true)
    }

    fn kind(&self, call: &ApiCall) -> Option<Kind> {
        let known = self.run.operations.get(call.operation.0 as usize);
        known.and_then(|operation| Kind::of(Domain(operation.domain)))
    }

    /// The sorted rows.
    pub(super) fn finish(self) -> io::Result<Rows> {
        let [rccl, decode, jpeg] = self.libraries;
        Ok(Rows {
            hip: self.hip.finish()?,
            hsa: self.hsa.finish()?,
            libraries: [rccl.finish()?, decode.finish()?, jpeg.finish()?],
            markers: self.markers.rows.finish()?,
            dispatches: self.dispatches.rows.finish()?,
            in_flight: self.in_flight.rows.finish()?,
            copies: self.copies.rows.finish()?,
            allocations: self.allocations.rows.finish()?,
            scratches: self.scratches.rows.finish()?,
            regions: Vec::new(),
            stacks: RangeStacks::default(),
            operations: self.operations,
            times: self.times,
        })
    }
}

/// A ROC-TX call as a row among marks and ranges.
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

const fn row<T>(record: T, place: RecordIds) -> Row<T>
where
    T: std::marker::Copy,
{
    Row {
        record,
        id: place.id,
        ancestor: place.ancestor,
        region: place.region,
        range: place.range,
    }
}
