//! Recordings: the collector's records in checksummed, compressed blocks, one directory each.
//!
//! `REC/roctop.json` says what it is; `REC/facts.roctop` holds what names and dates records; the records are in
//! `REC/segment-NNNNNN.roctop`, in the order in which they were read, each segment with an index at its end. A block is
//! independent of its neighbours, so a cut or damaged recording opens as far as it is whole, and what is missing is
//! counted. Written by the reader's side only. In layout 1 everything was in one segment without an index.

mod block;
mod cut;
mod file;
mod history;
mod index;
mod merged;
mod payload;
mod reader;
mod recover;
mod segment;
mod writer;

pub use cut::cut;
pub use history::{Gap, History, Outcome, Written};
pub use merged::Merged;
pub use reader::{Recording, Replay};
pub use recover::{Recovered, recover};
pub use writer::hostname;
pub use writer::{Origin, Recorder};

/// Name of the file that says what the directory is.
pub const MANIFEST: &str = "roctop.json";
/// Name of the file that holds the driver's topology at the start.
pub const TOPOLOGY: &str = "topology.json";
/// Name of the file that holds the topologies of other machines, in a recording put together from several.
pub const TOPOLOGIES: &str = "topologies.json";
/// Layout of recordings; raised when older releases cannot read them.
pub const FORMAT: u32 = 2;
/// The oldest layout that is read.
pub const OLDEST: u32 = 1;
/// Ending of segment files.
pub const SEGMENT: &str = "roctop";
/// Name of the file of facts, without its ending.
pub const FACTS: &str = "facts";
