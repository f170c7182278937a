//! Ranks of one node, their daemon, and its successor.

use crate::kit::{LIMIT, Temporary, name, wait_for};
use bytes::Bytes;
use roctop_job::{NodeFolder, RankLink, Ranks};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BASE: &str = "ROCTOP_TEST_BASE";

/// A process that leads, until it is killed; another test starts it.
#[test]
#[ignore = "a process that another test starts"]
fn process_of_a_daemon() {
    let Ok(base) = std::env::var(BASE) else { return };
    let folder = NodeFolder::open(base.as_ref(), &name("77")).unwrap();
    let lead = folder.try_lead().unwrap().unwrap();
    let _ranks = Ranks::start(&lead).unwrap();
    std::thread::sleep(2 * LIMIT);
}

fn socket(folder: &NodeFolder) -> PathBuf {
    folder.path().join("daemon.sock")
}

fn sums(ranks: &Ranks) -> Vec<(Bytes, Option<Bytes>)> {
    let current = ranks.current().into_iter().filter(|rank| rank.left.is_none());
    let mut all: Vec<_> = current.map(|rank| (rank.hello, rank.sums)).collect();
    all.sort();
    all
}

#[test]
fn a_killed_daemon_is_replaced_and_ranks_hand_over_to_the_next() {
    let temporary = Temporary::new();
    let base = temporary.0.join("base");
    let folder = NodeFolder::open(&base, &name("77")).unwrap();
    let mut first = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "node::process_of_a_daemon"])
        .env(BASE, &base)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let hello = |rank: u8| Bytes::from(vec![b'r', rank]);
    let ranks: Vec<RankLink> = (0..8)
        .map(|rank| RankLink::start(&folder, hello(rank)).unwrap())
        .collect();
    wait_for("the first daemon", || ranks.iter().all(RankLink::is_connected));
    for (number, rank) in (0u8..).zip(&ranks) {
        rank.publish(Bytes::from(vec![number; 1000])).unwrap();
    }
    assert!(folder.try_lead().unwrap().is_none());
    kill_process(Pid::from_child(&first), Signal::KILL).unwrap();
    first.wait().unwrap();
    let lead = folder.try_lead().unwrap().unwrap();
    let daemon = Ranks::start(&lead).unwrap();
    assert_eq!(socket(&folder).metadata().unwrap().mode() & 0o777, 0o600);
    // The last sums come again by themselves.
    let expected: Vec<_> = (0..8).map(|n| (hello(n), Some(Bytes::from(vec![n; 1000])))).collect();
    wait_for("all ranks", || sums(&daemon) == expected);
    assert!(daemon.current().iter().all(|rank| rank.pid == std::process::id()));
    let new = |ranks: Vec<roctop_job::Rank>| ranks.iter().filter(|rank| rank.is_new).count();
    assert_eq!((new(daemon.take()), new(daemon.take())), (8, 0));
    ranks[0].publish(Bytes::from_static(b"new")).unwrap();
    wait_for("new sums", || sums(&daemon)[0].1.as_deref() == Some(b"new"));
    assert_eq!((new(daemon.current()), new(daemon.take())), (1, 1));
    drop(ranks);
    wait_for("all have left", || {
        daemon.current().iter().all(|rank| rank.left.is_some())
    });
    assert_eq!(daemon.current().len(), 8);
    drop(daemon);
    assert!(!socket(&folder).exists());
    lead.remove();
    assert!(!folder.path().exists());
}

#[test]
fn hostile_bytes_at_the_socket_end_their_connection_alone() {
    let temporary = Temporary::new();
    let folder = NodeFolder::open(&temporary.0.join("base"), &name("77")).unwrap();
    let lead = folder.try_lead().unwrap().unwrap();
    let daemon = Ranks::start(&lead).unwrap();
    let connect = || UnixStream::connect(socket(&folder)).unwrap();
    let message = |bytes: &[u8]| [&(bytes.len() as u32).to_le_bytes(), bytes].concat();
    let long = |length: u32| length.to_le_bytes().to_vec();
    // One says nothing, the others too much, half of something, or go away.
    let _silent = connect();
    for bytes in [
        long(u32::MAX),
        long(1 << 20),
        [message(b"hello"), long(1 << 20)].concat(),
    ] {
        let mut stream = connect();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(&bytes).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed by the daemon");
    }
    let mut half = connect();
    half.write_all(&message(b"half")[..6]).unwrap();
    drop(connect());
    // One that floods is read slowly and delays nobody.
    let mut flood = connect();
    flood.set_nonblocking(true).unwrap();
    flood.write_all(&message(b"flood")).unwrap();
    while flood.write(&message(&vec![7; 60_000])).is_ok() {}
    let honest = RankLink::start(&folder, Bytes::from_static(b"honest")).unwrap();
    honest.publish(Bytes::from_static(b"sums")).unwrap();
    let expected = (Bytes::from_static(b"honest"), Some(Bytes::from_static(b"sums")));
    wait_for("the honest one", || sums(&daemon).contains(&expected));
    assert!(honest.publish(vec![0; roctop_job::MAX_REPORT + 1].into()).is_err());
}

/// Publishes to a daemon that does not read, and leaves it; how long both took.
fn reports_to_a_daemon_that_does_not_read() -> [Duration; 2] {
    let temporary = Temporary::new();
    let folder = NodeFolder::open(&temporary.0.join("base"), &name("77")).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(socket(&folder)).unwrap();
    let rank = RankLink::start(&folder, Bytes::new()).unwrap();
    let _accepted = listener.accept().unwrap();
    let began = Instant::now();
    for _ in 0..10_000 {
        rank.publish(Bytes::from(vec![1; 10 << 10])).unwrap();
    }
    let published = began.elapsed();
    drop(rank);
    [published, began.elapsed().saturating_sub(published)]
}

#[test]
fn a_daemon_that_does_not_read_blocks_no_rank() {
    reports_to_a_daemon_that_does_not_read();
}

#[test]
#[ignore = "time: .ci/matrix"]
fn timed_a_daemon_that_does_not_read_blocks_no_rank() {
    let [published, left] = reports_to_a_daemon_that_does_not_read();
    assert!(published < Duration::from_secs(5), "{published:?}");
    assert!(left < Duration::from_secs(3), "{left:?}");
}
