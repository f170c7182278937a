//! Signals to the program and to roctop, and what the terminal and the screen are afterwards.

use super::{demo, quit};
use crate::kit::terminal::Terminal;

/// Kills the demo's worker; true when a call or a kernel was open at that moment and the log tells so.
fn told_when_killed() -> bool {
    let mut terminal = demo(120, 36);
    terminal.shows("fmha_fwd");
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", terminal.pid())).unwrap();
    let all = std::fs::read_dir(format!("/proc/{}/task", terminal.pid())).unwrap();
    let mut workers: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
    for task in all {
        let more = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap();
        workers.extend(more.split_whitespace().map(str::to_owned));
    }
    // Beside the worker there is the process that keeps its terminal.
    workers.retain(|pid| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        command.is_ok_and(|command| command.contains("__demo"))
    });
    let killed = std::process::Command::new("sh")
        .args(["-c", &format!("kill -9 {}", workers[0])])
        .status()
        .unwrap();
    assert!(killed.success());
    terminal.shows("KILLED by signal 9");
    terminal.keys("0");
    // The overview has the first line too, until the log is shown.
    let text = terminal.wait("the end and what was open", |screen| {
        screen.contains("■ signal 9 SIGKILL after") && (screen.contains('▒') || screen.contains("nothing was open"))
    });
    let status = terminal.leave();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    text.contains('▒')
}

#[test]
fn the_screen_says_how_a_killed_program_ended_and_what_was_running() {
    // Between two steps nothing is open; that several kills all meet such a moment is not to be believed.
    assert!((0..5).any(|_| told_when_killed()));
}

pub(crate) fn send(signal: &str, pid: u32) {
    // A minimal system has the shell's own kill alone.
    let sent = std::process::Command::new("sh")
        .args(["-c", &format!("kill -{signal} {pid}")])
        .status();
    assert!(sent.unwrap().success());
}

fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

#[test]
fn a_suspended_screen_gives_the_terminal_back_and_takes_it_again() {
    let mut terminal = demo(80, 24);
    terminal.shows("LIVE");
    terminal.keys("\u{1a}");
    // What was written before the stop may come a little after it.
    terminal.wait("the shell's screen", |_| {
        state(terminal.pid()) == 'T' && !terminal.is_full_screen()
    });
    send("CONT", terminal.pid());
    terminal.wait("the screen again", |text| {
        terminal.is_full_screen() && text.contains("LIVE")
    });
    quit(terminal);
}

#[test]
fn signals_that_end_roctop_leave_the_terminal_as_it_was() {
    for signal in ["TERM", "HUP"] {
        let mut terminal = demo(80, 24);
        terminal.shows("LIVE");
        send(signal, terminal.pid());
        terminal.end();
        assert!(!terminal.is_full_screen(), "{signal}");
        let bytes = terminal.bytes();
        let shown = |sequence: &[u8]| bytes.windows(sequence.len()).rposition(|window| window == sequence);
        assert!(
            shown(b"\x1b[?25h") > shown(b"\x1b[?25l"),
            "{signal}: the cursor is shown again"
        );
        assert!(
            shown(b"\x1b[?1000l") > shown(b"\x1b[?1000h"),
            "{signal}: the mouse is let go"
        );
    }
}

#[test]
fn a_signal_to_roctop_under_a_screen_is_not_reported_as_the_users() {
    let place = std::env::temp_dir();
    let ended = |signal: &str, script: &str| {
        let words = ["run", "--kill-timeout", "1s", "--", "sh", "-c", script];
        let mut terminal = Terminal::start(&place, 80, 24, &words, &[]);
        terminal.keys("0");
        terminal.shows("ready");
        send(signal, terminal.pid());
        terminal.end();
        String::from_utf8_lossy(&terminal.bytes()).into_owned()
    };
    // The first line of the screen shows the command: what the program prints must differ from it.
    let loops = "echo rea''dy; while :; do sleep 0.05; done";
    let through = ended("TERM", loops);
    assert!(through.contains("SIGTERM came from"), "{through}");
    assert!(!through.contains("from its screen"), "{through}");
    let deaf = ended("TERM", &format!("trap '' TERM; {loops}"));
    assert!(
        deaf.contains("SIGKILL was sent by roctop, because the program did not end within 1.00 s"),
        "{deaf}"
    );
    assert!(deaf.contains("SIGTERM came from"), "{deaf}");
    let hung_up = ended("HUP", &format!("trap '' HUP; {loops}"));
    assert!(
        hung_up.contains("SIGTERM was sent by roctop, which had to end: SIGHUP came from"),
        "{hung_up}"
    );
}

#[test]
fn the_first_interrupt_is_the_programs_and_the_second_asks() {
    let script = "trap 'echo caught it' INT; echo ready; while :; do sleep 0.1; done";
    let place = std::env::temp_dir();
    let mut terminal = Terminal::start(&place, 80, 24, &["run", "--", "sh", "-c", script], &[]);
    terminal.shows("LIVE");
    terminal.keys("0");
    terminal.shows("ready");
    terminal.keys("\u{3}");
    terminal.shows("SIGINT sent");
    terminal.shows("caught it");
    terminal.keys("\u{3}");
    terminal.shows("SIGTERM");
    terminal.choose("t");
    terminal.shows("signal 15");
    terminal.shows("SIGTERM was sent by roctop, from its screen");
    let status = terminal.leave();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
}

#[test]
fn a_program_that_ignores_an_interrupt_is_asked_and_killed_while_the_seconds_are_counted() {
    let script = "trap 'echo caught it' INT TERM; echo ready; while :; do sleep 0.1; done";
    let place = std::env::temp_dir();
    let words = ["run", "--kill-timeout", "2s", "--", "sh", "-c", script];
    let mut terminal = Terminal::start(&place, 80, 24, &words, &[]);
    terminal.keys("0");
    terminal.shows("ready");
    terminal.keys("\u{3}");
    terminal.shows("SIGINT sent");
    terminal.keys("\u{3}");
    terminal.shows("signal 9");
    // A second may be over before this terminal is looked at.
    for counted in ["SIGTERM in ", "SIGKILL in "] {
        assert!(terminal.has_shown(counted), "{counted}");
    }
    let status = terminal.leave();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
}

#[test]
fn a_signal_ends_the_screen_of_a_program_that_has_ended() {
    let mut terminal = Terminal::start(&std::env::temp_dir(), 80, 24, &["demo", "--seconds", "1"], &[]);
    terminal.wait("the end", |text| text.contains("ENDED exit 0"));
    send("TERM", terminal.pid());
    assert!(terminal.end().success());
    assert!(!terminal.is_full_screen());
}
