//! Records and the ring: the contract between the collector (writer) and the viewer (reader).
//!
//! A traced process owns one or more *ring files* on tmpfs. Each file holds facts (strings, agents, kernel symbols), a
//! directory of threads, one overwrite-oldest ring of 64-byte slots per thread, work in flight, and loss counters. The
//! writer never looks at a reader; a reader only uses `pread` into private copies.
//!
//! Reading order: [`record`] and [`arguments`] (content), [`layout`] (positions), [`writer`], [`directory`],
//! [`reader`], [`map`], [`session`].
//!
//! Excluded on purpose: knowledge of ROCm, logging, threads, allocation on the write path.

pub mod arguments;
pub mod bytes;
pub mod directory;
pub mod flight;
pub mod layout;
pub mod level;
#[cfg(not(loom))]
pub mod map;
#[cfg(feature = "reader")]
pub mod near;
#[cfg(feature = "reader")]
pub mod reader;
pub mod record;
#[cfg(not(loom))]
pub mod session;
pub mod sites;
pub mod sync;
pub mod writer;
