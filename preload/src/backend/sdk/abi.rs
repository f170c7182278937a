//! The SDK's functions and structures, declared from its published headers (0.4 of ROCm 6.2 to 1.0 of ROCm 7.0).

use crate::real::Library;
use std::ffi::{c_char, c_int, c_void};

pub(crate) type Status = c_int;
pub(crate) const SUCCESS: Status = 0;
/// `ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT`.
pub(crate) const EXCEEDS: Status = 38;
/// `ROCPROFILER_STATUS_ERROR_PERMISSION_DENIED`.
pub(crate) const DENIED: Status = 40;
/// `ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED`.
pub(crate) const HSA_NOT_LOADED: Status = 22;
/// `ROCPROFILER_STATUS_ERROR_FINALIZED`: the program is ending.
pub(crate) const FINALIZED: Status = 21;
/// `ROCPROFILER_STATUS_ERROR_CONTEXT_ERROR`: another operation on the context is in progress.
pub(crate) const BUSY: Status = 9;
/// `ROCPROFILER_STATUS_ERROR_NOT_AVAILABLE`.
pub(crate) const NOT_AVAILABLE: Status = 37;
/// `ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_KERNEL`.
pub(crate) const OLD_DRIVER: Status = 28;
/// `ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED`; also the status for a function that the library lacks.
pub(crate) const NOT_IMPLEMENTED: Status = 17;
/// `ROCPROFILER_COUNTER_FLAG_APPEND_DEFINITION`: adds to the library's definitions.
pub(crate) const APPEND: c_int = 2;
/// `ROCPROFILER_AGENT_TYPE_CPU`.
pub(crate) const AGENT_CPU: u32 = 1;
/// `ROCPROFILER_AGENT_TYPE_GPU`.
pub(crate) const AGENT_GPU: u32 = 2;

/// Result of `rocprofiler_configure`: size, functions, and their data.
#[repr(C)]
pub struct Configured {
    size: usize,
    initialize: unsafe extern "C" fn(*const c_void, *mut c_void) -> c_int,
    finalize: unsafe extern "C" fn(*mut c_void),
    data: usize,
}

pub(crate) static CONFIGURED: Configured = Configured {
    size: size_of::<Configured>(),
    initialize: super::initialize,
    finalize: super::finalize,
    data: 0,
};

/// `rocprofiler_kernel_dispatch_info_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DispatchInfo {
    pub(crate) size: u64,
    pub(crate) agent: u64,
    pub(crate) queue: u64,
    pub(crate) kernel: u64,
    pub(crate) dispatch: u64,
    pub(crate) private_size: u32,
    pub(crate) group_size: u32,
    pub(crate) workgroup: [u32; 3],
    pub(crate) grid: [u32; 3],
    padding: [u8; 56],
}

/// `rocprofiler_dispatch_counting_service_data_t` of 0.5 and later. That of 0.4 has no times. Both contain their size
/// and are passed on the stack, so they can be distinguished.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DispatchData {
    pub(crate) size: u64,
    correlation: [u64; 2],
    start: u64,
    end: u64,
    info: DispatchInfo,
}

/// As [`DispatchData`], in 0.4.
#[repr(C)]
#[derive(Clone, Copy)]
struct DispatchData04 {
    size: u64,
    correlation: [u64; 2],
    info: DispatchInfo,
}

/// A dispatch in either release.
#[derive(Clone, Copy)]
pub(crate) struct SeenDispatch {
    /// Begin and end, CLOCK_BOOTTIME ns; 0 if absent.
    pub(crate) times: [u64; 2],
    pub(crate) info: DispatchInfo,
}

impl DispatchData {
    /// The dispatch; `None` if the size is unknown.
    pub(crate) fn seen(&self) -> Option<SeenDispatch> {
        const OLD: u64 = size_of::<DispatchData04>() as u64;
        const NEW: u64 = size_of::<DispatchData>() as u64;
        match self.size {
            OLD => {
                // SAFETY: the old structure is shorter than this one, has its alignment and holds numbers only.
                let old = unsafe { (&raw const *self).cast::<DispatchData04>().read() };
                Some(SeenDispatch {
                    times: [0, 0],
                    info: old.info,
                })
            }
            NEW => Some(SeenDispatch {
                times: [self.start, self.end],
                info: self.info,
            }),
            _ => None,
        }
    }
}

/// `rocprofiler_callback_tracing_record_t` as words: 64 bytes from 1.0 on, 56 before (no ancestor).
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct TracingRecord(pub(crate) [u64; 8]);

impl TracingRecord {
    /// Operation, phase and payload, if the record is of this kind.
    pub(crate) fn of_kind(&self, kind: u32, version: u32) -> Option<(u32, u32, *const u8)> {
        let at = |first: usize| {
            let word = |at: usize| self.0.get(at).copied().unwrap_or(0);
            let found = word(first) as u32 == kind;
            found.then_some((
                (word(first) >> 32) as u32,
                word(first + 1) as u32,
                word(first + 2) as *const u8,
            ))
        };
        if version >= 10_000 { at(5) } else { at(4) }
    }
}

/// Fields of `rocprofiler_agent_v0_t`, at the same offsets in all releases from 0.4 to 1.x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) id: u64,
    pub(crate) kind: u32,
    pub(crate) wave_size: u32,
    pub(crate) units: u32,
    pub(crate) name: *const c_char,
    pub(crate) product: *const c_char,
    pub(crate) node: u32,
    pub(crate) logical: u32,
}

/// Number of bytes of an agent that are read.
pub(crate) const AGENT_BYTES: u64 = 288;

impl Agent {
    /// Reads an agent; `None` if it is shorter than [`AGENT_BYTES`].
    ///
    /// # Safety
    /// `at` is the address of an agent that begins with its size.
    pub(crate) unsafe fn read(at: *const u8) -> Option<Self> {
        // SAFETY: the size is the first word.
        if unsafe { at.cast::<u64>().read_unaligned() } < AGENT_BYTES {
            return None;
        }
        // SAFETY: the size above covers every offset below.
        let word = |offset: usize| unsafe { at.add(offset).cast::<u32>().read_unaligned() };
        // SAFETY: as above.
        let long = |offset: usize| unsafe { at.add(offset).cast::<u64>().read_unaligned() };
        Some(Self {
            id: long(8),
            kind: word(16),
            wave_size: word(64),
            units: word(72),
            name: long(248) as *const c_char,
            product: long(264) as *const c_char,
            node: word(280),
            logical: word(284),
        })
    }
}

/// `rocprofiler_counter_info_v0_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CounterInfo {
    pub(crate) id: u64,
    pub(crate) name: *const c_char,
    pub(crate) description: *const c_char,
    pub(crate) block: *const c_char,
    pub(crate) expression: *const c_char,
    /// Bit 0 constant, bit 1 derived.
    pub(crate) flags: u8,
}

/// `rocprofiler_record_dimension_info_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DimensionInfo {
    pub(crate) name: *const c_char,
    pub(crate) instances: usize,
    pub(crate) id: u64,
}

/// `rocprofiler_callback_tracing_kernel_dispatch_data_t` since 0.5.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct TracedDispatch {
    pub(crate) size: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) info: DispatchInfo,
}

/// `rocprofiler_pc_sampling_configuration_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SamplingConfiguration {
    pub(crate) size: u64,
    pub(crate) method: c_int,
    pub(crate) unit: c_int,
    pub(crate) minimum: u64,
    pub(crate) maximum: u64,
    /// 1 if the interval must be a power of two.
    pub(crate) flags: u64,
}

/// Name of a sampling method.
pub(crate) const fn sampling_method(number: c_int) -> &'static str {
    match number {
        1 => "stochastic",
        2 => "host_trap",
        _ => "(unknown method)",
    }
}

/// Name of an interval unit.
pub(crate) const fn sampling_unit(number: c_int) -> &'static str {
    match number {
        1 => "instructions",
        2 => "cycles",
        3 => "time",
        _ => "(unknown unit)",
    }
}

/// `rocprofiler_record_header_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RecordHeader {
    pub(crate) category: u32,
    pub(crate) kind: u32,
    pub(crate) payload: *const u8,
}

/// Number of bytes of a kernel symbol that are read; 0.4 has 72, 1.0 88.
pub(crate) const SYMBOL_BYTES: u64 = 72;

const _: () = {
    assert!(size_of::<DispatchInfo>() == 128);
    assert!(size_of::<DispatchData>() == 168);
    assert!(size_of::<DispatchData04>() == 152);
    assert!(size_of::<TracedDispatch>() == 152);
    assert!(size_of::<TracingRecord>() == 64);
    assert!(size_of::<SamplingConfiguration>() == 40);
    assert!(size_of::<RecordHeader>() == 16);
    assert!(size_of::<CounterInfo>() == 48);
    assert!(size_of::<DimensionInfo>() == 24);
    assert!(size_of::<Configured>() == 32);
};

pub(crate) type ConfigureFn = unsafe extern "C" fn(u32, *const c_char, u32, *mut c_void) -> *const Configured;
pub(crate) type DispatchFn = unsafe extern "C" fn(DispatchData, *mut u64, *mut u64, *mut c_void);
pub(crate) type ValuesFn = unsafe extern "C" fn(DispatchData, *const u8, usize, u64, *mut c_void);
pub(crate) type TracingFn = unsafe extern "C" fn(TracingRecord, *mut u64, *mut c_void);
pub(crate) type CreateFn = unsafe extern "C" fn(*mut u64) -> Status;
pub(crate) type SetConfigFn = unsafe extern "C" fn(u64, u64) -> Status;
pub(crate) type DeviceFn = unsafe extern "C" fn(u64, u64, SetConfigFn, *mut c_void);
pub(crate) type AgentsFn = unsafe extern "C" fn(u32, *const *const u8, usize, *mut c_void) -> Status;
pub(crate) type CountersFn = unsafe extern "C" fn(u64, *const u64, usize, *mut c_void) -> Status;
pub(crate) type DimensionsFn = unsafe extern "C" fn(u64, *const DimensionInfo, usize, *mut c_void) -> Status;
pub(crate) type SamplingFn = unsafe extern "C" fn(*const SamplingConfiguration, usize, *mut c_void) -> Status;
pub(crate) type BufferFn = unsafe extern "C" fn(u64, u64, *mut *mut c_void, usize, *mut c_void, u64);

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident [$($symbol:literal)+]: $type:ty,)*) => {
        /// The SDK's functions; `None` if absent.
        pub(crate) struct Sdk {
            $($(#[$doc])* pub(crate) $name: Option<$type>,)*
        }

        impl Sdk {
            /// Looks all functions up.
            pub(crate) fn load(library: Library) -> Self {
                Self {
                    $($name: [$($symbol),+].iter().find_map(|name| library.symbol(name)).map(|found| {
                        // SAFETY: the symbol has this type in all releases from 0.4 to 1.x.
                        unsafe { std::mem::transmute::<*mut c_void, $type>(found) }
                    }),)*
                }
            }
        }
    };
}

functions! {
    get_version [c"rocprofiler_get_version"]: unsafe extern "C" fn(*mut u32, *mut u32, *mut u32) -> Status,
    set_api_table [c"rocprofiler_set_api_table"]:
        unsafe extern "C" fn(*const c_char, u64, u64, *mut *mut c_void, u64) -> c_int,
    force_configure [c"rocprofiler_force_configure"]: unsafe extern "C" fn(ConfigureFn) -> Status,
    status_string [c"rocprofiler_get_status_string"]: unsafe extern "C" fn(Status) -> *const c_char,
    create_context [c"rocprofiler_create_context"]: CreateFn,
    start_context [c"rocprofiler_start_context"]: unsafe extern "C" fn(u64) -> Status,
    create_buffer [c"rocprofiler_create_buffer"]:
        unsafe extern "C" fn(u64, usize, usize, c_int, BufferFn, *mut c_void, *mut u64) -> Status,
    agents [c"rocprofiler_query_available_agents"]: unsafe extern "C" fn(u32, AgentsFn, usize, *mut c_void) -> Status,
    agent_counters [c"rocprofiler_iterate_agent_supported_counters"]:
        unsafe extern "C" fn(u64, CountersFn, *mut c_void) -> Status,
    counter_info [c"rocprofiler_query_counter_info"]: unsafe extern "C" fn(u64, u32, *mut c_void) -> Status,
    dimensions [c"rocprofiler_iterate_counter_dimensions"]:
        unsafe extern "C" fn(u64, DimensionsFn, *mut c_void) -> Status,
    counter_of_record [c"rocprofiler_query_record_counter_id"]: unsafe extern "C" fn(u64, *mut u64) -> Status,
    position_of_record [c"rocprofiler_query_record_dimension_position"]:
        unsafe extern "C" fn(u64, u64, *mut usize) -> Status,
    load_definitions [c"rocprofiler_load_counter_definition"]:
        unsafe extern "C" fn(*const c_char, usize, c_int) -> Status,
    create_config [c"rocprofiler_create_counter_config" c"rocprofiler_create_profile_config"]:
        unsafe extern "C" fn(u64, *const u64, usize, *mut u64) -> Status,
    count_dispatches [
        c"rocprofiler_configure_callback_dispatch_counting_service"
        c"rocprofiler_configure_callback_dispatch_profile_counting_service"
    ]: unsafe extern "C" fn(u64, DispatchFn, *mut c_void, ValuesFn, *mut c_void) -> Status,
    trace [c"rocprofiler_configure_callback_tracing_service"]:
        unsafe extern "C" fn(u64, c_int, *const c_int, usize, TracingFn, *mut c_void) -> Status,
    tracing_kind_name [c"rocprofiler_query_callback_tracing_kind_name"]:
        unsafe extern "C" fn(c_int, *mut *const c_char, *mut u64) -> Status,
    count_device [c"rocprofiler_configure_device_counting_service"]:
        unsafe extern "C" fn(u64, u64, u64, DeviceFn, *mut c_void) -> Status,
    sampling_configurations [c"rocprofiler_query_pc_sampling_agent_configurations"]:
        unsafe extern "C" fn(u64, SamplingFn, *mut c_void) -> Status,
    sample [c"rocprofiler_configure_pc_sampling_service"]:
        unsafe extern "C" fn(u64, u64, c_int, c_int, u64, u64, c_int) -> Status,
    sample_device [c"rocprofiler_sample_device_counting_service"]:
        unsafe extern "C" fn(u64, u64, c_int, *mut u8, *mut usize) -> Status,
}

impl Sdk {
    /// `10000 * major + 100 * minor + patch`; 0 if unknown.
    pub(crate) fn version(&self) -> u32 {
        let Some(get) = self.get_version else { return 0 };
        let (mut major, mut minor, mut patch) = (0u32, 0u32, 0u32);
        // SAFETY: three numbers are written.
        unsafe { get(&raw mut major, &raw mut minor, &raw mut patch) };
        major
            .saturating_mul(10_000)
            .saturating_add(minor * 100)
            .saturating_add(patch)
    }
}

/// The SDK's text of a status, with advice if known.
pub(crate) fn status_text(sdk: &Sdk, status: Status) -> String {
    let meaning = sdk.status_string.map(|text| {
        // SAFETY: the SDK's texts are constants, terminated or null.
        String::from_utf8_lossy(unsafe { super::bytes_of(text(status)) }).into_owned()
    });
    let meaning = meaning.filter(|text| !text.is_empty());
    let meaning = meaning.unwrap_or_else(|| format!("status {status}"));
    match status {
        DENIED => {
            format!("{meaning}: this user may not count; it takes CAP_PERFMON or root, or a driver that allows it")
        }
        EXCEEDS => format!("{meaning}: fewer counters at once fit, see 'roctop counters --pmc … --plan'"),
        _ => meaning,
    }
}
