//! `roctop` alone on a terminal: sensors and sessions are read in the background and shown until the user has chosen.

use super::appearance::{Appearance, appearance, find_theme, open_terminal};
use super::effects::suspend;
use crate::cli::Look;
use crate::clocks::boottime;
use crate::gauge::Device;
use crate::gauge::device::devices;
use crate::item::Nanos;
use crate::process::supervise::end_requested;
use crate::session::{Found, SessionDir, recording_of, sessions, start_of};
use crate::sysfs::reader::Reader;
use crate::topology;
use crate::ui::key::Input;
use crate::ui::screen::Screen;
use crate::ui::start::{SessionRow, Start, StartAction, view};
use crate::waker;
use anyhow::Result;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often sensors and sessions are read.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long the loop waits for a key when nobody can wake it, ms.
const POLL: u64 = 200;
/// ns in a tick of the kernel's clock.
const TICK: u64 = 10_000_000;

/// The screen, also while something else is shown in its place.
pub struct StartScreen {
    start: Start,
    look: Look,
    appearance: Appearance,
    /// A signal asked roctop to end.
    end_requested: Arc<AtomicBool>,
}

/// What was read at one moment.
struct Seen {
    at: Nanos,
    devices: Vec<Device>,
    sessions: Vec<SessionRow>,
}

impl StartScreen {
    /// With these settings; nothing is shown yet.
    pub fn new(look: Look) -> Result<Self> {
        let appearance = appearance(&look)?;
        Ok(Self {
            start: Start::new(appearance.settings.marks),
            look,
            appearance,
            end_requested: end_requested()?,
        })
    }

    /// How screens that are opened from here look.
    pub const fn look(&self) -> &Look {
        &self.look
    }

    /// Says a word to the user when it is shown again.
    pub fn say(&mut self, text: &str) {
        self.start.say(text);
    }

    /// Shows the screen until the user chose something that `check` finds possible.
    pub fn choose(&mut self, check: &dyn Fn(&StartAction) -> Result<()>) -> Result<StartAction> {
        let tty = open_terminal()?;
        let mut screen = Screen::open(tty, self.appearance.theme.clone(), self.appearance.options.clone())?;
        let (news, _stop) = watch()?;
        let mut is_dirty = true;
        loop {
            is_dirty |= self.take(&news, screen.size());
            if is_dirty && screen.has_room() {
                let start = &self.start;
                screen.draw(start.size, |theme, buffer| view(start, theme, buffer))?;
                is_dirty = false;
            }
            let can_wake = waker::arm();
            // What came before the waker was armed wakes nobody.
            is_dirty |= self.take(&news, screen.size());
            let wait = if is_dirty || !can_wake { POLL } else { 1000 };
            let input = screen.input(wait);
            waker::disarm();
            if self.end_requested.load(Ordering::Relaxed) {
                return Ok(StartAction::Quit);
            }
            self.start.read(screen.last_read().1);
            let action = match input {
                Ok(Some(Input::Key(key))) => self.start.key(key),
                Ok(Some(Input::Mouse(mouse))) => self.start.mouse(mouse),
                Ok(Some(Input::Paste(text))) => {
                    self.start.paste(&text);
                    StartAction::None
                }
                Ok(Some(Input::Background { light: true })) => {
                    if let Ok(theme) = find_theme("light", self.appearance.depth) {
                        self.appearance.theme = theme.clone();
                        screen.set_theme(theme);
                    }
                    self.appearance.options.asks_background = false;
                    StartAction::Redraw
                }
                Ok(Some(Input::Background { light: false } | Input::Bytes(_)) | None) => continue,
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(StartAction::Quit),
                Err(error) => return Err(error.into()),
            };
            is_dirty = true;
            match action {
                StartAction::None => {}
                StartAction::Redraw => screen.redraw(),
                StartAction::Suspend => {
                    screen.leave();
                    suspend();
                    screen.enter()?;
                }
                chosen => match check(&chosen) {
                    Ok(()) => return Ok(chosen),
                    Err(error) => self.start.refuse(&chosen, &format!("{error:#}")),
                },
            }
        }
    }

    /// Takes what was read meanwhile; true if the screen changes.
    fn take(&mut self, news: &Receiver<Seen>, size: (u16, u16)) -> bool {
        let mut is_new = self.start.size != size;
        self.start.size = size;
        for seen in news.try_iter() {
            self.start.devices(seen.devices);
            self.start.sessions(seen.at, seen.sessions);
            is_new = true;
        }
        is_new
    }
}

/// Starts the thread that reads; it ends when the sender is dropped. A driver that does not answer holds up no key.
fn watch() -> Result<(Receiver<Seen>, Sender<()>)> {
    let (sender, news) = channel();
    let (stop, stopped) = channel::<()>();
    std::thread::Builder::new().name("sensors".into()).spawn(move || {
        let root = Path::new("/");
        let mut reader = Reader::new(root);
        let names = names(root);
        loop {
            let at = boottime();
            let mut devices = devices(&reader.read(at, &[]));
            for device in &mut devices {
                if let Some((_, name, product)) = names.iter().find(|known| known.0 == device.node.node) {
                    (device.name, device.product) = (name.as_str().into(), product.as_str().into());
                }
            }
            let sessions = sessions().iter().map(row).collect();
            if sender.send(Seen { at, devices, sessions }).is_err() {
                return;
            }
            waker::wake();
            if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    })?;
    Ok((news, stop))
}

/// Node, instruction set and model of each GPU.
fn names(root: &Path) -> Vec<(u32, String, String)> {
    let nodes = topology::read(root).into_iter().filter(topology::Node::is_gpu);
    nodes.map(|node| (node.id, node.name(), node.model)).collect()
}

fn row(found: &Found) -> SessionRow {
    let first = found.processes.first();
    let started = || Some(start_of(first?.0)?.saturating_mul(TICK));
    let began = SessionDir::open(&found.path).ok().and_then(|session| session.began());
    SessionRow {
        name: found.name(),
        command: first.map(|known| known.1.clone()).unwrap_or_default(),
        pids: found.processes.iter().map(|known| known.0).collect(),
        began: began.or_else(started),
        recording: recording_of(&found.path).map(|path| path.display().to_string()),
    }
}
