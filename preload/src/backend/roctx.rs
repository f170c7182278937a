//! ROC-TX: wraps the functions of libroctx64 and librocprofiler-sdk-roctx, records calls and passes them on.
//!
//! The functions work before HIP starts and without HIP. On a machine without ROC-TX, the launcher adds a directory
//! with the drop-in libraries to the search path (or, in a build without them, with links to this library). A program
//! that opens one by name and looks functions up gets those of this library, see [`stand_in`]. Calls that bypass them
//! are recorded in the library's dispatch tables, see [`table`].

#![expect(unsafe_code, reason = "exported functions with C strings")]

mod listener;
mod name;
mod real;
pub(crate) mod table;

pub use listener::{Listener, roctxRegisterTracerCallback};
pub use name::{roctxNameHipDevice, roctxNameHipStream, roctxNameHsaAgent, roctxNameOsThread};
pub(crate) use real::stand_in;

use crate::config::config;
use crate::guard::{Errno, wall};
use crate::state::{self, word};
use crate::{collector, thread};
use listener::{OP_MARK, OP_POP, OP_PUSH, OP_START, OP_STOP, notify};
use name::{name_device, name_hsa_agent, name_stream, name_thread};
use real::{MARK, PAUSE, POP, PUSH, RESUME, START, STOP, THREAD_ID, typed};
use roctop_ring::record::{Domain, marker_call};
use roctop_ring::session::wanted;
use roctop_ring::sync::Ordering;
use std::ffi::{CStr, c_char, c_int, c_void};
use table::{Entry, pass};

/// Types of the functions.
type Mark = unsafe extern "C" fn(*const c_char);
type Push = unsafe extern "C" fn(*const c_char) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;
type Start = unsafe extern "C" fn(*const c_char) -> u64;
type Stop = unsafe extern "C" fn(u64);
type Switch = unsafe extern "C" fn(u64) -> c_int;
type NameThing = unsafe extern "C" fn(*const c_char, *const c_void) -> c_int;
type NameDevice = unsafe extern "C" fn(*const c_char, c_int) -> c_int;
type ThreadId = unsafe extern "C" fn(*mut u64) -> c_int;

/// Whether anything is to be recorded. Creates the ring file at first use.
#[inline]
fn is_on() -> bool {
    match word(word::COLLECTOR).load(Ordering::Acquire) {
        state::ON => true,
        state::OFF => false,
        _ => {
            let _errno = Errno::keep();
            let is_traced = thread::current().is_some();
            if !is_traced {
                thread::count_reentrant();
            }
            is_traced
        }
    }
}

fn text<'a>(message: *const c_char) -> &'a [u8] {
    if message.is_null() {
        return b"";
    }
    // SAFETY: not null; the program passes a terminated string that lives during the call.
    unsafe { CStr::from_ptr(message) }.to_bytes()
}

/// Major version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn roctx_version_major() -> u32 {
    4
}

/// Minor version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn roctx_version_minor() -> u32 {
    1
}

/// Sets a mark.
///
/// # Safety
/// `message` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxMarkA(message: *const c_char) {
    let real = typed!(MARK as Mark);
    // SAFETY: as the caller says.
    unsafe { mark(message, real) }
}

/// Records a mark and passes it on.
unsafe fn mark(message: *const c_char, real: Option<Mark>) {
    wall((), || {
        if is_on() {
            collector::mark(text(message));
        }
    });
    match real {
        // SAFETY: the caller's own argument.
        Some(real) => pass(Entry::Mark, || unsafe { real(message) }),
        None => notify(OP_MARK, message, 0),
    }
}

/// Pushes a range; returns its level, from 0.
///
/// # Safety
/// `message` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRangePushA(message: *const c_char) -> c_int {
    let real = typed!(PUSH as Push);
    // SAFETY: as the caller says.
    unsafe { push(message, real) }
}

unsafe fn push(message: *const c_char, real: Option<Push>) -> c_int {
    let level = wall(0, || if is_on() { collector::push(text(message)) } else { 0 });
    if let Some(real) = real {
        // SAFETY: the caller's own argument.
        return pass(Entry::Push, || unsafe { real(message) });
    }
    notify(OP_PUSH, message, 0);
    level
}

/// Pops the innermost pushed range; returns the level after it, -1 if none was open.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRangePop() -> c_int {
    let real = typed!(POP as Pop);
    // SAFETY: it takes no arguments.
    unsafe { pop(real) }
}

unsafe fn pop(real: Option<Pop>) -> c_int {
    let level = wall(-1, || if is_on() { collector::pop() } else { -1 });
    if let Some(real) = real {
        // SAFETY: it takes no arguments.
        return pass(Entry::Pop, || unsafe { real() });
    }
    notify(OP_POP, std::ptr::null(), 0);
    level
}

/// Starts a range that any thread may stop; returns its id.
///
/// # Safety
/// `message` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRangeStartA(message: *const c_char) -> u64 {
    let real = typed!(START as Start);
    // SAFETY: as the caller says.
    unsafe { start(message, real) }
}

unsafe fn start(message: *const c_char, real: Option<Start>) -> u64 {
    // The id must be known before the range is stored, so the real function is called first.
    // SAFETY: the caller's own argument.
    let given = real.map(|real| pass(Entry::Start, || unsafe { real(message) }));
    let id = wall(given.unwrap_or(0), || {
        if !is_on() {
            return given.unwrap_or(0);
        }
        let id = given.unwrap_or_else(collector::range_id);
        collector::start(id, text(message));
        id
    });
    if given.is_none() {
        notify(OP_START, message, id);
    }
    id
}

/// Stops a started range.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRangeStop(id: u64) {
    let real = typed!(STOP as Stop);
    // SAFETY: every number may be passed.
    unsafe { stop(id, real) }
}

unsafe fn stop(id: u64, real: Option<Stop>) {
    wall((), || {
        if is_on() {
            collector::stop(id);
        }
    });
    match real {
        // SAFETY: the caller's own argument.
        Some(real) => pass(Entry::Stop, || unsafe { real(id) }),
        None => notify(OP_STOP, std::ptr::null(), id),
    }
}

/// Pauses recording of all threads; the id of a single thread is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn roctxProfilerPause(tid: u64) -> c_int {
    let real = typed!(PAUSE as Switch);
    // SAFETY: every number may be passed.
    unsafe { pause_by(tid, real) }
}

unsafe fn pause_by(tid: u64, real: Option<Switch>) -> c_int {
    // The call itself is still recorded.
    let call = enter(marker_call::PAUSE);
    wall((), pause);
    // SAFETY: the caller's own argument.
    let result = real.map_or(0, |real| pass(Entry::Pause, || unsafe { real(tid) }));
    exit(call, result);
    result
}

/// Resumes recording.
#[unsafe(no_mangle)]
pub extern "C" fn roctxProfilerResume(tid: u64) -> c_int {
    let real = typed!(RESUME as Switch);
    // SAFETY: every number may be passed.
    unsafe { resume_by(tid, real) }
}

unsafe fn resume_by(tid: u64, real: Option<Switch>) -> c_int {
    wall((), resume);
    let call = enter(marker_call::RESUME);
    // SAFETY: the caller's own argument.
    let result = real.map_or(0, |real| pass(Entry::Resume, || unsafe { real(tid) }));
    exit(call, result);
    result
}

/// Begins a call that is neither mark nor range.
fn enter(op: u16) -> Option<collector::Call> {
    wall(None, || {
        is_on()
            .then(|| collector::api_enter(Domain::MARKER, op, wanted::MARKER))
            .flatten()
    })
}

fn exit(call: Option<collector::Call>, result: c_int) {
    if let Some(call) = call {
        wall((), || collector::api_exit(&call, Some(result), 0));
    }
}

/// Recording state that the program requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recording {
    /// Running.
    On,
    /// Paused.
    Paused,
}

/// The program requests a pause.
pub(crate) fn pause() {
    switch(Recording::Paused);
}

/// The program requests to resume.
pub(crate) fn resume() {
    switch(Recording::On);
}

fn switch(wish: Recording) {
    if !is_on() {
        return;
    }
    if !config().is_some_and(|config| config.counts_pauses) {
        return set_paused(wish == Recording::Paused);
    }
    let resumed = word(word::RESUMED);
    let next = |count: u64| match wish {
        Recording::Paused => count.checked_sub(1),
        Recording::On => count.checked_add(1),
    };
    // It is already paused: nothing more to pause.
    if resumed.try_update(Ordering::AcqRel, Ordering::Acquire, next).is_err() {
        return;
    }
    // Another thread may have counted meanwhile: the last count wins.
    loop {
        let is_paused = resumed.load(Ordering::Acquire) == 0;
        set_paused(is_paused);
        if (resumed.load(Ordering::Acquire) == 0) == is_paused {
            return;
        }
    }
}

fn set_paused(on: bool) {
    if word(word::PAUSED).swap(u64::from(on), Ordering::AcqRel) != u64::from(on) {
        collector::switched(!on, 2);
    }
}

/// Writes the calling thread's kernel thread id.
///
/// # Safety
/// `tid` is null or points to room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxGetThreadId(tid: *mut u64) -> c_int {
    let real = typed!(THREAD_ID as ThreadId);
    // SAFETY: as the caller says.
    unsafe { thread_id(tid, real) }
}

unsafe fn thread_id(tid: *mut u64, real: Option<ThreadId>) -> c_int {
    let call = enter(marker_call::THREAD_ID);
    let result = if let Some(real) = real {
        // SAFETY: the caller's own argument.
        pass(Entry::ThreadId, || unsafe { real(tid) })
    } else {
        if !tid.is_null() {
            // SAFETY: not null, and the caller gives room for a number; gettid cannot fail.
            unsafe { *tid = libc::syscall(libc::SYS_gettid) as u64 };
        }
        0
    };
    exit(call, result);
    result
}
