//! A copy queue: packets of the SDMA engine, executed in order.
//!
//! Bytes are really moved; the modelled time passes before the next packet is executed. The packets of one copy make
//! one line of the truth log, at the atomic that completes its signal. Not supported: tiled and compressed surfaces.

use std::sync::atomic::Ordering;

use crate::engine::{Address, Context, Step};
use crate::memory::Memory;
use crate::model::model;
use crate::outbox::signal;
use crate::truth_log::Line;
use crate::{clock, guest};

mod op {
    pub(super) const NOP: u32 = 0;
    pub(super) const COPY: u32 = 1;
    pub(super) const WRITE: u32 = 2;
    pub(super) const FENCE: u32 = 5;
    pub(super) const TRAP: u32 = 6;
    pub(super) const POLL: u32 = 8;
    pub(super) const ATOMIC: u32 = 10;
    pub(super) const FILL: u32 = 11;
    pub(super) const TIMESTAMP: u32 = 13;
    pub(super) const CACHE: u32 = 17;
}

/// Maximum length of a packet that is examined as a whole; the data of a write packet follow it.
const MOST_WORDS: usize = 16;

/// The copy to which the current packets belong.
#[derive(Default)]
struct Current {
    kind: &'static str,
    begin: u64,
    end: u64,
    bytes: u64,
    source: u64,
    target: u64,
}

/// A copy queue.
pub(crate) struct SdmaQueue {
    address: Address,
    /// Byte position of the next packet, ever growing.
    next: u64,
    seen: u64,
    /// Packets from this position on were seen at this time, earlier ones before.
    fresh: u64,
    seen_at: u64,
    /// End of the last executed packet.
    time: u64,
    current: Option<Current>,
    copies: u64,
}

struct Packet<'a> {
    words: [u32; MOST_WORDS],
    memory: &'a Memory,
}

impl Packet<'_> {
    fn long(&self, index: usize) -> u64 {
        u64::from(self.words[index]) | (u64::from(self.words[index + 1]) << 32)
    }

    fn place(&self, index: usize) -> u64 {
        self.memory.host(self.long(index))
    }

    fn sub(&self) -> u32 {
        (self.words[0] >> 8) & 0xff
    }

    fn dwords(&self) -> u64 {
        let count = match self.words[0] & 0xff {
            op::NOP => 1 + ((self.words[0] >> 16) & 0x3fff),
            op::COPY if self.sub() == 4 => 13,
            op::COPY => 7,
            op::WRITE => 5 + (self.words[3] & 0xf_ffff),
            op::FENCE => 4,
            op::TRAP => 2,
            op::POLL => 6,
            op::ATOMIC => 8,
            op::FILL | op::CACHE => 5,
            op::TIMESTAMP => 3,
            _ => 1,
        };
        count.into()
    }
}

impl SdmaQueue {
    pub(crate) fn new(address: Address) -> Self {
        let start = guest::atomic_u64(address.creation.read).load(Ordering::Acquire);
        Self {
            address,
            next: start,
            seen: start,
            fresh: start,
            seen_at: 0,
            time: 0,
            current: None,
            copies: 0,
        }
    }

    fn word(&self, position: u64) -> u32 {
        guest::read(self.address.creation.ring + position % self.address.creation.bytes)
    }

    /// Whether it has work.
    pub(crate) fn is_busy(&self) -> bool {
        self.address.is_rung() && (self.next < self.address.written() || self.time > clock::now())
    }

    /// Stops the queue between two times. Work in progress ends later by that duration, and nothing begins before the
    /// end.
    pub(crate) fn stop(&mut self, from: u64, until: u64) {
        if self.time <= from {
            self.time = until;
            return;
        }
        let shift = until.saturating_sub(from);
        self.time = self.time.saturating_add(shift);
        if let Some(current) = &mut self.current {
            current.end = current.end.saturating_add(shift);
        }
    }

    /// Polls the queue: executes what is due.
    pub(crate) fn poll(&mut self, context: &mut Context) -> Step {
        let written = self.address.written();
        if written != self.seen && self.address.is_rung() {
            self.fresh = self.seen;
            self.seen = written;
            // Read after the packets: none begins before it was written.
            self.seen_at = clock::now();
        }
        let mut step = Step::IDLE;
        while self.next < self.seen {
            if self.time > clock::now() {
                step.wake = self.time;
                break;
            }
            let mut words = [0; MOST_WORDS];
            for (index, word) in (0..).zip(&mut words) {
                *word = self.word(self.next + index * 4);
            }
            let packet = Packet {
                words,
                memory: &context.process.memory,
            };
            if !self.execute(context, &packet) {
                break;
            }
            self.next += packet.dwords() * 4;
            self.address.set_read(self.next);
            step.progress = true;
        }
        step
    }

    /// Executes a packet; false if it waits.
    fn execute(&mut self, context: &mut Context, packet: &Packet<'_>) -> bool {
        if self.next >= self.fresh {
            self.time = self.time.max(self.seen_at);
        }
        match packet.words[0] & 0xff {
            op::COPY if packet.sub() == 4 => self.copy_box(packet),
            op::COPY => {
                let bytes = u64::from(packet.words[1] & 0x3fff_ffff) + 1;
                let job = || guest::copy(packet.place(3), packet.place(5), bytes);
                self.work("sdma_copy", [packet.long(3), packet.long(5)], bytes, job);
            }
            op::WRITE => {
                for index in 0..=u64::from(packet.words[3] & 0xf_ffff) {
                    guest::write(packet.place(1) + index * 4, self.word(self.next + 16 + index * 4));
                }
            }
            op::FENCE => guest::atomic_u32(packet.place(1)).store(packet.words[3], Ordering::Release),
            op::TRAP => _ = context.process.events.set(packet.words[1] & 0x0fff_ffff),
            op::POLL => return self.wait(context, packet),
            op::ATOMIC => self.atomic(context, packet),
            op::FILL => {
                let bytes = (u64::from(packet.words[4] & 0x3fff_ffff) & !3) + 4;
                let word = |index| guest::write(packet.place(1) + index * 4, packet.words[3]);
                self.work("sdma_fill", [0, packet.long(1)], bytes, || {
                    (0..bytes / 4).for_each(word);
                });
            }
            op::TIMESTAMP => guest::write(packet.place(1), context.outbox.faults.stamp(self.time)),
            _ => {}
        }
        true
    }

    /// Executes a packet's part of the current copy, and lets its time pass: the modelled time, or the real one if
    /// memory is slower.
    /// is slower than that, the real one.
    fn work(&mut self, kind: &'static str, [source, target]: [u64; 2], bytes: u64, job: impl FnOnce()) {
        let begin = self.time;
        let current = self.current.get_or_insert(Current {
            kind,
            begin,
            end: begin,
            bytes: 0,
            source,
            target,
        });
        current.bytes += bytes;
        let end = current.begin + model().copy_duration(current.bytes);
        let start = clock::now();
        job();
        self.time = end.max(begin + (clock::now() - start));
        if let Some(current) = &mut self.current {
            current.end = self.time;
        }
    }

    fn copy_box(&mut self, packet: &Packet<'_>) {
        let words = &packet.words;
        let element = 1_u64 << (words[0] >> 29);
        let corner = |at: usize| {
            let (x, y, z) = (words[at] & 0x3fff, (words[at] >> 16) & 0x3fff, words[at + 1] & 0x7ff);
            let (line, slice) = (
                u64::from(words[at + 1] >> 13) + 1,
                u64::from(words[at + 2] & 0x0fff_ffff) + 1,
            );
            (
                (u64::from(z) * slice + u64::from(y) * line + u64::from(x)) * element,
                line * element,
                slice * element,
            )
        };
        let (source, source_line, source_slice) = corner(3);
        let (target, target_line, target_slice) = corner(8);
        let (from, to) = (packet.place(1) + source, packet.place(6) + target);
        let width = (u64::from(words[11] & 0x3fff) + 1) * element;
        let (height, depth) = (
            u64::from((words[11] >> 16) & 0x3fff) + 1,
            u64::from(words[12] & 0x7ff) + 1,
        );
        let ends = [packet.long(1) + source, packet.long(6) + target];
        self.work("sdma_copy", ends, width * height * depth, || {
            for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
                guest::copy(
                    from + z * source_slice + y * source_line,
                    to + z * target_slice + y * target_line,
                    width,
                );
            }
        });
    }

    fn wait(&mut self, context: &mut Context, packet: &Packet<'_>) -> bool {
        let polls_memory = packet.words[0] >> 31 != 0;
        if !polls_memory {
            return true;
        }
        context.outbox.flush();
        // Acquire: pairs with the release of the completing thread.
        let value = guest::atomic_u32(packet.place(1)).load(Ordering::Acquire) & packet.words[4];
        let wanted = packet.words[3];
        let holds = match (packet.words[0] >> 28) & 7 {
            0 => true,
            1 => value < wanted,
            2 => value <= wanted,
            3 => value == wanted,
            4 => value != wanted,
            5 => value >= wanted,
            _ => value > wanted,
        };
        if holds {
            // It was satisfied at some time before now: what follows never begins earlier.
            self.time = self.time.max(clock::now());
        }
        holds
    }

    fn atomic(&mut self, context: &mut Context, packet: &Packet<'_>) {
        const ADD_64: u32 = 47;
        if let Some(current) = self.current.take() {
            self.log(context, &current, packet.long(1));
        }
        context.outbox.flush();
        if packet.words[0] >> 25 == ADD_64 {
            // Release: pairs with the host's acquire load of the signal; publishes the copied bytes.
            guest::atomic_u64(packet.place(1)).fetch_add(packet.long(3), Ordering::Release);
        }
    }

    fn log(&mut self, context: &mut Context, current: &Current, value: u64) {
        self.copies += 1;
        context.outbox.log(&Line {
            kind: current.kind,
            queue: self.address.id,
            signal: value - signal::VALUE,
            index: self.copies - 1,
            begin: current.begin,
            end: current.end,
            bytes: current.bytes,
            source: current.source,
            target: current.target,
            gpu: self.address.creation.gpu,
            ring: self.address.creation.ring,
            ..Line::default()
        });
    }
}

#[cfg(test)]
mod tests;
