//! The part of one rank's roctop in its job: it hands its sums to the daemon of its node, and becomes that daemon when there is
//! none.
//!
//! The daemon of the node with the first rank is the root: it listens, and writes its address into the job's folder, where the
//! other daemons and the screens find it. When a daemon is lost, another process of its node goes on in its place. When that
//! node has none any more, the daemon of another node becomes the root. A job of one node has no network: its root is watched at
//! a Unix socket.

use crate::dial::local_address;
use crate::dialled::Connection;
use crate::message::bounded;
use crate::ranks::Rank;
use crate::transport::{Question, Questions, Transport};
use crate::{
    Address, Authority, Config, Daemon, Error, Folder, Key, Lead, Listen, MAX_INFO, Membership, Name, NodeFolder,
    RankLink, Ranks, Renew, Result, Role,
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
/// A daemon that finds no root for this time takes its place; each waits a little longer, by its name.
const ROOTLESS: Duration = Duration::from_secs(5);
const ROOTLESS_SPREAD_MS: u64 = 2000;
/// How long the last sums may take at the end.
const LAST_SUMS: Duration = Duration::from_millis(600);
/// Between two looks whether they have come.
const LAST_LOOK: Duration = Duration::from_millis(10);
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
    /// The host name or address at which the root listens if it is on this node; none for a job of one node, which is watched
    /// from this node alone.
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
    link: Arc<RankLink>,
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
        let link = Arc::new(RankLink::start(&folder, hello)?);
        let own = link.clone();
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
                is_elected: false,
                rootless: None,
                link: own,
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
    daemon: Daemon,
    questions: Questions,
    folder: Folder,
    /// The address of a root.
    address: Option<String>,
    /// When its key expires.
    expires: SystemTime,
}

impl Running {
    fn is_root(&self) -> bool {
        self.address.is_some()
    }

    /// Whether another root has written its address over that of this one.
    fn is_superseded(&self) -> bool {
        let there = self.folder.root();
        self.is_root() && matches!(there, Ok(Some(_))) && there.ok().flatten() != self.address
    }
}

impl Leading {
    /// Reports what is new of the node's ranks.
    fn report(&self, duties: &dyn Duties) -> Result<()> {
        match (&self.network, duties.reduce(&self.ranks.take())) {
            (Some(network), Some(report)) => network.daemon.publish(report),
            _ => Ok(()),
        }
    }
}

/// How much longer than others a node waits, ms.
fn spread(node: &Name) -> u64 {
    let sum = node
        .bytes()
        .fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    sum % ROOTLESS_SPREAD_MS
}

struct Candidate {
    plan: Plan,
    folder: NodeFolder,
    duties: Arc<dyn Duties>,
    standing: Arc<Mutex<Standing>>,
    leading: Option<Leading>,
    /// It is the root because it found none, not because the first rank is here.
    is_elected: bool,
    /// Since when it finds no root.
    rootless: Option<Instant>,
    /// This rank's own end of the daemon's socket.
    link: Arc<RankLink>,
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
                is_root: network.is_some_and(Running::is_root),
                trouble,
            };
            *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
        }
        self.finish();
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
        let is_first = self.plan.listen.is_none() || self.folder.is_first();
        let is_root = is_first || self.is_elected;
        // A job may take longer than its keys: then all begin again, with new ones.
        let now = SystemTime::now();
        let is_as_due = |network: &Running| network.is_root() == is_root && now < network.expires;
        if !leading.network.as_ref().is_some_and(is_as_due) {
            // What fails, as a full file system, is tried again with the reports.
            if leading.tried.is_some_and(|tried| tried.elapsed() < REPORT_INTERVAL) {
                return Ok(());
            }
            leading.tried = Some(Instant::now());
            leading.network = None;
            leading.network = Some(connect(&self.plan, &self.folder, is_root)?);
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
            if network.is_superseded() {
                match (&network.address, is_first) {
                    // The node with the first rank has the root, even if another one took its place meanwhile.
                    (Some(address), true) => network.folder.set_root(address)?,
                    _ => self.is_elected = false,
                }
            }
            self.rootless = network
                .daemon
                .is_rootless()
                .then(|| self.rootless.unwrap_or_else(Instant::now));
            let patience = ROOTLESS + Duration::from_millis(spread(&self.plan.node));
            if self.rootless.is_some_and(|since| since.elapsed() > patience) {
                (self.is_elected, self.rootless) = (true, None);
            }
            leading.report(&*self.duties)?;
        }
        Ok(())
    }

    /// Hands over the last sums: to the node's daemon, or as the daemon of the node to all.
    fn finish(&mut self) {
        let began = Instant::now();
        let has_time = || began.elapsed() < LAST_SUMS;
        while !self.link.is_handed_over() && has_time() {
            if self.leading.is_none() && self.look().is_err() {
                break;
            }
            std::thread::sleep(LAST_LOOK);
        }
        let Some(leading) = &mut self.leading else { return };
        let Some(network) = &leading.network else { return };
        // A daemon that came a moment ago has not taken its own sums yet; a new network is connected after a few round trips.
        let is_open = || {
            network
                .daemon
                .connections()
                .iter()
                .all(|known| *known == Connection::Open)
        };
        let latest = self.link.latest();
        let is_read = || {
            latest
                .as_ref()
                .is_none_or(|sums| leading.ranks.has(std::process::id(), sums))
        };
        while !(is_open() && is_read()) && has_time() {
            std::thread::sleep(LAST_LOOK);
        }
        // A rank whose sums are taken may end: all that is taken is in this report.
        leading.ranks.close();
        // What cannot be reported now is in the recordings.
        let _ = leading.report(&*self.duties);
    }

    /// Leaves the daemon's part to another process of the node. The last one of the node removes what the node has. With that
    /// of the root, the job is over: its keys go, too.
    fn leave(&mut self) {
        let own_address = |leading: &Leading| leading.network.as_ref()?.address.clone();
        let address = self.leading.as_ref().and_then(own_address);
        let lead = self.leading.take().map(|leading| leading.lead);
        if !self.membership.take().is_some_and(Membership::is_last) {
            return;
        }
        let folder = Folder::of(&self.plan.jobs, &self.plan.job);
        let is_first = self.plan.listen.is_none() || self.folder.is_first();
        let is_own = |root: Option<String>| root.is_none() || root == address;
        if is_first || folder.root().is_ok_and(is_own) {
            // What cannot be removed expires.
            let _ = folder.remove();
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
fn connect(plan: &Plan, node: &NodeFolder, is_root: bool) -> Result<Running> {
    let authority = Authority::open_or_create(&plan.jobs, &plan.job, plan.limit)?;
    let folder = authority.folder().clone();
    let mut config = Config {
        info: Some(plan.info.clone()),
        ..Config::default()
    };
    let role = if is_root {
        config.listen = Some(match &plan.listen {
            Some(host) => Listen::At(format!("{host}:0")),
            None => Listen::Local(node.watch_socket()),
        });
        Role::Root
    } else {
        config.report_to = Some(Address::OfFolder(folder.clone()));
        config.renew = Some(issued(&plan.jobs, &plan.job, Role::Node, &plan.node));
        Role::Node
    };
    let (daemon, questions) = Daemon::start(&authority.issue(role, &plan.node)?, config)?;
    let address = match (is_root, daemon.address()) {
        (false, _) => None,
        (true, Some(address)) => Some(address.to_string()),
        (true, None) => Some(local_address(&plan.node, &node.watch_socket())),
    };
    if let Some(address) = &address {
        folder.set_root(address)?;
    }
    Ok(Running {
        daemon,
        questions,
        folder,
        address,
        expires: authority.expires(),
    })
}

/// Signs keys with the authority that the job has then.
fn issued(jobs: &Path, job: &Name, role: Role, name: &Name) -> Renew {
    let (jobs, job, name) = (jobs.to_owned(), job.clone(), name.clone());
    Arc::new(move || Authority::open(&jobs, &job)?.issue(role, &name))
}

/// A name for a process that looks on.
fn viewer_name() -> Name {
    let host = rustix::system::uname();
    Name::of_text(&format!("{}-{}", host.nodename().to_string_lossy(), std::process::id()))
}

/// Watches a job of the user, as a screen does. Its root need not be there yet, or be there all the time.
///
/// Errors: the job has no keys here, or they are not the user's alone.
pub fn watch(jobs: &Path, job: &Name) -> Result<Daemon> {
    let renew = issued(jobs, job, Role::Viewer, &viewer_name());
    let config = Config {
        watch: vec![Address::OfFolder(Folder::of(jobs, job))],
        renew: Some(renew.clone()),
        ..Config::default()
    };
    Ok(Daemon::start(&renew()?, config)?.0)
}

/// A key with which another machine of the user can watch a job, where the job's folder is not.
///
/// Errors: the job has no keys here, or they are not the user's alone.
pub fn viewer_key(jobs: &Path, job: &Name) -> Result<Key> {
    Authority::open(jobs, job)?.issue(Role::Viewer, &viewer_name())
}

/// Watches the job of a key in a file, whose root listens at `HOST:PORT`. The file is read again when the key is refused.
///
/// Errors: the file has no key of a viewer, is not the user's alone, or the key has expired.
pub fn watch_with_key(address: &str, file: &Path) -> Result<(Name, Daemon)> {
    let key = Key::read(file)?;
    if key.identity().role != Role::Viewer {
        return Err(Error::NoKey {
            path: file.to_owned(),
            why: format!("it is of a {}, not of a viewer", key.identity().role),
        });
    }
    let path = file.to_owned();
    let config = Config {
        watch: vec![Address::Fixed(address.to_owned())],
        renew: Some(Arc::new(move || Key::read(&path))),
        ..Config::default()
    };
    let job = key.identity().job.clone();
    Ok((job, Daemon::start(&key, config)?.0))
}
