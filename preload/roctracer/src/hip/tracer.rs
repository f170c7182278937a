//! The run-time's single callback (5.3.1 and later), for calls and for work.
//!
//! A call's structure begins with the run-time's `hip_api_data_t`, which the program's callbacks receive unchanged;
//! four words of ours follow. Its size differs by release; in releases with a pointer to the program's own word, that
//! pointer is its last field.

use super::name;
use crate::domain::Domain;
use crate::engage::settle_all;
use crate::pool::Opened;
use crate::record::Record;
use crate::registration::{self, REGISTERED};
use crate::wall::wall;
use crate::{clock, control, correlation};
use hip_sys::tracer::{CORRELATION, DOMAIN_API, DOMAIN_OPS, OP_DISPATCH, Register, SMALLEST_POINTER, Tail};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Offset of the phase.
pub(super) const PHASE: usize = 8;
/// Phase value: the call returns.
pub(super) const EXIT: u32 = 1;

/// Offset of the structure's tail; 0 if unknown, and then no call is requested.
static TAIL: AtomicUsize = AtomicUsize::new(0);

/// Calls that destroy what the run-time reads when it reports work. A program's wait for that work ends before the report: HIP
/// 7.2 then reads freed memory and crashes.
const DESTROYING: [&CStr; 2] = [c"hipStreamDestroy", c"hipGraphExecDestroy"];
/// Their numbers; 0 if unknown.
static DESTROYING_OPS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// Registers or removes the callback.
pub(super) fn set(register: Register, tail: Option<usize>, is_wanted: bool) {
    for (known, name) in DESTROYING_OPS.iter().zip(DESTROYING) {
        known.store(name::call(name).unwrap_or(0), Ordering::Release);
    }
    TAIL.store(tail.unwrap_or(0), Ordering::Release);
    // SAFETY: a store of a pointer inside the run-time; this library stays loaded once something is registered.
    unsafe { register(is_wanted.then_some(traced)) };
}

unsafe extern "C" fn traced(domain: u32, op: u32, data: *mut c_void) -> i32 {
    wall(-1, || match domain {
        DOMAIN_API => enter(op, data),
        DOMAIN_OPS => work(op, data.cast()),
        _ => -1,
    })
}

fn tail(data: *mut c_void) -> *mut Tail {
    data.wrapping_byte_add(TAIL.load(Ordering::Acquire)).cast()
}

/// Before a call. The run-time fills in the arguments only if the callback wants them.
#[inline]
fn enter(op: u32, data: *mut c_void) -> i32 {
    if DESTROYING_OPS.iter().any(|known| known.load(Ordering::Acquire) == op) {
        settle_all();
    }
    let callback = REGISTERED.hip_callbacks.get(op);
    let records = REGISTERED.hip_records.get(op);
    if (callback.is_none() && records.is_none()) || control::is_stopped() || TAIL.load(Ordering::Acquire) == 0 {
        return -1;
    }
    if data.is_null() {
        return 0;
    }
    // SAFETY: the structure begins with the correlation id in every release.
    unsafe { data.byte_add(CORRELATION).cast::<u64>().write(correlation::enter()) };
    let words = Tail {
        enter_timestamp: if records.is_some() { clock::now() } else { 0 },
        phase_data: 0,
        phase_enter: callback.map(|_| entered as _),
        phase_exit: Some(if callback.is_some() { exit_notified } else { exit }),
    };
    // SAFETY: the offset is the size of the arguments in this release, behind which the structure has these words.
    unsafe { tail(data).write(words) };
    0
}

/// Calls the program's function, if it is still registered.
fn call_back(op: u32, data: *mut c_void, phase: u32) {
    let Some(words) = REGISTERED.hip_callbacks.get(op) else {
        return;
    };
    // SAFETY: the phase is there in every release.
    unsafe { data.byte_add(PHASE).cast::<u32>().write(phase) };
    let (function, argument) = registration::callback(words);
    // SAFETY: the program's callback, called as the interface says.
    unsafe { function(Domain::HipApi as u32, op, data, argument) };
}

/// The arguments are available.
unsafe extern "C" fn entered(op: u32, data: *mut c_void) {
    wall((), || {
        let tail = tail(data);
        let word = tail.wrapping_byte_add(std::mem::offset_of!(Tail, phase_data));
        // SAFETY: the word in front of the tail is the release's pointer to the program's own word.
        unsafe { tail.cast::<*mut c_void>().sub(1).write(word.cast()) };
        call_back(op, data, 0);
        // SAFETY: `enter` of this very call wrote it.
        let words = unsafe { &mut *tail };
        if words.enter_timestamp != 0 {
            // The program's callback does not count as part of the call.
            words.enter_timestamp = clock::now();
        }
    });
}

unsafe extern "C" fn exit(op: u32, data: *mut c_void) {
    wall((), || returned(op, data, false));
}

unsafe extern "C" fn exit_notified(op: u32, data: *mut c_void) {
    wall((), || returned(op, data, true));
}

/// The call returns.
fn returned(op: u32, data: *mut c_void, is_notified: bool) {
    // SAFETY: `enter` of this very call wrote it.
    let begin = unsafe { (*tail(data)).enter_timestamp };
    let end = if begin == 0 { 0 } else { clock::now() };
    if is_notified {
        call_back(op, data, EXIT);
    }
    if begin != 0
        && let Some(pool) = REGISTERED.hip_records.get(op).and_then(Opened::of_words)
    {
        // SAFETY: `enter` wrote it; the run-time keeps it.
        let correlation = unsafe { data.byte_add(CORRELATION).cast::<u64>().read() };
        call(pool, op, correlation, begin, end);
    }
    correlation::leave();
}

/// Writes a call's record, preceded by the program's external id if it has set one.
pub(super) fn call(pool: Opened, op: u32, correlation: u64, begin: u64, end: u64) {
    let record = Record::call(Domain::HipApi, op, correlation, begin, end);
    match Record::external(correlation) {
        Some(external) => pool.write(&[external, record], None),
        None => pool.write(&[record], None),
    }
}

/// A query about an operation, or its record.
fn work(op: u32, data: *const Record) -> i32 {
    let Some(pool) = REGISTERED
        .hip_work
        .get(op)
        .filter(|_| !control::is_stopped())
        .and_then(Opened::of_words)
    else {
        return -1;
    };
    // Null queries whether the operation is requested; other small values are marks of newer releases.
    if data as usize >= SMALLEST_POINTER {
        // SAFETY: the run-time's record, valid during the call.
        let record = unsafe { &*data };
        if op == OP_DISPATCH {
            pool.write_named(record);
        } else {
            pool.write(&[*record], None);
        }
    }
    0
}
