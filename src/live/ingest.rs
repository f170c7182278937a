//! The background threads: one empties the rings, one makes something of what was in them.
//!
//! Emptying is a copy and no more, so that rings do not fill while the store or the disk is slow; it looks again sooner
//! the fuller the rings were. What waits between the two is bounded; beyond that the rings overwrite, and it is counted.

use crate::clocks::{boottime, of_thread};
use crate::decode::Decoder;
use crate::item::{Exit, Health, ProcessId};
use crate::model::Store;
use crate::raw::{Batch, Raw, RawSink, Tee, split};
use crate::recording::Recorder;
use crate::session::{self, Live};
use crate::sysfs::reader::Reader as GaugeReader;
use crate::waker;
use anyhow::{Context, Result, anyhow};
use roctop_ring::reader::{Progress, Thread};
use roctop_ring::record::Slot;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The soonest next look.
const FASTEST: Duration = Duration::from_millis(1);
/// The usual time between looks while something happens: a thread that begins to call without a pause fills its ring in
/// twice this time.
const USUAL: Duration = Duration::from_millis(2);
/// Where a look costs more, with many processes, it comes later, but not later than this.
const USUAL_AT_MOST: Duration = Duration::from_millis(4);
/// The time between looks is so many times the processor time that a look takes, with the waking up and lying down around it,
/// and more when nothing has happened for two seconds.
const LOOKING: u32 = 200;
const LOOKING_IDLE: u32 = 500;
/// Files that come are no reason to empty rings anew before so many times as long has passed as that took: programs that fork
/// without end make files without end.
const EMPTYING: u32 = 20;
/// Rings that are nearly empty are left alone for so long: emptying costs more than looking, and what is known of kernels and
/// lanes is fetched to the processor once for more records. Screens move ten times a second.
const GATHERING: Duration = Duration::from_millis(50);
/// Nearly empty, in 1/1000 of the fullest ring.
const NEARLY_EMPTY: u32 = 60;
/// The same when nothing has happened for two seconds.
const IDLE: Duration = Duration::from_millis(200);
/// The time between looks then: the program may begin again at any time. A recording is to have every record, so it takes
/// the time between looks as usual.
const IDLE_LOOK: Duration = Duration::from_millis(3);
const IDLE_LOOK_AT_MOST: Duration = Duration::from_millis(32);
/// How often it is asked how processes do, also when nothing has happened for two seconds, and of how many.
const HEALTH: Duration = Duration::from_millis(500);
const HEALTH_IDLE: Duration = Duration::from_secs(1);
const MOST_HEALTHS: usize = 64;
const IDLE_AFTER: Duration = Duration::from_secs(2);
/// Bytes that may wait between the two threads before rings are left as they are. What the last poll took comes on top: 32 MiB
/// of a file at most. A burst of many threads fills their rings faster than it is compressed.
const WAITING: usize = 256 << 20;
/// How often rings are read once more when the reading ends, while they are not empty: one poll takes 32 MiB of a file.
const POLLS_AT_STOP: usize = 64;
/// Slots with which a batch is handed on: 1 MiB, which lies near the processors still, in room that is used again.
const FULL: usize = 1 << 14;
/// Slots that are delivered at once, about: a batch may have so many more.
const MOST_AT_ONCE: usize = 1 << 10;
/// Batches that lie ready to be filled again.
const SPARES: usize = 8;

enum Message {
    Started(u32, u64),
    Exited(u32, Exit),
    Output(Vec<u8>),
    Missed(Option<String>),
    Stop,
}

/// Running background threads.
pub struct Pump {
    sender: Sender<Message>,
    reader: JoinHandle<Result<()>>,
    gauges: Option<(Sender<()>, JoinHandle<()>)>,
    digester: JoinHandle<Result<()>>,
}

/// How gauges are read: below which root, how often.
#[derive(Clone, Debug)]
pub struct Gauging {
    /// `/` on a real machine.
    pub root: PathBuf,
    /// Between two samples; none: no gauges.
    pub every: Option<Duration>,
}

impl Gauging {
    /// No gauges.
    pub fn off() -> Self {
        Self {
            root: PathBuf::from("/"),
            every: None,
        }
    }

    /// So many samples a second; 0 for none.
    pub fn rate(per_second: f64) -> Self {
        let every = Duration::try_from_secs_f64(1.0 / per_second);
        Self {
            every: every.ok().filter(|_| per_second > 0.0),
            ..Self::off()
        }
    }
}

/// Tells a pump what happens to the program.
#[derive(Clone)]
pub struct PumpSender(Sender<Message>);

impl PumpSender {
    /// The program was started with this process id. To be called before its end is waited for: until then the kernel
    /// knows when it started, however short it lived.
    pub fn started(&self, pid: u32) {
        if let Some(start) = session::start_of(pid) {
            let _ = self.0.send(Message::Started(pid, start));
        }
    }

    /// The program with this process id ended.
    pub fn exited(&self, pid: u32, exit: Exit) {
        // A pump that is gone needs no news.
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

impl Pump {
    /// Starts to read a session into `store` and, when there is one, `recorder`.
    pub fn start(
        live: Live,
        store: Option<Arc<Mutex<Store>>>,
        recorder: Option<Recorder>,
        gauging: &Gauging,
    ) -> Result<Self> {
        let (sender, messages) = channel();
        let (batches, received) = channel();
        let (spare, spares) = sync_channel(SPARES);
        let waiting = Arc::new(AtomicUsize::new(0));
        let pids = Pids::default();
        let gauges = start_gauges(
            gauging,
            Sending {
                batches: batches.clone(),
                waiting: waiting.clone(),
            },
            pids.clone(),
        )?;
        let emptying = Emptying {
            live,
            filling: Filling {
                batch: Batch::default(),
                sending: Sending {
                    batches,
                    waiting: waiting.clone(),
                },
                spares,
                is_over: false,
            },
            pids,
            is_shown: store.is_some(),
            is_recorded: recorder.is_some(),
        };
        let digesting = Digesting {
            decoder: Decoder::by_kind(),
            recorder,
            store,
            spare,
            waiting,
        };
        let reader = std::thread::Builder::new()
            .name("reader".into())
            .spawn(move || emptying.run(&messages))?;
        let digester = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || digesting.run(&received))?;
        Ok(Self {
            sender,
            reader,
            gauges,
            digester,
        })
    }

    /// A handle for other threads.
    pub fn sender(&self) -> PumpSender {
        PumpSender(self.sender.clone())
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
        let read = read.context("the program's records could not be read to the end");
        self.digester.join().map_err(|_| fault())?.and(read)
    }
}

/// The process ids of the session so far.
type Pids = Arc<Mutex<Vec<u32>>>;

/// The way to the digesting thread.
struct Sending {
    batches: Sender<Batch>,
    waiting: Arc<AtomicUsize>,
}

impl Sending {
    /// False when nobody takes it any more.
    fn send(&self, batch: Batch) -> bool {
        self.waiting.fetch_add(batch.size(), Ordering::Relaxed);
        self.batches.send(batch).is_ok()
    }
}

/// Fills batches, and hands on each that is full.
struct Filling {
    batch: Batch,
    sending: Sending,
    /// Batches that were digested, to be filled again.
    spares: Receiver<Batch>,
    /// Nobody takes them any more.
    is_over: bool,
}

impl Filling {
    /// More is in the batch.
    fn kept(&mut self) {
        if self.batch.slots() >= FULL {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        let next = self.spares.try_recv();
        let next = next.unwrap_or_else(|_| Batch::with_room(FULL + MOST_AT_ONCE));
        let full = std::mem::replace(&mut self.batch, next);
        self.is_over |= !self.sending.send(full);
    }
}

impl RawSink for Filling {
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
fn start_gauges(gauging: &Gauging, sending: Sending, pids: Pids) -> Result<Option<(Sender<()>, JoinHandle<()>)>> {
    let Some(every) = gauging.every else { return Ok(None) };
    let mut reader = GaugeReader::new(&gauging.root);
    if reader.gpus() == 0 {
        return Ok(None);
    }
    let (stop, stopped) = channel();
    let thread = std::thread::Builder::new().name("gauges".into()).spawn(move || {
        loop {
            let known = pids.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let samples = reader.read(boottime(), &known);
            let mut batch = Batch::default();
            batch.take(ProcessId(0), &Raw::Gauges(&samples));
            if !sending.send(batch) || stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    })?;
    Ok(Some((stop, thread)))
}

struct Emptying {
    live: Live,
    filling: Filling,
    pids: Pids,
    is_shown: bool,
    is_recorded: bool,
}

impl Emptying {
    fn run(mut self, messages: &Receiver<Message>) -> Result<()> {
        // Rings overwrite while this thread waits for a core, so it goes first where that is allowed. It takes no more time
        // for that.
        let _ = rustix::process::nice(-10);
        let mut pause = USUAL;
        // How long rings that are nearly empty are left alone; none when they are filling.
        let mut gathering = Some(USUAL);
        let mut emptying = Duration::ZERO;
        let mut looks = Looks::begin();
        let mut busy_at = Instant::now();
        let mut emptied_at = Instant::now();
        let mut asked_at = None;
        loop {
            let message = match messages.recv_timeout(pause) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Message::Stop),
            };
            if message.is_none() && gathering.is_some_and(|gathering| emptied_at.elapsed() < gathering) {
                // A system call on a processor that slept costs more than what it does: files may come a look later.
                let is_skipped = gathering == Some(IDLE) && looks.count % 2 == 1;
                let is_early = is_skipped || emptied_at.elapsed() < emptying * EMPTYING;
                let is_left = (is_early || !self.live.has_new_files()) && self.live.fill()? < NEARLY_EMPTY;
                looks.count += 1;
                if is_left {
                    continue;
                }
            }
            looks.measure();
            emptied_at = Instant::now();
            let now = boottime();
            let into = &mut self.filling;
            let mut stop = false;
            // All that waits: a program may write faster than rings are looked at.
            let mut next = message;
            while let Some(message) = next {
                match message {
                    Message::Started(pid, start) => self.live.started(pid, start),
                    Message::Exited(pid, exit) => self.live.exited(pid, exit, now, into)?,
                    Message::Output(bytes) => into.take(ProcessId(0), &Raw::Output(&bytes)),
                    Message::Missed(report) => into.batch.missed = Some(report.unwrap_or_default()),
                    Message::Stop => stop = true,
                }
                next = messages.try_recv().ok().filter(|_| !stop);
            }
            let is_full = into.sending.waiting.load(Ordering::Relaxed) > WAITING && !stop;
            let mut progress = if is_full {
                Progress::default()
            } else {
                self.live.poll(now, into)?
            };
            if stop {
                // All that lay there; a program that goes on is not followed for ever.
                for _ in 0..POLLS_AT_STOP {
                    if progress.more {
                        progress = self.live.poll(now, into)?;
                    }
                }
                self.live.settle(now, into)?;
            }
            let asking = if gathering == Some(IDLE) { HEALTH_IDLE } else { HEALTH };
            if self.is_shown && asked_at.is_none_or(|at: Instant| at.elapsed() >= asking) {
                asked_at = Some(emptied_at);
                into.batch.health = self.live.fills().into_iter().take(MOST_HEALTHS).map(health).collect();
            }
            let alive = self.live.pids_alive();
            let mut pids = self.pids.lock().unwrap_or_else(PoisonError::into_inner);
            if *pids != alive {
                *pids = alive;
            }
            drop(pids);
            self.filling.hand_on();
            emptying = emptied_at.elapsed();
            looks.again();
            if self.filling.is_over || stop {
                return Ok(());
            }
            if progress.records > 0 {
                busy_at = Instant::now();
            }
            (pause, gathering) = match progress.fill {
                _ if progress.more => (Duration::ZERO, None),
                0 if busy_at.elapsed() > IDLE_AFTER => {
                    let at_most = if self.is_recorded {
                        USUAL_AT_MOST
                    } else {
                        IDLE_LOOK_AT_MOST
                    };
                    ((looks.one * LOOKING_IDLE).clamp(IDLE_LOOK, at_most), Some(IDLE))
                }
                0..NEARLY_EMPTY => ((looks.one * LOOKING).clamp(USUAL, USUAL_AT_MOST), Some(GATHERING)),
                _ => (FASTEST, None),
            };
        }
    }
}

/// What looks at rings take: measured over those between two times that rings are emptied.
struct Looks {
    /// One of them, with the waking up and lying down around it.
    one: Duration,
    /// So many since rings were emptied.
    count: u32,
    /// Processor time of the thread then.
    before: Duration,
}

impl Looks {
    fn begin() -> Self {
        Self {
            one: Duration::ZERO,
            count: 0,
            before: of_thread(),
        }
    }

    /// Rings are to be emptied.
    fn measure(&mut self) {
        if self.count > 0 {
            let mean = of_thread().saturating_sub(self.before) / self.count;
            self.one = (self.one + mean) / 2;
        }
    }

    /// Rings were emptied.
    fn again(&mut self) {
        (self.before, self.count) = (of_thread(), 0);
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

struct Digesting {
    decoder: Decoder,
    recorder: Option<Recorder>,
    store: Option<Arc<Mutex<Store>>>,
    spare: SyncSender<Batch>,
    waiting: Arc<AtomicUsize>,
}

impl Digesting {
    fn run(mut self, batches: &Receiver<Batch>) -> Result<()> {
        for mut batch in batches {
            let mut feeding = self.store.as_deref().map(|store| Feeding {
                decoder: &mut self.decoder,
                store,
            });
            match (&mut self.recorder, &mut feeding) {
                (Some(recorder), Some(feeding)) => batch.deliver(&mut Tee(feeding, recorder)),
                (Some(recorder), None) => batch.deliver(recorder),
                (None, Some(feeding)) => batch.deliver(feeding),
                (None, None) => {}
            }
            self.waiting.fetch_sub(batch.size(), Ordering::Relaxed);
            if let Some(mut feeding) = feeding {
                feeding.hand_over();
                let mut store = feeding.store.lock().unwrap_or_else(PoisonError::into_inner);
                if !batch.health.is_empty() {
                    store.health(&batch.health);
                }
                if let Some(report) = batch.missed.take() {
                    store.missed(Some(report).filter(|report| !report.is_empty()));
                }
                if store.is_new() {
                    waker::wake();
                }
            }
            self.decoder.clear();
            batch.clear();
            // What others send has no room to be filled. Of what a burst left only a few are kept.
            if batch.has_room() {
                let _ = self.spare.try_send(batch);
            }
        }
        self.recorder.map_or(Ok(()), Recorder::finish)
    }
}

/// Decoded records that are handed to the store at once, about: few enough to be in the processor's cache still, and a
/// screen that wants the store waits for no more than these.
const PORTION: usize = 256;

/// Decodes and hands what comes of it to the store, portion by portion.
struct Feeding<'a> {
    decoder: &'a mut Decoder,
    store: &'a Mutex<Store>,
}

impl Feeding<'_> {
    fn hand_over(&mut self) {
        if self.decoder.pending() > 0 {
            let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
            store.take(&self.decoder.decoded());
            self.decoder.clear();
        }
    }
}

impl RawSink for Feeding<'_> {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.decoder.take(process, raw);
        if self.decoder.pending() >= PORTION {
            self.hand_over();
        }
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        let mut rest = slots;
        while !rest.is_empty() {
            let (portion, later) = split(rest, PORTION);
            self.decoder.records(process, thread, portion);
            if self.decoder.pending() >= PORTION {
                self.hand_over();
            }
            rest = later;
        }
    }
}
