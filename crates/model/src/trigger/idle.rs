//! Times in which a GPU runs neither kernel nor copy.

use roctop_trace::item::{Nanos, ProcessId, Span};
use std::collections::BTreeMap;

/// Records of work may arrive this long after its end, and of one queue after those of another.
const SETTLE_TIME: Nanos = 250_000_000;
/// Maximum number of spans that wait for their order.
const MAX_WAITING: usize = 4096;

/// What is known of one GPU.
#[derive(Debug, Default)]
struct Gpu {
    /// Spans of work, merged where the gaps between them are short, sorted by begin.
    waiting: Vec<Span>,
    /// End of the last work that is in order.
    last: Nanos,
    /// Work in flight at the last reading, by process.
    in_flight: BTreeMap<ProcessId, usize>,
    /// Polls since a reading without work in flight, and when that was read.
    calm: Option<(u32, Nanos)>,
    /// End of the work before the idle time that was reported while it went on.
    reported: Nanos,
}

/// Idle times longer than a limit: while they go on, or at their end if they end before they are noticed.
#[derive(Debug)]
pub(super) struct IdleTimes {
    limit: Nanos,
    gpus: BTreeMap<u32, Gpu>,
}

impl IdleTimes {
    pub(super) const fn new(limit: Nanos) -> Self {
        Self {
            limit,
            gpus: BTreeMap::new(),
        }
    }

    /// The GPU ran work.
    pub(super) fn worked(&mut self, gpu: u32, span: Span) {
        if span.end == 0 || span.end < span.begin {
            return;
        }
        let limit = self.limit;
        let gpu = self.gpus.entry(gpu).or_default();
        // A reading before this work shows nothing about the time after it.
        gpu.calm = gpu.calm.filter(|(_, at)| *at > span.end);
        let after = gpu.waiting.partition_point(|known| known.begin <= span.begin);
        match after.checked_sub(1).and_then(|at| gpu.waiting.get_mut(at)) {
            Some(before) if span.begin <= before.end.saturating_add(limit) => before.end = before.end.max(span.end),
            _ => gpu.waiting.insert(after, span),
        }
        if gpu.waiting.len() > MAX_WAITING {
            let oldest = gpu.waiting.remove(0);
            gpu.last = gpu.last.max(oldest.end);
        }
    }

    /// Work in flight of a process, by GPU; copies may be of any.
    pub(super) fn in_flight(&mut self, process: ProcessId, dispatches: &BTreeMap<u32, usize>, copies: u64, now: Nanos) {
        for (number, gpu) in &mut self.gpus {
            let count = dispatches.get(number).copied().unwrap_or(0) + copies as usize;
            gpu.in_flight.insert(process, count);
            if gpu.in_flight.values().any(|count| *count > 0) {
                gpu.calm = None;
            } else if gpu.calm.is_none() {
                gpu.calm = Some((0, now));
            }
        }
    }

    /// A process ended.
    pub(super) fn ended(&mut self, process: ProcessId) {
        for gpu in self.gpus.values_mut() {
            gpu.in_flight.remove(&process);
            if gpu.in_flight.is_empty() {
                // Nobody is left to work on it: the time after a program's end is no idle time.
                gpu.calm = None;
                gpu.waiting.clear();
                gpu.last = 0;
            }
        }
    }

    /// Idle times that became known at a poll: GPU and time from the end of its work to the begin of the next, or to now.
    pub(super) fn poll(&mut self, now: Nanos, found: &mut Vec<(u32, Span)>) {
        for (number, gpu) in &mut self.gpus {
            let settled = gpu
                .waiting
                .partition_point(|span| span.begin.saturating_add(SETTLE_TIME) <= now);
            for span in gpu.waiting.drain(..settled) {
                let is_long = gpu.last > 0 && span.begin > gpu.last.saturating_add(self.limit);
                if is_long && gpu.reported < gpu.last {
                    let (begin, end) = (gpu.last, span.begin);
                    found.push((*number, Span { begin, end }));
                    gpu.reported = gpu.last;
                }
                gpu.last = gpu.last.max(span.end);
            }
            let Some((polls, at)) = &mut gpu.calm else { continue };
            *polls += 1;
            // The poll after the reading has the records of all work that had completed before it.
            let is_known = *polls > 2 && gpu.waiting.is_empty() && gpu.last > 0 && *at >= gpu.last;
            let end = now.saturating_sub(SETTLE_TIME);
            if is_known && end > gpu.last.saturating_add(self.limit) && gpu.reported < gpu.last {
                found.push((
                    *number,
                    Span {
                        begin: gpu.last,
                        end: now,
                    },
                ));
                gpu.reported = gpu.last;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn span(begin: u64, end: u64) -> Span {
        Span {
            begin: begin * MS,
            end: end * MS,
        }
    }

    fn polled(idle: &mut IdleTimes, at: u64) -> Vec<(u32, Span)> {
        let mut found = Vec::new();
        idle.poll(at * MS, &mut found);
        found
    }

    fn open(idle: &mut IdleTimes, dispatches: usize, at: u64) {
        idle.in_flight(ProcessId(0), &BTreeMap::from([(0, dispatches)]), 0, at * MS);
    }

    #[test]
    fn a_gap_between_kernels_is_found_whatever_their_order() {
        let mut idle = IdleTimes::new(500 * MS);
        idle.worked(0, span(1000, 1100));
        idle.worked(0, span(1900, 1950));
        // A long kernel on another queue, read last, was running meanwhile.
        idle.worked(0, span(1050, 1500));
        assert!(polled(&mut idle, 3000).is_empty());
        idle.worked(0, span(3100, 3200));
        assert!(polled(&mut idle, 3250).is_empty(), "its time has not come");
        assert_eq!(polled(&mut idle, 3400), [(0, span(1950, 3100))]);
        assert!(polled(&mut idle, 3500).is_empty());
    }

    #[test]
    fn an_idle_time_is_reported_once_while_it_goes_on() {
        let mut idle = IdleTimes::new(500 * MS);
        idle.worked(0, span(1000, 1100));
        assert!(polled(&mut idle, 1400).is_empty());
        open(&mut idle, 1, 1500);
        for at in 15..40 {
            assert!(polled(&mut idle, at * 100).is_empty(), "a kernel is in flight");
        }
        open(&mut idle, 0, 4000);
        let found: Vec<_> = (40..50).flat_map(|at| polled(&mut idle, at * 100)).collect();
        assert_eq!(found, [(0, span(1100, 4200))]);
        // Readings between short kernels show no work in flight either.
        for at in 41..50 {
            idle.worked(0, span(at * 100, at * 100 + 1));
            open(&mut idle, 0, at * 100 + 50);
            assert!(polled(&mut idle, at * 100 + 99).is_empty());
        }
        open(&mut idle, 0, 5300);
        let found: Vec<_> = (53..60).flat_map(|at| polled(&mut idle, at * 100)).collect();
        assert_eq!(found, [(0, span(4901, 5700))]);
        idle.worked(0, span(6000, 6100));
        let found: Vec<_> = (60..65).flat_map(|at| polled(&mut idle, at * 100)).collect();
        assert!(found.is_empty(), "it was reported: {found:?}");
        idle.ended(ProcessId(0));
        let found: Vec<_> = (65..90).flat_map(|at| polled(&mut idle, at * 100)).collect();
        assert!(found.is_empty(), "the program has ended: {found:?}");
    }
}
