//! A session that another roctop runs, or none any more, on this screen.

use super::appearance::{WithinMemory, appearance, open_terminal};
use super::effects::{EffectRunner, Source};
use super::named;
use crate::cli::{Attach, OnExit};
use crate::item::{Exit, Nanos};
use crate::live::ingest::{Gauging, Ingest, Symbols};
use crate::live::pty_keeper;
use crate::live::run::{say, sum_up};
use crate::model::{Mode, Options};
use crate::process::supervise::end_requested;
use crate::recording::{Merged, Recording};
use crate::session::{Live, SessionDir, alive, recording_of, sessions};
use crate::ui::run::{Detached, Settings};
use crate::ui::screen::Screen;
use crate::ui::{self, Effect, LoopControl};
use crate::units;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Shows a session that another roctop runs. Its program and its rings are left alone.
pub fn attach(session: &Path, options: &Attach) -> Result<()> {
    attach_from(session, options, None)
}

/// As [`attach`]; `back` is what the screen is of, if it was opened from a job's screen.
pub(super) fn attach_from(session: &Path, options: &Attach, back: Option<String>) -> Result<()> {
    let screen_look = appearance(&options.look)?;
    // What its roctop writes there at the end can be read when the session is gone.
    let control = SessionDir::open(session)?;
    let tty = open_terminal()?;
    let store = screen_look.store(Options {
        mode: Mode::Live,
        began: control.began(),
        origin: control.origin().or_else(|| origin_of_recording(session)),
        ..Options::default()
    });
    let gauging = Gauging::rate(options.gauges.gauge_rate);
    let ingest = Ingest::start(
        Live::late(session).watched(),
        Some(store.clone()),
        None,
        &gauging,
        Symbols::Shown,
    )?;
    let end_requested = end_requested()?;
    pty_keeper::follow(session, ingest.sender());
    let screen = Screen::open(tty, screen_look.theme, screen_look.options)?;
    let mut runner = EffectRunner::new(
        Source::Session(session.to_owned(), command_of(session)),
        screen_look.depth,
        gauging,
    );
    let settings = Settings {
        detached: Detached {
            attached: true,
            output: Some("the roctop that started it".into()),
            back,
            ..Detached::default()
        },
        ..screen_look.settings
    };
    let (sender, mut end) = (ingest.sender(), End::default());
    let shown = ui::run::run_with(
        screen,
        settings,
        None,
        &WithinMemory(&store),
        &mut |effect| match effect {
            Effect::Quit | Effect::Detach => LoopControl::Stop,
            Effect::Interrupt => signal_all(session, Signal::INT),
            Effect::Signal(number) => named(number, |signal| signal_all(session, signal)),
            Effect::StopApp => {
                signal_all(session, Signal::TERM);
                LoopControl::Stop
            }
            Effect::Idle if end_requested.load(Ordering::Relaxed) => LoopControl::Stop,
            Effect::Idle if end.comes(session, &control) => {
                if let Some((pid, exit)) = end.exit {
                    sender.exited(pid, exit);
                }
                if options.on_exit == OnExit::Stay {
                    // Said before the store has the end: `q` asks no more.
                    LoopControl::ExitCause(end.sentence())
                } else {
                    LoopControl::Stop
                }
            }
            other => runner.act(other),
        },
    );
    // The session may have gone with its roctop: that is an end like any other.
    let read = if end.is_over {
        ingest.stop()
    } else {
        ingest.leave();
        Ok(())
    };
    if let Ok(Some(said)) = runner.finish() {
        say(&said);
    }
    let left = shown.context("the terminal failed")?;
    if end.is_over && options.on_exit != OnExit::Stay {
        say(&end.sentence());
    }
    if end.is_over && options.on_exit == OnExit::Summary {
        sum_up(&store, left.ui.filter.clone());
    }
    if session.exists() { read } else { Ok(()) }
}

/// From when the recording of a session counts times; its roctop has no screen that would.
fn origin_of_recording(session: &Path) -> Option<Nanos> {
    let recording = Recording::open(&recording_of(session)?).ok()?;
    Merged::new(vec![&recording]).ok()?.beginning().ok()?
}

/// The end of the program, as another viewer sees it.
#[derive(Default)]
struct End {
    is_over: bool,
    exit: Option<(u32, Exit)>,
}

impl End {
    /// True once: when the program has ended, or its session is gone.
    fn comes(&mut self, session: &Path, control: &SessionDir) -> bool {
        if self.is_over {
            return false;
        }
        // In this order: the end is noted before the session goes.
        let is_gone = !session.exists();
        self.exit = control.end();
        self.is_over = is_gone || self.exit.is_some();
        self.is_over
    }

    fn sentence(&self) -> String {
        match self.exit {
            Some((pid, exit)) => format!("the program has ended: process {pid}, {}", units::exit(exit)),
            None => "the session is over: its last program has ended".into(),
        }
    }
}

/// A signal for all programs of a session that another roctop runs, or none any more.
fn signal_all(session: &Path, signal: Signal) -> LoopControl {
    let pids = alive(session);
    let mut failed = None;
    for pid in pids.iter().filter_map(|&pid| Pid::from_raw(pid as i32)) {
        failed = kill_process(pid, signal).err().or(failed);
    }
    match failed {
        _ if pids.is_empty() => {
            LoopControl::Say("no program of this session is known that could be sent a signal".into())
        }
        None => LoopControl::Continue,
        Some(error) => LoopControl::Say(format!("the signal could not be sent: {error}")),
    }
}

/// The words of the first program of a session.
fn command_of(session: &Path) -> Vec<String> {
    let all = sessions().into_iter().find(|known| known.path == session);
    let first = all.and_then(|known| known.processes.into_iter().next());
    first.map_or_else(Vec::new, |(_, command)| command.split(' ').map(Into::into).collect())
}
