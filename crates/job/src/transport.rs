//! The network of a job as the daemons and the screen see it: four verbs, with payloads that it does not look into.

use crate::message::{MAX_ANSWER, PART, text};
use crate::wait::within;
use crate::{Name, Result};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// The network of a job. No verb waits for the network; what comes is taken from [`Subscription`] and [`Answer`].
pub trait Transport: Send + Sync {
    /// Passes on the sums of this node. A receiver that does not read misses them.
    ///
    /// Errors: they are longer than [`crate::MAX_REPORT`], or this end has no node.
    fn publish(&self, report: Bytes) -> Result<()>;

    /// Events from now on. It begins with each node that is known, and its last report.
    fn subscribe(&self) -> Subscription;

    /// Asks a node.
    fn query(&self, node: &Name, question: Bytes) -> Answer;

    /// The nodes that are known, by name.
    fn alive(&self) -> Vec<Alive>;
}

/// What happens in a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node is there, or there again.
    Known {
        /// The node.
        node: Name,
        /// Grows with each connection of the node.
        generation: u64,
        /// What it says of itself.
        info: Bytes,
    },
    /// The sums of a node.
    Report {
        /// The node.
        node: Name,
        /// The sums.
        report: Bytes,
    },
    /// A node's clock has been compared.
    Clock {
        /// The node.
        node: Name,
        /// The difference.
        clock: Clock,
    },
    /// A node is there no more.
    Gone {
        /// The node.
        node: Name,
        /// Why.
        reason: Reason,
    },
    /// Connections were refused; those of one reason are counted together, at most once a second.
    Refused {
        /// Address of the last one.
        from: String,
        /// Why.
        reason: Refusal,
        /// How many.
        count: u64,
    },
}

/// How far a node's CLOCK_REALTIME is ahead of this one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The node's clock less this one's, ns.
    pub offset_ns: i64,
    /// Bound of the error: half the least round trip of the last exchanges, ns.
    pub error_ns: u64,
}

impl Clock {
    /// The clock of a node that differs by `self` from a relay that differs by `relay`.
    pub(crate) fn behind(self, relay: Self) -> Self {
        Self {
            offset_ns: self.offset_ns.saturating_add(relay.offset_ns),
            error_ns: self.error_ns.saturating_add(relay.error_ns),
        }
    }
}

macro_rules! numbered {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $number:literal, $words:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        impl $type {
            pub(crate) fn number(self) -> u32 {
                match self { $(Self::$variant => $number,)* }
            }

            pub(crate) fn of_number(number: u32) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $words,)* })
            }
        }
    };
}

numbered! {
    /// Why a node is there no more.
    Reason {
        /// It said so.
        Left = 0, "left";
        /// Its connection ended: its process, or its machine, has ended.
        Closed = 1, "connection closed";
        /// It answers no pings: its process is stopped, its machine hangs, or the network has failed.
        Silent = 2, "stopped: no answer";
        /// The relay that it reports to is there no more.
        RelayLost = 3, "its relay is lost";
        /// It was refused.
        Refused = 4, "refused";
    }
}

numbered! {
    /// Why a connection was refused.
    Refusal {
        /// It showed no key.
        NoKey = 0, "no key";
        /// Its key is of another job.
        OtherJob = 1, "key of another job";
        /// Its key has expired, or is not valid yet.
        Expired = 2, "key expired or not valid yet";
        /// It does not speak TLS.
        NotTls = 3, "no TLS";
        /// It did not finish the handshake in time.
        Unfinished = 4, "handshake not finished in time";
        /// There were too many unfinished handshakes; the oldest of the address with most of them ended.
        Crowded = 5, "too many unfinished handshakes";
        /// It ended the handshake.
        BrokenOff = 6, "handshake broken off";
        /// Its key is of another node than it claims.
        WrongNode = 7, "key of another node";
        /// Its key does not allow what it asked for.
        WrongRole = 8, "the key does not allow this";
        /// It sent what is no message.
        BadMessage = 9, "not a message of a job";
        /// The node has a newer connection.
        Older = 10, "the node has a newer connection";
        /// It is of another version of roctop.
        Version = 11, "another version of roctop";
        /// This process has no file descriptors left.
        Descriptors = 12, "no file descriptors left (ulimit -n)";
        /// There are too many nodes.
        TooMany = 13, "too many nodes";
    }
}

/// A node that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alive {
    /// The node.
    pub node: Name,
    /// What it says of itself.
    pub info: Bytes,
    /// Time since it was heard last.
    pub heard: Duration,
    /// Its clock, once compared.
    pub clock: Option<Clock>,
}

/// State that both ends of a subscription share.
#[derive(Debug)]
struct Backlog {
    /// Reports that may wait.
    limit: usize,
    waiting: AtomicUsize,
    missed: AtomicU64,
}

/// More waiting events than this many times the reports' limit end a subscription.
const EVENTS_PER_REPORT: usize = 16;
/// A subscription of few reports may hold this many other events.
const MIN_EVENTS: usize = 1 << 14;

/// The end of a subscription that events go into.
#[derive(Debug)]
pub(crate) struct Sink {
    events: mpsc::UnboundedSender<Event>,
    backlog: Arc<Backlog>,
}

impl Sink {
    /// Passes an event on. A report is left out if too many wait. False if nobody receives any more.
    pub(crate) fn push(&self, event: Event) -> bool {
        let waiting = self.backlog.waiting.load(Ordering::Relaxed);
        let limit = self.backlog.limit;
        if waiting >= limit && matches!(event, Event::Report { .. }) {
            self.backlog.missed.fetch_add(1, Ordering::Relaxed);
            return !self.events.is_closed();
        }
        if waiting >= (limit * EVENTS_PER_REPORT).max(MIN_EVENTS) {
            return false;
        }
        self.backlog.waiting.fetch_add(1, Ordering::Relaxed);
        self.events.send(event).is_ok()
    }
}

/// Events of a job. Its memory is bounded: when its owner does not take them, it misses reports, and in the end it closes.
#[derive(Debug)]
pub struct Subscription {
    events: mpsc::UnboundedReceiver<Event>,
    backlog: Arc<Backlog>,
}

impl Subscription {
    /// A subscription in which at most `limit` reports wait.
    pub(crate) fn new(limit: usize) -> (Sink, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let backlog = Arc::new(Backlog {
            limit,
            waiting: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
        });
        let sink = Sink {
            events: sender,
            backlog: backlog.clone(),
        };
        let subscription = Self {
            events: receiver,
            backlog,
        };
        (sink, subscription)
    }

    fn taken(&self, event: Event) -> Event {
        self.backlog.waiting.fetch_sub(1, Ordering::Relaxed);
        event
    }

    /// The next event, if one waits.
    pub fn try_next(&mut self) -> Option<Event> {
        let event = self.events.try_recv().ok()?;
        Some(self.taken(event))
    }

    /// The next event, if one comes in time and the subscription has not closed. Not for use inside of a runtime.
    pub fn next_within(&mut self, limit: Duration) -> Option<Event> {
        let event = within(limit, self.events.recv())??;
        Some(self.taken(event))
    }

    pub(crate) async fn next(&mut self) -> Option<Event> {
        let event = self.events.recv().await?;
        Some(self.taken(event))
    }

    /// Reports that were left out since the begin, because too many waited.
    pub fn missed(&self) -> u64 {
        self.backlog.missed.load(Ordering::Relaxed)
    }

    /// Whether no event will come any more: the network has ended, or far too many events waited.
    pub fn is_closed(&self) -> bool {
        self.events.is_closed() && self.events.is_empty()
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// No such node is known.
    #[error("no node {0} is known")]
    UnknownNode(Name),
    /// The node does not take the question: it is asked too much, or its answers end.
    #[error("the node takes no questions now")]
    Busy,
    /// The node says so.
    #[error("{0}")]
    Failed(String),
    /// The answer ended before it was complete.
    #[error("the answer broke off: the node or the way to it is lost")]
    BrokenOff,
    /// It is longer than wanted.
    #[error("the answer has more than {0} bytes")]
    TooLong(u64),
    /// It takes longer than wanted.
    #[error("no answer in time")]
    Timeout,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The next bytes.
    Data(Bytes),
    /// The answer is complete.
    Complete,
}

/// Parts that wait between two ends.
const PARTS: usize = 4;
/// How long a receiver may take for a part before the answer is broken off.
pub(crate) const STALL: Duration = Duration::from_secs(30);

/// What a channel of parts has.
pub(crate) type Parcel = Result<Part, AnswerError>;

/// An answer in parts. When it is dropped, the node stops to answer.
#[derive(Debug)]
pub struct Answer {
    parts: mpsc::Receiver<Parcel>,
    length: u64,
}

impl Answer {
    pub(crate) fn new() -> (Reply, Self) {
        let (sender, parts) = mpsc::channel(PARTS);
        (Reply { parts: sender }, Self { parts, length: 0 })
    }

    /// An answer that is an error.
    pub(crate) fn failed(error: AnswerError) -> Self {
        let (reply, answer) = Self::new();
        // There is room for one part.
        let _ = reply.parts.try_send(Err(error));
        answer
    }

    fn counted(&mut self, parcel: Option<Parcel>) -> Parcel {
        let part = parcel.unwrap_or(Err(AnswerError::BrokenOff))?;
        if let Part::Data(bytes) = &part {
            self.length += bytes.len() as u64;
            if self.length > MAX_ANSWER {
                return Err(AnswerError::TooLong(MAX_ANSWER));
            }
        }
        Ok(part)
    }

    /// The next part, if one waits.
    pub fn try_next(&mut self) -> Result<Option<Part>, AnswerError> {
        match self.parts.try_recv() {
            Err(mpsc::error::TryRecvError::Empty) => Ok(None),
            found => self.counted(found.ok()).map(Some),
        }
    }

    /// The next part; `None` if it takes longer. Not for use inside of a runtime.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<Part>, AnswerError> {
        match within(limit, self.parts.recv()) {
            None => Ok(None),
            Some(parcel) => self.counted(parcel).map(Some),
        }
    }

    /// All of it, at most `most` bytes, each part in time. Not for use inside of a runtime.
    pub fn collect(mut self, most: usize, limit: Duration) -> Result<Vec<u8>, AnswerError> {
        let mut all = Vec::new();
        loop {
            match self.next_within(limit)?.ok_or(AnswerError::Timeout)? {
                Part::Complete => return Ok(all),
                Part::Data(bytes) if all.len() + bytes.len() > most => return Err(AnswerError::TooLong(most as u64)),
                Part::Data(bytes) => all.extend_from_slice(&bytes),
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Parcel {
        let parcel = self.parts.recv().await;
        self.counted(parcel)
    }
}

/// The end of an answer at its node. Dropped before [`Self::complete`], it breaks the answer off.
#[derive(Debug)]
pub struct Reply {
    parts: mpsc::Sender<Parcel>,
}

impl Reply {
    /// Sends the next bytes; waits while the receiver is slow. False if nobody wants them any more.
    /// Not for use inside of a runtime.
    pub fn send(&self, mut bytes: Bytes) -> bool {
        while !bytes.is_empty() {
            let part = bytes.split_to(bytes.len().min(PART));
            let sent = within(STALL, self.parts.send(Ok(Part::Data(part))));
            if !matches!(sent, Some(Ok(()))) {
                return false;
            }
        }
        true
    }

    /// The answer is complete.
    pub fn complete(self) {
        // Nobody may want it any more.
        let _ = within(STALL, self.parts.send(Ok(Part::Complete)));
    }

    /// There is no answer, or no more of it.
    pub fn fail(self, why: &str) {
        let _ = within(STALL, self.parts.send(Err(AnswerError::Failed(text(why)))));
    }

    /// Passes on a part of an answer of elsewhere. False if nobody wants it any more.
    pub(crate) async fn pass(&self, parcel: Parcel) -> bool {
        matches!(tokio::time::timeout(STALL, self.parts.send(parcel)).await, Ok(Ok(())))
    }

    /// The error of a question that could not be asked.
    pub(crate) fn refuse(self, error: AnswerError) {
        let _ = self.parts.try_send(Err(error));
    }

    pub(crate) fn is_unwanted(&self) -> bool {
        self.parts.is_closed()
    }
}

/// A question to this node.
#[derive(Debug)]
pub struct Question {
    /// The node.
    pub node: Name,
    /// The question.
    pub payload: Bytes,
    /// Where the answer goes.
    pub reply: Reply,
}

/// The questions to this node.
#[derive(Debug)]
pub struct Questions(pub(crate) mpsc::Receiver<Question>);

impl Questions {
    /// The next question, if one waits.
    pub fn try_next(&mut self) -> Option<Question> {
        self.0.try_recv().ok()
    }

    /// The next question, if one comes in time. Not for use inside of a runtime.
    pub fn next_within(&mut self, limit: Duration) -> Option<Question> {
        within(limit, self.0.recv()).flatten()
    }

    /// Whether no question will come any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed() && self.0.is_empty()
    }
}
