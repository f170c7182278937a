//! A whole job: ranks on nodes, their daemons, the root, a screen. Each node has its own folder here, as if it were a machine.

use crate::kit::{DAY, LIMIT, Temporary, event, name, wait_for, wait_for_nodes};
use bytes::Bytes;
use roctop_job::{Authority, Daemon, Duties, Event, Participant, Plan, Question, Rank, Transport, list, watch};
use std::sync::Arc;
use std::time::Duration;

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

    fn rank_for(&self, node: &str, letter: u8, listen: Option<&str>, limit: Duration) -> Participant {
        let plan = Plan {
            jobs: self.0.jobs(),
            base: self.0.0.join(node),
            job: name("77"),
            node: name(node),
            is_first: letter == b'a',
            limit,
            listen: listen.map(str::to_owned),
            info: Bytes::from_static(b"8 GPUs"),
        };
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
    let screen = |after: Option<std::time::SystemTime>| {
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

#[test]
fn a_job_of_one_node_has_no_network() {
    let job = Job(Temporary::new());
    let ranks: Vec<Participant> = (b'a'..=b'c').map(|letter| job.rank("n1", letter, None)).collect();
    wait_for("a daemon", || ranks.iter().any(|rank| rank.standing().is_daemon));
    assert!(ranks.iter().all(|rank| rank.standing().trouble.is_none()));
    assert!(!job.0.jobs().exists());
    assert!(watch(&job.0.jobs(), &name("77")).is_err());
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
