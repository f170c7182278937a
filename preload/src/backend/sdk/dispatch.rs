//! Per-dispatch counting: the SDK serializes kernels and returns the values when each has ended.

use super::abi::{
    CreateFn, DispatchData, DispatchInfo, SUCCESS, SYMBOL_BYTES, Sdk, SeenDispatch, Status, TracedDispatch,
    TracingRecord, status_text,
};
use super::counters::OnAgent;
use super::request::Request;
use super::{bytes_of, count_unknown, rest, say_missing, values};
use crate::backend::hsa;
use crate::guard::{Errno, wall};
use crate::origin::Origin;
use crate::process::{self, Process};
use crate::{clock, thread};
use roctop_ring::record::{self, Domain, KernelSymbol, flag, status};
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Mutex, OnceLock};

/// `ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER`.
const KERNEL_SYMBOL: u32 = 2;
/// Phase in which kernels are loaded; for a dispatch, the earlier phase.
const LOAD: u32 = 1;
/// `ROCPROFILER_KERNEL_DISPATCH_ENQUEUE` and `_COMPLETE`.
const ENQUEUE: u32 = 1;
const COMPLETE: u32 = 2;
/// First release with traced dispatches that have times.
const TRACES: u32 = 10_000;
/// Maximum number of dispatches in progress.
const MAX_PENDING: usize = 1 << 16;

struct Counting {
    sdk: &'static Sdk,
    request: &'static Request,
    agents: Vec<OnAgent>,
    /// Numbers of the tracing kinds.
    code_objects: u32,
    dispatches: Option<u32>,
    version: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    symbols: HashMap<u64, Symbol>,
    pending: HashMap<u64, Pending>,
}

struct Symbol {
    object: u64,
    name: Vec<u8>,
    dispatches: u64,
}

#[derive(Clone, Copy)]
struct Pending {
    kernel_object: u64,
    submit: u64,
    correlation: u64,
    origin: Origin,
    queue: u32,
    /// Whether its values, and the dispatch with them, are expected.
    is_counted: bool,
}

static COUNTING: OnceLock<Counting> = OnceLock::new();

/// Starts counting; false, after reporting the reason, if that fails.
pub(super) fn begin(sdk: &'static Sdk, request: &'static Request, process: &Process, agents: Vec<OnAgent>) -> bool {
    if agents.iter().all(|agent| agent.configs.is_empty()) {
        return false;
    }
    let (Some(create), Some(count)) = (sdk.create_context, sdk.count_dispatches) else {
        say_missing("this rocprofiler-sdk has no dispatch counting");
        return false;
    };
    let mut context = 0u64;
    // SAFETY: room for the answer.
    let mut answer = unsafe { create(&raw mut context) };
    if answer == SUCCESS {
        // SAFETY: the functions have the types asked for and are never unloaded.
        answer = unsafe { count(context, dispatched, std::ptr::null_mut(), counted, std::ptr::null_mut()) };
    }
    if answer != SUCCESS {
        say_missing(&format!(
            "rocprofiler-sdk refused dispatch counting: {}",
            status_text(sdk, answer)
        ));
        return false;
    }
    if !watch(sdk, request, agents, context) {
        return false;
    }
    let others = others(sdk, request, create);
    if sdk.version() >= TRACES && (others.is_some() || !request.takes_all()) {
        rest::offer(sdk, others);
    }
    let left = COUNTING.get().map_or(0, |counting| {
        let all = counting.agents.iter().flat_map(|agent| &agent.chosen);
        all.filter(|one| request.rotation == 0 && one.pass != request.pass)
            .count()
    });
    if left > 0 {
        process.say(
            status::NOTE,
            left as u64,
            &format!("counters: {left} of them do not fit into this run and are not counted"),
        );
    }
    process.say(
        status::BACKEND,
        u64::from(sdk.version()),
        "counters: rocprofiler-sdk counts each dispatch; kernels run one after the other (SERIALIZED)",
    );
    true
}

/// Starts a context that reports its dispatches and kernels here; false, after reporting the reason, if that fails.
pub(super) fn watch(sdk: &'static Sdk, request: &'static Request, agents: Vec<OnAgent>, context: u64) -> bool {
    let counting = Counting {
        sdk,
        request,
        agents,
        code_objects: kind_named(sdk, c"CODE_OBJECT").unwrap_or(USUAL_CODE_OBJECT),
        // Dispatches that are not counted have no other source.
        dispatches: (sdk.version() >= TRACES)
            .then(|| kind_named(sdk, c"KERNEL_DISPATCH"))
            .flatten(),
        version: sdk.version(),
        state: Mutex::default(),
    };
    if COUNTING.set(counting).is_err() {
        return false;
    }
    let Some(counting) = COUNTING.get() else { return false };
    let others = counting.dispatches.filter(|_| !request.takes_all());
    trace(sdk, context, counting.code_objects, "kernel names")
        && others.is_none_or(|kind| trace(sdk, context, kind, "kernel dispatches"))
        && is_done(sdk, rest::start(sdk, context), "the context's start")
}

/// A context for dispatches while none is counted; `None` if all are reported anyway.
fn others(sdk: &Sdk, request: &Request, create: CreateFn) -> Option<u64> {
    let kind = COUNTING.get()?.dispatches.filter(|_| request.takes_all())?;
    let mut context = 0u64;
    // SAFETY: room for the answer.
    let answer = unsafe { create(&raw mut context) };
    (answer == SUCCESS && trace(sdk, context, kind, "kernel dispatches")).then_some(context)
}

/// Requests records of a kind; false, after reporting the reason, if that fails.
fn trace(sdk: &Sdk, context: u64, kind: u32, what: &str) -> bool {
    let Some(trace) = sdk.trace else { return true };
    let (all, none) = (std::ptr::null(), std::ptr::null_mut());
    // SAFETY: the function has the type asked for and is never unloaded; no operations means all.
    let answer = unsafe { trace(context, kind as c_int, all, 0, traced, none) };
    is_done(sdk, answer, what)
}

fn is_done(sdk: &Sdk, answer: Status, what: &str) -> bool {
    if answer != SUCCESS {
        say_missing(&format!("rocprofiler-sdk refused {what}: {}", status_text(sdk, answer)));
    }
    answer == SUCCESS
}

/// Number of `CODE_OBJECT` if the SDK does not report names.
const USUAL_CODE_OBJECT: u32 = 10;

/// Numbers of kinds change between releases, names do not.
fn kind_named(sdk: &Sdk, wanted: &CStr) -> Option<u32> {
    let query = sdk.tracing_kind_name?;
    let is_it = |kind: &c_int| {
        let (mut name, mut length) = (std::ptr::null(), 0u64);
        // SAFETY: room for both answers.
        let answer = unsafe { query(*kind, &raw mut name, &raw mut length) };
        // SAFETY: the SDK's texts are terminated.
        answer == SUCCESS && !name.is_null() && unsafe { CStr::from_ptr(name) } == wanted
    };
    (1..64).find(is_it).map(|kind| kind as u32)
}

/// Code objects are loaded or unloaded: records kernel names.
unsafe extern "C" fn traced(record: TracingRecord, _user: *mut u64, _data: *mut c_void) {
    wall((), || {
        let _errno = Errno::keep();
        let (Some(counting), Some(process)) = (COUNTING.get(), process::get()) else {
            return;
        };
        let of_kind = |kind| record.of_kind(kind, counting.version);
        if let Some((operation, phase, payload)) = counting.dispatches.and_then(of_kind) {
            return traced_dispatch(counting, operation, phase, payload);
        }
        let Some((operation, phase, payload)) = of_kind(counting.code_objects) else {
            count_unknown("tracing records", 0);
            return;
        };
        if operation != KERNEL_SYMBOL || phase != LOAD || payload.is_null() {
            return;
        }
        // SAFETY: the payload of this operation is a kernel symbol, which says its size first.
        let size = unsafe { payload.cast::<u64>().read_unaligned() };
        if size < SYMBOL_BYTES {
            count_unknown("kernel symbols", size);
            return;
        }
        thread::aside(|| symbol(counting, process, payload));
    });
}

fn symbol(counting: &Counting, process: &Process, payload: *const u8) {
    // SAFETY: inside the bytes that `traced` has seen to be there.
    let long = |at: usize| unsafe { payload.add(at).cast::<u64>().read_unaligned() };
    // SAFETY: as above.
    let word = |at: usize| unsafe { payload.add(at).cast::<u32>().read_unaligned() };
    // SAFETY: the SDK's names are terminated.
    let name = unsafe { bytes_of(long(24) as *const std::ffi::c_char) };
    let name = name.strip_suffix(b".kd").unwrap_or(name);
    let fact = KernelSymbol {
        kernel_object: long(32),
        code_object: long(16),
        time: clock::now(),
        name: process.intern(name),
        agent: counting.agents.first().map_or(0, |agent| agent.index),
        kernarg_size: word(40),
        group_size: word(48),
        private_size: word(52),
        // Register counts instead of descriptor words: `has_descriptor` marks them.
        rsrc1: word(60),
        rsrc2: word(56),
        rsrc3: word(64),
        properties: 0,
        has_descriptor: 2,
    };
    process.fact(KernelSymbol::head(0, Domain::NONE), &fact.payload());
    if let Ok(mut state) = counting.state.lock() {
        state.symbols.insert(
            long(8),
            Symbol {
                object: long(32),
                name: name.to_vec(),
                dispatches: 0,
            },
        );
    }
}

/// A traced dispatch, which may be one that is not counted.
fn traced_dispatch(counting: &Counting, operation: u32, phase: u32, payload: *const u8) {
    if payload.is_null() {
        return;
    }
    // SAFETY: the payload says its size first.
    let size = unsafe { payload.cast::<u64>().read_unaligned() };
    if size < size_of::<TracedDispatch>() as u64 {
        return count_unknown("traced dispatches", size);
    }
    // SAFETY: as large as is read.
    let dispatch = unsafe { payload.cast::<TracedDispatch>().read_unaligned() };
    if operation == ENQUEUE && phase == LOAD {
        if let Ok(mut state) = counting.state.lock() {
            state.begin(&dispatch.info, false);
        }
    } else if operation == COMPLETE {
        let mut state = counting.state.lock().ok();
        let pending = state.as_mut().and_then(|state| {
            let is_counted = state
                .pending
                .get(&dispatch.info.dispatch)
                .is_some_and(|one| one.is_counted);
            if is_counted {
                None
            } else {
                state.pending.remove(&dispatch.info.dispatch)
            }
        });
        drop(state);
        if let Some(pending) = pending.filter(|_| thread::current().is_some()) {
            let seen = SeenDispatch {
                times: [dispatch.start, dispatch.end],
                info: dispatch.info,
            };
            ended(counting, &seen, Some(pending));
        }
    }
}

impl State {
    /// A dispatch is submitted to its queue, on this thread.
    fn begin(&mut self, info: &DispatchInfo, is_counted: bool) {
        if let Some(pending) = self.pending.get_mut(&info.dispatch) {
            pending.is_counted |= is_counted;
            return;
        }
        if self.pending.len() >= MAX_PENDING {
            return;
        }
        let object = self.symbols.get(&info.kernel).map_or(0, |symbol| symbol.object);
        let own = hsa::packet::handed(object).unwrap_or_else(|| {
            let thread = thread::current();
            hsa::packet::Handed {
                kernel_object: object,
                correlation: thread.map_or(0, |thread| thread.current.get()),
                origin: thread.map_or(Origin::default(), thread::Thread::origin),
                queue: info.queue as u32,
            }
        });
        let pending = Pending {
            kernel_object: own.kernel_object,
            submit: clock::now(),
            correlation: own.correlation,
            origin: own.origin,
            queue: own.queue,
            is_counted,
        };
        self.pending.insert(info.dispatch, pending);
    }
}

/// A kernel is about to be submitted: chooses its counters.
unsafe extern "C" fn dispatched(data: DispatchData, config: *mut u64, user: *mut u64, _own: *mut c_void) {
    let chosen = wall(None, || {
        let _errno = Errno::keep();
        let counting = COUNTING.get()?;
        let Some(seen) = data.seen() else {
            count_unknown("dispatches", data.size);
            return None;
        };
        thread::current()?;
        let agent = counting.agents.iter().find(|agent| agent.id == seen.info.agent);
        let mut state = counting.state.lock().ok()?;
        let is_taken = match state.symbols.get_mut(&seen.info.kernel) {
            Some(symbol) => {
                symbol.dispatches += 1;
                counting.request.takes(&symbol.name, symbol.dispatches)
            }
            None => counting.request.takes(b"", 1),
        };
        let chosen = agent
            .filter(|_| is_taken && !rest::is_on())?
            .turn(counting.request.rotation)
            .filter(|turn| turn.1 != 0)?;
        state.begin(&seen.info, true);
        Some(chosen)
    });
    if let Some((pass, chosen)) = chosen {
        // SAFETY: the SDK passes room for both.
        unsafe { config.write(chosen) };
        // SAFETY: as above. It comes back with the values.
        unsafe { user.write(u64::from(pass)) };
    }
}

/// Receives the values of a kernel that has ended.
unsafe extern "C" fn counted(data: DispatchData, records: *const u8, count: usize, user: u64, _own: *mut c_void) {
    wall((), || {
        let _errno = Errno::keep();
        let Some(counting) = COUNTING.get() else { return };
        let Some(seen) = data.seen() else {
            count_unknown("dispatches", data.size);
            return;
        };
        if thread::current().is_none() {
            return;
        }
        let info = seen.info;
        let pending = counting.state.lock().ok();
        let pending = pending.and_then(|mut state| state.pending.remove(&info.dispatch));
        ended(counting, &seen, pending);
        let Some(agent) = counting.agents.iter().find(|agent| agent.id == info.agent) else {
            return;
        };
        let counted = values::Counted {
            sdk: counting.sdk,
            agent,
            dispatch: info.dispatch,
            pass: user as u16,
            correlation: pending.map_or(0, |pending| pending.correlation),
        };
        // SAFETY: the SDK passes the addresses of `count` records.
        unsafe { counted.record(records, count) };
    });
}

/// Records a dispatch that has ended.
fn ended(counting: &Counting, seen: &SeenDispatch, pending: Option<Pending>) {
    let info = seen.info;
    let state = counting.state.lock().ok();
    let object = state.and_then(|state| state.symbols.get(&info.kernel).map(|symbol| symbol.object));
    let agent = counting.agents.iter().find(|agent| agent.id == info.agent);
    let short = |size: u32| u16::try_from(size).unwrap_or(u16::MAX);
    let origin = pending.map_or(Origin::default(), |pending| pending.origin);
    let kernel_object = object.or(pending.map(|pending| pending.kernel_object)).unwrap_or(0);
    let record = record::Dispatch {
        begin: seen.times[0],
        end: seen.times[1],
        submit: pending.map_or(0, |pending| pending.submit),
        correlation: pending.map_or(0, |pending| pending.correlation),
        kernel_object,
        dispatch_id: info.dispatch,
        grid_x: info.grid[0],
        grid_y: info.grid[1],
        grid_z: info.grid[2],
        workgroup_x: short(info.workgroup[0]),
        workgroup_y: short(info.workgroup[1]),
        workgroup_z: short(info.workgroup[2]),
        source: 3,
        private_size: info.private_size,
        group_size: info.group_size,
        agent: agent.map_or(0, |agent| agent.index),
        queue: pending.map_or(info.queue as u32, |pending| pending.queue),
        stream: origin.stream(),
        tid: origin.tid(),
        name: record::Dispatch::name_of_site(kernel_object, origin.site()),
    };
    let flags = match hsa::hsa() {
        _ if seen.times == [0, 0] => flag::UNTIMED,
        Some(hsa) if !hsa.is_time(seen.times) => hsa::harvest::doubt(),
        _ => 0,
    };
    if flags == 0 && record.submit != 0 {
        hsa::driver::saw(record.begin, record.end, record.submit);
    }
    crate::collector::counted_dispatch(&record, flags);
}
