//! Recordings: the collector's records in checksummed, compressed blocks, one directory each.
//!
//! `REC/roctop.json` says what it is; `REC/segment-NNNNNN.roctop` holds the blocks in the order in which they were read.
//! A block is independent of its neighbours, so a cut or damaged recording opens as far as it is whole, and what is
//! missing is counted. Written by the reader's side only.

mod block;
mod reader;
mod writer;

pub use reader::{Recording, Replay};
pub use writer::Recorder;

/// Name of the file that says what the directory is.
pub const MANIFEST: &str = "roctop.json";
/// Name of the file that holds the driver's topology at the start.
pub const TOPOLOGY: &str = "topology.json";
/// Layout of recordings; raised when older releases cannot read them.
pub const FORMAT: u32 = 1;
/// Ending of segment files.
pub const SEGMENT: &str = "roctop";
