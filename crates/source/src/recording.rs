//! Recordings: the collector's records in checksummed, compressed blocks, one directory each.
//!
//! `REC/roctop.json` is the manifest. `REC/facts.roctop` contains the facts that name and date records.
//! `REC/segment-NNNNNN.roctop` contain the records in the order in which they were read, each with an index at its end.
//! Blocks are independent, so a cut or damaged recording opens as far as it is intact, and missing parts are counted.
//! Only the viewer's side writes recordings. Layout 1 had a single segment without an index.

mod beginning;
mod block;
mod by_thread;
mod contents;
mod cut;
mod decoding;
mod file;
mod history;
mod hold;
mod index;
mod merged;
mod once;
mod packing;
mod payload;
mod reader;
mod recover;
mod scan;
mod segment;
mod stretch;
mod trigger;
mod writer;

pub use contents::Contents;
pub use cut::cut;
pub use history::{Gap, History, Outcome, Written};
pub use hold::{Destination, Hold, HoldResult, HoldState, Written as WrittenHold};
pub use merged::Merged;
pub use reader::{LeftOpen, Recording, Replay};
pub use recover::{Recovered, recover};
pub use scan::{Looking, Scan, Seen};
pub use trigger::{Kept, Trigger, adopt_partial, excess, kept};
pub use writer::hostname;
pub use writer::{Origin, Recorder};

/// File name of the manifest.
pub const MANIFEST: &str = "roctop.json";
/// Key of the manifest of a copy: number of records that damage had cost its originals.
const DAMAGED: &str = "damaged";
/// Key of the manifest of such a copy: whether there may have been more, which nobody could count.
const DAMAGED_UNCOUNTED: &str = "damaged_uncounted";
/// Key of the manifest of a recording that is not of the whole run: the stretch of time of its records, CLOCK_BOOTTIME ns.
const STRETCH: &str = "stretch";
/// File name of the driver's topology at the start.
pub const TOPOLOGY: &str = "topology.json";
/// File name of the topologies of all machines, in a merged recording.
pub const TOPOLOGIES: &str = "topologies.json";
/// Current layout. It increases when older releases cannot read a recording.
pub const FORMAT: u32 = 2;
/// Oldest supported layout.
pub const OLDEST: u32 = 1;
/// Extension of segment files.
pub const SEGMENT: &str = "roctop";
/// Stem of the file of facts.
pub const FACTS: &str = "facts";
