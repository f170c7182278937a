//! What numbers in records mean. Open sets: unknown numbers are shown as such.

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

    /// The field's word.
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
    /// Recording pauses.
    pub const PAUSE: u16 = 0;
    /// Recording goes on.
    pub const RESUME: u16 = 1;
    /// The calling thread's id is asked for.
    pub const THREAD_ID: u16 = 2;
    /// A thread gets a name.
    pub const NAME_THREAD: u16 = 3;
    /// An agent of HSA gets one.
    pub const NAME_AGENT: u16 = 4;
    /// A device of HIP gets one.
    pub const NAME_DEVICE: u16 = 5;
    /// A stream of HIP gets one.
    pub const NAME_STREAM: u16 = 6;
    /// Those that give names, in ROC-TX's order.
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

/// Operations of a [`Scratch`](super::Scratch), as rocprofv3 numbers them.
pub mod scratch {
    /// Given to a queue.
    pub const ALLOC: u16 = 1;
    /// Taken back.
    pub const FREE: u16 = 2;
    /// Taken back from a queue that did not need it.
    pub const ASYNC_RECLAIM: u16 = 3;

    /// The field's word.
    pub const fn name(operation: u16) -> &'static str {
        match operation {
            ALLOC => "ALLOC",
            FREE => "FREE",
            ASYNC_RECLAIM => "ASYNC_RECLAIM",
            _ => "?",
        }
    }
}

/// What a counter is.
pub mod counter_flag {
    /// Computed from others.
    pub const DERIVED: u16 = 1;
    /// A property of the agent.
    pub const CONSTANT: u16 = 2;
    /// Counted over a whole agent and time; else over each dispatch.
    pub const DEVICE: u16 = 4;
}

/// How program counters are sampled.
pub mod sampling {
    /// By the GPU's own hardware.
    pub const STOCHASTIC: u16 = 1;
    /// By a trap of the host's, in equal intervals.
    pub const HOST_TRAP: u16 = 2;
}

/// Where a counter's value comes from.
pub mod counter_source {
    /// Of one dispatch, all instances added up.
    pub const DISPATCH: u16 = 1;
    /// Of a whole agent since the counting began, all instances added up.
    pub const DEVICE: u16 = 2;
}

/// Directions of a copy.
pub mod direction {
    /// Not known.
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

    /// Short name as on screen.
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

/// Engines that make a copy.
pub mod engine {
    /// Not known.
    pub const UNKNOWN: u16 = 0;
    /// A DMA engine.
    pub const SDMA: u16 = 1;
    /// A kernel of the run-time (`__amd_rocclr_*`).
    pub const BLIT: u16 = 2;
    /// The call itself, which came back when it was done: the processor, or an engine that nobody tells of.
    pub const CALL: u16 = 3;

    /// The word for it, as filters have it.
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
    /// The collector switched itself off for good; the text says why.
    pub const OFF: u32 = 3;
    /// Something worth knowing.
    pub const NOTE: u32 = 4;
    /// The program named a thread; the value is its kernel thread id, the text the name.
    pub const THREAD_NAME: u32 = 5;
    /// The program named an agent or a HIP device; the value is the agent's dense index, the text the name.
    pub const AGENT_NAME: u32 = 6;
    /// Hardware counters count, and can be told to rest; the text says how they count.
    pub const COUNTING: u32 = 7;
    /// Hardware counters rest until they are told to go on; the text says what that leaves as it is.
    pub const RESTING: u32 = 8;
    /// What a reading of the clock takes in this process; the value is ps.
    pub const CLOCK: u32 = 9;
    /// How dispatches are timed from now on; the value is a packed [`Step`](crate::level::Step), the text says it with the reason.
    pub const LEVEL: u32 = 10;
}
