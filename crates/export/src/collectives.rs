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

/// Maximum number of calls of a process of which that is kept in memory, 32 bytes each.
const MAX_MATCHED: usize = 1 << 21;

/// What is known of a matched call of MPI.
#[derive(Clone, Copy, Debug)]
struct Known {
    thread: u32,
    begin: Nanos,
    /// How long it waited, ns; `u64::MAX` unknown.
    wait: u64,
    /// The same for sender and receiver of a message; 0 for a collective.
    flow: u64,
}

/// Matched calls of MPI of a process, by thread and begin.
#[derive(Debug, Default)]
pub(crate) struct Matched(Vec<Known>);

impl Matched {
    /// Adds a part, if it is of MPI.
    pub(crate) fn add(&mut self, row: &PartRow) {
        let operation = row.operation;
        if !operation.is_mpi() || self.0.len() >= MAX_MATCHED {
            return;
        }
        // Others return at once, and clocks may not be comparable.
        let waits = row.error != u64::MAX && (!operation.is_message() || operation.awaits_message());
        let known = Known {
            thread: row.thread.0,
            begin: row.call,
            wait: if waits { row.wait } else { u64::MAX },
            flow: if operation.is_message() { flow(row) } else { 0 },
        };
        self.0.push(known);
    }

    /// All have been added.
    pub(crate) fn sort(&mut self) {
        self.0.sort_unstable_by_key(|known| (known.thread, known.begin));
    }

    fn of(&self, call: &ApiCall) -> Option<&Known> {
        let key = (call.thread.0, call.span.begin);
        let at = self.0.binary_search_by_key(&key, |known| (known.thread, known.begin));
        self.0.get(at.ok()?)
    }

    /// How long a call waited for other ranks; `None` if that is not known.
    pub(crate) fn wait(&self, call: &ApiCall) -> Option<u64> {
        let wait = self.of(call)?.wait;
        (wait != u64::MAX).then_some(wait)
    }

    /// Number of the message that a call sends or receives.
    pub(crate) fn flow(&self, call: &ApiCall) -> Option<u64> {
        let flow = self.of(call)?.flow;
        (flow != 0).then_some(flow)
    }
}

/// Number of a message: FNV-1a over its communicator, sender, receiver and sequence number.
fn flow(row: &PartRow) -> u64 {
    let peer = row.peer.saturating_sub(1);
    let (from, to) = if row.operation.receives() {
        (peer, row.rank)
    } else {
        (row.rank, peer)
    };
    let words = [row.communicator, from, to, row.sequence];
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    }) | 1
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
        Item::Message(call) => collectives.message(call),
        Item::Switched { process, on: false, .. } => collectives.misses_calls(*process),
        Item::Lost {
            process,
            reason,
            records: 1..,
        } if reason.is_of_calls() => collectives.misses_calls(*process),
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
