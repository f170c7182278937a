//! Waits for the program and passes signals on, at the viewer's edge.

use crate::item::Exit;
use crate::process::exit_cause;
use crate::process::launch::NotStarted;
use crate::waker;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// A way of ending as the items say it.
pub fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

/// Set once TERM, HUP, INT or QUIT asks this process to end: from now on these end it only by way of the loop that looks
/// here, so that it can leave the terminal as it was. That, and another size of the terminal, wakes the screen.
pub fn end_requested() -> Result<Arc<AtomicBool>> {
    let requested = Arc::new(AtomicBool::new(false));
    let (ready, is_ready) = std::sync::mpsc::channel();
    let flag = requested.clone();
    let listen = async move || -> Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut quit = signal(SignalKind::quit())?;
        let mut resize = signal(SignalKind::window_change())?;
        let _ = ready.send(());
        loop {
            let is_end = tokio::select! {
                _ = terminate.recv() => true,
                _ = hang_up.recv() => true,
                _ = interrupt.recv() => true,
                _ = quit.recv() => true,
                _ = resize.recv() => false,
            };
            flag.fetch_or(is_end, Ordering::Relaxed);
            waker::wake();
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // It ends with this process.
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || runtime.block_on(listen()))?;
    is_ready.recv().context("signals cannot be watched")?;
    Ok(requested)
}

/// Where the program's terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// It has a separate one, or none.
    Own,
    /// It is roctop's, if that has one.
    Shared,
}

/// Starts the program and waits until it has ended. `started` gets its process id, `on_signal` each signal
/// and who sent it, in words; if it returns true, the signal was meant for roctop and is not passed on.
///
/// Signals that were meant for the program go to it: TERM, HUP, USR1, USR2. INT and QUIT come from the terminal,
/// which sends them to the program as well; they are passed on when there is no terminal, or when the program has one of
/// its own.
pub fn run_to_end(
    command: std::process::Command,
    terminal: Terminal,
    started: impl FnOnce(u32),
    mut on_signal: impl FnMut(Signal, &str) -> bool,
) -> Result<ExitStatus> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut user1 = signal(SignalKind::user_defined1())?;
        let mut user2 = signal(SignalKind::user_defined2())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut quit = signal(SignalKind::quit())?;
        // Says who sent a signal, in the same moment as the above say that it came.
        let mut origins = SignalsInfo::<WithOrigin>::new([1, 2, 3, 10, 12, 15])?;
        let shares_terminal = terminal == Terminal::Shared && std::fs::File::open("/dev/tty").is_ok();
        let name = command.get_program().to_owned();
        let child = tokio::process::Command::from(command).spawn();
        let mut child = child.map_err(|error| NotStarted::refused(&name, &error))?;
        let pid = child.id().unwrap_or(0);
        started(pid);
        loop {
            let (signal, from_terminal) = tokio::select! {
                status = child.wait() => return Ok(status?),
                _ = terminate.recv() => (Signal::TERM, false),
                _ = hang_up.recv() => (Signal::HUP, false),
                _ = user1.recv() => (Signal::USR1, false),
                _ = user2.recv() => (Signal::USR2, false),
                _ = interrupt.recv() => (Signal::INT, true),
                _ = quit.recv() => (Signal::QUIT, true),
            };
            let of_it = origins
                .pending()
                .filter(|origin| origin.signal == signal.as_raw())
                .last();
            let sender = of_it
                .and_then(|origin| origin.process)
                .filter(|process| process.pid > 0);
            let is_own = on_signal(
                signal,
                &sender.map_or_else(
                    || "the terminal or the kernel".into(),
                    |sender| exit_cause::process(sender.pid),
                ),
            );
            let has_it = is_own || (from_terminal && shares_terminal);
            if !has_it && let Some(pid) = Pid::from_raw(pid as i32) {
                // The program may have ended just now: then nobody is left to signal.
                let _ = kill_process(pid, signal);
            }
        }
    })
}
