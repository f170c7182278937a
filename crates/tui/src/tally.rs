//! Which launches, copies and calls of a recording a filter wants counted one by one: those of rows of which some may pass and
//! others may not.

use std::collections::HashMap;
use std::sync::Arc;

use crate::relation::Kind;
use roctop_model::query::{Field, Filter, Launches};
use roctop_model::sites::SiteWork;
use roctop_model::snapshot::{KernelRow, Loading};
use roctop_model::subject::{ApiSubject, Context, KernelSubject, Record, RouteSubject};
use roctop_model::table::{Copied, Placement, Route, is_untimed};
use roctop_model::tally::Tally;
use roctop_model::{Mode, Snapshot};
use roctop_trace::item::{ApiCall, Copy, Dispatch, KernelId, OperationId};

/// Records that are few enough to be counted from memory.
const MAX_KEPT: u64 = 1 << 17;

/// What is to be counted.
#[derive(Debug)]
pub struct Plan {
    snap: Arc<Snapshot>,
    /// By kernel, and by operation: what a launch or call has to pass. `None`: the row says it for all.
    kernels: Vec<Option<Filter>>,
    operations: Vec<Option<Filter>>,
    /// By route: its place in the snapshot, and what a copy has to pass.
    routes: HashMap<Route, (u32, Filter)>,
}

/// Whether a filter asks a recording for more than the screen counts from memory.
pub fn is_wanted(snap: &Snapshot, filter: &Filter) -> bool {
    let totals = &snap.values.totals;
    let asks_more = |kind: Kind| asks_more(snap, filter, kind);
    snap.mode == Mode::Replay
        && snap.loading == Loading::Done
        && (asks_more(Kind::Kernels)
            || totals.copies > 0 && asks_more(Kind::Copies)
            || totals.calls > 0 && asks_more(Kind::Calls))
        && totals.calls + totals.dispatches + totals.copies > MAX_KEPT
}

/// Whether a filter asks for more than the rows of a kind count for good.
pub(crate) fn asks_more(snap: &Snapshot, filter: &Filter, kind: Kind) -> bool {
    let has_others = |row: &KernelRow| row.numbers.has_other_places();
    let is_of_cell = |field: Field| field.is_of_place() && !field.is_of_owner();
    !filter.asks_only(|field| kind.is_counted_by(field))
        || kind == Kind::Kernels
            && !filter.asks_only(|field| !is_of_cell(field))
            && snap.values.kernels.iter().any(has_others)
}

/// Whether what a launch has to pass is known for each place of a kernel.
pub(crate) fn is_known_by_place(row: &KernelRow, rest: &Filter) -> bool {
    let is_known = |field: Field| field.is_of_owner() || field.is_of_place() && !row.numbers.has_other_places();
    rest.asks_only(is_known)
}

impl Plan {
    /// For a filter on everything that a snapshot knows.
    pub fn new(snap: Arc<Snapshot>, filter: &Filter) -> Self {
        fn keep(all: &mut Vec<Option<Filter>>, at: u32, launches: Launches) {
            if let Launches::Some(rest) = launches {
                let at = at as usize;
                if all.len() <= at {
                    all.resize_with(at + 1, || None);
                }
                all[at] = Some(rest);
            }
        }
        let (mut kernels, mut operations) = (Vec::new(), Vec::new());
        for row in &*snap.values.kernels {
            let launches = filter.launches(&KernelSubject(&snap, row));
            if !matches!(&launches, Launches::Some(rest) if is_known_by_place(row, rest)) {
                keep(&mut kernels, row.id.0, launches);
            }
        }
        for row in &*snap.values.api {
            keep(&mut operations, row.id.0, filter.launches(&ApiSubject(&snap, row)));
        }
        let routes = (0..).zip(&*snap.values.copies).filter_map(|(at, row)| {
            let Launches::Some(rest) = filter.launches(&RouteSubject(&snap.names, row)) else {
                return None;
            };
            let durations = (row.stat.min as f64, row.stat.max as f64);
            // Copy kernels are launches, and which route one belongs to is not in its record.
            let is_counted = row.cells.is_empty() && may_pass(&rest, durations);
            is_counted.then_some((row.route, (at, rest)))
        });
        let routes = routes.collect();
        Self {
            snap,
            kernels,
            operations,
            routes,
        }
    }

    fn of_kernel(&self, kernel: KernelId) -> Option<&Filter> {
        self.kernels.get(kernel.0 as usize)?.as_ref()
    }

    fn of_operation(&self, operation: OperationId) -> Option<&Filter> {
        self.operations.get(operation.0 as usize)?.as_ref()
    }

    fn passes(&self, rest: &Filter, record: Record<'_>) -> bool {
        rest.accepts(&record.with(Context::of(&self.snap)))
    }

    /// Whether a launch of a kernel with a duration in this range may count.
    pub fn may_launch(&self, kernel: KernelId, durations: (f64, f64)) -> bool {
        self.of_kernel(kernel).is_some_and(|rest| may_pass(rest, durations))
    }

    /// Whether a call of an operation with a duration in this range may count.
    pub fn may_call(&self, operation: OperationId, durations: (f64, f64)) -> bool {
        self.of_operation(operation)
            .is_some_and(|rest| may_pass(rest, durations))
    }

    /// Whether a copy with a duration in this range may count.
    pub fn may_copy(&self, durations: (f64, f64)) -> bool {
        self.routes.values().any(|(_, rest)| may_pass(rest, durations))
    }

    /// Counts a copy, if it passes.
    pub fn copy(&self, copy: &Copy, into: &mut Tally) {
        let Some((at, rest)) = self.routes.get(&Route::of(copy)) else {
            return;
        };
        if !is_untimed(copy.flags, copy.span.end) && self.passes(rest, Record::Copy(copy)) {
            let copied = Copied {
                span: copy.span,
                bytes: copy.bytes,
            };
            into.copy(*at, copied);
            into.site(SiteWork::Copy(*at), copy.process, copy.site, copy.span.duration());
        }
    }

    /// Counts a launch, if it passes.
    pub fn launch(&self, dispatch: &Dispatch, into: &mut Tally) {
        let Some(rest) = self.of_kernel(dispatch.kernel) else {
            return;
        };
        if !is_untimed(dispatch.flags, dispatch.span.end) && self.passes(rest, Record::Kernel(dispatch)) {
            let place = Placement {
                process: dispatch.process,
                agent: dispatch.agent,
                queue: dispatch.queue,
                stream: dispatch.stream,
            };
            let nanos = dispatch.span.duration();
            into.kernel(dispatch.kernel.0, place, nanos);
            into.site(
                SiteWork::Kernel(dispatch.kernel),
                dispatch.process,
                dispatch.site,
                nanos,
            );
        }
    }

    /// Counts a call, if it passes.
    pub fn call(&self, call: &ApiCall, into: &mut Tally) {
        let Some(rest) = self.of_operation(call.operation) else {
            return;
        };
        if call.span.end > 0 && self.passes(rest, Record::Call(call)) {
            let nanos = call.span.duration();
            into.call(call.operation.0, nanos);
            into.site(SiteWork::Call(call.operation), call.process, call.site, nanos);
        }
    }
}

fn may_pass(rest: &Filter, durations: (f64, f64)) -> bool {
    rest.may_pass(&|field| (field == Field::Dur).then_some(durations))
}
