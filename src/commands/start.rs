//! `roctop` alone on a terminal: what was chosen there is done, and then the screen is there again.

use super::{Screen, attach, demo_run, play, reasons, recorded_run, recordings};
use crate::cli;
use crate::live::start::StartScreen;
use crate::process::launch::Program;
use crate::session;
use crate::ui::start::StartAction;
use crate::units;
use anyhow::{Context, Result, anyhow};
use clap::Parser;
use std::ffi::OsString;
use std::path::PathBuf;

/// Shows the screen, does what the user chooses, and shows it again, until the user leaves.
pub(super) fn choose_and_watch(look: &cli::Look) -> Result<u8> {
    let mut screen = StartScreen::new(look.clone())?;
    loop {
        let action = screen.choose(&check)?;
        if action == StartAction::Quit {
            return Ok(0);
        }
        // What went wrong is no reason to lose the screen.
        match act(&action, screen.look()) {
            Ok(Some(said)) => screen.say(&said),
            Ok(None) => {}
            Err(error) => screen.say(&format!("{error:#}")),
        }
    }
}

/// Finds out what is wrong with a choice while the screen is still there.
fn check(action: &StartAction) -> Result<()> {
    match action {
        StartAction::Run(line) => program(line).map(drop),
        StartAction::Open(line) => recordings::open_all(&paths(line)?).map(drop),
        StartAction::Attach(name) => {
            session::find(name).with_context(|| format!("the session {name} has just ended"))?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Does it; a word on how it went.
fn act(action: &StartAction, look: &cli::Look) -> Result<Option<String>> {
    match action {
        StartAction::Run(line) => {
            let options = options(line)?;
            let exit = play(
                &program(line)?,
                &recorded_run(&options.recorded, None),
                Screen::Live,
                look,
            )?;
            Ok(Some(format!("{line}: {}", units::exit(exit))))
        }
        StartAction::Demo => {
            let (words, run) = demo_run(0.0, Screen::Live)?;
            let worker = Program::find(&words).map_err(|refused| anyhow!(refused.reason))?;
            play(&worker, &run, Screen::Live, look)?;
            Ok(None)
        }
        StartAction::Attach(name) => {
            attach(&cli::Attach {
                which: Some(name.clone()),
                on_exit: cli::OnExit::Stay,
                look: look.clone(),
                gauges: cli::Gauges::default(),
            })?;
            Ok(None)
        }
        StartAction::Open(line) => {
            let recordings = recordings::open_all(&paths(line)?)?;
            crate::live::replay(recordings, look, None, None)?;
            Ok(None)
        }
        StartAction::None | StartAction::Redraw | StartAction::Suspend | StartAction::Quit => Ok(None),
    }
}

/// A line in words, as a shell would have them.
fn words(line: &str) -> Result<Vec<String>> {
    shlex::split(line).context("a quote in it is not closed")
}

fn paths(line: &str) -> Result<Vec<PathBuf>> {
    Ok(words(line)?.into_iter().map(PathBuf::from).collect())
}

/// The program of a line.
fn program(line: &str) -> Result<Program> {
    let words: Vec<OsString> = words(line)?.into_iter().map(OsString::from).collect();
    Program::find(&words).map_err(|refused| anyhow!(reasons(&words, &refused).join("; ")))
}

/// What is recorded of a program when no option says otherwise.
fn options(line: &str) -> Result<cli::Run> {
    let own = ["roctop", "--"].map(str::to_owned);
    Ok(cli::Cli::try_parse_from(own.into_iter().chain(words(line)?))?.run)
}
