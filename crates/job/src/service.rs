//! The four methods between two processes of a job, as gRPC.
//!
//! | method | who calls | direction |
//! | --- | --- | --- |
//! | `Attach` | a node or relay, at what it reports to | reports up, questions and pings down |
//! | `Answer` | the same, on a second connection | an answer up |
//! | `Watch` | a viewer, at a root or relay | reports to the viewer, pings from it |
//! | `Fetch` | the same, on a second connection | a question, its answer to the viewer |

use crate::accept::Peer;
use crate::message::{Chunk, Down, Empty, MAX_CHUNK, MAX_MESSAGE, Up, down::Question};
use crate::serve::Server;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::{BoxFuture, BoxStream, Service, http};
use tonic::server::{ClientStreamingService, Grpc, ServerStreamingService, StreamingService};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

const ATTACH: &str = "/roctop.job.Job/Attach";
const ANSWER: &str = "/roctop.job.Job/Answer";
const WATCH: &str = "/roctop.job.Job/Watch";
const FETCH: &str = "/roctop.job.Job/Fetch";

/// A future of a method's result.
type Reply<T> = BoxFuture<Response<T>, Status>;

/// Messages on their way to another process.
pub(crate) type Outbox<T> = ReceiverStream<Result<T, Status>>;

fn peer<T>(request: &Request<T>) -> Result<Peer, Status> {
    // Each connection has one; see accept.rs.
    let peer = request.extensions().get::<Peer>();
    peer.cloned().ok_or_else(|| Status::unauthenticated("no key"))
}

#[derive(Clone)]
pub(crate) struct Methods(pub(crate) Arc<Server>);

struct Attach(Arc<Server>);
struct Answer(Arc<Server>);
struct Watch(Arc<Server>);
struct Fetch(Arc<Server>);

impl StreamingService<Up> for Attach {
    type Response = Down;
    type ResponseStream = Outbox<Down>;
    type Future = Reply<Outbox<Down>>;

    fn call(&mut self, request: Request<Streaming<Up>>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move {
            let peer = peer(&request)?;
            Ok(Response::new(server.attach(peer, request.into_inner())?))
        })
    }
}

impl ClientStreamingService<Chunk> for Answer {
    type Response = Empty;
    type Future = Reply<Empty>;

    fn call(&mut self, request: Request<Streaming<Chunk>>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move {
            let peer = peer(&request)?;
            server.answer(peer, request.into_inner()).await?;
            Ok(Response::new(Empty {}))
        })
    }
}

impl StreamingService<Down> for Watch {
    type Response = Up;
    type ResponseStream = Outbox<Up>;
    type Future = Reply<Outbox<Up>>;

    fn call(&mut self, request: Request<Streaming<Down>>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move {
            let peer = peer(&request)?;
            Ok(Response::new(server.watch(&peer, request.into_inner())?))
        })
    }
}

impl ServerStreamingService<Question> for Fetch {
    type Response = Chunk;
    type ResponseStream = BoxStream<Chunk>;
    type Future = Reply<BoxStream<Chunk>>;

    fn call(&mut self, request: Request<Question>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move {
            let peer = peer(&request)?;
            let chunks = server.fetch(&peer, request.into_inner())?;
            Ok(Response::new(Box::pin(chunks) as BoxStream<Chunk>))
        })
    }
}

impl Service<http::Request<Body>> for Methods {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move {
            Ok(match request.uri().path() {
                ATTACH => {
                    let codec = ProstCodec::<Down, Up>::default();
                    let mut grpc = Grpc::new(codec).max_decoding_message_size(MAX_MESSAGE);
                    grpc.streaming(Attach(server), request).await
                }
                ANSWER => {
                    let codec = ProstCodec::<Empty, Chunk>::default();
                    let mut grpc = Grpc::new(codec).max_decoding_message_size(MAX_CHUNK);
                    grpc.client_streaming(Answer(server), request).await
                }
                WATCH => {
                    let codec = ProstCodec::<Up, Down>::default();
                    let mut grpc = Grpc::new(codec).max_decoding_message_size(MAX_MESSAGE);
                    grpc.streaming(Watch(server), request).await
                }
                FETCH => {
                    let codec = ProstCodec::<Chunk, Question>::default();
                    let mut grpc = Grpc::new(codec).max_decoding_message_size(MAX_MESSAGE);
                    grpc.server_streaming(Fetch(server), request).await
                }
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

/// Calls of the four methods over one connection.
pub(crate) struct Calls(tonic::client::Grpc<Channel>);

type Called<T> = Result<T, Status>;

impl Calls {
    /// Calls with received messages of at most `limit` bytes.
    fn new(channel: Channel, limit: usize) -> Self {
        Self(tonic::client::Grpc::new(channel).max_decoding_message_size(limit))
    }

    async fn ready(&mut self) -> Called<()> {
        let ready = self.0.ready().await;
        ready.map_err(|error| Status::new(Code::Unavailable, crate::dial::words(&error)))
    }

    pub(crate) async fn attach(channel: Channel, ups: ReceiverStream<Up>) -> Called<Streaming<Down>> {
        let mut calls = Self::new(channel, MAX_MESSAGE);
        calls.ready().await?;
        let codec = ProstCodec::<Up, Down>::default();
        let called = calls
            .0
            .streaming(Request::new(ups), PathAndQuery::from_static(ATTACH), codec);
        Ok(called.await?.into_inner())
    }

    pub(crate) async fn answer(channel: Channel, chunks: ReceiverStream<Chunk>) -> Called<()> {
        let mut calls = Self::new(channel, MAX_MESSAGE);
        calls.ready().await?;
        let codec = ProstCodec::<Chunk, Empty>::default();
        let called = calls
            .0
            .client_streaming(Request::new(chunks), PathAndQuery::from_static(ANSWER), codec);
        called.await.map(drop)
    }

    pub(crate) async fn watch(channel: Channel, downs: ReceiverStream<Down>) -> Called<Streaming<Up>> {
        let mut calls = Self::new(channel, MAX_MESSAGE);
        calls.ready().await?;
        let codec = ProstCodec::<Down, Up>::default();
        let called = calls
            .0
            .streaming(Request::new(downs), PathAndQuery::from_static(WATCH), codec);
        Ok(called.await?.into_inner())
    }

    pub(crate) async fn fetch(channel: Channel, question: Question) -> Called<Streaming<Chunk>> {
        let mut calls = Self::new(channel, MAX_CHUNK);
        calls.ready().await?;
        let codec = ProstCodec::<Question, Chunk>::default();
        let called = calls
            .0
            .server_streaming(Request::new(question), PathAndQuery::from_static(FETCH), codec);
        Ok(called.await?.into_inner())
    }
}
