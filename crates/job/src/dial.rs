//! Connects to a listener: TCP, TLS, HTTP/2.

use crate::accept::Stream;
use crate::tls;
use crate::{Identity, Key, Name, Result};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use std::error::Error as StdError;
use std::future::{Ready, ready};
use std::io::{self, Cursor};
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::codegen::{Service, http::Uri};
use tonic::transport::{Channel, Endpoint};

/// Time limits of the connection and of the handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that does not answer within both together is closed.
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(1);
pub(crate) const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes that may be on the way unread, of one stream and of a connection.
pub(crate) const STREAM_WINDOW: u32 = 4 << 20;
pub(crate) const CONNECTION_WINDOW: u32 = 8 << 20;

/// An error and its causes, without control characters.
pub(crate) fn words(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    crate::message::text(&text)
}

/// Why a connection cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("cannot connect to {0}")]
    Connect(String, #[source] io::Error),
    #[error("the job has one node, {0}, and no network: 'roctop job' on that node shows it")]
    Local(String, #[source] io::Error),
    #[error("{0} does not answer")]
    Timeout(String),
    #[error("{0} refuses this key, which has expired")]
    Expired(String, #[source] io::Error),
    #[error("{0} has no key of this job")]
    Key(String, #[source] io::Error),
    #[error("{0} refuses this key")]
    Refused(String, #[source] io::Error),
    #[error("{0} has a key of {1}, which nobody reports to")]
    Role(String, String),
    #[error("no HTTP/2 with {0}")]
    Http(String, #[source] tonic::transport::Error),
}

/// The stream, ready for HTTP/2.
type Io = TokioIo<Box<dyn Stream>>;

/// Hands one connection out. When that has ended, the channel is of no use any more, and a new one is dialled.
struct Once(Option<Io>);

impl Service<Uri> for Once {
    type Response = Io;
    type Error = io::Error;
    type Future = Ready<io::Result<Io>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}

/// Connects with one key.
#[derive(Clone)]
pub(crate) struct Dialer {
    tls: Arc<ClientConfig>,
    job: Name,
    expires: SystemTime,
}

impl Dialer {
    pub(crate) fn new(key: &Key) -> Result<Self> {
        Ok(Self {
            tls: tls::client(key)?,
            job: key.identity().job.clone(),
            expires: key.expires(),
        })
    }

    /// A new connection to `HOST:PORT`, or to the socket of a [`local_address`].
    pub(crate) async fn connect(&self, address: &str) -> Result<Channel, DialError> {
        let who = || address.to_owned();
        if let Some((host, path)) = local_parts(address) {
            return channel(local(host, path).await?, address).await;
        }
        let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
        let stream = stream
            .map_err(|_| DialError::Timeout(who()))?
            .map_err(|error| DialError::Connect(who(), error))?;
        // Small messages go at once; if the option is refused they are late.
        let _ = stream.set_nodelay(true);
        let connector = TlsConnector::from(self.tls.clone());
        let stream = timeout(HANDSHAKE_TIMEOUT, connector.connect(tls::server_name(), stream)).await;
        let stream = stream
            .map_err(|_| DialError::Timeout(who()))?
            .map_err(|error| DialError::Key(who(), error))?;
        match tls::peer(stream.get_ref().1.peer_certificates()) {
            Some(Identity { job, role, .. }) if job == self.job && role.is_server() => {}
            other => {
                let other = other.map_or("nobody".to_owned(), |peer| peer.uri());
                return Err(DialError::Role(who(), other));
            }
        }
        // The other end checks this one's key after the handshake, as seen from here. It speaks first, so that an error of TLS
        // is seen here; HTTP/2 would not say it.
        let (mut read, write) = tokio::io::split(stream);
        let mut first = [0];
        let spoken = timeout(HANDSHAKE_TIMEOUT, read.read_exact(&mut first)).await;
        spoken.map_err(|_| DialError::Timeout(who()))?.map_err(|error| {
            if self.expires <= SystemTime::now() {
                DialError::Expired(who(), error)
            } else {
                DialError::Refused(who(), error)
            }
        })?;
        let stream = tokio::io::join(Cursor::new(first).chain(read), write);
        channel(Box::new(stream), address).await
    }
}

async fn channel(stream: Box<dyn Stream>, address: &str) -> Result<Channel, DialError> {
    Endpoint::from_static("http://roctop")
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .connect_with_connector(Once(Some(TokioIo::new(stream))))
        .await
        .map_err(|error| DialError::Http(address.to_owned(), error))
}

/// Before the host and the path of a socket, in the address of a job of one node.
const LOCAL: &str = "unix:";

/// The address of a job of one node: a socket on this machine.
pub(crate) fn local_address(host: &str, path: &Path) -> String {
    format!("{LOCAL}{host}:{}", path.display())
}

/// Host and path of such an address; `None` of others.
pub(crate) fn local_parts(address: &str) -> Option<(&str, &str)> {
    address.strip_prefix(LOCAL)?.split_once(':')
}

/// The node of a job that has one node and no network, by its root's address; `None` for others.
pub fn one_node(address: &str) -> Option<&str> {
    local_parts(address).map(|(host, _)| host)
}

/// Connects to a socket of a process of the same user.
async fn local(host: &str, path: &str) -> Result<Box<dyn Stream>, DialError> {
    let gone = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => DialError::Local(host.to_owned(), error),
        _ => DialError::Connect(path.to_owned(), error),
    };
    let stream = UnixStream::connect(path).await.map_err(gone)?;
    let peer = stream.peer_cred().map_err(gone)?;
    if peer.uid() != rustix::process::getuid().as_raw() {
        return Err(DialError::Connect(
            path.to_owned(),
            io::ErrorKind::PermissionDenied.into(),
        ));
    }
    Ok(Box::new(stream))
}
