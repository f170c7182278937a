//! Traces that other tools wrote: what is in them, and whether that is all.
//!
//! A trace of any size is read in one pass and with limited memory. All input is untrusted.

mod csv;
mod ids;
mod json;
mod perfetto;
mod report;
mod rocpd;
mod tally;

pub use report::{Finding, Report};
pub use tally::Gap;

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use tally::Tally;

/// Why a file is no trace that can be checked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("cannot read it")]
    Io(#[from] std::io::Error),
    /// It has another format.
    #[error("neither a Kineto trace (JSON), nor JSON, CSV (kernel_trace.csv), pftrace or rocpd of rocprofv3")]
    Unknown,
    /// It is no JSON of a known shape.
    #[error("not readable as a trace")]
    Json(#[source] serde_json::Error),
    /// It is no database of a known shape.
    #[error("not readable as a rocpd database")]
    Database(#[from] rusqlite::Error),
}

/// Formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A Chrome trace of PyTorch's profiler.
    Kineto,
    /// JSON of rocprofv3.
    Rocprofv3Json,
    /// CSV of rocprofv3.
    Csv,
    /// A rocpd database.
    Rocpd,
    /// A trace of Perfetto.
    Perfetto,
}

impl Format {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kineto => "Kineto trace",
            Self::Rocprofv3Json => "rocprofv3 JSON",
            Self::Csv => "rocprofv3 CSV",
            Self::Rocpd => "rocpd database",
            Self::Perfetto => "Perfetto trace",
        }
    }
}

/// A trace that was read.
#[derive(Debug)]
pub struct Trace {
    format: Format,
    tally: Tally,
    /// Whether it ends early.
    is_cut: bool,
}

/// The kernels of a recording of the same program.
#[derive(Debug, Default)]
pub struct Reference(Tally);

impl Reference {
    /// Adds a kernel that began at this time, ns.
    pub fn kernel(&mut self, name: &str, begin: u64) {
        let name = self.0.name(name);
        self.0.kernel(name, [begin as i64; 2], None, None);
    }
}

impl Trace {
    /// Reads a file, whose first bytes show its format. It may be compressed by gzip. A second pass leaves out launches that were
    /// captured for graphs.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let trace = Self::pass(path, Tally::default())?;
        let Some(captures) = trace.tally.captures() else {
            return Ok(trace);
        };
        // There is memory for one.
        drop(trace);
        Self::pass(path, Tally::with_captures(captures))
    }

    fn pass(path: &Path, tally: Tally) -> Result<Self, Error> {
        let mut file = File::open(path)?;
        let mut head = [0; 16];
        let count = read_up_to(&mut file, &mut head)?;
        file.rewind()?;
        if head[..count].starts_with(b"SQLite format 3\0") {
            return Ok(Self {
                format: Format::Rocpd,
                tally: rocpd::read(path, tally)?,
                is_cut: false,
            });
        }
        if !head[..count].starts_with(&[0x1f, 0x8b]) {
            return Self::of_stream(file, path, tally);
        }
        Self::of_stream(
            MultiGzDecoder::new(BufReader::with_capacity(1 << 18, file)),
            path,
            tally,
        )
    }

    fn of_stream(mut input: impl Read, path: &Path, mut tally: Tally) -> Result<Self, Error> {
        let mut head = [0; 64];
        let count = read_up_to(&mut input, &mut head)?;
        let head = &head[..count];
        let is_binary = head
            .iter()
            .any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace());
        let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
        let input = BufReader::with_capacity(1 << 18, head.chain(input));
        let (format, is_cut) = match first {
            _ if is_binary => (Format::Perfetto, perfetto::read(input, &mut tally)?),
            Some(b'{' | b'[') => {
                let (format, is_cut);
                (tally, format, is_cut) = json::read(input, tally)?;
                (format, is_cut)
            }
            Some(b'"' | b'D' | b'K') => {
                // The calls come first: they say which process a thread is of.
                let (mut threads, mut is_cut) = (csv::Threads::default(), false);
                if let Some(calls) = calls_beside(path) {
                    is_cut = csv::read(BufReader::with_capacity(1 << 18, calls), &mut tally, &mut threads)?;
                }
                is_cut |= csv::read(input, &mut tally, &mut threads)?;
                (Format::Csv, is_cut)
            }
            _ => return Err(Error::Unknown),
        };
        Ok(Self { format, tally, is_cut })
    }

    /// What is missing: by the file itself, and compared with a recording.
    pub fn report(&self, reference: Option<&Reference>) -> Report {
        Report::new(self, reference.map(|reference| &reference.0))
    }
}

/// The file with the calls beside one with kernels.
fn calls_beside(path: &Path) -> Option<File> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix("kernel_trace.csv")?;
    File::open(path.with_file_name(format!("{stem}hip_api_trace.csv"))).ok()
}

/// Reads until `room` is full or the input ends.
fn read_up_to(input: &mut impl Read, room: &mut [u8]) -> std::io::Result<usize> {
    let mut count = 0;
    while count < room.len() {
        match input.read(&mut room[count..])? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
