//! The program under a screen, as the threads around it see it: its terminal, its output, its end.

use crate::item::Exit;
use crate::live::ingest::IngestSender;
use crate::live::run::say;
use crate::process::exit_cause::{self, Seen, Sender};
use crate::process::supervise::{self, Step, Terminal};
use crate::ui::LoopControl;
use crate::waker;
use anyhow::Result;
use roctop_signals::is_ignored;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of the program's output that are kept for the terminal after the screen is gone.
const KEPT_OUTPUT: usize = 4 << 20;

/// Bytes that a terminal with room takes.
const TYPED_AT_ONCE: usize = 128;

/// The program as the threads around it see it.
#[derive(Default)]
pub(super) struct Watched {
    pub(super) pid: Option<u32>,
    pub(super) exit: Option<Result<Exit, String>>,
    /// What was seen of signals.
    pub(super) seen: Seen,
    /// Who ended the program, once that is known and until it is shown.
    pub(super) fate: Option<String>,
    /// Makes a recording on the side.
    pub(super) recorder: Option<IngestSender>,
    /// A signal asked roctop itself to end: which, and from whom in words.
    pub(super) leave: Option<(i32, String)>,
    /// The last of what the program wrote, until the screen is gone.
    pub(super) output: VecDeque<u8>,
    /// The screen is gone: output goes to the terminal at once.
    pub(super) is_passed_on: bool,
}

pub(super) type Shared = Arc<Mutex<Watched>>;

pub(super) fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, Watched> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads what the program writes, to its end.
///
/// Errors: there is no thread for it.
pub(super) fn read_output(mut master: File, shared: Shared, sender: IngestSender) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("output".into()).spawn(move || {
        let mut buffer = vec![0u8; 64 << 10];
        // The terminal gives an error when the last program that has it open is gone.
        while let Ok(count @ 1..) = master.read(&mut buffer) {
            let bytes = &buffer[..count];
            sender.output(bytes.to_vec());
            let mut watched = lock(&shared);
            if watched.is_passed_on {
                drop(watched);
                let _ = io::stdout().write_all(bytes).and_then(|()| io::stdout().flush());
                continue;
            }
            watched.output.extend(bytes);
            let excess = watched.output.len().saturating_sub(KEPT_OUTPUT);
            watched.output.drain(..excess);
        }
    })
}

/// Starts the program and waits for its end. After that, and until `over` is closed, it is noted when a signal asks roctop to end.
///
/// Errors: there is no thread for it.
pub(super) fn wait_for_end(
    command: std::process::Command,
    shared: Shared,
    sender: IngestSender,
    end_requested: Arc<AtomicBool>,
    over: PipeReader,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("program".into()).spawn(move || {
        let started = |pid| {
            lock(&shared).pid = Some(pid);
            sender.started(pid);
        };
        let on_signal = |signal: i32, who: &str, step: Step| {
            let sender = match step {
                Step::Arrived => return false,
                Step::PassedOn => Sender::Passed(who.to_owned()),
                Step::SentToBoth => Sender::Both(who.to_owned()),
            };
            let mut watched = lock(&shared);
            let is_end = signal == Signal::TERM.as_raw() || signal == Signal::HUP.as_raw();
            if is_end && !is_ignored(signal) {
                watched.leave.get_or_insert_with(|| (signal, who.to_owned()));
            }
            watched.seen.sent.push((signal, sender));
            waker::wake();
            false
        };
        let starved = exit_cause::starved();
        let ended = supervise::run_to_end(command, Terminal::Own, started, on_signal);
        let (exit, signals) = match ended {
            Ok((status, signals)) => (Ok(supervise::exit_of(status)), Some(signals)),
            Err(error) => (Err(format!("{error:#}")), None),
        };
        let pid = lock(&shared).pid;
        let also = lock(&shared).recorder.take();
        if let (Some(pid), Ok(exit)) = (pid, &exit) {
            sender.exited(pid, *exit);
            if let Some(recorder) = also {
                recorder.exited(pid, *exit);
            }
        }
        let mut watched = lock(&shared);
        watched.seen.starved = exit_cause::starved().saturating_sub(starved);
        watched.fate = exit
            .as_ref()
            .ok()
            .and_then(|exit| exit_cause::sentence(*exit, &watched.seen));
        watched.exit = Some(exit);
        drop(watched);
        waker::wake();
        if let Some(signals) = signals {
            supervise::note_requests_until(&over, signals, &end_requested);
        }
    })
}

/// Gives the program's terminal what was typed. A program that reads nothing must not stop the screen.
pub(super) fn type_to(mut master: &File, bytes: &[u8]) -> LoopControl {
    for part in bytes.chunks(TYPED_AT_ONCE) {
        let mut fds = [PollFd::new(master, PollFlags::OUT)];
        let now = rustix::event::Timespec::default();
        let has_room = poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::OUT);
        if !has_room {
            return LoopControl::Say("the program does not read what is typed".into());
        }
        if let Err(error) = master.write_all(part) {
            return LoopControl::Say(format!("the program's terminal is gone: {error}"));
        }
    }
    LoopControl::Continue
}

/// The program's terminal has the size of ours.
pub(super) fn follow_size(master: &File, size: &mut rustix::termios::Winsize) {
    let Ok(now) = File::open("/dev/tty").and_then(|tty| Ok(rustix::termios::tcgetwinsize(&tty)?)) else {
        return;
    };
    if (now.ws_row, now.ws_col) != (size.ws_row, size.ws_col) {
        *size = now;
        // A program without a pseudo-terminal does not mind.
        let _ = rustix::termios::tcsetwinsize(master, now);
    }
}

/// A signal from the user for the program and all that it started in its group.
pub(super) fn signal(shared: &Shared, signal: Signal) -> LoopControl {
    send(shared, signal, Sender::Screen)
}

/// A signal for the program and all that it started in its group.
fn send(shared: &Shared, signal: Signal, sender: Sender) -> LoopControl {
    let group = {
        let mut watched = lock(shared);
        if watched.exit.is_some() {
            None
        } else {
            watched.seen.sent.push((signal.as_raw(), sender));
            watched.pid.and_then(|pid| Pid::from_raw(pid as i32))
        }
    };
    match group.map(|group| kill_process_group(group, signal)) {
        Some(Ok(())) => LoopControl::Continue,
        Some(Err(error)) => LoopControl::Say(format!("the signal could not be sent: {error}")),
        None => LoopControl::Say("the program has ended".into()),
    }
}

/// What the program wrote while the screen was shown.
pub(super) fn show_output(shared: &Shared) {
    let mut watched = lock(shared);
    let bytes: Vec<u8> = std::mem::take(&mut watched.output).into();
    watched.is_passed_on = true;
    let mut out = io::stdout().lock();
    let _ = out.write_all(&bytes).and_then(|()| out.flush());
}

/// Asks the program to stop, and kills it when it does not: ns that it may take. A signal to roctop is the reason if there was
/// one, else the user is.
pub(super) fn stop(shared: &Shared, grace: u64) {
    let leave = lock(shared).leave.clone();
    match leave {
        None => send(shared, Signal::TERM, Sender::Screen),
        // The program has it.
        Some((number, _)) if number == Signal::TERM.as_raw() => LoopControl::Continue,
        Some((number, who)) => send(shared, Signal::TERM, Sender::Ending(number, who)),
    };
    let limit = grace;
    let (asked, grace) = (Instant::now(), Duration::from_nanos(grace));
    let mut shown = 0;
    while lock(shared).exit.is_none() {
        if asked.elapsed().as_secs() > shown {
            shown = asked.elapsed().as_secs();
            let left = grace.saturating_sub(asked.elapsed()).as_secs_f64();
            say(&format!("waiting for the program to end; SIGKILL in {left:.0} s"));
        }
        if asked.elapsed() > grace {
            say("the program did not stop when it was asked to; killing it");
            let number = Signal::TERM.as_raw();
            let why = lock(shared).seen.sentence(number).unwrap_or_default();
            send(shared, Signal::KILL, Sender::Unheeded(number, why, limit));
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
