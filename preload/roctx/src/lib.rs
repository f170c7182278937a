//! ROC-TX for programs that link it: libroctx64.so.4, and under another name librocprofiler-sdk-roctx.so.1.
//!
//! The library keeps levels and ids, and reports every call to one registered callback; without a callback it does
//! nothing. libroctracer64 registers itself here for its ROCTX domain. Under roctop the collector's functions of the
//! same names come first, record, and call these.
//!
//! Excluded on purpose: any use of a GPU run-time, so that marks work before one starts and without one.

#![expect(unsafe_code, reason = "exported functions and a callback of C")]

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The domain's number, the callback's first argument.
const DOMAIN: u32 = 6;

/// Operations, as passed to the callback.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Operation {
    Mark = 0,
    Push = 1,
    Pop = 2,
    Start = 3,
    Stop = 4,
}

/// `roctx_api_data_t`: the callback's view of a call.
#[repr(C)]
struct Data {
    message: *const c_char,
    id: u64,
}

/// `roctxRegisterTracerCallback`'s argument.
pub type Tracer = unsafe extern "C" fn(domain: u32, op: u32, data: *mut c_void) -> c_int;

static TRACER: AtomicUsize = AtomicUsize::new(0);
static NEXT_RANGE: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// Ranges that this thread has pushed and not popped.
    static LEVEL: Cell<c_int> = const { Cell::new(0) };
}

#[inline]
fn report(operation: Operation, message: *const c_char, id: u64) {
    let tracer = TRACER.load(Ordering::Relaxed) as *const c_void;
    if tracer.is_null() {
        return;
    }
    // SAFETY: only `roctxRegisterTracerCallback` stores here, and what it stores is a `Tracer`.
    let tracer = unsafe { std::mem::transmute::<*const c_void, Tracer>(tracer) };
    let mut data = Data { message, id };
    // SAFETY: the data lives during the call, as the callback expects.
    unsafe { tracer(DOMAIN, operation as u32, (&raw mut data).cast()) };
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

/// Registers the callback for all further calls, in place of the previous one; null removes it.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRegisterTracerCallback(tracer: Option<Tracer>) {
    TRACER.store(tracer.map_or(0, |tracer| tracer as usize), Ordering::Relaxed);
}

/// Records a mark.
///
/// # Safety
/// `message` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxMarkA(message: *const c_char) {
    report(Operation::Mark, message, 0);
}

/// Pushes a range; returns its level, from 0.
///
/// # Safety
/// `message` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRangePushA(message: *const c_char) -> c_int {
    report(Operation::Push, message, 0);
    let level = LEVEL.get();
    LEVEL.set(level.saturating_add(1));
    level
}

/// Pops the innermost range; returns the remaining level, or -1 if none was open.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRangePop() -> c_int {
    report(Operation::Pop, null(), 0);
    let level = LEVEL.get() - 1;
    LEVEL.set(level.max(0));
    level
}

/// Starts a range that any thread may stop; returns its id, from 1.
///
/// # Safety
/// `message` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRangeStartA(message: *const c_char) -> u64 {
    let id = NEXT_RANGE.fetch_add(1, Ordering::Relaxed);
    report(Operation::Start, message, id);
    id
}

/// Stops a started range.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRangeStop(id: u64) {
    report(Operation::Stop, null(), id);
}

/// Would pause a profiler; here it only returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn roctxProfilerPause(_thread: u64) -> c_int {
    0
}

/// Would resume a profiler; here it only returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn roctxProfilerResume(_thread: u64) -> c_int {
    0
}

/// Names the calling thread for a profiler. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn roctxNameOsThread(_name: *const c_char) -> c_int {
    0
}

/// Names an HSA agent for a profiler. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn roctxNameHsaAgent(_name: *const c_char, _agent: *const c_void) -> c_int {
    0
}

/// Names a HIP device for a profiler. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn roctxNameHipDevice(_name: *const c_char, _device: c_int) -> c_int {
    0
}

/// Names a HIP stream for a profiler. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn roctxNameHipStream(_name: *const c_char, _stream: *const c_void) -> c_int {
    0
}

/// Stores the kernel's id of the calling thread. Returns 0, or -1 if `thread` is null.
///
/// # Safety
/// `thread` is null or points to a writable number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxGetThreadId(thread: *mut u64) -> c_int {
    if thread.is_null() {
        return -1;
    }
    // SAFETY: not null, and the caller provides the memory; gettid cannot fail.
    unsafe { *thread = libc::syscall(libc::SYS_gettid) as u64 };
    0
}
