//! A session that another roctop runs, or none any more, on this screen.

use super::appearance::{appearance, open_terminal};
use super::desk::{Desk, Source};
use super::named;
use crate::cli::Look;
use crate::keeper;
use crate::model::{Mode, Options};
use crate::pump::{Gauging, Pump};
use crate::run::tell;
use crate::session::{Live, alive, sessions};
use crate::supervise::told_to_end;
use crate::ui::run::{Away, Settings};
use crate::ui::screen::Screen;
use crate::ui::{self, Effect, Flow};
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Shows a session that another roctop runs. Its program and its rings are left alone.
pub fn attach(session: &Path, look: &Look, gauge_rate: f64) -> Result<()> {
    let screen_look = appearance(look)?;
    let tty = open_terminal()?;
    let store = screen_look.store(Options {
        mode: Mode::Live,
        ..Options::default()
    });
    let gauging = Gauging::rate(gauge_rate);
    let pump = Pump::start(Live::late(session).watched(), Some(store.clone()), None, &gauging)?;
    let told = told_to_end()?;
    keeper::follow(session, pump.sender());
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
    let shown = ui::run::run_with(screen, settings, None, &store, &mut |effect| match effect {
        Effect::Quit | Effect::Detach => Flow::Stop,
        Effect::Interrupt => signal_all(session, Signal::INT),
        Effect::Signal(number) => named(number, |signal| signal_all(session, signal)),
        Effect::StopApp => {
            signal_all(session, Signal::TERM);
            Flow::Stop
        }
        Effect::Idle if told.load(Ordering::Relaxed) || !session.exists() => Flow::Stop,
        other => desk.act(other),
    });
    // The session may have gone with its roctop: that is an end like any other.
    let read = pump.stop();
    if let Ok(Some(said)) = desk.finish() {
        tell(&said);
    }
    shown.context("the terminal failed")?;
    if session.exists() { read } else { Ok(()) }
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
