//! What records name: processes and their threads, agents, queues, streams, kernels and operations.

use super::{AgentId, KernelId, Nanos, OperationId, ProcessId, QueueId, StreamId, ThreadId};
use std::sync::Arc;

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
    /// Its machine, as [`crate::id::NodeId::machine`]: processes of one may tell different names, in containers.
    pub machine: u32,
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
