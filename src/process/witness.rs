//! A witness of signals: a small process of roctop beside the program. What is sent to all processes of the group, or of a
//! step or service one by one, reaches the witness too; what is sent to roctop alone does not.
//!
//! So roctop knows whether the program has a signal already. The Linux kernel signals the youngest process of a group first:
//! when roctop gets the group's signal, it waits at the witness.

use anyhow::{Context, Result};
use roctop_signals::{Caught, Signals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// First argument that makes roctop the witness.
const WITNESS: &str = "__witness";
/// Second argument: it has a session, as the program has.
const IN_SESSION: &str = "session";
/// Its name among the processes: `pkill roctop` is meant for roctop.
const NAME: &str = "signal-witness";

/// How long an answer may take: a watchdog.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Marks the end of an answer: the witness has written all signals that had reached it.
const ANSWER: Caught = Caught {
    signal: 0,
    code: 0,
    sender: 0,
    value: 0,
};

/// The witness, as roctop sees it. It ends with this value, or with roctop.
pub(super) struct Witness {
    child: Child,
    ask: ChildStdin,
    answers: ChildStdout,
    bytes: Vec<u8>,
}

impl Witness {
    /// Starts one in roctop's process group, or with a separate session, and waits until it catches signals.
    pub(super) fn start(in_session: bool) -> Result<Self> {
        let own = std::env::current_exe().context("cannot find roctop's own file")?;
        let mut command = Command::new(own);
        command.arg0(NAME).arg(WITNESS);
        // A library of the user's may write to its standard output, which carries the answers.
        command.env_remove("LD_PRELOAD");
        if in_session {
            command.arg(IN_SESSION);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = roctop_signals::spawn(&mut command).context("cannot start a process")?;
        let (ask, answers) = child.stdin.take().zip(child.stdout.take()).context("it has no pipes")?;
        let mut witness = Self {
            child,
            ask,
            answers,
            bytes: Vec::new(),
        };
        witness.heard().context("it gives no answer")?;
        Ok(witness)
    }

    /// Signals that have reached it since the last call; `None` if it has ended.
    pub(super) fn heard(&mut self) -> Option<Vec<Caught>> {
        self.ask.write_all(&[0]).ok()?;
        let asked = Instant::now();
        let mut heard = Vec::new();
        loop {
            let left = ANSWER_LIMIT.checked_sub(asked.elapsed())?;
            let left = Timespec::try_from(left).ok()?;
            // An interruption is a signal to roctop, which waits in its own pipe.
            let _ = poll(&mut [PollFd::new(&self.answers, PollFlags::IN)], Some(&left));
            let mut part = [0; 4096];
            let has_some = poll(
                &mut [PollFd::new(&self.answers, PollFlags::IN)],
                Some(&Timespec::default()),
            );
            if has_some.is_ok_and(|ready| ready > 0) {
                match self.answers.read(&mut part) {
                    Ok(count @ 1..) => self.bytes.extend_from_slice(&part[..count]),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    _ => return None,
                }
            }
            heard.extend(Caught::take_all(&mut self.bytes));
            if heard.last() == Some(&ANSWER) {
                heard.retain(|caught| *caught != ANSWER);
                return Some(heard);
            }
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The words after the witness's first argument, from the process's own.
pub fn arguments() -> Option<Vec<std::ffi::OsString>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == OsStr::new(WITNESS)).then(|| words.collect())
}

/// Runs the witness; returns its exit code.
pub fn run(words: &[std::ffi::OsString]) -> u8 {
    let _ = std::fs::write("/proc/self/comm", NAME);
    if words.first().is_some_and(|word| word == IN_SESSION) {
        let _ = rustix::process::setsid();
    }
    let Ok(mut signals) = Signals::catch(super::supervise::is_the_programs) else {
        return 1;
    };
    let (mut ask, mut answers) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut question = [0];
    loop {
        // A signal that came before the question is caught before the question is read.
        match ask.read(&mut question) {
            Ok(1) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            _ => return 0,
        }
        let heard = signals.read().into_iter().chain([ANSWER]);
        let bytes: Vec<u8> = heard.flat_map(Caught::to_bytes).collect();
        if answers.write_all(&bytes).and_then(|()| answers.flush()).is_err() {
            return 0;
        }
    }
}
