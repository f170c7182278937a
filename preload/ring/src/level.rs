//! The levels of timing: how dispatches get their times, from full timing down to no recording.
//!
//! A process starts at one level and steps down when that level fails; it never steps up again. Each step is a
//! [`Status`](crate::record::Status) of code [`LEVEL`](crate::record::status::LEVEL), whose value is a packed [`Step`].

use std::fmt;

/// How dispatches are timed. A greater level needs less of the hardware and the run-time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// By the collector's signals in a flight file, whose pages are mapped over memory of the run-time.
    #[default]
    Files = 0,
    /// By the collector's signals in memory of the run-time.
    Memory = 1,
    /// By signals that the run-time created for the collector.
    RunTime = 2,
    /// Only by the program's signals; other dispatches are recorded without times.
    Program = 3,
    /// Not at all, and queues are the run-time's own. API calls and copies are recorded.
    Plain = 4,
    /// Not at all. HIP calls are recorded.
    Calls = 5,
    /// The collector is off.
    Off = 6,
}

impl Level {
    /// All levels, in ascending order.
    pub const ALL: [Self; 7] = [
        Self::Files,
        Self::Memory,
        Self::RunTime,
        Self::Program,
        Self::Plain,
        Self::Calls,
        Self::Off,
    ];

    /// The level with this number.
    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The level that a text gives by its number.
    pub fn parse(text: &str) -> Option<Self> {
        Self::of(text.trim().parse().ok()?)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// A description of what is timed, and how.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Files => "kernels are timed by signals of roctop's in a file",
            Self::Memory => "kernels that complete just before a kill -9 may be lost",
            Self::RunTime => "kernels are timed by signals that HSA made",
            Self::Program => "only kernels that have a signal of the program's are timed",
            Self::Plain => "kernels are not recorded; calls and copies are",
            Self::Calls => "only HIP calls are recorded",
            Self::Off => "nothing is recorded",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.number())
    }
}

/// The value of a status of code [`LEVEL`](crate::record::status::LEVEL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The new level.
    pub to: Level,
    /// The previous level.
    pub from: Level,
    /// Number of the reason, see `level::Reason` of the collector.
    pub reason: u8,
    /// Dense id of the queue, or index of the agent, that gave the reason.
    pub place: u32,
}

impl Step {
    /// Packs the step into a number.
    pub const fn value(self) -> u64 {
        self.to as u64 | (self.from as u64) << 8 | (self.reason as u64) << 16 | (self.place as u64) << 32
    }

    /// Unpacks a step; `None` if the number contains no level.
    pub fn of(value: u64) -> Option<Self> {
        Some(Self {
            to: Level::of(value & 0xff)?,
            from: Level::of(value >> 8 & 0xff)?,
            reason: (value >> 16) as u8,
            place: (value >> 32) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_a_level_by_its_number_from_0_to_6() {
        assert_eq!(Level::parse("0"), Some(Level::Files));
        assert_eq!(Level::parse(" 6 "), Some(Level::Off));
        for text in ["7", "-1", "", "two", "0x1", "1.0"] {
            assert_eq!(Level::parse(text), None, "{text}");
        }
        for level in Level::ALL {
            assert_eq!(Level::parse(&level.to_string()), Some(level));
        }
    }

    #[test]
    fn a_step_is_a_number_and_back() {
        let step = Step {
            to: Level::RunTime,
            from: Level::Files,
            reason: 7,
            place: 0xffff_fff0,
        };
        assert_eq!(Step::of(step.value()), Some(step));
        assert_eq!(Step::of(7), None);
    }
}
