//! HSA for the checks: start, GPUs, host memory, queues and signals.
//!
//! A check's process ends with the check, so nothing is freed.

#![expect(unsafe_code, reason = "calls of the run-time")]

use crate::cpu_wait::CpuWait;
use crate::library::{Library, functions};
use hsa_sys::abi::{
    Agent, Executable, Packet, Pitched, Pool, Queue, SIGNAL_USER, SUCCESS, Signal, SignalHandle, Span, Status, Symbol,
    info, packet,
};
use hsa_sys::table::{
    AgentCallback, AsyncCopy, AsyncCopyRect, GetInfo, MemoryFill, PoolAllocate, PoolCallback, QueueCreate,
};
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

functions! {
    /// HSA functions.
    Functions {
        init = c"hsa_init": unsafe extern "C" fn() -> Status,
        shut_down = c"hsa_shut_down": unsafe extern "C" fn() -> Status,
        system_get_info = c"hsa_system_get_info": unsafe extern "C" fn(i32, *mut c_void) -> Status,
        iterate_agents = c"hsa_iterate_agents": unsafe extern "C" fn(AgentCallback, *mut c_void) -> Status,
        agent_get_info = c"hsa_agent_get_info": GetInfo,
        iterate_isas = c"hsa_agent_iterate_isas": unsafe extern "C" fn(Agent, IsaCallback, *mut c_void) -> Status,
        isa_get_info = c"hsa_isa_get_info_alt": GetInfo,
        queue_create = c"hsa_queue_create": QueueCreate,
        queue_destroy = c"hsa_queue_destroy": unsafe extern "C" fn(*mut Queue) -> Status,
        load_read_index = c"hsa_queue_load_read_index_scacquire": unsafe extern "C" fn(*const Queue) -> u64,
        load_write_index = c"hsa_queue_load_write_index_relaxed": unsafe extern "C" fn(*const Queue) -> u64,
        add_write_index = c"hsa_queue_add_write_index_scacq_screl": unsafe extern "C" fn(*const Queue, u64) -> u64,
        signal_create = c"hsa_signal_create": unsafe extern "C" fn(i64, u32, *const Agent, *mut SignalHandle) -> Status,
        signal_load = c"hsa_signal_load_scacquire": unsafe extern "C" fn(SignalHandle) -> i64,
        signal_store = c"hsa_signal_store_screlease": unsafe extern "C" fn(SignalHandle, i64),
        reader_create = c"hsa_code_object_reader_create_from_memory":
            unsafe extern "C" fn(*const c_void, usize, *mut u64) -> Status,
        executable_create = c"hsa_executable_create_alt": unsafe extern "C" fn(i32, i32, *const c_char, *mut Executable) -> Status,
        executable_load = c"hsa_executable_load_agent_code_object":
            unsafe extern "C" fn(Executable, Agent, u64, *const c_char, *mut u64) -> Status,
        executable_freeze = c"hsa_executable_freeze": unsafe extern "C" fn(Executable, *const c_char) -> Status,
        executable_symbol = c"hsa_executable_get_symbol_by_name":
            unsafe extern "C" fn(Executable, *const c_char, *const Agent, *mut Symbol) -> Status,
        symbol_get_info = c"hsa_executable_symbol_get_info": GetInfo,
        set_profiler_enabled = c"hsa_amd_profiling_set_profiler_enabled": unsafe extern "C" fn(*mut Queue, i32) -> Status,
        get_dispatch_time = c"hsa_amd_profiling_get_dispatch_time":
            unsafe extern "C" fn(Agent, SignalHandle, *mut Span) -> Status,
        async_copy_enable = c"hsa_amd_profiling_async_copy_enable": unsafe extern "C" fn(bool) -> Status,
        get_async_copy_time = c"hsa_amd_profiling_get_async_copy_time": unsafe extern "C" fn(SignalHandle, *mut Span) -> Status,
        convert_tick = c"hsa_amd_profiling_convert_tick_to_system_domain":
            unsafe extern "C" fn(Agent, u64, *mut u64) -> Status,
        pool_get_info = c"hsa_amd_memory_pool_get_info": GetInfo,
        iterate_pools = c"hsa_amd_agent_iterate_memory_pools":
            unsafe extern "C" fn(Agent, PoolCallback, *mut c_void) -> Status,
        pool_allocate = c"hsa_amd_memory_pool_allocate": PoolAllocate,
        allow_access = c"hsa_amd_agents_allow_access":
            unsafe extern "C" fn(u32, *const Agent, *const u32, *const c_void) -> Status,
        memory_fill = c"hsa_amd_memory_fill": MemoryFill,
        async_copy = c"hsa_amd_memory_async_copy": AsyncCopy,
        async_copy_rect = c"hsa_amd_memory_async_copy_rect": AsyncCopyRect,
    }
}

type IsaCallback = unsafe extern "C" fn(u64, *mut c_void) -> Status;

/// Attributes that only the checks query (`hsa.h`, `hsa_ext_amd.h`).
mod attribute {
    pub(super) const VERSION_MAJOR: i32 = 0;
    pub(super) const VERSION_MINOR: i32 = 1;
    pub(super) const ISA_NAME_LENGTH: i32 = 0;
    pub(super) const ISA_NAME: i32 = 1;
}

/// Converts an HSA status to a result.
pub(crate) fn done(what: &str, status: Status) -> Result<(), String> {
    if status == SUCCESS {
        Ok(())
    } else {
        Err(format!("{what} failed with status {status:#x}"))
    }
}

/// A GPU and its local memory pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gpu {
    pub(crate) handle: Agent,
    pub(crate) local: Option<Pool>,
    /// Ticks of its counter per second, as the driver declares them; unknown before 5.7.
    pub(crate) declared: Option<f64>,
    /// The same as they are: as declared, unless the run-time converts otherwise.
    pub(crate) frequency: f64,
}

/// Ticks of a counter per second, if the driver declares none.
const USUAL_FREQUENCY: f64 = 1e8;

/// Whether a rate is another than the declared one, by more than errors of clocks.
pub(crate) fn deviates(declared: f64, hertz: f64) -> bool {
    (hertz / declared - 1.0).abs() > 0.01
}

/// Time after which the run-time's calibration is exact to more than that.
const CALIBRATION_TIME: Duration = Duration::from_millis(100);

/// HSA after its start.
#[derive(Debug)]
pub(crate) struct Hsa {
    pub(crate) call: Functions,
    pub(crate) library: Library,
    pub(crate) gpus: Vec<Gpu>,
    host: Agent,
    /// Host pools: flags and handle.
    pools: Vec<(u32, Pool)>,
}

/// Kind of host memory: the pool of the run-time's own signals, or the plain fine-grained one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Kernarg,
    Fine,
}

unsafe extern "C" fn collect(handle: u64, data: *mut c_void) -> Status {
    // SAFETY: `list` passes its own vector.
    unsafe { &mut *data.cast::<Vec<u64>>() }.push(handle);
    SUCCESS
}

/// Collects the handles that a function passes to its callback.
fn list(iterate: impl FnOnce(AgentCallback, *mut c_void) -> Status) -> Vec<u64> {
    let mut found: Vec<u64> = Vec::new();
    iterate(collect, (&raw mut found).cast());
    found
}

impl Hsa {
    /// Loads and starts HSA.
    pub(crate) fn start() -> Result<&'static Self, String> {
        let library = Library::open(&["libhsa-runtime64.so.1"])?;
        let call = Functions::load(library)?;
        // SAFETY: a plain call.
        done("hsa_init", unsafe { (call.init)() })?;
        // SAFETY: the callback keeps to the vector that it gets.
        let agents = list(|callback, data| unsafe { (call.iterate_agents)(callback, data) });
        let kind = |agent: &Agent| number(call.agent_get_info, *agent, info::DEVICE);
        let host = agents.iter().find(|agent| kind(agent) == 0).copied();
        let host = host.ok_or("HSA names no CPU agent")?;
        let gpus: Vec<Gpu> = agents
            .iter()
            .filter(|agent| kind(agent) == 1)
            .map(|agent| {
                let hertz = wide(call.agent_get_info, *agent, info::COUNTER_FREQUENCY);
                let declared = (hertz != 0).then_some(hertz as f64);
                Gpu {
                    handle: *agent,
                    local: pools(&call, *agent).first().map(|(_, pool)| *pool),
                    declared,
                    frequency: declared.unwrap_or(USUAL_FREQUENCY),
                }
            })
            .collect();
        if gpus.is_empty() {
            return Err("HSA names no GPU".to_owned());
        }
        let mut hsa = Self {
            pools: pools(&call, host),
            call,
            library,
            gpus,
            host,
        };
        for at in 0..hsa.gpus.len() {
            let gpu = hsa.gpus[at];
            hsa.gpus[at].frequency = hsa.measured(gpu).unwrap_or(gpu.frequency);
        }
        Ok(Box::leak(Box::new(hsa)))
    }

    /// Ticks per second by the run-time's conversions, where they contradict the declaration, also after a time in which its
    /// calibration gets exact.
    fn measured(&self, gpu: Gpu) -> Option<f64> {
        self.converted(gpu).filter(|hertz| deviates(gpu.frequency, *hertz))?;
        std::thread::sleep(CALIBRATION_TIME);
        self.converted(gpu).filter(|hertz| deviates(gpu.frequency, *hertz))
    }

    /// Ticks per second by conversions of the current time and a later one.
    fn converted(&self, gpu: Gpu) -> Option<f64> {
        /// Distance of the two, ticks.
        const STEP: u64 = 1 << 24;
        /// Tolerance of the current time, ns.
        const MAX_ERROR: i64 = 1_000_000;
        // Makes the run-time compare the clocks again.
        self.at(gpu, i64::MAX as u64).ok()?;
        let (now, mut tick) = (self.now(), 0u64);
        for _ in 0..16 {
            let there = self.at(gpu, tick.wrapping_add(STEP)).ok()?;
            let here = self.at(gpu, tick).ok()?;
            let rise = there.checked_sub(here).filter(|rise| *rise > 0)?;
            let distance = now.wrapping_sub(here).cast_signed();
            if distance.abs() <= MAX_ERROR {
                return Some(STEP as f64 * 1e9 / rise as f64);
            }
            tick = tick.wrapping_add((i128::from(distance) * i128::from(STEP) / i128::from(rise)) as u64);
        }
        None
    }

    /// HSA's version and build text.
    pub(crate) fn version(&self) -> (u16, u16, String) {
        let mut numbers = [0u16; 2];
        let mut build: *const c_char = std::ptr::null();
        // SAFETY: the answers' types are those of the attributes: 16 bits, 16 bits, a pointer to a static text.
        let build = unsafe {
            (self.call.system_get_info)(attribute::VERSION_MAJOR, (&raw mut numbers[0]).cast());
            (self.call.system_get_info)(attribute::VERSION_MINOR, (&raw mut numbers[1]).cast());
            let status = (self.call.system_get_info)(info::BUILD_VERSION, (&raw mut build).cast());
            if status == SUCCESS && !build.is_null() {
                CStr::from_ptr(build).to_string_lossy().into_owned()
            } else {
                String::new()
            }
        };
        (numbers[0], numbers[1], build)
    }

    /// Instruction sets of a GPU, its own first (`amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`).
    pub(crate) fn targets(&self, gpu: Gpu) -> Vec<String> {
        // SAFETY: the callback keeps to the vector that it gets.
        let isas = list(|callback, data| unsafe { (self.call.iterate_isas)(gpu.handle, callback, data) });
        isas.into_iter()
            .map(|isa| {
                let length = number(self.call.isa_get_info, isa, attribute::ISA_NAME_LENGTH) as usize;
                let mut name = vec![0u8; length.min(4096) + 1];
                // SAFETY: there is room for as many bytes as the run-time said.
                unsafe { (self.call.isa_get_info)(isa, attribute::ISA_NAME, name.as_mut_ptr().cast()) };
                let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
                String::from_utf8_lossy(&name[..end]).into_owned()
            })
            .collect()
    }

    /// Name of the GPU's agent (`gfx90a`).
    pub(crate) fn gfx(&self, gpu: Gpu) -> String {
        let mut name = [0u8; 64];
        // SAFETY: the attribute's answer has 64 bytes.
        unsafe { (self.call.agent_get_info)(gpu.handle, info::AGENT_NAME, name.as_mut_ptr().cast()) };
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
        String::from_utf8_lossy(&name[..end]).into_owned()
    }

    /// The host's agent.
    pub(crate) fn host(&self) -> Agent {
        self.host
    }

    /// HSA's system clock, ns.
    pub(crate) fn now(&self) -> u64 {
        let mut time = 0u64;
        // SAFETY: the attribute's answer has 64 bits.
        unsafe { (self.call.system_get_info)(info::TIMESTAMP, (&raw mut time).cast()) };
        (u128::from(time) * 1_000_000_000 / u128::from(self.system_frequency())) as u64
    }

    fn system_frequency(&self) -> u64 {
        use std::sync::OnceLock;
        static FREQUENCY: OnceLock<u64> = OnceLock::new();
        *FREQUENCY.get_or_init(|| {
            let mut hertz = 0u64;
            // SAFETY: as above.
            unsafe { (self.call.system_get_info)(info::TIMESTAMP_FREQUENCY, (&raw mut hertz).cast()) };
            if hertz == 0 { 1_000_000_000 } else { hertz }
        })
    }

    /// Converts a GPU tick to a time of the system clock, ns.
    pub(crate) fn at(&self, gpu: Gpu, tick: u64) -> Result<u64, String> {
        let mut out = 0u64;
        // SAFETY: the agent is the run-time's, and there is room for the answer.
        let status = unsafe { (self.call.convert_tick)(gpu.handle, tick, &raw mut out) };
        done("hsa_amd_profiling_convert_tick_to_system_domain", status)?;
        Ok((u128::from(out) * 1_000_000_000 / u128::from(self.system_frequency())) as u64)
    }

    /// Allocates zeroed host memory that the host and all GPUs can access.
    pub(crate) fn host_memory(&self, kind: Kind, bytes: usize) -> Result<*mut u8, String> {
        let wanted = |flags: u32| match kind {
            Kind::Kernarg => flags & (info::POOL_FINE | info::POOL_KERNARG) == info::POOL_FINE | info::POOL_KERNARG,
            Kind::Fine => flags & (info::POOL_FINE | info::POOL_KERNARG) == info::POOL_FINE,
        };
        let pool = self.pools.iter().find(|(flags, _)| wanted(*flags));
        let (_, pool) = pool.ok_or("HSA has no such memory pool")?;
        let memory = self.allocate(*pool, bytes)?;
        let gpus: Vec<Agent> = self.gpus.iter().map(|gpu| gpu.handle).collect();
        self.allow(&gpus, memory)?;
        // SAFETY: the memory was just allocated, of this size.
        unsafe { memory.write_bytes(0, bytes) };
        Ok(memory)
    }

    /// Gives agents access to memory of a pool.
    pub(crate) fn allow(&self, agents: &[Agent], memory: *mut u8) -> Result<(), String> {
        // SAFETY: the list has as many agents as it says, and the memory is the run-time's.
        done("hsa_amd_agents_allow_access", unsafe {
            (self.call.allow_access)(agents.len() as u32, agents.as_ptr(), std::ptr::null(), memory.cast())
        })
    }

    /// Allocates memory of a pool.
    pub(crate) fn allocate(&self, pool: Pool, bytes: usize) -> Result<*mut u8, String> {
        let mut address = std::ptr::null_mut();
        // SAFETY: the pool is the run-time's, and there is room for the answer.
        done("hsa_amd_memory_pool_allocate", unsafe {
            (self.call.pool_allocate)(pool, bytes, 0, &raw mut address)
        })?;
        Ok(address.cast())
    }

    /// Creates a signal of the run-time.
    pub(crate) fn signal(&self, value: i64) -> Result<SignalHandle, String> {
        let mut handle = 0;
        // SAFETY: there is room for the answer; no consumers are named.
        done("hsa_signal_create", unsafe {
            (self.call.signal_create)(value, 0, std::ptr::null(), &raw mut handle)
        })?;
        Ok(handle)
    }

    /// Value of a signal of the run-time.
    pub(crate) fn value(&self, signal: SignalHandle) -> i64 {
        // SAFETY: the signal was made by `signal` and stays.
        unsafe { (self.call.signal_load)(signal) }
    }

    /// Waits until a signal of the run-time is 0 or less.
    pub(crate) fn wait(&self, signal: SignalHandle, limit: Duration) -> Result<(), String> {
        if until(limit, || self.value(signal) <= 0) {
            Ok(())
        } else {
            let value = self.value(signal);
            Err(format!("a signal is {value} after {} ms", limit.as_millis()))
        }
    }

    /// Begin and end of the packet with this signal, ns of the system clock.
    pub(crate) fn span(&self, gpu: Gpu, signal: SignalHandle) -> Result<[u64; 2], String> {
        let mut span = Span::default();
        // SAFETY: the signal is the run-time's and its packet is complete.
        let status = unsafe { (self.call.get_dispatch_time)(gpu.handle, signal, &raw mut span) };
        done("hsa_amd_profiling_get_dispatch_time", status)?;
        Ok([span.start, span.end])
    }

    /// Begin and end of a copy with this signal, ns of the system clock.
    pub(crate) fn copy_span(&self, signal: SignalHandle) -> Result<[u64; 2], String> {
        let mut span = Span::default();
        // SAFETY: the signal is the run-time's and its copy is complete.
        let status = unsafe { (self.call.get_async_copy_time)(signal, &raw mut span) };
        done("hsa_amd_profiling_get_async_copy_time", status)?;
        Ok([span.start, span.end])
    }
}

fn number(get: GetInfo, handle: u64, attribute: i32) -> u32 {
    let mut out = 0u32;
    // SAFETY: the attributes asked for by this function have 32 bits.
    let status = unsafe { get(handle, attribute, (&raw mut out).cast()) };
    if status == SUCCESS { out } else { 0 }
}

fn wide(get: GetInfo, handle: u64, attribute: i32) -> u64 {
    let mut out = 0u64;
    // SAFETY: the attributes asked for by this function have 64 bits.
    let status = unsafe { get(handle, attribute, (&raw mut out).cast()) };
    if status == SUCCESS { out } else { 0 }
}

/// Global pools of an agent: flags and handle.
fn pools(call: &Functions, agent: Agent) -> Vec<(u32, Pool)> {
    // SAFETY: the callback keeps to the vector that it gets.
    let pools = list(|callback, data| unsafe { (call.iterate_pools)(agent, callback, data) });
    pools
        .into_iter()
        .filter(|pool| number(call.pool_get_info, *pool, info::POOL_SEGMENT) == 0)
        .map(|pool| (number(call.pool_get_info, pool, info::POOL_FLAGS), pool))
        .collect()
}

/// Time after which a wait is long enough to count how long threads wait for a CPU.
const LONG: Duration = Duration::from_millis(1);
/// Factor by which a busy machine may extend a limit: the viewer's limit for the whole check is longer still.
const MAX_EXTENSION: u32 = 2;

/// Waits until a condition holds; false if the limit expires first. The time that threads wait for a CPU does not count.
pub(crate) fn until(limit: Duration, holds: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    let (mut cpu_wait, mut expires) = (None, limit);
    loop {
        if holds() {
            return true;
        }
        let waited = start.elapsed();
        if waited > expires {
            let on_busy_machine = cpu_wait.as_ref().map_or(Duration::ZERO, CpuWait::so_far);
            expires = (limit + on_busy_machine).min(limit * MAX_EXTENSION);
            if waited > expires {
                return holds();
            }
        }
        if waited > LONG && cpu_wait.is_none() {
            cpu_wait = Some(CpuWait::begin());
        }
        if waited < Duration::from_micros(20) {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// A queue of a GPU.
#[derive(Debug)]
pub(crate) struct Lane {
    hsa: &'static Hsa,
    queue: *mut Queue,
    pub(crate) size: u64,
}

// SAFETY: the queue is one for several producers, and the run-time's functions may be called from any thread.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

impl Lane {
    /// Creates a queue with times.
    pub(crate) fn create(hsa: &'static Hsa, gpu: Gpu, size: u32) -> Result<Self, String> {
        let mut queue = std::ptr::null_mut();
        // SAFETY: the agent is a GPU of the run-time's, and there is room for the answer.
        done("hsa_queue_create", unsafe {
            (hsa.call.queue_create)(
                gpu.handle,
                size,
                0,
                None,
                std::ptr::null_mut(),
                u32::MAX,
                u32::MAX,
                &raw mut queue,
            )
        })?;
        // SAFETY: the queue was just made.
        let size = u64::from(unsafe { (*queue).size });
        // SAFETY: as above.
        done("hsa_amd_profiling_set_profiler_enabled", unsafe {
            (hsa.call.set_profiler_enabled)(queue, 1)
        })?;
        Ok(Self { hsa, queue, size })
    }

    /// Read and write index.
    pub(crate) fn indices(&self) -> [u64; 2] {
        // SAFETY: the queue lives as long as the process.
        unsafe {
            [
                (self.hsa.call.load_read_index)(self.queue),
                (self.hsa.call.load_write_index)(self.queue),
            ]
        }
    }

    /// Writes a packet when there is space, and rings the doorbell; returns its index.
    pub(crate) fn submit(&self, packet: Packet, limit: Duration) -> Result<u64, String> {
        self.submit_late(packet, limit, Duration::ZERO)
    }

    /// As `submit`, with a pause before the packet is written.
    fn submit_late(&self, packet: Packet, limit: Duration, pause: Duration) -> Result<u64, String> {
        // SAFETY: as above.
        let index = unsafe { (self.hsa.call.add_write_index)(self.queue, 1) };
        if !until(limit, || index.wrapping_sub(self.indices()[0]) < self.size) {
            return Err(format!("a queue had no room for {} ms", limit.as_millis()));
        }
        std::thread::sleep(pause);
        // SAFETY: the queue's ring has `size` packets.
        let place = unsafe { (*self.queue).base.cast::<Packet>().add((index % self.size) as usize) };
        let head = u32::from(packet.header) | (u32::from(packet.setup) << 16);
        let body = Packet {
            header: packet::INVALID,
            ..packet
        };
        // SAFETY: the place is free until its header says otherwise; the header is written last.
        unsafe {
            let from = (&raw const body).cast::<u32>().add(1);
            place.cast::<u32>().add(1).copy_from_nonoverlapping(from, 15);
            AtomicU32::from_ptr(place.cast()).store(head, Ordering::Release);
            (self.hsa.call.signal_store)((*self.queue).doorbell, index.cast_signed());
        }
        Ok(index)
    }

    /// Destroys the queue.
    pub(crate) fn destroy(self) -> Result<(), String> {
        // SAFETY: the queue was made by `create`, and this is its end.
        done("hsa_queue_destroy", unsafe {
            (self.hsa.call.queue_destroy)(self.queue)
        })
    }

    /// Submits a barrier.
    pub(crate) fn barrier(&self, signal: SignalHandle, limit: Duration) -> Result<u64, String> {
        self.submit(barrier(signal), limit)
    }

    /// As `barrier`, with a pause before the packet is written.
    pub(crate) fn late_barrier(&self, signal: SignalHandle, limit: Duration, pause: Duration) -> Result<u64, String> {
        self.submit_late(barrier(signal), limit, pause)
    }
}

/// System-scope fences for begin and end.
const FENCES: u16 = (2 << 9) | (2 << 11);

/// A barrier packet that waits only for earlier packets.
fn barrier(signal: SignalHandle) -> Packet {
    Packet {
        header: packet::BARRIER_AND | packet::BARRIER | FENCES,
        completion: signal,
        ..Packet::default()
    }
}

/// A dispatch of one work-item.
pub(crate) fn dispatch(kernel_object: u64, kernarg: u64, sizes: [u32; 2], signal: SignalHandle) -> Packet {
    Packet {
        header: packet::DISPATCH | packet::BARRIER | FENCES,
        setup: 1,
        workgroup: [1, 1, 1],
        grid: [1, 1, 1],
        private_size: sizes[0],
        group_size: sizes[1],
        kernel_object,
        kernarg,
        completion: signal,
        ..Packet::default()
    }
}

/// Hand-made signals in memory that the GPU can access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals {
    pub(crate) first: *mut Signal,
    pub(crate) count: usize,
}

impl Signals {
    /// Creates signals in memory.
    ///
    /// # Safety
    /// There is room for `count` signals at `memory`, which is aligned to a page and used for nothing else.
    pub(crate) unsafe fn make(memory: *mut u8, count: usize) -> Self {
        #[expect(clippy::cast_ptr_alignment, reason = "by the contract, aligned to a page")]
        let first = memory.cast::<Signal>();
        for index in 0..count {
            let signal = Signal {
                kind: SIGNAL_USER,
                value: AtomicI64::new(0),
                mailbox: 0,
                event: 0,
                reserved0: 0,
                start: AtomicU64::new(0),
                end: AtomicU64::new(0),
                reserved1: [0; 2],
            };
            // SAFETY: by the contract.
            unsafe { first.add(index).write(signal) };
        }
        Self { first, count }
    }

    /// The signal with this index.
    pub(crate) fn get(&self, index: usize) -> &'static Signal {
        assert!(index < self.count);
        // SAFETY: there are `count` signals in memory that stays, reached through atomics alone.
        unsafe { &*self.first.add(index) }
    }

    /// The handle of the signal with this index.
    pub(crate) fn handle(&self, index: usize) -> SignalHandle {
        std::ptr::from_ref(self.get(index)) as u64
    }
}

/// A pitched layout of bytes, rows and layers for rectangular copies.
pub(crate) fn pitched(base: *mut u8, pitch: u64) -> Pitched {
    Pitched {
        base: base as u64,
        pitch,
        slice: 0,
    }
}
