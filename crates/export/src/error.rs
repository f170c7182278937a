//! Why files could not be written.

use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};

/// Why an export failed. The text leaves out the cause, which is the error's source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory failed.
    #[error("{what} {}", path.display())]
    File {
        /// What could not be done, before the path: `cannot write`.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: Box<Error>,
    },
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The recording cannot be read.
    #[error(transparent)]
    Source(#[from] roctop_source::Error),
    /// The library for Parquet files.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// The database.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// A document.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// For `map_err`: `what` could not be done with `path`.
    pub(crate) fn at<E: Into<Self>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            what,
            path,
            source: Box::new(source.into()),
        }
    }
}

/// What the writers of files give.
pub type Result<T, E = Error> = std::result::Result<T, E>;
