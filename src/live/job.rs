//! A job on the screen: all its ranks, while they run elsewhere.

use super::appearance::{appearance, open_terminal};
use super::attached::attach_from;
use super::effects::{EffectRunner, Source};
use super::ingest::Gauging;
use super::replay::replay_from;
use super::run::say_all;
use crate::cli::{Attach, Gauges, Look, OnExit};
use crate::job::{RankEvents, Watched};
use crate::process::supervise::end_requested;
use crate::recording::Recording;
use crate::ui::Effect;
use crate::ui::run::{Detached, LoopControl, Settings, Visit, run_with};
use crate::ui::screen::Screen;
use crate::waker;
use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A rank, and its events if they could be had.
type Fetched = (u32, Result<RankEvents>);

/// Ranks whose own events the user wants to see.
struct Ranks {
    job: Arc<Watched>,
    look: Look,
    sender: Sender<Fetched>,
    fetched: Receiver<Fetched>,
    /// Events of one rank are fetched at a time.
    is_fetching: bool,
}

impl Ranks {
    fn new(job: &Arc<Watched>, look: &Look) -> Self {
        let (sender, fetched) = channel();
        Self {
            job: job.clone(),
            look: look.clone(),
            sender,
            fetched,
            is_fetching: false,
        }
    }

    /// Begins to fetch the events of a rank; the screen goes on meanwhile.
    fn open(&mut self, rank: u32) -> LoopControl {
        if self.is_fetching {
            return LoopControl::Continue;
        }
        let (job, sender) = (self.job.clone(), self.sender.clone());
        let started = std::thread::Builder::new().name("rank".into()).spawn(move || {
            let events = job.events_of(rank);
            // A screen that is gone needs none.
            let _ = sender.send((rank, events));
            waker::wake();
        });
        match started {
            Ok(_) => {
                self.is_fetching = true;
                LoopControl::Say(format!("opening rank {rank} …"))
            }
            Err(error) => LoopControl::Say(error.to_string()),
        }
    }

    /// The screen of a rank whose events have come.
    fn fetched(&mut self) -> Option<LoopControl> {
        let (rank, events) = self.fetched.try_recv().ok()?;
        self.is_fetching = false;
        Some(match events {
            Ok(events) => {
                let (look, back) = (self.look.clone(), format!("rank {rank} of job {}", self.job.name()));
                let show = move || show(&events, &look, back).err().map(|error| format!("{error:#}"));
                LoopControl::Visit(Visit(Box::new(show)))
            }
            Err(error) => LoopControl::Say(format!("no events of rank {rank}: {error:#}")),
        })
    }
}

/// Shows the events of a rank, until the user goes back.
fn show(events: &RankEvents, look: &Look, back: String) -> Result<()> {
    match events {
        RankEvents::Here(session) => {
            let options = Attach {
                which: None,
                on_exit: OnExit::Stay,
                look: look.clone(),
                gauges: Gauges::default(),
            };
            attach_from(session, &options, Some(back))
        }
        RankEvents::Fetched(folder) => {
            let recording = Recording::open(&folder.recording())?;
            replay_from(vec![recording], look, None, None, Some(back))
        }
    }
}

/// Shows a job, until the user leaves. The job goes on.
///
/// Errors: there is no terminal.
pub(crate) fn watch_job(job: Watched, look: &Look) -> Result<()> {
    let job = Arc::new(job);
    let mut ranks = Ranks::new(&job, look);
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
        let shown = run_with(screen, settings, None, &*job, &mut |effect| match effect {
            Effect::Quit | Effect::Detach | Effect::StopApp => LoopControl::Stop,
            Effect::Idle if end_requested.load(Ordering::Relaxed) => LoopControl::Stop,
            Effect::OpenRank(rank) => ranks.open(rank),
            Effect::Idle => ranks.fetched().unwrap_or_else(|| runner.act(Effect::Idle)),
            other => runner.act(other),
        });
        is_over.store(true, Ordering::Relaxed);
        shown
    });
    say_all(&job.troubles());
    shown.context("the terminal failed")?;
    Ok(())
}
