//! Recordings on the screen.

use super::appearance::{WithinMemory, appearance, open_terminal};
use super::effects::{EffectRunner, Source};
use crate::cli::Look;
use crate::item::{Nanos, Span};
use crate::live::ingest::Gauging;
use crate::live::past::{PastReader, SharedDecoder};
use crate::live::run::{say, say_all};
use crate::live::tally::Counter;
use crate::model::ask::Id;
use crate::model::snapshot::{Fault, Loading};
use crate::model::{Mode, Options, Store};
use crate::process::supervise::end_requested;
use crate::recording::{Merged, Recording, Replay};
use crate::sites::Finder;
use crate::ui::screen::Screen;
use crate::ui::{self, Effect, LoopControl};
use crate::waker;
use anyhow::{Context, Result, anyhow};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shows recordings, at once: they are read while they are shown. With `range`, only what belongs to that time after
/// their beginning; `at` is what the screen goes to.
pub fn replay(recordings: Vec<Recording>, look: &Look, range: Option<(Nanos, Nanos)>, at: Option<Id>) -> Result<()> {
    replay_from(recordings, look, range, at, None)
}

/// As [`replay`]; `back` is what the screen is of, if it was opened from a job's screen.
pub(super) fn replay_from(
    recordings: Vec<Recording>,
    look: &Look,
    range: Option<(Nanos, Nanos)>,
    at: Option<Id>,
    back: Option<String>,
) -> Result<()> {
    let mut screen_look = appearance(look)?;
    screen_look.settings.at = at;
    screen_look.settings.detached.back = back;
    let tty = open_terminal()?;
    let paths: Vec<PathBuf> = recordings.iter().map(|recording| recording.path().to_owned()).collect();
    let title = recordings.iter().map(|recording| {
        let path = recording.path().display();
        match recording.trigger() {
            // Its path is that of a copy.
            _ if screen_look.settings.detached.back.is_some() => recording.command().join(" "),
            Some(trigger) => format!("{path}: {}", trigger.line()),
            None => path.to_string(),
        }
    });
    let title: Vec<String> = title.collect();
    let store = screen_look.store(Options {
        mode: Mode::Replay,
        title: title.join(" "),
        ..Options::default()
    });
    let decoder = SharedDecoder::default();
    let whole = Merged::new(recordings.iter().collect())?;
    let past = PastReader::start(whole.history(), None, decoder.clone(), store.clone())?;
    let counter = match range {
        None => Some(Counter::start(whole.scan(), decoder.clone(), store.clone())?),
        // A part of the recording is read, and most of that is kept.
        Some(_) => None,
    };
    drop(whole);
    let into = store.clone();
    lock(&into).set_loading(Loading::Reading { done: 0, total: 0 });
    // It ends with this process, when the user has seen enough.
    let reader = std::thread::Builder::new().name("replay".into()).spawn(move || {
        let read = load(&recordings, range, &decoder, &into);
        let mut store = lock(&into);
        match &read {
            Ok((_, replay)) => store.set_faults(faults(replay)),
            Err(error) => store.set_faults([Fault {
                word: "",
                text: format!("{error:#}").into(),
            }]),
        }
        store.set_loading(if read.is_ok() { Loading::Done } else { Loading::Failed });
        drop(store);
        waker::wake();
        read
    })?;
    let end_requested = end_requested()?;
    let screen = Screen::open(tty, screen_look.theme, screen_look.options)?;
    let paths_shown = paths.clone();
    let mut runner = EffectRunner::new(Source::Recordings(paths), screen_look.depth, Gauging::off());
    ui::run::run_with(
        screen,
        screen_look.settings,
        None,
        &WithinMemory(&store),
        &mut |effect| match effect {
            Effect::Quit | Effect::Detach | Effect::StopApp => LoopControl::Stop,
            Effect::Recall(window) => {
                past.wish(window);
                LoopControl::Continue
            }
            Effect::CountPassing(filter) => {
                if let Some(counter) = &counter {
                    counter.wish(filter);
                }
                LoopControl::Continue
            }
            Effect::Idle if end_requested.load(Ordering::Relaxed) => LoopControl::Stop,
            other => runner.act(other),
        },
    )
    .context("the terminal failed")?;
    if reader.is_finished() {
        let read = reader.join();
        let (alignment, replay) =
            read.map_err(|_| anyhow!("a background thread ended by a fault of roctop's own"))??;
        for line in &alignment {
            say(line);
        }
        let names: Vec<String> = paths_shown.iter().map(|path| path.display().to_string()).collect();
        say_all(&replay.warnings(&names.join(" ")));
    }
    Ok(())
}

/// What is wrong with recordings as a whole, for the screen and for answers.
pub(crate) fn faults(replay: &Replay) -> Vec<Fault> {
    let faults = replay.faults().into_iter();
    let faults = faults.map(|(word, text)| Fault {
        word,
        text: text.into(),
    });
    faults.collect()
}

fn lock(store: &Mutex<Store>) -> MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads recordings into a store, which shows how far this is.
fn load(
    recordings: &[Recording],
    range: Option<(Nanos, Nanos)>,
    decoder: &SharedDecoder,
    into: &Mutex<Store>,
) -> Result<(Vec<String>, Replay)> {
    let whole = Merged::new(recordings.iter().collect())?;
    let span = range.zip(whole.beginning()?).map(|((from, to), begin)| Span {
        begin: begin.saturating_add(from),
        end: begin.saturating_add(to),
    });
    let (mut done, total) = (0, whole.bytes());
    let mut read = |bytes| {
        done += bytes;
        lock(into).set_loading(Loading::Reading { done, total });
    };
    let replay = whole.feed(decoder, span, &mut read, &mut |decoded| {
        lock(into).take(decoded);
        waker::wake();
    })?;
    let sites = lock(into).sites().clone();
    for found in Finder::of(&sites) {
        lock(into).name_frames(&found);
        waker::wake();
    }
    Ok((whole.alignment(), replay))
}
