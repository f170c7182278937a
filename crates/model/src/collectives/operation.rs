//! Statistics of the operations of each communicator.

use super::{Collective, Part, Times};
use roctop_trace::item::CollectiveOperation as Operation;
use std::collections::BTreeMap;

/// Statistics of an operation of a communicator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationRow {
    /// Index of the communicator.
    pub communicator: u32,
    /// The operation; a message of RCCL is a `Send`.
    pub operation: Operation,
    /// Complete ones.
    pub count: u64,
    /// Those with a skew above the clocks' error.
    pub significant: u64,
    /// Sum and maximum of the skews, ns.
    pub skew: u64,
    /// Maximum of the skews, ns.
    pub max_skew: u64,
    /// The error of the largest skew, ns.
    pub error: u64,
    /// The collective with the largest skew.
    pub worst: u32,
    /// Sum of the ranks' waits, ns.
    pub wait: u64,
    /// Sum of the transfers, ns.
    pub transfer: u64,
    /// Bytes as nccl-tests count them, of those whose bytes are known.
    pub bytes: u64,
    /// Transfer time of those, ns.
    pub timed: u64,
    /// Sum of bus bandwidth times transfer time: bytes on the bus.
    pub bus_bytes: f64,
    /// How often each rank came last, by more than the clocks' error; of MPI, last of those that another one waited for.
    pub last: BTreeMap<u32, u64>,
    /// The longest wait of a rank beyond the clocks' error, ns, and whose it was.
    pub max_wait: (u64, u32),
}

impl OperationRow {
    /// Mean skew, ns.
    pub const fn mean_skew(&self) -> u64 {
        match self.skew.checked_div(self.count) {
            Some(mean) => mean,
            None => 0,
        }
    }

    /// Mean algorithm bandwidth, bytes per second.
    pub fn algorithm_bandwidth(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.bytes as f64 * 1e9 / self.timed as f64)
    }

    /// Mean bus bandwidth, bytes per second.
    pub fn bus_bandwidth(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.bus_bytes * 1e9 / self.timed as f64)
    }

    /// The rank that most often came last, and how often.
    pub fn latest(&self) -> Option<(u32, u64)> {
        let largest = self
            .last
            .iter()
            .max_by_key(|(rank, count)| (**count, std::cmp::Reverse(**rank)));
        largest.map(|(rank, count)| (*rank, *count))
    }
}

impl OperationRow {
    pub(super) fn new(communicator: u32, operation: Operation) -> Self {
        Self {
            communicator,
            operation,
            ..Self::default()
        }
    }

    /// Adds a call of MPI that sends or receives: its skew is its wait.
    pub(super) fn add_message(&mut self, part: &Part, times: &Times, sequence: u32) {
        let nanos = part.wait.nanos;
        self.count += 1;
        self.skew = self.skew.saturating_add(nanos);
        if nanos >= self.max_skew {
            (self.max_skew, self.error, self.worst) = (nanos, times.error, sequence);
        }
        self.transfer = self.transfer.saturating_add(times.transfer());
        self.wait = self.wait.saturating_add(nanos);
        if let Some(rank) = part.wait.rank {
            self.significant += 1;
            *self.last.entry(rank).or_default() += 1;
            if nanos > self.max_wait.0 {
                self.max_wait = (nanos, part.rank);
            }
        }
    }

    pub(super) fn add(&mut self, collective: &Collective, times: &Times) {
        let skew = times.skew();
        self.count += 1;
        self.skew = self.skew.saturating_add(skew);
        if skew >= self.max_skew {
            self.max_skew = skew;
            self.error = times.error;
            self.worst = collective.key.sequence;
        }
        self.transfer = self.transfer.saturating_add(times.transfer());
        if let Some(bytes) = times.bytes.filter(|_| times.transfer() > 0) {
            self.bytes = self.bytes.saturating_add(bytes);
            self.timed = self.timed.saturating_add(times.transfer());
            self.bus_bytes += bytes as f64 * times.factor;
        }
        for part in &collective.parts {
            let nanos = part.wait.nanos;
            self.wait = self.wait.saturating_add(nanos);
            // Within the clocks' error nobody is known to have waited.
            if part.wait.rank.is_some() && nanos > self.max_wait.0 {
                self.max_wait = (nanos, part.rank);
            }
        }
        if let Some(part) = collective.latest(times) {
            self.significant += 1;
            *self.last.entry(part.rank).or_default() += 1;
        }
    }
}
