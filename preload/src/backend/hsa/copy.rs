//! Copies by the GPU's engines: timed in place on their own signals, with nothing added.
//!
//! A copy whose signal cannot be watched gets one of the collector's, see [`super::proxy`]; if that fails too, it is
//! recorded untimed and counted.

#![expect(unsafe_code, reason = "hooks with the run-time's signatures")]

mod call;
mod copy_slots;

pub(super) use self::call::direction_of;
pub(crate) use self::call::patch;
pub(crate) use self::copy_slots::{forget_all, in_flight};

use self::copy_slots::{place, release, reserve, taken};
use super::signal::{self, Kind};
use super::{Hsa, driver, harvest, hsa, proxy};
use crate::backend::hip::graphs;
use crate::guard::wall;
use crate::origin::Origin;
use crate::state::{self, word};
use crate::{clock, collector, control, process, thread};
use hsa_sys::abi::{SUCCESS, SignalHandle, Span, Status};
use roctop_ring::layout::counter;
use roctop_ring::record::{Copy, direction, engine, flag};
use roctop_ring::session::wanted;
use roctop_ring::sync::Ordering;
use std::sync::OnceLock;

/// Source of a copy record: in place on its own signal.
const IN_PLACE: u16 = 1;

/// Engine of a copy: kernels of the run-time copy within a GPU's memory, and everywhere if DMA is switched off or the
/// GPU has no engine for it (`GpuAgent::GetBlitObject`, amd_gpu_agent.cpp of ROCr 5.2 to 7.2).
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

/// Direction between memory of two agents, by dense index.
pub(crate) fn between(dst: u32, src: u32) -> u16 {
    hsa().map_or(direction::UNKNOWN, |hsa| direction_of(hsa, dst, src))
}

/// A requested copy, from the call's arguments.
struct Request {
    dst: u64,
    dst_agent: u32,
    src: u64,
    src_agent: u32,
    /// `None` if the call does not show it.
    bytes: Option<u64>,
    direction: u16,
}

/// A copy that is being passed to the run-time.
enum Begun {
    /// Not recorded.
    Not,
    /// Watched in this slot.
    Watched(usize),
    /// Watched in this slot, on a signal of the collector's.
    Proxied(usize, SignalHandle),
    /// Untimed.
    Untimed(Copy),
}

impl Begun {
    /// Signal for the run-time.
    fn signal(&self, own: SignalHandle) -> SignalHandle {
        if let Self::Proxied(_, proxy) = self {
            *proxy
        } else {
            own
        }
    }
}

/// How a copy may be timed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// On its own signal, or on one of the collector's if that cannot be watched.
    OnAny,
    /// On its own signal only, because the program keeps the structure that contains it.
    OnOwn,
    /// Not at all: other copies share its signal.
    Not,
}

fn begin(request: impl FnOnce() -> Option<Request>, handle: SignalHandle, how: How) -> Begun {
    proxy::forget(handle);
    if !state::is_on(word::HSA) {
        return Begun::Not;
    }
    wall(Begun::Not, || {
        // The run-time refuses a copy without a signal.
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
        // In this case the run-time does nothing and leaves the signal unchanged.
        if request.bytes == Some(0) {
            return Begun::Not;
        }
        process.count(counter::COPIES, 1);
        watch(submitted(&request, thread), handle, how)
    })
}

/// Record of a copy that `thread` submits now, if it has a ring.
fn submitted(request: &Request, thread: Option<&thread::Thread>) -> Copy {
    let origin = thread.map_or_else(|| Origin::new(thread::gettid(), 0, 0), thread::Thread::origin);
    let correlation = thread.map_or(0, |thread| thread.current.get());
    Copy {
        submit: clock::now(),
        correlation,
        bytes: request.bytes.unwrap_or(0),
        dst: request.dst,
        src: request.src,
        src_agent: request.src_agent,
        dst_agent: request.dst_agent,
        stream: origin.stream(),
        tid: origin.tid(),
        direction: request.direction,
        engine: made_by(request),
        source: IN_PLACE,
        site: graphs::site_of_copy(correlation, origin.site()),
        ..Copy::default()
    }
}

/// Watches the copy's signal in place, or else a substitute.
fn watch(record: Copy, handle: SignalHandle, how: How) -> Begun {
    let Some(number) = (how != How::Not).then(reserve).flatten() else {
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
    // A substitute needs the thread that forwards it.
    if how == How::OnAny
        && harvest::start_thread()
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

/// Records the completed copies; under the harvester's lock.
pub(crate) fn harvest(hsa: &Hsa) -> usize {
    taken().filter(|number| harvest_one(hsa, *number)).count()
}

/// Shutdown of the run-time: incomplete copies are recorded untimed. Under the harvester's lock.
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

/// Records the copy in a slot if it has completed.
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
