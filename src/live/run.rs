//! `roctop APP`, `roctop record` and `roctop demo`: a program from start to end.

use crate::ask::server::{Asked, Server};
use crate::cli::{self, Look, OnExit};
use crate::clocks::boottime;
use crate::demo;
use crate::doctor::{self, gpu::KeptLevel};
use crate::embedded;
use crate::item::Exit;
use crate::job::{JobMember, JobPlan};
use crate::keep::{Keeper, Keeping};
use crate::live::ingest::{Gauging, Ingest, IngestSender, Symbols};
use crate::log;
use crate::model::{Fresh, Mode, Options, Store};
use crate::process::exit_cause::{self, Seen, Sender};
use crate::process::launch::{self, Output, Program};
use crate::process::level;
use crate::process::limits;
use crate::process::reraise;
use crate::process::supervise::{self, Step, Terminal};
use crate::prometheus::Endpoint;
use crate::query::Filter;
use crate::recording::{LeftOpen, Origin, Recorder, Recording};
use crate::report::summary;
use crate::session::{Live, SessionDir, Watch, going_on, refused};
use crate::settings::Config;
use crate::topology;
use crate::ui;
use crate::units::elide;
use anyhow::Result;
use roctop_ring::level::Level;
use roctop_ring::session::{ENV_COUNTERS, ENV_LEVEL, ENV_LEVEL_REASON, ENV_RING, control, wanted};
use roctop_signals::Signals;
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// How a program is run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Write a recording here.
    pub recording: Option<PathBuf>,
    /// Bytes of records that the recording keeps, about; the oldest go first.
    pub most_bytes: Option<u64>,
    /// Hold the last seconds, and write them when there is a reason, in place of a recording.
    pub keeping: Option<Keeping>,
    /// A signal that makes roctop write what it holds; it is not passed on.
    pub keep_signal: Option<Signal>,
    /// Where the metrics are asked for.
    pub metrics: Option<std::net::SocketAddr>,
    /// Slots of an application thread's ring.
    pub ring_slots: Option<u64>,
    /// What is recorded in addition, bits of `roctop_ring::session::wanted`.
    pub wanted: u64,
    /// Where the names of call paths go.
    pub symbols: Symbols,
    /// One of [`roctop_ring::session::source`].
    pub dispatch_source: u64,
    /// The level of timing at which the collector starts; none: ROCTOP_LEVEL's, else the collector chooses.
    pub level: Option<Level>,
    /// What is shown as the program's name; its command line when none.
    pub title: Option<String>,
    /// How gauges are read; none: not at all.
    pub gauging: Option<Gauging>,
    /// Libraries that are loaded into the program before the collector.
    pub preload: Vec<OsString>,
    /// How long a program that was asked to stop may take, ns; none: the usual.
    pub grace: Option<u64>,
    /// More variables for the program.
    pub variables: Vec<(OsString, OsString)>,
    /// The program is started without the collector.
    pub no_collect: bool,
    /// Where the program's output goes.
    pub output: Output,
    /// What the screen does when the program has ended.
    pub on_exit: OnExit,
    /// The job that this rank reports to.
    pub job: Option<JobPlan>,
}

impl Run {
    /// Options of the store for a run in this session.
    pub(crate) fn options(&self, program: &Program, session: &SessionDir) -> Options {
        Options {
            mode: Mode::Live,
            title: self.title.clone().unwrap_or_else(|| program.words().join(" ")),
            began: session.began(),
            ..Options::default()
        }
    }

    /// Looks for programs that use ROCm without the collector, unless none is wanted.
    pub(crate) fn watch(&self, session: &Path, ingest: &Ingest) -> Result<Option<Watch>> {
        let sender = ingest.sender();
        let is_over = limits::is_processor_time_short;
        let watch = (!self.no_collect).then(|| Watch::start(session, is_over, move |report| sender.missed(report)));
        Ok(watch.transpose()?)
    }

    /// Answers questions at the session's socket; without one the run goes on all the same.
    pub(crate) fn answer(
        &self,
        session: &Path,
        store: &Arc<Mutex<Store>>,
        presets: Vec<(String, String)>,
        asked: Option<Asked>,
    ) -> Option<Server> {
        if self.no_collect {
            return None;
        }
        Server::start(session, store.clone(), presets, asked).ok()
    }

    /// How gauges are read.
    pub(crate) fn gauging(&self) -> Gauging {
        self.gauging.clone().unwrap_or_else(Gauging::off)
    }
}

/// Slots of a thread's ring while a recording is made, when the user sets none: 4 MiB.
const RECORD_SLOTS: u64 = 1 << 16;
/// The same for a live run: 2 MiB.
const LIVE_SLOTS: u64 = 1 << 15;

/// A program about to start: its session, and what reads it.
pub(crate) struct Prepared {
    pub(crate) session: SessionDir,
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) recorder: Option<Recorder>,
    /// The line about the level that an earlier check found.
    pub(crate) kept_level: Option<String>,
}

pub(crate) fn prepare(run: &Run, program: &Program) -> Result<Prepared> {
    limits::check_memory()?;
    let is_counting = run.variables.iter().any(|(name, _)| name == ENV_COUNTERS);
    let level = level::start(run.level, run.dispatch_source, is_counting, &|name| {
        std::env::var_os(name)
    })?;
    let words = program.words();
    let installed = embedded::install()?;
    let recorder = match &run.recording {
        Some(path) => {
            let recorder = Recorder::create(path, &words, &topology::read(Path::new("/")))?;
            Some(recorder.with_limit(run.most_bytes))
        }
        None => None,
    };
    let session = SessionDir::create()?;
    session.note_began(boottime())?;
    if let Some(path) = &run.recording {
        session.note_recording(path)?;
    }
    if run.wanted != 0 {
        session.set(control::WANTED, wanted::USUAL | run.wanted)?;
    }
    session.set(control::DISPATCH_SOURCE, run.dispatch_source)?;
    let mut variables = if run.no_collect {
        Vec::new()
    } else {
        launch::environment(&installed, session.path(), &program.path)?
    };
    let is_recorded = recorder.is_some() || run.keeping.is_some();
    let usual = if is_recorded { RECORD_SLOTS } else { LIVE_SLOTS };
    let slots = run.ring_slots.unwrap_or(usual);
    let preloaded = variables.iter_mut().find(|(name, _)| name == "LD_PRELOAD");
    if let Some((_, value)) = preloaded.filter(|_| !run.preload.is_empty()) {
        // What the user names stays in front.
        let mut all = run.preload.join(OsStr::new(":"));
        all.push(":");
        all.push(&value);
        *value = all;
    }
    variables.push((OsString::from(ENV_RING), OsString::from(slots.to_string())));
    let mut kept_level = None;
    if !run.no_collect {
        // What doctor --gpu found here, where nothing else was asked for that contradicts it.
        let allows = |kept: &KeptLevel| {
            level::start(Some(kept.level), run.dispatch_source, is_counting, &|name| {
                std::env::var_os(name)
            })
            .is_ok()
        };
        // The demo's GPU is synthetic.
        let is_demo = words.get(1).is_some_and(|word| word == demo::WORKER);
        let may_be_kept = level.is_none() && !is_demo;
        let kept = may_be_kept.then(doctor::gpu::kept_level).flatten().filter(allows);
        let level = level.or(kept.as_ref().map(|kept| kept.level));
        variables.extend(level.map(|level| (OsString::from(ENV_LEVEL), OsString::from(level.to_string()))));
        let reason = kept
            .as_ref()
            .map(|kept| format!("{} {}", kept.level, kept.explanation()));
        variables.extend(reason.map(|reason| (ENV_LEVEL_REASON.into(), reason.into())));
        kept_level = kept.and_then(|kept| kept.line());
        // For the user, who is at a terminal; no file and no pipe gets the line.
        if std::io::stderr().is_terminal()
            && let Some(line) = doctor::gpu::hint()
        {
            say(&line);
        }
    }
    variables.extend(run.variables.iter().cloned());
    Ok(Prepared {
        session,
        variables,
        recorder,
        kept_level,
    })
}

/// How a program without a screen went.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// How it ended.
    pub exit: Exit,
    /// All that was to be recorded is.
    pub is_whole: bool,
    /// A signal that ends most programs was passed on to it.
    pub was_asked_to_end: bool,
}

impl Ran {
    /// How roctop ends: as the program, but not well when something is missing.
    pub const fn exit(self) -> Exit {
        match self.exit {
            Exit::Code(0) if !self.is_whole => Exit::Code(1),
            exit => exit,
        }
    }
}

/// Runs a program without a screen. With no recording a summary goes to standard error.
pub fn headless(program: &Program, run: &Run, look: &Look) -> Result<Ran> {
    // What is wrong with the settings is said before the program starts.
    let endpoint = run.metrics.map(Endpoint::bind).transpose()?;
    let config = Config::load()?;
    let filter = cli::filter(look.filter.as_deref().unwrap_or(""), &config.presets)?;
    run.output.check_without_screen()?;

    let Prepared {
        mut session,
        variables,
        recorder,
        kept_level,
    } = prepare(run, program)?;
    if let Some(line) = kept_level {
        say(&line);
    }
    let is_recorded = recorder.is_some();
    let keeper = run.keeping.clone().map(|keeping| {
        let origin = Origin::here(&topology::read(Path::new("/")));
        Keeper::start(keeping, program.words(), origin, session.path())
    });
    let keeper = keeper.transpose()?;
    let is_kept = keeper.is_some();
    let is_added_up = !(is_recorded || is_kept) || endpoint.is_some() || run.job.is_some();
    let store = Arc::new(Mutex::new(Store::new(Options {
        aliases: config.aliases,
        thresholds: config.thresholds,
        ..run.options(program, &session)
    })));
    if let Some(endpoint) = endpoint {
        endpoint.serve(store.clone(), keeper.as_ref().map(Keeper::health))?;
    }
    // A recording costs no more than before, until somebody asks.
    let asked = (!is_added_up).then(Asked::default);
    let recorder = recorder.map(|recorder| recorder.reporting(say));
    let live = Live::new(session.path()).owned();
    let signals = keeper.as_ref().map(Keeper::signals);
    let (into, gauging) = (Some(store.clone()), run.gauging());
    let ingest = match keeper {
        Some(keeper) => Ingest::start_keeping(live, into, keeper, &gauging, run.symbols, asked.clone())?,
        None => Ingest::start_when_asked(live, into, recorder, &gauging, run.symbols, asked.clone())?,
    };
    let answers = run.answer(session.path(), &store, config.presets, asked);
    let is_own_signal = |signal: i32| match &signals {
        Some(signals) if run.keep_signal.map(Signal::as_raw) == Some(signal) => {
            signals.fetch_add(1, Ordering::Relaxed);
            true
        }
        _ => false,
    };

    let member = run.job.as_ref().and_then(|plan| {
        // The program runs all the same.
        let started = JobMember::start(plan, session.path(), store.clone());
        started
            .map_err(|error| say(&format!("no part in the job: {error:#}")))
            .ok()
    });
    let command = launch::command(program, &variables, &run.output)?;
    let watch = run.watch(session.path(), &ingest)?;
    session.started();
    let (ended, seen) = run_to_end(command, &session, &ingest.sender(), &is_own_signal);
    let missed = watch.and_then(Watch::stop);
    let read = ingest.stop();
    drop((answers, member));
    let refused = refused(session.path());
    let said = let_go(&session, is_recorded);

    // Until all is written, a signal does not end roctop.
    let (exit, _signals) = ended?;
    let is_whole = !(is_recorded || is_kept) || read.is_ok();
    let unread = read.err().map(|error| format!("{error:#}"));
    // Threads that a program leaves running when it ends in order are often within ranges: export and summary name these.
    let recording = run.recording.as_deref().filter(|_| exit != Exit::Code(0));
    let open = recording.map(left_open).unwrap_or_default();
    let in_flight = in_flight(open.dispatches, exit);
    let ranges = ranges_left_open(&open.ranges);
    // The summary says it where nothing was recorded.
    let missed = missed.filter(|_| is_recorded || is_kept);
    let lines = [
        exit_cause::sentence(exit, &seen),
        in_flight,
        ranges,
        refused,
        missed,
        unread,
        said,
    ];
    for line in lines.into_iter().flatten() {
        say(&line);
    }
    match is_recorded || is_kept {
        true => (),
        false if run.no_collect => say("nothing was recorded, as --no-collect wants it"),
        false => sum_up(&store, filter),
    }
    Ok(Ran {
        exit,
        is_whole,
        was_asked_to_end: seen.sent.iter().any(|(signal, _)| supervise::ENDS.contains(signal)),
    })
}

/// What a program that a signal ended left in flight; none when that is nothing.
fn in_flight(count: usize, exit: Exit) -> Option<String> {
    match count {
        _ if !matches!(exit, Exit::Signal(_)) => None,
        0 => None,
        1 => Some("1 kernel was in flight when the program ended: launched, not complete".into()),
        _ => Some(format!(
            "{count} kernels were in flight when the program ended: launched, not complete"
        )),
    }
}

/// Open work at the end of a recording; one that cannot be read is reported elsewhere.
fn left_open(recording: &Path) -> LeftOpen {
    let read = Recording::open(recording).and_then(|read| read.left_open());
    read.unwrap_or_default()
}

/// The ranges that were open when their process ended. As with rocprofv3, files have no row of them.
pub fn ranges_left_open(ranges: &[Arc<str>]) -> Option<String> {
    const MAX_NAMED: usize = 8;
    const COLUMNS: usize = 60;
    let named = ranges.iter().take(MAX_NAMED);
    let mut names: Vec<String> = named.map(|text| format!("{:?}", elide(text, COLUMNS))).collect();
    let more = ranges.len().saturating_sub(MAX_NAMED);
    names.extend((more > 0).then(|| format!("and {more} more")));
    let were = match ranges.len() {
        0 => return None,
        1 => "1 ROC-TX range was open when the program ended; without an end it has",
        several => &format!("{several} ROC-TX ranges were open when the program ended; without an end they have"),
    };
    Some(format!("{were} no row in exported files: {}", names.join(", ")))
}

/// Runs the program on the terminal as it is; how it ended, and what was seen of signals meanwhile.
fn run_to_end(
    command: Command,
    session: &SessionDir,
    sender: &IngestSender,
    is_own_signal: &dyn Fn(i32) -> bool,
) -> (Result<(Exit, Signals)>, Seen) {
    let mut pid = 0;
    let mut sent = Vec::new();
    let starved = exit_cause::starved();
    let ended = supervise::run_to_end(
        command,
        Terminal::Shared,
        |started| {
            pid = started;
            sender.started(pid);
        },
        |signal, who, step| {
            match step {
                Step::Arrived => return is_own_signal(signal),
                Step::PassedOn => sent.push((signal, Sender::Passed(who.to_owned()))),
                Step::SentToBoth => sent.push((signal, Sender::Both(who.to_owned()))),
            }
            false
        },
    );
    log::follows_output();
    let ended = ended.map(|(status, signals)| (supervise::exit_of(status), signals));
    if let Ok((exit, _)) = &ended {
        sender.exited(pid, *exit);
        // Without this word other viewers say that the program is gone.
        let _ = session.note_end(pid, *exit);
    }
    let seen = Seen {
        sent,
        starved: exit_cause::starved().saturating_sub(starved),
    };
    (ended, seen)
}

/// Removes a session whose program has ended. While others of it go on in the background, their recording is another
/// roctop's from now on. What the user is to know of it.
fn let_go(session: &SessionDir, is_recorded: bool) -> Option<String> {
    let path = session.path();
    let left = if is_recorded { going_on(path) } else { Vec::new() };
    let (done, what) = match left.len() {
        0 => (session.remove(), "removed"),
        _ => (session.follow(), "followed"),
    };
    match done {
        Err(error) => Some(format!("the session {} could not be {what}: {error}", path.display())),
        Ok(()) if left.is_empty() => None,
        Ok(()) => Some(format!(
            "processes that go on in the background: {}; so does the recording, until the last ends ('roctop attach {}' watches)",
            left.len(),
            path.file_name().unwrap_or_default().to_string_lossy()
        )),
    }
}

/// A summary of what passes a filter, on standard error.
pub(crate) fn sum_up(store: &Mutex<Store>, filter: Filter) {
    let snapshot = store
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .snapshot(Fresh::All);
    let whole = snapshot.values.totals;
    log::begin_line();
    // Nobody reads it when standard error is closed.
    let _ = summary::write_table(
        &ui::export::only(snapshot, filter),
        &whole,
        &mut std::io::stderr().lock(),
    );
}

/// One line on standard error.
pub fn say(line: &str) {
    log::line(line);
}

/// Says several.
pub fn say_all(lines: &[String]) {
    for line in lines {
        say(line);
    }
}

/// The exit code that passes on how the program ended; by a signal it does not return.
pub fn pass_on(exit: Exit) -> u8 {
    match exit {
        Exit::Code(code) => code as u8,
        Exit::Signal(signal) => reraise::die_by(signal),
        Exit::Unknown => 1,
    }
}
