//! The gate: every wrapped call passes it, with a hook before and after the real function.
//!
//! Numbers from [`COUNT`] on are entries of dispatch tables ([`entry`]).

#![expect(unsafe_code, reason = "calls through the saved registers of another function's call")]

use super::graphs::{self, GraphCall};
use super::stub::STUBS;
use super::{communicators, cooperative, deferred, entry, tracer, transfer, unseen, watchdog};
use crate::backend::{hsa, roctx};
use crate::collector::{self, Call, Plain, PlainCall};
use crate::guard::{Errno, wall};
use crate::process;
use crate::state::{self, word};
use crate::{clock, control, real, sites, stream, thread};
use core::mem::MaybeUninit;
use gate::{Passage, gate};
use hip_sys::function::{
    ArgumentLocation, COUNT, Domain, Effect, FUNCTIONS, Function, LaunchAttribute, LaunchConfig, Returns, STACK_WORDS,
};
use roctop_ring::arguments::Arguments;
use roctop_ring::record::{ApiCall, Domain as Recorded};
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_char, c_void};

/// A call in progress.
#[repr(C, align(16))]
pub(crate) struct Frame {
    passage: Passage,
    call: MaybeUninit<Call>,
    argument: u64,
    function: MaybeUninit<&'static Function>,
    /// Of its function, if it is a plain call. Then `plain_call` is written, and the fields above are not.
    plain: MaybeUninit<Option<&'static Plain>>,
    plain_call: MaybeUninit<PlainCall>,
}

gate!(
    /// Entered from a stub with the function's index in r11.
    pub(crate) fn gate,
    Frame,
    enter,
    exit
);

/// The assembly copies an even number of stack words, at most this many.
const _: () = assert!(STACK_WORDS.is_multiple_of(2));

/// Flag in [`REAL`]: calls of this function are recorded at an entry of a dispatch table.
const SERVED: u64 = 1 << 63;

/// Flag in [`REAL`]: some calls of this function are not the program's.
const SHARED: u64 = 1 << 62;
const REAL_FLAGS: u64 = SERVED | SHARED;

/// The real functions; 0 until found. [`REAL_FLAGS`] may be added.
static REAL: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

/// The real functions that a stub may call directly while nothing is recorded.
pub(crate) static BARE: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

/// Replaces a function of an absent run-time: returns `hipErrorNoDevice`.
extern "C" fn no_device() -> i32 {
    100
}

/// As `no_device` for RCCL: a system call failed.
extern "C" fn no_system() -> i32 {
    2
}

extern "C" fn nothing() -> usize {
    0
}

#[cold]
#[inline(never)]
fn resolve(index: usize) -> u64 {
    let _errno = Errno::keep();
    let Some(function) = FUNCTIONS.get(index) else {
        return no_device as *const () as u64;
    };
    match (wall(None, || look(function)), function.returns) {
        (Some(address), _) => {
            keep(index, address as u64);
            address as u64
        }
        (None, Returns::Status) if function.domain == Domain::Rccl => no_system as *const () as u64,
        (None, Returns::Status) => no_device as *const () as u64,
        (None, Returns::Other) => nothing as *const () as u64,
    }
}

/// The real function, if its library is loaded.
fn look(function: &Function) -> Option<*mut c_void> {
    let name = CStr::from_bytes_with_nul(function.symbol.as_bytes()).ok()?;
    // The run-time may be in a separate scope, if it was opened locally.
    thread::aside(|| real::next(name).or_else(|| real::loaded(super::library_of(function))?.0.symbol(name)))
}

/// Whether the wrapped function with this number has a real one.
pub(crate) fn is_there(index: usize) -> bool {
    let is_known = REAL
        .get(index)
        .is_some_and(|place| place.load(Ordering::Acquire) & !REAL_FLAGS != 0);
    is_known || FUNCTIONS.get(index).and_then(look).is_some()
}

/// Stores the address of a real function, unless another thread did.
fn keep(index: usize, address: u64) {
    let (Some(function), Some(place)) = (FUNCTIONS.get(index), REAL.get(index)) else {
        return;
    };
    let mut mark = 0;
    if function.effect == Effect::Shared
        && let Some([from, to]) = real::extent_of(address)
    {
        for (word, bound) in RUN_TIME.iter().zip([from, to]) {
            word.store(bound, Ordering::Relaxed);
        }
        mark = SHARED;
    }
    let add = |known: u64| (known & !REAL_FLAGS == 0).then_some(known | mark | address);
    let _ = place.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
    keep_bare(index, address);
}

/// Address range of the run-time.
static RUN_TIME: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Whether the run-time itself made the call. A failing function in it asks for the error's text, also inside functions
/// that are unknown here.
#[cold]
fn is_by_run_time(frame: &Frame) -> bool {
    // SAFETY: the return address is before the caller's arguments.
    let caller = unsafe { *frame.passage.stack.sub(1) };
    let [from, to] = RUN_TIME.each_ref().map(|word| word.load(Ordering::Relaxed));
    (from..to).contains(&caller)
}

/// Allows the stub to call this real function directly. Excluded are functions that switch recording on, that return
/// functions called later, or that use communicators: they must be seen while recording is off.
fn keep_bare(index: usize, address: u64) {
    if let (Some(function), Some(place)) = (FUNCTIONS.get(index), BARE.get(index))
        && !matches!(function.effect, Effect::Start | Effect::Lookup)
        && function.communication().is_none()
    {
        place.store(address, Ordering::Release);
    }
}

/// Number and address of the wrapped function with this name.
pub(crate) fn wrapped(name: &CStr) -> Option<(usize, *mut c_void)> {
    let is_it = |function: &Function| function.symbol.as_bytes() == name.to_bytes_with_nul();
    let index = FUNCTIONS.iter().position(is_it)?;
    Some((index, *STUBS.get(index)? as *mut c_void))
}

/// Whether this wrapped function calls `address`, in the right library. If nothing is known yet, it does from now on.
pub(crate) fn is_behind(index: usize, address: *mut c_void) -> bool {
    let is_right = FUNCTIONS
        .get(index)
        .is_some_and(|function| real::lies_in(address, super::library_of(function)));
    let known = REAL.get(index).filter(|_| is_right).map(|place| {
        if place.load(Ordering::Acquire) & !REAL_FLAGS == 0 {
            keep(index, address as u64);
        }
        place.load(Ordering::Acquire) & !REAL_FLAGS
    });
    known == Some(address as u64)
}

/// Records calls of this function at a table's entry from now on.
pub(crate) fn served(index: usize) {
    let Some(name) = FUNCTIONS.get(index).map(|function| function.name) else {
        return;
    };
    for (function, place) in FUNCTIONS.iter().zip(&REAL) {
        if function.name == name {
            place.fetch_or(SERVED, Ordering::AcqRel);
        }
    }
}

/// The real function of this name, if its library is loaded.
pub(super) fn real_of(name: &str) -> Option<u64> {
    let index = FUNCTIONS.iter().position(|function| function.name == name)?;
    let known = REAL.get(index)?.load(Ordering::Acquire) & !REAL_FLAGS;
    if known != 0 {
        return Some(known);
    }
    look(FUNCTIONS.get(index)?).map(|address| address as u64)
}

/// The wrapped function that calls `address`, which the run-time returned for `name` or a variant of it.
pub(super) fn stand_in(name: &CStr, address: *mut c_void) -> Option<*mut c_void> {
    let name = name.to_bytes();
    let is_it = |(index, function): &(usize, &Function)| {
        function.name.as_bytes().starts_with(name) && {
            let known = REAL.get(*index).map_or(0, |place| place.load(Ordering::Acquire));
            let known = known & !REAL_FLAGS;
            (if known == 0 { resolve(*index) } else { known }) == address as u64
        }
    };
    let (index, _) = FUNCTIONS.iter().enumerate().find(is_it)?;
    Some(*STUBS.get(index)? as *mut c_void)
}

/// The function with this number, the real function, and whether its calls are recorded here.
#[inline(always)]
fn behind(frame: &Frame) -> Option<(&'static Function, u64, bool)> {
    let index = frame.passage.place as usize;
    let Some(place) = REAL.get(index) else {
        return entry::behind(index - COUNT).map(|(function, address)| (function, address, true));
    };
    let known = place.load(Ordering::Acquire);
    let (address, marks) = match known & !REAL_FLAGS {
        0 => (resolve(index), place.load(Ordering::Acquire) & REAL_FLAGS),
        address => (address, known & REAL_FLAGS),
    };
    let is_ours = marks == 0 || marks == SHARED && !is_by_run_time(frame);
    Some((FUNCTIONS.get(index)?, address, is_ours))
}

/// For each function whose calls may be plain.
#[expect(clippy::indexing_slicing, reason = "when this is compiled")]
static PLAIN: [Option<Plain>; COUNT] = {
    let mut all = [None; COUNT];
    let mut index = 0;
    while index < COUNT {
        all[index] = plain(&FUNCTIONS[index]);
        index += 1;
    }
    all
};

const fn plain(function: &Function) -> Option<Plain> {
    let argument = match function.argument {
        ArgumentLocation::Register(number) => Some(number),
        ArgumentLocation::None => None,
        _ => return None,
    };
    let domain = match function.domain {
        Domain::Hip => Recorded::HIP,
        Domain::Compiler => Recorded::HIP_COMPILER,
        _ => return None,
    };
    if function.is_special || function.has_site || !matches!(function.stream, ArgumentLocation::None) {
        return None;
    }
    let has_status = matches!(function.returns, Returns::Status);
    Plain::new(domain, function.op, has_status, argument, function.stack_words)
}

/// Hook before the real function; returns its address.
extern "C" fn enter(frame: &mut Frame, place: u64) -> *const c_void {
    match enter_plain(frame, place as usize) {
        Some(real) => real as *const c_void,
        None => enter_any(frame),
    }
}

/// The usual case: a plain call that is recorded. `None`, with nothing changed: it is another one. Nothing here panics.
#[inline(always)]
fn enter_plain(frame: &mut Frame, index: usize) -> Option<u64> {
    let (place, plain) = (REAL.get(index)?, PLAIN.get(index)?.as_ref()?);
    let real = place.load(Ordering::Acquire);
    // Neither unknown nor with flags.
    if real.wrapping_sub(1) >= SHARED - 1 {
        return None;
    }
    if !state::is_on(word::HIP) || !control::is_wanted(wanted::HIP_API) {
        return None;
    }
    let thread = thread::existing()?;
    let here = std::ptr::from_ref(frame) as usize;
    if thread.hip_frame.get() > here {
        return None;
    }
    let call = collector::enter_plain(thread, plain)?;
    thread.hip_frame.set(here);
    frame.plain.write(Some(plain));
    frame.plain_call.write(call);
    frame.passage.come_back(u64::from(plain.stack_words));
    Some(real)
}

#[inline(never)]
fn enter_any(frame: &mut Frame) -> *const c_void {
    let Some((function, real, is_ours)) = behind(frame) else {
        return nothing as *const c_void;
    };
    if is_ours && (state::is_on(word::HIP) || is_beginning()) {
        let is_unseen = wall(false, || record_enter(frame, function));
        if is_unseen && let Some(instead) = unseen::instead(function, real) {
            return instead;
        }
    }
    real as *const c_void
}

#[inline(always)]
fn is_beginning() -> bool {
    if word(word::HIP).load(Ordering::Relaxed) != state::COLD {
        return false;
    }
    wall((), || super::begin(super::By::Gate));
    state::is_on(word::HIP)
}

/// True for the program's own call that is not recorded.
#[inline(always)]
fn record_enter(frame: &mut Frame, function: &'static Function) -> bool {
    let here = std::ptr::from_ref(frame) as usize;
    let is_hip = matches!(function.domain, Domain::Hip | Domain::Compiler);
    // The frame of an outer call is above; one below was abandoned by a longjmp.
    let is_inside = |thread: &thread::Thread| is_hip && thread.hip_frame.get() > here;
    let wanted = if is_hip { wanted::HIP_API } else { wanted::LIBRARY_API };
    if !control::is_wanted(wanted) {
        return !thread::existing().is_some_and(is_inside) && !is_recorded_anyway(frame, function);
    }
    let Some(thread) = thread::current() else { return true };
    if is_inside(thread) {
        return false;
    }
    // Before the call's begin, so that the call's time does not contain it.
    let site = if function.has_site && control::is_asked(wanted::SITES) {
        site(frame, thread)
    } else {
        0
    };
    let Some(call) = collector::enter_on(thread, super::domain(function), function.op) else {
        return true;
    };
    // A HIP call made by a library above HIP is recorded as a HIP call.
    if is_hip {
        thread.hip_frame.set(here);
    }
    frame.argument = fetch(frame, function.argument);
    let (mut number, mut is_alone) = (0, false);
    if function.stream != ArgumentLocation::None {
        number = stream(fetch(frame, function.stream), function, &call);
        if function.is_event {
            frame.argument = ApiCall::event_argument(frame.argument, number);
        }
        is_alone = deferred::is_used();
    }
    thread.begin_origin(number, site);
    frame.call.write(call);
    frame.function.write(function);
    frame.plain.write(None);
    // A single test, so that other calls pay for neither.
    if function.is_special {
        is_alone |= specially(function, frame);
    }
    if is_alone {
        cooperative::begin(begun(frame));
    }
    frame.passage.come_back(u64::from(function.stack_words));
    false
}

/// The site of a call.
#[inline(always)]
fn site(frame: &Frame, thread: &'static thread::Thread) -> u16 {
    // As `passage.stack`, without a load.
    let sp = std::ptr::from_ref(frame).wrapping_add(1).cast::<u64>().wrapping_add(2);
    // SAFETY: the words before the caller's arguments: its rbp, which the gate pushed, and the return address.
    let [bp, ip] = unsafe { [*sp.sub(2), *sp.sub(1)] };
    let place = sites::CallPlace { ip, sp: sp as u64, bp };
    // SAFETY: the gate's frame is below that of the caller, on the same stack.
    unsafe { sites::site_of(thread, place) }
}

/// Records a call that creates communicators even while no calls are recorded: nothing else names them.
#[cold]
#[inline(never)]
fn is_recorded_anyway(frame: &mut Frame, function: &'static Function) -> bool {
    let Some(communication) = function.communication() else {
        return false;
    };
    if !communicators::begin_unrecorded(communication, |place| fetch(frame, place)) {
        return false;
    }
    let call = thread::current().and_then(|thread| collector::enter_on(thread, super::domain(function), function.op));
    let Some(call) = call else { return false };
    frame.argument = fetch(frame, function.argument);
    communicators::begin(communication, function.op, &call, |place| fetch(frame, place));
    frame.call.write(call);
    frame.function.write(function);
    frame.plain.write(None);
    frame.passage.come_back(u64::from(function.stack_words));
    true
}

/// The call of a frame. Not passed beside it: a call on the stack is copied to the frame in wide loads behind narrow
/// stores, which costs 6 ns.
#[inline(always)]
fn begun(frame: &Frame) -> &Call {
    // SAFETY: callers come after `record_enter` has written the call.
    unsafe { frame.call.assume_init_ref() }
}

/// Handles a call with an effect or a transfer before it begins; true if HIP must attach signals to its packets.
#[inline(never)]
fn specially(function: &Function, frame: &Frame) -> bool {
    let call = begun(frame);
    if let Some(moves) = &function.moves {
        transfer::record(moves, call, |place| fetch(frame, place));
    }
    if let Some(communication) = function.communication() {
        communicators::begin(communication, function.op, call, |place| fetch(frame, place));
    }
    if function.effect == Effect::Nodes {
        graphs::changes(&graph_call(function, frame, call));
    }
    is_alone_after(function.effect, frame, call.thread.tid())
}

/// Applies effects before the call; true if HIP must attach signals to its packets.
fn is_alone_after(effect: Effect, frame: &Frame, tid: u32) -> bool {
    match effect {
        // The handle may be reused for another stream afterwards.
        Effect::StreamDestroy => stream_destroyed(frame, tid),
        Effect::Wait => hsa::harvest::wait_begins(),
        Effect::Cooperative => return cooperative::is_needed_for_launch(),
        Effect::Configured => return is_cooperative(frame) && cooperative::is_needed_for_launch(),
        Effect::Graph => {
            tracer::graph_begins();
            let [executable, ..] = frame.passage.registers;
            graphs::launch_begins(executable, begun(frame).correlation);
            return cooperative::is_needed_for_graph();
        }
        Effect::NodeAttribute => node_changes(frame),
        _ => {}
    }
    false
}

/// Maximum number of launch attributes that are inspected: HIP has fewer.
const MAX_ATTRIBUTES: u32 = 64;

/// Whether a call's launch configuration requests a cooperative launch.
fn is_cooperative(frame: &Frame) -> bool {
    let [config, ..] = frame.passage.registers;
    // SAFETY: the table says that the first argument points to a configuration; null is none.
    let Some(config) = (unsafe { (config as *const LaunchConfig).as_ref() }) else {
        return false;
    };
    if config.attributes.is_null() || config.count > MAX_ATTRIBUTES {
        return false;
    }
    // SAFETY: not null; the program passes as many attributes as it says.
    let attributes = unsafe { std::slice::from_raw_parts(config.attributes, config.count as usize) };
    let is_it = |one: &LaunchAttribute| one.id == LaunchAttribute::COOPERATIVE && one.value[0] != 0;
    attributes.iter().any(is_it)
}

/// A kernel node of a graph gets an attribute.
#[cold]
fn node_changes(frame: &Frame) {
    let [_, attribute, value, ..] = frame.passage.registers;
    if attribute as u32 == LaunchAttribute::COOPERATIVE && value != 0 {
        cooperative::in_graph();
    }
}

/// What is of interest in a call for graphs.
fn graph_call<'a>(function: &'a Function, frame: &Frame, call: &Call) -> GraphCall<'a> {
    GraphCall {
        function,
        registers: frame.passage.registers,
        site: call.thread.origin().site(),
    }
}

/// Number of the stream in a call's arguments.
#[inline(always)]
fn stream(named: u64, function: &Function, call: &Call) -> u32 {
    let handle = if function.is_per_thread && named <= stream::LEGACY {
        stream::PER_THREAD
    } else {
        named
    };
    process::get().map_or(0, |process| process.stream(handle, call.thread.tid()))
}

#[cold]
fn stream_destroyed(frame: &Frame, tid: u32) {
    let _errno = Errno::keep();
    let [handle, ..] = frame.passage.registers;
    if let Some(process) = process::get() {
        process.stream_destroyed(handle, tid);
    }
}

#[inline(always)]
fn fetch(frame: &Frame, place: ArgumentLocation) -> u64 {
    match place {
        ArgumentLocation::Register(number) => frame.passage.registers.get(usize::from(number)).copied().unwrap_or(0),
        ArgumentLocation::None => 0,
        _ => fetch_elsewhere(frame, place),
    }
}

/// Separate, so that the common places need no jump table.
#[inline(never)]
fn fetch_elsewhere(frame: &Frame, place: ArgumentLocation) -> u64 {
    match place {
        // SAFETY: the table says that the function has an argument there, so the caller put it there.
        ArgumentLocation::Stack(number) => unsafe { *frame.passage.stack.add(usize::from(number)) },
        ArgumentLocation::PerThread => 2,
        ArgumentLocation::Config => {
            let [config, ..] = frame.passage.registers;
            // SAFETY: the table says that the first argument points to a configuration; null is none.
            unsafe { (config as *const LaunchConfig).as_ref() }.map_or(0, |config| config.stream)
        }
        ArgumentLocation::Register(_) | ArgumentLocation::None | ArgumentLocation::Null => 0,
    }
}

/// Hook after the real function.
extern "C" fn exit(frame: &mut Frame, result: u64) {
    // First, so that the rest neither counts for the call nor waits for the counter.
    let Some(end) = clock::counter() else {
        return exit_by_other_clock(frame);
    };
    if !exit_plain(frame, end, result) {
        exit_any(frame, end);
    }
}

#[cold]
#[inline(never)]
fn exit_by_other_clock(frame: &mut Frame) {
    exit_any(frame, clock::now());
}

/// The usual case: a plain call that has not failed. False: it is another one. Nothing here panics.
#[inline(always)]
fn exit_plain(frame: &Frame, end: u64, result: u64) -> bool {
    let Some((plain, call)) = begun_plain(frame) else {
        return false;
    };
    if plain.has_failed(result) || control::is_asked(wanted::ARGUMENTS) || !is_of_this_thread(call.thread) {
        return false;
    }
    if call.thread.cooperative.get() != 0 {
        return false;
    }
    call.thread.hip_frame.set(0);
    collector::exit_plain(end, call, plain, plain.argument(&frame.passage.registers))
}

/// The plain call of a frame.
#[inline(always)]
fn begun_plain(frame: &Frame) -> Option<(&'static Plain, &PlainCall)> {
    // SAFETY: the assembly comes to the hook after the function only when `enter` asked for it, and then it wrote this.
    let plain = unsafe { frame.plain.assume_init() }?;
    // SAFETY: written beside that.
    Some((plain, unsafe { frame.plain_call.assume_init_ref() }))
}

/// False in a forked child that returns from its parent's call: it has no ring for that call.
#[inline(always)]
fn is_of_this_thread(thread: &thread::Thread) -> bool {
    thread::existing().is_some_and(|here| std::ptr::eq(here, thread))
}

/// Writes what other calls have of a plain call that takes the long path.
#[cold]
fn complete(frame: &mut Frame) {
    let Some((plain, call)) = begun_plain(frame) else {
        return;
    };
    let call = call.call(plain);
    let Some(function) = FUNCTIONS.get(frame.passage.place as usize) else {
        return;
    };
    frame.argument = fetch(frame, function.argument);
    frame.call.write(call);
    frame.function.write(function);
}

#[inline(never)]
fn exit_any(frame: &mut Frame, end: u64) {
    wall((), || {
        if begun_plain(frame).is_some() {
            complete(frame);
        }
        // SAFETY: the assembly comes here only when `record_enter` asked for it, and then it wrote the call.
        let call = unsafe { frame.call.assume_init_ref() };
        // SAFETY: as above.
        let function = unsafe { frame.function.assume_init() };
        if !is_of_this_thread(call.thread) {
            return;
        }
        if matches!(function.domain, Domain::Hip | Domain::Compiler) {
            call.thread.hip_frame.set(0);
        }
        if call.thread.cooperative.replace(0) != 0 {
            cooperative::end();
        }
        let status = status(function, frame);
        let is_explained = function.domain == Domain::Rccl || control::is_asked(wanted::ARGUMENTS);
        if is_explained {
            explain(end, frame, function, call, status);
        } else {
            collector::exit_at(end, call, status, frame.argument);
        }
        if status.is_some_and(|code| code != 0) {
            failed(function, frame, call);
        }
        if function.effect == Effect::Wait {
            hsa::harvest::wait_ends();
            if status == Some(0) {
                watchdog::wait_ended(call.thread);
            }
        } else if function.effect.is_after() || cooperative::is_capturing() {
            take_part(function, frame, call);
        }
        call.thread.end_origin();
    });
}

/// The return code of a call that has one.
#[inline(always)]
fn status(function: &Function, frame: &Frame) -> Option<i32> {
    (function.returns == Returns::Status).then_some(frame.passage.result() as i32)
}

#[cold]
#[inline(never)]
fn failed(function: &Function, frame: &Frame, call: &Call) {
    watchdog::failed(function);
    if let (Some(communication), Some(code)) = (function.communication(), status(function, frame)) {
        communicators::failed(communication, call, code, |place| fetch(frame, place));
    }
}

/// Whether a call with this return code had its effect.
fn has_effect(effect: Effect, status: Option<i32>) -> bool {
    match effect {
        // HIP may return that it has no profiler to stop.
        Effect::Stop => true,
        Effect::Communicator | Effect::GroupEnd => communicators::is_under_way(status),
        _ => status == Some(0),
    }
}

/// Records the arguments of a call after its return.
#[cold]
fn explain(end: u64, frame: &Frame, function: &Function, call: &Call, status: Option<i32>) {
    let mut stack = [0u64; Arguments::STACK];
    for (number, word) in stack.iter_mut().enumerate().take(usize::from(function.stack_words)) {
        *word = fetch(frame, ArgumentLocation::Stack(number as u8));
    }
    let [first, ..] = frame.passage.registers;
    let given = if function.gives && status == Some(0) && first != 0 {
        // SAFETY: the call succeeded, so its first argument points to what it gave.
        unsafe { *(first as *const u64) }
    } else {
        0
    };
    let arguments = Arguments {
        registers: frame.passage.registers,
        given,
        stack,
        stack_words: function.stack_words,
    };
    collector::exit_explained(end, call, status, frame.argument, &arguments);
}

#[cold]
#[inline(never)]
fn take_part(function: &Function, frame: &Frame, call: &Call) {
    if function.effect == Effect::Graph {
        let _errno = Errno::keep();
        graphs::launch_ends(call.correlation, status(function, frame) == Some(0));
    }
    if !has_effect(function.effect, status(function, frame)) {
        return;
    }
    let _errno = Errno::keep();
    let Some(process) = process::get() else { return };
    let tid = call.thread.tid();
    let [first, second, ..] = frame.passage.registers;
    match function.effect {
        Effect::StreamCreate if first != 0 => {
            // SAFETY: the call succeeded, so its first argument points to the new stream's handle.
            let handle = unsafe { *(first as *const u64) };
            process.stream(handle, tid);
        }
        Effect::Lookup => unseen::give_wrapped(first as *const c_char, second as *mut *mut c_void),
        Effect::Start => roctx::resume(),
        Effect::Stop => roctx::pause(),
        Effect::CaptureBegin => cooperative::capture_begins(),
        Effect::CaptureEnd => cooperative::capture_ends(),
        Effect::Communicator => {
            if let Some(communication) = function.communication() {
                communicators::created(communication, call, |place| fetch(frame, place));
            }
        }
        Effect::GroupEnd => communicators::group_ended(call.thread),
        Effect::Nodes => graphs::changed(&graph_call(function, frame, call)),
        launch if launch.launches() => {
            graphs::launched(&graph_call(function, frame, call), fetch(frame, function.stream));
        }
        _ if function.has_site => {
            graphs::moved(&graph_call(function, frame, call), fetch(frame, function.stream));
        }
        _ => {}
    }
}
