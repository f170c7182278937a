//! Nodes report, are asked and leave.

use crate::kit::{Job, LIMIT, echo, event, name, wait_for, wait_for_nodes};
use bytes::Bytes;
use roctop_job::{Address, AnswerError, Config, Connection, Daemon, Event, Listen, Reason, Role, Transport};
use std::time::Duration;

#[test]
fn a_hundred_nodes_are_known_and_report() {
    let job = Job::new();
    let root = job.root();
    let address = root.address().unwrap();
    let mut events = root.subscribe();
    let nodes: Vec<_> = (0..100)
        .map(|n| {
            std::thread::sleep(Duration::from_millis(10));
            job.node(&format!("n{n:03}"), address).0
        })
        .collect();
    wait_for_nodes(&root, 100);
    let report = Bytes::from(vec![1; 10 << 10]);
    for node in &nodes {
        node.publish(report.clone()).unwrap();
    }
    let mut reported = 0;
    event(&mut events, |event| {
        reported += usize::from(matches!(&event, Event::Report { report, .. } if report.len() == 10 << 10));
        (reported == 100).then_some(())
    });
    let first = &root.alive()[0];
    assert_eq!((&*first.node, &*first.info), ("n000", &b"8 ranks"[..]));
    // All in one process, so the clocks are the same.
    wait_for("clocks", || root.alive().iter().all(|node| node.clock.is_some()));
    for node in root.alive() {
        let clock = node.clock.unwrap();
        assert!(clock.offset_ns.unsigned_abs() <= clock.error_ns + 1000, "{clock:?}");
    }
    drop(nodes);
    let mut left = 0;
    event(&mut events, |event| {
        left += usize::from(matches!(
            event,
            Event::Gone {
                reason: Reason::Left,
                ..
            }
        ));
        (left == 100).then_some(())
    });
}

#[test]
fn long_answers_and_live_reports_pass_side_by_side() {
    let job = Job::new();
    let root = job.root();
    let (node, questions) = job.node("a", root.address().unwrap());
    let answering = echo(questions, 320);
    wait_for_nodes(&root, 1);
    // Three that nobody reads: their parts fill what may be on the way.
    let question = Bytes::from(vec![3; 64 << 10]);
    let unread: Vec<_> = (0..3).map(|_| root.query(&name("a"), question.clone())).collect();
    std::thread::sleep(Duration::from_millis(300));
    let mut events = root.subscribe();
    for number in 0..100u8 {
        let sent = Bytes::from(vec![number; 10 << 10]);
        node.publish(sent.clone()).unwrap();
        event(&mut events, |event| {
            matches!(event, Event::Report { report, .. } if report == sent).then_some(())
        });
    }
    for answer in unread {
        assert_eq!(answer.collect(64 << 20, LIMIT).unwrap().len(), 20 << 20);
    }
    assert_eq!(
        root.query(&name("b"), Bytes::new()).collect(1, LIMIT),
        Err(AnswerError::UnknownNode(name("b")))
    );
    drop(node);
    answering.join().unwrap();
}

#[test]
fn a_node_that_fails_says_so() {
    let job = Job::new();
    let root = job.root();
    let (node, mut questions) = job.node("a", root.address().unwrap());
    wait_for_nodes(&root, 1);
    let answering = std::thread::spawn(move || {
        let question = questions.next_within(LIMIT).unwrap();
        question.reply.send(Bytes::from_static(b"some"));
        question.reply.fail("the recording is damaged");
        // Dropped without an end.
        let question = questions.next_within(LIMIT).unwrap();
        question.reply.send(Bytes::from_static(b"some"));
    });
    let ask = || root.query(&name("a"), Bytes::from_static(b"events"));
    assert_eq!(
        ask().collect(99, LIMIT),
        Err(AnswerError::Failed("the recording is damaged".into()))
    );
    let broken = ask().collect(99, LIMIT).unwrap_err();
    assert!(broken.to_string().contains("broke off"), "{broken}");
    answering.join().unwrap();
    // Nobody takes questions any more.
    let refused = ask().collect(99, LIMIT).unwrap_err();
    assert!(refused.to_string().contains("takes no questions"), "{refused}");
    drop(node);
}

#[test]
fn relays_and_viewers_pass_reports_and_answers_on() {
    let job = Job::new();
    let folder = job.authority.folder();
    let root = job.root();
    folder.set_root(&root.address().unwrap().to_string()).unwrap();
    let config = Config {
        info: Some(Bytes::from_static(b"relay")),
        listen: Some(Listen::At("127.0.0.1:0".into())),
        report_to: Some(Address::OfFolder(folder.clone())),
        ..Config::default()
    };
    let (relay, _questions) = Daemon::start(&job.key(Role::Relay, "r"), config).unwrap();
    let (node, questions) = job.node("a", relay.address().unwrap());
    let answering = echo(questions, 40);
    let config = Config {
        watch: vec![Address::OfFolder(folder.clone())],
        ..Config::default()
    };
    let (viewer, _) = Daemon::start(&job.key(Role::Viewer, "screen"), config).unwrap();
    let mut events = viewer.subscribe();
    wait_for_nodes(&viewer, 2);
    assert_eq!(viewer.connections()[0], Connection::Open);
    node.publish(Bytes::from_static(b"sums")).unwrap();
    let reported = event(&mut events, |event| match event {
        Event::Report { node, report } => Some((node, report)),
        _ => None,
    });
    assert_eq!(reported, (name("a"), Bytes::from_static(b"sums")));
    for at in [&root as &dyn Transport, &viewer] {
        let answer = at.query(&name("a"), Bytes::from(vec![9; 1000]));
        assert_eq!(answer.collect(1 << 20, LIMIT), Ok(vec![9; 40_000]));
        wait_for("clocks", || at.alive().iter().all(|node| node.clock.is_some()));
    }
    // A viewer that comes late sees what is there.
    let config = Config {
        watch: vec![Address::Fixed(root.address().unwrap().to_string())],
        ..Config::default()
    };
    let (late, _) = Daemon::start(&job.key(Role::Viewer, "late"), config).unwrap();
    event(&mut late.subscribe(), |event| {
        matches!(event, Event::Report { .. }).then_some(())
    });
    drop(relay);
    event(&mut events, |event| match event {
        Event::Gone { node, reason } if &*node == "a" => Some(reason),
        _ => None,
    });
    drop(node);
    answering.join().unwrap();
}

#[test]
fn a_root_that_nodes_cannot_reach_dials_them_again_and_again() {
    let job = Job::new();
    let daemon = |node: &str, address: &str| {
        let config = Config {
            info: Some(Bytes::new()),
            listen: Some(Listen::At(address.to_owned())),
            ..Config::default()
        };
        Daemon::start(&job.key(Role::Relay, node), config).unwrap()
    };
    let (a, questions) = daemon("a", "127.0.0.1:0");
    let (b, _b_questions) = daemon("b", "127.0.0.1:0");
    let answering = echo(questions, 2);
    let [at_a, at_b] = [&a, &b].map(|daemon| daemon.address().unwrap().to_string());
    let config = Config {
        watch: [&at_a, &at_b].map(|address| Address::Fixed(address.clone())).to_vec(),
        ..Config::default()
    };
    let (root, _) = Daemon::start(&job.key(Role::Root, "login"), config).unwrap();
    wait_for_nodes(&root, 2);
    let answer = root.query(&name("a"), Bytes::from_static(b"who"));
    assert_eq!(answer.collect(99, LIMIT).unwrap(), b"whowho");
    drop(b);
    wait_for_nodes(&root, 1);
    let (_b, _b_questions) = daemon("b", &at_b);
    wait_for_nodes(&root, 2);
    drop(a);
    answering.join().unwrap();
}

#[test]
fn all_addresses_and_keys_of_nodes_do_not_listen() {
    let job = Job::new();
    let start = |role, listen: &str| {
        let config = Config {
            listen: Some(Listen::At(listen.to_owned())),
            ..Config::default()
        };
        Daemon::start(&job.key(role, "x"), config)
            .map(drop)
            .unwrap_err()
            .to_string()
    };
    for all in ["0.0.0.0:0", "[::]:0"] {
        assert!(start(Role::Root, all).contains("name one"), "{all}");
    }
    assert!(start(Role::Root, "127.0.0.1").contains("no address"));
    assert!(start(Role::Node, "127.0.0.1:0").contains("does not allow to listen"));
}
