//! Programs that go on without their viewer, and viewers that come and go.

use super::demo;
use super::signal::send;
use crate::kit::terminal::Terminal;

/// Session of the program below a viewer.
fn session_of(terminal: &Terminal) -> String {
    terminal.pid().to_string()
}

/// Looks at a session whose viewer has gone, and stops its program.
fn look_and_stop(session: &str) {
    let mut viewer = attach(session);
    viewer.shows("fmha_fwd");
    viewer.keys("0");
    viewer.shows("epoch");
    viewer.keys("i");
    viewer.shows("terminal is with the roctop");
    viewer.asks("x", "enter does it");
    viewer.choose("t");
    // Where the session goes with its program, so does the viewer.
    viewer.wait_or_end("GONE");
    assert!(viewer.leave().success());
}

#[test]
fn a_program_outlives_the_viewer_that_was_killed() {
    let mut terminal = demo(80, 24);
    terminal.shows("fmha_fwd");
    send("KILL", terminal.pid());
    let status = terminal.end();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    let session = session_of(&terminal);
    look_and_stop(&session);
    // What nobody took is kept for `roctop recover`.
    std::fs::remove_dir_all(roctop::session::find(&session).unwrap()).unwrap();
}

#[test]
fn a_program_that_is_left_goes_on_without_roctop_and_its_session_goes_with_it() {
    let mut terminal = demo(80, 24);
    terminal.shows("fmha_fwd");
    let session = session_of(&terminal);
    terminal.asks("q", "enter does it");
    terminal.choose("d");
    assert!(terminal.end().success());
    terminal.shows(&format!("'roctop attach {session}' shows it again"));
    terminal.shows(&format!("roctop/{session}.out"));
    look_and_stop(&session);
    let place = roctop::session::find(&session);
    let began = std::time::Instant::now();
    while place.as_ref().is_ok_and(|place| place.exists()) {
        assert!(
            began.elapsed() < std::time::Duration::from_secs(30),
            "the session stays"
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// A program without a screen that goes on until its test ends it, for a few minutes at most.
fn headless() -> std::process::Child {
    std::process::Command::new(env!("CARGO_BIN_EXE_roctop"))
        .args(["demo", "--no-ui", "--seconds", "300"])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// A viewer of a session, once that is there.
fn attach(session: &str) -> Terminal {
    let began = std::time::Instant::now();
    loop {
        let mut terminal = Terminal::start(&std::env::temp_dir(), 80, 24, &["attach", session], &[]);
        let is_up = terminal.wait_or_end("LIVE");
        if is_up || began.elapsed() > std::time::Duration::from_secs(30) {
            terminal.shows("LIVE");
            return terminal;
        }
    }
}

#[test]
fn several_viewers_look_at_once_and_one_that_was_killed_comes_back() {
    let mut running = headless();
    let session = running.id().to_string();
    let mut viewers = [attach(&session), attach(&session), attach(&session)];
    for viewer in &viewers {
        viewer.shows("fmha_fwd");
    }
    send("KILL", viewers[0].pid());
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&viewers[0].end()),
        Some(9)
    );
    for viewer in &mut viewers[1..] {
        viewer.keys("3");
        viewer.shows("layer_norm");
    }
    viewers[0] = attach(&session);
    viewers[0].shows("fmha_fwd");
    assert!(running.try_wait().unwrap().is_none(), "the program goes on");
    send("TERM", running.id());
    let _ = running.wait();
}

#[test]
fn viewers_of_one_program_count_from_the_same_time() {
    let mut running = headless();
    let session = running.id().to_string();
    let mut viewer = attach(&session);
    viewer.shows("fmha_fwd");
    let place = roctop::session::SessionDir::open(&roctop::session::find(&session).unwrap()).unwrap();
    let origin = place.origin().expect("its own roctop has told it");
    assert!(place.began().is_some_and(|began| began <= origin));
    // As if the rings held nothing of the first minutes any more.
    place.note_origin(origin.saturating_sub(120_000_000_000)).unwrap();
    let mut late = attach(&session);
    late.wait("two minutes", |text| text.contains("00:02:"));
    viewer.wait("some seconds", |text| text.contains("00:00:"));
    for terminal in [&mut viewer, &mut late] {
        terminal.asks("q", "enter does it");
        terminal.choose("d");
        assert!(terminal.end().success());
    }
    send("TERM", running.id());
    let _ = running.wait();
}

#[test]
fn an_attached_screen_stays_when_the_program_ends() {
    let mut running = headless();
    let session = running.id().to_string();
    let mut stays = attach(&session);
    let mut closes = Terminal::start(
        &std::env::temp_dir(),
        80,
        24,
        &["attach", &session, "--on-exit", "quit"],
        &[],
    );
    // The session is live before the program has records.
    for terminal in [&mut stays, &mut closes] {
        terminal.shows("fmha_fwd");
    }
    send("TERM", running.id());
    let _ = running.wait();
    stays.shows("the program has ended: process");
    stays.shows("SIGTERM");
    assert!(stays.leave().success());
    assert!(closes.end().success());
    closes.shows("the program has ended: process");
}

#[test]
fn a_signal_ends_a_viewer_and_leaves_the_terminal_as_it_was() {
    let mut running = headless();
    for signal in ["TERM", "INT", "HUP"] {
        let mut viewer = attach(&running.id().to_string());
        send(signal, viewer.pid());
        viewer.end();
        assert!(!viewer.is_full_screen(), "{signal}");
    }
    assert!(running.try_wait().unwrap().is_none(), "the program goes on");
    send("TERM", running.id());
    let _ = running.wait();
}

#[test]
fn a_viewer_comes_and_goes_while_the_program_goes_on() {
    let mut running = headless();
    let session = running.id().to_string();
    for _ in 0..2 {
        let mut terminal = attach(&session);
        terminal.shows("fmha_fwd");
        terminal.asks("q", "enter does it");
        terminal.choose("d");
        assert!(terminal.end().success());
        assert!(running.try_wait().unwrap().is_none(), "the program goes on");
    }
    send("TERM", running.id());
    let _ = running.wait();
}

/// Attaches to a program that never has a ring, ends it with its roctop, and quits.
fn quit_at_end(words: &[&str]) -> (Terminal, std::process::ExitStatus) {
    let mut running = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"))
        .args(["--no-ui", "sleep", "300"])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let session = running.id().to_string();
    let mut first = attach(&session);
    first.asks("q", "enter does it");
    first.choose("d");
    let mut viewer = Terminal::start(
        &std::env::temp_dir(),
        80,
        24,
        &[&["attach", &session], words].concat(),
        &[],
    );
    viewer.shows("LIVE");
    send("TERM", running.id());
    let _ = running.wait();
    let status = if words.is_empty() {
        viewer.shows("ended");
        viewer.leave()
    } else {
        viewer.end()
    };
    (viewer, status)
}

#[test]
fn q_does_not_ask_about_a_program_that_ended_without_a_ring() {
    let (_, stays) = quit_at_end(&[]);
    assert!(stays.success());
    let (closed, status) = quit_at_end(&["--on-exit", "quit"]);
    assert!(status.success());
    closed.shows("the program has ended: process");
}
