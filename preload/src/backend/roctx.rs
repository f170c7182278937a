//! ROC-TX: the functions of libroctx64 and librocprofiler-sdk-roctx, recorded and passed on to the real ones.
//!
//! They work before HIP starts and without HIP. On a machine without ROC-TX the launcher adds a directory with the drop-in
//! libraries to the search path (or, in a build that carries none, with links to this one): a program that opens one by
//! name and looks functions up in it gets those of this library, see [`stand_in`]. Calls that come past them are found in
//! the library's dispatch tables, see [`table`].

#![expect(unsafe_code, reason = "exported functions with C strings")]

pub(crate) mod table;

use super::hsa::agent::{self, Agent};
use crate::config::config;
use crate::guard::{Errno, wall};
use crate::process;
use crate::state::{self, word};
use crate::{collector, real, thread};
use roctop_ring::record::{Domain, marker_call, status};
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_char, c_int, c_void};
use table::{Entry, pass};

/// The functions' types; those of one type share a name.
type Mark = unsafe extern "C" fn(*const c_char);
type Push = unsafe extern "C" fn(*const c_char) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;
type Start = unsafe extern "C" fn(*const c_char) -> u64;
type Stop = unsafe extern "C" fn(u64);
type Switch = unsafe extern "C" fn(u64) -> c_int;
type NameThing = unsafe extern "C" fn(*const c_char, *const c_void) -> c_int;
type NameDevice = unsafe extern "C" fn(*const c_char, c_int) -> c_int;
type ThreadId = unsafe extern "C" fn(*mut u64) -> c_int;

/// Is anything to be recorded? Makes the ring file at first use.
#[inline]
fn is_on() -> bool {
    match word(word::COLLECTOR).load(Ordering::Acquire) {
        state::ON => true,
        state::OFF => false,
        _ => {
            let _errno = Errno::keep();
            thread::current().is_some()
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

/// A real function behind ours: 0 not looked for yet, 1 there is none.
struct Real {
    address: AtomicU64,
    name: &'static CStr,
}

/// The real functions.
macro_rules! reals {
    ($($place:ident $name:literal)*) => {
        $(static $place: Real = Real { address: AtomicU64::new(0), name: $name };)*
        static ALL: [&Real; [$($name),*].len()] = [$(&$place),*];
    };
}

reals! {
    MARK c"roctxMarkA"
    PUSH c"roctxRangePushA"
    POP c"roctxRangePop"
    START c"roctxRangeStartA"
    STOP c"roctxRangeStop"
    PAUSE c"roctxProfilerPause"
    RESUME c"roctxProfilerResume"
    NAME_THREAD c"roctxNameOsThread"
    NAME_AGENT c"roctxNameHsaAgent"
    NAME_DEVICE c"roctxNameHipDevice"
    NAME_STREAM c"roctxNameHipStream"
    THREAD_ID c"roctxGetThreadId"
    LISTEN c"roctxRegisterTracerCallback"
}

impl Real {
    #[inline]
    fn get(&self) -> Option<*mut c_void> {
        match self.address.load(Ordering::Relaxed) {
            0 => self.find(),
            1 => None,
            found => Some(found as *mut c_void),
        }
    }

    /// Looks for all of them at once, so that a signal handler does not come to look for one in the middle of malloc.
    #[cold]
    fn find(&self) -> Option<*mut c_void> {
        if thread::is_aside() {
            return None;
        }
        let _errno = Errno::keep();
        thread::aside(|| {
            for real in ALL {
                let found = real::next(real.name).or_else(|| in_library(real.name));
                let found = found.map_or(1, |address| address as u64);
                real.address.store(found, Ordering::Relaxed);
            }
        });
        let found = self.address.load(Ordering::Relaxed);
        (found > 1).then_some(found as *mut c_void)
    }
}

/// How the file names of libraries with these functions begin.
const LIBRARIES: [&str; 2] = ["libroctx64.so", "librocprofiler-sdk-roctx.so"];

/// The function of a library that only a part of the program sees, as what an interpreter imports.
fn in_library(name: &CStr) -> Option<*mut c_void> {
    let listen = roctxRegisterTracerCallback as unsafe extern "C" fn(_) as *mut c_void;
    let found = LIBRARIES
        .iter()
        .find_map(|library| real::loaded(library)?.0.symbol(name))?;
    (Some(found) != own(name) && found != listen).then_some(found)
}

/// The function of ours that stands for the one that a program looked up in a library of its own, which becomes the real
/// one behind it and stays loaded; none when another library is behind it already.
pub(crate) fn stand_in(name: &CStr, found: *mut c_void) -> Option<*mut c_void> {
    let ours = own(name)?;
    let real = ALL.iter().find(|real| real.name == name)?;
    if found == ours || !LIBRARIES.iter().any(|library| real::lies_in(found, library)) {
        return None;
    }
    if real.get().is_none() {
        real::pin(found);
        real.address.store(found as u64, Ordering::Release);
    }
    (real.address.load(Ordering::Acquire) == found as u64).then_some(ours)
}

fn own(name: &CStr) -> Option<*mut c_void> {
    Some(match name.to_bytes() {
        b"roctxMarkA" => roctxMarkA as unsafe extern "C" fn(_) as *mut c_void,
        b"roctxRangePushA" => roctxRangePushA as unsafe extern "C" fn(_) -> _ as *mut c_void,
        b"roctxRangePop" => roctxRangePop as extern "C" fn() -> _ as *mut c_void,
        b"roctxRangeStartA" => roctxRangeStartA as unsafe extern "C" fn(_) -> _ as *mut c_void,
        b"roctxRangeStop" => roctxRangeStop as extern "C" fn(_) as *mut c_void,
        b"roctxProfilerPause" => roctxProfilerPause as extern "C" fn(_) -> _ as *mut c_void,
        b"roctxProfilerResume" => roctxProfilerResume as extern "C" fn(_) -> _ as *mut c_void,
        b"roctxNameOsThread" => roctxNameOsThread as unsafe extern "C" fn(_) -> _ as *mut c_void,
        b"roctxNameHsaAgent" => roctxNameHsaAgent as unsafe extern "C" fn(_, _) -> _ as *mut c_void,
        b"roctxNameHipDevice" => roctxNameHipDevice as unsafe extern "C" fn(_, _) -> _ as *mut c_void,
        b"roctxNameHipStream" => roctxNameHipStream as unsafe extern "C" fn(_, _) -> _ as *mut c_void,
        b"roctxGetThreadId" => roctxGetThreadId as unsafe extern "C" fn(_) -> _ as *mut c_void,
        _ => return None,
    })
}

/// The real function as a function of the given type.
macro_rules! real {
    ($place:ident as $ty:ty) => {
        $place.get().map(|address| {
            // SAFETY: the symbol of this name has this type in every release of the library.
            unsafe { std::mem::transmute::<*mut c_void, $ty>(address) }
        })
    };
}

/// `roctxRegisterTracerCallback`'s argument: domain, operation, `{message, id}`.
pub type Listener = unsafe extern "C" fn(u32, u32, *mut c_void) -> c_int;

/// Whom to tell of calls when no ROC-TX library is behind this one; 0 nobody.
static LISTENER: AtomicU64 = AtomicU64::new(0);
/// The domain and the operations, as listeners get them.
const DOMAIN: u32 = 6;
const OP_MARK: u32 = 0;
const OP_PUSH: u32 = 1;
const OP_POP: u32 = 2;
const OP_START: u32 = 3;
const OP_STOP: u32 = 4;

/// `roctx_api_data_t`.
#[repr(C)]
struct Told {
    message: *const c_char,
    id: u64,
}

#[inline]
fn tell(op: u32, message: *const c_char, id: u64) {
    let listener = LISTENER.load(Ordering::Acquire) as *const c_void;
    if !listener.is_null() {
        // SAFETY: only `roctxRegisterTracerCallback` stores here, and what it stores is a `Listener`.
        let listener = unsafe { std::mem::transmute::<*const c_void, Listener>(listener) };
        let mut data = Told { message, id };
        // SAFETY: the data lives during the call, as the listener expects.
        unsafe { listener(DOMAIN, op, (&raw mut data).cast()) };
    }
}

/// Another tool wants to hear of calls (libroctracer64 does, for its ROCTX domain); null for not any more.
///
/// # Safety
/// The function stays loaded until it is taken back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRegisterTracerCallback(listener: Option<Listener>) {
    match real!(LISTEN as unsafe extern "C" fn(Option<Listener>)) {
        // SAFETY: the caller's own argument.
        Some(real) => unsafe { real(listener) },
        None => LISTENER.store(
            listener.map_or(0, |listener| listener as usize as u64),
            Ordering::Release,
        ),
    }
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

/// A mark.
///
/// # Safety
/// `message` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxMarkA(message: *const c_char) {
    let real = real!(MARK as Mark);
    // SAFETY: as the caller says.
    unsafe { mark(message, real) }
}

/// Recorded, and passed on.
unsafe fn mark(message: *const c_char, real: Option<Mark>) {
    wall((), || {
        if is_on() {
            collector::mark(text(message));
        }
    });
    match real {
        // SAFETY: the caller's own argument.
        Some(real) => pass(Entry::Mark, || unsafe { real(message) }),
        None => tell(OP_MARK, message, 0),
    }
}

/// A range is pushed; returns its level, from 0.
///
/// # Safety
/// `message` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRangePushA(message: *const c_char) -> c_int {
    let real = real!(PUSH as Push);
    // SAFETY: as the caller says.
    unsafe { push(message, real) }
}

unsafe fn push(message: *const c_char, real: Option<Push>) -> c_int {
    let level = wall(0, || if is_on() { collector::push(text(message)) } else { 0 });
    if let Some(real) = real {
        // SAFETY: the caller's own argument.
        return pass(Entry::Push, || unsafe { real(message) });
    }
    tell(OP_PUSH, message, 0);
    level
}

/// The innermost pushed range ends; returns the level after it, -1 when none was open.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRangePop() -> c_int {
    let real = real!(POP as Pop);
    // SAFETY: it takes no arguments.
    unsafe { pop(real) }
}

unsafe fn pop(real: Option<Pop>) -> c_int {
    let level = wall(-1, || if is_on() { collector::pop() } else { -1 });
    if let Some(real) = real {
        // SAFETY: it takes no arguments.
        return pass(Entry::Pop, || unsafe { real() });
    }
    tell(OP_POP, std::ptr::null(), 0);
    level
}

/// A range begins that any thread may stop; returns its id.
///
/// # Safety
/// `message` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRangeStartA(message: *const c_char) -> u64 {
    let real = real!(START as Start);
    // SAFETY: as the caller says.
    unsafe { start(message, real) }
}

unsafe fn start(message: *const c_char, real: Option<Start>) -> u64 {
    // The id must be known before the range is kept, so the real function goes first.
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
        tell(OP_START, message, id);
    }
    id
}

/// A started range stops.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRangeStop(id: u64) {
    let real = real!(STOP as Stop);
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
        None => tell(OP_STOP, std::ptr::null(), id),
    }
}

/// Recording pauses, of all threads; the id of a single thread is taken for all.
#[unsafe(no_mangle)]
pub extern "C" fn roctxProfilerPause(tid: u64) -> c_int {
    let real = real!(PAUSE as Switch);
    // SAFETY: every number may be passed.
    unsafe { pause_by(tid, real) }
}

unsafe fn pause_by(tid: u64, real: Option<Switch>) -> c_int {
    // The call itself is still recorded.
    let call = enter(marker_call::PAUSE);
    wall((), || pause(true));
    // SAFETY: the caller's own argument.
    let result = real.map_or(0, |real| pass(Entry::Pause, || unsafe { real(tid) }));
    exit(call, result);
    result
}

/// Recording goes on.
#[unsafe(no_mangle)]
pub extern "C" fn roctxProfilerResume(tid: u64) -> c_int {
    let real = real!(RESUME as Switch);
    // SAFETY: every number may be passed.
    unsafe { resume_by(tid, real) }
}

unsafe fn resume_by(tid: u64, real: Option<Switch>) -> c_int {
    wall((), || pause(false));
    let call = enter(marker_call::RESUME);
    // SAFETY: the caller's own argument.
    let result = real.map_or(0, |real| pass(Entry::Resume, || unsafe { real(tid) }));
    exit(call, result);
    result
}

/// A call begins that is neither mark nor range.
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

/// The program asks for recording to pause or go on.
pub(crate) fn pause(on: bool) {
    if !is_on() {
        return;
    }
    if !config().is_some_and(|config| config.counts_pauses) {
        return set_paused(on);
    }
    let resumed = word(word::RESUMED);
    let next = |count: u64| if on { count.checked_sub(1) } else { count.checked_add(1) };
    // What is paused already is not paused further.
    if resumed.try_update(Ordering::AcqRel, Ordering::Acquire, next).is_err() {
        return;
    }
    // Another thread may have counted meanwhile: the last count holds.
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

/// Names the calling thread.
///
/// # Safety
/// `name` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxNameOsThread(name: *const c_char) -> c_int {
    let real = real!(NAME_THREAD as Push);
    // SAFETY: as the caller says.
    unsafe { name_thread(name, real) }
}

unsafe fn name_thread(name: *const c_char, real: Option<Push>) -> c_int {
    wall((), || {
        if is_on()
            && let (Some(process), Some(thread)) = (process::get(), thread::current())
        {
            process.name(status::THREAD_NAME, u64::from(thread.tid()), text(name));
        }
    });
    let call = enter(marker_call::NAME_THREAD);
    // SAFETY: the caller's own argument.
    let result = real.map_or(0, |real| pass(Entry::NameThread, || unsafe { real(name) }));
    exit(call, result);
    result
}

/// Names an HSA agent; a call is recorded too.
///
/// # Safety
/// `name` is null or a terminated string, `agent` null or an agent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxNameHsaAgent(name: *const c_char, agent: *const c_void) -> c_int {
    let real = real!(NAME_AGENT as NameThing);
    // SAFETY: as the caller says.
    unsafe { name_hsa_agent(name, agent, real) }
}

unsafe fn name_hsa_agent(name: *const c_char, agent: *const c_void, real: Option<NameThing>) -> c_int {
    // SAFETY: an agent is one handle.
    let handle = (!agent.is_null()).then(|| unsafe { agent.cast::<u64>().read_unaligned() });
    name_agent(text(name), || super::hsa::hsa()?.agents.by_handle(handle?));
    let call = enter(marker_call::NAME_AGENT);
    // SAFETY: the caller's own arguments.
    let result = real.map_or(0, |real| pass(Entry::NameAgent, || unsafe { real(name, agent) }));
    exit(call, result);
    result
}

/// An agent gets a name, where it is known.
fn name_agent(name: &[u8], agent: impl FnOnce() -> Option<&'static Agent>) {
    wall((), || {
        let _errno = Errno::keep();
        if is_on()
            && thread::current().is_some()
            && let (Some(process), Some(agent)) = (process::get(), agent())
        {
            process.name(status::AGENT_NAME, u64::from(agent.index), name);
        }
    });
}

/// What makes HIP's devices others than HSA's GPUs in their order.
const DEVICES: [&str; 3] = ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"];

/// Names a HIP device; passed on only where HIP counts devices in an order of the user's.
///
/// # Safety
/// `name` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxNameHipDevice(name: *const c_char, device: c_int) -> c_int {
    let real = real!(NAME_DEVICE as NameDevice);
    // SAFETY: as the caller says.
    unsafe { name_device(name, device, real) }
}

unsafe fn name_device(name: *const c_char, device: c_int, real: Option<NameDevice>) -> c_int {
    name_agent(text(name), || {
        if DEVICES.iter().any(|name| std::env::var_os(name).is_some()) {
            return None;
        }
        let agents = super::hsa::hsa()?.agents.all();
        let mut gpus = agents.iter().filter(|agent| agent.kind == agent::GPU);
        gpus.nth(usize::try_from(device).ok()?)
    });
    let call = enter(marker_call::NAME_DEVICE);
    // SAFETY: the caller's own arguments.
    let result = real.map_or(0, |real| pass(Entry::NameDevice, || unsafe { real(name, device) }));
    exit(call, result);
    result
}

/// Names a HIP stream.
///
/// # Safety
/// `name` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxNameHipStream(name: *const c_char, stream: *const c_void) -> c_int {
    let real = real!(NAME_STREAM as NameThing);
    // SAFETY: as the caller says.
    unsafe { name_stream(name, stream, real) }
}

unsafe fn name_stream(name: *const c_char, stream: *const c_void, real: Option<NameThing>) -> c_int {
    wall((), || {
        if is_on()
            && let (Some(process), Some(thread)) = (process::get(), thread::current())
        {
            process.stream_named(stream as u64, thread.tid(), text(name));
        }
    });
    let call = enter(marker_call::NAME_STREAM);
    // SAFETY: the caller's own arguments.
    let result = real.map_or(0, |real| pass(Entry::NameStream, || unsafe { real(name, stream) }));
    exit(call, result);
    result
}

/// The calling thread's id as ROC-TX counts it: the kernel's.
///
/// # Safety
/// `tid` is null or points to room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxGetThreadId(tid: *mut u64) -> c_int {
    let real = real!(THREAD_ID as ThreadId);
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
