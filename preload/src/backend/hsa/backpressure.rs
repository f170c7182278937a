//! Room in an intercepted queue: the program waits for it where it would without roctop, before it writes a packet.
//!
//! The run-time's proxy takes packets without end, where a plain queue makes the program wait while it is full; up to
//! ROCr 5.7 it aborts when two packets find the hardware's queue full (`overflow_`, intercept_queue.cpp). So threads wait
//! when they reserve a packet, and the handler does where that was not enough.

use super::queue::Queue;
use super::{Hsa, harvest, hsa, ring_wrap};
use crate::guard::Errno;
use crate::state::{self, word};
use hsa_sys::abi::Queue as HsaQueue;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A part of the hardware's queue is kept free: the processor may count a packet as read later than it completes it (an
/// abort of 5.2.3 was seen with 64 places of 1024).
const MARGIN: u64 = 4;
/// Places that are kept free when nothing completes any more: one for the run-time's own barrier, and one that is read.
const RESERVE: u64 = 2;
/// The nap while the program waits for room.
const NAP: Duration = Duration::from_micros(50);
/// So long without a completion, and the program may fill the queue: what the queue waits for may be the program.
const STALL_TIME: Duration = Duration::from_millis(100);
/// How long a thread waits without a completion where the program would wait without roctop too. What goes on all the same fills
/// the hardware's queue, and the run-time's proxy then takes nothing until that queue has drained.
const FULL_QUEUE_WAIT: Duration = Duration::from_secs(10);
/// The nap while nothing completes.
const STALL_NAP: Duration = Duration::from_millis(1);
/// Every such part of the queue has a packet that tells when it has left, while nothing is recorded too.
const MARKS: u64 = 16;

/// What is known of a queue's room.
pub(crate) struct Room {
    /// Packets that the queue holds.
    pub(super) size: u64,
    /// Packets handed to the hardware, and how many may be before its queue could be full.
    written: AtomicU64,
    limit: AtomicU64,
    /// The program's packets that the handler had.
    taken: AtomicU64,
    /// Slots whose packets were handed over; the newest ones wait for room.
    handed: AtomicU64,
    /// The program's packets before this one have room, as far as is known.
    clear: AtomicU64,
    /// The last packet that tells when it has left.
    marked: AtomicU64,
    /// Slots ever harvested when a wait for more was given up.
    given_up: AtomicU64,
    /// Packets that had left when a wait for room was given up: the handler does not wait for that a second time.
    still: AtomicU64,
    /// The same when a thread gave up although the queue was full.
    abandoned: AtomicU64,
    /// The program's packets that the handler had when a thread gave up waiting for those before its own.
    unwritten: AtomicU64,
}

impl Room {
    pub(crate) const fn new(size: u64) -> Self {
        Self {
            size,
            written: AtomicU64::new(0),
            limit: AtomicU64::new(size - size / MARGIN),
            taken: AtomicU64::new(0),
            handed: AtomicU64::new(0),
            clear: AtomicU64::new(0),
            marked: AtomicU64::new(0),
            given_up: AtomicU64::new(u64::MAX),
            still: AtomicU64::new(u64::MAX),
            abandoned: AtomicU64::new(u64::MAX),
            unwritten: AtomicU64::new(u64::MAX),
        }
    }

    /// The queue has no proxy: the program itself looks for room.
    pub(crate) fn is_plain(&self) {
        self.clear.store(u64::MAX, Ordering::Relaxed);
    }

    /// Packets handed to the hardware. For the handler.
    #[inline]
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// A packet at `position` of the hardware's queue has a signal that is watched. For the handler.
    #[inline]
    pub(crate) fn mark(&self, position: u64) {
        self.marked.store(position, Ordering::Relaxed);
    }

    /// Would too many packets go to the hardware that do not tell when they have left? For the handler.
    #[inline]
    pub(crate) fn is_mark_due(&self, count: u64) -> bool {
        self.written() + count >= self.marked.load(Ordering::Relaxed) + self.size / MARKS
    }

    /// The same for twice as many: no packet was found that could tell. For the handler.
    #[inline]
    pub(crate) fn is_long_unmarked(&self, count: u64) -> bool {
        self.written() + count >= self.marked.load(Ordering::Relaxed) + self.size / (MARKS / 2)
    }

    /// Packets of a large portion that have at least one that tells when it has left, where any can.
    pub(crate) fn part(&self) -> usize {
        (self.size / MARGIN).max(1) as usize
    }

    /// Packets that the hardware may hold.
    fn capacity(&self) -> u64 {
        self.size - self.size / MARGIN
    }

    /// The same where the hardware stands still: nothing but what comes now gets it on.
    fn last_capacity(&self) -> u64 {
        self.size.saturating_sub(RESERVE)
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

    /// The handler had the program's packets up to `next`, and hands `count` packets to the hardware: waits until there
    /// is room for them. Only the handler calls this, under the queue's lock.
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

    /// How many of the packets are handed over by themselves, when there are as many as the hardware's queue holds: ROCr 7
    /// puts its own packet before those and cannot tell that it is still to come when it is the next one, so the doorbell
    /// after that finds no place for another and aborts (`IsPendingRetryPoint`, intercept_queue.cpp; 7.2.4 seen, with a
    /// handler that only passes packets on as well). None when there is no room now. Only the handler calls this, under
    /// the queue's lock.
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

    /// Is there room for the program's packets up to `next` and for `more` of ours? Waits for it; false when it will not
    /// come. What the program reserved behind them must have room too, where the proxy would not keep it. Only the
    /// handler calls this, under the queue's lock.
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

    /// Is there room for a witness in front of `count` packets, the last of which is the program's before `next`? That may
    /// take of the part that is kept free, because without one nothing might tell how far the hardware's queue is. False
    /// where the proxy keeps what finds no room, and needs none. Waits for nothing. Only the handler calls this, under the
    /// queue's lock.
    #[cold]
    pub(crate) fn has_room_for_witness(&self, hsa: &Hsa, next: u64, count: u64) -> bool {
        let ahead = self.reserved(hsa).saturating_sub(next);
        let place = self.left().0.unwrap_or(0);
        !hsa.layout.keeps_overflow() && self.room.written() + count + 1 + ahead <= place + self.room.last_capacity()
    }

    /// False when room did not come.
    #[cold]
    fn wait_for_room(&self, needed: impl Fn() -> u64, who: Wait) -> bool {
        let _errno = Errno::keep();
        let room = &self.room;
        let (mut seen, mut since) = (None, Instant::now());
        // Switched off nothing is timed any more, and nobody is held up.
        while state::is_on(word::HSA) {
            let (left, is_empty) = self.left();
            if left != seen {
                (seen, since) = (left, Instant::now());
            }
            let place = left.unwrap_or(0);
            let keeps_overflow = hsa().is_some_and(|hsa| hsa.layout.keeps_overflow());
            // Up to 5.7 several threads that go on at once fill the hardware's queue beyond its end: each waits by itself.
            let remembers = !matches!(who, Wait::Reserving(_)) || keeps_overflow;
            let is_known_still = remembers && room.still.load(Ordering::Relaxed) == place;
            let is_still = is_known_still || since.elapsed() > STALL_TIME;
            let limit = place
                + if is_still {
                    room.last_capacity()
                } else {
                    room.capacity()
                };
            room.limit.fetch_max(limit, Ordering::Relaxed);
            // Where nothing timed is in flight, what fills the queue is not known: the proxy has to see to it.
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
            // What the program's own queue would hold never waits for ever: the program may have to do something first,
            // on this very thread. Up to 5.7 the proxy keeps one packet too many, and lets those of the same doorbell
            // overtake it: so only the last one may be that.
            let gives_up = match who {
                Wait::HandingOver(next) if !keeps_overflow => {
                    let is_last = hsa().is_some_and(|hsa| self.reserved(hsa) <= next);
                    needed() < place + room.size + u64::from(is_last)
                }
                _ => true,
            };
            let would_wait_untraced = matches!(who, Wait::Reserving(first) if self.is_full(first, place));
            if would_wait_untraced {
                if room.abandoned.load(Ordering::Relaxed) == place || since.elapsed() > FULL_QUEUE_WAIT {
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

    /// Would the program wait without roctop before it writes packet `first`? `left` packets have left the hardware's queue.
    fn is_full(&self, first: u64, left: u64) -> bool {
        let ahead = first.saturating_sub(self.room.taken.load(Ordering::Acquire));
        self.room.written() + ahead >= left + self.room.size
    }

    /// Waits until threads that reserved packets before `first` write some of them. All that is written goes to the hardware at
    /// the next doorbell, and up to 5.7 all of it has to find room there. False when there is nothing to wait for. A thread
    /// that waits for itself gives up, for all.
    #[cold]
    fn wait_for_writers(&self, first: u64) -> bool {
        let (taken, unwritten) = (&self.room.taken, &self.room.unwritten);
        let before = taken.load(Ordering::Acquire);
        if before >= first || before == unwritten.load(Ordering::Relaxed) {
            return false;
        }
        let since = Instant::now();
        while taken.load(Ordering::Acquire) == before {
            if since.elapsed() > STALL_TIME {
                unwritten.store(before, Ordering::Relaxed);
                return false;
            }
            std::thread::sleep(NAP);
        }
        true
    }

    /// Waits until `count` slots are free, unless that will not be soon. For the handler.
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
        let (mut seen, mut since) = (self.tail.load(Ordering::Acquire), Instant::now());
        if seen == self.room.given_up.load(Ordering::Relaxed) {
            return;
        }
        loop {
            // Whoever needs a slot does not depend on another thread's getting a processor.
            harvest::take_now();
            harvest::wake();
            std::thread::sleep(NAP);
            let tail = self.tail.load(Ordering::Acquire);
            if tail != seen {
                (seen, since) = (tail, Instant::now());
            }
            // Or a dispatch takes so long, or there is no harvester.
            let is_free = last - tail <= self.slots.len() || tail == self.head.load(Ordering::Relaxed);
            if is_free {
                return;
            }
            if since.elapsed() > STALL_TIME {
                self.room.given_up.store(tail, Ordering::Relaxed);
                return;
            }
        }
    }

    /// How many packets have left the hardware's queue, and whether it is full for who reserved packet `first`.
    pub(super) fn progress(&self, first: u64) -> (u64, bool) {
        let left = self.left().0.unwrap_or(0);
        (left, self.is_full(first, left))
    }

    /// How many packets have left the hardware's queue: all up to that of the last dispatch, or of the last witness, that is
    /// seen complete. And whether nothing that is still in it will tell.
    fn left(&self) -> (Option<u64>, bool) {
        let tail = self.tail.load(Ordering::Acquire);
        let handed = self.room.handed.load(Ordering::Relaxed).max(tail);
        let (mut from, mut to) = (tail, handed);
        // Packets complete nearly in order; any that did will do.
        while from < to {
            let middle = from + (to - from) / 2;
            let is_done = self.slots.side(middle).is_some_and(|side| side.watch.look().is_some());
            (from, to) = if is_done { (middle + 1, to) } else { (from, middle) };
        }
        let position = from.checked_sub(1).and_then(|last| {
            let position = self.slots.side(last)?.position.load(Ordering::Acquire);
            // Where the slot is used again, it says where its new packet is.
            let is_used_again = self.head.load(Ordering::Acquire) >= last + self.slots.len();
            (!is_used_again).then_some(position + 1)
        });
        let (witnessed, is_pending) = self.witnesses.left();
        (position.max(witnessed), from >= handed && !is_pending)
    }
}

/// Who waits for room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// A thread of the program that reserved packets from this one on: the handler's wait comes behind this one.
    Reserving(u64),
    /// The handler, which could do without packets of its own.
    Adding,
    /// The handler, which had the program's packets up to this one.
    HandingOver(u64),
}
