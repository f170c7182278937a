//! Activity: calls, GPU work, memory, markers, and work that is still open.

use super::{AgentId, KernelId, Nanos, OperationId, ProcessId, QueueId, Span, StreamId, TextId, ThreadId};
use crate::site::SiteNumber;
use serde::{Deserialize, Serialize};

/// An API call that returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiCall {
    /// Process that called.
    pub process: ProcessId,
    /// Thread that called.
    pub thread: ThreadId,
    /// Function called.
    pub operation: OperationId,
    /// Enter to exit.
    pub span: Span,
    /// Sparse correlation id, 0 if unknown; unique in its process.
    pub correlation: u64,
    /// Correlation id of the enclosing call, 0 none.
    pub parent: u64,
    /// Return code, if known.
    pub status: Option<i32>,
    /// Arguments as text, if they were recorded.
    pub arguments: Option<TextId>,
    /// Where in the program the call is.
    pub site: SiteNumber,
}

/// A kernel dispatch that completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Process that launched it.
    pub process: ProcessId,
    /// Kernel.
    pub kernel: KernelId,
    /// Agent that ran it.
    pub agent: AgentId,
    /// Queue.
    pub queue: QueueId,
    /// Stream, if known.
    pub stream: Option<StreamId>,
    /// Thread that launched it, if known.
    pub thread: Option<ThreadId>,
    /// Begin and end on the agent; both 0 if untimed.
    pub span: Span,
    /// Submission of its packet, 0 if unknown.
    pub submit: Nanos,
    /// Correlation id of the launching call, 0 if unknown.
    pub correlation: u64,
    /// Number in its process, from 1.
    pub dispatch_id: u64,
    /// Grid size in work-items.
    pub grid: [u32; 3],
    /// Work-group size in work-items.
    pub workgroup: [u16; 3],
    /// LDS, static and dynamic, bytes per work-group.
    pub group_size: u32,
    /// Scratch, bytes per work-item.
    pub private_size: u32,
    /// Flag bits of the record, see [`roctop_ring::record::flag`].
    pub flags: u8,
    /// Where in the program the launching call is.
    pub site: SiteNumber,
}

/// A copy or fill by the GPU, or by a call that returned when it was complete (engine `CALL`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// Process that requested it.
    pub process: ProcessId,
    /// Source agent; `None` for a fill or if unknown.
    pub source: Option<AgentId>,
    /// Destination agent, if known.
    pub destination: Option<AgentId>,
    /// Stream, if known.
    pub stream: Option<StreamId>,
    /// Thread that requested it, if known.
    pub thread: Option<ThreadId>,
    /// Begin and end of the copy itself; with engine `CALL`, of the call.
    pub span: Span,
    /// Submission, 0 if unknown.
    pub submit: Nanos,
    /// Correlation id of the requesting call, 0 if unknown.
    pub correlation: u64,
    /// Bytes.
    pub bytes: u64,
    /// One of [`roctop_ring::record::direction`].
    pub direction: u16,
    /// One of [`roctop_ring::record::engine`].
    pub engine: u16,
    /// Flag bits of the record.
    pub flags: u8,
    /// Where in the program the requesting call is.
    pub site: SiteNumber,
}

/// A transfer that a call requests. The kernels or copies that perform it have the same correlation id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Process that called.
    pub process: ProcessId,
    /// Correlation id of the call.
    pub correlation: u64,
    /// Source agent; `None` for a fill or if unknown.
    pub source: Option<AgentId>,
    /// Destination agent, if known.
    pub destination: Option<AgentId>,
    /// The process's host agent, if known.
    pub host: Option<AgentId>,
    /// Bytes of the whole transfer.
    pub bytes: u64,
    /// One of [`roctop_ring::record::direction`].
    pub direction: u16,
}

/// A call by which a stream records an event or waits for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCall {
    /// Process that called.
    pub process: ProcessId,
    /// Begin of the call.
    pub at: Nanos,
    /// The stream that records or waits; `None` if unknown.
    pub stream: Option<StreamId>,
    /// Handle of the event.
    pub event: u64,
    /// Whether the stream waits for the event; otherwise it records it.
    pub waits: bool,
}

/// How long a thread had run, as the Linux kernel counts it, and its state at that moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Process of the thread.
    pub process: ProcessId,
    /// The thread.
    pub thread: ThreadId,
    /// Time of the reading.
    pub at: Nanos,
    /// Time on a CPU so far, ns.
    pub running: u64,
    /// Time in a run queue so far, ns.
    pub ready: u64,
    /// Whether it ran or was ready at the reading; `None` if unknown.
    pub is_running: Option<bool>,
}

/// Memory that was allocated, mapped or freed through HSA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Process that called.
    pub process: ProcessId,
    /// Thread that called.
    pub thread: ThreadId,
    /// Agent that owns the memory, for a free too; `None` if unknown.
    pub agent: Option<AgentId>,
    /// One of [`roctop_ring::record::memory`].
    pub operation: u16,
    /// Enter to exit of the HSA call.
    pub span: Span,
    /// Correlation id of the innermost enclosing recorded call, 0 if unknown.
    pub correlation: u64,
    /// Address, or handle of virtual memory.
    pub address: u64,
    /// Bytes, for a free too; 0 if unknown.
    pub bytes: u64,
    /// Bytes that the process holds on the agent afterwards.
    pub total: u64,
}

/// Scratch memory that was assigned to a queue or reclaimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scratch {
    /// Process of the queue.
    pub process: ProcessId,
    /// Thread of the run-time that handled it.
    pub thread: ThreadId,
    /// Agent of the queue; `None` if unknown.
    pub agent: Option<AgentId>,
    /// The queue, if known.
    pub queue: Option<QueueId>,
    /// One of [`roctop_ring::record::scratch`].
    pub operation: u16,
    /// Flags of the run-time: 1 single use, 2 alternate pool.
    pub flags: u16,
    /// Begin to end.
    pub span: Span,
    /// Correlation id of the enclosing call, 0 if unknown.
    pub correlation: u64,
    /// Bytes; 0 if the run-time does not report them.
    pub bytes: u64,
}

/// A ROC-TX mark or range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// Process that set it.
    pub process: ProcessId,
    /// Thread that set it.
    pub thread: ThreadId,
    /// Its text.
    pub text: TextId,
    /// Begin to end; equal for a mark.
    pub span: Span,
    /// Correlation id.
    pub correlation: u64,
    /// Nesting level of a push/pop range, from 0.
    pub level: u16,
    /// Id of a start/stop range, else 0.
    pub range_id: u64,
}

/// Work that is open now, or was when the process ended. Each list replaces the previous one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Process of the work.
    pub process: ProcessId,
    /// Calls that have not returned: `span.end` is 0.
    pub calls: Vec<ApiCall>,
    /// Ranges that were not closed: `span.end` is 0.
    pub ranges: Vec<Marker>,
    /// Dispatches submitted and not completed: `span` is 0, `submit` is set.
    pub dispatches: Vec<Dispatch>,
    /// (queue, dispatches submitted, dispatches completed).
    pub queues: Vec<(QueueId, u64, u64)>,
    /// Copies begun and not completed.
    pub copies: u64,
}
