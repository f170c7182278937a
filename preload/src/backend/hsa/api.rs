//! Records HSA calls: every entry of the run-time's tables gets a stub in front of its function.
//!
//! The exported functions jump through the tables, so calls of the program and of HIP arrive here. Calls inside the
//! run-time do not, nor those of the collector, which uses the functions behind the stubs.
//!
//! GPU work has the correlation id of the enclosing HIP call, or, without one, that of the HSA call.
//!
//! Not recorded here: `hsa_init`, in which the tables arrive; see [`super::init`].

#![expect(unsafe_code, reason = "calls through the saved registers of another function's call")]

use super::hook;
use crate::backend::hip;
use crate::collector::{self, Call};
use crate::guard::wall;
use crate::process::Process;
use crate::state::{self, word};
use crate::thread;
use core::mem::MaybeUninit;
use gate::{Passage, STUB, gate, stubs};
use hsa_sys::function::{self, Function};
use hsa_sys::table::{AmdLayout, Root, Table};
use roctop_ring::record::{Domain, status};
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::c_void;

/// First index and number of entries of each table, equal to the number of totals.
const CORE: (usize, usize) = (0, 160);
const AMD: (usize, usize) = (160, 128);
const IMAGE: (usize, usize) = (288, 32);
const FINALIZER: (usize, usize) = (320, 16);
const COUNT: usize = 336;
/// Number of stack words copied for a function with unknown arguments.
const UNKNOWN_WORDS: u64 = 16;

/// An entry: its previous function and description.
struct PatchedEntry {
    /// Previous function; 0 if the entry is not patched.
    previous: AtomicU64,
    /// Operation number, domain, stack argument words, and whether it returns a status, 16 bits each.
    what: AtomicU64,
}

static PLACES: [PatchedEntry; COUNT] = [const {
    PatchedEntry {
        previous: AtomicU64::new(0),
        what: AtomicU64::new(0),
    }
}; COUNT];

/// Process for which names were emitted: a restarted run-time has new tables with the same functions.
static NAMED: AtomicU64 = AtomicU64::new(0);

/// A call in progress.
#[repr(C, align(16))]
struct Frame {
    passage: Passage,
    call: MaybeUninit<Call>,
    /// Correlation id that was current before the call.
    current: u64,
}

stubs!(fn stubs, COUNT, gate);
gate!(fn gate, Frame, enter, exit);

/// Replaces a missing function; no stub of such an entry is in a table.
extern "C" fn nothing() -> u32 {
    0x1000
}

/// Hook before the function; returns its address.
extern "C" fn enter(frame: &mut Frame) -> *const c_void {
    let Some(place) = PLACES.get(frame.passage.place as usize) else {
        return nothing as extern "C" fn() -> u32 as *const c_void;
    };
    if state::is_on(word::HSA) {
        wall((), || record_enter(frame, place));
    }
    place.previous.load(Ordering::Acquire) as *const c_void
}

#[inline(always)]
fn record_enter(frame: &mut Frame, place: &PatchedEntry) {
    let what = place.what.load(Ordering::Relaxed);
    let before = thread::existing().map_or(0, |thread| thread.current.get());
    let Some(call) = collector::api_enter(Domain((what >> 16) as u8), what as u16, wanted::HSA_API) else {
        return;
    };
    // The frame of the HIP call that makes this call is above.
    if call.thread.hip_frame.get() > std::ptr::from_ref(frame) as usize {
        call.thread.current.set(before);
    }
    frame.current = before;
    frame.call.write(call);
    frame.passage.come_back(what >> 32 & 0xffff);
}

/// Hook after the function.
extern "C" fn exit(frame: &mut Frame) {
    wall((), || {
        // SAFETY: the assembly comes here only when `record_enter` asked for it, and then it wrote the call.
        let call = unsafe { frame.call.assume_init_ref() };
        let Some(place) = PLACES.get(frame.passage.place as usize) else {
            return;
        };
        // A forked child that returns from its parent's call has no ring for that call.
        if thread::existing().is_none_or(|thread| !std::ptr::eq(thread, call.thread)) {
            return;
        }
        let has_status = place.what.load(Ordering::Relaxed) >> 48 != 0;
        collector::api_exit(call, has_status.then_some(frame.passage.result() as i32), 0);
        call.thread.current.set(frame.current);
    });
}

/// Installs the stubs in the tables and emits their functions' names.
pub(crate) fn patch(process: &Process, root: &Root, layout: AmdLayout) {
    let tables = [
        (root.core, Domain::HSA_CORE, CORE, "hsa_core"),
        (root.amd, Domain::HSA_AMD, AMD, "hsa_amd"),
        (root.image, Domain::HSA_IMAGE, IMAGE, "hsa_image"),
        (root.finalizer, Domain::HSA_FINALIZER, FINALIZER, "hsa_finalizer"),
    ];
    let is_named =
        NAMED.swap(std::ptr::from_ref(process) as u64, Ordering::Relaxed) == std::ptr::from_ref(process) as u64;
    let mut patched = 0;
    for (base, domain, range, title) in tables {
        let Some(table) = Table::new(base) else { continue };
        let known = |entry: usize| match domain {
            Domain::HSA_CORE => function::CORE.get(entry),
            Domain::HSA_AMD => function::amd(layout, entry),
            Domain::HSA_IMAGE => function::IMAGE.get(entry),
            _ => function::FINALIZER.get(entry),
        };
        // SAFETY: the table is the run-time's.
        for entry in 0..unsafe { table.entries() }.min(range.1) {
            let function = known(entry);
            if patch_entry(table, entry, domain, range.0, function).is_none() {
                continue;
            }
            patched += 1;
            match function {
                _ if is_named => {}
                Some(function) => hip::name(process, domain, entry as u16, function.name.as_bytes()),
                None => hip::name(process, domain, entry as u16, format!("{title}#{entry}").as_bytes()),
            }
        }
    }
    process.say(status::BACKEND, patched, "HSA calls: wrapped functions");
}

fn patch_entry(table: Table, entry: usize, domain: Domain, first: usize, function: Option<&Function>) -> Option<()> {
    // SAFETY: the table is the run-time's.
    let previous = unsafe { table.function(entry) }?;
    let place = PLACES.get(first + entry)?;
    let words = function.map_or(UNKNOWN_WORDS, |function| u64::from(function.stack_words));
    let has_status = function.is_some_and(|function| function.has_status);
    let what = entry as u64 | u64::from(domain.0) << 16 | words << 32 | u64::from(has_status) << 48;
    place.what.store(what, Ordering::Relaxed);
    // Release: a caller of the stub finds the function.
    place.previous.store(previous as u64, Ordering::Release);
    let stubs = (stubs as unsafe extern "C" fn() as usize).next_multiple_of(STUB);
    hook(table, entry, (stubs + (first + entry) * STUB) as *mut c_void);
    Some(())
}
