//! A communicator's lane on the timeline: the arrivals and the transfer of each complete collective.

use super::{Collective, Times};
use crate::{LaneKey, Slice};
use roctop_trace::item::{CollectiveOperation as Operation, Span};

/// The part of a collective that a slice shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From the first arrival to the last: the ranks wait.
    Arrivals,
    /// From the last arrival to the last end.
    Transfer,
}

/// A slice of a communicator's lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveSlice {
    /// The operation.
    pub operation: Operation,
    /// The part of it.
    pub stage: Stage,
    /// Number in the communicator.
    pub sequence: u64,
    /// Sender and receiver of a message.
    pub pair: Option<(u32, u32)>,
    /// The rank that came last, if by more than the clocks' error.
    pub last: Option<u32>,
}

impl CollectiveSlice {
    /// What a slice of a communicator's lane shows.
    pub fn of(slice: &Slice) -> Self {
        let (operation, stage) = Self::kind(slice.what);
        let is_message = slice.queue != u32::MAX;
        Self {
            operation,
            stage,
            sequence: slice.value,
            pair: is_message.then_some((slice.queue, slice.shape)),
            last: slice.shape.checked_sub(1).filter(|_| !is_message),
        }
    }

    /// Operation and part by a slice's `what`, which is all that sums keep.
    pub fn kind(what: u32) -> (Operation, Stage) {
        let stage = if what & 1 == 0 {
            Stage::Transfer
        } else {
            Stage::Arrivals
        };
        (Operation::of_number(what >> 1), stage)
    }

    /// In words: `AllReduce #640`, `Send #3 0→1`, `rank 3 last to AllReduce #640`.
    pub fn words(&self) -> String {
        let Self { sequence, .. } = self;
        let name = self.operation.name();
        let label = match self.pair {
            Some((from, to)) => format!("Send #{sequence} {from}→{to}"),
            None => format!("{name} #{sequence}"),
        };
        match (self.stage, self.last) {
            (Stage::Transfer, _) => label,
            (Stage::Arrivals, Some(rank)) => format!("rank {rank} last to {label}"),
            (Stage::Arrivals, None) => format!("arrivals of {label}"),
        }
    }
}

/// The slices of a complete collective and their lane. Arrivals within the clocks' error are no slice: the order is unknown.
pub(crate) fn slices(collective: &Collective, times: &Times) -> (LaneKey, impl Iterator<Item = Slice> + use<>) {
    let key = collective.key;
    let late = collective.latest(times).or_else(|| collective.parts.get(times.latest));
    let operation = late.map_or(Operation::AllReduce, |part| part.call.operation);
    let shape = match key.pair {
        Some((_, to)) => to,
        None => collective.latest(times).map_or(0, |part| part.rank + 1),
    };
    let number = operation as u32;
    let slice = Slice {
        shape,
        // The call of the last rank.
        submit: late.map_or(0, |part| part.call.start),
        correlation: late.map_or(0, |part| part.call.correlation),
        value: key.sequence.into(),
        queue: key.pair.map_or(u32::MAX, |pair| pair.0),
        process: late.map_or(0, |part| part.call.process.0),
        thread: late.map_or(u32::MAX, |part| part.call.thread.0),
        ..Slice::default()
    };
    let is_apart = times.is_significant();
    let arrivals = is_apart.then_some((Stage::Arrivals, times.first, times.last));
    let transfer = (
        Stage::Transfer,
        if is_apart { times.last } else { times.first },
        times.end,
    );
    let both = arrivals.into_iter().chain([transfer]);
    let slices = both.map(move |(stage, begin, end)| Slice {
        span: Span { begin, end },
        what: number << 1 | u32::from(stage == Stage::Arrivals),
        ..slice
    });
    (LaneKey::Collectives(key.communicator), slices)
}
