//! Who ended the program: what is known of a signal that it died by.
//!
//! The kernel reports to a parent which signal it was, not who sent it. What went through roctop is known, and so are the
//! kernel's own kills when memory ran out; anything else came from elsewhere, which is said too.

use crate::item::Exit;
use crate::units;

/// What was seen while the program ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Signals that came to roctop and were passed on: which, and from whom in words.
    pub came: Vec<(i32, String)>,
    /// Signals that roctop's user sent from the screen.
    pub sent: Vec<i32>,
    /// Processes of this control group that the kernel killed meanwhile because memory ran out.
    pub starved: u64,
}

/// Signals that a program brings upon itself: faults, its timers, its limits.
const OWN: [i32; 13] = [4, 5, 6, 7, 8, 11, 13, 14, 24, 25, 26, 27, 31];

/// Who sent the signal that ended the program; none when no signal did, or the program did it to itself.
pub fn sentence(exit: Exit, seen: &Seen) -> Option<String> {
    let Exit::Signal(number) = exit else { return None };
    let name = match units::signal_name(number) {
        "" => format!("signal {number}"),
        name => name.to_owned(),
    };
    if seen.sent.contains(&number) {
        return Some(format!("{name} was sent by roctop, from its screen"));
    }
    if let Some((_, who)) = seen.came.iter().rev().find(|came| came.0 == number) {
        return Some(format!("{name} came from {who}; roctop passed it on"));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_a_sender_when_it_is_known() {
        let seen = Seen {
            came: vec![(15, "process 7 (slurmstepd)".into())],
            sent: vec![2],
            starved: 0,
        };
        let said = |number| sentence(Exit::Signal(number), &seen).unwrap_or_default();
        assert_eq!(
            said(15),
            "SIGTERM came from process 7 (slurmstepd); roctop passed it on"
        );
        assert_eq!(said(2), "SIGINT was sent by roctop, from its screen");
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
