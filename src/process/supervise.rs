//! Waits for the program and passes signals on, at the viewer's edge.

use crate::item::Exit;
use crate::process::exit_cause;
use crate::process::launch::NotStarted;
use crate::process::orphans::Orphans;
use crate::process::witness::Witness;
use crate::waker;
use anyhow::{Context, Result};
use roctop_signals::{Caught, Signals, is_ignored};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use std::collections::VecDeque;
use std::io::PipeReader;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long roctop waits for the sender of a signal to send it to the program, too.
const TO_BOTH: Duration = Duration::from_millis(100);
/// How long roctop waits for a sender that is still running: on a busy machine, another process may interrupt it
/// between the two.
const TO_BOTH_AT_MOST: Duration = Duration::from_secs(2);
/// How soon roctop looks at a running sender again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long a signal counts that the witness has got and roctop has not.
const UNSEEN: Duration = Duration::from_secs(TO_BOTH_AT_MOST.as_secs() + 1);

const HUP: i32 = Signal::HUP.as_raw();
const INT: i32 = Signal::INT.as_raw();
const QUIT: i32 = Signal::QUIT.as_raw();
const CONT: i32 = Signal::CONT.as_raw();
const CHILD: i32 = Signal::CHILD.as_raw();
const WINCH: i32 = Signal::WINCH.as_raw();
/// The first real-time signal; each of these counts.
const FIRST_QUEUED: i32 = 32;

/// A way of ending as the items say it.
pub fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

/// Signals that go to the program: all that can be caught, but those that are about roctop's own children and window.
pub(super) fn is_the_programs(signal: i32) -> bool {
    let kept = [Signal::KILL, Signal::STOP, Signal::CHILD, Signal::WINCH];
    !kept.map(Signal::as_raw).contains(&signal)
}

/// Signals by which users and schedulers ask a program to end.
pub const ENDS: [i32; 4] = [HUP, INT, QUIT, Signal::TERM.as_raw()];
/// Signals of the terminal that stop processes.
const STOPS: [i32; 3] = [Signal::TSTP.as_raw(), Signal::TTIN.as_raw(), Signal::TTOU.as_raw()];

fn is_job_control(signal: i32) -> bool {
    STOPS.contains(&signal) || signal == CONT
}

/// True if it is sent on purpose, not by the Linux kernel for what roctop did itself: a fault, a limit, a closed pipe.
fn is_sent(caught: &Caught) -> bool {
    if caught.is_from_a_process() {
        return caught.sender != std::process::id() as i32;
    }
    [HUP, INT, QUIT].contains(&caught.signal) || is_job_control(caught.signal)
}

/// Set once a signal asks this process to end: from now on these end it only by way of the loop that looks
/// here, so that it can leave the terminal as it was. That, and another size of the terminal, wakes the screen.
///
/// For viewers of what others started: no signal goes to the program.
pub fn end_requested() -> Result<Arc<AtomicBool>> {
    static REQUESTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(requested) = REQUESTED.get() {
        return Ok(requested.clone());
    }
    let requested = Arc::new(AtomicBool::new(false));
    let is_end = |signal| is_the_programs(signal) && !is_job_control(signal) && !is_ignored(signal);
    let is_wanted = |signal| signal == WINCH || is_end(signal);
    let mut signals = Signals::catch(is_wanted).context("signals cannot be watched")?;
    let flag = requested.clone();
    // It ends with this process.
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            loop {
                let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], None);
                note_requests(&mut signals, &flag);
            }
        })
        .context("signals cannot be watched")?;
    Ok(REQUESTED.get_or_init(|| requested).clone())
}

/// Reads signals that are for roctop itself.
fn note_requests(signals: &mut Signals, requested: &AtomicBool) {
    let caught = signals.read();
    let is_end = |signal| is_the_programs(signal) && !is_job_control(signal);
    let asks = |caught: &Caught| is_end(caught.signal) && is_sent(caught);
    requested.fetch_or(caught.iter().any(asks), Ordering::Relaxed);
    waker::wake();
}

/// Notes signals that ask roctop to end, once the program has ended and until `over` is closed.
pub fn note_requests_until(over: &PipeReader, mut signals: Signals, requested: &AtomicBool) {
    loop {
        let mut fds = [PollFd::new(&signals, PollFlags::IN), PollFd::new(over, PollFlags::IN)];
        let _ = poll(&mut fds, None);
        if !fds[1].revents().is_empty() {
            return;
        }
        note_requests(&mut signals, requested);
    }
}

/// Where the program's terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// It has a separate one, or none.
    Own,
    /// It is roctop's, if that has one.
    Shared,
}

/// What happens to a signal to roctop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It has arrived. The answer true keeps it from the program.
    Arrived,
    /// It went to the program.
    PassedOn,
    /// Its sender has sent it to the program as well.
    SentToBoth,
}

/// Starts the program and waits until it has ended. `started` gets its process id; `on_signal` each signal,
/// who sent it, in words, and what becomes of it.
///
/// A signal that is sent to roctop alone goes to the program, once. One that is sent to both, because they are in
/// one group, step or service, the program has already: a [`Witness`] has it too then. Until the signals are dropped that are
/// returned, none ends roctop.
pub fn run_to_end(
    mut command: Command,
    terminal: Terminal,
    started: impl FnOnce(u32),
    on_signal: impl FnMut(i32, &str, Step) -> bool,
) -> Result<(ExitStatus, Signals)> {
    let is_shared = terminal == Terminal::Shared;
    // Under a screen, the program is no part of roctop's job, and roctop follows the window.
    let is_wanted = |signal| match signal {
        CHILD => true,
        WINCH => !is_shared,
        _ => is_the_programs(signal) && (is_shared || !is_job_control(signal)),
    };
    let mut signals = Signals::catch(is_wanted).context("signals cannot be watched")?;
    // Without one, the program gets some signals twice.
    let witness = Witness::start(!is_shared).ok();
    // These come from before the program, which did not get them.
    let early = signals.read();
    let name = command.get_program().to_owned();
    // From its first moment on, the program may leave processes without a parent.
    let mut orphans = (std::process::id() == 1).then(Orphans::default);
    let mut child = roctop_signals::spawn(&mut command).map_err(|error| NotStarted::refused(&name, &error))?;
    if let Some(orphans) = &mut orphans {
        orphans.leave(child.id());
    }
    started(child.id());
    let mut passing = Passing {
        pid: child.id() as i32,
        is_shared,
        is_asked_to_stop: false,
        witness,
        waiting: VecDeque::new(),
        seen: Seen::default(),
        on_signal,
    };
    for caught in early {
        passing.arrived(caught, Instant::now(), true);
    }
    let status = passing.until_end(&mut child, &mut signals, orphans.as_ref())?;
    Ok((status, signals))
}

/// A signal of which roctop does not know yet whether the program has it.
struct Waiting {
    at: Instant,
    caught: Caught,
    sender: String,
}

impl Waiting {
    /// Whether its sender has had the time to signal the program, too.
    fn is_due(&self, now: Instant) -> bool {
        let waited = now.saturating_duration_since(self.at);
        waited >= TO_BOTH_AT_MOST || (waited >= TO_BOTH && !exit_cause::is_running(self.caught.sender))
    }
}

/// Passes signals on to a program.
struct Passing<F> {
    pid: i32,
    is_shared: bool,
    is_asked_to_stop: bool,
    witness: Option<Witness>,
    waiting: VecDeque<Waiting>,
    seen: Seen,
    on_signal: F,
}

impl<F: FnMut(i32, &str, Step) -> bool> Passing<F> {
    fn until_end(&mut self, child: &mut Child, signals: &mut Signals, orphans: Option<&Orphans>) -> Result<ExitStatus> {
        loop {
            for caught in signals.read() {
                self.arrived(caught, Instant::now(), false);
            }
            if let Some(orphans) = orphans {
                orphans.reap();
            }
            if let Some(status) = child.try_wait()? {
                self.decide(Instant::now(), true);
                return Ok(status);
            }
            self.stop_with_the_program();
            let now = Instant::now();
            self.decide(now, false);
            let left = self
                .waiting
                .front()
                .map(|first| TO_BOTH.saturating_sub(now - first.at).max(LOOK_AGAIN));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], left.as_ref());
        }
    }

    /// Stops when the terminal's signals have stopped the program, so that the shell sees what it sees without roctop.
    fn stop_with_the_program(&mut self) {
        let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_shared) else {
            return;
        };
        let stopped = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        let by = stopped.ok().flatten().and_then(|status| status.stopping_signal());
        // A program may answer these with SIGSTOP to itself; other stops are somebody's who also continues it.
        let Some(by) = by.filter(|by| STOPS.contains(by) || self.is_asked_to_stop) else {
            return;
        };
        self.is_asked_to_stop = false;
        roctop_signals::stop_by(by);
    }

    fn arrived(&mut self, caught: Caught, at: Instant, is_early: bool) {
        if caught.signal == WINCH {
            waker::wake();
        }
        if !is_the_programs(caught.signal) || !is_sent(&caught) {
            return;
        }
        self.is_asked_to_stop |= STOPS.contains(&caught.signal);
        let sender = match caught.sender {
            0 => "the terminal or the kernel".into(),
            pid => exit_cause::process(pid),
        };
        if (self.on_signal)(caught.signal, &sender, Step::Arrived) {
            return;
        }
        if is_early {
            self.pass_on(&caught, &sender);
        } else {
            self.waiting.push_back(Waiting { at, caught, sender });
        }
    }

    /// Passes on what the program does not have. At its end, all that remains is decided, and nothing is passed on.
    fn decide(&mut self, now: Instant, is_end: bool) {
        let is_due = |waiting: &Waiting| is_end || waiting.is_due(now);
        if !self.waiting.front().is_some_and(is_due) {
            return;
        }
        if let Some(witness) = &mut self.witness {
            match witness.heard() {
                Some(heard) => self.seen.add(Instant::now(), heard),
                // It is gone.
                None => self.witness = None,
            }
        }
        while self.waiting.front().is_some_and(is_due) {
            let Some(Waiting { at, caught, sender }) = self.waiting.pop_front() else {
                return;
            };
            let has_it = match self.witness {
                Some(_) => self.seen.has(at, &caught),
                None => self.is_shared && !caught.is_from_a_process(),
            };
            if has_it {
                (self.on_signal)(caught.signal, &sender, Step::SentToBoth);
            } else if !is_end {
                self.pass_on(&caught, &sender);
            }
        }
    }

    fn pass_on(&mut self, caught: &Caught, sender: &str) {
        // The program may have ended just now: then nobody is left to signal.
        let _ = caught.pass_on(self.pid);
        (self.on_signal)(caught.signal, sender, Step::PassedOn);
    }
}

/// Signals that the witness has got.
#[derive(Default)]
struct Seen {
    /// Signals that are not matched with one to roctop yet.
    heard: Vec<(Instant, Caught)>,
    /// Signals to roctop that the witness had too: when they came.
    both: Vec<(Instant, Caught)>,
}

impl Seen {
    fn add(&mut self, now: Instant, heard: Vec<Caught>) {
        let is_new = |at: Instant| now.saturating_duration_since(at) <= UNSEEN;
        self.heard.retain(|(at, _)| is_new(*at));
        self.both.retain(|(at, _)| is_new(*at));
        self.heard.extend(heard.into_iter().map(|caught| (now, caught)));
    }

    /// Whether the program has a signal that came to roctop at this time. A real-time signal is matched with one of the
    /// witness. Others coalesce: one of the witness stands for several that the same sender sent in a short time.
    fn has(&mut self, at: Instant, caught: &Caught) -> bool {
        let is_same = |other: &Caught| other.signal == caught.signal && other.sender == caught.sender;
        if let Some(index) = self.heard.iter().position(|(_, heard)| is_same(heard)) {
            self.heard.remove(index);
            self.both.push((at, *caught));
            return true;
        }
        let is_close = |earlier: Instant| at.saturating_duration_since(earlier) <= TO_BOTH;
        caught.signal < FIRST_QUEUED && self.both.iter().any(|(at, both)| is_close(*at) && is_same(both))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USR1: i32 = Signal::USR1.as_raw();

    fn by(signal: i32, sender: i32) -> Caught {
        Caught {
            signal,
            code: 0,
            sender,
            value: 0,
        }
    }

    #[test]
    fn a_signal_that_the_witness_has_is_the_programs_already() {
        let (start, mut seen) = (Instant::now(), Seen::default());
        let at = |ms| start + Duration::from_millis(ms);
        // To roctop alone.
        assert!(!seen.has(at(0), &by(USR1, 7)));
        // To the group.
        seen.add(at(1100), vec![by(USR1, 7)]);
        assert!(!seen.has(at(1000), &by(USR1, 8)), "another sender");
        assert!(!seen.has(at(1000), &by(INT, 7)), "another signal");
        assert!(seen.has(at(1000), &by(USR1, 7)));
        // timeout(1) signals its child and then the group: the program has one, as without roctop.
        assert!(seen.has(at(1001), &by(USR1, 7)));
        // Later, to roctop alone again.
        assert!(!seen.has(at(1200), &by(USR1, 7)));
    }

    #[test]
    fn real_time_signals_are_matched_one_by_one() {
        let (now, mut seen) = (Instant::now(), Seen::default());
        seen.add(now, vec![by(40, 7), by(40, 7)]);
        let has: Vec<bool> = (0..3).map(|_| seen.has(now, &by(40, 7))).collect();
        assert_eq!(has, [true, true, false]);
    }

    #[test]
    fn what_the_witness_got_long_ago_counts_no_more() {
        let (start, mut seen) = (Instant::now(), Seen::default());
        seen.add(start, vec![by(USR1, 7), by(USR1, 7)]);
        assert!(seen.has(start, &by(USR1, 7)));
        let later = start + UNSEEN + Duration::from_secs(1);
        seen.add(later, Vec::new());
        assert!(!seen.has(later, &by(USR1, 7)));
    }

    #[test]
    fn what_roctop_did_itself_is_not_the_programs() {
        let kernel = |signal| Caught {
            code: 0x80,
            ..by(signal, 0)
        };
        assert!(is_sent(&kernel(INT)) && is_sent(&kernel(HUP)));
        // A limit of processor time, a fault.
        assert!(!is_sent(&kernel(24)) && !is_sent(&kernel(11)));
        // A closed pipe.
        assert!(!is_sent(&by(13, std::process::id() as i32)) && is_sent(&by(13, 1)));
        assert!([24, 23, 40, CONT].into_iter().all(is_the_programs) && !is_the_programs(CHILD));
    }
}
