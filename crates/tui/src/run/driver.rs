//! The turns of the loop: what is due is brought up to date and drawn, what was typed becomes messages, and what these
//! ask for is done.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::since_mark::SinceMark;
use super::{LoopControl, PreviousRun, Settings, Shown};
use crate::frame_pacing::FramePacing;
use crate::key::Input;
use crate::screen::Screen;
use crate::throttle::Throttle;
use crate::waker;
use crate::{Effect, Msg, Own, Since, Ui, picture, tally, update, view};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use roctop_model::recall::Window;
use roctop_model::{Fresh, Snapshot};
use roctop_trace::clocks::{boottime, of_process, of_thread};

/// How often the timeline's head moves.
const HEAD_INTERVAL: Duration = Duration::from_millis(100);
/// How often our own share is measured.
const MEASURE_INTERVAL: Duration = Duration::from_secs(1);
/// How often the clock moves when nothing else does.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);
/// How often values change; with thousands of kernels less often, so that computing them takes at most this share of a core.
const VALUES_INTERVAL: Duration = Duration::from_millis(500);
const VALUES_INTERVAL_MAX: Duration = Duration::from_secs(2);
const VALUES_COST_FACTOR: u32 = 100;
/// Inputs that are taken before a frame.
const MAX_INPUTS: usize = 256;

/// What ends the wait for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The next frame is due: something changes.
    Frame,
    /// Nothing changes, and nobody can wake the loop: it looks ten times a second.
    Poll,
    /// Nothing changes: the loop is woken, and its clock moves once a second.
    Sleep,
}

/// The loop between two turns.
pub(super) struct Driver<'a> {
    screen: Screen,
    ui: Ui,
    latest: Arc<Snapshot>,
    source: &'a dyn Shown,
    effects: &'a mut dyn FnMut(Effect) -> LoopControl,
    since: SinceMark,
    throttle: Throttle,
    pacing: FramePacing,
    began: Instant,
    /// When our own share was measured last, since the begin.
    measured: Duration,
    /// When there was a snapshot last.
    headed: Instant,
    /// When there was one with new values.
    valued: Instant,
    /// Processor time that these took.
    making: Duration,
    /// More is known than is shown.
    is_dirty: bool,
    /// The user did something that is not shown yet.
    is_answer: bool,
    /// The window whose past was asked for last.
    asked: Option<Window>,
    /// The filter for which all records were to be counted last.
    counted: Option<String>,
}

impl<'a> Driver<'a> {
    /// For what is left of a run `before`, when there was one.
    pub(super) fn new(
        screen: Screen,
        settings: Settings,
        before: Option<PreviousRun>,
        source: &'a dyn Shown,
        effects: &'a mut dyn FnMut(Effect) -> LoopControl,
    ) -> Self {
        let throttle = Throttle::new(settings.throttle);
        let pacing = FramePacing::new(settings.most_bytes);
        let latest = source.snapshot(Fresh::All);
        let ui = match before {
            Some(before) => before.ui.for_next_run(before.last),
            None => settings.begin(latest.mode),
        };
        let now = Instant::now();
        Self {
            screen,
            ui,
            latest,
            source,
            effects,
            since: SinceMark::default(),
            throttle,
            pacing,
            began: now,
            measured: Duration::ZERO,
            headed: now,
            valued: now,
            making: Duration::ZERO,
            is_dirty: true,
            is_answer: false,
            asked: None,
            counted: None,
        }
    }

    /// Goes on until an effect stops it or the terminal is gone.
    pub(super) fn run(mut self) -> io::Result<PreviousRun> {
        while self.turn()? {}
        Ok(PreviousRun {
            ui: self.ui,
            last: self.latest,
        })
    }

    /// One turn; false for the last.
    fn turn(&mut self) -> io::Result<bool> {
        self.measure();
        let slowed = self.ui.own.map_or(1, |own| own.slowed).max(self.pacing.slowed());
        let slowest = self.ui.prefs.rate.map(|rate| Duration::from_secs(1) / rate.max(1));
        let interval = HEAD_INTERVAL.max(slowest.unwrap_or_default()) * slowed;
        let mut wait = self.wait();
        if wait == Wait::Frame && self.headed.elapsed() >= interval {
            if !self.refresh(VALUES_INTERVAL * slowed)? {
                return Ok(false);
            }
            // A frame after which nothing changes is the last for a while.
            wait = self.wait();
        }
        self.fit();
        self.screen.set_raw(self.ui.program.typing)?;
        self.draw()?;
        let wanted = self.ui.past.get();
        if wanted != std::mem::replace(&mut self.asked, wanted) && !self.perform(Effect::Recall(wanted))? {
            return Ok(false);
        }
        let wanted = tally::is_wanted(&self.latest, &self.ui.filter).then(|| self.ui.filter.source.clone());
        if wanted != self.counted {
            self.counted.clone_from(&wanted);
            if !self.perform(Effect::CountPassing(wanted))? {
                return Ok(false);
            }
        }
        let wanted = self.ui.source.take_wanted();
        if !wanted.is_empty() && !self.perform(Effect::ReadSource(wanted))? {
            return Ok(false);
        }
        if !self.perform(Effect::Idle)? {
            return Ok(false);
        }
        self.is_dirty |= self.ui.toast.as_ref().is_some_and(|toast| toast.1 == self.latest.now);
        let age = self.headed.elapsed();
        let wait = match wait {
            Wait::Frame => interval.saturating_sub(age).min(HEAD_INTERVAL),
            Wait::Sleep if !self.is_dirty => CLOCK_INTERVAL.saturating_sub(age),
            Wait::Sleep | Wait::Poll => HEAD_INTERVAL,
        };
        // Rounded up: a loop that wakes a fraction of a millisecond too early waits once more.
        let goes_on = self.take_input(wait.as_nanos().div_ceil(1_000_000).max(1) as u64);
        waker::disarm();
        goes_on
    }

    /// The terminal may have another size.
    fn fit(&mut self) {
        let size = self.screen.size();
        if self.ui.size != size {
            (self.is_dirty, self.is_answer) = (true, true);
            update(&mut self.ui, &self.latest, Msg::Resize(size.0, size.1));
        }
    }

    /// What roctop itself takes, now and then.
    fn measure(&mut self) {
        if self.began.elapsed() >= self.measured + MEASURE_INTERVAL {
            self.measured = self.began.elapsed();
            let wire = self.pacing.rate(self.measured);
            let own = self.throttle.measure(of_process(), self.measured).or(self.ui.own);
            self.ui.own = own.map(|own| Own { wire, ..own });
        }
    }

    /// What the loop waits for. A frame that would differ in its clock alone can wait, unless seconds are counted down to a
    /// signal.
    fn wait(&self) -> Wait {
        let is_moving = self.ui.program.escalation.is_some() || !self.latest.is_calm();
        if is_moving || self.headed.elapsed() >= CLOCK_INTERVAL {
            return Wait::Frame;
        }
        // Armed before the source is asked: what comes after that ends the sleep.
        let is_armed = waker::arm();
        if self.source.is_new() {
            waker::disarm();
            return Wait::Frame;
        }
        if is_armed { Wait::Sleep } else { Wait::Poll }
    }

    /// Takes a snapshot, with new values when they are older than `values`; false ends the loop.
    fn refresh(&mut self, values: Duration) -> io::Result<bool> {
        let making = (self.making * VALUES_COST_FACTOR).min(VALUES_INTERVAL_MAX);
        let fresh = if self.valued.elapsed() >= values.max(making) {
            self.valued = Instant::now();
            Fresh::All
        } else {
            Fresh::Head
        };
        self.headed = Instant::now();
        let before = of_thread();
        self.latest = self.since.counted(self.source.snapshot(fresh));
        if fresh == Fresh::All {
            self.making = of_thread().saturating_sub(before);
        }
        self.is_dirty = true;
        let lag = self.pacing.lag(self.began.elapsed(), behind(&self.latest));
        self.ui.lag = lag.map(|lag| lag.as_nanos() as u64);
        let effect = update(&mut self.ui, &self.latest, Msg::Tick);
        Ok(effect == Effect::None || self.perform(effect)?)
    }

    /// Draws what is not shown yet, if the terminal takes it.
    fn draw(&mut self) -> io::Result<()> {
        if !self.is_dirty {
            return Ok(());
        }
        let has_room = self.screen.has_room();
        if self.pacing.may_send(self.began.elapsed(), has_room, self.is_answer) {
            let (from, written) = (self.began.elapsed(), self.screen.written);
            let (ui, latest) = (&self.ui, &self.latest);
            self.screen
                .draw(ui.size, |theme, buffer| view(ui, latest, theme, buffer))?;
            let bytes = (self.screen.written - written) as usize;
            self.pacing.sent(from, self.began.elapsed(), bytes);
            (self.is_dirty, self.is_answer) = (false, false);
        }
        Ok(())
    }

    /// Waits at most `wait` ms for input; all that was typed since is taken before the next frame. False ends the loop.
    fn take_input(&mut self, wait: u64) -> io::Result<bool> {
        let mut input = self.screen.input(wait);
        for _ in 0..MAX_INPUTS {
            let message = match input {
                Ok(Some(Input::Key(key))) => Msg::Key(key),
                Ok(Some(Input::Mouse(mouse))) => Msg::Mouse(mouse),
                Ok(Some(Input::Bytes(bytes))) => Msg::Typed(bytes),
                Ok(Some(Input::Paste(text))) => Msg::Paste(text),
                Ok(Some(Input::Background { light })) => {
                    if light && !self.perform(Effect::Theme("light".into()))? {
                        return Ok(false);
                    }
                    self.is_dirty = true;
                    input = self.screen.input(0);
                    continue;
                }
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) => return Err(error),
            };
            (self.is_dirty, self.is_answer) = (true, true);
            let (at, together) = self.screen.last_read();
            update(&mut self.ui, &self.latest, Msg::Read { at, together });
            let effect = update(&mut self.ui, &self.latest, message);
            if let Effect::Reset(since) = effect {
                let begin = (since == Since::Now).then(|| self.source.snapshot(Fresh::All));
                self.since.reset(begin);
                self.latest = self.since.counted(self.source.snapshot(Fresh::All));
            }
            if !self.perform(effect)? {
                return Ok(false);
            }
            self.screen.set_raw(self.ui.program.typing)?;
            input = self.screen.input(0);
        }
        Ok(true)
    }

    /// Does what is the screen's own and hands on the rest; false ends the loop.
    fn perform(&mut self, effect: Effect) -> io::Result<bool> {
        let flow = match effect {
            Effect::None => LoopControl::Continue,
            Effect::Redraw => {
                self.screen.redraw();
                LoopControl::Continue
            }
            Effect::Ascii(ascii) => {
                self.screen.set_ascii(ascii);
                LoopControl::Continue
            }
            Effect::Picture(name) => self.take_picture(&name),
            Effect::Clipboard(text) => {
                self.screen.copy(&text)?;
                LoopControl::Continue
            }
            Effect::Suspend => {
                self.screen.leave();
                let flow = (self.effects)(Effect::Suspend);
                self.screen.enter()?;
                flow
            }
            other => (self.effects)(other),
        };
        let flow = match flow {
            LoopControl::Visit(visit) => {
                self.screen.leave();
                let said = (visit.0)();
                self.screen.enter()?;
                self.ui.toast = None;
                self.is_dirty = true;
                said.map_or(LoopControl::Continue, LoopControl::Say)
            }
            other => other,
        };
        let message = match flow {
            LoopControl::Continue | LoopControl::Visit(_) => return Ok(true),
            LoopControl::Stop | LoopControl::Rerun(_) => return Ok(false),
            LoopControl::Theme(theme) => {
                self.screen.set_theme(*theme);
                return Ok(true);
            }
            LoopControl::Counters(names) => Msg::Counters(names),
            LoopControl::NameRecording(name) => Msg::NameRecording(name),
            LoopControl::Source(lines) => {
                self.is_dirty = true;
                Msg::Source(lines)
            }
            LoopControl::Say(text) => Msg::Say(text),
            LoopControl::ExitCause(text) => Msg::Fate(text),
            LoopControl::Baseline(snapshot) => Msg::Baseline(snapshot),
            LoopControl::Recording(place, text) => Msg::Recording(place, text),
        };
        update(&mut self.ui, &self.latest, message);
        Ok(true)
    }

    /// What is on the screen, but for the question that led here, as three files.
    fn take_picture(&mut self, name: &str) -> LoopControl {
        let shown = &mut Buffer::empty(Rect::new(0, 0, self.ui.size.0, self.ui.size.1));
        view(&self.ui, &self.latest, self.screen.theme(), shown);
        let is_light = self.screen.theme().is_light;
        let sheet = if is_light { picture::LIGHT } else { picture::DARK };
        let files = [
            ("svg", picture::svg(shown, sheet).into_bytes()),
            ("ans", picture::ansi(shown)),
            ("txt", picture::text(shown).into_bytes()),
        ];
        let mut flow = LoopControl::Continue;
        for (ending, bytes) in files {
            let name = format!("{name}.{ending}");
            match (self.effects)(Effect::Export { name, bytes }) {
                LoopControl::Say(said) if said.starts_with("wrote ") => {}
                other => flow = other,
            }
        }
        if matches!(flow, LoopControl::Continue) {
            flow = LoopControl::Say(format!("wrote {name}.svg, .ans and .txt"));
        }
        flow
    }
}

/// How old the newest of a live program's numbers is: the reader may be behind.
fn behind(latest: &Snapshot) -> Duration {
    if !latest.is_running() || latest.now == 0 {
        return Duration::ZERO;
    }
    Duration::from_nanos(boottime().saturating_sub(latest.now))
}
