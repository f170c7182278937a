//! Counting over each dispatch: the SDK runs one kernel at a time and gives the values when it has ended.

use super::abi::{DispatchData, SUCCESS, SYMBOL_BYTES, Sdk, TracingRecord, status_text};
use super::counters::OnAgent;
use super::request::Request;
use super::{bytes_of, count_unknown, say_missing};
use crate::guard::{Errno, wall};
use crate::process::{self, Process};
use crate::{clock, thread};
use roctop_ring::record::{self, CounterValue, Domain, KernelSymbol, counter_source, flag, status};
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Mutex, OnceLock};

/// `ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER`.
const KERNEL_SYMBOL: u32 = 2;
/// Kernels are loaded in this phase.
const LOAD: u32 = 1;
/// A dispatch's user data has this bit, so that it is never taken for a dispatch's number.
const OURS: u64 = 1 << 63;
/// Dispatches that may be on their way.
const MOST_PENDING: usize = 1 << 16;
/// Records of one dispatch that are looked through.
const MOST_RECORDS: usize = 1 << 20;

struct Counting {
    sdk: &'static Sdk,
    request: &'static Request,
    agents: Vec<OnAgent>,
    kind: u32,
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
    submit: u64,
    correlation: u64,
    tid: u32,
}

static COUNTING: OnceLock<Counting> = OnceLock::new();

/// Begins to count; false, with the reason said, when that cannot be.
pub(super) fn begin(sdk: &'static Sdk, request: &'static Request, process: &Process, agents: Vec<OnAgent>) -> bool {
    if agents.iter().all(|agent| agent.config == 0) {
        return false;
    }
    let (Some(create), Some(start), Some(count)) = (sdk.create_context, sdk.start_context, sdk.count_dispatches) else {
        say_missing("this rocprofiler-sdk has no dispatch counting");
        return false;
    };
    let counting = Counting {
        sdk,
        request,
        agents,
        kind: code_object_kind(sdk),
        version: sdk.version(),
        state: Mutex::default(),
    };
    if COUNTING.set(counting).is_err() {
        return false;
    }
    let mut context = 0u64;
    // SAFETY: room for the answer.
    let mut answer = unsafe { create(&raw mut context) };
    let mut begun = "a context";
    if answer == SUCCESS {
        begun = "dispatch counting";
        // SAFETY: the functions have the types asked for and live for ever.
        answer = unsafe { count(context, dispatched, std::ptr::null_mut(), counted, std::ptr::null_mut()) };
    }
    if answer == SUCCESS
        && let (Some(trace), Some(counting)) = (sdk.trace, COUNTING.get())
    {
        begun = "kernel names";
        // SAFETY: as above; no operations means all.
        answer = unsafe {
            trace(
                context,
                counting.kind as c_int,
                std::ptr::null(),
                0,
                traced,
                std::ptr::null_mut(),
            )
        };
    }
    if answer == SUCCESS {
        begun = "the context's start";
        // SAFETY: a plain call.
        answer = unsafe { start(context) };
    }
    if answer != SUCCESS {
        say_missing(&format!(
            "rocprofiler-sdk refused {begun}: {}",
            status_text(sdk, answer)
        ));
        return false;
    }
    let left = COUNTING.get().map_or(0, |counting| {
        let all = counting.agents.iter().flat_map(|agent| &agent.chosen);
        all.filter(|one| one.pass != request.pass).count()
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

/// The number of the kind "code object", which differs between releases.
fn code_object_kind(sdk: &Sdk) -> u32 {
    const USUAL: u32 = 10;
    let Some(query) = sdk.tracing_kind_name else {
        return USUAL;
    };
    let named = (1..64).find(|kind| {
        let (mut name, mut length) = (std::ptr::null(), 0u64);
        // SAFETY: room for a text and its length.
        let answer = unsafe { query(*kind, &raw mut name, &raw mut length) };
        // SAFETY: the SDK's texts are terminated.
        answer == SUCCESS && !name.is_null() && unsafe { CStr::from_ptr(name) } == c"CODE_OBJECT"
    });
    named.map_or(USUAL, |kind| kind as u32)
}

/// Code objects come and go: kernels get their names.
unsafe extern "C" fn traced(record: TracingRecord, _user: *mut u64, _data: *mut c_void) {
    wall((), || {
        let _errno = Errno::keep();
        let (Some(counting), Some(process)) = (COUNTING.get(), process::get()) else {
            return;
        };
        let Some((operation, phase, payload)) = record.of_kind(counting.kind, counting.version) else {
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
        // Counts in place of descriptor words: `has_descriptor` says so.
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

/// A kernel is about to go to its queue: what shall be counted?
unsafe extern "C" fn dispatched(data: DispatchData, config: *mut u64, user: *mut u64, _own: *mut c_void) {
    let chosen = wall(None, || {
        let _errno = Errno::keep();
        let counting = COUNTING.get()?;
        let Some(told) = data.told() else {
            count_unknown("dispatches", data.size);
            return None;
        };
        let thread = thread::current()?;
        let agent = counting.agents.iter().find(|agent| agent.id == told.info.agent)?;
        let mut state = counting.state.lock().ok()?;
        let taken = match state.symbols.get_mut(&told.info.kernel) {
            Some(symbol) => {
                symbol.dispatches += 1;
                counting.request.takes(&symbol.name, symbol.dispatches)
            }
            None => counting.request.takes(b"", 1),
        };
        if state.pending.len() < MOST_PENDING {
            let pending = Pending {
                submit: clock::now(),
                correlation: thread.current.get(),
                tid: thread.tid(),
            };
            state.pending.insert(told.info.dispatch, pending);
        }
        taken.then_some(agent.config)
    });
    if let Some(chosen) = chosen.filter(|chosen| *chosen != 0) {
        // SAFETY: the SDK passes room for both.
        unsafe { config.write(chosen) };
        // SAFETY: as above.
        unsafe { user.write(OURS) };
    }
}

/// A kernel has ended: its values.
unsafe extern "C" fn counted(data: DispatchData, records: *const u8, count: usize, _user: u64, _own: *mut c_void) {
    wall((), || {
        let _errno = Errno::keep();
        let Some(counting) = COUNTING.get() else { return };
        let Some(told) = data.told() else {
            count_unknown("dispatches", data.size);
            return;
        };
        if thread::current().is_none() {
            return;
        }
        let info = told.info;
        let pending = counting
            .state
            .lock()
            .ok()
            .and_then(|mut state| state.pending.remove(&info.dispatch));
        let object = counting
            .state
            .lock()
            .ok()
            .and_then(|state| state.symbols.get(&info.kernel).map(|symbol| symbol.object));
        let agent = counting.agents.iter().find(|agent| agent.id == info.agent);
        let short = |size: u32| u16::try_from(size).unwrap_or(u16::MAX);
        let record = record::Dispatch {
            begin: told.times[0],
            end: told.times[1],
            submit: pending.map_or(0, |pending| pending.submit),
            correlation: pending.map_or(0, |pending| pending.correlation),
            kernel_object: object.unwrap_or(0),
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
            queue: info.queue as u32,
            stream: 0,
            tid: pending.map_or(0, |pending| pending.tid),
            name: 0,
        };
        let untimed = if told.times == [0, 0] { flag::UNTIMED } else { 0 };
        crate::collector::counted_dispatch(&record, untimed);
        let Some(agent) = agent else { return };
        // SAFETY: the SDK passes the addresses of `count` records.
        let sums = unsafe { sums(counting, agent, info.dispatch, records, count) };
        for (number, pass, value) in sums {
            crate::collector::counter_value(&CounterValue {
                dispatch_id: info.dispatch,
                value: value.to_bits(),
                time: 0,
                counter: number,
                agent: agent.index,
                source: counter_source::DISPATCH,
                pass,
                reserved: 0,
                correlation: record.correlation,
            });
        }
    });
}

/// Bytes from one record to the next: 32 in the oldest releases, 40 since the agent is in them. Nothing says it, but each
/// record names its dispatch at byte 16, and our user data behind it never looks like one.
///
/// # Safety
/// `records` has `count` records.
unsafe fn stride(records: *const u8, count: usize, dispatch: u64) -> Option<usize> {
    // SAFETY: the shortest record has 32 bytes.
    let at = |offset: usize| unsafe { records.add(offset).cast::<u64>().read_unaligned() };
    if at(16) != dispatch {
        return None;
    }
    match count {
        1 => Some(32),
        _ if at(32 + 16) == dispatch && at(32 + 24) & OURS != 0 => Some(32),
        _ if at(40 + 16) == dispatch => Some(40),
        _ => None,
    }
}

/// The values, all instances of a counter added up.
///
/// # Safety
/// `records` has `count` records.
unsafe fn sums(
    counting: &Counting,
    agent: &OnAgent,
    dispatch: u64,
    records: *const u8,
    count: usize,
) -> Vec<(u32, u16, f64)> {
    if records.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: as the caller says.
    let Some(stride) = (unsafe { stride(records, count, dispatch) }) else {
        count_unknown("counter records", 0);
        return Vec::new();
    };
    let asked = counting.request.pass;
    let mut sums: Vec<(u32, u16, f64)> = Vec::new();
    for at in 0..count.min(MOST_RECORDS) {
        // SAFETY: inside the records.
        let word = |offset: usize| unsafe { records.add(at * stride + offset).cast::<u64>().read_unaligned() };
        let (id, value) = (word(0), f64::from_bits(word(8)));
        let handle = counter_of(counting.sdk, id);
        let chosen = agent
            .chosen
            .iter()
            .filter(|one| one.handle == handle && one.pass == asked);
        for chosen in chosen.filter(|one| is_instance(counting.sdk, id, one.instance)) {
            match sums.iter_mut().find(|one| one.0 == chosen.number) {
                Some(sum) => sum.2 += value,
                None => sums.push((chosen.number, chosen.pass, value)),
            }
        }
    }
    sums
}

/// The counter that a record belongs to.
pub(super) fn counter_of(sdk: &Sdk, id: u64) -> u64 {
    let mut handle = 0u64;
    // SAFETY: room for the answer.
    let answer = sdk.counter_of_record.map(|query| unsafe { query(id, &raw mut handle) });
    if answer == Some(SUCCESS) { handle } else { id >> 48 }
}

/// Is this record of the instance that is asked for?
pub(super) fn is_instance(sdk: &Sdk, id: u64, wanted: Option<(u64, usize)>) -> bool {
    let (Some((dimension, instance)), Some(query)) = (wanted, sdk.position_of_record) else {
        return true;
    };
    let mut position = 0usize;
    // SAFETY: room for the answer.
    (unsafe { query(id, dimension, &raw mut position) }) == SUCCESS && position == instance
}
