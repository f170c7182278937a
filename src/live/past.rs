//! Reads the window on screen back from a recording, when the store has dropped its slices.
//!
//! A thread waits for windows. The youngest wish counts: reading ends when the window moves on. Memory is bounded, because a
//! window's slices go into a part of the store's own room.

use crate::decode::Decoder;
use crate::item::{Nanos, ProcessId, Span};
use crate::model::Store;
use crate::model::recall::{Past, Recall, Window};
use crate::raw::{Raw, RawSink, split};
use crate::recording::{History, Outcome, Written};
use crate::waker;
use anyhow::Result;
use roctop_ring::reader::Thread;
use roctop_ring::record::Slot;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The decoder of what the screen shows: what is read back gets the same numbers.
pub type SharedDecoder = Arc<Mutex<Decoder>>;

/// A window that is still moving is not worth reading.
const SETTLE_TIME: Duration = Duration::from_millis(60);
/// Records come some time after they end: reading keeps this far behind the writer.
const WRITER_LAG: Nanos = 1_000_000_000;
/// How long reading waits for the writer.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// Records that are decoded at once, about.
const PORTION_RECORDS: usize = 4096;

/// Takes wishes.
pub struct PastReader {
    wishes: Sender<Option<Window>>,
    /// Counts the wishes: reading for an older one ends.
    youngest: Arc<AtomicU64>,
}

impl PastReader {
    /// Starts to wait for wishes. Without `written` the recording is complete. The thread ends when this is dropped.
    pub fn start(
        history: History,
        written: Option<Arc<Written>>,
        decoder: SharedDecoder,
        store: Arc<Mutex<Store>>,
    ) -> Result<Self> {
        let (wishes, received) = channel();
        let youngest = Arc::new(AtomicU64::new(0));
        lock(&store).enable_recall();
        let reading = Reading {
            history,
            written,
            decoder,
            store,
            youngest: youngest.clone(),
        };
        std::thread::Builder::new()
            .name("past".into())
            .spawn(move || reading.run(&received))?;
        Ok(Self { wishes, youngest })
    }

    /// This window is wanted now; `None` if none is.
    pub fn wish(&self, window: Option<Window>) {
        self.youngest.fetch_add(1, Ordering::Relaxed);
        // A thread that ended by a fault reads nothing; averages stay.
        let _ = self.wishes.send(window);
    }
}

impl Drop for PastReader {
    fn drop(&mut self) {
        self.youngest.fetch_add(1, Ordering::Relaxed);
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Reading {
    history: History,
    written: Option<Arc<Written>>,
    decoder: SharedDecoder,
    store: Arc<Mutex<Store>>,
    youngest: Arc<AtomicU64>,
}

impl Reading {
    fn run(mut self, wishes: &Receiver<Option<Window>>) {
        // The screen and the store go first.
        let _ = rustix::process::nice(10);
        while let Ok(first) = wishes.recv() {
            let mut wish = first;
            while let Ok(later) = wishes.recv_timeout(SETTLE_TIME) {
                wish = later;
            }
            let number = self.youngest.load(Ordering::Relaxed);
            let Some(window) = wish else {
                self.stop_reading();
                continue;
            };
            self.report(Recall::Reading(window.span));
            match self.read(window, number) {
                Ok(Outcome::Whole | Outcome::Cancelled) => {}
                Ok(Outcome::Incomplete(gap)) => self.report(Recall::Failed(window.span, gap.to_string().into())),
                Err(error) => self.report(Recall::Failed(window.span, format!("{error:#}").into())),
            }
        }
    }

    fn report(&self, recall: Recall) {
        lock(&self.store).set_recall(recall);
        waker::wake();
    }

    /// Nothing is being read any more.
    fn stop_reading(&self) {
        let mut store = lock(&self.store);
        if matches!(store.recalled(), Recall::Reading(_)) {
            store.set_recall(Recall::Ready);
            drop(store);
            waker::wake();
        }
    }

    fn read(&mut self, window: Window, number: u64) -> Result<Outcome> {
        let youngest = self.youngest.clone();
        let is_cancelled = move || youngest.load(Ordering::Relaxed) != number;
        let Some(until) = self.until(&is_cancelled) else {
            return Ok(Outcome::Cancelled);
        };
        let (mut outcome, mut past) = self.read_span(with_margin(window, until), until, &is_cancelled)?;
        // Neither damage in the margin counts, nor slices for which there is no room.
        if matches!(outcome, Outcome::Incomplete(_)) || past.is_coarse() {
            let end = window.span.end.min(until);
            let span = Span { end, ..window.span };
            (outcome, past) = self.read_span(Window { span, ..window }, until, &is_cancelled)?;
        }
        if outcome == Outcome::Whole && !is_cancelled() {
            lock(&self.store).recall(past);
            waker::wake();
        }
        Ok(outcome)
    }

    fn read_span(&mut self, window: Window, until: Nanos, is_cancelled: &dyn Fn() -> bool) -> Result<(Outcome, Past)> {
        // The decoder first: the store then knows all that the decoder has named.
        let mut decoder = lock(&self.decoder).fork();
        let past = lock(&self.store).past(window, until);
        let clocks: BTreeMap<ProcessId, _> = decoder
            .clocks()
            .map(|(process, clock)| (process, clock.clone()))
            .collect();
        let mut feeder = Feeder {
            decoder: &mut decoder,
            past,
        };
        let outcome = self.history.read(window.span, &clocks, is_cancelled, &mut feeder)?;
        feeder.hand_over();
        Ok((outcome, feeder.past))
    }

    /// Until when the recording is complete; it has to have what the store has dropped. `None` if nobody wants it any more.
    fn until(&self, is_cancelled: &dyn Fn() -> bool) -> Option<Nanos> {
        let Some(written) = &self.written else {
            return Some(Nanos::MAX);
        };
        let asked = Instant::now();
        loop {
            let until = written.until().saturating_sub(WRITER_LAG);
            if until >= lock(&self.store).forgotten() || asked.elapsed() > MAX_WAIT {
                return Some(until);
            }
            if is_cancelled() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The window with half of it on either side, so that a small move needs no reading.
fn with_margin(window: Window, until: Nanos) -> Window {
    let margin = window.span.duration() / 2;
    Window {
        span: Span {
            begin: window.span.begin.saturating_sub(margin),
            end: window.span.end.saturating_add(margin).min(until),
        },
        ..window
    }
}

/// Decodes what was read, portion by portion.
struct Feeder<'a> {
    decoder: &'a mut Decoder,
    past: Past,
}

impl Feeder<'_> {
    fn hand_over(&mut self) {
        self.past.take(&self.decoder.decoded());
        self.decoder.clear();
    }
}

impl RawSink for Feeder<'_> {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.decoder.take(process, raw);
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        let mut rest = slots;
        while !rest.is_empty() {
            let (portion, later) = split(rest, PORTION_RECORDS);
            self.decoder.records(process, thread, portion);
            self.hand_over();
            rest = later;
        }
    }
}
