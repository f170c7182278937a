//! A compute queue: packets start in order, delay their completion by their modelled time, and complete.
//!
//! Time in a queue is computed, not measured: a packet begins when it was first seen and all its dependencies are over,
//! even if the poller looks later. A burst of kernels therefore runs back to back. A packet with the barrier bit waits
//! for all earlier ones; without it, kernels overlap. Not modelled: resource limits of compute units.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::blit::Blit;
use crate::engine::{Address, Context, Step};
use crate::fault::Wrong;
use crate::model::{Habit, model};
use crate::outbox::signal;
use crate::pm4::{self, Pm4};
use crate::scratch::{Found, Scratch};
use crate::truth_log::Line;
use crate::{clock, counters, guest, twin};

const PACKET_BYTES: u64 = 64;
/// Offset from the read index in `amd_queue_t` (`amd_hsa_queue.h`): the queue's properties.
const PROPERTIES: u64 = 52;
/// The property that requests begin and end in completion signals.
const ENABLE_PROFILING: u32 = 1 << 3;
/// Maximum number of concurrent kernels per queue, unless they are serialized.
const MOST_RUNNING: usize = 32;

mod kind {
    pub(super) const VENDOR: u8 = 0;
    pub(super) const INVALID: u8 = 1;
    pub(super) const DISPATCH: u8 = 2;
    pub(super) const BARRIER_AND: u8 = 3;
    pub(super) const BARRIER_OR: u8 = 5;
}

const BARRIER_BIT: u16 = 1 << 8;
/// Format of a vendor packet that refers to an indirect buffer.
const INDIRECT_BUFFER: u8 = 1;
/// Format of a vendor packet that waits for a signal's value.
const BARRIER_VALUE: u8 = 2;
/// Format of a vendor packet that dispatches a kernel in clusters of work-groups.
const EXTENDED_DISPATCH: u8 = 3;

/// A running kernel.
struct Running {
    index: u64,
    begin: u64,
    end: u64,
    signal: u64,
    kernel_object: u64,
    name: Arc<str>,
    grid: [u32; 3],
    workgroup: [u16; 3],
    group_bytes: u32,
    private_bytes: u32,
    has_barrier: bool,
    /// Address of the argument block.
    arguments: u64,
    blit: Blit,
}

/// A compute queue.
pub(crate) struct AqlQueue {
    address: Address,
    packets: u64,
    /// Next packet to start.
    next: u64,
    /// Ends of ranges of packets, and the time when each was first seen.
    seen: VecDeque<(u64, u64)>,
    seen_end: u64,
    running: Vec<Running>,
    /// Begin of the last packet.
    last_begin: u64,
    /// Time when all running work is over.
    drained: u64,
    /// Time when the packet that waits for signals began to wait.
    waiting_since: Option<u64>,
    /// Time until which the queue stands still.
    stopped: u64,
    most_running: usize,
    pm4: Pm4,
    scratch: Scratch,
}

impl AqlQueue {
    pub(crate) fn new(address: Address) -> Self {
        let start = guest::atomic_u64(address.creation.read).load(Ordering::Acquire);
        Self {
            address,
            packets: (address.creation.bytes / PACKET_BYTES).max(1),
            next: start,
            seen: VecDeque::new(),
            seen_end: start,
            running: Vec::new(),
            last_begin: 0,
            drained: 0,
            waiting_since: None,
            stopped: 0,
            most_running: if model().habits.has(Habit::Serial) {
                1
            } else {
                MOST_RUNNING
            },
            pm4: Pm4::default(),
            scratch: Scratch::default(),
        }
    }

    /// Completes a signal, with times if the queue's properties request them.
    fn complete(&self, context: &mut Context, signal: u64, [begin, end]: [u64; 2], wrong: Option<Wrong>) {
        if self.is_timed() {
            context.outbox.complete(signal, begin, end, wrong);
        } else {
            context.outbox.complete_untimed(signal);
        }
    }

    fn is_timed(&self) -> bool {
        let properties = guest::atomic_u32(self.address.creation.read + PROPERTIES).load(Ordering::Acquire);
        properties & ENABLE_PROFILING != 0
    }

    fn place(&self, index: u64) -> u64 {
        self.address.creation.ring + (index % self.packets) * PACKET_BYTES
    }

    /// Polls the queue: starts and finishes what is due.
    pub(crate) fn poll(&mut self, context: &mut Context) -> Step {
        self.poll_by(context, clock::now)
    }

    /// As `poll`, with another clock.
    fn poll_by(&mut self, context: &mut Context, clock: impl Fn() -> u64) -> Step {
        let mut step = Step::IDLE;
        if self.stopped > clock() {
            step.wake = self.stopped;
            return step;
        }
        self.look(&clock);
        let now = clock();
        while self.next < self.seen_end {
            let packet = self.place(self.next);
            let header = guest::atomic_u16(packet).load(Ordering::Acquire);
            let ready = self.ready(header);
            if ready > now {
                step.wake = ready;
                break;
            }
            step.progress |= self.retire(context, ready);
            if !self.start(context, packet, header, ready) {
                break;
            }
            step.progress = true;
        }
        step.progress |= self.retire(context, now);
        let end = self.running.iter().map(|running| running.end).min();
        step.wake = step.wake.min(end.unwrap_or(u64::MAX));
        step
    }

    /// Whether it has work: packets that are written and rung for, or running kernels.
    pub(crate) fn is_busy(&mut self) -> bool {
        self.look(clock::now);
        self.next < self.seen_end || !self.running.is_empty()
    }

    /// Stops the queue between two times. Running work ends later by that duration, and nothing begins before the end.
    pub(crate) fn stop(&mut self, from: u64, until: u64) {
        let shift = until.saturating_sub(from);
        for running in self.running.iter_mut().filter(|running| running.end > from) {
            running.end = running.end.saturating_add(shift);
        }
        if self.drained > from {
            self.drained = self.drained.saturating_add(shift);
        }
        self.last_begin = self.last_begin.max(until);
        self.stopped = until;
    }

    /// Records when new packets were first seen. The clock is read after them, because this thread may have waited for
    /// a CPU before it looked, and no packet begins before it was written.
    fn look(&mut self, clock: impl Fn() -> u64) {
        let written = self.address.written();
        if self.seen_end == written || !self.address.is_rung() {
            return;
        }
        // A producer takes its index before there is space: the slot then contains the packet of the previous lap.
        let written = written.min(self.next + self.packets);
        let written = if model().habits.has(Habit::Doorbell) {
            written.min(self.address.rung())
        } else {
            written
        };
        let before = self.seen_end;
        while self.seen_end < written {
            // Acquire: pairs with the host's release of the header, which publishes the packet.
            let header = guest::atomic_u16(self.place(self.seen_end)).load(Ordering::Acquire);
            if header as u8 == kind::INVALID {
                break;
            }
            self.seen_end += 1;
        }
        if self.seen_end > before {
            self.seen.push_back((self.seen_end, clock()));
        }
    }

    /// Earliest time at which the next packet can start.
    fn ready(&mut self, header: u16) -> u64 {
        while self.seen.front().is_some_and(|(end, _)| *end <= self.next) {
            self.seen.pop_front();
        }
        let seen = self.seen.front().map_or(0, |(_, time)| *time);
        let mut ready = seen.max(self.last_begin);
        if header & BARRIER_BIT != 0 {
            ready = ready.max(self.drained);
        } else if self.running.len() >= self.most_running {
            ready = ready.max(self.running.iter().map(|running| running.end).min().unwrap_or(0));
        }
        ready
    }

    /// Starts a packet; false if it waits for signals.
    fn start(&mut self, context: &mut Context, packet: u64, header: u16, ready: u64) -> bool {
        match header as u8 {
            kind if kind == kind::DISPATCH || is_extended(packet, kind) => {
                if is_extended(packet, kind) && is_held_back(context, packet) {
                    return false;
                }
                if !self.dispatch(context, packet, header, ready) {
                    return false;
                }
            }
            other => {
                let Some((begin, end)) = self.wait(context, packet, other, ready) else {
                    return false;
                };
                self.last_begin = end;
                self.drained = self.drained.max(end);
                let wrong = context.outbox.faults.wrong_barrier(self.next);
                self.complete(context, guest::read(packet + 56), [begin, end], wrong);
            }
        }
        // The host waits for both: the header of a slot to be reused, and the index.
        if !model().habits.has(Habit::Headers) {
            guest::atomic_u16(packet).store(kind::INVALID.into(), Ordering::Release);
        }
        self.next += 1;
        self.tell_read();
        true
    }

    /// Publishes the read index.
    fn tell_read(&self) {
        let begun = self.running.iter().map(|running| running.index).min();
        let read = begun.filter(|_| model().habits.has(Habit::Late)).unwrap_or(self.next);
        self.address.set_read(read);
    }

    /// Begin and end of a packet without a kernel; `None` while it waits.
    fn wait(&mut self, context: &mut Context, packet: u64, kind: u8, ready: u64) -> Option<(u64, u64)> {
        let condition = match kind {
            kind::BARRIER_AND | kind::BARRIER_OR => Condition::Signals {
                any: kind == kind::BARRIER_OR,
            },
            kind::VENDOR if guest::read::<u8>(packet + 2) == BARRIER_VALUE => Condition::Value,
            kind::VENDOR if guest::read::<u8>(packet + 2) == INDIRECT_BUFFER => {
                self.indirect(context, packet, ready);
                return Some((ready, ready));
            }
            // Agent packets have no effect here.
            _ => return Some((ready, ready)),
        };
        // The signal that it waits for may be in this engine's outbox.
        context.outbox.flush();
        let begin = *self.waiting_since.get_or_insert(ready);
        match condition.holds(packet) {
            Holding::No => None,
            Holding::Always => {
                self.waiting_since = None;
                Some((begin, begin.max(ready)))
            }
            Holding::Yes => {
                self.waiting_since = None;
                // It was satisfied between the last poll and now: use now, never an earlier time.
                Some((begin, clock::now()))
            }
        }
    }

    /// Executes an indirect buffer: counters, or a cache invalidation, which has no effect.
    fn indirect(&mut self, context: &Context, packet: u64, now: u64) {
        let perf = counters::perf(self.address.creation.gpu).and_then(|perf| perf.lock().ok());
        if let Some(mut perf) = perf {
            self.pm4
                .packet(packet, &Aliased(&context.process.memory), &mut perf, now);
        }
    }

    /// Counts a finished kernel if its queue's waves are counted.
    fn count(&self, running: &Running) {
        if !self.pm4.is_counted {
            return;
        }
        if let Some(mut perf) = counters::perf(self.address.creation.gpu).and_then(|perf| perf.lock().ok()) {
            let items: u64 = running.workgroup.iter().map(|size| u64::from(*size)).product();
            let waves = items.div_ceil(u64::from(model().target.wave));
            let workgroups = workgroups(running.grid, running.workgroup);
            perf.kernel(running.begin, running.end, workgroups, waves, items * workgroups);
        }
    }

    /// Begins a kernel; false if it waits for a value, which blocks the queue until then.
    fn dispatch(&mut self, context: &mut Context, packet: u64, header: u16, ready: u64) -> bool {
        let private_bytes: u32 = guest::read(packet + 24);
        let mut ready = ready;
        if has_dependency(packet) {
            // It was satisfied at some time before now: the kernel never begins earlier.
            ready = clock::now();
        }
        match self
            .scratch
            .look(context.process, self.address.creation.read, private_bytes)
        {
            Found::Enough => {}
            Found::Wait => {
                context.outbox.flush();
                return false;
            }
            Found::Answered(since) => {
                ready = clock::now();
                context.outbox.log(&Line {
                    kind: "scratch",
                    queue: self.address.id,
                    index: self.next,
                    begin: since,
                    end: ready,
                    private_bytes,
                    gpu: self.address.creation.gpu,
                    ring: self.address.creation.ring,
                    ..Line::default()
                });
            }
        }
        let kernel_object: u64 = guest::read(packet + 32);
        let grid = grid(packet);
        let workgroup: [u16; 3] = guest::read(packet + 4);
        let name = context.symbols.name(&context.process.memory, kernel_object);
        let arguments: u64 = guest::read(packet + 40);
        let blit = Blit::recognise(&context.process.memory, &name, grid, arguments);
        let begin = *self.waiting_since.get_or_insert(ready);
        let waited = matches!(blit, Blit::Await { .. });
        if waited {
            context.outbox.flush();
            if !blit.can_end(&context.process.memory) {
                return false;
            }
        }
        self.waiting_since = None;
        let duration = match blit.bytes() {
            0 => {
                let seed = (u64::from(self.address.id) << 40) | self.next;
                model().kernel_duration(&name, workgroups(grid, workgroup), seed)
            }
            bytes => model().copy_duration(bytes),
        };
        let end = if waited { clock::now() } else { begin + duration };
        self.last_begin = begin;
        self.drained = self.drained.max(end);
        let parsed = self.seen.front().filter(|_| model().habits.has(Habit::Parsed));
        let begin = parsed.map_or(begin, |(_, seen)| begin.min(*seen));
        self.running.push(Running {
            index: self.next,
            begin,
            end,
            signal: guest::read(packet + 56),
            kernel_object,
            name,
            grid,
            workgroup,
            group_bytes: guest::read(packet + 28),
            private_bytes,
            has_barrier: header & BARRIER_BIT != 0,
            arguments,
            blit,
        });
        true
    }

    /// Finishes kernels that are over at a time, in order of their ends.
    fn retire(&mut self, context: &mut Context, time: u64) -> bool {
        let mut progress = false;
        loop {
            let over = self
                .running
                .iter()
                .enumerate()
                .filter(|(_, running)| running.end <= time);
            let Some((index, _)) = over.min_by_key(|(_, running)| (running.end, running.index)) else {
                return progress;
            };
            let running = self.running.remove(index);
            match running.blit {
                Blit::None => {
                    let arguments = context.process.memory.host(running.arguments);
                    twin::execute(&running.name, arguments, running.grid, running.workgroup);
                }
                _ => running.blit.execute(&context.process.memory),
            }
            self.count(&running);
            context.outbox.log(&running.line(&self.address));
            let wrong = context.outbox.faults.wrong_kernel(running.index);
            self.complete(context, running.signal, [running.begin, running.end], wrong);
            if model().habits.has(Habit::Late) {
                self.tell_read();
            }
            progress = true;
        }
    }
}

fn is_extended(packet: u64, kind: u8) -> bool {
    kind == kind::VENDOR && guest::read::<u8>(packet + 2) == EXTENDED_DISPATCH
}

/// Whether an extended dispatch waits for its signal.
fn is_held_back(context: &mut Context, packet: u64) -> bool {
    let handle: u64 = guest::read(packet + 48);
    if handle == 0 {
        return false;
    }
    // The signal that it waits for may be in this engine's outbox.
    context.outbox.flush();
    value_of(handle) != 0
}

/// Grid of a dispatch in work-items.
fn grid(packet: u64) -> [u32; 3] {
    let kind = guest::atomic_u16(packet).load(Ordering::Acquire) as u8;
    if !is_extended(packet, kind) {
        return guest::read(packet + 12);
    }
    let workgroup: [u16; 3] = guest::read(packet + 4);
    let counts = [
        guest::read::<u32>(packet + 12),
        guest::read::<u16>(packet + 16).into(),
        guest::read::<u16>(packet + 18).into(),
    ];
    let clusters: [u8; 3] = guest::read(packet + 20);
    let items = |axis: usize| counts[axis] * u32::from(clusters[axis].max(1)) * u32::from(workgroup[axis]);
    [items(0), items(1), items(2)]
}

/// The program's memory at the GPU's addresses.
struct Aliased<'a>(&'a crate::memory::Memory);

impl pm4::Memory for Aliased<'_> {
    fn read(&self, address: u64) -> u32 {
        guest::read(self.0.host(address))
    }
    fn write(&self, address: u64, value: u32) {
        guest::write(self.0.host(address), value);
    }
}

fn workgroups(grid: [u32; 3], workgroup: [u16; 3]) -> u64 {
    grid.iter()
        .zip(workgroup)
        .map(|(items, size)| u64::from(items.div_ceil(u32::from(size.max(1)))))
        .product()
}

impl Running {
    fn line(&self, address: &Address) -> Line<'_> {
        let (source, target) = self.blit.ends();
        Line {
            kind: "dispatch",
            queue: address.id,
            kernel_object: self.kernel_object,
            grid: self.grid,
            workgroup: self.workgroup,
            signal: self.signal,
            index: self.index,
            begin: self.begin,
            end: self.end,
            bytes: self.blit.bytes(),
            source,
            target,
            name: &self.name,
            gpu: address.creation.gpu,
            group_bytes: self.group_bytes,
            private_bytes: self.private_bytes,
            has_barrier: self.has_barrier,
            ring: address.creation.ring,
        }
    }
}

enum Condition {
    /// Five signals, all or any of which must be zero.
    Signals { any: bool },
    /// A signal's value, compared under a mask.
    Value,
}

enum Holding {
    /// Not satisfied.
    No,
    /// Nothing to wait for.
    Always,
    /// Satisfied, at an unknown time.
    Yes,
}

/// Acquire: pairs with the release of the completing thread.
fn value_of(handle: u64) -> i64 {
    guest::atomic_i64(handle + signal::VALUE).load(Ordering::Acquire)
}

impl Condition {
    fn holds(&self, packet: u64) -> Holding {
        let holds = match self {
            Self::Signals { any } => {
                let handles: [u64; 5] = guest::read(packet + 8);
                let mut handles = handles.into_iter().filter(|handle| *handle != 0).peekable();
                if handles.peek().is_none() {
                    return Holding::Always;
                }
                if *any {
                    handles.any(|handle| value_of(handle) == 0)
                } else {
                    handles.all(|handle| value_of(handle) == 0)
                }
            }
            Self::Value => {
                let handle: u64 = guest::read(packet + 8);
                if handle == 0 {
                    return Holding::Always;
                }
                let (wanted, mask): (i64, i64) = (guest::read(packet + 16), guest::read(packet + 24));
                let value = value_of(handle) & mask;
                match guest::read::<u32>(packet + 32) {
                    0 => value == wanted,
                    1 => value != wanted,
                    2 => value < wanted,
                    _ => value >= wanted,
                }
            }
        };
        if holds { Holding::Yes } else { Holding::No }
    }
}

/// Whether a packet is an extended dispatch with a signal to wait for.
fn has_dependency(packet: u64) -> bool {
    let kind = guest::atomic_u16(packet).load(Ordering::Acquire) as u8;
    is_extended(packet, kind) && guest::read::<u64>(packet + 48) != 0
}

#[cfg(test)]
mod tests;
