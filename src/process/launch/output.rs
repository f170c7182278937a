//! Where a program's standard output and error go.

use crate::cli::usage_error::UsageError;
use anyhow::{Context, Result};
use std::fs::File;
use std::path::PathBuf;

/// Where a program's standard output and error go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// To a pseudo-terminal under the screen, else where roctop's go.
    #[default]
    Auto,
    /// To a pseudo-terminal.
    Terminal,
    /// Into a pipe, for programs that behave otherwise on a terminal.
    Pipe,
    /// Where roctop's go.
    Inherit,
    /// Both to roctop's standard error: its standard output is a report.
    Error,
    /// To a file.
    File(PathBuf),
}

impl Output {
    /// Errors: it cannot go there while the live screen has the terminal.
    pub fn check_under_screen(&self) -> Result<(), UsageError> {
        match self {
            Self::Inherit | Self::Error => usage_error("inherit: the program would write over the screen; use --no-ui"),
            _ => Ok(()),
        }
    }

    /// Errors: it cannot go there without a screen.
    pub fn check_without_screen(&self) -> Result<(), UsageError> {
        match self {
            Self::Terminal => {
                usage_error("pty: without a screen there is no terminal for the program but roctop's own")
            }
            Self::Pipe => usage_error(
                "pipe: without a screen the program writes where roctop does; 'roctop … | cat' makes that a pipe",
            ),
            _ => Ok(()),
        }
    }

    /// The file, made empty; none when it is no file.
    ///
    /// Errors: it cannot be written.
    pub(super) fn file(&self) -> Result<Option<File>> {
        let Self::File(path) = self else { return Ok(None) };
        let made = File::create(path);
        Ok(Some(made.with_context(|| {
            format!("cannot write the program's output into {}", path.display())
        })?))
    }
}

fn usage_error(why: &str) -> Result<(), UsageError> {
    Err(UsageError(format!("--app-io {why}")))
}
