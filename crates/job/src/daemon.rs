//! A process of a job's network: the daemon of a node, a relay, the root or a screen. They differ in what they have: a node, a
//! listener, something that they report to, something that they watch.

use crate::accept::{self, Limits};
use crate::dial::{CONNECTION_WINDOW, Dialer, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, STREAM_WINDOW};
use crate::dialled::{Connection, Dialled};
use crate::memory::Member;
use crate::serve::Server;
use crate::service::Methods;
use crate::transport::{Alive, Answer, Questions, Subscription, Transport};
use crate::tree::Tree;
use crate::{Error, Folder, Key, Name, Result, tls};
use bytes::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;
/// How long a process that others watch stays for its last reports.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// Connections with a key that wait for the server.
const ACCEPTED: usize = 64;

/// Where something listens.
#[derive(Clone, Debug)]
pub enum Address {
    /// At `HOST:PORT`.
    Fixed(String),
    /// Where the root has written into the job's folder; read at each attempt, so that a new root is found.
    OfFolder(Folder),
}

impl Address {
    pub(crate) fn find(&self) -> Result<Option<String>> {
        match self {
            Self::Fixed(address) => Ok(Some(address.clone())),
            Self::OfFolder(folder) => folder.root(),
        }
    }
}

/// Where a process listens.
#[derive(Clone, Debug)]
pub enum Listen {
    /// At one address, `HOST:PORT`. Port 0 stands for any.
    At(String),
    /// At a Unix socket: a job of one node has no network. Processes of the same user look on there.
    Local(PathBuf),
}

/// A listener.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn start(listen: &Listen) -> Result<Self> {
        match listen {
            Listen::At(text) => bind(text).map(Self::Tcp),
            Listen::Local(path) => bind_local(path).map(Self::Unix).map_err(Error::file("listen at", path)),
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }
}

fn bind_local(path: &Path) -> io::Result<UnixListener> {
    // That of a process that was killed: this one has its lock.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// What a process of a job's network has.
#[derive(Default)]
pub struct Config {
    /// The node that this process is the daemon of has the key's name and says this of itself; `None` if it has no node.
    pub info: Option<Bytes>,
    /// Where to listen; the key must be a root's or a relay's.
    pub listen: Option<Listen>,
    /// What it reports to.
    pub report_to: Option<Address>,
    /// What it watches: a viewer the root; a root that nodes cannot reach dials relays.
    pub watch: Vec<Address>,
    /// Where another key comes from when what it dials refuses the present one.
    pub renew: Option<Renew>,
}

/// Gives another key.
pub type Renew = Arc<dyn Fn() -> Result<Key> + Send + Sync>;

/// Raises the limit of this process's file descriptors to what the system allows, and returns it. Programs that the process
/// starts inherit it, so only processes that start none call this.
pub fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // If it is refused, the limit is what it was.
    let _ = setrlimit(Resource::Nofile, raised);
    descriptors()
}

fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The address of a text. Errors: it is none, has no name, or stands for all addresses of the machine.
fn listen_address(text: &str) -> Result<SocketAddr> {
    let not = |why: String| Error::Address {
        address: text.to_owned(),
        why,
    };
    let mut found = text.to_socket_addrs().map_err(|error| not(error.to_string()))?;
    let address = found.next().ok_or_else(|| not("the name has no address".to_owned()))?;
    if address.ip().is_unspecified() {
        return Err(not("it stands for all addresses; name one".to_owned()));
    }
    Ok(address)
}

fn bind(text: &str) -> Result<TcpListener> {
    let address = listen_address(text)?;
    let bound = || -> io::Result<TcpListener> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // A root that comes back finds its port free.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bound().map_err(|error| Error::Address {
        address: text.to_owned(),
        why: error.to_string(),
    })
}

/// A process of a job's network. It ends when it is dropped, with a goodbye.
#[derive(Debug)]
pub struct Daemon {
    member: Member,
    address: Option<SocketAddr>,
    connections: Vec<Arc<Mutex<Connection>>>,
    /// Of what it reports to: nobody listens there.
    is_rootless: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Daemon {
    /// Starts it in a thread, and returns the questions to its node. What it dials need not be there yet.
    ///
    /// Errors: it cannot listen, the key does not allow it, or the thread cannot start.
    pub fn start(key: &Key, config: Config) -> Result<(Self, Questions)> {
        let identity = key.identity().clone();
        let tree = Arc::new(Tree::default());
        let (member, questions) = match config.info {
            Some(info) => Member::node(tree.clone(), &identity.job, &identity.name, info)?,
            None => (Member::viewer(tree.clone()), Questions(mpsc::channel(1).1)),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(Error::Start)?;
        let listener = match &config.listen {
            None => None,
            Some(_) if !identity.role.is_server() => return Err(Error::NoServer(identity.role.to_string())),
            Some(listen) => {
                let _in_runtime = runtime.enter();
                Some(Listener::start(listen)?)
            }
        };
        let address = listener.as_ref().and_then(Listener::address);
        let (stop, stopped) = watch::channel(false);
        let server = Arc::new(Server::new(tree.clone(), stopped.clone()));
        let dialer = Dialer::new(key)?;
        let dialled = |address| Dialled {
            tree: tree.clone(),
            dialer: dialer.clone(),
            address,
            own: identity.clone(),
            connection: Arc::default(),
            is_absent: Arc::default(),
            renew: config.renew.clone(),
            stop: stopped.clone(),
        };
        let report_to: Vec<Dialled> = config.report_to.into_iter().map(dialled).collect();
        let is_rootless = report_to.first().map(|dialled| dialled.is_absent.clone());
        let watched: Vec<Dialled> = config.watch.into_iter().map(dialled).collect();
        let all = report_to.iter().chain(&watched);
        let connections = all.map(|dialled| dialled.connection.clone()).collect();
        let tls = tls::server(key)?;
        let job = identity.job.clone();
        let thread = std::thread::Builder::new().name("job".into()).spawn(move || {
            runtime.block_on(async {
                let mut dialled = JoinSet::new();
                for above in report_to {
                    dialled.spawn(above.run(true));
                }
                for below in watched {
                    dialled.spawn(below.run(false));
                }
                let listens = listener.is_some();
                if let Some(listener) = listener {
                    let (connections, accepted) = mpsc::channel(ACCEPTED);
                    let limits = Limits::of_descriptors(descriptors());
                    match listener {
                        Listener::Tcp(listener) => {
                            let tree = server.tree.clone();
                            tokio::spawn(accept::run(listener, tls, job, tree, limits, connections))
                        }
                        Listener::Unix(listener) => tokio::spawn(accept::run_local(listener, job, connections)),
                    };
                    tokio::spawn(serve(server.clone(), ReceiverStream::new(accepted)));
                }
                tick(server, stopped).await;
                // A goodbye has its own time limit.
                dialled.join_all().await;
                if listens {
                    // What was reported last goes out to those who watch.
                    tokio::time::sleep(LAST_WORDS).await;
                }
            });
            runtime.shutdown_background();
        });
        let daemon = Self {
            member,
            address,
            connections,
            is_rootless: is_rootless.unwrap_or_default(),
            stop,
            thread: Some(thread.map_err(Error::Start)?),
        };
        Ok((daemon, questions))
    }

    /// The address at which it listens, if it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Whether nobody listens where it reports to: no address is known, or its machine refuses the connection.
    pub fn is_rootless(&self) -> bool {
        self.is_rootless.load(Ordering::Relaxed)
    }

    /// The node's name, if it has one.
    pub fn name(&self) -> Option<&Name> {
        self.member.name()
    }

    /// Whether it is connected with what it reports to, and with all that it watches, in this order.
    pub fn connections(&self) -> Vec<Connection> {
        let lock = |connection: &Arc<Mutex<Connection>>| {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            connection.clone()
        };
        self.connections.iter().map(lock).collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A thread that has failed has stopped.
            let _ = thread.join();
        }
        self.member.tree.end();
    }
}

impl Transport for Daemon {
    fn publish(&self, report: Bytes) -> Result<()> {
        self.member.publish(report)
    }

    fn subscribe(&self) -> Subscription {
        self.member.subscribe()
    }

    fn query(&self, node: &Name, question: Bytes) -> Answer {
        self.member.query(node, question)
    }

    fn alive(&self) -> Vec<Alive> {
        self.member.alive()
    }
}

/// Serves connections, until the daemon ends.
async fn serve(server: Arc<Server>, connections: ReceiverStream<Result<accept::Connection, io::Error>>) {
    let served = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .serve_with_incoming(Methods(server), connections);
    // It ends with the runtime only.
    let _ = served.await;
}

/// What is due about once a second, until the daemon ends.
async fn tick(server: Arc<Server>, mut stop: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            _ = ticks.tick() => {
                server.tree.tick();
                server.tick();
            }
        }
    }
}
