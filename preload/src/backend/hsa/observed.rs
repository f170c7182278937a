//! Queues that cannot be intercepted: their packets are read when the doorbell rings, and timed on the signals that
//! they have.
//!
//! From HSA 6.2 on, an agent has one queue for cooperative launches. All users share it, and a proxy would destroy it.
//! From ROCr 1.21 on there are counted queues, which the run-time shares, possibly with several handles; the doorbell
//! identifies a queue. Nothing is written to such a queue, because the processor may take a valid packet at any time. A
//! packet without a signal, or with one that cannot be watched, is recorded untimed. HIP is made to attach signals, see
//! `backend::hip::cooperative`.

#![expect(unsafe_code, reason = "packets in the program's queue")]

use super::packet::{self, Submission};
use super::queue::Queue;
use super::{Hsa, hsa, signal};
use crate::backend::hip::watchdog;
use crate::clock;
use crate::process;
use hsa_sys::abi::{Packet, Queue as HsaQueue, SignalHandle, packet as aql};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An observed queue. There are few: one per agent for cooperative launches, and some counted ones.
struct Observed {
    /// A handle for each creation without a destruction.
    users: Vec<u64>,
    doorbell: SignalHandle,
    queue: &'static Queue,
    /// The next packet to read, and the last one for which the doorbell rang.
    next: u64,
    rung: u64,
}

static ALL: Mutex<Vec<Observed>> = Mutex::new(Vec::new());
/// Number of observed queues: most programs have none.
static COUNT: AtomicU64 = AtomicU64::new(0);

fn all() -> MutexGuard<'static, Vec<Observed>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The run-time returned a known queue again. `None` if it is new.
pub(crate) fn shared(handle: *const HsaQueue) -> Option<&'static Queue> {
    let mut all = all();
    // SAFETY: the run-time just handed it out.
    let doorbell = unsafe { (*handle).doorbell };
    let known = all.iter_mut().find(|one| one.doorbell == doorbell)?;
    known.users.push(handle as u64);
    Some(known.queue)
}

/// Observes a new queue.
pub(crate) fn begin(hsa: &Hsa, handle: *const HsaQueue, queue: &'static Queue) {
    // SAFETY: the run-time just handed it out.
    let next = unsafe { (hsa.core.load_write_index)(handle) };
    all().push(Observed {
        users: vec![handle as u64],
        // SAFETY: as above.
        doorbell: unsafe { (*handle).doorbell },
        queue,
        next,
        rung: next,
    });
    COUNT.fetch_add(1, Ordering::Release);
}

/// Remaining users of a queue after one has left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Nobody,
    /// Others, with different handles.
    Others,
    /// Others, also with the same handle.
    Same,
}

/// A user destroys the queue.
pub(crate) fn end(handle: *const HsaQueue) -> Left {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Left::Nobody;
    }
    let mut all = all();
    let is_user = |one: &Observed| one.users.iter().rposition(|user| *user == handle as u64);
    let Some((at, user)) = all.iter().enumerate().find_map(|(at, one)| Some((at, is_user(one)?))) else {
        return Left::Nobody;
    };
    if let Some(one) = all.get_mut(at) {
        if let Some(hsa) = hsa() {
            one.look(hsa);
        }
        one.users.swap_remove(user);
        if one.users.contains(&(handle as u64)) {
            return Left::Same;
        }
        if !one.users.is_empty() {
            return Left::Others;
        }
    }
    all.swap_remove(at);
    COUNT.fetch_sub(1, Ordering::Release);
    Left::Nobody
}

/// A signal is about to be stored to: if it is a doorbell, the packets are read before they run.
#[inline(always)]
pub(crate) fn before_store(handle: SignalHandle, value: i64) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        ring(handle, value.cast_unsigned());
    }
}

#[cold]
fn ring(doorbell: SignalHandle, last: u64) {
    let Some(hsa) = hsa() else { return };
    let mut all = all();
    let Some(one) = all.iter_mut().find(|one| one.doorbell == doorbell) else {
        return;
    };
    one.rung = one.rung.max(last.wrapping_add(1));
    one.look(hsa);
}

/// The run-time starts: drops queues of an earlier one, or of the parent process.
pub(crate) fn forget_all() {
    if let Ok(mut all) = ALL.try_lock() {
        all.clear();
        COUNT.store(0, Ordering::Release);
    }
}

/// A processor that takes packets before their doorbell rings may report it later: then the last ones were not read.
pub(crate) fn look_again() {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    if let (Some(hsa), Ok(mut all)) = (hsa(), ALL.try_lock()) {
        for one in all.iter_mut() {
            one.look(hsa);
        }
    }
}

impl Observed {
    /// Reads the packets for which the doorbell rang.
    fn look(&mut self, hsa: &Hsa) {
        if self.next >= self.rung {
            return;
        }
        let Some(user) = self.users.first() else { return };
        let handle = *user as usize as *const HsaQueue;
        // SAFETY: the program rings the queue's doorbell, or has not destroyed it yet, so it exists.
        let (base, size) = unsafe { ((*handle).base.cast::<Packet>(), u64::from((*handle).size)) };
        while self.next < self.rung {
            // SAFETY: a queue has `size` packets, a power of two.
            let place = unsafe { base.add((self.next & (size - 1)) as usize) };
            // SAFETY: packets are memory that the program and the processor write; a private copy is looked at.
            let packet = unsafe { place.read_volatile() };
            if packet.header & aql::TYPE == aql::INVALID {
                // SAFETY: as above.
                if self.next >= unsafe { (hsa.core.load_read_index)(handle) } {
                    // Another thread has reserved it, not written it yet, and will ring too; or the processor has taken
                    // it and not reported that yet, see `look_again`.
                    return;
                }
                missed(self.queue, &packet, self.next);
            } else {
                look(self.queue, &packet, self.next);
            }
            self.next += 1;
        }
    }
}

fn look(queue: &'static Queue, packet: &Packet, index: u64) {
    if packet.completion != 0 && packet.has_completion_in_place() {
        signal::before_change(packet.completion);
    }
    if packet.is_dispatch() {
        dispatch(queue, packet, index);
    }
}

/// The processor was faster: the packet's type is lost. Its signal has the times.
fn missed(queue: &'static Queue, packet: &Packet, index: u64) {
    if packet.was_dispatch() {
        dispatch(queue, &packet.with_likely_type(), index);
    }
}

fn dispatch(queue: &'static Queue, packet: &Packet, index: u64) {
    if packet::is_wanted() {
        let id = process::get().map_or(0, |process| process.submit(1) + 1);
        let (index, now) = (Some(index), clock::now());
        packet::observe(queue, &Submission { packet, index, id, now });
    } else {
        watchdog::unwanted(1);
    }
}
