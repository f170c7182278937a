//! Structures in memory and numbers of HSA (1.0 to 1.2, AMD extensions of ROCm 5.2 to 7.2).

use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicI64, AtomicU64};

/// `hsa_status_t`.
pub type Status = i32;
/// `HSA_STATUS_SUCCESS`.
pub const SUCCESS: Status = 0;
/// An agent's handle.
pub type Agent = u64;
/// A signal's handle: the address of a [`Signal`].
pub type SignalHandle = u64;
/// A memory pool's handle.
pub type Pool = u64;
/// A handle of virtual memory (`hsa_amd_vmem_alloc_handle_t`, a structure of one 64-bit word).
pub type VmemHandle = u64;
/// An executable's handle.
pub type Executable = u64;
/// An executable symbol's handle.
pub type Symbol = u64;
/// A loaded code object's handle.
pub type LoadedCodeObject = u64;

/// A packet of a queue, seen as a kernel dispatch.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Type in the low byte, barrier bit, fences.
    pub header: u16,
    /// Dimensions.
    pub setup: u16,
    /// Work-group in work-items.
    pub workgroup: [u16; 3],
    /// Reserved.
    pub reserved0: u16,
    /// Grid in work-items.
    pub grid: [u32; 3],
    /// Scratch bytes a work-item.
    pub private_size: u32,
    /// LDS bytes a work-group.
    pub group_size: u32,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Address of the kernel arguments.
    pub kernarg: u64,
    /// Reserved.
    pub reserved1: u64,
    /// Completion signal, 0 for none. At the same place in all packet types but vendor ones.
    pub completion: SignalHandle,
}

const _: () = {
    assert!(size_of::<Packet>() == 64);
    assert!(offset_of!(Packet, workgroup) == 4 && offset_of!(Packet, grid) == 12);
    assert!(offset_of!(Packet, private_size) == 24 && offset_of!(Packet, group_size) == 28);
    assert!(offset_of!(Packet, kernel_object) == 32 && offset_of!(Packet, completion) == 56);
};

/// Packet types and header bits.
pub mod packet {
    /// Vendor specific.
    pub const VENDOR: u16 = 0;
    /// Not filled in yet.
    pub const INVALID: u16 = 1;
    /// Kernel dispatch.
    pub const DISPATCH: u16 = 2;
    /// Barrier on all dependencies.
    pub const BARRIER_AND: u16 = 3;
    /// Bits of the type.
    pub const TYPE: u16 = 0xff;
    /// Waits for all packets before it.
    pub const BARRIER: u16 = 1 << 8;
    /// Bits of the release fence.
    pub const RELEASE: u16 = 3 << 11;
}

/// `amd_signal_t`.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Signal {
    /// See [`SIGNAL_USER`].
    pub kind: i64,
    /// Value.
    pub value: AtomicI64,
    /// Event mailbox, 0 for none.
    pub mailbox: u64,
    /// Event id, 0 for none.
    pub event: u32,
    /// Reserved.
    pub reserved0: u32,
    /// When the last packet with this signal began, agent ticks.
    pub start: AtomicU64,
    /// When it ended, agent ticks.
    pub end: AtomicU64,
    /// Reserved.
    pub reserved1: [u64; 2],
}

const _: () = {
    assert!(size_of::<Signal>() == 64 && offset_of!(Signal, value) == 8);
    assert!(offset_of!(Signal, mailbox) == 16 && offset_of!(Signal, event) == 24);
    assert!(offset_of!(Signal, start) == 32 && offset_of!(Signal, end) == 40);
};

/// Kind of a signal that has a value.
pub const SIGNAL_USER: i64 = 1;

/// `HSA_AMD_SIGNAL_AMD_GPU_ONLY`: a signal without an event; nobody is woken by it.
pub const SIGNAL_GPU_ONLY: u64 = 1;

/// An event of scratch memory (`hsa_amd_event_scratch_alloc_end_t`; the others end earlier).
#[repr(C)]
#[derive(Debug)]
pub struct ScratchEvent {
    /// Kind.
    pub kind: u32,
    /// Reserved.
    pub reserved0: u32,
    /// The queue's handle.
    pub queue: u64,
    /// 1 for one use, 2 from the alternative pool.
    pub flags: u32,
    /// Reserved.
    pub reserved1: u32,
    /// Index of the packet that asks; in events of allocation alone.
    pub packet: u64,
    /// Bytes; in the end of an allocation alone.
    pub size: u64,
    /// Waves that have a place; as above.
    pub slots: u64,
}

const _: () = assert!(offset_of!(ScratchEvent, queue) == 8 && offset_of!(ScratchEvent, packet) == 24);
const _: () = assert!(offset_of!(ScratchEvent, size) == 32 && offset_of!(ScratchEvent, slots) == 40);

/// `hsa_queue_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Queue {
    /// See [`QUEUE_COOPERATIVE`].
    pub queue_type: u32,
    /// Features.
    pub features: u32,
    /// Packets.
    pub base: *mut c_void,
    /// Doorbell.
    pub doorbell: SignalHandle,
    /// Packets that the queue holds.
    pub size: u32,
    /// Reserved.
    pub reserved: u32,
    /// Number in the process.
    pub id: u64,
}

const _: () = assert!(offset_of!(Queue, size) == 24 && offset_of!(Queue, id) == 32);

/// Type of queues for cooperative launches.
pub const QUEUE_COOPERATIVE: u32 = 2;

/// `hsa_pitched_ptr_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pitched {
    /// Address.
    pub base: u64,
    /// Bytes of a row.
    pub pitch: u64,
    /// Bytes of a layer.
    pub slice: u64,
}

/// `hsa_dim3_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dim3 {
    /// Bytes in copies.
    pub x: u32,
    /// Rows.
    pub y: u32,
    /// Layers.
    pub z: u32,
}

/// `hsa_amd_profiling_dispatch_time_t` and `…_async_copy_time_t`: ticks of HSA's system clock, as the run-time gives them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
}

/// `hsa_amd_pointer_info_t` as its first version has it: later ones go on behind it, and it says its size.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PointerInfo {
    /// Bytes of this structure.
    pub size: u32,
    /// One of [`mod@pointer`].
    pub kind: u32,
    /// Where GPUs see the memory.
    pub agent_base: u64,
    /// Where the host sees it.
    pub host_base: u64,
    /// Its bytes.
    pub bytes: usize,
    /// The program's own word.
    pub user: u64,
    /// Whose it is.
    pub owner: Agent,
}

/// `hsa_amd_pointer_type_t`.
pub mod pointer {
    /// Memory that HSA does not know.
    pub const UNKNOWN: u32 = 0;
    /// Memory of the host that was registered.
    pub const LOCKED: u32 = 2;
}

/// Attributes.
pub mod info {
    /// System: version of HSA behind 1.
    pub const VERSION_MINOR: i32 = 1;
    /// System: time stamp, ticks of HSA's system clock.
    pub const TIMESTAMP: i32 = 2;
    /// System: its frequency, Hz.
    pub const TIMESTAMP_FREQUENCY: i32 = 3;
    /// Agent: name, 64 bytes.
    pub const AGENT_NAME: i32 = 0;
    /// Agent: lanes of a wave.
    pub const WAVE_SIZE: i32 = 6;
    /// Agent: type, 0 CPU, 1 GPU, 2 DSP.
    pub const DEVICE: i32 = 17;
    /// Agent: compute units.
    pub const COMPUTE_UNITS: i32 = 0xa002;
    /// Agent: the driver's node.
    pub const DRIVER_NODE: i32 = 0xa004;
    /// Agent: bus, device, function.
    pub const BDF: i32 = 0xa006;
    /// Agent: product name, 64 bytes.
    pub const PRODUCT_NAME: i32 = 0xa009;
    /// Agent: PCI domain.
    pub const PCI_DOMAIN: i32 = 0xa00f;
    /// Agent: ticks of its counter in a second, Hz (later than 5.2).
    pub const COUNTER_FREQUENCY: i32 = 0xa016;
    /// Agent: copy engines (5.4 and later).
    pub const COPY_ENGINES: i32 = 0xa10a;
    /// Agent: bits of what its memory is, eight bytes (6.0 and later).
    pub const MEMORY_PROPERTIES: i32 = 0xa114;
    /// The agent is an APU.
    pub const MEMORY_IS_APU: u64 = 1;
    /// Pool: segment, 0 global.
    pub const POOL_SEGMENT: i32 = 0;
    /// Pool: flags of a global one.
    pub const POOL_FLAGS: i32 = 1;
    /// Pool: bytes.
    pub const POOL_SIZE: i32 = 2;
    /// Pool flag: for kernel arguments. The run-time maps such a pool uncached.
    pub const POOL_KERNARG: u32 = 1;
    /// Pool flag: fine-grained.
    pub const POOL_FINE: u32 = 2;
    /// Symbol: type, 1 kernel.
    pub const SYMBOL_TYPE: i32 = 0;
    /// Symbol: length of the name.
    pub const SYMBOL_NAME_LENGTH: i32 = 1;
    /// Symbol: name.
    pub const SYMBOL_NAME: i32 = 2;
    /// Kernel: address of its descriptor.
    pub const KERNEL_OBJECT: i32 = 22;
    /// Kernel: bytes of arguments.
    pub const KERNARG_SIZE: i32 = 11;
    /// Kernel: bytes of static LDS.
    pub const GROUP_SIZE: i32 = 13;
    /// Kernel: bytes of scratch.
    pub const PRIVATE_SIZE: i32 = 14;
    /// Loaded code object: agent.
    pub const LOADED_AGENT: i32 = 3;
    /// Loaded code object: load address.
    pub const LOADED_BASE: i32 = 9;
    /// Loaded code object: bytes.
    pub const LOADED_SIZE: i32 = 10;
    /// Loaded code object: length of the URI.
    pub const LOADED_URI_LENGTH: i32 = 11;
    /// Loaded code object: URI.
    pub const LOADED_URI: i32 = 12;
}

/// The loader extension's number.
pub const EXTENSION_LOADER: u16 = 0x201;

/// `hsa_ven_amd_loader_1_01_pfn_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Loader {
    /// Host address of a device address.
    pub query_host_address: Option<unsafe extern "C" fn(*const c_void, *mut *const c_void) -> Status>,
    /// Not used.
    pub query_segment_descriptors: usize,
    /// Not used.
    pub query_executable: usize,
    /// Calls back for each loaded code object.
    pub iterate_loaded_code_objects: Option<
        unsafe extern "C" fn(
            Executable,
            unsafe extern "C" fn(Executable, LoadedCodeObject, *mut c_void) -> Status,
            *mut c_void,
        ) -> Status,
    >,
    /// Attribute of a loaded code object.
    pub loaded_code_object_get_info: Option<unsafe extern "C" fn(LoadedCodeObject, i32, *mut c_void) -> Status>,
}
