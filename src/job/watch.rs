//! The state of a job that a screen shows: it follows the reports of all nodes.

use super::asked::{events_of, place_of};
use super::events::Folder as EventsFolder;
use super::node::boot_id;
use super::pack::unpack;
use super::realtime_ahead;
use crate::cli::usage_error::UsageError;
use crate::clocks::boottime;
use crate::model::job::{Job, NodeClock, decode_node};
use crate::model::{Fresh, Snapshot};
use crate::session::sessions;
use crate::ui::run::Shown;
use crate::units;
use crate::waker;
use anyhow::{Result, anyhow, bail};
use roctop_job::{Clock, Connection, Daemon, Event, Folder, Name, Reason, Transport, one_node};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// How to start one.
const START: &str = "; start one: srun roctop record --job -o runs -- ./app";
/// Between two looks whether the screen has ended.
const LOOK: Duration = Duration::from_millis(200);
/// How much of a rank's past is fetched, seconds.
const EVENTS_SECONDS: u32 = 30;
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

    /// The node of a rank.
    fn node_of(&self, rank: u32) -> Option<Name> {
        let job = self.latest.as_ref()?.job.as_deref()?;
        let place = job.ranks.iter().position(|row| row.rank == rank)?;
        let number = job.node_of(place as u32)?.number;
        let found = self.numbers.iter().find(|(_, known)| **known == number);
        found.map(|(name, _)| name.clone())
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

/// Where the events of a rank are.
pub(crate) enum RankEvents {
    /// In a session of this machine.
    Here(PathBuf),
    /// In a copy, which goes when this is dropped.
    Fetched(EventsFolder),
}

/// A job that is watched.
pub(crate) struct Watched {
    name: Name,
    network: Daemon,
    /// The job's folder, if it is on this machine: its last process removes it.
    folder: Option<PathBuf>,
    state: Mutex<State>,
}

impl Watched {
    /// A job of the user.
    ///
    /// Errors: there is no such job, or its keys are not the user's alone.
    pub(crate) fn find(name: &str) -> Result<Self> {
        let (job, network) = network(name)?;
        Ok(Self {
            network,
            folder: Some(Folder::of(&roctop_job::jobs(&variable)?, &job).path().to_owned()),
            state: Mutex::new(State::new(&job)),
            name: job,
        })
    }

    /// The job of a key in a file, whose root listens at `HOST:PORT`: where no home directory is shared.
    ///
    /// Errors: the file has no key, is not the user's alone, or the key has expired.
    pub(crate) fn connect(address: &str, key: &Path) -> Result<Self> {
        let (job, network) = roctop_job::watch_with_key(address, key)?;
        Ok(Self {
            network,
            folder: None,
            state: Mutex::new(State::new(&job)),
            name: job,
        })
    }

    /// The job.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The events of a rank: its session if that is on this machine, else its last events, fetched from its node. It takes
    /// seconds.
    ///
    /// Errors: the rank is not known or has ended, or its node does not answer.
    pub(crate) fn events_of(&self, rank: u32) -> Result<RankEvents> {
        let Some(node) = self.lock().node_of(rank) else {
            bail!("it is not known");
        };
        let place = place_of(&self.network, &node, rank)?;
        if place.boot == boot_id() && sessions().iter().any(|session| session.path == place.session) {
            return Ok(RankEvents::Here(place.session));
        }
        let packed = events_of(&self.network, &node, rank, EVENTS_SECONDS)?;
        let folder = EventsFolder::new()?;
        unpack(&packed, &folder.recording())?;
        Ok(RankEvents::Fetched(folder))
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
        let folder = self.folder.as_ref();
        if folder.is_some_and(|folder| matches!(folder.try_exists(), Ok(false))) {
            let state = &mut *self.lock();
            state.is_new |= state.job.over();
        }
    }

    /// What the user is to know of connections and reports that were not taken, and of a root that is not reached.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let failed = self
            .network
            .connections()
            .into_iter()
            .filter_map(|connection| match connection {
                Connection::Failed(why) => Some(format!("the job's root is not reached: {why}")),
                Connection::Pending | Connection::Open => None,
            });
        // A job that has ended has no root.
        let is_over = matches!(self.folder.as_ref().map(|folder| folder.try_exists()), Some(Ok(false)));
        let failed = failed.filter(|_| !is_over);
        self.lock().troubles().into_iter().chain(failed).collect()
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

/// The network of a job of the user.
///
/// Errors: there is no such job, or its keys are not the user's alone.
pub(super) fn network(name: &str) -> Result<(Name, Daemon)> {
    let job = Name::new(name).map_err(|error| UsageError(error.to_string()))?;
    let jobs = roctop_job::jobs(&variable)?;
    let network = roctop_job::watch(&jobs, &job).map_err(|error| unknown(error, &jobs))?;
    Ok((job, network))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn known(jobs: &Path) -> Vec<String> {
    let folders = roctop_job::list(jobs).unwrap_or_default();
    folders.iter().map(|folder| folder.job().to_string()).collect()
}

/// Names of the user's jobs; none if their folder cannot be read.
pub(crate) fn job_names() -> Vec<String> {
    roctop_job::jobs(&variable).map_or_else(|_| Vec::new(), |jobs| known(&jobs))
}

/// Writes a key of a job for another machine, and how it is used.
///
/// Errors: there is no such job, it has no network, or the file is there or cannot be written.
pub fn write_key(name: &str, file: &Path, out: &mut dyn std::io::Write) -> Result<()> {
    let job = Name::new(name).map_err(|error| UsageError(error.to_string()))?;
    let jobs = roctop_job::jobs(&variable)?;
    let key = roctop_job::viewer_key(&jobs, &job).map_err(|error| unknown(error, &jobs))?;
    let Some(root) = Folder::of(&jobs, &job).root()? else {
        bail!("no root of job {job} has written its address yet");
    };
    if let Some(host) = one_node(&root) {
        bail!("job {job} has one node, {host}, and no network; 'roctop record --job --job-host HOST' gives it one");
    }
    key.write(file)?;
    let seconds = key.expires().duration_since(SystemTime::now()).unwrap_or_default();
    writeln!(
        out,
        "roctop job --connect {root} --key {}\nthe key is valid for {}; who has it can watch the job and ask its ranks",
        file.display(),
        units::duration(u64::try_from(seconds.as_nanos()).unwrap_or(u64::MAX))
    )?;
    Ok(())
}

/// The error of a job that has no keys here.
fn unknown(error: roctop_job::Error, jobs: &Path) -> anyhow::Error {
    let others = known(jobs);
    anyhow!(error).context(if others.is_empty() {
        format!("no job of yours runs here{START}")
    } else {
        format!("your jobs here: {}", others.join(", "))
    })
}

/// The user's jobs as a table.
pub fn print_jobs(out: &mut dyn std::io::Write) -> Result<()> {
    let jobs = roctop_job::jobs(&variable)?;
    let mut text = String::new();
    for folder in roctop_job::list(&jobs)? {
        let root = folder.root()?.unwrap_or_else(|| "no root yet".to_owned());
        let root = one_node(&root).map_or(root.clone(), |host| format!("{host}, its only node"));
        let _ = writeln!(text, "{:<24} {root}", folder.job().to_string());
    }
    if text.is_empty() {
        writeln!(out, "no job of yours runs here{START}")?;
    } else {
        write!(out, "{:<24} ROOT\n{text}", "JOB")?;
    }
    Ok(())
}
