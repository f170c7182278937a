//! A job on the screen: all its ranks, while they run elsewhere.

use super::appearance::{appearance, open_terminal};
use super::effects::{EffectRunner, Source};
use super::ingest::Gauging;
use super::run::say_all;
use crate::cli::Look;
use crate::job::Watched;
use crate::process::supervise::end_requested;
use crate::ui::Effect;
use crate::ui::run::{Detached, LoopControl, Settings, run_with};
use crate::ui::screen::Screen;
use anyhow::{Context, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// Shows a job of the user, until the user leaves. The job goes on.
///
/// Errors: there is no such job, its keys are not the user's alone, or there is no terminal.
pub fn watch_job(name: &str, look: &Look) -> Result<()> {
    let job = Watched::find(name)?;
    let look = appearance(look)?;
    let tty = open_terminal()?;
    let (is_over, end_requested) = (AtomicBool::new(false), end_requested()?);
    let screen = Screen::open(tty, look.theme, look.options)?;
    let settings = Settings {
        detached: Detached {
            attached: true,
            output: Some("the roctops of its ranks".into()),
            ..Detached::default()
        },
        ..look.settings
    };
    let mut runner = EffectRunner::new(Source::Recordings(Vec::new()), look.depth, Gauging::off());
    let shown = std::thread::scope(|scope| {
        scope.spawn(|| job.follow(&is_over));
        let shown = run_with(screen, settings, None, &job, &mut |effect| match effect {
            Effect::Quit | Effect::Detach | Effect::StopApp => LoopControl::Stop,
            Effect::Idle if end_requested.load(Ordering::Relaxed) => LoopControl::Stop,
            other => runner.act(other),
        });
        is_over.store(true, Ordering::Relaxed);
        shown
    });
    say_all(&job.troubles());
    shown.context("the terminal failed")?;
    Ok(())
}
