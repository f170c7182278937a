//! `roctop` alone on a terminal.

use crate::kit::terminal::Terminal;
use std::time::{Duration, Instant};

fn start(arguments: &[&str]) -> Terminal {
    Terminal::start(std::env::temp_dir().as_path(), 120, 36, arguments, &[])
}

#[test]
fn roctop_alone_is_a_screen_that_comes_back() {
    let mut terminal = start(&[]);
    terminal.shows("Sessions");
    assert!(terminal.is_full_screen());
    terminal.keys("n");
    terminal.line("no-such-program");
    terminal.shows("command not found in PATH");
    terminal.keys("\x1b");
    // Read together with the next key, it would be another key.
    terminal.wait("the prompt's end", |text| !text.contains("command not found in PATH"));
    terminal.keys("d");
    terminal.shows("fmha_fwd");
    terminal.asks("q", "stop it");
    terminal.choose("s");
    terminal.shows("Sessions");
    terminal.keys("n");
    terminal.line("sh -c 'exit 7'");
    terminal.shows("ENDED exit 7");
    terminal.keys("q");
    // How it ended is said where it was started.
    terminal.shows("sh -c 'exit 7': exit 7");
    assert!(terminal.leave().success());
    assert!(!terminal.is_full_screen(), "the alternate screen was left");
}

#[test]
fn a_session_is_chosen_from_the_list() {
    let mut running = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"))
        .args(["demo", "--no-ui", "--seconds", "300"])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let session = running.id().to_string();
    let mut terminal = start(&[]);
    terminal.shows(&session);
    // Other tests have sessions, too.
    let chosen = format!("▸ {session}");
    let began = Instant::now();
    let (mut key, mut turned) = ("j", "k");
    while !terminal.text().contains(&chosen) {
        assert!(began.elapsed() < Duration::from_mins(1), "{}", terminal.text());
        let row = |text: &str| text.lines().find(|line| line.contains('▸')).map(str::to_owned);
        let before = row(&terminal.text());
        terminal.keys(key);
        let typed = Instant::now();
        while row(&terminal.text()) == before {
            if typed.elapsed() > Duration::from_secs(1) {
                // The end of the list.
                std::mem::swap(&mut key, &mut turned);
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    terminal.keys("\r");
    terminal.shows("fmha_fwd");
    terminal.asks("q", "enter does it");
    terminal.choose("d");
    terminal.shows("Sessions");
    assert!(running.try_wait().unwrap().is_none(), "the program goes on");
    assert!(terminal.leave().success());
    super::signal::send("TERM", running.id());
    let _ = running.wait();
}

#[test]
fn a_signal_ends_the_start_screen() {
    let mut terminal = start(&[]);
    terminal.shows("Sessions");
    super::signal::send("TERM", terminal.pid());
    terminal.end();
    assert!(!terminal.is_full_screen());
}

#[test]
fn without_a_terminal_roctop_alone_prints_text() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("session"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}
