//! The background threads: one empties the rings, one makes something of what was in them.
//!
//! Drainer is a copy and no more, so that rings do not fill while the store or the disk is slow; it looks again sooner
//! the fuller the rings were. What waits between the two is bounded; beyond that the rings overwrite, and it is counted.

use super::past::SharedDecoder;
use super::schedule::{Schedule, Step};
use super::sites::{self, Naming, StackFiles};
use super::thread_times::{self, Threads};
use crate::ask::server::Asked;
use crate::clocks::{boottime, of_thread};
use crate::decode::Decoder;
use crate::gauge::metric::Sample;
use crate::item::{Exit, Health, Nanos, ProcessId};
use crate::keep::Keeper;
use crate::log;
use crate::model::Store;
use crate::model::trigger::Watch;
use crate::process::limits;
use crate::raw::{Batch, Raw, RawSink, Tee, split};
use crate::recording::Recorder;
use crate::session::{self, Live, SessionDir};
use crate::sysfs::reader::Reader as GaugeReader;
use crate::waker;
use anyhow::{Context, Result, anyhow};
use roctop_ring::reader::{Progress, Thread};
use roctop_ring::record::Slot;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Processes whose health is read.
const MAX_HEALTH_PROCESSES: usize = 64;
/// Slots of a full batch: 1 MiB, which is still in the processor's cache when it is decoded, in reused memory.
const BATCH_SLOTS: usize = 1 << 14;
/// Slots that the reader delivers at once, about: a batch may exceed its size by as many.
const MAX_DELIVERED_SLOTS: usize = 1 << 10;
/// Minimum time between two announcements of a drain to the other threads that read.
const ANNOUNCE_INTERVAL: Duration = Duration::from_millis(40);
/// Emptied batches that are kept for reuse.
const MAX_SPARE_BATCHES: usize = 8;

enum Message {
    Started(u32, u64),
    Exited(u32, Exit),
    Output(Vec<u8>),
    Missed(Option<String>),
    Stop,
}

/// Running background threads.
pub struct Ingest {
    sender: Sender<Message>,
    reader: JoinHandle<Result<()>>,
    gauges: Option<(Sender<()>, JoinHandle<()>)>,
    threads: JoinHandle<()>,
    sites: JoinHandle<()>,
    consumer: JoinHandle<Result<()>>,
    decoder: SharedDecoder,
    /// Nobody looks at the session any more.
    is_left: Arc<AtomicBool>,
}

/// How gauges are read: below which root, how often.
#[derive(Clone, Debug)]
pub struct Gauging {
    /// `/` on a real machine.
    pub root: PathBuf,
    /// Samples of GPUs that no driver knows, the demo's; none: the driver's files are read.
    pub synthetic: Option<fn(Nanos) -> Vec<Sample>>,
    /// Between two samples; none: no gauges.
    pub every: Option<Duration>,
}

/// Where the names of call paths go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symbols {
    /// To the screen, if there is one.
    #[default]
    Shown,
    /// To the recording, too: all of them.
    Recorded,
}

impl Gauging {
    /// No gauges.
    pub fn off() -> Self {
        Self {
            root: PathBuf::from("/"),
            synthetic: None,
            every: None,
        }
    }

    /// Samples at this rate per second; 0 for none.
    pub fn rate(per_second: f64) -> Self {
        let every = Duration::try_from_secs_f64(1.0 / per_second);
        Self {
            every: every.ok().filter(|_| per_second > 0.0),
            ..Self::off()
        }
    }
}

/// Reports to the ingest threads what happens to the program.
#[derive(Clone)]
pub struct IngestSender(Sender<Message>);

impl IngestSender {
    /// The program was started with this process id. To be called before its end is waited for: until then the kernel
    /// knows when it started, however short it lived.
    pub fn started(&self, pid: u32) {
        if let Some(start) = session::start_of(pid) {
            let _ = self.0.send(Message::Started(pid, start));
        }
    }

    /// The program with this process id ended.
    pub fn exited(&self, pid: u32, exit: Exit) {
        // A ingest that is gone needs no news.
        let _ = self.0.send(Message::Exited(pid, exit));
    }

    /// The report on programs that have no collector, which may be withdrawn.
    pub fn missed(&self, report: Option<String>) {
        let _ = self.0.send(Message::Missed(report));
    }

    /// The program wrote to its terminal.
    pub fn output(&self, bytes: Vec<u8>) {
        let _ = self.0.send(Message::Output(bytes));
    }
}

impl Ingest {
    /// Starts to read a session into `store` and, when there is one, `recorder`.
    pub fn start(
        live: Live,
        store: Option<Arc<Mutex<Store>>>,
        recorder: Option<Recorder>,
        gauging: &Gauging,
        symbols: Symbols,
    ) -> Result<Self> {
        Self::start_when_asked(live, store, recorder, gauging, symbols, None)
    }

    /// As [`Ingest::start`]. With `asked`, the store takes records from when that is set, and before only what names them.
    pub fn start_when_asked(
        live: Live,
        store: Option<Arc<Mutex<Store>>>,
        recorder: Option<Recorder>,
        gauging: &Gauging,
        symbols: Symbols,
        asked: Option<Asked>,
    ) -> Result<Self> {
        let output = Output { recorder, keeper: None };
        Self::start_into(live, store, output, gauging, symbols, asked)
    }

    /// The same with a flight recorder, which takes the place of a recording.
    pub fn start_keeping(
        live: Live,
        store: Option<Arc<Mutex<Store>>>,
        keeper: Keeper,
        gauging: &Gauging,
        symbols: Symbols,
        asked: Option<Asked>,
    ) -> Result<Self> {
        let output = Output {
            recorder: None,
            keeper: Some(keeper),
        };
        Self::start_into(live, store, output, gauging, symbols, asked)
    }

    fn start_into(
        live: Live,
        store: Option<Arc<Mutex<Store>>>,
        output: Output,
        gauging: &Gauging,
        symbols: Symbols,
        asked: Option<Asked>,
    ) -> Result<Self> {
        let naming = match (symbols, &store, &asked) {
            (Symbols::Recorded, ..) => Naming::Always,
            // A screen shows names, and so do answers.
            (Symbols::Shown, Some(_), None) => Naming::WhileRunning,
            (Symbols::Shown, Some(_), Some(_)) => Naming::WhenAsked,
            (Symbols::Shown, ..) => Naming::Never,
        };
        let (sender, messages) = channel();
        let (batches, received) = channel();
        let (spare, spares) = sync_channel(MAX_SPARE_BATCHES);
        let waiting = Arc::new(AtomicUsize::new(0));
        let pids = Pids::default();
        let origin = OriginNote {
            session: live.own_session(),
            noted: None,
        };
        let gauges = start_gauges(
            gauging,
            BatchSender {
                batches: batches.clone(),
                waiting: waiting.clone(),
            },
            pids.clone(),
        )?;
        let threads = Threads::default();
        let (to_threads, drains) = sync_channel(1);
        let thread_times = thread_times::start(
            threads.clone(),
            drains,
            BatchSender {
                batches: batches.clone(),
                waiting: waiting.clone(),
            },
            gauging.root.clone(),
        )?;
        let stack_files = StackFiles::default();
        let (to_sites, drains) = sync_channel(1);
        let sites = sites::start(
            stack_files.clone(),
            drains,
            (naming, asked.clone()),
            BatchSender {
                batches: batches.clone(),
                waiting: waiting.clone(),
            },
        )?;
        let is_left = Arc::new(AtomicBool::new(false));
        let drainer = Drainer {
            live,
            stack_files,
            threads,
            threads_shared: None,
            announced: None,
            announce_to: [to_threads, to_sites],
            filling: BatchFiller {
                batch: Batch::default(),
                sending: BatchSender {
                    batches,
                    waiting: waiting.clone(),
                },
                spares,
                is_over: false,
            },
            pids,
            is_shown: store.is_some() && asked.is_none(),
            is_recorded: output.recorder.is_some() || output.keeper.is_some(),
            is_left: is_left.clone(),
        };
        let decoder = Arc::new(Mutex::new(Decoder::by_kind()));
        let consumer = Consumer {
            is_left: is_left.clone(),
            decoder: decoder.clone(),
            output,
            store,
            asked,
            origin,
            spare,
            waiting,
        };
        let reader = std::thread::Builder::new()
            .name("reader".into())
            .spawn(move || drainer.run(&messages))?;
        let consumer = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || consumer.run(&received))?;
        Ok(Self {
            sender,
            reader,
            gauges,
            threads: thread_times,
            sites,
            consumer,
            decoder,
            is_left,
        })
    }

    /// The decoder, for records that are read back from the recording.
    pub fn decoder(&self) -> SharedDecoder {
        self.decoder.clone()
    }

    /// A handle for other threads.
    pub fn sender(&self) -> IngestSender {
        IngestSender(self.sender.clone())
    }

    /// Stops reading a session that goes on, and drops what was read and not yet counted. Never waits: the threads, which may be far
    /// behind, end by themselves.
    pub fn leave(self) {
        self.is_left.store(true, Ordering::Relaxed);
        let _ = self.sender.send(Message::Stop);
    }

    /// Reads what is left, finishes the recording and ends the threads.
    pub fn stop(self) -> Result<()> {
        let _ = self.sender.send(Message::Stop);
        let fault = || anyhow!("a background thread ended by a fault of roctop's own");
        if let Some((stop, thread)) = self.gauges {
            drop(stop);
            thread.join().map_err(|_| fault())?;
        }
        let read = self.reader.join().map_err(|_| fault())?;
        // They end after the reader, which announces drains to them and finds stack files until its end.
        for thread in [self.threads, self.sites] {
            thread.join().map_err(|_| fault())?;
        }
        let read = read.context("the program's records could not be read to the end");
        self.consumer.join().map_err(|_| fault())?.and(read)
    }
}

/// The process ids of the session so far.
type Pids = Arc<Mutex<Vec<u32>>>;

/// The way to the consumer thread.
pub(super) struct BatchSender {
    batches: Sender<Batch>,
    waiting: Arc<AtomicUsize>,
}

impl BatchSender {
    /// False when nobody takes it any more.
    pub(super) fn send(&self, batch: Batch) -> bool {
        self.waiting.fetch_add(batch.size(), Ordering::Relaxed);
        self.batches.send(batch).is_ok()
    }
}

/// Fills batches, and hands on each that is full.
struct BatchFiller {
    batch: Batch,
    sending: BatchSender,
    /// Batches that were digested, to be filled again.
    spares: Receiver<Batch>,
    /// Nobody takes them any more.
    is_over: bool,
}

impl BatchFiller {
    /// More is in the batch.
    fn kept(&mut self) {
        if self.batch.slots() >= BATCH_SLOTS {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        let next = self.spares.try_recv();
        let next = next.unwrap_or_else(|_| Batch::with_room(BATCH_SLOTS + MAX_DELIVERED_SLOTS));
        let full = std::mem::replace(&mut self.batch, next);
        self.is_over |= !self.sending.send(full);
    }
}

impl RawSink for BatchFiller {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.batch.take(process, raw);
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        self.batch.records(process, thread, slots);
        self.kept();
    }

    fn room(&mut self, slots: usize) -> Option<&mut [Slot]> {
        self.batch.room(slots)
    }

    fn keep(&mut self, process: ProcessId, thread: Thread, slots: usize) {
        self.batch.keep(process, thread, slots);
        self.kept();
    }
}

/// Starts to read gauges; none when there is no GPU or nobody wants them. It ends when its sender is dropped.
fn start_gauges(gauging: &Gauging, sending: BatchSender, pids: Pids) -> Result<Option<(Sender<()>, JoinHandle<()>)>> {
    let Some(every) = gauging.every else { return Ok(None) };
    let mut reader = GaugeReader::new(&gauging.root);
    let synthetic = gauging.synthetic;
    if reader.gpus() == 0 && synthetic.is_none() {
        return Ok(None);
    }
    let (stop, stopped) = channel();
    let thread = std::thread::Builder::new().name("gauges".into()).spawn(move || {
        loop {
            let known = pids.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let samples = match synthetic {
                Some(make) => make(boottime()),
                None => reader.read(boottime(), &known),
            };
            let mut batch = Batch::default();
            batch.take(ProcessId(0), &Raw::Gauges(&samples));
            let is_over = !sending.send(batch) || limits::is_processor_time_short();
            if is_over || stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    })?;
    Ok(Some((stop, thread)))
}

struct Drainer {
    live: Live,
    stack_files: StackFiles,
    threads: Threads,
    /// When the threads were shared last.
    threads_shared: Option<Instant>,
    /// When a drain was announced last.
    announced: Option<Instant>,
    /// Other threads that read when the rings are drained: they need no timers, and sleep while the program is idle.
    announce_to: [SyncSender<()>; 2],
    filling: BatchFiller,
    pids: Pids,
    is_shown: bool,
    is_recorded: bool,
    is_left: Arc<AtomicBool>,
}

impl Drainer {
    fn run(mut self, messages: &Receiver<Message>) -> Result<()> {
        // Rings overwrite while this thread waits for a core, so it goes first where that is allowed. It takes no more time
        // for that.
        let _ = rustix::process::nice(-10);
        let began = Instant::now();
        let mut schedule = Schedule::new(self.is_recorded, of_thread());
        let mut is_short = false;
        loop {
            if !is_short && limits::is_processor_time_short() {
                is_short = true;
                log::line(&limits::short_processor_time());
            }
            let received = if is_short {
                messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                messages.recv_timeout(schedule.pause())
            };
            let message = match received {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Message::Stop),
            };
            if message.is_none() && self.may_wait(schedule.step(began.elapsed()))? {
                continue;
            }
            schedule.drain_begins(began.elapsed(), of_thread());
            let now = boottime();
            let is_last = self.take_messages(message, messages, now)?;
            if self.is_left.load(Ordering::Relaxed) {
                return Ok(());
            }
            if is_short && !is_last {
                self.filling.hand_on();
                continue;
            }
            let progress = self.drain(now, is_last)?;
            if self.is_shown && schedule.takes_health() {
                let fills = self.live.fills().into_iter().take(MAX_HEALTH_PROCESSES);
                self.filling.batch.health = fills.map(health).collect();
            }
            self.share_pids();
            self.announce();
            self.filling.hand_on();
            if self.filling.is_over || is_last {
                return Ok(());
            }
            schedule.drain_ends(began.elapsed(), of_thread(), &progress);
        }
    }

    /// Whether the rings need no drain yet.
    fn may_wait(&mut self, step: Step) -> Result<bool> {
        match step {
            Step::Drain => Ok(false),
            Step::Check { files: true } if self.live.has_new_files() => Ok(false),
            Step::Check { .. } => Ok(Schedule::may_wait(self.live.fill()?)),
        }
    }

    /// Takes this message and all that wait: a program may write faster than rings are checked. True after the last one.
    fn take_messages(&mut self, first: Option<Message>, messages: &Receiver<Message>, now: Nanos) -> Result<bool> {
        let into = &mut self.filling;
        let mut next = first;
        while let Some(message) = next {
            match message {
                Message::Started(pid, start) => self.live.started(pid, start),
                Message::Exited(pid, exit) => self.live.exited(pid, exit, now, into)?,
                Message::Output(bytes) => into.take(ProcessId(0), &Raw::Output(&bytes)),
                Message::Missed(report) => into.batch.missed = Some(report.unwrap_or_default()),
                Message::Stop => return Ok(true),
            }
            next = messages.try_recv().ok();
        }
        Ok(false)
    }

    /// Reads what the rings hold; the last time until they are empty.
    fn drain(&mut self, now: Nanos, is_last: bool) -> Result<Progress> {
        let into = &mut self.filling;
        if Schedule::leaves_rings(into.sending.waiting.load(Ordering::Relaxed), is_last) {
            return Ok(Progress::default());
        }
        let mut progress = self.live.poll(now, into)?;
        if is_last {
            let mut drains = 1;
            while Schedule::drains_again(drains, &progress) {
                progress = self.live.poll(now, into)?;
                drains += 1;
            }
            self.live.end(now, into)?;
        }
        Ok(progress)
    }

    /// Announces a drain. A thread that is still busy with the last one misses it.
    fn announce(&mut self) {
        if self.announced.is_none_or(|at| at.elapsed() >= ANNOUNCE_INTERVAL) {
            self.announced = Some(Instant::now());
            for to in &self.announce_to {
                let _ = to.try_send(());
            }
        }
    }

    /// Shares the process ids with the thread that reads gauges, and thread ids with the one that reads their times.
    fn share_pids(&mut self) {
        const INTERVAL: Duration = Duration::from_millis(200);
        if self.threads_shared.is_none_or(|shared| shared.elapsed() >= INTERVAL) {
            self.threads_shared = Some(Instant::now());
            *self.threads.lock().unwrap_or_else(PoisonError::into_inner) = self.live.threads_alive();
        }
        let found = self.live.take_stack_files();
        let mut shared = self.stack_files.lock().unwrap_or_else(PoisonError::into_inner);
        shared.files.extend(found);
        if shared.alive != self.live.alive_processes() {
            shared.alive = self.live.alive_processes().to_vec();
        }
        drop(shared);
        let alive = self.live.pids_alive();
        let mut pids = self.pids.lock().unwrap_or_else(PoisonError::into_inner);
        if *pids != alive {
            *pids = alive;
        }
    }
}

/// What the system says of a process.
fn health((process, pid, fill): (ProcessId, u32, u32)) -> Health {
    let sizes = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok();
    let pages = sizes.and_then(|sizes| sizes.split(' ').nth(1)?.parse::<u64>().ok());
    Health {
        process,
        fill,
        resident: pages.map(|pages| pages * rustix::param::page_size() as u64),
    }
}

/// What takes the records unchanged: at most one of the two.
struct Output {
    recorder: Option<Recorder>,
    keeper: Option<Keeper>,
}

impl Output {
    /// What takes the records, and what checks conditions on them.
    fn parts(&mut self) -> (Option<&mut dyn RawSink>, Option<&mut Watch>) {
        if let Some(keeper) = &mut self.keeper {
            let (hold, watch) = keeper.parts();
            return (Some(hold), Some(watch));
        }
        let recorder = self.recorder.as_mut();
        (recorder.map(|recorder| recorder as &mut dyn RawSink), None)
    }

    /// Processes of which the flight recorder holds nothing any more.
    fn take_dropped(&mut self) -> Vec<ProcessId> {
        let keeper = self.keeper.as_mut();
        keeper.map_or_else(Vec::new, |keeper| {
            let (hold, watch) = keeper.parts();
            let dropped = hold.take_dropped();
            for process in &dropped {
                watch.forget(*process);
            }
            dropped
        })
    }

    fn finish(self) -> Result<()> {
        if let Some(keeper) = self.keeper {
            return keeper.finish();
        }
        self.recorder.map_or(Ok(()), |recorder| Ok(recorder.finish()?))
    }
}

struct Consumer {
    is_left: Arc<AtomicBool>,
    decoder: SharedDecoder,
    output: Output,
    store: Option<Arc<Mutex<Store>>>,
    /// Set by the first question, if records are counted from then on; none if they are always, or since that question.
    asked: Option<Asked>,
    origin: OriginNote,
    spare: SyncSender<Batch>,
    waiting: Arc<AtomicUsize>,
}

/// Notes for other viewers from when this one counts times.
struct OriginNote {
    /// Only the session's own roctop has read every record from the first.
    session: Option<SessionDir>,
    noted: Option<Nanos>,
}

impl OriginNote {
    fn note(&mut self, origin: Option<Nanos>) {
        if self.noted == origin {
            return;
        }
        self.noted = origin;
        if let (Some(session), Some(origin)) = (&self.session, origin) {
            // Without this word other viewers count from the oldest record that they find.
            let _ = session.note_origin(origin);
        }
    }
}

impl Consumer {
    fn run(mut self, batches: &Receiver<Batch>) -> Result<()> {
        let shared = self.decoder.clone();
        for mut batch in batches {
            if self.is_left.load(Ordering::Relaxed) {
                break;
            }
            // Nobody else wants it but a reader of the past, now and then.
            let mut decoder = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let begins = self.asked.take_if(|asked| asked.load(Ordering::Relaxed)).is_some();
            if let Some(store) = self.store.as_deref().filter(|_| begins) {
                store
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .count_from(boottime());
            }
            let counts = self.asked.is_none();
            let (recorder, watch) = self.output.parts();
            let mut feeder = (self.store.is_some() || watch.is_some()).then(|| Feeder {
                decoder: &mut decoder,
                needs_records: self.store.is_some() && counts
                    || watch.as_ref().is_some_and(|watch| watch.needs_records()),
                store: self.store.as_deref(),
                counts,
                watch,
            });
            match (recorder, &mut feeder) {
                (Some(recorder), Some(feeder)) => batch.deliver(&mut Tee(feeder, recorder)),
                (Some(recorder), None) => batch.deliver(recorder),
                (None, Some(feeder)) => batch.deliver(feeder),
                (None, None) => {}
            }
            self.waiting.fetch_sub(batch.size(), Ordering::Relaxed);
            if let Some(feeder) = &mut feeder {
                feeder.hand_over();
            }
            if let Some(store) = &self.store {
                let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
                if !batch.health.is_empty() {
                    store.health(&batch.health);
                }
                if let Some(report) = batch.missed.take() {
                    store.missed(Some(report).filter(|report| !report.is_empty()));
                }
                self.origin.note(store.origin());
                if store.is_new() {
                    waker::wake();
                }
            }
            decoder.clear();
            for process in self.output.take_dropped() {
                // A store that counts shows ended processes, too.
                if let Some(store) = self.store.as_deref().filter(|_| !counts) {
                    store.lock().unwrap_or_else(PoisonError::into_inner).forget(process);
                }
                decoder.forget(process);
            }
            drop(decoder);
            if let Some(keeper) = &mut self.output.keeper {
                keeper.act();
            }
            batch.clear();
            // What others send has no room to be filled. Of what a burst left only a few are kept.
            if batch.has_room() {
                let _ = self.spare.try_send(batch);
            }
        }
        self.output.finish()
    }
}

/// Decoded records that are handed to the store at once, about: few enough to be in the processor's cache still, and a
/// screen that wants the store waits for no more than these.
const PORTION_RECORDS: usize = 256;

/// Decodes, and hands the items to the store and to the conditions, portion by portion.
struct Feeder<'a> {
    decoder: &'a mut Decoder,
    store: Option<&'a Mutex<Store>>,
    /// The store takes records, not only what names them.
    counts: bool,
    watch: Option<&'a mut Watch>,
    /// Otherwise facts, readings and ends are enough, and decoding is spared.
    needs_records: bool,
}

impl Feeder<'_> {
    fn hand_over(&mut self) {
        if self.decoder.pending() > 0 {
            let decoded = self.decoder.decoded();
            if let Some(store) = self.store {
                let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
                if self.counts {
                    store.take(&decoded);
                } else {
                    store.apply_all(decoded.items.iter().filter(|item| item.span().is_none()));
                }
            }
            if let Some(watch) = &mut self.watch {
                watch.take(&decoded);
            }
            self.decoder.clear();
        }
    }
}

impl RawSink for Feeder<'_> {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.decoder.take(process, raw);
        if self.decoder.pending() >= PORTION_RECORDS {
            self.hand_over();
        }
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        let mut rest = if self.needs_records { slots } else { &[] };
        while !rest.is_empty() {
            let (portion, later) = split(rest, PORTION_RECORDS);
            self.decoder.records(process, thread, portion);
            if self.decoder.pending() >= PORTION_RECORDS {
                self.hand_over();
            }
            rest = later;
        }
    }
}
