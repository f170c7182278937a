//! Who ended the program: what is known of a signal that it died by.
//!
//! The kernel reports to a parent which signal it was, not who sent it. What went through roctop is known, and so are the
//! kernel's own kills when memory ran out; anything else came from elsewhere, which is said too.

use crate::item::Exit;
use crate::units;

/// Why roctop sent the program a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// It came to roctop from this sender, in words.
    Passed(String),
    /// This sender, in words, sent it to roctop and to the program.
    Both(String),
    /// The user sent it, or quit, on the screen.
    Screen,
    /// Another signal asked roctop itself to end: which, and from whom in words.
    Ending(i32, String),
    /// The program had not ended this long, ns, after this signal, which was sent for the reason in words.
    Unheeded(i32, String, u64),
}

/// What was seen while the program ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Signals that roctop sent the program, in order, and why.
    pub sent: Vec<(i32, Sender)>,
    /// Processes of this control group that the kernel killed meanwhile because memory ran out.
    pub starved: u64,
}

impl Seen {
    /// Why roctop sent this signal the last time; none if it did not.
    pub fn sentence(&self, number: i32) -> Option<String> {
        let (_, sender) = self.sent.iter().rev().find(|sent| sent.0 == number)?;
        let name = name(number);
        Some(match sender {
            Sender::Passed(who) => format!("{name} came from {who}; roctop passed it on"),
            Sender::Both(who) => format!("{name} came from {who}, which sent it to roctop and to the program"),
            Sender::Screen => format!("{name} was sent by roctop, from its screen"),
            Sender::Ending(asked, who) => {
                let asked = self::name(*asked);
                format!("{name} was sent by roctop, which had to end: {asked} came from {who}")
            }
            Sender::Unheeded(asked, why, after) => {
                let (asked, after) = (self::name(*asked), units::duration(*after));
                format!("{name} was sent by roctop, because the program did not end within {after} of {asked} ({why})")
            }
        })
    }
}

fn name(number: i32) -> String {
    match units::signal_name(number) {
        "" => format!("signal {number}"),
        name => name.to_owned(),
    }
}

/// Signals that a program brings upon itself: faults, its timers, its limits.
const OWN: [i32; 13] = [4, 5, 6, 7, 8, 11, 13, 14, 24, 25, 26, 27, 31];

/// Who sent the signal that ended the program; none when no signal did, or the program did it to itself.
pub fn sentence(exit: Exit, seen: &Seen) -> Option<String> {
    let Exit::Signal(number) = exit else { return None };
    if let Some(sent) = seen.sentence(number) {
        return Some(sent);
    }
    let name = name(number);
    if number == 9 && seen.starved > 0 {
        return Some("the kernel killed it because memory ran out (oom_kill of its control group)".into());
    }
    (!OWN.contains(&number))
        .then(|| format!("{name} was not sent by roctop, nor did it come through it: somebody sent it"))
}

/// How many processes of our control group the kernel has killed because memory ran out; 0 where that is unknown.
pub fn starved() -> u64 {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
    let events = std::fs::read_to_string(format!("/sys/fs/cgroup/{group}/memory.events")).unwrap_or_default();
    let mut counts = events.lines().filter_map(|line| line.strip_prefix("oom_kill "));
    counts.next().and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// A process in words: its id and name.
pub fn process(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| !c.is_control()).collect();
    if name.is_empty() {
        format!("process {pid}")
    } else {
        format!("process {pid} ({name})")
    }
}

/// Whether a thread of a process runs, or would run if a CPU were free.
pub(super) fn is_running(pid: i32) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    // The name before the state may contain anything.
    let is_running = |stat: &str| {
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('R'))
    };
    tasks
        .flatten()
        .any(|task| std::fs::read_to_string(task.path().join("stat")).is_ok_and(|stat| is_running(&stat)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_a_sender_when_it_is_known() {
        let seen = Seen {
            sent: vec![
                (15, Sender::Screen),
                (15, Sender::Passed("process 7 (slurmstepd)".into())),
                (2, Sender::Screen),
                (10, Sender::Both("process 7 (timeout)".into())),
            ],
            starved: 0,
        };
        let said = |number| sentence(Exit::Signal(number), &seen).unwrap_or_default();
        assert_eq!(
            said(15),
            "SIGTERM came from process 7 (slurmstepd); roctop passed it on"
        );
        assert_eq!(said(2), "SIGINT was sent by roctop, from its screen");
        assert_eq!(
            said(10),
            "SIGUSR1 came from process 7 (timeout), which sent it to roctop and to the program"
        );
        assert_eq!(
            said(9),
            "SIGKILL was not sent by roctop, nor did it come through it: somebody sent it"
        );
        assert_eq!(
            said(40),
            "signal 40 was not sent by roctop, nor did it come through it: somebody sent it"
        );
        assert_eq!(said(11), "", "the program did that to itself");
        assert_eq!(said(25), "", "its own file grew too large");
        assert_eq!(sentence(Exit::Code(1), &seen), None);
        let hung_up = Seen {
            sent: vec![
                (15, Sender::Ending(1, "process 8 (sshd)".into())),
                (9, Sender::Unheeded(15, "for a reason".into(), 10_000_000_000)),
            ],
            starved: 0,
        };
        assert_eq!(
            sentence(Exit::Signal(15), &hung_up).as_deref(),
            Some("SIGTERM was sent by roctop, which had to end: SIGHUP came from process 8 (sshd)")
        );
        assert_eq!(
            sentence(Exit::Signal(9), &hung_up).as_deref(),
            Some("SIGKILL was sent by roctop, because the program did not end within 10.0 s of SIGTERM (for a reason)")
        );
        let seen = Seen {
            starved: 1,
            ..Seen::default()
        };
        assert!(
            sentence(Exit::Signal(9), &seen)
                .unwrap_or_default()
                .contains("memory ran out")
        );
    }
}
