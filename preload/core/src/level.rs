//! The process's level of timing: where it starts, and each step down.
//!
//! One word of the switch page, so a forked child starts again. It only grows. Each step is a status in the ring, and the
//! viewer shows the last one: no step is silent.

use crate::process::{self, Process};
use crate::state::{self, word};
pub use roctop_ring::level::Level;
use roctop_ring::level::Step;
use roctop_ring::record::status;
use roctop_ring::sync::{AtomicU64, Ordering};

/// Why a process is at its level. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The user asked for it.
    Asked = 1,
    /// The collector panicked.
    Panic = 2,
    /// A barrier packet's signal of the collector stayed as it was, and a later one of the run-time's completed.
    ProbeFailed = 3,
    /// A packet's signal of the collector stayed as it was, and a later packet of its queue completed.
    NeverCame = 4,
    /// Times of the GPU are zero.
    NoTimes = 5,
    /// A signal's times are those of the packet that had it before.
    StaleTimes = 6,
    /// A kernel ended before it began, or before it was submitted by far more than others.
    WrongTimes = 7,
    /// There is no file for what is in flight.
    NoFile = 8,
    /// The run-time has no memory for signals of the collector.
    NoMemory = 9,
    /// The run-time made no signals for the collector.
    NoSignals = 10,
    /// The run-time refused to make a queue for interception.
    NoProxy = 11,
    /// The GPU is one on which files are not used until it was tested.
    Untested = 12,
    /// Launches came through no known queue.
    Unseen = 13,
}

impl Reason {
    /// Does it say that signals of the collector do not work where they are? Else queues that have them there keep them.
    const fn is_of_signals(self) -> bool {
        matches!(
            self,
            Self::ProbeFailed | Self::NeverCame | Self::NoTimes | Self::StaleTimes | Self::WrongTimes
        )
    }

    /// As a sentence goes on.
    const fn text(self) -> &'static str {
        match self {
            Self::Asked => "asked for by --level, ROCTOP_LEVEL or ROCTOP_NO_FLIGHT_FILES",
            Self::Panic => "a panic inside the collector",
            Self::ProbeFailed => "a test packet's signal did not complete and a later one of the run-time's did",
            Self::NeverCame => "a kernel's signal did not complete and a later packet of its queue did",
            Self::NoTimes => "the GPU left no times in signals",
            Self::StaleTimes => "the GPU left the times of an earlier kernel in a signal",
            Self::WrongTimes => "the GPU left times in a signal that cannot be the kernel's",
            Self::NoFile => "a queue has no flight file",
            Self::NoMemory => "HSA has no uncached memory for signals",
            Self::NoSignals => "HSA made no signal for roctop",
            Self::NoProxy => "HSA refused to make a queue for interception",
            Self::Unseen => "kernels were launched that came by no known queue",
            Self::Untested => "flight files were not tested on this GPU: see 'roctop doctor --gpu'",
        }
    }
}

/// The level now.
#[inline]
pub fn current() -> Level {
    match word(word::LEVEL).load(Ordering::Relaxed).checked_sub(1) {
        Some(number) => Level::of(number).unwrap_or(Level::Off),
        None => asked().unwrap_or_default(),
    }
}

/// 1 when signals in flight files did not work.
static DOUBTED: AtomicU64 = AtomicU64::new(0);
/// Grows with each step, and where a GPU allows more than before.
static CHANGES: AtomicU64 = AtomicU64::new(1);

/// Do signals in flight files work, as far as is known?
pub fn has_good_files() -> bool {
    DOUBTED.load(Ordering::Relaxed) == 0
}

/// A number that is another one when queues have to look at the level again.
#[inline]
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// Queues look at the level again.
pub fn changed() {
    CHANGES.fetch_add(1, Ordering::Release);
}

/// The level that the user asked for; none when roctop chooses.
pub fn asked() -> Option<Level> {
    crate::config::config().and_then(|config| config.level)
}

/// The process starts: at the level that is asked for.
pub(crate) fn begin(process: &Process) {
    let level = asked().unwrap_or_default();
    word(word::LEVEL).store(u64::from(level.number()) + 1, Ordering::Relaxed);
    if level != Level::Files {
        say(process, level, level, Reason::Asked, 0, "");
    }
    if level == Level::Off {
        off(Reason::Asked);
    }
}

/// The level is `to` from now on, unless it is further down already. `place` is the queue's or agent's number that gave the
/// reason. True when this call made the step.
pub fn step_down(to: Level, reason: Reason, place: u32) -> bool {
    step_down_because(to, reason, place, "")
}

/// The same with the reason in other words.
#[cold]
pub fn step_down_because(to: Level, reason: Reason, place: u32, more: &str) -> bool {
    let from = current();
    let before = word(word::LEVEL).fetch_max(u64::from(to.number()) + 1, Ordering::AcqRel);
    if before > u64::from(to.number()) {
        return false;
    }
    if reason.is_of_signals() {
        DOUBTED.store(1, Ordering::Relaxed);
    }
    changed();
    if let Some(process) = process::get() {
        say(process, from, to, reason, place, more);
    }
    if to == Level::Off {
        off(reason);
    }
    true
}

fn off(reason: Reason) {
    state::switch_off();
    process::say_off(reason.text());
}

fn say(process: &Process, from: Level, to: Level, reason: Reason, place: u32, more: &str) {
    let step = Step {
        to,
        from,
        reason: reason as u8,
        place,
    };
    let why = if more.is_empty() { reason.text() } else { more };
    let text = format!("level {to}, {}: {why}", to.meaning());
    process.say(status::LEVEL, step.value(), &text);
}
