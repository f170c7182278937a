//! Pool memory for signals, and flight-file pages over it.
//!
//! The pool's memory is anonymous memory that the driver knows by its address (`hsaKmtAllocMemory` of host memory,
//! thunk of ROCm 5.2 to 7.2). To the driver, tmpfs pages at the same address are like an application's registered
//! shared memory. When pages are replaced, however, the driver stops all queues of the process until it has found the
//! new ones. It is therefore done while no GPU works, and for several queues of a GPU before its first work. If the
//! pool is in a mapping of the driver, nothing is done.

#![expect(unsafe_code, reason = "memory of the run-time's pools")]

use super::super::{Hsa, agent, harvest};
use super::source::Source;
use crate::level::{self, Level, Reason};
use crate::process;
use hsa_sys::abi::{Agent as AgentHandle, SUCCESS, Signal, info};
use roctop_ring::flight::{FlightFile, PAGE, Reserved};
use roctop_ring::record::status;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of queues that HIP creates per GPU by default (`GPU_MAX_HW_QUEUES`).
const QUEUES: usize = 4;

/// Flight-file pages over pool memory, for a future queue.
struct Prepared {
    agent: AgentHandle,
    count: usize,
    signals: *mut Signal,
    reserved: Reserved,
}

// SAFETY: nobody reads or writes the memory before the file is taken.
unsafe impl Send for Prepared {}

static PREPARED: Mutex<Vec<Prepared>> = Mutex::new(Vec::new());

/// The run-time starts: drops memory of an earlier one, or of the parent process.
pub(super) fn forget_all() {
    if let Ok(mut prepared) = PREPARED.try_lock() {
        prepared.clear();
    }
    if let Ok(mut unfilled) = UNFILLED.try_lock() {
        unfilled.clear();
    }
    if let Ok(mut unready) = UNREADY.try_lock() {
        unready.clear();
    }
}

/// Memory for `count` signals that the host and a GPU see without delay.
///
/// It comes from the pool of the run-time's own signals: fine-grained, for kernel arguments, uncached
/// (`system_allocator_`, runtime.cpp of ROCr 5.2 to 7.2). From gfx942 on, the GPU may cache memory of the plain
/// fine-grained pool, so the host could see completions late or never. A run-time without the former pool has none for
/// our signals.
pub(super) fn allocate(hsa: &Hsa, agent: AgentHandle, count: usize) -> Option<*mut Signal> {
    let host = hsa.agents.all().iter().find(|agent| agent.kind == agent::CPU)?;
    let wanted = info::POOL_FINE | info::POOL_KERNARG;
    let pools = agent::pools(hsa, host.handle);
    let pool = pools.into_iter().find(|pool| pool.flags & wanted == wanted)?;
    let mut address = std::ptr::null_mut();
    // SAFETY: the pool is the run-time's; `address` has room for the answer.
    if unsafe { (hsa.amd.pool_allocate)(pool.handle, count * size_of::<Signal>(), 0, &raw mut address) } != SUCCESS {
        return None;
    }
    // SAFETY: the memory was just allocated; one handle is listed.
    if unsafe { (hsa.amd.allow_access)(1, &raw const agent, std::ptr::null(), address) } != SUCCESS {
        return None;
    }
    Some(address.cast())
}

/// Memory ranges without pages: address and bytes. A page that is used earlier is allocated then.
static UNFILLED: Mutex<Vec<[usize; 2]>> = Mutex::new(Vec::new());
static HAS_UNFILLED: AtomicU64 = AtomicU64::new(0);

/// The harvesting thread allocates the pages of permanent memory later, so that neither launches nor queue creation
/// wait for them.
pub(super) fn fill_later<T>(memory: &'static [T]) {
    UNFILLED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push([memory.as_ptr().addr(), size_of_val(memory)]);
    HAS_UNFILLED.store(1, Ordering::Release);
}

/// Flight files with slots that are not prepared.
static UNREADY: Mutex<Vec<&'static FlightFile>> = Mutex::new(Vec::new());
static HAS_UNREADY: AtomicU64 = AtomicU64::new(0);
/// Number of slots that get their pages at once.
pub(super) const STEP_SLOTS: usize = 2048;

fn unready() -> MutexGuard<'static, Vec<&'static FlightFile>> {
    UNREADY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prepares some slots of a flight file, because a program that launches without a pause needs them soon. False if
/// there are none. On the harvesting thread.
pub(crate) fn make_ready() -> bool {
    if HAS_UNREADY.load(Ordering::Acquire) == 0 {
        return false;
    }
    let file = {
        let all = unready();
        let Some(file) = all.first().copied() else {
            HAS_UNREADY.store(0, Ordering::Release);
            return false;
        };
        file
    };
    let ready = file.ready();
    // If the tmpfs is full, the queue's handler deals with it.
    let is_done = !file.make_ready(ready + STEP_SLOTS) || file.ready() == ready;
    if is_done {
        unready().retain(|other| !std::ptr::eq(*other, file));
    }
    true
}

/// Allocates some pages. On the harvesting thread.
pub(crate) fn fill() {
    const STEP: usize = 1 << 18;
    if HAS_UNFILLED.load(Ordering::Acquire) == 0 {
        return;
    }
    let mut all = UNFILLED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some([address, bytes]) = all.pop() else {
        HAS_UNFILLED.store(0, Ordering::Release);
        return;
    };
    let from = address & !(PAGE - 1);
    let until = (address + bytes).min(from + STEP);
    if until < address + bytes {
        all.push([until, address + bytes - until]);
    }
    drop(all);
    // SAFETY: the memory is never freed, and its contents stay as they are. Kernels before 5.14 refuse.
    unsafe { libc::madvise(from as *mut libc::c_void, until - from, libc::MADV_POPULATE_WRITE) };
}

/// Signals of `count` slots, in a file that outlives the process if possible.
pub(super) fn keep(hsa: &Hsa, agent: AgentHandle, count: usize) -> (Source, Option<&'static FlightFile>) {
    let nowhere = || (Source::new(count, 0, 0), None);
    if level::current() != Level::Files {
        return nowhere();
    }
    let Some(prepared) = prepared(hsa, agent, count) else {
        return nowhere();
    };
    let taken = prepared.and_then(|Prepared { signals, reserved, .. }| {
        let process = process::get().ok_or("the process has no ring")?;
        let file = process.take_flight(reserved, count).map_err(|error| why(&error))?;
        Ok((signals, file))
    });
    match taken {
        Ok((signals, file)) => {
            let file: &'static FlightFile = Box::leak(Box::new(file));
            unready().push(file);
            HAS_UNREADY.store(1, Ordering::Release);
            (Source::new(count, signals as u64, 0), Some(file))
        }
        Err(reason) => {
            level::step_down_because(Level::Memory, Reason::NoFile, 0, reason);
            nowhere()
        }
    }
}

/// Pages for a queue: existing ones, else new ones for several queues. `Err` has the reason; `None` if a later attempt
/// may differ.
fn prepared(hsa: &Hsa, agent: AgentHandle, count: usize) -> Option<Result<Prepared, &'static str>> {
    let mut all = PREPARED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.iter().position(|one| (one.agent, one.count) == (agent, count));
    if let Some(at) = known {
        return Some(Ok(all.swap_remove(at)));
    }
    let made = harvest::while_idle(|| Some(prepare(agent, allocate(hsa, agent, QUEUES * count)?, count)));
    if made.is_none() {
        say_busy();
    }
    Some(made??.and_then(|mut made| {
        let first = made.pop().ok_or(NO_FILES)?;
        all.extend(made);
        Ok(first)
    }))
}

pub(super) const NO_ROOM: &str =
    "no room for what a queue has in flight in the session's tmpfs (of a container: --shm-size)";
const NO_FILES: &str = "the program may open no file any more";

fn why(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => NO_ROOM,
        _ => NO_FILES,
    }
}

/// Maps pages over new pool memory for several queues; `Err` has the reason.
fn prepare(agent: AgentHandle, signals: *mut Signal, count: usize) -> Result<Vec<Prepared>, &'static str> {
    let address = signals as usize;
    let is_anonymous = is_anonymous(address, QUEUES * count * size_of::<Signal>()).map_err(|_| NO_FILES)?;
    if !is_anonymous || !address.is_multiple_of(PAGE) {
        return Err("the run-time's memory is a mapping of the driver's own");
    }
    let process = process::get().ok_or("the process has no ring")?;
    let mut made = Vec::with_capacity(QUEUES);
    for number in 0..QUEUES {
        let signals = signals.wrapping_add(number * count);
        // SAFETY: the memory was just allocated for these signals; nothing was written to it and nobody else knows it.
        match unsafe { process.reserve_flight(count, signals.cast()) } {
            Ok(reserved) => made.push(Prepared {
                agent,
                count,
                signals,
                reserved,
            }),
            Err(error) if number == 0 => return Err(why(&error)),
            Err(_) => break,
        }
    }
    made.reverse();
    Ok(made)
}

/// A queue was created while GPUs worked. Reported once.
fn say_busy() {
    static SAID: AtomicU64 = AtomicU64::new(0);
    if let Some(process) = process::get().filter(|_| SAID.swap(1, Ordering::Relaxed) == 0) {
        process.say(
            status::NOTE,
            0,
            "kernels of a queue that complete just before a kill -9 may be lost: it was made while GPUs were at work, and a \
             flight file for it would have stopped them",
        );
    }
}

/// Whether the range is in memory without a file. Some releases map their pools shared, which shows as /dev/zero.
fn is_anonymous(address: usize, length: usize) -> io::Result<bool> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let mut at = address;
    for line in maps.lines() {
        // start-end permissions offset device inode [path]
        let mut words = line.split_ascii_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let Some((Ok(start), Ok(end))) =
            range.map(|(from, to)| (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16)))
        else {
            return Ok(false);
        };
        if end <= at {
            continue;
        }
        let permissions = words.next();
        let inode = words.nth(2);
        let path = words.collect::<Vec<_>>();
        let is_plain = match permissions {
            Some("rw-p") => inode == Some("0"),
            Some("rw-s") => path == ["/dev/zero", "(deleted)"],
            _ => false,
        };
        if start > at || !is_plain {
            return Ok(false);
        }
        at = end;
        if at >= address + length {
            return Ok(true);
        }
    }
    Ok(false)
}
