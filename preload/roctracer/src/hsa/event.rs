//! Events (HSA_EVT): memory that is allocated, freed, assigned to devices and copied, and code objects that are loaded
//! and unloaded.
//!
//! As in the shipped library, submitted packets and kernel symbols are events of the interface that are never reported.

use super::original::{amd, core, hook};
use crate::control;
use crate::domain::Domain;
use crate::registration::{self, REGISTERED};
use crate::wall::wall;
use hsa_sys::abi::{Agent, EXTENSION_LOADER, Executable, LoadedCodeObject, Loader, Pool, SUCCESS, Status, info};
use hsa_sys::table::{AgentCallback, AmdLayout, GetInfo, Table, core_entry};
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `hsa_evt_id_t`.
const ALLOCATE: u32 = 0;
const DEVICE: u32 = 1;
const MEMCOPY: u32 = 2;
const CODE_OBJECT: u32 = 5;

/// Entries of the tables.
const ITERATE_AGENTS: usize = 5;
const AGENT_GET_INFO: usize = 6;
const REGION_GET_INFO: usize = 28;
const MEMORY_ALLOCATE: usize = 33;
const MEMORY_COPY: usize = 35;
const MEMORY_ASSIGN_AGENT: usize = 36;
const GET_EXTENSION_TABLE: usize = 98;
const POOL_GET_INFO: usize = 11;
const POOL_ALLOCATE: usize = 13;
const POOL_FREE: usize = 14;
const AGENT_POOL_GET_INFO: usize = 18;
const ALLOW_ACCESS: usize = 19;

/// Types of agents.
const GPU: u32 = 1;
/// `HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT`.
const ALLOWED: u32 = 1;
/// Storage of a code object: `hsa_ven_amd_loader_code_object_storage_type_t`.
const IN_FILE: u32 = 1;
const IN_MEMORY: u32 = 2;
/// Attributes of a loaded code object.
const STORAGE_TYPE: i32 = 4;
const MEMORY_BASE: i32 = 5;
const MEMORY_SIZE: i32 = 6;
const STORAGE_FILE: i32 = 7;
const LOAD_DELTA: i32 = 8;

/// `hsa_evt_data_t`: a union of structures of up to nine words.
type Data = [u64; 9];

type RegionAllocate = unsafe extern "C" fn(u64, usize, *mut *mut c_void) -> Status;
type AssignAgent = unsafe extern "C" fn(*mut c_void, Agent, i32) -> Status;
type MemoryCopy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> Status;
type PoolAllocate = unsafe extern "C" fn(Pool, usize, u32, *mut *mut c_void) -> Status;
type PoolFree = unsafe extern "C" fn(*mut c_void) -> Status;
type AllowAccess = unsafe extern "C" fn(u32, *const Agent, *const u32, *const c_void) -> Status;
type Freeze = unsafe extern "C" fn(Executable, *const c_char) -> Status;
type Destroy = unsafe extern "C" fn(Executable) -> Status;
type AgentPoolInfo = unsafe extern "C" fn(Agent, Pool, i32, *mut c_void) -> Status;
type IterateAgents = unsafe extern "C" fn(AgentCallback, *mut c_void) -> Status;
type GetExtension = unsafe extern "C" fn(u16, u16, usize, *mut c_void) -> Status;

/// `HSA_STATUS_ERROR`, for a missing original.
const STATUS_ERROR: Status = 0x1000;

#[derive(Clone, Copy)]
struct Known {
    agent: Agent,
    kind: u32,
    /// The driver's node of a GPU; an ordinal for other agents.
    id: u32,
}

static AGENTS: Mutex<Vec<Known>> = Mutex::new(Vec::new());

fn agents() -> MutexGuard<'static, Vec<Known>> {
    AGENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the event is requested.
fn is_wanted(event: u32) -> bool {
    REGISTERED.hsa_events.get(event).is_some() && !control::is_stopped()
}

fn report(event: u32, data: &Data) {
    if let Some(words) = REGISTERED.hsa_events.get(event) {
        let (function, argument) = registration::callback(words);
        // SAFETY: the program's callback, called as the interface says.
        unsafe { function(Domain::HsaEvent as u32, event, data.as_ptr().cast(), argument) };
    }
}

fn word(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Puts the functions below into the tables.
pub(super) fn patch(core_table: Table, amd_table: Table, layout: AmdLayout) {
    discover();
    let core_hooks: [(usize, *mut c_void); 5] = [
        (MEMORY_ALLOCATE, memory_allocate as RegionAllocate as *mut c_void),
        (MEMORY_ASSIGN_AGENT, memory_assign_agent as AssignAgent as *mut c_void),
        (MEMORY_COPY, memory_copy as MemoryCopy as *mut c_void),
        (core_entry::EXECUTABLE_FREEZE, freeze as Freeze as *mut c_void),
        (core_entry::EXECUTABLE_DESTROY, destroy as Destroy as *mut c_void),
    ];
    for (entry, function) in core_hooks {
        hook(core_table, Some(entry), function);
    }
    let amd_hooks: [(usize, *mut c_void); 3] = [
        (POOL_ALLOCATE, pool_allocate as PoolAllocate as *mut c_void),
        (POOL_FREE, pool_free as PoolFree as *mut c_void),
        (ALLOW_ACCESS, allow_access as AllowAccess as *mut c_void),
    ];
    for (newest, function) in amd_hooks {
        hook(amd_table, layout.entry(newest), function);
    }
}

fn discover() {
    agents().clear();
    // SAFETY: the entry's type.
    if let Some(iterate) = unsafe { core::<IterateAgents>(ITERATE_AGENTS) } {
        // SAFETY: the callback has the type asked for.
        unsafe { iterate(found, std::ptr::null_mut()) };
    }
}

unsafe extern "C" fn found(agent: Agent, _data: *mut c_void) -> Status {
    wall(SUCCESS, || {
        // SAFETY: the entry's type.
        let Some(get_info) = (unsafe { core::<GetInfo>(AGENT_GET_INFO) }) else {
            return SUCCESS;
        };
        let ask = |attribute: i32| {
            let mut value = 0u32;
            // SAFETY: both attributes are 32-bit numbers.
            unsafe { get_info(agent, attribute, (&raw mut value).cast()) };
            value
        };
        let kind = ask(info::DEVICE);
        let mut agents = agents();
        let id = if kind == GPU {
            ask(info::DRIVER_NODE)
        } else {
            agents.iter().filter(|known| known.kind == kind).count() as u32
        };
        agents.push(Known { agent, kind, id });
        SUCCESS
    })
}

fn report_device(agent: Agent, memory: *const c_void) {
    let known = agents().iter().find(|known| known.agent == agent).copied();
    if let Some(known) = known {
        let mut data = [0; 9];
        data[0] = word(known.kind, known.id);
        data[1] = agent;
        data[2] = memory as u64;
        report(DEVICE, &data);
    }
}

fn report_allocated(memory: *const c_void, size: usize, handle: u64, get_info: Option<GetInfo>) {
    let ask = |attribute: i32| {
        let mut value = 0u32;
        if let Some(get_info) = get_info {
            // SAFETY: segment and flags of a region or a pool are 32-bit numbers.
            unsafe { get_info(handle, attribute, (&raw mut value).cast()) };
        }
        value
    };
    let mut data = [0; 9];
    data[0] = memory as u64;
    data[1] = size as u64;
    data[2] = word(ask(info::POOL_SEGMENT), ask(info::POOL_FLAGS));
    report(ALLOCATE, &data);
}

unsafe extern "C" fn memory_allocate(region: u64, size: usize, place: *mut *mut c_void) -> Status {
    // SAFETY: the entry's type; the caller's own arguments.
    let status = unsafe { core::<RegionAllocate>(MEMORY_ALLOCATE).map_or(STATUS_ERROR, |f| f(region, size, place)) };
    if status == SUCCESS && is_wanted(ALLOCATE) {
        wall((), || {
            // SAFETY: the call succeeded, so the address is set; the entry's type.
            let (memory, get_info) = unsafe { (*place, core(REGION_GET_INFO)) };
            report_allocated(memory, size, region, get_info);
        });
    }
    status
}

unsafe extern "C" fn memory_assign_agent(memory: *mut c_void, agent: Agent, access: i32) -> Status {
    // SAFETY: the entry's type; the caller's own arguments.
    let status = unsafe { core::<AssignAgent>(MEMORY_ASSIGN_AGENT).map_or(STATUS_ERROR, |f| f(memory, agent, access)) };
    if status == SUCCESS && is_wanted(DEVICE) {
        wall((), || report_device(agent, memory));
    }
    status
}

unsafe extern "C" fn memory_copy(to: *mut c_void, from: *const c_void, size: usize) -> Status {
    // SAFETY: the entry's type; the caller's own arguments.
    let status = unsafe { core::<MemoryCopy>(MEMORY_COPY).map_or(STATUS_ERROR, |f| f(to, from, size)) };
    if status == SUCCESS && is_wanted(MEMCOPY) {
        wall((), || {
            let mut data = [0; 9];
            data[0] = to as u64;
            data[1] = from as u64;
            data[2] = size as u64;
            report(MEMCOPY, &data);
        });
    }
    status
}

unsafe extern "C" fn pool_allocate(pool: Pool, size: usize, flags: u32, place: *mut *mut c_void) -> Status {
    // SAFETY: the entry's type; the caller's own arguments.
    let status = unsafe { amd::<PoolAllocate>(POOL_ALLOCATE).map_or(STATUS_ERROR, |f| f(pool, size, flags, place)) };
    if status != SUCCESS || size == 0 {
        return status;
    }
    wall((), || {
        // SAFETY: the call succeeded, so the address is set.
        let memory = unsafe { *place };
        if is_wanted(ALLOCATE) {
            // SAFETY: the entry's type.
            report_allocated(memory, size, pool, unsafe { amd(POOL_GET_INFO) });
        }
        if is_wanted(DEVICE) {
            report_owners(pool, memory);
        }
    });
    status
}

/// Reports the agents that may use a pool's memory by default.
fn report_owners(pool: Pool, memory: *const c_void) {
    // SAFETY: the entry's type.
    let Some(access) = (unsafe { amd::<AgentPoolInfo>(AGENT_POOL_GET_INFO) }) else {
        return;
    };
    let all = agents().clone();
    for known in all {
        let mut value = 0u32;
        // SAFETY: attribute 0 is the access, a 32-bit number.
        let asked = unsafe { access(known.agent, pool, 0, (&raw mut value).cast()) };
        if asked == SUCCESS && value == ALLOWED {
            report_device(known.agent, memory);
        }
    }
}

unsafe extern "C" fn pool_free(memory: *mut c_void) -> Status {
    if is_wanted(ALLOCATE) {
        wall((), || {
            let mut data = [0; 9];
            data[0] = memory as u64;
            report(ALLOCATE, &data);
        });
    }
    // SAFETY: the entry's type; the caller's own argument.
    unsafe { amd::<PoolFree>(POOL_FREE).map_or(STATUS_ERROR, |f| f(memory)) }
}

unsafe extern "C" fn allow_access(
    count: u32,
    allowed: *const Agent,
    flags: *const u32,
    memory: *const c_void,
) -> Status {
    // SAFETY: the entry's type; the caller's own arguments.
    let status = unsafe { amd::<AllowAccess>(ALLOW_ACCESS).map_or(STATUS_ERROR, |f| f(count, allowed, flags, memory)) };
    if status == SUCCESS && is_wanted(DEVICE) {
        wall((), || {
            for number in 0..count as usize {
                // SAFETY: the caller's array has `count` elements.
                report_device(unsafe { *allowed.add(number) }, memory);
            }
        });
    }
    status
}

unsafe extern "C" fn freeze(executable: Executable, options: *const c_char) -> Status {
    // SAFETY: the entry's type; the caller's own arguments.
    let status =
        unsafe { core::<Freeze>(core_entry::EXECUTABLE_FREEZE).map_or(STATUS_ERROR, |f| f(executable, options)) };
    if status == SUCCESS {
        report_code_objects(executable, false);
    }
    status
}

unsafe extern "C" fn destroy(executable: Executable) -> Status {
    report_code_objects(executable, true);
    // SAFETY: the entry's type; the caller's own argument.
    unsafe { core::<Destroy>(core_entry::EXECUTABLE_DESTROY).map_or(STATUS_ERROR, |f| f(executable)) }
}

/// Input of the loader's callback.
struct Visit {
    get_info: unsafe extern "C" fn(LoadedCodeObject, i32, *mut c_void) -> Status,
    is_unload: bool,
}

fn report_code_objects(executable: Executable, is_unload: bool) {
    if !is_wanted(CODE_OBJECT) {
        return;
    }
    wall((), || {
        let mut loader = Loader::default();
        let size = size_of::<Loader>();
        // SAFETY: the entry's type.
        let Some(get_table) = (unsafe { core::<GetExtension>(GET_EXTENSION_TABLE) }) else {
            return;
        };
        // SAFETY: the buffer has the size that is passed.
        if unsafe { get_table(EXTENSION_LOADER, 1, size, (&raw mut loader).cast()) } != SUCCESS {
            return;
        }
        if let (Some(iterate), Some(get_info)) =
            (loader.iterate_loaded_code_objects, loader.loaded_code_object_get_info)
        {
            let mut visit = Visit { get_info, is_unload };
            // SAFETY: the callback has the type asked for and gets the address of `visit`, which lives during the call.
            unsafe { iterate(executable, visited, (&raw mut visit).cast()) };
        }
    });
}

unsafe extern "C" fn visited(_executable: Executable, object: LoadedCodeObject, data: *mut c_void) -> Status {
    wall(SUCCESS, || {
        // SAFETY: the address that `report_code_objects` passed.
        let visit = unsafe { &*data.cast::<Visit>() };
        let ask = |attribute: i32| {
            let mut value = 0u64;
            // SAFETY: all attributes asked for here are numbers of up to 64 bits.
            unsafe { (visit.get_info)(object, attribute, (&raw mut value).cast()) };
            value
        };
        let storage = ask(STORAGE_TYPE) as u32;
        let mut data = [0; 9];
        let mut file = -1i32;
        match storage {
            IN_FILE => file = ask(STORAGE_FILE) as i32,
            IN_MEMORY => {
                data[1] = ask(MEMORY_BASE);
                data[2] = ask(MEMORY_SIZE);
            }
            _ => return SUCCESS,
        }
        data[0] = word(storage, file as u32);
        data[3] = ask(info::LOADED_BASE);
        data[4] = ask(info::LOADED_SIZE);
        data[5] = ask(LOAD_DELTA);
        let length = ask(info::LOADED_URI_LENGTH) as u32;
        let mut uri = vec![0u8; length as usize + 1];
        // SAFETY: the buffer has the length that the loader gave.
        unsafe { (visit.get_info)(object, info::LOADED_URI, uri.as_mut_ptr().cast()) };
        data[6] = u64::from(length);
        data[7] = uri.as_ptr() as u64;
        data[8] = u64::from(visit.is_unload);
        report(CODE_OBJECT, &data);
        SUCCESS
    })
}
