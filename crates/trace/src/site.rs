//! Call sites: where in the program launches, copies and calls come from.
//!
//! The collector gives each site a number and copies its stack once. A viewer on the same machine unwinds the copy. From
//! then on a site is this: frames as offsets in files, without any byte of the stack.

use serde::{Deserialize, Serialize};

/// Number of a site in its process, from 1; 0 unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SiteNumber(pub u16);

impl SiteNumber {
    /// The call site is not known.
    pub const UNKNOWN: Self = Self(0);

    /// Whether the collector knew the site.
    pub const fn is_known(self) -> bool {
        self.0 != 0
    }
}

/// Module number of a frame in code without a file.
pub const NO_MODULE: u32 = u32::MAX;

/// What a viewer found out about the sites of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SiteFact {
    /// A file with code of the process, before the first frame in it.
    Module(Module),
    /// The call path of a site.
    Path {
        /// The site.
        site: SiteNumber,
        /// Frames, innermost first: the first one made the call.
        frames: Vec<Frame>,
        /// Why there are no further frames.
        end: PathEnd,
        /// Whether frames were found by frame pointers alone: callers may be missing between them.
        is_guessed: bool,
    },
    /// How often the stack of a known site was copied again; replaces the previous numbers.
    Checked {
        /// The site.
        site: SiteNumber,
        /// Number of further copies.
        copies: u32,
        /// Number of those with another call path: the site is ambiguous if there are any.
        different: u32,
    },
    /// Names of a frame.
    Names {
        /// The frame.
        frame: Frame,
        /// Functions of this frame, the innermost inlined one first. Empty if there is no name.
        lines: Vec<Line>,
    },
    /// What has no site or no call path so far; replaces the previous numbers.
    Missing(MissingSites),
}

/// A file with code, or the name that Python code has instead of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Number in its process.
    pub number: u32,
    /// Path in the mount namespace of the process.
    pub path: String,
    /// GNU build-id; empty if the file has none.
    pub build_id: Vec<u8>,
    /// Why nothing can be read from it: it was replaced or is gone. Empty if it can be read.
    pub problem: String,
    /// It is a file of Python code, and its frames have their names from the process.
    pub is_python: bool,
}

/// A frame of a call path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Frame {
    /// Number of the file in its process; [`NO_MODULE`] for code without a file.
    pub module: u32,
    /// Address of the call in the file's own addresses; in memory for code without a file. In a file of Python code a
    /// number of the function and, in the lower half, the line.
    pub offset: u64,
}

/// Why a call path has no further frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PathEnd {
    /// The outermost frame was reached.
    #[default]
    Complete,
    /// The copy of the stack ends here.
    Cut,
    /// There is no unwind information for this code.
    NoInformation,
    /// Unwind information and stack contradict each other.
    Damaged,
    /// There are more frames than are looked at.
    TooDeep,
}

impl PathEnd {
    /// The reason, for the end of a list of frames; none if the path is complete.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Complete => None,
            Self::Cut => Some("the copied stack ends here"),
            Self::NoInformation => Some("no unwind information"),
            Self::Damaged => Some("unwind information and stack contradict each other"),
            Self::TooDeep => Some("further frames are not looked at"),
        }
    }
}

/// A function in a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Line {
    /// Demangled name; empty if unknown.
    pub function: String,
    /// Path of the source file; empty if unknown.
    pub file: String,
    /// Line in it, from 1; 0 if unknown.
    pub line: u32,
    /// Where no file is known, the distance of the call from the function's first address; 0 if unknown.
    pub distance: u64,
}

/// Numbers of calls without a site, and of sites without a call path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingSites {
    /// Calls whose stack could not be read, or whose code is in no known mapping.
    pub unreadable: u64,
    /// Calls for whose thread there was no memory.
    pub no_room: u64,
    /// Calls for which the process had no number left.
    pub no_number: u64,
    /// Calls of Unix signal handlers that interrupted the work on another site.
    pub reentrant: u64,
    /// Stacks that were overwritten before roctop read them.
    pub overwritten: u64,
}

impl MissingSites {
    /// Number of calls without a site.
    pub const fn calls(self) -> u64 {
        self.unreadable
            .saturating_add(self.no_room)
            .saturating_add(self.no_number)
            .saturating_add(self.reentrant)
    }
}
