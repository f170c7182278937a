//! Handler of intercepted queues: gives each dispatch a signal from which its times can be read.
//!
//! A packet without a signal gets one of the collector's. A packet with a signal keeps it, and the signal is watched in
//! place. Where that is not safe, it gets one of the collector's, and a barrier packet after it completes the program's
//! signal. The writer is called exactly once with all packets, because the run-time's proxy relies on it; more than the
//! hardware queue can hold are passed on in parts.

#![expect(unsafe_code, reason = "the run-time's handler signature")]

use super::queue::Queue;
use super::signal::{self, Kind};
use super::slots::Side;
use super::{harvest, hsa, ring_wrap};
use crate::backend::hip::{deferred, graphs, watchdog};
use crate::backend::sdk;
use crate::guard::wall;
use crate::level::{self, Level};
use crate::origin::Origin;
use crate::state::{self, word};
use crate::{clock, collector, control, process, thread};
use hsa_sys::abi::{Packet, packet};
use hsa_sys::table::Writer;
use roctop_ring::flight::{SlotWriter, State};
use roctop_ring::layout::counter;
use roctop_ring::record::{Dispatch, flag};
use roctop_ring::session::wanted;
use roctop_ring::sync::{Ordering, fence};
use std::ffi::c_void;

/// Source of a dispatch record: interception.
const INTERCEPTED: u16 = 1;
/// Prefetch distance for a slot's memory, in dispatches.
const PREFETCH_DISTANCE: u64 = 2;

/// Called by the run-time under the queue's lock, by the thread that passes the packets on.
pub(crate) unsafe extern "C" fn handler(
    packets: *const Packet,
    count: u64,
    index: u64,
    context: *mut c_void,
    writer: Writer,
) {
    // SAFETY: the context is the queue that `intercept` registered; it is never freed.
    let queue = unsafe { &*context.cast::<Queue>() };
    let packets = wall(packets, || whole(queue, packets, count, index));
    let is_rewritten = wall(false, || {
        if !state::is_on(word::HSA) || packets.is_null() {
            return false;
        }
        // SAFETY: the run-time passes `count` packets of 64 bytes.
        match unsafe { std::slice::from_raw_parts(packets, count as usize) } {
            [packet] if is_plain(queue, packet) => rewrite_plain(queue, packet, index),
            packets => rewrite(queue, packets, index),
        }
    });
    let (packets_out, count_out) = if is_rewritten {
        // SAFETY: `out` is used under the queue's lock alone, which the run-time holds around this call.
        let out = unsafe { &*queue.out.get() };
        (out.as_ptr(), out.len() as u64)
    } else {
        (packets, count)
    };
    let scope = HandedScope::begin(queue, packets, count, index);
    let mut done = 0;
    while count_out - done >= queue.size()
        && let Some(part) = wall(None, || queue.hand_over_part(index + count))
    {
        // SAFETY: these are among those packets; the writer copies them before it returns.
        unsafe { writer(packets_out.wrapping_add(done as usize), part) };
        done += part;
    }
    wall((), || queue.hand_over(count_out - done, index + count));
    // SAFETY: as above.
    unsafe { writer(packets_out.wrapping_add(done as usize), count_out - done) };
    scope.end();
}

/// Data of a dispatch that the SDK's callbacks see next on this thread.
#[derive(Clone, Copy)]
pub(crate) struct Handed {
    pub(crate) kernel_object: u64,
    pub(crate) correlation: u64,
    pub(crate) origin: Origin,
    pub(crate) queue: u32,
}

/// Publishes to the SDK's callbacks on this thread which packets are passed to its handler, for the duration of that.
struct HandedScope(Option<&'static thread::Thread>);

impl HandedScope {
    fn begin(queue: &Queue, packets: *const Packet, count: u64, index: u64) -> Self {
        if !sdk::is_counting() || packets.is_null() {
            return Self(None);
        }
        wall(Self(None), || {
            // SAFETY: `handed` is used under the queue's lock alone, on the thread that holds it.
            let handed = unsafe { &mut *queue.handed.get() };
            handed.clear();
            // SAFETY: the run-time passes `count` packets of 64 bytes.
            let packets = unsafe { std::slice::from_raw_parts(packets, count as usize) };
            let dispatches = packets.iter().zip(index..).filter(|(packet, _)| packet.is_dispatch());
            handed.extend(dispatches.map(|(packet, index)| {
                let (correlation, origin) = maker(queue, packet, Some(index));
                let site = graphs::site_of(correlation, packet.kernel_object, origin.site());
                let origin = Origin::new(origin.tid(), origin.stream(), site);
                Handed {
                    kernel_object: packet.kernel_object,
                    correlation,
                    origin,
                    queue: queue.id,
                }
            }));
            handed.reverse();
            let thread = thread::current();
            if let Some(thread) = thread {
                thread.handing.set(std::ptr::from_ref(queue) as usize);
            }
            Self(thread)
        })
    }

    fn end(self) {
        if let Some(thread) = self.0 {
            thread.handing.set(0);
        }
    }
}

/// The next dispatch that this thread passes on, if it has this kernel (0: any).
pub(crate) fn handed(kernel_object: u64) -> Option<Handed> {
    let address = thread::current()?.handing.get() as *const Queue;
    // SAFETY: set by `HandedScope::begin` to a permanent queue, while this thread holds its lock.
    let handed = unsafe { &mut *address.as_ref()?.handed.get() };
    while let Some(known) = handed.pop() {
        if kernel_object == 0 || known.kernel_object == kernel_object {
            return Some(known);
        }
    }
    None
}

/// The packets as one contiguous range.
#[inline]
fn whole(queue: &Queue, packets: *const Packet, count: u64, index: u64) -> *const Packet {
    let Some((before, base)) = ring_wrap::past_end(queue, packets, count, index) else {
        return packets;
    };
    // SAFETY: only the handler uses `whole`, under the queue's lock.
    let out = unsafe { &mut *queue.whole.get() };
    out.clear();
    // SAFETY: the ring has this many packets from here to its end, and the others at its beginning.
    let parts = unsafe {
        [
            std::slice::from_raw_parts(packets, before as usize),
            std::slice::from_raw_parts(base, (count - before).min(queue.size()) as usize),
        ]
    };
    for part in parts {
        out.extend_from_slice(part);
    }
    out.as_ptr()
}

fn kind(packet: &Packet) -> u16 {
    packet.header & packet::TYPE
}

/// What one pass over a batch of packets finds.
struct Batch {
    dispatches: u64,
    /// Dispatches whose signal cannot be watched, so that timing costs an additional packet each.
    barriers: u64,
}

impl Batch {
    /// Takes the times of the signals that the packets use again, and counts the dispatches.
    #[inline]
    fn look(packets: &[Packet]) -> Self {
        let (mut dispatches, mut barriers) = (0, 0);
        for packet in packets {
            let is_dispatch = packet.is_dispatch();
            dispatches += u64::from(is_dispatch);
            if packet.completion != 0 && kind(packet) != packet::INVALID {
                signal::before_change(packet.completion);
                barriers += u64::from(is_dispatch && needs_barrier(packet));
            }
        }
        Self { dispatches, barriers }
    }
}

/// Whether this packet, alone in its batch, is the usual one: a dispatch without a signal of the program, with nothing
/// of ours due before or after it.
#[inline]
fn is_plain(queue: &Queue, packet: &Packet) -> bool {
    kind(packet) == packet::DISPATCH
        && packet.completion == 0
        && queue.level() < Level::Program
        && queue.is_tried()
        && queue.is_shared.load(Ordering::Acquire) == 0
        && !queue.witnesses.is_due(queue.room.written(), 1, queue.size())
        && is_wanted()
        && !sdk::is_counting()
}

/// As `rewrite`, for a plain packet. This is what nearly every launch costs.
fn rewrite_plain(queue: &Queue, packet: &Packet, index: u64) -> bool {
    let Some(process) = process::get() else { return false };
    let id = process.submit(1) + 1;
    let now = clock::now();
    // SAFETY: only the handler uses `out`, under the queue's lock.
    let out = unsafe { &mut *queue.out.get() };
    out.clear();
    queue.wait_for_slots(1);
    let index = Some(index);
    dispatch(queue, &Submission { packet, index, id, now }, out);
    true
}

/// Fills `out`. False if the packets can be passed on unchanged.
fn rewrite(queue: &Queue, packets: &[Packet], index: u64) -> bool {
    let Batch { dispatches, barriers } = Batch::look(packets);
    // Counted packets keep their signals: the SDK's handler is behind this one, and records them.
    let level = queue.level();
    if dispatches == 0 || !is_wanted() || sdk::is_counting() {
        if dispatches > 0 {
            watchdog::unwanted(dispatches);
        }
        return mark(queue, packets, index, level);
    }
    let Some(process) = process::get() else { return false };
    let mut id = process.submit(dispatches);
    let now = clock::now();
    // SAFETY: only the handler uses `out`, under the queue's lock.
    let out = unsafe { &mut *queue.out.get() };
    out.clear();
    out.reserve(2 * packets.len());
    queue.wait_for_slots(dispatches);
    let is_shared = queue.is_shared.load(Ordering::Acquire) != 0;
    let barriers = if level == Level::Program { 0 } else { barriers };
    let count = packets.len() as u64;
    let mut is_witness_due = queue.witnesses.is_due(queue.room.written(), count, queue.size());
    // The first packets do not wait for ours longer than for their predecessors.
    let is_first = queue.room.written() == 0 || packets.first().is_some_and(is_ordered);
    let is_tried = !is_first || level == Level::Program || queue.is_tried();
    let more = barriers + u64::from(is_witness_due) + if is_tried { 0 } else { 2 };
    let has_room = more == 0 || hsa().is_some_and(|hsa| queue.has_room(hsa, index + count, count, more));
    is_witness_due &= has_room;
    if !has_room && hsa().is_some_and(|hsa| queue.has_room_for_witness(hsa, index + count, count)) {
        // The kernels are not watched.
        out.extend(witness(queue, 0, packets.first().is_some_and(is_ordered)));
    }
    if !is_tried && has_room {
        queue.try_once();
        is_witness_due = false;
        try_signals(queue, out);
    }
    let mut own = index;
    for (packet, index) in packets.iter().zip(index..) {
        if is_witness_due && is_ordered(packet) {
            is_witness_due = false;
            out.extend(witness(queue, out.len(), true));
        }
        if packet.is_dispatch() {
            id += 1;
            let mut index = Some(index);
            if is_shared {
                index = queue.index_of(packet, own);
                own = index.map_or(own, |index| index + 1);
            }
            let submission = Submission { packet, index, id, now };
            if level == Level::Program {
                dispatch_in_place(queue, &submission, out);
            } else if has_room || !needs_barrier(packet) {
                dispatch(queue, &submission, out);
            } else {
                without_time(queue, &submission, out);
            }
        } else {
            out.push(*packet);
        }
    }
    true
}

/// Whether this packet waits for all earlier ones.
#[inline]
fn is_ordered(packet: &Packet) -> bool {
    packet.header & packet::BARRIER != 0
}

/// First packets of a queue: one with a collector's signal through the whole chain, and a witness for it.
#[cold]
fn try_signals(queue: &Queue, out: &mut Vec<Packet>) {
    let sequence = queue.head.load(Ordering::Relaxed);
    let Some((side, kept)) = free_slot(queue, sequence) else {
        return;
    };
    let Some(own) = queue.slots.arm(sequence) else { return };
    kept.keep(&Dispatch::default());
    let position = queue.room.written() + out.len() as u64;
    side.position.store(position, Ordering::Relaxed);
    side.watch.own(own, Kind::Mark);
    queue.room.mark(position);
    begin(queue, sequence);
    out.push(Packet {
        header: packet::BARRIER_AND | packet::BARRIER,
        completion: own,
        ..Packet::default()
    });
    out.extend(witness(queue, out.len(), true));
}

/// A packet that shows when the earlier ones are complete, to be passed on after `ahead` packets.
#[cold]
fn witness(queue: &Queue, ahead: usize, is_ordered: bool) -> Option<Packet> {
    let position = queue.room.written() + ahead as u64;
    let sequence = queue.head.load(Ordering::Relaxed);
    queue.witnesses.packet(hsa()?, position, sequence, is_ordered)
}

/// Whether dispatches are recorded here.
pub(crate) fn is_wanted() -> bool {
    control::is_wanted(wanted::DISPATCH) && !watchdog::has_switched() && level::current() <= Level::Program
}

/// Whether a dispatch's signal cannot be watched, so that timing costs an additional packet.
#[inline]
fn needs_barrier(packet: &Packet) -> bool {
    packet.completion != 0 && packet.is_dispatch() && !signal::is_free(packet.completion)
}

/// While nothing is recorded, some packet must still show the hardware's progress, in a large batch several.
fn mark(queue: &Queue, packets: &[Packet], index: u64, level: Level) -> bool {
    let is_by_signal = level < Level::Program && queue.room.is_mark_due(packets.len() as u64);
    is_by_signal && mark_by_signal(queue, packets)
        || !sdk::is_counting() && mark_by_witness(queue, packets, index, level)
}

/// As `mark`, with the collector's signals, for packets without signals.
#[cold]
fn mark_by_signal(queue: &Queue, packets: &[Packet]) -> bool {
    let is_free =
        |packet: &Packet| (packet.is_dispatch() || kind(packet) == packet::BARRIER_AND) && packet.completion == 0;
    // SAFETY: only the handler uses `out`, under the queue's lock.
    let out = unsafe { &mut *queue.out.get() };
    out.clear();
    out.extend_from_slice(packets);
    let mut position = queue.room.written();
    let mut is_marked = false;
    for part in out.chunks_mut(queue.room.part()) {
        let sequence = queue.head.load(Ordering::Relaxed);
        if let Some(at) = part.iter().rposition(is_free)
            && let Some(packet) = part.get_mut(at)
            && let Some((side, kept)) = free_slot(queue, sequence)
        {
            let Some(own) = queue.slots.arm(sequence) else { break };
            // No dispatch has the number 0, so the harvester records nothing. It is not published: no reader finds it
            // after a kill.
            kept.keep(&Dispatch::default());
            side.position.store(position + at as u64, Ordering::Relaxed);
            packet.completion = own;
            side.watch.own(own, Kind::Mark);
            queue.room.mark(position + at as u64);
            begin(queue, sequence);
            is_marked = true;
        }
        position += part.len() as u64;
    }
    is_marked
}

/// As `mark`, if the collector's signals are not used or packets have signals of the program: with one of the
/// run-time's, before the packets.
fn mark_by_witness(queue: &Queue, packets: &[Packet], index: u64, level: Level) -> bool {
    let count = packets.len() as u64;
    let written = queue.room.written();
    if level < Level::Program && !queue.room.is_long_unmarked(count)
        || !queue.witnesses.is_due(written, count, queue.size())
    {
        return false;
    }
    let Some(hsa) = hsa() else { return false };
    if level < Level::Program && hsa.layout.keeps_overflow() {
        return false;
    }
    let next = index + count;
    if !queue.has_room(hsa, next, count, 1) && !queue.has_room_for_witness(hsa, next, count) {
        return false;
    }
    // SAFETY: only the handler uses `out`, under the queue's lock.
    let out = unsafe { &mut *queue.out.get() };
    out.clear();
    out.extend(witness(queue, 0, packets.first().is_some_and(is_ordered)));
    out.extend_from_slice(packets);
    true
}

/// Call of a packet: its correlation id and its origin.
#[inline]
fn maker(queue: &Queue, packet: &Packet, index: Option<u64>) -> (u64, Origin) {
    let [correlation, who] = index.map_or([0, 0], |index| {
        let wide = queue.wide.noted(index);
        wide.unwrap_or_else(|| queue.slots.noted(index))
    });
    if correlation == 0
        && deferred::is_used()
        && let Some([correlation, who]) = deferred::maker(packet)
    {
        return (correlation, Origin::of(who));
    }
    (correlation, Origin::of(who))
}

/// A dispatch packet, and what else its record says.
pub(crate) struct Submission<'a> {
    pub(crate) packet: &'a Packet,
    /// Index of the packet in the program's queue; `None` if unknown.
    pub(crate) index: Option<u64>,
    pub(crate) id: u64,
    /// Time of submission, ticks.
    pub(crate) now: u64,
}

impl Submission<'_> {
    /// The record, without its times. Takes the call that was noted for the packet. Inlined, so that its words go
    /// straight to the slot.
    #[inline(always)]
    fn record(&self, queue: &Queue) -> Dispatch {
        let packet = self.packet;
        let (correlation, origin) = maker(queue, packet, self.index);
        let site = graphs::site_of(correlation, packet.kernel_object, origin.site());
        let ([grid_x, grid_y, grid_z], [workgroup_x, workgroup_y, workgroup_z]) =
            (packet.grid_of_dispatch(), packet.workgroup);
        Dispatch {
            begin: 0,
            end: 0,
            submit: self.now,
            correlation,
            kernel_object: packet.kernel_object,
            dispatch_id: self.id,
            grid_x,
            grid_y,
            grid_z,
            workgroup_x,
            workgroup_y,
            workgroup_z,
            source: INTERCEPTED,
            private_size: packet.private_size,
            group_size: packet.group_size,
            agent: queue.agent.index,
            queue: queue.id,
            stream: origin.stream(),
            tid: origin.tid(),
            name: Dispatch::name_of_site(packet.kernel_object, site),
        }
    }
}

/// Slot of a sequence number, unless all are in use.
fn free_slot(queue: &Queue, sequence: u64) -> Option<(&'static Side, SlotWriter<'static>)> {
    let side = queue.slots.side(sequence).filter(|_| queue.has_slots(sequence + 1))?;
    Some((side, queue.slots.record(sequence)?))
}

/// Publishes a slot as in flight.
#[inline]
fn begin(queue: &Queue, sequence: u64) {
    // Release: the harvester that sees the head sees the slot, and the slot is visible before the packet.
    queue.head.store(sequence + 1, Ordering::Release);
    harvest::began(1);
    // Release: the slot is visible before the packet, which the writer stores.
    fence(Ordering::Release);
}

#[inline]
fn dispatch(queue: &Queue, submission: &Submission<'_>, out: &mut Vec<Packet>) {
    let packet = submission.packet;
    let sequence = queue.head.load(Ordering::Relaxed);
    let Some((side, kept)) = free_slot(queue, sequence) else {
        without_time(queue, submission, out);
        return;
    };
    let mut copy = *packet;
    if !watch(queue, side, sequence, &mut copy) {
        without_time(queue, submission, out);
        return;
    }
    let record = submission.record(queue);
    kept.keep(&record);
    queue.submitted(Some(sequence), &record);
    let position = queue.room.written() + out.len() as u64;
    side.position.store(position, Ordering::Relaxed);
    queue.room.mark(position);
    let is_own = copy.completion != packet.completion;
    kept.publish(sequence, queue.slots.state(is_own));
    begin(queue, sequence);
    queue.prepare(sequence + PREFETCH_DISTANCE);
    out.push(copy);
    if is_own && packet.completion != 0 {
        out.push(behind(packet));
    }
}

/// A dispatch for which there is no free slot, signal or place for a barrier.
#[cold]
fn without_time(queue: &Queue, submission: &Submission<'_>, out: &mut Vec<Packet>) {
    untimed(queue, submission.record(queue));
    out.push(*submission.packet);
}

/// A dispatch that is timed if its own signal can be watched in place.
fn dispatch_in_place(queue: &Queue, submission: &Submission<'_>, out: &mut Vec<Packet>) {
    let packet = submission.packet;
    let record = submission.record(queue);
    let sequence = queue.head.load(Ordering::Relaxed);
    match free_slot(queue, sequence) {
        Some((side, kept)) if packet.completion != 0 && side.watch.in_place(packet.completion, Kind::Dispatch) => {
            kept.keep(&record);
            queue.submitted(Some(sequence), &record);
            let position = queue.room.written() + out.len() as u64;
            side.position.store(position, Ordering::Relaxed);
            kept.publish(sequence, State::Foreign);
            begin(queue, sequence);
        }
        _ => untimed(queue, record),
    }
    out.push(*packet);
}

/// A dispatch of an observed queue: timed if its own signal can be watched.
pub(crate) fn observe(queue: &'static Queue, submission: &Submission<'_>) {
    let record = submission.record(queue);
    let sequence = queue.head.load(Ordering::Relaxed);
    let completion = submission.packet.completion;
    if let Some((side, kept)) = free_slot(queue, sequence).filter(|_| completion != 0) {
        kept.keep(&record);
        if side.watch.late(completion) {
            kept.publish(sequence, State::Foreign);
            queue.submitted(Some(sequence), &record);
            begin(queue, sequence);
            return;
        }
    }
    untimed(queue, record);
}

/// Chooses the signal. False if there is none.
fn watch(queue: &Queue, side: &'static Side, sequence: u64, packet: &mut Packet) -> bool {
    let own = packet.completion;
    if own != 0 && side.watch.in_place(own, Kind::Dispatch) {
        return true;
    }
    let Some(signal) = queue.slots.arm(sequence) else {
        return false;
    };
    packet.completion = signal;
    side.watch.own(signal, Kind::Own);
    true
}

/// Barrier packet that completes the program's signal when a packet has one of ours instead.
fn behind(packet: &Packet) -> Packet {
    Packet {
        header: packet::BARRIER_AND | packet::BARRIER | packet.header & packet::RELEASE,
        completion: packet.completion,
        ..Packet::default()
    }
}

/// No slot is free, or no signal can be watched: the dispatch runs untimed.
#[cold]
fn untimed(queue: &Queue, record: Dispatch) {
    harvest::began_unseen();
    queue.submitted(None, &record);
    queue.count_completed(1, 1);
    if let Some(process) = process::get() {
        process.count(counter::UNTIMED, 1);
    }
    collector::dispatch(&record, flag::UNTIMED);
}
