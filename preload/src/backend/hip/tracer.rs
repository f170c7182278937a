//! The run-time's own callback, for calls that did not come through the gate.
//!
//! Its structure's size differs by release, so it is used only where the library's major version is known. It answers
//! "not enabled" for calls of the gate: then the run-time fills in nothing and calls nobody at the return.

#![expect(unsafe_code, reason = "writes into the run-time's structure by offsets")]

use super::{By, cooperative};
use crate::backend::hip;
use crate::collector::{self, Call};
use crate::guard::wall;
use crate::process::Process;
use crate::state::{self, word};
use crate::{process, thread};
use hip_sys::function::{FUNCTIONS, Place};
use hip_sys::tracer::{ApiName, CORRELATION, Callback, DOMAIN_API, DOMAIN_OPS, OP_DISPATCH, Register, Tail, tail};
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
pub(crate) fn register(process: &Process, by: By) {
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
    REGISTER.store(address as u64, Ordering::Release);
    let major = major.unwrap_or(0);
    let is_kept = major < ONLY_WHERE_NEEDED || by == By::Hsa;
    KEPT.store(u64::from(is_kept), Ordering::Relaxed);
    if is_kept {
        set(Some(traced));
    }
    let what = if is_kept {
        "wrapped functions and the tracer callback"
    } else {
        "wrapped functions"
    };
    process.say(status::BACKEND, u64::from(major), &format!("HIP calls: {what}"));
}

/// From this release on a registered callback makes HIP report markers whose stream may be gone (a crash inside HIP was
/// seen on 7.2.4), so it is registered only where nothing else serves.
const ONLY_WHERE_NEEDED: u32 = 7;
/// `hipRegisterTracerCallback`, 0 when there is none.
static REGISTER: AtomicU64 = AtomicU64::new(0);
/// 1 when the callback stays registered.
static KEPT: AtomicU64 = AtomicU64::new(0);

fn set(callback: Option<Callback>) {
    let address = REGISTER.load(Ordering::Acquire) as usize as *mut c_void;
    if address.is_null() {
        return;
    }
    // SAFETY: the symbol of this name has this type in every release.
    let register = unsafe { std::mem::transmute::<*mut c_void, Register>(address) };
    // SAFETY: a store of a pointer inside the run-time; the callback is never unloaded.
    unsafe { register(callback) };
}

/// HIP's records are needed for a while.
pub(crate) fn arm() {
    if KEPT.load(Ordering::Relaxed) == 0 {
        set(Some(traced));
    }
}

/// They are not needed any more.
pub(crate) fn disarm() {
    if KEPT.load(Ordering::Relaxed) == 0 {
        set(None);
    }
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
        DOMAIN_OPS => wall(1, || activity(op, data)),
        _ => 1,
    }
}

/// A question about an operation, or its record, which is not used.
fn activity(op: u32, data: *mut c_void) -> i32 {
    if data.is_null() {
        let is_asked = op == OP_DISPATCH && cooperative::is_launching();
        return i32::from(!is_asked);
    }
    0
}

/// A cooperative launch that the gate records: HIP only has to know the correlation id.
fn correlate(data: *mut c_void, correlation: u64) -> i32 {
    let offset = TAIL.load(Ordering::Acquire) as usize;
    if offset == 0 {
        return 1;
    }
    // SAFETY: the structure begins with the correlation id in every release.
    unsafe { data.byte_add(CORRELATION).cast::<u64>().write(correlation) };
    let words = Tail {
        enter_timestamp: 0,
        phase_data: 0,
        phase_enter: None,
        phase_exit: None,
    };
    // SAFETY: `offset` is the size of the arguments in this release, behind which the structure has these words.
    unsafe { data.byte_add(offset).cast::<Tail>().write(words) };
    0
}

fn enter(op: u32, data: *mut c_void) -> i32 {
    if !state::is_on(word::HIP) {
        return 1;
    }
    let here = data as usize;
    if let Some(thread) = thread::existing()
        && thread.hip_frame.get() > here
    {
        return match thread.cooperative.get() {
            0 => 1,
            correlation => correlate(data, correlation),
        };
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
