//! The program's registrations: callbacks and pools by operation, and the pools themselves.
//!
//! Changes are made under one lock; traced calls read the tables without it.

use crate::domain::{self, Domain};
use crate::lock::Lock;
use crate::pool::{self, Opened, Pool, Properties};
use crate::status::{DEFAULT_POOL_ALREADY_DEFINED, DEFAULT_POOL_UNDEFINED, INVALID_ARGUMENT, Result, fail};
use crate::table::Table;
use crate::{loader, thread};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::Once;

/// Capacity of the tables for HIP and HSA calls.
pub(crate) const HIP_CALLS: usize = 1024;
pub(crate) const HSA_CALLS: usize = 512;

/// `activity_rtapi_callback_t`.
pub type Callback = unsafe extern "C" fn(domain: u32, op: u32, data: *const c_void, argument: *mut c_void);

/// All registrations.
pub(crate) struct Registrations {
    pub(crate) hip_callbacks: Table<HIP_CALLS>,
    pub(crate) hip_records: Table<HIP_CALLS>,
    pub(crate) hip_work: Table<{ domain::HIP_OPS }>,
    pub(crate) hsa_callbacks: Table<HSA_CALLS>,
    pub(crate) hsa_records: Table<HSA_CALLS>,
    pub(crate) hsa_work: Table<{ domain::HSA_OPS }>,
    pub(crate) hsa_events: Table<{ domain::HSA_EVENTS }>,
    pub(crate) roctx: Table<{ domain::ROCTX }>,
}

pub(crate) static REGISTERED: Registrations = Registrations {
    hip_callbacks: Table::new(),
    hip_records: Table::new(),
    hip_work: Table::new(),
    hsa_callbacks: Table::new(),
    hsa_records: Table::new(),
    hsa_work: Table::new(),
    hsa_events: Table::new(),
    roctx: Table::new(),
};

impl Registrations {
    /// Whether any HIP operation is registered.
    pub(crate) fn has_hip(&self) -> bool {
        !(self.hip_callbacks.is_empty() && self.hip_records.is_empty() && self.hip_work.is_empty())
    }

    /// Whether any HSA operation is registered.
    pub(crate) fn has_hsa(&self) -> bool {
        !(self.hsa_callbacks.is_empty()
            && self.hsa_records.is_empty()
            && self.hsa_work.is_empty()
            && self.hsa_events.is_empty())
    }
}

/// The program's function in a registration.
#[inline]
pub(crate) fn callback([function, argument]: [u64; 2]) -> (Callback, *mut c_void) {
    // SAFETY: a callback's registration was made by `set_callback` of a function of this type.
    let function = unsafe { std::mem::transmute::<*const c_void, Callback>(function as usize as *const c_void) };
    (function, argument as usize as *mut c_void)
}

struct Pools {
    all: Vec<&'static Pool>,
    /// Pools of the parent process, whose threads do not exist here.
    abandoned: Vec<&'static Pool>,
    default: Option<Opened>,
}

struct Guarded(UnsafeCell<Pools>);
// SAFETY: used with the lock held.
unsafe impl Sync for Guarded {}

static LOCK: Lock = Lock::new();
static POOLS: Guarded = Guarded(UnsafeCell::new(Pools {
    all: Vec::new(),
    abandoned: Vec::new(),
    default: None,
}));

fn with_pools<R>(body: impl FnOnce(&mut Pools) -> R) -> R {
    let _held = LOCK.hold();
    // SAFETY: the lock is held, and no body re-enters this function.
    body(unsafe { &mut *POOLS.0.get() })
}

/// Registers a callback for operations of a domain, or removes it (`None`).
pub(crate) fn set_callback(domain: Domain, operations: &Range<u32>, function: Option<Callback>, argument: *mut c_void) {
    stay_loaded();
    let words = function.map_or([0; 2], |function| [function as usize as u64, argument as u64]);
    {
        let _held = LOCK.hold();
        for operation in operations.clone() {
            match domain {
                Domain::HipApi => REGISTERED.hip_callbacks.set(operation, words),
                Domain::HsaApi => REGISTERED.hsa_callbacks.set(operation, words),
                Domain::HsaEvent => REGISTERED.hsa_events.set(operation, words),
                Domain::Roctx => REGISTERED.roctx.set(operation, words),
                // Work and external ids have records only.
                Domain::HsaOps | Domain::HipOps | Domain::Kfd | Domain::External => {}
            }
        }
    }
}

/// Registers a pool for operations of a domain, or removes it (`None`).
pub(crate) fn set_pool(domain: Domain, operations: &Range<u32>, pool: Option<Opened>) {
    let words = pool.map_or([0; 2], Opened::words);
    {
        let _held = LOCK.hold();
        for operation in operations.clone() {
            match domain {
                Domain::HipApi => REGISTERED.hip_records.set(operation, words),
                Domain::HipOps => REGISTERED.hip_work.set(operation, words),
                Domain::HsaApi => REGISTERED.hsa_records.set(operation, words),
                Domain::HsaOps => REGISTERED.hsa_work.set(operation, words),
                // Events and marks have callbacks only.
                Domain::HsaEvent | Domain::Roctx | Domain::Kfd | Domain::External => {}
            }
        }
    }
}

/// Runs something short with the registrations' lock held.
pub(crate) fn locked(body: impl FnOnce()) {
    let _held = LOCK.hold();
    body();
}

/// The pool of the program's handle, or the default one for null.
pub(crate) fn pool(handle: *mut c_void) -> Result<Opened> {
    with_pools(|pools| {
        if handle.is_null() {
            return pools
                .default
                .ok_or_else(|| fail(DEFAULT_POOL_UNDEFINED, format_args!("there is no default pool")));
        }
        known(pools, handle).ok_or_else(pool::unknown)
    })
}

fn known(pools: &Pools, handle: *mut c_void) -> Option<Opened> {
    let pool = pools
        .all
        .iter()
        .find(|pool| std::ptr::eq(**pool, handle.cast_const().cast()))?;
    pool::opened(pool)
}

/// Opens a pool: the default one unless the program wants a handle.
pub(crate) fn open(properties: &Properties, is_default: bool) -> Result<Opened> {
    // The lock cannot be held throughout, because the program's allocator is called.
    let defined = || {
        fail(
            DEFAULT_POOL_ALREADY_DEFINED,
            format_args!("there is a default pool already"),
        )
    };
    let pools = with_pools(|pools| {
        if is_default && pools.default.is_some() {
            return Err(defined());
        }
        Ok(pools.all.clone())
    })?;
    stay_loaded();
    let opened = pool::open(properties, &pools)?;
    let is_late = with_pools(|pools| {
        if !pools.all.iter().any(|pool| std::ptr::eq(*pool, opened.pool())) {
            pools.all.push(opened.pool());
        }
        if is_default && pools.default.is_some() {
            return true;
        }
        if is_default {
            pools.default = Some(opened);
        }
        false
    });
    if is_late {
        opened.close()?;
        return Err(defined());
    }
    Ok(opened)
}

/// The pool of the program's handle, or the default one for null; `None` if there is no default.
pub(crate) fn pool_to_close(handle: *mut c_void) -> Result<Option<Opened>> {
    with_pools(|pools| match pools.default {
        None if handle.is_null() => Ok(None),
        Some(default) if handle.is_null() || default.handle() == handle => Ok(Some(default)),
        _ => known(pools, handle).map(Some).ok_or_else(pool::unknown),
    })
}

/// Removes all registrations of a pool.
pub(crate) fn forget(opened: Opened) {
    with_pools(|pools| {
        let ours = opened.words();
        REGISTERED.hip_records.forget(|words| words == ours);
        REGISTERED.hip_work.forget(|words| words == ours);
        REGISTERED.hsa_records.forget(|words| words == ours);
        REGISTERED.hsa_work.forget(|words| words == ours);
        if pools.default.is_some_and(|default| default.words() == ours) {
            pools.default = None;
        }
    });
}

/// The default pool's handle, or null; `next` replaces it unless null.
pub(crate) fn default_pool(next: *mut c_void) -> *mut c_void {
    with_pools(|pools| {
        let before = pools.default.map_or(null_mut(), Opened::handle);
        if !next.is_null() {
            match known(pools, next) {
                Some(next) => pools.default = Some(next),
                None => {
                    pool::unknown();
                }
            }
        }
        before
    })
}

/// Requires a callback.
pub(crate) fn required(function: Option<Callback>) -> Result<Callback> {
    function.ok_or_else(|| fail(INVALID_ARGUMENT, format_args!("there is no callback")))
}

/// Pins this library: from the first registration on, run-times' tables refer to it and threads run in it.
pub(crate) fn stay_loaded() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        loader::pin(stay_loaded as fn() as *const c_void);
        // SAFETY: the three are never unloaded (pinned above).
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    });
}

unsafe extern "C" fn before_fork() {
    LOCK.take();
}

unsafe extern "C" fn after_fork() {
    LOCK.give();
}

/// The child keeps the callbacks but no pool.
unsafe extern "C" fn in_child() {
    // SAFETY: taken before the fork, so held by this thread.
    let pools = unsafe { &mut *POOLS.0.get() };
    let all = std::mem::take(&mut pools.all);
    pools.abandoned.extend(all);
    pools.default = None;
    REGISTERED.hip_records.forget(|_| true);
    REGISTERED.hip_work.forget(|_| true);
    REGISTERED.hsa_records.forget(|_| true);
    REGISTERED.hsa_work.forget(|_| true);
    thread::forked();
    LOCK.give();
}
