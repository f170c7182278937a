//! What the store is fed with: decoded, dense, in one clock.
//!
//! A [`crate::decode::Decoder`] turns the records of one process into items: ids are dense and typed, texts are names
//! interned for the whole session, every time is CLOCK_BOOTTIME in nanoseconds. Live sessions, recordings and scenarios
//! all end in this one type, so that screen and exports cannot tell them apart.

use crate::gauges::Sample;
use crate::sampling;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::gauge::{Count, Counter, Device};

macro_rules! ids {
    ($($(#[$doc:meta])* $Name:ident)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
            pub struct $Name(pub u32);
        )*
    };
}

ids! {
    /// A traced process, dense from 0 in order of appearance.
    ProcessId
    /// A thread of any process, dense over the session.
    ThreadId
    /// An agent of any process, dense over the session.
    AgentId
    /// A queue of any process, dense over the session.
    QueueId
    /// A stream of any process, dense over the session.
    StreamId
    /// A kernel: (mangled name, LDS size, registers), whichever process loaded it, dense over the session.
    KernelId
    /// An API operation: (domain, name), dense over the session.
    OperationId
    /// A marker's text, dense over the session.
    TextId
    /// A hardware counter of an agent, dense over the session.
    CounterId
}

/// Nanoseconds of CLOCK_BOOTTIME.
pub type Nanos = u64;

/// A span of time; `end` is not before `begin` unless the record was flagged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// When it began.
    pub begin: Nanos,
    /// When it ended.
    pub end: Nanos,
}

impl Span {
    /// Length in nanoseconds; 0 for a swapped span.
    pub const fn duration(self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// What times are counted from when a process is met that began at `at`: the first process, or one a little before it.
/// What is far before it, or no time, is a fault of a file's.
pub fn earlier(origin: Option<Nanos>, at: Nanos) -> Option<Nanos> {
    let is_time = at > 0 && at < 1 << 60;
    let is_earlier = origin.is_none_or(|origin| at < origin && origin - at < 60_000_000_000);
    if is_time && is_earlier { Some(at) } else { origin }
}

/// How a process does at a moment, as the reader and the system say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Which.
    pub process: ProcessId,
    /// How full its fullest ring was found lately, in 1/1000.
    pub fill: u32,
    /// Bytes of memory that it has resident; none when the system does not say.
    pub resident: Option<u64>,
}

/// A traced process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Dense id.
    pub id: ProcessId,
    /// Process id in its own name space.
    pub pid: u32,
    /// Parent's process id.
    pub parent: u32,
    /// Rank under MPI or Slurm.
    pub rank: Option<u32>,
    /// Host name.
    pub host: Arc<str>,
    /// Executable's file name.
    pub exe: Arc<str>,
    /// Command line.
    pub command: Arc<str>,
    /// When its first record file was made.
    pub since: Nanos,
}

impl Process {
    /// A command line as long as this may have been cut by the collector.
    const LONG: usize = 2048;

    /// The command line's words: exact for the program that was started with `started`, else split at blanks. Who
    /// started a script is the interpreter's process, and its children are others.
    pub fn words(&self, started: &[String]) -> Vec<String> {
        let whole = started.join(" ");
        let is_cut = self.command.len() >= Self::LONG && whole.starts_with(&*self.command);
        let is_unknown = self.command.is_empty() && self.id.0 == 0;
        if is_cut || is_unknown || whole.trim_end() == &*self.command {
            return started.to_vec();
        }
        self.command.split_whitespace().map(str::to_owned).collect()
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It is gone; how is not known.
    Unknown,
}

/// Kind of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentKind {
    /// A CPU.
    Cpu,
    /// A GPU.
    #[default]
    Gpu,
    /// Something else.
    Other,
}

/// An agent as a process sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Dense id.
    pub id: AgentId,
    /// Whose agent.
    pub process: ProcessId,
    /// Kind.
    pub kind: AgentKind,
    /// Number among the agents of its kind, from 0: "GPU 0".
    pub number: u32,
    /// Driver topology node.
    pub node: u32,
    /// Name (`gfx906`).
    pub name: Arc<str>,
    /// Product name, empty when unknown.
    pub product: Arc<str>,
    /// Compute units.
    pub compute_units: u32,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// Bytes of local memory.
    pub memory: u64,
}

/// Registers that a kernel takes, decoded from its descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Architectural VGPRs a work-item.
    pub vgpr: u32,
    /// Accumulation VGPRs a work-item.
    pub agpr: u32,
    /// SGPRs a wave.
    pub sgpr: u32,
}

/// A kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Dense id.
    pub id: KernelId,
    /// Mangled name, without `.kd`.
    pub mangled: Arc<str>,
    /// Demangled name with arguments.
    pub name: Arc<str>,
    /// Number of the symbol in its process, from 1 (rocprofv3's Kernel_Id).
    pub symbol: u32,
    /// Static LDS, bytes.
    pub group_size: u32,
    /// Registers, when the descriptor could be read.
    pub registers: Option<Registers>,
    /// One of the run-time's own kernels (`__amd_rocclr_*`).
    pub internal: bool,
}

/// A queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Dense id.
    pub id: QueueId,
    /// Whose queue.
    pub process: ProcessId,
    /// Number in its process, from 1.
    pub number: u32,
    /// Its agent.
    pub agent: AgentId,
    /// Packets that it holds, 0 unknown.
    pub size: u32,
    /// Whether its dispatches are intercepted, and so timed.
    pub intercepted: bool,
    /// When it was created, 0 unknown.
    pub created: Nanos,
    /// When it was destroyed, 0 while it is there.
    pub destroyed: Nanos,
}

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Dense id.
    pub id: StreamId,
    /// Whose stream.
    pub process: ProcessId,
    /// Number in its process; 0 is the default stream.
    pub number: u32,
    /// Name that the program gave it, empty when none.
    pub name: Arc<str>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Dense id.
    pub id: ThreadId,
    /// Whose thread.
    pub process: ProcessId,
    /// Kernel thread id.
    pub tid: u32,
    /// Name when it began.
    pub name: Arc<str>,
}

/// An API operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Dense id.
    pub id: OperationId,
    /// Domain number, see [`roctop_ring::record::Domain`].
    pub domain: u8,
    /// Name (`hipMemcpyAsync`).
    pub name: Arc<str>,
}

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

/// A hardware counter of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterInfo {
    /// Dense id: one for a name on a node of the driver's topology.
    pub id: CounterId,
    /// Whose counter.
    pub process: ProcessId,
    /// Of which agent.
    pub agent: AgentId,
    /// Name.
    pub name: Arc<str>,
    /// What it counts.
    pub description: Arc<str>,
    /// The block of the GPU that counts; empty when it is computed.
    pub block: Arc<str>,
    /// How it is computed; empty when it is counted.
    pub expression: Arc<str>,
    /// Dimensions, as `DIMENSION_INSTANCE[0:15]`.
    pub dimensions: Arc<str>,
    /// Bits of [`roctop_ring::record::counter_flag`].
    pub flags: u16,
    /// The pass in which it is collected, from 1; 0 when it is only listed.
    pub pass: u16,
    /// The library's own id.
    pub handle: u64,
}

/// A value of a hardware counter, all instances added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterValue {
    /// Whose.
    pub process: ProcessId,
    /// Which counter.
    pub counter: CounterId,
    /// Of which agent.
    pub agent: AgentId,
    /// Of which dispatch of the process; none for the whole agent since the counting began.
    pub dispatch: Option<u64>,
    /// When the whole agent was read; 0 for a dispatch.
    pub at: Nanos,
    /// The value.
    pub value: f64,
}

/// Values of a counter's instances that follow each other, over one dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterInstances {
    /// Whose.
    pub process: ProcessId,
    /// Which counter.
    pub counter: CounterId,
    /// Of which dispatch of the process.
    pub dispatch: u64,
    /// The first of these instances, numbered through all dimensions, the first dimension fastest.
    pub first: u16,
    /// How many there are, up to four.
    pub count: u8,
    /// Their values.
    pub values: [f64; 4],
}

impl CounterInstances {
    /// Each instance with its value.
    pub fn each(&self) -> impl Iterator<Item = (u16, f64)> {
        let values = (0..).zip(self.values).take(usize::from(self.count));
        values.map(|(place, value)| (self.first.saturating_add(place), value))
    }
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
    Sampling(sampling::Configuration),
    /// Where a wave was.
    PcSample(sampling::Sample),
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
