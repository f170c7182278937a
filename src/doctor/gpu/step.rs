//! One check: a process with a time limit, and what it printed.

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How a check ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// As it should be.
    Ok,
    /// Worth knowing, or undecided.
    Note,
    /// Not as roctop needs it.
    Bad,
    /// It could not run here.
    #[default]
    Skipped,
}

impl Status {
    /// In front of a line.
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::Ok => "ok  ",
            Self::Note => "note",
            Self::Bad => "BAD ",
            Self::Skipped => "-   ",
        }
    }
}

/// Number that marks a check as undecided, because its process waited for a CPU instead of running.
pub(super) const MACHINE_WAS_BUSY: &str = "machine_was_busy";

/// End of the sentence about a process that the driver holds.
const UNKILLED: &str = "it cannot even be killed";

/// Least share of a check's time for which its threads waited for a CPU on a busy machine.
const BUSY_SHARE: f64 = 0.2;

/// What a check found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Check {
    /// Its number.
    #[serde(rename = "check")]
    pub(super) id: String,
    /// What is checked.
    #[serde(default)]
    pub(super) title: String,
    pub(super) status: Status,
    /// A sentence.
    pub(super) text: String,
    #[serde(default)]
    pub(super) numbers: BTreeMap<String, f64>,
    #[serde(default)]
    pub(super) facts: BTreeMap<String, String>,
    /// What it took, s.
    #[serde(default)]
    pub(super) seconds: f64,
    /// It did not end by itself.
    #[serde(default)]
    pub(super) has_hung: bool,
    /// It was not run because the time for all checks was over.
    #[serde(default)]
    pub(super) is_out_of_time: bool,
}

impl Check {
    /// One that the viewer found itself.
    pub(super) fn found(status: Status, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            ..Self::default()
        }
    }

    /// One for which no time was left.
    pub(super) fn out_of_time() -> Self {
        Self {
            is_out_of_time: true,
            ..Self::found(Status::Skipped, "not run: the time for all checks is over (--seconds)")
        }
    }

    /// The same with a number.
    pub(super) fn number(mut self, name: &str, value: f64) -> Self {
        self.numbers.insert(name.to_owned(), value);
        self
    }

    /// A number that it reported; 0 when it did not.
    pub(super) fn get(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(0.0)
    }

    /// Whether its threads waited for a CPU for much of its time.
    pub(super) fn was_on_busy_machine(&self) -> bool {
        self.get("cpu_wait_ms") > BUSY_SHARE * self.get("took_ms")
    }

    /// The same, undecided if the machine was busy: then lateness says nothing about the GPU.
    pub(super) fn undecided_if(self, is_busy: bool) -> Self {
        if !is_busy || self.status != Status::Bad {
            return self;
        }
        Self {
            status: Status::Note,
            text: format!("undecided: {}, but the machine was busy", self.text),
            ..self.number(MACHINE_WAS_BUSY, 1.0)
        }
    }

    /// The same, undecided if it only was not over in time where the first check found the GPU or the host busy: a slow GPU
    /// takes as long.
    pub(super) fn undecided_if_slow(self, was_busy: bool) -> Self {
        if !was_busy || !self.has_hung || self.status != Status::Bad || self.text.ends_with(UNKILLED) {
            return self;
        }
        Self {
            status: Status::Note,
            text: format!(
                "undecided: {}, and D1 found the GPU or the host slow or busy; --seconds 300 gives it more time",
                self.text
            ),
            ..self
        }
    }

    /// Whether another run may decide it.
    pub(super) fn is_undecided(&self) -> bool {
        self.get("stood_still") > 0.0 || self.get(MACHINE_WAS_BUSY) > 0.0
    }

    /// A fact that it reported.
    pub(super) fn fact(&self, name: &str) -> &str {
        self.facts.get(name).map_or("", String::as_str)
    }
}

/// Runs a check to its end, or until the limit; what it printed is its finding.
pub(super) fn run(mut command: Command, limit: Duration) -> Check {
    let started = Instant::now();
    // A separate group, which ends as a whole: roctop and the program under it.
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Check::found(Status::Skipped, format!("the check cannot be started: {error}")),
    };
    let (said, printed) = mpsc::channel();
    if let Some(mut out) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = out.read_to_end(&mut text);
            let _ = said.send(text);
        });
    }
    let wait = |child: &mut std::process::Child, limit: Duration| -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(3)),
                _ => return None,
            }
        }
    };
    let mut status = wait(&mut child, limit);
    let has_hung = status.is_none();
    if has_hung {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        // One that the driver holds does not end at all.
        status = wait(&mut child, Duration::from_secs(1));
    }
    let text = printed.recv_timeout(Duration::from_millis(500)).unwrap_or_default();
    let mut check = understood(&text, status, has_hung.then_some(limit));
    check.seconds = started.elapsed().as_secs_f64();
    check
}

/// What the printed line and the end of a process say together.
fn understood(printed: &[u8], status: Option<ExitStatus>, limit: Option<Duration>) -> Check {
    let text = String::from_utf8_lossy(printed);
    let line = text.lines().find(|line| line.starts_with("{\"check\":"));
    if let Some(limit) = limit {
        let ended = if status.is_some() { "killed" } else { UNKILLED };
        let mut check = Check::found(
            Status::Bad,
            format!("hangs: no end after {:.1} s; {ended}", limit.as_secs_f64()),
        );
        check.has_hung = true;
        return check;
    }
    match (line.and_then(|line| serde_json::from_str(line).ok()), status) {
        (Some(check), _) => check,
        (None, Some(status)) => match status.signal() {
            Some(signal) => {
                Check::found(Status::Bad, format!("ended by signal {signal}")).number("signal", signal.into())
            }
            None => Check::found(
                Status::Bad,
                format!("ended without a word, exit code {}", status.code().unwrap_or(-1)),
            ),
        },
        (None, None) => Check::found(Status::Bad, "ended without a word"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: u64) -> Check {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        run(command, Duration::from_millis(limit))
    }

    #[test]
    fn a_check_is_its_line_among_others() {
        let check = shell(
            r#"echo noise; echo '{"check":"D2","status":"ok","text":"fine","numbers":{"n":2.5},"facts":{"gfx":"gfx906"}}'"#,
            5_000,
        );
        assert_eq!(
            (check.id.as_str(), check.status, check.text.as_str()),
            ("D2", Status::Ok, "fine")
        );
        assert_eq!(
            (check.get("n"), check.get("m"), check.fact("gfx")),
            (2.5, 0.0, "gfx906")
        );
        assert!(!check.has_hung);
    }

    #[test]
    fn a_check_that_hangs_is_killed_with_its_children() {
        let started = Instant::now();
        let check = shell("sleep 60 & sleep 60", 200);
        assert!(check.has_hung && check.status == Status::Bad, "{check:?}");
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn an_end_without_a_word_is_bad() {
        let killed = shell("kill -ABRT $$", 5_000);
        assert_eq!((killed.status, killed.get("signal")), (Status::Bad, 6.0));
        assert_eq!(shell("exit 3", 5_000).text, "ended without a word, exit code 3");
    }
}
