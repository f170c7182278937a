//! Rows of a process sorted by end, as the formats write them, separately for each kind.

use super::collect::Event;
use super::options::{Kind, LIBRARIES, library};
use super::range_stacks::{Enclosing, RangeStacks, StackId};
use super::run::Run;
use super::sort::{Entry, Sorted, Sorter};
use super::workspace::Workspace;
use roctop_ring::record::{Domain, flag};
use roctop_trace::item::{Allocation, ApiCall, Copy, Dispatch, Marker, Nanos, OperationId, Scratch, Span, TextId};
use roctop_trace::site::SiteNumber;
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
    /// Where in the program the call is, or the one that caused it.
    pub(crate) site: SiteNumber,
}

/// A push/pop range that encloses a record.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
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

impl Mark {
    /// The call, if it is neither mark nor range.
    pub(crate) fn made_by(&self) -> Option<ApiCall> {
        Some(ApiCall {
            process: self.process,
            thread: self.thread,
            operation: self.call?,
            span: self.span,
            correlation: self.correlation,
            ..ApiCall::default()
        })
    }
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

/// Numbers of a record and of what encloses it; the default is that of a record that is not selected.
///
/// The fields are plain numbers: the sweep writes them one by one, and a load of several at once would wait until these stores
/// are in the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordIds {
    /// Dense correlation id; for work, that of the call that caused it.
    pub(super) id: u64,
    /// Id of the enclosing call or range, 0 if none.
    pub(super) ancestor: u64,
    /// Push/pop range or mark that names kernels, and its text; 0 if there is none.
    pub(super) region: u64,
    pub(super) region_text: TextId,
    /// Enclosing push/pop range.
    pub(super) range: u64,
    pub(super) stack: StackId,
    /// Where in the program the call that caused it is.
    pub(super) site: SiteNumber,
    pub(super) is_selected: bool,
}

impl RecordIds {
    pub(super) const fn region(&self) -> Option<Region> {
        if self.region == 0 {
            return None;
        }
        Some(Region {
            text: self.region_text,
            id: self.region,
        })
    }

    pub(super) const fn range(&self) -> Enclosing {
        Enclosing {
            id: self.range,
            stack: self.stack,
        }
    }
}

/// Records, and the numbers of each.
pub(super) struct Numbered {
    pub(super) events: Vec<Event>,
    pub(super) ids: Vec<RecordIds>,
}

/// Selected rows of a part of a process, by kind.
#[derive(Default)]
pub(super) struct ByKind {
    hip: Vec<Row<ApiCall>>,
    hsa: Vec<Row<ApiCall>>,
    libraries: [Vec<Row<ApiCall>>; LIBRARIES.len()],
    markers: Vec<Row<Mark>>,
    dispatches: Vec<Row<Dispatch>>,
    in_flight: Vec<Row<Dispatch>>,
    copies: Vec<Row<Copy>>,
    allocations: Vec<Row<Allocation>>,
    scratches: Vec<Row<Scratch>>,
    /// Operations that were called, each once.
    operations: Vec<OperationId>,
    times: Option<(Nanos, Nanos)>,
}

impl ByKind {
    /// Makes rows of records, and keeps those that are selected.
    pub(super) fn new(records: Numbered, run: &Run, tests: &RowFilter<'_>) -> Self {
        let mut rows = Self::default();
        for (event, ids) in records.events.into_iter().zip(records.ids) {
            if ids.is_selected {
                rows.put(event, ids, run, tests);
            }
        }
        rows.operations.sort_unstable();
        rows.operations.dedup();
        rows
    }

    fn put(&mut self, event: Event, place: RecordIds, run: &Run, tests: &RowFilter<'_>) {
        let kind = |call: &ApiCall| {
            let known = run.operations.get(call.operation.0 as usize);
            known.and_then(|operation| Kind::of(Domain(operation.domain)))
        };
        let (span, is_wanted) = match event {
            Event::Call(call) => match kind(&call) {
                Some(Kind::Marker) => (
                    call.span,
                    keep(&mut self.markers, row(mark(&call), place), tests.marker),
                ),
                kind => self.put_call(call, kind, place, tests),
            },
            Event::Marker(marker) => {
                let row = row(Mark { marker, call: None }, place);
                (marker.span, keep(&mut self.markers, row, tests.marker))
            }
            Event::Dispatch(dispatch) => {
                let is_open = dispatch.flags & flag::OPEN != 0;
                let rows = if is_open {
                    &mut self.in_flight
                } else {
                    &mut self.dispatches
                };
                (dispatch.span, keep(rows, row(dispatch, place), tests.dispatch))
            }
            Event::Copy(copy) => (copy.span, keep(&mut self.copies, row(copy, place), tests.copy)),
            Event::Allocation(allocation) => {
                let row = row(allocation, place);
                (allocation.span, keep(&mut self.allocations, row, tests.allocation))
            }
            Event::Scratch(scratch) => {
                let row = row(scratch, place);
                (scratch.span, keep(&mut self.scratches, row, tests.scratch))
            }
        };
        if is_wanted {
            self.times = both(self.times, Some((span.begin, span.end)));
        }
    }

    fn put_call(
        &mut self,
        mut call: ApiCall,
        kind: Option<Kind>,
        place: RecordIds,
        tests: &RowFilter<'_>,
    ) -> (Span, bool) {
        // A call takes time: one shorter than the clock's resolution lasts one tick.
        call.span.end = call.span.end.max(call.span.begin.saturating_add(1));
        let library = kind.and_then(library);
        let rows = match library.and_then(|(at, _)| self.libraries.get_mut(at)) {
            Some(rows) => rows,
            None if matches!(kind, Some(Kind::HipRuntime | Kind::HipCompiler)) => &mut self.hip,
            None => &mut self.hsa,
        };
        let is_wanted = keep(rows, row(call, place), tests.call);
        if is_wanted && self.operations.last() != Some(&call.operation) {
            self.operations.push(call.operation);
        }
        (call.span, is_wanted)
    }
}

/// Adds a row if it is selected; returns whether it was.
fn keep<T>(rows: &mut Vec<Row<T>>, row: Row<T>, is_wanted: &Test<'_, T>) -> bool {
    let is_wanted = is_wanted(&row);
    if is_wanted {
        rows.push(row);
    }
    is_wanted
}

/// The time from the earlier begin to the later end.
fn both(a: Option<(Nanos, Nanos)>, b: Option<(Nanos, Nanos)>) -> Option<(Nanos, Nanos)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

/// Sorts the rows of each kind.
pub(super) struct Sink {
    hip: Sorter<Row<ApiCall>>,
    hsa: Sorter<Row<ApiCall>>,
    libraries: [Sorter<Row<ApiCall>>; LIBRARIES.len()],
    markers: Sorter<Row<Mark>>,
    dispatches: Sorter<Row<Dispatch>>,
    in_flight: Sorter<Row<Dispatch>>,
    copies: Sorter<Row<Copy>>,
    allocations: Sorter<Row<Allocation>>,
    scratches: Sorter<Row<Scratch>>,
    operations: BTreeSet<OperationId>,
    times: Option<(Nanos, Nanos)>,
}

impl Sink {
    /// `place` is the directory for temporary files.
    pub(super) fn new(place: &Workspace) -> Self {
        Self {
            hip: Sorter::new(place, SORT_BUFFER_BYTES),
            hsa: Sorter::new(place, SORT_BUFFER_BYTES),
            libraries: LIBRARIES.map(|_| Sorter::new(place, SORT_BUFFER_BYTES)),
            markers: Sorter::new(place, SORT_BUFFER_BYTES),
            dispatches: Sorter::new(place, SORT_BUFFER_BYTES),
            in_flight: Sorter::new(place, SORT_BUFFER_BYTES),
            copies: Sorter::new(place, SORT_BUFFER_BYTES),
            allocations: Sorter::new(place, SORT_BUFFER_BYTES),
            scratches: Sorter::new(place, SORT_BUFFER_BYTES),
            operations: BTreeSet::new(),
            times: None,
        }
    }

    /// Adds rows.
    pub(super) fn put(&mut self, rows: ByKind) -> io::Result<()> {
        put_all(&mut self.hip, rows.hip)?;
        put_all(&mut self.hsa, rows.hsa)?;
        for (sorter, rows) in self.libraries.iter_mut().zip(rows.libraries) {
            put_all(sorter, rows)?;
        }
        put_all(&mut self.markers, rows.markers)?;
        put_all(&mut self.dispatches, rows.dispatches)?;
        put_all(&mut self.in_flight, rows.in_flight)?;
        put_all(&mut self.copies, rows.copies)?;
        put_all(&mut self.allocations, rows.allocations)?;
        put_all(&mut self.scratches, rows.scratches)?;
        self.operations.extend(rows.operations);
        self.times = both(self.times, rows.times);
        Ok(())
    }

    /// The sorted rows.
    pub(super) fn finish(mut self) -> io::Result<Rows> {
        // The last entries of all kinds are sorted at once.
        self.hip.end()?;
        self.hsa.end()?;
        self.libraries.iter_mut().try_for_each(Sorter::end)?;
        self.markers.end()?;
        self.dispatches.end()?;
        self.in_flight.end()?;
        self.copies.end()?;
        self.allocations.end()?;
        self.scratches.end()?;
        let [rccl, decode, jpeg, mpi] = self.libraries;
        Ok(Rows {
            hip: self.hip.finish()?,
            hsa: self.hsa.finish()?,
            libraries: [rccl.finish()?, decode.finish()?, jpeg.finish()?, mpi.finish()?],
            markers: self.markers.finish()?,
            dispatches: self.dispatches.finish()?,
            in_flight: self.in_flight.finish()?,
            copies: self.copies.finish()?,
            allocations: self.allocations.finish()?,
            scratches: self.scratches.finish()?,
            regions: Vec::new(),
            stacks: RangeStacks::default(),
            operations: self.operations,
            times: self.times,
        })
    }
}

fn put_all<T: Entry>(sorter: &mut Sorter<T>, mut rows: Vec<T>) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    sorter.append(rows.len(), move |all| all.append(&mut rows))
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
        region: place.region(),
        range: place.range(),
        site: place.site,
    }
}
