//! The side that dials, again and again: to report to what is above, or to watch what is below.

use crate::daemon::{Address, Renew};
use crate::dial::{DialError, Dialer, words};
use crate::link::{Ended, Receiver, report};
use crate::message::{Down, down, up};
use crate::serve::{OUTBOX, PART_TIMEOUT, first_chunk, parcel, send_answer};
use crate::service::Calls;
use crate::transport::{Answer, AnswerError, Part, Question, Reason};
use crate::tree::Tree;
use crate::{Error, Identity, Name, Role};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};
use tonic::Status;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

/// First pause before another attempt; each pause is twice the one before, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A connection that held for so long was good.
const GOOD: Duration = Duration::from_secs(2);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_millis(300);
/// Answers that a node gives at a time; further questions are refused.
const ANSWERS: usize = 8;
/// Reports of a node that wait for its connection.
const NODE_REPORTS: usize = 16;
/// Reports of all nodes of a relay that wait for its connection.
const RELAY_REPORTS: usize = 1 << 12;

/// Whether a daemon is connected with what it dials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Connection {
    /// The first attempt is under way.
    #[default]
    Pending,
    /// It is connected.
    Open,
    /// It is not; the next attempt comes within a second or two.
    Failed(String),
}

/// Why an attempt failed or a connection ended.
#[derive(Debug, thiserror::Error)]
enum Attempt {
    #[error("no root has written its address yet")]
    NoAddress,
    #[error(transparent)]
    Folder(#[from] Error),
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("{0}")]
    Refused(String),
    #[error("the other end does not answer any more")]
    Silent,
    #[error("the other end has closed the connection")]
    Closed,
}

impl Attempt {
    /// Whether nobody listens there: the machine answers, or no address is known.
    fn is_absent(&self) -> bool {
        match self {
            Self::NoAddress => true,
            Self::Dial(DialError::Connect(_, error)) => error.kind() == io::ErrorKind::ConnectionRefused,
            _ => false,
        }
    }

    /// Whether another key may help.
    fn is_of_key(&self) -> bool {
        matches!(
            self,
            Self::Dial(DialError::Key(..) | DialError::Refused(..) | DialError::Expired(..))
        )
    }
}

impl From<Status> for Attempt {
    fn from(status: Status) -> Self {
        match status.code() {
            tonic::Code::PermissionDenied => Self::Refused(crate::message::text(status.message())),
            _ => Self::Refused(words(&status)),
        }
    }
}

/// What both directions of dialling share.
pub(crate) struct Dialled {
    pub(crate) tree: Arc<Tree>,
    pub(crate) dialer: Dialer,
    pub(crate) address: Address,
    pub(crate) own: Identity,
    pub(crate) connection: Arc<Mutex<Connection>>,
    /// Set while nobody listens there.
    pub(crate) is_absent: Arc<AtomicBool>,
    /// Where another key comes from when this one is refused.
    pub(crate) renew: Option<Renew>,
    pub(crate) stop: watch::Receiver<bool>,
}

/// A second connection, which is dialled when it is needed.
struct Second {
    dialer: Dialer,
    address: String,
    channel: AsyncMutex<Option<Channel>>,
}

impl Second {
    fn new(dialer: &Dialer, address: &str) -> Arc<Self> {
        Arc::new(Self {
            dialer: dialer.clone(),
            address: address.to_owned(),
            channel: AsyncMutex::default(),
        })
    }

    async fn get(&self) -> Result<Channel, DialError> {
        let mut channel = self.channel.lock().await;
        if let Some(channel) = &*channel {
            return Ok(channel.clone());
        }
        let new = self.dialer.connect(&self.address).await?;
        *channel = Some(new.clone());
        Ok(new)
    }

    /// Dials again the next time.
    async fn forget(&self) {
        *self.channel.lock().await = None;
    }
}

impl Dialled {
    fn set(&self, connection: Connection) {
        self.is_absent.store(false, Ordering::Relaxed);
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = connection;
    }

    async fn address(&self) -> Result<String, Attempt> {
        let address = self.address.clone();
        // A folder may be on a file system that hangs.
        let found = tokio::task::spawn_blocking(move || address.find()).await;
        found.unwrap_or_else(|_| Ok(None))?.ok_or(Attempt::NoAddress)
    }

    /// Takes another key, if there is one.
    async fn renew(&mut self) {
        let Some(renew) = self.renew.clone() else { return };
        // A key is read from a file system that may hang, or signed.
        let renewed = tokio::task::spawn_blocking(move || renew()).await;
        let Ok(Ok(key)) = renewed else { return };
        if key.identity().job == self.own.job
            && let Ok(dialer) = Dialer::new(&key)
        {
            self.dialer = dialer;
        }
    }

    /// Connects again and again, until the daemon ends.
    pub(crate) async fn run(mut self, is_report: bool) {
        let mut pause = FIRST_PAUSE;
        while !*self.stop.borrow() {
            let began = Instant::now();
            let mut stop = self.stop.clone();
            // An attempt that does not notice the end, as it waits for the other side, is broken off.
            let over = async {
                let _ = stop.wait_for(|stop| *stop).await;
                sleep(GOODBYE + GOODBYE / 2).await;
            };
            let attempt = async {
                if is_report {
                    self.report().await
                } else {
                    self.watch().await
                }
            };
            let attempt = tokio::select! {
                attempt = attempt => attempt,
                () = over => return,
            };
            let Err(error) = attempt else { return };
            self.set(Connection::Failed(words(&error)));
            self.is_absent.store(error.is_absent(), Ordering::Relaxed);
            if error.is_of_key() {
                self.renew().await;
            }
            if began.elapsed() > GOOD {
                pause = FIRST_PAUSE;
            }
            // Nodes that lost their root at once do not come back at once.
            let random = RandomState::new().build_hasher().finish() % 256;
            let jitter = pause.mul_f64(random as f64 / 1024.0);
            tokio::select! {
                () = sleep(pause + jitter) => {}
                _ = self.stop.wait_for(|stop| *stop) => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Reports to what is above, over one connection. No error: the daemon ends.
    async fn report(&mut self) -> Result<(), Attempt> {
        let address = self.address().await?;
        let channel = self.dialer.connect(&address).await?;
        let (ups, outbox) = mpsc::channel(OUTBOX);
        let mut downs = Calls::attach(channel, ReceiverStream::new(outbox)).await?;
        self.set(Connection::Open);
        self.tree.renew(&self.own.name);
        let limit = match self.own.role {
            Role::Node | Role::Viewer => NODE_REPORTS,
            Role::Relay | Role::Root => RELAY_REPORTS,
        };
        let mut events = self.tree.subscribe_at_most(limit);
        let answers = Answers {
            tree: self.tree.clone(),
            second: Second::new(&self.dialer, &address),
            room: Arc::new(Semaphore::new(ANSWERS)),
        };
        let ask = |question| answers.answer(question);
        let ended = report(&mut events, &ups, |up| up, &mut downs, ask, &mut self.stop).await;
        match ended {
            Ended::Closed(Some(status)) => Err(status.into()),
            Ended::Closed(None) => Err(Attempt::Closed),
            Ended::Silent => Err(Attempt::Silent),
            Ended::Stopped => {
                let goodbye = async {
                    // The other end closes.
                    if ups.send(up::Kind::Goodbye(true).into()).await.is_ok() {
                        while let Ok(Some(_)) = downs.message().await {}
                    }
                };
                // If it takes longer, this node is lost instead.
                let _ = timeout(GOODBYE, goodbye).await;
                Ok(())
            }
        }
    }

    /// Watches what is below, over one connection. No error: the daemon ends.
    async fn watch(&mut self) -> Result<(), Attempt> {
        let address = self.address().await?;
        let channel = self.dialer.connect(&address).await?;
        let (downs, outbox) = mpsc::channel::<Down>(OUTBOX);
        let mut ups = Calls::watch(channel, ReceiverStream::new(outbox)).await?;
        self.set(Connection::Open);
        let second = Second::new(&self.dialer, &address);
        // The other end has a key that others report to, so it may speak for any node.
        let identity = Identity {
            role: Role::Root,
            name: Name::of_text(&address),
            job: self.own.job.clone(),
        };
        let (link, mut questions) = self.tree.open(identity);
        let receiver = Receiver {
            tree: &self.tree,
            link,
            from: &address,
        };
        let send = |down| drop(downs.try_send(down));
        let ask = |question| drop(tokio::spawn(fetch(second.clone(), question)));
        let mut stop = self.stop.clone();
        let ended = tokio::select! {
            ended = receiver.run(&mut ups, &mut questions, send, ask) => Some(ended),
            _ = stop.wait_for(|stop| *stop) => None,
        };
        let (reason, result) = match ended {
            None => (Reason::Left, Ok(())),
            Some(Ok(Reason::Silent)) => (Reason::Silent, Err(Attempt::Silent)),
            Some(Ok(_)) => (Reason::Closed, Err(Attempt::Closed)),
            Some(Err(refusal)) => (Reason::Refused, Err(Attempt::Refused(refusal.to_string()))),
        };
        self.tree.close(link, reason);
        result
    }
}

/// The answers of a node to what it reports to.
struct Answers {
    tree: Arc<Tree>,
    second: Arc<Second>,
    room: Arc<Semaphore>,
}

impl Answers {
    fn answer(&self, question: down::Question) {
        let down::Question { id, node, payload } = question;
        let answer = match (self.room.clone().try_acquire_owned(), crate::message::name(&node)) {
            (Ok(permit), Ok(node)) => (self.tree.query(&node, payload), Some(permit)),
            _ => (Answer::failed(AnswerError::Busy), None),
        };
        let second = self.second.clone();
        tokio::spawn(async move {
            let (answer, permit) = answer;
            let (chunks, outbox) = mpsc::channel(1);
            let sending = async {
                // The other end knows then that the question has arrived.
                let _ = chunks.send(first_chunk(id)).await;
                send_answer(answer, id, chunks, |chunk| chunk).await;
            };
            let called = async {
                let sent = Calls::answer(second.get().await?, ReceiverStream::new(outbox)).await;
                Ok::<_, DialError>(sent)
            };
            let (called, ()) = tokio::join!(called, sending);
            if !matches!(called, Ok(Ok(()))) {
                second.forget().await;
            }
            drop(permit);
        });
    }
}

/// Asks a root or relay for a node's answer.
async fn fetch(second: Arc<Second>, question: Question) {
    let Question { node, payload, reply } = question;
    let asked = async {
        let question = down::Question {
            id: 0,
            node: node.to_string(),
            payload,
        };
        let channel = second.get().await.map_err(|error| words(&error))?;
        let fetched = Calls::fetch(channel, question).await;
        fetched.map_err(|status| words(&status))
    };
    let mut chunks = match asked.await {
        Ok(chunks) => chunks,
        Err(why) => {
            second.forget().await;
            return reply.refuse(AnswerError::Failed(why));
        }
    };
    loop {
        let parcel = match timeout(PART_TIMEOUT * 2, chunks.message()).await {
            Ok(Ok(Some(chunk))) => parcel(chunk),
            _ => Err(AnswerError::BrokenOff),
        };
        let is_last = !matches!(parcel, Ok(Part::Data(_)));
        if !reply.pass(parcel).await || is_last {
            return;
        }
    }
}
