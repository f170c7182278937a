//! Copies (HSA_OPS): while their records are requested, each gets a signal of ours. When the copy is done, its times go
//! to the record, and times and decrement to the program's own signal.

use super::original::{amd, core, hook};
use super::settle::{
    ASYNC_HANDLER, SIGNAL_CREATE, SIGNAL_DESTROY, SIGNAL_STORE_SCRELEASE, SignalCreate, SignalDestroy, SignalSet,
};
use crate::async_handler::{AsyncHandler, CONDITION_LT};
use crate::domain::Domain;
use crate::pool::Opened;
use crate::record::Record;
use crate::registration::REGISTERED;
use crate::wall::wall;
use crate::{clock, control, correlation};
use hsa_sys::abi::{Agent, Dim3, Pitched, SUCCESS, Signal, SignalHandle, Span, Status};
use hsa_sys::table::{AmdLayout, AsyncCopy, AsyncCopyOnEngine, AsyncCopyRect, Table, amd_entry};
use std::ffi::c_void;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};

/// `HSA_OP_ID_COPY`.
const COPY: u32 = 1;
/// Entry of the core table.
const SIGNAL_SUBTRACT_SCRELEASE: usize = 67;

type GetTime = unsafe extern "C" fn(SignalHandle, *mut Span) -> Status;
type Enable = unsafe extern "C" fn(bool) -> Status;

const STATUS_ERROR: Status = 0x1000;

/// Whether the program wants times on its own copies.
static IS_ASKED: AtomicBool = AtomicBool::new(false);
/// Whether the run-time takes times.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// A copy in progress.
struct Timed {
    proxy: SignalHandle,
    own: SignalHandle,
    bytes: u64,
    correlation: u64,
    /// The copy was rejected.
    is_off: AtomicBool,
}

/// Puts the functions below into the table.
pub(super) fn patch(table: Table, layout: AmdLayout) {
    IS_ON.store(false, Ordering::Relaxed);
    let hooks: [(usize, *mut c_void); 4] = [
        (amd_entry::ASYNC_COPY, async_copy as AsyncCopy as *mut c_void),
        (
            amd_entry::ASYNC_COPY_ON_ENGINE,
            async_copy_on_engine as AsyncCopyOnEngine as *mut c_void,
        ),
        (
            amd_entry::ASYNC_COPY_RECT,
            async_copy_rect as AsyncCopyRect as *mut c_void,
        ),
        (amd_entry::ASYNC_COPY_ENABLE, async_copy_enable as Enable as *mut c_void),
    ];
    for (newest, function) in hooks {
        hook(table, layout.entry(newest), function);
    }
}

unsafe extern "C" fn async_copy_enable(is_wanted: bool) -> Status {
    // SAFETY: the entry's type.
    let Some(enable) = (unsafe { amd::<Enable>(amd_entry::ASYNC_COPY_ENABLE) }) else {
        return STATUS_ERROR;
    };
    let is_ours = is_recorded();
    // SAFETY: a plain call.
    let status = unsafe { enable(is_wanted || is_ours) };
    if status == SUCCESS {
        IS_ASKED.store(is_wanted, Ordering::Release);
        IS_ON.store(is_wanted || is_ours, Ordering::Release);
    }
    status
}

fn is_recorded() -> bool {
    REGISTERED.hsa_work.get(COPY).is_some() && !control::is_stopped()
}

/// Makes the copy with its signal, or with a proxy if it is to be recorded.
fn copied(own: SignalHandle, bytes: u64, copy: impl FnOnce(SignalHandle) -> Status) -> Status {
    let is_recorded = is_recorded();
    let is_needed = is_recorded || IS_ASKED.load(Ordering::Acquire);
    if IS_ON.load(Ordering::Acquire) != is_needed {
        // SAFETY: the entry's type, a plain call.
        unsafe {
            if let Some(enable) = amd::<Enable>(amd_entry::ASYNC_COPY_ENABLE) {
                enable(is_needed);
            }
        }
        IS_ON.store(is_needed, Ordering::Release);
    }
    let timed = if is_recorded {
        wall(None, || time(own, bytes))
    } else {
        None
    };
    let Some(timed) = timed else { return copy(own) };
    let status = copy(timed.proxy);
    if status != SUCCESS {
        timed.is_off.store(true, Ordering::Release);
        // SAFETY: the entry's type; the waiting handler frees the signal and its data.
        unsafe {
            if let Some(store) = core::<SignalSet>(SIGNAL_STORE_SCRELEASE) {
                store(timed.proxy, 0);
            }
        }
    }
    status
}

/// A signal of ours for a copy, with a handler that waits for it. The handler owns the result.
fn time(own: SignalHandle, bytes: u64) -> Option<&'static Timed> {
    // SAFETY: the entries' types.
    let (create, destroy, handler) = unsafe {
        (
            core::<SignalCreate>(SIGNAL_CREATE)?,
            core::<SignalDestroy>(SIGNAL_DESTROY)?,
            amd::<AsyncHandler>(ASYNC_HANDLER)?,
        )
    };
    let mut proxy = 0;
    // SAFETY: the handle is writable.
    if unsafe { create(1, 0, null(), &raw mut proxy) } != SUCCESS {
        return None;
    }
    let timed = Box::into_raw(Box::new(Timed {
        proxy,
        own,
        bytes,
        correlation: correlation::current(),
        is_off: AtomicBool::new(false),
    }));
    // SAFETY: the handler gets the address once, and frees it.
    if unsafe { handler(proxy, CONDITION_LT, 1, done, timed.cast()) } == SUCCESS {
        // SAFETY: it lives until the signal is set, by the copy or by `copied`.
        return Some(unsafe { &*timed });
    }
    // SAFETY: nobody else has them.
    unsafe {
        destroy(proxy);
        drop(Box::from_raw(timed));
    }
    None
}

/// On the run-time's thread: the copy is done.
unsafe extern "C" fn done(_value: i64, data: *mut c_void) -> bool {
    wall(false, || {
        // SAFETY: the address that `time` passed, and this is the only call with it.
        let timed = unsafe { Box::from_raw(data.cast::<Timed>()) };
        if !timed.is_off.load(Ordering::Acquire) {
            record(&timed);
            pass_on(&timed);
        }
        // SAFETY: the entry's type; nobody else has the signal.
        unsafe {
            if let Some(destroy) = core::<SignalDestroy>(SIGNAL_DESTROY) {
                destroy(timed.proxy);
            }
        }
        false
    })
}

fn record(timed: &Timed) {
    let Some(pool) = REGISTERED.hsa_work.get(COPY).and_then(Opened::of_words) else {
        return;
    };
    let mut span = Span::default();
    // SAFETY: the entry's type; the times are writable.
    let known = unsafe {
        amd::<GetTime>(amd_entry::GET_ASYNC_COPY_TIME).is_some_and(|get| get(timed.proxy, &raw mut span) == SUCCESS)
    };
    if known {
        let record = Record {
            domain: Domain::HsaOps as u32,
            kind: 0,
            op: COPY,
            reserved: 0,
            correlation: timed.correlation,
            begin: clock::of_ticks(span.start),
            end: clock::of_ticks(span.end),
            place: [0; 4],
            detail: timed.bytes,
        };
        pool.write(&[record], None);
    }
}

/// Passes times and decrement to the program's own signal.
fn pass_on(timed: &Timed) {
    let signal = |handle: SignalHandle| handle as usize as *const Signal;
    // SAFETY: a signal's handle is the address of its structure in every release; null if the program gave none.
    if let (Some(proxy), Some(own)) = unsafe { (signal(timed.proxy).as_ref(), signal(timed.own).as_ref()) } {
        own.start.store(proxy.start.load(Ordering::Relaxed), Ordering::Relaxed);
        own.end.store(proxy.end.load(Ordering::Relaxed), Ordering::Relaxed);
        // SAFETY: the entry's type; the program keeps its signal until the copy is done.
        unsafe {
            if let Some(subtract) = core::<SignalSet>(SIGNAL_SUBTRACT_SCRELEASE) {
                subtract(timed.own, 1);
            }
        }
    }
}

unsafe extern "C" fn async_copy(
    to: *mut c_void,
    to_agent: Agent,
    from: *const c_void,
    from_agent: Agent,
    size: usize,
    count: u32,
    signals: *const SignalHandle,
    own: SignalHandle,
) -> Status {
    // SAFETY: the entry's type.
    let Some(copy) = (unsafe { amd::<AsyncCopy>(amd_entry::ASYNC_COPY) }) else {
        return STATUS_ERROR;
    };
    // SAFETY: the caller's own arguments.
    copied(own, size as u64, |own| unsafe {
        copy(to, to_agent, from, from_agent, size, count, signals, own)
    })
}

unsafe extern "C" fn async_copy_on_engine(
    to: *mut c_void,
    to_agent: Agent,
    from: *const c_void,
    from_agent: Agent,
    size: usize,
    count: u32,
    signals: *const SignalHandle,
    own: SignalHandle,
    engine: u32,
    is_forced: bool,
) -> Status {
    // SAFETY: the entry's type.
    let Some(copy) = (unsafe { amd::<AsyncCopyOnEngine>(amd_entry::ASYNC_COPY_ON_ENGINE) }) else {
        return STATUS_ERROR;
    };
    // SAFETY: the caller's own arguments.
    copied(own, size as u64, |own| unsafe {
        copy(
            to, to_agent, from, from_agent, size, count, signals, own, engine, is_forced,
        )
    })
}

unsafe extern "C" fn async_copy_rect(
    to: *const Pitched,
    to_offset: *const Dim3,
    from: *const Pitched,
    from_offset: *const Dim3,
    range: *const Dim3,
    agent: Agent,
    direction: i32,
    count: u32,
    signals: *const SignalHandle,
    own: SignalHandle,
) -> Status {
    // SAFETY: the entry's type.
    let Some(copy) = (unsafe { amd::<AsyncCopyRect>(amd_entry::ASYNC_COPY_RECT) }) else {
        return STATUS_ERROR;
    };
    // SAFETY: the caller's range, which the function reads too.
    let bytes =
        unsafe { range.as_ref() }.map_or(0, |range| u64::from(range.x) * u64::from(range.y) * u64::from(range.z));
    // SAFETY: the caller's own arguments.
    copied(own, bytes, |own| unsafe {
        copy(
            to,
            to_offset,
            from,
            from_offset,
            range,
            agent,
            direction,
            count,
            signals,
            own,
        )
    })
}
