//! The side that others connect to.

use crate::accept::Peer;
use crate::link::{Receiver, report};
use crate::message::{Chunk, Down, Up, chunk, down};
use crate::service::Outbox;
use crate::transport::{Answer, AnswerError, Part, Question, Reason, Refusal};
use crate::tree::{LinkId, Tree};
use crate::{Identity, Role};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tonic::codegen::tokio_stream::Stream;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Messages that wait for one connection.
pub(crate) const OUTBOX: usize = 16;
/// How long a node may take to begin an answer, and between two parts of it.
pub(crate) const PART_TIMEOUT: Duration = Duration::from_secs(15);

/// A question whose answer has not begun.
struct Asked {
    link: LinkId,
    identity: Identity,
    at: Instant,
    question: Question,
}

#[derive(Default)]
struct Open {
    next: u64,
    asked: HashMap<u64, Asked>,
}

/// What the four methods share.
pub(crate) struct Server {
    pub(crate) tree: Arc<Tree>,
    pub(crate) stop: watch::Receiver<bool>,
    open: Mutex<Open>,
}

impl Server {
    pub(crate) fn new(tree: Arc<Tree>, stop: watch::Receiver<bool>) -> Self {
        let open = Mutex::default();
        Self { tree, stop, open }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends questions that nobody answers or nobody wants any more; called about once a second.
    pub(crate) fn tick(&self) {
        let is_over =
            |_: &u64, asked: &mut Asked| asked.at.elapsed() > PART_TIMEOUT || asked.question.reply.is_unwanted();
        for (_, asked) in self.open().asked.extract_if(is_over) {
            asked.question.reply.refuse(AnswerError::Timeout);
        }
    }

    fn forget(&self, link: LinkId) {
        // Their replies are dropped: the answers broke off.
        self.open().asked.retain(|_, asked| asked.link != link);
    }

    fn refused(&self, peer: &Peer, reason: Refusal) -> Status {
        self.tree.refused(&peer.from, reason, 1);
        Status::permission_denied(format!("{reason}: this key is for {}", peer.identity.uri()))
    }

    /// A node or relay reports. What comes back is for it: pings and questions.
    pub(crate) fn attach(self: &Arc<Self>, peer: Peer, mut ups: Streaming<Up>) -> Result<Outbox<Down>, Status> {
        if peer.identity.role == Role::Viewer {
            return Err(self.refused(&peer, Refusal::WrongRole));
        }
        let (downs, outbox) = mpsc::channel(OUTBOX);
        let server = self.clone();
        tokio::spawn(async move {
            let (link, mut questions) = server.tree.open(peer.identity.clone());
            let receiver = Receiver {
                tree: &server.tree,
                link,
                from: &peer.from,
            };
            // A ping that finds no room is followed by the next.
            let send = |down| drop(downs.try_send(Ok(down)));
            let ask = |question| server.ask(link, &peer.identity, question, &downs);
            let ended = receiver.run(&mut ups, &mut questions, send, ask).await;
            if let Err(reason) = ended {
                let status = server.refused(&peer, reason);
                let _ = downs.try_send(Err(status));
            }
            server.tree.close(link, ended.unwrap_or(Reason::Refused));
            server.forget(link);
        });
        Ok(ReceiverStream::new(outbox))
    }

    fn ask(&self, link: LinkId, identity: &Identity, question: Question, downs: &mpsc::Sender<Result<Down, Status>>) {
        let mut open = self.open();
        open.next += 1;
        let id = open.next;
        let down = down::Kind::Question(down::Question {
            id,
            node: question.node.to_string(),
            payload: question.payload.clone(),
        });
        if downs.try_send(Ok(down.into())).is_err() {
            return question.reply.refuse(AnswerError::Busy);
        }
        let asked = Asked {
            link,
            identity: identity.clone(),
            at: Instant::now(),
            question,
        };
        open.asked.insert(id, asked);
    }

    /// A node answers a question that it was asked.
    pub(crate) async fn answer(&self, peer: Peer, mut chunks: Streaming<Chunk>) -> Result<(), Status> {
        let late = || Status::deadline_exceeded("the answer does not go on");
        let first = timeout(PART_TIMEOUT, chunks.message()).await.map_err(|_| late())??;
        let mut chunk = first.ok_or_else(|| Status::invalid_argument("an answer without parts"))?;
        let asked = {
            let mut open = self.open();
            let is_theirs = open
                .asked
                .get(&chunk.id)
                .is_some_and(|asked| asked.identity == peer.identity);
            is_theirs.then(|| open.asked.remove(&chunk.id)).flatten()
        };
        let Some(Asked { question, .. }) = asked else {
            return Err(Status::not_found("nobody asked this key that"));
        };
        loop {
            let parcel = parcel(chunk);
            let is_last = !matches!(parcel, Ok(Part::Data(_)));
            if !question.reply.pass(parcel).await {
                return Err(Status::cancelled("nobody wants the answer any more"));
            }
            if is_last {
                return Ok(());
            }
            let next = timeout(PART_TIMEOUT, chunks.message()).await.map_err(|_| late())??;
            chunk = next.ok_or_else(|| Status::invalid_argument("an answer without an end"))?;
        }
    }

    fn may_look(&self, peer: &Peer) -> Result<(), Status> {
        match peer.identity.role {
            Role::Viewer | Role::Root => Ok(()),
            Role::Node | Role::Relay => Err(self.refused(peer, Refusal::WrongRole)),
        }
    }

    /// A viewer looks on.
    pub(crate) fn watch(&self, peer: &Peer, mut downs: Streaming<Down>) -> Result<Outbox<Up>, Status> {
        self.may_look(peer)?;
        let (ups, outbox) = mpsc::channel(OUTBOX);
        let mut events = self.tree.subscribe();
        let mut stop = self.stop.clone();
        tokio::spawn(async move { report(&mut events, &ups, Ok, &mut downs, |_| {}, &mut stop).await });
        Ok(ReceiverStream::new(outbox))
    }

    /// A viewer asks a node.
    pub(crate) fn fetch(
        &self,
        peer: &Peer,
        question: down::Question,
    ) -> Result<impl Stream<Item = Result<Chunk, Status>> + use<>, Status> {
        self.may_look(peer)?;
        let node = crate::message::name(&question.node).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let (chunks, outbox) = mpsc::channel(1);
        tokio::spawn(send_answer(
            self.tree.query(&node, question.payload),
            question.id,
            chunks,
            Ok,
        ));
        Ok(ReceiverStream::new(outbox))
    }
}

/// A part of a message.
pub(crate) fn parcel(chunk: Chunk) -> Result<Part, AnswerError> {
    match chunk.kind {
        Some(chunk::Kind::Data(bytes)) => Ok(Part::Data(bytes)),
        Some(chunk::Kind::Complete(true)) => Ok(Part::Complete),
        Some(chunk::Kind::Failed(why)) => Err(AnswerError::Failed(crate::message::text(&why))),
        None | Some(chunk::Kind::Complete(false)) => Err(AnswerError::BrokenOff),
    }
}

/// Sends an answer as messages, until it ends or nobody receives it.
pub(crate) async fn send_answer<T>(mut answer: Answer, id: u64, chunks: mpsc::Sender<T>, wrap: impl Fn(Chunk) -> T) {
    loop {
        let kind = match answer.next().await {
            Ok(Part::Data(bytes)) => chunk::Kind::Data(bytes),
            Ok(Part::Complete) => chunk::Kind::Complete(true),
            Err(error) => chunk::Kind::Failed(error.to_string()),
        };
        let is_last = !matches!(kind, chunk::Kind::Data(_));
        let chunk = Chunk { id, kind: Some(kind) };
        let is_sent = tokio::select! {
            sent = chunks.send(wrap(chunk)) => sent.is_ok(),
            () = tokio::time::sleep(crate::transport::STALL) => false,
        };
        if is_last || !is_sent {
            return;
        }
    }
}

/// An empty part begins an answer before its first bytes are known.
pub(crate) fn first_chunk(id: u64) -> Chunk {
    Chunk {
        id,
        kind: Some(chunk::Kind::Data(Bytes::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::Dialer;
    use crate::message::{MAX_MESSAGE, VERSION, up};
    use crate::service::Calls;
    use crate::transport::{Event, Transport};
    use crate::{Authority, Config, Daemon, Listen, Name};
    use prost::Message;

    const LIMIT: Duration = Duration::from_secs(30);

    /// A message that nobody of a job sends: the kinds have other types.
    #[derive(Clone, PartialEq, prost::Message)]
    struct Strange {
        #[prost(fixed64, tag = "1")]
        number: u64,
    }

    fn hello(node: &str, generation: u64) -> Up {
        up::Kind::Hello(up::Hello {
            version: VERSION,
            node: node.into(),
            generation,
            info: Bytes::new(),
        })
        .into()
    }

    struct Job {
        path: std::path::PathBuf,
        authority: Authority,
        root: Daemon,
        runtime: tokio::runtime::Runtime,
    }

    impl Job {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("roctop-serve-{test}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            let jobs = path.join("roctop/jobs");
            let authority = Authority::open_or_create(&jobs, &Name::new("77").unwrap(), LIMIT * 100).unwrap();
            let key = authority.issue(Role::Root, &Name::new("login").unwrap()).unwrap();
            let config = Config {
                listen: Some(Listen::At("127.0.0.1:0".into())),
                ..Config::default()
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            Self {
                path,
                authority,
                root: Daemon::start(&key, config).unwrap().0,
                runtime: runtime.unwrap(),
            }
        }

        fn connect(&self, role: Role, name: &str) -> tonic::transport::Channel {
            let key = self.authority.issue(role, &Name::new(name).unwrap()).unwrap();
            let address = self.root.address().unwrap().to_string();
            let dialer = Dialer::new(&key).unwrap();
            self.runtime.block_on(async { dialer.connect(&address).await.unwrap() })
        }

        /// What the root says to messages of a key for `a`, and what it reports.
        fn said(&self, sent: Vec<Up>) -> (Option<Status>, Vec<Event>) {
            let channel = self.connect(Role::Node, "a");
            let mut events = self.root.subscribe();
            let status = self.runtime.block_on(async {
                let (ups, outbox) = mpsc::channel(OUTBOX);
                for up in sent {
                    ups.send(up).await.unwrap();
                }
                let mut downs = Calls::attach(channel, ReceiverStream::new(outbox)).await.unwrap();
                let ended = timeout(Duration::from_secs(2), async {
                    loop {
                        if let Err(status) = downs.message().await {
                            return status;
                        }
                    }
                });
                ended.await.ok()
            });
            (status, std::iter::from_fn(|| events.try_next()).collect())
        }
    }

    impl Drop for Job {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }

    fn refusals(events: &[Event]) -> Vec<Refusal> {
        let reasons = events.iter().filter_map(|event| match event {
            Event::Refused { reason, .. } => Some(*reason),
            _ => None,
        });
        reasons.collect()
    }

    #[test]
    fn a_valid_key_that_claims_another_node_is_refused() {
        let job = Job::new("claims");
        let (status, events) = job.said(vec![hello("a", 1)]);
        assert!(
            status.is_none() && refusals(&events).is_empty(),
            "{status:?} {events:?}"
        );
        let (status, events) = job.said(vec![hello("b", 1)]);
        let status = status.unwrap();
        assert!(
            status.message().contains("this key is for roctop://77/node/a"),
            "{status}"
        );
        assert_eq!(refusals(&events), [Refusal::WrongNode]);
        // Nor does it report for another one after its own hello.
        let report = up::Kind::Report(up::Report {
            node: "b".into(),
            payload: Bytes::from_static(b"false"),
        });
        let (_, events) = job.said(vec![hello("a", 2), report.into()]);
        assert!(
            !events.iter().any(|event| matches!(event, Event::Report { .. })),
            "{events:?}"
        );
    }

    #[test]
    fn what_is_no_message_ends_the_connection() {
        let job = Job::new("strange");
        let strange = |bytes: &[u8]| Up::decode(bytes).is_err();
        assert!(strange(&Strange { number: 7 }.encode_to_vec()));
        let old = up::Hello {
            version: VERSION + 1,
            node: "a".into(),
            ..up::Hello::default()
        };
        let report = |length| up::Report {
            node: "a".into(),
            payload: vec![0; length].into(),
        };
        for (up, reason) in [
            (up::Kind::Hello(old), Refusal::Version),
            (hello("../a", 1).kind.unwrap(), Refusal::BadMessage),
            (up::Kind::Report(report(crate::MAX_REPORT + 1)), Refusal::BadMessage),
            (up::Kind::Report(report(2 * MAX_MESSAGE)), Refusal::BadMessage),
        ] {
            let (status, events) = job.said(vec![up.into()]);
            assert!(status.is_some());
            // Those of one reason are counted together, in a second at most.
            std::thread::sleep(Duration::from_millis(1100));
            assert!(refusals(&events).contains(&reason), "{reason} {events:?}");
        }
        // With the types of another protocol.
        let channel = job.connect(Role::Node, "a");
        let mut events = job.root.subscribe();
        job.runtime.block_on(async {
            let mut grpc = tonic::client::Grpc::new(channel);
            grpc.ready().await.unwrap();
            let path = tonic::codegen::http::uri::PathAndQuery::from_static("/roctop.job.Job/Attach");
            let (sender, outbox) = mpsc::channel(1);
            sender.send(Strange { number: 7 }).await.unwrap();
            let codec = tonic_prost::ProstCodec::<Strange, Down>::default();
            let request = tonic::Request::new(ReceiverStream::new(outbox));
            let mut downs = grpc.streaming(request, path, codec).await.unwrap().into_inner();
            let ended = async { while let Ok(Some(_)) = downs.message().await {} };
            timeout(LIMIT, ended).await.unwrap();
        });
        let event = events.next_within(LIMIT).unwrap();
        assert_eq!(refusals(&[event]), [Refusal::BadMessage]);
        assert!(job.root.alive().is_empty());
    }

    #[test]
    fn an_answer_of_another_key_is_refused() {
        let job = Job::new("answers");
        let asked = job.connect(Role::Node, "a");
        let other = job.connect(Role::Node, "b");
        let (ups, outbox) = mpsc::channel(OUTBOX);
        let mut downs = job.runtime.block_on(async {
            ups.send(hello("a", 1)).await.unwrap();
            Calls::attach(asked.clone(), ReceiverStream::new(outbox)).await.unwrap()
        });
        while job.root.alive().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let answer = job.root.query(&Name::new("a").unwrap(), Bytes::from_static(b"who"));
        let collected = std::thread::spawn(|| answer.collect(99, LIMIT));
        let (refused, taken) = job.runtime.block_on(async {
            let id = loop {
                if let Some(Down {
                    kind: Some(down::Kind::Question(question)),
                }) = downs.message().await.unwrap()
                {
                    break question.id;
                }
            };
            let send = |channel, bytes: &'static [u8]| async move {
                let (chunks, outbox) = mpsc::channel(2);
                for kind in [
                    chunk::Kind::Data(Bytes::from_static(bytes)),
                    chunk::Kind::Complete(true),
                ] {
                    chunks.send(Chunk { id, kind: Some(kind) }).await.unwrap();
                }
                drop(chunks);
                Calls::answer(channel, ReceiverStream::new(outbox)).await
            };
            (send(other, b"not me").await, send(asked, b"me").await)
        });
        assert_eq!(refused.unwrap_err().code(), tonic::Code::NotFound);
        taken.unwrap();
        assert_eq!(collected.join().unwrap(), Ok(b"me".to_vec()));
        drop(ups);
    }
}
