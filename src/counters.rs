//! Hardware counters as the viewer asks for them: what there is, what fits together, what is computed from it.
//!
//! The counting itself is the collector's, in the program; here a request becomes a variable of its environment. A list
//! is made by the same collector in a process of roctop's own, so that this binary needs no profiler library.

pub mod list;
pub mod plan;
mod report;
pub mod request;
pub mod show;
