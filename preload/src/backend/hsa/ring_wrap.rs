//! The wrap-around of an intercepted queue's ring, which ROCr 7 cannot pass with more than 256 packets at once.
//!
//! After 6.4 the run-time's proxy passes on all packets that arrived since its last round at once. If they wrap around,
//! the first such version lets the handler read beyond the ring (by its source; not seen in a release). 7.2.4 copies
//! them into a buffer for 256 packets, whatever their number (`staging_buffer_`, intercept_queue.cpp): the heap is
//! overwritten. A program that keeps its queue full triggers it within seconds, even with a handler that only passes
//! packets on.
//!
//! A thread that reserved a packet after the end therefore waits until few enough remain before it. While its packet is
//! unwritten, the proxy stops there. A batch that is larger itself, or that is reserved packet by packet before the
//! first is written, is passed on in two parts, see [`before_ring`].

#![expect(unsafe_code, reason = "functions of the run-time, packets in the program's queue")]

use super::Hsa;
use super::queue::Queue;
use crate::guard::{Errno, wall};
use hsa_sys::abi::{Packet, Queue as HsaQueue, SignalHandle, packet};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::atomic::AtomicU16;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Size of the run-time's buffer, packets.
const BUFFER_PACKETS: u64 = 256;
const NAP: Duration = Duration::from_micros(50);
/// Number of checks, with a sleep between them, for packets before the thread's own that nobody passes on, while the GPU
/// completes nothing: about two seconds. The heap is overwritten if this thread continues too early, and time alone is
/// no measure: if many threads share few CPUs, the passing thread may not run for seconds. A proxy that found no space
/// takes nothing until the hardware queue has drained: 16 384 kernels of 1 ms take 16 s.
const MAX_LOOKS: u32 = 20_000;
/// As [`MAX_LOOKS`], where the program would wait without roctop too.
const MAX_LOOKS_WHEN_FULL: u32 = 5 * MAX_LOOKS;
/// Wait for a packet that nobody writes: a program may reserve all of its packets before it writes the first.
const UNWRITTEN_WAIT: Duration = Duration::from_millis(1);

/// Waits until the unpassed packets before `last` do not wrap around, or are few. Returns the index up to which that
/// holds. Runs on the thread that reserved the packets from `first` on and has not written them.
pub(super) fn wait(hsa: &Hsa, queue: &'static Queue, handle: *const HsaQueue, first: u64, last: u64) -> u64 {
    // SAFETY: the program reserves packets of it, so the queue exists.
    let (read, size, doorbell) = unsafe {
        (
            || (hsa.core.load_read_index)(handle),
            u64::from((*handle).size).max(1),
            (*handle).doorbell,
        )
    };
    let mut taken = read();
    let (mut since, mut looks, mut progress) = (Instant::now(), 0, None);
    loop {
        let end = end_of_lap(taken, size);
        if last <= end {
            return end;
        }
        if last - taken <= BUFFER_PACKETS {
            return last;
        }
        if taken >= first {
            // Only this thread's own packets remain.
            split(queue, handle, doorbell, end, last);
            return last;
        }
        if looks > MAX_LOOKS {
            let (left, is_full) = queue.progress(first);
            if progress != Some(left) {
                (looks, progress) = (0, Some(left));
            } else if !is_full || looks > MAX_LOOKS_WHEN_FULL {
                return last;
            }
        }
        if is_invalid(header(queue, taken).load(Ordering::Acquire))
            && (is_split(handle, end) || since.elapsed() > UNWRITTEN_WAIT)
        {
            // This thread may have to write first. The ringing thread passes on the packets before the end first.
            split(queue, handle, doorbell, end, last);
            return end + size;
        }
        // The thread that wrote those packets may ring late, or wait here.
        hsa.signal.ring(doorbell, taken);
        let now = read();
        if now == taken {
            looks += 1;
            std::thread::sleep(NAP);
        } else {
            (taken, since, looks) = (now, Instant::now(), 0);
        }
    }
}

/// A batch that wraps around and is too large for the run-time.
#[derive(Clone, Copy)]
struct Split {
    queue: &'static Queue,
    handle: u64,
    doorbell: SignalHandle,
    /// Index of the first packet after the end.
    end: u64,
    /// Index after the last packet. A batch larger than the queue wraps around several times.
    last: u64,
    /// Header of that packet, while the packet is hidden.
    hidden: Option<u16>,
    /// Whether a thread is passing on the packets before the end.
    is_busy: bool,
}

static SPLITS: Mutex<Vec<Split>> = Mutex::new(Vec::new());

/// Whether a batch of the queue that wraps around at this end is known.
fn is_split(handle: *const HsaQueue, end: u64) -> bool {
    COUNT.load(Ordering::Acquire) != 0 && splits().iter().any(|one| one.handle == handle as u64 && one.end == end)
}

/// Number of such batches: most programs have none.
static COUNT: AtomicU64 = AtomicU64::new(0);

fn split(queue: &'static Queue, handle: *const HsaQueue, doorbell: SignalHandle, end: u64, last: u64) {
    let mut all = splits();
    let known = all.iter_mut().find(|one| one.handle == handle as u64 && one.end == end);
    if let Some(one) = known {
        one.last = one.last.max(last);
        return;
    }
    all.retain(|one| one.handle != handle as u64);
    all.push(Split {
        queue,
        handle: handle as u64,
        doorbell,
        end,
        last,
        hidden: None,
        is_busy: false,
    });
    COUNT.store(all.len() as u64, Ordering::Release);
}

/// Removes a destroyed queue.
pub(crate) fn forget(handle: *const HsaQueue) {
    if COUNT.load(Ordering::Acquire) != 0 {
        let mut all = splits();
        all.retain(|one| one.handle != handle as u64);
        COUNT.store(all.len() as u64, Ordering::Release);
    }
}

/// Called before a signal is stored to. If it is the doorbell of a queue with a batch that wraps around, the packets
/// before the end are passed on first, before the program's own ring does the rest.
#[inline(always)]
pub(crate) fn before_ring(hsa: &Hsa, doorbell: SignalHandle) {
    if COUNT.load(Ordering::Acquire) != 0 {
        wall((), || ring_first(hsa, doorbell));
    }
}

#[cold]
fn ring_first(hsa: &Hsa, doorbell: SignalHandle) {
    let _errno = Errno::keep();
    let Some(mut split) = begin(hsa, doorbell) else { return };
    loop {
        // Without the lock, because the queue may wait for a packet of another one, whose doorbell passes here.
        let is_stuck = !split.hand_over_to_end(hsa);
        let mut all = splits();
        let Some(at) = all.iter().position(|one| one.is(&split)) else {
            // Another batch of this queue has replaced it.
            split.show();
            return;
        };
        if let Some(one) = all.get(at) {
            split.last = split.last.max(one.last);
        }
        let is_done = split.read(hsa) >= split.end;
        if !is_done && !is_stuck && split.is_written(split.read(hsa)) {
            // Written meanwhile, by a thread that found this one busy.
            continue;
        }
        if is_done || is_stuck {
            split.show();
        }
        split.is_busy = false;
        if is_done && split.next_end(split.read(hsa)) {
            // The rest of the batch wraps around again.
            if let Some(one) = all.get_mut(at) {
                *one = split;
            }
        } else if is_done {
            all.swap_remove(at);
        } else if let Some(one) = all.get_mut(at) {
            // The missing packets will be rung for; then this part goes first again.
            *one = split;
        }
        COUNT.store(all.len() as u64, Ordering::Release);
        return;
    }
}

/// The batch of this doorbell's queue, with the packets after the end hidden, if this thread must pass it on.
fn begin(hsa: &Hsa, doorbell: SignalHandle) -> Option<Split> {
    let mut all = splits();
    let at = all.iter().position(|one| one.doorbell == doorbell)?;
    let split = all.get_mut(at)?;
    // The busy thread does not get past what this one has written: it checks again, under the lock.
    if split.is_busy {
        return None;
    }
    if split.hidden.is_none() {
        let read = split.read(hsa);
        if read >= split.end && !split.next_end(read) {
            all.swap_remove(at);
            COUNT.store(all.len() as u64, Ordering::Release);
            return None;
        }
        if !split.can_hide(read) || !split.hide() {
            return None;
        }
    }
    split.is_busy = true;
    Some(*split)
}

fn splits() -> MutexGuard<'static, Vec<Split>> {
    SPLITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Header of a packet of the program.
fn header(queue: &Queue, index: u64) -> &AtomicU16 {
    let place = (queue.base as usize as *const Packet).wrapping_add((index & (queue.size() - 1)) as usize);
    // SAFETY: a queue has a power of two of packets, and exists while packets of it are reserved or its doorbell is rung;
    // headers are written and read whole, by the program, the run-time and this alone.
    unsafe { AtomicU16::from_ptr(place.cast_mut().cast()) }
}

/// Index after the last packet of the current lap, that of the next packet to take.
fn end_of_lap(read: u64, size: u64) -> u64 {
    read - read % size + size
}

/// Whether the packet of the previous lap at the position of `index` was taken.
fn is_place_free(read: u64, index: u64, size: u64) -> bool {
    read + size > index
}

fn is_invalid(header: u16) -> bool {
    header & packet::TYPE == packet::INVALID
}

impl Split {
    fn is(&self, other: &Self) -> bool {
        (self.handle, self.end) == (other.handle, other.end)
    }

    fn header(&self, index: u64) -> &AtomicU16 {
        header(self.queue, index)
    }

    fn is_written(&self, index: u64) -> bool {
        !is_invalid(self.header(index).load(Ordering::Acquire))
    }

    /// Number of packets that the run-time's proxy has taken.
    fn read(&self, hsa: &Hsa) -> u64 {
        // SAFETY: the program rings its doorbell, so the queue exists.
        unsafe { (hsa.core.load_read_index)(self.handle as usize as *const HsaQueue) }
    }

    /// Advances to the next end at which the batch wraps around. False if there is none.
    fn next_end(&mut self, read: u64) -> bool {
        let end = end_of_lap(read, self.queue.size());
        let has_next = end < self.last;
        if has_next {
            self.end = end;
        }
        has_next
    }

    /// Whether the packet of the previous lap has left the position after the end. Otherwise the proxy would wait for
    /// it forever.
    fn can_hide(&self, read: u64) -> bool {
        is_place_free(read, self.end, self.queue.size())
    }

    /// Hides the first packet after the end. False if it is not written: the proxy does not get past it.
    fn hide(&mut self) -> bool {
        let header = self.header(self.end).swap(packet::INVALID, Ordering::AcqRel);
        self.hidden = (!is_invalid(header)).then_some(header);
        self.hidden.is_some()
    }

    fn show(&mut self) {
        if let Some(header) = self.hidden.take() {
            self.header(self.end).store(header, Ordering::Release);
        }
    }

    /// Passes on the written packets before the end. False if the proxy takes no more of them for a long time.
    fn hand_over_to_end(&self, hsa: &Hsa) -> bool {
        let (mut taken, mut looks, mut progress) = (self.read(hsa), 0, None);
        while taken < self.end && self.is_written(taken) {
            hsa.signal.ring(self.doorbell, taken);
            let now = self.read(hsa);
            if now != taken {
                (taken, looks) = (now, 0);
            } else if looks > MAX_LOOKS {
                let (left, _) = self.queue.progress(taken);
                if progress == Some(left) {
                    return false;
                }
                (looks, progress) = (0, Some(left));
            } else {
                looks += 1;
                std::thread::sleep(NAP);
            }
        }
        true
    }
}

/// Packets of one round, if the run-time passed them as if the ring had no end: number of packets before the end, and
/// address of the others.
#[inline]
pub(super) fn past_end(queue: &Queue, packets: *const Packet, count: u64, index: u64) -> Option<(u64, *const Packet)> {
    let base = queue.base as usize as *const Packet;
    let at = index & (queue.size() - 1);
    let before = queue.size() - at;
    (count > before && packets == base.wrapping_add(at as usize)).then_some((before, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_the_lap_before_is_not_hidden() {
        assert!(!is_place_free(0, 64, 64));
        assert!(is_place_free(1, 64, 64));
        assert!(!is_place_free(64, 128, 64));
        assert!(is_place_free(65, 128, 64));
    }

    #[test]
    fn a_lap_that_is_taken_ends_one_size_later() {
        assert_eq!(end_of_lap(0, 64), 64);
        assert_eq!(end_of_lap(63, 64), 64);
        assert_eq!(end_of_lap(64, 64), 128);
    }
}
