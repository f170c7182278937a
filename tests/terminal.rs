//! The screen as a person meets it: roctop in a pseudo-terminal, keys in, screen out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "rig/terminal.rs"]
mod terminal;

use terminal::Terminal;

fn demo(columns: u16, rows: u16) -> Terminal {
    Terminal::start(std::env::temp_dir().as_path(), columns, rows, &["demo"], &[])
}

/// Quits while the demo runs, and looks that the terminal is as it was.
fn quit(mut terminal: Terminal) {
    terminal.keys("q");
    terminal.shows("stop it");
    terminal.keys("s");
    terminal.end();
    assert!(!terminal.is_full_screen(), "the alternate screen was left");
    let bytes = terminal.bytes();
    let shown = |sequence: &[u8]| bytes.windows(sequence.len()).rposition(|window| window == sequence);
    assert!(shown(b"\x1b[?25h") > shown(b"\x1b[?25l"), "the cursor is shown again");
}

#[test]
fn the_demo_is_live_at_80x24_and_at_120x36() {
    for (columns, rows) in [(80, 24), (120, 36)] {
        let mut terminal = demo(columns, rows);
        terminal.shows("LIVE");
        terminal.shows("fmha_fwd");
        terminal.keys("3");
        let kernels = terminal.wait("the kernels", |text| {
            text.contains("CALLS") && text.contains("layer_norm")
        });
        assert!(kernels.lines().all(|line| line.chars().count() <= columns as usize));
        quit(terminal);
    }
}

#[test]
fn a_filter_typed_while_the_program_runs_acts_at_once() {
    let mut terminal = demo(120, 36);
    terminal.keys("3");
    terminal.wait("all kernels", |text| {
        text.contains("softmax_xentr") && text.contains("adamw_step")
    });
    terminal.keys("/adam");
    terminal.wait("one kernel", |text| {
        !text.contains("softmax_xentr") && text.contains("adamw_step")
    });
    terminal.keys("\r");
    terminal.wait("the filter in the scope line", |text| text.contains("filter: adam"));
    quit(terminal);
}

#[test]
fn pausing_freezes_the_screen_and_following_goes_on() {
    let mut terminal = demo(120, 36);
    terminal.shows("LIVE");
    terminal.keys(" ");
    terminal.shows("PAUSED");
    terminal.keys("f");
    terminal.shows("LIVE");
    quit(terminal);
}

#[test]
fn each_view_shows_itself_and_help_is_made_from_the_keys() {
    let mut terminal = demo(120, 36);
    terminal.shows("LIVE");
    for (key, text) in [
        ("2", "trainer"),
        ("4", "H2D"),
        ("5", "hipStreamSynchronize"),
        ("0", "epoch"),
        ("1", "GPUs"),
    ] {
        terminal.keys(key);
        terminal.shows(text);
    }
    terminal.keys("?");
    terminal.shows("VIEWS");
    terminal.keys("\u{1b}");
    terminal.wait("no help", |text| !text.contains("VIEWS"));
    terminal.resize(80, 24);
    terminal.keys("3");
    terminal.shows("KERNEL");
    quit(terminal);
}

#[test]
fn the_screen_says_how_a_killed_program_ended_and_what_was_running() {
    let mut terminal = demo(120, 36);
    terminal.shows("fmha_fwd");
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", terminal.pid())).unwrap();
    let all = std::fs::read_dir(format!("/proc/{}/task", terminal.pid())).unwrap();
    let mut workers: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
    for task in all {
        let more = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap();
        workers.extend(more.split_whitespace().map(str::to_owned));
    }
    let killed = std::process::Command::new("sh")
        .args(["-c", &format!("kill -9 {}", workers[0])])
        .status()
        .unwrap();
    assert!(killed.success());
    terminal.shows("signal 9");
    terminal.keys("0");
    terminal.shows("hipStreamSynchronize");
    terminal.keys("q");
    let status = terminal.end();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
}
