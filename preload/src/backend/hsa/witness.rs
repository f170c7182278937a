//! Witnesses: signals of the run-time on barrier packets between the program's. They complete even if the collector's
//! signals do not.
//!
//! A witness precedes a packet with the barrier bit, which waits for all earlier packets anyway, so no kernel waits
//! longer. When it completes, all earlier packets are complete. A dispatch among them whose own signal is not complete
//! is one that the collector cannot see: [`Witnesses::proved`]. It also shows how many packets have left the queue, see
//! [`super::backpressure`].

#![expect(unsafe_code, reason = "signals of the run-time")]

use super::Hsa;
use hsa_sys::abi::{Packet, SUCCESS, Signal, SignalHandle, packet};
use roctop_ring::sync::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

/// Maximum number of witnesses per queue.
const PLACES: usize = 8;
/// Number of parts of the queue that each have a witness.
const PARTS: u64 = 4;
/// Minimum distance in packets, unless there is a doubt.
const MIN_DISTANCE: u64 = 256;
/// Marks a witness that proves nothing about earlier dispatches.
const UNORDERED: u64 = 0;

/// Creates a signal of the run-time with these attributes.
pub(super) fn signal(hsa: &Hsa, attributes: u64) -> Option<SignalHandle> {
    let mut handle = 0;
    // SAFETY: `handle` has room for the answer; there are no consumers to list.
    let made = unsafe { (hsa.amd.signal_create)(1, 0, std::ptr::null(), attributes, &raw mut handle) };
    (made == SUCCESS).then_some(handle)
}

/// Attributes of an ordinary signal, like the program's: with an event, unless the run-time has none left.
const ORDINARY: u64 = 0;

/// Signals of destroyed queues.
static SPARE: Mutex<Vec<SignalHandle>> = Mutex::new(Vec::new());

/// An ordinary signal for a witness.
pub(super) fn get(hsa: &Hsa) -> Option<SignalHandle> {
    let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    spare.or_else(|| signal(hsa, ORDINARY))
}

/// The processor is done with a signal.
pub(super) fn give_back(handle: SignalHandle) {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
}

/// Shutdown of the run-time: destroys the signals.
pub(super) fn discard(hsa: &Hsa) {
    for handle in SPARE.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // SAFETY: the signal is ours and nobody uses it any more.
        unsafe { (hsa.core.signal_destroy)(handle) };
    }
}

/// Start of the run-time: drops signals of an earlier one, or of the parent process.
pub(super) fn forget_all() {
    if let Ok(mut spare) = SPARE.try_lock() {
        spare.clear();
    }
}

/// Sets a signal before its packet becomes visible.
pub(super) fn arm(handle: SignalHandle) {
    if let Some(signal) = at(handle) {
        signal.start.store(0, Ordering::Relaxed);
        signal.end.store(0, Ordering::Relaxed);
        signal.value.store(1, Ordering::Release);
    }
}

/// Whether the processor completed an armed signal.
pub(super) fn is_complete(handle: SignalHandle) -> bool {
    at(handle).is_none_or(|signal| signal.value.load(Ordering::Acquire) < 1)
}

/// A signal of the collector's.
pub(super) fn at(handle: SignalHandle) -> Option<&'static Signal> {
    let address = handle as usize as *const Signal;
    // SAFETY: null, or a signal of ours, which exists until the run-time shuts down.
    unsafe { address.as_ref() }
}

/// A witness.
struct Witness {
    handle: AtomicU64,
    /// Its number in the queue, from 1; 0 during preparation or before use.
    number: AtomicU64,
    /// Index of its packet in the hardware queue.
    position: AtomicU64,
    /// When it is complete, dispatches before this sequence number are complete; [`UNORDERED`] if it proves nothing.
    sequence: AtomicU64,
}

impl Witness {
    const fn new() -> Self {
        Self {
            handle: AtomicU64::new(0),
            number: AtomicU64::new(0),
            position: AtomicU64::new(0),
            sequence: AtomicU64::new(0),
        }
    }

    /// Position and sequence number, if it is complete. For any thread.
    fn completed(&self) -> Option<[u64; 2]> {
        // Acquire: the data of this number are visible.
        let number = self.number.load(Ordering::Acquire);
        if number == 0 || !is_complete(self.handle.load(Ordering::Relaxed)) {
            return None;
        }
        let read = [
            self.position.load(Ordering::Relaxed),
            self.sequence.load(Ordering::Relaxed),
        ];
        fence(Ordering::Acquire);
        // The handler may have prepared it again: then the data may be mixed.
        (self.number.load(Ordering::Relaxed) == number).then_some(read)
    }
}

/// Witnesses of a queue.
pub(crate) struct Witnesses {
    places: [Witness; PLACES],
    /// Number of witnesses ever used. Written by the handler.
    used: AtomicU64,
    /// Index after the last one in the hardware queue. Written by the handler.
    marked: AtomicU64,
    /// 1 if the harvester has seen nothing complete for long.
    doubt: AtomicU64,
    /// Dispatches proved complete, and since when, ns.
    proof: [AtomicU64; 2],
}

impl Witnesses {
    pub(crate) const fn new() -> Self {
        Self {
            places: [const { Witness::new() }; PLACES],
            used: AtomicU64::new(0),
            marked: AtomicU64::new(0),
            doubt: AtomicU64::new(0),
            proof: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// Whether a witness is wanted among the next `count` packets from `position` on, in a queue of `size`. For the
    /// handler.
    #[inline]
    pub(crate) fn is_due(&self, position: u64, count: u64, size: u64) -> bool {
        let last = self.marked.load(Ordering::Relaxed);
        position + count >= last + (size / PARTS).max(MIN_DISTANCE) || self.doubt.load(Ordering::Relaxed) != 0
    }

    /// Packet of a witness at `position` of the hardware queue, after the dispatches before `sequence`. `is_ordered`:
    /// the next packet has the barrier bit. `None` if all witnesses are in use, or the run-time makes no signal. For
    /// the handler.
    #[cold]
    pub(crate) fn packet(&self, hsa: &Hsa, position: u64, sequence: u64, is_ordered: bool) -> Option<Packet> {
        let used = self.used.load(Ordering::Relaxed);
        let place = self.places.get(used as usize % PLACES)?;
        if place.number.load(Ordering::Relaxed) != 0 && place.completed().is_none() {
            return None;
        }
        let mut handle = place.handle.load(Ordering::Relaxed);
        if handle == 0 {
            handle = get(hsa)?;
        }
        place.number.store(0, Ordering::Relaxed);
        // Release: a reader of the following stores sees that the number is 0.
        fence(Ordering::Release);
        arm(handle);
        place.handle.store(handle, Ordering::Relaxed);
        place.position.store(position, Ordering::Relaxed);
        place
            .sequence
            .store(if is_ordered { sequence } else { UNORDERED }, Ordering::Relaxed);
        place.number.store(used + 1, Ordering::Release);
        self.used.store(used + 1, Ordering::Relaxed);
        self.marked.store(position + 1, Ordering::Relaxed);
        self.doubt.store(0, Ordering::Relaxed);
        let barrier = if is_ordered { packet::BARRIER } else { 0 };
        Some(Packet {
            header: packet::BARRIER_AND | barrier,
            completion: handle,
            ..Packet::default()
        })
    }

    /// The harvester has seen nothing complete for long: the next packets get a witness.
    pub(crate) fn doubt(&self) {
        self.doubt.store(1, Ordering::Relaxed);
    }

    /// Index after the last witness that left the hardware queue, and whether one is still in it.
    pub(crate) fn left(&self) -> (Option<u64>, bool) {
        let mut last = None;
        let mut is_pending = false;
        for place in &self.places {
            match place.completed() {
                Some([position, _]) => last = last.max(Some(position + 1)),
                None => is_pending |= place.number.load(Ordering::Relaxed) != 0,
            }
        }
        (last, is_pending)
    }

    /// Dispatches before this sequence number have been complete for longer than `grace` ns, as seen at `now`; `tail`
    /// is the first one not seen complete. Under the harvester's lock.
    pub(crate) fn proved(&self, tail: u64, now: impl Fn() -> u64, grace: u64) -> Option<u64> {
        let [proof, since] = &self.proof;
        let known = proof.load(Ordering::Relaxed);
        if known > tail {
            return (now().saturating_sub(since.load(Ordering::Relaxed)) >= grace).then_some(known);
        }
        let completed = self.places.iter().filter_map(Witness::completed);
        let last = completed.map(|[_, sequence]| sequence).max().unwrap_or(0);
        if last > tail {
            since.store(now(), Ordering::Relaxed);
            proof.store(last, Ordering::Relaxed);
        }
        None
    }

    /// The queue is destroyed: another one may use its signals, except those that the processor may still write to.
    pub(crate) fn give_back(&self) {
        for place in &self.places {
            let is_used = place.number.load(Ordering::Relaxed) != 0;
            if is_used && place.completed().is_some() {
                give_back(place.handle.load(Ordering::Relaxed));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicI64;

    fn signal() -> &'static Signal {
        Box::leak(Box::new(Signal {
            kind: hsa_sys::abi::SIGNAL_USER,
            value: AtomicI64::new(1),
            mailbox: 0,
            event: 0,
            reserved0: 0,
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            reserved1: [0; 2],
        }))
    }

    fn put(witnesses: &Witnesses, at: usize, position: u64, sequence: u64) -> &'static Signal {
        let signal = signal();
        let place = witnesses.places.get(at).unwrap_or(&witnesses.places[0]);
        place.handle.store(std::ptr::from_ref(signal) as u64, Ordering::Relaxed);
        place.position.store(position, Ordering::Relaxed);
        place.sequence.store(sequence, Ordering::Relaxed);
        place.number.store(at as u64 + 1, Ordering::Relaxed);
        signal
    }

    #[test]
    fn what_lies_before_a_complete_witness_is_proved_after_a_while() {
        let witnesses = Witnesses::new();
        let (first, second) = (put(&witnesses, 0, 10, 5), put(&witnesses, 1, 30, 20));
        assert_eq!(witnesses.proved(0, || 100, 20), None);
        assert_eq!(witnesses.left(), (None, true));
        first.value.store(0, Ordering::Relaxed);
        assert_eq!(witnesses.left(), (Some(11), true));
        assert_eq!(witnesses.proved(0, || 100, 20), None);
        assert_eq!(witnesses.proved(0, || 119, 20), None);
        assert_eq!(witnesses.proved(0, || 120, 20), Some(5));
        assert_eq!(witnesses.proved(5, || 121, 20), None, "all of that is seen complete");
        second.value.store(0, Ordering::Relaxed);
        assert_eq!(witnesses.proved(5, || 200, 20), None);
        assert_eq!(witnesses.proved(5, || 220, 20), Some(20));
        assert_eq!(witnesses.left(), (Some(31), false));
    }

    #[test]
    fn a_witness_is_due_by_distance_or_by_doubt() {
        let witnesses = Witnesses::new();
        assert!(!witnesses.is_due(0, 1, 16384));
        assert!(witnesses.is_due(4095, 1, 16384));
        assert!(!witnesses.is_due(63, 1, 64));
        witnesses.doubt();
        assert!(witnesses.is_due(0, 1, 16384));
    }
}
