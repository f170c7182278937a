//! A user who types the commands of a document at a terminal, one after the other, and leaves each screen that appears.

use super::around::Around;
use crate::kit::terminal::Terminal;
use std::time::{Duration, Instant};

/// A program that runs longer is stopped.
const COMMAND_LIMIT: Duration = Duration::from_secs(5);

/// Types every command; returns how many showed the screen.
pub(crate) fn types(around: &Around, what: &str, commands: &[&str]) -> usize {
    let shown = commands.iter().filter(|command| type_one(around, what, command));
    shown.count()
}

/// True if the command showed the screen.
fn type_one(around: &Around, what: &str, command: &str) -> bool {
    let variables = around.variables();
    let mut terminal = Terminal::start_program(&around.place, 120, 36, "bash", &["-euc", command], &variables);
    let has_screen = terminal.wait_or_end("Overview");
    let mut was_stopped = false;
    if has_screen {
        let began = Instant::now();
        while terminal.text().contains("LIVE") && began.elapsed() < COMMAND_LIMIT {
            std::thread::sleep(Duration::from_millis(50));
        }
        terminal.keys("q");
        let asked = |text: &str| text.contains("stop it") || text.contains('■');
        if terminal.wait_or_end_for("stop it", asked) && !terminal.text().contains('■') {
            terminal.choose("s");
            was_stopped = true;
        }
        // It may end without being stopped, and a key in that moment is for the menu that it takes along.
        if terminal.wait_or_end("■") {
            terminal.leave();
        }
    }
    let status = terminal.end();
    let shown = terminal.text();
    assert!(status.success() || was_stopped, "{what}: {command}: {status}\n{shown}");
    assert!(!terminal.is_full_screen(), "{what}: {command}: the screen was left");
    has_screen
}
