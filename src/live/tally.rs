//! Counts what passes a filter in the whole recording, when memory does not hold every launch and call.
//!
//! A thread waits for filters. The youngest counts: work for an older one ends.

use super::past::SharedDecoder;
use crate::decode::Decoder;
use crate::item::{Item, ProcessId};
use crate::model::Store;
use crate::model::tally::{Counting, State, Tally};
use crate::query::Filter;
use crate::raw::{RawSink, split};
use crate::recording::{Contents, Looking, Scan};
use crate::ui::tally::Plan;
use crate::waker;
use anyhow::Result;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A filter that is being typed is not worth counting.
const SETTLE_TIME: Duration = Duration::from_millis(60);
/// Slots that are decoded at once, about: what comes of them is in the processor's cache.
const PORTION_SLOTS: usize = 2048;

/// What was counted, and how much was read for it.
#[derive(Debug)]
pub struct Counted {
    /// What passes.
    pub tally: Tally,
    /// Blocks that were read.
    pub read: usize,
    /// Blocks of records in all.
    pub blocks: usize,
}

/// Counts what passes; `None` if it was cancelled. `decoder` has read all of the recording.
///
/// Errors: the recording cannot be read.
pub fn count(
    scan: &mut Scan,
    decoder: &Decoder,
    plan: &Plan,
    is_cancelled: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Option<Counted>> {
    let may = |process: ProcessId, contents: &Contents| {
        let Some(clock) = decoder.clock(process) else {
            return true;
        };
        let launches = clock.hsa_durations(contents.dispatch_durations());
        let calls = clock.tick_durations(contents.call_durations());
        let may_launch = |object| match decoder.kernels_of(process, object) {
            Some(mut kernels) => kernels.any(|kernel| plan.may_launch(kernel, launches)),
            None => true,
        };
        let copies = contents.copy_durations().map(|found| clock.hsa_durations(found));
        let by_calls = contents.call_copy_durations().map(|found| clock.tick_durations(found));
        let mut copies = copies.into_iter().chain(by_calls);
        contents.objects().any(may_launch)
            || copies.any(|durations| plan.may_copy(durations))
            || contents.operations().any(|(domain, op)| {
                let operation = decoder.operation_of(process, domain, op);
                operation.is_none_or(|operation| plan.may_call(operation, calls))
            })
    };
    let looking = Looking {
        may: &may,
        begin: &|| (decoder.fork(), Tally::default()),
        take: &|(decoder, tally), process, thread, slots| {
            let mut rest = slots;
            while !rest.is_empty() {
                let (portion, later) = split(rest, PORTION_SLOTS);
                decoder.records(process, thread, portion);
                let decoded = decoder.decoded();
                decoded
                    .dispatches
                    .iter()
                    .for_each(|dispatch| plan.launch(dispatch, tally));
                decoded.calls.iter().for_each(|call| plan.call(call, tally));
                for item in decoded.items {
                    if let Item::Copy(copy) = item {
                        plan.copy(copy, tally);
                    }
                }
                decoder.clear();
                rest = later;
            }
        },
        is_cancelled,
        progress,
    };
    let Some(seen) = scan.look(&looking)? else {
        return Ok(None);
    };
    let mut tally = Tally::default();
    for (_, of_thread) in seen.states {
        tally.merge(of_thread);
    }
    Ok(Some(Counted {
        tally,
        read: seen.read,
        blocks: seen.blocks,
    }))
}

/// Takes filters.
pub struct Counter {
    wishes: Sender<Option<String>>,
    /// Counts the wishes.
    youngest: Arc<AtomicU64>,
}

impl Counter {
    /// Starts to wait for filters. The thread ends when this is dropped.
    pub fn start(scan: Scan, decoder: SharedDecoder, store: Arc<Mutex<Store>>) -> Result<Self> {
        let (wishes, received) = channel();
        let youngest = Arc::new(AtomicU64::new(0));
        let counting = Thread {
            scan,
            decoder,
            store,
            youngest: youngest.clone(),
        };
        std::thread::Builder::new()
            .name("tally".into())
            .spawn(move || counting.run(&received))?;
        Ok(Self { wishes, youngest })
    }

    /// What passes this filter is to be counted; `None`: nothing is.
    pub fn wish(&self, filter: Option<String>) {
        self.youngest.fetch_add(1, Ordering::Relaxed);
        // A thread that ended by a fault counts nothing; estimates stay.
        let _ = self.wishes.send(filter);
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.youngest.fetch_add(1, Ordering::Relaxed);
    }
}

struct Thread {
    scan: Scan,
    decoder: SharedDecoder,
    store: Arc<Mutex<Store>>,
    youngest: Arc<AtomicU64>,
}

impl Thread {
    fn run(mut self, wishes: &Receiver<Option<String>>) {
        while let Ok(first) = wishes.recv() {
            let mut wish = first;
            while let Ok(later) = wishes.recv_timeout(SETTLE_TIME) {
                wish = later;
            }
            let number = self.youngest.load(Ordering::Relaxed);
            let counting = wish.and_then(|source| {
                let state = match self.count(&source, number) {
                    Ok(counted) => State::Done(counted?),
                    Err(error) => State::Failed(format!("{error:#}").into()),
                };
                Some(Counting { filter: source, state })
            });
            report(&self.store, counting);
        }
    }

    fn count(&mut self, source: &str, number: u64) -> Result<Option<Tally>> {
        let Ok(filter) = Filter::parse(source) else {
            return Ok(None);
        };
        let snapshot = lock(&self.store).glance();
        let plan = Plan::new(snapshot, &filter);
        let decoder = lock(&self.decoder).fork();
        let (youngest, store, shown) = (self.youngest.clone(), self.store.clone(), AtomicU8::new(u8::MAX));
        let progress = |done: usize, all: usize| {
            let percent = (done * 100).checked_div(all).unwrap_or(100).min(99) as u8;
            if shown.swap(percent, Ordering::Relaxed) != percent {
                let filter = source.to_owned();
                let state = State::Running(percent);
                report(&store, Some(Counting { filter, state }));
            }
        };
        progress(0, 1);
        let is_cancelled = || youngest.load(Ordering::Relaxed) != number;
        let counted = count(&mut self.scan, &decoder, &plan, &is_cancelled, &progress)?;
        Ok(counted.map(|counted| counted.tally))
    }
}

fn report(store: &Mutex<Store>, counting: Option<Counting>) {
    lock(store).set_counting(counting);
    waker::wake();
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
