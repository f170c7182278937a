//! Scratch memory that the run-time assigns to queues and reclaims, from its table of tool events (6.1 and later).
//!
//! The run-time does not report the bytes of a free. Not supported: releases without the table.

#![expect(unsafe_code, reason = "the run-time's table and its events")]

use super::agent::UNKNOWN;
use super::{hook, queue};
use crate::guard::{Errno, wall};
use crate::process::Process;
use crate::state::{self, word};
use crate::{clock, collector, control, thread};
use hsa_sys::abi::{ScratchEvent, Status};
use hsa_sys::table::{Root, Table, ToolEvent, tools_entry};
use roctop_ring::record::{Scratch, scratch, status};
use roctop_ring::session::wanted;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// Events in progress: queue, operation, ticks.
static BEGUN: Mutex<Vec<(u64, u16, u64)>> = Mutex::new(Vec::new());
const MAX_EVENTS: usize = 1024;
/// Queues with scratch memory: address, agent, dense id. A destroyed queue is unknown elsewhere when its memory is
/// reclaimed.
static GIVEN: Mutex<Vec<(u64, u32, u32)>> = Mutex::new(Vec::new());

/// Agent and dense id of an event's queue.
fn whose(event: &ScratchFields, operation: u16) -> (u32, u32) {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = queue::find(event.queue).map(|queue| (queue.agent.index, queue.id));
    let has_room = given.len() < MAX_EVENTS;
    let known = given.iter_mut().find(|(queue, ..)| *queue == event.queue);
    match (found, known) {
        (Some((agent, id)), Some(known)) => *known = (event.queue, agent, id),
        (Some((agent, id)), None) if operation == scratch::ALLOC && has_room => given.push((event.queue, agent, id)),
        (None, Some(&mut (_, agent, id))) => return (agent, id),
        _ => {}
    }
    found.unwrap_or((UNKNOWN, 0))
}

/// Previous functions, by entry.
static BEHIND: Mutex<[usize; tools_entry::COUNT]> = Mutex::new([0; tools_entry::COUNT]);

/// Fields of an event, as far as its kind has them.
struct ScratchFields {
    queue: u64,
    flags: u32,
    packet: u64,
    size: u64,
    slots: u64,
}

/// # Safety
/// `event` is one of the run-time, of the entry `ENTRY`.
unsafe fn said<const ENTRY: usize>(event: *const ScratchEvent) -> ScratchFields {
    let is_given = ENTRY == 1;
    // SAFETY: by the contract; only the end of an allocation goes on behind the flags and is read there.
    unsafe {
        ScratchFields {
            queue: (*event).queue,
            flags: (*event).flags,
            packet: if is_given { (*event).packet } else { 0 },
            size: if is_given { (*event).size } else { 0 },
            slots: if is_given { (*event).slots } else { 0 },
        }
    }
}

fn begins(event: &ScratchFields, operation: u16) {
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    if begun.len() < MAX_EVENTS {
        begun.push((event.queue, operation, clock::now()));
    }
}

fn ends(event: &ScratchFields, operation: u16) {
    let end = clock::now();
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    let at = begun
        .iter()
        .rposition(|&(queue, begun, _)| (queue, begun) == (event.queue, operation));
    let start = at.map_or(end, |at| begun.swap_remove(at).2);
    drop(begun);
    if !control::is_wanted(wanted::SCRATCH) {
        return;
    }
    let Some(thread) = thread::current() else { return };
    let (agent, queue) = whose(event, operation);
    collector::scratch(&Scratch {
        start,
        end,
        correlation: thread.current.get(),
        bytes: event.size,
        packet: event.packet,
        agent,
        queue,
        operation,
        flags: event.flags as u16,
        slots: event.slots as u32,
    });
}

unsafe extern "C" fn event<const ENTRY: usize>(event: *const ScratchEvent) -> Status {
    if state::is_on(word::HSA) {
        wall((), || {
            let _errno = Errno::keep();
            if event.is_null() {
                return;
            }
            // SAFETY: the run-time passes an event of this entry, valid during the call.
            let event = &unsafe { said::<ENTRY>(event) };
            let operation = ENTRY as u16 / 2 + 1;
            if ENTRY.is_multiple_of(2) {
                begins(event, operation);
            } else {
                ends(event, operation);
            }
        });
    }
    let behind = BEHIND
        .lock()
        .map_or(0, |behind| behind.get(ENTRY).copied().unwrap_or(0));
    // SAFETY: null is none; else what was in this entry of the run-time's table.
    let behind = unsafe { std::mem::transmute::<usize, Option<ToolEvent>>(behind) };
    // SAFETY: the caller's own argument.
    behind.map_or(0, |behind| unsafe { behind(event) })
}

pub(crate) fn patch(process: &Process, root: &Root) {
    // SAFETY: the root is the run-time's.
    let Some(table) = (unsafe { root.tools() }).and_then(Table::new) else {
        process.say(
            status::UNAVAILABLE,
            0,
            "scratch memory: this run-time does not report it (6.1 and later do)",
        );
        return;
    };
    let ours: [ToolEvent; tools_entry::COUNT] =
        [event::<0>, event::<1>, event::<2>, event::<3>, event::<4>, event::<5>];
    let mut behind = BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
    for ((entry, ours), behind) in ours.into_iter().enumerate().zip(behind.iter_mut()) {
        // SAFETY: the table is the run-time's.
        *behind = unsafe { table.function(entry) }.map_or(0, |function| function as usize);
        hook(table, entry, ours as *mut c_void);
    }
}
