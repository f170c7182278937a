//! The run-time's function tables: the function of each entry, by release.
//!
//! Every table begins with its version; entry i is at offset 16 + 8i. The core table never changed. The AMD table is
//! *not* append-only: releases 5.5 and 5.6 inserted entries, so its layout follows from the size that it states.

#![expect(unsafe_code, reason = "reads and writes the run-time's tables")]

use crate::abi::{
    Agent, CopyOperation, Dim3, Executable, Packet, Pitched, PointerInfo, Pool, Queue, QueueDescriptor, ScratchEvent,
    SignalHandle, Span, Status, Symbol, VmemHandle,
};
use crate::function::{self, AMD};
use std::ffi::c_void;

/// `ApiTableVersion`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// Major.
    pub major: u32,
    /// Bytes of the table.
    pub size: u32,
    /// Step.
    pub step: u32,
    /// Reserved.
    pub reserved: u32,
}

/// `HsaApiTable`, the part that all releases have.
#[repr(C)]
#[derive(Debug)]
pub struct Root {
    /// Version.
    pub version: Version,
    /// Core functions.
    pub core: *mut c_void,
    /// AMD extension functions.
    pub amd: *mut c_void,
    /// Finalizer functions or null.
    pub finalizer: *mut c_void,
    /// Image functions or null.
    pub image: *mut c_void,
}

impl Root {
    /// The table of tool events; `None` before 6.1.
    ///
    /// # Safety
    /// The root is the run-time's and has the size it states.
    pub unsafe fn tools(&self) -> Option<*mut c_void> {
        const END: u32 = size_of::<Root>() as u32 + 8;
        if self.version.size < END {
            return None;
        }
        // SAFETY: the stated size extends beyond the common part.
        let place = unsafe { std::ptr::from_ref(self).add(1) }.cast::<*mut c_void>();
        // SAFETY: as above.
        Some(unsafe { place.read() })
    }
}

/// A function of the table of tool events.
pub type ToolEvent = unsafe extern "C" fn(*const ScratchEvent) -> Status;

/// Entries of the table of tool events: begin and end of each, in the order of `roctop_ring::record::scratch`.
pub mod tools_entry {
    /// Number of entries: begin and end of allocation, free and reclaim of scratch memory.
    pub const COUNT: usize = 6;
}

const HEAD: usize = 16;

/// One of the run-time's tables.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    base: *mut c_void,
}

impl Table {
    /// The table at `base`; `None` if null.
    pub fn new(base: *mut c_void) -> Option<Self> {
        (!base.is_null()).then_some(Self { base })
    }

    /// Size of the table in bytes, as it states.
    ///
    /// # Safety
    /// The table is the run-time's and in memory.
    pub unsafe fn size(self) -> usize {
        // SAFETY: by the contract; every table begins with its version.
        unsafe { (*self.base.cast::<Version>()).size as usize }
    }

    /// The table's step as it states.
    ///
    /// # Safety
    /// The table is the run-time's and in memory.
    pub unsafe fn step(self) -> u32 {
        // SAFETY: by the contract; every table begins with its version.
        unsafe { (*self.base.cast::<Version>()).step }
    }

    /// The address of an entry; `None` if the table is too short.
    ///
    /// # Safety
    /// The table is the run-time's and in memory.
    pub unsafe fn entry(self, index: usize) -> Option<*mut *mut c_void> {
        let offset = HEAD + 8 * index;
        // SAFETY: by the contract.
        if offset + 8 > unsafe { self.size() } {
            return None;
        }
        // SAFETY: inside the table (tested above).
        Some(unsafe { self.base.byte_add(offset) }.cast())
    }

    /// Number of entries.
    ///
    /// # Safety
    /// The table is the run-time's and in memory.
    pub unsafe fn entries(self) -> usize {
        // SAFETY: by the contract.
        unsafe { self.size() }.saturating_sub(HEAD) / 8
    }

    /// The function of an entry; `None` if it is null or the table is too short.
    ///
    /// # Safety
    /// The table is the run-time's and in memory.
    pub unsafe fn function(self, index: usize) -> Option<*mut c_void> {
        // SAFETY: by the contract.
        let place = unsafe { self.entry(index) }?;
        // SAFETY: `entry` gave a valid place.
        let function = unsafe { place.read() };
        (!function.is_null()).then_some(function)
    }

    /// As [`Self::function`], as function type `F`, which the receiving field states once.
    ///
    /// # Safety
    /// The table is the run-time's and in memory; `F` is the type of the function in this entry in every release.
    pub unsafe fn typed<F: Copy>(self, index: usize) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: by the contract.
        let function = unsafe { self.function(index) }?;
        // SAFETY: not null, of the size of a pointer (asserted above), and of this type by the contract.
        Some(unsafe { std::mem::transmute_copy(&function) })
    }

    /// Replaces the function of an entry.
    ///
    /// # Safety
    /// As above; `function` has the entry's type and is never unloaded.
    pub unsafe fn patch(self, index: usize, function: *mut c_void) {
        // SAFETY: by the contract.
        if let Some(place) = unsafe { self.entry(index) } {
            // SAFETY: `entry` returned a valid address; callers see an aligned pointer store whole.
            unsafe { place.write_volatile(function) };
        }
    }
}

macro_rules! functions {
    ($(#[$doc:meta])* $Name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Name {
            $($(#[$fdoc])* pub $field: $ty,)*
        }
    };
}

/// Receives an agent.
pub type AgentCallback = unsafe extern "C" fn(Agent, *mut c_void) -> Status;
/// Receives a memory pool.
pub type PoolCallback = unsafe extern "C" fn(Pool, *mut c_void) -> Status;
/// Receives a symbol.
pub type SymbolCallback = unsafe extern "C" fn(Executable, Agent, Symbol, *mut c_void) -> Status;
/// Receives an error of a queue.
pub type QueueCallback = Option<unsafe extern "C" fn(Status, *mut Queue, *mut c_void)>;
/// Takes the packets that go to the hardware.
pub type Writer = unsafe extern "C" fn(*const Packet, u64);
/// Receives the packets of an intercepted queue.
pub type Handler = unsafe extern "C" fn(*const Packet, u64, u64, *mut c_void, Writer);
/// `hsa_amd_queue_intercept_register`.
pub type InterceptRegister = unsafe extern "C" fn(*mut Queue, Handler, *mut c_void) -> Status;
/// Queries an attribute of an object with a handle.
pub type GetInfo = unsafe extern "C" fn(u64, i32, *mut c_void) -> Status;
/// Creates a queue.
pub type QueueCreate =
    unsafe extern "C" fn(Agent, u32, u32, QueueCallback, *mut c_void, u32, u32, *mut *mut Queue) -> Status;
/// `hsa_amd_queue_create`: an agent, descriptors, and their number.
pub type QueueCreateDescribed = unsafe extern "C" fn(Agent, *mut QueueDescriptor, u32) -> Status;
/// `hsa_amd_counted_queue_acquire`: agent, type, priority, callback and its data, flags, queue.
pub type CountedAcquire =
    unsafe extern "C" fn(Agent, u32, u32, QueueCallback, *mut c_void, u64, *mut *mut Queue) -> Status;
/// `hsa_amd_counted_queue_release`, `hsa_queue_destroy`.
pub type QueueEnd = unsafe extern "C" fn(*mut Queue) -> Status;
/// `hsa_amd_memory_async_batch_copy`: operations, signals to wait for.
pub type BatchCopy = unsafe extern "C" fn(*const CopyOperation, u32, u32, *const SignalHandle) -> Status;
/// Copies memory and sets a signal.
pub type AsyncCopy = unsafe extern "C" fn(
    *mut c_void,
    Agent,
    *const c_void,
    Agent,
    usize,
    u32,
    *const SignalHandle,
    SignalHandle,
) -> Status;
/// The same, on a given engine.
pub type AsyncCopyOnEngine = unsafe extern "C" fn(
    *mut c_void,
    Agent,
    *const c_void,
    Agent,
    usize,
    u32,
    *const SignalHandle,
    SignalHandle,
    u32,
    bool,
) -> Status;
/// Copies a box of bytes, rows and layers.
pub type AsyncCopyRect = unsafe extern "C" fn(
    *const Pitched,
    *const Dim3,
    *const Pitched,
    *const Dim3,
    *const Dim3,
    Agent,
    i32,
    u32,
    *const SignalHandle,
    SignalHandle,
) -> Status;
/// `hsa_memory_allocate`; a region's handle is that of its pool.
pub type MemoryAllocate = unsafe extern "C" fn(Pool, usize, *mut *mut c_void) -> Status;
/// `hsa_memory_free`, `hsa_amd_memory_pool_free`.
pub type MemoryFree = unsafe extern "C" fn(*mut c_void) -> Status;
/// `hsa_memory_copy`.
pub type MemoryCopy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> Status;
/// `hsa_amd_memory_fill`: the last argument counts 32-bit words.
pub type MemoryFill = unsafe extern "C" fn(*mut c_void, u32, usize) -> Status;
/// `hsa_amd_pointer_info`; the arguments after the structure return a list of agents and may be null.
pub type PointerInfoOf =
    unsafe extern "C" fn(*const c_void, *mut PointerInfo, *mut c_void, *mut u32, *mut *mut Agent) -> Status;
/// `hsa_amd_memory_pool_allocate`.
pub type PoolAllocate = unsafe extern "C" fn(Pool, usize, u32, *mut *mut c_void) -> Status;
/// `hsa_amd_vmem_handle_create`.
pub type VmemCreate = unsafe extern "C" fn(Pool, usize, i32, u64, *mut VmemHandle) -> Status;
/// `hsa_amd_vmem_handle_release`.
pub type VmemRelease = unsafe extern "C" fn(VmemHandle) -> Status;
/// `hsa_amd_vmem_map`.
pub type VmemMap = unsafe extern "C" fn(*mut c_void, usize, usize, VmemHandle, u64) -> Status;
/// `hsa_amd_vmem_unmap`.
pub type VmemUnmap = unsafe extern "C" fn(*mut c_void, usize) -> Status;
/// `hsa_amd_vmem_retain_alloc_handle`.
pub type VmemRetain = unsafe extern "C" fn(*mut VmemHandle, *mut c_void) -> Status;

functions! {
    /// Core functions that the collector calls.
    Core {
        /// `hsa_init`.
        init: unsafe extern "C" fn() -> Status,
        /// `hsa_shut_down`.
        shut_down: unsafe extern "C" fn() -> Status,
        /// `hsa_system_get_info`.
        system_get_info: unsafe extern "C" fn(i32, *mut c_void) -> Status,
        /// `hsa_iterate_agents`.
        iterate_agents: unsafe extern "C" fn(AgentCallback, *mut c_void) -> Status,
        /// `hsa_agent_get_info`.
        agent_get_info: GetInfo,
        /// `hsa_queue_create`.
        queue_create: QueueCreate,
        /// `hsa_queue_destroy`.
        queue_destroy: unsafe extern "C" fn(*mut Queue) -> Status,
        /// `hsa_queue_load_read_index_relaxed`.
        load_read_index: unsafe extern "C" fn(*const Queue) -> u64,
        /// `hsa_queue_load_write_index_relaxed`.
        load_write_index: unsafe extern "C" fn(*const Queue) -> u64,
        /// `hsa_signal_destroy`.
        signal_destroy: unsafe extern "C" fn(SignalHandle) -> Status,
        /// `hsa_executable_freeze`.
        executable_freeze: unsafe extern "C" fn(Executable, *const std::ffi::c_char) -> Status,
        /// `hsa_executable_destroy`.
        executable_destroy: unsafe extern "C" fn(Executable) -> Status,
        /// `hsa_executable_symbol_get_info`.
        symbol_get_info: GetInfo,
        /// `hsa_executable_iterate_agent_symbols`.
        iterate_agent_symbols: unsafe extern "C" fn(Executable, Agent, SymbolCallback, *mut c_void) -> Status,
        /// `hsa_system_get_major_extension_table`.
        get_extension_table: unsafe extern "C" fn(u16, u16, usize, *mut c_void) -> Status,
    }
}

/// Entries of the core table.
pub mod core_entry {
    /// `hsa_init`.
    pub const INIT: usize = 0;
    /// `hsa_shut_down`.
    pub const SHUT_DOWN: usize = 1;
    /// `hsa_queue_create`.
    pub const QUEUE_CREATE: usize = 7;
    /// `hsa_queue_destroy`.
    pub const QUEUE_DESTROY: usize = 9;
    /// `hsa_queue_store_write_index_relaxed`.
    pub const STORE_WRITE_INDEX_RELAXED: usize = 15;
    /// `hsa_queue_store_write_index_screlease`.
    pub const STORE_WRITE_INDEX_SCRELEASE: usize = 16;
    /// `hsa_queue_cas_write_index_*`: scacq_screl, scacquire, relaxed, screlease.
    pub const CAS_WRITE_INDEX: [usize; 4] = [17, 18, 19, 20];
    /// `hsa_queue_add_write_index_*`: scacq_screl, scacquire, relaxed, screlease.
    pub const ADD_WRITE_INDEX: [usize; 4] = [21, 22, 23, 24];
    /// `hsa_memory_allocate`.
    pub const MEMORY_ALLOCATE: usize = 33;
    /// `hsa_memory_free`.
    pub const MEMORY_FREE: usize = 34;
    /// `hsa_memory_copy`.
    pub const MEMORY_COPY: usize = 35;
    /// `hsa_signal_destroy`.
    pub const SIGNAL_DESTROY: usize = 38;
    /// `hsa_signal_store_relaxed`, `…_screlease`, `hsa_signal_silent_store_relaxed`, `…_screlease`.
    pub const SIGNAL_STORE: [usize; 4] = [41, 42, 102, 103];
    /// `hsa_signal_exchange_*`, which return the old value.
    pub const SIGNAL_EXCHANGE: [usize; 4] = [57, 58, 59, 60];
    /// `hsa_signal_add_*` and `hsa_signal_subtract_*`.
    pub const SIGNAL_ADD: [usize; 8] = [61, 62, 63, 64, 65, 66, 67, 68];
    /// `hsa_signal_cas_*`.
    pub const SIGNAL_CAS: [usize; 4] = [69, 70, 71, 72];
    /// `hsa_executable_destroy`.
    pub const EXECUTABLE_DESTROY: usize = 84;
    /// `hsa_executable_freeze`.
    pub const EXECUTABLE_FREEZE: usize = 86;
}

impl Core {
    /// The functions in the table; `None` if one is missing.
    ///
    /// # Safety
    /// `table` is the run-time's core table.
    pub unsafe fn load(table: Table) -> Option<Self> {
        // SAFETY: by the contract; the entry of each number has its field's type in every release.
        unsafe {
            Some(Self {
                init: table.typed(core_entry::INIT)?,
                shut_down: table.typed(core_entry::SHUT_DOWN)?,
                system_get_info: table.typed(2)?,
                iterate_agents: table.typed(5)?,
                agent_get_info: table.typed(6)?,
                queue_create: table.typed(core_entry::QUEUE_CREATE)?,
                queue_destroy: table.typed(core_entry::QUEUE_DESTROY)?,
                load_read_index: table.typed(12)?,
                load_write_index: table.typed(14)?,
                signal_destroy: table.typed(core_entry::SIGNAL_DESTROY)?,
                executable_freeze: table.typed(core_entry::EXECUTABLE_FREEZE)?,
                executable_destroy: table.typed(core_entry::EXECUTABLE_DESTROY)?,
                symbol_get_info: table.typed(93)?,
                iterate_agent_symbols: table.typed(123)?,
                get_extension_table: table.typed(98)?,
            })
        }
    }
}

functions! {
    /// AMD extension functions that the collector calls.
    Amd {
        /// `hsa_amd_profiling_set_profiler_enabled`.
        set_profiler_enabled: unsafe extern "C" fn(*mut Queue, i32) -> Status,
        /// `hsa_amd_profiling_async_copy_enable`.
        async_copy_enable: unsafe extern "C" fn(bool) -> Status,
        /// `hsa_amd_profiling_get_async_copy_time`.
        get_async_copy_time: unsafe extern "C" fn(SignalHandle, *mut Span) -> Status,
        /// `hsa_amd_profiling_convert_tick_to_system_domain`.
        convert_tick: unsafe extern "C" fn(Agent, u64, *mut u64) -> Status,
        /// `hsa_amd_memory_pool_get_info`.
        pool_get_info: GetInfo,
        /// `hsa_amd_agent_iterate_memory_pools`.
        iterate_pools: unsafe extern "C" fn(Agent, PoolCallback, *mut c_void) -> Status,
        /// `hsa_amd_memory_pool_allocate`.
        pool_allocate: PoolAllocate,
        /// `hsa_amd_agents_allow_access`.
        allow_access: unsafe extern "C" fn(u32, *const Agent, *const u32, *const c_void) -> Status,
        /// `hsa_amd_signal_create`.
        signal_create:
            unsafe extern "C" fn(i64, u32, *const Agent, u64, *mut SignalHandle) -> Status,
        /// `hsa_amd_memory_async_copy`.
        async_copy: AsyncCopy,
        /// `hsa_amd_memory_async_copy_on_engine`; absent before 5.6.
        async_copy_on_engine: Option<AsyncCopyOnEngine>,
        /// `hsa_amd_memory_async_copy_rect`.
        async_copy_rect: AsyncCopyRect,
        /// `hsa_amd_queue_intercept_create`.
        intercept_create: QueueCreate,
        /// `hsa_amd_queue_intercept_register`.
        intercept_register: InterceptRegister,
        /// `hsa_amd_queue_set_priority`.
        set_priority: unsafe extern "C" fn(*mut Queue, u32) -> Status,
        /// `hsa_amd_queue_cu_set_mask`: bits, words.
        set_cu_mask: unsafe extern "C" fn(*const Queue, u32, *const u32) -> Status,
        /// `hsa_amd_counted_queue_acquire`; this and the following ones only in tables that are known to have them.
        counted_acquire: Option<CountedAcquire>,
        /// `hsa_amd_counted_queue_release`.
        counted_release: Option<QueueEnd>,
        /// `hsa_amd_memory_async_batch_copy`.
        batch_copy: Option<BatchCopy>,
        /// `hsa_amd_queue_create`.
        queue_create: Option<QueueCreateDescribed>,
    }
}

/// The layout of an AMD table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmdLayout {
    /// Bytes of the table.
    pub size: usize,
    /// Its step; 0 if unknown, and before 6.1.
    pub step: u32,
}

impl AmdLayout {
    /// The first table with copies on a given engine, inserted before all later entries.
    const WITH_ENGINES: usize = 456;
    /// The first table after that of 6.1, whose cooperative queues are still ordinary (observed: at 560, not at 592).
    const SHARED_COOPERATIVE: usize = 576;

    /// The first table with three functions that stream performance monitors, also inserted.
    const WITH_MONITORS: usize = 424;

    /// The layout of a table of `size` bytes and an unknown step.
    pub const fn of_size(size: usize) -> Self {
        Self { size, step: 0 }
    }

    /// The layout of a table.
    ///
    /// # Safety
    /// `table` is the run-time's AMD table and in memory.
    pub unsafe fn of(table: Table) -> Self {
        // SAFETY: by the contract.
        let (size, step) = unsafe { (table.size(), table.step()) };
        Self { size, step }
    }

    /// Entries of the table.
    pub const fn entries(self) -> usize {
        self.size.saturating_sub(HEAD) / size_of::<usize>()
    }

    /// The number of an entry after those of 7.2, as numbered in the main line, if the table is known to have it there.
    pub fn newer(self, newest: usize) -> Option<usize> {
        let is_there = newest < AMD.len() + function::newer_amd(self).len();
        is_there.then_some(newest)
    }

    /// This table's index of an entry, from its index since 5.6; `None` if the table does not have it.
    pub const fn entry(self, newest: usize) -> Option<usize> {
        match newest {
            _ if self.size >= Self::WITH_ENGINES => Some(newest),
            0..16 => Some(newest),
            16..18 => None,
            18..49 => Some(newest - 2),
            _ if self.size >= Self::WITH_MONITORS => Some(newest - 2),
            49..52 => None,
            _ => Some(newest - 5),
        }
    }

    /// Number of functions beyond the known ones: those of a release after 7.2.
    pub const fn unknown(self) -> usize {
        self.entries().saturating_sub(AMD.len())
    }

    /// From 6.0 on a proxy keeps all packets for which the hardware's queue has no space; before, one packet.
    pub const fn keeps_overflow(self) -> bool {
        self.size >= HEAD + 8 * (amd_entry::VMEM_HANDLE_CREATE + 1)
    }

    /// From this size on, an agent has one shared queue for cooperative launches, which a proxy would destroy.
    pub const fn shares_cooperative_queue(self) -> bool {
        self.size >= Self::SHARED_COOPERATIVE
    }
}

/// Entries of the AMD table as numbered since 5.6; see [`AmdLayout::entry`].
pub mod amd_entry {
    /// `hsa_amd_profiling_set_profiler_enabled`.
    pub const SET_PROFILER_ENABLED: usize = 2;
    /// `hsa_amd_profiling_async_copy_enable`.
    pub const ASYNC_COPY_ENABLE: usize = 3;
    /// `hsa_amd_profiling_get_async_copy_time`.
    pub const GET_ASYNC_COPY_TIME: usize = 5;
    /// `hsa_amd_memory_pool_allocate`.
    pub const POOL_ALLOCATE: usize = 13;
    /// `hsa_amd_memory_pool_free`.
    pub const POOL_FREE: usize = 14;
    /// `hsa_amd_memory_async_copy`.
    pub const ASYNC_COPY: usize = 15;
    /// `hsa_amd_memory_async_copy_on_engine`.
    pub const ASYNC_COPY_ON_ENGINE: usize = 16;
    /// `hsa_amd_memory_fill`.
    pub const MEMORY_FILL: usize = 24;
    /// `hsa_amd_pointer_info`.
    pub const POINTER_INFO: usize = 28;
    /// `hsa_amd_queue_intercept_create`.
    pub const INTERCEPT_CREATE: usize = 37;
    /// `hsa_amd_queue_intercept_register`.
    pub const INTERCEPT_REGISTER: usize = 38;
    /// `hsa_amd_memory_async_copy_rect`.
    pub const ASYNC_COPY_RECT: usize = 40;
    /// `hsa_amd_vmem_handle_create`; this and the following from 6.0 on.
    pub const VMEM_HANDLE_CREATE: usize = 57;
    /// `hsa_amd_vmem_handle_release`.
    pub const VMEM_HANDLE_RELEASE: usize = 58;
    /// `hsa_amd_vmem_map`.
    pub const VMEM_MAP: usize = 59;
    /// `hsa_amd_vmem_unmap`.
    pub const VMEM_UNMAP: usize = 60;
    /// `hsa_amd_vmem_retain_alloc_handle`.
    pub const VMEM_RETAIN: usize = 65;
    /// `hsa_amd_counted_queue_acquire`; this and the following ones by [`AmdLayout::newer`](super::AmdLayout::newer).
    pub const COUNTED_ACQUIRE: usize = 76;
    /// `hsa_amd_counted_queue_release`.
    pub const COUNTED_RELEASE: usize = 77;
    /// `hsa_amd_memory_async_batch_copy`.
    pub const BATCH_COPY: usize = 78;
    /// `hsa_amd_queue_create`.
    pub const QUEUE_CREATE: usize = 86;
}

impl Amd {
    /// The functions in the table; `None` if one is missing.
    ///
    /// # Safety
    /// `table` is the run-time's AMD table.
    pub unsafe fn load(table: Table) -> Option<Self> {
        // SAFETY: by the contract.
        let layout = unsafe { AmdLayout::of(table) };
        let on_engine = match layout.entry(amd_entry::ASYNC_COPY_ON_ENGINE) {
            // SAFETY: by the contract; this entry's type.
            Some(entry) => Some(unsafe { table.typed(entry) }?),
            None => None,
        };
        let newer = |entry| layout.newer(entry);
        // SAFETY: by the contract; the entry of each number has its field's type in every release.
        unsafe {
            Some(Self {
                set_profiler_enabled: table.typed(amd_entry::SET_PROFILER_ENABLED)?,
                async_copy_enable: table.typed(amd_entry::ASYNC_COPY_ENABLE)?,
                get_async_copy_time: table.typed(amd_entry::GET_ASYNC_COPY_TIME)?,
                convert_tick: table.typed(6)?,
                pool_get_info: table.typed(11)?,
                iterate_pools: table.typed(12)?,
                pool_allocate: table.typed(amd_entry::POOL_ALLOCATE)?,
                async_copy: table.typed(amd_entry::ASYNC_COPY)?,
                async_copy_on_engine: on_engine,
                allow_access: table.typed(layout.entry(19)?)?,
                signal_create: table.typed(layout.entry(33)?)?,
                async_copy_rect: table.typed(layout.entry(amd_entry::ASYNC_COPY_RECT)?)?,
                intercept_create: table.typed(layout.entry(amd_entry::INTERCEPT_CREATE)?)?,
                intercept_register: table.typed(layout.entry(amd_entry::INTERCEPT_REGISTER)?)?,
                set_priority: table.typed(layout.entry(39)?)?,
                set_cu_mask: table.typed(10)?,
                counted_acquire: newer(amd_entry::COUNTED_ACQUIRE).and_then(|entry| table.typed(entry)),
                counted_release: newer(amd_entry::COUNTED_RELEASE).and_then(|entry| table.typed(entry)),
                batch_copy: newer(amd_entry::BATCH_COPY).and_then(|entry| table.typed(entry)),
                queue_create: newer(amd_entry::QUEUE_CREATE).and_then(|entry| table.typed(entry)),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::amd;

    #[test]
    fn null_and_missing_entries_are_no_functions() {
        extern "C" fn seven() -> u32 {
            7
        }
        #[repr(C)]
        struct Made {
            version: Version,
            entries: [*mut c_void; 3],
        }
        let mut made = Made {
            version: Version {
                major: 1,
                size: (HEAD + 2 * size_of::<usize>()) as u32,
                step: 0,
                reserved: 0,
            },
            entries: [
                std::ptr::null_mut(),
                seven as extern "C" fn() -> u32 as *mut c_void,
                seven as extern "C" fn() -> u32 as *mut c_void,
            ],
        };
        let table = Table::new((&raw mut made).cast()).unwrap();
        // SAFETY: the table is made above, of functions of this type.
        let found = [0, 1, 2].map(|entry| unsafe { table.typed::<extern "C" fn() -> u32>(entry) });
        assert_eq!(
            found.map(|function| function.map(|function| function())),
            [None, Some(7), None]
        );
    }

    #[test]
    fn entries_move_with_the_size_of_the_table() {
        let old = AmdLayout::of_size(400);
        let new = AmdLayout::of_size(624);
        assert_eq!(old.entry(amd_entry::INTERCEPT_CREATE), Some(35));
        assert_eq!(new.entry(amd_entry::INTERCEPT_CREATE), Some(37));
        assert_eq!(AmdLayout::of_size(424).entry(amd_entry::INTERCEPT_REGISTER), Some(36));
        assert_eq!(old.entry(amd_entry::ASYNC_COPY_ON_ENGINE), None);
        assert_eq!(old.entry(amd_entry::ASYNC_COPY), Some(15));
        let name = |size, entry| amd(AmdLayout::of_size(size), entry).map(|function| function.name);
        assert_eq!(name(400, 47), Some("hsa_amd_queue_cu_get_mask"));
        assert_eq!(name(424, 47), Some("hsa_amd_spm_acquire"));
        assert_eq!(name(456, 47), Some("hsa_amd_svm_attributes_get"));
        assert_eq!(name(400, 16), Some("hsa_amd_agent_memory_pool_get_info"));
        assert_eq!(name(624, 75), Some("hsa_amd_ais_file_read"));
        assert_eq!(name(624, 76), None);
        assert_eq!(
            [0, 400, 624, 688].map(|size| AmdLayout::of_size(size).unknown()),
            [0, 0, 0, 8]
        );
        assert!(!AmdLayout::of_size(456).keeps_overflow() && AmdLayout::of_size(560).keeps_overflow());
        assert!(!AmdLayout::of_size(560).shares_cooperative_queue());
        assert!(new.shares_cooperative_queue());
    }
}
