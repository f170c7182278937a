//! The process's ring files: created at first use, chained when all rings are taken, kept within a budget.

#![expect(unsafe_code, reason = "the process's state behind the switch page, statfs")]

mod budget;

use self::budget::{FILES, SMALLEST_RING, base, budget, flight_budget, room, sites_bytes, spec};
use crate::config::{Config, config};
use crate::ranges::StartedRanges;
use crate::sites::Sites;
use crate::state::{self, word};
use crate::stream::Streams;
use crate::strings::Table;
use crate::thread::{self, Slab};
use crate::{clock, control, identity, notices};
use roctop_ring::flight::{FLIGHT, FlightFile, Reserved};
use roctop_ring::layout::{Header, counter};
use roctop_ring::map::RingFile;
use roctop_ring::record::{Domain, Status, status};
use roctop_ring::session::{RING, refused_name, ring_name};
use roctop_ring::sites::{SITES, SitesFile};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::OnceLock;

const CALIBRATION_TICKS: u64 = 1 << 35;
/// The second sample is early, so that a reader soon has a slope; then the intervals double.
const FIRST_CALIBRATION_TICKS: u64 = 1 << 22;

/// One ring file and the thread states of its entries.
pub struct Chunk {
    /// The file.
    pub file: RingFile,
    pub(crate) slab: Slab,
    /// Number of its entry 0, counted over all files.
    pub(crate) base: usize,
}

/// The collector's state of this process. Never freed.
pub struct Process {
    /// Address of the state that the parent had before a fork. Unused; without it a leak checker in the child would
    /// report that state as lost.
    _parents: u64,
    config: &'static Config,
    /// When the collector started: ticks, and ns of CLOCK_BOOTTIME.
    started: u64,
    started_at: u64,
    header: Header,
    name: String,
    chunks: [OnceLock<Box<Chunk>>; FILES],
    growing: AtomicU64,
    /// Total bytes for all files, and the bytes left.
    whole_budget: u64,
    budget: AtomicU64,
    /// Bytes left for flight files.
    flight_budget: AtomicU64,
    ring_slots: AtomicU64,
    strings: Table,
    /// Number of flight files created.
    flights: AtomicU64,
    /// Number of notices already in the file.
    pub(crate) notices_written: AtomicU64,
    /// Number of start/stop ranges begun.
    pub(crate) ranges: AtomicU64,
    /// Those for which the file has no room.
    pub(crate) started_ranges: StartedRanges,
    /// Streams seen.
    pub(crate) streams: Streams,
    /// Places that launch, copy or allocate.
    pub(crate) sites: Sites,
}

/// Address of the newest state, outside the page that is wiped on a fork.
static NEWEST: AtomicU64 = AtomicU64::new(0);

/// The process's state, created if necessary; `None` if this process is not traced. Slow path: preserves errno.
pub fn ensure() -> Option<&'static Process> {
    loop {
        match word(word::COLLECTOR).load(Ordering::Acquire) {
            state::ON => return get(),
            state::COLD => {}
            _ => return None,
        }
        let lock = word(word::LOCK);
        if lock
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::thread::yield_now();
            continue;
        }
        if word(word::COLLECTOR).load(Ordering::Acquire) == state::COLD {
            start();
        }
        lock.store(0, Ordering::Release);
    }
}

/// The process's state, if it exists.
#[inline(always)]
pub fn get() -> Option<&'static Process> {
    let address = word(word::PROCESS).load(Ordering::Acquire) as usize as *const Process;
    // SAFETY: `start` stored the address of a leaked box; a forked child reads null here until it made its own.
    unsafe { address.as_ref() }
}

fn start() {
    state::wipe_on_fork();
    std::panic::set_hook(Box::new(|_| {}));
    let Some(config) = config() else {
        state::switch_off();
        return;
    };
    let process = match Process::create(config) {
        Ok(process) => process,
        Err(error) => {
            state::switch_off();
            leave_word(config, &error);
            return;
        }
    };
    if process.config.is_paused {
        word(word::PAUSED).store(1, Ordering::Release);
    } else {
        word(word::RESUMED).store(1, Ordering::Release);
    }
    control::attach(&process.config.session);
    let process: &'static Process = Box::leak(Box::new(process));
    NEWEST.store(std::ptr::from_ref(process) as u64, Ordering::Relaxed);
    word(word::PROCESS).store(std::ptr::from_ref(process) as u64, Ordering::Release);
    if let Some(file) = process.main() {
        clock::calibrate(file);
        set(file, counter::STATE, 1);
    }
    let due = clock::now().wrapping_add(FIRST_CALIBRATION_TICKS);
    word(word::CALIBRATION_DUE).store(due, Ordering::Relaxed);
    state::switch_on(word::COLLECTOR);
    process.say(status::CLOCK, clock::cost(), "");
    crate::level::begin(process);
    notices::write(process);
}

/// Reports why there is no ring: in the name of an empty file.
fn leave_word(config: &Config, error: &io::Error) {
    let header = identity::header(clock::kind());
    // An error without a system error number means that the directory is not on a tmpfs.
    let errno = error.raw_os_error().unwrap_or(libc::EOPNOTSUPP);
    let name = refused_name(header.pid, header.start_ticks, errno);
    let _ = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(config.session.join(name));
}

fn set(file: &RingFile, at: usize, value: u64) {
    if let Some(word) = file.counter(at) {
        word.store(value, Ordering::Relaxed);
    }
}

impl Process {
    fn create(config: &'static Config) -> io::Result<Self> {
        let header = identity::header(clock::kind());
        let budget = budget(&config.session);
        let process = Self {
            _parents: NEWEST.load(Ordering::Relaxed),
            config,
            started: clock::now(),
            started_at: clock::boottime(),
            name: String::new(),
            header,
            chunks: [const { OnceLock::new() }; FILES],
            growing: AtomicU64::new(0),
            whole_budget: budget,
            budget: AtomicU64::new(budget),
            flight_budget: AtomicU64::new(flight_budget(budget)),
            ring_slots: AtomicU64::new(config.ring_slots),
            strings: Table::new(),
            flights: AtomicU64::new(0),
            notices_written: AtomicU64::new(0),
            ranges: AtomicU64::new(0),
            started_ranges: StartedRanges::new(),
            streams: Streams::new(),
            sites: Sites::new(),
        };
        process.first_file()
    }

    /// Creates the first file. If its name is taken, this process made it before an exec of another program.
    fn first_file(mut self) -> io::Result<Self> {
        for image in 0..1000 {
            let name = ring_name(self.header.pid, self.header.start_ticks, 0);
            self.name = if image == 0 {
                name
            } else {
                name.replacen('-', &format!("x{image}-"), 1)
            };
            match self.make(0) {
                Ok(chunk) => {
                    let _ = self.chunks[0].set(chunk);
                    return Ok(self);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Creates file `ordinal`, with smaller rings if the budget has no space for large ones.
    fn make(&self, ordinal: u32) -> io::Result<Box<Chunk>> {
        let mut slots = self.ring_slots.load(Ordering::Relaxed);
        let mut halved = 0;
        loop {
            let spec = spec(ordinal, slots, halved);
            let (_, size) = spec.regions();
            let made = if size > room(self.whole_budget, self.budget.load(Ordering::Relaxed), slots, ordinal) {
                Err(io::Error::from_raw_os_error(libc::ENOSPC))
            } else {
                let name = match ordinal {
                    0 => self.name.clone(),
                    _ => self.name.replacen(".ring", &format!(".{ordinal}.ring"), 1),
                };
                RingFile::create(&self.config.session, &name, &spec, self.header.clone())
            };
            match made {
                Ok(file) => {
                    self.budget.fetch_sub(size, Ordering::Relaxed);
                    self.ring_slots.store(slots, Ordering::Relaxed);
                    let slab = Slab::new(file.entries())?;
                    let base = base(ordinal);
                    return Ok(Box::new(Chunk { file, slab, base }));
                }
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EFBIG)) && slots > SMALLEST_RING =>
                {
                    slots /= 2;
                    halved += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// When the collector started: ticks and CLOCK_BOOTTIME ns of the same moment.
    pub const fn started_at(&self) -> (u64, u64) {
        (self.started, self.started_at)
    }

    /// The first file: it contains facts, strings, counters and open calls.
    #[inline]
    pub fn main(&self) -> Option<&RingFile> {
        self.chunks[0].get().map(|chunk| &chunk.file)
    }

    /// The files in order of creation.
    pub fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().map_while(OnceLock::get).map(Box::as_ref)
    }

    /// Chains one more file. False if there is no space; true if another thread is already adding one. Slow path.
    pub(crate) fn grow(&self) -> bool {
        if self.growing.swap(1, Ordering::Acquire) != 0 {
            std::thread::yield_now();
            return true;
        }
        let place = self.chunks.iter().position(|chunk| chunk.get().is_none());
        let grown = place.is_some_and(|at| match self.make(at as u32) {
            Ok(chunk) => {
                self.count(counter::CHAINED, 1);
                self.chunks.get(at).is_some_and(|place| place.set(chunk).is_ok())
            }
            Err(_) => false,
        });
        self.growing.store(0, Ordering::Release);
        grown
    }

    /// Maps pages of a flight file of `slots` slots at `address`. Slow path.
    ///
    /// # Safety
    /// As for [`Reserved::put`].
    pub unsafe fn reserve_flight(&self, slots: usize, address: *mut u8) -> io::Result<Reserved> {
        let number = self.flights.fetch_add(1, Ordering::Relaxed);
        let name = self.name.replacen(RING, &format!("{number}.{FLIGHT}"), 1);
        // SAFETY: the caller's.
        unsafe { Reserved::put(&self.config.session, &name, slots, address) }
    }

    /// Turns reserved pages into a flight file.
    ///
    /// Errors: `StorageFull` if the budget is used up, as for a full tmpfs; otherwise the system's error.
    pub fn take_flight(&self, reserved: Reserved, slots: usize) -> io::Result<FlightFile> {
        let size = FlightFile::bytes(slots);
        let take = |left: u64| left.checked_sub(size);
        let take_of = |budget: &AtomicU64| budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let is_full = |_| io::Error::from(io::ErrorKind::StorageFull);
        take_of(&self.flight_budget).map_err(is_full)?;
        take_of(&self.budget).map_err(|left| {
            self.flight_budget.fetch_add(size, Ordering::Relaxed);
            is_full(left)
        })?;
        let made = reserved.take(&self.header);
        if made.is_err() {
            self.flight_budget.fetch_add(size, Ordering::Relaxed);
            self.budget.fetch_add(size, Ordering::Relaxed);
        }
        made
    }

    /// Creates the stack file of its sites. Slow path.
    ///
    /// Errors: `StorageFull` if the budget is used up; otherwise the system's error.
    pub(crate) fn make_sites_file(&self) -> io::Result<SitesFile> {
        let size = sites_bytes(self.whole_budget);
        let take = |left: u64| left.checked_sub(size);
        self.budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        let name = self.name.replacen(RING, SITES, 1);
        let made = SitesFile::create(&self.config.session, &name, size as usize, &self.header);
        let used = made.as_ref().map_or(0, |file| file.size() as u64);
        self.budget.fetch_add(size - used, Ordering::Relaxed);
        made
    }

    /// Whether the caller is this process, not a child that shares its memory.
    #[inline]
    pub fn is_this(&self) -> bool {
        self.header.pid == identity::pid()
    }

    /// Adds to a process-wide counter.
    #[inline]
    pub fn count(&self, at: usize, by: u64) {
        if let Some(word) = self.main().and_then(|file| file.counter(at)) {
            word.fetch_add(by, Ordering::Relaxed);
        }
    }

    /// Value of a process-wide counter.
    #[inline]
    pub fn counted(&self, at: usize) -> u64 {
        let word = self.main().and_then(|file| file.counter(at));
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Counts dispatches as submitted. Returns the number submitted before: the id of the first one, less one.
    #[inline]
    pub fn submit(&self, count: u64) -> u64 {
        let word = self.main().and_then(|file| file.counter(counter::SUBMITTED));
        word.map_or(0, |word| word.fetch_add(count, Ordering::Relaxed))
    }

    /// Counts records that were dropped while their thread claimed its ring.
    pub(crate) fn count_early(&self) {
        let early = word(word::EARLY).swap(0, Ordering::Relaxed);
        if early > 0 {
            self.count(counter::REENTRANT, early);
        }
    }

    /// The id of a text; 0 if there is no space.
    pub fn intern(&self, text: &[u8]) -> u32 {
        self.main().map_or(0, |file| self.strings.intern(file, text))
    }

    /// Appends a fact.
    pub fn fact<const S: usize>(&self, head: roctop_ring::record::Head, payload: &[[u64; 6]; S]) {
        if let Some(facts) = self.main().and_then(RingFile::facts) {
            facts.append(head, payload);
        }
    }

    /// Appends a fact of low priority: it may use only half of the space.
    pub fn minor_fact<const S: usize>(&self, head: roctop_ring::record::Head, payload: &[[u64; 6]; S]) {
        if let Some(facts) = self.main().and_then(RingFile::facts) {
            facts.append_minor(head, payload);
        }
    }

    /// Appends a status about the collector.
    pub fn say(&self, code: u32, value: u64, text: &str) {
        let fact = Status {
            time: clock::now(),
            value,
            code,
            text: self.intern(text.as_bytes()),
        };
        self.fact(Status::head(0, Domain::NONE), &fact.payload());
    }

    /// Appends the program's name for an object; `code` is the object's kind.
    pub fn name(&self, code: u32, value: u64, name: &[u8]) {
        self.say(code, value, &String::from_utf8_lossy(name));
    }

    /// Takes a calibration sample now.
    pub fn calibrate(&self) {
        if let Some(file) = self.main() {
            clock::calibrate(file);
        }
    }

    /// Takes a sample if one is due, in programs where no thread of the collector runs.
    #[inline]
    pub fn calibrate_when_due(&self, now: u64) {
        let due = word(word::CALIBRATION_DUE);
        let at = due.load(Ordering::Relaxed);
        if now < at || word(word::THREAD).load(Ordering::Relaxed) != 0 {
            return;
        }
        let step = now
            .wrapping_sub(self.started)
            .clamp(FIRST_CALIBRATION_TICKS, CALIBRATION_TICKS);
        if due
            .compare_exchange(at, now.wrapping_add(step), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            let _errno = crate::guard::Errno::keep();
            self.calibrate();
        }
    }

    /// Marks the file as closed properly.
    pub fn close(&self) {
        self.calibrate();
        if let Some(file) = self.main() {
            set(file, counter::STATE, 3);
        }
    }
}

/// Records why the collector is off, if there is a ring file.
pub(crate) fn say_off(reason: &str) {
    if let Some(process) = get()
        && let Some(file) = process.main()
    {
        set(file, counter::OFF_REASON, u64::from(process.intern(reason.as_bytes())));
        set(file, counter::STATE, 2);
        process.say(status::OFF, 0, reason);
    }
}

/// The ring of the thread that delivers completions: entry 0.
pub fn claim_completion() -> Option<&'static thread::Thread> {
    thread::claim_entry(ensure()?, 0, 0)
}
