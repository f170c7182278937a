//! The screen as a person meets it: roctop in a pseudo-terminal, keys in, screen out.

mod attach;
mod keyboard;
mod setting;
pub(crate) mod signal;
mod start;

use crate::kit::terminal::Terminal;

fn demo(columns: u16, rows: u16) -> Terminal {
    Terminal::start(std::env::temp_dir().as_path(), columns, rows, &["demo"], &[])
}

/// Quits while the demo runs, and looks that the terminal is as it was.
fn quit(mut terminal: Terminal) {
    terminal.asks("q", "stop it");
    terminal.choose("s");
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
fn closing_lines_begin_on_a_fresh_line() {
    for (columns, rows) in [(80, 24), (120, 36)] {
        for (output, shown) in [
            ("last words", "last words"),
            ("a line\\n", "a line"),
            // The cursor waits at the end of a full line.
            (&"x".repeat(columns.into()), &"x".repeat(columns.into())),
        ] {
            let arguments = ["run", "--no-ui", "printf", output];
            let mut terminal = Terminal::start(std::env::temp_dir().as_path(), columns, rows, &arguments, &[]);
            assert!(terminal.end().success());
            let rows = terminal.rows();
            assert!(
                rows[0].trim_end() == shown && rows[1].starts_with("roctop: "),
                "{rows:?}"
            );
            // The program's bytes are unchanged.
            let bytes = terminal.bytes();
            assert!(
                bytes.starts_with(shown.as_bytes()),
                "{:?}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
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

/// A new directory, and the terminal's settings in it.
fn place(name: &str, settings: &str) -> std::path::PathBuf {
    let place = std::env::temp_dir().join(format!("roctop-terminal-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("config.toml"), settings).unwrap();
    place
}

#[test]
fn the_screen_closes_with_its_program_when_that_is_wanted() {
    let place = place("on-exit", "");
    let words = [
        "--on-exit",
        "summary",
        "--app-io",
        "out.txt",
        "sh",
        "-c",
        "echo to the file; exit 5",
    ];
    let mut terminal = Terminal::start(&place, 100, 30, &words, &[]);
    assert_eq!(terminal.end().code(), Some(5));
    terminal.shows("nothing was recorded");
    assert_eq!(std::fs::read_to_string(place.join("out.txt")).unwrap(), "to the file\n");
}

#[test]
fn a_program_may_have_a_pipe_in_place_of_a_terminal() {
    let script = "[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo no terminal; echo told >&2; \
        (: < /dev/tty) 2>/dev/null || echo none at all; read line || echo nothing to read; sleep 60";
    let words = ["--app-io", "pipe", "sh", "-c", script];
    let mut terminal = Terminal::start(std::env::temp_dir().as_path(), 100, 30, &words, &[]);
    terminal.keys("0");
    for line in ["no terminal", "told", "none at all", "nothing to read"] {
        terminal.shows(line);
    }
    terminal.keys("i");
    terminal.shows("a pipe in place of a terminal");
    quit(terminal);
}

#[test]
fn the_demo_has_counters_that_rest_and_go_on() {
    let mut terminal = Terminal::start(
        std::env::temp_dir().as_path(),
        120,
        36,
        &["demo", "--view", "counters"],
        &[],
    );
    terminal.shows("GRBM_GUI_ACTIVE");
    terminal.acts("a");
    terminal.shows("off, a counts again");
    terminal.acts("a");
    terminal.shows("counters count again");
    terminal.keys("9");
    terminal.shows("counters of the synthetic GPUs rest");
    quit(terminal);
}

#[test]
fn a_program_without_the_collector_is_shown_as_such() {
    let words = ["--no-collect", "sh", "-c", "echo \"[$LD_PRELOAD]\"; sleep 60"];
    let mut terminal = Terminal::start(std::env::temp_dir().as_path(), 120, 36, &words, &[]);
    terminal.shows("NOT COLLECTED");
    terminal.keys("3");
    terminal.shows("started with --no-collect: nothing is recorded");
    terminal.keys("0");
    terminal.shows("[]");
    quit(terminal);
}

#[test]
fn what_is_typed_goes_to_the_program_until_it_is_told_otherwise() {
    let script = "echo ready; read -r line; echo \"<$line>\"; stty raw; head -c 3 | od -An -c; stty cooked; sleep 60";
    let place = std::env::temp_dir();
    let mut terminal = Terminal::start(&place, 80, 24, &["run", "--", "sh", "-c", script], &[]);
    terminal.shows("LIVE");
    terminal.acts("i");
    terminal.shows("ready");
    terminal.shows("ctrl-] ends that");
    // Letters that mean something to roctop do not, and neither does enter.
    terminal.keys("quit 3\r");
    terminal.shows("<quit 3>");
    // A program that reads single keys gets them as they come, escapes too.
    terminal.keys("\u{1b}[A");
    terminal.shows("033   [   A");
    terminal.keys("\u{1d}");
    terminal.shows("keys are roctop's again");
    terminal.keys("3");
    terminal.shows("[3 Kernels]");
    quit(terminal);
}

#[test]
fn a_pipe_into_roctop_is_the_programs_and_keys_come_from_the_terminal() {
    let roctop = env!("CARGO_BIN_EXE_roctop");
    let script = format!("echo fed by a pipe | exec {roctop} run -- cat");
    let place = std::env::temp_dir();
    let mut terminal = Terminal::start_program(&place, 80, 24, "/bin/sh", &["-c", &script], &[]);
    terminal.shows("ENDED exit 0");
    terminal.keys("0");
    terminal.shows("fed by a pipe");
    assert!(terminal.leave().success());
}

#[test]
fn a_fault_of_the_screen_leaves_the_terminal_as_it_was_and_the_program_running() {
    if !cfg!(debug_assertions) {
        println!("skipped: ROCTOP_TEST_PANIC is for builds with debug assertions");
        return;
    }
    let place = place("fault", "");
    let script = "echo begun; until [ -e seen ]; do sleep 0.05; done; echo ended; exit 7";
    let set = [("ROCTOP_TEST_PANIC", "1"), ("RUST_BACKTRACE", "0")];
    let mut terminal = Terminal::start(&place, 80, 24, &["run", "--", "sh", "-c", script], &set);
    let before = terminal.modes();
    terminal.shows("LIVE");
    assert_ne!(terminal.modes(), before, "the terminal is raw");
    terminal.acts("e");
    terminal.wait("what the fault was", |text| {
        text.contains("a fault for a test") && text.contains("the program goes on")
    });
    assert!(!terminal.is_full_screen());
    assert_eq!(terminal.modes(), before);
    std::fs::write(place.join("seen"), "").unwrap();
    terminal.shows("ended");
    let status = terminal.end();
    assert_eq!(status.code(), Some(1), "roctop's own failure is told");
    let bytes = terminal.bytes();
    let shown = |sequence: &[u8]| bytes.windows(sequence.len()).rposition(|window| window == sequence);
    assert!(shown(b"\x1b[?25h") > shown(b"\x1b[?25l"), "the cursor is shown again");
    assert!(shown(b"\x1b[?1000l") > shown(b"\x1b[?1000h"), "the mouse is let go");
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_storm_of_sizes_ends_in_a_screen_that_fits() {
    let mut terminal = demo(120, 36);
    terminal.shows("fmha_fwd");
    let mut seed = 7u64;
    for round in 0..60 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (columns, rows) = (20 + (seed >> 33) % 200, 5 + (seed >> 45) % 60);
        terminal.resize(columns as u16, rows as u16);
        if round % 3 == 0 {
            terminal.keys(["1", "2", "3", "4", "5", "7", "8", "?", "\u{1b}"][round / 3 % 9]);
        }
        std::thread::sleep(std::time::Duration::from_millis(round as u64 % 4 * 15));
    }
    terminal.resize(100, 30);
    // An escape alone is the key only when nothing comes at once.
    terminal.keys_until("\u{1b}", "no help", |text| !text.contains("Help"));
    // The screen is there before the program has made its first record.
    terminal.keys_until("3", "kernels", |text| text.contains("KERNEL"));
    // All of the new screen was drawn, and nothing of an old one is left: the boxes' right edge is one column.
    let text = terminal.wait("a whole screen", |text| {
        let lines: Vec<&str> = text.lines().collect();
        let boxed = |line: &&&str| line.starts_with(['┌', '│', '└']);
        let whole = lines
            .iter()
            .filter(boxed)
            .all(|line| line.chars().count() == 100 && line.ends_with(['┐', '│', '┘']));
        whole && lines.len() == 30 && text.contains("[3 Kernels]") && text.contains("q quit")
    });
    assert!(text.contains("KERNEL"), "{text}");
    quit(terminal);
}

#[test]
fn a_program_that_is_run_again_is_compared_with_its_last_run() {
    let mut terminal = demo(120, 36);
    terminal.shows("fmha_fwd");
    terminal.keys("/adam\r");
    terminal.line(":rerun");
    terminal.choose("r");
    terminal.wait("the second run", |text| {
        text.contains("LIVE") && text.contains("00:00:0")
    });
    terminal.shows("filter: adam");
    terminal.keys("D");
    terminal.wait("both runs", |text| {
        text.contains("VERDICT") && text.contains("adamw_step")
    });
    quit(terminal);
}

/// The summary of a recording in `place`.
fn summary(place: &std::path::Path, recording: &str) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"));
    let output = command
        .args(["summary", recording])
        .current_dir(place)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_recording_is_made_from_the_screen_and_compared_and_exported_there() {
    let place = place("side", "theme = \"dark\"\n");
    let file = place.join("config.toml");
    let set = [("ROCTOP_CONFIG", file.to_str().unwrap())];
    let mut terminal = Terminal::start(&place, 120, 36, &["demo"], &set);
    terminal.shows("fmha_fwd");
    terminal.acts("R");
    terminal.wait("the sign of a recording", |text| {
        text.contains("REC") && text.contains("recording into")
    });
    terminal.wait("kernels of a whole step in the recording", |_| {
        let recorded = summary(&place, "roctop-recording-1");
        recorded.contains("adamw_step") && recorded.contains("Cijk_")
    });
    terminal.acts("R");
    terminal.shows("recorded into roctop-recording-1");
    terminal.wait("no sign of it", |text| !text.contains("● REC"));
    terminal.keys(":diff roctop-recording-1\r");
    terminal.wait("the comparison", |text| {
        text.contains("VERDICT") && text.contains("compared with")
    });
    terminal.keys("/dur>500us\r");
    terminal.shows("filter: dur>500us");
    terminal.line(":export csv out");
    terminal.shows("wrote out/");
    terminal.acts("E");
    // The line that says so is shown for a while only.
    let has_all = || {
        let mut entries = std::fs::read_dir(&place).unwrap().flatten();
        entries
            .any(|entry| entry.path().join("summary.json").exists() && entry.path().to_string_lossy().contains("-all-"))
    };
    terminal.wait("all lists", |_| has_all());
    terminal.line(":save mine");
    terminal.shows("@mine is this filter from now on");
    assert_eq!(
        std::fs::read_to_string(place.join("config.toml")).unwrap(),
        "theme = \"dark\"\n\n[presets]\nmine = \"dur>500us\"\n"
    );
    terminal.keys(":theme no-such-theme\r");
    terminal.shows("no theme no-such-theme");
    terminal.keys(":set glyphs ascii\r");
    terminal.wait("no box of light lines", |text| {
        !text.contains('│') && text.contains("VERDICT")
    });
    quit(terminal);
    assert!(summary(&place, "roctop-recording-1").contains("adamw_step"));
    let files: Vec<_> = std::fs::read_dir(place.join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let kernels = files
        .iter()
        .find(|path| path.to_str().unwrap().ends_with("kernel_trace.csv"))
        .unwrap();
    let text = std::fs::read_to_string(kernels).unwrap();
    assert!(
        text.contains("Cijk_") && !text.contains("layer_norm"),
        "only long kernels:\n{text}"
    );
    let lists = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
    let all = lists
        .into_iter()
        .find(|path| path.to_str().unwrap().contains("-all-"))
        .unwrap();
    for name in ["kernels.csv", "copies.csv", "api.csv", "log.txt", "summary.json"] {
        assert!(all.join(name).exists(), "{name}");
    }
    std::fs::remove_dir_all(&place).unwrap();
}
