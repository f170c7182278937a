//! Accepts connections and shakes hands. Handshakes run side by side and have a time limit; of too many, the oldest of the
//! address with most of them ends. So connections that say nothing keep nobody out.

use crate::tls;
use crate::transport::Refusal;
use crate::tree::Tree;
use crate::{Identity, Name, Role};
use rustls::ServerConfig;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tonic::transport::server::Connected;

/// Time limit of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of unfinished handshakes.
const MAX_UNFINISHED: usize = 2048;
/// Rest when the system has no file descriptor left.
const REST: Duration = Duration::from_millis(100);

/// Who is at the other end of a connection, and where.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) identity: Identity,
    pub(crate) from: Arc<str>,
}

/// What a connection is made of: bytes both ways.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection with a verified key, or of a process of the same user on this machine.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    peer: Peer,
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[derive(Debug)]
struct Handshake {
    from: IpAddr,
    abort: AbortHandle,
}

/// Handshakes that are not finished, oldest first.
#[derive(Debug, Default)]
struct Unfinished {
    next: u64,
    handshakes: BTreeMap<u64, Handshake>,
    of_address: HashMap<IpAddr, usize>,
}

impl Unfinished {
    fn remove(&mut self, number: u64) -> Option<Handshake> {
        let handshake = self.handshakes.remove(&number)?;
        if let Some(count) = self.of_address.get_mut(&handshake.from) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&handshake.from);
            }
        }
        Some(handshake)
    }

    /// The oldest of the address with most of them.
    fn evicted(&mut self) -> Option<Handshake> {
        let most = self.of_address.iter().max_by_key(|(_, count)| **count)?.0;
        let number = *self.handshakes.iter().find(|(_, handshake)| handshake.from == *most)?.0;
        self.remove(number)
    }
}

/// Limits of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) unfinished: usize,
    pub(crate) handshake: Duration,
}

impl Limits {
    /// Limits for a process with this number of file descriptors.
    pub(crate) fn of_descriptors(descriptors: u64) -> Self {
        Self {
            unfinished: MAX_UNFINISHED.min(descriptors as usize / 4).max(1),
            handshake: HANDSHAKE_TIMEOUT,
        }
    }
}

/// Accepts until `connections` is closed.
pub(crate) async fn run(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    job: Name,
    tree: Arc<Tree>,
    limits: Limits,
    connections: mpsc::Sender<Result<Connection, io::Error>>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let unfinished = Arc::new(Mutex::new(Unfinished::default()));
    let lock = |unfinished: &Mutex<Unfinished>, number| {
        unfinished.lock().unwrap_or_else(PoisonError::into_inner).remove(number)
    };
    loop {
        let accepted = tokio::select! {
            () = connections.closed() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                let errno = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
                if matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE)) {
                    tree.refused("", Refusal::Descriptors, 1);
                    sleep(REST).await;
                }
                continue;
            }
        };
        let mut open = unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        if open.handshakes.len() >= limits.unfinished
            && let Some(oldest) = open.evicted()
        {
            oldest.abort.abort();
            tree.refused(&oldest.from.to_string(), Refusal::Crowded, 1);
        }
        let number = open.next;
        open.next += 1;
        let task = {
            let (acceptor, job, tree) = (acceptor.clone(), job.clone(), tree.clone());
            let (connections, unfinished) = (connections.clone(), unfinished.clone());
            tokio::spawn(async move {
                let shaken = shake(stream, address, &acceptor, &job, limits.handshake).await;
                lock(&unfinished, number);
                match shaken {
                    // The server has ended if nobody takes it.
                    Ok(connection) => drop(connections.send(Ok(connection)).await),
                    Err(reason) => tree.refused(&address.ip().to_string(), reason, 1),
                }
            })
        };
        let from = address.ip();
        let abort = task.abort_handle();
        open.handshakes.insert(number, Handshake { from, abort });
        *open.of_address.entry(from).or_default() += 1;
    }
}

async fn shake(
    stream: TcpStream,
    address: SocketAddr,
    acceptor: &TlsAcceptor,
    job: &Name,
    limit: Duration,
) -> Result<Connection, Refusal> {
    // Small messages go at once; if the option is refused they are late.
    let _ = stream.set_nodelay(true);
    let shaken = timeout(limit, acceptor.accept(stream)).await;
    let stream = shaken
        .map_err(|_| Refusal::Unfinished)?
        .map_err(|error| tls::refusal(&error))?;
    let identity = tls::peer(stream.get_ref().1.peer_certificates()).ok_or(Refusal::OtherJob)?;
    if identity.job != *job {
        return Err(Refusal::OtherJob);
    }
    let from = address.ip().to_string().into();
    Ok(Connection {
        stream: Box::new(stream),
        peer: Peer { identity, from },
    })
}

/// Accepts processes of the same user on this machine until `connections` is closed. They look on, as viewers do; nobody
/// reports here.
pub(crate) async fn run_local(
    listener: UnixListener,
    job: Name,
    connections: mpsc::Sender<Result<Connection, io::Error>>,
) {
    let own = rustix::process::getuid().as_raw();
    loop {
        let accepted = tokio::select! {
            () = connections.closed() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(REST).await;
            continue;
        };
        // Nobody else can reach the socket, unless its folder was opened to them.
        if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
            continue;
        }
        let connection = local(stream, &job);
        // The server has ended if nobody takes it.
        let _ = connections.send(Ok(connection)).await;
    }
}

fn local(stream: UnixStream, job: &Name) -> Connection {
    let identity = Identity {
        job: job.clone(),
        role: Role::Viewer,
        name: Name::of_text("local"),
    };
    let from = "this machine".into();
    Connection {
        stream: Box::new(stream),
        peer: Peer { identity, from },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_address_with_most_handshakes_loses_one() {
        let mut unfinished = Unfinished::default();
        let address = |last| IpAddr::from([10, 0, 0, last]);
        for (number, last) in [1, 2, 2, 2, 3].into_iter().enumerate() {
            let abort = tokio::spawn(std::future::pending::<()>()).abort_handle();
            let from = address(last);
            unfinished.handshakes.insert(number as u64, Handshake { from, abort });
            *unfinished.of_address.entry(from).or_default() += 1;
        }
        assert_eq!(unfinished.evicted().unwrap().from, address(2));
        assert!(!unfinished.handshakes.contains_key(&1) && unfinished.handshakes.len() == 4);
        for number in 0..5 {
            unfinished.remove(number);
        }
        assert!(unfinished.of_address.is_empty() && unfinished.evicted().is_none());
    }
}
