//! What can happen to the screen, and what is to be done outside for it.

use std::path::PathBuf;
use std::sync::Arc;

use super::key::{Key, Mouse};
use super::source_text::{SourceLine, SourcePlace};
use roctop_model::Snapshot;
use roctop_model::recall::Window;
use roctop_trace::item::Nanos;

/// What can happen.
#[derive(Clone, Debug)]
pub enum Msg {
    /// The terminal was read: the keys and clicks that follow came then.
    Read {
        /// When.
        at: Nanos,
        /// How many keys and clicks came at once.
        together: usize,
    },
    /// A key.
    Key(Key),
    /// The mouse.
    Mouse(Mouse),
    /// A text was pasted, and the terminal marked it.
    Paste(String),
    /// The terminal has another size now.
    Resize(u16, u16),
    /// A word to the user.
    Say(String),
    /// A recording to compare with was read.
    Baseline(Arc<Snapshot>),
    /// A recording is made here now, or no more; and a word to the user.
    Recording(Option<String>, String),
    /// The names of all counters, for completion.
    Counters(Arc<[String]>),
    /// A recording can be made there.
    NameRecording(String),
    /// Who ended the program.
    Fate(String),
    /// Lines of source files were read; those that are missing cannot be read.
    Source(Vec<(SourcePlace, SourceLine)>),
    /// Time has gone on.
    Tick,
    /// Bytes were typed while they go to the program.
    Typed(Vec<u8>),
}

/// The moment from which numbers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// The run's beginning.
    Beginning,
    /// This moment.
    Now,
}

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Nothing; said once in each turn of the loop, so that the loop can be stopped.
    Idle,
    /// Interrupt the program (SIGINT to its process group).
    Interrupt,
    /// Send a signal to the program.
    Signal(i32),
    /// Give the program what was typed.
    Type(Vec<u8>),
    /// Leave the terminal, stop ourselves, come back.
    Suspend,
    /// Write a file.
    Export {
        /// Proposed name.
        name: String,
        /// What is in it.
        bytes: Vec<u8>,
    },
    /// Write all lists into a directory.
    ExportAll {
        /// Proposed name of the directory.
        name: String,
        /// Names in it, and what is in them.
        files: Vec<(String, Vec<u8>)>,
    },
    /// Write whole records of a recording.
    ExportRecords {
        /// As the command line names the format.
        format: &'static str,
        /// Directory.
        place: String,
        /// Filter in force.
        filter: String,
        /// The range that is measured: ns since the session began.
        range: Option<(Nanos, Nanos)>,
    },
    /// Write the screen as pictures; the beginning of their names.
    Picture(String),
    /// Show in another theme.
    Theme(String),
    /// Send ASCII only, or not.
    Ascii(bool),
    /// Read a recording to compare with.
    Compare(PathBuf),
    /// Keep a filter under a name for good.
    Keep {
        /// Its name.
        name: String,
        /// The filter.
        filter: String,
    },
    /// Propose a name for a recording.
    NameRecording,
    /// Begin a recording of this name, or end the one that is made.
    Record(Option<String>),
    /// Read this window back from the recording; none: nothing is to be read any more.
    Recall(Option<Window>),
    /// Count what passes this filter in the whole recording; none: nothing is to be counted any more.
    CountPassing(Option<String>),
    /// Read these lines of source files.
    ReadSource(Vec<SourcePlace>),
    /// Count from another moment.
    Reset(Since),
    /// Run the program again and compare with this run.
    Rerun,
    /// Run it again with these counters, separated by blanks or commas.
    Count(String),
    /// Let the program's counters rest, or count again.
    Rest(bool),
    /// Find out which counters there are.
    ListCounters,
    /// Redraw everything.
    Redraw,
    /// Hand a text to the terminal's clipboard.
    Clipboard(String),
    /// Leave the program alone and quit.
    Detach,
    /// Ask the program to stop (SIGTERM), then quit.
    StopApp,
    /// Show the own events of this rank of the job.
    OpenRank(u32),
    /// Quit; the program has ended.
    Quit,
}
