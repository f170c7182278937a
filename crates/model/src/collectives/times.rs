//! Arrivals, skew and bandwidth of a complete collective.

use super::{Collective, Collectives, Part, bandwidth};
use roctop_trace::item::{CollectiveOperation as Operation, Nanos};

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

/// A part's wait for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Time from its arrival to that of the last one that it needs, ns.
    pub nanos: u64,
    /// That rank; `None` if it did not wait, or if that is within the clocks' error.
    pub rank: Option<u32>,
}

/// Whether a call of MPI needs what another rank gives, by the definition of the function. `root` is that of the call.
fn needs(operation: Operation, own: u32, other: u32, root: Option<u32>) -> bool {
    match operation {
        Operation::MpiBcast | Operation::MpiScatter | Operation::MpiScatterv => root == Some(other),
        Operation::MpiGather | Operation::MpiGatherv | Operation::MpiReduce => root == Some(own),
        Operation::MpiScan | Operation::MpiExscan => other < own,
        _ => !operation.is_message() || operation.awaits_message(),
    }
}

/// Whether all ranks that call an operation need all others.
pub(crate) fn is_mutual(operation: Operation) -> bool {
    let none = u32::MAX;
    needs(operation, 0, none, Some(none)) && needs(operation, none, 0, Some(none)) && needs(operation, 0, none, None)
}

impl Collectives {
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

    /// How long a part waited, and for whom. A part of RCCL waits until the last one has come. A call of MPI waits for those
    /// that it needs, and for none that came when it had returned.
    pub(super) fn wait(&self, collective: &Collective, times: &Times, part: &Part) -> Wait {
        let own = self.arrival(part, times);
        let operation = part.call.operation;
        if !operation.is_mpi() {
            let nanos = times.last.saturating_sub(own);
            let last = collective.parts.get(times.latest).filter(|_| times.is_significant());
            return Wait {
                nanos: nanos.min(times.skew()),
                rank: last.map(|part| part.rank).filter(|_| nanos > 0),
            };
        }
        let end = self
            .clocks
            .aligned(part.call.process, part.returned.unwrap_or(part.call.start));
        let needed = collective.parts.iter().filter(|other| {
            let is_other = other.rank != part.rank;
            is_other && needs(operation, part.rank, other.rank, part.call.peer)
        });
        let last = needed
            .map(|other| (self.arrival(other, times), other.rank))
            .max_by_key(|(at, rank)| (*at, std::cmp::Reverse(*rank)));
        match last {
            Some((at, rank)) if at > own && at <= end.saturating_add(times.error) => Wait {
                nanos: (at - own).min(end.saturating_sub(own)),
                rank: (at - own > times.error).then_some(rank),
            },
            _ => Wait::default(),
        }
    }

    /// Time at which a part arrived, on the clock of the first machine.
    pub fn arrival(&self, part: &Part, times: &Times) -> Nanos {
        let begin = part
            .kernel
            .filter(|_| times.by_kernel)
            .map_or(part.call.start, |kernel| kernel.begin);
        self.clocks.aligned(part.call.process, begin)
    }
}
