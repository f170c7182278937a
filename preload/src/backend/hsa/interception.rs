//! Creation and destruction of queues: those of GPUs are created as intercepted queues if possible.
//!
//! A queue created by a descriptor (`hsa_amd_queue_create`, ROCr 1.21) is intercepted if it is a plain one; it then
//! gets its priority and compute units. Others stay plain queues of the run-time. Counted queues are shared by the
//! run-time, so they are observed.

#![expect(unsafe_code, reason = "hooks with the run-time's signatures")]

use super::agent::{self, Agent};
use super::observed::Left;
use super::queue::{Queue, enter, find, leave};
use super::slots::Slots;
use super::{Hsa, harvest, hook, hsa, observed, packet, probe, ring_wrap};
use crate::backend::{hip, sdk};
use crate::guard::{Errno, wall};
use crate::level::{self, Level, Reason};
use crate::process::{self, Process};
use crate::state::{self, word};
use crate::{control, thread};
use hsa_sys::abi::{
    Agent as AgentHandle, Packet, QUEUE_COOPERATIVE, Queue as HsaQueue, QueueDescriptor, SUCCESS, Status,
};
use hsa_sys::table::{
    AmdLayout, CountedAcquire, Handler, InterceptRegister, QueueCallback, QueueCreate, QueueCreateDescribed, QueueEnd,
    Table, amd_entry, core_entry,
};
use roctop_ring::layout::{counter, queue as place};
use roctop_ring::record::status;
use roctop_ring::session::source;
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::Words;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of the last queue.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Proxies of cooperative queues, by agent. An agent has one such queue, which all users share. It ends with the
/// run-time, and destroying its proxy earlier would destroy it too.
static COOPERATIVE: Mutex<Vec<(AgentHandle, u64)>> = Mutex::new(Vec::new());

fn cooperative() -> MutexGuard<'static, Vec<(AgentHandle, u64)>> {
    COOPERATIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether any queue of the process was created through these hooks.
pub(crate) fn has_queue() -> bool {
    NUMBER.load(Ordering::Relaxed) != 0
}

/// Shutdown of the run-time, which ends its agents' queues.
pub(crate) fn forget_cooperative() {
    cooperative().clear();
}

pub(crate) fn patch(core: Table, amd: Table, layout: AmdLayout) {
    hook(core, core_entry::QUEUE_CREATE, create as QueueCreate as *mut c_void);
    hook(core, core_entry::QUEUE_DESTROY, destroy as QueueEnd as *mut c_void);
    hook(
        amd,
        amd_entry::SET_PROFILER_ENABLED,
        set_profiler_enabled as unsafe extern "C" fn(*mut HsaQueue, i32) -> Status as *mut c_void,
    );
    if let (Some(create), Some(register)) = (
        layout.entry(amd_entry::INTERCEPT_CREATE),
        layout.entry(amd_entry::INTERCEPT_REGISTER),
    ) {
        hook(amd, create, create_for_tool as QueueCreate as *mut c_void);
        hook(amd, register, register_for_tool as InterceptRegister as *mut c_void);
    }
    for (entry, ours) in [
        (
            amd_entry::QUEUE_CREATE,
            create_described as QueueCreateDescribed as *mut c_void,
        ),
        (amd_entry::COUNTED_ACQUIRE, acquire as CountedAcquire as *mut c_void),
        (amd_entry::COUNTED_RELEASE, release as QueueEnd as *mut c_void),
    ] {
        if let Some(entry) = layout.newer(entry) {
            hook(amd, entry, ours);
        }
    }
}

/// Whether cooperative queues are only observed. HIP up to 5.7 gives their packets no signals, and never shuts HSA
/// down; later ones would report the proxy as leaked.
fn is_observed(hsa: &Hsa) -> bool {
    hsa.layout.shares_cooperative_queue() || hip::library().is_none()
}

/// How a queue is created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// As a proxy, for our handler.
    Interception,
    /// By the run-time's function, and observed.
    Observation,
    /// By another tool's function, which may have made a proxy.
    Tool,
}

impl By {
    fn for_queue(hsa: &Hsa, queue_type: u32) -> Self {
        // The SDK makes proxies of cooperative queues too.
        if queue_type == QUEUE_COOPERATIVE && is_observed(hsa) && !sdk::is_counting() {
            Self::Observation
        } else if hsa.queues_are_tools {
            Self::Tool
        } else {
            Self::Interception
        }
    }
}

unsafe extern "C" fn create(
    agent: AgentHandle,
    size: u32,
    queue_type: u32,
    callback: QueueCallback,
    data: *mut c_void,
    private: u32,
    group: u32,
    out: *mut *mut HsaQueue,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    // SAFETY: the caller's own arguments; all these functions have this signature.
    let make =
        |function: QueueCreate| unsafe { function(agent, size, queue_type, callback, data, private, group, out) };
    let made = wall(None, || {
        let _errno = Errno::keep();
        if !thread::is_traced() {
            return None;
        }
        // SAFETY: `make` has the caller's `out`.
        thread::aside(|| unsafe { create_seen(hsa, agent, queue_type, out, make) })
    });
    made.unwrap_or_else(|| make(hsa.core.queue_create))
}

/// Creates a queue whose dispatches are seen; `None` if it is not such a queue, or that fails.
///
/// # Safety
/// There is room for a pointer at `out`, and `make` writes the queue there when it succeeds.
unsafe fn create_seen(
    hsa: &'static Hsa,
    agent: AgentHandle,
    queue_type: u32,
    out: *mut *mut HsaQueue,
    make: impl Fn(QueueCreate) -> Status,
) -> Option<Status> {
    let gpu = wanted(hsa, agent)?;
    let by = By::for_queue(hsa, queue_type);
    let is_proxy_of_sdk = by == By::Tool && sdk::is_counting();
    let is_cooperative = queue_type == QUEUE_COOPERATIVE && (by == By::Interception || is_proxy_of_sdk);
    if is_cooperative && let Some((_, known)) = cooperative().iter().find(|(of, _)| *of == agent) {
        // SAFETY: the caller gives room for the answer.
        unsafe { out.write(*known as usize as *mut HsaQueue) };
        return Some(SUCCESS);
    }
    let status = make(match by {
        By::Interception => hsa.amd.intercept_create,
        By::Observation | By::Tool => hsa.core.queue_create,
    });
    if status != SUCCESS && by == By::Interception {
        // The run-time may refuse a proxy where it accepts a plain queue.
        let plain = make(hsa.core.queue_create);
        if plain == SUCCESS {
            level::step_down(Level::Program, Reason::NoProxy, gpu.index);
            // SAFETY: the call succeeded, so the queue was written.
            observe(hsa, gpu, unsafe { *out }, None);
        }
        return Some(plain);
    }
    if status != SUCCESS {
        return Some(status);
    }
    // SAFETY: the call succeeded, so the queue was written.
    let handle = unsafe { *out };
    if is_cooperative {
        cooperative().push((agent, handle as u64));
        if is_proxy_of_sdk && hsa.layout.shares_cooperative_queue() {
            // 7.2 crashes when it ends an agent whose cooperative queue has the SDK's proxy (also with the SDK alone):
            // one more `hsa_init` makes it end with the process.
            // SAFETY: a plain call of the original.
            unsafe { (hsa.core.init)() };
        }
    }
    let is_timed = match by {
        By::Observation => observe(hsa, gpu, handle, Some(COOPERATIVE_SAID)),
        By::Interception | By::Tool => intercept(hsa, gpu, handle),
    };
    if by == By::Tool && is_timed.is_none() {
        // The other tool left it plain.
        // SAFETY: the queue was just made and nobody knows it yet.
        unsafe { (hsa.core.queue_destroy)(handle) };
        if make(hsa.amd.intercept_create) != SUCCESS {
            return None;
        }
        // SAFETY: as above.
        intercept(hsa, gpu, unsafe { *out });
    }
    Some(status)
}

/// Creates several queues by descriptors. As in the run-time, each possible one is created, and the first error is
/// returned.
unsafe extern "C" fn create_described(agent: AgentHandle, first: *mut QueueDescriptor, count: u32) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let Some(original) = hsa.amd.queue_create else {
        return 0x1000;
    };
    let descriptors = if first.is_null() { 0 } else { count as usize };
    let at = |number: usize| first.wrapping_add(number);
    let is_seen = wall(false, || {
        let _errno = Errno::keep();
        // SAFETY: the program passes `count` descriptors.
        let is_plain = |number| unsafe { (*at(number)).is_plain_compute() };
        thread::is_traced() && thread::aside(|| wanted(hsa, agent)).is_some() && (0..descriptors).any(is_plain)
    });
    if !is_seen {
        // SAFETY: the caller's own arguments.
        return unsafe { original(agent, first, count) };
    }
    let mut answer = SUCCESS;
    for number in 0..descriptors {
        let made = wall(None, || {
            let _errno = Errno::keep();
            // SAFETY: as above.
            thread::aside(|| unsafe { create_plain(hsa, agent, at(number), original) })
        });
        // SAFETY: the caller's own arguments, one by one.
        let status = made.unwrap_or_else(|| unsafe { original(agent, at(number), 1) });
        if answer == SUCCESS {
            answer = status;
        }
    }
    answer
}

/// Creates the queue of a plain descriptor so that its dispatches are seen; `None` if it is not such a queue, or that
/// fails.
///
/// # Safety
/// `descriptor` is the program's.
unsafe fn create_plain(
    hsa: &'static Hsa,
    agent: AgentHandle,
    descriptor: *mut QueueDescriptor,
    original: QueueCreateDescribed,
) -> Option<Status> {
    // SAFETY: by the contract.
    let wish = unsafe { *descriptor };
    if !wish.is_plain_compute() {
        process::get()?.say(
            status::INCOMPLETE,
            0,
            "kernels of a queue are not recorded: its descriptor asks for more than a queue for interception can be",
        );
        return None;
    }
    let packets = wish.bytes / size_of::<Packet>() as u32;
    // SAFETY: by the contract.
    let out = unsafe { &raw mut (*descriptor).queue };
    let make = |function: QueueCreate| {
        if std::ptr::fn_addr_eq(function, hsa.core.queue_create) {
            // SAFETY: the caller's own descriptor, to which `out` belongs.
            return unsafe { original(agent, descriptor, 1) };
        }
        let (callback, data, private) = (wish.callback, wish.data, wish.private_size);
        // SAFETY: the caller's own wishes; LDS is whatever kernels ask for.
        unsafe { function(agent, packets, wish.queue_type, callback, data, private, u32::MAX, out) }
    };
    // SAFETY: `make` writes the queue to `out`.
    let status = unsafe { create_seen(hsa, agent, wish.queue_type, out, make) }?;
    if status != SUCCESS || By::for_queue(hsa, wish.queue_type) != By::Interception {
        return Some(status);
    }
    // SAFETY: it was just made.
    let handle = unsafe { *out };
    // SAFETY: the queue is the program's, and so is the mask.
    let is_as_wished = unsafe {
        (wish.priority == QueueDescriptor::NORMAL || (hsa.amd.set_priority)(handle, wish.priority) == SUCCESS)
            && (wish.cu_mask_bits == 0 || (hsa.amd.set_cu_mask)(handle, wish.cu_mask_bits, wish.cu_mask) == SUCCESS)
    };
    if is_as_wished {
        return Some(SUCCESS);
    }
    // SAFETY: nobody knows the queue yet.
    unsafe {
        destroy(handle);
        out.write(std::ptr::null_mut());
    }
    None
}

/// A counted queue, which belongs to the run-time's pool, so it is not changed.
unsafe extern "C" fn acquire(
    agent: AgentHandle,
    queue_type: u32,
    priority: u32,
    callback: QueueCallback,
    data: *mut c_void,
    flags: u64,
    out: *mut *mut HsaQueue,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let Some(original) = hsa.amd.counted_acquire else {
        return 0x1000;
    };
    // SAFETY: the caller's own arguments.
    let status = unsafe { original(agent, queue_type, priority, callback, data, flags, out) };
    if status == SUCCESS && !sdk::is_counting() {
        wall((), || {
            let _errno = Errno::keep();
            if thread::is_traced() {
                // SAFETY: the call succeeded, so the queue was written.
                let handle = unsafe { *out };
                thread::aside(|| wanted(hsa, agent).and_then(|gpu| observe(hsa, gpu, handle, Some(COUNTED))));
            }
        });
    }
    status
}

/// A user releases a counted queue.
unsafe extern "C" fn release(handle: *mut HsaQueue) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let Some(original) = hsa.amd.counted_release else {
        return 0x1000;
    };
    // SAFETY: the caller's own argument.
    unsafe { end(handle, original) }
}

/// Another tool creates a proxy for its own handler: ours is behind it, next to the hardware.
unsafe extern "C" fn create_for_tool(
    agent: AgentHandle,
    size: u32,
    queue_type: u32,
    callback: QueueCallback,
    data: *mut c_void,
    private: u32,
    group: u32,
    out: *mut *mut HsaQueue,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    // SAFETY: the caller's own arguments.
    let status = unsafe { (hsa.amd.intercept_create)(agent, size, queue_type, callback, data, private, group, out) };
    if status == SUCCESS {
        wall((), || {
            let _errno = Errno::keep();
            if thread::is_traced() {
                // SAFETY: the call succeeded, so the queue was written.
                thread::aside(|| wanted(hsa, agent).and_then(|gpu| intercept(hsa, gpu, unsafe { *out })));
            }
        });
    }
    status
}

/// The program's own request for times: they stay enabled while the collector reads them.
unsafe extern "C" fn set_profiler_enabled(handle: *mut HsaQueue, on: i32) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let is_read = state::is_on(word::HSA) && find(handle as u64).is_some();
    // SAFETY: the caller's own arguments, but that times are kept where they are read.
    unsafe { (hsa.amd.set_profiler_enabled)(handle, if is_read { 1 } else { on }) }
}

/// Another tool's handler comes before ours: it may insert packets between the program's.
unsafe extern "C" fn register_for_tool(handle: *mut HsaQueue, handler: Handler, context: *mut c_void) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    if state::is_on(word::HSA)
        && let Some(queue) = find(handle as u64)
    {
        queue.is_shared.store(1, Ordering::Release);
    }
    // SAFETY: the caller's own arguments.
    unsafe { (hsa.amd.intercept_register)(handle, handler, context) }
}

/// Agent of a queue to be timed; `None` for a CPU.
fn wanted(hsa: &'static Hsa, handle: AgentHandle) -> Option<Agent> {
    let is_off = !state::is_on(word::HSA) || level::current() > Level::Program;
    let is_other = control::dispatch_source() == source::HIP || hip::watchdog::has_switched();
    if is_off || is_other {
        return None;
    }
    hsa.agents.discover(hsa, process::get()?);
    hsa.agents
        .by_handle(handle)
        .filter(|agent| agent.kind == agent::GPU)
        .copied()
}

/// State of a new queue, entered by its handle.
fn new(hsa: &'static Hsa, process: &'static Process, agent: Agent, handle: *mut HsaQueue, by: By) -> &'static Queue {
    // SAFETY: the run-time just made it.
    let size = unsafe { (*handle).size } as usize;
    let id = NUMBER.fetch_add(1, Ordering::Relaxed) as u32 + 1;
    probe::before_slots(agent);
    let slots = Slots::get(hsa, agent, size);
    if by == By::Interception {
        probe::before_queue(hsa, agent, &slots);
    }
    let queue: &'static Queue = Box::leak(Box::new(Queue::new(
        id,
        agent,
        slots,
        size as u64,
        claim_words(process, id),
        // SAFETY: as above.
        unsafe { (*handle).base } as u64,
        handle,
    )));
    if queue.words.is_none() {
        process.count(counter::QUEUES_FULL, 1);
    }
    if by == By::Interception {
        // The memory of its signals is allocated now, not in its first launch.
        queue.level();
    }
    enter(handle as u64, queue);
    // SAFETY: the bit only makes the processor write times.
    unsafe { (hsa.amd.set_profiler_enabled)(handle, 1) };
    queue
}

fn intercept(hsa: &'static Hsa, agent: Agent, handle: *mut HsaQueue) -> Option<()> {
    let process = process::get()?;
    let queue = new(hsa, process, agent, handle, By::Interception);
    let context = std::ptr::from_ref(queue).cast_mut().cast();
    // SAFETY: the queue was made by `intercept_create`; the context is never freed.
    if unsafe { (hsa.amd.intercept_register)(handle, packet::handler, context) } != SUCCESS {
        leave(handle as u64);
        forget(queue, true);
        process.say(
            status::NOTE,
            u64::from(queue.id),
            "a queue was not made for interception: the run-time refused the handler",
        );
        return None;
    }
    queue.emit(process, handle, 1);
    harvest::begin(queue);
    Some(())
}

/// Report on queues that are observed.
const COOPERATIVE_SAID: &str =
    "cooperative launches: their queue cannot be intercepted here; their kernels are timed on their own signals";
const COUNTED: &str = "counted queues: the run-time shares them out, so they are not intercepted; their kernels are timed on their own signals";

fn observe(hsa: &'static Hsa, agent: Agent, handle: *mut HsaQueue, said: Option<&str>) -> Option<()> {
    if let Some(queue) = observed::shared(handle) {
        if find(handle as u64).is_none() {
            enter(handle as u64, queue);
        }
        return Some(());
    }
    let process = process::get()?;
    let queue = new(hsa, process, agent, handle, By::Observation);
    queue.room.is_plain();
    queue.emit(process, handle, 1);
    harvest::begin(queue);
    observed::begin(hsa, handle, queue);
    if let Some(said) = said {
        process.say(status::NOTE, u64::from(agent.index), said);
    }
    Some(())
}

/// Removes a queue. Its number is free, and its memory if nothing of it is in flight (the processor may still write to
/// signals of incomplete dispatches).
fn forget(queue: &Queue, is_empty: bool) {
    if let Some(words) = queue.words {
        for word in words {
            word.store(0, Ordering::Relaxed);
        }
    }
    queue.witnesses.give_back();
    if is_empty {
        queue.slots.give_back();
    } else {
        queue.slots.leave();
    }
}

/// Reserves an entry in the file's table of queues.
fn claim_words(process: &'static Process, id: u32) -> Option<Words<'static>> {
    let file = process.main()?;
    (0..place::QUEUES).find_map(|index| {
        let words = file.queue(index)?;
        let free = words
            .first()?
            .compare_exchange(0, u64::from(id), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if free {
            for word in words.get(1..)? {
                word.store(0, Ordering::Relaxed);
            }
        }
        free.then_some(words)
    })
}

unsafe extern "C" fn destroy(handle: *mut HsaQueue) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    if wall(false, || cooperative().iter().any(|(_, known)| *known == handle as u64)) {
        return SUCCESS;
    }
    // SAFETY: the caller's own argument.
    unsafe { end(handle, hsa.core.queue_destroy) }
}

/// A user of a queue destroys it with this function of the run-time.
///
/// # Safety
/// `handle` is the program's own argument.
unsafe fn end(handle: *mut HsaQueue, original: QueueEnd) -> Status {
    let queue = if state::is_on(word::HSA) {
        find(handle as u64).filter(|_| match wall(Left::Nobody, || observed::end(handle)) {
            Left::Nobody => true,
            Left::Others => {
                leave(handle as u64);
                false
            }
            Left::Same => false,
        })
    } else {
        None
    };
    let mut is_empty = false;
    if let Some(queue) = queue {
        is_empty = wall(false, || {
            let _errno = Errno::keep();
            let drained = harvest::end(queue);
            leave(handle as u64);
            ring_wrap::forget(handle);
            if let Some(process) = process::get() {
                queue.emit(process, handle, 2);
            }
            drained
        });
    }
    // SAFETY: the caller's own argument.
    let status = unsafe { original(handle) };
    if let Some(queue) = queue {
        wall((), || forget(queue, is_empty));
    }
    status
}
