//! The hot path makes no system call, no allocation, takes no lock and faults no page.

use crate::place::{TestDir, out, shipped};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Output;

struct Quiet {
    place: TestDir,
    program: PathBuf,
}

impl Quiet {
    fn new() -> Option<Self> {
        let place = TestDir::new()?;
        let link = place.fake_hip();
        let link: Vec<&str> = link.iter().map(String::as_str).collect();
        let program = place.compile(
            "quiet",
            "quiet",
            &[&link[..], &["-rdynamic", "-pthread", "-ldl"]].concat(),
        );
        Some(Self { place, program })
    }

    /// None when this kernel lets nobody filter system calls.
    fn run(&self, breaks: &[&str]) -> Option<Output> {
        let mut command = self.place.traced(&self.program);
        let output = command.env("LD_PRELOAD", shipped()).args(breaks).output().unwrap();
        if output.status.code() == Some(77) {
            eprintln!("skipped: needs seccomp");
            return None;
        }
        Some(output)
    }
}

#[test]
fn traced_calls_make_no_system_call_allocation_or_page_fault() {
    let Some(quiet) = Quiet::new() else { return };
    let Some(output) = quiet.run(&[]) else { return };
    assert!(output.status.success(), "{}", output.status);
    let text = out(&output);
    let faults: Vec<i64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(faults.len(), 3, "{text}");
    // The system may take a page away at any time; what the path itself did would be in every round.
    assert_eq!(faults.iter().min(), Some(&0), "page faults by round: {faults:?}");
    let written: u64 = quiet
        .place
        .rings()
        .iter()
        .flat_map(|ring| &ring.accounts)
        .map(|(_, account)| account.written)
        .sum();
    assert!(written > 1_000_000, "{written}");
}

#[test]
fn what_breaks_the_rule_is_caught() {
    let Some(quiet) = Quiet::new() else { return };
    for (what, signal) in [
        ("syscall", libc::SIGSYS),
        ("heap", libc::SIGILL),
        ("lock", libc::SIGILL),
    ] {
        let Some(output) = quiet.run(&[what]) else { return };
        assert_eq!(output.status.signal(), Some(signal), "{what}");
    }
}
