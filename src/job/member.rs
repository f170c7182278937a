//! A rank's roctop in its job: once a second it hands over the sums of its store.

use super::node::Node;
use super::parts;
use super::question::Hello;
use crate::cli::usage_error::UsageError;
use crate::clocks::{boottime, realtime};
use crate::log;
use crate::model::job::{Measure, Placement, encode_rank};
use crate::model::{Fresh, Store};
use anyhow::Result;
use roctop_job::launcher::{self, placement};
use roctop_job::{DEFAULT_LIMIT, Name, Participant, Plan};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two sums of a rank, ns. They are made as a second of CLOCK_BOOTTIME begins; the node reports in its middle.
const INTERVAL: u64 = 1_000_000_000;

/// What `--job` asks for, and this process's place in the job.
#[derive(Clone, Debug)]
pub struct JobPlan {
    job: Name,
    place: launcher::Placement,
    /// The host name or address at which the root listens; none for a job of one node.
    listen: Option<String>,
    /// How long the job's keys are valid.
    limit: Duration,
}

impl JobPlan {
    /// The plan for `--job` or `--job=NAME`, and `--job-host HOST`, with the variables of this process.
    ///
    /// Errors: nothing names the job, or the name has characters that no job's name has.
    pub fn new(name: &str, host: Option<&str>, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let own = rustix::system::uname();
        let own = own.nodename().to_string_lossy().into_owned();
        let place = placement(variable, &own);
        let named = match name {
            "" => place.job.clone(),
            name => Some(Name::new(name).map_err(|error| UsageError(format!("--job: {error}")))?),
        };
        let job = named.ok_or_else(|| {
            let text = "--job: no variable of a scheduler or launcher names the job; name it: --job=NAME, the same for all ranks";
            UsageError(text.to_owned())
        })?;
        // A job of one node has no network, unless the user names an address.
        let usual = (!launcher::is_one_node(variable)).then_some(own);
        Ok(Self {
            job,
            listen: host.map(str::to_owned).or(usual),
            limit: launcher::limit(variable, realtime() / 1_000_000_000).unwrap_or(DEFAULT_LIMIT),
            place,
        })
    }
}

impl JobPlan {
    /// What is wrong with where this process would listen, if it has the root: other nodes cannot reach it.
    fn trouble(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let is_root = self.place.rank == 0 && !launcher::is_one_node(variable);
        let listen = self.listen.as_deref()?;
        let found = (listen, 0).to_socket_addrs().ok()?;
        let is_local = |address: SocketAddr| address.ip().is_loopback();
        (is_root && found.map(is_local).next()?).then(|| {
            format!(
                "{listen} is this machine's own address, which other nodes cannot reach: name one with --job-host HOST"
            )
        })
    }
}

/// A rank's roctop in its job, until it is dropped.
pub(crate) struct JobMember {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl JobMember {
    /// Starts to hand over the sums of a store, for the session at `session`.
    ///
    /// Errors: a folder of the job is not the user's alone, or cannot be made.
    pub(crate) fn start(plan: &JobPlan, session: &Path, store: Arc<Mutex<Store>>) -> Result<Self> {
        let JobPlan {
            job,
            place,
            listen,
            limit,
        } = plan;
        let base = session.parent().unwrap_or(Path::new("/"));
        let participant = Participant::start(
            Plan {
                jobs: roctop_job::jobs(&|name| std::env::var(name).ok())?,
                base: base.to_owned(),
                job: job.clone(),
                node: place.node.clone(),
                is_first: place.rank == 0,
                limit: *limit,
                listen: listen.clone(),
                info: bytes::Bytes::from(place.node.to_string()),
            },
            serde_json::to_vec(&Hello {
                rank: place.rank,
                session: session.to_owned(),
            })?
            .into(),
            Arc::new(Node::new(&place.node)),
        )?;
        // Nobody waits for it: a name may take long to resolve.
        let checked = plan.clone();
        std::thread::Builder::new().name("job host".into()).spawn(move || {
            if let Some(line) = checked.trouble(&|name| std::env::var(name).ok()) {
                log::line(&line);
            }
        })?;
        let measure = Measure::new(Placement {
            size: place.size.unwrap_or(0),
            local: place.local_rank.unwrap_or(0),
        });
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("job rank".into())
            .spawn(move || hand_over(&participant, measure, &store, &stopped))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for JobMember {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that has failed has stopped.
            let _ = thread.join();
        }
    }
}

fn hand_over(participant: &Participant, mut measure: Measure, store: &Mutex<Store>, stopped: &Receiver<()>) {
    loop {
        let rest = Duration::from_nanos(INTERVAL - boottime() % INTERVAL);
        let is_over = stopped.recv_timeout(rest) != Err(RecvTimeoutError::Timeout);
        let snapshot = store
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .snapshot(Fresh::All);
        let reports: Vec<Vec<u8>> = measure.reports(&snapshot).iter().map(encode_rank).collect();
        if !reports.is_empty() {
            // Sums that are too long for the socket are left out; the next ones come in a second.
            let _ = participant.publish(parts::join(&reports).into());
        }
        if is_over {
            return;
        }
    }
}
