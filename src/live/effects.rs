//! What every screen can be asked for besides the program's own signals: files, themes, a recording made on the side, a
//! recording to compare with.

use super::appearance::find_theme;
use crate::counters::plan;
use crate::export;
use crate::item::Nanos;
use crate::live::ingest::{Gauging, Pump, PumpSender};
use crate::model::{Fresh, Mode, Options, Snapshot, Store};
use crate::recording::{Merged, Recorder, Recording};
use crate::session::{Live, SessionDir};
use crate::settings::{self, Config};
use crate::topology;
use crate::ui::theme::Depth;
use crate::ui::{Effect, Flow};
use crate::waker;
use anyhow::{Context, Result};
use roctop_ring::session::control;
use rustix::process::{Signal, kill_process};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What the screen is on.
pub(super) enum Source {
    /// A session: its directory and the words of its program.
    Session(PathBuf, Vec<String>),
    /// Recordings.
    Recordings(Vec<PathBuf>),
}

/// Does it, in the background where it takes long.
pub(super) struct Desk {
    source: Source,
    depth: Depth,
    gauging: Gauging,
    recording: Option<(PathBuf, Pump)>,
    /// The last recording that was made from here.
    recorded: Option<PathBuf>,
    /// What the next run is to have in its environment besides.
    pub(super) variables: Vec<(OsString, OsString)>,
    news: (News, Receiver<Flow>),
}

/// Where work in the background says what came of it.
#[derive(Clone)]
struct News(Sender<Flow>);

impl News {
    fn channel() -> (Self, Receiver<Flow>) {
        let (sender, receiver) = channel();
        (Self(sender), receiver)
    }

    /// A screen that is gone needs no news.
    fn send(&self, news: Flow) {
        let _ = self.0.send(news);
        waker::wake();
    }
}

impl Desk {
    pub(super) fn new(source: Source, depth: Depth, gauging: Gauging) -> Self {
        Self {
            source,
            depth,
            gauging,
            recording: None,
            recorded: None,
            variables: Vec::new(),
            news: News::channel(),
        }
    }

    /// What has come of work in the background.
    pub(super) fn news(&self) -> Flow {
        self.news.1.try_recv().unwrap_or(Flow::Go)
    }

    /// The way to tell the recording on the side what happens to the program.
    pub(super) fn recorder(&self) -> Option<PumpSender> {
        self.recording.as_ref().map(|recording| recording.1.sender())
    }

    /// Does what is the same for every screen. A session's own effects are done before, by the loop that knows its program.
    pub(super) fn act(&mut self, effect: Effect) -> Flow {
        match effect {
            Effect::Idle => self.news(),
            Effect::Suspend => suspend(),
            Effect::Export { name, bytes } => told(write_one(&name, &bytes)),
            Effect::ExportAll { name, files } => told(write_all(&name, &files)),
            Effect::ExportRecords {
                format,
                place,
                filter,
                range,
            } => self.export(format, &place, &filter, range),
            Effect::Theme(name) => match find_theme(&name, self.depth) {
                Ok(theme) => Flow::Theme(Box::new(theme)),
                Err(error) => Flow::Say(format!("{error:#}")),
            },
            Effect::Compare(path) => self.compare(path),
            Effect::Record => self.record(),
            Effect::Keep { name, filter } => told(
                settings::keep_preset(&name, &filter)
                    .map(|path| format!("@{name} is this filter from now on, in {}", path.display())),
            ),
            Effect::ListCounters => self.list_counters(),
            Effect::Rest(rest) => self.rest(rest),
            Effect::Rerun | Effect::Count(_) => {
                Flow::Say("only the roctop that started the program can run it again".into())
            }
            // The screen's own, and those for a program where there is none.
            Effect::None
            | Effect::Redraw
            | Effect::Ascii(_)
            | Effect::Picture(_)
            | Effect::Clipboard(_)
            | Effect::Reset(_)
            | Effect::Interrupt
            | Effect::Signal(_)
            | Effect::Type(_)
            | Effect::Detach
            | Effect::StopApp
            | Effect::Quit => Flow::Go,
        }
    }

    /// Begins a recording of what the rings hold from now on, or ends it.
    fn record(&mut self) -> Flow {
        let Source::Session(session, words) = &self.source else {
            return Flow::Say("this is a recording already".into());
        };
        if self.recording.is_some() {
            return match self.finish() {
                Ok(said) => Flow::Recording(None, said.unwrap_or_default()),
                Err(error) => Flow::Recording(None, format!("{error:#}")),
            };
        }
        let path = free("roctop-recording");
        let started = Recorder::create(&path, words, &topology::read(Path::new("/")))
            .and_then(|recorder| Pump::start(Live::late(session), None, Some(recorder), &self.gauging));
        match started {
            Ok(pump) => {
                let shown = path.display().to_string();
                self.recording = Some((path, pump));
                Flow::Recording(Some(shown.clone()), format!("recording into {shown}; R ends it"))
            }
            Err(error) => Flow::Say(format!("{error:#}")),
        }
    }

    /// Ends the recording on the side, if there is one; says where it is.
    pub(super) fn finish(&mut self) -> Result<Option<String>> {
        let Some((path, pump)) = self.recording.take() else {
            return Ok(None);
        };
        let shown = path.display().to_string();
        pump.stop().with_context(|| format!("the recording {shown}"))?;
        self.recorded = Some(path);
        Ok(Some(format!("recorded into {shown}")))
    }

    /// Writes files of whole records, by a roctop of its own: it takes as long as it takes.
    fn export(&self, format: &'static str, place: &str, filter: &str, range: Option<(Nanos, Nanos)>) -> Flow {
        let recordings = match (&self.source, &self.recorded) {
            (Source::Recordings(paths), _) => paths.clone(),
            (Source::Session(..), Some(path)) => vec![path.clone()],
            (Source::Session(..), None) => {
                return Flow::Say("a live screen keeps no whole records: R records, R again ends, then export".into());
            }
        };
        let Ok(own) = std::env::current_exe() else {
            return Flow::Say("roctop cannot find its own file".into());
        };
        let mut command = Command::new(own);
        command
            .arg("export")
            .args(recordings)
            .args(["--format", format, "-d", place]);
        if !filter.is_empty() {
            command.args(["--filter", filter]);
        }
        if let Some((from, to)) = range {
            command.arg("--range").arg(format!("{from}ns..{to}ns"));
        }
        command.stdin(Stdio::null());
        let sender = self.news.0.clone();
        std::thread::spawn(move || {
            let said = match command.output() {
                Ok(output) if output.status.success() => {
                    let files = String::from_utf8_lossy(&output.stdout);
                    match files.lines().collect::<Vec<_>>()[..] {
                        [] => "no such records, so no file was written".into(),
                        [only] => format!("wrote {only}"),
                        [first, ..] => format!("wrote {first} and {} more", files.lines().count() - 1),
                    }
                }
                Ok(output) => {
                    let lines = String::from_utf8_lossy(&output.stderr);
                    lines.lines().last().unwrap_or("the export failed").to_string()
                }
                Err(error) => format!("the export failed: {error}"),
            };
            sender.send(Flow::Say(said));
        });
        Flow::Say(format!("writing {format} …"))
    }

    /// Asks which counters there are.
    fn list_counters(&self) -> Flow {
        if matches!(self.source, Source::Recordings(_)) {
            return Flow::Say("a recording has the counters that it has".into());
        }
        let sender = self.news.0.clone();
        std::thread::spawn(move || {
            sender.send(match plan::known() {
                Ok(names) => Flow::Counters(names.into()),
                Err(error) => Flow::Say(format!("{error:#}")),
            });
        });
        Flow::Go
    }

    /// Lets the counters of the session's programs rest, or count again. They say so when they have.
    fn rest(&self, rest: bool) -> Flow {
        let Source::Session(session, _) = &self.source else {
            return Flow::Go;
        };
        let set = SessionDir::open(session).and_then(|session| {
            let written = session.set(control::COUNTERS_REST, u64::from(rest));
            written.context("the session's control file cannot be written")
        });
        match set {
            Ok(()) if rest => Flow::Say("counters are told to rest; a counts again".into()),
            Ok(()) => Flow::Say("counters are told to count again".into()),
            Err(error) => Flow::Say(format!("{error:#}")),
        }
    }

    /// Finds out whether these counters can be had, in one run.
    pub(super) fn count(&self, names: String) -> Flow {
        let sender = self.news.0.clone();
        let said = Flow::Say(format!("asking whether {names} can be counted …"));
        std::thread::spawn(move || {
            sender.send(match plan::fitting(&names) {
                Ok(request) => Flow::Again(request.variables()),
                Err(error) => Flow::Say(format!("{error:#}")),
            });
        });
        said
    }

    /// Reads a recording to compare with.
    fn compare(&self, path: PathBuf) -> Flow {
        let sender = self.news.0.clone();
        let said = Flow::Say(format!("reading {} …", path.display()));
        std::thread::spawn(move || {
            sender.send(match load(&path) {
                Ok(snapshot) => Flow::Baseline(snapshot),
                Err(error) => Flow::Say(format!("{error:#}")),
            });
        });
        said
    }
}

/// What is known at the end of a recording; says nothing on the way, since the screen is there.
fn load(path: &Path) -> Result<Arc<Snapshot>> {
    let recordings = [Recording::open(path)?];
    let whole = Merged::new(recordings.iter().collect())?;
    let config = Config::load()?;
    let mut store = Store::new(Options {
        mode: Mode::Replay,
        title: path.display().to_string(),
        aliases: config.aliases,
        ..Options::default()
    });
    whole.items(None, &mut |_| (), &mut |items| store.apply_all(&items))?;
    Ok(store.snapshot(Fresh::All))
}

/// A name that nothing has.
fn free(stem: &str) -> PathBuf {
    let names = (1..).map(|number| PathBuf::from(format!("{stem}-{number}")));
    let mut free = names.filter(|name| !name.exists());
    free.next().unwrap_or_else(|| stem.into())
}

fn told(done: Result<String>) -> Flow {
    Flow::Say(done.unwrap_or_else(|error| format!("{error:#}")))
}

fn suspend() -> Flow {
    // Only the viewer stops; the program has a session of its own and goes on.
    let _ = kill_process(rustix::process::getpid(), Signal::STOP);
    Flow::Go
}

/// Writes a file; says which.
fn write_one(name: &str, bytes: &[u8]) -> Result<String> {
    export::write_atomic(Path::new(name), |out| out.write_all(bytes))?;
    Ok(format!("wrote {name}"))
}

/// Writes files into a directory, which is made where there is none; says how many.
fn write_all(name: &str, files: &[(String, Vec<u8>)]) -> Result<String> {
    let place = Path::new(name);
    std::fs::create_dir_all(place).with_context(|| format!("cannot make the directory {name}"))?;
    for (file, bytes) in files {
        write_one(&place.join(file).display().to_string(), bytes)?;
    }
    Ok(format!("wrote {} files into {name}", files.len()))
}
