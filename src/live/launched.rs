//! A program under the live screen, from start to end.

use super::appearance::{Appearance, WithinMemory, appearance, open_terminal};
use super::effects::{EffectRunner, Source};
use super::named;
use super::watched::{Shared, follow_size, lock, read_output, show_output, signal, stop, type_to, wait_for_end};
use crate::ask::server::Server;
use crate::cli::{Look, OnExit};
use crate::item::Exit;
use crate::live::ingest::Ingest;
use crate::live::past::PastReader;
use crate::live::pty_keeper::{self, Keeper};
use crate::live::run::{self, Prepared, Run, say};
use crate::model::Store;
use crate::process::launch::{self, Output, Program};
use crate::recording::{History, Recorder};
use crate::session::{Live, SessionDir, Watch, refused};
use crate::ui::run::{Detached, Settings};
use crate::ui::screen::Screen;
use crate::ui::{self, Effect, LoopControl, PreviousRun};
use anyhow::{Context, Result, anyhow};
use rustix::process::Signal;
use rustix::termios::{Winsize, tcgetwinsize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Runs a program under the live screen, again and again when the user wants it so; returns how it ended.
pub fn live(program: &Program, run: &Run, look: &Look) -> Result<Exit> {
    let (mut run, mut before) = (run.clone(), None);
    let recording = run.recording.clone();
    let mut number = 1;
    loop {
        if let Some(first) = recording.as_ref().filter(|_| number > 1) {
            // Beside that of the first run.
            let mut name = first.clone().into_os_string();
            name.push(format!("-{number}"));
            run.recording = Some(name.into());
        }
        let (exit, again) = live_once(program, &run, look, before)?;
        let Some((left, variables)) = again else {
            return Ok(exit);
        };
        // Other counters take the place of those before.
        run.variables
            .retain(|(name, _)| variables.iter().all(|other| other.0 != *name));
        run.variables.extend(variables);
        before = Some(left);
        number += 1;
    }
}

/// What is left of a run's screen when there is to be another run, and variables for that.
type Again = Option<(PreviousRun, Vec<(OsString, OsString)>)>;

/// One run.
fn live_once(program: &Program, run: &Run, look: &Look, before: Option<PreviousRun>) -> Result<(Exit, Again)> {
    let look = appearance(look)?;
    run.output.check_under_screen()?;
    let tty = open_terminal()?;
    let mut running = Running::start(program, run, &look, &tty)?;
    let screen = Screen::open(tty, look.theme, look.options)?;
    let source = Source::Session(running.session.path().to_owned(), program.words());
    let mut runner = EffectRunner::new(source, look.depth, run.gauging());
    let settings = settings_of(look.settings, run);
    let grace = settings.grace;
    let (shown, wish) = running.show(screen, settings, before, &mut runner);

    show_output(&running.shared);
    if wish == Effect::Detach && shown.is_ok() && !running.has_ended() {
        return running.leave(runner);
    }
    if matches!(wish, Effect::StopApp | Effect::Rerun) || lock(&running.shared).leave.is_some() {
        stop(&running.shared, grace);
    } else if !running.has_ended() {
        say("the screen is gone, the program goes on; its output follows");
    }
    let (store, shared) = (running.store.clone(), running.shared.clone());
    running.finish(&mut runner);

    let left = shown.context("the screen failed")?;
    if run.on_exit == OnExit::Summary && !run.no_collect {
        run::sum_up(&store, left.ui.filter.clone());
    }
    let mut watched = lock(&shared);
    if let Some(fate) = watched.fate.take() {
        say(&fate);
    }
    let exit = watched.exit.take().unwrap_or(Ok(Exit::Unknown));
    let again = (wish == Effect::Rerun && watched.leave.is_none()).then_some((left, runner.variables));
    Ok((exit.map_err(|error| anyhow!(error))?, again))
}

/// Settings of the screen of a run.
fn settings_of(settings: Settings, run: &Run) -> Settings {
    Settings {
        grace: run.grace.unwrap_or(settings.grace),
        detached: Detached {
            attached: false,
            is_uncollected: run.no_collect,
            is_piped: run.output == Output::Pipe,
            output: match &run.output {
                Output::File(path) => Some(format!("{} (--app-io)", path.display())),
                _ => None,
            },
            back: None,
        },
        ..settings
    }
}

/// A program that was started, its session, and the threads around it.
struct Running {
    session: SessionDir,
    store: Arc<Mutex<Store>>,
    ingest: Ingest,
    /// Reads the past back from the recording that is being written.
    past: Option<PastReader>,
    shared: Shared,
    /// The near end of its terminal, and the size that it has.
    master: File,
    size: Winsize,
    keeper: Keeper,
    /// Looks for programs without the collector.
    watch: Option<Watch>,
    /// Answers `roctop ask`.
    answers: Option<Server>,
    /// Reads what it writes.
    reading: JoinHandle<()>,
    /// Waits for its end.
    waiting: JoinHandle<()>,
    /// A signal asked roctop to end after the program had.
    end_requested: Arc<AtomicBool>,
    /// Closed when such a signal is not waited for any more.
    signals_over: PipeWriter,
    on_exit: OnExit,
    /// Other viewers can know how the program ended.
    is_end_noted: bool,
    /// The line about the level that an earlier check found.
    kept_level: Option<String>,
}

impl Running {
    /// Starts the program in a terminal as large as this one.
    fn start(program: &Program, run: &Run, look: &Appearance, tty: &File) -> Result<Self> {
        let Prepared {
            mut session,
            variables,
            recorder,
            kept_level,
        } = run::prepare(run, program)?;
        let size = tcgetwinsize(tty)?;
        let (command, terminal) = launch::command_in_session(program, &variables, size, &run.output)?;
        let store = look.store(run.options(program, &session));
        let source = Live::new(session.path()).owned().watched();
        let history = run.recording.clone().zip(recorder.as_ref().map(Recorder::written));
        let ingest = Ingest::start(source, Some(store.clone()), recorder, &run.gauging(), run.symbols)?;
        let past = history.map(|(path, written)| {
            let history = History::of_written(path, written.clone());
            PastReader::start(history, Some(written), ingest.decoder(), store.clone())
        });
        let past = past.transpose()?;
        let answers = run.answer(session.path(), &store, look.settings.presets.clone(), None);
        let shared = Shared::default();
        let reading = read_output(terminal.master.try_clone()?, shared.clone(), ingest.sender())?;
        let keeper = Keeper::start(&terminal.master, session.path())?;
        let watch = run.watch(session.path(), &ingest)?;
        session.started();
        let end_requested = Arc::default();
        let (over, signals_over) = io::pipe()?;
        let waiting = wait_for_end(
            command,
            shared.clone(),
            ingest.sender(),
            Arc::clone(&end_requested),
            over,
        )?;
        Ok(Self {
            session,
            store,
            ingest,
            past,
            shared,
            master: terminal.master,
            size,
            keeper,
            watch,
            answers,
            reading,
            waiting,
            end_requested,
            signals_over,
            on_exit: run.on_exit,
            is_end_noted: false,
            kept_level,
        })
    }

    fn has_ended(&self) -> bool {
        lock(&self.shared).exit.is_some()
    }

    /// Shows it until the user has seen enough; how the screen was then, and what the user wished last.
    fn show(
        &mut self,
        screen: Screen,
        settings: Settings,
        before: Option<PreviousRun>,
        runner: &mut EffectRunner,
    ) -> (io::Result<PreviousRun>, Effect) {
        let store = self.store.clone();
        let mut wish = Effect::Quit;
        // A fault of the screen's own must not end the program, which would lose its terminal with roctop.
        let shown = catch_unwind(AssertUnwindSafe(|| {
            ui::run::run_with(screen, settings, before, &WithinMemory(&store), &mut |effect| {
                fail_for_a_test(&effect);
                self.act(effect, runner, &mut wish)
            })
        }));
        let shown = shown.unwrap_or_else(|_| Err(io::Error::other("a fault of roctop, printed above")));
        (shown, wish)
    }

    /// Does what the screen asks for.
    fn act(&mut self, effect: Effect, runner: &mut EffectRunner, wish: &mut Effect) -> LoopControl {
        if self.end_requested.load(Ordering::Relaxed) {
            return LoopControl::Stop;
        }
        match effect {
            Effect::Idle => {
                let flow = self.idle(runner);
                if let LoopControl::Rerun(variables) = &flow {
                    runner.variables.clone_from(variables);
                    *wish = Effect::Rerun;
                }
                flow
            }
            Effect::Count(names) => runner.count(names),
            Effect::Recall(window) => {
                if let Some(past) = &self.past {
                    past.wish(window);
                }
                LoopControl::Continue
            }
            Effect::Interrupt => signal(&self.shared, Signal::INT),
            Effect::Signal(number) => named(number, |named| signal(&self.shared, named)),
            Effect::Type(bytes) => type_to(&self.master, &bytes),
            Effect::Record(_) => {
                let flow = runner.act(effect);
                lock(&self.shared).recorder = runner.recorder();
                flow
            }
            Effect::Detach | Effect::StopApp | Effect::Quit | Effect::Rerun => {
                *wish = effect;
                LoopControl::Stop
            }
            other => runner.act(other),
        }
    }

    /// What has happened meanwhile.
    fn idle(&mut self, runner: &EffectRunner) -> LoopControl {
        follow_size(&self.master, &mut self.size);
        note_end(&self.shared, &self.session, &mut self.is_end_noted);
        let mut watched = lock(&self.shared);
        let is_over = match &watched.exit {
            Some(Ok(_)) => self.on_exit != OnExit::Stay,
            Some(Err(_)) => true,
            None => false,
        };
        if watched.leave.is_some() || is_over {
            return LoopControl::Stop;
        }
        if let Some(line) = self.kept_level.take() {
            return LoopControl::Say(line);
        }
        match watched.fate.take() {
            Some(fate) => LoopControl::ExitCause(fate),
            None => runner.news(),
        }
    }

    /// Ends this roctop and leaves the program, its terminal and its session to the keeper.
    fn leave(self, mut runner: EffectRunner) -> Result<(Exit, Again)> {
        let session = self.session.path();
        drop(self.answers);
        self.ingest.stop()?;
        if let Some(said) = runner.finish()? {
            say(&said);
        }
        self.keeper.leave();
        let name = session.file_name().unwrap_or_default().to_string_lossy();
        say(&format!("the program goes on; 'roctop attach {name}' shows it again"));
        if let Some(path) = pty_keeper::kept(session) {
            say(&format!("what it prints goes to {}", path.display()));
        }
        Ok((Exit::Code(0), None))
    }

    /// Waits for the program's end, and puts everything away; says what went wrong with it. The program's exit code
    /// counts, whatever is in the way of this.
    fn finish(mut self, runner: &mut EffectRunner) {
        drop(self.signals_over);
        let _ = self.waiting.join();
        note_end(&self.shared, &self.session, &mut self.is_end_noted);
        // The program's children may still hold its terminal: the reading thread is not waited for beyond a moment, in
        // which the last bytes arrive.
        let ended = Instant::now();
        while !self.reading.is_finished() && ended.elapsed() < Duration::from_millis(200) {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(self.master);
        self.keeper.dismiss();
        let missed = self.watch.and_then(Watch::stop);
        drop(self.answers);
        if let Err(error) = self.ingest.stop() {
            say(&format!("{error:#}"));
        }
        match runner.finish() {
            Ok(said) => said.iter().for_each(|said| say(said)),
            Err(error) => say(&format!("{error:#}")),
        }
        let path = self.session.path().to_owned();
        for line in [refused(&path), missed].into_iter().flatten() {
            say(&line);
        }
        if let Err(error) = self.session.remove() {
            say(&format!("cannot remove the session {}: {error}", path.display()));
        }
    }
}

/// Notes the program's end for other viewers, once.
fn note_end(shared: &Shared, session: &SessionDir, is_noted: &mut bool) {
    let watched = lock(shared);
    if let (Some(pid), Some(Ok(exit)), false) = (watched.pid, &watched.exit, *is_noted) {
        // Without this word other viewers say that the program is gone.
        let _ = session.note_end(pid, *exit);
        *is_noted = true;
    }
}

/// A fault on purpose, in builds for tests alone: the terminal must be as it was after it.
fn fail_for_a_test(effect: &Effect) {
    let is_wanted = || std::env::var_os("ROCTOP_TEST_PANIC").is_some();
    assert!(
        !(cfg!(debug_assertions) && matches!(effect, Effect::Export { .. }) && is_wanted()),
        "a fault for a test"
    );
}
