//! A session that another roctop runs, or none any more, on this screen.

use super::appearance::{appearance, open_terminal};
use super::effects::{Desk, Source};
use super::named;
use crate::cli::{Attach, OnExit};
use crate::item::Exit;
use crate::live::ingest::{Gauging, Pump};
use crate::live::pty_keeper;
use crate::live::run::{sum_up, tell};
use crate::model::{Mode, Options};
use crate::process::supervise::told_to_end;
use crate::session::{Live, SessionDir, alive, sessions};
use crate::ui::run::{Away, Settings};
use crate::ui::screen::Screen;
use crate::ui::{self, Effect, Flow};
use crate::units;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Shows a session that another roctop runs. Its program and its rings are left alone.
pub fn attach(session: &Path, options: &Attach) -> Result<()> {
    let screen_look = appearance(&options.look)?;
    // What its roctop writes there at the end can be read when the session is gone.
    let control = SessionDir::open(session)?;
    let tty = open_terminal()?;
    let store = screen_look.store(Options {
        mode: Mode::Live,
        ..Options::default()
    });
    let gauging = Gauging::rate(options.gauges.gauge_rate);
    let pump = Pump::start(Live::late(session).watched(), Some(store.clone()), None, &gauging)?;
    let told = told_to_end()?;
    pty_keeper::follow(session, pump.sender());
    let screen = Screen::open(tty, screen_look.theme, screen_look.options)?;
    let mut desk = Desk::new(
        Source::Session(session.to_owned(), command_of(session)),
        screen_look.depth,
        gauging,
    );
    let settings = Settings {
        away: Away {
            attached: true,
            output: Some("the roctop that started it".into()),
            ..Away::default()
        },
        ..screen_look.settings
    };
    let (sender, mut end) = (pump.sender(), End::default());
    let shown = ui::run::run_with(screen, settings, None, &store, &mut |effect| match effect {
        Effect::Quit | Effect::Detach => Flow::Stop,
        Effect::Interrupt => signal_all(session, Signal::INT),
        Effect::Signal(number) => named(number, |signal| signal_all(session, signal)),
        Effect::StopApp => {
            signal_all(session, Signal::TERM);
            Flow::Stop
        }
        Effect::Idle if told.load(Ordering::Relaxed) => Flow::Stop,
        Effect::Idle if end.comes(session, &control) => {
            if let Some((pid, exit)) = end.exit {
                sender.exited(pid, exit);
            }
            if options.on_exit == OnExit::Stay {
                Flow::Say(end.sentence())
            } else {
                Flow::Stop
            }
        }
        other => desk.act(other),
    });
    // The session may have gone with its roctop: that is an end like any other.
    let read = pump.stop();
    if let Ok(Some(said)) = desk.finish() {
        tell(&said);
    }
    let left = shown.context("the terminal failed")?;
    if end.is_over && options.on_exit != OnExit::Stay {
        tell(&end.sentence());
    }
    if end.is_over && options.on_exit == OnExit::Summary {
        sum_up(&store, left.ui.filter.clone());
    }
    if session.exists() { read } else { Ok(()) }
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
fn signal_all(session: &Path, signal: Signal) -> Flow {
    let pids = alive(session);
    let mut failed = None;
    for pid in pids.iter().filter_map(|&pid| Pid::from_raw(pid as i32)) {
        failed = kill_process(pid, signal).err().or(failed);
    }
    match failed {
        _ if pids.is_empty() => Flow::Say("no program of this session is known that could be sent a signal".into()),
        None => Flow::Go,
        Some(error) => Flow::Say(format!("the signal could not be sent: {error}")),
    }
}

/// The words of the first program of a session.
fn command_of(session: &Path) -> Vec<String> {
    let all = sessions().into_iter().find(|known| known.path == session);
    let first = all.and_then(|known| known.processes.into_iter().next());
    first.map_or_else(Vec::new, |(_, command)| command.split(' ').map(Into::into).collect())
}
