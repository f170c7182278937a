//! Code objects and kernel symbols: emitted as facts when an executable is frozen.

#![expect(
    unsafe_code,
    reason = "callbacks and attributes of the run-time, kernel descriptors in memory"
)]

use super::{Hsa, agent, code, hook, hsa};
use crate::guard::{Errno, wall};
use crate::process::{self, Process};
use crate::state::{self, word};
use crate::{clock, control, thread};
use hsa_sys::abi::{
    Agent as AgentHandle, EXTENSION_LOADER, Executable, LoadedCodeObject, Loader, SUCCESS, Status, Symbol, info,
};
use hsa_sys::table::{Table, core_entry};
use roctop_ring::record::{CodeObject, Domain, KernelSymbol};
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::sync::Mutex;

const KERNEL: u32 = 1;
const MAX_INTERNAL: usize = 512;
/// Prefix of the run-time's own kernels.
const INTERNAL: &[u8] = b"__amd_rocclr_";

static NUMBER: AtomicU64 = AtomicU64::new(0);
static INTERNALS: [AtomicU64; MAX_INTERNAL] = [const { AtomicU64::new(0) }; MAX_INTERNAL];
static INTERNAL_COUNT: AtomicU64 = AtomicU64::new(0);
/// Code objects by executable, to emit their unload.
static LOADED: Mutex<Vec<(Executable, CodeObject)>> = Mutex::new(Vec::new());

/// Maximum number of kernels whose names are kept for graphs.
const MAX_NAMES: usize = 1 << 18;
/// Hashes of kernel names by kernel object.
static NAMES: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// Hashes for all kernels of the run-time that fill, and that copy, buffers and images.
pub(crate) const FILLS: u64 = 1;
pub(crate) const COPIES: u64 = 2;

/// Hash of a kernel's name (FNV-1a).
pub(crate) fn name_hash(name: &[u8]) -> u64 {
    match name.strip_prefix(INTERNAL) {
        Some(own) if own.starts_with(b"fill") => return FILLS,
        Some(own) if own.starts_with(b"copy") => return COPIES,
        _ => {}
    }
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    name.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Hash of the name of a kernel object; none if it is not known, or another thread adds one now.
pub(crate) fn name_of(kernel_object: u64) -> Option<u64> {
    NAMES.try_lock().ok()?.get(&kernel_object).copied()
}

/// Whether this is one of the run-time's own kernels.
pub(crate) fn is_internal(kernel_object: u64) -> bool {
    let count = (INTERNAL_COUNT.load(Ordering::Acquire) as usize).min(MAX_INTERNAL);
    INTERNALS
        .iter()
        .take(count)
        .any(|known| known.load(Ordering::Relaxed) == kernel_object)
}

type Freeze = unsafe extern "C" fn(Executable, *const c_char) -> Status;
type Destroy = unsafe extern "C" fn(Executable) -> Status;

pub(crate) fn patch(table: Table) {
    hook(table, core_entry::EXECUTABLE_FREEZE, freeze as Freeze as *mut c_void);
    hook(table, core_entry::EXECUTABLE_DESTROY, destroy as Destroy as *mut c_void);
}

unsafe extern "C" fn freeze(executable: Executable, options: *const c_char) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    // SAFETY: the caller's own arguments.
    let status = unsafe { (hsa.core.executable_freeze)(executable, options) };
    if status == SUCCESS && state::is_on(word::HSA) {
        wall((), || {
            let _errno = Errno::keep();
            if thread::is_traced()
                && let Some(process) = process::get()
            {
                thread::aside(|| emit(hsa, process, executable));
            }
        });
    }
    status
}

unsafe extern "C" fn destroy(executable: Executable) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    if state::is_on(word::HSA) {
        wall((), || {
            let _errno = Errno::keep();
            let (Some(process), Ok(mut loaded)) = (process::get(), LOADED.lock()) else {
                return;
            };
            loaded.retain(|(owner, object)| {
                if *owner == executable {
                    code::finish(object.id);
                    let fact = CodeObject {
                        state: 2,
                        time: clock::now(),
                        ..*object
                    };
                    process.fact(CodeObject::head(0, Domain::NONE), &fact.payload());
                }
                *owner != executable
            });
        });
    }
    // SAFETY: the caller's own argument.
    unsafe { (hsa.core.executable_destroy)(executable) }
}

struct Visit<'a> {
    hsa: &'a Hsa,
    process: &'a Process,
    loader: Loader,
    objects: Vec<CodeObject>,
    /// Their URIs.
    uris: Vec<Vec<u8>>,
}

fn emit(hsa: &Hsa, process: &Process, executable: Executable) {
    let mut visit = Visit {
        hsa,
        process,
        loader: Loader::default(),
        objects: Vec::new(),
        uris: Vec::new(),
    };
    let (room, size) = ((&raw mut visit.loader).cast(), size_of::<Loader>());
    // SAFETY: the extension's table has at least these five functions since release 1.1 of it.
    unsafe { (hsa.core.get_extension_table)(EXTENSION_LOADER, 1, size, room) };
    if let Some(iterate) = visit.loader.iterate_loaded_code_objects {
        // SAFETY: `object` has the type asked for and gets the address of `visit`, which lives during the call.
        unsafe { iterate(executable, object, (&raw mut visit).cast()) };
    }
    for gpu in hsa.agents.all().iter().filter(|agent| agent.kind == agent::GPU) {
        // SAFETY: as above.
        unsafe { (hsa.core.iterate_agent_symbols)(executable, gpu.handle, symbol, (&raw mut visit).cast()) };
    }
    if let Ok(mut loaded) = LOADED.lock() {
        for (object, uri) in visit.objects.iter().zip(visit.uris) {
            // Several GPUs load the same code object: one reading is enough.
            if loaded.iter().all(|known| known.1.uri != object.uri) {
                code::read_later(object.id, uri);
            }
            loaded.push((executable, *object));
        }
    }
}

unsafe extern "C" fn object(_executable: Executable, object: LoadedCodeObject, data: *mut c_void) -> Status {
    wall((), || {
        // SAFETY: `data` is the address that `emit` passed.
        let visit = unsafe { &mut *data.cast::<Visit<'_>>() };
        let Some(get) = visit.loader.loaded_code_object_get_info else {
            return;
        };
        let number = |attribute| {
            let mut value = 0u64;
            // SAFETY: the attributes asked for are numbers of at most 64 bits.
            unsafe { get(object, attribute, (&raw mut value).cast()) };
            value
        };
        let length = number(info::LOADED_URI_LENGTH) as u32 as usize;
        let mut uri = vec![0u8; length.min(4096) + 8];
        if length > 0 && length <= 4096 {
            // SAFETY: the room is as long as the run-time said.
            unsafe { get(object, info::LOADED_URI, uri.as_mut_ptr().cast()) };
        }
        let uri = uri.split(|byte| *byte == 0).next().unwrap_or_default();
        let fact = CodeObject {
            id: NUMBER.fetch_add(1, Ordering::Relaxed) + 1,
            base: number(info::LOADED_BASE),
            size: number(info::LOADED_SIZE),
            time: clock::now(),
            agent: visit.hsa.agents.index(number(info::LOADED_AGENT)),
            uri: visit.process.intern(uri),
            state: 1,
            reserved: 0,
        };
        visit.process.fact(CodeObject::head(0, Domain::NONE), &fact.payload());
        visit.objects.push(fact);
        visit.uris.push(uri.to_vec());
    });
    SUCCESS
}

unsafe extern "C" fn symbol(_executable: Executable, agent: AgentHandle, symbol: Symbol, data: *mut c_void) -> Status {
    wall((), || {
        // SAFETY: `data` is the address that `emit` passed.
        let visit = unsafe { &mut *data.cast::<Visit<'_>>() };
        kernel(visit, agent, symbol);
    });
    SUCCESS
}

fn kernel(visit: &Visit<'_>, agent: AgentHandle, symbol: Symbol) {
    let get = visit.hsa.core.symbol_get_info;
    let number = |attribute| {
        let mut value = 0u64;
        // SAFETY: the attributes asked for are numbers of at most 64 bits.
        unsafe { get(symbol, attribute, (&raw mut value).cast()) };
        value
    };
    if number(info::SYMBOL_TYPE) as u32 != KERNEL {
        return;
    }
    let mut name = vec![0u8; number(info::SYMBOL_NAME_LENGTH) as u32 as usize + 8];
    // SAFETY: the room is as long as the run-time said.
    unsafe { get(symbol, info::SYMBOL_NAME, name.as_mut_ptr().cast()) };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = name.strip_suffix(b".kd").unwrap_or(name);
    let kernel_object = number(info::KERNEL_OBJECT);
    if name.starts_with(INTERNAL) {
        keep_internal(kernel_object);
    } else {
        forget_internal(kernel_object);
    }
    if control::is_asked(wanted::SITES)
        && let Ok(mut names) = NAMES.lock()
        && (names.len() < MAX_NAMES || names.contains_key(&kernel_object))
    {
        names.insert(kernel_object, name_hash(name));
    }
    let index = visit.hsa.agents.index(agent);
    let owner = visit.objects.iter().find(|object| {
        object.agent == index && (object.base..object.base.saturating_add(object.size)).contains(&kernel_object)
    });
    let descriptor = descriptor(&visit.loader, kernel_object);
    let word = |at: usize| descriptor.and_then(|words| words.get(at / 4).copied()).unwrap_or(0);
    let fact = KernelSymbol {
        kernel_object,
        code_object: owner.map_or(0, |object| object.id),
        time: clock::now(),
        name: visit.process.intern(name),
        agent: index,
        kernarg_size: number(info::KERNARG_SIZE) as u32,
        group_size: number(info::GROUP_SIZE) as u32,
        private_size: number(info::PRIVATE_SIZE) as u32,
        rsrc1: word(48),
        rsrc2: word(52),
        rsrc3: word(44),
        properties: word(56) as u16,
        has_descriptor: u16::from(descriptor.is_some()),
    };
    visit.process.fact(KernelSymbol::head(0, Domain::NONE), &fact.payload());
}

/// The 64-byte kernel descriptor, if the host can read it.
fn descriptor(loader: &Loader, kernel_object: u64) -> Option<[u32; 16]> {
    let query = loader.query_host_address?;
    let mut host = std::ptr::null();
    // SAFETY: the loader takes any address and says whether it knows it.
    if unsafe { query(kernel_object as usize as *const c_void, &raw mut host) } != SUCCESS || host.is_null() {
        return None;
    }
    // SAFETY: the loader says that the host may read the descriptor there; it is 64 bytes long.
    Some(unsafe { host.cast::<[u32; 16]>().read_unaligned() })
}

/// Another kernel is at this address now.
fn forget_internal(kernel_object: u64) {
    for known in &INTERNALS {
        if known.load(Ordering::Relaxed) == kernel_object {
            known.store(0, Ordering::Relaxed);
        }
    }
}

fn keep_internal(kernel_object: u64) {
    if is_internal(kernel_object) {
        return;
    }
    let at = INTERNAL_COUNT.load(Ordering::Relaxed) as usize;
    if let Some(place) = INTERNALS.get(at) {
        place.store(kernel_object, Ordering::Relaxed);
        INTERNAL_COUNT.store(at as u64 + 1, Ordering::Release);
    }
}
