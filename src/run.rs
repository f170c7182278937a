//! `roctop APP`, `roctop record` and `roctop demo`: a program from start to end.

use crate::cli::{self, Look, OnExit};
use crate::config::Config;
use crate::death;
use crate::embedded;
use crate::fate::{self, Seen};
use crate::item::Exit;
use crate::launch::{self, Output, Program};
use crate::metrics::Endpoint;
use crate::model::{Fresh, Mode, Options, Store};
use crate::pump::{Gauging, Pump};
use crate::recording::Recorder;
use crate::session::{Live, SessionDir, boottime, going_on, refused};
use crate::{summary, supervise, topology, ui};
use anyhow::Result;
use roctop_ring::session::{ENV_RING, control, wanted};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How a program is run.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Write a recording here.
    pub recording: Option<PathBuf>,
    /// Bytes of records that the recording keeps, about; the oldest go first.
    pub most_bytes: Option<u64>,
    /// Where the metrics are asked for.
    pub metrics: Option<std::net::SocketAddr>,
    /// Slots of an application thread's ring.
    pub ring_slots: Option<u64>,
    /// What is recorded besides the usual, bits of `roctop_ring::session::wanted`.
    pub wanted: u64,
    /// One of [`roctop_ring::session::source`].
    pub dispatch_source: u64,
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
}

pub(crate) fn prepare(job: &Job, program: &Program) -> Result<Prepared> {
    let words = program.words();
    let installed = embedded::install()?;
    let recorder = match &job.recording {
        Some(path) => {
            let recorder = Recorder::create(path, &words, &topology::read(Path::new("/")))?;
            Some(recorder.with_limit(job.most_bytes))
        }
        None => None,
    };
    let session = SessionDir::create()?;
    if let Some(path) = &job.recording {
        session.note_recording(path)?;
    }
    if job.wanted != 0 {
        session.set(control::WANTED, wanted::USUAL | job.wanted)?;
    }
    session.set(control::DISPATCH_SOURCE, job.dispatch_source)?;
    let mut variables = if job.no_collect {
        Vec::new()
    } else {
        launch::environment(&installed, session.path(), &program.path)
    };
    let usual = if recorder.is_some() { RECORD_SLOTS } else { LIVE_SLOTS };
    let slots = job.ring_slots.unwrap_or(usual);
    let preloaded = variables.iter_mut().find(|(name, _)| name == "LD_PRELOAD");
    if let Some((_, value)) = preloaded.filter(|_| !job.preload.is_empty()) {
        // What the user names stays in front.
        let mut all = job.preload.join(OsStr::new(":"));
        all.push(":");
        all.push(&value);
        *value = all;
    }
    variables.push((OsString::from(ENV_RING), OsString::from(slots.to_string())));
    variables.extend(job.variables.iter().cloned());
    Ok(Prepared {
        session,
        variables,
        recorder,
    })
}

/// How a program without a screen went.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// How it ended.
    pub exit: Exit,
    /// All that was to be recorded is.
    pub is_whole: bool,
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
pub fn headless(program: &Program, job: &Job, look: &Look) -> Result<Ran> {
    let endpoint = job.metrics.map(Endpoint::bind).transpose()?;
    // What is wrong with the settings is said before the program starts.
    let config = Config::load()?;
    let filter = cli::filter(look.filter.as_deref().unwrap_or(""), &config.presets)?;
    job.output.check(false)?;
    let Prepared {
        session,
        variables,
        recorder,
    } = prepare(job, program)?;
    let is_recorded = recorder.is_some();
    let recorder = recorder.map(|recorder| recorder.telling(tell));
    let is_shown = !is_recorded || endpoint.is_some();
    let store = is_shown.then(|| {
        let options = Options {
            mode: Mode::Live,
            aliases: config.aliases,
            thresholds: config.thresholds,
            title: job.title.clone().unwrap_or_else(|| program.words().join(" ")),
            began: Some(boottime()),
            ..Options::default()
        };
        Arc::new(Mutex::new(Store::new(options)))
    });
    let gauging = job.gauging.clone().unwrap_or_else(Gauging::off);
    if let (Some(endpoint), Some(store)) = (endpoint, &store) {
        endpoint.serve(store.clone())?;
    }
    let pump = Pump::start(Live::new(session.path()).owned(), store.clone(), recorder, &gauging)?;
    let sender = pump.sender();
    let mut pid = 0;
    let (mut came, starved) = (Vec::new(), fate::starved());
    let ended = supervise::run_to_end(
        launch::command(program, &variables, &job.output)?,
        false,
        |started| pid = started,
        |signal, who| came.push((signal.as_raw(), who.to_owned())),
    );
    let exit = ended.as_ref().ok().map(|status| supervise::exit_of(*status));
    if let Some(exit) = exit {
        sender.exited(pid, exit);
    }
    let read = pump.stop();
    let refused = refused(session.path());
    let left = if is_recorded {
        going_on(session.path())
    } else {
        Vec::new()
    };
    let removed = if left.is_empty() {
        session.remove()
    } else {
        session.follow()
    };
    let exit = exit.map_or_else(|| ended.map(supervise::exit_of), Ok)?;
    let seen = Seen {
        came,
        sent: Vec::new(),
        starved: fate::starved().saturating_sub(starved),
    };
    if let Some(fate) = fate::told(exit, &seen) {
        tell(&fate);
    }
    if let Some(refused) = refused {
        tell(&refused);
    }
    let is_whole = !is_recorded || read.is_ok();
    if let Err(error) = read {
        tell(&format!("{error:#}"));
    }
    if let Err(error) = removed {
        tell(&format!(
            "the session {} could not be {}: {error}",
            session.path().display(),
            if left.is_empty() { "removed" } else { "followed" }
        ));
    } else if !left.is_empty() {
        let name = session.path().file_name().unwrap_or_default().to_string_lossy();
        tell(&format!(
            "processes that go on in the background: {}; so does the recording, until the last ends ('roctop attach {name}' watches)",
            left.len()
        ));
    }
    if let Some(store) = store.filter(|_| !is_recorded) {
        let snapshot = store
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .snapshot(Fresh::All);
        let mut error_stream = std::io::stderr().lock();
        let _ = if job.no_collect {
            writeln!(error_stream, "roctop: nothing was recorded, as --no-collect wants it")
        } else {
            let whole = snapshot.values.totals;
            summary::write_table(&ui::export::only(snapshot, filter), &whole, &mut error_stream)
        };
    }
    Ok(Ran { exit, is_whole })
}

/// One line on standard error.
pub fn tell(line: &str) {
    // Nobody is left to be told when standard error is closed.
    let _ = writeln!(std::io::stderr(), "roctop: {line}");
}

/// Says several.
pub fn tell_all(lines: &[String]) {
    for line in lines {
        tell(line);
    }
}

/// The exit code that passes on how the program ended; by a signal it does not return.
pub fn pass_on(exit: Exit) -> u8 {
    match exit {
        Exit::Code(code) => code as u8,
        Exit::Signal(signal) => death::die_by(signal),
        Exit::Unknown => 1,
    }
}
