//! What an engine has done and not yet told: log lines, and signals to complete.
//!
//! Lines are written before the signals are touched, so the log holds every piece of work whose completion the host can
//! have seen. Telling in batches costs one `write` for many completions.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use crate::memory::Buffer;
use crate::model::{Cacheable, model};
use crate::process::Process;
use crate::truth_log::Line;
use crate::{clock, guest};

/// Completions that may wait together.
const BATCH: usize = 64;
/// How long the GPU keeps a signal in its cache, where it is written back at all, ns.
const WRITE_BACK_NS: u64 = 5_000_000;

/// Offsets in a signal, whose handle is its address.
pub(crate) mod signal {
    /// The value that a completion decrements.
    pub(crate) const VALUE: u64 = 8;
    /// Address of the event's mailbox, zero for a signal without event.
    pub(crate) const MAILBOX: u64 = 16;
    /// The event's id.
    pub(crate) const EVENT: u64 = 24;
    /// Begin of the work in ticks.
    pub(crate) const BEGIN: u64 = 32;
    /// End of the work in ticks.
    pub(crate) const END: u64 = 40;
}

struct Completion {
    signal: u64,
    /// Begin and end in ticks, where they are wanted.
    times: Option<(u64, u64)>,
}

/// The batch of one engine.
pub(crate) struct Outbox {
    process: &'static Process,
    lines: Vec<u8>,
    completions: Vec<Completion>,
    /// Completions that are still in the GPU's cache, and when they are written back.
    cached: VecDeque<(u64, Completion)>,
}

impl Outbox {
    pub(crate) fn new(process: &'static Process) -> Self {
        Self {
            process,
            lines: Vec::with_capacity(1 << 16),
            completions: Vec::with_capacity(BATCH),
            cached: VecDeque::new(),
        }
    }

    /// Notes finished work for the log.
    pub(crate) fn log(&mut self, line: &Line<'_>) {
        if let Some(log) = &self.process.log {
            clock::refresh(line.end);
            log.format(line, &mut self.lines);
        }
    }

    /// Notes a signal that the end of some work completes.
    pub(crate) fn complete(&mut self, signal: u64, begin: u64, end: u64) {
        self.complete_at(signal, (clock::ticks(begin), clock::ticks(end)));
    }

    /// The same with the times in ticks.
    pub(crate) fn complete_at(&mut self, signal: u64, times: (u64, u64)) {
        self.push(signal, Some(times));
    }

    /// The same where nobody asked for times.
    pub(crate) fn complete_untimed(&mut self, signal: u64) {
        self.push(signal, None);
    }

    fn push(&mut self, signal: u64, times: Option<(u64, u64)>) {
        if signal != 0 {
            let completion = Completion { signal, times };
            if let Some(buffer) = self.process.memory.cacheable(signal) {
                self.complete_in_cache(completion, buffer);
                return;
            }
            self.completions.push(completion);
            if self.completions.len() == BATCH {
                self.flush();
            }
        }
    }

    /// A completion that the GPU may keep in its cache.
    fn complete_in_cache(&mut self, completion: Completion, buffer: Buffer) {
        let now = clock::now();
        self.log(&Line {
            kind: "cacheable",
            signal: completion.signal,
            begin: now,
            end: now,
            bytes: buffer.size,
            source: buffer.address,
            name: &format!("{:#x}", buffer.flags),
            ..Line::default()
        });
        match model().cacheable {
            Cacheable::Seen => self.completions.push(completion),
            Cacheable::Late => self.cached.push_back((now + WRITE_BACK_NS, completion)),
            Cacheable::Never => {}
        }
    }

    /// Writes the lines, then completes the signals.
    pub(crate) fn flush(&mut self) {
        if !self.lines.is_empty() {
            if let Some(log) = &self.process.log {
                log.write(&self.lines);
            }
            self.lines.clear();
        }
        for completion in self.completions.drain(..) {
            completion.publish(self.process);
        }
        while let Some((_, completion)) = self.cached.pop_front_if(|(due, _)| *due <= clock::now()) {
            completion.publish(self.process);
        }
    }
}

impl Completion {
    fn publish(&self, process: &Process) {
        // The host may free the signal as soon as it sees the value, so everything else comes first.
        let mailbox: u64 = guest::read(self.signal + signal::MAILBOX);
        let event: u32 = guest::read(self.signal + signal::EVENT);
        let late = model().times_late_ns;
        if late == 0 {
            self.stamp();
        }
        // Release: pairs with the host's acquiring load of the value; publishes timestamps and what the work wrote.
        guest::atomic_i64(self.signal + signal::VALUE).fetch_sub(1, Ordering::Release);
        if late != 0 {
            let until = clock::now() + late;
            while clock::now() < until {
                std::hint::spin_loop();
            }
            self.stamp();
        }
        notify(process, mailbox, event);
    }

    fn stamp(&self) {
        if let Some((begin, end)) = self.times {
            guest::write(self.signal + signal::BEGIN, begin);
            guest::write(self.signal + signal::END, end);
        }
    }
}

/// Stores an event's id into its mailbox and sets the event, as the interrupt after a completion does.
pub(crate) fn notify(process: &Process, mailbox: u64, event: u32) {
    if mailbox != 0 {
        // Release: pairs with the driver's look at the mailbox page; nothing depends on it here.
        guest::atomic_u64(mailbox).store(event.into(), Ordering::Release);
        process.events.set(event);
    }
}
