//! Statistics by operation and by thread.

use super::apply::is_error;
use super::credible;
use super::histogram_delta::Counts;
use super::names::Names;
use super::stats::{HISTOGRAMS, Stat};
use super::table::{MAX_IDS, dense};
use crate::FastMap;
use roctop_trace::arguments::value_of;
use roctop_trace::item::{ApiCall, ProcessId, TextId, ThreadId};

/// Statistics of an operation.
#[derive(Clone, Debug, Default)]
pub struct ApiStat {
    /// Durations.
    pub stat: Stat,
    /// Number of calls that returned an error.
    pub errors: u64,
    /// The last error code.
    pub last_error: i32,
    /// Bytes of calls of MPI.
    pub bytes: u64,
    /// Number of calls whose bytes are known.
    pub sized: u64,
    /// Time in calls of MPI by process, ns.
    pub by_process: Vec<(ProcessId, u64)>,
}

/// Call times of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadStat {
    /// Number of calls.
    pub calls: u64,
    /// Time in outermost calls, ns.
    pub total: u64,
    /// Time in calls that wait for the GPU, ns.
    pub blocked: u64,
    /// Time in outermost calls of MPI, ns.
    pub mpi: u64,
}

/// All operations and threads.
#[derive(Debug, Default)]
pub struct Calls {
    /// By operation.
    pub operations: Vec<ApiStat>,
    /// Values not yet in the histogram, by operation.
    counts: Vec<Counts>,
    /// By thread.
    pub threads: Vec<ThreadStat>,
    /// Bytes in texts of arguments.
    bytes: FastMap<TextId, u64>,
}

impl Calls {
    /// Takes the text of arguments.
    pub(super) fn text(&mut self, id: TextId, text: &str) {
        if let Some(bytes) = value_of(text, "bytes").and_then(|bytes| bytes.parse().ok()) {
            self.bytes.insert(id, bytes);
        }
    }

    /// Counts calls of a thread.
    pub(super) fn add(&mut self, thread: ThreadId, calls: &[ApiCall], names: &Names) {
        let mut outer = ThreadStat::default();
        for call in calls {
            let nanos = credible(call.span).duration();
            self.call(call, nanos, is_error(call, names));
            let is_mpi = names.is_mpi(call.operation);
            if is_mpi {
                self.count_mpi(call, nanos);
            }
            if call.parent == 0 {
                if is_mpi {
                    outer.mpi = outer.mpi.saturating_add(nanos);
                }
                outer.calls += 1;
                outer.total = outer.total.saturating_add(nanos);
                let blocked = if names.blocks(call.operation) { nanos } else { 0 };
                outer.blocked = outer.blocked.saturating_add(blocked);
            }
        }
        if let Some(known) = dense(&mut self.threads, thread.0, |_| ThreadStat::default()) {
            known.calls += outer.calls;
            known.total = known.total.saturating_add(outer.total);
            known.blocked = known.blocked.saturating_add(outer.blocked);
            known.mpi = known.mpi.saturating_add(outer.mpi);
        }
    }

    #[cold]
    fn count_mpi(&mut self, call: &ApiCall, nanos: u64) {
        let Some(row) = self.operations.get_mut(call.operation.0 as usize) else {
            return;
        };
        match row.by_process.binary_search_by_key(&call.process.0, |of| of.0.0) {
            Ok(at) => row.by_process[at].1 = row.by_process[at].1.saturating_add(nanos),
            Err(at) => row.by_process.insert(at, (call.process, nanos)),
        }
        if let Some(bytes) = call.arguments.and_then(|id| self.bytes.get(&id)) {
            row.bytes = row.bytes.saturating_add(*bytes);
            row.sized += 1;
        }
    }

    #[inline]
    fn call(&mut self, call: &ApiCall, nanos: u64, is_error: bool) {
        let at = call.operation.0 as usize;
        if at >= self.operations.len() && !self.add_operations(at) {
            return;
        }
        let (row, counts) = (&mut self.operations[at], &mut self.counts[at]);
        row.stat.add_apart(nanos);
        if row.stat.is_full() && counts.add(nanos) {
            row.stat.count_in(counts);
        }
        if is_error {
            row.errors += 1;
            row.last_error = call.status.unwrap_or_default();
        }
    }

    /// Creates rows up to this operation; false if it exceeds the limit.
    #[cold]
    fn add_operations(&mut self, last: usize) -> bool {
        if last >= MAX_IDS {
            return false;
        }
        for number in self.operations.len()..=last {
            self.operations.push(ApiStat {
                stat: Stat::new(number < HISTOGRAMS),
                ..ApiStat::default()
            });
        }
        self.counts.resize_with(self.operations.len(), Counts::default);
        true
    }

    /// Updates percentiles.
    pub(super) fn refresh(&mut self) {
        for (row, counts) in self.operations.iter_mut().zip(&mut self.counts) {
            row.stat.count_in(counts);
            row.stat.refresh();
        }
    }
}
