//! What is typed or pasted by accident does nothing outside of the screen.

use super::{place, quit};
use crate::kit::terminal::Terminal;
use std::time::Duration;

/// Where a sequence was written last.
fn last(terminal: &Terminal, sequence: &[u8]) -> Option<usize> {
    let bytes = terminal.bytes();
    bytes.windows(sequence.len()).rposition(|window| window == sequence)
}

const PASTE: &[u8] = b"\x1b[?2004h";
const NO_PASTE: &[u8] = b"\x1b[?2004l";

#[test]
fn words_and_pastes_end_no_program_and_write_no_file() {
    let place = place("keyboard", "");
    let mut terminal = Terminal::start(&place, 120, 36, &["demo"], &[]);
    terminal.shows("fmha_fwd");
    assert!(last(&terminal, PASTE) > last(&terminal, NO_PASTE));
    for word in ["next", "exit", "text", "taxi"] {
        for letter in word.chars() {
            terminal.keys(&letter.to_string());
            std::thread::sleep(Duration::from_millis(150));
        }
    }
    terminal.keys("\u{1b}");
    let sentences = [
        "some text x9 yes kill -9 quickly\r",
        "hello P e E R world\r",
        "x",
        "q",
        "e",
    ];
    for sentence in sentences.iter().filter(|sentence| sentence.len() > 1) {
        // As a terminal without marks sends it, and one with them.
        terminal.keys(sentence);
        terminal.keys_until("\u{1b}", "nothing in front", |text| text.contains("? help"));
    }
    for sentence in sentences {
        terminal.keys(&format!("\x1b[200~{sentence}\x1b[201~"));
        terminal.shows("a paste is text for a prompt");
        terminal.keys_until("3", "no word", |text| !text.contains("a paste is text"));
    }
    terminal.keys("/\x1b[200~adam\r\x1b[201~");
    terminal.wait("one kernel", |text| {
        text.contains("/adam") && !text.contains("softmax_xentr") && text.contains("adamw_step")
    });
    terminal.keys("\r");
    terminal.shows("filter: adam");
    assert!(terminal.text().contains("● LIVE"), "{}", terminal.text());
    let files: Vec<_> = std::fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files, [place.join("config.toml")]);
    // Counting for the filter keeps the screen busy: no menu here.
    super::signal::send("TERM", terminal.pid());
    terminal.end();
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_paste_goes_to_the_program_that_is_typed_to() {
    let script = "while read -r line; do echo \"<$line>\"; done";
    let place = std::env::temp_dir();
    let mut terminal = Terminal::start(&place, 100, 30, &["run", "--", "sh", "-c", script], &[]);
    terminal.shows("LIVE");
    terminal.acts("i");
    terminal.shows("ctrl-] ends that");
    terminal.wait("no marks of pastes", |_| {
        last(&terminal, NO_PASTE) > last(&terminal, PASTE)
    });
    terminal.keys("quit e\rnext x t\r");
    terminal.shows("<quit e>");
    terminal.shows("<next x t>");
    terminal.keys("\u{1d}");
    terminal.wait("marks of pastes", |_| {
        last(&terminal, PASTE) > last(&terminal, NO_PASTE)
    });
    quit(terminal);
}

#[test]
fn pastes_are_the_shells_again_whatever_ends_the_screen() {
    for signal in ["TERM", "HUP", "INT", "QUIT"] {
        let mut terminal = Terminal::start(&std::env::temp_dir(), 80, 24, &[], &[]);
        terminal.shows("Sessions");
        super::signal::send(signal, terminal.pid());
        terminal.end();
        assert!(last(&terminal, NO_PASTE) > last(&terminal, PASTE), "{signal}");
    }
    let place = place("paste-fault", "");
    let set = [("ROCTOP_TEST_PANIC", "1"), ("RUST_BACKTRACE", "0")];
    let mut terminal = Terminal::start(&place, 80, 24, &["run", "--", "sleep", "5"], &set);
    terminal.shows("? help");
    terminal.acts("e");
    terminal.shows("a fault for a test");
    terminal.end();
    assert!(last(&terminal, NO_PASTE) > last(&terminal, PASTE));
    std::fs::remove_dir_all(&place).unwrap();
}
