//! ROC-TX's dispatch tables, which librocprofiler-sdk-roctx passes on at its first call (ROCm 6.2 and later).
//!
//! Its exported functions jump through the tables at every call. A call of the collector's exported function continues
//! at the library's and then arrives here; such calls are marked per thread and recorded once. A program that has the
//! library's own functions (opened with `RTLD_LOCAL` or `RTLD_DEEPBIND`) arrives only here. The mark decides, not the
//! function behind the exported one: another ROC-TX library may be there, and the first call passes the tables on while
//! it is in progress.

#![expect(unsafe_code, reason = "writes into a library's tables of functions")]

use super::{Mark, NameDevice, NameThing, Pop, Push, Start, Stop, Switch, ThreadId};
use crate::notices;
use crate::{real, tls};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{c_char, c_int, c_void};

/// A function, numbered over all tables.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    Mark,
    Push,
    Pop,
    Start,
    Stop,
    ThreadId,
    Pause,
    Resume,
    NameThread,
    NameAgent,
    NameDevice,
    NameStream,
}

/// The tables in their order; each begins with its size in bytes (`roctxCoreApiTable_t`, `roctxControlApiTable_t`,
/// `roctxNameApiTable_t` of rocprofiler-sdk 0.4 to 1.x).
const TABLES: [&[Entry]; 3] = [
    &[
        Entry::Mark,
        Entry::Push,
        Entry::Pop,
        Entry::Start,
        Entry::Stop,
        Entry::ThreadId,
    ],
    &[Entry::Pause, Entry::Resume],
    &[
        Entry::NameThread,
        Entry::NameAgent,
        Entry::NameDevice,
        Entry::NameStream,
    ],
];

/// Previous pointers of the entries; 0 if not wrapped.
static ORIGINALS: [AtomicU64; 12] = [const { AtomicU64::new(0) }; 12];

/// Passes a recorded call on to the real function, marked as recorded.
#[inline]
pub(super) fn pass<R>(entry: Entry, real: impl FnOnce() -> R) -> R {
    let before = tls::passing();
    tls::set_passing(1 + entry as usize);
    let result = real();
    tls::set_passing(before);
    result
}

impl Entry {
    /// Whether this thread passed the call on after recording it. Clears the mark.
    #[inline]
    fn is_passed(self) -> bool {
        let is_it = tls::passing() == 1 + self as usize;
        if is_it {
            tls::set_passing(0);
        }
        is_it
    }

    fn held(self) -> Option<&'static AtomicU64> {
        ORIGINALS.get(self as usize)
    }

    /// Our function for the entry.
    fn ours(self) -> u64 {
        let address = match self {
            Self::Mark => mark as Mark as *const c_void,
            Self::Push => push as Push as *const c_void,
            Self::Pop => pop as Pop as *const c_void,
            Self::Start => start as Start as *const c_void,
            Self::Stop => stop as Stop as *const c_void,
            Self::ThreadId => thread_id as ThreadId as *const c_void,
            Self::Pause => pause_by as Switch as *const c_void,
            Self::Resume => resume_by as Switch as *const c_void,
            Self::NameThread => name_thread as Push as *const c_void,
            Self::NameAgent => name_hsa_agent as NameThing as *const c_void,
            Self::NameDevice => name_device as NameDevice as *const c_void,
            Self::NameStream => name_stream as NameThing as *const c_void,
        };
        address as u64
    }
}

/// Previous function of an entry, with the given type.
macro_rules! held {
    ($entry:ident as $ty:ty) => {{
        let address = Entry::$entry.held().map_or(0, |held| held.load(Ordering::Acquire));
        // SAFETY: 0 is none; else what `wrap` found in this entry, whose functions have this type.
        unsafe { std::mem::transmute::<usize, Option<$ty>>(address as usize) }
    }};
}

/// A function for a table: a call that was recorded before goes to the previous function; any other is recorded first.
macro_rules! entry {
    ($name:ident($($argument:ident: $ty:ty),*) $(-> $result:ty)?, $entry:ident as $real:ty) => {
        unsafe extern "C" fn $name($($argument: $ty),*) $(-> $result)? {
            match held!($entry as $real) {
                // SAFETY: the caller's own arguments.
                Some(real) if Entry::$entry.is_passed() => unsafe { real($($argument),*) },
                // SAFETY: as above.
                real => unsafe { super::$name($($argument,)* real) },
            }
        }
    };
}

entry!(mark(message: *const c_char), Mark as Mark);
entry!(push(message: *const c_char) -> c_int, Push as Push);
entry!(pop() -> c_int, Pop as Pop);
entry!(start(message: *const c_char) -> u64, Start as Start);
entry!(stop(id: u64), Stop as Stop);
entry!(thread_id(tid: *mut u64) -> c_int, ThreadId as ThreadId);
entry!(pause_by(tid: u64) -> c_int, Pause as Switch);
entry!(resume_by(tid: u64) -> c_int, Resume as Switch);
entry!(name_thread(name: *const c_char) -> c_int, NameThread as Push);
entry!(name_hsa_agent(name: *const c_char, agent: *const c_void) -> c_int, NameAgent as NameThing);
entry!(name_device(name: *const c_char, device: c_int) -> c_int, NameDevice as NameDevice);
entry!(name_stream(name: *const c_char, stream: *const c_void) -> c_int, NameStream as NameThing);

/// Wraps the functions of a library's tables in place; returns their number. The library stays loaded.
///
/// # Safety
/// `tables` are null or ROC-TX's, in their order.
pub(crate) unsafe fn wrap(tables: &[*mut c_void]) -> usize {
    let (mut wrapped, mut others) = (0, 0);
    for (table, entries) in tables.iter().zip(TABLES).filter(|(table, _)| !table.is_null()) {
        // SAFETY: a table begins with its size.
        let bytes = unsafe { *table.cast::<usize>() };
        for (index, entry) in entries.iter().enumerate().take(bytes.saturating_sub(8) / 8) {
            // SAFETY: the entry is within the table's stated size.
            let place = unsafe { &*table.cast::<AtomicU64>().add(1 + index) };
            let (found, ours) = (place.load(Ordering::Acquire), entry.ours());
            let Some(held) = entry.held().filter(|_| found != 0 && found != ours) else {
                continue;
            };
            match held.compare_exchange(0, found, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => real::pin(found as usize as *const c_void),
                Err(before) if before == found => {}
                Err(_) => {
                    // Ours can pass on to one function only.
                    others += 1;
                    continue;
                }
            }
            // Release: a caller of ours finds the previous function.
            place.store(ours, Ordering::Release);
            wrapped += 1;
        }
    }
    if others > 0 {
        let text = "a second library passed on tables of roctx: calls of its functions are not recorded";
        notices::post(others, text);
    }
    wrapped
}
