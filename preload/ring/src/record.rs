//! What travels in the ring: one table of records, from which encoder, decoder, names and size checks come.
//!
//! A record is one head slot and up to [`MAX_SLOTS`] - 1 continuation slots of 64 bytes. Word 0 of a slot is its
//! header, word 7 its sequence (slot index + 1), words 1 to 6 carry payload: 48 bytes a slot, little endian, fields in
//! the order of the table without padding. Numbers are never reused; a changed row is a new row.
//!
//! Times: *ticks* are raw host counter values (see [`crate::layout::clock`]), *HSA ns* are nanoseconds of the HSA
//! system domain (`hsa_amd_profiling_convert_tick_to_system_domain`, HSA 5.2 to 7.2: the driver's CLOCK_BOOTTIME counter).

use crate::arguments::Arguments;

/// A slot: header word, six payload words, sequence word.
pub type Slot = [u64; SLOT_WORDS];

/// Words in a slot.
pub const SLOT_WORDS: usize = 8;
/// Bytes in a slot.
pub const SLOT_BYTES: usize = 64;
/// Payload words in a slot.
pub const PAYLOAD_WORDS: usize = 6;
/// Payload bytes in a slot.
pub const PAYLOAD_BYTES: usize = PAYLOAD_WORDS * 8;
/// The most slots that one record may take.
#[cfg(not(loom))]
pub const MAX_SLOTS: usize = 8;
/// The most slots that one record may take; small, so that the rings of the proofs are small.
#[cfg(loom)]
pub const MAX_SLOTS: usize = 2;

/// Header word of a slot: kind (8 bits), flags (8), slots of the record or index of the continuation (8), domain (8),
/// ordinal of the record in its ring, modulo 2^32 (32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(pub u64);

impl Head {
    /// Header of a record's first slot; the ring's writer adds the ordinal.
    pub const fn new(kind: u8, flags: u8, slots: u8, domain: u8) -> Self {
        Self(kind as u64 | (flags as u64) << 8 | (slots as u64) << 16 | (domain as u64) << 24)
    }
    /// The same header with a record ordinal.
    #[must_use]
    pub const fn with_ordinal(self, ordinal: u64) -> Self {
        Self(self.0 & 0xffff_ffff | ordinal << 32)
    }
    /// Kind number; see the constants `KIND` of the records.
    pub const fn kind(self) -> u8 {
        self.0 as u8
    }
    /// Flag bits, see [`flag`].
    pub const fn flags(self) -> u8 {
        (self.0 >> 8) as u8
    }
    /// Slots of the whole record, or the index of a continuation slot.
    pub const fn slots(self) -> u8 {
        (self.0 >> 16) as u8
    }
    /// Domain number, see [`Domain`].
    pub const fn domain(self) -> Domain {
        Domain((self.0 >> 24) as u8)
    }
    /// Ordinal of the record in its ring, modulo 2^32.
    pub const fn ordinal(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Flag bits of a record's header.
pub mod flag {
    /// The time span was found swapped, zero or backwards; kept as it was found.
    pub const SUSPECT_TIME: u8 = 1;
    // 2 was never written; numbers are not used again.
    /// The work belongs to the run-time itself (blit kernels, code uploads).
    pub const INTERNAL: u8 = 4;
    /// The span was still open when it was written.
    pub const OPEN: u8 = 8;
    /// No GPU time could be had for this work; `begin` and `end` are zero.
    pub const UNTIMED: u8 = 16;
}

/// Where a call or marker comes from. An open set: unknown numbers are shown as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Domain(pub u8);

impl Domain {
    /// Not a call.
    pub const NONE: Self = Self(0);
    /// HIP run-time API.
    pub const HIP: Self = Self(1);
    /// HIP compiler API (`__hipRegisterFatBinary` and its relatives).
    pub const HIP_COMPILER: Self = Self(2);
    /// HSA core API.
    pub const HSA_CORE: Self = Self(3);
    /// HSA AMD extension API.
    pub const HSA_AMD: Self = Self(4);
    /// HSA image extension API.
    pub const HSA_IMAGE: Self = Self(5);
    /// HSA finalizer extension API.
    pub const HSA_FINALIZER: Self = Self(6);
    /// ROC-TX.
    pub const MARKER: Self = Self(7);
    /// RCCL.
    pub const RCCL: Self = Self(8);
    /// rocDecode.
    pub const ROCDECODE: Self = Self(9);
    /// rocJPEG.
    pub const ROCJPEG: Self = Self(10);

    /// The field's word for the domain, or none when the number is unknown.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "hip",
            2 => "hip_compiler",
            3 => "hsa_core",
            4 => "hsa_amd",
            5 => "hsa_image",
            6 => "hsa_finalizer",
            7 => "marker",
            8 => "rccl",
            9 => "rocdecode",
            10 => "rocjpeg",
            _ => return None,
        })
    }
}

/// Kind number of a continuation slot.
pub const CONTINUATION: u8 = 1;

macro_rules! records {
    ($($(#[$doc:meta])* $num:literal $Name:ident ($text:literal, $slots:literal) {
        $($(#[$fdoc:meta])* $field:ident: $ty:ty,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $Name {
                $($(#[$fdoc])* pub $field: $ty,)*
            }

            impl $Name {
                /// Number of this kind in a slot's header.
                pub const KIND: u8 = $num;
                /// Slots that one record of this kind takes.
                pub const SLOTS: usize = $slots;
                const SIZE: usize = 0 $(+ size_of::<$ty>())*;
                const FITS: () = assert!(Self::SIZE <= $slots * PAYLOAD_BYTES && $slots <= MAX_SLOTS);

                /// Header of a record of this kind.
                pub const fn head(flags: u8, domain: Domain) -> Head {
                    Head::new(Self::KIND, flags, $slots, domain.0)
                }

                /// The payload words of all slots.
                #[inline]
                pub fn payload(&self) -> [[u64; PAYLOAD_WORDS]; $slots] {
                    const { Self::FITS };
                    let mut bytes = [0u8; $slots * PAYLOAD_BYTES];
                    let mut at = 0;
                    $(
                        bytes[at..at + size_of::<$ty>()].copy_from_slice(&self.$field.to_le_bytes());
                        at += size_of::<$ty>();
                    )*
                    let _ = at;
                    let mut out = [[0u64; PAYLOAD_WORDS]; $slots];
                    for (word, raw) in out.as_flattened_mut().iter_mut().zip(bytes.as_chunks::<8>().0) {
                        *word = u64::from_le_bytes(*raw);
                    }
                    out
                }

                /// Decodes the payload; missing slots read as zero, so that decoding is total.
                #[inline]
                pub fn decode(slots: &[Slot]) -> Self {
                    if let Some(whole) = slots.first_chunk() {
                        return Self::of(whole);
                    }
                    let mut whole = [[0; SLOT_WORDS]; $slots];
                    for (to, slot) in whole.iter_mut().zip(slots) {
                        *to = *slot;
                    }
                    Self::of(&whole)
                }

                // Of known length, so that the bytes below are nowhere but in registers.
                #[inline]
                fn of(slots: &[Slot; $slots]) -> Self {
                    let mut bytes = [0u8; $slots * PAYLOAD_BYTES];
                    for (to, slot) in bytes.chunks_exact_mut(PAYLOAD_BYTES).zip(slots) {
                        for (to, word) in to.as_chunks_mut::<8>().0.iter_mut().zip(&slot[1..7]) {
                            *to = word.to_le_bytes();
                        }
                    }
                    let mut at = 0;
                    $(
                        let mut raw = [0u8; size_of::<$ty>()];
                        raw.copy_from_slice(&bytes[at..at + size_of::<$ty>()]);
                        let $field = <$ty>::from_le_bytes(raw);
                        at += size_of::<$ty>();
                    )*
                    let _ = at;
                    Self { $($field,)* }
                }
            }
        )*

        /// A decoded record.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Body {
            $($(#[$doc])* $Name($Name),)*
            /// A ROC-TX mark: a range of no length.
            Mark(Marker),
            /// A closed ROC-TX range.
            Range(Marker),
            /// A host API call with its arguments.
            ExplainedCall(ApiCall, Arguments),
            /// A kind that this reader does not know.
            Unknown(u8),
        }

        /// Decodes a record from its slots (head first). Total: an unknown kind is a value, not an error.
        pub fn decode(slots: &[Slot]) -> Body {
            let Some(first) = slots.first() else { return Body::Unknown(0) };
            match Head(first[0]).kind() {
                $($num => Body::$Name($Name::decode(slots)),)*
                Marker::MARK => Body::Mark(Marker::decode(slots)),
                Marker::RANGE => Body::Range(Marker::decode(slots)),
                Arguments::KIND => Body::ExplainedCall(ApiCall::decode(slots), Arguments::decode(slots)),
                other => Body::Unknown(other),
            }
        }

        /// The name of a record kind, or none when the number is unknown.
        pub const fn kind_name(kind: u8) -> Option<&'static str> {
            Some(match kind {
                $($num => $text,)*
                Marker::MARK => "mark",
                Marker::RANGE => "range",
                Arguments::KIND => "explained_call",
                _ => return None,
            })
        }
    };
}

records! {
    /// A fact: an HSA agent. Source: `hsa_agent_get_info` (HSA 5.2 to 7.2).
    2 Agent ("agent", 2) {
        /// HSA agent handle.
        handle: u64,
        /// Bytes of local memory, 0 when unknown.
        memory: u64,
        /// Dense index in order of `hsa_iterate_agents`.
        index: u32,
        /// Driver (KFD topology) node.
        node: u32,
        /// 0 CPU, 1 GPU, 2 other.
        kind: u32,
        /// String id of the agent's name (`gfx906`).
        name: u32,
        /// String id of the product name.
        product: u32,
        /// Compute units.
        compute_units: u32,
        /// Lanes of a wave.
        wave_size: u32,
        /// PCI bus, device, function.
        bdf: u32,
        /// PCI domain.
        pci_domain: u32,
    }
    /// A fact: a loaded code object. Source: `hsa_ven_amd_loader` (HSA 5.2 to 7.2).
    3 CodeObject ("code_object", 1) {
        /// Number in order of loading, from 1.
        id: u64,
        /// Load address.
        base: u64,
        /// Bytes loaded.
        size: u64,
        /// When it was loaded (state 1) or unloaded (state 2), ticks.
        time: u64,
        /// Dense agent index.
        agent: u32,
        /// String id of the URI.
        uri: u32,
        /// 1 loaded, 2 unloaded.
        state: u32,
        /// Reserved.
        reserved: u32,
    }
    /// A fact: a kernel symbol, with the words of its 64-byte kernel descriptor that register counts come from.
    4 KernelSymbol ("kernel_symbol", 2) {
        /// Address of the kernel descriptor: what a dispatch packet names.
        kernel_object: u64,
        /// Code object number.
        code_object: u64,
        /// When it was loaded, ticks.
        time: u64,
        /// String id of the mangled name, without `.kd`.
        name: u32,
        /// Dense agent index.
        agent: u32,
        /// Bytes of kernel arguments.
        kernarg_size: u32,
        /// Bytes of static LDS.
        group_size: u32,
        /// Bytes of scratch a work-item.
        private_size: u32,
        /// Descriptor word at byte 48.
        rsrc1: u32,
        /// Descriptor word at byte 52.
        rsrc2: u32,
        /// Descriptor word at byte 44.
        rsrc3: u32,
        /// Descriptor half-word at byte 56.
        properties: u16,
        /// 1 when the descriptor could be read; 2 when `rsrc1`, `rsrc2`, `rsrc3` are counts of VGPRs, SGPRs, AGPRs.
        has_descriptor: u16,
    }
    /// A fact: an HSA queue was created or destroyed.
    5 Queue ("queue", 1) {
        /// Address of `hsa_queue_t`.
        handle: u64,
        /// When, ticks.
        time: u64,
        /// Dense queue id, from 1.
        id: u32,
        /// Dense agent index.
        agent: u32,
        /// Packets the queue holds.
        size: u32,
        /// HSA queue type.
        queue_type: u32,
        /// 1 created, 2 destroyed.
        state: u32,
        /// 1 when its dispatches are intercepted.
        intercepted: u32,
    }
    /// A fact: a HIP stream was first seen or destroyed.
    6 Stream ("stream", 1) {
        /// `hipStream_t`.
        handle: u64,
        /// When, ticks.
        time: u64,
        /// Dense stream id; 0 is the default stream of a device.
        id: u32,
        /// HIP device, -1 when unknown.
        device: i32,
        /// String id of the name given by `roctxNameHipStream`, 0 for none.
        name: u32,
        /// 1 created or first seen, 2 destroyed, 3 named.
        state: u32,
    }
    /// A fact: what the collector decided, and why.
    7 Status ("status", 1) {
        /// When, ticks.
        time: u64,
        /// A number that belongs to it.
        value: u64,
        /// One of [`status`].
        code: u32,
        /// String id of a sentence.
        text: u32,
    }
    /// A fact: name of an API operation as the loaded run-time gives it.
    8 OperationName ("operation_name", 1) {
        /// Domain number.
        domain: u32,
        /// Operation number in the domain.
        op: u32,
        /// String id of the name.
        name: u32,
        /// Reserved.
        reserved: u32,
    }
    /// A fact: a hardware counter that is collected or can be. Source: `rocprofiler_query_counter_info` (SDK 0.4 to 1.x).
    14 Counter ("counter", 1) {
        /// The library's own id.
        handle: u64,
        /// Instances over all dimensions; 0 unknown.
        instances: u64,
        /// Number in this process, from 0: what values name.
        id: u32,
        /// Dense agent index.
        agent: u32,
        /// String id of the name.
        name: u32,
        /// String id of the description.
        description: u32,
        /// String id of the block, empty for a derived counter.
        block: u32,
        /// String id of the expression, empty for a basic counter.
        expression: u32,
        /// String id of the dimensions, as `DIMENSION_INSTANCE[0:15]`.
        dimensions: u32,
        /// Bits of [`counter_flag`].
        flags: u16,
        /// The pass in which it is collected, from 1; 0 when it is only listed.
        pass: u16,
    }
    /// A way of sampling program counters that an agent offers.
    15 SamplingConfiguration ("sampling_configuration", 1) {
        /// The shortest interval.
        minimum: u64,
        /// The longest interval.
        maximum: u64,
        /// 1: the interval is a power of two.
        flags: u64,
        /// Dense agent index.
        agent: u32,
        /// One of [`sampling`].
        method: u16,
        /// 1 instructions, 2 cycles, 3 time.
        unit: u16,
    }
    /// A thread began to use a ring; the first record of each of its lives.
    9 ThreadStart ("thread_start", 1) {
        /// When, ticks.
        time: u64,
        /// Kernel thread id.
        tid: u32,
        /// Life of the directory entry.
        generation: u32,
        /// First eight bytes of the thread's name.
        name_low: u64,
        /// Last eight bytes of the thread's name.
        name_high: u64,
    }
    /// A host API call, written when it returned.
    16 ApiCall ("api_call", 1) {
        /// Enter, ticks.
        start: u64,
        /// Exit, ticks.
        end: u64,
        /// Joins the call and the work that it caused; 0 unknown.
        correlation: u64,
        /// Correlation id of the enclosing call, 0 for none.
        parent: u64,
        /// Operation number in the domain of the header.
        op: u16,
        /// 1 when `status` is known.
        has_status: u16,
        /// Return code.
        status: i32,
        /// The argument people ask for: bytes, pointer or stream, by operation.
        arg: u64,
    }
    /// A kernel that ran on a queue.
    17 Dispatch ("dispatch", 2) {
        /// When the agent began, HSA ns.
        begin: u64,
        /// When the agent ended, HSA ns.
        end: u64,
        /// When the packet was submitted, ticks; 0 unknown.
        submit: u64,
        /// The API call that launched it; 0 unknown.
        correlation: u64,
        /// Address of the kernel descriptor; 0 when only a name is known.
        kernel_object: u64,
        /// Number of the dispatch in its process, from 1, in order of submission.
        dispatch_id: u64,
        /// Grid in work-items.
        grid_x: u32,
        /// Grid in work-items.
        grid_y: u32,
        /// Grid in work-items.
        grid_z: u32,
        /// Work-group in work-items.
        workgroup_x: u16,
        /// Work-group in work-items.
        workgroup_y: u16,
        /// Work-group in work-items.
        workgroup_z: u16,
        /// 1 interception, 2 HIP activity record, 3 rocprofiler-sdk.
        source: u16,
        /// Bytes of scratch a work-item.
        private_size: u32,
        /// Bytes of LDS a work-group, static and dynamic.
        group_size: u32,
        /// Dense agent index.
        agent: u32,
        /// Dense queue id, 0 unknown.
        queue: u32,
        /// Dense stream id plus one, 0 unknown.
        stream: u32,
        /// Thread that launched it, 0 unknown.
        tid: u32,
        /// String id of the name when there is no kernel object.
        name: u32,
    }
    /// A copy or fill made by the GPU.
    18 Copy ("copy", 2) {
        /// When the engine began, HSA ns.
        begin: u64,
        /// When the engine ended, HSA ns.
        end: u64,
        /// When it was submitted, ticks; 0 unknown.
        submit: u64,
        /// The API call that caused it; 0 unknown.
        correlation: u64,
        /// Bytes copied.
        bytes: u64,
        /// Destination address.
        dst: u64,
        /// Source address.
        src: u64,
        /// Dense agent index of the source.
        src_agent: u32,
        /// Dense agent index of the destination.
        dst_agent: u32,
        /// Dense stream id plus one, 0 unknown.
        stream: u32,
        /// Thread that asked for it, 0 unknown.
        tid: u32,
        /// One of [`direction`].
        direction: u16,
        /// One of [`engine`].
        engine: u16,
        /// 1 in place on its own signal, 2 HIP activity record.
        source: u16,
        /// Reserved.
        reserved: u16,
    }
    /// The value of a hardware counter.
    31 CounterValue ("counter_value", 1) {
        /// The dispatch, as its record numbers it; 0 for a whole agent.
        dispatch_id: u64,
        /// The value: the bits of an IEEE double.
        value: u64,
        /// When a whole agent was read, ticks; 0 for a dispatch.
        time: u64,
        /// Number of the counter in this process.
        counter: u32,
        /// Dense agent index.
        agent: u32,
        /// One of [`counter_source`].
        source: u16,
        /// The pass, from 1.
        pass: u16,
        /// Reserved.
        reserved: u32,
        /// The call that launched the dispatch; 0 unknown.
        correlation: u64,
    }
    /// Values of a counter's instances over one dispatch: up to four that follow each other. Instances are numbered through
    /// all dimensions of the counter, the first dimension fastest.
    33 CounterInstances ("counter_instances", 1) {
        /// The dispatch, as its record numbers it.
        dispatch_id: u64,
        /// Number of the counter in this process.
        counter: u32,
        /// The first of these instances, from 0.
        first: u16,
        /// How many there are here.
        count: u16,
        /// The value of the first: the bits of an IEEE double.
        value: u64,
        /// That of the next.
        second: u64,
        /// That of the one behind it.
        third: u64,
        /// That of the last.
        fourth: u64,
    }
    /// Where a wave was when its program counter was sampled.
    32 PcSample ("pc_sample", 2) {
        /// When, HSA ns.
        time: u64,
        /// Active lanes.
        exec_mask: u64,
        /// The dispatch, as its record numbers it.
        dispatch_id: u64,
        /// rocprofiler-sdk's id of the code object; 0 none.
        code_object: u64,
        /// Offset of the instruction in its code object; its address where there is none.
        offset: u64,
        /// rocprofiler-sdk's id of the launching call.
        correlation: u64,
        /// Work-group in the grid.
        workgroup_x: u32,
        /// Work-group in the grid.
        workgroup_y: u32,
        /// Work-group in the grid.
        workgroup_z: u32,
        /// Waves on the compute unit; 0 for a host trap.
        wave_count: u32,
        /// What the arbiter did, as `rocprofiler_pc_sampling_snapshot_v0_t`: bits 0 to 3 are why nothing was issued.
        snapshot: u32,
        /// Wave in its work-group.
        wave: u16,
        /// 1: the wave issued the instruction.
        issued: u16,
        /// Type of the instruction, as `rocprofiler_pc_sampling_instruction_type_t`.
        instruction: u16,
        /// One of [`sampling`].
        method: u16,
        /// Where the wave ran, as the bits of `rocprofiler_pc_sampling_hw_id_v0_t`: two words, since fields follow each
        /// other without padding; 0 in older recordings.
        hardware_low: u32,
        /// The upper bits.
        hardware_high: u32,
    }
    /// Recording was switched on or off.
    21 Switch ("switch", 1) {
        /// When, ticks.
        time: u64,
        /// 1 on, 0 off.
        on: u32,
        /// Who: 1 viewer, 2 roctx or HIP profiler call.
        by: u32,
    }
    /// Memory of an agent was allocated, mapped or freed through HSA, written when the call returned.
    22 Allocation ("allocation", 2) {
        /// Enter, ticks.
        start: u64,
        /// Exit, ticks.
        end: u64,
        /// The API call that it is part of; 0 unknown.
        correlation: u64,
        /// Where; the handle for memory without an address (operations of virtual memory).
        address: u64,
        /// Bytes, also of what is freed; 0 unknown.
        bytes: u64,
        /// Bytes of the agent that the process holds after it.
        total: u64,
        /// Dense agent index.
        agent: u32,
        /// One of [`memory`].
        operation: u16,
        /// Reserved.
        reserved: u16,
    }
    /// The run-time gave scratch memory to a queue or took it back. Source: the tools table of HSA 6.1 and later.
    23 Scratch ("scratch", 2) {
        /// When it began, ticks.
        start: u64,
        /// When it ended, ticks.
        end: u64,
        /// The API call in which it happened; 0 unknown.
        correlation: u64,
        /// Bytes; 0 where the run-time does not say.
        bytes: u64,
        /// Index of the packet that asked for it.
        packet: u64,
        /// Dense agent index.
        agent: u32,
        /// Dense queue id, 0 unknown.
        queue: u32,
        /// One of [`scratch`].
        operation: u16,
        /// The run-time's flags: 1 for one use, 2 from the alternative pool.
        flags: u16,
        /// Places for waves in it.
        slots: u32,
    }
    /// Memory that a call copied or filled before it returned. By whom, and when within the call, nobody tells: by the
    /// processor, or by an engine that the run-time waited for. Source: `hsa_memory_copy`, `hsa_amd_memory_fill`.
    24 CallCopy ("call_copy", 2) {
        /// Enter, ticks.
        start: u64,
        /// Exit, ticks.
        end: u64,
        /// The API call that it is part of; 0 unknown.
        correlation: u64,
        /// Bytes.
        bytes: u64,
        /// Destination address.
        dst: u64,
        /// Source address; what is filled in for a fill, 32 bits.
        src: u64,
        /// Dense agent index of the source.
        src_agent: u32,
        /// Dense agent index of the destination.
        dst_agent: u32,
        /// One of [`direction`].
        direction: u16,
        /// Reserved.
        reserved: u16,
    }
}

/// Operations of an [`Allocation`]: the first four as rocprofv3 numbers them.
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

/// Calls of ROC-TX that are neither marks nor ranges: operations of an [`ApiCall`] of [`Domain::MARKER`].
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

/// Operations of a [`Scratch`], as rocprofv3 numbers them.
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

/// Codes of [`Status`].
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
}

/// A ROC-TX mark or range with its text: 40 bytes of numbers, then the text, 8 bytes in the head slot and 48 in each
/// continuation slot. A longer text is a string fact named by `text_id`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marker {
    /// Push, start or mark, ticks.
    pub start: u64,
    /// Pop or stop, ticks; equal to `start` for a mark.
    pub end: u64,
    /// Correlation id of the call that opened it.
    pub correlation: u64,
    /// Id of a start/stop range; 0 for push/pop and marks.
    pub range_id: u64,
    /// String id of a text longer than [`Marker::INLINE_TEXT`], else 0.
    pub text_id: u32,
    /// Nesting level of a push/pop range, from 0.
    pub level: u16,
    /// The text, when short.
    pub text: Vec<u8>,
}

impl Marker {
    /// Kind number of a mark.
    pub const MARK: u8 = 19;
    /// Kind number of a range.
    pub const RANGE: u8 = 20;
    /// The longest text that travels in the record itself, bytes.
    pub const INLINE_TEXT: usize = 8 + 2 * PAYLOAD_BYTES;
    /// The most slots that a marker takes.
    pub const MAX_SLOTS: usize = 3;

    /// Slots that a marker with `text` bytes inline takes.
    pub const fn slots(text: usize) -> usize {
        if text <= 8 {
            1
        } else {
            1 + (text - 8).div_ceil(PAYLOAD_BYTES)
        }
    }

    /// Payload words of a marker, without allocation; `text` is cut at [`Marker::INLINE_TEXT`].
    pub fn payload(
        times: [u64; 2],
        correlation: u64,
        range_id: u64,
        text_id: u32,
        level: u16,
        text: &[u8],
    ) -> [[u64; PAYLOAD_WORDS]; Self::MAX_SLOTS] {
        let mut bytes = [0u8; Self::MAX_SLOTS * PAYLOAD_BYTES];
        let length = text.len().min(Self::INLINE_TEXT);
        let numbers = [times[0], times[1], correlation, range_id];
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *to = word.to_le_bytes();
        }
        bytes[32..36].copy_from_slice(&text_id.to_le_bytes());
        bytes[36..38].copy_from_slice(&(length as u16).to_le_bytes());
        bytes[38..40].copy_from_slice(&level.to_le_bytes());
        for (to, from) in bytes[40..].iter_mut().zip(text.iter().take(length)) {
            *to = *from;
        }
        let mut out = [[0u64; PAYLOAD_WORDS]; Self::MAX_SLOTS];
        for (word, raw) in out.as_flattened_mut().iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*raw);
        }
        out
    }

    /// Decodes a marker from its slots. Total.
    pub fn decode(slots: &[Slot]) -> Self {
        let mut bytes = Vec::with_capacity(Self::MAX_SLOTS * PAYLOAD_BYTES);
        for slot in slots.iter().take(Self::MAX_SLOTS) {
            for word in &slot[1..7] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        bytes.resize(bytes.len().max(PAYLOAD_BYTES), 0);
        let word = |at: usize| {
            let mut raw = [0u8; 8];
            raw.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(raw)
        };
        let tail = word(32);
        let length = ((tail >> 32) as u16 as usize).min(bytes.len() - 40);
        Self {
            start: word(0),
            end: word(8),
            correlation: word(16),
            range_id: word(24),
            text_id: tail as u32,
            level: (tail >> 48) as u16,
            text: bytes[40..40 + length].to_vec(),
        }
    }
}

/// Position of an operation in the per-thread table of totals, or none when the table has no room for it.
pub const fn totals_index(domain: Domain, op: u16) -> Option<usize> {
    let (base, room) = match domain {
        Domain::HIP => (0, 512),
        Domain::HIP_COMPILER => (512, 32),
        Domain::HSA_CORE => (544, 160),
        Domain::HSA_AMD => (704, 128),
        Domain::HSA_IMAGE => (832, 32),
        Domain::HSA_FINALIZER => (864, 16),
        Domain::MARKER => (880, 32),
        Domain::RCCL => (912, 64),
        Domain::ROCDECODE => (976, 24),
        Domain::ROCJPEG => (1000, 24),
        _ => return None,
    };
    if (op as usize) < room {
        Some(base + op as usize)
    } else {
        None
    }
}

/// Entries of the per-thread table of totals.
pub const TOTALS: usize = 1024;

/// The domain and operation of a position in the table of totals.
pub const fn totals_operation(index: usize) -> Option<(Domain, u16)> {
    let (domain, base) = match index {
        0..512 => (Domain::HIP, 0),
        512..544 => (Domain::HIP_COMPILER, 512),
        544..704 => (Domain::HSA_CORE, 544),
        704..832 => (Domain::HSA_AMD, 704),
        832..864 => (Domain::HSA_IMAGE, 832),
        864..880 => (Domain::HSA_FINALIZER, 864),
        880..912 => (Domain::MARKER, 880),
        912..976 => (Domain::RCCL, 912),
        976..1000 => (Domain::ROCDECODE, 976),
        1000..1024 => (Domain::ROCJPEG, 1000),
        _ => return None,
    };
    Some((domain, (index - base) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots_of<const S: usize>(head: Head, payload: [[u64; 6]; S]) -> Vec<Slot> {
        payload
            .iter()
            .enumerate()
            .map(|(i, words)| {
                let mut slot = [0; 8];
                slot[0] = if i == 0 {
                    head.0
                } else {
                    Head::new(CONTINUATION, 0, i as u8, 0).0
                };
                slot[1..7].copy_from_slice(words);
                slot
            })
            .collect()
    }

    #[test]
    fn a_dispatch_survives_encoding() {
        let dispatch = Dispatch {
            begin: 1,
            end: 2,
            grid_z: 3,
            workgroup_z: 4,
            tid: 5,
            name: 6,
            ..Dispatch::default()
        };
        let slots = slots_of(Dispatch::head(0, Domain::NONE), dispatch.payload());
        assert_eq!(slots.len(), 2);
        assert_eq!(decode(&slots), Body::Dispatch(dispatch));
    }

    #[test]
    fn a_marker_carries_its_text_over_continuation_slots() {
        let text: Vec<u8> = (0..100u8).collect();
        let payload = Marker::payload([7, 9], 3, 4, 0, 2, &text);
        let used = Marker::slots(100);
        assert_eq!(used, 3);
        let slots = slots_of(Head::new(Marker::RANGE, 0, used as u8, 7), payload);
        let Body::Range(marker) = decode(&slots) else {
            panic!("not a range")
        };
        assert_eq!((marker.start, marker.end, marker.level, &marker.text), (7, 9, 2, &text));
    }

    #[test]
    fn decoding_hostile_slots_is_total() {
        for kind in 0..=255u8 {
            let slot = [
                u64::MAX << 8 | u64::from(kind),
                u64::MAX,
                u64::MAX,
                u64::MAX,
                u64::MAX,
                u64::MAX,
                u64::MAX,
                0,
            ];
            for used in 0..=8 {
                let _ = decode(&vec![slot; used]);
            }
        }
    }

    #[test]
    fn every_totals_index_names_its_operation() {
        for index in 0..TOTALS {
            if let Some((domain, op)) = totals_operation(index) {
                assert_eq!(totals_index(domain, op), Some(index));
            }
        }
    }
}
