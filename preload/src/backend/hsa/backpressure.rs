//! Backpressure of an intercepted queue: the program waits before it writes a packet, as it would without roctop.
//!
//! The run-time's proxy accepts packets without limit, while a full plain queue makes the program wait. Up to ROCr 5.7
//! it aborts when two packets find the hardware queue full (`overflow_`, intercept_queue.cpp). Threads therefore wait
//! when they reserve a packet, and the handler waits if that was not enough.

use super::queue::{Apart, Queue};
use super::{Hsa, harvest, hsa, ring_wrap};
use crate::guard::Errno;
use crate::state::{self, word};
use hsa_sys::abi::Queue as HsaQueue;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One part in this many of the hardware queue is kept free: the packet processor may report a packet as read later
/// than it completes it. (5.2.3 aborted with 64 free packets of 1024.)
const FREE_PART: u64 = 4;
/// Packets kept free when nothing completes: one for the run-time's own barrier, and one that is being read.
const MIN_FREE_PACKETS: u64 = 2;
/// Sleep time while the program waits for space.
const NAP: Duration = Duration::from_micros(50);
/// Time without a completion after which the program may fill the queue, because the queue may wait for the program.
const STALL_TIME: Duration = Duration::from_millis(100);
/// Looks without a completion that a stall takes as well: a thread that the scheduler kept away for that time has not
/// looked.
const STALL_LOOKS: u32 = 300;
/// Wait without a completion where the program would wait without roctop too. After it the program continues and fills the
/// hardware queue. The run-time's proxy then takes nothing until that queue has drained.
const FULL_QUEUE_WAIT: Duration = Duration::from_secs(10);
/// Sleep time while nothing completes.
const STALL_NAP: Duration = Duration::from_millis(1);
/// Number of parts of the queue that each have a packet showing when it has left, even while nothing is recorded.
const MARK_PARTS: u64 = 16;

/// Fill level of a queue.
pub(crate) struct Room {
    /// Queue size in packets.
    pub(super) size: u64,
    /// Packets passed to the hardware, and how many may be before its queue could be full.
    written: AtomicU64,
    limit: AtomicU64,
    /// Packets of the program that the handler received.
    taken: AtomicU64,
    /// Slots whose packets were passed on; the newest ones wait for space.
    handed: AtomicU64,
    /// Packets of the program before this one have space, as far as is known. Threads that reserve packets read it while
    /// the handler writes the others.
    clear: Apart<AtomicU64>,
    /// The last packet that shows when it has left.
    marked: AtomicU64,
    /// Number of harvested slots when a wait for more was abandoned.
    given_up: AtomicU64,
    /// Number of departed packets when a wait for space was abandoned: the handler does not wait for that again.
    still: AtomicU64,
    /// Number of departed packets when a thread gave up although the queue was full.
    abandoned: AtomicU64,
    /// Packets that the handler had received when a thread stopped waiting for those before its own.
    unwritten: AtomicU64,
}

impl Room {
    pub(crate) const fn new(size: u64) -> Self {
        Self {
            size,
            written: AtomicU64::new(0),
            limit: AtomicU64::new(size - size / FREE_PART),
            taken: AtomicU64::new(0),
            handed: AtomicU64::new(0),
            clear: Apart::new(AtomicU64::new(0)),
            marked: AtomicU64::new(0),
            given_up: AtomicU64::new(u64::MAX),
            still: AtomicU64::new(u64::MAX),
            abandoned: AtomicU64::new(u64::MAX),
            unwritten: AtomicU64::new(u64::MAX),
        }
    }

    /// Marks the queue as having no proxy: the program checks for space itself.
    pub(crate) fn is_plain(&self) {
        self.clear.store(u64::MAX, Ordering::Relaxed);
    }

    /// Packets passed to the hardware. For the handler.
    #[inline]
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// A packet at `position` of the hardware queue has a watched signal. For the handler.
    #[inline]
    pub(crate) fn mark(&self, position: u64) {
        self.marked.store(position, Ordering::Relaxed);
    }

    /// Whether too many packets without a departure signal would go to the hardware. For the handler.
    #[inline]
    pub(crate) fn is_mark_due(&self, count: u64) -> bool {
        self.written() + count >= self.marked.load(Ordering::Relaxed) + self.size / MARK_PARTS
    }

    /// As `is_mark_due`, for twice as many: no suitable packet was found. For the handler.
    #[inline]
    pub(crate) fn is_long_unmarked(&self, count: u64) -> bool {
        self.written() + count >= self.marked.load(Ordering::Relaxed) + self.size / (MARK_PARTS / 2)
    }

    /// Number of packets of a large batch that contain at least one that shows when it has left, if any can.
    pub(crate) fn part(&self) -> usize {
        (self.size / FREE_PART).max(1) as usize
    }

    /// Number of packets that the hardware may hold.
    fn capacity(&self) -> u64 {
        self.size - self.size / FREE_PART
    }

    /// As `capacity`, when the hardware stands still: only new packets can make it continue.
    fn last_capacity(&self) -> u64 {
        self.size.saturating_sub(MIN_FREE_PACKETS)
    }
}

impl Queue {
    /// Waits before `count` packets from `first` on are written. On the thread that reserved them.
    #[inline(always)]
    pub(crate) fn reserve(&'static self, hsa: &Hsa, handle: *const HsaQueue, first: u64, count: u64) {
        let last = first.saturating_add(count);
        if last > self.room.clear.load(Ordering::Relaxed) {
            self.look_for_room(hsa, handle, first, last);
        }
    }

    #[cold]
    fn look_for_room(&'static self, hsa: &Hsa, handle: *const HsaQueue, first: u64, last: u64) {
        let _errno = Errno::keep();
        let room = &self.room;
        let ahead = || last.saturating_sub(room.taken.load(Ordering::Acquire));
        let needed = || room.written() + ahead();
        if needed() > room.limit.load(Ordering::Relaxed) {
            self.wait_for_room(needed, Wait::Reserving(first));
        }
        let fits = room.limit.load(Ordering::Relaxed).saturating_sub(room.written());
        let across = ring_wrap::wait(hsa, self, handle, first, last);
        let clear = across.min(room.taken.load(Ordering::Acquire) + fits);
        room.clear.store(clear, Ordering::Relaxed);
    }

    /// Waits until `count` packets have space in the hardware queue. The handler has received the program's packets up
    /// to `next`. Only the handler calls this, under the queue's lock.
    #[inline]
    pub(crate) fn hand_over(&self, count: u64, next: u64) {
        let room = &self.room;
        let needed = room.written() + count;
        if needed > room.limit.load(Ordering::Relaxed) {
            self.wait_for_room(|| needed, Wait::HandingOver(next));
        }
        room.written.store(needed, Ordering::Relaxed);
        room.taken.store(next, Ordering::Release);
        room.handed.store(self.head.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Number of packets that must be passed on separately, if there are as many as the hardware queue holds; `None` if
    /// there is no space now. ROCr 7 inserts its own packet before those and cannot show that it is still pending when
    /// it is the next one. The following doorbell then finds no space for another and aborts (`IsPendingRetryPoint`,
    /// intercept_queue.cpp; seen with 7.2.4, also with a handler that only passes packets on). Only the handler calls
    /// this, under the queue's lock.
    #[cold]
    pub(crate) fn hand_over_part(&self, next: u64) -> Option<u64> {
        let room = &self.room;
        let (written, handed) = (room.written(), room.handed.load(Ordering::Relaxed));
        let position = |sequence: u64| Some(self.slots.side(sequence)?.position.load(Ordering::Relaxed));
        let last = (handed..self.head.load(Ordering::Relaxed))
            .take_while(|sequence| position(*sequence).is_some_and(|at| at < written + room.capacity()))
            .last()?;
        let count = (position(last)? + 1).checked_sub(written)?;
        let needed = written + count;
        if needed > room.limit.load(Ordering::Relaxed) && !self.wait_for_room(|| needed, Wait::HandingOver(next)) {
            return None;
        }
        room.written.store(needed, Ordering::Relaxed);
        room.handed.store(last + 1, Ordering::Relaxed);
        Some(count)
    }

    /// Whether there is space for the program's packets up to `next` and for `more` of ours. It waits, and returns
    /// false if space will not come. If the proxy would not keep them, packets that the program reserved after these
    /// need space too. Only the handler calls this, under the queue's lock.
    pub(crate) fn has_room(&self, hsa: &Hsa, next: u64, count: u64, more: u64) -> bool {
        let room = &self.room;
        let ahead = if hsa.layout.keeps_overflow() {
            0
        } else {
            self.reserved(hsa).saturating_sub(next)
        };
        let needed = room.written() + count + more + ahead;
        needed <= room.limit.load(Ordering::Relaxed) || self.wait_for_room(|| needed, Wait::Adding)
    }

    /// Whether there is space for a witness before `count` packets, the last of which precedes the program's packet
    /// `next`. It may use the reserved part, because without a witness nothing might show the hardware queue's
    /// progress. False if the proxy keeps packets without space and needs no witness. Does not wait. Only the handler
    /// calls this, under the queue's lock.
    #[cold]
    pub(crate) fn has_room_for_witness(&self, hsa: &Hsa, next: u64, count: u64) -> bool {
        let ahead = self.reserved(hsa).saturating_sub(next);
        let place = self.left().0.unwrap_or(0);
        !hsa.layout.keeps_overflow() && self.room.written() + count + 1 + ahead <= place + self.room.last_capacity()
    }

    /// False if no space came.
    #[cold]
    fn wait_for_room(&self, needed: impl Fn() -> u64, who: Wait) -> bool {
        let _errno = Errno::keep();
        let room = &self.room;
        let mut stall = Stall::new(None);
        // When switched off, nothing is timed any more, and nobody is held up.
        while state::is_on(word::HSA) {
            let (left, is_empty) = self.left();
            let is_stalled = stall.look(left);
            let place = left.unwrap_or(0);
            let keeps_overflow = hsa().is_some_and(|hsa| hsa.layout.keeps_overflow());
            // Up to 5.7, several threads that continue at once overflow the hardware queue: each waits by itself.
            let remembers = !matches!(who, Wait::Reserving(_)) || keeps_overflow;
            let is_known_still = remembers && room.still.load(Ordering::Relaxed) == place;
            let is_still = is_known_still || is_stalled;
            let limit = place
                + if is_still {
                    room.last_capacity()
                } else {
                    room.capacity()
                };
            room.limit.fetch_max(limit, Ordering::Relaxed);
            // Without timed packets in flight, the queue's content is unknown: the proxy must handle it.
            if needed() <= limit {
                return true;
            }
            if is_empty {
                match who {
                    Wait::Adding => return keeps_overflow,
                    Wait::Reserving(first) if !keeps_overflow && self.wait_for_writers(first) => continue,
                    _ => return true,
                }
            }
            // The wait for what the program's own queue would hold must end: the program may have to act first, on this
            // very thread. Up to 5.7 the proxy keeps one packet too many, and lets those of the same doorbell overtake
            // it, so only the last one may be that.
            let gives_up = match who {
                Wait::HandingOver(next) if !keeps_overflow => {
                    let is_last = hsa().is_some_and(|hsa| self.reserved(hsa) <= next);
                    needed() < place + room.size + u64::from(is_last)
                }
                _ => true,
            };
            let would_wait_untraced = matches!(who, Wait::Reserving(first) if self.is_full(first, place));
            if would_wait_untraced {
                if room.abandoned.load(Ordering::Relaxed) == place || stall.since.elapsed() > FULL_QUEUE_WAIT {
                    room.abandoned.store(place, Ordering::Relaxed);
                    return false;
                }
            } else if is_still && gives_up {
                room.still.store(place, Ordering::Relaxed);
                return false;
            }
            std::thread::sleep(if is_still { STALL_NAP } else { NAP });
        }
        true
    }

    /// Whether the program would wait without roctop before it writes packet `first`. `left` packets have left the
    /// hardware queue.
    fn is_full(&self, first: u64, left: u64) -> bool {
        let ahead = first.saturating_sub(self.room.taken.load(Ordering::Acquire));
        self.room.written() + ahead >= left + self.room.size
    }

    /// Waits until threads that reserved packets before `first` write some of them. The next doorbell passes all
    /// written packets to the hardware, and up to 5.7 all must have space there. False if there is nothing to wait for.
    /// A thread that waits for itself gives up, for all.
    #[cold]
    fn wait_for_writers(&self, first: u64) -> bool {
        let (taken, unwritten) = (&self.room.taken, &self.room.unwritten);
        let before = taken.load(Ordering::Acquire);
        if before >= first || before == unwritten.load(Ordering::Relaxed) {
            return false;
        }
        let mut stall = Stall::new(before);
        while taken.load(Ordering::Acquire) == before {
            if stall.look(before) {
                unwritten.store(before, Ordering::Relaxed);
                return false;
            }
            std::thread::sleep(NAP);
        }
        true
    }

    /// Waits until `count` slots are free, unless that will take long. For the handler.
    #[inline]
    pub(crate) fn wait_for_slots(&self, count: u64) {
        let last = self.head.load(Ordering::Relaxed) + count;
        if !self.has_slots(last) {
            self.wait_for_harvest(last);
        }
    }

    #[cold]
    fn wait_for_harvest(&self, last: u64) {
        let _errno = Errno::keep();
        let mut stall = Stall::new(self.tail.load(Ordering::Acquire));
        if stall.seen == self.room.given_up.load(Ordering::Relaxed) {
            return;
        }
        loop {
            // A thread that needs a slot should not depend on another thread being scheduled.
            harvest::take_now();
            harvest::wake();
            std::thread::sleep(NAP);
            let tail = self.tail.load(Ordering::Acquire);
            let is_stalled = stall.look(tail);
            // Or a dispatch takes long, or there is no harvester.
            let is_free = last - tail <= self.slots.len() || tail == self.head.load(Ordering::Relaxed);
            if is_free {
                return;
            }
            if is_stalled {
                self.room.given_up.store(tail, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Number of packets that have left the hardware queue, and whether it is full for the thread that reserved packet
    /// `first`.
    pub(super) fn progress(&self, first: u64) -> (u64, bool) {
        let left = self.left().0.unwrap_or(0);
        (left, self.is_full(first, left))
    }

    /// Number of packets that have left the hardware queue: all up to the last dispatch or witness seen complete. And
    /// whether no packet still in it will show its departure.
    fn left(&self) -> (Option<u64>, bool) {
        let tail = self.tail.load(Ordering::Acquire);
        let handed = self.room.handed.load(Ordering::Relaxed).max(tail);
        let (mut from, mut to) = (tail, handed);
        // Packets complete nearly in order, so any completed one is sufficient.
        while from < to {
            let middle = from + (to - from) / 2;
            let is_done = self.slots.side(middle).is_some_and(|side| side.watch.look().is_some());
            (from, to) = if is_done { (middle + 1, to) } else { (from, middle) };
        }
        let position = from.checked_sub(1).and_then(|last| {
            let position = self.slots.side(last)?.position.load(Ordering::Acquire);
            // If the slot was reused, it has the position of its new packet.
            let is_used_again = self.head.load(Ordering::Acquire) >= last + self.slots.len();
            (!is_used_again).then_some(position + 1)
        });
        let (witnessed, is_pending) = self.witnesses.left();
        (position.max(witnessed), from >= handed && !is_pending)
    }
}

/// How long a thread has seen no progress.
struct Stall<T> {
    seen: T,
    since: Instant,
    looks: u32,
}

impl<T: PartialEq> Stall<T> {
    fn new(seen: T) -> Self {
        Self {
            seen,
            since: Instant::now(),
            looks: 0,
        }
    }

    /// Notes the progress now. True if there was none for long enough.
    fn look(&mut self, now: T) -> bool {
        if now != self.seen {
            *self = Self::new(now);
        }
        self.looks = self.looks.saturating_add(1);
        self.looks > STALL_LOOKS && self.since.elapsed() > STALL_TIME
    }
}

/// Who waits for space.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// A thread of the program that reserved packets from this one on; the handler waits after it.
    Reserving(u64),
    /// The handler, which could omit its own packets.
    Adding,
    /// The handler, which received the program's packets up to this one.
    HandingOver(u64),
}
