use std::io;
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong before a connection: files, names, keys. What goes wrong on one is a [`crate::Refusal`] or a
/// [`crate::Reason`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name of a job or a node has other characters, or is too long.
    #[error("{0:?} is no name of a job or node: it needs 1 to 128 of A-Z a-z 0-9 . _ - and no dot at its begin")]
    Name(String),
    /// A file or folder cannot be read, written or removed.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// The verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file or folder with keys is not the user's alone.
    #[error("{} {why}: keys are not used from there", path.display())]
    NotPrivate {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// No folder for keys is known.
    #[error("neither XDG_STATE_HOME nor HOME names a folder for the keys of jobs")]
    NoStateFolder,
    /// A file has no key of roctop.
    #[error("{} has no key of roctop: {why}", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A key's time is over.
    #[error("the key of {name} in job {job} has expired")]
    Expired {
        /// The job.
        job: String,
        /// The node.
        name: String,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// A key does not fit its certificate, or cannot be used for TLS.
    #[error("cannot use the key for TLS")]
    Tls(#[from] rustls::Error),
    /// An address is none, or stands for all of a machine's addresses.
    #[error("{address:?} is no address to listen at: {why}")]
    Address {
        /// The text.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// A report, question or text is longer than the limit.
    #[error("{what} of {length} bytes; {limit} is the limit")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its length, bytes.
        length: usize,
        /// The limit, bytes.
        limit: usize,
    },
    /// A report comes from an end of the network that has no node.
    #[error("this end of the job's network has no node to report for")]
    NoNode,
    /// A key that nobody reports to is to listen.
    #[error("a key of a {0} does not allow to listen; it needs that of a relay or root")]
    NoServer(String),
    /// The network's thread could not be started.
    #[error("cannot start the network of the job")]
    Start(#[source] io::Error),
}

impl Error {
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { doing, path, source }
    }
}
