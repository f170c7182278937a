//! The run-time's own callback, for calls that did not come through the gate.
//!
//! Its structure's size differs by release, so it is used only where the library's major version is known. It answers
//! "not enabled" for calls of the gate: then the run-time fills in nothing and calls nobody at the return.

#![expect(unsafe_code, reason = "writes into the run-time's structure by offsets")]

use crate::backend::hip;
use crate::collector::{self, Call};
use crate::guard::wall;
use crate::process::Process;
use crate::state::{self, word};
use crate::{process, thread};
use hip_sys::function::{FUNCTIONS, Place};
use hip_sys::tracer::{ApiName, CORRELATION, DOMAIN_API, DOMAIN_OPS, Register, Tail, tail};
use roctop_ring::record::{Domain, status};
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_void};

const IDS: usize = 1024;
/// Operations that only the callback knows are numbered from here.
const OWN: u16 = 0x4000;

/// The collector's operation plus one by the run-time's id; the compiler's ones carry a bit.
static OPERATIONS: [AtomicU64; IDS] = [const { AtomicU64::new(0) }; IDS];
const COMPILER: u64 = 1 << 32;
/// The operation works on the null stream.
const NULL_STREAM: u64 = 1 << 33;
/// Offset of the structure's tail; 0 not registered.
static TAIL: AtomicU64 = AtomicU64::new(0);

/// Registers the callback where the run-time has one and its layout is known.
pub(crate) fn register(process: &Process) {
    let Some((library, path)) = hip::library() else { return };
    let Some(address) = library.symbol(c"hipRegisterTracerCallback") else {
        process.say(
            status::BACKEND,
            0,
            "HIP calls: wrapped functions (this run-time has no tracer callback)",
        );
        return;
    };
    let (major, names) = (major(&path.to_string_lossy()), library.symbol(c"hipApiName"));
    let (Some(offset), Some(names)) = (major.and_then(tail), names) else {
        process.say(
            status::BACKEND,
            0,
            "HIP calls: wrapped functions (layout of the tracer callback not known)",
        );
        return;
    };
    // SAFETY: the symbol of this name has this type in every release.
    learn(process, unsafe { std::mem::transmute::<*mut c_void, ApiName>(names) });
    TAIL.store(offset as u64, Ordering::Release);
    // SAFETY: the symbol of this name has this type in every release.
    let register = unsafe { std::mem::transmute::<*mut c_void, Register>(address) };
    // SAFETY: a store of a pointer inside the run-time; the callback is never unloaded.
    unsafe { register(Some(traced)) };
    process.say(
        status::BACKEND,
        u64::from(major.unwrap_or(0)),
        "HIP calls: wrapped functions and the tracer callback",
    );
}

/// The number behind `.so.` in the library's file name, following links.
fn major(path: &str) -> Option<u32> {
    let of = |name: &str| name.rsplit_once(".so.")?.1.split('.').next()?.parse().ok();
    of(path).or_else(|| of(std::fs::canonicalize(path).ok()?.to_str()?))
}

fn learn(process: &Process, name_of: ApiName) {
    for (id, place) in OPERATIONS.iter().enumerate().skip(1) {
        // SAFETY: the function takes any number and returns a static text or null.
        let name = unsafe { name_of(id as u32) };
        if name.is_null() {
            continue;
        }
        // SAFETY: not null, and a static terminated text.
        let Ok(name) = unsafe { CStr::from_ptr(name) }.to_str() else {
            continue;
        };
        let function = FUNCTIONS.iter().find(|function| function.name == name);
        let on_null = if function.is_some_and(|f| f.stream == Place::Null) {
            NULL_STREAM
        } else {
            0
        };
        let value = match function {
            Some(f) if hip::domain(f) == Domain::HIP_COMPILER => (u64::from(f.op) + 1) | COMPILER,
            Some(function) => u64::from(function.op) + 1,
            None if name.starts_with("hip") || name.starts_with("__hip") => {
                let op = OWN + id as u16;
                hip::name(process, Domain::HIP, op, name.as_bytes());
                u64::from(op) + 1
            }
            None => 0,
        };
        place.store(value | on_null, Ordering::Relaxed);
    }
}

unsafe extern "C" fn traced(domain: u32, op: u32, data: *mut c_void) -> i32 {
    match domain {
        DOMAIN_API if !data.is_null() => wall(1, || enter(op, data)),
        // Activity records are not asked for; one that comes all the same is passed over.
        DOMAIN_OPS if !data.is_null() => 0,
        _ => 1,
    }
}

fn enter(op: u32, data: *mut c_void) -> i32 {
    if !state::is_on(word::HIP) {
        return 1;
    }
    let here = data as usize;
    if thread::existing().is_some_and(|thread| thread.hip_frame.get() > here) {
        return 1;
    }
    let known = OPERATIONS
        .get(op as usize)
        .map_or(0, |place| place.load(Ordering::Relaxed));
    let offset = TAIL.load(Ordering::Acquire) as usize;
    if known == 0 || offset == 0 {
        return 1;
    }
    let domain = if known & COMPILER == 0 {
        Domain::HIP
    } else {
        Domain::HIP_COMPILER
    };
    let Some(call) = collector::api_enter(domain, (known as u32 - 1) as u16, wanted::HIP_API) else {
        return 1;
    };
    call.thread.hip_frame.set(here);
    call.thread.stream.set(u32::from(known & NULL_STREAM != 0));
    // SAFETY: the structure begins with the correlation id in every release.
    unsafe { data.byte_add(CORRELATION).cast::<u64>().write(call.correlation) };
    let words = Tail {
        enter_timestamp: call.start,
        phase_data: call.parent,
        phase_enter: None,
        phase_exit: Some(exit),
    };
    // SAFETY: `offset` is the size of the arguments in this release, behind which the structure has these words.
    unsafe { data.byte_add(offset).cast::<Tail>().write(words) };
    0
}

unsafe extern "C" fn exit(op: u32, data: *mut c_void) {
    wall((), || {
        let Some(thread) = thread::existing() else { return };
        let offset = TAIL.load(Ordering::Acquire) as usize;
        let known = OPERATIONS
            .get(op as usize)
            .map_or(0, |place| place.load(Ordering::Relaxed));
        if thread.hip_frame.get() != data as usize || known == 0 || process::get().is_none() {
            return;
        }
        // SAFETY: `enter` of this very call wrote them.
        let words = unsafe { data.byte_add(offset).cast::<Tail>().read() };
        // SAFETY: `enter` wrote it; the run-time keeps it.
        let correlation = unsafe { data.byte_add(CORRELATION).cast::<u64>().read() };
        thread.hip_frame.set(0);
        thread.stream.set(0);
        let domain = if known & COMPILER == 0 {
            Domain::HIP
        } else {
            Domain::HIP_COMPILER
        };
        let call = Call {
            thread,
            start: words.enter_timestamp,
            correlation,
            parent: words.phase_data,
            domain,
            op: (known as u32 - 1) as u16,
        };
        collector::api_exit(&call, None, 0);
    });
}
