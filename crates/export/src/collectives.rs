//! Collectives as a table: a row for each rank's part in each complete collective.

use crate::sort::Entry;
use roctop_model::collectives::{Collective, Collectives, Times};
use roctop_trace::item::{ApiCall, CollectiveOperation, Item, Nanos, ProcessId, ThreadId};
use serde::{Deserialize, Serialize};

/// A rank's part in a collective, with the numbers of the whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartRow {
    /// Process of the rank.
    pub(crate) process: ProcessId,
    /// Thread that called.
    pub(crate) thread: ThreadId,
    /// Communicator, in order of appearance.
    pub(crate) communicator: u32,
    /// Number in the communicator.
    pub(crate) sequence: u32,
    /// Operation.
    pub(crate) operation: CollectiveOperation,
    /// Rank in the communicator, and number of ranks that take part.
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    /// Root or peer plus one, 0 none.
    pub(crate) peer: u32,
    /// Elements, their type, and bytes as nccl-tests count them.
    pub(crate) count: u64,
    pub(crate) datatype: u8,
    pub(crate) bytes: u64,
    /// Call, arrival and end of this rank.
    pub(crate) call: Nanos,
    pub(crate) arrival: Nanos,
    pub(crate) end: Nanos,
    /// Time from its arrival to the last one.
    pub(crate) wait: u64,
    /// Of the whole: skew, error of the clocks, transfer.
    pub(crate) skew: u64,
    pub(crate) error: u64,
    pub(crate) transfer: u64,
    /// The rank that came last plus one; 0 within the clocks' error.
    pub(crate) last: u32,
    /// Bytes per second.
    pub(crate) algorithm_bandwidth: f64,
    pub(crate) bus_bandwidth: f64,
}

/// Maximum number of calls of a process whose waits are kept in memory, 24 bytes each.
const MAX_WAITS: usize = 1 << 21;

/// Waits of calls of MPI: thread, begin, ns; in order.
#[derive(Debug, Default)]
pub(crate) struct Waits(pub(crate) Vec<(u32, Nanos, u64)>);

impl Waits {
    /// Adds a part, if it is of MPI and its clock can be compared with the others'.
    pub(crate) fn add(&mut self, row: &PartRow) {
        if row.operation.is_mpi() && row.error != u64::MAX && self.0.len() < MAX_WAITS {
            self.0.push((row.thread.0, row.call, row.wait));
        }
    }

    /// How long a call waited for other ranks; `None` if it was not matched.
    pub(crate) fn of(&self, call: &ApiCall) -> Option<u64> {
        let key = (call.thread.0, call.span.begin);
        let at = self.0.binary_search_by_key(&key, |wait| (wait.0, wait.1)).ok()?;
        self.0.get(at).map(|wait| wait.2)
    }
}

impl Entry for PartRow {
    type Key = (ProcessId, Nanos, u32, u32, u32);

    fn key(&self) -> Self::Key {
        (self.process, self.call, self.communicator, self.sequence, self.peer)
    }
}

/// Passes an item to the collectives.
pub(crate) fn put(collectives: &mut Collectives, item: &Item) {
    match item {
        Item::Process(process) => collectives.machine(process.id, process.machine),
        Item::Communicator(communicator) => collectives.communicator(communicator),
        Item::Communication(call) => collectives.communication(call),
        Item::Api(call) if collectives.is_active() => collectives.returned(call),
        Item::Dispatch(dispatch) if collectives.is_active() => collectives.dispatch(dispatch),
        _ => {}
    }
}

/// The rows of a complete collective.
pub(crate) fn rows<'a>(collective: &'a Collective, times: &'a Times) -> impl Iterator<Item = PartRow> + 'a {
    let last = collective.latest(times).map_or(0, |part| part.rank + 1);
    collective.parts.iter().map(move |part| {
        let kernel = part.kernel.filter(|_| times.by_kernel);
        PartRow {
            process: part.call.process,
            thread: part.call.thread,
            communicator: collective.key.communicator,
            sequence: collective.key.sequence,
            operation: part.call.operation,
            rank: part.rank,
            ranks: collective.size,
            peer: part.call.peer.map_or(0, |peer| peer + 1),
            count: part.call.count,
            datatype: part.call.datatype.0,
            bytes: times.bytes.unwrap_or(0),
            call: part.call.start,
            arrival: kernel.map_or(part.call.start, |kernel| kernel.begin),
            end: kernel.map_or(part.returned.unwrap_or(part.call.start), |kernel| kernel.end),
            wait: part.wait.nanos,
            skew: times.skew(),
            error: times.error,
            transfer: times.transfer(),
            last,
            algorithm_bandwidth: times.algorithm_bandwidth().unwrap_or(0.0),
            bus_bandwidth: times.bus_bandwidth().unwrap_or(0.0),
        }
    })
}
