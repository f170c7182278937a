//! A whole job: ranks on nodes, their daemons, the root, a screen. Each node has its own folder here, as if it were a machine.

use crate::kit::{DAY, LIMIT, Temporary, event, name, wait_for, wait_for_nodes};
use bytes::Bytes;
use roctop_job::{
    Authority, Connection, Daemon, Duties, Event, Participant, Plan, Question, Rank, Role, Transport, list, one_node,
    viewer_key, watch, watch_with_key,
};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A node's report is the hellos of its ranks with sums; an answer is the question and the number of ranks.
struct Hellos;

impl Duties for Hellos {
    fn reduce(&self, ranks: &[Rank]) -> Option<Bytes> {
        let live = ranks.iter().filter(|rank| rank.left.is_none() && rank.sums.is_some());
        let mut hellos: Vec<u8> = live.map(|rank| rank.hello[0]).collect();
        hellos.sort_unstable();
        (!hellos.is_empty()).then(|| hellos.into())
    }

    fn answer(&self, question: Question, ranks: &[Rank]) {
        let live = ranks.iter().filter(|rank| rank.left.is_none()).count();
        let words = format!("{} {live}", String::from_utf8_lossy(&question.payload));
        question.reply.send(words.into());
        question.reply.complete();
    }
}

struct Job(Temporary);

impl Job {
    fn rank(&self, node: &str, letter: u8, listen: Option<&str>) -> Participant {
        self.rank_for(node, letter, listen, DAY)
    }

    fn plan(&self, node: &str, letter: u8, listen: Option<&str>, limit: Duration) -> Plan {
        Plan {
            jobs: self.0.jobs(),
            base: self.0.0.join(node),
            job: name("77"),
            node: name(node),
            is_first: letter == b'a',
            limit,
            listen: listen.map(str::to_owned),
            info: Bytes::from_static(b"8 GPUs"),
        }
    }

    fn rank_for(&self, node: &str, letter: u8, listen: Option<&str>, limit: Duration) -> Participant {
        let plan = self.plan(node, letter, listen, limit);
        let rank = Participant::start(plan, vec![letter].into(), Arc::new(Hellos)).unwrap();
        rank.publish(Bytes::from_static(b"sums")).unwrap();
        rank
    }
}

fn wait_for_report(screen: &Daemon, node: &str, expected: &[u8]) {
    event(&mut screen.subscribe(), |event| match event {
        Event::Report { node: of, report } => (&*of == node && report == expected).then_some(()),
        _ => None,
    });
}

#[test]
fn a_job_goes_on_when_daemons_and_the_root_are_lost() {
    let job = Job(Temporary::new());
    let listen = Some("127.0.0.1");
    // The node without the first rank comes first.
    let mut second: Vec<Participant> = (b'd'..=b'f').map(|letter| job.rank("n2", letter, listen)).collect();
    let mut first: Vec<Participant> = (b'a'..=b'c').map(|letter| job.rank("n1", letter, listen)).collect();
    wait_for("the job's folder", || list(&job.0.jobs()).unwrap().len() == 1);
    let screen = watch(&job.0.jobs(), &name("77")).unwrap();
    wait_for_nodes(&screen, 2);
    wait_for_report(&screen, "n1", b"abc");
    wait_for_report(&screen, "n2", b"def");
    let ask = |node: &str| {
        screen
            .query(&name(node), Bytes::from_static(b"ranks?"))
            .collect(99, LIMIT)
    };
    assert_eq!(ask("n2").unwrap(), b"ranks? 3");
    for node in [&first, &second] {
        let daemons = node.iter().filter(|rank| rank.standing().is_daemon).count();
        assert_eq!(daemons, 1);
    }
    // The daemon of the second node ends, then the root.
    for ranks in [&mut second, &mut first] {
        let at = ranks.iter().position(|rank| rank.standing().is_daemon).unwrap();
        drop(ranks.remove(at));
        wait_for("a successor", || ranks.iter().any(|rank| rank.standing().is_daemon));
    }
    wait_for("a new root", || first.iter().any(|rank| rank.standing().is_root));
    wait_for("both nodes report two ranks", || {
        let mut events = screen.subscribe();
        let reports = std::iter::from_fn(|| events.try_next());
        reports
            .filter(|event| matches!(event, Event::Report { report, .. } if report.len() == 2))
            .count()
            == 2
    });
    drop(second);
    wait_for_nodes(&screen, 1);
    drop(first);
    wait_for_nodes(&screen, 0);
    assert!(list(&job.0.jobs()).unwrap().is_empty(), "the keys go with the job");
    for node in ["n1", "n2"] {
        assert!(!job.0.0.join(node).join("job-77").exists());
    }
}

#[test]
fn a_job_that_takes_longer_than_its_keys_goes_on() {
    let job = Job(Temporary::new());
    let limit = Duration::from_secs(4);
    let ranks = [("n1", b'a'), ("n2", b'b'), ("n3", b'c')];
    let _ranks = ranks.map(|(node, letter)| job.rank_for(node, letter, Some("127.0.0.1"), limit));
    let screen = |after: Option<SystemTime>| {
        let mut expires = None;
        wait_for("keys", || {
            let authority = Authority::open(&job.0.jobs(), &name("77")).ok();
            expires = authority.map(|authority| authority.expires());
            expires > after
        });
        (watch(&job.0.jobs(), &name("77")).unwrap(), expires)
    };
    let (before, expires) = screen(None);
    wait_for_nodes(&before, 3);
    drop(before);
    let (after, _) = screen(expires);
    wait_for_nodes(&after, 3);
}

/// Where the root listens, as it has written.
fn address(job: &Job) -> Option<String> {
    let folders = list(&job.0.jobs()).unwrap();
    folders.first().and_then(|folder| folder.root().unwrap())
}

#[test]
fn a_job_of_one_node_has_no_network_and_is_watched_there() {
    let job = Job(Temporary::new());
    // Not even the first rank is there.
    let mut ranks: Vec<Participant> = (b'b'..=b'd').map(|letter| job.rank("n1", letter, None)).collect();
    wait_for("a root", || address(&job).is_some());
    let written = address(&job).unwrap();
    assert_eq!(one_node(&written), Some("n1"), "{written}");
    let socket = job.0.0.join("n1/job-77/watch.sock");
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let screen = watch(&job.0.jobs(), &name("77")).unwrap();
    wait_for_report(&screen, "n1", b"bcd");
    let answer = screen.query(&name("n1"), Bytes::from_static(b"ranks?"));
    assert_eq!(answer.collect(99, LIMIT).unwrap(), b"ranks? 3");
    // Another process goes on in the daemon's place.
    let at = ranks.iter().position(|rank| rank.standing().is_daemon).unwrap();
    drop(ranks.remove(at));
    wait_for("the others", || {
        let mut events = screen.subscribe();
        let mut reports = std::iter::from_fn(|| events.try_next());
        reports.any(|event| matches!(event, Event::Report { report, .. } if report.len() == 2))
    });
    drop(ranks);
    wait_for_nodes(&screen, 0);
    assert!(list(&job.0.jobs()).unwrap().is_empty() && !socket.exists());
    // From elsewhere there is nothing to connect to.
    let _keys = Authority::open_or_create(&job.0.jobs(), &name("77"), DAY).unwrap();
    list(&job.0.jobs()).unwrap()[0].set_root(&written).unwrap();
    let elsewhere = watch(&job.0.jobs(), &name("77")).unwrap();
    wait_for(
        "the reason",
        || matches!(&elsewhere.connections()[0], Connection::Failed(why) if why.contains("'roctop job' on that node")),
    );
}

#[test]
fn a_job_whose_first_rank_is_lost_gets_another_root() {
    let job = Job(Temporary::new());
    let listen = Some("127.0.0.1");
    let second = job.rank("n2", b'b', listen);
    wait_for("a root", || second.standing().is_root);
    let screen = watch(&job.0.jobs(), &name("77")).unwrap();
    wait_for_report(&screen, "n2", b"b");
    // The first rank comes late: its node has the root.
    let first = job.rank("n1", b'a', listen);
    wait_for("the first node's root", || {
        first.standing().is_root && !second.standing().is_root
    });
    wait_for_nodes(&screen, 2);
    drop(first);
    // The job's folder has gone with it; who goes on makes it again.
    wait_for("a root again", || second.standing().is_root);
    let late = watch(&job.0.jobs(), &name("77")).unwrap();
    wait_for_report(&late, "n2", b"b");
    drop(second);
    wait_for_nodes(&late, 0);
    assert!(list(&job.0.jobs()).unwrap().is_empty(), "the keys go with the job");
}

/// A node's report is the sums that are new.
struct News;

impl Duties for News {
    fn reduce(&self, ranks: &[Rank]) -> Option<Bytes> {
        let new = ranks.iter().filter(|rank| rank.is_new);
        let all: Vec<u8> = new.filter_map(|rank| rank.sums.as_deref()).flatten().copied().collect();
        (!all.is_empty()).then(|| all.into())
    }

    fn answer(&self, _: Question, _: &[Rank]) {}
}

#[test]
fn the_last_sums_of_all_ranks_are_reported() {
    let job = Job(Temporary::new());
    let listen = Some("127.0.0.1");
    let rank = |node: &str, letter: u8| {
        let plan = job.plan(node, letter, listen, DAY);
        Participant::start(plan, vec![letter].into(), Arc::new(News)).unwrap()
    };
    let first = rank("n1", b'a');
    let [b, c] = [b'b', b'c'].map(|letter| rank("n2", letter));
    wait_for("daemons", || {
        let is_daemon = |rank: &Participant| rank.standing().is_daemon;
        first.standing().is_root && (is_daemon(&b) || is_daemon(&c))
    });
    let screen = watch(&job.0.jobs(), &name("77")).unwrap();
    wait_for_nodes(&screen, 2);
    let mut events = screen.subscribe();
    let mut seen = Vec::new();
    let mut wait = |letters: &[u8]| {
        wait_for("the last sums", || {
            while let Some(event) = events.try_next() {
                if let Event::Report { report, .. } = event {
                    seen.extend_from_slice(&report);
                }
            }
            letters.iter().all(|letter| seen.contains(letter))
        });
    };
    // Both end at once, whichever is the daemon.
    let ending = [(b, b"B"), (c, b"C")].map(|(rank, last)| {
        std::thread::spawn(move || {
            rank.publish(Bytes::from_static(last)).unwrap();
            drop(rank);
        })
    });
    for thread in ending {
        thread.join().unwrap();
    }
    wait(b"BC");
    first.publish(Bytes::from_static(b"A")).unwrap();
    drop(first);
    wait(b"A");
}

#[test]
fn a_key_in_a_file_watches_a_job_and_is_read_again() {
    let job = Job(Temporary::new());
    let rank = job.rank("n1", b'a', Some("127.0.0.1"));
    wait_for("a root", || address(&job).is_some());
    let file = job.0.0.join("key");
    // One that is over, as another job's would be.
    let other = crate::kit::Job::new();
    other
        .authority
        .issue(Role::Viewer, &name("x"))
        .unwrap()
        .write(&file)
        .unwrap();
    let (known, screen) = watch_with_key(&address(&job).unwrap(), &file).unwrap();
    assert_eq!(&*known, "77");
    wait_for("a refusal", || matches!(screen.connections()[0], Connection::Failed(_)));
    std::fs::remove_file(&file).unwrap();
    viewer_key(&job.0.jobs(), &known).unwrap().write(&file).unwrap();
    wait_for_nodes(&screen, 1);
    wait_for_report(&screen, "n1", b"a");
    // A node's key does not do, nor one that has expired.
    let wrong = job.0.0.join("wrong");
    let authority = Authority::open(&job.0.jobs(), &known).unwrap();
    authority.issue(Role::Node, &name("n1")).unwrap().write(&wrong).unwrap();
    let error = watch_with_key("127.0.0.1:1", &wrong).unwrap_err().to_string();
    assert!(error.contains("not of a viewer"), "{error}");
    std::fs::remove_file(&wrong).unwrap();
    let past = SystemTime::now() - Duration::from_secs(1);
    authority
        .issue_until(Role::Viewer, &name("v"), past)
        .unwrap()
        .write(&wrong)
        .unwrap();
    let error = watch_with_key("127.0.0.1:1", &wrong).unwrap_err().to_string();
    assert!(error.contains("has expired"), "{error}");
    drop(rank);
}

#[test]
fn a_root_that_cannot_listen_says_why() {
    let job = Job(Temporary::new());
    let rank = job.rank("n1", b'a', Some("0.0.0.0"));
    wait_for("trouble", || {
        let trouble = rank.standing().trouble;
        trouble.is_some_and(|trouble| trouble.contains("name one"))
    });
}
