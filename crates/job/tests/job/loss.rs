//! Processes that are killed, stop or come back.

use crate::kit::{Job, LIMIT, Wire, echo, event, name, wait_for, wait_for_nodes};
use bytes::Bytes;
use roctop_job::{
    Address, Authority, Config, Connection, Daemon, Event, Listen, Reason, Role, Subscription, Transport,
};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ADDRESS: &str = "ROCTOP_TEST_ROOT";
const JOBS: &str = "ROCTOP_TEST_JOBS";

/// The process of a node; other tests start it.
#[test]
#[ignore = "a process that other tests start"]
fn process_of_a_node() {
    let (Ok(address), Ok(jobs)) = (std::env::var(ADDRESS), std::env::var(JOBS)) else {
        return;
    };
    let authority = Authority::open(jobs.as_ref(), &name("77")).unwrap();
    let config = Config {
        info: Some(Bytes::new()),
        report_to: Some(Address::Fixed(address)),
        ..Config::default()
    };
    let (node, _questions) = Daemon::start(&authority.issue(Role::Node, &name("victim")).unwrap(), config).unwrap();
    // Ends with the test that started it, whatever becomes of that.
    let began = Instant::now();
    while began.elapsed() < 3 * LIMIT {
        node.publish(Bytes::from(vec![1; 10 << 10])).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The process of a root; other tests start it. It writes its address into the job's folder.
#[test]
#[ignore = "a process that other tests start"]
fn process_of_a_root() {
    let Ok(jobs) = std::env::var(JOBS) else { return };
    let authority = Authority::open(jobs.as_ref(), &name("77")).unwrap();
    let config = Config {
        listen: Some(Listen::At("127.0.0.1:0".into())),
        ..Config::default()
    };
    let (root, _) = Daemon::start(&authority.issue(Role::Root, &name("login")).unwrap(), config).unwrap();
    authority
        .folder()
        .set_root(&root.address().unwrap().to_string())
        .unwrap();
    std::thread::sleep(3 * LIMIT);
}

struct Process(Child);

impl Process {
    fn of_a_node(job: &Job, root: &Daemon) -> Self {
        Self::start(job, "loss::process_of_a_node", &root.address().unwrap().to_string())
    }

    fn of_a_root(job: &Job) -> Self {
        Self::start(job, "loss::process_of_a_root", "")
    }

    fn start(job: &Job, test: &str, address: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", test])
            .env(ADDRESS, address)
            .env(JOBS, job.folder.jobs())
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn gone(events: &mut Subscription, expected: &str) -> Reason {
    let (node, reason) = event(events, |event| match event {
        Event::Gone { node, reason } => Some((node, reason)),
        _ => None,
    });
    assert_eq!(&*node, expected);
    reason
}

#[test]
fn a_killed_node_is_noticed_at_once() {
    let job = Job::new();
    let root = job.root();
    let node = Process::of_a_node(&job, &root);
    wait_for_nodes(&root, 1);
    let mut events = root.subscribe();
    node.signal(Signal::KILL);
    // Not by its silence, which takes longer.
    assert_eq!(gone(&mut events, "victim"), Reason::Closed);
}

#[test]
fn a_stopped_node_is_noticed_and_comes_back() {
    let job = Job::new();
    let root = job.root();
    let node = Process::of_a_node(&job, &root);
    wait_for_nodes(&root, 1);
    let mut events = root.subscribe();
    node.signal(Signal::STOP);
    assert_eq!(gone(&mut events, "victim"), Reason::Silent);
    node.signal(Signal::CONT);
    event(&mut events, |event| matches!(event, Event::Known { .. }).then_some(()));
}

#[test]
fn a_stalled_line_is_noticed_by_both_ends() {
    let job = Job::new();
    let root = job.root();
    let wire = Wire::to(root.address().unwrap());
    let (node, _questions) = job.node("a", wire.address);
    wait_for_nodes(&root, 1);
    let mut events = root.subscribe();
    wire.stall(true);
    assert_eq!(gone(&mut events, "a"), Reason::Silent);
    wait_for("the node notices", || {
        matches!(node.connections()[0], Connection::Failed(_))
    });
    wire.stall(false);
    wait_for_nodes(&root, 1);
    assert_eq!(node.connections()[0], Connection::Open);
}

/// Ends a daemon that waits for a root's first word; how long that took.
fn end_of_a_waiting_daemon() -> Duration {
    let job = Job::new();
    // It takes connections, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (node, _questions) = job.node("a", silent.local_addr().unwrap());
    let _accepted = silent.accept().unwrap();
    let began = Instant::now();
    drop(node);
    began.elapsed()
}

#[test]
fn a_daemon_ends_whatever_it_waits_for() {
    end_of_a_waiting_daemon();
}

#[test]
#[ignore = "time: .ci/matrix"]
fn timed_a_daemon_ends_at_once_whatever_it_waits_for() {
    let took = end_of_a_waiting_daemon();
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// Publishes while the root does not read; how long that took.
fn reports_to_a_root_that_does_not_read() -> Duration {
    let job = Job::new();
    let root = job.root();
    let wire = Wire::to(root.address().unwrap());
    let (node, _questions) = job.node("a", wire.address);
    wait_for_nodes(&root, 1);
    wire.stall(true);
    let began = Instant::now();
    for _ in 0..2000 {
        node.publish(Bytes::from(vec![1; 10 << 10])).unwrap();
    }
    let took = began.elapsed();
    wire.stall(false);
    let mut events = root.subscribe();
    node.publish(Bytes::from_static(b"last")).unwrap();
    wait_for("a report gets through", || {
        node.publish(Bytes::from_static(b"last")).unwrap();
        std::iter::from_fn(|| events.try_next())
            .any(|event| matches!(event, Event::Report { report, .. } if report == "last"))
    });
    took
}

#[test]
fn a_root_that_does_not_read_blocks_no_node() {
    reports_to_a_root_that_does_not_read();
}

#[test]
#[ignore = "time: .ci/matrix"]
fn timed_a_root_that_does_not_read_blocks_no_node() {
    let took = reports_to_a_root_that_does_not_read();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn all_come_back_to_a_root_that_was_lost() {
    let job = Job::new();
    let folder = job.authority.folder();
    let root = job.root();
    let address = root.address().unwrap().to_string();
    folder.set_root(&address).unwrap();
    let nodes: Vec<_> = (0..20)
        .map(|n| {
            let config = Config {
                info: Some(Bytes::new()),
                report_to: Some(Address::OfFolder(folder.clone())),
                ..Config::default()
            };
            Daemon::start(&job.key(Role::Node, &format!("n{n}")), config).unwrap().0
        })
        .collect();
    wait_for_nodes(&root, 20);
    drop(root);
    wait_for("all notice", || {
        nodes
            .iter()
            .all(|node| matches!(node.connections()[0], Connection::Failed(_)))
    });
    // At the same address, and then at another one.
    let root = job.root_at(&address);
    wait_for_nodes(&root, 20);
    let other = job.root();
    folder.set_root(&other.address().unwrap().to_string()).unwrap();
    drop(root);
    wait_for_nodes(&other, 20);
}

/// The longest time that reports of all nodes took to publish while the root is there, is stopped and is killed.
fn reports_to_a_root_that_stops() -> Duration {
    let mut longest = Duration::ZERO;
    let job = Job::new();
    let nodes: Vec<_> = (0..10)
        .map(|n| {
            let config = Config {
                info: Some(Bytes::new()),
                report_to: Some(Address::OfFolder(job.authority.folder().clone())),
                ..Config::default()
            };
            Daemon::start(&job.key(Role::Node, &format!("n{n}")), config).unwrap().0
        })
        .collect();
    let mut all = |is_open: bool| {
        wait_for(if is_open { "all connect" } else { "all notice" }, || {
            let began = Instant::now();
            for node in &nodes {
                node.publish(Bytes::from(vec![1; 10 << 10])).unwrap();
            }
            longest = longest.max(began.elapsed());
            let is_as_expected = |node: &Daemon| (node.connections()[0] == Connection::Open) == is_open;
            nodes.iter().all(is_as_expected)
        });
    };
    let root = Process::of_a_root(&job);
    all(true);
    root.signal(Signal::STOP);
    all(false);
    root.signal(Signal::CONT);
    all(true);
    root.signal(Signal::KILL);
    all(false);
    let _root = Process::of_a_root(&job);
    all(true);
    longest
}

#[test]
fn all_come_back_to_a_root_that_was_stopped_or_killed() {
    reports_to_a_root_that_stops();
}

#[test]
#[ignore = "time: .ci/matrix"]
fn timed_a_killed_or_stopped_root_blocks_no_node() {
    let longest = reports_to_a_root_that_stops();
    assert!(longest < Duration::from_secs(2), "{longest:?}");
}

#[test]
fn the_newer_daemon_of_a_node_replaces_the_older() {
    let job = Job::new();
    let root = job.root();
    let address = root.address().unwrap();
    let (old, _old_questions) = job.node("a", address);
    wait_for_nodes(&root, 1);
    let (new, questions) = job.node("a", address);
    let answering = echo(questions, 1);
    wait_for("the newer connects", || new.connections()[0] == Connection::Open);
    let mut events = root.subscribe();
    // The old one's reports and its end say nothing of the node.
    wait_for("the newer reports", || {
        new.publish(Bytes::from_static(b"new")).unwrap();
        std::iter::from_fn(|| events.try_next())
            .any(|event| matches!(event, Event::Report { report, .. } if report == "new"))
    });
    old.publish(Bytes::from_static(b"old")).unwrap();
    drop(old);
    let answer = root.query(&name("a"), Bytes::from_static(b"who")).collect(9, LIMIT);
    assert_eq!(answer.unwrap(), b"who");
    assert_eq!(root.alive().len(), 1);
    while let Some(event) = events.try_next() {
        assert!(!matches!(&event, Event::Gone { .. }), "{event:?}");
        assert!(!matches!(&event, Event::Report { report, .. } if report == "old"));
    }
    drop(new);
    answering.join().unwrap();
}

#[test]
fn an_answer_breaks_off_with_its_node() {
    let job = Job::new();
    let root = job.root();
    let (node, mut questions) = job.node("a", root.address().unwrap());
    wait_for_nodes(&root, 1);
    let answer = root.query(&name("a"), Bytes::from_static(b"events"));
    let question = questions.next_within(LIMIT).unwrap();
    assert!(question.reply.send(Bytes::from_static(b"some")));
    drop(node);
    drop(question);
    answer.collect(99, LIMIT).unwrap_err();
    wait_for("gone", || root.alive().is_empty());
    root.query(&name("a"), Bytes::new()).collect(1, LIMIT).unwrap_err();
}
