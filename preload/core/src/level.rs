//! The process's level of timing: its initial value, and each step down.
//!
//! One word of the switch page, so a forked child starts again. The level only grows. Each step is a status in the
//! ring, and the viewer shows the last one.

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
    /// The user requested it.
    Asked = 1,
    /// The collector panicked.
    Panic = 2,
    /// A barrier packet's signal of the collector did not complete, and a later one of the run-time did.
    ProbeFailed = 3,
    /// A packet's signal of the collector did not complete, and a later packet of its queue did.
    NeverCame = 4,
    /// The GPU's times are zero.
    NoTimes = 5,
    /// A signal's times are those of the packet that used it before.
    StaleTimes = 6,
    /// A kernel ended before it began, or began much longer before its submission than others.
    WrongTimes = 7,
    /// There is no flight file.
    NoFile = 8,
    /// The run-time has no memory for the collector's signals.
    NoMemory = 9,
    /// The run-time created no signals for the collector.
    NoSignals = 10,
    /// The run-time refused to create a queue for interception.
    NoProxy = 11,
    /// The GPU is of a type for which flight files must be tested first.
    Untested = 12,
    /// Launches came through an unknown queue.
    Unseen = 13,
    /// An earlier check of the machine found it.
    Kept = 14,
}

impl Reason {
    /// Whether the reason is that the collector's signals do not work in their memory. For other reasons, queues keep
    /// those that they have.
    const fn is_of_signals(self) -> bool {
        matches!(
            self,
            Self::ProbeFailed | Self::NeverCame | Self::NoTimes | Self::StaleTimes | Self::WrongTimes
        )
    }

    /// The reason, as the end of a sentence.
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
            Self::Kept => "found by an earlier 'roctop doctor --gpu'",
            Self::Untested => "flight files were not tested on this GPU: see 'roctop doctor --gpu'",
        }
    }
}

/// The current level.
#[inline]
pub fn current() -> Level {
    match word(word::LEVEL).load(Ordering::Relaxed).checked_sub(1) {
        Some(number) => Level::of(number).unwrap_or(Level::Off),
        None => asked().unwrap_or_default(),
    }
}

/// 1 if signals in flight files have failed.
static DOUBTED: AtomicU64 = AtomicU64::new(0);
/// Incremented with each step, and when a GPU allows more than before.
static CHANGES: AtomicU64 = AtomicU64::new(1);

/// Whether signals in flight files work, as far as is known.
pub fn has_good_files() -> bool {
    DOUBTED.load(Ordering::Relaxed) == 0
}

/// A number that changes when queues must read the level again.
#[inline]
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// Makes queues read the level again.
pub fn changed() {
    CHANGES.fetch_add(1, Ordering::Release);
}

/// The level that the user requested; `None` if roctop chooses.
pub fn asked() -> Option<Level> {
    crate::config::config().and_then(|config| config.level)
}

/// Starts the process at the requested level.
pub(crate) fn begin(process: &Process) {
    let level = asked().unwrap_or_default();
    word(word::LEVEL).store(u64::from(level.number()) + 1, Ordering::Relaxed);
    let kept = crate::config::config().and_then(|config| config.level_reason.as_deref());
    let (reason, text) = match kept {
        Some(text) => (Reason::Kept, text),
        None => (Reason::Asked, Reason::Asked.text()),
    };
    if level != Level::Files {
        say(process, level, level, reason, 0, text);
    }
    if level == Level::Off {
        off(text);
    }
}

/// Steps down to level `to`, unless the process is further down already. `place` is the number of the queue or agent
/// that gave the reason. Returns true if this call made the step.
pub fn step_down(to: Level, reason: Reason, place: u32) -> bool {
    step_down_because(to, reason, place, "")
}

/// As [`step_down`], with the reason in other words.
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
        off(reason.text());
    }
    true
}

fn off(reason: &str) {
    state::switch_off();
    process::say_off(reason);
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
