//! Hooks of the functions that change signals, so that a watched signal's times are taken first.

use super::super::{hook, hsa, observed, proxy, ring_wrap};
use super::before_change;
use super::table::find;
use crate::guard::wall;
use crate::state::{self, word};
use hsa_sys::abi::{SUCCESS, SignalHandle, Status};
use hsa_sys::table::{Table, core_entry};
use std::ffi::c_void;

type Store = unsafe extern "C" fn(SignalHandle, i64);
type Exchange = unsafe extern "C" fn(SignalHandle, i64) -> i64;
type Cas = unsafe extern "C" fn(SignalHandle, i64, i64) -> i64;

/// The functions behind the hooks.
pub(crate) struct Originals {
    store: [Store; 4],
    exchange: [Exchange; 4],
    add: [Store; 8],
    cas: [Cas; 4],
}

impl Originals {
    pub(crate) fn load(table: Table) -> Self {
        macro_rules! all {
            ($entries:expr) => {
                $entries.map(|entry| {
                    // SAFETY: the table is the run-time's; the entries of these numbers have the array's type.
                    unsafe { std::mem::transmute::<*mut c_void, _>(table.function(entry).unwrap_or(missing())) }
                })
            };
        }
        Self {
            store: all!(core_entry::SIGNAL_STORE),
            exchange: all!(core_entry::SIGNAL_EXCHANGE),
            add: all!(core_entry::SIGNAL_ADD),
            cas: all!(core_entry::SIGNAL_CAS),
        }
    }
}

impl Originals {
    /// Sets a signal of the collector's.
    pub(crate) fn set(&self, handle: SignalHandle, value: i64) {
        // SAFETY: the signal is ours.
        unsafe { (self.store[0])(handle, value) };
    }

    /// Rings a doorbell of the program.
    pub(crate) fn ring(&self, doorbell: SignalHandle, index: u64) {
        // SAFETY: the queue exists.
        unsafe { (self.store[1])(doorbell, index.cast_signed()) };
    }

    /// Decrements a signal of the program, as a completion does.
    pub(crate) fn complete(&self, handle: SignalHandle) {
        const SUBTRACT_SCRELEASE: usize = 6;
        // SAFETY: the program waits for this completion, so the signal exists.
        unsafe { (self.add[SUBTRACT_SCRELEASE])(handle, 1) };
    }
}

/// Replaces a missing entry; never called, because a missing entry is not hooked.
fn missing() -> *mut c_void {
    extern "C" fn nothing() {}
    nothing as extern "C" fn() as *mut c_void
}

#[inline(always)]
fn change(handle: SignalHandle) {
    if state::is_on(word::HSA) {
        wall((), || before_change(handle));
    }
}

unsafe extern "C" fn store<const N: usize>(handle: SignalHandle, value: i64) {
    change(handle);
    if state::is_on(word::HSA) {
        wall((), || observed::before_store(handle, value));
    }
    let Some(hsa) = hsa() else { return };
    ring_wrap::before_ring(hsa, handle);
    if let Some(original) = hsa.signal.store.get(N) {
        // SAFETY: the caller's own arguments.
        unsafe { original(handle, value) };
    }
}

unsafe extern "C" fn exchange<const N: usize>(handle: SignalHandle, value: i64) -> i64 {
    change(handle);
    // SAFETY: the caller's own arguments.
    hsa()
        .and_then(|hsa| hsa.signal.exchange.get(N))
        .map_or(0, |original| unsafe { original(handle, value) })
}

unsafe extern "C" fn add<const N: usize>(handle: SignalHandle, value: i64) {
    change(handle);
    if let Some(original) = hsa().and_then(|hsa| hsa.signal.add.get(N)) {
        // SAFETY: the caller's own arguments.
        unsafe { original(handle, value) };
    }
}

unsafe extern "C" fn cas<const N: usize>(handle: SignalHandle, expected: i64, value: i64) -> i64 {
    change(handle);
    // SAFETY: the caller's own arguments.
    hsa()
        .and_then(|hsa| hsa.signal.cas.get(N))
        .map_or(0, |original| unsafe { original(handle, expected, value) })
}

unsafe extern "C" fn destroy(handle: SignalHandle) -> Status {
    proxy::forget(handle);
    if state::is_on(word::HSA) {
        wall((), || {
            before_change(handle);
            if let Some(watch) = find(handle) {
                watch.lose();
            }
        });
    }
    // SAFETY: the caller's own argument.
    hsa().map_or(SUCCESS, |hsa| unsafe { (hsa.core.signal_destroy)(handle) })
}

macro_rules! hook_all {
    ($table:expr, $entries:expr, $function:ident as $ty:ty: $($n:literal)*) => {
        $(hook($table, $entries[$n], $function::<$n> as $ty as *mut c_void);)*
    };
}

pub(crate) fn patch(table: Table) {
    hook_all!(table, core_entry::SIGNAL_STORE, store as Store: 0 1 2 3);
    hook_all!(table, core_entry::SIGNAL_EXCHANGE, exchange as Exchange: 0 1 2 3);
    hook_all!(table, core_entry::SIGNAL_ADD, add as Store: 0 1 2 3 4 5 6 7);
    hook_all!(table, core_entry::SIGNAL_CAS, cas as Cas: 0 1 2 3);
    hook(
        table,
        core_entry::SIGNAL_DESTROY,
        destroy as unsafe extern "C" fn(SignalHandle) -> Status as *mut c_void,
    );
}
