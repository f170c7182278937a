//! What the store is fed with: decoded, dense, in one clock.
//!
//! A [`crate::decode::Decoder`] turns the records of one process into items: ids are dense and typed, texts are names
//! interned for the whole session, every time is CLOCK_BOOTTIME in nanoseconds. Live sessions, recordings and scenarios
//! all end in this one type, so that screen and exports cannot tell them apart.

mod activity;
mod counter;
mod entity;

pub use activity::{Allocation, ApiCall, Copy, Dispatch, Marker, Open, Scratch, Transfer};
pub use counter::{CounterInfo, CounterInstances, CounterValue};
pub use entity::{Agent, AgentKind, Exit, Health, Kernel, Operation, Process, Queue, Registers, Stream, Thread};

pub use crate::id::{
    AgentId, CounterId, KernelId, Nanos, NodeId, OperationId, ProcessId, QueueId, Span, StreamId, TextId, ThreadId,
};

use crate::gauge::metric::Sample;
use crate::gauge::{Count, Counter, Device};
use crate::pc_sampling;
use roctop_ring::level::Step;
use std::sync::Arc;

/// What times are counted from when a process is met that began at `at`: the first process, or one a little before it.
/// What is far before it, or no time, is a fault of a file's.
pub fn earlier(origin: Option<Nanos>, at: Nanos) -> Option<Nanos> {
    let is_time = at > 0 && at < 1 << 60;
    let is_earlier = origin.is_none_or(|origin| at < origin && origin - at < 60_000_000_000);
    if is_time && is_earlier { Some(at) } else { origin }
}

/// Why records are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossReason {
    /// Overwritten before the viewer read them.
    Overwritten,
    /// No ring was to be had for the thread.
    NoRing,
    /// A signal handler interrupted a record.
    Reentrant,
    /// A range was nested too deeply or there were too many.
    RangeTable,
    /// Facts or texts found no room.
    FactsFull,
    /// Dispatches or copies without a time.
    Untimed,
    /// A part of a recording is damaged or missing.
    Damaged,
}

impl LossReason {
    /// In words.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Overwritten => "overwritten before they were read",
            Self::NoRing => "no ring was to be had for a thread",
            Self::Reentrant => "a signal handler came between",
            Self::RangeTable => "ranges nested too deeply",
            Self::FactsFull => "no room for facts or texts",
            Self::Untimed => "GPU work without a time",
            Self::Damaged => "a part of the recording is damaged",
        }
    }
}

/// One thing that the store is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A process appeared.
    Process(Process),
    /// A process ended.
    Ended {
        /// Which.
        process: ProcessId,
        /// How.
        exit: Exit,
        /// When it was noticed.
        at: Nanos,
    },
    /// An agent.
    Agent(Agent),
    /// A kernel, before its first dispatch.
    Kernel(Kernel),
    /// A queue; once more, with its end, when it was destroyed.
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
    /// A kernel ran.
    Dispatch(Dispatch),
    /// A copy was made.
    Copy(Copy),
    /// A call asks for a copy or a fill.
    Transfer(Transfer),
    /// Memory was allocated, mapped or freed.
    Allocation(Allocation),
    /// Scratch memory was given to a queue or taken back.
    Scratch(Scratch),
    /// A mark was set.
    Mark(Marker),
    /// A range was closed.
    Range(Marker),
    /// What is open now.
    Open(Open),
    /// Total of records lost so far, by process and reason (replaces the number before).
    Lost {
        /// Which process.
        process: ProcessId,
        /// Why.
        reason: LossReason,
        /// How many so far.
        records: u64,
    },
    /// What the collector decided: a sentence.
    Status {
        /// Which process.
        process: ProcessId,
        /// One of [`roctop_ring::record::status`].
        code: u32,
        /// The sentence.
        text: Arc<str>,
    },
    /// How kernels are timed in a process from now on; a status says it in words.
    Level {
        /// Which process.
        process: ProcessId,
        /// The step.
        step: Step,
        /// The sentence.
        text: Arc<str>,
    },
    /// What a reading of the clock takes in a process.
    ClockCost {
        /// Which process.
        process: ProcessId,
        /// 10^-12 s.
        picoseconds: u64,
    },
    /// Recording was switched.
    Switched {
        /// Which process.
        process: ProcessId,
        /// On or off.
        on: bool,
        /// When.
        at: Nanos,
    },
    /// What a device says of itself now.
    Device(Arc<Device>),
    /// A counter was added, or its state changed.
    Counter(Arc<Counter>),
    /// A counter has a value.
    Count(Count),
    /// What the driver told of a GPU, or of a process on it.
    Gauges(Sample),
    /// What a hardware counter is, before its first value.
    CounterInfo(CounterInfo),
    /// A value of a hardware counter.
    CounterValue(CounterValue),
    /// Values of a counter's instances.
    CounterInstances(CounterInstances),
    /// A way of sampling program counters.
    Sampling(pc_sampling::Configuration),
    /// Where a wave was.
    PcSample(pc_sampling::Sample),
    /// Bytes that the program wrote to its terminal.
    Output(Vec<u8>),
    /// It is this late now (drives the live clock; sent with every poll).
    Now(Nanos),
}

impl Item {
    /// Its time; none for what has none.
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
