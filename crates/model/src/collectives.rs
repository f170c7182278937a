//! Collectives of RCCL, matched across the processes of a session: who came when, who waited, who came last.
//!
//! All ranks call the collectives of a communicator in the same order, and the collector numbers them. So a collective is
//! a communicator and a number; a message is a communicator, two peers and a number.
//!
//! A rank *arrives* when its kernel begins, or, if not all ranks have a kernel, when it calls. *Skew* is the time between
//! the first and the last arrival, *wait* the time of a rank until the last arrival, *transfer* the time from then to the
//! last end.

mod bandwidth;
mod clocks;
mod waiting;

pub use self::clocks::MachineClock;
pub use self::waiting::{Absence, Waiting};

use self::clocks::Clocks;
use crate::fx_hash::FastMap;
use roctop_trace::item::{
    ApiCall, CollectiveOperation as Operation, Communication, Communicator, CommunicatorState, Datatype, Dispatch,
    Nanos, ProcessId, Span,
};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Error of the clocks of one machine: of the conversion of ticks, and of GPU times.
pub const MACHINE_ERROR: u64 = 2_000;
/// Maximum number of communicators.
const MAX_COMMUNICATORS: usize = 4096;
/// Maximum number of ranks of a communicator.
const MAX_RANKS: u32 = 1 << 16;
/// Maximum number of collectives that are not complete.
const MAX_OPEN: usize = 1 << 16;
/// Number of complete collectives that are kept.
const MAX_KEPT: usize = 4096;
/// A collective whose kernels are missing is complete when its communicator is this much further.
const MAX_BEHIND: u32 = 64;
/// Maximum number of kernels whose call is not known yet.
const MAX_KERNELS: usize = 1 << 16;
/// Number of calls inside of others from which on those of complete collectives are removed.
const MAX_INNER: usize = 4096;
/// Maximum number of problems that are kept.
const MAX_PROBLEMS: usize = 256;
/// `ncclInProgress`: the call continues in the background.
const IN_PROGRESS: i32 = 7;

/// Identifies a collective or a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Index of the communicator.
    pub communicator: u32,
    /// Number in the communicator, from 1; of a message, among those of its sender to its receiver.
    pub sequence: u32,
    /// Sender and receiver of a message.
    pub pair: Option<(u32, u32)>,
}

/// A rank's part in a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Rank in the communicator.
    pub rank: u32,
    /// Its call.
    pub call: Communication,
    /// When the call returned; `None` if it has not.
    pub returned: Option<Nanos>,
    /// Begin of its first and end of its last kernel.
    pub kernel: Option<Span>,
    /// Its group has ended with this call; 0 if it is in no group.
    group_end: u64,
    /// The process has shown kernels of its collectives.
    has_kernels: bool,
}

impl Part {
    /// Whether all that is expected of it is known.
    fn is_complete(&self) -> bool {
        self.returned.is_some() && (self.kernel.is_some() || !self.has_kernels)
    }
}

/// A collective or a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collective {
    /// Which one.
    pub key: Key,
    /// Number of ranks that take part.
    pub size: u32,
    /// The parts that came, by rank; of a message, the sender's and the receiver's.
    pub parts: Vec<Part>,
}

/// Numbers of a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// First arrival.
    pub first: Nanos,
    /// Last arrival.
    pub last: Nanos,
    /// End of the last rank.
    pub end: Nanos,
    /// Index of the part that came last.
    pub latest: usize,
    /// Error of the difference of two ranks' times, ns.
    pub error: u64,
    /// Whether arrivals are begins of kernels, not calls.
    pub by_kernel: bool,
    /// Bytes as nccl-tests count them; `None` if a count or type is unknown.
    pub bytes: Option<u64>,
    /// Bus bandwidth per algorithm bandwidth.
    pub factor: f64,
}

impl Times {
    /// Time between the first and the last arrival.
    pub const fn skew(&self) -> u64 {
        self.last.saturating_sub(self.first)
    }

    /// Time from the last arrival to the last end.
    pub const fn transfer(&self) -> u64 {
        self.end.saturating_sub(self.last)
    }

    /// Whether the skew is larger than the clocks' error.
    pub const fn is_significant(&self) -> bool {
        self.skew() > self.error
    }

    /// Bytes per second.
    pub fn algorithm_bandwidth(&self) -> Option<f64> {
        let bytes = self.bytes.filter(|_| self.transfer() > 0)?;
        Some(bytes as f64 * 1e9 / self.transfer() as f64)
    }

    /// Bytes per second on the bus, by nccl-tests' factors.
    pub fn bus_bandwidth(&self) -> Option<f64> {
        self.algorithm_bandwidth().map(|rate| rate * self.factor)
    }
}

/// A communicator over all processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommunicatorRow {
    /// Number on screen, from 0 in order of appearance.
    pub number: u32,
    /// Whether its identity is known. If not, it is one process's alone, and nothing can be matched.
    pub is_known: bool,
    /// Number of ranks; 0 unknown.
    pub size: u32,
    /// Process of each rank that is recorded.
    pub ranks: BTreeMap<u32, ProcessId>,
    /// How it was created.
    pub state: CommunicatorState,
    /// When ranks released it.
    pub released: BTreeMap<u32, Nanos>,
}

/// Statistics of an operation of a communicator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationRow {
    /// Index of the communicator.
    pub communicator: u32,
    /// The operation; a message is a `Send`.
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
    /// How often each rank came last, by more than the clocks' error.
    pub last: BTreeMap<u32, u64>,
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

/// Something wrong with the program's collectives, or with what is known of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Problem {
    /// A rank called another operation than most.
    Operation {
        /// Which collective.
        key: Key,
        /// The rank.
        rank: u32,
        /// What it called.
        called: Operation,
        /// What most called.
        others: Operation,
    },
    /// A rank passed another number of elements.
    Count {
        /// Which collective.
        key: Key,
        /// The operation.
        operation: Operation,
        /// The rank.
        rank: u32,
        /// Its elements.
        count: u64,
        /// Those of most.
        others: u64,
    },
    /// A rank passed another type.
    Type {
        /// Which collective.
        key: Key,
        /// The operation.
        operation: Operation,
        /// The rank.
        rank: u32,
        /// Its type.
        datatype: Datatype,
        /// That of most.
        others: Datatype,
    },
    /// A rank passed another root or reduction.
    Arguments {
        /// Which collective.
        key: Key,
        /// The operation.
        operation: Operation,
        /// The rank.
        rank: u32,
    },
    /// Two processes have the same rank: a recording is there twice.
    Twice {
        /// Index of the communicator.
        communicator: u32,
        /// The rank.
        rank: u32,
        /// The process that is ignored.
        process: ProcessId,
    },
    /// Processes do not agree on the number of ranks.
    Size {
        /// Index of the communicator.
        communicator: u32,
        /// The process that is ignored.
        process: ProcessId,
    },
    /// A call of a communicator whose creation is unknown: it was not recorded, or the handle is garbage.
    Unknown {
        /// Index of the communicator.
        communicator: u32,
        /// The process.
        process: ProcessId,
    },
    /// A rank released its communicator while it waited for others.
    Abandoned {
        /// Which collective.
        key: Key,
        /// The operation.
        operation: Operation,
        /// The rank.
        rank: u32,
    },
}

/// What a process's communicator number stands for.
#[derive(Clone, Copy, Debug)]
struct Local {
    communicator: u32,
    rank: u32,
    /// Its calls take no part.
    is_ignored: bool,
}

/// Values for a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectiveValues {
    /// All communicators, by index.
    pub communicators: Vec<CommunicatorRow>,
    /// Statistics by communicator and operation.
    pub operations: Vec<OperationRow>,
    /// Complete collectives, the newest last.
    pub recent: Vec<(Arc<Collective>, Times)>,
    /// Collectives that ranks wait for.
    pub waiting: Vec<Waiting>,
    /// Problems, each once.
    pub problems: Vec<Problem>,
    /// Clocks of the machines relative to the first, if there are several.
    pub clocks: Vec<MachineClock>,
    /// Calls that could not be matched.
    pub unmatched: u64,
}

/// The collectives of a session.
#[derive(Clone, Debug, Default)]
pub struct Collectives {
    communicators: Vec<CommunicatorRow>,
    by_identity: FastMap<u64, u32>,
    locals: FastMap<u64, Local>,
    open: BTreeMap<Key, Collective>,
    /// Parts of open collectives by process and call.
    calls: FastMap<(u32, u64), PartKey>,
    /// Calls inside of these by process: the outer call.
    inner: FastMap<(u32, u64), u64>,
    /// Number of calls inside at which they are looked through.
    inner_limit: usize,
    /// Parts of a thread's group that has not ended, by process, thread and group.
    groups: FastMap<(u32, u32, u32), Vec<PartKey>>,
    /// Ends of groups: parts by process and call.
    ends: FastMap<(u32, u64), Vec<PartKey>>,
    /// Kernels whose call is not known yet.
    kernels: FastMap<(u32, u64), Span>,
    /// The same in order.
    kernel_order: VecDeque<(u32, u64)>,
    /// Highest sequence number of each rank of a communicator.
    reached: FastMap<u64, u32>,
    /// Processes that have shown kernels of their collectives.
    has_kernels: BTreeSet<u32>,
    operations: BTreeMap<(u32, Operation), OperationRow>,
    recent: VecDeque<(Arc<Collective>, Times)>,
    problems: Vec<Problem>,
    clocks: Clocks,
    unmatched: u64,
    /// Complete collectives since the last [`Collectives::take_done`], if they are wanted.
    done: Option<Vec<(Arc<Collective>, Times)>>,
}

/// A part of a collective: by rank, and of a message by its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartKey {
    key: Key,
    rank: u32,
    is_receiver: bool,
}

const fn pack(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

impl Collectives {
    /// Also keeps every complete collective until [`Collectives::take_done`].
    #[must_use]
    pub fn keeping_all() -> Self {
        Self {
            done: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Complete collectives since the last call.
    pub fn take_done(&mut self) -> Vec<(Arc<Collective>, Times)> {
        self.done.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether any communicator is known: otherwise calls and dispatches need not be passed.
    #[inline]
    pub fn is_active(&self) -> bool {
        !self.communicators.is_empty()
    }

    /// The communicators, by index.
    pub fn communicators(&self) -> &[CommunicatorRow] {
        &self.communicators
    }

    /// Declares the machine of a process; processes of machine 0 need not be declared.
    pub fn machine(&mut self, process: ProcessId, machine: u32) {
        self.clocks.machine(process, machine);
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// A communicator was created, released or first seen.
    pub fn communicator(&mut self, found: &Communicator) {
        let own = pack(found.process.0, found.number);
        if found.state == CommunicatorState::Released {
            self.released(own, found.at);
            return;
        }
        // The same fact again.
        if self.locals.contains_key(&own) {
            return;
        }
        let known = found
            .identity
            .and_then(|identity| self.by_identity.get(&identity).copied());
        let index = match known {
            Some(index) => index,
            None if self.communicators.len() >= MAX_COMMUNICATORS => return,
            None => {
                let index = self.communicators.len() as u32;
                self.communicators.push(CommunicatorRow {
                    number: index,
                    is_known: found.identity.is_some() && found.rank.is_some() && found.size.is_some(),
                    size: found.size.unwrap_or(0),
                    state: found.state,
                    ..CommunicatorRow::default()
                });
                if let Some(identity) = found.identity {
                    self.by_identity.insert(identity, index);
                }
                index
            }
        };
        let row = &mut self.communicators[index as usize];
        let mut local = Local {
            communicator: index,
            rank: found.rank.unwrap_or(0),
            is_ignored: false,
        };
        let problem = if !row.is_known || found.rank.is_none() {
            local.is_ignored = true;
            Some(Problem::Unknown {
                communicator: index,
                process: found.process,
            })
        } else if found.size != Some(row.size) || local.rank >= row.size.min(MAX_RANKS) {
            local.is_ignored = true;
            Some(Problem::Size {
                communicator: index,
                process: found.process,
            })
        } else if let Entry::Vacant(place) = row.ranks.entry(local.rank) {
            place.insert(found.process);
            None
        } else {
            local.is_ignored = true;
            Some(Problem::Twice {
                communicator: index,
                rank: local.rank,
                process: found.process,
            })
        };
        self.locals.insert(own, local);
        if let Some(problem) = problem {
            self.problem(problem);
        }
    }

    fn released(&mut self, own: u64, at: Nanos) {
        let Some(local) = self.locals.get(&own).copied().filter(|local| !local.is_ignored) else {
            return;
        };
        if let Some(row) = self.communicators.get_mut(local.communicator as usize) {
            row.released.insert(local.rank, at);
        }
    }

    /// A call that communicates began.
    pub fn communication(&mut self, call: &Communication) {
        let process = call.process.0;
        match call.operation {
            Operation::GroupEnd => return self.group_ended(call),
            Operation::Withdrawn => return self.withdrawn(call),
            _ => {}
        }
        let local = self.locals.get(&pack(process, call.communicator)).copied();
        let Some(local) = local.filter(|local| !local.is_ignored && call.sequence != 0) else {
            self.unmatched += 1;
            return;
        };
        let size = self.communicators[local.communicator as usize].size;
        let is_receiver = call.operation == Operation::Receive;
        let pair = match (call.operation, call.peer) {
            (Operation::Send, Some(peer)) if peer < size => Some((local.rank, peer)),
            (Operation::Receive, Some(peer)) if peer < size => Some((peer, local.rank)),
            (Operation::Send | Operation::Receive, _) => {
                self.unmatched += 1;
                return;
            }
            _ => None,
        };
        let key = Key {
            communicator: local.communicator,
            sequence: call.sequence,
            pair,
        };
        let place = PartKey {
            key,
            rank: local.rank,
            is_receiver,
        };
        if pair.is_none() {
            let reached = self.reached.entry(pack(local.communicator, local.rank)).or_default();
            *reached = (*reached).max(call.sequence);
        }
        let has_kernels = self.has_kernels.contains(&process);
        let collective = self.open.entry(key).or_insert_with(|| Collective {
            key,
            size: if pair.is_some() { 2 } else { size },
            parts: Vec::new(),
        });
        let part = Part {
            rank: local.rank,
            call: *call,
            has_kernels,
            ..Part::default()
        };
        let order = |part: &Part| (part.call.operation == Operation::Receive, part.rank);
        match collective.parts.binary_search_by_key(&order(&part), order) {
            // A damaged recording.
            Ok(_) => {
                self.unmatched += 1;
                return;
            }
            Err(at) => collective.parts.insert(at, part),
        }
        self.calls.insert((process, call.correlation), place);
        if let Some(span) = self.kernels.remove(&(process, call.correlation)) {
            self.ran(process, call.correlation, span);
        }
        if call.group != 0 {
            self.groups
                .entry((process, call.thread.0, call.group))
                .or_default()
                .push(place);
        }
        if self.open.len() > MAX_OPEN
            && let Some((_, oldest)) = self.open.pop_first()
        {
            self.forget(&oldest);
            self.unmatched += oldest.parts.len() as u64;
        }
    }

    /// A group ended: its parts begin with this call.
    fn group_ended(&mut self, call: &Communication) {
        let group = (call.process.0, call.thread.0, call.group);
        let places = self.groups.remove(&group).unwrap_or_default();
        for place in &places {
            if let Some(part) = self.part(*place) {
                part.group_end = call.correlation;
                part.returned = None;
                part.call.start = call.start;
            }
        }
        if !places.is_empty() {
            self.ends.insert((call.process.0, call.correlation), places);
        }
    }

    /// A call failed: RCCL did not take it.
    fn withdrawn(&mut self, call: &Communication) {
        let Some(place) = self.calls.remove(&(call.process.0, call.correlation)) else {
            return;
        };
        let Some(collective) = self.open.get_mut(&place.key) else {
            return;
        };
        collective
            .parts
            .retain(|part| (part.call.process, part.call.correlation) != (call.process, call.correlation));
        if collective.parts.is_empty() {
            self.open.remove(&place.key);
        }
        if place.key.pair.is_none() {
            let reached = self
                .reached
                .entry(pack(place.key.communicator, place.rank))
                .or_default();
            *reached = (*reached).min(place.key.sequence - 1);
        }
    }

    fn part(&mut self, place: PartKey) -> Option<&mut Part> {
        let collective = self.open.get_mut(&place.key)?;
        let is_it = |part: &&mut Part| {
            part.rank == place.rank && (part.call.operation == Operation::Receive) == place.is_receiver
        };
        collective.parts.iter_mut().find(is_it)
    }

    /// Parts that begin with a call: its own, or those of the group that it ends.
    fn places(&self, process: u32, correlation: u64) -> impl Iterator<Item = PartKey> + use<> {
        let own = self.calls.get(&(process, correlation)).copied();
        let group = self.ends.get(&(process, correlation)).cloned().unwrap_or_default();
        own.into_iter().chain(group)
    }

    /// A call returned.
    pub fn returned(&mut self, call: &ApiCall) {
        let (process, correlation) = (call.process.0, call.correlation);
        if call.parent != 0 && self.is_part(process, call.parent) {
            self.inside(process, correlation, call.parent);
            return;
        }
        if call.parent != 0
            && let Some(outer) = self.inner.get(&(process, call.parent)).copied()
        {
            self.inside(process, correlation, outer);
            return;
        }
        // A failed call takes no part: its withdrawal follows. Until then another rank's next collective has its number.
        let is_failed = call.status.is_some_and(|status| status != 0 && status != IN_PROGRESS);
        if is_failed && self.calls.contains_key(&(process, correlation)) {
            return;
        }
        for place in self.places(process, correlation) {
            let Some(part) = self.part(place) else { continue };
            // The end of the group is the part's end.
            if part.call.group == 0 || part.group_end == correlation {
                part.returned = Some(call.span.end.max(part.call.start));
            }
            self.complete(place.key);
        }
    }

    fn is_part(&self, process: u32, correlation: u64) -> bool {
        self.calls.contains_key(&(process, correlation)) || self.ends.contains_key(&(process, correlation))
    }

    /// A call inside of one that communicates, which may have launched its kernel.
    fn inside(&mut self, process: u32, correlation: u64, outer: u64) {
        self.inner.insert((process, correlation), outer);
        if let Some(span) = self.kernels.remove(&(process, correlation)) {
            self.ran(process, outer, span);
        }
    }

    /// A kernel ran.
    pub fn dispatch(&mut self, dispatch: &Dispatch) {
        let (process, correlation) = (dispatch.process.0, dispatch.correlation);
        if correlation == 0 || dispatch.span.end == 0 {
            return;
        }
        if self.is_part(process, correlation) {
            self.ran(process, correlation, dispatch.span);
        } else if let Some(outer) = self.inner.get(&(process, correlation)).copied() {
            self.ran(process, outer, dispatch.span);
        } else {
            let known = self.kernels.entry((process, correlation)).or_insert(dispatch.span);
            *known = joined(*known, dispatch.span);
            self.kernel_order.push_back((process, correlation));
            if self.kernel_order.len() > MAX_KERNELS
                && let Some(oldest) = self.kernel_order.pop_front()
            {
                self.kernels.remove(&oldest);
            }
        }
    }

    fn ran(&mut self, process: u32, correlation: u64, span: Span) {
        if self.has_kernels.insert(process) {
            for part in self.open.values_mut().flat_map(|collective| &mut collective.parts) {
                part.has_kernels |= part.call.process.0 == process;
            }
        }
        for place in self.places(process, correlation) {
            let Some(part) = self.part(place) else { continue };
            part.kernel = Some(joined(part.kernel.unwrap_or(span), span));
            self.complete(place.key);
        }
    }

    /// Counts a collective if all is known of it.
    fn complete(&mut self, key: Key) {
        let Some(collective) = self.open.get(&key) else { return };
        let is_whole = collective.parts.len() == collective.size as usize;
        if is_whole && collective.parts.iter().all(Part::is_complete) {
            self.close(key);
        }
        // Older ones whose kernels were lost.
        let old = Key {
            communicator: key.communicator,
            sequence: key.sequence.saturating_sub(MAX_BEHIND),
            pair: None,
        };
        if key.pair.is_none()
            && let Some(collective) = self.open.get(&old)
            && collective.parts.len() == collective.size as usize
            && collective.parts.iter().all(|part| part.returned.is_some())
        {
            self.close(old);
        }
    }

    /// All records have come: what has no kernel gets none.
    pub fn finish(&mut self) {
        let is_whole = |collective: &&Collective| {
            collective.parts.len() == collective.size as usize
                && collective.parts.iter().all(|part| part.returned.is_some())
        };
        let whole: Vec<_> = self.open.values().filter(is_whole).map(|it| it.key).collect();
        for key in whole {
            self.close(key);
        }
    }

    fn forget(&mut self, collective: &Collective) {
        for part in &collective.parts {
            let process = part.call.process.0;
            self.calls.remove(&(process, part.call.correlation));
            if part.group_end != 0 {
                let end = (process, part.group_end);
                if let Some(places) = self.ends.get_mut(&end) {
                    places.retain(|place| place.key != collective.key);
                    if places.is_empty() {
                        self.ends.remove(&end);
                    }
                }
            }
        }
        // Calls inside of complete ones are needed no more; they go in bulk.
        if self.inner.len() > self.inner_limit.max(MAX_INNER) {
            let (calls, ends) = (&self.calls, &self.ends);
            self.inner.retain(|(process, _), outer| {
                calls.contains_key(&(*process, *outer)) || ends.contains_key(&(*process, *outer))
            });
            self.inner_limit = 2 * self.inner.len();
        }
    }

    fn close(&mut self, key: Key) {
        let Some(collective) = self.open.remove(&key) else {
            return;
        };
        self.forget(&collective);
        self.check(&collective);
        let operation = collective
            .parts
            .first()
            .map_or(Operation::AllReduce, |part| part.call.operation);
        self.clocks.learn(&collective, operation);
        let Some(times) = self.times(&collective) else { return };
        let row = self
            .operations
            .entry((key.communicator, operation))
            .or_insert_with(|| OperationRow {
                communicator: key.communicator,
                operation,
                ..OperationRow::default()
            });
        row.add(&collective, &times);
        let collective = Arc::new(collective);
        if let Some(done) = &mut self.done {
            done.push((collective.clone(), times));
        }
        self.recent.push_back((collective, times));
        if self.recent.len() > MAX_KEPT {
            self.recent.pop_front();
        }
    }

    /// The numbers of a collective all of whose parts are there.
    pub fn times(&self, collective: &Collective) -> Option<Times> {
        let by_kernel = collective.parts.iter().all(|part| part.kernel.is_some());
        let at = |part: &Part| {
            let begin = part
                .kernel
                .filter(|_| by_kernel)
                .map_or(part.call.start, |kernel| kernel.begin);
            self.clocks.aligned(part.call.process, begin)
        };
        let end = |part: &Part| {
            let returned = part.returned.unwrap_or(part.call.start);
            let end = part.kernel.filter(|_| by_kernel).map_or(returned, |kernel| kernel.end);
            self.clocks.aligned(part.call.process, end)
        };
        let arrivals: Vec<Nanos> = collective.parts.iter().map(at).collect();
        let first = *arrivals.iter().min()?;
        let (latest, last) = arrivals
            .iter()
            .copied()
            .enumerate()
            .max_by_key(|(at, time)| (*time, std::cmp::Reverse(*at)))?;
        let (bytes, factor) = bandwidth::of(collective);
        Some(Times {
            first,
            last,
            latest,
            end: collective.parts.iter().map(end).max()?,
            error: self.clocks.error(collective.parts.iter().map(|part| part.call.process)),
            by_kernel,
            bytes,
            factor,
        })
    }

    /// Time at which a part arrived, on the clock of the first machine.
    pub fn arrival(&self, part: &Part, times: &Times) -> Nanos {
        let begin = part
            .kernel
            .filter(|_| times.by_kernel)
            .map_or(part.call.start, |kernel| kernel.begin);
        self.clocks.aligned(part.call.process, begin)
    }

    /// Compares what the ranks passed.
    fn check(&mut self, collective: &Collective) {
        let key = collective.key;
        let parts = &collective.parts;
        let is_message = key.pair.is_some();
        let usual_operation = most(parts.iter().map(|part| part.call.operation));
        let usual_count = most(parts.iter().map(|part| part.call.count));
        let usual_type = most(parts.iter().map(|part| part.call.datatype));
        let usual_rest = most(parts.iter().map(|part| (part.call.peer, part.call.reduction)));
        let mut found = Vec::new();
        for part in parts {
            let (rank, call) = (part.rank, &part.call);
            let operation = usual_operation;
            if !is_message && call.operation != usual_operation {
                found.push(Problem::Operation {
                    key,
                    rank,
                    called: call.operation,
                    others: usual_operation,
                });
            } else if call.count != usual_count {
                found.push(Problem::Count {
                    key,
                    operation,
                    rank,
                    count: call.count,
                    others: usual_count,
                });
            } else if call.datatype != usual_type {
                found.push(Problem::Type {
                    key,
                    operation,
                    rank,
                    datatype: call.datatype,
                    others: usual_type,
                });
            } else if !is_message && (call.peer, call.reduction) != usual_rest {
                found.push(Problem::Arguments { key, operation, rank });
            }
        }
        for problem in found {
            self.problem(problem);
        }
    }

    /// The values at `now`.
    pub fn values(&mut self, now: Nanos) -> CollectiveValues {
        let waiting = self.waiting(now);
        for collective in waiting
            .iter()
            .filter_map(|waiting| self.open.get(&waiting.key))
            .cloned()
            .collect::<Vec<_>>()
        {
            self.check(&collective);
        }
        CollectiveValues {
            communicators: self.communicators.clone(),
            operations: self.operations.values().cloned().collect(),
            recent: self.recent.iter().cloned().collect(),
            waiting,
            problems: self.problems.iter().cloned().chain(self.abandoned(now)).collect(),
            clocks: self.clocks.machines(),
            unmatched: self.unmatched,
        }
    }
}

/// From the first begin to the last end.
fn joined(one: Span, other: Span) -> Span {
    Span {
        begin: one.begin.min(other.begin),
        end: one.end.max(other.end),
    }
}

/// The most frequent value; of several, the smallest.
fn most<T: Copy + Ord + Default>(values: impl Iterator<Item = T>) -> T {
    let mut counts: BTreeMap<T, u32> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let largest = counts
        .into_iter()
        .max_by_key(|(value, count)| (*count, std::cmp::Reverse(*value)));
    largest.map(|(value, _)| value).unwrap_or_default()
}

impl OperationRow {
    fn add(&mut self, collective: &Collective, times: &Times) {
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
            let begin = part
                .kernel
                .filter(|_| times.by_kernel)
                .map_or(part.call.start, |kernel| kernel.begin);
            self.wait = self.wait.saturating_add(times.last.saturating_sub(begin).min(skew));
        }
        if times.is_significant()
            && let Some(part) = collective.parts.get(times.latest)
        {
            self.significant += 1;
            *self.last.entry(part.rank).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests;
