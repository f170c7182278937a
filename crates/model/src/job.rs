//! A job: one program on many ranks and nodes, as one state.
//!
//! Each rank's roctop makes [`RankSums`] about once a second ([`Measure`]). The node's daemon puts those of its ranks
//! together to a [`NodeReport`] of at most [`MAX_REPORT`] bytes ([`Reducer`]). The root adds the reports to a [`Job`], whose
//! [`JobValues`] are what a screen or an answer shows.
//!
//! **Clocks.** A rank's times are CLOCK_BOOTTIME ns of its machine. The root knows each node's offset and error
//! ([`NodeClock`]) and brings times to its own clock. Times of two nodes are compared only beyond the sum of both errors.

mod cause;
mod grid;
mod matching;
mod measure;
mod overview;
mod placed;
mod reducer;
mod report;
mod state;
mod sums;

pub use self::cause::{Reason, Slow};
pub use self::grid::{Cell, Grid, Quantity, SECONDS};
pub use self::matching::{CommunicatorSums, Late, WaitingSums};
pub use self::measure::{Measure, Placement};
pub use self::overview::{JobAlert, JobValues, RankState, Row, RowKind, Totals};
pub use self::placed::{Finding, NodePlacement};
pub use self::reducer::Reducer;
pub use self::report::{
    Error, LeftOut, MAX_RANKS, MAX_REPORT, NodeReport, RankReport, decode_node, decode_rank, encode_rank,
};
pub use self::state::{Job, NodeClock, NodeRow, NodeState, RankRow, STALE};
pub use self::sums::{
    AlertSums, ArrivalSums, CommunicatorPart, HostSums, KernelSums, MAX_ARRIVALS, PendingPart, RankSums, Readings,
    StepSums, name_id,
};

#[cfg(test)]
mod tests;
