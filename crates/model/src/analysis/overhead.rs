//! What being recorded costs a program, estimated from what was recorded of it. Pure.
//!
//! A call is two readings of the clock and a record that hides behind them; what a reading takes is measured by each
//! process's own collector. A dispatch is more work when it is submitted. Both factors are what `cargo bench --bench cost` found
//! beside the same programs untraced. What the run-time itself takes for being intercepted is not in it, nor are kernels that
//! run one after the other for their counters.

use crate::Snapshot;
use crate::snapshot::ProcessRow;
use roctop_trace::item::ProcessId;

/// A call beside a reading of the clock.
const CALL: f64 = 2.6;
/// A dispatch beside its calls, ns.
const DISPATCH: f64 = 130.0;
/// Calls of a launch in HIP's own notation.
const LAUNCH_CALLS: f64 = 3.0;

/// An estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// Of a call, ns.
    pub call: f64,
    /// Of a launch with its dispatch, ns; none where nothing but calls was recorded.
    pub launch: Option<f64>,
    /// Of all records, as a share of the process's time on one processor.
    pub share: f64,
}

/// The estimate for a process; none where its collector did not measure the clock.
pub fn of(snap: &Snapshot, process: ProcessId, row: &ProcessRow) -> Option<Overhead> {
    let call = CALL * row.reading? as f64 / 1000.0;
    let threads = snap.values.threads.iter();
    let own = threads.filter(|thread| {
        let known = snap.names.thread(thread.id);
        known.is_some_and(|known| known.process == process)
    });
    let calls: u64 = own.map(|thread| thread.numbers.calls).sum();
    // Copies and ranges cost no more than a dispatch.
    let others = row.records.saturating_sub(calls);
    let until = row.exit.map_or(snap.now, |exit| exit.1);
    let time = until.saturating_sub(row.process.since.max(snap.origin)).max(1);
    let nanos = calls as f64 * call + others as f64 * DISPATCH;
    Some(Overhead {
        call,
        launch: (others > 0).then_some(LAUNCH_CALLS * call + DISPATCH),
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
