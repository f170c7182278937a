//! Finished work of an engine that is not published yet: log lines, and signals to complete.
//!
//! Lines are written before the signals change, so the log contains all work whose completion the host can have seen.
//! Publishing in batches costs one `write` for many completions.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;

use crate::fault::{Cacheable, Fate, Faults, Wrong};
use crate::memory::Buffer;
use crate::model::model;
use crate::process::Process;
use crate::truth_log::Line;
use crate::{clock, guest};

/// Maximum number of completions per batch.
const BATCH: usize = 64;
/// Delay of a late signal, ns.
const LATE_NS: u64 = 5_000_000;

/// A late signal that changes later than it is due by this much, ns, is logged: this thread got no CPU.
const OVERDUE_NS: u64 = 5_000_000;

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
    /// Begin and end in ticks, if requested.
    times: Option<[u64; 2]>,
}

/// The batch of one engine.
pub(crate) struct Outbox {
    process: &'static Process,
    lines: Vec<u8>,
    completions: Vec<Completion>,
    /// Completions that the host sees later, with their times.
    held: VecDeque<(u64, Completion)>,
    /// Faults of signals.
    pub(crate) faults: &'static Faults,
    /// Times of each signal's last completion; kept if some must be stale.
    last: HashMap<u64, [u64; 2]>,
}

impl Outbox {
    pub(crate) fn new(process: &'static Process) -> Self {
        Self {
            process,
            lines: Vec::with_capacity(1 << 16),
            completions: Vec::with_capacity(BATCH),
            held: VecDeque::new(),
            faults: &model().faults,
            last: HashMap::new(),
        }
    }

    /// Adds finished work to the log.
    pub(crate) fn log(&mut self, line: &Line<'_>) {
        if let Some(log) = &self.process.log {
            clock::refresh(line.end);
            log.format(line, &mut self.lines);
        }
    }

    /// Adds a signal that finished work completes, with its times or wrong ones.
    pub(crate) fn complete(&mut self, signal: u64, begin: u64, end: u64, wrong: Option<Wrong>) {
        let mut times = [self.faults.stamp(begin), self.faults.stamp(end)];
        if let Some(wrong) = wrong {
            times = wrong.of(times, self.last.get(&signal).copied());
        }
        if self.faults.has_stale_times() {
            self.last.insert(signal, times);
        }
        self.push(signal, Some(times));
    }

    /// As `complete`, without times.
    pub(crate) fn complete_untimed(&mut self, signal: u64) {
        self.push(signal, None);
    }

    fn push(&mut self, signal: u64, times: Option<[u64; 2]>) {
        if signal == 0 {
            return;
        }
        let completion = Completion { signal, times };
        match self.fate(signal) {
            Fate::Lost => {}
            Fate::Late => self.held.push_back((clock::now() + LATE_NS, completion)),
            Fate::Seen => self.completions.push(completion),
        }
        if self.completions.len() == BATCH {
            self.flush();
        }
    }

    /// Outcome of a signal; logged if unusual.
    fn fate(&mut self, signal: u64) -> Fate {
        let mut fate = self.faults.fate(&self.process.memory, signal);
        match fate {
            Fate::Seen => {}
            Fate::Late => self.log_signal("late", signal, clock::now(), None),
            Fate::Lost => self.log_signal("lost", signal, clock::now(), None),
        }
        if let Some(buffer) = self.process.memory.cacheable(signal) {
            self.log_signal("cacheable", signal, clock::now(), Some(buffer));
            fate = fate.max(match self.faults.cacheable {
                Cacheable::Seen => Fate::Seen,
                Cacheable::Late => Fate::Late,
                Cacheable::Never => Fate::Lost,
            });
        }
        fate
    }

    fn log_signal(&mut self, kind: &'static str, signal: u64, begin: u64, buffer: Option<Buffer>) {
        self.log(&Line {
            kind,
            signal,
            begin,
            end: clock::now(),
            bytes: buffer.map_or(0, |buffer| buffer.size),
            source: buffer.map_or(0, |buffer| buffer.address),
            name: &buffer.map_or(String::new(), |buffer| format!("{:#x}", buffer.flags)),
            ..Line::default()
        });
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
            completion.publish(self.process, self.faults.times_late_ns);
        }
        while let Some((due, completion)) = self.held.pop_front_if(|(due, _)| *due <= clock::now()) {
            if clock::now() > due + OVERDUE_NS {
                self.log_signal("overdue", completion.signal, due, None);
            }
            completion.publish(self.process, self.faults.times_late_ns);
        }
    }
}

impl Completion {
    fn publish(&self, process: &Process, late: u64) {
        // The host may free the signal as soon as it sees the value, so everything else comes first.
        let mailbox: u64 = guest::read(self.signal + signal::MAILBOX);
        let event: u32 = guest::read(self.signal + signal::EVENT);
        if late == 0 {
            self.stamp();
        }
        // Release: pairs with the host's acquire load of the value; publishes timestamps and the work's results.
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
        if let Some([begin, end]) = self.times {
            guest::write(self.signal + signal::BEGIN, begin);
            guest::write(self.signal + signal::END, end);
        }
    }
}

/// Stores an event's id into its mailbox and sets the event, as the interrupt after a completion does.
pub(crate) fn notify(process: &Process, mailbox: u64, event: u32) {
    if mailbox != 0 {
        // Release: pairs with the driver's read of the mailbox page; nothing depends on it here.
        guest::atomic_u64(mailbox).store(event.into(), Ordering::Release);
        process.events.set(event);
    }
}
