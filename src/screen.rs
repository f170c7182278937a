//! The live screen and the replay: wires the program's terminal, the pump and the screen together.

mod appearance;
mod desk;
mod watched;

use self::appearance::{appearance, open_terminal};
use self::desk::{Desk, Source};
use self::watched::{Shared, follow_size, lock, read_output, show_output, signal, stop, type_to, wait_for_end};
use crate::cli::{Look, OnExit};
use crate::filter::Filter;
use crate::item::{Exit, Nanos, Span};
use crate::keeper::{self, Keeper};
use crate::launch::{self, Output, Program};
use crate::model::{Fresh, Mode, Options, Store};
use crate::pump::{Gauging, Pump};
use crate::recording::{Merged, Recording};
use crate::run::{self, Job, Prepared, tell, tell_all};
use crate::session::{Live, alive, boottime, refused, sessions};
use crate::supervise::told_to_end;
use crate::ui::run::Settings;
use crate::ui::screen::Screen;
use crate::ui::{self, Effect, Flow, Left};
use crate::{export, summary};
use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Runs a program under the live screen, again and again when the user wants it so; returns how it ended.
pub fn live(program: &Program, job: &Job, look: &Look) -> Result<Exit> {
    let (mut job, mut before) = (job.clone(), None);
    loop {
        let (exit, again) = live_once(program, &job, look, before)?;
        let Some((left, variables)) = again else {
            return Ok(exit);
        };
        // Other counters take the place of those before.
        job.variables
            .retain(|(name, _)| variables.iter().all(|other| other.0 != *name));
        job.variables.extend(variables);
        before = Some(left);
    }
}

/// What is left of a run's screen when there is to be another run, and variables for that.
type Again = Option<(Left, Vec<(OsString, OsString)>)>;

/// One run.
fn live_once(program: &Program, job: &Job, look: &Look, before: Option<Left>) -> Result<(Exit, Again)> {
    let screen_look = appearance(look)?;
    job.output.check(true)?;
    let tty = open_terminal()?;
    let Prepared {
        session,
        variables,
        recorder,
    } = run::prepare(job, program)?;
    let size = rustix::termios::tcgetwinsize(&tty)?;
    let (command, terminal) = launch::command_in_session(program, &variables, size, &job.output)?;
    let options = Options {
        mode: Mode::Live,
        title: job.title.clone().unwrap_or_else(|| program.words().join(" ")),
        began: Some(boottime()),
        aliases: screen_look.aliases.clone(),
        thresholds: screen_look.thresholds,
        ..Options::default()
    };
    let store = Arc::new(Mutex::new(Store::new(options)));
    let gauging = job.gauging.clone().unwrap_or_else(Gauging::off);
    let pump = Pump::start(
        Live::new(session.path()).owned().watched(),
        Some(store.clone()),
        recorder,
        &gauging,
    )?;
    let shared = Shared::default();
    let reading = read_output(terminal.master.try_clone()?, shared.clone(), pump.sender());
    let keeper = Keeper::start(&terminal.master, session.path())?;
    let waiting = wait_for_end(command, shared.clone(), pump.sender());
    let told = told_to_end()?;
    let screen = Screen::open(tty, screen_look.theme, screen_look.options)?;
    let source = Source::Session(session.path().to_owned(), program.words());
    let mut desk = Desk::new(source, screen_look.depth, gauging);
    let mut wish = Effect::Quit;
    let mut resized = size;
    let settings = settings_of(screen_look.settings, job);
    let grace = settings.grace;
    // A fault of the screen's own must not end the program, which would lose its terminal with roctop.
    let shown = catch_unwind(AssertUnwindSafe(|| {
        ui::run::run_with(screen, settings, before, &store, &mut |effect| {
            fail_for_a_test(&effect);
            // While the program runs such a signal is the program's.
            if told.load(Ordering::Relaxed) && lock(&shared).exit.is_some() {
                return Flow::Stop;
            }
            let is_over = || matches!(lock(&shared).exit, Some(Ok(_)));
            if effect == Effect::Idle && job.on_exit != OnExit::Stay && is_over() {
                return Flow::Stop;
            }
            act(effect, &shared, &terminal.master, &mut resized, &mut wish, &mut desk)
        })
    }));
    let shown = shown.unwrap_or_else(|_| Err(std::io::Error::other("a fault of roctop's own, told above")));
    show_output(&shared);
    let is_left = wish == Effect::Detach && shown.is_ok() && lock(&shared).exit.is_none();
    if is_left {
        return leave(keeper, pump, desk, session.path());
    }
    if matches!(wish, Effect::StopApp | Effect::Rerun) || lock(&shared).leave {
        stop(&shared, grace);
    } else if lock(&shared).exit.is_none() {
        tell("the screen is gone, the program goes on; its output follows");
    }
    let _ = waiting.join();
    // The program's children may still hold its terminal: the reading thread is not waited for beyond a moment, in which
    // the last bytes arrive.
    let ended = Instant::now();
    while !reading.is_finished() && ended.elapsed() < Duration::from_millis(200) {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(terminal);
    keeper.dismiss();
    if let Err(error) = pump.stop() {
        tell(&format!("{error:#}"));
    }
    match desk.finish() {
        Ok(said) => said.iter().for_each(|said| tell(said)),
        Err(error) => tell(&format!("{error:#}")),
    }
    if let Some(refused) = refused(session.path()) {
        tell(&refused);
    }
    // The program's exit code counts, whatever is in the way of this.
    if let Err(error) = session.remove() {
        tell(&format!(
            "cannot remove the session {}: {error}",
            session.path().display()
        ));
    }
    let left = shown.context("the screen failed")?;
    sum_up(job, &store, left.ui.filter.clone());
    let again = (wish == Effect::Rerun && !lock(&shared).leave).then_some((left, desk.variables));
    if let Some(fate) = lock(&shared).fate.take() {
        tell(&fate);
    }
    let exit = lock(&shared).exit.take();
    let exit = exit.unwrap_or(Ok(Exit::Unknown)).map_err(|error| anyhow!(error))?;
    Ok((exit, again))
}

/// Settings of the screen of a run.
fn settings_of(settings: Settings, job: &Job) -> Settings {
    Settings {
        grace: job.grace.unwrap_or(settings.grace),
        is_uncollected: job.no_collect,
        output: match &job.output {
            Output::File(path) => Some(format!("{} (--app-io)", path.display())),
            _ => None,
        },
        is_piped: job.output == Output::Pipe,
        ..settings
    }
}

/// A summary of what passes the screen's last filter, for whoever wants one when the program has ended.
fn sum_up(job: &Job, store: &Mutex<Store>, filter: Filter) {
    if job.on_exit == OnExit::Summary && !job.no_collect {
        let snapshot = store
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .snapshot(Fresh::All);
        let whole = snapshot.values.totals;
        let _ = summary::write_table(
            &ui::export::only(snapshot, filter),
            &whole,
            &mut std::io::stderr().lock(),
        );
    }
}

/// Ends this roctop and leaves the program, its terminal and its session to the keeper.
fn leave(keeper: Keeper, pump: Pump, mut desk: Desk, session: &Path) -> Result<(Exit, Again)> {
    pump.stop()?;
    if let Some(said) = desk.finish()? {
        tell(&said);
    }
    keeper.leave();
    let name = session.file_name().unwrap_or_default().to_string_lossy();
    tell(&format!("the program goes on; 'roctop attach {name}' shows it again"));
    if let Some(path) = keeper::kept(session) {
        tell(&format!("what it prints goes to {}", path.display()));
    }
    Ok((Exit::Code(0), None))
}

/// A fault on purpose, in builds for tests alone: the terminal must be as it was after it.
fn fail_for_a_test(effect: &Effect) {
    let is_wanted = || std::env::var_os("ROCTOP_TEST_PANIC").is_some();
    assert!(
        !(cfg!(debug_assertions) && matches!(effect, Effect::Export { .. }) && is_wanted()),
        "a fault for a test"
    );
}

/// Shows a session that another roctop runs. Its program and its rings are left alone.
pub fn attach(session: &Path, look: &Look, gauge_rate: f64) -> Result<()> {
    let screen_look = appearance(look)?;
    let tty = open_terminal()?;
    let store = Arc::new(Mutex::new(Store::new(Options {
        mode: Mode::Live,
        aliases: screen_look.aliases.clone(),
        thresholds: screen_look.thresholds,
        ..Options::default()
    })));
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
        attached: true,
        output: Some("the roctop that started it".into()),
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

fn named(number: i32, send: impl FnOnce(Signal) -> Flow) -> Flow {
    match Signal::from_named_raw(number) {
        Some(signal) => send(signal),
        None => Flow::Say(format!("there is no signal {number}")),
    }
}

/// The words of the first program of a session.
fn command_of(session: &Path) -> Vec<String> {
    let all = sessions().into_iter().find(|known| known.path == session);
    let first = all.and_then(|known| known.processes.into_iter().next());
    first.map_or_else(Vec::new, |(_, command)| command.split(' ').map(Into::into).collect())
}

/// Shows recordings, at once: they are read while they are shown. With `range`, only what may touch that time after
/// their beginning.
pub fn replay(recordings: Vec<Recording>, look: &Look, range: Option<(Nanos, Nanos)>) -> Result<()> {
    let screen_look = appearance(look)?;
    let tty = open_terminal()?;
    let paths: Vec<PathBuf> = recordings.iter().map(|recording| recording.path().to_owned()).collect();
    let title = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    let store = Arc::new(Mutex::new(Store::new(Options {
        mode: Mode::Replay,
        title: title.join(" "),
        aliases: screen_look.aliases.clone(),
        thresholds: screen_look.thresholds,
        ..Options::default()
    })));
    let into = store.clone();
    // It ends with this process, when the user has seen enough.
    let reader = std::thread::Builder::new().name("replay".into()).spawn(move || {
        let whole = Merged::new(recordings.iter().collect())?;
        let span = range.zip(whole.beginning()?).map(|((from, to), begin)| Span {
            begin: begin.saturating_add(from),
            end: begin.saturating_add(to),
        });
        let replay = whole.items(span, &mut |_| (), &mut |items| {
            into.lock().unwrap_or_else(PoisonError::into_inner).apply_all(&items);
        })?;
        Ok::<_, anyhow::Error>((whole.alignment(), replay))
    })?;
    let told = told_to_end()?;
    let screen = Screen::open(tty, screen_look.theme, screen_look.options)?;
    let mut desk = Desk::new(Source::Recordings(paths), screen_look.depth, Gauging::off());
    ui::run::run_with(screen, screen_look.settings, None, &store, &mut |effect| match effect {
        Effect::Quit | Effect::Detach | Effect::StopApp => Flow::Stop,
        Effect::Idle if told.load(Ordering::Relaxed) => Flow::Stop,
        other => desk.act(other),
    })
    .context("the terminal failed")?;
    if reader.is_finished() {
        let read = reader.join();
        let (alignment, replay) =
            read.map_err(|_| anyhow!("a background thread ended by a fault of roctop's own"))??;
        for line in &alignment {
            tell(line);
        }
        tell_all(&replay.warnings(&title.join(" ")));
    }
    Ok(())
}

/// Does what the screen asks for.
fn act(
    effect: Effect,
    shared: &Shared,
    master: &File,
    size: &mut rustix::termios::Winsize,
    wish: &mut Effect,
    desk: &mut Desk,
) -> Flow {
    match effect {
        Effect::Idle => {
            follow_size(master, size);
            let mut watched = lock(shared);
            let has_failed = matches!(watched.exit, Some(Err(_)));
            if watched.leave || has_failed {
                Flow::Stop
            } else if let Some(fate) = watched.fate.take() {
                Flow::Fate(fate)
            } else {
                let news = desk.news();
                if let Flow::Again(variables) = &news {
                    desk.variables.clone_from(variables);
                    *wish = Effect::Rerun;
                }
                news
            }
        }
        Effect::Count(names) => desk.count(names),
        Effect::Interrupt => signal(shared, Signal::INT),
        Effect::Signal(number) => named(number, |named| signal(shared, named)),
        Effect::Type(bytes) => type_to(master, &bytes),
        Effect::Record => {
            let flow = desk.act(effect);
            lock(shared).recorder = desk.recorder();
            flow
        }
        Effect::Detach | Effect::StopApp | Effect::Quit | Effect::Rerun => {
            *wish = effect;
            Flow::Stop
        }
        other => desk.act(other),
    }
}

fn suspend() -> Flow {
    // Only the viewer stops; the program has a session of its own and goes on.
    let _ = kill_process(rustix::process::getpid(), Signal::STOP);
    Flow::Go
}

fn write_export(name: &str, bytes: &[u8]) -> Flow {
    match export::write_atomic(Path::new(name), |out| out.write_all(bytes)) {
        Ok(()) => Flow::Say(format!("wrote {name}")),
        Err(error) => Flow::Say(format!("{error:#}")),
    }
}
