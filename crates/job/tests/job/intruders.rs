//! Those who should not be there are refused and reported, and delay nobody.

use crate::kit::{Job, event, name, wait_for, wait_for_nodes};
use bytes::Bytes;
use roctop_job::Event;
use roctop_job::{Address, Config, Connection, Daemon, Key, Refusal, Role, Subscription, Transport};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

fn refused(events: &mut Subscription, expected: Refusal) {
    let (from, count) = event(events, |event| match event {
        Event::Refused { reason, from, count } if reason == expected => Some((from, count)),
        _ => None,
    });
    assert!(from.starts_with("127.0.0.1") && count > 0, "{from} {count}");
}

fn node(key: &Key, root: SocketAddr) -> Daemon {
    let config = Config {
        info: Some(Bytes::new()),
        report_to: Some(Address::Fixed(root.to_string())),
        ..Config::default()
    };
    Daemon::start(key, config).unwrap().0
}

fn failure(daemon: &Daemon) -> String {
    let mut words = String::new();
    wait_for("a failure", || match &daemon.connections()[0] {
        Connection::Failed(why) => {
            words.clone_from(why);
            true
        }
        _ => false,
    });
    words
}

#[test]
fn keys_of_others_and_expired_keys_are_refused() {
    let job = Job::new();
    let other = Job::named("78");
    let same_name = Job::new();
    let root = job.root();
    let address = root.address().unwrap();
    let mut events = root.subscribe();
    for key in [other.key(Role::Node, "a"), same_name.key(Role::Node, "a")] {
        // The intruder's own check is in the way: it does not trust this root.
        let intruder = node(&key, address);
        let why = failure(&intruder);
        assert!(why.contains("no key of this job"), "{why}");
    }
    // One that does trust it, since it has the authority's certificate, with its own key.
    for (strange, reason) in [(&other, Refusal::OtherJob), (&same_name, Refusal::OtherJob)] {
        let path = strange.folder.0.join("mixed");
        mixed(&job.key(Role::Node, "a"), &strange.key(Role::Node, "a"), &path);
        let intruder = node(&Key::read(&path).unwrap(), address);
        failure(&intruder);
        refused(&mut events, reason);
    }
    let past = SystemTime::now() - Duration::from_secs(2);
    let key = job.authority.issue_until(Role::Node, &name("late"), past).unwrap();
    let expired = node(&key, address);
    let why = failure(&expired);
    assert!(why.contains("xpired"), "{why}");
    refused(&mut events, Refusal::Expired);
    assert!(root.alive().is_empty());
}

/// A key file with the second key, its certificate, and the authority of the first.
fn mixed(trusted: &Key, own: &Key, path: &std::path::Path) {
    let written = [trusted, own].map(|key| {
        let part = path.with_extension("part");
        key.write(&part).unwrap();
        let text = std::fs::read_to_string(&part).unwrap();
        std::fs::remove_file(part).unwrap();
        text
    });
    let certificates = written.each_ref().map(|text| {
        let ends: Vec<usize> = text.match_indices("-----BEGIN").map(|(at, _)| at).collect();
        (
            text[..ends[0]].to_owned(),
            text[ends[0]..ends[1]].to_owned(),
            text[ends[1]..ends[2]].to_owned(),
            text[ends[2]..].to_owned(),
        )
    });
    let [(_, _, authority, _), (header, certificate, _, key)] = certificates;
    std::fs::write(path, header + &certificate + &authority + &key).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

#[test]
fn a_key_of_a_viewer_does_not_report() {
    let job = Job::new();
    let root = job.root();
    let mut events = root.subscribe();
    let why = failure(&node(&job.key(Role::Viewer, "a"), root.address().unwrap()));
    assert!(why.contains("does not allow"), "{why}");
    refused(&mut events, Refusal::WrongRole);
    let config = Config {
        watch: vec![Address::Fixed(root.address().unwrap().to_string())],
        ..Config::default()
    };
    let (nosy, _) = Daemon::start(&job.key(Role::Node, "a"), config).unwrap();
    assert!(failure(&nosy).contains("does not allow"));
    assert!(root.alive().is_empty());
}

#[test]
fn garbage_and_silence_by_the_hundred_delay_nobody() {
    let job = Job::new();
    let root = job.root();
    let address = root.address().unwrap();
    let mut events = root.subscribe();
    let connect = || TcpStream::connect(address).unwrap();
    // Some say nothing, some stop within the first message of TLS, some speak another language.
    let silent: Vec<TcpStream> = (0..150).map(|_| connect()).collect();
    let begun: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = connect();
            stream.write_all(&[22, 3, 1, 2, 0, 1, 0]).unwrap();
            stream
        })
        .collect();
    let mut state = 1u64;
    for n in 0..200 {
        let mut stream = connect();
        let bytes: Vec<u8> = if n % 2 == 0 {
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()
        } else {
            (0..500)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect()
        };
        // It may be refused before all is written.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
    }
    let (honest, _questions) = job.node("a", address);
    // The silent ones have five seconds, each: one after the other, they would take far longer than the honest one waits.
    wait_for_nodes(&root, 1);
    refused(&mut events, Refusal::NotTls);
    refused(&mut events, Refusal::Unfinished);
    for mut stream in silent.into_iter().chain(begun) {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // Closed by the root, with an alert or without.
        let mut rest = Vec::new();
        if let Err(error) = stream.read_to_end(&mut rest) {
            assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock);
        }
    }
    assert_eq!(root.alive().len(), 1);
    assert_eq!(honest.connections()[0], Connection::Open);
}
