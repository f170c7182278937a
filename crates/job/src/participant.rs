//! The part of one rank's roctop in its job: it hands its sums to the daemon of its node, and becomes that daemon when there is
//! none.
//!
//! The daemon of the node with the first rank is the root: it listens, and writes its address into the job's folder, where the
//! other daemons and the screens find it. When a daemon is lost, another process of its node goes on in its place.

use crate::message::bounded;
use crate::ranks::Rank;
use crate::transport::{Question, Questions, Transport};
use crate::{
    Address, Authority, Config, Daemon, Error, Folder, Lead, MAX_INFO, Membership, Name, Network, NodeFolder, RankLink,
    Ranks, Result, Role,
};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Between two looks whether the node has a daemon.
const LOOK: Duration = Duration::from_millis(250);
/// Between two reports of a node.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Questions that are answered at a time.
const MAX_ANSWERS: usize = 8;

fn boottime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// What a process does for its node while it is its daemon.
pub trait Duties: Send + Sync {
    /// The report of the node from the sums of its ranks; none if there is nothing to report. At most
    /// [`crate::MAX_REPORT`] bytes; 10 KB are usual. It is called in the middle of each second of CLOCK_BOOTTIME.
    fn reduce(&self, ranks: &[Rank]) -> Option<Bytes>;

    /// Answers a question to the node. It may take long: it has its own thread.
    fn answer(&self, question: Question, ranks: &[Rank]);
}

/// What a participant needs to know.
pub struct Plan {
    /// Folder of the user's jobs, of [`crate::jobs`].
    pub jobs: PathBuf,
    /// A parent of the user's sessions.
    pub base: PathBuf,
    /// The job.
    pub job: Name,
    /// The node.
    pub node: Name,
    /// Whether this is the job's first rank: its node has the root.
    pub is_first: bool,
    /// How long the job may take.
    pub limit: Duration,
    /// The host name or address at which the root listens if it is on this node; none for a job of one node, which has no
    /// network.
    pub listen: Option<String>,
    /// What the node says of itself.
    pub info: Bytes,
}

/// How it stands with a participant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether it is the daemon of its node.
    pub is_daemon: bool,
    /// Whether it is the root.
    pub is_root: bool,
    /// Why it cannot be, if it tried.
    pub trouble: Option<String>,
}

/// A rank's roctop in its job.
#[derive(Debug)]
pub struct Participant {
    link: RankLink,
    standing: Arc<Mutex<Standing>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Participant {
    /// Starts. `hello` is what this rank says of itself to its node's daemon.
    ///
    /// Errors: the node's folder is not the user's alone, something is too long, or a thread cannot start.
    pub fn start(plan: Plan, hello: Bytes, duties: Arc<dyn Duties>) -> Result<Self> {
        bounded("information", &plan.info, MAX_INFO)?;
        let folder = NodeFolder::open(&plan.base, &plan.job)?;
        let membership = folder.join()?;
        if plan.is_first {
            folder.mark_first()?;
        }
        let link = RankLink::start(&folder, hello)?;
        let standing = Arc::<Mutex<Standing>>::default();
        let (stop, stopped) = channel();
        let shared = standing.clone();
        let thread = std::thread::Builder::new().name("job node".into()).spawn(move || {
            let mut candidate = Candidate {
                plan,
                folder,
                duties,
                standing: shared,
                leading: None,
                answers: Arc::default(),
                membership: Some(membership),
            };
            candidate.run(&stopped);
        });
        Ok(Self {
            link,
            standing,
            stop: Some(stop),
            thread: Some(thread.map_err(Error::Start)?),
        })
    }

    /// Hands this rank's sums over. It never waits. Who does so once as each second of CLOCK_BOOTTIME begins has all of them
    /// in the node's reports; of several in a second, the latest is.
    ///
    /// Errors: they are longer than [`crate::MAX_REPORT`].
    pub fn publish(&self, sums: Bytes) -> Result<()> {
        self.link.publish(sums)
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that has failed has stopped.
            let _ = thread.join();
        }
    }
}

/// A process that is the daemon of its node.
struct Leading {
    // In this order they end: the lock is released last.
    network: Option<Running>,
    ranks: Ranks,
    lead: Lead,
    /// The second of CLOCK_BOOTTIME of the last report.
    reported: Option<u64>,
    tried: Option<Instant>,
}

/// The daemon's network.
struct Running {
    transport: Arc<dyn Transport>,
    questions: Questions,
    is_root: bool,
    /// When its key expires; never without a network.
    expires: Option<SystemTime>,
}

struct Candidate {
    plan: Plan,
    folder: NodeFolder,
    duties: Arc<dyn Duties>,
    standing: Arc<Mutex<Standing>>,
    leading: Option<Leading>,
    answers: Arc<AtomicUsize>,
    membership: Option<Membership>,
}

impl Candidate {
    fn run(&mut self, stopped: &Receiver<()>) {
        while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let trouble = self.look().err().map(|error| crate::dial::words(&error));
            let network = self.leading.as_ref().and_then(|leading| leading.network.as_ref());
            let standing = Standing {
                is_daemon: self.leading.is_some(),
                is_root: network.is_some_and(|network| network.is_root),
                trouble,
            };
            *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
        }
        self.leave();
    }

    /// Becomes the daemon if there is none, and does what is due for one.
    fn look(&mut self) -> Result<()> {
        if self.leading.is_none() {
            let Some(lead) = self.folder.try_lead()? else {
                return Ok(());
            };
            self.leading = Some(Leading {
                network: None,
                ranks: Ranks::start(&lead)?,
                lead,
                reported: None,
                tried: None,
            });
        }
        let Some(leading) = &mut self.leading else {
            return Ok(());
        };
        let is_root = self.plan.listen.is_some() && self.folder.is_first();
        // A job may take longer than its keys: then all begin again, with new ones.
        let now = SystemTime::now();
        let is_as_due =
            |network: &Running| network.is_root == is_root && network.expires.is_none_or(|expires| now < expires);
        if !leading.network.as_ref().is_some_and(is_as_due) {
            // What fails, as a full file system, is tried again with the reports.
            if leading.tried.is_some_and(|tried| tried.elapsed() < REPORT_INTERVAL) {
                return Ok(());
            }
            leading.tried = Some(Instant::now());
            leading.network = None;
            leading.network = Some(connect(&self.plan, is_root)?);
        }
        let Some(network) = &mut leading.network else {
            return Ok(());
        };
        while let Some(question) = network.questions.try_next() {
            answer(&self.duties, &self.answers, question, leading.ranks.current());
        }
        // Ranks that hand over as a second begins are all there by its middle, each once.
        let second = boottime().saturating_sub(REPORT_INTERVAL / 2).as_secs();
        if leading.reported != Some(second) {
            leading.reported = Some(second);
            if let Some(report) = self.duties.reduce(&leading.ranks.take()) {
                network.transport.publish(report)?;
            }
        }
        Ok(())
    }

    /// Leaves the daemon's part to another process of the node. The last one of the node removes what the node has. With that
    /// of the root, the job is over: its keys go, too.
    fn leave(&mut self) {
        let lead = self.leading.take().map(|leading| leading.lead);
        if !self.membership.take().is_some_and(Membership::is_last) {
            return;
        }
        if self.plan.listen.is_some() {
            let folder = Folder::of(&self.plan.jobs, &self.plan.job);
            if self.folder.is_first() || matches!(folder.root(), Ok(None)) {
                // What cannot be removed expires.
                let _ = folder.remove();
            }
        }
        if let Some(lead) = lead.or_else(|| self.folder.try_lead().ok().flatten()) {
            lead.remove();
        }
    }
}

/// Answers in a thread, if there are not too many.
fn answer(duties: &Arc<dyn Duties>, answers: &Arc<AtomicUsize>, question: Question, ranks: Vec<Rank>) {
    if answers.fetch_add(1, Ordering::Relaxed) >= MAX_ANSWERS {
        answers.fetch_sub(1, Ordering::Relaxed);
        return question.reply.refuse(crate::AnswerError::Busy);
    }
    let (duties, count) = (duties.clone(), answers.clone());
    let started = std::thread::Builder::new().name("job answer".into()).spawn(move || {
        duties.answer(question, &ranks);
        count.fetch_sub(1, Ordering::Relaxed);
    });
    if started.is_err() {
        answers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The network of a node's daemon.
fn connect(plan: &Plan, is_root: bool) -> Result<Running> {
    let Some(host) = &plan.listen else {
        let (member, questions) = Network::new(&plan.job).node(&plan.node, plan.info.clone())?;
        return Ok(Running {
            transport: Arc::new(member),
            questions,
            is_root: false,
            expires: None,
        });
    };
    let authority = Authority::open_or_create(&plan.jobs, &plan.job, plan.limit)?;
    let folder = authority.folder().clone();
    let mut config = Config {
        info: Some(plan.info.clone()),
        ..Config::default()
    };
    let role = if is_root {
        config.listen = Some(format!("{host}:0"));
        Role::Root
    } else {
        config.report_to = Some(Address::OfFolder(folder.clone()));
        Role::Node
    };
    let (daemon, questions) = Daemon::start(&authority.issue(role, &plan.node)?, config)?;
    if let Some(address) = daemon.address() {
        folder.set_root(&address.to_string())?;
    }
    Ok(Running {
        transport: Arc::new(daemon),
        questions,
        is_root,
        expires: Some(authority.expires()),
    })
}

/// Watches a job of the user, as a screen does. Its root need not be there yet, or be there all the time.
///
/// Errors: the job has no keys here, or they are not the user's alone.
pub fn watch(jobs: &Path, job: &Name) -> Result<Daemon> {
    let authority = Authority::open(jobs, job)?;
    let host = rustix::system::uname();
    let name = Name::of_text(&format!("{}-{}", host.nodename().to_string_lossy(), std::process::id()));
    let config = Config {
        watch: vec![Address::OfFolder(Folder::of(jobs, job))],
        ..Config::default()
    };
    let (daemon, _) = Daemon::start(&authority.issue(Role::Viewer, &name)?, config)?;
    Ok(daemon)
}
