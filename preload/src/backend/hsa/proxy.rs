//! Substitute signals for copies whose signal cannot be watched in place, such as one that counts many copies (HIP
//! copies a pitched box row by row).
//!
//! The harvester reads the times and then decrements the program's signal; it sleeps for microseconds while such a copy
//! is in progress. The program's own query of the copy's time is answered from the stored times.

#![expect(unsafe_code, reason = "signals and a hook of the run-time")]

use super::{Hsa, harvest, hook, hsa};
use hsa_sys::abi::{SIGNAL_GPU_ONLY, SUCCESS, SignalHandle, Span, Status};
use hsa_sys::table::{Table, amd_entry};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// Maximum number of substitutes: one per slot of a copy in flight.
const MAX_PROXIES: u64 = 1 << 14;
const KEPT_TIMES: usize = 1024;

static SPARE: Mutex<Vec<SignalHandle>> = Mutex::new(Vec::new());
static MADE: AtomicU64 = AtomicU64::new(0);
static PENDING: AtomicU64 = AtomicU64::new(0);
/// Times by the program's signal: handle, begin, end. The latest ones win.
static TIMES: [[AtomicU64; 3]; KEPT_TIMES] = [const { [const { AtomicU64::new(0) }; 3] }; KEPT_TIMES];

/// Whether a copy with a substitute is in progress.
pub(crate) fn is_pending() -> bool {
    PENDING.load(Ordering::Acquire) != 0
}

/// A signal with value 1; `None` if too many are in use.
pub(crate) fn get(hsa: &Hsa) -> Option<SignalHandle> {
    let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let handle = spare.or_else(|| {
        if MADE.fetch_add(1, Ordering::Relaxed) >= MAX_PROXIES {
            MADE.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let mut handle = 0;
        // SAFETY: `handle` has room for the answer; there are no consumers to list.
        let made = unsafe { (hsa.amd.signal_create)(1, 0, std::ptr::null(), SIGNAL_GPU_ONLY, &raw mut handle) };
        (made == SUCCESS).then_some(handle)
    })?;
    hsa.signal.set(handle, 1);
    PENDING.fetch_add(1, Ordering::AcqRel);
    Some(handle)
}

/// A copy with a substitute was submitted.
pub(crate) fn watch() {
    harvest::wake();
}

/// The copy completed: completes the program's signal, and takes the substitute back.
pub(crate) fn forward(hsa: &Hsa, proxy: SignalHandle, original: SignalHandle, span: Span) {
    if let Some([handle, begin, end]) = TIMES.get(place(original)) {
        handle.store(0, Ordering::Relaxed);
        begin.store(span.start, Ordering::Relaxed);
        end.store(span.end, Ordering::Relaxed);
        handle.store(original, Ordering::Release);
    }
    hsa.signal.complete(original);
    give_back(proxy);
}

/// Returns a substitute that is not needed any more.
pub(crate) fn give_back(proxy: SignalHandle) {
    PENDING.fetch_sub(1, Ordering::AcqRel);
    SPARE.lock().unwrap_or_else(PoisonError::into_inner).push(proxy);
}

/// The copy will not complete: its signal is abandoned, because the hardware may still write to it.
pub(crate) fn abandon() {
    PENDING.fetch_sub(1, Ordering::AcqRel);
}

/// Shutdown of the run-time: destroys the substitutes.
pub(crate) fn discard(hsa: &Hsa) {
    for handle in SPARE.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        MADE.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the signal is ours and nobody uses it any more.
        unsafe { (hsa.core.signal_destroy)(handle) };
    }
}

/// The program's signal gets another time, or is destroyed.
#[inline]
pub(crate) fn forget(original: SignalHandle) {
    if let Some([handle, ..]) = TIMES.get(place(original))
        && handle.load(Ordering::Relaxed) == original
    {
        let _ = handle.compare_exchange(original, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// The run-time starts: drops signals of an earlier one, or of the parent process.
pub(crate) fn forget_all() {
    if let Ok(mut spare) = SPARE.try_lock() {
        spare.clear();
    }
    MADE.store(0, Ordering::Relaxed);
    PENDING.store(0, Ordering::Release);
    for [handle, ..] in &TIMES {
        handle.store(0, Ordering::Relaxed);
    }
}

fn place(handle: SignalHandle) -> usize {
    ((handle >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % KEPT_TIMES
}

type GetTime = unsafe extern "C" fn(SignalHandle, *mut Span) -> Status;

/// The run-time does not know the program's signal if a substitute was used; it may know an older copy.
unsafe extern "C" fn get_time(handle: SignalHandle, out: *mut Span) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    if let Some([key, begin, end]) = TIMES.get(place(handle))
        && key.load(Ordering::Acquire) == handle
        && handle != 0
        && !out.is_null()
    {
        let span = Span {
            start: begin.load(Ordering::Relaxed),
            end: end.load(Ordering::Relaxed),
        };
        // SAFETY: not null, and the caller gives room for the answer.
        unsafe { out.write(span) };
        return SUCCESS;
    }
    // SAFETY: the caller's own arguments.
    unsafe { (hsa.amd.get_async_copy_time)(handle, out) }
}

pub(crate) fn patch(table: Table) {
    hook(
        table,
        amd_entry::GET_ASYNC_COPY_TIME,
        get_time as GetTime as *mut c_void,
    );
}
