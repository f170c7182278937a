//! What every screen can be asked for, except signals for the program: files, themes, a recording made on the side, a
//! recording to compare with.

use super::appearance::find_theme;
use crate::clocks::boottime;
use crate::counters::plan;
use crate::export;
use crate::item::Nanos;
use crate::live::ingest::{Gauging, Ingest, IngestSender, Symbols};
use crate::live::source_lines;
use crate::model::{Fresh, Mode, Options, Snapshot, Store};
use crate::recording::{Merged, Recorder, Recording};
use crate::session::{Live, SessionDir};
use crate::settings::{self, Config};
use crate::topology;
use crate::ui::source_text::SourcePlace;
use crate::ui::theme::Depth;
use crate::ui::{Effect, LoopControl};
use crate::waker;
use anyhow::{Context, Result};
use roctop_ring::session::control;
use rustix::process::{Signal, kill_process};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// What the screen is on.
pub(super) enum Source {
    /// A session: its directory and the words of its program.
    Session(PathBuf, Vec<String>),
    /// Recordings.
    Recordings(Vec<PathBuf>),
}

/// Does it, in the background where it takes long.
pub(super) struct EffectRunner {
    source: Source,
    depth: Depth,
    gauging: Gauging,
    recording: Option<(PathBuf, Ingest)>,
    /// The last recording that was made from here.
    recorded: Option<PathBuf>,
    /// Additional variables of the next run.
    pub(super) variables: Vec<(OsString, OsString)>,
    news: (News, Receiver<LoopControl>),
    /// Asks the thread that reads source files, once there is one.
    source_lines: Option<SyncSender<Vec<SourcePlace>>>,
}

/// Maximum number of requests that wait for the thread that reads source files.
const MAX_REQUESTS: usize = 16;

/// Where work in the background reports its result.
#[derive(Clone)]
struct News(Sender<LoopControl>);

impl News {
    fn channel() -> (Self, Receiver<LoopControl>) {
        let (sender, receiver) = channel();
        (Self(sender), receiver)
    }

    /// A screen that is gone needs no news.
    fn send(&self, news: LoopControl) {
        let _ = self.0.send(news);
        waker::wake();
    }
}

impl EffectRunner {
    pub(super) fn new(source: Source, depth: Depth, gauging: Gauging) -> Self {
        Self {
            source,
            depth,
            gauging,
            recording: None,
            recorded: None,
            variables: Vec::new(),
            news: News::channel(),
            source_lines: None,
        }
    }

    /// What has come of work in the background.
    pub(super) fn news(&self) -> LoopControl {
        self.news.1.try_recv().unwrap_or(LoopControl::Continue)
    }

    /// The sender that reports the program's start and end to the recording on the side.
    pub(super) fn recorder(&self) -> Option<IngestSender> {
        self.recording.as_ref().map(|recording| recording.1.sender())
    }

    /// Does what is the same for every screen. A session's own effects are done before, by the loop that knows its program.
    pub(super) fn act(&mut self, effect: Effect) -> LoopControl {
        match effect {
            Effect::Idle => self.news(),
            Effect::Suspend => suspend(),
            Effect::Export { name, bytes } => said(write_one(&name, &bytes)),
            Effect::ExportAll { name, files } => said(write_all(&name, &files)),
            Effect::ExportRecords {
                format,
                place,
                filter,
                range,
            } => self.export(format, &place, &filter, range),
            Effect::Theme(name) => match find_theme(&name, self.depth) {
                Ok(theme) => LoopControl::Theme(Box::new(theme)),
                Err(error) => LoopControl::Say(format!("{error:#}")),
            },
            Effect::Compare(path) => self.compare(path),
            Effect::NameRecording => self.name_recording(),
            Effect::Record(Some(name)) => self.record(name.into()),
            Effect::Record(None) => self.end_recording(),
            Effect::Keep { name, filter } => said(
                settings::keep_preset(&name, &filter)
                    .map(|path| format!("@{name} is this filter from now on, in {}", path.display())),
            ),
            Effect::ListCounters => self.list_counters(),
            Effect::Rest(rest) => self.rest(rest),
            Effect::ReadSource(places) => {
                self.read_source(places);
                LoopControl::Continue
            }
            Effect::Rerun | Effect::Count(_) => {
                LoopControl::Say("only the roctop that started the program can run it again".into())
            }
            // The screen's own, and those for a program or a recording where there is none.
            Effect::None
            | Effect::Recall(_)
            | Effect::CountPassing(_)
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
            | Effect::OpenRank(_)
            | Effect::Quit => LoopControl::Continue,
        }
    }

    /// Proposes a name that no file has for a recording.
    fn name_recording(&self) -> LoopControl {
        match &self.source {
            Source::Recordings(_) => LoopControl::Say("this is a recording already".into()),
            Source::Session(..) => LoopControl::NameRecording(free("roctop-recording").display().to_string()),
        }
    }

    /// Ends the recording that is made.
    fn end_recording(&mut self) -> LoopControl {
        match self.finish() {
            Ok(said) => LoopControl::Recording(None, said.unwrap_or_default()),
            Err(error) => LoopControl::Recording(None, format!("{error:#}")),
        }
    }

    /// Begins a recording of what the rings hold from now on.
    fn record(&mut self, path: PathBuf) -> LoopControl {
        let Source::Session(session, words) = &self.source else {
            return LoopControl::Continue;
        };
        let started = Recorder::create(&path, words, &topology::read(Path::new("/")))
            .map_err(anyhow::Error::from)
            .and_then(|recorder| {
                let recorder = recorder.beginning_at(boottime())?;
                Ingest::start(Live::late(session), None, Some(recorder), &self.gauging, Symbols::Shown)
            });
        match started {
            Ok(ingest) => {
                let shown = path.display().to_string();
                self.recording = Some((path, ingest));
                LoopControl::Recording(Some(shown.clone()), format!("recording into {shown}; R ends it"))
            }
            Err(error) => LoopControl::Say(format!("{error:#}")),
        }
    }

    /// Ends the recording on the side, if there is one; says where it is.
    pub(super) fn finish(&mut self) -> Result<Option<String>> {
        let Some((path, ingest)) = self.recording.take() else {
            return Ok(None);
        };
        let shown = path.display().to_string();
        ingest.stop().with_context(|| format!("the recording {shown}"))?;
        self.recorded = Some(path);
        Ok(Some(format!("recorded into {shown}")))
    }

    /// Writes files of whole records, in a separate roctop process: it may take long.
    fn export(&self, format: &'static str, place: &str, filter: &str, range: Option<(Nanos, Nanos)>) -> LoopControl {
        let recordings = match (&self.source, &self.recorded) {
            (Source::Recordings(paths), _) => paths.clone(),
            (Source::Session(..), Some(path)) => vec![path.clone()],
            (Source::Session(..), None) => {
                return LoopControl::Say(
                    "nothing recorded yet: R and enter start a recording and end it; then export".into(),
                );
            }
        };
        let Ok(own) = std::env::current_exe() else {
            return LoopControl::Say("roctop cannot find its own file".into());
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
            sender.send(LoopControl::Say(said));
        });
        LoopControl::Say(format!("writing {format} …"))
    }

    /// Asks which counters there are.
    fn list_counters(&self) -> LoopControl {
        if matches!(self.source, Source::Recordings(_)) {
            return LoopControl::Say("a recording has the counters that it has".into());
        }
        let sender = self.news.0.clone();
        std::thread::spawn(move || {
            sender.send(match plan::known() {
                Ok(names) => LoopControl::Counters(names.into()),
                Err(error) => LoopControl::Say(format!("{error:#}")),
            });
        });
        LoopControl::Continue
    }

    /// Lets the counters of the session's programs rest, or count again. They say so when they have.
    fn rest(&self, rest: bool) -> LoopControl {
        let Source::Session(session, _) = &self.source else {
            return LoopControl::Continue;
        };
        let set = SessionDir::open(session)
            .map_err(anyhow::Error::from)
            .and_then(|session| {
                let written = session.set(control::COUNTERS_REST, u64::from(rest));
                written.context("the session's control file cannot be written")
            });
        match set {
            Ok(()) if rest => LoopControl::Say("counters pause; a counts again".into()),
            Ok(()) => LoopControl::Say("counters count again".into()),
            Err(error) => LoopControl::Say(format!("{error:#}")),
        }
    }

    /// Finds out whether these counters can be had, in one run.
    pub(super) fn count(&self, names: String) -> LoopControl {
        let sender = self.news.0.clone();
        let said = LoopControl::Say(format!("asking whether {names} can be counted …"));
        std::thread::spawn(move || {
            sender.send(match plan::fitting(&names) {
                Ok(request) => LoopControl::Rerun(request.variables()),
                Err(error) => LoopControl::Say(format!("{error:#}")),
            });
        });
        said
    }

    /// Reads lines of source files, on a thread for them.
    fn read_source(&mut self, places: Vec<SourcePlace>) {
        let requests = self.source_lines.get_or_insert_with(|| {
            let (requests, received) = sync_channel::<Vec<SourcePlace>>(MAX_REQUESTS);
            let news = self.news.0.clone();
            std::thread::spawn(move || {
                for places in received {
                    let lines = source_lines::read(places);
                    if !lines.is_empty() {
                        news.send(LoopControl::Source(lines));
                    }
                }
            });
            requests
        });
        // A file system that does not answer leaves lines out.
        let _ = requests.try_send(places);
    }

    /// Reads a recording to compare with.
    fn compare(&self, path: PathBuf) -> LoopControl {
        let sender = self.news.0.clone();
        let said = LoopControl::Say(format!("reading {} …", path.display()));
        std::thread::spawn(move || {
            sender.send(match load(&path) {
                Ok(snapshot) => LoopControl::Baseline(snapshot),
                Err(error) => LoopControl::Say(format!("{error:#}")),
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
    whole.by_kind(None, &mut |_| (), &mut |output| store.take(&output.decoded()))?;
    Ok(store.snapshot(Fresh::All))
}

/// A name that nothing has.
fn free(stem: &str) -> PathBuf {
    let names = (1..).map(|number| PathBuf::from(format!("{stem}-{number}")));
    let mut free = names.filter(|name| !name.exists());
    free.next().unwrap_or_else(|| stem.into())
}

fn said(done: Result<String>) -> LoopControl {
    LoopControl::Say(done.unwrap_or_else(|error| format!("{error:#}")))
}

pub(super) fn suspend() -> LoopControl {
    // Only the viewer stops; the program is in another session and goes on.
    let _ = kill_process(rustix::process::getpid(), Signal::STOP);
    LoopControl::Continue
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
