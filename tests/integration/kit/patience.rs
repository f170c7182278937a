//! A program that never ends fails its test and reports where its threads were, instead of blocking the whole run.

use std::fmt::Write;
use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Longer than any program of the tests takes on any machine.
const RUN_LIMIT: Duration = Duration::from_mins(10);

/// Output of a command that ends. A command that does not end is killed with its descendants.
pub(crate) fn output(command: &mut Command) -> Output {
    output_within(command, RUN_LIMIT)
        .unwrap_or_else(|stood| panic!("not over after {RUN_LIMIT:?}: {command:?}\n{stood}"))
}

/// The same, within `longest`; the error is the state of its threads.
pub(crate) fn output_within(command: &mut Command, longest: Duration) -> Result<Output, String> {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (ended, end) = mpsc::channel::<()>();
    let root = child.id();
    let watch = thread::spawn(move || {
        let is_over = end.recv_timeout(longest) != Err(RecvTimeoutError::Timeout);
        (!is_over).then(|| stop(root))
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    watch.join().unwrap().map_or(Ok(output), Err)
}

/// Kills a process with its descendants, and reports where the threads of each were.
fn stop(root: u32) -> String {
    let mut tree = vec![root];
    let mut stood = String::new();
    for index in 0.. {
        let Some(pid) = tree.get(index).copied() else { break };
        let threads = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for thread in threads.map(|entry| entry.path()) {
            let read = |name| fs::read_to_string(thread.join(name)).unwrap_or_default();
            let (name, call, place) = (read("comm"), read("syscall"), read("wchan"));
            let _ = writeln!(stood, "{pid} {} in {place}, system call {}", name.trim(), call.trim());
            tree.extend(
                read("children")
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
    for pid in tree {
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    }
    stood
}
