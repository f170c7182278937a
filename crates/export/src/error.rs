//! Errors of an export.

use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};

/// Error of an export. The text leaves out the cause, which is the error's source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation on a file or directory failed.
    #[error("{what} {}", path.display())]
    File {
        /// The failed action, as it appears before the path: `cannot write`.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Cause.
        source: Box<Error>,
    },
    /// An operation of the operating system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The recording cannot be read.
    #[error(transparent)]
    Source(#[from] roctop_source::Error),
    /// Error of the Parquet library.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// Error of the database.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// A JSON document could not be encoded.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// For `map_err`: the action `what` on `path` failed.
    pub(crate) fn at<E: Into<Self>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            what,
            path,
            source: Box::new(source.into()),
        }
    }
}

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
