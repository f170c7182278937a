//! Estimates the overhead of recording from the records. Pure.
//!
//! A call costs two clock readings and a record, which mostly overlaps with them; the collector of each process
//! measures the cost of a reading. A dispatch costs additional work at submission. Both factors come from `cargo bench
//! --bench cost`, against the same programs without roctop. Not included: the run-time's own cost of interception, and
//! serialization of kernels for counters.

use crate::Snapshot;
use crate::snapshot::ProcessRow;
use roctop_trace::item::ProcessId;

/// Cost of a call, in clock readings.
const CALL_CLOCK_READINGS: f64 = 2.6;
/// Cost of a dispatch in addition to its calls, ns.
const DISPATCH_NANOS: f64 = 130.0;
/// Calls per launch with HIP's `<<<>>>` syntax.
const LAUNCH_CALLS: f64 = 3.0;

/// Estimated overhead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// Per call, ns.
    pub call: f64,
    /// Per launch with its dispatch, ns; `None` if only calls were recorded.
    pub launch: Option<f64>,
    /// Of all records, as a share of the process's time on one CPU.
    pub share: f64,
}

/// Estimates the overhead of a process; `None` if its collector did not measure the clock.
pub fn of(snap: &Snapshot, process: ProcessId, row: &ProcessRow) -> Option<Overhead> {
    let call = CALL_CLOCK_READINGS * row.reading? as f64 / 1000.0;
    let threads = snap.values.threads.iter();
    let own = threads.filter(|thread| {
        let known = snap.names.thread(thread.id);
        known.is_some_and(|known| known.process == process)
    });
    let calls: u64 = own.map(|thread| thread.numbers.calls).sum();
    // Copies and ranges cost at most as much as a dispatch.
    let others = row.records.saturating_sub(calls);
    let until = row.exit.map_or(snap.now, |exit| exit.1);
    let time = until.saturating_sub(row.process.since.max(snap.origin)).max(1);
    let nanos = calls as f64 * call + others as f64 * DISPATCH_NANOS;
    Some(Overhead {
        call,
        launch: (others > 0).then_some(LAUNCH_CALLS * call + DISPATCH_NANOS),
        share: nanos / time as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, Options, Store};
    use roctop_trace::item::{ApiCall, Item, Process, Span, Thread, ThreadId};

    #[test]
    fn calls_cost_what_the_clock_costs_there() {
        let mut store = Store::new(Options::default());
        store.apply(&Item::Process(Process {
            since: 1_000_000,
            ..Process::default()
        }));
        store.apply(&Item::Thread(Thread {
            id: ThreadId(0),
            ..Thread::default()
        }));
        for at in 0..1000 {
            let begin = 1_000_000 + at * 1000;
            store.apply(&Item::Api(ApiCall {
                span: Span { begin, end: begin + 10 },
                ..ApiCall::default()
            }));
        }
        store.apply(&Item::Now(2_000_000));
        let estimate = |store: &mut Store| {
            let snap = store.snapshot(Fresh::All);
            of(&snap, ProcessId(0), &snap.values.processes[0])
        };
        assert_eq!(estimate(&mut store), None, "nobody measured the clock");
        store.apply(&Item::ClockCost {
            process: ProcessId(0),
            picoseconds: 10_000,
        });
        let known = estimate(&mut store).unwrap();
        assert_eq!((known.call, known.launch), (26.0, None));
        // 1000 calls of 26 ns in a millisecond.
        assert!((known.share - 0.026).abs() < 1e-9, "{known:?}");
    }
}
