//! Errors of sessions and recordings.

use crate::recording::{FORMAT, MANIFEST, OLDEST};
use std::io;
use std::path::{Path, PathBuf};

/// Error of a session or a recording. The text leaves out the cause, which is the error's source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation of the operating system failed.
    #[error("{what} {}", path.display())]
    Io {
        /// The failed action, as it appears before the path: `cannot read`.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file of a recording has contents that roctop did not write.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Position and kind of the fault.
        source: serde_json::Error,
    },
    /// The manifest of a recording cannot be encoded.
    #[error("the manifest of the recording cannot be encoded")]
    Encode(#[from] serde_json::Error),
    /// A pipe or device in place of a file of records.
    #[error("{} is not a file: it does not belong to a recording", .0.display())]
    NotAFile(PathBuf),
    /// The path does not exist.
    #[error("there is no recording {path}; 'roctop record -o {path} -- APP' makes one", path = .0.display())]
    NoRecording(PathBuf),
    /// The path is a file; a recording is a directory.
    #[error("{} is a file; a recording of roctop is a directory with {MANIFEST} in it", .0.display())]
    RecordingIsAFile(PathBuf),
    /// The directory has no manifest.
    #[error("{} is not a recording of roctop: no {MANIFEST} in it", .0.display())]
    NotARecording(PathBuf),
    /// The recording has a layout that this release does not know.
    #[error("{} has layout {found}; this release of roctop reads layouts {OLDEST} to {FORMAT}", path.display())]
    Layout {
        /// The recording.
        path: PathBuf,
        /// Its layout number.
        found: u64,
    },
    /// The directory of a new recording is not empty.
    #[error("{} exists and is not empty; name another directory with -o", .0.display())]
    NotEmpty(PathBuf),
    /// The path of a new recording is a file.
    #[error("{} is a file; name another directory with -o", .0.display())]
    IsAFile(PathBuf),
    /// The disk was full, so records are missing.
    #[error("the recording {} is incomplete, {missing} records could not be written", path.display())]
    Incomplete {
        /// The recording.
        path: PathBuf,
        /// Number of missing records.
        missing: u64,
        /// Cause.
        source: io::Error,
    },
    /// No directory for sessions is usable.
    #[error("no place for the session: {0}; roctop needs a tmpfs at /dev/shm or in XDG_RUNTIME_DIR")]
    NoSessionDirectory(String),
    /// The directory is not a session.
    #[error("{} is not a session of roctop", path.display())]
    NotASession {
        /// The directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// No session matches.
    #[error("there is no session {which}; those that are left are in {}", base.display())]
    NoSession {
        /// Name or path that was requested.
        which: String,
        /// Directory that contains the sessions.
        base: PathBuf,
    },
}

impl Error {
    /// For `map_err`: the action `what` on `path` failed.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// For `map_err`: the file at `path` has invalid contents.
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

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
