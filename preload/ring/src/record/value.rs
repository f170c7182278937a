//! Values of record fields. Open sets: unknown numbers are shown as numbers.

/// Operations of an [`Allocation`](super::Allocation): the first four as rocprofv3 numbers them.
pub mod memory {
    /// `hsa_amd_memory_pool_allocate`, `hsa_memory_allocate`.
    pub const ALLOCATE: u16 = 1;
    /// `hsa_amd_vmem_handle_create`: memory without an address.
    pub const VMEM_ALLOCATE: u16 = 2;
    /// `hsa_amd_memory_pool_free`, `hsa_memory_free`.
    pub const FREE: u16 = 3;
    /// `hsa_amd_vmem_handle_release`.
    pub const VMEM_FREE: u16 = 4;
    /// `hsa_amd_vmem_map`.
    pub const VMEM_MAP: u16 = 5;
    /// `hsa_amd_vmem_unmap`.
    pub const VMEM_UNMAP: u16 = 6;

    /// Name in rocprofv3's terms.
    pub const fn name(operation: u16) -> &'static str {
        match operation {
            ALLOCATE => "ALLOCATE",
            VMEM_ALLOCATE => "VMEM_ALLOCATE",
            FREE => "FREE",
            VMEM_FREE => "VMEM_FREE",
            VMEM_MAP => "VMEM_MAP",
            VMEM_UNMAP => "VMEM_UNMAP",
            _ => "?",
        }
    }
}

/// Calls of ROC-TX that are neither marks nor ranges: operations of an [`ApiCall`](super::ApiCall) of
/// [`Domain::MARKER`](super::Domain::MARKER).
pub mod marker_call {
    /// Pauses recording.
    pub const PAUSE: u16 = 0;
    /// Resumes recording.
    pub const RESUME: u16 = 1;
    /// Queries the calling thread's id.
    pub const THREAD_ID: u16 = 2;
    /// Names a thread.
    pub const NAME_THREAD: u16 = 3;
    /// Names an HSA agent.
    pub const NAME_AGENT: u16 = 4;
    /// Names a HIP device.
    pub const NAME_DEVICE: u16 = 5;
    /// Names a HIP stream.
    pub const NAME_STREAM: u16 = 6;
    /// The operations that give names, in ROC-TX's order.
    pub const NAMES: [u16; 4] = [NAME_THREAD, NAME_AGENT, NAME_DEVICE, NAME_STREAM];

    /// The function's name.
    pub const fn name(op: u16) -> Option<&'static str> {
        Some(match op {
            PAUSE => "roctxProfilerPause",
            RESUME => "roctxProfilerResume",
            THREAD_ID => "roctxGetThreadId",
            NAME_THREAD => "roctxNameOsThread",
            NAME_AGENT => "roctxNameHsaAgent",
            NAME_DEVICE => "roctxNameHipDevice",
            NAME_STREAM => "roctxNameHipStream",
            _ => return None,
        })
    }
}

/// Flags of a kernel's code.
pub mod code {
    /// Whether all work-groups have the same size is known.
    pub const KNOWS_UNIFORM: u32 = 1;
    /// All work-groups have the same size.
    pub const UNIFORM: u32 = 2;
    /// Whether work-groups run on both compute units is known.
    pub const KNOWS_WGP: u32 = 4;
    /// A work-group runs on both compute units of a work-group processor.
    pub const WGP: u32 = 8;
    /// The kernel takes more scratch than the notes say.
    pub const DYNAMIC_STACK: u32 = 16;
}

/// Operations of a [`Scratch`](super::Scratch), as rocprofv3 numbers them.
pub mod scratch {
    /// Allocated for a queue.
    pub const ALLOC: u16 = 1;
    /// Freed.
    pub const FREE: u16 = 2;
    /// Reclaimed from a queue that did not need it.
    pub const ASYNC_RECLAIM: u16 = 3;

    /// Name in rocprofv3's terms.
    pub const fn name(operation: u16) -> &'static str {
        match operation {
            ALLOC => "ALLOC",
            FREE => "FREE",
            ASYNC_RECLAIM => "ASYNC_RECLAIM",
            _ => "?",
        }
    }
}

/// Properties of a counter.
pub mod counter_flag {
    /// Computed from other counters.
    pub const DERIVED: u16 = 1;
    /// A property of the agent.
    pub const CONSTANT: u16 = 2;
    /// Counts a whole agent over time, not per dispatch.
    pub const DEVICE: u16 = 4;
}

/// Methods of sampling program counters.
pub mod sampling {
    /// By the GPU's hardware.
    pub const STOCHASTIC: u16 = 1;
    /// By a host trap, at equal intervals.
    pub const HOST_TRAP: u16 = 2;
}

/// Scope of a counter value.
pub mod counter_source {
    /// One dispatch, summed over all instances.
    pub const DISPATCH: u16 = 1;
    /// A whole agent since counting began, summed over all instances.
    pub const DEVICE: u16 = 2;
}

/// Directions of a copy.
pub mod direction {
    /// Unknown.
    pub const UNKNOWN: u16 = 0;
    /// Host to host.
    pub const H2H: u16 = 1;
    /// Host to device.
    pub const H2D: u16 = 2;
    /// Device to host.
    pub const D2H: u16 = 3;
    /// Device to device, same agent or peers.
    pub const D2D: u16 = 4;
    /// A fill: no source.
    pub const FILL: u16 = 5;

    /// Short name, as shown on screen.
    pub const fn name(direction: u16) -> &'static str {
        match direction {
            H2H => "H2H",
            H2D => "H2D",
            D2H => "D2H",
            D2D => "D2D",
            FILL => "fill",
            _ => "?",
        }
    }
}

/// Engines that execute a copy.
pub mod engine {
    /// Unknown.
    pub const UNKNOWN: u16 = 0;
    /// A DMA engine.
    pub const SDMA: u16 = 1;
    /// A kernel of the run-time (`__amd_rocclr_*`).
    pub const BLIT: u16 = 2;
    /// The call itself, before it returned: the CPU, or an engine that HSA does not report.
    pub const CALL: u16 = 3;

    /// Name, as filters use it.
    pub const fn name(engine: u16) -> Option<&'static str> {
        Some(match engine {
            SDMA => "sdma",
            BLIT => "blit",
            CALL => "call",
            _ => return None,
        })
    }
}

/// Codes of [`Status`](super::Status).
pub mod status {
    /// A back-end was started; the text says which.
    pub const BACKEND: u32 = 1;
    /// A back-end is not available; the text says why.
    pub const UNAVAILABLE: u32 = 2;
    /// The collector switched itself off permanently; the text says why.
    pub const OFF: u32 = 3;
    /// Information for the user.
    pub const NOTE: u32 = 4;
    /// The program named a thread: the value is its kernel thread id, the text the name.
    pub const THREAD_NAME: u32 = 5;
    /// The program named an agent or a HIP device: the value is the agent's dense index, the text the name.
    pub const AGENT_NAME: u32 = 6;
    /// Hardware counters are counting and can be paused; the text describes how they count.
    pub const COUNTING: u32 = 7;
    /// Hardware counters are paused; the text describes what the pause does not change.
    pub const RESTING: u32 = 8;
    /// Cost of a clock read in this process; the value is in ps.
    pub const CLOCK: u32 = 9;
    /// How dispatches are timed from now on; the value is a packed [`Step`](crate::level::Step), the text says it with the reason.
    pub const LEVEL: u32 = 10;
    /// Work that is not recorded, or may not be; the text says which and why, the value counts what is known to be missing.
    pub const INCOMPLETE: u32 = 11;
}

/// States of a communicator, and numbers of operations that RCCL does not have.
pub mod communicator {
    /// Created from a unique id.
    pub const CREATED: u16 = 1;
    /// Created for all ranks in one process.
    pub const ALL: u16 = 2;
    /// Split from another communicator.
    pub const SPLIT: u16 = 3;
    /// Another communicator without some of its ranks.
    pub const SHRUNK: u16 = 4;
    /// First seen in use.
    pub const SEEN: u16 = 5;
    /// Released.
    pub const RELEASED: u16 = 6;
    /// Operation: the call with this correlation id failed and takes no part.
    pub const WITHDRAWN: u16 = 0xffff;
}
