//! The test kit: directories, real programs on the emulated GPU, synthetic recordings, terminals, and readers of what
//! exports write.

pub(crate) mod cgroup;
pub(crate) mod columns;
pub(crate) mod counted;
pub(crate) mod demo;
pub(crate) mod directory;
pub(crate) mod made;
mod memory;
pub(crate) mod metrics;
pub(crate) mod patience;
pub(crate) mod protobuf;
pub(crate) mod python;
pub(crate) mod ranks;
pub(crate) mod recorded;
pub(crate) mod records;
pub(crate) mod rig;
pub(crate) mod running;
pub(crate) mod schema;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod trace;
pub(crate) mod truth;
pub(crate) mod work;
