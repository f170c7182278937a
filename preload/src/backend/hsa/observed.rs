//! Queues that cannot be intercepted: their packets are looked at when their doorbell rings, and timed in place on the
//! signals that they have.
//!
//! From HSA 6.2 on an agent has one queue for cooperative launches. All that ask for it share it, and a proxy would
//! destroy it. Nothing is written to such a queue, because a valid packet may be taken at any time: what has no signal,
//! or one that cannot be watched, is recorded without a time. HIP is made to give its packets signals, see
//! `backend::hip::cooperative`.

#![expect(unsafe_code, reason = "packets in the program's queue")]

use super::packet;
use super::queue::Queue;
use super::{Hsa, hsa, signal};
use crate::clock;
use crate::control;
use crate::level::{self, Level};
use crate::process;
use hsa_sys::abi::{Packet, Queue as HsaQueue, SignalHandle, packet as aql};
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One of the few: an agent has one.
struct Observed {
    handle: u64,
    doorbell: SignalHandle,
    queue: &'static Queue,
    /// Creations less destructions.
    users: u64,
    /// The next packet to look at, and the last one for which the doorbell rang.
    next: u64,
    rung: u64,
}

static ALL: Mutex<Vec<Observed>> = Mutex::new(Vec::new());
/// Their number: most programs have none.
static COUNT: AtomicU64 = AtomicU64::new(0);

fn all() -> MutexGuard<'static, Vec<Observed>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The queue was handed out once more. False when it is new.
pub(crate) fn is_shared(handle: *const HsaQueue) -> bool {
    let mut all = all();
    let known = all.iter_mut().find(|one| one.handle == handle as u64);
    known.map(|one| one.users += 1).is_some()
}

/// A queue begins to be observed.
pub(crate) fn begin(hsa: &Hsa, handle: *const HsaQueue, queue: &'static Queue) {
    // SAFETY: the run-time just handed it out.
    let next = unsafe { (hsa.core.load_write_index)(handle) };
    all().push(Observed {
        handle: handle as u64,
        // SAFETY: as above.
        doorbell: unsafe { (*handle).doorbell },
        queue,
        users: 1,
        next,
        rung: next,
    });
    COUNT.fetch_add(1, Ordering::Release);
}

/// One of its users destroys the queue. True unless others go on using it.
pub(crate) fn end(handle: *const HsaQueue) -> bool {
    if COUNT.load(Ordering::Acquire) == 0 {
        return true;
    }
    let mut all = all();
    let Some(at) = all.iter().position(|one| one.handle == handle as u64) else {
        return true;
    };
    if let Some(one) = all.get_mut(at) {
        if let Some(hsa) = hsa() {
            one.look(hsa);
        }
        if one.users > 1 {
            one.users -= 1;
            return false;
        }
    }
    all.swap_remove(at);
    COUNT.fetch_sub(1, Ordering::Release);
    true
}

/// A signal is stored to: is it a doorbell? Before the store, so that the packets are looked at before they run.
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

/// The run-time starts: queues of an earlier one went with it, and those of a parent are none of this one's.
pub(crate) fn forget_all() {
    if let Ok(mut all) = ALL.try_lock() {
        all.clear();
        COUNT.store(0, Ordering::Release);
    }
}

/// A processor that takes packets before their doorbell rings may tell so later: then nobody has looked at the last ones.
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
    /// Looks at the packets for which the doorbell rang.
    fn look(&mut self, hsa: &Hsa) {
        if self.next >= self.rung {
            return;
        }
        let handle = self.handle as usize as *const HsaQueue;
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
                    // Another thread has reserved it and not written it yet, and will ring too; or the processor has taken
                    // it and not told yet, see `look_again`.
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
    let kind = packet.header & aql::TYPE;
    if packet.completion != 0 && kind != aql::VENDOR {
        signal::before_change(packet.completion);
    }
    if kind == aql::DISPATCH && is_wanted() {
        packet::observe(queue, packet, describe(queue, packet, index));
    }
}

/// The processor was faster: which type the packet had is gone, but barriers have no dimensions. Its signal has the times.
fn missed(queue: &'static Queue, packet: &Packet, index: u64) {
    if packet.setup != 0 && is_wanted() {
        packet::observe(queue, packet, describe(queue, packet, index));
    }
}

fn is_wanted() -> bool {
    control::is_wanted(wanted::DISPATCH) && level::current() <= Level::Program
}

fn describe(queue: &Queue, packet: &Packet, index: u64) -> roctop_ring::record::Dispatch {
    let id = process::get().map_or(0, |process| process.submit(1) + 1);
    packet::describe(queue, packet, Some(index), id, clock::now())
}
