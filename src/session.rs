//! A live session: its directory on tmpfs, the ring files that appear in it, and one poll over all of them.

use crate::item::{Exit, Nanos, ProcessId};
use crate::raw::{Raw, RawSink};
use anyhow::{Context, Result, bail};
use roctop_ring::layout::{Header, clock, counter, entry};
use roctop_ring::reader::{Ended, Progress, Reader, Sink, Thread};
use roctop_ring::record::Slot;
use roctop_ring::session::{CONTROL, CONTROL_BYTES, RING, base, control, private_dir, wanted};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often counters and open work are read.
const SLOW: Duration = Duration::from_millis(400);
/// How often it is looked whether a writer is still there.
const PROBE: Duration = Duration::from_millis(100);

/// A session's directory and control file.
#[derive(Debug)]
pub struct SessionDir {
    path: PathBuf,
    control: File,
}

impl SessionDir {
    /// Makes a new session for this user; its name has this process's id.
    pub fn create() -> Result<Self> {
        let uid = rustix::process::getuid().as_raw();
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let mut tried = Vec::new();
        for base in base(uid, runtime.as_deref()) {
            match Self::create_under(&base, uid) {
                Ok(made) => return Ok(made),
                Err(error) => tried.push(format!("{}: {error}", base.display())),
            }
        }
        bail!(
            "no place for the session: {}; roctop needs a tmpfs at /dev/shm or in XDG_RUNTIME_DIR",
            tried.join("; ")
        )
    }

    fn create_under(base: &Path, uid: u32) -> io::Result<Self> {
        private_dir(base, uid)?;
        remove_stale(base);
        let own = std::process::id();
        for attempt in 0..100u32 {
            let name = if attempt == 0 {
                format!("{own}")
            } else {
                format!("{own}.{attempt}")
            };
            let path = base.join(name);
            if path.exists() {
                continue;
            }
            private_dir(&path, uid)?;
            let control = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path.join(CONTROL))?;
            control.set_len(CONTROL_BYTES as u64)?;
            // Held while this roctop lives: that is how others know.
            control.lock_shared()?;
            let made = Self { path, control };
            made.set(control::RECORDING, 1)?;
            made.set(control::WANTED, wanted::USUAL)?;
            return Ok(made);
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Opens an existing session.
    pub fn open(path: &Path) -> Result<Self> {
        let control = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
            .open(path.join(CONTROL))
            .with_context(|| format!("{} is not a session of roctop", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            control,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a control word; the last writer wins.
    pub fn set(&self, word: usize, value: u64) -> io::Result<()> {
        self.control.write_all_at(&value.to_le_bytes(), word as u64 * 8)
    }

    /// Removes the session with all its rings.
    pub fn remove(&self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.path)
    }
}

/// A session that is there, as found from outside.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its directory.
    pub path: PathBuf,
    /// Processes in it: id and command line.
    pub processes: Vec<(u32, String)>,
}

/// Sessions left behind by a roctop that was killed are kept for a look afterwards, so many and so long.
const KEPT: usize = 4;
const KEPT_FOR: Duration = Duration::from_hours(24);

/// True when neither the roctop of a session lives nor any program in it.
fn is_over(session: &Path) -> bool {
    let is_free = |path: &Path| open_ring(path).is_ok_and(|file| file.try_lock().is_ok());
    let Ok(entries) = std::fs::read_dir(session) else {
        return false;
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .all(|path| is_free(&path))
}

fn remove_stale(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    let sessions = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut over: Vec<(std::time::SystemTime, PathBuf)> = sessions
        .filter(|path| path.join(CONTROL).exists() && is_over(path))
        .filter_map(|path| Some((std::fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    over.sort();
    let excess = over.len().saturating_sub(KEPT);
    for (number, (modified, path)) in over.iter().enumerate() {
        if number < excess || modified.elapsed().is_ok_and(|age| age > KEPT_FOR) {
            // Another roctop may be at the same: then it is gone already.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// All sessions of this user that are not over.
pub fn sessions() -> Vec<Found> {
    let uid = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let mut found = Vec::new();
    for base in base(uid, runtime.as_deref()) {
        let Ok(entries) = std::fs::read_dir(&base) else {
            continue;
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        for path in paths.filter(|path| path.join(CONTROL).exists() && !is_over(path)) {
            let processes = processes_of(&path);
            found.push(Found { path, processes });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn processes_of(session: &Path) -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir(session) else {
        return Vec::new();
    };
    let rings = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == RING));
    let readers = rings.filter_map(|path| Reader::open(open_ring(&path).ok()?).ok());
    let firsts = readers.filter(|reader| reader.header().ordinal == 0);
    firsts
        .map(|reader| (reader.header().pid, reader.header().command.clone()))
        .collect()
}

/// Reads all rings of a session.
pub struct Live {
    path: PathBuf,
    files: Vec<Source>,
    known: HashSet<String>,
    processes: Vec<Known>,
    slow_at: Option<Instant>,
    probe_at: Option<Instant>,
    is_late: bool,
}

struct Known {
    pid: u32,
    start_ticks: u64,
    ended: bool,
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
            files: Vec::new(),
            known: HashSet::new(),
            processes: Vec::new(),
            slow_at: None,
            probe_at: None,
            is_late: false,
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

    /// Processes that have not ended.
    pub fn alive(&self) -> usize {
        self.processes.iter().filter(|process| !process.ended).count()
    }

    /// Delivers everything new. `now` is CLOCK_BOOTTIME.
    pub fn poll(&mut self, now: Nanos, sink: &mut dyn RawSink) -> io::Result<Progress> {
        self.discover(sink)?;
        // Files that appear from now on are read from their beginning.
        self.is_late = false;
        let mut progress = Progress::default();
        for process in 0..self.processes.len() {
            if !self.processes[process].ended {
                add(
                    &mut progress,
                    self.poll_process(ProcessId(process as u32), Ended::No, sink)?,
                );
            }
        }
        let moment = Instant::now();
        if self.slow_at.is_none_or(|at| moment >= at) {
            self.slow_at = Some(moment + SLOW);
            for process in 0..self.processes.len() {
                if !self.processes[process].ended {
                    self.state_of(ProcessId(process as u32), sink)?;
                }
            }
        }
        if self.probe_at.is_none_or(|at| moment >= at) {
            self.probe_at = Some(moment + PROBE);
            for process in 0..self.processes.len() {
                if !self.processes[process].ended && self.is_gone(ProcessId(process as u32)) {
                    add(
                        &mut progress,
                        self.finish(ProcessId(process as u32), Exit::Unknown, now, sink)?,
                    );
                }
            }
        }
        sink.take(ProcessId(0), &Raw::Now(now));
        Ok(progress)
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
                ended: true,
            });
            sink.take(
                process,
                &Raw::Header(&Header {
                    pid,
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
        self.state_of(process, sink)?;
        self.processes[process.0 as usize].ended = true;
        sink.take(process, &Raw::Ended(exit, now));
        Ok(progress)
    }

    fn discover(&mut self, sink: &mut dyn RawSink) -> io::Result<()> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let is_ring = Path::new(&name).extension().is_some_and(|ending| ending == RING);
            if is_ring && !name.starts_with('.') && !self.known.contains(&name) {
                found.push(name);
            }
        }
        let mut opened = Vec::new();
        for name in found {
            let path = self.path.join(&name);
            self.known.insert(name);
            let (Ok(file), Ok(probe)) = (open_ring(&path), open_ring(&path)) else {
                continue;
            };
            if let Ok(reader) = Reader::open(file) {
                opened.push((reader, probe));
            }
        }
        opened.sort_by_key(|(reader, _)| (reader.header().created, reader.header().ordinal));
        for (reader, probe) in opened {
            let header = reader.header();
            let (pid, start_ticks, ordinal) = (header.pid, header.start_ticks, header.ordinal);
            let same = |known: &Known| known.pid == pid && known.start_ticks == start_ticks;
            let process = match self.processes.iter().rposition(same) {
                Some(process) if ordinal > 0 => ProcessId(process as u32),
                _ => {
                    self.processes.push(Known {
                        pid,
                        start_ticks,
                        ended: false,
                    });
                    let process = ProcessId(self.processes.len() as u32 - 1);
                    sink.take(process, &Raw::Header(header));
                    process
                }
            };
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
            sink.take(process, &Raw::Record(thread, &slots));
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
                sink.take(process, &Raw::Counters(&counters));
                let mut work = file.reader.open_work()?;
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

fn open_ring(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::from(io::ErrorKind::InvalidInput))
    }
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
        self.records.push((self.thread(thread), slots.to_vec()));
    }
    fn lost(&mut self, thread: Thread, records: u64) {
        if !self.is_late {
            self.lost.push((self.thread(thread), records));
        }
    }
}

/// CLOCK_BOOTTIME now, ns.
pub fn boottime() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
