//! Settings, themes and options of the screen.

use super::{demo, place, quit};
use crate::kit::terminal::Terminal;

#[test]
fn the_theme_is_that_of_the_terminals_background_when_nobody_chose_one() {
    let asks = |terminal: &Terminal| terminal.bytes().windows(6).any(|bytes| bytes == b"\x1b]11;?");
    let mut terminal = demo(80, 24);
    terminal.shows("LIVE");
    assert!(asks(&terminal));
    let redrawn = |terminal: &Terminal| terminal.bytes().windows(4).filter(|bytes| bytes == b"\x1b[2J").count();
    let before = redrawn(&terminal);
    terminal.keys("\u{1b}]11;rgb:ffff/ffff/");
    terminal.keys("eeee\u{1b}\\");
    terminal.wait("the other theme", |_| redrawn(&terminal) > before);
    let text = terminal.shows("[1 Overview]");
    assert!(text.contains("q quit"), "no key was heard in the answer:\n{text}");
    quit(terminal);
    let place = std::env::temp_dir();
    let chosen = Terminal::start(&place, 80, 24, &["demo", "--theme", "dark", "--view", "kernels"], &[]);
    chosen.shows("[3 Kernels]");
    assert!(!asks(&chosen));
    quit(chosen);
}

#[test]
fn a_terminal_that_can_show_no_screen_is_given_none() {
    let place = std::env::temp_dir();
    let mut terminal = Terminal::start(&place, 80, 24, &["run", "--", "echo", "said"], &[("TERM", "dumb")]);
    assert!(terminal.end().success());
    assert!(terminal.text().contains("said"));
    assert!(!terminal.bytes().contains(&0x1b), "no sequence was sent");
}

#[test]
fn a_machine_without_pseudo_terminals_is_told_of_the_pipe() {
    const UNSHARE: &str = "/usr/bin/unshare";
    let place = std::env::temp_dir();
    let roctop = env!("CARGO_BIN_EXE_roctop");
    // In a mount namespace of its own, /dev/pts is empty for roctop.
    let hidden = |words: &str| {
        let script = format!("mount -t tmpfs none /dev/pts || exit 77; exec {roctop} {words}");
        let words = ["--mount", "--map-root-user", "sh", "-c", &script];
        Terminal::start_program(&place, 160, 24, UNSHARE, &words, &[])
    };
    let mut terminal = hidden("true");
    let status = terminal.end();
    if status.code() == Some(77) || !std::path::Path::new(UNSHARE).exists() {
        println!("skipped: no mount namespaces on this machine");
        return;
    }
    assert_eq!(status.code(), Some(1), "{}", terminal.text());
    terminal.shows("(is /dev/pts mounted?); '--app-io pipe' does without one");
    // A session has the process id of its roctop.
    let sessions = std::fs::read_dir("/dev/shm").unwrap().flatten();
    let mut left = sessions.map(|entry| entry.path().join(terminal.pid().to_string()));
    assert!(!left.any(|session| session.exists()), "the session stays");
    let mut terminal = hidden("--app-io pipe --on-exit quit true");
    assert!(terminal.end().success(), "{}", terminal.text());
}

#[test]
fn a_theme_or_a_place_for_output_that_cannot_be_is_told_and_ends_with_2() {
    for (words, said) in [
        (["demo", "--theme", "nope"], "--theme: no theme nope"),
        (["--app-io", "inherit", "true"], "--app-io inherit: "),
    ] {
        let mut terminal = Terminal::start(std::env::temp_dir().as_path(), 200, 24, &words, &[]);
        terminal.shows(said);
        assert_eq!(terminal.end().code(), Some(2), "{words:?}");
        assert!(!terminal.is_full_screen());
    }
}

#[test]
fn keys_and_presets_are_those_of_the_settings() {
    let settings = "filter = \"@opt\"\n[keys]\nquit = [\"Q\"]\n[presets]\nopt = \"adam | sgd\"\n";
    let place = place("settings", settings);
    let file = place.join("config.toml");
    let set = [("ROCTOP_CONFIG", file.to_str().unwrap())];
    let mut terminal = Terminal::start(&place, 120, 36, &["demo"], &set);
    terminal.shows("filter: (adam | sgd)");
    terminal.keys("q3");
    terminal.wait("one kernel", |text| {
        !text.contains("softmax_xentr") && text.contains("adamw_step")
    });
    terminal.acts("P");
    terminal.shows("wrote roctop-");
    terminal.keys("Q");
    terminal.choose("s");
    terminal.end();
    let pictures = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
    let mut endings: Vec<String> = pictures
        .filter_map(|path| {
            let ending = path.extension()?.to_str()?.to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (ending != "toml").then(|| assert!(text.contains("adamw_step"), "{ending}"))?;
            Some(ending)
        })
        .collect();
    endings.sort();
    assert_eq!(endings, ["ans", "svg", "txt"]);
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn settings_that_are_wrong_are_said_with_their_line() {
    let place = place("wrong", "theme = \"dark\"\nthme = \"x\"\n");
    let checked = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"))
        .args(["config", "check"])
        .env("ROCTOP_CONFIG", place.join("config.toml"))
        .output()
        .unwrap();
    assert_eq!(checked.status.code(), Some(1));
    let said = String::from_utf8(checked.stderr).unwrap();
    assert!(said.contains("config.toml: line 2: unknown field `thme`"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    std::fs::remove_dir_all(&place).unwrap();
}
