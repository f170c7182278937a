//! Why a command failed, and with which exit code roctop ends.

use crate::cli::usage_error::UsageError;
use crate::process::launch::NotStarted;
use std::fmt;
use std::io::ErrorKind;

/// Why a command failed, each with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command line cannot be meant.
    Usage(String),
    /// The program could not be started; its exit code is 126 or 127.
    NotStarted(u8, String),
    /// The reader of roctop's output has closed it: no failure of roctop's.
    OutputClosed,
    /// Anything else.
    Other(String),
}

impl Failure {
    /// The exit code: 2 as `argparse` and `clap` have it, 126 and 127 as `env` has them.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NotStarted(code, _) => *code,
            Self::OutputClosed => 0,
            Self::Other(_) => 1,
        }
    }
}

/// End of the text of `EFBIG`.
const FILE_TOO_LARGE: &str = "(os error 27)";

impl From<anyhow::Error> for Failure {
    /// Finds the cause below the context that was added on the way.
    fn from(error: anyhow::Error) -> Self {
        let mut text = format!("{error:#}");
        // Errors of libraries hide the system's error, but not its text.
        if text.ends_with(FILE_TOO_LARGE) {
            text += "; the size of files is limited here ('ulimit -f')";
        }
        let is_closed = |cause: &(dyn std::error::Error + 'static)| {
            let cause = cause.downcast_ref::<std::io::Error>();
            cause.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
        };
        if error.chain().any(is_closed) {
            Self::OutputClosed
        } else if let Some(refused) = error.downcast_ref::<NotStarted>() {
            Self::NotStarted(refused.code, text)
        } else if error.is::<UsageError>() {
            Self::Usage(text)
        } else {
            Self::Other(text)
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Usage(text) | Self::NotStarted(_, text) | Self::Other(text) => text,
            Self::OutputClosed => "the output was closed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn exit_codes_are_found_below_the_context() {
        let code = |error: anyhow::Error| Failure::from(error).exit_code();
        assert_eq!(code(UsageError("no".into()).into()), 2);
        let refused = NotStarted {
            code: 127,
            reason: "no such file".into(),
        };
        let refused: anyhow::Result<()> = Err(refused.into());
        let refused = refused.context("the program could not be started").unwrap_err();
        assert_eq!(code(refused), 127);
        let closed: anyhow::Result<()> = Err(std::io::Error::from(ErrorKind::BrokenPipe)).context("writing");
        assert_eq!(code(closed.unwrap_err()), 0);
        assert_eq!(code(anyhow!("anything")), 1);
    }

    #[test]
    fn other_failures_are_shown_with_their_causes() {
        let error = Failure::from(anyhow!("no space").context("cannot write x"));
        assert_eq!(error.to_string(), "cannot write x: no space");
    }
}
