//! What was typed and cannot be meant: roctop ends with 2, as `argparse` and `clap` do.

use std::fmt;

/// What was asked for cannot be: the exit code is that of a wrong command line.
#[derive(Debug)]
pub struct UsageError(pub String);

impl fmt::Display for UsageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
