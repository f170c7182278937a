//! Finds what the host did while a GPU was idle.

use super::usage::{Gap, clip};
use crate::{LaneKey, Slice, Snapshot};
use roctop_trace::item::{OperationId, Span, ThreadId};
use roctop_trace::units;

/// Maximum number of calls that are inspected per thread.
const MAX_CALLS: usize = 20_000;

/// Activity of a thread during a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// The thread that launched the next work, else the one that spent most time in calls.
    pub thread: Option<ThreadId>,
    /// Call that took most of the span: lane, call, ns within the span.
    pub call: Option<(LaneKey, Slice, u64)>,
    /// Time in any call, ns.
    pub in_calls: u64,
}

impl Host {
    /// Operation of the call.
    pub fn operation(&self) -> Option<OperationId> {
        self.call.map(|(_, call, _)| OperationId(call.what))
    }
}

/// What the host did for most of a span, in words behind "host": `in hipMemcpy`, `not in a call 75 %, in hipMemcpy 20 %`.
/// One call is named alone only where it covers more than half.
pub fn doing(snap: &Snapshot, host: &Host, span: Span) -> String {
    let whole = span.duration().max(1) as f64;
    let share = |nanos: u64| units::percent(nanos as f64 / whole);
    let Some((_, call, nanos)) = host.call else {
        return "not in a call".into();
    };
    let known = snap.names.operation(OperationId(call.what));
    let name = known.map_or("?", |known| &known.operation.name);
    let in_calls = host.in_calls.min(span.duration());
    if nanos > span.duration() / 2 {
        format!("in {name}")
    } else if in_calls > span.duration() / 2 {
        format!("in calls {} %, longest {name} {} %", share(in_calls), share(nanos))
    } else {
        let rest = share(span.duration() - in_calls);
        format!("not in a call {rest} %, in {name} {} %", share(nanos))
    }
}

/// Activity of one thread.
pub(super) fn of_thread(snap: &Snapshot, thread: ThreadId, span: Span) -> Host {
    let key = LaneKey::Api(thread, 0);
    let calls = snap
        .lane(key)
        .and_then(|lane| lane.slices(span.begin, span.end, MAX_CALLS));
    let mut host = Host {
        thread: Some(thread),
        ..Host::default()
    };
    for call in calls.unwrap_or_default() {
        let nanos = clip(call.span, span).map_or(0, Span::duration);
        host.in_calls = host.in_calls.saturating_add(nanos);
        if host.call.is_none_or(|best| best.2 < nanos) && nanos > 0 {
            host.call = Some((key, call, nanos));
        }
    }
    // A call that has not returned covers everything since its begin.
    for open in snap
        .open
        .iter()
        .flat_map(|open| &open.calls)
        .filter(|call| call.thread == thread && call.parent == 0)
    {
        let until = Span {
            begin: open.span.begin,
            end: snap.now,
        };
        let nanos = clip(until, span).map_or(0, Span::duration);
        host.in_calls = host.in_calls.saturating_add(nanos);
        if host.call.is_none_or(|best| best.2 < nanos) && nanos > 0 {
            let call = Slice {
                span: until,
                what: open.operation.0,
                correlation: open.correlation,
                queue: u32::MAX,
                process: open.process.0,
                thread: thread.0,
                ..Slice::default()
            };
            host.call = Some((key, call, nanos));
        }
    }
    host
}

/// Host activity in a gap: of the thread that launched the work after it, or, if that is unknown, of the busiest
/// thread.
pub fn during(snap: &Snapshot, gap: &Gap) -> Host {
    let launcher = gap
        .next
        .map(|(_, next)| next.thread)
        .filter(|&thread| thread != u32::MAX);
    if let Some(thread) = launcher {
        return of_thread(snap, ThreadId(thread), gap.span);
    }
    busiest(snap, gap.span)
}

/// The thread that spent most of a span in calls, with its longest call.
pub fn busiest(snap: &Snapshot, span: Span) -> Host {
    let threads = snap.values.threads.iter().map(|row| row.id);
    let all = threads.take(64).map(|thread| of_thread(snap, thread, span));
    all.max_by_key(|host| host.in_calls).unwrap_or_default()
}
