//! Items: the store's input, decoded, with dense ids and one clock.
//!
//! A [`crate::decode::Decoder`] turns records into items: ids are dense and typed, texts are interned for the whole
//! session, and every time is CLOCK_BOOTTIME in ns. Live sessions, recordings and scenarios all produce this type, so
//! screen and exports do not depend on the source.

mod activity;
mod communication;
mod counter;
mod entity;

pub use activity::{Allocation, ApiCall, Copy, Dispatch, EventCall, Marker, Open, Scratch, ThreadTime, Transfer};
pub use communication::{
    Act, Communication, Communicator, CommunicatorState, Datatype, Message, Operation as CollectiveOperation,
};
pub use counter::{CounterInfo, CounterInstances, CounterValue};
pub use entity::{Agent, AgentKind, Code, Exit, Health, Kernel, Operation, Process, Queue, Registers, Stream, Thread};

pub use crate::id::{
    AgentId, CounterId, KernelId, Nanos, NodeId, OperationId, ProcessId, QueueId, Span, StreamId, TextId, ThreadId,
};

use crate::binding::Binding;
use crate::gauge::metric::Sample;
use crate::gauge::{Count, Counter, Device};
use crate::pc_sampling;
use crate::site::SiteFact;
use roctop_ring::level::Step;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Origin of the session's displayed times after a process that began at `at` appeared: the first process, or one up to
/// a minute before it. An invalid time, or one far before the origin, comes from a corrupt file and is ignored.
pub fn session_origin(origin: Option<Nanos>, at: Nanos) -> Option<Nanos> {
    let is_time = at > 0 && at < 1 << 60;
    let is_earlier = origin.is_none_or(|origin| at < origin && origin - at < 60_000_000_000);
    if is_time && is_earlier { Some(at) } else { origin }
}

/// Reason for missing records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LossReason {
    /// Overwritten before the viewer read them.
    Overwritten,
    /// No ring was free for the thread.
    NoRing,
    /// A signal handler interrupted the writing of a record.
    Reentrant,
    /// A range was nested too deeply, or too many were open.
    RangeTable,
    /// The fact or string region was full.
    FactsFull,
    /// Dispatches or copies without a time.
    Untimed,
    /// A part of a recording is damaged or missing.
    Damaged,
    /// The recording could not be written: its disk was full, too slow, or failed.
    NotWritten,
    /// Removed because the recording reached its size limit.
    Removed,
    /// A part of a recording is missing, and nothing says how many records it had.
    Uncounted,
}

impl LossReason {
    /// Reason as a phrase for the screen.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Overwritten => "overwritten before they were read",
            Self::NoRing => "no ring was free for a thread",
            Self::Reentrant => "interrupted by a signal handler",
            Self::RangeTable => "ranges nested too deeply",
            Self::FactsFull => "no room for facts or texts",
            Self::Untimed => "GPU work without a time",
            Self::Damaged => "a part of the recording is damaged",
            Self::NotWritten => "not written: the disk was full, too slow, or failed",
            Self::Removed => "removed at the recording's size limit",
            Self::Uncounted => "a part of the recording is missing; how many records it had is unknown",
        }
    }

    /// Whether it is about a recording as a whole, not about the process that the loss is listed with.
    pub const fn is_of_recording(self) -> bool {
        matches!(self, Self::Damaged | Self::Uncounted)
    }

    /// Whether calls of a process may be among them.
    pub const fn is_of_calls(self) -> bool {
        !matches!(self, Self::Untimed | Self::RangeTable) && !self.is_of_recording()
    }
}

/// Number of records that are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Those that were counted.
    pub records: u64,
    /// There may be more, which nobody could count.
    pub is_least: bool,
}

impl Lost {
    /// The sum of losses.
    pub fn of(losses: impl IntoIterator<Item = (LossReason, u64)>) -> Self {
        losses.into_iter().fold(Self::default(), |sum, (reason, records)| Self {
            records: sum.records.saturating_add(records),
            is_least: sum.is_least || reason == LossReason::Uncounted,
        })
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            records: self.records.saturating_add(other.records),
            is_least: self.is_least || other.is_least,
        }
    }

    /// Whether records are missing, as far as that is known.
    pub const fn is_any(self) -> bool {
        self.records > 0 || self.is_least
    }

    /// As text, with a number's text: `12`, `≥ 12`, `unknown`.
    pub fn text(self, number: impl Fn(u64) -> String) -> String {
        match (self.records, self.is_least) {
            (records, false) => number(records),
            (0, true) => "unknown".into(),
            (records, true) => format!("≥ {}", number(records)),
        }
    }
}

/// One item of the store's input.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A process appeared.
    Process(Process),
    /// A process ended.
    Ended {
        /// The process.
        process: ProcessId,
        /// How it ended.
        exit: Exit,
        /// Time at which the end was noticed.
        at: Nanos,
    },
    /// An agent.
    Agent(Agent),
    /// A kernel, before its first dispatch.
    Kernel(Kernel),
    /// A queue; sent again with its end after its destruction.
    Queue(Queue),
    /// A stream.
    Stream(Stream),
    /// A thread.
    Thread(Thread),
    /// An operation, before its first call.
    Operation(Operation),
    /// A marker's text, before its first use.
    Text(TextId, Arc<str>),
    /// A call returned.
    Api(ApiCall),
    /// A call outside of the recorded stretch of time, taken along with what it caused. It is not counted.
    CallAlong(ApiCall),
    /// A kernel ran.
    Dispatch(Dispatch),
    /// A copy was made.
    Copy(Copy),
    /// A call requested a copy or a fill.
    Transfer(Transfer),
    /// A stream recorded an event or waits for one.
    EventCall(EventCall),
    /// How long a thread had run.
    ThreadTime(ThreadTime),
    /// Where a process may run.
    Binding(ProcessId, Box<Binding>),
    /// What was found out about a call site.
    Site(ProcessId, SiteFact),
    /// A communicator was created, released or first seen.
    Communicator(Communicator),
    /// A call of RCCL that communicates began.
    Communication(Communication),
    /// A call of MPI that has to do with messages returned.
    Message(Message),
    /// Memory was allocated, mapped or freed through HSA.
    Allocation(Allocation),
    /// Scratch memory was assigned to a queue or reclaimed.
    Scratch(Scratch),
    /// A mark was set.
    Mark(Marker),
    /// A range was closed.
    Range(Marker),
    /// A range outside of the recorded stretch of time, taken along with what was launched in it. It is not counted.
    RangeAlong(Marker),
    /// Work that is open now.
    Open(Open),
    /// Total number of records lost so far, by process and reason; replaces the previous number.
    Lost {
        /// The process.
        process: ProcessId,
        /// Reason.
        reason: LossReason,
        /// Records lost so far.
        records: u64,
    },
    /// A decision of the collector.
    Status {
        /// The process.
        process: ProcessId,
        /// One of [`roctop_ring::record::status`].
        code: u32,
        /// The decision as a sentence.
        text: Arc<str>,
    },
    /// A process changed its level of timing; a status describes the step.
    Level {
        /// The process.
        process: ProcessId,
        /// Old and new level, and the reason.
        step: Step,
        /// The step as a sentence.
        text: Arc<str>,
    },
    /// Cost of one clock reading in a process.
    ClockCost {
        /// The process.
        process: ProcessId,
        /// Picoseconds per reading.
        picoseconds: u64,
    },
    /// Recording was switched on or off.
    Switched {
        /// The process.
        process: ProcessId,
        /// Whether recording is on.
        on: bool,
        /// Time of the switch.
        at: Nanos,
    },
    /// Current readings of a device.
    Device(Arc<Device>),
    /// A counter was added, or its state changed.
    Counter(Arc<Counter>),
    /// A value of a counter, as shown.
    Count(Count),
    /// Driver readings of a GPU, or of a process on it.
    Gauges(Sample),
    /// Description of a hardware counter, before its first value.
    CounterInfo(CounterInfo),
    /// A value of a hardware counter.
    CounterValue(CounterValue),
    /// Values of a counter's instances.
    CounterInstances(CounterInstances),
    /// A PC sampling configuration that an agent offers.
    Sampling(pc_sampling::Configuration),
    /// A PC sample.
    PcSample(pc_sampling::Sample),
    /// Bytes that the program wrote to its terminal.
    Output(Vec<u8>),
    /// Current time; sent with every poll, drives the live clock.
    Now(Nanos),
}

impl Item {
    /// Time span; `None` for an item without one.
    pub const fn span(&self) -> Option<Span> {
        Some(match self {
            Self::Api(call) => call.span,
            Self::Dispatch(dispatch) => dispatch.span,
            Self::Copy(copy) => copy.span,
            Self::Mark(marker) | Self::Range(marker) => marker.span,
            Self::Allocation(allocation) => allocation.span,
            Self::Scratch(scratch) => scratch.span,
            _ => return None,
        })
    }
}
