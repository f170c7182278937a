//! The socket at which the roctop of each rank hands its sums to the node's daemon.
//!
//! It has mode 0600 in a folder of mode 0700, and both ends check the user of the other. A rank sends a hello, then its sums once
//! a second, each as a length of four bytes (little endian) and the bytes. The daemon keeps the latest of each rank. Nothing
//! comes back, and nobody waits: a rank whose daemon does not read leaves sums out.

use crate::message::{MAX_INFO, MAX_REPORT, bounded};
use crate::{Error, Lead, NodeFolder, Result};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

/// Ranks that one daemon has; others wait.
const MAX_RANKS: usize = 512;
/// How long a rank may take for its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);
/// Between two sums of a rank that are read at least; a rank that sends more waits.
const SUMS_INTERVAL: Duration = Duration::from_millis(50);
/// A rank that has left is shown so long.
const LEFT_FOR: Duration = Duration::from_mins(1);
/// How long the socket rests when the system has no file descriptor left.
const REST: Duration = Duration::from_millis(100);
/// Between two attempts of a rank to reach a daemon.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// How long a rank's connection may take for its bytes before it is made again.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// What a daemon answers when it has taken sums.
const TAKEN: u8 = 1;

/// What the roctop of a rank has handed over.
#[derive(Clone, Debug)]
pub struct Rank {
    /// Process id of its roctop.
    pub pid: u32,
    /// What it said first.
    pub hello: Bytes,
    /// Its latest sums.
    pub sums: Option<Bytes>,
    /// Whether they came since the ranks were taken last.
    pub is_new: bool,
    /// When they came; when it connected, if there are none.
    pub at: Instant,
    /// Since when it is there no more.
    pub left: Option<Instant>,
}

/// Whether a rank is there, or left in the last minute.
fn is_shown(rank: &Rank) -> bool {
    rank.left.is_none_or(|left| left.elapsed() < LEFT_FOR)
}

type Table = Arc<Mutex<BTreeMap<u64, Rank>>>;

fn lock(table: &Table) -> MutexGuard<'_, BTreeMap<u64, Rank>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtime() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_io().enable_time().build().map_err(Error::Start)
}

fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The daemon's end of the socket.
#[derive(Debug)]
pub struct Ranks {
    table: Table,
    path: PathBuf,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Ranks {
    /// Starts to listen, in a thread. Only the process that leads does so.
    ///
    /// Errors: the socket cannot be made.
    pub fn start(lead: &Lead) -> Result<Self> {
        let path = lead.folder().socket();
        // That of a daemon that was killed: this process has its lock.
        let _ = std::fs::remove_file(&path);
        let bound = || -> io::Result<_> {
            let listener = std::os::unix::net::UnixListener::bind(&path)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = bound().map_err(Error::file("listen at", &path))?;
        let runtime = runtime()?;
        let table = Table::default();
        let (stop, stopped) = watch::channel(false);
        let shared = table.clone();
        let thread = std::thread::Builder::new().name("job ranks".into()).spawn(move || {
            // A socket that fails takes no sums; the daemon goes on.
            let _ = runtime.block_on(serve(listener, shared, stopped));
        });
        Ok(Self {
            table,
            path,
            stop,
            thread: Some(thread.map_err(Error::Start)?),
        })
    }

    /// The ranks of this node in the order in which they came, with those that left in the last minute.
    pub fn current(&self) -> Vec<Rank> {
        lock(&self.table)
            .values()
            .filter(|rank| is_shown(rank))
            .cloned()
            .collect()
    }

    /// Whether these are the latest sums of the roctop of this process id.
    pub(crate) fn has(&self, pid: u32, sums: &Bytes) -> bool {
        let table = lock(&self.table);
        table
            .values()
            .any(|rank| rank.pid == pid && rank.sums.as_ref() == Some(sums))
    }

    /// The same as [`Self::current`] for a report: the sums are not new any more, and ranks that left long ago are forgotten.
    pub fn take(&self) -> Vec<Rank> {
        let mut table = lock(&self.table);
        table.retain(|_, rank| is_shown(rank));
        let taken = |rank: &mut Rank| {
            let taken = rank.clone();
            rank.is_new = false;
            taken
        };
        table.values_mut().map(taken).collect()
    }

    /// Takes no more sums: a rank that has others hands them to the next daemon. What was taken stays.
    pub(crate) fn close(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A thread that has failed has stopped.
            let _ = thread.join();
        }
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.close();
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn serve(
    listener: std::os::unix::net::UnixListener,
    table: Table,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    let room = Arc::new(Semaphore::new(MAX_RANKS));
    for id in 0u64.. {
        let accept = async {
            // The semaphore is never closed.
            let permit = room.clone().acquire_owned().await.ok();
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
            accepted = accept => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(REST).await;
            continue;
        };
        let table = table.clone();
        tokio::spawn(async move {
            // A rank that ends is shown as such.
            let _ = receive(stream, id, &table).await;
            if let Some(rank) = lock(&table).get_mut(&id) {
                rank.left = Some(Instant::now());
            }
            drop(permit);
        });
    }
    Ok(())
}

/// Reads one message of at most `limit` bytes. Errors: it is longer, or the stream ends.
async fn read(stream: &mut UnixStream, limit: usize) -> io::Result<Bytes> {
    let length = stream.read_u32_le().await? as usize;
    if length > limit {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes.into())
}

async fn receive(mut stream: UnixStream, id: u64, table: &Table) -> io::Result<()> {
    let peer = stream.peer_cred()?;
    // Nobody else can reach the socket, unless its folder was opened to them.
    if peer.uid() != own_uid() {
        return Ok(());
    }
    let hello = timeout(HELLO_TIMEOUT, read(&mut stream, MAX_INFO)).await??;
    let rank = Rank {
        pid: peer.pid().unwrap_or_default().unsigned_abs(),
        hello,
        sums: None,
        is_new: false,
        at: Instant::now(),
        left: None,
    };
    lock(table).insert(id, rank);
    loop {
        let sums = read(&mut stream, MAX_REPORT).await?;
        if let Some(rank) = lock(table).get_mut(&id) {
            rank.sums = Some(sums);
            rank.is_new = true;
            rank.at = Instant::now();
        }
        // The rank may end now: these sums are in the next report.
        stream.write_all(&[TAKEN]).await?;
        sleep(SUMS_INTERVAL).await;
    }
}

/// The latest sums, and their number.
type Latest = Option<(u64, Bytes)>;

/// The end of the socket at a rank's roctop. It finds each daemon of the node that comes.
#[derive(Debug)]
pub struct RankLink {
    sums: watch::Sender<Latest>,
    /// Sums that were published, and the last of them that a daemon has taken.
    published: AtomicU64,
    taken: Arc<AtomicU64>,
    is_connected: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl RankLink {
    /// Starts, in a thread. The daemon need not be there yet.
    ///
    /// Errors: the hello is longer than [`crate::MAX_INFO`], or the thread cannot start.
    pub fn start(folder: &NodeFolder, hello: Bytes) -> Result<Self> {
        bounded("information", &hello, MAX_INFO)?;
        let runtime = runtime()?;
        let (sums, mut latest) = watch::channel(None);
        let (stop, mut stopped) = watch::channel(false);
        let is_connected = Arc::new(AtomicBool::new(false));
        let (path, connected) = (folder.socket(), is_connected.clone());
        let taken = Arc::<AtomicU64>::default();
        let shared = taken.clone();
        let thread = std::thread::Builder::new().name("job rank".into()).spawn(move || {
            runtime.block_on(async {
                loop {
                    let attempt = hand_over(&path, &hello, &mut latest, &connected, &shared);
                    tokio::select! {
                        _ = stopped.wait_for(|stop| *stop) => return,
                        _ = attempt => {}
                    }
                    connected.store(false, Ordering::Relaxed);
                    tokio::select! {
                        _ = stopped.wait_for(|stop| *stop) => return,
                        () = sleep(RETRY_INTERVAL) => {}
                    }
                }
            });
        });
        Ok(Self {
            sums,
            published: AtomicU64::new(0),
            taken,
            is_connected,
            stop,
            thread: Some(thread.map_err(Error::Start)?),
        })
    }

    /// Hands sums over. It never waits; if the daemon is slow or lost, the latest win.
    ///
    /// Errors: they are longer than [`crate::MAX_REPORT`].
    pub fn publish(&self, sums: Bytes) -> Result<()> {
        bounded("a report", &sums, MAX_REPORT)?;
        let number = self.published.fetch_add(1, Ordering::Relaxed) + 1;
        self.sums.send_replace(Some((number, sums)));
        Ok(())
    }

    /// What was published last.
    pub(crate) fn latest(&self) -> Option<Bytes> {
        self.sums.borrow().as_ref().map(|(_, sums)| sums.clone())
    }

    /// Whether a daemon has got all that was published.
    pub fn is_handed_over(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == self.published.load(Ordering::Relaxed)
    }

    /// Whether a daemon takes the sums.
    pub fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed)
    }
}

impl Drop for RankLink {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A thread that has failed has stopped.
            let _ = thread.join();
        }
    }
}

async fn write(stream: &mut UnixStream, bytes: &Bytes) -> io::Result<()> {
    let written = async {
        stream.write_u32_le(bytes.len() as u32).await?;
        stream.write_all(bytes).await
    };
    timeout(SEND_TIMEOUT, written).await?
}

/// Hands over to one daemon, until it is lost.
async fn hand_over(
    path: &std::path::Path,
    hello: &Bytes,
    latest: &mut watch::Receiver<Latest>,
    is_connected: &AtomicBool,
    taken: &AtomicU64,
) -> io::Result<()> {
    let mut stream = UnixStream::connect(path).await?;
    if stream.peer_cred()?.uid() != own_uid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    write(&mut stream, hello).await?;
    is_connected.store(true, Ordering::Relaxed);
    // A new daemon gets at once what the former one had.
    latest.mark_changed();
    loop {
        let mut answer = [0];
        tokio::select! {
            changed = latest.changed() => {
                changed.map_err(|_| io::ErrorKind::BrokenPipe)?;
                let sums = latest.borrow_and_update().clone();
                if let Some((number, sums)) = sums {
                    write(&mut stream, &sums).await?;
                    timeout(SEND_TIMEOUT, stream.read_exact(&mut answer)).await??;
                    taken.store(number, Ordering::Relaxed);
                }
            }
            // A daemon says nothing else; its end is one.
            ended = stream.read(&mut answer) => return ended.map(drop),
        }
    }
}
