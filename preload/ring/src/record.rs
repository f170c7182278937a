//! Records of the ring: one table, from which encoder, decoder, names and size checks are generated.
//!
//! A record is one head slot and up to [`MAX_SLOTS`] - 1 continuation slots of 64 bytes. Word 0 of a slot is its
//! header, word 7 its sequence (slot index + 1), words 1 to 6 carry payload: 48 bytes per slot, little endian, fields
//! in table order without padding. Numbers are never reused; a changed row is a new row.
//!
//! Times: *ticks* are raw host counter values (see [`crate::layout::clock`]), *HSA ns* are nanoseconds of the HSA
//! system domain (`hsa_amd_profiling_convert_tick_to_system_domain`, HSA 5.2 to 7.2: the driver's CLOCK_BOOTTIME
//! counter).

mod head;
mod marker;
pub mod mpi;
mod totals;
mod value;

pub use head::{Domain, Head, flag};
pub use marker::Marker;
pub use mpi::MpiCall;
pub use totals::{TOTALS, totals_index, totals_operation};
pub use value::{
    code, communicator, counter_flag, counter_source, direction, engine, marker_call, memory, sampling, scratch, status,
};

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
/// Maximum number of slots per record.
#[cfg(not(loom))]
pub const MAX_SLOTS: usize = 8;
/// Maximum number of slots per record; small, because the rings of the proofs are small.
#[cfg(loom)]
pub const MAX_SLOTS: usize = 2;

/// Greatest number of a site: a place in the program that launches, copies or allocates. Numbers count from 1 in each
/// process.
pub const MAX_SITE: u16 = 0x7fff;

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

                // Fixed-size arrays, so that the compiler keeps the bytes in registers.
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
            /// A ROC-TX mark: a range of zero length.
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

impl ApiCall {
    /// First bit of the stream in the argument of a call that records an event or waits for one.
    pub const STREAM_BIT: u32 = 48;

    /// Argument of such a call: the event's handle, and the stream's number plus one. A number without room is 0, unknown.
    #[inline]
    pub const fn event_argument(event: u64, stream: u32) -> u64 {
        let stream = if stream >> (u64::BITS - Self::STREAM_BIT) == 0 {
            stream
        } else {
            0
        };
        event & ((1 << Self::STREAM_BIT) - 1) | (stream as u64) << Self::STREAM_BIT
    }

    /// Its field `has_status`.
    #[inline]
    pub const fn status_word(has_status: bool, site: u16) -> u16 {
        has_status as u16 | site << 1
    }

    /// Whether `status` is known.
    #[inline]
    pub const fn knows_status(&self) -> bool {
        self.has_status & 1 != 0
    }

    /// Number of the call's site in its process, 0 unknown.
    #[inline]
    pub const fn site(&self) -> u16 {
        self.has_status >> 1
    }

    /// Event and stream in the argument of such a call.
    pub const fn event(&self) -> (u64, u32) {
        let event = self.arg & ((1 << Self::STREAM_BIT) - 1);
        (event, (self.arg >> Self::STREAM_BIT) as u32)
    }
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
    /// A fact: what a code object says of a kernel, with a hash of its code. Source: its notes (LLVM's AMDGPUUsage, code
    /// object V3 to V6). Numbers of 32 bits are all ones where the notes do not say them.
    41 KernelCode ("kernel_code", 2) {
        /// Code object number.
        code_object: u64,
        /// Hash of the code with what it calls, without relocated and pc-relative words; 0 unknown.
        hash: u64,
        /// Bytes of that code; 0 unknown.
        code_bytes: u64,
        /// String id of the mangled name, without `.kd`.
        name: u32,
        /// VGPRs of a work-item, with AGPRs where one file has both.
        vgpr: u32,
        /// AGPRs of a work-item.
        agpr: u32,
        /// SGPRs of a wave.
        sgpr: u32,
        /// Spilled VGPRs.
        vgpr_spills: u32,
        /// Spilled SGPRs.
        sgpr_spills: u32,
        /// Scratch of a work-item, bytes.
        private_size: u32,
        /// Static LDS of a work-group, bytes.
        group_size: u32,
        /// Maximum work-items of a work-group.
        max_workgroup: u32,
        /// Lanes of a wave.
        wave_size: u32,
        /// Bits of [`code`].
        flags: u32,
        /// Reserved.
        reserved: u32,
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
    /// A fact: a decision of the collector and its reason.
    7 Status ("status", 1) {
        /// When, ticks.
        time: u64,
        /// A number; its meaning depends on `code`.
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
    /// A fact: a hardware counter that is available or collected. Source: `rocprofiler_query_counter_info` (SDK 0.4 to
    /// 1.x).
    14 Counter ("counter", 1) {
        /// The library's own id.
        handle: u64,
        /// Instances over all dimensions; 0 unknown.
        instances: u64,
        /// Number in this process, from 0; values refer to it.
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
        /// Pass that collects it, from 1; 0 if it is only listed.
        pass: u16,
    }
    /// A method of sampling program counters that an agent offers.
    15 SamplingConfiguration ("sampling_configuration", 1) {
        /// Minimum interval, in `unit`.
        minimum: u64,
        /// Maximum interval, in `unit`.
        maximum: u64,
        /// Bit 0: the interval must be a power of two.
        flags: u64,
        /// Dense agent index.
        agent: u32,
        /// One of [`sampling`].
        method: u16,
        /// 1 instructions, 2 cycles, 3 time.
        unit: u16,
    }
    /// A fact: a communicator of RCCL or MPI was created, released, or first seen.
    34 Communicator ("communicator", 1) {
        /// Identity: the same in all processes of the communicator. 0 unknown, because its creation was not seen.
        identity: u64,
        /// `ncclComm_t` or `MPI_Comm`.
        handle: u64,
        /// When, ticks.
        time: u64,
        /// Correlation id of the call; 0 unknown.
        correlation: u64,
        /// Number in this process, from 1; of MPI's, with [`mpi::OF_MPI`].
        number: u32,
        /// Rank in the communicator; all ones if unknown.
        rank: u32,
        /// Number of ranks; 0 unknown.
        size: u32,
        /// One of [`communicator`].
        state: u16,
        /// 1 if another job's communicator may have the same identity.
        is_ambiguous: u16,
    }
    /// A thread starts to use a ring: the first record of each of its lives.
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
        /// Correlation id that joins the call with the work it caused; 0 unknown.
        correlation: u64,
        /// Correlation id of the enclosing call, 0 for none.
        parent: u64,
        /// Operation number in the domain of the header.
        op: u16,
        /// Bit 0: `status` is known. Bits 1 to 15: the call's site, see [`ApiCall::site`]; 0 in older recordings.
        has_status: u16,
        /// Return code.
        status: i32,
        /// The most relevant argument, by operation: bytes, pointer or stream; see also [`ApiCall::event`].
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
        /// Ordinal of the dispatch in its process, from 1, in submission order.
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
        /// String id of the name if there is no kernel object; with [`flag::SITE`] the site of the launch. See
        /// [`Dispatch::name_id`] and [`Dispatch::site`].
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
        /// Thread that requested it, 0 unknown.
        tid: u32,
        /// One of [`direction`].
        direction: u16,
        /// One of [`engine`].
        engine: u16,
        /// 1 in place on its own signal, 2 HIP activity record.
        source: u16,
        /// Number of the site that requested it in its process, 0 unknown.
        site: u16,
    }
    /// The value of a hardware counter.
    31 CounterValue ("counter_value", 1) {
        /// The dispatch, as its record numbers it; 0 for a whole agent.
        dispatch_id: u64,
        /// The value: the bits of an IEEE double.
        value: u64,
        /// Time of reading a whole agent, ticks; 0 for a dispatch.
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
    /// Values of up to four consecutive instances of a counter for one dispatch. Instances are numbered through all
    /// dimensions of the counter, the first dimension fastest.
    33 CounterInstances ("counter_instances", 1) {
        /// The dispatch, as its record numbers it.
        dispatch_id: u64,
        /// Number of the counter in this process.
        counter: u32,
        /// Index of the first instance here, from 0.
        first: u16,
        /// Number of instances here.
        count: u16,
        /// Value of the first instance: the bits of an IEEE double.
        value: u64,
        /// Value of the second.
        second: u64,
        /// Value of the third.
        third: u64,
        /// Value of the fourth.
        fourth: u64,
    }
    /// Position of a wave when its program counter was sampled.
    32 PcSample ("pc_sample", 2) {
        /// When, HSA ns.
        time: u64,
        /// Active lanes.
        exec_mask: u64,
        /// The dispatch, as its record numbers it.
        dispatch_id: u64,
        /// rocprofiler-sdk's id of the code object; 0 none.
        code_object: u64,
        /// Offset of the instruction in its code object; its address if there is no code object.
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
        /// State of the arbiter, as `rocprofiler_pc_sampling_snapshot_v0_t`: bits 0 to 3 are the reason why nothing was
        /// issued.
        snapshot: u32,
        /// Wave in its work-group.
        wave: u16,
        /// 1: the wave issued the instruction.
        issued: u16,
        /// Type of the instruction, as `rocprofiler_pc_sampling_instruction_type_t`.
        instruction: u16,
        /// One of [`sampling`].
        method: u16,
        /// Where the wave ran: the bits of `rocprofiler_pc_sampling_hw_id_v0_t`. Two words, because its fields have no
        /// padding; 0 in older recordings.
        hardware_low: u32,
        /// The upper word.
        hardware_high: u32,
    }
    /// Recording was switched on or off.
    21 Switch ("switch", 1) {
        /// When, ticks.
        time: u64,
        /// 1 on, 0 off.
        on: u32,
        /// Cause: 1 viewer, 2 ROC-TX or HIP profiler call.
        by: u32,
    }
    /// Memory of an agent was allocated, mapped or freed through HSA; written at the call's return.
    22 Allocation ("allocation", 2) {
        /// Enter, ticks.
        start: u64,
        /// Exit, ticks.
        end: u64,
        /// The API call that it is part of; 0 unknown.
        correlation: u64,
        /// Address; the handle for memory without an address (virtual memory operations).
        address: u64,
        /// Bytes, also for a free; 0 unknown.
        bytes: u64,
        /// Bytes of the agent that the process holds after the call.
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
        /// Begin, ticks.
        start: u64,
        /// End, ticks.
        end: u64,
        /// The API call in which it happened; 0 unknown.
        correlation: u64,
        /// Bytes; 0 if the run-time does not report them.
        bytes: u64,
        /// Index of the packet that needed it.
        packet: u64,
        /// Dense agent index.
        agent: u32,
        /// Dense queue id, 0 unknown.
        queue: u32,
        /// One of [`scratch`].
        operation: u16,
        /// The run-time's flags: 1 for one use, 2 from the alternative pool.
        flags: u16,
        /// Number of wave slots in it.
        slots: u32,
    }
    /// Memory that a call copied or filled before it returned. HSA does not report by whom or when: the CPU did it, or
    /// an engine that the call waited for. Source: `hsa_memory_copy`, `hsa_amd_memory_fill`.
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
        /// Source address; for a fill, its 32-bit value.
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
    /// A requested copy or fill, written before the call begins. It has no time and no engine: the kernels or engines
    /// that do the work have their own records with the same correlation id. Source: the arguments of HIP functions.
    25 Transfer ("transfer", 1) {
        /// Correlation id of the call.
        correlation: u64,
        /// Bytes of the whole call.
        bytes: u64,
        /// Destination address; 0 if the call names a symbol.
        dst: u64,
        /// Source address; 0 for a fill, or if the call names a symbol.
        src: u64,
        /// Dense index of the agent that owns the source; all ones if unknown.
        src_agent: u32,
        /// Dense index of the agent that owns the destination; all ones if unknown.
        dst_agent: u32,
        /// One of [`direction`], from the owners of both ends, else from the call's name or kind.
        direction: u16,
        /// Reserved.
        reserved: u16,
        /// Reserved.
        reserved_too: u32,
    }
    /// A call of RCCL that communicates, or the end of a group of them, written before the call begins; or a collective of
    /// MPI, written before it begins or, for the first one of a communicator, when it has ended.
    35 Communication ("communication", 1) {
        /// Enter of the call, ticks.
        start: u64,
        /// Correlation id of the call.
        correlation: u64,
        /// Number of elements; 0 if the call has several counts.
        count: u64,
        /// Number of the communicator in this process; 0 for the end of a group.
        communicator: u32,
        /// Number in the communicator, from 1: of its collectives, or of what is sent to or received from this peer.
        /// 0 unknown.
        sequence: u32,
        /// Root or peer, -1 none.
        peer: i32,
        /// Dense stream id plus one, 0 unknown.
        stream: u32,
        /// The group of the thread that contains the call, 0 none.
        group: u32,
        /// RCCL's number of the operation, MPI's from [`mpi::FIRST_COLLECTIVE`], or [`communicator::WITHDRAWN`] for a call that failed.
        op: u16,
        /// `ncclDataType_t`, 255 unknown.
        datatype: u8,
        /// `ncclRedOp_t`; 255 for none or one of the program's.
        reduction: u8,
    }
}

impl Dispatch {
    /// Word of the first slot that holds `kernel_object`.
    pub const KERNEL_OBJECT: usize = 5;

    /// Its field `name` for a launch from `site`. Without a kernel object the number would be taken for a name.
    #[inline]
    pub const fn name_of_site(kernel_object: u64, site: u16) -> u32 {
        if kernel_object == 0 { 0 } else { site as u32 }
    }

    /// [`flag::SITE`] if this record has a site, else 0. Where records are written, `name` holds a site exactly if there
    /// is a kernel object.
    #[inline]
    pub const fn site_flag(&self) -> u8 {
        if self.kernel_object != 0 && self.name != 0 {
            flag::SITE
        } else {
            0
        }
    }

    /// Number of the launch's site in its process, 0 unknown. `flags` are those of the record's header.
    #[inline]
    pub const fn site(&self, flags: u8) -> u16 {
        if flags & flag::SITE != 0 && self.name <= MAX_SITE as u32 {
            self.name as u16
        } else {
            0
        }
    }

    /// String id of the kernel's name, 0 if it has none. `flags` are those of the record's header.
    #[inline]
    pub const fn name_id(&self, flags: u8) -> u32 {
        if flags & flag::SITE == 0 { self.name } else { 0 }
    }
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
    fn dispatch_survives_encoding() {
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
    fn status_and_site_share_a_field() {
        let call = |has_status, site| ApiCall {
            has_status: ApiCall::status_word(has_status, site),
            ..ApiCall::default()
        };
        for site in [0, 1, MAX_SITE] {
            for has_status in [false, true] {
                let call = call(has_status, site);
                assert_eq!((call.knows_status(), call.site()), (has_status, site));
            }
        }
        assert_eq!(call(true, 0).has_status, 1, "as in older recordings");
    }

    #[test]
    fn a_site_is_never_taken_for_a_name() {
        let dispatch = |kernel_object, name| Dispatch {
            kernel_object,
            name,
            ..Dispatch::default()
        };
        let read = |dispatch: Dispatch, flags| (dispatch.site(flags), dispatch.name_id(flags));
        let (launched, named) = (dispatch(64, 9), dispatch(0, 9));
        assert_eq!(read(launched, launched.site_flag()), (9, 0));
        assert_eq!(read(named, named.site_flag()), (0, 9));
        assert_eq!(dispatch(64, 0).site_flag(), 0);
        assert_eq!(
            read(dispatch(64, 0x8000), flag::SITE),
            (0, 0),
            "no site has this number"
        );
    }

    #[test]
    fn first_slot_names_the_kernel() {
        let dispatch = Dispatch {
            kernel_object: 77,
            ..Dispatch::default()
        };
        let slots = slots_of(Dispatch::head(0, Domain::NONE), dispatch.payload());
        assert_eq!(slots[0][Dispatch::KERNEL_OBJECT], 77);
    }

    #[test]
    fn marker_text_continues_over_slots() {
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
}
