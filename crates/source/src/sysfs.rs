//! What the driver tells of GPUs without any library: load, memory, clocks, power, temperatures, links.
//!
//! Parsers are pure; [`reader::Reader`] opens files below a root that fixtures can set. A value that is not there is a
//! reading too: it says why. Absent: hardware counters, which need the collector.

mod attributes;
pub mod fdinfo;
pub mod gpu_metrics;
mod partition;
pub mod reader;
pub mod store;
pub mod text;

pub use roctop_trace::gauge::metric::{Absent, Metric, Reading, Sample, Unit};
