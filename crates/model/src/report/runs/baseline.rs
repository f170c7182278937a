//! A file with the sums of the runs of one side: text, versioned, a few kilobytes.

use crate::report::runs::{Environment, Side};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};

/// Version of the format. Later releases read it; a field that a release does not know is ignored.
const VERSION: u32 = 1;
/// Maximum size of a file.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of runs, and of rows of one run.
const MAX_RUNS: usize = 1000;
const MAX_ROWS: usize = 100_000;

/// Why a file is no baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It cannot be read or written.
    #[error("cannot read or write it")]
    Io(#[from] std::io::Error),
    /// It is no JSON of this shape.
    #[error("no baseline of 'roctop ci'")]
    Shape(#[source] serde_json::Error),
    /// It was written by a later release.
    #[error("a baseline of version {0}; this release reads version {VERSION}")]
    Version(u32),
    /// It is too large to be one.
    #[error("no baseline of 'roctop ci': it has more than {0}")]
    TooLarge(&'static str),
}

#[derive(Deserialize)]
struct Head {
    roctopci: u32,
}

#[derive(Serialize, Deserialize)]
struct File {
    roctopci: u32,
    environment: Environment,
    runs: Vec<super::Sums>,
}

/// Writes a side.
pub fn write(side: &Side, out: &mut dyn Write) -> Result<(), BaselineError> {
    let file = File {
        roctopci: VERSION,
        environment: side.environment.clone(),
        runs: side.runs.clone(),
    };
    serde_json::to_writer(&mut *out, &file).map_err(BaselineError::Shape)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// Reads a side. The file may be hostile: its size is limited before it is parsed.
pub fn read(input: &mut dyn Read) -> Result<Side, BaselineError> {
    let mut text = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(BaselineError::TooLarge("64 MiB"));
    }
    let head: Head = serde_json::from_slice(&text).map_err(BaselineError::Shape)?;
    if head.roctopci != VERSION {
        return Err(BaselineError::Version(head.roctopci));
    }
    let file: File = serde_json::from_slice(&text).map_err(BaselineError::Shape)?;
    if file.runs.len() > MAX_RUNS {
        return Err(BaselineError::TooLarge("1000 runs"));
    }
    let rows = |run: &super::Sums| run.rows.values().map(std::collections::BTreeMap::len).sum::<usize>();
    if file.runs.iter().any(|run| rows(run) > MAX_ROWS) {
        return Err(BaselineError::TooLarge("100000 rows"));
    }
    Ok(Side {
        runs: file.runs,
        environment: file.environment,
    })
}
