//! Joins packets with calls: the thread that reserves a packet stores its current call there.
//!
//! Any thread may pass the packets on, so the handler's thread is no indication.

#![expect(unsafe_code, reason = "hooks with the run-time's signatures")]

use super::queue::{self, Queue};
use super::{Hsa, hook, hsa};
use crate::guard::wall;
use crate::origin::Origin;
use crate::state::{self, word};
use crate::thread;
use hsa_sys::abi::Queue as HsaQueue;
use hsa_sys::table::{Table, core_entry};
use std::ffi::c_void;

pub(crate) type Add = unsafe extern "C" fn(*const HsaQueue, u64) -> u64;
type Cas = unsafe extern "C" fn(*const HsaQueue, u64, u64) -> u64;
type Store = unsafe extern "C" fn(*const HsaQueue, u64);

/// The functions behind the hooks.
pub(crate) struct Originals {
    add: [Add; 4],
    cas: [Cas; 4],
    store: [Store; 2],
}

impl Originals {
    pub(crate) fn load(table: Table) -> Option<Self> {
        let ([a0, a1, a2, a3], [c0, c1, c2, c3]) = (core_entry::ADD_WRITE_INDEX, core_entry::CAS_WRITE_INDEX);
        // SAFETY: the table is the run-time's; the entry of each number has its field's type in every release.
        unsafe {
            Some(Self {
                add: [table.typed(a0)?, table.typed(a1)?, table.typed(a2)?, table.typed(a3)?],
                cas: [table.typed(c0)?, table.typed(c1)?, table.typed(c2)?, table.typed(c3)?],
                store: [
                    table.typed(core_entry::STORE_WRITE_INDEX_RELAXED)?,
                    table.typed(core_entry::STORE_WRITE_INDEX_SCRELEASE)?,
                ],
            })
        }
    }
}

impl Originals {
    /// The first function that reserves packets.
    pub(crate) const fn first_add(&self) -> Add {
        let [add, ..] = self.add;
        add
    }
}

#[inline(always)]
fn note(hsa: &Hsa, handle: *const HsaQueue, first: u64, count: u64) {
    wall((), || {
        if let Some(queue) = queue::find(handle as u64) {
            if state::is_on(word::HSA) {
                note_in(queue, first, count);
            }
            // Queues stay intercepted when everything is switched off.
            queue.reserve(hsa, handle, first, count);
        }
    });
}

#[inline(always)]
fn note_in(queue: &Queue, first: u64, count: u64) {
    let (correlation, who) = match thread::quietly() {
        Some(thread) => (thread.current.get(), thread.origin().word()),
        None => (0, Origin::new(thread::gettid(), 0, 0).word()),
    };
    if count > queue.slots.launches() {
        return queue.wide.note(first, count, [correlation, who]);
    }
    for index in first..first.saturating_add(count) {
        queue.slots.note(index, correlation, who);
    }
}

unsafe extern "C" fn add<const N: usize>(queue: *const HsaQueue, value: u64) -> u64 {
    let Some(hsa) = hsa() else { return 0 };
    // SAFETY: the caller's own arguments.
    let first = hsa
        .index
        .add
        .get(N)
        .map_or(0, |original| unsafe { original(queue, value) });
    note(hsa, queue, first, value);
    first
}

unsafe extern "C" fn cas<const N: usize>(queue: *const HsaQueue, expected: u64, value: u64) -> u64 {
    let Some(hsa) = hsa() else { return 0 };
    let original = hsa.index.cas.get(N);
    // SAFETY: the caller's own arguments.
    let seen = original.map_or(0, |original| unsafe { original(queue, expected, value) });
    if seen == expected && value > expected {
        note(hsa, queue, expected, value - expected);
    }
    seen
}

unsafe extern "C" fn store<const N: usize>(queue: *const HsaQueue, value: u64) {
    let Some(hsa) = hsa() else { return };
    // SAFETY: the caller's own argument.
    let before = unsafe { (hsa.core.load_write_index)(queue) };
    if value > before {
        note(hsa, queue, before, value - before);
    }
    if let Some(original) = hsa.index.store.get(N) {
        // SAFETY: the caller's own arguments.
        unsafe { original(queue, value) };
    }
}

pub(crate) fn patch(table: Table) {
    let ([a0, a1, a2, a3], [c0, c1, c2, c3]) = (core_entry::ADD_WRITE_INDEX, core_entry::CAS_WRITE_INDEX);
    hook(table, a0, add::<0> as Add as *mut c_void);
    hook(table, a1, add::<1> as Add as *mut c_void);
    hook(table, a2, add::<2> as Add as *mut c_void);
    hook(table, a3, add::<3> as Add as *mut c_void);
    hook(table, c0, cas::<0> as Cas as *mut c_void);
    hook(table, c1, cas::<1> as Cas as *mut c_void);
    hook(table, c2, cas::<2> as Cas as *mut c_void);
    hook(table, c3, cas::<3> as Cas as *mut c_void);
    hook(
        table,
        core_entry::STORE_WRITE_INDEX_RELAXED,
        store::<0> as Store as *mut c_void,
    );
    hook(
        table,
        core_entry::STORE_WRITE_INDEX_SCRELEASE,
        store::<1> as Store as *mut c_void,
    );
}
