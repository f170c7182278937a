//! Entities that records refer to: processes, threads, agents, queues, streams, kernels, operations.

use super::{AgentId, KernelId, Nanos, OperationId, ProcessId, QueueId, Span, StreamId, ThreadId};
use std::sync::Arc;

/// A traced process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Dense id.
    pub id: ProcessId,
    /// Process id in its own PID namespace.
    pub pid: u32,
    /// Parent's process id.
    pub parent: u32,
    /// Rank under MPI or Slurm, if any.
    pub rank: Option<u32>,
    /// Host name.
    pub host: Arc<str>,
    /// Its machine, see [`crate::id::NodeId::machine`]. In containers, processes of one machine may have different host
    /// names.
    pub machine: u32,
    /// Executable's file name.
    pub exe: Arc<str>,
    /// Command line.
    pub command: Arc<str>,
    /// Creation time of its first ring file.
    pub since: Nanos,
    /// The same, CLOCK_REALTIME ns; 0 unknown.
    pub created: u64,
    /// Inode of its PID namespace; 0 unknown.
    pub pid_namespace: u64,
    /// The stretch of time that is recorded, if it is not the whole run.
    pub stretch: Option<Span>,
}

impl Process {
    /// Length at which the collector may have truncated a command line, bytes.
    const TRUNCATED_COMMAND_BYTES: usize = 2048;

    /// Words of the command line. They are exact for the process that roctop started with `started`; others are split
    /// at spaces. For a script, the started process is the interpreter.
    pub fn words(&self, started: &[String]) -> Vec<String> {
        let whole = started.join(" ");
        let is_cut = self.command.len() >= Self::TRUNCATED_COMMAND_BYTES && whole.starts_with(&*self.command);
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
    /// Exit code.
    Code(i32),
    /// Terminating signal.
    Signal(i32),
    /// The process is gone, for an unknown reason.
    Unknown,
}

/// Health of a process at one moment, from the reader and the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The process.
    pub process: ProcessId,
    /// Recent fill level of its fullest ring, 1/1000.
    pub fill: u32,
    /// Resident memory, bytes; `None` if unavailable.
    pub resident: Option<u64>,
}

/// Type of an agent.
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

/// An agent as one process sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Dense id.
    pub id: AgentId,
    /// Process that sees it.
    pub process: ProcessId,
    /// CPU, GPU or other.
    pub kind: AgentKind,
    /// Number among the agents of its kind, from 0: "GPU 0".
    pub number: u32,
    /// Node in the driver's topology.
    pub node: u32,
    /// Instruction set (`gfx906`) or CPU name.
    pub name: Arc<str>,
    /// Product name, empty if unknown.
    pub product: Arc<str>,
    /// Compute units.
    pub compute_units: u32,
    /// Lanes per wave.
    pub wave_size: u32,
    /// Local memory, bytes.
    pub memory: u64,
}

/// Register use of a kernel, decoded from its descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Architectural VGPRs per work-item.
    pub vgpr: u32,
    /// Accumulation VGPRs per work-item.
    pub agpr: u32,
    /// SGPRs per wave.
    pub sgpr: u32,
}

/// What a kernel's code object says of it. `None`: it does not say that, or code objects with this kernel differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Code {
    /// VGPRs of a work-item, with AGPRs where one file has both.
    pub vgpr: Option<u32>,
    /// AGPRs of a work-item.
    pub agpr: Option<u32>,
    /// SGPRs of a wave.
    pub sgpr: Option<u32>,
    /// Spilled VGPRs.
    pub vgpr_spills: Option<u32>,
    /// Spilled SGPRs.
    pub sgpr_spills: Option<u32>,
    /// Scratch of a work-item, bytes.
    pub scratch: Option<u32>,
    /// Static LDS of a work-group, bytes.
    pub lds: Option<u32>,
    /// Maximum work-items of a work-group.
    pub max_workgroup: Option<u32>,
    /// Lanes of a wave.
    pub wave_size: Option<u32>,
    /// Whether all work-groups have the same size.
    pub is_uniform: Option<bool>,
    /// Whether a work-group runs on both compute units of a work-group processor.
    pub is_wgp: Option<bool>,
    /// Bytes of its code, with the functions that it calls.
    pub bytes: Option<u64>,
    /// Hash of that code without relocated and pc-relative words.
    pub hash: Option<u64>,
}

impl Code {
    /// Spilled VGPRs and SGPRs.
    pub fn spills(&self) -> Option<u32> {
        Some(self.vgpr_spills?.saturating_add(self.sgpr_spills?))
    }

    /// What both say alike.
    #[must_use]
    pub fn agreed(&self, other: &Self) -> Self {
        fn same<T: Copy + PartialEq>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.filter(|one| Some(*one) == other)
        }
        Self {
            vgpr: same(self.vgpr, other.vgpr),
            agpr: same(self.agpr, other.agpr),
            sgpr: same(self.sgpr, other.sgpr),
            vgpr_spills: same(self.vgpr_spills, other.vgpr_spills),
            sgpr_spills: same(self.sgpr_spills, other.sgpr_spills),
            scratch: same(self.scratch, other.scratch),
            lds: same(self.lds, other.lds),
            max_workgroup: same(self.max_workgroup, other.max_workgroup),
            wave_size: same(self.wave_size, other.wave_size),
            is_uniform: same(self.is_uniform, other.is_uniform),
            is_wgp: same(self.is_wgp, other.is_wgp),
            bytes: same(self.bytes, other.bytes),
            hash: same(self.hash, other.hash),
        }
    }
}

/// A kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Dense id.
    pub id: KernelId,
    /// Mangled name, without the `.kd` suffix.
    pub mangled: Arc<str>,
    /// Demangled name with arguments.
    pub name: Arc<str>,
    /// Number of the symbol in its process, from 1 (rocprofv3's Kernel_Id).
    pub symbol: u32,
    /// Static LDS, bytes.
    pub group_size: u32,
    /// Register use, if the descriptor could be read.
    pub registers: Option<Registers>,
    /// What its code object says, if that was read.
    pub code: Option<Code>,
    /// Whether it is one of the run-time's own kernels (`__amd_rocclr_*`).
    pub internal: bool,
}

/// A queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Process that created it.
    pub id: QueueId,
    /// Whose queue.
    pub process: ProcessId,
    /// Number in its process, from 1.
    pub number: u32,
    /// Agent that it belongs to.
    pub agent: AgentId,
    /// Capacity in packets, 0 if unknown.
    pub size: u32,
    /// Whether its dispatches are intercepted, and therefore timed.
    pub intercepted: bool,
    /// Creation time, 0 if unknown.
    pub created: Nanos,
    /// Destruction time, 0 while it exists.
    pub destroyed: Nanos,
}

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Process that created it.
    pub id: StreamId,
    /// Whose stream.
    pub process: ProcessId,
    /// Number in its process; 0 is the default stream.
    pub number: u32,
    /// Name that the program gave it, empty if none.
    pub name: Arc<str>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Process of the thread.
    pub id: ThreadId,
    /// Whose thread.
    pub process: ProcessId,
    /// Thread id of the kernel.
    pub tid: u32,
    /// Thread name.
    pub name: Arc<str>,
}

/// An API function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Dense id.
    pub id: OperationId,
    /// Domain number, see [`roctop_ring::record::Domain`].
    pub domain: u8,
    /// Name (`hipMemcpyAsync`).
    pub name: Arc<str>,
}
