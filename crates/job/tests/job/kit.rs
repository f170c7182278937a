//! What the tests share: a job with its folder, its processes, a relay of bytes that can stall.

use bytes::Bytes;
use roctop_job::{
    Address, Authority, Config, Daemon, Event, Key, Listen, Name, Questions, Role, Subscription, Transport,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// For what takes milliseconds on a machine without other work: a watchdog, not a measure.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);
pub(crate) const DAY: Duration = Duration::from_hours(24);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A folder that goes with the test.
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("roctop-job-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn jobs(&self) -> PathBuf {
        self.0.join("roctop/jobs")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A job with its keys.
pub(crate) struct Job {
    pub(crate) folder: Temporary,
    pub(crate) authority: Authority,
}

impl Job {
    pub(crate) fn new() -> Self {
        Self::named("77")
    }

    pub(crate) fn named(job: &str) -> Self {
        let folder = Temporary::new();
        let authority = Authority::open_or_create(&folder.jobs(), &name(job), DAY).unwrap();
        Self { folder, authority }
    }

    pub(crate) fn key(&self, role: Role, node: &str) -> Key {
        self.authority.issue(role, &name(node)).unwrap()
    }

    pub(crate) fn root(&self) -> Daemon {
        self.root_at("127.0.0.1:0")
    }

    pub(crate) fn root_at(&self, address: &str) -> Daemon {
        let config = Config {
            listen: Some(Listen::At(address.to_owned())),
            ..Config::default()
        };
        Daemon::start(&self.key(Role::Root, "login"), config).unwrap().0
    }

    pub(crate) fn node(&self, node: &str, root: SocketAddr) -> (Daemon, Questions) {
        let config = Config {
            info: Some(Bytes::from_static(b"8 ranks")),
            report_to: Some(Address::Fixed(root.to_string())),
            ..Config::default()
        };
        Daemon::start(&self.key(Role::Node, node), config).unwrap()
    }
}

/// Waits until something holds.
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn wait_for_nodes(at: &dyn Transport, count: usize) {
    wait_for(&format!("{count} nodes"), || at.alive().len() == count);
}

/// The first event that `pick` takes.
pub(crate) fn event<T>(events: &mut Subscription, mut pick: impl FnMut(Event) -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        let rest = LIMIT.saturating_sub(began.elapsed());
        let event = events.next_within(rest).expect("the event does not come");
        if let Some(picked) = pick(event) {
            return picked;
        }
    }
}

/// Answers each question with its own bytes, `times` over.
pub(crate) fn echo(mut questions: Questions, times: usize) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !questions.is_closed() {
            if let Some(question) = questions.next_within(Duration::from_millis(100)) {
                let all = (0..times).all(|_| question.reply.send(question.payload.clone()));
                if all {
                    question.reply.complete();
                }
            }
        }
    })
}

/// Passes bytes between two addresses, until it stalls: then it passes nothing, and closes nothing.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    pub(crate) is_stalled: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_stalled: &AtomicBool, is_over: &AtomicBool) {
    let mut bytes = [0; 16 << 10];
    from.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    loop {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        if is_stalled.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => {
                if to.write_all(&bytes[..read]).is_err() {
                    break;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    for end in [from, to] {
        let _ = end.shutdown(std::net::Shutdown::Both);
    }
}

impl Wire {
    pub(crate) fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_stalled = Arc::new(AtomicBool::new(false));
        let is_over = Arc::new(AtomicBool::new(false));
        let (stalled, over) = (is_stalled.clone(), is_over.clone());
        std::thread::spawn(move || {
            for near in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let near = near.unwrap();
                let Ok(far) = TcpStream::connect(target) else { continue };
                let ends = [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)];
                for (from, to) in ends {
                    let (stalled, over) = (stalled.clone(), over.clone());
                    std::thread::spawn(move || pass(from, to, &stalled, &over));
                }
            }
        });
        Self {
            address,
            is_stalled,
            is_over,
        }
    }

    pub(crate) fn stall(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::Relaxed);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Its listener waits for one more.
        let _ = TcpStream::connect(self.address);
    }
}
