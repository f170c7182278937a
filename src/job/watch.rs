//! The state of a job that a screen shows: it follows the reports of all nodes.

use super::realtime_ahead;
use crate::cli::usage_error::UsageError;
use crate::clocks::boottime;
use crate::model::job::{Job, NodeClock, decode_node};
use crate::model::{Fresh, Snapshot};
use crate::ui::run::Shown;
use crate::waker;
use anyhow::{Result, anyhow};
use roctop_job::{Clock, Daemon, Event, Folder, Name, Reason, Transport};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How to start one.
const START: &str = "; start one: srun roctop record --job -o runs -- ./app";
/// Between two looks whether the screen has ended.
const LOOK: Duration = Duration::from_millis(200);
/// Age up to which a snapshot of a job is used again, ns: reports come once a second.
const FRESH_FOR: u64 = 400_000_000;

/// The state of a job as this process knows it.
struct State {
    job: Job,
    numbers: HashMap<Name, u32>,
    clocks: HashMap<Name, Clock>,
    /// Refused connections by reason, with the address of the last one.
    refused: BTreeMap<String, (u64, String)>,
    /// Reports that could not be read, and why the last one could not.
    unread: Option<(u64, String)>,
    is_new: bool,
    latest: Option<Arc<Snapshot>>,
}

impl State {
    fn new(job: &Name) -> Self {
        Self {
            job: Job::new(job),
            numbers: HashMap::new(),
            clocks: HashMap::new(),
            refused: BTreeMap::new(),
            unread: None,
            is_new: true,
            latest: None,
        }
    }

    fn number(&mut self, node: &Name) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(node.clone()).or_insert(next)
    }

    /// Takes what came at `now`, CLOCK_BOOTTIME ns, when CLOCK_REALTIME was `ahead` ns ahead of it.
    fn take(&mut self, event: Event, now: u64, ahead: i64) {
        self.is_new = true;
        match event {
            Event::Known { node, info, .. } => {
                let number = self.number(&node);
                self.job.node(number, &String::from_utf8_lossy(&info));
            }
            Event::Report { node, report } => match decode_node(&report) {
                Ok(report) => {
                    let number = self.number(&node);
                    if let Some(clock) = self.clocks.get(&node) {
                        let ahead = [report.realtime_ahead, ahead];
                        let clock = NodeClock::of_realtime(clock.offset_ns, clock.error_ns, ahead);
                        self.job.clock(number, clock);
                    }
                    self.job.report(number, report, now);
                }
                Err(error) => {
                    let count = self.unread.as_ref().map_or(0, |unread| unread.0);
                    self.unread = Some((count + 1, format!("{node}: {error}")));
                }
            },
            Event::Clock { node, clock } => {
                self.clocks.insert(node, clock);
            }
            Event::Gone { node, reason } => {
                let number = self.number(&node);
                match reason {
                    Reason::Left => self.job.left(number),
                    _ => self.job.gone(number, now),
                }
            }
            Event::Refused { from, reason, count } => {
                let known = self.refused.entry(reason.to_string()).or_default();
                *known = (known.0.saturating_add(count), from);
            }
        }
    }

    /// What the user is to know of connections and reports that were not taken.
    fn troubles(&self) -> Vec<String> {
        let refused = self.refused.iter().map(|(reason, (count, from))| {
            let plural = if *count == 1 {
                "connection was"
            } else {
                "connections were"
            };
            format!("{count} {plural} refused: {reason} (the last from {from})")
        });
        let unread = self.unread.iter().map(|(count, why)| {
            let plural = if *count == 1 { "report" } else { "reports" };
            format!("{count} {plural} could not be read; the last: {why}")
        });
        refused.chain(unread).collect()
    }
}

/// A job that is watched.
pub(crate) struct Watched {
    network: Daemon,
    /// The job's folder: its last process removes it.
    folder: PathBuf,
    state: Mutex<State>,
}

impl Watched {
    /// A job of the user.
    ///
    /// Errors: there is no such job, or its keys are not the user's alone.
    pub(crate) fn find(name: &str) -> Result<Self> {
        let job = Name::new(name).map_err(|error| UsageError(error.to_string()))?;
        let jobs = roctop_job::jobs(&variable)?;
        let network = roctop_job::watch(&jobs, &job).map_err(|error| {
            let others = known(&jobs);
            anyhow!(error).context(if others.is_empty() {
                format!("no job of yours runs here{START}")
            } else {
                format!("your jobs here: {}", others.join(", "))
            })
        })?;
        Ok(Self {
            network,
            folder: Folder::of(&jobs, &job).path().to_owned(),
            state: Mutex::new(State::new(&job)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the job until `is_over`.
    pub(crate) fn follow(&self, is_over: &AtomicBool) {
        let mut subscription = self.network.subscribe();
        while !is_over.load(Ordering::Relaxed) && !subscription.is_closed() {
            let Some(event) = subscription.next_within(LOOK) else {
                self.end_if_over();
                continue;
            };
            let (now, ahead) = (boottime(), realtime_ahead());
            let mut state = self.lock();
            state.take(event, now, ahead);
            // What has come together is taken together.
            while let Some(event) = subscription.try_next() {
                state.take(event, now, ahead);
            }
            drop(state);
            waker::wake();
        }
    }

    /// Without its folder the job has ended.
    fn end_if_over(&self) {
        if matches!(self.folder.try_exists(), Ok(false)) {
            let state = &mut *self.lock();
            state.is_new |= state.job.over();
        }
    }

    /// What the user is to know of connections and reports that were not taken.
    pub(crate) fn troubles(&self) -> Vec<String> {
        self.lock().troubles()
    }
}

impl Shown for Watched {
    fn snapshot(&self, _: Fresh) -> Arc<Snapshot> {
        let now = boottime();
        let state = &mut *self.lock();
        let is_recent = |latest: &&Arc<Snapshot>| now.saturating_sub(latest.now) < FRESH_FOR;
        if let Some(latest) = state.latest.as_ref().filter(is_recent) {
            return latest.clone();
        }
        state.is_new = false;
        let made = Arc::new(state.job.values(now).snapshot());
        state.latest = Some(made.clone());
        made
    }

    fn is_new(&self) -> bool {
        self.lock().is_new
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn known(jobs: &Path) -> Vec<String> {
    let folders = roctop_job::list(jobs).unwrap_or_default();
    folders.iter().map(|folder| folder.job().to_string()).collect()
}

/// The user's jobs as a table.
pub fn print_jobs(out: &mut dyn std::io::Write) -> Result<()> {
    let jobs = roctop_job::jobs(&variable)?;
    let mut text = String::new();
    for folder in roctop_job::list(&jobs)? {
        let root = folder.root()?.unwrap_or_else(|| "no root yet".to_owned());
        let _ = writeln!(text, "{:<24} {root}", folder.job().to_string());
    }
    if text.is_empty() {
        writeln!(out, "no job of yours runs here{START}")?;
    } else {
        write!(out, "{:<24} ROOT\n{text}", "JOB")?;
    }
    Ok(())
}
