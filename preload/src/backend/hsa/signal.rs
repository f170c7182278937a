//! Signals with times: the collector's in the queues' slots, and the program's, watched in place.
//!
//! The packet processor writes begin and end into the completion signal. A signal of the program must be read before
//! the program reuses it: functions that change signals are hooked ([`change`]), and every new packet or copy with the
//! signal takes the times first. A [`table`] by handle contains the watched signals.

#![expect(unsafe_code, reason = "reads signals in memory by their handles")]

mod change;
mod table;

pub(crate) use self::change::{Originals, patch};
pub(crate) use self::table::forget_all;

use self::table::{find, insert, remove};
use super::hsa;
use crate::clock;
use hsa_sys::abi::{SIGNAL_USER, SUCCESS, Signal, SignalHandle, Span};
use roctop_ring::sync::{AtomicU64, Ordering};

const FREE: u64 = 0;
const PENDING: u64 = 1;
/// A thread reads the signal; others wait for these few instructions.
const LOOKING: u64 = 2;
const TAKEN: u64 = 3;
const LOST: u64 = 4;

/// Owner of a watched signal, and unit of its times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The collector's, used by nobody else. Times are agent ticks.
    Own = 0,
    /// The program's, on a dispatch. Times are agent ticks.
    Dispatch = 1,
    /// The program's, on a copy. Times are ticks of the system domain.
    Copy = 2,
    /// The collector's, on a copy instead of the program's. Times are ticks of the system domain.
    Proxy = 3,
    /// The program's, on a dispatch that may already run or be complete. Times are agent ticks.
    Late = 4,
    /// The collector's, on a packet that only shows when it has left. Its times are unused.
    Mark = 5,
}

/// A watch on a signal that will contain a time span.
pub(crate) struct Watch {
    state: AtomicU64,
    signal: AtomicU64,
    kind: AtomicU64,
    begin: AtomicU64,
    end: AtomicU64,
    ended_at: AtomicU64,
}

/// Ticks after which a signal with an end and the value 1 counts as rearmed unseen: 0.2 ms or more.
const REARMED_TICKS: u64 = 1 << 19;
/// Ticks that a complete signal without an end may take, 1 ms or more: a processor may write times after the value.
const LATE_TICKS: u64 = 1 << 22;
/// Ticks that a thread of the program waits for such a signal before it changes it, some 20 µs.
const GRACE_TICKS: u64 = 1 << 16;
/// 1 if the last such signal got no end: its writer writes none, so the next one is not waited for.
static ENDLESS: AtomicU64 = AtomicU64::new(0);

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    /// The harvester: takes what is certainly complete.
    Harvester,
    /// A function that is about to change the signal: takes what has an end.
    Hook,
}

impl Watch {
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU64::new(FREE),
            signal: AtomicU64::new(0),
            kind: AtomicU64::new(0),
            begin: AtomicU64::new(0),
            end: AtomicU64::new(0),
            ended_at: AtomicU64::new(0),
        }
    }

    /// Watches a signal of the collector's, which the caller has prepared.
    #[inline]
    pub(crate) fn own(&self, handle: SignalHandle, kind: Kind) {
        self.signal.store(handle, Ordering::Relaxed);
        self.kind.store(kind as u64, Ordering::Relaxed);
        self.ended_at.store(0, Ordering::Relaxed);
        self.state.store(PENDING, Ordering::Release);
    }

    /// Watches a signal of the program in place. False if that is not safe: it counts, is in use, or the table is full.
    pub(crate) fn in_place(&'static self, handle: SignalHandle, kind: Kind) -> bool {
        let Some(signal) = at(handle).filter(|_| is_free(handle)) else {
            return false;
        };
        self.signal.store(handle, Ordering::Relaxed);
        self.kind.store(kind as u64, Ordering::Relaxed);
        self.ended_at.store(0, Ordering::Relaxed);
        signal.start.store(0, Ordering::Relaxed);
        signal.end.store(0, Ordering::Relaxed);
        self.state.store(PENDING, Ordering::Release);
        if insert(handle, self) {
            return true;
        }
        self.state.store(FREE, Ordering::Release);
        false
    }

    /// Watches a signal of the program on a packet that the processor may have taken: nothing of it is changed, and its
    /// times count when its value shows completion. False if it counts or is in use.
    pub(crate) fn late(&'static self, handle: SignalHandle) -> bool {
        let Some(signal) = at(handle) else { return false };
        if signal.kind != SIGNAL_USER || signal.value.load(Ordering::Acquire) > 1 || find(handle).is_some() {
            return false;
        }
        self.signal.store(handle, Ordering::Relaxed);
        self.kind.store(Kind::Late as u64, Ordering::Relaxed);
        self.ended_at.store(0, Ordering::Relaxed);
        self.state.store(PENDING, Ordering::Release);
        if insert(handle, self) {
            return true;
        }
        self.state.store(FREE, Ordering::Release);
        false
    }

    /// The span, once it is known; zeros if it never will be.
    #[inline]
    pub(crate) fn look(&self) -> Option<[u64; 2]> {
        match self.state.load(Ordering::Acquire) {
            FREE | LOOKING => None,
            TAKEN => Some([self.begin.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed)]),
            LOST => Some([0, 0]),
            _ if self.is(Kind::Own) || self.is(Kind::Proxy) || self.is(Kind::Mark) => {
                let handle = self.signal.load(Ordering::Relaxed);
                let signal = at(handle)?;
                // Acquire: the processor writes the times before it decrements the value.
                if signal.value.load(Ordering::Acquire) >= 1 {
                    return None;
                }
                if self.is(Kind::Proxy) {
                    let span = copy_time(handle);
                    return Some([span.start, span.end]);
                }
                let span = [signal.start.load(Ordering::Relaxed), signal.end.load(Ordering::Relaxed)];
                (self.is(Kind::Mark) || self.is_whole(span)).then_some(span)
            }
            _ => {
                self.take(Who::Harvester);
                let taken = matches!(self.state.load(Ordering::Acquire), TAKEN | LOST);
                taken.then(|| [self.begin.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed)])
            }
        }
    }

    /// Stores the span of a collector's signal until its slot has another one; returns the previous span, if this was a
    /// dispatch's. `None` for other signals, whose times prove nothing about ours.
    #[inline]
    pub(crate) fn keep_span(&self, span: [u64; 2]) -> Option<[u64; 2]> {
        let is_dispatch = self.is(Kind::Own);
        if !is_dispatch && !self.is(Kind::Mark) || self.state.load(Ordering::Relaxed) == LOST {
            return None;
        }
        let before = [self.begin.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed)];
        self.know(span);
        is_dispatch.then_some(before)
    }

    /// Sets the previous times of the collector's signal in this slot.
    pub(crate) fn know(&self, [begin, end]: [u64; 2]) {
        self.begin.store(begin, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
    }

    /// Whether a collector's signal is unchanged since its packet was submitted.
    pub(crate) fn is_waiting(&self) -> bool {
        let is_ours = self.is(Kind::Own) || self.is(Kind::Mark);
        is_ours && at(self.handle()).is_some_and(|signal| signal.value.load(Ordering::Acquire) >= 1)
    }

    /// Handle of the watched signal.
    pub(crate) fn handle(&self) -> SignalHandle {
        self.signal.load(Ordering::Relaxed)
    }

    fn is(&self, kind: Kind) -> bool {
        self.kind.load(Ordering::Relaxed) == kind as u64
    }

    /// Frees the watch for reuse.
    #[inline]
    pub(crate) fn free(&self) {
        self.state.store(FREE, Ordering::Release);
    }

    /// Cancels the watch: the work will not happen.
    pub(crate) fn cancel(&self) {
        remove(self.signal.load(Ordering::Relaxed), self);
        self.free();
    }

    /// Makes this thread the only reader; others wait for the next state. False if there is nothing to read.
    fn hold(&self) -> bool {
        loop {
            match self
                .state
                .compare_exchange(PENDING, LOOKING, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return true,
                Err(LOOKING) => std::hint::spin_loop(),
                Err(_) => return false,
            }
        }
    }

    /// Reads the span from the program's signal, if it is there.
    fn take(&self, who: Who) {
        if !self.hold() {
            return;
        }
        let handle = self.signal.load(Ordering::Relaxed);
        let span = at(handle).and_then(|signal| self.read(signal, handle, who));
        match span {
            Some(span) => {
                self.begin.store(span.start, Ordering::Relaxed);
                self.end.store(span.end, Ordering::Relaxed);
                remove(handle, self);
                self.state.store(TAKEN, Ordering::Release);
            }
            None => self.state.store(PENDING, Ordering::Release),
        }
    }

    fn read(&self, signal: &Signal, handle: SignalHandle, who: Who) -> Option<Span> {
        let value = signal.value.load(Ordering::Acquire);
        let (start, end) = (signal.start.load(Ordering::Relaxed), signal.end.load(Ordering::Relaxed));
        let has_new_end = end != 0 && !self.is(Kind::Late);
        if value < 1 && who == Who::Harvester && !self.is(Kind::Copy) && !self.is_whole([start, end]) {
            return None;
        }
        let is_complete =
            value < 1 || (has_new_end && (who == Who::Hook || value != 1 || self.has_rested(REARMED_TICKS)));
        if !is_complete {
            return None;
        }
        Some(if self.is(Kind::Copy) {
            copy_time(handle)
        } else if who == Who::Hook {
            times_soon(signal)
        } else {
            Span { start, end }
        })
    }

    /// Whether this begin and end of a complete signal are final.
    #[inline]
    fn is_whole(&self, span: [u64; 2]) -> bool {
        if !span.contains(&0) {
            if ENDLESS.load(Ordering::Relaxed) != 0 {
                ENDLESS.store(0, Ordering::Relaxed);
            }
            return true;
        }
        if ENDLESS.load(Ordering::Relaxed) == 0 {
            if !self.has_rested(LATE_TICKS) {
                return false;
            }
            ENDLESS.store(1, Ordering::Relaxed);
        }
        true
    }

    /// Whether the signal has been unchanged for this many ticks. The first call starts the count.
    fn has_rested(&self, ticks: u64) -> bool {
        let now = clock::now();
        let since = self.ended_at.load(Ordering::Relaxed);
        if since == 0 {
            self.ended_at.store(now, Ordering::Relaxed);
            return false;
        }
        now.wrapping_sub(since) > ticks
    }

    /// The signal is being destroyed: waits for its reader.
    pub(crate) fn lose(&self) {
        if !self.hold() {
            return;
        }
        self.begin.store(0, Ordering::Relaxed);
        self.end.store(0, Ordering::Relaxed);
        remove(self.signal.load(Ordering::Relaxed), self);
        self.state.store(LOST, Ordering::Release);
    }
}

/// Times of a completed signal that is about to change. It waits for a processor that writes them a little after the
/// value, as long as such times are known to come.
fn times_soon(signal: &Signal) -> Span {
    let mut began = 0;
    loop {
        let span = Span {
            start: signal.start.load(Ordering::Relaxed),
            end: signal.end.load(Ordering::Relaxed),
        };
        let is_whole = span.start != 0 && span.end != 0;
        if is_whole || ENDLESS.load(Ordering::Relaxed) != 0 {
            return span;
        }
        let now = clock::now();
        if began == 0 {
            began = now;
        }
        if now.wrapping_sub(began) > GRACE_TICKS {
            ENDLESS.store(1, Ordering::Relaxed);
            return span;
        }
        std::hint::spin_loop();
    }
}

/// A copy's times may be outside its signal: the run-time knows where. Zeros if it does not.
fn copy_time(handle: SignalHandle) -> Span {
    let mut span = Span::default();
    let Some(hsa) = hsa() else { return span };
    // SAFETY: the signal exists: it is ours, or a hook runs before it changes, or `take` holds its owner.
    let known = unsafe { (hsa.amd.get_async_copy_time)(handle, &raw mut span) };
    // Times that nobody wrote convert to the moment at which the GPU's counter was 0.
    let is_unwritten = span.start == span.end && hsa.nanoseconds(span.end) < hsa.began();
    if known == SUCCESS && !is_unwritten {
        span
    } else {
        Span::default()
    }
}

/// Whether a signal of the program can be watched in place. Not if it counts or is in use.
#[inline]
pub(crate) fn is_free(handle: SignalHandle) -> bool {
    at(handle).is_some_and(|signal| signal.kind == SIGNAL_USER && signal.value.load(Ordering::Acquire) == 1)
        && find(handle).is_none()
}

/// The signal of a handle.
#[inline]
fn at(handle: SignalHandle) -> Option<&'static Signal> {
    let address = handle as usize as *const Signal;
    if !address.is_aligned() {
        return None;
    }
    // SAFETY: a handle is the address of the signal's 64 bytes in memory of this process; callers use it only while the
    // program may.
    unsafe { address.as_ref() }
}

/// A signal is about to change or to get new times: takes its current ones.
#[inline]
pub(crate) fn before_change(handle: SignalHandle) {
    if table::has_some()
        && let Some(watch) = find(handle)
        && watch.signal.load(Ordering::Relaxed) == handle
    {
        watch.take(Who::Hook);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_never_come_are_waited_for_once() {
        let signal = Signal {
            kind: SIGNAL_USER,
            value: std::sync::atomic::AtomicI64::new(0),
            mailbox: 0,
            event: 0,
            reserved0: 0,
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            reserved1: [0; 2],
        };
        ENDLESS.store(0, Ordering::Relaxed);
        assert_eq!(times_soon(&signal).end, 0);
        assert_eq!(ENDLESS.load(Ordering::Relaxed), 1, "nobody waits for the next one's");
        signal.start.store(7, Ordering::Relaxed);
        signal.end.store(9, Ordering::Relaxed);
        let span = times_soon(&signal);
        assert_eq!((span.start, span.end), (7, 9));
    }
}
