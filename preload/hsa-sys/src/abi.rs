//! HSA structures in memory, and constants (1.0 to 1.2, AMD extensions of ROCm 5.2 to 10).

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
    /// Scratch bytes per work-item.
    pub private_size: u32,
    /// LDS bytes per work-group.
    pub group_size: u32,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Address of the kernel arguments.
    pub kernarg: u64,
    /// Reserved.
    pub reserved1: u64,
    /// Completion signal, 0 for none. At the same offset in all packet types except vendor ones.
    pub completion: SignalHandle,
}

const _: () = {
    assert!(size_of::<Packet>() == 64);
    assert!(offset_of!(Packet, workgroup) == 4 && offset_of!(Packet, grid) == 12);
    assert!(offset_of!(Packet, private_size) == 24 && offset_of!(Packet, group_size) == 28);
    assert!(offset_of!(Packet, kernel_object) == 32 && offset_of!(Packet, completion) == 56);
};

/// A packet of a queue may dispatch a kernel in two ways: by HSA's dispatch packet, and by AMD's extended one
/// (`hsa_amd_ext_kernel_dispatch_packet_t`), whose grid is a count of clusters of work-groups.
impl Packet {
    /// Whether the packet dispatches a kernel.
    #[inline]
    pub const fn is_dispatch(&self) -> bool {
        match self.header & packet::TYPE {
            packet::DISPATCH => true,
            packet::VENDOR => self.vendor_format() == packet::FORMAT_EXTENDED_DISPATCH,
            _ => false,
        }
    }

    /// Whether the packet has a completion signal at the offset of dispatches.
    #[inline]
    pub const fn has_completion_in_place(&self) -> bool {
        self.header & packet::TYPE != packet::VENDOR || self.is_dispatch()
    }

    /// The format of a vendor packet, at the offset where other packets have their dimensions.
    const fn vendor_format(&self) -> u8 {
        self.setup.to_le_bytes()[0]
    }

    /// Work-items of the grid of a dispatch.
    #[inline]
    pub const fn grid_of_dispatch(&self) -> [u32; 3] {
        if self.header & packet::TYPE == packet::VENDOR {
            self.grid_of_clusters()
        } else {
            self.grid
        }
    }

    /// Count of clusters by work-groups of a cluster by work-items of a work-group, in the extended packet.
    #[cold]
    const fn grid_of_clusters(&self) -> [u32; 3] {
        let [x, counts, sizes] = self.grid;
        let [count_y, count_z] = [counts & 0xffff, counts >> 16];
        let [size_x, size_y, size_z, _hint] = sizes.to_le_bytes();
        [
            items(x, size_x, self.workgroup[0]),
            items(count_y, size_y, self.workgroup[1]),
            items(count_z, size_z, self.workgroup[2]),
        ]
    }

    /// Whether a packet whose type was cleared dispatched a kernel. Barriers have no dimensions, and other packets no
    /// kernel.
    pub const fn was_dispatch(&self) -> bool {
        const FIRST_PAGE: u64 = 4096;
        self.setup != 0 && self.kernel_object >= FIRST_PAGE
    }

    /// The same packet with its probable former type.
    #[must_use]
    pub const fn with_likely_type(self) -> Self {
        // The extended packet has its dimensions after its format.
        let [format, dimensions] = self.setup.to_le_bytes();
        let kind = if format == packet::FORMAT_EXTENDED_DISPATCH && dimensions != 0 {
            packet::VENDOR
        } else {
            packet::DISPATCH
        };
        Self {
            header: self.header & !packet::TYPE | kind,
            ..self
        }
    }
}

const fn items(count: u32, cluster: u8, workgroup: u16) -> u32 {
    let cluster = if cluster == 0 { 1 } else { cluster as u32 };
    count.saturating_mul(cluster).saturating_mul(workgroup as u32)
}

/// Packet types and header bits.
pub mod packet {
    /// Vendor specific.
    pub const VENDOR: u16 = 0;
    /// Not filled in.
    pub const INVALID: u16 = 1;
    /// Kernel dispatch.
    pub const DISPATCH: u16 = 2;
    /// Barrier on all dependencies.
    pub const BARRIER_AND: u16 = 3;
    /// Format of a vendor packet that dispatches a kernel (gfx1250, and clusters everywhere).
    pub const FORMAT_EXTENDED_DISPATCH: u8 = 3;
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
    /// Begin of the last packet with this signal, agent ticks.
    pub start: AtomicU64,
    /// Its end, agent ticks.
    pub end: AtomicU64,
    /// Reserved.
    pub reserved1: [u64; 2],
}

const _: () = {
    assert!(size_of::<Signal>() == 64 && offset_of!(Signal, value) == 8);
    assert!(offset_of!(Signal, mailbox) == 16 && offset_of!(Signal, event) == 24);
    assert!(offset_of!(Signal, start) == 32 && offset_of!(Signal, end) == 40);
};

/// Kind of a signal with a value.
pub const SIGNAL_USER: i64 = 1;

/// `HSA_AMD_SIGNAL_AMD_GPU_ONLY`: a signal without an event, which wakes no waiter.
pub const SIGNAL_GPU_ONLY: u64 = 1;

/// An event of scratch memory (`hsa_amd_event_scratch_alloc_end_t`; the others are shorter).
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
    /// Index of the packet that needs the memory; only in events of allocation.
    pub packet: u64,
    /// Bytes; only at the end of an allocation.
    pub size: u64,
    /// Number of wave slots; only at the end of an allocation.
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

/// `hsa_amd_queue_create_desc_t` (ROCr 1.21 and later).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct QueueDescriptor {
    /// See [`QueueDescriptor::VERSION`].
    pub version: u16,
    /// Location of its ring, and more; 0 for host memory.
    pub flags: u16,
    /// 0 for compute.
    pub engine: u8,
    /// Reserved.
    pub reserved0: [u8; 3],
    /// Bytes of the ring.
    pub bytes: u32,
    /// See [`QueueDescriptor::NORMAL`].
    pub priority: u32,
    /// Receives the queue's errors.
    pub callback: crate::table::QueueCallback,
    /// Argument of the callback.
    pub data: *mut c_void,
    /// Receives the new queue's handle.
    pub queue: *mut Queue,
    /// For a compute queue: the mask of its compute units, or null.
    pub cu_mask: *const u32,
    /// For a compute queue: its type.
    pub queue_type: u32,
    /// For a compute queue: scratch bytes per work-item.
    pub private_size: u32,
    /// For a compute queue: bits in the mask.
    pub cu_mask_bits: u32,
    /// Reserved.
    pub reserved1: [u32; 3],
    /// 0 for none.
    pub traffic_class: u32,
    /// Reserved.
    pub reserved2: [u32; 5],
}

impl QueueDescriptor {
    /// The known version.
    pub const VERSION: u16 = 1;
    /// The default priority of queues.
    pub const NORMAL: u32 = 1;

    /// Whether this is a compute queue as `hsa_queue_create` creates one; priority and mask of compute units may
    /// differ.
    pub fn is_plain_compute(&self) -> bool {
        let has_no_extra = self.flags == 0 && self.engine == 0 && self.traffic_class == 0;
        let is_known = self.reserved0 == [0; 3] && self.reserved1 == [0; 3] && self.reserved2 == [0; 5];
        let has_mask = self.cu_mask_bits == 0 || (self.cu_mask_bits.is_multiple_of(32) && !self.cu_mask.is_null());
        let is_ring = self.bytes.is_power_of_two() && self.bytes as usize >= size_of::<Packet>();
        self.version == Self::VERSION && has_no_extra && is_known && has_mask && is_ring && self.queue_type <= 2
    }
}

const _: () = {
    assert!(size_of::<QueueDescriptor>() == 96);
    assert!(offset_of!(QueueDescriptor, bytes) == 8 && offset_of!(QueueDescriptor, callback) == 16);
    assert!(offset_of!(QueueDescriptor, queue) == 32 && offset_of!(QueueDescriptor, queue_type) == 48);
    assert!(offset_of!(QueueDescriptor, cu_mask_bits) == 56 && offset_of!(QueueDescriptor, traffic_class) == 72);
};

/// The start of `hsa_amd_memory_copy_op_t`. Its size differs between published headers, so only the first of several
/// operations is at the offset given here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CopyOperation {
    /// See [`CopyOperation::VERSION`].
    pub version: u16,
    /// One of [`mod@copy`].
    pub kind: u16,
    /// Entries of the lists; 0 if the fields are not lists.
    pub entries: u16,
    /// Reserved.
    pub traffic_class: u16,
    /// Decremented when all entries are copied.
    pub completion: SignalHandle,
    /// Source, or list of them.
    pub src: u64,
    /// Agent of all sources.
    pub src_agent: Agent,
    /// Agent of the destination, or list of them.
    pub dst_agent: u64,
    /// Destination, or list of them.
    pub dst: u64,
    /// Bytes, or list of them.
    pub size: u64,
}

impl CopyOperation {
    /// The known version.
    pub const VERSION: u16 = 1;
}

const _: () = assert!(offset_of!(CopyOperation, src) == 16 && offset_of!(CopyOperation, dst) == 40);
const _: () = assert!(offset_of!(CopyOperation, size) == 48);

/// `hsa_amd_memory_copy_op_type_t`.
pub mod copy {
    /// Source to destination, each with its bytes.
    pub const LINEAR: u16 = 0;
    /// One source to many destinations, with the bytes of one.
    pub const BROADCAST: u16 = 1;
    /// The last known kind. Kinds 2 to 5 exchange memory, or have addresses that the engine computes.
    pub const LAST: u16 = 5;
}

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
    /// Bytes, for copies.
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

/// `hsa_amd_pointer_info_t`, first version. Later versions append fields; the structure contains its size.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PointerInfo {
    /// Bytes of this structure.
    pub size: u32,
    /// One of [`mod@pointer`].
    pub kind: u32,
    /// Address for GPUs.
    pub agent_base: u64,
    /// Address for the host.
    pub host_base: u64,
    /// Size in bytes.
    pub bytes: usize,
    /// The program's word.
    pub user: u64,
    /// Owning agent.
    pub owner: Agent,
}

/// `hsa_amd_pointer_type_t`.
pub mod pointer {
    /// Memory that HSA does not know.
    pub const UNKNOWN: u32 = 0;
    /// Registered host memory.
    pub const LOCKED: u32 = 2;
}

/// Attributes.
pub mod info {
    /// System: time stamp, ticks of HSA's system clock.
    pub const TIMESTAMP: i32 = 2;
    /// System: its frequency, Hz.
    pub const TIMESTAMP_FREQUENCY: i32 = 3;
    /// System: text of the run-time's build, a pointer.
    pub const BUILD_VERSION: i32 = 0x200;
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
    /// Agent: bits that describe its memory, eight bytes (6.0 and later).
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An extended dispatch with these sizes: 5 x 3 x 2 clusters of 4 x 2 x 1 work-groups of 64 x 2 x 1 work-items.
    fn extended() -> Packet {
        let mut bytes = [0u8; 64];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(2, &[3, 3]);
        put(4, &64u16.to_le_bytes());
        put(6, &2u16.to_le_bytes());
        put(8, &1u16.to_le_bytes());
        put(12, &5u32.to_le_bytes());
        put(16, &3u16.to_le_bytes());
        put(18, &2u16.to_le_bytes());
        put(20, &[4, 2, 1, 0xff]);
        put(32, &0x7000_0000u64.to_le_bytes());
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let double = |at: usize| u32::from(word(at)) | u32::from(word(at + 2)) << 16;
        Packet {
            header: word(0),
            setup: word(2),
            workgroup: [word(4), word(6), word(8)],
            grid: [double(12), double(16), double(20)],
            kernel_object: u64::from(double(32)),
            ..Packet::default()
        }
    }

    #[test]
    fn extended_packet_is_a_dispatch_of_clusters() {
        let packet = extended();
        assert!(packet.is_dispatch() && packet.has_completion_in_place());
        assert_eq!(packet.grid_of_dispatch(), [5 * 4 * 64, 3 * 2 * 2, 2]);
    }

    #[test]
    fn other_vendor_packets_are_no_dispatches() {
        for format in [0, 1, 2, 4, 200] {
            let packet = Packet {
                setup: format,
                ..extended()
            };
            assert!(!packet.is_dispatch() && !packet.has_completion_in_place(), "{format}");
        }
    }

    #[test]
    fn dispatch_whose_type_is_gone_is_known_by_its_dimensions() {
        let gone = |packet: Packet| Packet {
            header: packet::INVALID,
            ..packet
        };
        let extended = gone(extended());
        assert!(extended.was_dispatch());
        assert_eq!(extended.with_likely_type().grid_of_dispatch()[1], 12);
        let plain = Packet {
            setup: 3,
            grid: [128, 1, 1],
            ..extended
        };
        assert_eq!(plain.with_likely_type().grid_of_dispatch(), [128, 1, 1]);
        let waits_for_a_value = Packet {
            setup: 2,
            kernel_object: 1,
            ..extended
        };
        assert!(!waits_for_a_value.was_dispatch());
    }
}
