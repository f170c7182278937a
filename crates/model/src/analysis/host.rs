//! What the host did while a GPU had nothing to do.

use super::usage::{Gap, clip};
use crate::{LaneKey, Slice, Snapshot};
use roctop_trace::item::{OperationId, Span, ThreadId};

/// Calls of a thread that are looked through.
const MOST_CALLS: usize = 20_000;

/// What a thread did in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Which thread: the one that launched what came next, else the one that was most in calls.
    pub thread: Option<ThreadId>,
    /// The call that took most of the stretch: lane, call, nanoseconds of it in the stretch.
    pub call: Option<(LaneKey, Slice, u64)>,
    /// Nanoseconds in any call.
    pub in_calls: u64,
}

impl Host {
    /// The operation of the call.
    pub fn operation(&self) -> Option<OperationId> {
        self.call.map(|(_, call, _)| OperationId(call.what))
    }
}

/// What one thread did.
fn of_thread(snap: &Snapshot, thread: ThreadId, span: Span) -> Host {
    let key = LaneKey::Api(thread, 0);
    let calls = snap
        .lane(key)
        .and_then(|lane| lane.slices(span.begin, span.end, MOST_CALLS));
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
    // A call that has not returned covers all since its begin.
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

/// What the host did in a gap: the thread that launched what ended it; when that is not known, the thread that spent
/// most of the gap in calls.
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

/// The thread that spent most of a stretch in calls, and in which.
pub fn busiest(snap: &Snapshot, span: Span) -> Host {
    let threads = snap.values.threads.iter().map(|row| row.id);
    let all = threads.take(64).map(|thread| of_thread(snap, thread, span));
    all.max_by_key(|host| host.in_calls).unwrap_or_default()
}
