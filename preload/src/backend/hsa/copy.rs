//! Copies that the GPU's engines make: timed in place on their own signals, nothing added.
//!
//! A copy whose signal cannot be watched gets a signal of ours, see [`super::proxy`]; where that fails too it is recorded
//! without a time and counted.

#![expect(unsafe_code, reason = "hooks with the run-time's signatures")]

use super::agent::{self, UNKNOWN};
use super::signal::{self, Kind, Watch};
use super::{Hsa, driver, harvest, hook, hsa, proxy};
use crate::guard::wall;
use crate::state::{self, word};
use crate::{clock, collector, control, process, thread};
use core::cell::UnsafeCell;
use hsa_sys::abi::{Agent, Dim3, Pitched, SUCCESS, SignalHandle, Span, Status};
use hsa_sys::table::{AmdLayout, AsyncCopy, AsyncCopyOnEngine, AsyncCopyRect, Table, amd_entry};
use roctop_ring::layout::counter;
use roctop_ring::record::{Copy, direction, engine, flag};
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::c_void;
use std::sync::OnceLock;

const ITEMS: usize = 4096;
/// Source of a copy record: in place on its own signal.
const IN_PLACE: u16 = 1;

struct Item {
    watch: Watch,
    record: UnsafeCell<Copy>,
    /// Our signal and the program's, when ours stands in; else 0.
    proxy: AtomicU64,
    original: AtomicU64,
}

// SAFETY: a place's record is written by the thread that reserved it, before its watch is armed, and read by the
// harvester after.
unsafe impl Sync for Item {}

static PLACES: [Item; ITEMS] = [const {
    Item {
        watch: Watch::new(),
        record: UnsafeCell::new(Copy {
            begin: 0,
            end: 0,
            submit: 0,
            correlation: 0,
            bytes: 0,
            dst: 0,
            src: 0,
            src_agent: 0,
            dst_agent: 0,
            stream: 0,
            tid: 0,
            direction: 0,
            engine: 0,
            source: 0,
            reserved: 0,
        }),
        proxy: AtomicU64::new(0),
        original: AtomicU64::new(0),
    }
}; ITEMS];
/// A bit for each place that is taken.
static TAKEN: [AtomicU64; ITEMS / 64] = [const { AtomicU64::new(0) }; ITEMS / 64];

fn place(number: usize) -> &'static Item {
    #[expect(clippy::indexing_slicing, reason = "a remainder by the length")]
    &PLACES[number % ITEMS]
}

/// Copies that were begun and not recorded yet.
pub(crate) fn in_flight() -> u64 {
    let taken = TAKEN.iter().map(|word| word.load(Ordering::Acquire).count_ones());
    u64::from(taken.sum::<u32>())
}

fn reserve() -> Option<usize> {
    for (at, word) in TAKEN.iter().enumerate() {
        let mut taken = word.load(Ordering::Relaxed);
        while taken != u64::MAX {
            let bit = taken.trailing_ones();
            // Acquire: pairs with `release`; whoever had the place has done with it.
            match word.compare_exchange_weak(taken, taken | 1 << bit, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(at * 64 + bit as usize),
                Err(now) => taken = now,
            }
        }
    }
    None
}

fn release(number: usize) {
    if let Some(word) = TAKEN.get(number / 64) {
        word.fetch_and(!(1 << (number % 64)), Ordering::Release);
    }
}

/// Which engine makes a copy: the run-time's own kernels do inside a GPU's memory, and everywhere when DMA is switched off or
/// the GPU has no engine for it (`GpuAgent::GetBlitObject`, amd_gpu_agent.cpp of ROCr 5.2 to 7.2).
fn made_by(request: &Request) -> u16 {
    static IS_DMA_OFF: OnceLock<bool> = OnceLock::new();
    let is_inside = request.direction == direction::D2D && request.src_agent == request.dst_agent;
    let is_off = || *IS_DMA_OFF.get_or_init(|| std::env::var_os("HSA_ENABLE_SDMA").is_some_and(|value| value == "0"));
    let has_none = || hsa().is_some_and(|hsa| hsa.agents.has_no_engines([request.src_agent, request.dst_agent]));
    if is_inside || is_off() || has_none() {
        engine::BLIT
    } else {
        engine::SDMA
    }
}

/// What a copy is about, from the arguments of the call.
struct Request {
    dst: u64,
    dst_agent: u32,
    src: u64,
    src_agent: u32,
    bytes: u64,
    direction: u16,
}

/// A copy that is being handed to the run-time.
enum Begun {
    /// Not recorded.
    Not,
    /// Watched at this place.
    Watched(usize),
    /// The same, with a signal of ours.
    Proxied(usize, SignalHandle),
    /// Without a time.
    Untimed(Copy),
}

impl Begun {
    /// The signal for the run-time.
    fn signal(&self, own: SignalHandle) -> SignalHandle {
        if let Self::Proxied(_, proxy) = self {
            *proxy
        } else {
            own
        }
    }
}

fn begin(request: impl FnOnce() -> Option<Request>, handle: SignalHandle) -> Begun {
    proxy::forget(handle);
    if !state::is_on(word::HSA) {
        return Begun::Not;
    }
    wall(Begun::Not, || {
        // A copy without a signal is refused by the run-time.
        if handle == 0 {
            return Begun::Not;
        }
        signal::before_change(handle);
        if !control::is_wanted(wanted::COPY) {
            return Begun::Not;
        }
        let thread = thread::quietly();
        if thread.is_none() && thread::is_aside() {
            return Begun::Not;
        }
        let (Some(request), Some(process)) = (request(), process::get()) else {
            return Begun::Not;
        };
        // The run-time does nothing at all then, and leaves the signal as it is.
        if request.bytes == 0 {
            return Begun::Not;
        }
        process.count(counter::COPIES, 1);
        let record = Copy {
            submit: clock::now(),
            correlation: thread.map_or(0, |thread| thread.current.get()),
            bytes: request.bytes,
            dst: request.dst,
            src: request.src,
            src_agent: request.src_agent,
            dst_agent: request.dst_agent,
            stream: thread.map_or(0, |thread| thread.stream.get()),
            tid: thread.map_or_else(thread::gettid, thread::Thread::tid),
            direction: request.direction,
            engine: made_by(&request),
            source: IN_PLACE,
            ..Copy::default()
        };
        let Some(number) = reserve() else {
            return Begun::Untimed(record);
        };
        let item = place(number);
        // SAFETY: the place was just reserved, its watch is not armed.
        unsafe { item.record.get().write(record) };
        item.proxy.store(0, Ordering::Relaxed);
        if item.watch.in_place(handle, Kind::Copy) {
            harvest::start_thread();
            harvest::began(1);
            return Begun::Watched(number);
        }
        // A signal of ours needs the thread that passes it on.
        if harvest::start_thread()
            && let Some(proxy) = hsa().and_then(proxy::get)
        {
            item.original.store(handle, Ordering::Relaxed);
            item.proxy.store(proxy, Ordering::Relaxed);
            item.watch.own(proxy, Kind::Proxy);
            harvest::began(1);
            return Begun::Proxied(number, proxy);
        }
        release(number);
        Begun::Untimed(record)
    })
}

fn end(begun: &Begun, status: Status) {
    match *begun {
        Begun::Watched(number) if status != SUCCESS => wall((), || {
            let item = place(number);
            item.watch.cancel();
            release(number);
            harvest::ended(1);
            uncount();
        }),
        Begun::Proxied(number, proxy) if status != SUCCESS => wall((), || {
            let item = place(number);
            item.watch.free();
            release(number);
            harvest::ended(1);
            proxy::give_back(proxy);
            uncount();
        }),
        Begun::Proxied(..) => wall((), proxy::watch),
        Begun::Untimed(_) if status != SUCCESS => wall((), uncount),
        Begun::Not | Begun::Watched(_) => {}
        Begun::Untimed(ref record) => wall((), || untimed(record, 0)),
    }
}

fn uncount() {
    if let Some(process) = process::get() {
        process.count(counter::COPIES, u64::MAX);
    }
}

fn untimed(record: &Copy, flags: u8) {
    if let Some(process) = process::get() {
        process.count(counter::COPIES_UNTIMED, 1);
    }
    recorded(record, flags | flag::UNTIMED);
}

fn recorded(record: &Copy, flags: u8) {
    collector::copy(record, flags);
    if let Some(process) = process::get() {
        process.count(counter::COPIES_RECORDED, 1);
    }
}

/// Places that are taken now.
fn taken() -> impl Iterator<Item = usize> {
    TAKEN.iter().enumerate().flat_map(|(at, word)| {
        let mut taken = word.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let bit = taken.trailing_zeros() as usize;
            (taken != 0).then(|| {
                taken &= taken - 1;
                at * 64 + bit
            })
        })
    })
}

/// Records the copies that completed; under the harvester's lock.
pub(crate) fn harvest(hsa: &Hsa) -> usize {
    taken().filter(|number| harvest_one(hsa, *number)).count()
}

/// The run-time shuts down: what has not completed is recorded without times. Under the harvester's lock.
pub(crate) fn lose_all() {
    for number in taken() {
        let item = place(number);
        item.watch.lose();
        if item.watch.look().is_some() {
            // SAFETY: as in `harvest_one`.
            let record = unsafe { *item.record.get() };
            item.watch.free();
            if item.proxy.load(Ordering::Relaxed) != 0 {
                proxy::abandon();
            }
            release(number);
            harvest::ended(1);
            untimed(&record, 0);
        }
    }
}

/// The run-time starts: copies of an earlier one, or of a parent, are none of this one's.
pub(crate) fn forget_all() {
    for number in taken() {
        place(number).watch.free();
        release(number);
    }
}

/// Records the copy at a place when it completed.
fn harvest_one(hsa: &Hsa, number: usize) -> bool {
    let item = place(number);
    let Some([begin, end]) = item.watch.look() else {
        return false;
    };
    // SAFETY: the watch was armed after the record was written, and stays until the place is given back.
    let mut record = unsafe { *item.record.get() };
    item.watch.free();
    match item.proxy.load(Ordering::Relaxed) {
        0 => {}
        ours => {
            let span = Span { start: begin, end };
            proxy::forward(hsa, ours, item.original.load(Ordering::Relaxed), span);
        }
    }
    release(number);
    harvest::ended(1);
    if begin == 0 || end == 0 {
        untimed(&record, 0);
        return true;
    }
    (record.begin, record.end) = (hsa.nanoseconds(begin), hsa.nanoseconds(end));
    if hsa.is_time([record.begin, record.end]) {
        driver::saw(record.begin, record.end, record.submit);
        recorded(&record, 0);
    } else {
        untimed(&record, harvest::doubt());
    }
    true
}

/// The direction by the kinds of the agents, which are dense indices.
pub(super) fn way(hsa: &Hsa, dst: u32, src: u32) -> u16 {
    let all = hsa.agents.all();
    let kind = |index| all.iter().find(|agent| agent.index == index).map(|agent| agent.kind);
    match (kind(src), kind(dst)) {
        (Some(agent::CPU), Some(agent::CPU)) => direction::H2H,
        (Some(agent::CPU), Some(agent::GPU)) => direction::H2D,
        (Some(agent::GPU), Some(agent::CPU)) => direction::D2H,
        (Some(agent::GPU), Some(agent::GPU)) => direction::D2D,
        _ => direction::UNKNOWN,
    }
}

fn linear(hsa: &Hsa, dst: *mut c_void, to: Agent, src: *const c_void, from: Agent, size: usize) -> Request {
    let (dst_agent, src_agent) = (hsa.agents.index(to), hsa.agents.index(from));
    Request {
        dst: dst as u64,
        dst_agent,
        src: src as u64,
        src_agent,
        bytes: size as u64,
        direction: way(hsa, dst_agent, src_agent),
    }
}

unsafe extern "C" fn copy(
    dst: *mut c_void,
    to: Agent,
    src: *const c_void,
    from: Agent,
    size: usize,
    count: u32,
    before: *const SignalHandle,
    signal: SignalHandle,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let begun = begin(|| Some(linear(hsa, dst, to, src, from, size)), signal);
    // SAFETY: the caller's own arguments.
    let status = unsafe { (hsa.amd.async_copy)(dst, to, src, from, size, count, before, begun.signal(signal)) };
    end(&begun, status);
    status
}

unsafe extern "C" fn copy_on_engine(
    dst: *mut c_void,
    to: Agent,
    src: *const c_void,
    from: Agent,
    size: usize,
    count: u32,
    before: *const SignalHandle,
    signal: SignalHandle,
    engine: u32,
    force: bool,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let Some(original) = hsa.amd.async_copy_on_engine else {
        return 0x1000;
    };
    let begun = begin(|| Some(linear(hsa, dst, to, src, from, size)), signal);
    // SAFETY: the caller's own arguments.
    let status = unsafe {
        original(
            dst,
            to,
            src,
            from,
            size,
            count,
            before,
            begun.signal(signal),
            engine,
            force,
        )
    };
    end(&begun, status);
    status
}

unsafe extern "C" fn copy_rect(
    dst: *const Pitched,
    dst_offset: *const Dim3,
    src: *const Pitched,
    src_offset: *const Dim3,
    range: *const Dim3,
    by: Agent,
    way: i32,
    count: u32,
    before: *const SignalHandle,
    signal: SignalHandle,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let request = || {
        // SAFETY: the program passes valid structures or null.
        let (to, from, range) = unsafe { (dst.as_ref()?, src.as_ref()?, range.as_ref()?) };
        // SAFETY: as above.
        let (to_offset, from_offset) = unsafe { (dst_offset.as_ref()?, src_offset.as_ref()?) };
        let at = |side: &Pitched, offset: &Dim3| {
            let rows = side.pitch.wrapping_mul(u64::from(offset.y));
            let layers = side.slice.wrapping_mul(u64::from(offset.z));
            side.base
                .wrapping_add(u64::from(offset.x))
                .wrapping_add(rows)
                .wrapping_add(layers)
        };
        let gpu = hsa.agents.index(by);
        let cpu = hsa
            .agents
            .all()
            .iter()
            .find(|agent| agent.kind == agent::CPU)
            .map_or(UNKNOWN, |agent| agent.index);
        let (direction, src_agent, dst_agent) = match way {
            0 => (direction::H2H, cpu, cpu),
            1 => (direction::H2D, cpu, gpu),
            2 => (direction::D2H, gpu, cpu),
            _ => (direction::D2D, gpu, gpu),
        };
        let bytes = u64::from(range.x) * u64::from(range.y) * u64::from(range.z);
        Some(Request {
            dst: at(to, to_offset),
            dst_agent,
            src: at(from, from_offset),
            src_agent,
            bytes,
            direction,
        })
    };
    let begun = begin(request, signal);
    let original = hsa.amd.async_copy_rect;
    // SAFETY: the caller's own arguments.
    let status = unsafe {
        original(
            dst,
            dst_offset,
            src,
            src_offset,
            range,
            by,
            way,
            count,
            before,
            begun.signal(signal),
        )
    };
    end(&begun, status);
    status
}

/// The program's own wish for copy times: they stay on while they are read here.
unsafe extern "C" fn enable(on: bool) -> Status {
    let keep = on || state::is_on(word::HSA);
    // SAFETY: a plain call of the original.
    hsa().map_or(SUCCESS, |hsa| unsafe { (hsa.amd.async_copy_enable)(keep) })
}

pub(crate) fn patch(table: Table, layout: AmdLayout) {
    let hook_at = |entry: usize, function: *mut c_void| {
        if let Some(entry) = layout.entry(entry) {
            hook(table, entry, function);
        }
    };
    hook_at(amd_entry::ASYNC_COPY, copy as AsyncCopy as *mut c_void);
    hook_at(
        amd_entry::ASYNC_COPY_ON_ENGINE,
        copy_on_engine as AsyncCopyOnEngine as *mut c_void,
    );
    hook_at(amd_entry::ASYNC_COPY_RECT, copy_rect as AsyncCopyRect as *mut c_void);
    hook_at(
        amd_entry::ASYNC_COPY_ENABLE,
        enable as unsafe extern "C" fn(bool) -> Status as *mut c_void,
    );
}
