//! What can be wrong with sessions and recordings.

use crate::recording::{FORMAT, MANIFEST, OLDEST};
use std::io;
use std::path::{Path, PathBuf};

/// Why a session or a recording cannot be used. The text leaves out the cause, which is the error's source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused something.
    #[error("{what} {}", path.display())]
    Io {
        /// What could not be done, before the path: `cannot read`.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of a recording has other contents than roctop writes.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where and how.
        source: serde_json::Error,
    },
    /// The description of a recording cannot be encoded.
    #[error("the recording cannot be described")]
    Encode(#[from] serde_json::Error),
    /// A pipe or device in place of a file of records.
    #[error("{} is not a file: it is no part of a recording", .0.display())]
    NotAFile(PathBuf),
    /// Nothing is there.
    #[error("there is no recording {path}; 'roctop record -o {path} -- APP' makes one", path = .0.display())]
    NoRecording(PathBuf),
    /// A file is there.
    #[error("{} is a file; a recording of roctop is a directory with {MANIFEST} in it", .0.display())]
    RecordingIsAFile(PathBuf),
    /// A directory without a recording is there.
    #[error("{} is not a recording of roctop: no {MANIFEST} in it", .0.display())]
    NotARecording(PathBuf),
    /// Another release wrote it.
    #[error("{} has layout {found}; this release of roctop reads layouts {OLDEST} to {FORMAT}", path.display())]
    Layout {
        /// The recording.
        path: PathBuf,
        /// Its layout.
        found: u64,
    },
    /// A new recording would be mixed with what is there.
    #[error("{} exists and is not empty; name another directory with -o", .0.display())]
    NotEmpty(PathBuf),
    /// A new recording would replace a file.
    #[error("{} is a file; name another directory with -o", .0.display())]
    IsAFile(PathBuf),
    /// The disk was full.
    #[error("the recording {} is incomplete, {missing} records found no room", path.display())]
    Incomplete {
        /// The recording.
        path: PathBuf,
        /// Records that were lost.
        missing: u64,
        /// What the system said.
        source: io::Error,
    },
    /// No directory for sessions can be used.
    #[error("no place for the session: {0}; roctop needs a tmpfs at /dev/shm or in XDG_RUNTIME_DIR")]
    NoPlace(String),
    /// Something else is there.
    #[error("{} is not a session of roctop", path.display())]
    NotASession {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No session has this name.
    #[error("there is no session {which}; those that are left are in {}", base.display())]
    NoSession {
        /// What was asked for.
        which: String,
        /// Where sessions are.
        base: PathBuf,
    },
}

impl Error {
    /// For `map_err`: `what` could not be done with `path`.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// For `map_err`: the file at `path` has contents that cannot be read.
    pub(crate) fn damaged(path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Damaged { path, source }
    }

    /// The error with its causes, on one line.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(next) = cause {
            text += &[": ", &next.to_string()].concat();
            cause = next.source();
        }
        text
    }
}

/// What sessions and recordings give.
pub type Result<T, E = Error> = std::result::Result<T, E>;
