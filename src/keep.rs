//! The flight recorder: holds the last seconds of a session, and writes them when a condition becomes true, when a Unix signal
//! arrives, or when the user asks.

pub mod health;
pub mod memory;
pub mod request;

use crate::clocks::boottime;
use crate::item::Nanos;
use crate::log;
use crate::model::trigger::{Answer, Condition, Fired, Limits, Schedule, Watch};
use crate::recording::{Destination, Hold, HoldResult, Origin, Trigger, WrittenHold, adopt_partial, excess, kept};
use crate::session::SessionDir;
use crate::session::keep::{Answers, Outcome};
use crate::units;
use anyhow::{Context, Result, bail};
use health::{Health, Numbers};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// Maximum number of triggers of a recording that its manifest describes, apart from the first.
const MAX_ALSO: usize = 20;
/// Maximum length of a condition in a directory's name.
const MAX_SLUG: usize = 40;

/// What is kept, and when it is written.
#[derive(Clone, Debug)]
pub struct Keeping {
    /// Directory of the recordings.
    pub directory: PathBuf,
    /// How much of the past is held, ns.
    pub keep: Nanos,
    /// How long a recording goes on after its trigger, ns.
    pub after: Nanos,
    /// Minimum time between two recordings, ns.
    pub interval: Nanos,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// Maximum number of recordings in the directory.
    pub max_recordings: usize,
    /// Maximum size of all recordings in the directory, bytes.
    pub max_bytes: Option<u64>,
    /// Memory for what is held, bytes; `None`: the usual limit.
    pub memory: Option<u64>,
}

/// A recording that is being written.
struct Active {
    path: PathBuf,
    trigger: Trigger,
    /// Requests that it answers.
    requests: Vec<u64>,
}

/// Why a recording is wanted.
enum Cause {
    Condition(Fired),
    Signal,
    Request(u64),
}

/// The flight recorder of a session.
pub struct Keeper {
    hold: Hold,
    watch: Watch,
    schedule: Schedule,
    options: Keeping,
    command: Vec<String>,
    origin: Origin,
    session: Option<SessionDir>,
    answers: Answers,
    /// The last request that was answered.
    request: u64,
    active: Option<Active>,
    writing: Option<(Active, JoinHandle<HoldResult>)>,
    /// Signals of the kind that triggers.
    signals: Arc<AtomicU64>,
    signals_seen: u64,
    health: Arc<Health>,
    failed: u64,
    is_short: bool,
}

impl Keeper {
    /// Starts to hold the records of a session.
    ///
    /// Errors: the directory cannot be created or read.
    pub fn start(options: Keeping, command: Vec<String>, origin: Origin, session: &Path) -> Result<Self> {
        let directory = &options.directory;
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create the directory {}", directory.display()))?;
        let adopted = adopt_partial(directory).with_context(|| format!("cannot read {}", directory.display()))?;
        for path in adopted {
            log::line(&format!(
                "{}: its writer was killed; it has what was written",
                path.display()
            ));
        }
        let max_bytes = options.memory.unwrap_or_else(|| memory::limit(Path::new("/")));
        let session = SessionDir::open(session)?;
        let answers = Answers::default();
        answers.write(session.path())?;
        let limits = Limits {
            after: options.after,
            interval: options.interval,
        };
        Ok(Self {
            hold: Hold::new(options.keep, max_bytes),
            watch: Watch::new(options.conditions.clone(), options.keep),
            schedule: Schedule::new(limits),
            health: Arc::new(Health::new(Numbers {
                asked: options.keep,
                max_bytes,
                ..Numbers::default()
            })),
            options,
            command,
            origin,
            session: Some(session),
            answers,
            request: 0,
            active: None,
            writing: None,
            signals: Arc::default(),
            signals_seen: 0,
            failed: 0,
            is_short: false,
        })
    }

    /// Counts signals that trigger.
    pub fn signals(&self) -> Arc<AtomicU64> {
        self.signals.clone()
    }

    /// Its numbers, for a metrics endpoint.
    pub fn health(&self) -> Arc<Health> {
        self.health.clone()
    }

    /// What takes the records, and what checks the conditions.
    pub(crate) const fn parts(&mut self) -> (&mut Hold, &mut Watch) {
        (&mut self.hold, &mut self.watch)
    }

    /// Acts on what came since the last call: a part of a poll, maybe. Who asks by hand asks now, which may be long after the
    /// last whole poll.
    pub(crate) fn act(&mut self) {
        self.take_written();
        let now = self.hold.now();
        let (fired, more) = self.watch.take_fired();
        for one in fired {
            self.cause(now, Cause::Condition(one));
        }
        if more > 0 {
            self.schedule.more(more);
            if let Some(active) = &mut self.active {
                active.trigger.also_count += more;
            }
        }
        let signals = self.signals.load(Ordering::Relaxed);
        if signals > self.signals_seen {
            self.signals_seen = signals;
            self.cause(boottime(), Cause::Signal);
        }
        let request = self.session.as_ref().map_or(0, SessionDir::keep_request);
        if request != self.request {
            self.request = request;
            self.cause(boottime(), Cause::Request(request));
        }
        if self.hold.has_failed() {
            self.schedule.ends();
            self.end();
        } else if self.schedule.is_over(now) {
            self.end();
        }
        self.report();
    }

    /// Writes what is to be written, and waits for it.
    ///
    /// Errors: recordings could not be written.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.act();
        if self.schedule.ends() {
            self.end();
        }
        if let Some((active, writer)) = self.writing.take() {
            self.written(active, writer);
        }
        self.report();
        if self.failed > 0 {
            let failed = units::counted(self.failed, "recording", "recordings");
            bail!("{failed} could not be written, for the reasons above");
        }
        Ok(())
    }

    fn cause(&mut self, now: Nanos, cause: Cause) {
        let is_by_hand = !matches!(cause, Cause::Condition(_));
        let answer = self.schedule.trigger(now, is_by_hand);
        let request = match cause {
            Cause::Request(request) => Some(request),
            _ => None,
        };
        let (condition, reason, at) = match cause {
            Cause::Condition(fired) => {
                let source = self.watch.condition(fired.condition).map_or("", |known| &known.source);
                (source.to_owned(), fired.reason, fired.at)
            }
            Cause::Signal => ("signal".to_owned(), String::new(), now),
            Cause::Request(_) => ("by hand".to_owned(), String::new(), now),
        };
        match (answer, &mut self.active) {
            (Answer::Begins, _) => {
                let state = self.hold.state();
                let trigger = Trigger {
                    condition,
                    reason,
                    at,
                    time: log::utc(SystemTime::now()),
                    held_seconds: state.span as f64 / 1e9,
                    is_short: state.is_short,
                    asked_seconds: self.options.keep as f64 / 1e9,
                    ..Trigger::default()
                };
                self.begin(trigger, request);
            }
            (Answer::Joins, Some(active)) => {
                active.trigger.also_count += 1;
                if active.trigger.also.len() < MAX_ALSO {
                    active.trigger.also.push(format!("{condition}: {reason}"));
                }
                let path = active.path.clone();
                if let Some(request) = request {
                    active.requests.push(request);
                    self.answer(request, Outcome::Begun(path));
                }
            }
            _ => {
                if let Some(request) = request {
                    let text = "the last recording is still being written";
                    self.answer(request, Outcome::Refused(text.into()));
                }
            }
        }
    }

    fn begin(&mut self, trigger: Trigger, request: Option<u64>) {
        let path = self.path(&trigger);
        log::event(
            "trigger",
            &format!("{}; recording to {}", trigger.line(), path.display()),
            json!({ "condition": trigger.condition, "reason": trigger.reason, "path": path }),
        );
        let begun = self.hold.begin(Destination {
            path: path.clone(),
            command: self.command.clone(),
            origin: self.origin.clone(),
            trigger: trigger.clone(),
        });
        if let Err(error) = begun {
            self.failed += 1;
            self.schedule.ends();
            self.schedule.written();
            log::line(&format!("no recording can be written: {error}"));
            if let Some(request) = request {
                self.answer(request, Outcome::Refused(error.to_string()));
            }
            return;
        }
        if let Some(request) = request {
            self.answer(request, Outcome::Begun(path.clone()));
        }
        self.active = Some(Active {
            path,
            trigger,
            requests: request.into_iter().collect(),
        });
    }

    /// A new name: the time, and the condition's words.
    fn path(&self, trigger: &Trigger) -> PathBuf {
        let mut slug = String::new();
        for c in trigger.condition.chars() {
            if c.is_ascii_alphanumeric() || c == '.' {
                slug.push(c);
            } else if !slug.ends_with('-') && !slug.is_empty() {
                slug.push('-');
            }
            if slug.len() >= MAX_SLUG {
                break;
            }
        }
        let time = trigger.time.replace(['-', ':'], "");
        let name = format!("{time}-{}", slug.trim_end_matches(['-', '.']));
        let mut path = self.options.directory.join(&name);
        let mut number = 1;
        while path.exists() {
            number += 1;
            path = self.options.directory.join(format!("{name}-{number}"));
        }
        path
    }

    fn end(&mut self) {
        let Some(active) = self.active.take() else { return };
        if let Some(writer) = self.hold.end(active.trigger.clone()) {
            self.writing = Some((active, writer));
        }
    }

    fn take_written(&mut self) {
        let is_done = |(_, writer): &mut (_, JoinHandle<_>)| writer.is_finished();
        if let Some((active, writer)) = self.writing.take_if(is_done) {
            self.written(active, writer);
        }
    }

    /// Reports how the writing of a recording ended, and removes older ones that are too many.
    fn written(&mut self, active: Active, writer: JoinHandle<HoldResult>) {
        let result = writer.join();
        self.schedule.written();
        let outcome = match result {
            Ok(Ok(written)) => {
                report_written(&written, &active.trigger);
                Outcome::Written(written.path)
            }
            Ok(Err(error)) => self.has_failed(&active, &error.with_causes()),
            Err(_) => self.has_failed(&active, "the writing thread ended by a fault of roctop's own"),
        };
        for request in active.requests {
            self.answer(request, outcome.clone());
        }
        self.remove_excess();
    }

    fn has_failed(&mut self, active: &Active, text: &str) -> Outcome {
        self.failed += 1;
        let path = &active.path;
        let line = format!("{text}; nothing is left of {}; roctop goes on", path.display());
        log::event(
            "failed",
            &line,
            json!({ "path": path, "condition": active.trigger.condition }),
        );
        Outcome::Refused(text.to_owned())
    }

    fn remove_excess(&self) {
        let all = kept(&self.options.directory);
        for at in excess(&all, self.options.max_recordings, self.options.max_bytes) {
            let path = &all[at].path;
            match std::fs::remove_dir_all(path) {
                Ok(()) => {
                    let text = format!("{} was removed: there are newer recordings", path.display());
                    log::event("removed", &text, json!({ "path": path }));
                }
                Err(error) => log::line(&format!("cannot remove {}: {error}", path.display())),
            }
        }
    }

    fn answer(&mut self, request: u64, outcome: Outcome) {
        self.answers.put(request, outcome);
        if let Some(session) = &self.session
            && let Err(error) = self.answers.write(session.path())
        {
            log::line(&format!("'roctop keep' gets no answer: {}", error.with_causes()));
        }
    }

    /// Shows what is held to others, and reports once when that is less than asked.
    fn report(&mut self) {
        let state = self.hold.state();
        if state.is_short && !std::mem::replace(&mut self.is_short, state.is_short) {
            let (held, asked) = (state.span as f64 / 1e9, self.options.keep as f64 / 1e9);
            let limit = units::bytes(self.health.get().max_bytes);
            let text = format!(
                "holds {held:.0} s of {asked:.0} s: the records take more than {limit} of memory (--keep-memory)"
            );
            log::event("short", &text, json!({ "held_seconds": held, "asked_seconds": asked }));
        }
        self.is_short = state.is_short;
        let counts = self.schedule.counts();
        let failed = self.failed;
        self.health.change(|numbers| {
            numbers.held = state.span;
            numbers.bytes = state.bytes;
            numbers.triggers = counts.triggers;
            numbers.recordings = counts.recordings;
            numbers.suppressed = counts.suppressed;
            numbers.failed = failed;
        });
    }
}

fn report_written(written: &WrittenHold, trigger: &Trigger) {
    let path = written.path.display();
    let records = units::counted(written.records, "record", "records");
    let mut parts = vec![format!("{path}: {records}")];
    if written.missing > 0 {
        let missing = units::counted(written.missing, "record is", "records are");
        parts.push(format!(
            "{missing} missing, because the disk was slower than the program"
        ));
    }
    if trigger.also_count > 0 {
        let also = units::counted(trigger.also_count, "more trigger", "more triggers");
        parts.push(format!("{also} in it"));
    }
    log::event(
        "recording",
        &parts.join("; "),
        json!({
            "path": written.path,
            "records": written.records,
            "missing": written.missing,
            "condition": trigger.condition,
        }),
    );
}
