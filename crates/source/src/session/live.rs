//! Reads the rings of a session: finds new files, polls all of them, and collects what an ended process left behind.

use super::clearing::Clearing;
use super::{SessionDir, open_ring, orphans};
use roctop_ring::flight::Left;
use roctop_ring::layout::{Header, MAJOR, MINOR, clock, counter, entry};
use roctop_ring::reader::{Ended, Progress, Reader, Sink, Thread};
use roctop_ring::record::{Head, Slot};
use roctop_ring::session::RING;
use roctop_ring::sites::{self, SITES};
use roctop_trace::item::{Exit, LossReason, Nanos, ProcessId};
use roctop_trace::raw::{Raw, RawSink};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Interval between readings of counters and open work.
const STATE_INTERVAL: Duration = Duration::from_millis(400);
/// As [`STATE_INTERVAL`], while a screen is attached.
const STATE_INTERVAL_WATCHED: Duration = Duration::from_millis(100);
/// Idle time without records after which [`STATE_INTERVAL_QUIET`] applies.
const QUIET_AFTER: Duration = Duration::from_secs(2);
const STATE_INTERVAL_QUIET: Duration = Duration::from_secs(1);
/// Number of processes above which [`STATE_INTERVAL`] applies to a screen too, to bound the cost.
const MAX_WATCHED: usize = 8;
/// Upper bound of the resolution of directory time stamps.
const DIRECTORY_TIME_RESOLUTION: Duration = Duration::from_millis(20);
/// Interval between checks whether a writer is alive.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

/// Reader of all rings of a session.
pub struct Live {
    path: PathBuf,
    /// Open directory, so that `fstat` need not resolve the path.
    directory: Option<File>,
    files: Vec<Source>,
    known: HashSet<String>,
    /// Modification time of the directory at the last listing; `None` if it may have changed since.
    listed: Option<SystemTime>,
    processes: Vec<Known>,
    /// Those that have not ended, in order.
    alive: Vec<ProcessId>,
    /// Time of the last reading of counters and open work.
    slow_at: Option<Instant>,
    /// Time of the last records or files.
    heard: Instant,
    probe_at: Option<Instant>,
    is_late: bool,
    is_watched: bool,
    /// Only for the roctop that owns the session.
    clearing: Option<Clearing>,
    /// The started program: pid, and start time in kernel ticks.
    started: Option<(u32, u64)>,
    /// Stack files that were found since the last request.
    stack_files: Vec<StackFile>,
}

/// The stack file of a process. It is open, so that it can be read after the session has removed it.
pub struct StackFile {
    /// Its process.
    pub process: ProcessId,
    /// Process id.
    pub pid: u32,
    /// Reader of its entries from the oldest on.
    pub reader: sites::Reader,
}

/// A process of the session. A recorder that runs for weeks sees many that end: each takes 24 bytes.
struct Known {
    pid: u32,
    start_ticks: u64,
    /// None when it has ended.
    rings: Option<Box<Rings>>,
}

/// What its files say of a process that has not ended.
#[derive(Default)]
struct Rings {
    /// Prefix of the names of its files.
    stem: String,
    /// Ids of dispatches found complete after its end.
    left: HashSet<u64>,
    /// Newest dispatch of each ring at its end: recorded, though a queue may still list it as in flight.
    newest: HashSet<u64>,
    /// Dispatches found incomplete after its end.
    unfinished: Vec<Left>,
    /// Highest fill level of its rings since the last request, 1/1000.
    fullest: u32,
}

struct Source {
    process: ProcessId,
    ordinal: u32,
    /// Records overwritten before this reader attached do not count as lost.
    is_late: bool,
    reader: Reader<File>,
    probe: File,
}

impl Live {
    /// Reader of the session at `path`.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            directory: File::open(path).ok(),
            files: Vec::new(),
            known: HashSet::new(),
            listed: None,
            processes: Vec::new(),
            alive: Vec::new(),
            slow_at: None,
            heard: Instant::now(),
            probe_at: None,
            is_late: false,
            is_watched: false,
            clearing: None,
            started: None,
            stack_files: Vec::new(),
        }
    }

    /// Removes and returns the stack files that were found since the last request.
    pub fn take_stack_files(&mut self) -> Vec<StackFile> {
        std::mem::take(&mut self.stack_files)
    }

    /// Enables removal of ended processes' files; for the roctop that owns the session.
    #[must_use]
    pub fn owned(self) -> Self {
        Self {
            clearing: Some(Clearing::default()),
            ..self
        }
    }

    /// The session, for the roctop that owns it.
    pub fn own_session(&self) -> Option<SessionDir> {
        self.clearing.as_ref().and_then(|_| SessionDir::open(&self.path).ok())
    }

    /// Reads open work for each frame of a screen.
    #[must_use]
    pub fn watched(self) -> Self {
        Self {
            is_watched: true,
            ..self
        }
    }

    /// Reader that attaches to a running session: records overwritten before do not count as lost.
    pub fn late(path: &Path) -> Self {
        Self {
            is_late: true,
            ..Self::new(path)
        }
    }

    /// Pids seen so far.
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(|process| process.pid).collect()
    }

    /// Pids of the processes that have not ended.
    pub fn pids_alive(&self) -> Vec<u32> {
        self.alive.iter().map(|id| self.known(*id).pid).collect()
    }

    /// Process, pid and threads with a ring, of each process that has not ended.
    pub fn threads_alive(&self) -> Vec<(ProcessId, u32, Vec<u32>)> {
        let threads = self.alive.iter().map(|id| {
            let files = self.files.iter().filter(|file| file.process == *id);
            let used = files.flat_map(|file| file.reader.accounts());
            (*id, self.known(*id).pid, used.map(|(thread, _)| thread.tid).collect())
        });
        threads.collect()
    }

    /// Number of processes that have not ended.
    pub fn alive(&self) -> usize {
        self.alive.len()
    }

    /// Processes that have not ended, ascending.
    pub fn alive_processes(&self) -> &[ProcessId] {
        &self.alive
    }

    fn known(&self, process: ProcessId) -> &Known {
        &self.processes[process.0 as usize]
    }

    /// What is known of the files of a process that has not ended.
    fn rings(&mut self, process: ProcessId) -> Option<&mut Rings> {
        self.processes.get_mut(process.0 as usize)?.rings.as_deref_mut()
    }

    /// For each process that has not ended: id, pid, and highest fill level of its rings since the last call, 1/1000.
    pub fn fills(&mut self) -> Vec<(ProcessId, u32, u32)> {
        let fills = self.alive.iter().filter_map(|id| {
            let Known { pid, rings, .. } = self.processes.get_mut(id.0 as usize)?;
            Some((*id, *pid, std::mem::take(&mut rings.as_mut()?.fullest)))
        });
        fills.collect()
    }

    /// Highest fill level of all known rings, 1/1000. Cheaper than a poll; delivers nothing.
    pub fn fill(&mut self) -> io::Result<u32> {
        let mut fullest = 0;
        for file in &mut self.files {
            if self.processes[file.process.0 as usize].rings.is_some() {
                fullest = fullest.max(file.reader.fill()?);
            }
        }
        Ok(fullest)
    }

    /// Whether the directory may have changed since it was listed.
    pub fn has_new_files(&self) -> bool {
        self.listed.is_none() || self.changed() != self.listed
    }

    /// Modification time of the directory.
    fn changed(&self) -> Option<SystemTime> {
        self.directory.as_ref()?.metadata().ok()?.modified().ok()
    }

    /// Delivers everything new. `now` is CLOCK_BOOTTIME, ns.
    pub fn poll(&mut self, now: Nanos, sink: &mut dyn RawSink) -> io::Result<Progress> {
        if self.has_new_files() {
            self.discover(sink)?;
        }
        // Files that appear from now on are read from their beginning.
        self.is_late = false;
        let mut progress = Progress::default();
        for at in 0..self.alive.len() {
            let process = self.alive[at];
            let one = self.poll_process(process, Ended::No, sink)?;
            if let Some(rings) = self.rings(process) {
                rings.fullest = rings.fullest.max(one.fill);
            }
            add(&mut progress, one);
        }
        let moment = Instant::now();
        if progress.records > 0 {
            self.heard = moment;
        }
        let pace = self.pace(moment);
        if self.slow_at.is_none_or(|at| moment.duration_since(at) >= pace) {
            self.slow_at = Some(moment);
            for process in &self.alive {
                self.state_of(*process, sink)?;
            }
        }
        if self.probe_at.is_none_or(|at| moment >= at) {
            self.probe_at = Some(moment + PROBE_INTERVAL);
            add(&mut progress, self.settle(now, sink)?);
            if let Some(clearing) = &mut self.clearing {
                clearing.clear();
            }
        }
        sink.take(ProcessId(0), &Raw::Now(now));
        Ok(progress)
    }

    /// Interval between two readings of counters and open work.
    fn pace(&self, now: Instant) -> Duration {
        if now.duration_since(self.heard) >= QUIET_AFTER {
            STATE_INTERVAL_QUIET
        } else if self.is_watched && self.alive() <= MAX_WATCHED {
            STATE_INTERVAL_WATCHED
        } else {
            STATE_INTERVAL
        }
    }

    /// Delivers what a reader that stops would miss: the rest of processes that are gone, and the counters of the others.
    /// With those, viewers count what was overwritten since the last reading.
    pub fn end(&mut self, now: Nanos, sink: &mut dyn RawSink) -> io::Result<Progress> {
        let progress = self.settle(now, sink)?;
        for process in &self.alive {
            self.state_of(*process, sink)?;
        }
        Ok(progress)
    }

    /// Detects processes that are gone and delivers the rest of their records.
    fn settle(&mut self, now: Nanos, sink: &mut dyn RawSink) -> io::Result<Progress> {
        let mut progress = Progress::default();
        let gone = self.alive.iter().copied().filter(|process| self.is_gone(*process));
        let gone: Vec<ProcessId> = gone.collect();
        if !gone.is_empty() {
            // Threads may have claimed rings in new files since the last listing.
            self.discover(sink)?;
        }
        for process in gone {
            add(&mut progress, self.finish(process, Exit::Unknown, now, sink)?);
        }
        Ok(progress)
    }

    /// The program was started with this pid, at this kernel tick.
    pub fn started(&mut self, pid: u32, start: u64) {
        self.started = Some((pid, start));
    }

    /// Stores the exit of the process with this pid and delivers the rest of its records. A process without a ring
    /// appears now, with its exit only.
    pub fn exited(&mut self, pid: u32, exit: Exit, now: Nanos, sink: &mut dyn RawSink) -> io::Result<()> {
        self.discover(sink)?;
        let found = self.processes.iter().rposition(|process| process.pid == pid);
        if let Some(process) = found {
            let process = ProcessId(process as u32);
            if self.known(process).rings.is_none() {
                sink.take(process, &Raw::Ended(exit, now));
            } else {
                self.finish(process, exit, now, sink)?;
            }
        } else {
            let process = ProcessId(self.processes.len() as u32);
            self.processes.push(Known {
                pid,
                start_ticks: 0,
                rings: None,
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
        // A dead writer advances no head, so this loop ends.
        while progress.more {
            progress.more = false;
            add(&mut progress, self.poll_process(process, Ended::Yes, sink)?);
        }
        self.deliver_left(process, exit, sink)?;
        self.state_of(process, sink)?;
        let rings = self.processes[process.0 as usize].rings.take();
        self.alive.retain(|alive| *alive != process);
        sink.take(process, &Raw::Ended(exit, now));
        // Close its files: a session may have more processes than this process has descriptors.
        self.files.retain(|file| file.process != process);
        if let (Some(clearing), Some(rings)) = (&mut self.clearing, rings) {
            clearing.ended(&self.path, &rings.stem);
        }
        Ok(progress)
    }

    /// Delivers dispatches that completed on the GPU and were not recorded.
    fn deliver_left(&mut self, process: ProcessId, exit: Exit, sink: &mut dyn RawSink) -> io::Result<()> {
        let mut newest = HashSet::new();
        for file in self.files.iter().filter(|file| file.process == process) {
            newest.extend(file.reader.newest_dispatches()?);
        }
        let known = self.processes.get_mut(process.0 as usize);
        let Some(known) = known.and_then(|known| known.rings.as_deref_mut()) else {
            return Ok(());
        };
        let (completed, unfinished) = orphans::read(&self.path, &known.stem);
        for left in completed {
            if !newest.contains(&left.record.dispatch_id) {
                // Numbered like a ring's records, so that a recovery can recognize them.
                let mut slots = left.slots();
                slots[0][0] = Head(slots[0][0]).with_ordinal(known.left.len() as u64).0;
                sink.take(process, &Raw::Record(orphans::THREAD, &slots));
                known.left.insert(left.record.dispatch_id);
            }
        }
        // A program that exits normally has waited for its queues.
        if !matches!(exit, Exit::Code(_)) {
            known.unfinished = unfinished;
        }
        known.newest = newest;
        Ok(())
    }

    fn discover(&mut self, sink: &mut dyn RawSink) -> io::Result<()> {
        let (mut found, mut stacks) = (Vec::new(), Vec::new());
        // Directory time stamps are coarse: a change within the same step would be missed.
        let is_past = |at: &SystemTime| at.elapsed().is_ok_and(|past| past > DIRECTORY_TIME_RESOLUTION);
        self.listed = self.changed().filter(is_past);
        let entries = match std::fs::read_dir(&self.path) {
            // Out of descriptors: processes that end will free some.
            Err(error) if is_out_of_descriptors(&error) => {
                self.listed = None;
                return Ok(());
            }
            // Its roctop removed the directory: open files are read to the end.
            Err(error) if self.clearing.is_none() && error.kind() == io::ErrorKind::NotFound => {
                self.listed = self.changed();
                return Ok(());
            }
            entries => entries?,
        };
        let mut known = HashSet::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let is_ring = Path::new(&name).extension().is_some_and(|ending| ending == RING);
            let is_of_sites = Path::new(&name).extension().is_some_and(|ending| ending == SITES);
            if self.known.contains(&name) {
                known.insert(name);
            } else if is_of_sites {
                stacks.push(name);
            } else if is_ring && !name.starts_with('.') {
                found.push(name);
            }
        }
        // A removed file does not come back: its name has the start time of its process.
        self.known = known;
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
                        rings: Some(Box::new(Rings {
                            stem,
                            ..Rings::default()
                        })),
                    });
                    let process = ProcessId(self.processes.len() as u32 - 1);
                    self.alive.push(process);
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
        self.open_stack_files(stacks);
        Ok(())
    }

    /// Opens stack files of processes that are known by now; others are found again at the next listing.
    fn open_stack_files(&mut self, names: Vec<String>) {
        for name in names {
            let stem = name.trim_end_matches(SITES);
            let mut alive = self.alive.iter().map(|id| (*id, &self.processes[id.0 as usize]));
            let known = alive.find(|(_, known)| known.rings.as_ref().is_some_and(|rings| rings.stem == stem));
            let Some((process, pid)) = known.map(|(id, known)| (id, known.pid)) else {
                continue;
            };
            match sites::Reader::open(&self.path.join(&name)) {
                Ok(reader) => self.stack_files.push(StackFile { process, pid, reader }),
                Err(error) if is_out_of_descriptors(&error) => {
                    self.listed = None;
                    continue;
                }
                // It is no stack file: its sites have no call path.
                Err(_) => {}
            }
            self.known.insert(name);
        }
    }

    fn poll_process(&mut self, process: ProcessId, ended: Ended, sink: &mut dyn RawSink) -> io::Result<Progress> {
        let mut progress = Progress::default();
        // Records of chained files may refer to strings of the first file: they wait until that was read.
        let mut held = BufferedRecords::default();
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
            sink.take(process, &Raw::Lost(thread, LossReason::Overwritten, records));
        }
        Ok(progress)
    }

    fn state_of(&self, process: ProcessId, sink: &mut dyn RawSink) -> io::Result<()> {
        let Some(known) = &self.known(process).rings else {
            return Ok(());
        };
        for file in self.files.iter().filter(|file| file.process == process) {
            if file.ordinal == 0 {
                let mut counters = file.reader.counters()?;
                // Threads count records dropped because of signal handlers; the process counts those dropped before a
                // thread had a ring.
                for other in self.files.iter().filter(|other| other.process == process) {
                    let dropped = other.reader.entry_sum(entry::REENTRANT)?;
                    counters[counter::REENTRANT] = counters[counter::REENTRANT].saturating_add(dropped);
                }
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

    /// Whether no mapping of the process's files remains: then their lock is free.
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
            self.sink
                .take(self.process, &Raw::Lost(thread, LossReason::Overwritten, records));
        }
    }
}

#[derive(Default)]
struct BufferedRecords {
    ordinal: u32,
    is_late: bool,
    /// Runs of records.
    records: Vec<(Thread, Vec<Slot>)>,
    lost: Vec<(Thread, u64)>,
}

impl BufferedRecords {
    fn thread(&self, thread: Thread) -> Thread {
        Thread {
            index: self.ordinal << 16 | thread.index,
            ..thread
        }
    }
}

impl Sink for BufferedRecords {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionDir;
    use roctop_ring::layout::Spec;
    use roctop_ring::map::RingFile;
    use roctop_ring::record::{ApiCall, Domain};
    use roctop_ring::session::ring_name;

    /// Records that were read, that were overwritten, and that were overwritten before the last counters.
    #[derive(Default)]
    struct Noted {
        read: u64,
        lost: u64,
        counted: u64,
    }

    impl RawSink for Noted {
        fn take(&mut self, _: ProcessId, raw: &Raw<'_>) {
            match raw {
                Raw::Record(..) => self.read += 1,
                Raw::Lost(_, _, records) => self.lost += records,
                Raw::Counters(_) => self.counted = self.lost,
                _ => {}
            }
        }

        fn records(&mut self, _: ProcessId, _: Thread, slots: &[Slot]) {
            self.read += slots.len() as u64;
        }
    }

    #[test]
    fn what_was_overwritten_last_is_counted_at_the_end() {
        let session = SessionDir::create().unwrap();
        let spec = Spec {
            ordinal: 0,
            rings: vec![64],
            facts: 16,
            strings: 16,
            string_bytes: 256,
        };
        let header = Header {
            pid: std::process::id(),
            start_ticks: 1,
            ..Header::default()
        };
        let name = ring_name(header.pid, 1, 0);
        let file = RingFile::create(session.path(), &name, &spec, header).unwrap();
        let claim = file.claim(0, 7, 1, [0; 2]).unwrap();
        let mut live = Live::new(session.path());
        let mut noted = Noted::default();
        live.poll(1, &mut noted).unwrap();
        for number in 0..1000 {
            let call = ApiCall {
                start: number,
                end: number + 1,
                ..ApiCall::default()
            };
            claim.ring.push(ApiCall::head(0, Domain::HIP), &call.payload());
        }
        live.poll(2, &mut noted).unwrap();
        // The counters were read a moment before.
        assert_eq!((noted.read + noted.lost, noted.counted), (1000, 0));
        live.end(3, &mut noted).unwrap();
        assert!(noted.lost > 900 && noted.counted == noted.lost);
        session.remove().unwrap();
    }
}
