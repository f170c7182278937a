//! The rings of a session: the files that appear in it, one poll over all of them, and what a process left behind.

use super::clearing::Clearing;
use super::{open_ring, orphans};
use roctop_ring::flight::Left;
use roctop_ring::layout::{Header, MAJOR, MINOR, clock, counter, entry};
use roctop_ring::reader::{Ended, Progress, Reader, Sink, Thread};
use roctop_ring::record::{Head, Slot};
use roctop_ring::session::RING;
use roctop_trace::item::{Exit, Nanos, ProcessId};
use roctop_trace::raw::{Raw, RawSink};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How often counters and open work are read.
const STATE_INTERVAL: Duration = Duration::from_millis(400);
/// The same when somebody looks on.
const STATE_INTERVAL_WATCHED: Duration = Duration::from_millis(100);
/// Nobody is in a hurry when nothing was recorded for so long, and then it is this.
const QUIET_AFTER: Duration = Duration::from_secs(2);
const STATE_INTERVAL_QUIET: Duration = Duration::from_secs(1);
/// With more processes than these it costs too much to look so often.
const MAX_WATCHED: usize = 8;
/// A step of the clock by which directories change takes less.
const STEP: Duration = Duration::from_millis(20);
/// How often it is looked whether a writer is still there.
const PROBE: Duration = Duration::from_millis(100);

/// Reads all rings of a session.
pub struct Live {
    path: PathBuf,
    /// The directory at that path: what changes there is asked without going along the path.
    directory: Option<File>,
    files: Vec<Source>,
    known: HashSet<String>,
    /// When the directory had last changed when its files were looked through; none when it may have changed since.
    listed: Option<SystemTime>,
    processes: Vec<Known>,
    /// When counters and open work were read last.
    slow_at: Option<Instant>,
    /// When records or files came last.
    heard: Instant,
    probe_at: Option<Instant>,
    is_late: bool,
    is_watched: bool,
    /// Only for whoever the session belongs to.
    clearing: Option<Clearing>,
    /// The program that was started: its process id, and when it started, in ticks of the kernel.
    started: Option<(u32, u64)>,
}

struct Known {
    pid: u32,
    start_ticks: u64,
    /// What the names of all its files begin with.
    stem: String,
    /// Dispatches that were found complete after its end.
    left: HashSet<u64>,
    /// Its rings' newest dispatches at its end: recorded, though a queue may still have them in flight.
    newest: HashSet<u64>,
    /// Dispatches that were found not complete after its end.
    unfinished: Vec<Left>,
    ended: bool,
    /// How full its fullest ring was found since that was last asked, in 1/1000.
    fullest: u32,
}

struct Source {
    process: ProcessId,
    ordinal: u32,
    /// What was overwritten before this reader came is not lost to it.
    is_late: bool,
    reader: Reader<File>,
    probe: File,
}

impl Live {
    /// A reader of the session at `path`.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            directory: File::open(path).ok(),
            files: Vec::new(),
            known: HashSet::new(),
            listed: None,
            processes: Vec::new(),
            slow_at: None,
            heard: Instant::now(),
            probe_at: None,
            is_late: false,
            is_watched: false,
            clearing: None,
            started: None,
        }
    }

    /// Files of ended processes are removed when they become many: for the roctop to which the session belongs.
    #[must_use]
    pub fn owned(self) -> Self {
        Self {
            clearing: Some(Clearing::default()),
            ..self
        }
    }

    /// Open work is looked at for each frame of a screen.
    #[must_use]
    pub fn watched(self) -> Self {
        Self {
            is_watched: true,
            ..self
        }
    }

    /// The same for a session that runs already: what was overwritten before is not counted as lost.
    pub fn late(path: &Path) -> Self {
        Self {
            is_late: true,
            ..Self::new(path)
        }
    }

    /// Process ids seen so far.
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(|process| process.pid).collect()
    }

    /// Process ids of those that have not ended.
    pub fn pids_alive(&self) -> Vec<u32> {
        let alive = self.processes.iter().filter(|process| !process.ended);
        alive.map(|process| process.pid).collect()
    }

    /// Processes that have not ended.
    pub fn alive(&self) -> usize {
        self.processes.iter().filter(|process| !process.ended).count()
    }

    /// Processes that have not ended, and how full the fullest ring of each was found since this was last asked, in 1/1000.
    pub fn fills(&mut self) -> Vec<(ProcessId, u32, u32)> {
        let alive = (0..).zip(&mut self.processes).filter(|(_, process)| !process.ended);
        let fills = alive.map(|(id, process)| (ProcessId(id), process.pid, std::mem::take(&mut process.fullest)));
        fills.collect()
    }

    /// How full the fullest ring of the files known is, in 1/1000. Cheaper than a poll, and nothing is delivered.
    pub fn fill(&mut self) -> io::Result<u32> {
        let mut fullest = 0;
        for file in &mut self.files {
            if !self.processes[file.process.0 as usize].ended {
                fullest = fullest.max(file.reader.fill()?);
            }
        }
        Ok(fullest)
    }

    /// Whether files may have come since they were last looked through.
    pub fn has_new_files(&self) -> bool {
        self.listed.is_none() || self.changed() != self.listed
    }

    /// When the directory last changed.
    fn changed(&self) -> Option<SystemTime> {
        self.directory.as_ref()?.metadata().ok()?.modified().ok()
    }

    /// Delivers everything new. `now` is CLOCK_BOOTTIME.
    pub fn poll(&mut self, now: Nanos, sink: &mut dyn RawSink) -> io::Result<Progress> {
        if self.has_new_files() {
            self.discover(sink)?;
        }
        // Files that appear from now on are read from their beginning.
        self.is_late = false;
        let mut progress = Progress::default();
        for process in 0..self.processes.len() {
            if !self.processes[process].ended {
                let one = self.poll_process(ProcessId(process as u32), Ended::No, sink)?;
                let known = &mut self.processes[process];
                known.fullest = known.fullest.max(one.fill);
                add(&mut progress, one);
            }
        }
        let moment = Instant::now();
        if progress.records > 0 {
            self.heard = moment;
        }
        let pace = self.pace(moment);
        if self.slow_at.is_none_or(|at| moment.duration_since(at) >= pace) {
            self.slow_at = Some(moment);
            for process in 0..self.processes.len() {
                if !self.processes[process].ended {
                    self.state_of(ProcessId(process as u32), sink)?;
                }
            }
        }
        if self.probe_at.is_none_or(|at| moment >= at) {
            self.probe_at = Some(moment + PROBE);
            add(&mut progress, self.settle(now, sink)?);
            if let Some(clearing) = &mut self.clearing {
                clearing.clear();
            }
        }
        sink.take(ProcessId(0), &Raw::Now(now));
        Ok(progress)
    }

    /// The time between two readings of counters and open work.
    fn pace(&self, now: Instant) -> Duration {
        if now.duration_since(self.heard) >= QUIET_AFTER {
            STATE_INTERVAL_QUIET
        } else if self.is_watched && self.alive() <= MAX_WATCHED {
            STATE_INTERVAL_WATCHED
        } else {
            STATE_INTERVAL
        }
    }

    /// Looks which processes are gone, and delivers the rest of them. A reader that stops asks this last.
    pub fn settle(&mut self, now: Nanos, sink: &mut dyn RawSink) -> io::Result<Progress> {
        let mut progress = Progress::default();
        for process in (0..self.processes.len()).map(|process| ProcessId(process as u32)) {
            if !self.processes[process.0 as usize].ended && self.is_gone(process) {
                add(&mut progress, self.finish(process, Exit::Unknown, now, sink)?);
            }
        }
        Ok(progress)
    }

    /// The program was started, as this process, at this tick of the kernel.
    pub fn started(&mut self, pid: u32, start: u64) {
        self.started = Some((pid, start));
    }

    /// Says how the process with this id ended; delivers the rest of it. One that never made a ring appears now, with
    /// nothing but its end.
    pub fn exited(&mut self, pid: u32, exit: Exit, now: Nanos, sink: &mut dyn RawSink) -> io::Result<()> {
        self.discover(sink)?;
        let found = self.processes.iter().rposition(|process| process.pid == pid);
        if let Some(process) = found {
            let process = ProcessId(process as u32);
            if self.processes[process.0 as usize].ended {
                sink.take(process, &Raw::Ended(exit, now));
            } else {
                self.finish(process, exit, now, sink)?;
            }
        } else {
            let process = ProcessId(self.processes.len() as u32);
            self.processes.push(Known {
                pid,
                start_ticks: 0,
                stem: String::new(),
                left: HashSet::new(),
                newest: HashSet::new(),
                unfinished: Vec::new(),
                ended: true,
                fullest: 0,
            });
            sink.take(
                process,
                &Raw::Header(&Header {
                    major: MAJOR,
                    minor: MINOR,
                    pid,
                    start_ticks: self.started.filter(|known| known.0 == pid).map_or(0, |known| known.1),
                    rank: -1,
                    ..Header::default()
                }),
            );
            sink.take(process, &Raw::Ended(exit, now));
        }
        Ok(())
    }

    fn finish(&mut self, process: ProcessId, exit: Exit, now: Nanos, sink: &mut dyn RawSink) -> io::Result<Progress> {
        let mut progress = self.poll_process(process, Ended::Yes, sink)?;
        // A writer that is gone moves no head, so this ends.
        while progress.more {
            progress.more = false;
            add(&mut progress, self.poll_process(process, Ended::Yes, sink)?);
        }
        self.deliver_left(process, exit, sink)?;
        self.state_of(process, sink)?;
        self.processes[process.0 as usize].ended = true;
        sink.take(process, &Raw::Ended(exit, now));
        // Its files are not looked at any more: a session may have more processes than there are descriptors.
        self.files.retain(|file| file.process != process);
        if let Some(clearing) = &mut self.clearing {
            clearing.ended(&self.path, &self.processes[process.0 as usize].stem);
        }
        Ok(progress)
    }

    /// Delivers the dispatches that the GPU completed and nobody recorded any more.
    fn deliver_left(&mut self, process: ProcessId, exit: Exit, sink: &mut dyn RawSink) -> io::Result<()> {
        let mut newest = HashSet::new();
        for file in self.files.iter().filter(|file| file.process == process) {
            newest.extend(file.reader.newest_dispatches()?);
        }
        let known = &mut self.processes[process.0 as usize];
        let (completed, unfinished) = orphans::read(&self.path, &known.stem);
        for left in completed {
            if !newest.contains(&left.record.dispatch_id) {
                // Numbered as a ring's records are: a recovery knows by it which it has.
                let mut slots = left.slots();
                slots[0][0] = Head(slots[0][0]).with_ordinal(known.left.len() as u64).0;
                sink.take(process, &Raw::Record(orphans::THREAD, &slots));
                known.left.insert(left.record.dispatch_id);
            }
        }
        // A program that ends by itself has waited for its queues.
        if !matches!(exit, Exit::Code(_)) {
            known.unfinished = unfinished;
        }
        known.newest = newest;
        Ok(())
    }

    fn discover(&mut self, sink: &mut dyn RawSink) -> io::Result<()> {
        let mut found = Vec::new();
        // Its clock is a coarse one: what comes in the same step of it would not be seen.
        let is_past = |at: &SystemTime| at.elapsed().is_ok_and(|past| past > STEP);
        self.listed = self.changed().filter(is_past);
        let entries = match std::fs::read_dir(&self.path) {
            // Out of descriptors: those of processes that end come back.
            Err(error) if is_out_of_descriptors(&error) => {
                self.listed = None;
                return Ok(());
            }
            // Its roctop removed it: what is open is read to the end.
            Err(error) if self.clearing.is_none() && error.kind() == io::ErrorKind::NotFound => {
                self.listed = self.changed();
                return Ok(());
            }
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let is_ring = Path::new(&name).extension().is_some_and(|ending| ending == RING);
            if is_ring && !name.starts_with('.') && !self.known.contains(&name) {
                found.push(name);
            }
        }
        let mut opened = Vec::new();
        for name in found {
            let path = self.path.join(&name);
            let stem = name.trim_end_matches(RING).to_owned();
            let (file, probe) = match (open_ring(&path), open_ring(&path)) {
                (Ok(file), Ok(probe)) => (file, probe),
                (Err(error), _) | (_, Err(error)) => {
                    if is_out_of_descriptors(&error) {
                        self.listed = None;
                    } else {
                        self.known.insert(name);
                    }
                    continue;
                }
            };
            self.known.insert(name);
            if let Ok(reader) = Reader::open(file) {
                opened.push((reader, probe, stem));
            }
        }
        opened.sort_by_key(|(reader, ..)| (reader.header().created, reader.header().ordinal));
        for (reader, probe, stem) in opened {
            let header = reader.header();
            let (pid, start_ticks, ordinal) = (header.pid, header.start_ticks, header.ordinal);
            let same = |known: &Known| known.pid == pid && known.start_ticks == start_ticks;
            let process = match self.processes.iter().rposition(same) {
                Some(process) if ordinal > 0 => ProcessId(process as u32),
                _ => {
                    self.processes.push(Known {
                        pid,
                        start_ticks,
                        stem,
                        left: HashSet::new(),
                        newest: HashSet::new(),
                        unfinished: Vec::new(),
                        ended: false,
                        fullest: 0,
                    });
                    let process = ProcessId(self.processes.len() as u32 - 1);
                    sink.take(process, &Raw::Header(header));
                    process
                }
            };
            self.heard = Instant::now();
            self.files.push(Source {
                process,
                ordinal,
                is_late: self.is_late,
                reader,
                probe,
            });
        }
        Ok(())
    }

    fn poll_process(&mut self, process: ProcessId, ended: Ended, sink: &mut dyn RawSink) -> io::Result<Progress> {
        let mut progress = Progress::default();
        // Records of chained files may name strings of the first file: they wait until that was read.
        let mut held = Held::default();
        for file in self
            .files
            .iter_mut()
            .filter(|file| file.process == process && file.ordinal > 0)
        {
            held.ordinal = file.ordinal;
            held.is_late = std::mem::take(&mut file.is_late);
            add(&mut progress, file.reader.poll(ended, &mut held)?);
        }
        for file in self
            .files
            .iter_mut()
            .filter(|file| file.process == process && file.ordinal == 0)
        {
            let mut forward = Forward {
                process,
                is_late: std::mem::take(&mut file.is_late),
                sink,
            };
            add(&mut progress, file.reader.poll(ended, &mut forward)?);
        }
        for (thread, slots) in held.records {
            sink.records(process, thread, &slots);
        }
        for (thread, records) in held.lost {
            sink.take(process, &Raw::Lost(thread, records));
        }
        Ok(progress)
    }

    fn state_of(&mut self, process: ProcessId, sink: &mut dyn RawSink) -> io::Result<()> {
        for file in self.files.iter().filter(|file| file.process == process) {
            if file.ordinal == 0 {
                let mut counters = file.reader.counters()?;
                // Threads count what signal handlers made them drop; the process counts what happened before they could.
                for other in self.files.iter().filter(|other| other.process == process) {
                    let dropped = other.reader.entry_sum(entry::REENTRANT)?;
                    counters[counter::REENTRANT] = counters[counter::REENTRANT].saturating_add(dropped);
                }
                let known = &self.processes[process.0 as usize];
                counters[counter::TIMED] = counters[counter::TIMED].saturating_add(known.left.len() as u64);
                let mut work = file.reader.open_work()?;
                orphans::add(&mut work, &known.unfinished);
                for queue in &mut work.queues {
                    let is_done = |id: &u64| known.left.contains(id) || known.newest.contains(id);
                    queue.in_flight.retain(|dispatch| !is_done(&dispatch.dispatch_id));
                }
                sink.take(process, &Raw::Counters(&counters));
                for chained in self
                    .files
                    .iter()
                    .filter(|other| other.process == process && other.ordinal > 0)
                {
                    let more = chained.reader.open_work()?;
                    work.calls.extend(more.calls);
                    work.ranges.extend(more.ranges);
                }
                sink.take(process, &Raw::Open(&work));
            }
        }
        Ok(())
    }

    /// True when no mapping of the process's files is left: their lock can be had.
    fn is_gone(&self, process: ProcessId) -> bool {
        let mut first = self
            .files
            .iter()
            .filter(|file| file.process == process && file.ordinal == 0);
        first.all(|file| {
            let free = file.probe.try_lock_shared().is_ok();
            if free {
                let _ = file.probe.unlock();
            }
            free
        })
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE]
        .iter()
        .any(|known| number == Some(known.raw_os_error()))
}

fn add(sum: &mut Progress, one: Progress) {
    sum.records += one.records;
    sum.lost += one.lost;
    sum.fill = sum.fill.max(one.fill);
    sum.more |= one.more;
}

struct Forward<'a> {
    process: ProcessId,
    is_late: bool,
    sink: &'a mut dyn RawSink,
}

impl Sink for Forward<'_> {
    fn string(&mut self, id: u32, text: &[u8]) {
        self.sink.take(self.process, &Raw::Text(id, text));
    }
    fn fact(&mut self, slots: &[Slot]) {
        self.sink.take(self.process, &Raw::Fact(slots));
    }
    fn calibration(&mut self, sample: &[u64; clock::WORDS]) {
        self.sink.take(self.process, &Raw::Calibration(sample));
    }
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        self.sink.take(self.process, &Raw::Record(thread, slots));
    }
    fn records(&mut self, thread: Thread, slots: &[Slot]) {
        self.sink.records(self.process, thread, slots);
    }
    fn room(&mut self, slots: usize) -> Option<&mut [Slot]> {
        self.sink.room(slots)
    }
    fn keep(&mut self, thread: Thread, slots: usize) {
        self.sink.keep(self.process, thread, slots);
    }
    fn lost(&mut self, thread: Thread, records: u64) {
        if !self.is_late {
            self.sink.take(self.process, &Raw::Lost(thread, records));
        }
    }
}

#[derive(Default)]
struct Held {
    ordinal: u32,
    is_late: bool,
    /// Runs of records.
    records: Vec<(Thread, Vec<Slot>)>,
    lost: Vec<(Thread, u64)>,
}

impl Held {
    fn thread(&self, thread: Thread) -> Thread {
        Thread {
            index: self.ordinal << 16 | thread.index,
            ..thread
        }
    }
}

impl Sink for Held {
    fn string(&mut self, _: u32, _: &[u8]) {}
    fn fact(&mut self, _: &[Slot]) {}
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {}
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        self.records(thread, slots);
    }
    fn records(&mut self, thread: Thread, slots: &[Slot]) {
        self.records.push((self.thread(thread), slots.to_vec()));
    }
    fn lost(&mut self, thread: Thread, records: u64) {
        if !self.is_late {
            self.lost.push((self.thread(thread), records));
        }
    }
}
