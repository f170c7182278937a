//! The GPU of the demo: its queues, and the thread that records work when its time has come.

use super::counters::Counters;
use super::samples::Samples;
use super::workload::kernel_of;
use roctop_collector::clock::boottime as now;
use roctop_collector::collector::{copy, dispatch};
use roctop_collector::process::Process;
use roctop_ring::layout::queue;
use roctop_ring::record::{Copy, Dispatch};
use roctop_ring::sync::Ordering;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Work that the modelled GPU will have done at some time.
pub(super) enum Work {
    Kernel(Dispatch),
    Copy(Copy),
}

impl Work {
    fn end(&self) -> u64 {
        match self {
            Self::Kernel(record) => record.end,
            Self::Copy(record) => record.end,
        }
    }
}

/// Orders work by its end.
struct Ending(u64, u64, Work);

impl PartialEq for Ending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ending {}

impl PartialOrd for Ending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Records what is done, when it is done.
pub(super) fn complete(process: &'static Process, work: &Receiver<Work>) {
    let mut open: BinaryHeap<Reverse<Ending>> = BinaryHeap::new();
    let mut number = 0;
    let mut calibrated = now();
    let mut counters = Counters::begin(process, calibrated);
    let mut samples = Samples::begin();
    loop {
        let wait = open
            .peek()
            .map_or(50_000_000, |next| next.0.0.saturating_sub(now()))
            .clamp(100_000, 50_000_000);
        match work.recv_timeout(Duration::from_nanos(wait)) {
            Ok(work) => {
                number += 1;
                submitted(process, &work);
                open.push(Reverse(Ending(work.end(), number, work)));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while open.peek().is_some_and(|next| next.0.0 <= now()) {
            if let Some(Reverse(Ending(_, _, done))) = open.pop() {
                finish(process, &done);
                if let (Some(counters), Work::Kernel(record)) = (&mut counters, &done) {
                    counters.count(record, kernel_of(record.kernel_object));
                }
                if let (Some(samples), Work::Kernel(record)) = (&mut samples, &done) {
                    samples.take(record);
                }
            }
        }
        if let Some(counters) = &mut counters {
            counters.read_when_due(process, now());
        }
        if now() - calibrated > 2_000_000_000 {
            calibrated = now();
            process.calibrate();
        }
    }
}

fn submitted(process: &Process, work: &Work) {
    let Work::Kernel(record) = work else { return };
    let Some(words) = process.main().and_then(|file| file.queue(record.queue as usize - 1)) else {
        return;
    };
    let [id, submitted, ..] = words else { return };
    id.store(u64::from(record.queue), Ordering::Relaxed);
    let at = queue::HEADER + (record.dispatch_id as usize % queue::SLOTS) * queue::SLOT_WORDS;
    if let Some([time, kernel, correlation, number]) = words.get(at..at + queue::SLOT_WORDS) {
        kernel.store(record.kernel_object, Ordering::Relaxed);
        correlation.store(record.correlation, Ordering::Relaxed);
        number.store(record.dispatch_id, Ordering::Relaxed);
        time.store(record.submit, Ordering::Release);
    }
    submitted.fetch_add(1, Ordering::Relaxed);
}

fn finish(process: &Process, work: &Work) {
    match work {
        Work::Kernel(record) => {
            dispatch(record, 0);
            let Some(words) = process.main().and_then(|file| file.queue(record.queue as usize - 1)) else {
                return;
            };
            let at = queue::HEADER + (record.dispatch_id as usize % queue::SLOTS) * queue::SLOT_WORDS;
            if let Some(time) = words.get(at) {
                time.store(0, Ordering::Release);
            }
            if let Some(completed) = words.get(queue::COMPLETED) {
                completed.fetch_add(1, Ordering::Relaxed);
            }
        }
        Work::Copy(record) => copy(record, 0),
    }
}
