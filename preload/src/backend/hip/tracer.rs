//! The run-time's tracer callback, for calls that did not pass the gate.
//!
//! The size of its structure depends on the release, so it is used only if the library's major version is known. For
//! calls of the gate it answers "not enabled": the run-time then fills in nothing and makes no call at the return.

#![expect(unsafe_code, reason = "the run-time's names of its functions")]

use super::{By, activity, cooperative, deferred, slot};
use crate::backend::hip;
use crate::collector::{self, Call};
use crate::process::Process;
use crate::state::{self, word};
use crate::thread::AnnouncedCall;
use crate::{control, process, real, thread};
use hip_sys::function::{ArgumentLocation, Effect, FUNCTIONS};
use hip_sys::tracer::{ApiName, OP_DISPATCH, tail as tail_of};
use roctop_ring::record::{Domain, status};
use roctop_ring::session::{source, wanted};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_void};

const IDS: usize = 1024;
/// First operation number of functions that are known from the callback only.
const FIRST_CALLBACK_OP: u16 = 0x4000;

/// Operation of the collector plus one, by the run-time's id; those of the compiler have a flag.
static OPERATIONS: [AtomicU64; IDS] = [const { AtomicU64::new(0) }; IDS];
const COMPILER: u64 = 1 << 32;
/// Flag: the operation uses the null stream.
const NULL_STREAM: u64 = 1 << 33;
/// Flag: the operation launches a graph.
const GRAPH: u64 = 1 << 34;
/// Offset of the structure's tail; 0 if not registered.
static TAIL: AtomicU64 = AtomicU64::new(0);
/// 1 if calls bound by symbol pass the gate.
static IS_BEHIND_GATE: AtomicU64 = AtomicU64::new(0);

/// Registers the callback, if the run-time has one with a known layout.
pub(crate) fn register(process: &Process, by: By) {
    let Some((library, path)) = hip::library() else { return };
    let is_source = control::dispatch_source() == source::HIP;
    let is_preloaded = real::is_preloaded();
    IS_BEHIND_GATE.store(u64::from(is_preloaded), Ordering::Relaxed);
    let without = |what: &str| {
        if is_preloaded {
            process.say(status::BACKEND, 0, &format!("HIP calls: wrapped functions ({what})"));
        } else {
            let why = format!("HIP calls, ROC-TX: not recorded, the program replaced LD_PRELOAD ({what})");
            process.say(status::UNAVAILABLE, 0, &why);
        }
        if is_source {
            process.say(
                status::UNAVAILABLE,
                0,
                &format!("dispatches: not recorded, HIP's own records were asked for ({what})"),
            );
        }
    };
    let Some(address) = library.symbol(c"hipRegisterTracerCallback") else {
        without("this run-time has no tracer callback");
        return;
    };
    let (major, names) = (major(&path.to_string_lossy()), library.symbol(c"hipApiName"));
    let (Some(offset), Some(names)) = (major.and_then(tail_of), names) else {
        without("layout of the tracer callback not known");
        return;
    };
    activity::learn();
    // SAFETY: the symbol of this name has this type in every release.
    learn(process, unsafe { std::mem::transmute::<*mut c_void, ApiName>(names) });
    TAIL.store(offset as u64, Ordering::Release);
    slot::found(address);
    let major = major.unwrap_or(0);
    HAS_STALE_GRAPHS.store(u64::from(major >= STALE_GRAPHS), Ordering::Relaxed);
    let is_kept = by == By::Hsa || is_source;
    KEPT.store(u64::from(is_kept), Ordering::Relaxed);
    if is_kept {
        slot::listen(true);
    }
    let what = if !is_preloaded {
        "the tracer callback (the program replaced LD_PRELOAD: no return codes, no ROC-TX)"
    } else if is_kept {
        "wrapped functions and the tracer callback"
    } else {
        "wrapped functions"
    };
    process.say(status::BACKEND, u64::from(major), &format!("HIP calls: {what}"));
    if is_source {
        process.say(
            status::BACKEND,
            u64::from(major),
            "dispatches: HIP's own records, without geometry and queue",
        );
    }
}

/// 1 if the callback stays registered, because nothing else can serve. With a registered callback HIP reports markers
/// whose stream may be gone, and crashes (seen with 5.7.1 when a graph is destroyed, and with 7.2.4).
static KEPT: AtomicU64 = AtomicU64::new(0);

/// First major version of HIP that reads a graph when it reports the graph's kernels, and crashes if the program has destroyed
/// the graph (seen with 7.2.4). It does so while any callback is registered, whatever that answers.
const STALE_GRAPHS: u32 = 7;
/// 1 if this is such a version.
static HAS_STALE_GRAPHS: AtomicU64 = AtomicU64::new(0);
/// 1 once the program has launched a graph there: no callback stays registered from then on.
static IS_REMOVED: AtomicU64 = AtomicU64::new(0);

/// The program launches a graph. Removes a registered callback for good if HIP would crash with it.
#[inline]
pub(crate) fn graph_begins() {
    if HAS_STALE_GRAPHS.load(Ordering::Relaxed) != 0 && IS_REMOVED.load(Ordering::Relaxed) == 0 {
        remove();
    }
}

#[cold]
fn remove() {
    if IS_REMOVED.swap(1, Ordering::AcqRel) != 0 || KEPT.swap(0, Ordering::AcqRel) == 0 {
        return;
    }
    slot::listen(false);
    if let Some(process) = process::get() {
        let what = match real::is_preloaded() {
            true => "kernels",
            false if activity::is_source() => "calls and kernels",
            false => "calls",
        };
        let why = "HIP 7 crashes when it reports a graph to a tool after the program has destroyed it";
        process.say(
            status::INCOMPLETE,
            0,
            &format!("{what} are not recorded from the first launch of a graph on: {why}"),
        );
    }
}

/// Keeps the callback registered, because HIP's records are needed from now on. False if HIP has none.
pub(crate) fn keep() -> bool {
    let has_records = tail().is_some() && slot::is_found() && IS_REMOVED.load(Ordering::Relaxed) == 0;
    if has_records {
        KEPT.store(1, Ordering::Relaxed);
        slot::listen(true);
    }
    has_records
}

/// Requests HIP's records temporarily.
pub(crate) fn arm() {
    if KEPT.load(Ordering::Relaxed) == 0 && slot::is_found() {
        slot::listen(true);
    }
}

/// Ends a temporary request.
pub(crate) fn disarm() {
    if KEPT.load(Ordering::Relaxed) == 0 {
        slot::listen(false);
    }
}

/// The number after `.so.` in the library's file name, following links.
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
        let on_null = if function.is_some_and(|f| f.stream == ArgumentLocation::Null) {
            NULL_STREAM
        } else {
            0
        };
        let value = match function {
            Some(f) if hip::domain(f) == Domain::HIP_COMPILER => (u64::from(f.op) + 1) | COMPILER,
            Some(function) => u64::from(function.op) + 1,
            None if name.starts_with("hip") || name.starts_with("__hip") => {
                let op = FIRST_CALLBACK_OP + id as u16;
                hip::name(process, Domain::HIP, op, name.as_bytes());
                u64::from(op) + 1
            }
            None => 0,
        };
        let graph = if function.is_some_and(|f| f.effect == Effect::Graph) {
            GRAPH
        } else {
            0
        };
        place.store(value | on_null | graph, Ordering::Relaxed);
    }
}

/// HIP asks whether records of an operation are wanted.
pub(crate) fn asks(op: u32) -> bool {
    if activity::asks(op) {
        return true;
    }
    let is_launching = op == OP_DISPATCH && cooperative::is_launching();
    if is_launching && deferred::is_used() {
        activity::note();
    }
    is_launching
}

/// Offset of the structure's tail.
pub(crate) fn tail() -> Option<usize> {
    match TAIL.load(Ordering::Acquire) {
        0 => None,
        offset => Some(offset as usize),
    }
}

/// Whether the registered callback has the structure of HIP 5.
pub(crate) fn is_of_five() -> bool {
    tail().is_some() && tail() == tail_of(5)
}

/// Handling of a call that the run-time announced.
pub(crate) enum Entered {
    /// The collector does not want it, or records it at the gate.
    No,
    /// The gate records it; HIP participates if there is a correlation id.
    Cooperative(u64),
    /// It is recorded with this correlation id; [`exit`] ends it.
    Call(u64),
}

pub(crate) fn enter(op: u32, data: *mut c_void) -> Entered {
    if !state::is_on(word::HIP) {
        return Entered::No;
    }
    let here = data as usize;
    if let Some(thread) = thread::existing()
        && thread.hip_frame.get() > here
    {
        return match thread.cooperative.get() {
            0 if activity::is_source() => Entered::Cooperative(thread.current.get()),
            0 => Entered::No,
            correlation => Entered::Cooperative(correlation),
        };
    }
    let known = known(op);
    if known & GRAPH != 0 {
        graph_begins();
    }
    // A thread without a ring has no gate frame either, and the gate has counted its call as lost. Calls that bypass
    // both there, from a library with a separate scope, are not counted.
    if known == 0 || (thread::is_ringless() && IS_BEHIND_GATE.load(Ordering::Relaxed) != 0) {
        return Entered::No;
    }
    let Some(call) = collector::api_enter(domain(known), (known as u32 - 1) as u16, wanted::HIP_API) else {
        return Entered::No;
    };
    call.thread.hip_frame.set(here);
    call.thread.begin_origin(u32::from(known & NULL_STREAM != 0), 0);
    call.thread.announced.set(AnnouncedCall {
        start: call.start,
        correlation: call.correlation,
        parent: call.parent,
        op,
        exit: 0,
    });
    Entered::Call(call.correlation)
}

fn known(op: u32) -> u64 {
    OPERATIONS
        .get(op as usize)
        .map_or(0, |place| place.load(Ordering::Relaxed))
}

fn domain(known: u64) -> Domain {
    if known & COMPILER == 0 {
        Domain::HIP
    } else {
        Domain::HIP_COMPILER
    }
}

/// Stores another tool's exit function for the call that was just entered.
pub(crate) fn keep_exit(exit: usize) {
    if let Some(thread) = thread::existing() {
        thread.announced.set(AnnouncedCall {
            exit,
            ..thread.announced.get()
        });
    }
}

/// The call returned. Returns the other tool's exit function.
pub(crate) fn exit(data: *mut c_void) -> usize {
    let Some(thread) = thread::existing() else { return 0 };
    if thread.hip_frame.get() != data as usize {
        return 0;
    }
    let open = thread.announced.take();
    thread.hip_frame.set(0);
    let known = known(open.op);
    if known != 0 && process::get().is_some() {
        let call = Call {
            thread,
            start: open.start,
            correlation: open.correlation,
            parent: open.parent,
            domain: domain(known),
            op: (known as u32 - 1) as u16,
        };
        collector::api_exit(&call, None, 0);
    }
    thread.end_origin();
    open.exit
}
