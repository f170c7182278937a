//! What happened: calls, work of GPUs, memory, markers, and what is open still.

use super::{AgentId, KernelId, Nanos, OperationId, ProcessId, QueueId, Span, StreamId, TextId, ThreadId};
use serde::{Deserialize, Serialize};

/// An API call that returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiCall {
    /// Whose call.
    pub process: ProcessId,
    /// Thread that called.
    pub thread: ThreadId,
    /// What was called.
    pub operation: OperationId,
    /// Enter to exit.
    pub span: Span,
    /// Sparse correlation id, 0 unknown; unique in its process.
    pub correlation: u64,
    /// Correlation id of the enclosing call, 0 none.
    pub parent: u64,
    /// Return code, when known.
    pub status: Option<i32>,
    /// Its arguments as a text, when they were recorded and are known.
    pub arguments: Option<TextId>,
}

/// A kernel that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Whose dispatch.
    pub process: ProcessId,
    /// What ran.
    pub kernel: KernelId,
    /// Where.
    pub agent: AgentId,
    /// In which queue.
    pub queue: QueueId,
    /// In which stream, when known.
    pub stream: Option<StreamId>,
    /// Thread that launched it, when known.
    pub thread: Option<ThreadId>,
    /// Begin and end on the agent; both 0 when untimed.
    pub span: Span,
    /// When its packet was submitted, 0 unknown.
    pub submit: Nanos,
    /// The launching call, 0 unknown.
    pub correlation: u64,
    /// Number in its process, from 1.
    pub dispatch_id: u64,
    /// Grid in work-items.
    pub grid: [u32; 3],
    /// Work-group in work-items.
    pub workgroup: [u16; 3],
    /// LDS, static and dynamic, bytes.
    pub group_size: u32,
    /// Scratch a work-item, bytes.
    pub private_size: u32,
    /// Flag bits of the record, see [`roctop_ring::record::flag`].
    pub flags: u8,
}

/// A copy or fill made by the GPU, or by a call that came back when it was done (engine `CALL`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// Whose copy.
    pub process: ProcessId,
    /// From where; none for a fill or when unknown.
    pub source: Option<AgentId>,
    /// To where.
    pub destination: Option<AgentId>,
    /// In which stream, when known.
    pub stream: Option<StreamId>,
    /// Thread that asked for it, when known.
    pub thread: Option<ThreadId>,
    /// The copy's own begin and end; those of the call that made it itself.
    pub span: Span,
    /// When it was submitted, 0 unknown.
    pub submit: Nanos,
    /// The call that caused it, 0 unknown.
    pub correlation: u64,
    /// Bytes.
    pub bytes: u64,
    /// One of [`roctop_ring::record::direction`].
    pub direction: u16,
    /// One of [`roctop_ring::record::engine`].
    pub engine: u16,
    /// Flag bits of the record.
    pub flags: u8,
}

/// What a call asks to be copied or filled. The kernels or engines that do it have items with the same correlation id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Whose call.
    pub process: ProcessId,
    /// The call.
    pub correlation: u64,
    /// From where; none for a fill or when unknown.
    pub source: Option<AgentId>,
    /// To where, when known.
    pub destination: Option<AgentId>,
    /// The process's host, when known.
    pub host: Option<AgentId>,
    /// Bytes of the whole call.
    pub bytes: u64,
    /// One of [`roctop_ring::record::direction`].
    pub direction: u16,
}

/// Memory that was allocated, mapped or freed through HSA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Whose memory.
    pub process: ProcessId,
    /// Thread that asked for it.
    pub thread: ThreadId,
    /// Whose memory it is, also of what is freed; none when unknown.
    pub agent: Option<AgentId>,
    /// One of [`roctop_ring::record::memory`].
    pub operation: u16,
    /// Enter to exit of the HSA call.
    pub span: Span,
    /// The innermost recorded call around it, 0 unknown.
    pub correlation: u64,
    /// Address, or the handle of virtual memory.
    pub address: u64,
    /// Bytes, also of what is freed; 0 unknown.
    pub bytes: u64,
    /// Bytes of the agent that the process holds after it.
    pub total: u64,
}

/// Scratch memory that was given to a queue or taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scratch {
    /// Whose queue.
    pub process: ProcessId,
    /// Thread of the run-time that did it.
    pub thread: ThreadId,
    /// The queue's agent; none when unknown.
    pub agent: Option<AgentId>,
    /// The queue, when known.
    pub queue: Option<QueueId>,
    /// One of [`roctop_ring::record::scratch`].
    pub operation: u16,
    /// The run-time's flags: 1 for one use, 2 from the alternative pool.
    pub flags: u16,
    /// Begin to end.
    pub span: Span,
    /// The call in which it happened, 0 unknown.
    pub correlation: u64,
    /// Bytes; 0 where the run-time does not say.
    pub bytes: u64,
}

/// A ROC-TX mark or range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// Whose marker.
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
    /// Id of a start/stop range, 0 else.
    pub range_id: u64,
}

/// What is open now, or was when the process ended. Each list replaces the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Whose work.
    pub process: ProcessId,
    /// Calls that have not returned: `span.end` is 0.
    pub calls: Vec<ApiCall>,
    /// Ranges that were not closed: `span.end` is 0.
    pub ranges: Vec<Marker>,
    /// Dispatches submitted and not seen complete: `span` is 0, `submit` is set.
    pub dispatches: Vec<Dispatch>,
    /// Queue, submitted, completed, by queue.
    pub queues: Vec<(QueueId, u64, u64)>,
    /// Copies begun and not seen complete.
    pub copies: u64,
}
